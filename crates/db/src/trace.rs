//! The target of the spans inside a request (`parse`, `commit`). A span costs something only if a subscriber asks for
//! this target; the server's spans have the same one.

pub(crate) const TRACE_TARGET: &str = "mangrove_trace";
