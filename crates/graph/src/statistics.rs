//! Statistics of a graph at one snapshot: how many elements there are, and how degrees are distributed.
//!
//! A [`Statistics`] is a value that never changes. The store makes it in one pass over its pages; the planner and users
//! read it. For each label set of vertices it has
//!
//! - the number of vertices,
//! - for each direction and edge label set a [`DegreeStatistics`]: the number of edges, of vertices with at least one,
//!   the largest degree, and the degrees by powers of two,
//! - where these edges lead: the part of them that has its other end at each label set,
//! - the *pair moments* of the tables with the most edges ([`LabelStatistics::moment`]). The moment of two tables is
//!   the sum over all vertices of the products of the two degrees. It is the number of walks of two steps whose middle
//!   vertex has this label set: one edge of the first table and one of the second.
//!
//! A *table* is a direction and an edge label set, seen from the vertices of one label set. All counts but the parts of
//! edges by their ends are exact for the snapshot. Sums of products are floats, and exact up to 2^53.
//!
//! The values under a key are counted on request: for pairs of a label set and a key that a plan asked about
//! ([`ValueStatistics`]).

mod values;

pub use values::{FREQUENT_VALUES_MAX, VALUE_BYTES_MAX, VALUE_PARTS_MAX, ValueStatistics, bytes_of, sampled_value};

pub use crate::connections::EdgeTable;
use crate::ids::{IndexId, KeyId, LabelSetId};
use crate::value::Direction;

/// How many buckets the degrees of a table are sorted into.
pub const DEGREE_BUCKETS: usize = 33;

/// The most tables of one label set whose pair moments are kept.
pub const MOMENT_TABLES_MAX: usize = 32;

/// The most tables of a graph whose degrees are kept by powers of two. Of further ones only sums are kept.
pub const BUCKETED_TABLES_MAX: usize = 4_096;

/// Statistics of a graph at one snapshot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statistics {
    /// The commit timestamp of the snapshot.
    pub as_of: u64,
    labels: Vec<LabelStatistics>,
    indexes: Vec<IndexStatistics>,
    values: Vec<ValueStatistics>,
}

/// What distinguishes the statistics of a graph from earlier and later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edition {
    /// The commit timestamp of the snapshot.
    pub as_of: u64,
    /// A number for the pairs of label set and key whose values are counted.
    values: u64,
}

/// The vertices of one label set.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelStatistics {
    /// The label set.
    pub label: LabelSetId,
    /// How many vertices have exactly these labels.
    pub vertices: u64,
    tables: Vec<DegreeStatistics>,
    moments: PairMoments,
}

/// The degrees of the vertices of one label set in one table.
#[derive(Clone, Debug, PartialEq)]
pub struct DegreeStatistics {
    /// Which edges of the vertices are counted.
    pub table: EdgeTable,
    /// The number of edges: the sum of all degrees.
    pub edges: u64,
    /// How many vertices have at least one edge.
    pub sources: u64,
    /// The largest degree.
    pub max_degree: u64,
    /// The sum of the squares of all degrees.
    pub squares: f64,
    /// Bucket `k` has the degrees of at least `2^(k - 1)` and less than `2^k`; bucket 0 those that are 0, and the last
    /// one those that fit into no other. Empty buckets at the end are left out. There is none at all for tables beyond
    /// [`BUCKETED_TABLES_MAX`].
    pub buckets: Box<[DegreeBucket]>,
    /// The label sets of the vertices at the other ends, ascending, and the part of the edges that leads to each; the
    /// parts add up to 1. If there are many edges, the parts are those of a sample. It may be empty if nothing is known.
    pub ends: Box<[(LabelSetId, f64)]>,
}

/// The vertices whose degrees are between two powers of two.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DegreeBucket {
    /// How many vertices there are.
    pub count: u64,
    /// The sum of their degrees.
    pub sum: u64,
    /// The sum of the squares of their degrees.
    pub squares: f64,
}

/// The bucket that a degree belongs to.
pub fn degree_bucket(degree: u64) -> usize {
    ((u64::BITS - degree.leading_zeros()) as usize).min(DEGREE_BUCKETS - 1)
}

/// A symmetric matrix over some tables of a label set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PairMoments {
    /// The positions of the tables in the label set's list of tables, ascending.
    tables: Box<[u32]>,
    /// The triangle below the diagonal, row by row. The diagonal is in [`DegreeStatistics::squares`].
    sums: Box<[f64]>,
}

impl PairMoments {
    /// The moments of these tables, which are given by their positions and ascend. `sum` gives the moment of the tables
    /// at two of these places, the larger one first.
    pub fn new(tables: Vec<u32>, mut sum: impl FnMut(usize, usize) -> f64) -> Self {
        debug_assert!(tables.is_sorted(), "the tables of a matrix ascend");
        let places = (0..tables.len()).flat_map(|row| (0..row).map(move |column| (row, column)));
        let sums = places.map(|(row, column)| sum(row, column)).collect();
        PairMoments { tables: tables.into(), sums }
    }

    fn get(&self, a: u32, b: u32) -> Option<f64> {
        // Most label sets have few tables, which are all here.
        let place = |table: u32| match self.tables.get(table as usize) {
            Some(same) if *same == table => Some(table as usize),
            _ => self.tables.binary_search(&table).ok(),
        };
        let (a, b) = (place(a)?, place(b)?);
        let (row, column) = (a.max(b), a.min(b));
        self.sums.get(row * row.saturating_sub(1) / 2 + column).copied()
    }
}

/// The size of a property index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexStatistics {
    /// The number of the index.
    pub index: IndexId,
    /// The number of entries: one for each vertex and value that the vertex has or recently had.
    pub entries: u64,
    /// The number of different values among the entries.
    pub distinct: u64,
}

impl Statistics {
    /// Statistics of these label sets and indexes, in any order. A label set or an index is given once.
    pub fn new(as_of: u64, mut labels: Vec<LabelStatistics>, mut indexes: Vec<IndexStatistics>) -> Self {
        labels.sort_unstable_by_key(|label| label.label);
        indexes.sort_unstable_by_key(|index| index.index.0);
        Statistics { as_of, labels, indexes, values: Vec::new() }
    }

    /// The same with these statistics of values, in any order. A pair of label set and key is given once.
    #[must_use]
    pub fn with_values(mut self, mut values: Vec<ValueStatistics>) -> Self {
        values.sort_unstable_by_key(|known| (known.label, known.key));
        self.values = values;
        self
    }

    /// The statistics of values, by label set and key.
    pub fn values(&self) -> &[ValueStatistics] {
        &self.values
    }

    /// The values of a label set under a key, if they are counted.
    pub fn values_of(&self, label: LabelSetId, key: KeyId) -> Option<&ValueStatistics> {
        let found = self.values.binary_search_by_key(&(label, key), |known| (known.label, known.key));
        found.ok().map(|at| &self.values[at])
    }

    /// What distinguishes these statistics from others of the same graph.
    pub fn edition(&self) -> Edition {
        let pairs = self.values.iter().map(|known| u64::from(known.label.0) << 32 | u64::from(known.key.0));
        // FNV-1a over the pairs.
        let values = pairs.fold(0xcbf2_9ce4_8422_2325, |sum: u64, pair| (sum ^ pair).wrapping_mul(0x0100_0000_01b3));
        Edition { as_of: self.as_of, values }
    }

    /// The label sets that vertices have or had, by number.
    pub fn labels(&self) -> &[LabelStatistics] {
        &self.labels
    }

    /// The vertices of a label set, if there are any.
    pub fn label(&self, label: LabelSetId) -> Option<&LabelStatistics> {
        self.labels.binary_search_by_key(&label, |label| label.label).ok().map(|at| &self.labels[at])
    }

    /// The property indexes, by number.
    pub fn indexes(&self) -> &[IndexStatistics] {
        &self.indexes
    }

    /// The size of an index, if there was one of that number.
    pub fn index(&self, index: IndexId) -> Option<&IndexStatistics> {
        self.indexes.binary_search_by_key(&index.0, |known| known.index.0).ok().map(|at| &self.indexes[at])
    }

    /// The number of all vertices.
    pub fn vertices(&self) -> u64 {
        self.labels.iter().map(|label| label.vertices).sum()
    }

    /// The number of all edges.
    pub fn edges(&self) -> u64 {
        let outgoing = self.labels.iter().flat_map(|label| &label.tables);
        outgoing.filter(|degrees| degrees.table.direction == Direction::Out).map(|degrees| degrees.edges).sum()
    }

    /// The memory that the value takes, in bytes.
    pub fn bytes(&self) -> usize {
        let of_label = |label: &LabelStatistics| {
            let of_table = |degrees: &DegreeStatistics| size_of_val(&*degrees.buckets) + size_of_val(&*degrees.ends);
            let buckets = label.tables.iter().map(of_table).sum::<usize>();
            let moments = size_of_val(&*label.moments.tables) + size_of_val(&*label.moments.sums);
            label.tables.capacity() * size_of::<DegreeStatistics>() + buckets + moments
        };
        size_of::<Statistics>()
            + self.labels.capacity() * size_of::<LabelStatistics>()
            + self.indexes.capacity() * size_of::<IndexStatistics>()
            + self.labels.iter().map(of_label).sum::<usize>()
            + self.values.iter().map(ValueStatistics::bytes).sum::<usize>()
    }
}

impl LabelStatistics {
    /// The vertices of a label set. `tables` are in the order of [`EdgeTable`], which [`sort_tables`] makes; `moments`
    /// names tables by their positions in it.
    pub fn new(label: LabelSetId, vertices: u64, tables: Vec<DegreeStatistics>, moments: PairMoments) -> Self {
        debug_assert!(tables.is_sorted_by_key(|degrees| degrees.table.order()), "tables have an order");
        LabelStatistics { label, vertices, tables, moments }
    }

    /// The same vertices with other figures of their tables, which are the same tables.
    #[must_use]
    pub fn with_tables(&self, tables: Vec<DegreeStatistics>) -> Self {
        LabelStatistics::new(self.label, self.vertices, tables, self.moments.clone())
    }

    /// The tables in which a vertex has an edge: outgoing ones first, then by label set.
    pub fn tables(&self) -> &[DegreeStatistics] {
        &self.tables
    }

    /// The degrees in a table, if a vertex has an edge there.
    pub fn degrees(&self, table: EdgeTable) -> Option<&DegreeStatistics> {
        self.position(table).map(|at| &self.tables[at])
    }

    /// The position of a table among the label set's tables, if a vertex has an edge there.
    pub fn position(&self, table: EdgeTable) -> Option<usize> {
        self.tables.binary_search_by_key(&table.order(), |degrees| degrees.table.order()).ok()
    }

    /// The sum over all vertices of the products of their degrees in two tables. `None` if it is not kept: for a label
    /// set with more than [`MOMENT_TABLES_MAX`] tables it is kept for those with the most edges. It is 0 if no vertex
    /// has an edge in one of the tables.
    pub fn moment(&self, a: EdgeTable, b: EdgeTable) -> Option<f64> {
        let (Some(at), Some(other)) = (self.position(a), self.position(b)) else { return Some(0.0) };
        self.moment_at(at, other)
    }

    /// As [`Self::moment`], for tables at two positions.
    pub fn moment_at(&self, a: usize, b: usize) -> Option<f64> {
        if a == b {
            return self.tables.get(a).map(|degrees| degrees.squares);
        }
        self.moments.get(a as u32, b as u32)
    }
}

/// Sorts tables as [`LabelStatistics::new`] takes them.
pub fn sort_tables(tables: &mut [DegreeStatistics]) {
    tables.sort_unstable_by_key(|degrees| degrees.table.order());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_degree_is_in_the_bucket_of_its_highest_bit() {
        for (degree, bucket) in [(0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (7, 3), (8, 4), (1 << 31, 32), (u64::MAX, 32)]
        {
            assert_eq!(degree_bucket(degree), bucket, "{degree}");
        }
    }

    #[test]
    fn moments_are_found_in_either_order() {
        let table = |direction, label| EdgeTable { direction, label: LabelSetId(label) };
        let keys = [table(Direction::Out, 5), table(Direction::In, 1), table(Direction::In, 9)];
        let degrees = |table| DegreeStatistics {
            table,
            edges: 1,
            sources: 1,
            max_degree: 1,
            squares: 7.0,
            buckets: Box::default(),
            ends: Box::default(),
        };
        let mut tables: Vec<DegreeStatistics> = keys.iter().rev().map(|&key| degrees(key)).collect();
        sort_tables(&mut tables);
        let moments = PairMoments::new(vec![0, 2], |row, column| (10 * row + column) as f64);
        let label = LabelStatistics::new(LabelSetId(3), 4, tables, moments);
        assert_eq!(label.tables().iter().map(|degrees| degrees.table).collect::<Vec<_>>(), keys);
        let [a, b, c] = keys;
        assert_eq!((label.moment(a, c), label.moment(c, a)), (Some(10.0), Some(10.0)));
        assert_eq!((label.moment(b, b), label.moment(a, b)), (Some(7.0), None));
        assert_eq!(label.moment(a, table(Direction::Out, 6)), Some(0.0));
        let statistics = Statistics::new(1, vec![label], vec![]);
        assert_eq!((statistics.vertices(), statistics.edges()), (4, 1));
        assert!(statistics.label(LabelSetId(3)).is_some() && statistics.label(LabelSetId(4)).is_none());
    }
}
