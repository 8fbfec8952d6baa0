//! The change feed as JSON lines: what `mangrove changes` prints and `/changes` sends.
//!
//! ```json
//! {"at":"7.1","time":null,"op":"insert","element":"vertex","id":"ada","labels":["person"]}
//! {"at":"7.2","time":null,"op":"set","element":"vertex","id":"ada","labels":["person"],"key":"age","after":36}
//! {"at":"7.3","time":null,"op":"commit","changes":2}
//! ```
//!
//! Values and ids are GraphSON 3, so each has its type: `36` of 32 bits is `{"@type":"g:Int32","@value":36}`. In plain
//! lines they are JSON's own, and types cannot be told. The values under a key are one value; or, if there are several
//! or there are meta-properties, a JSON array of objects, each with `value` and, if there are some, `properties`. (A
//! value that is a list is an object in GraphSON 3, and in plain lines an object with `list`.)

use std::path::Path;
use std::sync::Arc;

use mangrove_durable::feed::{Feed, FeedChange, FeedChangeKind, FeedEvent, FeedEventKind, FeedPosition};
use mangrove_durable::home::address;
use mangrove_durable::lock::DirectoryLock;
use mangrove_graph::{Catalog, DateTime, ElementKind, Error, KeyId, Result, UserId, Value};
use mangrove_gremlin::graphson::{Dialect, Version, encode_value};
use mangrove_store::Content;

use crate::home::{Home, enter_to_read};
use crate::state::Database;

/// GraphSON 3, which loses no type.
const TYPED: Dialect = Dialect { version: Version::V3, typed: true };
/// JSON for people.
const PLAIN: Dialect = Dialect { version: Version::V3, typed: false };

/// A line of the change feed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChangeLine {
    /// The position of the event: a feed that begins at it goes on with the next one.
    pub at: FeedPosition,
    /// The event as a JSON object, without a line break.
    pub json: String,
}

/// The change feed of a graph, line by line.
#[derive(Debug)]
pub struct Changes {
    feed: Feed,
    dialect: Dialect,
    /// The lock of a directory that no process has open to write.
    _lock: Option<DirectoryLock>,
}

impl Database {
    /// The change feed after a position; `None`: from the oldest one that the log has. It goes on as the graph is
    /// changed, and holds neither the graph open nor its log back.
    ///
    /// # Errors
    ///
    /// `Unsupported` for a graph in memory, or one that was opened to be read. `NotFound` if the log that is kept
    /// begins after the position.
    pub fn changes(&self, from: Option<FeedPosition>) -> Result<Changes> {
        match &self.inner.home {
            Home::Directory(directory) => Ok(Changes::new(directory.durable.feed(from)?, None)),
            Home::Objects(home) => Ok(Changes::new(Feed::of_home(home.home().clone(), from)?, None)),
            Home::Memory | Home::ReadOnly { .. } => Err(Error::unsupported(
                "a graph in memory, or one that was opened to be read, has no change feed; open a directory with the \
                 option feed",
            )),
        }
    }
}

/// The change feed of a graph in a directory that no process has open to write, which ends with the log; or of a graph at
/// an address, which goes on with its owner.
///
/// # Errors
///
/// `NotFound` if there is no graph, or the log that is kept begins after the position. `Damaged` if the log is.
pub fn read_changes(directory: &str, from: Option<FeedPosition>) -> Result<Changes> {
    if address::is_address(directory) {
        return Ok(Changes::new(Feed::of_home(address::open(directory)?, from)?, None));
    }
    let (disk, lock) = enter_to_read(Path::new(directory))?;
    Ok(Changes::new(Feed::of_directory(Arc::new(disk), from)?, Some(lock)))
}

impl Changes {
    fn new(feed: Feed, lock: Option<DirectoryLock>) -> Self {
        Changes { feed, dialect: TYPED, _lock: lock }
    }

    /// Writes values without their types.
    #[must_use]
    pub fn plain(mut self) -> Self {
        self.dialect = PLAIN;
        self
    }

    /// The position of the last line, or where the feed began.
    pub fn position(&self) -> FeedPosition {
        self.feed.position()
    }

    /// The next line; `None` if nothing more is durable at the moment.
    ///
    /// # Errors
    ///
    /// As [`Feed::next`]. `Evaluation` if a value has no form in JSON.
    #[expect(clippy::should_implement_trait, reason = "after `None` there may be a next line")]
    pub fn next(&mut self) -> Result<Option<ChangeLine>> {
        let Some(event) = self.feed.next()? else { return Ok(None) };
        let mut line = Line { out: Vec::new(), dialect: self.dialect, catalog: self.feed.catalog() };
        line.event(&event).map_err(|error| error.context(format!("the change at {}", event.at)))?;
        let json = String::from_utf8(line.out).map_err(|_| Error::bug("a line of the change feed is no UTF-8"))?;
        Ok(Some(ChangeLine { at: event.at, json }))
    }
}

/// A line that is being written.
struct Line<'a> {
    out: Vec<u8>,
    dialect: Dialect,
    catalog: &'a Catalog,
}

impl Line<'_> {
    fn raw(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    fn value(&mut self, value: &Value) -> Result<()> {
        encode_value(self.dialect, value, &mut self.out)
    }

    fn text(&mut self, text: &str) -> Result<()> {
        self.value(&Value::from(text))
    }

    fn event(&mut self, event: &FeedEvent) -> Result<()> {
        self.raw("{\"at\":");
        self.text(&event.at.to_string())?;
        self.raw(",\"time\":");
        match event.time_us.and_then(|us| i64::try_from(us / 1_000).ok()) {
            // Without a type, because it is no value of the graph.
            Some(millis) => {
                encode_value(PLAIN, &Value::DateTime(DateTime::from_epoch_millis(millis)), &mut self.out)?;
            }
            None => self.raw("null"),
        }
        match &event.what {
            FeedEventKind::Change(change) => self.change(change)?,
            FeedEventKind::Commit { changes } => self.raw(&format!(",\"op\":\"commit\",\"changes\":{changes}")),
        }
        self.raw("}");
        Ok(())
    }

    fn change(&mut self, change: &FeedChange) -> Result<()> {
        let op = match &change.change {
            FeedChangeKind::Insert => "insert",
            FeedChangeKind::Delete { .. } => "delete",
            FeedChangeKind::Set { .. } => "set",
            FeedChangeKind::Unset { .. } => "unset",
        };
        let element = match change.element {
            ElementKind::Vertex => "vertex",
            ElementKind::Edge => "edge",
        };
        self.raw(&format!(",\"op\":\"{op}\",\"element\":\"{element}\",\"id\":"));
        self.id(&change.id)?;
        self.raw(",\"labels\":[");
        for (i, label) in self.catalog.labels_of(change.labels).into_iter().enumerate() {
            self.raw(if i == 0 { "" } else { "," });
            self.text(&self.catalog.label_name(label))?;
        }
        self.raw("]");
        if let Some((source, target)) = &change.ends {
            for (name, id) in [("out", source), ("in", target)] {
                self.raw(&format!(",\"{name}\":"));
                self.id(id)?;
            }
        }
        match &change.change {
            FeedChangeKind::Insert => Ok(()),
            FeedChangeKind::Delete { before } if before.is_empty() => Ok(()),
            FeedChangeKind::Delete { before } => {
                self.raw(",\"before\":{");
                for (i, (key, content)) in before.iter().enumerate() {
                    self.raw(if i == 0 { "" } else { "," });
                    self.key(*key)?;
                    self.raw(":");
                    self.content(content)?;
                }
                self.raw("}");
                Ok(())
            }
            FeedChangeKind::Set { key, after, before } => {
                self.raw(",\"key\":");
                self.key(*key)?;
                self.raw(",\"after\":");
                self.content(after)?;
                self.before(before)
            }
            FeedChangeKind::Unset { key, before } => {
                self.raw(",\"key\":");
                self.key(*key)?;
                self.before(before)
            }
        }
    }

    fn before(&mut self, before: &Content) -> Result<()> {
        if matches!(before, Content::Absent) {
            return Ok(());
        }
        self.raw(",\"before\":");
        self.content(before)
    }

    fn key(&mut self, key: KeyId) -> Result<()> {
        self.text(&self.catalog.key_name(key))
    }

    fn id(&mut self, id: &UserId) -> Result<()> {
        self.value(&id.to_value())
    }

    /// The values under a key.
    fn content(&mut self, content: &Content) -> Result<()> {
        match content {
            Content::Absent => self.raw("null"),
            Content::One(value)
                if !self.dialect.typed && matches!(value, Value::List(_) | Value::Set(_) | Value::F32Array(_)) =>
            {
                self.raw("{\"list\":");
                self.value(value)?;
                self.raw("}");
            }
            Content::One(value) => self.value(value)?,
            Content::Multi(multi) => {
                self.raw("[");
                for (i, one) in multi.values.iter().enumerate() {
                    self.raw(if i == 0 { "{\"value\":" } else { ",{\"value\":" });
                    self.value(&one.value)?;
                    for (i, (key, value)) in one.meta.iter().enumerate() {
                        self.raw(if i == 0 { ",\"properties\":{" } else { "," });
                        self.key(*key)?;
                        self.raw(":");
                        self.value(value)?;
                    }
                    self.raw(if one.meta.is_empty() { "}" } else { "}}" });
                }
                self.raw("]");
            }
        }
        Ok(())
    }
}
