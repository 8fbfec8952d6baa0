//! `explain()` and `profile()`: the plan as text, and the measurements of its operators.

use mangrove::{Database, Value};

fn database() -> Database {
    let database = Database::in_memory();
    let script = "g.addV('person').property('name', 'ada').as('a').addV('person').property('name', 'bob').as('b')\
                  .addE('knows').from('a').to('b').addE('knows').from('b').to('a')";
    database.query(script).unwrap().collect().unwrap();
    database
}

fn text(database: &Database, script: &str) -> String {
    match &database.query(script).unwrap().collect().unwrap()[..] {
        [Value::String(text)] => text.to_string(),
        other => panic!("{script} gave {other:?}"),
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
    let table = text(&database, "g.V().hasLabel('person').out('knows').where(out('knows')).profile()");
    let line = |what: &str| table.lines().find(|l| l.contains(what)).unwrap_or_else(|| panic!("{what}: {table}"));
    let numbers =
        |what: &str| -> Vec<u64> { line(what).split_whitespace().filter_map(|word| word.parse().ok()).collect() };
    // Messages, rows in, rows out.
    assert_eq!(numbers("vertices with label person")[..3], [1, 1, 2]);
    assert_eq!(numbers("expand out knows")[..3], [1, 2, 2]);
    assert_eq!(numbers("results")[1], 2);
    assert!(table.contains("scope groups made 0"), "{table}");
    let scoped = text(&database, "g.V().where(out('knows').has('name', 'bob')).profile()");
    assert!(scoped.contains("scope groups made 1, at most 1 at a time"), "{scoped}");
}

#[test]
fn profile_of_a_writing_traversal_writes() {
    let database = database();
    let table = text(&database, "g.addV('person').property('name', 'eve').profile()");
    assert!(table.contains("add vertex"), "{table}");
    assert_eq!(database.query("g.V().count()").unwrap().collect().unwrap(), vec![Value::I64(3)]);
}
