//! Where readers get the log from: recovery the segments of a directory, or the streams of a home; the change feed also a
//! log that is open.

use std::fmt::Debug;

use mangrove_graph::Result;
use uuid::Uuid;

use super::floor::LogFloor;
use super::read::{LogEnd, RecordPosition, read};
use super::record::Record;
use crate::disk::Disk;

/// A log that can be read from its floor to its end.
pub trait LogSource {
    /// What is known when the log was read.
    type End;

    /// Calls `each` with the records in order. Changes nothing.
    ///
    /// # Errors
    ///
    /// If the log is damaged, or with the error of `each`; the records until then must be discarded.
    fn read(&self, each: &mut dyn FnMut(Record<'_>, RecordPosition<'_>) -> Result<()>) -> Result<Self::End>;
}

/// The log in a directory.
#[derive(Clone, Copy, Debug)]
pub struct DirectoryLog<'a> {
    /// The disk.
    pub disk: &'a dyn Disk,
    /// The database that the log must belong to.
    pub database: Uuid,
    /// The position from which the newest manifest needs the log.
    pub floor: LogFloor,
}

impl LogSource for DirectoryLog<'_> {
    type End = LogEnd;

    fn read(&self, each: &mut dyn FnMut(Record<'_>, RecordPosition<'_>) -> Result<()>) -> Result<LogEnd> {
        read(self.disk, self.database, self.floor, each)
    }
}

/// An open log, as readers of the change feed see it.
pub(crate) trait LogGrowth: Send + Sync + Debug {
    /// All batches with smaller numbers are durable.
    fn durable_batches(&self) -> u64;
}
