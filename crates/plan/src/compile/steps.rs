//! From a chain of instructions to logical steps: which function reads which step.

use mangrove_graph::{Direction, ElementKind, Error, Result};
use mangrove_gremlin::{Bytecode, Instruction};

use super::groups::{Call, groups};
use super::site::Site;
use super::{
    NESTING_MAX, algorithms, arguments, barriers, branches, carried, connectives, elements, files, filters, functions,
    known, maps, matching, merges, policies, sources,
};
use crate::literals::Literals;
use crate::logical::function::{CollectionFunction, Function, TextFunction};
use crate::logical::{EdgeEnd, Quantifier, Reduction, Step, StepNode, Traversal};

/// A whole traversal.
pub(super) fn root(instructions: &[Instruction], literals: &Literals<'_>) -> Result<Traversal> {
    if instructions.is_empty() {
        return Err(Error::invalid(format!("the traversal has no steps; {STARTS}")));
    }
    chain(instructions, None, literals)
}

/// A traversal that is an argument of the step at `site`. An empty traversal passes its input on.
pub(super) fn child(bytecode: &Bytecode, site: &Site<'_>) -> Result<Traversal> {
    if site.depth >= NESTING_MAX {
        return Err(arguments::too_deep(site));
    }
    if let Some(source) = bytecode.source.first() {
        return Err(site.unsupported(format_args!(
            "a nested traversal has no source of its own; move `{}` to the traversal source",
            source.name
        )));
    }
    chain(&bytecode.steps, Some(site), site.literals)
}

fn chain(instructions: &[Instruction], parent: Option<&Site<'_>>, literals: &Literals<'_>) -> Result<Traversal> {
    let instructions = matching::rewrite(connectives::infix(instructions, parent.is_none()), parent, literals)?;
    let calls = groups(&instructions, parent, literals)?;
    let mut steps = Vec::with_capacity(calls.len());
    for mut call in calls {
        check_start(&call)?;
        let before = steps.len();
        compile(&mut call, &mut steps)?;
        policies::of_step(&mut call, &mut steps[before..])?;
        call.finish()?;
        if let Some(last) = steps.last_mut() {
            last.labels = call.labels;
        }
    }
    Ok(Traversal { steps })
}

const STARTS: &str = "start it with V(), E(), addV(), addE(), mergeV(), mergeE(), call(), inject(), union() or io()";

fn check_start(call: &Call<'_>) -> Result<()> {
    let starts = matches!(
        call.site.name,
        "V" | "E" | "addV" | "addE" | "mergeV" | "mergeE" | "call" | "inject" | "union" | "io"
    );
    if call.first && !starts && known::is_supported(call.site.name) {
        return Err(call.site.unsupported(format_args!("a traversal cannot start with this step; {STARTS}")));
    }
    Ok(())
}

/// Appends the steps of a call. That is one step, except that `property()` of a map is a step for each entry,
/// `addV()` has a step for each property that reads the new vertex, and `shortestPath()` has one for its condition on
/// targets.
fn compile(call: &mut Call<'_>, steps: &mut Vec<StepNode>) -> Result<()> {
    let position = call.site.position;
    let mut push = |step| steps.push(StepNode::new(step, position));
    match call.site.name {
        "property" => elements::property(call)?.into_iter().for_each(push),
        "addV" => sources::add_vertex(call)?.into_iter().for_each(push),
        "shortestPath" => algorithms::shortest_path(call)?.into_iter().for_each(push),
        _ => push(if call.is_labelled_start() { Step::Identity } else { step(call)? }),
    }
    Ok(())
}

fn step(call: &mut Call<'_>) -> Result<Step> {
    match call.site.name {
        "V" | "E" | "inject" => sources::read(call),
        "call" => sources::service(call),
        "io" => files::file(call),
        "addE" => sources::add_edge(call),
        "mergeV" => merges::upsert(call, ElementKind::Vertex),
        "mergeE" => merges::upsert(call, ElementKind::Edge),

        "drop" => plain(call, Step::Drop),
        "out" => elements::expand(call, Direction::Out, false),
        "in" => elements::expand(call, Direction::In, false),
        "both" => elements::expand(call, Direction::Both, false),
        "outE" => elements::expand(call, Direction::Out, true),
        "inE" => elements::expand(call, Direction::In, true),
        "bothE" => elements::expand(call, Direction::Both, true),
        "to" | "toE" => elements::expand_to(call),
        "toV" => elements::to_vertex(call),
        "outV" => plain(call, Step::EdgeVertex(EdgeEnd::Source)),
        "inV" => plain(call, Step::EdgeVertex(EdgeEnd::Target)),
        "bothV" => plain(call, Step::EdgeVertex(EdgeEnd::Both)),
        "otherV" => plain(call, Step::EdgeVertex(EdgeEnd::Other)),
        "values" | "properties" | "elementMap" | "propertyMap" => elements::keyed(call),
        "valueMap" => elements::value_map(call),
        "id" => plain(call, Step::Id),
        "label" => plain(call, Step::Label),
        "key" => plain(call, Step::Key),
        "value" => plain(call, Step::PropertyValue),

        "has" => filters::has(call),
        "hasLabel" => filters::has_label(call),
        "hasId" => filters::has_id(call),
        "hasKey" | "hasValue" => filters::has_property(call),
        "hasNot" => filters::has_not(call),
        "is" => filters::is(call),
        "where" => filters::where_(call),
        "filter" => filters::filter(call),
        "and" | "or" | "not" => filters::connective(call),
        "dedup" => filters::dedup(call),
        "limit" | "skip" | "range" => filters::range(call),
        "tail" => filters::tail(call),
        "timeLimit" => filters::time_limit(call),
        "simplePath" => filters::path_shape(call, true),
        "cyclicPath" => filters::path_shape(call, false),
        "none" | "discard" => filters::discard(call),

        "all" => functions::members(call, Quantifier::All),
        "any" => functions::members(call, Quantifier::Any),

        "constant" => maps::constant(call),
        "identity" => plain(call, Step::Identity),
        "unfold" => plain(call, Step::Unfold),
        "loops" => maps::loops(call),
        "path" => maps::path(call),
        "select" => maps::select(call),
        "project" => maps::project(call),
        matching::VARIABLES => maps::matched(call),
        "map" | "flatMap" | "local" | "sideEffect" => maps::nested(call),

        "count" => barriers::reduce(call, Reduction::Count),
        "sum" => barriers::reduce(call, Reduction::Sum),
        "min" => barriers::reduce(call, Reduction::Min),
        "max" => barriers::reduce(call, Reduction::Max),
        "mean" => barriers::reduce(call, Reduction::Mean),
        "fold" => barriers::fold(call),
        "order" => barriers::order(call),
        "group" => barriers::group(call),
        "groupCount" => barriers::group_count(call),
        "aggregate" | "store" => barriers::aggregate(call),
        "tree" => barriers::tree(call),
        "subgraph" => barriers::subgraph(call),
        "cap" => barriers::cap(call),
        "barrier" => barriers::barrier(call),

        "union" => branches::union(call),
        "coalesce" => branches::coalesce(call),
        "optional" => branches::optional(call),
        "choose" => branches::choose(call),
        "repeat" => branches::repeat(call),
        _ => function(call),
    }
}

/// Functions of one object.
fn function(call: &mut Call<'_>) -> Result<Step> {
    match call.site.name {
        "asString" => functions::text(call, TextFunction::AsString, 0, 0),
        "length" => functions::text(call, TextFunction::Length, 0, 0),
        "toLower" => functions::text(call, TextFunction::ToLower, 0, 0),
        "toUpper" => functions::text(call, TextFunction::ToUpper, 0, 0),
        "trim" => functions::text(call, TextFunction::Trim, 0, 0),
        "lTrim" => functions::text(call, TextFunction::TrimStart, 0, 0),
        "rTrim" => functions::text(call, TextFunction::TrimEnd, 0, 0),
        "replace" => functions::text(call, TextFunction::Replace, 2, 2),
        "split" => functions::text(call, TextFunction::Split, 1, 1),
        "substring" => functions::text(call, TextFunction::Substring, 1, 2),
        "concat" => functions::concat(call),
        "reverse" => functions::plain(call, Function::Reverse),
        "combine" => functions::collection(call, CollectionFunction::Combine),
        "conjoin" => functions::collection(call, CollectionFunction::Conjoin),
        "difference" => functions::collection(call, CollectionFunction::Difference),
        "disjunct" => functions::collection(call, CollectionFunction::Disjunct),
        "intersect" => functions::collection(call, CollectionFunction::Intersect),
        "merge" => functions::collection(call, CollectionFunction::Merge),
        "product" => functions::collection(call, CollectionFunction::Product),
        "asBool" => functions::plain(call, Function::AsBool),
        "asDate" => functions::plain(call, Function::AsDate),
        "asNumber" => functions::as_number(call),
        "dateAdd" => functions::date_add(call),
        "dateDiff" => functions::date_diff(call),
        "index" => functions::index(call),
        "element" => functions::plain(call, Function::Element),
        "sack" => carried::sack(call),
        "sample" => carried::sample(call),
        "coin" => carried::coin(call),
        "fail" => carried::fail(call),
        "branch" => branches::branch(call),
        "pageRank" | "peerPressure" | "connectedComponent" => algorithms::vertex_program(call),
        "math" => functions::math(call),
        "format" => functions::format(call),
        _ => Err(known::not_supported(&call.site)),
    }
}

/// A step without arguments.
fn plain(call: &Call<'_>, step: Step) -> Result<Step> {
    match call.arguments {
        [] => Ok(step),
        given => Err(arguments::misfit(&call.site, "no arguments", given)),
    }
}
