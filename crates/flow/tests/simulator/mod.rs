//! Toy queries for the simulation of helpers ([`run_with_helpers`]).
//!
//! [`Checked`] watches each operator: nothing comes to a port after its end, and no end comes twice (FLOW-3).

pub mod nested;

use std::collections::HashSet;
use std::sync::Arc;

use mangrove_flow::{
    AnyOperator, Apart, Cursor, Exchange, GroupId, NodeRuntime, Operator, OuterTags, Output, Placement, QueryLimits,
    Sharers, Step, TagSet, Topology, TopologyBuilder,
};
use mangrove_graph::Result;
use mangrove_virtual_nodes::run_with_helpers;
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
        assert!(self.ended.insert((group, port)), "operator {} receives the end of a group twice", out.operator());
        self.operator.finish_step(port, group, instances, at, out)
    }

    fn cancelled(&mut self, group: GroupId, tags: Option<&TagSet>, out: &Output<'_, Numbers>) {
        self.operator.cancelled(group, tags, out);
    }

    fn set_apart(&mut self, inside: GroupId, tag: u32, out: &mut Output<'_, Numbers>) -> Result<Apart> {
        self.operator.set_apart(inside, tag, out)
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
    /// start → scan → neighbors → limit
    Limit,
    /// start → scan → neighbors, whose rows must keep their order
    Ordered,
}

pub const PLANS: [Plan; 6] = [Plan::Scoped, Plan::Nested, Plan::Where, Plan::Exists, Plan::Limit, Plan::Ordered];

/// Rows that `Plan::Limit` lets through.
const LIMIT: usize = 70;

impl Plan {
    pub fn topology(self) -> Topology {
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
            Plan::Limit => {
                let hop = next(&mut b, tail);
                tail = next(&mut b, hop);
            }
            Plan::Ordered => tail = next(&mut b, tail),
        }
        next(&mut b, tail);
        b.build()
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
    // Its operators compare all that they hold with the record, at each message.
    let below = random.random_range(1..if plan == Plan::Exists { 100 } else { 400 });
    let control = control(QueryLimits::default());
    let topology = match plan {
        Plan::Exists if random.random_bool(0.5) => {
            nested::topology(nested::policies(&mut random), random.random_bool(0.5))
        }
        plan => plan.topology(),
    };
    let mut home = NodeRuntime::new(0, 1, Arc::new(topology), plan.operators(below), control);
    home.begin(()).expect("a run begins");
    home.start(Numbers(vec![(0, 0)])).expect("a run starts");
    let sharers = Sharers { stealable, shares_all: random.random_bool(0.5) };
    let results = run_with_helpers(&mut home, &sharers, || Ok(plan.operators(below)), seed).expect("a run completes");
    let found: Vec<i64> = results.iter().flat_map(|batch| batch.0.iter().map(|(_, n)| *n)).collect();
    plan.check(&found, below);
    assert_eq!(home.control().memory(), 0, "nothing is charged after the run");
}
