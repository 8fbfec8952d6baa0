//! The engine against TinkerPop itself: TinkerGraph 3.8.1 in a process beside, asked in the same words.
//!
//! The differential test of `conformance/oracle` holds the engine against an interpreter of our own, which may share our
//! misreadings. Here the reference is the judge, in two ways:
//!
//! - A *corpus* ([`corpus`]) of scripts written by hand, area by area (arithmetic, comparison, dates, merges, …), each with
//!   what the reference answers, type by type, on record. A test holds the engine against the record, so it needs no Java;
//!   `run.sh` asks the reference again and says where the record is wrong.
//! - *Random cases* ([`cases`]): the graphs and traversals of `conformance/oracle`, run on both.
//!
//! What differs and is to stay so has a name in [`known`], with the reason; docs/gremlin.md tells users of those they could
//! meet. Where [`rephrase`] has other words for a random case, the two sides must agree with those. Errors are not compared with each other: both sides must fail, or neither.
//!
//! [`reference`](mod@reference) is the process, [`notation`] how values are written, [`engine`] our side.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod cases;
pub mod corpus;
pub mod engine;
pub mod known;
pub mod notation;
pub mod reference;
pub mod rephrase;

/// What somebody answers: results in their notation, or an error.
pub type Answer = Result<Vec<String>, String>;
