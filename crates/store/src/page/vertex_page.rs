//! Pages of vertices: what all pages have, and the adjacency tables of the page's vertices.
//!
//! There is a table for each direction and edge label set that any vertex of the page has had an edge of. Tables are added
//! and stay; their positions are stable, so that cursors may keep them.

use mangrove_graph::{Direction, LabelSetId};
use mangrove_reclaim::AppendMap;

use crate::adjacency::AdjacencyTable;
use crate::memory::{Memory, RecordKind};
use crate::page::PageCore;
use crate::sizes::StoreSizes;

/// A page of vertices with their adjacency.
#[derive(Debug)]
pub(crate) struct VertexPage {
    pub(crate) core: PageCore,
    outgoing: AppendMap<AdjacencyTable>,
    incoming: AppendMap<AdjacencyTable>,
}

impl VertexPage {
    /// A page for transactions.
    pub(crate) fn live(label: LabelSetId, capacity: u32, memory: &Memory) -> Self {
        Self::with_core(PageCore::live(label, capacity, memory), memory)
    }

    /// A page to be filled in bulk.
    pub(crate) fn clean(label: LabelSetId, capacity: u32, memory: &Memory) -> Self {
        Self::with_core(PageCore::clean(label, capacity), memory)
    }

    fn with_core(core: PageCore, memory: &Memory) -> Self {
        memory.add(RecordKind::VertexPage, size_of::<VertexPage>());
        VertexPage { core, outgoing: AppendMap::default(), incoming: AppendMap::default() }
    }

    /// The adjacency tables of a direction (not `Both`) by edge label set, in the order they came to be.
    #[inline]
    pub(crate) fn tables(&self, direction: Direction) -> &AppendMap<AdjacencyTable> {
        match direction {
            Direction::In => &self.incoming,
            Direction::Out | Direction::Both => &self.outgoing,
        }
    }

    /// The table for edges of a label set, made where it is missing.
    pub(crate) fn table_or_create(
        &self,
        direction: Direction,
        label: LabelSetId,
        sizes: &StoreSizes,
        memory: &Memory,
    ) -> &AdjacencyTable {
        let make = || AdjacencyTable::new(self.core.capacity(), sizes);
        self.tables(direction).get_or_insert_with(label.0, (memory, RecordKind::Descriptor), make)
    }

    pub(crate) fn add_bytes(&self, add: &mut impl FnMut(RecordKind, usize)) {
        add(RecordKind::VertexPage, size_of::<VertexPage>());
        self.core.add_bytes(add);
        for (_, table) in self.outgoing.iter().chain(self.incoming.iter()) {
            let (descriptors, block) = table.bytes();
            add(RecordKind::Descriptor, descriptors);
            add(RecordKind::Block, block);
        }
        add(RecordKind::Descriptor, self.outgoing.bytes() + self.incoming.bytes());
    }
}
