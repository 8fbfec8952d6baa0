//! Churn: random transactions, and snapshots read in small batches, beside compaction, collection and checkpoints. The
//! database is closed, loses power and is killed again and again. Nothing is lost, and nothing is there twice.
//!
//! - [`model`] defines what transactions do to a graph of maps; [`book`] keeps the acknowledged ones, in the order of
//!   their commits, and those of unknown outcome.
//! - [`writer`] runs transactions of random reads and writes at both isolation levels; [`reader`] reads snapshots
//!   through cursors, lazily. The reads of either ([`observed`]) are compared with the model as of the moment that the
//!   isolation level promises.
//! - [`life`] is one opening of a database; [`whole`] compares everything that the next opening finds.
//!
//! Sizes are the smallest ones, so that every boundary is crossed in seconds. There are three kinds of rounds:
//! [`interleaved`] ones on one thread and on a disk whose power goes off, which a seed repeats exactly; [`threads`] on
//! a directory; and [`kills`] of a process.
//!
//! `MANGROVE_CASES` is the number of rounds of each kind, `MANGROVE_TIMES` a factor of the number in CI,
//! `MANGROVE_FIRST` the first seed. `MANGROVE_CHURN_STEPS` makes rounds longer or shorter.

mod book;
mod interleaved;
mod journal;
mod kills;
mod life;
mod model;
mod names;
mod observed;
mod reader;
mod reading;
mod slow;
mod threads;
mod whole;
mod writer;

/// The steps of a thread in a life; in the interleaved rounds, the steps of all together.
fn step_count(in_ci: usize) -> usize {
    match std::env::var("MANGROVE_CHURN_STEPS") {
        Ok(text) => text.parse().unwrap_or_else(|error| panic!("MANGROVE_CHURN_STEPS={text}: {error}")),
        Err(_) => in_ci,
    }
}

/// Counts of operations, which show that rounds did something.
#[derive(Default)]
struct Tally {
    commits: u64,
    aborted: u64,
    operations: u64,
    checked: u64,
    unknown: u64,
}

impl Tally {
    fn add(&mut self, closed: &book::Closed, operations: u64) {
        self.commits += closed.commits.len() as u64;
        self.aborted += closed.aborted;
        self.unknown += closed.unknown.len() as u64;
        self.checked += closed.checked;
        self.operations += operations;
    }

    /// Prints the counts, and fails if one of them is 0.
    fn print(&self, what: &str) {
        let Tally { commits, aborted, operations, checked, unknown } = self;
        println!(
            "{what}: {operations} operations in {commits} commits, {aborted} commits refused, {unknown} of unknown \
             outcome, {checked} answers checked"
        );
        assert!(*commits > 0 && *checked > 0, "nothing was committed and checked");
    }
}
