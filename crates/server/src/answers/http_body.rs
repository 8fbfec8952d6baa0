//! The body of an HTTP answer, made of batches as they come.
//!
//! GraphSON is sent in pieces of at least [`PIECE_BYTES_MIN`], so that a result of millions takes no more memory than
//! the pieces that wait for the client. A small answer is one piece with a `Content-Length`. GraphBinary is always one
//! piece: its count of results comes first, so the bytes are held until all results are there.

use std::time::Duration;

use axum::body::Bytes;
use mangrove_graph::{Draw, Error, ErrorKind, MemoryBudget, Purpose, Result};
use mangrove_gremlin::graphson::{self, Dialect};
use mangrove_gremlin::message::ResponseHead;
use mangrove_gremlin::{Encoding, as_texts, graphbinary};
use tokio::sync::mpsc;
use tokio::time::timeout;
use uuid::Uuid;

use crate::answers::batch::ResultBatch;
use crate::answers::outgoing::ClientGone;
use crate::answers::result_max::ResultMax;
use crate::limits::Limits;
use crate::memory::budget;
use crate::status::{Failure, Status};

/// The least bytes of a piece, since each has its cost on the wire.
const PIECE_BYTES_MIN: usize = 32 << 10;

/// A piece of an answer's body.
#[derive(Debug)]
pub enum BodyPiece {
    /// A piece before the last.
    More(Bytes),
    /// The last piece.
    Last(Bytes),
    /// The query failed.
    Failed(Failure),
}

/// An answer that is being made.
#[derive(Debug)]
pub struct HttpAnswer {
    request: Uuid,
    body: UnsentBody,
    pieces: mpsc::Sender<BodyPiece>,
    stall_max: Duration,
    /// The draw of the part that is not sent yet.
    held: Draw,
}

/// The part that is not sent yet.
#[derive(Debug)]
enum UnsentBody {
    /// GraphSON text. `is_open` says that its head was written, `has_results` that a result was.
    Text { dialect: Dialect, pending: Vec<u8>, is_open: bool, has_results: bool },
    /// The whole GraphBinary answer, with `count` results from the byte `first_result` on. `is_text` writes results as
    /// text.
    Whole { is_text: bool, bytes: Vec<u8>, first_result: usize, count: usize, max: ResultMax },
}

impl HttpAnswer {
    /// An answer without results.
    pub fn new(
        request: Uuid,
        encoding: Encoding,
        pieces: mpsc::Sender<BodyPiece>,
        limits: &Limits,
        budget: &MemoryBudget,
    ) -> Self {
        let body = match encoding {
            Encoding::GraphSon(dialect) => {
                UnsentBody::Text { dialect, pending: Vec::new(), is_open: false, has_results: false }
            }
            Encoding::GraphBinary | Encoding::GraphBinaryText => {
                let is_text = encoding == Encoding::GraphBinaryText;
                let max = ResultMax::of(limits);
                UnsentBody::Whole { is_text, bytes: Vec::new(), first_result: 0, count: 0, max }
            }
        };
        let held = budget.account(Purpose::Messages);
        HttpAnswer { request, body, pieces, stall_max: limits.write_stall_max, held }
    }

    /// Adds a batch. Returns a piece if there is enough for one or if it is the last.
    pub fn pack(&mut self, status: Status, batch: &ResultBatch) -> Result<Option<BodyPiece>, Failure> {
        let packed = match status {
            Status::PARTIAL_CONTENT => self.add(batch),
            _ => self.end(batch).map(Some),
        };
        packed.map_err(|error| match error.kind() {
            ErrorKind::MemoryLimit => error.into(),
            _ => Failure { status: Status::SERIALIZATION_ERROR, error },
        })
    }

    /// Drops the batches added so far, none of which was sent.
    pub fn reset(&mut self) {
        match &mut self.body {
            UnsentBody::Text { pending, is_open, has_results, .. } => {
                pending.clear();
                (*is_open, *has_results) = (false, false);
            }
            UnsentBody::Whole { bytes, first_result, count, .. } => {
                bytes.clear();
                (*first_result, *count) = (0, 0);
            }
        }
        self.held.shrink(u64::MAX);
    }

    fn add(&mut self, batch: &ResultBatch) -> Result<Option<BodyPiece>> {
        let head = self.head();
        match &mut self.body {
            UnsentBody::Text { dialect, pending, is_open, has_results } => {
                if !std::mem::replace(is_open, true) {
                    graphson::open_response(*dialect, head, pending)?;
                }
                graphson::write_items(*dialect, batch.data(), !*has_results, pending)?;
                *has_results |= batch.len() > 0;
                let is_enough = pending.len() >= PIECE_BYTES_MIN;
                Ok(is_enough.then(|| BodyPiece::More(std::mem::take(pending).into())))
            }
            UnsentBody::Whole { is_text, bytes, first_result, count, max } => {
                if bytes.is_empty() {
                    graphbinary::open_response(head, 0, bytes)?;
                    *first_result = bytes.len();
                }
                *count += batch.len();
                if *count > max.held_count {
                    let count =
                        format!("there are more than {} results (the limit held_result_count_max)", max.held_count);
                    return Err(too_large(&count));
                }
                // By weight before it is encoded: one result may be gigabytes on the wire, of parts that are shared in
                // memory.
                let held = (bytes.len() - *first_result) as u64;
                if held.saturating_add(batch.weight()) > max.held_bytes {
                    let bytes = format!("it has more than {} bytes (the limit held_result_bytes_max)", max.held_bytes);
                    return Err(too_large(&bytes));
                }
                match is_text {
                    false => graphbinary::write_items(batch.data(), bytes)?,
                    true => as_texts(batch.data(), |texts| graphbinary::write_items(texts, bytes))?,
                }
                budget::hold(&mut self.held, bytes.len() as u64)?;
                Ok(None)
            }
        }
    }

    fn end(&mut self, batch: &ResultBatch) -> Result<BodyPiece> {
        // A piece that `add` would send now is sent together with the end.
        let more = self.add(batch)?;
        let whole = match (&mut self.body, more) {
            (UnsentBody::Text { dialect, pending, .. }, more) => {
                let mut bytes = match more {
                    Some(BodyPiece::More(bytes)) => bytes.into(),
                    _ => std::mem::take(pending),
                };
                graphson::close_response(*dialect, &mut bytes);
                bytes
            }
            (UnsentBody::Whole { bytes, first_result, count, .. }, _) => {
                graphbinary::set_result_count(bytes, *first_result, *count)?;
                std::mem::take(bytes)
            }
        };
        // The sink draws for this piece as soon as it has it.
        self.held.shrink(u64::MAX);
        Ok(BodyPiece::Last(whole.into()))
    }

    fn head(&self) -> ResponseHead<'static> {
        ResponseHead { request_id: Some(self.request), code: Status::SUCCESS.code(), message: "", attributes: &[] }
    }

    /// Sends a piece when there is room; an error if the client is gone or reads nothing for too long.
    pub async fn send(&self, piece: BodyPiece) -> Result<(), ClientGone> {
        match timeout(self.stall_max, self.pieces.send(piece)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(ClientGone),
            Err(_) => {
                tracing::warn!("a client took nothing of an answer for {:?}; it is given up", self.stall_max);
                Err(ClientGone)
            }
        }
    }
}

fn too_large(what: &str) -> Error {
    Error::new(
        ErrorKind::MemoryLimit,
        format!(
            "a GraphBinary answer over HTTP is held back until it is whole, and {what}; accept GraphSON, which \
             streams, \
             or use a WebSocket"
        ),
    )
}
