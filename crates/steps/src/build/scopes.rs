//! Builds scopes: the operator of the scope, the pipelines inside, and the edges back to it; the split and merge of
//! `union()` and `choose()`; and joins.

use mangrove_flow::{Between, Exchange, Inside, OpId, Placement, Policy};
use mangrove_graph::{Error, Result, Value};
use mangrove_gremlin::Operator;
use mangrove_plan::logical::{
    Avoids, ChooseOption, InstanceOrder, LoopSearch, Name, Priority as PriorityPlan, PriorityOf, Reduction,
    ScopePolicy, WorkOrder,
};
use mangrove_plan::physical::{
    Computation, LocalKind, LocalScope, LoopTest, Modulate as ModulatePlan, Op, OrderReader, Over, Pipeline, Purpose,
    RepeatScope, Scheduling, Stage,
};

use super::{Builder, ChainEnd, OperatorDescription, RowLocation};
use crate::barrier::join::Join;
use crate::row::operator::RowAdapter;
use crate::row::paths;
use crate::rows::Remember;
use crate::rows::rank::Priority;
use crate::scope::branch::{BranchKind, BranchScope, BranchShape};
use crate::scope::group::GroupScope;
use crate::scope::loop_shape::{LoopCondition, LoopShape};
use crate::scope::ordered::OrderedScope;
use crate::scope::priority_loop::PriorityLoop;
use crate::scope::repeat::LoopScope;
use crate::scope::split::{Merge, OptionMatch, Split, Switch};
use crate::values::predicate::CompiledTest;

/// Returns the operator that joins two results for one key of a `group()`, if its members are reduced to a number.
fn joining(value: &Pipeline) -> Option<Operator> {
    match &value.stages.last()?.operator {
        Op::Reduce(Reduction::Count | Reduction::Sum)
        | Op::ReduceValues { reduction: Reduction::Sum, .. }
        | Op::CountExpand(_) => Some(Operator::Sum),
        Op::Reduce(Reduction::Min) | Op::ReduceValues { reduction: Reduction::Min, .. } => Some(Operator::Min),
        Op::Reduce(Reduction::Max) | Op::ReduceValues { reduction: Reduction::Max, .. } => Some(Operator::Max),
        _ => None,
    }
}

impl Builder {
    /// Builds an ordered scope. On one node most pipelines keep the order by themselves (FLOW-11) and need none.
    pub(super) fn ordered(
        &mut self,
        pipeline: &Pipeline,
        always: bool,
        stage: &Stage,
        tail: ChainEnd,
    ) -> Result<ChainEnd> {
        if self.nodes == 1 && !always {
            return self.chain(pipeline, tail);
        }
        let next = self.attach(&tail, RowLocation::Anywhere, OperatorDescription::Operator(&stage.operator))?;
        // Rows enter in order, so only the limit on instances applies.
        self.set_policy(next.from, &ScopePolicy { orders: None, instances_max: self.policy.instances_max });
        self.inside(pipeline, next.from, 1, self.reader)?;
        self.set(next.from, OrderedScope::default());
        Ok(next)
    }

    pub(super) fn group(
        &mut self,
        side_effect: Option<&Name>,
        value: &Pipeline,
        stage: &Stage,
        tail: &ChainEnd,
    ) -> Result<ChainEnd> {
        let taken = std::mem::take(&mut self.taken);
        let next = self.attach(tail, RowLocation::Home, OperatorDescription::Operator(&stage.operator))?;
        // The members of a key come from the whole stream.
        self.inside(value, next.from, 1, OrderReader::STREAM)?;
        let operator = GroupScope::new(side_effect.cloned(), taken, joining(value), self.remember(stage));
        self.set(next.from, operator);
        Ok(next)
    }

    pub(super) fn union(&mut self, branches: &[Pipeline], stage: &Stage, tail: &ChainEnd) -> Result<ChainEnd> {
        let what = OperatorDescription::Operator(&stage.operator);
        if branches.is_empty() {
            let next = self.attach(tail, RowLocation::Anywhere, what)?;
            self.kernel(next.from, RowAdapter { operator: paths::DropRows, remember: Remember::default() });
            return Ok(next);
        }
        let split = self.attach(tail, RowLocation::Anywhere, what)?;
        let split = ChainEnd { at_start: tail.at_start, ..split };
        let announces = branches.iter().any(Pipeline::has_results_without_input);
        let in_turn = self.interleaved && branches.iter().any(Pipeline::keeps_state);
        self.set(split.from, Split::new(branches.len(), announces, in_turn));
        // FLOW-14: higher numbers run first. So the first branch is built last, and its results come first.
        self.branches(split, branches.iter().rev(), false, announces)
    }

    pub(super) fn switch(
        &mut self,
        options: &[(ChooseOption, Pipeline)],
        every: bool,
        stage: &Stage,
        tail: &ChainEnd,
    ) -> Result<ChainEnd> {
        let switch = self.attach(tail, RowLocation::Anywhere, OperatorDescription::Operator(&stage.operator))?;
        let whens = options.iter().map(|(option, _)| when(option)).collect();
        let announces = options.iter().any(|(_, pipeline)| pipeline.has_results_without_input());
        self.set(switch.from, Switch::new(whens, every, announces));
        self.branches(switch, options.iter().map(|(_, pipeline)| pipeline), true, announces)
    }

    /// Builds a pipeline that takes the rows of an operator's first edge, and the merge of its results with the rows of
    /// the second one.
    pub(super) fn beside(&mut self, operator: ChainEnd, pipeline: &Pipeline) -> Result<ChainEnd> {
        self.branches(operator, std::iter::once(pipeline), true, false)
    }

    /// Builds branches and their merge. With `past`, one more edge leads straight to the merge; with `announces`,
    /// another one carries the announcements.
    fn branches<'a>(
        &mut self,
        split: ChainEnd,
        pipelines: impl Iterator<Item = &'a Pipeline>,
        past: bool,
        announces: bool,
    ) -> Result<ChainEnd> {
        let mut ends = self.ends_of_branches(split, pipelines)?;
        ends.extend(std::iter::repeat_n(split, usize::from(past) + usize::from(announces)));
        // An announcement is at the node of the rows that it is about; the results it concerns may be at any node.
        let apart = announces && split.placement != Placement::Home;
        let together = !apart && ends.iter().all(|e| e.placement == ends[0].placement);
        let placement = if together { ends.first().map_or(split.placement, |e| e.placement) } else { Placement::Home };
        let merge = self.reserve(placement, OperatorDescription::Named("merge"))?;
        self.connect_ends(&ends, merge, |end| together || end.placement == Placement::Home)?;
        self.set(merge, Merge::new(ends.len(), announces));
        Ok(ChainEnd { from: merge, entering: false, placement, at_start: false })
    }

    /// Builds two walks, each from all rows, and the join of their ends.
    pub(super) fn join(
        &mut self,
        walks: &[Pipeline; 2],
        names: &[Name],
        stage: &Stage,
        tail: &ChainEnd,
    ) -> Result<ChainEnd> {
        let split = self.attach(tail, RowLocation::Anywhere, OperatorDescription::Named("split"))?;
        let split = ChainEnd { at_start: tail.at_start, ..split };
        self.set(split.from, Split::new(walks.len(), false, false));
        let ends = self.ends_of_branches(split, walks.iter())?;
        let join = self.reserve(Placement::Home, OperatorDescription::Operator(&stage.operator))?;
        self.connect_ends(&ends, join, |end| end.placement == Placement::Home)?;
        let column = |name: &Name| self.requirements.binding(name);
        let names = names.iter().map(column).collect::<Option<Vec<usize>>>();
        let names = names.ok_or_else(|| Error::bug("the names of a join are read, so they have binding columns"))?;
        self.set(join, Join::new(names));
        Ok(ChainEnd { from: join, entering: false, placement: Placement::Home, at_start: false })
    }

    /// Builds branches; returns their ends.
    fn ends_of_branches<'a>(
        &mut self,
        split: ChainEnd,
        pipelines: impl Iterator<Item = &'a Pipeline>,
    ) -> Result<Vec<ChainEnd>> {
        let mut ends = Vec::new();
        self.depth += 1;
        for pipeline in pipelines {
            // An empty branch gets an operator, too, so that the edges of the split are in the order of the branches.
            if pipeline.stages.is_empty() {
                let next = self.attach(&split, RowLocation::Anywhere, OperatorDescription::Named("identity"))?;
                let operator = paths::AddLabels { remember: Remember::default() };
                self.kernel(next.from, RowAdapter { operator, remember: Remember::default() });
                ends.push(next);
            } else {
                ends.push(self.chain(pipeline, split)?);
            }
        }
        self.depth -= 1;
        Ok(ends)
    }

    /// Connects the ends of branches to the ports of an operator, in their order. Rows stay where they are if `stays`.
    fn connect_ends(&mut self, ends: &[ChainEnd], to: OpId, stays: impl Fn(&ChainEnd) -> bool) -> Result<()> {
        for (port, end) in ends.iter().enumerate() {
            let port = u8::try_from(port)
                .map_err(|_| Error::invalid("a step has more than 250 branches; split it into several steps"))?;
            self.connect(end, to, port, if stays(end) { Exchange::Local } else { Exchange::Home });
        }
        Ok(())
    }

    pub(super) fn local_scope(&mut self, scope: &LocalScope, stage: &Stage, tail: &ChainEnd) -> Result<ChainEnd> {
        let policy = &scope.scheduling.policy;
        let tail = &self.priority(policy, tail)?;
        let next = self.attach(tail, RowLocation::Anywhere, OperatorDescription::Operator(&stage.operator))?;
        let (kind, pipelines): (_, Vec<&Pipeline>) = match &scope.kind {
            LocalKind::Filter(kind, pipelines) => (BranchKind::Filter(*kind), pipelines.iter().collect()),
            LocalKind::SideEffect(pipeline) => (BranchKind::SideEffect, vec![pipeline]),
            LocalKind::FlatMap { pipelines, first, otherwise_row, inner_path } => {
                let (first, otherwise_row, inner_path) = (*first, *otherwise_row, *inner_path);
                (BranchKind::FlatMap { first, otherwise_row, inner_path }, pipelines.iter().collect())
            }
        };
        self.set_policy(next.from, policy);
        let reader = self.reader.of_nested(&stage.operator, Purpose::Scope);
        for (number, pipeline) in pipelines.iter().enumerate() {
            self.inside(pipeline, next.from, number + 1, reader)?;
        }
        let shape = BranchShape {
            kind,
            pipelines: pipelines.len(),
            inside: next.from + 1..self.topology.next(),
            serial: scope.serial,
            ordered: scope.ordered,
            each_apart: policy.orders.is_some() && !scope.serial,
            priority: policy.priority().map(priority_of),
            may_begin_again: scope.stays_together.is_none(),
            remember: self.remember(stage),
            by_object: scope.by_object,
            passes_early: scope.passes_early,
            merged: scope.merged,
        };
        self.set(next.from, BranchScope::new(shape));
        Ok(next)
    }

    pub(super) fn repeat(&mut self, plan: &RepeatScope, tail: &ChainEnd) -> Result<ChainEnd> {
        let policy = plan.policy();
        let tail = &self.priority(&policy, tail)?;
        let next = self.attach(tail, RowLocation::Home, OperatorDescription::Named("repeat"))?;
        self.set_policy(next.from, &policy);
        let mut tests = [Vec::new(), Vec::new()];
        let until = loop_test(plan.until.as_ref(), &mut tests[usize::from(!plan.until_first)]);
        let emit = loop_test(plan.emit.as_ref(), &mut tests[usize::from(!plan.emit_first)]);
        // The value that orders the rows out of the body comes with the results of the tests after it.
        let column = tests[1].len();
        tests[1].extend(policy.priority().and_then(look_up));
        let [before, after] = tests.map(|by: Vec<Computation>| {
            let productive = vec![false; by.len()];
            let mut policy = plan.scheduling.policy.clone();
            // The tests of a message end together, so no value orders them.
            policy.orders = policy.orders.filter(|orders| orders.priority().is_none());
            let scheduling = Scheduling { policy, ..Scheduling::default() };
            let operator = Op::Modulate(ModulatePlan { over: Over::Current, by, productive, scheduling });
            Stage::new(operator)
        });
        let has_tests = |stage: &Stage| matches!(&stage.operator, Op::Modulate(m) if !m.by.is_empty());
        let before = Pipeline { stages: if has_tests(&before) { vec![before] } else { Vec::new() } };
        self.inside(&before, next.from, 1, OrderReader::for_each_row(false))?;
        let visited = self.visited.clone().unwrap_or_default();
        let loop_around = self.visited.replace(visited.clone());
        self.repeat_body(&plan.body, has_tests(&after).then_some(&after), next.from)?;
        self.visited = loop_around;
        let (until_first, emit_first, once) = (plan.until_first, plan.emit_first, plan.once);
        let collections_made = plan.collections_made;
        let overlaps = plan.overlaps();
        let avoids = match plan.search {
            LoopSearch::Search(avoids) => avoids,
            LoopSearch::Unknown | LoopSearch::Not(_) => Avoids::Nothing,
        };
        let shape = LoopShape { until, until_first, emit, emit_first, once, avoids, overlaps, collections_made };
        let may_share = self.may_share();
        match policy.priority() {
            Some(priority) => self.set(next.from, PriorityLoop::new(shape, priority_of(priority), column)),
            None => self.set(next.from, LoopScope::new(shape, visited, may_share)),
        }
        Ok(next)
    }

    /// Attaches the look-up of the value by which a policy orders the instances of a scope, if it is that of a key. Rows
    /// then have it in computed column 0.
    fn priority(&mut self, policy: &ScopePolicy, tail: &ChainEnd) -> Result<ChainEnd> {
        let Some(by) = policy.priority().and_then(look_up) else { return Ok(*tail) };
        let (over, by, productive) = (Over::Current, vec![by], vec![false]);
        self.modulate(&ModulatePlan { over, by, productive, scheduling: Scheduling::default() }, *tail)
    }

    /// Gives the operator of a scope its policy.
    pub(super) fn set_policy(&mut self, scope: OpId, policy: &ScopePolicy) {
        let inside = policy.orders.as_ref().map_or(Inside::default(), |orders| match orders.inside {
            WorkOrder::Dfs => Inside::Dfs,
            WorkOrder::Bfs => Inside::Bfs,
            WorkOrder::Fifo => Inside::Fifo,
        });
        let between = policy.orders.as_ref().map_or(Between::default(), |orders| match &orders.between {
            InstanceOrder::Work(WorkOrder::Dfs) => Between::Dfs,
            InstanceOrder::Work(WorkOrder::Bfs) => Between::Bfs,
            InstanceOrder::Work(WorkOrder::Fifo) => Between::Fifo,
            InstanceOrder::By(_) => Between::Rank,
            InstanceOrder::Fair => Between::Fair,
        });
        self.topology.set_policy(scope, Policy { inside, between, instances_max: policy.instances_max });
    }

    /// Builds the body, then the loop counters, then the tests after the body.
    fn repeat_body(&mut self, body: &Pipeline, after: Option<&Stage>, scope: OpId) -> Result<()> {
        self.depth += 1;
        let begin = ChainEnd { from: scope, entering: true, placement: Placement::Home, at_start: false };
        let mut end = self.chain(body, begin)?;
        if self.requirements.loops {
            end = self.attach(&end, RowLocation::Anywhere, OperatorDescription::Named("next loop"))?;
            self.kernel(end.from, RowAdapter { operator: paths::NextLoop, remember: Remember::default() });
        }
        if let Some(after) = after {
            end = self.stage(after, end, end.from)?;
        }
        self.depth -= 1;
        let exchange = if end.placement == Placement::Spread { Exchange::Home } else { Exchange::Local };
        self.connect(&end, scope, 2, exchange);
        Ok(())
    }
}

fn when(option: &ChooseOption) -> OptionMatch {
    match option {
        ChooseOption::True => OptionMatch::Is(true),
        ChooseOption::False => OptionMatch::Is(false),
        ChooseOption::Value(operand) => OptionMatch::Equals(operand.clone(), Value::Null),
        ChooseOption::Test(test) => OptionMatch::Passes(CompiledTest::new(test)),
        ChooseOption::None => OptionMatch::Otherwise,
        ChooseOption::Any => OptionMatch::Always,
        ChooseOption::Unproductive => OptionMatch::Unproductive,
    }
}

/// How a scope reads the value that orders its instances.
fn priority_of(priority: &PriorityPlan) -> Priority {
    Priority { is_sack: priority.of == PriorityOf::Sack, descending: priority.descending }
}

/// The look-up of the value that orders instances; `None` if rows carry it.
fn look_up(priority: &PriorityPlan) -> Option<Computation> {
    match &priority.of {
        PriorityOf::Key(key) => Some(Computation::Priority(key.clone())),
        PriorityOf::Sack => None,
    }
}

fn loop_test(test: Option<&LoopTest>, computed: &mut Vec<Computation>) -> Option<LoopCondition> {
    Some(match test? {
        LoopTest::Always => LoopCondition::Always,
        LoopTest::Times(times) => LoopCondition::Times(times.clone(), 0),
        LoopTest::Test(test) => LoopCondition::Test(CompiledTest::new(test)),
        LoopTest::Exists(pipeline) => {
            computed.push(Computation::Exists(pipeline.clone()));
            LoopCondition::Computed(computed.len() - 1)
        }
    })
}
