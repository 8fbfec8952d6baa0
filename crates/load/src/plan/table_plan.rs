//! The plan of a table: what each column is for.
//!
//! A plan is made once a file, from its header and its rule in the mapping, and then followed row by row. It names
//! columns by position and id spaces by name. The empty name is the *global* space, which is used by formats without id
//! spaces.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::input::TableDialect;
use crate::sink::Cardinality;
use crate::values::ColumnType;
use mangrove_graph::Value;
use smol_str::SmolStr;

/// The name of the id space of files that do not name one.
pub(crate) const GLOBAL_SPACE: &str = "";

/// The label of vertices without one, as in TinkerPop.
pub(crate) const VERTEX_LABEL: &str = "vertex";

/// The plan of one table, or of one foreign key of it.
#[derive(Clone, Debug)]
pub(crate) struct TablePlan {
    /// The position of the file in the list of files.
    pub(crate) file: usize,
    pub(crate) path: PathBuf,
    /// The names of the columns, as the file or the mapping has them.
    pub(crate) columns: Vec<String>,
    pub(crate) form: TableForm,
    /// A field with one of these texts has no value.
    pub(crate) nulls: Vec<String>,
    /// True if that holds in quotes, too. Otherwise only an empty field in quotes may have no value: see `table::text`.
    pub(crate) quoted_nulls: bool,
    /// The elements that each row becomes.
    pub(crate) rows: RowsPlan,
}

/// How the rows of a file are written.
#[derive(Clone, Debug)]
pub(crate) enum TableForm {
    /// As lines of text.
    Text(TextForm),
    /// In columns.
    #[cfg(feature = "parquet")]
    Parquet(std::sync::Arc<crate::parquet::ParquetFile>),
    /// As values that a program hands over.
    Source,
}

impl TableForm {
    /// Returns true if a row is text, which can be copied to another file.
    pub(crate) fn is_text(&self) -> bool {
        matches!(self, TableForm::Text(_))
    }
}

/// The layout of a text table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextForm {
    pub(crate) dialect: TableDialect,
    /// True if the first row has the names of the columns.
    pub(crate) header: bool,
    /// The number of fields of a row.
    pub(crate) width: usize,
}

/// The elements that the rows of a table become.
#[derive(Clone, Debug)]
pub(crate) enum RowsPlan {
    Vertices(VertexPlan),
    Edges(EdgePlan),
    Values(ValuesPlan),
}

/// Where the label of a row comes from. A constant and a column together make a label set.
#[derive(Clone, Debug, Default)]
pub(crate) struct LabelPlan {
    pub(crate) constant: Option<SmolStr>,
    /// A column with one label, or several separated by `;`.
    pub(crate) column: Option<usize>,
    /// For some texts of the column, the label to use instead.
    pub(crate) names: BTreeMap<String, String>,
}

/// The use of the ids of a vertex file in the graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum UserIds {
    /// The store chooses ids.
    Automatic,
    /// The id of the file is the user id.
    Own,
    /// The same with the id space before it: `Person:933`.
    Prefixed,
}

/// How rows become vertices.
#[derive(Clone, Debug)]
pub(crate) struct VertexPlan {
    pub(crate) label: LabelPlan,
    /// The column with the id. No edge file can name a vertex without an id.
    pub(crate) id: Option<IdPlan>,
    pub(crate) space: String,
    pub(crate) user_ids: UserIds,
    /// The property that keeps the id of the file.
    pub(crate) id_property: Option<SmolStr>,
    /// The properties whose values identify a vertex among those of its label, if the mapping names them.
    pub(crate) key: Option<Vec<SmolStr>>,
    pub(crate) properties: Vec<PropertyPlan>,
    pub(crate) constants: Vec<(SmolStr, Value)>,
}

impl VertexPlan {
    /// The prefix of user ids, if they are [prefixed](UserIds::Prefixed).
    pub(crate) fn prefix(&self) -> SmolStr {
        match (self.space.as_str(), &self.label.constant) {
            (GLOBAL_SPACE, Some(label)) => label.clone(),
            (GLOBAL_SPACE, None) => VERTEX_LABEL.into(),
            (space, _) => space.into(),
        }
    }
}

/// How rows become values of vertices that other files have: a property with several values, one a row.
#[derive(Clone, Debug)]
pub(crate) struct ValuesPlan {
    /// The column that names the vertex of a row.
    pub(crate) owner: EndPlan,
    /// The properties; each has a cardinality.
    pub(crate) properties: Vec<PropertyPlan>,
}

/// How rows become edges.
#[derive(Clone, Debug)]
pub(crate) struct EdgePlan {
    pub(crate) label: LabelPlan,
    pub(crate) source: EndPlan,
    pub(crate) target: EndPlan,
    /// The column with the user id of the edge.
    pub(crate) id: Option<IdPlan>,
    /// The properties whose values identify an edge among those of its label between the same ends, if the mapping
    /// names them.
    pub(crate) key: Option<Vec<SmolStr>>,
    pub(crate) properties: Vec<PropertyPlan>,
    pub(crate) constants: Vec<(SmolStr, Value)>,
    /// Set if the edges come from a foreign key in a vertex file.
    pub(crate) foreign: Option<ForeignKey>,
}

/// A column of ids.
#[derive(Clone, Debug)]
pub(crate) struct IdPlan {
    pub(crate) column: usize,
    /// The type of the ids. `None`: a whole number in plain form is an integer, other text is a string.
    pub(crate) kind: Option<ColumnType>,
}

/// One end of an edge.
#[derive(Clone, Debug)]
pub(crate) struct EndPlan {
    pub(crate) column: IdPlan,
    pub(crate) space: String,
    /// True if an edge whose end does not exist is dropped in silence; false if it is rejected.
    pub(crate) skip_missing: bool,
}

/// How a column of a vertex file becomes edges. The vertex of the row is the source of the plan. A field without a
/// value is no edge, and a row whose vertex was rejected has none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ForeignKey {
    /// Separates several keys in one field.
    pub(crate) separator: Option<char>,
    /// True if the edge leads *to* the vertex of the row.
    pub(crate) inward: bool,
}

/// A column that becomes a property.
#[derive(Clone, Debug)]
pub(crate) struct PropertyPlan {
    pub(crate) column: usize,
    pub(crate) key: SmolStr,
    /// The index of the key among the different keys of the plan. Columns of different types may share a key; a row has
    /// a value in one of them.
    pub(crate) key_index: usize,
    /// The type. `None`: it is inferred from the whole column.
    pub(crate) kind: Option<ColumnType>,
    /// True if the type was inferred.
    pub(crate) inferred: bool,
    /// If set, the elements of the list become values of one property with several values.
    pub(crate) cardinality: Option<Cardinality>,
}

impl TablePlan {
    /// Returns true if the types of some columns are still to be inferred.
    pub(crate) fn untyped(&self) -> bool {
        self.properties().iter().any(|property| property.kind.is_none())
    }

    pub(crate) fn properties(&self) -> &[PropertyPlan] {
        match &self.rows {
            RowsPlan::Vertices(plan) => &plan.properties,
            RowsPlan::Edges(plan) => &plan.properties,
            RowsPlan::Values(plan) => &plan.properties,
        }
    }

    pub(crate) fn properties_mut(&mut self) -> &mut [PropertyPlan] {
        match &mut self.rows {
            RowsPlan::Vertices(plan) => &mut plan.properties,
            RowsPlan::Edges(plan) => &mut plan.properties,
            RowsPlan::Values(plan) => &mut plan.properties,
        }
    }

    /// The id spaces in which the rows name vertices.
    pub(crate) fn referenced_spaces(&self) -> impl Iterator<Item = &str> {
        let ends = match &self.rows {
            RowsPlan::Vertices(_) => [None, None],
            RowsPlan::Edges(plan) => [Some(&plan.source), Some(&plan.target)],
            RowsPlan::Values(plan) => [Some(&plan.owner), None],
        };
        ends.into_iter().flatten().map(|end| end.space.as_str())
    }
}
