//! The language: Gremlin scripts and bytecode in, [`Bytecode`] out; wire values both ways.
//!
//! [`parse`] reads the gremlin-lang grammar (no Groovy, no lambdas: nothing a client sends
//! is executed as code); [`graphbinary`] and [`graphson`] read and write the formats of the drivers, and
//! [`Encoding`] tells them apart. All end in the same [`Bytecode`]: a list of named instructions with
//! arguments, nested traversals among them. What a step means, and whether its arguments make sense, is for
//! `plan` to say: nothing here knows.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod bytecode;
mod calendar;
mod collections;
pub mod encoding;
#[cfg(test)]
mod generate;
pub mod graphbinary;
pub mod graphson;
pub mod limits;
pub mod message;
pub mod parameters;
mod predicate;
pub mod print;
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
