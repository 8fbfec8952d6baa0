//! The entries of a transaction's log: what it has claimed.
//!
//! A writer appends an entry for each claim. A commit turns the claims into timestamps, a rollback takes them back, and the
//! collector finds by the entries which older versions have become garbage. An entry names things; it holds no values.

use mangrove_graph::{ElementId, KeyId};

/// One thing a transaction has claimed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Write {
    /// The begin word of a new element.
    Begin(ElementId),
    /// The end word of an element being deleted.
    End(ElementId),
    /// A new version of a property.
    Property {
        /// Whose.
        element: ElementId,
        /// Which.
        key: KeyId,
        /// The number of the undo record in the element's tablet.
        undo: u64,
    },
}

impl Write {
    /// Whose word or property it is.
    pub fn element(&self) -> ElementId {
        match *self {
            Write::Begin(element) | Write::End(element) | Write::Property { element, .. } => element,
        }
    }
}
