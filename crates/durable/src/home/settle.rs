//! *Settling* a put-if-absent: finding out whose object has the name, whatever answers got lost on the way.
//!
//! An answer to [`Request::PutNew`] can be lost after the store did the put. The next attempt is then answered `Taken` by
//! the caller's own object. Some stores also answer `Taken` for a put that met another one under way, of which none
//! may be left. So `Taken` and an error of kind `Unknown` are treated alike: the name is read back, and the object's
//! first bytes are compared with the caller's own. They contain a nonce, which no other writer has.
//!
//! ```text
//!            ┌───── absent, or unavailable: wait ─────┐
//!            ▼                                        │
//!  start ─▶ put ── taken, or unknown ──▶ read back ───┤
//!            │ done                                   ├── own bytes ────▶ Own
//!            └──────────────▶ Own                     └── other bytes ──▶ Other
//! ```
//!
//! Every attempt puts the same bytes under the same name. So an earlier attempt that arrives late changes nothing: it is
//! the object, or it is refused. This relies on names that are never freed while a writer may still try them.
//!
//! [`Settle`] decides, and neither waits nor sends anything; its owner does both, in real or simulated time.
//! [`put_settled`] is an owner that waits.

use std::iter;
use std::time::Duration;

use bytes::Bytes;

use super::{Home, HomeError, HomeErrorKind, HomeResult, Name, Put, Reply, Request, WaitHome};

/// The pause after the first attempt. Each further one is twice as long.
const PAUSE_FIRST: Duration = Duration::from_millis(5);

/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// An object to be put, and how to know it again.
#[derive(Clone, Debug)]
pub struct NewObject {
    /// The name.
    pub name: Name,
    /// All bytes.
    pub bytes: Bytes,
    /// So many of the first bytes tell the object from every other writer's, because a nonce is among them. If it is
    /// the length or more, all bytes are compared.
    pub identity_bytes: usize,
}

/// Whose object has the name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Settled {
    /// The caller's.
    Own,
    /// Another writer's. These are its first bytes: as many as were compared, or fewer if the object is shorter.
    Other(Bytes),
}

/// What is to be done next.
#[derive(Debug)]
pub enum Step {
    /// Send the request, and hand over the answer.
    Send(Request),
    /// Send the request after a pause.
    SendAfter(Duration, Request),
    /// The end.
    End(HomeResult<Settled>),
}

/// The settling of one put: takes answers, and says what is to be done next.
#[derive(Debug)]
pub struct Settle {
    object: NewObject,
    /// Requests that may still be sent. `None`: any number.
    attempts_left: Option<u32>,
    pause: Duration,
    /// The state of the generator of jitter.
    jitter: u64,
    /// True if an attempt may have been carried out, so that no failure proves that the name is not ours.
    is_in_doubt: bool,
}

impl Settle {
    /// Settles with at most so many requests; `None`: any number. The seed draws the pauses.
    pub fn new(object: NewObject, attempts: Option<u32>, seed: u64) -> Self {
        Settle { object, attempts_left: attempts, pause: PAUSE_FIRST, jitter: seed, is_in_doubt: false }
    }

    /// The first step.
    pub fn start(&mut self) -> Step {
        let put = self.put();
        self.take_attempt(None, put)
    }

    /// The step after the answer to the last request.
    pub fn answer(&mut self, answer: HomeResult<Reply>) -> Step {
        match answer {
            Ok(Reply::Put(Put::Done)) => Step::End(Ok(Settled::Own)),
            Ok(Reply::Put(Put::Taken)) => {
                self.is_in_doubt = true;
                let read = self.read();
                self.take_attempt(None, read)
            }
            Ok(Reply::Ranges(None)) => self.again(None),
            Ok(Reply::Ranges(Some(found))) => Step::End(Ok(self.compare(found.into_iter().next().unwrap_or_default()))),
            Ok(other) => Step::End(Err(HomeError::new(
                HomeErrorKind::Unknown,
                format!("a home answered the put of {} with {other:?}; this is a bug, report it", self.object.name),
            ))),
            Err(error) if error.kind().is_passing() => {
                self.is_in_doubt |= error.kind() == HomeErrorKind::Unknown;
                self.again(Some(error))
            }
            Err(error) => Step::End(Err(self.in_doubt(error))),
        }
    }

    /// After a pause: reads if an earlier attempt may have succeeded, and puts if the name was seen free.
    fn again(&mut self, error: Option<HomeError>) -> Step {
        let pause = self.next_pause();
        let request = match &error {
            Some(_) if self.is_in_doubt => self.read(),
            _ => self.put(),
        };
        match (self.take_attempt(error, request), pause) {
            (Step::Send(request), pause) => Step::SendAfter(pause, request),
            (end, _) => end,
        }
    }

    /// Sends a request, or gives up if it would be one too many.
    fn take_attempt(&mut self, last: Option<HomeError>, request: Request) -> Step {
        match &mut self.attempts_left {
            Some(0) => {
                let gone = || {
                    let message = format!(
                        "the put of {} was not settled in the attempts that it was given; try again later",
                        self.object.name
                    );
                    HomeError::new(HomeErrorKind::Unavailable, message)
                };
                let error = last.unwrap_or_else(gone);
                return Step::End(Err(self.in_doubt(error)));
            }
            Some(left) => *left -= 1,
            None => {}
        }
        Step::Send(request)
    }

    fn put(&self) -> Request {
        Request::PutNew { name: self.object.name.clone(), bytes: self.object.bytes.clone() }
    }

    /// The first bytes; one more than all bytes, if all are compared, so that a longer object is another one.
    fn read(&self) -> Request {
        let count = self.object.identity_bytes.min(self.object.bytes.len() + 1) as u64;
        Request::Ranges { name: self.object.name.clone(), ranges: iter::once(0..count).collect() }
    }

    fn compare(&self, found: Bytes) -> Settled {
        let own = &self.object.bytes[..self.object.identity_bytes.min(self.object.bytes.len())];
        if found == own { Settled::Own } else { Settled::Other(found) }
    }

    /// An error that ends the settling. If an attempt may have succeeded, the caller must look whose object has the name.
    fn in_doubt(&self, error: HomeError) -> HomeError {
        if self.is_in_doubt { error.with_kind(HomeErrorKind::Unknown) } else { error }
    }

    /// Between half of the pause and all of it, so that writers who met once do not meet again.
    fn next_pause(&mut self) -> Duration {
        let longest = self.pause;
        self.pause = (longest * 2).min(PAUSE_MAX);
        let half = longest / 2;
        half + half.mul_f64(super::draw::fraction(&mut self.jitter))
    }
}

/// Puts an object if the name is free, and waits until it is known whose object has the name.
///
/// `pause` waits for as long as it is told to. Fails with the last error after so many requests, with kind `Unknown` if
/// one of them may have succeeded.
pub fn put_settled(
    home: &dyn Home,
    object: NewObject,
    attempts: Option<u32>,
    seed: u64,
    pause: &mut dyn FnMut(Duration),
) -> HomeResult<Settled> {
    let mut settle = Settle::new(object, attempts, seed);
    let mut step = settle.start();
    loop {
        let request = match step {
            Step::End(end) => return end,
            Step::Send(request) => request,
            Step::SendAfter(duration, request) => {
                pause(duration);
                request
            }
        };
        step = settle.answer(home.wait_for(request));
    }
}

#[cfg(test)]
mod tests;
