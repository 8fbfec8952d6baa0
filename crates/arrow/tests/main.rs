//! All integration tests of this crate in one program, since every program links the whole crate and all that it uses.
//! Tests that need a process of their own are other programs (`Cargo.toml` says why).

mod round_trip;
mod types;
