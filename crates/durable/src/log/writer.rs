//! The writer of the log: from records to synced batches, on one thread at a time.
//!
//! Records are pushed one after the other into a batch. If the segment is full, the batch is written and synced as it
//! is, and the record continues in the first batch of the next segment.
//!
//! - **LOG-13.** A batch is written only after the batch before it is durable. So of everything in the log at most one
//!   batch, the last, can be torn.
//! - **LOG-14.** Batches are numbered without a gap, from the first of the database on, and so are segments.
//! - **LOG-15.** A segment is filled to its last block before the next one is begun.
//!
//! ```text
//!  batch:    empty ──push──▶ filling ──segment full, or finish──▶ written ──sync──▶ durable, next batch empty
//!  segment:  made ──▶ named ──▶ ready ──first batch──▶ current ──full──▶ left ──checkpoint──▶ spare or removed
//! ```

use std::sync::Arc;

use super::format::{BATCH_HEADER, BLOCK, BatchFound, BatchHeader, NO_RECORD, blocks_of, segment_path};
use super::status::LogMeters;
use super::supply::{Segment, SegmentSupply};
use crate::ambient::unix_us;
use crate::disk::{DiskError, DiskResult};

/// Writes batches at the end of the log.
#[derive(Debug)]
pub(crate) struct BatchWriter {
    supply: Arc<SegmentSupply>,
    meters: Arc<LogMeters>,
    /// The current segment; `None` before the first record.
    segment: Option<Segment>,
    /// Where the next batch begins in the segment, in bytes.
    at: u64,
    /// The number of the next batch.
    number: u64,
    /// The batch being filled: room for its header, then its payload.
    batch: Vec<u8>,
    /// The offset in the payload of the first record that begins in the batch; [`NO_RECORD`] if none does.
    first_record: u32,
    /// The first commit that ends in the batch, and the last one; 0 if none does.
    first_ts: u64,
    last_ts: u64,
    /// The number of commits that end in the batch.
    commit_count: u32,
    /// Blocks used since the last [`BatchWriter::finish`], without the extra headers for crossing into segments.
    used_blocks: u64,
    /// The last moment that was written.
    moment_us: u64,
}

impl BatchWriter {
    /// A writer whose first batch has this number.
    pub(crate) fn new(supply: Arc<SegmentSupply>, meters: Arc<LogMeters>, number: u64) -> Self {
        let mut writer = BatchWriter {
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
            moment_us: 0,
        };
        writer.begin_batch();
        writer
    }

    /// The number of the current segment; `None` if none was begun.
    pub(crate) fn seq(&self) -> Option<u64> {
        self.segment.as_ref().map(|segment| segment.header.seq)
    }

    /// The number of the next batch.
    pub(crate) fn next_number(&self) -> u64 {
        self.number
    }

    /// The time now, in microseconds since 1970, or that of the last moment if the clock has fallen.
    pub(crate) fn moment_us(&mut self) -> u64 {
        self.moment_us = self.moment_us.max(unix_us());
        self.moment_us
    }

    fn begin_batch(&mut self) {
        self.batch.clear();
        self.batch.resize(BATCH_HEADER, 0);
        self.first_record = NO_RECORD;
        (self.first_ts, self.last_ts, self.commit_count) = (0, 0, 0);
    }

    /// Appends a framed record, given in two parts.
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

    /// Counts the record that was just pushed as a commit.
    pub(crate) fn count_commit(&mut self, ts: u64) {
        // LOG-1.
        assert!(ts > self.last_ts, "commit {ts} is written after commit {}", self.last_ts);
        if self.commit_count == 0 {
            self.first_ts = ts;
        }
        self.last_ts = ts;
        self.commit_count += 1;
    }

    /// Returns how many more bytes fit into the batch, at least one. If the segment is full, writes the batch and
    /// begins the next segment (LOG-15).
    fn make_room(&mut self) -> DiskResult<usize> {
        loop {
            if let Some(segment) = &self.segment {
                let room = (segment.header.size - self.at) as usize;
                if room > self.batch.len() {
                    return Ok(room - self.batch.len());
                }
                if self.batch.len() > BATCH_HEADER {
                    self.write_batch()?;
                    // The header for the rest of the record was not reserved. The spare block of the segment is for it
                    // (LOG-4).
                    self.used_blocks -= 1;
                }
            }
            let segment = self.supply.next().ok_or_else(|| {
                let cause = std::io::Error::other("no log segment is ready although space was reserved in one");
                DiskError::new("write to", segment_path(self.supply.next_seq()), &cause)
            })?;
            // LOG-14.
            assert!(self.seq().is_none_or(|seq| seq + 1 == segment.header.seq), "a segment is left out");
            self.meters.count_segment();
            self.segment = Some(segment);
            self.at = BLOCK;
        }
    }

    /// Writes the batch, syncs it and begins the next one.
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
        // LOG-12.
        assert_eq!((self.at % BLOCK, self.batch.len() as u64 % BLOCK), (0, 0), "a batch is whole blocks");
        assert!(self.at + self.batch.len() as u64 <= segment.header.size, "a batch ends in its segment");
        debug_assert!(
            matches!(BatchHeader::find(&self.batch, &segment.header), BatchFound::Batch(found) if found == header),
            "a batch is found as it was written"
        );
        segment.file.write_at(self.at, &self.batch)?;
        // LOG-13: the next batch is begun after this.
        self.meters.time_sync(|| segment.file.sync_data())?;
        self.meters.count_batch(self.batch.len() as u64, u64::from(self.commit_count));
        self.at += blocks * BLOCK;
        self.number += 1;
        self.used_blocks += blocks;
        self.begin_batch();
        Ok(())
    }

    /// Makes all pushed records durable. Returns how many reserved blocks their batches took.
    pub(crate) fn finish(&mut self) -> DiskResult<u64> {
        if self.batch.len() > BATCH_HEADER {
            self.write_batch()?;
        }
        // A large batch does not keep its memory.
        self.batch.shrink_to(1 << 20);
        Ok(std::mem::take(&mut self.used_blocks))
    }
}
