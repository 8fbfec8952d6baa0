//! Properties of all vertices or edges as columns, read from one moment of a graph.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use mangrove_graph::{
    Draw, EdgeId, Error, ErrorKind, GraphView, KeyId, LabelFilter, Result, ScanCursor, Share, VertexId,
};
use smol_str::SmolStr;

use crate::options::ArrowOptions;
use crate::table::Table;

/// The elements and the properties of a table.
#[derive(Clone, Debug, Default)]
pub struct ElementColumns {
    /// The labels of the elements. An element is in the table if it has one of them. Empty: all elements.
    pub labels: Vec<SmolStr>,
    /// The keys of the columns after those of the ids; `None`: the label, and every key that an element has.
    pub keys: Option<Vec<SmolStr>>,
}

/// Elements that are read at a time.
const READ_AT_ONCE: usize = 4 * 1024;

/// Vertices with their properties: the column `id`, and one for each key. Without keys, `label` comes after `id`. `held` grows with the
/// columns.
///
/// # Errors
///
/// `NotFound` if the graph has no such label or key, and as those of [`collect`](crate::collect).
pub fn vertex_table(
    view: &dyn GraphView,
    columns: &ElementColumns,
    options: &ArrowOptions,
    held: &mut Draw,
) -> Result<(SchemaRef, Vec<RecordBatch>)> {
    let labels = labels(view, &columns.labels)?;
    let keys = columns.keys.as_ref().map(|keys| known_keys(view, keys)).transpose()?;
    let mut table = match &keys {
        None => Table::of_vertices(*options)?,
        Some(keys) => Table::with_keys(*options, &[("id", true)], keys),
    };
    let mut cursor = ScanCursor::default();
    let scan = |limit: usize, out: &mut Vec<VertexId>| view.scan_vertices(&labels, Share::ALL, &mut cursor, limit, out);
    read(&mut table, held, scan, |table, some| match &keys {
        None => table.push_vertices(view, some),
        Some(keys) => table.push_vertex_keys(view, some, keys),
    })
}

/// Edges with their properties: the columns `id`, `src` and `dst`, and one for each key. Without keys, `label` comes after `id`.
///
/// # Errors
///
/// As those of [`vertex_table`].
pub fn edge_table(
    view: &dyn GraphView,
    columns: &ElementColumns,
    options: &ArrowOptions,
    held: &mut Draw,
) -> Result<(SchemaRef, Vec<RecordBatch>)> {
    let labels = labels(view, &columns.labels)?;
    let keys = columns.keys.as_ref().map(|keys| known_keys(view, keys)).transpose()?;
    let mut table = match &keys {
        None => Table::of_edges(*options)?,
        Some(keys) => Table::with_keys(*options, &[("id", true), ("src", true), ("dst", true)], keys),
    };
    let mut cursor = ScanCursor::default();
    let scan = |limit: usize, out: &mut Vec<EdgeId>| view.scan_edges(&labels, Share::ALL, &mut cursor, limit, out);
    read(&mut table, held, scan, |table, some| match &keys {
        None => table.push_edges(view, some),
        Some(keys) => table.push_edge_keys(view, some, keys),
    })
}

/// Reads elements to the end of a scan.
fn read<T>(
    table: &mut Table,
    held: &mut Draw,
    mut scan: impl FnMut(usize, &mut Vec<T>) -> Result<bool>,
    push: impl Fn(&mut Table, &[T]) -> Result<()>,
) -> Result<(SchemaRef, Vec<RecordBatch>)> {
    let (mut pieces, mut some, mut is_over) = (Vec::new(), Vec::new(), false);
    let mut kept = held.bytes();
    while !is_over {
        is_over = scan(READ_AT_ONCE.min(table.room()), &mut some)?;
        push(table, &some)?;
        some.clear();
        held.resize(kept + table.bytes())?;
        if table.is_full() || is_over && !table.is_empty() {
            pieces.push(table.take_piece());
            kept = held.bytes();
        }
    }
    let schema = table.schema();
    let batches = pieces.into_iter().map(|piece| table.batch(piece, &schema)).collect::<Result<Vec<_>>>()?;
    Ok((schema, batches))
}

/// A filter for labels that the graph has.
///
/// # Errors
///
/// `NotFound` if it does not have one of them.
pub fn labels(view: &dyn GraphView, names: &[SmolStr]) -> Result<LabelFilter> {
    if names.is_empty() {
        return Ok(LabelFilter::Any);
    }
    for name in names {
        if view.catalog().label(name).is_none()
            && matches!(view.label_filter(std::slice::from_ref(name)), LabelFilter::Sets(sets) if sets.is_empty())
        {
            return Err(Error::new(ErrorKind::NotFound, format!("the graph has no label '{name}'")));
        }
    }
    Ok(view.label_filter(names))
}

fn known_keys(view: &dyn GraphView, names: &[SmolStr]) -> Result<Vec<(KeyId, SmolStr)>> {
    let known = |name: &SmolStr| {
        let key = view.key_of(name).map(|key| (key, name.clone()));
        key.ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("no element of the graph has the property key '{name}'"))
        })
    };
    let known = names.iter().map(known).collect::<Result<Vec<_>>>()?;
    match known.iter().enumerate().find(|(at, (key, _))| known[..*at].iter().any(|(other, _)| other == key)) {
        None => Ok(known),
        Some((_, (_, name))) => Err(Error::invalid(format!("the property key '{name}' is named twice"))),
    }
}
