//! What a collector has to do in one tablet.
//!
//! A tablet's tasks are lists of names under one lock. Writers and committers add to them; the collector that has the
//! tablet's turn takes them. A name that comes late or twice does no harm: the collector looks at the state it finds.

use std::collections::VecDeque;

use mangrove_graph::{Direction, ElementKind, LabelSetId, VertexId};

/// An adjacency table of a tablet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableName {
    /// The page of its vertices.
    pub(crate) page: u32,
    pub(crate) direction: Direction,
    pub(crate) label: LabelSetId,
}

/// What a collector is to do in one tablet.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    /// Vertices that ended, or never began.
    pub(crate) vertices: Vec<VertexId>,
    /// Pages with versions that may be frozen by now, each once, by kind and number.
    pub(crate) pages: Vec<(ElementKind, u32)>,
    /// Adjacency tables that have become due for compaction, each once.
    pub(crate) tables: Vec<TableName>,
    /// Tables with a layout that compaction has replaced, in the order in which the layouts may go: when no
    /// transaction with a smaller number is running.
    pub(crate) layouts: VecDeque<(u64, TableName)>,
}

impl Tasks {
    /// How many tasks are ready.
    pub(crate) fn len(&self) -> usize {
        self.vertices.len() + self.pages.len() + self.tables.len()
    }
}
