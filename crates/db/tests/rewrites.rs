//! Walks and patterns, planned with all optimizations and with none: the same answers. Small dense graphs with parallel
//! edges and loops, in which a vertex is come to over many ways; the general test of the planner is `differential.rs`.

use std::sync::Arc;

use mangrove::{Database, Parameters, PlanOptions, Prepared, QueryGauges, QueryOptions, Value};
use mangrove_gremlin::Terminal;
use mangrove_gremlin::script::{ParseOptions, Statement, parse_one};

/// Every form that `close`, "walk to tests", "equal rows once" and "each vertex once" look for, and near misses.
const SCRIPTS: &[&str] = &[
    // Edges to a known vertex: followed, tested, negated, intersected, with loops and parallel edges counted.
    "g.V().as('a').out('x').where(eq('a')).count()",
    "g.V().as('a').both().where(eq('a')).values('n')",
    "g.V().as('a').out().out().where(eq('a')).values('n')",
    "g.V().as('a').both('x').as('b').both('y').where(eq('a')).select('a', 'b').by('n')",
    "g.V().as('a').out().as('b').where(out('x').where(eq('a'))).select('a', 'b').by('n')",
    "g.V().as('a').out().as('b').where(__.not(__.in('y').where(eq('a')))).select('a', 'b').by('n')",
    "g.V().as('a').both('x').as('b').where('b', gt('a')).by('n').both('x').as('c').where('c', gt('b')).by('n').
       both('x').where(eq('a')).count()",
    "g.V().as('a').out('x').as('b').out('x').as('c').where(__.in('x').where(eq('a'))).where(out('y').where(eq('b'))).
       select('a', 'b', 'c').by('n')",
    "g.V().as('a').out('x').as('b').out('y').as('c').where(neq('a')).in('x').where(eq('a')).path().by('n')",
    "g.V().as('a').out().as('a').where(eq('a')).count()",
    "g.withSideEffect('a', 1).V().as('a').out().where(eq('a')).count()",
    // Hops that keep the rows without edges.
    "g.V().optional(out('x')).values('n')",
    "g.V().optional(bothE('y')).count()",
    "g.V().optional(outE('x')).label()",
    "g.V().optional(outE('x')).path().count(local).groupCount().unfold()",
    "g.V().as('a').optional(out('x').as('b')).optional(__.in('y')).as('c').path().by('n')",
    "g.V().as('a').optional(out('x').as('a')).select('a').by('n')",
    "g.V().as('a').optional(out('x').as('a')).select(all, 'a').by(unfold().values('n').fold())",
    "g.V().as('a').optional(out('x').as('b')).optional(out('y')).where(neq('a')).select('b').by('n')",
    "g.V().out('x').optional(out('y')).optional(both('x')).count()",
    "g.V().both().both().optional(out('y')).out('x').optional(__.in('y')).count()",
    "g.V().optional(out('x')).optional(out('y')).dedup().values('n')",
    "g.V().order().by('n').optional(out('y')).values('n').fold()",
    "g.V().group().by('n').by(optional(out('x')).count())",
    "g.V().local(optional(both('x')).count())",
    "g.V().has('n', lt(3)).repeat(optional(out('y'))).times(3).groupCount().by('n').unfold()",
    "g.V().both().both().barrier().optional(out('x')).values('n')",
    "g.V().where(optional(out('x')).has('n', 3)).values('n')",
    "g.withSack(1).V().optional(out('x')).sack(sum).by('n').optional(out('y')).sack()",
    "g.V().as('a').optional(out('x')).select('a').optional(__.in('y')).select('a').optional(both()).count()",
    "g.V().optional(out('x')).limit(1000000).values('n')",
    // Side effects of one traverser, read by later steps.
    "g.V().has('n', 0).sideEffect(out('y').aggregate('m')).repeat(both()).emit().times(3).where(out('x').where(within('m'))).
       dedup().limit(1000).values('n')",
    "g.V().has('n', 1).sideEffect(out('y').aggregate('m')).repeat(both().where(without('m'))).times(2).limit(1000000).values('n')",
    "g.V().has('n', 0).repeat(both().where(out('x').out('y'))).emit().times(3).dedup().limit(1000).values('n')",
    "g.V().has('n', 0).repeat(both().where(out('x').out('y'))).until(or(has('n', gt(3)), loops().is(3))).limit(1000000).values('n')",
    // Patterns.
    "g.V().match(__.as('a').out('x').as('b'), __.as('b').out('x').as('c'), __.as('a').out('x').as('c')).
       select('a', 'b', 'c').by('n')",
    "g.V().match(__.as('a').out('x').as('b'), __.as('b').out('y').as('c'), __.as('c').out('x').as('a')).
       select('a', 'b', 'c').by('n')",
    "g.V().match(__.as('a').both('x').as('b'), __.as('a').out('y').as('b'), __.as('a').out().as('b')).
       select('a', 'b').by('n')",
    // Walks of which only the existence matters.
    "g.V().where(repeat(out('x')).emit().times(3).has('n', 3)).values('n')",
    "g.V().where(repeat(out('x')).times(2).has('n', lt(4))).values('n')",
    "g.V().where(emit().repeat(out('x')).times(2).has('n', 3)).values('n')",
    "g.V().where(times(2).repeat(out('y')).emit().has('n', 3)).values('n')",
    "g.V().where(repeat(out()).emit(has('n', lt(5))).times(2)).values('n')",
    "g.V().both().where(repeat(out('y')).emit().times(3).where(out('x').has('n', 1))).values('n')",
    "g.V().where(repeat(out('x')).emit().times(2).as('p').out('y').where(eq('p'))).values('n')",
    "g.V().as('s').where(repeat(out('x')).emit().times(2).out('y').where(eq('s'))).values('n')",
    "g.V().has('n', 0).sideEffect(out('y').aggregate('m')).both().where(repeat(both('x')).emit().times(3).where(within('m'))).
       values('n')",
    "g.V().where(__.not(repeat(out('y')).emit().times(2).has('n', 2))).values('n')",
    // Each vertex once, or not.
    "g.V().has('n', 0).repeat(both()).emit().times(4).dedup().values('n')",
    "g.V().has('n', lt(3)).repeat(out()).emit(has('n', gt(3))).times(3).where(out('x')).dedup().values('n')",
    "g.V().has('n', 0).repeat(out('x')).times(3).dedup().values('n')",
    "g.V().has('n', 0).repeat(out('x')).emit().times(3).count()",
    "g.V().has('n', 0).out().out().out().dedup().values('n')",
    // Tests of equal rows.
    "g.V().both().where(out('x').out('y').has('n', gt(4))).values('n')",
    "g.V().both().not(out('x').count().is(gt(1))).values('n')",
    "g.V().as('a').both().where(out('x').where(neq('a'))).values('n')",
    // Limits that no answer reaches: loops are unrolled before them, and rows pass tests early.
    "g.V().has('n', 0).repeat(both()).times(4).dedup().limit(1000).values('n')",
    "g.V().has('n', 0).times(3).repeat(out('x')).dedup().limit(1000).values('n')",
    "g.V().repeat(both().where(out('x').out('y'))).times(3).dedup().limit(1000).values('n')",
    "g.V().as('a').repeat(both().has('n', gt(1))).times(2).out().dedup().limit(1000).select('a').count()",
    "g.V().both().where(out('x').out('y').has('n', gt(4))).limit(100000).values('n')",
    "g.V().both().both().where(out('x').out('y')).where(__.in('x').in('y')).out().limit(100000).count()",
    "g.V().both().or(out('x').out('y'), __.in('x').in('y')).dedup().limit(1000).values('n')",
    "g.V().both().and(out('x').out('y'), __.in('x').in('y')).limit(100000).values('n')",
];

/// Vertices with numbers `n`, and edges `x` and `y` between them.
fn graph(size: usize, edges: &[(usize, usize, bool)]) -> Database {
    let db = Database::in_memory();
    for n in 0..size {
        db.query(&format!("g.addV('v').property('n', {n})")).unwrap().collect().unwrap();
    }
    for (from, to, is_x) in edges {
        let label = if *is_x { "x" } else { "y" };
        let add = format!("g.V().has('n', {}).addE('{label}').to(__.V().has('n', {}))", from % size, to % size);
        db.query(&add).unwrap().collect().unwrap();
    }
    db
}

/// The answer, sorted; an error as its message.
fn answer(db: &Database, script: &str, options: PlanOptions) -> Result<Vec<String>, String> {
    let parsed = parse_one(script, &ParseOptions::default());
    let Ok(Statement::Traversal { bytecode, .. }) = parsed else { panic!("{script}: {parsed:?}") };
    let prepared = Prepared::with_options(&bytecode, Terminal::None, options).map_err(|e| e.message().to_owned())?;
    let results = db.run(&prepared, &Parameters::new()).and_then(mangrove::ResultStream::collect);
    let mut shown: Vec<String> =
        results.map_err(|e| e.message().to_owned())?.iter().map(|value: &Value| format!("{value:?}")).collect();
    shown.sort();
    Ok(shown)
}

/// A graph of up to eight vertices and 27 edges, another one for every seed.
fn random_graph(seed: u64) -> Database {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut below = |bound: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % bound) as usize
    };
    let (size, count) = (1 + below(8), below(28));
    let edges: Vec<_> = (0..count).map(|_| (below(9), below(9), below(2) == 0)).collect();
    graph(size, &edges)
}

#[test]
fn optimized_plans_answer_as_plain_ones() {
    for seed in 1..=12 {
        let db = random_graph(seed);
        for script in SCRIPTS {
            let plain = answer(&db, script, PlanOptions::NONE);
            assert_eq!(answer(&db, script, PlanOptions::default()), plain, "seed {seed}: {script}");
        }
    }
}

/// The messages of a run.
fn messages(db: &Database, script: &str) -> u64 {
    let gauges = Arc::new(QueryGauges::default());
    let options = QueryOptions { gauges: Some(gauges.clone()), ..QueryOptions::default() };
    let prepared = db.prepare(script).unwrap();
    assert!(!db.run_with(&prepared, &Parameters::new(), &options).unwrap().collect().unwrap().is_empty(), "{script}");
    gauges.read().messages
}

/// A limit ends a walk long before a loop, or a test of all rows, would end.
#[test]
fn a_limit_ends_walks_and_tests_soon() {
    let db = Database::in_memory();
    let (catalog, transaction) = (db.catalog(), db.begin().unwrap());
    let ids: Vec<_> = (0..20_000_i64).map(Into::into).collect();
    let vertices = transaction.insert_vertices(catalog.intern_label_text("v"), &ids).unwrap();
    let to = |from: usize, far: usize| (vertices[from], vertices[(from + far) % vertices.len()]);
    let edges: Vec<_> = (0..vertices.len()).flat_map(|from| [1, 70, 900, 4_321].map(|far| to(from, far))).collect();
    transaction.insert_edges(catalog.intern_label_text("x"), &edges).unwrap();
    transaction.commit().unwrap();
    for (few, all) in [
        ("g.V(0).repeat(both()).times(8).dedup().limit(1)", "g.V(0).repeat(both()).times(8).dedup()"),
        ("g.V().where(out().out()).limit(1)", "g.V().where(out().out())"),
    ] {
        let (few_messages, all_messages) = (messages(&db, few), messages(&db, all));
        println!("{few}: {few_messages} messages of {all_messages}");
        assert!(few_messages * 2 < all_messages, "{few}: {few_messages} messages of {all_messages}");
    }
}
