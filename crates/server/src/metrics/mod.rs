//! What `/metrics` shows, in Prometheus' text format.
//!
//! [`exposition`] writes the format. [`meters`] counts what the server does, [`graphs`] what each graph does,
//! [`process`] and [`memory`] read what the operating system and the memory budget say. Metrics are part of the
//! interface: names, types and labels change only with a note in the changelog.

pub mod exposition;
pub mod graphs;
pub mod memory;
pub mod meters;
pub mod process;
