//! Opening a database read-only: no file on its disk is changed.
//!
//! The graph is recovered as [`Durable::open`](crate::durable::Durable::open) recovers it. There is no new fencing
//! epoch, no new log segment and no checkpoint, so a directory without write permission can be opened. A transaction
//! may write in memory, but the log (`ReadOnlyLog`) refuses its commit. Bulk loads and changes of indexes and rules are
//! refused, too.

use std::sync::Arc;

use mangrove_graph::{Error, ErrorKind, Result};
use mangrove_store::Write;
use mangrove_store::schema::RuleEntry;
use mangrove_txn::{CommitLog, IndexChange, PreparedCommit, TransactionManager, Watermarks};

use crate::disk::Disk;
use crate::durable::DurableOptions;
use crate::manifest::{MANIFEST_DIR, Manifest};
use crate::recovery::{Recovered, RecoveryProgress, RecoverySummary, recover};

/// Opens a database on a disk without changing the disk. Returns its transaction manager and the summary of the
/// recovery. The caller keeps other processes from changing files meanwhile. Fails with `NotFound` if there is no
/// database. Uses the options for recovery and for recent commits, and no others.
pub fn open_to_read(
    disk: &dyn Disk,
    options: &DurableOptions,
    progress: &(dyn Fn(RecoveryProgress) + Sync),
) -> Result<(TransactionManager, RecoverySummary)> {
    let Some(manifest) = Manifest::newest(disk)? else {
        let message = format!("there is no database: {} has no manifest", disk.describe(MANIFEST_DIR));
        return Err(Error::new(ErrorKind::NotFound, message));
    };
    let Recovered { store, summary, .. } = recover(disk, &manifest, options.of_recovery(&manifest), progress)?;
    let log = Arc::new(ReadOnlyLog);
    let manager = TransactionManager::with_log(Arc::new(store), options.recent, summary.last_ts, log);
    // A bulk load does not go through the log, so it is refused here.
    manager.after_load(Box::new(|_, _| Err(refused())));
    Ok((manager, summary))
}

/// A log that accepts no commits.
#[derive(Debug)]
struct ReadOnlyLog;

impl CommitLog for ReadOnlyLog {
    fn prepare(&self, _: &[Write], _: u64) -> Result<Box<dyn PreparedCommit>> {
        Err(refused())
    }

    /// All recovered commits are durable, and none is added.
    fn wait(&self, _: u64, _: &dyn Watermarks) -> Result<()> {
        Ok(())
    }

    fn change_index(&self, _: &IndexChange, _: &dyn Watermarks) -> Result<()> {
        Err(refused())
    }

    fn change_rules(&self, _: &[RuleEntry], _: u32, _: &dyn Watermarks) -> Result<()> {
        Err(refused())
    }
}

fn refused() -> Error {
    let message = "the database was opened read-only, so it takes no writes; open it for writing";
    Error::new(ErrorKind::ReadOnly, message)
}
