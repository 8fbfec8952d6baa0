//! Restoring a state of a graph as a new database: from a home, a backup or a directory, to a home or a directory.
//!
//! ```text
//! find the state: the newest manifest at or before the moment ──▶ pin it ──▶ the streams after it, up to the moment
//! copy:           claim of the last incarnation ──▶ packs ──▶ objects of streams, each stream with an end ──▶ manifest 1
//! ```
//!
//! - **LOG-85.** The manifest is put last. A restore that was interrupted leaves a place without a manifest, which no
//!   database opens and no other restore uses.
//!
//! How a state is found and copied: `crate::extract`.
//!
//! | module | what it holds |
//! |---|---|
//! | `target` | the new database: in a home, or in a directory |

mod target;

use std::time::Duration;

use mangrove_graph::Result;
use uuid::Uuid;

use crate::backup;
use crate::extract::copy::Origin;
use crate::extract::{directory, find_in_home};
use crate::manifest::ManifestOrigin;
use crate::states::manifest_numbers;

pub use crate::extract::{Location, Moment};

/// The options of a restore.
#[derive(Clone, Debug)]
pub struct RestoreOptions {
    /// How long a request is sent again while a home does not answer.
    pub patience: Duration,
    /// The id of the new database; `None`: a random one.
    pub new_database: Option<Uuid>,
}

impl Default for RestoreOptions {
    fn default() -> Self {
        RestoreOptions { patience: Duration::from_secs(30), new_database: None }
    }
}

/// The result of a restore, in numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RestoreReport {
    /// The id of the new database.
    pub database: Uuid,
    /// What it was made from. `last_ts` is the timestamp of its last commit.
    pub origin: ManifestOrigin,
    /// When the last part of the log that it has was written, in microseconds since 1970; 0 if it has none.
    pub written_us: u64,
    /// Packs that were copied.
    pub packs: u64,
    /// Objects of streams that were copied or written. A directory's log counts as one for each batch.
    pub objects: u64,
    /// Bytes of both.
    pub bytes: u64,
}

/// Restores the state of a graph at a moment as a new database in an empty place. The source is not changed, apart from a
/// pin while it is read.
///
/// # Errors
///
/// `NotFound` if there is no graph, or if the moment is not kept. `InvalidArgument` if the target is not empty. If a source
/// object is damaged or missing, which the error names.
pub fn restore(from: &Location, moment: Moment, to: &Location, options: &RestoreOptions) -> Result<RestoreReport> {
    target::check_empty(to, options.patience)?;
    let patience = options.patience;
    match from {
        Location::Directory(disk) => {
            let found = directory::find(disk, moment)?;
            let origin = Origin::of_disk(disk.clone());
            target::write(to, &origin, found, None, options)
        }
        Location::Home(home) if manifest_numbers(&**home, patience)?.is_empty() => {
            let pin = backup::hold(home, "restore", patience)?;
            let found = backup::find(&**home, moment, patience)?;
            let origin = Origin::of_home(home.clone(), patience);
            target::write(to, &origin, found, Some(pin), options)
        }
        Location::Home(home) => {
            let (found, pin) = find_in_home(home, moment, "restore", patience)?;
            let origin = Origin::of_home(home.clone(), patience);
            target::write(to, &origin, found, Some(pin), options)
        }
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests;
