//! The built program, run as a user runs it.

mod admin;
mod bench;
mod common;
mod console;
mod disk;
mod durable;
mod export;
mod load;
mod manual;
mod metrics;
mod operations;
mod query;
mod serve;
mod server;
mod stats;
