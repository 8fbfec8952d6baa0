//! How answers are written: in the encoding of the request, in messages of a WebSocket or pieces of an HTTP body.

use axum::body::Bytes;
use axum::extract::ws::Message;
use mangrove_graph::{Draw, Result, Value};
use mangrove_gremlin::Encoding;
use mangrove_gremlin::message::{ResponseData, ResponseHead};
use uuid::Uuid;

use crate::budget;
use crate::http_answer::{HttpAnswer, Piece};
use crate::outgoing::{Letter, Outgoing};
use crate::status::{Failure, Status};
use crate::weight::weight;

/// How the messages of a WebSocket are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// The encoding.
    pub encoding: Encoding,
    /// Whether in text messages: who asks in one reads one.
    pub is_text: bool,
}

impl Format {
    /// What a client is answered in whose message does not say what it is.
    pub const BINARY: Format = Format { encoding: Encoding::GraphBinary, is_text: false };
    /// What text messages are.
    pub const TEXT: Format = Format { encoding: Encoding::JSON, is_text: true };
}

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

    /// About how many bytes they take.
    pub fn weight(&self) -> u64 {
        match self {
            Batch::Values(values) => values.iter().map(weight).fold(0, u64::saturating_add),
            Batch::Traversers(traversers) => {
                traversers.iter().map(|(_, value)| weight(value)).fold(0, u64::saturating_add)
            }
        }
    }

    /// Forgets them.
    pub fn clear(&mut self) {
        match self {
            Batch::Values(values) => values.clear(),
            Batch::Traversers(traversers) => traversers.clear(),
        }
    }

    /// As the encodings take it.
    pub fn data(&self) -> ResponseData<'_> {
        match self {
            Batch::Values(values) => ResponseData::Values(values),
            Batch::Traversers(traversers) => ResponseData::Traversers(traversers),
        }
    }
}

/// Where results go, and how they are written there.
#[derive(Debug)]
pub enum Carrier {
    /// Messages of a WebSocket, each a response of its own.
    Socket {
        /// The request's id.
        request: Uuid,
        /// How messages are written.
        format: Format,
        /// The connection's queue.
        outgoing: Outgoing,
    },
    /// The body of an HTTP answer.
    Http(Box<HttpAnswer>),
}

/// What a carrier sends at once.
#[derive(Debug)]
pub enum Parcel {
    /// A message of a WebSocket.
    Message(Letter),
    /// A piece of a body.
    Piece(Piece),
}

impl Parcel {
    /// How many bytes of results it has.
    pub fn byte_count(&self) -> u64 {
        let bytes = match self {
            Parcel::Message(Letter { message, .. }) => match message {
                Message::Text(text) => text.len(),
                Message::Binary(bytes) => bytes.len(),
                Message::Ping(_) | Message::Pong(_) | Message::Close(_) => 0,
            },
            Parcel::Piece(Piece::More(bytes) | Piece::Last(bytes)) => bytes.len(),
            Parcel::Piece(Piece::Failed(_)) => 0,
        };
        bytes as u64
    }

    /// The same, which takes so much of the memory budget until the client has it.
    pub fn drawing(self, draw: Draw) -> Parcel {
        match self {
            Parcel::Message(Letter { message, .. }) => Parcel::Message(Letter { message, draw: Some(draw) }),
            Parcel::Piece(Piece::More(bytes)) => Parcel::Piece(Piece::More(budget::counted(bytes, draw))),
            Parcel::Piece(Piece::Last(bytes)) => Parcel::Piece(Piece::Last(budget::counted(bytes, draw))),
            failed @ Parcel::Piece(Piece::Failed(_)) => failed,
        }
    }
}

impl Carrier {
    /// A batch ready to be sent; `None` if nothing is to be sent yet. [`Status::PARTIAL_CONTENT`] says that more
    /// will follow.
    pub fn pack(&mut self, status: Status, batch: &Batch) -> Result<Option<Parcel>, Failure> {
        match self {
            Carrier::Socket { request, format, .. } => {
                results(*format, *request, status, batch).map(|message| Some(Parcel::Message(message.into())))
            }
            Carrier::Http(answer) => Ok(answer.pack(status, batch)?.map(Parcel::Piece)),
        }
    }

    /// Forgets batches that were packed and not sent.
    pub fn reset(&mut self) {
        if let Carrier::Http(answer) = self {
            answer.reset();
        }
    }

    /// Writes it on this thread, if that can be done at once. Else it is handed back, to be sent.
    pub fn write_now(&self, parcel: Parcel) -> Result<(), Parcel> {
        match (self, parcel) {
            (Carrier::Socket { outgoing, .. }, Parcel::Message(letter)) => {
                outgoing.write_now(letter).map_err(Parcel::Message)
            }
            (_, parcel) => Err(parcel),
        }
    }

    /// Sends it when there is room. An error if nobody is there.
    pub async fn send(&self, parcel: Parcel) -> Result<(), Gone> {
        match (self, parcel) {
            (Carrier::Socket { outgoing, .. }, Parcel::Message(letter)) => outgoing.send(letter).await,
            (Carrier::Http(answer), Parcel::Piece(piece)) => answer.send(piece).await,
            // Each carrier is handed back what it packed.
            (Carrier::Socket { .. }, Parcel::Piece(_)) | (Carrier::Http(_), Parcel::Message(_)) => Err(Gone),
        }
    }
}

/// The client has gone away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

/// A response with results.
fn results(format: Format, request: Uuid, status: Status, batch: &Batch) -> Result<Message, Failure> {
    let data = if status == Status::NO_CONTENT { ResponseData::Empty } else { batch.data() };
    response(format, Some(request), status, "", &[], data)
        .map_err(|error| Failure { status: Status::SERIALIZATION_ERROR, error })
}

/// A response without results: the request is done.
pub fn done(format: Format, request: Uuid) -> Message {
    response(format, Some(request), Status::NO_CONTENT, "", &[], ResponseData::Empty)
        .expect("an empty response has nothing to refuse")
}

/// A response that asks the client to prove who it is.
pub fn challenge(format: Format, request: Uuid) -> Message {
    response(format, Some(request), Status::AUTHENTICATE, "", &[], ResponseData::Empty)
        .expect("an empty response has nothing to refuse")
}

/// A response that says what is wrong; without an id where the request's could not be read.
pub fn failure(format: Format, request: Option<Uuid>, failure: &Failure) -> Message {
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
    format: Format,
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
