//! The tails of streams as a log that recovery replays.
//!
//! Streams are read one after the other, by incarnation: a successor commits only after it has everything that owners
//! before it have committed. So the timestamps of all commits ascend.

use mangrove_graph::Result;

use super::fence::StreamTail;
use super::format::{Batch, Content, open};
use super::names::stream_name;
use crate::codec::Reader;
use crate::home::Home;
use crate::log::read::RecordPosition;
use crate::log::record::{Record, read_record};
use crate::log::source::LogSource;

/// The tails that a take-over has read, in a home that names them in errors.
#[derive(Clone, Copy, Debug)]
pub struct StreamTails<'a> {
    /// The home.
    pub home: &'a dyn Home,
    /// By incarnation.
    pub tails: &'a [StreamTail],
}

/// What is known when the tails were read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StreamsEnd {
    /// Objects of records.
    pub objects: u64,
    /// Their bytes, as stored.
    pub bytes: u64,
    /// Commits in them.
    pub commits: u64,
    /// The timestamp of the last commit; 0 if there is none.
    pub last_ts: u64,
}

impl LogSource for StreamTails<'_> {
    type End = StreamsEnd;

    fn read(&self, each: &mut dyn FnMut(Record<'_>, RecordPosition<'_>) -> Result<()>) -> Result<StreamsEnd> {
        let mut end = StreamsEnd::default();
        for tail in self.tails {
            let first = tail.end_seq.saturating_sub(tail.objects.len() as u64);
            for (object, seq) in tail.objects.iter().zip(first..) {
                let path = self.home.describe(&stream_name(tail.incarnation, seq));
                read_object(object, &path, &mut end, each)?;
            }
        }
        Ok(end)
    }
}

/// Shows the records of an object to `each`.
fn read_object(
    object: &[u8],
    path: &str,
    end: &mut StreamsEnd,
    each: &mut dyn FnMut(Record<'_>, RecordPosition<'_>) -> Result<()>,
) -> Result<()> {
    let (header, payload) = open(object).map_err(|error| error.of(path))?;
    let records = payload.records().map_err(|error| error.of(path))?;
    // All records of an object have one position, so they go to the workers of recovery together.
    let position = RecordPosition { path, offset: payload.offset() };
    let Content::Records(Batch { commits, first_ts, last_ts, .. }) = header.content else {
        return Err(position.damage("expected records, found the end of the stream"));
    };
    let malformed = |malformed| position.damage(format_args!("a record with {malformed}"));
    let (mut found, mut first_found) = (0, 0);
    let mut reader = Reader::new(&records);
    while !reader.is_at_end() {
        let record = read_record(reader.bytes().map_err(malformed)?).map_err(malformed)?;
        if let Record::Commit(commit) = &record {
            if commit.timestamp <= end.last_ts {
                let what = format!("expected a commit after {}, found one at {}", end.last_ts, commit.timestamp);
                return Err(position.damage(what));
            }
            end.last_ts = commit.timestamp;
            first_found = if found == 0 { commit.timestamp } else { first_found };
            found += 1;
        }
        each(record, position)?;
    }
    let last_found = if found == 0 { 0 } else { end.last_ts };
    if (u64::from(commits), first_ts, last_ts) != (found, first_found, last_found) {
        return Err(position.damage(format_args!(
            "expected {commits} commits from {first_ts} to {last_ts}, found {found} from {first_found} to {last_found}"
        )));
    }
    end.objects += 1;
    end.bytes += object.len() as u64;
    end.commits += found;
    Ok(())
}
