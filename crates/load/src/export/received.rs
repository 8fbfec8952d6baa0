//! Elements that a server sent, written as JSON lines.
//!
//! The client has no view of that graph. It gets the vertices and then the edges, one after the other, each with all
//! its data. JSON lines need no more, so memory is bounded by one element.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use mangrove_graph::{Catalog, Detached, DetachedVertexProperty, Error, KeyId, PropertyRow, Result, Value, VertexId};

use super::elements::{CatalogNames, EdgeRow, VertexRow};
use super::json_lines::Lines;
use super::output::ExportFile;
use super::{ExportProgress, ExportReport, PROGRESS_ROWS};

/// Takes one detached element.
pub type TakeElement<'t> = dyn FnMut(&Value) -> Result<()> + 't;

/// Writes elements to a file of JSON lines, compressed as its name says. `produce` calls its argument with the
/// elements, vertices before edges.
///
/// `progress` is called from time to time. An error from it or from `produce` ends the export and leaves no file.
pub fn export_elements(
    path: &Path,
    produce: impl FnOnce(&mut TakeElement<'_>) -> Result<()>,
    progress: &mut dyn FnMut(ExportProgress) -> Result<()>,
) -> Result<ExportReport> {
    let mut output = ExportFile::create(path)?;
    // A catalog of this function: the client does not know the numbers of names on the server.
    let catalog = Catalog::new();
    let mut lines = Lines { names: CatalogNames::new(&catalog), line: Vec::new() };
    let mut report = ExportReport::default();
    produce(&mut |element| {
        let line = match element {
            Value::Detached(element) => write(&catalog, &mut lines, element, &mut report)?,
            _ => None,
        };
        let line = line.ok_or_else(|| Error::invalid(format!("a {} is no vertex or edge", element.type_name())))?;
        output.write_all(line)?;
        match (report.vertices + report.edges).is_multiple_of(PROGRESS_ROWS) {
            true => progress(ExportProgress { vertices: report.vertices, edges: report.edges }),
            false => Ok(()),
        }
    })?;
    progress(ExportProgress { vertices: report.vertices, edges: report.edges })?;
    output.finish()?;
    Ok(report)
}

/// Counts an element and returns its line; `None` if it is neither vertex nor edge.
fn write<'l>(
    catalog: &Catalog,
    lines: &'l mut Lines<'_>,
    element: &Detached,
    report: &mut ExportReport,
) -> Result<Option<&'l [u8]>> {
    match element {
        Detached::Vertex { id, label, properties } => {
            report.vertices += 1;
            let label = catalog.intern_label_text(label);
            let properties = vertex_properties(catalog, properties);
            // The internal id is not written; only views use it.
            let vertex = VertexId::from_bits(0);
            lines.vertex(&VertexRow { vertex, id, label, properties: &properties }).map(Some)
        }
        Detached::Edge { id, label, source, target, properties } => {
            report.edges += 1;
            let label = catalog.intern_label_text(label);
            let property = |(key, value): &(smol_str::SmolStr, Value)| row(catalog.intern_key(key), value, Vec::new());
            let properties: Vec<PropertyRow> = properties.iter().map(property).collect();
            lines.edge(&EdgeRow { id, label, source: &source.0, target: &target.0, properties: &properties }).map(Some)
        }
        _ => Ok(None),
    }
}

/// The properties of a vertex, grouped by key and in their order.
fn vertex_properties(catalog: &Catalog, properties: &[DetachedVertexProperty]) -> Vec<PropertyRow> {
    let mut rows: Vec<PropertyRow> = properties
        .iter()
        .map(|property| {
            let meta = property.meta.iter().map(|(key, value)| (catalog.intern_key(key), value.clone()));
            row(catalog.intern_key(&property.key), &property.value, meta.collect())
        })
        .collect();
    rows.sort_by_key(|row| row.key);
    rows
}

fn row(key: KeyId, value: &Value, meta: Vec<(KeyId, Value)>) -> PropertyRow {
    PropertyRow { row: 0, key, ordinal: 0, value: value.clone(), meta: Arc::new(meta) }
}
