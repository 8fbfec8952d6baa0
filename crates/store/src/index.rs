//! Indexes: from ids and from property values to elements.
//!
//! | module | what it holds |
//! |---|---|
//! | `id_index` | from the id that a user chose to the element |
//! | `property_index` | from property values to the vertices that may have them |
//!
//! Both hold *candidates*, which a reader checks against what its snapshot sees. They know elements by their ids only. Which
//! entries a write adds and a collector removes is in `write` and `garbage`.

mod id_index;
mod property_index;

pub(crate) use self::id_index::{IdIndex, IdKey};
pub use self::property_index::{INDEX_KEYS_MAX, IndexOptions, IndexReport};
pub(crate) use self::property_index::{IndexKey, PropertyIndex};
