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
mod stages;

use std::sync::Arc;

use mangrove_flow::{AnyOperator, Exchange, Kernel, OpId, Operator, Placement, Topology, TopologyBuilder};
use mangrove_graph::{Error, Result};
use mangrove_plan::PhysicalPlan;
use mangrove_plan::logical::{Name, ScopePolicy};
use mangrove_plan::physical::{
    Computation, Flow, Modulate as ModulatePlan, Op, OrderReader, Over, PathRequirement, Pipeline, Requirements, Stage,
};

use crate::barrier::visited::Visited;
use crate::build::ends::{Sink, Start};
use crate::computed::keys::{KeyPart, KeySource};
use crate::row::map::{MapAdapter, MapOperator};
use crate::row::operator::{RowAdapter, RowOperator};
use crate::rows::{Remember, Rows};

/// The maximum number of operators of a plan. It bounds the cost of one request.
pub(crate) const OPERATORS_MAX: usize = 4096;

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
    /// For each operator, a description; empty unless asked for.
    pub descriptions: Vec<DescribedOperator>,
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
        is_root: false,
        makes_results: false,
    };
    if plan.sets_all_apart {
        builder.topology.set_all_apart();
    }
    let start = builder.reserve(Placement::Home, OperatorDescription::Named("start"))?;
    builder.kernel(start, Start);
    let begin = ChainEnd { from: start, entering: false, placement: Placement::Home, at_start: true };
    builder.is_root = true;
    let end = builder.chain(&plan.root, begin)?;
    let sink = builder.attach(&end, RowLocation::Home, OperatorDescription::Named("results"))?;
    builder.set(sink.from, Sink { takes_maps: nodes == 1 && result_keys(plan).is_some() });
    let operators = builder.operators.into_iter().collect::<Option<Vec<_>>>();
    Ok(Built {
        topology: Arc::new(builder.topology.build()),
        operators: operators.ok_or_else(|| Error::bug("every operator that was numbered was made"))?,
        stealable: builder.stealable.into(),
        any_order: builder.any_order.into(),
        descriptions: builder.descriptions,
    })
}

/// The keys of the maps that are the results of a plan, if the rows before its last operator may stand for them: computed column
/// `n` of a row has the value of key `n`, or nothing if the map does not have the key.
pub fn result_keys(plan: &PhysicalPlan) -> Option<&[Name]> {
    plan.root.stages.last().and_then(result_names)
}

fn result_names(stage: &Stage) -> Option<&[Name]> {
    match &stage.operator {
        Op::ComputedMap { names, single: false, required: false } if is_set(names) => Some(names),
        _ => None,
    }
}

/// Returns true if no name occurs twice.
fn is_set(names: &[Name]) -> bool {
    names.iter().enumerate().all(|(at, name)| !names[..at].contains(name))
}

/// An operator, for people.
#[derive(Clone, Debug)]
pub struct DescribedOperator {
    /// The number of scopes around it.
    pub depth: usize,
    /// What it does, in the words of `explain()`.
    pub text: String,
    /// How the stream goes through it; `None` for an operator that stands in no plan, as that which takes the results.
    pub flow: Option<Flow>,
    /// The rows that are expected to leave it, if the plan has an estimate.
    pub expected_rows: Option<f64>,
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
    fn flow(self) -> Option<Flow> {
        match self {
            OperatorDescription::Named(_) => None,
            OperatorDescription::Operator(operator) => Some(operator.flow()),
            OperatorDescription::By(modulate) if modulate.has_scope() => Some(Flow::Branch),
            OperatorDescription::By(_) => Some(Flow::Sequential),
        }
    }

    fn text(self) -> String {
        match self {
            OperatorDescription::Named(name) => name.to_owned(),
            OperatorDescription::Operator(operator) => mangrove_plan::explain::describe(operator),
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
    descriptions: Vec<DescribedOperator>,
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
    /// True if the next chain is that of the whole query.
    is_root: bool,
    /// True if the next operator is the last one of the query, and its node the only one.
    makes_results: bool,
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
            let (depth, text, flow) = (self.depth, description.text(), description.flow());
            self.descriptions.push(DescribedOperator { depth, text, flow, expected_rows: None });
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
        let is_root = std::mem::take(&mut self.is_root) && self.nodes == 1;
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
            self.makes_results = is_root && stages.peek().is_none();
            tail = self.stage(stage, tail, first)?;
            // The rows of a stage leave its last operator.
            if let Some(last) = self.descriptions.get_mut(tail.from as usize) {
                last.expected_rows = stage.expected;
            }
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

    /// Returns the keys of a `by()` if the next operator reads them itself. That needs rows and state on one node.
    fn own_keys(&self, by: &Op, reader: &Op) -> Option<Vec<KeyPart>> {
        let Op::Modulate(ModulatePlan { over: Over::Current, by, productive, .. }) = by else { return None };
        let reads = self.nodes == 1
            && !productive.contains(&true)
            && matches!(reader, Op::Order { .. } | Op::GroupCount { .. } | Op::Group { .. });
        let key = |(number, computation): (usize, &Computation)| match computation {
            Computation::Key(key) => Some(KeyPart::Value(key.clone())),
            Computation::Identity => Some(KeyPart::Object),
            // A sort reads further keys only of rows that may be among the first. The degree of a row that is no vertex
            // is an error, which must not depend on that.
            Computation::Degree(degree) if number == 0 => Some(KeyPart::Degree(degree.clone())),
            _ => None,
        };
        if reads { by.iter().enumerate().map(key).collect() } else { None }
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
}
