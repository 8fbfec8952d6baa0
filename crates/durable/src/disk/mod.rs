//! Files and directories as durability needs them: nothing is durable before it is synced, and every sync is explicit.
//!
//! Paths are relative to the database's root, with `/` between their parts; the root itself is `""`. Every
//! implementation keeps these promises, and all code above relies on them:
//!
//! 1. Bytes written to a file, and its length, survive a power cut once a later [`DiskFile::sync_data`] has succeeded.
//!    Before that, every 512-byte sector of them may or may not survive, independently of the others.
//! 2. A name that was created, linked, renamed or removed stays so after a power cut once a later [`Disk::sync_dir`] of
//!    its directory has succeeded. Before that it may or may not; a rename is never half done.
//! 3. A sector that was synced and is not written again keeps its content, whatever is written beside it.
//! 4. After a sync that *failed*, nothing is known about the data it was to make durable. A later sync that succeeds
//!    does not make up for it. (Linux drops the dirty pages of a failed write-back.)
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

/// The result of a disk operation.
pub type DiskResult<T> = Result<T, DiskError>;

/// Bytes that a disk writes wholly or not at all.
pub const SECTOR: u64 = 512;

/// Zeros that [`DiskFile::zero_fill`] writes at a time, in bytes.
const ZEROS: usize = 1 << 20;

/// An open file. It is closed when the last handle is dropped; closing syncs nothing.
pub trait DiskFile: Send + Sync + Debug {
    /// Reads from an offset until the buffer is full or the file ends. Returns the number of bytes read.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> DiskResult<usize>;

    /// Writes all bytes at an offset, and grows the file if needed. After an error any part of them may be written.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> DiskResult<()>;

    /// The length in bytes.
    fn len(&self) -> DiskResult<u64>;

    /// Returns true if the length is 0.
    fn is_empty(&self) -> DiskResult<bool> {
        Ok(self.len()? == 0)
    }

    /// Shortens the file, or grows it with zeros that take no space yet.
    fn set_len(&self, len: u64) -> DiskResult<()>;

    /// Makes content and length durable.
    fn sync_data(&self) -> DiskResult<()>;

    /// Fills the file with zeros between two offsets, so that writing there later allocates nothing. Syncs nothing.
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

/// A directory tree that keeps the promises in the module header.
pub trait Disk: Send + Sync + Debug {
    /// Creates a file for reading and writing. Fails with `AlreadyExists` if the name is taken.
    fn create(&self, path: &str) -> DiskResult<Arc<dyn DiskFile>>;

    /// Opens a file for reading and writing.
    fn open(&self, path: &str) -> DiskResult<Arc<dyn DiskFile>>;

    /// Opens a file for reading only; works on a read-only file system.
    fn open_read(&self, path: &str) -> DiskResult<Arc<dyn DiskFile>>;

    /// Creates a directory and its parents. Existing ones are left alone.
    fn create_dir(&self, path: &str) -> DiskResult<()>;

    /// Makes the names in a directory durable.
    fn sync_dir(&self, path: &str) -> DiskResult<()>;

    /// Renames a file, and replaces whatever had the new name.
    fn rename(&self, from: &str, to: &str) -> DiskResult<()>;

    /// Gives a file a second name. Fails with `AlreadyExists` if the name is taken: this is put-if-absent.
    fn link_new(&self, from: &str, to: &str) -> DiskResult<()>;

    /// Removes a name of a file. The file is freed with its last name and handle.
    fn remove(&self, path: &str) -> DiskResult<()>;

    /// The names of the files and directories in a directory, ascending. A missing directory is empty.
    fn list(&self, path: &str) -> DiskResult<Vec<String>>;

    /// The names of the files in a directory, ascending, without directories. A missing directory is empty.
    fn list_files(&self, path: &str) -> DiskResult<Vec<String>>;

    /// Free bytes on the disk; `None` if the disk cannot tell.
    fn free_space(&self) -> DiskResult<Option<u64>>;

    /// The path as its user would write it, for messages.
    fn describe(&self, path: &str) -> String;
}

/// Reads the whole content of a file.
pub fn read_file<D: Disk + ?Sized>(disk: &D, path: &str) -> DiskResult<Vec<u8>> {
    let file = disk.open_read(path)?;
    let mut bytes = vec![0; file.len()? as usize];
    let count = file.read_at(0, &mut bytes)?;
    bytes.truncate(count);
    Ok(bytes)
}

/// The directory that contains a path.
pub fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

#[cfg(test)]
mod tests;
