//! Errors for damaged files and unknown formats, and the text of a panic that becomes an error.
//!
//! An error for damage names the file and the byte offset (LOG-43). An error for an unknown format names the file and
//! the format (LOG-44).

use std::any::Any;

use mangrove_graph::{Error, ErrorKind};

use crate::disk::Disk;

/// The error for a file whose content at an offset contradicts its checksum, its format or the rest of the graph.
/// `what` says what is wrong, without a period.
pub(crate) fn damaged(disk: &dyn Disk, path: &str, offset: u64, what: impl std::fmt::Display) -> Error {
    damaged_in(&disk.describe(path), offset, what)
}

/// The same for a place that is described already: a file or an object.
pub(crate) fn damaged_in(place: &str, offset: u64, what: impl std::fmt::Display) -> Error {
    Error::new(
        ErrorKind::Damaged,
        format!("{place} is damaged at byte {offset}: {what}. Nothing was changed; restore the graph from a backup"),
    )
}

/// The error for a file of a format that this version does not know (LOG-44).
pub(crate) fn unknown_format(disk: &dyn Disk, path: &str, found: u64, known: u64) -> Error {
    unknown_format_in(&disk.describe(path), found, known)
}

/// The error for a file or an object of a format that this version does not know (LOG-44).
pub(crate) fn unknown_format_in(place: &str, found: u64, known: u64) -> Error {
    Error::unsupported(format!(
        "{place} has format {found}, and this version of Mangrove reads formats up to {known}; open the graph with the \
         version that wrote it, or a later one"
    ))
}

/// The message of a panic, from its payload.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic")
}
