//! What an algorithm finds: columns of equal length.

use mangrove_graph::{EdgeId, Result, VertexId};

use crate::projection::Projection;
use crate::team::Team;

/// What the values of a column are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ColumnKind {
    /// Vertices.
    Vertices,
    /// Edges.
    Edges,
    /// Whole numbers.
    Counts,
    /// Numbers.
    Numbers,
    /// A list of vertices in each row, as a path.
    VertexLists,
    /// A list of numbers in each row, equally many in each.
    Vectors,
}

/// A column that an algorithm yields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ColumnInfo {
    /// Its name.
    pub name: &'static str,
    /// What its values are.
    pub kind: ColumnKind,
    /// What they mean.
    pub meaning: &'static str,
}

/// The values of a column.
#[derive(Clone, PartialEq, Debug)]
pub enum ColumnValues {
    /// Vertices.
    Vertices(Vec<VertexId>),
    /// Edges.
    Edges(Vec<EdgeId>),
    /// Whole numbers.
    Counts(Vec<u64>),
    /// Numbers.
    Numbers(Vec<f64>),
    /// Lists of vertices. The first one ends at `ends[0]`, the next one at `ends[1]`, and so on.
    VertexLists {
        /// The ends of the lists.
        ends: Vec<usize>,
        /// The vertices of all lists.
        vertices: Vec<VertexId>,
    },
    /// Vectors of equal length.
    Vectors {
        /// The numbers of a vector.
        width: usize,
        /// The numbers of all vectors, one vector after the other.
        numbers: Vec<f32>,
    },
}

impl ColumnValues {
    /// What the values are.
    pub fn kind(&self) -> ColumnKind {
        match self {
            ColumnValues::Vertices(_) => ColumnKind::Vertices,
            ColumnValues::Edges(_) => ColumnKind::Edges,
            ColumnValues::Counts(_) => ColumnKind::Counts,
            ColumnValues::Numbers(_) => ColumnKind::Numbers,
            ColumnValues::VertexLists { .. } => ColumnKind::VertexLists,
            ColumnValues::Vectors { .. } => ColumnKind::Vectors,
        }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        match self {
            ColumnValues::Vertices(vertices) => vertices.len(),
            ColumnValues::Edges(edges) => edges.len(),
            ColumnValues::Counts(counts) => counts.len(),
            ColumnValues::Numbers(numbers) => numbers.len(),
            ColumnValues::VertexLists { ends, .. } => ends.len(),
            ColumnValues::Vectors { width, numbers } => numbers.len() / (*width).max(1),
        }
    }

    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A column of results.
#[derive(Clone, PartialEq, Debug)]
pub struct Column {
    /// The name.
    pub name: &'static str,
    /// The values.
    pub values: ColumnValues,
}

/// The results of an algorithm, as columns of equal length.
#[derive(Clone, PartialEq, Debug)]
pub struct Output {
    /// The columns. If a row is about one vertex, the first column is named `vertex`, and no vertex has two rows.
    pub columns: Vec<Column>,
}

/// The name of the first column of algorithms with a row for each vertex.
pub const VERTEX: &str = "vertex";

/// Items that are made between two looks whether the query has ended.
const MADE: usize = 1 << 16;

/// What each item becomes, unless the query of the team ends meanwhile.
pub(super) fn made<T, R>(items: &[T], team: &Team, make: impl Fn(&T) -> R) -> Result<Vec<R>> {
    let mut made = Vec::with_capacity(items.len());
    for some in items.chunks(MADE) {
        team.check()?;
        made.extend(some.iter().map(&make));
    }
    Ok(made)
}

impl Output {
    /// The number of rows.
    pub fn len(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }

    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The vertices of the rows, if each row is about one.
    pub fn vertices(&self) -> Option<&[VertexId]> {
        match self.columns.first() {
            Some(Column { name: VERTEX, values: ColumnValues::Vertices(vertices) }) => Some(vertices),
            _ => None,
        }
    }

    /// The column of a name.
    pub fn column(&self, name: &str) -> Option<&ColumnValues> {
        self.columns.iter().find(|column| column.name == name).map(|column| &column.values)
    }

    /// A row for each vertex with a value: from the values of all positions. What holes have is left out.
    pub(super) fn of_positions<T>(
        projection: &Projection,
        name: &'static str,
        values: Vec<Option<T>>,
        make: fn(Vec<T>) -> ColumnValues,
    ) -> Self {
        let numbering = projection.numbering();
        let of_vertices = values.into_iter().enumerate().filter(|(at, _)| numbering.exists(*at as u32));
        let (vertices, values) =
            of_vertices.filter_map(|(at, value)| Some((numbering.vertex(at as u32), value?))).unzip();
        let vertices = Column { name: VERTEX, values: ColumnValues::Vertices(vertices) };
        Output { columns: vec![vertices, Column { name, values: make(values) }] }
    }

    /// Adds a column with the values of all positions to rows that are all vertices of the projection.
    pub(super) fn and_positions<T>(
        mut self,
        projection: &Projection,
        name: &'static str,
        values: Vec<T>,
        make: fn(Vec<T>) -> ColumnValues,
    ) -> Self {
        let numbering = projection.numbering();
        let of_vertices = values.into_iter().enumerate().filter(|(at, _)| numbering.exists(*at as u32));
        self.columns.push(Column { name, values: make(of_vertices.map(|(_, value)| value).collect()) });
        self
    }
}
