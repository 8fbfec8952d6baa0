//! Churn: random transactions, and snapshots read in small batches, beside compaction, collection and checkpoints, on a
//! database that is closed, cut off and killed again and again. No element is lost or duplicated.
//!
//! - [`model`] applies transactions to a graph of maps; [`book`] keeps acknowledged transactions in the order of their
//!   commits, and those of unknown outcome.
//! - [`writer`] runs transactions of random reads and writes at both isolation levels; [`reader`] reads snapshots
//!   through cursors, lazily. Their observations ([`observed`]) are compared with the model at the moment that the
//!   isolation level promises.
//! - [`life`] is one opening of a database, [`whole`] compares everything that the next opening finds.
//!
//! Sizes are the smallest that there are, so that every boundary is crossed in seconds. There are three kinds of
//! rounds: [`interleaved`] ones on one thread, on a disk whose power goes off, which a seed repeats to the letter;
//! [`threads`] on a directory; and [`kills`] of a process.
//!
//! `MANGROVE_CASES` sets the number of rounds of each kind, or `MANGROVE_TIMES` a multiple of CI's number;
//! `MANGROVE_FIRST` is the first seed. `MANGROVE_CHURN_STEPS` makes rounds longer or shorter.

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

/// The number of steps of a thread in a life; in the interleaved rounds, of all threads together.
fn step_count(in_ci: usize) -> usize {
    match std::env::var("MANGROVE_CHURN_STEPS") {
        Ok(text) => text.parse().unwrap_or_else(|error| panic!("MANGROVE_CHURN_STEPS={text}: {error}")),
        Err(_) => in_ci,
    }
}

/// Counts of what rounds did, so that an idle test is noticed.
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

    /// Prints the counts, and fails if one is zero.
    fn print(&self, what: &str) {
        let Tally { commits, aborted, operations, checked, unknown } = self;
        println!(
            "{what}: {operations} operations in {commits} commits, {aborted} commits refused, {unknown} of unknown \
             outcome, {checked} answers checked"
        );
        assert!(*commits > 0 && *checked > 0, "nothing was committed and checked");
    }
}
