//! The forms in which each step was generated: `has(text,predicate)` and `has(token,predicate)` are two steps to a
//! compiler.
//!
//! A form is the kinds of a step's arguments. A kind that repeats at the end is written once, with an ellipsis.
//! [`FORMS`] lists the forms that must occur. A step that has only the form without arguments is not listed.

use std::collections::BTreeMap;

use mangrove_graph::Value;
use mangrove_gremlin::{Argument, Bytecode};

use super::TRAVERSALS;

/// The forms that must occur: for each step, those that change its meaning.
#[rustfmt::skip] // One form a line would fill pages.
const FORMS: &[&str] = &[
    "V()", "V(number)", "V(number…)", "V(list)", "E()", "E(number)", "E(number…)", "inject(null)", "inject(list)",
    "has(text)", "has(text,predicate)", "has(text…)", "has(text,number)", "has(text,null)",
    "has(text,text,predicate)", "has(token,predicate)", "has(token,text)", "hasLabel(text)", "hasLabel(text…)",
    "hasLabel(predicate)", "hasId(number)", "hasId(number…)", "hasId(predicate)", "hasKey(text)", "hasKey(predicate)",
    "hasValue(text)", "hasNot(text)", "is(predicate)", "is(number)", "is(text)", "where(traversal)",
    "where(predicate)", "where(text,predicate)", "filter(traversal)", "filter(predicate)", "not(traversal)",
    "and(traversal…)", "or(traversal…)", "and()", "or()", "dedup()", "dedup(scope)", "dedup(text)", "limit(number)",
    "limit(scope,number)", "range(number…)", "range(scope,number…)", "skip(number)", "skip(scope,number)",
    "tail(number)", "tail(scope,number)", "tail()", "sample(number)", "sample(scope,number)", "order()",
    "order(scope)", "by()", "by(text)", "by(token)", "by(traversal)", "by(order)", "by(text,order)",
    "by(token,order)", "by(traversal,order)", "by(column)", "by(column,order)", "out()", "out(text)", "out(text…)",
    "bothE()", "bothE(text)", "values()", "values(text)", "values(text…)", "properties()", "properties(text)",
    "properties(text…)", "valueMap()", "valueMap(text)", "valueMap(text…)", "valueMap(bool)", "valueMap(bool,text…)",
    "elementMap()", "elementMap(text)", "propertyMap()", "propertyMap(text…)", "select(text)", "select(text…)",
    "select(pop,text)", "select(pop,text…)", "select(column)", "select(traversal)", "project(text…)", "path()",
    "from(text)", "from(traversal)", "to(text)", "to(traversal)", "group()", "group(text)", "groupCount()",
    "groupCount(text)", "aggregate(text)", "cap(text)", "cap(text…)", "tree()", "tree(text)", "count()",
    "count(scope)", "sum()", "sum(scope)", "min()", "min(scope)", "max()", "max(scope)", "mean()", "mean(scope)",
    "fold()", "fold(number,operator)", "union(traversal)", "union(traversal…)", "coalesce(traversal…)",
    "choose(traversal)", "choose(traversal…)", "choose(predicate,traversal…)", "choose(token)",
    "option(number,traversal)", "option(text,traversal)", "option(predicate,traversal)", "option(pick,traversal)",
    "option(traversal)", "option(merge,map)", "option(merge,map,cardinality)", "option(merge,traversal)",
    "option(merge,null)", "branch(traversal)", "branch(token)", "repeat(traversal)", "repeat(text,traversal)",
    "times(number)", "until(traversal)", "until(predicate)", "emit()", "emit(traversal)", "emit(predicate)",
    "loops()", "loops(text)", "sack()", "sack(operator)", "barrier()", "barrier(number)", "barrier(normSack)",
    "constant(number)", "constant(text)", "constant(null)", "addV()", "addV(text)", "addV(traversal)", "addE(text)",
    "addE(traversal)", "property(text…)", "property(text,null)", "property(token,number)", "property(token,text)",
    "property(text,traversal)", "property(traversal,text)", "property(map)", "property(cardinality,text…)",
    "property(cardinality,map)", "property(cardinality,text,number,text,number)", "mergeV()", "mergeV(map)",
    "mergeV(traversal)", "mergeE()", "mergeE(map)", "mergeE(traversal)", "call(text)", "call(text,map)", "math(text)",
    "format(text)", "concat(text)", "concat(text…)", "concat(traversal…)", "split(text)", "split(null)",
    "replace(text…)", "substring(number)", "substring(number…)", "length()", "length(scope)", "trim()", "trim(scope)",
    "toUpper()", "toUpper(scope)", "reverse()", "combine(list)", "combine(traversal)", "merge(list)",
    "merge(traversal)", "difference(list)", "difference(traversal)", "intersect(list)", "disjunct(list)",
    "product(list)", "conjoin(text)", "asString()", "asString(scope)", "asNumber()", "asNumber(type)", "asBool()",
    "asDate()", "dateAdd(unit,number)", "dateDiff(date)", "dateDiff(traversal)", "all(predicate)", "any(predicate)",
    "none(predicate)", "withSack(number)", "withSack(list)", "withSack(number,operator)", "withSideEffect(text,list)",
    "withSideEffect(text,number,operator)", "withSideEffect(text,map)", "withBulk(bool)", "withPath()",
    "with(text,number)",
];

fn kind(argument: &Argument) -> &'static str {
    match argument {
        Argument::Value(Value::Null) => "null",
        Argument::Value(Value::Bool(_)) => "bool",
        Argument::Value(Value::String(_)) => "text",
        Argument::Value(Value::List(_) | Value::Set(_)) | Argument::List(_) => "list",
        Argument::Value(Value::Map(_)) | Argument::Map(_) => "map",
        Argument::Value(Value::Token(_)) => "token",
        Argument::Value(Value::Direction(_)) => "direction",
        Argument::Value(Value::DateTime(_)) => "date",
        Argument::Value(_) => "number",
        Argument::Parameter(_) | Argument::Lifted(_) => "parameter",
        Argument::Traversal(_) => "traversal",
        Argument::Predicate(_) => "predicate",
        Argument::Vertex(_) | Argument::Edge(_) => "element",
        Argument::Order(_) => "order",
        Argument::Scope(_) => "scope",
        Argument::Pop(_) => "pop",
        Argument::Column(_) => "column",
        Argument::Cardinality(_) => "cardinality",
        Argument::CardinalityValue(..) => "cardinality value",
        Argument::Merge(_) => "merge",
        Argument::Operator(_) => "operator",
        Argument::Pick(_) => "pick",
        Argument::NormSack => "normSack",
        Argument::DateUnit(_) => "unit",
        Argument::Type(_) => "type",
        Argument::Strategy(..) => "strategy",
    }
}

/// The kinds of arguments; a kind that repeats at the end is written once.
fn form(arguments: &[Argument]) -> String {
    let mut kinds: Vec<&str> = arguments.iter().map(kind).collect();
    let repeated = kinds.iter().rev().take_while(|kind| **kind == kinds[kinds.len() - 1]).count();
    if repeated < 2 {
        return kinds.join(",");
    }
    kinds.truncate(kinds.len() + 1 - repeated);
    format!("{}…", kinds.join(","))
}

fn count(traversal: &Bytecode, forms: &mut BTreeMap<String, usize>) {
    for instruction in traversal.source.iter().chain(&traversal.steps) {
        *forms.entry(format!("{}({})", instruction.name, form(&instruction.arguments))).or_default() += 1;
        for argument in &instruction.arguments {
            if let Argument::Traversal(child) = argument {
                count(child, forms);
            }
        }
    }
}

#[test]
fn every_form_of_a_step_is_generated() {
    let mut forms = BTreeMap::new();
    TRAVERSALS.iter().for_each(|traversal| count(traversal, &mut forms));
    for (form, times) in &forms {
        println!("{times:8} {form}");
    }
    let missing: Vec<&str> = FORMS.iter().copied().filter(|form| !forms.contains_key(*form)).collect();
    assert!(missing.is_empty(), "never generated: {missing:?}");
}
