//! Deals the pages of a snapshot to the threads of a team, and reads columns of them in batches.

use mangrove::{
    Direction, Error, ExpandCursor, ExpandRequest, Expansion, GraphView, LabelFilter, Numbers, Result, ScanCursor,
    Share, Team, Value, ValueRows, VertexId,
};

/// The pages of a snapshot.
pub struct Pages<'a> {
    view: &'a dyn GraphView,
}

impl<'a> Pages<'a> {
    /// What this view shows.
    pub fn new(view: &'a dyn GraphView) -> Self {
        Pages { view }
    }

    /// The vertices and edges with one of these labels.
    pub fn labels(&self, names: &[&str]) -> LabelFilter {
        self.view.label_filter(&names.iter().map(|name| (*name).into()).collect::<Vec<_>>())
    }

    /// Calls `work` with the vertices of each page that has vertices of these labels, on the threads of a team.
    /// Returns the results in the order of the pages.
    pub fn map<T: Send>(
        &self,
        team: &Team,
        labels: &LabelFilter,
        work: impl Fn(&[VertexId]) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let mut pages = Vec::new();
        self.view.vertex_pages(labels, &mut pages)?;
        let results = team.map_parts(pages.len(), |part| {
            let (mut vertices, mut cursor) = (Vec::new(), pages[part].pages);
            while !self.view.scan_vertices(labels, Share::ALL, &mut cursor, 1_024, &mut vertices)? {}
            work(&vertices)
        })?;
        results.into_iter().collect()
    }

    /// The vertices of these labels with a value under a key.
    pub fn find(&self, labels: &LabelFilter, key: &str, range: &mangrove::IndexRange) -> Result<Vec<VertexId>> {
        let (mut found, mut cursor) = (Vec::new(), ScanCursor::default());
        if let Some(key) = self.view.key_of(key) {
            while !self.view.scan_vertices_where(labels, key, range, Share::ALL, &mut cursor, 1_024, &mut found)? {}
        }
        Ok(found)
    }

    /// The neighbors of these vertices, with the position of the vertex that each belongs to.
    pub fn neighbors(&self, vertices: &[VertexId], direction: Direction, labels: &LabelFilter) -> Result<Expansion> {
        let request = ExpandRequest { direction, labels: labels.clone(), edges: false, limit: usize::MAX };
        let mut found = Expansion::default();
        let mut cursor = ExpandCursor::default();
        while !self.view.expand(vertices, &request, &mut cursor, &mut found)? {}
        Ok(found)
    }

    /// The integers of these vertices under a key, each with the position of the vertex that it belongs to.
    ///
    /// # Errors
    ///
    /// If a value is no integer.
    pub fn integers(&self, vertices: &[VertexId], key: &str) -> Result<Vec<(u32, i64)>> {
        // Numbers of one type are read as an array. Where types differ, they are read as values.
        let mut numbers = Numbers::default();
        let Some(key_id) = self.view.key_of(key) else { return Ok(Vec::new()) };
        if self.view.vertex_numbers(vertices, key_id, &mut numbers)? && numbers.floats.is_empty() {
            return Ok(numbers.row.into_iter().zip(numbers.integers).collect());
        }
        let integer = |(row, value): (u32, Value)| match value {
            Value::I8(number) => Ok((row, number.into())),
            Value::I16(number) => Ok((row, number.into())),
            Value::I32(number) => Ok((row, number.into())),
            Value::I64(number) => Ok((row, number)),
            other => Err(Error::invalid(format!(
                "a value of {key} is a {}, and this read needs integers",
                other.type_name()
            ))),
        };
        let values = self.values(vertices, key)?;
        values.row.into_iter().zip(values.value).map(integer).collect()
    }

    /// The values of these vertices under a key, with the position of the vertex that each belongs to.
    pub fn values(&self, vertices: &[VertexId], key: &str) -> Result<ValueRows> {
        let mut values = ValueRows::default();
        if let Some(key) = self.view.key_of(key) {
            self.view.vertex_values(vertices, key, &mut values)?;
        }
        Ok(values)
    }

    /// For each of these vertices, whether it has one of the labels.
    pub fn have_labels(&self, vertices: &[VertexId], labels: &LabelFilter) -> Result<Vec<bool>> {
        let mut sets = Vec::new();
        self.view.vertex_labels(vertices, &mut sets)?;
        Ok(sets.into_iter().map(|set| labels.takes(set)).collect())
    }
}
