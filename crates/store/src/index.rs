//! Indexes: from ids and from property values to elements.
//!
//! | module | what it holds |
//! |---|---|
//! | `id_index` | from the id that a user chose to the element |
//! | `property_index` | from property values to the elements that may have them |
//!
//! Both hold *candidates*, which a reader checks against its snapshot. Indexes know elements by their ids only. `write`
//! decides which entries a write adds, and `garbage` which ones a collector removes.

mod id_index;
mod property_index;

pub(crate) use self::id_index::{IdIndex, IdKey};
pub(crate) use self::property_index::{ElementBits, IndexKey, PropertyIndex};
pub use self::property_index::{INDEX_KEYS_MAX, IndexOptions, IndexReport};
