//! Response status codes of the Gremlin Server protocol, and the code for each kind of error.
//!
//! The codes are TinkerPop's. Two of them concern the request itself and are chosen where it is decoded: 498 for a
//! malformed frame or operation, and 499 for wrong arguments, an unknown traversal source included. An error of a
//! running query is mapped here by its kind alone. Its message goes to the client word for word.

use mangrove_graph::{Error, ErrorKind, Value};
use smol_str::SmolStr;

/// A status code of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(u16);

impl Status {
    /// The last results.
    pub const SUCCESS: Status = Status(200);
    /// Done, and there are no results.
    pub const NO_CONTENT: Status = Status(204);
    /// Some results; more follow.
    pub const PARTIAL_CONTENT: Status = Status(206);
    /// The message is no request of this protocol.
    pub const MALFORMED_REQUEST: Status = Status(498);
    /// The request's arguments are wrong.
    pub const INVALID_ARGUMENTS: Status = Status(499);
    /// The outcome of a commit is unknown, because the disk failed or the connection was lost during it. TinkerPop has
    /// no code for this case. A client that does not know the code reads it as a server error, which it is.
    pub const OUTCOME_UNKNOWN: Status = Status(505);
    /// The client has not logged in, or its login failed.
    pub const UNAUTHORIZED: Status = Status(401);
    /// The caller lacks the right.
    pub const FORBIDDEN: Status = Status(403);
    /// The client must log in, by the operation `authentication`.
    pub const AUTHENTICATE: Status = Status(407);
    /// The database is read-only now.
    pub const UNAVAILABLE: Status = Status(503);
    /// The server failed.
    pub const SERVER_ERROR: Status = Status(500);
    /// The query conflicted with another transaction and may succeed when the client sends it again.
    pub const TEMPORARY_ERROR: Status = Status(596);
    /// The query failed.
    pub const EVALUATION_ERROR: Status = Status(597);
    /// The query ran out of time or was cancelled.
    pub const TIMEOUT: Status = Status(598);
    /// A result could not be encoded.
    pub const SERIALIZATION_ERROR: Status = Status(599);

    /// The code.
    pub fn code(self) -> u16 {
        self.0
    }

    /// The status for an error of a running query.
    pub fn of(kind: ErrorKind) -> Status {
        match kind {
            ErrorKind::Syntax
            | ErrorKind::Unsupported
            | ErrorKind::InvalidArgument
            | ErrorKind::Evaluation
            | ErrorKind::DuplicateId
            | ErrorKind::NotFound
            | ErrorKind::MemoryLimit
            | ErrorKind::Committed
            | ErrorKind::Closed => Status::EVALUATION_ERROR,
            ErrorKind::Forbidden => Status::FORBIDDEN,
            ErrorKind::Conflict => Status::TEMPORARY_ERROR,
            ErrorKind::Timeout | ErrorKind::Cancelled | ErrorKind::Expired => Status::TIMEOUT,
            ErrorKind::ReadOnly => Status::UNAVAILABLE,
            ErrorKind::OutcomeUnknown => Status::OUTCOME_UNKNOWN,
            _ => Status::SERVER_ERROR,
        }
    }
}

/// The failure of a request, as its answer reports it.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The status.
    pub status: Status,
    /// The kind and the message.
    pub error: Error,
}

impl Failure {
    /// A failure with status 498.
    pub fn malformed(message: impl Into<String>) -> Self {
        Failure { status: Status::MALFORMED_REQUEST, error: Error::new(ErrorKind::Syntax, message) }
    }

    /// A failure with status 499.
    pub fn invalid(message: impl Into<String>) -> Self {
        Failure { status: Status::INVALID_ARGUMENTS, error: Error::invalid(message) }
    }

    /// The status code of an outcome, for metrics.
    pub fn code_of(outcome: &Result<(), Failure>) -> u16 {
        outcome.as_ref().map_or_else(|failure| failure.status.code(), |()| Status::SUCCESS.code())
    }

    /// A failure with status 401.
    pub fn unauthorized(message: impl Into<String>) -> Self {
        Failure { status: Status::UNAUTHORIZED, error: Error::new(ErrorKind::Forbidden, message) }
    }

    /// The status attributes that drivers read: `exceptions`, the kinds of error from the nearest cause outwards, and
    /// `stackTrace`, for people. Neither exposes internals of the server. An error kind with several reasons also has
    /// `reason`: after a conflict, the name under which `mangrove.transactions` counts the abort.
    pub fn attributes(&self) -> Vec<(SmolStr, Value)> {
        let kind = format!("mangrove.{:?}", self.error.kind());
        let trace = format!("{kind}: {}", self.error.message());
        let mut attributes = vec![
            (SmolStr::new_static("exceptions"), Value::list(vec![Value::from(kind)])),
            (SmolStr::new_static("stackTrace"), Value::from(trace)),
        ];
        attributes.extend(self.error.reason().map(|name| (SmolStr::new_static("reason"), Value::from(name))));
        attributes
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure { status: Status::of(error.kind()), error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_aborted_transactions_client_learns_the_reason() {
        let failure = Failure::from(Error::conflict("another was first").because("write_conflict").context("g.V()"));
        assert_eq!(failure.attributes()[2], (SmolStr::new_static("reason"), Value::from("write_conflict")));
        assert_eq!(Failure::from(Error::evaluation("no")).attributes().len(), 2);
    }

    #[test]
    fn what_the_caller_can_retry_has_a_status_of_its_own() {
        assert_eq!(Status::of(ErrorKind::Conflict).code(), 596);
        assert_eq!(Status::of(ErrorKind::Timeout).code(), 598);
        assert_eq!(Status::of(ErrorKind::Evaluation).code(), 597);
        assert_eq!(Status::of(ErrorKind::Bug).code(), 500);
        assert_eq!(Status::of(ErrorKind::ReadOnly).code(), 503);
        assert_eq!(Status::of(ErrorKind::OutcomeUnknown).code(), 505);
        // Not a code that drivers take for a conflict, after which they would send the request again.
        assert_eq!(Status::of(ErrorKind::Committed).code(), 597);
    }
}
