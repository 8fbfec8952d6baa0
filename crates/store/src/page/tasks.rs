//! The tasks of collectors in one tablet.
//!
//! A tablet's tasks are lists of names under one lock. Writers and committers add to them, and the collector that has
//! the tablet's turn takes them. A name that comes late or twice does no harm, since the collector looks at the state
//! that it finds.
//!
//! - **STORE-31.** An adjacency table that is due for compaction is in its tablet's list, is being compacted, or has a
//!   previous layout. When the layout goes, the collector looks at the table again. So no table stays due for longer
//!   than the transactions that hold its previous layout.

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

/// The tasks of collectors in one tablet.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    /// Vertices that ended, or never began.
    pub(crate) vertices: Vec<VertexId>,
    /// Pages that can perhaps be frozen by now, each once, by kind and number.
    pub(crate) pages: Vec<(ElementKind, u32)>,
    /// Adjacency tables that have become due for compaction, each once (STORE-31).
    pub(crate) tables: Vec<TableName>,
    /// Tables with a previous layout, in the order in which the layouts may go. Each has the transaction number at
    /// which that is: no transaction with a smaller number is running.
    pub(crate) layouts: VecDeque<(u64, TableName)>,
}

impl Tasks {
    /// The number of tasks that a collector may work off at once.
    pub(crate) fn len(&self) -> usize {
        self.vertices.len() + self.pages.len() + self.tables.len()
    }
}
