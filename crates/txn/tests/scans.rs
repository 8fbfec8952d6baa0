//! Predicate scans, numbers as arrays and adjacency in place, compared with naive reads: on random graphs that were
//! loaded in bulk and then changed, as several snapshots and a writer between its statements see them.

use std::collections::BTreeMap;

use mangrove_graph::{
    AdjacencyRequest, AdjacencyRuns, Direction, EdgeId, ElementKind, GraphView, IndexRange, KeyId, LabelFilter,
    LabelSetId, Numbers, ScanCursor, Share, Value, ValueColumns, ValueRows, VertexId, edge_columns_of_rows,
    vertex_columns_of_rows,
};
use mangrove_store::{BulkColumn, ColumnData, StoreOptions, WriteCardinality};
use mangrove_txn::Transaction;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::common::{Graph, edges, expand, small_sizes, vertices};

/// A graph of two vertex labels and two edge labels under random writes.
struct World {
    graph: Graph,
    labels: [LabelSetId; 2],
    along: [LabelSetId; 2],
    /// Numbers of one type; numbers of any type; any values, several at a time.
    keys: [KeyId; 3],
    rng: SmallRng,
}

impl World {
    fn new(seed: u64) -> Self {
        let options = StoreOptions { tablet_count: 4, sizes: small_sizes(seed), ..StoreOptions::default() };
        let graph = Graph::with_options(&options);
        let catalog = graph.manager.store().catalog();
        let labels = [graph.person, catalog.intern_label_text("robot")];
        let along = [graph.knows, catalog.intern_label_text("made")];
        let keys = ["year", "size", "any"].map(|key| catalog.intern_key(key));
        World { graph, labels, along, keys, rng: SmallRng::seed_from_u64(seed) }
    }

    /// Pages without versions: full columns of numbers, and runs packed in blocks.
    fn load(&mut self, count: usize) {
        let mut load = self.graph.manager.bulk_load().unwrap();
        let years =
            BulkColumn { key: self.keys[0], values: ColumnData::I64((0..count as i64).map(|n| n % 9).collect()) };
        let people = load.vertices(self.labels[0], count, None, &[years]).unwrap();
        for label in self.along {
            let ends: Vec<_> = (0..2 * count).map(|_| (self.any(&people), self.any(&people))).collect();
            let sizes = (0..2 * count).map(|n| n as f64 / 2.0 % 4.0).collect();
            let sizes = BulkColumn { key: self.keys[1], values: ColumnData::F64(sizes) };
            load.edges(label, &ends, None, &[sizes]).unwrap();
        }
        load.finish().unwrap();
    }

    fn value(&mut self, key: usize) -> Value {
        let n = self.rng.random_range(-4..5_i32);
        match (key, self.rng.random_range(0..6)) {
            (0, _) => Value::I32(n),
            (_, 0) => Value::I64(n.into()),
            (_, 1) => Value::F64(f64::from(n) / 2.0),
            (1, _) => Value::I32(n),
            (_, 2) => Value::from("short"),
            (_, 3) => Value::from(format!("a text of some length, {n}")),
            (_, 4) => Value::list(vec![Value::I32(n)]),
            _ => Value::Bool(n > 0),
        }
    }

    fn any<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.rng.random_range(0..all.len())]
    }

    fn write(&mut self, txn: &Transaction) {
        let (vertices, edges) = (vertices(txn), edges(txn));
        let key = self.rng.random_range(0..3);
        let value = self.value(key);
        if vertices.len() < 3 || self.rng.random_ratio(1, 5) {
            let label = self.any(&self.labels.clone());
            let vertex = txn.insert_vertex(label, None).unwrap();
            return txn
                .set_vertex_property(vertex, self.keys[key], value, WriteCardinality::Single, Vec::new())
                .unwrap();
        }
        let vertex = self.any(&vertices);
        match self.rng.random_range(0..12) {
            0 => txn.delete_vertex(vertex).unwrap(),
            1 if !edges.is_empty() => txn.delete_edge(self.any(&edges).0).unwrap(),
            2 => txn.remove_vertex_property(vertex, self.keys[key], None).unwrap(),
            3 | 4 if !edges.is_empty() => {
                txn.set_edge_property(self.any(&edges).0, self.keys[key], value).unwrap();
            }
            5..8 => {
                let (target, label) = (self.any(&vertices), self.any(&self.along.clone()));
                txn.insert_edge(vertex, target, label, None).unwrap();
            }
            _ => {
                let many = if self.rng.random() { WriteCardinality::List } else { WriteCardinality::Single };
                txn.set_vertex_property(vertex, self.keys[key], value, many, Vec::new()).unwrap();
            }
        }
    }

    /// Transactions that each write a few statements; some are rolled back, and some snapshots stay open.
    fn live(&mut self, transactions: usize) -> Vec<Transaction> {
        let mut open = Vec::new();
        for _ in 0..transactions {
            let txn = self.graph.begin();
            for _ in 0..self.rng.random_range(1..20) {
                self.write(&txn);
                txn.finish_statement().unwrap();
            }
            match self.rng.random_range(0..6) {
                0 => txn.rollback(),
                _ => {
                    txn.commit().unwrap();
                }
            }
            if self.rng.random_ratio(1, 8) {
                open.push(self.graph.begin());
            }
        }
        open
    }

    fn range(&mut self) -> IndexRange {
        let key = self.rng.random_range(0..3);
        if self.rng.random() {
            return IndexRange::Equal((0..self.rng.random_range(1..4)).map(|_| self.value(key)).collect());
        }
        let (low, high) = (self.value(key), self.value(key));
        let mut bound = |value| self.rng.random_ratio(2, 3).then(|| (value, self.rng.random()));
        IndexRange::Between { low: bound(low), high: bound(high) }
    }

    fn check(&mut self, view: &dyn GraphView) {
        let (vertices, edges) = (vertices(view), edges(view));
        let edges: Vec<EdgeId> = edges.into_iter().map(|(edge, ..)| edge).collect();
        for key in self.keys {
            check_numbers(view, &vertices, &edges, key);
            let mut shuffled = vertices.clone();
            shuffled.sort_by_key(|v| v.to_bits().wrapping_mul(0x9E37_79B9_7F4A_7C15));
            check_numbers(view, &shuffled, &edges, key);
        }
        check_columns(view, &vertices, &edges, &self.keys);
        for _ in 0..12 {
            let (range, key) = (self.range(), self.any(&self.keys.clone()));
            let labels = [LabelFilter::Any, LabelFilter::Sets([self.labels[1], self.along[0]].into())];
            let (limit, labels) = (self.rng.random_range(1..40), &labels[self.rng.random_range(0..2)]);
            check_where(view, &vertices, &edges, key, &range, labels, limit);
            self.check_cut_scan(view, labels, limit);
        }
        check_adjacency(view, &vertices, &self.along);
    }

    /// Cuts a scan of vertices into parts, now and then, as threads do. Together, they find what a whole scan finds.
    fn check_cut_scan(&mut self, view: &dyn GraphView, labels: &LabelFilter, limit: usize) {
        let (mut whole, mut parts, mut cursor) = (Vec::new(), Vec::new(), ScanCursor::default());
        while !view.scan_vertices(labels, Share::ALL, &mut cursor, limit, &mut whole).unwrap() {}
        let mut left = vec![ScanCursor::default()];
        while let Some(mut cursor) = left.pop() {
            if self.rng.random_bool(0.5) {
                left.extend(view.split_scan(ElementKind::Vertex, labels, Share::ALL, &mut cursor));
            }
            if !view.scan_vertices(labels, Share::ALL, &mut cursor, limit, &mut parts).unwrap() {
                left.push(cursor);
            }
        }
        parts.sort_unstable_by_key(|id| id.to_bits());
        whole.sort_unstable_by_key(|id| id.to_bits());
        assert_eq!(parts, whole, "{labels:?}");
    }
}

fn values_of(view: &dyn GraphView, vertices: &[VertexId], edges: &[EdgeId], key: KeyId) -> [ValueRows; 2] {
    let mut rows = [ValueRows::default(), ValueRows::default()];
    view.vertex_values(vertices, key, &mut rows[0]).unwrap();
    view.edge_values(edges, key, &mut rows[1]).unwrap();
    rows
}

#[track_caller]
fn check_numbers(view: &dyn GraphView, vertices: &[VertexId], edges: &[EdgeId], key: KeyId) {
    let values = values_of(view, vertices, edges, key);
    for (values, is_edges) in values.into_iter().zip([false, true]) {
        let mut expected = Numbers::default();
        let all = values.row.iter().zip(&values.value).all(|(row, value)| expected.push(*row, value));
        // The existing value stays, and its type counts.
        for before in [None, Some(Value::I32(7)), Some(Value::F64(0.5))] {
            let mut out = Numbers::default();
            before.iter().for_each(|value| assert!(out.push(0, value)));
            let kept = out.clone();
            let read = match is_edges {
                false => view.vertex_numbers(vertices, key, &mut out).unwrap(),
                true => view.edge_numbers(edges, key, &mut out).unwrap(),
            };
            let fits = before.is_none() || expected.is_empty() || expected.kind == kept.kind;
            assert_eq!(read, all && fits);
            if read {
                let got = (kept.len()..out.len()).map(|at| (out.row[at], out.value(at).unwrap()));
                assert!(got.eq(values.row.iter().copied().zip(values.value.iter().cloned())));
            } else {
                assert_eq!(out, kept);
            }
        }
    }
}

/// Values by column equal those of whole properties, for visible elements and others, in any order.
#[track_caller]
fn check_columns(view: &dyn GraphView, vertices: &[VertexId], edges: &[EdgeId], keys: &[KeyId]) {
    let scattered = |bits: &u64| bits.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let around = |bits: u64| [bits, bits + 1, bits, bits ^ 1 << 40];
    let mut mixed: Vec<u64> = vertices.iter().flat_map(|v| around(v.to_bits())).collect();
    mixed.sort_by_key(scattered);
    let mixed_vertices: Vec<VertexId> = mixed.into_iter().map(VertexId::from_bits).collect();
    let mut mixed: Vec<u64> = edges.iter().flat_map(|e| around(e.to_bits())).collect();
    mixed.sort_by_key(scattered);
    let mixed_edges: Vec<EdgeId> = mixed.into_iter().map(EdgeId::from_bits).collect();
    for keys in [None, Some(keys), Some(&keys[1..2])] {
        for vertices in [vertices, &mixed_vertices] {
            let (mut found, mut expected) = (ValueColumns::default(), ValueColumns::default());
            view.vertex_columns(vertices, keys, &mut found).unwrap();
            vertex_columns_of_rows(view, vertices, keys, &mut expected).unwrap();
            assert_eq!(by_row(found, vertices.len()), by_row(expected, vertices.len()));
        }
        for edges in [edges, &mixed_edges] {
            let (mut found, mut expected) = (ValueColumns::default(), ValueColumns::default());
            view.edge_columns(edges, keys, &mut found).unwrap();
            edge_columns_of_rows(view, edges, keys, &mut expected).unwrap();
            assert_eq!(by_row(found, edges.len()), by_row(expected, edges.len()));
        }
    }
}

/// The order of keys is not guaranteed.
fn by_row(mut columns: ValueColumns, rows: usize) -> Vec<(usize, KeyId, Value)> {
    let mut all = Vec::new();
    columns.each_row(rows, |row, values| all.extend(values.map(|(_, key, value)| (row, key, value))));
    all.sort_by_key(|(row, key, _)| (*row, *key));
    all
}

#[track_caller]
fn check_where(
    view: &dyn GraphView,
    vertices: &[VertexId],
    edges: &[EdgeId],
    key: KeyId,
    range: &IndexRange,
    labels: &LabelFilter,
    limit: usize,
) {
    let [of_vertices, of_edges] = values_of(view, vertices, edges, key);
    let passing = |rows: &ValueRows, count: usize| -> Vec<bool> {
        let mut passes = vec![false; count];
        rows.row.iter().zip(&rows.value).for_each(|(row, value)| passes[*row as usize] |= range.holds(value));
        passes
    };
    let (mut vertex_labels, mut edge_labels) = (Vec::new(), Vec::new());
    view.vertex_labels(vertices, &mut vertex_labels).unwrap();
    view.edge_labels(edges, &mut edge_labels).unwrap();

    let (mut found, mut cursor) = (Vec::new(), ScanCursor::default());
    loop {
        let before = found.len();
        let over = view.scan_vertices_where(labels, key, range, Share::ALL, &mut cursor, limit, &mut found).unwrap();
        assert!(found.len() - before <= limit);
        if over {
            break;
        }
    }
    let passes = passing(&of_vertices, vertices.len());
    let expected = (0..vertices.len()).filter(|&i| passes[i] && labels.takes(vertex_labels[i])).map(|i| vertices[i]);
    assert!(found.iter().copied().eq(expected), "{range:?}");

    let (mut found, mut cursor) = (Vec::new(), ScanCursor::default());
    while !view.scan_edges_where(labels, key, range, Share::ALL, &mut cursor, limit, &mut found).unwrap() {}
    let passes = passing(&of_edges, edges.len());
    let expected = (0..edges.len()).filter(|&i| passes[i] && labels.takes(edge_labels[i])).map(|i| edges[i]);
    assert!(found.iter().copied().eq(expected), "{range:?}");
}

#[track_caller]
fn check_adjacency(view: &dyn GraphView, vertices: &[VertexId], along: &[LabelSetId; 2]) {
    let mut label_of = BTreeMap::new();
    let all: Vec<EdgeId> = edges(view).into_iter().map(|(edge, ..)| edge).collect();
    let mut labels = Vec::new();
    view.edge_labels(&all, &mut labels).unwrap();
    all.iter().zip(labels).for_each(|(edge, label)| {
        label_of.insert(*edge, label);
    });
    for direction in [Direction::Out, Direction::In, Direction::Both] {
        for labels in [LabelFilter::Any, LabelFilter::Sets([along[1]].into())] {
            let pages = ScanCursor::default();
            let share = Share::ALL;
            let request = AdjacencyRequest {
                vertices: LabelFilter::Any,
                direction,
                labels: labels.clone(),
                share,
                pages,
                edges: true,
            };
            let found_on = |pages: ScanCursor, found: &mut Vec<_>| {
                let request = AdjacencyRequest { pages, ..request.clone() };
                let first = found.len();
                view.for_each_adjacency(&request, &mut |runs| {
                    for (at, (vertex, neighbors, edges)) in runs.iter().enumerate() {
                        assert_eq!((vertex, neighbors), (runs.vertex(at), runs.neighbors(at)));
                        found.extend(neighbors.iter().zip(edges).map(|(n, e)| (vertex, *n, *e)));
                    }
                    Ok(())
                })
                .unwrap();
                let mut neighbors_only = Vec::new();
                view.for_each_adjacency(&AdjacencyRequest { edges: false, ..request }, &mut |runs| {
                    assert!(runs.all_edges().is_empty());
                    neighbors_only.extend(runs.iter().flat_map(|(vertex, n, _)| n.iter().map(move |n| (vertex, *n))));
                    Ok(())
                })
                .unwrap();
                // A collector may have packed lists between the two walks, and so have changed the order of their edges.
                let mut expected: Vec<_> = found[first..].iter().map(|of| (of.0, of.1)).collect();
                neighbors_only.sort_unstable();
                expected.sort_unstable();
                assert_eq!(neighbors_only, expected);
            };
            let (mut found, mut in_parts) = (Vec::new(), Vec::new());
            found_on(pages, &mut found);
            // Ranges of pages that are cut in two, and in two again.
            let mut ranges = vec![pages];
            for _ in 0..2 {
                for at in 0..ranges.len() {
                    let rest = view.split_scan(ElementKind::Vertex, &LabelFilter::Any, share, &mut ranges[at]);
                    ranges.extend(rest);
                }
            }
            ranges.into_iter().for_each(|range| found_on(range, &mut in_parts));
            in_parts.sort_unstable();
            let expected = expand(view, vertices, direction, 1_000).into_iter();
            let mut expected: Vec<_> = expected
                .filter(|(_, _, edge)| labels.takes(label_of[edge]))
                .map(|(row, neighbor, edge)| (vertices[row as usize], neighbor, edge))
                .collect();
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected, "{direction:?} {labels:?}");
            assert_eq!(in_parts, expected, "{direction:?} {labels:?}, by ranges of pages");
        }
    }
}

#[test]
fn a_changing_graph_is_scanned_as_every_snapshot_sees_it() {
    let mut reused = 0;
    for seed in 0..12 {
        let mut world = World::new(seed);
        if seed % 2 == 1 {
            world.load(if seed < 6 { 100 } else { 1_500 });
        }
        let mut open = world.live(40);
        if seed % 3 == 0 {
            // Slots are used again, by elements of the next generation.
            open.clear();
            world.graph.manager.compact();
            open = world.live(40);
            reused += vertices(&world.graph.begin()).iter().filter(|vertex| vertex.generation() > 0).count();
        }
        // A writer in the middle of its work, whose running statement is not seen.
        let writer = world.graph.begin();
        for _ in 0..10 {
            world.write(&writer);
            writer.finish_statement().unwrap();
        }
        world.write(&writer);
        open.push(world.graph.begin());
        open.push(writer);
        for view in &open {
            world.check(view);
        }
    }
    assert!(reused > 0);
}

#[test]
fn a_run_too_long_for_a_descriptor_is_shown_in_place() {
    let graph = Graph::new();
    let mut load = graph.manager.bulk_load().unwrap();
    let people = load.vertices(graph.person, 3, None, &[]).unwrap();
    let ends: Vec<_> = (0..40_000).map(|n| (people[1], people[n % 3])).chain([(people[2], people[0])]).collect();
    load.edges(graph.knows, &ends, None, &[]).unwrap();
    load.finish().unwrap();
    let view = graph.begin();
    let request = AdjacencyRequest {
        vertices: LabelFilter::Any,
        direction: Direction::Out,
        labels: LabelFilter::Any,
        share: Share::ALL,
        pages: ScanCursor::default(),
        edges: false,
    };
    let mut found = Vec::new();
    let each = &mut |runs: &AdjacencyRuns<'_>| {
        found.extend(runs.iter().filter(|(_, n, _)| !n.is_empty()).map(|(v, neighbors, _)| (v, neighbors.len())));
        Ok(())
    };
    view.for_each_adjacency(&request, each).unwrap();
    assert_eq!(found, [(people[1], 40_000), (people[2], 1)]);
    check_adjacency(&view, &people, &[graph.knows; 2]);
}

#[test]
fn a_long_scan_in_vain_comes_back_in_between() {
    let graph = Graph::new();
    graph.persons(40_000);
    let view = graph.begin();
    let range = IndexRange::Equal(vec![Value::I64(1)]);
    let (mut found, mut cursor, mut calls) = (Vec::new(), ScanCursor::default(), 1);
    let labels = LabelFilter::Any;
    while !view.scan_vertices_where(&labels, graph.balance, &range, Share::ALL, &mut cursor, 9, &mut found).unwrap() {
        calls += 1;
    }
    assert!(found.is_empty() && calls > 1, "{calls} calls");
}

/// The vertices of a label are on few pages. To cut off the pages of other labels gives another thread nothing to do.
#[test]
fn a_scan_is_cut_where_both_parts_have_vertices() {
    let graph = Graph::with_options(&StoreOptions { tablet_count: 1, ..StoreOptions::default() });
    let robot = graph.manager.store().catalog().intern_label_text("robot");
    let mut load = graph.manager.bulk_load().unwrap();
    for (label, count) in [(robot, 20_000), (graph.person, 3_000), (robot, 60_000)] {
        load.vertices(label, count, None, &[]).unwrap();
    }
    load.finish().unwrap();
    let view = graph.begin();
    let labels = LabelFilter::Sets([graph.person].into());
    let scan = |cursor: &mut ScanCursor, limit| {
        let mut found = Vec::new();
        let is_over = view.scan_vertices(&labels, Share::ALL, cursor, limit, &mut found).unwrap();
        (found.len(), is_over)
    };
    let mut first = ScanCursor::default();
    assert_eq!(scan(&mut first, 100), (100, false));
    let mut second = view.split_scan(ElementKind::Vertex, &labels, Share::ALL, &mut first).expect("two more pages");
    let counts = [first, second].map(|mut cursor| scan(&mut cursor, usize::MAX));
    assert!(counts.iter().all(|(count, is_over)| *count >= 900 && *is_over), "{counts:?}");
    assert_eq!(counts[0].0 + counts[1].0, 2_900);
    // The last page is not cut off twice.
    let rest = view.split_scan(ElementKind::Vertex, &labels, Share::ALL, &mut second);
    assert!(rest.is_none_or(|mut rest| scan(&mut rest, usize::MAX).0 > 0));
}
