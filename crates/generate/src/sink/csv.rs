//! A sink that writes CSV tables with typed headers, which `mangrove load` reads back to the same graph.
//!
//! A table of vertices is one file (`Person.csv`). If a batch of edges names the tables of its ends, the edges of a
//! label have one file for each pair of tables (`Person_knows_Person.csv`). The other edges of the label share one
//! file. `mapping.toml` beside them says what the headers cannot. Fields are separated by `|` and quoted only where
//! they must be. An empty field has no value.
//!
//! The sink keeps the ids of vertices, because edges are written with them: 8 bytes a vertex, or none if ids are the
//! vertex numbers. A value that would not read back the same (an empty text, several values that are not texts) is an
//! error.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use mangrove::{ElementKind, Error, Result, Value};
use smol_str::SmolStr;

use super::{GeneratedColumn, GeneratedEdges, GeneratedIds, GeneratedValues, GeneratedVertices, GraphSink};

/// The name of the mapping file.
pub const MAPPING: &str = "mapping.toml";

const DELIMITER: char = '|';
/// The separator of the values of a multi-property.
const SEPARATOR: char = ';';

type TableWriter = csv::Writer<BufWriter<File>>;

/// Writes tables into a folder.
pub struct CsvSink {
    folder: PathBuf,
    /// Tables of vertices by name; tables of edges by the label and the tables of their ends.
    tables: BTreeMap<(ElementKind, SmolStr), CsvTable>,
    known: WrittenIds,
    mapping: String,
    bytes: u64,
}

/// The ids that vertices are written with, by number.
enum WrittenIds {
    /// No vertex was written.
    Nothing,
    Numbers,
    Local(Vec<i64>),
    Texts(Vec<SmolStr>),
}

struct CsvTable {
    writer: TableWriter,
    path: PathBuf,
    header: Vec<String>,
    /// True if a column has the label.
    labeled: bool,
}

impl CsvSink {
    /// A sink that writes into this folder, which is created or must be empty.
    pub fn new(folder: impl Into<PathBuf>) -> Result<Self> {
        let folder = empty_folder(folder.into())?;
        let mapping = format!(
            "# How `mangrove load --map {MAPPING}` reads the tables beside this file.\n\n\
             [defaults]\ndelimiter = \"{DELIMITER}\"\nnull = [\"\"]\n"
        );
        Ok(CsvSink { folder, tables: BTreeMap::new(), known: WrittenIds::Nothing, mapping, bytes: 0 })
    }

    /// Writes buffered rows and the mapping. Returns the size of all files in bytes.
    pub fn finish(mut self) -> Result<u64> {
        for table in std::mem::take(&mut self.tables).into_values() {
            let with_path = |e: std::io::Error| Error::from(e).context(table.path.display());
            let mut file = table.writer.into_inner().map_err(|e| with_path(e.into_error()))?;
            file.flush().map_err(with_path)?;
            self.bytes += file.get_ref().metadata().map_err(with_path)?.len();
        }
        let path = self.folder.join(MAPPING);
        fs::write(&path, &self.mapping).map_err(|e| Error::from(e).context(path.display()))?;
        Ok(self.bytes + self.mapping.len() as u64)
    }

    /// The table of a batch. A new one is created with its header.
    fn open(
        &mut self,
        kind: ElementKind,
        key: SmolStr,
        header: Vec<String>,
        labeled: bool,
        rule: impl FnOnce(&str) -> String,
    ) -> Result<&mut CsvTable> {
        let table_key = (kind, key);
        if !self.tables.contains_key(&table_key) {
            let name = self.file_name(&table_key.1);
            let path = self.folder.join(&name);
            let file = File::create(&path).map_err(|e| Error::from(e).context(path.display()))?;
            let mut writer = csv::WriterBuilder::new()
                .delimiter(DELIMITER as u8)
                .from_writer(BufWriter::with_capacity(1 << 18, file));
            writer.write_record(&header).map_err(|e| failed(e, &path))?;
            self.mapping += &rule(&name);
            self.tables.insert(table_key.clone(), CsvTable { writer, path, header: header.clone(), labeled });
        }
        let table = self.tables.get_mut(&table_key).expect("it was just put there if it was not");
        if table.header == header && table.labeled == labeled {
            return Ok(table);
        }
        let (was, is) = (table.header.join(","), header.join(","));
        Err(Error::bug(format!("a table has one header: {} has {was} and then {is}", table.path.display())))
    }

    /// A unique name for the file of a table.
    fn file_name(&self, key: &str) -> String {
        let clean: String =
            key.chars().map(|c| if c.is_alphanumeric() || "-_".contains(c) { c } else { '_' }).collect();
        let taken = |name: &String| self.tables.values().any(|table| table.path.ends_with(name));
        let mut names = (1..).map(|n| if n == 1 { format!("{clean}.csv") } else { format!("{clean}-{n}.csv") });
        names.find(|name| !taken(name)).expect("one of endlessly many names is free")
    }
}

/// Creates the folder if there is none. Fails if it is not empty.
pub(crate) fn empty_folder(folder: PathBuf) -> Result<PathBuf> {
    let with_path = |e: std::io::Error| Error::from(e).context(folder.display());
    fs::create_dir_all(&folder).map_err(with_path)?;
    if fs::read_dir(&folder).map_err(with_path)?.next().is_some() {
        let message = format!("{} is not empty; name a new folder, so that nothing is mixed up", folder.display());
        return Err(Error::invalid(message));
    }
    Ok(folder)
}

impl std::fmt::Debug for CsvSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CsvSink({}, {} tables)", self.folder.display(), self.tables.len())
    }
}

impl GraphSink for CsvSink {
    fn vertices(&mut self, batch: GeneratedVertices) -> Result<()> {
        let space = match batch.ids {
            GeneratedIds::Local(_) => batch.table.as_str(),
            GeneratedIds::Numbers | GeneratedIds::Texts(_) => "",
        };
        let labeled = batch.table != batch.label;
        let mut header = vec![format!("id:ID({space})")];
        header.extend(labeled.then(|| ":LABEL".to_owned()));
        header.extend(batch.columns.iter().map(|column| format!("{}:{}", column.key, type_name(&column.values))));
        let label = (!labeled).then_some(&batch.label);
        let rule = |name: &str| vertex_rule(name, label, matches!(batch.ids, GeneratedIds::Local(_)), &batch.columns);
        let table = self.open(ElementKind::Vertex, batch.table.clone(), header, labeled, rule)?;
        let labels = batch.label.replace("::", ";");
        let mut rows = RowWriter::new(&batch.columns);
        for row in 0..batch.len {
            match &batch.ids {
                GeneratedIds::Numbers => rows.number(table, batch.first + row as u64)?,
                GeneratedIds::Local(ids) => rows.number(table, ids[row])?,
                GeneratedIds::Texts(ids) => rows.text(table, &ids[row], "id")?,
            }
            if labeled {
                rows.text(table, &labels, "label")?;
            }
            rows.values(table, row)?;
        }
        self.known.extend(batch.ids)
    }

    fn edges(&mut self, batch: GeneratedEdges) -> Result<()> {
        let spaces = batch.tables.as_ref().filter(|_| matches!(self.known, WrittenIds::Local(_)));
        let (source, target) = spaces.map_or(("", ""), |(source, target)| (source.as_str(), target.as_str()));
        let mut header = vec![format!(":START_ID({source})"), format!(":END_ID({target})")];
        header.extend(batch.columns.iter().map(|column| format!("{}:{}", column.key, type_name(&column.values))));
        let key = match &batch.tables {
            Some((source, target)) => format!("{source}_{}_{target}", batch.label).into(),
            None => batch.label.clone(),
        };
        let known = std::mem::replace(&mut self.known, WrittenIds::Nothing);
        let table = self.open(ElementKind::Edge, key, header, false, |name| edge_rule(name, &batch.label))?;
        let mut rows = RowWriter::new(&batch.columns);
        for (row, (source, target)) in batch.ends.iter().enumerate() {
            for end in [*source, *target] {
                match &known {
                    WrittenIds::Local(ids) => {
                        rows.number(table, *ids.get(end as usize).ok_or_else(|| unknown(end))?)?
                    }
                    WrittenIds::Texts(ids) => {
                        rows.text(table, ids.get(end as usize).ok_or_else(|| unknown(end))?, "id")?
                    }
                    WrittenIds::Numbers => rows.number(table, end)?,
                    WrittenIds::Nothing => return Err(unknown(end)),
                }
            }
            rows.values(table, row)?;
        }
        self.known = known;
        Ok(())
    }
}

/// The error that an edge came before its end.
fn unknown(number: u64) -> Error {
    Error::bug(format!("an edge was generated before its end, vertex {number}"))
}

impl WrittenIds {
    fn extend(&mut self, ids: GeneratedIds) -> Result<()> {
        match (&mut *self, ids) {
            (WrittenIds::Nothing, GeneratedIds::Numbers) => *self = WrittenIds::Numbers,
            (WrittenIds::Nothing, GeneratedIds::Local(ids)) => *self = WrittenIds::Local(ids),
            (WrittenIds::Nothing, GeneratedIds::Texts(ids)) => *self = WrittenIds::Texts(ids),
            (WrittenIds::Numbers, GeneratedIds::Numbers) => {}
            (WrittenIds::Local(known), GeneratedIds::Local(ids)) => known.extend(ids),
            (WrittenIds::Texts(known), GeneratedIds::Texts(ids)) => known.extend(ids),
            _ => return Err(Error::bug("all vertices of a generated graph have ids of one kind")),
        }
        Ok(())
    }
}

/// Writes the fields of rows.
struct RowWriter<'a> {
    columns: &'a [GeneratedColumn],
    /// By column: how many of its rows with values were written, if only some rows have values.
    next: Vec<usize>,
    buffer: String,
}

impl<'a> RowWriter<'a> {
    fn new(columns: &'a [GeneratedColumn]) -> Self {
        RowWriter { columns, next: vec![0; columns.len()], buffer: String::new() }
    }

    fn number(&mut self, table: &mut CsvTable, number: impl std::fmt::Display) -> Result<()> {
        self.buffer.clear();
        write!(self.buffer, "{number}").expect("writing to a string does not fail");
        table.writer.write_field(&self.buffer).map_err(|e| failed(e, &table.path))
    }

    fn text(&mut self, table: &mut CsvTable, text: &str, key: &str) -> Result<()> {
        if text.is_empty() {
            let message = format!("'{key}' is an empty text, which a table cannot tell from no value; leave it out");
            return Err(Error::invalid(message).context(table.path.display()));
        }
        table.writer.write_field(text).map_err(|e| failed(e, &table.path))
    }

    /// Writes the properties of a row and ends the line.
    fn values(&mut self, table: &mut CsvTable, row: usize) -> Result<()> {
        for (at, GeneratedColumn { key, values }) in self.columns.iter().enumerate() {
            match values {
                GeneratedValues::Bool(v) => self.number(table, v[row])?,
                GeneratedValues::I32(v) => self.number(table, v[row])?,
                GeneratedValues::I64(v) => self.number(table, v[row])?,
                GeneratedValues::F64(v) => self.number(table, v[row])?,
                GeneratedValues::Text(v) => self.text(table, &v[row], key)?,
                GeneratedValues::OptionalText(v) => match &v[row] {
                    Some(text) => self.text(table, text, key)?,
                    None => table.writer.write_field("").map_err(|e| failed(e, &table.path))?,
                },
                GeneratedValues::Several(v) => {
                    let found = v.get(self.next[at]).filter(|(of, _)| *of as usize == row);
                    self.next[at] += usize::from(found.is_some());
                    let joined = joined(found.map_or(&[], |(_, values)| values), key)?;
                    table.writer.write_field(joined).map_err(|e| failed(e, &table.path))?;
                }
            }
        }
        table.writer.write_record(None::<&[u8]>).map_err(|e| failed(e, &table.path))
    }
}

/// The values of a multi-property as one field.
fn joined(values: &[Value], key: &str) -> Result<String> {
    let mut joined = String::new();
    for value in values {
        match value {
            Value::String(text) if !text.is_empty() && !text.contains(SEPARATOR) && !text.starts_with('[') => {
                if !joined.is_empty() {
                    joined.push(SEPARATOR);
                }
                joined.push_str(text);
            }
            _ => {
                let message = format!(
                    "several values of '{key}' are written to a table only if all are texts without '{SEPARATOR}'"
                );
                return Err(Error::invalid(message));
            }
        }
    }
    Ok(joined)
}

/// The name of a column's type in a header.
fn type_name(values: &GeneratedValues) -> &'static str {
    match values {
        GeneratedValues::Bool(_) => "bool",
        GeneratedValues::I32(_) => "int",
        GeneratedValues::I64(_) => "long",
        GeneratedValues::F64(_) => "double",
        GeneratedValues::Text(_) | GeneratedValues::OptionalText(_) => "string",
        GeneratedValues::Several(_) => "string[]",
    }
}

/// The rule of the mapping for a table of vertices.
fn vertex_rule(name: &str, label: Option<&SmolStr>, local: bool, columns: &[GeneratedColumn]) -> String {
    let mut rule = format!("\n[[file]]\nmatch = \"{name}\"\nkind = \"vertex\"\n");
    let mut line = |text: String| writeln!(rule, "{text}").expect("writing to a string does not fail");
    if let Some(label) = label {
        line(format!("label = {}", quoted(label)));
    }
    line(format!("user_id = {}", !local));
    line(format!("id_property = \"{}\"", if local { "id" } else { "" }));
    if local {
        line("key = \"id\"".to_owned());
    }
    for column in columns.iter().filter(|column| matches!(column.values, GeneratedValues::Several(_))) {
        let key = quoted(&column.key);
        let meaning = format!("type = \"string[]\", separator = \"{SEPARATOR}\", cardinality = \"list\"");
        line(format!("properties.{key} = {{ {meaning} }}"));
    }
    rule
}

/// The rule of the mapping for a table of edges.
fn edge_rule(name: &str, label: &str) -> String {
    format!("\n[[file]]\nmatch = \"{name}\"\nkind = \"edge\"\nlabel = {}\n", quoted(label))
}

/// A text as TOML: what JSON escapes, TOML escapes the same way.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a text is always JSON")
}

fn failed(error: csv::Error, path: &Path) -> Error {
    let error = match error.into_kind() {
        csv::ErrorKind::Io(error) => Error::from(error),
        other => Error::bug(format!("{other:?}")),
    };
    error.context(path.display())
}
