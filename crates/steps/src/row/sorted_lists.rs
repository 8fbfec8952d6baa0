//! Sorted neighbor lists of vertices that many rows name. A test for an edge is then a binary search, and the
//! common neighbors of two vertices are an intersection.
//!
//! Lists are read when they are needed and kept until there are too many. Each is sorted, with a repetition for each
//! parallel edge. They are charged until the query ends (FLOW-17).

use mangrove_flow::{BATCH_ROWS, Output};
use mangrove_graph::{
    Direction, ExpandCursor, ExpandRequest, Expansion, FastMap, GraphView, Need, Result, Value, VertexId,
};
use mangrove_plan::logical::Name;

use crate::context::execution::ExecutionContext;
use crate::rows::Rows;
use crate::rows::path::newest_first;
use crate::values::names::LabelSets;

/// The maximum number of neighbors kept. If there are more, all lists are dropped before others are read.
pub(crate) const NEIGHBORS_MAX: usize = 1 << 17;

/// Sorted lists of the neighbors in one direction along edges of some labels.
pub(crate) struct SortedLists {
    direction: Direction,
    labels: LabelSets,
    /// The range of each vertex's list in `neighbors`.
    ranges: FastMap<VertexId, (usize, usize)>,
    neighbors: Vec<VertexId>,
    expansion: Expansion,
    /// Neighbors that the query is charged for.
    charged: usize,
}

impl SortedLists {
    pub fn new(direction: Direction, labels: Vec<Name>) -> Self {
        SortedLists {
            direction,
            labels: LabelSets::along(labels),
            ranges: FastMap::default(),
            neighbors: Vec::new(),
            expansion: Expansion::default(),
            charged: 0,
        }
    }

    fn request(&mut self, view: &dyn GraphView) -> ExpandRequest {
        ExpandRequest {
            direction: self.direction,
            labels: self.labels.filter(view).clone(),
            edges: false,
            limit: BATCH_ROWS,
        }
    }

    /// Returns what [`SortedLists::degrees`] reads.
    pub fn degree_needs(&mut self, vertices: Vec<VertexId>, view: &dyn GraphView) -> Need<'static> {
        let labels = self.labels.filter(view).clone();
        Need::Degrees { of: vertices.into(), direction: self.direction, labels }
    }

    /// Returns what [`SortedLists::load`] reads at most: another replica may keep none of these lists.
    pub fn list_needs(&mut self, vertices: Vec<VertexId>, view: &dyn GraphView) -> Need<'static> {
        Need::Lists { of: vertices.into(), request: self.request(view), from: ExpandCursor::default() }
    }

    /// Returns the number of neighbors of each vertex.
    pub fn degrees(&mut self, vertices: &[VertexId], context: &ExecutionContext) -> Result<Vec<u64>> {
        let view = &*context.view;
        let mut degrees = Vec::with_capacity(vertices.len());
        view.degrees(vertices, self.direction, self.labels.filter(view), &mut degrees)?;
        Ok(degrees)
    }

    /// Returns true if the list of a vertex is kept.
    pub fn has(&self, vertex: VertexId) -> bool {
        self.ranges.contains_key(&vertex)
    }

    /// Reads those lists of these vertices that are not kept yet. Each vertex is named once.
    pub fn load(&mut self, vertices: &[VertexId], out: &Output<'_, Rows>) -> Result<()> {
        let mut missing: Vec<VertexId> = vertices.iter().copied().filter(|vertex| !self.has(*vertex)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        if self.neighbors.len() > NEIGHBORS_MAX {
            self.clear();
            missing = vertices.to_vec();
        }
        let view = &*out.context().view;
        let request = self.request(view);
        let mut begins = vec![usize::MAX; missing.len()];
        let (mut cursor, mut done) = (ExpandCursor::default(), false);
        while !done {
            // One call reads the whole list of the vertex. The call fails if the query is cancelled meanwhile.
            out.control().check()?;
            self.expansion.clear();
            done = view.expand(&missing, &request, &mut cursor, &mut self.expansion)?;
            for (row, neighbor) in self.expansion.row.iter().zip(&self.expansion.neighbor) {
                let begin = &mut begins[*row as usize];
                *begin = (*begin).min(self.neighbors.len());
                self.neighbors.push(*neighbor);
            }
            self.charge(out)?;
        }
        // Rows ascend, so a list ends where the next non-empty one begins.
        let mut end = self.neighbors.len();
        for (vertex, begin) in missing.into_iter().zip(begins).rev() {
            let begin = begin.min(end);
            self.neighbors[begin..end].sort();
            self.ranges.insert(vertex, (begin, end));
            end = begin;
        }
        Ok(())
    }

    fn charge(&mut self, out: &Output<'_, Rows>) -> Result<()> {
        let more = self.neighbors.len().saturating_sub(self.charged);
        self.charged += more;
        out.control().charge((more * size_of::<VertexId>()) as u64)
    }

    /// Returns the neighbors of a vertex whose list is kept, ascending. Parallel edges repeat a neighbor.
    pub fn of(&self, vertex: VertexId) -> &[VertexId] {
        self.ranges.get(&vertex).map_or(&[], |(begin, end)| &self.neighbors[*begin..*end])
    }

    /// Drops all lists.
    fn clear(&mut self) {
        self.ranges.clear();
        self.neighbors.clear();
    }

    /// Ends a run.
    pub fn recycle(&mut self) {
        self.clear();
        self.neighbors.shrink_to(BATCH_ROWS);
        self.ranges.shrink_to(BATCH_ROWS);
        self.charged = 0;
    }
}

/// Returns how often a vertex is in a sorted list.
pub(crate) fn times_in(list: &[VertexId], vertex: VertexId) -> usize {
    let begin = list.partition_point(|other| *other < vertex);
    list[begin..].iter().take_while(|other| **other == vertex).count()
}

/// Returns the vertex that a name stands for in each row: a side effect, or else the row's object under that label.
/// `None` if it stands for nothing, or for no vertex.
pub(crate) fn named_vertices(rows: &Rows, name: &Name, context: &ExecutionContext) -> Vec<Option<VertexId>> {
    let vertex = |value: &Value| match value {
        Value::Vertex(id) => Some(*id),
        _ => None,
    };
    if let Some(value) = context.side_effects.get(name) {
        return vec![vertex(&value); rows.len()];
    }
    if let Some(number) = context.requirements.binding(name) {
        let Some(column) = rows.binding(number) else { return vec![None; rows.len()] };
        return (0..rows.len()).map(|row| column.vertex(row)).collect();
    }
    let Some(paths) = &rows.path else { return vec![None; rows.len()] };
    let labeled = |path| newest_first(path).find(|node| node.labels.contains(name)).map(|node| vertex(&node.object));
    paths.iter().map(|path| labeled(path).flatten()).collect()
}

/// Returns each vertex once.
pub(crate) fn distinct(vertices: impl Iterator<Item = VertexId>) -> Vec<VertexId> {
    let mut all: Vec<VertexId> = vertices.collect();
    // Adjacent rows mostly have the same vertex.
    all.dedup();
    all.sort_unstable();
    all.dedup();
    all
}
