//! CSV, with headers that name the types of columns. There are two forms.
//!
//! - Our own is the CSV of Gremlin services (`~id`, `~label`, `name:type`), with a type for every value that a property
//!   can hold. Everything but meta-properties loads as it was. A text that is empty, or equals the text of a missing
//!   value, stands in quotes. A field without a value is empty.
//! - The form of Neo4j's importer (`:ID`, `:LABEL`, `:START_ID`) has fewer types and one column a key. Several values
//!   become an array separated by `;`, and values without a type there become text. Both are counted as losses.

use mangrove_graph::{ElementKind, PropertyRow, Result, Value};

use super::elements::{CatalogNames, EdgeRow, Selection, VertexRow, by_key};
use super::kind::{ColumnKind, ColumnSchema, ColumnShape, Scalar};
use super::table::{ExportTable, IdKind, TablesExport, check_key, is_plain_id};
use super::text::{write_scalar, write_values};
use super::{Counts, ExportFormat, ExportTarget};

/// Writes a table.
pub(crate) fn write(
    setting: &TablesExport<'_>,
    table: &ExportTable,
    schema: &ColumnSchema,
    target: &mut ExportTarget<'_>,
) -> Result<Counts> {
    let mut writer = Writer {
        setting,
        table,
        schema,
        neo4j: setting.options.format == ExportFormat::CsvNeo4j,
        columns: Vec::new(),
        spans: Vec::new(),
        values: Vec::new(),
        line: Vec::new(),
        counts: Counts::default(),
    };
    target.losses.meta += schema.with_meta;
    writer.header(target)?;
    let labels = Selection::only(table.set);
    match table.kind {
        ElementKind::Vertex => Selection::each_vertex(setting.view, &labels, &mut |row| writer.vertex(&row, target))?,
        ElementKind::Edge => {
            setting.selection.each_edge(setting.view, &labels, &mut |row| writer.edge(&row, target))?
        }
    }
    Ok(writer.counts)
}

struct Writer<'w> {
    setting: &'w TablesExport<'w>,
    table: &'w ExportTable,
    schema: &'w ColumnSchema,
    neo4j: bool,
    /// The kind of each column.
    columns: Vec<ColumnKind>,
    /// For each column the range of its text in `values`. An empty range: the column has no value.
    spans: Vec<(usize, usize)>,
    values: Vec<u8>,
    line: Vec<u8>,
    counts: Counts,
}

impl Writer<'_> {
    fn header(&mut self, target: &mut ExportTarget<'_>) -> Result<()> {
        let mut names = CatalogNames::new(self.setting.view.catalog());
        let (vertices, edges) = (self.setting.vertex_ids.suffix(), self.setting.edge_ids.suffix());
        let fixed = match (self.neo4j, self.table.kind) {
            (true, ElementKind::Vertex) => vec![":ID".to_owned(), ":LABEL".to_owned()],
            (true, ElementKind::Edge) => [":START_ID", ":END_ID", ":TYPE"].map(str::to_owned).to_vec(),
            (false, ElementKind::Vertex) => vec![format!("~id{vertices}"), "~label".to_owned()],
            (false, ElementKind::Edge) => {
                vec![format!("~id{edges}"), format!("~from{vertices}"), format!("~to{vertices}"), "~label".to_owned()]
            }
        };
        for name in &fixed {
            self.field(name.as_bytes());
        }
        let mut last = None;
        for (key, kind) in self.schema.columns() {
            let name = names.key(key).clone();
            check_key(&name, kind)?;
            self.columns.push(kind);
            if !self.neo4j {
                self.field(format!("{name}:{}", kind.name()).as_bytes());
            } else if last != Some(key) {
                let kind = if self.schema.is_mixed(key) { None } else { Some(kind) };
                self.field(format!("{name}:{}", neo4j_name(kind)).as_bytes());
            }
            last = Some(key);
        }
        self.end_line(target)
    }

    fn vertex(&mut self, row: &VertexRow<'_>, target: &mut ExportTarget<'_>) -> Result<()> {
        self.id(row.id, self.setting.vertex_ids, target)?;
        let label = if self.neo4j { self.table.label.replace("::", ";") } else { self.table.label.to_string() };
        self.field(label.as_bytes());
        self.properties(row.properties, target)?;
        self.counts.vertices += 1;
        self.end_line(target)?;
        target.row(self.counts)
    }

    fn edge(&mut self, row: &EdgeRow<'_>, target: &mut ExportTarget<'_>) -> Result<()> {
        if !self.neo4j {
            self.id(row.id, self.setting.edge_ids, target)?;
        }
        self.id(row.source, self.setting.vertex_ids, target)?;
        self.id(row.target, self.setting.vertex_ids, target)?;
        let label = self.table.label.clone();
        self.field(label.as_bytes());
        self.properties(row.properties, target)?;
        self.counts.edges += 1;
        self.end_line(target)?;
        target.row(self.counts)
    }

    fn id(&mut self, id: &Value, kind: IdKind, target: &mut ExportTarget<'_>) -> Result<()> {
        self.values.clear();
        if self.neo4j {
            target.losses.ids += u64::from(!is_plain_id(id));
            write_scalar(&mut self.values, Scalar::of(id), id)?;
        } else {
            write_scalar(&mut self.values, kind.scalar(id), id)?;
        }
        let text = std::mem::take(&mut self.values);
        self.field(&text);
        self.values = text;
        Ok(())
    }

    fn properties(&mut self, properties: &[PropertyRow], target: &mut ExportTarget<'_>) -> Result<()> {
        self.values.clear();
        self.spans.clear();
        self.spans.resize(self.columns.len(), NONE);
        for values in by_key(properties) {
            let kind = ColumnKind::of(values);
            let at = self.schema.position_of(values[0].key, kind);
            let begin = self.values.len();
            if self.neo4j {
                let mixed = self.schema.is_mixed(values[0].key);
                let lost = mixed || !is_neo4j(kind);
                target.losses.values += u64::from(lost);
                write_neo4j(&mut self.values, kind, values)?;
            } else {
                write_values(&mut self.values, kind, values)?;
            }
            self.spans[at] = (begin, self.values.len());
        }
        let (values, spans) = (std::mem::take(&mut self.values), std::mem::take(&mut self.spans));
        let mut columns = self.schema.columns().map(|(key, _)| key).zip(&spans).peekable();
        while let Some((key, mut span)) = columns.next() {
            // In Neo4j's form, all columns of a key are one.
            while self.neo4j
                && let Some((_, next)) = columns.next_if(|(other, _)| *other == key)
            {
                span = if *span == NONE { next } else { span };
            }
            match *span {
                NONE => self.empty(),
                (begin, end) => self.field(&values[begin..end]),
            }
        }
        (self.values, self.spans) = (values, spans);
        Ok(())
    }

    fn separate(&mut self) {
        if !self.line.is_empty() {
            self.line.push(b',');
        }
    }

    /// Writes a field without a value. The first field of a line is an id, so the line is not empty here.
    fn empty(&mut self) {
        self.line.push(b',');
    }

    fn field(&mut self, text: &[u8]) {
        self.separate();
        let plain = !text.is_empty()
            && text != b"\\N"
            && memchr::memchr3(b',', b'"', b'\n', text).is_none()
            && memchr::memchr(b'\r', text).is_none();
        if plain {
            self.line.extend_from_slice(text);
            return;
        }
        self.line.push(b'"');
        let mut rest = text;
        while let Some(quote) = memchr::memchr(b'"', rest) {
            self.line.extend_from_slice(&rest[..=quote]);
            self.line.push(b'"');
            rest = &rest[quote + 1..];
        }
        self.line.extend_from_slice(rest);
        self.line.push(b'"');
    }

    fn end_line(&mut self, target: &mut ExportTarget<'_>) -> Result<()> {
        self.line.push(b'\n');
        target.out.write_all(&self.line)?;
        self.line.clear();
        Ok(())
    }
}

const NONE: (usize, usize) = (usize::MAX, 0);

/// The type of a column for Neo4j's importer. `None`: the key has values of several kinds, which become text.
fn neo4j_name(kind: Option<ColumnKind>) -> String {
    let Some(kind) = kind else { return "string".to_owned() };
    let scalar = match kind.scalar {
        Scalar::Bool => "boolean",
        Scalar::I8 => "byte",
        Scalar::I16 => "short",
        Scalar::I32 => "int",
        Scalar::I64 => "long",
        Scalar::F32 => "float",
        Scalar::F64 => "double",
        Scalar::Char => "char",
        Scalar::DateTime => "datetime",
        Scalar::Duration => "duration",
        _ => "string",
    };
    if kind.shape == ColumnShape::One { scalar.to_owned() } else { format!("{scalar}[]") }
}

/// Returns true if values of this kind have a type in Neo4j's form.
fn is_neo4j(kind: ColumnKind) -> bool {
    let scalar = !matches!(kind.scalar, Scalar::BigInt | Scalar::Decimal | Scalar::Bytes | Scalar::Uuid | Scalar::Any);
    scalar && kind.shape != ColumnShape::Several
}

fn write_neo4j(out: &mut Vec<u8>, kind: ColumnKind, values: &[PropertyRow]) -> Result<()> {
    let items: Vec<&Value> = match (kind.shape, &values[0].value) {
        (ColumnShape::One, value) => return write_scalar(out, kind.scalar, value),
        (ColumnShape::List, Value::List(items)) => items.iter().collect(),
        _ => values.iter().map(|property| &property.value).collect(),
    };
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            out.push(b';');
        }
        write_scalar(out, kind.scalar, item)?;
    }
    Ok(())
}
