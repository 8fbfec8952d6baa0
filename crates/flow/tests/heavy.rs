//! One heavy instance beside a hundred light ones in a group: how many messages are processed before the light ones
//! have all their results. Counted, not timed. And how many rows the home makes if a helper enters the
//! scope.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mangrove_flow::{
    AnyOperator, Apart, Cursor, Detail, Exchange, GroupId, Helper, HelperStatus, Kernel, NodeRuntime, OpId, Operator,
    OuterTags, Output, Placement, Progress, QueryLimits, Sharers, Step, TagSet, TopologyBuilder,
};
use mangrove_graph::Result;

use crate::toys::{Neighbors, Numbers, Scope, Sink, Start, control};

/// A row is the number of an instance, times this, plus the rows that the instance makes.
const INSTANCE: i64 = 1_000_000;

const HEAVY: i64 = 100_000;
const LIGHT: i64 = 10;

/// The most rows of a message. Light instances have no more, so they are never found heavy.
const MESSAGE_ROWS: i64 = LIGHT;

/// Makes the rows of one instance in each step, up to a message full.
struct MakeRows;

impl Kernel<Numbers> for MakeRows {
    fn step(
        &mut self,
        batch: &mut Numbers,
        at: &mut Cursor,
        group: GroupId,
        out: &mut Output<'_, Numbers>,
    ) -> Result<Step> {
        let (tag, row) = batch.0[at.row as usize];
        let made = if let Detail::Words([made, _]) = at.detail { made as i64 } else { 0 };
        let rows = MESSAGE_ROWS.min(row % INSTANCE - made);
        out.emit(0, group, Numbers((0..rows).map(|_| (tag, row / INSTANCE)).collect()))?;
        if made + rows < row % INSTANCE {
            at.detail = Detail::Words([(made + rows) as u64, 0]);
        } else {
            at.go_to(at.row as usize + 1);
        }
        Ok(if (at.row as usize) < batch.0.len() { Step::More } else { Step::Done })
    }
}

/// Passes one row of each instance on, when its group ends.
#[derive(Default)]
struct Last(HashMap<GroupId, HashMap<u32, i64>>);

impl Operator<Numbers> for Last {
    fn receive(&mut self, _: u8, group: GroupId, batch: Numbers, _: &mut Output<'_, Numbers>) -> Result<()> {
        self.0.entry(group).or_default().extend(batch.0);
        Ok(())
    }

    fn finish(&mut self, _: u8, group: GroupId, instances: u32, out: &mut Output<'_, Numbers>) -> Result<()> {
        out.emit(0, group, Numbers(self.0.remove(&group).unwrap_or_default().into_iter().collect()))?;
        out.finish_all(group, instances)
    }

    fn cancelled(&mut self, group: GroupId, tags: Option<&TagSet>, _: &Output<'_, Numbers>) {
        if let Some(kept) = self.0.get_mut(&group) {
            kept.retain(|tag, _| tags.is_some_and(|tags| !tags.contains(*tag)));
        }
    }
}

/// The instances of one group.
struct Inside {
    rows: Vec<i64>,
    has_result: HashSet<u32>,
    gone: HashSet<u32>,
}

/// What the scope does with a heavy instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Stays,
    /// It begins again, unless it has results.
    BeginsAgain,
    /// It steps aside, as if it had results.
    StepsAside,
}

/// An instance for each row. Results leave as they come.
struct EachRow {
    rule: Rule,
    end: OpId,
    inside: HashMap<GroupId, Inside>,
    has_ended: bool,
}

impl EachRow {
    fn enter(&mut self, rows: Vec<i64>, out: &mut Output<'_, Numbers>) -> Result<()> {
        let inside = out.open_group(GroupId::ROOT, OuterTags::One(0));
        let count = rows.len() as u32;
        let entering = Numbers((0..).zip(rows.iter().copied()).collect());
        self.inside.insert(inside, Inside { rows, has_result: HashSet::new(), gone: HashSet::new() });
        out.emit(0, inside, entering)?;
        out.finish(0, inside, count)
    }
}

impl Operator<Numbers> for EachRow {
    fn is_by_group(&self) -> bool {
        true
    }

    fn is_by_batch(&self) -> bool {
        true
    }

    fn send_instances_home(&mut self, group: GroupId, tags: &[u32], out: &mut Output<'_, Numbers>) -> Result<bool> {
        let inside = self.inside.get_mut(&group).expect("a group that is open");
        if self.rule == Rule::Stays {
            return Ok(false);
        }
        let rows = tags.iter().filter(|tag| !inside.has_result.contains(tag) && inside.gone.insert(**tag));
        let rows: Vec<u32> = rows.copied().collect();
        rows.iter().for_each(|tag| out.cancel_tag(group, out.operator() + 1..self.end, *tag));
        let have_gone = !rows.is_empty();
        out.send_home(GroupId::ROOT, Numbers(rows.iter().map(|tag| (0, inside.rows[*tag as usize])).collect()));
        Ok(have_gone)
    }

    fn receive(&mut self, port: u8, group: GroupId, batch: Numbers, out: &mut Output<'_, Numbers>) -> Result<()> {
        if port == 0 {
            return self.enter(batch.0.iter().map(|(_, row)| *row).collect(), out);
        }
        let inside = self.inside.get_mut(&group).expect("a group that is open");
        let wanted = batch.0.into_iter().filter(|(tag, _)| !inside.gone.contains(tag));
        let results: Vec<(u32, i64)> = wanted.collect();
        inside.has_result.extend(results.iter().map(|(tag, _)| *tag));
        out.emit(1, GroupId::ROOT, Numbers(results.into_iter().map(|(_, n)| (0, n)).collect()))
    }

    fn finish(&mut self, port: u8, group: GroupId, _: u32, out: &mut Output<'_, Numbers>) -> Result<()> {
        if port == 0 {
            self.has_ended = true;
        } else {
            self.inside.remove(&group);
            out.close_group(group);
        }
        if self.has_ended && self.inside.is_empty() { out.finish(1, GroupId::ROOT, 1) } else { Ok(()) }
    }

    fn set_apart(&mut self, group: GroupId, tag: u32, out: &mut Output<'_, Numbers>) -> Result<Apart> {
        let inside = self.inside.get_mut(&group).expect("a group that is open");
        if self.rule == Rule::Stays || inside.rows.len() == 1 {
            return Ok(Apart::Stays);
        }
        if self.rule == Rule::StepsAside || inside.has_result.contains(&tag) {
            return Ok(Apart::HasResults);
        }
        inside.gone.insert(tag);
        let row = inside.rows[tag as usize];
        out.cancel_tag(group, out.operator() + 1..self.end, tag);
        self.enter(vec![row], out)?;
        Ok(Apart::BeginsAgain)
    }
}

/// The outcome of a run.
#[derive(Debug)]
struct Outcome {
    /// The messages that were processed before the light instances had all their results.
    light: u64,
    all: u64,
    set_apart: u64,
}

/// Runs a hundred light instances, and first a heavy one if there is one. `keeps`: each instance has one result, when
/// its group ends; otherwise each row is a result.
/// `in_order`: the rows of each instance keep their order.
fn run(has_heavy: bool, keeps: bool, in_order: bool, rule: Rule) -> Outcome {
    let mut b = TopologyBuilder::default();
    let count = if keeps { 5 } else { 4 };
    let all: Vec<OpId> = (0..count).map(|_| b.operator(Placement::Home)).collect();
    let [start, scope, make] = [all[0], all[1], all[2]];
    b.connect(start, scope, 0, Exchange::Local);
    b.enter(scope, make, 0, Exchange::Local);
    let last = all[count - 2];
    if keeps {
        b.connect(make, last, 0, Exchange::Local);
    }
    b.connect(last, scope, 1, Exchange::Local);
    b.connect(scope, all[count - 1], 0, Exchange::Local);
    match in_order {
        true => b.set_unordered_instances(make),
        false => b.set_unordered(make),
    }
    let each = EachRow { rule, end: last + 1, inside: HashMap::new(), has_ended: false };
    let mut operators = vec![AnyOperator::kernel(Start), AnyOperator::stateful(each), AnyOperator::kernel(MakeRows)];
    if keeps {
        operators.push(AnyOperator::stateful(Last::default()));
    }
    operators.push(AnyOperator::stateful(Sink));
    let mut runtime = NodeRuntime::new(0, 1, Arc::new(b.build()), operators, control(QueryLimits::default()));
    runtime.begin(None).unwrap();
    let heavy = has_heavy.then_some(HEAVY);
    let rows = heavy.into_iter().chain((1..=100).map(|number| number * INSTANCE + LIGHT));
    runtime.start(Numbers(rows.map(|row| (0, row)).collect())).unwrap();
    let (mut light, mut results) = (0, HashMap::<i64, i64>::new());
    loop {
        let progress = runtime.run(1).unwrap();
        while let Some(batch) = runtime.take_results() {
            for (_, number) in batch.0 {
                *results.entry(number).or_default() += 1;
                light = if number > 0 { runtime.messages() } else { light };
            }
        }
        if progress == Progress::Complete {
            break;
        }
    }
    let of_each = |rows: i64| if keeps { 1 } else { rows };
    assert!((1..=100).all(|number| results[&number] == of_each(LIGHT)), "{results:?}");
    assert_eq!(results.get(&0).copied(), heavy.map(of_each));
    assert_eq!(runtime.control().memory(), 0);
    Outcome { light, all: runtime.messages(), set_apart: runtime.set_apart_count() }
}

/// The light instances have their results after at most a tenth more messages than without the heavy one.
#[test]
fn light_instances_do_not_wait_for_a_heavy_one() {
    for (keeps, in_order, rule) in [
        (true, false, Rule::BeginsAgain),
        (false, false, Rule::BeginsAgain),
        (false, false, Rule::StepsAside),
        (false, true, Rule::StepsAside),
    ] {
        let alone = run(false, keeps, in_order, rule);
        let beside = run(true, keeps, in_order, rule);
        let waiting = run(true, keeps, in_order, Rule::Stays);
        println!(
            "keeps {keeps}, in order {in_order}, {rule:?}: alone {alone:?}, beside a heavy one {beside:?}, heavy one \
             stays {waiting:?}"
        );
        assert!(beside.light * 10 <= alone.light * 11, "{} messages, {} alone", beside.light, alone.light);
        assert!(waiting.light > 10 * alone.light, "the heavy instance costs nothing");
        assert_eq!((alone.set_apart, beside.set_apart), (0, u64::from(rule == Rule::BeginsAgain)));
        // To begin again costs little.
        assert!(beside.all * 100 <= waiting.all * 101, "{} messages, {} without", beside.all, waiting.all);
    }
}

/// Replaces each row of a message by nine, all in one message. Those of a row follow one another.
struct Nine;

impl Kernel<Numbers> for Nine {
    fn step(
        &mut self,
        batch: &mut Numbers,
        _: &mut Cursor,
        group: GroupId,
        out: &mut Output<'_, Numbers>,
    ) -> Result<Step> {
        let nine = |(tag, row): &(u32, i64)| (0..9).map(|at| (*tag, 9 * row + at)).collect::<Vec<_>>();
        out.emit(0, group, Numbers(batch.0.iter().flat_map(nine).collect()))?;
        Ok(Step::Done)
    }
}

/// Runs a scope of a hundred instances in which each message counts its first unfinished instance as heavy. Returns
/// true if the instances leave in their order, and true if the rows of each instance do.
fn keeps_order(set_order: fn(&mut TopologyBuilder, OpId)) -> (bool, bool) {
    let mut b = TopologyBuilder::default();
    let all: Vec<OpId> = (0..6).map(|_| b.operator(Placement::Home)).collect();
    let [start, scope, nine, first, second, sink] = all[..] else { panic!("six operators") };
    b.connect(start, scope, 0, Exchange::Local);
    b.enter(scope, nine, 0, Exchange::Local);
    b.connect(nine, first, 0, Exchange::Local);
    b.connect(first, second, 0, Exchange::Local);
    b.connect(second, scope, 1, Exchange::Local);
    b.connect(scope, sink, 0, Exchange::Local);
    b.set_all_apart();
    [first, second].into_iter().for_each(|hop| set_order(&mut b, hop));
    let operators = vec![
        AnyOperator::kernel(Start),
        AnyOperator::stateful(Scope::default()),
        AnyOperator::kernel(Nine),
        AnyOperator::kernel(Neighbors(1)),
        AnyOperator::kernel(Neighbors(1)),
        AnyOperator::stateful(Sink),
    ];
    let mut runtime = NodeRuntime::new(0, 1, Arc::new(b.build()), operators, control(QueryLimits::default()));
    runtime.begin(None).unwrap();
    runtime.start(Numbers((0..100).map(|row| (0, row)).collect())).unwrap();
    let mut found = Vec::new();
    while runtime.run(1).unwrap() != Progress::Complete {
        while let Some(batch) = runtime.take_results() {
            // Each hop has added 1.
            found.extend(batch.0.into_iter().map(|(_, n)| n - 2));
        }
    }
    assert_eq!(found.iter().copied().collect::<HashSet<i64>>(), (0..900).collect());
    assert_eq!((found.len(), runtime.control().memory()), (900, 0));
    let rows_in_order = |row: i64| found.iter().filter(|n| **n / 9 == row).is_sorted();
    (found.is_sorted_by_key(|n| n / 9), (0..100).all(rows_in_order))
}

/// Rows of other instances go before those of a heavy one; rows of the same instance do so only if they need no order.
#[test]
fn rows_of_an_instance_keep_their_order_if_its_reader_sees_it() {
    assert_eq!(keeps_order(|_, _| ()), (true, true));
    assert_eq!(keeps_order(|b, hop| b.set_unordered_instances(hop)), (false, true));
    assert_eq!(keeps_order(|b, hop| b.set_unordered(hop)), (false, false));
}

/// Runs a scope with 150 light instances, and 150 that make a thousand rows each. A helper takes the second half of the message
/// and enters the scope with it. Returns the part of all rows that the home makes.
fn part_of_home(rule: Rule) -> f64 {
    let mut b = TopologyBuilder::default();
    let all: Vec<OpId> = (0..4).map(|_| b.operator(Placement::Home)).collect();
    let [start, scope, make, sink] = all[..] else { panic!("four operators") };
    b.connect(start, scope, 0, Exchange::Local);
    b.enter(scope, make, 0, Exchange::Local);
    b.connect(make, scope, 1, Exchange::Local);
    b.connect(scope, sink, 0, Exchange::Local);
    b.set_unordered(make);
    let operators = || {
        let each = EachRow { rule, end: make + 1, inside: HashMap::new(), has_ended: false };
        let kernels = [AnyOperator::kernel(Start), AnyOperator::kernel(MakeRows)];
        let [start, make] = kernels;
        vec![start, AnyOperator::stateful(each), make, AnyOperator::stateful(Sink)]
    };
    let mut home = NodeRuntime::new(0, 1, Arc::new(b.build()), operators(), control(QueryLimits::default()));
    home.begin(None).unwrap();
    let rows = (1..=300).map(|number| number * INSTANCE + if number <= 150 { LIGHT } else { 1_000 });
    home.start(Numbers(rows.map(|row| (0, row)).collect())).unwrap();
    let run = home.open(Sharers { stealable: [true, false, true, false].into(), shares_all: false });
    run.expect(1);
    let mut helper = Helper::new(&run, operators());
    let (mut results, mut sleeps) = (0, Arc::new(AtomicBool::new(false)));
    home.run(1).unwrap();
    assert_eq!(
        helper.turn(2),
        HelperStatus::Busy,
        "it takes the message that the home has offered, and enters the scope"
    );
    'run: loop {
        // A message of results ends each call.
        for _ in 0..8 {
            if sleeps.load(Ordering::Relaxed) {
                break;
            }
            match home.run(4).unwrap() {
                Progress::Complete => break 'run,
                Progress::Results => results += home.take_results().unwrap().0.len(),
                Progress::Waiting => {
                    sleeps = Arc::new(AtomicBool::new(true));
                    let wakes = sleeps.clone();
                    let sleeps_now = home.sleep(Box::new(move || wakes.store(false, Ordering::Relaxed)));
                    sleeps.store(sleeps_now, Ordering::Relaxed);
                }
                _ => {}
            }
        }
        if matches!(helper.turn(4), HelperStatus::Idle | HelperStatus::Full) {
            helper.sleep(Box::new(|| ()));
        }
    }
    let by_helper = home.close().operators[usize::from(make)].rows_out;
    assert_eq!(home.control().memory(), 0);
    1.0 - by_helper as f64 / results as f64
}

/// The home does not wait while a helper works off a scope alone.
#[test]
fn a_helper_sends_instances_home_if_the_home_has_nothing_to_do() {
    let (alone, shared) = (part_of_home(Rule::Stays), part_of_home(Rule::BeginsAgain));
    println!("part of the home: {alone:.2} if instances stay, {shared:.2} if they may go home");
    assert!(alone < 0.3 && (0.4..0.8).contains(&shared), "{alone}, {shared}");
}
