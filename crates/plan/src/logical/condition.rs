//! What filters ask: conditions on elements, tests of values, and tests between labels.

use mangrove_gremlin::{Comparison, TextOperation};

use super::function::ValueType;
use super::operand::{Name, Operand};

/// A condition on an element.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// `hasLabel(a, b, …)`: one of the labels is among these.
    LabelIn(Vec<Name>),
    /// A test of the label's text.
    Label(Test),
    /// `hasId(…)`.
    Id(Test),
    /// `has(key, P)`: one of the values under the key passes.
    Property(Name, Test),
    /// `has(key)`.
    HasKey(Name),
    /// `hasNot(key)`.
    HasNot(Name),
    /// `hasKey(…)` on a property.
    PropertyKey(Test),
    /// `hasValue(…)` on a property.
    PropertyValue(Test),
}

/// A test of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// A comparison.
    Compare(Comparison, Operand),
    /// Equal to one of them.
    Within(Vec<Operand>),
    /// Equal to none of them.
    Without(Vec<Operand>),
    /// A text predicate.
    Text(TextOperation, Operand),
    /// Of this type, as `GType` calls it.
    TypeOf(ValueType),
    /// All hold.
    And(Vec<Test>),
    /// One holds.
    Or(Vec<Test>),
    /// It does not hold.
    Not(Box<Test>),
}

/// A [`Test`] whose operands are step labels or side effects.
#[derive(Clone, Debug, PartialEq)]
pub enum LabelTest {
    /// A comparison with the value of a label.
    Compare(Comparison, Name),
    /// Equal to the value of one of the labels, or in the collection it names.
    Within(Vec<Name>),
    /// Not so.
    Without(Vec<Name>),
    /// A text predicate against the value of a label.
    Text(TextOperation, Name),
    /// All hold.
    And(Vec<LabelTest>),
    /// One holds.
    Or(Vec<LabelTest>),
    /// It does not hold.
    Not(Box<LabelTest>),
}

impl LabelTest {
    /// The names in the order in which they stand: the order in which `by()`s rotate over them.
    pub fn names(&self) -> Vec<&Name> {
        match self {
            LabelTest::Compare(_, name) | LabelTest::Text(_, name) => vec![name],
            LabelTest::Within(names) | LabelTest::Without(names) => names.iter().collect(),
            LabelTest::And(tests) | LabelTest::Or(tests) => tests.iter().flat_map(LabelTest::names).collect(),
            LabelTest::Not(test) => test.names(),
        }
    }
}

/// A bound of a range, and whether the bound itself belongs to it.
pub type Bound = Option<(Operand, bool)>;

impl Test {
    /// The operands of which a value must equal one, if the test says just that.
    pub fn equal_operands(&self) -> Option<Vec<Operand>> {
        match self {
            Test::Compare(Comparison::Eq, operand) => Some(vec![operand.clone()]),
            Test::Within(operands) => Some(operands.clone()),
            _ => None,
        }
    }

    /// The bounds between which a value must lie, if the test says just that.
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

/// How the nested traversals of a filter decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterKind {
    /// Every one has a result (`where`, `filter`, `and`).
    All,
    /// One has a result (`or`).
    Any,
    /// None has a result (`not`).
    None,
}

/// How many members of a collection must pass a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantifier {
    /// Every one.
    All,
    /// At least one.
    Any,
    /// Not one.
    None,
}
