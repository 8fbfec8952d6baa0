//! Adjacency in place, a page at a time: see [`AdjacencyRuns`].
//!
//! A table of lists is cut into *pieces*. Clean lists whose packed runs follow one another are one piece, and are
//! shown as slices of their block; lists with a tail or with ended edges are filtered into a buffer, and neighboring
//! ones are a piece of that. So a clean page is one piece a table, and a dirty vertex costs a copy of its own list and
//! one piece more.
//!
//! Vertices of a page whose slots were used again are of several generations, which a piece carries with it.
//!
//! The descriptors of a table are read once, all at the beginning. What they name stays readable under the pin and while
//! the walk's transaction lives (`compaction`), and it makes no difference when before its end a walk looks at a list.
//! So lists with headers are known before any of them is needed: header, tail and the version words of the tail's edges
//! are loaded for all of them in steps, whose misses overlap (`load_ahead`).

use std::ops::Range;

use mangrove_graph::{AdjacencyRequest, AdjacencyRuns, Direction, EdgeId, LabelSetId, Result, VertexId};
use mangrove_reclaim::{Pin, epoch};

use smallvec::SmallVec;

use crate::adjacency::{AdjacencyTable, List, follow_runs, is_clean_run};
use crate::page::{PAGE_SLOTS, PageCore, Tablet, VertexPage};
use crate::read::view::StoreView;

/// Lists with headers that are loaded together, and cells of each: what stays in the cache until it is read.
const AHEAD_LISTS: usize = 64;
const AHEAD_CELLS: usize = 8;

/// See [`mangrove_graph::GraphView::for_each_adjacency`].
pub(crate) fn for_each(
    view: &StoreView<'_>,
    request: &AdjacencyRequest,
    each: &mut dyn FnMut(&AdjacencyRuns<'_>) -> Result<()>,
) -> Result<()> {
    let mut walk = Walk { view, each, scratch: Scratch::default(), pieces: Pieces::default() };
    for tablet in view.store.tablets.iter().filter(|tablet| request.share.takes(tablet.id)) {
        for number in 0..tablet.vertices.count() {
            if let Some(page) = tablet.vertices.get(number).filter(|page| request.vertices.takes(page.core.label)) {
                let first = VertexId::new(tablet.id, number as u64 * PAGE_SLOTS);
                walk.page(request, tablet, page, first)?;
            }
        }
    }
    Ok(())
}

/// The piece of filtered lists that is being put together.
#[derive(Default)]
struct Pieces {
    /// Offset of its first vertex.
    first: usize,
    /// Where each run ends.
    ends: Vec<u32>,
    /// What the runs hold.
    neighbors: Vec<VertexId>,
    edges: Vec<EdgeId>,
}

struct Walk<'v, 'e> {
    view: &'v StoreView<'v>,
    each: &'e mut dyn FnMut(&AdjacencyRuns<'_>) -> Result<()>,
    scratch: Scratch,
    pieces: Pieces,
}

/// Memory to use for a table.
#[derive(Default)]
struct Scratch {
    /// Its descriptors.
    words: Vec<u64>,
    /// Where the runs of a piece end.
    ends: Vec<u32>,
    /// The generations of the page's slots, if there is one above the first.
    generations: Vec<u16>,
}

/// A table under a walk.
#[derive(Clone, Copy)]
struct Lists<'a> {
    tablet: &'a Tablet,
    table: &'a AdjacencyTable,
    generations: &'a [u16],
    /// The page's first slot in its first generation.
    first: VertexId,
    pin: &'a Pin,
}

impl<'a> Lists<'a> {
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

    fn list(&self, word: u64) -> List<'a> {
        self.table.list_of(word, &self.tablet.lists, self.pin)
    }
}

impl Walk<'_, '_> {
    fn page(&mut self, request: &AdjacencyRequest, tablet: &Tablet, page: &VertexPage, first: VertexId) -> Result<()> {
        // A page is a quantum: blocks that compaction replaces need not wait for the whole walk.
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
        let mut scratch = std::mem::take(&mut self.scratch);
        let Scratch { words, ends, generations } = &mut scratch;
        words.clear();
        table.append_words(core.used(), words, pin);
        // After the words: a list that has one belongs to the vertex that its slot has under this pin.
        core.generations_of(words.len(), generations);
        ends.resize(PAGE_SLOTS as usize, 0);
        let outcome = self.pieces_of(Lists { tablet, table, generations, first, pin }, words, ends);
        self.scratch = scratch;
        outcome
    }

    fn pieces_of(&mut self, lists: Lists<'_>, words: &[u64], ends: &mut [u32]) -> Result<()> {
        // Up to here lists with headers have been loaded ahead.
        let (mut at, mut loaded) = (0, 0);
        while let Some(&word) = words.get(at) {
            if !is_clean_run(word) {
                if at >= loaded {
                    loaded = self.load_ahead(&lists, words, at);
                }
                at = self.headers(&lists, words, at..loaded)?;
            } else if word == 0 {
                // Before a piece has begun that need not be said.
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

    /// Shows the lists with headers that follow one another from the beginning of a range; where they end.
    fn headers(&mut self, lists: &Lists<'_>, words: &[u64], range: Range<usize>) -> Result<usize> {
        self.pieces.first = range.start;
        for at in range.clone() {
            if is_clean_run(words[at]) {
                self.show_filtered(lists)?;
                return Ok(at);
            }
            let list = lists.list(words[at]);
            if list.is_clean() {
                // A run that is too long for a descriptor: a piece by itself.
                self.show_filtered(lists)?;
                self.pieces.first = at + 1;
                let end = u32::try_from(list.neighbors.len()).expect("a packed run has at most 2^32 - 1 edges");
                (self.each)(&lists.runs(at, 0, &[end], list.neighbors, list.edges))?;
            } else {
                self.pieces.filter(self.view, lists.pin, &list);
            }
        }
        self.show_filtered(lists)?;
        Ok(range.end)
    }

    /// Shows the filtered lists there are, and forgets them.
    fn show_filtered(&mut self, lists: &Lists<'_>) -> Result<()> {
        let Pieces { first, ends, neighbors, edges } = &mut self.pieces;
        if ends.is_empty() {
            return Ok(());
        }
        let outcome = (self.each)(&lists.runs(*first, 0, ends, neighbors, edges));
        ends.clear();
        neighbors.clear();
        edges.clear();
        outcome
    }

    /// Starts loading what the next lists with headers are made of; up to where it has.
    fn load_ahead(&self, lists: &Lists<'_>, words: &[u64], from: usize) -> usize {
        let storage = &lists.tablet.lists;
        let mut headers: SmallVec<[u64; AHEAD_LISTS]> = SmallVec::new();
        let mut at = from;
        while at < words.len() && headers.len() < AHEAD_LISTS {
            if !is_clean_run(words[at]) {
                storage.prefetch(words[at], lists.pin);
                headers.push(words[at]);
            }
            at += 1;
        }
        if let [_, _, ..] = headers[..] {
            let tails: SmallVec<[List<'_>; AHEAD_LISTS]> = headers.iter().map(|word| lists.list(*word)).collect();
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

impl Pieces {
    /// The next vertex has the visible edges of a list.
    fn filter(&mut self, view: &StoreView<'_>, pin: &Pin, list: &List<'_>) {
        if list.dirty {
            self.take_visible(view, pin, list.cells());
        } else {
            self.neighbors.extend_from_slice(list.neighbors);
            self.edges.extend_from_slice(list.edges);
            self.take_visible(view, pin, list.tail(0).map(|(_, neighbor, edge)| (neighbor, edge)));
        }
        self.ends.push(self.neighbors.len() as u32);
    }

    fn take_visible(&mut self, view: &StoreView<'_>, pin: &Pin, cells: impl Iterator<Item = (VertexId, EdgeId)>) {
        view.each_visible(pin, cells, |_, neighbor, edge| {
            self.neighbors.push(neighbor);
            self.edges.push(edge);
            true
        });
    }
}
