//! Durability: what a commit, a checkpoint and a recovery take, on a disk.
//!
//! Beside small commits stands the floor: a 4 KiB write to a file filled with zeros and `fdatasync`, the least that a system
//! can do before it acknowledges. Other embedded stores do the same writes in the same run. All of it is
//! written to a directory of its own, which goes when the run is over.
//!
//! | module | what it holds |
//! |---|---|
//! | `place` | the directory |
//! | `clients` | threads that commit and wait |
//! | `system` | the small writes; the floor and the database |
//! | `rivals` | redb and SQLite |
//! | `commits` | small transactions by clients |
//! | `graph` | a graph in a directory |
//! | `checkpoints`, `recovery` | what their names say |
//!
//! Deliberately not here: loss of power. That is for tests with a disk that is simulated; here the disk is believed.

mod checkpoints;
mod clients;
mod commits;
mod graph;
mod place;
mod recovery;
mod rivals;
mod system;

use mangrove::Result;

use self::place::{Place, is_in_memory};
use super::Context;
use crate::options::Suite;
use crate::report::{Growing, Metric, Row};

const NAME: &str = Suite::Durability.name();

pub(super) fn run(context: &Context<'_>, report: &mut Growing<'_>) -> Result<()> {
    let place = Place::new(context.options.choices.directory.as_deref())?;
    disk(&place, report);
    commits::run(context, &place, report)?;
    checkpoints::run(context, &place, report)?;
    recovery::run(context, &place, report)
}

/// Says what is written to, as figures mean nothing without.
fn disk(place: &Place, report: &mut Growing<'_>) {
    let (kind, in_memory) = match place.file_system() {
        Some(kind) if is_in_memory(&kind) => (format!("{kind}: no disk, figures say nothing; see --dir"), true),
        Some(kind) => (kind, false),
        None => ("unknown".to_owned(), false),
    };
    report.push(row("file system in memory", &kind, Metric::Count, f64::from(u8::from(in_memory)), ""));
}

fn row(case: &str, variant: &str, metric: Metric, value: f64, unit: &'static str) -> Row {
    Row::single(NAME, case, variant, metric, value, unit)
}
