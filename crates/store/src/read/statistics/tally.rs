//! The sums of a pass for the vertices of one label set.
//!
//! A *place* is the position of a table in the order in which the pass met the tables. A label set with up to
//! [`MOMENT_TABLES_MAX`] tables keeps the moments of all of them. With one table more it becomes *wide*: its moments are
//! dropped, and made in the second round for the tables with the most edges.

use std::collections::BTreeMap;

use mangrove_graph::Direction;
use mangrove_graph::LabelSetId;
use mangrove_graph::statistics::{
    BUCKETED_TABLES_MAX, DEGREE_BUCKETS, DegreeBucket, DegreeStatistics, EdgeTable, LabelStatistics, MOMENT_TABLES_MAX,
    PairMoments, degree_bucket, sort_tables,
};

use super::ends::Ends;

/// The sums of one table.
#[derive(Debug)]
pub(super) struct TableTally {
    table: EdgeTable,
    edges: u64,
    sources: u64,
    max_degree: u64,
    /// The sum of squares; with buckets it is there.
    squares: f64,
    buckets: Option<Box<[DegreeBucket; DEGREE_BUCKETS]>>,
    pub(super) ends: Ends,
}

impl TableTally {
    /// Counts the degree of a vertex, which is not 0.
    #[inline]
    pub(super) fn add(&mut self, degree: u64) {
        self.edges += degree;
        self.sources += 1;
        self.max_degree = self.max_degree.max(degree);
        let square = degree as f64 * degree as f64;
        match &mut self.buckets {
            Some(buckets) => {
                let bucket = &mut buckets[degree_bucket(degree)];
                bucket.count += 1;
                bucket.sum += degree;
                bucket.squares += square;
            }
            None => self.squares += square,
        }
    }

    /// The statistics of the table, if an edge was counted, among so many vertices.
    fn finish(self, vertices: u64) -> Option<DegreeStatistics> {
        let TableTally { table, edges, sources, max_degree, squares, buckets, ends } = self;
        let mut buckets = buckets.map_or(Vec::new(), |buckets| buckets.to_vec());
        let squares = squares + buckets.iter().map(|bucket| bucket.squares).sum::<f64>();
        if let Some(zero) = buckets.first_mut() {
            zero.count = vertices.saturating_sub(sources);
        }
        let len = buckets.iter().rposition(|bucket| bucket.count > 0).map_or(0, |last| last + 1);
        buckets.truncate(len);
        let buckets = buckets.into();
        (edges > 0).then_some(DegreeStatistics {
            table,
            edges,
            sources,
            max_degree,
            squares,
            buckets,
            ends: ends.parts(),
        })
    }
}

/// The sums of a label set.
#[derive(Debug, Default)]
pub(super) struct LabelTally {
    pub(super) vertices: u64,
    tables: Vec<TableTally>,
    /// The places of tables: outgoing ones, incoming ones.
    places: [BTreeMap<LabelSetId, usize>; 2],
    /// True if there are more tables than moments are kept for.
    is_wide: bool,
    /// The places of the tables whose moments are kept, ascending. The place in this list is the table's number.
    chosen: Vec<usize>,
    /// The moments of two tables by number, row by row: each row has those with smaller numbers.
    moments: Vec<f64>,
}

impl LabelTally {
    fn places(&self, direction: Direction) -> &BTreeMap<LabelSetId, usize> {
        &self.places[usize::from(direction == Direction::In)]
    }

    /// The place of a table. A new table is sorted into buckets unless `bucketed`, which counts those that are, is at
    /// its limit.
    pub(super) fn place(&mut self, table: EdgeTable, bucketed: &mut usize) -> usize {
        if let Some(&place) = self.places(table.direction).get(&table.label) {
            return place;
        }
        let place = self.tables.len();
        let has_buckets = *bucketed < BUCKETED_TABLES_MAX;
        *bucketed += usize::from(has_buckets);
        let buckets = has_buckets.then(|| Box::new([DegreeBucket::default(); DEGREE_BUCKETS]));
        let ends = Ends::default();
        self.tables.push(TableTally { table, edges: 0, sources: 0, max_degree: 0, squares: 0.0, buckets, ends });
        self.places[usize::from(table.direction == Direction::In)].insert(table.label, place);
        if place < MOMENT_TABLES_MAX {
            self.chosen.push(place);
            self.moments.resize(row_start(self.chosen.len()), 0.0);
        } else {
            self.is_wide = true;
            self.chosen = Vec::new();
            self.moments = Vec::new();
        }
        place
    }

    /// The place of a table that was met before.
    pub(super) fn known_place(&self, table: EdgeTable) -> Option<usize> {
        self.places(table.direction).get(&table.label).copied()
    }

    pub(super) fn table(&mut self, place: usize) -> &mut TableTally {
        &mut self.tables[place]
    }

    /// Returns true if there are more tables than moments are kept for.
    pub(super) fn is_wide(&self) -> bool {
        self.is_wide
    }

    /// Chooses the tables with the most edges, and begins their moments.
    pub(super) fn choose_tables(&mut self) {
        let mut places: Vec<usize> = (0..self.tables.len()).collect();
        // Of equal ones the first in the order of tables, so that the choice does not depend on the order of pages.
        let rank = |place: &usize| {
            let TableTally { table, edges, .. } = &self.tables[*place];
            (std::cmp::Reverse(*edges), table.direction == Direction::In, table.label)
        };
        places.sort_unstable_by_key(rank);
        places.truncate(MOMENT_TABLES_MAX);
        places.sort_unstable();
        self.moments = vec![0.0; row_start(places.len())];
        self.chosen = places;
    }

    /// The number of a table in the matrix of moments, if its moments are kept.
    pub(super) fn number(&self, place: usize) -> Option<usize> {
        self.chosen.binary_search(&place).ok()
    }

    /// Adds to the moment of two tables, the larger number first or second.
    pub(super) fn add_moment(&mut self, a: usize, b: usize, product: f64) {
        self.moments[row_start(a.max(b)) + a.min(b)] += product;
    }

    /// The bytes that the tally takes.
    pub(super) fn bytes(&self) -> usize {
        let of_table = |table: &TableTally| {
            let buckets = if table.buckets.is_some() { DEGREE_BUCKETS * size_of::<DegreeBucket>() } else { 0 };
            size_of::<TableTally>() + 2 * size_of::<(LabelSetId, usize)>() + buckets + table.ends.bytes()
        };
        size_of::<LabelTally>()
            + self.tables.iter().map(of_table).sum::<usize>()
            + size_of_val(&*self.chosen)
            + size_of_val(&*self.moments)
    }

    /// The statistics of the label set, if it has a vertex.
    pub(super) fn finish(self, label: LabelSetId) -> Option<LabelStatistics> {
        let LabelTally { vertices, tables, places, chosen, moments, .. } = self;
        let mut done: Vec<_> = tables.into_iter().filter_map(|table| table.finish(vertices)).collect();
        sort_tables(&mut done);
        // The tables with moments that have edges: position in the list, and number.
        let mut kept: Vec<(u32, usize)> = Vec::new();
        for (position, degrees) in (0..).zip(&done) {
            let places = &places[usize::from(degrees.table.direction == Direction::In)];
            let number = places.get(&degrees.table.label).and_then(|place| chosen.binary_search(place).ok());
            kept.extend(number.map(|number| (position, number)));
        }
        let sum = |row: usize, column: usize| {
            let (a, b) = (kept[row].1, kept[column].1);
            moments[row_start(a.max(b)) + a.min(b)]
        };
        let moments = PairMoments::new(kept.iter().map(|(position, _)| *position).collect(), sum);
        (vertices > 0).then(|| LabelStatistics::new(label, vertices, done, moments))
    }
}

/// Where the row of a table begins in a triangle of moments.
fn row_start(number: usize) -> usize {
    number * number.saturating_sub(1) / 2
}
