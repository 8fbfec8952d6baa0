//! A handful of vertices and edges in plain vectors, for the tests of this crate.

use std::sync::Arc;

use mangrove_graph::{
    AdjacencyRequest, AdjacencyRuns, Catalog, Direction, EdgeId, ExpandCursor, ExpandRequest, Expansion, GraphView,
    IndexId, IndexInfo, IndexRange, KeyId, LabelFilter, LabelSetId, LiveCounts, Numbers, PropertyOwner, PropertyRow,
    PropertyValue, Result, ScanCursor, Share, TabletId, UserId, Value, ValueRows, VertexId, VertexPropertyValue,
};

use mangrove_plan::physical::Requirements;

use crate::context::execution::{ExecutionContext, SideEffects};

type Meta = Arc<Vec<(KeyId, Value)>>;

#[derive(Clone)]
struct FakeVertex {
    label: LabelSetId,
    properties: Vec<(KeyId, u32, Value, Meta)>,
}

#[derive(Clone)]
struct FakeEdge {
    label: LabelSetId,
    ends: (usize, usize),
    properties: Vec<(KeyId, Value)>,
}

/// The graph: vertices are known to users as 1, 2, …, edges as 101, 102, ….
#[derive(Default)]
pub(crate) struct FakeView {
    catalog: Catalog,
    vertices: Vec<FakeVertex>,
    edges: Vec<FakeEdge>,
}

/// A part of TinkerPop's "modern" graph: marko knows josh, josh created lop. Marko has two nicks: "m", and
/// "mk" since 2001.
pub(crate) struct Modern {
    /// The graph.
    pub view: Arc<FakeView>,
    /// User id 1.
    pub marko: VertexId,
    /// User id 2.
    pub josh: VertexId,
    /// User id 3.
    pub lop: VertexId,
    /// User id 101, with weight 0.5.
    pub knows: EdgeId,
    /// User id 102, with weight 1.0.
    pub created: EdgeId,
}

fn vertex_id(at: usize) -> VertexId {
    VertexId::new(TabletId(1), at as u64)
}

fn edge_id(at: usize) -> EdgeId {
    EdgeId::new(TabletId(1), at as u64)
}

/// See [`Modern`].
pub(crate) fn modern() -> Modern {
    let catalog = Catalog::new();
    let (person, software) = (catalog.intern_label_text("person"), catalog.intern_label_text("software"));
    let (knows, created) = (catalog.intern_label_text("knows"), catalog.intern_label_text("created"));
    let [name, age, nick, since, weight] =
        ["name", "age", "nick", "since", "weight"].map(|key| catalog.intern_key(key));
    let plain = |key, value: Value| (key, 0, value, Meta::default());
    let since = Arc::new(vec![(since, Value::I32(2001))]);
    let vertices = vec![
        FakeVertex {
            label: person,
            properties: vec![
                plain(name, "marko".into()),
                plain(age, 29.into()),
                plain(nick, "m".into()),
                (nick, 1, "mk".into(), since),
            ],
        },
        FakeVertex { label: person, properties: vec![plain(name, "josh".into()), plain(age, 32.into())] },
        FakeVertex { label: software, properties: vec![plain(name, "lop".into())] },
    ];
    let edges = vec![
        FakeEdge { label: knows, ends: (0, 1), properties: vec![(weight, 0.5.into())] },
        FakeEdge { label: created, ends: (1, 2), properties: vec![(weight, 1.0.into())] },
    ];
    let view = Arc::new(FakeView { catalog, vertices, edges });
    let [marko, josh, lop] = [0, 1, 2].map(vertex_id);
    Modern { view, marko, josh, lop, knows: edge_id(0), created: edge_id(1) }
}

impl Modern {
    /// One of marko's nicks.
    pub fn nick(&self, ordinal: u32) -> Value {
        let key = self.key("nick");
        let wanted = |p: &&(KeyId, u32, Value, Meta)| p.0 == key && p.1 == ordinal;
        let (_, _, value, meta) = self.view.vertices[0].properties.iter().find(wanted).unwrap().clone();
        Value::VertexProperty(Arc::new(VertexPropertyValue { vertex: self.marko, key, ordinal, value, meta }))
    }

    /// The weight of `knows` as a property.
    pub fn weight(&self) -> Value {
        let owner = PropertyOwner::Edge(self.knows);
        Value::Property(Arc::new(PropertyValue { owner, key: self.key("weight"), value: 0.5.into() }))
    }

    /// A key of the graph.
    pub fn key(&self, name: &str) -> KeyId {
        self.view.catalog.key(name).unwrap()
    }
}

/// The context of a read-only query over a graph.
pub(crate) fn context_of(graph: &Modern) -> ExecutionContext {
    context_with(graph, Requirements::default())
}

/// The same, for a query whose rows carry this.
pub(crate) fn context_with(graph: &Modern, requirements: Requirements) -> ExecutionContext {
    ExecutionContext {
        view: graph.view.clone(),
        writer: None,
        parameters: Vec::new(),
        lifted: Arc::default(),
        share: Share::ALL,
        ids: mangrove_graph::IdRule::Any,
        requirements: Arc::new(requirements),
        side_effects: SideEffects::default(),
        overlay: None,
        workers_max: 0,
        services: None,
        files: None,
        results: None,
        columns: Default::default(),
    }
}

/// The context of a query that reads no graph.
pub(crate) fn context() -> ExecutionContext {
    context_of(&modern())
}

fn takes(keys: Option<&[KeyId]>, key: KeyId) -> bool {
    keys.is_none_or(|keys| keys.contains(&key))
}

/// The end of a list that is appended as a whole.
fn append_all<T>(items: impl Iterator<Item = T>, out: &mut Vec<T>) -> Result<bool> {
    out.extend(items);
    Ok(true)
}

/// Appends values that are numbers of one type, or none.
fn push_numbers(values: &ValueRows, out: &mut Numbers) -> bool {
    let before = out.len();
    let all = values.row.iter().zip(&values.value).all(|(row, value)| out.push(*row, value));
    if !all {
        out.truncate(before);
    }
    all
}

impl GraphView for FakeView {
    fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    fn find_vertices(&self, ids: &[UserId], out: &mut Vec<Option<VertexId>>) -> Result<()> {
        out.extend(
            ids.iter().map(|id| (0..self.vertices.len()).find(|&at| *id == UserId::int(at as i64 + 1)).map(vertex_id)),
        );
        Ok(())
    }

    fn find_edges(&self, ids: &[UserId], out: &mut Vec<Option<EdgeId>>) -> Result<()> {
        out.extend(
            ids.iter().map(|id| (0..self.edges.len()).find(|&at| *id == UserId::int(at as i64 + 101)).map(edge_id)),
        );
        Ok(())
    }

    fn retain_vertices(&self, ids: &mut Vec<VertexId>) -> Result<()> {
        ids.retain(|id| (id.slot() as usize) < self.vertices.len());
        Ok(())
    }

    fn retain_edges(&self, ids: &mut Vec<EdgeId>) -> Result<()> {
        ids.retain(|id| (id.slot() as usize) < self.edges.len());
        Ok(())
    }

    fn scan_vertices(
        &self,
        labels: &LabelFilter,
        _: Share,
        _: &mut ScanCursor,
        _: usize,
        out: &mut Vec<VertexId>,
    ) -> Result<bool> {
        append_all((0..self.vertices.len()).filter(|&at| labels.takes(self.vertices[at].label)).map(vertex_id), out)
    }

    fn scan_edges(
        &self,
        labels: &LabelFilter,
        _: Share,
        _: &mut ScanCursor,
        _: usize,
        out: &mut Vec<EdgeId>,
    ) -> Result<bool> {
        append_all((0..self.edges.len()).filter(|&at| labels.takes(self.edges[at].label)).map(edge_id), out)
    }

    fn scan_vertices_where(
        &self,
        labels: &LabelFilter,
        key: KeyId,
        range: &IndexRange,
        _: Share,
        _: &mut ScanCursor,
        _: usize,
        out: &mut Vec<VertexId>,
    ) -> Result<bool> {
        let passes = |v: &FakeVertex| v.properties.iter().any(|(k, _, value, _)| *k == key && range.holds(value));
        let all = self.vertices.iter().enumerate().filter(|(_, v)| labels.takes(v.label) && passes(v));
        append_all(all.map(|(at, _)| vertex_id(at)), out)
    }

    fn scan_edges_where(
        &self,
        labels: &LabelFilter,
        key: KeyId,
        range: &IndexRange,
        _: Share,
        _: &mut ScanCursor,
        _: usize,
        out: &mut Vec<EdgeId>,
    ) -> Result<bool> {
        let passes = |e: &FakeEdge| e.properties.iter().any(|(k, value)| *k == key && range.holds(value));
        let all = self.edges.iter().enumerate().filter(|(_, e)| labels.takes(e.label) && passes(e));
        append_all(all.map(|(at, _)| edge_id(at)), out)
    }

    fn count_vertices(&self, labels: &LabelFilter, _: Share) -> Result<u64> {
        Ok(self.vertices.iter().filter(|v| labels.takes(v.label)).count() as u64)
    }

    fn count_edges(&self, labels: &LabelFilter, _: Share) -> Result<u64> {
        Ok(self.edges.iter().filter(|e| labels.takes(e.label)).count() as u64)
    }

    fn expand(
        &self,
        vertices: &[VertexId],
        request: &ExpandRequest,
        _: &mut ExpandCursor,
        out: &mut Expansion,
    ) -> Result<bool> {
        for (row, vertex) in vertices.iter().enumerate() {
            for (edge, neighbor) in self.incident(*vertex, request.direction, &request.labels) {
                out.row.push(row as u32);
                out.neighbor.push(vertex_id(neighbor));
                if request.edges {
                    out.edge.push(edge_id(edge));
                }
            }
        }
        Ok(true)
    }

    fn for_each_adjacency(
        &self,
        request: &AdjacencyRequest,
        each: &mut dyn FnMut(&AdjacencyRuns<'_>) -> Result<()>,
    ) -> Result<()> {
        for at in (0..self.vertices.len()).filter(|&at| request.vertices.takes(self.vertices[at].label)) {
            let incident = self.incident(vertex_id(at), request.direction, &request.labels);
            let (edges, neighbors): (Vec<EdgeId>, Vec<_>) =
                incident.into_iter().map(|(edge, neighbor)| (edge_id(edge), vertex_id(neighbor))).unzip();
            let shown: &[EdgeId] = if request.edges { &edges } else { &[] };
            each(&AdjacencyRuns::new(vertex_id(at), 0, &[neighbors.len() as u32], &neighbors, shown))?;
        }
        Ok(())
    }

    fn degrees(
        &self,
        vertices: &[VertexId],
        direction: Direction,
        labels: &LabelFilter,
        out: &mut Vec<u64>,
    ) -> Result<()> {
        out.extend(vertices.iter().map(|v| self.incident(*v, direction, labels).len() as u64));
        Ok(())
    }

    fn edge_ends(&self, edges: &[EdgeId], sources: &mut Vec<VertexId>, targets: &mut Vec<VertexId>) -> Result<()> {
        for edge in edges {
            let (source, target) = self.edge(*edge).ends;
            sources.push(vertex_id(source));
            targets.push(vertex_id(target));
        }
        Ok(())
    }

    fn vertex_labels(&self, vertices: &[VertexId], out: &mut Vec<LabelSetId>) -> Result<()> {
        out.extend(vertices.iter().map(|v| self.vertex(*v).label));
        Ok(())
    }

    fn edge_labels(&self, edges: &[EdgeId], out: &mut Vec<LabelSetId>) -> Result<()> {
        out.extend(edges.iter().map(|e| self.edge(*e).label));
        Ok(())
    }

    fn vertex_user_ids(&self, vertices: &[VertexId], out: &mut Vec<Value>) -> Result<()> {
        out.extend(vertices.iter().map(|v| Value::I64(v.slot() as i64 + 1)));
        Ok(())
    }

    fn edge_user_ids(&self, edges: &[EdgeId], out: &mut Vec<Value>) -> Result<()> {
        out.extend(edges.iter().map(|e| Value::I64(e.slot() as i64 + 101)));
        Ok(())
    }

    fn vertex_values(&self, vertices: &[VertexId], key: KeyId, out: &mut ValueRows) -> Result<()> {
        for (row, vertex) in vertices.iter().enumerate() {
            for (_, _, value, _) in self.vertex(*vertex).properties.iter().filter(|p| p.0 == key) {
                out.row.push(row as u32);
                out.value.push(value.clone());
            }
        }
        Ok(())
    }

    fn edge_values(&self, edges: &[EdgeId], key: KeyId, out: &mut ValueRows) -> Result<()> {
        for (row, edge) in edges.iter().enumerate() {
            for (_, value) in self.edge(*edge).properties.iter().filter(|p| p.0 == key) {
                out.row.push(row as u32);
                out.value.push(value.clone());
            }
        }
        Ok(())
    }

    fn vertex_numbers(&self, vertices: &[VertexId], key: KeyId, out: &mut Numbers) -> Result<bool> {
        let mut values = ValueRows::default();
        self.vertex_values(vertices, key, &mut values)?;
        Ok(push_numbers(&values, out))
    }

    fn edge_numbers(&self, edges: &[EdgeId], key: KeyId, out: &mut Numbers) -> Result<bool> {
        let mut values = ValueRows::default();
        self.edge_values(edges, key, &mut values)?;
        Ok(push_numbers(&values, out))
    }

    fn vertex_properties(
        &self,
        vertices: &[VertexId],
        keys: Option<&[KeyId]>,
        out: &mut Vec<PropertyRow>,
    ) -> Result<()> {
        for (row, vertex) in vertices.iter().enumerate() {
            let all = self.vertex(*vertex).properties.iter().filter(|p| takes(keys, p.0)).cloned();
            out.extend(all.map(|(key, ordinal, value, meta)| PropertyRow {
                row: row as u32,
                key,
                ordinal,
                value,
                meta,
            }));
        }
        Ok(())
    }

    fn edge_properties(&self, edges: &[EdgeId], keys: Option<&[KeyId]>, out: &mut Vec<PropertyRow>) -> Result<()> {
        for (row, edge) in edges.iter().enumerate() {
            for (key, value) in self.edge(*edge).properties.iter().filter(|p| takes(keys, p.0)).cloned() {
                out.push(PropertyRow { row: row as u32, key, ordinal: 0, value, meta: Meta::default() });
            }
        }
        Ok(())
    }

    fn indexes(&self) -> Vec<IndexInfo> {
        Vec::new()
    }

    fn index_vertices(&self, _: IndexId, _: &[Value], _: &IndexRange, _: Share, _: &mut Vec<VertexId>) -> Result<()> {
        Ok(())
    }

    fn index_edges(&self, _: IndexId, _: &[Value], _: &IndexRange, _: Share, _: &mut Vec<EdgeId>) -> Result<()> {
        Ok(())
    }

    fn live_counts(&self) -> LiveCounts {
        LiveCounts::default()
    }
}

impl FakeView {
    fn vertex(&self, id: VertexId) -> &FakeVertex {
        &self.vertices[id.slot() as usize]
    }

    fn edge(&self, id: EdgeId) -> &FakeEdge {
        &self.edges[id.slot() as usize]
    }

    /// Edges of a vertex with the vertex at the other end.
    fn incident(&self, vertex: VertexId, direction: Direction, labels: &LabelFilter) -> Vec<(usize, usize)> {
        let here = vertex.slot() as usize;
        let mut found = Vec::new();
        for (at, edge) in self.edges.iter().enumerate().filter(|(_, e)| labels.takes(e.label)) {
            if edge.ends.0 == here && direction != Direction::In {
                found.push((at, edge.ends.1));
            }
            if edge.ends.1 == here && direction != Direction::Out {
                found.push((at, edge.ends.0));
            }
        }
        found
    }
}
