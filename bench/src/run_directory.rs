//! The directory of a run, and its file system.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use mangrove::{Database, DatabaseOptions, Error, Result};

/// A directory that is removed with its contents when the run ends, also after an error.
pub(crate) struct RunDirectory {
    root: PathBuf,
    /// The number of the next fresh path.
    next: AtomicU64,
}

impl RunDirectory {
    /// Makes a directory below `parent`, by default below the system's temporary directory.
    pub(crate) fn new(parent: Option<&Path>) -> Result<Self> {
        /// Counts the directories of this process, because tests run several suites at once.
        static RUNS: AtomicU64 = AtomicU64::new(0);
        let parent = parent.map_or_else(std::env::temp_dir, Path::to_owned);
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        let root = parent.join(format!("mangrove-bench-{}-{run}", std::process::id()));
        let named = |error| Error::from(error).context(root.display());
        fs::create_dir(&root).map_err(named)?;
        let root = root.canonicalize().map_err(named)?;
        Ok(RunDirectory { root, next: AtomicU64::new(0) })
    }

    /// A path in it that was not used before.
    pub(crate) fn fresh(&self, name: &str) -> PathBuf {
        self.root.join(format!("{name}-{}", self.next.fetch_add(1, Ordering::Relaxed)))
    }

    /// Removes everything in the directory. Databases in it must be closed.
    pub(crate) fn clear(&self) -> Result<()> {
        for entry in fs::read_dir(&self.root)? {
            let entry = entry?;
            let path = entry.path();
            if entry.file_type()?.is_dir() { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
        }
        Ok(())
    }

    /// The type of its file system, by the kernel's name.
    pub(crate) fn file_system(&self) -> Option<String> {
        file_system_of(&fs::read_to_string("/proc/self/mounts").ok()?, &self.root)
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.root) {
            eprintln!("could not remove {}: {error}", self.root.display());
        }
    }
}

/// Returns true if the file system keeps files in memory. A sync costs nothing there, so figures say nothing.
pub(crate) fn is_in_memory(file_system: &str) -> bool {
    matches!(file_system, "tmpfs" | "ramfs")
}

/// The type of the innermost mount that contains a path. Of two mounts at one point, the later one counts.
fn file_system_of(mounts: &str, path: &Path) -> Option<String> {
    let mounts = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ');
        let (point, kind) = (fields.nth(1)?, fields.next()?);
        path.starts_with(point).then_some((point.len(), kind))
    });
    mounts.max_by_key(|(length, _)| *length).map(|(_, kind)| kind.to_owned())
}

/// The size of all files below a directory, in bytes.
pub(crate) fn bytes_in(directory: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() { bytes_in(&entry.path())? } else { metadata.len() };
    }
    Ok(bytes)
}

/// Opens the database in a directory, which is made if it does not exist.
pub(crate) fn open(directory: &Path, options: &DatabaseOptions) -> Result<Database> {
    Database::open(&directory.to_string_lossy(), options)
}

/// The options of a database that takes checkpoints on demand only.
pub(crate) fn without_checkpoints() -> DatabaseOptions {
    let mut options = DatabaseOptions::default();
    options.durability.checkpoint_log_bytes = Some(0);
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_and_latest_mount_counts() {
        let mounts =
            "/dev/a / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n/dev/b /tmp/x xfs rw 0 0\n/dev/c /tmp/x btrfs rw 0 0\n";
        let kind = |path: &str| file_system_of(mounts, Path::new(path)).unwrap();
        assert_eq!((&*kind("/home"), &*kind("/tmp/other"), &*kind("/tmp/x/y")), ("ext4", "tmpfs", "btrfs"));
        // A path that only begins with the name of a mount is outside of it.
        assert_eq!(kind("/tmpfiles"), "ext4");
        assert!(is_in_memory("tmpfs") && !is_in_memory("ext4"));
    }

    #[test]
    fn a_directory_is_removed_with_its_contents() {
        let directory = RunDirectory::new(None).unwrap();
        let (first, second) = (directory.fresh("a"), directory.fresh("a"));
        assert_ne!(first, second);
        fs::create_dir(&first).unwrap();
        fs::write(first.join("file"), [0; 10]).unwrap();
        assert_eq!(bytes_in(&directory.root).unwrap(), 10);
        drop(directory);
        assert!(!first.exists());
    }
}
