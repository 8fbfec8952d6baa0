//! The metrics that `/metrics` shows, in Prometheus' text format.
//!
//! [`exposition`] writes the format. [`meters`] has the counts of the server, [`graphs`] those of each graph.
//! [`executors`] has the load of the executors, [`process`] reads the figures of the operating system, [`memory`] those
//! of the memory budget. Metrics are part of the interface: names, types and labels change only with a note in the
//! changelog.

pub mod executors;
pub mod exposition;
pub mod graphs;
pub mod memory;
pub mod meters;
pub mod process;
