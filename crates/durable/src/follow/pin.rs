//! The pin of a follower: what it has not read stays in the home while it lives.
//!
//! - **LOG-77.** A follower that may write to the home pins a manifest whose floors are not above the object that it reads
//!   next, so that object stays (LOG-82). The pin moves to each newer manifest of which this holds, so that what the follower
//!   has read can be collected.
//!
//! A pin is a help and not a promise. A follower that was paused for longer than its pin's time, or that may not write to
//! the home, finds an object missing, and must be opened again.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mangrove_graph::{Error, Result};

use crate::home::Home;
use crate::pin::{Pin, PinOptions};

/// How long a follower waits after a pin could not be put or moved.
const RETRY_PAUSE_US: u64 = 1_000_000;

/// Whether a follower has a pin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FollowPinState {
    /// A manifest, and all later ones, stay with the streams after them.
    Held {
        /// The number of the manifest.
        manifest: u64,
    },
    /// The home refuses writes to this process. If the owner deletes what was not read, the graph must be opened again.
    Refused,
    /// The follower's options ask for no pin.
    Off,
}

/// The pin of a follower.
#[derive(Debug)]
pub(super) struct FollowPin {
    pin: Option<Pin>,
    home: Arc<dyn Home>,
    options: PinOptions,
    /// False once a pin has ended and another one was put.
    is_first: bool,
    /// Before this, in microseconds, nothing is tried again.
    pause_until_us: u64,
}

impl FollowPin {
    /// Pins a manifest for so long at a time. `Duration::ZERO`: pins nothing.
    pub(super) fn put(home: Arc<dyn Home>, manifest: u64, time: Duration, patience: Duration) -> Result<Self> {
        let options = PinOptions { time, ..PinOptions::of("follower", patience) };
        let pin = match time.is_zero() {
            true => None,
            false => Some(Pin::put_for(home.clone(), manifest, options.clone())?.without_patience()),
        };
        // From here on, the next step is another attempt.
        let options = PinOptions { patience: Duration::ZERO, ..options };
        Ok(FollowPin { pin, home, options, is_first: true, pause_until_us: 0 })
    }

    /// Renews the pin if a third of its time has passed.
    pub(super) fn renew(&mut self, now_us: u64) -> Result<()> {
        match &mut self.pin {
            Some(pin) if self.pause_until_us <= now_us && pin.is_due() && !pin.has_ended() => {
                let renewed = pin.renew();
                self.paused_after(renewed, now_us)
            }
            _ => Ok(()),
        }
    }

    /// Renews the pin, or moves it to the newest manifest if `is_kept` says that this one keeps all that was not read. A pin that has ended is put again: what was deleted in between is missed when it is read.
    pub(super) fn keep(&mut self, newest: u64, is_kept: impl FnOnce() -> bool, now_us: u64) -> Result<()> {
        let Some(pin) = self.pin.as_mut().filter(|pin| pin.is_held() && self.pause_until_us <= now_us) else {
            return Ok(());
        };
        let has_ended = pin.has_ended();
        if !has_ended && pin.manifest() >= newest || !is_kept() {
            return self.renew(now_us);
        }
        self.is_first &= !has_ended;
        let moved = match has_ended {
            true => Pin::put_for(self.home.clone(), newest, self.options.clone()).map(|again| *pin = again),
            false => pin.move_to(newest),
        };
        self.paused_after(moved, now_us)
    }

    fn paused_after(&mut self, outcome: Result<()>, now_us: u64) -> Result<()> {
        outcome.map_err(|error| {
            self.pause_until_us = now_us + RETRY_PAUSE_US;
            Error::new(error.kind(), format!("the pin of this follower: {error}"))
        })
    }

    /// The pinned manifest, if the pin has held all the time: it and all later ones are there.
    pub(super) fn kept_manifest(&self) -> Option<u64> {
        self.pin.as_ref().filter(|pin| self.is_first && pin.is_unbroken()).map(Pin::manifest)
    }

    pub(super) fn state(&self) -> FollowPinState {
        match &self.pin {
            None => FollowPinState::Off,
            Some(pin) if pin.is_held() => FollowPinState::Held { manifest: pin.manifest() },
            Some(_) => FollowPinState::Refused,
        }
    }
}

impl fmt::Display for FollowPinState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FollowPinState::Held { manifest } => write!(f, "manifest {manifest}"),
            FollowPinState::Refused => f.write_str("refused"),
            FollowPinState::Off => f.write_str("off"),
        }
    }
}
