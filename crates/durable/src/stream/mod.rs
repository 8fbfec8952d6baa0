//! The log of a graph whose home is an object store: a stream of objects for each incarnation of an owner.
//!
//! An *owner* is a process that writes the graph. Each opening of the graph claims an *incarnation*, a number that is
//! never used again, and writes a stream of its own. A *successor* fences the streams before it: it puts a FENCE under
//! the first free name of each, so that the put of an owner that still runs meets it.
//!
//! The protocol makes no requests, has no threads and reads no clock: what happened is handed in, and actions come back.
//! Puts are settled by [`crate::home::settle`]. Two modules carry the actions out with threads and a
//! [home](crate::home): [`log`] for an owner, [`take_over`] for a successor.
//!
//! | module | what it holds |
//! |---|---|
//! | [`names`] | the names of objects |
//! | [`format`](mod@format) | the bytes of an object |
//! | `request` | requests to the store and their answers, for steps that go one after the other |
//! | `rules` | the rules of this module, one by one, for a simulation that breaks them |
//! | [`manifest_put`] | the put of a manifest, until it is known whether it counts |
//! | [`fence`] | the steps of a successor: claim, fence, read the tails |
//! | [`writer`] | the stream of an owner: group commit, acknowledgements, stalls, the read lease |
//! | `sim` | owners, clients and a home by seed |
//! | [`clock`], `ask` | the time, and requests to a home, for the modules below |
//! | [`log`] | the log of a graph, for transactions |
//! | `next_object`, `read_ahead` | the next object of a stream that is read, checked, and how far streams were read; reads ahead |
//! | [`take_over`] | a take-over on a thread that waits |
//! | [`tails`] | the tails of streams, for recovery |
//!
//! Invariants (the argument is in `docs/design/stream.md`; the headers of the modules have further ones):
//!
//! - **LOG-57.** FENCE and FIN objects and the claims of incarnations are never deleted. So a put that was sent before
//!   the stream ended, and arrives at any later time, finds its name taken.

mod ask;
pub mod clock;
pub mod fence;
pub mod format;
pub mod log;
pub mod manifest_put;
pub mod names;
pub(crate) mod next_object;
pub(crate) mod read_ahead;
mod request;
mod rules;
#[cfg(test)]
mod settle_tests;
#[cfg(test)]
mod sim;
pub mod tails;
pub mod take_over;
pub mod writer;

pub use request::{Answer, Request, Step};
pub(crate) use rules::Rules;

/// The time of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Now {
    /// Microseconds of a clock that never falls, and goes on while the machine sleeps.
    pub us: u64,
    /// Microseconds since 1970. For people alone; no rule rests on it.
    pub unix_us: u64,
}
