//! Tables: script in, logical steps or message out.
//!
//! The logical form is written as `Debug` has it, without positions and with `@[…]` for step labels.

use mangrove_graph::{ErrorKind, Value};
use mangrove_gremlin::script::{ParseOptions, Statement, parse_one};
use mangrove_gremlin::{Argument, Bytecode, Instruction, Predicate};

use super::{Compiled, NESTING_MAX, compile};

fn bytecode(script: &str) -> Bytecode {
    match parse_one(script, &ParseOptions::default()) {
        Ok(Statement::Traversal { bytecode, .. }) => bytecode,
        other => panic!("{script}: {other:?}"),
    }
}

fn compiled(script: &str) -> Compiled {
    compile(&bytecode(script)).unwrap_or_else(|error| panic!("{script}: {error}"))
}

fn compact(script: &str) -> String {
    let mut rest = &*format!("{:?}", compiled(script).traversal.steps);
    let mut out = String::new();
    // A step node ends in `, labels: […], position: Some(Position { … }) }`; nothing else has a position.
    while let Some(at) = rest.find(", position: ") {
        let node = &rest[..at];
        let labels = node.rfind(", labels: ").expect("labels stand before the position");
        out.push_str(&node[..labels]);
        let labels = &node[labels + ", labels: ".len()..];
        if labels != "[]" {
            out.push('@');
            out.push_str(labels);
        }
        let position = &rest[at..];
        let end = if position.starts_with(", position: None") { 1 } else { 2 };
        let close = position.match_indices('}').nth(end - 1).expect("a node is closed").0;
        rest = &position[close + 1..];
    }
    out.push_str(rest);
    out.replace("StepNode { step: ", "")
}

#[track_caller]
fn check(script: &str, expected: &str) {
    assert_eq!(compact(script), expected, "{script}");
}

/// Two ways to write one traversal.
#[track_caller]
fn same(a: &str, b: &str) {
    assert_eq!(compiled(a), compiled(b), "{a} and {b}");
}

#[track_caller]
fn fails(script: &str, message: &str) {
    let error = compile(&bytecode(script)).expect_err(script);
    assert_eq!(error.message(), message, "{script}");
    assert!(
        matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::InvalidArgument),
        "{script}: {:?}",
        error.kind()
    );
}

fn call(name: &str, arguments: Vec<Argument>) -> Instruction {
    Instruction::new(name, arguments)
}

fn wire(steps: Vec<Instruction>) -> Bytecode {
    Bytecode { source: Vec::new(), steps }
}

fn text(text: &str) -> Argument {
    Argument::Value(Value::string(text))
}

#[track_caller]
fn wire_fails(steps: Vec<Instruction>, message: &str) {
    assert_eq!(compile(&wire(steps)).expect_err(message).message(), message);
}

#[test]
fn sources_take_ids_in_every_form() {
    check("g.V()", "[Vertices { ids: None, conditions: [] }]");
    check("g.V([])", "[Vertices { ids: None, conditions: [] }]");
    check("g.V(null)", "[Vertices { ids: Some([]), conditions: [] }]");
    same("g.V([1, 'a'], 2L)", "g.V(1, 'a', 2L)");
    check("g.E(x)", "[Edges { ids: Some([Parameter(\"x\")]), conditions: [] }]");
    check("g.inject(1, null)", "[Inject([Literal(I32(1)), Literal(Null)])]");
    let element = wire(vec![call("V", vec![Argument::Vertex(Value::I64(7))])]);
    assert_eq!(compile(&element).unwrap(), compiled("g.V(7L)"));
    fails("g.V(true)", "`V` at line 1, column 3: an id is an integer, a string or a UUID, not true");
}

#[test]
fn property_folds_into_the_element_being_made() {
    check(
        "g.addV('a').property(T.id, 1).property(list, 'k', 2, 'm', 3)",
        "[AddVertex { label: Operand(Literal(String(\"a\"))), properties: [PropertyArgument { cardinality: Some(List), \
         key: \"k\", key_from: None, value: Operand(Literal(I32(2))), meta: [(\"m\", Operand(Literal(I32(3))))] }], \
         id: Some(Operand(Literal(I32(1)))) }]",
    );
    same("g.addV().property(T.label, 'b')", "g.addV('b')");
    same("g.addV()", "g.addV('vertex')");
    same("g.addV().property(['a': 1, 'b': list(2)])", "g.addV().property('a', 1).property(list, 'b', 2)");
    same("g.addE('x').from('a').property('w', 1).to('b')", "g.addE('x').from('a').to('b').property('w', 1)");
    same("g.V().property(['a': 1, 'b': 2])", "g.V().property('a', 1).property('b', 2)");
    check("g.V().property([:])", "[Vertices { ids: None, conditions: [] }, Identity]");
    check(
        "g.V(1).as('a').addE('x').to(__.V(2))",
        "[Vertices { ids: Some([Literal(I32(1))]), conditions: [] }@[\"a\"], AddEdge { label: \
         Operand(Literal(String(\"x\"))), from: None, to: Some(Traversal(Traversal { steps: [Vertices { ids: \
         Some([Literal(I32(2))]), conditions: [] }] })), properties: [], id: None }]",
    );
    fails(
        "g.addE('x').from('a')",
        "`addE` at line 1, column 3: as the first step it needs both ends: addE(…).from(…).to(…)",
    );
    fails(
        "g.V().property(T.id, 1)",
        "`property` at line 1, column 7: the id and the label of an element cannot change; T.id and T.label belong \
         directly behind addV() or addE()",
    );
    fails(
        "g.V().property('a', 1, 'b')",
        "`property` at line 1, column 7: takes a key and a value (with keys and values of meta-properties behind), or \
         a map; a cardinality may stand in front, not the string \"a\", the int 1 and the string \"b\"",
    );
    fails("g.addV(null)", "`addV` at line 1, column 3: a label is a string or a traversal that gives one, not null");
    fails(
        "g.addV(1).property('a', 1)",
        "`addV` at line 1, column 3: a label is a string or a traversal that gives one, not the int 1",
    );
    fails(
        "g.addV('a').property('k', [T.id])",
        "`property` at line 1, column 13: a list cannot be stored; a property holds scalars and collections of them",
    );
    fails(
        "g.addV('a').property(T.id, [1])",
        "`property` at line 1, column 13: an id is an integer, a string or a UUID, not a list",
    );
}

#[test]
fn has_in_all_its_forms() {
    let v = "[Vertices { ids: None, conditions: [] }, ";
    check("g.V().has('k')", &format!("{v}Has([HasKey(\"k\")])]"));
    check("g.V().has('k', null)", &format!("{v}Has([Property(\"k\", Compare(Eq, Literal(Null)))])]"));
    check("g.V().has('k', x)", &format!("{v}Has([Property(\"k\", Compare(Eq, Parameter(\"x\")))])]"));
    check(
        "g.V().has('l', 'k', gt(1))",
        &format!("{v}Has([LabelIn([\"l\"]), Property(\"k\", Compare(Gt, Literal(I32(1))))])]"),
    );
    check(
        "g.V().has('k', between(1, 2).or(P.not(containing('x'))))",
        &format!(
            "{v}Has([Property(\"k\", Or([And([Compare(Gte, Literal(I32(1))), Compare(Lt, Literal(I32(2)))]), \
             Not(Text(Containing, Literal(String(\"x\"))))]))])]"
        ),
    );
    same("g.V().has(T.label, 'a')", "g.V().hasLabel('a')");
    same("g.V().hasLabel(within('a', 'b'))", "g.V().hasLabel('a', 'b')");
    check("g.V().hasLabel(null)", &format!("{v}Has([LabelIn([])])]"));
    check("g.V().hasLabel(neq('a'))", &format!("{v}Has([Label(Compare(Neq, Literal(String(\"a\"))))])]"));
    check("g.V().hasId(1)", &format!("{v}Has([Id(Compare(Eq, Literal(I32(1))))])]"));
    same("g.V().hasId([1, 2], 'c')", "g.V().hasId(within(1, 2, 'c'))");
    same("g.V().hasId(null)", "g.V().hasId([])");
    same("g.V().has(T.id, 1)", "g.V().hasId(1)");
    check("g.V().hasNot('k')", &format!("{v}Has([HasNot(\"k\")])]"));
    check("g.V().hasNot(null)", &format!("{v}Identity]"));
    check("g.V().has(null, 1)", &format!("{v}Has([LabelIn([])])]"));
    check(
        "g.V().properties().hasKey('a', 'b').hasValue(gt(1))",
        &format!(
            "{v}Properties([]), Has([PropertyKey(Within([Literal(String(\"a\")), Literal(String(\"b\"))]))]), \
             Has([PropertyValue(Compare(Gt, Literal(I32(1))))])]"
        ),
    );
    fails(
        "g.V().has(x, 1)",
        "`has` at line 1, column 7: a property key must be known when the traversal is compiled, but `x` is a parameter \
         without a value; write the string or bind the parameter first",
    );
    fails("g.V().hasLabel(1)", "`hasLabel` at line 1, column 7: a label is a string, not the int 1");
    fails("g.V().hasLabel()", "`hasLabel` at line 1, column 7: takes one or more labels, or a predicate, not nothing");
    fails(
        "g.V().has('k', typeOf('Wombat'))",
        "`has` at line 1, column 7: typeOf() takes a type, such as GType.STRING; the string \"Wombat\" is none",
    );
    fails("g.V().has('k', containing(1))", "`has` at line 1, column 7: a text predicate takes a string, not the int 1");
}

#[test]
fn where_takes_predicates_over_labels_and_patterns() {
    let v = "[Vertices { ids: None, conditions: [] }@[\"a\"], ";
    check(
        "g.V().as('a').where('a', gt('b').and(neq('c'))).by('age')",
        &format!(
            "{v}WherePredicate {{ start: Some(\"a\"), test: And([Compare(Gt, \"b\"), Compare(Neq, \"c\")]), by: \
             [Key(\"age\")] }}]"
        ),
    );
    same(
        "g.V().as('a').where(__.as('a').out().as('b'))",
        "g.V().as('a').where(select(last, 'a').out().where(eq('b')))",
    );
    same("g.V().where(out().as('b'))", "g.V().where(out().where(eq('b')))");
    same("g.V().where(__.as('a'))", "g.V().where(select(last, 'a'))");
    same(
        "g.V().where(and(__.as('a').out().as('b'), not(__.in().as('c'))))",
        "g.V().where(and(select(last, 'a').out().where(eq('b')), not(__.in().where(eq('c')))))",
    );
    same(
        "g.V().where(__.as('a').out().as('b').or().in().as('c'))",
        "g.V().where(or(select(last, 'a').out().where(eq('b')), __.in().where(eq('c'))))",
    );
    // Only where() has patterns: elsewhere a label at the head labels what enters.
    check(
        "g.V().filter(__.as('a').out())",
        "[Vertices { ids: None, conditions: [] }, FilterTraversal(All, [Traversal { steps: [Identity@[\"a\"], Expand { \
         direction: Out, labels: [], to_edges: false }] }])]",
    );
    fails(
        "g.V().where(gt(1))",
        "`where` at line 1, column 7: a predicate in where() compares with the values of step labels, so its operand is \
         a label's name, not the int 1; test a value with is(…) or has(…)",
    );
    fails(
        "g.V().where(out().as('a', 'b'))",
        "`where` at line 1, column 7: the end step of a where()-traversal can only have one label, not 2; name one in \
         as(…)",
    );
}

#[test]
fn infix_connectives_join_with_and_binding_tighter() {
    same(
        "g.V().has('a').or().has('b').and().has('c').or().has('d')",
        "g.V().or(has('a'), and(has('b'), has('c')), has('d'))",
    );
    same("g.V().as('x').has('a').and().has('b')", "g.V().as('x').and(has('a'), has('b'))");
    same("g.V().where(out().or().in())", "g.V().where(or(out(), __.in()))");
    // A source without the strategy that joins takes them as they stand.
    same(
        "g.withoutStrategies(ConnectiveStrategy).V().has('a').or().where(out().and().in())",
        "g.V().has('a').discard().where(out().identity().in())",
    );
    same(
        "g.withoutStrategies(ConnectiveStrategy).withStrategies(ConnectiveStrategy).V().has('a').or().has('b')",
        "g.V().or(has('a'), has('b'))",
    );
    check(
        "g.V().not(out())",
        "[Vertices { ids: None, conditions: [] }, FilterTraversal(None, [Traversal { steps: \
         [Expand { direction: Out, labels: [], to_edges: false }] }])]",
    );
    // A chain of connectives is flat however long it is.
    let chain = "g.V()".to_string() + &".has('a').or()".repeat(5_000) + ".has('b')";
    assert!(compile(&bytecode(&chain)).is_ok());
}

#[test]
fn counts_of_every_width_become_ranges() {
    let v = "[Vertices { ids: None, conditions: [] }, ";
    check("g.V().limit(3b)", &format!("{v}Range {{ low: Literal(I64(0)), high: Some(Literal(I64(3))) }}]"));
    check("g.V().limit(0n)", &format!("{v}Range {{ low: Literal(I64(0)), high: Some(Literal(I64(0))) }}]"));
    check("g.V().range(2, -1)", &format!("{v}Range {{ low: Literal(I64(2)), high: None }}]"));
    check("g.V().limit(x)", &format!("{v}Range {{ low: Literal(I64(0)), high: Some(Parameter(\"x\")) }}]"));
    same("g.V().skip(2)", "g.V().range(2, -1)");
    same("g.V().limit(-1)", "g.V().range(-1, -1)");
    same("g.V().tail()", "g.V().tail(1)");
    check(
        "g.V().fold().range(local, 1, 2).tail(Scope.local, 1)",
        &format!(
            "{v}Reduce(Fold), Local(Range {{ low: Literal(I64(1)), high: Some(Literal(I64(2))) }}), \
             Local(Tail(Literal(I64(1))))]"
        ),
    );
    fails("g.V().range(3, 1)", "`range` at line 1, column 7: Not a legal range: [3, 1]");
    fails("g.V().limit(-2)", "`limit` at line 1, column 7: Not a legal range: [0, -2]");
    fails("g.V().limit('a')", "`limit` at line 1, column 7: a 64-bit integer is needed, not the string \"a\"");
    fails("g.V().tail(-1)", "`tail` at line 1, column 7: the number must not be negative, but is the int -1");
    fails(
        "g.V().limit(99999999999999999999)",
        "`limit` at line 1, column 7: a 64-bit integer is needed, not the bigint 99999999999999999999",
    );
}

#[test]
fn by_in_all_its_forms() {
    check(
        "g.V().order().by().by(desc).by('k').by('k', desc).by(T.id).by(out().count(), shuffle)",
        "[Vertices { ids: None, conditions: [] }, Order([OrderBy { by: Identity, order: Asc }, OrderBy { by: Identity, \
         order: Desc }, OrderBy { by: Key(\"k\"), order: Asc }, OrderBy { by: Key(\"k\"), order: Desc }, OrderBy { by: \
         Token(Id), order: Asc }, OrderBy { by: Traversal(Traversal { steps: [Expand { direction: Out, labels: [], \
         to_edges: false }, Reduce(Count)] }), order: Shuffle }])]",
    );
    same("g.V().order()", "g.V().order().by()");
    check(
        "g.V().group('m').by('k').by(keys)",
        "[Vertices { ids: None, conditions: [] }, Group { side_effect: Some(\"m\"), key: Key(\"k\"), value: \
         Some(Column(Keys)) }]",
    );
    fails(
        "g.V().group().by('a').by('b').by('c')",
        "`by` at line 1, column 31: The key and value traversals for group()-step have already been set; group() takes \
         at most two by()",
    );
    fails(
        "g.V().dedup().by('a').by('b')",
        "`by` at line 1, column 23: Dedup step can only have one by modulator; remove this one",
    );
    fails(
        "g.V().aggregate('x').by('a').by('b')",
        "`by` at line 1, column 30: Aggregate step can only have one by modulator; remove this one",
    );
    fails(
        "g.V().groupCount().by('a').by('b')",
        "`by` at line 1, column 28: GroupCount step can only have one by modulator; remove this one",
    );
    fails(
        "g.V().count().by('a')",
        "`by` at line 1, column 15: does not modulate `count`; by() belongs behind order, group, groupCount, dedup, \
         aggregate, path, simplePath, cyclicPath, project, select, valueMap or where(P)",
    );
    fails("g.V().group().by(desc)", "`by` at line 1, column 15: Order.desc belongs in a by() of order()");
    fails(
        "g.V().group().by(gt(1))",
        "`by` at line 1, column 15: takes nothing, a key, a token (T.id), a column (keys, values) or a traversal, not a \
         predicate",
    );
}

#[test]
fn repeat_takes_its_modulators_from_both_sides() {
    check(
        "g.V().until(has('k')).emit().repeat('r', out()).as('z')",
        "[Vertices { ids: None, conditions: [] }, Repeat(Repeat { name: Some(\"r\"), body: Traversal { steps: [Expand { \
         direction: Out, labels: [], to_edges: false }] }, until: Some(Traversal(Traversal { steps: \
         [Has([HasKey(\"k\")])] })), until_first: true, emit: Some(Always), emit_first: true })@[\"z\"]]",
    );
    check(
        "g.V().repeat(identity()).times(x).emit(gt(1))",
        "[Vertices { ids: None, conditions: [] }, Repeat(Repeat { name: None, body: Traversal { steps: [Identity] }, \
         until: Some(Times(Parameter(\"x\"))), until_first: false, emit: Some(Test(Compare(Gt, Literal(I32(1))))), \
         emit_first: false })]",
    );
    // Between two bodies, a modulator belongs to the loop before it.
    let two = compact("g.V().repeat(out()).times(2).repeat(__.in()).emit()");
    assert_eq!((two.matches("Times(").count(), two.matches("Some(Always)").count()), (1, 1));
    assert!(two.find("Times(") < two.find("direction: In"), "{two}");
    let undefined = "The repeat()-traversal was not defined; add repeat(…) next to it";
    fails("g.V().emit()", &format!("`emit` at line 1, column 7: {undefined}"));
    fails("g.V().until(out()).has('k')", &format!("`until` at line 1, column 7: {undefined}"));
    fails("g.V().times(2).out()", &format!("`times` at line 1, column 7: {undefined}"));
    fails(
        "g.V().repeat(out()).emit().emit()",
        "`emit` at line 1, column 28: The repeat()-step already has its emit()-modulator declared; \
         keep one of them",
    );
    fails(
        "g.V().repeat(out()).until(has('k')).times(2)",
        "`times` at line 1, column 37: The repeat()-step already has its until()-modulator declared; \
         times(n) is one too: write until(or(…, loops().is(n))) instead of both",
    );
    let refused = "The parent of inject()-step can not be repeat()-step; move it before or behind the loop";
    fails("g.V().repeat(inject(1)).times(2)", &format!("`inject` at line 1, column 14: {refused}"));
    fails("g.V().repeat(union(out(), inject(1))).times(2)", &format!("`inject` at line 1, column 27: {refused}"));
    let refused = "The parent of a reducing/supplying barrier can not be repeat()-step; nest it in map(…) or local(…), or \
                   move it behind the loop";
    for step in ["cap('x')", "count()", "fold()", "group()", "groupCount()"] {
        let name = step.split('(').next().unwrap();
        fails(&format!("g.V().repeat({step}).times(2)"), &format!("`{name}` at line 1, column 14: {refused}"));
    }
    compiled("g.V().repeat(groupCount('x').map(out().count())).times(2)");
}

#[test]
fn choose_decides_by_test_existence_or_value() {
    check(
        "g.V().values('a').choose(gt(1), constant('x'))",
        "[Vertices { ids: None, conditions: [] }, Values([\"a\"]), Choose(Choose { on: Test(Compare(Gt, \
         Literal(I32(1)))), options: [(True, Traversal { steps: [Constant(Literal(String(\"x\")))] })] })]",
    );
    check(
        "g.V().choose(T.label).option('a', id()).option(gt(1), label()).option(Pick.none, key()).option(unproductive, value())",
        "[Vertices { ids: None, conditions: [] }, Choose(Choose { on: Value(Traversal { steps: [Label] }), options: \
         [(Value(Literal(String(\"a\"))), Traversal { steps: [Id] }), (Test(Compare(Gt, Literal(I32(1)))), Traversal { \
         steps: [Label] }), (None, Traversal { steps: [Key] }), (Unproductive, Traversal { steps: [PropertyValue] })] })]",
    );
    check(
        "g.V().choose(out(), id(), label())",
        "[Vertices { ids: None, conditions: [] }, Choose(Choose { on: Exists(Traversal { steps: [Expand { direction: \
         Out, labels: [], to_edges: false }] }), options: [(True, Traversal { steps: [Id] }), (False, Traversal { steps: \
         [Label] })] })]",
    );
    fails(
        "g.V().choose(label()).option(Pick.any, id())",
        "`option` at line 1, column 23: choose() takes one option only, so not Pick.any; use union(…)",
    );
    fails(
        "g.V().choose(label()).option(id())",
        "`option` at line 1, column 23: choose() has no option without a value to match; use option(value, …)",
    );
    fails(
        "g.V().choose(out(), id(), id()).option(1, id())",
        "`option` at line 1, column 33: does not modulate `choose`; option() belongs behind choose with one argument",
    );
}

#[test]
fn maps_and_barriers() {
    let v = "[Vertices { ids: None, conditions: [] }, ";
    check(
        "g.V().valueMap(true, 'a').by(unfold())",
        &format!(
            "{v}ValueMap {{ keys: [\"a\"], tokens: MapTokens {{ ids: true, labels: true }}, by: Some(Traversal(Traversal {{ steps: [Unfold] }})) }}]"
        ),
    );
    same("g.V().valueMap().with(WithOptions.tokens)", "g.V().valueMap(true)");
    same("g.V().valueMap().with(WithOptions.tokens, WithOptions.none)", "g.V().valueMap()");
    same("g.V().valueMap().with(WithOptions.tokens, WithOptions.all)", "g.V().valueMap(true)");
    check(
        "g.V().select(all, 'a', 'b').by('k')",
        &format!("{v}Select {{ pop: Some(All), labels: [\"a\", \"b\"], by: [Key(\"k\")] }}]"),
    );
    check("g.V().select(values).unfold()", &format!("{v}SelectColumn(Values), Unfold]"));
    check(
        "g.V().fold().count(local).dedup(local).order(local)",
        &format!(
            "{v}Reduce(Fold), Local(Reduce(Count)), Local(Dedup([])), Local(Order([OrderBy {{ by: Identity, order: Asc }}]))]"
        ),
    );
    check(
        "g.V().aggregate('x').cap('x', 'y')",
        &format!("{v}Aggregate {{ name: \"x\", by: Identity }}, Cap([\"x\", \"y\"])]"),
    );
    check(
        "g.V().map(id()).flatMap(id()).local(id()).sideEffect(id())",
        &format!(
            "{v}Map {{ traversal: Traversal {{ steps: [Id] }}, first: true }}, Map {{ traversal: Traversal {{ steps: [Id] }}, \
         first: false }}, LocalTraversal(Traversal {{ steps: [Id] }}), SideEffect(Traversal {{ steps: [Id] }})]"
        ),
    );
    same("g.V().filter(gt(1))", "g.V().is(gt(1))");
    // As 3.7 has them.
    same("g.V().aggregate(global, 'x').by('a')", "g.V().aggregate('x').by('a')");
    same("g.V().aggregate(local, 'x').by('a')", "g.V().local(aggregate('x').by('a'))");
    same("g.V().store('x')", "g.V().local(aggregate('x'))");
    same("g.V().has('a', is(gt(1)).count())", "g.V().filter(values('a').is(gt(1)).count())");
    same("g.V().has(T.label, is('a'))", "g.V().filter(label().is('a'))");
    same("g.V().none()", "g.V().discard()");
    same("g.V().toE(Direction.IN, 'a').toV(OUT)", "g.V().inE('a').outV()");
    same("g.V().out(null)", "g.V().discard()");
    same("g.V().out(null, 'a')", "g.V().out('a')");
    fails(
        "g.V().project('a', 'a')",
        "`project` at line 1, column 7: keys must be unique in project(), but \"a\" is there twice",
    );
    fails("g.V().count('a')", "`count` at line 1, column 7: takes nothing or a scope, not the string \"a\"");
    fails("g.V().id(1)", "`id` at line 1, column 7: takes no arguments, not the int 1");
}

#[test]
fn what_is_not_supported_is_named() {
    fails("g.V().pageRank()", "`pageRank` at line 1, column 7: the step is not supported yet");
    fails(
        "g.union(out()).repeat(out().count(local).from('a')).times(1)",
        "`from` at line 1, column 42: does not modulate `count`; from() and to() belong behind addE, path, simplePath or \
         cyclicPath",
    );
    // Bytecode has no positions: steps are numbered, and nested steps say in what.
    wire_fails(
        vec![call("V", vec![]), call("hasLable", vec![text("a")])],
        "`hasLable` (step 2): Gremlin has no step of this name; did you mean `hasLabel`?",
    );
    let inner = wire(vec![call("out", vec![]), call("has", vec![])]);
    wire_fails(
        vec![call("V", vec![]), call("where", vec![Argument::Traversal(inner)])],
        "`has` (step 2 in `where`, step 2): takes a key, a key and a value or predicate, or a label in front of these, \
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
        "`as` (step 1): there is no step before it; as() belongs behind the step it labels",
    );
}

#[test]
fn the_source_configures_the_traversal() {
    let made = compiled(
        "g.withPath().with('evaluationTimeout', 500L).withSideEffect('x', [1]).withStrategies(ReadOnlyStrategy, \
         new CountStrategy()).V()",
    );
    let configuration = made.configuration;
    assert!(configuration.path && configuration.read_only);
    assert_eq!(configuration.timeout_millis, Some(500));
    assert_eq!(configuration.side_effects.len(), 1);
    let options = compiled("g.withStrategies(new OptionsStrategy(evaluationTimeout: 7, other: 'x')).V()");
    assert_eq!(options.configuration.timeout_millis, Some(7));
    assert!(
        !compiled("g.withStrategies(ReadOnlyStrategy).withoutStrategies(ReadOnlyStrategy).V()").configuration.read_only
    );
    fails(
        "g.withStrategies(ReadOnlyStrategy).V().where(sideEffect(addV()))",
        "The provided traversal has a mutating step and thus is not read only: `addV` at line 1, column 57; use a source \
         without ReadOnlyStrategy to write",
    );
    let carried = compiled("g.withBulk(false).withSack(1, sum).withStrategies(new SeedStrategy(seed: 1)).V()");
    assert!(carried.configuration.one_bulk);
    assert_eq!(carried.configuration.seed, Some(1));
    assert!(carried.configuration.sack.is_some_and(|sack| sack.merge.is_some()));
    fails(
        "g.withStrategies(new EventStrategy()).V()",
        "`withStrategies` at line 1, column 3: EventStrategy changes what a traversal means and is not supported yet",
    );
    fails(
        "g.with('evaluationTimeout', -1).V()",
        "`with` at line 1, column 3: evaluationTimeout is a number of milliseconds from 0, not the int -1",
    );
    let transaction = Bytecode { source: vec![call("tx", vec![text("commit")])], steps: vec![] };
    assert_eq!(
        compile(&transaction).unwrap_err().message(),
        "`tx` (step 1): a transaction command is not a traversal; send it to the server on its own"
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
    // The stack holds for every kind of nesting that is allowed.
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

/// Whatever is given to whatever step, in whatever place: a step or an error, never a panic.
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
    let names = super::known::supported().chain(["mergeV", "nonsense", ""]);
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

#[test]
fn functions_check_their_arguments() {
    for (script, error) in [
        ("g.inject('a').substring('b')", "`substring` at line 1, column 15: a number is needed, not the string \"b\""),
        ("g.inject('a').replace('b')", "`replace` at line 1, column 15: takes two arguments, not the string \"b\""),
        ("g.inject('a').concat(1)", "`concat` at line 1, column 15: takes strings and traversals, not the int 1"),
        (
            "g.inject('a').dateAdd(1, 1)",
            "`dateAdd` at line 1, column 15: takes a unit (DT.day) and a number, not the int 1 and the int 1",
        ),
        (
            "g.inject(1).asNumber(GType.VERTEX)",
            "`asNumber` at line 1, column 13: asNumber() requires a numeric type token, got VERTEX",
        ),
        (
            "g.V().fold().merge(2)",
            "`merge` at line 1, column 14: merge step can only take an array or an Iterable as an argument, encountered the int 2",
        ),
        (
            "g.V().fold().combine(null)",
            "`combine` at line 1, column 14: Argument provided for combine step can't be null",
        ),
        (
            "g.inject(1).math('1 +')",
            "`math` at line 1, column 13: \"1 +\" is no expression: it ends where a number, a variable or a function is expected",
        ),
        ("g.V().fold().all(1)", "`all` at line 1, column 14: takes a predicate, not the int 1"),
    ] {
        fails(script, error);
    }
    same("g.V().none()", "g.V().discard()");
}

#[test]
fn merges_check_their_maps() {
    for (script, error) in [
        ("g.mergeV(1)", "`mergeV` at line 1, column 3: a map or a traversal that gives one is needed, not the int 1"),
        (
            "g.mergeV([(T.key): 1])",
            "`mergeV` at line 1, column 3: the keys of this map are T.id, T.label and property keys, not a token",
        ),
        (
            "g.mergeV([(T.label): 'a']).option(onCreate, [(T.label): 'b'])",
            "`mergeV` at line 1, column 3: option(onCreate) cannot override values from merge() argument: T.label differs",
        ),
        (
            "g.mergeV([a: 1]).option(outV, [b: 1])",
            "`option` at line 1, column 18: mergeV() has no option Merge.outV; mergeE() has",
        ),
        (
            "g.mergeE([:]).option(onMatch, [(T.id): 1])",
            "`option` at line 1, column 15: the keys of this map are property keys, not a token",
        ),
    ] {
        fails(script, error);
    }
}

#[test]
fn a_match_is_steps_labels_and_filters() {
    same(
        "g.V().match(as('a').out().as('b'), as('b').in().as('a'))",
        "g.V().as('a').select(last, 'a').out().as('b').select(last, 'b').in().where(eq('a')).select(last, 'a', 'b')",
    );
    // What binds nothing comes first; what reads the whole stream is kept apart for each traverser.
    same(
        "g.V().match(as('a').out().count().as('b'), as('a').has('x'))",
        "g.V().as('a').select(last, 'a').has('x').select(last, 'a').flatMap(out().count()).as('b').select(last, 'a', 'b')",
    );
    same("g.V().as('a').match(as('a').has('x'))", "g.V().as('a').select(last, 'a').has('x').select(last, 'a', 'a')");
    fails(
        "g.V().match(out().as('b'))",
        "`match` at line 1, column 7: a pattern begins with as(…) of one label, or is and(), or(), not() or where()",
    );
    fails(
        "g.V().match(as('a').out().as('b'), as('c').out().as('d'))",
        "`match` at line 1, column 7: no order of the patterns binds every variable before it is read; `c` is never bound",
    );
}

#[test]
fn a_subgraph_stands_behind_every_step_that_comes_to_elements() {
    let with = |strategy: &str, script: &str| compiled(&format!("g.withStrategies({strategy}).{script}")).traversal;
    let vertices = "new SubgraphStrategy(vertices: has('x'))";
    assert_eq!(with(vertices, "V().out()"), compiled("g.V().where(has('x')).out().where(has('x'))").traversal);
    assert_eq!(
        with(vertices, "V().map(inE())"),
        compiled("g.V().where(has('x')).map(inE().and(outV().has('x'), inV().has('x')))").traversal
    );
    let edges = "new SubgraphStrategy(edges: has('y'))";
    assert_eq!(with(edges, "V().out('a')"), compiled("g.V().flatMap(outE('a').where(has('y')).inV())").traversal);
    let partition = "new PartitionStrategy(partitionKey: 'p', writePartition: 'a', readPartitions: ['a', 'b'])";
    assert_eq!(with(partition, "addV('x')"), compiled("g.addV('x').property('p', 'a')").traversal);
    fails(
        "g.withStrategies(new EdgeLabelVerificationStrategy(throwException: true)).V().out()",
        "The provided traversal contains a vertex step without any specified edge label at line 1, column 79; name the \
         labels",
    );
    fails(
        "g.withStrategies(new ReservedKeysVerificationStrategy(throwException: true)).addV().property('id', 1)",
        "The provided traversal is setting a property key to a reserved word: id at line 1, column 78",
    );
}
