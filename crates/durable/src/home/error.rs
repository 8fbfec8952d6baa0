//! The error of a request to a home.
//!
//! The kind says what is known about the request, so that the caller can decide between another attempt, a look at the
//! name, and giving up. The message names the object and the way out.

use std::fmt;

use mangrove_graph::{Error, ErrorKind};

use crate::disk::DiskError;

/// What is known about a request that failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HomeErrorKind {
    /// The request is wrong, and would fail again.
    Invalid,
    /// The home does not answer, is busy or has no room. The request changed nothing and may be sent again.
    Unavailable,
    /// The home refuses the request: a permission, credentials or a bucket is missing. An operator must act.
    Refused,
    /// The request may have been carried out, or may be later. The caller must look before it draws a conclusion.
    Unknown,
    /// The bytes to be put could not be made: their source failed.
    Source,
    /// The home can no longer say what is durable. It must be opened again.
    Failed,
}

impl HomeErrorKind {
    /// Returns true if the same request may succeed later without any change.
    pub fn is_passing(self) -> bool {
        matches!(self, HomeErrorKind::Unavailable | HomeErrorKind::Unknown)
    }
}

/// A failed request to a home.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HomeError {
    kind: HomeErrorKind,
    message: String,
}

impl HomeError {
    /// An error with a message of one or two sentences: the cause, the object and the way out.
    pub fn new(kind: HomeErrorKind, message: impl Into<String>) -> Self {
        HomeError { kind, message: message.into() }
    }

    /// What is known about the request.
    pub fn kind(&self) -> HomeErrorKind {
        self.kind
    }

    /// The message.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The same message, with another statement about the request.
    pub fn with_kind(self, kind: HomeErrorKind) -> Self {
        HomeError { kind, ..self }
    }
}

impl fmt::Display for HomeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for HomeError {}

/// For operations that changed nothing if they failed.
impl From<DiskError> for HomeError {
    fn from(error: DiskError) -> Self {
        use std::io::ErrorKind::{NotADirectory, PermissionDenied, ReadOnlyFilesystem};
        let kind = match error.kind() {
            PermissionDenied | ReadOnlyFilesystem | NotADirectory => HomeErrorKind::Refused,
            _ => HomeErrorKind::Unavailable,
        };
        HomeError::new(kind, error.to_string())
    }
}

impl From<HomeError> for Error {
    fn from(error: HomeError) -> Self {
        let kind = match error.kind {
            HomeErrorKind::Invalid => ErrorKind::InvalidArgument,
            HomeErrorKind::Failed => ErrorKind::Closed,
            HomeErrorKind::Unavailable | HomeErrorKind::Refused | HomeErrorKind::Unknown | HomeErrorKind::Source => {
                ErrorKind::Io
            }
        };
        Error::new(kind, error.message)
    }
}
