//! Limits: a query that exceeds one ends alone, with an error that names the limit, and the database goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mangrove::{Database, DatabaseOptions, Error, ErrorKind, Parameters, QueryLimits, QueryOptions, Result, Value};

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
    // No message runs on this thread; `run` does that.
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
        limits: QueryLimits { time_nanos: Some(nanos), ..QueryLimits::default() },
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
    let limits = QueryLimits { memory_bytes: 60_000, ..QueryLimits::default() };
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
        "g.E().subgraph('x').count()",
        "g.V().as('a').out().tree('x').count()",
        "g.V().order()",
        "g.V().sample(3900).count()",
        "g.inject(1).local(V().fold()).count()",
    ] {
        let error = check_fails(&database, script, &options, ErrorKind::MemoryLimit);
        assert!(error.message().contains("60000 bytes"), "{script}: {error}");
    }
}

#[test]
fn a_streamed_query_needs_little_memory() {
    let database = cycle(20_000);
    // Most of it is for the elements of one message of 1,024 results, with their properties.
    let limits = QueryLimits { memory_bytes: 1_200_000, ..QueryLimits::default() };
    let options = QueryOptions { limits, ..QueryOptions::default() };
    // A scope instance gives back its memory when it ends, and rows that no result needs are dropped early.
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

/// Rows move from one barrier to the next, and their charge with them. What is read again and again is held once.
#[test]
fn hostile_traversals_stay_within_their_limit() {
    let database = cycle(20_000);
    let limits = QueryLimits { memory_bytes: 6_000_000, ..QueryLimits::default() };
    let options = QueryOptions { limits, ..QueryOptions::default() };
    for (script, count) in [
        ("g.V().aggregate('x').limit(200).select('x').unfold().count()", 4_000_000),
        ("g.V().local(__.V().limit(1)).count()", 20_000),
        ("g.V().limit(50).local(__.V().order().by('n').limit(3)).count()", 150),
        ("g.V().order().by('n').barrier().order().by('n', desc).tail(15000).barrier().count()", 15_000),
        ("g.V().values('n').fold().as('l').unfold().limit(100).select('l').unfold().count()", 2_000_000),
        ("g.V().repeat(both()).times(3).count()", 1_280_000),
        ("g.V().group().by('n').by(count()).unfold().count()", 20_000),
    ] {
        assert_eq!(run(&database, script, &options).expect(script), [Value::I64(count)], "{script}");
    }
    for script in [
        "g.V().values('n').fold().as('l').product(select('l')).count(local)",
        "g.V().as('a').repeat(both()).times(6).path().count()",
        "g.V().values('n').fold().asString().as('s').repeat(concat(select('s'))).times(100).length()",
    ] {
        check_fails(&database, script, &options, ErrorKind::MemoryLimit);
    }
}

/// A search for edges holds those that it finds, and not all edges of the vertex.
#[test]
fn a_search_at_a_hub_is_charged_for_what_it_finds() {
    let database = Database::in_memory();
    let catalog = database.catalog();
    let [node, to] = ["node", "to"].map(|label| catalog.intern_label_text(label));
    let tx = database.begin().unwrap();
    let ids: Vec<_> = (0..30_000_i64).map(Into::into).collect();
    let vertices = tx.insert_vertices(node, &ids).unwrap();
    let ends: Vec<_> = vertices[1..].iter().map(|vertex| (vertices[0], *vertex)).collect();
    tx.insert_edges(to, &ends).unwrap();
    tx.commit().unwrap();
    let limits = QueryLimits { memory_bytes: 1_000_000, ..QueryLimits::default() };
    let options = QueryOptions { limits, ..QueryOptions::default() };
    let merge =
        |map: &str| run(&database, &format!("g.mergeE([(T.label): 'to', (Direction.OUT): 0{map}]).count()"), &options);
    assert_eq!(merge(", (Direction.IN): 29999").unwrap(), [Value::I64(1)]);
    assert_eq!(merge("").unwrap_err().kind(), ErrorKind::MemoryLimit);
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
    for (script, message) in [
        ("g.inject(1).repeat(map(fold())).times(100000)", "nests"),
        ("g.inject(1).repeat(project('a', 'b')).times(100000)", "repeated"),
        ("g.inject(1).repeat(path()).times(100000)", "repeated"),
        ("g.inject(1).repeat(map(groupCount())).times(100000)", "nests"),
    ] {
        let error = check_fails(&database, script, &options, ErrorKind::Evaluation);
        assert!(error.message().contains(message), "{script}: {error}");
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

/// Steps that nest values too deeply fail with an error that says so, because dropping, comparing and encoding a value
/// are recursive.
#[test]
fn values_nest_only_so_deep() {
    let database = cycle(3);
    let (deep, repeated) = ("nests more than 256 deep", "of which are repeated");
    for (script, message) in [
        (format!("g.inject(1){}", ".fold()".repeat(4_000)), "collections of collections more than 256 deep"),
        (format!("g.inject(1){}", ".tree()".repeat(4_000)), deep),
        ("g.inject(1).repeat(local(fold())).times(4000)".into(), deep),
        ("g.withSack(1).inject(1).repeat(sack(assign).by(sack().fold())).times(4000).sack()".into(), deep),
        ("g.inject(1).repeat(sideEffect(cap('x').aggregate('x'))).times(4000).cap('x')".into(), repeated),
        ("g.inject(1).repeat(sideEffect(cap('x').group('x').by(constant('k')))).times(4000).cap('x')".into(), repeated),
        ("g.inject(1).repeat(sideEffect(cap('x').groupCount('x'))).times(4000).cap('x')".into(), repeated),
        ("g.inject(1).as('a').repeat(map(select('a').fold()).as('a')).times(4000).path()".into(), deep),
        (format!("g.inject(1){}", ".project('a', 'b').by().by()".repeat(40)), repeated),
        (format!("g.inject(1).math('1{}')", "+1".repeat(100_000)), "more than 1000 operands"),
    ] {
        let Err(error) = run(&database, &script, &QueryOptions::default()) else { panic!("{script:.80} has a result") };
        assert!(error.message().contains(message), "{script:.80}: {error}");
    }
}

/// A session may keep a result and wrap it once more in every request.
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
        let results = run(&database, &format!("{script}.profile()"), &QueryOptions::default()).unwrap();
        let [Value::TraversalMetrics(metrics)] = &results[..] else { panic!("{script} gave {results:?}") };
        let found = metrics.flat().into_iter().rfind(|(_, one)| one.name.contains(operator));
        found.and_then(|(_, one)| one.count("traverserCount")).unwrap_or_else(|| panic!("{operator}: {metrics:?}"))
    };
    let found = rows_out("g.V().limit(100).local(__.V().limit(1)).count()", "vertices all");
    assert!(found < 500_000, "{found} vertices were looked for, of whom 100 were wanted");
}

#[test]
fn results_of_a_traversal_that_writes_are_held_to_the_memory_limit() {
    let database = cycle(500);
    let limits = QueryLimits { memory_bytes: 1_000_000, ..QueryLimits::default() };
    let options = QueryOptions { limits, ..QueryOptions::default() };
    let script = "g.addV('a').V().hasLabel('node').out().out().out().path()";
    assert_eq!(run(&database, "g.addV('a').V().hasLabel('node').id()", &options).unwrap().len(), 500);
    check_fails(&database, script, &options, ErrorKind::MemoryLimit);
    // Nothing of it was written.
    assert_eq!(run(&database, "g.V().hasLabel('a').count()", &options).unwrap(), [Value::I64(1)]);
}

/// Texts of 1,000 characters, another one for each vertex.
const LONG_TEXTS: &str = "g.V().map(id().asString().concat(__.constant(long)))";

/// With a text of 1,000 characters under the name `long`.
fn run_with_long(database: &Database, script: &str, options: &QueryOptions) -> Result<Vec<Value>> {
    let parameters: Parameters = [("long".into(), Value::from("a".repeat(1_000)))].into_iter().collect();
    database.run_with(&database.prepare(script)?, &parameters, options)?.collect()
}

#[test]
fn long_texts_in_aggregates_are_charged() {
    let database = cycle(4_000);
    let limits = |memory_bytes| QueryOptions {
        limits: QueryLimits { memory_bytes, ..QueryLimits::default() },
        ..QueryOptions::default()
    };
    for hold in [
        "fold().count(local)",
        "fold([], addAll).count(local)",
        "dedup().count()",
        "dedup().by(identity()).count()",
        "groupCount().count(local)",
        "group().by(count()).count(local)",
        "group().by(constant(1)).by(fold()).count(local)",
        "aggregate('x').cap('x').count(local)",
        "groupCount('x').cap('x').count(local)",
        "group('x').by().by(count()).cap('x').count(local)",
        "order().count()",
        "order().by(constant(1)).count()",
        "barrier().count()",
        "as('a').path().tree().count(local)",
        "map(identity().fold()).fold().count(local)",
        "map(project('k').by()).fold().count(local)",
        "map(project('k').by()).dedup().count()",
        "map(project('k').by()).order().by(select('k')).count()",
        "map(identity().fold()).barrier().count()",
    ] {
        let script = format!("{LONG_TEXTS}.{hold}");
        let error = run_with_long(&database, &script, &limits(3_000_000)).map(|found| found.len()).expect_err(&script);
        assert_eq!(error.kind(), ErrorKind::MemoryLimit, "{script}: {error}");
        run_with_long(&database, &script, &limits(50_000_000)).expect(&script);
    }
    // Values that are not kept do not count.
    for pass in ["count()", "asString().length().sum()", "length().fold(0, sum)"] {
        run_with_long(&database, &format!("{LONG_TEXTS}.{pass}"), &limits(3_000_000)).expect(pass);
    }
}

#[test]
fn a_value_of_a_function_is_charged_before_it_is_made() {
    let database = cycle(1_000);
    let limits = QueryLimits { memory_bytes: 64 << 20, ..QueryLimits::default() };
    let options = QueryOptions { limits, ..QueryOptions::default() };
    for make in [
        "fold().replace(Scope.local, 'a', long)",
        "fold().as('l').product(select('l'))",
        "project('k').by(replace('a', long))",
        "map(union(replace('a', long), identity()).fold())",
        "fold().conjoin(long).concat(__.identity(), __.identity()).split('')",
        "fold().asString().as('s').format('%{s}%{s}%{s}%{s}%{s}%{s}%{s}%{s}').split('')",
        "fold().as('l').map(select('l')).product(select('l')).index()",
    ] {
        let script = format!("{LONG_TEXTS}.{make}");
        let error = run_with_long(&database, &script, &options).map(|found| found.len()).expect_err(&script);
        assert_eq!(error.kind(), ErrorKind::MemoryLimit, "{script}: {error}");
    }
}

#[test]
fn a_batch_ends_early_where_its_values_are_large() {
    let database = cycle(1_000);
    let limits = QueryLimits { memory_bytes: 16 << 20, ..QueryLimits::default() };
    let options = QueryOptions { limits, ..QueryOptions::default() };
    // In all much more than that, of which a megabyte at a time is there.
    for script in [
        "limit(200).replace('a', long).length().sum()",
        "limit(200).constant(1).map(constant(long).replace('a', long)).length().sum()",
        "limit(200).as('t').map(format('%{t}').by(constant(long).replace('a', long))).length().sum()",
        "fold().as('l').unfold().limit(100).select('l').unfold().count()",
        "fold().as('l').unfold().select('l').reverse().count(local).sum()",
        "fold().as('l').unfold().select('l').limit(local, 999).count(local).sum()",
        "fold().as('l').unfold().select('l').dedup(local).count(local).sum()",
        "fold().as('l').unfold().limit(50).select('l').order(local).count(local).sum()",
        "fold().as('l').unfold().select('l').combine(select('l')).count(local).sum()",
    ] {
        let script = format!("{LONG_TEXTS}.{script}");
        run_with_long(&database, &script, &options).expect(&script);
    }
}

#[test]
fn a_text_has_a_limit_whichever_step_makes_it() {
    let database = cycle(10);
    // A million characters, a hundred times in a text.
    let long = "map(constant(long).replace('a', long).concat(__.constant(long)))";
    let hundred = "%{t}".repeat(100);
    for script in [
        format!("g.V().limit(1).{long}.as('t').select('t').format('{hundred}')"),
        format!("g.V().limit(1).{long}.as('t').select('t').project('a').by(format('{hundred}')).asString()"),
    ] {
        let error = run_with_long(&database, &script, &QueryOptions::default()).expect_err(&script);
        assert!(error.message().contains("format() would make"), "{script}: {error}");
    }
}

#[test]
fn maps_grow_in_a_sack_in_proportion() {
    let database = cycle(30_000);
    let script = "g.withSack([:]).V().group('x').by('n').cap('x').as('m').sack(addAll).by(select('m')).sack(addAll)\
                  .by(select('m')).sack().count(local)";
    assert_eq!(run(&database, script, &QueryOptions::default()).unwrap(), [Value::I64(30_000)]);
}

#[test]
fn numbers_have_a_limit_of_digits() {
    let database = cycle(10);
    for script in [
        // Squared again and again.
        "g.withSack(10000000000000000000000000000).V().limit(1).repeat(sack(mult).by(sack())).times(40).sack()",
        "g.inject(1).map(constant('9').repeat(as('s').concat(select('s'))).times(20)).asNumber()",
    ] {
        let error = run(&database, script, &QueryOptions::default()).expect_err(script);
        let message = error.message();
        assert!(message.contains("40000 digits") || message.contains("at most 20000"), "{script}: {error}");
    }
}

/// Every kind of step that makes a collection, repeated: each collection holds the one before twice.
#[test]
fn collections_that_hold_the_same_ones_again_and_again_are_refused() {
    let database = Database::in_memory();
    // This limit ends a query that is not refused in time.
    let options = QueryOptions {
        limits: QueryLimits { time_nanos: Some(30_000_000_000), ..QueryLimits::default() },
        ..QueryOptions::default()
    };
    let doubled = ".project('a','b').by().by()";
    let readers =
        [".dedup().count()", ".order()", ".group().count(local)", ".is(1)", ".asString()", "", ".count(local)"];
    let mut scripts: Vec<_> =
        readers.iter().map(|reader| format!("g.inject(1){}{reader}", doubled.repeat(34))).collect();
    for makes_twice in [
        ".union(identity(),identity()).fold()",
        ".local(union(identity(),identity()).fold())",
        ".repeat(project('a','b').by().by()).times(1)",
        ".group().by(identity()).by(identity())",
        ".as('a').map(union(select('a'),select('a')).fold())",
        ".fold().product(identity())",
        ".as('a').project('b').by().as('b').select('a','b')",
        ".as('a').path().as('b').path()",
        ".tree().as('t').project('x','y').by(select('t')).by(select('t'))",
    ] {
        scripts.push(format!("g.inject(1){}.dedup().count()", makes_twice.repeat(40)));
    }
    scripts.push(
        "g.withSack([]).inject(1)".to_owned()
            + &".sack(assign).by(project('a','b').by(sack()).by(sack()))".repeat(40)
            + ".sack().dedup()",
    );
    scripts.push("g.inject(1)".to_owned() + &".project('a','b').by().by().aggregate('x').cap('x')".repeat(40));
    for script in &scripts {
        let error = run(&database, script, &options).expect_err(script);
        let named = ["repeated", "deep"].iter().any(|word| error.message().contains(word));
        assert!(error.kind() == ErrorKind::Evaluation && named, "{error}: {script}");
    }
    // Much that is there once, and some that is there often, is no harm.
    let shared = "g.inject(1).repeat(union(identity(),identity())).times(14).fold().as('all').unfold().limit(500)\
                  .project('n','all').by().by(select('all')).fold().count(local)";
    assert_eq!(run(&database, shared, &options).unwrap(), [Value::I64(500)]);
}

/// One traverser with a path of 300,000 objects, which no operator keeps.
#[test]
fn a_path_counts_as_long_as_it_is() {
    let database = cycle(3);
    let script = "g.V().limit(1).repeat(out('next')).times(300000).simplePath().count()";
    let options = |memory_bytes| QueryOptions {
        limits: QueryLimits { memory_bytes, ..QueryLimits::default() },
        ..QueryOptions::default()
    };
    check_fails(&database, script, &options(16 << 20), ErrorKind::MemoryLimit);
    run(&database, script, &options(64 << 20)).unwrap();
}

/// A set of sets of sets: each has fifteen of the sixteen sets of the level below. Two that are made apart are compared
/// pair by pair, 120 times 120 times and so on.
fn set_of_sets(levels: u32) -> Value {
    let first: Vec<Value> = (0..16).map(Value::I32).collect();
    let level = |below: Vec<Value>, _| {
        let without =
            |n: usize| below.iter().enumerate().filter(move |(at, _)| *at != n).map(|(_, value)| value.clone());
        (0..16).map(|n| Value::Set(Arc::new(without(n).collect()))).collect()
    };
    (0..levels).fold(first, level).swap_remove(0)
}

#[test]
fn a_comparison_that_would_take_minutes_ends_with_its_query() {
    let database = cycle(10);
    let parameters: Parameters = ["x", "y"].map(|name| (name.into(), set_of_sets(5))).into_iter().collect();
    let limits = QueryLimits { time_nanos: Some(30_000_000), ..QueryLimits::default() };
    for script in [
        "g.inject(x).is(eq(y))",
        "g.inject(x).is(neq(y))",
        "g.inject(x).is(lt(y))",
        "g.inject(x).is(within([1, y]))",
        "g.inject(x).as('a').constant(y).where(eq('a'))",
        "g.inject(x).fold().as('a').constant(y).where(within('a'))",
        "g.inject(x).choose(identity()).option(y, constant(1))",
        "g.inject(x, y).dedup()",
        "g.inject(x, y).group().by().by(count())",
        "g.inject(x, y).groupCount()",
        "g.inject(x, y).order()",
        "g.inject(x, y).order().by(constant(1)).by()",
        "g.inject(x, y).max()",
        "g.inject(x, y).fold().order(local)",
        "g.inject(x, y).fold().dedup(local)",
        "g.inject(x, y).fold().max(local)",
        "g.inject(x, y).tree()",
        "g.inject(x).as('a').map(constant(y)).as('a').simplePath()",
    ] {
        for inline_messages in [0, QueryOptions::default().inline_messages] {
            let options = QueryOptions { limits, inline_messages, ..QueryOptions::default() };
            let query = database.prepare(script).unwrap();
            let outcome = database.run_with(&query, &parameters, &options).and_then(|results| results.collect());
            let error = outcome.map(|results| results.len()).expect_err(script);
            assert_eq!(error.kind(), ErrorKind::Timeout, "{script}: {error}");
        }
    }
    assert_eq!(run(&database, "g.V().count()", &QueryOptions::default()).unwrap(), [Value::I64(10)]);
}
