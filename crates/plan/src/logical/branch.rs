//! `choose()` and `repeat()`.

use super::Traversal;
use super::condition::Test;
use super::operand::{Name, Operand};

/// `choose(…)` and `branch(…)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Choose {
    /// What decides.
    pub on: ChooseOn,
    /// Options in order: the first that matches is taken.
    pub options: Vec<(ChooseOption, Traversal)>,
    /// Every option that matches is taken, and what none matches goes no further (`branch()`).
    pub every: bool,
}

/// What a `choose` decides by.
#[derive(Clone, Debug, PartialEq)]
pub enum ChooseOn {
    /// A test of the object: true or false.
    Test(Test),
    /// Whether the traversal has a result: true or false.
    Exists(Traversal),
    /// The first result of the traversal.
    Value(Traversal),
}

/// When an option of `choose` is taken.
#[derive(Clone, Debug, PartialEq)]
pub enum ChooseOption {
    /// The test holds (`choose(test, HERE, …)`).
    True,
    /// The test does not hold (`choose(test, …, HERE)`).
    False,
    /// The value equals this.
    Value(Operand),
    /// The value passes this test.
    Test(Test),
    /// `Pick.none`: nothing else matched. Without it, the traverser of a `choose` goes on as it is.
    None,
    /// `Pick.any` of a `branch`: always.
    Any,
    /// `Pick.unproductive`: the deciding traversal had no result.
    Unproductive,
}

/// `repeat(…)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Repeat {
    /// The name for `loops("name")`.
    pub name: Option<Name>,
    /// The body.
    pub body: Traversal,
    /// When a traverser leaves.
    pub until: Option<Until>,
    /// `until`/`times` stands before `repeat`: test before the body.
    pub until_first: bool,
    /// When a traverser is also emitted on its way.
    pub emit: Option<Emit>,
    /// `emit` stands before `repeat`.
    pub emit_first: bool,
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
