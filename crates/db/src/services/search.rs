//! `tinker.search`: scans all properties for a text. No index helps, so it checks the limits of the query on the way.

use std::sync::Arc;

use mangrove_graph::{
    Error, LabelFilter, PropertyOwner, PropertyRow, PropertyValue, Result, ScanCursor, Share, Value,
    VertexPropertyValue,
};
use mangrove_steps::ServiceCall;
use smol_str::SmolStr;

use super::registry::Arguments;

const NAME: &str = "tinker.search";

/// Elements read between two checks of the limits.
const SCANNED_AT_ONCE: usize = 1024;

/// The approximate bytes of a result.
const FOUND_BYTES: u64 = 128;

/// The elements whose properties are searched.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SearchedElements {
    All,
    Vertices,
    Edges,
    VertexProperties,
}

pub(super) fn run(call: &ServiceCall<'_>, arguments: &Arguments<'_>) -> Result<Vec<Value>> {
    let text = match arguments.get("search") {
        Some(Value::String(text)) => text.clone(),
        Some(other) => return Err(arguments.misfit("search", "a string", other)),
        None => return Err(Error::invalid(format!("{NAME} needs to be given 'search', the text to look for"))),
    };
    let owners = arguments.get("type").map_or(Ok(SearchedElements::All), |given| owners(arguments, given))?;
    let mut search = PropertySearch { call, text, found: Vec::new() };
    if owners != SearchedElements::Edges {
        search.vertices(owners)?;
    }
    if matches!(owners, SearchedElements::All | SearchedElements::Edges) {
        search.edges()?;
    }
    Ok(search.found)
}

fn owners(arguments: &Arguments<'_>, given: &Value) -> Result<SearchedElements> {
    let Value::String(name) = given else {
        return Err(arguments.misfit("type", "'Vertex', 'Edge' or 'VertexProperty'", given));
    };
    match name.as_str() {
        "Vertex" => Ok(SearchedElements::Vertices),
        "Edge" => Ok(SearchedElements::Edges),
        "VertexProperty" => Ok(SearchedElements::VertexProperties),
        other => Err(Error::invalid(format!("{NAME}: 'type' is 'Vertex', 'Edge' or 'VertexProperty', not '{other}'"))),
    }
}

struct PropertySearch<'a> {
    call: &'a ServiceCall<'a>,
    text: SmolStr,
    found: Vec<Value>,
}

impl PropertySearch<'_> {
    fn matches(&self, value: &Value) -> bool {
        matches!(value, Value::String(text) if text.contains(self.text.as_str()))
    }

    /// Properties of vertices, and their meta-properties.
    fn vertices(&mut self, owners: SearchedElements) -> Result<()> {
        let (mut cursor, mut vertices, mut rows) = (ScanCursor::default(), Vec::new(), Vec::new());
        let mut ended = false;
        while !ended {
            self.call.control.check()?;
            vertices.clear();
            rows.clear();
            let view = self.call.view;
            ended = view.scan_vertices(&LabelFilter::Any, Share::ALL, &mut cursor, SCANNED_AT_ONCE, &mut vertices)?;
            view.vertex_properties(&vertices, None, &mut rows)?;
            let before = self.found.len();
            for PropertyRow { row, key, ordinal, value, meta } in rows.drain(..) {
                let vertex = vertices[row as usize];
                if owners != SearchedElements::Vertices {
                    let owner = PropertyOwner::VertexProperty(vertex, key, ordinal);
                    let matching = meta.iter().filter(|(_, value)| self.matches(value));
                    let made = matching.map(|(key, value)| PropertyValue { owner, key: *key, value: value.clone() });
                    let made: Vec<Value> = made.map(|property| Value::Property(Arc::new(property))).collect();
                    self.found.extend(made);
                }
                if owners != SearchedElements::VertexProperties && self.matches(&value) {
                    let property = VertexPropertyValue { vertex, key, ordinal, value, meta };
                    self.found.push(Value::VertexProperty(Arc::new(property)));
                }
            }
            self.charge(before)?;
        }
        Ok(())
    }

    fn edges(&mut self) -> Result<()> {
        let (mut cursor, mut edges, mut rows) = (ScanCursor::default(), Vec::new(), Vec::new());
        let mut ended = false;
        while !ended {
            self.call.control.check()?;
            edges.clear();
            rows.clear();
            let view = self.call.view;
            ended = view.scan_edges(&LabelFilter::Any, Share::ALL, &mut cursor, SCANNED_AT_ONCE, &mut edges)?;
            view.edge_properties(&edges, None, &mut rows)?;
            let before = self.found.len();
            for PropertyRow { row, key, value, .. } in rows.drain(..) {
                if self.matches(&value) {
                    let owner = PropertyOwner::Edge(edges[row as usize]);
                    self.found.push(Value::Property(Arc::new(PropertyValue { owner, key, value })));
                }
            }
            self.charge(before)?;
        }
        Ok(())
    }

    /// Adds a result. It is charged until the query ends.
    fn charge(&self, before: usize) -> Result<()> {
        self.call.control.charge((self.found.len() - before) as u64 * FOUND_BYTES)
    }
}
