//! Management of a running database, by the embedded API and by `call()`.

use mangrove::{Database, DatabaseOptions, ErrorKind, IndexDefinition, IndexKind, Parameters, Result, Value};

fn people() -> Database {
    let db = Database::in_memory();
    for (name, age, city) in [("ada", 36, "london"), ("bob", 20, "paris"), ("eve", 36, "paris")] {
        let script =
            format!("g.addV('person').property('name', '{name}').property('age', {age}).property('city', '{city}')");
        db.query(&script).unwrap();
    }
    db
}

fn all(db: &Database, script: &str) -> Vec<Value> {
    db.query(script).unwrap_or_else(|e| panic!("{script}: {e}")).collect().unwrap_or_else(|e| panic!("{script}: {e}"))
}

fn failure(db: &Database, script: &str) -> mangrove::Error {
    let outcome: Result<Vec<Value>> = db.query(script).and_then(|results| results.collect());
    outcome.expect_err(script)
}

fn field(row: &Value, name: &str) -> Value {
    let Value::Map(entries) = row else { panic!("{row:?} is no map") };
    let found = entries.iter().find(|(key, _)| *key == Value::from(name));
    found.unwrap_or_else(|| panic!("{row:?} has no {name}")).1.clone()
}

#[test]
fn services_are_listed_as_tinkerpop_does() {
    let db = people();
    let names = all(&db, "g.call()");
    assert_eq!(names, all(&db, "g.call('--list')"));
    assert!(names.contains(&"mangrove.index.create".into()) && names.contains(&"mangrove.config".into()), "{names:?}");
    let verbose = all(&db, "g.call('--list').with('service', 'mangrove.index.drop').with('verbose', true)");
    assert_eq!(field(&verbose[0], "name"), "mangrove.index.drop".into());
    field(&field(&verbose[0], "params"), "key");
    let error = failure(&db, "g.call('mangrove.indx.list')");
    assert!(error.message().contains("mangrove.index.list"), "{error}");
    let error = failure(&db, "g.call('mangrove.index.create').with('keys', 'name')");
    assert!(error.message().contains("'keys'") && error.message().contains("unique"), "{error}");
    let error = failure(&db, "g.withStrategies(ReadOnlyStrategy).call('mangrove.index.list')");
    assert!(error.message().contains("read only"), "{error}");
}

#[test]
fn indexes_are_made_listed_used_and_dropped_by_call() {
    let db = people();
    let made =
        all(&db, "g.call('mangrove.index.create').with('label', 'person').with('key', 'age').with('kind', 'ordered')");
    assert_eq!((field(&made[0], "entries"), field(&made[0], "distinct")), (Value::I64(3), Value::I64(2)));
    let query = "g.V().has('person', 'age', gt(30)).values('name').order()";
    assert!(db.explain(query).unwrap().contains("by index person.age"));
    assert_eq!(all(&db, query), ["ada".into(), "eve".into()]);
    // A map does as well as with(), and a list of keys makes a composite index.
    all(&db, "g.call('mangrove.index.create', ['key': ['city', 'age'], 'unique': true])");
    let error = failure(&db, "g.addV('robot').property('age', 36).property('city', 'london')");
    assert_eq!(error.kind(), ErrorKind::DuplicateId, "{error}");
    let pair = "g.V().has('city', 'paris').has('age', 36).values('name')";
    assert!(db.explain(pair).unwrap().contains("by index (city, age)"));
    assert_eq!(all(&db, pair), ["eve".into()]);
    assert_eq!(all(&db, "g.call('mangrove.index.list').select('key').unfold()").len(), 3);
    // In the middle of a traversal: once for each row.
    assert_eq!(all(&db, "g.inject(1, 2).call('mangrove.index.list').count()"), [Value::I64(4)]);
    all(&db, "g.call('mangrove.index.drop').with('label', 'person').with('key', 'age')");
    assert!(!db.explain(query).unwrap().contains("by index"));
    assert_eq!(all(&db, query), ["ada".into(), "eve".into()]);
    let [left] = &db.indexes()[..] else { panic!("one index is left") };
    assert!(left.definition.unique && left.definition.kind == IndexKind::Hash && left.online);
    db.drop_index(left.id).unwrap();
    assert_eq!(failure(&db, "g.call('mangrove.index.drop').with('id', 77)").kind(), ErrorKind::NotFound);
}

#[test]
fn a_unique_index_counts_the_writes_of_running_transactions() {
    let db = people();
    let unique = || db.create_index(Some("person"), "name", false, true);
    let write = |script: &str| {
        let tx = db.begin().unwrap();
        tx.query(script).unwrap().collect().unwrap();
        tx
    };
    let check_conflict = |value: &str| {
        let error = unique().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        assert!(error.message().contains(value) && error.message().contains("running transaction"), "{error}");
        assert!(db.indexes().is_empty());
    };
    let rename = "g.V().has('name', 'bob').property('name', 'ada')";
    let tx = write(rename);
    check_conflict("'name' = 'ada'");
    tx.rollback();
    let add = "g.addV('person').property('name', 'zoe')";
    let (one, two) = (write(add), write(add));
    check_conflict("'name' = 'zoe'");
    one.commit().unwrap();
    check_conflict("'name' = 'zoe'");
    two.rollback();
    db.drop_index(unique().unwrap()).unwrap();
    write(rename).commit().unwrap();
    let error = unique().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DuplicateId, "{error}");
    assert!(db.indexes().is_empty());
}

#[test]
fn a_running_transaction_keeps_to_a_unique_index_that_is_made_after_its_begin() {
    let db = people();
    let (writer, late) = (db.begin().unwrap(), db.begin().unwrap());
    // A value that no other vertex has is no obstacle.
    writer.query("g.V().has('name', 'eve').property('name', 'eva')").unwrap().collect().unwrap();
    db.create_index(Some("person"), "name", true, true).unwrap();
    for (taken, kind) in [("ada", ErrorKind::DuplicateId), ("eva", ErrorKind::Conflict)] {
        let tx = db.begin().unwrap();
        let add = format!("g.addV('person').property('name', '{taken}')");
        let outcome = tx.query(&add).and_then(|results| results.collect());
        assert_eq!(outcome.unwrap_err().kind(), kind, "{taken}");
    }
    let outcome = late.query("g.V().has('name', 'bob').property('name', 'ada')").and_then(|results| results.collect());
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::DuplicateId);
    late.rollback();
    writer.commit().unwrap();
    assert_eq!(all(&db, "g.V().values('name').order()"), ["ada".into(), "bob".into(), "eva".into()]);
}

#[test]
fn a_query_prepared_and_begun_before_a_drop_goes_on_by_a_scan() {
    let db = people();
    let keys = vec!["city".into(), "age".into()];
    let definition = IndexDefinition { keys, kind: IndexKind::Ordered, ..IndexDefinition::default() };
    let index = db.define_index(&definition).unwrap();
    let prepared = db.prepare("g.inject(1, 2).V().has('city', 'paris').has('age', gt(30)).values('name')").unwrap();
    let run = |tx: &mangrove::Transaction| tx.run(&prepared, &Parameters::new());
    let tx = db.begin_read().unwrap();
    let twice: Vec<Value> = vec!["eve".into(), "eve".into()];
    assert_eq!(run(&tx).unwrap().collect().unwrap(), twice);
    // Planned with the index, not yet run: results are read after the drop.
    let pending = run(&tx).unwrap();
    db.drop_index(index).unwrap();
    assert_eq!(pending.collect().unwrap(), twice);
    assert_eq!(run(&tx).unwrap().collect().unwrap(), twice);
}

#[test]
fn settings_are_read_and_set_by_both_doors() {
    let db = people();
    let before = all(&db, "g.call('mangrove.config')");
    assert_eq!(field(&before[0], "optimistic_pre_read"), true.into());
    let after = all(&db, "g.call('mangrove.config').with('optimistic_pre_read', false).with('gc_workers', 2)");
    assert_eq!(
        (field(&after[0], "optimistic_pre_read"), field(&after[0], "gc_workers")),
        (false.into(), Value::I64(2))
    );
    assert!(db.config().contains(&("optimistic_pre_read", false.into())));
    db.configure("garbage_collection", &false.into()).unwrap();
    assert_eq!(field(&all(&db, "g.call('mangrove.config')")[0], "garbage_collection"), false.into());
    for wrong in
        ["with('gc', false)", "with('garbage_collection', 1)", "with('gc_workers', -1)", "with('gc_workers', 17)"]
    {
        failure(&db, &format!("g.call('mangrove.config').{wrong}"));
    }
}

#[test]
fn reports_count_what_happened() {
    let db = people();
    let memory = all(&db, "g.call('mangrove.memory')");
    let total = memory.last().unwrap();
    assert_eq!(field(total, "kind"), "total".into());
    assert_eq!(field(total, "bytes"), Value::I64(db.memory().total_bytes() as i64));
    all(&db, "g.V().has('name', 'bob').drop()");
    let garbage = all(&db, "g.call('mangrove.gc').with('collect')");
    assert_eq!(field(&garbage[0], "vertices"), Value::I64(1));
    let transactions = all(&db, "g.call('mangrove.transactions')");
    assert_eq!(field(&transactions[0], "commits"), Value::I64(4));
    assert_eq!(field(&field(&transactions[0], "aborts"), "write_conflict"), Value::I64(0));
}

#[test]
fn a_database_at_its_limit_refuses_writes_and_can_shrink() {
    let db = Database::with_options(&DatabaseOptions { tablet_count: 2, ..DatabaseOptions::default() });
    db.query("g.addV('a').property('name', 'first')").unwrap();
    let used = db.memory().total_bytes();
    all(&db, &format!("g.call('mangrove.config').with('memory_limit_bytes', {used})"));
    for write in ["g.addV('a')", "g.V().property('name', 'second')"] {
        let error = failure(&db, write);
        assert_eq!(error.kind(), ErrorKind::MemoryLimit);
        assert!(error.message().contains("reads and deletes go on"), "{error}");
    }
    assert_eq!(all(&db, "g.V().values('name')"), ["first".into()]);
    all(&db, "g.V().properties('name').drop()");
    all(&db, "g.V().drop()");
    assert_eq!(all(&db, "g.V().count()"), [Value::I64(0)]);
    all(&db, "g.call('mangrove.config').with('memory_limit_bytes', 0)");
    db.query("g.addV('a')").unwrap();
}

#[test]
fn a_query_of_its_own_is_run_again_after_a_conflict() {
    let db = Database::in_memory();
    db.query("g.addV('counter').property('n', 0)").unwrap();
    let add = db.prepare("g.V().hasLabel('counter').property('n', union(values('n'), constant(1)).sum())").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..50).for_each(|_| drop(db.run(&add, &Parameters::new()).unwrap())));
        }
    });
    assert_eq!(all(&db, "g.V().values('n')"), [Value::I32(100)]);
    let conflicts = db.transaction_counters().conflicts();
    assert_eq!(db.retry_count(), conflicts, "every conflict was followed by a retry");
}

#[test]
fn a_limit_on_the_age_of_snapshots_holds_where_nothing_is_written() {
    let db = people();
    let old = db.begin_read().unwrap();
    assert_eq!(old.query("g.V().count()").unwrap().collect().unwrap(), [3_i64.into()]);
    db.configure("max_snapshot_age_ms", &Value::I64(20)).unwrap();
    let outcome = (0..2_000).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(5));
        old.query("g.V().count()").and_then(|results| results.collect()).err()
    });
    let error = outcome.expect("a transaction far older than the limit is ended");
    assert_eq!(error.kind(), ErrorKind::Expired);
    assert!(error.message().contains("max_snapshot_age_ms") && error.message().contains("20"), "{error}");
    // The next one is young again.
    assert_eq!(all(&db, "g.V().count()"), [3_i64.into()]);
}
