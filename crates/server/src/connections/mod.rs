//! Connections below their requests: bounds on their number, and on the bytes and the time of each.
//!
//! [`pending`] holds connections before their first request, [`permits`] counts those after it, [`peer`] has the facts
//! that a request knows of its connection. [`allowance`] bounds the bytes of a client that has not logged in,
//! [`stall`] ends writes that make no progress, [`tls`] is encryption.

pub mod allowance;
pub mod peer;
pub mod pending;
pub mod permits;
pub mod stall;
pub mod tls;
