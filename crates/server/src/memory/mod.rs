//! What messages and results take of the memory of the process.
//!
//! [`budget`] draws on the memory budget of the process; [`weight`] estimates how large a value is before it is
//! written.

pub mod budget;
pub mod weight;
