//! Checks histories of transactions against isolation levels, from outside: it knows no database.
//!
//! A *history* is what clients saw: transactions with their operations and results, their processes, the times of their
//! begins and ends, and their outcomes. From it the checker infers the order of the versions of each object, and from
//! that the dependencies of Adya's theory. A cycle of dependencies is an anomaly; the kinds of dependency in it
//! determine which one. The method is Elle's (Kingsbury and Alvaro, VLDB 2020): choose objects whose values reveal
//! their own history.
//!
//! | object | operations | what a read reveals |
//! |---|---|---|
//! | list | append, read | the whole order of versions |
//! | register | write, read | the writer of the value; the order, as far as transactions read before they write |
//! | set | add, remove, read | the additions and removals that came before, and those that come after |
//!
//! Every value is written at most once to an object, so a read reveals its writer. A set stands for a query over many
//! elements (the neighbors of a vertex, the vertices with a property, the vertex with an id): a dependency over a set
//! is a dependency over a predicate.
//!
//! ```
//! use mangrove_histories::{History, Kind, Level, Object, Operation, Transaction, check};
//!
//! let (x, y) = (Object(1), Object(2));
//! let mut history = History::default();
//! // Each transaction reads the register that the other writes: write skew.
//! history.push(Transaction::committed(0, 0, 10).read(x, None).write(y, 1));
//! history.push(Transaction::committed(1, 1, 11).read(y, None).write(x, 2));
//! let report = check(&history).unwrap();
//! assert_eq!(report.anomalies[0].kind, Kind::G2Item);
//! assert!(report.violations(Level::Snapshot).next().is_none());
//! assert!(report.violations(Level::Serializable).next().is_some());
//! ```
//!
//! The checker is *sound*: every reported anomaly has happened, whatever order of versions the database claims. It is
//! not complete: it misses an anomaly that no read reveals, so workloads should read much. Its time is linear in
//! operations and dependencies, as long as the reads of one object are short: use an object for a few dozen versions,
//! then a new one.
//!
//! Three files to read first: [`history`], `lists` (the simplest inference), `cycles`.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod anomaly;
mod check;
mod cycles;
mod explain;
mod graph;
pub mod history;
mod index;
mod internal;
mod lists;
mod order;
mod recorder;
mod registers;
mod sets;

pub use anomaly::{Anomaly, Kind, Level, Order, Report};
pub use check::check;
pub use history::{History, InvalidHistory, Object, Operation, Outcome, Transaction};
pub use recorder::{Draft, Recorder};
