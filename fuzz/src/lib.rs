//! Fuzz targets for every decoder of untrusted input.
//!
//! A [`Target`] is one decoder (or the whole path of a script through the engine, or of a query through a server) as a
//! function of bytes. It may refuse its input. It must not panic, not overflow a stack of [`STACK_BYTES`], not take
//! longer than [`Target::time_max`], and not hold more memory than [`Target::memory_max`] allows for that many bytes.
//! If the accepted value can be encoded again, the target also checks that decoding gives an equal value.
//!
//! Two drivers show inputs to the targets:
//!
//! - [`drive`], on any toolchain: everything in [`seeds`] and in `corpus/`, then mutations ([`mutate`]). The mutations
//!   know numbers, lengths, brackets and the words of each language. CI shows every target the same number of them on
//!   every machine ([`Target::quick_inputs`]); `make fuzz` continues for a given time.
//! - `coverage/`, with Rust's nightly toolchain and a C++ compiler: libFuzzer, which keeps inputs that reach new
//!   branches (`fuzz/run.sh coverage`).
//!
//! An input that did harm is added to `corpus/<target>/` in the commit that fixes it, and is shown to the target from
//! then on.
//!
//! Configuration files of the server have a test of their own (`crates/cli/src/config/any_file.rs`), because only the
//! program reads them.
//!
//! Not here: hostile clients of a running server, with its timeouts and connections (`conformance/abuse`); damaged
//! files that have checksums (the tests of `durable` flip every bit of those).

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod compose;
pub mod drive;
pub mod mutate;
pub mod seeds;
mod targets;

use std::time::Duration;

pub use targets::TARGETS;

/// The stack of an input's thread: the size of the server's.
pub const STACK_BYTES: usize = 2 << 20;

/// The form of inputs, for mutations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InputShape {
    /// Numbers of one to eight bytes, lengths among them.
    Binary,
    /// Words, numbers and brackets; with the words that mutations insert.
    Text(&'static [&'static str]),
}

/// A function that reads untrusted bytes.
#[derive(Debug)]
pub struct Target {
    /// The name of the target and of its folder in `corpus/`.
    pub name: &'static str,
    /// The form of its inputs.
    pub shape: InputShape,
    /// Reads an input. Returns true if it accepts it. Panics if a check fails.
    pub run: fn(&[u8]) -> bool,
    /// The text of an input, if its bytes are not readable.
    pub says: Option<fn(&[u8]) -> String>,
    /// Inputs to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Bytes of memory that an input may take: a constant, and a number for each of its bytes.
    memory: (usize, usize),
    /// The processor time that an input may take.
    pub time_max: Duration,
    /// The number of mutations in a quick run: about a second without optimization.
    pub quick_inputs: u64,
}

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

impl Target {
    /// A target whose inputs may take a second, and a mebibyte of memory plus 512 bytes for each of their own: decoding
    /// wire bytes must not take more. A value of one byte becomes one of 32 bytes, in collections that double.
    pub const fn new(
        name: &'static str,
        shape: InputShape,
        run: fn(&[u8]) -> bool,
        seeds: fn() -> Vec<Vec<u8>>,
    ) -> Self {
        let (memory, time_max) = ((MIB, 512), Duration::from_secs(1));
        Target { name, shape, run, says: None, seeds, memory, time_max, quick_inputs: 100_000 }
    }

    /// The target with this name.
    pub fn find(name: &str) -> Option<&'static Target> {
        TARGETS.iter().find(|target| target.name == name)
    }

    /// An input in readable form.
    pub fn text(&self, input: &[u8]) -> String {
        match self.says {
            Some(says) => says(input),
            None => String::from_utf8_lossy(input).escape_debug().to_string(),
        }
    }

    /// The bytes of memory that an input of this length may take.
    pub fn memory_max(&self, length: usize) -> usize {
        self.memory.0 + self.memory.1 * length
    }
}
