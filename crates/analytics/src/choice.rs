//! What a projection is made of: the choice of vertices, edges, rows and weights.

use mangrove_graph::{Direction, GraphView, KeyId, LabelFilter, LabelSetId};

/// Cells and positions of a part of a phase, about: tens of microseconds of work.
pub(crate) const PART_WORK: usize = 1 << 13;

/// Which rows a projection has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Orientation {
    /// Rows of outgoing and rows of incoming edges.
    Directed,
    /// One row a vertex, with the edges of both directions. An edge is in the rows of both its ends; a loop is in its row
    /// twice.
    Undirected,
}

/// What a projection is made of.
#[derive(Clone, PartialEq, Debug)]
pub struct ProjectionOptions {
    /// The labels of the vertices.
    pub vertices: LabelFilter,
    /// The labels of the edges. An edge counts if both its ends do.
    pub edges: LabelFilter,
    /// Which rows there are.
    pub orientation: Orientation,
    /// The property of edges that is their weight; `None`: there are no weights.
    pub weight: Option<KeyId>,
    /// The weight of an edge without the property.
    pub default_weight: f64,
    /// Whether cells name their edges.
    pub names_edges: bool,
}

impl Default for ProjectionOptions {
    fn default() -> Self {
        ProjectionOptions {
            vertices: LabelFilter::Any,
            edges: LabelFilter::Any,
            orientation: Orientation::Directed,
            weight: None,
            default_weight: 1.0,
            names_edges: false,
        }
    }
}

/// The memory that an algorithm needs besides the projection, in bytes, at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StateBytes {
    /// For each position.
    pub position: u64,
    /// For each cell of the rows of one direction.
    pub cell: u64,
}

impl ProjectionOptions {
    /// The vertices and the edges of a projection of what a view shows, about: by the newest counts of the graph, which cost no scan.
    fn expected_counts(&self, view: &dyn GraphView) -> (u64, u64) {
        let counts = view.live_counts();
        let taken = |labels: &LabelFilter, counts: &[(LabelSetId, u64)]| -> u64 {
            counts.iter().filter(|(set, _)| labels.takes(*set)).map(|(_, count)| count).sum()
        };
        (taken(&self.vertices, &counts.vertices), taken(&self.edges, &counts.edges))
    }

    /// The vertices of a projection of what a view shows, about.
    pub(crate) fn expected_vertices(&self, view: &dyn GraphView) -> u64 {
        self.expected_counts(view).0
    }

    /// The bytes of a projection of what a view shows, about.
    pub fn expected_bytes(&self, view: &dyn GraphView) -> u64 {
        let (vertices, edges) = self.expected_counts(view);
        let directions = self.directions().len() as u64;
        let of_cell = 4 + 8 * (u64::from(self.weight.is_some()) + u64::from(self.names_edges));
        vertices * 4 * directions + 2 * edges * of_cell
    }

    /// The bytes of the state of an algorithm that runs on a projection of what a view shows, about.
    pub fn expected_state(&self, view: &dyn GraphView, state: StateBytes) -> u64 {
        let (vertices, edges) = self.expected_counts(view);
        let cells = 2 * edges / self.directions().len() as u64;
        vertices.saturating_mul(state.position).saturating_add(cells.saturating_mul(state.cell))
    }

    /// The directions of the rows.
    pub(crate) fn directions(&self) -> &'static [Direction] {
        match self.orientation {
            Orientation::Directed => &[Direction::Out, Direction::In],
            Orientation::Undirected => &[Direction::Both],
        }
    }
}
