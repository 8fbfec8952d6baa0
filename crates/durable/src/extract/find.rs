//! The state of a home at a moment: a manifest, and the objects of streams after it.
//!
//! The newest kept manifest at or before the moment is the base. From the floors that it names, the headers of objects are
//! read in order, up to the moment. When a stream has ended, the next one is that of the next owner, which a later
//! manifest lists. A stream without an end is that of the present owner, or its successor has no object yet.

use std::collections::{BTreeSet, VecDeque};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use bytes::Bytes;
use mangrove_graph::Result;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::moment::too_early;
use super::{Moment, ends_before};
use crate::ambient::unix_us;
use crate::checkpoint::home::patiently;
use crate::damage::damaged_in;
use crate::disk::parent;
use crate::home::{Home, Name, Reply, Request, WaitHome};
use crate::manifest::{Manifest, ManifestOrigin, ManifestOwner, ManifestStream, TabletRanges};
use crate::pin::collected;
use crate::states::{first_past, kept_numbers, manifest_numbers, newest_manifest, read_manifest};
use crate::stream::format::{Content, END_BYTES_MAX, Header, header_sum, open, open_header};
use crate::stream::names::{stream_name, stream_place};
use crate::stream::writer::IN_FLIGHT_MAX;

/// Headers that are read at a time.
const HEADERS_AT_A_TIME: u64 = 16;
/// Bytes that the header of an object has at most, unless its commits change very many tablets.
const HEADER_BYTES_USUAL: u64 = 1 << 10;

/// A part of a stream that a state needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Span {
    /// The incarnation that wrote the stream.
    pub(crate) incarnation: u64,
    /// The database that its objects name.
    pub(crate) database: Uuid,
    /// The first object.
    pub(crate) first: u64,
    /// The number after the last object.
    pub(crate) end: u64,
    /// The last commit that counts, if not all do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) end_ts: Option<u64>,
    /// The checksum of the last object's header.
    pub(crate) last_header: u32,
}

/// The state of a graph at a moment.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// The manifest with its packs.
    pub(crate) manifest: Manifest,
    /// The parts of streams after it, by incarnation. None is empty.
    pub(crate) spans: Vec<Span>,
    /// The last commit.
    pub(crate) last_ts: u64,
    /// When the last object was made, in microseconds since 1970; 0 if there is none.
    pub(crate) written_us: u64,
    /// True if the directory that it is in has more of it, in its log.
    pub(crate) has_log: bool,
}

impl Found {
    /// The state of a checkpoint, without the log after it.
    pub(crate) fn of_checkpoint(manifest: Manifest) -> Self {
        let last_ts = manifest.checkpoint_ts();
        Found { manifest, spans: Vec::new(), last_ts, written_us: 0, has_log: false }
    }

    /// Writes the state into the first manifest of another database (LOG-83, LOG-84).
    pub(crate) fn put_into(&self, manifest: &mut Manifest) {
        let base = &self.manifest;
        manifest.packs.clone_from(&base.packs);
        for pack in &mut manifest.packs {
            pack.database = pack.database.or(Some(base.database));
        }
        (manifest.names, manifest.tablets) = (base.names, base.tablets.clone());
        manifest.streams = self.spans.iter().map(Span::listed).collect();
        let incarnation = self.last_incarnation();
        let own = manifest.packs.iter().filter(|pack| pack.incarnation == incarnation);
        let through = own.map(|pack| pack.counter).max().unwrap_or(0);
        manifest.owners = vec![ManifestOwner { incarnation, through, tablets: TabletRanges::all(base.tablet_count) }];
        manifest.origin =
            Some(ManifestOrigin { database: base.database, version: base.version, last_ts: self.last_ts });
        manifest.written = unix_us();
    }

    /// The largest incarnation that it names.
    pub(crate) fn last_incarnation(&self) -> u64 {
        let packs = self.manifest.packs.iter().map(|pack| pack.incarnation);
        let streams = self.spans.iter().map(|span| span.incarnation);
        packs.chain(streams).chain([self.manifest.epoch()]).max().unwrap_or(0)
    }
}

impl Span {
    /// The stream as a manifest of another database lists it (LOG-86).
    fn listed(&self) -> ManifestStream {
        let Span { incarnation, database, first, end, end_ts, .. } = *self;
        ManifestStream { incarnation, first, end: Some(end), end_ts, database: Some(database) }
    }

    /// Incarnation and number of its objects.
    pub(crate) fn places(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        let incarnation = self.incarnation;
        (self.first..self.end).map(move |seq| (incarnation, seq))
    }

    /// The names of its objects.
    pub(crate) fn names(&self) -> impl Iterator<Item = String> + '_ {
        (self.first..self.end).map(|seq| stream_name(self.incarnation, seq))
    }
}

/// The newest kept manifest of a home at or before a moment; `None` stands for the newest of all.
pub(crate) fn manifest_at(home: &dyn Home, moment: Moment, patience: Duration) -> Result<Option<u64>> {
    let is_at_or_before = |manifest: &Manifest| match moment {
        Moment::Newest => true,
        Moment::Commit(commit) => manifest.checkpoint_ts() <= commit,
        Moment::Time(unix_us) => manifest.written <= unix_us,
    };
    if moment == Moment::Newest {
        return Ok(None);
    }
    let newest = newest_manifest(home, patience)?;
    let kept = kept_numbers(home, &newest, patience)?;
    // Neither commits nor times fall along the chain.
    let (later, _) = first_past(home, &kept, patience, |manifest| !is_at_or_before(manifest))?;
    match kept[..later].last() {
        Some(&number) => Ok(Some(number)),
        None => {
            let oldest = newest.kept_from;
            let oldest = read_manifest(home, oldest, patience)?.ok_or_else(|| collected(home, oldest))?;
            Err(too_early(&home.describe(""), oldest.checkpoint_ts(), oldest.written))
        }
    }
}

/// Finds the state of a home at a moment, from a manifest on that is pinned.
pub(crate) fn walk_home(home: &dyn Home, manifest: Manifest, moment: Moment, patience: Duration) -> Result<Found> {
    let of_manifest = |manifest: &Manifest, after: u64| -> VecDeque<Stretch> {
        let database = manifest.database;
        let mut listed: Vec<&ManifestStream> =
            manifest.streams.iter().filter(|stream| stream.incarnation > after).collect();
        listed.sort_unstable_by_key(|stream| stream.incarnation);
        let stretch = |stream: &ManifestStream| Stretch {
            incarnation: stream.incarnation,
            database: stream.database.unwrap_or(database),
            first: stream.first,
            end: stream.end,
            end_ts: stream.end_ts,
        };
        listed.into_iter().map(stretch).collect()
    };
    let mut next = |after: u64| -> Result<VecDeque<Stretch>> {
        let base = manifest.version;
        let numbers: BTreeSet<u64> = manifest_numbers(home, patience)?;
        let later: Vec<u64> = numbers.range(base + 1..).copied().collect();
        // Owners do not fall along the chain. The first manifest of an owner lists its stream from the first object on.
        let (_, found) = first_past(home, &later, patience, |manifest| manifest.epoch() > after)?;
        Ok(found.map(|found| of_manifest(&found, after)).unwrap_or_default())
    };
    let first = of_manifest(&manifest, 0);
    let base = (manifest.epoch(), manifest.checkpoint_ts());
    let walked = walk(home, first, &mut next, moment, base, patience)?;
    walked.into_found(home, manifest, moment)
}

/// A part of a stream whose end may be unknown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    pub(crate) incarnation: u64,
    pub(crate) database: Uuid,
    pub(crate) first: u64,
    /// The number after the last object, if that is known.
    pub(crate) end: Option<u64>,
    pub(crate) end_ts: Option<u64>,
}

/// What was found in streams.
#[derive(Debug)]
pub(crate) struct Walked {
    spans: Vec<Span>,
    last_ts: u64,
    written_us: u64,
    has_reached: bool,
}

impl Walked {
    /// The state with the manifest that the streams follow.
    pub(crate) fn into_found(self, home: &dyn Home, manifest: Manifest, moment: Moment) -> Result<Found> {
        let Walked { spans, last_ts, written_us, has_reached } = self;
        match moment {
            Moment::Commit(commit) if !has_reached && last_ts < commit => {
                Err(ends_before(&home.describe(""), commit, last_ts))
            }
            _ => Ok(Found { manifest, spans, last_ts, written_us, has_log: false }),
        }
    }
}

/// Where a stream stops.
enum Stop {
    /// It has ended.
    Ended,
    /// The object with this number is not there.
    Open(u64),
    /// The moment is reached.
    Reached,
}

/// Reads the headers of streams, one stream after the other, up to a moment. `next` returns the streams of later owners
/// than the one of an incarnation. The manifest before the streams has this owner and has all commits up to
/// `checkpoint_ts`.
pub(crate) fn walk(
    home: &dyn Home,
    mut streams: VecDeque<Stretch>,
    next: &mut dyn FnMut(u64) -> Result<VecDeque<Stretch>>,
    moment: Moment,
    (owner, checkpoint_ts): (u64, u64),
    patience: Duration,
) -> Result<Walked> {
    let mut walked = Walked { spans: Vec::new(), last_ts: checkpoint_ts, written_us: 0, has_reached: false };
    if streams.is_empty() {
        streams = next(owner)?;
    }
    loop {
        let Some(stretch) = streams.pop_front() else { return Ok(walked) };
        let stop = walk_stream(home, stretch, moment, &mut walked, patience)?;
        match stop {
            Stop::Reached => {
                walked.has_reached = true;
                return Ok(walked);
            }
            Stop::Open(seq) => {
                let later = if streams.is_empty() { next(stretch.incarnation)? } else { streams };
                check_open(home, stretch.incarnation, seq, &later, patience)?;
                return Ok(walked);
            }
            Stop::Ended if streams.is_empty() => streams = next(stretch.incarnation)?,
            Stop::Ended => {}
        }
    }
}

fn walk_stream(
    home: &dyn Home,
    stretch: Stretch,
    moment: Moment,
    walked: &mut Walked,
    patience: Duration,
) -> Result<Stop> {
    let Stretch { incarnation, database, first, end, end_ts } = stretch;
    let mut span = Span { incarnation, database, first, end: first, end_ts, last_header: 0 };
    let stop = loop {
        if end.is_some_and(|end| end <= span.end) {
            break Stop::Ended;
        }
        let count = end.map_or(HEADERS_AT_A_TIME, |end| (end - span.end).min(HEADERS_AT_A_TIME));
        let seqs: Vec<u64> = (span.end..span.end.saturating_add(count)).collect();
        let firsts = read_firsts(home, incarnation, &seqs, patience)?;
        let mut stopped = None;
        for (seq, bytes) in seqs.into_iter().zip(firsts) {
            let name = stream_name(incarnation, seq);
            let wrong = |what: String| damaged_in(&home.describe(&name), 0, what);
            let Some(bytes) = bytes else {
                if let Some(end) = end {
                    return Err(wrong(format!("the object is missing, and the stream has objects up to {}", end - 1)));
                }
                stopped = Some(Stop::Open(seq));
                break;
            };
            let header = header_of(home, &name, &bytes, patience)?;
            check_place(&header, &span, seq).map_err(wrong)?;
            let Content::Records(batch) = &header.content else {
                stopped = Some(Stop::Ended);
                break;
            };
            let has_commits = batch.commits > 0;
            let is_after = match moment {
                Moment::Newest => false,
                Moment::Commit(commit) => has_commits && batch.first_ts > commit,
                Moment::Time(unix_us) => header.cut_us > unix_us,
            };
            if is_after {
                stopped = Some(Stop::Reached);
                break;
            }
            span.end = seq + 1;
            span.last_header = header_sum(&bytes);
            walked.written_us = header.cut_us;
            let mut last_ts = batch.last_ts;
            if let Moment::Commit(commit) = moment
                && last_ts >= commit
            {
                // LOG-86.
                if last_ts > commit {
                    span.end_ts = Some(span.end_ts.map_or(commit, |end_ts| end_ts.min(commit)));
                    last_ts = commit;
                }
                stopped = Some(Stop::Reached);
            }
            walked.last_ts = walked.last_ts.max(span.end_ts.map_or(last_ts, |end_ts| end_ts.min(last_ts)));
            if stopped.is_some() {
                break;
            }
        }
        if let Some(stop) = stopped {
            break stop;
        }
    };
    if span.end > span.first {
        walked.spans.push(span);
    }
    Ok(stop)
}

/// Checks that a stream goes on with no object after one that is not there: that one is the next to be put, or was lost.
///
/// While an owner has not put an object, at most [`IN_FLIGHT_MAX`] − 1 later ones are there, none of them ends the stream,
/// and no later owner has put any.
fn check_open(
    home: &dyn Home,
    incarnation: u64,
    seq: u64,
    later: &VecDeque<Stretch>,
    patience: Duration,
) -> Result<()> {
    let name = stream_name(incarnation, seq);
    let is_there = |name: &str| -> Result<bool> {
        let name = Name::new(name)?;
        Ok(patiently(patience, || home.head(&name))?.is_some())
    };
    let mut what = None;
    for stretch in later {
        if is_there(&stream_name(stretch.incarnation, stretch.first))? {
            what = Some(format!("incarnation {} goes on after it", stretch.incarnation));
        }
    }
    let directory = Name::new(parent(&name))?;
    for found in patiently(patience, || home.list(&directory))? {
        let Some((_, found_seq)) = stream_place(found.as_str()).filter(|(_, found)| *found > seq) else { continue };
        let first = patiently(patience, || home.first_bytes(&found, Some(END_BYTES_MAX)))?.unwrap_or_default();
        let is_end = open(&first).is_ok_and(|(header, _)| !matches!(header.content, Content::Records(_)));
        if is_end || found_seq >= seq.saturating_add(IN_FLIGHT_MAX as u64) {
            what = Some(format!("the stream goes on with object {found_seq}"));
        }
    }
    match what {
        // It may have been put since it was looked for.
        Some(what) if !is_there(&name)? => {
            Err(damaged_in(&home.describe(&name), 0, format_args!("the object is missing, and {what}")))
        }
        _ => Ok(()),
    }
}

/// Checks that an object belongs under its name and follows the one before it.
fn check_place(header: &Header, span: &Span, seq: u64) -> std::result::Result<(), String> {
    let place = header.place;
    if (place.database, place.incarnation, place.seq) != (span.database, span.incarnation, seq) {
        return Err(format!(
            "expected object {seq} of incarnation {} of database {}, found object {} of incarnation {} of {}",
            span.incarnation, span.database, place.seq, place.incarnation, place.database
        ));
    }
    let may_be_unknown = matches!(header.content, Content::Fence { .. }) && place.previous == 0;
    match span.end > span.first && place.previous != span.last_header && !may_be_unknown {
        true => {
            Err(format!("it follows a header {:08x}, and the one before is {:08x}", place.previous, span.last_header))
        }
        false => Ok(()),
    }
}

/// Decodes the header of an object. Reads all of it if its first bytes are too few.
fn header_of(home: &dyn Home, name: &str, first: &[u8], patience: Duration) -> Result<Header> {
    let error = |error: crate::stream::format::ObjectError| error.of(&home.describe(name));
    if let Some((header, _)) = open_header(first).map_err(error)? {
        return Ok(header);
    }
    let whole = Name::new(name)?;
    let bytes = patiently(patience, || home.get(&whole))?.unwrap_or_default();
    match open_header(&bytes).map_err(error)? {
        Some((header, _)) => Ok(header),
        None => Err(damaged_in(&home.describe(name), 68, "the object ends within its header")),
    }
}

/// The first bytes of objects of a stream, read side by side.
fn read_firsts(home: &dyn Home, incarnation: u64, seqs: &[u64], patience: Duration) -> Result<Vec<Option<Bytes>>> {
    let mut answers = Vec::with_capacity(seqs.len());
    for seq in seqs {
        let name = Name::new(&stream_name(incarnation, *seq))?;
        let (sender, receiver) = sync_channel(1);
        let request = Request::Ranges { name: name.clone(), ranges: std::iter::once(0..HEADER_BYTES_USUAL).collect() };
        // The receiver has gone if a read before it has failed.
        home.submit(request, Box::new(move |answer| drop(sender.send(answer))));
        answers.push((name, receiver));
    }
    let mut found = Vec::with_capacity(seqs.len());
    for (name, receiver) in answers {
        let bytes = match receiver.recv() {
            Ok(Ok(Reply::Ranges(ranges))) => ranges.map(|ranges| ranges.into_iter().next().unwrap_or_default()),
            // Once more, with patience.
            _ => patiently(patience, || home.first_bytes(&name, Some(HEADER_BYTES_USUAL as usize)))?,
        };
        found.push(bytes);
    }
    Ok(found)
}
