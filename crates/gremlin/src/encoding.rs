//! The format of a message, chosen by its media type.
//!
//! | media type | format |
//! |---|---|
//! | `application/vnd.graphbinary-v1.0` | GraphBinary 1, the drivers' default |
//! | `application/vnd.graphbinary-v1.0-stringd` | the same with every result as text, for consoles |
//! | `application/vnd.gremlin-v3.0+json`, `application/json` | GraphSON 3 |
//! | `application/vnd.gremlin-v2.0+json` | GraphSON 2 |
//! | the last three with `;types=false` | the same without types in responses |

use mangrove_graph::{Error, Result, Value};
use uuid::Uuid;

use crate::graphson::{Dialect, Version};
use crate::message::{Request, ResponseData, ResponseHead};
use crate::text::Plain;
use crate::{graphbinary, graphson};

/// A format of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// GraphBinary 1.
    GraphBinary,
    /// GraphBinary 1 whose results are strings.
    GraphBinaryText,
    /// GraphSON.
    GraphSon(Dialect),
}

impl Encoding {
    /// GraphSON 3 with types, which is the encoding of `application/json` and of text messages.
    pub const JSON: Encoding = Encoding::GraphSon(Dialect { version: Version::V3, typed: true });

    const ALL: [(&'static str, Encoding); 7] = [
        ("application/vnd.graphbinary-v1.0", Encoding::GraphBinary),
        ("application/vnd.graphbinary-v1.0-stringd", Encoding::GraphBinaryText),
        ("application/vnd.gremlin-v3.0+json", Encoding::JSON),
        ("application/json", Encoding::JSON),
        ("application/vnd.gremlin-v2.0+json", Encoding::GraphSon(Dialect { version: Version::V2, typed: true })),
        (
            "application/vnd.gremlin-v3.0+json;types=false",
            Encoding::GraphSon(Dialect { version: Version::V3, typed: false }),
        ),
        (
            "application/vnd.gremlin-v2.0+json;types=false",
            Encoding::GraphSon(Dialect { version: Version::V2, typed: false }),
        ),
    ];

    /// The format of a media type. Case, blanks and parameters other than `types` do not matter.
    pub fn from_media_type(media_type: &str) -> Option<Encoding> {
        let mut parts = media_type.split(';').map(str::trim);
        let name = parts.next()?;
        let (_, encoding) = Encoding::ALL.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
        let untyped = parts.any(|parameter| parameter.replace(' ', "").eq_ignore_ascii_case("types=false"));
        Some(match encoding {
            Encoding::GraphSon(dialect) if untyped => Encoding::GraphSon(Dialect { typed: false, ..*dialect }),
            encoding => *encoding,
        })
    }

    /// The media type of the format.
    pub fn media_type(self) -> &'static str {
        let known = Encoding::ALL.iter().find(|(_, encoding)| *encoding == self);
        known.map(|(name, _)| *name).expect("every encoding has its media type in the table")
    }

    /// Returns true if its messages are text.
    pub fn is_json(self) -> bool {
        matches!(self, Encoding::GraphSon(_))
    }

    /// The known media types, for error messages.
    pub fn media_types() -> String {
        Encoding::ALL.map(|(name, _)| name).join(", ")
    }

    /// The request in a message, which begins after the media type.
    pub fn decode_request(self, message: &[u8]) -> Result<Request> {
        match self {
            Encoding::GraphBinary | Encoding::GraphBinaryText => graphbinary::decode_request(message),
            Encoding::GraphSon(_) => graphson::decode_request(message),
        }
    }

    /// The id of a request that could not be read as a whole, if at least the id can be read.
    pub fn request_id(self, message: &[u8]) -> Option<Uuid> {
        match self {
            Encoding::GraphBinary | Encoding::GraphBinaryText => Uuid::from_slice(message.get(1..17)?).ok(),
            Encoding::GraphSon(_) => graphson::request_id(message),
        }
    }

    /// Appends a response. If it contains a value that the format cannot hold, the buffer stays as it was (WIRE-5).
    pub fn encode_response(self, head: ResponseHead<'_>, data: ResponseData<'_>, out: &mut Vec<u8>) -> Result<()> {
        match self {
            Encoding::GraphBinary => graphbinary::encode_response(head, data, out),
            Encoding::GraphBinaryText => as_texts(data, |texts| graphbinary::encode_response(head, texts, out)),
            Encoding::GraphSon(dialect) => graphson::encode_response(dialect, head, data, out),
        }
    }
}

/// Calls `with` with the results as [`Encoding::GraphBinaryText`] sends them: each as text.
pub fn as_texts<R>(data: ResponseData<'_>, with: impl FnOnce(ResponseData<'_>) -> R) -> R {
    let text = |value: &Value| Value::from(Plain(value).to_string());
    match data {
        ResponseData::Empty => with(data),
        ResponseData::Values(values) => {
            let texts: Vec<Value> = values.iter().map(text).collect();
            with(ResponseData::Values(&texts))
        }
        ResponseData::Traversers(traversers) => {
            let texts: Vec<_> = traversers.iter().map(|(bulk, value)| (*bulk, text(value))).collect();
            with(ResponseData::Traversers(&texts))
        }
    }
}

/// Splits a binary WebSocket frame into its format and its message. The frame is the length of the media type in one
/// byte, the media type, and the message.
pub fn split_frame(frame: &[u8]) -> Result<(Encoding, &[u8])> {
    let (length, rest) = frame.split_first().ok_or_else(|| Error::invalid("the message is empty"))?;
    let Some((media_type, message)) = rest.split_at_checked(usize::from(*length)) else {
        return Err(Error::invalid(format!(
            "the message's first byte says that {length} bytes of media type follow, and there are {}",
            rest.len()
        )));
    };
    let encoding = std::str::from_utf8(media_type).ok().and_then(Encoding::from_media_type);
    let encoding = encoding.ok_or_else(|| {
        Error::unsupported(format!(
            "the request is in `{}`; what is read is {}",
            String::from_utf8_lossy(media_type).escape_debug(),
            Encoding::media_types()
        ))
    })?;
    Ok((encoding, message))
}

/// The request in a binary WebSocket frame that must be GraphBinary, for clients and tests that know no other format.
pub fn decode_graphbinary_frame(frame: &[u8]) -> Result<Request> {
    match split_frame(frame)? {
        (Encoding::GraphBinary | Encoding::GraphBinaryText, message) => graphbinary::decode_request(message),
        (other, _) => Err(Error::unsupported(format!(
            "the request is in `{}`; this decoder reads `{}`",
            other.media_type(),
            graphbinary::MIME_TYPE
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_are_known_however_they_are_spelled() {
        for (_, encoding) in Encoding::ALL {
            assert_eq!(Encoding::from_media_type(encoding.media_type()), Some(encoding));
        }
        let untyped = Encoding::GraphSon(Dialect { version: Version::V3, typed: false });
        assert_eq!(Encoding::from_media_type("Application/JSON; charset=utf-8 ; types = false"), Some(untyped));
        assert_eq!(Encoding::from_media_type("application/json;types=true"), Some(Encoding::JSON));
        assert_eq!(Encoding::from_media_type("text/html"), None);
    }

    #[test]
    fn a_frame_that_is_cut_is_refused() {
        assert_eq!(split_frame(b"\x10application/jsonX").unwrap(), (Encoding::JSON, b"X".as_slice()));
        assert!(split_frame(b"").unwrap_err().message().contains("empty"));
        assert!(split_frame(b"\x10appl").unwrap_err().message().contains("there are 4"));
        assert!(split_frame(b"\x04text").unwrap_err().message().contains("`text`"));
    }
}
