//! Predicates: tests of values, and tests against step labels.

use mangrove_graph::{Result, Value};
use mangrove_gremlin::{Argument, Comparison, Predicate, TextOperation};
use regex::Regex;

use super::NESTING_MAX;
use super::arguments::{describe, id_operand, name, operand, too_deep};
use super::site::Site;
use crate::literals::Fact;
use crate::logical::function::ValueType;
use crate::logical::{LabelTest, Name, Operand, Test};

/// The function that reads the operand of a comparison: as a value, or as an id.
type ReadOperand = fn(&Site<'_>, &Argument) -> Result<Operand>;

/// A test of a value: a predicate, or equality with a value.
pub(super) fn test(site: &Site<'_>, argument: &Argument) -> Result<Test> {
    test_with(site, argument, operand)
}

/// A test of an id. An element stands for its id.
pub(super) fn id_test(site: &Site<'_>, argument: &Argument) -> Result<Test> {
    test_with(site, argument, id_operand)
}

fn test_with(site: &Site<'_>, argument: &Argument, read: ReadOperand) -> Result<Test> {
    match argument {
        Argument::Predicate(predicate) => value_test(site, predicate, read, site.depth),
        value => Ok(Test::Compare(Comparison::Eq, read(site, value)?)),
    }
}

fn value_test(site: &Site<'_>, predicate: &Predicate, read: ReadOperand, depth: usize) -> Result<Test> {
    if depth > NESTING_MAX {
        return Err(too_deep(site));
    }
    let all =
        |tests: &[Predicate]| tests.iter().map(|test| value_test(site, test, read, depth + 1)).collect::<Result<_>>();
    let operands =
        |arguments: &[Argument]| arguments.iter().map(|argument| read(site, argument)).collect::<Result<_>>();
    Ok(match predicate {
        Predicate::Compare(comparison, argument) => Test::Compare(*comparison, read(site, argument)?),
        Predicate::Within(arguments) => Test::Within(operands(arguments)?),
        Predicate::Without(arguments) => Test::Without(operands(arguments)?),
        Predicate::Text(operation, argument) => Test::Text(*operation, text(site, *operation, argument)?),
        Predicate::TypeOf(given) => Test::TypeOf(value_type(site, given)?),
        Predicate::And(tests) => Test::And(all(tests)?),
        Predicate::Or(tests) => Test::Or(all(tests)?),
        Predicate::Not(test) => Test::Not(Box::new(value_test(site, test, read, depth + 1)?)),
    })
}

/// A type, named by its token or its class.
fn value_type(site: &Site<'_>, given: &Argument) -> Result<ValueType> {
    let found = match given {
        Argument::Type(name) => ValueType::from_token(name),
        Argument::Value(Value::String(name)) => ValueType::from_class(name),
        _ => None,
    };
    found.ok_or_else(|| {
        site.invalid(format_args!("typeOf() takes a type, such as GType.STRING; {} is none", describe(given)))
    })
}

fn text(site: &Site<'_>, operation: TextOperation, argument: &Argument) -> Result<Operand> {
    match operand(site, argument)? {
        Operand::Literal(Value::String(text)) => {
            if operation == TextOperation::Regex {
                check_regex(site, &text)?;
            }
            Ok(Operand::Literal(Value::String(text)))
        }
        Operand::Parameter(name) => Ok(Operand::Parameter(name)),
        Operand::Lifted(number) if operation != TextOperation::Regex && site.literals.ask(number, Fact::Text) => {
            Ok(Operand::Lifted(number))
        }
        _ => Err(site.invalid(format_args!("a text predicate takes a string, not {}", describe(argument)))),
    }
}

fn check_regex(site: &Site<'_>, pattern: &str) -> Result<()> {
    Regex::new(pattern).map(drop).map_err(|error| {
        site.invalid(format_args!(
            "\"{pattern}\" is not a regular expression (look-around and back-references are not supported): {error}"
        ))
    })
}

/// A test whose operands are step labels or side effects (`where(P)`).
pub(super) fn label_test(site: &Site<'_>, predicate: &Predicate) -> Result<LabelTest> {
    label_test_at(site, predicate, site.depth)
}

fn label_test_at(site: &Site<'_>, predicate: &Predicate, depth: usize) -> Result<LabelTest> {
    if depth > NESTING_MAX {
        return Err(too_deep(site));
    }
    let all =
        |tests: &[Predicate]| tests.iter().map(|test| label_test_at(site, test, depth + 1)).collect::<Result<_>>();
    Ok(match predicate {
        Predicate::Compare(comparison, argument) => LabelTest::Compare(*comparison, label(site, argument)?),
        Predicate::Within(arguments) => LabelTest::Within(labels(site, arguments)?),
        Predicate::Without(arguments) => LabelTest::Without(labels(site, arguments)?),
        Predicate::Text(operation, argument) => LabelTest::Text(*operation, label(site, argument)?),
        Predicate::TypeOf(_) => {
            return Err(site.invalid("typeOf() compares with a type, and where() with step labels; use is(typeOf(…))"));
        }
        Predicate::And(tests) => LabelTest::And(all(tests)?),
        Predicate::Or(tests) => LabelTest::Or(all(tests)?),
        Predicate::Not(test) => LabelTest::Not(Box::new(label_test_at(site, test, depth + 1)?)),
    })
}

fn labels(site: &Site<'_>, arguments: &[Argument]) -> Result<Vec<Name>> {
    arguments.iter().map(|argument| label(site, argument)).collect()
}

fn label(site: &Site<'_>, argument: &Argument) -> Result<Name> {
    match argument {
        Argument::Value(Value::String(_)) | Argument::Parameter(_) => name(site, argument, "a step label"),
        other => Err(site.invalid(format_args!(
            "a predicate in where() compares with the values of step labels, so its operand is a label's name, not {}; \
             test a value with is(…) or has(…)",
            describe(other)
        ))),
    }
}
