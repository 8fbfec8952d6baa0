//! Packing the adjacency of a bulk load, or of a restored graph, into blocks.
//!
//! This is a counting sort for each direction and edge label set:
//!
//! 1. Count the edges of each vertex.
//! 2. Lay out the runs page by page, in the order of the vertices.
//! 3. Put each edge into its run, and sort each run by neighbor.
//! 4. Cut the array of all runs into one block for each page.
//!
//! Two threads pack the two directions. The pages are not published yet, so no thread but these two uses them.
//!
//! The caller may end the packing: its thread asks before each page. Then some tables are missing, and the pages can only be dropped,
//! after [`give_up_lists`].

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use mangrove_graph::{Direction, EdgeId, Error, ErrorKind, LabelSetId, Result, VertexId};
use mangrove_reclaim::epoch;

use crate::adjacency::Block;
use crate::connections::{Facts, ListKind};
use crate::load::staged::StagedPages;
use crate::page::{EdgePage, PAGE_SLOTS, VertexPage};
use crate::store::Store;

const SLOTS: usize = PAGE_SLOTS as usize;

/// Makes the adjacency tables of all staged pages of vertices. The ends of all edges are on these pages. An error of `check`, which
/// the calling thread asks before each page, ends the work.
pub(crate) fn pack(
    store: &Store,
    vertices: &StagedPages<VertexPage>,
    edges: &StagedPages<EdgePage>,
    check: &mut dyn FnMut() -> Result<()>,
) -> Result<()> {
    let mut labels: BTreeMap<LabelSetId, Vec<usize>> = BTreeMap::new();
    for (index, (_, _, page)) in edges.pages.iter().enumerate() {
        labels.entry(page.core.label).or_default().push(index);
    }
    let one_way = |direction, check: &mut dyn FnMut() -> Result<()>| {
        let mut touched = TouchedPages::of(vertices.pages.len());
        for (&label, pages) in &labels {
            Packer { store, vertices, edges, pages, direction, label }.run(&mut touched, check)?;
            touched.clear();
        }
        Ok(())
    };
    if cfg!(feature = "model") {
        // The model checker has no control over threads of the standard library.
        return one_way(Direction::Out, check).and_then(|()| one_way(Direction::In, check));
    }
    // Relaxed: it only ends the other thread, whose work is dropped then.
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let incoming = scope.spawn(|| {
            one_way(Direction::In, &mut || match is_over.load(Ordering::Relaxed) {
                false => Ok(()),
                true => Err(Error::new(ErrorKind::Cancelled, "the other direction has ended with an error")),
            })
        });
        // This error comes first: the other thread's only says that there is one.
        one_way(Direction::Out, check).inspect_err(|_| is_over.store(true, Ordering::Relaxed))?;
        incoming.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Gives back what the lists of staged pages have in the store, before the pages are dropped: their headers, and the facts about
/// them. The store has no element.
pub(crate) fn give_up_lists(store: &Store, vertices: &StagedPages<VertexPage>) {
    for (tablet, _, page) in &vertices.pages {
        let tablet = store.tablet(*tablet).expect("a page is staged only for a tablet that exists");
        let tables = [Direction::Out, Direction::In].map(|direction| page.tables(direction));
        for (_, table) in tables.into_iter().flat_map(|tables| tables.iter()) {
            table.give_up_headers(&tablet.lists);
        }
    }
    store.connections.forget();
}

/// The pages of vertices that have edges of one label set, numbered in the order in which they were met. So a label set
/// costs no more than its own edges and pages, however large the graph is.
struct TouchedPages {
    /// The number of each page, or `NONE`.
    numbers: Vec<u32>,
    /// The page of each number.
    pages: Vec<usize>,
}

impl TouchedPages {
    const NONE: u32 = u32::MAX;

    /// No page yet, of this many pages.
    fn of(pages: usize) -> Self {
        TouchedPages { numbers: vec![Self::NONE; pages], pages: Vec::new() }
    }

    /// The number of a page, which it gets now if it has none.
    fn number(&mut self, page: usize) -> usize {
        let number = &mut self.numbers[page];
        if *number == Self::NONE {
            *number = self.pages.len() as u32;
            self.pages.push(page);
        }
        *number as usize
    }

    /// Forgets all numbers.
    fn clear(&mut self) {
        self.pages.drain(..).for_each(|page| self.numbers[page] = Self::NONE);
    }
}

/// Packs the lists of one direction and edge label set.
struct Packer<'a> {
    store: &'a Store,
    vertices: &'a StagedPages<VertexPage>,
    edges: &'a StagedPages<EdgePage>,
    /// The indexes of the label set's pages among the staged pages of edges.
    pages: &'a [usize],
    direction: Direction,
    label: LabelSetId,
}

impl Packer<'_> {
    /// Packs the lists. `touched` has no page yet.
    fn run(&self, touched: &mut TouchedPages, check: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        // By page number and slot: the length of the run.
        let mut counts: Vec<u32> = Vec::new();
        self.each_edge(check, |index, at, _, _| {
            let number = touched.number(index);
            counts.resize(touched.pages.len() * SLOTS, 0);
            counts[number * SLOTS + at] += 1;
        })?;
        // By page number and slot: where the next edge of the run goes.
        let mut next: Vec<usize> = Vec::with_capacity(counts.len());
        let mut total = 0;
        for &count in &counts {
            next.push(total);
            total += count as usize;
        }
        let mut cells = vec![(VertexId::from_bits(0), EdgeId::from_bits(0)); total];
        self.each_edge(check, |index, at, neighbor, edge| {
            let next = &mut next[touched.number(index) * SLOTS + at];
            cells[*next] = (neighbor, edge);
            *next += 1;
        })?;
        let mut end = 0;
        for (&index, lengths) in touched.pages.iter().zip(counts.chunks_exact(SLOTS)) {
            check()?;
            let start = end;
            end += lengths.iter().map(|&len| len as usize).sum::<usize>();
            self.pack_page(index, lengths, &mut cells[start..end]);
        }
        Ok(())
    }

    /// Calls `each` with every edge: the index of the page and the offset of the vertex whose list it goes to, the
    /// vertex at its other end, and its id.
    fn each_edge(
        &self,
        check: &mut dyn FnMut() -> Result<()>,
        mut each: impl FnMut(usize, usize, VertexId, EdgeId),
    ) -> Result<()> {
        let pin = epoch::pin();
        for (tablet, number, page) in self.pages.iter().map(|index| &self.edges.pages[*index]) {
            check()?;
            for at in 0..page.core.used() {
                if page.core.version(at).0 == crate::version::NEVER {
                    continue;
                }
                let (source, target) = page.ends(at, &pin);
                let (owner, neighbor) = match self.direction {
                    Direction::In => (target, source),
                    Direction::Out | Direction::Both => (source, target),
                };
                let index =
                    self.vertices.index_of(owner.tablet(), owner.page()).expect("ends were checked when loaded");
                let edge = EdgeId::new(*tablet, page.core.slot_number(u64::from(*number) * PAGE_SLOTS, at));
                each(index, owner.offset(), neighbor, edge);
            }
        }
        Ok(())
    }

    /// The facts about the lists of one page, given as for [`Packer::pack_page`].
    fn facts(&self, lengths: &[u32], cells: &[(VertexId, EdgeId)]) -> Facts {
        let is_functional = lengths.iter().all(|&len| len <= 1);
        let page_of = |vertex: VertexId| (vertex.tablet(), vertex.page());
        // Neighbors follow each other by page in a run.
        cells.chunk_by(|(a, _), (b, _)| page_of(*a) == page_of(*b)).fold(Facts::default(), |facts, of_page| {
            let (tablet, page) = page_of(of_page[0].0);
            let index = self.vertices.index_of(tablet, page).expect("ends were checked when loaded");
            facts.and(Facts::of(self.vertices.pages[index].2.core.label, !is_functional))
        })
    }

    /// Packs the lists of one page. `lengths` has one entry for each slot, and `cells` their edges, run after run.
    fn pack_page(&self, index: usize, lengths: &[u32], cells: &mut [(VertexId, EdgeId)]) {
        for run in runs(lengths) {
            cells[run].sort_unstable();
        }
        let block = Block::of(cells);
        let (tablet, _, page) = &self.vertices.pages[index];
        let tablet = self.store.tablet(*tablet).expect("a page is staged only for a tablet that exists");
        let table = page.table_or_create(self.direction, self.label, &self.store.sizes, &self.store.memory);
        // Before the page is published (STORE-36).
        let kind = ListKind { vertices: page.core.label, direction: self.direction, edges: self.label };
        self.store.connections.add_and_note(kind, self.facts(lengths, cells), &table.noted);
        table.set_block(index, block, lengths, &self.store.sizes, &tablet.lists, self.store.space());
    }
}

/// The ranges of runs of these lengths.
fn runs(lengths: &[u32]) -> impl Iterator<Item = Range<usize>> {
    let mut end = 0;
    lengths.iter().map(move |&len| {
        let start = end;
        end += len as usize;
        start..end
    })
}
