//! Maps, barriers, functions, and the values of `by()`.

use super::*;

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
        "`by` at line 1, column 15: does not modulate `count`; by() belongs after order, group, groupCount, dedup, \
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
fn maps_and_barriers() {
    let v = "[Vertices { ids: None, conditions: [] }, ";
    check(
        "g.V().valueMap(true, 'a').by(unfold())",
        &format!(
            "{v}ValueMap {{ keys: [\"a\"], tokens: MapTokens {{ ids: true, labels: true }}, by: Some(Traversal(Traversal {{ steps: [Unfold] }})), shown: None }}]"
        ),
    );
    same("g.V().valueMap().with(WithOptions.tokens)", "g.V().valueMap(true)");
    same("g.V().valueMap().with(WithOptions.tokens, WithOptions.none)", "g.V().valueMap()");
    same("g.V().valueMap().with(WithOptions.tokens, WithOptions.all)", "g.V().valueMap(true)");
    check(
        "g.V().select(all, 'a', 'b').by('k')",
        &format!("{v}Select {{ lookup: Scope(Some(All)), labels: [\"a\", \"b\"], by: [Key(\"k\")], required: true }}]"),
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
    // As in TinkerPop 3.7.
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
