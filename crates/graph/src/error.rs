//! The error type that the public functions of all crates return.
//!
//! An [`ErrorKind`] names the cause. Each kind has one [`Remedy`]: the action that can help the caller. The message is
//! one or two sentences: what was wrong, where, and the way out. Messages may change at any time. Clients and status
//! codes depend on kinds and remedies, so adding one is a design decision.

use std::fmt;
use std::time::Duration;

/// The result type of all crates.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The action of a caller that can help after an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Remedy {
    /// Another transaction won: run the transaction again.
    RetryTransaction,
    /// A limit was reached or a service is unreachable: run the request again later, or with a higher limit.
    RetryLater,
    /// The request is wrong and would fail again: change it.
    FixRequest,
    /// The handle was closed: open another one.
    Reopen,
    /// The request may have been carried out: look before sending it again.
    CheckOutcome,
    /// The request has been carried out: do not send it again.
    DoNotRepeat,
    /// Stored bytes contradict their checksum or format: restore a backup.
    RestoreData,
    /// Mangrove has a bug: report it.
    ReportBug,
}

/// The cause of an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A script or a message cannot be parsed.
    Syntax,
    /// An unknown step, source, strategy or argument, or one in the wrong position.
    Unsupported,
    /// A value in a request has the wrong type or is out of range.
    InvalidArgument,
    /// A step failed while the query ran: an object of the wrong kind, arithmetic overflow and so on.
    Evaluation,
    /// An element with the id exists already.
    DuplicateId,
    /// An element that is needed does not exist.
    NotFound,
    /// The user does not have the right that the request needs.
    Forbidden,
    /// Another transaction changed what this one read or writes.
    Conflict,
    /// The transaction was open longer than snapshots are kept.
    Expired,
    /// The query ran longer than its time limit.
    Timeout,
    /// The query or the process needs more memory than its limit.
    MemoryLimit,
    /// The query was cancelled.
    Cancelled,
    /// The transaction, session or database is closed.
    Closed,
    /// A file or a connection failed.
    Io,
    /// The database takes no writes now: its disk is full, read-only, or has failed.
    ReadOnly,
    /// The connection or the log failed during a commit: the transaction may be committed or not.
    OutcomeUnknown,
    /// The request failed after it had committed a transaction, or its results could not be delivered. The commit
    /// stays, so the client must not send the same request again.
    Committed,
    /// A file of the database is damaged, or was written by a version that this one does not know.
    Damaged,
    /// A condition that the code relies on does not hold.
    Bug,
}

impl ErrorKind {
    /// The action of a caller that can help after an error of this kind.
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

/// An error: its kind and a message that a user can act on. It is one pointer wide, so results stay small.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<ErrorDetail>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct ErrorDetail {
    kind: ErrorKind,
    message: String,
    reason: Option<&'static str>,
}

impl Error {
    /// An error of a kind with a message, and without a [reason](Error::reason).
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error(Box::new(ErrorDetail { kind, message: message.into(), reason: None }))
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

    /// [`ErrorKind::Timeout`]: a query did not end within its time limit, which includes the time that it waited.
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

    /// The action of the caller that can help.
    pub fn remedy(&self) -> Remedy {
        self.0.kind.remedy()
    }

    /// The message.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// A name for programs that tells errors of one kind apart, such as why a transaction was aborted.
    pub fn reason(&self) -> Option<&'static str> {
        self.0.reason
    }

    /// The same error with a [reason](Error::reason).
    #[must_use]
    pub fn because(mut self, reason: &'static str) -> Self {
        self.0.reason = Some(reason);
        self
    }

    /// The same error with a further clause after its message, separated by a semicolon.
    #[must_use]
    pub fn and(mut self, sentence: impl fmt::Display) -> Self {
        self.0.message = format!("{}; {sentence}", self.0.message);
        self
    }

    /// The same error with the step that failed, in parentheses after its message.
    #[must_use]
    pub fn within(mut self, step: impl fmt::Display) -> Self {
        self.0.message = format!("{} (in the step `{step}`)", self.0.message);
        self
    }

    /// The same error with `place`, which says where it happened, and a colon before its message.
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
