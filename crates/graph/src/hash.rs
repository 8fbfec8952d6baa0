//! The hash maps of the workspace: the maps of `hashbrown` with the fast hasher of `foldhash`.
//!
//! Each map has a seed of its own, so a client that picks keys cannot make them collide. Nothing may depend on the
//! order in which a map is walked.

/// A hash map with the fast hasher.
pub type FastMap<K, V> = hashbrown::HashMap<K, V, foldhash::fast::RandomState>;

/// A hash set with the fast hasher.
pub type FastSet<T> = hashbrown::HashSet<T, foldhash::fast::RandomState>;
