//! Statistics by a plain count of all vertices and edges of a view, to compare those of a pass with.

use std::collections::BTreeMap;

use mangrove_graph::statistics::{
    DEGREE_BUCKETS, DegreeBucket, DegreeStatistics, EdgeTable, LabelStatistics, MOMENT_TABLES_MAX, PairMoments,
    Statistics, sort_tables,
};
use mangrove_graph::{Direction, GraphView, IndexRange, LabelSetId, Value, VertexId};
use mangrove_txn::{Transaction, TransactionManager};

use super::{edges, values, vertices};

/// The degrees of the vertices that have an edge in a table.
type Degrees = BTreeMap<VertexId, u64>;

/// How many edges lead to vertices of a label set.
type Ends = BTreeMap<LabelSetId, u64>;

/// The tables of vertices of one label set: outgoing or incoming edges (`true`), by their label set.
type Tables = BTreeMap<(bool, LabelSetId), (Degrees, Ends)>;

/// The statistics of what a view shows, without indexes.
pub fn recount(view: &dyn GraphView, as_of: u64) -> Statistics {
    let (ids, all_edges) = (vertices(view), edges(view));
    let (mut labels, mut edge_labels) = (Vec::new(), Vec::new());
    view.vertex_labels(&ids, &mut labels).unwrap();
    let edge_ids: Vec<_> = all_edges.iter().map(|&(edge, ..)| edge).collect();
    view.edge_labels(&edge_ids, &mut edge_labels).unwrap();
    let label_of: BTreeMap<VertexId, LabelSetId> = ids.iter().copied().zip(labels.iter().copied()).collect();
    let mut found: BTreeMap<LabelSetId, (u64, Tables)> = BTreeMap::new();
    labels.iter().for_each(|label| found.entry(*label).or_default().0 += 1);
    for (&(_, source, target), &label) in all_edges.iter().zip(&edge_labels) {
        for (end, other, is_incoming) in [(source, target, false), (target, source, true)] {
            let tables = &mut found.get_mut(&label_of[&end]).unwrap().1;
            let (degrees, ends) = tables.entry((is_incoming, label)).or_default();
            *degrees.entry(end).or_default() += 1;
            *ends.entry(label_of[&other]).or_default() += 1;
        }
    }
    let counted = found.into_iter().map(|(label, (vertices, tables))| of_label(label, vertices, tables));
    Statistics::new(as_of, counted.collect(), Vec::new())
}

fn of_label(label: LabelSetId, vertices: u64, tables: Tables) -> LabelStatistics {
    let mut counted: Vec<(DegreeStatistics, Degrees)> = Vec::new();
    for ((is_incoming, label), (degrees, ends)) in tables {
        let table = EdgeTable { direction: if is_incoming { Direction::In } else { Direction::Out }, label };
        let mut buckets = vec![DegreeBucket::default(); DEGREE_BUCKETS];
        buckets[0].count = vertices - degrees.len() as u64;
        for &degree in degrees.values() {
            let bucket = (1..DEGREE_BUCKETS).find(|k| degree < 1 << k).unwrap();
            buckets[bucket].count += 1;
            buckets[bucket].sum += degree;
            buckets[bucket].squares += (degree * degree) as f64;
        }
        while buckets.last().is_some_and(|bucket| bucket.count == 0) {
            buckets.pop();
        }
        let statistics = DegreeStatistics {
            table,
            edges: degrees.values().sum(),
            sources: degrees.len() as u64,
            max_degree: degrees.values().copied().max().unwrap(),
            squares: degrees.values().map(|degree| (degree * degree) as f64).sum(),
            buckets: buckets.into(),
            ends: ends
                .iter()
                .map(|(label, count)| (*label, *count as f64 / ends.values().sum::<u64>() as f64))
                .collect(),
        };
        counted.push((statistics, degrees));
    }
    let mut tables: Vec<DegreeStatistics> = counted.iter().map(|(statistics, _)| statistics.clone()).collect();
    sort_tables(&mut tables);
    assert!(tables.iter().zip(&counted).all(|(a, (b, _))| a == b), "tables are sorted as pairs are");
    let mut largest: Vec<u32> = (0..tables.len() as u32).collect();
    largest.sort_by_key(|at| std::cmp::Reverse(tables[*at as usize].edges));
    largest.truncate(MOMENT_TABLES_MAX);
    largest.sort_unstable();
    let degrees = |place: usize| &counted[largest[place] as usize].1;
    let sum = |row: usize, column: usize| {
        let products = degrees(row).iter().map(|(id, degree)| degree * degrees(column).get(id).copied().unwrap_or(0));
        products.sum::<u64>() as f64
    };
    let moments = PairMoments::new(largest.clone(), sum);
    LabelStatistics::new(label, vertices, tables, moments)
}

/// Statistics of the newest snapshot equal a recount of it.
#[track_caller]
pub fn check_statistics(manager: &TransactionManager) {
    let view: Transaction = manager.begin_read().unwrap();
    let expected = recount(&view, view.begin_ts());
    let found = manager.measure_statistics(&mut || Ok(())).unwrap();
    check_ends(&found, &expected);
    check_values(&view, &found);
    assert_eq!((without_ends(&found), found.as_of), (without_ends(&expected), expected.as_of));
    let (vertices, edges) = (vertices(&view).len() as u64, edges(&view).len() as u64);
    assert_eq!((found.vertices(), found.edges()), (vertices, edges));
    let reports = manager.store().index_reports();
    assert_eq!(found.indexes().len(), reports.len());
    for (found, report) in found.indexes().iter().zip(reports) {
        let known = (report.info.id, report.entries, report.distinct);
        assert_eq!((found.index, found.entries, found.distinct), known);
    }
}

/// All values that are counted are those of the view, if they are so few that each has a count.
#[track_caller]
pub fn check_values(view: &dyn GraphView, found: &Statistics) {
    let ids = vertices(view);
    let mut labels = Vec::new();
    view.vertex_labels(&ids, &mut labels).unwrap();
    for known in found.values() {
        let of_label = ids.iter().zip(&labels).filter(|(_, label)| **label == known.label);
        let mut counts: Vec<(Value, u64)> = Vec::new();
        for value in of_label.flat_map(|(id, _)| values(view, *id, known.key)) {
            match counts.iter_mut().find(|(counted, _)| *counted == value) {
                Some((_, count)) => *count += 1,
                None => counts.push((value, 1)),
            }
        }
        let all: u64 = counts.iter().map(|(_, count)| count).sum();
        assert_eq!((known.values, known.distinct), (all, counts.len() as u64), "{known:?}");
        for (value, count) in counts {
            assert_eq!(known.expected(&IndexRange::Equal(vec![value])), count as f64, "{known:?}");
        }
    }
}

/// The label sets without the ends of edges, which a pass knows from a sample.
fn without_ends(statistics: &Statistics) -> Vec<LabelStatistics> {
    let plain = |degrees: &DegreeStatistics| DegreeStatistics { ends: Box::default(), ..degrees.clone() };
    let label = |label: &LabelStatistics| label.with_tables(label.tables().iter().map(plain).collect());
    statistics.labels().iter().map(label).collect()
}

/// A table with few edges knows exactly where they lead. Of others the parts are near the true ones, if they are large.
#[track_caller]
fn check_ends(found: &Statistics, expected: &Statistics) {
    const ALL_MAX: u64 = 256;
    for (found, expected) in found.labels().iter().zip(expected.labels()) {
        for (found, expected) in found.tables().iter().zip(expected.tables()) {
            let part = |label: &LabelSetId| {
                let at = found.ends.iter().find(|(found, _)| found == label);
                at.map_or(0.0, |(_, part)| *part)
            };
            let (limit, sum) = (if expected.edges <= ALL_MAX { 1e-9 } else { 0.5 }, expected.ends.iter());
            assert!(sum.map(|(label, truth)| (truth - part(label)).abs()).all(|off| off <= limit), "{found:?}");
            assert!(found.ends.iter().all(|(label, _)| expected.ends.iter().any(|(known, _)| known == label)));
            assert!((found.ends.iter().map(|(_, part)| part).sum::<f64>() - 1.0).abs() < 1e-9, "{found:?}");
        }
    }
}
