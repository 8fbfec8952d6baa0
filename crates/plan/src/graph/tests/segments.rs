//! Which steps are segments after fences.

use mangrove_gremlin::{ParseOptions, Statement, parse_one};

use crate::facts::GraphFacts;
use crate::graph::preconditions;
use crate::graph::segments;
use crate::{compile, rules};

/// The segments of a script that have several orders: for each, how many steps come before it, and its atoms.
fn segments_of(script: &str) -> Vec<(usize, usize)> {
    let statement = parse_one(script, &ParseOptions::default()).unwrap_or_else(|error| panic!("{script}: {error}"));
    let Statement::Traversal { bytecode, .. } = statement else { panic!("{script} is no traversal") };
    let mut compiled = compile(&bytecode).unwrap_or_else(|error| panic!("{script}: {error}"));
    rules::rewrite(&mut compiled.traversal, &compiled.configuration);
    let checked = preconditions::check(&compiled.traversal, &compiled.configuration);
    let segments = segments::read(&compiled.traversal, &GraphFacts::default(), &checked);
    segments.into_iter().map(|segment| (segment.steps.start, segment.graph.atoms.len())).collect()
}

#[test]
fn steps_after_fences_are_segments() {
    for (script, segments) in [
        ("g.V().limit(5).as('a').out().select('a').in().count()", vec![(2, 2)]),
        ("g.V().as('a').out().range(2, 9).out().in().where(eq('a')).count()", vec![(3, 2)]),
        (
            "g.V().dedup().match(__.as('a').out().as('b'), __.as('a').outE().has('w', 1).inV().as('c')).count()",
            vec![(2, 2)],
        ),
        ("g.V().out().dedup().by('n').barrier().as('a').out().select('a').in().count()", vec![(4, 2)]),
        ("g.V().tail(5).as('a').out().select('a').in().dedup().as('b').out().select('b').in()", vec![(2, 2), (6, 2)]),
        // The name of the vertex that rows are at is known after the fence.
        ("g.V().as('a').dedup().out().select('a').in().out().count()", vec![(2, 3)]),
        // That of another vertex ends the segment.
        ("g.V().as('a').out().dedup().out().in().select('a').out()", vec![(3, 2)]),
    ] {
        assert_eq!(segments_of(script), segments, "{script}");
    }
}

#[test]
fn what_can_be_observed_is_no_segment() {
    for script in [
        // Only one order, or no fence.
        "g.V().limit(5).out().count()",
        "g.V().out().as('a').out().select('a').in()",
        // The order of rows, paths, names that are given twice, cuts, side effects.
        "g.V().order().by('n').as('a').out().select('a').in()",
        "g.V().order().by('n').dedup().as('a').out().select('a').in()",
        "g.V().dedup().order().by('n').limit(5).as('a').out().select('a').in()",
        "g.V().dedup().as('a').out().select('a').in().path()",
        "g.V().as('a').dedup().as('a').out().select('a').in()",
        "g.V().dedup().as('a').out().select('a').in().limit(5)",
        "g.V().dedup().as('a').out().select('a').in().aggregate('x')",
        "g.withSack(1).V().dedup().as('a').out().select('a').in()",
        // Rows are no vertices, or what comes before is no graph.
        "g.V().values('n').dedup().as('a').select('a')",
        "g.E().dedup().as('e').outV().as('a').out().select('a').in()",
        "g.V().local(out()).dedup().as('a').out().select('a').in()",
        "g.V().outE().limit(5).inV().as('a').out().select('a').in()",
    ] {
        assert_eq!(segments_of(script), [], "{script}");
    }
}
