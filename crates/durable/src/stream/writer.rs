//! The writer of a stream: commits are handed over, cut into objects, put, and acknowledged.
//!
//! ```text
//! hand over ──▶ waits ──(watermark W passes it, a put is allowed)──▶ cut: an object, put under the next SEQ
//!                                                                          │ settled: ours
//! acknowledged ◀── no hold ◀── all objects up to it are settled ◀──────────┘
//!
//!  Running ──oldest put unsettled for 5 s, or 64 MiB wait──▶ Stalled ──settled──▶ Running
//!     ├──finish──▶ Finishing ──everything acknowledged, FIN settled──▶ Finished
//!     └──the object under a name is a successor's──▶ Stopped
//! ```
//!
//! *When an object is cut.* If no put is in flight, at once: a lone commit is never delayed. A further put, up to four,
//! is begun only if the oldest waiting commit has waited for half of the usual time of a put, or if 256 KiB wait. So one
//! committer costs one put a commit, and many committers share puts. An interval and a limit of puts bound the bill.
//!
//! *Stalled is not failed.* A put that failed left nothing half done, and its retries go on for ever. While the writer is
//! stalled, it refuses further commits, and says why and for how long. Commits that wait are acknowledged later.
//!
//! Invariants:
//!
//! - **LOG-50.** Commits are acknowledged only up to the end of the longest prefix of settled objects. Recovery reads a
//!   stream up to its first gap.
//! - **LOG-51.** The *through* of an object is a timestamp up to which all commits of the stream are in this object and
//!   those before it. It never falls.
//! - **LOG-54.** After a writer knows that its stream was ended, it acknowledges nothing, not even what was settled
//!   before, and serves no read.
//! - **LOG-58.** A successor acknowledges nothing and serves no read for 1.05 leases after its last fence was settled. By
//!   then the lease of the fenced owner has ended, if the rates of both clocks differ by less than a twentieth.
//! - **LOG-59.** A read is served only if an object or a look at the next name has proved that the stream is open, and
//!   was *sent* less than a lease ago. For an object that is the time of its first attempt: a retry may succeed after
//!   the successor has deleted the object, and then proves nothing. A look proves something only if it was sent while
//!   nothing was in flight: then only an end of the stream can have the name, and ends are never deleted (LOG-57).
//!
//! Not here: retries of a put (`settle`), deadlines of committers, the reading of streams (`fence`).

mod refusal;
mod status;
mod waiting;

use std::collections::VecDeque;
use std::num::NonZeroU32;

use bytes::Bytes;
use uuid::Uuid;

use super::format::{Content, Header, Nonce, Place, encode, header_sum, nonce_of, open};
use super::names::stream_name;
use super::{Now, Rules};
use crate::home::HomeResult;
use crate::home::settle::Settled;

pub use refusal::Refusal;
pub use status::{WriterCounts, WriterStatus};
pub use waiting::HandedOver;
use waiting::{Portion, Waiting};

/// Objects that may be unsettled at a time, and settled ones after a gap included.
pub(crate) const IN_FLIGHT_MAX: usize = 4;
/// Bytes of waiting commits that allow a further put.
const WAITING_BYTES_FOR_PUT: u64 = 256 << 10;
/// Bytes of waiting commits above which commits are refused.
pub const WAITING_BYTES_MAX: u64 = 64 << 20;
/// A put counts this many times less than those before it, together, in the usual time of a put.
const SMOOTHING: u64 = 8;

/// The options of a writer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WriterOptions {
    /// Microseconds between two puts at least.
    pub interval_us: u64,
    /// Puts a second at most, on average and evenly spread; retries do not count.
    pub puts_per_second: Option<NonZeroU32>,
    /// The length of the read lease in microseconds. 0: reads are served without a lease.
    pub lease_us: u64,
    /// Microseconds that a put may be unsettled before commits are refused.
    pub unsettled_us_max: u64,
}

impl Default for WriterOptions {
    fn default() -> Self {
        WriterOptions { interval_us: 0, puts_per_second: None, lease_us: 300_000, unsettled_us_max: 5_000_000 }
    }
}

/// What a writer begins with. A stream belongs to one writer, from its first object on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StreamStart {
    /// The database.
    pub database: Uuid,
    /// The incarnation that the owner has claimed.
    pub incarnation: u64,
    /// Random bytes, from which the nonces of the objects are made.
    pub nonce_seed: Nonce,
    /// All commits up to this timestamp are in the home already.
    pub durable_ts: u64,
    /// Nothing is acknowledged and no read is served before this time (LOG-58), in microseconds.
    pub held_until_us: u64,
}

/// What the caller must do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Put an object if its name is free, with a [`crate::home::settle::Settle`]; then call [`Writer::settled`].
    Put {
        /// The number of the object in the stream.
        seq: u64,
        /// Its name.
        name: String,
        /// Its bytes.
        bytes: Bytes,
    },
    /// Read the first [`super::format::END_BYTES_MAX`] bytes under a name; then call [`Writer::probed`].
    Probe {
        /// The name.
        name: String,
    },
    /// Commits up to this timestamp are durable: their committers and readers may know.
    Acknowledge {
        /// The timestamp.
        through: u64,
        /// Records that belong to no commit are durable up to this number.
        leading: u64,
    },
    /// Further commits are refused. [`Writer::admit`] says why.
    Stall,
    /// Commits are accepted again.
    Resume,
    /// The stream was ended by another, and the writer has stopped.
    Stop {
        /// The incarnation of the successor, if the object names it.
        by: Option<u64>,
    },
    /// The stream has ended by the owner's wish.
    Finish,
}

/// The answer to a reader that has drawn its begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadPermit {
    /// The reader may go on.
    Granted,
    /// The reader must ask again after this time in microseconds, or after the next event if there is none.
    Later(Option<u64>),
    /// The stream has ended.
    Never,
}

/// The position from which recovery needs the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StreamFloor {
    /// The first object that is not settled, or that follows one that is not.
    pub seq: u64,
    /// All commits up to this timestamp are in objects before it.
    pub through: u64,
}

/// An object that was put and is not acknowledged.
#[derive(Debug)]
struct InFlight {
    seq: u64,
    through: u64,
    /// Leading records up to this number are in it, or in objects before it.
    leading: u64,
    sent_us: u64,
    is_settled: bool,
    /// What the home said last.
    trouble: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Running,
    Finishing,
    Finished,
    Stopped { by: Option<u64> },
}

/// The writer of one stream.
#[derive(Debug)]
pub struct Writer {
    options: WriterOptions,
    rules: Rules,
    start: StreamStart,
    state: State,
    /// The number of the next object.
    next_seq: u64,
    /// The checksum of the last object's header.
    previous: u32,
    watermark: u64,
    waiting: Waiting,
    counts: WriterCounts,
    /// Objects after the settled prefix, in order.
    in_flight: VecDeque<InFlight>,
    /// True once FIN was cut.
    fin_cut: bool,
    /// The *through* of the last object that was cut, and the number of its last leading records.
    cut_through: u64,
    cut_leading: u64,
    /// When the last object was cut, on both clocks.
    last_cut: Option<Now>,
    /// The usual time of a put.
    put_us: Option<u64>,
    /// The *through* of the settled prefix, and the number of its last leading records.
    settled_through: u64,
    settled_leading: u64,
    /// Commits up to this timestamp are acknowledged, and leading records up to this number.
    acknowledged: u64,
    acknowledged_leading: u64,
    /// Since when commits have been refused.
    stalled_since_us: Option<u64>,
    /// When the last request was sent that proved the stream open (LOG-59).
    proved_us: Option<u64>,
    /// When the look was sent that has no answer, and which object it looks for.
    probe: Option<(u64, u64)>,
}

impl Writer {
    /// A writer, and its first actions: the first object, which proves that the stream is open.
    pub fn new(start: StreamStart, options: WriterOptions, now: Now) -> (Self, Vec<Action>) {
        Writer::with_rules(start, options, Rules::default(), now)
    }

    pub(super) fn with_rules(
        start: StreamStart,
        options: WriterOptions,
        rules: Rules,
        now: Now,
    ) -> (Self, Vec<Action>) {
        let mut writer = Writer {
            options,
            rules,
            start,
            state: State::Running,
            next_seq: 1,
            previous: 0,
            watermark: start.durable_ts,
            waiting: Waiting::default(),
            counts: WriterCounts::default(),
            in_flight: VecDeque::new(),
            fin_cut: false,
            cut_through: start.durable_ts,
            cut_leading: 0,
            last_cut: None,
            put_us: None,
            settled_through: start.durable_ts,
            settled_leading: 0,
            acknowledged: start.durable_ts,
            acknowledged_leading: 0,
            stalled_since_us: None,
            proved_us: None,
            probe: None,
        };
        let actions = writer.time(now);
        (writer, actions)
    }

    /// Returns an error if a commit must be refused now. The caller asks before the commit draws its timestamp.
    ///
    /// # Errors
    ///
    /// If the writer is stalled, finishing or stopped.
    pub fn admit(&self, now: Now) -> Result<(), Refusal> {
        match self.state {
            State::Stopped { by } => Err(Refusal::Fenced { by }),
            State::Finishing | State::Finished => Err(Refusal::Finishing),
            State::Running => self.stall(now).map_or(Ok(()), Err),
        }
    }

    /// Takes a commit. It is not yet decided; the watermark passes its timestamp afterwards (TXN-14).
    pub fn hand_over(&mut self, commit: HandedOver, now: Now) -> Vec<Action> {
        debug_assert!(commit.ts > self.cut_through, "a commit is handed over before the watermark passes it");
        self.waiting.add(commit, now.us);
        self.time(now)
    }

    /// Takes framed records that belong to no commit: names, indexes, rules. They begin the next object, so they come
    /// before every commit that is in no object yet. If they are awaited, that object is made although no commit waits.
    /// Returns their number, which [`Action::Acknowledge`] will reach.
    pub fn lead(&mut self, records: &[u8], is_awaited: bool, now: Now) -> (u64, Vec<Action>) {
        let number = self.waiting.lead(records, is_awaited, now.us);
        (number, self.time(now))
    }

    /// Takes the stable watermark: all commits up to it were handed over.
    pub fn watermark(&mut self, watermark: u64, now: Now) -> Vec<Action> {
        self.watermark = self.watermark.max(watermark);
        self.time(now)
    }

    /// Takes the reason why a put has no outcome yet. It is the cause that refused commits are told.
    pub fn troubled(&mut self, seq: u64, cause: &str) {
        if let Some(object) = self.in_flight.iter_mut().find(|object| object.seq == seq) {
            object.trouble = Some(cause.into());
        }
    }

    /// Takes the outcome of a put.
    pub fn settled(&mut self, seq: u64, outcome: &Settled, now: Now) -> Vec<Action> {
        if matches!(self.state, State::Stopped { .. }) {
            return Vec::new();
        }
        let Some(object) = self.in_flight.iter_mut().find(|object| object.seq == seq && !object.is_settled) else {
            return Vec::new();
        };
        match outcome {
            Settled::Another(bytes) => self.stop(bytes),
            Settled::Own => {
                object.is_settled = true;
                let (took_us, through) = (now.us.saturating_sub(object.sent_us), object.through);
                let usual_us = self.put_us.unwrap_or(took_us);
                self.put_us = Some((usual_us * (SMOOTHING - 1) + took_us) / SMOOTHING);
                self.advance(now.us);
                if !self.rules.acknowledges_prefix {
                    self.settled_through = self.settled_through.max(through);
                }
                self.time(now)
            }
        }
    }

    /// Takes what a [`Action::Probe`] found.
    pub fn probed(&mut self, answer: &HomeResult<Option<Bytes>>, now: Now) -> Vec<Action> {
        let Some((sent_us, seq)) = self.probe.take() else { return Vec::new() };
        match answer {
            // LOG-59: nothing was in flight when the look was sent.
            Ok(None) => self.proved_us = self.proved_us.max(Some(sent_us)),
            // If the writer has put the object since then, its own put tells whose it is.
            Ok(Some(bytes)) if seq == self.next_seq => {
                let is_end = open(bytes).is_ok_and(|(header, _)| !matches!(header.content, Content::Records(_)));
                // Otherwise a bit has flipped on the way; the next look tells.
                if is_end && !matches!(self.state, State::Stopped { .. }) {
                    return self.stop(bytes);
                }
            }
            Ok(Some(_)) | Err(_) => {}
        }
        self.time(now)
    }

    /// Ends the stream once every commit that was handed over is acknowledged, which takes a watermark that passes them
    /// all. No commit is admitted and no read is served any more.
    pub fn finish(&mut self, now: Now) -> Vec<Action> {
        if self.state == State::Running {
            self.state = State::Finishing;
        }
        self.time(now)
    }

    /// Does what the time allows: puts, acknowledgements, the begin or end of a stall.
    pub fn time(&mut self, now: Now) -> Vec<Action> {
        let mut actions = Vec::new();
        if !matches!(self.state, State::Running | State::Finishing) {
            return actions;
        }
        if self.has_settled_more() && now.us >= self.acknowledges_from_us() {
            (self.acknowledged, self.acknowledged_leading) = (self.settled_through, self.settled_leading);
            actions.push(Action::Acknowledge { through: self.acknowledged, leading: self.acknowledged_leading });
        }
        while self.cut_at_us().is_some_and(|at| at <= now.us) {
            actions.push(self.cut(now));
        }
        if self.state == State::Finishing && self.in_flight.is_empty() && !self.has_settled_more() {
            if self.fin_cut {
                self.state = State::Finished;
                actions.push(Action::Finish);
            } else if self.waiting.is_empty() {
                actions.push(self.put(Content::Fin, &[], self.cut_through, now));
            }
        }
        let stalls = self.stall(now).is_some();
        if stalls != self.stalled_since_us.is_some() {
            self.stalled_since_us = stalls.then_some(now.us);
            actions.push(if stalls { Action::Stall } else { Action::Resume });
        }
        actions
    }

    /// The next time at which [`Self::time`] has something to do, in microseconds, if no event comes before.
    pub fn wake_at_us(&self) -> Option<u64> {
        if !matches!(self.state, State::Running | State::Finishing) {
            return None;
        }
        let held = self.has_settled_more().then(|| self.acknowledges_from_us());
        let stalls = self.oldest_unsettled().map(|object| object.sent_us + self.options.unsettled_us_max);
        let stalls = stalls.filter(|_| self.stalled_since_us.is_none());
        [self.cut_at_us(), held, stalls].into_iter().flatten().min()
    }

    /// Says whether a reader may be served that has drawn its begin, at or below what is acknowledged. Asks for a look at
    /// the next name when half of the lease is over.
    pub fn ask_to_read(&mut self, now: Now) -> (ReadPermit, Vec<Action>) {
        if self.state != State::Running {
            return (ReadPermit::Never, Vec::new());
        }
        // LOG-58.
        if self.rules.holds_reads && now.us < self.start.held_until_us {
            return (ReadPermit::Later(Some(self.start.held_until_us)), Vec::new());
        }
        let until_us = self.reads_until_us();
        let mut actions = Vec::new();
        // LOG-59. An object in flight renews the lease as well.
        let may_look = self.in_flight.is_empty() || !self.rules.looks_when_settled;
        // The second half of a lease is long enough for a look, so that readers that follow each other wait for none.
        if until_us.saturating_sub(now.us) <= self.options.lease_us / 2 && may_look && self.probe.is_none() {
            self.probe = Some((now.us, self.next_seq));
            actions.push(Action::Probe { name: stream_name(self.start.incarnation, self.next_seq) });
        }
        (if now.us < until_us { ReadPermit::Granted } else { ReadPermit::Later(None) }, actions)
    }

    /// The time from which a reader should ask for a look ([`Self::ask_to_read`]), although it may be served.
    pub fn renews_reads_from_us(&self) -> u64 {
        match self.probe {
            None => self.reads_until_us().saturating_sub(self.options.lease_us / 2),
            Some(_) => u64::MAX,
        }
    }

    /// Commits up to this timestamp are acknowledged; readers begin here.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// The position from which recovery needs the stream, if a checkpoint has all commits before it.
    pub fn floor(&self) -> StreamFloor {
        let seq = self.in_flight.front().map_or(self.next_seq, |object| object.seq);
        StreamFloor { seq, through: self.settled_through }
    }

    /// The numbers of the writer at this time.
    pub fn status(&self, now: Now) -> WriterStatus {
        WriterStatus {
            counts: self.counts,
            in_flight: self.in_flight.iter().filter(|object| !object.is_settled).count() as u64,
            oldest_unsettled_us: self.oldest_unsettled().map(|object| now.us.saturating_sub(object.sent_us)),
            waiting_commits: self.waiting.commits() as u64,
            waiting_bytes: self.waiting.bytes(),
            usual_put_us: self.put_us,
            acknowledged: self.acknowledged,
            refusal: self.admit(now).err(),
            stalled_us: self.stalled_since_us.map(|since_us| now.us.saturating_sub(since_us)),
        }
    }

    /// The time until which reads may be served without a further proof that the stream is open; 0 if there is none.
    pub fn reads_until_us(&self) -> u64 {
        match (self.state, self.options.lease_us) {
            (State::Running, 0) => u64::MAX,
            (State::Running, lease_us) => self.proved_us.map_or(0, |sent_us| sent_us.saturating_add(lease_us)),
            _ => 0,
        }
    }

    /// What the home said last about the oldest put that has no outcome.
    pub fn trouble(&self) -> Option<&str> {
        self.oldest_unsettled()?.trouble.as_deref()
    }

    /// Returns true if something settled is not acknowledged.
    fn has_settled_more(&self) -> bool {
        self.settled_through > self.acknowledged || self.settled_leading > self.acknowledged_leading
    }

    fn acknowledges_from_us(&self) -> u64 {
        if self.rules.waits_for_lease { self.start.held_until_us } else { 0 }
    }

    /// LOG-54.
    fn stop(&mut self, bytes: &[u8]) -> Vec<Action> {
        let by = match open(bytes) {
            Ok((Header { content: Content::Fence { by }, .. }, _)) => Some(by),
            _ => None,
        };
        self.state = State::Stopped { by };
        vec![Action::Stop { by }]
    }

    /// Moves the end of the settled prefix (LOG-50), and the proof of the lease with it.
    fn advance(&mut self, now_us: u64) {
        while self.in_flight.front().is_some_and(|object| object.is_settled) {
            let Some(object) = self.in_flight.pop_front() else { return };
            self.settled_through = self.settled_through.max(object.through);
            self.settled_leading = self.settled_leading.max(object.leading);
            // LOG-59.
            let sent_us = if self.rules.leases_from_attempt { object.sent_us } else { now_us };
            self.proved_us = self.proved_us.max(Some(sent_us));
        }
    }

    fn oldest_unsettled(&self) -> Option<&InFlight> {
        self.in_flight.iter().find(|object| !object.is_settled)
    }

    fn stall(&self, now: Now) -> Option<Refusal> {
        let object = self
            .oldest_unsettled()
            .filter(|object| now.us.saturating_sub(object.sent_us) >= self.options.unsettled_us_max);
        if let Some(object) = object {
            let for_us = now.us - object.sent_us;
            return Some(Refusal::Unsettled { for_us, cause: object.trouble.clone() });
        }
        let bytes = self.waiting.bytes();
        (bytes > WAITING_BYTES_MAX).then_some(Refusal::Backlog { bytes })
    }

    /// The time from which the next object may be cut; `None` if that takes another event.
    fn cut_at_us(&self) -> Option<u64> {
        if self.fin_cut {
            return None;
        }
        let spaced = self.last_cut.map_or(0, |last| last.us + self.spacing_us());
        if self.next_seq == 1 {
            return Some(spaced);
        }
        let since_us = self.waiting.ready_since_us(self.watermark)?;
        let allowed = match self.in_flight.len() {
            0 => 0,
            IN_FLIGHT_MAX.. => return None,
            _ if self.waiting.bytes() >= WAITING_BYTES_FOR_PUT => 0,
            _ => since_us + self.put_us? / 2 + 1,
        };
        Some(spaced.max(allowed))
    }

    /// Microseconds between two puts.
    fn spacing_us(&self) -> u64 {
        let by_rate = self.options.puts_per_second.map_or(0, |puts| 1_000_000_u64.div_ceil(u64::from(puts.get())));
        self.options.interval_us.max(by_rate)
    }

    /// Makes an object of the waiting commits up to the watermark.
    fn cut(&mut self, now: Now) -> Action {
        let Portion { mut batch, records, leading_count } = self.waiting.take(self.watermark);
        // LOG-51.
        batch.through = if self.waiting.has_commit(self.watermark) { batch.last_ts } else { self.watermark };
        self.cut_leading = leading_count;
        self.counts.commits += u64::from(batch.commits);
        self.counts.record_bytes += records.len() as u64;
        let through = batch.through;
        self.put(Content::Records(batch), &records, through, now)
    }

    /// Puts the next object.
    fn put(&mut self, content: Content, records: &[u8], through: u64, now: Now) -> Action {
        let seq = self.next_seq;
        let place = Place {
            database: self.start.database,
            incarnation: self.start.incarnation,
            seq,
            nonce: nonce_of(self.start.nonce_seed, seq),
            previous: self.previous,
        };
        let unix_us = self.last_cut.map_or(now.unix_us, |last| last.unix_us.max(now.unix_us));
        let is_fin = content == Content::Fin;
        let bytes: Bytes = encode(&Header { place, cut_us: unix_us, content }, records).into();
        self.counts.objects += 1;
        self.counts.bytes += bytes.len() as u64;
        self.next_seq += 1;
        self.previous = header_sum(&bytes);
        self.cut_through = through;
        self.last_cut = Some(Now { us: now.us, unix_us });
        self.fin_cut |= is_fin;
        self.in_flight.push_back(InFlight {
            seq,
            through,
            leading: self.cut_leading,
            sent_us: now.us,
            is_settled: false,
            trouble: None,
        });
        Action::Put { seq, name: stream_name(self.start.incarnation, seq), bytes }
    }
}

#[cfg(test)]
mod tests;
