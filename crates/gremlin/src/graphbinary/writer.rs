//! Writing GraphBinary: values and arguments into bytes.
//!
//! Writing fails only for a value that the format cannot hold. The bytes of a failed write stay in the buffer; the
//! caller truncates it (WIRE-5).

mod metrics;
mod structure;

use mangrove_graph::{DateTime, Detached, DetachedVertexProperty, Error, PathValue, Result, Value};
use num_bigint::BigInt;
use smol_str::SmolStr;

use super::code;
use crate::bytecode::{Argument, Bytecode, Instruction, Predicate};
use crate::calendar::Civil;
use crate::print::direction_name;
use crate::terms::{CARDINALITY_VALUE, token_name, unspreadable};

type Out = Vec<u8>;

/// A fully-qualified value.
pub(super) fn value(out: &mut Out, value: &Value) -> Result<()> {
    match value {
        Value::Null => null(out),
        Value::Bool(v) => scalar(out, code::BOOLEAN, &[u8::from(*v)]),
        Value::I8(n) => scalar(out, code::BYTE, &n.to_be_bytes()),
        Value::I16(n) => scalar(out, code::SHORT, &n.to_be_bytes()),
        Value::I32(n) => scalar(out, code::INT, &n.to_be_bytes()),
        Value::I64(n) => scalar(out, code::LONG, &n.to_be_bytes()),
        Value::F32(n) => scalar(out, code::FLOAT, &n.to_be_bytes()),
        Value::F64(n) => scalar(out, code::DOUBLE, &n.to_be_bytes()),
        Value::Char(c) => scalar(out, code::CHAR, c.encode_utf8(&mut [0; 4]).as_bytes()),
        Value::Uuid(uuid) => scalar(out, code::UUID, uuid.as_bytes()),
        Value::BigInt(n) => {
            head(out, code::BIG_INTEGER);
            big_integer(out, n)?;
        }
        Value::Decimal(n) => {
            head(out, code::BIG_DECIMAL);
            let (digits, scale) = n.as_bigint_and_exponent();
            let scale = i32::try_from(scale).map_err(|_| too_large("the scale of a decimal"))?;
            out.extend(scale.to_be_bytes());
            big_integer(out, &digits)?;
        }
        Value::String(text) => {
            head(out, code::STRING);
            string(out, text)?;
        }
        Value::Bytes(bytes) => {
            head(out, code::BYTE_BUFFER);
            length(out, bytes.len())?;
            out.extend_from_slice(bytes);
        }
        Value::DateTime(moment) => date_time(out, *moment)?,
        Value::Duration(duration) => {
            head(out, code::DURATION);
            out.extend(duration.seconds.to_be_bytes());
            out.extend(duration.nanos.to_be_bytes());
        }
        Value::List(items) => values(out, code::LIST, items)?,
        Value::Set(items) => values(out, code::SET, items)?,
        Value::Map(entries) => {
            head(out, code::MAP);
            length(out, entries.len())?;
            for (key, entry) in entries.iter() {
                self::value(out, key)?;
                self::value(out, entry)?;
            }
        }
        Value::Entry(entry) => {
            head(out, code::MAP);
            length(out, 1)?;
            self::value(out, &entry.0)?;
            self::value(out, &entry.1)?;
        }
        Value::BulkSet(entries) => {
            head(out, code::BULK_SET);
            length(out, entries.len())?;
            for (item, times) in entries.iter() {
                self::value(out, item)?;
                count(out, *times)?;
            }
        }
        // The format has no packed arrays: a client sees a list of floats.
        Value::F32Array(items) => {
            head(out, code::LIST);
            length(out, items.len())?;
            items.iter().for_each(|n| scalar(out, code::FLOAT, &n.to_be_bytes()));
        }
        Value::Path(path) => self::path(out, path)?,
        Value::Tree(tree) => {
            head(out, code::TREE);
            structure::tree(out, tree)?;
        }
        Value::Graph(graph) => {
            head(out, code::GRAPH);
            structure::graph(out, graph)?;
        }
        Value::Token(token) => enum_value(out, code::T, token_name(*token))?,
        Value::Direction(direction) => enum_value(out, code::DIRECTION, direction_name(*direction))?,
        Value::Detached(element) => detached(out, element)?,
        Value::TraversalMetrics(metrics) => metrics::traversal_metrics(out, metrics)?,
        inside => {
            return Err(Error::bug(format!("a {} reached the wire without being detached", inside.type_name())));
        }
    }
    Ok(())
}

/// A fully-qualified argument of a traversal. The wire has no form for parameters: they must be bound.
pub(super) fn argument(out: &mut Out, argument: &Argument) -> Result<()> {
    match argument {
        Argument::Value(plain) => value(out, plain),
        Argument::Parameter(name) => {
            Err(Error::invalid(format!("the parameter `{name}` must be bound before the traversal is sent")))
        }
        Argument::Lifted(_) => Err(Error::bug("a traversal without its literals reached the wire")),
        Argument::List(items) => {
            head(out, code::LIST);
            arguments(out, items)
        }
        Argument::Map(entries) => {
            head(out, code::MAP);
            length(out, entries.len())?;
            entries.iter().try_for_each(|(key, entry)| {
                self::argument(out, key)?;
                self::argument(out, entry)
            })
        }
        Argument::Traversal(nested) => bytecode(out, nested),
        Argument::Predicate(predicate) => self::predicate(out, predicate),
        Argument::Vertex(id) => vertex(out, id, "vertex", &[]),
        Argument::Edge(id) => {
            let unknown = (Value::Null, SmolStr::new_static("vertex"));
            edge(out, id, "edge", &unknown, &unknown, &[])
        }
        Argument::Order(v) => enum_value(out, code::ORDER, v.name()),
        Argument::Scope(v) => enum_value(out, code::SCOPE, v.name()),
        Argument::Pop(v) => enum_value(out, code::POP, v.name()),
        Argument::Column(v) => enum_value(out, code::COLUMN, v.name()),
        Argument::Cardinality(v) => enum_value(out, code::CARDINALITY, v.name()),
        Argument::CardinalityValue(cardinality, wrapped) => {
            let parts = vec![Argument::Cardinality(*cardinality), wrapped.as_ref().clone()];
            let source = vec![Instruction::new(CARDINALITY_VALUE, parts)];
            bytecode(out, &Bytecode { source, steps: Vec::new() })
        }
        Argument::Merge(v) => enum_value(out, code::MERGE, v.name()),
        Argument::Operator(v) => enum_value(out, code::OPERATOR, v.name()),
        Argument::Pick(v) => enum_value(out, code::PICK, v.name()),
        Argument::NormSack => enum_value(out, code::BARRIER, "normSack"),
        Argument::DateUnit(name) => enum_value(out, code::DT, name),
        Argument::Type(name) => enum_value(out, code::G_TYPE, name),
        Argument::Strategy(name, configuration) => strategy(out, name, configuration),
    }
}

/// A bytecode, fully qualified: its steps come before its source instructions.
fn bytecode(out: &mut Out, bytecode: &Bytecode) -> Result<()> {
    head(out, code::BYTECODE);
    for instructions in [&bytecode.steps, &bytecode.source] {
        length(out, instructions.len())?;
        for instruction in instructions {
            string(out, &instruction.name)?;
            arguments(out, &instruction.arguments)?;
        }
    }
    Ok(())
}

/// A count and as many fully-qualified arguments.
fn arguments(out: &mut Out, items: &[Argument]) -> Result<()> {
    length(out, items.len())?;
    items.iter().try_for_each(|item| argument(out, item))
}

fn predicate(out: &mut Out, predicate: &Predicate) -> Result<()> {
    let mut write = |type_code, name: &str, operands: &[Argument]| {
        head(out, type_code);
        string(out, name)?;
        arguments(out, operands)
    };
    let members = |members: &[Predicate]| members.iter().cloned().map(Argument::Predicate).collect::<Vec<_>>();
    match predicate {
        Predicate::Compare(comparison, operand) => write(code::P, comparison.name(), std::slice::from_ref(operand)),
        Predicate::Text(operation, operand) => write(code::TEXT_P, operation.name(), std::slice::from_ref(operand)),
        Predicate::TypeOf(operand) => write(code::P, "typeOf", std::slice::from_ref(operand)),
        // A reader would spread a single list, so it is wrapped in another.
        Predicate::Within(operands) => write(code::P, "within", &unspreadable(operands)),
        Predicate::Without(operands) => write(code::P, "without", &unspreadable(operands)),
        Predicate::And(all) => write(code::P, "and", &members(all)),
        Predicate::Or(any) => write(code::P, "or", &members(any)),
        Predicate::Not(inner) => write(code::P, "not", &[Argument::Predicate(inner.as_ref().clone())]),
    }
}

fn strategy(out: &mut Out, name: &str, configuration: &[(SmolStr, Argument)]) -> Result<()> {
    head(out, code::TRAVERSAL_STRATEGY);
    string(out, name)?;
    length(out, configuration.len())?;
    for (key, option) in configuration {
        head(out, code::STRING);
        string(out, key)?;
        argument(out, option)?;
    }
    Ok(())
}

fn date_time(out: &mut Out, moment: DateTime) -> Result<()> {
    let civil = Civil::from_moment(moment).ok_or_else(|| too_large("the year of a date"))?;
    head(out, code::OFFSET_DATE_TIME);
    out.extend(civil.year.to_be_bytes());
    out.extend(civil.month.to_be_bytes());
    out.extend(civil.day.to_be_bytes());
    out.extend(civil.nanos_of_day.to_be_bytes());
    out.extend(civil.offset_seconds.to_be_bytes());
    Ok(())
}

fn path(out: &mut Out, path: &PathValue) -> Result<()> {
    head(out, code::PATH);
    head(out, code::LIST);
    length(out, path.labels.len())?;
    for labels in &path.labels {
        head(out, code::SET);
        length(out, labels.len())?;
        for label in labels {
            head(out, code::STRING);
            string(out, label)?;
        }
    }
    values(out, code::LIST, &path.objects)
}

fn detached(out: &mut Out, element: &Detached) -> Result<()> {
    match element {
        Detached::Vertex { id, label, properties } => vertex(out, id, label, properties),
        Detached::Edge { id, label, source, target, properties } => edge(out, id, label, source, target, properties),
        Detached::VertexProperty(property) => vertex_property(out, property),
        Detached::Property { key, value } => self::property(out, key, value),
    }
}

fn vertex(out: &mut Out, id: &Value, label: &str, properties: &[DetachedVertexProperty]) -> Result<()> {
    head(out, code::VERTEX);
    value(out, id)?;
    string(out, label)?;
    list_or_null(out, properties, vertex_property)
}

fn edge(
    out: &mut Out,
    id: &Value,
    label: &str,
    source: &(Value, SmolStr),
    target: &(Value, SmolStr),
    properties: &[(SmolStr, Value)],
) -> Result<()> {
    head(out, code::EDGE);
    value(out, id)?;
    string(out, label)?;
    // The target comes first: the format writes an edge as an incoming one.
    for (vertex, vertex_label) in [target, source] {
        value(out, vertex)?;
        string(out, vertex_label)?;
    }
    null(out); // the parent
    list_or_null(out, properties, |out, (key, value)| property(out, key, value))
}

fn vertex_property(out: &mut Out, property: &DetachedVertexProperty) -> Result<()> {
    head(out, code::VERTEX_PROPERTY);
    value(out, &property.id)?;
    string(out, &property.key)?;
    value(out, &property.value)?;
    null(out); // the parent
    list_or_null(out, &property.meta, |out, (key, value)| self::property(out, key, value))
}

pub(super) fn property(out: &mut Out, key: &str, value: &Value) -> Result<()> {
    head(out, code::PROPERTY);
    string(out, key)?;
    self::value(out, value)?;
    null(out); // the parent
    Ok(())
}

/// Properties as clients expect them: a list, or null if there are none.
fn list_or_null<T>(out: &mut Out, items: &[T], write: impl Fn(&mut Out, &T) -> Result<()>) -> Result<()> {
    if items.is_empty() {
        null(out);
        return Ok(());
    }
    head(out, code::LIST);
    length(out, items.len())?;
    items.iter().try_for_each(|item| write(out, item))
}

/// A fully-qualified traverser.
pub(super) fn traverser(out: &mut Out, times: u64, object: &Value) -> Result<()> {
    head(out, code::TRAVERSER);
    count(out, times)?;
    value(out, object)
}

/// A fully-qualified collection of values.
pub(super) fn values(out: &mut Out, type_code: u8, items: &[Value]) -> Result<()> {
    head(out, type_code);
    length(out, items.len())?;
    items.iter().try_for_each(|item| value(out, item))
}

/// A number that is not negative, as a long without its type code.
fn count(out: &mut Out, count: u64) -> Result<()> {
    out.extend(i64::try_from(count).map_err(|_| too_large("a count"))?.to_be_bytes());
    Ok(())
}

fn enum_value(out: &mut Out, type_code: u8, name: &str) -> Result<()> {
    head(out, type_code);
    head(out, code::STRING);
    string(out, name)
}

fn big_integer(out: &mut Out, n: &BigInt) -> Result<()> {
    let bytes = n.to_signed_bytes_be();
    length(out, bytes.len())?;
    out.extend_from_slice(&bytes);
    Ok(())
}

fn scalar(out: &mut Out, type_code: u8, bytes: &[u8]) {
    head(out, type_code);
    out.extend_from_slice(bytes);
}

/// A null of no type.
pub(super) fn null(out: &mut Out) {
    out.extend([code::NULL, code::ABSENT]);
}

/// The type code, and that a value follows.
pub(super) fn head(out: &mut Out, type_code: u8) {
    out.extend([type_code, code::PRESENT]);
}

/// A string without type code and null byte.
pub(super) fn string(out: &mut Out, text: &str) -> Result<()> {
    length(out, text.len())?;
    out.extend_from_slice(text.as_bytes());
    Ok(())
}

pub(super) fn length(out: &mut Out, length: usize) -> Result<()> {
    out.extend(i32::try_from(length).map_err(|_| too_large("a length"))?.to_be_bytes());
    Ok(())
}

fn too_large(what: &str) -> Error {
    Error::evaluation(format!("{what} is more than GraphBinary holds (31 bits, 63 for a count)"))
}
