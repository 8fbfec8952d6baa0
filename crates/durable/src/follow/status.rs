//! What is known about a follower, for health checks and metrics, and how its thread is told to end.

use std::time::Duration;

use mangrove_graph::{Error, Result};
use parking_lot::{Condvar, Mutex};

use super::is_passing;
use super::pin::FollowPinState;
use super::tail::{Found, Tail};
use crate::stream::{Now, clock};

/// Whether a follower follows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FollowState {
    /// It reads the stream of an owner.
    Following,
    /// The owner has ended its stream, and no other process has opened the graph since.
    OwnerClosed,
    /// It reads no more. Transactions see the last commit that it has redone. If the kind of the error is `Closed`, open
    /// the graph again.
    Stopped {
        /// Why.
        error: Error,
    },
}

/// Requests that a follower has made since it was opened, without those of loading the checkpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FollowRequests {
    /// Reads of objects of streams, also of names that were free.
    pub objects: u64,
    /// Lists and reads of manifests.
    pub manifests: u64,
    /// Packs whose directories were read.
    pub packs: u64,
}

/// The last trouble of a follower.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FollowTrouble {
    /// What failed.
    pub error: Error,
    /// When, in microseconds since 1970.
    pub unix_us: u64,
}

/// The state and numbers of a follower.
///
/// It cannot tell how many commits the owner is ahead. If its last look was a short time ago, it had everything then.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FollowStatus {
    /// Whether it follows.
    pub state: FollowState,
    /// Transactions that begin now see every commit up to this timestamp.
    pub applied_ts: u64,
    /// The incarnation whose stream it reads, or has read to its end; 0 before the first owner.
    pub incarnation: u64,
    /// The number of the next object of that stream.
    pub next_object: u64,
    /// The number of the newest manifest that it has seen.
    pub manifest: u64,
    /// Whether what it has not read is kept from collection.
    pub pin: FollowPinState,
    /// The time since it last had everything that the home had: since a look for the next object that found none.
    pub since_current: Duration,
    /// When the owner made the last object that was redone, in microseconds since 1970 by the owner's clock.
    pub cut_unix_us: Option<u64>,
    /// The time from then until it was redone, by two clocks.
    pub delay: Option<Duration>,
    /// Objects of records that were read.
    pub objects: u64,
    /// Their bytes, as stored.
    pub bytes: u64,
    /// Commits that were redone.
    pub commits: u64,
    /// Requests.
    pub requests: FollowRequests,
    /// The last trouble, which may have passed.
    pub trouble: Option<FollowTrouble>,
}

/// The status of a follower, written by its thread. Its lock is held for a few instructions, and no other lock is taken
/// under it.
#[derive(Debug)]
pub(super) struct FollowBoard {
    state: Mutex<BoardState>,
    /// Wakes the thread.
    ending: Condvar,
}

#[derive(Debug)]
struct BoardState {
    is_ending: bool,
    status: FollowStatus,
    /// When it last had everything, in microseconds.
    current_us: u64,
}

impl FollowBoard {
    /// The status of a follower that has everything.
    pub(super) fn new(tail: &Tail) -> Self {
        let mut status = FollowStatus {
            state: FollowState::Following,
            applied_ts: 0,
            incarnation: 0,
            next_object: 0,
            manifest: 0,
            pin: FollowPinState::Off,
            since_current: Duration::ZERO,
            cut_unix_us: None,
            delay: None,
            objects: 0,
            bytes: 0,
            commits: 0,
            requests: FollowRequests::default(),
            trouble: None,
        };
        tail.write_status(&mut status);
        let state = BoardState { is_ending: false, status, current_us: clock::now().us };
        FollowBoard { state: Mutex::new(state), ending: Condvar::new() }
    }

    /// Tells the thread to end.
    pub(super) fn end(&self) {
        self.state.lock().is_ending = true;
        self.ending.notify_all();
    }

    pub(super) fn is_ending(&self) -> bool {
        self.state.lock().is_ending
    }

    /// Returns after a time, or when the thread shall end. `None`: only then.
    pub(super) fn wait(&self, pause: Option<Duration>) {
        let mut state = self.state.lock();
        match pause {
            _ if state.is_ending => {}
            Some(pause) => drop(self.ending.wait_for(&mut state, pause)),
            None => {
                while !state.is_ending {
                    self.ending.wait(&mut state);
                }
            }
        }
    }

    /// Notes how a step went.
    pub(super) fn note(&self, tail: &Tail, step: &Result<Found>, now: Now) {
        let mut state = self.state.lock();
        tail.write_status(&mut state.status);
        if let Some(error) = tail.pin_trouble() {
            state.status.trouble = Some(FollowTrouble { error: error.clone(), unix_us: now.unix_us });
        }
        match step {
            Ok(Found::Records { cut_unix_us, .. }) => {
                let cut = Some(*cut_unix_us).filter(|cut| *cut > 0);
                state.status.cut_unix_us = cut;
                state.status.delay = cut.map(|cut| Duration::from_micros(now.unix_us.saturating_sub(cut)));
            }
            Ok(Found::Nothing) => state.current_us = now.us,
            Ok(Found::Stream) => {}
            Err(error) => {
                state.status.trouble = Some(FollowTrouble { error: error.clone(), unix_us: now.unix_us });
                if !is_passing(error) {
                    state.status.state = FollowState::Stopped { error: error.clone() };
                }
            }
        }
    }

    pub(super) fn status(&self, now: Now) -> FollowStatus {
        let state = self.state.lock();
        let since_current = Duration::from_micros(now.us.saturating_sub(state.current_us));
        FollowStatus { since_current, ..state.status.clone() }
    }
}
