//! Rules of the house that no compiler checks, read off the project's own sources.
//!
//! | module | rule |
//! |---|---|
//! | [`imports`] | the modules of a crate import one another in one direction only: no circle |
//! | [`invariants`] | an invariant has one home, a global name, and at least one place that cites it |
//! | [`documents`] | every link from one document to another leads to a file, and to a heading of it |
//! | [`headers`] | every source file begins with a sentence about what it is for |
//!
//! Everything here reads files and changes none. `tests/house.rs` runs all of it; the program `mangrove-tidy` draws the
//! imports of a crate.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod documents;
pub mod files;
pub mod headers;
pub mod imports;
pub mod invariants;
