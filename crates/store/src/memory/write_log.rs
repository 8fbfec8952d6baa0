//! The entries of a transaction's log: its claims.
//!
//! A writer appends an entry for each claim. A commit turns the claims into timestamps, and a rollback takes them back.
//! Afterwards the collector finds by the entries which older versions have become garbage. An entry says which word was
//! claimed; it holds no values.

use mangrove_graph::{ElementId, KeyId};

/// A claim of a transaction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Write {
    /// The begin word of a new element.
    Begin(ElementId),
    /// The end word of an element that is deleted.
    End(ElementId),
    /// A new version of a property.
    Property {
        /// The element.
        element: ElementId,
        /// The property key.
        key: KeyId,
        /// The number of the undo record in the pool of the element's tablet.
        undo: u64,
    },
}

impl Write {
    /// The element that the claim is about.
    pub fn element(&self) -> ElementId {
        match *self {
            Write::Begin(element) | Write::End(element) | Write::Property { element, .. } => element,
        }
    }
}
