//! Durability: a graph outlives its process. This crate has the log of committed transactions, checkpoints, recovery,
//! and the disk below them.
//!
//! | module | what it holds |
//! |---|---|
//! | [`disk`] | files and directories with explicit syncs: the local disk, and one that simulates power cuts |
//! | [`durable`] | a durable graph: recovery, log and checkpoints together |
//! | [`durable_home`] | a durable graph in a home: take-over, recovery, log and checkpoints together |
//! | [`follow`] | following the owner of a graph in a home, and becoming the owner |
//! | [`reading`] | opening a graph read-only, without a change on the disk |
//! | [`recovery`] | loading the newest checkpoint and replaying the log after it |
//! | [`verify`] | reading and checking every file, without a change on the disk |
//! | [`log`] | the log of acknowledged commits, written in groups and read after a crash |
//! | [`checkpoint`] | page images in files: taking checkpoints and loading them |
//! | [`manifest`] | the file that names all files of a state of the graph |
//! | [`home`] | objects that are written once, in memory, in a directory or in an object store: one interface, one contract |
//! | [`open`] | what a checkpoint has for other programs |
//! | [`restore`], [`backup`] | a state of a graph as a new database; copies of states in another home |
//! | `extract` | the state of a graph at a moment, found and copied |
//! | [`states`], [`pin`] | the states of a graph that its home keeps, and pins that hold them for readers |
//! | [`stream`] | the log of a graph in an object store: objects, their writer, fencing |
//! | [`feed`] | the change feed: committed changes in order, read from either log |
//! | [`inspect`] | a home as it is stored |
//! | [`content`] | the decoders below the checksums, for fuzzing |
//! | [`lock`] | the lock that admits one process at a time to a directory |
//! | `codec` | numbers, text, values and ids as bytes: the vocabulary of every file of this crate |
//! | `damage` | errors for damaged files and unknown formats |
//! | `ambient` | what comes from the surroundings: the time of day, random ids |
//! | `sync` | the concurrency primitives of the log, which model tests replace |
//!
//! Invariants carry names (**LOG-n**). Each is defined in the header of the module that owns the data, and cited where
//! code keeps it. Layouts, protocols and the assumptions about disks are in `docs/design/durability.md`.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod ambient;
pub mod backup;
pub mod checkpoint;
mod codec;
pub mod content;
mod damage;
pub mod disk;
pub mod durable;
pub mod durable_home;
mod extract;
pub mod feed;
pub mod follow;
pub mod home;
pub mod inspect;
pub mod lock;
pub mod log;
pub mod manifest;
pub mod open;
pub mod pin;
pub mod reading;
pub mod recovery;
pub mod restore;
pub mod states;
pub mod stream;
mod sync;
#[cfg(test)]
mod testing;
pub mod verify;
