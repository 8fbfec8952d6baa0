//! The elements of a snapshot, with all that a file says about them.
//!
//! Ids, labels and properties are fetched a batch at a time and shown row by row, so memory is bounded by a batch. A
//! selection of labels has the vertices with one of them, and those edges with one of them whose ends are selected,
//! too. So an exported part of a graph loads (LOAD-5).

use mangrove_graph::{
    Catalog, EdgeId, ElementKind, Error, ErrorKind, GraphView, LabelFilter, LabelSetId, PropertyRow, Result,
    ScanCursor, Share, Value, VertexId,
};
use smol_str::SmolStr;

/// How many elements are fetched at once.
pub(crate) const BATCH: usize = 1024;

/// The labels whose elements are exported.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    pub(crate) labels: LabelFilter,
}

/// A vertex with its id, label and properties.
pub(crate) struct VertexRow<'b> {
    pub(crate) vertex: VertexId,
    pub(crate) id: &'b Value,
    pub(crate) label: LabelSetId,
    /// Values of one key are adjacent.
    pub(crate) properties: &'b [PropertyRow],
}

/// An edge with its ids, label and properties.
pub(crate) struct EdgeRow<'b> {
    pub(crate) id: &'b Value,
    pub(crate) label: LabelSetId,
    pub(crate) source: &'b Value,
    pub(crate) target: &'b Value,
    pub(crate) properties: &'b [PropertyRow],
}

impl Selection {
    /// Selects everything, or the elements with one of these labels. A label that no element ever had is an error.
    pub(crate) fn new(view: &dyn GraphView, labels: &[SmolStr]) -> Result<Self> {
        if labels.is_empty() {
            return Ok(Selection { labels: LabelFilter::Any });
        }
        for label in labels {
            let known = label.split("::").all(|part| view.catalog().label(part).is_some());
            if !known {
                return Err(Error::new(ErrorKind::NotFound, format!("no vertex or edge has the label '{label}'")));
            }
        }
        Ok(Selection { labels: view.label_filter(labels) })
    }

    /// The selected label sets of vertices, or of edges, that have elements.
    pub(crate) fn sets(&self, view: &dyn GraphView, kind: ElementKind) -> Result<Vec<LabelSetId>> {
        let mut sets = Vec::new();
        for set in (0..view.catalog().label_set_count()).map(|at| LabelSetId(at as u32)) {
            if !self.labels.takes(set) {
                continue;
            }
            let only = LabelFilter::Sets([set].into());
            let count = match kind {
                ElementKind::Vertex => view.count_vertices(&only, Share::ALL)?,
                ElementKind::Edge => view.count_edges(&only, Share::ALL)?,
            };
            if count > 0 {
                sets.push(set);
            }
        }
        Ok(sets)
    }

    /// The elements of one label set.
    pub(crate) fn only(set: LabelSetId) -> LabelFilter {
        LabelFilter::Sets([set].into())
    }

    /// Calls `each` with every vertex of these labels.
    pub(crate) fn each_vertex(
        view: &dyn GraphView,
        labels: &LabelFilter,
        each: &mut dyn FnMut(VertexRow<'_>) -> Result<()>,
    ) -> Result<()> {
        let (mut cursor, mut vertices) = (ScanCursor::default(), Vec::new());
        loop {
            vertices.clear();
            let end = view.scan_vertices(labels, Share::ALL, &mut cursor, BATCH, &mut vertices)?;
            vertex_rows(view, &vertices, each)?;
            if end {
                return Ok(());
            }
        }
    }

    /// Calls `each` with the id of every vertex of these labels.
    pub(crate) fn each_vertex_id(
        view: &dyn GraphView,
        labels: &LabelFilter,
        each: &mut dyn FnMut(&Value),
    ) -> Result<()> {
        let (mut cursor, mut vertices, mut ids) = (ScanCursor::default(), Vec::new(), Vec::new());
        loop {
            let end = view.scan_vertices(labels, Share::ALL, &mut cursor, BATCH, &mut vertices)?;
            view.vertex_user_ids(&vertices, &mut ids)?;
            ids.drain(..).for_each(|id| each(&id));
            vertices.clear();
            if end {
                return Ok(());
            }
        }
    }

    /// Calls `each` with the id of every edge of these labels.
    pub(crate) fn each_edge_id(view: &dyn GraphView, labels: &LabelFilter, each: &mut dyn FnMut(&Value)) -> Result<()> {
        let (mut cursor, mut edges, mut ids) = (ScanCursor::default(), Vec::new(), Vec::new());
        loop {
            let end = view.scan_edges(labels, Share::ALL, &mut cursor, BATCH, &mut edges)?;
            view.edge_user_ids(&edges, &mut ids)?;
            ids.drain(..).for_each(|id| each(&id));
            edges.clear();
            if end {
                return Ok(());
            }
        }
    }

    /// Calls `each` with every edge of these labels whose ends are selected.
    pub(crate) fn each_edge(
        &self,
        view: &dyn GraphView,
        labels: &LabelFilter,
        each: &mut dyn FnMut(EdgeRow<'_>) -> Result<()>,
    ) -> Result<()> {
        let (mut cursor, mut edges) = (ScanCursor::default(), Vec::new());
        loop {
            edges.clear();
            let end = view.scan_edges(labels, Share::ALL, &mut cursor, BATCH, &mut edges)?;
            self.edge_rows(view, &edges, each)?;
            if end {
                return Ok(());
            }
        }
    }

    /// Calls `each` with those of these edges whose ends are selected.
    pub(crate) fn edge_rows(
        &self,
        view: &dyn GraphView,
        edges: &[EdgeId],
        each: &mut dyn FnMut(EdgeRow<'_>) -> Result<()>,
    ) -> Result<()> {
        let (mut ids, mut labels, mut properties) = (Vec::new(), Vec::new(), Vec::new());
        let (mut sources, mut targets) = (Vec::new(), Vec::new());
        view.edge_user_ids(edges, &mut ids)?;
        view.edge_labels(edges, &mut labels)?;
        view.edge_properties(edges, None, &mut properties)?;
        view.edge_ends(edges, &mut sources, &mut targets)?;
        let taken = self.ends_taken(view, &sources, &targets)?;
        let (mut source_ids, mut target_ids) = (Vec::new(), Vec::new());
        view.vertex_user_ids(&sources, &mut source_ids)?;
        view.vertex_user_ids(&targets, &mut target_ids)?;
        let mut rest = properties.as_slice();
        for row in 0..edges.len() {
            let properties = split_row(&mut rest, row);
            if taken.as_ref().is_none_or(|taken| taken[row]) {
                let (source, target) = (&source_ids[row], &target_ids[row]);
                each(EdgeRow { id: &ids[row], label: labels[row], source, target, properties })?;
            }
        }
        Ok(())
    }

    /// For each edge whether both ends are selected; `None`: all are.
    fn ends_taken(
        &self,
        view: &dyn GraphView,
        sources: &[VertexId],
        targets: &[VertexId],
    ) -> Result<Option<Vec<bool>>> {
        if self.labels == LabelFilter::Any {
            return Ok(None);
        }
        let (mut from, mut to) = (Vec::new(), Vec::new());
        view.vertex_labels(sources, &mut from)?;
        view.vertex_labels(targets, &mut to)?;
        let both = from.iter().zip(&to).map(|(from, to)| self.labels.takes(*from) && self.labels.takes(*to));
        Ok(Some(both.collect()))
    }
}

fn vertex_rows(
    view: &dyn GraphView,
    vertices: &[VertexId],
    each: &mut dyn FnMut(VertexRow<'_>) -> Result<()>,
) -> Result<()> {
    let (mut ids, mut labels, mut properties) = (Vec::new(), Vec::new(), Vec::new());
    view.vertex_user_ids(vertices, &mut ids)?;
    view.vertex_labels(vertices, &mut labels)?;
    view.vertex_properties(vertices, None, &mut properties)?;
    let mut rest = properties.as_slice();
    for (row, vertex) in vertices.iter().enumerate() {
        let properties = split_row(&mut rest, row);
        each(VertexRow { vertex: *vertex, id: &ids[row], label: labels[row], properties })?;
    }
    Ok(())
}

/// Takes the properties of a row from the front of the batch.
pub(crate) fn split_row<'p>(rest: &mut &'p [PropertyRow], row: usize) -> &'p [PropertyRow] {
    let len = rest.iter().take_while(|property| property.row as usize == row).count();
    let (front, after) = rest.split_at(len);
    *rest = after;
    front
}

/// The properties of one element, grouped by key.
pub(crate) fn by_key(properties: &[PropertyRow]) -> impl Iterator<Item = &[PropertyRow]> {
    properties.chunk_by(|a, b| a.key == b.key)
}

/// A cache of names of labels and keys, which takes the lock of the catalog once a name.
pub(crate) struct CatalogNames<'v> {
    catalog: &'v Catalog,
    sets: Vec<Option<SmolStr>>,
    keys: Vec<Option<SmolStr>>,
}

impl<'v> CatalogNames<'v> {
    pub(crate) fn new(catalog: &'v Catalog) -> Self {
        CatalogNames { catalog, sets: Vec::new(), keys: Vec::new() }
    }

    /// The name of a label set, as Gremlin shows it.
    pub(crate) fn set(&mut self, set: LabelSetId) -> &SmolStr {
        let at = set.0 as usize;
        if self.sets.len() <= at {
            self.sets.resize(at + 1, None);
        }
        self.sets[at].get_or_insert_with(|| self.catalog.label_set_name(set))
    }

    /// The name of a property key.
    pub(crate) fn key(&mut self, key: mangrove_graph::KeyId) -> &SmolStr {
        let at = key.0 as usize;
        if self.keys.len() <= at {
            self.keys.resize(at + 1, None);
        }
        self.keys[at].get_or_insert_with(|| self.catalog.key_name(key))
    }
}
