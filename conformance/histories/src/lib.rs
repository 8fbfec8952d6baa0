//! Checks histories of transactions against isolation levels, from outside: it knows no database.
//!
//! A *history* is what clients saw: transactions with their operations and results, who ran them, when they began
//! and ended, and whether they committed. From it the checker infers which version of which object came before
//! which, and from that the dependencies of Adya's theory; a cycle of dependencies is an anomaly, and the kinds
//! of dependency in it say which one. The method is Elle's (Kingsbury and Alvaro, VLDB 2020): choose objects whose
//! values tell their own history.
//!
//! | object | operations | what a read tells |
//! |---|---|---|
//! | list | append, read | the whole order of versions |
//! | register | write, read | who wrote what is read; the order, as far as transactions read before they write |
//! | set | add, remove, read | which additions and removals came before, and which come after |
//!
//! Every value is written at most once to an object: that is what makes a read tell where it comes from. A set
//! stands for whatever is asked of many elements at once (the neighbors of a vertex, the vertices with a property,
//! the vertex under an id): a dependency over a set is one over a predicate.
//!
//! ```
//! use mangrove_histories::{History, Kind, Level, Object, Operation, Transaction, check};
//!
//! let (x, y) = (Object(1), Object(2));
//! let mut history = History::default();
//! // Each reads what the other writes: write skew.
//! history.push(Transaction::committed(0, 0, 10).read(x, None).write(y, 1));
//! history.push(Transaction::committed(1, 1, 11).read(y, None).write(x, 2));
//! let report = check(&history).unwrap();
//! assert_eq!(report.anomalies[0].kind, Kind::G2Item);
//! assert!(report.violations(Level::Snapshot).next().is_none());
//! assert!(report.violations(Level::Serializable).next().is_some());
//! ```
//!
//! The checker is *sound*: what it reports has happened, under any order of versions the database may claim. It is
//! not complete: an anomaly that no read bears witness to is not found, so workloads read much. Its time is
//! linear in operations and dependencies, as long as the reads of one object are short: use objects for some dozen
//! versions and then new ones.
//!
//! Three files to read: [`history`], `lists` (the plainest inference), `cycles`.

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
