//! JSON lines: one vertex or one edge a line.
//!
//! ```json
//! {"vertex":1,"label":"person","properties":{"name":"marko","age":{"@type":"g:Int32","@value":29}}}
//! {"edge":7,"label":"knows","from":1,"to":2,"properties":{"weight":0.5}}
//! ```
//!
//! All vertices come first. A whole number without a type is a long, any other number a double. Values that JSON has no
//! form for are typed as in GraphSON 3. A key with several values, or with meta-properties, stands under `multi` with a
//! list of `{"value": …, "properties": {…}}`. Nothing is lost (LOAD-5).

use mangrove_graph::{GraphView, PropertyRow, Result};

use super::elements::{CatalogNames, EdgeRow, Selection, VertexRow, by_key};
use super::graphson::write_meta;
use super::{Counts, ExportTarget};
use crate::values::{write_plain_value, write_string};

/// Writes the graph.
pub(crate) fn write(view: &dyn GraphView, selection: &Selection, target: &mut ExportTarget<'_>) -> Result<Counts> {
    let mut counts = Counts::default();
    let mut lines = Lines { names: CatalogNames::new(view.catalog()), line: Vec::new() };
    Selection::each_vertex(view, &selection.labels, &mut |vertex| {
        counts.vertices += 1;
        target.out.write_all(lines.vertex(&vertex)?)?;
        target.row(counts)
    })?;
    selection.each_edge(view, &selection.labels, &mut |edge| {
        counts.edges += 1;
        target.out.write_all(lines.edge(&edge)?)?;
        target.row(counts)
    })?;
    Ok(counts)
}

/// Makes lines of elements.
pub(crate) struct Lines<'n> {
    pub(crate) names: CatalogNames<'n>,
    pub(crate) line: Vec<u8>,
}

impl Lines<'_> {
    /// The line of a vertex.
    pub(crate) fn vertex(&mut self, vertex: &VertexRow<'_>) -> Result<&[u8]> {
        let Lines { names, line } = self;
        line.clear();
        line.extend_from_slice(b"{\"vertex\":");
        write_plain_value(line, vertex.id)?;
        line.extend_from_slice(b",\"label\":");
        write_string(line, names.set(vertex.label));
        let plain = |values: &&[PropertyRow]| matches!(values, [only] if only.meta.is_empty());
        let singles = by_key(vertex.properties).filter(plain).map(|values| &values[0]);
        write_singles(line, names, singles)?;
        write_multi(line, names, by_key(vertex.properties).filter(|values| !plain(values)))?;
        line.extend_from_slice(b"}\n");
        Ok(line)
    }

    /// The line of an edge.
    pub(crate) fn edge(&mut self, edge: &EdgeRow<'_>) -> Result<&[u8]> {
        let Lines { names, line } = self;
        line.clear();
        for (member, value) in [("{\"edge\":", edge.id), (",\"from\":", edge.source), (",\"to\":", edge.target)] {
            line.extend_from_slice(member.as_bytes());
            write_plain_value(line, value)?;
        }
        line.extend_from_slice(b",\"label\":");
        write_string(line, names.set(edge.label));
        write_singles(line, names, edge.properties.iter())?;
        line.extend_from_slice(b"}\n");
        Ok(line)
    }
}

fn write_singles<'p>(
    line: &mut Vec<u8>,
    names: &mut CatalogNames<'_>,
    properties: impl Iterator<Item = &'p PropertyRow>,
) -> Result<()> {
    let mut any = false;
    for property in properties {
        line.extend_from_slice(if any { b"," } else { b",\"properties\":{" });
        any = true;
        write_string(line, names.key(property.key));
        line.push(b':');
        write_plain_value(line, &property.value)?;
    }
    if any {
        line.push(b'}');
    }
    Ok(())
}

fn write_multi<'p>(
    line: &mut Vec<u8>,
    names: &mut CatalogNames<'_>,
    groups: impl Iterator<Item = &'p [PropertyRow]>,
) -> Result<()> {
    let mut any = false;
    for values in groups {
        line.extend_from_slice(if any { b"," } else { b",\"multi\":{" });
        any = true;
        write_string(line, names.key(values[0].key));
        line.extend_from_slice(b":[");
        for (at, property) in values.iter().enumerate() {
            line.extend_from_slice(if at > 0 { b",{\"value\":" } else { b"{\"value\":" });
            write_plain_value(line, &property.value)?;
            write_meta(line, names, property)?;
            line.push(b'}');
        }
        line.push(b']');
    }
    if any {
        line.push(b'}');
    }
    Ok(())
}
