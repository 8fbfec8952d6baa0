//! The runtime with a simple batch: numbers instead of traversers. One topology gives the same answer on one to four
//! nodes, with frames in any order.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mangrove_flow::clock::{Clock, ManualClock, MonotonicClock};
use mangrove_flow::{
    AnyOperator, Batch, Cursor, Detail, Exchange, GroupId, HeldDetail, Helper, HelperStatus, Kernel, NodeRuntime,
    Operator, OuterTags, Output, Placement, Progress, QueryControl, QueryLimits, Sharers, Step, TopologyBuilder,
};
use mangrove_graph::{Error, ErrorKind, Result};
use mangrove_virtual_nodes::Nodes;

use crate::toys::*;

/// A scope that only tests for a result: the first result cancels the work inside.
#[derive(Default)]
struct Asks {
    outside: Option<GroupId>,
    answers: usize,
}

impl Operator<Numbers> for Asks {
    fn receive(&mut self, port: u8, group: GroupId, batch: Numbers, out: &mut Output<'_, Numbers>) -> Result<()> {
        if port == 1 {
            self.answers += 1;
            out.cancel(group, out.operator() + 1..out.operator() + 2);
            return Ok(());
        }
        self.outside = Some(group);
        let inside = out.open_group(group, OuterTags::Same);
        out.emit(0, inside, batch)?;
        out.finish(0, inside, 1)
    }
    fn finish(&mut self, port: u8, group: GroupId, _: u32, out: &mut Output<'_, Numbers>) -> Result<()> {
        let (1, Some(outside)) = (port, self.outside) else { return Ok(()) };
        out.close_group(group);
        out.emit(1, outside, Numbers(vec![(0, self.answers as i64)]))?;
        out.finish(1, outside, 1)
    }
}

#[test]
fn one_and_several_nodes_agree_whatever_order_frames_come_in() {
    let below = 777;
    let expected: i64 = (0..below).flat_map(|n| (1..=3).map(move |d| n + d)).flat_map(|n| [n + 1, n + 2]).sum();
    let topology = Arc::new(scoped());
    for nodes in [1_u16, 2, 3, 4] {
        for seed in [None, Some(1), Some(2), Some(99)] {
            let runtimes = (0..nodes).map(|node| {
                let control = control(QueryLimits::default());
                let mut runtime = NodeRuntime::new(node, nodes, topology.clone(), scoped_operators(below), control);
                runtime.begin(None).unwrap();
                runtime
            });
            let mut run = Nodes::new(runtimes.collect(), seed);
            let results = run.run(Numbers(vec![(0, 0)])).unwrap();
            let results: Vec<i64> = results.iter().flat_map(|b| b.0.iter().map(|(_, n)| *n)).collect();
            assert_eq!(results, vec![expected], "{nodes} nodes, seed {seed:?}");
            assert_eq!(run.frames() > 0, nodes > 1, "several nodes talk, one does not");
        }
    }
}

/// Sends its input along its first edge and along its last one.
struct FirstAndLast(usize);

impl Operator<Numbers> for FirstAndLast {
    fn receive(&mut self, _: u8, group: GroupId, batch: Numbers, out: &mut Output<'_, Numbers>) -> Result<()> {
        out.emit(0, group, batch.clone())?;
        out.emit(self.0 - 1, group, batch)
    }
}

/// Drops its input.
struct Discard;

impl Operator<Numbers> for Discard {
    fn receive(&mut self, _: u8, _: GroupId, _: Numbers, _: &mut Output<'_, Numbers>) -> Result<()> {
        Ok(())
    }
}

/// The messages along each edge are counted on their own, however many edges leave an operator.
#[test]
fn an_operator_may_have_more_edges_than_a_byte_counts() {
    const EDGES: usize = 257;
    let mut b = TopologyBuilder::default();
    let split = b.operator(Placement::Home);
    let sink = b.operator(Placement::Home);
    b.connect(split, sink, 0, Exchange::Home);
    let mut operators: Vec<AnyOperator<Numbers>> =
        vec![AnyOperator::stateful(FirstAndLast(EDGES)), AnyOperator::stateful(Sink)];
    for _ in 1..EDGES {
        let discard = b.operator(Placement::Home);
        b.connect(split, discard, 0, Exchange::Home);
        operators.push(AnyOperator::stateful(Discard));
    }
    // The first of two nodes. All rows stay there, so the other one has nothing to do.
    let mut node = NodeRuntime::new(0, 2, Arc::new(b.build()), operators, control(QueryLimits::default()));
    node.begin(None).unwrap();
    let results = Nodes::new(vec![node], None).run(Numbers(vec![(0, 7)])).unwrap();
    assert_eq!(results.iter().map(|batch| batch.rows()).sum::<usize>(), 1);
}

fn limited(limit: usize, below: i64) -> NodeRuntime<Numbers> {
    let mut b = TopologyBuilder::default();
    let scan = b.operator(Placement::Home);
    let limit_id = b.operator(Placement::Home);
    b.connect(scan, limit_id, 0, Exchange::Local);
    let sink = b.operator(Placement::Home);
    b.connect(limit_id, sink, 0, Exchange::Local);
    let operators: Vec<AnyOperator<Numbers>> = vec![
        AnyOperator::kernel(Scan { below, step: 10 }),
        AnyOperator::stateful(Limit(limit)),
        AnyOperator::stateful(Sink),
    ];
    let mut runtime = NodeRuntime::new(0, 1, Arc::new(b.build()), operators, control(QueryLimits::default()));
    runtime.begin(None).unwrap();
    runtime
}

#[test]
fn a_satisfied_limit_stops_the_scan() {
    let mut runtime = limited(15, 1_000_000);
    runtime.start(Numbers(vec![(0, 0)])).unwrap();
    let mut rows = 0;
    loop {
        match runtime.run(usize::MAX).unwrap() {
            Progress::Results => rows += runtime.take_results().unwrap().rows(),
            Progress::Complete => break,
            other => panic!("unexpected {other:?}"),
        }
    }
    assert_eq!(rows, 15);
    assert!(runtime.stats()[0].rows_out <= 30, "the scan went on: {:?}", runtime.stats()[0]);
}

#[test]
fn what_returns_from_a_scope_goes_first() {
    let mut b = TopologyBuilder::default();
    let start = b.operator(Placement::Home);
    let scope = b.operator(Placement::Home);
    b.connect(start, scope, 0, Exchange::Local);
    let scan = b.operator(Placement::Home);
    b.enter(scope, scan, 0, Exchange::Local);
    b.connect(scan, scope, 1, Exchange::Local);
    let sink = b.operator(Placement::Home);
    b.connect(scope, sink, 0, Exchange::Local);
    let scan = Scan { below: 1_000_000, step: 10 };
    let operators: Vec<AnyOperator<Numbers>> = vec![
        AnyOperator::kernel(Start),
        AnyOperator::stateful(Asks::default()),
        AnyOperator::kernel(scan),
        AnyOperator::stateful(Sink),
    ];
    let mut runtime = NodeRuntime::new(0, 1, Arc::new(b.build()), operators, control(QueryLimits::default()));
    runtime.begin(None).unwrap();
    assert_eq!(count_rows(&mut runtime).unwrap(), 1);
    assert!(runtime.stats()[2].rows_out <= 20, "the scan went on: {:?}", runtime.stats()[2]);
}

/// Sends a hundred messages in one call, so most of them wait.
struct Burst;

impl Operator<Numbers> for Burst {
    fn receive(&mut self, _: u8, group: GroupId, batch: Numbers, out: &mut Output<'_, Numbers>) -> Result<()> {
        (0..100).try_for_each(|_| out.emit(0, group, batch.clone()))
    }

    fn recycle(&mut self) -> bool {
        true
    }
}

fn burst(memory_bytes: u64) -> NodeRuntime<Numbers> {
    let mut b = TopologyBuilder::default();
    let burst = b.operator(Placement::Home);
    let start = b.operator(Placement::Home);
    b.connect(burst, start, 0, Exchange::Local);
    let sink = b.operator(Placement::Home);
    b.connect(start, sink, 0, Exchange::Local);
    let operators: Vec<AnyOperator<Numbers>> =
        vec![AnyOperator::stateful(Burst), AnyOperator::kernel(Start), AnyOperator::stateful(Sink)];
    let limits = QueryLimits { memory_bytes, ..QueryLimits::default() };
    NodeRuntime::new(0, 1, Arc::new(b.build()), operators, control(limits))
}

/// Runs to the end and counts the rows of the results.
fn count_rows(runtime: &mut NodeRuntime<Numbers>) -> Result<usize> {
    runtime.start(Numbers(vec![(0, 7)]))?;
    let mut rows = 0;
    loop {
        match runtime.run(3)? {
            Progress::Results => rows += runtime.take_results().map_or(0, |batch| batch.rows()),
            Progress::Complete => return Ok(rows),
            Progress::Yielded => {}
            Progress::Idle | Progress::Waiting => return Err(Error::bug("an end-of-stream is missing")),
        }
    }
}

#[test]
fn what_waits_is_charged_and_what_is_handed_over_is_not() {
    let mut runtime = burst(100);
    runtime.begin(None).unwrap();
    assert_eq!(count_rows(&mut runtime).unwrap_err().kind(), ErrorKind::MemoryLimit);
    let mut runtime = burst(10_000);
    runtime.begin(None).unwrap();
    assert_eq!(count_rows(&mut runtime).unwrap(), 100);
    assert_eq!(runtime.control().memory(), 0);
    // Of the hundred messages of a burst, one is the direct message; the others wait and are charged.
    assert_eq!(runtime.control().memory_peak(), 99 * 16);
}

/// Recycles a runtime. Returns true if it had a context, and true if it may begin another run.
fn recycled(runtime: &mut NodeRuntime<Numbers>) -> (bool, bool) {
    let (context, is_clean) = runtime.recycle();
    (context.is_some(), is_clean)
}

#[test]
fn a_complete_run_leaves_a_runtime_for_the_next_one() {
    let mut runtime = burst(10_000);
    for _ in 0..3 {
        runtime.begin(None).unwrap();
        assert_eq!(count_rows(&mut runtime).unwrap(), 100);
        assert_eq!(runtime.stats()[0].rows_out, 100, "each run is counted by itself");
        assert_eq!(recycled(&mut runtime), (true, true));
        assert!(runtime.context().is_none(), "what belongs to a run goes with it");
    }
    runtime.begin(None).unwrap();
    runtime.start(Numbers(vec![(0, 7)])).unwrap();
    runtime.run(3).unwrap();
    assert_eq!(recycled(&mut runtime), (true, false), "a run that was left in its middle leaves rows behind");
}

#[test]
fn operators_that_do_not_say_they_can_serve_again_do_not() {
    let mut runtime = limited(15, 20);
    assert_eq!(count_rows(&mut runtime).unwrap(), 15);
    assert_eq!(recycled(&mut runtime), (true, false));
}

#[test]
fn limits_name_themselves_and_cancelling_ends_the_query() {
    let run = |control: Arc<QueryControl>| {
        let topology = Arc::new(scoped());
        let mut runtime = NodeRuntime::new(0, 1, topology, scoped_operators(1_000_000), control);
        runtime.begin(None).unwrap();
        runtime.start(Numbers(vec![(0, 0)])).unwrap();
        loop {
            match runtime.run(8) {
                Err(error) => return error,
                Ok(Progress::Complete) => panic!("the query should have been ended"),
                Ok(_) => {}
            }
        }
    };

    /// A clock on which every reading takes a millisecond.
    struct Ticking(ManualClock);
    impl Clock for Ticking {
        fn now_nanos(&self) -> u64 {
            self.0.advance(1_000_000);
            self.0.now_nanos()
        }
    }
    let limits = QueryLimits { time_nanos: Some(50_000_000), ..QueryLimits::default() };
    let clock = Arc::new(Ticking(ManualClock::default()));
    let time = run(Arc::new(QueryControl::new(limits, clock, Arc::new(AtomicBool::new(false)))));
    assert_eq!(time.kind(), ErrorKind::Timeout);
    assert!(time.message().contains("50 ms"), "{time}");

    let flag = Arc::new(AtomicBool::new(false));
    flag.store(true, Ordering::Relaxed);
    let cancelled = run(Arc::new(QueryControl::new(QueryLimits::default(), Arc::new(MonotonicClock::default()), flag)));
    assert_eq!(cancelled.kind(), ErrorKind::Cancelled);
}

/// Sends each row by itself, `times` times, one message in each step. It keeps the times that are left in its cursor.
struct Repeated(u64);

#[derive(Debug)]
struct TimesLeft(u64);

impl HeldDetail for TimesLeft {
    fn bytes(&self) -> u64 {
        8
    }
}

impl Kernel<Numbers> for Repeated {
    fn step(
        &mut self,
        batch: &mut Numbers,
        at: &mut Cursor,
        group: GroupId,
        out: &mut Output<'_, Numbers>,
    ) -> Result<Step> {
        let left = at.take_held::<TimesLeft>().map_or(self.0, |left| left.0) - 1;
        out.emit(0, group, Numbers(vec![batch.0[at.row as usize]]))?;
        match left {
            0 => at.go_to(at.row as usize + 1),
            left => at.detail = Detail::Held(Box::new(TimesLeft(left))),
        }
        Ok(if (at.row as usize) < batch.0.len() { Step::More } else { Step::Done })
    }
}

/// Each row becomes an instance. Of every instance it takes two results, then cancels it. It delivers all results.
#[derive(Default)]
struct TakesTwo(HashMap<u32, u32>);

impl Operator<Numbers> for TakesTwo {
    fn receive(&mut self, port: u8, group: GroupId, batch: Numbers, out: &mut Output<'_, Numbers>) -> Result<()> {
        if port == 1 {
            for (tag, _) in &batch.0 {
                let taken = self.0.entry(*tag).or_default();
                *taken += 1;
                if *taken == 2 {
                    out.cancel_tag(group, out.operator() + 1..out.operator() + 2, *tag);
                }
            }
            out.deliver(batch);
            return Ok(());
        }
        let inside = out.open_group(group, OuterTags::One(0));
        let count = batch.0.len() as u32;
        out.emit(0, inside, Numbers((0..).zip(batch.0.into_iter().map(|(_, n)| n)).collect()))?;
        out.finish(0, inside, count)
    }

    fn finish(&mut self, port: u8, group: GroupId, _: u32, out: &mut Output<'_, Numbers>) -> Result<()> {
        if port == 1 {
            out.close_group(group);
            out.complete();
        }
        Ok(())
    }
}

/// A cancelled instance is dropped from the middle of a message: the row at hand begins anew only if it is another row
/// than before (FLOW-19).
#[test]
fn a_cancellation_meets_a_message_that_is_worked_off_in_part() {
    let mut b = TopologyBuilder::default();
    let scope = b.operator(Placement::Home);
    let repeated = b.operator(Placement::Home);
    b.enter(scope, repeated, 0, Exchange::Local);
    b.connect(repeated, scope, 1, Exchange::Local);
    let operators = vec![AnyOperator::stateful(TakesTwo::default()), AnyOperator::kernel(Repeated(5))];
    let mut runtime = NodeRuntime::new(0, 1, Arc::new(b.build()), operators, control(QueryLimits::default()));
    runtime.begin(None).unwrap();
    runtime.start(Numbers(vec![(0, 10), (0, 20), (0, 30)])).unwrap();
    let mut found = Vec::new();
    loop {
        match runtime.run(usize::MAX).unwrap() {
            Progress::Results => found.extend(runtime.take_results().unwrap().0),
            Progress::Complete => break,
            other => panic!("unexpected {other:?}"),
        }
    }
    assert_eq!(found, [(0, 10), (0, 10), (1, 20), (1, 20), (2, 30), (2, 30)]);
    assert_eq!(runtime.control().memory(), 0);
}

/// Runs `scoped()` on this thread with helpers on others. Every thread shares whenever it can.
fn run_with_helpers(below: i64, helpers: usize) -> Vec<i64> {
    let topology = Arc::new(scoped());
    let mut home = NodeRuntime::new(0, 1, topology, scoped_operators(below), control(QueryLimits::default()));
    home.begin(None).unwrap();
    home.start(Numbers(vec![(0, 0)])).unwrap();
    let stealable = scoped_operators(below).iter().map(AnyOperator::is_kernel).collect();
    let run = home.open(Sharers { stealable, shares_all: false });
    let threads: Vec<_> = (0..helpers).map(|_| spawn_helper(Helper::new(&run, scoped_operators(below)))).collect();
    let mut found = Vec::new();
    loop {
        match home.run(3).unwrap() {
            Progress::Results => found.extend(home.take_results().unwrap().0.into_iter().map(|(_, n)| n)),
            Progress::Waiting => home.wait(Duration::from_secs(60)),
            Progress::Yielded => {}
            Progress::Complete => break,
            Progress::Idle => panic!("an end-of-stream is missing"),
        }
    }
    home.close();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(home.control().memory(), 0, "nothing is charged after the run");
    found
}

/// Runs a helper on a thread of its own.
fn spawn_helper(mut helper: Helper<Numbers>) -> std::thread::JoinHandle<()> {
    let work = move || {
        loop {
            match helper.turn(4) {
                HelperStatus::Busy => {}
                HelperStatus::Idle | HelperStatus::Full => {
                    let thread = std::thread::current();
                    if helper.sleep(Box::new(move || thread.unpark())) {
                        std::thread::park();
                    }
                }
                HelperStatus::Over => return,
            }
        }
    };
    std::thread::Builder::new().name("helper".to_owned()).spawn(work).unwrap()
}

#[test]
fn helpers_lose_and_double_no_row() {
    let below = 20_000;
    let expected: i64 = (0..below).flat_map(|n| (1..=3).map(move |d| n + d)).flat_map(|n| [n + 1, n + 2]).sum();
    for helpers in [0, 1, 2, 4] {
        for _ in 0..5 {
            assert_eq!(run_with_helpers(below, helpers), vec![expected], "{helpers} helpers");
        }
    }
}

/// An error of a helper ends the run, and helpers end with a run that is dropped in its middle.
#[test]
fn helpers_end_with_their_run() {
    for limit in [2_000, u64::MAX] {
        let limits = QueryLimits { memory_bytes: limit, ..QueryLimits::default() };
        let mut home = NodeRuntime::new(0, 1, Arc::new(scoped()), scoped_operators(1_000_000), control(limits));
        home.begin(None).unwrap();
        home.start(Numbers(vec![(0, 0)])).unwrap();
        let stealable = scoped_operators(1).iter().map(AnyOperator::is_kernel).collect();
        let run = home.open(Sharers { stealable, shares_all: false });
        let helper = spawn_helper(Helper::new(&run, scoped_operators(1_000_000)));
        for _ in 0..100 {
            match home.run(3) {
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::MemoryLimit);
                    break;
                }
                Ok(Progress::Waiting) => home.wait(Duration::from_secs(60)),
                Ok(_) => {}
            }
        }
        drop(home);
        helper.join().unwrap();
        assert_eq!(Helper::new(&run, scoped_operators(1)).turn(1), HelperStatus::Over);
    }
}
