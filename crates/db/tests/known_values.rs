//! Plans know how frequent values are: a walk begins at the rarer end, and values that are far more or less frequent
//! than those that a plan was made for get a plan of their own.

use mangrove::{Database, Value};

const PEOPLE: usize = 5_000;

#[track_caller]
fn ask(db: &Database, script: &str) -> Vec<Value> {
    db.query(script).and_then(|results| results.collect()).unwrap_or_else(|error| panic!("{script}: {error}"))
}

fn explained(db: &Database, script: &str) -> String {
    match &ask(db, &format!("{script}.explain()"))[..] {
        [Value::String(text)] => text.to_string(),
        other => panic!("{script}: {other:?}"),
    }
}

fn field(row: &Value, name: &str) -> Value {
    let Value::Map(entries) = row else { panic!("{row:?} is no map") };
    entries
        .iter()
        .find(|(key, _)| *key == Value::from(name))
        .unwrap_or_else(|| panic!("{row:?} has no {name}"))
        .1
        .clone()
}

/// People of whom every 500th is `rare`, and every 501st `other`. Everyone knows two of them.
fn people() -> Database {
    let db = Database::in_memory();
    let transaction = db.begin().unwrap();
    let run = |script: String| drop(transaction.query(&script).unwrap().collect().unwrap());
    for n in 0..PEOPLE {
        let kind = match n {
            n if n % 500 == 0 => "rare",
            n if n % 501 == 0 => "other",
            _ => "common",
        };
        run(format!("g.addV('person').property(id, {n}).property('n', {n}).property('kind', '{kind}')"));
    }
    for n in 0..PEOPLE {
        for other in [(n * 7 + 1) % PEOPLE, (n * 13 + 5) % PEOPLE] {
            run(format!("g.addE('knows').from(__.V({n})).to(__.V({other}))"));
        }
    }
    transaction.commit().unwrap();
    db
}

/// A walk between two kinds, which neither is light nor can be counted without rows.
fn walk(from: &str, to: &str) -> String {
    format!("g.V().has('person', 'kind', '{from}').out('knows').has('person', 'kind', '{to}').values('n').order()")
}

/// The bytes of all plans of walks.
fn plan_bytes(db: &Database) -> i64 {
    let plans = ask(db, "g.call('mangrove.plans')");
    let is_walk = |row: &&Value| matches!(field(row, "shape"), Value::String(shape) if shape.contains("out"));
    let bytes = |row: &Value| match field(row, "bytes") {
        Value::I64(bytes) => bytes,
        other => panic!("{other:?}"),
    };
    plans.iter().filter(is_walk).map(bytes).sum()
}

#[test]
fn a_walk_begins_at_the_value_with_fewer_entries_in_the_index() {
    let db = people();
    let plain: Vec<_> = [("common", "rare"), ("rare", "common"), ("common", "other")]
        .map(|(from, to)| (from, to, ask(&db, &format!("g.with('planner', 'written').{}", &walk(from, to)[2..]))))
        .into();
    db.create_index(Some("person"), "kind", false, false).unwrap();
    db.measure_statistics(&mut || Ok(())).unwrap();
    let shown = explained(&db, &walk("common", "rare"));
    assert!(shown.contains("order: by statistics; expected rows 10,"), "{shown}");
    let shown = explained(&db, &walk("rare", "common"));
    assert!(shown.contains("order: as written"), "{shown}");
    // Each pair of orders of magnitude has a plan.
    let mut bytes = Vec::new();
    for (from, to, results) in &plain {
        assert_eq!(ask(&db, &walk(from, to)), *results, "{from} to {to}");
        bytes.push(plan_bytes(&db));
    }
    let [first, second, third] = bytes[..] else { unreachable!() };
    assert!(first < second, "the two walks have a plan each: {bytes:?}");
    assert_eq!(second, third, "of `other` there are as few as of `rare`");
}

#[test]
fn a_range_of_an_ordered_index_is_as_narrow_as_its_bounds() {
    let db = people();
    db.create_index(Some("person"), "kind", false, false).unwrap();
    db.create_index(Some("person"), "n", true, false).unwrap();
    db.measure_statistics(&mut || Ok(())).unwrap();
    let source = |from: usize, kind: &str| {
        let shown = explained(&db, &format!("g.V().hasLabel('person').has('n', gte({from})).has('kind', '{kind}')"));
        shown.lines().find(|line| line.contains("vertices by")).unwrap_or(&shown).to_owned()
    };
    let narrow = source(PEOPLE - 3, "common");
    assert!(narrow.contains("vertices by index person.n (~3), not person.kind (~4981)"), "{narrow}");
    let wide = source(10, "rare");
    assert!(wide.contains("vertices by index person.kind (~10), not person.n (~4990)"), "{wide}");
}

#[test]
fn a_walk_begins_at_the_rarer_value_after_the_values_were_counted() {
    let db = people();
    db.measure_statistics(&mut || Ok(())).unwrap();
    let common_to_rare = walk("common", "rare");
    let shown = explained(&db, &common_to_rare);
    assert!(!shown.contains("order: by statistics"), "values are unknown: {shown}");
    let results = ask(&db, &common_to_rare);
    // That plan has asked for the values. The pass makes it stale, though there was no commit.
    db.measure_statistics(&mut || Ok(())).unwrap();
    let shown = explained(&db, &common_to_rare);
    assert!(shown.contains("order: by statistics"), "{shown}");
    let rare_to_common = explained(&db, &walk("rare", "common"));
    assert!(rare_to_common.contains("order: as written"), "{rare_to_common}");
    assert_eq!(ask(&db, &common_to_rare), results);
    let rows = ask(&db, "g.call('mangrove.statistics').with('histogram', true)");
    let fact = |name: &str| rows.iter().filter(|row| field(row, "fact") == Value::from(name)).collect::<Vec<_>>();
    let [of_kind] = fact("values")[..] else { panic!("one key was asked about: {rows:?}") };
    assert_eq!([field(of_kind, "label"), field(of_kind, "key")], ["person", "kind"].map(Value::from));
    assert_eq!([field(of_kind, "values"), field(of_kind, "distinct")], [5_000_i64, 3].map(Value::from));
    // Of more than 4,096 values, a sample is counted.
    let Value::I64(common) = field(fact("value")[0], "values") else { panic!("{rows:?}") };
    assert!((4_950..=5_000).contains(&common) && field(fact("value")[0], "value") == Value::from("common"), "{common}");
}
