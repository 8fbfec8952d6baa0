//! Values that algorithms of a traversal give to vertices: the traversal reads them as properties, and they are not stored.
//!
//! [`OverlayView`] is the view that all operators of such a traversal read through. So no step knows that the values are not stored. A
//! key of the traversal's algorithms has an id of its own there, counted down from the largest one, which no stored key has. It
//! holds from the beginning of the run. Until its algorithm has run, the key shows what is stored under the name. Afterwards it
//! shows the algorithm's values and nothing else: a vertex that the algorithm does not know has no value.

use std::sync::Arc;

use mangrove_analytics::Numbering;
use mangrove_graph::connections::Connections;
use mangrove_graph::{
    AdjacencyRequest, AdjacencyRuns, Catalog, Direction, EdgeId, ElementKind, Error, ExpandCursor, ExpandRequest,
    Expansion, GraphView, IndexId, IndexInfo, IndexLookup, IndexRange, KeyId, LabelFilter, LabelSetId, LiveCounts,
    NumberType, Numbers, PropertyRow, Result, ScanCursor, Share, UserId, Value, ValueColumns, ValueRows, VertexId,
    VertexPage, forward_view, look_up_in_steps,
};
use mangrove_plan::logical::Name;
use parking_lot::RwLock;

/// The values of an algorithm, by the positions of vertices.
pub(crate) struct VertexValues {
    /// The positions.
    pub numbering: Numbering,
    /// The values.
    pub values: PositionValues,
}

/// A value for each position. Those of holes mean nothing.
pub(crate) enum PositionValues {
    /// Numbers.
    Numbers(Vec<f64>),
    /// For each position a number, and the values that these numbers stand for.
    Shared(Vec<u32>, Vec<Value>),
}

impl VertexValues {
    /// The position of a vertex, if the algorithm knows it.
    fn position(&self, vertex: VertexId) -> Option<usize> {
        self.numbering.find(vertex).map(|at| at as usize)
    }

    fn value(&self, vertex: VertexId) -> Option<Value> {
        let at = self.position(vertex)?;
        Some(match &self.values {
            PositionValues::Numbers(numbers) => Value::F64(numbers[at]),
            PositionValues::Shared(of, values) => values[of[at] as usize].clone(),
        })
    }

    /// The bytes that it holds, about.
    pub fn bytes(&self) -> u64 {
        let values = match &self.values {
            PositionValues::Numbers(numbers) => size_of_val(&numbers[..]),
            PositionValues::Shared(of, values) => size_of_val(&of[..]) + size_of_val(&values[..]),
        };
        values as u64 + self.numbering.bytes()
    }
}

/// The values that the algorithms of a run have found, by key, and the view that they are shown around.
pub struct Overlay {
    view: Arc<dyn GraphView>,
    names: Vec<Name>,
    /// By the places of the names. `None` until the algorithm has run.
    found: RwLock<Vec<Option<Arc<VertexValues>>>>,
}

impl Overlay {
    /// Without values. `names` are the keys of a plan's algorithms, each once.
    ///
    /// # Errors
    ///
    /// If the view may be late: algorithms read whole graphs, which must be in memory.
    pub fn new(view: Arc<dyn GraphView>, names: &[Name]) -> Result<Self> {
        match view.late() {
            None => Ok(Overlay { view, names: names.to_vec(), found: RwLock::new(vec![None; names.len()]) }),
            Some(_) => Err(Error::unsupported("withComputer() needs a graph that is in the memory of one process")),
        }
    }

    /// The view without values of algorithms.
    pub(crate) fn stored_view(&self) -> &dyn GraphView {
        &*self.view
    }

    /// Shows the values of an algorithm under its key, in place of earlier ones.
    pub(crate) fn show(&self, name: &Name, values: VertexValues) -> Result<()> {
        let place = self.names.iter().position(|known| known == name);
        let place = place.ok_or_else(|| Error::bug("an algorithm has a key that its plan does not name"))?;
        self.found.write()[place] = Some(Arc::new(values));
        Ok(())
    }

    fn found(&self, place: usize) -> Option<Arc<VertexValues>> {
        self.found.read()[place].clone()
    }
}

/// A view with the values of algorithms as properties of its vertices.
pub struct OverlayView {
    overlay: Arc<Overlay>,
}

/// What is read under a key.
enum Source {
    /// What is stored under this key.
    Stored(KeyId),
    /// What an algorithm has found.
    Found(Arc<VertexValues>),
    /// Nothing.
    Nothing,
}

impl OverlayView {
    /// The view of an overlay, with its values.
    pub fn new(overlay: Arc<Overlay>) -> Self {
        OverlayView { overlay }
    }

    /// The place of the algorithm's key among the names, if the id is one.
    fn place(&self, key: KeyId) -> Option<usize> {
        let place = (u32::MAX - key.0) as usize;
        (place < self.overlay.names.len()).then_some(place)
    }

    /// The key under which a name is stored.
    fn stored(&self, place: usize) -> Option<KeyId> {
        self.overlay.view.key_of(&self.overlay.names[place])
    }

    /// What is read of vertices under a key.
    fn of_vertices(&self, key: KeyId) -> Source {
        match self.place(key) {
            None => Source::Stored(key),
            Some(place) => match self.overlay.found(place) {
                Some(found) => Source::Found(found),
                None => self.stored(place).map_or(Source::Nothing, Source::Stored),
            },
        }
    }

    /// The key under which values of edges are stored.
    fn of_edges(&self, key: KeyId) -> Option<KeyId> {
        self.place(key).map_or(Some(key), |place| self.stored(place))
    }

    /// All that algorithms have found: keys, the keys under which the same names are stored, and values.
    fn all_found(&self) -> Vec<(KeyId, Option<KeyId>, Arc<VertexValues>)> {
        let places = 0..self.overlay.names.len();
        let found = places.filter_map(|place| Some((place, self.overlay.found(place)?)));
        found.map(|(place, found)| (KeyId(u32::MAX - place as u32), self.stored(place), found)).collect()
    }
}

impl GraphView for OverlayView {
    forward_view! { |this| this.overlay.view =>
        fn catalog() -> &Catalog;
        fn find_vertices(ids: &[UserId], out: &mut Vec<Option<VertexId>>) -> Result<()>;
        fn find_edges(ids: &[UserId], out: &mut Vec<Option<EdgeId>>) -> Result<()>;
        fn retain_vertices(ids: &mut Vec<VertexId>) -> Result<()>;
        fn retain_edges(ids: &mut Vec<EdgeId>) -> Result<()>;
        fn split_scan(kind: ElementKind, labels: &LabelFilter, share: Share, cursor: &mut ScanCursor) -> Option<ScanCursor>;
        fn scan_vertices(labels: &LabelFilter, share: Share, cursor: &mut ScanCursor, limit: usize, out: &mut Vec<VertexId>) -> Result<bool>;
        fn scan_edges(labels: &LabelFilter, share: Share, cursor: &mut ScanCursor, limit: usize, out: &mut Vec<EdgeId>) -> Result<bool>;
        fn count_vertices(labels: &LabelFilter, share: Share) -> Result<u64>;
        fn count_edges(labels: &LabelFilter, share: Share) -> Result<u64>;
        fn expand(vertices: &[VertexId], request: &ExpandRequest, cursor: &mut ExpandCursor, out: &mut Expansion) -> Result<bool>;
        fn for_each_adjacency(request: &AdjacencyRequest, each: &mut dyn FnMut(&AdjacencyRuns<'_>) -> Result<()>) -> Result<()>;
        fn vertex_pages(labels: &LabelFilter, out: &mut Vec<VertexPage>) -> Result<()>;
        fn edges_changed() -> Option<u64>;
        fn degrees(vertices: &[VertexId], direction: Direction, labels: &LabelFilter, out: &mut Vec<u64>) -> Result<()>;
        fn edge_ends(edges: &[EdgeId], sources: &mut Vec<VertexId>, targets: &mut Vec<VertexId>) -> Result<()>;
        fn vertex_labels(vertices: &[VertexId], out: &mut Vec<LabelSetId>) -> Result<()>;
        fn edge_labels(edges: &[EdgeId], out: &mut Vec<LabelSetId>) -> Result<()>;
        fn vertex_user_ids(vertices: &[VertexId], out: &mut Vec<Value>) -> Result<()>;
        fn edge_user_ids(edges: &[EdgeId], out: &mut Vec<Value>) -> Result<()>;
        fn index_vertices(index: IndexId, prefix: &[Value], range: &IndexRange, share: Share, out: &mut Vec<VertexId>) -> Result<()>;
        fn index_edges(index: IndexId, prefix: &[Value], range: &IndexRange, share: Share, out: &mut Vec<EdgeId>) -> Result<()>;
        fn intersect_vertices(lookups: &[IndexLookup<'_>], share: Share, out: &mut Vec<VertexId>) -> Result<()>;
        fn find_few_vertices(lookups: &[IndexLookup<'_>], share: Share, most: usize, out: &mut Vec<VertexId>) -> Result<bool>;
        fn intersect_edges(lookups: &[IndexLookup<'_>], share: Share, out: &mut Vec<EdgeId>) -> Result<()>;
        fn live_counts() -> LiveCounts;
        fn connection_epoch() -> Option<u64>;
        fn connections() -> Option<Arc<Connections>>;
        fn label_filter(names: &[Name]) -> LabelFilter;
    }

    fn key_of(&self, name: &str) -> Option<KeyId> {
        match self.overlay.names.iter().position(|known| known == name) {
            Some(place) => Some(KeyId(u32::MAX - place as u32)),
            None => self.overlay.view.key_of(name),
        }
    }

    fn key_name(&self, key: KeyId) -> Name {
        match self.place(key) {
            Some(place) => self.overlay.names[place].clone(),
            None => self.overlay.view.key_name(key),
        }
    }

    fn look_up_vertices(
        &self,
        ids: &[UserId],
        keys: &[KeyId],
        found: &mut Vec<Option<VertexId>>,
        values: &mut [ValueRows],
    ) -> Result<()> {
        match keys.iter().any(|key| self.place(*key).is_some()) {
            true => look_up_in_steps(self, ids, keys, found, values),
            false => self.overlay.view.look_up_vertices(ids, keys, found, values),
        }
    }

    fn scan_vertices_where(
        &self,
        labels: &LabelFilter,
        key: KeyId,
        range: &IndexRange,
        share: Share,
        cursor: &mut ScanCursor,
        limit: usize,
        out: &mut Vec<VertexId>,
    ) -> Result<bool> {
        match self.of_vertices(key) {
            Source::Stored(key) => self.overlay.view.scan_vertices_where(labels, key, range, share, cursor, limit, out),
            Source::Nothing => Ok(true),
            Source::Found(found) => {
                let mut scanned = Vec::new();
                let is_end = self.overlay.view.scan_vertices(labels, share, cursor, limit, &mut scanned)?;
                let holds = |vertex: &VertexId| found.value(*vertex).is_some_and(|value| range.holds(&value));
                out.extend(scanned.into_iter().filter(holds));
                Ok(is_end)
            }
        }
    }

    fn scan_edges_where(
        &self,
        labels: &LabelFilter,
        key: KeyId,
        range: &IndexRange,
        share: Share,
        cursor: &mut ScanCursor,
        limit: usize,
        out: &mut Vec<EdgeId>,
    ) -> Result<bool> {
        match self.of_edges(key) {
            Some(key) => self.overlay.view.scan_edges_where(labels, key, range, share, cursor, limit, out),
            None => Ok(true),
        }
    }

    fn vertex_values(&self, vertices: &[VertexId], key: KeyId, out: &mut ValueRows) -> Result<()> {
        match self.of_vertices(key) {
            Source::Stored(key) => self.overlay.view.vertex_values(vertices, key, out),
            Source::Nothing => Ok(()),
            Source::Found(found) => {
                for (row, vertex) in (0..).zip(vertices) {
                    if let Some(value) = found.value(*vertex) {
                        out.row.push(row);
                        out.value.push(value);
                    }
                }
                Ok(())
            }
        }
    }

    fn edge_values(&self, edges: &[EdgeId], key: KeyId, out: &mut ValueRows) -> Result<()> {
        self.of_edges(key).map_or(Ok(()), |key| self.overlay.view.edge_values(edges, key, out))
    }

    fn vertex_numbers(&self, vertices: &[VertexId], key: KeyId, out: &mut Numbers) -> Result<bool> {
        let found = match self.of_vertices(key) {
            Source::Stored(key) => return self.overlay.view.vertex_numbers(vertices, key, out),
            Source::Nothing => return Ok(true),
            Source::Found(found) => found,
        };
        let PositionValues::Numbers(numbers) = &found.values else { return Ok(false) };
        if out.kind.is_some_and(|kind| kind != NumberType::F64) {
            return Ok(false);
        }
        for (row, vertex) in (0..).zip(vertices) {
            if let Some(at) = found.position(*vertex) {
                out.kind = Some(NumberType::F64);
                out.row.push(row);
                out.floats.push(numbers[at]);
            }
        }
        Ok(true)
    }

    fn edge_numbers(&self, edges: &[EdgeId], key: KeyId, out: &mut Numbers) -> Result<bool> {
        self.of_edges(key).map_or(Ok(true), |key| self.overlay.view.edge_numbers(edges, key, out))
    }

    fn vertex_properties(
        &self,
        vertices: &[VertexId],
        keys: Option<&[KeyId]>,
        out: &mut Vec<PropertyRow>,
    ) -> Result<()> {
        let mut columns: Vec<(KeyId, Arc<VertexValues>)> = Vec::new();
        let mut stored = Vec::new();
        match keys {
            None => {
                let all = self.all_found();
                self.overlay.view.vertex_properties(vertices, None, &mut stored)?;
                stored.retain(|property| all.iter().all(|(_, hidden, _)| *hidden != Some(property.key)));
                columns.extend(all.into_iter().map(|(key, _, found)| (key, found)));
            }
            Some(keys) => {
                let mut of_store = Vec::new();
                for &key in keys {
                    match self.of_vertices(key) {
                        Source::Stored(key) => of_store.push(key),
                        Source::Found(found) => columns.push((key, found)),
                        Source::Nothing => {}
                    }
                }
                self.overlay.view.vertex_properties(vertices, Some(&of_store), &mut stored)?;
            }
        }
        let mut stored = stored.into_iter().peekable();
        for (row, vertex) in (0..).zip(vertices) {
            let begin = out.len();
            out.extend(std::iter::from_fn(|| stored.next_if(|property| property.row == row)));
            for (key, found) in &columns {
                let value = found.value(*vertex);
                let property =
                    value.map(|value| PropertyRow { row, key: *key, ordinal: 0, value, meta: Arc::default() });
                out.extend(property);
            }
            if let Some(keys) = keys {
                // In the order of the keys.
                let asked = |key: KeyId| keys.iter().position(|asked| self.is_same(*asked, key));
                out[begin..].sort_by_key(|property| asked(property.key));
            }
        }
        Ok(())
    }

    fn edge_properties(&self, edges: &[EdgeId], keys: Option<&[KeyId]>, out: &mut Vec<PropertyRow>) -> Result<()> {
        let stored = keys.map(|keys| keys.iter().filter_map(|key| self.of_edges(*key)).collect::<Vec<_>>());
        self.overlay.view.edge_properties(edges, stored.as_deref(), out)
    }

    fn vertex_columns(&self, vertices: &[VertexId], keys: Option<&[KeyId]>, out: &mut ValueColumns) -> Result<()> {
        let Some(keys) = keys else {
            self.overlay.view.vertex_columns(vertices, None, out)?;
            for (key, hidden, _) in self.all_found() {
                hidden.into_iter().for_each(|hidden| out.column(hidden).clear());
                self.vertex_values(vertices, key, out.column(key))?;
            }
            return Ok(());
        };
        if keys.iter().all(|key| self.place(*key).is_none()) {
            return self.overlay.view.vertex_columns(vertices, Some(keys), out);
        }
        keys.iter().try_for_each(|key| self.vertex_values(vertices, *key, out.column(*key)))
    }

    fn edge_columns(&self, edges: &[EdgeId], keys: Option<&[KeyId]>, out: &mut ValueColumns) -> Result<()> {
        match keys {
            Some(keys) if keys.iter().any(|key| self.place(*key).is_some()) => {
                keys.iter().try_for_each(|key| self.edge_values(edges, *key, out.column(*key)))
            }
            keys => self.overlay.view.edge_columns(edges, keys, out),
        }
    }

    fn indexes(&self) -> Vec<IndexInfo> {
        let hidden: Vec<KeyId> = (0..self.overlay.names.len()).filter_map(|place| self.stored(place)).collect();
        let mut indexes = self.overlay.view.indexes();
        indexes.retain(|index| index.keys.iter().all(|key| !hidden.contains(key)));
        indexes
    }
}

impl OverlayView {
    /// Returns true if a property with this key is one that was asked for under that key.
    fn is_same(&self, asked: KeyId, key: KeyId) -> bool {
        asked == key || self.place(asked).is_some_and(|place| self.stored(place) == Some(key))
    }
}
