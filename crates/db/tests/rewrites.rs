//! Walks and patterns, planned with all optimizations and with none: the same answers. Small dense graphs with parallel
//! edges and loops, in which a vertex is come to over many ways; the general test of the planner is `differential.rs`.

use std::sync::Arc;

use mangrove::{
    Database, Error, Isolation, Parameters, PlanOptions, Prepared, QueryGauges, QueryOptions, TransactionOptions, Value,
};
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
    // A source that runs for each row.
    "g.V().out('x').union(__.identity(), __.V().dedup()).values('n')",
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
    // Conditions after other filters of the same element, and what they may not pass.
    "g.V().where(out('x').count().is(gt(1))).has('n', lt(3)).values('n')",
    "g.V().as('a').out().where(neq('a')).dedup().has('n', gt(1)).path().by('n')",
    "g.V().order().by('n', desc).and(__.in('x'), out('y')).has('n', gt(0)).values('n').fold()",
    "g.V().both().or(out('x'), has('n', 2)).has('n', neq(1)).identity().has('n', gt(0)).groupCount().by('n').unfold()",
    "g.V().order().by('n').limit(3).has('n', gt(0)).values('n').fold()",
    "g.V().out().dedup().by('n').has('n', lt(4)).values('n')",
    "g.V().where(__.out('x').aggregate('m')).has('n', 2).cap('m').unfold().values('n')",
    "g.V().as('a').out().where(out('y')).has('n', lt(3)).as('b').where(neq('a')).has('n', gt(0)).select('a', 'b').by('n')",
    "g.E().where(outV().has('n', 1)).hasLabel('x').inV().where(__.in('y')).has('n', gt(1)).values('n')",
    "g.V().values('n').order().tail(3).is(gt(1))",
    // Patterns.
    "g.V().match(__.as('a').out('x').as('b'), __.as('b').out('x').as('c'), __.as('a').out('x').as('c')).
       select('a', 'b', 'c').by('n')",
    "g.V().match(__.as('a').out('x').as('b'), __.as('b').out('y').as('c'), __.as('c').out('x').as('a')).
       select('a', 'b', 'c').by('n')",
    "g.V().match(__.as('a').both('x').as('b'), __.as('a').out('y').as('b'), __.as('a').out().as('b')).
       select('a', 'b').by('n')",
    // Hops over edges that are tested, in both directions, with self-loops; named edges and other near misses.
    "g.V().outE('x').has('w', gt(1)).inV().out('y').values('n')",
    "g.V().as('a').both('x').outE('y').has('w', 1).has('w', gt(0)).inV().where(eq('a')).count()",
    "g.V().as('a').bothE('x').has('w', lt(3)).otherV().as('b').out('y').select('a', 'b').by('n')",
    "g.V().bothE().has('w', gt(0)).otherV().bothE('y').has('w', lt(3)).otherV().count()",
    "g.V().as('a').bothE('x').has('w', 2).otherV().where(eq('a')).values('n')",
    "g.V().out('x').outE('y').as('e').has('w', gt(0)).inV().out('x').select('e').values('w')",
    "g.V().out('x').outE('y').has('w', gt(0)).as('e').otherV().as('b').select('e', 'b').by(values('w', 'n').fold())",
    "g.V().out('x').inE('y').has('w', gt(0)).otherV().outE().where(inV().has('n', lt(4))).otherV().values('n')",
    "g.V().out('x').outE('y').has('w', gt(0)).outV().out('x').values('n')",
    "g.V().out('x').bothE('y').has('w', gt(0)).bothV().out('x').values('n')",
    "g.V().out('x').outE('y').has('w', gt(0)).otherV().bothE('x').has('w', 0).otherV().path().by(coalesce(values('n'), values('w')))",
    "g.V().out('x').outE('y').dedup().by('w').otherV().out().count()",
    "g.V().out('x').union(outE('y').has('w', 1).inV(), inE('y').has('w', 2).outV()).out('x').values('n')",
    "g.V().out('x').union(outE('y').has('w', 1).inV(), inE('y').has('w', 1).outV().as('z')).out('x').values('n')",
    "g.V().out('x').union(outE('y').has('w', 1).inV(), inE('y').has('w', 1).outV()).out('x').groupCount().by('n').unfold()",
    "g.V().out().outE().has('w', gt(0)).inV().out().outE().has('w', gt(0)).inV().groupCount().by('n').unfold()",
    "g.V().match(__.as('a').outE('x').has('w', gt(0)).inV().as('b'), __.as('b').bothE('y').has('w', lt(3)).otherV().as('c'),
       __.as('c').inE().has('w', neq(2)).outV().as('a')).select('a', 'b', 'c').by('n')",
    "g.V().match(__.as('a').outE('x').as('e').inV().as('b'), __.as('b').out('y').as('c'), __.as('e').has('w', gt(1))).count()",
    // What follows fences, with names from before them; two fences; and a stream whose order is read.
    "g.V().as('a').out('x').dedup().as('b').out('y').as('c').select('b').in('x').as('d').select('b', 'c', 'd').by('n')",
    "g.V().as('a').out('x').dedup().as('b').out('y').select('b').in('x').select('a').values('n')",
    "g.V().as('a').both('x').barrier().as('b').out('y').where(eq('a')).select('b').in('x').where(neq('b')).count()",
    "g.V().both().dedup().match(__.as('a').out('x').as('b'), __.as('a').in('y').as('c'), __.as('b').both().as('c')).
       select('a', 'b', 'c').by('n')",
    "g.V().has('n', 0).limit(1).match(__.as('a').out('x').as('b'), __.as('a').in('y').has('n', lt(4)).as('c')).count()",
    "g.V().out().dedup().as('a').out().select('a').in('y').dedup().as('b').both().select('b').in().values('n')",
    "g.V().order().by('n').limit(3).as('a').out('x').select('a').out('y').limit(1).count()",
    "g.V().order().by('n').dedup().as('a').out('x').as('b').select('a').in('y').select('b').values('n').fold().count(local)",
    "g.V().out().limit(100000).as('a').out('x').select('a').out('y').limit(100000).values('n')",
    "g.V().out('x').dedup().as('a').out('y').path().by('n')",
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

/// Every form that the rules for degrees and for shared reductions look for, and near misses.
const DEGREES_AND_REDUCTIONS: &[&str] = &[
    // Tests of degrees, alone and together; of edges, neighbors and other things; negated, nested and in loops.
    "g.V().where(out('x').count().is(gt(1))).values('n')",
    "g.V().filter(both().count().is(between(2, 5))).values('n')",
    "g.V().where(__.inE('x', 'y').count().is(within(1, 3))).values('n')",
    "g.V().where(outE('y').count().is(neq(2))).values('n')",
    "g.V().where(bothE('z').count().is(lt(1))).values('n')",
    "g.V().where(out('x').count().is(outside(1, 3))).values('n')",
    "g.V().where(out().count().is(P.not(gt(2)).or(eq(5)))).values('n')",
    "g.V().where(out('x').count().is('2')).values('n')",
    "g.V().where(out('x').count().is(1.5)).values('n')",
    "g.V().where(optional(out('x')).count().is(lte(1))).values('n')",
    "g.V().not(both('x').count().is(gte(2))).values('n')",
    "g.V().or(out('x').count().is(gt(2)), __.in('y'), bothE().count().is(3)).values('n')",
    "g.V().or(out('x'), outE('y')).values('n')",
    "g.V().or(out('x').count().is(gt(2)), has('n', 1)).values('n')",
    "g.V().not(or(out('x').count().is(gt(2)), __.in('y'))).values('n')",
    "g.V().and(out('x').count().is(gt(0)), __.in('y').count().is(lt(3)), has('n', lt(6))).values('n')",
    "g.V().and(or(out('x'), __.in('x')), not(out('y').count().is(gt(2)))).values('n')",
    "g.V().both().both().where(out('x').count().is(gt(1))).values('n')",
    "g.V().both().both().where(out('x').count().is(gt(1))).count()",
    "g.V().repeat(both().where(out('x').count().is(lt(3)))).times(2).dedup().values('n')",
    "g.V().as('a').out().where(__.in().count().is(gt(1))).where(neq('a')).path().by('n')",
    "g.V().where(out('x').where(out('y').count().is(1))).values('n')",
    "g.V().where(out('x').has('n', gt(2)).count().is(1)).values('n')",
    "g.V().where(out('x').dedup().count().is(2)).values('n')",
    "g.V().where(out('x').count().as('c').is(gt(1)).where(eq('c'))).values('n')",
    "g.withBulk(false).V().both().barrier().where(out().count().is(gt(1))).values('n')",
    "g.withSack(1).V().both().where(out().count().is(gt(1))).sack(sum).by(__.in().count()).sack()",
    "g.V().aggregate('s').where(out().count().is(gt(1))).aggregate('s').cap('s').unfold().values('n')",
    "g.withStrategies(new SubgraphStrategy(edges: hasLabel('x'))).V().where(both().count().is(2)).values('n')",
    "g.withStrategies(new SubgraphStrategy(vertices: has('n', gt(1)))).V().order().by(both().count()).by('n').values('n').fold()",
    // Objects that have no degree.
    "g.V().values('n').where(out().count().is(gt(1)))",
    "g.E().where(outE('x').count().is(gt(1)))",
    "g.inject(1).or(out().count().is(2), __.inE('x'), bothE('x').count().is(1))",
    "g.inject(1).project('a').by(outE().count())",
    "g.V().union(identity(), outE()).order().by(bothE('x').count())",
    "g.V().union(identity(), outE()).order().by(label()).by(out('x').count()).limit(1000)",
    "g.inject(1, 2).groupCount().by(optional(out()).count())",
    // Degrees as keys.
    "g.V().order().by(out('x').count()).by('n').values('n').fold()",
    "g.V().order().by('n', desc).by(out('x').count()).values('n').fold()",
    "g.V().order().by(bothE('x', 'y').count(), desc).by('n').limit(3).values('n').fold()",
    "g.V().both().groupCount().by(out('x').count()).unfold()",
    "g.V().both().group().by(__.in().count()).by(count()).unfold()",
    "g.V().both().group().by(out('x').count()).by(both('y').count()).unfold()",
    "g.V().dedup().by(out('x').count()).count()",
    "g.V().project('n', 'x', 'y').by('n').by(out('x').count()).by(optional(__.in('y')).count())",
    "g.V().project('n', 'x', 'y').by('n').by(out('x').count()).by(out('y').values('n').max())",
    "g.V().as('a').out('x').as('b').select('a', 'b').by(out('x').count()).by(__.in('y').count())",
    "g.V().as('a').out().as('b').where('a', lt('b')).by(both().count()).select('a', 'b').by('n')",
    "g.V().out().out().path().by('n').by(out('x').count())",
    "g.V().fold().order(local).by(out('x').count()).by('n').unfold().values('n').fold()",
    "g.V().order().by('n').project('n', 'd').by('n').by(out('y').count()).fold()",
    "g.V().has('n', lt(4)).math('_ * 2').by(out('x').count())",
    "g.V().choose(out('x').count()).option(1, values('n')).option(gt(2), constant('many')).option(none, constant('few'))",
    "g.withStrategies(ProductiveByStrategy).V().groupCount().by(out('x').count()).unfold()",
    "g.V().both().aggregate('s').by(out('x').count()).cap('s').unfold()",
    "g.V().tree().by(out('x').count())",
    // Several reductions of the same values.
    "g.V().values('n').union(sum(), max(), count())",
    "g.V().values('n').union(count(), min(), mean(), min()).fold()",
    "g.V().union(values('n').mean(), values('n').max(), values('n').count())",
    "g.V().union(values('n').mean(), count())",
    "g.V().both().both().values('n').union(sum(), count(), mean())",
    "g.V().both().both().union(values('n').sum(), values('n').count())",
    "g.V().both().out().in().union(count(), count())",
    "g.V().values('n').is(gt(2)).union(sum(), count()).fold()",
    "g.V().values('n', 'z').union(sum(), count())",
    "g.V().values('z').union(sum(), max(), mean(), count())",
    "g.V().has('n', gt(100)).values('n').union(count(), min(), count(), sum())",
    "g.V().label().union(max(), count())",
    "g.V().label().union(count(), sum())",
    "g.V().union(identity(), label()).union(count(), max())",
    "g.inject(null, 1, 2.5d, null).union(sum(), mean(), count(), min())",
    "g.inject(null, null).union(sum(), mean(), count(), min())",
    "g.V().local(out().values('n').union(count(), max()).fold())",
    "g.V().local(union(out().values('n').count(), out().values('n').max()).fold())",
    "g.V().where(out().values('n').union(sum(), max()).is(gt(5))).values('n')",
    "g.V().map(out().values('n').union(min(), max())).fold()",
    "g.V().both().group().by('n').by(both().values('n').union(sum(), count()).fold()).unfold()",
    "g.V().both().barrier().local(values('n').union(sum(), count())).sum()",
    "g.V().values('n').union(mean(), fold()).count()",
    "g.V().values('n').union(max().math('_ * 2'), count())",
    "g.V().values('n').as('v').union(max(), count()).path()",
    "g.V().values('n').union(max(), count()).path()",
    "g.V().values('n').union(max().as('m'), count()).as('r').select('r')",
    "g.V().order().by('n', desc).values('n').union(sum(), count()).fold()",
    "g.withSack(1).V().values('n').union(sum(), count()).sack()",
    "g.withBulk(false).V().both().barrier().values('n').union(sum(), count())",
    "g.V().values('n').aggregate('s').union(sum(), count()).cap('s').unfold()",
    "g.V().repeat(both()).times(2).values('n').union(max(), count()).is(gt(0))",
];

/// Vertices with numbers `n`, and edges `x` and `y` between them.
fn graph(size: usize, edges: &[(usize, usize, bool)]) -> Database {
    let db = Database::in_memory();
    for n in 0..size {
        db.query(&format!("g.addV('v').property('n', {n})")).unwrap().collect().unwrap();
    }
    for (from, to, is_x) in edges {
        let label = if *is_x { "x" } else { "y" };
        let weight = (from + to) % 4;
        let (from, to) = (from % size, to % size);
        let add = format!("g.V().has('n', {from}).addE('{label}').to(__.V().has('n', {to})).property('w', {weight})");
        db.query(&add).unwrap().collect().unwrap();
    }
    db
}

/// The message of an error, without the step: one operator may do the work of several.
fn message(error: Error) -> String {
    error.message().split(" (in the step").next().unwrap_or_default().to_owned()
}

fn prepared(script: &str, options: PlanOptions) -> Result<Prepared, String> {
    let parsed = parse_one(script, &ParseOptions::default());
    let Ok(Statement::Traversal { bytecode, .. }) = parsed else { panic!("{script}: {parsed:?}") };
    Prepared::with_options(&bytecode, Terminal::None, options).map_err(message)
}

/// The answer, sorted; an error as its message.
fn answer(db: &Database, script: &str, options: PlanOptions) -> Result<Vec<String>, String> {
    let prepared = prepared(script, options)?;
    let results = db.run(&prepared, &Parameters::new()).and_then(mangrove::ResultStream::collect);
    let mut shown: Vec<String> = results.map_err(message)?.iter().map(|value: &Value| format!("{value:?}")).collect();
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
        for script in SCRIPTS.iter().chain(DEGREES_AND_REDUCTIONS) {
            let plain = answer(&db, script, PlanOptions::NONE);
            assert_eq!(answer(&db, script, PlanOptions::default()), plain, "seed {seed}: {script}");
        }
    }
}

/// Without any one of the rules that a plan used, the answer is the same.
#[test]
fn plans_without_one_rule_answer_as_plain_ones() {
    let mut compared = 0;
    for seed in 1..=3 {
        let db = random_graph(seed);
        for script in SCRIPTS.iter().chain(DEGREES_AND_REDUCTIONS) {
            let rest = script.strip_prefix("g.").unwrap_or_else(|| panic!("{script} begins with a source"));
            let plain = answer(&db, script, PlanOptions::NONE);
            for rule in rules_used(&db, script) {
                compared += 1;
                let without = format!("g.with('without', '{rule}').{rest}");
                assert_eq!(answer(&db, &without, PlanOptions::default()), plain, "seed {seed}: {without}");
                assert!(!rules_used(&db, &without).contains(&rule), "{without} uses the rule");
            }
        }
    }
    assert!(compared > 100, "only {compared} plans use a rule");
}

/// The names of the rules that changed the plan of a traversal; none if it has no plan.
fn rules_used(db: &Database, script: &str) -> Vec<String> {
    let parsed = parse_one(script, &ParseOptions::default());
    let Ok(Statement::Traversal { bytecode, .. }) = parsed else { panic!("{script}: {parsed:?}") };
    let Ok(prepared) = Prepared::new(&bytecode, Terminal::Explain) else { return Vec::new() };
    let plan = db.run(&prepared, &Parameters::new()).and_then(mangrove::ResultStream::collect).unwrap();
    let [Value::String(plan)] = &plan[..] else { panic!("{script}: {plan:?}") };
    let rules = plan.lines().find_map(|line| line.strip_prefix("rules: ")).unwrap_or_default();
    rules.split("; ").filter(|rule| !rule.is_empty()).map(str::to_owned).collect()
}

/// A transaction with changes of its own reads pages that others do not see yet, in both isolation levels, alone and with
/// helpers.
#[test]
fn optimized_plans_answer_as_plain_ones_after_changes_of_the_same_transaction() {
    for (seed, isolation) in (21..).zip([Isolation::Snapshot, Isolation::Serializable, Isolation::Snapshot]) {
        let db = random_graph(seed);
        let options = TransactionOptions { isolation, ..TransactionOptions::default() };
        let transaction = db.begin_with(options).unwrap();
        for change in [
            "g.V().has('n', lt(3)).as('v').addE('x').to(__.V().has('n', 0)).addE('y').from('v').to('v')",
            "g.addV('v').property('n', 20).as('v').addE('x').to(__.V().has('n', 0))",
            "g.E().hasLabel('y').limit(2).drop()",
            "g.V().has('n', 2).property('n', 2.5d)",
        ] {
            transaction.query(change).unwrap().collect().unwrap();
        }
        for script in DEGREES_AND_REDUCTIONS {
            let run = |options, helped: Option<u64>| {
                let (parameters, query) = (Parameters::new(), QueryOptions::default());
                let prepared = prepared(script, options)?;
                let results = match helped {
                    Some(seed) => transaction.run_helped(&prepared, &parameters, &query, seed),
                    None => transaction.run(&prepared, &parameters).and_then(mangrove::ResultStream::collect_bulked),
                };
                let results = results.map_err(message)?;
                let mut shown: Vec<String> =
                    results.iter().flat_map(|(value, times)| vec![format!("{value:?}"); *times as usize]).collect();
                shown.sort();
                Ok::<_, String>(shown)
            };
            let plain = run(PlanOptions::NONE, None);
            for helped in [None, Some(1), Some(2)] {
                assert_eq!(run(PlanOptions::default(), helped), plain, "seed {seed}, helped {helped:?}: {script}");
            }
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
