//! Response messages of a WebSocket, in the encoding of the request.

use axum::body::Bytes;
use axum::extract::ws::Message;
use mangrove_graph::{Result, Value};
use mangrove_gremlin::Encoding;
use mangrove_gremlin::message::{ResponseData, ResponseHead};
use uuid::Uuid;

use super::batch::ResultBatch;
use crate::status::{Failure, Status};

/// The encoding of a WebSocket's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageFormat {
    /// The encoding.
    pub encoding: Encoding,
    /// True for text messages: a request in a text message is answered in text messages.
    pub is_text: bool,
}

impl MessageFormat {
    /// The format of the answer to a message of unknown format.
    pub const BINARY: MessageFormat = MessageFormat { encoding: Encoding::GraphBinary, is_text: false };
    /// The format of text messages.
    pub const TEXT: MessageFormat = MessageFormat { encoding: Encoding::JSON, is_text: true };
}

/// A response with results.
pub fn results(format: MessageFormat, request: Uuid, status: Status, batch: &ResultBatch) -> Result<Message, Failure> {
    let data = if status == Status::NO_CONTENT { ResponseData::Empty } else { batch.data() };
    response(format, Some(request), status, "", &[], data)
        .map_err(|error| Failure { status: Status::SERIALIZATION_ERROR, error })
}

/// A response for a request that is done and has no results.
pub fn done(format: MessageFormat, request: Uuid) -> Message {
    response(format, Some(request), Status::NO_CONTENT, "", &[], ResponseData::Empty)
        .expect("an empty response has nothing to refuse")
}

/// A response that asks the client to log in.
pub fn challenge(format: MessageFormat, request: Uuid) -> Message {
    response(format, Some(request), Status::AUTHENTICATE, "", &[], ResponseData::Empty)
        .expect("an empty response has nothing to refuse")
}

/// A response with a failure; without an id if that of the request could not be read.
pub fn failure(format: MessageFormat, request: Option<Uuid>, failure: &Failure) -> Message {
    let (message, attributes) = (failure.error.message(), failure.attributes());
    response(format, request, failure.status, message, &attributes, ResponseData::Empty)
        .or_else(|_| {
            response(
                format,
                request,
                failure.status,
                "the error's message is too long to send",
                &[],
                ResponseData::Empty,
            )
        })
        .expect("a short message without attributes has nothing to refuse")
}

fn response(
    format: MessageFormat,
    request_id: Option<Uuid>,
    status: Status,
    message: &str,
    attributes: &[(smol_str::SmolStr, Value)],
    data: ResponseData<'_>,
) -> Result<Message> {
    let head = ResponseHead { request_id, code: status.code(), message, attributes };
    let mut bytes = Vec::new();
    format.encoding.encode_response(head, data, &mut bytes)?;
    Ok(match format.is_text {
        true => Message::Text(String::from_utf8(bytes).expect("JSON is UTF-8").into()),
        false => Message::Binary(Bytes::from(bytes)),
    })
}
