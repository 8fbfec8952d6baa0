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

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use bigdecimal::BigDecimal;
use mangrove_graph::{DateTime, ElementKind, Error, ErrorKind, KeyId, PropertyRow, Result, Value};
use num_bigint::BigInt;
use parquet::basic::{Compression as Codec, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray, FixedLenByteArrayType, FloatType,
    Int32Type, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{GroupTypeBuilder, Type, TypePtr};
use smol_str::SmolStr;

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
/// The most digits of a decimal: what 16 bytes hold.
const DECIMAL_DIGITS: u64 = 38;

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

fn failed(error: ParquetError) -> Error {
    match error {
        ParquetError::External(source) if source.is::<io::Error>() => Error::new(ErrorKind::Io, source.to_string()),
        other => Error::new(ErrorKind::Io, format!("the Parquet file cannot be written: {other}")),
    }
}

/// The facts about all values of a column that decide its stored type.
#[derive(Clone, Copy, Debug)]
struct Facts {
    /// True if all points in time are in UTC and are a 64-bit number of whole microseconds.
    micros: bool,
    /// The same for nanoseconds.
    nanos: bool,
    /// The most digits before and after the point of a decimal.
    digits: (u64, u64),
}

impl Facts {
    const NONE: Facts = Facts { micros: true, nanos: true, digits: (0, 0) };

    fn add(&mut self, value: &Value) {
        match value {
            Value::DateTime(time) => {
                self.micros &= time.offset_seconds == 0 && time.nanos % 1000 == 0 && ticks(*time, 1_000_000).is_some();
                self.nanos &= time.offset_seconds == 0 && ticks(*time, 1_000_000_000).is_some();
            }
            Value::Decimal(number) => {
                let (digits, scale) = number.as_bigint_and_exponent();
                let after = u64::try_from(scale).unwrap_or(0);
                let length = digits.magnitude().to_string().len() as i128;
                let before = u64::try_from(length - i128::from(scale)).unwrap_or(0);
                self.digits = (self.digits.0.max(before), self.digits.1.max(after));
            }
            Value::List(items) => items.iter().for_each(|item| self.add(item)),
            _ => {}
        }
    }
}

/// A point in time as a number of ticks since 1970; `None` if it does not fit 64 bits.
fn ticks(time: DateTime, per_second: i64) -> Option<i64> {
    let within = i64::from(time.nanos) / (1_000_000_000 / per_second);
    time.seconds.checked_mul(per_second)?.checked_add(within)
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

/// The stored type of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stored {
    Bool,
    /// An integer of this many bits.
    Int(i8),
    F32,
    F64,
    /// Ticks since 1970; this many are a second.
    Time(i64),
    Decimal {
        scale: u64,
        digits: u64,
    },
    Bytes,
    Uuid,
    /// As the text of a CSV field.
    Text(Scalar),
}

impl Stored {
    fn of(scalar: Scalar, facts: Facts) -> Self {
        let (before, after) = facts.digits;
        match scalar {
            Scalar::Bool => Stored::Bool,
            Scalar::I8 => Stored::Int(8),
            Scalar::I16 => Stored::Int(16),
            Scalar::I32 => Stored::Int(32),
            Scalar::I64 => Stored::Int(64),
            Scalar::F32 => Stored::F32,
            Scalar::F64 => Stored::F64,
            Scalar::Bytes => Stored::Bytes,
            Scalar::Uuid => Stored::Uuid,
            Scalar::DateTime if facts.micros => Stored::Time(1_000_000),
            Scalar::DateTime if facts.nanos => Stored::Time(1_000_000_000),
            Scalar::Decimal if before.saturating_add(after) <= DECIMAL_DIGITS => {
                Stored::Decimal { scale: after, digits: (before + after).max(1) }
            }
            other => Stored::Text(other),
        }
    }

    /// Returns true if the file itself names the type of the values.
    fn is_natural(self) -> bool {
        !matches!(self, Stored::Text(scalar) if scalar != Scalar::String)
    }

    fn to_type(self, name: &str, repetition: Repetition) -> Result<Type> {
        let (physical, logical) = match self {
            Stored::Bool => (Physical::BOOLEAN, None),
            Stored::Int(64) => (Physical::INT64, None),
            Stored::Int(32) => (Physical::INT32, None),
            Stored::Int(bits) => (Physical::INT32, Some(LogicalType::integer(bits, true))),
            Stored::F32 => (Physical::FLOAT, None),
            Stored::F64 => (Physical::DOUBLE, None),
            Stored::Time(1_000_000) => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::MICROS))),
            Stored::Time(_) => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::NANOS))),
            Stored::Decimal { scale, digits } => {
                (Physical::FIXED_LEN_BYTE_ARRAY, Some(LogicalType::decimal(scale as i32, digits as i32)))
            }
            Stored::Bytes => (Physical::BYTE_ARRAY, None),
            Stored::Uuid => (Physical::FIXED_LEN_BYTE_ARRAY, Some(LogicalType::Uuid)),
            Stored::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let mut builder =
            Type::primitive_type_builder(name, physical).with_repetition(repetition).with_logical_type(logical);
        if physical == Physical::FIXED_LEN_BYTE_ARRAY {
            builder = builder.with_length(16);
        }
        if let Stored::Decimal { scale, digits } = self {
            builder = builder.with_precision(digits as i32).with_scale(scale as i32);
        }
        builder.build().map_err(failed)
    }
}

/// A column, and its values that are not written yet.
struct Column {
    name: String,
    stored: Stored,
    /// REQUIRED: every row has one value. OPTIONAL: one or none. REPEATED: a list or none.
    repetition: Repetition,
    definitions: Vec<i16>,
    repetitions: Vec<i16>,
    values: Values,
}

/// Values of one stored type.
enum Values {
    Bool(Vec<bool>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    Bytes(Vec<ByteArray>),
    Fixed(Vec<FixedLenByteArray>),
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

impl Column {
    fn new(name: String, stored: Stored, repetition: Repetition) -> Self {
        let values = match stored {
            Stored::Bool => Values::Bool(Vec::new()),
            Stored::Int(64) | Stored::Time(_) => Values::I64(Vec::new()),
            Stored::Int(_) => Values::I32(Vec::new()),
            Stored::F32 => Values::F32(Vec::new()),
            Stored::F64 => Values::F64(Vec::new()),
            Stored::Bytes | Stored::Text(_) => Values::Bytes(Vec::new()),
            Stored::Uuid | Stored::Decimal { .. } => Values::Fixed(Vec::new()),
        };
        Column { name, stored, repetition, definitions: Vec::new(), repetitions: Vec::new(), values }
    }

    /// The declaration of the column in the file.
    fn to_type(&self) -> Result<Type> {
        if self.repetition != Repetition::REPEATED {
            return self.stored.to_type(&self.name, self.repetition);
        }
        let element = self.stored.to_type("element", Repetition::REQUIRED)?;
        let list = group("list", element).with_repetition(Repetition::REPEATED).build().map_err(failed)?;
        let outer = group(&self.name, list).with_repetition(Repetition::OPTIONAL);
        outer.with_logical_type(Some(LogicalType::List)).build().map_err(failed)
    }

    /// Adds a row without a value.
    fn nothing(&mut self) {
        self.definitions.push(0);
        self.repetitions.push(0);
    }

    /// Adds a row with the values under one key. Returns about how many bytes it takes.
    fn add(&mut self, kind: ColumnKind, values: &[PropertyRow]) -> Result<usize> {
        let mut bytes = 0;
        match (kind.shape, &values[0].value) {
            (ColumnShape::One, value) => {
                self.definitions.push(1);
                bytes = self.push(value)?;
            }
            (ColumnShape::List, Value::List(items)) if items.is_empty() => {
                self.definitions.push(1);
                self.repetitions.push(0);
            }
            (ColumnShape::List, Value::List(items)) => {
                for (at, item) in items.iter().enumerate() {
                    bytes += self.item(at, item)?;
                }
            }
            _ => {
                for (at, property) in values.iter().enumerate() {
                    bytes += self.item(at, &property.value)?;
                }
            }
        }
        Ok(bytes)
    }

    fn item(&mut self, at: usize, value: &Value) -> Result<usize> {
        self.definitions.push(2);
        self.repetitions.push(i16::from(at > 0));
        self.push(value)
    }

    fn push(&mut self, value: &Value) -> Result<usize> {
        let unlike = || Error::bug(format!("a {} in a column of {:?}", value.type_name(), self.stored));
        match (&mut self.values, value) {
            (Values::Bool(values), Value::Bool(truth)) => values.push(*truth),
            (Values::I32(values), Value::I8(number)) => values.push(i32::from(*number)),
            (Values::I32(values), Value::I16(number)) => values.push(i32::from(*number)),
            (Values::I32(values), Value::I32(number)) => values.push(*number),
            (Values::I64(values), Value::I64(number)) => values.push(*number),
            // A narrow integer id in a column of longs.
            (Values::I64(values), Value::I32(number)) => values.push((*number).into()),
            (Values::I64(values), Value::DateTime(time)) => {
                let Stored::Time(per_second) = self.stored else { return Err(unlike()) };
                values.push(ticks(*time, per_second).ok_or_else(unlike)?);
            }
            (Values::F32(values), Value::F32(number)) => values.push(*number),
            (Values::F64(values), Value::F64(number)) => values.push(*number),
            (Values::Fixed(values), Value::Uuid(uuid)) => values.push(ByteArray::from(uuid.as_bytes().to_vec()).into()),
            (Values::Fixed(values), Value::Decimal(number)) => {
                let Stored::Decimal { scale, .. } = self.stored else { return Err(unlike()) };
                values.push(ByteArray::from(decimal(number, scale).ok_or_else(unlike)?.to_vec()).into());
            }
            (Values::Bytes(values), value) => {
                let mut text = Vec::new();
                match (self.stored, value) {
                    (Stored::Bytes, Value::Bytes(bytes)) => text.extend_from_slice(bytes),
                    (Stored::Text(scalar), value) => write_scalar(&mut text, scalar, value)?,
                    _ => return Err(unlike()),
                }
                let bytes = text.len();
                values.push(text.into());
                return Ok(bytes + 32);
            }
            _ => return Err(unlike()),
        }
        Ok(16)
    }

    /// Writes the gathered values.
    fn write(&mut self, group: &mut SerializedRowGroupWriter<'_, ExportFile>) -> Result<()> {
        let (definitions, repetitions) = (std::mem::take(&mut self.definitions), std::mem::take(&mut self.repetitions));
        let levels = Levels {
            definitions: (self.repetition != Repetition::REQUIRED).then_some(&definitions),
            repetitions: (self.repetition == Repetition::REPEATED).then_some(&repetitions),
        };
        match &mut self.values {
            Values::Bool(values) => write_values::<BoolType>(group, values, levels),
            Values::I32(values) => write_values::<Int32Type>(group, values, levels),
            Values::I64(values) => write_values::<Int64Type>(group, values, levels),
            Values::F32(values) => write_values::<FloatType>(group, values, levels),
            Values::F64(values) => write_values::<DoubleType>(group, values, levels),
            Values::Bytes(values) => write_values::<ByteArrayType>(group, values, levels),
            Values::Fixed(values) => write_values::<FixedLenByteArrayType>(group, values, levels),
        }
    }
}

/// A group of one field.
fn group(name: &str, field: Type) -> GroupTypeBuilder<'_> {
    Type::group_type_builder(name).with_fields(vec![TypePtr::new(field)])
}

#[derive(Clone, Copy)]
struct Levels<'l> {
    definitions: Option<&'l Vec<i16>>,
    repetitions: Option<&'l Vec<i16>>,
}

fn write_values<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, ExportFile>,
    values: &mut Vec<T::T>,
    levels: Levels<'_>,
) -> Result<()> {
    let column = group.next_column().map_err(failed)?;
    let mut column = column.ok_or_else(|| Error::bug("a row group has a column for each of the schema's"))?;
    let (definitions, repetitions) = (levels.definitions.map(Vec::as_slice), levels.repetitions.map(Vec::as_slice));
    column.typed::<T>().write_batch(values, definitions, repetitions).map_err(failed)?;
    column.close().map_err(failed)?;
    values.clear();
    Ok(())
}

/// A decimal at a scale as a whole number of 16 bytes, highest byte first.
fn decimal(number: &BigDecimal, scale: u64) -> Option<[u8; 16]> {
    let (digits, own) = number.as_bigint_and_exponent();
    let up = u32::try_from(i128::from(scale) - i128::from(own)).ok()?;
    let scaled: BigInt = digits * BigInt::from(10).pow(up);
    i128::try_from(scaled).ok().map(i128::to_be_bytes)
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
