//! The text form of values. Values with equal text are equal: every number has its type, and members of sets are sorted
//! by their texts. So are entries of maps, unless the case asks for their order.
//!
//! Scalars are literals of the language. An element is its id, label and ends, without its properties. All automatic
//! ids are `*`.

use mangrove::{Detached, Tree, Value};
use mangrove_gremlin::Literal;
use mangrove_oracle::graph::AUTOMATIC_ID_MIN;

/// The results of a traversal, in sequence or sorted.
pub fn written(results: &[Value], ordered: bool) -> Vec<String> {
    let mut lines: Vec<String> = results.iter().map(|value| write(value, ordered)).collect();
    if !ordered {
        lines.sort();
    }
    lines
}

/// The text of one value.
pub fn write(value: &Value, ordered: bool) -> String {
    let each = |values: &[Value]| values.iter().map(|value| write(value, ordered)).collect::<Vec<_>>();
    match value {
        Value::F32(n) if n.is_nan() => "NaNf".into(),
        Value::F32(n) if n.is_infinite() => if *n > 0.0 { "Infinityf" } else { "-Infinityf" }.into(),
        Value::Decimal(n) => format!("{}m", n.normalized()),
        Value::Char(c) => format!("char {}", Literal(&Value::string(c.to_string()))),
        Value::List(values) => format!("[{}]", each(values).join(", ")),
        Value::Set(values) => format!("{{{}}}", sorted(each(values), false)),
        Value::BulkSet(values) => {
            let repeated = |(value, times): &(Value, u64)| vec![write(value, ordered); *times as usize];
            format!("bag{{{}}}", sorted(values.iter().flat_map(repeated).collect(), false))
        }
        Value::Map(entries) => map(entries, ordered),
        Value::Entry(entry) => map(std::slice::from_ref(&**entry), ordered),
        Value::Path(path) => {
            let labels = path.labels.iter().map(|names| {
                let mut names: Vec<_> = names.iter().map(|name| format!(" as {name}")).collect();
                names.sort();
                names.concat()
            });
            let objects = each(&path.objects);
            let parts: Vec<_> =
                objects.iter().zip(labels).map(|(object, labels)| format!("{object}{labels}")).collect();
            format!("path[{}]", parts.join(", "))
        }
        Value::Tree(below) => tree(below),
        Value::Graph(graph) => {
            format!("graph({}; {})", sorted(each(&graph.vertices), false), sorted(each(&graph.edges), false))
        }
        Value::Detached(element) => detached(element, ordered),
        other => Literal(other).to_string(),
    }
}

fn sorted(mut parts: Vec<String>, ordered: bool) -> String {
    if !ordered {
        parts.sort();
    }
    parts.join(", ")
}

fn map(entries: &[(Value, Value)], ordered: bool) -> String {
    let is_id = |key: &Value| *key == Value::Token(mangrove::Token::Id);
    let parts = entries.iter().map(|(key, value)| {
        let value = if is_id(key) { id(value) } else { write(value, ordered) };
        format!("{}: {value}", write(key, ordered))
    });
    let parts: Vec<_> = parts.collect();
    if parts.is_empty() { "[:]".into() } else { format!("[{}]", sorted(parts, ordered)) }
}

fn tree(below: &Tree) -> String {
    let branches = below.branches.iter().map(|(key, tree_below)| format!("{}{}", write(key, false), tree(tree_below)));
    format!("({})", sorted(branches.collect(), false))
}

fn id(value: &Value) -> String {
    match value {
        Value::I32(n) if i64::from(*n) >= AUTOMATIC_ID_MIN => "*".into(),
        Value::I64(n) if *n >= AUTOMATIC_ID_MIN => "*".into(),
        other => Literal(other).to_string(),
    }
}

fn detached(element: &Detached, ordered: bool) -> String {
    match element {
        Detached::Vertex { id: own, label, .. } => format!("v[{}:{label}]", id(own)),
        Detached::Edge { id: own, label, source, target, .. } => {
            format!("e[{}][{}-{label}->{}]", id(own), id(&source.0), id(&target.0))
        }
        Detached::VertexProperty(property) => {
            let meta = property.meta.iter().map(|(key, value)| format!("{key}->{}", write(value, ordered)));
            let meta = sorted(meta.collect(), false);
            let value = write(&property.value, ordered);
            if meta.is_empty() {
                format!("vp[{}->{value}]", property.key)
            } else {
                format!("vp[{}->{value}; {meta}]", property.key)
            }
        }
        Detached::Property { key, value } => format!("p[{key}->{}]", write(value, ordered)),
    }
}
