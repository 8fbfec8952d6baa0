//! All integration tests of this crate in one program, since every program links the whole crate and all that it uses.
//! Tests that need a process of their own are other programs (`Cargo.toml` says why).

mod age;
mod anomalies;
mod basics;
mod bulk;
mod common;
mod composite_indexes;
mod cursors;
mod edge_indexes;
mod indexes;
mod large_commits;
mod log;
mod look_up;
mod many_values;
mod pre_read;
mod scans;
mod serial;
mod serializable;
mod statistics;
mod stress;
