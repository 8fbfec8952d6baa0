//! The destination of a request's results: messages of a WebSocket, or pieces of an HTTP body.
//!
//! A carrier encodes a batch into a parcel and sends it. The sink does not know which protocol carries it.

use axum::extract::ws::Message;
use mangrove_graph::Draw;
use uuid::Uuid;

use super::batch::ResultBatch;
use super::http_body::{BodyPiece, HttpAnswer};
use super::outgoing::{ClientGone, Outgoing, OutgoingMessage};
use super::wire::{self, MessageFormat};
use crate::memory::budget;
use crate::status::{Failure, Status};

/// The destination of results, with their encoding.
#[derive(Debug)]
pub enum Carrier {
    /// Messages of a WebSocket, one for each batch.
    Socket {
        /// The request's id.
        request: Uuid,
        /// The encoding of messages.
        format: MessageFormat,
        /// The connection's outgoing queue.
        outgoing: Outgoing,
    },
    /// The body of an HTTP response.
    Http(Box<HttpAnswer>),
}

/// The unit that a carrier sends.
#[derive(Debug)]
pub enum ResultParcel {
    /// A message of a WebSocket.
    Message(OutgoingMessage),
    /// A piece of a body.
    Piece(BodyPiece),
}

impl ResultParcel {
    /// The size of the encoded results, in bytes.
    pub fn byte_count(&self) -> u64 {
        let bytes = match self {
            ResultParcel::Message(OutgoingMessage { message, .. }) => match message {
                Message::Text(text) => text.len(),
                Message::Binary(bytes) => bytes.len(),
                Message::Ping(_) | Message::Pong(_) | Message::Close(_) => 0,
            },
            ResultParcel::Piece(BodyPiece::More(bytes) | BodyPiece::Last(bytes)) => bytes.len(),
            ResultParcel::Piece(BodyPiece::Failed(_)) => 0,
        };
        bytes as u64
    }

    /// The same parcel, which holds this draw until it is written to the client.
    pub fn drawing(self, draw: Draw) -> ResultParcel {
        match self {
            ResultParcel::Message(OutgoingMessage { message, .. }) => {
                ResultParcel::Message(OutgoingMessage { message, draw: Some(draw) })
            }
            ResultParcel::Piece(BodyPiece::More(bytes)) => {
                ResultParcel::Piece(BodyPiece::More(budget::counted(bytes, draw)))
            }
            ResultParcel::Piece(BodyPiece::Last(bytes)) => {
                ResultParcel::Piece(BodyPiece::Last(budget::counted(bytes, draw)))
            }
            failed @ ResultParcel::Piece(BodyPiece::Failed(_)) => failed,
        }
    }
}

impl Carrier {
    /// Encodes a batch; `None` if it is kept to be sent with a later one. With [`Status::PARTIAL_CONTENT`] more batches
    /// follow.
    pub fn pack(&mut self, status: Status, batch: &ResultBatch) -> Result<Option<ResultParcel>, Failure> {
        match self {
            Carrier::Socket { request, format, .. } => wire::results(*format, *request, status, batch)
                .map(|message| Some(ResultParcel::Message(message.into()))),
            Carrier::Http(answer) => Ok(answer.pack(status, batch)?.map(ResultParcel::Piece)),
        }
    }

    /// Drops batches that were encoded and not sent.
    pub fn reset(&mut self) {
        if let Carrier::Http(answer) = self {
            answer.reset();
        }
    }

    /// Writes a parcel on this thread if that is possible at once. Otherwise returns it, to be sent.
    pub fn write_now(&self, parcel: ResultParcel) -> Result<(), ResultParcel> {
        match (self, parcel) {
            (Carrier::Socket { outgoing, .. }, ResultParcel::Message(letter)) => {
                outgoing.write_now(letter).map_err(ResultParcel::Message)
            }
            (_, parcel) => Err(parcel),
        }
    }

    /// Sends a parcel when there is room; an error if the client is gone.
    pub async fn send(&self, parcel: ResultParcel) -> Result<(), ClientGone> {
        match (self, parcel) {
            (Carrier::Socket { outgoing, .. }, ResultParcel::Message(letter)) => outgoing.send(letter).await,
            (Carrier::Http(answer), ResultParcel::Piece(piece)) => answer.send(piece).await,
            // A carrier only sends parcels that it packed itself.
            (Carrier::Socket { .. }, ResultParcel::Piece(_)) | (Carrier::Http(_), ResultParcel::Message(_)) => {
                Err(ClientGone)
            }
        }
    }
}
