//! The next object of a stream that is being read; which streams there are, and how far they were read.

use std::collections::BTreeMap;

use mangrove_graph::{Error, Result};
use uuid::Uuid;

use super::format::{Content, Header, ObjectError, header_sum, open};

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

/// What a manifest says about the stream after one that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NextStream {
    /// This one.
    Listed(ListedStream),
    /// No other process has opened the graph since.
    NotYet,
    /// The manifest does not list the stream that has ended, or needs only a part of the next one.
    Unknown,
}

impl ReadSoFar {
    /// Nothing was read of the streams that a manifest lists.
    pub(crate) fn from_floors(streams: &[ListedStream]) -> Self {
        // The lowest incarnation is that of the earliest owner (LOG-64).
        let first = streams.iter().min_by_key(|stream| stream.incarnation);
        first.map_or_else(ReadSoFar::default, |stream| ReadSoFar {
            incarnation: stream.incarnation,
            next: stream.floor,
            ..ReadSoFar::default()
        })
    }

    /// The next object of the stream, in a database of this id.
    pub(crate) fn next_object(&self, database: Uuid) -> NextObject {
        NextObject { database, incarnation: self.incarnation, seq: self.next, end: None, previous: self.previous }
    }

    /// Notes that an object of records was read.
    pub(crate) fn pass(&mut self, incarnation: u64, seq: u64, object: &[u8]) {
        self.incarnation = incarnation;
        self.next = seq + 1;
        self.previous = Some(header_sum(object));
    }

    /// Notes that the next object ends the stream.
    pub(crate) fn end(&mut self, end: StreamEnd) {
        self.ends.insert(self.incarnation, (self.next, end));
    }

    /// Goes on to the first object of another stream.
    pub(crate) fn go_on(&mut self, stream: &ListedStream) {
        (self.incarnation, self.next, self.previous) = (stream.incarnation, 1, None);
    }

    /// The stream after the one that has ended (LOG-72). `has_checkpoint`: the manifest that lists these streams has a
    /// checkpoint that is not empty.
    pub(crate) fn stream_after(&self, streams: &[ListedStream], has_checkpoint: bool) -> NextStream {
        let last = self.incarnation;
        let after = streams.iter().filter(|stream| stream.incarnation > last).min_by_key(|stream| stream.incarnation);
        let Some(&after) = after else { return NextStream::NotYet };
        // A manifest that lists a stream lists all later ones, from their first objects: only a checkpoint leaves some out.
        let goes_on = match last {
            0 => !has_checkpoint,
            _ => streams.iter().any(|stream| stream.incarnation == last),
        };
        if goes_on && after.floor <= 1 { NextStream::Listed(after) } else { NextStream::Unknown }
    }

    /// Returns true if the stream that was read last has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.incarnation == 0 || self.ends.contains_key(&self.incarnation)
    }

    /// Returns true if everything that was not read is needed by a manifest that lists these streams, or comes after it
    /// (LOG-77).
    pub(crate) fn is_kept_by(&self, streams: &[ListedStream], has_checkpoint: bool) -> bool {
        match self.has_ended() {
            true => self.stream_after(streams, has_checkpoint) != NextStream::Unknown,
            false => !self.is_behind(streams),
        }
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
