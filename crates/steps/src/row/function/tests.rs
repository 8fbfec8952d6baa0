//! The results of functions, and the arguments that they refuse.

use mangrove_flow::QueryControl;
use mangrove_graph::{DateTime, ErrorKind, Result, Value};
use mangrove_plan::function::{CollectionFunction, DateUnit, Function, NumberType, TextFunction};
use mangrove_plan::logical::Operand;
use mangrove_plan::physical::ComputedOperand;

use super::FunctionCall;
use crate::fake_view::{context_of, modern};
use crate::limits::meter::limited_control;
use crate::row::map::map_all;
use crate::rows::{ObjectColumn, Rows};

fn call(function: Function, object: Value, arguments: Vec<Value>) -> Result<Value> {
    call_in(function, object, arguments, &limited_control(u64::MAX, None))
}

fn call_in(function: Function, object: Value, arguments: Vec<Value>, control: &QueryControl) -> Result<Value> {
    let operands = arguments.into_iter().map(|value| ComputedOperand::Operand(Operand::Literal(value))).collect();
    let call = FunctionCall::new(function, operands);
    let graph = modern();
    let context = context_of(&graph);
    let rows = Rows::of(ObjectColumn::Values(vec![object]));
    Ok(map_all(call, rows, &context, control)?.object(0))
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

#[test]
fn a_text_of_too_many_digits_is_no_number() {
    let digits = |count: usize| Value::string("9".repeat(count));
    assert!(call(Function::AsNumber(None), digits(20_000), vec![]).is_ok());
    fails(Function::AsNumber(None), digits(20_001), vec![], "at most 20000 are read");
}

#[test]
fn a_long_text_is_refused_before_it_is_made() {
    let half = Value::string("a".repeat(40 << 20));
    fails(Function::Concat, half.clone(), vec![half.clone()], "more than 67108864");
    fails(text(TextFunction::AsString), Value::list(vec![half.clone(), half]), vec![], "more than 67108864");
}

#[test]
fn long_texts_are_changed_in_pieces_as_in_one() {
    // The lower case of this letter depends on whether it ends its word. It stands near the end of a piece.
    for length in [65_530, 65_535, 65_536, 131_071] {
        let long = format!("{}ΟΔΟΣ ΟΔΟΣ ΟΔΟΣ{}", "É ".repeat(length / 3), " ß".repeat(40_000));
        gives(text(TextFunction::ToLower), &*long, vec![], long.to_lowercase());
        gives(text(TextFunction::ToUpper), &*long, vec![], long.to_uppercase());
        gives(text(TextFunction::Replace), &*long, vec!["Σ Ο".into(), "".into()], long.replace("Σ Ο", ""));
        gives(Function::Reverse, &*long, vec![], long.chars().rev().collect::<String>());
    }
}

/// Returns objects of some megabytes with arguments for a function. The list is empty if the function takes and returns
/// small values only.
fn large_inputs(function: Function) -> Vec<(Value, Vec<Value>)> {
    let long = || Value::from("ab ".repeat(1 << 20));
    let members = |from: i32| Value::list((from..from + 100_000).map(Value::I32).collect());
    match function {
        Function::Text { function, local } => {
            let arguments = match function {
                TextFunction::Replace => vec!["a".into(), "bb".into()],
                TextFunction::Split => vec![" ".into()],
                TextFunction::Substring => vec![10.into()],
                TextFunction::AsString
                | TextFunction::Length
                | TextFunction::ToLower
                | TextFunction::ToUpper
                | TextFunction::Trim
                | TextFunction::TrimStart
                | TextFunction::TrimEnd => vec![],
            };
            vec![(if local { Value::list(vec![long(); 4]) } else { long() }, arguments)]
        }
        Function::Concat => vec![("".into(), vec![long(), long()])],
        Function::Reverse => vec![(long(), vec![]), (members(0), vec![])],
        Function::Index { .. } => vec![(members(0), vec![])],
        Function::Collection(CollectionFunction::Conjoin) => vec![(members(0), vec!["; ".repeat(10).into()])],
        Function::Collection(CollectionFunction::Merge) => {
            let map = || Value::map((0..100_000).map(|n| (Value::I32(n), Value::Null)).collect());
            vec![(members(0), vec![members(50_000)]), (map(), vec![map()])]
        }
        Function::Collection(
            CollectionFunction::Combine
            | CollectionFunction::Difference
            | CollectionFunction::Intersect
            | CollectionFunction::Disjunct,
        ) => vec![(members(0), vec![members(50_000)])],
        Function::Collection(CollectionFunction::Product) => {
            let some = || Value::list((0..1_000).map(Value::I32).collect());
            vec![(some(), vec![some()])]
        }
        Function::AsBool
        | Function::AsNumber(_)
        | Function::AsDate
        | Function::DateAdd(_)
        | Function::DateDiff
        | Function::Element => vec![],
    }
}

fn functions_of_large_values() -> Vec<Function> {
    use {CollectionFunction as C, TextFunction as T};
    let texts =
        [T::AsString, T::ToLower, T::ToUpper, T::Trim, T::TrimStart, T::TrimEnd, T::Replace, T::Split, T::Substring];
    let collections = [C::Combine, C::Merge, C::Difference, C::Intersect, C::Disjunct, C::Product, C::Conjoin];
    let texts = texts.into_iter().chain([T::Length]).flat_map(|function| [text(function), local(function)]);
    texts
        .chain(collections.into_iter().map(Function::Collection))
        .chain([Function::Concat, Function::Reverse, Function::Index { map: false }, Function::Index { map: true }])
        .collect()
}

#[test]
fn every_function_is_stopped_by_either_limit() {
    for function in functions_of_large_values() {
        for (object, arguments) in large_inputs(function) {
            let run = |control: QueryControl| {
                let outcome = call_in(function, object.clone(), arguments.clone(), &control);
                (outcome.err().map(|error| error.kind()), control.memory_peak())
            };
            // The result is charged before it is made. A length takes no memory.
            let (failed, peak) = run(limited_control(1 << 20, None));
            if !matches!(function, Function::Text { function: TextFunction::Length, .. }) {
                assert_eq!(failed, Some(ErrorKind::MemoryLimit), "{function:?}");
                assert!(peak < 16 << 20, "{function:?} charged {peak} at once");
            }
            // The function checks the clock before it has finished.
            let (failed, _) = run(limited_control(u64::MAX, Some(0)));
            assert_eq!(failed, Some(ErrorKind::Timeout), "{function:?}");
            let (failed, _) = run(limited_control(u64::MAX, Some(1 << 20)));
            assert_eq!(failed, None, "{function:?}");
        }
    }
}

/// A search of a long text takes time, also if its result is small or empty.
#[test]
fn a_search_with_an_empty_result_checks_the_limits() {
    let long = |part: &str| Value::from(part.repeat(1 << 20));
    // A replacement reads the text twice: it counts the matches before it makes the result.
    for (function, object, arguments, looks) in [
        (TextFunction::Split, long("a"), vec!["a".into()], 14),
        (TextFunction::Replace, long("a"), vec!["a".into(), "".into()], 30),
    ] {
        let run = |looks| call_in(text(function), object.clone(), arguments.clone(), &limited_control(u64::MAX, looks));
        assert_eq!(run(Some(looks)).unwrap_err().kind(), ErrorKind::Timeout, "{function:?}");
        run(Some(100)).unwrap();
    }
    for (function, object, arguments) in [
        (TextFunction::Split, long(" "), vec![Value::Null]),
        (TextFunction::Trim, long(" "), vec![]),
        (TextFunction::TrimStart, long(" "), vec![]),
        (TextFunction::TrimEnd, long(" "), vec![]),
        (TextFunction::Substring, long("a"), vec![1.into(), 2.into()]),
    ] {
        let failed = call_in(text(function), object, arguments, &limited_control(u64::MAX, Some(0))).unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::Timeout, "{function:?}");
    }
}

#[test]
fn values_made_by_a_failing_call_are_left_to_the_query() {
    let numbers = Value::list((0..1_000).map(Value::I32).collect());
    let run = |looks| {
        let control = limited_control(u64::MAX, looks);
        let product = Function::Collection(CollectionFunction::Product);
        let made = call_in(product, numbers.clone(), vec![numbers.clone()], &control);
        (made.is_ok(), control)
    };
    let (is_made, control) = run(None);
    assert!(is_made && !control.has_leftovers());
    assert_eq!(control.memory(), 0);
    // The limits are checked every 64 KiB, and all pairs take more than 100 MB.
    let (is_made, control) = run(Some(100));
    assert!(!is_made);
    let left = control.take_leftovers();
    let pairs: usize = left.iter().filter_map(|left| left.downcast_ref::<Vec<Value>>()).map(Vec::len).sum();
    assert!(pairs > 10_000, "{pairs} pairs were left");
    assert!(control.memory() >= pairs as u64 * 100, "{} bytes are charged for them", control.memory());
}
