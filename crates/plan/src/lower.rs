//! From a logical traversal to a physical plan.
//!
//! Each logical step becomes one or a few operators, or none. A `by()` becomes a [`Modulate`] before the operator that
//! reads its values. The same pass decides which columns rows carry ([`Requirements`]), which part of the stream is
//! ordered (`order.rs`), how sources find their elements (`access.rs`), and where evaluating once is enough
//! (`once.rs`).
//!
//! Lowering reads the traversal, its configuration, [`GraphFacts`] and [`PlanOptions`], and nothing else. The match
//! over steps has no default arm: a new step must be lowered here.

mod access;
mod branches;
mod by;
mod once;
mod order;
mod policies;
mod upsert;
mod write;

use std::borrow::Cow;
use std::cell::{Cell, RefCell};

use mangrove_graph::{ElementKind, Error, FastSet, Result, Token};
use mangrove_gremlin::Comparison;

pub use access::may_choose_indexes;
use by::ComputedColumns;
use once::FollowingSteps;
use order::Chain;

use crate::connections::KnownConnections;
use crate::facts::GraphFacts;
use crate::graph::{self, CountChoice, Counted, Reordered};
use crate::interleaving::Interleaving;
use crate::limits::{self, PLANNED_STEPS_MAX};
use crate::logical::*;
use crate::options::{PlanOptions, Planner};
use crate::physical::*;
use crate::physical_rules::{Applied, Facts, Reliance, Said};

/// Turns a logical traversal into a physical plan.
pub fn lower(traversal: &Traversal, configuration: &Configuration, facts: &GraphFacts) -> Result<PhysicalPlan> {
    lower_with(traversal, configuration, facts, PlanOptions::default())
}

/// As [`lower`], with these optimizations alone.
pub fn lower_with(
    traversal: &Traversal,
    configuration: &Configuration,
    facts: &GraphFacts,
    options: PlanOptions,
) -> Result<PhysicalPlan> {
    let without_indexes;
    let facts = match options.use_indexes {
        true => facts,
        false => {
            without_indexes = GraphFacts { indexes: Vec::new(), ..facts.clone() };
            &without_indexes
        }
    };
    let computed_keys = computed_keys(traversal);
    let without_computed;
    let facts = match computed_keys.is_empty() {
        true => facts,
        // An index knows nothing of a value that is not stored.
        false => {
            let mut facts = facts.clone();
            facts.indexes.retain(|index| !index.keys.iter().any(|key| computed_keys.contains(key)));
            without_computed = facts;
            &without_computed
        }
    };
    let effects = traversal.effects();
    let mutating = effects.is_mutating;
    let may_rely = options.use_connections && !mutating;
    let connections = facts.connections.as_ref().filter(|_| may_rely);
    let weigh = options.weigh && !mutating;
    let mut estimates = graph::Estimates::default();
    let CountChoice { counted, has_choice: may_count } = match weigh {
        true => graph::count(traversal, configuration, facts, connections, options.planner, &mut estimates),
        false => CountChoice { counted: Err(None), has_choice: false },
    };
    let Reordered { traversal: reordered, mut choices, has_choice, rows } = graph::reorder(
        traversal,
        configuration,
        facts,
        options,
        counted.as_ref().ok().map(|counted| counted.steps),
        &mut estimates,
    );
    let written = traversal.steps.len();
    let traversal = reordered.as_ref().unwrap_or(traversal);
    let estimated = options.estimate.then(|| graph::with_expected_rows(traversal, configuration, facts, &rows));
    let traversal = estimated.as_ref().unwrap_or(traversal);
    let requirements = match estimates.needs().filter(|_| reordered.is_none()) {
        Some(known) => known.clone(),
        None => crate::requirements::requirements(traversal, configuration),
    };
    let loops = RefCell::default();
    let productive_by = configuration.productive_by.as_deref();
    let labels_given = crate::purity::labels_given(traversal);
    let in_paths: &[Name] = match &requirements.path {
        PathRequirement::Labels(names) => names,
        PathRequirement::None | PathRequirement::Full => &[],
    };
    let labels_read = in_paths.iter().chain(&requirements.bindings).collect();
    let side_effects = crate::purity::side_effects_filled(traversal, configuration);
    let interleaving = match effects.fills_side_effects {
        true => Interleaving::of(traversal),
        false => Interleaving::default(),
    };
    let merges = options.merge && !mutating;
    let lowering = Lowering {
        facts,
        configuration,
        options,
        requirements: &requirements,
        loops,
        labels_given,
        labels_read,
        side_effects,
        interleaving,
        productive_by,
        mutating,
        steps_left: Cell::new(PLANNED_STEPS_MAX),
        fills_from_here: Cell::new(false),
        chooses_by_statistics: Cell::new(false),
        applied: Applied::without(&configuration.rules_off),
        connections,
        said: Said::default(),
    };
    let may_merge = merges && !requirements.keep_earlier_objects() && !requirements.sacks;
    let without =
        (!configuration.rules_off.is_empty()).then(|| format!("without: {}", configuration.rules_off.join("; ")));
    choices.splice(0..0, without.clone());
    let mut root = match counted {
        Err(declined) => {
            choices.extend(declined.map(|reason| format!("count: with rows, since {reason}")));
            lowering.merged(traversal, may_merge, true)?
        }
        Ok(Counted { mut count, steps, choice: chosen, relied }) => {
            relied.iter().for_each(|(edges, labels)| lowering.said.say(Some(edges), labels));
            // The steps after the count are the same in every order.
            let (of_count, rest) = traversal.steps.split_at(traversal.steps.len() + steps - written);
            count.rows = lowering.merged(&Traversal { steps: of_count.to_vec() }, may_merge, true)?;
            // Rows were expected one for each match.
            let rest = rest.iter().map(|node| StepNode { expected: None, ..node.clone() });
            let mut rest = lowering.merged(&Traversal { steps: rest.collect() }, may_merge, false)?;
            let labels = match count.of {
                CountOf::AllMatches => count.rows.stages.last().map(|last| last.labels.clone()).unwrap_or_default(),
                // Nothing reads the names of the pattern.
                CountOf::EachRoot => Vec::new(),
            };
            rest.stages.insert(0, Stage::labeled(Op::CountPattern(Box::new(count)), labels));
            choices = without.into_iter().chain([chosen]).collect();
            rest
        }
    };
    policies::keep_read_orders(&mut root, OrderReader::STREAM)?;
    let (rules, interleaved) = (lowering.applied.names(), lowering.interleaving.shows());
    let chooses_by_statistics = lowering.chooses_by_statistics.get();
    let relied = lowering.into_lines_said();
    let uses_connections = !relied.is_empty();
    choices.extend(relied);
    Ok(PhysicalPlan {
        root,
        rules,
        choices,
        uses_connections,
        uses_statistics: has_choice || may_count || options.estimate || chooses_by_statistics,
        mutating,
        interleaved,
        pinned: mutating || effects.uses_side_effects || !configuration.side_effects.is_empty(),
        requirements,
        side_effects: configuration.side_effects.clone(),
        reducers: configuration.reducers.clone(),
        sack: configuration.sack.as_ref().map(|sack| sack.initial.clone()),
        computed_keys,
        timeout_millis: configuration.timeout_millis,
        policy: configuration.policy.clone(),
        sets_all_apart: options.set_all_apart,
    })
}

/// The keys under which algorithms of a traversal give vertices values, each once.
fn computed_keys(traversal: &Traversal) -> Vec<Name> {
    let mut keys: Vec<Name> = Vec::new();
    for node in &traversal.steps {
        if let Step::VertexProgram(program) = &node.step
            && !keys.contains(&program.key)
        {
            keys.push(program.key.clone());
        }
    }
    keys
}

/// The state of lowering one whole traversal, which nested traversals share.
struct Lowering<'a> {
    facts: &'a GraphFacts,
    configuration: &'a Configuration,
    options: PlanOptions,
    requirements: &'a Requirements,
    /// The names of the loops around the step that is being lowered, outermost first.
    loops: RefCell<Vec<Option<Name>>>,
    /// The labels of all steps of the whole traversal.
    labels_given: FastSet<&'a Name>,
    /// The labels that steps read; empty if rows keep whole paths.
    labels_read: FastSet<&'a Name>,
    /// The names of all side effects that have a value at some time.
    side_effects: FastSet<Name>,
    /// Decides to which steps rows come one at a time.
    interleaving: Interleaving,
    /// `ProductiveByStrategy`, under which a `by()` without a result gives null: the keys that are known to have
    /// results. `None`: the strategy is not used.
    productive_by: Option<&'a [Name]>,
    /// True if the traversal writes: reading the same thing again may give another result.
    mutating: bool,
    /// The number of steps that may still be lowered.
    steps_left: Cell<usize>,
    /// True if a side effect is filled by the step that is being lowered, by a step that it is nested in, or by a later
    /// step (PLAN-10).
    fills_from_here: Cell<bool>,
    /// True if a source could find its elements by different indexes, or conditions could be tested in different orders.
    chooses_by_statistics: Cell<bool>,
    /// The physical rules that have changed something.
    applied: Applied,
    /// The facts about edges, if the plan may rely on them (PLAN-13).
    connections: Option<&'a KnownConnections>,
    /// What it relies on.
    said: Said,
}

impl Lowering<'_> {
    /// What the plan relies on, in lines for `explain()`.
    fn into_lines_said(self) -> Vec<String> {
        self.said.into_lines()
    }

    /// Lowers a chain. Also returns whether its output is ordered. `existence_only`: the caller only looks at whether
    /// there is a result.
    fn pipeline(&self, traversal: &Traversal, existence_only: bool) -> Result<(Pipeline, bool)> {
        let mut chain = Chain::new(false);
        let fills_last = traversal.steps.iter().rposition(once::is_filling);
        let fills_around = self.fills_from_here.get();
        for (at, node) in traversal.steps.iter().enumerate() {
            self.spend_step()?;
            if self.options.fuse && at > 0 && self.selects_what_is_there(&traversal.steps[at - 1], node) {
                continue;
            }
            let before = chain.stages.len();
            let following = FollowingSteps {
                steps: &traversal.steps[at + 1..],
                fills_last: fills_last.and_then(|last| last.checked_sub(at + 1)),
                existence_only,
            };
            self.fills_from_here.set(fills_around || fills_last.is_some_and(|last| last >= at));
            self.step(node, &following, &mut chain).map_err(|e| match node.position {
                Some(p) => e.context(format!("line {}, column {}", p.line, p.column)),
                None => e,
            })?;
            self.set_policies(&mut chain.stages[before..], node)?;
            if self.interleaving.is_one_by_one(&node.step, self.fills_from_here.get()) {
                chain.insert_one_by_one(before);
            }
            if let Some(stage) = chain.stages[before..].last_mut() {
                stage.expected = node.expected;
            }
            self.label(node, before, &mut chain);
            chain.track_order(before);
        }
        self.fills_from_here.set(fills_around);
        chain.close_run();
        Ok((Pipeline { stages: chain.stages }, chain.ordered))
    }

    /// Counts a step. A `by()` of several computed columns, and steps that strategies add, are lowered more than once.
    /// Without a limit, a small traversal could become a plan of any size.
    fn spend_step(&self) -> Result<()> {
        let left = self.steps_left.get().checked_sub(1).ok_or_else(limits::too_many_planned)?;
        self.steps_left.set(left);
        Ok(())
    }

    /// Lowers a traversal, and applies the physical rules for chains.
    fn child(&self, traversal: &Traversal) -> Result<Pipeline> {
        self.fused(traversal, false, false)
    }

    /// As [`Lowering::child`], for a caller that only looks at whether the traversal has a result.
    fn for_existence(&self, traversal: &Traversal) -> Result<Pipeline> {
        self.fused(traversal, true, false)
    }

    /// Lowers the outermost traversal, or a part of it; with `may_merge`, equal rows are merged on the way. `is_first`: it is
    /// the first part.
    fn merged(&self, traversal: &Traversal, may_merge: bool, is_first: bool) -> Result<Pipeline> {
        let mut pipeline = self.fused(traversal, false, is_first)?;
        if may_merge {
            let shows_order = self.interleaving.shows();
            self.with_facts(is_first, |facts| self.applied.merge(&mut pipeline.stages, shows_order, facts));
        }
        Ok(pipeline)
    }

    fn fused(&self, traversal: &Traversal, existence_only: bool, is_first: bool) -> Result<Pipeline> {
        let mut pipeline = self.pipeline(traversal, existence_only)?.0;
        if self.options.fuse {
            self.with_facts(is_first, |facts| self.applied.rewrite_chain(&mut pipeline.stages, self.mutating, facts));
        }
        Ok(pipeline)
    }

    /// Calls rules with the facts about the traversal and its graph. `is_first`: the chain begins the outermost traversal.
    fn with_facts(&self, is_first: bool, rewrite: impl FnOnce(&Facts<'_>)) {
        let is_side_effect = |name: &Name| self.side_effects.contains(name);
        let is_only_a_label = |name: &Name| self.is_only_a_label(name);
        let reliance = self.connections.map(|connections| Reliance { connections, said: &self.said });
        let vertices_by_index = |conditions: &[Condition]| self.vertices_by_index(conditions);
        rewrite(&Facts {
            is_first,
            is_side_effect: &is_side_effect,
            is_only_a_label: &is_only_a_label,
            reliance,
            vertices_by_index: &vertices_by_index,
        });
    }

    fn children(&self, traversals: &[Traversal]) -> Result<Vec<Pipeline>> {
        traversals.iter().map(|t| self.child(t)).collect()
    }

    /// Attaches the labels of a step, as far as they are read, to its last operator. `before` is the number of stages
    /// before the step.
    fn label(&self, node: &StepNode, before: usize, chain: &mut Chain) {
        let wanted: Vec<Name> = match &self.requirements.path {
            PathRequirement::None | PathRequirement::Labels(_) => {
                node.labels.iter().filter(|l| self.labels_read.contains(l)).cloned().collect()
            }
            PathRequirement::Full => node.labels.clone(),
        };
        if wanted.is_empty() {
            return;
        }
        // A label names the object that an operator has made. If the step has become no operator, or if its last
        // operator passes objects on, an identity gets the labels.
        let bears = chain.stages.len() > before && chain.stages.last().is_some_and(|s| s.operator.makes_objects());
        if !bears {
            chain.push(Op::Identity);
        }
        if let Some(stage) = chain.stages.last_mut() {
            stage.labels = wanted;
        }
    }

    /// Conditions in the order in which they are tested.
    fn selective_first<'c>(&self, conditions: &'c [Condition]) -> Cow<'c, [Condition]> {
        let is_written = self.configuration.planner_or(self.options.planner) == Planner::Written;
        if is_written || !self.options.rewrite {
            return Cow::Borrowed(conditions);
        }
        let ordered = graph::selective_first(conditions, self.facts);
        if let Cow::Owned(_) = ordered {
            self.chooses_by_statistics.set(true);
        }
        ordered
    }

    /// How a source finds its elements, and the conditions that it tests.
    fn access(
        &self,
        kind: ElementKind,
        ids: Option<&Vec<Operand>>,
        conditions: &[Condition],
    ) -> (Access, Vec<Condition>) {
        let conditions = self.selective_first(conditions);
        let found = access::access(kind, self.facts, ids, &conditions);
        if found.has_choice {
            self.chooses_by_statistics.set(true);
        }
        (found.access, found.conditions)
    }

    /// How indexes find the vertices that meet all of the conditions, if they do.
    fn vertices_by_index(&self, conditions: &[Condition]) -> Option<IndexAccess> {
        match self.access(ElementKind::Vertex, None, conditions) {
            (Access::Index(access), _) => Some(access),
            _ => None,
        }
    }

    /// Appends the operators of a step.
    fn step(&self, node: &StepNode, following: &FollowingSteps<'_>, chain: &mut Chain) -> Result<()> {
        match &node.step {
            Step::Vertices { ids, conditions } => {
                let (access, conditions) = self.access(ElementKind::Vertex, ids.as_ref(), conditions);
                chain.push(Op::Vertices { access, conditions });
            }
            Step::Edges { ids, conditions } => {
                let (access, conditions) = self.access(ElementKind::Edge, ids.as_ref(), conditions);
                chain.push(Op::Edges { access, conditions });
            }
            Step::Inject(values) => chain.push(Op::Inject(values.clone())),
            Step::Call { service, arguments } => {
                let mut computed = ComputedColumns::default();
                let given =
                    arguments.iter().map(|(name, value)| Ok((name.clone(), self.argument(value, &mut computed)?)));
                let arguments = given.collect::<Result<_>>()?;
                computed.append_to(chain);
                chain.push(Op::Call { service: service.clone(), arguments });
            }
            Step::VertexProgram(program) => chain.push(Op::VertexProgram(program.clone())),
            Step::ShortestPath(search) => chain.push(Op::ShortestPath(search.clone())),
            Step::AddVertex { label, properties, id } => self.add_vertex(label, properties, id.as_ref(), chain)?,
            Step::AddEdge { label, from, to, properties, id } => {
                self.add_edge(label, [from.as_ref(), to.as_ref()], properties, id.as_ref(), chain)?;
            }
            Step::Property(property) => {
                let mut computed = ComputedColumns::default();
                let write = self.property(property, &mut computed)?;
                computed.append_to(chain);
                chain.push(Op::SetProperty(write));
            }
            Step::Upsert(upsert) => self.upsert(upsert, chain)?,
            Step::Drop => chain.push(Op::Drop),
            Step::File(file) => chain.push(Op::File(file.clone())),
            Step::Expand { direction, labels, to_edges } => {
                chain.push(Op::Expand { direction: *direction, labels: labels.clone(), to_edges: *to_edges });
            }
            Step::EdgeVertex(end) => chain.push(Op::EdgeVertex(*end)),
            Step::Has(conditions) => chain.push(Op::Filter(self.selective_first(conditions).into_owned())),
            Step::Is(test) => chain.push(Op::Is(test.clone())),
            Step::Members { quantifier, test } => chain.push(Op::Members(*quantifier, test.clone())),
            Step::WherePredicate { start: None, test: LabelTest::Compare(comparison, name), by, lookup }
                if by.iter().all(|b| *b == By::Identity) && matches!(comparison, Comparison::Eq | Comparison::Neq) =>
            {
                let equal = *comparison == Comparison::Eq;
                chain.push(Op::CompareName { equal, name: name.clone(), lookup: *lookup });
            }
            Step::WherePredicate {
                start: None,
                test: test @ (LabelTest::Within(names) | LabelTest::Without(names)),
                by,
                lookup,
            } if by.iter().all(|b| *b == By::Identity) && names.len() == 1 => {
                let found = matches!(test, LabelTest::Within(_));
                chain.push(Op::MemberOfName { found, name: names[0].clone(), lookup: *lookup });
            }
            Step::WherePredicate { start, test, by, lookup } => {
                let names = std::iter::once(start.clone()).chain(test.names().into_iter().cloned().map(Some));
                let names = names.map(|name| (name, *lookup)).collect();
                self.compute_by(Over::Names(names), by, chain)?;
                chain.push(Op::CompareComputed(test.clone()));
            }
            Step::FilterTraversal(kind, traversals) => {
                self.filter(*kind, traversals, !node.policy.is_default(), chain)?
            }
            Step::Dedup { labels, by } => {
                let by_object = by.iter().all(|b| *b == By::Identity);
                let computed = match (labels.is_empty(), by_object) {
                    (true, true) => 0,
                    (true, false) => {
                        self.compute_by(Over::Current, by, chain)?;
                        by.len()
                    }
                    (false, _) => {
                        let names = labels.iter().map(|l| (Some(l.clone()), Lookup::Scope(None))).collect();
                        self.compute_by(Over::Names(names), by, chain)?;
                        labels.len()
                    }
                };
                chain.push(Op::Dedup { computed });
            }
            Step::Range { low, high } => chain.push(Op::Range { low: low.clone(), high: high.clone() }),
            Step::Tail(count) => chain.push(Op::Tail(count.clone())),
            Step::PathShape { simple, by, segment } => {
                let computed = !by.is_empty();
                if computed {
                    self.compute_by(Over::PathObjects(segment.clone()), by, chain)?;
                }
                chain.push(Op::PathShape { simple: *simple, computed, segment: segment.clone() });
            }
            Step::Discard => chain.push(Op::Discard),
            Step::Values(keys) => chain.push(Op::Values(keys.clone())),
            Step::Properties(keys) => chain.push(Op::Properties(keys.clone())),
            Step::ValueMap { keys, tokens, by, shown } => {
                let shown = self.shown_properties(shown.as_deref(), chain)?;
                chain.push(Op::ValueMap { keys: keys.clone(), tokens: *tokens, shown });
                self.replace_map_values(by.as_ref(), chain)?;
            }
            Step::PropertyMap { keys, by, shown } => {
                let shown = self.shown_properties(shown.as_deref(), chain)?;
                chain.push(Op::PropertyMap { keys: keys.clone(), shown });
                self.replace_map_values(by.as_ref(), chain)?;
            }
            Step::ElementMap { keys, shown } => {
                let shown = self.shown_properties(shown.as_deref(), chain)?;
                chain.push(Op::ElementMap { keys: keys.clone(), shown });
            }
            Step::Id => chain.push(Op::Token(Token::Id)),
            Step::Label => chain.push(Op::Token(Token::Label)),
            Step::Key => chain.push(Op::Token(Token::Key)),
            Step::PropertyValue => chain.push(Op::Token(Token::Value)),
            Step::Constant(value) => chain.push(Op::Constant(value.clone())),
            // An identity without a label does nothing. For a label, `Lowering::label` appends its operator.
            Step::Identity => {}
            Step::Unfold => chain.push(Op::Unfold),
            Step::Loops(None) => chain.push(Op::Loops(None)),
            Step::Loops(Some(name)) => {
                let loops = self.loops.borrow();
                let depth = loops.iter().rposition(|around| around.as_ref() == Some(name)).ok_or_else(|| {
                    Error::unsupported(format!("there is no repeat(\"{name}\", …) around loops(\"{name}\")"))
                })?;
                chain.push(Op::Loops(Some(depth)));
            }
            Step::Local(function) => self.local_function(function, chain)?,
            Step::Path { by, segment } => {
                let computed = !by.is_empty();
                if computed {
                    self.compute_by(Over::PathObjects(segment.clone()), by, chain)?;
                }
                chain.push(Op::Path { computed, segment: segment.clone() });
            }
            Step::Select { lookup, labels, by, required: true }
                if labels.len() == 1 && lookup.is_newest() && by.iter().all(|by| *by == By::Identity) =>
            {
                chain.push(Op::SelectName { name: labels[0].clone(), lookup: *lookup });
            }
            Step::Select { lookup, labels, by, required } => {
                let names = labels.iter().map(|l| (Some(l.clone()), *lookup)).collect();
                self.compute_by(Over::Names(names), by, chain)?;
                let single = labels.len() == 1 && *required;
                chain.push(Op::ComputedMap { names: labels.clone(), single, required: *required });
            }
            Step::Function { function, arguments } => {
                let mut computed = ComputedColumns::default();
                let arguments = arguments.iter().map(|a| self.argument(a, &mut computed)).collect::<Result<_>>()?;
                computed.append_to(chain);
                chain.push(Op::Function { function: *function, arguments });
            }
            Step::Math { expression, variables, by } => {
                let named = |name: &Name| ((name != "_").then(|| name.clone()), Lookup::Scope(None));
                if !variables.is_empty() {
                    let names = Over::Names(variables.iter().map(named).collect());
                    match &by[..] {
                        [] => self.compute_by(names, by, chain)?,
                        by => self.compute_by_all(names, by.iter().cycle().take(variables.len()), chain)?,
                    }
                }
                chain.push(Op::Math(expression.clone()));
            }
            Step::Format { parts, by } => self.format(parts, by, chain)?,
            Step::SelectColumn(column) => chain.push(Op::SelectColumn(*column)),
            Step::Project { names, by } => {
                let all = names.iter().map(|_| (None, Lookup::Scope(None))).collect();
                self.compute_by(Over::Names(all), by, chain)?;
                chain.push(Op::ComputedMap { names: names.clone(), single: false, required: false });
            }
            Step::Reduce(reduction) => chain.push(Op::Reduce(*reduction)),
            Step::Order(criteria) => {
                self.compute_by(Over::Current, &compared(criteria), chain)?;
                chain.push(Op::Order { orders: orders(criteria), limit: None });
            }
            Step::Group { side_effect, key, value } => {
                self.compute_by(Over::Current, std::slice::from_ref(key), chain)?;
                chain.push(Op::Group {
                    side_effect: side_effect.clone(),
                    value: self.group_value(value.as_ref())?,
                    exceeds_limit: self.configuration.policy.instances_max.is_some(),
                });
            }
            Step::GroupCount { side_effect, key } => {
                self.compute_by(Over::Current, std::slice::from_ref(key), chain)?;
                chain.push(Op::GroupCount { side_effect: side_effect.clone() });
            }
            Step::Aggregate { name, by } => {
                self.compute_by(Over::Current, std::slice::from_ref(by), chain)?;
                chain.push(Op::Aggregate(name.clone()));
            }
            Step::Tree { side_effect, by } => {
                let computed = !by.is_empty();
                if computed {
                    self.compute_by(Over::TreeObjects, by, chain)?;
                }
                chain.push(Op::Tree { side_effect: side_effect.clone(), computed });
            }
            Step::Subgraph(name) => chain.push(Op::Subgraph(name.clone())),
            Step::Cap(names) => chain.push(Op::Cap(names.clone())),
            Step::Barrier { norm_sack } => chain.push(Op::Barrier { norm_sack: *norm_sack }),
            Step::FoldInto(seed, operator) => chain.push(Op::FoldInto(seed.clone(), *operator)),
            Step::Sack => chain.push(Op::Sack),
            Step::FoldSack(operator, by) => {
                self.compute_by(Over::Current, std::slice::from_ref(by), chain)?;
                chain.push(Op::FoldSack(*operator));
            }
            Step::Sample(count, weight) => {
                self.compute_by(Over::Current, std::slice::from_ref(weight), chain)?;
                chain.push(Op::Sample(count.clone()));
            }
            Step::TimeLimit(millis) => chain.push(Op::TimeLimit(millis.clone())),
            Step::Coin(probability) => chain.push(Op::Coin(probability.clone())),
            Step::Fail(message) => chain.push(Op::Fail(message.clone())),
            Step::SelectKey { pop, key, by } => {
                chain.modulate(Over::Current, vec![self.first_of(key)?]);
                chain.push(Op::SelectKey(*pop));
                if !by.is_empty() {
                    self.compute_by(Over::Current, by, chain)?;
                    chain.push(Op::ComputedMap { names: vec![Name::default()], single: true, required: true });
                }
            }
            Step::Map { traversal, first } => {
                let kind = flat_map(vec![self.child(traversal)?], *first);
                self.local(kind, std::slice::from_ref(traversal), Merged::AsOne, chain);
            }
            Step::LocalTraversal(traversal) => {
                let kind = LocalKind::FlatMap {
                    pipelines: vec![self.child(traversal)?],
                    first: false,
                    otherwise_row: false,
                    inner_path: true,
                };
                let fills = traversal.fills_side_effects();
                let merged = if fills { Merged::Apart } else { Merged::AsOne };
                // A reader of a side effect in local() sees the values of earlier traversers.
                let serial = traversal.is_mutating() || fills;
                let scope = self.scope(kind, std::slice::from_ref(traversal), chain);
                chain.push(Op::Local(LocalScope { serial, merged, ..scope }));
            }
            Step::Coalesce(traversals) => {
                let kind = flat_map(self.children(traversals)?, false);
                self.local(kind, traversals, Merged::AsOne, chain);
            }
            Step::Optional(traversal) => {
                let kind = LocalKind::FlatMap {
                    pipelines: vec![self.child(traversal)?],
                    first: false,
                    otherwise_row: true,
                    inner_path: true,
                };
                self.local(kind, std::slice::from_ref(traversal), Merged::Together, chain);
            }
            Step::SideEffect(traversal) => {
                let kind = LocalKind::SideEffect(self.child(traversal)?);
                self.local(kind, std::slice::from_ref(traversal), Merged::AsOne, chain);
            }
            Step::Union(traversals) => chain.push(Op::Union(self.children(traversals)?)),
            Step::Join { walks, names } => {
                let walks = Box::new([self.child(&walks[0])?, self.child(&walks[1])?]);
                chain.push(Op::Join { walks, names: names.clone() });
            }
            Step::Choose(choose) => self.choose(choose, chain)?,
            Step::Repeat(repeat) => self.repeat(repeat, following, chain)?,
        }
        Ok(())
    }

    /// Appends a branch scope with an instance for each row.
    fn local(&self, kind: LocalKind, traversals: &[Traversal], merged: Merged, chain: &mut Chain) {
        let scope = self.scope(kind, traversals, chain);
        chain.push(Op::Local(LocalScope { merged, ..scope }));
    }

    /// Appends the operator of a function with `Scope.local`.
    fn local_function(&self, function: &LocalFunction, chain: &mut Chain) -> Result<()> {
        match function {
            LocalFunction::Reduce(reduction) => chain.push(Op::LocalReduce(*reduction)),
            LocalFunction::Dedup(keys) => chain.push(Op::LocalDedup(keys.clone())),
            LocalFunction::Order(criteria) => {
                self.compute_by(Over::Elements, &compared(criteria), chain)?;
                chain.push(Op::LocalOrder(orders(criteria)));
            }
            LocalFunction::Range { low, high } => {
                chain.push(Op::LocalRange { low: low.clone(), high: high.clone() });
            }
            LocalFunction::Tail(count) => chain.push(Op::LocalTail(count.clone())),
            LocalFunction::Sample(count) => chain.push(Op::LocalSample(count.clone())),
        }
        Ok(())
    }
}

/// The scope that passes on the results of the first pipeline that has any (`first`: only the first result).
fn flat_map(pipelines: Vec<Pipeline>, first: bool) -> LocalKind {
    LocalKind::FlatMap { pipelines, first, otherwise_row: false, inner_path: false }
}

/// The `by()`s of the criteria of `order()`.
fn compared(criteria: &[OrderBy]) -> Vec<By> {
    criteria.iter().map(|criterion| criterion.by.clone()).collect()
}

/// The directions of the criteria of `order()`. Without a criterion, objects are sorted in ascending order.
fn orders(criteria: &[OrderBy]) -> Vec<mangrove_gremlin::Order> {
    match criteria {
        [] => vec![mangrove_gremlin::Order::Asc],
        _ => criteria.iter().map(|c| c.order).collect(),
    }
}
