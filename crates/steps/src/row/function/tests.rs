//! What functions give, and what they refuse.

use mangrove_graph::{DateTime, Result, Value};
use mangrove_plan::function::{CollectionFunction, DateUnit, Function, NumberType, TextFunction};
use mangrove_plan::logical::Operand;
use mangrove_plan::physical::SlotOperand;

use super::Call;
use crate::row::RowOperator;
use crate::row::fake_view::{environment_of, modern};
use crate::rows::{Column, Rows};

fn call(function: Function, object: Value, arguments: Vec<Value>) -> Result<Value> {
    let operands = arguments.into_iter().map(|value| SlotOperand::Operand(Operand::Literal(value))).collect();
    let mut call = Call::new(function, operands);
    let graph = modern();
    let environment = environment_of(&graph);
    call.begin(&environment)?;
    Ok(call.apply(Rows::of(Column::Values(vec![object])), &environment)?.object(0))
}

#[track_caller]
fn gives(function: Function, object: impl Into<Value>, arguments: Vec<Value>, expected: impl Into<Value>) {
    assert_eq!(call(function, object.into(), arguments).unwrap(), expected.into());
}

#[track_caller]
fn fails(function: Function, object: impl Into<Value>, arguments: Vec<Value>, message: &str) {
    let error = call(function, object.into(), arguments).unwrap_err();
    assert!(error.message().contains(message), "{error}");
}

fn text(function: TextFunction) -> Function {
    Function::Text { function, local: false }
}

fn local(function: TextFunction) -> Function {
    Function::Text { function, local: true }
}

fn list(values: &[&str]) -> Value {
    Value::list(values.iter().map(|v| Value::from(*v)).collect())
}

#[test]
fn texts() {
    gives(text(TextFunction::Length), "héllo", vec![], 5);
    gives(text(TextFunction::ToUpper), Value::Null, vec![], Value::Null);
    gives(text(TextFunction::Trim), "\u{3000} a \t", vec![], "a");
    gives(text(TextFunction::Substring), "hello", vec![(-3).into(), (-1).into()], "ll");
    gives(text(TextFunction::Substring), "hello", vec![3.into(), 1.into()], "");
    gives(text(TextFunction::Split), "a b", vec!["".into()], list(&["a", " ", "b"]));
    gives(text(TextFunction::Split), " a  b ", vec![Value::Null], list(&["a", "b"]));
    gives(text(TextFunction::Replace), "aXa", vec!["a".into(), "b".into()], "bXb");
    gives(local(TextFunction::ToLower), list(&["A", "B"]), vec![], list(&["a", "b"]));
    fails(text(TextFunction::Trim), 1, vec![], "The trim() step can only take string as argument, encountered Integer");
    fails(
        local(TextFunction::Trim),
        vec![1.into()],
        vec![],
        "The trim(local) step can only take string or list of strings",
    );
    gives(Function::Concat, "a", vec![Value::Null, "b".into()], "ab");
    gives(Function::Concat, Value::Null, vec![], Value::Null);
    gives(Function::Reverse, "abc", vec![], "cba");
}

#[test]
fn values_as_texts() {
    let graph = modern();
    for (number, shown) in [
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (0.001, "0.001"),
        (0.000_25, "2.5E-4"),
        (9_999_999.5, "9999999.5"),
        (1e7, "1.0E7"),
        (-1.25e20, "-1.25E20"),
        (f64::NAN, "NaN"),
        (f64::INFINITY, "Infinity"),
    ] {
        gives(text(TextFunction::AsString), number, vec![], shown);
    }
    gives(text(TextFunction::AsString), 3e9_f32, vec![], "3.0E9");
    let map = Value::map(vec![("name".into(), list(&["marko"]))]);
    gives(text(TextFunction::AsString), map, vec![], "{name=[marko]}");
    let vertex = Value::from(graph.marko);
    assert!(
        matches!(call(text(TextFunction::AsString), vertex, vec![]).unwrap(), Value::String(text) if text.starts_with("v["))
    );
    fails(text(TextFunction::AsString), Value::Null, vec![], "Can't parse null as String");
}

#[test]
fn collections() {
    let of = |function| Function::Collection(function);
    let (ab, bc) = (list(&["a", "b"]), list(&["b", "c"]));
    let set = |values: &[&str]| Value::Set(values.iter().map(|v| Value::from(*v)).collect::<Vec<_>>().into());
    gives(of(CollectionFunction::Combine), ab.clone(), vec![bc.clone()], list(&["a", "b", "b", "c"]));
    gives(of(CollectionFunction::Merge), ab.clone(), vec![bc.clone()], set(&["a", "b", "c"]));
    gives(of(CollectionFunction::Difference), ab.clone(), vec![bc.clone()], set(&["a"]));
    gives(of(CollectionFunction::Intersect), ab.clone(), vec![bc.clone()], set(&["b"]));
    gives(of(CollectionFunction::Disjunct), ab.clone(), vec![bc.clone()], set(&["a", "c"]));
    gives(
        of(CollectionFunction::Product),
        list(&["a"]),
        vec![bc],
        Value::list(vec![list(&["a", "b"]), list(&["a", "c"])]),
    );
    gives(
        of(CollectionFunction::Conjoin),
        Value::list(vec![1.into(), Value::Null, "x".into()]),
        vec![";".into()],
        "1;x",
    );
    // Types matter: 1 and 1L are two members.
    gives(
        of(CollectionFunction::Intersect),
        vec![1.into()],
        vec![vec![1_i64.into()].into()],
        Value::Set(Vec::new().into()),
    );
    fails(of(CollectionFunction::Merge), Value::Null, vec![ab], "Incoming traverser for merge step can't be null");
    let map = |key: &str, value: i32| Value::map(vec![(key.into(), value.into())]);
    gives(of(CollectionFunction::Merge), map("a", 1), vec![map("a", 2)], map("a", 2));
    gives(
        Function::Index { map: false },
        list(&["x"]),
        vec![],
        Value::list(vec![Value::list(vec!["x".into(), 0.into()])]),
    );
}

#[test]
fn conversions() {
    let number = |to| Function::AsNumber(to);
    gives(number(None), "0x5", vec![], 5);
    gives(number(None), "3000000000", vec![], 3_000_000_000_i64);
    gives(number(None), "-1.5e1", vec![], -15.0_f32);
    gives(number(None), "5L", vec![], 5_i64);
    gives(number(None), "0.1234567890", vec![], 0.123_456_789);
    gives(number(Some(NumberType::Int)), 5.67, vec![], 5);
    gives(number(Some(NumberType::Int)), Value::Null, vec![], Value::Null);
    fails(number(Some(NumberType::Byte)), 300, vec![], "Can't convert number of type Integer to Byte due to overflow.");
    fails(number(None), "1,000", vec![], "Can't parse string '1,000' as number.");
    fails(number(None), "", vec![], "Can't parse string '' as number.");
    fails(number(Some(NumberType::Long)), f64::NAN, vec![], "overflow");
    gives(Function::AsBool, "tRUe", vec![], true);
    gives(Function::AsBool, f64::NAN, vec![], false);
    fails(Function::AsBool, "yes", vec![], "Can't parse yes as Boolean.");
}

#[test]
fn dates() {
    let date = |text: &str| Value::DateTime(DateTime::parse(text).unwrap());
    gives(Function::AsDate, 1_694_017_707_000_i64, vec![], date("2023-09-06T16:28:27Z"));
    gives(
        Function::DateAdd(DateUnit::Hour),
        date("2023-08-02T00:00:00Z"),
        vec![(-1).into()],
        date("2023-08-01T23:00:00Z"),
    );
    gives(Function::DateDiff, date("1970-01-02T00:00:00Z"), vec![Value::Null], 86_400_000_i64);
    fails(Function::AsDate, 1.5, vec![], "Can't parse");
    fails(Function::DateAdd(DateUnit::Day), date("2023-08-02T00:00:00Z"), vec![i64::MAX.into()], "overflow");
}
