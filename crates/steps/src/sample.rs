//! Draws from a graph, for the estimates of plans ([`SampleGraph`]).
//!
//! Lists are read whole, but for the longest: of a vertex with more than [`LIST_MAX`] edges, the first ones stand for the
//! others. Vertices are drawn from pages that splitting a scan leads to, some from each page.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use mangrove_graph::{
    ElementKind, ExpandCursor, ExpandRequest, Expansion, GraphView, IdRule, LabelFilter, LabelSetId, Result,
    ScanCursor, Share, Token, UserId, Value, ValueRows, VertexId,
};
use mangrove_gremlin::Comparison;
use mangrove_plan::logical::{By, Condition, Operand};
use mangrove_plan::physical::{EdgesOf, Requirements};
use mangrove_plan::{Begin, Drawn, DrawnEdges, SampleGraph};
use rand::rngs::SmallRng;
use rand::seq::index;
use rand::{Rng, SeedableRng};

use crate::context::execution::{ExecutionContext, SideEffects};
use crate::row::filter::Filter;
use crate::rows::ObjectColumn;
use crate::values::predicate::compares;

/// The most neighbors of one vertex that are looked at.
const LIST_MAX: usize = 4_096;

/// The pages from which vertices are drawn, and the most vertices that are read from each.
const PAGES: usize = 8;
const READ_FROM_PAGE_MAX: usize = 1_024;

/// The most ids that are looked up.
const IDS_MAX: usize = 4_096;

/// Every plan for a graph draws the same numbers, so that it can be made again.
const SEED: u64 = 0x4D61_6E67_726F_7665;

/// About how many nanoseconds it takes to look at a vertex whose page is not cached, at the next vertex of a page or a
/// list, and at the value of a vertex.
const VERTEX: f64 = 100.0;
const NEXT: f64 = 4.0;
const VALUE: f64 = 60.0;

/// Draws from a view.
pub struct ViewSample {
    context: ExecutionContext,
    random: RefCell<SmallRng>,
    nanos: Cell<f64>,
}

impl ViewSample {
    /// Draws from a view, in a run with these literals. User ids are read by a rule.
    pub fn new(view: Arc<dyn GraphView>, lifted: Arc<[Value]>, ids: IdRule) -> Self {
        let context = ExecutionContext {
            view,
            writer: None,
            parameters: Vec::new(),
            lifted,
            share: Share::ALL,
            ids,
            requirements: Arc::new(Requirements::default()),
            side_effects: SideEffects::default(),
            overlay: None,
            workers_max: 0,
            services: None,
            files: None,
            results: None,
            columns: Default::default(),
        };
        let random = RefCell::new(SmallRng::seed_from_u64(SEED));
        ViewSample { context, random, nanos: Cell::new(0.0) }
    }

    fn view(&self) -> &dyn GraphView {
        &*self.context.view
    }

    fn takes(&self, nanos: f64) {
        self.nanos.set(self.nanos.get() + nanos);
    }

    /// Positions below `of`, ascending and different, at most `most`.
    fn positions(&self, of: usize, most: usize) -> Vec<usize> {
        if of <= most {
            return (0..of).collect();
        }
        let mut drawn = index::sample(&mut *self.random.borrow_mut(), of, most).into_vec();
        drawn.sort_unstable();
        drawn
    }

    fn some_of(&self, vertices: &[VertexId], most: usize) -> Vec<VertexId> {
        self.positions(vertices.len(), most).into_iter().map(|at| vertices[at]).collect()
    }

    fn by_ids(&self, ids: &[Operand], most: usize) -> Result<Option<Drawn>> {
        let resolved = ids.iter().map(|id| self.context.resolve(id)).collect::<Result<Vec<Value>>>()?;
        let ids: Vec<UserId> = resolved.iter().filter_map(|id| self.context.ids.read(id)).take(IDS_MAX).collect();
        if ids.len() < resolved.len() {
            return Ok(None);
        }
        let mut found = Vec::new();
        self.view().find_vertices(&ids, &mut found)?;
        self.takes(3.0 * VERTEX * ids.len() as f64);
        let mut found: Vec<VertexId> = found.into_iter().flatten().collect();
        found.sort_unstable();
        found.dedup();
        Ok(Some(Drawn { of: Some(found.len() as u64), vertices: self.some_of(&found, most) }))
    }

    fn scanned(&self, labels: Option<&[LabelSetId]>, most: usize) -> Result<Drawn> {
        let labels = labels.map_or(LabelFilter::Any, |sets| LabelFilter::Sets(sets.into()));
        let (mut drawn, from_page) = (Vec::new(), most.div_ceil(PAGES));
        for _ in 0..PAGES {
            let (mut cursor, is_whole) = self.random_part(&labels);
            let mut read = Vec::new();
            let is_all = self.view().scan_vertices(&labels, Share::ALL, &mut cursor, READ_FROM_PAGE_MAX, &mut read)?;
            self.takes(10.0 * VERTEX + NEXT * read.len() as f64);
            drawn.extend(self.some_of(&read, from_page));
            if is_all && is_whole && read.len() <= from_page {
                break;
            }
        }
        drawn.sort_unstable();
        drawn.dedup();
        Ok(Drawn { vertices: drawn, of: None })
    }

    /// The beginning of a part of a scan, and whether the part is the whole scan.
    fn random_part(&self, labels: &LabelFilter) -> (ScanCursor, bool) {
        let (mut cursor, mut is_whole) = (ScanCursor::default(), true);
        while let Some(second) = self.view().split_scan(ElementKind::Vertex, labels, Share::ALL, &mut cursor) {
            is_whole = false;
            if self.random.borrow_mut().random() {
                cursor = second;
            }
        }
        (cursor, is_whole)
    }

    /// A request for edges; `with_edges` if they are tested.
    fn request(&self, edges: &EdgesOf, with_edges: bool) -> ExpandRequest {
        let labels = match edges.labels.is_empty() {
            true => LabelFilter::Any,
            false => self.view().label_filter(&edges.labels),
        };
        ExpandRequest { direction: edges.direction, labels, edges: with_edges, limit: LIST_MAX }
    }

    fn drawn_edges(
        &self,
        from: &[VertexId],
        edges: &EdgesOf,
        conditions: &[Condition],
        most: usize,
    ) -> Result<DrawnEdges> {
        let request = self.request(edges, !conditions.is_empty());
        let mut degrees = Vec::new();
        self.view().degrees(from, request.direction, &request.labels, &mut degrees)?;
        self.takes(VERTEX * from.len() as f64);
        let of: u64 = degrees.iter().sum();
        let mut drawn = DrawnEdges { of, ..DrawnEdges::default() };
        let mut tested = Vec::new();
        let positions = self.positions(usize::try_from(of).unwrap_or(usize::MAX), most);
        let (mut before, mut next) = (0, 0);
        for (row, (vertex, degree)) in (0..).zip(from.iter().zip(degrees)) {
            let first = next;
            next += positions[first..].iter().take_while(|at| (**at as u64) < before + degree).count();
            if next > first {
                let mut list = Expansion::default();
                self.view().expand(&[*vertex], &request, &mut ExpandCursor::default(), &mut list)?;
                self.takes(VERTEX + NEXT * list.neighbor.len() as f64);
                for at in positions[first..next].iter().map(|at| *at as u64 - before) {
                    // Of a long list, only the beginning was read.
                    let at = (u128::from(at) * list.neighbor.len() as u128 / u128::from(degree)) as usize;
                    let Some(neighbor) = list.neighbor.get(at) else { continue };
                    drawn.rows.push(row);
                    drawn.neighbors.push(*neighbor);
                    tested.extend(list.edge.get(at));
                }
            }
            before += degree;
        }
        drawn.drawn = drawn.rows.len() as u64;
        if !conditions.is_empty() {
            let kept = self.meeting_all(ObjectColumn::Edges(tested), conditions)?;
            drawn.rows = kept.iter().map(|at| drawn.rows[*at as usize]).collect();
            drawn.neighbors = kept.iter().map(|at| drawn.neighbors[*at as usize]).collect();
        }
        Ok(drawn)
    }

    /// The positions of the elements that meet all conditions.
    fn meeting_all(&self, elements: ObjectColumn, conditions: &[Condition]) -> Result<Vec<u32>> {
        let count = elements.len();
        self.takes(VALUE * (count * conditions.len()) as f64);
        let mut filter = Filter::new(conditions);
        filter.begin(&self.context)?;
        let kept = filter.select(&elements, &self.context)?;
        Ok(kept.unwrap_or_else(|| (0..count as u32).collect()))
    }

    /// The value of each vertex by a `by()` that takes a part of it; `None` if it does more, or cannot be read.
    fn values(&self, vertices: &[VertexId], by: &By) -> Option<Vec<Option<Value>>> {
        self.takes(VALUE * vertices.len() as f64);
        match by {
            By::Key(key) => {
                let mut found = ValueRows::default();
                if let Some(key) = self.view().key_of(key) {
                    self.view().vertex_values(vertices, key, &mut found).ok()?;
                }
                let mut values = vec![None; vertices.len()];
                for (row, value) in found.row.iter().zip(found.value) {
                    values[*row as usize].get_or_insert(value);
                }
                Some(values)
            }
            By::Token(Token::Id) => {
                let mut ids = Vec::new();
                self.view().vertex_user_ids(vertices, &mut ids).ok()?;
                Some(ids.into_iter().map(Some).collect())
            }
            By::Identity | By::Token(_) | By::Column(_) | By::Traversal(_) => None,
        }
    }

    /// For each pair, the edges from the first vertex to the second; `None` if both have long lists.
    fn counted_between(
        &self,
        [from, to]: [&[VertexId]; 2],
        edges: &EdgesOf,
        conditions: &[Condition],
    ) -> Result<Option<Vec<u64>>> {
        let request = self.request(edges, !conditions.is_empty());
        let reversed = ExpandRequest { direction: request.direction.reverse(), ..request.clone() };
        let (mut there, mut back) = (Vec::new(), Vec::new());
        self.view().degrees(from, request.direction, &request.labels, &mut there)?;
        self.view().degrees(to, reversed.direction, &reversed.labels, &mut back)?;
        self.takes(2.0 * VERTEX * from.len() as f64);
        let mut counts = Vec::with_capacity(from.len());
        for (at, (a, b)) in from.iter().zip(to).enumerate() {
            let (shorter, request, other) = if there[at] <= back[at] { (a, &request, b) } else { (b, &reversed, a) };
            if there[at].min(back[at]) > LIST_MAX as u64 {
                return Ok(None);
            }
            let mut list = Expansion::default();
            let mut cursor = ExpandCursor::default();
            while !self.view().expand(&[*shorter], request, &mut cursor, &mut list)? {}
            self.takes(VERTEX + NEXT * list.neighbor.len() as f64);
            let meets = |(_, neighbor): &(usize, &VertexId)| *neighbor == other;
            let between: Vec<usize> = list.neighbor.iter().enumerate().filter(meets).map(|(at, _)| at).collect();
            counts.push(match conditions.is_empty() || between.is_empty() {
                true => between.len() as u64,
                false => {
                    let edges = between.into_iter().map(|at| list.edge[at]).collect();
                    self.meeting_all(ObjectColumn::Edges(edges), conditions)?.len() as u64
                }
            });
        }
        Ok(Some(counts))
    }
}

impl SampleGraph for ViewSample {
    fn vertices(&self, of: &Begin<'_>, most: usize) -> Option<Drawn> {
        match of {
            Begin::Ids(ids) => self.by_ids(ids, most).ok()?,
            Begin::Found(index, range) => {
                let mut found = Vec::new();
                self.view().index_vertices(*index, &[], range, Share::ALL, &mut found).ok()?;
                self.takes(3.0 * VERTEX + 2.0 * NEXT * found.len() as f64);
                Some(Drawn { of: Some(found.len() as u64), vertices: self.some_of(&found, most) })
            }
            Begin::Scanned(labels) => self.scanned(*labels, most).ok(),
        }
    }

    fn edges(&self, from: &[VertexId], edges: &EdgesOf, conditions: &[Condition], most: usize) -> Option<DrawnEdges> {
        self.drawn_edges(from, edges, conditions, most).ok()
    }

    fn meeting(&self, vertices: Vec<VertexId>, conditions: &[Condition]) -> Option<Vec<u32>> {
        self.meeting_all(ObjectColumn::Vertices(vertices), conditions).ok()
    }

    fn edges_between(&self, pairs: [&[VertexId]; 2], edges: &EdgesOf, conditions: &[Condition]) -> Option<Vec<u64>> {
        self.counted_between(pairs, edges, conditions).ok()?
    }

    fn degrees(&self, of: &[VertexId], edges: &EdgesOf) -> Option<Vec<u64>> {
        let ExpandRequest { direction, labels, .. } = self.request(edges, false);
        let mut degrees = Vec::new();
        self.view().degrees(of, direction, &labels, &mut degrees).ok()?;
        self.takes(VERTEX * of.len() as f64);
        Some(degrees)
    }

    fn comparing(&self, comparison: Comparison, pairs: [&[VertexId]; 2], by: [&By; 2]) -> Option<Vec<bool>> {
        let [left, right] = [0, 1].map(|side| self.values(pairs[side], by[side]));
        let compare = |(left, right): (Option<Value>, Option<Value>)| {
            left.zip(right).is_some_and(|(left, right)| compares(comparison, &left, &right))
        };
        Some(left?.into_iter().zip(right?).map(compare).collect())
    }

    fn nanos(&self) -> f64 {
        self.nanos.get()
    }
}
