//! Requests to the home and their answers, for work that goes step by step: each step is one request, or a wait.
//!
//! These are the requests of a [home](crate::home) that streams need, with names as text. Answers have the home's own
//! errors, whose kind says what is known (HOME-5).

use bytes::Bytes;
use mangrove_graph::Error;

use crate::home::settle::{SettleStep, Settled};
use crate::home::{HomeResult, Put};

/// A request to the home.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// Put an object if no object has the name.
    PutNew {
        /// The name.
        name: String,
        /// The object.
        bytes: Bytes,
    },
    /// Read the first bytes of an object, all of them if there is no limit.
    Read {
        /// The name.
        name: String,
        /// The number of bytes to read at most.
        bytes_max: Option<usize>,
    },
    /// List the names in a directory, in any order. The list has every name that was put before the request was sent.
    List {
        /// The directory, without a slash at its end.
        directory: String,
    },
}

/// The answer to a request, of the request's kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// To a [`Request::PutNew`].
    Put(HomeResult<Put>),
    /// To a [`Request::Read`]: the bytes, as many as were asked for; `None` if no object has the name.
    Read(HomeResult<Option<Bytes>>),
    /// To a [`Request::List`]: the names in full, in any order.
    List(HomeResult<Vec<String>>),
}

/// The next thing to do.
#[derive(Debug)]
pub enum Step<T> {
    /// Make a request, and hand in its answer.
    Ask(Request),
    /// Go on at this time, in microseconds of the caller's clock.
    WaitUntil(u64),
    /// Everything is done.
    Done(T),
    /// It cannot be done.
    Failed(Error),
}

/// The step of a put under a name, or its outcome.
pub(super) enum PutStep<T> {
    Step(Step<T>),
    Settled(Settled),
}

impl<T> PutStep<T> {
    /// The step of a [`crate::home::settle::Settle`] of this name.
    pub(super) fn of(step: SettleStep, name: &str) -> Self {
        let name = name.to_owned();
        PutStep::Step(match step {
            SettleStep::Put(bytes) => Step::Ask(Request::PutNew { name, bytes }),
            SettleStep::Read { bytes_max } => Step::Ask(Request::Read { name, bytes_max }),
            SettleStep::WaitUntil(us) => Step::WaitUntil(us),
            SettleStep::Settled(settled) => return PutStep::Settled(settled),
        })
    }
}
