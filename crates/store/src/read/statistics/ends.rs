//! Where the edges of a table lead: the label sets of the vertices at their other ends.
//!
//! To look at the other end of every edge would cost more than the rest of the pass, because each is on a page of its
//! own. So of a page with many edges in a table only some are looked at: one edge of each of [`SAMPLED`] vertices, which
//! stands for all edges of its vertex. Both are chosen by position alone, so a second pass over the same pages chooses
//! the same. Edges of a page with few are all looked at.

use std::collections::BTreeMap;

use mangrove_graph::LabelSetId;
use mangrove_graph::VertexId;
use mangrove_reclaim::epoch::Pin;

use crate::adjacency::AdjacencyTable;
use crate::page::Tablet;
use crate::read::view::StoreView;

/// How many vertices of a page have one edge each that is looked at.
const SAMPLED: usize = 64;

/// If a page has at most so many edges in a table, all of them are looked at.
const ALL_MAX: u64 = 256;

/// The most label sets that are told apart among the ends of a table. Edges to others are not counted.
const TOLD_APART_MAX: usize = 64;

/// The number of edges, as far as they were looked at, by the label sets of their ends. An edge that stands for others
/// counts as all of them.
#[derive(Debug, Default)]
pub(super) struct Ends {
    counts: BTreeMap<LabelSetId, f64>,
}

/// The vertices of a page that have edges in a table: their descriptors and degrees.
pub(super) type Sources = Vec<(u64, u64)>;

impl Ends {
    /// Looks at edges of a page. Returns how many.
    pub(super) fn add(
        &mut self,
        view: &StoreView<'_>,
        (tablet, table): (&Tablet, &AdjacencyTable),
        sources: &Sources,
        pin: &Pin,
    ) -> usize {
        let edges: u64 = sources.iter().map(|(_, degree)| degree).sum();
        let list = |word: u64| table.list_of(word, &tablet.lists, pin);
        if edges <= ALL_MAX {
            for &(word, _) in sources {
                view.each_visible(pin, list(word).candidates(), |_, neighbor, _| {
                    self.count(view, neighbor, 1.0);
                    true
                });
            }
            return edges as usize;
        }
        // A spread of positions that shares no period with the order of lists (Knuth's multiplicative hash).
        let spread = |at: usize| (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let step = sources.len().div_ceil(SAMPLED);
        for (at, &(word, degree)) in sources.iter().enumerate().step_by(step) {
            let list = list(word);
            let packed = list.neighbors;
            let neighbor = match packed.len() {
                0 => list.cells().next().map(|(neighbor, _)| neighbor),
                len => Some(packed[(spread(at) % len as u64) as usize]),
            };
            if let Some(neighbor) = neighbor {
                self.count(view, neighbor, degree as f64);
            }
        }
        sources.len() / step
    }

    fn count(&mut self, view: &StoreView<'_>, neighbor: VertexId, weight: f64) {
        let Some((_, page)) = view.store.vertex_page_unchecked(neighbor) else { return };
        let label = page.core.label;
        if self.counts.len() < TOLD_APART_MAX || self.counts.contains_key(&label) {
            *self.counts.entry(label).or_default() += weight;
        }
    }

    /// The parts of the edges, which add up to 1, by the label sets of their ends.
    pub(super) fn parts(self) -> Box<[(LabelSetId, f64)]> {
        let all: f64 = self.counts.values().sum();
        self.counts.into_iter().map(|(label, count)| (label, count / all)).collect()
    }

    /// The bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        self.counts.len() * 2 * size_of::<(LabelSetId, f64)>()
    }
}
