//! The log from disk: what is whole, what is torn, and what is damaged.
//!
//! Segments are read in order, and of each the batches, until there is none where one may begin. Then it depends on what
//! follows. If a batch that belongs behind it is found anywhere later, in this segment or another, then what is missing
//! was once durable: that is *damage*, an error that names file and offset. If none is, the last write did not
//! survive, and nobody was ever told that it would: a *torn tail*, which is cut. (One batch at most can be so:
//! `writer`.)
//!
//! [`LogEnd::cut`] makes the cut durable before anything is written after it: each segment is shortened to what is whole
//! in it, if that is only its header. So a segment may be shorter than it was made, and the next one goes on; that no
//! batch was lost with the rest is seen from the numbers of the batches, which have no gaps, nor have those of the
//! segments. A record whose beginning is whole and whose end was cut is dropped where a later opening of the database
//! goes on without it.

use uuid::Uuid;

use mangrove_graph::{Error, ErrorKind, Result};

use super::floor::LogFloor;
use super::format::{
    BATCH_HEADER, BLOCK, BatchHeader, DIRECTORY, Found, Mismatch, NO_RECORD, SegmentHeader, UNFINISHED, segment_path,
    segment_seq,
};
use super::record::{NameCounts, Record, read_record};
use crate::codec::{Malformed, Reader};
use crate::disk::{Disk, read_file};

/// Where a record was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place<'a> {
    /// The segment's file.
    pub path: &'a str,
    /// The batch in which the record ends: its first byte in the file.
    pub offset: u64,
}

impl Place<'_> {
    /// The error for something in the log that contradicts itself or what was before.
    pub fn damage(&self, what: impl std::fmt::Display) -> Error {
        damage(self.path, self.offset, what)
    }
}

/// What was cut off, or will be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TornTail {
    /// The segment's file.
    pub path: String,
    /// From where on.
    pub offset: u64,
    /// How many bytes something was written in.
    pub bytes: u64,
    /// What was expected there and what was found.
    pub reason: String,
}

/// What a log is like that has been read to its end.
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
    /// The timestamp of the last commit; 0 where there is none.
    pub last_ts: u64,
    /// The largest epoch of a segment; 0 where there is none.
    pub epoch: u64,
    /// The number of the next segment to be made.
    pub next_segment: u64,
    /// The number of the next batch; 1 where there is none yet.
    pub next_batch: u64,
    /// The names that the log has brought; those of before count only where the log has some after them.
    pub names: NameCounts,
    /// What the last write left, if it did not survive whole.
    pub torn: Option<TornTail>,
    /// Bytes of a commit that is not there to its end.
    pub unfinished_bytes: u64,
    /// Segments that are longer than what is whole in them, and how long that is.
    longer: Vec<(String, u64)>,
    /// Segments that were never finished.
    unfinished: Vec<String>,
}

impl LogEnd {
    /// Cuts what is not whole, durably. A log that was cut, or half cut, reads the same again.
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

fn damage(path: &str, offset: u64, what: impl std::fmt::Display) -> Error {
    let message = format!("the log is damaged: {path}, offset {offset}: {what}");
    Error::new(ErrorKind::Damaged, message)
}

/// Reads a log from the floor on that the newest manifest names, and shows `each` its records in order. The first segment
/// is always there (`founding`). `database` is whose log it must be.
///
/// Nothing is changed on the disk. Fails where the log is damaged, and with what `each` fails with; what was shown until
/// then is to be forgotten.
pub fn read(
    disk: &dyn Disk,
    database: Uuid,
    floor: LogFloor,
    each: &mut dyn FnMut(Record<'_>, Place<'_>) -> Result<()>,
) -> Result<LogEnd> {
    let LogFloor { segment: first_segment, before } = floor;
    let next_batch = before.map_or(1, |before| before.next_batch);
    let mut end = LogEnd { next_segment: first_segment, next_batch, ..LogEnd::default() };
    let mut seqs = Vec::new();
    for name in disk.list(DIRECTORY)? {
        match segment_seq(&name) {
            Some(seq) if seq >= first_segment => seqs.push(seq),
            // What a checkpoint covers is not looked at.
            Some(_) => {}
            None if name.ends_with(UNFINISHED) => end.unfinished.push(format!("{DIRECTORY}/{name}")),
            None => {}
        }
    }
    if seqs.first() != Some(&first_segment) {
        let path = disk.describe(&segment_path(first_segment));
        let what =
            "expected the segment that the newest manifest names, and it is missing; restore the graph from a backup";
        return Err(damage(&path, 0, what));
    }
    if first_segment.checked_add(seqs.len() as u64).is_none() {
        let path = disk.describe(&segment_path(first_segment));
        return Err(damage(&path, 0, "its number leaves none for the segments after it"));
    }
    let (carried, covered) = (Carried::default(), before.map(|before| before.next_batch));
    let mut reading = Reading { disk, database, each, end, carried, covered, is_first: true, stopped: None };
    for (seq, expected) in seqs.into_iter().zip(first_segment..) {
        if seq != expected {
            let path = disk.describe(&segment_path(expected));
            return Err(damage(
                &path,
                0,
                format_args!("expected a segment, and it is missing while {seq:016x} is there"),
            ));
        }
        reading.segment(seq)?;
    }
    reading.check_covered()?;
    Ok(reading.finish())
}

/// The beginning of a record whose end is in a later batch.
#[derive(Debug, Default)]
struct Carried {
    bytes: Vec<u8>,
    /// The epoch in which it began.
    epoch: u64,
    /// It began before what is read: it is passed over to its end.
    is_foreign: bool,
}

/// Where no batch was found, and why, in case one follows.
#[derive(Debug)]
struct Stopped {
    path: String,
    offset: u64,
    reason: Mismatch,
    /// Up to where something is written that a last write may have left; 0 if that is not known.
    written: u64,
}

struct Reading<'a> {
    disk: &'a dyn Disk,
    database: Uuid,
    each: &'a mut dyn FnMut(Record<'_>, Place<'_>) -> Result<()>,
    end: LogEnd,
    carried: Carried,
    /// All batches before this one were durable when the manifest was put, if it says so.
    covered: Option<u64>,
    /// No batch was read yet.
    is_first: bool,
    stopped: Option<Stopped>,
}

impl Reading<'_> {
    fn segment(&mut self, seq: u64) -> Result<()> {
        let relative = segment_path(seq);
        let path = self.disk.describe(&relative);
        let bytes = read_file(self.disk, &relative)?;
        let header = self.header(seq, &path, &bytes)?;
        self.end.segments += 1;
        self.end.epoch = self.end.epoch.max(header.epoch);
        self.end.next_segment = seq + 1;
        let mut at = BLOCK;
        // After a place without a batch, batches are only looked for.
        while self.stopped.is_none() && at < bytes.len() as u64 {
            match BatchHeader::find(&bytes[at as usize..], &header) {
                Found::Batch(batch) => {
                    let from = at as usize + BATCH_HEADER;
                    let payload = &bytes[from..from + batch.payload_len as usize];
                    self.batch(&batch, payload, &header, Place { path: &path, offset: at })?;
                    at += batch.blocks() * BLOCK;
                    self.end.bytes += batch.blocks() * BLOCK;
                }
                Found::Nothing => {
                    let reason = Mismatch("a batch was expected, and zeros found".into());
                    self.stop(&path, at, reason, !header.is_reused, &bytes);
                }
                Found::Broken(reason) => self.stop(&path, at, reason, true, &bytes),
                // In a file that was used before this may be anything.
                Found::Other(reason) => self.stop(&path, at, reason, !header.is_reused, &bytes),
            }
        }
        if at < bytes.len() as u64 {
            self.end.longer.push((relative, at));
        }
        self.look_for_later(&header, &path, &bytes, at)
    }

    fn header(&self, seq: u64, path: &str, bytes: &[u8]) -> Result<SegmentHeader> {
        let header = SegmentHeader::decode(bytes).map_err(|Mismatch(what)| damage(path, 0, what))?;
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
        self.stopped = Some(Stopped { path: path.to_owned(), offset, reason, written });
    }

    /// Once there is a place without a batch: none may follow in what is left of a segment.
    fn look_for_later(&self, header: &SegmentHeader, path: &str, bytes: &[u8], from: u64) -> Result<()> {
        let Some(stopped) = &self.stopped else { return Ok(()) };
        for at in (from..bytes.len() as u64).step_by(BLOCK as usize) {
            if let Found::Batch(later) = BatchHeader::find(&bytes[at as usize..], header)
                && (self.is_first || later.number >= self.end.next_batch)
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

    fn batch(&mut self, batch: &BatchHeader, payload: &[u8], segment: &SegmentHeader, place: Place<'_>) -> Result<()> {
        self.check_number(batch.number, place)?;
        let first_record = match batch.first_record {
            NO_RECORD => payload.len(),
            at => at as usize,
        };
        if first_record > payload.len() {
            return Err(place.damage(format_args!("a first record at {first_record} of {} bytes", payload.len())));
        }
        let (rest, fresh) = payload.split_at(first_record);
        let mut commits = 0;
        let is_foreign = if self.is_first { !rest.is_empty() } else { self.carried.is_foreign };
        if is_foreign {
            // Only its end is read, and that says nothing.
            self.carried.is_foreign = batch.first_record == NO_RECORD;
        } else if !rest.is_empty() || !self.carried.bytes.is_empty() {
            commits += self.carry_on(rest, batch, segment, place)?;
        }
        commits += self.records(fresh, segment, place)?;
        if !is_foreign && commits != u64::from(batch.commit_count) {
            return Err(place.damage(format_args!("expected {} commits, found {commits}", batch.commit_count)));
        }
        self.is_first = false;
        self.end.batches += 1;
        self.end.commits += commits;
        // A number that has none after it is followed by no batch.
        self.end.next_batch = batch.number.saturating_add(1);
        Ok(())
    }

    /// Batches have no gap, and none is missing between the checkpoint and the first one.
    fn check_number(&self, found: u64, place: Place<'_>) -> Result<()> {
        let expected = self.end.next_batch;
        match self.is_first {
            false if found != expected => Err(place.damage(format_args!("expected batch {expected}, found batch {found}"))),
            true if self.covered.is_some_and(|covered| found > covered) => Err(place.damage(format_args!(
                "expected batch {expected} or one before it, because the checkpoint has none later, and found batch {found}"
            ))),
            _ => Ok(()),
        }
    }

    /// What was durable when the manifest was put is no torn end.
    fn check_covered(&self) -> Result<()> {
        let Some(covered) = self.covered.filter(|&covered| !self.is_first && self.end.next_batch < covered) else {
            return Ok(());
        };
        let (path, offset, reason) = match &self.stopped {
            Some(stopped) => (stopped.path.as_str(), stopped.offset, stopped.reason.0.as_str()),
            None => (DIRECTORY, 0, "the log ends"),
        };
        let what = format!(
            "{reason}; it is no torn end of the log, because all batches before batch {covered} were durable when the \
             newest manifest was written, and batch {} is missing",
            self.end.next_batch
        );
        Err(damage(path, offset, what))
    }

    /// The rest of a record that began earlier; how many commits ended with it.
    fn carry_on(&mut self, rest: &[u8], batch: &BatchHeader, segment: &SegmentHeader, place: Place<'_>) -> Result<u64> {
        if rest.is_empty() {
            // The log was cut inside the record, and another opening went on without it.
            if segment.epoch > self.carried.epoch {
                self.carried.bytes.clear();
                return Ok(0);
            }
            return Err(place.damage("expected the rest of a record, found none"));
        }
        if self.carried.bytes.is_empty() {
            return Err(place.damage("expected a record, found the rest of one"));
        }
        self.carried.bytes.extend_from_slice(rest);
        let is_whole = frame(&self.carried.bytes).is_some();
        if is_whole != (batch.first_record != NO_RECORD || frame_is_all(&self.carried.bytes)) {
            return Err(place.damage("a record that ends elsewhere than the next one begins"));
        }
        match is_whole {
            false => Ok(0),
            true => {
                let bytes = std::mem::take(&mut self.carried.bytes);
                self.records(&bytes, segment, place)
            }
        }
    }

    /// Shows whole records, and keeps the beginning of one that is not; how many commits there were.
    fn records(&mut self, bytes: &[u8], segment: &SegmentHeader, place: Place<'_>) -> Result<u64> {
        let (mut commits, mut at) = (0, 0);
        while at < bytes.len() {
            let Some((from, len)) = frame(&bytes[at..]) else {
                self.carried = Carried { bytes: bytes[at..].to_vec(), epoch: segment.epoch, is_foreign: false };
                return Ok(commits);
            };
            let record = &bytes[at + from..at + from + len];
            commits += self.record(record, place).map_err(|error| error_in(error, place))?;
            at += from + len;
        }
        Ok(commits)
    }

    fn record(&mut self, bytes: &[u8], place: Place<'_>) -> Result<u64, RecordError> {
        let record = read_record(bytes)?;
        let commits = match &record {
            Record::Commit(commit) if commit.timestamp <= self.end.last_ts => {
                return Err(RecordError::Other(place.damage(format_args!(
                    "expected a commit after timestamp {}, found one at {}",
                    self.end.last_ts, commit.timestamp
                ))));
            }
            Record::Commit(commit) => {
                self.end.last_ts = commit.timestamp;
                1
            }
            Record::Names(names) => {
                self.end.names = self.end.names.max(names.end());
                0
            }
            Record::IndexCreated(_) | Record::IndexDropped(_) | Record::Rules(_) => 0,
        };
        (self.each)(record, place).map_err(RecordError::Other)?;
        Ok(commits)
    }

    fn finish(mut self) -> LogEnd {
        self.end.unfinished_bytes = self.carried.bytes.len() as u64;
        if let Some(stopped) = self.stopped
            && stopped.written > stopped.offset
        {
            let Stopped { path, offset, reason, written } = stopped;
            self.end.torn = Some(TornTail { path, offset, bytes: written - offset, reason: reason.0 });
        }
        self.end
    }
}

enum RecordError {
    Malformed(Malformed),
    Other(Error),
}

impl From<Malformed> for RecordError {
    fn from(malformed: Malformed) -> Self {
        RecordError::Malformed(malformed)
    }
}

fn error_in(error: RecordError, place: Place<'_>) -> Error {
    match error {
        RecordError::Malformed(malformed) => place.damage(format_args!("a record with {malformed}")),
        RecordError::Other(error) => error,
    }
}

/// Whether bytes are one whole record and nothing else.
fn frame_is_all(bytes: &[u8]) -> bool {
    frame(bytes).is_some_and(|(from, len)| from + len == bytes.len())
}

/// Where the content of the record begins whose frame is in front, and its length; `None` where it is not all there.
fn frame(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut reader = Reader::new(bytes);
    // A frame cut in two is not all there either.
    let len = usize::try_from(reader.varint().ok()?).ok()?;
    let from = reader.position() as usize;
    (reader.left() >= len).then_some((from, len))
}
