//! Builds the operators and the topology of a physical plan.
//!
//! Operators are numbered along the stream (FLOW-9): the operator of a scope, then the operators inside, then the
//! operators after the scope. The builder decides where the rows of each operator must be:
//!
//! | the operator | its rows are |
//! |---|---|
//! | reads the graph | at the owner of their object |
//! | keeps state | at the home of their group (FLOW-6) |
//! | scans | at every node |
//! | does none of these | where they are |
//!
//! The builder also decides where `values(key)` makes columns of numbers ([`numbers`]).
//!
//! The builder knows nothing of a run: an instance serves many runs, one after another (FLOW-15). Operators keep the
//! operands of the plan, and look up their values when a run begins.

mod ends;
mod numbers;
mod scopes;

use std::sync::Arc;

use mangrove_flow::{AnyOperator, Exchange, Kernel, OpId, Operator, Placement, Topology, TopologyBuilder};
use mangrove_graph::{Direction, ElementKind, Error, Result};
use mangrove_plan::PhysicalPlan;
use mangrove_plan::logical::{Name, ScopePolicy};
use mangrove_plan::physical::{
    Computation, ComputedOperand, EdgeTo, Modulate as ModulatePlan, Op, OrderReader, Over, PathRequirement, Pipeline,
    PropertyWrite, Requirements, Stage,
};

use crate::barrier::barrier_step::Barrier;
use crate::barrier::dedup::Dedup;
use crate::barrier::fold_into::FoldInto;
use crate::barrier::group_count::GroupCount;
use crate::barrier::inject::Inject;
use crate::barrier::merge::PassingMerge;
use crate::barrier::order::Order;
use crate::barrier::range::{Range, Tail};
use crate::barrier::reduce::{Reduce, ReduceKind};
use crate::barrier::reduce_values::ReduceValues;
use crate::barrier::sample::{Coin, LocalSample, Sample};
use crate::barrier::side_effect::{Aggregate, Cap};
use crate::barrier::subgraph::Subgraph;
use crate::barrier::time_limit::TimeLimit;
use crate::barrier::tree::Tree;
use crate::barrier::visited::Visited;
use crate::build::ends::{Sink, Start};
use crate::computed::keys::KeySource;
use crate::row::call::CallService;
use crate::row::closing::{Closing, ClosingKind};
use crate::row::expand::{Degrees, EdgeVertex, Expand};
use crate::row::intersect::Intersect;
use crate::row::map::{MapAdapter, MapOperator};
use crate::row::one_by_one::OneByOne;
use crate::row::operator::{RowAdapter, RowOperator};
use crate::row::optional_expand::OptionalExpand;
use crate::row::source::{CountAll, ElementSource};
use crate::row::{filter, formula, function, local, members, paths, property, sack};
use crate::rows::{Remember, Rows};
use crate::scope::modulate::{ByLookup, ByTaker, Modulate};
use crate::values::predicate::CompiledTest;
use crate::write;

/// The maximum number of operators of a plan. It bounds the cost of one request.
pub(crate) const OPERATORS_MAX: usize = 4096;

/// The seed of the shuffles of `order(local)`; one generator serves all lists.
const SHUFFLE_SEED: u64 = 0x5EED;

/// The operators and topology of a plan for one node.
pub struct Built {
    /// The connections of the operators.
    pub topology: Arc<Topology>,
    /// The operators by their numbers.
    pub operators: Vec<AnyOperator<Rows>>,
    /// For each operator, true if messages at it may be worked off by any thread, in any order.
    pub stealable: Arc<[bool]>,
    /// For each operator, true if the order does not matter in which it works off messages.
    pub any_order: Arc<[bool]>,
    /// For each operator, its depth in scopes and a description; empty unless asked for.
    pub descriptions: Vec<(usize, String)>,
}

/// Builds a plan for one of `nodes` nodes. Descriptions are for `profile()`: writing them takes longer than making the
/// operators. Fails if the plan has more than [`OPERATORS_MAX`] operators.
pub fn build(plan: &PhysicalPlan, nodes: u16, described: bool) -> Result<Built> {
    let mut builder = Builder {
        topology: TopologyBuilder::default(),
        operators: Vec::new(),
        stealable: Vec::new(),
        any_order: Vec::new(),
        takes_any_order: false,
        is_ordered: plan.reason_for_one_thread().is_some(),
        reader: OrderReader::STREAM,
        has_unordered_instances: false,
        policy: plan.policy.clone(),
        descriptions: Vec::new(),
        described,
        requirements: plan.requirements.clone(),
        nodes,
        interleaved: plan.interleaved,
        depth: 0,
        is_nested: false,
        visited: None,
        taken: KeySource::Computed,
        numbers_are_read: false,
    };
    if plan.sets_all_apart {
        builder.topology.set_all_apart();
    }
    let start = builder.reserve(Placement::Home, OperatorDescription::Named("start"))?;
    builder.kernel(start, Start);
    let begin = ChainEnd { from: start, entering: false, placement: Placement::Home, at_start: true };
    let end = builder.chain(&plan.root, begin)?;
    let sink = builder.attach(&end, RowLocation::Home, OperatorDescription::Named("results"))?;
    builder.set(sink.from, Sink);
    let operators = builder.operators.into_iter().collect::<Option<Vec<_>>>();
    Ok(Built {
        topology: Arc::new(builder.topology.build()),
        operators: operators.ok_or_else(|| Error::bug("every operator that was numbered was made"))?,
        stealable: builder.stealable.into(),
        any_order: builder.any_order.into(),
        descriptions: builder.descriptions,
    })
}

/// The node at which the rows of an operator must be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RowLocation {
    /// At the node that owns their object.
    Owner,
    /// At every node.
    Everywhere,
    /// At the home of their group.
    Home,
    /// At any node: rows stay where they are.
    Anywhere,
}

/// The end of a chain, to which the next operator is attached.
#[derive(Clone, Copy)]
struct ChainEnd {
    from: OpId,
    /// True if the next edge leads from the operator of a scope into its scope.
    entering: bool,
    placement: Placement,
    /// True if only the unit row of the query reaches this point.
    at_start: bool,
}

/// The description of an operator, written only if asked for.
#[derive(Clone, Copy)]
enum OperatorDescription<'a> {
    Named(&'static str),
    Operator(&'a Op),
    By(&'a ModulatePlan),
}

impl OperatorDescription<'_> {
    fn text(self) -> String {
        match self {
            OperatorDescription::Named(name) => name.to_owned(),
            OperatorDescription::Operator(operator) => describe(operator),
            OperatorDescription::By(modulate) => mangrove_plan::explain::modulate_text(modulate),
        }
    }
}

struct Builder {
    topology: TopologyBuilder,
    operators: Vec<Option<AnyOperator<Rows>>>,
    stealable: Vec<bool>,
    any_order: Vec<bool>,
    /// True if the order does not matter in which the next operator gets its rows.
    takes_any_order: bool,
    /// True if rows must keep their order at this point, because they were sorted.
    is_ordered: bool,
    reader: OrderReader,
    /// True inside a scope whose instances may be worked off in any order.
    has_unordered_instances: bool,
    /// The policy that the source asks for.
    policy: ScopePolicy,
    descriptions: Vec<(usize, String)>,
    described: bool,
    requirements: Requirements,
    nodes: u16,
    /// True if traversers go through the steps one after the other, because side effects show the order.
    interleaved: bool,
    depth: usize,
    /// True inside a scope whose groups are many: all but loops.
    is_nested: bool,
    /// The shared memory of the `dedup()`s in the loop whose body is being built.
    visited: Option<Arc<Visited>>,
    /// The source of the keys for the next operator that sorts or groups.
    taken: KeySource,
    /// True if the operator after the next one reads columns of numbers as arrays.
    numbers_are_read: bool,
}

impl Builder {
    fn reserve(&mut self, placement: Placement, description: OperatorDescription<'_>) -> Result<OpId> {
        if self.operators.len() >= OPERATORS_MAX {
            return Err(Error::invalid(format!(
                "the traversal needs more than {OPERATORS_MAX} operators; split it into several requests"
            )));
        }
        self.operators.push(None);
        self.stealable.push(false);
        self.any_order.push(self.takes_any_order);
        if self.described {
            self.descriptions.push((self.depth, description.text()));
        }
        Ok(self.topology.operator(placement))
    }

    /// Makes a number that of an operator with state.
    fn set(&mut self, id: OpId, operator: impl Operator<Rows> + 'static) {
        self.operators[id as usize] = Some(AnyOperator::stateful(operator));
    }

    /// Makes a number that of an operator without state.
    fn kernel(&mut self, id: OpId, kernel: impl Kernel<Rows> + 'static) {
        self.operators[id as usize] = Some(AnyOperator::kernel(kernel));
        let is_unordered = self.is_unordered();
        self.stealable[id as usize] = is_unordered;
        self.any_order[id as usize] = is_unordered;
        if is_unordered {
            self.topology.set_unordered(id);
        } else if self.has_unordered_instances {
            self.topology.set_unordered_instances(id);
        }
    }

    /// Returns true if rows may come in any order at this point.
    fn is_unordered(&self) -> bool {
        !self.is_ordered && !self.reader.order_matters
    }

    /// Returns true if an operator with state may share it with helpers (FLOW-29). Inside a scope there are many small
    /// groups, for which shared states would cost more than they save.
    fn may_share(&self) -> bool {
        self.nodes == 1 && !self.is_nested && self.is_unordered()
    }

    /// Numbers a new operator and connects it to the end of a chain.
    fn attach(&mut self, tail: &ChainEnd, need: RowLocation, description: OperatorDescription<'_>) -> Result<ChainEnd> {
        let placement = match need {
            RowLocation::Owner | RowLocation::Everywhere => Placement::Spread,
            RowLocation::Home => Placement::Home,
            RowLocation::Anywhere => tail.placement,
        };
        let id = self.reserve(placement, description)?;
        let exchange = match need {
            RowLocation::Owner => Exchange::Owner,
            RowLocation::Everywhere => Exchange::Broadcast,
            RowLocation::Home if tail.placement == Placement::Spread => Exchange::Home,
            RowLocation::Home | RowLocation::Anywhere => Exchange::Local,
        };
        self.connect(tail, id, 0, exchange);
        Ok(ChainEnd { from: id, entering: false, placement, at_start: false })
    }

    fn connect(&mut self, tail: &ChainEnd, to: OpId, port: u8, exchange: Exchange) {
        if tail.entering {
            self.topology.enter(tail.from, to, port, exchange);
        } else {
            self.topology.connect(tail.from, to, port, exchange);
        }
    }

    fn chain(&mut self, pipeline: &Pipeline, mut tail: ChainEnd) -> Result<ChainEnd> {
        let first = self.topology.next();
        let mut readers = self.reader.of_stages(pipeline).into_iter();
        let mut stages = pipeline.stages.iter().enumerate().peekable();
        let (was_ordered, at_end) = (self.is_ordered, self.reader);
        while let Some((at, stage)) = stages.next() {
            self.reader = readers.next().unwrap_or(at_end);
            if let Some(keys) = stages.peek().and_then(|(_, reader)| self.own_keys(&stage.operator, &reader.operator)) {
                self.taken = KeySource::Objects(keys);
                continue;
            }
            self.numbers_are_read = self.reads_numbers(&pipeline.stages[at + 1..]);
            tail = self.stage(stage, tail, first)?;
            // What reads the rows of this stage says whether their order matters to the next one.
            let order_matters = self.reader.order_matters;
            self.is_ordered = match &stage.operator {
                Op::Order { .. } => true,
                operator => was_ordered || self.is_ordered && operator.keeps_order(),
            };
            self.takes_any_order = !self.is_ordered && !order_matters;
        }
        (self.is_ordered, self.reader) = (was_ordered, at_end);
        Ok(tail)
    }

    /// Returns the keys of a `by()` if the next operator reads them itself; `None` among them stands for the object.
    /// That needs rows and state on one node.
    fn own_keys(&self, by: &Op, reader: &Op) -> Option<Vec<Option<Name>>> {
        let Op::Modulate(ModulatePlan { over: Over::Current, by, productive, .. }) = by else { return None };
        let reads = self.nodes == 1
            && !productive.contains(&true)
            && matches!(reader, Op::Order { .. } | Op::GroupCount { .. } | Op::Group { .. });
        let key = |computation: &Computation| match computation {
            Computation::Key(key) => Some(Some(key.clone())),
            Computation::Identity => Some(None),
            _ => None,
        };
        if reads { by.iter().map(key).collect() } else { None }
    }

    /// Builds a pipeline of a scope, and connects its end to a port of the scope's operator. `reader` tells how its
    /// results are read.
    fn inside(&mut self, pipeline: &Pipeline, scope: OpId, port: usize, reader: OrderReader) -> Result<()> {
        self.depth += 1;
        let begin = ChainEnd { from: scope, entering: true, placement: Placement::Home, at_start: false };
        let loop_around = self.visited.take();
        // Results of an instance are results of its row outside.
        let is_unordered = self.is_unordered();
        let instances_outside = std::mem::replace(&mut self.has_unordered_instances, is_unordered);
        let outside = std::mem::replace(&mut self.reader, reader);
        let takes_any_order = std::mem::take(&mut self.takes_any_order);
        let was_nested = std::mem::replace(&mut self.is_nested, true);
        let end = self.chain(pipeline, begin)?;
        (self.reader, self.takes_any_order, self.is_nested) = (outside, takes_any_order, was_nested);
        self.has_unordered_instances = instances_outside;
        self.visited = loop_around;
        self.depth -= 1;
        let exchange = if end.placement == Placement::Spread { Exchange::Home } else { Exchange::Local };
        self.connect_back(&end, scope, port, exchange)
    }

    /// Connects the end of a pipeline or a look-up inside a scope to a port of the scope's operator. Fails if there are
    /// more ports than a frame can name.
    fn connect_back(&mut self, end: &ChainEnd, scope: OpId, port: usize, exchange: Exchange) -> Result<()> {
        let port = u8::try_from(port).map_err(|_| {
            Error::invalid(
                "a step has more than 255 nested traversals and by() modulators; split it into several steps",
            )
        })?;
        self.connect(end, scope, port, exchange);
        Ok(())
    }

    fn remember(&self, stage: &Stage) -> Remember {
        let number = |label: &Name| self.requirements.binding(label);
        let labels: Vec<Name> = stage.labels.iter().filter(|label| number(label).is_none()).cloned().collect();
        Remember {
            objects: match self.requirements.path {
                PathRequirement::None => false,
                PathRequirement::Labels(_) => !labels.is_empty(),
                PathRequirement::Full => true,
            },
            labels,
            bindings: stage.labels.iter().filter_map(number).collect(),
        }
    }

    fn row(
        &mut self,
        tail: &ChainEnd,
        need: RowLocation,
        stage: &Stage,
        remembers: bool,
        operator: impl RowOperator + 'static,
    ) -> Result<ChainEnd> {
        let next = self.attach(tail, need, OperatorDescription::Operator(&stage.operator))?;
        let remember = if remembers { self.remember(stage) } else { Remember::default() };
        self.kernel(next.from, RowAdapter { operator, remember });
        Ok(next)
    }

    /// As [`Builder::row`], for an operator whose values may have any size.
    fn map(
        &mut self,
        tail: &ChainEnd,
        need: RowLocation,
        stage: &Stage,
        remembers: bool,
        operator: impl MapOperator + 'static,
    ) -> Result<ChainEnd> {
        let next = self.attach(tail, need, OperatorDescription::Operator(&stage.operator))?;
        let remember = if remembers { self.remember(stage) } else { Remember::default() };
        self.kernel(next.from, MapAdapter::new(operator, remember));
        Ok(next)
    }

    fn stage(&mut self, stage: &Stage, tail: ChainEnd, first: OpId) -> Result<ChainEnd> {
        let remember = self.remember(stage);
        let what = OperatorDescription::Operator(&stage.operator);
        Ok(match &stage.operator {
            Op::Vertices { access, conditions } => {
                let next = self.attach(&tail, RowLocation::Everywhere, what)?;
                self.kernel(next.from, ElementSource::new(ElementKind::Vertex, access, conditions, remember)?);
                next
            }
            Op::Edges { access, conditions } => {
                let next = self.attach(&tail, RowLocation::Everywhere, what)?;
                self.kernel(next.from, ElementSource::new(ElementKind::Edge, access, conditions, remember)?);
                next
            }
            Op::CountAll { kind, labels } => {
                let count = CountAll { kind: *kind, labels: labels.clone() };
                let next = self.row(&tail, RowLocation::Everywhere, stage, false, count)?;
                self.total(&next, stage)?
            }
            Op::CountExpand { direction, labels, optional } => {
                let degrees = Degrees::new(*direction, labels.clone(), *optional);
                let next = self.row(&tail, RowLocation::Owner, stage, false, degrees)?;
                self.total(&next, stage)?
            }
            Op::Expand { direction, labels, to_edges } => {
                let next = self.attach(&tail, RowLocation::Owner, what)?;
                let expand = Expand::new(*direction, labels.clone(), *to_edges, remember);
                self.kernel(next.from, expand);
                next
            }
            Op::OptionalExpand { direction, labels, to_edges } => {
                let next = self.attach(&tail, RowLocation::Owner, what)?;
                let expand = OptionalExpand::new(*direction, labels.clone(), *to_edges, remember);
                self.kernel(next.from, expand);
                next
            }
            Op::FollowTo { edge, stays } => {
                let next = self.attach(&tail, RowLocation::Owner, what)?;
                let kind = ClosingKind::Follow { stays: *stays, remember };
                self.kernel(next.from, Closing::new(edge, kind, self.nodes > 1));
                next
            }
            Op::HasEdgeTo { edge, negate } => {
                let next = self.attach(&tail, RowLocation::Owner, what)?;
                self.kernel(next.from, Closing::new(edge, ClosingKind::Test { negate: *negate }, self.nodes > 1));
                next
            }
            Op::Intersect { direction, labels, closings } if self.nodes == 1 => {
                let next = self.attach(&tail, RowLocation::Owner, what)?;
                self.kernel(next.from, Intersect::new(*direction, labels.clone(), closings, remember));
                next
            }
            Op::Intersect { direction, labels, closings } => self.apart(stage, *direction, labels, closings, tail)?,
            Op::EdgeVertex(end) => self.row(&tail, RowLocation::Owner, stage, true, EdgeVertex(*end))?,
            Op::Filter(conditions) => {
                self.row(&tail, RowLocation::Owner, stage, false, filter::Filter::new(conditions))?
            }
            Op::HasEdges { direction, labels, negate } => {
                let filter = filter::HasEdges::new(*direction, labels, *negate);
                self.row(&tail, RowLocation::Owner, stage, false, filter)?
            }
            Op::Values(keys) => {
                let values = property::Values::new(keys.clone(), self.numbers_are_read);
                self.row(&tail, RowLocation::Owner, stage, true, values)?
            }
            Op::Properties(keys) => {
                self.row(&tail, RowLocation::Owner, stage, true, property::Properties::new(keys.clone()))?
            }
            Op::ValueMap { keys, tokens, shown } => self.row(
                &tail,
                RowLocation::Owner,
                stage,
                true,
                property::ValueMap::new(keys.clone(), *tokens, *shown),
            )?,
            Op::PropertyMap { keys, shown } => {
                self.row(&tail, RowLocation::Owner, stage, true, property::PropertyMap::new(keys.clone(), *shown))?
            }
            Op::ElementMap { keys, shown } => {
                self.row(&tail, RowLocation::Owner, stage, true, property::ElementMap::new(keys.clone(), *shown))?
            }
            Op::Token(token) => self.row(&tail, RowLocation::Owner, stage, true, property::TokenOf(*token))?,
            Op::Function { function, arguments } => {
                let call = function::FunctionCall::new(*function, arguments.clone());
                self.map(&tail, RowLocation::Owner, stage, true, call)?
            }
            Op::Format(parts) => {
                self.map(&tail, RowLocation::Owner, stage, true, formula::Format::new(parts.clone()))?
            }
            Op::Modulate(modulate) => self.modulate(modulate, tail)?,
            Op::Is(test) => {
                let is = filter::Is { test: CompiledTest::new(test), keeps_numbers: self.numbers_are_read };
                self.row(&tail, RowLocation::Anywhere, stage, false, is)?
            }
            Op::Members(quantifier, test) => {
                let test = CompiledTest::new(test);
                self.map(&tail, RowLocation::Anywhere, stage, false, members::TestMembers::new(*quantifier, test))?
            }
            Op::Math(expression) => {
                self.row(&tail, RowLocation::Anywhere, stage, true, formula::Math::new(expression.clone()))?
            }
            Op::CompareComputed(test) => {
                self.row(&tail, RowLocation::Anywhere, stage, false, paths::CompareComputed::new(test))?
            }
            Op::CompareName { equal, name, lookup } => {
                let compare = paths::CompareName { equal: *equal, name: name.clone(), lookup: *lookup };
                self.row(&tail, RowLocation::Anywhere, stage, false, compare)?
            }
            Op::PathShape { simple, computed, segment } => self.map(
                &tail,
                RowLocation::Anywhere,
                stage,
                false,
                paths::PathShape { simple: *simple, computed: *computed, segment: segment.clone() },
            )?,
            Op::Discard => self.row(&tail, RowLocation::Anywhere, stage, false, paths::DropRows)?,
            Op::ReplaceMapValues => self.row(&tail, RowLocation::Anywhere, stage, false, property::ReplaceMapValues)?,
            Op::Constant(value) => {
                self.row(&tail, RowLocation::Anywhere, stage, true, local::Constant::new(value.clone()))?
            }
            Op::Identity => self.row(&tail, RowLocation::Anywhere, stage, false, paths::AddLabels { remember })?,
            Op::Unfold => {
                let next = self.attach(&tail, RowLocation::Anywhere, what)?;
                self.kernel(next.from, local::Unfold { remember });
                next
            }
            Op::Call { service, arguments } => {
                let next = self.attach(&tail, RowLocation::Anywhere, what)?;
                self.kernel(next.from, CallService::new(service.clone(), arguments.clone(), remember));
                next
            }
            Op::Loops(depth) => self.row(&tail, RowLocation::Anywhere, stage, true, local::LoopsOf(*depth))?,
            Op::LocalReduce(reduction) => {
                self.map(&tail, RowLocation::Anywhere, stage, true, local::LocalReduce(*reduction))?
            }
            Op::LocalDedup(keys) => {
                self.map(&tail, RowLocation::Anywhere, stage, true, local::LocalDedup(keys.clone()))?
            }
            Op::LocalRange { low, high } => {
                let range = local::LocalRange::new(low.clone(), high.clone());
                self.map(&tail, RowLocation::Anywhere, stage, true, range)?
            }
            Op::LocalTail(count) => {
                self.map(&tail, RowLocation::Anywhere, stage, true, local::LocalTail::new(count.clone()))?
            }
            Op::LocalOrder(orders) => self.map(
                &tail,
                RowLocation::Anywhere,
                stage,
                true,
                local::LocalOrder::new(orders.clone(), SHUFFLE_SEED),
            )?,
            Op::Path { computed, segment } => self.map(
                &tail,
                RowLocation::Anywhere,
                stage,
                true,
                paths::PathOf { computed: *computed, segment: segment.clone() },
            )?,
            Op::SelectName { name, lookup } => {
                let select = paths::SelectName { name: name.clone(), lookup: *lookup };
                self.row(&tail, RowLocation::Anywhere, stage, true, select)?
            }
            Op::ComputedMap { names, single, required } => {
                let map = paths::ComputedMap { names: names.clone(), single: *single, required: *required };
                self.map(&tail, RowLocation::Anywhere, stage, true, map)?
            }
            Op::Sack => self.row(&tail, RowLocation::Anywhere, stage, true, sack::SackOf)?,
            Op::FoldSack(operator) => {
                self.map(&tail, RowLocation::Anywhere, stage, false, sack::FoldSack(*operator))?
            }
            Op::OneByOne => {
                let next = self.attach(&tail, RowLocation::Anywhere, what)?;
                self.kernel(next.from, OneByOne);
                next
            }
            Op::Fail(message) => self.row(&tail, RowLocation::Anywhere, stage, false, sack::Fail(message.clone()))?,
            Op::SelectKey(pop) => self.row(&tail, RowLocation::Anywhere, stage, true, sack::SelectKey(*pop))?,
            Op::SelectColumn(column) => {
                self.map(&tail, RowLocation::Anywhere, stage, true, local::SelectColumn(*column))?
            }
            Op::Inject(values) => {
                self.gather(&tail, stage, Inject::new(values.clone(), tail.at_start, tail.entering, remember))?
            }
            Op::ReduceValues { key, reduction } if self.nodes == 1 => {
                self.gather(&tail, stage, ReduceValues::new(*reduction, key.clone(), remember))?
            }
            Op::ReduceValues { key, reduction } => {
                // The values are read at the owners of their elements, and reduced at the home of the group.
                self.numbers_are_read = true;
                let read = Stage { operator: Op::Values(vec![key.clone()]), labels: Vec::new() };
                let next = self.stage(&read, tail, first)?;
                let reduce = Stage { operator: Op::Reduce(*reduction), labels: stage.labels.clone() };
                self.stage(&reduce, next, first)?
            }
            Op::Reduce(reduction) => {
                self.gather(&tail, stage, Reduce::new(ReduceKind::Language(*reduction), remember))?
            }
            Op::Order { orders, limit } => {
                let taken = std::mem::take(&mut self.taken);
                self.gather(&tail, stage, Order::new(orders.clone(), taken, limit.clone()))?
            }
            Op::Dedup { computed } => {
                let may_share = self.may_share();
                self.gather(&tail, stage, Dedup::new(*computed, self.visited.clone(), may_share))?
            }
            Op::Range { low, high } => {
                let upstream = first..self.topology.next();
                self.gather(&tail, stage, Range::new(low.clone(), high.clone(), upstream, self.interleaved))?
            }
            Op::Tail(count) => self.gather(&tail, stage, Tail::new(count.clone()))?,
            Op::GroupCount { side_effect } => {
                let taken = std::mem::take(&mut self.taken);
                self.gather(&tail, stage, GroupCount::new(side_effect.clone(), taken, remember))?
            }
            Op::Aggregate(name) => self.gather(&tail, stage, Aggregate::new(name.clone()))?,
            Op::Tree { side_effect, computed } => {
                self.gather(&tail, stage, Tree::new(side_effect.clone(), *computed, remember))?
            }
            Op::Subgraph(name) => self.gather(&tail, stage, Subgraph::new(name.clone()))?,
            Op::Cap(names) => self.gather(&tail, stage, Cap::new(names.clone(), remember))?,
            Op::Barrier { norm_sack } => {
                let may_share = self.may_share();
                self.gather(&tail, stage, Barrier::new(*norm_sack, may_share))?
            }
            Op::FoldInto(seed, operator) => {
                self.gather(&tail, stage, FoldInto::new(seed.clone(), *operator, remember))?
            }
            Op::Sample(count) => self.gather(&tail, stage, Sample::new(count.clone()))?,
            Op::TimeLimit(millis) => {
                self.gather(&tail, stage, TimeLimit::new(millis.clone(), first..self.topology.next()))?
            }
            Op::Coin(probability) => self.gather(&tail, stage, Coin::new(probability.clone()))?,
            Op::LocalSample(count) => self.gather(&tail, stage, LocalSample::new(count.clone(), remember))?,
            Op::Merge => self.gather(&tail, stage, PassingMerge::default())?,
            Op::AddVertex { label, id, properties } => {
                let properties: Vec<PropertyWrite> = properties.clone();
                self.gather(&tail, stage, write::AddVertex::new(label.clone(), id.clone(), properties, remember))?
            }
            Op::AddEdge { label, from, to, id, properties } => {
                let ends: [Option<ComputedOperand>; 2] = [from.clone(), to.clone()];
                let properties = properties.clone();
                self.gather(&tail, stage, write::AddEdge::new(label.clone(), ends, id.clone(), properties, remember))?
            }
            Op::SetProperty(property) => self.gather(&tail, stage, write::SetProperty::new(property.clone()))?,
            Op::Upsert(plan) => self.gather(&tail, stage, write::Upsert::new((**plan).clone(), remember))?,
            Op::SetProperties(map) => self.gather(&tail, stage, write::SetFromMap::of_map(map.clone()))?,
            Op::Drop => self.gather(&tail, stage, write::Drop::default())?,
            Op::File(file) => self.gather(&tail, stage, write::File::new(file.clone()))?,
            Op::Local(scope) => self.local_scope(scope, stage, &tail)?,
            Op::Union(branches) => self.union(branches, stage, &tail)?,
            Op::Switch { options, every } => self.switch(options, *every, stage, &tail)?,
            Op::Repeat(repeat) => self.repeat(repeat, &tail)?,
            Op::Ordered { pipeline, always } => self.ordered(pipeline, *always, stage, tail)?,
            Op::Group { side_effect, value, .. } => self.group(side_effect.as_ref(), value, stage, &tail)?,
        })
    }

    /// Adds an operator that needs all rows of an instance, at the home of their group.
    fn gather(&mut self, tail: &ChainEnd, stage: &Stage, operator: impl Operator<Rows> + 'static) -> Result<ChainEnd> {
        let next = self.attach(tail, RowLocation::Home, OperatorDescription::Operator(&stage.operator))?;
        self.set(next.from, operator);
        Ok(next)
    }

    /// Builds an intersection of lists that lie on several nodes: a hop, and tests at the owners of its ends.
    fn apart(
        &mut self,
        stage: &Stage,
        direction: Direction,
        labels: &[Name],
        closings: &[EdgeTo],
        tail: ChainEnd,
    ) -> Result<ChainEnd> {
        let hop = Op::Expand { direction, labels: labels.to_vec(), to_edges: false };
        let first = tail.from;
        let mut next = self.stage(&Stage { operator: hop, labels: stage.labels.clone() }, tail, first)?;
        for edge in closings {
            let test = Op::HasEdgeTo { edge: edge.clone(), negate: false };
            next = self.stage(&Stage { operator: test, labels: Vec::new() }, next, first)?;
        }
        Ok(next)
    }

    /// Adds the second half of a count in two parts: the sum of the counts of all nodes.
    fn total(&mut self, tail: &ChainEnd, stage: &Stage) -> Result<ChainEnd> {
        let next = self.attach(tail, RowLocation::Home, OperatorDescription::Named("total"))?;
        let operator = Reduce::new(ReduceKind::Total, self.remember(stage));
        self.set(next.from, operator);
        Ok(next)
    }

    fn modulate(&mut self, plan: &ModulatePlan, tail: ChainEnd) -> Result<ChainEnd> {
        // On one node a key or token is looked up in place. On several nodes the objects of a by() may be at another
        // node than the row, so the look-up becomes a pipeline that goes to their owners.
        let in_place = self.nodes == 1;
        let next = self.attach(&tail, RowLocation::Anywhere, OperatorDescription::By(plan))?;
        self.set_policy(next.from, &plan.scheduling.policy);
        let mut by = Vec::with_capacity(plan.by.len());
        let mut pipelines = 0;
        for computation in &plan.by {
            let taker = match computation {
                Computation::Identity => ByTaker::Identity,
                Computation::Column(column) => ByTaker::Column(*column),
                Computation::Test(test) => ByTaker::Test(CompiledTest::new(test)),
                Computation::Key(key) if in_place => ByTaker::Key(key.clone()),
                Computation::Priority(key) if in_place => ByTaker::Priority(key.clone()),
                Computation::Token(token) if in_place => ByTaker::Token(*token),
                _ => {
                    pipelines += 1;
                    ByTaker::Pipeline { number: pipelines - 1, exists: matches!(computation, Computation::Exists(_)) }
                }
            };
            match computation {
                // A by() takes the first result.
                Computation::First(pipeline) => {
                    self.inside(pipeline, next.from, pipelines, OrderReader::for_each_row(true))?
                }
                Computation::Exists(pipeline) => {
                    self.inside(pipeline, next.from, pipelines, OrderReader::for_each_row(false))?
                }
                Computation::Key(key) if !in_place => {
                    self.remote_lookup(ByTaker::Key(key.clone()), next.from, pipelines)?
                }
                Computation::Priority(key) if !in_place => {
                    self.remote_lookup(ByTaker::Priority(key.clone()), next.from, pipelines)?
                }
                Computation::Token(token) if !in_place => {
                    self.remote_lookup(ByTaker::Token(*token), next.from, pipelines)?
                }
                _ => {}
            }
            by.push(taker);
        }
        let inside = next.from + 1..self.topology.next();
        self.set(next.from, Modulate::new(plan.over.clone(), by, plan.productive.clone(), inside));
        Ok(next)
    }

    fn remote_lookup(&mut self, taker: ByTaker, scope: OpId, port: usize) -> Result<()> {
        let begin = ChainEnd { from: scope, entering: true, placement: Placement::Home, at_start: false };
        let end = self.attach(&begin, RowLocation::Owner, OperatorDescription::Named("look up"))?;
        self.kernel(end.from, RowAdapter { operator: ByLookup(taker), remember: Remember::default() });
        self.connect_back(&end, scope, port, Exchange::Home)
    }
}

/// Describes an operator in a few words.
pub(crate) fn describe(operator: &Op) -> String {
    mangrove_plan::explain::describe(operator)
}
