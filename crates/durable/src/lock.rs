//! One process at a time has a database open on a local disk.
//!
//! The file `LOCK` in the database's directory is locked by the operating system for as long as the process has it open:
//! a process that dies leaves no lock behind. The process's id in it is for the message only. On an object store, where
//! nothing can be locked, the epochs of manifests do the same job ([`crate::manifest`]).

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use mangrove_graph::{Error, ErrorKind, Result};

/// The name of the file.
const LOCK_FILE: &str = "LOCK";

/// Held while a database is open.
#[derive(Debug)]
pub struct DirectoryLock {
    /// Closing it unlocks it.
    _file: File,
}

impl DirectoryLock {
    /// Locks a directory, which is there. Fails with `Closed` where another process has it.
    pub fn acquire(directory: &Path) -> Result<Self> {
        let path = directory.join(LOCK_FILE);
        let failed = |what: &str, error: std::io::Error| {
            Error::new(ErrorKind::Io, format!("cannot {what} {}: {error}", path.display()))
        };
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = opened.map_err(|error| failed("open", error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(taken(&path, &mut file)),
            Err(TryLockError::Error(error)) => return Err(failed("lock", error)),
        }
        let noted = file.set_len(0).and_then(|()| file.seek(SeekFrom::Start(0)));
        noted.and_then(|_| writeln!(file, "{}", std::process::id())).map_err(|error| failed("write to", error))?;
        Ok(DirectoryLock { _file: file })
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
        let error = DirectoryLock::acquire(&directory).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed);
        assert!(error.message().contains(&format!("process {}", std::process::id())), "{error}");
        drop(held);
        DirectoryLock::acquire(&directory).unwrap();
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
