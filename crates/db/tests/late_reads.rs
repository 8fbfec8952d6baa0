//! Queries over a view whose reads are late: messages wait for what is not at hand, and the answers are the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mangrove::{
    Database, DatabaseOptions, Error, ErrorKind, Parameters, QueryLimits, QueryOptions, Result, Transaction, Value,
};
use mangrove_virtual_nodes::{Habits, LateView};

/// People in a ring: each knows the next three, and has a name and an age.
fn ring(people: usize) -> Database {
    ring_with(people, DatabaseOptions::default())
}

fn ring_with(people: usize, options: DatabaseOptions) -> Database {
    let database = Database::with_options(&options);
    let catalog = database.catalog();
    let (person, knows) = (catalog.intern_label_text("person"), catalog.intern_label_text("knows"));
    let transaction = database.begin().unwrap();
    let ids: Vec<_> = (0..people as i64).map(Into::into).collect();
    let all = transaction.insert_vertices(person, &ids).unwrap();
    let names: Vec<_> = all.iter().enumerate().map(|(n, v)| (*v, Value::from(format!("p{n}").as_str()))).collect();
    let ages: Vec<_> = all.iter().enumerate().map(|(n, v)| (*v, Value::I64(n as i64 % 90))).collect();
    transaction.set_vertex_property("name", &names).unwrap();
    transaction.set_vertex_property("age", &ages).unwrap();
    let next = |n: usize| (1..=3).map(move |d| (n, (n + d) % people));
    let ends: Vec<_> = (0..people).flat_map(next).map(|(from, to)| (all[from], all[to])).collect();
    let edges = transaction.insert_edges(knows, &ends).unwrap();
    let weights: Vec<_> = edges.iter().enumerate().map(|(n, e)| (*e, Value::I64(n as i64 % 7))).collect();
    transaction.set_edge_property("weight", &weights).unwrap();
    transaction.commit().unwrap();
    database
}

/// A transaction that reads late.
fn begin_late(database: &Database, make: impl FnOnce(LateView) -> LateView, habits: Habits, seed: u64) -> Late {
    let mut transaction = database.begin_read().unwrap();
    let mut view = None;
    transaction.read_instead(|whole| view.insert(Arc::new(make(LateView::new(whole, habits, seed)))).clone());
    Late { transaction, view: view.expect("the view was made") }
}

struct Late {
    transaction: Transaction,
    view: Arc<LateView>,
}

impl Late {
    /// Runs on executors from its first message on, and completes no read itself.
    fn run_on_executors(&self, traversal: &str, options: &QueryOptions) -> Result<Vec<(Value, u64)>> {
        let prepared = self.transaction.database().prepare(traversal).unwrap();
        let options = QueryOptions { inline_messages: 0, ..options.clone() };
        let mut all = Vec::new();
        self.transaction.run_shared(&prepared, &Parameters::new(), &options, &mut |batch| {
            all.extend(batch);
            Ok(())
        })?;
        Ok(all)
    }

    fn check_that_nothing_is_left(&self) {
        let counts = self.view.reader().counts();
        assert_eq!((counts.tickets, counts.pinned), (0, 0), "{counts:?}");
    }
}

fn sorted(results: Vec<(Value, u64)>) -> Vec<String> {
    let texts = results.iter().flat_map(|(value, times)| vec![format!("{value:?}"); *times as usize]);
    let mut texts: Vec<String> = texts.collect();
    texts.sort();
    texts
}

/// Operators ask for all that they read: a strict view refuses anything else.
const ASKING: [&str; 51] = [
    "g.V().count()",
    "g.E().count()",
    "g.V().hasLabel('person').count()",
    "g.V(1, 2, 3)",
    "g.V(1).out().out().values('name')",
    "g.V().has('age', 7).values('name')",
    "g.V().has('age', P.gt(80)).has('name', TextP.startingWith('p1')).id()",
    "g.V().hasLabel('person').has('age', 7).out('knows').has('age', 8).values('name')",
    "g.V().hasId(5).label()",
    "g.V().hasNot('age')",
    "g.E().has('weight', 3)",
    "g.E(1).outV()",
    "g.V(3).outE('knows').has('weight', P.lt(4)).inV().values('name', 'age')",
    "g.V(3).outE().bothV().id()",
    "g.V(3).outE().otherV().id()",
    "g.V(3).bothE().elementMap()",
    "g.V(3).both().elementMap('name')",
    "g.V(3).valueMap()",
    "g.V(3).valueMap(true)",
    "g.V(3).propertyMap('name')",
    "g.V(3).properties()",
    "g.V().where(out('knows').has('age', 3)).id()",
    "g.V().where(out('knows')).count()",
    "g.V().out().count()",
    "g.V().optional(out('knows')).count()",
    "g.V().where(out('knows').count().is(P.gt(2))).count()",
    "g.V().or(out('knows').count().is(P.lt(2)), inE('likes'), both('knows').count().is(6)).count()",
    "g.V().groupCount().by(both().count())",
    "g.V().order().by(inE('knows').count()).by('name').limit(20).values('name')",
    "g.V().project('n', 'd').by('name').by(out('knows').count())",
    "g.V().as('a').out().as('b').select('a', 'b').by(in('knows').count()).by(out('knows').count())",
    "g.V(3).out().fold().order(local).by(out('knows').count()).by('name')",
    "g.V().values('age').union(sum(), max(), count())",
    "g.V().out().union(values('age').min(), values('age').count())",
    "g.V().optional(out('likes')).optional(in('knows')).values('name')",
    "g.V().as('a').optional(outE('knows').as('b')).select('b').id()",
    "g.V().groupCount().by('age')",
    "g.V().group().by('age').by(count())",
    "g.V().group().by('name').by('age')",
    "g.V().order().by('age').by('name').limit(20).values('name')",
    "g.V().values('age').sum()",
    "g.V().project('n', 'a').by('name').by('age')",
    "g.V().hasLabel('person').local(out('knows').count()).with('policy', 'by age')",
    "g.V(1).repeat(out('knows')).emit().times(3).with('policy', 'by age desc').values('name')",
    "g.V().as('a').out().as('b').select('a', 'b').by('name').by('age')",
    "g.V(1).out().out().path().by('name')",
    "g.V(1).outE().inV().path().by(label())",
    "g.V(7).repeat(out('knows')).times(3).dedup().values('name')",
    "g.V().as('a').out().as('b').out().where(eq('a')).count()",
    "g.V(0).as('a').out('knows').out('knows').where(in('knows').as('a')).id()",
    "g.V().match(as('a').out('knows').as('b'), as('b').out('knows').as('c'), as('a').out('knows').as('c')).count()",
];

#[test]
fn operators_ask_for_what_they_read() {
    let database = ring(120);
    for traversal in ASKING {
        let prepared = database.prepare(traversal).unwrap();
        let expected = database.run(&prepared, &Parameters::new()).unwrap().collect_bulked().unwrap();
        let expected = sorted(expected);
        for seed in 0..20 {
            let habits = Habits { at_hand: 0.1, full: 0.1, early: 0.1, again: 0.1, fails: 0.0, room: 0 };
            let late = begin_late(&database, LateView::strict, habits, seed);
            let options = QueryOptions::default();
            let found = late.transaction.run_late(&prepared, &Parameters::new(), &options, late.view.reader(), seed);
            let found = found.unwrap_or_else(|error| panic!("{traversal}, seed {seed}: {error}"));
            assert_eq!(sorted(found), expected, "{traversal}, seed {seed}");
            late.check_that_nothing_is_left();
        }
    }
}

/// Results whose order is promised keep it, and so do the results of nested traversals and what side effects show.
#[test]
fn the_order_that_is_promised_is_kept() {
    let database = ring(2_500);
    let in_order = [
        "g.V().order().by('name').values('name')",
        "g.V().order().by('age', desc).by('name').out().values('name')",
        "g.V().hasLabel('person').order().by('name').limit(1500).valueMap('age')",
        "g.V().hasId(5, 6, 7).aggregate(local, 'x').out().where(without('x')).aggregate(local, 'x').values('name')",
    ];
    let nested = [
        "g.V().local(union(label(), id()).fold())",
        "g.V().project('pair').by(union(values('name'), label(), id()).fold())",
        "g.V().map(union(in('knows').values('name'), values('name')).fold())",
        "g.V().has('age', 7).project('way').by(repeat(out('knows')).times(2).emit().values('name').fold())",
    ];
    for (traversal, is_in_order) in in_order.iter().map(|t| (*t, true)).chain(nested.map(|t| (t, false))) {
        let prepared = database.prepare(traversal).unwrap();
        let texts = |results: Vec<(Value, u64)>| match is_in_order {
            true => results.iter().flat_map(|(v, times)| vec![format!("{v:?}"); *times as usize]).collect(),
            false => sorted(results),
        };
        let expected: Vec<String> =
            texts(database.run(&prepared, &Parameters::new()).unwrap().collect_bulked().unwrap());
        assert!(expected.len() >= 5, "{traversal}: {expected:?}");
        for seed in 0..12 {
            let habits = Habits { at_hand: 0.4, early: 0.2, room: [0, 3_000][seed as usize % 2], ..Habits::default() };
            let late = begin_late(&database, |view| view, habits, seed);
            let options = QueryOptions::default();
            let found = late.transaction.run_late(&prepared, &Parameters::new(), &options, late.view.reader(), seed);
            let found: Vec<String> = texts(found.unwrap());
            assert!(found == expected, "{traversal}, seed {seed}");
            late.check_that_nothing_is_left();
        }
    }
}

/// The view also answers reads that no operator asked for. The thread of the query waits for them.
#[test]
fn other_reads_block() {
    let database = ring(40);
    for traversal in ["g.V().order()", "g.V(1).outE().subgraph('s').cap('s')"] {
        let prepared = database.prepare(traversal).unwrap();
        let expected = sorted(database.run(&prepared, &Parameters::new()).unwrap().collect_bulked().unwrap());
        let late = begin_late(&database, |view| view, Habits::default(), 1);
        let options = QueryOptions::default();
        let found = late.transaction.run_late(&prepared, &Parameters::new(), &options, late.view.reader(), 1).unwrap();
        assert_eq!(sorted(found), expected, "{traversal}");
        assert!(late.view.blocking() > 0, "{traversal} asks: move it to the others");
    }
}

#[test]
fn a_failed_read_ends_its_query_only() {
    let database = ring(50);
    let failing = begin_late(&database, |view| view, Habits { early: 1.0, fails: 1.0, ..Habits::default() }, 1);
    let working = begin_late(&database, |view| view, Habits { early: 1.0, ..Habits::default() }, 1);
    let traversal = "g.V().out().values('name')";
    let error = failing.run_on_executors(traversal, &QueryOptions::default()).expect_err("its reads fail");
    assert_eq!(error.kind(), ErrorKind::Evaluation);
    assert!(error.message().contains("a read has failed"), "{error}");
    assert_eq!(working.run_on_executors(traversal, &QueryOptions::default()).unwrap().len(), 150);
    failing.check_that_nothing_is_left();
    working.check_that_nothing_is_left();
}

/// Runs a query whose reads are never completed, on another thread, until it waits for some; then calls `meanwhile`.
/// Returns the outcome.
fn stuck(database: &Database, options: &QueryOptions, meanwhile: impl FnOnce()) -> Result<Vec<(Value, u64)>> {
    let late = begin_late(database, |view| view, Habits::default(), 1);
    let outcome = std::thread::scope(|scope| {
        let run = scope.spawn(|| late.run_on_executors("g.V().out().values('name')", options));
        while late.view.reader().counts().tickets == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        meanwhile();
        run.join().unwrap()
    });
    assert!(late.view.reader().counts().forgotten > 0, "the view is told that nothing waits");
    late.check_that_nothing_is_left();
    outcome
}

fn kind(outcome: Result<Vec<(Value, u64)>>) -> ErrorKind {
    outcome.map_err(|error: Error| error.kind()).expect_err("its reads are never completed")
}

#[test]
fn a_cancelled_query_forgets_its_reads() {
    let options = QueryOptions::default();
    let outcome = stuck(&ring(50), &options, || options.cancel.store(true, Ordering::Relaxed));
    assert_eq!(kind(outcome), ErrorKind::Cancelled);
}

#[test]
fn a_query_that_waits_keeps_its_time_limit() {
    let limits = QueryLimits { time_nanos: Some(50_000_000), ..QueryLimits::default() };
    let options = QueryOptions { limits, ..QueryOptions::default() };
    let database = ring(50);
    assert_eq!(kind(stuck(&database, &options, || ())), ErrorKind::Timeout);
    // On the thread of its caller.
    let late = begin_late(&database, |view| view, Habits::default(), 1);
    let prepared = database.prepare("g.V().out().values('name')").unwrap();
    let results = late.transaction.run_with(&prepared, &Parameters::new(), &options).unwrap();
    assert_eq!(kind(results.collect_bulked()), ErrorKind::Timeout);
    late.check_that_nothing_is_left();
}

#[test]
fn a_query_without_memory_leaves_nothing() {
    let database = ring(3_000);
    let prepared = database.prepare("g.V().out().values('name').fold()").unwrap();
    let mut failed = 0;
    for (memory_bytes, seed) in [4_000, 20_000, 60_000, 200_000].into_iter().flat_map(|b| (0..10).map(move |s| (b, s)))
    {
        let limits = QueryLimits { memory_bytes, ..QueryLimits::default() };
        let options = QueryOptions { limits, ..QueryOptions::default() };
        let late = begin_late(&database, |view| view, Habits { early: 0.3, again: 0.3, ..Habits::default() }, seed);
        let outcome = late.transaction.run_late(&prepared, &Parameters::new(), &options, late.view.reader(), seed);
        if let Err(error) = outcome {
            assert_eq!(error.kind(), ErrorKind::MemoryLimit, "{error}");
            failed += 1;
        }
        late.check_that_nothing_is_left();
    }
    assert!(failed >= 20, "{failed}");
}

#[test]
fn results_that_are_not_read_to_their_end_forget_reads() {
    let database = ring(3_000);
    let late = begin_late(&database, |view| view, Habits { early: 0.9, ..Habits::default() }, 3);
    let prepared = database.prepare("g.V().out().out().values('name')").unwrap();
    let mut results = late.transaction.run(&prepared, &Parameters::new()).unwrap();
    std::thread::scope(|scope| {
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = is_over.clone();
        let reader = late.view.reader();
        scope.spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                reader.complete_one();
                std::thread::yield_now();
            }
        });
        assert!(results.next().expect("there are results").is_ok());
        ends.store(true, Ordering::Relaxed);
    });
    drop(results);
    late.check_that_nothing_is_left();
}

/// Thousands of reads are under way at a time, on two executors. The view answers all of them together, some time
/// later: the query waits for few answers.
#[test]
fn thousands_of_reads_are_under_way() {
    let people = 30_000;
    let database = ring_with(people, DatabaseOptions { executor_count: 2, ..DatabaseOptions::default() });
    let late = begin_late(&database, LateView::strict, Habits::default(), 1);
    let (found, answers) = std::thread::scope(|scope| {
        let run =
            scope.spawn(|| late.run_on_executors("g.V().out().out().values('name').count()", &QueryOptions::default()));
        let (mut answers, mut before, mut quiet) = (0, 0, 0);
        while !run.is_finished() {
            std::thread::sleep(Duration::from_millis(1));
            let submitted = late.view.reader().counts().submitted;
            quiet = if submitted == before { quiet + 1 } else { 0 };
            before = submitted;
            // The query has asked for all that it may.
            if quiet >= 10 && late.view.reader().counts().tickets > 0 {
                late.view.reader().complete_all();
                (answers, quiet) = (answers + 1, 0);
            }
        }
        (run.join().unwrap().unwrap(), answers)
    });
    assert_eq!(found, [(Value::I64(9 * people as i64), 1)]);
    let counts = late.view.reader().counts();
    println!("{counts:?}, {answers} answers, {} threads", late.view.threads());
    assert!(counts.reads_max >= 4_000, "{counts:?}");
    // Equal rows are merged on the way, so that fewer are read than walked over.
    assert!(counts.submitted >= 5 * people, "{counts:?}");
    assert!(answers * 1_000 < counts.submitted, "{answers} answers, {counts:?}");
    assert_eq!(late.view.threads(), 2);
    late.check_that_nothing_is_left();
}
