//! Policies of scopes, limits on instances, and heavy instances that are set apart.

use mangrove::{Database, Value};

fn results(database: &Database, script: &str) -> Vec<Value> {
    database
        .query(script)
        .unwrap_or_else(|e| panic!("{script}: {e}"))
        .collect()
        .unwrap_or_else(|e| panic!("{script}: {e}"))
}

fn sorted(database: &Database, script: &str) -> Vec<String> {
    let mut texts: Vec<String> = results(database, script).iter().map(|value| format!("{value:?}")).collect();
    texts.sort();
    texts
}

#[track_caller]
fn refused(database: &Database, script: &str, part: &str) {
    let error = database.explain(script).expect_err(script);
    assert!(error.to_string().contains(part), "{script}: {error}");
}

/// Leaves of a vertex that is heavy: it takes more steps than a light instance may be ahead.
const HEAVY: usize = 20_000;

/// A source with this number of leaves, in thousands, and then a hundred with ten each.
fn sources(thousands: usize) -> Database {
    let database = Database::in_memory();
    results(&database, "g.addV('source').property(T.id, 'hub')");
    let numbers = (0..1000).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    for _ in 0..thousands {
        results(&database, &format!("g.inject([{numbers}]).unfold().as('n').addV('leaf').addE('e').from(V('hub'))"));
    }
    for source in 0..100 {
        results(&database, &format!("g.addV('source').property(T.id, 's{source}').property('n', {})", source % 7));
        let numbers = (0..10).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        results(&database, &format!("g.inject([{numbers}]).unfold().addV('leaf').addE('e').from(V('s{source}'))"));
    }
    database
}

/// The number of heavy instances that were set apart, as the profile of the run has it.
fn set_apart(database: &Database, script: &str) -> i64 {
    let profile = results(database, &format!("{script}.profile()"));
    let [Value::TraversalMetrics(metrics)] = &profile[..] else { panic!("{profile:?}") };
    match metrics.operators.last().and_then(|run| run.annotation("instancesSetApart")) {
        Some(Value::I64(number)) => *number,
        _ => panic!("the profile counts them: {metrics:?}"),
    }
}

#[test]
fn a_heavy_instance_begins_again_in_a_group_of_its_own() {
    let database = sources(HEAVY / 1000);
    let counts = "g.V().hasLabel('source').map(out('e').in('e').count())";
    assert_eq!(set_apart(&database, counts), 1);
    let found = results(&database, counts);
    assert_eq!(found.len(), 101);
    // The light instances do not wait for it.
    assert!(found[..100].iter().all(|count| *count == Value::I64(10)), "{found:?}");
    assert_eq!(found[100], Value::I64(HEAVY as i64));
    for (script, moves, count) in [
        ("g.V().hasLabel('source').not(out('e').in('e').has('none'))", true, 101),
        ("g.V().hasLabel('source').where(out('e').in('e').has('none'))", true, 0),
        ("g.V().hasLabel('source').coalesce(out('e').in('e').has('none'), constant(7))", true, 101),
        ("g.V().hasLabel('source').optional(out('e').in('e').has('none'))", true, 101),
        ("g.V().hasLabel('source').sideEffect(out('e').in('e').has('none'))", true, 101),
        ("g.V().hasLabel('source').union(identity(), identity()).not(out('e').in('e').has('none'))", true, 202),
        // The rows of the others leave in the order of the sources.
        ("g.V().hasLabel('source').order().by(id).map(out('e').in('e').count())", false, 101),
        ("g.V().hasLabel('source').map(out('e').in('e').count()).with('maxInstances', 50)", false, 101),
        ("g.V().hasLabel('source').map(out('e').in('e').coin(1.0).count())", false, 101),
    ] {
        assert_eq!(set_apart(&database, script) > 0, moves, "{script}");
        assert_eq!(results(&database, script).len(), count, "{script}");
    }
}

/// The first step for an instance is a part of a message, so that little was done in vain.
#[test]
fn an_instance_with_fewer_rows_than_a_message_is_found_too() {
    let counts = "g.V().hasLabel('source').map(out('e').count())";
    let expands = "g.V().hasLabel('source').map(out('e').in('e').count())";
    let database = sources(1);
    assert_eq!(set_apart(&database, expands), 1);
    // No neighbor is read to count the edges.
    assert_eq!(set_apart(&database, counts), 0);
    for script in [counts, expands] {
        let found = results(&database, script);
        let hubs = found.iter().filter(|count| **count == Value::I64(1000)).count();
        assert_eq!((found.len(), hubs), (101, 1), "{script}");
    }
}

/// An instance whose results have left does not begin again, but lets the rows of others go first. On one thread: rows of
/// several threads come in any order.
#[test]
fn rows_of_light_instances_go_before_the_rest_of_a_heavy_row() {
    let database = sources(HEAVY / 1000);
    for (nested, begins_again) in [
        ("out('e')", true),
        ("out('e').dedup()", true),
        ("out('e').limit(1000000)", true),
        // The sources themselves are results, which leave first.
        ("emit().repeat(out('e')).times(1)", false),
    ] {
        let traversal = format!("V().hasLabel('source').local(as('s').{nested}.select('s').id())");
        let script = &format!("g.with('parallel', 1).{traversal}");
        assert_eq!(set_apart(&database, script), i64::from(begins_again), "{script}");
        let found = results(&database, script);
        assert_eq!(found.len(), HEAVY + 1000 + if begins_again { 0 } else { 101 }, "{script}");
        let last_light = found.iter().rposition(|id| *id != Value::from("hub")).unwrap();
        assert!(last_light < HEAVY - 1000, "light rows wait: {last_light}, {script}");
    }
}

#[test]
fn iterations_overlap_if_the_policy_says_so() {
    let database = Database::in_memory();
    results(&database, "g.addV('root').property(T.id, 'root')");
    let numbers = (0..1000).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    for _ in 0..3 {
        results(&database, &format!("g.inject([{numbers}]).unfold().addV('middle').addE('e').from(V('root'))"));
    }
    results(&database, "g.V().hasLabel('middle').as('m').addV('leaf').addE('e').from('m')");
    let labels = |with: &str| {
        let found = results(&database, &format!("g.V('root').repeat(out('e')).emit().label(){with}"));
        assert_eq!(found.len(), 6000, "{with}");
        found.iter().position(|label| *label == Value::from("leaf")).unwrap()
    };
    assert_eq!(labels(""), 3000, "by default, iterations run one after the other");
    let first_leaf = |policy: &str| {
        let script = format!("g.V('root').repeat(out('e')).emit().with('policy', '{policy}').label()");
        let found = results(&database, &script);
        assert_eq!(found.len(), 6000, "{policy}");
        found.iter().position(|label| *label == Value::from("leaf")).unwrap()
    };
    assert_eq!(first_leaf("bfs"), 3000);
    assert!(first_leaf("dfs") < 3000);
    assert!(first_leaf("fifo") <= 3000);
    // One open iteration is an iteration after the other.
    let one = "g.V('root').repeat(out('e')).emit().with('policy', 'dfs').with('maxInstances', 1).label()";
    assert_eq!(results(&database, one).iter().position(|label| *label == Value::from("leaf")), Some(3000));
}

#[test]
fn no_policy_changes_a_result() {
    let database = sources(2);
    for script in [
        "V().hasLabel('source').map(out('e').in('e').count())",
        "V().hasLabel('source').where(out('e').in('e').has('none')).id()",
        "V().hasLabel('source').local(out('e').limit(3)).count()",
        "V('s7').repeat(both('e')).times(4).count()",
        "V('s7').repeat(both('e')).emit().times(4).dedup().count()",
        "V().hasLabel('source').order().by(id).local(union(id(), label()).fold()).limit(5)",
        "V('s7', 's8').project('a', 'b').by(repeat(both('e')).times(2).count()).by(union(label(), id()).fold())",
    ] {
        let expected = sorted(&database, &format!("g.{script}"));
        for policy in
            ["dfs", "bfs", "fifo", "bfs/dfs", "dfs/bfs", "fifo/dfs", "by n", "by n desc/bfs", "fair", "fair/bfs"]
        {
            for max in ["", ".with('maxInstances', 1)", ".with('maxInstances', 7)"] {
                let source = format!("g.with('policy', '{policy}'){max}.{script}");
                assert_eq!(sorted(&database, &source), expected, "{source}");
            }
        }
    }
}

#[test]
fn a_policy_that_cannot_be_kept_is_refused() {
    let database = Database::in_memory();
    for (script, part) in [
        ("g.with('policy', 'random').V()", "a policy is \"dfs\", \"bfs\" or \"fifo\", or two of them"),
        ("g.with('policy', 7).V()", "a policy is \"dfs\""),
        ("g.V().map(out()).with('policy', 'dfs/none')", "a policy is \"dfs\""),
        ("g.with('maxInstances', 0).V()", "a number from 1, not the int 0"),
        ("g.V().map(out()).with('maxInstances', -1)", "a number from 1, not the int -1"),
        ("g.V().map(out()).with('maxInstance', 1)", "`map` has no option `maxInstance`; did you mean `maxInstances`?"),
        ("g.V().out().with('policy', 'dfs')", "`out` cannot have a policy or a limit on instances: it opens no scope"),
        ("g.V().union(out(), in()).with('policy', 'dfs')", "its branches see the whole stream"),
        ("g.V().as('a').out().where(eq('a')).with('policy', 'dfs')", "it opens no scope"),
        ("g.addV('x').with('policy', 'dfs')", "`addV` cannot have a policy"),
        ("g.with('policy', 'bfs').addV('x')", "the traversal writes, so its steps run in a fixed order"),
        ("g.V().map(addV()).with('policy', 'bfs')", "the traversal writes"),
        (
            "g.V().local(aggregate('x')).where(without('x')).map(out().out()).with('policy', 'bfs')",
            "a side effect shows the order of traversers",
        ),
        (
            "g.V().repeat(out().dedup()).times(2).with('policy', 'dfs/bfs')",
            "the iterations of `repeat` run one after the other, because dedup() in its body remembers what earlier \
             iterations met; use \"bfs\", or \"bfs/bfs\"",
        ),
        ("g.withSack(1, sum).V().repeat(out()).times(2).with('policy', 'dfs')", "sacks of equal traversers"),
        ("g.withSack(1, sum).V().repeat(out()).times(2).with('policy', 'fair')", "sacks of equal traversers"),
        ("g.V().map(local(out().out()).with('policy', 'fair').fold())", "the order of its results is read"),
        ("g.V().map(union(id(), label())).with('policy', 'fair/bfs')", "use \"fair/dfs\""),
        ("g.with('policy', 'fair').addV('x')", "the traversal writes"),
        ("g.V().map(out()).with('policy', 'dfs/fair')", "or \"fair\", by which instances share time"),
        ("g.V().map(out()).with('policy', 'fair/by age')", "or \"fair\", by which instances share time"),
        ("g.V().map(local(out().out()).with('policy', 'dfs').fold())", "the order of its results is read"),
        ("g.V().map(union(id(), label())).with('policy', 'bfs')", "use \"bfs/dfs\""),
        ("g.V().map(out()).with('policy', 'by ')", "may be a value, as in \"by age\""),
        ("g.V().map(out()).with('policy', 'by age/random')", "may be a value, as in \"by age\""),
        ("g.V().map(out()).with('policy', 'age desc')", "may be a value, as in \"by age\""),
        ("g.V().map(out()).with('policy', 'by sack()')", "traversers have no sack; withSack() gives them one"),
        ("g.with('policy', 'by age').addV('x')", "the traversal writes"),
        ("g.V().map(local(out().out()).with('policy', 'by age').fold())", "the order of its results is read"),
        ("g.V().map(union(id(), label())).with('policy', 'by age/bfs')", "use \"by age/dfs\""),
        (
            "g.V().repeat(out().dedup()).times(2).with('policy', 'by age')",
            "dedup() in its body remembers what earlier iterations met; use \"bfs\", or \"bfs/dfs\"",
        ),
        (
            "g.V().repeat(out().limit(2)).times(2).with('policy', 'by age desc')",
            "`with(\"policy\", \"by age desc/dfs\")` of \"repeat\": a step of its body sees all traversers of an \
             iteration, so it must not change; use \"bfs/dfs\"",
        ),
    ] {
        refused(&database, script, part);
    }
}

/// Instances go in the order of a property of the objects that open them.
#[test]
fn a_value_orders_instances() {
    let database = Database::in_memory();
    for (n, text) in [5, 1, 4, 2, 3].iter().zip(["e", "a", "d", "b", "c"]) {
        results(
            &database,
            &format!("g.addV('s').property('n', {n}).as('s').addV('leaf').property('t', '{text}').addE('e').from('s')"),
        );
    }
    results(&database, "g.addV('s').as('s').addV('leaf').property('t', 'none').addE('e').from('s')");
    let order = |policy: &str, max: &str| -> String {
        let script = format!("g.V().hasLabel('s').local(out('e').values('t')).with('policy', '{policy}'){max}");
        let found = results(&database, &script);
        let text = |value: &Value| match value {
            Value::String(text) => text.to_string(),
            other => panic!("{other:?}"),
        };
        found.iter().map(text).collect::<Vec<_>>().join(" ")
    };
    for max in ["", ".with('maxInstances', 1)", ".with('maxInstances', 3)"] {
        assert_eq!(order("by n", max), "a b c d e none", "{max}");
        assert_eq!(order("by n asc/bfs", max), "a b c d e none", "{max}");
        assert_eq!(order("by n desc", max), "e d c b a none", "{max}");
        assert_eq!(order("by unknown", max), "e a d b c none", "{max}");
    }
    let explained = database.explain("g.V().local(out()).with('policy', 'by n desc')").unwrap();
    assert!(explained.contains("by n desc between instances and dfs inside"), "{explained}");
}
