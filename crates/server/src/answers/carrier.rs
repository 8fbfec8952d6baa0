//! The destination of a request's results: messages of a WebSocket, or pieces of an HTTP body.
//!
//! A carrier encodes a batch into a parcel and sends it. The sink does not know which protocol carries it.

use axum::extract::ws::Message;
use mangrove_graph::Draw;
use uuid::Uuid;

use super::batch::ResultBatch;
use super::http_body::{BodyPiece, HttpAnswer};
use super::outgoing::{Gone, Outgoing, OutgoingMessage};
use super::wire::{self, Format};
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
        format: Format,
        /// The connection's outgoing queue.
        outgoing: Outgoing,
    },
    /// The body of an HTTP response.
    Http(Box<HttpAnswer>),
}

/// The unit that a carrier sends.
#[derive(Debug)]
pub enum Parcel {
    /// A message of a WebSocket.
    Message(OutgoingMessage),
    /// A piece of a body.
    Piece(BodyPiece),
}

impl Parcel {
    /// The size of the encoded results, in bytes.
    pub fn byte_count(&self) -> u64 {
        let bytes = match self {
            Parcel::Message(OutgoingMessage { message, .. }) => match message {
                Message::Text(text) => text.len(),
                Message::Binary(bytes) => bytes.len(),
                Message::Ping(_) | Message::Pong(_) | Message::Close(_) => 0,
            },
            Parcel::Piece(BodyPiece::More(bytes) | BodyPiece::Last(bytes)) => bytes.len(),
            Parcel::Piece(BodyPiece::Failed(_)) => 0,
        };
        bytes as u64
    }

    /// The same parcel, which holds this draw until it is written to the client.
    pub fn drawing(self, draw: Draw) -> Parcel {
        match self {
            Parcel::Message(OutgoingMessage { message, .. }) => {
                Parcel::Message(OutgoingMessage { message, draw: Some(draw) })
            }
            Parcel::Piece(BodyPiece::More(bytes)) => Parcel::Piece(BodyPiece::More(budget::counted(bytes, draw))),
            Parcel::Piece(BodyPiece::Last(bytes)) => Parcel::Piece(BodyPiece::Last(budget::counted(bytes, draw))),
            failed @ Parcel::Piece(BodyPiece::Failed(_)) => failed,
        }
    }
}

impl Carrier {
    /// Encodes a batch; `None` if it is kept to be sent with a later one. With [`Status::PARTIAL_CONTENT`] more batches
    /// follow.
    pub fn pack(&mut self, status: Status, batch: &ResultBatch) -> Result<Option<Parcel>, Failure> {
        match self {
            Carrier::Socket { request, format, .. } => {
                wire::results(*format, *request, status, batch).map(|message| Some(Parcel::Message(message.into())))
            }
            Carrier::Http(answer) => Ok(answer.pack(status, batch)?.map(Parcel::Piece)),
        }
    }

    /// Drops batches that were encoded and not sent.
    pub fn reset(&mut self) {
        if let Carrier::Http(answer) = self {
            answer.reset();
        }
    }

    /// Writes a parcel on this thread if that is possible at once. Otherwise returns it, to be sent.
    pub fn write_now(&self, parcel: Parcel) -> Result<(), Parcel> {
        match (self, parcel) {
            (Carrier::Socket { outgoing, .. }, Parcel::Message(letter)) => {
                outgoing.write_now(letter).map_err(Parcel::Message)
            }
            (_, parcel) => Err(parcel),
        }
    }

    /// Sends a parcel when there is room; an error if the client is gone.
    pub async fn send(&self, parcel: Parcel) -> Result<(), Gone> {
        match (self, parcel) {
            (Carrier::Socket { outgoing, .. }, Parcel::Message(letter)) => outgoing.send(letter).await,
            (Carrier::Http(answer), Parcel::Piece(piece)) => answer.send(piece).await,
            // A carrier only sends parcels that it packed itself.
            (Carrier::Socket { .. }, Parcel::Piece(_)) | (Carrier::Http(_), Parcel::Message(_)) => Err(Gone),
        }
    }
}
