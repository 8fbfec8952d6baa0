//! Results on their way from the engine to the client: cut into batches, encoded, sent.
//!
//! Runs on the engine's thread. A batch is sent when the next one begins (status 206), the last when the
//! query is over (200, or 204 if there never was a result), so a transaction that fails at its commit
//! has not yet said that it succeeded. The channel to the connection is bounded: while the client is slow
//! the engine waits here, until the query is cancelled.

use mangrove_graph::{Error, ErrorKind, Result, Value};
use tokio::runtime::Handle;

use crate::cancel::{Cancellation, Reason};
use crate::config::Limits;
use crate::engine::ResultSink;
use crate::status::Failure;
use crate::status::Status;
use crate::weight::weight;
use crate::wire::{Batch, Carrier, Form};

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
    cancellation: Cancellation,
    runtime: Handle,
}

impl ChannelSink {
    /// A sink for one request. To be used on a blocking thread of the same runtime.
    pub fn new(carrier: Carrier, form: Form, size: BatchSize, cancellation: Cancellation, runtime: Handle) -> Self {
        ChannelSink {
            carrier,
            batch: Batch::new(form),
            size,
            bytes: 0,
            unencodable: None,
            sent_count: 0,
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
        self.unencodable.take().unwrap_or(failure)
    }

    /// Forgets results that were not sent.
    pub fn reset(&mut self) {
        self.batch.clear();
        self.bytes = 0;
    }

    /// Sends what is left: the query is over. Its transaction may be committed by now, so a time limit that
    /// passes here must not turn the answer into an error: this waits as long as there is a connection.
    pub fn finish(mut self) -> Result<(), Failure> {
        let status = if self.sent_count == 0 && self.batch.len() == 0 { Status::NO_CONTENT } else { Status::SUCCESS };
        let parcel = self.carrier.pack(status, &self.batch)?;
        let Some(parcel) = parcel else { return Ok(()) };
        let Err(parcel) = self.carrier.write_now(parcel) else { return Ok(()) };
        self.runtime.block_on(self.carrier.send(parcel)).map_err(|_| Reason::Gone.error().into())
    }

    /// Sends the batch; more will follow.
    fn flush(&mut self) -> Result<()> {
        let parcel = self.carrier.pack(Status::PARTIAL_CONTENT, &self.batch).map_err(|failure| {
            self.unencodable = Some(failure.clone());
            failure.error
        })?;
        self.batch.clear();
        self.bytes = 0;
        // What is kept for later is sent, too, as far as running the query again goes.
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

    /// Makes room for one result of so many bytes.
    fn room(&mut self, bytes: u64) -> Result<()> {
        let is_heavy = self.batch.len() > 0 && self.bytes.saturating_add(bytes) > self.size.bytes;
        if is_heavy || self.batch.len() == self.size.count { self.flush() } else { Ok(()) }
    }

    fn push(&mut self, value: Value, bulk: u64) -> Result<()> {
        // Traversers carry their bulk, values are repeated.
        let (bulk, times) = if self.batch.has_bulk() { (bulk, 1) } else { (1, bulk) };
        let bytes = weight(&value);
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
        if let Some(reason) = self.cancellation.reason() {
            return Err(reason.error());
        }
        results.into_iter().filter(|(_, bulk)| *bulk > 0).try_for_each(|(value, bulk)| self.push(value, bulk))
    }
}

/// Holds results back until a transaction is committed.
#[derive(Debug)]
pub struct HeldResults {
    results: Vec<(Value, u64)>,
    bytes: u64,
    max: HeldMax,
}

/// How much may be held back.
#[derive(Clone, Copy, Debug)]
pub struct HeldMax {
    /// So many results (`held_result_count_max`).
    pub count: usize,
    /// About so many bytes (`held_result_bytes_max`).
    pub bytes: u64,
}

impl HeldMax {
    /// What the limits say.
    pub fn of(limits: &Limits) -> Self {
        HeldMax { count: limits.held_result_count_max, bytes: limits.held_result_bytes_max as u64 }
    }
}

impl HeldResults {
    /// An empty one that takes at most so many.
    pub fn new(max: HeldMax) -> Self {
        HeldResults { results: Vec::new(), bytes: 0, max }
    }

    /// The results.
    pub fn into_results(self) -> Vec<(Value, u64)> {
        self.results
    }
}

impl ResultSink for HeldResults {
    fn accept(&mut self, results: Vec<(Value, u64)>) -> Result<()> {
        self.bytes = results.iter().map(|(value, _)| weight(value)).fold(self.bytes, u64::saturating_add);
        if self.bytes > self.max.bytes {
            return Err(Error::new(
                ErrorKind::MemoryLimit,
                format!(
                    "a script of several statements is one transaction whose results are held back until it is \
                     committed, and they have more than {} bytes (held_result_bytes_max); send the last statement on its own",
                    self.max.bytes
                ),
            ));
        }
        if self.results.len() + results.len() > self.max.count {
            return Err(Error::new(
                ErrorKind::MemoryLimit,
                format!(
                    "a script of several statements is one transaction whose results are held back until it is \
                     committed, and there are more than {} of them (held_result_count_max); send the last statement on its own",
                    self.max.count
                ),
            ));
        }
        self.results.extend(results);
        Ok(())
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
