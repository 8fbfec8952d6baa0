//! The content of a row, before ids are looked up: its id, its label, the ends of its edge, its values.
//!
//! This needs nothing but the row and the plan, so any thread does it, for many rows at once ([`ParsedRows`]). The ends of the edges of a
//! plain load are looked up there, too ([`EndLookup`]): their vertices are all in the map by then (LOAD-3). The next step (`elements`)
//! needs the rows in their order.

use std::ops::Range;
use std::sync::Arc;

use crate::plan::{EdgePlan, IdPlan, LabelPlan, PropertyPlan, RowsPlan, TablePlan};
use crate::state::{IdMap, LoadContext, SpaceId};
use crate::values::{ColumnType, FileId};
use mangrove_graph::{UserId, Value, VertexId};
use smol_str::{SmolStr, format_smolstr};

/// Why a row is not loaded.
pub(crate) type RejectReason = String;

/// Parsed rows, in their order.
#[derive(Default)]
pub(crate) struct ParsedRows {
    pub(crate) rows: Vec<TableRow>,
    /// The values of all rows that have an element: for each row as many as the plan has properties.
    pub(crate) values: Vec<Value>,
    /// The text that the ranges of the rows refer to.
    pub(crate) text: Vec<u8>,
    /// Bytes of the file read so far, in this pass.
    pub(crate) bytes_taken: u64,
}

/// One row.
pub(crate) struct TableRow {
    /// Its line number; in files without lines, its number.
    pub(crate) line: u64,
    /// Its text.
    pub(crate) raw: Range<usize>,
    /// Its content, or the reason why it cannot be cut into fields.
    pub(crate) cells: Result<RowCells, RejectReason>,
}

/// The content of a row.
pub(crate) struct RowCells {
    /// The ends of its edge. For a foreign key, the vertex of the row comes first.
    pub(crate) ends: Option<[End; 2]>,
    /// Its foreign keys.
    pub(crate) keys: Vec<SmolStr>,
    /// Label and id, or why the row is bad.
    pub(crate) element: Result<ElementCells, RejectReason>,
}

/// Label and id of a row whose values are good.
#[derive(Default)]
pub(crate) struct ElementCells {
    /// The label; `None` if neither the plan nor the row has one.
    pub(crate) label: Option<SmolStr>,
    pub(crate) id: Option<RowId>,
}

/// An end of an edge, as the field has it.
pub(crate) enum End {
    None,
    /// A whole number, as nearly all ids are: it needs no allocation.
    Int(i64),
    Id(Box<RowId>),
    /// A vertex of this load, looked up by [`EndLookup`].
    Vertex(VertexId),
    Bad(RejectReason),
}

/// Looks up the ends of edges on the threads that parse: many at a time, so that the reads of the map overlap.
pub(crate) struct EndLookup {
    ids: Arc<IdMap>,
    /// The id spaces of sources and targets.
    spaces: [SpaceId; 2],
}

impl EndLookup {
    /// A look-up for the rows of a plan; `None` if they are no edges, or if a row may add an id to the map.
    pub(crate) fn of(ctx: &mut LoadContext<'_>, plan: &TablePlan) -> Option<Self> {
        match &plan.rows {
            RowsPlan::Edges(edges) if !ctx.upsert => {
                let spaces = [&edges.source.space, &edges.target.space].map(|space| ctx.ids_mut().space(space));
                Some(EndLookup { ids: ctx.ids.clone(), spaces })
            }
            _ => None,
        }
    }

    /// Replaces the whole numbers at the ends of rows by the vertices of this load that they name.
    pub(crate) fn resolve(&self, batch: &mut ParsedRows) {
        for row in &mut batch.rows {
            let Ok(RowCells { ends: Some(ends), .. }) = &mut row.cells else { continue };
            for (end, space) in ends.iter_mut().zip(self.spaces) {
                if let End::Int(number) = end
                    && let Some(vertex) = self.ids.get_int(space, *number)
                {
                    *end = End::Vertex(vertex);
                }
            }
        }
    }
}

/// An id in two forms: for the map of ids, and as users see it.
pub(crate) struct RowId {
    pub(crate) key: FileId,
    pub(crate) user: UserId,
}

impl RowId {
    /// The id that a value is; `None` if it cannot be one.
    pub(crate) fn of_value(value: &Value) -> Option<Self> {
        let user = UserId::from_value(value)?;
        Some(RowId { key: FileId::from(&user), user })
    }

    /// The id that a text without a type is.
    pub(crate) fn of_text(text: &str) -> Self {
        let key = FileId::parse(text.trim());
        RowId { user: key.to_user_id(), key }
    }
}

/// The fields of one row of any kind of table.
pub(crate) trait RowFields {
    /// The value of a property; [`Value::Null`] if there is none.
    fn value(&self, property: &PropertyPlan) -> Result<Value, RejectReason>;

    /// An id.
    fn id(&self, id: &IdPlan) -> Result<Option<RowId>, RejectReason>;

    /// An end of an edge.
    fn end(&self, id: &IdPlan) -> End {
        match self.id(id) {
            Ok(None) => End::None,
            Ok(Some(id)) => End::Id(Box::new(id)),
            Err(reason) => End::Bad(reason),
        }
    }

    /// The text of a column of labels.
    fn text(&self, column: usize) -> Result<Option<SmolStr>, RejectReason>;

    /// The foreign keys in a field. None if the field cannot be read, for which the row is rejected as a vertex.
    fn keys(&self, column: usize, separator: Option<char>) -> Vec<SmolStr>;
}

/// Reads a row. If all of it is good, its values are appended to `values`.
pub(crate) fn read_row(plan: &TablePlan, fields: &impl RowFields, values: &mut Vec<Value>) -> RowCells {
    match &plan.rows {
        RowsPlan::Vertices(vertices) => RowCells {
            ends: None,
            keys: Vec::new(),
            element: read_element(&vertices.label, vertices.id.as_ref(), &vertices.properties, fields, values),
        },
        RowsPlan::Edges(edges) => match &edges.foreign {
            None => RowCells {
                ends: Some([fields.end(&edges.source.column), fields.end(&edges.target.column)]),
                keys: Vec::new(),
                element: read_element(&edges.label, edges.id.as_ref(), &edges.properties, fields, values),
            },
            Some(foreign) => read_foreign(edges, foreign.separator, fields),
        },
        RowsPlan::Values(plan) => RowCells {
            ends: Some([fields.end(&plan.owner.column), End::None]),
            keys: Vec::new(),
            element: read_element(&LabelPlan::default(), None, &plan.properties, fields, values),
        },
    }
}

fn read_foreign(edges: &EdgePlan, separator: Option<char>, fields: &impl RowFields) -> RowCells {
    RowCells {
        ends: Some([fields.end(&edges.source.column), End::None]),
        keys: fields.keys(edges.target.column.column, separator),
        element: Ok(ElementCells::default()),
    }
}

fn read_element(
    label: &LabelPlan,
    id: Option<&IdPlan>,
    properties: &[PropertyPlan],
    fields: &impl RowFields,
    values: &mut Vec<Value>,
) -> Result<ElementCells, RejectReason> {
    let first = values.len();
    let read = read_label(label, fields).and_then(|label| {
        read_values(properties, fields, values)?;
        let id = match id {
            None => None,
            Some(id) => Some(fields.id(id)?.ok_or("the row has no id")?),
        };
        Ok(ElementCells { label, id })
    });
    if read.is_err() {
        values.truncate(first);
    }
    read
}

/// The label of a row; `None` where neither the plan nor the row has one.
fn read_label(label: &LabelPlan, fields: &impl RowFields) -> Result<Option<SmolStr>, RejectReason> {
    let field = match label.column {
        Some(column) => fields.text(column)?,
        None => None,
    };
    let Some(field) = field else { return Ok(label.constant.clone()) };
    let renamed = |name: &'_ str| label.names.get(name).map_or_else(|| SmolStr::from(name), SmolStr::from);
    let mut labels = label.constant.iter().cloned().chain(field.split(';').map(|name| renamed(name.trim())));
    let first = labels.next();
    Ok(first.map(|first| labels.fold(first, |all, label| format_smolstr!("{all}::{label}"))))
}

/// Appends the properties of a row, one value for each property of the plan.
fn read_values(
    properties: &[PropertyPlan],
    fields: &impl RowFields,
    values: &mut Vec<Value>,
) -> Result<(), RejectReason> {
    let first = values.len();
    for (at, property) in properties.iter().enumerate() {
        let value = fields.value(property)?;
        // Key indexes ascend with the columns unless two columns share a key.
        let shared = property.key_index < at
            && properties[..at]
                .iter()
                .zip(&values[first..])
                .any(|(other, other_value)| other.key_index == property.key_index && *other_value != Value::Null);
        if shared && value != Value::Null {
            return Err(format!("the row has two values for '{}', in columns of different types", property.key));
        }
        values.push(value);
    }
    Ok(())
}

/// The type of a property, after inference.
pub(crate) fn kind_of(property: &PropertyPlan) -> &ColumnType {
    property.kind.as_ref().unwrap_or(&ColumnType::String)
}

/// The reject reason for a field that is not of its type.
pub(crate) fn not_of_type(text: &str, property: &PropertyPlan) -> RejectReason {
    let kind = kind_of(property);
    format!("'{}' in the column of '{}' is not of the type {}", start(text), property.key, kind.name())
}

/// The reject reason for a field that is not an id.
pub(crate) fn not_an_id(text: &str, kind: &ColumnType) -> RejectReason {
    format!("'{}' is no id of the type {}", start(text), kind.name())
}

/// The beginning of a text, for messages.
fn start(text: &str) -> String {
    text.chars().take(80).collect()
}
