//! Scripts of several statements: one transaction, with variables.

use mangrove::{Database, ErrorKind, Parameters, QueryOptions, Result, Value};

fn run_with(db: &Database, script: &str, parameters: &Parameters) -> Result<Vec<Value>> {
    db.run_script(&db.prepare_script(script)?, parameters, &QueryOptions::default())?.collect()
}

fn run(db: &Database, script: &str) -> Result<Vec<Value>> {
    run_with(db, script, &Parameters::new())
}

#[track_caller]
fn check(db: &Database, script: &str, expected: &[Value]) {
    assert_eq!(run(db, script).unwrap_or_else(|error| panic!("{script}: {error}")), expected, "{script}");
}

#[track_caller]
fn check_error(db: &Database, script: &str, kind: ErrorKind, begins: &str) {
    let error = run(db, script).map(|_| ()).unwrap_err();
    assert!(error.message().starts_with(begins), "{script}: {error}");
    assert_eq!(error.kind(), kind, "{script}: {error}");
}

const TWO_WHO_KNOW: &str = "
    a = g.addV('person').property('name', 'ada').next() // the first
    b = g.addV('person').property('name', 'bob').next(); c = a
    g.addE('knows').from(c).to(b).property('since', year).iterate()
    g.V(a).out('knows').values('name')";

fn two() -> Database {
    let db = Database::in_memory();
    let parameters = Parameters::from([("year".into(), Value::I32(1999))]);
    assert_eq!(run_with(&db, TWO_WHO_KNOW, &parameters).unwrap(), [Value::from("bob")]);
    db
}

#[test]
fn variables_hold_elements_and_values_for_the_statements_that_follow() {
    let db = two();
    assert_eq!(db.transaction_counters().commits, 1, "one transaction");
    check(&db, "g.E().values('since')", &[Value::I32(1999)]);
    check(&db, "e = g.E().next(); g.E(e).inV().values('name')", &["bob".into()]);
    check(&db, "names = g.V().values('name').order().toList(); names", &["ada".into(), "bob".into()]);
    check(&db, "everyone = g.V().toList(); g.V(everyone).count()", &[Value::I64(2)]);
    check(&db, "n = g.V().count().next(); g.inject(n, n)", &[Value::I64(2), Value::I64(2)]);
    check(&db, "two = g.V().values('name').order().next(2); g.V().has('name', within(two)).count()", &[2i64.into()]);
    check(&db, "there = g.V().hasNext(); g.inject(there)", &[Value::Bool(true)]);
    check(&db, "limit = 1; limit = 2; g.inject(limit)", &[Value::I32(2)]);
    check(&db, "x = [7, 'y']", &[Value::I32(7), "y".into()]);
    check(&db, "s = g.inject(1, 1, 2).toSet(); g.inject(s).unfold().count()", &[2i64.into()]);
    check(&db, "v = g.V().has('name', 'ada').next(); g.V().where(__.out().is(v)).count()", &[0i64.into()]);
}

#[test]
fn the_last_statement_has_the_results_and_none_is_an_answer() {
    let db = two();
    check(&db, "g.V().count(); g.E().count()", &[1i64.into()]);
    check(&db, "", &[]);
    check(&db, "g.V().hasNext()", &[true.into()]);
    check(&db, "g.V().has('name', 'eve').hasNext()", &[false.into()]);
    check(&db, "g.V().has('name', 'eve').tryNext()", &[]);
    check(&db, "g.V().count(); g.addV('x').iterate()", &[]);
    check(&db, "g.V().hasLabel('x').count()", &[1i64.into()]);
}

#[test]
fn a_statement_that_fails_takes_all_of_them_back_and_is_named() {
    let db = two();
    let failing = "g.addV('x').iterate()\ng.addV('x').iterate(); g.V().values('name').sum()";
    check_error(&db, failing, ErrorKind::Evaluation, "statement 3 (line 2, column 24): ");
    check(&db, "g.V().hasLabel('x').count()", &[0i64.into()]);
    let none = "a = g.V().has('name', 'eve').next();\n g.V(a)";
    check_error(&db, none, ErrorKind::Evaluation, "statement 1 (line 1, column 1): next() has no result");
    check_error(&db, "a = b; g.V()", ErrorKind::InvalidArgument, "statement 1 (line 1, column 1): the variable `b`");
    check_error(&db, "a = 1; g.V().has(a)", ErrorKind::InvalidArgument, "statement 2 (line 1, column 8): ");
    check_error(&db, "g.V(); gsi.V()", ErrorKind::Unsupported, "statement 2 (line 1, column 8): a script is one");
    // A script with a mistake is refused before any of it runs.
    check_error(&db, "g.addV('x').iterate(); g.V().frobnicate()", ErrorKind::Unsupported, "line 1, column 30: unknown");
    check(&db, "g.V().hasLabel('x').count()", &[0i64.into()]);
}

#[test]
fn a_script_may_end_its_transaction_itself() {
    let db = two();
    check(
        &db,
        "g.addV('x').iterate(); g.tx().rollback(); g.addV('y').iterate(); g.tx().commit(); g.V().count()",
        &[3i64.into()],
    );
    check_error(
        &db,
        "g.addV('z').iterate(); g.tx().commit(); g.addV('z').fail()",
        ErrorKind::Evaluation,
        "statement 3",
    );
    check(&db, "g.V().hasLabel('x', 'z').count()", &[1i64.into()]);
}

#[test]
fn in_a_transaction_it_is_part_of_that() {
    let db = two();
    let tx = db.begin().unwrap();
    let options = QueryOptions::default();
    let script = db.prepare_script("a = g.addV('x').next(); g.V(a).label()").unwrap();
    assert_eq!(script.source(), "g");
    let results = tx.run_script(&script, &Parameters::new(), &options).unwrap().collect().unwrap();
    assert_eq!(results, [Value::from("x")]);
    let ending = db.prepare_script("g.V(); g.tx().commit()").unwrap();
    let error = tx.run_script(&ending, &Parameters::new(), &options).map(|_| ()).unwrap_err();
    assert!(error.message().starts_with("statement 2 (line 1, column 8): the script runs in a transaction"), "{error}");
    tx.rollback();
    check(&db, "g.V().count()", &[2i64.into()]);
}

#[test]
fn a_conflict_runs_the_whole_script_again() {
    let db = Database::in_memory();
    run(&db, "g.addV('counter').property('n', 0).iterate()").unwrap();
    let step = "n = g.V().hasLabel('counter').values('n').next()
        g.V().hasLabel('counter').property('n', __.constant(n).math('_ + 1')).iterate()";
    let each = 50;
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let script = db.prepare_script(step).unwrap();
                let options = QueryOptions { retries: 1_000, ..QueryOptions::default() };
                for _ in 0..each {
                    db.run_script(&script, &Parameters::new(), &options).unwrap();
                }
            });
        }
    });
    check(&db, "g.V().hasLabel('counter').values('n')", &[Value::F64(f64::from(2 * each))]);
}
