//! The test oracle: a plain, obviously right interpreter of Gremlin, and random cases to hold the engine
//! against it.
//!
//! - [`graph`]: a property graph in two `BTreeMap`s.
//! - [`interpreter`]: recursive and eager; every step takes all traversers and gives all traversers.
//! - [`generate`]: graphs and traversals from a seed, each with what may be expected of its answer.
//! - [`compare`]: whether two answers are the same, as far as Gremlin fixes them.
//! - [`harness`]: runs both sides, compares, shrinks, reports.
//! - [`script`], [`show`]: bytecode and values in few words.
//!
//! The oracle shares with the engine only the vocabulary (values, comparison, arithmetic, bytecode): no
//! plan, no store, no dataflow. It is slow on purpose: nested loops over whole lists, no index, no bulk, no
//! laziness. What it does not know it refuses ([`interpreter::Failure::Unsupported`]) rather than guess.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod compare;
pub mod generate;
pub mod graph;
pub mod harness;
pub mod interpreter;
pub mod script;
pub mod show;

pub use compare::{Determinism, Expectation, Form};
pub use graph::Graph;
pub use harness::{Engine, Verdict};
pub use interpreter::Interpreter;
