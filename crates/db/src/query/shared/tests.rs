//! Queries on executors: how they end, the memory that they hold, and the threads that wait for them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use super::*;
use crate::{Database, DatabaseOptions, Parameters, QueryGauges, QueryLimits, QueryOptions, Tenant};

/// A time longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

const ENDLESS: &str = "g.inject(1).repeat(identity()).until(constant(1).is(2))";
const ENDLESS_RESULTS: &str = "g.inject(1).repeat(identity()).emit()";

/// An executor task that reports its begin and keeps the executor busy until it is told to end.
struct Busy {
    begun: Sender<()>,
    end: Receiver<()>,
}

impl Task for Busy {
    fn run(&mut self, _quota: usize) -> TaskStatus {
        let _ = self.begun.send(());
        let _ = self.end.recv();
        TaskStatus::Done
    }
}

/// Takes the only executor of a database until the sender is dropped.
fn keep_busy(database: &Database) -> Sender<()> {
    let (begun, has_begun) = channel();
    let (open, end) = channel();
    database.executors().unwrap().spawn(&Tenant::default(), |_| Box::new(Busy { begun, end }));
    has_begun.recv_timeout(PATIENCE).expect("an executor takes it");
    open
}

fn one_executor() -> Database {
    executors(1)
}

/// A database with executors of its own.
fn executors(executor_count: usize) -> Database {
    Database::with_options(&DatabaseOptions { executor_count, ..DatabaseOptions::default() })
}

/// Runs a query on executors only, without inline messages.
fn run_query(
    database: &Database,
    script: &str,
    options: QueryOptions,
    accept: &mut dyn FnMut(ResultBatch) -> Result<()>,
) -> Result<()> {
    let options = QueryOptions { inline_messages: 0, ..options };
    database.run_shared(&database.prepare(script)?, &Parameters::new(), &options, accept)
}

/// Waits until a condition holds. The test fails if that takes longer than [`PATIENCE`].
fn wait_until(holds: &dyn Fn() -> bool) {
    for _ in 0..PATIENCE.as_millis() {
        if holds() {
            return;
        }
        thread::sleep(Duration::from_millis(1));
    }
    panic!("it never came true");
}

/// Runs `work` on another thread. The test fails if `work` takes longer than [`PATIENCE`].
fn within_patience<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (say, heard) = channel();
    let worker = thread::Builder::new().spawn(move || say.send(work()));
    let outcome = heard.recv_timeout(PATIENCE).expect("it ends though no executor is free");
    drop(worker);
    outcome
}

#[test]
fn a_query_that_waits_for_a_turn_ends_at_its_time_limit() {
    let database = one_executor();
    let busy = keep_busy(&database);
    let limits = QueryLimits { time_nanos: Some(20_000_000), ..QueryLimits::default() };
    let options = QueryOptions { limits, ..QueryOptions::default() };
    // The database waits for its executors when it is dropped.
    let asked = database.clone();
    let ended = within_patience(move || run_query(&asked, ENDLESS, options, &mut |_| Ok(())));
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::Timeout);
    drop(busy);
}

#[test]
fn a_query_that_waits_for_a_turn_ends_when_it_is_cancelled() {
    let database = one_executor();
    let busy = keep_busy(&database);
    let cancel = Arc::new(AtomicBool::new(false));
    let options = QueryOptions { cancel: cancel.clone(), ..QueryOptions::default() };
    let (say, heard) = channel();
    let worker = thread::Builder::new().spawn(move || {
        let _ = say.send(run_query(&database, ENDLESS, options, &mut |_| Ok(())));
    });
    heard.recv_timeout(3 * LOOK_INTERVAL).expect_err("the query goes on until it is cancelled");
    cancel.store(true, Ordering::Relaxed);
    let ended = heard.recv_timeout(PATIENCE).expect("it ends though no executor is free");
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::Cancelled);
    drop((busy, worker));
}

#[test]
fn a_reader_that_leaves_does_not_wait_for_a_turn() {
    let database = one_executor();
    let ended = within_patience(move || {
        let mut busy = None;
        run_query(&database, ENDLESS_RESULTS, QueryOptions::default(), &mut |_| {
            busy = Some(keep_busy(&database));
            Err(Error::invalid("enough"))
        })
        .map_err(|error| (error, busy.is_some()))
    });
    let (error, was_busy) = ended.unwrap_err();
    assert!(was_busy);
    assert_eq!(error.message(), "enough");
}

/// A task that waits because its queue is full is dropped with its query.
#[test]
fn a_reader_that_leaves_a_full_queue_leaves_no_task() {
    let database = one_executor();
    let gauges = Arc::new(QueryGauges::default());
    let options = QueryOptions { gauges: Some(gauges.clone()), ..QueryOptions::default() };
    let executors = database.executors().unwrap();
    let ended = run_query(&database, ENDLESS_RESULTS, options, &mut |_| {
        wait_until(&|| executors.load().queued == 0 && executors.load().busy == 0);
        Err(Error::invalid("enough"))
    });
    assert_eq!(ended.unwrap_err().message(), "enough");
    wait_until(&|| Arc::strong_count(&gauges) == 1);
}

/// Helpers are dropped with the query that they help, whether it ends early or not.
#[test]
fn helpers_of_queries_that_have_ended_are_dropped() {
    let database = executors(2);
    let transaction = database.begin().unwrap();
    let ids: Vec<_> = (0..5_000_i64).map(Into::into).collect();
    transaction.insert_vertices(database.catalog().intern_label_text("node"), &ids).unwrap();
    transaction.commit().unwrap();
    let mut helped = 0;
    for millis in 0..40 {
        let gauges = Arc::new(QueryGauges::default());
        let limits = QueryLimits { time_nanos: (millis < 30).then_some(millis * 2_000_000), ..QueryLimits::default() };
        let options = QueryOptions { limits, gauges: Some(gauges.clone()), ..QueryOptions::default() };
        let script = if millis < 30 {
            "g.V().as('a').V().where(neq('a')).count()"
        } else {
            "g.V().as('a').V().limit(1000000).count()"
        };
        let ended = run_query(&database, script, options, &mut |_| Ok(()));
        assert_eq!(ended.is_err(), millis < 30);
        wait_until(&|| Arc::strong_count(&gauges) == 1);
        helped += gauges.read().parcels;
    }
    assert!(helped > 0, "no query had helpers");
}

/// One thread waits for a turn while another ends the query. Whichever is first, the query ends once and releases its
/// transaction.
#[test]
fn queries_that_end_while_they_run_leave_nothing() {
    let database = Database::with_options(&DatabaseOptions { executor_count: 2, ..DatabaseOptions::default() });
    thread::scope(|scope| {
        for n in 0..8_u64 {
            let database = &database;
            scope.spawn(move || {
                for round in 0..20 {
                    let limits =
                        QueryLimits { time_nanos: Some(1_000_000 * (1 + (n + round) % 15)), ..QueryLimits::default() };
                    let options = QueryOptions { limits, ..QueryOptions::default() };
                    let ended = run_query(database, ENDLESS, options, &mut |_| Ok(()));
                    assert_eq!(ended.unwrap_err().kind(), ErrorKind::Timeout);
                }
            });
        }
    });
    let executors = database.executors().unwrap();
    while executors.load().queued > 0 || executors.load().busy > 0 {
        thread::yield_now();
    }
    assert_eq!(Arc::strong_count(&executors), 2, "no task is left");
}

/// A plan whose runs were heavy begins on an executor; after a light run, it begins on the thread of its caller.
#[test]
fn a_plan_begins_where_its_last_runs_ended() {
    let database = one_executor();
    let prepared = database.prepare("g.inject(x).repeat(math('_ - 1')).until(is(lt(0)))").unwrap();
    let run = |x: i64, millis: u64| {
        let limits = QueryLimits { time_nanos: Some(millis * 1_000_000), ..QueryLimits::default() };
        let options = QueryOptions { limits, ..QueryOptions::default() };
        let mut parameters = Parameters::new();
        parameters.insert("x".into(), x.into());
        database.run_shared(&prepared, &parameters, &options, &mut |_| Ok(())).map_err(|error| error.kind())
    };
    let busy = keep_busy(&database);
    assert_eq!(run(0, 60_000), Ok(()), "a light query needs no executor");
    drop(busy);
    for _ in 0..4 {
        assert_eq!(run(i64::MAX, 20), Err(ErrorKind::Timeout));
    }
    let busy = keep_busy(&database);
    assert_eq!(run(0, 20), Err(ErrorKind::Timeout), "it waits for the executor");
    drop(busy);
    assert_eq!(run(0, 60_000), Ok(()));
    let _busy = keep_busy(&database);
    assert_eq!(run(0, 60_000), Ok(()), "a light query needs no executor");
}

#[test]
fn databases_share_the_executors_of_the_process() {
    let [one, two] = [Database::in_memory(), Database::in_memory()];
    run_query(&one, "g.inject(1)", QueryOptions::default(), &mut |_| Ok(())).unwrap();
    assert!(Arc::ptr_eq(&one.executors().unwrap(), &two.executors().unwrap()));
    let load = two.executor_load();
    assert!(load.threads > 0 && load.turns > 0, "{load:?}");
    let own = one_executor();
    assert_eq!(own.executor_load().threads, 0, "they are started when they are needed");
    assert_eq!(own.executors().unwrap().count(), 1);
    // The executors of the process outlive a database.
    drop(one);
    run_query(&two, "g.inject(1)", QueryOptions::default(), &mut |_| Ok(())).unwrap();
}

#[test]
fn the_cpu_time_of_a_query_is_reported_while_it_runs() {
    let database = one_executor();
    let gauges = Arc::new(QueryGauges::default());
    let cancel = Arc::new(AtomicBool::new(false));
    let options = QueryOptions { cancel: cancel.clone(), gauges: Some(gauges.clone()), ..QueryOptions::default() };
    let worker = thread::Builder::new().spawn(move || run_query(&database, ENDLESS, options, &mut |_| Ok(()))).unwrap();
    while gauges.read().executor_nanos < 20_000_000 {
        assert!(!worker.is_finished(), "the query is endless");
        thread::sleep(LOOK_INTERVAL);
    }
    cancel.store(true, Ordering::Relaxed);
    assert_eq!(worker.join().unwrap().unwrap_err().kind(), ErrorKind::Cancelled);
}

/// The threads at work, the parcels that helpers took over, and the memory are shown.
#[test]
fn the_figures_of_a_query_are_shown_while_it_runs() {
    let database = executors(2);
    database.query("g.inject(0).repeat(addV('v').constant(0)).times(100)").unwrap().collect().unwrap();
    database.query("g.V().as('a').V().addE('e').to('a').count()").unwrap().collect().unwrap();
    let gauges = Arc::new(QueryGauges::default());
    let cancel = Arc::new(AtomicBool::new(false));
    let options = QueryOptions { cancel: cancel.clone(), gauges: Some(gauges.clone()), ..QueryOptions::default() };
    let endless = "g.V().out().out().out().out().path().count()";
    let worker = thread::Builder::new().spawn(move || run_query(&database, endless, options, &mut |_| Ok(()))).unwrap();
    let is_shown = || {
        let figures = gauges.read();
        figures.threads > 0 && figures.helpers > 0 && figures.parcels > 0 && figures.memory_bytes > 0
    };
    while !is_shown() {
        assert!(!worker.is_finished(), "the query takes minutes: {:?}", gauges.read());
        thread::sleep(Duration::from_micros(100));
    }
    cancel.store(true, Ordering::Relaxed);
    assert_eq!(worker.join().unwrap().unwrap_err().kind(), ErrorKind::Cancelled);
    let end = gauges.read();
    assert!(end.messages > 0 && end.memory_peak_bytes > 0, "{end:?}");
}

/// A query counts for the tenant that its traversal names, unless the program names one in the options.
#[test]
fn a_traversal_names_its_tenant() {
    let [named, given] = ["named", "given"].map(Tenant::new);
    for (tenant, counts) in [(Tenant::default(), &named), (given.clone(), &given)] {
        let database = executors(1);
        let pool = database.executors().unwrap();
        let cancel = Arc::new(AtomicBool::new(false));
        let options = QueryOptions { cancel: cancel.clone(), tenant, ..QueryOptions::default() };
        let endless = "g.with('tenant', 'named').inject(1).repeat(identity()).until(is(2))";
        let run = move || run_query(&database, endless, options, &mut |_| Ok(()));
        let worker = thread::Builder::new().spawn(run).unwrap();
        while pool.share(counts).share.is_none() {
            assert!(!worker.is_finished(), "the query has no end");
            thread::sleep(LOOK_INTERVAL);
        }
        let share = |tenant| pool.share(tenant).share;
        assert_eq!([share(&named), share(&given)].map(|share| share.is_some()), [counts == &named, counts == &given]);
        cancel.store(true, Ordering::Relaxed);
        assert_eq!(worker.join().unwrap().unwrap_err().kind(), ErrorKind::Cancelled);
    }
}

/// An algorithm shows how far it has come, and ends when it is told to.
#[test]
fn the_progress_of_an_algorithm_is_shown_while_it_runs() {
    let database = executors(2);
    database.query("g.inject(0).repeat(addV('v').constant(0)).times(3000)").unwrap().collect().unwrap();
    database.query("g.V().as('a').V().limit(40).addE('e').to('a').count()").unwrap().collect().unwrap();
    let gauges = Arc::new(QueryGauges::default());
    let cancel = Arc::new(AtomicBool::new(false));
    let options = QueryOptions { cancel: cancel.clone(), gauges: Some(gauges.clone()), ..QueryOptions::default() };
    let long = "g.call('mangrove.algo.pagerank').with('rounds', 1000000).count()";
    let worker = thread::Builder::new().spawn(move || run_query(&database, long, options, &mut |_| Ok(()))).unwrap();
    let is_shown = || {
        let figures = gauges.read().progress;
        figures.is_some_and(|shown| shown.phase == "pagerank" && shown.unit == "rounds" && shown.done > 0)
    };
    while !is_shown() {
        assert!(!worker.is_finished(), "the query takes long: {:?}", gauges.read());
        thread::sleep(Duration::from_micros(100));
    }
    assert_eq!(gauges.read().progress.unwrap().all, 1_000_000);
    cancel.store(true, Ordering::Relaxed);
    assert_eq!(worker.join().unwrap().unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(gauges.read().progress, None);
}
