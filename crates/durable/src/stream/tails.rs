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
                read_object(object, &path, tail.end_ts, &mut end, each)?;
            }
        }
        Ok(end)
    }
}

/// Shows the records of an object to `each`, without commits after `end_ts`, and counts it in `end`. The commits come after
/// the last one of `end`.
///
/// # Errors
///
/// If the object is damaged, or with the error of `each`.
pub(crate) fn read_object(
    object: &[u8],
    path: &str,
    end_ts: Option<u64>,
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
    let (mut found, mut first_found, mut last_found) = (0, 0, 0);
    let mut reader = Reader::new(&records);
    while !reader.is_at_end() {
        let record = read_record(reader.bytes().map_err(malformed)?).map_err(malformed)?;
        if let Record::Commit(commit) = &record {
            let before = end.last_ts.max(last_found);
            if commit.timestamp <= before {
                let what = format!("expected a commit after {before}, found one at {}", commit.timestamp);
                return Err(position.damage(what));
            }
            last_found = commit.timestamp;
            first_found = if found == 0 { commit.timestamp } else { first_found };
            found += 1;
            if end_ts.is_some_and(|end_ts| commit.timestamp > end_ts) {
                continue;
            }
            end.last_ts = commit.timestamp;
            end.commits += 1;
        }
        each(record, position)?;
    }
    if (u64::from(commits), first_ts, last_ts) != (found, first_found, last_found) {
        return Err(position.damage(format_args!(
            "expected {commits} commits from {first_ts} to {last_ts}, found {found} from {first_found} to {last_found}"
        )));
    }
    end.objects += 1;
    end.bytes += object.len() as u64;
    Ok(())
}

#[cfg(test)]
mod tests {
    use mangrove_graph::ErrorKind;
    use uuid::Uuid;

    use super::super::fence::StreamEnd;
    use super::super::format::{Header, Place, encode};
    use super::*;
    use crate::home::MemoryHome;
    use crate::log::record::put_commit_head;

    /// An object that says it has these commits, and has those.
    fn object(seq: u64, said: &[u64], has: &[u64]) -> Vec<u8> {
        let mut records = Vec::new();
        for ts in has {
            put_commit_head(*ts, 0, &mut records);
        }
        let [first_ts, last_ts] = [said.first(), said.last()].map(|ts| ts.copied().unwrap_or_default());
        let commits = said.len() as u32;
        let batch = Batch { first_ts, last_ts, through: last_ts, commits, ..Batch::default() };
        let place = Place { database: Uuid::nil(), incarnation: 2, seq, nonce: [0; 16], previous: 0 };
        encode(&Header { place, cut_us: 0, content: Content::Records(batch) }, &records)
    }

    fn read(objects: Vec<Vec<u8>>) -> Result<(StreamsEnd, Vec<u64>)> {
        let objects: Vec<bytes::Bytes> = objects.into_iter().map(Into::into).collect();
        let tail = |incarnation, objects: &[bytes::Bytes]| StreamTail {
            incarnation,
            objects: objects.to_vec(),
            end_seq: 5 + objects.len() as u64,
            end: StreamEnd::Fin,
            end_ts: None,
        };
        let (first, second) = objects.split_at(objects.len() / 2);
        let tails = [tail(2, first), tail(3, second)];
        let mut found = Vec::new();
        let end = StreamTails { home: &MemoryHome::new(), tails: &tails }.read(&mut |record, _| {
            if let Record::Commit(commit) = record {
                found.push(commit.timestamp);
            }
            Ok(())
        })?;
        Ok((end, found))
    }

    #[test]
    fn the_commits_of_all_streams_come_in_order() {
        let objects =
            vec![object(5, &[], &[]), object(6, &[1, 4], &[1, 4]), object(5, &[], &[]), object(6, &[7], &[7])];
        let bytes = objects.iter().map(|object| object.len() as u64).sum();
        let (end, found) = read(objects).unwrap();
        assert_eq!((end, found), (StreamsEnd { objects: 4, bytes, commits: 3, last_ts: 7 }, vec![1, 4, 7]));
    }

    #[test]
    fn records_that_contradict_their_object_or_those_before_are_damage_that_names_the_object() {
        let mut flipped = object(6, &[1], &[1]);
        *flipped.last_mut().unwrap() ^= 1;
        let wrong = [
            (object(6, &[1, 4], &[1]), "expected 2 commits from 1 to 4, found 1 from 1 to 1"),
            (object(6, &[1, 4], &[2, 4]), "expected 2 commits from 1 to 4, found 2 from 2 to 4"),
            (object(6, &[4, 4], &[4, 4]), "expected a commit after 4, found one at 4"),
            (flipped, "the checksum of the payload"),
        ];
        for (object_6, expected) in wrong {
            let error =
                read(vec![object(5, &[], &[]), object_6, object(5, &[9], &[9]), object(6, &[], &[])]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Damaged);
            let text = error.to_string();
            assert!(text.contains(&stream_name(2, 6)) && text.contains(expected), "{text}");
        }
        let again = read(vec![object(5, &[3], &[3]), object(5, &[3], &[3])]).unwrap_err().to_string();
        assert!(again.contains(&stream_name(3, 5)) && again.contains("expected a commit after 3"), "{again}");
    }
}
