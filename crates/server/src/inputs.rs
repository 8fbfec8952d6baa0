//! The decoders of everything that a client sends, for the fuzz targets in `fuzz/`.
//!
//! Each function but [`weight`] returns true if the server would accept the input. No request is run.

use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, HeaderValue};
use mangrove_gremlin::Encoding;
use uuid::Uuid;

use crate::access::users::Users;
use crate::answers::wire::MessageFormat;
use crate::http::query;
use crate::limits::Limits;
use crate::requests::protocol;

/// A message of a WebSocket.
pub fn message(bytes: &[u8], is_text: bool) -> bool {
    let message = protocol::RawMessage { bytes: Bytes::copy_from_slice(bytes), is_text };
    protocol::decode(&message, &Limits::default()).is_ok()
}

/// The body of a `POST`, in the encoding that the server would assume.
pub fn http_body(content_type: Option<&str>, body: &[u8]) -> bool {
    let encoding = content_type.and_then(Encoding::from_media_type).unwrap_or(Encoding::JSON);
    let request = query::from_bytes(encoding, body, Uuid::nil());
    request.is_ok_and(|request| is_call(&request))
}

/// The query string of a `GET`.
pub fn http_query(query: &str) -> bool {
    query::from_parameters(query).is_ok_and(|request| is_call(&request))
}

/// The value of the header `Accept`.
pub fn http_accept(value: &[u8]) -> bool {
    let Ok(value) = HeaderValue::from_bytes(value) else { return false };
    query::accepted(&HeaderMap::from_iter([(ACCEPT, value)])).is_ok()
}

/// The text of a users file.
pub fn users(text: &str) -> bool {
    let Ok(users) = Users::parse(text) else { return false };
    users.iter().all(|(name, _)| users.get(name).is_some())
}

/// The estimated size of a result, in bytes.
pub fn weight(value: &mangrove_graph::Value) -> u64 {
    crate::memory::weight::weight(value)
}

fn is_call(request: &mangrove_gremlin::message::Request) -> bool {
    let format = MessageFormat { encoding: Encoding::JSON, is_text: false };
    protocol::call(request, format, &Limits::default()).is_ok()
}
