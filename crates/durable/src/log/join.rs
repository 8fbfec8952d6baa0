//! Records out of batches: a record may begin in one batch and end in a later one.

use mangrove_graph::Result;

use super::format::{BatchHeader, NO_RECORD};
use super::position::RecordPosition;
use crate::codec::Reader;

/// Puts records together from the payloads of batches that follow one another.
#[derive(Debug)]
pub(crate) struct RecordJoiner {
    /// The beginning of a record whose end is in a later batch.
    bytes: Vec<u8>,
    /// The fencing epoch in which it began.
    epoch: u64,
    /// True if it began before the first batch that is read: its end is skipped.
    began_before: bool,
    /// True until a batch was read.
    is_first: bool,
}

impl Default for RecordJoiner {
    fn default() -> Self {
        RecordJoiner { bytes: Vec::new(), epoch: 0, began_before: false, is_first: true }
    }
}

impl RecordJoiner {
    /// Returns true until a batch was read.
    pub(crate) fn is_first(&self) -> bool {
        self.is_first
    }

    /// Bytes of a record whose end has not come.
    pub(crate) fn unfinished_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Shows the whole records of a batch to `each`, which returns how many commits it was shown. Returns their sum.
    /// `epoch` is that of the batch's segment.
    pub(crate) fn batch(
        &mut self,
        batch: &BatchHeader,
        payload: &[u8],
        epoch: u64,
        position: RecordPosition<'_>,
        each: &mut dyn FnMut(&[u8]) -> Result<u64>,
    ) -> Result<u64> {
        let first_record = match batch.first_record {
            NO_RECORD => payload.len(),
            at => at as usize,
        };
        if first_record > payload.len() {
            return Err(position.damage(format_args!(
                "the first record begins at byte {first_record} of a payload of {} bytes",
                payload.len()
            )));
        }
        let (rest, fresh) = payload.split_at(first_record);
        let mut commits = 0;
        let began_before = if self.is_first { !rest.is_empty() } else { self.began_before };
        if began_before {
            // Only the end of that record is here, which says nothing.
            self.began_before = batch.first_record == NO_RECORD;
        } else if !rest.is_empty() || !self.bytes.is_empty() {
            commits += self.carry_on(rest, batch, epoch, position, each)?;
        }
        commits += self.records(fresh, epoch, each)?;
        if !began_before && commits != u64::from(batch.commit_count) {
            return Err(position.damage(format_args!("expected {} commits, found {commits}", batch.commit_count)));
        }
        self.is_first = false;
        Ok(commits)
    }

    /// Adds the rest of a record that began earlier. Returns how many commits ended with it.
    fn carry_on(
        &mut self,
        rest: &[u8],
        batch: &BatchHeader,
        epoch: u64,
        position: RecordPosition<'_>,
        each: &mut dyn FnMut(&[u8]) -> Result<u64>,
    ) -> Result<u64> {
        if rest.is_empty() {
            // The log was cut inside the record, and a later opening of the database continued without it.
            if epoch > self.epoch {
                self.bytes.clear();
                return Ok(0);
            }
            return Err(position.damage("expected the rest of a record, found none"));
        }
        if self.bytes.is_empty() {
            return Err(position.damage("expected a record, found the rest of one"));
        }
        self.bytes.extend_from_slice(rest);
        let is_whole = frame(&self.bytes).is_some();
        if is_whole != (batch.first_record != NO_RECORD || frame_is_all(&self.bytes)) {
            return Err(position.damage("a record does not end where the next one begins"));
        }
        match is_whole {
            false => Ok(0),
            true => {
                let bytes = std::mem::take(&mut self.bytes);
                self.records(&bytes, epoch, each)
            }
        }
    }

    /// Shows whole records to `each`, and keeps the beginning of one that is not. Returns the number of commits.
    fn records(&mut self, bytes: &[u8], epoch: u64, each: &mut dyn FnMut(&[u8]) -> Result<u64>) -> Result<u64> {
        let (mut commits, mut at) = (0, 0);
        while at < bytes.len() {
            let Some((from, len)) = frame(&bytes[at..]) else {
                (self.bytes, self.epoch, self.began_before) = (bytes[at..].to_vec(), epoch, false);
                return Ok(commits);
            };
            commits += each(&bytes[at + from..at + from + len])?;
            at += from + len;
        }
        Ok(commits)
    }
}

/// Returns true if the bytes are one whole record and nothing else.
fn frame_is_all(bytes: &[u8]) -> bool {
    frame(bytes).is_some_and(|(from, len)| from + len == bytes.len())
}

/// Returns where the content of the first record begins, and its length; `None` if the record is not whole.
fn frame(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut reader = Reader::new(bytes);
    // A length that is cut in two is not whole either.
    let len = usize::try_from(reader.varint().ok()?).ok()?;
    let from = reader.position() as usize;
    (reader.left() >= len).then_some((from, len))
}
