//! Files and directories as durability needs them: nothing is durable before it was synced, and syncing is explicit.
//!
//! Paths are relative to the database's root, with `/` between their parts; the root itself is `""`. What an
//! implementation promises, and everything above relies on:
//!
//! 1. Bytes written to a file, and its length, survive a power cut once a later [`DiskFile::sync_data`] has returned
//!    without an error. Before that every 512-byte sector of them may survive or not, whatever became of the others.
//! 2. A name that was created, linked, renamed or removed is so after a power cut once a later [`Disk::sync_dir`] of its
//!    directory has returned without an error. Before that it may be so or not; a rename is never half done.
//! 3. A sector that was synced and is not written to again keeps its content, whatever is written beside it.
//! 4. After a sync that *failed* nothing is known of what it was to make durable: a later sync that succeeds does not
//!    make up for it. (Linux drops the dirty pages of a failed write-back.)
//!
//! [`LocalDisk`] is a directory of the operating system. [`SimDisk`] is memory that behaves as badly as the promises
//! allow, by seed.

mod error;
mod local;
mod sim;

use std::fmt::Debug;
use std::sync::Arc;

pub use error::DiskError;
pub(crate) use local::FILE_MODE;
pub use local::LocalDisk;
pub use sim::SimDisk;

/// A result of the disk.
pub type DiskResult<T> = Result<T, DiskError>;

/// The unit that a disk writes whole or not at all, in bytes.
pub const SECTOR: u64 = 512;

/// How many zeros [`DiskFile::zero_fill`] writes at a time.
const ZEROS: usize = 1 << 20;

/// An open file. Closed when the last handle goes; closing syncs nothing.
pub trait DiskFile: Send + Sync + Debug {
    /// Reads from an offset until the buffer is full or the file ends; how many bytes.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> DiskResult<usize>;

    /// Writes all bytes at an offset, growing the file where needed. After an error any part of it may be written.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> DiskResult<()>;

    /// The length in bytes.
    fn len(&self) -> DiskResult<u64>;

    /// Whether it is empty.
    fn is_empty(&self) -> DiskResult<bool> {
        Ok(self.len()? == 0)
    }

    /// Cuts the file, or grows it with zeros that take no space yet.
    fn set_len(&self, len: u64) -> DiskResult<()>;

    /// Makes content and length durable.
    fn sync_data(&self) -> DiskResult<()>;

    /// Fills the file with zeros from an offset to another, so that writing there later allocates nothing. Syncs
    /// nothing.
    fn zero_fill(&self, from: u64, to: u64) -> DiskResult<()> {
        let zeros = vec![0; ZEROS.min(to.saturating_sub(from) as usize)];
        let mut at = from;
        while at < to {
            let count = zeros.len().min((to - at) as usize);
            self.write_at(at, &zeros[..count])?;
            at += count as u64;
        }
        Ok(())
    }
}

/// A directory tree. See the module.
pub trait Disk: Send + Sync + Debug {
    /// Creates a file to be read and written; fails with `AlreadyExists` where there is one.
    fn create(&self, path: &str) -> DiskResult<Arc<dyn DiskFile>>;

    /// Opens a file to be read and written.
    fn open(&self, path: &str) -> DiskResult<Arc<dyn DiskFile>>;

    /// Opens a file to be read only: this works on a read-only file system too.
    fn open_read(&self, path: &str) -> DiskResult<Arc<dyn DiskFile>>;

    /// Makes a directory, and those above it; nothing happens where it is there.
    fn create_dir(&self, path: &str) -> DiskResult<()>;

    /// Makes the names in a directory durable.
    fn sync_dir(&self, path: &str) -> DiskResult<()>;

    /// Gives a file another name, in place of what had it before.
    fn rename(&self, from: &str, to: &str) -> DiskResult<()>;

    /// Gives a file a second name; fails with `AlreadyExists` where something has it. This is put-if-absent.
    fn link_new(&self, from: &str, to: &str) -> DiskResult<()>;

    /// Takes the name of a file away; the file goes with its last name and handle.
    fn remove(&self, path: &str) -> DiskResult<()>;

    /// The names of the files and directories in a directory, ascending. A directory that is not there is empty.
    fn list(&self, path: &str) -> DiskResult<Vec<String>>;

    /// How many more bytes fit; `None` where the disk cannot tell.
    fn free_space(&self) -> DiskResult<Option<u64>>;

    /// A path as its user would write it, for messages.
    fn describe(&self, path: &str) -> String;
}

/// The whole content of a file.
pub fn read_file(disk: &dyn Disk, path: &str) -> DiskResult<Vec<u8>> {
    let file = disk.open_read(path)?;
    let mut bytes = vec![0; file.len()? as usize];
    let count = file.read_at(0, &mut bytes)?;
    bytes.truncate(count);
    Ok(bytes)
}

/// The directory a path lies in.
pub fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

#[cfg(test)]
mod tests;
