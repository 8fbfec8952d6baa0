//! The log of a page's lists: what commits have done to the edges in them, for readers that keep lists of their own.
//!
//! Such a reader has the lists of a page at a commit and wants those at a later one. To read the page again takes as long as the
//! page has edges, however few have changed. So from the first time that a reader asks, the page has a log of the changes.
//!
//! - **STORE-38.** The log of a page has every edge that a commit with a timestamp after `whole_since` has added to a list of the page or
//!   taken out of one, and every property of such an edge that it wrote while these are noted ([`EdgeWrites`]). A commit adds its entries before its
//!   timestamp is finished.
//!
//! A commit notes its timestamp on the page (STORE-37), and then looks whether there is a log. The reader that makes a log says that there is
//! one, and then takes the last noted timestamp for `whole_since`. So a commit that has not seen the log was noted before. Properties are alike: a
//! commit notes its timestamp on the page of the edge, and then looks whether properties are noted.
//!
//! The last reader sets the most entries of a log. When it is full, the next commit drops its older half. If no reader has asked since
//! the last time, the commit drops the whole log, so that a page without readers keeps none.

use std::sync::atomic::Ordering;

use mangrove_graph::ListChange;
use mangrove_locks::rank;
use mangrove_reclaim::sync::{AtomicBool, AtomicU64, Mutex};

use crate::memory::{Memory, RecordKind};

/// Entries of a log at least.
const ENTRIES_MIN: usize = 64;
/// An entry so many after the next one begins in the next cache line or the one after it.
const ENTRIES_AHEAD: usize = 3;

/// A change, and the timestamp of its commit.
#[derive(Clone, Copy, Debug)]
struct Entry {
    ts: u64,
    change: ListChange,
}

#[derive(Debug)]
struct Log {
    entries: Vec<Entry>,
    whole_since: u64,
    /// The most entries.
    most: usize,
    /// Whether a reader has asked since entries went last.
    is_read: bool,
}

/// The log of a page, if it has one. Invariant: STORE-38.
#[derive(Debug, Default)]
pub(crate) struct ListLog {
    /// Whether there is a log: most pages have none, and then commits take no lock.
    is_kept: AtomicBool,
    log: Mutex<Option<Log>, rank::ListLog>,
}

impl ListLog {
    /// Returns true if commits have to add their changes. They have noted their timestamps on the page before.
    #[inline]
    pub(crate) fn is_kept(&self) -> bool {
        // SeqCst: the look of the commit, after its note, and its partners in `changes_between`.
        self.is_kept.load(Ordering::SeqCst)
    }

    /// Adds a change of the commit at `ts`.
    pub(crate) fn add(&self, ts: u64, change: ListChange, memory: &Memory) {
        let mut kept = self.log.lock();
        let Some(log) = &mut *kept else { return };
        if log.entries.len() >= log.most && !log.make_room() {
            return self.give_up(&mut kept, memory);
        }
        let before = log.bytes();
        log.entries.push(Entry { ts, change });
        // The line that one of the next calls fills. It was last used as long ago as the log has room.
        log.entries.spare_capacity_mut().get(ENTRIES_AHEAD).into_iter().for_each(mangrove_reclaim::prefetch::prefetch);
        if log.bytes() != before {
            memory.resize(RecordKind::ListLog, before, log.bytes());
            // A graph that is at its limit needs its memory for elements.
            if memory.check().is_err() {
                self.give_up(&mut kept, memory);
            }
        }
    }

    /// Notes that the commit at `ts` has changed the page in a way that the log does not have.
    pub(crate) fn interrupt(&self, ts: u64) {
        if let Some(log) = &mut *self.log.lock() {
            log.whole_since = log.whole_since.max(ts);
        }
    }

    fn give_up(&self, kept: &mut Option<Log>, memory: &Memory) {
        self.is_kept.store(false, Ordering::SeqCst);
        kept.take().into_iter().for_each(|log| memory.remove(RecordKind::ListLog, log.bytes()));
    }

    /// Appends the changes of the commits after `since` up to `until`, all of which are finished. Returns false if the log does
    /// not have all of them; if there is none, it begins. `noted` is the last timestamp that was noted on the page, and `most` the
    /// most entries that are worth their memory.
    pub(crate) fn changes_between(
        &self,
        (since, until): (u64, u64),
        most: usize,
        noted: impl FnOnce() -> u64,
        out: &mut Vec<ListChange>,
    ) -> bool {
        let (mut kept, most) = (self.log.lock(), most.max(ENTRIES_MIN));
        let Some(log) = &mut *kept else {
            // Before the look at what was noted (STORE-38).
            self.is_kept.store(true, Ordering::SeqCst);
            let log = Log { entries: Vec::new(), whole_since: noted(), most, is_read: true };
            *kept = Some(log);
            return false;
        };
        (log.most, log.is_read) = (most, true);
        if since < log.whole_since {
            return false;
        }
        let between = log.entries.iter().filter(|entry| entry.ts > since && entry.ts <= until);
        out.extend(between.map(|entry| entry.change));
        // Another reader may be at an earlier moment, so entries stay as long as there is room.
        if log.entries.len() > most / 2 {
            log.drop_entries(|entry| entry.ts <= since);
        }
        true
    }

    pub(crate) fn bytes(&self) -> usize {
        self.log.lock().as_ref().map_or(0, |log| log.bytes())
    }
}

/// Whether commits note the properties of edges that they write, for the logs of pages. Most stores have no reader that asks, and then it costs nothing to
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

impl Log {
    /// Without the log itself, which is a part of its page.
    fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
    }

    /// Drops the older half of the entries. Returns false if no reader has asked since the last time.
    fn make_room(&mut self) -> bool {
        let mut place = 0;
        let half = self.entries.len().div_ceil(2);
        self.drop_entries(|_| {
            place += 1;
            place <= half
        });
        std::mem::replace(&mut self.is_read, false)
    }

    fn drop_entries(&mut self, mut is_dropped: impl FnMut(&Entry) -> bool) {
        let whole_since = &mut self.whole_since;
        self.entries.retain(|entry| {
            let goes = is_dropped(entry);
            if goes {
                *whole_since = entry.ts.max(*whole_since);
            }
            !goes
        });
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use mangrove_graph::{Direction, EdgeId, KeyId, LabelSetId, ListChangeKind, TabletId, VertexId};

    use super::*;

    fn change(n: u64) -> ListChange {
        let labels = LabelSetId(n as u32 % 3);
        ListChange {
            slot: n as u16 % 1_024,
            direction: if n.is_multiple_of(2) { Direction::Out } else { Direction::In },
            neighbor: VertexId::new(TabletId(1), n),
            edge: EdgeId::new(TabletId(2), n),
            kind: match n % 3 {
                0 => ListChangeKind::Added(labels),
                1 => ListChangeKind::Removed(labels),
                _ => ListChangeKind::Wrote(KeyId(n as u32)),
            },
        }
    }

    fn between(log: &ListLog, since: u64, until: u64) -> Option<Vec<ListChange>> {
        let mut found = Vec::new();
        log.changes_between((since, until), 100, || 10, &mut found).then_some(found)
    }

    #[test]
    fn a_log_begins_when_a_reader_asks_and_has_what_came_after() {
        assert_eq!(size_of::<Entry>(), 40, "as docs/design/analytics.md says");
        let (log, memory) = (ListLog::default(), Memory::new(u64::MAX));
        log.add(9, change(9), &memory);
        assert!(!log.is_kept() && memory.report().total_bytes() == 0);
        assert_eq!(between(&log, 9, 10), None);
        assert!(log.is_kept());
        // Commits add their entries in any order.
        [12, 11, 13, 13].into_iter().for_each(|ts| log.add(ts, change(ts), &memory));
        assert_eq!(between(&log, 9, 13), None, "an earlier commit was noted before the log began");
        let of = |timestamps: &[u64]| Some(timestamps.iter().map(|ts| change(*ts)).collect::<Vec<_>>());
        assert_eq!(between(&log, 10, 12), of(&[12, 11]));
        assert_eq!(between(&log, 11, 13), of(&[12, 13, 13]));
        assert_eq!(between(&log, 13, 20), of(&[]));
        log.interrupt(12);
        assert_eq!(between(&log, 11, 13), None);
        assert_eq!(between(&log, 12, 13), of(&[13, 13]));
        assert_eq!(memory.report().total_bytes(), log.bytes() as u64);
    }

    #[test]
    fn a_full_log_loses_its_older_half_and_one_that_nobody_reads_goes() {
        let (log, memory) = (ListLog::default(), Memory::new(u64::MAX));
        between(&log, 0, 0);
        (0..101).for_each(|n| log.add(100 + n, change(n), &memory));
        assert_eq!(between(&log, 148, 300), None, "a commit at 149 has lost its entry");
        assert_eq!(between(&log, 149, 300).map(|found| found.len()), Some(51));
        assert_eq!(between(&log, 170, 300).map(|found| found.len()), Some(30));
        assert_eq!(between(&log, 169, 300), None, "more than half full, it keeps what its last reader needs");
        (0..200).for_each(|n| log.add(301 + n, change(n), &memory));
        assert!(!log.is_kept() && memory.report().total_bytes() == 0 && log.bytes() == 0);
        assert_eq!(between(&log, 400, 500), None);
        assert!(log.is_kept(), "it begins again");
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
        let (log, memory) = (ListLog::default(), Memory::new(400));
        between(&log, 0, 0);
        (0..64).for_each(|n| log.add(100 + n, change(n), &memory));
        assert!(!log.is_kept() && memory.report().total_bytes() == 0);
    }
}
