//! Refused traversals, and the messages of the errors.

use super::*;

#[test]
fn what_is_not_supported_is_named() {
    fails(
        "g.V().pageRank()",
        "`pageRank` at line 1, column 7: VertexComputing steps must be executed with a GraphComputer; begin with \
         g.withComputer()",
    );
    fails(
        "g.union(out()).repeat(out().count(local).from('a')).times(1)",
        "`from` at line 1, column 42: does not modulate `count`; from() and to() belong after addE, path, simplePath or \
         cyclicPath",
    );
    // Bytecode has no positions: steps are numbered, and the message names the step around a nested one.
    wire_fails(
        vec![call("V", vec![]), call("hasLable", vec![text("a")])],
        "`hasLable` (step 2): Gremlin has no step of this name; did you mean `hasLabel`?",
    );
    let inner = wire(vec![call("out", vec![]), call("has", vec![])]);
    wire_fails(
        vec![call("V", vec![]), call("where", vec![Argument::Traversal(inner)])],
        "`has` (step 2 in `where`, step 2): takes a key, a key and a value or predicate, or a label before these, \
         not nothing",
    );
    wire_fails(
        vec![call("out", vec![])],
        "`out` (step 1): a traversal cannot start with this step; start it with V(), E(), addV(), addE(), mergeV(), mergeE(), call(), inject(), \
         union() or io()",
    );
    wire_fails(
        vec![],
        "the traversal has no steps; start it with V(), E(), addV(), addE(), mergeV(), mergeE(), call(), inject(), union() or io()",
    );
    wire_fails(
        vec![call("as", vec![text("a")])],
        "`as` (step 1): there is no step before it; as() belongs after the step it labels",
    );
}

#[test]
fn nesting_is_bounded() {
    let nested = |depth: usize| {
        let mut inner = wire(vec![call("out", vec![])]);
        for _ in 1..depth {
            inner = wire(vec![call("where", vec![Argument::Traversal(inner)])]);
        }
        wire(vec![call("V", vec![]), call("where", vec![Argument::Traversal(inner)])])
    };
    assert!(compile(&nested(NESTING_MAX)).is_ok());
    // The stack is large enough for every kind of nesting that is allowed.
    for name in ["map", "union", "coalesce", "optional", "repeat", "not", "choose", "by", "until", "option", "property"]
    {
        let mut inner = wire(vec![call("out", vec![])]);
        for _ in 0..NESTING_MAX {
            let nested = Argument::Traversal(inner);
            inner = wire(match name {
                "by" => vec![call("group", vec![]), call("by", vec![nested])],
                "until" => vec![call("until", vec![nested]), call("repeat", vec![Argument::Traversal(wire(vec![]))])],
                "option" => {
                    let on = Argument::Traversal(wire(vec![call("id", vec![])]));
                    vec![call("choose", vec![on]), call("option", vec![text("a"), nested])]
                }
                "property" => vec![call("addV", vec![]), call("property", vec![text("a"), nested])],
                name => vec![call(name, vec![nested])],
            });
        }
        inner.steps.insert(0, call("V", vec![]));
        assert!(compile(&inner).is_ok(), "{name}");
    }

    let message = "`where`: traversals, predicates and lists nest deeper than 64; split the traversal";
    assert_eq!(compile(&nested(NESTING_MAX + 1)).unwrap_err().message(), message);
    assert_eq!(compile(&nested(150)).unwrap_err().message(), message);

    let mut predicate = Predicate::Within(vec![]);
    let mut list = Argument::List(vec![]);
    for _ in 0..150 {
        predicate = Predicate::Not(Box::new(predicate));
        list = Argument::List(vec![list]);
    }
    let message = "`is`: traversals, predicates and lists nest deeper than 64; split the traversal";
    for argument in [Argument::Predicate(predicate), list] {
        let steps = vec![call("V", vec![]), call("is", vec![argument])];
        assert_eq!(compile(&wire(steps)).unwrap_err().message(), message);
    }
}

/// Any arguments of any step in any position give a step or an error, never a panic.
#[test]
fn no_instruction_panics() {
    let arguments = [
        vec![],
        vec![Argument::Value(Value::Null)],
        vec![text("a")],
        vec![text("a"), Argument::Value(Value::I32(1))],
        vec![Argument::Value(Value::Direction(mangrove_graph::Direction::Out))],
        vec![Argument::Value(Value::Token(mangrove_graph::Token::Id)), text("a"), text("b")],
        vec![Argument::Scope(mangrove_gremlin::Scope::Local), Argument::Value(Value::I64(-1))],
        vec![Argument::Traversal(wire(vec![call("as", vec![text("a")])]))],
        vec![Argument::Traversal(wire(vec![])), Argument::Traversal(wire(vec![call("and", vec![])]))],
        vec![Argument::Predicate(Predicate::Within(vec![Argument::Parameter("p".into())]))],
        vec![Argument::Map(vec![(Argument::Parameter("p".into()), text("a"))])],
        vec![Argument::Cardinality(mangrove_gremlin::Cardinality::Set), text("a"), text("b")],
    ];
    let names = super::super::known::supported().chain(["mergeV", "nonsense", ""]);
    for name in names.collect::<Vec<_>>() {
        for given in &arguments {
            let step = || call(name, given.clone());
            let _ = compile(&wire(vec![step()]));
            let _ = compile(&wire(vec![call("V", vec![]), step(), step()]));
            let inner = wire(vec![step(), call("as", vec![text("b")])]);
            let _ = compile(&wire(vec![call("V", vec![]), call("where", vec![Argument::Traversal(inner)])]));
            let _ = compile(&Bytecode { source: vec![step()], steps: vec![step(), call("by", given.clone())] });
        }
    }
}
