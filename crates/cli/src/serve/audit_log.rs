//! The audit log in a file of its own: one JSON object a line, only appended to.
//!
//! Before each entry the path is checked. If it leads to another file, or to none, the file is opened again. So the
//! file may be renamed or removed while the server runs, as `logrotate` does, and no entry is lost. SIGHUP does the
//! same at once. An entry that cannot be written goes to the ordinary log with the error.
//!
//! Not here: a sync for every entry. A crash of the machine may lose the last seconds.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use mangrove::{Error, ErrorKind, Result};
use tracing_subscriber::fmt::MakeWriter;

/// Only the owner of the file may read it.
const MODE: u32 = 0o600;

/// A handle of the audit log. Clones share the file.
#[derive(Clone, Debug)]
pub struct AuditLog {
    path: Arc<Path>,
    open: Arc<Mutex<File>>,
}

impl AuditLog {
    /// Opens or creates the file.
    pub fn open(path: PathBuf) -> Result<Self> {
        let file = open(&path).map_err(|e| {
            let message = format!("the audit log {} cannot be written: {e} (the setting audit)", path.display());
            Error::new(ErrorKind::Io, message)
        })?;
        Ok(AuditLog { path: path.into(), open: Arc::new(Mutex::new(file)) })
    }

    /// Opens the file again, if its path leads to another file than the open one.
    pub fn reopen(&self) -> io::Result<()> {
        let mut file = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        refresh(&self.path, &mut file)
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(MODE).open(path)
}

fn refresh(path: &Path, file: &mut File) -> io::Result<()> {
    let identity = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    let there = std::fs::metadata(path).map(identity).ok();
    if there != Some(identity(file.metadata()?)) {
        *file = open(path)?;
    }
    Ok(())
}

/// The writer of one entry.
#[derive(Debug)]
pub struct AuditEntry<'a>(&'a AuditLog);

impl Write for AuditEntry<'_> {
    fn write(&mut self, entry: &[u8]) -> io::Result<usize> {
        let mut file = self.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        // One write an entry, because the formatter passes whole lines.
        if let Err(error) = refresh(&self.0.path, &mut file).and_then(|()| file.write_all(entry)) {
            let entry = String::from_utf8_lossy(entry);
            tracing::error!(target: "mangrove", path = %self.0.path.display(), entry = entry.trim(), "an entry of the audit log was not written: {error}");
        }
        Ok(entry.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for AuditLog {
    type Writer = AuditEntry<'a>;

    fn make_writer(&'a self) -> AuditEntry<'a> {
        AuditEntry(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_follow_the_path_when_the_file_is_rotated() {
        let folder = std::env::temp_dir().join(format!("mangrove-audit-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("audit.log");
        let log = AuditLog::open(path.clone()).unwrap();
        let note = |text: &str| log.make_writer().write_all(text.as_bytes()).unwrap();
        note("one\n");
        std::fs::rename(&path, folder.join("audit.log.1")).unwrap();
        note("two\n");
        std::fs::remove_file(&path).unwrap();
        log.reopen().unwrap();
        note("three\n");
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!((read("audit.log.1"), read("audit.log")), ("one\n".to_owned(), "three\n".to_owned()));
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, MODE);
        let missing = AuditLog::open(folder.join("no such folder/audit.log")).unwrap_err();
        assert!(missing.message().contains("the setting audit"), "{missing}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
