//! Errors at the borders between rooms.
//!
//! One small, stable classification by what the caller can do next ([`Remedy`]), and a finer [`ErrorKind`]
//! that names the cause. The message is one or two clear sentences: what was wrong, where, and the way
//! out. Adding detail to a message is free; adding a kind or a remedy is a design decision.

use std::fmt;
use std::time::Duration;

/// A result of this project.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What a caller can do about an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Remedy {
    /// Another transaction won: run the transaction again.
    RetryTransaction,
    /// A limit was reached or a service is unreachable: later, or with a higher limit.
    RetryLater,
    /// The request is wrong and will stay wrong.
    FixRequest,
    /// This handle was closed.
    Reopen,
    /// It may have happened or not: look before doing it again.
    CheckOutcome,
    /// It has happened: do not do it again.
    DoNotRepeat,
    /// Stored bytes contradict their checksum or format: take them from a backup.
    RestoreData,
    /// This is a bug in Mangrove.
    ReportBug,
}

/// The cause of an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The text or frame does not parse.
    Syntax,
    /// An unknown step, source, strategy or argument, or one in the wrong place.
    Unsupported,
    /// A value of the wrong type or out of range, met in a request.
    InvalidArgument,
    /// A run-time failure in a step: wrong kind of object, arithmetic overflow, ….
    Evaluation,
    /// An element with this id exists already.
    DuplicateId,
    /// An element that is needed does not exist.
    NotFound,
    /// Who asks may not do that.
    Forbidden,
    /// Another transaction changed the same thing first.
    Conflict,
    /// The transaction was open for longer than snapshots are kept.
    Expired,
    /// The query ran longer than its time limit.
    Timeout,
    /// The query or the database needs more memory than its limit.
    MemoryLimit,
    /// The query was cancelled.
    Cancelled,
    /// The transaction, session or database is closed.
    Closed,
    /// A file or a connection failed.
    Io,
    /// The database takes no writes now: its disk is full, read-only, or has failed.
    ReadOnly,
    /// It is not known whether the transaction is committed.
    OutcomeUnknown,
    /// The request failed after a transaction of it was committed, or its results could not be delivered: what it committed
    /// stays, so it must not be sent again as it is.
    Committed,
    /// A file of the database is damaged, or was written by a version that this one does not know.
    Damaged,
    /// Something that cannot happen did.
    Bug,
}

impl ErrorKind {
    /// What a caller can do about it.
    pub fn remedy(self) -> Remedy {
        match self {
            ErrorKind::Syntax
            | ErrorKind::Unsupported
            | ErrorKind::InvalidArgument
            | ErrorKind::Evaluation
            | ErrorKind::DuplicateId
            | ErrorKind::NotFound
            | ErrorKind::Forbidden => Remedy::FixRequest,
            ErrorKind::Conflict => Remedy::RetryTransaction,
            ErrorKind::Expired
            | ErrorKind::Timeout
            | ErrorKind::MemoryLimit
            | ErrorKind::Cancelled
            | ErrorKind::Io
            | ErrorKind::ReadOnly => Remedy::RetryLater,
            ErrorKind::OutcomeUnknown => Remedy::CheckOutcome,
            ErrorKind::Committed => Remedy::DoNotRepeat,
            ErrorKind::Damaged => Remedy::RestoreData,
            ErrorKind::Closed => Remedy::Reopen,
            ErrorKind::Bug => Remedy::ReportBug,
        }
    }
}

/// An error: its kind and a message a user can act on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<Detail>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Detail {
    kind: ErrorKind,
    message: String,
    reason: Option<&'static str>,
}

impl Error {
    /// An error of a kind with a message.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error(Box::new(Detail { kind, message: message.into(), reason: None }))
    }

    /// [`ErrorKind::Evaluation`].
    pub fn evaluation(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Evaluation, message)
    }

    /// [`ErrorKind::InvalidArgument`].
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgument, message)
    }

    /// [`ErrorKind::Unsupported`].
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    /// [`ErrorKind::Timeout`]: a query that was to take so long, and to wait included, has not ended.
    pub fn time_limit(limit: Duration) -> Self {
        let message = format!(
            "the query did not end within its time limit of {} ms; ask for less, or raise the limit: the request's option \
             evaluationTimeout (milliseconds, up to the setting evaluation_timeout_max), or the setting evaluation_timeout",
            limit.as_millis()
        );
        Self::new(ErrorKind::Timeout, message)
    }

    /// [`ErrorKind::Conflict`].
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Conflict, message)
    }

    /// [`ErrorKind::Bug`].
    pub fn bug(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Bug, message)
    }

    /// The cause.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What the caller can do.
    pub fn remedy(&self) -> Remedy {
        self.0.kind.remedy()
    }

    /// The message.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Which of several reasons of its kind this error has, by a name for programs: why a transaction was aborted.
    pub fn reason(&self) -> Option<&'static str> {
        self.0.reason
    }

    /// The same error with a reason; see [`Error::reason`].
    #[must_use]
    pub fn because(mut self, reason: &'static str) -> Self {
        self.0.reason = Some(reason);
        self
    }

    /// The same error with another sentence at its end.
    #[must_use]
    pub fn and(mut self, sentence: impl fmt::Display) -> Self {
        self.0.message = format!("{}; {sentence}", self.0.message);
        self
    }

    /// The same error with the step that met it, in parentheses at its end.
    #[must_use]
    pub fn within(mut self, step: impl fmt::Display) -> Self {
        self.0.message = format!("{} (in the step `{step}`)", self.0.message);
        self
    }

    /// The same error with words in front that say where it was met.
    #[must_use]
    pub fn context(mut self, place: impl fmt::Display) -> Self {
        self.0.message = format!("{place}: {}", self.0.message);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Error {}

impl From<std::io::Error> for Error {
    fn from(e: std::io::Error) -> Self {
        Error::new(ErrorKind::Io, e.to_string())
    }
}
