//! The body of an HTTP answer, made of batches as they come.
//!
//! GraphSON is sent in pieces of at least [`PIECE_BYTES_MIN`], so that a result of millions takes no more memory than the
//! pieces that wait for the client; small answers are one piece with a length. GraphBinary is one piece always: the
//! number of results stands in front of them, so their bytes are held until all are there.

use std::time::Duration;

use axum::body::Bytes;
use mangrove_graph::{Draw, Error, ErrorKind, MemoryBudget, Purpose, Result};
use mangrove_gremlin::graphson::{self, Dialect};
use mangrove_gremlin::message::ResponseHead;
use mangrove_gremlin::{Encoding, as_texts, graphbinary};
use tokio::sync::mpsc;
use tokio::time::timeout;
use uuid::Uuid;

use crate::budget;
use crate::config::Limits;
use crate::sink::ResultMax;
use crate::status::{Failure, Status};
use crate::wire::{Batch, Gone};

/// Less than this is kept until there is more: a piece has its cost on the wire.
const PIECE_BYTES_MIN: usize = 32 << 10;

/// A piece of an answer.
#[derive(Debug)]
pub enum Piece {
    /// More will follow.
    More(Bytes),
    /// The answer ends with it.
    Last(Bytes),
    /// The query failed.
    Failed(Failure),
}

/// An answer in the making.
#[derive(Debug)]
pub struct HttpAnswer {
    request: Uuid,
    body: Made,
    pieces: mpsc::Sender<Piece>,
    stall_max: Duration,
    /// What the part that is not sent yet takes of the memory budget.
    held: Draw,
}

/// The part that is not sent yet.
#[derive(Debug)]
enum Made {
    /// Text, and whether there is a result before or in it.
    Text { dialect: Dialect, pending: Vec<u8>, is_open: bool, has_results: bool },
    /// All of it, since the count comes first: so many results, as text or as what they are. The first of them is at
    /// `first_result`; 0 before there is anything.
    Whole { is_text: bool, bytes: Vec<u8>, first_result: usize, count: usize, max: ResultMax },
}

impl HttpAnswer {
    /// An answer without results yet.
    pub fn new(
        request: Uuid,
        encoding: Encoding,
        pieces: mpsc::Sender<Piece>,
        limits: &Limits,
        budget: &MemoryBudget,
    ) -> Self {
        let body = match encoding {
            Encoding::GraphSon(dialect) => {
                Made::Text { dialect, pending: Vec::new(), is_open: false, has_results: false }
            }
            Encoding::GraphBinary | Encoding::GraphBinaryText => {
                let is_text = encoding == Encoding::GraphBinaryText;
                let max = ResultMax::of(limits);
                Made::Whole { is_text, bytes: Vec::new(), first_result: 0, count: 0, max }
            }
        };
        let held = budget.account(Purpose::Messages);
        HttpAnswer { request, body, pieces, stall_max: limits.write_stall_max, held }
    }

    /// Adds a batch; a piece if there is enough for one, or the last. `None` if it is kept for later.
    pub fn pack(&mut self, status: Status, batch: &Batch) -> Result<Option<Piece>, Failure> {
        let packed = match status {
            Status::PARTIAL_CONTENT => self.add(batch),
            _ => self.end(batch).map(Some),
        };
        packed.map_err(|error| match error.kind() {
            ErrorKind::MemoryLimit => error.into(),
            _ => Failure { status: Status::SERIALIZATION_ERROR, error },
        })
    }

    /// Forgets what was packed: none of it was sent.
    pub fn reset(&mut self) {
        match &mut self.body {
            Made::Text { pending, is_open, has_results, .. } => {
                pending.clear();
                (*is_open, *has_results) = (false, false);
            }
            Made::Whole { bytes, first_result, count, .. } => {
                bytes.clear();
                (*first_result, *count) = (0, 0);
            }
        }
        self.held.shrink(u64::MAX);
    }

    fn add(&mut self, batch: &Batch) -> Result<Option<Piece>> {
        let head = self.head();
        match &mut self.body {
            Made::Text { dialect, pending, is_open, has_results } => {
                if !std::mem::replace(is_open, true) {
                    graphson::open_response(*dialect, head, pending)?;
                }
                graphson::write_items(*dialect, batch.data(), !*has_results, pending)?;
                *has_results |= batch.len() > 0;
                let is_enough = pending.len() >= PIECE_BYTES_MIN;
                Ok(is_enough.then(|| Piece::More(std::mem::take(pending).into())))
            }
            Made::Whole { is_text, bytes, first_result, count, max } => {
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
                // Weighed before it is written: one result may be gigabytes, of parts that are shared here.
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

    fn end(&mut self, batch: &Batch) -> Result<Piece> {
        // What `add` might send already is kept and sent with the end.
        let more = self.add(batch)?;
        let whole = match (&mut self.body, more) {
            (Made::Text { dialect, pending, .. }, more) => {
                let mut bytes = match more {
                    Some(Piece::More(bytes)) => bytes.into(),
                    _ => std::mem::take(pending),
                };
                graphson::close_response(*dialect, &mut bytes);
                bytes
            }
            (Made::Whole { bytes, first_result, count, .. }, _) => {
                graphbinary::set_result_count(bytes, *first_result, *count)?;
                std::mem::take(bytes)
            }
        };
        // The sink draws for this piece as soon as it has it.
        self.held.shrink(u64::MAX);
        Ok(Piece::Last(whole.into()))
    }

    fn head(&self) -> ResponseHead<'static> {
        ResponseHead { request_id: Some(self.request), code: Status::SUCCESS.code(), message: "", attributes: &[] }
    }

    /// Sends a piece when there is room, unless the client takes nothing for too long.
    pub async fn send(&self, piece: Piece) -> Result<(), Gone> {
        match timeout(self.stall_max, self.pieces.send(piece)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(Gone),
            Err(_) => {
                tracing::warn!("a client took nothing of an answer for {:?}; it is given up", self.stall_max);
                Err(Gone)
            }
        }
    }
}

fn too_large(what: &str) -> Error {
    Error::new(
        ErrorKind::MemoryLimit,
        format!(
            "a GraphBinary answer over HTTP is held back until it is whole, and {what}; accept GraphSON, which streams, \
             or use a WebSocket"
        ),
    )
}
