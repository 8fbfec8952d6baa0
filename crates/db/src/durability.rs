//! The durability of a graph in a directory or a home: checkpoints, the state of its log, what recovery found.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mangrove_durable::disk::Disk;
use mangrove_durable::durable::CheckpointStatus;
use mangrove_durable::log::{DurabilityStatus, LogState};
use mangrove_durable::stream::log::{ObjectLogState, ObjectLogStatus};
use mangrove_graph::{Error, Result};
use uuid::Uuid;

use crate::home::{Home, OpenDirectory, OpenHome};
use crate::options::DatabaseOptions;
use crate::recovery::{Recovery, of_summary};
use crate::state::Database;

/// Where a graph is kept that outlives its process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Location {
    /// In a directory.
    Directory(PathBuf),
    /// In a home of objects, with its address.
    Home(String),
}

impl Location {
    /// The directory, if it is one.
    pub fn directory(&self) -> Option<&Path> {
        match self {
            Location::Directory(directory) => Some(directory),
            Location::Home(_) => None,
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Directory(directory) => directory.display().fmt(f),
            Location::Home(address) => address.fmt(f),
        }
    }
}

/// The state and numbers of a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LogReport {
    /// Of a log in a directory.
    Directory(DurabilityStatus),
    /// Of a log in a home of objects.
    Home(ObjectLogStatus),
}

impl LogReport {
    /// The name of the state in metrics and `/health`.
    pub fn state_name(&self) -> &'static str {
        match self {
            LogReport::Directory(log) => log.state.name(),
            LogReport::Home(log) => log.state.name(),
        }
    }

    /// Returns true if the log accepts commits.
    pub fn is_running(&self) -> bool {
        self.refusal().is_none()
    }

    /// The reason why the log accepts no commits, if it accepts none.
    pub fn refusal(&self) -> Option<String> {
        match self {
            LogReport::Directory(log) => match &log.state {
                LogState::Refusing { cause } | LogState::Failed { cause } => Some(cause.clone()),
                LogState::Running => None,
            },
            LogReport::Home(log) => match &log.state {
                ObjectLogState::Running => None,
                ObjectLogState::Stalled { cause, .. } => Some(cause.clone()),
                ObjectLogState::Fenced { by } => {
                    let by = by.map(|by| format!(" (incarnation {by})")).unwrap_or_default();
                    Some(format!(
                        "another process has opened the graph{by}; send requests there, or start this one again"
                    ))
                }
                ObjectLogState::Closed => Some("the graph is being closed".to_owned()),
            },
        }
    }

    /// Every commit up to this timestamp is durable.
    pub fn durable_ts(&self) -> u64 {
        match self {
            LogReport::Directory(log) => log.durable_ts,
            LogReport::Home(log) => log.durable_ts,
        }
    }

    /// Bytes that were written.
    pub fn bytes(&self) -> u64 {
        match self {
            LogReport::Directory(log) => log.bytes,
            LogReport::Home(log) => log.counts.bytes,
        }
    }

    /// Writes, each of which makes a group of commits durable: batches with one sync in a directory, objects in a home.
    pub fn writes(&self) -> u64 {
        match self {
            LogReport::Directory(log) => log.batches,
            LogReport::Home(log) => log.counts.objects,
        }
    }

    /// Commits that were written.
    pub fn commits(&self) -> u64 {
        match self {
            LogReport::Directory(log) => log.commits,
            LogReport::Home(log) => log.counts.commits,
        }
    }
}

/// The state of the durability of a graph in a directory or a home.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Durability {
    /// Where the graph is kept.
    pub location: Location,
    /// The identity of the database, drawn when it was created.
    pub database: Uuid,
    /// Counts the openings of the database: the fencing epoch of a directory, or the incarnation in a home.
    pub epoch: u64,
    /// The state of the log.
    pub log: LogReport,
    /// The number of commits that writers see and that are not durable yet.
    pub lag: u64,
    /// The state of the checkpoints.
    pub checkpoint: CheckpointStatus,
}

impl Durability {
    /// The directories of the files of checkpoints: of packs, and of files that earlier versions wrote. None for a graph
    /// in a home.
    pub fn checkpoint_directories(&self) -> Vec<PathBuf> {
        use mangrove_durable::manifest::{CHECKPOINT_DIR, FIRST_CHECKPOINT_DIR};
        let within =
            |directory: &Path| [CHECKPOINT_DIR, FIRST_CHECKPOINT_DIR].map(|name| directory.join(name)).to_vec();
        self.location.directory().map(within).unwrap_or_default()
    }

    /// The reason why the graph refuses writes, if it does.
    pub fn read_only_cause(&self) -> Option<String> {
        self.log.refusal()
    }
}

impl Database {
    /// Opens the graph on a disk of the caller, who keeps other processes away from it. For tests, on a disk that fails
    /// on demand ([`SimDisk`](crate::SimDisk)).
    #[doc(hidden)]
    pub fn open_on(disk: Arc<dyn Disk>, options: &DatabaseOptions) -> Result<Self> {
        let home = OpenDirectory::on(disk, options)?;
        Ok(Self::assemble(options, home.manager().clone(), Home::Directory(Box::new(home))))
    }

    /// Takes over or creates the graph in a home of the caller, for tests on homes that fail on demand.
    #[doc(hidden)]
    pub fn open_in(home: Arc<dyn mangrove_durable::home::Home>, options: &DatabaseOptions) -> Result<Self> {
        let home = OpenHome::on(home, options, &|_| {})?;
        Ok(Self::assemble(options, home.durable().manager().clone(), Home::Objects(home)))
    }

    /// Takes a checkpoint on this thread while writers continue. Returns a report about its files; `None` if nothing
    /// has changed since the last checkpoint.
    pub fn checkpoint(&self) -> Result<Option<mangrove_durable::checkpoint::CheckpointReport>> {
        match &self.inner.home {
            Home::Directory(directory) => directory.durable.checkpoint(),
            Home::Objects(home) => home.durable().checkpoint(),
            Home::Memory | Home::ReadOnly { .. } => Err(Error::unsupported(
                "a graph in memory, or one that was opened to be read, has no checkpoints; open a directory or a home to \
                 have one that outlives its process",
            )),
        }
    }

    /// The state of log and checkpoints; `None` for a graph in memory.
    pub fn durability(&self) -> Option<Durability> {
        // The log first: a watermark that is read after it is not below it.
        let durability = |location, database, epoch, log: LogReport, checkpoint| {
            let lag = self.inner.manager.watermark().saturating_sub(log.durable_ts());
            Some(Durability { location, database, epoch, log, lag, checkpoint })
        };
        match &self.inner.home {
            Home::Memory | Home::ReadOnly { .. } => None,
            Home::Directory(home) => {
                let OpenDirectory { durable, directory, .. } = &**home;
                let log = LogReport::Directory(durable.log_status());
                let location = Location::Directory(directory.clone());
                durability(location, durable.database(), durable.epoch(), log, durable.checkpoint_status())
            }
            Home::Objects(home) => {
                let durable = home.durable();
                let log = LogReport::Home(durable.log_status());
                let location = Location::Home(durable.describe().trim_end_matches('/').to_owned());
                durability(location, durable.database(), durable.incarnation(), log, durable.checkpoint_status())
            }
        }
    }

    /// The result of recovery when the graph was opened; `None` for a graph in memory.
    pub fn recovery(&self) -> Option<Recovery> {
        match &self.inner.home {
            Home::Memory => None,
            Home::Directory(directory) => Some(of_summary(directory.durable.recovery())),
            Home::Objects(home) => Some(of_summary(home.durable().recovery())),
            Home::ReadOnly { recovery, .. } => Some(recovery.clone()),
        }
    }
}
