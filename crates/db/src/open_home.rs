//! An open home of objects: of its owner, or of a process that follows the owner and can be promoted.

use std::sync::Arc;
use std::time::Duration;

use mangrove_durable::checkpoint::{CheckpointForms, CheckpointReport};
use mangrove_durable::durable::CheckpointStatus;
use mangrove_durable::durable_home::DurableHome;
use mangrove_durable::follow::{FollowOptions, FollowPinState, FollowState, FollowStatus, FollowingHome};
use mangrove_durable::home::Home;
use mangrove_durable::recovery::RecoveryProgress;
use mangrove_durable::stream::log::ObjectLogStatus;
use mangrove_graph::{Error, ErrorKind, Result};
use mangrove_txn::TransactionManager;
use parking_lot::RwLock;
use uuid::Uuid;

use crate::durable_options::home_options;
use crate::options::DatabaseOptions;
use crate::recovery::{Recovery, of_summary};

/// How long closing a graph waits until its home has confirmed the end of the log.
const CLOSE_WAIT: Duration = Duration::from_secs(5);

/// An open home.
pub(crate) struct OpenHome {
    manager: TransactionManager,
    home: Arc<dyn Home>,
    database: Uuid,
    /// Its address, for messages.
    address: String,
    /// The options that it was opened with.
    options: DatabaseOptions,
    recovery: Recovery,
    /// Held for writing only to change the role, and for reading while a checkpoint is taken.
    role: RwLock<Role>,
}

/// What this process is to the graph. Transactions go on when it changes.
enum Role {
    Owner(DurableHome),
    Following(FollowingHome),
    /// It becomes the owner. The status is that of the moment before.
    Promoting(FollowStatus),
    /// A promotion has failed, and the graph must be opened again.
    Lost(Error),
}

/// The state and numbers of a log in a home, by the role of this process.
pub(crate) enum RoleReport {
    Owner { incarnation: u64, log: ObjectLogStatus, checkpoint: CheckpointStatus },
    Following(FollowStatus),
    Lost(Error),
}

impl OpenHome {
    /// Takes over or creates the database in a home.
    pub(crate) fn own(
        home: Arc<dyn Home>,
        options: &DatabaseOptions,
        progress: &(dyn Fn(RecoveryProgress) + Sync),
    ) -> Result<Self> {
        let address = address_of(&*home);
        let durable = DurableHome::open(home.clone(), &home_options(options), progress)?;
        Ok(OpenHome {
            manager: durable.manager().clone(),
            home,
            database: durable.database(),
            address,
            options: options.clone(),
            recovery: of_summary(durable.recovery()),
            role: RwLock::new(Role::Owner(durable)),
        })
    }

    /// Follows the owner of the database in a home.
    pub(crate) fn follow(
        home: Arc<dyn Home>,
        options: &DatabaseOptions,
        progress: &(dyn Fn(RecoveryProgress) + Sync),
    ) -> Result<Self> {
        let address = address_of(&*home);
        let of_follower = FollowOptions { graph: home_options(options), ..FollowOptions::default() };
        let following = FollowingHome::open(home.clone(), &of_follower, progress)?;
        if following.status().pin == FollowPinState::Refused {
            tracing::warn!(
                place = address,
                "this process may not write to the home, so it pins nothing: if it is paused for long, the owner may delete what \
                 was not read, and the graph must be loaded again"
            );
        }
        Ok(OpenHome {
            manager: following.manager().clone(),
            home,
            database: following.database(),
            address,
            options: options.clone(),
            recovery: of_summary(following.recovery()),
            role: RwLock::new(Role::Following(following)),
        })
    }

    /// The transactions of the graph, also after a promotion.
    pub(crate) fn manager(&self) -> &TransactionManager {
        &self.manager
    }

    /// The home itself.
    pub(crate) fn home(&self) -> &Arc<dyn Home> {
        &self.home
    }

    /// The id of the database.
    pub(crate) fn database(&self) -> Uuid {
        self.database
    }

    /// The address of the home.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// What was recovered when the graph was opened.
    pub(crate) fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// The state and numbers of the log.
    pub(crate) fn report(&self) -> RoleReport {
        match &*self.role.read() {
            Role::Owner(durable) => RoleReport::Owner {
                incarnation: durable.incarnation(),
                log: durable.log_status(),
                checkpoint: durable.checkpoint_status(),
            },
            Role::Following(following) => RoleReport::Following(following.status()),
            Role::Promoting(status) => RoleReport::Following(status.clone()),
            Role::Lost(error) => RoleReport::Lost(error.clone()),
        }
    }

    /// What is known about the following; `None` for an owner.
    pub(crate) fn following(&self) -> Option<FollowStatus> {
        match self.report() {
            RoleReport::Following(status) => Some(status),
            RoleReport::Owner { .. } | RoleReport::Lost(_) => None,
        }
    }

    /// Why this process must follow the graph with another store; `None` if it follows, or is the owner.
    pub(crate) fn stopped_following(&self) -> Option<Error> {
        match self.report() {
            RoleReport::Following(FollowStatus { state: FollowState::Stopped { error }, .. }) => {
                (error.kind() == ErrorKind::Closed).then_some(error)
            }
            RoleReport::Lost(error) => Some(error),
            RoleReport::Following(_) | RoleReport::Owner { .. } => None,
        }
    }

    /// Follows the owner of the same graph, with another store.
    pub(crate) fn follow_again(&self) -> Result<(Self, DatabaseOptions)> {
        Ok((OpenHome::follow(self.home.clone(), &self.options, &|_| {})?, self.options.clone()))
    }

    /// Takes a checkpoint, as the owner.
    pub(crate) fn checkpoint(&self, forms: CheckpointForms) -> Result<Option<CheckpointReport>> {
        match &*self.role.read() {
            Role::Owner(durable) => durable.checkpoint_with(forms),
            Role::Following(_) | Role::Promoting(_) => Err(Error::new(
                ErrorKind::ReadOnly,
                "this server follows the owner of the graph, which takes the checkpoints; ask the owner",
            )),
            Role::Lost(error) => Err(error.clone()),
        }
    }

    /// Makes this process the owner. Transactions that are open go on.
    pub(crate) fn promote(&self) -> Result<()> {
        let mut role = self.role.write();
        let following = match std::mem::replace(&mut *role, Role::Lost(Error::bug("a promotion has panicked"))) {
            Role::Following(following) => following,
            other => {
                let refused = match &other {
                    Role::Owner(_) => Error::invalid("this server is the owner of the graph already"),
                    Role::Lost(error) => error.clone(),
                    Role::Following(_) | Role::Promoting(_) => Error::invalid("this server is being promoted already"),
                };
                *role = other;
                return Err(refused);
            }
        };
        *role = Role::Promoting(following.status());
        drop(role);
        // Without the lock: reports go on meanwhile.
        let (next, outcome) = match following.promote() {
            Ok(durable) => {
                let incarnation = durable.incarnation();
                tracing::info!(place = self.address, incarnation, "became the owner of the graph");
                (Role::Owner(durable), Ok(()))
            }
            Err(failed) => {
                let next = match failed.following {
                    Some(following) => Role::Following(*following),
                    None => Role::Lost(failed.error.clone().and("the graph must be opened again")),
                };
                (next, Err(failed.error))
            }
        };
        *self.role.write() = next;
        outcome
    }
}

impl Drop for OpenHome {
    fn drop(&mut self) {
        let closed = Role::Lost(Error::new(ErrorKind::Closed, "the graph was closed"));
        if let Role::Owner(durable) = std::mem::replace(self.role.get_mut(), closed)
            && let Err(error) = durable.close(CLOSE_WAIT)
        {
            tracing::warn!(place = self.address, "the log was not ended: {error}");
        }
    }
}

/// The address of a home, as its user would write it.
fn address_of(home: &dyn Home) -> String {
    home.describe("").trim_end_matches('/').to_owned()
}

/// The name of the state of a follower, in metrics and `/health`.
pub(crate) fn state_name(state: &FollowState) -> &'static str {
    match state {
        FollowState::Following => "following",
        FollowState::OwnerClosed => "owner closed",
        FollowState::Stopped { .. } => "stopped",
    }
}
