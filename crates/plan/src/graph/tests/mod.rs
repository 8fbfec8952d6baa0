//! Tests of query graphs: which steps become one, that spellings of a question become the same one, and how near
//! estimates are to true counts.

mod estimates;
mod orders;
mod segments;
mod selectivity;
mod spellings;
mod walks;

use mangrove_gremlin::{ParseOptions, Statement, parse_one};

use super::{QueryGraph, build, edges, preconditions};
use crate::logical::Traversal;
use crate::{compile, rules};

/// A generator of numbers that looks random enough.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number below `count`; small ones are more frequent, by the power.
    fn skewed(&mut self, count: usize, power: i32) -> usize {
        ((self.next().powi(power) * count as f64) as usize).min(count - 1)
    }
}

/// The graph of a script, and the steps that are left.
fn graph_of(script: &str) -> Option<(QueryGraph, Traversal)> {
    let statement = parse_one(script, &ParseOptions::default()).unwrap_or_else(|error| panic!("{script}: {error}"));
    let Statement::Traversal { bytecode, .. } = statement else { panic!("{script} is no traversal") };
    let mut compiled = compile(&bytecode).unwrap_or_else(|error| panic!("{script}: {error}"));
    rules::rewrite(&mut compiled.traversal, &compiled.configuration);
    forget_positions(&mut compiled.traversal);
    if let Some(without_paths) = edges::without_paths(&compiled.traversal) {
        compiled.traversal = without_paths;
    }
    let checked = preconditions::check(&compiled.traversal, &compiled.configuration);
    let (graph, end) = build::build(&compiled.traversal, None, &checked).ok()?;
    Some((graph, Traversal { steps: compiled.traversal.steps.split_off(end) }))
}

/// Two spellings have their steps in different positions.
fn forget_positions(traversal: &mut Traversal) {
    for node in &mut traversal.steps {
        node.position = None;
        node.step.visit_nested_mut(&mut |_, nested| forget_positions(nested));
    }
}

#[test]
fn what_can_be_observed_is_no_graph() {
    for script in [
        // One order only.
        "g.V()",
        "g.V().out()",
        "g.V().hasLabel('a').out('b').hasLabel('c')",
        "g.V(1).out().out()",
        "g.E().outV().out().out()",
        // Paths, names that are given twice or read otherwise, cuts, side effects, sacks and chance.
        "g.V().out().out().path()",
        "g.V().out().out().simplePath()",
        "g.V().as('a').out().as('a').out().select('a')",
        "g.V().as('a').out().out().select(first, 'a')",
        "g.V().out().out().limit(3)",
        "g.V().out().out().dedup().tail(1)",
        "g.V().aggregate('x').out().out().cap('x')",
        "g.withSideEffect('x', 1).V().out().out()",
        "g.withSack(1).V().out().out().sack()",
        "g.withBulk(false).V().out().out().count()",
        "g.withPath().V().out().out()",
        "g.withStrategies(new SeedStrategy(seed: 1)).V().out().out()",
        "g.withStrategies(ProductiveByStrategy).V().out().out()",
        "g.with('policy', 'bfs').V().out().out()",
        "g.V().out().out().addE('x').to(__.V(1))",
        "g.V().out().out().sample(1)",
        "g.V().out().bothE().as('e').has('n', 1).otherV().out()",
        "g.V().out().bothE().has('n', 1).order().by(otherV().values('n')).otherV().out()",
        // The same name for two things.
        "g.V().out().out().as('a').select('a').out().as('a')",
    ] {
        assert!(graph_of(script).is_none(), "{script}");
    }
}

#[test]
fn what_is_not_listed_ends_the_graph() {
    for (script, atoms, tests, rest) in [
        ("g.V().out().out().count()", 2, 0, 1),
        ("g.V().out().out().values('n').sum()", 2, 0, 2),
        ("g.V().out().out().barrier().out().count()", 2, 0, 3),
        ("g.V().out().out().outE().inV()", 3, 0, 0),
        ("g.V().out().out().outE().has('n', 1).inV().count()", 3, 0, 1),
        ("g.V().out().out().outE().has('n', 1).has('m').otherV().count()", 3, 0, 1),
        ("g.V().out().out().inE().has('n', 1).outV().out().count()", 4, 0, 1),
        ("g.V().out().out().bothE().has('n', 1).otherV().as('a').out().select('a')", 4, 0, 0),
        ("g.V().out().out().union(outE().has('n', 1).inV(), inE().has('n', 1).outV()).out().count()", 4, 0, 1),
        // The edge has a name, or leads back; something else is asked of it.
        ("g.V().out().out().outE().as('e').has('n', 1).inV().select('e')", 2, 0, 4),
        ("g.V().out().out().outE().has('n', 1).as('e').inV().select('e')", 2, 0, 4),
        ("g.V().out().out().outE().has('n', 1).outV().count()", 2, 0, 4),
        ("g.V().out().out().bothE().has('n', 1).inV().count()", 2, 0, 4),
        ("g.V().out().out().outE().has('n', 1).count()", 2, 0, 3),
        ("g.V().out().out().outE().hasKey('n').inV().count()", 2, 0, 4),
        ("g.V().out().out().outE().where(values('n').is(1)).inV().count()", 2, 0, 4),
        // The branches are no two sides of the same edges.
        ("g.V().out().out().union(outE().has('n', 1).inV(), inE().has('n', 2).outV()).count()", 2, 0, 2),
        ("g.V().out().out().union(outE('a').has('n', 1).inV(), inE('b').has('n', 1).outV()).count()", 2, 0, 2),
        ("g.V().out().out().union(outE().has('n', 1).inV(), outE().has('n', 1).inV()).count()", 2, 0, 2),
        ("g.V().out().out().union(outE().has('n', 1).inV().as('a'), inE().has('n', 1).outV()).select('a')", 2, 0, 2),
        ("g.V().out().out().union(outE().has('n', 1).inV(), inE().has('n', 1).outV().out()).count()", 2, 0, 2),
        ("g.V().out().out().where(values('m').select('a'))", 2, 0, 1),
        ("g.V().as('a').out().out().where(out().where(eq('a'))).count()", 2, 1, 1),
        // The name is given later.
        ("g.V().out().out().where(out().where(eq('b'))).as('b').count()", 2, 0, 2),
        ("g.V().out().out().not(out().hasKey('k')).count()", 2, 0, 2),
        ("g.V().out().out().where(values('n').is(gt(3))).out().count()", 3, 1, 1),
        ("g.V().as('a').out().out().where(gt('a')).by('n').count()", 2, 1, 1),
        ("g.V().as('a').out().out().where(gt('a')).by(out().count()).count()", 2, 0, 2),
        ("g.V().as('a').out().out().where(within('a')).count()", 2, 0, 2),
        ("g.V().out().out().local(out()).count()", 2, 0, 2),
        ("g.V().out().out().optional(out()).count()", 2, 0, 2),
        ("g.V().out().out().V().count()", 2, 0, 2),
        ("g.V().out().out().where(__.in('x')).with('policy', 'bfs').count()", 2, 0, 2),
        ("g.V().match(__.as('a').out().as('b'), __.as('b').out().as('a')).select('b')", 2, 0, 2),
    ] {
        let (graph, left) = graph_of(script).unwrap_or_else(|| panic!("{script} has a graph"));
        assert_eq!((graph.atoms.len(), graph.tests.len(), left.steps.len()), (atoms, tests, rest), "{script}");
    }
}
