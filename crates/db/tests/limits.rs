//! Limits: a query that exceeds one ends alone, with an error that names the limit, and the database goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mangrove::{Database, DatabaseOptions, Error, ErrorKind, Limits, Parameters, QueryOptions, Result, Value};

/// A cycle of `count` vertices with a chord from each, so that walks on it do not end.
fn cycle(count: i64) -> Database {
    let database = Database::with_options(&DatabaseOptions { executor_count: 1, ..DatabaseOptions::default() });
    let catalog = database.catalog();
    let [node, next, chord] = ["node", "next", "chord"].map(|label| catalog.intern_label_text(label));
    let tx = database.begin().unwrap();
    let ids: Vec<_> = (0..count).map(Into::into).collect();
    let vertices = tx.insert_vertices(node, &ids).unwrap();
    let numbers: Vec<_> = vertices.iter().zip(0..count).map(|(v, n)| (*v, Value::I64(n))).collect();
    tx.set_vertex_property("n", &numbers).unwrap();
    let at = |n: usize| vertices[n % vertices.len()];
    for (label, step) in [(next, 1), (chord, 7)] {
        let ends: Vec<_> = (0..vertices.len()).map(|n| (at(n), at(n + step))).collect();
        tx.insert_edges(label, &ends).unwrap();
    }
    tx.commit().unwrap();
    database
}

fn run(database: &Database, script: &str, options: &QueryOptions) -> Result<Vec<Value>> {
    database.run_with(&database.prepare(script)?, &Parameters::new(), options)?.collect()
}

fn run_shared(database: &Database, script: &str, options: &QueryOptions) -> Result<usize> {
    let mut count = 0;
    // Nothing of it on this thread: that is `run`.
    let options = &QueryOptions { inline_messages: 0, ..options.clone() };
    database.run_shared(&database.prepare(script)?, &Parameters::new(), options, &mut |batch| {
        count += batch.len();
        Ok(())
    })?;
    Ok(count)
}

/// Both ways fail with the same kind, and the database answers afterwards.
#[track_caller]
fn check_fails(database: &Database, script: &str, options: &QueryOptions, kind: ErrorKind) -> Error {
    let inline = run(database, script, options).map(|results| results.len()).expect_err(script);
    assert_eq!(inline.kind(), kind, "{script}: {inline}");
    let shared = run_shared(database, script, options).expect_err(script);
    assert_eq!(shared.kind(), kind, "{script} on executors: {shared}");
    let again = run(database, "g.V().count()", &QueryOptions::default()).unwrap();
    assert!(matches!(again[..], [Value::I64(n)] if n > 0));
    inline
}

const ENDLESS: &str = "g.V().repeat(out('next')).until(constant(1).is(2)).count()";

#[test]
fn a_query_over_its_time_limit_ends() {
    let database = cycle(100);
    let options = |nanos| QueryOptions {
        limits: Limits { time_nanos: Some(nanos), ..Limits::default() },
        ..QueryOptions::default()
    };
    let error = check_fails(&database, ENDLESS, &options(20_000_000), ErrorKind::Timeout);
    assert!(error.message().contains("20 ms"), "{error}");
    // The limit that the traversal names counts too; the shorter one holds.
    let named = ENDLESS.replacen("g.", "g.with('evaluationTimeout', 10).", 1);
    let error = check_fails(&database, &named, &options(60_000_000_000), ErrorKind::Timeout);
    assert!(error.message().contains("10 ms"), "{error}");
    // Zero names no limit: that of the options holds.
    let named = ENDLESS.replacen("g.", "g.with('evaluationTimeout', 0).", 1);
    let error = check_fails(&database, &named, &options(20_000_000), ErrorKind::Timeout);
    assert!(error.message().contains("20 ms"), "{error}");
}

#[test]
fn every_operator_that_holds_rows_is_held_to_the_memory_limit() {
    let database = cycle(4_000);
    let limits = Limits { memory_bytes: 60_000, ..Limits::default() };
    let options = QueryOptions { limits, ..QueryOptions::default() };
    for script in [
        "g.V().order().by('n')",
        "g.V().fold()",
        "g.V().group().by('n')",
        "g.V().groupCount().by('n')",
        "g.V().dedup()",
        "g.V().dedup().by('n')",
        "g.V().aggregate('x').count()",
        "g.V().barrier().count()",
        "g.V().values('n').tail(3900)",
        "g.V().repeat(out()).times(2)",
        "g.V().as('a').out().path().fold()",
        "g.V().local(out().fold()).fold()",
        "g.V().as('a').property('n', 0).select('a')",
        "g.V().addE('again')",
        "g.inject(1).local(V().fold()).count()",
    ] {
        let error = check_fails(&database, script, &options, ErrorKind::MemoryLimit);
        assert!(error.message().contains("60000 bytes"), "{script}: {error}");
    }
}

#[test]
fn what_streams_needs_little_memory() {
    let database = cycle(20_000);
    let limits = Limits { memory_bytes: 400_000, ..Limits::default() };
    let options = QueryOptions { limits, ..QueryOptions::default() };
    // What an instance held is given back when it ends, and what no result needs is dropped on the way.
    for (script, count) in [
        ("g.V().out().out().values('n')", 80_000),
        ("g.V().local(out().fold())", 20_000),
        ("g.V().local(out().groupCount().by('n'))", 20_000),
        ("g.V().local(out().order().by('n'))", 40_000),
        ("g.V().local(out().dedup())", 40_000),
        ("g.V().order().by('n', desc).limit(10)", 10),
        ("g.V().tail(10)", 10),
        ("g.V().where(out().has('n', gte(0)))", 20_000),
        ("g.V().project('n', 'out').by('n').by(out().count())", 20_000),
        ("g.V().limit(0)", 0),
    ] {
        let mut results = database.run_with(&database.prepare(script).unwrap(), &Parameters::new(), &options).unwrap();
        let mut found = 0;
        while let Some(batch) = results.next_batch().unwrap_or_else(|e| panic!("{script}: {e}")) {
            found += batch.iter().map(|(_, times)| times).sum::<u64>();
        }
        assert_eq!(found, count, "{script}");
    }
}

#[test]
fn a_cancelled_query_ends() {
    let database = cycle(100);
    let cancel = Arc::new(AtomicBool::new(true));
    let options = QueryOptions { cancel: cancel.clone(), ..QueryOptions::default() };
    check_fails(&database, ENDLESS, &options, ErrorKind::Cancelled);
    cancel.store(false, Ordering::Relaxed);
    // Cancelled by the reader, between two results.
    let prepared = database.prepare("g.V().repeat(out()).emit()").unwrap();
    let mut results = database.run_with(&prepared, &Parameters::new(), &options).unwrap();
    results.next().unwrap().unwrap();
    cancel.store(true, Ordering::Relaxed);
    let error = results.find_map(|result| result.err()).expect("the walk has no end of its own");
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert!(results.next().is_none(), "nothing comes after an error");
}

#[test]
fn a_reader_that_leaves_ends_its_query() {
    let database = cycle(100);
    let prepared = database.prepare("g.V().repeat(out()).emit()").unwrap();
    let options = QueryOptions { inline_messages: 0, ..QueryOptions::default() };
    let error = database.run_shared(&prepared, &Parameters::new(), &options, &mut |_| Err(Error::invalid("enough")));
    assert_eq!(error.unwrap_err().message(), "enough");
    // There is one executor: it answers only if the endless query has let go of it.
    assert_eq!(run_shared(&database, "g.V().limit(3)", &QueryOptions::default()).unwrap(), 3);
}

#[test]
fn a_dropped_stream_lets_go_of_its_transaction() {
    let database = cycle(100);
    let tx = database.begin().unwrap();
    let mut results = tx.query("g.V().repeat(out()).emit()").unwrap();
    results.next().unwrap().unwrap();
    drop(results);
    tx.query("g.V(1).property('n', 5)").unwrap().collect().unwrap();
    tx.commit().expect("no stream reads this transaction any more");
}

#[test]
fn a_loop_cannot_wrap_its_objects_without_end() {
    let database = cycle(10);
    let options = QueryOptions::default();
    for script in [
        "g.inject(1).repeat(map(fold())).times(100000)",
        "g.inject(1).repeat(project('a', 'b')).times(100000)",
        "g.inject(1).repeat(path()).times(100000)",
        "g.inject(1).repeat(map(groupCount())).times(100000)",
    ] {
        let error = check_fails(&database, script, &options, ErrorKind::Evaluation);
        assert!(error.message().contains("nests"), "{script}: {error}");
    }
}

#[test]
fn the_longest_chain_may_wrap_an_object_at_every_step() {
    let database = cycle(10);
    let chain = |count: usize| format!("g.inject(1){}.count(local)", ".fold()".repeat(count));
    let options = QueryOptions::default();
    assert_eq!(run_shared(&database, &chain(256), &options).unwrap(), 1);
    let both = format!("g.union(inject(1){0}, inject(1){0}).dedup().count()", ".fold()".repeat(256));
    assert_eq!(run(&database, &both, &options).unwrap(), vec![Value::I64(1)]);
    let error = run_shared(&database, &chain(257), &options).unwrap_err();
    assert!(error.message().contains("collections of collections more than 256 deep"), "{error}");
    let error = run_shared(&database, &format!("g.V(){}", ".out()".repeat(5_000)), &options).unwrap_err();
    assert!(error.message().contains("more than 4096 operators"), "{error}");
}

/// Whatever makes values of values, deep or doubled, ends in an error that says so: everything that walks a value (drop,
/// comparison, encoding) does it by recursion.
#[test]
fn values_nest_only_so_deep() {
    let database = cycle(3);
    let deep = "nests more than 256 deep";
    for (script, message) in [
        (format!("g.inject(1){}", ".fold()".repeat(4_000)), "collections of collections more than 256 deep"),
        (format!("g.inject(1){}", ".tree()".repeat(4_000)), deep),
        ("g.inject(1).repeat(local(fold())).times(4000)".into(), deep),
        ("g.withSack(1).inject(1).repeat(sack(assign).by(sack().fold())).times(4000).sack()".into(), deep),
        ("g.inject(1).repeat(sideEffect(cap('x').aggregate('x'))).times(4000).cap('x')".into(), deep),
        ("g.inject(1).repeat(sideEffect(cap('x').group('x').by(constant('k')))).times(4000).cap('x')".into(), deep),
        ("g.inject(1).repeat(sideEffect(cap('x').groupCount('x'))).times(4000).cap('x')".into(), deep),
        ("g.inject(1).as('a').repeat(map(select('a').fold()).as('a')).times(4000).path()".into(), deep),
        (format!("g.inject(1){}", ".project('a', 'b').by().by()".repeat(40)), "collections; return its parts"),
        (format!("g.inject(1).math('1{}')", "+1".repeat(100_000)), "more than 1000 operands"),
    ] {
        let Err(error) = run(&database, &script, &QueryOptions::default()) else { panic!("{script:.80} has a result") };
        assert!(error.message().contains(message), "{script:.80}: {error}");
    }
}

/// As a session may keep a result and wrap it in every request.
#[test]
fn parameters_nest_only_so_deep() {
    let database = cycle(3);
    let wrapped = |times| (0..times).fold(Value::I64(1), |value, _| Value::list(vec![value]));
    let given = |times| {
        let parameters: Parameters = [("x".into(), wrapped(times))].into_iter().collect();
        database.run(&database.prepare("g.inject(x).count()").unwrap(), &parameters).and_then(|found| found.collect())
    };
    assert_eq!(given(256).unwrap(), vec![Value::I64(1)]);
    assert!(given(257).unwrap_err().message().contains("the value of `x` nests more than 256 deep"));
}

/// `limit(1)` in a traversal that runs for each row ends the search for that row.
#[test]
fn a_search_ends_with_the_instance_that_it_is_for() {
    let database = cycle(50_000);
    let rows_out = |script: &str, operator: &str| -> u64 {
        let text = match &run(&database, &format!("{script}.profile()"), &QueryOptions::default()).unwrap()[..] {
            [Value::String(text)] => text.to_string(),
            other => panic!("{script} gave {other:?}"),
        };
        let line = text.lines().rfind(|line| line.contains(operator)).unwrap_or_else(|| panic!("{operator}: {text}"));
        let numbers: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        numbers[2]
    };
    let found = rows_out("g.V().limit(100).local(__.V().limit(1)).count()", "vertices all");
    assert!(found < 500_000, "{found} vertices were looked for, of whom 100 were wanted");
}
