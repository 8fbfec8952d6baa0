//! The state of a graph at a moment: found in a home or a directory, and copied. Backups and restores are made of it.
//!
//! Packs are copied as they are. Between homes, so are the objects of streams; to or from a directory, their records are
//! written anew. The graph is not loaded, so a copy takes little memory.
//!
//! - **LOG-83.** A restored database has an id of its own, and its manifest says the id that its copied packs and streams
//!   name. Everything that is written later names the new id.
//! - **LOG-84.** A restored home has the claim of the largest incarnation that it names. So no later owner takes an
//!   incarnation whose packs or streams it has (LOG-28).
//! - **LOG-86.** A restored stream has an end, and its manifest says where. If the moment lies within the last object, the
//!   manifest says the last commit that counts, and recovery leaves out those after it.
//!
//! | module | what it holds |
//! |---|---|
//! | `moment` | the moment that is asked for, and errors about it |
//! | `find` | the state of a home at a moment |
//! | `directory` | the state of a directory at a moment |
//! | `copy` | copies of packs and objects |
//! | `streams` | objects of a stream from the records of a directory's log |

pub(crate) mod copy;
pub(crate) mod directory;
pub(crate) mod find;
mod moment;
pub(crate) mod streams;

use std::sync::Arc;
use std::time::Duration;

use mangrove_graph::{Error, ErrorKind, Result};

use crate::disk::Disk;
use crate::home::Home;
use crate::pin::{Pin, PinOptions};

pub use moment::Moment;
pub(crate) use moment::shown;

use find::Found;

/// Where a graph is: a home, or a directory that no process has open.
#[derive(Clone, Debug)]
pub enum Location {
    /// A home.
    Home(Arc<dyn Home>),
    /// A directory. The caller keeps other processes away ([`crate::lock`]).
    Directory(Arc<dyn Disk>),
}

impl Location {
    /// The place as its user would write it, for messages.
    pub fn describe(&self) -> String {
        match self {
            Location::Home(home) => home.describe(""),
            Location::Directory(disk) => disk.describe(""),
        }
    }
}

/// Finds and pins the state of a home at a moment.
pub(crate) fn find_in_home(
    home: &Arc<dyn Home>,
    moment: Moment,
    what: &'static str,
    patience: Duration,
) -> Result<(Found, Pin)> {
    let number = find::manifest_at(&**home, moment, patience)?;
    let (pin, manifest) = Pin::hold(home.clone(), number, PinOptions::of(what, patience))?;
    Ok((find::walk_home(&**home, manifest, moment, patience)?, pin))
}

/// The error for a state that ends before a moment.
fn ends_before(place: &str, commit: u64, last_ts: u64) -> Error {
    let message = format!("{place} has no commit {commit}: its last one is {last_ts}");
    Error::new(ErrorKind::NotFound, message)
}
