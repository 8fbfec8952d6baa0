//! Verification: reads every file of a directory and checks the graph that they make.
//!
//! First it checks every checksum of the files, and what they say twice ([`mangrove_durable::verify`]), then the graph that is recovered from
//! them:
//!
//! 1. Every edge is exactly once in the adjacency list of its source and exactly once in that of its target, with the
//!    other end beside it. No list has any other entry.
//! 2. Every index finds, under each value, exactly the elements that have it, and has no other entries. A unique index
//!    finds at most one element.
//!
//! No file is changed. Verification takes the memory of the graph, a few words for each edge, and for one index at a
//! time a copy of all its entries.

use std::path::Path;
use std::sync::Arc;

use mangrove_durable::open::columns::ManifestColumnsFile;
use mangrove_durable::recovery::RecoveryProgress;
use mangrove_durable::verify::{OpenForms, Verified, VerifiedHome, verify_home};
use mangrove_graph::{
    Direction, EdgeId, ElementId, ElementKind, Error, ErrorKind, ExpandCursor, ExpandRequest, Expansion, GraphView,
    IndexInfo, IndexRange, KeyId, LabelFilter, Result, ScanCursor, Share, Value, ValueRows, VertexId, compare,
};
use mangrove_store::Store;
use mangrove_txn::{RecentOptions, TransactionManager};

use crate::backup::{PATIENCE, home_to_read};
use crate::columns::ColumnsComparison;
use crate::home::{Home, enter_to_read};
use crate::options::DatabaseOptions;
use crate::recovery::{Recovery, of_summary};
use crate::state::Database;

/// The number of elements that are checked at a time.
const PORTION: usize = 4096;

/// The numbers of files and elements that verification has read and found correct.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerifyReport {
    /// The number of manifests.
    pub manifests: u64,
    /// The number of checkpoint files.
    pub files: u64,
    /// The number of blocks in these files. Each block has a checksum.
    pub blocks: u64,
    /// The total size of these files in bytes.
    pub file_bytes: u64,
    /// The number of topology blocks that agree with the images of the same checkpoint.
    pub topology_blocks: u64,
    /// The number of runs of look-up indexes that agree with the images of the same checkpoint.
    pub index_runs: u64,
    /// The number of files of open columns that agree with the images of the same checkpoint.
    pub columns_files: u64,
    /// The number of objects of streams, in a home.
    pub objects: u64,
    /// The number of backups, in a home of backups.
    pub backups: u64,
    /// The result of recovering the graph, with the state of the log.
    pub recovery: Recovery,
    /// The number of vertices.
    pub vertices: u64,
    /// The number of edges, each of which is in the lists of both its ends.
    pub edges: u64,
    /// The indexes, each with the number of its entries.
    pub indexes: Vec<CheckedIndex>,
}

/// An index that agrees with the graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckedIndex {
    /// Whether vertices or edges are indexed.
    pub element: ElementKind,
    /// The label of the indexed elements; empty: all vertices, or all edges.
    pub label: String,
    /// The property keys, most significant first.
    pub keys: Vec<String>,
    /// The number of entries: pairs of an element and one of its values.
    pub entries: u64,
}

/// What a check of files or objects has found.
struct CheckedFiles {
    store: Store,
    recovery: Recovery,
    manifests: u64,
    files: u64,
    blocks: u64,
    file_bytes: u64,
    forms: OpenForms,
    objects: u64,
    backups: u64,
}

fn check_files(place: &str, progress: &(dyn Fn(RecoveryProgress) + Sync)) -> Result<CheckedFiles> {
    let mut comparison = ColumnsComparison::default();
    let mut compare = |view: &dyn GraphView, file: &ManifestColumnsFile, bytes| comparison.compare(view, file, bytes);
    if let Some(home) = home_to_read(place)? {
        let found = verify_home(&home, PATIENCE, 0, &mut compare, progress)?;
        let VerifiedHome { store, recovery, manifests, backups, packs, blocks, pack_bytes, forms, objects, .. } = found;
        return Ok(CheckedFiles {
            store,
            recovery: of_summary(&recovery),
            forms,
            manifests,
            files: packs,
            blocks,
            file_bytes: pack_bytes,
            objects,
            backups,
        });
    }
    let (disk, _lock) = enter_to_read(Path::new(place))?;
    let verified = mangrove_durable::verify::verify(&disk, 0, &mut compare, progress)?;
    let Verified { store, recovery, manifests, files, blocks, file_bytes, forms, .. } = verified;
    let recovery = of_summary(&recovery);
    Ok(CheckedFiles { store, recovery, manifests, files, blocks, file_bytes, forms, objects: 0, backups: 0 })
}

/// Checks a database's directory, and holds its lock until the end of the check; or a home, whose graph may be open.
///
/// # Errors
///
/// If it finds a fault; the error is about the first one. The error for a damaged file names the file and the offset.
pub fn verify(place: &str, progress: &(dyn Fn(RecoveryProgress) + Sync)) -> Result<VerifyReport> {
    let CheckedFiles { store, recovery, manifests, files, blocks, file_bytes, forms, objects, backups } =
        check_files(place, progress)?;
    let manager = TransactionManager::resuming(Arc::new(store), RecentOptions::default(), recovery.last_ts);
    let database = Database::assemble(&DatabaseOptions::default(), manager, Home::Memory);
    let transaction = database.begin_read()?;
    let view = transaction.view();
    let (vertices, edges) = check_adjacency(view)?;
    if (vertices, edges) != (recovery.graph.vertices, recovery.graph.edges) {
        let Recovery { graph, .. } = &recovery;
        let (v, e) = (graph.vertices, graph.edges);
        return Err(wrong(format!("{v} vertices and {e} edges were loaded, and {vertices} and {edges} are seen")));
    }
    let reports = database.indexes();
    let check = |index: &IndexInfo| {
        let entries = check_index(view, index)?;
        // An ordered composite index has entries for incomplete combinations, too.
        let is_complete = !index.ordered || index.keys.len() == 1;
        let report = reports.iter().find(|report| report.id == index.id && is_complete);
        if let Some(report) = report.filter(|report| report.entries != entries) {
            return Err(wrong(format!("index {} has {} entries, not {entries}", index.id.0, report.entries)));
        }
        let catalog = view.catalog();
        Ok(CheckedIndex {
            element: index.element,
            label: index.label.map(|label| catalog.label_name(label).to_string()).unwrap_or_default(),
            keys: index.keys.iter().map(|&key| catalog.key_name(key).to_string()).collect(),
            entries,
        })
    };
    let indexes = view.indexes().iter().map(check).collect::<Result<_>>()?;
    let OpenForms { topology_blocks, index_runs, columns_files } = forms;
    Ok(VerifyReport {
        manifests,
        files,
        blocks,
        file_bytes,
        topology_blocks,
        index_runs,
        columns_files,
        objects,
        backups,
        recovery,
        vertices,
        edges,
        indexes,
    })
}

/// The error for a graph that contradicts itself although its files are intact.
fn wrong(fault: impl std::fmt::Display) -> Error {
    Error::new(
        ErrorKind::Damaged,
        format!(
            "the files are whole, but the graph in them is not: {fault}. Please report it; restore the graph from a \
             backup"
        ),
    )
}

/// Calls `each` with all vertices, a portion at a time.
fn each_portion(
    view: &dyn GraphView,
    labels: &LabelFilter,
    each: &mut dyn FnMut(&[VertexId]) -> Result<()>,
) -> Result<()> {
    let (mut cursor, mut portion) = (ScanCursor::default(), Vec::new());
    loop {
        portion.clear();
        let is_end = view.scan_vertices(labels, Share::ALL, &mut cursor, PORTION, &mut portion)?;
        each(&portion)?;
        if is_end {
            return Ok(());
        }
    }
}

/// Checks the adjacency lists (item 1 of the header). Returns the numbers of vertices and edges.
fn check_adjacency(view: &dyn GraphView) -> Result<(u64, u64)> {
    let mut edges = all_edges(view)?;
    edges.sort_unstable();
    let mut vertices = 0;
    for direction in [Direction::Out, Direction::In] {
        vertices = 0;
        let mut listed = Vec::with_capacity(edges.len());
        each_portion(view, &LabelFilter::Any, &mut |portion| {
            vertices += portion.len() as u64;
            check_lists(view, portion, direction, &mut listed)
        })?;
        listed.sort_unstable();
        // Both are sorted, so the first difference is an edge that is listed too often or not at all, or an entry
        // without an edge.
        if let Some(at) = (0..edges.len().max(listed.len())).find(|&at| edges.get(at) != listed.get(at)) {
            let fault = match (edges.get(at), listed.get(at)) {
                (Some(edge), Some(other)) if edge > other => format!("edge {other:?} is listed twice, or is not there"),
                (Some(edge), _) => format!("edge {edge:?} is not listed"),
                (None, other) => format!("edge {other:?} is listed twice, or is not there"),
            };
            return Err(wrong(format!("{fault} in the {direction:?} lists of the vertices")));
        }
    }
    Ok((vertices, edges.len() as u64))
}

/// Returns all edges, in the order of the scan.
fn all_edges(view: &dyn GraphView) -> Result<Vec<EdgeId>> {
    let (mut cursor, mut edges) = (ScanCursor::default(), Vec::new());
    while !view.scan_edges(&LabelFilter::Any, Share::ALL, &mut cursor, PORTION, &mut edges)? {}
    Ok(edges)
}

/// Checks every entry in the lists of these vertices: the vertex is the near end of the edge, and the neighbor is its
/// other end. Appends the edges of the entries.
fn check_lists(
    view: &dyn GraphView,
    vertices: &[VertexId],
    direction: Direction,
    listed: &mut Vec<EdgeId>,
) -> Result<()> {
    let request = ExpandRequest { direction, labels: LabelFilter::Any, edges: true, limit: PORTION };
    let (mut cursor, mut found) = (ExpandCursor::default(), Expansion::default());
    let (mut sources, mut targets) = (Vec::new(), Vec::new());
    loop {
        found.clear();
        let is_end = view.expand(vertices, &request, &mut cursor, &mut found)?;
        sources.clear();
        targets.clear();
        view.edge_ends(&found.edge, &mut sources, &mut targets)?;
        for (at, &edge) in found.edge.iter().enumerate() {
            let (near, far) = match direction {
                Direction::In => (targets[at], sources[at]),
                _ => (sources[at], targets[at]),
            };
            let vertex = vertices[found.row[at] as usize];
            if (near, far) != (vertex, found.neighbor[at]) {
                return Err(wrong(format!("vertex {vertex:?} lists edge {edge:?}, whose ends are others")));
            }
        }
        listed.extend_from_slice(&found.edge);
        if is_end {
            return Ok(());
        }
    }
}

/// Checks that an index finds under each value exactly the elements that have it. Returns the number of entries that
/// the index must have.
fn check_index(view: &dyn GraphView, index: &IndexInfo) -> Result<u64> {
    let mut entries = expected_entries(view, index)?;
    let by_order = |a: &[Value], b: &[Value]| {
        let unequal = a.iter().zip(b).map(|(a, b)| compare::order(a, b)).find(|order| order.is_ne());
        unequal.unwrap_or(std::cmp::Ordering::Equal)
    };
    entries.sort_by(|(a, v), (b, w)| by_order(a, b).then(v.cmp(w)));
    // A vertex with two equal values has one entry for them.
    entries.dedup_by(|(a, v), (b, w)| v == w && by_order(a, b).is_eq());
    let is_equal = |a: &[Value], b: &[Value]| a.iter().zip(b).all(|(a, b)| compare::equal(a, b));
    let kind = index.element.plural();
    for same in entries.chunk_by(|(a, _), (b, _)| is_equal(a, b)) {
        let (last, prefix) = same[0].0.split_last().expect("an index has a key");
        let mut found = found_by(view, index, prefix, &IndexRange::Equal(vec![last.clone()]))?;
        found.sort_unstable();
        let mut expected: Vec<ElementId> = same.iter().map(|(_, element)| *element).collect();
        expected.sort_unstable();
        expected.dedup();
        if index.unique && expected.len() > 1 {
            let (id, values, n) = (index.id.0, &same[0].0, expected.len());
            return Err(wrong(format!("index {id} is unique, but {n} {kind} have {values:?}")));
        }
        // A search by equality does not find a value that does not equal itself (NaN).
        let is_unequal = same[0].0.iter().any(|value| !compare::equal(value, value));
        if found != expected && !is_unequal {
            let (id, values) = (index.id.0, &same[0].0);
            let (n, m) = (found.len(), expected.len());
            return Err(wrong(format!("index {id} finds {n} {kind} under {values:?}, but {m} have these values")));
        }
    }
    Ok(entries.len() as u64)
}

/// The elements that an index finds.
fn found_by(view: &dyn GraphView, index: &IndexInfo, prefix: &[Value], range: &IndexRange) -> Result<Vec<ElementId>> {
    match index.element {
        ElementKind::Vertex => {
            let mut found = Vec::new();
            view.index_vertices(index.id, prefix, range, Share::ALL, &mut found)?;
            Ok(found.into_iter().map(ElementId::Vertex).collect())
        }
        ElementKind::Edge => {
            let mut found = Vec::new();
            view.index_edges(index.id, prefix, range, Share::ALL, &mut found)?;
            Ok(found.into_iter().map(ElementId::Edge).collect())
        }
    }
}

/// The entries that an index must have: the combinations of values that elements have under its keys.
fn expected_entries(view: &dyn GraphView, index: &IndexInfo) -> Result<Vec<(Vec<Value>, ElementId)>> {
    let labels = match index.label {
        Some(label) => LabelFilter::Sets(view.catalog().label_sets_with_any(&[label]).into()),
        None => LabelFilter::Any,
    };
    let mut entries = Vec::new();
    match index.element {
        ElementKind::Vertex => each_portion(view, &labels, &mut |portion| {
            let elements: Vec<_> = portion.iter().copied().map(ElementId::Vertex).collect();
            add_combinations(&elements, index, &mut entries, |key, out| view.vertex_values(portion, key, out))
        })?,
        ElementKind::Edge => {
            let (mut cursor, mut portion) = (ScanCursor::default(), Vec::new());
            let mut is_end = false;
            while !is_end {
                portion.clear();
                is_end = view.scan_edges(&labels, Share::ALL, &mut cursor, PORTION, &mut portion)?;
                let elements: Vec<_> = portion.iter().copied().map(ElementId::Edge).collect();
                add_combinations(&elements, index, &mut entries, |key, out| view.edge_values(&portion, key, out))?;
            }
        }
    }
    Ok(entries)
}

/// Adds the combinations of values that some elements have under the keys of an index. `values` reads their values
/// under a key.
fn add_combinations(
    elements: &[ElementId],
    index: &IndexInfo,
    entries: &mut Vec<(Vec<Value>, ElementId)>,
    values: impl Fn(KeyId, &mut ValueRows) -> Result<()>,
) -> Result<()> {
    // For each element, the combinations of its values under the keys so far. It has none if it lacks a key.
    let mut combinations: Vec<Vec<Vec<Value>>> = vec![vec![Vec::new()]; elements.len()];
    for &key in &*index.keys {
        let mut rows = ValueRows::default();
        values(key, &mut rows)?;
        let mut of_elements: Vec<Vec<Value>> = vec![Vec::new(); elements.len()];
        rows.row.iter().zip(rows.value).for_each(|(&row, value)| of_elements[row as usize].push(value));
        combinations =
            combinations.into_iter().zip(of_elements).map(|(shorter, values)| longer(&shorter, values)).collect();
    }
    for (&element, combinations) in elements.iter().zip(combinations) {
        entries.extend(combinations.into_iter().map(|values| (values, element)));
    }
    Ok(())
}

/// Returns each combination followed by each of the different values. Equal values have one entry in an index, so there
/// are no more combinations than the index has entries.
fn longer(shorter: &[Vec<Value>], mut values: Vec<Value>) -> Vec<Vec<Value>> {
    values.sort_by(compare::order);
    values.dedup_by(|a, b| compare::order(a, b).is_eq());
    let with = |front: &Vec<Value>, value: &Value| front.iter().chain([value]).cloned().collect();
    shorter.iter().flat_map(|front| values.iter().map(move |value| with(front, value))).collect()
}
