//! Adjacency in place, a page at a time: see [`AdjacencyRuns`].
//!
//! A table of lists is cut into *pieces*. Clean lists whose packed runs follow one another are one piece, and are
//! shown as slices of their block; lists with a tail or with ended edges are filtered into a buffer, and neighboring
//! ones are a piece of that. So a clean page is one piece a table, and a dirty vertex costs a copy of its own list and
//! one piece more.

use mangrove_graph::{AdjacencyRequest, AdjacencyRuns, Direction, EdgeId, LabelSetId, Result, VertexId};

use crate::adjacency::{AdjacencyTable, Block, List, Packed};
use crate::epoch::{self, Pin};
use crate::page::{PAGE_SLOTS, PageCore, VertexPage};
use crate::tablet::Tablet;
use crate::view::StoreView;

/// See [`mangrove_graph::GraphView::for_each_adjacency`].
pub(crate) fn for_each(
    view: &StoreView<'_>,
    request: &AdjacencyRequest,
    each: &mut dyn FnMut(&AdjacencyRuns<'_>) -> Result<()>,
) -> Result<()> {
    let mut walk = Walk { view, each, pieces: Pieces::default() };
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

/// The piece that is being put together.
#[derive(Default)]
struct Pieces {
    /// Offset of its first vertex.
    first: usize,
    /// Where the first run starts.
    start: u32,
    /// Where each run ends.
    ends: Vec<u32>,
    /// What filtered runs hold.
    neighbors: Vec<VertexId>,
    edges: Vec<EdgeId>,
}

/// Where the runs of the current piece lie.
#[derive(Clone, Copy)]
enum Source<'a> {
    /// There is no piece yet.
    Nowhere,
    Block(&'a Block),
    Buffer,
}

struct Walk<'v, 'e> {
    view: &'v StoreView<'v>,
    each: &'e mut dyn FnMut(&AdjacencyRuns<'_>) -> Result<()>,
    pieces: Pieces,
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
                if request.labels.takes(LabelSetId(label)) {
                    outcome = self.table(tablet, &page.core, table, first, &pin);
                }
                outcome.is_ok()
            });
            outcome?;
        }
        Ok(())
    }

    fn table(
        &mut self,
        tablet: &Tablet,
        core: &PageCore,
        table: &AdjacencyTable,
        first: VertexId,
        pin: &Pin,
    ) -> Result<()> {
        let mut source = Source::Nowhere;
        let mut page = first;
        for at in 0..core.used() {
            // The ids of a piece follow one another, so they are of one generation.
            if core.generation(at) != page.generation() {
                self.show(source, page)?;
                source = Source::Nowhere;
                page = first.with_generation(core.generation(at));
            }
            match table.packed(at, pin) {
                Packed::Nothing => self.pieces.extend_by_nothing(),
                Packed::Run(block, run) => {
                    let follows = matches!(source, Source::Block(b) if std::ptr::eq(b, block))
                        && self.pieces.ends.last() == Some(&(run.start as u32));
                    if !follows {
                        self.show(source, page)?;
                        self.pieces.begin(at, run.start as u32);
                        source = Source::Block(block);
                    }
                    self.pieces.ends.push(run.end as u32);
                }
                Packed::Header => {
                    let list = table.list(at, &tablet.lists, pin);
                    if list.is_clean() {
                        self.show(source, page)?;
                        source = Source::Nowhere;
                        self.show_long(&list, VertexId::from_bits(page.to_bits() + at as u64))?;
                        continue;
                    }
                    if !matches!(source, Source::Buffer) {
                        self.show(source, page)?;
                        self.pieces.begin(at, 0);
                        source = Source::Buffer;
                    }
                    self.pieces.filter(self.view, pin, &list);
                }
            }
        }
        self.show(source, page)
    }

    /// Shows a run that is too long for a descriptor: a piece by itself.
    fn show_long(&mut self, list: &List<'_>, vertex: VertexId) -> Result<()> {
        let end = u32::try_from(list.neighbors.len()).expect("a packed run has at most 2^32 - 1 edges");
        (self.each)(&AdjacencyRuns::new(vertex, 0, &[end], list.neighbors, list.edges))
    }

    /// Shows the piece that was put together, and forgets it.
    fn show(&mut self, source: Source<'_>, page: VertexId) -> Result<()> {
        let Pieces { first, start, ends, neighbors, edges } = &mut self.pieces;
        let first = VertexId::from_bits(page.to_bits() + *first as u64);
        let runs = match source {
            Source::Nowhere => return Ok(()),
            Source::Block(block) => AdjacencyRuns::new(first, *start, ends, &block.neighbors, &block.edges),
            Source::Buffer => AdjacencyRuns::new(first, 0, ends, neighbors, edges),
        };
        let outcome = (self.each)(&runs);
        ends.clear();
        neighbors.clear();
        edges.clear();
        outcome
    }
}

impl Pieces {
    fn begin(&mut self, first: usize, start: u32) {
        (self.first, self.start) = (first, start);
    }

    /// The next vertex has no edges. Before a piece has begun that need not be said.
    #[inline]
    fn extend_by_nothing(&mut self) {
        if let Some(&end) = self.ends.last() {
            self.ends.push(end);
        }
    }

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
