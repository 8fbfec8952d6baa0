//! Shapes and guards: which traversals share a plan.

use std::collections::HashMap;

use mangrove_graph::Value;
use mangrove_gremlin::script::{ParseOptions, Statement, parse_one};
use mangrove_gremlin::{Argument, Bytecode, Instruction};

use super::{Guard, LITERALS_MAX, Literals, lift, write_shape, write_whole};
use crate::{compile_with, rules};

fn parsed(script: &str) -> Bytecode {
    match parse_one(script, &ParseOptions::default()) {
        Ok(Statement::Traversal { bytecode, .. }) => bytecode,
        other => panic!("{script}: {other:?}"),
    }
}

fn shape(bytecode: &Bytecode) -> (Vec<u8>, Vec<Value>) {
    let mut key = Vec::new();
    let literals = write_shape(bytecode, &mut key);
    (key, literals)
}

/// What the plan of a traversal relies on.
fn guards(script: &str) -> Vec<Guard> {
    let lifted = lift(&parsed(script)).unwrap();
    let literals = Literals::new(&lifted.values);
    let mut compiled = compile_with(&lifted.bytecode, &literals).unwrap();
    rules::rewrite_with(&mut compiled.traversal, &compiled.configuration, &literals);
    literals.into_guards()
}

/// Returns true if the plan of the first traversal serves the second.
fn serves(one: &str, other: &str) -> bool {
    let (one_key, _) = shape(&parsed(one));
    let (other_key, literals) = shape(&parsed(other));
    assert_eq!(one_key, other_key, "{one} and {other}");
    guards(one).iter().all(|guard| guard.admits(&literals))
}

/// Traversals with different shapes.
const SHAPES: &[&str] = &[
    "g.V(1).out('knows').values('name')",
    "g.V(1, 2).out('knows').values('name')",
    "g.V().out('knows').values('name')",
    "g.E(1)",
    "g.V(x)",
    "g.V().has('k', 1)",
    "g.V().has('k', null)",
    "g.V().has('k', x)",
    "g.V().has('k', [1])",
    "g.V().has('k', [1L])",
    "g.V().has('k', [1, 2])",
    "g.V().has('k', [[1], 2])",
    "g.V().has('k', {1, 2})",
    "g.V().has('k', [a: 1])",
    "g.V().has('kl', 1)",
    "g.V().has('k', gt(1))",
    "g.V().has('k', gt(1).or(lt(0)))",
    "g.V().has('k', gt(1).and(lt(0)))",
    "g.V().has('k', P.not(gt(1)))",
    "g.V().has('k', within(1, 2, 3))",
    "g.V().has('k', within(1, null))",
    "g.V().has('k', within())",
    "g.V().has('k', without(1, 2, 3))",
    "g.V().has('k', startingWith('a'))",
    "g.V().has('k', endingWith('a'))",
    "g.V().has('k', regex('a'))",
    "g.V().has('k', regex('b'))",
    "g.V().has('k', typeOf(GType.INT))",
    "g.V().has('l', 'k', 1)",
    "g.V().has('l', 'k', 1).has('m', 1)",
    "g.V().where(out().has('k', 1))",
    "g.V().where(out()).has('k', 1)",
    "g.V().hasLabel('a', 'b')",
    "g.V().hasLabel('ab')",
    "g.V().limit(1)",
    "g.V().limit(local, 1)",
    "g.V().range(1, 2)",
    "g.V().tail(1)",
    "g.V().repeat(out()).times(2)",
    "g.V().order().by('k', asc)",
    "g.V().order().by('k', desc)",
    "g.V().choose(values('k')).option(1, out())",
    "g.V().choose(values('k')).option(2, out())",
    "g.withSideEffect('a', 1).V()",
    "g.withSideEffect('a', 2).V()",
    "g.withStrategies(new SubgraphStrategy(vertices: __.has('k', 1))).V()",
    "g.withStrategies(new SubgraphStrategy(vertices: __.has('k', 2))).V()",
    "g.inject(1, 2)",
    "g.inject([1, 2])",
    "g.inject(1.0f)",
    "g.mergeV([(T.label): 'a', k: 1])",
    "g.mergeV([(T.label): 'b', k: 1])",
    "g.mergeV([(T.label): 'a', k: 1]).option(Merge.onMatch, [k: 2])",
    "g.addV('a').property('k', 1)",
    "g.addV('a').property(list, 'k', 1)",
    "g.addV('b').property('k', 1)",
];

#[test]
fn a_key_is_that_of_one_shape() {
    let mut known: HashMap<Vec<u8>, String> = HashMap::new();
    for script in SHAPES {
        let bytecode = parsed(script);
        let (key, literals) = shape(&bytecode);
        let lifted = lift(&bytecode);
        // Both passes take out the same literals, in the same order.
        assert_eq!(lifted.as_ref().map_or(&[][..], |lifted| &lifted.values), literals, "{script}");
        if let Some(lifted) = &lifted {
            let mut of_lifted = Vec::new();
            write_whole(&lifted.bytecode, &mut of_lifted);
            assert_eq!(of_lifted, key, "{script}");
        }
        let shape = lifted.map_or(bytecode, |lifted| lifted.bytecode).to_string();
        if let Some(other) = known.insert(key, shape.clone()) {
            assert_eq!(other, shape, "{script}");
        }
    }
    // `inject(1.0f)` differs from no other by its literal alone.
    assert_eq!(known.len(), SHAPES.len());
}

#[test]
fn a_plan_relies_only_on_what_planning_has_asked() {
    for (one, other) in [
        ("g.V(1)", "g.V('a')"),
        ("g.V().has('k', 1)", "g.V().has('k', 'a')"),
        ("g.V().has('k', within(1, 2, 3))", "g.V().has('k', within(7))"),
        ("g.V().has('k', startingWith('a'))", "g.V().has('k', startingWith('bc'))"),
        ("g.V().limit(2)", "g.V().limit(100000L)"),
        ("g.V().range(20, 30)", "g.V().range(30, 40)"),
        ("g.V().repeat(out()).times(3)", "g.V().repeat(out()).times(5)"),
        ("g.V().where(out().count().is(gt(3)))", "g.V().where(out().count().is(gt(5)))"),
        ("g.V().where(repeat(out()).times(9).has('k', 1))", "g.V().where(repeat(out()).times(20).has('k', 2))"),
        (
            "g.mergeV([k: 1]).option(Merge.onCreate, [k: 1, j: 2])",
            "g.mergeV([k: 3]).option(Merge.onCreate, [k: 3, j: 4])",
        ),
        ("g.inject(1).coin(0.5)", "g.inject('a').coin(1)"),
    ] {
        assert!(serves(one, other) && serves(other, one), "{one} and {other}");
    }
}

#[test]
fn a_plan_does_not_serve_what_would_have_another_plan() {
    for (one, other) in [
        ("g.V().limit(2)", "g.V().limit(-1)"),
        ("g.V().range(2, 3)", "g.V().range(3, 2)"),
        ("g.V().range(2, 3)", "g.V().range(2, -1)"),
        ("g.V().tail(2)", "g.V().tail(-1)"),
        ("g.V().where(out().count().is(gt(0)))", "g.V().where(out().count().is(gt(1)))"),
        ("g.V().where(out().count().is(0))", "g.V().where(out().count().is('0'))"),
        ("g.V().where(repeat(out()).times(3).has('k', 1))", "g.V().where(repeat(out()).times(4).has('k', 1))"),
        ("g.V().where(repeat(out()).times(3).has('k', 1))", "g.V().where(repeat(out()).times(9).has('k', 1))"),
        ("g.mergeV([k: 1]).option(Merge.onCreate, [k: 1])", "g.mergeV([k: 1]).option(Merge.onCreate, [k: 2])"),
    ] {
        assert!(!serves(one, other), "{one} and {other}");
    }
    // Of the others, the second is an error.
    assert!(!serves(
        "g.V().where(repeat(out()).times(9).has('k', 1))",
        "g.V().where(repeat(out()).times(3).has('k', 1))"
    ));
}

#[test]
fn many_literals_are_data() {
    let inject = |count: usize| {
        let values = (0..count).map(|n| Argument::Value(Value::I64(n as i64))).collect();
        Bytecode { source: Vec::new(), steps: vec![Instruction::new("inject", values)] }
    };
    assert_eq!(lift(&inject(LITERALS_MAX)).map(|lifted| lifted.values.len()), Some(LITERALS_MAX));
    assert!(lift(&inject(LITERALS_MAX + 1)).is_none());
    let (one, other) = (shape(&inject(LITERALS_MAX + 1)), shape(&inject(LITERALS_MAX + 2)));
    assert!(one.1.is_empty() && one.0 != other.0);
}
