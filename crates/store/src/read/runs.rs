//! Adjacency in place, a page at a time, as [`AdjacencyRuns`].
//!
//! A table of lists is shown in *pieces*:
//!
//! - Clean lists whose packed runs are adjacent in memory are one piece, which consists of slices of their block.
//! - Lists with a tail or with ended edges are filtered into a buffer. Of their edges, those are checked that may have ended
//!   (STORE-15), and those in tails. Neighboring ones are one piece of that buffer.
//!
//! So a clean table is one piece. A vertex whose list is not clean costs a copy of the list, and at most two pieces
//! more. If slots of the page were used again, a piece has the generations of its vertices.
//!
//! The descriptors of a table are read once, at the beginning. The lists that they name stay readable under the pin and
//! while the walk's transaction runs (STORE-17). The walk may look at a list at any time before it ends, so all lists
//! with headers are known ahead. Headers, tails and the version words of the edges in the tails are loaded for
//! many lists at a time, in steps whose misses overlap ([`AdjacencyWalk::load_ahead`]).

use std::cmp::Ordering;
use std::ops::Range;

use mangrove_graph::{AdjacencyRequest, AdjacencyRuns, Direction, EdgeId, LabelSetId, Result, VertexId};
use mangrove_reclaim::{Pin, epoch};

use smallvec::SmallVec;

use crate::adjacency::{AdjacencyTable, Dirty, List, Suspects, follow_runs, is_clean_run};
use crate::page::{PAGE_SLOTS, PageCore, Tablet, VertexPage};
use crate::read::view::StoreView;

/// How many lists with headers are loaded together. They stay in the cache until they are read.
const AHEAD_LISTS: usize = 64;
/// How many cells of each tail are loaded ahead.
const AHEAD_CELLS: usize = 8;

/// Shows the adjacency of all vertices of a request, for [`mangrove_graph::GraphView::for_each_adjacency`].
pub(crate) fn for_each(
    view: &StoreView<'_>,
    request: &AdjacencyRequest,
    each: &mut dyn FnMut(&AdjacencyRuns<'_>) -> Result<()>,
) -> Result<()> {
    let mut walk = AdjacencyWalk { view, each, buffers: TableBuffers::default(), filtered: FilteredRuns::default() };
    let (from, until) = (request.pages, request.pages.until);
    let tablets = view.store.tablets.iter().enumerate().skip(from.tablet as usize);
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
                walk.page(request, tablet, page, first)?;
            }
        }
    }
    Ok(())
}

/// The piece of filtered lists that is being made.
#[derive(Default)]
struct FilteredRuns {
    /// The offset of its first vertex on the page.
    first: usize,
    /// The end of each vertex's run in `neighbors`.
    ends: Vec<u32>,
    /// The neighbors of all runs.
    neighbors: Vec<VertexId>,
    /// Parallel to `neighbors`.
    edges: Vec<EdgeId>,
    /// Positions in a run of the edges that must be checked.
    suspects: Vec<u32>,
}

/// One call of [`for_each`].
struct AdjacencyWalk<'v, 'e> {
    view: &'v StoreView<'v>,
    each: &'e mut dyn FnMut(&AdjacencyRuns<'_>) -> Result<()>,
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
    pin: &'a Pin,
}

impl<'a> TableLists<'a> {
    /// The runs of vertices from an offset on, as [`AdjacencyRuns::new`] takes them.
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
        let runs = AdjacencyRuns::new(of_first, start, ends, neighbors, edges);
        if self.generations.is_empty() { runs } else { runs.of_generations(&self.generations[first..]) }
    }

    fn list(&self, at: usize, word: u64) -> List<'a> {
        self.table.list_of(at, word, &self.tablet.lists, self.pin)
    }
}

impl AdjacencyWalk<'_, '_> {
    fn page(&mut self, request: &AdjacencyRequest, tablet: &Tablet, page: &VertexPage, first: VertexId) -> Result<()> {
        // One pin for each page, so that blocks that compaction replaces need not wait for the whole walk.
        let pin = epoch::pin();
        for way in [Direction::Out, Direction::In] {
            if request.direction != Direction::Both && request.direction != way {
                continue;
            }
            let mut outcome = Ok(());
            page.tables(way).each_while(|_, label, table| {
                if request.labels.takes(LabelSetId(label)) && !table.is_empty() {
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
        words.clear();
        table.append_words(core.used(), words, pin);
        // After the words: a list that is not empty belongs to the vertex that has the slot under this pin.
        core.generations_of(words.len(), generations);
        ends.resize(PAGE_SLOTS as usize, 0);
        let outcome = self.pieces_of(TableLists { tablet, table, generations, first, pin }, words, ends);
        self.buffers = buffers;
        outcome
    }

    /// Shows the lists of these descriptors, in pieces.
    fn pieces_of(&mut self, lists: TableLists<'_>, words: &[u64], ends: &mut [u32]) -> Result<()> {
        // Lists with headers before slot `loaded` have been loaded ahead.
        let (mut at, mut loaded) = (0, 0);
        while let Some(&word) = words.get(at) {
            if !is_clean_run(word) {
                if at >= loaded {
                    loaded = self.load_ahead(&lists, words, at);
                }
                at = self.headers(&lists, words, at..loaded)?;
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

    /// Shows the lists that are no clean runs, from the beginning of a range to the first clean run. Returns the slot
    /// of that run, or the end of the range.
    fn headers(&mut self, lists: &TableLists<'_>, words: &[u64], range: Range<usize>) -> Result<usize> {
        self.filtered.first = range.start;
        for at in range.clone() {
            if is_clean_run(words[at]) {
                self.show_filtered(lists)?;
                return Ok(at);
            }
            let list = lists.list(at, words[at]);
            if list.is_clean() {
                // The run of a long list is a piece of its own.
                self.show_filtered(lists)?;
                self.filtered.first = at + 1;
                let end = u32::try_from(list.neighbors.len()).expect("a packed run has at most 2^32 - 1 edges");
                (self.each)(&lists.runs(at, 0, &[end], list.neighbors, list.edges))?;
            } else {
                self.filtered.filter(self.view, lists.pin, &list);
            }
        }
        self.show_filtered(lists)?;
        Ok(range.end)
    }

    /// Shows the filtered lists, and empties the buffer.
    fn show_filtered(&mut self, lists: &TableLists<'_>) -> Result<()> {
        let FilteredRuns { first, ends, neighbors, edges, .. } = &mut self.filtered;
        if ends.is_empty() {
            return Ok(());
        }
        let outcome = (self.each)(&lists.runs(*first, 0, ends, neighbors, edges));
        ends.clear();
        neighbors.clear();
        edges.clear();
        outcome
    }

    /// Starts loading the next lists that are no clean runs, with their headers, tails and version words. Returns the
    /// slot up to which it has done so.
    fn load_ahead(&self, lists: &TableLists<'_>, words: &[u64], from: usize) -> usize {
        let storage = &lists.tablet.lists;
        let mut headers: SmallVec<[(usize, u64); AHEAD_LISTS]> = SmallVec::new();
        let mut at = from;
        while at < words.len() && headers.len() < AHEAD_LISTS {
            if !is_clean_run(words[at]) {
                storage.prefetch(words[at], lists.pin);
                headers.push((at, words[at]));
            }
            at += 1;
        }
        if let [_, _, ..] = headers[..] {
            let tails: SmallVec<[List<'_>; AHEAD_LISTS]> =
                headers.iter().map(|&(at, word)| lists.list(at, word)).collect();
            tails.iter().for_each(List::prefetch);
            let edges = || tails.iter().flat_map(|list| list.tail(0).take(AHEAD_CELLS));
            edges().filter_map(|(_, _, edge)| self.view.store.edge_core(edge)).for_each(PageCore::prefetch);
            for (_, _, edge) in edges() {
                if let Some(core) = self.view.store.edge_core(edge) {
                    core.prefetch_version(lists.pin, edge.offset());
                }
            }
        }
        at
    }
}

impl FilteredRuns {
    /// Adds the visible edges of a list, as the run of the next vertex.
    fn filter(&mut self, view: &StoreView<'_>, pin: &Pin, list: &List<'_>) {
        match list.dirty {
            Dirty::No => self.take_run(list, 0..list.edges.len()),
            Dirty::Suspects(suspects) => self.take_but_ended(view, pin, list, &suspects),
            Dirty::Whole => self.take_visible(view, pin, list.packed(0)),
        }
        self.take_visible(view, pin, list.checked_tail(0));
        self.ends.push(self.neighbors.len() as u32);
    }

    /// Takes a part of the packed run as it is.
    fn take_run(&mut self, list: &List<'_>, part: Range<usize>) {
        self.neighbors.extend_from_slice(&list.neighbors[part.clone()]);
        self.edges.extend_from_slice(&list.edges[part]);
    }

    /// Takes the packed run without the suspects that are not visible.
    fn take_but_ended(&mut self, view: &StoreView<'_>, pin: &Pin, list: &List<'_>, suspects: &Suspects<'_>) {
        let mut checked = std::mem::take(&mut self.suspects);
        let mut taken = 0;
        let positions = list.edges.iter().enumerate().filter(|(_, edge)| suspects.has(**edge));
        let mut positions = positions.map(|(at, _)| at as u32);
        loop {
            checked.clear();
            checked.extend(positions.by_ref().take(AHEAD_LISTS));
            if checked.is_empty() {
                break;
            }
            let edge = |at: &u32| list.edges[*at as usize];
            // Each step for all of them, so that their misses overlap.
            let core = |at: &u32| view.store.edge_core(edge(at));
            checked.iter().filter_map(core).for_each(PageCore::prefetch);
            checked.iter().for_each(|at| {
                if let Some(core) = core(at) {
                    core.prefetch_version(pin, edge(at).offset());
                }
            });
            for at in &checked {
                if !view.sees_edge(pin, edge(at)) {
                    self.take_run(list, taken..*at as usize);
                    taken = *at as usize + 1;
                }
            }
        }
        self.take_run(list, taken..list.edges.len());
        self.suspects = checked;
    }

    fn take_visible(&mut self, view: &StoreView<'_>, pin: &Pin, cells: impl Iterator<Item = (VertexId, EdgeId, bool)>) {
        view.each_visible(pin, cells, |_, neighbor, edge| {
            self.neighbors.push(neighbor);
            self.edges.push(edge);
            true
        });
    }
}
