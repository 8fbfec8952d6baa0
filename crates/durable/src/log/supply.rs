//! The supply of log segments: made ahead of need, and the free space in them.
//!
//! - **LOG-16.** A segment that has its name is complete: it was filled with zeros, its header was written and synced,
//!   and only then was it named. So writing to it allocates nothing and changes no file-system metadata.
//!
//! Sizes double from segment to segment up to a limit, so that small graphs stay small on disk.
//!
//! A committer *reserves* blocks before anything is decided, and is refused then if there is no space. Reserved blocks
//! always fit (LOG-4): a segment of `n` blocks offers `n - 2`, one for its header and one because a batch that crosses
//! into the next segment needs one header more.
//!
//! The lock on `state` is held for a few instructions, because every commit takes it. So I/O is done under `making`
//! only.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use mangrove_failpoint::{Point, reach};
use mangrove_locks::{Mutex, rank};
use parking_lot::Condvar;
use uuid::Uuid;

use super::format::{BLOCK, DIRECTORY, SegmentHeader, UNFINISHED, segment_path, segment_seq};
use super::options::LogOptions;
use crate::disk::{Disk, DiskError, DiskFile, DiskResult};

/// How long after a failure the supply tries again to make a segment ahead of need.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// The largest size of a segment in bytes: lengths in it are 32-bit numbers.
const SEGMENT_MAX: u64 = 1 << 30;

/// A complete segment that can be written to.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) header: SegmentHeader,
    pub(crate) file: Arc<dyn DiskFile>,
}

/// The segments that are ready, and the free space in them.
#[derive(Debug)]
struct SupplyState {
    /// Blocks in ready and current segments that are not reserved.
    free: u64,
    ready: VecDeque<Segment>,
    /// The number of the next segment to be made.
    next_seq: u64,
    /// The size of the next segment, in bytes.
    next_bytes: u64,
    /// Why the last attempt to make a segment failed, if it did.
    last_failure: Option<DiskError>,
    /// True if a reservation was refused since then.
    is_refusing: bool,
    /// Files of retired segments, to be reused.
    spare: Vec<String>,
    /// The number of a segment that was named by an attempt that failed afterwards.
    half_made: Option<u64>,
}

/// The segments of one log before they are written to.
#[derive(Debug)]
pub(crate) struct SegmentSupply {
    disk: Arc<dyn Disk>,
    database: Uuid,
    epoch: u64,
    options: LogOptions,
    state: Mutex<SupplyState, rank::SegmentSupply>,
    /// Locked while a segment is made or retired.
    making: Mutex<(), rank::SegmentMaking>,
    /// Wakes the thread that makes segments ahead of need.
    low: Condvar,
}

impl SegmentSupply {
    /// A supply without segments, whose first segment will have this number.
    pub(crate) fn new(disk: Arc<dyn Disk>, database: Uuid, epoch: u64, next_seq: u64, options: LogOptions) -> Self {
        let first = options.segment_bytes_min.min(options.segment_bytes_max);
        let next_bytes = round_up(first.clamp(4 * BLOCK, SEGMENT_MAX));
        let space = SupplyState {
            free: 0,
            ready: VecDeque::new(),
            next_seq,
            next_bytes,
            last_failure: None,
            is_refusing: false,
            spare: Vec::new(),
            half_made: None,
        };
        let (state, making, low) = (Mutex::new(space), Mutex::new(()), Condvar::new());
        SegmentSupply { disk, database, epoch, options, state, making, low }
    }

    /// Reserves blocks, in new segments if need be. After an error nothing is reserved.
    pub(crate) fn reserve(&self, blocks: u64) -> DiskResult<()> {
        loop {
            {
                let mut space = self.state.lock();
                if space.free >= blocks {
                    space.free -= blocks;
                    if Self::is_low(&space) {
                        self.low.notify_one();
                    }
                    return Ok(());
                }
            }
            if let Err(error) = self.make_one(blocks) {
                self.state.lock().is_refusing = true;
                return Err(error);
            }
        }
    }

    /// Gives back reserved blocks that were not used.
    pub(crate) fn give_back(&self, blocks: u64) {
        self.state.lock().free += blocks;
    }

    /// Takes the next segment to be written to.
    pub(crate) fn next(&self) -> Option<Segment> {
        self.state.lock().ready.pop_front()
    }

    /// Why reservations are refused at present. If a segment could not be made *ahead* of need and there is space left,
    /// reservations succeed.
    pub(crate) fn refusal(&self) -> Option<DiskError> {
        let space = self.state.lock();
        space.last_failure.clone().filter(|_| space.is_refusing || space.free == 0)
    }

    /// The number of the next segment to be made. All segments before it exist, or existed.
    pub(crate) fn next_seq(&self) -> u64 {
        self.state.lock().next_seq
    }

    /// Returns true if the next segment should be made: less space is left than a quarter of it.
    fn is_low(space: &SupplyState) -> bool {
        space.last_failure.is_none() && space.free < Self::low_mark(space)
    }

    fn low_mark(space: &SupplyState) -> u64 {
        (space.next_bytes / BLOCK / 4).max(1)
    }

    /// Makes a segment if little space is left, or to find out whether one can be made again after a failure.
    pub(crate) fn make_ahead(&self) -> DiskResult<()> {
        let space = self.state.lock();
        let blocks = if space.last_failure.is_some() { u64::MAX } else { Self::low_mark(&space) };
        drop(space);
        self.make_one(blocks)
    }

    /// Waits until a segment should be made ahead of need. Returns false when `is_over` returns true. After a failure
    /// it also returns now and then, so that free space is noticed before another commit is refused.
    pub(crate) fn wait_until_low(&self, is_over: impl Fn() -> bool) -> bool {
        let mut space = self.state.lock();
        while !is_over() {
            if Self::is_low(&space) {
                return true;
            }
            if space.last_failure.is_none() {
                self.low.wait(space.inner());
            } else if self.low.wait_for(space.inner(), RETRY_AFTER).timed_out() && space.last_failure.is_some() {
                return !is_over();
            }
        }
        false
    }

    /// Makes the waiting thread check again.
    pub(crate) fn wake(&self) {
        // Under the lock, so that this does not fall between the thread's check and its wait.
        let _space = self.state.lock();
        self.low.notify_all();
    }

    /// Makes a segment, unless this many blocks are free because another thread has made one.
    pub(crate) fn make_one(&self, blocks: u64) -> DiskResult<()> {
        let _turn = self.making.lock();
        let (seq, size, spare, half_made) = {
            let mut space = self.state.lock();
            if space.free >= blocks {
                return Ok(());
            }
            (space.next_seq, space.next_bytes, space.spare.pop(), space.half_made)
        };
        let removed = if half_made == Some(seq) { self.remove_half_made(seq) } else { Ok(()) };
        let made = removed.and_then(|()| self.make(seq, size, spare));
        let mut space = self.state.lock();
        match made {
            Ok(segment) => {
                // LOG-14.
                assert_eq!(segment.header.seq, space.next_seq, "segments are made in order");
                // LOG-16.
                assert_eq!(space.half_made, None, "a segment that is ready is whole");
                space.free += segment.header.size / BLOCK - 2;
                space.ready.push_back(segment);
                space.next_seq = seq + 1;
                space.next_bytes = (size * 2).min(round_up(self.options.segment_bytes_max)).clamp(size, SEGMENT_MAX);
                (space.last_failure, space.is_refusing) = (None, false);
                Ok(())
            }
            Err(error) => {
                space.last_failure = Some(error.clone());
                // The thread that makes segments ahead of need may be waiting without a time limit.
                self.low.notify_all();
                Err(error)
            }
        }
    }

    fn make(&self, seq: u64, size: u64, spare: Option<String>) -> DiskResult<Segment> {
        let path = segment_path(seq);
        let unfinished = format!("{path}{UNFINISHED}");
        let made = match spare {
            Some(spare) => self.reuse(&spare, &unfinished).map(|(file, size)| (file, size, true)),
            None => self.fill(&unfinished, size).map(|file| (file, size, false)),
        };
        let made = made.and_then(|(file, size, is_reused)| {
            let header = SegmentHeader { database: self.database, epoch: self.epoch, seq, size, is_reused };
            let encoded = header.encode();
            debug_assert_eq!(SegmentHeader::decode(&encoded), Ok(header), "a header is read as it was written");
            file.write_at(0, &encoded)?;
            file.sync_data()?;
            // LOG-16: named after the header is synced.
            self.disk.link_new(&unfinished, &path)?;
            // A failure after this leaves the name, which stands in the way of the next attempt.
            self.state.lock().half_made = Some(seq);
            Ok(Segment { header, file })
        });
        // A named segment does not need the other name; one that failed is of no use.
        let removed = self.disk.remove(&unfinished);
        let segment = made?;
        removed?;
        reach(Point::SegmentNamed);
        self.disk.sync_dir(DIRECTORY)?;
        self.state.lock().half_made = None;
        Ok(segment)
    }

    /// Removes a segment of this process that was named and never written to. (A name that another process gave, which
    /// has opened the database since, stays, and stands in the way.)
    fn remove_half_made(&self, seq: u64) -> DiskResult<()> {
        match self.disk.remove(&segment_path(seq)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.state.lock().half_made = None;
        Ok(())
    }

    /// Creates a file full of zeros.
    fn fill(&self, path: &str, size: u64) -> DiskResult<Arc<dyn DiskFile>> {
        if let Some(free) = self.disk.free_space()?
            && free < size
        {
            let cause = format!("a log segment needs {size} bytes, and {free} are free");
            let full = std::io::Error::new(std::io::ErrorKind::StorageFull, cause);
            return Err(DiskError::new("create", self.disk.describe(path), &full));
        }
        let file = match self.disk.create(path) {
            // A failed attempt left it.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                self.disk.remove(path)?;
                self.disk.create(path)?
            }
            created => created?,
        };
        file.zero_fill(0, size)?;
        Ok(file)
    }

    /// Turns the file of a retired segment into a new one. Its old batches carry another number, so they are never
    /// taken for new ones.
    fn reuse(&self, spare: &str, path: &str) -> DiskResult<(Arc<dyn DiskFile>, u64)> {
        self.disk.rename(spare, path)?;
        // Before the header changes, so that the old name never leads to the new header.
        self.disk.sync_dir(DIRECTORY)?;
        let file = self.disk.open(path)?;
        let size = file.len()?;
        Ok((file, size))
    }

    /// Retires the segments before one, which recovery does not need: leaves the last ones, up to `keep_bytes`, to
    /// readers of the change feed, keeps some files for reuse, and removes the others. Returns how many were retired.
    pub(crate) fn retire_before(&self, segment: u64) -> DiskResult<usize> {
        // Locked from the listing of the directory on. Otherwise a listed spare could be renamed, to become the next
        // segment, before it is removed here.
        let _turn = self.making.lock();
        let (mut count, mut names) = (0, self.disk.list(DIRECTORY)?);
        names.retain(|name| segment_seq(name).is_some_and(|seq| seq < segment));
        for name in &names[..names.len() - self.kept_of(&names)?] {
            let path = format!("{DIRECTORY}/{name}");
            let (is_spare, has_room, wanted_bytes) = {
                let space = self.state.lock();
                let is_ready = |seq| space.ready.iter().any(|ready| ready.header.seq == seq);
                assert!(!segment_seq(name).is_some_and(is_ready), "a segment is retired before it is written to");
                let has_room = space.spare.len() < self.options.spare_segments;
                (space.spare.contains(&path), has_room, space.next_bytes)
            };
            if is_spare {
                continue;
            }
            count += 1;
            // Only whole files of the present segment size are kept, and no more than will be needed soon. The disk is
            // not read under the lock that every commit takes; only the owner of `making` changes the list of spares.
            match has_room && self.is_whole(&path, wanted_bytes) {
                true => self.state.lock().spare.push(path),
                false => self.disk.remove(&path)?,
            }
        }
        self.disk.sync_dir(DIRECTORY)?;
        Ok(count)
    }

    /// Returns how many of these segments, in ascending order, are kept: the last ones, up to `keep_bytes`.
    fn kept_of(&self, names: &[String]) -> DiskResult<usize> {
        let mut left = self.options.keep_bytes;
        for (kept, name) in names.iter().rev().enumerate() {
            // Without the option, the disk is not asked.
            let bytes = if left == 0 { 1 } else { self.disk.open_read(&format!("{DIRECTORY}/{name}"))?.len()? };
            match left.checked_sub(bytes) {
                Some(rest) => left = rest,
                None => return Ok(kept),
            }
        }
        Ok(names.len())
    }

    fn is_whole(&self, path: &str, size: u64) -> bool {
        reach(Point::SegmentRetired);
        self.disk.open_read(path).and_then(|file| file.len()).is_ok_and(|len| len == size)
    }
}

fn round_up(bytes: u64) -> u64 {
    bytes.div_ceil(BLOCK) * BLOCK
}
