//! Open columns: the elements of a label set as a Parquet file of a checkpoint, for other programs.
//!
//! | column | what |
//! |---|---|
//! | `_id`; of edges also `_source`, `_target` | ids as Gremlin shows them: 64-bit integers if all of the graph are whole numbers, else texts, or UUIDs if all are |
//! | `_internal`; of edges also `_source_internal`, `_target_internal` | the 64 bits of internal ids |
//! | a key | its values of one type: that of most of its values. A list if an element has several values |
//! | `_rest` | what these columns could not say, as JSON: `{KEY: [{"value": V, "meta": {KEY: V}}]}` |
//!
//! A key has no column if Parquet has no type for most of its values, or if another column has its name. Rows are in the
//! order of a scan. Nothing is lost: each value is in a column or in `_rest`.
//!
//! [`compare_columns`] reads a file again, and compares every cell with the graph.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use mangrove_graph::{
    EdgeId, ElementKind, GraphView, KeyId, LabelSetId, PropertyRow, Result, ScanCursor, Share, Value, VertexId,
};
use parquet::basic::{Compression as Codec, Encoding, Repetition, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};

use super::GROUP_BYTES;
use super::column::{Column, Facts, Stored, failed};
use crate::export::elements::{BATCH, CatalogNames, Selection, by_key, split_row};
use crate::export::kind::{ColumnKind, ColumnShape, Scalar};
use crate::export::table::{IdKind, id_kind};
use crate::export::text::write_scalar;
use crate::parquet::{PageBudget, ParquetCell, ParquetColumn, ParquetFile, guarded};
use crate::values::write_string;

/// The most rows of a row group.
const OPEN_GROUP_ROWS: usize = 128 * 1024;
/// The columns of a file that are not those of keys.
const OWN_COLUMNS: [&str; 7] =
    ["_id", "_internal", "_source", "_source_internal", "_target", "_target_internal", "_rest"];

/// The elements of one kind with one label set: the content of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ColumnsTable {
    /// Vertices or edges.
    pub kind: ElementKind,
    /// Their label set.
    pub labels: LabelSetId,
}

/// The types of all ids of a graph.
#[derive(Clone, Copy, Debug)]
pub struct ColumnsIds {
    vertices: IdKind,
    edges: IdKind,
}

/// The tables of all elements that a view shows, and the types of their ids.
pub fn columns_tables(view: &dyn GraphView) -> Result<(Vec<ColumnsTable>, ColumnsIds)> {
    let all = Selection::new(view, &[])?;
    let mut tables = Vec::new();
    for kind in [ElementKind::Vertex, ElementKind::Edge] {
        tables.extend(all.sets(view, kind)?.into_iter().map(|labels| ColumnsTable { kind, labels }));
    }
    let ids = ColumnsIds {
        vertices: id_kind(view, &all, true, ElementKind::Vertex)?,
        edges: id_kind(view, &all, true, ElementKind::Edge)?,
    };
    Ok((tables, ids))
}

/// Writes the file of a table. `notes` are put beside the schema, as keys with values. Returns the number of rows.
///
/// # Errors
///
/// If `out` fails, or the view does.
pub fn write_columns<W: Write + Send>(
    view: &dyn GraphView,
    table: ColumnsTable,
    ids: ColumnsIds,
    notes: &[(&str, String)],
    out: W,
) -> Result<u64> {
    let plan = OpenPlan::new(view, table, ids)?;
    let mut columns: Vec<Column> = plan.columns.iter().map(OpenColumn::to_column).collect();
    let fields = columns.iter().map(|column| Ok(Arc::new(column.to_type()?))).collect::<Result<_>>()?;
    let root = Type::group_type_builder("graph").with_fields(fields).build().map_err(failed)?;
    let notes = notes.iter().map(|(key, value)| KeyValue::new((*key).to_owned(), value.clone())).collect();
    let mut properties = WriterProperties::builder()
        .set_compression(Codec::ZSTD(ZstdLevel::default()))
        .set_created_by(concat!("mangrove ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(notes));
    for column in plan.columns.iter().filter(|column| column.key.is_none() && column.stored == Stored::Int(64)) {
        // Ids that follow each other differ little. A dictionary would have as many entries as the column.
        let path = ColumnPath::from(column.name.as_str());
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    let properties = properties.build();
    let mut file = SerializedFileWriter::new(out, Arc::new(root), Arc::new(properties)).map_err(failed)?;
    let (mut rows, mut bytes, mut total) = (0, 0, 0);
    let mut flush = |columns: &mut [Column]| -> Result<()> {
        let mut group = file.next_row_group().map_err(failed)?;
        columns.iter_mut().try_for_each(|column| column.write(&mut group))?;
        group.close().map(drop).map_err(failed)
    };
    plan.each_row(view, &mut |cells| {
        for (column, (of, cell)) in columns.iter_mut().zip(plan.columns.iter().zip(cells)) {
            bytes += of.put(cell, column)?;
        }
        (rows, total) = (rows + 1, total + 1);
        if rows >= OPEN_GROUP_ROWS || bytes >= GROUP_BYTES {
            flush(&mut columns)?;
            (rows, bytes) = (0, 0);
        }
        Ok(())
    })?;
    if rows > 0 {
        flush(&mut columns)?;
    }
    file.into_inner().map_err(failed)?;
    Ok(total)
}

/// Compares the bytes of a file with the graph that it was written from. Returns the first difference, as text.
///
/// # Errors
///
/// If the file cannot be read, or the view fails.
pub fn compare_columns(
    view: &dyn GraphView,
    table: ColumnsTable,
    ids: ColumnsIds,
    bytes: Vec<u8>,
) -> Result<Option<String>> {
    let plan = OpenPlan::new(view, table, ids)?;
    let file = ParquetFile::of_bytes(bytes)?;
    if !plan.columns.iter().map(|column| column.name.as_str()).eq(file.names()) {
        let expected: Vec<&str> = plan.columns.iter().map(|column| column.name.as_str()).collect();
        return Ok(Some(format!("it has the columns {:?}, and not {expected:?}", file.names().collect::<Vec<_>>())));
    }
    let mut rows = FileRows { file: &file, group: 0, left: 0, columns: Vec::new(), cells: Vec::new(), at: 0, count: 0 };
    let (mut difference, mut number) = (None, 0_u64);
    plan.each_row(view, &mut |cells| {
        if difference.is_some() {
            return Ok(());
        }
        number += 1;
        let Some(found) = rows.next()? else {
            difference = Some(format!("it ends before row {number}"));
            return Ok(());
        };
        let expected = cells.iter().map(Cell::value);
        let at = expected
            .zip(&found)
            .position(|(expected, found)| !found.as_ref().is_ok_and(|found| same(&expected, found)));
        difference = at.map(|at| {
            let (name, expected) = (&plan.columns[at].name, cells[at].value());
            format!("in row {number}, column '{name}' has {:?}, and not {expected:?}", found[at])
        });
        Ok(())
    })?;
    if difference.is_none() && rows.next()?.is_some() {
        difference = Some(format!("it has more than {number} rows"));
    }
    Ok(difference)
}

/// True for values of the same type and content; NaN is the same as NaN.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::F32(one), Value::F32(other)) => one.to_bits() == other.to_bits(),
        (Value::F64(one), Value::F64(other)) => one.to_bits() == other.to_bits(),
        (Value::List(one), Value::List(other)) => {
            one.len() == other.len() && one.iter().zip(other.iter()).all(|(one, other)| same(one, other))
        }
        _ => one == other,
    }
}

// --- Cells --------------------------------------------------------------------------------------------

/// What a row has in a column.
enum Cell<'r> {
    Nothing,
    /// An id, or JSON.
    Value(Value),
    /// The values of a key.
    Key(ColumnKind, &'r [PropertyRow]),
}

impl Cell<'_> {
    /// The cell as a reader of the file finds it.
    fn value(&self) -> Value {
        match self {
            Cell::Nothing => Value::Null,
            Cell::Value(value) => value.clone(),
            Cell::Key(ColumnKind { shape: ColumnShape::Several, .. }, values) => {
                Value::list(values.iter().map(|property| property.value.clone()).collect())
            }
            Cell::Key(_, values) => values[0].value.clone(),
        }
    }
}

/// A column of the file.
struct OpenColumn {
    name: String,
    stored: Stored,
    /// The key whose values it has.
    key: Option<(KeyId, ColumnKind)>,
    repetition: Repetition,
}

impl OpenColumn {
    fn own(name: &str, stored: Stored, repetition: Repetition) -> Self {
        OpenColumn { name: name.to_owned(), stored, key: None, repetition }
    }

    fn to_column(&self) -> Column {
        Column::new(self.name.clone(), self.stored, self.repetition)
    }

    /// Adds a cell. Returns about how many bytes it takes.
    fn put(&self, cell: &Cell<'_>, column: &mut Column) -> Result<usize> {
        match cell {
            Cell::Nothing => {
                column.nothing();
                Ok(1)
            }
            Cell::Value(value) if self.repetition == Repetition::REQUIRED => column.push(value),
            Cell::Value(value) => column.one(value),
            Cell::Key(kind, values) => column.add(*kind, values),
        }
    }
}

/// The columns of a table, in their order: ids, keys, the rest.
struct OpenPlan {
    table: ColumnsTable,
    ids: ColumnsIds,
    columns: Vec<OpenColumn>,
}

/// How often a type occurs under a key.
#[derive(Clone, Copy, Default)]
struct KindCount {
    elements: u64,
    has_several: bool,
}

impl OpenPlan {
    /// Reads all properties of a table, to decide its columns.
    fn new(view: &dyn GraphView, table: ColumnsTable, ids: ColumnsIds) -> Result<Self> {
        let mut counts = BTreeMap::<(KeyId, bool, Scalar), (KindCount, Facts)>::new();
        each_element(view, table, &mut |_, properties| {
            for values in by_key(properties).filter(|values| !has_meta(values)) {
                let kind = ColumnKind::of(values);
                let is_list = kind.shape == ColumnShape::List;
                let (count, facts) =
                    counts.entry((values[0].key, is_list, kind.scalar)).or_insert((KindCount::default(), Facts::NONE));
                count.elements += 1;
                count.has_several |= kind.shape == ColumnShape::Several;
                values.iter().for_each(|property| facts.add(&property.value));
            }
            Ok(())
        })?;
        let stored = |kind: IdKind| match kind {
            IdKind::Longs => Stored::Int(64),
            IdKind::Plain => Stored::Text(Scalar::String),
            IdKind::Typed(scalar) => Stored::of(scalar, Facts::NONE),
        };
        let own: &[(&str, IdKind)] = match table.kind {
            ElementKind::Vertex => &[("_id", ids.vertices), ("_internal", IdKind::Longs)],
            ElementKind::Edge => &[
                ("_id", ids.edges),
                ("_internal", IdKind::Longs),
                ("_source", ids.vertices),
                ("_source_internal", IdKind::Longs),
                ("_target", ids.vertices),
                ("_target_internal", IdKind::Longs),
            ],
        };
        let own = own.iter().map(|(name, kind)| OpenColumn::own(name, stored(*kind), Repetition::REQUIRED));
        let mut columns: Vec<OpenColumn> = own.collect();
        let mut names = CatalogNames::new(view.catalog());
        let mut best = BTreeMap::<KeyId, (u64, OpenColumn)>::new();
        for ((key, is_list, scalar), (count, facts)) in counts {
            let (name, stored) = (names.key(key).to_string(), Stored::of(scalar, facts));
            let is_better = best.get(&key).is_none_or(|(elements, _)| count.elements > *elements);
            if !is_better || !stored.is_natural() || name.is_empty() || OWN_COLUMNS.contains(&name.as_str()) {
                continue;
            }
            let shape = match (is_list, count.has_several) {
                (true, _) => ColumnShape::List,
                (false, true) => ColumnShape::Several,
                (false, false) => ColumnShape::One,
            };
            let repetition = if shape == ColumnShape::One { Repetition::OPTIONAL } else { Repetition::REPEATED };
            let column = OpenColumn { name, stored, key: Some((key, ColumnKind { shape, scalar })), repetition };
            best.insert(key, (count.elements, column));
        }
        columns.extend(best.into_values().map(|(_, column)| column));
        columns.push(OpenColumn::own("_rest", Stored::Text(Scalar::String), Repetition::OPTIONAL));
        Ok(OpenPlan { table, ids, columns })
    }

    /// Calls `each` with the cells of every row, one for each column.
    fn each_row(&self, view: &dyn GraphView, each: &mut dyn FnMut(&[Cell<'_>]) -> Result<()>) -> Result<()> {
        let mut names = CatalogNames::new(view.catalog());
        let kinds = match self.table.kind {
            ElementKind::Vertex => [self.ids.vertices; 3],
            ElementKind::Edge => [self.ids.edges, self.ids.vertices, self.ids.vertices],
        };
        each_element(view, self.table, &mut |ids, properties| {
            let mut cells = Vec::with_capacity(self.columns.len());
            for ((id, internal), kind) in ids.iter().zip(kinds) {
                cells.push(Cell::Value(shown(id, kind)?));
                cells.push(Cell::Value(Value::I64(*internal as i64)));
            }
            let mut groups = by_key(properties).collect::<Vec<_>>();
            for column in &self.columns[cells.len()..] {
                let Some((key, kind)) = column.key else { continue };
                let at = groups.iter().position(|values| values[0].key == key && fits(values, kind));
                cells.push(at.map_or(Cell::Nothing, |at| Cell::Key(kind, groups.swap_remove(at))));
            }
            cells.push(match groups.is_empty() {
                true => Cell::Nothing,
                false => Cell::Value(Value::from(rest(&mut groups, &mut names)?.as_str())),
            });
            each(&cells)
        })
    }
}

fn has_meta(values: &[PropertyRow]) -> bool {
    values.iter().any(|property| !property.meta.is_empty())
}

/// Returns true if a column of a kind can say these values.
fn fits(values: &[PropertyRow], column: ColumnKind) -> bool {
    let kind = ColumnKind::of(values);
    let is_one_of_several = (kind.shape, column.shape) == (ColumnShape::One, ColumnShape::Several);
    !has_meta(values) && kind.scalar == column.scalar && (kind.shape == column.shape || is_one_of_several)
}

/// An id as its column has it.
fn shown(id: &Value, kind: IdKind) -> Result<Value> {
    Ok(match (kind, id) {
        (IdKind::Longs, Value::I32(number)) => Value::I64((*number).into()),
        (IdKind::Plain, Value::String(_)) | (IdKind::Longs | IdKind::Typed(_), _) => id.clone(),
        (IdKind::Plain, id) => {
            let mut text = Vec::new();
            write_scalar(&mut text, kind.scalar(id), id)?;
            Value::from(&*String::from_utf8_lossy(&text))
        }
    })
}

/// The values of these keys as JSON, in the order of the keys' names.
fn rest(groups: &mut [&[PropertyRow]], names: &mut CatalogNames<'_>) -> Result<String> {
    groups.sort_unstable_by_key(|values| names.key(values[0].key).clone());
    let mut text = vec![b'{'];
    for (at, values) in groups.iter().enumerate() {
        text.extend_from_slice(if at > 0 { b"," } else { b"" });
        write_string(&mut text, names.key(values[0].key));
        text.extend_from_slice(b":[");
        for (at, property) in values.iter().enumerate() {
            text.extend_from_slice(if at > 0 { b",{\"value\":" } else { b"{\"value\":" });
            write_scalar(&mut text, Scalar::Any, &property.value)?;
            if !property.meta.is_empty() {
                text.extend_from_slice(b",\"meta\":{");
                for (at, (key, value)) in property.meta.iter().enumerate() {
                    text.extend_from_slice(if at > 0 { b"," } else { b"" });
                    write_string(&mut text, names.key(*key));
                    text.push(b':');
                    write_scalar(&mut text, Scalar::Any, value)?;
                }
                text.push(b'}');
            }
            text.push(b'}');
        }
        text.push(b']');
    }
    text.push(b'}');
    Ok(String::from_utf8_lossy(&text).into_owned())
}

// --- Elements -----------------------------------------------------------------------------------------

/// Takes the ids of a row (of an edge also those of its ends) as they are shown and as bits, and its properties.
type TakeElement<'t> = dyn FnMut(&[(&Value, u64)], &[PropertyRow]) -> Result<()> + 't;

/// Calls `each` with every element of a table, in the order of a scan.
fn each_element(view: &dyn GraphView, table: ColumnsTable, each: &mut TakeElement<'_>) -> Result<()> {
    let (labels, mut cursor) = (Selection::only(table.labels), ScanCursor::default());
    let (mut vertices, mut edges) = (Vec::new(), Vec::new());
    loop {
        let is_end = match table.kind {
            ElementKind::Vertex => {
                vertices.clear();
                let is_end = view.scan_vertices(&labels, Share::ALL, &mut cursor, BATCH, &mut vertices)?;
                vertex_rows(view, &vertices, each)?;
                is_end
            }
            ElementKind::Edge => {
                edges.clear();
                let is_end = view.scan_edges(&labels, Share::ALL, &mut cursor, BATCH, &mut edges)?;
                edge_rows(view, &edges, each)?;
                is_end
            }
        };
        if is_end {
            return Ok(());
        }
    }
}

fn vertex_rows(view: &dyn GraphView, vertices: &[VertexId], each: &mut TakeElement<'_>) -> Result<()> {
    let (mut ids, mut properties) = (Vec::new(), Vec::new());
    view.vertex_user_ids(vertices, &mut ids)?;
    view.vertex_properties(vertices, None, &mut properties)?;
    let mut left = properties.as_slice();
    for (row, vertex) in vertices.iter().enumerate() {
        each(&[(&ids[row], vertex.to_bits())], split_row(&mut left, row))?;
    }
    Ok(())
}

fn edge_rows(view: &dyn GraphView, edges: &[EdgeId], each: &mut TakeElement<'_>) -> Result<()> {
    let (mut ids, mut properties) = (Vec::new(), Vec::new());
    let (mut sources, mut targets) = (Vec::new(), Vec::new());
    let (mut source_ids, mut target_ids) = (Vec::new(), Vec::new());
    view.edge_user_ids(edges, &mut ids)?;
    view.edge_properties(edges, None, &mut properties)?;
    view.edge_ends(edges, &mut sources, &mut targets)?;
    view.vertex_user_ids(&sources, &mut source_ids)?;
    view.vertex_user_ids(&targets, &mut target_ids)?;
    let mut left = properties.as_slice();
    for (row, edge) in edges.iter().enumerate() {
        let source = (&source_ids[row], sources[row].to_bits());
        let target = (&target_ids[row], targets[row].to_bits());
        each(&[(&ids[row], edge.to_bits()), source, target], split_row(&mut left, row))?;
    }
    Ok(())
}

/// The rows of a file, one after the other.
struct FileRows<'f> {
    file: &'f ParquetFile,
    /// The number of the next row group.
    group: usize,
    /// Rows of the current one that are not read.
    left: u64,
    columns: Vec<ParquetColumn<'f>>,
    /// Rows that were read, by column, and how many of them were taken.
    cells: Vec<Vec<ParquetCell>>,
    at: usize,
    count: usize,
}

impl FileRows<'_> {
    fn next(&mut self) -> Result<Option<Vec<ParquetCell>>> {
        while self.at == self.count {
            if self.left == 0 {
                let Some(group) = self.file.metadata.row_groups().get(self.group) else { return Ok(None) };
                let (file, budget) = (self.file, PageBudget::default());
                let fields = file.fields.iter();
                self.columns =
                    guarded(|| fields.map(|field| ParquetColumn::open(file, group, field, &budget)).collect())?;
                (self.group, self.left) = (self.group + 1, group.num_rows().unsigned_abs());
                continue;
            }
            (self.at, self.count) = (0, self.left.min(BATCH as u64) as usize);
            self.left -= self.count as u64;
            let (columns, count) = (&mut self.columns, self.count);
            self.cells = guarded(|| columns.iter_mut().map(|column| column.read(count)).collect())?;
        }
        self.at += 1;
        Ok(Some(self.cells.iter().map(|column| column[self.at - 1].clone()).collect()))
    }
}
