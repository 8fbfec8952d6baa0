//! Requests as clients send them, and responses as the project's own clients read them.

use mangrove_graph::Value;
use mangrove_gremlin::graphson::{Dialect, Version};
use mangrove_gremlin::message::{ResponseData, ResponseHead};
use mangrove_gremlin::text::Plain;
use mangrove_gremlin::{Encoding, graphbinary, graphson};
use mangrove_server::inputs;

/// Each format of GraphSON.
const DIALECTS: [Dialect; 4] = [
    Dialect { version: Version::V3, typed: true },
    Dialect { version: Version::V3, typed: false },
    Dialect { version: Version::V2, typed: true },
    Dialect { version: Version::V2, typed: false },
];

/// A value in GraphBinary. No format may panic at a decoded value, but a format may refuse it. If GraphBinary encodes
/// the value, the bytes must decode to an equal one.
pub fn graphbinary_value(bytes: &[u8]) -> bool {
    let Ok(value) = graphbinary::decode_value(bytes) else {
        return graphbinary::decode_argument(bytes).is_ok();
    };
    written_everywhere(&value);
    let mut once = Vec::new();
    if graphbinary::encode_value(&value, &mut once).is_ok() {
        let again = graphbinary::decode_value(&once).expect("what was written can be read");
        let mut twice = Vec::new();
        graphbinary::encode_value(&again, &mut twice).expect("what was written once can be written again");
        // Compared as bytes, because a NaN is not equal to itself.
        assert_eq!(once, twice, "{value:?} is read back as {again:?}");
    }
    true
}

/// A binary message of a WebSocket.
pub fn graphbinary_request(bytes: &[u8]) -> bool {
    let media_type = Some(Encoding::GraphBinary.media_type());
    let is_message = inputs::message(bytes, false);
    inputs::http_body(media_type, bytes) | is_message
}

/// A response, as the console and the benchmarks read it.
pub fn graphbinary_response(bytes: &[u8]) -> bool {
    graphbinary::decode_response(bytes).is_ok()
}

/// A value in GraphSON 2 or 3, with the same checks as [`graphbinary_value`].
pub fn graphson_value(bytes: &[u8]) -> bool {
    let Ok(value) = graphson::decode_value(bytes) else {
        return graphson::decode_argument(bytes).is_ok();
    };
    written_everywhere(&value);
    let (dialect, mut once) = (DIALECTS[0], Vec::new());
    if graphson::encode_value(dialect, &value, &mut once).is_ok() {
        let again = graphson::decode_value(&once);
        let again = again.unwrap_or_else(|error| panic!("{} cannot be read: {error}", String::from_utf8_lossy(&once)));
        let mut twice = Vec::new();
        graphson::encode_value(dialect, &again, &mut twice).expect("what was written once can be written again");
        assert_eq!(
            String::from_utf8_lossy(&once),
            String::from_utf8_lossy(&twice),
            "{value:?} is read back as {again:?}"
        );
    }
    true
}

/// A text message of a WebSocket, and the body of a `POST`.
pub fn graphson_request(bytes: &[u8]) -> bool {
    let is_message = inputs::message(bytes, true);
    inputs::http_body(None, bytes) | is_message
}

/// The query string of a `GET`.
pub fn http_query(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(inputs::http_query)
}

/// The header `Accept`.
pub fn http_accept(bytes: &[u8]) -> bool {
    inputs::http_accept(bytes)
}

/// Encodes a value in every format, as a result. A format may refuse the value, but must then write nothing.
pub fn written_everywhere(value: &Value) {
    let head = ResponseHead { request_id: None, code: 200, message: "", attributes: &[] };
    let values = std::slice::from_ref(value);
    inputs::weight(value);
    let json = DIALECTS.map(Encoding::GraphSon);
    let mut out = Vec::new();
    for encoding in json.into_iter().chain([Encoding::GraphBinary, Encoding::GraphBinaryText]) {
        out.clear();
        let written = encoding.encode_response(head, ResponseData::Values(values), &mut out);
        assert!(written.is_ok() || out.is_empty(), "a value that was refused left {} bytes", out.len());
    }
    // Printing a value must not panic. The condition only uses the text.
    std::hint::black_box(Plain(value).to_string());
}
