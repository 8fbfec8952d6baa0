//! The words of the language: steps, source methods, terminals, enum tokens, constants.
//!
//! A bare word is resolved as in the official grammar. Before a `(` it is a step, a predicate or the constructor of a
//! literal. Otherwise it is an enum token if it names one, and else a variable.

use crate::suggest::suggest;
use mangrove_graph::{Direction, Token, Value};

use crate::bytecode::{Argument, Cardinality, Column, Merge, Operator, Order, Pick, Pop, Scope};
use crate::predicate::{P_NAMES, TEXT_P_NAMES};

/// The message for a closure: why it is refused, and what to write instead.
pub(super) const LAMBDA_REFUSED: &str = "lambdas and closures are not supported, because nothing a client sends is \
     run as code; write it with steps, such as `filter(__.values('age').is(gt(30)))` or `map(__.values('name'))`";

/// The methods that configure a traversal source.
pub(crate) const SOURCE_METHODS: &[&str] = &[
    "with",
    "withBulk",
    "withComputer",
    "withPath",
    "withSack",
    "withSideEffect",
    "withStrategies",
    "withoutStrategies",
];

/// The steps a traversal may begin with.
pub(crate) const START_STEPS: &[&str] =
    &["E", "V", "addE", "addV", "call", "inject", "io", "mergeE", "mergeV", "union"];

/// The methods that end a traversal and say how its results are taken.
pub(crate) const TERMINALS: &[&str] =
    &["explain", "hasNext", "iterate", "next", "toBulkSet", "toList", "toSet", "tryNext"];

/// Every step, in byte order.
#[rustfmt::skip]
pub(crate) const STEPS: &[&str] = &[
    "E", "V", "addE", "addV", "aggregate", "all", "and", "any", "as", "asBool", "asDate", "asNumber", "asString",
    "barrier", "both", "bothE", "bothV", "branch", "by", "call", "cap", "choose", "coalesce", "coin", "combine",
    "concat", "conjoin", "connectedComponent", "constant", "count", "cyclicPath", "dateAdd", "dateDiff", "dedup",
    "difference", "discard", "disjunct", "drop", "element", "elementMap", "emit", "fail", "filter", "flatMap", "fold",
    "format", "from", "group", "groupCount", "has", "hasId", "hasKey", "hasLabel", "hasNot", "hasValue", "id",
    "identity", "in", "inE", "inV", "index", "inject", "intersect", "io", "is", "key", "lTrim", "label", "length",
    "limit", "local", "loops", "map", "match", "math", "max", "mean", "merge", "mergeE", "mergeV", "min", "none",
    "not", "option", "optional", "or", "order", "otherV", "out", "outE", "outV", "pageRank", "path", "peerPressure",
    "product", "profile", "project", "properties", "property", "propertyMap", "rTrim", "range", "read", "repeat",
    "replace", "reverse", "sack", "sample", "select", "shortestPath", "sideEffect", "simplePath", "skip", "split",
    "store", "subgraph", "substring", "sum", "tail", "timeLimit", "times", "to", "toE", "toLower", "toUpper", "toV", "tree",
    "trim", "unfold", "union", "until", "value", "valueMap", "values", "where", "with", "write",
];

/// The names of `GType`.
#[rustfmt::skip]
pub(crate) const TYPE_NAMES: &[&str] = &[
    "BIGDECIMAL", "BIGINT", "BINARY", "BOOLEAN", "BYTE", "CHAR", "DATETIME", "DOUBLE", "DURATION", "EDGE", "FLOAT",
    "GRAPH", "INT", "LIST", "LONG", "MAP", "NULL", "NUMBER", "PATH", "PROPERTY", "SET", "SHORT", "STRING", "TREE",
    "UUID", "VERTEX", "VPROPERTY",
];

/// The units of `DT`.
pub(crate) const DATE_UNITS: &[&str] = &["second", "minute", "hour", "day"];

/// The names that may stand before a `.` in an argument, besides `__`, `P` and `TextP`: enums, and classes of
/// constants.
pub(crate) const QUALIFIERS: &[&str] = &[
    "Barrier",
    "Cardinality",
    "Column",
    "ConnectedComponent",
    "DT",
    "Direction",
    "GType",
    "IO",
    "Merge",
    "Operator",
    "Order",
    "P",
    "PageRank",
    "PeerPressure",
    "Pick",
    "Pop",
    "Scope",
    "ShortestPath",
    "T",
    "TextP",
    "WithOptions",
    "__",
];

/// Returns true for the name of a step.
pub(super) fn is_step(name: &str) -> bool {
    STEPS.binary_search(&name).is_ok()
}

/// Returns true for the name of a predicate. `not` is a predicate and a step.
pub(super) fn is_predicate(name: &str) -> bool {
    P_NAMES.contains(&name) || TEXT_P_NAMES.contains(&name)
}

/// Returns true if the class `P` or `TextP` has a predicate of this name.
pub(super) fn has_predicate(class: &str, name: &str) -> bool {
    let names = if class == "P" { P_NAMES } else { TEXT_P_NAMES };
    names.contains(&name)
}

/// Returns true for the name of the class of a strategy.
pub(super) fn is_strategy(name: &str) -> bool {
    name.ends_with("Strategy") && name.starts_with(|c: char| c.is_ascii_uppercase())
}

/// The words for directions that may as well be names of variables.
const DIRECTION_WORDS: [&str; 2] = ["from", "to"];

/// Returns true if a bare word may be a `T` token or a direction, or a variable.
pub(super) fn is_token_word(word: &str) -> bool {
    token(word).is_some() || DIRECTION_WORDS.contains(&word)
}

/// Returns true if the argument of a step at this position, among so many, may be the token or direction that the word
/// names.
pub(super) fn takes_token(step: &str, word: &str, at: usize, count: usize) -> bool {
    if DIRECTION_WORDS.contains(&word) {
        return at == 0 && matches!(step, "to" | "toE" | "toV");
    }
    match step {
        "by" | "choose" | "branch" => true,
        // has(T, …) and has(label, T, …). The last of several arguments is the value.
        "has" => at == 0 && count <= 2 || at == 1 && count == 3,
        // A cardinality may come first.
        "property" => at == 0 || at == 1 && count == 3,
        _ => false,
    }
}

/// The token a bare word names, if it names one.
pub(super) fn bare_token(name: &str) -> Option<Argument> {
    // `values` before anything else could claim it; the enums share no other words except `any` and
    // `none`, `and` and `or`, `min` and `max`, each of which only one enum has.
    const BARE: &[&str] = &[
        "T",
        "Direction",
        "Scope",
        "Pop",
        "Column",
        "Order",
        "Cardinality",
        "Merge",
        "Operator",
        "Pick",
        "Barrier",
        "DT",
        "GType",
    ];
    BARE.iter().find_map(|qualifier| enum_token(qualifier, name))
}

/// `qualifier.name` as a token or a constant. `None` if there is no such qualifier, `Some(None)` if the
/// qualifier has no such name.
pub(super) fn qualified(qualifier: &str, name: &str) -> Option<Option<Argument>> {
    if let Some(argument) = enum_token(qualifier, name).or_else(|| constant(qualifier, name)) {
        return Some(Some(argument));
    }
    if qualifier == "GType" {
        // `bigInt` is a word of the grammar, too; alone it would be a variable.
        return Some(enum_token(qualifier, &name.to_ascii_uppercase()));
    }
    QUALIFIERS.contains(&qualifier).then_some(None)
}

/// The token `name` of the enum `qualifier`.
pub(crate) fn enum_token(qualifier: &str, name: &str) -> Option<Argument> {
    match qualifier {
        "T" => token(name).map(|token| Argument::Value(Value::Token(token))),
        "Direction" => direction(name).map(|direction| Argument::Value(Value::Direction(direction))),
        "Scope" => Scope::from_name(name).map(Argument::Scope),
        "Pop" => Pop::from_name(name).map(Argument::Pop),
        "Column" => Column::from_name(name).map(Argument::Column),
        "Order" => order(name).map(Argument::Order),
        "Cardinality" => Cardinality::from_name(name).map(Argument::Cardinality),
        "Merge" => Merge::from_name(name).map(Argument::Merge),
        "Operator" => Operator::from_name(name).map(Argument::Operator),
        "Pick" => Pick::from_name(name).map(Argument::Pick),
        "Barrier" => (name == "normSack").then_some(Argument::NormSack),
        "DT" => DATE_UNITS.contains(&name).then(|| Argument::DateUnit(name.into())),
        "GType" => TYPE_NAMES.contains(&name).then(|| Argument::Type(name.into())),
        _ => None,
    }
}

fn token(name: &str) -> Option<Token> {
    Some(match name {
        "id" => Token::Id,
        "label" => Token::Label,
        "key" => Token::Key,
        "value" => Token::Value,
        _ => return None,
    })
}

/// `from` and `to` are the names `mergeE` reads well with: an edge comes from its OUT vertex.
fn direction(name: &str) -> Option<Direction> {
    Some(match name {
        "OUT" | "from" => Direction::Out,
        "IN" | "to" => Direction::In,
        "BOTH" => Direction::Both,
        _ => return None,
    })
}

/// `incr` and `decr` are the former names of `asc` and `desc`.
fn order(name: &str) -> Option<Order> {
    match name {
        "incr" => Some(Order::Asc),
        "decr" => Some(Order::Desc),
        _ => Order::from_name(name),
    }
}

/// The constants steps are configured with in `with()`; the values are TinkerPop's.
fn constant(holder: &str, name: &str) -> Option<Argument> {
    let number = |n: i32| Some(Argument::Value(Value::I32(n)));
    let text = |s: &str| Some(Argument::Value(Value::string(s)));
    match (holder, name) {
        ("WithOptions", "tokens") => text("~tinkerpop.valueMap.tokens"),
        ("WithOptions", "indexer") => text("~tinkerpop.index.indexer"),
        ("WithOptions", "none" | "list") => number(0),
        ("WithOptions", "ids" | "map") => number(1),
        ("WithOptions", "labels") => number(2),
        ("WithOptions", "keys") => number(4),
        ("WithOptions", "values") => number(8),
        ("WithOptions", "all") => number(15),
        ("IO", "graphml" | "graphson" | "gryo") => text(name),
        ("IO", "reader") => text("~tinkerpop.io.reader"),
        ("IO", "writer") => text("~tinkerpop.io.writer"),
        ("IO", "registry") => text("~tinkerpop.io.registry"),
        ("ConnectedComponent", "component") => text("gremlin.connectedComponentVertexProgram.component"),
        ("ConnectedComponent", "edges") => text("~tinkerpop.connectedComponent.edges"),
        ("ConnectedComponent", "propertyName") => text("~tinkerpop.connectedComponent.propertyName"),
        ("PageRank", "edges") => text("~tinkerpop.pageRank.edges"),
        ("PageRank", "propertyName") => text("~tinkerpop.pageRank.propertyName"),
        ("PageRank", "times") => text("~tinkerpop.pageRank.times"),
        ("PeerPressure", "edges") => text("~tinkerpop.peerPressure.edges"),
        ("PeerPressure", "propertyName") => text("~tinkerpop.peerPressure.propertyName"),
        ("PeerPressure", "times") => text("~tinkerpop.peerPressure.times"),
        ("ShortestPath", "distance") => text("~tinkerpop.shortestPath.distance"),
        ("ShortestPath", "edges") => text("~tinkerpop.shortestPath.edges"),
        ("ShortestPath", "includeEdges") => text("~tinkerpop.shortestPath.includeEdges"),
        ("ShortestPath", "maxDistance") => text("~tinkerpop.shortestPath.maxDistance"),
        ("ShortestPath", "target") => text("~tinkerpop.shortestPath.target"),
        _ => None,
    }
}

/// `; did you mean …?` with the nearest steps and predicates, or nothing if none is near.
pub(super) fn suggest_call(name: &str) -> String {
    suggest(name, STEPS.iter().chain(P_NAMES).chain(TEXT_P_NAMES).copied())
}

/// `; did you mean …?` with the nearest names that can follow a `.` at the top of a traversal.
pub(super) fn suggest_step(name: &str) -> String {
    suggest(name, STEPS.iter().chain(SOURCE_METHODS).chain(TERMINALS).copied())
}

/// `; did you mean …?` with the nearest qualifiers.
pub(super) fn suggest_qualifier(name: &str) -> String {
    suggest(name, QUALIFIERS.iter().copied())
}

/// Words that are members of qualifiers, but no steps.
#[rustfmt::skip] // A word a line would be pages of words.
const MEMBER_WORDS: &[&str] = &[
    "OUT", "IN", "BOTH", "from", "to", "first", "last", "mixed", "asc", "desc", "shuffle", "single", "list",
    "set", "onCreate", "onMatch", "addAll", "assign", "div", "minus", "mult", "sumLong", "unproductive",
    "normSack", "global", "keys", "tokens", "none", "ids", "labels", "all", "indexer", "reader", "writer",
    "graphml", "graphson", "gryo", "component", "edges", "propertyName", "distance", "includeEdges",
    "maxDistance", "target",
];

/// The names that a qualifier other than `P` and `TextP` has.
pub(crate) fn members(qualifier: &str) -> impl Iterator<Item = &'static str> {
    let words = STEPS.iter().chain(MEMBER_WORDS).chain(DATE_UNITS).chain(TYPE_NAMES).copied();
    words.filter(move |word| matches!(self::qualified(qualifier, word), Some(Some(_))))
}

/// `; did you mean …?` with the nearest names an enum or predicate class has.
pub(super) fn suggest_member(qualifier: &str, name: &str) -> String {
    match qualifier {
        "P" => suggest(name, P_NAMES.iter().copied()),
        "TextP" => suggest(name, TEXT_P_NAMES.iter().copied()),
        _ => suggest(name, members(qualifier)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_are_in_the_order_binary_search_needs() {
        assert!(STEPS.is_sorted());
        assert!(START_STEPS.iter().all(|step| is_step(step)));
    }

    #[test]
    fn suggestions_are_near_and_few() {
        assert_eq!(suggest_step("hasLable"), "; did you mean `hasLabel`?");
        assert_eq!(suggest_step("tolist"), "; did you mean `toList`?");
        assert_eq!(suggest_member("Order", "dsc"), "; did you mean `asc` or `desc`?");
        assert_eq!(suggest_member("P", "withn"), "; did you mean `within`?");
        assert_eq!(suggest_step("frobnicate"), "");
    }
}
