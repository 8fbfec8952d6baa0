//! A sink that writes GraphSON, one vertex a line with its out-edges, for graphs whose keys and types fit no table.
//!
//! It writes one file, `graph.json`, in version 3. The format requires ids of edges, so an edge gets its number. A line
//! has a vertex and all its edges, so the sink keeps the text of the whole graph until the end.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::PathBuf;

use mangrove::{Error, Result, Value};
use smol_str::SmolStr;

use super::csv::empty_folder;
use super::{GeneratedColumn, GeneratedEdges, GeneratedIds, GeneratedValues, GeneratedVertices, GraphSink};

/// The name of the file.
const FILE: &str = "graph.json";

/// Writes the file `graph.json` into a folder.
pub struct GraphsonSink {
    path: PathBuf,
    /// Vertices by their number.
    vertices: Vec<VertexLine>,
    edges: u64,
}

struct VertexLine {
    /// The id as JSON.
    id: String,
    /// The line without its end, so that edges can be added.
    line: String,
    /// Its out-edges as JSON, by label, in the order of the first edge of each label.
    edges: Vec<(SmolStr, String)>,
}

impl GraphsonSink {
    /// A sink that writes into this folder, which is created or must be empty.
    pub fn new(folder: impl Into<PathBuf>) -> Result<Self> {
        Ok(GraphsonSink { path: empty_folder(folder.into())?.join(FILE), vertices: Vec::new(), edges: 0 })
    }

    /// Writes the file. Returns its size in bytes.
    pub fn finish(self) -> Result<u64> {
        let place = |e: std::io::Error| Error::from(e).context(self.path.display());
        let mut file = BufWriter::new(File::create(&self.path).map_err(place)?);
        for VertexLine { line, edges, .. } in &self.vertices {
            file.write_all(line.as_bytes()).map_err(place)?;
            for (at, (label, edges)) in edges.iter().enumerate() {
                let before = if at == 0 { ",\"outE\":{" } else { "," };
                write!(file, "{before}{}:[{edges}]", quoted(label)).map_err(place)?;
            }
            file.write_all(if edges.is_empty() { b"}\n" } else { b"}}\n" }).map_err(place)?;
        }
        file.flush().map_err(place)?;
        Ok(file.get_ref().metadata().map_err(place)?.len())
    }
}

impl std::fmt::Debug for GraphsonSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "GraphsonSink({}, {} vertices)", self.path.display(), self.vertices.len())
    }
}

impl GraphSink for GraphsonSink {
    fn vertices(&mut self, batch: GeneratedVertices) -> Result<()> {
        let mut properties = vec![String::new(); batch.len];
        for GeneratedColumn { key, values } in &batch.columns {
            each_value(values, |row, values| {
                let text = &mut properties[row];
                push(text, format_args!("{}:[", quoted(key)));
                for (at, value) in values.iter().enumerate() {
                    let comma = if at == 0 { "" } else { "," };
                    write!(text, "{comma}{{\"value\":{}}}", json(value)?).expect("writing to a string does not fail");
                }
                text.push(']');
                Ok(())
            })?;
        }
        let label = quoted(&batch.label);
        for (row, properties) in properties.into_iter().enumerate() {
            let id = match &batch.ids {
                GeneratedIds::Numbers => typed("g:Int64", batch.first + row as u64),
                GeneratedIds::Texts(ids) => quoted(&ids[row]),
                GeneratedIds::Local(_) => {
                    return Err(Error::bug("GraphSON has no ids that are distinct within a kind only"));
                }
            };
            let mut line = format!("{{\"id\":{id},\"label\":{label}");
            if !properties.is_empty() {
                write!(line, ",\"properties\":{{{properties}}}").expect("writing to a string does not fail");
            }
            self.vertices.push(VertexLine { id, line, edges: Vec::new() });
        }
        Ok(())
    }

    fn edges(&mut self, batch: GeneratedEdges) -> Result<()> {
        let mut properties = vec![String::new(); batch.ends.len()];
        for GeneratedColumn { key, values } in &batch.columns {
            each_value(values, |row, values| {
                let [value] = values else { return Err(Error::bug(format!("an edge has one value of '{key}'"))) };
                push(&mut properties[row], format_args!("{}:{}", quoted(key), json(value)?));
                Ok(())
            })?;
        }
        for ((source, target), properties) in batch.ends.iter().zip(properties) {
            let unknown = || Error::bug("an edge was generated before its ends");
            let target = self.vertices.get(*target as usize).ok_or_else(unknown)?.id.clone();
            let source = self.vertices.get_mut(*source as usize).ok_or_else(unknown)?;
            let at = source.edges.iter().position(|(label, _)| *label == batch.label).unwrap_or_else(|| {
                source.edges.push((batch.label.clone(), String::new()));
                source.edges.len() - 1
            });
            let id = typed("g:Int64", self.edges);
            self.edges += 1;
            let more = if properties.is_empty() { String::new() } else { format!(",\"properties\":{{{properties}}}") };
            push(&mut source.edges[at].1, format_args!("{{\"id\":{id},\"inV\":{target}{more}}}"));
        }
        Ok(())
    }
}

/// Appends an item to a list, with a comma before it unless it is the first.
fn push(text: &mut String, item: std::fmt::Arguments<'_>) {
    if !text.is_empty() {
        text.push(',');
    }
    text.write_fmt(item).expect("writing to a string does not fail");
}

/// Calls `each` with the number and the values of every row that has some.
fn each_value(values: &GeneratedValues, mut each: impl FnMut(usize, &[Value]) -> Result<()>) -> Result<()> {
    let mut one = |(row, value)| each(row, &[value]);
    match values {
        GeneratedValues::Bool(v) => v.iter().map(|value| Value::Bool(*value)).enumerate().try_for_each(one),
        GeneratedValues::I32(v) => v.iter().map(|value| Value::I32(*value)).enumerate().try_for_each(one),
        GeneratedValues::I64(v) => v.iter().map(|value| Value::I64(*value)).enumerate().try_for_each(one),
        GeneratedValues::F64(v) => v.iter().map(|value| Value::F64(*value)).enumerate().try_for_each(one),
        GeneratedValues::Text(v) => v.iter().map(|value| Value::String(value.clone())).enumerate().try_for_each(one),
        GeneratedValues::OptionalText(v) => {
            let present = v.iter().enumerate().filter_map(|(row, text)| Some((row, Value::String(text.clone()?))));
            present.into_iter().try_for_each(&mut one)
        }
        GeneratedValues::Several(v) => v.iter().try_for_each(|(row, values)| each(*row as usize, values)),
    }
}

/// A value in GraphSON's typed form.
fn json(value: &Value) -> Result<String> {
    Ok(match value {
        Value::Bool(truth) => truth.to_string(),
        Value::I32(number) => typed("g:Int32", number),
        Value::I64(number) => typed("g:Int64", number),
        Value::F64(number) if number.is_finite() => typed("g:Double", format_args!("{number:?}")),
        Value::F64(number) => typed("g:Double", format_args!("\"{number}\"")),
        Value::String(text) => quoted(text),
        Value::List(items) => {
            let items: Vec<String> = items.iter().map(json).collect::<Result<_>>()?;
            typed("g:List", format_args!("[{}]", items.join(",")))
        }
        Value::DateTime(date) => match date.epoch_millis().filter(|_| date.offset_seconds == 0) {
            Some(millis) => typed("g:Date", millis),
            None => return Err(Error::bug("generated dates are in UTC")),
        },
        other => return Err(Error::bug(format!("no generator makes a {} yet", other.type_name()))),
    })
}

fn typed(name: &str, value: impl std::fmt::Display) -> String {
    format!("{{\"@type\":\"{name}\",\"@value\":{value}}}")
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a text is always JSON")
}
