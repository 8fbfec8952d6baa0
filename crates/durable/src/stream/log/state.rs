//! The state of a log in a home: the writer, the puts that are being settled, and the requests that are to be sent.
//!
//! It has no threads and no lock. Each event leaves requests in the outbox, which the threads of the log send.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use super::super::Now;
use super::super::format::{END_BYTES_MAX, new_object};
use super::super::names::stream_name;
use super::super::request::{Answer, Request};
use super::super::writer::{Action, HandedOver, ReadPermit, StreamStart, Writer};
use super::ObjectLogOptions;
use crate::home::settle::{Settle, SettleStep};
use crate::home::{HomeError, HomeResult, Put};
use crate::log::record::NameCounts;

/// Why a request is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    /// The put of this object.
    Object(u64),
    /// A look whether the stream is open.
    Look,
}

/// A put that is not settled.
#[derive(Debug)]
struct Settling {
    settle: Settle,
    /// When its pause ends.
    resumes_us: Option<u64>,
}

/// The state of a log. All its functions take the time, in microseconds of one clock.
#[derive(Debug)]
pub(super) struct LogState {
    pub(super) writer: Writer,
    incarnation: u64,
    settling: BTreeMap<u64, Settling>,
    /// Requests that are to be sent, in order.
    pub(super) outbox: VecDeque<(Purpose, Request)>,
    /// True while a thread sends what is in the outbox.
    pub(super) is_sending: bool,
    /// The names that were handed over.
    names: NameCounts,
    /// Commits and leading records that are acknowledged.
    pub(super) acknowledged: Acknowledged,
    /// True once nothing is sent any more: the stream has ended, or the log was dropped.
    pub(super) is_over: bool,
    /// Grows with each event that may let a reader go on.
    pub(super) news: u64,
    /// Readers that wait.
    pub(super) readers: usize,
    /// When the home last failed a look, or gave no answer in the time that a reader waits.
    away_us: Option<u64>,
    /// When the thread that keeps the time will wake, if it sleeps and has a time.
    pub(super) wakes_us: Option<u64>,
    /// Requests that were sent.
    pub(super) requests: u64,
    /// Reads that were served without a proof.
    pub(super) unproved_reads: u64,
}

/// How far acknowledgements have come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Acknowledged {
    /// Commits up to this timestamp.
    pub(super) ts: u64,
    /// Records that belong to no commit, up to this number.
    pub(super) leading: u64,
}

/// How long the home counts as away after it has failed a look, in microseconds. Meanwhile, reads do not wait.
const AWAY_US: u64 = 1_000_000;

impl LogState {
    pub(super) fn new(start: StreamStart, options: &ObjectLogOptions, names: NameCounts, now: Now) -> Self {
        let (writer, actions) = Writer::new(start, options.of_writer(), now);
        let mut state = LogState {
            writer,
            incarnation: start.incarnation,
            settling: BTreeMap::new(),
            outbox: VecDeque::new(),
            is_sending: false,
            names,
            acknowledged: Acknowledged { ts: start.durable_ts, leading: 0 },
            is_over: false,
            news: 0,
            readers: 0,
            away_us: None,
            wakes_us: None,
            requests: 0,
            unproved_reads: 0,
        };
        state.act(actions, now);
        state
    }

    /// Takes a commit. `names_of` makes the record of the names between two counts.
    pub(super) fn hand_over(
        &mut self,
        commit: HandedOver,
        names: NameCounts,
        names_of: impl FnOnce(NameCounts, NameCounts) -> Vec<u8>,
        now: Now,
    ) {
        self.add_names(names, names_of, now);
        let actions = self.writer.hand_over(commit, now);
        self.act(actions, now);
    }

    /// Takes a record that belongs to no commit, and whose caller waits until it is acknowledged. Returns its number.
    pub(super) fn lead(
        &mut self,
        record: &[u8],
        names: NameCounts,
        names_of: impl FnOnce(NameCounts, NameCounts) -> Vec<u8>,
        now: Now,
    ) -> u64 {
        self.add_names(names, names_of, now);
        let (number, actions) = self.writer.lead(record, true, now);
        self.act(actions, now);
        number
    }

    /// Adds names that were not handed over. They begin the next object, so they come before every commit that is
    /// handed over after them (LOG-11).
    fn add_names(&mut self, names: NameCounts, names_of: impl FnOnce(NameCounts, NameCounts) -> Vec<u8>, now: Now) {
        let known = self.names;
        let all = known.max(names);
        if all != known {
            let (_, actions) = self.writer.lead(&names_of(known, all), false, now);
            self.names = all;
            self.act(actions, now);
        }
    }

    pub(super) fn watermark(&mut self, watermark: u64, now: Now) {
        let actions = self.writer.watermark(watermark, now);
        self.act(actions, now);
    }

    pub(super) fn finish(&mut self, now: Now) {
        let actions = self.writer.finish(now);
        self.act(actions, now);
    }

    /// Ends everything at once, without FIN.
    pub(super) fn close(&mut self) {
        self.is_over = true;
        self.settling.clear();
        self.outbox.clear();
    }

    /// Asks for a reader that has drawn its begin. `is_late`: it has waited for as long as readers wait, so the home
    /// counts as away.
    pub(super) fn ask_to_read(&mut self, is_late: bool, now: Now) -> ReadPermit {
        if self.is_over {
            return ReadPermit::Never;
        }
        let (permit, actions) = self.writer.ask_to_read(now);
        self.act(actions, now);
        if is_late && permit == ReadPermit::Later(None) {
            self.away_us = Some(now.us);
        }
        permit
    }

    /// Returns true if the home has given no answer to a look for long, or has failed one, not long ago.
    pub(super) fn is_home_away(&self, now: Now) -> bool {
        self.away_us.is_some_and(|since_us| now.us.saturating_sub(since_us) < AWAY_US)
    }

    /// Takes the answer to a request.
    pub(super) fn answered(&mut self, purpose: Purpose, answer: Answer, now: Now) {
        if self.is_over {
            return;
        }
        match (purpose, answer) {
            (Purpose::Object(seq), Answer::Put(answer)) => self.put_answered(seq, &answer, now),
            (Purpose::Object(seq), Answer::Read(answer)) => self.read_answered(seq, answer, now),
            (Purpose::Look, Answer::Read(answer)) => {
                self.away_us = answer.is_err().then_some(now.us);
                let actions = self.writer.probed(&answer, now);
                self.act(actions, now);
            }
            (_, _) => {}
        }
        self.news += 1;
    }

    fn put_answered(&mut self, seq: u64, answer: &HomeResult<Put>, now: Now) {
        self.note_trouble(seq, answer.as_ref().err());
        let Some(put) = self.settling.get_mut(&seq) else { return };
        let step = put.settle.put_answered(answer, now.us);
        self.settle_step(seq, step, now);
    }

    fn read_answered(&mut self, seq: u64, answer: HomeResult<Option<Bytes>>, now: Now) {
        self.note_trouble(seq, answer.as_ref().err());
        let Some(put) = self.settling.get_mut(&seq) else { return };
        let step = put.settle.read_answered(answer, now.us);
        self.settle_step(seq, step, now);
    }

    fn note_trouble(&mut self, seq: u64, error: Option<&HomeError>) {
        if let Some(error) = error {
            self.writer.troubled(seq, error.message());
        }
    }

    /// Does what the time allows.
    pub(super) fn time(&mut self, now: Now) {
        if self.is_over {
            return;
        }
        let is_due = |put: &Settling| put.resumes_us.is_some_and(|at| at <= now.us);
        let due: Vec<u64> = self.settling.iter().filter(|(_, put)| is_due(put)).map(|(seq, _)| *seq).collect();
        for seq in due {
            if let Some(put) = self.settling.get_mut(&seq) {
                put.resumes_us = None;
                let step = put.settle.resumed();
                self.settle_step(seq, step, now);
            }
        }
        let actions = self.writer.time(now);
        self.act(actions, now);
        self.news += 1;
    }

    /// The next time at which [`Self::time`] has something to do, if no event comes before.
    pub(super) fn wake_at_us(&self) -> Option<u64> {
        if self.is_over {
            return None;
        }
        let pauses = self.settling.values().filter_map(|put| put.resumes_us);
        pauses.chain(self.writer.wake_at_us()).min()
    }

    fn settle_step(&mut self, seq: u64, step: SettleStep, now: Now) {
        let name = || stream_name(self.incarnation, seq);
        let request = match step {
            SettleStep::Put(bytes) => Request::PutNew { name: name(), bytes },
            SettleStep::Read { bytes_max } => Request::Read { name: name(), bytes_max },
            SettleStep::WaitUntil(us) => {
                if let Some(put) = self.settling.get_mut(&seq) {
                    put.resumes_us = Some(us);
                }
                return;
            }
            SettleStep::Settled(settled) => {
                self.settling.remove(&seq);
                let actions = self.writer.settled(seq, &settled, now);
                return self.act(actions, now);
            }
        };
        self.send(Purpose::Object(seq), request);
    }

    /// Leaves a request in the outbox, unless nothing is sent any more.
    fn send(&mut self, purpose: Purpose, request: Request) {
        if self.is_over {
            return;
        }
        self.requests += 1;
        self.outbox.push_back((purpose, request));
    }

    fn act(&mut self, actions: Vec<Action>, now: Now) {
        for action in actions {
            match action {
                Action::Put { seq, bytes, .. } => {
                    let (settle, first) = Settle::new(new_object(bytes));
                    self.settling.insert(seq, Settling { settle, resumes_us: None });
                    self.settle_step(seq, first, now);
                }
                Action::Probe { name } => {
                    self.send(Purpose::Look, Request::Read { name, bytes_max: Some(END_BYTES_MAX) });
                }
                Action::Acknowledge { through, leading } => {
                    self.acknowledged = Acknowledged { ts: through, leading };
                }
                // LOG-54: what is in flight or paused is given up.
                Action::Stop { .. } | Action::Finish => self.close(),
                Action::Stall | Action::Resume => {}
            }
        }
    }
}
