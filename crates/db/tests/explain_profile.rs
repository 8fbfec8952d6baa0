//! `explain()` and `profile()`: the plan as text, and the measurements of its operators.

use mangrove::{Database, OperatorMetrics, TraversalMetrics, Value};

fn database() -> Database {
    let database = Database::in_memory();
    let script = "g.addV('person').property('name', 'ada').as('a').addV('person').property('name', 'bob').as('b')\
                  .addE('knows').from('a').to('b').addE('knows').from('b').to('a')";
    database.query(script).unwrap().collect().unwrap();
    // Plans show estimates if there are statistics. Made here, they are there from the beginning.
    database.measure_statistics(&mut || Ok(())).unwrap();
    database
}

fn text(database: &Database, script: &str) -> String {
    match &database.query(script).unwrap().collect().unwrap()[..] {
        [Value::String(text)] => text.to_string(),
        other => panic!("{script} gave {other:?}"),
    }
}

fn profile(database: &Database, script: &str) -> TraversalMetrics {
    match &database.query(script).unwrap().collect().unwrap()[..] {
        [Value::TraversalMetrics(metrics)] => metrics.as_ref().clone(),
        other => panic!("{script} gave {other:?}"),
    }
}

fn named<'m>(metrics: &'m TraversalMetrics, part: &str) -> &'m OperatorMetrics {
    let found = metrics.flat().into_iter().find(|(_, operator)| operator.name.contains(part));
    found.unwrap_or_else(|| panic!("{part}: {metrics:?}")).1
}

fn long(operator: &OperatorMetrics, name: &str) -> i64 {
    match operator.annotation(name) {
        Some(Value::I64(n)) => *n,
        other => panic!("{name} is {other:?}"),
    }
}

#[test]
fn explain_shows_the_plan_and_runs_nothing() {
    let database = database();
    let plan = text(&database, "g.V().drop().explain()");
    assert!(plan.contains("on one thread: it writes") && plan.contains("drop"), "{plan}");
    assert_eq!(database.query("g.V().count()").unwrap().collect().unwrap(), vec![Value::I64(2)]);
    assert_eq!(database.explain("g.V().drop()").unwrap(), plan);
}

#[test]
fn a_new_index_changes_the_plan_of_a_prepared_traversal() {
    let database = database();
    let script = "g.V().has('person', 'name', 'ada').out('knows').values('name')";
    let before = text(&database, &format!("{script}.explain()"));
    assert!(before.contains("with label person"), "{before}");
    let names = |database: &Database| database.query(script).unwrap().collect().unwrap();
    assert_eq!(names(&database), vec![Value::from("bob")]);
    let index = database.create_index(Some("person"), "name", false, false).unwrap();
    let after = text(&database, &format!("{script}.explain()"));
    assert!(after.contains("by index person.name"), "{after}");
    assert_eq!(names(&database), vec![Value::from("bob")]);
    database.drop_index(index).unwrap();
    assert_eq!(text(&database, &format!("{script}.explain()")), before);
    assert_eq!(names(&database), vec![Value::from("bob")]);
}

#[test]
fn profile_counts_what_each_operator_did() {
    let database = database();
    let metrics = profile(&database, "g.V().hasLabel('person').out('knows').where(out('knows')).profile()");
    let counted = |what: &str| {
        let operator = named(&metrics, what);
        (long(operator, "messages"), long(operator, "rowsIn"), operator.count("traverserCount"))
    };
    assert_eq!(counted("vertices with label person"), (1, 1, Some(2)));
    assert_eq!(counted("expand out knows"), (1, 2, Some(2)));
    let results = named(&metrics, "results");
    assert_eq!((results.count("traverserCount"), results.count("elementCount")), (Some(2), Some(2)));
    assert_eq!(long(named(&metrics, "the run"), "scopeGroups"), 0);
}

#[test]
fn operators_in_a_scope_are_nested_in_the_profile() {
    let metrics = profile(&database(), "g.V().where(out('knows').has('name', 'bob')).profile()");
    let run = named(&metrics, "the run");
    assert_eq!((long(run, "scopeGroups"), long(run, "scopeGroupsPeak")), (1, 1));
    let inside: Vec<(usize, &str)> = metrics
        .flat()
        .into_iter()
        .filter(|(depth, _)| *depth > 0)
        .map(|(depth, one)| (depth, one.name.as_str()))
        .collect();
    assert!(!inside.is_empty() && inside.iter().all(|(depth, _)| *depth == 1), "{metrics:?}");
    let around: Vec<&OperatorMetrics> = metrics.operators.iter().filter(|one| !one.nested.is_empty()).collect();
    let [around] = around[..] else { panic!("{metrics:?}") };
    assert_eq!(around.nested.len(), inside.len());
    assert!(around.nanos >= around.nested.iter().map(|one| one.nanos).sum::<u64>(), "{around:?}");
    let shares = metrics.operators.iter().filter_map(|one| match one.annotation("percentDur") {
        Some(Value::F64(share)) => Some(*share),
        _ => None,
    });
    let sum: f64 = shares.sum();
    assert!((sum - 100.0).abs() < 1e-6, "{sum}");
    let ids: std::collections::HashSet<&str> = metrics.flat().into_iter().map(|(_, one)| one.id.as_str()).collect();
    assert_eq!(ids.len(), metrics.flat().len(), "an id is there twice");
}

#[test]
fn a_bulk_is_one_traverser_and_several_elements() {
    let database = Database::in_memory();
    let metrics = profile(&database, "g.inject(1, 1, 1, 2).barrier().profile()");
    let results = named(&metrics, "results");
    assert_eq!((results.count("traverserCount"), results.count("elementCount")), (Some(2), Some(4)));
}

#[test]
fn profile_of_a_writing_traversal_writes() {
    let database = database();
    let metrics = profile(&database, "g.addV('person').property('name', 'eve').profile()");
    assert_eq!(named(&metrics, "add vertex").count("traverserCount"), Some(1));
    assert_eq!(database.query("g.V().count()").unwrap().collect().unwrap(), vec![Value::I64(3)]);
}

#[test]
fn a_profile_may_be_a_side_effect_that_is_the_result() {
    let database = database();
    let metrics = profile(&database, "g.V().out('knows').profile('p').cap('p')");
    assert_eq!(named(&metrics, "results").count("elementCount"), Some(2));
    for script in ["g.V().profile('p').out()", "g.V().profile('p').cap('q')", "g.V().profile('p')"] {
        let error = database.query(script).and_then(|results| results.collect()).unwrap_err().to_string();
        assert!(error.contains("profile('p').cap('p')"), "{script}: {error}");
    }
}

#[test]
fn operators_have_the_flow_types_of_grasper() {
    let metrics = profile(&database(), "g.V().out('knows').where(__.in('knows').out('knows')).count().profile()");
    let flow = |name| named(&metrics, name).annotation("flow").cloned();
    let [vertices, hop, scope, count] = ["vertices", "expand out", "scope a row", "count"].map(flow);
    assert_eq!(vertices, Some(Value::from("sequential")));
    assert_eq!(hop, Some(Value::from("sequential")));
    assert_eq!(scope, Some(Value::from("branch")));
    assert_eq!(count, Some(Value::from("barrier")));
    assert_eq!(flow("results"), None);
}

#[test]
fn a_profile_may_be_a_map() {
    let results = database().query("g.with('metrics', 'map').V().out('knows').profile()").unwrap().collect().unwrap();
    let [Value::Map(map)] = &results[..] else { panic!("{results:?}") };
    let keys: Vec<Value> = map.iter().map(|(key, _)| key.clone()).collect();
    assert_eq!(keys, [Value::from("dur"), Value::from("metrics")]);
}

/// The graph of the guide: 2,000 people, most of them active. Each knows five others, and lives in one of 40 cities.
fn people() -> Database {
    let database = Database::in_memory();
    let catalog = database.catalog();
    let transaction = database.begin().unwrap();
    let ids = |range: std::ops::Range<i64>| range.map(Into::into).collect::<Vec<_>>();
    let people = transaction.insert_vertices(catalog.intern_label_text("person"), &ids(0..2_000)).unwrap();
    let cities = transaction.insert_vertices(catalog.intern_label_text("city"), &ids(2_000..2_040)).unwrap();
    let each = |number: usize| people.iter().enumerate().map(move |(at, person)| (at * number, *person));
    let named = each(1).map(|(at, person)| (person, Value::from(format!("p{at}"))));
    transaction.set_vertex_property("name", &named.collect::<Vec<_>>()).unwrap();
    let active = each(1).map(|(at, person)| (person, Value::from(at % 20 != 0)));
    transaction.set_vertex_property("active", &active.collect::<Vec<_>>()).unwrap();
    let cities_named = cities.iter().enumerate().map(|(at, city)| (*city, Value::from(format!("c{at}"))));
    transaction.set_vertex_property("name", &cities_named.collect::<Vec<_>>()).unwrap();
    let lives = each(1).map(|(at, person)| (person, cities[at % cities.len()]));
    transaction.insert_edges(catalog.intern_label_text("livesIn"), &lives.collect::<Vec<_>>()).unwrap();
    let knows = each(7).flat_map(|(at, person)| (1..6).map(move |next| (person, (at + next * next) % 2_000)));
    let knows: Vec<_> = knows.map(|(person, other)| (person, people[other])).collect();
    transaction.insert_edges(catalog.intern_label_text("knows"), &knows).unwrap();
    transaction.commit().unwrap();
    database.measure_statistics(&mut || Ok(())).unwrap();
    database
}

/// The blocks of the guide that show the output of a query, each with the query.
fn examples() -> Vec<(&'static str, Vec<&'static str>)> {
    const GUIDE: &str = include_str!("../../../docs/plans.md");
    let blocks = GUIDE.split("```").skip(1).step_by(2).filter_map(|block| block.strip_prefix("text\n"));
    let example = |block: &'static str| {
        let (query, output) = block.split_once('\n')?;
        Some((query.strip_prefix("mangrove> ")?, output.lines().collect()))
    };
    blocks.filter_map(example).collect()
}

#[test]
fn the_examples_of_the_guide_are_true() {
    let mut kinds = [0, 0];
    for (query, shown) in examples() {
        // A new graph each time: a plan that lacks the values of a key has them counted in the background.
        let database = people();
        if let Some(traversal) = query.strip_prefix(":explain ") {
            kinds[0] += 1;
            let plan = text(&database, &format!("{traversal}.explain()"));
            assert_eq!(plan.lines().collect::<Vec<_>>(), shown, "{query}");
        } else if let Some(traversal) = query.strip_prefix(":profile ") {
            kinds[1] += 1;
            // Times, and the figures of the run, are never the same.
            fn steady<'t>(lines: impl Iterator<Item = &'t str>) -> Vec<&'t str> {
                let rows = lines.take_while(|line| !line.starts_with("the run"));
                rows.map(|line| line.rsplit_once(' ').map_or(line, |(row, _)| row.trim_end())).collect()
            }
            let table = Value::TraversalMetrics(profile(&database, &format!("{traversal}.profile()")).into());
            let table = mangrove_gremlin::text::Plain(&table).to_string();
            assert_eq!(steady(table.lines()), steady(shown.into_iter()), "{query}\n{table}");
        }
    }
    assert!(kinds.iter().all(|count| *count > 0), "{kinds:?}");
}
