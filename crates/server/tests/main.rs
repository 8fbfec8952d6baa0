//! The integration tests of this crate in one program, since every program links the whole engine. Tests that need a process
//! of their own, and those that measure times, are other programs (`Cargo.toml` says why).

mod budget;
mod changes;
mod common;
mod database;
mod differential;
mod durability;
mod encodings;
mod protocol;
mod races;
