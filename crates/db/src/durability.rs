//! The durability of a graph in a directory or a home: checkpoints, the state of its log, what recovery found.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mangrove_durable::checkpoint::{CheckpointForms, CheckpointReport};
use mangrove_durable::disk::Disk;
use mangrove_durable::durable::CheckpointStatus;
use mangrove_durable::follow::{FollowState, FollowStatus};
use mangrove_durable::log::{DurabilityStatus, LogState};
use mangrove_durable::stream::log::{ObjectLogState, ObjectLogStatus};
use mangrove_graph::{Error, Result};
use uuid::Uuid;

use crate::home::{Home, OpenDirectory};
use crate::open_home::{OpenHome, RoleReport, state_name};
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
    /// Of the owner's log, which this process follows.
    Following(Box<FollowStatus>),
    /// Of a graph that must be opened again, because its promotion has failed.
    Lost(Error),
}

impl LogReport {
    /// The name of the state in metrics and `/health`.
    pub fn state_name(&self) -> &'static str {
        match self {
            LogReport::Directory(log) => log.state.name(),
            LogReport::Home(log) => log.state.name(),
            LogReport::Following(status) => state_name(&status.state),
            LogReport::Lost(_) => "lost",
        }
    }

    /// Returns true if this process follows the owner of the graph.
    pub fn is_followed(&self) -> bool {
        matches!(self, LogReport::Following(_))
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
            LogReport::Following(status) => Some(match &status.state {
                FollowState::Following | FollowState::OwnerClosed => {
                    "this server follows the owner of the graph and only reads; to make it the owner: mangrove promote"
                        .to_owned()
                }
                FollowState::Stopped { error } => error.message().to_owned(),
            }),
            LogReport::Lost(error) => Some(error.message().to_owned()),
        }
    }

    /// Every commit up to this timestamp is durable, and a follower has it.
    pub fn durable_ts(&self) -> u64 {
        match self {
            LogReport::Directory(log) => log.durable_ts,
            LogReport::Home(log) => log.durable_ts,
            LogReport::Following(status) => status.applied_ts,
            LogReport::Lost(_) => 0,
        }
    }

    /// Bytes that were written; of a follower: read.
    pub fn bytes(&self) -> u64 {
        match self {
            LogReport::Directory(log) => log.bytes,
            LogReport::Home(log) => log.counts.bytes,
            LogReport::Following(status) => status.bytes,
            LogReport::Lost(_) => 0,
        }
    }

    /// Writes, each of which makes a group of commits durable: batches with one sync in a directory, objects in a
    /// home; of a follower: objects that were read.
    pub fn writes(&self) -> u64 {
        match self {
            LogReport::Directory(log) => log.batches,
            LogReport::Home(log) => log.counts.objects,
            LogReport::Following(status) => status.objects,
            LogReport::Lost(_) => 0,
        }
    }

    /// Commits that were written; of a follower: redone.
    pub fn commits(&self) -> u64 {
        match self {
            LogReport::Directory(log) => log.commits,
            LogReport::Home(log) => log.counts.commits,
            LogReport::Following(status) => status.commits,
            LogReport::Lost(_) => 0,
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
    /// Counts the openings of the database: the fencing epoch of a directory, or the incarnation in a home. Of a follower:
    /// the owner's.
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
        let home = OpenHome::own(home, options, &|_| {})?;
        Ok(Self::assemble(options, home.manager().clone(), Home::Objects(Box::new(home))))
    }

    /// Takes a checkpoint on this thread while writers continue. Returns a report about its files; `None` if nothing
    /// has changed since the last checkpoint.
    pub fn checkpoint(&self) -> Result<Option<CheckpointReport>> {
        self.checkpoint_with(CheckpointForms::default())
    }

    /// As [`Database::checkpoint`], with these forms for other programs.
    pub fn checkpoint_with(&self, forms: CheckpointForms) -> Result<Option<CheckpointReport>> {
        match &self.inner.home {
            Home::Directory(directory) => directory.durable.checkpoint_with(forms),
            Home::Objects(home) => home.checkpoint(forms),
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
                let (epoch, log, checkpoint) = match home.report() {
                    RoleReport::Owner { incarnation, log, checkpoint } => {
                        (incarnation, LogReport::Home(log), checkpoint)
                    }
                    RoleReport::Following(status) => {
                        (status.incarnation, LogReport::Following(Box::new(status)), CheckpointStatus::default())
                    }
                    RoleReport::Lost(error) => (0, LogReport::Lost(error), CheckpointStatus::default()),
                };
                durability(Location::Home(home.address().to_owned()), home.database(), epoch, log, checkpoint)
            }
        }
    }

    /// The result of recovery when the graph was opened; `None` for a graph in memory.
    pub fn recovery(&self) -> Option<Recovery> {
        match &self.inner.home {
            Home::Memory => None,
            Home::Directory(directory) => Some(of_summary(directory.durable.recovery())),
            Home::Objects(home) => Some(home.recovery().clone()),
            Home::ReadOnly { recovery, .. } => Some(recovery.clone()),
        }
    }
}
