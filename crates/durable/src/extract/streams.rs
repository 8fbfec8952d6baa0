//! The log of a directory as objects of a stream: what a backup of a directory, and a restore of one into a home, write.
//!
//! The stream has the number of the fencing epoch that the directory had last: a directory writes no streams, so the number
//! is free. The same log makes the same objects.

use std::time::Duration;

use bytes::Bytes;
use mangrove_graph::Result;
use uuid::Uuid;

use super::find::Span;
use crate::checkpoint::home::patiently;
use crate::codec::{Malformed, Reader};
use crate::home::{Home, Name, WaitHome};
use crate::log::FramedRecord;
use crate::log::record::{Record, read_record, tablet_of};
use crate::stream::format::{Batch, Content, Header, Place, encode, header_sum, nonce_of};
use crate::stream::names::stream_name;

/// An object is ended at this size of its records.
const OBJECT_BYTES: usize = 1 << 20;
/// And after the commits of this time, in microseconds: a moment can be restored as exactly as that.
const OBJECT_US: u64 = 1_000_000;

/// A stream that is being written from records.
#[derive(Debug)]
pub(crate) struct StreamCopy<'a> {
    /// `None`: no object is put, and only the stream is worked out.
    to: Option<&'a dyn Home>,
    patience: Duration,
    span: Span,
    /// The records of the next object, and when the first and the last of them were written.
    records: Vec<u8>,
    began_us: u64,
    cut_us: u64,
    batch: Batch,
    /// The last commit.
    through: u64,
    /// Objects and bytes written.
    pub(crate) objects: u64,
    pub(crate) bytes: u64,
}

impl<'a> StreamCopy<'a> {
    /// Begins the stream of an incarnation, whose objects name this database. Without a home, no object is put.
    pub(crate) fn begin(to: Option<&'a dyn Home>, database: Uuid, incarnation: u64, patience: Duration) -> Self {
        let span = Span { incarnation, database, first: 1, end: 1, end_ts: None, last_header: 0 };
        StreamCopy {
            to,
            patience,
            span,
            records: Vec::new(),
            began_us: 0,
            cut_us: 0,
            batch: Batch::default(),
            through: 0,
            objects: 0,
            bytes: 0,
        }
    }

    /// Takes records that were written at this time.
    pub(crate) fn add(&mut self, unix_us: u64, records: &[FramedRecord]) -> Result<()> {
        for record in records {
            // Records that belong to no commit stand before the commits of their object.
            let is_leading = record.commit.is_none() && self.batch.commits > 0;
            let is_long = self.records.len() >= OBJECT_BYTES || unix_us.saturating_sub(self.began_us) >= OBJECT_US;
            if !self.records.is_empty() && (is_leading || is_long) {
                self.put()?;
            }
            if self.records.is_empty() {
                self.began_us = unix_us;
            }
            self.cut_us = self.cut_us.max(unix_us);
            self.records.extend_from_slice(&record.bytes);
            if let Some(ts) = record.commit {
                self.through = ts;
                self.batch.first_ts = if self.batch.commits == 0 { ts } else { self.batch.first_ts };
                (self.batch.last_ts, self.batch.commits) = (ts, self.batch.commits + 1);
                self.add_tablets(&record.bytes).map_err(|malformed| {
                    mangrove_graph::Error::bug(format!("a record that was read does not decode: {malformed}"))
                })?;
            }
        }
        Ok(())
    }

    fn add_tablets(&mut self, framed: &[u8]) -> std::result::Result<(), Malformed> {
        let mut reader = Reader::new(framed);
        let Record::Commit(commit) = read_record(reader.bytes()?)? else { return Ok(()) };
        commit.each_redo::<Malformed>(|redo| {
            self.batch.tablets.insert(tablet_of(&redo));
            Ok(())
        })
    }

    fn put(&mut self) -> Result<()> {
        let Span { incarnation, database, end: seq, last_header: previous, .. } = self.span;
        let batch = Batch { through: self.through, ..std::mem::take(&mut self.batch) };
        let place = Place { database, incarnation, seq, nonce: nonce_of(database.into_bytes(), seq), previous };
        let header = Header { place, cut_us: self.cut_us, content: Content::Records(batch) };
        let bytes = Bytes::from(encode(&header, &std::mem::take(&mut self.records)));
        let name = Name::new(&stream_name(incarnation, seq))?;
        if let Some(to) = self.to {
            patiently(self.patience, || to.put_unique(&name, Box::new(bytes.clone())))?;
        }
        self.span.last_header = header_sum(&bytes);
        self.span.end += 1;
        self.objects += 1;
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Writes the last object. Returns the stream; `None` if there were no records.
    pub(crate) fn finish(&mut self) -> Result<Option<Span>> {
        if !self.records.is_empty() {
            self.put()?;
        }
        Ok((self.span.end > self.span.first).then_some(self.span))
    }
}

/// Ends a stream that was copied (LOG-86).
pub(crate) fn end_stream(to: &dyn Home, span: &Span, written_us: u64, patience: Duration) -> Result<()> {
    let Span { incarnation, database, end: seq, last_header: previous, .. } = *span;
    let place = Place { database, incarnation, seq, nonce: nonce_of(database.into_bytes(), seq), previous };
    let fin = Bytes::from(encode(&Header { place, cut_us: written_us, content: Content::Fin }, &[]));
    let name = Name::new(&stream_name(incarnation, seq))?;
    patiently(patience, || to.put_unique(&name, Box::new(fin.clone())))
}
