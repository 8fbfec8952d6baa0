//! Segments before they are written to, and the space there is in them.
//!
//! A segment is made whole before its turn comes: filled with zeros, its header written and synced, and only then given
//! its name. So a segment that has a name is complete, and writing to it allocates nothing and changes no file-system
//! metadata. Sizes double from segment to segment up to the limit, so that small graphs stay small on disk.
//!
//! Who wants to write *reserves* blocks first, and is refused while nothing has been decided yet. What is reserved always
//! fits: a segment offers two blocks less than it has, one for its header and one because a batch that crosses into the
//! next segment needs a header more.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use mangrove_failpoint::{Point, reach};
use parking_lot::{Condvar, Mutex};
use uuid::Uuid;

use super::format::{BLOCK, DIRECTORY, SegmentHeader, UNFINISHED, segment_path, segment_seq};
use super::options::LogOptions;
use crate::disk::{Disk, DiskError, DiskFile, DiskResult};

/// How long after a failure it is tried again to make a segment ahead of need.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// No segment is larger: lengths in it are numbers of 32 bits.
const SEGMENT_MAX: u64 = 1 << 30;

/// A segment that can be written to.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) header: SegmentHeader,
    pub(crate) file: Arc<dyn DiskFile>,
}

#[derive(Debug)]
struct Space {
    /// Blocks that nobody has reserved.
    free: u64,
    ready: VecDeque<Segment>,
    /// The number of the next segment to be made, and its size.
    next_seq: u64,
    next_bytes: u64,
    /// Why the last attempt to make one failed.
    trouble: Option<DiskError>,
    /// Whether somebody has been refused since then.
    is_refusing: bool,
    /// Files that are segments no more, to be used again.
    spare: Vec<String>,
    /// The number of a segment that got its name by an attempt that failed afterwards.
    half_made: Option<u64>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Supply {
    disk: Arc<dyn Disk>,
    database: Uuid,
    epoch: u64,
    options: LogOptions,
    space: Mutex<Space>,
    /// Held while a segment is made.
    making: Mutex<()>,
    /// For whoever makes segments ahead of need.
    low: Condvar,
}

impl Supply {
    /// A supply without segments. The first will have this number.
    pub(crate) fn new(disk: Arc<dyn Disk>, database: Uuid, epoch: u64, next_seq: u64, options: LogOptions) -> Self {
        let first = options.segment_bytes_min.min(options.segment_bytes_max);
        let next_bytes = round_up(first.clamp(4 * BLOCK, SEGMENT_MAX));
        let space = Space {
            free: 0,
            ready: VecDeque::new(),
            next_seq,
            next_bytes,
            trouble: None,
            is_refusing: false,
            spare: Vec::new(),
            half_made: None,
        };
        let (space, making, low) = (Mutex::new(space), Mutex::new(()), Condvar::new());
        Supply { disk, database, epoch, options, space, making, low }
    }

    /// Takes so many blocks, if need be of new segments. After an error nothing is taken.
    pub(crate) fn reserve(&self, blocks: u64) -> DiskResult<()> {
        loop {
            {
                let mut space = self.space.lock();
                if space.free >= blocks {
                    space.free -= blocks;
                    if Self::is_low(&space) {
                        self.low.notify_one();
                    }
                    return Ok(());
                }
            }
            if let Err(error) = self.make_one(blocks) {
                self.space.lock().is_refusing = true;
                return Err(error);
            }
        }
    }

    /// Gives back what was reserved and not used.
    pub(crate) fn give_back(&self, blocks: u64) {
        self.space.lock().free += blocks;
    }

    /// The next segment to be written to.
    pub(crate) fn next(&self) -> Option<Segment> {
        self.space.lock().ready.pop_front()
    }

    /// Why nobody gets blocks at the moment. Where a segment could not be made *ahead* of need, and there is space left in
    /// the ones there are, commits go on.
    pub(crate) fn refusal(&self) -> Option<DiskError> {
        let space = self.space.lock();
        space.trouble.clone().filter(|_| space.is_refusing || space.free == 0)
    }

    /// The number of the next segment to be made: all before it exist, or existed.
    pub(crate) fn next_seq(&self) -> u64 {
        self.space.lock().next_seq
    }

    /// Whether the next segment should be made: there is less left than a quarter of it.
    fn is_low(space: &Space) -> bool {
        space.trouble.is_none() && space.free < Self::low_mark(space)
    }

    fn low_mark(space: &Space) -> u64 {
        (space.next_bytes / BLOCK / 4).max(1)
    }

    /// Makes a segment if there is little space left, or to find out whether one can be made again.
    pub(crate) fn make_ahead(&self) -> DiskResult<()> {
        let space = self.space.lock();
        let blocks = if space.trouble.is_some() { u64::MAX } else { Self::low_mark(&space) };
        drop(space);
        self.make_one(blocks)
    }

    /// Waits until a segment should be made ahead of need; false when `is_over` says so. After a failure it should be
    /// tried again, now and then: space that is there again is found without anybody being refused once more.
    pub(crate) fn wait_until_low(&self, is_over: impl Fn() -> bool) -> bool {
        let mut space = self.space.lock();
        while !is_over() {
            if Self::is_low(&space) {
                return true;
            }
            if space.trouble.is_none() {
                self.low.wait(&mut space);
            } else if self.low.wait_for(&mut space, RETRY_AFTER).timed_out() && space.trouble.is_some() {
                return !is_over();
            }
        }
        false
    }

    /// Has whoever waits look around.
    pub(crate) fn wake(&self) {
        // Under the lock: not between another's look and its wait.
        let _space = self.space.lock();
        self.low.notify_all();
    }

    /// Makes a segment, unless another thread has made one meanwhile that leaves so many blocks free.
    pub(crate) fn make_one(&self, blocks: u64) -> DiskResult<()> {
        let _turn = self.making.lock();
        let (seq, size, spare, half_made) = {
            let mut space = self.space.lock();
            if space.free >= blocks {
                return Ok(());
            }
            (space.next_seq, space.next_bytes, space.spare.pop(), space.half_made)
        };
        let removed = if half_made == Some(seq) { self.remove_half_made(seq) } else { Ok(()) };
        let made = removed.and_then(|()| self.make(seq, size, spare));
        let mut space = self.space.lock();
        match made {
            Ok(segment) => {
                space.free += segment.header.size / BLOCK - 2;
                space.ready.push_back(segment);
                space.next_seq = seq + 1;
                space.next_bytes = (size * 2).min(round_up(self.options.segment_bytes_max)).clamp(size, SEGMENT_MAX);
                (space.trouble, space.is_refusing) = (None, false);
                Ok(())
            }
            Err(error) => {
                space.trouble = Some(error.clone());
                // Who makes segments ahead of need may be waiting without a limit.
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
            file.write_at(0, &header.encode())?;
            file.sync_data()?;
            self.disk.link_new(&unfinished, &path)?;
            // From here on a failure leaves the name, which then stands in the way of the next attempt.
            self.space.lock().half_made = Some(seq);
            Ok(Segment { header, file })
        });
        // With its name it needs the other no more; without, it is of no use.
        let removed = self.disk.remove(&unfinished);
        let segment = made?;
        removed?;
        reach(Point::SegmentNamed);
        self.disk.sync_dir(DIRECTORY)?;
        self.space.lock().half_made = None;
        Ok(segment)
    }

    /// Removes a segment of ours that got its name and that nothing was written to. (A name that another process gave, which
    /// has opened the database since, stays, and stands in our way.)
    fn remove_half_made(&self, seq: u64) -> DiskResult<()> {
        match self.disk.remove(&segment_path(seq)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.space.lock().half_made = None;
        Ok(())
    }

    /// A file full of zeros.
    fn fill(&self, path: &str, size: u64) -> DiskResult<Arc<dyn DiskFile>> {
        if let Some(free) = self.disk.free_space()?
            && free < size
        {
            let cause = format!("a log segment needs {size} bytes, and {free} are free");
            let full = std::io::Error::new(std::io::ErrorKind::StorageFull, cause);
            return Err(DiskError::new("create", self.disk.describe(path), &full));
        }
        let file = match self.disk.create(path) {
            // Left by an attempt that could not clean up.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                self.disk.remove(path)?;
                self.disk.create(path)?
            }
            created => created?,
        };
        file.zero_fill(0, size)?;
        Ok(file)
    }

    /// A file that was a segment: what is in it belongs to another number, and is not taken for anything.
    fn reuse(&self, spare: &str, path: &str) -> DiskResult<(Arc<dyn DiskFile>, u64)> {
        self.disk.rename(spare, path)?;
        // Before its header changes: the old name never leads to the new header.
        self.disk.sync_dir(DIRECTORY)?;
        let file = self.disk.open(path)?;
        let size = file.len()?;
        Ok((file, size))
    }

    /// Takes the segments before one, which are needed no more: keeps some to be used again, and removes the others. Says
    /// how many.
    pub(crate) fn retire_before(&self, segment: u64) -> DiskResult<usize> {
        // Held from the look at the directory on: a spare that is listed would else be renamed, to be the next segment,
        // before its turn to be removed comes.
        let _turn = self.making.lock();
        let mut count = 0;
        for name in self.disk.list(DIRECTORY)? {
            if segment_seq(&name).is_none_or(|seq| seq >= segment) {
                continue;
            }
            let path = format!("{DIRECTORY}/{name}");
            let (is_spare, has_room, wanted_bytes) = {
                let space = self.space.lock();
                let has_room = space.spare.len() < self.options.spare_segments;
                (space.spare.contains(&path), has_room, space.next_bytes)
            };
            if is_spare {
                continue;
            }
            count += 1;
            // Only whole ones of the size that is made now, and not more than will be needed soon. Nothing on the disk is
            // looked at under the lock that every commit takes; the list of spares is changed by whoever has the turn.
            match has_room && self.is_whole(&path, wanted_bytes) {
                true => self.space.lock().spare.push(path),
                false => self.disk.remove(&path)?,
            }
        }
        self.disk.sync_dir(DIRECTORY)?;
        Ok(count)
    }

    fn is_whole(&self, path: &str, size: u64) -> bool {
        reach(Point::SegmentRetired);
        self.disk.open_read(path).and_then(|file| file.len()).is_ok_and(|len| len == size)
    }
}

fn round_up(bytes: u64) -> u64 {
    bytes.div_ceil(BLOCK) * BLOCK
}
