//! Transactions by Gremlin: the visibility of writes to later statements and to other transactions, and the ends of
//! transactions.

use mangrove::{Database, ErrorKind, Remedy, Result, Transaction, Value};

fn database(script: &str) -> Database {
    let database = Database::in_memory();
    database.query(script).unwrap().collect().unwrap();
    database
}

fn run(tx: &Transaction, script: &str) -> Result<Vec<Value>> {
    tx.query(script)?.collect()
}

fn count(database: &Database, script: &str) -> i64 {
    match database.query(script).unwrap().collect().unwrap()[..] {
        [Value::I64(n)] => n,
        ref other => panic!("{script} gave {other:?}"),
    }
}

#[track_caller]
fn check_count(database: &Database, script: &str, expected: i64) {
    assert_eq!(count(database, script), expected, "{script}");
}

#[test]
fn a_writing_step_does_not_meet_what_it_writes() {
    let database = database("g.addV().addV().addV()");
    // One vertex for each that was there, and the end.
    check_count(&database, "g.V().addV().count()", 3);
    check_count(&database, "g.V().count()", 6);
    check_count(&database, "g.V().as('a').addE('self').to('a').count()", 6);
    check_count(&database, "g.E().count()", 6);
}

#[test]
fn a_later_step_meets_it() {
    let database = Database::in_memory();
    check_count(&database, "g.addV('a').addV('b').V().count()", 2);
    check_count(&database, "g.V().drop().V().count()", 0);
    check_count(&database, "g.inject(1, 2, 3).addV('c').property('k', 7).V().has('k', 7).dedup().count()", 3);
    check_count(&database, "g.V().hasLabel('c').sideEffect(property('k', 8)).V().has('k', 8).dedup().count()", 3);
}

#[test]
fn writes_in_a_loop_are_seen_by_the_next_iteration() {
    let database = database("g.addV('n').property('k', 0)");
    // Every iteration makes one successor of the newest vertex.
    let script = "g.V().repeat(__.as('a').addV('n').addE('next').from('a').inV()).times(5).count()";
    check_count(&database, script, 1);
    check_count(&database, "g.V().has('k', 0).repeat(out('next')).emit().count()", 5);
    // Of 6 vertices, the first iteration makes 12, and the second adds one for each of them six times.
    check_count(&database, "g.inject(1).repeat(V().addV('m')).times(3).count()", 6 * 12 * 84);
}

#[test]
fn an_upsert_runs_one_instance_after_the_other() {
    let database = Database::in_memory();
    let upsert = "g.inject(1, 1).coalesce(V().has('k', 1), addV().property('k', 1)).count()";
    check_count(&database, upsert, 2);
    check_count(&database, "g.V().count()", 1);
    check_count(&database, upsert, 2);
    check_count(&database, "g.V().count()", 1);
    let many = "g.inject(1, 2, 1, 3, 2).as('x').coalesce(V().as('v').values('k').where(eq('x')).select('v'), \
                addV().property('k', select('x'))).count()";
    check_count(&database, many, 5);
    check_count(&database, "g.V().count()", 3);
}

#[test]
fn nothing_is_left_of_what_was_rolled_back() {
    let database = database("g.addV('a').property('k', 1)");
    let tx = database.begin().unwrap();
    run(&tx, "g.V().property('k', 2).addV('b').addE('e').to(V().hasLabel('a'))").unwrap();
    assert_eq!(run(&tx, "g.V().count()").unwrap(), vec![Value::I64(2)]);
    tx.rollback();
    check_count(&database, "g.V().has('k', 1).count()", 1);
    check_count(&database, "g.V().count()", 1);
    // Dropping is rolling back.
    let tx = database.begin().unwrap();
    run(&tx, "g.V().drop()").unwrap();
    drop(tx);
    check_count(&database, "g.V().count()", 1);
}

#[test]
fn a_statement_that_fails_leaves_nothing_in_a_query_of_its_own() {
    let database = database("g.addV('a').property('k', 1)");
    let error = database.query("g.V().property('k', 2).values('k').is(2).out()").map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Evaluation);
    check_count(&database, "g.V().has('k', 1).count()", 1);
}

#[test]
fn the_second_to_write_the_same_thing_conflicts() {
    let database = database("g.addV('a').property('k', 1)");
    let (first, second) = (database.begin().unwrap(), database.begin().unwrap());
    run(&first, "g.V().property('k', 2)").unwrap();
    let error = run(&second, "g.V().property('k', 3)").unwrap_err();
    assert_eq!((error.kind(), error.kind().remedy()), (ErrorKind::Conflict, Remedy::RetryTransaction));
    first.commit().unwrap();
    drop(second);
    check_count(&database, "g.V().has('k', 2).count()", 1);
    // Nor can a transaction that began before that commit overwrite it.
    let (late, other) = (database.begin().unwrap(), database.begin().unwrap());
    run(&other, "g.V().property('k', 4)").unwrap();
    other.commit().unwrap();
    assert_eq!(run(&late, "g.V().property('k', 5)").unwrap_err().kind(), ErrorKind::Conflict);
    // Edges of one vertex, on the other hand, are no conflict.
    let (a, b) = (database.begin().unwrap(), database.begin().unwrap());
    for tx in [&a, &b] {
        run(tx, "g.V().hasLabel('a').as('v').addE('self').to('v')").unwrap();
    }
    a.commit().unwrap();
    b.commit().unwrap();
    check_count(&database, "g.E().count()", 2);
}

#[test]
fn a_snapshot_stays_while_a_writer_commits() {
    let database = database("g.inject(1, 2, 3).addV('a').property('k', 1)");
    let reader = database.begin_read().unwrap();
    let mut stream = reader.query("g.V().values('k')").unwrap();
    assert_eq!(stream.next().unwrap().unwrap(), Value::I32(1));
    database.query("g.V().property('k', 2).addV('b')").unwrap().collect().unwrap();
    assert_eq!(stream.collect().unwrap(), vec![Value::I32(1); 2]);
    assert_eq!(run(&reader, "g.V().has('k', 1).count()").unwrap(), vec![Value::I64(3)]);
    assert_eq!(run(&database.begin_read().unwrap(), "g.V().has('k', 2).count()").unwrap(), vec![Value::I64(3)]);
}

#[test]
fn a_transaction_is_not_committed_while_its_results_are_read() {
    let database = database("g.inject(1, 2, 3).addV('a')");
    let tx = database.begin().unwrap();
    let stream = tx.query("g.V()").unwrap();
    let error = tx.commit().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("read or drop them"), "{error}");
    drop(stream);
}

#[test]
fn a_read_only_transaction_refuses_to_write() {
    let database = database("g.addV('a')");
    let tx = database.begin_read().unwrap();
    let error = run(&tx, "g.V().drop()").unwrap_err();
    assert!(error.message().contains("read-only"), "{error}");
    assert_eq!(run(&tx, "g.V().count()").unwrap(), vec![Value::I64(1)]);
}
