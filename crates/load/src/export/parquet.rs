//! Parquet: one file a label, as for CSV, with columns of the types of their values.
//!
//! `~id`, `~label`, `~from` and `~to` are as in CSV. If Parquet has a type for the values of a property, its column has
//! the name of the key. Otherwise the column is text and the name has a type after it, as in a CSV header
//! (`size:bigint`, `mail:string[](list)`). The same happens if the name alone would mean something else. So other tools
//! see numbers, dates and lists, and the loader reads what was there (LOAD-5).
//!
//! Points in time become timestamps if all of a column are in UTC and fit. Decimals become decimals of the largest
//! scale of their column. With plain columns ([`super::plain`]) names have no types, a key has one column, and ids and
//! label are `id`, `src`, `dst` and `label`.
//!
//! Rows are gathered into row groups of bounded size. Only meta-properties are lost, and counted.

mod column;
pub(crate) mod open;
pub(crate) mod rows;

use std::collections::BTreeMap;
use std::sync::Arc;

use mangrove_graph::{ElementKind, Error, KeyId, PropertyRow, Result, Value};
use parquet::basic::{Compression as Codec, Repetition, ZstdLevel};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use smol_str::SmolStr;

use self::column::{Column, Facts, Stored, failed};
use super::elements::{CatalogNames, Selection, by_key};
use super::kind::{ColumnKind, ColumnSchema, ColumnShape, Scalar};
use super::output::ExportFile;
use super::plain::{Looks, PlainKinds, column_names};
use super::table::{ExportTable, IdKind, TablesExport, check_key};
use super::text::write_scalar;
use super::{Counts, ExportTarget, PlainChanges};
use crate::input::Compression;
use crate::plan::is_plain_name;

/// The most rows of a row group.
const GROUP_ROWS: usize = 64 * 1024;
/// Bytes of values, about, after which a row group is written.
const GROUP_BYTES: usize = 16 * 1024 * 1024;

/// The compression of pages.
pub(crate) fn codec(compression: Option<Compression>) -> Result<Codec> {
    Ok(match compression {
        None => Codec::SNAPPY,
        Some(Compression::Gzip) => Codec::GZIP(Default::default()),
        Some(Compression::Zstd) => Codec::ZSTD(ZstdLevel::default()),
        Some(Compression::Bzip2) => {
            return Err(Error::invalid("Parquet has no bzip2: its pages are compressed with snappy, gzip or zstd"));
        }
    })
}

/// Writes a table to a file, and counts losses and progress in `target`.
pub(crate) fn write(
    setting: &TablesExport<'_>,
    table: &ExportTable,
    output: ExportFile,
    target: &mut ExportTarget<'_>,
) -> Result<(ExportFile, Counts)> {
    let plain = setting.options.plain.then(|| look_for_plain(setting, table)).transpose()?;
    let (schema, facts) = look_through(setting, table, plain.as_ref())?;
    target.losses.meta += schema.with_meta;
    let columns = columns(setting, table, &schema, &facts, &mut target.losses.plain)?;
    let fields = columns.iter().map(|column| Ok(Arc::new(column.to_type()?)));
    let root = Type::group_type_builder("graph").with_fields(fields.collect::<Result<_>>()?).build().map_err(failed)?;
    let properties = WriterProperties::builder()
        .set_compression(codec(setting.options.compression)?)
        .set_created_by(concat!("mangrove ", env!("CARGO_PKG_VERSION")).to_owned())
        .build();
    let file = SerializedFileWriter::new(output, Arc::new(root), Arc::new(properties)).map_err(failed)?;
    let mut writer =
        Writer { setting, table, schema: &schema, plain, columns, file, rows: 0, bytes: 0, counts: Counts::default() };
    each_row(setting, table, &mut |ids, properties| {
        writer.ids(ids, &mut target.losses.plain)?;
        writer.counts.vertices += u64::from(table.kind == ElementKind::Vertex);
        writer.counts.edges += u64::from(table.kind == ElementKind::Edge);
        writer.row(properties, target)
    })?;
    writer.flush()?;
    let counts = writer.counts;
    Ok((writer.file.into_inner().map_err(failed)?, counts))
}

type AllFacts = BTreeMap<(KeyId, ColumnKind), Facts>;

/// Takes the ids and the properties of a row.
type TakeRow<'t> = dyn FnMut(&[&Value], &[PropertyRow]) -> Result<()> + 't;

/// Calls `each` with every row of a table.
fn each_row(setting: &TablesExport<'_>, table: &ExportTable, each: &mut TakeRow<'_>) -> Result<()> {
    let labels = Selection::only(table.set);
    match table.kind {
        ElementKind::Vertex => {
            Selection::each_vertex(setting.view, &labels, &mut |row| each(&[row.id], row.properties))
        }
        ElementKind::Edge => setting
            .selection
            .each_edge(setting.view, &labels, &mut |row| each(&[row.id, row.source, row.target], row.properties)),
    }
}

/// Reads all properties of a table, to decide its plain columns.
fn look_for_plain(setting: &TablesExport<'_>, table: &ExportTable) -> Result<PlainKinds> {
    let mut looks = Looks::default();
    each_row(setting, table, &mut |_, properties| {
        looks.add(properties);
        Ok(())
    })?;
    Ok(looks.decide())
}

/// The kind of the column for the values under one key of one element.
fn kind_of(plain: Option<&PlainKinds>, values: &[PropertyRow]) -> ColumnKind {
    plain.map_or_else(|| ColumnKind::of(values), |plain| plain.kind(values[0].key))
}

/// Reads all properties of a table, to decide its columns.
fn look_through(
    setting: &TablesExport<'_>,
    table: &ExportTable,
    plain: Option<&PlainKinds>,
) -> Result<(ColumnSchema, AllFacts)> {
    let (mut schema, mut facts) = (ColumnSchema::default(), AllFacts::new());
    each_row(setting, table, &mut |_, properties| {
        for values in by_key(properties) {
            let kind = kind_of(plain, values);
            schema.add_kind(values, kind);
            if matches!(kind.scalar, Scalar::DateTime | Scalar::Decimal) {
                let facts = facts.entry((values[0].key, kind)).or_insert(Facts::NONE);
                match plain {
                    // These changes are counted when the rows are written.
                    Some(plain) => facts.add(&plain.convert(values, &mut PlainChanges::default())),
                    None => values.iter().for_each(|property| facts.add(&property.value)),
                }
            }
        }
        Ok(())
    })?;
    schema.seal();
    Ok((schema, facts))
}

/// The columns of a table: ids and label, then properties.
fn columns(
    setting: &TablesExport<'_>,
    table: &ExportTable,
    schema: &ColumnSchema,
    facts: &AllFacts,
    changes: &mut PlainChanges,
) -> Result<Vec<Column>> {
    let mut names = CatalogNames::new(setting.view.catalog());
    // Our name, and the name in plain columns.
    let is_plain = setting.options.plain;
    let name = |[name, plain]: [&'static str; 2]| if is_plain { plain } else { name };
    let ids: &[([&str; 2], IdKind)] = match table.kind {
        ElementKind::Vertex => &[(["~id", "id"], setting.vertex_ids)],
        ElementKind::Edge => &[
            (["~id", "id"], setting.edge_ids),
            (["~from", "src"], setting.vertex_ids),
            (["~to", "dst"], setting.vertex_ids),
        ],
    };
    let mut columns: Vec<Column> = ids
        .iter()
        .map(|(names, kind)| {
            let stored = match kind {
                IdKind::Longs => Stored::Int(64),
                IdKind::Plain => Stored::Text(Scalar::String),
                IdKind::Typed(scalar) => Stored::of(*scalar, Facts::NONE),
            };
            let suffix = if is_plain { String::new() } else { kind.suffix() };
            Column::new(format!("{}{suffix}", name(*names)), stored, Repetition::REQUIRED)
        })
        .collect();
    columns.push(Column::new(name(["~label", "label"]).to_owned(), Stored::Text(Scalar::String), Repetition::REQUIRED));
    let keys: Vec<SmolStr> = schema.columns().map(|(key, _)| names.key(key).clone()).collect();
    let mut plain_names = if is_plain { column_names(&keys, changes) } else { Vec::new() }.into_iter();
    for ((key, kind), name) in schema.columns().zip(keys) {
        check_key(&name, kind)?;
        let stored = Stored::of(kind.scalar, facts.get(&(key, kind)).copied().unwrap_or(Facts::NONE));
        let bare =
            stored.is_natural() && kind.shape != ColumnShape::Several && !schema.is_mixed(key) && is_plain_name(&name);
        let name = match (plain_names.next(), bare) {
            (Some(plain), _) => plain,
            (None, true) => name.to_string(),
            (None, false) => format!("{name}:{}", kind.name()),
        };
        let repetition = if kind.shape == ColumnShape::One { Repetition::OPTIONAL } else { Repetition::REPEATED };
        columns.push(Column::new(name, stored, repetition));
    }
    Ok(columns)
}

struct Writer<'w> {
    setting: &'w TablesExport<'w>,
    table: &'w ExportTable,
    schema: &'w ColumnSchema,
    /// For plain columns: the kind of the column of each key.
    plain: Option<PlainKinds>,
    columns: Vec<Column>,
    file: SerializedFileWriter<ExportFile>,
    /// Rows that are not written yet, and about how many bytes they take.
    rows: usize,
    bytes: usize,
    counts: Counts,
}

impl Writer<'_> {
    /// Begins a row with its ids and its label.
    fn ids(&mut self, ids: &[&Value], changes: &mut PlainChanges) -> Result<()> {
        let kinds = match self.table.kind {
            ElementKind::Vertex => [self.setting.vertex_ids; 3],
            ElementKind::Edge => [self.setting.edge_ids, self.setting.vertex_ids, self.setting.vertex_ids],
        };
        if self.plain.is_some() {
            changes.widened += u64::from(kinds[0] == IdKind::Longs && matches!(ids[0], Value::I32(_)));
            changes.texts += u64::from(kinds[0] == IdKind::Plain && !matches!(ids[0], Value::String(_)));
        }
        for ((column, id), kind) in self.columns.iter_mut().zip(ids).zip(kinds) {
            self.bytes += match kind {
                // A number among texts.
                IdKind::Plain => {
                    let mut text = Vec::new();
                    write_scalar(&mut text, kind.scalar(id), id)?;
                    column.push(&Value::string(String::from_utf8_lossy(&text).as_ref()))?
                }
                _ => column.push(id)?,
            };
        }
        self.bytes += self.columns[ids.len()].push(&Value::String(self.table.label.clone()))?;
        Ok(())
    }

    /// Ends a row with its properties.
    fn row(&mut self, properties: &[PropertyRow], target: &mut ExportTarget<'_>) -> Result<()> {
        let fixed = self.columns.len() - self.schema.columns().count();
        let columns = &mut self.columns[fixed..];
        // Properties are ordered by key, and so are columns: one pass over the columns is enough.
        let mut next = 0;
        let mut groups: Vec<(usize, ColumnKind, &[PropertyRow])> = by_key(properties)
            .map(|values| {
                let kind = kind_of(self.plain.as_ref(), values);
                (self.schema.position_of(values[0].key, kind), kind, values)
            })
            .collect();
        groups.sort_unstable_by_key(|(at, ..)| *at);
        for (at, kind, values) in groups {
            columns[next..at].iter_mut().for_each(Column::nothing);
            let column = &mut columns[at];
            self.bytes += match &self.plain {
                Some(plain) => {
                    let changes = &mut target.losses.plain;
                    let value = plain.convert(values, changes);
                    changes.texts += u64::from(!column.stored.is_natural());
                    column.add(kind, &[PropertyRow { value, ..values[0].clone() }])?
                }
                None => column.add(kind, values)?,
            };
            next = at + 1;
        }
        columns[next..].iter_mut().for_each(Column::nothing);
        self.rows += 1;
        if self.rows >= GROUP_ROWS || self.bytes >= GROUP_BYTES {
            self.flush()?;
        }
        target.row(self.counts)
    }

    /// Writes the gathered rows as a row group.
    fn flush(&mut self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut group = self.file.next_row_group().map_err(failed)?;
        self.columns.iter_mut().try_for_each(|column| column.write(&mut group))?;
        group.close().map_err(failed)?;
        (self.rows, self.bytes) = (0, 0);
        Ok(())
    }
}
