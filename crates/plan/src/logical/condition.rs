//! The tests of filters: conditions on elements, tests of values, and tests between step labels.

use mangrove_gremlin::{Comparison, TextOperation};
use smallvec::smallvec;

use super::function::ValueType;
use super::operand::{Name, Operand};
use super::traits::Names;

/// A condition on an element.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// `hasLabel(a, b, …)`: the element has one of these labels.
    LabelIn(Vec<Name>),
    /// A test of the text of the label.
    Label(Test),
    /// `hasId(…)`.
    Id(Test),
    /// `has(key, P)`: a value under the key passes the test.
    Property(Name, Test),
    /// `has(key)`.
    HasKey(Name),
    /// `hasNot(key)`.
    HasNot(Name),
    /// `hasKey(…)` of a property.
    PropertyKey(Test),
    /// `hasValue(…)` of a property.
    PropertyValue(Test),
    /// `or(has(…), …)`: all conditions of one of the branches hold.
    AnyOf(Vec<Vec<Condition>>),
}

/// A test of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// A comparison.
    Compare(Comparison, Operand),
    /// The value is equal to one of the operands.
    Within(Vec<Operand>),
    /// The value is equal to none of the operands.
    Without(Vec<Operand>),
    /// A text predicate.
    Text(TextOperation, Operand),
    /// The value is of a type of `GType`.
    TypeOf(ValueType),
    /// All of the tests hold.
    And(Vec<Test>),
    /// One of the tests holds.
    Or(Vec<Test>),
    /// The test does not hold.
    Not(Box<Test>),
}

/// A [`Test`] whose operands are the values of step labels or side effects.
#[derive(Clone, Debug, PartialEq)]
pub enum LabelTest {
    /// A comparison with the value of a name.
    Compare(Comparison, Name),
    /// The value is equal to that of one of the names, or is a member of a collection that one of them stands for.
    Within(Vec<Name>),
    /// The opposite of `Within`.
    Without(Vec<Name>),
    /// A text predicate with the value of a name.
    Text(TextOperation, Name),
    /// All of the tests hold.
    And(Vec<LabelTest>),
    /// One of the tests holds.
    Or(Vec<LabelTest>),
    /// The test does not hold.
    Not(Box<LabelTest>),
}

impl LabelTest {
    /// The names in the order in which the test contains them. `by()`s rotate over them in this order.
    pub fn names(&self) -> Names<'_> {
        match self {
            LabelTest::Compare(_, name) | LabelTest::Text(_, name) => smallvec![name],
            LabelTest::Within(names) | LabelTest::Without(names) => names.iter().collect(),
            LabelTest::And(tests) | LabelTest::Or(tests) => tests.iter().flat_map(LabelTest::names).collect(),
            LabelTest::Not(test) => test.names(),
        }
    }
}

/// A bound of a range, and true if the bound itself belongs to the range.
pub type Bound = Option<(Operand, bool)>;

impl Test {
    /// The operands, if the test is that a value equals one of them.
    pub fn equal_operands(&self) -> Option<Vec<Operand>> {
        match self {
            Test::Compare(Comparison::Eq, operand) => Some(vec![operand.clone()]),
            Test::Within(operands) => Some(operands.clone()),
            _ => None,
        }
    }

    /// The beginning that a text must have, if that is the test.
    pub fn beginning(&self) -> Option<&Operand> {
        match self {
            Test::Text(TextOperation::StartingWith, beginning) => Some(beginning),
            _ => None,
        }
    }

    /// True if the values that pass are neighbors in the order of an ordered index: a range, or the texts with one
    /// beginning.
    pub fn is_interval(&self) -> bool {
        self.range_bounds().is_some() || self.beginning().is_some()
    }

    /// The bounds, if the test is that a value lies between two.
    pub fn range_bounds(&self) -> Option<(Bound, Bound)> {
        match self {
            Test::Compare(Comparison::Gt, bound) => Some((Some((bound.clone(), false)), None)),
            Test::Compare(Comparison::Gte, bound) => Some((Some((bound.clone(), true)), None)),
            Test::Compare(Comparison::Lt, bound) => Some((None, Some((bound.clone(), false)))),
            Test::Compare(Comparison::Lte, bound) => Some((None, Some((bound.clone(), true)))),
            Test::And(tests) => {
                let [a, b] = &tests[..] else { return None };
                match (a.range_bounds()?, b.range_bounds()?) {
                    ((low, None), (None, high)) | ((None, high), (low, None)) => Some((low, high)),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

/// How the nested traversals of a filter decide about a traverser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterKind {
    /// It passes if every traversal has a result (`where`, `filter`, `and`).
    All,
    /// It passes if one traversal has a result (`or`).
    Any,
    /// It passes if no traversal has a result (`not`).
    None,
}

/// How many members of a collection must pass a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantifier {
    /// Every member.
    All,
    /// At least one member.
    Any,
    /// No member.
    None,
}
