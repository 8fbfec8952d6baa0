//! The `tracing` target of the spans inside a request (`parse`, `commit`). The spans of the server have the same
//! target. A span costs time only if a subscriber has enabled the target.

pub(crate) const TRACE_TARGET: &str = "mangrove_trace";
