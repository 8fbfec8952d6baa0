//! From records to synced batches, on one thread at a time.
//!
//! Records are pushed one after the other and flow into a batch. Where the segment is full the batch is written and
//! synced as it is, and the record goes on in the first batch of the next segment: a segment is always filled to its
//! last block, and a batch is never written before the one before it is durable. So of everything in the log only the
//! last batch can be torn.

use std::sync::Arc;

use super::format::{BATCH_HEADER, BLOCK, BatchHeader, NO_RECORD, blocks_of, segment_path};
use super::status::Meters;
use super::supply::{Segment, Supply};
use crate::disk::{DiskError, DiskResult};

/// The end of the log.
#[derive(Debug)]
pub(crate) struct Writer {
    supply: Arc<Supply>,
    meters: Arc<Meters>,
    segment: Option<Segment>,
    /// Where the next batch goes in the segment.
    at: u64,
    /// The number of the next batch.
    number: u64,
    /// The batch being filled: room for its header, then its payload.
    batch: Vec<u8>,
    first_record: u32,
    first_ts: u64,
    last_ts: u64,
    commit_count: u32,
    /// Blocks that were used since the last [`Writer::finish`], without what crossing into segments cost.
    used_blocks: u64,
}

impl Writer {
    /// A writer whose first batch will have this number.
    pub(crate) fn new(supply: Arc<Supply>, meters: Arc<Meters>, number: u64) -> Self {
        let mut writer = Writer {
            supply,
            meters,
            segment: None,
            at: 0,
            number,
            batch: Vec::new(),
            first_record: NO_RECORD,
            first_ts: 0,
            last_ts: 0,
            commit_count: 0,
            used_blocks: 0,
        };
        writer.begin_batch();
        writer
    }

    /// The number of the segment that the next batch goes to; `None` where none was begun.
    pub(crate) fn seq(&self) -> Option<u64> {
        self.segment.as_ref().map(|segment| segment.header.seq)
    }

    /// The number of the next batch.
    pub(crate) fn next_number(&self) -> u64 {
        self.number
    }

    fn begin_batch(&mut self) {
        self.batch.clear();
        self.batch.resize(BATCH_HEADER, 0);
        self.first_record = NO_RECORD;
        (self.first_ts, self.last_ts, self.commit_count) = (0, 0, 0);
    }

    /// Appends a framed record, given in parts.
    pub(crate) fn push(&mut self, parts: [&[u8]; 2]) -> DiskResult<()> {
        self.make_room()?;
        if self.first_record == NO_RECORD {
            self.first_record = (self.batch.len() - BATCH_HEADER) as u32;
        }
        for mut part in parts {
            while !part.is_empty() {
                let room = self.make_room()?;
                let (now, later) = part.split_at(part.len().min(room));
                self.batch.extend_from_slice(now);
                part = later;
            }
        }
        Ok(())
    }

    /// Says that the record just pushed was a commit.
    pub(crate) fn count_commit(&mut self, ts: u64) {
        if self.commit_count == 0 {
            self.first_ts = ts;
        }
        self.last_ts = ts;
        self.commit_count += 1;
    }

    /// How many more bytes fit into the batch, at least one: a full segment is left for the next.
    fn make_room(&mut self) -> DiskResult<usize> {
        loop {
            if let Some(segment) = &self.segment {
                let room = (segment.header.size - self.at) as usize;
                if room > self.batch.len() {
                    return Ok(room - self.batch.len());
                }
                if self.batch.len() > BATCH_HEADER {
                    self.write_batch()?;
                    // The header that the rest needs was not reserved by anybody; the segment's spare block is for it.
                    self.used_blocks -= 1;
                }
            }
            let segment = self.supply.next().ok_or_else(|| {
                let cause = std::io::Error::other("no log segment is ready although space was reserved in one");
                DiskError::new("write to", segment_path(self.supply.next_seq()), &cause)
            })?;
            self.meters.count_segment();
            self.segment = Some(segment);
            self.at = BLOCK;
        }
    }

    /// Writes the batch and syncs it.
    fn write_batch(&mut self) -> DiskResult<()> {
        let segment = self.segment.as_ref().expect("there is room in a segment before anything is in the batch");
        let payload_len = (self.batch.len() - BATCH_HEADER) as u32;
        let header = BatchHeader {
            salt: segment.header.salt(),
            seq: segment.header.seq,
            number: self.number,
            payload_len,
            first_record: self.first_record,
            first_ts: self.first_ts,
            last_ts: self.last_ts,
            commit_count: self.commit_count,
        };
        header.seal(&mut self.batch);
        let blocks = blocks_of(u64::from(payload_len));
        self.batch.resize((blocks * BLOCK) as usize, 0);
        segment.file.write_at(self.at, &self.batch)?;
        self.meters.time_sync(|| segment.file.sync_data())?;
        self.meters.count_batch(self.batch.len() as u64, u64::from(self.commit_count));
        self.at += blocks * BLOCK;
        self.number += 1;
        self.used_blocks += blocks;
        self.begin_batch();
        Ok(())
    }

    /// Makes everything that was pushed durable; how many of the reserved blocks that took.
    pub(crate) fn finish(&mut self) -> DiskResult<u64> {
        if self.batch.len() > BATCH_HEADER {
            self.write_batch()?;
        }
        // A batch may have been large.
        self.batch.shrink_to(1 << 20);
        Ok(std::mem::take(&mut self.used_blocks))
    }
}
