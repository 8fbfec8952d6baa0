//! One node against several, on a graph whose streams do not fit into a message.
//!
//! The same traversals run inline and over two and four virtual nodes with shuffled frames. The graph has
//! vertices with more neighbors than three messages hold, so that expansions stop and go on, and more
//! vertices of each label than one, so that scans, scopes and barriers see many messages.

use mangrove::{Database, DatabaseOptions, Materialize, Parameters, QueryOptions, Value, VertexId};

const VERTICES: usize = 5_000;
const EDGES: usize = 20_000;
const SUPERNODE_DEGREE: usize = 3_500;

/// The generator splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }
}

fn graph() -> Database {
    let database = Database::with_options(&DatabaseOptions { tablet_count: 8, ..DatabaseOptions::default() });
    let catalog = database.catalog();
    let mut random = Random(42);
    let tx = database.begin().unwrap();
    let mut vertices: Vec<VertexId> = Vec::with_capacity(VERTICES);
    for (label, range) in [("person", 0..4_000), ("place", 4_000..VERTICES as i64)] {
        let ids: Vec<_> = range.map(Into::into).collect();
        vertices.extend(tx.insert_vertices(catalog.intern_label_text(label), &ids).unwrap());
    }
    let numbers: Vec<_> = vertices.iter().enumerate().map(|(n, v)| (*v, Value::I64(n as i64))).collect();
    tx.set_vertex_property("n", &numbers).unwrap();
    let colors = ["red", "green", "blue"];
    let colored = vertices.iter().filter_map(|v| match random.below(4) {
        3 => None,
        color => Some((*v, Value::from(colors[color]))),
    });
    tx.set_vertex_property("color", &colored.collect::<Vec<_>>()).unwrap();
    let mut ends = |count| -> Vec<(VertexId, VertexId)> {
        (0..count).map(|_| (vertices[random.below(VERTICES)], vertices[random.below(VERTICES)])).collect()
    };
    let (knows, near) = (ends(EDGES / 2), ends(EDGES / 2));
    let supernode = (0..SUPERNODE_DEGREE).map(|_| (vertices[0], vertices[random.below(VERTICES)]));
    let knows: Vec<_> = knows.into_iter().chain(supernode).collect();
    let made = tx.insert_edges(catalog.intern_label_text("knows"), &knows).unwrap();
    let weights: Vec<_> = made.iter().map(|e| (*e, Value::I32(random.below(10) as i32))).collect();
    tx.set_edge_property("weight", &weights).unwrap();
    tx.insert_edges(catalog.intern_label_text("near"), &near).unwrap();
    tx.commit().unwrap();
    database
}

/// Traversals whose results come in no particular order.
const UNORDERED: &[&str] = &[
    "g.V()",
    "g.V().count()",
    "g.E().hasLabel('near').count()",
    "g.V().hasLabel('person').has('color', 'red').values('n')",
    "g.V(0).out('knows').values('n')",
    "g.V(0).outE('knows').has('weight', gt(5)).inV().count()",
    "g.V().out('knows').count()",
    "g.V().out('knows').out('near').count()",
    "g.V(0).both().both().dedup().count()",
    "g.V().hasLabel('place').in().groupCount().by('color')",
    "g.V().group().by('color').by(out().count())",
    "g.V().group().by(label).by(values('n').sum())",
    "g.V().groupCount().by(out().count())",
    "g.V().where(out('knows').has('color', 'blue')).count()",
    "g.V().not(out('near')).values('n')",
    "g.V().where(out('near').count().is(gt(3))).values('n')",
    "g.V().or(has('color', 'red'), out('near').has('n', lt(1000))).count()",
    "g.V().local(out('near').count())",
    "g.V().local(out('near').values('n').fold().order(local))",
    "g.V().local(out('knows').order().by('n').limit(2)).values('n')",
    "g.V().local(out('knows').values('color').dedup().order().fold())",
    "g.V().map(out('near').values('n').max())",
    "g.V().flatMap(out('near').in('near')).dedup().count()",
    "g.V().coalesce(out('near'), __.in('near')).count()",
    "g.V().optional(out('near')).values('n').sum()",
    "g.V().optional(__.in()).values('n').sum()",
    "g.V().optional(__.inE('knows')).count()",
    "g.V().optional(__.in().as('a')).optional(out('knows')).select('a').dedup().count()",
    "g.V().hasLabel('place').optional(__.in()).path().count(local).groupCount()",
    "g.V().union(out('near').count(), __.in('near').count(), has('color', 'red').count())",
    "g.V().choose(has('color'), values('color'), constant('none')).groupCount()",
    "g.V().choose(label).option('person', out('near')).option(none, __.in('near')).count()",
    "g.V(0).repeat(out('near')).times(6).count()",
    "g.V(1, 2, 3).repeat(both('near').dedup()).times(4).dedup().count()",
    "g.V(0).repeat(out()).emit().times(3).dedup().values('n')",
    "g.V(0).repeat(out('knows').simplePath()).times(2).path().count(local).groupCount()",
    "g.V().has('n', lt(50)).repeat(out()).until(has('color', 'blue').or().loops().is(3)).count()",
    "g.V().has('n', lt(200)).as('a').out().as('b').where('a', gt('b')).by('n').count()",
    "g.V().has('n', lt(300)).as('a').out('near').in('near').where(neq('a')).count()",
    "g.V().hasLabel('place').project('n', 'in').by('n').by(__.in().values('n').fold().order(local))",
    "g.V().has('n', lt(40)).out().path().by('n').by(label)",
    "g.V().values('n').mean()",
    "g.V(0).bothE().otherV().values('n')",
    "g.V().has('n', within(3, 5, 4999)).elementMap('color')",
    "g.V().barrier().out('near').barrier().count()",
    "g.V().hasLabel('place').valueMap('n', 'color')",
];

/// Traversals whose results come in one order.
const ORDERED: &[&str] = &[
    "g.V().order().by('n').values('n')",
    "g.V().order().by('n', desc).limit(1500).values('n')",
    "g.V().order().by('color').by('n', desc).range(100, 2300).values('n')",
    "g.V().order().by(out().count(), desc).by('n').limit(20).values('n')",
    "g.V().order().by('n').map(out('near').count())",
    "g.V().order().by('n').local(out('near').order().by('n').values('n').fold())",
    "g.V().order().by('n').where(out('near')).tail(1200).values('n')",
    "g.V().order().by('n').choose(has('color', 'red'), values('n'), constant(-1)).fold()",
    "g.V().order().by('n').coalesce(values('color'), constant('none')).fold()",
    "g.V().order().by('n').optional(has('color').values('color')).limit(1100).count()",
    "g.V().order().by('n', desc).dedup().by('color').values('n')",
];

fn run(database: &Database, script: &str, nodes: u16, seed: u64) -> Vec<String> {
    let prepared = database.prepare(script).unwrap();
    let options = QueryOptions { materialize: Materialize::References, ..QueryOptions::default() };
    let tx = database.begin_read().unwrap();
    let results = tx.run_on_nodes(&prepared, &Parameters::new(), &options, nodes, Some(seed));
    let results = results.unwrap_or_else(|e| panic!("{script} on {nodes} nodes: {e}"));
    results.iter().flat_map(|(value, times)| std::iter::repeat_n(show(value), *times as usize)).collect()
}

/// A value as text; a map's entries in no order.
fn show(value: &Value) -> String {
    match value {
        Value::Map(entries) => {
            let mut shown: Vec<_> = entries.iter().map(|(k, v)| format!("{} = {}", show(k), show(v))).collect();
            shown.sort();
            format!("{shown:?}")
        }
        other => format!("{other:?}"),
    }
}

#[track_caller]
fn check(database: &Database, script: &str, ordered: bool) {
    let sorted = |mut results: Vec<String>| {
        if !ordered {
            results.sort();
        }
        results
    };
    let expected = sorted(run(database, script, 1, 0));
    assert!(!expected.is_empty(), "{script} tests nothing");
    for (nodes, seed) in [(2, 1), (4, 7)] {
        let found = sorted(run(database, script, nodes, seed));
        let differs = expected.iter().zip(&found).position(|(a, b)| a != b);
        let at = differs.or((expected.len() != found.len()).then_some(0));
        assert!(
            at.is_none(),
            "{script}: {} results on one node, {} on {nodes}; at {at:?}: {:?} against {:?}",
            expected.len(),
            found.len(),
            at.and_then(|at| expected.get(at)),
            at.and_then(|at| found.get(at)),
        );
    }
}

#[test]
fn several_nodes_agree_with_one() {
    let database = graph();
    for script in UNORDERED {
        check(&database, script, false);
    }
    for script in ORDERED {
        check(&database, script, true);
    }
}
