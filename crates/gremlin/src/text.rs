//! Values as text for people, as a console shows them: `v[1]`, `e[7][1-knows->2]`, `{name=[marko]}`.
//!
//! It is the text that TinkerPop's own classes print. GraphSON uses it for map keys that are no strings, and
//! [`Encoding::GraphBinaryText`](crate::Encoding::GraphBinaryText) for every result. It is not made to be parsed;
//! `print` makes text that can be. A bulk is a number here, so the text is not much longer than the value is large.

mod profile;

use std::fmt::{self, Display, Formatter, Write as _};

use mangrove_graph::{Detached, Tree, Value};

use crate::print::direction_name;
use crate::terms::token_name;

pub use self::profile::ProfileTable;

/// A value as text for people.
#[derive(Clone, Copy, Debug)]
pub struct Plain<'a>(
    /// The value.
    pub &'a Value,
);

impl Display for Plain<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Null => f.write_str("null"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::I8(n) => write!(f, "{n}"),
            Value::I16(n) => write!(f, "{n}"),
            Value::I32(n) => write!(f, "{n}"),
            Value::I64(n) => write!(f, "{n}"),
            Value::BigInt(n) => write!(f, "{n}"),
            Value::F32(n) => float(f, f64::from(*n), n),
            Value::F64(n) => float(f, *n, n),
            Value::Decimal(n) => f.write_str(&decimal(n)),
            Value::Char(c) => f.write_char(*c),
            Value::String(text) => f.write_str(text),
            Value::Bytes(bytes) => bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
            Value::Uuid(uuid) => write!(f, "{uuid}"),
            Value::DateTime(moment) => write!(f, "{moment}"),
            Value::Duration(duration) => write!(f, "{duration}"),
            Value::List(items) | Value::Set(items) => sequence(f, items.iter()),
            Value::F32Array(items) => {
                let items: Vec<Value> = items.iter().map(|n| Value::F32(*n)).collect();
                sequence(f, items.iter())
            }
            Value::Map(entries) => {
                f.write_char('{')?;
                for (i, (key, value)) in entries.iter().enumerate() {
                    write!(f, "{}{}={}", if i > 0 { ", " } else { "" }, Plain(key), Plain(value))?;
                }
                f.write_char('}')
            }
            Value::Entry(entry) => write!(f, "{}={}", Plain(&entry.0), Plain(&entry.1)),
            // Each value once with its count: a bulk may be any number.
            Value::BulkSet(entries) => {
                f.write_char('{')?;
                for (i, (value, bulk)) in entries.iter().enumerate() {
                    write!(f, "{}{}={bulk}", if i > 0 { ", " } else { "" }, Plain(value))?;
                }
                f.write_char('}')
            }
            Value::Path(path) => {
                f.write_str("path")?;
                sequence(f, path.objects.iter())
            }
            Value::Tree(tree) => branches(f, tree),
            Value::Graph(graph) => {
                write!(f, "graph[vertices:{} edges:{}]", graph.vertices.len(), graph.edges.len())
            }
            Value::Token(token) => f.write_str(token_name(*token)),
            Value::Direction(direction) => f.write_str(direction_name(*direction)),
            Value::Detached(element) => detached(f, element),
            Value::TraversalMetrics(metrics) => ProfileTable(metrics).fmt(f),
            other => write!(f, "<{}>", other.type_name()),
        }
    }
}

/// A tree as nested maps: `{v[1]={v[2]={}}}`.
fn branches(f: &mut Formatter<'_>, tree: &Tree) -> fmt::Result {
    f.write_char('{')?;
    for (i, (key, below)) in tree.branches.iter().enumerate() {
        write!(f, "{}{}=", if i > 0 { ", " } else { "" }, Plain(key))?;
        branches(f, below)?;
    }
    f.write_char('}')
}

/// A decimal in plain notation, unless that would print more than 40 zeros in a row.
pub(crate) fn decimal(n: &bigdecimal::BigDecimal) -> String {
    const ZEROS_MAX: i64 = 40;
    let (digits, scale) = n.as_bigint_and_exponent();
    let digits = digits.to_string();
    let length = i64::try_from(digits.trim_start_matches('-').len()).unwrap_or(i64::MAX);
    match scale {
        0 => digits,
        _ if scale < -ZEROS_MAX || scale > length + ZEROS_MAX => format!("{digits}e{}", -i128::from(scale)),
        _ => n.to_plain_string(),
    }
}

/// A float: its shortest digits in its own width (`shown`), or the name of a number that has no digits.
fn float<T: fmt::Debug>(f: &mut Formatter<'_>, wide: f64, shown: &T) -> fmt::Result {
    if wide.is_nan() {
        f.write_str("NaN")
    } else if wide.is_infinite() {
        f.write_str(if wide > 0.0 { "Infinity" } else { "-Infinity" })
    } else {
        write!(f, "{shown:?}")
    }
}

fn sequence<'a>(f: &mut Formatter<'_>, items: impl Iterator<Item = &'a Value>) -> fmt::Result {
    f.write_char('[')?;
    for (i, item) in items.enumerate() {
        write!(f, "{}{}", if i > 0 { ", " } else { "" }, Plain(item))?;
    }
    f.write_char(']')
}

fn detached(f: &mut Formatter<'_>, element: &Detached) -> fmt::Result {
    match element {
        Detached::Vertex { id, .. } => write!(f, "v[{}]", Plain(id)),
        Detached::Edge { id, label, source, target, .. } => {
            write!(f, "e[{}][{}-{label}->{}]", Plain(id), Plain(&source.0), Plain(&target.0))
        }
        Detached::VertexProperty(property) => write!(f, "vp[{}->{}]", property.key, Plain(&property.value)),
        Detached::Property { key, value } => write!(f, "p[{key}->{}]", Plain(value)),
    }
}
