//! The next object of a stream that is being read; which streams there are, and how far they were read.

use std::collections::BTreeMap;

use mangrove_graph::{Error, Result};
use uuid::Uuid;

use super::format::{Content, Header, ObjectError, open};

/// A stream that recovery needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ListedStream {
    /// The incarnation that wrote it.
    pub incarnation: u64,
    /// The first object that recovery needs.
    pub floor: u64,
    /// The number of the object that ends it, if that was known when the manifest was written. No object before it may
    /// be missing then.
    pub end: Option<u64>,
    /// The last commit of it that counts, if not all do. It is in the last object before the end.
    pub end_ts: Option<u64>,
    /// The database that its objects name, if that is not the graph's own: a restore has copied them (LOG-83).
    pub database: Option<Uuid>,
}

/// How a stream ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamEnd {
    /// A successor of this incarnation has ended it.
    Fence {
        /// The incarnation.
        by: u64,
    },
    /// Its owner has ended it.
    Fin,
}

/// What is known of an object of a stream before it is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NextObject {
    /// The database.
    pub(crate) database: Uuid,
    /// The incarnation whose stream it is.
    pub(crate) incarnation: u64,
    /// Its number.
    pub(crate) seq: u64,
    /// The number of the object that ends the stream, if that is known.
    pub(crate) end: Option<u64>,
    /// The checksum of the header of the object before it, if that was read.
    pub(crate) previous: Option<u32>,
}

impl NextObject {
    /// Checks that an object is whole, belongs under its name, and follows the one that was read before it. Returns its
    /// header.
    ///
    /// # Errors
    ///
    /// If the object is damaged or of a later format. The error has `name`.
    pub(crate) fn check(&self, bytes: &[u8], name: &str) -> Result<Header> {
        let (header, _) = open(bytes).map_err(|error| error.of(name))?;
        let Header { place, content, .. } = &header;
        let wrong = |what: String| Err(self.damage(name, what));
        if place.database != self.database {
            return wrong(format!("it belongs to database {}, not {}", place.database, self.database));
        }
        if (place.incarnation, place.seq) != (self.incarnation, self.seq) {
            return wrong(format!("it is object {} of incarnation {}", place.seq, place.incarnation));
        }
        let is_end = !matches!(content, Content::Records(_));
        if let Some(end) = self.end.filter(|end| (place.seq == *end) != is_end) {
            return wrong(format!("the stream should end with object {end}"));
        }
        let may_be_unknown = matches!(content, Content::Fence { .. }) && place.previous == 0;
        match self.previous {
            Some(before) if before != place.previous && !may_be_unknown => {
                wrong(format!("it follows a header {:08x}, and the one before is {before:08x}", place.previous))
            }
            _ => Ok(header),
        }
    }

    /// The error for the object, whose header is wrong.
    pub(crate) fn damage(&self, name: &str, what: String) -> Error {
        ObjectError::Damaged { at: 16, what }.of(name)
    }
}

/// How far the streams of a graph were read, one after the other.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ReadSoFar {
    /// The stream that is being read, or was read last; 0 if there was none.
    pub incarnation: u64,
    /// The number of the next object of that stream.
    pub next: u64,
    /// The checksum of the header of the object before, if that was read.
    pub previous: Option<u32>,
    /// The streams that were read to their ends: the number of the object that ends each, and how it ended.
    pub ends: BTreeMap<u64, (u64, StreamEnd)>,
}

impl ReadSoFar {
    /// Returns true if the stream that was read last has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.incarnation == 0 || self.ends.contains_key(&self.incarnation)
    }

    /// Returns true if objects that were not read may have been deleted, when a manifest lists these streams.
    pub(crate) fn is_behind(&self, streams: &[ListedStream]) -> bool {
        match streams.iter().find(|stream| stream.incarnation == self.incarnation) {
            Some(stream) => !self.has_ended() && stream.floor > self.next,
            // A manifest that lists a stream lists all later ones from their first objects.
            None => self.incarnation > 0 || streams.iter().any(|stream| stream.floor > 1),
        }
    }
}
