//! Instances that share measured time. A row takes a microsecond of a clock that only the work moves.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use mangrove_flow::clock::{Clock, ManualClock};
use mangrove_flow::{
    AnyOperator, Between, Cursor, Exchange, GroupId, Kernel, NodeRuntime, Operator, OuterTags, Output, Placement,
    Policy, Progress, QueryControl, QueryLimits, Step, TopologyBuilder,
};
use mangrove_graph::Result;

use crate::toys::{Numbers, Scope, Sink};

/// Messages of equal size for one instance, which is opened with its first ones.
#[derive(Clone, Copy)]
pub struct Feed {
    /// The messages of all instances that must have come back before.
    pub after: usize,
    pub instance: i64,
    pub messages: usize,
    pub rows: usize,
}

/// A scope that feeds its instances.
struct Feeder {
    feeds: Vec<Feed>,
    returned: usize,
    open: BTreeMap<i64, GroupId>,
    instances: usize,
}

impl Feeder {
    fn feed(&mut self, out: &mut Output<'_, Numbers>) -> Result<()> {
        while let Some(feed) = self.feeds.first().copied().filter(|feed| feed.after <= self.returned) {
            self.feeds.remove(0);
            let open = || out.open_group(GroupId::ROOT, OuterTags::One(0));
            let group = match self.open.get(&feed.instance) {
                Some(group) => *group,
                None => *self.open.entry(feed.instance).or_insert_with(open),
            };
            for _ in 0..feed.messages {
                out.emit(0, group, Numbers(vec![(0, feed.instance); feed.rows]))?;
            }
            if self.feeds.iter().all(|later| later.instance != feed.instance) {
                self.open.remove(&feed.instance);
                self.instances += 1;
                out.finish(0, group, 1)?;
            }
        }
        Ok(())
    }
}

impl Operator<Numbers> for Feeder {
    fn receive(&mut self, port: u8, _: GroupId, _: Numbers, out: &mut Output<'_, Numbers>) -> Result<()> {
        self.returned += usize::from(port == 1);
        self.feed(out)
    }

    fn finish(&mut self, port: u8, group: GroupId, _: u32, out: &mut Output<'_, Numbers>) -> Result<()> {
        if port == 1 {
            self.instances -= 1;
            out.close_group(group);
            if self.feeds.is_empty() && self.instances == 0 && self.open.is_empty() {
                return out.finish(1, GroupId::ROOT, 1);
            }
        }
        Ok(())
    }
}

/// The calls of [`Work`]: when each ended, its instance, and its time, in microseconds.
type Calls = Arc<Mutex<Vec<(u64, i64, u64)>>>;

/// Takes a microsecond for each row, and sends the first one on.
struct Work {
    clock: Arc<ManualClock>,
    calls: Calls,
}

impl Kernel<Numbers> for Work {
    fn step(
        &mut self,
        batch: &mut Numbers,
        _: &mut Cursor,
        group: GroupId,
        out: &mut Output<'_, Numbers>,
    ) -> Result<Step> {
        let micros = batch.0.len() as u64;
        self.clock.advance(micros * 1_000);
        let call = (self.clock.now_nanos() / 1_000, batch.0[0].1, micros);
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
        out.emit(0, group, Numbers(vec![batch.0[0]]))?;
        Ok(Step::Done)
    }
}

/// Runs instances under an order between them. If `nests`, each message of an instance becomes a group of a scope
/// inside, whose groups have lanes, too. Returns the calls: for each, its instance and its time in microseconds.
pub fn run(feeds: &[Feed], between: Between, nests: bool) -> Vec<(i64, u64)> {
    let mut b = TopologyBuilder::default();
    let feeder = b.operator(Placement::Home);
    let nest = nests.then(|| b.operator(Placement::Home));
    let [work, sink] = [(); 2].map(|()| b.operator(Placement::Home));
    b.enter(feeder, nest.unwrap_or(work), 0, Exchange::Local);
    if let Some(nest) = nest {
        b.enter(nest, work, 0, Exchange::Local);
        b.set_policy(nest, Policy { between: Between::Dfs, ..Policy::default() });
        b.connect(work, nest, 1, Exchange::Local);
    }
    b.connect(nest.unwrap_or(work), feeder, 1, Exchange::Local);
    b.connect(feeder, sink, 0, Exchange::Local);
    b.set_policy(feeder, Policy { between, ..Policy::default() });
    let (clock, calls) = (Arc::new(ManualClock::default()), Calls::default());
    let feeder = Feeder { feeds: feeds.to_vec(), returned: 0, open: BTreeMap::new(), instances: 0 };
    let mut operators = vec![AnyOperator::stateful(feeder)];
    if nests {
        operators.push(AnyOperator::stateful(Scope::default()));
    }
    operators.push(AnyOperator::kernel(Work { clock: clock.clone(), calls: calls.clone() }));
    operators.push(AnyOperator::stateful(Sink));
    let control = Arc::new(QueryControl::new(QueryLimits::default(), clock, Arc::default()));
    let mut runtime = NodeRuntime::new(0, 1, Arc::new(b.build()), operators, control);
    runtime.begin(None).expect("a run begins");
    runtime.start(Numbers(vec![(0, 0)])).expect("a run starts");
    assert_eq!(runtime.run(usize::MAX).expect("a run goes on"), Progress::Complete);
    assert_eq!((runtime.control().memory(), runtime.lane_count()), (0, 0), "nothing is left after the run");
    let calls = calls.lock().unwrap_or_else(PoisonError::into_inner);
    assert!(calls.is_sorted(), "the clock goes on");
    calls.iter().map(|(_, instance, micros)| (*instance, *micros)).collect()
}

/// Two instances with as many messages, of which one has a hundred times as many rows, work for the same time while
/// both have work (FLOW-47).
pub fn two_instances_share_time() {
    for nests in [false, true] {
        let light = Feed { after: 0, instance: 1, messages: 1_000, rows: 1 };
        let heavy = Feed { instance: 2, rows: 100, ..light };
        for feeds in [[light, heavy], [heavy, light]] {
            let calls = run(&feeds, Between::Fair, nests);
            let mut times = [0, 0];
            let last_light = calls.iter().rposition(|(instance, _)| *instance == 1).expect("it has run");
            for (instance, micros) in &calls[..=last_light] {
                times[*instance as usize - 1] += micros;
                assert!(times[0].abs_diff(times[1]) <= 101, "one has worked for much longer: {times:?}, {nests}");
            }
            assert_eq!(times[0], 1_000);
        }
    }
}
