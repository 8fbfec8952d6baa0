//! Tracing spans of a request, for logs and for collectors of traces.
//!
//! Every request is a span `request` with its id, operation and user, so that each log line about it names it. Inside
//! are the spans `parse`, `plan`, `execute` and `commit`, but only if a collector or a log filter asks for [`TARGET`].
//!
//! An HTTP request may belong to a trace, by the W3C header `traceparent`. The server copies the header's value into a
//! field of the span. With the feature `otel` the span also becomes a child of the span that the header names. Fields
//! named `otel.…` are the ones that the crates of OpenTelemetry look for.

use axum::http::HeaderMap;
use tracing::{Span, field};
use uuid::Uuid;

use crate::access::caller::Caller;

/// The target of the spans inside a request.
pub const TARGET: &str = "mangrove_trace";

/// The name of a request's span.
pub const REQUEST: &str = "request";

/// The header, and the field of the span, that names a trace.
const TRACEPARENT: &str = "traceparent";

/// The kind of a request's span, for a collector: it serves a client's request. Logs do without the field.
const KIND: Option<&str> = if cfg!(feature = "otel") { Some("server") } else { None };

/// The first status of a request that failed.
const ERROR_MIN: u16 = 400;

/// The longest value of the header that makes sense: a version, two ids and flags.
const TRACEPARENT_BYTES_MAX: usize = 55;

/// Makes the span of a request.
pub fn request(id: Uuid, operation: &'static str, caller: &Caller) -> Span {
    let user = caller.name();
    tracing::info_span!(
        "request",
        otel.kind = KIND,
        %id,
        op = operation,
        user,
        traceparent = field::Empty,
        status = field::Empty,
        otel.status_code = field::Empty,
    )
}

/// Records how a request ended.
pub fn ended(span: &Span, status: u16) {
    // OpenTelemetry has signed integers only; an unsigned one would become a text.
    span.record("status", i64::from(status));
    if cfg!(feature = "otel") && status >= ERROR_MIN {
        span.record("otel.status_code", "ERROR");
    }
}

/// Makes a request part of the trace that `parent` names. The caller does this before any event in the span.
pub fn join(span: &Span, parent: &str) {
    span.record(TRACEPARENT, parent);
    #[cfg(feature = "otel")]
    {
        use tracing_opentelemetry::OpenTelemetrySpanExt;
        let carrier = std::collections::HashMap::from([(TRACEPARENT.to_owned(), parent.to_owned())]);
        let context = opentelemetry::global::get_text_map_propagator(|propagator| propagator.extract(&carrier));
        // It fails if no collector is installed, which is no error here.
        let _ = span.set_parent(context);
    }
}

/// The value of `traceparent` of an HTTP request.
pub fn parent(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(TRACEPARENT)?.to_str().ok()?;
    (text.len() == TRACEPARENT_BYTES_MAX).then(|| text.to_owned())
}
