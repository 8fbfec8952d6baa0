//! Everything that reads what a stranger wrote, shown anything.
//!
//! A [`Target`] is one decoder (or the whole way of a script through the engine, or of a query through a server) as a
//! function of bytes. It may refuse them in any way it likes; it must not panic, not overflow a stack of [`STACK_BYTES`],
//! not take longer than [`Target::time_max`] and not hold more memory than [`Target::memory_max`] allows for so many bytes.
//! Where what was accepted can be written again, the target also checks that it then reads as the same.
//!
//! Two drivers show inputs to the targets:
//!
//! - [`drive`], on any toolchain: everything in [`seeds`] and in `corpus/`, then mutations of it ([`mutate`]), which
//!   know numbers, lengths, brackets and the words of each language. CI shows every target the same number of them everywhere
//!   ([`Target::quick_inputs`]); `make fuzz` goes on for as long as one likes.
//! - `coverage/`, where Rust's nightly toolchain and a C++ compiler are: libFuzzer, which keeps what reaches new
//!   branches (`fuzz/run.sh coverage`).
//!
//! An input that was found to do harm is put into `corpus/<target>/` beside the fix, and is shown to the target from then on.
//!
//! Configuration files of the server are shown to the program by a test of its own (`crates/cli/src/config/any_file.rs`),
//! since nobody but the program reads them.
//!
//! Not here: hostile bytes against a server that runs, with its timeouts and connections (`conformance/abuse`); files
//! behind their checksums (the tests of `durable` flip every bit of those).

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod compose;
pub mod drive;
pub mod mutate;
pub mod seeds;
mod targets;

use std::time::Duration;

pub use targets::TARGETS;

/// The stack that an input has: what the server's threads have.
pub const STACK_BYTES: usize = 2 << 20;

/// What inputs look like, for who mutates them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// Numbers of one to eight bytes, lengths among them.
    Binary,
    /// Words, numbers and brackets; the words that are worth a try.
    Text(&'static [&'static str]),
}

/// Something that reads bytes.
#[derive(Debug)]
pub struct Target {
    /// Its name, and its folder's in `corpus/`.
    pub name: &'static str,
    /// What its inputs look like.
    pub shape: Shape,
    /// Reads an input; whether it was accepted. Panics where something is wrong.
    pub run: fn(&[u8]) -> bool,
    /// What an input says, where its bytes are not to be read.
    pub says: Option<fn(&[u8]) -> String>,
    /// Inputs to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Bytes that an input may make it hold: so many, and so many more for each of its own.
    memory: (usize, usize),
    /// How much processor time an input may take.
    pub time_max: Duration,
    /// How many mutations a quick run shows: about a second's, unoptimized.
    pub quick_inputs: u64,
}

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

impl Target {
    /// A target whose inputs take a second at most, and of memory a mebibyte and 512 bytes for each of their own: reading
    /// wire bytes is to take no more than that. A value of one byte becomes one of 32, in collections that double.
    pub const fn new(name: &'static str, shape: Shape, run: fn(&[u8]) -> bool, seeds: fn() -> Vec<Vec<u8>>) -> Self {
        let (memory, time_max) = ((MIB, 512), Duration::from_secs(1));
        Target { name, shape, run, says: None, seeds, memory, time_max, quick_inputs: 100_000 }
    }

    /// The target of this name.
    pub fn find(name: &str) -> Option<&'static Target> {
        TARGETS.iter().find(|target| target.name == name)
    }

    /// An input as people read it.
    pub fn text(&self, input: &[u8]) -> String {
        match self.says {
            Some(says) => says(input),
            None => String::from_utf8_lossy(input).escape_debug().to_string(),
        }
    }

    /// How many bytes an input of this length may make it hold.
    pub fn memory_max(&self, length: usize) -> usize {
        self.memory.0 + self.memory.1 * length
    }
}
