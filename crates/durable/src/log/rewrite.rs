//! Writing the log of a new database from the records of another log: what a restore into a directory does.

use std::sync::Arc;

use mangrove_graph::Result;
use uuid::Uuid;

use super::first_segment::create_first_segment;
use super::format::blocks_of;
use super::options::LogOptions;
use super::record::{MOMENT_BYTES, Record, put_moment, put_record};
use super::status::LogMeters;
use super::supply::SegmentSupply;
use super::writer::BatchWriter;
use crate::disk::Disk;

/// The segment with the first batch. The one before it is empty (`first_segment`).
const FIRST_WITH_BATCHES: u64 = 2;
/// The number of the first batch.
const FIRST_BATCH: u64 = 1;

/// A record with its length before it.
#[derive(Clone, Debug)]
pub(crate) struct FramedRecord {
    /// Length and content.
    pub(crate) bytes: Vec<u8>,
    /// The timestamp of a commit.
    pub(crate) commit: Option<u64>,
}

impl FramedRecord {
    /// A record, framed.
    pub(crate) fn of(record: &Record<'_>) -> Self {
        let mut bytes = Vec::new();
        put_record(record, &mut bytes);
        let commit = match record {
            Record::Commit(commit) => Some(commit.timestamp),
            _ => None,
        };
        FramedRecord { bytes, commit }
    }
}

/// The log of a new database that is being written.
#[derive(Debug)]
pub(crate) struct LogRewrite {
    supply: Arc<SegmentSupply>,
    writer: BatchWriter,
}

impl LogRewrite {
    /// Begins the log of a database, as it is before fencing epoch `epoch + 1`.
    pub(crate) fn begin(disk: Arc<dyn Disk>, database: Uuid, epoch: u64) -> Result<Self> {
        create_first_segment(&*disk, database)?;
        let options = LogOptions { prepare_ahead: false, ..LogOptions::default() };
        let supply = Arc::new(SegmentSupply::new(disk, database, epoch, FIRST_WITH_BATCHES, options));
        let writer = BatchWriter::new(supply.clone(), Arc::new(LogMeters::default()), FIRST_BATCH);
        Ok(LogRewrite { supply, writer })
    }

    /// Writes records that were written at this time, in microseconds since 1970. They are durable when this returns.
    pub(crate) fn write(&mut self, unix_us: u64, records: &[FramedRecord]) -> Result<()> {
        let bytes: usize = records.iter().map(|record| record.bytes.len()).sum();
        let blocks = blocks_of((bytes + MOMENT_BYTES) as u64);
        self.supply.reserve(blocks)?;
        let mut moment = Vec::with_capacity(MOMENT_BYTES);
        put_moment(unix_us, &mut moment);
        self.writer.push([&moment, &[]])?;
        for record in records {
            self.writer.push([&record.bytes, &[]])?;
            if let Some(ts) = record.commit {
                self.writer.count_commit(ts);
            }
        }
        let used = self.writer.finish()?;
        self.supply.give_back(blocks.saturating_sub(used));
        Ok(())
    }
}
