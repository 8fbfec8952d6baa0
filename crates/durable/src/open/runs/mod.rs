//! Look-up indexes for readers of objects: from a chosen id to its element, and from the values of a property index to its
//! elements. A reader needs few ranges of a pack for a look-up.
//!
//! A look-up index is a list of *runs*. A run has sorted entries, and is a block of a pack: of kind 7 if its entries are sorted
//! by a hash of their key, of kind 8 if they are sorted by the values themselves. A checkpoint writes a run with the entries of
//! all elements on the pages that it images. The manifest lists the runs that count.
//!
//! | number of a block | kind | index |
//! |---|---|---|
//! | 0, 1 | 7 | chosen ids of vertices, of edges |
//! | n + 2 | 7 or 8 | the property index n: 8 if it is ordered |
//!
//! - **LOG-104.** An entry of a run counts if the newest image of the page of its element lies in the pack of the run, or in an
//!   earlier one. For a change of an element changes the image of its page. A later checkpoint writes the image together with
//!   all entries of the page, so the entries of the page in earlier runs are out of date. No run has marks of removed entries.
//!   A checkpoint gathers the entries of a page when it images the page, so no run lies before the images that it is of.
//!
//! | module | what it holds |
//! |---|---|
//! | `hash` | the hash of an id, or of values |
//! | `entries` | the entries that the elements of a page have |
//! | `block` | a run as the body of a block |

mod block;
mod entries;
mod hash;

use std::sync::Arc;

use mangrove_graph::{ElementKind, IndexInfo, KeyId, LabelId};

pub(crate) use block::{RunHead, put_run, read_run};
pub(crate) use entries::{Entry, LookUpKey, RunKey};
use hash::{hash_of_id, hash_of_values};

/// The kind of a run that is sorted by hashes.
pub(crate) const KIND_HASHED: u8 = 7;
/// The kind of a run that is sorted by values.
pub(crate) const KIND_ORDERED: u8 = 8;
/// The number of the first property index as a look-up index.
const FIRST_PROPERTY: u32 = 2;

/// A look-up index: of which elements it is, and by what it finds them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LookUpIndex {
    /// The number of its blocks.
    pub(crate) number: u32,
    pub(crate) element: ElementKind,
    pub(crate) by: LookUpBy,
}

/// By what a look-up index finds elements.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum LookUpBy {
    /// The id that a user chose.
    Id,
    /// The values under the keys of a property index, of the elements with a label if there is one.
    Values { label: Option<LabelId>, keys: Arc<[KeyId]>, ordered: bool },
}

impl LookUpIndex {
    /// The look-up indexes of a graph with these property indexes.
    pub(crate) fn all(indexes: &[IndexInfo]) -> Vec<Self> {
        let ids = [ElementKind::Vertex, ElementKind::Edge].into_iter().zip(0..);
        let ids = ids.map(|(element, number)| LookUpIndex { number, element, by: LookUpBy::Id });
        let properties = indexes.iter().filter_map(|index| {
            let by = LookUpBy::Values { label: index.label, keys: index.keys.clone(), ordered: index.ordered };
            Some(LookUpIndex { number: index.id.0.checked_add(FIRST_PROPERTY)?, element: index.element, by })
        });
        ids.chain(properties).collect()
    }

    /// The kind of its blocks.
    pub(crate) fn kind(&self) -> u8 {
        match self.by {
            LookUpBy::Values { ordered: true, .. } => KIND_ORDERED,
            _ => KIND_HASHED,
        }
    }
}

/// The look-up index whose runs are the blocks with a number, for people.
pub(crate) fn describe(number: u32) -> String {
    match number {
        0 => "the chosen ids of vertices".to_owned(),
        1 => "the chosen ids of edges".to_owned(),
        property => format!("property index {}", property - FIRST_PROPERTY),
    }
}
