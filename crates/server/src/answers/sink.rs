//! Results on their way from the engine to the client: cut into batches, encoded, sent. Runs on the engine's thread.
//!
//! A full batch is sent when the next one begins (status 206), and the last when the query is over (200, or 204 if
//! there was no result). The queue to the connection is bounded: while the client is slow, the engine waits here, at
//! most until the query is cancelled.
//!
//! ```text
//!              accept                        seal                    finish
//! open ─────────────────────▶ open ──────────────────────▶ sealed ─────────────▶ sent
//!   │ hold                      each full batch is sent      the last batch is encoded
//!   ▼
//! holding ──────────────────▶ holding ───────────────────▶ sealed ─────────────▶ sent
//!   ▲                           each full batch is kept
//!   └─ reset, after a conflict ──────────────────────────────┘
//! ```
//!
//! - **SERVER-5.** Every request of a WebSocket is answered by messages with its id, of which exactly the last has a
//!   status other than 206.
//! - **SERVER-6.** Outside a session, a writing request holds and seals its results before it commits. So limits and
//!   encoders can fail it only while it can still be undone; after the commit `finish` only sends, and no limit or kill
//!   turns the answer into a failure.

use mangrove_graph::{MemoryBudget, Purpose, Result, Value};
use tokio::runtime::Handle;

use crate::answers::batch::{BatchSize, ResultBatch, ResultForm};
use crate::answers::carrier::{Carrier, ResultParcel};
use crate::answers::result_max::ResultMax;
use crate::engine::cancel::{CancelReason, Cancellation};
use crate::engine::contract::ResultSink;
use crate::memory::budget;
use crate::memory::weight::weight;
use crate::status::Failure;
use crate::status::Status;

/// Sends the results of one request.
pub struct ChannelSink {
    carrier: Carrier,
    batch: ResultBatch,
    size: BatchSize,
    /// The weight of the batch, in bytes.
    bytes: u64,
    /// The failure to encode a batch. The engine only learns that its sink failed.
    unencodable: Option<Failure>,
    /// The number of response messages sent.
    sent_count: usize,
    /// Encoded messages that wait for the end of the request.
    kept: KeptMessages,
    result_max: ResultMax,
    budget: MemoryBudget,
    cancellation: Cancellation,
    runtime: Handle,
}

/// Encoded messages that are kept until the request is over.
#[derive(Debug, Default)]
struct KeptMessages {
    /// True if full batches are kept as well.
    is_holding: bool,
    /// True if the last batch is among them.
    is_sealed: bool,
    parcels: Vec<ResultParcel>,
    /// Results in them.
    count: usize,
    /// Their bytes.
    bytes: u64,
}

impl ChannelSink {
    /// A sink for one request, for use on a blocking thread of this runtime.
    pub fn new(
        carrier: Carrier,
        form: ResultForm,
        size: BatchSize,
        result_max: ResultMax,
        budget: MemoryBudget,
        cancellation: Cancellation,
        runtime: Handle,
    ) -> Self {
        ChannelSink {
            carrier,
            batch: ResultBatch::new(form),
            size,
            bytes: 0,
            unencodable: None,
            sent_count: 0,
            kept: KeptMessages::default(),
            result_max,
            budget,
            cancellation,
            runtime,
        }
    }

    /// Returns true if nothing was sent to the client, so that the query may be run again.
    pub fn is_untouched(&self) -> bool {
        self.sent_count == 0
    }

    /// The failure to report when the query ended with `failure`: the cause, if the sink knows it better.
    pub fn explain(&mut self, failure: Failure) -> Failure {
        self.cancellation.explain(self.unencodable.take().unwrap_or(failure))
    }

    /// Drops results that were not sent, because the query is run again.
    pub fn reset(&mut self) {
        self.batch.clear();
        self.bytes = 0;
        self.unencodable = None;
        self.kept = KeptMessages::default();
        self.carrier.reset();
    }

    /// Sends the remaining messages at the end of the query. The transaction may be committed by now (SERVER-6), so no
    /// time limit applies here: this waits for as long as there is a connection.
    pub fn finish(mut self) -> Result<(), Failure> {
        if !self.kept.is_sealed {
            self.seal().map_err(|error| self.explain(error.into()))?;
        }
        for parcel in std::mem::take(&mut self.kept.parcels) {
            if let Err(parcel) = self.carrier.write_now(parcel) {
                self.runtime
                    .block_on(self.carrier.send(parcel))
                    .map_err(|_| Failure::from(CancelReason::Gone.error()))?;
            }
        }
        Ok(())
    }

    /// Encodes the batch and begins another; `None` if the carrier keeps it for later. The batch draws on the memory
    /// budget: by its weight before it is encoded, and by its exact size after that.
    fn pack(&mut self, status: Status) -> Result<Option<ResultParcel>> {
        let mut draw = self.budget.account(Purpose::Messages);
        budget::hold(&mut draw, self.bytes)?;
        let parcel = self.carrier.pack(status, &self.batch).map_err(|failure| {
            self.unencodable = Some(failure.clone());
            failure.error
        })?;
        self.batch.clear();
        self.bytes = 0;
        let Some(parcel) = parcel else { return Ok(None) };
        budget::hold(&mut draw, parcel.byte_count())?;
        Ok(Some(parcel.drawing(draw)))
    }

    /// Encodes and keeps the batch, if the limits allow it.
    fn keep(&mut self, status: Status) -> Result<()> {
        self.kept.count += self.batch.len();
        // By weight before it is encoded, so that no more is encoded than may be held.
        self.result_max.check_held(self.kept.count, self.kept.bytes.saturating_add(self.bytes))?;
        let parcel = self.pack(status)?;
        // By size after that: an encoding may take several times the weight of the results.
        self.kept.bytes += parcel.as_ref().map_or(0, ResultParcel::byte_count);
        self.kept.parcels.extend(parcel);
        self.result_max.check_held(self.kept.count, self.kept.bytes)
    }

    /// Sends the batch, or keeps it if the sink holds. More batches follow.
    fn flush(&mut self) -> Result<()> {
        // Checked here as well: one result that occurs often fills many batches.
        self.check()?;
        if self.kept.is_holding {
            return self.keep(Status::PARTIAL_CONTENT);
        }
        let parcel = self.pack(Status::PARTIAL_CONTENT)?;
        // A batch that the carrier keeps counts as sent: the query must not run again.
        self.sent_count += 1;
        let Some(parcel) = parcel else { return Ok(()) };
        let Err(parcel) = self.carrier.write_now(parcel) else { return Ok(()) };
        let (cancellation, carrier) = (&self.cancellation, &self.carrier);
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                reason = cancellation.fired() => Err(reason.error()),
                sent = carrier.send(parcel) => sent.map_err(|_| CancelReason::Gone.error()),
            }
        })
    }

    /// Fails if the request was cancelled.
    fn check(&self) -> Result<()> {
        self.cancellation.reason().map_or(Ok(()), |reason| Err(reason.error()))
    }

    /// Flushes the batch if a result of this weight, in bytes, does not fit into it.
    fn make_room(&mut self, bytes: u64) -> Result<()> {
        let is_heavy = self.batch.len() > 0 && self.bytes.saturating_add(bytes) > self.size.bytes;
        if is_heavy || self.batch.len() == self.size.count { self.flush() } else { Ok(()) }
    }

    /// Adds one result that stands for `bulk` equal ones.
    fn push(&mut self, value: Value, bulk: u64) -> Result<()> {
        // Traversers carry their bulk, values are repeated.
        let (bulk, times) = if self.batch.has_bulk() { (bulk, 1) } else { (1, bulk) };
        // Checked before encoding: one result may be gigabytes on the wire, of parts that are shared in memory.
        let bytes = weight(&value);
        self.result_max.check_one(bytes)?;
        for _ in 0..times {
            self.make_room(bytes)?;
            self.bytes = self.bytes.saturating_add(bytes);
            self.batch.push(value.clone(), bulk);
        }
        Ok(())
    }
}

impl ResultSink for ChannelSink {
    fn accept(&mut self, results: Vec<(Value, u64)>) -> Result<()> {
        self.check()?;
        results.into_iter().filter(|(_, bulk)| *bulk > 0).try_for_each(|(value, bulk)| self.push(value, bulk))
    }

    fn hold(&mut self) {
        self.kept.is_holding = true;
    }

    fn seal(&mut self) -> Result<()> {
        // SERVER-5: this status ends the answer; all batches before it have 206.
        let is_empty = self.sent_count == 0 && self.kept.count == 0 && self.batch.len() == 0;
        let status = if is_empty { Status::NO_CONTENT } else { Status::SUCCESS };
        match self.kept.is_holding {
            true => self.keep(status)?,
            false => {
                let parcel = self.pack(status)?;
                self.kept.parcels.extend(parcel);
            }
        }
        // SERVER-6: from here on the results can only fail to be sent.
        self.kept.is_sealed = true;
        Ok(())
    }
}

/// Drops the results of statements before the last of a script.
#[derive(Debug)]
pub struct DiscardSink;

impl ResultSink for DiscardSink {
    fn accept(&mut self, _: Vec<(Value, u64)>) -> Result<()> {
        Ok(())
    }
}
