//! Rules of this project that no compiler checks, checked on its sources.
//!
//! | module | rule |
//! |---|---|
//! | [`imports`] | the modules of a crate import one another in one direction only: no cycle |
//! | [`invariants`] | an invariant has one definition, a global name, and at least one line of code that cites it |
//! | [`documents`] | every link from one document to another leads to a file, and to a heading of it |
//! | [`headers`] | every source file begins with a comment on its module |
//! | [`programs`] | every file of integration tests is part of a program, and no target without tests has one |
//!
//! This crate reads files and changes none. `tests/house.rs` checks all rules; the program `mangrove-tidy` draws the
//! imports of a crate.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod documents;
pub mod files;
pub mod headers;
pub mod imports;
pub mod invariants;
pub mod programs;
