//! The properties of each operator: one table without a default, for the rules and for `explain()` (PLAN-5).
//!
//! The questions of the rules ([`Op::reads_order`], [`Op::keeps_state`] and so on) are answered from an operator's
//! line, and from the lines of the operators nested in it.

use mangrove_graph::{ElementKind, Token};

use super::{Computation, CountOf, LocalKind, Op, Pipeline, Purpose, Stage};
use crate::logical::Reduction;
use crate::logical::files::FileStep;

/// The work of an operator on the stream of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Works on each row by itself, without reading the graph. Rows keep their order.
    RowByRow,
    /// Works on each row by itself, and reads the graph or runs nested pipelines for it. On several nodes, rows may
    /// come out in another order.
    Reading,
    /// Sends rows into several pipelines and merges their results.
    Branch,
    /// Sees the stream of an instance as a whole, and passes rows on in their order.
    Barrier,
    /// Sees the stream of an instance as a whole, and makes a result of it, which has no order.
    Reduction,
    /// Writes. It takes the rows of a scope group as one statement, in their order, and passes them on.
    Write,
}

/// How the stream goes through an operator (Grasper, 4.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Messages are worked off one by one, by any thread.
    Sequential,
    /// It gathers messages before it sends any.
    Barrier,
    /// It sends rows into nested pipelines and merges their results.
    Branch,
}

impl Flow {
    /// The paper's word.
    pub fn name(self) -> &'static str {
        match self {
            Flow::Sequential => "sequential",
            Flow::Barrier => "barrier",
            Flow::Branch => "branch",
        }
    }
}

/// An operator's line in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OpTraits {
    /// Its name in plans that show no more of it.
    name: &'static str,
    role: Role,
    /// True if its output has objects of its own, which belong to the path. Filters, barriers and branches pass objects
    /// on.
    makes_objects: bool,
    /// True if the number of times it works on a row can be observed: in side effects, sacks, random numbers, or
    /// outside the query.
    leaves_traces: bool,
    /// True if it passes a row on unchanged or drops it, depending only on the row's object and labels.
    tests: bool,
    /// True if it leads from one row to many neighbors.
    hops: bool,
    /// True if a row that stands for several traversers has the same result as those traversers one after the other.
    counts_by_bulk: bool,
}

impl OpTraits {
    const fn of(name: &'static str, role: Role) -> Self {
        OpTraits {
            name,
            role,
            makes_objects: false,
            leaves_traces: false,
            tests: false,
            hops: false,
            counts_by_bulk: false,
        }
    }

    const fn makes_objects(self) -> Self {
        OpTraits { makes_objects: true, ..self }
    }

    const fn leaves_traces(self) -> Self {
        OpTraits { leaves_traces: true, ..self }
    }

    const fn tests(self) -> Self {
        OpTraits { tests: true, ..self }
    }

    const fn hops(self) -> Self {
        OpTraits { hops: true, ..self }
    }

    const fn counts_by_bulk(self) -> Self {
        OpTraits { counts_by_bulk: true, ..self }
    }

    /// The line of an operator that fills a side effect and passes its rows on, or that has a result instead.
    const fn into_side_effect(name: &'static str, is_side_effect: bool) -> Self {
        match is_side_effect {
            true => Self::of(name, Role::Barrier).leaves_traces(),
            false => Self::of(name, Role::Reduction).makes_objects(),
        }
    }
}

impl Op {
    /// The table.
    fn traits(&self) -> OpTraits {
        let row = |name| OpTraits::of(name, Role::RowByRow);
        let reading = |name| OpTraits::of(name, Role::Reading);
        let branch = |name| OpTraits::of(name, Role::Branch);
        let barrier = |name| OpTraits::of(name, Role::Barrier);
        let reduction = |name| OpTraits::of(name, Role::Reduction).makes_objects();
        let write = |name| OpTraits::of(name, Role::Write).leaves_traces();
        match self {
            Op::Vertices { .. } => reading("vertices").makes_objects(),
            Op::Edges { .. } => reading("edges").makes_objects(),
            Op::Inject(_) => barrier("inject").makes_objects(),
            Op::Call { .. } => reading("call").makes_objects().leaves_traces(),
            Op::VertexProgram(_) => barrier("vertex program").leaves_traces(),
            Op::ShortestPath(_) => reading("shortest path").makes_objects(),
            Op::CountAll { .. } => reduction("count all"),
            Op::CountPattern(count) => reduction(match count.of {
                CountOf::AllMatches => "count a pattern",
                CountOf::EachRoot => "count a pattern by vertex",
            })
            .counts_by_bulk(),

            Op::Expand { .. } => reading("expand").makes_objects().hops(),
            // A row that stays has no new object.
            Op::OptionalExpand { .. } => reading("expand or stay").hops(),
            Op::FollowTo { .. } => reading("follow").makes_objects(),
            Op::Intersect { .. } => reading("intersect").makes_objects(),
            Op::BothEnds(_) => reading("search from both ends").makes_objects().hops(),
            Op::EdgeVertex(_) => reading("edge end").makes_objects(),
            Op::Values(_) => reading("values").makes_objects(),
            Op::Properties(_) => reading("properties").makes_objects(),
            Op::ValueMap { .. } => reading("value map").makes_objects(),
            Op::PropertyMap { .. } => reading("property map").makes_objects(),
            Op::ElementMap { .. } => reading("element map").makes_objects(),
            Op::Token(Token::Id) => reading("id").makes_objects(),
            Op::Token(Token::Label) => reading("label").makes_objects(),
            Op::Token(Token::Key) => reading("key").makes_objects(),
            Op::Token(Token::Value) => reading("value").makes_objects(),
            Op::Function { .. } => reading("function").makes_objects(),
            Op::Format(_) => reading("format").makes_objects(),
            Op::HasEdgeTo { .. } => reading("has edge to").tests(),
            Op::HasEdges { .. } => reading("has edge").tests(),
            Op::TestDegrees { .. } => reading("has degree").tests(),
            Op::Filter(_) => reading("filter").tests(),
            Op::Modulate(modulate) => {
                let is_plain = |by: &Computation| !matches!(by, Computation::First(_) | Computation::Exists(_));
                OpTraits { tests: modulate.by.iter().all(is_plain), ..reading("take") }
            }
            Op::Local(scope) => match scope.kind {
                LocalKind::FlatMap { inner_path: false, .. } => reading("scope a row").makes_objects(),
                LocalKind::FlatMap { inner_path: true, .. } | LocalKind::SideEffect(_) => reading("scope a row"),
                LocalKind::Filter(..) => OpTraits { tests: scope.by_object, ..reading("scope a row") },
            },

            Op::Constant(_) => row("constant").makes_objects(),
            Op::Unfold => row("unfold").makes_objects(),
            Op::Loops(_) => row("loops").makes_objects(),
            Op::LocalReduce(_) => row("reduce locally").makes_objects(),
            Op::LocalDedup(_) => row("dedup locally").makes_objects(),
            Op::LocalRange { .. } => row("range locally").makes_objects(),
            Op::LocalTail(_) => row("tail locally").makes_objects(),
            Op::LocalOrder(_) => row("order locally").makes_objects(),
            Op::LocalSample(_) => row("sample locally").makes_objects().leaves_traces(),
            Op::Path { .. } => row("path").makes_objects(),
            Op::SelectName { .. } | Op::ComputedMap { .. } => row("select").makes_objects(),
            Op::Math(_) => row("math").makes_objects(),
            Op::SelectColumn(_) => row("select column").makes_objects(),
            Op::SelectKey(_) => row("select by key").makes_objects(),
            Op::Sack => row("sack").makes_objects(),
            Op::Is(_) => row("is").tests(),
            Op::CompareName { .. } => row("compare").tests(),
            Op::MemberOfName { .. } => row("member").tests(),
            Op::CompareComputed(_) => row("compare").tests(),
            Op::Identity => row("identity").tests(),
            Op::Members(..) => row("members"),
            Op::PathShape { simple: true, .. } => row("simple path"),
            Op::PathShape { simple: false, .. } => row("cyclic path"),
            Op::Discard => row("discard"),
            Op::ReplaceMapValues => row("replace map values"),
            Op::FoldSack(_) => row("fold into the sack").leaves_traces(),
            Op::Coin(_) => row("coin").leaves_traces(),
            Op::Fail(_) => row("fail").leaves_traces(),
            Op::OneByOne => row("one row at a time").leaves_traces(),
            Op::Ordered { .. } => row("keep the order"),

            Op::Union(_) => branch("union"),
            Op::Switch { .. } => branch("choose"),
            Op::Repeat(_) => branch("repeat").hops(),

            Op::Order { .. } => barrier("order"),
            Op::Dedup { .. } => barrier("dedup").counts_by_bulk(),
            Op::Range { .. } => barrier("range"),
            Op::Tail(_) => barrier("tail"),
            Op::Barrier { norm_sack: false } => barrier("barrier"),
            Op::Barrier { norm_sack: true } => barrier("barrier, sacks made to add up to 1"),
            Op::Merge => barrier("merge equal rows"),
            Op::Join { .. } => barrier("join"),
            Op::Aggregate(_) => barrier("aggregate").leaves_traces(),
            Op::Subgraph(_) => barrier("subgraph").leaves_traces(),
            Op::Sample(_) => barrier("sample").leaves_traces(),
            Op::TimeLimit(_) => barrier("time limit").leaves_traces(),
            Op::GroupCount { side_effect } => OpTraits::into_side_effect("group count", side_effect.is_some()),
            Op::Tree { side_effect, .. } => OpTraits::into_side_effect("tree", side_effect.is_some()),
            // The pipeline of a group's members may leave traces.
            Op::Group { side_effect, .. } => OpTraits::into_side_effect("group", side_effect.is_some()).leaves_traces(),
            Op::Reduce(Reduction::Fold) => reduction("fold"),
            Op::Reduce(_) => reduction("reduce").counts_by_bulk(),
            Op::ReduceValues { .. } => reduction("reduce values").counts_by_bulk(),
            Op::ReduceMany { .. } => reduction("reduce").counts_by_bulk(),
            Op::CountExpand(_) => reduction("count neighbors").hops().counts_by_bulk(),
            Op::FoldInto(..) => reduction("fold into a seed"),
            Op::Cap(_) => reduction("cap").leaves_traces(),

            Op::AddVertex { .. } => write("add vertex").makes_objects(),
            Op::AddEdge { .. } => write("add edge").makes_objects(),
            Op::Upsert(upsert) if upsert.kind == ElementKind::Edge => write("find or make edges").makes_objects(),
            Op::Upsert(_) => write("find or make vertices").makes_objects(),
            Op::SetProperties(_) => write("set properties"),
            Op::SetProperty(_) => write("set property"),
            Op::Drop => write("drop"),
            Op::File(FileStep { writes_file: true, .. }) => write("write a file"),
            Op::File(_) => write("read a file"),
        }
    }

    /// Its name in plans that show no more of it.
    pub fn name(&self) -> &'static str {
        self.traits().name
    }

    /// Returns true if it passes a row on unchanged or drops it, depending only on the row's object and labels.
    pub fn is_test(&self) -> bool {
        self.traits().tests
    }

    /// Returns true if it leads from one row to many neighbors.
    pub fn is_hop(&self) -> bool {
        self.traits().hops
    }

    /// Returns true if a row that stands for several traversers has the same result as those traversers one after the
    /// other.
    pub fn counts_by_bulk(&self) -> bool {
        self.traits().counts_by_bulk
    }

    /// How the stream goes through it.
    pub fn flow(&self) -> Flow {
        match self.role() {
            Role::Barrier | Role::Reduction | Role::Write => Flow::Barrier,
            Role::Branch => Flow::Branch,
            Role::RowByRow | Role::Reading => {
                let mut is_branch = false;
                self.visit_nested(&mut |purpose, _| is_branch |= purpose != Purpose::Instead);
                if is_branch { Flow::Branch } else { Flow::Sequential }
            }
        }
    }

    /// Its work on the stream of rows.
    pub fn role(&self) -> Role {
        self.traits().role
    }

    /// Returns true if its output has objects of its own, which belong to the path. Filters, barriers and branches pass
    /// objects on.
    pub fn makes_objects(&self) -> bool {
        self.traits().makes_objects
    }

    /// Returns true if it cannot be observed whether it works on a row once or several times. Nested pipelines are not
    /// looked at.
    pub fn is_repeatable(&self) -> bool {
        !self.traits().leaves_traces
    }

    /// Returns true if it, or an operator of a pipeline in it that sees its stream, keeps state of the whole stream.
    pub fn keeps_state(&self) -> bool {
        matches!(self.role(), Role::Barrier | Role::Reduction) || self.any_of_stream(Pipeline::keeps_state)
    }

    /// Returns true if `holds` is true of a nested pipeline that sees the operator's own stream: a branch, a body, an
    /// ordered run. Pipelines that run for each row by itself are left out.
    fn any_of_stream(&self, holds: impl Fn(&Pipeline) -> bool) -> bool {
        let mut found = false;
        self.visit_nested(&mut |purpose: Purpose<'_>, pipeline| found |= purpose.is_of_stream() && holds(pipeline));
        found
    }

    /// Returns true if it may have results without input: a reduction has one for no rows.
    pub fn has_results_without_input(&self) -> bool {
        self.role() == Role::Reduction
            || matches!(self, Op::Inject(_))
            || self.any_of_stream(Pipeline::has_results_without_input)
    }

    /// Returns true if it sends rows into several pipelines.
    pub fn is_branch(&self) -> bool {
        self.role() == Role::Branch
    }

    /// Returns true if rows may come out in another order than they went in, at least on several nodes.
    pub fn may_reorder(&self) -> bool {
        matches!(self.role(), Role::Reading | Role::Branch)
    }

    /// Returns true if it sees the stream as a whole, so that the order of its input matters.
    pub fn reads_order(&self) -> bool {
        matches!(self.role(), Role::Barrier | Role::Reduction | Role::Write)
    }

    /// Returns true if its output is ordered whenever its input is.
    pub fn keeps_order(&self) -> bool {
        self.role() != Role::Reduction
    }
}

impl Pipeline {
    /// The number of operators, with those of nested pipelines.
    pub fn operator_count(&self) -> usize {
        let nested = |stage: &Stage| {
            let mut count = 0;
            stage.operator.visit_nested(&mut |_, pipeline| count += pipeline.operator_count());
            count
        };
        self.stages.iter().map(|stage| 1 + nested(stage)).sum()
    }

    /// Returns true if an operator of its own scope keeps state of the whole stream. It then matters which rows go
    /// through it together.
    pub fn keeps_state(&self) -> bool {
        self.stages.iter().any(|stage| stage.operator.keeps_state())
    }

    /// Returns true if it may have results without input.
    pub fn has_results_without_input(&self) -> bool {
        self.stages.iter().any(|stage| stage.operator.has_results_without_input())
    }
}
