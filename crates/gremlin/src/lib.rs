//! The language: Gremlin scripts and bytecode in, [`Bytecode`] out; wire values both ways.
//!
//! [`parse`] reads the gremlin-lang grammar (no Groovy, no lambdas: nothing a client sends
//! is executed as code); [`graphbinary`] reads and writes GraphBinary 1. Both end in the same
//! [`Bytecode`]: a list of named instructions with arguments, nested traversals among them. What a step
//! means, and whether its arguments make sense, is for `plan` to say: nothing here knows.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod bytecode;
mod collections;
#[cfg(test)]
mod generate;
pub mod graphbinary;
pub mod limits;
pub mod parameters;
mod predicate;
pub mod print;
pub mod script;
mod suggest;

pub use bytecode::{
    Argument, Bytecode, Cardinality, Column, Comparison, Instruction, Merge, Operator, Order, Pick, Pop, Position,
    Predicate, Scope, TextOperation,
};
pub use parameters::{Parameters, bind};
pub use print::Literal;
pub use script::{ParseOptions, Statement, Terminal, TransactionCommand, parse, parse_one};
pub use suggest::suggest;
