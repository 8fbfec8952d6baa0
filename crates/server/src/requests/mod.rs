//! A request between its decoding and its answer.
//!
//! [`protocol`] decodes a message into a [`call`]. [`job`] is an accepted request with the destination of its answer.
//! [`program`] turns a script or bytecode into queries and runs them in a [`transaction`] or on their own. [`worker`]
//! runs all that on a bounded number of threads. [`sessions`] is the register of sessions.

pub mod call;
pub mod job;
pub mod program;
pub mod protocol;
pub mod sessions;
pub mod transaction;
pub mod worker;
