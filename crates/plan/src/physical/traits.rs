//! What each operator is, for the rewrites that ask: one table, without a default.
//!
//! A new operator has to be given its place here before anything compiles. The questions of the rewrites
//! ([`Op::reads_order`], [`Op::keeps_state`], …) are answered from that place.

use super::{LocalKind, Op, Pipeline};

/// What an operator does with the stream of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Works on each row by itself, with what the row has: rows keep their order.
    RowByRow,
    /// Works on each row by itself, and reads the graph or runs nested pipelines for it: over several nodes rows come out
    /// in another order.
    Reading,
    /// Sends rows different ways and brings them together again.
    Branch,
    /// Sees the stream of an instance as a whole and passes rows on in the order of the stream.
    Barrier,
    /// Sees the stream of an instance as a whole and makes something else of it: that has no order.
    Reduction,
    /// Writes: takes the rows of a group as one statement, in their order, and passes them on.
    Write,
}

/// What the rewrites may know of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OpTraits {
    role: Role,
    /// Its rows hold an object of their own, which belongs to the path; filters, barriers and branches pass on what came.
    makes_objects: bool,
    /// How often it works on a row shows: in side effects, in sacks, in chance, or outside of the query.
    leaves_traces: bool,
}

impl OpTraits {
    const fn of(role: Role) -> Self {
        OpTraits { role, makes_objects: false, leaves_traces: false }
    }

    const fn makes_objects(self) -> Self {
        OpTraits { makes_objects: true, ..self }
    }

    const fn leaves_traces(self) -> Self {
        OpTraits { leaves_traces: true, ..self }
    }
}

impl Op {
    /// The table. It has no default: an operator that is not in it does not compile.
    fn traits(&self) -> OpTraits {
        let of = OpTraits::of;
        match self {
            Op::Vertices { .. }
            | Op::Edges { .. }
            | Op::Expand { .. }
            | Op::FollowTo { .. }
            | Op::Intersect { .. }
            | Op::EdgeVertex(_)
            | Op::Values(_)
            | Op::Properties(_)
            | Op::ValueMap { .. }
            | Op::PropertyMap { .. }
            | Op::ElementMap { .. }
            | Op::Token(_)
            | Op::Function { .. }
            | Op::Format(_) => of(Role::Reading).makes_objects(),
            Op::HasEdgeTo { .. } | Op::Filter(_) | Op::HasEdges { .. } | Op::Modulate(_) => of(Role::Reading),
            Op::Local(scope) => match scope.kind {
                LocalKind::FlatMap { inner_path: false, .. } => of(Role::Reading).makes_objects(),
                LocalKind::FlatMap { .. } | LocalKind::Filter(..) | LocalKind::SideEffect(_) => of(Role::Reading),
            },
            Op::Call { .. } => of(Role::Reading).makes_objects().leaves_traces(),
            Op::Constant(_)
            | Op::Unfold
            | Op::Loops(_)
            | Op::LocalReduce(_)
            | Op::LocalDedup(_)
            | Op::LocalRange { .. }
            | Op::LocalTail(_)
            | Op::LocalOrder(_)
            | Op::Path { .. }
            | Op::SlotMap { .. }
            | Op::Math(_)
            | Op::SelectColumn(_)
            | Op::SelectKey(_)
            | Op::Sack => of(Role::RowByRow).makes_objects(),
            Op::LocalSample(_) => of(Role::RowByRow).makes_objects().leaves_traces(),
            Op::Is(_)
            | Op::Members(..)
            | Op::CompareName { .. }
            | Op::CompareSlots(_)
            | Op::PathShape { .. }
            | Op::Discard
            | Op::ReplaceMapValues
            | Op::Identity
            | Op::Ordered { .. } => of(Role::RowByRow),
            Op::FoldSack(_) | Op::Coin(_) | Op::Fail(_) | Op::OneByOne => of(Role::RowByRow).leaves_traces(),
            Op::Union(_) | Op::Switch { .. } | Op::Repeat(_) => of(Role::Branch),
            Op::Inject(_) => of(Role::Barrier).makes_objects(),
            Op::Order { .. } | Op::Dedup { .. } | Op::Range { .. } | Op::Tail(_) | Op::Barrier { .. } | Op::Merge => {
                of(Role::Barrier)
            }
            Op::Aggregate(_) | Op::Subgraph(_) | Op::Sample(_) | Op::TimeLimit(_) => of(Role::Barrier).leaves_traces(),
            Op::GroupCount { side_effect: Some(_) }
            | Op::Group { side_effect: Some(_), .. }
            | Op::Tree { side_effect: Some(_), .. } => of(Role::Barrier).leaves_traces(),
            // What becomes of a group's members may leave traces.
            Op::Group { side_effect: None, .. } => of(Role::Reduction).makes_objects().leaves_traces(),
            Op::GroupCount { side_effect: None }
            | Op::Tree { side_effect: None, .. }
            | Op::CountAll { .. }
            | Op::Reduce(_)
            | Op::ReduceValues { .. }
            | Op::CountExpand { .. }
            | Op::FoldInto(..) => of(Role::Reduction).makes_objects(),
            Op::Cap(_) => of(Role::Reduction).makes_objects().leaves_traces(),
            Op::AddVertex { .. } | Op::AddEdge { .. } | Op::Upsert(_) => {
                of(Role::Write).makes_objects().leaves_traces()
            }
            Op::SetProperties(_) | Op::SetProperty(_) | Op::Drop | Op::File(_) => of(Role::Write).leaves_traces(),
        }
    }

    /// What it does with the stream of rows.
    pub fn role(&self) -> Role {
        self.traits().role
    }

    /// Returns true if its rows hold an object of their own, which belongs to the path; filters, barriers and branches
    /// pass on what came.
    pub fn makes_objects(&self) -> bool {
        self.traits().makes_objects
    }

    /// Returns true if it makes no difference whether it works on a row once or several times. What is nested in it is not
    /// looked at.
    pub fn is_repeatable(&self) -> bool {
        !self.traits().leaves_traces
    }

    /// Returns true if it (or an operator of a branch or loop in it) keeps state of the whole stream.
    pub fn keeps_state(&self) -> bool {
        let is_stateful = matches!(self.role(), Role::Barrier | Role::Reduction);
        is_stateful || self.same_stream().any(Pipeline::keeps_state)
    }

    /// The pipelines in it that see its own stream: branches, bodies, and runs in order. Pipelines that run for each row
    /// by itself are not among them.
    pub fn same_stream(&self) -> impl Iterator<Item = &Pipeline> {
        let (several, one): (Vec<&Pipeline>, Option<&Pipeline>) = match self {
            Op::Union(branches) => (branches.iter().collect(), None),
            Op::Switch { options, .. } => (options.iter().map(|(_, pipeline)| pipeline).collect(), None),
            Op::Repeat(repeat) => (Vec::new(), Some(&repeat.body)),
            Op::Ordered { pipeline, .. } => (Vec::new(), Some(pipeline)),
            _ => (Vec::new(), None),
        };
        several.into_iter().chain(one)
    }

    /// Returns true if it may give results though nothing enters it: a reduction gives one for no rows.
    pub fn speaks_of_nothing(&self) -> bool {
        self.role() == Role::Reduction
            || matches!(self, Op::Inject(_))
            || self.same_stream().any(Pipeline::speaks_of_nothing)
    }

    /// Returns true if rows take different ways through it.
    pub fn is_branch(&self) -> bool {
        self.role() == Role::Branch
    }

    /// Returns true if rows may come out in another order than they went in, on several nodes at least.
    pub fn may_reorder(&self) -> bool {
        matches!(self.role(), Role::Reading | Role::Branch)
    }

    /// Returns true if it sees the stream as a whole: a run of operators that work on each row by itself ends before it.
    pub fn reads_order(&self) -> bool {
        matches!(self.role(), Role::Barrier | Role::Reduction | Role::Write)
    }

    /// Returns true if its output is ordered when its input was.
    pub fn keeps_order(&self) -> bool {
        self.role() != Role::Reduction
    }
}

impl Pipeline {
    /// Returns true if some operator of its own scope keeps state of the whole stream, so that it matters which rows go
    /// through it together.
    pub fn keeps_state(&self) -> bool {
        self.stages.iter().any(|stage| stage.operator.keeps_state())
    }

    /// Returns true if it may give results though nothing enters it.
    pub fn speaks_of_nothing(&self) -> bool {
        self.stages.iter().any(|stage| stage.operator.speaks_of_nothing())
    }
}
