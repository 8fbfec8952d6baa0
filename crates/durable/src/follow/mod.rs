//! Following the owner of a graph in a [`Home`]: a copy of the graph in memory that serves reads, and becomes the owner
//! when it is promoted.
//!
//! ```text
//! open:     newest manifest ──▶ its checkpoint ──▶ streams up to now          nothing is claimed
//! then:     next object of the stream ──▶ redo its commits ──▶ readers see them
//!                  │ FENCE or FIN                 │ not there: wait; look at the manifests now and then
//!                  └──▶ the stream after it, which the newest manifest lists
//! promote:  claim ──▶ FENCE ──▶ the last objects ──▶ directories of new packs ──▶ own stream
//! ```
//!
//! A follower claims nothing until it is promoted. It puts a pin alone, so that the owner deletes nothing that it has not
//! read. If the pin ends while the follower is paused, or if it may put none, an object may be missing. Then the follower
//! stops, keeps serving reads of the last commit that it has, and says that it must be opened again
//! ([`FollowState::Stopped`]).
//!
//! Transactions begin at [`FollowingHome::manager`]. Writes are refused with `ReadOnly` until the promotion, and clients
//! that have the manager go on with it afterwards.
//!
//! | module | what it holds |
//! |---|---|
//! | `tail` | the reading side: manifests, streams, one object after the other; no threads |
//! | `redo` | the records of an object, redone |
//! | `pin` | what keeps unread objects in the home |
//! | `promote` | from a follower to an owner |
//! | `status` | what is known about it, for health checks and metrics |
//!
//! Invariants (LOG-70 and LOG-71 are about promotions, too):
//!
//! - **LOG-72.** A follower has a prefix of the graph's history: everything up to a commit, and nothing else. It reads
//!   streams object by object without a gap, and goes from one stream to the next only if a manifest lists both.
//! - **LOG-73.** A follower whose graph was never written to checks the newest manifest before its first commit, and before
//!   it claims the graph: a bulk load is in no stream, but in the checkpoint alone.
//! - **LOG-74.** A follower knows which names are durable. A name that only its own clients have made is none of them. If
//!   the owner gives such a number to another name, the follower stops.
//! - **LOG-75.** A checkpoint has names that no stream has: those of transactions that were rolled back. An owner that was
//!   opened with this checkpoint may use them. So a follower takes the names of the newest checkpoint before it goes on to
//!   another owner's stream, and when it is promoted.

mod pin;
mod promote;
mod redo;
mod status;
mod tail;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use mangrove_graph::{Error, ErrorKind, Result};
use mangrove_txn::TransactionManager;
use uuid::Uuid;

use crate::damage::panic_text;
use crate::durable_home::{DurableHome, DurableHomeOptions};
use crate::home::Home;
use crate::pin::PIN_TIME;
use crate::recovery::{RecoveryProgress, RecoverySummary};
use crate::stream::clock;
use crate::stream::tails::StreamsEnd;
pub use pin::FollowPinState;
pub use promote::PromotionError;
use status::FollowBoard;
pub use status::{FollowRequests, FollowState, FollowStatus, FollowTrouble};
use tail::{Found, Tail};

/// The options of a follower.
#[derive(Clone, Debug)]
pub struct FollowOptions {
    /// The options of the graph, which it keeps when it is promoted. `create` is not used.
    pub graph: DurableHomeOptions,
    /// The time between two looks for the next object while commits come.
    pub busy_pause: Duration,
    /// The time between two looks for the next object when no commit has come for `busy_for`.
    pub idle_pause: Duration,
    /// How long after a commit the shorter pause is made.
    pub busy_for: Duration,
    /// How long what was not read is kept from collection after the follower has stopped or is paused; zero: it puts no pin.
    pub pin_time: Duration,
    /// The time between two looks at the manifests while the stream is open.
    pub manifest_pause: Duration,
    /// The same after the owner has closed the graph, and after a request that failed.
    pub closed_pause: Duration,
    /// How old a transaction may be that keeps the follower from redoing a commit. Then it expires.
    pub snapshot_age: Duration,
    /// The same during a promotion.
    pub promotion_snapshot_age: Duration,
}

impl Default for FollowOptions {
    fn default() -> Self {
        FollowOptions {
            graph: DurableHomeOptions::default(),
            busy_pause: Duration::from_millis(20),
            idle_pause: Duration::from_millis(200),
            busy_for: Duration::from_secs(1),
            pin_time: PIN_TIME,
            manifest_pause: Duration::from_secs(10),
            closed_pause: Duration::from_secs(1),
            snapshot_age: Duration::from_secs(300),
            promotion_snapshot_age: Duration::from_secs(1),
        }
    }
}

/// A graph in a home that follows its owner. Dropping it ends the following; transactions that are open can still be
/// read.
#[derive(Debug)]
pub struct FollowingHome {
    manager: TransactionManager,
    recovery: RecoverySummary<StreamsEnd>,
    database: Uuid,
    board: Arc<FollowBoard>,
    /// How old a transaction may be, in milliseconds, that keeps the thread from ending.
    hurried_age_ms: u64,
    /// Gives the reading side back when it was told to end.
    thread: Option<JoinHandle<Box<Tail>>>,
}

impl FollowingHome {
    /// Opens the graph in a home without claiming anything, and follows its owner. Returns when it has everything that
    /// the home has. `progress` is called from several threads.
    ///
    /// # Errors
    ///
    /// If there is no graph, if an object is damaged, if the home fails, or if the owner deletes objects faster than they
    /// are read.
    pub fn open(
        home: Arc<dyn Home>,
        options: &FollowOptions,
        progress: &(dyn Fn(RecoveryProgress) + Sync),
    ) -> Result<Self> {
        FollowingHome::start(Box::new(Tail::open(home, options, progress)?))
    }

    /// Starts the thread that reads.
    fn start(tail: Box<Tail>) -> Result<Self> {
        tail.manager().set_follower_snapshot_age_ms(tail.options().snapshot_age.as_millis() as u64);
        let (board, options) = (Arc::new(FollowBoard::new(&tail)), tail.options().clone());
        let (manager, recovery, database) = (tail.manager().clone(), tail.recovery().clone(), tail.database());
        let shared = board.clone();
        let thread = std::thread::Builder::new().name("mangrove-follow".into()).spawn(move || run(tail, &shared));
        let thread = thread.map_err(|error| {
            Error::new(ErrorKind::Io, format!("the thread that follows could not be started: {error}"))
        })?;
        let hurried_age_ms = options.promotion_snapshot_age.as_millis() as u64;
        Ok(FollowingHome { manager, recovery, database, board, hurried_age_ms, thread: Some(thread) })
    }

    /// The transactions of the graph. They see everything up to the last commit that was redone, and may not write.
    pub fn manager(&self) -> &TransactionManager {
        &self.manager
    }

    /// The summary of the recovery when the graph was opened.
    pub fn recovery(&self) -> &RecoverySummary<StreamsEnd> {
        &self.recovery
    }

    /// The id of the database.
    pub fn database(&self) -> Uuid {
        self.database
    }

    /// What is known about the following now.
    pub fn status(&self) -> FollowStatus {
        self.board.status(clock::now())
    }

    /// Makes this process the owner: fences the owner, redoes its last commits, and lets the transactions of
    /// [`FollowingHome::manager`] write. The owner may be dead, alive or paused. Readers go on, except those that keep
    /// the last commits from being redone ([`FollowOptions::promotion_snapshot_age`]).
    ///
    /// # Errors
    ///
    /// If the home fails, or if the follower must be opened again. The error has the follower, which goes on following,
    /// unless it says otherwise; nothing that was acknowledged is lost.
    pub fn promote(mut self) -> std::result::Result<DurableHome, PromotionError> {
        let lost = |error| PromotionError { error, following: None };
        if let FollowState::Stopped { error } = self.status().state {
            return Err(PromotionError { error, following: Some(Box::new(self)) });
        }
        let Some(Ok(mut tail)) = self.end() else {
            return Err(lost(Error::bug("the thread that follows has panicked; open the graph again")));
        };
        match tail.take_over() {
            Ok(owned) => tail.own(owned).map_err(lost),
            Err(error) => match FollowingHome::start(tail) {
                Ok(following) => Err(PromotionError { error, following: Some(Box::new(following)) }),
                Err(_) => Err(lost(error)),
            },
        }
    }
}

impl FollowingHome {
    /// Ends the thread, and returns the reading side. Old readers do not hold it up.
    fn end(&mut self) -> Option<std::thread::Result<Box<Tail>>> {
        let thread = self.thread.take()?;
        self.manager.set_follower_snapshot_age_ms(self.hurried_age_ms);
        self.board.end();
        Some(thread.join())
    }
}

impl Drop for FollowingHome {
    fn drop(&mut self) {
        // A panic was reported already.
        drop(self.end());
    }
}

/// Reads and redoes one object after the other until it is told to end.
fn run(mut tail: Box<Tail>, board: &FollowBoard) -> Box<Tail> {
    let options = tail.options().clone();
    let mut last_commit_us = 0;
    while !board.is_ending() {
        let step = catch_unwind(AssertUnwindSafe(|| tail.step()));
        let step = step.unwrap_or_else(|panic| Err(Error::bug(format!("following: {}", panic_text(&*panic)))));
        let now = clock::now();
        let is_busy = now.us.saturating_sub(last_commit_us) < options.busy_for.as_micros() as u64;
        board.note(&tail, &step, now);
        let pause = match step {
            Ok(Found::Records { commits, .. }) => {
                last_commit_us = if commits > 0 { now.us } else { last_commit_us };
                continue;
            }
            Ok(Found::Stream) => continue,
            Ok(Found::Nothing) if tail.is_between_streams() => Some(options.closed_pause),
            Ok(Found::Nothing) => Some(if is_busy { options.busy_pause } else { options.idle_pause }),
            Err(error) if is_passing(&error) => Some(options.closed_pause),
            Err(_) => None,
        };
        board.wait(pause);
    }
    tail
}

/// Returns true if the same step may succeed later.
fn is_passing(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Io | ErrorKind::MemoryLimit | ErrorKind::Expired)
}

#[cfg(all(test, not(feature = "model")))]
mod tests;
