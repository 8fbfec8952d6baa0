//! Operators whose state each thread has for itself: results, errors, charges and limits are those of one thread, and
//! helpers do work at these operators.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mangrove_flow::clock::ManualClock;
use mangrove_flow::{Helper, HelperStatus, NodeRuntime, Progress, QueryControl, QueryLimits, Sharers};
use mangrove_graph::{ErrorKind, GraphView as _, Result, Value};
use mangrove_steps::{Rows, build};
use mangrove_txn::{Transaction, WriteCardinality};

use crate::runs::{COUNT, context, graph, plan, unit};

/// The outcome of a run.
struct Outcome {
    /// The results, each as often as it occurs.
    values: Vec<Value>,
    /// The rows that helpers have received at the operators whose descriptions begin with some text.
    helped: u64,
    /// The most bytes charged at a time.
    peak: u64,
}

/// The messages that the home works off before the run is opened.
const MESSAGES_ALONE: usize = 6;

/// A run that takes more turns is stuck.
const TURNS_MAX: usize = 1_000_000;

/// A helper, and whether it is awake.
struct Thread {
    helper: Helper<Rows>,
    is_awake: Arc<AtomicBool>,
}

impl Thread {
    /// Works off some messages, unless the helper sleeps.
    fn turn(&mut self) {
        if !self.is_awake.load(Ordering::Relaxed) {
            return;
        }
        if matches!(self.helper.turn(2), HelperStatus::Idle | HelperStatus::Full) {
            let is_awake = self.is_awake.clone();
            let sleeps = self.helper.sleep(Box::new(move || is_awake.store(true, Ordering::Relaxed)));
            self.is_awake.store(!sleeps, Ordering::Relaxed);
        }
    }
}

/// Runs a script on so many threads, which take turns. `of` is the beginning of the descriptions of some operators.
fn run(graph: &Arc<Transaction>, script: &str, threads: usize, memory_bytes: u64, of: &str) -> Result<Outcome> {
    let plan = plan(script);
    let limits = QueryLimits { memory_bytes, ..QueryLimits::default() };
    let control = QueryControl::new(limits, Arc::new(ManualClock::default()), Arc::default());
    let built = build(&plan, 1, true)?;
    let names: Vec<String> = built.descriptions.into_iter().map(|operator| operator.text).collect();
    let mut home = NodeRuntime::new(0, 1, built.topology, built.operators, Arc::new(control));
    let context = context(graph, &plan);
    context.seed(&plan)?;
    home.begin(context)?;
    home.start(unit(&plan))?;
    let mut helpers = Vec::new();
    let mut values = Vec::new();
    for turn in 0.. {
        assert!(turn < TURNS_MAX, "{script} makes no progress");
        if turn == MESSAGES_ALONE {
            let run = home.open(Sharers { stealable: built.stealable.clone(), shares_all: true });
            for _ in 1..threads {
                let helper = Helper::new(&run, build(&plan, 1, false)?.operators);
                helpers.push(Thread { helper, is_awake: Arc::new(AtomicBool::new(true)) });
            }
        }
        let progress = home.run(1)?;
        while let Some(batch) = home.take_results() {
            let times = (0..batch.len()).flat_map(|row| std::iter::repeat_n(row, batch.bulk(row) as usize));
            values.extend(times.map(|row| batch.object(row)));
        }
        if progress == Progress::Complete {
            break;
        }
        helpers.iter_mut().for_each(Thread::turn);
    }
    let stats = home.helper_stats().operators;
    let helped = names.iter().zip(&stats).filter(|(name, _)| name.starts_with(of)).map(|(_, stats)| stats.rows_in);
    let (helped, peak) = (helped.sum(), home.control().memory_peak());
    drop(helpers);
    assert_eq!(home.control().memory(), 0, "{script} with {threads} threads has not released its charge");
    let (_, is_clean) = home.recycle();
    assert!(is_clean, "{script} with {threads} threads left something");
    Ok(Outcome { values, helped, peak })
}

const NO_LIMIT: u64 = 1 << 30;

fn texts(values: &[Value]) -> Vec<String> {
    values.iter().map(|value| format!("{value:?}")).collect()
}

/// The graph with further keys of each vertex.
fn rich_graph() -> Arc<Transaction> {
    let graph = graph();
    let vertices = run(&graph, "g.V()", 1, NO_LIMIT, "").unwrap().values;
    let set = |key: &str, value: &dyn Fn(usize) -> Value| {
        let key = graph.catalog().intern_key(key);
        for (place, vertex) in vertices.iter().enumerate() {
            let Value::Vertex(vertex) = vertex else { panic!("{vertex:?} is no vertex") };
            graph.set_vertex_property(*vertex, key, value(place), WriteCardinality::Single, Vec::new()).unwrap();
        }
    };
    set("text", &|place| format!("a long name of {:05}", (place * 7_919) % COUNT).into());
    set("double", &|place| Value::F64(place as f64 / 4.0));
    set("mixed", &|place| if place % 3 == 0 { format!("{place:05}").into() } else { Value::I64(place as i64) });
    // All of them are more than a long, but those of one thread may be less.
    set("large", &|_| Value::I64(i64::MAX / (COUNT as i64 - 1)));
    set("odd", &|place| if place == COUNT / 2 { "odd".into() } else { Value::I64(1) });
    graph.finish_statement().unwrap();
    graph
}

#[test]
fn threads_sort_what_one_thread_sorts() {
    let graph = rich_graph();
    // No two rows have the same keys.
    for script in [
        "g.V().order().by('n').values('n')",
        "g.V().order().by('n', desc).values('n')",
        "g.V().values('n').order().by(desc)",
        "g.V().order().by('double').values('double')",
        "g.V().values('text').order()",
        "g.V().order().by('mixed').values('mixed')",
        "g.V().order().by('k').by('text', desc).values('text')",
        "g.V().order()",
        "g.V().out().order().by(desc)",
        "g.E().order()",
        "g.V().properties('n').order()",
        "g.V().order().by('n').limit(10).values('n')",
        "g.V().order().by('text', desc).limit(3000).values('text')",
        "g.V().order().by('k').by('n').limit(15000).values('n')",
        "g.V().order().limit(5000)",
    ] {
        let alone = run(&graph, script, 1, NO_LIMIT, "order").unwrap();
        assert!(alone.values.len() >= 10 && alone.helped == 0, "{script}");
        for threads in [2, 4] {
            let helped = run(&graph, script, threads, NO_LIMIT, "order").unwrap();
            assert_eq!(texts(&helped.values), texts(&alone.values), "{script} with {threads} threads");
            assert!(helped.helped > COUNT as u64 / 10, "helpers received {} rows of {script}", helped.helped);
        }
    }
}

/// The first rows are those of the whole sort, with keys of all kinds, keys that are equal, and limits that need no sort
/// and that need one.
#[test]
fn a_limit_gives_the_first_rows_of_the_sort() {
    let graph = rich_graph();
    for order in [
        "order().by('n')",
        "order().by('k').by('text', desc)",
        "order().by('text', desc)",
        "order().by('double')",
        "order().by('mixed')",
        // Equal rows keep their order.
        "order().by('n', desc).order().by('k')",
    ] {
        let sorted = run(&graph, &format!("g.V().{order}.values('n')"), 1, NO_LIMIT, "").unwrap();
        let sorted = texts(&sorted.values);
        for limit in [0, 1, 7, 1_000, 2_500, COUNT / 2] {
            let script = format!("g.V().{order}.limit({limit}).values('n')");
            for threads in [1, 3] {
                let first = run(&graph, &script, threads, NO_LIMIT, "").unwrap();
                assert!(texts(&first.values) == sorted[..limit], "{script} with {threads} threads");
            }
        }
    }
}

#[test]
fn a_sort_of_sorted_rows_keeps_their_order() {
    let graph = rich_graph();
    let script = "g.V().order().by('n').order().by('k').values('n')";
    let alone = run(&graph, script, 1, NO_LIMIT, "").unwrap();
    for threads in [2, 4] {
        let helped = run(&graph, script, threads, NO_LIMIT, "").unwrap();
        assert_eq!(texts(&helped.values), texts(&alone.values), "{threads} threads");
    }
}

/// A shuffle needs all rows at once.
#[test]
fn rows_that_are_shuffled_stay_at_the_home() {
    let graph = graph();
    let outcome = run(&graph, "g.V().order().by(shuffle)", 4, NO_LIMIT, "order").unwrap();
    assert_eq!((outcome.values.len(), outcome.helped), (COUNT, 0));
}

#[test]
fn a_sort_with_a_limit_holds_what_its_threads_need() {
    let graph = graph();
    // A row takes less than a hundred bytes. All are forty times as many as are needed by one thread.
    let outcome = run(&graph, "g.V().order().by('n').limit(500)", 4, NO_LIMIT, "order").unwrap();
    assert!(outcome.helped > 0 && outcome.peak < 4 * (3 << 10) * 100, "held {} bytes", outcome.peak);
}

fn sorted_texts(values: &[Value]) -> Vec<String> {
    let mut texts = texts(values);
    texts.sort();
    texts
}

/// Runs a script on several numbers of threads. The results must be equal, in any order, and helpers must have worked at
/// the operators whose descriptions begin with `of`.
#[track_caller]
fn same_for_all(graph: &Arc<Transaction>, script: &str, of: &str) {
    let alone = run(graph, script, 1, NO_LIMIT, of).unwrap();
    for threads in [2, 4] {
        let helped = run(graph, script, threads, NO_LIMIT, of).unwrap();
        assert_eq!(sorted_texts(&helped.values), sorted_texts(&alone.values), "{script} with {threads} threads");
        assert!(helped.helped > 0 || script.contains("-1"), "no helper received a row of {script}");
    }
}

#[test]
fn threads_count_what_one_thread_counts() {
    let graph = rich_graph();
    for script in [
        "g.V().groupCount().by('k').unfold()",
        "g.V().groupCount().by('n').unfold()",
        "g.V().groupCount().by('text').unfold()",
        "g.V().groupCount().by('mixed').unfold()",
        "g.V().both().groupCount().unfold()",
        "g.E().groupCount().by(label()).unfold()",
        "g.V().both().values('k').groupCount().unfold()",
    ] {
        same_for_all(&graph, script, "group count");
    }
}

#[test]
fn threads_reduce_to_what_one_thread_reduces() {
    let graph = rich_graph();
    for (script, of) in [
        ("g.V().out().dedup().count()", "count"),
        ("g.V().values('n').sum()", "sum"),
        ("g.V().values('double').mean()", "mean"),
        ("g.V().values('mixed').is(typeOf(GType.LONG)).max()", "max"),
        ("g.V().values('text').min()", "min"),
        ("g.V().values('double').max()", "max"),
        ("g.V().both().values('n').mean()", "mean"),
        ("g.V().values('n').math('_ / 4').sum()", "sum"),
        ("g.V().values('text').fold().unfold()", "fold"),
        ("g.V().both().values('k').fold().unfold()", "fold"),
        ("g.V().has('n', -1).values('n').sum()", "sum"),
        ("g.V().has('n', -1).fold()", "fold"),
    ] {
        same_for_all(&graph, script, of);
    }
}

/// A group that is cancelled while threads work at its state.
#[test]
fn canceled_states_of_threads_are_dropped() {
    let graph = rich_graph();
    for branch in [
        "order().by('n')",
        "order().by('n').limit(2000)",
        "groupCount().by('n').unfold()",
        "values('text').fold().unfold()",
        "values('n').sum()",
        "barrier()",
    ] {
        for limit in [1, 3000, 9000] {
            let script = format!("g.V().union(out().{branch}, identity()).limit({limit})");
            for threads in [1, 2, 4] {
                let outcome = run(&graph, &script, threads, NO_LIMIT, "").unwrap();
                assert_eq!(outcome.values.len(), limit, "{script} with {threads} threads");
            }
        }
    }
}

#[test]
fn errors_are_those_of_one_thread() {
    let graph = rich_graph();
    for (script, what) in [
        ("g.V().values('large').sum()", "overflow"),
        ("g.V().values('large').map(identity()).sum()", "overflow"),
        ("g.V().values('odd').sum()", "a number is needed"),
        ("g.V().values('odd').mean()", "a number is needed"),
        ("g.V().values('odd').max()", "max()"),
    ] {
        for threads in [1, 2, 4] {
            let error =
                run(&graph, script, threads, NO_LIMIT, "").err().unwrap_or_else(|| panic!("{script}: no error"));
            assert!(error.message().contains(what), "{script} with {threads} threads: {error}");
        }
    }
}

#[test]
fn limits_of_memory_hold_for_all_threads_together() {
    let graph = rich_graph();
    for script in ["g.V().order().by('text')", "g.V().groupCount().by('text')", "g.V().values('text').fold()"] {
        let held = run(&graph, script, 1, NO_LIMIT, "").unwrap().peak;
        for threads in [1, 2, 4] {
            let error = run(&graph, script, threads, held / 2, "").err();
            let error = error.unwrap_or_else(|| panic!("{script} with {threads} threads: no error"));
            assert_eq!(error.kind(), ErrorKind::MemoryLimit, "{script}: {error}");
        }
    }
}
