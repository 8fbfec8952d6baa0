//! The test oracle: a plain, obviously correct interpreter of Gremlin, and random cases on which to compare the engine
//! with it.
//!
//! - [`graph`]: a property graph in two `BTreeMap`s.
//! - [`interpreter`]: recursive and eager; every step takes all traversers and returns all traversers.
//! - [`generate`]: graphs and traversals from a seed, each with how its answer may be compared.
//! - [`compare`]: whether two answers are equal, as far as Gremlin determines them.
//! - [`harness`]: runs both sides, compares, shrinks, reports.
//! - [`script`], [`show`]: short forms of bytecode and values.
//!
//! The oracle shares with the engine only the vocabulary (values, comparison, arithmetic, bytecode): no plan, no store,
//! no dataflow. It is slow on purpose: nested loops over whole lists, no index, no bulk, no laziness. It refuses a step
//! that it does not support ([`interpreter::Failure::Unsupported`]) rather than guess.

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
