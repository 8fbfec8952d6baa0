//! The properties of each step: one table without a default, for every rule and check that asks about all steps
//! (PLAN-2).
//!
//! A rule that looks for certain steps (`count().is(0)`) names those steps. A question about all steps is answered from
//! this table. The table describes the step itself, not the traversals nested in it.

use mangrove_gremlin::{Order, Pop};
use smallvec::SmallVec;

use super::expression::Part;
use super::function::{CollectionFunction, Function};
use super::{Avoids, By, EdgeEnd, Endpoint, LocalFunction, Lookup, LoopSearch, Name, OrderBy, Reduction, Step};

/// The effect of a step besides its results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: its results depend on its input and on the snapshot alone.
    None,
    /// Writes to the graph.
    Writes,
    /// Reads or writes a file, which counts as writing.
    File,
    /// Calls a service of the database, or runs an algorithm on its graph: once, not once on each node.
    Service,
    /// Reads side effects after all traversers have come.
    CollectsSideEffects,
    /// Draws random numbers in one sequence.
    Chance,
    /// Shuffles. Unlike with [`Effect::Chance`], each node may draw random numbers of its own.
    Shuffles,
    /// Reads the clock.
    Clock,
    /// Ends the query.
    Fails,
}

/// The part of a traverser's path that a step reads, besides the objects at labels that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathUse {
    /// Nothing.
    None,
    /// The object before the current one, or the object at a label that is known only when the query runs.
    Reads,
    /// All objects: it shows, compares or keeps them.
    Shows,
}

/// The use that a step makes of sacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SackUse {
    /// Nothing.
    None,
    /// Reads or changes each traverser's sack.
    Uses,
    /// Scales the sacks of all traversers so that they add up to 1.
    Normalizes,
}

/// Names of step labels or side effects. Most steps read two at most.
pub type Names<'a> = SmallVec<[&'a Name; 2]>;

/// The row of the table for a step.
#[derive(Clone, Debug)]
pub struct StepTraits<'a> {
    /// Its effect besides its results.
    pub effect: Effect,
    /// The part of paths that it reads.
    pub path: PathUse,
    /// The use that it makes of sacks.
    pub sack: SackUse,
    /// True if it reads loop counters.
    pub reads_loops: bool,
    /// True if its result for a stream is the union of its results for each traverser, in any order.
    pub row_by_row: bool,
    /// True if it looks elements up, or follows edges.
    pub walks: bool,
    /// True if it may end the stream before all traversers have come.
    pub cuts: bool,
    /// The side effect that it adds to, if any.
    pub fills: Option<&'a Name>,
    /// The names of step labels or side effects whose values it reads.
    pub names_read: Names<'a>,
    /// True if it reads more of the labels that it names than the newest object.
    pub reads_older: bool,
    /// True if it reads the value of a label or side effect whose name is known only when the query runs.
    pub reads_any_name: bool,
    /// The levels of nesting that it may add to a value that enters it.
    pub levels: usize,
}

impl<'a> StepTraits<'a> {
    /// The line of a step that works on the stream as a whole.
    fn of_stream() -> Self {
        StepTraits {
            effect: Effect::None,
            path: PathUse::None,
            sack: SackUse::None,
            reads_loops: false,
            row_by_row: false,
            walks: false,
            cuts: false,
            fills: None,
            names_read: SmallVec::new(),
            reads_older: false,
            reads_any_name: false,
            levels: 0,
        }
    }

    /// The line of a step that works on each traverser by itself.
    fn of_rows() -> Self {
        StepTraits { row_by_row: true, ..Self::of_stream() }
    }

    fn effect(self, effect: Effect) -> Self {
        StepTraits { effect, ..self }
    }

    fn path(self, path: PathUse) -> Self {
        StepTraits { path, ..self }
    }

    fn sack(self, sack: SackUse) -> Self {
        StepTraits { sack, ..self }
    }

    fn walks(self) -> Self {
        StepTraits { walks: true, ..self }
    }

    fn cuts(self) -> Self {
        StepTraits { cuts: true, ..self }
    }

    fn fills(self, name: Option<&'a Name>) -> Self {
        StepTraits { fills: name, ..self }
    }

    fn reads(self, names: impl IntoIterator<Item = &'a Name>) -> Self {
        StepTraits { names_read: names.into_iter().collect(), ..self }
    }

    fn levels(self, levels: usize) -> Self {
        StepTraits { levels, ..self }
    }
}

impl Step {
    /// The table.
    pub fn traits(&self) -> StepTraits<'_> {
        let (rows, stream) = (StepTraits::of_rows, StepTraits::of_stream);
        match self {
            Step::Vertices { .. } | Step::Edges { .. } => stream().walks(),
            Step::Inject(_) => stream(),
            Step::Join { names, .. } => stream().walks().reads(names),
            Step::Call { .. } => stream().effect(Effect::Service),
            Step::VertexProgram(_) => stream().effect(Effect::Service),
            // A path, or an entry of a map.
            Step::ShortestPath(_) => stream().effect(Effect::Service).levels(1),
            Step::File(_) => stream().effect(Effect::File),
            Step::AddEdge { from, to, .. } => {
                let ends = [from, to].into_iter().flatten();
                stream().effect(Effect::Writes).reads(ends.filter_map(Endpoint::label))
            }
            Step::AddVertex { .. } | Step::Property(_) | Step::Upsert(_) | Step::Drop => {
                stream().effect(Effect::Writes)
            }
            Step::Expand { .. } => rows().walks(),
            Step::EdgeVertex(EdgeEnd::Other) => stream().path(PathUse::Reads),
            Step::EdgeVertex(EdgeEnd::Source | EdgeEnd::Target | EdgeEnd::Both)
            | Step::Has(_)
            | Step::Is(_)
            | Step::Members { .. }
            | Step::FilterTraversal(..)
            | Step::Values(_)
            | Step::Properties(_)
            | Step::Id
            | Step::Label
            | Step::Key
            | Step::PropertyValue
            | Step::Identity
            | Step::Unfold => rows(),
            Step::WherePredicate { start, test, by, .. } => {
                let row_by_row = by.iter().all(|by| !matches!(by, By::Traversal(_)));
                StepTraits { row_by_row, ..stream() }.reads(start.iter().chain(test.names()))
            }
            Step::Dedup { labels, .. } => stream().reads(labels),
            Step::Range { .. } => stream().cuts(),
            Step::PathShape { .. } => stream().path(PathUse::Shows),
            Step::Path { .. } => stream().path(PathUse::Shows).levels(1),
            // Trees bound their own depth (`Tree::DEPTH_MAX`).
            Step::Tree { side_effect, .. } => stream().path(PathUse::Shows).fills(side_effect.as_ref()),
            Step::ValueMap { .. } | Step::PropertyMap { .. } => stream().levels(2),
            Step::ElementMap { .. } => stream().levels(1),
            Step::Loops(_) => StepTraits { reads_loops: true, ..stream() },
            Step::Local(LocalFunction::Reduce(reduction)) | Step::Reduce(reduction) => {
                stream().levels(levels_of_reduction(*reduction))
            }
            Step::Local(LocalFunction::Order(criteria)) | Step::Order(criteria) => stream().effect(chance(criteria)),
            Step::Local(LocalFunction::Sample(_)) => stream().effect(Effect::Chance),
            Step::Local(LocalFunction::Dedup(_) | LocalFunction::Range { .. } | LocalFunction::Tail(_)) => stream(),
            Step::Select { lookup, labels, required, .. } => {
                let levels = match lookup {
                    // The values of a label are a list; several labels are entries of a map.
                    Lookup::Scope(Some(Pop::All)) => 2,
                    _ if *required && labels.len() == 1 => 0,
                    _ => 1,
                };
                StepTraits { reads_older: !lookup.is_newest(), ..stream() }.reads(labels).levels(levels)
            }
            Step::SelectKey { pop, .. } => {
                let levels = if *pop == Some(Pop::All) { 2 } else { 0 };
                StepTraits { reads_any_name: true, ..stream() }.path(PathUse::Reads).levels(levels)
            }
            Step::Function { function, .. } => stream().levels(match function {
                // A list of pairs.
                Function::Index { .. } | Function::Collection(CollectionFunction::Product) => 2,
                Function::Collection(_) => 1,
                Function::Text { .. }
                | Function::Concat
                | Function::Reverse
                | Function::AsBool
                | Function::AsDate
                | Function::AsNumber(_)
                | Function::DateAdd(_)
                | Function::DateDiff
                | Function::Element => 0,
            }),
            Step::Math { variables, .. } => stream().reads(variables.iter().filter(|name| *name != "_")),
            Step::Format { parts, .. } => stream().reads(parts.iter().filter_map(Part::name)),
            Step::Project { .. } => stream().levels(1),
            // A map of lists.
            Step::Group { side_effect: None, .. } => stream().levels(2),
            Step::GroupCount { side_effect: None, .. } => stream().levels(1),
            // Values that go into a side effect are checked there. `cap()` returns them.
            Step::Group { side_effect, .. } | Step::GroupCount { side_effect, .. } => {
                stream().fills(side_effect.as_ref())
            }
            Step::Aggregate { name, .. } | Step::Subgraph(name) => stream().fills(Some(name)),
            Step::Cap(_) => stream().effect(Effect::CollectsSideEffects).levels(1),
            Step::FoldInto(..) => stream().levels(1),
            Step::Barrier { norm_sack: true } => stream().sack(SackUse::Normalizes),
            Step::Sack => stream().sack(SackUse::Uses),
            Step::FoldSack(..) => stream().sack(SackUse::Uses).levels(1),
            Step::Sample(..) | Step::Coin(_) => stream().effect(Effect::Chance),
            Step::TimeLimit(_) => stream().effect(Effect::Clock).cuts(),
            Step::Fail(_) => stream().effect(Effect::Fails),
            Step::Tail(_)
            | Step::Discard
            | Step::Constant(_)
            | Step::SelectColumn(_)
            | Step::Map { .. }
            | Step::LocalTraversal(_)
            | Step::SideEffect(_)
            | Step::Barrier { norm_sack: false }
            | Step::Union(_)
            | Step::Coalesce(_)
            | Step::Optional(_)
            | Step::Choose(_) => stream(),
            Step::Repeat(repeat) if repeat.search == LoopSearch::Search(Avoids::Path) => stream().path(PathUse::Reads),
            Step::Repeat(_) => stream(),
        }
    }
}

fn levels_of_reduction(reduction: Reduction) -> usize {
    usize::from(reduction == Reduction::Fold)
}

fn chance(criteria: &[OrderBy]) -> Effect {
    let shuffles = criteria.iter().any(|criterion| criterion.order == Order::Shuffle);
    if shuffles { Effect::Shuffles } else { Effect::None }
}
