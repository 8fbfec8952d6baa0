//! What goes wrong with disks, with the file it went wrong with.

use std::{fmt, io};

use mangrove_graph::{Error, ErrorKind};

/// An operation on a file or directory that failed. It can be kept and told to many.
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

    /// What kind of failure.
    pub fn kind(&self) -> io::ErrorKind {
        self.kind
    }

    /// The file or directory.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether there is no space left, or no more than this user may take.
    pub fn is_full(&self) -> bool {
        matches!(self.kind, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }
}

impl fmt::Display for DiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} {}: {}", self.operation, self.path, self.cause)
    }
}

impl std::error::Error for DiskError {}

impl From<DiskError> for Error {
    fn from(error: DiskError) -> Self {
        Error::new(ErrorKind::Io, error.to_string())
    }
}
