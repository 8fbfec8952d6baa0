//! The lock that lets only one process open a database on a local disk.
//!
//! The operating system locks the file `LOCK` in the database's directory for as long as the process has it open, so a
//! process that dies leaves no lock. The process id in the file is only for the error message. An object store has no
//! locks; there the fencing epochs of manifests do this job (LOG-31).
//!
//! A process that only reads takes the lock too, because files that are being written cannot be judged. If the
//! directory is not writable, the reader needs no file of its own: [`DirectoryLock::acquire_to_read`].

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use mangrove_graph::{Error, ErrorKind, Result};

use crate::disk::{DiskError, FILE_MODE};

/// The name of the lock file.
const LOCK_FILE: &str = "LOCK";

/// A lock on the directory of a database, held for as long as this lives.
#[derive(Debug)]
pub struct DirectoryLock {
    /// `None` if there is no lock file: then no process has the database open.
    file: Option<File>,
}

impl DirectoryLock {
    /// Locks an existing directory. Fails with `Closed` if another process has the lock.
    pub fn acquire(directory: &Path) -> Result<Self> {
        let path = directory.join(LOCK_FILE);
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(FILE_MODE).open(&path);
        let mut file = opened.map_err(|error| failed("open", &path, &error))?;
        try_lock(&path, &mut file)?;
        let noted = file.set_len(0).and_then(|()| file.seek(SeekFrom::Start(0)));
        noted
            .and_then(|_| writeln!(file, "{}", std::process::id()))
            .map_err(|error| failed("write to", &path, &error))?;
        Ok(DirectoryLock { file: Some(file) })
    }

    /// As [`DirectoryLock::acquire`], for a process that changes nothing. It also works in a directory that this user
    /// cannot write to.
    pub fn acquire_to_read(directory: &Path) -> Result<Self> {
        let path = directory.join(LOCK_FILE);
        let mut file = match File::open(&path) {
            Ok(file) => file,
            // The database was never opened, or is a copy without the file.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(DirectoryLock { file: None }),
            Err(error) => return Err(failed("open", &path, &error)),
        };
        try_lock(&path, &mut file)?;
        Ok(DirectoryLock { file: Some(file) })
    }
}

impl Drop for DirectoryLock {
    /// Unlocks explicitly. Closing the file unlocks it only if no other process has it open. A process that this one is
    /// just starting has all of its files open until it executes its own program.
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            // If that fails, closing the file is all that is left.
            let _ = file.unlock();
        }
    }
}

fn failed(what: &'static str, path: &Path, error: &io::Error) -> Error {
    DiskError::new(what, path.display().to_string(), error).into()
}

fn try_lock(path: &Path, file: &mut File) -> Result<()> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(taken(path, file)),
        Err(TryLockError::Error(error)) => Err(failed("lock", path, &error)),
    }
}

fn taken(path: &Path, file: &mut File) -> Error {
    let mut text = String::new();
    // Best effort: the file may contain anything.
    let _ = file.read_to_string(&mut text);
    let holder = match text.trim().parse::<u32>() {
        Ok(pid) => format!("process {pid}"),
        Err(_) => "another process".to_owned(),
    };
    let directory = path.parent().unwrap_or(path).display();
    Error::new(
        ErrorKind::Closed,
        format!(
            "{holder} has the database in {directory} open, and only one process can; stop it, or connect to its server"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_and_the_holder_is_named() {
        let directory = std::env::temp_dir().join(format!("mangrove-lock-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let held = DirectoryLock::acquire(&directory).unwrap();
        for error in [DirectoryLock::acquire(&directory), DirectoryLock::acquire_to_read(&directory)] {
            let error = error.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Closed);
            assert!(error.message().contains(&format!("process {}", std::process::id())), "{error}");
        }
        drop(held);
        let reading = DirectoryLock::acquire_to_read(&directory).unwrap();
        assert_eq!(DirectoryLock::acquire(&directory).unwrap_err().kind(), ErrorKind::Closed);
        // Dropping the lock releases it, although a duplicate of the file descriptor stays open.
        let inherited = reading.file.as_ref().unwrap().try_clone().unwrap();
        drop(reading);
        drop(DirectoryLock::acquire(&directory).unwrap());
        drop(inherited);
        std::fs::remove_file(directory.join(LOCK_FILE)).unwrap();
        DirectoryLock::acquire_to_read(&directory).unwrap();
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
