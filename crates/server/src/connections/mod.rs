//! A connection below its requests: how many there may be, and how fast and how much each may send and take.
//!
//! [`pending`] holds connections before their first request, [`permits`] counts those after it, [`peer`] is what a
//! request knows of its connection. [`allowance`] bounds the bytes of a client that has not logged in, [`stall`] ends
//! writes that make no progress, [`tls`] is encryption.

pub mod allowance;
pub mod peer;
pub mod pending;
pub mod permits;
pub mod stall;
pub mod tls;
