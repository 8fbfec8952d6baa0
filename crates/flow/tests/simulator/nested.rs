//! Scopes nested three deep, with random cancellations.
//!
//! ```text
//! scan → exists { spread → exists { spread → exists { spread → keep multiples → hold } → hold } → hold } → sum
//! ```
//!
//! A row passes `exists` if the pipeline inside finds something for it. Its first result decides, and may cancel the
//! instance. A [`Record`] knows which instances are cancelled, and with them those nested in them. Operators with state
//! check that they neither receive nor hold rows of cancelled instances (FLOW-40, FLOW-41).

use std::collections::{HashMap, HashSet, VecDeque};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};

use mangrove_flow::{
    AnyOperator, Apart, Between, Cursor, Detail, Exchange, GroupId, Inside, Kernel, NodeRuntime, OpId, Operator,
    OuterTags, Output, Placement, Policy, Progress, QueryControl, QueryLimits, Step, TagSet, Topology, TopologyBuilder,
};
use mangrove_graph::{Need, Result};
use mangrove_virtual_nodes::LateReader;
use rand::prelude::*;
use rand::rngs::StdRng;

use super::watched;
use crate::toys::*;

/// Which groups nest in which, and which instances are cancelled.
#[derive(Clone, Default)]
struct Record(Arc<Mutex<Recorded>>);

#[derive(Default)]
struct Recorded {
    /// By group: the group outside, and by tag the instance there.
    groups: HashMap<GroupId, (GroupId, Vec<u32>)>,
    cancelled: HashSet<(GroupId, u32)>,
}

impl Record {
    fn with<R>(&self, read: impl FnOnce(&mut Recorded) -> R) -> R {
        read(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn is_live(&self, group: GroupId, tag: u32) -> bool {
        self.with(|record| {
            let mut at = (group, tag);
            loop {
                if record.cancelled.contains(&at) {
                    return false;
                }
                let Some((outside, outer)) = record.groups.get(&at.0) else { return true };
                at = (*outside, outer[at.1 as usize]);
            }
        })
    }

    fn check(&self, group: GroupId, tags: impl IntoIterator<Item = u32>, operator: OpId) {
        for tag in tags {
            assert!(self.is_live(group, tag), "operator {operator} meets a cancelled instance");
        }
    }
}

/// The rows of a group inside.
struct Asked {
    outside: GroupId,
    rows: Vec<(u32, i64)>,
    /// The instances with a result.
    found: HashSet<u32>,
    /// The instances that have begun again in groups of their own.
    gone: HashSet<u32>,
}

/// Lets each row through for which the pipeline inside finds something, at the first result.
struct Exists {
    /// The number after the last operator inside.
    end: OpId,
    record: Record,
    random: StdRng,
    /// By group inside.
    asked: HashMap<GroupId, Asked>,
    /// By group outside: the groups inside and the batches in `queued`, and the instances after the end has come.
    waiting: HashMap<GroupId, (u32, Option<u32>)>,
    /// Rows that have not entered, and their group outside.
    queued: VecDeque<(GroupId, Vec<(u32, i64)>)>,
    /// The instances inside.
    live: usize,
}

impl Exists {
    fn new(end: OpId, record: &Record, seed: u64) -> Self {
        let random = StdRng::seed_from_u64(seed);
        Exists {
            end,
            record: record.clone(),
            random,
            asked: HashMap::new(),
            waiting: HashMap::new(),
            queued: VecDeque::new(),
            live: 0,
        }
    }

    /// Lets in as many of the queued rows as there is room for.
    fn admit(&mut self, out: &mut Output<'_, Numbers>) -> Result<()> {
        let max = out.policy().instances_max.map_or(usize::MAX, |max| max.get() as usize);
        while self.live < max
            && let Some((group, mut rows)) = self.queued.pop_front()
        {
            let rest = rows.split_off(rows.len().min(max - self.live));
            if rest.is_empty() {
                self.waiting.get_mut(&group).expect("a group outside").0 -= 1;
            } else {
                self.queued.push_front((group, rest));
            }
            if rows.is_empty() {
                self.end_if_done(group, out)?;
                continue;
            }
            self.live += rows.len();
            self.waiting.entry(group).or_default().0 += 1;
            self.ask(group, rows, out)?;
        }
        assert!(self.live <= max, "{} instances, and {max} may be inside", self.live);
        Ok(())
    }

    /// Lets rows of a group in.
    fn ask(&mut self, group: GroupId, rows: Vec<(u32, i64)>, out: &mut Output<'_, Numbers>) -> Result<()> {
        let tags: Vec<u32> = rows.iter().map(|(tag, _)| *tag).collect();
        let rank = rows.iter().map(|(_, n)| n % 5).min().unwrap_or_default();
        let inside = out.open_ranked(group, OuterTags::Each(tags.clone()), rank);
        self.record.with(|record| record.groups.insert(inside, (group, tags)));
        let (count, entering) = (rows.len() as u32, (0..).zip(rows.iter().map(|(_, n)| *n)).collect());
        self.asked.insert(inside, Asked { outside: group, rows, found: HashSet::new(), gone: HashSet::new() });
        out.emit(0, inside, Numbers(entering))?;
        out.finish(0, inside, count)
    }

    /// Sends the end of a group outside, if it has come and nothing of the group is inside or queued.
    fn end_if_done(&mut self, group: GroupId, out: &mut Output<'_, Numbers>) -> Result<()> {
        if let Some((0, Some(instances))) = self.waiting.get(&group).copied() {
            self.waiting.remove(&group);
            out.finish(1, group, instances)?;
        }
        Ok(())
    }
}

impl Operator<Numbers> for Exists {
    fn is_by_group(&self) -> bool {
        true
    }

    fn is_by_batch(&self) -> bool {
        true
    }

    fn receive(&mut self, port: u8, group: GroupId, batch: Numbers, out: &mut Output<'_, Numbers>) -> Result<()> {
        let tags: Vec<u32> = batch.0.iter().map(|(tag, _)| *tag).collect();
        if port == 0 {
            self.record.check(group, tags.iter().copied(), out.operator());
            self.waiting.entry(group).or_default().0 += 1;
            self.queued.push_back((group, batch.0));
            return self.admit(out);
        }
        let Asked { outside, rows, found, gone } = self.asked.get_mut(&group).expect("a group that is open");
        // A result of an instance that is cancelled here may be on its way, but none of one that is cancelled outside.
        self.record.check(*outside, tags.iter().map(|tag| rows[*tag as usize].0), out.operator());
        let mut passed = Vec::new();
        for tag in tags {
            if !gone.contains(&tag) && found.insert(tag) {
                passed.push(rows[tag as usize]);
                if self.random.random_bool(0.7) {
                    out.cancel_tag(group, out.operator() + 1..self.end, tag);
                    self.record.with(|record| record.cancelled.insert((group, tag)));
                }
            }
        }
        out.emit(1, *outside, Numbers(passed))
    }

    fn finish(&mut self, port: u8, group: GroupId, instances: u32, out: &mut Output<'_, Numbers>) -> Result<()> {
        if port == 0 {
            self.waiting.entry(group).or_default().1 = Some(instances);
            return self.end_if_done(group, out);
        }
        out.close_group(group);
        let Asked { outside, rows, .. } = self.asked.remove(&group).expect("a group that is open");
        self.live -= rows.len();
        self.waiting.get_mut(&outside).expect("a group outside").0 -= 1;
        self.end_if_done(outside, out)?;
        self.admit(out)
    }

    fn set_apart(&mut self, inside: GroupId, tag: u32, out: &mut Output<'_, Numbers>) -> Result<Apart> {
        let asked = self.asked.get_mut(&inside).expect("a group that is open");
        if out.policy().instances_max.is_some() || asked.rows.len() == 1 || asked.gone.contains(&tag) {
            return Ok(Apart::Stays);
        }
        if asked.found.contains(&tag) {
            return Ok(Apart::HasResults);
        }
        // It stays until it has results, or is asked again.
        if self.random.random_bool(0.5) {
            return Ok(Apart::Stays);
        }
        asked.gone.insert(tag);
        let (outside, row) = (asked.outside, asked.rows[tag as usize]);
        out.cancel_tag(inside, out.operator() + 1..self.end, tag);
        self.record.with(|record| record.cancelled.insert((inside, tag)));
        if out.has_other_home(outside) && self.random.random_bool(0.5) {
            out.send_home(outside, Numbers(vec![row]));
            return Ok(Apart::BeginsAgain);
        }
        self.waiting.entry(outside).or_default().0 += 1;
        self.live += 1;
        self.ask(outside, vec![row], out)?;
        Ok(Apart::BeginsAgain)
    }

    fn send_instances_home(&mut self, inside: GroupId, tags: &[u32], out: &mut Output<'_, Numbers>) -> Result<bool> {
        let asked = self.asked.get_mut(&inside).expect("a group that is open");
        if out.policy().instances_max.is_some() || !out.has_other_home(asked.outside) {
            return Ok(false);
        }
        let mut rows = Vec::new();
        for tag in tags {
            if !asked.found.contains(tag) && self.random.random_bool(0.5) && asked.gone.insert(*tag) {
                out.cancel_tag(inside, out.operator() + 1..self.end, *tag);
                self.record.with(|record| record.cancelled.insert((inside, *tag)));
                rows.push(asked.rows[*tag as usize]);
            }
        }
        let have_gone = !rows.is_empty();
        out.send_home(asked.outside, Numbers(rows));
        Ok(have_gone)
    }

    /// Rows are queued only while instances are inside, so `admit` is called again and ends their groups.
    fn cancelled(&mut self, group: GroupId, tags: Option<&TagSet>, _: &Output<'_, Numbers>) {
        for (_, rows) in self.queued.iter_mut().filter(|(of, _)| *of == group) {
            rows.retain(|(tag, _)| tags.is_some_and(|tags| !tags.contains(*tag)));
        }
    }
}

/// Holds the last rows of a group, and charges them.
struct Hold {
    rows_max: usize,
    record: Record,
    held: HashMap<GroupId, Vec<(u32, i64)>>,
}

impl Hold {
    fn check(&self, operator: OpId) {
        for (group, rows) in &self.held {
            self.record.check(*group, rows.iter().map(|(tag, _)| *tag), operator);
        }
    }

    /// Sends all but the last rows of a group.
    fn send_but(&mut self, last: usize, group: GroupId, out: &mut Output<'_, Numbers>) -> Result<()> {
        let held = self.held.entry(group).or_default();
        let rows: Vec<(u32, i64)> = held.drain(..held.len().saturating_sub(last)).collect();
        out.control().release(16 * rows.len() as u64);
        out.emit(0, group, Numbers(rows))
    }
}

impl Operator<Numbers> for Hold {
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

    fn receive(&mut self, _: u8, group: GroupId, batch: Numbers, out: &mut Output<'_, Numbers>) -> Result<()> {
        read(batch.0.iter().map(|(_, n)| *n), out)?;
        self.record.check(group, batch.0.iter().map(|(tag, _)| *tag), out.operator());
        self.check(out.operator());
        out.control().charge(16 * batch.0.len() as u64)?;
        self.held.entry(group).or_default().extend(batch.0);
        self.send_but(self.rows_max, group, out)
    }

    fn finish(&mut self, _: u8, group: GroupId, instances: u32, out: &mut Output<'_, Numbers>) -> Result<()> {
        self.check(out.operator());
        self.send_but(0, group, out)?;
        self.held.remove(&group);
        out.finish_all(group, instances)
    }

    fn cancelled(&mut self, group: GroupId, tags: Option<&TagSet>, out: &Output<'_, Numbers>) {
        let Some(held) = self.held.get_mut(&group) else { return };
        let before = held.len();
        held.retain(|(tag, _)| tags.is_some_and(|tags| !tags.contains(*tag)));
        out.control().release(16 * (before - held.len()) as u64);
    }
}

/// Replaces n by n + 1, …, n + fan, one number in each step.
struct Spread(i64);

impl Kernel<Numbers> for Spread {
    fn needs<'a>(&'a mut self, batch: &'a Numbers, at: &Cursor, _: &'a Option<LateReader>) -> Result<Need<'a>> {
        Ok(need(batch.0.iter().skip(at.row as usize).map(|(_, n)| *n)))
    }

    fn step(
        &mut self,
        batch: &mut Numbers,
        at: &mut Cursor,
        group: GroupId,
        out: &mut Output<'_, Numbers>,
    ) -> Result<Step> {
        let (tag, n) = batch.0[at.row as usize];
        read([n], out)?;
        let made = if let Detail::Words([made, _]) = at.detail { made as i64 } else { 0 };
        out.emit(0, group, Numbers(vec![(tag, n + made + 1)]))?;
        if made + 1 < self.0 {
            at.detail = Detail::Words([made as u64 + 1, 0]);
        } else {
            at.go_to(at.row as usize + 1);
        }
        Ok(if (at.row as usize) < batch.0.len() { Step::More } else { Step::Done })
    }
}

/// Keeps multiples of this number.
struct Multiples(i64);

impl Kernel<Numbers> for Multiples {
    fn step(
        &mut self,
        batch: &mut Numbers,
        _: &mut Cursor,
        group: GroupId,
        out: &mut Output<'_, Numbers>,
    ) -> Result<Step> {
        out.emit(0, group, Numbers(batch.0.iter().filter(|(_, n)| n % self.0 == 0).copied().collect()))?;
        Ok(Step::Done)
    }
}

/// What the innermost pipeline looks for: multiples of this number.
const WANTED: i64 = 11;

/// The scopes with these policies. `sets_all_apart`: every instance counts as heavy.
pub fn topology(policies: [Policy; 3], sets_all_apart: bool) -> Topology {
    let mut b = TopologyBuilder::default();
    let all: Vec<OpId> = (0..14).map(|_| b.operator(Placement::Home)).collect();
    let mut connect = |from: usize, to: usize, port| b.connect(all[from], all[to], port, Exchange::Local);
    // The edge into a scope is the first of its operator.
    for (from, to) in [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7), (7, 8), (8, 9)] {
        connect(from, to, 0);
    }
    connect(9, 6, 1);
    connect(6, 10, 0);
    connect(10, 4, 1);
    connect(4, 11, 0);
    connect(11, 2, 1);
    connect(2, 12, 0);
    connect(12, 13, 0);
    for (scope, policy) in [2, 4, 6].into_iter().zip(policies) {
        b.set_policy(all[scope], policy);
    }
    [3, 5, 7].iter().for_each(|spread| b.set_unordered(all[*spread]));
    if sets_all_apart {
        b.set_all_apart();
    }
    b.build()
}

pub fn operators(below: i64) -> Vec<AnyOperator<Numbers>> {
    let record = Record::default();
    let exists = |end: OpId| watched(Exists::new(end, &record, below as u64 + u64::from(end)));
    let hold = |rows_max| watched(Hold { rows_max, record: record.clone(), held: HashMap::new() });
    vec![
        AnyOperator::kernel(Start),
        AnyOperator::kernel(Scan { below, step: 7 }),
        exists(12),
        AnyOperator::kernel(Spread(3)),
        exists(11),
        AnyOperator::kernel(Spread(2)),
        exists(10),
        AnyOperator::kernel(Spread(2)),
        AnyOperator::kernel(Multiples(WANTED)),
        hold(0),
        hold(2),
        hold(1),
        watched(Sum::default()),
        watched(Sink),
    ]
}

/// The sum of the numbers below `below` that pass.
pub fn answer(below: i64) -> i64 {
    (0..below).filter(|n| (n + 3..=n + 7).any(|m| m % WANTED == 0)).sum()
}

/// Policies of the three scopes that a seed chooses.
pub fn policies(random: &mut StdRng) -> [Policy; 3] {
    std::array::from_fn(|_| Policy {
        inside: *[Inside::Dfs, Inside::Bfs, Inside::Fifo].choose(random).unwrap_or(&Inside::Dfs),
        between: *[Between::Fifo, Between::Bfs, Between::Dfs, Between::Rank, Between::Fair]
            .choose(random)
            .unwrap_or(&Between::Fifo),
        // Zero stands for no limit.
        instances_max: NonZeroU32::new(*[0, 1, 2, 5].choose(random).unwrap_or(&0)),
    })
}

/// Sends its input a hundred times in one call, so most of its messages wait.
struct Burst;

impl Operator<Numbers> for Burst {
    fn receive(&mut self, _: u8, group: GroupId, batch: Numbers, out: &mut Output<'_, Numbers>) -> Result<()> {
        (0..100).try_for_each(|_| out.emit(0, group, batch.clone()))
    }
}

/// A scope whose first result cancels its group, or all work for the group outside.
struct First {
    outside: Option<GroupId>,
    cancels_outside: bool,
    is_answered: Arc<Mutex<bool>>,
}

impl Operator<Numbers> for First {
    fn receive(&mut self, port: u8, group: GroupId, batch: Numbers, out: &mut Output<'_, Numbers>) -> Result<()> {
        if port == 0 {
            self.outside = Some(group);
            let inside = out.open_group(group, OuterTags::One(0));
            out.emit(0, inside, batch)?;
            return out.finish(0, inside, 1);
        }
        match self.outside.filter(|_| self.cancels_outside) {
            Some(outside) => out.cancel(outside, 0..out.operator() + 3),
            None => out.cancel(group, out.operator() + 1..out.operator() + 3),
        }
        *self.is_answered.lock().unwrap_or_else(PoisonError::into_inner) = true;
        Ok(())
    }

    fn finish(&mut self, port: u8, group: GroupId, _: u32, out: &mut Output<'_, Numbers>) -> Result<()> {
        if port == 1 {
            out.close_group(group);
            out.complete();
        }
        Ok(())
    }
}

/// When a group is cancelled as a whole, also with the group outside, the messages that wait for it are dropped with
/// their charge (FLOW-41).
pub fn a_canceled_group_releases_its_messages() {
    for cancels_outside in [false, true] {
        let mut b = TopologyBuilder::default();
        let all: Vec<OpId> = (0..3).map(|_| b.operator(Placement::Home)).collect();
        for (from, to, port) in [(0, 1, 0), (1, 2, 0), (2, 0, 1)] {
            b.connect(all[from], all[to], port, Exchange::Local);
        }
        let is_answered = Arc::new(Mutex::new(false));
        let first = First { outside: None, cancels_outside, is_answered: is_answered.clone() };
        let operators = vec![AnyOperator::stateful(first), AnyOperator::stateful(Burst), AnyOperator::kernel(Start)];
        let mut runtime = NodeRuntime::new(0, 1, Arc::new(b.build()), operators, control(QueryLimits::default()));
        runtime.begin(None).expect("a run begins");
        runtime.start(Numbers(vec![(0, 7)])).expect("a run starts");
        let mut was_charged = false;
        loop {
            let progress = runtime.run(1).expect("a run goes on");
            if *is_answered.lock().unwrap_or_else(PoisonError::into_inner) {
                assert_eq!(runtime.control().memory(), 0, "messages of a cancelled group are charged");
            }
            was_charged |= runtime.control().memory() > 0;
            match progress {
                Progress::Yielded => {}
                Progress::Complete => break,
                other => panic!("unexpected {other:?}"),
            }
        }
        assert!(was_charged, "no message has waited");
    }
}
