//! The schema of a file: how levels become values, and the types of these values.
//!
//! Types of Parquet and the values they become:
//!
//! | Parquet | value |
//! |---|---|
//! | BOOLEAN, FLOAT, DOUBLE, FLOAT16 | boolean, float, double, float |
//! | INT32, INT64, with a width | byte, short, int, long; unsigned ones become the next wider type, and of 64 bits a bigint if they do not fit |
//! | DECIMAL in any form | decimal |
//! | DATE, TIMESTAMP, INT96 | point in time, UTC |
//! | STRING, ENUM, JSON | string |
//! | UUID | UUID |
//! | INTERVAL without months | length of time |
//! | other bytes | bytes; strings if the name of the column says so |
//! | LIST, repeated fields | list |
//! | MAP, groups | map |
//!
//! Times of day and variants have no counterpart and are refused. Lists may have the older forms with two levels, by
//! the rules of the format.

use crate::values::{ColumnType, LIST_SEPARATOR, TimeFormat};
use mangrove_graph::{Error, Result};
use parquet::basic::{ConvertedType, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::schema::types::Type;

/// A column of the table.
#[derive(Debug)]
pub(crate) struct ParquetField {
    pub(crate) name: String,
    /// How its values are made, or why the column cannot be loaded.
    pub(crate) shape: Result<ParquetShape>,
    /// The stored columns that are its parts.
    pub(crate) leaves: std::ops::Range<usize>,
}

/// How the values of a column are made.
#[derive(Debug)]
pub(crate) struct ParquetShape {
    pub(crate) node: Node,
    pub(crate) kind: ColumnType,
    /// How the values of each part are decoded.
    pub(crate) decoders: Vec<Decode>,
}

/// How levels become a value. A definition level says how much of a path is there, a repetition level which list
/// continues.
#[derive(Debug)]
pub(crate) enum Node {
    /// A value of a part. Parts are counted from the first of the field.
    Leaf(usize),
    /// A value that may be null. It is there if the definition level is at least this.
    Optional { definition: i16, inner: Box<Node>, first: usize },
    /// A list. It has an element if the definition level is at least this.
    List { definition: i16, repetition: i16, element: Box<Node>, first: usize },
    /// A list of keys and values.
    Map { definition: i16, repetition: i16, key: Box<Node>, value: Box<Node>, first: usize },
    /// Fields with names.
    Group(Vec<(String, Node)>),
}

/// How a stored value is decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Decode {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    F32,
    F64,
    Decimal {
        scale: i64,
    },
    Date,
    /// Ticks per second.
    Timestamp {
        per_second: i64,
    },
    Int96,
    String,
    Bytes,
    Uuid,
    Interval,
}

/// The most digits after the point of a decimal.
const SCALE_MAX: i32 = 1000;

/// The columns of a schema.
pub(crate) fn fields(schema: &Type) -> Result<Vec<ParquetField>> {
    let mut first = 0;
    let fields = schema.get_fields().iter().map(|field| {
        let leaves = first..first + leaf_count(field);
        first = leaves.end;
        let mut builder = Builder { decoders: Vec::new() };
        let shape = builder.build(field, 0, 0);
        let place = |e: Error| e.context(format!("column '{}'", field.name()));
        let shape = shape.map(|(node, kind)| ParquetShape { node, kind, decoders: builder.decoders }).map_err(place);
        ParquetField { name: field.name().to_owned(), shape, leaves }
    });
    Ok(fields.collect())
}

fn leaf_count(field: &Type) -> usize {
    if field.is_primitive() { 1 } else { field.get_fields().iter().map(|field| leaf_count(field)).sum() }
}

struct Builder {
    decoders: Vec<Decode>,
}

impl Builder {
    /// Builds a field at these levels.
    fn build(&mut self, field: &Type, definition: i16, repetition: i16) -> Result<(Node, ColumnType)> {
        let first = self.decoders.len();
        match field.get_basic_info().repetition() {
            Repetition::REQUIRED => self.build_one(field, definition, repetition),
            Repetition::OPTIONAL => {
                let (inner, kind) = self.build_one(field, definition + 1, repetition)?;
                Ok((Node::Optional { definition: definition + 1, inner: Box::new(inner), first }, kind))
            }
            Repetition::REPEATED => {
                let (element, kind) = self.build_one(field, definition + 1, repetition + 1)?;
                Ok(list(definition + 1, repetition + 1, element, kind, first))
            }
        }
    }

    /// Builds one occurrence of a field at these levels.
    fn build_one(&mut self, field: &Type, definition: i16, repetition: i16) -> Result<(Node, ColumnType)> {
        let first = self.decoders.len();
        if field.is_primitive() {
            let decode = decode(field)?;
            self.decoders.push(decode);
            return Ok((Node::Leaf(first), decode.kind()));
        }
        let (children, info) = (field.get_fields(), field.get_basic_info());
        let logical = info.logical_type_ref();
        let repeated = match children {
            [only] if only.get_basic_info().repetition() == Repetition::REPEATED => Some(only),
            _ => None,
        };
        let (definition_of_element, repetition_of_element) = (definition + 1, repetition + 1);
        let is_list = logical == Some(&LogicalType::List) || info.converted_type() == ConvertedType::LIST;
        let is_map = logical == Some(&LogicalType::Map)
            || matches!(info.converted_type(), ConvertedType::MAP | ConvertedType::MAP_KEY_VALUE);
        match repeated {
            Some(repeated) if is_list => {
                let (element, kind) = match list_element(field, repeated) {
                    Some(element) => self.build(element, definition_of_element, repetition_of_element)?,
                    None => self.build_one(repeated, definition_of_element, repetition_of_element)?,
                };
                Ok(list(definition_of_element, repetition_of_element, element, kind, first))
            }
            Some(repeated) if is_map && repeated.is_group() && repeated.get_fields().len() == 2 => {
                let fields = repeated.get_fields();
                let (key, _) = self.build(&fields[0], definition_of_element, repetition_of_element)?;
                let (value, _) = self.build(&fields[1], definition_of_element, repetition_of_element)?;
                let (key, value) = (Box::new(key), Box::new(value));
                let (definition, repetition) = (definition_of_element, repetition_of_element);
                Ok((Node::Map { definition, repetition, key, value, first }, ColumnType::Any))
            }
            _ if children.is_empty() => Err(Error::unsupported("a group without fields has no values")),
            _ => {
                let fields = children.iter().map(|child| {
                    let (node, _) = self.build(child, definition, repetition)?;
                    Ok((child.name().to_owned(), node))
                });
                Ok((Node::Group(fields.collect::<Result<_>>()?), ColumnType::Any))
            }
        }
    }
}

fn list(definition: i16, repetition: i16, element: Node, kind: ColumnType, first: usize) -> (Node, ColumnType) {
    let kind = ColumnType::List(Box::new(kind), LIST_SEPARATOR);
    (Node::List { definition, repetition, element: Box::new(element), first }, kind)
}

/// The element of a list of three levels. `None`: the repeated field is the element, as older writers have it.
fn list_element<'t>(list: &Type, repeated: &'t Type) -> Option<&'t Type> {
    if repeated.is_primitive() || repeated.name() == "array" || repeated.name() == format!("{}_tuple", list.name()) {
        return None;
    }
    match repeated.get_fields() {
        [only] => Some(only),
        _ => None,
    }
}

/// How the stored values of a primitive type are decoded.
fn decode(field: &Type) -> Result<Decode> {
    let info = field.get_basic_info();
    let physical = field.get_physical_type();
    let refuse = |what: &str| {
        Err(Error::unsupported(format!(
            "{what} has no counterpart here; leave the column out (skip in a mapping, or :IGNORE after its name)"
        )))
    };
    let plain = match physical {
        Physical::BOOLEAN => Decode::Bool,
        Physical::INT32 => Decode::I32,
        Physical::INT64 => Decode::I64,
        Physical::INT96 => Decode::Int96,
        Physical::FLOAT => Decode::F32,
        Physical::DOUBLE => Decode::F64,
        Physical::BYTE_ARRAY | Physical::FIXED_LEN_BYTE_ARRAY => Decode::Bytes,
    };
    if let Some(logical) = info.logical_type_ref() {
        return Ok(match (logical, physical) {
            (LogicalType::String | LogicalType::Enum | LogicalType::Json, _) => Decode::String,
            (LogicalType::Decimal(decimal), _) => decimal_of(decimal.scale)?,
            (LogicalType::Date, Physical::INT32) => Decode::Date,
            (LogicalType::Timestamp(stamp), Physical::INT64) => {
                Decode::Timestamp { per_second: per_second(&stamp.unit) }
            }
            (LogicalType::Integer(int), Physical::INT32 | Physical::INT64) => integer(int.bit_width, int.is_signed),
            (LogicalType::Uuid, Physical::FIXED_LEN_BYTE_ARRAY) => Decode::Uuid,
            (LogicalType::Float16, Physical::FIXED_LEN_BYTE_ARRAY) => Decode::F16,
            (LogicalType::Time(_), _) => return refuse("a time of day"),
            (LogicalType::Variant(_), _) => return refuse("a variant"),
            _ => plain,
        });
    }
    Ok(match info.converted_type() {
        ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::JSON => Decode::String,
        ConvertedType::DECIMAL => decimal_of(field.get_scale())?,
        ConvertedType::DATE if physical == Physical::INT32 => Decode::Date,
        ConvertedType::TIMESTAMP_MILLIS if physical == Physical::INT64 => Decode::Timestamp { per_second: 1_000 },
        ConvertedType::TIMESTAMP_MICROS if physical == Physical::INT64 => Decode::Timestamp { per_second: 1_000_000 },
        ConvertedType::INT_8 => integer(8, true),
        ConvertedType::INT_16 => integer(16, true),
        ConvertedType::INT_32 => integer(32, true),
        ConvertedType::INT_64 => integer(64, true),
        ConvertedType::UINT_8 => integer(8, false),
        ConvertedType::UINT_16 => integer(16, false),
        ConvertedType::UINT_32 => integer(32, false),
        ConvertedType::UINT_64 => integer(64, false),
        ConvertedType::INTERVAL if physical == Physical::FIXED_LEN_BYTE_ARRAY => Decode::Interval,
        ConvertedType::TIME_MILLIS | ConvertedType::TIME_MICROS => return refuse("a time of day"),
        _ => plain,
    })
}

fn decimal_of(scale: i32) -> Result<Decode> {
    if (0..=SCALE_MAX).contains(&scale) {
        return Ok(Decode::Decimal { scale: i64::from(scale) });
    }
    Err(Error::unsupported(format!("a decimal of scale {scale} is not supported; up to {SCALE_MAX} is")))
}

fn integer(bits: i8, signed: bool) -> Decode {
    match (bits, signed) {
        (8, true) => Decode::I8,
        (16, true) => Decode::I16,
        (32, true) => Decode::I32,
        (8, false) => Decode::U8,
        (16, false) => Decode::U16,
        (32, false) => Decode::U32,
        (_, false) => Decode::U64,
        _ => Decode::I64,
    }
}

fn per_second(unit: &TimeUnit) -> i64 {
    match unit {
        TimeUnit::MILLIS => 1_000,
        TimeUnit::MICROS => 1_000_000,
        _ => 1_000_000_000,
    }
}

impl Decode {
    /// The type of its values.
    fn kind(self) -> ColumnType {
        match self {
            Decode::Bool => ColumnType::Bool,
            Decode::I8 => ColumnType::I8,
            Decode::I16 | Decode::U8 => ColumnType::I16,
            Decode::I32 | Decode::U16 => ColumnType::I32,
            Decode::I64 | Decode::U32 | Decode::U64 => ColumnType::I64,
            Decode::F16 | Decode::F32 => ColumnType::F32,
            Decode::F64 => ColumnType::F64,
            Decode::Decimal { .. } => ColumnType::Decimal,
            Decode::Date | Decode::Timestamp { .. } | Decode::Int96 => ColumnType::DateTime(TimeFormat::Auto),
            Decode::String => ColumnType::String,
            Decode::Bytes => ColumnType::Bytes,
            Decode::Uuid => ColumnType::Uuid,
            Decode::Interval => ColumnType::Duration,
        }
    }
}
