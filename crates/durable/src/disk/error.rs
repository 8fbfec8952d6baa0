//! The error of a disk operation, with the operation and the path that failed.
//!
//! It is cloneable, because the log keeps its first failure and reports it to every later caller.

use std::{fmt, io};

use mangrove_graph::{Error, ErrorKind};

/// A failed operation on a file or directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DiskError {
    operation: &'static str,
    path: String,
    kind: io::ErrorKind,
    cause: String,
}

impl DiskError {
    /// The failure of an operation (an infinitive: `write to`) on a path.
    pub fn new(operation: &'static str, path: impl Into<String>, cause: &io::Error) -> Self {
        DiskError { operation, path: path.into(), kind: cause.kind(), cause: cause.to_string() }
    }

    /// The kind of the cause.
    pub fn kind(&self) -> io::ErrorKind {
        self.kind
    }

    /// The path of the file or directory.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns true if the disk, or the quota of this user, has no space left.
    pub fn is_full(&self) -> bool {
        matches!(self.kind, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }
}

impl fmt::Display for DiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} {}: {}", self.operation, self.path, self.cause)?;
        way_out(self.kind).map_or(Ok(()), |what| write!(f, "; {what}"))
    }
}

impl std::error::Error for DiskError {}

/// Advice to an operator for a failure of this kind.
fn way_out(kind: io::ErrorKind) -> Option<&'static str> {
    use io::ErrorKind::{NotADirectory, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    match kind {
        StorageFull => Some("make room on the disk"),
        QuotaExceeded => Some("make room, or raise the quota"),
        PermissionDenied => Some("give the user of this program that permission, or run it as another user"),
        ReadOnlyFilesystem => {
            Some("the file system is mounted read-only: mount it writable, or work on a copy of the directory")
        }
        NotADirectory => Some("a part of the path is a file; name another directory"),
        _ => None,
    }
}

impl From<DiskError> for Error {
    fn from(error: DiskError) -> Self {
        Error::new(ErrorKind::Io, error.to_string())
    }
}
