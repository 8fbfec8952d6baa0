//! Branches and loops with their modulators, and `match`.

use super::*;

#[test]
fn repeat_takes_its_modulators_from_both_sides() {
    check(
        "g.V().until(has('k')).emit().repeat('r', out()).as('z')",
        "[Vertices { ids: None, conditions: [] }, Repeat(Repeat { name: Some(\"r\"), body: Traversal { steps: [Expand { \
         direction: Out, labels: [], to_edges: false }] }, until: Some(Traversal(Traversal { steps: \
         [Has([HasKey(\"k\")])] })), until_first: true, emit: Some(Always), emit_first: true, search: Unknown })@[\"z\"]]",
    );
    check(
        "g.V().repeat(identity()).times(x).emit(gt(1))",
        "[Vertices { ids: None, conditions: [] }, Repeat(Repeat { name: None, body: Traversal { steps: [Identity] }, \
         until: Some(Times(Parameter(\"x\"))), until_first: false, emit: Some(Test(Compare(Gt, Literal(I32(1))))), \
         emit_first: false, search: Unknown })]",
    );
    // Between two bodies, a modulator belongs to the loop before it, unless that loop has its own.
    let two = compact("g.V().repeat(out()).times(2).repeat(__.in()).emit()");
    assert_eq!((two.matches("Times(").count(), two.matches("Some(Always)").count()), (1, 1));
    assert!(two.find("Times(") < two.find("direction: In"), "{two}");
    let two = compact("g.V().times(1).repeat(out()).times(2).repeat(__.in())");
    assert!(two.find("I64(1)") < two.find("I64(2)") && two.matches("until_first: true").count() == 2, "{two}");
    let undefined = "The repeat()-traversal was not defined; add repeat(…) next to it";
    fails("g.V().emit()", &format!("`emit` at line 1, column 7: {undefined}"));
    fails("g.V().until(out()).has('k')", &format!("`until` at line 1, column 7: {undefined}"));
    fails("g.V().times(2).out()", &format!("`times` at line 1, column 7: {undefined}"));
    fails(
        "g.V().repeat(out()).emit().emit()",
        "`emit` at line 1, column 28: The repeat()-step already has its emit()-modulator declared; \
         keep one of them, or add a repeat(…) that this one belongs to",
    );
    fails(
        "g.V().repeat(out()).until(has('k')).times(2)",
        "`times` at line 1, column 37: The repeat()-step already has its until()-modulator declared; \
         times(n) is one too: write until(or(…, loops().is(n))), or add a repeat(…) that this one belongs to",
    );
    let refused = "The parent of inject()-step can not be repeat()-step; move it before or after the loop";
    fails("g.V().repeat(inject(1)).times(2)", &format!("`inject` at line 1, column 14: {refused}"));
    fails("g.V().repeat(union(out(), inject(1))).times(2)", &format!("`inject` at line 1, column 27: {refused}"));
    let refused = "The parent of a reducing/supplying barrier can not be repeat()-step; nest it in map(…) or local(…), or \
                   move it after the loop";
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
         Literal(I32(1)))), options: [(True, Traversal { steps: [Constant(Literal(String(\"x\")))] })], every: false })]",
    );
    check(
        "g.V().choose(T.label).option('a', id()).option(gt(1), label()).option(Pick.none, key()).option(unproductive, value())",
        "[Vertices { ids: None, conditions: [] }, Choose(Choose { on: Value(Traversal { steps: [Label] }), options: \
         [(Value(Literal(String(\"a\"))), Traversal { steps: [Id] }), (Test(Compare(Gt, Literal(I32(1)))), Traversal { \
         steps: [Label] }), (None, Traversal { steps: [Key] }), (Unproductive, Traversal { steps: [PropertyValue] })], every: false })]",
    );
    check(
        "g.V().choose(out(), id(), label())",
        "[Vertices { ids: None, conditions: [] }, Choose(Choose { on: Exists(Traversal { steps: [Expand { direction: \
         Out, labels: [], to_edges: false }] }), options: [(True, Traversal { steps: [Id] }), (False, Traversal { steps: \
         [Label] })], every: false })]",
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
        "`option` at line 1, column 33: does not modulate `choose`; option() belongs after choose with one argument",
    );
}

/// A `match()` beside the steps that it becomes. Those look up its variables in the path alone.
#[track_caller]
fn same_but_for_lookups(matched: &str, written: &str) {
    let (matched_steps, mut written_steps) = (compact(matched), compact(written));
    for everywhere in ["lookup: Scope(Some(Last))", "lookup: Scope(None)"] {
        written_steps = written_steps.replace(everywhere, "lookup: Path");
    }
    assert_eq!(matched_steps, written_steps, "{matched} and {written}");
}

#[test]
fn a_match_is_steps_labels_and_filters() {
    same_but_for_lookups(
        "g.V().match(as('a').out().as('b'), as('b').in().as('a'))",
        "g.V().as('a').select(last, 'a').out().as('b').select(last, 'b').in().where(eq('a')).select(last, 'a', 'b')",
    );
    // A pattern that binds nothing comes first. A pattern that reads the whole stream runs separately for each
    // traverser.
    same_but_for_lookups(
        "g.V().match(as('a').out().count().as('b'), as('a').has('x'))",
        "g.V().as('a').select(last, 'a').has('x').select(last, 'a').flatMap(out().count()).as('b').select(last, 'a', 'b')",
    );
    same_but_for_lookups(
        "g.V().as('a').match(as('a').has('x'))",
        "g.V().as('a').select(last, 'a').has('x').select(last, 'a', 'a')",
    );
    fails(
        "g.V().match(out().as('b'))",
        "`match` at line 1, column 7: a pattern begins with as(…) of one label, or is and(), or(), not() or where()",
    );
    fails(
        "g.V().match(as('a').out().as('b'), as('c').out().as('d'))",
        "`match` at line 1, column 7: no order of the patterns binds every variable before it is read; `c` is never bound",
    );
}
