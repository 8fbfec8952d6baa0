//! A put if absent whose outcome is known for certain.
//!
//! A store may say "taken" although its caller's own object has the name: an earlier attempt succeeded, and its answer
//! was lost. A store may also give no answer, or say "taken" because two puts met, of which neither succeeded. So a put
//! ends with a look at the object:
//!
//! ```text
//!          done ────────────────────────────────────────────────▶ ours
//!  put ──┤                                    own object ───────▶ ours
//!          taken, unknown ──▶ read the name ──┤ another's ──────▶ another's
//!   ▲                          ▲  │ unknown    │ absent
//!   │                          └──┘ back-off   │
//!   └──────── back-off: the same bytes ◀───────┘
//! ```
//!
//! - **LOG-52.** A retry puts the same bytes, the nonce included, under the same name. So whichever attempt succeeds, the
//!   writer knows its object again; and no two objects of one writer compete for a name.
//! - **LOG-53.** The answer "taken" is no outcome. Only the object under the name says whose it is.
//!
//! No outcome is ever given up: a put may have been carried out, or may be carried out later.

use std::sync::Arc;

use super::Rules;
use super::format::{self, END_BYTES_MAX};

/// The first wait before a retry, in microseconds. Each further one is twice as long.
const BACKOFF_US_MIN: u64 = 5_000;
/// The longest wait before a retry, in microseconds.
const BACKOFF_US_MAX: u64 = 1_000_000;

/// What a store says to a put if absent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PutAnswer {
    /// The object was put.
    Done,
    /// An object of this name exists, or another put of the name is in progress.
    Taken,
    /// The request may have been carried out, may be carried out later, or never. The text gives the reason.
    Unknown(String),
}

/// What a store says to a read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReadAnswer {
    /// No object has the name.
    Absent,
    /// The object's bytes, as many as were asked for.
    Found(Arc<[u8]>),
    /// There is no answer. The text gives the reason.
    Unknown(String),
}

/// How a writer knows its own object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Likeness {
    /// An object of a stream: by its first bytes, which include the nonce. Bytes of another object count only if they
    /// decode; so a bit that flips on the way ends no stream.
    Stream,
    /// By all bytes.
    Whole,
}

/// The next thing to do for a put.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SettleStep {
    /// Put the bytes under the name if no object has it. [`Settle::put_answered`] takes the answer.
    Put(Arc<[u8]>),
    /// Read the first bytes under the name, all of them if there is no limit. [`Settle::read_answered`] takes the
    /// answer.
    Read {
        /// The number of bytes to read at most.
        bytes_max: Option<usize>,
    },
    /// Call [`Settle::resumed`] at this time (microseconds of the caller's clock).
    WaitUntil(u64),
    /// The outcome.
    Settled(Settled),
}

/// The outcome of a put.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Settled {
    /// The object under the name is the caller's.
    Ours,
    /// The object under the name is another's. These are its bytes.
    Another(Arc<[u8]>),
}

/// One put until its outcome is known.
#[derive(Debug)]
pub struct Settle {
    bytes: Arc<[u8]>,
    likeness: Likeness,
    /// True if the prefix has shown that the object is another's, so that the whole object must be read.
    reads_whole: bool,
    /// True if the next step after the wait is a put; otherwise it is a read.
    puts_next: bool,
    /// Retries so far.
    retries: u32,
    rules: Rules,
}

impl Settle {
    /// A put of these bytes. The first step is to put them.
    pub fn new(bytes: Arc<[u8]>, likeness: Likeness) -> (Self, SettleStep) {
        Settle::with_rules(bytes, likeness, Rules::default())
    }

    pub(super) fn with_rules(bytes: Arc<[u8]>, likeness: Likeness, rules: Rules) -> (Self, SettleStep) {
        let first = SettleStep::Put(bytes.clone());
        (Settle { bytes, likeness, reads_whole: false, puts_next: true, retries: 0, rules }, first)
    }

    /// Takes the answer to a put.
    pub fn put_answered(&mut self, answer: &PutAnswer) -> SettleStep {
        match answer {
            PutAnswer::Done => SettleStep::Settled(Settled::Ours),
            PutAnswer::Taken if !self.rules.settles_taken => SettleStep::Settled(Settled::Another([].into())),
            // LOG-53.
            PutAnswer::Taken | PutAnswer::Unknown(_) => {
                self.reads_whole = false;
                self.read()
            }
        }
    }

    /// Takes the answer to a read, at this time in microseconds.
    pub fn read_answered(&mut self, answer: ReadAnswer, now_us: u64) -> SettleStep {
        match answer {
            ReadAnswer::Absent => self.wait(true, now_us),
            ReadAnswer::Unknown(_) => self.wait(false, now_us),
            ReadAnswer::Found(found) if self.is_own(&found) => SettleStep::Settled(Settled::Ours),
            ReadAnswer::Found(found) => match self.likeness {
                Likeness::Whole => SettleStep::Settled(Settled::Another(found)),
                Likeness::Stream if format::decode(&found).is_ok() => SettleStep::Settled(Settled::Another(found)),
                Likeness::Stream if !self.reads_whole => {
                    self.reads_whole = true;
                    self.read()
                }
                // A bit may have flipped on the way.
                Likeness::Stream => self.wait(false, now_us),
            },
        }
    }

    /// Goes on after a wait.
    pub fn resumed(&mut self) -> SettleStep {
        if !self.puts_next {
            return self.read();
        }
        #[cfg(test)]
        if !self.rules.keeps_nonce && self.likeness == Likeness::Stream {
            let mut nonce = [0; 16];
            nonce[..4].copy_from_slice(&self.retries.to_le_bytes());
            self.bytes = format::with_nonce(&self.bytes, nonce).into();
        }
        // LOG-52.
        SettleStep::Put(self.bytes.clone())
    }

    fn read(&self) -> SettleStep {
        let prefix = self.likeness == Likeness::Stream && !self.reads_whole;
        SettleStep::Read { bytes_max: prefix.then_some(END_BYTES_MAX) }
    }

    fn is_own(&self, found: &[u8]) -> bool {
        let own = match self.likeness {
            Likeness::Stream if !self.reads_whole => &self.bytes[..self.bytes.len().min(END_BYTES_MAX)],
            _ => &self.bytes[..],
        };
        own == found
    }

    /// Waits before the next put or read: between half and the whole of the back-off. The checksum of the bytes is as
    /// good as a random number: it tells writers apart, so they do not retry in step.
    fn wait(&mut self, puts_next: bool, now_us: u64) -> SettleStep {
        let backoff_us = (BACKOFF_US_MIN << self.retries.min(16)).min(BACKOFF_US_MAX);
        self.retries = self.retries.saturating_add(1);
        self.puts_next = puts_next;
        let random = u64::from(crc32c::crc32c_append(self.retries, &self.bytes[..self.bytes.len().min(END_BYTES_MAX)]));
        SettleStep::WaitUntil(now_us + backoff_us / 2 + random % (backoff_us / 2))
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::super::format::{Batch, Content, Header, Place, encode};
    use super::*;

    fn object(nonce: u8, content: Content) -> Arc<[u8]> {
        let place = Place { database: Uuid::from_u128(1), incarnation: 2, seq: 3, nonce: [nonce; 16], previous: 0 };
        let payload: &[u8] = if matches!(content, Content::Records(_)) { &[7; 500] } else { &[] };
        encode(&Header { place, cut_us: 0, content }, payload).into()
    }

    fn records(nonce: u8) -> Arc<[u8]> {
        object(nonce, Content::Records(Batch::default()))
    }

    fn prefix(bytes: &[u8]) -> ReadAnswer {
        ReadAnswer::Found(bytes[..bytes.len().min(END_BYTES_MAX)].into())
    }

    const PREFIX: SettleStep = SettleStep::Read { bytes_max: Some(END_BYTES_MAX) };

    #[test]
    fn an_answer_that_may_be_wrong_is_checked_by_a_read() {
        let own = records(1);
        for answer in [PutAnswer::Taken, PutAnswer::Unknown("time-out".into())] {
            let (mut settle, first) = Settle::new(own.clone(), Likeness::Stream);
            assert_eq!(first, SettleStep::Put(own.clone()));
            assert_eq!(settle.put_answered(&answer), PREFIX);
            assert_eq!(settle.read_answered(prefix(&own), 0), SettleStep::Settled(Settled::Ours));
        }
        let (mut settle, _) = Settle::new(own, Likeness::Stream);
        assert_eq!(settle.put_answered(&PutAnswer::Done), SettleStep::Settled(Settled::Ours));
    }

    #[test]
    fn a_retry_carries_the_same_bytes_after_a_growing_wait() {
        let own = records(1);
        let (mut settle, _) = Settle::new(own.clone(), Likeness::Stream);
        let mut waits = Vec::new();
        for _ in 0..12 {
            assert_eq!(settle.put_answered(&PutAnswer::Taken), PREFIX);
            let SettleStep::WaitUntil(until) = settle.read_answered(ReadAnswer::Absent, 1000) else {
                panic!("no wait")
            };
            waits.push(until - 1000);
            assert_eq!(settle.resumed(), SettleStep::Put(own.clone()));
        }
        assert!((2_500..5_000).contains(&waits[0]), "{waits:?}");
        assert!(waits.iter().all(|wait| *wait < BACKOFF_US_MAX) && waits[11] >= BACKOFF_US_MAX / 2, "{waits:?}");
    }

    #[test]
    fn an_end_of_the_stream_is_another_s_object() {
        for content in [Content::Fence { by: 9 }, Content::Fin] {
            let end = object(8, content);
            let (mut settle, _) = Settle::new(records(1), Likeness::Stream);
            settle.put_answered(&PutAnswer::Taken);
            assert_eq!(settle.read_answered(prefix(&end), 0), SettleStep::Settled(Settled::Another(end)));
        }
    }

    #[test]
    fn records_of_another_writer_are_read_whole_and_flipped_bits_are_read_again() {
        let (own, other) = (records(1), records(2));
        let (mut settle, _) = Settle::new(own.clone(), Likeness::Stream);
        settle.put_answered(&PutAnswer::Taken);
        let whole = SettleStep::Read { bytes_max: None };
        assert_eq!(settle.read_answered(prefix(&other), 0), whole);
        let mut flipped = own.to_vec();
        flipped[50] ^= 1;
        let step = settle.read_answered(ReadAnswer::Found(flipped.into()), 0);
        assert!(matches!(step, SettleStep::WaitUntil(_)), "{step:?}");
        assert_eq!(settle.resumed(), whole);
        assert_eq!(
            settle.read_answered(ReadAnswer::Found(other.clone()), 0),
            SettleStep::Settled(Settled::Another(other))
        );
        let (mut settle, _) = Settle::new([1, 2].into(), Likeness::Whole);
        assert_eq!(settle.put_answered(&PutAnswer::Taken), whole);
        let another = SettleStep::Settled(Settled::Another([1, 3].into()));
        assert_eq!(settle.read_answered(ReadAnswer::Found([1, 3].into()), 0), another);
    }
}
