//! The phases of a process, and the number of kills in each.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The phase of a process at the moment of a kill.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Phase {
    /// Before it opened the directory.
    Starting,
    /// Creating a new database, or recovering one.
    Opening,
    /// Loading in bulk.
    Loading,
    /// Committing only.
    Writing,
    /// Creating a new segment of the log.
    Rotating,
    /// Taking a checkpoint, while other threads commit.
    Checkpointing,
    /// Draining, and taking the last checkpoint.
    Stopping,
}

impl Phase {
    /// The phase of a process that was killed while it wrote, judged by its files.
    pub fn of_writing(data: &Path) -> Phase {
        if is_rotating(data) { Phase::Rotating } else { Phase::Writing }
    }
}

/// Returns true if the files show an unfinished new segment of the log.
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

    /// Prints the number of kills of each phase, and fails if an expected phase had none. With few kills, no phase is
    /// expected.
    pub fn check(&self, expected: &[Phase]) {
        let all: u64 = self.0.values().sum();
        println!("{all} kills: {:?}", self.0);
        let enough = 8 * expected.len() as u64;
        let missed: Vec<_> = expected.iter().filter(|phase| !self.0.contains_key(phase)).collect();
        assert!(missed.is_empty() || all < enough, "no kill met {missed:?}: {:?}", self.0);
    }
}
