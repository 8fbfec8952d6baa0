//! The spans of a request, for logs and traces.
//!
//! Every request is a span `request` with its id, operation and user, so that each line of the log that is about it says
//! which it was. Within it, and only where somebody asks for [`TARGET`] (a collector of traces, or a log filter), are spans
//! for what becomes of it: `parse`, `plan`, `execute`, `commit`.
//!
//! An HTTP request may say that it is part of a trace, by the header `traceparent` as W3C has it. It is passed on as a field
//! of the span, word for word, and where traces go to a collector (the feature `otel`) the span is a child of the one it
//! names. The fields whose names begin with `otel` are what the collector's crates look for.

use axum::http::HeaderMap;
use tracing::{Span, field};
use uuid::Uuid;

use crate::access::Caller;

/// The target of the spans inside a request.
pub const TARGET: &str = "mangrove_trace";

/// The span of a request.
pub const REQUEST: &str = "request";

/// The header, and the field of the span, that names a trace.
const TRACEPARENT: &str = "traceparent";

/// What a collector is told of a request's span: that it answers somebody else's. Logs are not to have that in every line.
const KIND: Option<&str> = if cfg!(feature = "otel") { Some("server") } else { None };

/// The first status of a request that failed.
const ERROR_MIN: u16 = 400;

/// The longest value of the header that makes sense: a version, two ids and flags.
const TRACEPARENT_BYTES_MAX: usize = 55;

/// A span for a request.
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

/// Notes how a request ended.
pub fn ended(span: &Span, status: u16) {
    // Signed: OpenTelemetry has no other integers, and would be given a text.
    span.record("status", i64::from(status));
    if cfg!(feature = "otel") && status >= ERROR_MIN {
        span.record("otel.status_code", "ERROR");
    }
}

/// Makes a request part of the trace it says it is part of. To be called before anything happens in its span.
pub fn join(span: &Span, parent: &str) {
    span.record(TRACEPARENT, parent);
    #[cfg(feature = "otel")]
    {
        use tracing_opentelemetry::OpenTelemetrySpanExt;
        let carrier = std::collections::HashMap::from([(TRACEPARENT.to_owned(), parent.to_owned())]);
        let context = opentelemetry::global::get_text_map_propagator(|propagator| propagator.extract(&carrier));
        // It fails where nobody collects traces.
        let _ = span.set_parent(context);
    }
}

/// The trace that a request of HTTP says it is part of.
pub fn parent(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(TRACEPARENT)?.to_str().ok()?;
    (text.len() == TRACEPARENT_BYTES_MAX).then(|| text.to_owned())
}
