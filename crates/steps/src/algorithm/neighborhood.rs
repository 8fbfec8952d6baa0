//! The part of a graph that the searches of `shortestPath()` have visited. The first search that visits a vertex reads its edges, and
//! later searches find them here.
//!
//! Searches see vertices as numbers, in the order in which they were met.

use std::ops::Range;
use std::sync::Arc;

use mangrove_flow::{Charge, QueryControl};
use mangrove_graph::{
    EdgeId, Error, ExpandCursor, ExpandRequest, Expansion, FastMap, GraphView, KeyId, LabelFilter, Result, ValueRows,
    VertexId, numeric,
};
use mangrove_plan::logical::algorithm::ShortestPath;

use crate::algorithm::{edges_followed, vertices_seen};
use crate::context::type_name::a_type;

/// Neighbors that are read at a time.
const READ: usize = 1 << 14;

/// The bytes of a vertex that was met.
const VERTEX_BYTES: u64 = (size_of::<VertexId>() + size_of::<(VertexId, u32)>() + size_of::<Range<usize>>()) as u64;

/// An edge from a vertex.
#[derive(Clone, Copy)]
pub(super) struct Way {
    /// The number of the vertex at the other end.
    pub to: u32,
    /// The edge.
    pub edge: EdgeId,
    /// Its length.
    pub length: f64,
}

/// See the header of this file.
pub(super) struct Neighborhood {
    request: ExpandRequest,
    vertices_seen: LabelFilter,
    /// The property that is the length of edges: its name, and its key if any element has it.
    distance: Option<(String, Option<KeyId>)>,
    numbers: FastMap<VertexId, u32>,
    vertices: Vec<VertexId>,
    /// By the numbers of vertices, the places of their ways. `None` until they are read.
    rows: Vec<Option<Range<usize>>>,
    ways: Vec<Way>,
    charges: Vec<Charge>,
}

impl Neighborhood {
    /// Nothing of the graph.
    pub fn new(view: &dyn GraphView, search: &ShortestPath) -> Self {
        let labels = edges_followed(view, &search.edges, &search.sees);
        let distance = search.distance.as_ref().map(|key| (key.to_string(), view.key_of(key)));
        Neighborhood {
            request: ExpandRequest { direction: search.edges.direction, labels, edges: true, limit: READ },
            vertices_seen: vertices_seen(view, &search.sees),
            distance,
            numbers: FastMap::default(),
            vertices: Vec::new(),
            rows: Vec::new(),
            ways: Vec::new(),
            charges: Vec::new(),
        }
    }

    /// The number of a vertex.
    pub fn number(&mut self, vertex: VertexId) -> u32 {
        let next = self.vertices.len() as u32;
        let number = *self.numbers.entry(vertex).or_insert(next);
        if number == next {
            self.vertices.push(vertex);
            self.rows.push(None);
        }
        number
    }

    /// The vertex of a number.
    pub fn vertex(&self, number: u32) -> VertexId {
        self.vertices[number as usize]
    }

    /// The ways from a vertex, after [`Neighborhood::read`].
    pub fn ways(&self, number: u32) -> &[Way] {
        self.rows[number as usize].clone().map_or(&[], |row| &self.ways[row])
    }

    /// Reads the ways from these vertices, of which none is named twice.
    pub fn read(&mut self, numbers: &[u32], view: &dyn GraphView, control: &Arc<QueryControl>) -> Result<()> {
        let unread: Vec<u32> = numbers.iter().copied().filter(|at| self.rows[*at as usize].is_none()).collect();
        let vertices: Vec<VertexId> = unread.iter().map(|at| self.vertex(*at)).collect();
        let (mut cursor, mut is_end) = (ExpandCursor::default(), vertices.is_empty());
        // The row whose ways are being read, and where they begin.
        let (mut row, mut begin) = (0, self.ways.len());
        while !is_end {
            control.check()?;
            let mut found = Expansion::default();
            is_end = view.expand(&vertices, &self.request, &mut cursor, &mut found)?;
            let lengths = self.lengths(&found.edge, view)?;
            let is_seen = self.are_seen(&found.neighbor, view)?;
            let bytes = found.len() as u64 * (size_of::<Way>() as u64 + VERTEX_BYTES);
            self.charges.push(control.charge_while(bytes)?);
            for (at, neighbor) in found.neighbor.iter().enumerate().filter(|(at, _)| is_seen(*at)) {
                while row < found.row[at] as usize {
                    self.rows[unread[row] as usize] = Some(begin..self.ways.len());
                    (row, begin) = (row + 1, self.ways.len());
                }
                let to = self.number(*neighbor);
                self.ways.push(Way { to, edge: found.edge[at], length: lengths.get(at).copied().unwrap_or(1.0) });
            }
        }
        for number in &unread[row.min(unread.len())..] {
            self.rows[*number as usize] = Some(begin..self.ways.len());
            begin = self.ways.len();
        }
        Ok(())
    }

    /// Whether each of these vertices is seen.
    fn are_seen(&self, vertices: &[VertexId], view: &dyn GraphView) -> Result<impl Fn(usize) -> bool + use<>> {
        let mut labels = Vec::new();
        if self.vertices_seen != LabelFilter::Any {
            view.vertex_labels(vertices, &mut labels)?;
        }
        let filter = self.vertices_seen.clone();
        Ok(move |at: usize| labels.get(at).is_none_or(|label| filter.takes(*label)))
    }

    /// The lengths of edges; none if every edge has the length 1.
    fn lengths(&self, edges: &[EdgeId], view: &dyn GraphView) -> Result<Vec<f64>> {
        let Some((name, key)) = &self.distance else { return Ok(Vec::new()) };
        let mut values = ValueRows::default();
        key.map_or(Ok(()), |key| view.edge_values(edges, key, &mut values))?;
        if values.row.len() < edges.len() {
            return Err(Error::evaluation(format!(
                "shortestPath() takes the length of each edge from its property '{name}', which an edge lacks"
            )));
        }
        let length = |value| {
            numeric::to_f64(value).filter(|length| *length >= 0.0).ok_or_else(|| {
                let given = numeric::to_f64(value).map_or_else(|| a_type(value).to_string(), |given| given.to_string());
                Error::evaluation(format!(
                    "shortestPath() takes lengths from 0 on, and the property '{name}' of an edge is {given}"
                ))
            })
        };
        values.value.iter().map(length).collect()
    }
}
