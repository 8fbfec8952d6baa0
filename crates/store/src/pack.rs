//! Packing the adjacency of a bulk load, or of a restored graph, into blocks.
//!
//! A counting sort, once for each direction and edge label set: count the edges of each vertex, lay the runs
//! out in the order of the vertices, drop each edge into its run, sort each run by neighbor, and cut the
//! whole into one block a page. The two directions are packed by two threads.

use std::collections::BTreeSet;
use std::ops::Range;

use mangrove_graph::{Direction, EdgeId, LabelSetId, VertexId};

use crate::adjacency::Block;
use crate::bulk::Staged;
use crate::edge_page::EdgePage;
use crate::epoch;
use crate::page::{PAGE_SLOTS, VertexPage};
use crate::store::Store;

const SLOTS: usize = PAGE_SLOTS as usize;

/// Gives every staged page of vertices its adjacency tables.
pub(crate) fn pack(store: &Store, vertices: &Staged<VertexPage>, edges: &Staged<EdgePage>) {
    let labels: BTreeSet<LabelSetId> = edges.pages.iter().map(|(_, _, page)| page.core.label).collect();
    let one_way = |direction| {
        for &label in &labels {
            Packer { store, vertices, edges, direction, label }.run();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| one_way(Direction::In));
        one_way(Direction::Out);
    });
}

struct Packer<'a> {
    store: &'a Store,
    vertices: &'a Staged<VertexPage>,
    edges: &'a Staged<EdgePage>,
    direction: Direction,
    label: LabelSetId,
}

impl Packer<'_> {
    fn run(&self) {
        let mut counts = vec![0_u32; self.vertices.pages.len() * SLOTS];
        self.each_edge(|at, _, _| counts[at] += 1);
        let mut next: Vec<usize> = Vec::with_capacity(counts.len());
        let mut total = 0;
        for &count in &counts {
            next.push(total);
            total += count as usize;
        }
        let mut cells = vec![(VertexId::from_bits(0), EdgeId::from_bits(0)); total];
        self.each_edge(|at, neighbor, edge| {
            cells[next[at]] = (neighbor, edge);
            next[at] += 1;
        });
        let mut end = 0;
        for (place, lengths) in counts.chunks_exact(SLOTS).enumerate() {
            let start = end;
            end += lengths.iter().map(|&len| len as usize).sum::<usize>();
            if start < end {
                self.pack_page(place, lengths, &mut cells[start..end]);
            }
        }
    }

    /// Calls `each` with every edge: the place of the vertex whose list it goes to, the vertex at its other
    /// end, and its id.
    fn each_edge(&self, mut each: impl FnMut(usize, VertexId, EdgeId)) {
        let pin = epoch::pin();
        for (tablet, number, page) in &self.edges.pages {
            if page.core.label != self.label {
                continue;
            }
            for at in 0..page.core.used() {
                if page.core.version(at).0 == crate::version::NEVER {
                    continue;
                }
                let (source, target) = page.ends(at, &pin);
                let (owner, neighbor) = match self.direction {
                    Direction::In => (target, source),
                    Direction::Out | Direction::Both => (source, target),
                };
                let place = self.vertices.place(owner.tablet(), owner.page()).expect("ends were checked when loaded");
                let edge = EdgeId::new(*tablet, page.core.slot_number(u64::from(*number) * PAGE_SLOTS, at));
                each(place * SLOTS + owner.offset(), neighbor, edge);
            }
        }
    }

    fn pack_page(&self, place: usize, lengths: &[u32], cells: &mut [(VertexId, EdgeId)]) {
        for run in runs(lengths) {
            cells[run].sort_unstable();
        }
        let block = Block::of(cells);
        let (tablet, _, page) = &self.vertices.pages[place];
        let tablet = self.store.tablet(*tablet).expect("pages are staged for tablets there are");
        let table = page.table_or_create(self.direction, self.label, self.store);
        table.set_block(block, lengths, &self.store.sizes, &tablet.lists, self.store.space());
    }
}

fn runs(lengths: &[u32]) -> impl Iterator<Item = Range<usize>> {
    let mut end = 0;
    lengths.iter().map(move |&len| {
        let start = end;
        end += len as usize;
        start..end
    })
}
