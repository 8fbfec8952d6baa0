//! The language Gremlin: scripts and wire messages in, [`Bytecode`] out; results out as wire messages.
//!
//! [`parse`] reads scripts in the gremlin-lang grammar (no Groovy, no lambdas). [`graphbinary`] and [`graphson`] read
//! and write the formats of the drivers, and [`Encoding`] chooses one by its media type. All three end in the same
//! [`Bytecode`]: a list of named instructions with arguments, nested traversals among them. Crate `plan` decides what a
//! step means and whether its arguments make sense.
//!
//! - **WIRE-1.** A client's message is data. Nothing that it names is loaded or run: lambdas are refused, and classes
//!   are only names.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod bytecode;
mod calendar;
mod collections;
mod encoding;
#[cfg(test)]
mod generate;
pub mod graphbinary;
pub mod graphson;
pub mod limits;
pub mod message;
pub mod parameters;
mod predicate;
mod print;
pub mod script;
mod suggest;
mod terms;
pub mod text;
pub mod vocabulary;

pub use bytecode::{
    Argument, Bytecode, Cardinality, Column, Comparison, Instruction, Merge, Operator, Order, Pick, Pop, Position,
    Predicate, Scope, TextOperation,
};
pub use encoding::{Encoding, as_texts, decode_graphbinary_frame, split_frame};
pub use parameters::{Parameters, bind};
pub use print::Literal;
pub use script::{
    ParseOptions, ScriptStatement, Statement, Statements, Terminal, TransactionCommand, is_unfinished, parse, parse_one,
};
pub use suggest::suggest;
pub use text::ProfileTable;
