//! The log of changes: what commits have done to edges, for readers that keep lists of their own.
//!
//! Such a reader has the lists of the graph at a commit and wants those at a later one. To read them again takes as long as the graph has
//! edges, however few have changed. So from the first time that a reader asks, there is a log of the changes.
//!
//! - **STORE-38.** The log has every edge that a commit with a timestamp after `whole_since` has added or removed, the page of every vertex that
//!   such a commit has added or removed, and every property of an edge that it wrote while these are noted ([`EdgeWrites`]). A commit adds
//!   its entries before its timestamp is finished.
//!
//! A commit notes its timestamp on pages (STORE-37), and then looks whether there is a log. The reader that makes a log says that there is
//! one, and then takes the last timestamp that is noted on any page for `whole_since`. So a commit that has not seen the log was noted before.
//! Properties are alike: a commit notes its timestamp on the page of the edge, and then looks whether properties are noted.
//!
//! *Shards.* A committer adds its entries to the shard of its thread, one after the other. With a log for each page of vertices, the entries of a
//! transaction that moves an edge went to four logs that lie anywhere in memory: that took 6 % of its time. A reader takes the changes of all
//! pages at once and sorts them by page.
//!
//! The readers set the most entries of the log. When it is full, the next commit drops the older half of each shard. If no reader has asked since
//! the last time, the commit drops the whole log, so that a graph without such readers keeps none.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crossbeam_utils::CachePadded;
use mangrove_graph::{EdgeChange, GraphChanges, VertexId};
use mangrove_locks::rank;
use mangrove_reclaim::sync::{AtomicBool, AtomicU64, AtomicUsize, Mutex};

use crate::memory::{Memory, RecordKind, SHARDS};

/// Entries of a chunk. Memory comes and goes by chunks.
const CHUNK: usize = 256;
/// Chunks of the log at least.
const CHUNKS_MIN: usize = 2 * SHARDS;

/// What a commit has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    Edge(EdgeChange),
    /// It has added or removed this vertex, or changed its page in a way that the log does not have.
    Vertex(VertexId),
}

/// A change, and the timestamp of its commit.
#[derive(Clone, Copy, Debug)]
struct Entry {
    ts: u64,
    change: Change,
}

/// Entries that do not change any more. A reader keeps them for as long as it looks at them.
#[derive(Debug)]
struct Chunk {
    entries: Vec<Entry>,
    /// The greatest timestamp.
    last: u64,
}

impl Chunk {
    const BYTES: usize = CHUNK * size_of::<Entry>();
}

/// The entries of some threads, nearly in the order of timestamps.
#[derive(Debug, Default)]
struct Shard {
    full: VecDeque<Arc<Chunk>>,
    /// The entries of the chunk that is being filled, with memory for all of them or for none.
    open: Vec<Entry>,
}

impl Shard {
    /// Adds an entry, if there is memory for it.
    fn push(&mut self, ts: u64, change: Change) -> bool {
        if let (Change::Vertex(vertex), Some(&Entry { ts: before, change: Change::Vertex(last) })) =
            (change, self.open.last())
            && (before, last.tablet(), last.page()) == (ts, vertex.tablet(), vertex.page())
        {
            // A commit of many vertices needs one entry a page.
            return true;
        }
        let has_room = self.open.len() < self.open.capacity();
        if has_room {
            self.open.push(Entry { ts, change });
        }
        has_room
    }

    /// Begins another chunk, after the last one has no room.
    fn open_chunk(&mut self) {
        let entries = std::mem::replace(&mut self.open, Vec::with_capacity(CHUNK));
        if let Some(last) = entries.iter().map(|entry| entry.ts).max() {
            self.full.push_back(Arc::new(Chunk { entries, last }));
        }
    }

    /// How many chunks there are.
    fn len(&self) -> usize {
        self.full.len() + usize::from(self.open.capacity() > 0)
    }

    /// Drops the oldest full chunks while `is_dropped` says so, which is given the number of those that were dropped before, too. Returns how
    /// many, and the greatest timestamp in them.
    fn drop_oldest(&mut self, is_dropped: impl Fn(usize, &Chunk) -> bool) -> (usize, u64) {
        let (mut count, mut last) = (0, 0);
        while let Some(chunk) = self.full.front()
            && is_dropped(count, chunk)
        {
            (count, last) = (count + 1, chunk.last.max(last));
            self.full.pop_front();
        }
        (count, last)
    }
}

/// What readers know of the log.
#[derive(Debug, Default)]
struct Reading {
    whole_since: u64,
    /// Whether a reader has asked since entries went last.
    is_read: bool,
}

/// The log of a store, if it is kept. Invariant: STORE-38.
#[derive(Debug, Default)]
pub(crate) struct ChangeLog {
    /// Changes under the lock of `reading`, before the shards are emptied.
    is_kept: AtomicBool,
    /// The chunks of all shards.
    chunks: AtomicUsize,
    /// The most chunks.
    chunks_max: AtomicUsize,
    shards: [CachePadded<Mutex<Shard, rank::ChangeLogShard>>; SHARDS],
    reading: Mutex<Reading, rank::ChangeLogReading>,
}

impl ChangeLog {
    /// Returns true if commits have to add their changes. They have noted their timestamps on pages before.
    #[inline]
    pub(crate) fn is_kept(&self) -> bool {
        // SeqCst: the look of the commit, after its note, and its partner in `changes_between`.
        self.is_kept.load(Ordering::SeqCst)
    }

    /// Adds a change of the commit at `ts`, in the shard with this number.
    pub(crate) fn add(&self, shard: usize, ts: u64, change: Change, memory: &Memory) {
        loop {
            let mut shard = self.shards[shard % SHARDS].lock();
            // Looked at under the lock: after the log was given up, nothing is added.
            if !self.is_kept() || shard.push(ts, change) {
                return;
            }
            if !self.is_full() && memory.check().is_ok() {
                shard.open_chunk();
                self.chunks.fetch_add(1, Ordering::Relaxed);
                memory.add(RecordKind::ChangeLog, Chunk::BYTES);
                continue;
            }
            drop(shard);
            self.make_room(memory);
        }
    }

    fn is_full(&self) -> bool {
        self.chunks.load(Ordering::Relaxed) >= self.chunks_max.load(Ordering::Relaxed)
    }

    /// Drops the older half of each shard, or the whole log.
    fn make_room(&self, memory: &Memory) {
        let mut reading = self.reading.lock();
        // A graph that is at its limit needs its memory for elements.
        let has_memory = memory.check().is_ok();
        if has_memory && !self.is_full() {
            // Another thread has made room.
            return;
        }
        let is_read = std::mem::replace(&mut reading.is_read, false);
        if is_read && has_memory {
            return self.drop_oldest(&mut reading, memory, |len, nth, _| nth < len.div_ceil(2));
        }
        self.is_kept.store(false, Ordering::SeqCst);
        for shard in &self.shards {
            let dropped = std::mem::take(&mut *shard.lock());
            self.note_dropped(dropped.len(), memory);
        }
    }

    /// Drops the oldest full chunks of each shard while `is_dropped` says so: given how many the shard had, how many of them were dropped before,
    /// and the chunk.
    fn drop_oldest(&self, reading: &mut Reading, memory: &Memory, is_dropped: impl Fn(usize, usize, &Chunk) -> bool) {
        for shard in &self.shards {
            let mut shard = shard.lock();
            let len = shard.full.len();
            let (count, last) = shard.drop_oldest(|nth, chunk| is_dropped(len, nth, chunk));
            reading.whole_since = reading.whole_since.max(last);
            self.note_dropped(count, memory);
        }
    }

    fn note_dropped(&self, count: usize, memory: &Memory) {
        self.chunks.fetch_sub(count, Ordering::Relaxed);
        (0..count).for_each(|_| memory.remove(RecordKind::ChangeLog, Chunk::BYTES));
    }

    /// Appends the changes of the commits after `since` up to `until`, all of which are finished. Returns false if the log does
    /// not have all of them, or if there are more than `most`; if there is no log, it begins. `noted` is the last timestamp that is noted on any
    /// page. The log keeps as many entries as its readers take at most.
    pub(crate) fn changes_between(
        &self,
        (since, until): (u64, u64),
        most: usize,
        noted: impl FnOnce() -> u64,
        memory: &Memory,
        out: &mut GraphChanges,
    ) -> bool {
        let mut reading = self.reading.lock();
        let chunks = most.div_ceil(CHUNK).max(CHUNKS_MIN);
        reading.is_read = true;
        if !self.is_kept() {
            self.chunks_max.store(chunks, Ordering::Relaxed);
            // Before the look at what was noted (STORE-38).
            self.is_kept.store(true, Ordering::SeqCst);
            reading.whole_since = noted();
            return false;
        }
        let chunks_max = self.chunks_max.fetch_max(chunks, Ordering::Relaxed).max(chunks);
        if since < reading.whole_since {
            return false;
        }
        let is_between = |entry: &&Entry| entry.ts > since && entry.ts <= until;
        let (mut full, mut rest): (Vec<Arc<Chunk>>, Vec<Entry>) = Default::default();
        for shard in &self.shards {
            // Committers wait for no more than this: the entries of full chunks are looked at without a lock.
            let shard = shard.lock();
            full.extend(shard.full.iter().filter(|chunk| chunk.last > since).cloned());
            rest.extend_from_slice(&shard.open);
        }
        let mut found = 0;
        for entries in full.iter().map(|chunk| &chunk.entries).chain([&rest]) {
            for entry in entries.iter().filter(is_between) {
                found += 1;
                match entry.change {
                    Change::Edge(change) => out.edges.push(change),
                    Change::Vertex(vertex) => out.vertices.push(vertex),
                }
            }
            if found > most {
                return false;
            }
        }
        // Another reader may be at an earlier moment, so entries stay as long as there is room.
        if self.chunks.load(Ordering::Relaxed) > chunks_max / 2 {
            self.drop_oldest(&mut reading, memory, |_, _, chunk| chunk.last <= since);
        }
        true
    }

    pub(crate) fn bytes(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len() * Chunk::BYTES).sum()
    }
}

/// Whether commits note the properties of edges that they write. Most stores have no reader that asks, and then it costs nothing to
/// write one. Once it was asked for, it stays.
#[derive(Debug, Default)]
pub(crate) struct EdgeWrites {
    is_noted: AtomicBool,
    /// Commits after this timestamp are noted. 0 until it is known.
    since: AtomicU64,
}

impl EdgeWrites {
    /// Returns true if commits have to note what they write. They have noted their timestamps on the pages of the edges before.
    #[inline]
    pub(crate) fn is_noted(&self) -> bool {
        // SeqCst: the look of the commit, after its note, and its partner in `begin`.
        self.is_noted.load(Ordering::SeqCst)
    }

    /// The timestamp after which all commits note what they write; `None` if they do not.
    pub(crate) fn noted_since(&self) -> Option<u64> {
        Some(self.since.load(Ordering::Acquire)).filter(|since| *since > 0)
    }

    /// From now on, commits note what they write. Returns the timestamp after which all do: the last one that `noted` finds on pages
    /// of edges.
    pub(crate) fn begin(&self, noted: impl FnOnce() -> u64) -> u64 {
        if let Some(since) = self.noted_since() {
            return since;
        }
        // Before the look at what was noted (STORE-38).
        self.is_noted.store(true, Ordering::SeqCst);
        // The later one, if two readers are first.
        let since = noted().max(1);
        self.since.fetch_max(since, Ordering::AcqRel).max(since)
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use mangrove_graph::{EdgeChangeKind, EdgeId, KeyId, LabelSetId, TabletId};

    use super::*;

    fn vertex(n: u64) -> VertexId {
        VertexId::new(TabletId(1), n)
    }

    fn edge(n: u64) -> EdgeChange {
        let labels = LabelSetId(n as u32 % 3);
        EdgeChange {
            edge: EdgeId::new(TabletId(2), n),
            source: vertex(n),
            target: vertex(n + 1),
            kind: match n % 3 {
                0 => EdgeChangeKind::Added(labels),
                1 => EdgeChangeKind::Removed(labels),
                _ => EdgeChangeKind::Wrote(KeyId(n as u32)),
            },
        }
    }

    /// A log, and the memory of its graph.
    #[derive(Debug)]
    struct Kept {
        log: ChangeLog,
        memory: Memory,
    }

    impl Kept {
        fn new(limit: u64) -> Self {
            Kept { log: ChangeLog::default(), memory: Memory::new(limit) }
        }

        fn add(&self, shard: usize, ts: u64) {
            self.log.add(shard, ts, Change::Edge(edge(ts)), &self.memory);
            assert_eq!(self.memory.report().total_bytes(), self.log.bytes() as u64);
        }

        fn between(&self, since: u64, until: u64, most: usize) -> Option<GraphChanges> {
            let mut found = GraphChanges::default();
            self.log.changes_between((since, until), most, || 10, &self.memory, &mut found).then_some(found)
        }

        fn edges(&self, since: u64, until: u64) -> Option<Vec<EdgeChange>> {
            self.between(since, until, 100).map(|found| found.edges)
        }
    }

    #[test]
    fn a_log_begins_when_a_reader_asks_and_has_what_came_after() {
        assert_eq!(size_of::<Entry>(), 40, "as docs/design/analytics.md says");
        let kept = Kept::new(u64::MAX);
        kept.add(0, 9);
        assert!(!kept.log.is_kept() && kept.log.bytes() == 0);
        assert_eq!(kept.edges(9, 10), None);
        assert!(kept.log.is_kept());
        // Commits add their entries in any order, and each thread in a shard.
        [(0, 12), (1, 11), (9, 13), (0, 13)].into_iter().for_each(|(shard, ts)| kept.add(shard, ts));
        assert_eq!(kept.edges(9, 13), None, "an earlier commit was noted before the log began");
        let of = |timestamps: &[u64]| Some(timestamps.iter().map(|ts| edge(*ts)).collect::<Vec<_>>());
        assert_eq!(kept.edges(10, 12), of(&[12, 11]));
        assert_eq!(kept.edges(11, 13), of(&[12, 13, 13]));
        assert_eq!(kept.edges(13, 20), of(&[]));
        assert_eq!(kept.between(10, 13, 3), None, "more than the reader takes");
        assert_eq!(kept.between(10, 13, 4).map(|found| found.edges.len()), Some(4));
    }

    #[test]
    fn a_commit_of_many_vertices_adds_an_entry_a_page() {
        let kept = Kept::new(u64::MAX);
        kept.between(0, 0, 0);
        for (n, ts) in [(0, 11), (1, 11), (1_023, 11), (1_024, 11), (1_025, 12), (7, 12)] {
            kept.log.add(0, ts, Change::Vertex(vertex(n)), &kept.memory);
        }
        kept.add(0, 12);
        let found = kept.between(10, 12, 100).expect("the log is whole");
        assert_eq!(found.vertices, [0, 1_024, 1_025, 7].map(vertex));
        assert_eq!(found.edges, [edge(12)]);
    }

    #[test]
    fn a_full_log_loses_the_older_half_of_each_shard_and_one_that_nobody_reads_goes() {
        let kept = Kept::new(u64::MAX);
        kept.between(0, 0, 0);
        let (first, most) = (100, CHUNKS_MIN * CHUNK);
        let full = first + most as u64;
        (first..full).for_each(|ts| kept.add(0, ts));
        assert_eq!(kept.log.bytes(), CHUNKS_MIN * Chunk::BYTES);
        kept.add(0, full);
        let count = |since: u64| kept.between(since, full, most).map(|found| found.edges.len());
        let half = full - most as u64 / 2;
        assert_eq!((count(half - 2), count(half - 1), count(full - 30)), (None, Some(most / 2 + 1), Some(30)));
        assert_eq!(count(half - 1), None, "more than half full, it keeps what its last reader needs");
        (0..2 * most as u64).for_each(|n| kept.log.add(0, full + 1 + n, Change::Edge(edge(n)), &kept.memory));
        assert!(!kept.log.is_kept() && kept.memory.report().total_bytes() == 0 && kept.log.bytes() == 0);
        assert_eq!(kept.edges(full, 2 * full), None);
        assert!(kept.log.is_kept(), "it begins again");
    }

    #[test]
    fn properties_are_noted_when_a_reader_asks() {
        let writes = EdgeWrites::default();
        assert!(!writes.is_noted() && writes.noted_since().is_none());
        assert_eq!(writes.begin(|| 0), 1);
        assert_eq!(writes.begin(|| 9), 1, "it has begun");
        assert!(writes.is_noted() && writes.noted_since() == Some(1));
    }

    #[test]
    fn a_graph_at_its_limit_keeps_no_log() {
        let kept = Kept::new(Chunk::BYTES as u64);
        kept.between(0, 0, 0);
        (0..2 * CHUNK as u64).for_each(|n| kept.log.add(0, 100 + n, Change::Edge(edge(n)), &kept.memory));
        assert!(!kept.log.is_kept() && kept.memory.report().total_bytes() == 0 && kept.log.bytes() == 0);
    }
}
