//! What a row says, before anything is looked up: its id, its label, the ends of its edge, its values.
//!
//! That is all that can be done with a row on its own, so it is done by any thread, for many rows at once ([`RowBatch`]). What comes
//! after (`table`) needs the rows in their order.

use std::ops::Range;

use mangrove_graph::{UserId, Value};
use smol_str::{SmolStr, format_smolstr};

use crate::column_type::ColumnType;
use crate::id_map::FileId;
use crate::plan::{EdgePlan, IdPlan, LabelPlan, PropertyPlan, Rows, TablePlan};

/// Why a row is not loaded.
pub(crate) type Reason = String;

/// Rows one after the other.
#[derive(Default)]
pub(crate) struct RowBatch {
    pub(crate) rows: Vec<Row>,
    /// The values of all rows that have an element: as many a row as the plan has properties.
    pub(crate) values: Vec<Value>,
    /// What the ranges of rows refer to.
    pub(crate) text: Vec<u8>,
    /// Bytes of the file taken so far, in this pass.
    pub(crate) bytes_taken: u64,
}

/// One row.
pub(crate) struct Row {
    /// Its line, or its number in files without lines.
    pub(crate) line: u64,
    /// Its text.
    pub(crate) raw: Range<usize>,
    /// What it says; an error: it cannot be cut into fields.
    pub(crate) cells: Result<Cells, Reason>,
}

/// What a row says.
pub(crate) struct Cells {
    /// The ends of its edge; of an edge that is a foreign key, the row's own vertex first.
    pub(crate) ends: Option<[End; 2]>,
    /// The foreign keys in it.
    pub(crate) keys: Vec<SmolStr>,
    /// The rest, or what is wrong with it.
    pub(crate) element: Result<ElementCells, Reason>,
}

/// Label and id of a row whose values are good.
#[derive(Default)]
pub(crate) struct ElementCells {
    /// `None`: neither plan nor row have one.
    pub(crate) label: Option<SmolStr>,
    pub(crate) id: Option<RowId>,
}

/// An end of an edge.
pub(crate) enum End {
    None,
    /// A whole number, as almost all are.
    Int(i64),
    Id(Box<RowId>),
    Bad(Reason),
}

/// An id in a row: as the map of ids has it, and as users see it.
pub(crate) struct RowId {
    pub(crate) key: FileId,
    pub(crate) user: UserId,
}

impl RowId {
    /// What a value of a type stands for as an id.
    pub(crate) fn of_value(value: &Value) -> Option<Self> {
        let user = UserId::from_value(value)?;
        Some(RowId { key: FileId::from(&user), user })
    }

    /// What a text without a type stands for.
    pub(crate) fn of_text(text: &str) -> Self {
        let key = FileId::parse(text.trim());
        RowId { user: key.to_user_id(), key }
    }
}

/// The fields of one row, whatever the file.
pub(crate) trait Fields {
    /// The value under a property; [`Value::Null`] where there is none.
    fn value(&self, property: &PropertyPlan) -> Result<Value, Reason>;

    /// An id.
    fn id(&self, id: &IdPlan) -> Result<Option<RowId>, Reason>;

    /// An end of an edge.
    fn end(&self, id: &IdPlan) -> End {
        match self.id(id) {
            Ok(None) => End::None,
            Ok(Some(id)) => End::Id(Box::new(id)),
            Err(reason) => End::Bad(reason),
        }
    }

    /// A text, of labels.
    fn text(&self, column: usize) -> Result<Option<SmolStr>, Reason>;

    /// The foreign keys in a field; none where it cannot be read, which the vertex of the row is rejected for.
    fn keys(&self, column: usize, separator: Option<char>) -> Vec<SmolStr>;
}

/// Reads a row; its values go behind those that are there, if all of it is good.
pub(crate) fn read_row(plan: &TablePlan, fields: &impl Fields, values: &mut Vec<Value>) -> Cells {
    match &plan.rows {
        Rows::Vertices(vertices) => Cells {
            ends: None,
            keys: Vec::new(),
            element: read_element(&vertices.label, vertices.id.as_ref(), &vertices.properties, fields, values),
        },
        Rows::Edges(edges) => match &edges.foreign {
            None => Cells {
                ends: Some([fields.end(&edges.source.column), fields.end(&edges.target.column)]),
                keys: Vec::new(),
                element: read_element(&edges.label, edges.id.as_ref(), &edges.properties, fields, values),
            },
            Some(foreign) => read_foreign(edges, foreign.separator, fields),
        },
        Rows::Values(plan) => Cells {
            ends: Some([fields.end(&plan.owner.column), End::None]),
            keys: Vec::new(),
            element: read_element(&LabelPlan::default(), None, &plan.properties, fields, values),
        },
    }
}

fn read_foreign(edges: &EdgePlan, separator: Option<char>, fields: &impl Fields) -> Cells {
    Cells {
        ends: Some([fields.end(&edges.source.column), End::None]),
        keys: fields.keys(edges.target.column.column, separator),
        element: Ok(ElementCells::default()),
    }
}

fn read_element(
    label: &LabelPlan,
    id: Option<&IdPlan>,
    properties: &[PropertyPlan],
    fields: &impl Fields,
    values: &mut Vec<Value>,
) -> Result<ElementCells, Reason> {
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
fn read_label(label: &LabelPlan, fields: &impl Fields) -> Result<Option<SmolStr>, Reason> {
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

/// Reads the properties of a row, one value a plan.
fn read_values(properties: &[PropertyPlan], fields: &impl Fields, values: &mut Vec<Value>) -> Result<(), Reason> {
    let first = values.len();
    for (at, property) in properties.iter().enumerate() {
        let value = fields.value(property)?;
        // Slots ascend with the columns unless one is shared.
        let shared = property.slot < at
            && properties[..at]
                .iter()
                .zip(&values[first..])
                .any(|(other, other_value)| other.slot == property.slot && *other_value != Value::Null);
        if shared && value != Value::Null {
            return Err(format!("the row has two values for '{}', in columns of different types", property.key));
        }
        values.push(value);
    }
    Ok(())
}

/// The type of a property, once all are known.
pub(crate) fn kind_of(property: &PropertyPlan) -> &ColumnType {
    property.kind.as_ref().unwrap_or(&ColumnType::String)
}

/// Why a field is not a value.
pub(crate) fn not_of_type(text: &str, property: &PropertyPlan) -> Reason {
    let kind = kind_of(property);
    format!("'{}' in the column of '{}' is not of the type {}", start(text), property.key, kind.name())
}

/// Why a field is not an id.
pub(crate) fn not_an_id(text: &str, kind: &ColumnType) -> Reason {
    format!("'{}' is no id of the type {}", start(text), kind.name())
}

/// The beginning of a text, for messages.
fn start(text: &str) -> String {
    text.chars().take(80).collect()
}
