//! The options of a log in a home.

use std::num::NonZeroU32;
use std::time::Duration;

use super::super::writer::WriterOptions;
use crate::log::FeedContent;

/// How a log in a home puts objects, and how long its callers wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ObjectLogOptions {
    /// The time between two puts at least. It makes commits slower, and puts fewer.
    pub log_interval: Duration,
    /// Puts a second at most, evenly spread; `None`: any number. Retries do not count.
    pub puts_per_second: Option<NonZeroU32>,
    /// The length of the read lease, which must be the same for all owners of the graph; zero: reads need no lease,
    /// because one process at a time opens the graph.
    pub lease: Duration,
    /// How long a put may be unconfirmed before commits are refused.
    pub stall_after: Duration,
    /// How long a commit waits for the home before its outcome counts as unknown.
    pub commit_wait: Duration,
    /// How long a read waits for a proof that no other process has opened the graph.
    pub read_wait: Duration,
    /// If no proof can be had because the home does not answer, reads are served without one. Otherwise they fail.
    pub reads_without_home: bool,
    /// What the log has for readers of the change feed.
    pub feed: FeedContent,
}

impl Default for ObjectLogOptions {
    fn default() -> Self {
        ObjectLogOptions {
            log_interval: Duration::ZERO,
            puts_per_second: None,
            lease: Duration::from_millis(300),
            stall_after: Duration::from_secs(5),
            commit_wait: Duration::from_secs(30),
            read_wait: Duration::from_secs(1),
            reads_without_home: true,
            feed: FeedContent::Off,
        }
    }
}

impl ObjectLogOptions {
    pub(super) fn of_writer(&self) -> WriterOptions {
        WriterOptions {
            interval_us: self.log_interval.as_micros() as u64,
            puts_per_second: self.puts_per_second,
            lease_us: self.lease.as_micros() as u64,
            unsettled_us_max: self.stall_after.as_micros() as u64,
        }
    }
}
