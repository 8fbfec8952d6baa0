//! Values in a short form, for reports and for expected answers in tests: `v[1]`, `e[7][1-knows->2]`, `29`, `6l`,
//! `[name:marko]`. There is no parser for it.

use mangrove_graph::{Detached, Value};

/// A value in a short form; sets and maps keep their order of insertion.
pub fn show(value: &Value) -> String {
    let all = |v: &[Value]| v.iter().map(show).collect::<Vec<_>>().join(",");
    match value {
        Value::Null => "null".into(),
        Value::Bool(b) => b.to_string(),
        Value::I32(n) => n.to_string(),
        Value::I64(n) => format!("{n}l"),
        Value::F64(n) => format!("{n:?}"),
        Value::String(s) => s.to_string(),
        Value::List(v) => format!("[{}]", all(v)),
        Value::Set(v) => format!("{{{}}}", all(v)),
        Value::BulkSet(v) => format!("[{}]", v.iter().map(|(v, _)| show(v)).collect::<Vec<_>>().join(",")),
        Value::Map(m) => {
            let entries: Vec<_> = m.iter().map(|(k, v)| format!("{}:{}", show(k), show(v))).collect();
            format!("[{}]", if entries.is_empty() { ":".into() } else { entries.join(",") })
        }
        Value::Path(p) => format!("path[{}]", all(&p.objects)),
        Value::Token(t) => format!("{t:?}").to_lowercase(),
        Value::Direction(d) => format!("{d:?}").to_uppercase(),
        Value::Detached(d) => match d.as_ref() {
            Detached::Vertex { id, .. } => format!("v[{}]", show(id)),
            Detached::Edge { id, label, source, target, .. } => {
                format!("e[{}][{}-{label}->{}]", show(id), show(&source.0), show(&target.0))
            }
            Detached::VertexProperty(p) => format!("vp[{}->{}]", p.key, show(&p.value)),
            Detached::Property { key, value } => format!("p[{key}->{}]", show(value)),
        },
        other => format!("{other:?}"),
    }
}

/// The first results of an answer, up to a limit.
pub fn show_answer(values: &[Value], count_max: usize) -> String {
    let mut text = values.iter().take(count_max).map(show).collect::<Vec<_>>().join(", ");
    if values.len() > count_max {
        text.push_str(&format!(", … ({} in all)", values.len()));
    }
    text
}
