//! The memory that messages and results take from the budget of the process.
//!
//! [`budget`] draws on the memory budget of the process; [`weight`] estimates how large a value is before it is
//! written.

pub mod budget;
pub mod weight;
