//! What clients send, decoded as the server does it, for who shows the decoders anything (`fuzz/`).
//!
//! Nothing is run: an answer only says whether the input would have been.

use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, HeaderValue};
use mangrove_gremlin::Encoding;
use uuid::Uuid;

use crate::config::Limits;
use crate::http_query;
use crate::protocol;
use crate::users::Users;
use crate::wire::Format;

/// A message of a WebSocket.
pub fn message(bytes: &[u8], is_text: bool) -> bool {
    let message = protocol::RawMessage { bytes: Bytes::copy_from_slice(bytes), is_text };
    protocol::decode(&message, &Limits::default()).is_ok()
}

/// The body of a `POST`, in the encoding that the server takes it to be in.
pub fn http_body(content_type: Option<&str>, body: &[u8]) -> bool {
    let encoding = content_type.and_then(Encoding::from_media_type).unwrap_or(Encoding::JSON);
    let request = http_query::from_bytes(encoding, body, Uuid::nil());
    request.is_ok_and(|request| is_call(&request))
}

/// The part of a `GET`'s path behind the question mark.
pub fn http_query(query: &str) -> bool {
    http_query::from_parameters(query).is_ok_and(|request| is_call(&request))
}

/// The header `Accept`.
pub fn http_accept(value: &[u8]) -> bool {
    let Ok(value) = HeaderValue::from_bytes(value) else { return false };
    http_query::accepted(&HeaderMap::from_iter([(ACCEPT, value)])).is_ok()
}

/// A list of users.
pub fn users(text: &str) -> bool {
    let Ok(users) = Users::parse(text) else { return false };
    users.iter().all(|(name, _)| users.get(name).is_some())
}

/// What a result weighs before it is sent.
pub fn weight(value: &mangrove_graph::Value) -> u64 {
    crate::weight::weight(value)
}

fn is_call(request: &mangrove_gremlin::message::Request) -> bool {
    let format = Format { encoding: Encoding::JSON, is_text: false };
    protocol::call(request, format, &Limits::default()).is_ok()
}
