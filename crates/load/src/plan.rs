//! What each column of a table is for.
//!
//! A plan is made once a file, from its header and the rule a mapping has for it, and then followed row by
//! row. It names columns by position and id spaces by name; the empty name is the *global* space, the one of
//! formats that have no spaces.

use std::collections::BTreeMap;
use std::path::PathBuf;

use mangrove_graph::Value;
use smol_str::SmolStr;

use crate::column_type::ColumnType;
use crate::record::Dialect;
use crate::sink::Cardinality;

/// The id space of files that do not name one.
pub(crate) const GLOBAL_SPACE: &str = "";

/// What TinkerPop calls elements without a label.
pub(crate) const VERTEX_LABEL: &str = "vertex";

/// How to read one table.
#[derive(Clone, Debug)]
pub(crate) struct TablePlan {
    /// The file's place in the list of files.
    pub(crate) file: usize,
    pub(crate) path: PathBuf,
    /// The names of the columns, as the file or the mapping has them.
    pub(crate) columns: Vec<String>,
    pub(crate) form: Form,
    /// Fields with this text have no value.
    pub(crate) nulls: Vec<String>,
    /// Whether that holds in quotes too; else only an empty field in quotes may have none: see `table`.
    pub(crate) quoted_nulls: bool,
    /// What a row becomes.
    pub(crate) rows: Rows,
}

/// How rows are written.
#[derive(Clone, Debug)]
pub(crate) enum Form {
    /// As lines of text.
    Text(TextForm),
    /// In columns.
    #[cfg(feature = "parquet")]
    Parquet(std::sync::Arc<crate::parquet::ParquetFile>),
}

impl Form {
    /// Whether a row is text that can be written to another file.
    pub(crate) fn is_text(&self) -> bool {
        matches!(self, Form::Text(_))
    }
}

/// How a table is text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextForm {
    pub(crate) dialect: Dialect,
    /// Whether the first row holds names.
    pub(crate) header: bool,
    /// How many fields a row must have.
    pub(crate) width: usize,
}

/// What the rows of a table become.
#[derive(Clone, Debug)]
pub(crate) enum Rows {
    Vertices(VertexPlan),
    Edges(EdgePlan),
    Values(ValuesPlan),
}

/// Where the label of a row comes from. Constant and column together make a label set.
#[derive(Clone, Debug, Default)]
pub(crate) struct LabelPlan {
    pub(crate) constant: Option<SmolStr>,
    /// A column with one label or several separated by `;`.
    pub(crate) column: Option<usize>,
    /// Other names for the column's texts.
    pub(crate) names: BTreeMap<String, String>,
}

/// What becomes of the ids in a vertex file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum UserIds {
    /// The store chooses ids.
    Automatic,
    /// The file's id is the id users know the vertex by.
    Own,
    /// The same with the id space in front: `Person:933`.
    Prefixed,
}

/// How rows become vertices.
#[derive(Clone, Debug)]
pub(crate) struct VertexPlan {
    pub(crate) label: LabelPlan,
    /// The column with the id; a file without one has vertices that no edge file can name.
    pub(crate) id: Option<IdPlan>,
    pub(crate) space: String,
    pub(crate) user_ids: UserIds,
    /// The property that keeps the id.
    pub(crate) id_property: Option<SmolStr>,
    /// The properties that tell a vertex from all others of its label, where the mapping names them.
    pub(crate) key: Option<Vec<SmolStr>>,
    pub(crate) properties: Vec<PropertyPlan>,
    pub(crate) constants: Vec<(SmolStr, Value)>,
}

impl VertexPlan {
    /// What stands in front of the ids that users know, where these are [prefixed](UserIds::Prefixed).
    pub(crate) fn prefix(&self) -> SmolStr {
        match (self.space.as_str(), &self.label.constant) {
            (GLOBAL_SPACE, Some(label)) => label.clone(),
            (GLOBAL_SPACE, None) => VERTEX_LABEL.into(),
            (space, _) => space.into(),
        }
    }
}

/// How the rows of a file become values of vertices that other files have: a property with several values, one a row.
#[derive(Clone, Debug)]
pub(crate) struct ValuesPlan {
    /// The vertex that a row belongs to.
    pub(crate) owner: EndPlan,
    /// Each with a cardinality.
    pub(crate) properties: Vec<PropertyPlan>,
}

/// How rows become edges.
#[derive(Clone, Debug)]
pub(crate) struct EdgePlan {
    pub(crate) label: LabelPlan,
    pub(crate) source: EndPlan,
    pub(crate) target: EndPlan,
    /// The column with the id users know the edge by.
    pub(crate) id: Option<IdPlan>,
    /// The properties that tell an edge from others of its label between the same ends, where the mapping names them.
    pub(crate) key: Option<Vec<SmolStr>>,
    pub(crate) properties: Vec<PropertyPlan>,
    pub(crate) constants: Vec<(SmolStr, Value)>,
    /// Set where the edges are a foreign key of a vertex file.
    pub(crate) foreign: Option<ForeignKey>,
}

/// A column with ids.
#[derive(Clone, Debug)]
pub(crate) struct IdPlan {
    pub(crate) column: usize,
    /// `None`: the plain form of a whole number is one, anything else is text.
    pub(crate) kind: Option<ColumnType>,
}

/// One end of an edge.
#[derive(Clone, Debug)]
pub(crate) struct EndPlan {
    pub(crate) column: IdPlan,
    pub(crate) space: String,
    /// An edge whose end does not exist: dropped in silence, or (the rule) rejected.
    pub(crate) skip_missing: bool,
}

/// What is particular about edges that are a column of a vertex file. The row's vertex is the source of the
/// plan. A field without a value is no edge, and a row whose vertex was rejected has none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ForeignKey {
    /// Between several keys in one field.
    pub(crate) separator: Option<char>,
    /// Whether the edge points *to* the row's vertex.
    pub(crate) inward: bool,
}

/// A column that becomes a property.
#[derive(Clone, Debug)]
pub(crate) struct PropertyPlan {
    pub(crate) column: usize,
    pub(crate) key: SmolStr,
    /// Which of the different keys it is: columns of different kinds may share one, and a row has a value in one of them.
    pub(crate) slot: usize,
    /// `None`: to be inferred from the whole column.
    pub(crate) kind: Option<ColumnType>,
    /// Whether the type was inferred.
    pub(crate) inferred: bool,
    /// Set: the elements of the list become values of one multi-property.
    pub(crate) cardinality: Option<Cardinality>,
}

impl TablePlan {
    /// The columns whose types are still to be inferred.
    pub(crate) fn untyped(&self) -> bool {
        self.properties().iter().any(|property| property.kind.is_none())
    }

    pub(crate) fn properties(&self) -> &[PropertyPlan] {
        match &self.rows {
            Rows::Vertices(plan) => &plan.properties,
            Rows::Edges(plan) => &plan.properties,
            Rows::Values(plan) => &plan.properties,
        }
    }

    pub(crate) fn properties_mut(&mut self) -> &mut [PropertyPlan] {
        match &mut self.rows {
            Rows::Vertices(plan) => &mut plan.properties,
            Rows::Edges(plan) => &mut plan.properties,
            Rows::Values(plan) => &mut plan.properties,
        }
    }

    /// The id spaces in which the rows name vertices.
    pub(crate) fn referenced_spaces(&self) -> impl Iterator<Item = &str> {
        let ends = match &self.rows {
            Rows::Vertices(_) => [None, None],
            Rows::Edges(plan) => [Some(&plan.source), Some(&plan.target)],
            Rows::Values(plan) => [Some(&plan.owner), None],
        };
        ends.into_iter().flatten().map(|end| end.space.as_str())
    }
}
