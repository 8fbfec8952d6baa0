//! The places that checkpoints are kept in: the directory of a [`Disk`], or a home.
//!
//! A checkpoint is written and loaded in the same way in both. They differ in how a pack becomes durable, in how its
//! bytes are read at little cost, and in how a manifest proves that no other process has the graph.
//!
//! | | directory | home |
//! |---|---|---|
//! | a pack | a file that is written piece by piece, then synced | an object that is put whole |
//! | reading | a range at a time | near ranges together, several requests at a time |
//! | the next manifest | a link to a free name (LOG-31) | a put that counts (LOG-56) |
//! | after a put of a manifest that failed | its number is passed over (LOG-24) | the same manifest is put again (LOG-62) |

use std::ops::Range;

use mangrove_graph::Result;

use crate::damage::damaged_in;
use crate::disk::{Disk, DiskFile};
use crate::manifest::{CHECKPOINT_DIR, Manifest, fenced};
use crate::open::columns::OPEN_DIR;

/// Bytes of adjacent blocks that are read at a time from a disk. Memory of this size is soon used again.
const DISK_RUN_BYTES: u64 = 256 << 10;

/// A place of checkpoints.
pub(crate) trait Place: Sync {
    /// Begins the pack with a name that no other one has (LOG-28).
    fn begin_pack(&self, path: &str) -> Result<Box<dyn NewPack + '_>>;

    /// A pack, to be read. Its manifest says that it has this many bytes.
    fn open_pack(&self, path: String, bytes: u64) -> Result<Box<dyn RangeSource + '_>>;

    /// How many threads read a checkpoint for `threads` that work: more, if they wait for its bytes most of the time.
    fn reading_threads(&self, threads: usize) -> usize {
        threads
    }

    /// Makes the names of all packs durable that were finished.
    fn keep_packs(&self) -> Result<()>;

    /// Makes the place of open columns, if it needs one.
    fn begin_columns(&self) -> Result<()> {
        Ok(())
    }

    /// Makes the names of all open columns durable that were finished.
    fn keep_columns(&self) -> Result<()> {
        Ok(())
    }

    /// Writes `next` as the manifest after `newest`. Fails with `Closed` if another process has the graph.
    fn put_manifest(&self, next: &mut Manifest, newest: &Manifest) -> Result<()>;

    /// True if a manifest whose put failed is put again before any other one is (LOG-62).
    fn puts_again(&self) -> bool;

    /// A name as its user would write it, for messages.
    fn describe(&self, path: &str) -> String;

    /// The place of the log, for messages.
    fn describe_log(&self) -> String;
}

/// A pack, or a file of open columns, that is being written. No manifest names it before [`NewPack::finish`].
pub(crate) trait NewPack: Send {
    /// Appends bytes.
    fn write(&mut self, bytes: &[u8]) -> Result<()>;

    /// Ends the pack and makes its bytes durable.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// The bytes of a file or an object.
pub(crate) trait RangeSource: Send + Sync {
    /// The length in bytes.
    fn length(&self) -> Result<u64>;

    /// The bytes from an offset on: as many as asked for, or fewer at the end.
    fn read(&self, offset: u64, count: usize) -> Result<Vec<u8>>;

    /// Calls `each` with the bytes of each range, in order. A range that reaches beyond the end is cut there.
    fn read_each(&self, ranges: &[Range<u64>], each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        ranges.iter().try_for_each(|range| each(&self.read(range.start, (range.end - range.start) as usize)?))
    }

    /// How its ranges are best read.
    fn shape(&self) -> ReadShape;

    /// The place as its user would write it, for messages.
    fn describe(&self) -> String;
}

/// How ranges of a file or an object are best read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadShape {
    /// Two ranges with at most this many bytes between them are read as one.
    pub(crate) gap_bytes: u64,
    /// A range is ended at this size.
    pub(crate) run_bytes: u64,
}

impl<D: Disk + ?Sized> Place for D {
    fn begin_pack(&self, path: &str) -> Result<Box<dyn NewPack + '_>> {
        Ok(Box::new(NewFile { file: self.create(path)?, written: 0 }))
    }

    fn open_pack(&self, path: String, _: u64) -> Result<Box<dyn RangeSource + '_>> {
        Ok(Box::new(DiskSource { disk: self, path }))
    }

    fn keep_packs(&self) -> Result<()> {
        Ok(self.sync_dir(CHECKPOINT_DIR)?)
    }

    fn begin_columns(&self) -> Result<()> {
        self.create_dir(OPEN_DIR)?;
        Ok(self.sync_dir("")?)
    }

    fn keep_columns(&self) -> Result<()> {
        Ok(self.sync_dir(OPEN_DIR)?)
    }

    fn put_manifest(&self, next: &mut Manifest, newest: &Manifest) -> Result<()> {
        // A version above the newest of this process was a failed attempt of its own, or it has another epoch.
        for version in Manifest::versions(self)?.into_iter().filter(|&version| version > newest.version) {
            if Manifest::read(self, version)?.epoch() != newest.epoch() {
                return Err(fenced(&Disk::describe(self, &Manifest::path(version))));
            }
        }
        next.put(self)
    }

    fn puts_again(&self) -> bool {
        false
    }

    fn describe(&self, path: &str) -> String {
        Disk::describe(self, path)
    }

    fn describe_log(&self) -> String {
        Disk::describe(self, crate::log::DIRECTORY)
    }
}

/// The file of a pack that is being written.
struct NewFile {
    file: std::sync::Arc<dyn DiskFile>,
    written: u64,
}

impl NewPack for NewFile {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_at(self.written, bytes)?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        Ok(self.file.sync_data()?)
    }
}

/// A file, as the source of a pack.
///
/// It keeps no handle: a graph may have more packs than a process may have open files.
struct DiskSource<'a, D: ?Sized> {
    disk: &'a D,
    path: String,
}

impl<D: Disk + ?Sized> RangeSource for DiskSource<'_, D> {
    fn length(&self) -> Result<u64> {
        match self.disk.open_read(&self.path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Err(damaged_in(&self.describe(), 0, "the file is missing, and the manifest names it"))
            }
            opened => Ok(opened?.len()?),
        }
    }

    fn read(&self, offset: u64, count: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; count];
        let read = self.disk.open_read(&self.path)?.read_at(offset, &mut bytes)?;
        bytes.truncate(read);
        Ok(bytes)
    }

    fn shape(&self) -> ReadShape {
        ReadShape { gap_bytes: 0, run_bytes: DISK_RUN_BYTES }
    }

    fn describe(&self) -> String {
        Disk::describe(self.disk, &self.path)
    }
}
