//! Adjacency in place, a page at a time, as [`AdjacencyRuns`].
//!
//! A table of lists is shown in *pieces*:
//!
//! - Clean lists whose packed runs are adjacent in memory are one piece, which consists of slices of their block.
//! - Lists with a tail or with ended edges are filtered into a buffer. Of their edges, those are checked that are named
//!   (STORE-15), and those in tails. Neighboring ones are one piece of that buffer.
//!
//! So a clean table is one piece; that of a table that is as a bulk load has filled it is known without a look at a descriptor (STORE-39). A vertex whose list is not clean costs a copy of the list, and at most two pieces
//! more. If slots of the page were used again, a piece has the generations of its vertices.
//!
//! The descriptors of a table are read once, at the beginning. The lists that they name stay readable under the pin and
//! while the walk's transaction runs (STORE-17). The walk may look at a list at any time before it ends, so all lists
//! with headers are known ahead. Headers, tails and the version words of the edges to be checked are loaded for many lists
//! at a time, in steps whose misses overlap ([`AdjacencyWalk::load`]).

use std::cell::Cell;
use std::cmp::Ordering;
use std::ops::Range;

use mangrove_graph::{AdjacencyRequest, AdjacencyRuns, Direction, EdgeId, LabelSetId, Result, VertexId};
use mangrove_reclaim::{Pin, epoch};

use smallvec::SmallVec;

use crate::adjacency::{AdjacencyTable, List, follow_runs, is_clean_run};
use crate::page::{PAGE_SLOTS, PageCore, Tablet, VertexPage};
use crate::read::filtered::FilteredRuns;
use crate::read::view::StoreView;

/// How many lists with headers are loaded together. They stay in the cache until they are read.
const AHEAD_LISTS: usize = 64;

/// Cells that a thread keeps memory for, for its next walk: 16 bytes each, and 24 more if they are checked.
const KEPT_CELLS_MAX: usize = 1 << 18;

thread_local! {
    /// What the last walk of this thread has left. A projection is a walk for each page, and large buffers would be made anew, and
    /// zeroed by the kernel, for each of them.
    static KEPT: Cell<(TableBuffers, FilteredRuns)> = Cell::default();
}

/// Shows the adjacency of all vertices of a request, for [`mangrove_graph::GraphView::for_each_adjacency`].
pub(crate) fn for_each(
    view: &StoreView<'_>,
    request: &AdjacencyRequest,
    each: &mut dyn FnMut(&AdjacencyRuns<'_>) -> Result<()>,
) -> Result<()> {
    let (buffers, filtered) = KEPT.take();
    let mut walk = AdjacencyWalk { view, each, wants_edges: request.edges, buffers, filtered };
    let outcome = walk.all(request);
    if walk.filtered.capacity() <= KEPT_CELLS_MAX {
        // A walk that its reader has ended may leave runs.
        walk.filtered.clear();
        KEPT.set((walk.buffers, walk.filtered));
    }
    outcome
}

/// Lists with headers: the slot of each, and its edges that were checked, as a range of [`FilteredRuns`].
type Loaded<'p> = SmallVec<[(usize, List<'p>, Range<usize>); AHEAD_LISTS]>;

/// One call of [`for_each`].
struct AdjacencyWalk<'v, 'e> {
    view: &'v StoreView<'v>,
    each: &'e mut dyn FnMut(&AdjacencyRuns<'_>) -> Result<()>,
    wants_edges: bool,
    buffers: TableBuffers,
    filtered: FilteredRuns,
}

/// Buffers that are used for one table after another.
#[derive(Default)]
struct TableBuffers {
    /// The descriptors of the table.
    words: Vec<u64>,
    /// The ends of the runs of a piece.
    ends: Vec<u32>,
    /// The generations of the page's slots; empty if all are in their first.
    generations: Vec<u16>,
}

/// The lists of a table that a walk shows.
#[derive(Clone, Copy)]
struct TableLists<'a> {
    tablet: &'a Tablet,
    table: &'a AdjacencyTable,
    generations: &'a [u16],
    /// The id of the page's first slot in its first generation.
    first: VertexId,
    wants_edges: bool,
    pin: &'a Pin,
}

impl<'a> TableLists<'a> {
    /// The runs of vertices from an offset on, as [`AdjacencyRuns::new`] takes them, without edges if the reader wants none.
    fn runs<'r>(
        &self,
        first: usize,
        start: u32,
        ends: &'r [u32],
        neighbors: &'r [VertexId],
        edges: &'r [EdgeId],
    ) -> AdjacencyRuns<'r>
    where
        'a: 'r,
    {
        let of_first = VertexId::from_bits(self.first.to_bits() + first as u64);
        let edges = if self.wants_edges { edges } else { &[] };
        let runs = AdjacencyRuns::new(of_first, start, ends, neighbors, edges);
        if self.generations.is_empty() { runs } else { runs.of_generations(&self.generations[first..]) }
    }

    fn list(&self, word: u64) -> List<'a> {
        self.table.list_of(word, &self.tablet.lists, self.pin)
    }
}

impl AdjacencyWalk<'_, '_> {
    fn all(&mut self, request: &AdjacencyRequest) -> Result<()> {
        let (from, until) = (request.pages, request.pages.until);
        let tablets = self.view.store.tablets.iter().enumerate().skip(from.tablet as usize);
        for (at, tablet) in tablets.filter(|(_, tablet)| request.share.takes(tablet.id)) {
            let first = if at == from.tablet as usize { from.page as usize } else { 0 };
            let end = match at.cmp(&(until.0 as usize)) {
                Ordering::Less => tablet.vertices.count(),
                Ordering::Equal => tablet.vertices.count().min(until.1 as usize),
                Ordering::Greater => return Ok(()),
            };
            for number in first..end {
                if let Some(page) = tablet.vertices.get(number).filter(|page| request.vertices.takes(page.core.label)) {
                    let first = VertexId::new(tablet.id, number as u64 * PAGE_SLOTS);
                    self.page(request, tablet, page, first)?;
                }
            }
        }
        Ok(())
    }

    fn page(&mut self, request: &AdjacencyRequest, tablet: &Tablet, page: &VertexPage, first: VertexId) -> Result<()> {
        // One pin for each page, so that blocks that compaction replaces need not wait for the whole walk.
        let pin = epoch::pin();
        let is_asked = |way: &Direction| request.direction == Direction::Both || request.direction == *way;
        let ways = [Direction::Out, Direction::In].into_iter().filter(is_asked);
        let is_taken = |label| request.labels.takes(LabelSetId(label));
        for way in ways.clone() {
            page.tables(way).each_while(|_, label, table| {
                if is_taken(label) {
                    table.prefetch_first(&pin);
                }
                true
            });
        }
        for way in ways {
            let mut outcome = Ok(());
            page.tables(way).each_while(|_, label, table| {
                if is_taken(label) && !table.is_empty() {
                    outcome = self.table(tablet, &page.core, table, first, &pin);
                }
                outcome.is_ok()
            });
            outcome?;
        }
        Ok(())
    }

    /// Shows the lists of a table.
    fn table(
        &mut self,
        tablet: &Tablet,
        core: &PageCore,
        table: &AdjacencyTable,
        first: VertexId,
        pin: &Pin,
    ) -> Result<()> {
        let mut buffers = std::mem::take(&mut self.buffers);
        let TableBuffers { words, ends, generations } = &mut buffers;
        let filled = table.filled(pin);
        words.clear();
        if filled.is_none() {
            table.append_words(core.used(), words, pin);
            // The reader reads the block from here on. To look at the descriptors takes as long as to load its beginning.
            if let Some(&word) = words.iter().find(|word| **word != 0 && is_clean_run(**word)) {
                table.prefetch_packed(word, pin);
            }
        }
        // After the lists were found: one that is not empty belongs to the vertex that has the slot under this pin.
        core.generations_of(filled.map_or(words.len(), |(_, ends)| ends.len()), generations);
        ends.resize(PAGE_SLOTS as usize, 0);
        let lists = TableLists { tablet, table, generations, first, wants_edges: self.wants_edges, pin };
        let outcome = match filled {
            Some((block, ends)) => (self.each)(&lists.runs(0, 0, ends, &block.neighbors, &block.edges)),
            None => self.pieces_of(lists, words, ends),
        };
        self.buffers = buffers;
        outcome
    }

    /// Shows the lists of these descriptors, in pieces.
    fn pieces_of(&mut self, lists: TableLists<'_>, words: &[u64], ends: &mut [u32]) -> Result<()> {
        // Lists with headers, which were loaded together. Those before `next` were shown.
        let (mut loaded, mut next) = (Loaded::new(), 0);
        let mut at = 0;
        while let Some(&word) = words.get(at) {
            if !is_clean_run(word) {
                if next == loaded.len() {
                    self.load(&lists, words, at, &mut loaded);
                    next = 0;
                }
                self.filtered.first = at;
                while let Some((list, checks)) =
                    loaded.get(next).filter(|of| of.0 == at).map(|of| (&of.1, of.2.clone()))
                {
                    if list.is_clean() {
                        // The run of a long list is a piece of its own.
                        self.show_filtered(&lists)?;
                        self.filtered.first = at + 1;
                        let end = u32::try_from(list.neighbors.len()).expect("a packed run has at most 2^32 - 1 edges");
                        (self.each)(&lists.runs(at, 0, &[end], list.neighbors, list.edges))?;
                    } else {
                        self.filtered.add(list, checks, self.wants_edges);
                    }
                    (at, next) = (at + 1, next + 1);
                }
                self.show_filtered(&lists)?;
            } else if word == 0 {
                // Empty lists need not be shown, except inside a piece.
                at += 1;
            } else {
                let (start, count) = follow_runs(&words[at..], ends);
                if let Some(block) = lists.table.block_of(word, lists.pin) {
                    (self.each)(&lists.runs(at, start, &ends[..count], &block.neighbors, &block.edges))?;
                }
                at += count;
            }
        }
        Ok(())
    }

    /// Shows the filtered lists, and empties the buffer.
    fn show_filtered(&mut self, lists: &TableLists<'_>) -> Result<()> {
        let FilteredRuns { first, ends, neighbors, edges, .. } = &self.filtered;
        if ends.is_empty() {
            return Ok(());
        }
        let outcome = (self.each)(&lists.runs(*first, 0, ends, neighbors, edges));
        self.filtered.clear();
        outcome
    }

    /// Loads the next lists that are no clean runs, and checks their edges.
    fn load<'p>(&mut self, lists: &TableLists<'p>, words: &[u64], from: usize, loaded: &mut Loaded<'p>) {
        loaded.clear();
        let headers: SmallVec<[(usize, u64); AHEAD_LISTS]> = (from..words.len())
            .map(|at| (at, words[at]))
            .filter(|(_, word)| !is_clean_run(*word))
            .inspect(|(_, word)| lists.tablet.lists.prefetch(*word, lists.pin))
            .take(AHEAD_LISTS)
            .collect();
        loaded.extend(headers.iter().map(|&(at, word)| (at, lists.list(word), 0..0)));
        loaded.iter().for_each(|(_, list, _)| list.prefetch());
        self.filtered.begin_checks();
        loaded.iter_mut().for_each(|(_, list, checks)| *checks = self.filtered.add_checks(list));
        loaded.iter().for_each(|(_, list, checks)| self.filtered.find_edges(list, checks.clone()));
        self.filtered.check(self.view, lists.pin);
    }
}
