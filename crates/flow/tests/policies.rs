//! Scheduling policies of scopes: each one's order of work on a toy, and that no policy changes a result.

use std::sync::{Arc, Mutex, PoisonError};

use mangrove_flow::clock::ManualClock;
use mangrove_flow::{
    AnyOperator, Between, Cursor, Exchange, GroupId, Inside, Kernel, NodeRuntime, Operator, OuterTags, Output,
    Placement, Policy, Progress, QueryControl, QueryLimits, Step, TopologyBuilder,
};
use mangrove_graph::Result;
use rand::prelude::*;
use rand::rngs::StdRng;

use crate::fair::Feed;
use crate::simulator::nested;
use crate::toys::{Numbers, Sink, control};

/// The numbers that kernels work on, in their order.
type Log = Arc<Mutex<Vec<i64>>>;

fn note(log: &Log, numbers: impl IntoIterator<Item = i64>) {
    log.lock().unwrap_or_else(PoisonError::into_inner).extend(numbers);
}

/// Opens a group for each row n, with the rank n / 2, and sends n and n + 5 into it as two messages.
#[derive(Default)]
struct EachRow {
    open: u32,
    has_ended: bool,
}

impl Operator<Numbers> for EachRow {
    fn receive(&mut self, port: u8, group: GroupId, batch: Numbers, out: &mut Output<'_, Numbers>) -> Result<()> {
        if port == 1 {
            return Ok(());
        }
        for (tag, n) in batch.0 {
            let inside = out.open_ranked(group, OuterTags::One(tag), n / 2);
            self.open += 1;
            for number in [n, n + 5] {
                out.emit(0, inside, Numbers(vec![(0, number)]))?;
            }
            out.finish(0, inside, 1)?;
        }
        Ok(())
    }

    fn finish(&mut self, port: u8, group: GroupId, _: u32, out: &mut Output<'_, Numbers>) -> Result<()> {
        if port == 0 {
            self.has_ended = true;
        } else {
            self.open -= 1;
            out.close_group(group);
        }
        if self.has_ended && self.open == 0 { out.finish(1, GroupId::ROOT, 1) } else { Ok(()) }
    }

    fn recycle(&mut self) -> bool {
        self.has_ended = false;
        self.open == 0
    }
}

/// Replaces n by 10 n + 1 and 10 n + 2, one message each.
struct Fan(Log);

impl Kernel<Numbers> for Fan {
    fn step(
        &mut self,
        batch: &mut Numbers,
        _: &mut Cursor,
        group: GroupId,
        out: &mut Output<'_, Numbers>,
    ) -> Result<Step> {
        for (tag, n) in &batch.0 {
            note(&self.0, [*n]);
            for d in 1..=2 {
                out.emit(0, group, Numbers(vec![(*tag, 10 * n + d)]))?;
            }
        }
        Ok(Step::Done)
    }
}

/// Passes rows on.
struct Noted(Log);

impl Kernel<Numbers> for Noted {
    fn step(
        &mut self,
        batch: &mut Numbers,
        _: &mut Cursor,
        group: GroupId,
        out: &mut Output<'_, Numbers>,
    ) -> Result<Step> {
        note(&self.0, batch.0.iter().map(|(_, n)| *n));
        out.emit(0, group, std::mem::take(batch))?;
        Ok(Step::Done)
    }
}

/// Runs 1 and 2 through a scope with a policy. Returns the order of work.
fn order(inside: Inside, between: Between) -> Vec<i64> {
    order_of(&[1, 2], inside, between)
}

fn order_of(numbers: &[i64], inside: Inside, between: Between) -> Vec<i64> {
    let mut b = TopologyBuilder::default();
    let [scope, fan, noted, sink] = [(); 4].map(|()| b.operator(Placement::Home));
    b.enter(scope, fan, 0, Exchange::Local);
    b.connect(fan, noted, 0, Exchange::Local);
    b.connect(noted, scope, 1, Exchange::Local);
    b.connect(scope, sink, 0, Exchange::Local);
    b.set_policy(scope, Policy { inside, between, instances_max: None });
    let log = Log::default();
    let operators = vec![
        AnyOperator::stateful(EachRow::default()),
        AnyOperator::kernel(Fan(log.clone())),
        AnyOperator::kernel(Noted(log.clone())),
        AnyOperator::stateful(Sink),
    ];
    // The clock stands still.
    let control = QueryControl::new(QueryLimits::default(), Arc::new(ManualClock::default()), Arc::default());
    let mut runtime = NodeRuntime::new(0, 1, Arc::new(b.build()), operators, Arc::new(control));
    runtime.begin(None).unwrap();
    runtime.start(Numbers(numbers.iter().map(|n| (0, *n)).collect())).unwrap();
    assert_eq!(runtime.run(usize::MAX).unwrap(), Progress::Complete);
    assert_eq!(runtime.control().memory(), 0);
    assert!(runtime.recycle().1, "no lane is left");
    let order = log.lock().unwrap_or_else(PoisonError::into_inner);
    order.clone()
}

#[test]
fn each_policy_has_its_order() {
    let [one, two] = [[1, 11, 12, 6, 61, 62], [2, 21, 22, 7, 71, 72]];
    let [one_wide, two_wide] = [[1, 6, 11, 12, 61, 62], [2, 7, 21, 22, 71, 72]];
    let both_wide = [1, 6, 2, 7, 11, 12, 61, 62, 21, 22, 71, 72];
    assert_eq!(order(Inside::Dfs, Between::Fifo), [one, two].concat(), "the default");
    assert_eq!(order(Inside::Dfs, Between::Bfs), [one, two].concat());
    assert_eq!(order(Inside::Dfs, Between::Dfs), [two, one].concat());
    assert_eq!(order(Inside::Bfs, Between::Fifo), both_wide);
    assert_eq!(order(Inside::Bfs, Between::Bfs), [one_wide, two_wide].concat());
    assert_eq!(order(Inside::Bfs, Between::Dfs), [two_wide, one_wide].concat());
    assert_eq!(order(Inside::Fifo, Between::Fifo), both_wide);
    assert_eq!(order(Inside::Fifo, Between::Bfs), [one_wide, two_wide].concat());
    assert_eq!(order(Inside::Fifo, Between::Dfs), [two_wide, one_wide].concat());
    // Of equal times, the oldest.
    let still = |inside| order_of(&[1, 2], inside, Between::Fair);
    assert_eq!(still(Inside::Dfs), [one, two].concat());
    assert_eq!(still(Inside::Bfs), [one_wide, two_wide].concat());
}

/// Groups with the least rank first; of equal ranks, the oldest.
#[test]
fn ranks_order_groups() {
    let all = [[1, 11, 12, 6, 61, 62], [3, 31, 32, 8, 81, 82], [2, 21, 22, 7, 71, 72], [4, 41, 42, 9, 91, 92]];
    assert_eq!(order_of(&[4, 1, 3, 2], Inside::Dfs, Between::Rank), all.concat());
    let wide = [[1, 6, 11, 12, 61, 62], [3, 8, 31, 32, 81, 82], [2, 7, 21, 22, 71, 72], [4, 9, 41, 42, 91, 92]];
    assert_eq!(order_of(&[4, 1, 3, 2], Inside::Bfs, Between::Rank), wide.concat());
    // Under other policies, ranks say nothing.
    assert_eq!(order_of(&[4, 1], Inside::Dfs, Between::Bfs)[0], 4);
    assert_eq!(order_of(&[1, 4], Inside::Dfs, Between::Dfs)[0], 4);
}

#[test]
fn instances_share_measured_time() {
    crate::fair::two_instances_share_time();
    // By their arrival, messages are taken in turns. That gives the one with long messages a hundred times as much.
    let light = Feed { after: 0, instance: 1, messages: 1, rows: 1 };
    let feeds = [light, Feed { instance: 2, rows: 100, ..light }].repeat(100);
    let calls = crate::fair::run(&feeds, Between::Fifo, false);
    assert!(calls.chunks(2).all(|calls| *calls == [(1, 1), (2, 100)]), "{calls:?}");
}

/// An instance without work for a while takes no more than its part after that: absence gives no credit.
#[test]
fn an_absent_instance_gets_no_credit() {
    let all = |instance, after, messages| Feed { after, instance, messages, rows: 10 };
    let calls = crate::fair::run(&[all(1, 0, 400), all(2, 0, 1), all(2, 200, 100)], Between::Fair, false);
    let later: Vec<i64> = calls[202..302].iter().map(|(instance, _)| *instance).collect();
    assert!(later.windows(2).all(|pair| pair[0] != pair[1]), "they take turns: {later:?}");
}

/// While one light instance after another comes, a heavy one gets its turns: a new instance begins at the time of the
/// others, not at zero. Each message that has come back brings a light instance, so there are up to ten at a time.
#[test]
fn a_stream_of_new_instances_keeps_none_waiting() {
    let heavy = Feed { after: 0, instance: 0, messages: 10, rows: 100 };
    let light = (1..=1_000).map(|n| Feed { after: n as usize, instance: n, messages: 1, rows: 10 });
    let feeds: Vec<Feed> = std::iter::once(heavy).chain(light).collect();
    let calls = crate::fair::run(&feeds, Between::Fair, false);
    let turns: Vec<usize> = (0..calls.len()).filter(|at| calls[*at].0 == 0).collect();
    let longest = turns.windows(2).map(|turns| turns[1] - turns[0]).max();
    assert!(longest <= Some(110), "the heavy one waits for {longest:?} calls: {turns:?}");
}

/// Runs scopes nested three deep on one thread under policies that the seed chooses. Panics if anything is wrong.
fn run_with_policies(seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let below = random.random_range(1..100);
    let topology = Arc::new(nested::topology(nested::policies(&mut random), random.random_bool(0.5)));
    let mut runtime = NodeRuntime::new(0, 1, topology, nested::operators(below), control(QueryLimits::default()));
    runtime.begin(None).expect("a run begins");
    runtime.start(Numbers(vec![(0, 0)])).expect("a run starts");
    let mut found = Vec::new();
    loop {
        match runtime.run(3).expect("a run goes on") {
            Progress::Results => found.extend(runtime.take_results().unwrap_or_default().0),
            Progress::Yielded => {}
            Progress::Complete => break,
            other => panic!("unexpected {other:?}"),
        }
    }
    assert_eq!(found, [(0, nested::answer(below))]);
    assert_eq!(runtime.control().memory(), 0, "nothing is charged after the run");
}

/// Each of the scopes has any policy, and any limit on instances.
#[test]
fn no_policy_changes_a_result() {
    let first = mangrove_testdata::first_seed(0);
    for seed in first..first + mangrove_testdata::case_count(400) {
        let outcome = std::panic::catch_unwind(|| run_with_policies(seed));
        assert!(outcome.is_ok(), "seed {seed} fails");
    }
}
