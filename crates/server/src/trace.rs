//! The spans of a request, for logs and traces.
//!
//! Every request is a span `request` with its id, operation and user, so that each line of the log that is about it says
//! which it was. Within it, and only where somebody asks for [`TARGET`] (a collector of traces, or a log filter), are spans
//! for what becomes of it: `parse`, `plan`, `execute`, `commit`.
//!
//! An HTTP request may say that it is part of a trace, by the header `traceparent` as W3C has it. It is passed on as a field
//! of the span, word for word: whoever collects traces decides what to make of it.

use axum::http::HeaderMap;
use tracing::{Span, field};
use uuid::Uuid;

use crate::access::Caller;

/// The target of the spans inside a request.
pub const TARGET: &str = "mangrove_trace";

/// The span of a request, and the field that says which trace it is part of.
pub const REQUEST: &str = "request";

/// The header, and the field of the span, that names a trace.
pub const TRACEPARENT: &str = "traceparent";

/// The longest value of the header that makes sense: a version, two ids and flags.
const TRACEPARENT_BYTES_MAX: usize = 55;

/// A span for a request.
pub fn request(id: Uuid, operation: &'static str, caller: &Caller) -> Span {
    let user = caller.name();
    tracing::info_span!("request", %id, op = operation, user, traceparent = field::Empty, status = field::Empty)
}

/// The trace that a request of HTTP says it is part of.
pub fn parent(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(TRACEPARENT)?.to_str().ok()?;
    (text.len() == TRACEPARENT_BYTES_MAX).then(|| text.to_owned())
}
