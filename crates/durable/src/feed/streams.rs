//! The objects of the streams in a home, for the feed.
//!
//! Reading begins at the floor of a manifest that is kept (LOG-80). A stream's objects are read in order until the one that
//! ends it, then the next stream, which the first manifest of the next owner lists. An object that is there, with all before it, is durable: every successor of its owner reads it (F3 in
//! [`crate::stream`]). So a reader needs no word from the owner.
//!
//! - **LOG-94.** A reader goes from one stream to the next only if no other stream lies between them, or if all commits
//!   of such streams are at or before the last one that it has read.
//!
//! If an object is not there, the reader asks the newest manifest whether it was collected. That costs a list and two
//! reads whenever the feed is asked while nothing new is there.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mangrove_graph::{Catalog, Error, ErrorKind, Result};

use super::{FeedPosition, FeedSource, ShowRecord, too_old};
use crate::checkpoint::home::HomePlace;
use crate::checkpoint::load_catalog;
use crate::codec::Reader;
use crate::home::{Home, Name, WaitHome};
use crate::log::read::RecordPosition;
use crate::log::record::{NameCounts, Names, Record, read_record};
use crate::manifest::{Manifest, ManifestStream};
use crate::pin::collected;
use crate::states::{first_past, kept_numbers, newest_manifest, read_manifest};
use crate::stream::format::{Content, open};
use crate::stream::names::{MANIFESTS, STREAMS, stream_name};

/// How long a request is sent again while it fails in passing.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a newer manifest is read, because what an older one names was collected meanwhile.
const MANIFESTS_TRIED: usize = 5;

/// A reader's place in the streams of a home.
#[derive(Debug)]
pub(super) struct StreamSource {
    place: HomePlace,
    /// The stream that is read.
    stream: ManifestStream,
    /// The number of its next object.
    seq: u64,
    /// True if the stream has ended, and no later one was found.
    has_ended: bool,
    /// All commits up to here were read, or are before the position at which the feed began.
    last_ts: u64,
    /// The names of a checkpoint, to be shown before the next object: names in objects that were passed over are in it.
    names: Option<Names>,
}

/// The objects of a graph in a home, the names in its checkpoint, and the position to begin at.
pub(super) fn of_home(
    home: Arc<dyn Home>,
    from: Option<FeedPosition>,
) -> Result<(StreamSource, Catalog, FeedPosition)> {
    let place = HomePlace::new(home, PATIENCE);
    let mut tried = 1;
    loop {
        let newest = newest(&place)?;
        match begin_kept(&place, &newest, from) {
            // A checkpoint may have collected what is being read.
            Err(_) if tried < MANIFESTS_TRIED && self::newest(&place)?.version > newest.version => tried += 1,
            Err(error) => return Err(error),
            Ok((catalog, stream, at)) => {
                let (seq, has_ended, last_ts) = (stream.first, false, at.ts);
                let source = StreamSource { place, stream, seq, has_ended, last_ts, names: None };
                return Ok((source, catalog, at));
            }
        }
    }
}

/// Begins at the newest manifest that is kept and at or before a position; without a position, at the oldest.
fn begin_kept(
    place: &HomePlace,
    newest: &Manifest,
    from: Option<FeedPosition>,
) -> Result<(Catalog, ManifestStream, FeedPosition)> {
    let home = &**place.home();
    let kept = kept_numbers(home, newest, PATIENCE)?;
    let after = |manifest: &Manifest| FeedPosition::after_commit(manifest.checkpoint_ts());
    let later = match from {
        Some(from) => first_past(home, &kept, PATIENCE, |manifest| from < after(manifest))?.0,
        None => 0,
    };
    let at = later.saturating_sub(1);
    // The first manifest of a graph lists no stream. The one after it has the same state.
    for &number in kept.iter().skip(at).take(2) {
        let manifest = read_manifest(home, number, PATIENCE)?.ok_or_else(|| collected(home, number))?;
        if let Some(stream) = manifest.streams.first() {
            return begin(place, &manifest, stream, from);
        }
    }
    let message = format!("the graph in {} has no log yet; open it once to write", home.describe(""));
    Err(Error::new(ErrorKind::NotFound, message))
}

fn begin(
    place: &HomePlace,
    manifest: &Manifest,
    stream: &ManifestStream,
    from: Option<FeedPosition>,
) -> Result<(Catalog, ManifestStream, FeedPosition)> {
    let catalog = load_catalog(place, manifest)?;
    let oldest = oldest_ts(place, manifest, stream)?;
    let from = from.unwrap_or(FeedPosition::after_commit(oldest));
    if oldest > 0 && from < FeedPosition::after_commit(oldest) {
        return Err(too_old(from, oldest, &place.home().describe(STREAMS)));
    }
    Ok((catalog, stream.clone(), from))
}

/// All commits after this timestamp are in the streams from `first` on.
fn oldest_ts(place: &HomePlace, manifest: &Manifest, first: &ManifestStream) -> Result<u64> {
    let checkpoint = manifest.checkpoint_ts();
    if checkpoint == 0 {
        return Ok(0);
    }
    let name = stream_name(first.incarnation, first.first);
    let Some(object) = get(place, &name)? else { return Ok(checkpoint) };
    let path = place.home().describe(&name);
    let (header, _) = open(&object).map_err(|error| error.of(&path))?;
    Ok(match header.content {
        Content::Records(batch) if batch.commits > 0 => checkpoint.min(batch.first_ts.saturating_sub(1)),
        _ => checkpoint,
    })
}

fn newest(place: &HomePlace) -> Result<Manifest> {
    newest_manifest(&**place.home(), PATIENCE)
}

fn get(place: &HomePlace, name: &str) -> Result<Option<Bytes>> {
    let name = Name::new(name)?;
    place.patiently(|| place.home().get(&name))
}

impl FeedSource for StreamSource {
    fn next_batch(&mut self, each: ShowRecord<'_>) -> Result<bool> {
        loop {
            if self.has_ended && !self.go_to_next_stream()? {
                return Ok(false);
            }
            if let Some(names) = self.names.take() {
                let path = self.place.home().describe(MANIFESTS);
                each(Record::Names(names), RecordPosition { path: &path, offset: 0 }, None)?;
            }
            let name = stream_name(self.stream.incarnation, self.seq);
            let Some(object) = get(&self.place, &name)? else {
                if self.skip_collected()? {
                    continue;
                }
                return Ok(false);
            };
            let path = self.place.home().describe(&name);
            let (header, payload) = open(&object).map_err(|error| error.of(&path))?;
            if !matches!(header.content, Content::Records(_)) {
                self.has_ended = true;
                continue;
            }
            let position = RecordPosition { path: &path, offset: payload.offset() };
            let records = payload.records().map_err(|error| error.of(&path))?;
            let mut reader = Reader::new(&records);
            while !reader.is_at_end() {
                let record = reader.bytes().and_then(read_record).map_err(|error| position.malformed(error))?;
                if let Record::Commit(commit) | Record::Identities(commit) | Record::Before(commit) = &record
                    && self.stream.end_ts.is_some_and(|end| commit.timestamp > end)
                {
                    continue;
                }
                if let Record::Commit(commit) = &record {
                    self.last_ts = self.last_ts.max(commit.timestamp);
                }
                each(record, position, Some(header.cut_us))?;
            }
            self.seq += 1;
            return Ok(true);
        }
    }
}

impl StreamSource {
    /// After the end of a stream: goes to the next one. Returns false if there is none yet.
    fn go_to_next_stream(&mut self) -> Result<bool> {
        let (home, own) = (&**self.place.home(), self.stream.incarnation);
        let newest = newest(&self.place)?;
        if newest.epoch() <= own {
            return Ok(false);
        }
        // The first manifest of the next owner lists the stream that has ended, if that manifest is kept.
        let kept = kept_numbers(home, &newest, PATIENCE)?;
        let (_, found) = first_past(home, &kept, PATIENCE, |manifest| manifest.epoch() > own)?;
        let manifest = found.unwrap_or(newest);
        let Some(next) =
            manifest.streams.iter().filter(|stream| stream.incarnation > own).min_by_key(|s| s.incarnation)
        else {
            return Ok(false);
        };
        // LOG-94: the streams that a manifest lists follow one another.
        let is_neighbor = manifest.streams.iter().any(|stream| stream.incarnation == own) && next.first == 1;
        self.go_to(&manifest, next.clone(), is_neighbor).map(|()| true)
    }

    /// After an object was not found: if it was collected, goes to the first object that is left. Returns false if
    /// it is not there yet.
    fn skip_collected(&mut self) -> Result<bool> {
        let manifest = newest(&self.place)?;
        let own = self.stream.incarnation;
        let listed = manifest.streams.iter().find(|stream| stream.incarnation == own);
        if listed.is_some_and(|stream| stream.first <= self.seq) {
            return Ok(false);
        }
        let first = manifest.streams.iter().find(|stream| stream.incarnation >= own).cloned();
        match first {
            Some(first) => self.go_to(&manifest, first, false).map(|()| true),
            None => Ok(false),
        }
    }

    /// LOG-94.
    fn go_to(&mut self, manifest: &Manifest, stream: ManifestStream, is_neighbor: bool) -> Result<()> {
        if !is_neighbor && self.last_ts < manifest.checkpoint_ts() {
            let first = manifest.streams.first().unwrap_or(&stream);
            let oldest = oldest_ts(&self.place, manifest, first)?;
            return Err(too_old(
                FeedPosition::after_commit(self.last_ts),
                oldest,
                &self.place.home().describe(STREAMS),
            ));
        }
        if !is_neighbor {
            let catalog = load_catalog(&self.place, manifest)?;
            self.names = Some(Names::between(&catalog, NameCounts::default(), NameCounts::of(&catalog)));
        }
        (self.seq, self.has_ended) = (stream.first, false);
        self.stream = stream;
        Ok(())
    }
}
