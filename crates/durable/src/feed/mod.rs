//! The change feed: committed changes in the order of commits, read from the log.
//!
//! ```text
//! wal/ of a directory ──┐                                            ┌─ insert, set, unset, delete …
//!                       ├─▶ batches that are durable ─▶ commits ─▶ events
//! streams of a home ────┘      (`segments`, `streams`)   (`commits`) └─ commit
//! ```
//!
//! A feed is pulled: [`Feed::next`] gives the next event, or none if nothing more is durable at the moment. It holds
//! one batch of the log in memory, and nothing of the log is kept for it. If its place in the log is gone, it fails
//! with an error that names the oldest position that is left.
//!
//! The log has internal ids, and the values after each commit. What else a feed shows (chosen ids, labels and ends of
//! elements of earlier commits, old values) is in records of their own, which a log has if its option asks for them
//! ([`FeedContent`]).
//!
//! | module | what it holds |
//! |---|---|
//! | `position` | the position of an event |
//! | `commits` | from records of the log to the changes of a commit |
//! | `segments` | the batches of a directory |
//! | `streams` | the objects of a home |
//!
//! Invariants:
//!
//! - **LOG-90.** An event is shown only if its commit is durable, and the events of a commit are shown in one order for
//!   ever. So a position names the same event in every reading.
//! - **LOG-91.** A feed leaves out no commit after the position that it began at. If it cannot show one, it fails.

mod commits;
mod position;
mod segments;
mod streams;

use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::Arc;

use mangrove_graph::{Catalog, ElementKind, Error, ErrorKind, KeyId, LabelSetId, Result, UserId};
use mangrove_store::{Content, Store};

use crate::disk::Disk;
use crate::home::Home;
use crate::log::read::RecordPosition;
use crate::log::record::Record;
use crate::log::source::LogGrowth;

pub use crate::log::FeedContent;
use commits::{Assembler, CommitChanges};
pub use position::FeedPosition;

/// An event of the feed.
#[derive(Clone, PartialEq, Debug)]
pub struct FeedEvent {
    /// Its position. A feed that begins at it goes on with the next event.
    pub at: FeedPosition,
    /// Microseconds since 1970 when the commit was written, if the log says so. Positions are ordered, times are not.
    pub time_us: Option<u64>,
    /// What has happened.
    pub what: FeedEventKind,
}

/// What an event is about.
#[derive(Clone, PartialEq, Debug)]
pub enum FeedEventKind {
    /// A change of an element.
    Change(Box<FeedChange>),
    /// All changes of the commit have been shown.
    Commit {
        /// How many there were.
        changes: u64,
    },
}

/// A change of one element. Ids are those that clients see.
#[derive(Clone, PartialEq, Debug)]
pub struct FeedChange {
    /// Whether it is a vertex or an edge.
    pub element: ElementKind,
    /// The element.
    pub id: UserId,
    /// Its label set ([`Feed::catalog`]).
    pub labels: LabelSetId,
    /// Source and target of an edge.
    pub ends: Option<(UserId, UserId)>,
    /// What has changed.
    pub change: FeedChangeKind,
}

/// What has changed in an element.
#[derive(Clone, PartialEq, Debug)]
pub enum FeedChangeKind {
    /// The element is new. Its values follow, as [`FeedChangeKind::Set`].
    Insert,
    /// The element is gone, with its values.
    Delete {
        /// Its values, if the log has them ([`FeedContent::Full`]).
        before: Vec<(KeyId, Content)>,
    },
    /// The values under a key are these now.
    Set {
        /// The key.
        key: KeyId,
        /// All values under it.
        after: Content,
        /// The values before; absent if there were none, or the log does not have them.
        before: Content,
    },
    /// There is no value under a key now.
    Unset {
        /// The key.
        key: KeyId,
        /// The values before; absent if there were none, or the log does not have them.
        before: Content,
    },
}

/// Where the records of a log come from.
trait FeedSource: Send + Debug {
    /// Shows the records of the next batch to `each`, with the time at which they were written, in microseconds since
    /// 1970. Returns false if nothing more is durable at the moment. After an error the source is not used again.
    fn next_batch(&mut self, each: ShowRecord<'_>) -> Result<bool>;
}

type ShowRecord<'a> = &'a mut dyn FnMut(Record<'_>, RecordPosition<'_>, Option<u64>) -> Result<()>;

/// The names of a graph: those that were read for the feed, or those of the open graph.
enum Names {
    Read(Box<Catalog>),
    OfStore(Arc<Store>),
}

impl Debug for Names {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Names")
    }
}

impl Names {
    fn catalog(&self) -> &Catalog {
        match self {
            Names::Read(catalog) => catalog,
            Names::OfStore(store) => store.catalog(),
        }
    }
}

/// A reader of the change feed. The module header has its promises.
#[derive(Debug)]
pub struct Feed {
    source: Box<dyn FeedSource>,
    names: Names,
    /// The position of the last event that was returned, or where the feed began.
    at: FeedPosition,
    assembler: Assembler,
    /// The commits of the last batch that are not shown whole.
    waiting: VecDeque<CommitChanges>,
    /// True after an error: the feed cannot say what comes next.
    has_failed: bool,
}

impl Feed {
    /// The feed of a graph in a directory that no process has open to write, after a position; `None`: from the
    /// oldest one that the log has. Checks the whole log that recovery would read.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no graph, or the log that is kept begins after the position. `Damaged` if the log is.
    pub fn of_directory(disk: Arc<dyn Disk>, from: Option<FeedPosition>) -> Result<Self> {
        let (source, catalog, at) = segments::of_closed(disk, from)?;
        Ok(Feed::new(Box::new(source), Names::Read(Box::new(catalog)), at))
    }

    /// The feed of a graph that is open in this process. It goes on as the graph does.
    pub(crate) fn of_open(
        disk: Arc<dyn Disk>,
        store: Arc<Store>,
        log: Arc<dyn LogGrowth>,
        from: Option<FeedPosition>,
    ) -> Result<Self> {
        let (source, at) = segments::of_open(disk, log, from)?;
        Ok(Feed::new(Box::new(source), Names::OfStore(store), at))
    }

    /// The feed of a graph in a home, after a position; `None`: from the oldest one that the streams have. It goes on
    /// as the owner of the graph commits, whichever process that is.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no graph, or the streams that are kept begin after the position. `Damaged` if an object
    /// is, and `Io` if the home fails.
    pub fn of_home(home: Arc<dyn Home>, from: Option<FeedPosition>) -> Result<Self> {
        let (source, catalog, at) = streams::of_home(home, from)?;
        Ok(Feed::new(Box::new(source), Names::Read(Box::new(catalog)), at))
    }

    fn new(source: Box<dyn FeedSource>, names: Names, at: FeedPosition) -> Self {
        let (assembler, waiting) = (Assembler::new(at), VecDeque::new());
        Feed { source, names, at, assembler, waiting, has_failed: false }
    }

    /// The position of the last event that was returned, or where the feed began.
    pub fn position(&self) -> FeedPosition {
        self.at
    }

    /// The names of the labels and keys in events.
    pub fn catalog(&self) -> &Catalog {
        self.names.catalog()
    }

    /// The next event; `None` if nothing more is durable at the moment.
    ///
    /// # Errors
    ///
    /// `NotFound` if the part of the log that comes next is not kept any more; the error names the oldest position.
    /// `Unsupported` if the log lacks what the feed must show ([`FeedContent::Off`]). `Damaged` or `Io` if the log
    /// cannot be read. After an error the feed fails always.
    #[expect(clippy::should_implement_trait, reason = "after `None` there may be a next event")]
    pub fn next(&mut self) -> Result<Option<FeedEvent>> {
        if self.has_failed {
            return Err(Error::new(ErrorKind::Closed, "the feed has failed before; begin it again at its position"));
        }
        let event = self.try_next();
        // LOG-91: what comes after it cannot be shown.
        self.has_failed = event.is_err();
        event
    }

    fn try_next(&mut self) -> Result<Option<FeedEvent>> {
        loop {
            if let Some(commit) = self.waiting.front_mut() {
                if let Some(event) = commit.next_after(self.at) {
                    self.at = event.at;
                    return Ok(Some(event));
                }
                self.waiting.pop_front();
            } else if !self.read_batch()? {
                return Ok(None);
            }
        }
    }

    /// Reads the commits of the next batch. Returns false if there is none.
    fn read_batch(&mut self) -> Result<bool> {
        let Feed { source, names, assembler, waiting, .. } = self;
        source.next_batch(&mut |record, position, time_us| {
            if let (Record::Names(new), Names::Read(catalog)) = (&record, &*names)
                && !new.put_into(catalog)
            {
                return Err(position.damage("names whose numbers are taken, or do not follow the existing ones"));
            }
            if let Some(commit) = assembler.record(&record, position, time_us)? {
                if !commit.are_named(names.catalog()) {
                    return Err(position.damage("a commit with a label or a key that has no name"));
                }
                waiting.push_back(commit);
            }
            Ok(())
        })
    }
}

/// The error for a position that the log does not have any more.
fn too_old(from: FeedPosition, oldest: u64, place: &str) -> Error {
    let oldest = FeedPosition::after_commit(oldest);
    Error::new(
        ErrorKind::NotFound,
        format!(
            "the log in {place} does not go back to {from} any more: the oldest position is {oldest}; read the whole graph \
             again, as with an export, go on from a position noted before that, and keep more of the log"
        ),
    )
}

#[cfg(all(test, not(feature = "model")))]
mod tests;
