//! A home as the place of checkpoints: packs and manifests are objects.
//!
//! A pack is gathered in memory and put whole, so a checkpoint takes as much memory as a pack has bytes. A request that fails
//! in passing is sent again, until the patience of the owner ends.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use bytes::Bytes;
use mangrove_graph::{Error, Result};

use super::place::{NewPack, Place, RangeSource, ReadShape};
use crate::damage::damaged_in;
use crate::home::{ByteSource, Home, HomeResult, Name, Reply, Request, WaitHome};
use crate::manifest::{Manifest, fenced};
use crate::stream::clock;
use crate::stream::manifest_put::ManifestOutcome;
use crate::stream::names::{STREAMS, manifest_name};
use crate::stream::take_over::put_manifest;

/// Bytes of near blocks that are read at a time.
const RUN_BYTES: u64 = 1 << 20;
/// Requests that a reader of a pack has under way.
const READS_AT_A_TIME: usize = 4;
/// Threads that read a checkpoint at least. A thread waits tens of milliseconds for each request, and decodes its bytes in a few.
const READING_THREADS_MIN: usize = 16;
/// Bytes at the beginning of a pack that are read when it is opened: its header.
const FIRST_BYTES: u64 = 64;
/// Bytes at the end of a pack that are read when it is opened. The directories of most packs fit.
const LAST_BYTES: u64 = 64 << 10;
/// The first and the longest pause before a failed request is sent again.
const PAUSES: [Duration; 2] = [Duration::from_millis(10), Duration::from_secs(1)];

/// Sends a request again while it fails in passing, for this long at most.
pub(crate) fn patiently<T>(patience: Duration, mut request: impl FnMut() -> HomeResult<T>) -> Result<T> {
    let until_us = clock::now().us.saturating_add(patience.as_micros() as u64);
    let [mut pause, longest] = PAUSES;
    loop {
        match request() {
            Err(error) if error.kind().is_passing() && clock::now().us < until_us => {
                std::thread::sleep(pause.min(clock::until(until_us)));
                pause = (pause * 2).min(longest);
            }
            answer => return answer.map_err(Error::from),
        }
    }
}

/// The checkpoints of a graph in a home.
#[derive(Debug)]
pub(crate) struct HomePlace {
    home: Arc<dyn Home>,
    patience: Duration,
}

impl HomePlace {
    /// The checkpoints in a home. A request that fails is sent again for as long as `patience` says.
    pub(crate) fn new(home: Arc<dyn Home>, patience: Duration) -> Self {
        HomePlace { home, patience }
    }

    /// The home.
    pub(crate) fn home(&self) -> &Arc<dyn Home> {
        &self.home
    }

    /// How long a request that fails is sent again.
    pub(crate) fn patience(&self) -> Duration {
        self.patience
    }

    /// Sends a request again while it fails in passing.
    pub(crate) fn patiently<T>(&self, request: impl FnMut() -> HomeResult<T>) -> Result<T> {
        patiently(self.patience, request)
    }
}

impl Place for HomePlace {
    fn begin_pack(&self, path: &str) -> Result<Box<dyn NewPack + '_>> {
        Ok(Box::new(NewObject { place: self, name: Name::new(path)?, pieces: Vec::new() }))
    }

    fn open_pack(&self, path: String, bytes: u64) -> Result<Box<dyn RangeSource + '_>> {
        Ok(Box::new(HomeSource::open(self, Name::new(&path)?, bytes)?))
    }

    fn reading_threads(&self, threads: usize) -> usize {
        threads.max(READING_THREADS_MIN)
    }

    /// An object is durable under its name once its put was answered (HOME-3).
    fn keep_packs(&self) -> Result<()> {
        Ok(())
    }

    fn put_manifest(&self, next: &mut Manifest, _: &Manifest) -> Result<()> {
        let bytes = next.write_object();
        match put_manifest(&*self.home, next.version, bytes, self.patience)? {
            ManifestOutcome::Counts => Ok(()),
            ManifestOutcome::Superseded => Err(fenced(&self.describe(&manifest_name(next.version)))),
        }
    }

    fn puts_again(&self) -> bool {
        true
    }

    fn describe(&self, path: &str) -> String {
        self.home.describe(path)
    }

    fn describe_log(&self) -> String {
        self.home.describe(STREAMS)
    }
}

/// A pack that is being written.
struct NewObject<'a> {
    place: &'a HomePlace,
    name: Name,
    pieces: Vec<Bytes>,
}

impl NewPack for NewObject<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.pieces.push(Bytes::copy_from_slice(bytes));
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let pieces = || Box::new(Pieces(self.pieces.iter().cloned().collect()));
        self.place.patiently(|| self.place.home.put_unique(&self.name, pieces()))
    }
}

/// The bytes of a pack.
#[derive(Debug)]
struct Pieces(VecDeque<Bytes>);

impl ByteSource for Pieces {
    fn next_piece(&mut self) -> HomeResult<Option<Bytes>> {
        Ok(self.0.pop_front())
    }
}

/// An object, as the source of a pack. Its ends are read when it is opened.
struct HomeSource<'a> {
    place: &'a HomePlace,
    name: Name,
    length: u64,
    first: Bytes,
    last: Bytes,
    /// The offset of `last`.
    last_at: u64,
}

impl<'a> HomeSource<'a> {
    /// Opens an object whose manifest says that it has this many bytes.
    fn open(place: &'a HomePlace, name: Name, bytes: u64) -> Result<Self> {
        let last_at = bytes.saturating_sub(LAST_BYTES);
        // One byte more shows whether the object is longer.
        let ends = || place.home.ranges(&name, vec![0..FIRST_BYTES.min(bytes), last_at..bytes.saturating_add(1)]);
        let missing = || {
            let object = place.home.describe(name.as_str());
            Err(damaged_in(&object, 0, "the object is missing, and the manifest names it"))
        };
        let Some(ends) = place.patiently(ends)? else { return missing() };
        let mut ends = ends.into_iter();
        let (first, last) = (ends.next().unwrap_or_default(), ends.next().unwrap_or_default());
        let mut length = bytes;
        if last.len() as u64 != bytes - last_at {
            length = match place.patiently(|| place.home.head(&name))? {
                Some(length) => length,
                None => return missing(),
            };
        }
        Ok(HomeSource { place, name, length, first, last, last_at })
    }

    /// Begins to read a range.
    fn begin(&self, range: Range<u64>) -> Receiver<HomeResult<Reply>> {
        let (sender, answers) = sync_channel(1);
        let request = Request::Ranges { name: self.name.clone(), ranges: std::iter::once(range).collect() };
        // The reader has gone if a range before it was damaged. Then the answer is dropped.
        self.place.home.submit(request, Box::new(move |answer| drop(sender.send(answer))));
        answers
    }

    fn read_range(&self, range: Range<u64>) -> Result<Bytes> {
        let ranges = || self.place.home.ranges(&self.name, std::iter::once(range.clone()).collect());
        match self.place.patiently(ranges)? {
            Some(ranges) => Ok(ranges.into_iter().next().unwrap_or_default()),
            None => Err(damaged_in(&self.describe(), 0, "the object is missing, and the manifest names it")),
        }
    }
}

impl RangeSource for HomeSource<'_> {
    fn length(&self) -> Result<u64> {
        Ok(self.length)
    }

    fn read(&self, offset: u64, count: usize) -> Result<Vec<u8>> {
        for (at, part) in [(0, &self.first), (self.last_at, &self.last)] {
            let begin = offset.checked_sub(at).and_then(|begin| usize::try_from(begin).ok());
            let found = begin.and_then(|begin| part.get(begin..begin.checked_add(count)?));
            if let Some(found) = found {
                return Ok(found.to_vec());
            }
        }
        Ok(self.read_range(offset..offset.saturating_add(count as u64))?.into())
    }

    fn read_each(&self, ranges: &[Range<u64>], each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let (mut next, mut under_way) = (ranges.iter(), VecDeque::new());
        loop {
            let begun = next.by_ref().take(READS_AT_A_TIME - under_way.len());
            under_way.extend(begun.map(|range| (range, self.begin(range.clone()))));
            let Some((range, answer)) = under_way.pop_front() else { return Ok(()) };
            let bytes = match answer.recv() {
                Ok(Ok(Reply::Ranges(Some(found)))) => found.into_iter().next().unwrap_or_default(),
                // Once more, with patience.
                _ => self.read_range(range.clone())?,
            };
            each(&bytes)?;
        }
    }

    fn shape(&self) -> ReadShape {
        ReadShape { gap_bytes: self.place.home.traits().gap_bytes, run_bytes: RUN_BYTES }
    }

    fn describe(&self) -> String {
        self.place.home.describe(self.name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use mangrove_graph::{ElementKind, ErrorKind};
    use uuid::Uuid;

    use super::super::compress::Compression;
    use super::super::pack::{PlacedPackWriter, check_pack};
    use super::*;
    use crate::home::MemoryHome;
    use crate::home::counting::{CountingHome, RequestKind};
    use crate::manifest::ManifestPack;
    use crate::testing::empty_page;

    fn written(place: &HomePlace, pages: u32) -> ManifestPack {
        let mut writer = PlacedPackWriter::create(place, (3, 17), Uuid::nil(), Compression::None).unwrap();
        for number in 0..pages {
            writer.image(&empty_page(ElementKind::Vertex, 1, number)).unwrap();
        }
        writer.finish().unwrap().entry
    }

    #[test]
    fn a_pack_is_put_and_read_with_few_requests() {
        let counting = Arc::new(CountingHome::new(Arc::new(MemoryHome::new())));
        let place = HomePlace::new(counting.clone(), Duration::ZERO);
        let pack = written(&place, 60_000);
        let put = counting.count(RequestKind::PutUnique);
        assert_eq!((put.requests, put.bytes), (1, pack.bytes));
        assert!(pack.bytes > 2 * RUN_BYTES, "{} bytes", pack.bytes);
        assert_eq!(check_pack(&place, &pack, Uuid::nil()).unwrap(), 60_000);
        // The ends, the directory, and the runs.
        let read = counting.count(RequestKind::Ranges);
        assert!(read.requests <= 2 + pack.bytes.div_ceil(RUN_BYTES), "{read:?}");
        assert!(read.bytes <= pack.bytes + FIRST_BYTES + LAST_BYTES + 1, "{read:?}");
        let small = ManifestPack { counter: 18, ..pack };
        assert!(check_pack(&place, &small, Uuid::nil()).unwrap_err().message().contains(&small.path()));
    }

    #[test]
    fn an_object_of_another_length_is_named() {
        let place = HomePlace::new(Arc::new(MemoryHome::new()), Duration::ZERO);
        let pack = written(&place, 3);
        assert_eq!(check_pack(&place, &pack, Uuid::nil()).unwrap(), 3);
        for bytes in [pack.bytes - 1, pack.bytes + 1, 20] {
            let other = ManifestPack { bytes, ..pack.clone() };
            let error = check_pack(&place, &other, Uuid::nil()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Damaged);
            assert!(error.message().contains(&pack.path()), "{error}");
        }
    }
}
