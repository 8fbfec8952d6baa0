//! *Settling* a put if absent: finding out whose object has the name, whatever answers got lost on the way.
//!
//! A store may say "taken" although its caller's own object has the name: an earlier attempt succeeded, and its answer
//! was lost. A store may also give no answer, or say "taken" because two puts met, of which neither succeeded. So a put
//! ends with a look at the object, whose bytes include a nonce that no other writer has:
//!
//! ```text
//!          done ────────────────────────────────────────────────▶ own
//!  put ──┤                                    own bytes ────────▶ own
//!   ▲      taken, unknown ──▶ read the name ──┤ other bytes ────▶ another's
//!   │      │ unavailable       ▲  │ no answer │ absent
//!   │      ▼                   └──┘ pause     │
//!   └──── pause ◀─────────────────────────────┘
//! ```
//!
//! - **LOG-52.** A retry puts the same bytes, the nonce included, under the same name. So whichever attempt succeeds, the
//!   writer knows its object again; an earlier attempt that arrives late is the same object; and no two objects of one
//!   writer compete for a name. This relies on names that are never freed while a writer may still try them.
//! - **LOG-53.** The answer "taken" is no outcome. Only the object under the name says whose it is.
//!
//! [`Settle`] decides, and neither waits nor sends anything. It gives up no outcome: a put may have been carried out, or
//! may be carried out later. Its owner sends the requests and waits, in real or simulated time, and may give up;
//! [`Settle::is_in_doubt`] tells what is then known. [`put_settled`] is an owner that waits on its thread.

use std::time::Duration;

use bytes::Bytes;

use super::{Home, HomeError, HomeErrorKind, HomeResult, Name, Put, WaitHome};

/// The longest pause before the first retry, in microseconds. Each further one is twice as long.
const PAUSE_US_FIRST: u64 = 5_000;
/// The longest pause, in microseconds.
const PAUSE_US_MAX: u64 = 1_000_000;
/// So many of the first bytes draw the pauses: they include the nonce.
const DRAWING_BYTES: usize = 144;

/// An object to be put, and how its writer knows it again.
#[derive(Clone, Debug)]
pub struct NewObject {
    /// All bytes.
    pub bytes: Bytes,
    /// How they are compared with the bytes that are found under the name.
    pub likeness: Likeness,
}

/// How a writer tells its own object from another one.
#[derive(Clone, Copy, Debug)]
pub enum Likeness {
    /// By its first bytes, which include a nonce.
    First {
        /// How many bytes.
        count: usize,
        /// Returns true if bytes, of an object or of its beginning, are as some writer made them. If they are not, the
        /// whole object is read, again and again: so a bit that flips on the way is not taken for another writer.
        is_intact: fn(&[u8]) -> bool,
    },
    /// By all bytes.
    Whole,
}

/// The next thing to do for a put.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SettleStep {
    /// Put the bytes under the name if no object has it. [`Settle::put_answered`] takes the answer.
    Put(Bytes),
    /// Read the first bytes under the name, all of them if there is no limit. [`Settle::read_answered`] takes the
    /// answer.
    Read {
        /// The number of bytes to read at most.
        bytes_max: Option<usize>,
    },
    /// Call [`Settle::resumed`] at this time (microseconds of the owner's clock).
    WaitUntil(u64),
    /// The outcome.
    Settled(Settled),
}

/// Whose object has the name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Settled {
    /// The caller's.
    Own,
    /// Another writer's. These are its bytes: all of them, or as many of the first as were compared.
    Another(Bytes),
}

/// The rules of settling, which only a simulation breaks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SettleRules {
    /// The answer "taken" is checked by a read (LOG-53).
    pub(crate) checks_taken: bool,
    /// How a retry changes an object that is known by its first bytes. `None`: not at all (LOG-52).
    #[cfg(test)]
    pub(crate) changes_retry: Option<ChangeOfRetry>,
}

/// Makes another object of an object, by the number of the retry.
#[cfg(test)]
pub(crate) type ChangeOfRetry = fn(&[u8], u32) -> Vec<u8>;

impl Default for SettleRules {
    fn default() -> Self {
        SettleRules {
            checks_taken: true,
            #[cfg(test)]
            changes_retry: None,
        }
    }
}

/// One put until its outcome is known.
#[derive(Debug)]
pub struct Settle {
    object: NewObject,
    /// True if the first bytes have shown another object, so that all of it must be read.
    reads_whole: bool,
    /// True if the next step after the pause is a put; otherwise it is a read.
    puts_next: bool,
    /// True if an attempt may have been carried out.
    is_in_doubt: bool,
    /// Pauses so far.
    pauses: u32,
    rules: SettleRules,
}

impl Settle {
    /// A put of an object. The first step is to put it.
    pub fn new(object: NewObject) -> (Self, SettleStep) {
        Settle::with_rules(object, SettleRules::default())
    }

    pub(crate) fn with_rules(object: NewObject, rules: SettleRules) -> (Self, SettleStep) {
        let first = SettleStep::Put(object.bytes.clone());
        (Settle { object, reads_whole: false, puts_next: true, is_in_doubt: false, pauses: 0, rules }, first)
    }

    /// Returns true if an attempt may have been carried out, or may be later. Otherwise the name is not the caller's.
    pub fn is_in_doubt(&self) -> bool {
        self.is_in_doubt
    }

    /// Takes the answer to a put, at this time in microseconds.
    pub fn put_answered(&mut self, answer: &HomeResult<Put>, now_us: u64) -> SettleStep {
        match answer {
            Ok(Put::Done) => SettleStep::Settled(Settled::Own),
            Ok(Put::Taken) if !self.rules.checks_taken => SettleStep::Settled(Settled::Another(Bytes::new())),
            // HOME-5: nothing was changed. But an earlier attempt may have been carried out.
            Err(error) if error.kind() != HomeErrorKind::Unknown => self.pause(!self.is_in_doubt, now_us),
            // LOG-53.
            Ok(Put::Taken) | Err(_) => {
                self.is_in_doubt = true;
                self.reads_whole = false;
                self.read()
            }
        }
    }

    /// Takes the answer to a read, at this time in microseconds. `None`: no object has the name.
    pub fn read_answered(&mut self, answer: HomeResult<Option<Bytes>>, now_us: u64) -> SettleStep {
        let found = match answer {
            Ok(Some(found)) => found,
            Ok(None) => return self.pause(true, now_us),
            Err(_) => return self.pause(false, now_us),
        };
        if self.is_own(&found) {
            return SettleStep::Settled(Settled::Own);
        }
        match self.object.likeness {
            Likeness::First { is_intact, .. } if !is_intact(&found) => {
                if self.reads_whole {
                    // A bit may have flipped on the way.
                    return self.pause(false, now_us);
                }
                self.reads_whole = true;
                self.read()
            }
            Likeness::First { .. } | Likeness::Whole => SettleStep::Settled(Settled::Another(found)),
        }
    }

    /// Goes on after a pause.
    pub fn resumed(&mut self) -> SettleStep {
        if !self.puts_next {
            return self.read();
        }
        #[cfg(test)]
        if let (Likeness::First { .. }, Some(change)) = (self.object.likeness, self.rules.changes_retry) {
            self.object.bytes = change(&self.object.bytes, self.pauses).into();
        }
        // LOG-52.
        SettleStep::Put(self.object.bytes.clone())
    }

    fn read(&self) -> SettleStep {
        SettleStep::Read { bytes_max: self.compared_bytes() }
    }

    /// How many of the first bytes are compared; `None`: all.
    fn compared_bytes(&self) -> Option<usize> {
        match self.object.likeness {
            Likeness::First { count, .. } if !self.reads_whole => Some(count),
            Likeness::First { .. } | Likeness::Whole => None,
        }
    }

    fn is_own(&self, found: &[u8]) -> bool {
        let own = &self.object.bytes;
        let count = self.compared_bytes().map_or(own.len(), |count| count.min(own.len()));
        own[..count] == *found
    }

    /// Waits before the next put or read, for between half of the longest pause and all of it. The checksum of the bytes
    /// is as good as a random number: it tells writers apart, so they do not retry in step.
    fn pause(&mut self, puts_next: bool, now_us: u64) -> SettleStep {
        let longest_us = (PAUSE_US_FIRST << self.pauses.min(16)).min(PAUSE_US_MAX);
        self.pauses = self.pauses.saturating_add(1);
        self.puts_next = puts_next;
        let first = &self.object.bytes[..self.object.bytes.len().min(DRAWING_BYTES)];
        let random = u64::from(crc32c::crc32c_append(self.pauses, first));
        SettleStep::WaitUntil(now_us + longest_us / 2 + random % (longest_us / 2))
    }
}

/// Puts an object if the name is free, and waits until it is known whose object has the name.
///
/// `pause` waits for as long as it is told to. Fails with the last error after so many requests (`None`: any number),
/// or if the home answers that another attempt would fail too. The kind is `Unknown` if an attempt may have been
/// carried out.
pub fn put_settled(
    home: &dyn Home,
    name: &Name,
    object: NewObject,
    requests: Option<u32>,
    pause: &mut dyn FnMut(Duration),
) -> HomeResult<Settled> {
    let (mut settle, mut step) = Settle::new(object);
    let mut left = requests;
    let mut last = HomeError::new(
        HomeErrorKind::Unavailable,
        format!(
            "the put of {} was not settled in the requests that it was given; try again later",
            home.describe(name.as_str())
        ),
    );
    loop {
        step = match step {
            SettleStep::Settled(settled) => return Ok(settled),
            _ if left == Some(0) => return Err(in_doubt(&settle, last)),
            // The clock stands still at 0, so the time is the length of the pause.
            SettleStep::WaitUntil(us) => {
                pause(Duration::from_micros(us));
                settle.resumed()
            }
            request => {
                left = left.map(|left| left - 1);
                let (next, error) = carry_out(&mut settle, home, name, request);
                if let Some(error) = error {
                    if !error.kind().is_passing() {
                        return Err(in_doubt(&settle, error));
                    }
                    last = error;
                }
                next
            }
        };
    }
}

/// Sends the request of a step and hands in the answer. Returns the next step, and the error if there was one.
fn carry_out(settle: &mut Settle, home: &dyn Home, name: &Name, step: SettleStep) -> (SettleStep, Option<HomeError>) {
    match step {
        SettleStep::Put(bytes) => {
            let answer = home.put_new(name, bytes);
            let next = settle.put_answered(&answer, 0);
            (next, answer.err())
        }
        SettleStep::Read { bytes_max } => {
            let answer = home.first_bytes(name, bytes_max);
            let error = answer.as_ref().err().cloned();
            (settle.read_answered(answer, 0), error)
        }
        SettleStep::WaitUntil(_) | SettleStep::Settled(_) => (step, None),
    }
}

/// An error that ends the settling. If an attempt may have succeeded, the caller must look whose object has the name.
fn in_doubt(settle: &Settle, error: HomeError) -> HomeError {
    if settle.is_in_doubt() { error.with_kind(HomeErrorKind::Unknown) } else { error }
}

#[cfg(test)]
mod tests;
