//! GraphML: `node` and `edge` elements with `data` for declared keys, as TinkerPop's `GraphMLWriter` and other tools
//! write it.
//!
//! The label of a node is its data under the key `labelV`, that of an edge under `labelE`. Without one they are
//! `vertex` and `edge`. Ids are those of the file; an id in plain decimal form is an integer. An edge of an undirected
//! graph is stored once, from its source to its target. Nested graphs are read as parts of the whole. Ports and
//! hyperedges are refused.
//!
//! The document is streamed twice, first for its nodes and then for its edges. One element is in memory at a time.
//!
//! Broken XML and undeclared keys stop the load. An element is rejected if a value is not of its key's type, if its id
//! exists already, or if its ends do not exist.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use super::edges::{DocumentEdge, load_by_ids, value_of};
use crate::input::{Bounded, Input};
use crate::sink::{Cardinality, MultiPropertyRow, ValueWithMeta};
use crate::state::{BatchFile, EdgeBatches, LoadContext, Pass, RowOrigin, VertexBatches, VertexTable};
use crate::values::{ColumnType, FileId};
use mangrove_graph::{ElementKind, Error, ErrorKind, Result, Value};
use quick_xml::Reader;
use quick_xml::events::{BytesRef, BytesStart, Event};

/// Loads the nodes of a document.
pub(crate) fn load_vertices(ctx: &mut LoadContext<'_>, file: usize, path: &Path) -> Result<()> {
    let pass = Pass { file, path };
    let mut batches = VertexBatches::new(BatchFile { pass, keeps_rows: false });
    GraphMlDocument::open(path, ctx.element_bytes_max)?.each(
        ctx,
        &pass,
        ElementKind::Vertex,
        |ctx, line, element| {
            let properties = match element.properties {
                Ok(properties) => properties,
                Err(reason) => return Ok(Err(reason)),
            };
            let id = element.id.ok_or_else(|| damaged("a node has no id"))?;
            let at = batches.open(ctx, element.label.as_deref().unwrap_or("vertex"), None);
            let table = batches.at(at);
            let claimed = table
                .claim_key(ctx, |name| value_of(&properties, name))
                .and_then(|()| table.claim_user_id(ctx, FileId::parse(&id).to_user_id()));
            if let Err(reason) = claimed {
                return Ok(Err(reason));
            }
            set_properties(table, properties);
            batches.end_row(ctx, at, RowOrigin { line, text: element.tag.as_bytes() })?;
            Ok(Ok(()))
        },
    )?;
    batches.flush(ctx)
}

/// Loads the edges of a document whose nodes are loaded.
pub(crate) fn load_edges(ctx: &mut LoadContext<'_>, file: usize, path: &Path) -> Result<()> {
    load_by_ids(ctx, file, path, |ctx, ids| load_edges_with_ids(ctx, file, path, ids))
}

/// Loads the edges with ids, or those without. Returns true if there were others.
fn load_edges_with_ids(ctx: &mut LoadContext<'_>, file: usize, path: &Path, ids: bool) -> Result<bool> {
    let pass = Pass { file, path };
    let mut batches = EdgeBatches::new(BatchFile { pass, keeps_rows: false });
    let mut others = false;
    GraphMlDocument::open(path, ctx.element_bytes_max)?.each(ctx, &pass, ElementKind::Edge, |ctx, line, element| {
        if element.id.is_some() != ids {
            others = true;
            return Ok(Ok(()));
        }
        let properties = match element.properties {
            Ok(properties) => properties,
            Err(reason) => return Ok(Err(reason)),
        };
        let mut ends = Vec::with_capacity(2);
        for (which, id) in [("source", element.source), ("target", element.target)] {
            let id = id.ok_or_else(|| damaged(&format!("an edge has no {which}")))?;
            match ctx.vertex(&FileId::parse(&id).to_user_id())? {
                Some(vertex) => ends.push(vertex),
                None => return Ok(Err(format!("the {which} vertex '{id}' does not exist"))),
            }
        }
        let id = element.id.map(|id| FileId::parse(&id).to_user_id());
        let label = element.label.as_deref().unwrap_or("edge");
        let edge = DocumentEdge { id, label, source: ends[0], target: ends[1], properties };
        edge.add(ctx, &mut batches, RowOrigin { line, text: element.tag.as_bytes() })
    })?;
    batches.flush(ctx)?;
    Ok(others)
}

/// A declared key.
struct GraphMlKey {
    /// The kind of element it is for; `None`: both.
    of: Option<ElementKind>,
    name: String,
    kind: ColumnType,
    default: Option<Value>,
}

/// A node or an edge.
struct GraphMlElement {
    /// The text of the element in a reject.
    tag: String,
    id: Option<String>,
    source: Option<String>,
    target: Option<String>,
    label: Option<String>,
    /// Keys and values, or why they cannot be read.
    properties: Result<Vec<(String, Value)>, String>,
}

/// A document being read.
struct GraphMlDocument {
    reader: Reader<BufReader<Bounded>>,
    lines: LineFinder,
    /// True if the document declares XML 1.1.
    is_xml11: bool,
    keys: BTreeMap<String, GraphMlKey>,
    /// The text since the last start tag.
    text: String,
    /// The id of the key whose declaration is open.
    declaring: Option<String>,
    /// The id of the key whose data is open.
    data: Option<String>,
    element: Option<GraphMlElement>,
}

impl GraphMlDocument {
    fn open(path: &Path, element_bytes_max: u64) -> Result<Self> {
        let mut reader = Reader::from_reader(Bounded::buffered(Input::open(path)?, element_bytes_max));
        reader.config_mut().expand_empty_elements = true;
        Ok(GraphMlDocument {
            reader,
            lines: LineFinder { path: path.to_owned(), file: None, position: 0, line: 1 },
            is_xml11: false,
            keys: BTreeMap::new(),
            text: String::new(),
            declaring: None,
            data: None,
            element: None,
        })
    }

    /// Calls `take` with each element of a kind, in their order.
    fn each(
        mut self,
        ctx: &mut LoadContext<'_>,
        pass: &Pass<'_>,
        kind: ElementKind,
        mut take: impl FnMut(&mut LoadContext<'_>, u64, GraphMlElement) -> Result<Result<(), String>>,
    ) -> Result<()> {
        let mut buffer = Vec::new();
        let mut root = false;
        let mut depth = 0_usize;
        let length = self.reader.get_ref().get_ref().element();
        loop {
            buffer.clear();
            if self.element.is_none() {
                length.end();
            }
            let event = self.reader.read_event_into(&mut buffer);
            let position = self.reader.buffer_position();
            let event = match event {
                Ok(Event::Eof) => break,
                Ok(event) => event,
                Err(e) => {
                    let (what, at) = match e {
                        // The file cannot be read, or an element is too long.
                        quick_xml::Error::Io(e) => (e.to_string(), position),
                        e => (format!("not XML: {e}"), self.reader.error_position()),
                    };
                    return Err(self.place(damaged(&what), at));
                }
            };
            match &event {
                Event::Start(_) => depth += 1,
                // The reader has checked that it closes an open tag.
                Event::End(_) => depth -= 1,
                _ => {}
            }
            root |= matches!(&event, Event::Start(tag) if tag.local_name().as_ref() == b"graphml");
            let finished = self.event(event, kind).map_err(|e| self.place(e, position))?;
            let Some(element) = finished else { continue };
            let tag = element.tag.clone();
            // An element without fault needs its line only if the sink may refuse it later.
            let line = if ctx.upsert { self.lines.find(position)? } else { 0 };
            match take(ctx, line, element).map_err(|e| self.place(e, position))? {
                Ok(()) => {}
                Err(reason) => {
                    let line = self.lines.find(position)?;
                    ctx.reject(pass, line, &reason, tag.as_bytes())?;
                }
            }
            ctx.row(pass, self.reader.get_ref().get_ref().input().bytes_taken())?;
        }
        let position = self.reader.buffer_position();
        if depth > 0 {
            return Err(self.place(damaged("the document ends in the middle of an element"), position));
        }
        if !root {
            return Err(self.place(damaged("there is no graphml element"), position));
        }
        ctx.end_pass(pass);
        Ok(())
    }

    /// Adds the line to an error about the document. Other errors name their place themselves.
    fn place(&mut self, error: Error, position: u64) -> Error {
        match self.lines.find(position) {
            Ok(line) if error.kind() == ErrorKind::Syntax => error.context(format!("line {line}")),
            _ => error,
        }
    }

    /// Handles an event. Returns the element that it ends.
    fn event(&mut self, event: Event<'_>, kind: ElementKind) -> Result<Option<GraphMlElement>> {
        match event {
            Event::Start(tag) => self.start(&tag, kind)?,
            Event::Decl(declaration) => self.is_xml11 = declaration.version().is_ok_and(|version| *version == *b"1.1"),
            // XML 1.1 has more line ends than 1.0.
            Event::Text(text) => {
                let content = if self.is_xml11 { text.xml11_content() } else { text.xml10_content() };
                self.text.push_str(&content.map_err(|e| damaged(&e.to_string()))?);
            }
            Event::CData(text) => {
                let content = if self.is_xml11 { text.xml11_content() } else { text.xml10_content() };
                self.text.push_str(&content.map_err(|e| damaged(&e.to_string()))?);
            }
            Event::GeneralRef(reference) => self.text.push(character(&reference)?),
            Event::End(tag) => return self.end(tag.local_name().as_ref()),
            _ => {}
        }
        Ok(None)
    }

    fn start(&mut self, tag: &BytesStart<'_>, kind: ElementKind) -> Result<()> {
        self.text.clear();
        match tag.local_name().as_ref() {
            b"key" => self.declare(tag)?,
            b"node" if kind == ElementKind::Vertex => self.element = Some(element(tag)?),
            b"edge" if kind == ElementKind::Edge => self.element = Some(element(tag)?),
            b"data" => self.data = Some(attribute(tag, "key")?.ok_or_else(|| damaged("data without a key"))?),
            b"hyperedge" | b"port" => {
                let name = String::from_utf8_lossy(tag.local_name().as_ref()).into_owned();
                return Err(Error::new(
                    ErrorKind::Syntax,
                    format!("a {name} cannot be loaded: a graph here has edges only"),
                ));
            }
            _ => {}
        }
        Ok(())
    }

    fn declare(&mut self, tag: &BytesStart<'_>) -> Result<()> {
        let id = attribute(tag, "id")?.ok_or_else(|| damaged("a key has no id"))?;
        let of = match attribute(tag, "for")?.as_deref() {
            Some("node") => Some(ElementKind::Vertex),
            Some("edge") => Some(ElementKind::Edge),
            _ => None,
        };
        // Our own attribute comes first: it names types that GraphML does not have.
        let kind = match attribute(tag, "mangrove.type")?.or(attribute(tag, "attr.type")?) {
            Some(name) => ColumnType::named(&name).map_err(|e| damaged(e.message()))?,
            None => ColumnType::String,
        };
        let name = attribute(tag, "attr.name")?.unwrap_or_else(|| id.clone());
        self.keys.insert(id.clone(), GraphMlKey { of, name, kind, default: None });
        self.declaring = Some(id);
        Ok(())
    }

    fn end(&mut self, name: &[u8]) -> Result<Option<GraphMlElement>> {
        match name {
            b"key" => self.declaring = None,
            b"default" => {
                if let Some(key) = self.declaring.as_ref().and_then(|id| self.keys.get_mut(id)) {
                    let message =
                        || damaged(&format!("the default '{}' is not of the type {}", self.text, key.kind.name()));
                    key.default = Some(key.kind.parse(&self.text).ok_or_else(message)?);
                }
            }
            b"data" => self.end_data()?,
            b"node" => return Ok(self.finish(ElementKind::Vertex)),
            b"edge" => return Ok(self.finish(ElementKind::Edge)),
            _ => {}
        }
        Ok(None)
    }

    fn end_data(&mut self) -> Result<()> {
        let (Some(id), Some(element)) = (self.data.take(), &mut self.element) else { return Ok(()) };
        let Some(key) = self.keys.get(&id) else {
            return Err(damaged(&format!("data under the key '{id}', which is not declared")));
        };
        if matches!(key.name.as_str(), "labelV" | "labelE") {
            element.label = Some(std::mem::take(&mut self.text));
        } else if let Ok(properties) = &mut element.properties {
            match key.kind.parse(&self.text) {
                Some(value) => properties.push((key.name.clone(), value)),
                None => {
                    let reason =
                        format!("'{}' under the key '{}' is not of the type {}", self.text, key.name, key.kind.name());
                    element.properties = Err(reason);
                }
            }
        }
        Ok(())
    }

    /// The element that ends here, with the defaults of keys that it has no data for.
    fn finish(&mut self, kind: ElementKind) -> Option<GraphMlElement> {
        let mut element = self.element.take()?;
        if let Ok(properties) = &mut element.properties {
            let defaults = self.keys.values().filter(|key| key.of.is_none_or(|of| of == kind));
            let mut defaults: BTreeMap<&str, &Value> =
                defaults.filter_map(|key| Some((key.name.as_str(), key.default.as_ref()?))).collect();
            for (name, _) in properties.iter() {
                defaults.remove(name.as_str());
            }
            properties.extend(defaults.into_iter().map(|(name, default)| (name.to_owned(), default.clone())));
        }
        Some(element)
    }
}

/// Sets the properties of the current row. Several data under one key are several values.
fn set_properties(table: &mut VertexTable, properties: Vec<(String, Value)>) {
    let mut by_key: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (key, value) in properties {
        by_key.entry(key).or_default().push(value);
    }
    for (key, mut values) in by_key {
        if values.len() == 1 {
            values.drain(..).for_each(|value| table.columns.set_key(&key, value));
            continue;
        }
        let values = values.into_iter().map(|value| ValueWithMeta { value, meta: Vec::new() }).collect();
        let multi = MultiPropertyRow { row: table.row(), key: key.into(), cardinality: Cardinality::List, values };
        table.multi.push(multi);
    }
}

fn damaged(what: &str) -> Error {
    Error::new(ErrorKind::Syntax, format!("damaged GraphML: {what}"))
}

fn element(tag: &BytesStart<'_>) -> Result<GraphMlElement> {
    Ok(GraphMlElement {
        tag: format!("<{}>", String::from_utf8_lossy(tag)),
        id: attribute(tag, "id")?,
        source: attribute(tag, "source")?,
        target: attribute(tag, "target")?,
        label: None,
        properties: Ok(Vec::new()),
    })
}

fn attribute(tag: &BytesStart<'_>, name: &str) -> Result<Option<String>> {
    let attribute = tag.try_get_attribute(name).map_err(|e| damaged(&e.to_string()))?;
    let value = attribute.map(|attribute| attribute.unescape_value().map(|value| value.into_owned()));
    value.transpose().map_err(|e| damaged(&e.to_string()))
}

/// The character that a reference (`&amp;`, `&#233;`) names.
fn character(reference: &BytesRef<'_>) -> Result<char> {
    if let Some(character) = reference.resolve_char_ref().map_err(|e| damaged(&e.to_string()))? {
        return Ok(character);
    }
    Ok(match &**reference {
        b"amp" => '&',
        b"lt" => '<',
        b"gt" => '>',
        b"quot" => '"',
        b"apos" => '\'',
        other => return Err(damaged(&format!("the entity '{}' is not known", String::from_utf8_lossy(other)))),
    })
}

/// Finds the line number of a byte, for messages. It reads the file again, only as far as it must, and never goes back.
struct LineFinder {
    path: PathBuf,
    file: Option<BufReader<Input>>,
    position: u64,
    line: u64,
}

impl LineFinder {
    fn find(&mut self, position: u64) -> Result<u64> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(BufReader::new(Input::open(&self.path)?)),
        };
        while self.position < position {
            let available = file.fill_buf()?;
            let wanted = usize::try_from(position - self.position).unwrap_or(usize::MAX).min(available.len());
            if wanted == 0 {
                break;
            }
            self.line += memchr::memchr_iter(b'\n', &available[..wanted]).count() as u64;
            self.position += wanted as u64;
            file.consume(wanted);
        }
        Ok(self.line)
    }
}
