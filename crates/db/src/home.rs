//! Where a database is kept: a directory with its lock, or a home of objects. Opening it to write or to read.
//!
//! `open` takes the directory's lock, recovers the graph ([`mangrove_durable::recovery`]) and lets transactions begin.
//! From then on a commit returns when it is durable. A read-only transaction sees durable commits only, so it never
//! waits for the disk and never sees a commit that a crash could take back. Dropping the last handle closes the graph
//! and releases the lock. Nothing must be saved then, because all acknowledged commits are in the log.
//!
//! A home has no lock: opening a database there takes it over from the process that has it open, or follows that process
//! (`open_home`).
//!
//! Settings of the running database belong to the process and are not kept in the directory: most depend on the machine
//! or serve an experiment, and a restart takes back a mistake.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mangrove_durable::disk::{Disk, DiskError, LocalDisk};
use mangrove_durable::durable::{Durable, DurableOptions};
use mangrove_durable::durable_home::DurableHomeOptions;
use mangrove_durable::lock::DirectoryLock;
use mangrove_durable::manifest::{CHECKPOINT_DIR, FIRST_CHECKPOINT_DIR, MANIFEST_DIR};
use mangrove_durable::open::columns::OPEN_DIR;
use mangrove_durable::reading;
use mangrove_durable::recovery::RecoveryProgress;
use mangrove_durable::stream::log::ObjectLogOptions;
use mangrove_graph::{Error, ErrorKind, Result};
use mangrove_txn::TransactionManager;

use crate::columns::ParquetColumns;
use crate::open_home::OpenHome;
use crate::options::{DatabaseOptions, DurabilityOptions};
use crate::recovery::{Recovery, of_summary};

/// The entries that a database's directory may have.
const ENTRIES: [&str; 7] = ["LOCK", MANIFEST_DIR, CHECKPOINT_DIR, FIRST_CHECKPOINT_DIR, OPEN_DIR, "wal", "lost+found"];

/// The storage of a graph.
pub(crate) enum Home {
    /// In memory only.
    Memory,
    /// In a directory that commits are written to.
    Directory(Box<OpenDirectory>),
    /// In a home of objects.
    Objects(Box<OpenHome>),
    /// In a directory that is read and not changed.
    ReadOnly { recovery: Recovery, _lock: DirectoryLock },
}

/// An open directory. Fields are dropped in this order: the lock last.
pub(crate) struct OpenDirectory {
    pub durable: Durable,
    pub directory: PathBuf,
    /// `None` on a disk of the caller.
    _lock: Option<DirectoryLock>,
}

impl OpenDirectory {
    /// Opens or creates the database in a directory.
    pub(crate) fn open(
        directory: &Path,
        options: &DatabaseOptions,
        progress: &(dyn Fn(RecoveryProgress) + Sync),
    ) -> Result<Self> {
        let (disk, lock) = enter(directory, options.durability.create)?;
        let durable = Durable::open(Arc::new(disk), &durable_options(options), progress)?;
        Ok(OpenDirectory { durable, directory: directory.to_owned(), _lock: Some(lock) })
    }

    /// Opens or creates the database on a disk that the caller keeps other processes away from.
    pub(crate) fn on(disk: Arc<dyn Disk>, options: &DatabaseOptions) -> Result<Self> {
        let directory = disk.describe("").into();
        let durable = Durable::open(disk, &durable_options(options), &|_| {})?;
        Ok(OpenDirectory { durable, directory, _lock: None })
    }

    pub(crate) fn manager(&self) -> &TransactionManager {
        self.durable.manager()
    }
}

impl Home {
    /// Opens the database in a directory for reading. Returns its transactions, and its home with the lock.
    pub(crate) fn open_to_read(
        directory: &Path,
        options: &DatabaseOptions,
        progress: &(dyn Fn(RecoveryProgress) + Sync),
    ) -> Result<(TransactionManager, Self)> {
        let (disk, lock) = enter_to_read(directory)?;
        let (manager, recovery) = reading::open_to_read(&disk, &durable_options(options), progress)?;
        Ok((manager, Home::ReadOnly { recovery: of_summary(&recovery), _lock: lock }))
    }
}

/// The options of a database in a home of objects.
pub(crate) fn home_options(options: &DatabaseOptions) -> DurableHomeOptions {
    let DurabilityOptions { object_log, retention, create, ref log, .. } = options.durability;
    // One setting for graphs in both.
    let log = ObjectLogOptions { feed: log.feed, ..object_log };
    DurableHomeOptions { graph: durable_options(options), log, retention, create, ..DurableHomeOptions::default() }
}

fn durable_options(options: &DatabaseOptions) -> DurableOptions {
    let DurabilityOptions {
        log,
        checkpoint_log_bytes,
        checkpoint_after,
        open_topology,
        open_columns,
        recovery_threads,
        new_database,
        create: _,
        object_log: _,
        retention: _,
    } = options.durability.clone();
    DurableOptions {
        tablet_count: options.tablet_count,
        memory_limit_bytes: options.memory_limit_bytes,
        memory_budget: options.memory_budget.clone(),
        sizes: options.sizes,
        log,
        checkpoint_log_bytes,
        checkpoint_after,
        open_topology,
        columns: Some(Arc::new(ParquetColumns)),
        open_columns,
        recovery_threads,
        new_database,
        ..DurableOptions::default()
    }
}

/// Checks and locks a directory to read it.
pub(crate) fn enter_to_read(directory: &Path) -> Result<(LocalDisk, DirectoryLock)> {
    check(directory, false)?;
    let disk = LocalDisk::new(directory)?;
    let lock = DirectoryLock::acquire_to_read(directory)?;
    Ok((disk, lock))
}

/// Checks and locks a directory. With `create`, makes it if it does not exist.
pub(crate) fn enter(directory: &Path, create: bool) -> Result<(LocalDisk, DirectoryLock)> {
    let made = check(directory, create)?;
    let disk = LocalDisk::new(directory)?;
    made.iter().try_for_each(|path| sync_parent(path))?;
    let lock = DirectoryLock::acquire(directory)?;
    Ok((disk, lock))
}

/// Checks that a directory has a database or may become one. Returns the directories that must be made for it,
/// outermost last.
fn check(directory: &Path, create: bool) -> Result<Vec<PathBuf>> {
    let named = |error: io::Error| -> Error {
        DiskError::new("open the database in", directory.display().to_string(), &error).into()
    };
    let none = || {
        let message = format!(
            "there is no database in {}; `mangrove serve --data` and `mangrove load --data` make one",
            directory.display()
        );
        Err(Error::new(ErrorKind::NotFound, message))
    };
    match fs::metadata(directory) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => {
            let message = format!("{} is a file; a database is kept in a directory of its own", directory.display());
            return Err(Error::invalid(message));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let missing = directory.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists());
            return if create { Ok(missing.map(Path::to_owned).collect()) } else { none() };
        }
        Err(error) => return Err(named(error)),
    }
    let names = fs::read_dir(directory).and_then(|entries| {
        entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect::<io::Result<Vec<String>>>()
    });
    let names = names.map_err(named)?;
    if names.iter().any(|name| name == MANIFEST_DIR) {
        return Ok(Vec::new());
    }
    match names.iter().find(|name| !ENTRIES.contains(&name.as_str())) {
        // A home directory must not become a database by a slip.
        Some(other) => Err(Error::invalid(format!(
            "{} has no database, and other things in it ({other}); name a new or empty directory",
            directory.display()
        ))),
        None if create => Ok(Vec::new()),
        None => none(),
    }
}

/// Makes the name of a new directory durable.
fn sync_parent(path: &Path) -> Result<()> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(parent)
        .and_then(|directory| directory.sync_all())
        .map_err(|error| Error::new(ErrorKind::Io, format!("cannot sync the directory {}: {error}", parent.display())))
}
