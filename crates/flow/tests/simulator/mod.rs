//! Toy queries for the simulation of helpers ([`run_with_helpers`]).
//!
//! [`Checked`] watches each operator: nothing comes to a port after its end, and no end comes twice (FLOW-3).

pub mod nested;
pub mod parts;
mod rounds;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
#[cfg(not(feature = "model"))]
use std::sync::Mutex;

use mangrove_flow::{
    AnyOperator, Apart, Cursor, Exchange, GroupId, NodeRuntime, Operator, OuterTags, Output, Placement, Policy,
    QueryControl, QueryLimits, ReadCredit, Shared, SharedState, Sharers, Step, TagSet, Topology, TopologyBuilder,
};
use mangrove_graph::{Need, Result};
use mangrove_virtual_nodes::{Habits, LateReader, run_with_helpers, run_with_late_reads};
use parts::{Tally, tallied};
use rand::prelude::*;
use rand::rngs::StdRng;
use rounds::Rounds;
#[cfg(feature = "model")]
use shuttle::sync::Mutex;

use crate::toys::*;

/// An operator that is watched.
struct Checked<O> {
    operator: O,
    ended: HashSet<(GroupId, u8)>,
}

impl<O: Operator<Numbers>> Operator<Numbers> for Checked<O> {
    fn begin(&mut self, context: &Option<LateReader>) -> Result<()> {
        self.operator.begin(context)
    }

    fn needs<'a>(
        &'a mut self,
        port: u8,
        batch: &'a Numbers,
        context: &'a Option<LateReader>,
        control: &Arc<QueryControl>,
    ) -> Result<Need<'a>> {
        self.operator.needs(port, batch, context, control)
    }

    fn is_passing(&self) -> bool {
        self.operator.is_passing()
    }

    fn is_by_group(&self) -> bool {
        self.operator.is_by_group()
    }

    fn is_by_batch(&self) -> bool {
        self.operator.is_by_batch()
    }

    fn share(&mut self) -> Option<Shared> {
        self.operator.share()
    }

    fn join(&mut self, state: &SharedState) {
        self.operator.join(state);
    }

    fn flush(&mut self, out: &mut Output<'_, Numbers>) -> Result<()> {
        self.operator.flush(out)
    }

    fn keeps_rows(&self) -> bool {
        self.operator.keeps_rows()
    }

    fn receive(&mut self, port: u8, group: GroupId, batch: Numbers, out: &mut Output<'_, Numbers>) -> Result<()> {
        assert!(
            !self.ended.contains(&(group, port)),
            "operator {} receives rows after the end of their group",
            out.operator()
        );
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
        // What is left of an end comes again.
        let is_new = self.ended.insert((group, port));
        assert!(is_new || !at.is_start(), "operator {} receives the end of a group twice", out.operator());
        self.operator.finish_step(port, group, instances, at, out)
    }

    fn work_part(&mut self, group: GroupId, at: &mut Cursor, out: &mut Output<'_, Numbers>) -> Result<Step> {
        self.operator.work_part(group, at, out)
    }

    fn cancelled(&mut self, group: GroupId, tags: Option<&TagSet>, out: &Output<'_, Numbers>) {
        self.operator.cancelled(group, tags, out);
    }

    fn set_apart(&mut self, inside: GroupId, tag: u32, out: &mut Output<'_, Numbers>) -> Result<Apart> {
        self.operator.set_apart(inside, tag, out)
    }

    fn send_instances_home(&mut self, inside: GroupId, tags: &[u32], out: &mut Output<'_, Numbers>) -> Result<bool> {
        self.operator.send_instances_home(inside, tags, out)
    }
}

fn watched(operator: impl Operator<Numbers> + 'static) -> AnyOperator<Numbers> {
    AnyOperator::stateful(Checked { operator, ended: HashSet::new() })
}

/// Gathers up to a hundred rows before it sends them.
#[derive(Default)]
struct Gather(Vec<(GroupId, Numbers)>);

impl Operator<Numbers> for Gather {
    fn is_by_group(&self) -> bool {
        true
    }

    fn needs<'a>(
        &'a mut self,
        _: u8,
        batch: &'a Numbers,
        _: &'a Option<LateReader>,
        _: &Arc<QueryControl>,
    ) -> Result<Need<'a>> {
        Ok(need(batch.0.iter().map(|(_, n)| *n)))
    }

    fn is_passing(&self) -> bool {
        true
    }

    fn keeps_rows(&self) -> bool {
        !self.0.is_empty()
    }

    fn flush(&mut self, out: &mut Output<'_, Numbers>) -> Result<()> {
        self.0.drain(..).try_for_each(|(group, rows)| out.emit(0, group, rows))
    }

    fn receive(&mut self, _: u8, group: GroupId, batch: Numbers, out: &mut Output<'_, Numbers>) -> Result<()> {
        read(batch.0.iter().map(|(_, n)| *n), out)?;
        self.0.push((group, batch));
        if self.0.len() > 3 { self.flush(out) } else { Ok(()) }
    }

    fn finish(&mut self, _: u8, group: GroupId, instances: u32, out: &mut Output<'_, Numbers>) -> Result<()> {
        self.flush(out)?;
        out.finish_all(group, instances)
    }
}

/// What threads have seen of each group.
type SharedNumbers = Mutex<HashMap<GroupId, HashSet<i64>>>;

/// Lets each number of a group through once. Its threads share what they have seen (FLOW-29). After the last number it
/// sends how many it has let through, as a negative number.
struct Distinct(Arc<SharedNumbers>);

impl Distinct {
    fn new() -> Self {
        Distinct(Arc::new(Mutex::new(HashMap::new())))
    }
}

impl Operator<Numbers> for Distinct {
    fn share(&mut self) -> Option<Shared> {
        Some(Shared { state: self.0.clone(), from_port: 0 })
    }

    fn join(&mut self, state: &SharedState) {
        self.0 = state.clone().downcast().expect("the state of the same operator");
    }

    fn receive(&mut self, _: u8, group: GroupId, mut batch: Numbers, out: &mut Output<'_, Numbers>) -> Result<()> {
        {
            let mut groups = self.0.lock().unwrap();
            let seen = groups.entry(group).or_default();
            batch.0.retain(|(_, n)| seen.insert(*n));
        }
        out.emit(0, group, batch)
    }

    fn finish(&mut self, _: u8, group: GroupId, instances: u32, out: &mut Output<'_, Numbers>) -> Result<()> {
        let seen = self.0.lock().unwrap().remove(&group).map_or(0, |seen| seen.len());
        out.emit(0, group, Numbers(vec![(0, -(seen as i64))]))?;
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
    fn is_by_group(&self) -> bool {
        true
    }

    fn is_by_batch(&self) -> bool {
        true
    }

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
        let inside = out.open_group(group, OuterTags::Each(batch.0.iter().map(|(tag, _)| *tag).collect()));
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
    /// Scopes nested three deep, with random cancellations ([`nested`]).
    Exists,
    /// start → scan → neighbors → distinct → neighbors → sum
    Distinct,
    /// start → scan → rounds { neighbors → neighbors } → sum
    Rounds,
    /// start → scan → neighbors → tally → neighbors → sum
    Parts,
    /// start → scan → scope { neighbors → tally → neighbors → sum } → sum
    PartsInside,
    /// start → scan → neighbors → tally → neighbors → limit
    PartsLimited,
    /// start → scan → neighbors → limit
    Limit,
    /// start → scan → neighbors, whose rows must keep their order
    Ordered,
}

pub const PLANS: [Plan; 11] = [
    Plan::Scoped,
    Plan::Nested,
    Plan::Where,
    Plan::Exists,
    Plan::Distinct,
    Plan::Rounds,
    Plan::Parts,
    Plan::PartsInside,
    Plan::PartsLimited,
    Plan::Limit,
    Plan::Ordered,
];

/// Rows that limits let through.
const LIMIT: usize = 70;

impl Plan {
    pub fn topology(self) -> Topology {
        self.topology_with(Policy::default())
    }

    /// The topology. `policy` is that of the scope of `Plan::Rounds` and `Plan::PartsInside`.
    fn topology_with(self, policy: Policy) -> Topology {
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
            Plan::Exists => return nested::topology(Default::default(), false),
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
            Plan::Distinct | Plan::Parts | Plan::PartsLimited => (0..4).for_each(|_| tail = next(&mut b, tail)),
            Plan::PartsInside => {
                let scope = next(&mut b, tail);
                let hop = b.operator(at);
                b.enter(scope, hop, 0, Exchange::Local);
                let mut inside = hop;
                (0..3).for_each(|_| inside = next(&mut b, inside));
                b.connect(inside, scope, 1, Exchange::Local);
                b.set_policy(scope, policy);
                tail = next(&mut b, scope);
            }
            Plan::Rounds => {
                let rounds = next(&mut b, tail);
                let hop = b.operator(at);
                b.enter(rounds, hop, 0, Exchange::Local);
                let last = next(&mut b, hop);
                b.connect(last, rounds, 1, Exchange::Local);
                b.set_policy(rounds, policy);
                tail = next(&mut b, rounds);
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

    /// The topology, with policies that a seed chooses.
    fn any_topology(self, random: &mut StdRng) -> Topology {
        match self {
            Plan::Scoped => scoped_with(random.random_bool(0.5)),
            Plan::Exists => {
                let policies = if random.random_bool(0.5) { nested::policies(random) } else { Default::default() };
                nested::topology(policies, random.random_bool(0.5))
            }
            Plan::Rounds | Plan::PartsInside => self.topology_with(nested::policies(random)[0]),
            plan => plan.topology(),
        }
    }

    /// The numbers that a simulation scans.
    fn below(self, random: &mut StdRng) -> i64 {
        // The operators of `Exists` compare all that they hold with the record, at each message.
        random.random_range(1..if self == Plan::Exists { 100 } else { 400 })
    }

    pub fn operators(self, below: i64) -> Vec<AnyOperator<Numbers>> {
        match self {
            Plan::Scoped => return scoped_operators(below),
            Plan::Exists => return nested::operators(below),
            _ => {}
        }
        let mut operators = vec![AnyOperator::kernel(Start), AnyOperator::kernel(Scan { below, step: 7 })];
        operators.extend(match self {
            Plan::Scoped | Plan::Exists => Vec::new(),
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
            Plan::Distinct => vec![
                AnyOperator::kernel(Neighbors(3)),
                watched(Distinct::new()),
                AnyOperator::kernel(Neighbors(2)),
                watched(Sum::default()),
            ],
            Plan::Rounds => vec![
                watched(Rounds::new()),
                AnyOperator::kernel(Neighbors(2)),
                AnyOperator::kernel(Neighbors(1)),
                watched(Sum::default()),
            ],
            Plan::Parts | Plan::PartsLimited => vec![
                AnyOperator::kernel(Neighbors(3)),
                watched(Tally::new(false)),
                AnyOperator::kernel(Neighbors(2)),
                if self == Plan::Parts { watched(Sum::default()) } else { watched(Limit(LIMIT)) },
            ],
            Plan::PartsInside => vec![
                watched(Scope::default()),
                AnyOperator::kernel(Neighbors(30)),
                watched(Tally::new(false)),
                AnyOperator::kernel(Neighbors(2)),
                watched(Sum::default()),
                watched(Sum::default()),
            ],
            Plan::Limit => vec![AnyOperator::kernel(Neighbors(3)), watched(Limit(LIMIT))],
            Plan::Ordered => vec![AnyOperator::kernel(Neighbors(3))],
        });
        operators.push(watched(Sink));
        operators
    }

    /// For each operator, true if messages at it may be shared.
    pub fn stealable(self) -> Arc<[bool]> {
        if self == Plan::Ordered { self.operators(1).iter().map(|_| false).collect() } else { kernels(self) }
    }

    /// Fails unless these are the numbers that the plan must find.
    pub fn check(self, found: &[i64], below: i64) {
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
            Plan::Exists => assert_eq!(found, [nested::answer(below)]),
            Plan::Distinct => {
                let distinct = 1..below + 3;
                // The last number goes through the hop, too.
                let all = distinct.clone().chain(std::iter::once(-(distinct.end - distinct.start)));
                assert_eq!(found, [all.flat_map(|n| hop(n, 2)).sum::<i64>()]);
            }
            Plan::Rounds => {
                let round = |n: i64| hop(n, 2).flat_map(move |n| hop(n, 1));
                let sum: i64 = (0..below).flat_map(round).flat_map(round).flat_map(round).sum();
                assert_eq!(found, [sum]);
            }
            Plan::Parts => {
                let all = tallied((0..below).flat_map(|n| hop(n, 3)));
                assert_eq!(found, [all.into_iter().flat_map(|n| hop(n, 2)).sum::<i64>()]);
            }
            Plan::PartsInside => {
                let inside = |n: i64| tallied(hop(n, 30)).into_iter().flat_map(|n| hop(n, 2)).sum::<i64>();
                assert_eq!(found, [(0..below).map(inside).sum::<i64>()]);
            }
            // Each number, and how many there were.
            Plan::PartsLimited => assert_eq!(found.len(), LIMIT.min(2 * (below as usize + 3))),
            Plan::Limit => assert_eq!(found.len(), LIMIT.min(3 * below as usize)),
            Plan::Ordered => {
                let all: Vec<i64> = (0..below).flat_map(|n| hop(n, 3)).collect();
                assert_eq!(found, all);
            }
        }
    }
}

/// For each operator of a plan, true if it is a kernel.
pub fn kernels(plan: Plan) -> Arc<[bool]> {
    plan.operators(1).iter().map(AnyOperator::is_kernel).collect()
}

/// Runs a plan with helpers, by a seed. Panics if anything is wrong.
pub fn simulate(plan: Plan, seed: u64) {
    simulate_sharing(plan, seed, plan.stealable());
}

/// As [`simulate`]; messages at these operators are shared.
pub fn simulate_sharing(plan: Plan, seed: u64, stealable: Arc<[bool]>) {
    let mut random = StdRng::seed_from_u64(seed);
    let below = plan.below(&mut random);
    let mut home = started(plan, plan.any_topology(&mut random), below, None);
    let sharers = Sharers { stealable, shares_all: random.random_bool(0.5) };
    let results = run_with_helpers(&mut home, &sharers, || Ok(plan.operators(below)), seed).expect("a run completes");
    check_end(plan, below, &results, &home);
}

/// A run of a plan that has started; with a reader, its reads are late.
pub fn started(plan: Plan, topology: Topology, below: i64, reader: Option<LateReader>) -> NodeRuntime<Numbers> {
    let control = control(QueryLimits::default());
    let mut home = NodeRuntime::new(0, 1, Arc::new(topology), plan.operators(below), control);
    home.begin(reader).expect("a run begins");
    home.start(Numbers(vec![(0, 0)])).expect("a run starts");
    home
}

/// Fails unless a run of the plan has found what it must, and nothing is left of it.
pub fn check_end(plan: Plan, below: i64, results: &[Numbers], home: &NodeRuntime<Numbers>) {
    let found: Vec<i64> = results.iter().flat_map(|batch| batch.0.iter().map(|(_, n)| *n)).collect();
    plan.check(&found, below);
    assert_eq!(home.control().memory(), 0, "nothing is charged after the run");
}

/// As [`simulate`], with late reads. Reads may fail: then the run fails, too.
pub fn simulate_late(plan: Plan, seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let below = plan.below(&mut random);
    let topology = plan.any_topology(&mut random);
    let mut chance = |of: f64| if random.random_bool(0.5) { 0.0 } else { random.random_range(0.0..of) };
    let habits = Habits {
        at_hand: chance(0.9),
        full: chance(0.3),
        early: chance(0.5),
        again: chance(0.5),
        fails: if seed.is_multiple_of(8) { chance(0.1) } else { 0.0 },
        room: [0, 0, 10, 200][random.random_range(0..4)],
    };
    let reader = LateReader::new(habits, seed);
    let mut home = started(plan, topology, below, Some(reader.clone()));
    if random.random_bool(0.7) {
        home.allow_any_order(plan.stealable());
    }
    if random.random_bool(0.3) {
        home.limit_reads(ReadCredit { reads: random.random_range(1..60), bytes: u64::MAX });
    }
    let sharers = Sharers { stealable: plan.stealable(), shares_all: random.random_bool(0.5) };
    let replica = || Ok(plan.operators(below));
    match run_with_late_reads(&mut home, &sharers, replica, &reader, seed) {
        Ok(results) => check_end(plan, below, &results, &home),
        Err(error) => assert!(habits.fails > 0.0 && error.message() == "a read has failed", "{error}"),
    }
    // Reads of a run that is over are completed without effect, and nothing keeps memory of the view.
    reader.complete_all();
    drop(home);
    assert_eq!(reader.counts().pinned, 0, "holds are left");
}
