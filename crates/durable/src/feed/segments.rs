//! The batches of the log in a directory, for the feed.
//!
//! The segments that exist are one run up to the newest: those that recovery needs, and before them those that are kept
//! for readers of the feed, or wait to be used again. A reader keeps a place in the run: a segment, an offset in it,
//! and the number of the next batch.
//!
//! - **LOG-92.** A batch is read only if its number is below the end of the durable part: that of an open log
//!   ([`LogGrowth`]), or of one that was read to its end as recovery would. So a batch that is not found is lost, and
//!   no end.
//! - **LOG-93.** Reading begins in a segment with the end of a commit that is not shown any more, or at the first batch
//!   of the database. So all records of the commits after it are read.
//!
//! A segment may be retired, and used again under a later number, while it is read. Its batches then have another salt
//! or number, so none of them is taken for the next one.

use std::sync::Arc;

use mangrove_graph::{Catalog, Error, ErrorKind, Result};
use uuid::Uuid;

use super::{FeedPosition, FeedSource, ShowRecord, too_old};
use crate::checkpoint::load_catalog;
use crate::disk::{Disk, DiskFile};
use crate::log::DIRECTORY;
use crate::log::format::{
    BATCH_HEADER, BLOCK, BatchFound, BatchHeader, SegmentHeader, blocks_of, segment_path, segment_seq,
};
use crate::log::join::RecordJoiner;
use crate::log::read::{RecordPosition, read};
use crate::log::record::{Record, read_record};
use crate::log::source::LogGrowth;
use crate::manifest::{MANIFEST_DIR, Manifest};

/// How far a log may be read (LOG-92).
#[derive(Debug)]
enum End {
    /// No process writes it: up to this batch.
    Closed(u64),
    Open(Arc<dyn LogGrowth>),
}

impl End {
    fn next_batch(&self) -> u64 {
        match self {
            End::Closed(next) => *next,
            End::Open(log) => log.durable_batches(),
        }
    }
}

/// A reader's place in the segments of a directory.
#[derive(Debug)]
pub(super) struct SegmentSource {
    disk: Arc<dyn Disk>,
    database: Uuid,
    end: End,
    /// The segment that the next batch may be in, and where in it.
    segment: OpenSegment,
    at: u64,
    /// The number of the next batch. `None`: the first that is found, in a log whose manifest does not say.
    next: Option<u64>,
    joiner: RecordJoiner,
    /// The last commit that was read, for errors.
    last_ts: u64,
}

/// A segment whose header was read.
#[derive(Debug)]
struct OpenSegment {
    header: SegmentHeader,
    file: Arc<dyn DiskFile>,
    path: String,
}

/// The segments of a directory.
struct Run {
    /// Ascending, without a gap.
    seqs: Vec<u64>,
    /// All commits after this timestamp are in them.
    oldest_ts: u64,
}

/// The batches of a graph that no process has open to write, the names of the graph, and the position to begin at.
pub(super) fn of_closed(
    disk: Arc<dyn Disk>,
    from: Option<FeedPosition>,
) -> Result<(SegmentSource, Catalog, FeedPosition)> {
    let manifest = newest_manifest(&*disk)?;
    let catalog = load_catalog(&*disk, &manifest)?;
    // Everything is checked, and all names are learned, before the first event.
    let end = read(&*disk, manifest.database, manifest.log_floor(), &mut |record, position| match record {
        Record::Names(names) if !names.put_into(&catalog) => {
            Err(position.damage("names whose numbers are taken, or do not follow the existing ones"))
        }
        _ => Ok(()),
    })?;
    let (source, at) = begin(disk, &manifest, End::Closed(end.next_batch), from)?;
    Ok((source, catalog, at))
}

/// The batches of a graph that is open in this process, and the position to begin at.
pub(super) fn of_open(
    disk: Arc<dyn Disk>,
    log: Arc<dyn LogGrowth>,
    from: Option<FeedPosition>,
) -> Result<(SegmentSource, FeedPosition)> {
    let manifest = newest_manifest(&*disk)?;
    begin(disk, &manifest, End::Open(log), from)
}

fn newest_manifest(disk: &dyn Disk) -> Result<Manifest> {
    Manifest::newest(disk)?.ok_or_else(|| {
        let message = format!("there is no database: {} has no manifest", disk.describe(MANIFEST_DIR));
        Error::new(ErrorKind::NotFound, message)
    })
}

/// Finds the segment to begin in (LOG-93).
fn begin(
    disk: Arc<dyn Disk>,
    manifest: &Manifest,
    end: End,
    from: Option<FeedPosition>,
) -> Result<(SegmentSource, FeedPosition)> {
    let database = manifest.database;
    let run = Run::find(&*disk, manifest)?;
    let from = from.unwrap_or(FeedPosition::after_commit(run.oldest_ts));
    if run.oldest_ts > 0 && from < FeedPosition::after_commit(run.oldest_ts) {
        return Err(too_old(from, run.oldest_ts, &disk.describe(DIRECTORY)));
    }
    // The log may go on meanwhile, and a checkpoint may retire segments.
    let gone = || {
        let place = disk.describe(DIRECTORY);
        let message = format!("a part of the log in {place} was retired while the feed began; begin it again");
        Error::new(ErrorKind::Io, message)
    };
    let (mut first, mut empty) = (None, None);
    for seq in run.seqs {
        let segment = OpenSegment::open(&*disk, seq, database)?.ok_or_else(gone)?;
        match segment.batch_at(BLOCK)? {
            None => empty = Some(segment),
            Some((batch, _)) if first.is_none() || segment.first_commit()?.is_some_and(|ts| ts < from.ts) => {
                first = Some((segment, Some(batch.number)));
            }
            Some(_) => {}
        }
    }
    let next_batch = manifest.log_floor().before.map(|before| before.next_batch);
    let (segment, next) = first.or(empty.map(|segment| (segment, next_batch))).ok_or_else(gone)?;
    let (joiner, last_ts) = (RecordJoiner::default(), from.ts);
    let source = SegmentSource { disk, database, end, segment, at: BLOCK, next, joiner, last_ts };
    Ok((source, from))
}

impl Run {
    fn find(disk: &dyn Disk, manifest: &Manifest) -> Result<Self> {
        let floor = manifest.log_floor();
        let listed: Vec<u64> = disk.list(DIRECTORY)?.iter().filter_map(|name| segment_seq(name)).collect();
        let needed = listed.partition_point(|seq| *seq < floor.segment);
        let mut seqs: Vec<u64> = listed[needed..].to_vec();
        let mut oldest_ts = floor.before.map_or(manifest.checkpoint_ts(), |before| before.last_ts);
        for &seq in listed[..needed].iter().rev() {
            let is_next = seqs.first().is_some_and(|first| seq.checked_add(1) == Some(*first));
            if !is_next || OpenSegment::open(disk, seq, manifest.database)?.is_none() {
                break;
            }
            seqs.insert(0, seq);
        }
        let mut is_lowest = true;
        for &seq in &seqs {
            // An opening of the database that wrote nothing leaves a segment without batches.
            let Some(segment) = OpenSegment::open(disk, seq, manifest.database)? else { break };
            let Some((batch, _)) = segment.batch_at(BLOCK)? else { continue };
            if is_lowest && batch.number == 1 {
                // Everything since the database was made.
                oldest_ts = 0;
                break;
            }
            is_lowest = false;
            // The commit that ends first may have begun in a segment that is gone.
            if let Some(ts) = segment.first_commit()? {
                oldest_ts = oldest_ts.min(ts);
                break;
            }
        }
        Ok(Run { seqs, oldest_ts })
    }
}

impl OpenSegment {
    /// Opens a segment. `None` if there is none of this number and database.
    fn open(disk: &dyn Disk, seq: u64, database: Uuid) -> Result<Option<Self>> {
        let relative = segment_path(seq);
        let file = match disk.open_read(&relative) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let mut block = vec![0; BLOCK as usize];
        let read = file.read_at(0, &mut block)?;
        let path = disk.describe(&relative);
        // A segment that recovery needs was checked by recovery, and another one may be used again at this moment.
        let header = SegmentHeader::decode(&block[..read]).ok();
        let header = header.filter(|header| header.seq == seq && header.database == database);
        Ok(header.map(|header| OpenSegment { header, file, path }))
    }

    /// The batch at an offset, whole; `None` if there is none.
    fn batch_at(&self, at: u64) -> Result<Option<(BatchHeader, Vec<u8>)>> {
        let mut bytes = vec![0; BLOCK as usize];
        let read = self.file.read_at(at, &mut bytes)?;
        bytes.truncate(read);
        let Some(len) = bytes.get(32..36) else { return Ok(None) };
        let payload = u64::from(u32::from_le_bytes(len.try_into().expect("four bytes")));
        let left = self.file.len()?.saturating_sub(at);
        let whole = (blocks_of(payload) * BLOCK).min(left);
        if whole > BLOCK {
            bytes.resize(whole as usize, 0);
            let read = self.file.read_at(at, &mut bytes)?;
            bytes.truncate(read);
        }
        match BatchHeader::find(&bytes, &self.header) {
            BatchFound::Batch(batch) => {
                bytes.truncate(BATCH_HEADER + batch.payload_len as usize);
                Ok(Some((batch, bytes)))
            }
            BatchFound::Nothing | BatchFound::Broken(_) | BatchFound::Other(_) => Ok(None),
        }
    }

    /// The timestamp of the commit that ends first in the segment; `None` if none does.
    fn first_commit(&self) -> Result<Option<u64>> {
        let mut at = BLOCK;
        while let Some((batch, _)) = self.batch_at(at)? {
            if batch.commit_count > 0 {
                return Ok(Some(batch.first_ts));
            }
            at += batch.blocks() * BLOCK;
        }
        Ok(None)
    }
}

impl FeedSource for SegmentSource {
    fn next_batch(&mut self, each: ShowRecord<'_>) -> Result<bool> {
        let end = self.end.next_batch();
        if self.next.map_or(end <= 1, |next| next >= end) {
            return Ok(false);
        }
        let Some((batch, bytes)) = self.find()? else {
            // Before the first batch was read, the log may have none in the segments that are left.
            return if self.next.is_none() { Ok(false) } else { Err(self.lost()) };
        };
        // LOG-92.
        if batch.number >= end {
            return Ok(false);
        }
        let SegmentSource { segment, joiner, last_ts, at, .. } = self;
        let position = RecordPosition { path: &segment.path, offset: *at };
        let payload = &bytes[BATCH_HEADER..];
        joiner.batch(&batch, payload, segment.header.epoch, position, &mut |record| {
            let record = read_record(record).map_err(|error| position.malformed(error))?;
            let commits = match &record {
                Record::Commit(commit) => {
                    *last_ts = commit.timestamp;
                    1
                }
                _ => 0,
            };
            each(record, position, None)?;
            Ok(commits)
        })?;
        self.at += batch.blocks() * BLOCK;
        self.next = Some(batch.number.saturating_add(1));
        Ok(true)
    }
}

impl SegmentSource {
    /// Finds the next batch: in the segment of the last one, or at the beginning of the next segment.
    fn find(&mut self) -> Result<Option<(BatchHeader, Vec<u8>)>> {
        let next = self.next;
        let is_next = |(batch, _): &(BatchHeader, Vec<u8>)| next.is_none_or(|next| batch.number == next);
        if let Some(found) = self.segment.batch_at(self.at)?.filter(is_next) {
            return Ok(Some(found));
        }
        let mut seq = self.segment.header.seq;
        while let Some(after) = seq.checked_add(1)
            && let Some(segment) = OpenSegment::open(&*self.disk, after, self.database)?
        {
            if let Some(found) = segment.batch_at(BLOCK)?.filter(is_next) {
                (self.segment, self.at) = (segment, BLOCK);
                return Ok(Some(found));
            }
            // An opening of the database that wrote nothing leaves a segment without batches.
            seq = after;
        }
        Ok(None)
    }

    /// The error for a durable batch that is not found: it was retired, or the log is damaged.
    fn lost(&self) -> Error {
        let oldest = Manifest::newest(&*self.disk)
            .and_then(|manifest| manifest.map(|manifest| Run::find(&*self.disk, &manifest)).transpose());
        match oldest {
            Ok(Some(run)) if run.oldest_ts > self.last_ts => {
                too_old(FeedPosition::after_commit(self.last_ts), run.oldest_ts, &self.disk.describe(DIRECTORY))
            }
            Ok(_) => {
                let position = RecordPosition { path: &self.segment.path, offset: self.at };
                position.damage(format_args!("expected batch {}, and it is not there", self.next.unwrap_or(1)))
            }
            Err(error) => error,
        }
    }
}
