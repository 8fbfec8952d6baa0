//! All integration tests of this crate in one program, since every program links the whole crate and all that it uses.
//! Tests that need a process of their own are other programs (`Cargo.toml` says why).

mod common;
mod datasets;
mod documents;
mod export;
mod files;
mod limits;
mod parquet;
mod tables;
mod values;
