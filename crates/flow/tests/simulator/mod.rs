//! A deterministic simulation of a run with helpers: one thread runs the home and the helpers in turns that a seed
//! chooses.
//!
//! The threads of a run act on one another through the board, between two messages. The simulation chooses who works off
//! the next messages. It lets one of the threads stall for long stretches, because uniform choice hardly ever does. A
//! thread that sleeps gets no turn until it is woken; if all sleep before the run is complete, the simulation fails. Two
//! calls of the board inside one meeting of the home with its helpers are not interleaved with others; tests with real
//! threads do that.
//!
//! [`Checked`] watches each operator: nothing comes to a port after its end, and no end comes twice (FLOW-3).

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mangrove_flow::{
    AnyOperator, Cursor, Exchange, GroupId, Helper, HelperStatus, NodeRuntime, Operator, Output, Placement, Progress,
    QueryLimits, Step, Topology, TopologyBuilder,
};
use mangrove_graph::Result;
use rand::prelude::*;
use rand::rngs::StdRng;

use crate::toys::*;

/// An operator that is watched.
struct Checked<O> {
    operator: O,
    ended: HashSet<(GroupId, u8)>,
}

impl<O: Operator<Numbers>> Operator<Numbers> for Checked<O> {
    fn begin(&mut self, context: &()) -> Result<()> {
        self.operator.begin(context)
    }

    fn is_passing(&self) -> bool {
        self.operator.is_passing()
    }

    fn flush(&mut self, out: &mut Output<'_, Numbers>) -> Result<()> {
        self.operator.flush(out)
    }

    fn receive(&mut self, port: u8, group: GroupId, batch: Numbers, out: &mut Output<'_, Numbers>) -> Result<()> {
        assert!(!self.ended.contains(&(group, port)), "rows come to operator {} after the end", out.operator());
        self.operator.receive(port, group, batch, out)
    }

    fn finish_step(
        &mut self,
        port: u8,
        group: GroupId,
        instances: u32,
        at: &mut Cursor,
        out: &mut Output<'_, Numbers>,
    ) -> Result<Step> {
        assert!(self.ended.insert((group, port)), "an end comes to operator {} twice", out.operator());
        self.operator.finish_step(port, group, instances, at, out)
    }
}

fn watched(operator: impl Operator<Numbers> + 'static) -> AnyOperator<Numbers> {
    AnyOperator::stateful(Checked { operator, ended: HashSet::new() })
}

/// Gathers up to a hundred rows before it sends them.
#[derive(Default)]
struct Gather(Vec<(GroupId, Numbers)>);

impl Operator<Numbers> for Gather {
    fn is_passing(&self) -> bool {
        true
    }

    fn flush(&mut self, out: &mut Output<'_, Numbers>) -> Result<()> {
        self.0.drain(..).try_for_each(|(group, rows)| out.emit(0, group, rows))
    }

    fn receive(&mut self, _: u8, group: GroupId, batch: Numbers, out: &mut Output<'_, Numbers>) -> Result<()> {
        self.0.push((group, batch));
        if self.0.len() > 3 { self.flush(out) } else { Ok(()) }
    }

    fn finish(&mut self, _: u8, group: GroupId, instances: u32, out: &mut Output<'_, Numbers>) -> Result<()> {
        self.flush(out)?;
        out.finish_all(group, instances)
    }
}

/// Lets each row through for which the pipeline inside finds something. The first result of an instance cancels it.
#[derive(Default)]
struct Where(Vec<(GroupId, Asked)>, Vec<(GroupId, u32)>);

struct Asked {
    outside: GroupId,
    rows: Numbers,
    found: HashSet<u32>,
}

impl Operator<Numbers> for Where {
    fn receive(&mut self, port: u8, group: GroupId, batch: Numbers, out: &mut Output<'_, Numbers>) -> Result<()> {
        if port == 1 {
            let asked = self.0.iter_mut().find(|(inside, _)| *inside == group);
            let (_, asked) = asked.expect("a group that is open");
            let inner = out.operator() + 1..out.operator() + 4;
            for (tag, _) in batch.0 {
                if asked.found.insert(tag) {
                    out.cancel_tag(group, inner.clone(), tag);
                }
            }
            return Ok(());
        }
        let inside = out.open_group(group);
        let count = batch.0.len() as u32;
        let tagged = (0..).zip(batch.0.iter().map(|(_, n)| *n)).collect();
        self.0.push((inside, Asked { outside: group, rows: batch, found: HashSet::new() }));
        out.emit(0, inside, Numbers(tagged))?;
        out.finish(0, inside, count)
    }

    fn finish(&mut self, port: u8, group: GroupId, instances: u32, out: &mut Output<'_, Numbers>) -> Result<()> {
        let outside = if port == 1 {
            let at = self.0.iter().position(|(inside, _)| *inside == group).expect("a group that is open");
            let (_, asked) = self.0.remove(at);
            out.close_group(group);
            let rows = asked.rows.0.into_iter().zip(0..).filter(|(_, tag)| asked.found.contains(tag));
            out.emit(1, asked.outside, Numbers(rows.map(|(row, _)| row).collect()))?;
            asked.outside
        } else {
            self.1.push((group, instances));
            group
        };
        if !self.0.iter().any(|(_, asked)| asked.outside == outside)
            && let Some(at) = self.1.iter().position(|(ended, _)| *ended == outside)
        {
            let (_, instances) = self.1.remove(at);
            return out.finish(1, outside, instances);
        }
        Ok(())
    }
}

/// A query of toys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// start → scan → neighbors → scope { neighbors → sum } → sum
    Scoped,
    /// start → scan → scope { neighbors → scope { neighbors → sum } → sum } → sum
    Nested,
    /// start → scan → neighbors → where { neighbors → gather → neighbors } → sum
    Where,
    /// start → scan → neighbors → limit
    Limit,
    /// start → scan → neighbors, whose rows must keep their order
    Ordered,
}

pub const PLANS: [Plan; 5] = [Plan::Scoped, Plan::Nested, Plan::Where, Plan::Limit, Plan::Ordered];

/// Rows that `Plan::Limit` lets through.
const LIMIT: usize = 70;

impl Plan {
    fn topology(self) -> Topology {
        let mut b = TopologyBuilder::default();
        let at = Placement::Home;
        let start = b.operator(at);
        let scan = b.operator(at);
        b.connect(start, scan, 0, Exchange::Local);
        let mut tail = scan;
        let next = |b: &mut TopologyBuilder, from: u16| {
            let id = b.operator(at);
            b.connect(from, id, 0, Exchange::Local);
            id
        };
        match self {
            Plan::Scoped => return scoped(),
            Plan::Nested => {
                let outer = next(&mut b, tail);
                let hop = b.operator(at);
                b.enter(outer, hop, 0, Exchange::Local);
                let inner = next(&mut b, hop);
                let inner_hop = b.operator(at);
                b.enter(inner, inner_hop, 0, Exchange::Local);
                let inner_sum = next(&mut b, inner_hop);
                b.connect(inner_sum, inner, 1, Exchange::Local);
                let outer_sum = next(&mut b, inner);
                b.connect(outer_sum, outer, 1, Exchange::Local);
                tail = next(&mut b, outer);
            }
            Plan::Where => {
                let hop = next(&mut b, tail);
                let scope = next(&mut b, hop);
                let first = b.operator(at);
                b.enter(scope, first, 0, Exchange::Local);
                let gather = next(&mut b, first);
                let second = next(&mut b, gather);
                b.connect(second, scope, 1, Exchange::Local);
                tail = next(&mut b, scope);
            }
            Plan::Limit => {
                let hop = next(&mut b, tail);
                tail = next(&mut b, hop);
            }
            Plan::Ordered => tail = next(&mut b, tail),
        }
        next(&mut b, tail);
        b.build()
    }

    fn operators(self, below: i64) -> Vec<AnyOperator<Numbers>> {
        if self == Plan::Scoped {
            return scoped_operators(below);
        }
        let mut operators = vec![AnyOperator::kernel(Start), AnyOperator::kernel(Scan { below, step: 7 })];
        operators.extend(match self {
            Plan::Scoped => Vec::new(),
            Plan::Nested => vec![
                watched(Scope::default()),
                AnyOperator::kernel(Neighbors(3)),
                watched(Scope::default()),
                AnyOperator::kernel(Neighbors(2)),
                watched(Sum::default()),
                watched(Sum::default()),
                watched(Sum::default()),
            ],
            Plan::Where => vec![
                AnyOperator::kernel(Neighbors(3)),
                watched(Where::default()),
                AnyOperator::kernel(Neighbors(2)),
                watched(Gather::default()),
                AnyOperator::kernel(Neighbors(2)),
                watched(Sum::default()),
            ],
            Plan::Limit => vec![AnyOperator::kernel(Neighbors(3)), watched(Limit(LIMIT))],
            Plan::Ordered => vec![AnyOperator::kernel(Neighbors(3))],
        });
        operators.push(watched(Sink));
        operators
    }

    /// For each operator, true if messages at it may be shared.
    fn stealable(self) -> Arc<[bool]> {
        let all = self.operators(1);
        all.iter().map(|operator| operator.is_kernel() && self != Plan::Ordered).collect()
    }

    /// Fails unless these are the numbers that the plan must find.
    fn check(self, found: &[i64], below: i64) {
        let hop = |n: i64, fan: i64| (1..=fan).map(move |d| n + d);
        match self {
            Plan::Scoped | Plan::Nested => {
                let sum: i64 = (0..below).flat_map(|n| hop(n, 3)).flat_map(|n| hop(n, 2)).sum();
                assert_eq!(found, [sum]);
            }
            Plan::Where => {
                let sum: i64 = (0..below).flat_map(|n| hop(n, 3)).sum();
                assert_eq!(found, [sum]);
            }
            Plan::Limit => assert_eq!(found.len(), LIMIT.min(3 * below as usize)),
            Plan::Ordered => {
                let all: Vec<i64> = (0..below).flat_map(|n| hop(n, 3)).collect();
                assert_eq!(found, all);
            }
        }
    }
}

/// A thread of the simulation: the home or a helper.
struct Actor {
    /// The actor found nothing to do in its last turn. It may sleep.
    is_tired: bool,
    is_awake: Arc<AtomicBool>,
    helper: Option<Helper<Numbers>>,
}

/// Runs a plan with helpers, by a seed. Panics if anything is wrong.
pub fn simulate(plan: Plan, seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let below = random.random_range(1..400);
    let control = control(QueryLimits::default());
    let mut home = NodeRuntime::new(0, 1, Arc::new(plan.topology()), plan.operators(below), control);
    home.begin(()).expect("a run begins");
    home.start(Numbers(vec![(0, 0)])).expect("a run starts");
    let mut found = Vec::new();
    // The run is opened in its middle.
    let mut until_open = random.random_range(0..10);
    let mut actors = vec![Actor { is_awake: Arc::new(AtomicBool::new(true)), helper: None, is_tired: false }];
    let mut stalled: Option<(usize, u32)> = None;
    loop {
        if until_open == 0 {
            let run = home.open(plan.stealable());
            for _ in 0..random.random_range(1..5) {
                let helper = Some(Helper::new(&run, plan.operators(below)));
                actors.push(Actor { is_awake: Arc::new(AtomicBool::new(true)), helper, is_tired: false });
            }
        }
        until_open -= 1;
        let awake: Vec<usize> = (0..actors.len()).filter(|at| actors[*at].is_awake.load(Ordering::Relaxed)).collect();
        assert!(!awake.is_empty(), "every thread sleeps before the run is complete");
        if stalled.is_none() && random.random_ratio(1, 50) {
            stalled = Some((random.random_range(0..actors.len()), random.random_range(1..200)));
        }
        let mut able = awake.clone();
        if let Some((actor, turns)) = &mut stalled {
            able.retain(|at| at != actor || awake.len() == 1);
            *turns -= 1;
        }
        stalled = stalled.filter(|(_, turns)| *turns > 0);
        let Some(&at) = able.choose(&mut random) else { continue };
        let quota = random.random_range(1..4);
        let wake = {
            let is_awake = actors[at].is_awake.clone();
            Box::new(move || is_awake.store(true, Ordering::Relaxed))
        };
        if std::mem::take(&mut actors[at].is_tired) {
            // Others may have had turns since.
            let sleeps = match &actors[at].helper {
                Some(helper) => helper.sleep(wake),
                None => home.sleep(wake),
            };
            if sleeps {
                actors[at].is_awake.store(false, Ordering::Relaxed);
            }
            continue;
        }
        let is_tired = match &mut actors[at].helper {
            Some(helper) => matches!(helper.turn(quota), HelperStatus::Idle | HelperStatus::Full),
            None => match home.run(quota).expect("no operator fails") {
                Progress::Results => {
                    found.extend(home.take_results().expect("there are results").0.iter().map(|(_, n)| *n));
                    false
                }
                Progress::Complete => break,
                Progress::Yielded => false,
                Progress::Waiting => true,
                Progress::Idle => panic!("an end-of-stream is missing"),
            },
        };
        actors[at].is_tired = is_tired && random.random_bool(0.8);
    }
    plan.check(&found, below);
    home.close();
    drop(actors);
    assert_eq!(home.control().memory(), 0, "nothing is charged after the run");
}
