//! Reads in small batches. A walk keeps its cursor between batches, so that writes can happen meanwhile.

use mangrove_graph::{
    Direction, EdgeId, ExpandCursor, ExpandRequest, Expansion, GraphView, IndexRange, KeyId, LabelFilter, Numbers,
    ScanCursor, Share, Value, ValueColumns, ValueRows, VertexId,
};

/// A read under way. Each call of [`Walk::step`] reads a batch.
#[derive(Clone, Debug)]
pub enum Walk {
    Vertices(Scan<VertexId>),
    Edges(Scan<EdgeId>),
    Lists(Expand),
    Values(Values),
}

/// A scan, of all elements or of those with a value.
#[derive(Clone, Debug)]
pub struct Scan<T> {
    pub range: Option<(KeyId, IndexRange)>,
    pub limit: usize,
    pub cursor: ScanCursor,
    pub found: Vec<T>,
}

/// The expansion of some vertices.
#[derive(Clone, Debug)]
pub struct Expand {
    pub vertices: Vec<VertexId>,
    pub request: ExpandRequest,
    pub cursor: ExpandCursor,
    pub found: Vec<(u32, VertexId, EdgeId)>,
}

impl<T> Scan<T> {
    pub fn new(range: Option<(KeyId, IndexRange)>, limit: usize) -> Self {
        Scan { range, limit, cursor: ScanCursor::default(), found: Vec::new() }
    }
}

impl Expand {
    pub fn new(vertices: Vec<VertexId>, direction: Direction, labels: LabelFilter, limit: usize) -> Self {
        let request = ExpandRequest { direction, labels, edges: true, limit };
        Expand { vertices, request, cursor: ExpandCursor::default(), found: Vec::new() }
    }

    fn step(&mut self, view: &dyn GraphView) -> bool {
        let mut out = Expansion::default();
        let is_done = view.expand(&self.vertices, &self.request, &mut self.cursor, &mut out).unwrap();
        assert!(is_done || !out.is_empty(), "a batch that is not the last one brings something");
        self.found.extend((0..out.len()).map(|at| (out.row[at], out.neighbor[at], out.edge[at])));
        is_done
    }
}

/// Reads values of some vertices, in one of the ways of [`Way`]. Each vertex must have at most one value, a long.
#[derive(Clone, Debug)]
pub struct Values {
    pub vertices: Vec<VertexId>,
    pub key: KeyId,
    pub way: Way,
    pub limit: usize,
    /// One entry for each vertex that was read.
    pub found: Vec<Option<i64>>,
}

/// The methods of [`GraphView`] that read values: `vertex_values`, `vertex_numbers`, `vertex_properties` and
/// `vertex_columns`.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    Rows,
    Numbers,
    Properties,
    Columns,
}

impl Values {
    fn step(&mut self, view: &dyn GraphView) -> bool {
        let (key, first) = (self.key, self.found.len());
        let batch = &self.vertices[first..self.vertices.len().min(first + self.limit)];
        self.found.resize(first + batch.len(), None);
        let found = &mut self.found[first..];
        let mut put = |row: u32, value: &Value| match value {
            Value::I64(n) => assert!(found[row as usize].replace(*n).is_none(), "a vertex has one value"),
            other => panic!("a long is expected, not {other:?}"),
        };
        match self.way {
            Way::Rows => each_row(view, batch, key, &mut put),
            Way::Numbers => {
                let mut out = Numbers::default();
                match view.vertex_numbers(batch, key, &mut out).unwrap() {
                    true => (0..out.len()).for_each(|at| put(out.row[at], &out.value(at).unwrap())),
                    false => each_row(view, batch, key, &mut put),
                }
            }
            Way::Properties => {
                let mut out = Vec::new();
                view.vertex_properties(batch, None, &mut out).unwrap();
                out.iter()
                    .filter(|property| property.key == key)
                    .for_each(|property| put(property.row, &property.value));
            }
            Way::Columns => {
                let mut out = ValueColumns::default();
                view.vertex_columns(batch, Some(&[key]), &mut out).unwrap();
                out.each_row(batch.len(), |row, values| {
                    values.for_each(|(_, _, value)| put(row as u32, &value));
                });
            }
        }
        self.found.len() == self.vertices.len()
    }
}

fn each_row(view: &dyn GraphView, batch: &[VertexId], key: KeyId, put: &mut dyn FnMut(u32, &Value)) {
    let mut out = ValueRows::default();
    view.vertex_values(batch, key, &mut out).unwrap();
    out.row.iter().zip(&out.value).for_each(|(row, value)| put(*row, value));
}

impl Walk {
    /// Reads a batch. Returns true if it was the last one.
    pub fn step(&mut self, view: &dyn GraphView) -> bool {
        match self {
            Walk::Lists(expand) => expand.step(view),
            Walk::Values(values) => values.step(view),
            Walk::Vertices(Scan { range, limit, cursor, found }) => match range {
                None => view.scan_vertices(&LabelFilter::Any, Share::ALL, cursor, *limit, found),
                Some((key, range)) => {
                    view.scan_vertices_where(&LabelFilter::Any, *key, range, Share::ALL, cursor, *limit, found)
                }
            }
            .unwrap(),
            Walk::Edges(Scan { range, limit, cursor, found }) => match range {
                None => view.scan_edges(&LabelFilter::Any, Share::ALL, cursor, *limit, found),
                Some((key, range)) => {
                    view.scan_edges_where(&LabelFilter::Any, *key, range, Share::ALL, cursor, *limit, found)
                }
            }
            .unwrap(),
        }
    }
}
