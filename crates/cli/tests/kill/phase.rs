//! The phase of a process when it was killed, and the kills of each phase.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The phase of a process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Phase {
    /// Before the process looked at the directory.
    Starting,
    /// Making a new database, or recovering one.
    Opening,
    /// Loading in bulk.
    Loading,
    /// Committing, and nothing else.
    Writing,
    /// Making a segment of the log.
    Rotating,
    /// Taking a checkpoint, while other threads commit.
    Checkpointing,
    /// Draining, and taking the last checkpoint.
    Stopping,
}

impl Phase {
    /// Returns the phase of a process that seemed to be writing, by the files that it left.
    pub fn of_writing(data: &Path) -> Phase {
        if is_rotating(data) { Phase::Rotating } else { Phase::Writing }
    }
}

/// Returns true if a segment of the log is just being made.
pub fn is_rotating(data: &Path) -> bool {
    let names = fs::read_dir(data.join("wal")).into_iter().flatten().flatten();
    names.into_iter().any(|entry| entry.file_name().to_string_lossy().ends_with(".new"))
}

/// Kills by phase.
#[derive(Default)]
pub struct Phases(BTreeMap<Phase, u64>);

impl Phases {
    pub fn count(&mut self, phase: Phase) {
        *self.0.entry(phase).or_default() += 1;
    }

    /// Prints the kills of each phase, and fails if one of these phases has none. A run of few kills is not checked.
    pub fn check(&self, expected: &[Phase]) {
        let all: u64 = self.0.values().sum();
        println!("{all} kills: {:?}", self.0);
        let enough = 8 * expected.len() as u64;
        let missed: Vec<_> = expected.iter().filter(|phase| !self.0.contains_key(phase)).collect();
        assert!(missed.is_empty() || all < enough, "no kill met {missed:?}: {:?}", self.0);
    }
}
