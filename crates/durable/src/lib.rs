//! Durability: what lets a graph survive its process. The log of committed transactions, checkpoints, recovery, and the
//! disk below.
//!
//! | module | what it holds |
//! |---|---|
//! | [`disk`] | files and directories with explicit syncs: the local disk, and one that simulates power cuts |
//! | [`durable`] | a durable graph: recovery, log and checkpoints together |
//! | [`reading`] | opening a graph read-only, without a change on the disk |
//! | [`recovery`] | loading the newest checkpoint and replaying the log after it |
//! | [`verify`] | reading and checking every file, without a change on the disk |
//! | [`log`] | the log of acknowledged commits, written in groups and read after a crash |
//! | [`checkpoint`] | page images in files: taking checkpoints and loading them |
//! | [`manifest`] | which files make up the graph |
//! | [`content`] | the decoders below the checksums, for fuzzing |
//! | [`lock`] | one process at a time |
//! | `codec` | numbers, text, values and ids as bytes: the vocabulary of every file of this crate |
//!
//! Invariants carry names (**LOG-n**). Each is defined in the header of the module that owns the data, and cited where
//! code keeps it. Layouts, protocols and what is assumed of a disk are in `docs/design/durability.md`.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod checkpoint;
mod codec;
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
