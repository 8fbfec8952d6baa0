//! How answers are written: GraphBinary 1 in binary messages.
//!
//! A client that speaks something else is told so in the one other form there is, JSON in a text message.

use axum::body::Bytes;
use axum::extract::ws::Message;
use mangrove_graph::{Result, Value};
use mangrove_gremlin::graphbinary::{ResponseData, ResponseHead, encode_response};
use serde_json::json;
use uuid::Uuid;

use crate::status::{Failure, Status};

/// How results are written: scripts are answered with values, bytecode with traversers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Plain values, as often as they occur.
    Values,
    /// Values with their bulk.
    Traversers,
}

/// The results of one response message.
#[derive(Debug)]
pub enum Batch {
    /// For [`Form::Values`].
    Values(Vec<Value>),
    /// For [`Form::Traversers`].
    Traversers(Vec<(u64, Value)>),
}

impl Batch {
    /// An empty one.
    pub fn new(form: Form) -> Self {
        match form {
            Form::Values => Batch::Values(Vec::new()),
            Form::Traversers => Batch::Traversers(Vec::new()),
        }
    }

    /// How many results it has, bulk not counted.
    pub fn len(&self) -> usize {
        match self {
            Batch::Values(values) => values.len(),
            Batch::Traversers(traversers) => traversers.len(),
        }
    }

    /// Whether a result carries how many times it occurs.
    pub fn has_bulk(&self) -> bool {
        matches!(self, Batch::Traversers(_))
    }

    /// Adds a result; only a batch that has bulk keeps the second argument.
    pub fn push(&mut self, value: Value, bulk: u64) {
        match self {
            Batch::Values(values) => values.push(value),
            Batch::Traversers(traversers) => traversers.push((bulk, value)),
        }
    }

    /// Forgets them.
    pub fn clear(&mut self) {
        match self {
            Batch::Values(values) => values.clear(),
            Batch::Traversers(traversers) => traversers.clear(),
        }
    }

    fn data(&self) -> ResponseData<'_> {
        match self {
            Batch::Values(values) => ResponseData::Values(values),
            Batch::Traversers(traversers) => ResponseData::Traversers(traversers),
        }
    }
}

/// A response with results.
pub fn results(request: Uuid, status: Status, batch: &Batch) -> Result<Message, Failure> {
    let data = if status == Status::NO_CONTENT { ResponseData::Empty } else { batch.data() };
    response(Some(request), status, "", &[], data)
        .map_err(|error| Failure { status: Status::SERIALIZATION_ERROR, error })
}

/// A response without results: the request is done.
pub fn done(request: Uuid) -> Message {
    response(Some(request), Status::NO_CONTENT, "", &[], ResponseData::Empty)
        .expect("an empty response has nothing to refuse")
}

/// A response that says what is wrong; without an id where the request's could not be read.
pub fn failure(request: Option<Uuid>, failure: &Failure) -> Message {
    let (message, attributes) = (failure.error.message(), failure.attributes());
    response(request, failure.status, message, &attributes, ResponseData::Empty)
        .or_else(|_| {
            response(request, failure.status, "the error's message is too long to send", &[], ResponseData::Empty)
        })
        .expect("a short message without attributes has nothing to refuse")
}

fn response(
    request_id: Option<Uuid>,
    status: Status,
    message: &str,
    attributes: &[(smol_str::SmolStr, Value)],
    data: ResponseData<'_>,
) -> Result<Message> {
    let head = ResponseHead { request_id, code: status.code(), message, attributes };
    let mut bytes = Vec::new();
    encode_response(head, data, &mut bytes)?;
    Ok(Message::Binary(Bytes::from(bytes)))
}

/// The id of a request whose head is readable even if the rest is not: it follows the media type and the
/// version.
pub fn request_id(message: &[u8]) -> Option<Uuid> {
    let media_type_length = usize::from(*message.first()?);
    let start = 1 + media_type_length + 1;
    Uuid::from_slice(message.get(start..start + 16)?).ok()
}

/// The answer to a text message.
pub fn text_refusal() -> Message {
    let text = json!({
        "requestId": null,
        "status": {
            "code": Status::MALFORMED_REQUEST.code(),
            "message": "this server reads GraphBinary 1 in binary messages, the default of the Gremlin drivers, and no JSON",
            "attributes": {},
        },
        "result": { "data": null, "meta": {} },
    });
    Message::Text(text.to_string().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_is_read_from_a_broken_request() {
        let id = Uuid::from_u128(7);
        let message = [b"\x04text\x81".as_slice(), id.as_bytes(), b"noise"].concat();
        assert_eq!(request_id(&message), Some(id));
        for length in 0..message.len() {
            let whole = length >= message.len() - "noise".len();
            assert_eq!(request_id(&message[..length]).is_some(), whole, "{length}");
        }
    }
}
