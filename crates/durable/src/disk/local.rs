//! [`LocalDisk`]: a directory of the operating system as a disk.
//!
//! Files are read and written at offsets, so threads may share a handle. `sync_data` is `fdatasync`, which includes the
//! length. A directory is synced through a handle on it. New files and directories are accessible to their owner only,
//! whatever the umask.

use std::fs::{self, DirBuilder, DirEntry, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Disk, DiskError, DiskFile, DiskResult};

/// The mode of new files: only the owner may read a graph. Permissions that the owner adds later stay.
pub(crate) const FILE_MODE: u32 = 0o600;

/// The mode of new directories.
const DIRECTORY_MODE: u32 = 0o700;

/// The disk whose root is a directory of the operating system.
#[derive(Clone, Debug)]
pub struct LocalDisk {
    root: PathBuf,
}

#[derive(Debug)]
struct LocalFile {
    file: File,
    /// The path for messages.
    path: String,
}

impl LocalDisk {
    /// The disk with this root. The directory is created if it is missing.
    pub fn new(root: impl Into<PathBuf>) -> DiskResult<Self> {
        let disk = LocalDisk { root: root.into() };
        disk.create_dir("")?;
        Ok(disk)
    }

    /// The root directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn at(&self, path: &str) -> PathBuf {
        if path.is_empty() { self.root.clone() } else { self.root.join(path) }
    }

    fn failed<T>(&self, operation: &'static str, path: &str, result: io::Result<T>) -> DiskResult<T> {
        result.map_err(|error| DiskError::new(operation, self.describe(path), &error))
    }

    fn file(&self, operation: &'static str, path: &str, options: &OpenOptions) -> DiskResult<Arc<dyn DiskFile>> {
        let file = self.failed(operation, path, options.open(self.at(path)))?;
        Ok(Arc::new(LocalFile { file, path: self.describe(path) }))
    }

    /// The names of the wanted entries of a directory, ascending.
    fn entries(&self, path: &str, is_wanted: fn(&DirEntry) -> io::Result<bool>) -> DiskResult<Vec<String>> {
        let entries = match fs::read_dir(self.at(path)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => self.failed("list", path, entries)?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = self.failed("list", path, entry)?;
            // A name that is not UTF-8 is none of this program's.
            if let Ok(name) = entry.file_name().into_string()
                && self.failed("list", path, is_wanted(&entry))?
            {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }
}

impl Disk for LocalDisk {
    fn create(&self, path: &str) -> DiskResult<Arc<dyn DiskFile>> {
        self.file("create", path, OpenOptions::new().read(true).write(true).create_new(true).mode(FILE_MODE))
    }

    fn open(&self, path: &str) -> DiskResult<Arc<dyn DiskFile>> {
        self.file("open", path, OpenOptions::new().read(true).write(true))
    }

    fn open_read(&self, path: &str) -> DiskResult<Arc<dyn DiskFile>> {
        self.file("open", path, OpenOptions::new().read(true))
    }

    fn create_dir(&self, path: &str) -> DiskResult<()> {
        let made = DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(self.at(path));
        self.failed("make the directory", path, made)
    }

    fn sync_dir(&self, path: &str) -> DiskResult<()> {
        self.failed("sync the directory", path, File::open(self.at(path)).and_then(|dir| dir.sync_all()))
    }

    fn rename(&self, from: &str, to: &str) -> DiskResult<()> {
        self.failed("rename", from, fs::rename(self.at(from), self.at(to)))
    }

    fn link_new(&self, from: &str, to: &str) -> DiskResult<()> {
        self.failed("make the name", to, fs::hard_link(self.at(from), self.at(to)))
    }

    fn remove(&self, path: &str) -> DiskResult<()> {
        self.failed("remove", path, fs::remove_file(self.at(path)))
    }

    fn list(&self, path: &str) -> DiskResult<Vec<String>> {
        self.entries(path, |_| Ok(true))
    }

    fn list_files(&self, path: &str) -> DiskResult<Vec<String>> {
        self.entries(path, |entry| Ok(!entry.file_type()?.is_dir()))
    }

    fn free_space(&self) -> DiskResult<Option<u64>> {
        let space =
            self.failed("ask for the free space of", "", rustix::fs::statvfs(&self.root).map_err(io::Error::from))?;
        Ok(Some(space.f_bavail.saturating_mul(space.f_frsize)))
    }

    fn describe(&self, path: &str) -> String {
        self.at(path).display().to_string()
    }
}

impl LocalFile {
    fn failed<T>(&self, operation: &'static str, result: io::Result<T>) -> DiskResult<T> {
        result.map_err(|error| DiskError::new(operation, &*self.path, &error))
    }
}

impl DiskFile for LocalFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> DiskResult<usize> {
        let mut count = 0;
        while count < buffer.len() {
            match self.file.read_at(&mut buffer[count..], offset + count as u64) {
                Ok(0) => break,
                Ok(read) => count += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return self.failed("read", Err(error)),
            }
        }
        Ok(count)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> DiskResult<()> {
        self.failed("write to", self.file.write_all_at(bytes, offset))
    }

    fn len(&self) -> DiskResult<u64> {
        Ok(self.failed("look at", self.file.metadata())?.len())
    }

    fn set_len(&self, len: u64) -> DiskResult<()> {
        self.failed("set the length of", self.file.set_len(len))
    }

    fn sync_data(&self) -> DiskResult<()> {
        self.failed("sync", self.file.sync_data())
    }
}
