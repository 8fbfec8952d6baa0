//! The durability of a graph in a directory: checkpoints, the state of its log, what recovery found.

use std::path::PathBuf;
use std::sync::Arc;

use mangrove_durable::disk::Disk;
use mangrove_durable::durable::CheckpointStatus;
use mangrove_durable::log::{DurabilityStatus, LogState};
use mangrove_durable::recovery::RecoverySummary;
use mangrove_graph::{Error, Result};
use uuid::Uuid;

use crate::home::{Home, OpenDirectory};
use crate::options::DatabaseOptions;
use crate::state::Database;

/// The state of the durability of a graph in a directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Durability {
    /// The directory of the graph.
    pub directory: PathBuf,
    /// The identity of the database, drawn when it was created.
    pub database: Uuid,
    /// The fencing epoch: counts the openings of the database.
    pub epoch: u64,
    /// The state of the log.
    pub log: DurabilityStatus,
    /// The number of commits that writers see and that are not durable yet.
    pub lag: u64,
    /// The state of the checkpoints.
    pub checkpoint: CheckpointStatus,
}

impl Durability {
    /// The directories of the files of checkpoints: of packs, and of files that earlier versions wrote.
    pub fn checkpoint_directories(&self) -> [PathBuf; 2] {
        use mangrove_durable::manifest::{CHECKPOINT_DIR, FIRST_CHECKPOINT_DIR};
        [CHECKPOINT_DIR, FIRST_CHECKPOINT_DIR].map(|directory| self.directory.join(directory))
    }

    /// The reason why the graph refuses writes, if it does.
    pub fn read_only_cause(&self) -> Option<&str> {
        match &self.log.state {
            LogState::Refusing { cause } | LogState::Failed { cause } => Some(cause),
            LogState::Running => None,
        }
    }
}

impl Database {
    /// Opens the graph on a disk of the caller, who keeps other processes away from it. For tests, on a disk that fails
    /// on demand ([`SimDisk`](crate::SimDisk)).
    #[doc(hidden)]
    pub fn open_on(disk: Arc<dyn Disk>, options: &DatabaseOptions) -> Result<Self> {
        let home = OpenDirectory::on(disk, options)?;
        Ok(Self::assemble(options, home.manager().clone(), Home::Directory(home)))
    }

    /// The directory that commits are written to, if there is one.
    pub(crate) fn directory_home(&self) -> Option<&OpenDirectory> {
        match &self.inner.home {
            Home::Directory(directory) => Some(directory),
            Home::Memory | Home::ReadOnly { .. } => None,
        }
    }

    /// Takes a checkpoint on this thread while writers continue. Returns a report about its files; `None` if nothing
    /// has changed since the last checkpoint.
    pub fn checkpoint(&self) -> Result<Option<mangrove_durable::checkpoint::CheckpointReport>> {
        match self.directory_home() {
            Some(home) => home.durable.checkpoint(),
            None => Err(Error::unsupported(
                "a graph in memory, or one that was opened to be read, has no checkpoints; open a directory to have \
                 one that \
                 outlives its process",
            )),
        }
    }

    /// The state of log and checkpoints; `None` for a graph in memory.
    pub fn durability(&self) -> Option<Durability> {
        let home = self.directory_home()?;
        // The log first: a watermark that is read after it is not below it.
        let log = home.durable.log_status();
        let lag = self.inner.manager.watermark().saturating_sub(log.durable_ts);
        Some(Durability {
            directory: home.directory.clone(),
            database: home.durable.database(),
            epoch: home.durable.epoch(),
            log,
            lag,
            checkpoint: home.durable.checkpoint_status(),
        })
    }

    /// The result of recovery when the graph was opened; `None` for a graph in memory.
    pub fn recovery(&self) -> Option<&RecoverySummary> {
        match &self.inner.home {
            Home::Memory => None,
            Home::Directory(directory) => Some(directory.durable.recovery()),
            Home::ReadOnly { recovery, .. } => Some(recovery),
        }
    }
}
