//! GraphSON 3 as TinkerPop's `io()` writes whole graphs: one vertex a line with its edges of both directions, or all
//! vertices in one JSON document (`wrapAdjacencyList`).
//!
//! Edges are written while the adjacency list of a vertex is read, label by label. So a vertex with millions of edges
//! needs no more memory than one with ten.

use mangrove_graph::{
    Direction, ElementKind, ExpandCursor, ExpandRequest, Expansion, GraphView, LabelSetId, PropertyRow, Result,
    VertexId, vertex_property_id,
};

use super::elements::{BATCH, CatalogNames, EdgeRow, Selection, VertexRow, by_key};
use super::{Counts, ExportTarget};
use crate::values::{write_string, write_value};

/// Writes the graph; if `wrapped`, as one document.
pub(crate) fn write(
    view: &dyn GraphView,
    selection: &Selection,
    wrapped: bool,
    target: &mut ExportTarget<'_>,
) -> Result<Counts> {
    let edge_labels = selection.sets(view, ElementKind::Edge)?;
    let mut writer = Writer {
        view,
        selection,
        names: CatalogNames::new(view.catalog()),
        edge_labels,
        line: Vec::new(),
        counts: Counts::default(),
    };
    if wrapped {
        target.out.write_all(b"{\"vertices\":[\n")?;
    }
    Selection::each_vertex(view, &selection.labels, &mut |vertex| {
        if wrapped && writer.counts.vertices > 0 {
            writer.line.push(b',');
        }
        writer.vertex(&vertex, target)?;
        target.row(writer.counts)
    })?;
    if wrapped {
        target.out.write_all(b"]}\n")?;
    }
    Ok(writer.counts)
}

struct Writer<'v> {
    view: &'v dyn GraphView,
    selection: &'v Selection,
    names: CatalogNames<'v>,
    edge_labels: Vec<LabelSetId>,
    /// Text that is not written yet.
    line: Vec<u8>,
    counts: Counts,
}

/// Bytes of text after which a part of a line is written.
const LINE_BYTES: usize = 64 * 1024;

impl Writer<'_> {
    fn vertex(&mut self, row: &VertexRow<'_>, target: &mut ExportTarget<'_>) -> Result<()> {
        self.line.extend_from_slice(b"{\"id\":");
        write_value(&mut self.line, row.id)?;
        self.line.extend_from_slice(b",\"label\":");
        write_string(&mut self.line, self.names.set(row.label));
        for (direction, member) in [(Direction::In, "inE"), (Direction::Out, "outE")] {
            self.edges(row.vertex, direction, member, target)?;
        }
        self.properties(row)?;
        self.line.extend_from_slice(b"}\n");
        self.counts.vertices += 1;
        self.hand_over(target, 0)
    }

    /// Writes the text if it has more bytes than `above`.
    fn hand_over(&mut self, target: &mut ExportTarget<'_>, above: usize) -> Result<()> {
        if self.line.len() > above {
            target.out.write_all(&self.line)?;
            self.line.clear();
        }
        Ok(())
    }

    /// Writes the member with the edges of one direction, by label; nothing if there are none.
    fn edges(
        &mut self,
        vertex: VertexId,
        direction: Direction,
        member: &str,
        target: &mut ExportTarget<'_>,
    ) -> Result<()> {
        let mut first = true;
        for at in 0..self.edge_labels.len() {
            let label = self.edge_labels[at];
            let request = ExpandRequest { direction, labels: Selection::only(label), edges: true, limit: BATCH };
            let (mut cursor, mut found) = (ExpandCursor::default(), Expansion::default());
            let mut open = false;
            loop {
                found.clear();
                let end = self.view.expand(&[vertex], &request, &mut cursor, &mut found)?;
                let (view, selection) = (self.view, self.selection);
                selection.edge_rows(view, &found.edge, &mut |edge| {
                    if open {
                        self.line.push(b',');
                    } else {
                        self.open_label(label, member, first);
                        (open, first) = (true, false);
                    }
                    self.edge(&edge, direction)
                })?;
                self.hand_over(target, LINE_BYTES)?;
                if end {
                    break;
                }
            }
            if open {
                self.line.push(b']');
            }
        }
        if !first {
            self.line.push(b'}');
        }
        Ok(())
    }

    fn open_label(&mut self, label: LabelSetId, member: &str, first: bool) {
        if first {
            self.line.extend_from_slice(b",\"");
            self.line.extend_from_slice(member.as_bytes());
            self.line.extend_from_slice(b"\":{");
        } else {
            self.line.push(b',');
        }
        write_string(&mut self.line, self.names.set(label));
        self.line.extend_from_slice(b":[");
    }

    fn edge(&mut self, edge: &EdgeRow<'_>, direction: Direction) -> Result<()> {
        self.line.extend_from_slice(b"{\"id\":");
        write_value(&mut self.line, edge.id)?;
        let (member, other) = match direction {
            Direction::In => (&b",\"outV\":"[..], edge.source),
            _ => {
                self.counts.edges += 1;
                (&b",\"inV\":"[..], edge.target)
            }
        };
        self.line.extend_from_slice(member);
        write_value(&mut self.line, other)?;
        write_plain_properties(&mut self.line, &mut self.names, edge.properties)?;
        self.line.push(b'}');
        Ok(())
    }

    fn properties(&mut self, row: &VertexRow<'_>) -> Result<()> {
        if row.properties.is_empty() {
            return Ok(());
        }
        self.line.extend_from_slice(b",\"properties\":{");
        for (at, values) in by_key(row.properties).enumerate() {
            if at > 0 {
                self.line.push(b',');
            }
            let key = self.names.key(values[0].key).clone();
            write_string(&mut self.line, &key);
            self.line.extend_from_slice(b":[");
            for (at, property) in values.iter().enumerate() {
                self.line.extend_from_slice(if at > 0 { b",{\"id\":" } else { b"{\"id\":" });
                write_value(&mut self.line, &vertex_property_id(row.id, &key, property.ordinal))?;
                self.line.extend_from_slice(b",\"value\":");
                write_value(&mut self.line, &property.value)?;
                write_meta(&mut self.line, &mut self.names, property)?;
                self.line.push(b'}');
            }
            self.line.push(b']');
        }
        self.line.push(b'}');
        Ok(())
    }
}

/// Writes the member `properties` of a vertex property, if it has meta-properties.
pub(crate) fn write_meta(line: &mut Vec<u8>, names: &mut CatalogNames<'_>, property: &PropertyRow) -> Result<()> {
    for (at, (key, value)) in property.meta.iter().enumerate() {
        line.extend_from_slice(if at > 0 { b"," } else { b",\"properties\":{" });
        write_string(line, names.key(*key));
        line.push(b':');
        write_value(line, value)?;
    }
    if !property.meta.is_empty() {
        line.push(b'}');
    }
    Ok(())
}

/// Writes the member `properties` with one value a key, if there are any.
pub(crate) fn write_plain_properties(
    line: &mut Vec<u8>,
    names: &mut CatalogNames<'_>,
    properties: &[PropertyRow],
) -> Result<()> {
    for (at, property) in properties.iter().enumerate() {
        line.extend_from_slice(if at > 0 { b"," } else { b",\"properties\":{" });
        write_string(line, names.key(property.key));
        line.push(b':');
        write_value(line, &property.value)?;
    }
    if !properties.is_empty() {
        line.push(b'}');
    }
    Ok(())
}
