//! Searches for the elements that the map of `mergeV()` or `mergeE()` describes.
//!
//! A search for vertices uses the first of these that the map allows: the id, an index, a scan of one property key, a
//! scan of a label. A search for edges uses the id, the edges of one end, an index, or a scan of a label. All candidates
//! are then tested against the rest of the map. A search only reads. Every search must read through the view of the running
//! transaction, also if it finds nothing, so that the transaction's read set has it.

use mangrove_graph::{
    Direction, EdgeId, ElementKind, ErrorKind, ExpandCursor, ExpandRequest, Expansion, GraphView, IndexId, IndexInfo,
    IndexRange, KeyId, LabelFilter, Result, ScanCursor, Value, VertexId,
};
use mangrove_gremlin::Comparison;
use mangrove_plan::logical::{Condition, Operand, Test};

use super::description::ElementDescription;
use crate::limits::meter::Meter;
use crate::row::filter::Filter;
use crate::rows::ObjectColumn;
use crate::write::{CHECK_EVERY, WriteContext};

/// The maximum number of candidates that are read and tested at a time.
const CANDIDATES: usize = 1024;

/// The approximate bytes of an element that is found: its place among the candidates and among the results.
const FOUND_BYTES: usize = 80;

/// Searches in the view of the running transaction. What they find is charged until the statement ends.
pub(super) struct ElementSearch<'a> {
    ctx: &'a WriteContext<'a>,
    indexes: Vec<IndexInfo>,
    meter: Meter<'a>,
}

impl<'a> ElementSearch<'a> {
    pub fn new(ctx: &'a WriteContext<'a>) -> Self {
        ElementSearch { ctx, indexes: ctx.context.view.indexes(), meter: Meter::new(ctx.control) }
    }

    fn view(&self) -> &dyn GraphView {
        &*self.ctx.context.view
    }

    /// Returns the vertex that a value names: the value is the vertex or its id. Returns `None` if there is none.
    pub fn vertex(&mut self, named: &Value) -> Result<Option<VertexId>> {
        match named {
            Value::Vertex(vertex) => {
                let mut here = vec![*vertex];
                self.view().retain_vertices(&mut here)?;
                Ok(here.pop())
            }
            id => self.vertex_of(id),
        }
    }

    fn vertex_of(&self, id: &Value) -> Result<Option<VertexId>> {
        let Some(id) = self.ctx.context.ids.read(id) else { return Ok(None) };
        let mut found = Vec::with_capacity(1);
        self.view().find_vertices(&[id], &mut found)?;
        Ok(found.pop().flatten())
    }

    /// Returns all vertices that a map describes, in no particular order.
    pub fn vertices(&mut self, wanted: &ElementDescription) -> Result<Vec<VertexId>> {
        let mut found = Vec::new();
        if let Some(id) = &wanted.id {
            found.extend(self.vertex_of(id)?);
            self.keep_vertices(&mut found, wanted)?;
            return Ok(found);
        }
        let (view, share) = (self.view(), self.ctx.context.share);
        let mut candidates = Vec::new();
        if self.by_index(ElementKind::Vertex, wanted, |index, prefix, range| {
            view.index_vertices(index, prefix, range, share, &mut candidates)
        })? {
            let bytes = size_of_val(&candidates[..]) as u64;
            self.ctx.control.charge(bytes)?;
            for some in candidates.chunks(CANDIDATES) {
                self.ctx.control.check()?;
                let mut some = some.to_vec();
                self.keep_vertices(&mut some, wanted)?;
                self.meter.charge(some.len() * FOUND_BYTES)?;
                found.extend(some);
            }
            self.ctx.control.release(bytes);
            return Ok(found);
        }
        let labels = self.labels(wanted);
        let mut cursor = ScanCursor::default();
        let range = wanted.properties.first().map(|(name, value, _)| (name, IndexRange::Equal(vec![value.clone()])));
        let key = match &range {
            None => None,
            Some((name, _)) => match self.view().key_of(name) {
                Some(key) => Some(key),
                None => {
                    // No vertex has this key. That is a read of all these vertices; counting them records it in the
                    // read set.
                    self.view().count_vertices(&labels, self.ctx.context.share)?;
                    return Ok(found);
                }
            },
        };
        loop {
            self.ctx.control.check()?;
            let mut some: Vec<VertexId> = Vec::new();
            let share = self.ctx.context.share;
            let over = match (&range, key) {
                (Some((_, range)), Some(key)) => {
                    self.view().scan_vertices_where(&labels, key, range, share, &mut cursor, CANDIDATES, &mut some)?
                }
                _ => self.view().scan_vertices(&labels, share, &mut cursor, CANDIDATES, &mut some)?,
            };
            self.keep_vertices(&mut some, wanted)?;
            self.meter.charge(some.len() * FOUND_BYTES)?;
            found.extend(some);
            if over {
                return Ok(found);
            }
        }
    }

    /// Searches in the first index of elements of a kind such that the map has a value for each of its keys. Returns
    /// false if there is no such index.
    fn by_index(
        &self,
        kind: ElementKind,
        wanted: &ElementDescription,
        mut search: impl FnMut(IndexId, &[Value], &IndexRange) -> Result<()>,
    ) -> Result<bool> {
        let view = self.view();
        let value = |key: &KeyId| {
            wanted
                .properties
                .iter()
                .find(|(name, ..)| view.key_of(name) == Some(*key))
                .map(|(_, value, _)| value.clone())
        };
        for index in self.indexes.iter().filter(|index| index.element == kind) {
            let fits = index.label.is_none_or(|label| {
                wanted.label.as_ref().is_some_and(|wanted| view.catalog().label(wanted) == Some(label))
            });
            let Some(mut values) = index.keys.iter().map(value).collect::<Option<Vec<Value>>>().filter(|_| fits) else {
                continue;
            };
            let Some(last) = values.pop() else { continue };
            let range = IndexRange::Equal(vec![last]);
            match search(index.id, &values, &range) {
                // The index was dropped meanwhile.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                result => return result.map(|()| true),
            }
        }
        Ok(false)
    }

    /// Returns the filter for the label of a map.
    fn labels(&self, wanted: &ElementDescription) -> LabelFilter {
        wanted.label.as_ref().map_or(LabelFilter::Any, |label| self.view().label_filter(std::slice::from_ref(label)))
    }

    /// Keeps the vertices that meet the conditions of [`Self::fitting`].
    fn keep_vertices(&self, vertices: &mut Vec<VertexId>, wanted: &ElementDescription) -> Result<()> {
        if let Some(kept) = self.fitting(ObjectColumn::Vertices(vertices.clone()), wanted)? {
            *vertices = kept.into_iter().map(|row| vertices[row as usize]).collect();
        }
        Ok(())
    }

    /// Returns the indexes of the candidates that have the label and the properties of a map; `None` if all have them.
    /// The id and the ends are not tested here.
    fn fitting(&self, objects: ObjectColumn, wanted: &ElementDescription) -> Result<Option<Vec<u32>>> {
        let mut conditions: Vec<Condition> = Vec::new();
        conditions.extend(wanted.label.as_ref().map(|label| Condition::LabelIn(vec![label.clone()])));
        conditions.extend(wanted.properties.iter().map(|(name, value, _)| {
            Condition::Property(name.clone(), Test::Compare(Comparison::Eq, Operand::Literal(value.clone())))
        }));
        if objects.is_empty() || conditions.is_empty() {
            return Ok(None);
        }
        let mut filter = Filter::new(&conditions);
        filter.begin(self.ctx.context)?;
        filter.select(&objects, self.ctx.context)
    }

    /// Returns all edges that a map describes; none if it names an end that does not exist. `ends` are the source and
    /// the target that the map names, as far as they exist.
    pub fn edges(&mut self, wanted: &ElementDescription, ends: [Option<VertexId>; 2]) -> Result<Vec<EdgeId>> {
        if (0..2).any(|end| wanted.ends[end].is_some() && ends[end].is_none()) {
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        if let Some(id) = &wanted.id {
            if let Some(id) = self.ctx.context.ids.read(id) {
                let mut by_id = Vec::with_capacity(1);
                self.view().find_edges(&[id], &mut by_id)?;
                found.extend(by_id.into_iter().flatten());
                self.keep_edges(&mut found, wanted, ends)?;
            }
        } else if let Some((vertex, direction)) =
            ends[0].map(|v| (v, Direction::Out)).or_else(|| ends[1].map(|v| (v, Direction::In)))
        {
            self.edges_at(vertex, direction, wanted, ends, &mut found)?;
        } else if !self.edges_by_index(wanted, &mut found)? {
            self.scan_edges(wanted, ends, &mut found)?;
        }
        Ok(found)
    }

    /// Appends the edges that a map without ends describes, if an index finds them. Returns false if none does.
    fn edges_by_index(&mut self, wanted: &ElementDescription, found: &mut Vec<EdgeId>) -> Result<bool> {
        let (view, share) = (self.view(), self.ctx.context.share);
        let mut candidates = Vec::new();
        let is_answered = self.by_index(ElementKind::Edge, wanted, |index, prefix, range| {
            view.index_edges(index, prefix, range, share, &mut candidates)
        })?;
        let bytes = size_of_val(&candidates[..]) as u64;
        self.ctx.control.charge(bytes)?;
        for some in candidates.chunks(CANDIDATES) {
            self.ctx.control.check()?;
            let mut some = some.to_vec();
            self.keep_edges(&mut some, wanted, [None, None])?;
            self.meter.charge(some.len() * FOUND_BYTES)?;
            found.extend(some);
        }
        self.ctx.control.release(bytes);
        Ok(is_answered)
    }

    /// Appends the edges of a vertex in a direction that a map describes. A hub may have millions of others.
    fn edges_at(
        &mut self,
        vertex: VertexId,
        direction: Direction,
        wanted: &ElementDescription,
        ends: [Option<VertexId>; 2],
        found: &mut Vec<EdgeId>,
    ) -> Result<()> {
        let request = ExpandRequest { direction, labels: self.labels(wanted), edges: true, limit: CANDIDATES };
        let mut cursor = ExpandCursor::default();
        let mut expansion = Expansion::default();
        loop {
            self.ctx.control.check()?;
            let over = self.view().expand(&[vertex], &request, &mut cursor, &mut expansion)?;
            let mut some = std::mem::take(&mut expansion.edge);
            expansion.clear();
            self.keep_edges(&mut some, wanted, ends)?;
            self.meter.charge(some.len() * FOUND_BYTES)?;
            found.extend(some);
            if over {
                return Ok(());
            }
        }
    }

    /// Appends all edges that a map describes.
    fn scan_edges(
        &mut self,
        wanted: &ElementDescription,
        ends: [Option<VertexId>; 2],
        found: &mut Vec<EdgeId>,
    ) -> Result<()> {
        let labels = self.labels(wanted);
        let mut cursor = ScanCursor::default();
        loop {
            self.ctx.control.check()?;
            let mut some = Vec::new();
            let share = self.ctx.context.share;
            let over = self.view().scan_edges(&labels, share, &mut cursor, CHECK_EVERY, &mut some)?;
            self.keep_edges(&mut some, wanted, ends)?;
            self.meter.charge(some.len() * FOUND_BYTES)?;
            found.extend(some);
            if over {
                return Ok(());
            }
        }
    }

    /// Keeps the edges with these ends that meet the conditions of [`Self::fitting`].
    fn keep_edges(
        &self,
        edges: &mut Vec<EdgeId>,
        wanted: &ElementDescription,
        ends: [Option<VertexId>; 2],
    ) -> Result<()> {
        if ends.iter().any(Option::is_some) {
            let (mut sources, mut targets) = (Vec::new(), Vec::new());
            self.view().edge_ends(edges, &mut sources, &mut targets)?;
            let mut at = 0;
            edges.retain(|_| {
                at += 1;
                ends[0].is_none_or(|source| source == sources[at - 1])
                    && ends[1].is_none_or(|target| target == targets[at - 1])
            });
        }
        if let Some(kept) = self.fitting(ObjectColumn::Edges(edges.clone()), wanted)? {
            *edges = kept.into_iter().map(|row| edges[row as usize]).collect();
        }
        Ok(())
    }
}
