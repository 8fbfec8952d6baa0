//! Backups and restores by text: which place is a directory of a database, and which a home of objects.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mangrove_durable::backup::{self, Backup, BackupOptions, BackupReport};
use mangrove_durable::home::Home as ObjectHome;
use mangrove_durable::home::address::{self, open_directory};
use mangrove_durable::lock::DirectoryLock;
use mangrove_durable::restore::{self, Location, Moment, RestoreOptions, RestoreReport};
use mangrove_graph::{Error, Result};

use crate::home::{Home, enter, enter_to_read};

/// How long a request is sent again while a home does not answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A place, and the lock that keeps other processes away from it.
struct Locked {
    location: Location,
    _lock: Option<DirectoryLock>,
}

/// The home that a text names: a URL, or a directory with backups. `None`: the text names a directory of a database.
pub(crate) fn home_to_read(text: &str) -> Result<Option<Arc<dyn ObjectHome>>> {
    if address::is_address(text) {
        return Ok(Some(address::open_existing(text)?));
    }
    let path = Path::new(text);
    match path.join(backup::BACKUPS).is_dir() {
        true => Ok(Some(open_directory(path, false)?)),
        false => Ok(None),
    }
}

fn to_read(text: &str) -> Result<Locked> {
    if let Some(home) = home_to_read(text)? {
        return Ok(Locked { location: Location::Home(home), _lock: None });
    }
    let (disk, lock) = enter_to_read(Path::new(text))?;
    Ok(Locked { location: Location::Directory(Arc::new(disk)), _lock: Some(lock) })
}

/// The home of backups that a text names: a URL, or a directory.
fn backups_at(text: &str, create: bool) -> Result<Arc<dyn ObjectHome>> {
    Ok(match (address::is_address(text), create) {
        (true, true) => address::open(text)?,
        (true, false) => address::open_existing(text)?,
        (false, _) => open_directory(Path::new(text), create)?,
    })
}

fn options(keep: Option<u64>) -> BackupOptions {
    BackupOptions { patience: PATIENCE, keep }
}

/// Copies the newest state of a graph to a home of backups: what no earlier backup there has. With `keep`, deletes all
/// backups but the newest so many.
///
/// `from` is a directory that no other program has open, or a home (`s3://BUCKET/DIRECTORY`, `file:/path`), whose graph may
/// be open. `to` is a home, or a directory, which is made if it is missing.
///
/// # Errors
///
/// If there is no graph, if the target has something else, or if anything that is copied is damaged.
pub fn backup(from: &str, to: &str, keep: Option<u64>) -> Result<BackupReport> {
    let from = to_read(from)?;
    backup::backup(&from.location, &backups_at(to, true)?, options(keep))
}

/// The backups at a place, oldest first.
///
/// # Errors
///
/// If the place cannot be read, or if a backup is damaged.
pub fn list_backups(place: &str) -> Result<Vec<Backup>> {
    backup::list_backups(&*backups_at(place, false)?, PATIENCE)
}

/// Restores a state of a graph as a new database in an empty place. `from` is a home of a graph or of backups, or a
/// directory that no other program has open. `to` is a home (`s3://BUCKET/DIRECTORY`, `file:/path`), or a directory.
///
/// # Errors
///
/// If the moment is not kept, if the target is not empty, or if anything that is copied is damaged.
pub fn restore(from: &str, moment: Moment, to: &str) -> Result<RestoreReport> {
    let from = to_read(from)?;
    let to = if address::is_address(to) {
        Locked { location: Location::Home(address::open(to)?), _lock: None }
    } else {
        let (disk, lock) = enter(Path::new(to), true)?;
        Locked { location: Location::Directory(Arc::new(disk)), _lock: Some(lock) }
    };
    let options = RestoreOptions { patience: PATIENCE, ..RestoreOptions::default() };
    restore::restore(&from.location, moment, &to.location, &options)
}

impl crate::state::Database {
    /// Takes a checkpoint and copies it to a home of backups, while transactions go on ([`backup`](crate::backup)).
    ///
    /// # Errors
    ///
    /// As [`backup`](crate::backup); and if the graph is in memory.
    pub fn backup(&self, to: &str, keep: Option<u64>) -> Result<BackupReport> {
        match &self.inner.home {
            Home::Directory(directory) => directory.durable.backup(&backups_at(to, true)?, options(keep)),
            // Its newest state is in the home at any time.
            Home::Objects(home) => {
                backup::backup(&Location::Home(home.home().clone()), &backups_at(to, true)?, options(keep))
            }
            Home::Memory | Home::ReadOnly { .. } => Err(Error::unsupported(
                "a graph in memory, or one that was opened to be read, has no backups; export it, or back its directory up",
            )),
        }
    }
}
