//! The branching steps with parts of their own: `choose()`, `branch()` and `repeat()`.

use super::Traversal;
use super::condition::Test;
use super::operand::{Name, Operand};

/// `choose(…)` and `branch(…)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Choose {
    /// The test or value that decides which option is taken.
    pub on: ChooseOn,
    /// The options in order. `choose()` takes the first that matches.
    pub options: Vec<(ChooseOption, Traversal)>,
    /// `branch()`: every option that matches is taken, and a traverser that no option matches is dropped.
    pub every: bool,
}

/// The test or value that a `choose` decides by.
#[derive(Clone, Debug, PartialEq)]
pub enum ChooseOn {
    /// A test of the object: true or false.
    Test(Test),
    /// True if the traversal has a result, else false.
    Exists(Traversal),
    /// The first result of the traversal.
    Value(Traversal),
}

/// The condition under which an option is taken.
#[derive(Clone, Debug, PartialEq)]
pub enum ChooseOption {
    /// The test holds (`choose(test, HERE, …)`).
    True,
    /// The test does not hold (`choose(test, …, HERE)`).
    False,
    /// The value is equal to this.
    Value(Operand),
    /// The value passes this test.
    Test(Test),
    /// `Pick.none`: no other option matches. Without such an option, the traverser of a `choose` goes on as it is.
    None,
    /// `Pick.any` of a `branch`: taken always.
    Any,
    /// `Pick.unproductive`: the deciding traversal has no result.
    Unproductive,
}

/// `repeat(…)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Repeat {
    /// The name for `loops("name")`.
    pub name: Option<Name>,
    /// The body.
    pub body: Traversal,
    /// When a traverser leaves the loop; `None`: when the body has no result.
    pub until: Option<Until>,
    /// `until` or `times` stands before `repeat`: it is tested before the body.
    pub until_first: bool,
    /// When a traverser is emitted and goes on in the loop.
    pub emit: Option<Emit>,
    /// `emit` stands before `repeat`: it is tested before the body.
    pub emit_first: bool,
    /// Whether a rule has made it a search.
    pub search: LoopSearch,
}

/// Whether a loop is a search: it goes on from each vertex only the first time it comes there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoopSearch {
    /// No rule has looked at it.
    #[default]
    Unknown,
    /// It stays as it is written, for this reason, though it walks simple paths.
    Not(&'static str),
    /// It is one.
    Search(Avoids),
}

/// The vertices that a search counts as reached when it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Avoids {
    /// None.
    Nothing,
    /// The vertex of the row that enters.
    Vertex,
    /// All on the path of the row that enters.
    Path,
}

/// When a traverser leaves a loop.
#[derive(Clone, Debug, PartialEq)]
pub enum Until {
    /// After this many iterations.
    Times(Operand),
    /// When the traversal has a result.
    Traversal(Traversal),
    /// When the test holds.
    Test(Test),
}

/// When a traverser is emitted on its way through a loop.
#[derive(Clone, Debug, PartialEq)]
pub enum Emit {
    /// Always.
    Always,
    /// When the traversal has a result.
    Traversal(Traversal),
    /// When the test holds.
    Test(Test),
}
