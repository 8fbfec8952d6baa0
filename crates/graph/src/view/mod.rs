//! The read interface of a graph: batches of ids in, columns of results out.
//!
//! A [`GraphView`] shows one snapshot and, inside a transaction, that transaction's own earlier statements. Concurrent
//! writers do not change what it shows. A dependent random read costs about thirty times an overlapped one (369 ns
//! against 12.7 ns on the machine of our baselines). So every method takes many ids, keeps their reads in flight, and
//! appends to columns that the caller owns and uses again.
//!
//! Laws that every implementation keeps:
//!
//! - **GRAPH-1.** Results come out in the order of the input. The `row` column ascends. It holds the position in the
//!   input that a result belongs to (its *input row*).
//! - **GRAPH-2.** An edge is visible only if both its ends are visible. So an expansion does not look at the neighbors
//!   themselves.
//! - **GRAPH-3.** A [`ScanCursor`] or [`ExpandCursor`] is a position, not a pointer. The caller may keep it for as long
//!   as the snapshot lives. A call goes on where the last one stopped, and all calls together meet each element exactly
//!   once.
//! - **GRAPH-4.** Within one adjacency list the order is arbitrary, but it is fixed for the expansion that goes on
//!   through one cursor. Another expansion of the same snapshot may meet the list in another order, if it was compacted
//!   in between.
//! - **GRAPH-5.** An id that names no visible element is skipped: it gives no rows, and no error.
//!
//! | file | content |
//! |---|---|
//! | `request.rs` | the requests of callers: labels, tablets, ranges, cursors |
//! | `rows.rs` | the columns that most methods fill |
//! | `columns.rs`, `numbers.rs` | values by key, and numbers of one type, without a row for each property |
//! | `adjacency.rs` | neighbors in place, for readers of every edge |
//! | `pages.rs` | pages of vertices, for readers that read again what has changed |
//! | `forward.rs` | a macro for views around other views |
//! | `late.rs` | the interface of a view that must fetch what is read |

mod adjacency;
mod columns;
mod forward;
mod late;
mod numbers;
mod pages;
mod request;
mod rows;

use std::sync::Arc;

use smol_str::SmolStr;

use crate::catalog::Catalog;
use crate::connections::Connections;
use crate::error::{Error, Result};
use crate::hash::FastSet;
use crate::ids::{EdgeId, ElementKind, IndexId, KeyId, LabelId, LabelSetId, VertexId};
use crate::user_id::UserId;
use crate::value::{Direction, Value};

pub use adjacency::AdjacencyRuns;
pub use columns::{RowValues, ValueColumns};
pub use late::{Completions, Elements, Hold, LateReads, Need, Ticket, Want};
pub use numbers::{NumberType, Numbers};
pub use pages::{EdgeChange, EdgeChangeKind, GraphChanges, VertexPage};
pub use request::{
    AdjacencyRequest, ExpandCursor, ExpandRequest, IndexInfo, IndexLookup, IndexRange, LabelFilter, LiveCounts,
    ScanCursor, Share,
};
pub use rows::{Expansion, PropertyRow, ValueRows};

/// A graph as one snapshot shows it. Implementations keep the laws GRAPH-1 to GRAPH-5.
pub trait GraphView: Send + Sync {
    /// The names of labels and property keys.
    fn catalog(&self) -> &Catalog;

    /// If reads may be late, the interface by which a query asks for them. A run looks here once, when it begins; the
    /// answer must not change. A view in memory, as this default, has none.
    fn late(&self) -> Option<&dyn LateReads> {
        None
    }

    /// The key of a name, for reading properties under it. A reader asks here and not the catalog: if the key does not
    /// exist yet, the reader depends on that, and the read set of a serializable transaction must say so.
    fn key_of(&self, name: &str) -> Option<KeyId> {
        self.catalog().key(name)
    }

    /// The name of a key. A view may have keys that are not in the catalog: those of values that it shows and that are not
    /// stored.
    fn key_name(&self, key: KeyId) -> SmolStr {
        self.catalog().key_name(key)
    }

    /// Appends the vertices that users know by these ids, one entry for each id: `None` if there is no visible one.
    fn find_vertices(&self, ids: &[UserId], out: &mut Vec<Option<VertexId>>) -> Result<()>;

    /// Appends the edges that users know by these ids, one entry for each id: `None` if there is no visible one.
    fn find_edges(&self, ids: &[UserId], out: &mut Vec<Option<EdgeId>>) -> Result<()>;

    /// Looks vertices up as [`GraphView::find_vertices`] does, and appends their values under `keys[i]` to `values[i]`.
    /// The input rows of the values are positions in `ids`. One call does both, so that the look-ups and the reads of
    /// properties overlap. Fails if `keys` and `values` differ in length.
    fn look_up_vertices(
        &self,
        ids: &[UserId],
        keys: &[KeyId],
        found: &mut Vec<Option<VertexId>>,
        values: &mut [ValueRows],
    ) -> Result<()> {
        look_up_in_steps(self, ids, keys, found, values)
    }

    /// Removes the vertices that are not visible.
    fn retain_vertices(&self, ids: &mut Vec<VertexId>) -> Result<()>;

    /// Removes the edges that are not visible.
    fn retain_edges(&self, ids: &mut Vec<EdgeId>) -> Result<()>;

    /// Cuts off about half of the pages with these labels that a scan of a share has left, for another thread. `cursor`
    /// ends where the returned cursor begins. Returns `None` if too few pages are left, or if the view cannot cut scans,
    /// as this default cannot.
    fn split_scan(
        &self,
        kind: ElementKind,
        labels: &LabelFilter,
        share: Share,
        cursor: &mut ScanCursor,
    ) -> Option<ScanCursor> {
        let _ = (kind, labels, share, cursor);
        None
    }

    /// Appends up to `limit` vertices of a share. Returns true if the scan has reached its end.
    fn scan_vertices(
        &self,
        labels: &LabelFilter,
        share: Share,
        cursor: &mut ScanCursor,
        limit: usize,
        out: &mut Vec<VertexId>,
    ) -> Result<bool>;

    /// Appends up to `limit` edges of a share. Returns true if the scan has reached its end.
    fn scan_edges(
        &self,
        labels: &LabelFilter,
        share: Share,
        cursor: &mut ScanCursor,
        limit: usize,
        out: &mut Vec<EdgeId>,
    ) -> Result<bool>;

    /// Appends up to `limit` vertices of a share that have a value under the key for which [`IndexRange::holds`].
    /// Returns true if the scan has reached its end. A call looks at a bounded number of vertices, so it may append
    /// nothing before the end.
    #[expect(clippy::too_many_arguments, reason = "a scan and its condition")]
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
    #[expect(clippy::too_many_arguments, reason = "a scan and its condition")]
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

    /// The number of visible vertices of a share. Pages without version information are counted without a scan.
    fn count_vertices(&self, labels: &LabelFilter, share: Share) -> Result<u64>;

    /// The number of visible edges of a share. Pages without version information are counted without a scan.
    fn count_edges(&self, labels: &LabelFilter, share: Share) -> Result<u64>;

    /// Appends the neighbors of each vertex until about [`ExpandRequest::limit`] are in the output. Returns true if the
    /// neighbors of all vertices have been appended.
    fn expand(
        &self,
        vertices: &[VertexId],
        request: &ExpandRequest,
        cursor: &mut ExpandCursor,
        out: &mut Expansion,
    ) -> Result<bool>;

    /// Calls `each` with the neighbors of all vertices of a share, a range of vertices at a time. Lists without version
    /// information are not copied. [`AdjacencyRuns`] says in which order they come. The first error of `each` ends the
    /// walk and is returned.
    fn for_each_adjacency(
        &self,
        request: &AdjacencyRequest,
        each: &mut dyn FnMut(&AdjacencyRuns<'_>) -> Result<()>,
    ) -> Result<()>;

    /// Appends the pages of vertices with these labels, ascending by the ids of their vertices. A page may have no vertex that
    /// the view shows. Pages that have none may be left out.
    ///
    /// # Errors
    ///
    /// `Unsupported` if the view has no pages, as this default.
    fn vertex_pages(&self, labels: &LabelFilter, out: &mut Vec<VertexPage>) -> Result<()> {
        let _ = (labels, out);
        Err(Error::unsupported("this view of the graph cannot be read page by page: read a graph that is in memory"))
    }

    /// The timestamp of the last commit that the view shows, if it shows all commits up to that one and nothing else. What
    /// was read at one such timestamp and has not changed since, is the same at a later one.
    fn shown_commit(&self) -> Option<u64> {
        None
    }

    /// Appends what the commits after the one at `since`, up to [`GraphView::shown_commit`], have changed. Returns false if the view does not know
    /// it, or if there are more than `most` changes. Then what is appended has no meaning. A view that knows changes begins to note them when
    /// it is asked first, and those of properties if they are asked for (`with_properties`). It keeps about as many as its readers take.
    fn changes_since(&self, since: u64, with_properties: bool, most: usize, out: &mut GraphChanges) -> Result<bool> {
        let _ = (since, with_properties, most, out);
        Ok(false)
    }

    /// The timestamp of the last commit that added, removed or changed an edge, or a later one; `None` if the view does not know.
    fn edges_changed(&self) -> Option<u64> {
        None
    }

    /// Appends the number of edges of each vertex, one number for each input row.
    fn degrees(
        &self,
        vertices: &[VertexId],
        direction: Direction,
        labels: &LabelFilter,
        out: &mut Vec<u64>,
    ) -> Result<()>;

    /// Appends source and target of each edge, one entry for each input row. The edges must be visible.
    fn edge_ends(&self, edges: &[EdgeId], sources: &mut Vec<VertexId>, targets: &mut Vec<VertexId>) -> Result<()>;

    /// Appends the label set of each vertex, one for each input row. The vertices must be visible.
    fn vertex_labels(&self, vertices: &[VertexId], out: &mut Vec<LabelSetId>) -> Result<()>;

    /// Appends the label set of each edge, one for each input row. The edges must be visible.
    fn edge_labels(&self, edges: &[EdgeId], out: &mut Vec<LabelSetId>) -> Result<()>;

    /// Appends the id by which users know each vertex, as a value, one for each input row.
    fn vertex_user_ids(&self, vertices: &[VertexId], out: &mut Vec<Value>) -> Result<()>;

    /// Appends the id by which users know each edge, as a value, one for each input row.
    fn edge_user_ids(&self, edges: &[EdgeId], out: &mut Vec<Value>) -> Result<()>;

    /// Appends the values of one key. A vertex may have none, one or several.
    fn vertex_values(&self, vertices: &[VertexId], key: KeyId, out: &mut ValueRows) -> Result<()>;

    /// Appends the values of one key: at most one for each edge.
    fn edge_values(&self, edges: &[EdgeId], key: KeyId, out: &mut ValueRows) -> Result<()>;

    /// If all values of one key are numbers of one type of at most 64 bits, and `out` is empty or holds the same type,
    /// appends them and returns true. Otherwise appends nothing and returns false; the caller then reads
    /// [`GraphView::vertex_values`].
    fn vertex_numbers(&self, vertices: &[VertexId], key: KeyId, out: &mut Numbers) -> Result<bool>;

    /// As [`GraphView::vertex_numbers`], for edges.
    fn edge_numbers(&self, edges: &[EdgeId], key: KeyId, out: &mut Numbers) -> Result<bool>;

    /// Appends whole properties of each vertex: under `keys`, in the order given, or all properties in the order of
    /// the page's columns.
    fn vertex_properties(
        &self,
        vertices: &[VertexId],
        keys: Option<&[KeyId]>,
        out: &mut Vec<PropertyRow>,
    ) -> Result<()>;

    /// Appends whole properties of each edge: under `keys`, in the order given, or all properties in the order of the
    /// page's columns.
    fn edge_properties(&self, edges: &[EdgeId], keys: Option<&[KeyId]>, out: &mut Vec<PropertyRow>) -> Result<()>;

    /// Appends the same values as [`GraphView::vertex_properties`], a column for each key. If `keys` names keys, each
    /// of them gets a column, even an empty one. If not, every key under which a vertex may have a value gets one, in
    /// any order.
    fn vertex_columns(&self, vertices: &[VertexId], keys: Option<&[KeyId]>, out: &mut ValueColumns) -> Result<()> {
        vertex_columns_of_rows(self, vertices, keys, out)
    }

    /// As [`GraphView::vertex_columns`], for edges.
    fn edge_columns(&self, edges: &[EdgeId], keys: Option<&[KeyId]>, out: &mut ValueColumns) -> Result<()> {
        edge_columns_of_rows(self, edges, keys, out)
    }

    /// The indexes of vertices and of edges that a reader of this snapshot may use.
    fn indexes(&self) -> Vec<IndexInfo>;

    /// Appends, once each, the visible vertices of a share that have the values of `prefix` under the first keys of an
    /// index and a value of `range` under the next key. A hash index answers only equality on all its keys. Fails with
    /// `NotFound` if the index was dropped; the caller then scans. An index of edges is an error.
    fn index_vertices(
        &self,
        index: IndexId,
        prefix: &[Value],
        range: &IndexRange,
        share: Share,
        out: &mut Vec<VertexId>,
    ) -> Result<()>;

    /// As [`GraphView::index_vertices`], for an index of edges.
    fn index_edges(
        &self,
        index: IndexId,
        prefix: &[Value],
        range: &IndexRange,
        share: Share,
        out: &mut Vec<EdgeId>,
    ) -> Result<()>;

    /// Appends, once each, the vertices that all of the look-ups find, of which there is at least one. The first should
    /// be the one that finds the fewest: a view may test the values of what that has, and leave other indexes unread.
    fn intersect_vertices(&self, lookups: &[IndexLookup<'_>], share: Share, out: &mut Vec<VertexId>) -> Result<()> {
        in_all(lookups, out, |IndexLookup { index, prefix, range }, found| {
            self.index_vertices(*index, prefix, range, share, found)
        })
    }

    /// As [`GraphView::intersect_vertices`], for a caller that has no use for more than `most` vertices. Returns false if
    /// they are more; a view may do so, too, if it would have to read many more entries of an index than that. Then
    /// nothing that the caller does may depend on what was appended.
    fn find_few_vertices(
        &self,
        lookups: &[IndexLookup<'_>],
        share: Share,
        most: usize,
        out: &mut Vec<VertexId>,
    ) -> Result<bool> {
        let before = out.len();
        self.intersect_vertices(lookups, share, out)?;
        Ok(out.len() - before <= most)
    }

    /// As [`GraphView::intersect_vertices`], for indexes of edges.
    fn intersect_edges(&self, lookups: &[IndexLookup<'_>], share: Share, out: &mut Vec<EdgeId>) -> Result<()> {
        in_all(lookups, out, |IndexLookup { index, prefix, range }, found| {
            self.index_edges(*index, prefix, range, share, found)
        })
    }

    /// Counts by label set, of the newest commits and not of the snapshot.
    fn live_counts(&self) -> LiveCounts;

    /// The epoch of the facts about edges. A reader that finds the epoch of its [`GraphView::connections`] here may rely
    /// on those facts for as long as it reads the view. `None` if the view may show edges that the facts do not cover,
    /// as this default does.
    fn connection_epoch(&self) -> Option<u64> {
        None
    }

    /// The facts that hold for every edge of the view; `None` as for [`GraphView::connection_epoch`].
    fn connections(&self) -> Option<Arc<Connections>> {
        None
    }

    /// A filter for the label sets that contain a label of one of these names, or whose whole name is one of them
    /// (`a::b`).
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

/// Appends what `find` finds for all of the look-ups.
fn in_all<T: Copy + Eq + std::hash::Hash>(
    lookups: &[IndexLookup<'_>],
    out: &mut Vec<T>,
    mut find: impl FnMut(&IndexLookup<'_>, &mut Vec<T>) -> Result<()>,
) -> Result<()> {
    let Some((first, others)) = lookups.split_first() else { return Ok(()) };
    let mut found = Vec::new();
    find(first, &mut found)?;
    for lookup in others {
        let mut other = Vec::new();
        find(lookup, &mut other)?;
        let other: FastSet<T> = other.into_iter().collect();
        found.retain(|element| other.contains(element));
    }
    out.extend(found);
    Ok(())
}

/// Fails unless there is one output for each key, as [`GraphView::look_up_vertices`] requires.
pub fn check_value_outputs(keys: &[KeyId], values: &[ValueRows]) -> Result<()> {
    if keys.len() == values.len() {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "values of {} keys are to go to {} outputs: give one output for each key",
        keys.len(),
        values.len()
    )))
}

/// [`GraphView::look_up_vertices`] by way of `find_vertices` and `vertex_values`, for views without a faster way.
pub fn look_up_in_steps<V: GraphView + ?Sized>(
    view: &V,
    ids: &[UserId],
    keys: &[KeyId],
    found: &mut Vec<Option<VertexId>>,
    values: &mut [ValueRows],
) -> Result<()> {
    check_value_outputs(keys, values)?;
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

/// [`GraphView::vertex_columns`] by way of `vertex_properties`, for views without a faster way.
pub fn vertex_columns_of_rows<V: GraphView + ?Sized>(
    view: &V,
    vertices: &[VertexId],
    keys: Option<&[KeyId]>,
    out: &mut ValueColumns,
) -> Result<()> {
    let mut rows = Vec::new();
    view.vertex_properties(vertices, keys, &mut rows)?;
    out.extend(rows, keys);
    Ok(())
}

/// [`GraphView::edge_columns`] by way of `edge_properties`, for views without a faster way.
pub fn edge_columns_of_rows<V: GraphView + ?Sized>(
    view: &V,
    edges: &[EdgeId],
    keys: Option<&[KeyId]>,
    out: &mut ValueColumns,
) -> Result<()> {
    let mut rows = Vec::new();
    view.edge_properties(edges, keys, &mut rows)?;
    out.extend(rows, keys);
    Ok(())
}
