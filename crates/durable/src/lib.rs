//! What makes a graph outlive its process: the log of committed transactions, and the disk under it.
//!
//! | module | what it holds |
//! |---|---|
//! | [`disk`] | files and directories with explicit syncs; the local disk, and one that simulates power cuts |
//! | [`durable`] | opening a graph: all of the following under one roof |
//! | [`reading`] | opening a graph to read it, and changing nothing |
//! | [`recovery`] | the newest checkpoint, and the log after it |
//! | [`verify`] | reading everything, and changing nothing |
//! | [`log`] | every commit that was acknowledged; written in groups, read after a crash |
//! | [`checkpoint`] | images of pages in files: taking checkpoints, and loading them |
//! | [`manifest`] | which files make up the graph |
//! | [`content`] | the decoders behind the checksums, for who tests them with any bytes |
//! | [`lock`] | one process at a time |
//! | [`codec`] | numbers, text, values and ids as bytes: the vocabulary of every file of this crate |
//!
//! Layouts, protocols and what is assumed of disks are in `docs/design/durability.md`.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod checkpoint;
pub mod codec;
pub mod content;
mod damage;
pub mod disk;
pub mod durable;
pub mod lock;
pub mod log;
pub mod manifest;
pub mod reading;
pub mod recovery;
mod sync;
#[cfg(test)]
mod testing;
pub mod verify;
