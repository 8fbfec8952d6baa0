//! Writing the runs of look-up indexes with a checkpoint.
//!
//! Entries are gathered from the images of the pages that the checkpoint writes, and become a run (LOG-104). Without more, an
//! index would have a run for each checkpoint. So a checkpoint may also gather the entries of pages that have not changed, from
//! images that it makes again of the store:
//!
//! | the run has the entries of | if | it replaces |
//! |---|---|---|
//! | all pages | the index is new, or topology is on again; or the later runs have more than a quarter of the entries of the first ones; or the pack of one of the first is retired | all runs |
//! | the pages imaged since the first runs | there are already four later runs, or the pack of one is retired | the later runs |
//! | the pages that the checkpoint images | otherwise | none |
//!
//! The *first runs* of an index are those that had the entries of all pages when they were written; it is one, unless memory was
//! short for it. An index always has one, even without entries: it tells which pages have been imaged since.

use std::collections::BTreeSet;

use hashbrown::HashSet;
use mangrove_graph::{Catalog, Error, Result};
use mangrove_store::Store;
use mangrove_store::image::{PageImage, PageName};

use super::live::{DuePages, LiveIndex, LivePacks, PagePlace};
use super::names::read_names;
use super::pack::BlockName;
use super::place::Place;
use super::series::PackSeries;
use crate::manifest::{ManifestIndex, ManifestRun};
use crate::open::runs::{Entry, LookUpIndex, put_run};

/// An index has at most so many runs after its first ones.
const LATER_RUNS_MAX: usize = 4;
/// The runs after the first ones have at most this part of the entries of these.
const LATER_PART: u64 = 4;
/// But they may have so many entries in any case: a few stripes.
const LATER_ENTRIES_FREE: u64 = 4_096;

/// The pages whose entries a run has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Coverage {
    All,
    /// Those whose newest image lies after a pack.
    ImagedSince(u64),
    Due,
}

/// A look-up index in a checkpoint.
#[derive(Debug)]
struct DueIndex {
    index: LookUpIndex,
    coverage: Coverage,
    /// Runs that go on to count; the first `base` are the first runs.
    kept: Vec<ManifestRun>,
    base: usize,
    gathered: Vec<Entry>,
    written: Vec<ManifestRun>,
}

impl DueIndex {
    /// What a checkpoint writes of an index. Without changes of the graph it is nothing, unless the index is new.
    fn new(index: LookUpIndex, before: Option<&LiveIndex>, retired: &BTreeSet<u64>, has_changes: bool) -> Self {
        let (coverage, kept, base) = match before {
            None => (Coverage::All, Vec::new(), 0),
            Some(live) => {
                let (first, later) = live.runs.split_at(live.base);
                let entries = |runs: &[(ManifestRun, _)]| runs.iter().map(|(run, _)| run.entries).sum::<u64>();
                let is_retired = |runs: &[(_, PagePlace)]| runs.iter().any(|(_, at)| retired.contains(&at.pack));
                let is_much = entries(later) > (entries(first) / LATER_PART).max(LATER_ENTRIES_FREE);
                if is_retired(first) || (is_much && has_changes) {
                    (Coverage::All, Vec::new(), 0)
                } else {
                    let since = first.last().map_or(0, |(_, at)| at.pack);
                    let ends = is_retired(later) || (later.len() >= LATER_RUNS_MAX && has_changes);
                    let (coverage, kept) =
                        if ends { (Coverage::ImagedSince(since), first) } else { (Coverage::Due, &*live.runs) };
                    (coverage, kept.iter().map(|(run, _)| *run).collect(), live.base)
                }
            }
        };
        DueIndex { index, coverage, kept, base, gathered: Vec::new(), written: Vec::new() }
    }

    /// Returns true if it needs the entries of a page that the checkpoint does not image otherwise.
    fn needs(&self, page: PageName, imaged: u64) -> bool {
        let is_covered = match self.coverage {
            Coverage::All => true,
            Coverage::ImagedSince(pack) => imaged > pack,
            Coverage::Due => false,
        };
        is_covered && page.kind == self.index.element
    }

    /// Writes the gathered entries as a run, if there are any.
    fn write<P: Place + ?Sized>(&mut self, at_ts: u64, series: &mut PackSeries<'_, P>) -> Result<()> {
        // LOG-104 has a use for a first run without entries.
        let is_needed = self.coverage == Coverage::All && self.written.is_empty();
        if self.gathered.is_empty() && !is_needed {
            return Ok(());
        }
        let mut entries = std::mem::take(&mut self.gathered);
        entries.sort_unstable();
        entries.dedup();
        let mut body = Vec::new();
        let head = put_run(&self.index, at_ts, &entries, &mut body);
        let count = entries.len() as u64;
        drop(entries);
        let pack = series.run(BlockName::of_run(&self.index), &body)?;
        let (incarnation, counter) = (pack.incarnation, pack.counter);
        self.written.push(ManifestRun { incarnation, counter, entries: count, head });
        Ok(())
    }

    fn entry(self) -> ManifestIndex {
        let base = if self.coverage == Coverage::All { self.written.len() } else { self.base };
        let (kind, number) = (self.index.kind(), self.index.number);
        ManifestIndex { kind, number, base: base as u64, runs: self.kept.into_iter().chain(self.written).collect() }
    }
}

/// The look-up indexes that a checkpoint writes.
pub(super) struct DueIndexes<'c> {
    store: &'c Store,
    /// The timestamp of the snapshot.
    at_ts: u64,
    indexes: Vec<DueIndex>,
    /// About how many bytes of memory all gathered entries take.
    gathered_bytes: usize,
    gathered_bytes_max: usize,
}

impl<'c> DueIndexes<'c> {
    /// The indexes of a store, as far as a checkpoint has any. `due` are the pages that it images, and `packs` those before it.
    pub(super) fn new(
        (store, at_ts): (&'c Store, u64),
        packs: &LivePacks,
        due: &DuePages,
        (has_indexes, has_changes): (bool, bool),
        gathered_bytes_max: usize,
    ) -> Self {
        let all = if has_indexes { LookUpIndex::all(&store.online_indexes().0) } else { Vec::new() };
        let due = |index: LookUpIndex| {
            let before = packs.index((index.kind(), index.number));
            DueIndex::new(index, before, &due.retired, has_changes)
        };
        let mut indexes: Vec<DueIndex> = all.into_iter().map(due).collect();
        indexes.sort_by_key(|due| due.index.number);
        DueIndexes { store, at_ts, indexes, gathered_bytes: 0, gathered_bytes_max }
    }

    /// Gathers the entries of a page that the checkpoint has just imaged.
    pub(super) fn gather<P: Place + ?Sized>(
        &mut self,
        image: &PageImage,
        series: &mut PackSeries<'_, P>,
    ) -> Result<()> {
        self.gather_if(image, series, |_| true)
    }

    fn gather_if<P: Place + ?Sized>(
        &mut self,
        image: &PageImage,
        series: &mut PackSeries<'_, P>,
        is_needed: impl Fn(&DueIndex) -> bool,
    ) -> Result<()> {
        for DueIndex { index, gathered, .. } in self.indexes.iter_mut().filter(|due| is_needed(due)) {
            index.each_entry(image, self.store.catalog(), |entry| {
                self.gathered_bytes += entry.memory();
                gathered.push(entry);
            });
        }
        if self.gathered_bytes > self.gathered_bytes_max {
            self.write(series)?;
            // A pack has at most one run of an index.
            series.end_pack()?;
        }
        Ok(())
    }

    fn write<P: Place + ?Sized>(&mut self, series: &mut PackSeries<'_, P>) -> Result<()> {
        self.gathered_bytes = 0;
        self.indexes.iter_mut().try_for_each(|due| due.write(self.at_ts, series))
    }

    /// Gathers what is due of pages that the checkpoint does not image otherwise, and writes the last runs. Returns the look-up
    /// indexes of the manifest: those whose definition is in `names`, the catalog that the manifest will name. `pause` is called
    /// between two pages.
    pub(super) fn finish<P: Place + ?Sized>(
        mut self,
        (packs, due): (&LivePacks, &DuePages),
        names: &[u8],
        series: &mut PackSeries<'_, P>,
        pause: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Vec<ManifestIndex>> {
        if self.indexes.is_empty() {
            return Ok(Vec::new());
        }
        // One that was dropped meanwhile has none. One that was created meanwhile comes with the next checkpoint.
        let (defined, _) = read_names(names, &Catalog::new()).map_err(|malformed| {
            Error::bug(format!("the names of the graph cannot be read again: {}", malformed.what))
        })?;
        let defined = LookUpIndex::all(&defined.list);
        self.indexes.retain(|due| defined.contains(&due.index));
        let imaged: HashSet<PageName> = due.pages.iter().copied().collect();
        let is_due = |(page, at): &(PageName, u64)| self.indexes.iter().any(|due| due.needs(*page, *at));
        let others = packs.newest().map(|(page, at)| (page, at.pack)).filter(|(page, _)| !imaged.contains(page));
        let mut others: Vec<(PageName, u64)> = others.filter(is_due).collect();
        others.sort_unstable();
        for (page, at) in others {
            pause()?;
            // LOG-20.
            let image = self.store.page_image(page, self.at_ts).ok_or_else(|| Error::bug(format!("{page} is gone")))?;
            self.gather_if(&image, series, |due| due.needs(page, at))?;
        }
        self.write(series)?;
        Ok(self.indexes.into_iter().map(DueIndex::entry).collect())
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests;
