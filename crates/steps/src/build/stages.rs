//! Builds the operators of each stage of a pipeline. Scopes are built in `scopes`.

use mangrove_flow::{Exchange, OpId, Operator, Placement};
use mangrove_graph::{Direction, ElementKind, Result};
use mangrove_plan::logical::{Name, Reduction};
use mangrove_plan::physical::{
    Computation, ComputedOperand, EdgeTo, Modulate as ModulatePlan, Op, OrderReader, Pipeline, PropertyWrite, Reduced,
    Stage, TargetAccess,
};

use super::{Builder, ChainEnd, OperatorDescription, RowLocation, result_names};
use crate::algorithm::shortest_path::FindPaths;
use crate::algorithm::vertex_program::RunProgram;
use crate::barrier::barrier_step::Barrier;
use crate::barrier::dedup::Dedup;
use crate::barrier::fold_into::FoldInto;
use crate::barrier::group_count::GroupCount;
use crate::barrier::inject::Inject;
use crate::barrier::order::Order;
use crate::barrier::passing_merge::PassingMerge;
use crate::barrier::pattern_count::CountPattern;
use crate::barrier::range::{Range, Tail};
use crate::barrier::reduce::{Reduce, ReduceKind};
use crate::barrier::reduce_many::ReduceMany;
use crate::barrier::reduce_values::ReduceValues;
use crate::barrier::sample::{Coin, LocalSample, Sample};
use crate::barrier::side_effect::{Aggregate, Cap};
use crate::barrier::subgraph::Subgraph;
use crate::barrier::time_limit::TimeLimit;
use crate::barrier::tree::Tree;
use crate::computed::degrees::DegreeReader;
use crate::row::both_ends::BothEnds;
use crate::row::call::CallService;
use crate::row::closing::{Closing, ClosingKind};
use crate::row::degrees::{CountEdges, TestDegrees};
use crate::row::expand::{EdgeVertex, Expand};
use crate::row::intersect::Intersect;
use crate::row::members_of_names::MemberOfName;
use crate::row::one_by_one::OneByOne;
use crate::row::operator::RowAdapter;
use crate::row::optional_expand::OptionalExpand;
use crate::row::source::{CountAll, ElementSource};
use crate::row::{filter, formula, function, local, members, paths, property, sack};
use crate::rows::{Remember, Rows};
use crate::scope::by_taker::{ByLookup, ByTaker};
use crate::scope::modulate::Modulate;
use crate::values::predicate::CompiledTest;
use crate::write;

/// The seed of the shuffles of `order(local)`; one generator serves all lists.
const SHUFFLE_SEED: u64 = 0x5EED;

impl Builder {
    /// Builds a stage after the end of a chain. `first` is the first operator of the pipeline.
    pub(super) fn stage(&mut self, stage: &Stage, tail: ChainEnd, first: OpId) -> Result<ChainEnd> {
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
            Op::CountPattern(count) if self.nodes == 1 => {
                let may_share = self.may_share();
                self.gather(&tail, stage, CountPattern::new(count, remember, may_share))?
            }
            Op::CountPattern(count) => {
                // A node sees only its own lists.
                let mut next = tail;
                for stage in &count.rows.stages {
                    next = self.stage(stage, next, first)?;
                }
                next
            }
            Op::CountExpand(degree) => {
                let count = CountEdges(DegreeReader::new(degree));
                let next = self.row(&tail, RowLocation::Owner, stage, false, count)?;
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
            Op::BothEnds(search) if self.nodes == 1 => {
                let next = self.attach(&tail, RowLocation::Owner, what)?;
                self.kernel(next.from, BothEnds::new(search, remember));
                match search.found_by {
                    TargetAccess::Ids(_) => next,
                    TargetAccess::Index(_) => self.beside(next, &search.one_sided)?,
                }
            }
            Op::BothEnds(search) => {
                // A node sees only its own lists.
                let mut next = tail;
                for stage in &search.one_sided.stages {
                    next = self.stage(stage, next, first)?;
                }
                next
            }
            Op::EdgeVertex(end) => self.row(&tail, RowLocation::Owner, stage, true, EdgeVertex(*end))?,
            Op::Filter(conditions) => {
                self.row(&tail, RowLocation::Owner, stage, false, filter::Filter::new(conditions))?
            }
            Op::HasEdges { direction, labels, negate } => {
                let filter = filter::HasEdges::new(*direction, labels, *negate);
                self.row(&tail, RowLocation::Owner, stage, false, filter)?
            }
            Op::TestDegrees { kind, tests } => {
                self.row(&tail, RowLocation::Owner, stage, false, TestDegrees::new(*kind, tests))?
            }
            Op::Values(keys) => {
                let values = property::Values::new(keys.clone(), self.numbers_are_read, self.makes_results);
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
            Op::MemberOfName { found, name, lookup } => {
                let member = MemberOfName::new(*found, name.clone(), *lookup);
                self.row(&tail, RowLocation::Anywhere, stage, false, member)?
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
            Op::VertexProgram(program) => self.gather(&tail, stage, RunProgram::new((**program).clone()))?,
            Op::ShortestPath(search) => {
                let next = self.attach(&tail, RowLocation::Anywhere, what)?;
                self.kernel(next.from, FindPaths::new((**search).clone(), remember));
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
                let is_last = self.makes_results && result_names(stage).is_some();
                let map = paths::ComputedMap { names: names.clone(), single: *single, required: *required, is_last };
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
                let may_share = self.may_share();
                self.gather(&tail, stage, ReduceValues::new(*reduction, key.clone(), remember, may_share))?
            }
            Op::ReduceValues { key, reduction } => {
                // The values are read at the owners of their elements, and reduced at the home of the group.
                self.numbers_are_read = true;
                let read = Stage::new(Op::Values(vec![key.clone()]));
                let next = self.stage(&read, tail, first)?;
                let reduce = Stage::labeled(Op::Reduce(*reduction), stage.labels.clone());
                self.stage(&reduce, next, first)?
            }
            Op::ReduceMany { of: Reduced::Values(key), reductions } if self.nodes > 1 => {
                // As one reduction of the values of a key.
                self.numbers_are_read = true;
                let read = Stage::new(Op::Values(vec![key.clone()]));
                let next = self.stage(&read, tail, first)?;
                let operator = Op::ReduceMany { of: Reduced::Objects, reductions: reductions.clone() };
                self.stage(&Stage::labeled(operator, stage.labels.clone()), next, first)?
            }
            Op::ReduceMany { of: Reduced::ValuesOfEach(key), reductions } if self.nodes > 1 => {
                self.reduce_in_branches(key, reductions, stage, &tail)?
            }
            Op::ReduceMany { of, reductions } => {
                let may_share = self.may_share();
                self.gather(&tail, stage, ReduceMany::new(of, reductions, remember, may_share))?
            }
            Op::Reduce(reduction) => {
                let may_share = self.may_share();
                self.gather(&tail, stage, Reduce::new(ReduceKind::Language(*reduction), remember, may_share))?
            }
            Op::Order { orders, limit } => {
                let taken = std::mem::take(&mut self.taken);
                let may_share = self.may_share();
                self.gather(&tail, stage, Order::new(orders.clone(), taken, limit.clone(), may_share))?
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
                let may_share = self.may_share();
                self.gather(&tail, stage, GroupCount::new(side_effect.clone(), taken, remember, may_share))?
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
            Op::Merge if self.may_share() => self.gather(&tail, stage, Barrier::between_hops())?,
            Op::Merge => {
                let any_order = self.is_unordered();
                self.gather(&tail, stage, PassingMerge::new(any_order))?
            }
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
            Op::Join { walks, names } => self.join(walks, names, stage, &tail)?,
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
        let mut next = self.stage(&Stage::labeled(hop, stage.labels.clone()), tail, first)?;
        for edge in closings {
            let test = Op::HasEdgeTo { edge: edge.clone(), negate: false };
            next = self.stage(&Stage::new(test), next, first)?;
        }
        Ok(next)
    }

    /// Builds reductions of the values of elements that lie on several nodes: a branch for each. Which instances had
    /// elements without values is known only where the elements are.
    fn reduce_in_branches(
        &mut self,
        key: &Name,
        reductions: &[Reduction],
        stage: &Stage,
        tail: &ChainEnd,
    ) -> Result<ChainEnd> {
        let branch = |reduction: &Reduction| {
            let read = Stage::new(Op::Values(vec![key.clone()]));
            let reduce = Stage::new(Op::Reduce(*reduction));
            Pipeline { stages: vec![read, reduce] }
        };
        self.union(&reductions.iter().map(branch).collect::<Vec<_>>(), stage, tail)
    }

    /// Adds the second half of a count in two parts: the sum of the counts of all nodes.
    fn total(&mut self, tail: &ChainEnd, stage: &Stage) -> Result<ChainEnd> {
        let next = self.attach(tail, RowLocation::Home, OperatorDescription::Named("total"))?;
        let operator = Reduce::new(ReduceKind::Total, self.remember(stage), self.may_share());
        self.set(next.from, operator);
        Ok(next)
    }

    /// Builds the columns that `by()` computes.
    pub(super) fn modulate(&mut self, plan: &ModulatePlan, tail: ChainEnd) -> Result<ChainEnd> {
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
                Computation::Degree(degree) if in_place => ByTaker::Degree(DegreeReader::new(degree)),
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
                Computation::Degree(degree) if !in_place => {
                    self.remote_lookup(ByTaker::Degree(DegreeReader::new(degree)), next.from, pipelines)?
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
