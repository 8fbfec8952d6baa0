//! Tests of the built program, run as a user runs it.

mod admin;
mod algo;
mod bench;
mod common;
mod console;
mod disk;
mod durable;
mod export;
mod follow;
mod load;
mod load_url;
mod manual;
mod metrics;
mod notes;
mod operations;
mod query;
mod reading;
mod serve;
mod server;
mod stats;
