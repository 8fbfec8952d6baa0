//! The read interface of a graph: batches of ids in, columns out.
//!
//! A dependent random read costs thirty times an overlapped one on our machines, so nothing here follows
//! one pointer at a time: every method takes many ids, keeps their reads in flight, and appends to
//! columns that the caller owns and recycles. A view answers for one snapshot (and, inside a
//! transaction, for that transaction's own earlier statements), whatever writers do meanwhile.
//!
//! Laws every implementation keeps:
//!
//! 1. Rows come out in input order: the `row` columns ascend, and say which input a result belongs to.
//! 2. An edge is visible only if both its ends are; expanding never looks at the neighbor's header.
//! 3. A [`ScanCursor`] or [`ExpandCursor`] is a position, not a pointer: it may be kept across yields and
//!    goes on from where it stopped, meeting each element exactly once.
//! 4. Within one adjacency list the order is arbitrary. It is fixed for an expansion that goes on through its cursor;
//!    another one of the same snapshot may meet the list in another order, when it was compacted in between.
//! 5. Ids that name nothing visible are skipped: they give no rows, never an error.

use std::cmp::Ordering;
use std::sync::Arc;

use smol_str::SmolStr;

use crate::adjacency::{AdjacencyRequest, AdjacencyRuns};
use crate::catalog::Catalog;
use crate::columns::{ValueColumns, edge_columns_of_rows, vertex_columns_of_rows};
use crate::compare::watched;
use crate::error::{Error, Result};
use crate::ids::{EdgeId, IndexId, KeyId, LabelId, LabelSetId, UserId, VertexId};
use crate::numbers::Numbers;
use crate::value::{Direction, Value};

/// Which labels a scan or an expansion takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabelFilter {
    /// Every element.
    Any,
    /// Elements with one of these label sets; none where the list is empty.
    Sets(Arc<[LabelSetId]>),
}

impl LabelFilter {
    /// Whether an element with this label set is taken.
    #[inline]
    pub fn takes(&self, set: LabelSetId) -> bool {
        match self {
            LabelFilter::Any => true,
            LabelFilter::Sets(sets) => sets.contains(&set),
        }
    }
}

/// A node's share of the tablets: those whose number leaves the remainder `index` when divided by `of`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Which share.
    pub index: u16,
    /// Of how many.
    pub of: u16,
}

impl Share {
    /// All tablets.
    pub const ALL: Share = Share { index: 0, of: 1 };

    /// Whether the tablet belongs to the share.
    #[inline]
    pub fn takes(self, tablet: crate::ids::TabletId) -> bool {
        tablet.0 % self.of == self.index
    }
}

/// How far a scan has come. `Default` is the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanCursor {
    /// The tablet's place in the view's list of tablets.
    pub tablet: u32,
    /// The page inside the tablet.
    pub page: u32,
    /// The offset inside the page.
    pub offset: u32,
}

/// How far an expansion of a batch has come. `Default` is the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpandCursor {
    /// The input row.
    pub row: u32,
    /// Which of the row's lists (direction and label); the order is the implementation's.
    pub list: u32,
    /// The position inside the list.
    pub position: u64,
}

/// Neighbors met by an expansion: parallel columns.
#[derive(Default, Debug)]
pub struct Expansion {
    /// The input row each belongs to, ascending.
    pub row: Vec<u32>,
    /// The vertex at the other end.
    pub neighbor: Vec<VertexId>,
    /// The edge; empty where edges were not asked for.
    pub edge: Vec<EdgeId>,
}

impl Expansion {
    /// Forgets the content and keeps the memory.
    pub fn clear(&mut self) {
        self.row.clear();
        self.neighbor.clear();
        self.edge.clear();
    }

    /// How many neighbors.
    pub fn len(&self) -> usize {
        self.neighbor.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.neighbor.is_empty()
    }
}

/// What an expansion asks for.
#[derive(Clone, Debug)]
pub struct ExpandRequest {
    /// Which way.
    pub direction: Direction,
    /// Along which edges.
    pub labels: LabelFilter,
    /// Whether the `edge` column is wanted.
    pub edges: bool,
    /// Stop soon after this many neighbors are in the output (at least one list entry is always taken).
    pub limit: usize,
}

/// Values of properties: parallel columns. A row has as many entries as it has values.
#[derive(Default, Debug)]
pub struct ValueRows {
    /// The input row each belongs to, ascending.
    pub row: Vec<u32>,
    /// The value.
    pub value: Vec<Value>,
}

impl ValueRows {
    /// Forgets the content and keeps the memory.
    pub fn clear(&mut self) {
        self.row.clear();
        self.value.clear();
    }
}

/// One property of an element as [`GraphView::vertex_properties`] and [`GraphView::edge_properties`]
/// return it.
#[derive(Clone, Debug, PartialEq)]
pub struct PropertyRow {
    /// The input row.
    pub row: u32,
    /// The key.
    pub key: KeyId,
    /// Which of several values under the key; 0 for edges.
    pub ordinal: u32,
    /// The value.
    pub value: Value,
    /// Meta-properties; empty for edges.
    pub meta: Arc<Vec<(KeyId, Value)>>,
}

/// What an index is asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum IndexRange {
    /// The values equal to one of these.
    Equal(Vec<Value>),
    /// The values between two bounds, in the order of `compare::order`; only of an ordered index. A bound
    /// is a value and whether it belongs to the range.
    Between {
        /// From here up.
        low: Option<(Value, bool)>,
        /// Up to here.
        high: Option<(Value, bool)>,
    },
}

impl IndexRange {
    /// Whether a value passes as `has(key, P)` tests it: equality is [`watched::equal`], and a bound keeps only
    /// what is comparable with it (`gt(1)` takes no string). This is what predicate scans take.
    pub fn holds(&self, value: &Value) -> bool {
        match self {
            IndexRange::Equal(values) => watched::is_among(value, values.iter()),
            IndexRange::Between { low, high } => {
                let passes = |bound: &Option<(Value, bool)>, beyond: Ordering| match bound {
                    None => true,
                    Some((bound, inclusive)) => watched::comparable(value, bound)
                        .is_some_and(|order| order == beyond || (order.is_eq() && *inclusive)),
                };
                passes(low, Ordering::Greater) && passes(high, Ordering::Less)
            }
        }
    }
}

/// An index as the planner sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexInfo {
    /// Its number.
    pub id: IndexId,
    /// The label it is restricted to; `None`: every vertex with the key.
    pub label: Option<LabelId>,
    /// The keys, most significant first; a composite index has several.
    pub keys: Arc<[KeyId]>,
    /// Whether it answers ranges, and equality on its first keys.
    pub ordered: bool,
    /// Whether it keeps values (of several keys: their combination) unique.
    pub unique: bool,
}

/// Numbers for the planner: cheap to get, not exact while writers go on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statistics {
    /// Vertices by label set.
    pub vertices: Vec<(LabelSetId, u64)>,
    /// Edges by label set.
    pub edges: Vec<(LabelSetId, u64)>,
}

/// A graph as one snapshot shows it. See the module's laws.
pub trait GraphView: Send + Sync {
    /// The names.
    fn catalog(&self) -> &Catalog;

    /// The key of a name, for reading under it. That there is none yet is something read too, which a transaction
    /// may have to remember; so readers ask here, not the catalog.
    fn key_of(&self, name: &str) -> Option<KeyId> {
        self.catalog().key(name)
    }

    /// The vertices that users know by these ids; `None` where there is no visible one.
    fn find_vertices(&self, ids: &[UserId], out: &mut Vec<Option<VertexId>>) -> Result<()>;

    /// The edges that users know by these ids; `None` where there is no visible one.
    fn find_edges(&self, ids: &[UserId], out: &mut Vec<Option<EdgeId>>) -> Result<()>;

    /// Looks vertices up as [`GraphView::find_vertices`] does, and appends their values under some keys: those of
    /// `keys[i]` to `values[i]`, whose rows count the ids. For one round trip of a program that knows ids and wants
    /// properties; the two steps of a batch overlap better in one call than in several.
    fn look_up_vertices(
        &self,
        ids: &[UserId],
        keys: &[KeyId],
        found: &mut Vec<Option<VertexId>>,
        values: &mut [ValueRows],
    ) -> Result<()> {
        look_up_in_steps(self, ids, keys, found, values)
    }

    /// Keeps only the vertices that are visible.
    fn retain_vertices(&self, ids: &mut Vec<VertexId>) -> Result<()>;

    /// Keeps only the edges that are visible.
    fn retain_edges(&self, ids: &mut Vec<EdgeId>) -> Result<()>;

    /// Appends up to `limit` vertices of a share; true when the scan has reached its end.
    fn scan_vertices(
        &self,
        labels: &LabelFilter,
        share: Share,
        cursor: &mut ScanCursor,
        limit: usize,
        out: &mut Vec<VertexId>,
    ) -> Result<bool>;

    /// Appends up to `limit` edges of a share; true when the scan has reached its end.
    fn scan_edges(
        &self,
        labels: &LabelFilter,
        share: Share,
        cursor: &mut ScanCursor,
        limit: usize,
        out: &mut Vec<EdgeId>,
    ) -> Result<bool>;

    /// Appends up to `limit` vertices of a share that have a value under the key of which
    /// [`IndexRange::holds`]; true when the scan has reached its end. A call looks at a bounded number of
    /// vertices, so it may append nothing and not be at the end.
    #[expect(clippy::too_many_arguments, reason = "a scan and what it takes")]
    fn scan_vertices_where(
        &self,
        labels: &LabelFilter,
        key: KeyId,
        range: &IndexRange,
        share: Share,
        cursor: &mut ScanCursor,
        limit: usize,
        out: &mut Vec<VertexId>,
    ) -> Result<bool>;

    /// As [`GraphView::scan_vertices_where`], for edges.
    #[expect(clippy::too_many_arguments, reason = "a scan and what it takes")]
    fn scan_edges_where(
        &self,
        labels: &LabelFilter,
        key: KeyId,
        range: &IndexRange,
        share: Share,
        cursor: &mut ScanCursor,
        limit: usize,
        out: &mut Vec<EdgeId>,
    ) -> Result<bool>;

    /// How many vertices of a share are visible: without a scan wherever pages are clean.
    fn count_vertices(&self, labels: &LabelFilter, share: Share) -> Result<u64>;

    /// How many edges of a share are visible: without a scan wherever pages are clean.
    fn count_edges(&self, labels: &LabelFilter, share: Share) -> Result<u64>;

    /// Appends the neighbors of each vertex; true when all are done. See [`ExpandRequest::limit`].
    fn expand(
        &self,
        vertices: &[VertexId],
        request: &ExpandRequest,
        cursor: &mut ExpandCursor,
        out: &mut Expansion,
    ) -> Result<bool>;

    /// Shows `each` the neighbors of all vertices of a share, a stretch of vertices at a time and without copying
    /// clean lists. Stops at the first error, which it returns. See [`AdjacencyRuns`] for what comes in what order.
    fn for_each_adjacency(
        &self,
        request: &AdjacencyRequest,
        each: &mut dyn FnMut(&AdjacencyRuns<'_>) -> Result<()>,
    ) -> Result<()>;

    /// Appends the number of edges of each vertex: one number an input row.
    fn degrees(
        &self,
        vertices: &[VertexId],
        direction: Direction,
        labels: &LabelFilter,
        out: &mut Vec<u64>,
    ) -> Result<()>;

    /// Appends source and target of each edge: one entry an input row. The edges must be visible.
    fn edge_ends(&self, edges: &[EdgeId], sources: &mut Vec<VertexId>, targets: &mut Vec<VertexId>) -> Result<()>;

    /// Appends the label set of each vertex: one an input row.
    fn vertex_labels(&self, vertices: &[VertexId], out: &mut Vec<LabelSetId>) -> Result<()>;

    /// Appends the label set of each edge: one an input row.
    fn edge_labels(&self, edges: &[EdgeId], out: &mut Vec<LabelSetId>) -> Result<()>;

    /// Appends the id that users know, as a value: one an input row.
    fn vertex_user_ids(&self, vertices: &[VertexId], out: &mut Vec<Value>) -> Result<()>;

    /// Appends the id that users know, as a value: one an input row.
    fn edge_user_ids(&self, edges: &[EdgeId], out: &mut Vec<Value>) -> Result<()>;

    /// Appends the values of one key: as many a row as the vertex has.
    fn vertex_values(&self, vertices: &[VertexId], key: KeyId, out: &mut ValueRows) -> Result<()>;

    /// Appends the values of one key: at most one a row.
    fn edge_values(&self, edges: &[EdgeId], key: KeyId, out: &mut ValueRows) -> Result<()>;

    /// Appends the values of one key if all of them are numbers of one type of at most 64 bits, the type of what
    /// `out` holds already if it holds anything. Otherwise appends nothing and returns false: the values are then
    /// to be had from [`GraphView::vertex_values`].
    fn vertex_numbers(&self, vertices: &[VertexId], key: KeyId, out: &mut Numbers) -> Result<bool>;

    /// As [`GraphView::vertex_numbers`], for edges.
    fn edge_numbers(&self, edges: &[EdgeId], key: KeyId, out: &mut Numbers) -> Result<bool>;

    /// Appends whole properties: of these keys in their order, or all in the order of the page's columns.
    fn vertex_properties(
        &self,
        vertices: &[VertexId],
        keys: Option<&[KeyId]>,
        out: &mut Vec<PropertyRow>,
    ) -> Result<()>;

    /// Appends whole properties: of these keys in their order, or all in the order of the page's columns.
    fn edge_properties(&self, edges: &[EdgeId], keys: Option<&[KeyId]>, out: &mut Vec<PropertyRow>) -> Result<()>;

    /// Appends the values of these keys, or of all that the vertices have, by column: what
    /// [`GraphView::vertex_properties`] says of values. A key is there once it was asked for by name, whether or not
    /// anything has a value under it; of all keys, those that may have values, in no order that is promised.
    fn vertex_columns(&self, vertices: &[VertexId], keys: Option<&[KeyId]>, out: &mut ValueColumns) -> Result<()> {
        vertex_columns_of_rows(self, vertices, keys, out)
    }

    /// As [`GraphView::vertex_columns`], for edges.
    fn edge_columns(&self, edges: &[EdgeId], keys: Option<&[KeyId]>, out: &mut ValueColumns) -> Result<()> {
        edge_columns_of_rows(self, edges, keys, out)
    }

    /// The indexes that this snapshot may use.
    fn vertex_indexes(&self) -> Vec<IndexInfo>;

    /// Appends the visible vertices of a share that have the values of `prefix` under the first keys of an index
    /// and one in the range under the next, each once. A hash index is asked for equality on all its keys. An
    /// index that was dropped is `NotFound`: the caller scans instead.
    fn index_vertices(
        &self,
        index: IndexId,
        prefix: &[Value],
        range: &IndexRange,
        share: Share,
        out: &mut Vec<VertexId>,
    ) -> Result<()>;

    /// Numbers for the planner.
    fn statistics(&self) -> Statistics;

    /// The label sets that contain one of these names (or are written so: `a::b`).
    fn label_filter(&self, names: &[SmolStr]) -> LabelFilter {
        let catalog = self.catalog();
        let labels: Vec<LabelId> = names.iter().filter_map(|n| catalog.label(n)).collect();
        let mut sets = catalog.label_sets_with_any(&labels);
        for id in (0..catalog.label_set_count()).map(|i| LabelSetId(i as u32)) {
            if !sets.contains(&id) && names.contains(&catalog.label_set_name(id)) {
                sets.push(id);
            }
        }
        sets.sort_unstable();
        LabelFilter::Sets(sets.into())
    }
}

/// Fails unless there is a place for the values of every key; see [`GraphView::look_up_vertices`].
pub fn check_places(keys: &[KeyId], values: &[ValueRows]) -> Result<()> {
    if keys.len() == values.len() {
        return Ok(());
    }
    Err(Error::invalid(format!("values of {} keys are to go to {} places: give one a key", keys.len(), values.len())))
}

/// [`GraphView::look_up_vertices`] by the other methods, for views that have no shorter way.
pub fn look_up_in_steps<V: GraphView + ?Sized>(
    view: &V,
    ids: &[UserId],
    keys: &[KeyId],
    found: &mut Vec<Option<VertexId>>,
    values: &mut [ValueRows],
) -> Result<()> {
    check_places(keys, values)?;
    let before = found.len();
    view.find_vertices(ids, found)?;
    let (mut rows, mut vertices) = (Vec::new(), Vec::new());
    for (row, vertex) in (0..).zip(&found[before..]) {
        if let Some(vertex) = vertex {
            rows.push(row);
            vertices.push(*vertex);
        }
    }
    for (key, out) in keys.iter().zip(values) {
        let first = out.row.len();
        view.vertex_values(&vertices, *key, out)?;
        out.row[first..].iter_mut().for_each(|row| *row = rows[*row as usize]);
    }
    Ok(())
}
