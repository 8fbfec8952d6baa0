//! The boundary between protocol and database: the traits and requests through which the server uses a graph engine.
//!
//! [`contract`] has the traits, [`request`] is one query, [`cancel`] stops a query from outside, and [`running`] is the
//! list of the queries that run, and [`tenant`] tells for whom they
//! run. In production `graphs::database` is the only implementation; tests have others.

pub mod cancel;
pub mod contract;
pub mod request;
pub mod running;
pub mod tenant;
