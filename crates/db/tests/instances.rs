//! Consecutive runs of a prepared query: nothing of one run reaches another.
//!
//! (`differential.rs` does the same with random queries.)

use std::sync::atomic::Ordering;

use mangrove::{Database, ErrorKind, Parameters, Prepared, QueryLimits, QueryOptions, Value};

fn people() -> Database {
    let db = Database::in_memory();
    let script = "g.addV('person').property(id, 1).property('name', 'ada').as('a').\
                  addV('person').property(id, 2).property('name', 'bob').as('b').\
                  addV('person').property(id, 3).property('name', 'cleo').as('c').\
                  addE('knows').from('a').to('b').addE('knows').from('a').to('c').addE('knows').from('b').to('c')";
    db.query(script).unwrap().collect().unwrap();
    db
}

fn with(name: &str, value: impl Into<Value>) -> Parameters {
    let mut parameters = Parameters::new();
    parameters.insert(name.into(), value.into());
    parameters
}

fn ask(db: &Database, prepared: &Prepared, parameters: &Parameters) -> Vec<Value> {
    db.run(prepared, parameters).unwrap().collect().unwrap()
}

fn names(names: &[&str]) -> Vec<Value> {
    names.iter().map(|name| Value::from(*name)).collect()
}

#[test]
fn parameters_belong_to_a_run() {
    let db = people();
    let prepared = db.prepare("g.V(x).out('knows').order().by('name').values('name')").unwrap();
    assert_eq!(ask(&db, &prepared, &with("x", 1)), names(&["bob", "cleo"]));
    assert_eq!(ask(&db, &prepared, &with("x", 2)), names(&["cleo"]));
    assert_eq!(ask(&db, &prepared, &with("x", Value::list(vec![2.into(), 1.into()]))), names(&["bob", "cleo", "cleo"]));
    assert_eq!(ask(&db, &prepared, &with("x", 3)), names(&[]));
    let error = db.run(&prepared, &Parameters::new()).err().unwrap();
    assert!(error.message().contains("`x` has no value"), "{error}");
    assert_eq!(ask(&db, &prepared, &with("x", 1)), names(&["bob", "cleo"]));
}

#[test]
fn tests_ranges_and_loops_are_made_anew_where_they_have_parameters() {
    let db = people();
    let prepared = db.prepare("g.V().has('name', P.gt(x)).order().by('name').values('name')").unwrap();
    assert_eq!(ask(&db, &prepared, &with("x", "b")), names(&["bob", "cleo"]));
    assert_eq!(ask(&db, &prepared, &with("x", "bz")), names(&["cleo"]));
    let prepared = db.prepare("g.V().order().by('name').limit(x).values('name')").unwrap();
    assert_eq!(ask(&db, &prepared, &with("x", 2)), names(&["ada", "bob"]));
    assert_eq!(ask(&db, &prepared, &with("x", 1)), names(&["ada"]));
    let prepared = db.prepare("g.V(1).repeat(out('knows').dedup()).emit().values('name')").unwrap();
    assert_eq!(ask(&db, &prepared, &Parameters::new()), ask(&db, &prepared, &Parameters::new()));
}

#[test]
fn side_effects_begin_empty() {
    let db = people();
    let prepared = db.prepare("g.V().groupCount('n').by('name').cap('n').unfold().count()").unwrap();
    let aggregate = db.prepare("g.V().values('name').aggregate('a').cap('a').count(local)").unwrap();
    for _ in 0..3 {
        assert_eq!(ask(&db, &prepared, &Parameters::new()), vec![Value::I64(3)]);
        assert_eq!(ask(&db, &aggregate, &Parameters::new()), vec![Value::I64(3)]);
    }
}

#[test]
fn each_run_sees_its_own_snapshot() {
    let db = people();
    let prepared = db.prepare("g.V().hasLabel('person').values('name')").unwrap();
    let before = db.begin_read().unwrap();
    assert_eq!(ask(&db, &prepared, &Parameters::new()).len(), 3);
    db.query("g.addV('person').property('name', 'dan')").unwrap().collect().unwrap();
    assert_eq!(ask(&db, &prepared, &Parameters::new()).len(), 4);
    assert_eq!(before.run(&prepared, &Parameters::new()).unwrap().collect().unwrap().len(), 3);
    before.commit().unwrap();
    assert_eq!(db.transaction_counters().active, 0, "an idle instance holds no transaction");
}

#[test]
fn runs_overlap() {
    let db = people();
    let prepared = db.prepare("g.V(x).union(values('name'), out('knows').order().by('name').values('name'))").unwrap();
    for _ in 0..3 {
        let mut slow = db.run(&prepared, &with("x", 1)).unwrap();
        let first = slow.next().unwrap().unwrap();
        assert_eq!(ask(&db, &prepared, &with("x", 2)), names(&["bob", "cleo"]));
        let rest: Vec<Value> = slow.map(Result::unwrap).collect();
        assert_eq!([vec![first], rest].concat(), names(&["ada", "bob", "cleo"]));
    }
}

#[test]
fn limits_and_cancellation_end_with_their_run() {
    let db = people();
    let prepared = db.prepare("g.V().order().by('name').values('name')").unwrap();
    let run = |options: &QueryOptions| db.run_with(&prepared, &Parameters::new(), options)?.collect();
    let whole = names(&["ada", "bob", "cleo"]);
    for _ in 0..3 {
        assert_eq!(run(&QueryOptions::default()).unwrap(), whole);
        let options = QueryOptions {
            limits: QueryLimits { memory_bytes: 8, ..QueryLimits::default() },
            ..QueryOptions::default()
        };
        assert_eq!(run(&options).unwrap_err().kind(), ErrorKind::MemoryLimit);
        assert_eq!(run(&QueryOptions::default()).unwrap(), whole);
        let options = QueryOptions::default();
        options.cancel.store(true, Ordering::Relaxed);
        assert_eq!(run(&options).unwrap_err().kind(), ErrorKind::Cancelled);
        drop(db.run(&prepared, &Parameters::new()).unwrap().next());
    }
    assert_eq!(db.transaction_counters().active, 0);
}

#[test]
fn a_prepared_query_serves_several_databases() {
    let (one, two) = (people(), Database::in_memory());
    // The same names get other numbers here.
    two.query("g.addV('thing').property('weight', 1).property('name', 'rock')").unwrap().collect().unwrap();
    let prepared = one.prepare("g.V().hasLabel('person', 'thing').order().by('name').values('name')").unwrap();
    for _ in 0..3 {
        assert_eq!(ask(&one, &prepared, &Parameters::new()), names(&["ada", "bob", "cleo"]));
        assert_eq!(ask(&two, &prepared, &Parameters::new()), names(&["rock"]));
    }
}

#[test]
fn a_new_index_is_used_and_a_dropped_one_is_not() {
    let db = people();
    let prepared = db.prepare("g.V().has('person', 'name', x).id()").unwrap();
    let ask = || ask(&db, &prepared, &with("x", "bob"));
    assert_eq!(ask(), vec![Value::I32(2)]);
    let index = db.create_index(Some("person"), "name", false, false).unwrap();
    assert_eq!(ask(), vec![Value::I32(2)]);
    assert!(db.explain("g.V().has('person', 'name', x).id()").unwrap().contains("index"));
    db.drop_index(index).unwrap();
    assert_eq!(ask(), vec![Value::I32(2)]);
}
