//! From a logical traversal to a physical plan.
//!
//! Each logical step becomes one or a few operators; what `by()` takes becomes a [`Modulate`] before its
//! reader. Three things are worked out on the way: what rows must carry ([`Requirements`]), which part of
//! the stream is ordered, and how the vertices of a source are found.

use mangrove_graph::{Error, IndexInfo, Result, Token};
use mangrove_gremlin::{Comparison, Pop};

use crate::logical::*;
use crate::physical::*;

/// An index with the names of its label (if it is restricted to one) and its key.
pub type UsableIndex = (IndexInfo, Option<Name>, Name);

/// What the planner knows of the graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GraphFacts {
    /// The indexes that may be used.
    pub indexes: Vec<UsableIndex>,
}

/// Turns a logical traversal into a physical plan.
pub fn lower(traversal: &Traversal, configuration: &Configuration, facts: &GraphFacts) -> Result<PhysicalPlan> {
    let requirements = crate::requirements::requirements(traversal, configuration);
    let lowering = Lowering { facts, requirements: &requirements };
    let mut root = lowering.pipeline(traversal, false)?.0;
    crate::fuse::fuse(&mut root.stages, true);
    let mutating = traversal.is_mutating();
    Ok(PhysicalPlan {
        root,
        mutating,
        pinned: mutating || traversal.uses_side_effects() || !configuration.side_effects.is_empty(),
        requirements,
        side_effects: configuration.side_effects.clone(),
        timeout_millis: configuration.timeout_millis,
    })
}

struct Lowering<'a> {
    facts: &'a GraphFacts,
    requirements: &'a Requirements,
}

/// The stages of one chain, and whether the stream at its end is ordered.
struct Chain {
    stages: Vec<Stage>,
    ordered: bool,
    /// Where the run of row-by-row stages since the last ordering barrier begins.
    run: usize,
}

impl Chain {
    fn push(&mut self, operator: Op) {
        self.stages.push(Stage { operator, labels: Vec::new() });
    }

    fn modulate(&mut self, over: Over, by: Vec<SlotBy>) {
        self.push(Op::Modulate(Modulate { over, by }));
    }

    /// Closes the run of row-by-row stages of an ordered stream: it becomes a scope that keeps the order.
    fn close_run(&mut self) {
        let run = &self.stages[self.run..];
        if run
            .iter()
            .any(|s| matches!(s.operator, Op::Union(_) | Op::Switch { .. } | Op::Repeat(_)) && s.operator.keeps_state())
        {
            // A barrier in a branch sees the stream of all rows: they cannot be kept apart, and what comes out
            // has no order to keep.
            self.ordered = false;
        }
        if self.ordered && self.stages[self.run..].iter().any(|s| s.operator.may_reorder()) {
            let stages = self.stages.split_off(self.run);
            let always = stages.iter().any(|s| matches!(s.operator, Op::Union(_) | Op::Switch { .. } | Op::Repeat(_)));
            self.push(Op::Ordered { pipeline: Pipeline { stages }, always });
        }
        self.run = self.stages.len();
    }
}

impl Op {
    /// Whether rows may come out in another order than they went in, on several nodes at least.
    fn may_reorder(&self) -> bool {
        matches!(
            self,
            Op::Vertices { .. }
                | Op::Edges { .. }
                | Op::Expand { .. }
                | Op::EdgeVertex(_)
                | Op::Filter(_)
                | Op::HasEdges { .. }
                | Op::Modulate(_)
                | Op::Values(_)
                | Op::Properties(_)
                | Op::ValueMap { .. }
                | Op::ElementMap(_)
                | Op::Token(_)
                | Op::Local(_)
                | Op::Union(_)
                | Op::Switch { .. }
                | Op::Repeat(_)
        )
    }

    /// Whether its rows hold an object of their own, which belongs to the path; filters, barriers and
    /// branches pass on what came.
    fn makes_objects(&self) -> bool {
        match self {
            Op::Local(scope) => matches!(scope.kind, LocalKind::FlatMap { inner_path: false, .. }),
            Op::Group { side_effect, .. } | Op::GroupCount { side_effect } => side_effect.is_none(),
            Op::Identity
            | Op::Filter(_)
            | Op::HasEdges { .. }
            | Op::Is(_)
            | Op::Modulate(_)
            | Op::CompareSlots(_)
            | Op::PathShape { .. }
            | Op::Discard
            | Op::ReplaceMapValues
            | Op::Order { .. }
            | Op::Dedup { .. }
            | Op::Range { .. }
            | Op::Tail(_)
            | Op::Aggregate(_)
            | Op::Barrier
            | Op::SetProperty(_)
            | Op::Drop
            | Op::Union(_)
            | Op::Switch { .. }
            | Op::Repeat(_)
            | Op::Ordered { .. } => false,
            _ => true,
        }
    }

    /// Whether it reads its input's order: the ordered run ends before it.
    fn reads_order(&self) -> bool {
        matches!(
            self,
            Op::Range { .. }
                | Op::Tail(_)
                | Op::Reduce(_)
                | Op::Dedup { .. }
                | Op::Aggregate(_)
                | Op::Barrier
                | Op::Group { .. }
                | Op::GroupCount { .. }
                | Op::Cap(_)
                | Op::Order { .. }
                | Op::CountExpand { .. }
                | Op::AddVertex { .. }
                | Op::AddEdge { .. }
                | Op::SetProperty(_)
                | Op::Drop
        )
    }

    /// Whether its output is ordered when its input was.
    fn keeps_order(&self) -> bool {
        !matches!(self, Op::Reduce(_) | Op::Group { .. } | Op::GroupCount { .. } | Op::Cap(_) | Op::CountExpand { .. })
    }
}

impl Lowering<'_> {
    /// Lowers a chain; says whether its output is ordered.
    fn pipeline(&self, traversal: &Traversal, ordered: bool) -> Result<(Pipeline, bool)> {
        let mut chain = Chain { stages: Vec::new(), ordered, run: 0 };
        for node in &traversal.steps {
            let before = chain.stages.len();
            self.step(&node.step, &mut chain).map_err(|e| match node.position {
                Some(p) => e.context(format!("line {}, column {}", p.line, p.column)),
                None => e,
            })?;
            self.label(node, before, &mut chain);
            self.track_order(before, &mut chain);
        }
        chain.close_run();
        Ok((Pipeline { stages: chain.stages }, chain.ordered))
    }

    fn child(&self, traversal: &Traversal) -> Result<Pipeline> {
        let mut pipeline = self.pipeline(traversal, false)?.0;
        crate::fuse::fuse(&mut pipeline.stages, false);
        Ok(pipeline)
    }

    fn children(&self, traversals: &[Traversal]) -> Result<Vec<Pipeline>> {
        traversals.iter().map(|t| self.child(t)).collect()
    }

    /// Labels go to the last operator of their step, if somebody reads them.
    fn label(&self, node: &StepNode, before: usize, chain: &mut Chain) {
        let wanted: Vec<Name> = match &self.requirements.path {
            PathRequirement::None => Vec::new(),
            PathRequirement::Labels(read) => node.labels.iter().filter(|l| read.contains(l)).cloned().collect(),
            PathRequirement::Full => node.labels.clone(),
        };
        if wanted.is_empty() {
            return;
        }
        // A step that left no operator, or whose last one passes its rows on, needs one to bear the label.
        let bears = chain.stages.len() > before && chain.stages.last().is_some_and(|s| s.operator.makes_objects());
        if !bears {
            chain.push(Op::Identity);
        }
        if let Some(stage) = chain.stages.last_mut() {
            stage.labels = wanted;
        }
    }

    fn track_order(&self, before: usize, chain: &mut Chain) {
        // The operators of the new step, one at a time: a run ends before one that reads order.
        if let Some(at) = (before..chain.stages.len()).find(|&i| chain.stages[i].operator.reads_order()) {
            let tail = chain.stages.split_off(at);
            chain.close_run();
            chain.stages.extend(tail);
            let sorts = |s: &Stage| matches!(s.operator, Op::Order { .. });
            let keeps = chain.stages[chain.run..].iter().all(|s| s.operator.keeps_order());
            chain.ordered = chain.stages[chain.run..].iter().any(sorts) || (chain.ordered && keeps);
            chain.run = chain.stages.len();
        }
    }

    fn step(&self, step: &Step, chain: &mut Chain) -> Result<()> {
        match step {
            Step::Vertices { ids, conditions } => {
                let (access, conditions) = self.access(ids.as_ref(), conditions);
                chain.push(Op::Vertices { access, conditions });
            }
            Step::Edges { ids, conditions } => {
                chain.push(Op::Edges { ids: ids.clone(), conditions: conditions.clone() });
            }
            Step::Inject(values) => chain.push(Op::Inject(values.clone())),
            Step::AddVertex { label, properties, id } => self.add_vertex(label, properties, id.as_ref(), chain)?,
            Step::AddEdge { label, from, to, properties, id } => {
                self.add_edge(label, [from.as_ref(), to.as_ref()], properties, id.as_ref(), chain)?;
            }
            Step::Property(property) => {
                let mut slots = Slots::default();
                let write = self.property(property, &mut slots)?;
                slots.emit(chain);
                chain.push(Op::SetProperty(write));
            }
            Step::Drop => chain.push(Op::Drop),
            Step::Expand { direction, labels, to_edges } => {
                chain.push(Op::Expand { direction: *direction, labels: labels.clone(), to_edges: *to_edges });
            }
            Step::EdgeVertex(end) => chain.push(Op::EdgeVertex(*end)),
            Step::Has(conditions) => chain.push(Op::Filter(conditions.clone())),
            Step::Is(test) => chain.push(Op::Is(test.clone())),
            Step::WherePredicate { start, test, by } => {
                let names = std::iter::once((start.clone(), None));
                let names = names.chain(test.names().into_iter().map(|n| (Some(n.clone()), None))).collect();
                chain.modulate(Over::Names(names), self.slots_by(by)?);
                chain.push(Op::CompareSlots(test.clone()));
            }
            Step::FilterTraversal(kind, traversals) => self.filter(*kind, traversals, chain)?,
            Step::Dedup { labels, by } => {
                let slots = match (labels.is_empty(), by.is_empty()) {
                    (true, true) => 0,
                    (true, false) => {
                        chain.modulate(Over::Current, self.slots_by(by)?);
                        by.len()
                    }
                    (false, _) => {
                        let names = labels.iter().map(|l| (Some(l.clone()), None)).collect();
                        chain.modulate(Over::Names(names), self.slots_by(by)?);
                        labels.len()
                    }
                };
                chain.push(Op::Dedup { slots });
            }
            Step::Range { low, high } => chain.push(Op::Range { low: low.clone(), high: high.clone() }),
            Step::Tail(count) => chain.push(Op::Tail(count.clone())),
            Step::PathShape { simple, by } => {
                let slot = !by.is_empty();
                if slot {
                    chain.modulate(Over::PathObjects, self.slots_by(by)?);
                }
                chain.push(Op::PathShape { simple: *simple, slot });
            }
            Step::Discard => chain.push(Op::Discard),
            _ => self.map_or_barrier(step, chain)?,
        }
        Ok(())
    }

    fn map_or_barrier(&self, step: &Step, chain: &mut Chain) -> Result<()> {
        match step {
            Step::Values(keys) => chain.push(Op::Values(keys.clone())),
            Step::Properties(keys) => chain.push(Op::Properties(keys.clone())),
            Step::ValueMap { keys, tokens, by } => {
                chain.push(Op::ValueMap { keys: keys.clone(), tokens: *tokens });
                if let Some(by) = by {
                    chain.modulate(Over::MapValues, vec![self.slot_by(by)?]);
                    chain.push(Op::ReplaceMapValues);
                }
            }
            Step::ElementMap(keys) => chain.push(Op::ElementMap(keys.clone())),
            Step::Id => chain.push(Op::Token(Token::Id)),
            Step::Label => chain.push(Op::Token(Token::Label)),
            Step::Key => chain.push(Op::Token(Token::Key)),
            Step::PropertyValue => chain.push(Op::Token(Token::Value)),
            Step::Constant(value) => chain.push(Op::Constant(value.clone())),
            // Nobody sees an identity without a label; with one, the label brings an operator.
            Step::Identity => {}
            Step::Unfold => chain.push(Op::Unfold),
            Step::Loops(None) => chain.push(Op::Loops(None)),
            Step::Loops(Some(name)) => {
                return Err(Error::unsupported(format!(
                    "loops(\"{name}\") with a loop name is not supported yet; use loops()"
                )));
            }
            Step::Local(function) => self.local_function(function, chain)?,
            Step::Path(by) => {
                let slot = !by.is_empty();
                if slot {
                    chain.modulate(Over::PathObjects, self.slots_by(by)?);
                }
                chain.push(Op::Path { slot });
            }
            Step::Select { pop, labels, by } => {
                let names = labels.iter().map(|l| (Some(l.clone()), Some(pop.unwrap_or(Pop::Last)))).collect();
                chain.modulate(Over::Names(names), self.slots_by(by)?);
                chain.push(Op::SlotMap { names: labels.clone(), single: labels.len() == 1, required: true });
            }
            Step::SelectColumn(column) => chain.push(Op::SelectColumn(*column)),
            Step::Project { names, by } => {
                let all = names.iter().map(|_| (None, None)).collect();
                chain.modulate(Over::Names(all), self.slots_by(by)?);
                chain.push(Op::SlotMap { names: names.clone(), single: false, required: false });
            }
            Step::Reduce(reduction) => chain.push(Op::Reduce(*reduction)),
            Step::Order(criteria) => {
                chain.modulate(Over::Current, self.order_slots(criteria)?);
                chain.push(Op::Order { orders: orders(criteria), limit: None });
            }
            Step::Group { side_effect, key, value } => {
                chain.modulate(Over::Current, vec![self.slot_by(key)?]);
                chain.push(Op::Group { side_effect: side_effect.clone(), value: self.group_value(value.as_ref())? });
            }
            Step::GroupCount { side_effect, key } => {
                chain.modulate(Over::Current, vec![self.slot_by(key)?]);
                chain.push(Op::GroupCount { side_effect: side_effect.clone() });
            }
            Step::Aggregate { name, by } => {
                chain.modulate(Over::Current, vec![self.slot_by(by)?]);
                chain.push(Op::Aggregate(name.clone()));
            }
            Step::Cap(names) => chain.push(Op::Cap(names.clone())),
            Step::Barrier => chain.push(Op::Barrier),
            _ => self.scope(step, chain)?,
        }
        Ok(())
    }

    fn scope(&self, step: &Step, chain: &mut Chain) -> Result<()> {
        let ordered = chain.ordered;
        let flat_map = |pipelines, first, otherwise_row, inner_path| LocalKind::FlatMap {
            pipelines,
            first,
            otherwise_row,
            inner_path,
        };
        let (kind, mutating) = match step {
            Step::Map { traversal, first } => {
                (flat_map(vec![self.child(traversal)?], *first, false, false), traversal.is_mutating())
            }
            Step::LocalTraversal(traversal) => {
                (flat_map(vec![self.child(traversal)?], false, false, true), traversal.is_mutating())
            }
            Step::Coalesce(traversals) => (
                flat_map(self.children(traversals)?, false, false, false),
                traversals.iter().any(Traversal::is_mutating),
            ),
            Step::Optional(traversal) => {
                (flat_map(vec![self.child(traversal)?], false, true, true), traversal.is_mutating())
            }
            Step::SideEffect(traversal) => (LocalKind::SideEffect(self.child(traversal)?), traversal.is_mutating()),
            Step::Union(traversals) => {
                chain.push(Op::Union(self.children(traversals)?));
                return Ok(());
            }
            Step::Choose(choose) => return self.choose(choose, chain),
            Step::Repeat(repeat) => {
                let scope = RepeatScope {
                    body: self.child(&repeat.body)?,
                    until: repeat.until.as_ref().map(|u| self.until(u)).transpose()?,
                    until_first: repeat.until_first,
                    emit: repeat.emit.as_ref().map(|e| self.emit(e)).transpose()?,
                    emit_first: repeat.emit_first,
                };
                chain.push(Op::Repeat(Box::new(scope)));
                return Ok(());
            }
            other => return Err(Error::bug(format!("no operator for the step {other:?}"))),
        };
        chain.push(Op::Local(LocalScope { kind, serial: mutating, ordered }));
        Ok(())
    }

    fn until(&self, until: &Until) -> Result<LoopTest> {
        Ok(match until {
            Until::Times(n) => LoopTest::Times(n.clone()),
            Until::Test(test) => LoopTest::Test(test.clone()),
            Until::Traversal(t) => LoopTest::Exists(self.child(t)?),
        })
    }

    fn emit(&self, emit: &Emit) -> Result<LoopTest> {
        Ok(match emit {
            Emit::Always => LoopTest::Always,
            Emit::Test(test) => LoopTest::Test(test.clone()),
            Emit::Traversal(t) => LoopTest::Exists(self.child(t)?),
        })
    }

    fn choose(&self, choose: &Choose, chain: &mut Chain) -> Result<()> {
        let slot = match &choose.on {
            ChooseOn::Test(test) => SlotBy::Test(test.clone()),
            ChooseOn::Exists(t) => SlotBy::Exists(self.child(t)?),
            ChooseOn::Value(t) => SlotBy::First(self.child(t)?),
        };
        chain.modulate(Over::Current, vec![slot]);
        let options = choose.options.iter().map(|(when, t)| Ok((when.clone(), self.child(t)?)));
        chain.push(Op::Switch { options: options.collect::<Result<_>>()? });
        Ok(())
    }

    fn filter(&self, kind: FilterKind, traversals: &[Traversal], chain: &mut Chain) -> Result<()> {
        // One hop that is only asked whether it exists needs no scope: a semi-join over the degrees.
        if let ([only], FilterKind::All | FilterKind::None) = (traversals, kind)
            && let [StepNode { step: Step::Expand { direction, labels, .. }, labels: marks, .. }] = &only.steps[..]
            && marks.is_empty()
        {
            let negate = kind == FilterKind::None;
            chain.push(Op::HasEdges { direction: *direction, labels: labels.clone(), negate });
            return Ok(());
        }
        let serial = traversals.iter().any(Traversal::is_mutating);
        let scope = |kind, pipelines, ordered| {
            Op::Local(LocalScope { kind: LocalKind::Filter(kind, pipelines), serial, ordered })
        };
        match kind {
            // One scope each, so that the first that fails spares the others.
            FilterKind::All => {
                for traversal in traversals {
                    chain.push(scope(kind, vec![self.child(traversal)?], chain.ordered));
                }
            }
            FilterKind::Any | FilterKind::None => {
                chain.push(scope(kind, self.children(traversals)?, chain.ordered));
            }
        }
        Ok(())
    }

    fn local_function(&self, function: &LocalFunction, chain: &mut Chain) -> Result<()> {
        match function {
            LocalFunction::Reduce(reduction) => chain.push(Op::LocalReduce(*reduction)),
            LocalFunction::Dedup => chain.push(Op::LocalDedup),
            LocalFunction::Order(criteria) => {
                chain.modulate(Over::Elements, self.order_slots(criteria)?);
                chain.push(Op::LocalOrder(orders(criteria)));
            }
            LocalFunction::Range { low, high } => {
                chain.push(Op::LocalRange { low: low.clone(), high: high.clone() });
            }
            LocalFunction::Tail(count) => chain.push(Op::LocalTail(count.clone())),
        }
        Ok(())
    }

    fn group_value(&self, value: Option<&By>) -> Result<Pipeline> {
        let stage = |operator| Stage { operator, labels: Vec::new() };
        let fold = stage(Op::Reduce(Reduction::Fold));
        // A traversal decides by itself what becomes of the members; anything else is collected in a list.
        Ok(match value {
            None | Some(By::Identity) => Pipeline { stages: vec![fold] },
            Some(By::Traversal(t)) => self.child(t)?,
            Some(By::Key(key)) => Pipeline { stages: vec![stage(Op::Values(vec![key.clone()])), fold] },
            Some(By::Token(token)) => Pipeline { stages: vec![stage(Op::Token(*token)), fold] },
            Some(By::Column(column)) => Pipeline { stages: vec![stage(Op::SelectColumn(*column)), fold] },
        })
    }

    fn slot_by(&self, by: &By) -> Result<SlotBy> {
        Ok(match by {
            By::Identity => SlotBy::Identity,
            By::Key(key) => SlotBy::Key(key.clone()),
            By::Token(token) => SlotBy::Token(*token),
            By::Column(column) => SlotBy::Column(*column),
            By::Traversal(t) => SlotBy::First(self.child(t)?),
        })
    }

    fn slots_by(&self, by: &[By]) -> Result<Vec<SlotBy>> {
        if by.is_empty() {
            return Ok(vec![SlotBy::Identity]);
        }
        by.iter().map(|b| self.slot_by(b)).collect()
    }

    fn order_slots(&self, criteria: &[OrderBy]) -> Result<Vec<SlotBy>> {
        if criteria.is_empty() {
            return Ok(vec![SlotBy::Identity]);
        }
        criteria.iter().map(|c| self.slot_by(&c.by)).collect()
    }

    fn add_vertex(
        &self,
        label: &Argument,
        properties: &[PropertyArgument],
        id: Option<&Argument>,
        chain: &mut Chain,
    ) -> Result<()> {
        let mut slots = Slots::default();
        let operator = Op::AddVertex {
            label: self.argument(label, &mut slots)?,
            id: id.map(|i| self.argument(i, &mut slots)).transpose()?,
            properties: properties.iter().map(|p| self.property(p, &mut slots)).collect::<Result<_>>()?,
        };
        slots.emit(chain);
        chain.push(operator);
        Ok(())
    }

    fn add_edge(
        &self,
        label: &Argument,
        ends: [Option<&Endpoint>; 2],
        properties: &[PropertyArgument],
        id: Option<&Argument>,
        chain: &mut Chain,
    ) -> Result<()> {
        let mut slots = Slots::default();
        let label = self.argument(label, &mut slots)?;
        let [from, to] = ends;
        let from = from.map(|end| self.endpoint(end, &mut slots)).transpose()?;
        let to = to.map(|end| self.endpoint(end, &mut slots)).transpose()?;
        let id = id.map(|i| self.argument(i, &mut slots)).transpose()?;
        let properties = properties.iter().map(|p| self.property(p, &mut slots)).collect::<Result<_>>()?;
        slots.emit(chain);
        chain.push(Op::AddEdge { label, from, to, id, properties });
        Ok(())
    }

    fn endpoint(&self, end: &Endpoint, slots: &mut Slots) -> Result<SlotOperand> {
        Ok(match end {
            Endpoint::Id(id) => SlotOperand::Operand(id.clone()),
            Endpoint::Label(name) => slots.add(Some(name.clone()), SlotBy::Identity),
            Endpoint::Traversal(t) => slots.add(None, SlotBy::First(self.child(t)?)),
        })
    }

    fn argument(&self, argument: &Argument, slots: &mut Slots) -> Result<SlotOperand> {
        Ok(match argument {
            Argument::Operand(operand) => SlotOperand::Operand(operand.clone()),
            Argument::Traversal(t) => slots.add(None, SlotBy::First(self.child(t)?)),
        })
    }

    fn property(&self, property: &PropertyArgument, slots: &mut Slots) -> Result<PropertyWrite> {
        let meta = property.meta.iter().map(|(key, value)| Ok((key.clone(), self.argument(value, slots)?)));
        Ok(PropertyWrite {
            cardinality: property.cardinality,
            key: property.key.clone(),
            meta: meta.collect::<Result<_>>()?,
            value: self.argument(&property.value, slots)?,
        })
    }

    /// How the vertices are found, and what is still to be tested of them: ids before an index before
    /// labels before everything. An index look-up is exact, so its condition is not tested again.
    fn access(&self, ids: Option<&Vec<Operand>>, conditions: &[Condition]) -> (Access, Vec<Condition>) {
        let mut rest = conditions.to_vec();
        if let Some(ids) = ids {
            return (Access::Ids(ids.clone()), rest);
        }
        // hasId(…) right behind V() names the vertices as V(…) would.
        let by_id =
            rest.iter().position(|c| matches!(c, Condition::Id(Test::Compare(Comparison::Eq, _) | Test::Within(_))));
        if let Some(at) = by_id
            && let Condition::Id(test) = rest.remove(at)
        {
            return (Access::IdSet(equal_operands(&test).unwrap_or_default()), rest);
        }
        let labels = rest.iter().find_map(|c| match c {
            Condition::LabelIn(names) => Some(names.clone()),
            _ => None,
        });
        let usable = |condition: &Condition| {
            let Condition::Property(key, test) = condition else { return None };
            let equality = equal_operands(test).is_some();
            let range = range_bounds(test).is_some();
            self.facts.indexes.iter().find(|(info, label, indexed)| {
                indexed == key
                    && (equality || (range && info.ordered))
                    && label.as_ref().is_none_or(|l| labels.as_ref().is_some_and(|names| names[..] == [l.clone()]))
            })
        };
        // Equality narrows more than a range.
        let mut found: Vec<(usize, &UsableIndex, bool)> = rest
            .iter()
            .enumerate()
            .filter_map(|(at, c)| {
                let Condition::Property(_, test) = c else { return None };
                usable(c).map(|index| (at, index, equal_operands(test).is_none()))
            })
            .collect();
        found.sort_by_key(|(.., is_range)| *is_range);
        if let Some((at, (info, label, key), _)) = found.first() {
            let description = match label {
                Some(label) => format!("{label}.{key}"),
                None => key.to_string(),
            };
            return (Access::Index { index: info.id, description, condition: *at }, rest);
        }
        match labels {
            Some(names) => {
                let at = rest.iter().position(|c| matches!(c, Condition::LabelIn(n) if *n == names));
                at.map(|at| rest.remove(at));
                (Access::Labels(names), rest)
            }
            None => (Access::All, rest),
        }
    }
}

/// The operands a value must equal one of, if the test says just that.
pub fn equal_operands(test: &Test) -> Option<Vec<Operand>> {
    match test {
        Test::Compare(Comparison::Eq, operand) => Some(vec![operand.clone()]),
        Test::Within(operands) => Some(operands.clone()),
        _ => None,
    }
}

/// A bound of a range, and whether the bound itself belongs to it.
pub type Bound = Option<(Operand, bool)>;

/// The bounds a value must lie between, if the test says just that.
pub fn range_bounds(test: &Test) -> Option<(Bound, Bound)> {
    match test {
        Test::Compare(Comparison::Gt, o) => Some((Some((o.clone(), false)), None)),
        Test::Compare(Comparison::Gte, o) => Some((Some((o.clone(), true)), None)),
        Test::Compare(Comparison::Lt, o) => Some((None, Some((o.clone(), false)))),
        Test::Compare(Comparison::Lte, o) => Some((None, Some((o.clone(), true)))),
        Test::And(tests) => {
            let [a, b] = &tests[..] else { return None };
            match (range_bounds(a)?, range_bounds(b)?) {
                ((low, None), (None, high)) | ((None, high), (low, None)) => Some((low, high)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Slots that the arguments of a write need.
#[derive(Default)]
struct Slots {
    names: Vec<(Option<Name>, Option<Pop>)>,
    by: Vec<SlotBy>,
}

impl Slots {
    fn add(&mut self, name: Option<Name>, by: SlotBy) -> SlotOperand {
        self.names.push((name, None));
        self.by.push(by);
        SlotOperand::Slot(self.by.len() - 1)
    }

    fn emit(self, chain: &mut Chain) {
        if !self.by.is_empty() {
            chain.modulate(Over::Names(self.names), self.by);
        }
    }
}

fn orders(criteria: &[OrderBy]) -> Vec<mangrove_gremlin::Order> {
    match criteria {
        [] => vec![mangrove_gremlin::Order::Asc],
        _ => criteria.iter().map(|c| c.order).collect(),
    }
}

/// The number in an operand that is known now.
pub fn literal_integer(operand: &Operand) -> Option<i64> {
    match operand {
        Operand::Literal(value) => mangrove_graph::numeric::integer(value),
        Operand::Parameter(_) | Operand::List(_) => None,
    }
}
