//! What an error of the client says about a request.

use std::error::Error;

use object_store::client::{HttpError, HttpErrorKind};

use super::super::{HomeError, HomeErrorKind};

/// How a request failed, as far as the client can tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cause {
    /// The store answered with this status of HTTP.
    Status(u16),
    /// There was no connection, so the request was not sent.
    NotConnected,
    /// The connection failed, or the answer took too long.
    Interrupted,
    /// Anything else.
    Other,
}

/// What the request was to do. It decides what a failure leaves unknown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    /// Reads change nothing, whatever happens to them.
    Read,
    /// Sent once.
    PutOnce,
    /// Repeated by the client, so that the last failure says nothing about the attempts before it.
    Repeated,
}

/// The cause of an error.
pub(super) fn cause(error: &object_store::Error) -> Cause {
    use object_store::Error::{AlreadyExists, NotFound, PermissionDenied, Precondition, Unauthenticated};
    match error {
        Unauthenticated { .. } => return Cause::Status(401),
        PermissionDenied { .. } => return Cause::Status(403),
        NotFound { .. } => return Cause::Status(404),
        AlreadyExists { .. } => return Cause::Status(409),
        Precondition { .. } => return Cause::Status(412),
        _ => {}
    }
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(http) = error.downcast_ref::<HttpError>() {
            return match http.kind() {
                HttpErrorKind::Connect => Cause::NotConnected,
                _ => Cause::Interrupted,
            };
        }
        next = error.source();
    }
    status(&error.to_string()).map_or(Cause::Other, Cause::Status)
}

/// Returns true if the store says that there is no object of that name. Stores also answer 404 for a bucket or a user
/// that is missing, and tell which in the body. The answer to a `HEAD` has no body, so it is no evidence.
pub(super) fn is_absent(error: &object_store::Error) -> bool {
    cause(error) == Cause::Status(404)
        && element(&error.to_string(), "Code").is_none_or(|code| matches!(&*code, "NoSuchKey" | "NoSuchVersion"))
}

/// The error for a caller. `object` names bucket, key and endpoint.
pub(super) fn failure(error: &object_store::Error, purpose: Purpose, verb: &str, object: &str) -> HomeError {
    let cause = cause(error);
    let is_final = |status| matches!(status, 400..=499) && !matches!(status, 408 | 409 | 425 | 429);
    let kind = match (cause, purpose) {
        (Cause::Status(status), _) if is_final(status) => HomeErrorKind::Refused,
        (_, Purpose::Read) | (Cause::NotConnected, Purpose::PutOnce) => HomeErrorKind::Unavailable,
        // Servers and what stands before them also report failures of requests that they have carried out.
        _ => HomeErrorKind::Unknown,
    };
    let way_out = match cause {
        _ if element(&error.to_string(), "Code").is_some_and(|code| code == "NoSuchBucket") => {
            "make the bucket, or name another one"
        }
        Cause::Status(401 | 403) => {
            "check the access key, the secret key and the region, and whether they permit it in this bucket"
        }
        Cause::NotConnected => "check the endpoint, and whether the store runs",
        Cause::Status(status) if is_final(status) => "check the endpoint, the bucket and the access key",
        _ => "the store is busy or failing; try again later",
    };
    HomeError::new(kind, format!("cannot {verb} {object}: {}; {way_out}", shown(error)))
}

/// The status in the text of an error. The client's types do not show the status of every error.
fn status(text: &str) -> Option<u16> {
    let (_, rest) = text.split_once("status code: ")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The content of an element of the store's answer, which is XML.
fn element(text: &str, name: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    Some(rest.split_once("</")?.0.to_owned())
}

/// The text of an error: the code and the message of the store's answer if it has them, or the innermost cause.
fn shown(error: &object_store::Error) -> String {
    let text = error.to_string();
    if let Some(code) = element(&text, "Code") {
        return match element(&text, "Message") {
            Some(message) => format!("the store answers {code} ({})", message.trim_end_matches('.')),
            None => format!("the store answers {code}"),
        };
    }
    if let Some(status) = status(&text) {
        return format!("the store answers with status {status}");
    }
    let mut innermost: &dyn Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
