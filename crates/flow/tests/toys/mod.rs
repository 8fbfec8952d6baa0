//! A batch of numbers instead of traversers, and operators for it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use mangrove_flow::clock::MonotonicClock;
use mangrove_flow::{
    AnyOperator, Apart, Batch, Cursor, Detail, Exchange, GroupId, Kernel, NodeId, Operator, OuterTags, Output,
    Placement, QueryControl, QueryLimits, Step, TagSet, Topology, TopologyBuilder,
};
use mangrove_graph::{Elements, Error, LateReads, Need, Result, TabletId, VertexId};
use mangrove_virtual_nodes::LateReader;

/// Rows of (tag, number). The remainder of a number decides which node owns it.
#[derive(Clone, Default, Debug)]
pub struct Numbers(pub Vec<(u32, i64)>);

impl Batch for Numbers {
    /// In a run with late reads: the view, which must be asked for each number that an operator reads.
    type Context = Option<LateReader>;
    type Rank = i64;

    fn late(context: &Self::Context) -> Option<&dyn LateReads> {
        context.as_ref().map(|reader| reader as &dyn LateReads)
    }

    fn rows(&self) -> usize {
        self.0.len()
    }
    fn bytes(&self) -> usize {
        self.0.len() * 16
    }
    fn tag(&self, row: usize) -> u32 {
        self.0[row].0
    }
    fn split_off(&mut self, row: usize) -> Self {
        Numbers(self.0.split_off(row))
    }

    fn duplicate(&self) -> Self {
        self.clone()
    }
    fn partition(self, nodes: u16) -> Vec<(NodeId, Self)> {
        let mut parts: HashMap<NodeId, Numbers> = HashMap::new();
        for (tag, n) in self.0 {
            parts.entry(n.rem_euclid(i64::from(nodes)) as NodeId).or_default().0.push((tag, n));
        }
        parts.into_iter().collect()
    }
    fn discard(&mut self, tags: &TagSet, at: &mut Cursor) {
        let rest = at.row..self.0.len() as u32;
        let kept: Vec<u32> = rest.clone().filter(|row| !tags.contains(self.0[*row as usize].0)).collect();
        if kept.len() < rest.len() {
            self.0 = kept.iter().map(|row| self.0[*row as usize]).collect();
            at.keep(&kept);
        }
    }
    fn encode(&self, out: &mut Vec<u8>) {
        for (tag, n) in &self.0 {
            out.extend_from_slice(&tag.to_le_bytes());
            out.extend_from_slice(&n.to_le_bytes());
        }
    }
    fn decode(bytes: &[u8]) -> Result<Self> {
        let row = |b: &[u8]| {
            let (tag, n) = b.split_first_chunk::<4>()?;
            Some((u32::from_le_bytes(*tag), i64::from_le_bytes(n.try_into().ok()?)))
        };
        let rows: Option<Vec<_>> = bytes.chunks(12).map(row).collect();
        rows.map(Numbers).ok_or_else(|| Error::bug("cut short"))
    }
}

/// What an operator says that reads these numbers.
pub fn need<'a>(numbers: impl IntoIterator<Item = i64>) -> Need<'a> {
    let vertices: Vec<VertexId> = numbers.into_iter().map(vertex).collect();
    Need::Values { of: Elements::Vertices(vertices.into()), keys: None }
}

fn vertex(number: i64) -> VertexId {
    VertexId::new(TabletId(0), 2 * number.unsigned_abs() + u64::from(number < 0))
}

/// Reads numbers, if the run has late reads. Fails unless all of them were asked for.
pub fn read(numbers: impl IntoIterator<Item = i64>, out: &Output<'_, Numbers>) -> Result<()> {
    match out.context() {
        Some(reader) => numbers.into_iter().try_for_each(|number| reader.read(vertex(number))),
        None => Ok(()),
    }
}

/// Every node emits the numbers below `below` that it owns, `step` of them in each step.
pub struct Scan {
    pub below: i64,
    pub step: i64,
}

impl Kernel<Numbers> for Scan {
    fn step(
        &mut self,
        _: &mut Numbers,
        at: &mut Cursor,
        group: GroupId,
        out: &mut Output<'_, Numbers>,
    ) -> Result<Step> {
        let from = if let Detail::Words([next, _]) = at.detail { next as i64 } else { 0 };
        let to = (from + self.step).min(self.below);
        let (node, nodes) = (i64::from(out.node()), i64::from(out.nodes()));
        out.emit(0, group, Numbers((from..to).filter(|n| n % nodes == node).map(|n| (0, n)).collect()))?;
        at.detail = Detail::Words([to as u64, 0]);
        Ok(if to < self.below { Step::More } else { Step::Done })
    }
}

/// Replaces n by n + 1, …, n + fan. Checks that it receives only numbers that its node owns.
pub struct Neighbors(pub i64);

/// The rows that a step of [`Neighbors`] works on.
pub const STEP_ROWS: usize = 200;

impl Kernel<Numbers> for Neighbors {
    fn needs<'a>(&'a mut self, input: &'a Numbers, at: &Cursor, _: &'a Option<LateReader>) -> Result<Need<'a>> {
        Ok(need(input.0.iter().skip(at.row as usize).map(|(_, n)| *n)))
    }

    fn step(
        &mut self,
        batch: &mut Numbers,
        at: &mut Cursor,
        group: GroupId,
        out: &mut Output<'_, Numbers>,
    ) -> Result<Step> {
        let until = batch.0.len().min(at.row as usize + STEP_ROWS);
        let rows = &batch.0[at.row as usize..until];
        for (_, n) in rows {
            assert_eq!(n.rem_euclid(i64::from(out.nodes())), i64::from(out.node()), "{n} belongs elsewhere");
        }
        read(rows.iter().map(|(_, n)| *n), out)?;
        let fan = |(tag, n): &(u32, i64)| (1..=self.0).map(|d| (*tag, n + d)).collect::<Vec<_>>();
        out.emit(0, group, Numbers(rows.iter().flat_map(fan).collect()))?;
        at.go_to(until);
        Ok(if until < batch.0.len() { Step::More } else { Step::Done })
    }
}

/// The sum of every instance; 0 for an instance without rows.
#[derive(Default)]
pub struct Sum(HashMap<GroupId, HashMap<u32, i64>>);

impl Operator<Numbers> for Sum {
    fn is_by_group(&self) -> bool {
        true
    }

    fn receive(&mut self, _: u8, group: GroupId, batch: Numbers, _: &mut Output<'_, Numbers>) -> Result<()> {
        let sums = self.0.entry(group).or_default();
        batch.0.iter().for_each(|(tag, n)| *sums.entry(*tag).or_default() += n);
        Ok(())
    }
    fn finish(&mut self, _: u8, group: GroupId, instances: u32, out: &mut Output<'_, Numbers>) -> Result<()> {
        let sums = self.0.remove(&group).unwrap_or_default();
        let rows = (0..instances).map(|tag| (tag, sums.get(&tag).copied().unwrap_or(0))).collect();
        out.emit(0, group, Numbers(rows))?;
        out.finish_all(group, instances)
    }
}

/// A branch scope: replaces n by the results of the pipeline inside (edge 0 in, edge 1 out, port 1 back).
#[derive(Default)]
pub struct Scope {
    inside: HashMap<GroupId, GroupId>,
    open: HashMap<GroupId, u32>,
    ended: HashMap<GroupId, u32>,
}

impl Operator<Numbers> for Scope {
    fn is_by_group(&self) -> bool {
        true
    }

    fn is_by_batch(&self) -> bool {
        true
    }

    /// No instance begins again, as if results of it had left.
    fn set_apart(&mut self, _: GroupId, _: u32, _: &mut Output<'_, Numbers>) -> Result<Apart> {
        Ok(Apart::HasResults)
    }

    fn receive(&mut self, port: u8, group: GroupId, batch: Numbers, out: &mut Output<'_, Numbers>) -> Result<()> {
        if port == 1 {
            let outside = self.inside[&group];
            return out.emit(1, outside, Numbers(batch.0.into_iter().map(|(_, n)| (0, n)).collect()));
        }
        let inside = out.open_group(group, OuterTags::Each(batch.0.iter().map(|(tag, _)| *tag).collect()));
        self.inside.insert(inside, group);
        *self.open.entry(group).or_default() += 1;
        let count = batch.0.len() as u32;
        let tagged = batch.0.into_iter().enumerate().map(|(tag, (_, n))| (tag as u32, n)).collect();
        out.emit(0, inside, Numbers(tagged))?;
        out.finish(0, inside, count)
    }
    fn finish(&mut self, port: u8, group: GroupId, instances: u32, out: &mut Output<'_, Numbers>) -> Result<()> {
        let outside = if port == 1 {
            out.close_group(group);
            let outside = self.inside.remove(&group).unwrap();
            *self.open.get_mut(&outside).unwrap() -= 1;
            outside
        } else {
            self.ended.insert(group, instances);
            group
        };
        match self.ended.get(&outside) {
            Some(&instances) if self.open.get(&outside).copied().unwrap_or(0) == 0 => out.finish(1, outside, instances),
            _ => Ok(()),
        }
    }
}

/// Passes the first `n` rows, then cancels the work upstream.
pub struct Limit(pub usize);

impl Operator<Numbers> for Limit {
    fn needs<'a>(
        &'a mut self,
        _: u8,
        batch: &'a Numbers,
        _: &'a Option<LateReader>,
        _: &Arc<QueryControl>,
    ) -> Result<Need<'a>> {
        Ok(need(batch.0.iter().map(|(_, n)| *n)))
    }

    fn receive(&mut self, _: u8, group: GroupId, mut batch: Numbers, out: &mut Output<'_, Numbers>) -> Result<()> {
        read(batch.0.iter().map(|(_, n)| *n), out)?;
        batch.0.truncate(self.0);
        self.0 -= batch.0.len();
        if self.0 == 0 {
            out.cancel(group, 0..out.operator());
        }
        out.emit(0, group, batch)
    }
}

pub struct Sink;

impl Operator<Numbers> for Sink {
    fn recycle(&mut self) -> bool {
        true
    }

    fn receive(&mut self, _: u8, _: GroupId, batch: Numbers, out: &mut Output<'_, Numbers>) -> Result<()> {
        out.deliver(batch);
        Ok(())
    }
    fn finish(&mut self, _: u8, _: GroupId, _: u32, out: &mut Output<'_, Numbers>) -> Result<()> {
        out.complete();
        Ok(())
    }
}

pub struct Start;

impl Kernel<Numbers> for Start {
    fn step(
        &mut self,
        batch: &mut Numbers,
        _: &mut Cursor,
        group: GroupId,
        out: &mut Output<'_, Numbers>,
    ) -> Result<Step> {
        out.emit(0, group, std::mem::take(batch))?;
        Ok(Step::Done)
    }
}

pub fn control(limits: QueryLimits) -> Arc<QueryControl> {
    Arc::new(QueryControl::new(limits, Arc::new(MonotonicClock::default()), Arc::new(AtomicBool::new(false))))
}

/// start → scan → neighbors → scope { neighbors → sum } → sum → sink
pub fn scoped() -> Topology {
    scoped_with(false)
}

/// As [`scoped`]; with `true`, rows of a message go before the row at hand whenever a step leaves work over.
pub fn scoped_with(sets_all_apart: bool) -> Topology {
    let mut b = TopologyBuilder::default();
    let start = b.operator(Placement::Home);
    let scan = b.operator(Placement::Spread);
    b.connect(start, scan, 0, Exchange::Broadcast);
    let hop = b.operator(Placement::Spread);
    b.connect(scan, hop, 0, Exchange::Owner);
    let scope = b.operator(Placement::Spread);
    b.connect(hop, scope, 0, Exchange::Local);
    let inner_hop = b.operator(Placement::Spread);
    b.enter(scope, inner_hop, 0, Exchange::Owner);
    let inner_sum = b.operator(Placement::Home);
    b.connect(inner_hop, inner_sum, 0, Exchange::Home);
    b.connect(inner_sum, scope, 1, Exchange::Local);
    let sum = b.operator(Placement::Home);
    b.connect(scope, sum, 0, Exchange::Home);
    let sink = b.operator(Placement::Home);
    b.connect(sum, sink, 0, Exchange::Local);
    b.set_unordered(inner_hop);
    if sets_all_apart {
        b.set_all_apart();
    }
    b.build()
}

pub fn scoped_operators(below: i64) -> Vec<AnyOperator<Numbers>> {
    vec![
        AnyOperator::kernel(Start),
        AnyOperator::kernel(Scan { below, step: 100 }),
        AnyOperator::kernel(Neighbors(3)),
        AnyOperator::stateful(Scope::default()),
        AnyOperator::kernel(Neighbors(2)),
        AnyOperator::stateful(Sum::default()),
        AnyOperator::stateful(Sum::default()),
        AnyOperator::stateful(Sink),
    ]
}
