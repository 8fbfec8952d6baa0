//! Durability: the cost of a commit, a checkpoint and a recovery, on a disk and in homes of objects.
//!
//! Beside small commits stands the floor: a 4 KiB write to a file filled with zeros, and `fdatasync`, the least that a
//! system must do before it acknowledges. Other embedded stores do the same writes in the same run. The suite writes to
//! a directory of its own and removes it at the end.
//!
//! | module | content |
//! |---|---|
//! | `clients` | threads that commit and wait |
//! | `system` | the small writes; the floor and the database |
//! | `rivals` | redb and SQLite |
//! | `commits` | small transactions by clients |
//! | `graph` | a graph in a directory |
//! | `checkpoints`, `recovery` | checkpoints; the opening of a directory |
//! | `homes` | graphs in homes of objects: commits with the price of their requests, write amplification, openings |
//!
//! Deliberately not here: loss of power. Tests with a simulated disk cover it; here the disk is trusted.

mod checkpoints;
mod clients;
mod commits;
mod graph;
mod homes;
mod recovery;
mod rivals;
mod system;

use mangrove::Result;

use super::Context;
use crate::options::Suite;
use crate::report::{Growing, Metric, Row};
use crate::run_directory::{RunDirectory, is_in_memory};

const NAME: &str = Suite::Durability.name();

pub(super) fn run(context: &Context<'_>, report: &mut Growing<'_>) -> Result<()> {
    let run_directory = RunDirectory::new(context.options.choices.directory.as_deref())?;
    disk(&run_directory, report);
    commits::run(context, &run_directory, report)?;
    checkpoints::run(context, &run_directory, report)?;
    recovery::run(context, &run_directory, report)?;
    homes::run(context, report)
}

/// Reports the file system, without which the figures mean nothing.
fn disk(run_directory: &RunDirectory, report: &mut Growing<'_>) {
    let (kind, in_memory) = match run_directory.file_system() {
        Some(kind) if is_in_memory(&kind) => (format!("{kind}: no disk, figures say nothing; see --dir"), true),
        Some(kind) => (kind, false),
        None => ("unknown".to_owned(), false),
    };
    report.push(row("file system in memory", &kind, Metric::Count, f64::from(u8::from(in_memory)), ""));
}

fn row(case: &str, variant: &str, metric: Metric, value: f64, unit: &'static str) -> Row {
    Row::single(NAME, case, variant, metric, value, unit)
}
