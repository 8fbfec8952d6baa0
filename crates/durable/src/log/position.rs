//! Where a record was found, and the errors that name the place.

use mangrove_graph::{Error, ErrorKind};

use crate::codec::Malformed;

/// Where a record was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordPosition<'a> {
    /// The path of the segment.
    pub path: &'a str,
    /// The offset, in that file, of the batch in which the record ends.
    pub offset: u64,
}

impl RecordPosition<'_> {
    /// The error for a record that contradicts itself or the log before it.
    pub fn damage(&self, what: impl std::fmt::Display) -> Error {
        damage(self.path, self.offset, what)
    }

    /// The error for a record that is no record.
    pub(crate) fn malformed(&self, malformed: Malformed) -> Error {
        self.damage(format_args!("a record with {malformed}"))
    }
}

/// The error for a log that is not as it was written.
pub(super) fn damage(path: &str, offset: u64, what: impl std::fmt::Display) -> Error {
    let message = format!("the log is damaged: {path}, offset {offset}: {what}; restore the graph from a backup");
    Error::new(ErrorKind::Damaged, message)
}
