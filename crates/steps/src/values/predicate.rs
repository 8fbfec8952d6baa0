//! Tests of values (`P`, `TextP`), compiled for a run.
//!
//! A [`CompiledTest`] holds the values of its operands, compiled regular expressions, and the members of a `within()`
//! in hash sets. It is compiled once for each run and applied to each value. Its semantics are those of TinkerPop 3.8:
//! two-valued (an incomparable pair fails), so that `not()` is a real negation, and `without()` is the negation of
//! `within()`.

use std::cmp::Ordering;

use mangrove_graph::compare::{Equal, watched};
use mangrove_graph::{Error, FastSet, Result, Value, numeric};
use mangrove_gremlin::{Comparison, TextOperation};
use mangrove_plan::function::ValueType;
use mangrove_plan::logical::{Name, Operand, Test};
use regex::{Regex, RegexBuilder};

use crate::context::execution::ExecutionContext;
use crate::context::type_name::a_type;
use crate::rows::NumberSlice;
use crate::values::number_range::{NumberRange, RangeNumber};

/// The maximum size of a compiled regular expression in bytes.
const REGEX_SIZE_BYTES_MAX: usize = 1 << 20;

/// A [`Test`], ready to run after [`CompiledTest::begin`].
#[derive(Clone, Debug)]
pub(crate) struct CompiledTest {
    test: Test,
    /// `None` before the first run.
    node: Option<TestNode>,
    /// True if the test has parameters, so that every run compiles it anew.
    varies: bool,
}

#[derive(Clone, Debug)]
enum TestNode {
    Compare(Comparison, Value),
    Within(WithinMembers),
    Text(TextTest),
    TypeOf(ValueType),
    And(Vec<TestNode>),
    Or(Vec<TestNode>),
    Not(Box<TestNode>),
}

#[derive(Clone, Debug)]
enum TextTest {
    StartingWith(Name),
    EndingWith(Name),
    Containing(Name),
    Regex(Regex),
}

impl CompiledTest {
    /// A test that [`CompiledTest::begin`] makes ready.
    pub fn new(test: &Test) -> Self {
        CompiledTest { test: test.clone(), node: None, varies: varies(test) }
    }

    /// Makes the test ready for a run: looks up its parameters and compiles its regular expressions. A test without
    /// parameters is compiled by the first run only.
    pub fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        if self.node.is_none() || self.varies {
            self.node = Some(compile(&self.test, context)?);
        }
        Ok(())
    }

    /// As [`CompiledTest::begin`], with `read` to look up operands.
    pub fn begin_as(&mut self, context: &ExecutionContext, read: &dyn Fn(&Value) -> Value) -> Result<()> {
        self.node = Some(compile(&with_operands(&self.test, context, read)?, context)?);
        Ok(())
    }

    /// Returns true if the test holds for a value. A test that is not ready holds for none.
    pub fn holds(&self, value: &Value) -> bool {
        debug_assert!(self.node.is_some(), "a test is made ready before it is asked");
        self.node.as_ref().is_some_and(|node| node.holds(value))
    }

    /// Returns the rows of a column of numbers for which the test holds, ascending.
    pub fn rows_that_pass(&self, numbers: NumberSlice<'_>) -> Vec<u32> {
        let node = self.node.as_ref();
        let in_range = match numbers {
            NumberSlice::Integers(_, numbers) => node.and_then(range).map(|range| range.rows(numbers)),
            NumberSlice::Floats(_, numbers) => node.and_then(range).map(|range| range.rows(numbers)),
        };
        let by_value =
            || (0..).zip(numbers.values()).filter(|(_, value)| self.holds(value)).map(|(row, _)| row).collect();
        in_range.unwrap_or_else(by_value)
    }
}

/// Returns the range of the numbers for which a test holds, if it has one.
fn range<T: RangeNumber>(node: &TestNode) -> Option<NumberRange<T>> {
    match node {
        TestNode::Compare(comparison, operand) => NumberRange::of(*comparison, operand),
        TestNode::And(tests) => {
            let (first, rest) = tests.split_first()?;
            rest.iter().try_fold(range(first)?, |all, test| all.and(range(test)?))
        }
        TestNode::Not(test) => Some(range(test)?.negated()),
        TestNode::Within(_) | TestNode::Text(_) | TestNode::TypeOf(_) | TestNode::Or(_) => None,
    }
}

/// Returns a test with its operands replaced.
fn with_operands(test: &Test, context: &ExecutionContext, read: &dyn Fn(&Value) -> Value) -> Result<Test> {
    let operand = |operand: &Operand| Ok(Operand::Literal(read(&context.resolve(operand)?)));
    let operands = |all: &[Operand]| all.iter().map(operand).collect::<Result<Vec<_>>>();
    let tests = |all: &[Test]| all.iter().map(|test| with_operands(test, context, read)).collect::<Result<Vec<_>>>();
    Ok(match test {
        Test::Compare(comparison, value) => Test::Compare(*comparison, operand(value)?),
        Test::Within(values) => Test::Within(operands(values)?),
        Test::Without(values) => Test::Without(operands(values)?),
        Test::And(all) => Test::And(tests(all)?),
        Test::Or(any) => Test::Or(tests(any)?),
        Test::Not(test) => Test::Not(Box::new(with_operands(test, context, read)?)),
        Test::Text(..) | Test::TypeOf(_) => test.clone(),
    })
}

/// Returns true if a test has parameters.
fn varies(test: &Test) -> bool {
    match test {
        Test::Compare(_, operand) | Test::Text(_, operand) => is_parameter(operand),
        Test::Within(operands) | Test::Without(operands) => operands.iter().any(is_parameter),
        Test::TypeOf(_) => false,
        Test::And(tests) | Test::Or(tests) => tests.iter().any(varies),
        Test::Not(test) => varies(test),
    }
}

/// Returns true if the value of an operand, or of a part of it, is known only in a run.
fn is_parameter(operand: &Operand) -> bool {
    match operand {
        Operand::Literal(_) => false,
        Operand::List(operands) => operands.iter().any(is_parameter),
        Operand::Map(entries) => entries.iter().any(|(key, value)| is_parameter(key) || is_parameter(value)),
        Operand::Parameter(_) | Operand::Lifted(_) | Operand::Vertex(_) | Operand::Edge(_) => true,
    }
}

fn compile(test: &Test, context: &ExecutionContext) -> Result<TestNode> {
    let all = |tests: &[Test]| tests.iter().map(|t| compile(t, context)).collect::<Result<Vec<TestNode>>>();
    Ok(match test {
        Test::Compare(comparison, operand) => TestNode::Compare(*comparison, context.resolve(operand)?),
        Test::Within(operands) => TestNode::Within(members(operands, context)?),
        Test::Without(operands) => TestNode::Not(Box::new(TestNode::Within(members(operands, context)?))),
        Test::Text(operation, operand) => TestNode::Text(text_test(*operation, &context.resolve(operand)?)?),
        Test::TypeOf(of) => TestNode::TypeOf(*of),
        Test::And(tests) => TestNode::And(all(tests)?),
        Test::Or(tests) => TestNode::Or(all(tests)?),
        Test::Not(test) => TestNode::Not(Box::new(compile(test, context)?)),
    })
}

fn members(operands: &[Operand], context: &ExecutionContext) -> Result<WithinMembers> {
    Ok(WithinMembers::new(within_values(operands, context)?))
}

/// Returns the members of a `within()`. A single collection stands for its members.
pub(crate) fn within_values(operands: &[Operand], context: &ExecutionContext) -> Result<Vec<Value>> {
    let values: Vec<Value> = operands.iter().map(|o| context.resolve(o)).collect::<Result<_>>()?;
    Ok(match values.as_slice() {
        [Value::List(list) | Value::Set(list)] => list.to_vec(),
        [Value::BulkSet(set)] => set.iter().map(|(value, _)| value.clone()).collect(),
        _ => values,
    })
}

/// Returns the text that a text predicate tests with. Fails if the operand is none.
pub(crate) fn text_of(operand: &Value) -> Result<Name> {
    match operand {
        Value::String(text) => Ok(text.clone()),
        Value::Char(c) => Ok(c.to_string().into()),
        other => Err(Error::invalid(format!("a text predicate needs a string to test with, not {}", a_type(other)))),
    }
}

fn text_test(operation: TextOperation, operand: &Value) -> Result<TextTest> {
    let text = text_of(operand)?;
    Ok(match operation {
        TextOperation::StartingWith => TextTest::StartingWith(text),
        TextOperation::EndingWith => TextTest::EndingWith(text),
        TextOperation::Containing => TextTest::Containing(text),
        TextOperation::Regex => TextTest::Regex(regular_expression(&text)?),
    })
}

fn regular_expression(pattern: &str) -> Result<Regex> {
    RegexBuilder::new(pattern).size_limit(REGEX_SIZE_BYTES_MAX).dfa_size_limit(REGEX_SIZE_BYTES_MAX).build().map_err(
        |error| {
            Error::invalid(format!(
                "the regular expression `{pattern}` cannot be used ({error}); look-around and back-references \
                 are not supported, since their cost has no bound"
            ))
        },
    )
}

impl TestNode {
    fn holds(&self, value: &Value) -> bool {
        match self {
            TestNode::Compare(comparison, operand) => compares(*comparison, value, operand),
            TestNode::Within(members) => members.contains(value),
            TestNode::Text(test) => matches!(value, Value::String(text) if test.holds(text)),
            TestNode::TypeOf(of) => is_of(value, *of),
            TestNode::And(tests) => tests.iter().all(|t| t.holds(value)),
            TestNode::Or(tests) => tests.iter().any(|t| t.holds(value)),
            TestNode::Not(test) => !test.holds(value),
        }
    }
}

/// Returns true if a value is of a type.
fn is_of(value: &Value, of: ValueType) -> bool {
    match of {
        ValueType::Null => matches!(value, Value::Null),
        ValueType::Boolean => matches!(value, Value::Bool(_)),
        ValueType::Number => value.is_number(),
        ValueType::Byte => matches!(value, Value::I8(_)),
        ValueType::Short => matches!(value, Value::I16(_)),
        ValueType::Int => matches!(value, Value::I32(_)),
        ValueType::Long => matches!(value, Value::I64(_)),
        ValueType::BigInt => matches!(value, Value::BigInt(_)),
        ValueType::Float => matches!(value, Value::F32(_)),
        ValueType::Double => matches!(value, Value::F64(_)),
        ValueType::BigDecimal => matches!(value, Value::Decimal(_)),
        ValueType::Char => matches!(value, Value::Char(_)),
        ValueType::String => matches!(value, Value::String(_)),
        ValueType::Binary => matches!(value, Value::Bytes(_)),
        ValueType::Uuid => matches!(value, Value::Uuid(_)),
        ValueType::DateTime => matches!(value, Value::DateTime(_)),
        ValueType::Duration => matches!(value, Value::Duration(_)),
        ValueType::List => matches!(value, Value::List(_) | Value::F32Array(_)),
        ValueType::Set => matches!(value, Value::Set(_) | Value::BulkSet(_)),
        ValueType::Map => matches!(value, Value::Map(_)),
        ValueType::Vertex => matches!(value, Value::Vertex(_)),
        ValueType::Edge => matches!(value, Value::Edge(_)),
        ValueType::VertexProperty => matches!(value, Value::VertexProperty(_)),
        ValueType::Property => matches!(value, Value::Property(_) | Value::VertexProperty(_)),
        ValueType::Path => matches!(value, Value::Path(_)),
        ValueType::Tree => matches!(value, Value::Tree(_)),
        ValueType::Graph => matches!(value, Value::Graph(_)),
    }
}

impl TextTest {
    fn holds(&self, text: &str) -> bool {
        match self {
            TextTest::StartingWith(start) => text.starts_with(start.as_str()),
            TextTest::EndingWith(end) => text.ends_with(end.as_str()),
            TextTest::Containing(part) => text.contains(part.as_str()),
            TextTest::Regex(regex) => regex.is_match(text),
        }
    }
}

/// Returns true if a comparison holds between two values.
pub(crate) fn compares(comparison: Comparison, left: &Value, right: &Value) -> bool {
    let ordering = |accepts: fn(Ordering) -> bool| watched::comparable(left, right).is_some_and(accepts);
    match comparison {
        Comparison::Eq => watched::equal(left, right),
        Comparison::Neq => !watched::equal(left, right),
        Comparison::Lt => ordering(Ordering::is_lt),
        Comparison::Lte => ordering(Ordering::is_le),
        Comparison::Gt => ordering(Ordering::is_gt),
        Comparison::Gte => ordering(Ordering::is_ge),
    }
}

/// Returns true if a text operation holds between two values; false if one of them is no string. Fails if a pattern is
/// no regular expression.
pub(crate) fn text_holds(operation: TextOperation, left: &Value, right: &Value) -> Result<bool> {
    let (Value::String(text), Value::String(_)) = (left, right) else { return Ok(false) };
    Ok(text_test(operation, right)?.holds(text))
}

/// The members of a `within()`. Membership is [`watched::equal`]. Whole numbers of up to 64 bits and strings, of which
/// lists of ids and names consist, are found by hash.
#[derive(Clone, Debug, Default)]
struct WithinMembers {
    integers: FastSet<i64>,
    strings: FastSet<Name>,
    others: FastSet<Equal>,
}

impl WithinMembers {
    fn new(values: impl IntoIterator<Item = Value>) -> Self {
        let mut members = WithinMembers::default();
        for value in values {
            match (numeric::integer(&value), value) {
                (Some(n), _) => {
                    members.integers.insert(n);
                }
                (None, Value::String(text)) => {
                    members.strings.insert(text);
                }
                (None, other) => {
                    members.others.insert(Equal(other));
                }
            }
        }
        members
    }

    fn contains(&self, value: &Value) -> bool {
        // A string equals only strings; numbers of all types compare with each other.
        if let Value::String(text) = value {
            return self.strings.contains(text);
        }
        numeric::whole(value).is_some_and(|n| self.integers.contains(&n))
            || (!self.others.is_empty() && self.others.contains(&Equal(value.clone())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_view::context;
    use mangrove_graph::{ErrorKind, NumberType, Numbers};
    use proptest::prelude::*;
    use std::sync::Arc;

    fn literal(value: impl Into<Value>) -> Operand {
        Operand::Literal(value.into())
    }

    fn compiled(test: Test) -> CompiledTest {
        let mut test = CompiledTest::new(&test);
        test.begin(&context()).unwrap();
        test
    }

    fn holds(test: Test, value: impl Into<Value>) -> bool {
        compiled(test).holds(&value.into())
    }

    fn any_number() -> impl Strategy<Value = Value> {
        let floats = vec![0.0, -0.0, 0.5, 1.0, -1.0, 1e300, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 5e-324];
        let integers = vec![0, 1, -1, 2, i64::MAX, i64::MIN, (1 << 53) + 1, 1 << 53];
        prop_oneof![
            (-2..3_i32).prop_map(Value::I32),
            any::<i8>().prop_map(Value::I8),
            prop::sample::select(integers).prop_map(Value::I64),
            prop::sample::select(floats.clone()).prop_map(Value::F64),
            prop::sample::select(floats).prop_map(|n| Value::F32(n as f32)),
        ]
    }

    fn any_operand() -> impl Strategy<Value = Operand> {
        let digits = |n: i64| "1.50".parse::<bigdecimal::BigDecimal>().unwrap() * n;
        prop_oneof![
            8 => any_number(),
            1 => prop::sample::select(vec![Value::from("1"), Value::Null]),
            1 => (-2..3_i64).prop_map(move |n| Value::Decimal(Arc::new(digits(n)))),
        ]
        .prop_map(Operand::Literal)
    }

    fn any_test() -> impl Strategy<Value = Test> {
        use Comparison::{Eq, Gt, Gte, Lt, Lte, Neq};
        let compare = (prop::sample::select(vec![Eq, Neq, Lt, Lte, Gt, Gte]), any_operand());
        let leaf = prop_oneof![
            6 => compare.prop_map(|(comparison, operand)| Test::Compare(comparison, operand)),
            1 => prop::collection::vec(any_operand(), 0..3).prop_map(Test::Within),
            1 => Just(Test::TypeOf(ValueType::Int)),
        ];
        leaf.prop_recursive(3, 8, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 1..4).prop_map(Test::And),
                prop::collection::vec(inner.clone(), 1..4).prop_map(Test::Or),
                inner.prop_map(|test| Test::Not(Box::new(test))),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]
        #[test]
        fn numbers_of_a_column_pass_as_values_do(
            test in any_test(),
            values in prop::collection::vec(any_number(), 1..40),
        ) {
            let test = compiled(test);
            let kind = NumberType::of(&values[0]).unwrap();
            let values: Vec<Value> = values.into_iter().filter(|v| NumberType::of(v) == Some(kind)).collect();
            let mut numbers = Numbers::default();
            prop_assert!(values.iter().all(|value| numbers.push(0, value)));
            let passing = test.rows_that_pass(NumberSlice::of(&numbers).unwrap());
            let expected: Vec<u32> = (0..).zip(&values).filter(|(_, v)| test.holds(v)).map(|(row, _)| row).collect();
            prop_assert_eq!(passing, expected);
        }
    }

    /// A test that falls back to values passes the property above, too, so this one looks for the ranges themselves.
    #[test]
    fn common_tests_have_a_range() {
        let at = |comparison, operand: i32| Test::Compare(comparison, literal(operand));
        let between = || Test::And(vec![at(Comparison::Gte, 1), at(Comparison::Lt, 4)]);
        for test in [at(Comparison::Gt, 3), at(Comparison::Neq, 3), between(), Test::Not(Box::new(between()))] {
            let test = compiled(test);
            assert!(range::<i64>(test.node.as_ref().unwrap()).is_some());
            assert!(range::<f64>(test.node.as_ref().unwrap()).is_some());
        }
    }

    #[test]
    fn incomparable_values_fail_and_their_negation_passes() {
        let lt = || Test::Compare(Comparison::Lt, literal(3));
        assert!(holds(lt(), 2));
        assert!(!holds(lt(), "2"));
        assert!(holds(Test::Not(Box::new(lt())), "2"));
        assert!(holds(Test::Not(Box::new(lt())), f64::NAN));
        assert!(holds(Test::Compare(Comparison::Neq, literal(3)), "3"));
        assert!(holds(Test::Compare(Comparison::Eq, literal(3)), 3.0));
    }

    #[test]
    fn a_single_collection_is_spread() {
        let list = Value::list(vec![Value::I32(1), Value::from("a")]);
        for collection in [list.clone(), Value::Set(vec![Value::I32(1), Value::from("a")].into())] {
            let within = || Test::Within(vec![literal(collection.clone())]);
            assert!(holds(within(), 1_i64) && holds(within(), "a") && !holds(within(), 2));
        }
        // Beside another operand, a list is a member.
        let within = || Test::Within(vec![literal(list.clone()), literal(5)]);
        assert!(holds(within(), list.clone()) && !holds(within(), 1));
        let bulk = Value::BulkSet(Arc::new(vec![(Value::I32(7), 3)]));
        assert!(!holds(Test::Without(vec![literal(bulk)]), 7));
        assert!(holds(Test::Without(vec![]), 7));
    }

    #[test]
    fn text_predicates_fail_on_what_is_no_text() {
        let text = |operation, pattern: &str| Test::Text(operation, literal(pattern));
        assert!(holds(text(TextOperation::StartingWith, "ma"), "marko"));
        assert!(holds(text(TextOperation::EndingWith, "ko"), "marko"));
        assert!(holds(text(TextOperation::Containing, "ark"), "marko"));
        assert!(holds(text(TextOperation::Regex, "^m.*o$"), "marko"));
        assert!(holds(text(TextOperation::Regex, "ar"), "marko"));
        assert!(!holds(text(TextOperation::Containing, "1"), 1));
    }

    #[test]
    fn unusable_patterns_are_errors_that_name_them() {
        for pattern in ["(", "(?=a)b", "\\w{1000}{1000}"] {
            let error =
                CompiledTest::new(&Test::Text(TextOperation::Regex, literal(pattern))).begin(&context()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            assert!(error.message().contains(pattern), "{error}");
        }
        let mut test = CompiledTest::new(&Test::Text(TextOperation::Containing, literal(1)));
        let error = test.begin(&context()).unwrap_err();
        assert!(error.message().contains("int"), "{error}");
    }

    fn any_value() -> impl Strategy<Value = Value> {
        prop_oneof![
            (-4..4_i32).prop_map(Value::I32),
            (-4..4_i64).prop_map(Value::I64),
            (-8..8_i32).prop_map(|n| Value::F64(f64::from(n) / 2.0)),
            (-4..4_i64).prop_map(|n| Value::BigInt(Arc::new(n.into()))),
            (-40..40_i64).prop_map(|n| Value::Decimal(Arc::new(bigdecimal::BigDecimal::new(n.into(), 1)))),
            "[ab]{0,1}".prop_map(Value::from),
            Just(Value::Null),
            Just(Value::F64(f64::NAN)),
        ]
    }

    proptest! {
        #[test]
        fn hashed_members_are_those_that_equal(values in proptest::collection::vec(any_value(), 0..6), value in any_value()) {
            let expected = values.iter().any(|member| watched::equal(member, &value));
            prop_assert_eq!(WithinMembers::new(values).contains(&value), expected);
        }
    }
}
