//! Results on their way from the engine to the client: cut into batches, encoded, sent.
//!
//! Runs on the engine's thread. A batch is sent when the next one begins (status 206), the last when the
//! query is over (200, or 204 if there never was a result). The channel to the connection is bounded: while the client is slow
//! the engine waits here, until the query is cancelled.
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
//! A request that writes is held and sealed before its commit. So limits and encoding can refuse it only while it can still be
//! undone, and after the commit no limit, kill or encoder turns the answer into a failure: `finish` only sends.

use mangrove_graph::{Error, ErrorKind, MemoryBudget, Purpose, Result, Value};
use tokio::runtime::Handle;

use crate::budget;
use crate::cancel::{Cancellation, Reason};
use crate::config::Limits;
use crate::engine::ResultSink;
use crate::status::Failure;
use crate::status::Status;
use crate::weight::weight;
use crate::wire::{Batch, Carrier, Form, Parcel};

/// How much a batch holds.
#[derive(Clone, Copy, Debug)]
pub struct BatchSize {
    /// So many results.
    pub count: usize,
    /// About so many bytes, unless one result alone has more.
    pub bytes: u64,
}

/// Sends the results of one request.
pub struct ChannelSink {
    carrier: Carrier,
    batch: Batch,
    size: BatchSize,
    /// About how many bytes the batch has.
    bytes: u64,
    /// Why a batch could not be written, which the engine only hears of as an error of the sink.
    unencodable: Option<Failure>,
    /// How many response messages are out.
    sent_count: usize,
    /// Messages that are encoded and kept.
    kept: Kept,
    result_max: ResultMax,
    budget: MemoryBudget,
    cancellation: Cancellation,
    runtime: Handle,
}

/// Encoded messages that are kept until the request is over.
#[derive(Debug, Default)]
struct Kept {
    /// Whether full batches are kept, too.
    is_holding: bool,
    /// Whether the last batch is among them.
    is_sealed: bool,
    parcels: Vec<Parcel>,
    /// Results in them.
    count: usize,
    /// How many bytes they have.
    bytes: u64,
}

impl ChannelSink {
    /// A sink for one request. To be used on a blocking thread of the same runtime.
    pub fn new(
        carrier: Carrier,
        form: Form,
        size: BatchSize,
        result_max: ResultMax,
        budget: MemoryBudget,
        cancellation: Cancellation,
        runtime: Handle,
    ) -> Self {
        ChannelSink {
            carrier,
            batch: Batch::new(form),
            size,
            bytes: 0,
            unencodable: None,
            sent_count: 0,
            kept: Kept::default(),
            result_max,
            budget,
            cancellation,
            runtime,
        }
    }

    /// Whether the client has not seen anything yet, so that the query may be run again.
    pub fn is_untouched(&self) -> bool {
        self.sent_count == 0
    }

    /// What to answer when the query ended with `failure`.
    pub fn explain(&mut self, failure: Failure) -> Failure {
        self.cancellation.explain(self.unencodable.take().unwrap_or(failure))
    }

    /// Forgets results that were not sent: the query is run again.
    pub fn reset(&mut self) {
        self.batch.clear();
        self.bytes = 0;
        self.unencodable = None;
        self.kept = Kept::default();
        self.carrier.reset();
    }

    /// Sends what is left: the query is over. Its transaction may be committed by now, so a time limit that
    /// passes here must not turn the answer into an error: this waits as long as there is a connection.
    pub fn finish(mut self) -> Result<(), Failure> {
        if !self.kept.is_sealed {
            self.seal().map_err(|error| self.explain(error.into()))?;
        }
        for parcel in std::mem::take(&mut self.kept.parcels) {
            if let Err(parcel) = self.carrier.write_now(parcel) {
                self.runtime.block_on(self.carrier.send(parcel)).map_err(|_| Failure::from(Reason::Gone.error()))?;
            }
        }
        Ok(())
    }

    /// Encodes the batch and begins another; `None` where the carrier keeps it to itself. What it takes is drawn from the
    /// memory budget: about, before it is written, and then to the byte.
    fn pack(&mut self, status: Status) -> Result<Option<Parcel>> {
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

    /// Keeps the batch, if there is room for it.
    fn keep(&mut self, status: Status) -> Result<()> {
        self.kept.count += self.batch.len();
        // By weight before it is written: so no more is written than may be held.
        self.result_max.check_held(self.kept.count, self.kept.bytes.saturating_add(self.bytes))?;
        let parcel = self.pack(status)?;
        // Counted as it is written: a format takes several times what the results weigh.
        self.kept.bytes += parcel.as_ref().map_or(0, Parcel::byte_count);
        self.kept.parcels.extend(parcel);
        self.result_max.check_held(self.kept.count, self.kept.bytes)
    }

    /// Sends the batch, or keeps it; more will follow.
    fn flush(&mut self) -> Result<()> {
        // Here, too: one result that occurs often is many batches.
        self.check()?;
        if self.kept.is_holding {
            return self.keep(Status::PARTIAL_CONTENT);
        }
        let parcel = self.pack(Status::PARTIAL_CONTENT)?;
        // What the carrier keeps is sent, too, as far as running the query again goes.
        self.sent_count += 1;
        let Some(parcel) = parcel else { return Ok(()) };
        let Err(parcel) = self.carrier.write_now(parcel) else { return Ok(()) };
        let (cancellation, carrier) = (&self.cancellation, &self.carrier);
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                reason = cancellation.fired() => Err(reason.error()),
                sent = carrier.send(parcel) => sent.map_err(|_| Reason::Gone.error()),
            }
        })
    }

    /// Fails when the request is to end.
    fn check(&self) -> Result<()> {
        self.cancellation.reason().map_or(Ok(()), |reason| Err(reason.error()))
    }

    /// Makes room for one result of so many bytes.
    fn room(&mut self, bytes: u64) -> Result<()> {
        let is_heavy = self.batch.len() > 0 && self.bytes.saturating_add(bytes) > self.size.bytes;
        if is_heavy || self.batch.len() == self.size.count { self.flush() } else { Ok(()) }
    }

    fn push(&mut self, value: Value, bulk: u64) -> Result<()> {
        // Traversers carry their bulk, values are repeated.
        let (bulk, times) = if self.batch.has_bulk() { (bulk, 1) } else { (1, bulk) };
        // Before it is written: one result may be gigabytes, of parts that are shared here.
        let bytes = weight(&value);
        self.result_max.check_one(bytes)?;
        for _ in 0..times {
            self.room(bytes)?;
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
        let is_empty = self.sent_count == 0 && self.kept.count == 0 && self.batch.len() == 0;
        let status = if is_empty { Status::NO_CONTENT } else { Status::SUCCESS };
        match self.kept.is_holding {
            true => self.keep(status)?,
            false => {
                let parcel = self.pack(status)?;
                self.kept.parcels.extend(parcel);
            }
        }
        self.kept.is_sealed = true;
        Ok(())
    }
}

/// How much results may have.
#[derive(Clone, Copy, Debug)]
pub struct ResultMax {
    /// About so many bytes each (`result_bytes_max`).
    pub one_bytes: u64,
    /// So many of them may be held back (`held_result_count_max`).
    pub held_count: usize,
    /// These may have so many bytes as they are written, or about so many before (`held_result_bytes_max`).
    pub held_bytes: u64,
}

impl ResultMax {
    /// What the limits say.
    pub fn of(limits: &Limits) -> Self {
        ResultMax {
            one_bytes: limits.result_bytes_max as u64,
            held_count: limits.held_result_count_max,
            held_bytes: limits.held_result_bytes_max as u64,
        }
    }

    /// Refuses one result of more.
    fn check_one(self, bytes: u64) -> Result<()> {
        if bytes <= self.one_bytes {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::MemoryLimit,
            format!(
                "one result has about {bytes} bytes, more than {} (result_bytes_max); return its parts one by one, with \
                 unfold(), or fewer of them",
                self.one_bytes
            ),
        ))
    }

    /// Refuses to hold more back.
    fn check_held(self, count: usize, bytes: u64) -> Result<()> {
        let too_many = match (count > self.held_count, bytes > self.held_bytes) {
            (true, _) => format!("there are more than {} of them (held_result_count_max)", self.held_count),
            (_, true) => format!("they have more than {} bytes (held_result_bytes_max)", self.held_bytes),
            (false, false) => return Ok(()),
        };
        Err(Error::new(
            ErrorKind::MemoryLimit,
            format!(
                "the results of a request that writes are held back until the transaction is committed, and {too_many}; ask for fewer, with count() or iterate(), or read them in a request of their own"
            ),
        ))
    }
}

/// Drops results nobody asked for.
#[derive(Debug)]
pub struct Discard;

impl ResultSink for Discard {
    fn accept(&mut self, _: Vec<(Value, u64)>) -> Result<()> {
        Ok(())
    }
}
