//! A request that fails half-way leaves nothing. If it has begun to write in a transaction, the transaction is rolled
//! back.
//!
//! For every request, the random test knows its changes and where it fails. It compares the graph with a map.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mangrove::{
    Database, Error, ErrorKind, LoadOptions, Parameters, QueryLimits, QueryOptions, Result, Transaction, UserId, Value,
};
use mangrove_testdata::{case_count, first_seed};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

fn ask(transaction: &Transaction, script: &str) -> Result<Vec<Value>> {
    transaction.query(script)?.collect()
}

fn answer(database: &Database, script: &str) -> Vec<Value> {
    database.query(script).unwrap().collect().unwrap()
}

/// A graph with the account number 1, whose numbers are unique.
fn accounts() -> Database {
    let database = Database::in_memory();
    answer(&database, "g.addV('acct').property(T.id, 1).property('no', '1').property('bal', 100)");
    answer(&database, "g.call('mangrove.index.create').with('label', 'acct').with('key', 'no').with('unique', true)");
    database
}

const ALL: &str = "g.V().hasLabel('acct').order().by(T.id).valueMap('no', 'bal')";

/// Checks that the transaction refuses every call and names the first error.
#[track_caller]
fn assert_failed(transaction: Transaction, words: &str) {
    let later = [ask(&transaction, "g.V().count()"), ask(&transaction, "g.addV('acct')")];
    for error in later.map(|outcome| outcome.unwrap_err()).into_iter().chain([transaction.commit().unwrap_err()]) {
        assert_eq!((error.kind(), error.reason()), (ErrorKind::Closed, Some("failed")), "{error}");
        assert!(error.message().contains(words) && error.message().contains("roll back"), "{error}");
    }
}

#[test]
fn a_statement_that_fails_after_a_write_takes_its_transaction_along() {
    for script in [
        // The vertex is added before its number is refused.
        "g.addV('acct').property('bal', 7).property('no', '1')",
        // Another vertex has changed before.
        "g.V(1).property('bal', 0).addV('acct').property('no', '1')",
        // The mergeV() of one traverser has written, the next one is refused.
        "g.inject(2, 1).as('i').mergeV([(T.label): 'acct', (T.id): 5]).select('i').addV('acct').property(T.id, select('i'))",
        "g.addV('acct').property('no', '1').profile()",
    ] {
        let database = accounts();
        let before = answer(&database, ALL);
        let transaction = database.begin().unwrap();
        ask(&transaction, "g.addV('acct').property('no', '2')").unwrap();
        let error = ask(&transaction, script).unwrap_err();
        assert_failed(transaction, error.message());
        assert_eq!(answer(&database, ALL), before, "{script}");
    }
}

#[test]
fn a_request_that_fails_before_it_writes_leaves_its_transaction_as_it_was() {
    let database = accounts();
    let transaction = database.begin().unwrap();
    ask(&transaction, "g.addV('acct').property('no', '2')").unwrap();
    for script in ["g.V().values('no').sum()", "g.V().nosuch()", "g.V(1).fail().property('bal', 1)"] {
        ask(&transaction, script).unwrap_err();
    }
    assert_eq!(ask(&transaction, "g.V().count()").unwrap(), [Value::I64(2)]);
    transaction.commit().unwrap();
    assert_eq!(answer(&database, "g.V().count()"), [Value::I64(2)]);
}

#[test]
fn a_typed_write_of_many_is_whole_or_ends_the_transaction() {
    let database = accounts();
    let label = database.catalog().intern_label_text("acct");
    let transaction = database.begin().unwrap();
    let error = transaction.insert_vertices(label, &[UserId::int(2), UserId::int(1)]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DuplicateId);
    assert_failed(transaction, error.message());
    // Refused before anything was written.
    let transaction = database.begin().unwrap();
    transaction.insert_vertices(label, &[UserId::int(1), UserId::int(2)]).unwrap_err();
    transaction.insert_vertices(label, &[UserId::int(3)]).unwrap();
    transaction.commit().unwrap();
    assert_eq!(answer(&database, "g.V().count()"), [Value::I64(2)]);
}

#[test]
fn the_statements_of_a_script_are_one_request() {
    let database = accounts();
    let transaction = database.begin().unwrap();
    let script = database
        .prepare_script("a = g.addV('acct').next()\n g.V(a).values('none').fold().sum().math('_/0')\n g.fail()");
    // A script that cannot be planned is refused before it runs.
    assert!(script.is_err());
    let script = database.prepare_script("a = g.addV('acct').next()\n g.V().values('no').sum()").unwrap();
    let error = transaction.run_script(&script, &Parameters::new(), &QueryOptions::default()).map(drop).unwrap_err();
    assert!(error.message().starts_with("statement 2"), "{error}");
    assert_failed(transaction, error.message());
    assert_eq!(answer(&database, "g.V().count()"), [Value::I64(1)]);
}

#[test]
fn limits_and_cancellation_are_failures_like_others() {
    let many = "g.inject(1).repeat(union(identity(), identity())).times(14).addV('n').property('text', 'many').fold()";
    let database = accounts();
    let cancelled = Arc::new(AtomicBool::new(false));
    let limited = QueryOptions {
        limits: QueryLimits { memory_bytes: 512 << 10, ..QueryLimits::default() },
        ..QueryOptions::default()
    };
    let watched = QueryOptions { cancel: cancelled.clone(), ..QueryOptions::default() };
    let prepared = database.prepare(many).unwrap();
    let transaction = database.begin().unwrap();
    let mark = transaction.write_mark();
    let error = transaction.run_with(&prepared, &Parameters::new(), &limited).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::MemoryLimit, "{error}");
    assert!(transaction.fail_since(mark, &error), "the limit was met after the first vertices were written");
    assert_failed(transaction, error.message());
    // The caller cancels when the first results come.
    let transaction = database.begin().unwrap();
    let prepared = database.prepare("g.inject(1).repeat(union(identity(), identity())).times(14).addV('n')").unwrap();
    let outcome = transaction.run_shared(&prepared, &Parameters::new(), &watched, &mut |_| {
        cancelled.store(true, Ordering::Relaxed);
        Ok(())
    });
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
    assert_failed(transaction, error.message());
    assert_eq!(answer(&database, "g.V().count()"), [Value::I64(1)]);
}

#[test]
fn results_that_are_not_taken_end_the_query_before_the_error_is_returned() {
    let database = accounts();
    for turn in 0..20 {
        let options = QueryOptions { inline_messages: turn % 2 * 64, ..QueryOptions::default() };
        let prepared = database
            .prepare("g.inject(1).repeat(union(identity(), identity())).times(13).V(1).property('bal', 7)")
            .unwrap();
        let transaction = database.begin().unwrap();
        let refused =
            transaction.run_shared(&prepared, &Parameters::new(), &options, &mut |_| Err(Error::invalid("enough")));
        assert_eq!(refused.unwrap_err().message(), "enough");
        // The request holds no claim, although its transaction is still open.
        let other = database.begin().unwrap();
        ask(&other, "g.V(1).property('bal', 8)").unwrap();
        other.commit().unwrap();
        assert_failed(transaction, "enough");

        // After a reading query that was abandoned, the transaction commits.
        let prepared = database.prepare("g.inject(1).repeat(union(identity(), identity())).times(13)").unwrap();
        let transaction = database.begin().unwrap();
        ask(&transaction, "g.V(1).property('bal', 9)").unwrap();
        let refused =
            transaction.run_shared(&prepared, &Parameters::new(), &options, &mut |_| Err(Error::invalid("enough")));
        assert_eq!(refused.unwrap_err().message(), "enough");
        transaction.commit().unwrap();
        assert_eq!(answer(&database, "g.V(1).values('bal')"), [Value::I32(9)]);
    }
}

#[test]
fn a_rollback_beside_an_open_stream_gives_claims_back_at_once() {
    let database = accounts();
    for commits in [false, true] {
        let transaction = database.begin().unwrap();
        ask(&transaction, "g.V(1).property('bal', 5)").unwrap();
        let mut stream = transaction.query("g.inject(1).repeat(union(identity(), identity())).times(13).V(1)").unwrap();
        assert!(stream.next().unwrap().is_ok());
        match commits {
            true => assert!(transaction.commit().unwrap_err().message().contains("still being read")),
            false => transaction.rollback(),
        }
        let other = database.begin().unwrap();
        ask(&other, "g.V(1).property('bal', 6)").unwrap();
        other.commit().unwrap();
        drop(stream);
        assert_eq!(answer(&database, "g.V(1).values('bal')"), [Value::I32(6)]);
    }
}

/// The reader of the results panics, in the middle of a query that writes.
#[test]
fn a_panic_in_a_request_takes_its_transaction_along() {
    let database = accounts();
    let prepared = database.prepare("g.V(1).property('bal', 7)").unwrap();
    let transaction = database.begin().unwrap();
    let run = AssertUnwindSafe(|| {
        transaction
            .run_shared(&prepared, &Parameters::new(), &QueryOptions::default(), &mut |_| panic!("as the test says"))
    });
    assert!(catch_unwind(run).is_err());
    assert_failed(transaction, "panicked");
    assert_eq!(answer(&database, "g.V(1).values('bal')"), [Value::I32(100)]);
}

#[test]
fn a_load_in_a_transaction_is_whole_or_ends_it() {
    let folder = std::env::temp_dir().join(format!("mangrove-half-done-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("people.csv");
    // The second row has an id that is there: more rejects than are allowed.
    std::fs::write(&file, "~id:int,~label,name\n7,person,ada\n1,person,bob\n").unwrap();
    let database = accounts();
    let transaction = database.begin().unwrap();
    let options = LoadOptions { max_rejects: 0, ..LoadOptions::default() };
    let error = transaction.load(std::slice::from_ref(&file), &options).map(drop).unwrap_err();
    assert_failed(transaction, error.message());
    assert_eq!(answer(&database, "g.V().count()"), [Value::I64(1)]);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// The effect of a request on the balances; whether it fails, and whether it has written before.
struct Request {
    script: String,
    sets: Vec<(i64, i32)>,
    fails: Option<bool>,
}

fn request(rng: &mut SmallRng, known: &BTreeMap<i64, i32>) -> Request {
    let bal = rng.random_range(0..1_000);
    let known_id = known.keys().nth(rng.random_range(0..known.len())).copied().unwrap();
    let new_id = known.keys().last().unwrap() + 1;
    let (script, sets, fails): (String, Vec<(i64, i32)>, Option<bool>) = match rng.random_range(0..9) {
        0..3 => (format!("g.V({known_id}).property('bal', {bal})"), vec![(known_id, bal)], None),
        3 => (format!("g.addV('a').property(T.id, {new_id}).property('bal', {bal})"), vec![(new_id, bal)], None),
        4 => (format!("g.V({known_id}).property('bal', {bal}).fail('stop')"), vec![], Some(true)),
        5 => (format!("g.addV('a').property('bal', {bal}).fail('stop')"), vec![], Some(true)),
        6 => (format!("g.V({known_id}).fail('stop').property('bal', {bal})"), vec![], Some(false)),
        7 => (format!("g.addV('a').property(T.id, {known_id})"), vec![], Some(false)),
        _ => ("g.V().values('bal').fold().asNumber()".into(), vec![], Some(false)),
    };
    Request { script, sets, fails }
}

#[test]
fn random_transactions_are_whole_whatever_fails_in_them() {
    let (mut committed, mut failed) = (0, 0);
    for seed in first_seed(0)..first_seed(0) + case_count(60) {
        let mut rng = SmallRng::seed_from_u64(seed);
        let database = Database::in_memory();
        answer(&database, "g.addV('a').property(T.id, 1).property('bal', 0)");
        let mut model = BTreeMap::from([(1_i64, 0_i32)]);
        for _ in 0..20 {
            let transaction = database.begin().unwrap();
            let (mut own, mut is_over) = (model.clone(), false);
            for _ in 0..rng.random_range(1..6) {
                let Request { script, sets, fails } = request(&mut rng, &own);
                let outcome = match rng.random_bool(0.5) {
                    true => ask(&transaction, &script).map(drop),
                    false => {
                        let script = database.prepare_script(&format!("g.V().count()\n {script}")).unwrap();
                        transaction.run_script(&script, &Parameters::new(), &QueryOptions::default()).map(drop)
                    }
                };
                assert_eq!(outcome.is_err(), is_over || fails.is_some(), "seed {seed}: {script}: {outcome:?}");
                own.extend(sets);
                is_over |= fails == Some(true);
            }
            match rng.random_bool(0.8) {
                true => {
                    assert_eq!(transaction.commit().is_err(), is_over, "seed {seed}");
                    (committed, failed) = (committed + u32::from(!is_over), failed + u32::from(is_over));
                    if !is_over {
                        model = own;
                    }
                }
                false => transaction.rollback(),
            }
            let now = answer(&database, "g.V().order().by(T.id).project('id', 'bal').by(T.id).by('bal')");
            let expected = model.iter().map(|(id, bal)| {
                Value::map(vec![(Value::from("id"), Value::I32(*id as i32)), (Value::from("bal"), Value::I32(*bal))])
            });
            assert_eq!(format!("{now:?}"), format!("{:?}", expected.collect::<Vec<_>>()), "seed {seed}");
        }
    }
    assert!(committed > 100 && failed > 100, "{committed} transactions were committed, {failed} failed");
}
