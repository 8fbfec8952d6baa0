//! Filters: `has`, `where`, connectives, ranges.

use super::*;

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
             [Key(\"age\")], lookup: Scope(None) }}]"
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
    // Only where() has patterns: elsewhere a label at the head labels the object that enters.
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
    // A source without the strategy that joins filters keeps them as they are.
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
    // A chain of connectives is flat, however long it is.
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
