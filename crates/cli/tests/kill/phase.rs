//! What a process was at when it was killed, and how many kills each phase got.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// See the module.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Phase {
    /// Before it looked at the directory.
    Starting,
    /// Making a new database, or recovering one.
    Opening,
    /// Loading in bulk.
    Loading,
    /// Committing, and nothing else.
    Writing,
    /// Making a new segment of the log.
    Rotating,
    /// Taking a checkpoint, while others commit.
    Checkpointing,
    /// Draining, and taking the last checkpoint.
    Stopping,
}

impl Phase {
    /// What a process that seemed to be writing was at, by what it has left.
    pub fn of_writing(data: &Path) -> Phase {
        if is_rotating(data) { Phase::Rotating } else { Phase::Writing }
    }
}

/// Whether a segment of the log is just being made.
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

    /// Says how many each had, and fails if one of these had none. Of few kills nothing is expected.
    pub fn check(&self, expected: &[Phase]) {
        let all: u64 = self.0.values().sum();
        println!("{all} kills: {:?}", self.0);
        let enough = 8 * expected.len() as u64;
        let missed: Vec<_> = expected.iter().filter(|phase| !self.0.contains_key(phase)).collect();
        assert!(missed.is_empty() || all < enough, "no kill met {missed:?}: {:?}", self.0);
    }
}
