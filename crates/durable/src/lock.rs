//! One process at a time has a database open on a local disk.
//!
//! The file `LOCK` in the database's directory is locked by the operating system for as long as the process has it open:
//! a process that dies leaves no lock behind. The process's id in it is for the message only. On an object store, where
//! nothing can be locked, the epochs of manifests do the same job ([`crate::manifest`]).
//!
//! Who only reads takes the lock too, since files that are being written cannot be judged; but where nothing can be
//! written he needs no file of his own: [`DirectoryLock::acquire_to_read`].

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use mangrove_graph::{Error, ErrorKind, Result};

use crate::disk::{DiskError, FILE_MODE};

/// The name of the file.
const LOCK_FILE: &str = "LOCK";

/// Held while a database is open.
#[derive(Debug)]
pub struct DirectoryLock {
    /// None where there is no such file, so that nobody has the database open.
    file: Option<File>,
}

impl DirectoryLock {
    /// Locks a directory, which is there. Fails with `Closed` where another process has it.
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

    /// As [`DirectoryLock::acquire`], for somebody who changes nothing: a directory that this user, or nobody, can write
    /// to can be looked at all the same.
    pub fn acquire_to_read(directory: &Path) -> Result<Self> {
        let path = directory.join(LOCK_FILE);
        let mut file = match File::open(&path) {
            Ok(file) => file,
            // It was never open, or is a copy that was made without.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(DirectoryLock { file: None }),
            Err(error) => return Err(failed("open", &path, &error)),
        };
        try_lock(&path, &mut file)?;
        Ok(DirectoryLock { file: Some(file) })
    }
}

impl Drop for DirectoryLock {
    /// Unlocks it in so many words. Closing the file does so only when nobody else has it open, and a process that is just
    /// being started by this one has all of its files, until it turns to its own program.
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            // Where that fails, closing it is what is left.
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
    // Best effort: the file may be anything.
    let _ = file.read_to_string(&mut text);
    let holder = match text.trim().parse::<u32>() {
        Ok(pid) => format!("process {pid}"),
        Err(_) => "another process".to_owned(),
    };
    let directory = path.parent().unwrap_or(path).display();
    Error::new(
        ErrorKind::Closed,
        format!(
            "{holder} has the database in {directory} open, and one can at a time; stop it, or connect to its server"
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
        // Of a file that is open twice, the one lock is given back.
        let inherited = reading.file.as_ref().unwrap().try_clone().unwrap();
        drop(reading);
        drop(DirectoryLock::acquire(&directory).unwrap());
        drop(inherited);
        std::fs::remove_file(directory.join(LOCK_FILE)).unwrap();
        DirectoryLock::acquire_to_read(&directory).unwrap();
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
