//! Neighbor lists of vertices that are asked about again and again, sorted: whether an edge leads from here to there is
//! then a search, and what two vertices have in common is an intersection.
//!
//! Lists are read when they are needed and kept until there are too many. What they take is charged to the query until it
//! ends.

use mangrove_flow::{BATCH_ROWS, Output};
use mangrove_graph::{Direction, ExpandCursor, ExpandRequest, Expansion, Result, Value, VertexId};
use mangrove_plan::logical::Name;

use crate::barrier::held::FastMap;
use crate::environment::Environment;
use crate::path::newest_first;
use crate::row::names::LabelSets;
use crate::rows::Rows;

/// How many neighbors are kept: with more, all lists are dropped before others are read.
pub const NEIGHBORS_MAX: usize = 1 << 17;

/// Sorted lists of the neighbors in one direction along edges of some labels.
pub struct SortedLists {
    direction: Direction,
    labels: LabelSets,
    /// Where the list of a vertex begins and ends.
    places: FastMap<VertexId, (usize, usize)>,
    neighbors: Vec<VertexId>,
    expansion: Expansion,
    /// How many neighbors the query is charged for.
    charged: usize,
}

impl SortedLists {
    /// No lists yet.
    pub fn new(direction: Direction, labels: Vec<Name>) -> Self {
        SortedLists {
            direction,
            labels: LabelSets::along(labels),
            places: FastMap::default(),
            neighbors: Vec::new(),
            expansion: Expansion::default(),
            charged: 0,
        }
    }

    /// How many neighbors each vertex has.
    pub fn degrees(&mut self, vertices: &[VertexId], environment: &Environment) -> Result<Vec<u64>> {
        let view = &*environment.view;
        let mut degrees = Vec::with_capacity(vertices.len());
        view.degrees(vertices, self.direction, self.labels.filter(view), &mut degrees)?;
        Ok(degrees)
    }

    /// Whether the list of a vertex is at hand.
    pub fn has(&self, vertex: VertexId) -> bool {
        self.places.contains_key(&vertex)
    }

    /// Reads the lists of these vertices, each named once, as far as they are not at hand.
    pub fn load(&mut self, vertices: &[VertexId], out: &Output<'_, Rows>) -> Result<()> {
        let mut missing: Vec<VertexId> = vertices.iter().copied().filter(|vertex| !self.has(*vertex)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        if self.neighbors.len() > NEIGHBORS_MAX {
            self.clear();
            missing = vertices.to_vec();
        }
        let view = &*out.surroundings().view;
        let request = ExpandRequest {
            direction: self.direction,
            labels: self.labels.filter(view).clone(),
            edges: false,
            limit: BATCH_ROWS,
        };
        let mut begins = vec![usize::MAX; missing.len()];
        let (mut cursor, mut done) = (ExpandCursor::default(), false);
        while !done {
            self.expansion.clear();
            done = view.expand(&missing, &request, &mut cursor, &mut self.expansion)?;
            for (row, neighbor) in self.expansion.row.iter().zip(&self.expansion.neighbor) {
                let begin = &mut begins[*row as usize];
                *begin = (*begin).min(self.neighbors.len());
                self.neighbors.push(*neighbor);
            }
            self.charge(out)?;
        }
        // Rows ascend: a list ends where the next one that is not empty begins.
        let mut end = self.neighbors.len();
        for (vertex, begin) in missing.into_iter().zip(begins).rev() {
            let begin = begin.min(end);
            self.neighbors[begin..end].sort();
            self.places.insert(vertex, (begin, end));
            end = begin;
        }
        Ok(())
    }

    fn charge(&mut self, out: &Output<'_, Rows>) -> Result<()> {
        let more = self.neighbors.len().saturating_sub(self.charged);
        self.charged += more;
        out.context().charge((more * size_of::<VertexId>()) as u64)
    }

    /// The neighbors of a vertex whose list was read, ascending; parallel edges give one several times.
    pub fn of(&self, vertex: VertexId) -> &[VertexId] {
        self.places.get(&vertex).map_or(&[], |(begin, end)| &self.neighbors[*begin..*end])
    }

    /// Forgets all lists.
    fn clear(&mut self) {
        self.places.clear();
        self.neighbors.clear();
    }

    /// Forgets a run.
    pub fn rest(&mut self) {
        self.clear();
        self.neighbors.shrink_to(BATCH_ROWS);
        self.places.shrink_to(BATCH_ROWS);
        self.charged = 0;
    }
}

/// How often a vertex is in a sorted list.
pub fn times_in(list: &[VertexId], vertex: VertexId) -> usize {
    let begin = list.partition_point(|other| *other < vertex);
    list[begin..].iter().take_while(|other| **other == vertex).count()
}

/// The vertex that a name stands for in each row: a side effect, or else what the row's path has under that label. `None`
/// where it stands for nothing, or for no vertex.
pub fn named_vertices(rows: &Rows, name: &Name, environment: &Environment) -> Vec<Option<VertexId>> {
    let vertex = |value: &Value| match value {
        Value::Vertex(id) => Some(*id),
        _ => None,
    };
    if let Some(value) = environment.side_effects.get(name) {
        return vec![vertex(&value); rows.len()];
    }
    let Some(paths) = &rows.path else { return vec![None; rows.len()] };
    let labeled = |path| newest_first(path).find(|node| node.labels.contains(name)).map(|node| vertex(&node.object));
    paths.iter().map(|path| labeled(path).flatten()).collect()
}

/// Each once.
pub fn distinct(vertices: impl Iterator<Item = VertexId>) -> Vec<VertexId> {
    let mut all: Vec<VertexId> = vertices.collect();
    // Rows that stand together mostly have the same.
    all.dedup();
    all.sort_unstable();
    all.dedup();
    all
}
