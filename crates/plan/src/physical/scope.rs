//! What opens scopes, and the tests of loops.

use super::Pipeline;
use crate::logical::{FilterKind, Operand, Test};

/// A branch scope with an instance a row.
#[derive(Clone, Debug)]
pub struct LocalScope {
    /// What comes out.
    pub kind: LocalKind,
    /// One instance after the other: the scope writes, and an instance must see what the one before wrote.
    pub serial: bool,
    /// Results come out in the order of the rows that went in.
    pub ordered: bool,
    /// Of a filter: whether a row passes depends on its object alone and on side effects, so that equal rows are asked
    /// once.
    pub by_object: bool,
    /// How a row enters that stands for several traversers.
    pub merged: Merged,
}

/// How a row that stands for several equal traversers enters a branch scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merged {
    /// As one traverser; what comes of it counts for all of them.
    AsOne,
    /// Together, in one instance with their number.
    Together,
    /// One after the other, each in an instance of its own.
    Apart,
}

/// What comes out of a branch scope.
#[derive(Clone, Debug)]
pub enum LocalKind {
    /// The row itself, if the pipelines decide so. All run at once and are cancelled by their first result.
    Filter(FilterKind, Vec<Pipeline>),
    /// The results of the first pipeline that has any, tried one after the other.
    FlatMap {
        /// The pipelines.
        pipelines: Vec<Pipeline>,
        /// Only the first result.
        first: bool,
        /// The row itself where none has a result (`optional`).
        otherwise_row: bool,
        /// Inner steps belong to the path.
        inner_path: bool,
    },
    /// The row itself; results are dropped.
    SideEffect(Pipeline),
}

/// A loop scope.
#[derive(Clone, Debug)]
pub struct RepeatScope {
    /// The body.
    pub body: Pipeline,
    /// When a row leaves, tested before the body or after it.
    pub until: Option<LoopTest>,
    /// Tested before the body.
    pub until_first: bool,
    /// When a row is also emitted.
    pub emit: Option<LoopTest>,
    /// Tested before the body.
    pub emit_first: bool,
    /// Nobody can tell how often and by which ways an object is come to: each instance goes on from a vertex once.
    pub once: bool,
    /// How many of the newest objects of a path may be collections that one iteration made.
    pub collections_made: usize,
}

/// A test in a loop.
#[derive(Clone, Debug)]
pub enum LoopTest {
    /// Always.
    Always,
    /// After this many iterations.
    Times(Operand),
    /// A test of the object.
    Test(Test),
    /// Whether a pipeline has a result.
    Exists(Pipeline),
}
