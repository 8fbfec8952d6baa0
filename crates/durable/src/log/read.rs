//! Reading the log from disk, and telling whole records from a torn end and from damage.
//!
//! Segments are read in order, and in each its batches, until no batch is found where the next one may begin. The rest
//! of the log then decides:
//!
//! | a later batch of this log is found, in this segment or another | then |
//! |---|---|
//! | yes | the missing batch was durable (LOG-13): *damage*, an error that names file and offset |
//! | no | the last write did not survive, and was never acknowledged: a *torn tail*, which is cut |
//!
//! - **LOG-17.** Nothing that was ever durable is cut. One batch at most can be torn, and a batch that the newest
//!   manifest counts as durable is none.
//!
//! [`LogEnd::cut`] makes the cut durable before anything is written after it: it shortens each segment to its whole
//! batches, or to its header. So a segment may be shorter than it was made. Lost batches would show as gaps in the
//! numbers of batches or segments (LOG-14). If the cut goes through a record, a later opening of the database continues
//! without it, and the reader drops the part before the cut.

use uuid::Uuid;

use mangrove_graph::Result;

use super::floor::LogFloor;
use super::format::{
    BATCH_HEADER, BLOCK, BatchFound, BatchHeader, DIRECTORY, FORMAT_VERSION, HeaderError, Mismatch, SegmentHeader,
    UNFINISHED, segment_path, segment_seq,
};
use super::join::RecordJoiner;
pub use super::position::RecordPosition;
use super::position::damage;
use super::record::{NameCounts, Record, read_record};
use crate::damage::unknown_format;
use crate::disk::{Disk, read_file};

/// The end of the log that did not survive whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TornTail {
    /// The path of the segment.
    pub path: String,
    /// Where the cut is, in bytes.
    pub offset: u64,
    /// Bytes after the cut that hold something other than zeros.
    pub bytes: u64,
    /// Text that says which bytes were expected there and which were found.
    pub reason: String,
}

/// The findings about a log that was read to its end.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LogEnd {
    /// Segments read.
    pub segments: u64,
    /// Batches read.
    pub batches: u64,
    /// Commits read.
    pub commits: u64,
    /// Bytes read, headers and padding included.
    pub bytes: u64,
    /// The timestamp of the last commit; 0 if there is none.
    pub last_ts: u64,
    /// The largest fencing epoch of a segment; 0 if there is none.
    pub epoch: u64,
    /// The number of the next segment to be made.
    pub next_segment: u64,
    /// The number of the next batch; 1 if there is none yet.
    pub next_batch: u64,
    /// The names that the log has added. Names of a checkpoint count only if the log has some after them.
    pub names: NameCounts,
    /// The torn tail, if there is one.
    pub torn: Option<TornTail>,
    /// Bytes of a record whose end is missing.
    pub unfinished_bytes: u64,
    /// Segments that are longer than their whole batches, with the length of these.
    longer: Vec<(String, u64)>,
    /// Files of segments that were never finished.
    unfinished: Vec<String>,
}

impl LogEnd {
    /// Cuts off, durably, everything that is not whole. A log that was cut, or partly cut, is read with the same
    /// result.
    pub fn cut(&self, disk: &dyn Disk) -> Result<()> {
        for (path, len) in &self.longer {
            let file = disk.open(path)?;
            file.set_len(*len)?;
            file.sync_data()?;
        }
        for path in &self.unfinished {
            disk.remove(path)?;
        }
        if !self.unfinished.is_empty() {
            disk.sync_dir(DIRECTORY)?;
        }
        Ok(())
    }
}

/// Reads a log from the floor on that the newest manifest names, and calls `each` with its records in order. The first
/// segment always exists (LOG-5). `database` is the database that the log must belong to.
///
/// Changes nothing on the disk. Fails if the log is damaged, or with the error of `each`; the records until then must
/// be discarded.
pub fn read(
    disk: &dyn Disk,
    database: Uuid,
    floor: LogFloor,
    each: &mut dyn FnMut(Record<'_>, RecordPosition<'_>) -> Result<()>,
) -> Result<LogEnd> {
    let LogFloor { segment: first_segment, before } = floor;
    let next_batch = before.map_or(1, |before| before.next_batch);
    let mut end = LogEnd { next_segment: first_segment, next_batch, ..LogEnd::default() };
    let mut seqs = Vec::new();
    for name in disk.list(DIRECTORY)? {
        match segment_seq(&name) {
            Some(seq) if seq >= first_segment => seqs.push(seq),
            // Segments that a checkpoint covers are not read.
            Some(_) => {}
            None if name.ends_with(UNFINISHED) => end.unfinished.push(format!("{DIRECTORY}/{name}")),
            None => {}
        }
    }
    if seqs.first() != Some(&first_segment) {
        let path = disk.describe(&segment_path(first_segment));
        return Err(damage(&path, 0, "expected the segment that the newest manifest names, and it is missing"));
    }
    if first_segment.checked_add(seqs.len() as u64).is_none() {
        let path = disk.describe(&segment_path(first_segment));
        return Err(damage(&path, 0, "its number leaves none for the segments after it"));
    }
    let (joiner, floor_batch) = (RecordJoiner::default(), before.map(|before| before.next_batch));
    let mut reading = LogReading { disk, database, each, end, joiner, floor_batch, stopped: None };
    for (seq, expected) in seqs.into_iter().zip(first_segment..) {
        if seq != expected {
            let path = disk.describe(&segment_path(expected));
            return Err(damage(&path, 0, format_args!("the segment is missing, although segment {seq:016x} exists")));
        }
        reading.segment(seq)?;
    }
    reading.check_covered()?;
    Ok(reading.finish())
}

/// The position at which no batch was found, and why, in case a later batch is found.
#[derive(Debug)]
struct LogStop {
    path: String,
    offset: u64,
    reason: Mismatch,
    /// Up to where the last write may have left something, in bytes; 0 if that is unknown.
    written: u64,
}

/// The state of reading one log.
struct LogReading<'a> {
    disk: &'a dyn Disk,
    database: Uuid,
    each: &'a mut dyn FnMut(Record<'_>, RecordPosition<'_>) -> Result<()>,
    end: LogEnd,
    joiner: RecordJoiner,
    /// All batches before this one were durable when the manifest was written; `None` if it does not say so.
    floor_batch: Option<u64>,
    stopped: Option<LogStop>,
}

impl LogReading<'_> {
    /// Reads a segment.
    fn segment(&mut self, seq: u64) -> Result<()> {
        let relative = segment_path(seq);
        let path = self.disk.describe(&relative);
        let bytes = read_file(self.disk, &relative)?;
        let header = self.header(seq, &path, &bytes)?;
        self.end.segments += 1;
        self.end.epoch = self.end.epoch.max(header.epoch);
        self.end.next_segment = seq + 1;
        let mut at = BLOCK;
        // After the log has stopped, later batches are only looked for.
        while self.stopped.is_none() && at < bytes.len() as u64 {
            match BatchHeader::find(&bytes[at as usize..], &header) {
                BatchFound::Batch(batch) => {
                    let from = at as usize + BATCH_HEADER;
                    let payload = &bytes[from..from + batch.payload_len as usize];
                    self.batch(&batch, payload, &header, RecordPosition { path: &path, offset: at })?;
                    at += batch.blocks() * BLOCK;
                    self.end.bytes += batch.blocks() * BLOCK;
                }
                BatchFound::Nothing => {
                    let reason = Mismatch("a batch was expected, and zeros found".into());
                    self.stop(&path, at, reason, !header.is_reused, &bytes);
                }
                BatchFound::Broken(reason) => self.stop(&path, at, reason, true, &bytes),
                // A reused file may contain anything after its last batch.
                BatchFound::Other(reason) => self.stop(&path, at, reason, !header.is_reused, &bytes),
            }
        }
        if at < bytes.len() as u64 {
            self.end.longer.push((relative, at));
        }
        self.look_for_later(&header, &path, &bytes, at)
    }

    fn header(&self, seq: u64, path: &str, bytes: &[u8]) -> Result<SegmentHeader> {
        let header = SegmentHeader::decode(bytes).map_err(|error| match error {
            HeaderError::Damaged(Mismatch(what)) => damage(path, 0, what),
            HeaderError::LaterFormat(found) => {
                unknown_format(self.disk, &segment_path(seq), u64::from(found), u64::from(FORMAT_VERSION))
            }
        })?;
        if header.database != self.database {
            let what =
                format!("expected a segment of the database {}, found one of {}", self.database, header.database);
            return Err(damage(path, 0, what));
        }
        if header.seq != seq {
            return Err(damage(
                path,
                0,
                format_args!("expected segment {seq:016x}, found segment {:016x}", header.seq),
            ));
        }
        if header.epoch < self.end.epoch {
            let what = format!("expected a segment of epoch {} or later, found epoch {}", self.end.epoch, header.epoch);
            return Err(damage(path, 0, what));
        }
        Ok(header)
    }

    fn stop(&mut self, path: &str, offset: u64, reason: Mismatch, is_torn: bool, bytes: &[u8]) {
        let zeros = bytes.iter().rev().take_while(|byte| **byte == 0).count();
        let written = if is_torn { (bytes.len() - zeros) as u64 } else { 0 };
        self.stopped = Some(LogStop { path: path.to_owned(), offset, reason, written });
    }

    /// Once the log has stopped: fails if a later batch follows in the rest of a segment (LOG-17).
    fn look_for_later(&self, header: &SegmentHeader, path: &str, bytes: &[u8], from: u64) -> Result<()> {
        let Some(stopped) = &self.stopped else { return Ok(()) };
        for at in (from..bytes.len() as u64).step_by(BLOCK as usize) {
            if let BatchFound::Batch(later) = BatchHeader::find(&bytes[at as usize..], header)
                && (self.joiner.is_first() || later.number >= self.end.next_batch)
            {
                let what = format!(
                    "{}; it is no torn end of the log, because batch {} follows in {path} at offset {at}",
                    stopped.reason.0, later.number
                );
                return Err(damage(&stopped.path, stopped.offset, what));
            }
        }
        Ok(())
    }

    /// Reads the records of a batch.
    fn batch(
        &mut self,
        batch: &BatchHeader,
        payload: &[u8],
        segment: &SegmentHeader,
        position: RecordPosition<'_>,
    ) -> Result<()> {
        self.check_number(batch.number, position)?;
        let LogReading { joiner, end, each, .. } = self;
        let commits = joiner.batch(batch, payload, segment.epoch, position, &mut |bytes| {
            let record = read_record(bytes).map_err(|error| position.malformed(error))?;
            let commits = note_record(end, &record, position)?;
            each(record, position)?;
            Ok(commits)
        })?;
        self.end.batches += 1;
        self.end.commits += commits;
        // The largest number has none after it: no batch follows.
        self.end.next_batch = batch.number.saturating_add(1);
        Ok(())
    }

    /// Fails if a batch is missing before this one (LOG-14), or between the checkpoint and the first batch (LOG-7).
    fn check_number(&self, found: u64, position: RecordPosition<'_>) -> Result<()> {
        let expected = self.end.next_batch;
        match self.joiner.is_first() {
            false if found != expected => Err(position.damage(format_args!("expected batch {expected}, found batch {found}"))),
            true if self.floor_batch.is_some_and(|floor_batch| found > floor_batch) => Err(position.damage(format_args!(
                "expected batch {expected} or an earlier one, because the checkpoint has no later commits, found batch {found}"
            ))),
            _ => Ok(()),
        }
    }

    /// Fails if the log ends before a batch that was durable when the manifest was written (LOG-17).
    fn check_covered(&self) -> Result<()> {
        let Some(floor_batch) =
            self.floor_batch.filter(|&floor_batch| !self.joiner.is_first() && self.end.next_batch < floor_batch)
        else {
            return Ok(());
        };
        let (path, offset, reason) = match &self.stopped {
            Some(stopped) => (stopped.path.as_str(), stopped.offset, stopped.reason.0.as_str()),
            None => (DIRECTORY, 0, "the log ends"),
        };
        let what = format!(
            "{reason}; it is no torn end of the log, because all batches before batch {floor_batch} were durable when the \
             newest manifest was written, and batch {} is missing",
            self.end.next_batch
        );
        Err(damage(path, offset, what))
    }

    fn finish(mut self) -> LogEnd {
        self.end.unfinished_bytes = self.joiner.unfinished_bytes() as u64;
        if let Some(stopped) = self.stopped
            && stopped.written > stopped.offset
        {
            let LogStop { path, offset, reason, written } = stopped;
            self.end.torn = Some(TornTail { path, offset, bytes: written - offset, reason: reason.0 });
        }
        self.end
    }
}

/// Notes what a record says about the end of the log. Returns the number of commits in it.
fn note_record(end: &mut LogEnd, record: &Record<'_>, position: RecordPosition<'_>) -> Result<u64> {
    match record {
        Record::Commit(commit) if commit.timestamp <= end.last_ts => Err(position.damage(format_args!(
            "expected a commit after timestamp {}, found one at {}",
            end.last_ts, commit.timestamp
        ))),
        Record::Commit(commit) => {
            end.last_ts = commit.timestamp;
            Ok(1)
        }
        Record::Names(names) => {
            end.names = end.names.max(names.end());
            Ok(0)
        }
        Record::IndexCreated(_)
        | Record::IndexDropped(_)
        | Record::Rules(_)
        | Record::Moment(_)
        | Record::Before(_)
        | Record::Identities(_) => Ok(0),
    }
}
