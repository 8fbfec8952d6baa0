//! `explain()`: the plan as text, one line for each operator, with the content of scopes indented.
//!
//! An operator through which the stream does not go message by message says how it goes: as a barrier, or as a branch.
//!
//! The golden tests compare this text. Literals that were taken out of a traversal are shown by their values, which
//! each run puts in.

mod tree;

use mangrove_graph::{ElementKind, Value, numeric};

pub use tree::{PlanNode, PlanTree};

use crate::logical::algorithm::{EdgeChoice, SearchResults};
use crate::logical::{ChooseOption, Condition, FilterKind, LabelTest, LoopSearch, Operand, Test};
use crate::physical::{
    Access, Computation, ComputedOperand, CountOf, Degree, DegreeTest, EdgeTo, EdgesOf, Factor, FactorForm, Leg,
    LocalKind, LoopTest, Modulate, Op, Over, Pairing, PathRequirement, PatternCount, PhysicalPlan, Pipeline, Purpose,
    RepeatScope, Scheduling, Stage, TARGETS_MAX, TargetAccess, Weighing,
};

/// The plan as text.
pub fn explain(plan: &PhysicalPlan) -> String {
    let mut text = String::new();
    for choice in &plan.choices {
        line(0, choice, &mut text);
    }
    let path = match &plan.requirements.path {
        PathRequirement::None => "none".to_owned(),
        PathRequirement::Labels(names) => format!("labels {}", names.join(", ")),
        PathRequirement::Full => "whole".to_owned(),
    };
    text.push_str(&format!("path: {path}"));
    if !plan.requirements.bindings.is_empty() {
        text.push_str(&format!("; binding columns {}", plan.requirements.bindings.join(", ")));
    }
    if plan.requirements.loops {
        text.push_str("; loop counters");
    }
    if let Some(reason) = plan.reason_for_one_thread() {
        text.push_str(&format!("; on one thread: {reason}"));
    }
    text.push('\n');
    pipeline(&plan.root, 0, &mut text);
    text
}

fn line(depth: usize, what: &str, text: &mut String) {
    text.push_str(&"  ".repeat(depth));
    text.push_str(what);
    text.push('\n');
}

fn pipeline(pipeline: &Pipeline, depth: usize, text: &mut String) {
    for Stage { operator, labels, expected } in &pipeline.stages {
        let mut what = describe(operator);
        if !labels.is_empty() {
            what.push_str(&format!(" as {}", labels.join(", ")));
        }
        what.push_str(tree::flow_text(operator.flow()));
        if let Some(rows) = expected {
            what.push_str(&tree::expected_text(*rows));
        }
        line(depth, &what, text);
        nested(operator, depth + 1, text);
    }
}

fn scope(name: &str, inner: &Pipeline, depth: usize, text: &mut String) {
    line(depth, name, text);
    pipeline(inner, depth + 1, text);
}

fn nested(operator: &Op, depth: usize, text: &mut String) {
    match operator {
        Op::Repeat(repeat) => return nested_loop(repeat, depth, text),
        Op::CountPattern(count) => weighings(count, depth, text),
        _ => {}
    }
    operator.visit_nested(&mut |purpose, inner| match purpose {
        Purpose::FirstResult => scope("first result of", inner, depth, text),
        Purpose::Existence => scope("whether there is a result of", inner, depth, text),
        Purpose::Scope => scope("scope", inner, depth, text),
        Purpose::Branch => scope("branch", inner, depth, text),
        Purpose::Option(when) => scope(&option_text(when), inner, depth, text),
        Purpose::Members => scope("members", inner, depth, text),
        Purpose::Body => scope("body", inner, depth, text),
        Purpose::Until => scope("until", inner, depth, text),
        Purpose::Emit => scope("emit", inner, depth, text),
        Purpose::Ordered => pipeline(inner, depth, text),
        Purpose::Instead => scope("on several nodes", inner, depth, text),
        Purpose::Otherwise => scope(&otherwise_text(), inner, depth, text),
    });
}

/// How the variables of a pattern are weighed, a line for each.
fn weighings(count: &PatternCount, depth: usize, text: &mut String) {
    let ends = |ends: Option<usize>| ends.map_or(String::new(), |number| format!(" to weight {number}"));
    let leg = |leg: &Leg| format!("{}{}", edges_text(&leg.edges), ends(leg.ends));
    let factor = |factor: &Factor| {
        let form = match factor.form {
            FactorForm::Sum => "sum",
            FactorForm::AtLeastOne => "sum, at least 1,",
            FactorForm::Some => "is there an edge",
            FactorForm::None => "is there no edge",
        };
        format!(" × {form} {}{}", edges_text(&factor.edges), ends(factor.ends))
    };
    let weighing = |weighing: &Weighing| {
        let labels = weighing.labels.as_ref().map_or("all".to_owned(), |names| names.join(" | "));
        let factors: String = weighing.factors.iter().map(factor).collect();
        format!("{labels}{}{factors}", conditions_text(&weighing.conditions))
    };
    for (number, of) in count.weighings.iter().enumerate() {
        line(depth, &format!("weight {number}: {}", weighing(of)), text);
    }
    let made = match count.of {
        CountOf::AllMatches => "sum over",
        CountOf::EachRoot => "bulk of each",
    };
    line(depth, &format!("{made} {}", weighing(&count.root)), text);
    match &count.pairing {
        None => {}
        Some(Pairing::Neighbors { first, second }) => {
            line(depth, &format!("  × different pairs of {} and {}", leg(first), leg(second)), text);
        }
        Some(Pairing::Walk(walk)) => {
            let mut what = format!(
                "  × walks {} to weight {} and {} to weight {}",
                edges_text(&walk.first),
                walk.middle,
                edges_text(&walk.second),
                walk.ends
            );
            if let Some((edges, is_there)) = &walk.closing {
                what += &format!(", with {} {}", if *is_there { "an edge" } else { "no edge" }, edges_text(edges));
            }
            if walk.differs {
                what += ", not back";
            }
            if let Some(sibling) = &walk.sibling {
                what += &format!(", × other {}", leg(sibling));
            }
            line(depth, &what, text);
        }
    }
}

/// The parts of a loop, in the order in which rows come to them.
fn nested_loop(repeat: &RepeatScope, depth: usize, text: &mut String) {
    let tests = [("until", &repeat.until, repeat.until_first), ("emit", &repeat.emit, repeat.emit_first)];
    let some = |before: bool, text: &mut String| {
        for (name, test, first) in tests {
            match test {
                Some(test) if first == before => loop_test(name, test, depth, text),
                _ => {}
            }
        }
    };
    some(true, text);
    scope("body", &repeat.body, depth, text);
    some(false, text);
}

fn loop_test(name: &str, test: &LoopTest, depth: usize, text: &mut String) {
    match test {
        LoopTest::Always => line(depth, &format!("{name} always"), text),
        LoopTest::Times(times) => line(depth, &format!("{name} {} iterations", number(times)), text),
        LoopTest::Test(test) => line(depth, &format!("{name} {}", test_text(test)), text),
        LoopTest::Exists(inner) => scope(&format!("{name} there is a result of"), inner, depth, text),
    }
}

fn option_text(when: &ChooseOption) -> String {
    match when {
        ChooseOption::True => "option true".to_owned(),
        ChooseOption::False => "option false".to_owned(),
        ChooseOption::Value(value) => format!("option {}", operand(value)),
        ChooseOption::Test(test) => format!("option {}", test_text(test)),
        ChooseOption::None => "otherwise".to_owned(),
        ChooseOption::Any => "always".to_owned(),
        ChooseOption::Unproductive => "option unproductive".to_owned(),
    }
}

/// The line of the search that runs instead of one from both ends.
fn otherwise_text() -> String {
    format!("{} more than {TARGETS_MAX} vertices", tree::OTHERWISE)
}

/// `out knows to a`
fn edge_text(edge: &EdgeTo) -> String {
    let direction = format!("{:?}", edge.direction).to_lowercase();
    let labels = if edge.labels.is_empty() { String::new() } else { format!(" {}", edge.labels.join(" | ")) };
    format!("{direction}{labels} to {}", edge.name)
}

/// `out knows`
pub(crate) fn edges_text(edges: &EdgesOf) -> String {
    let direction = format!("{:?}", edges.direction).to_lowercase();
    if edges.labels.is_empty() { direction } else { format!("{direction} {}", edges.labels.join(" | ")) }
}

/// `degree out knows`
fn degree_text(degree: &Degree) -> String {
    let direction = format!("{:?}", degree.direction).to_lowercase();
    let labels = if degree.labels.is_empty() { String::new() } else { format!(" {}", degree.labels.join(" | ")) };
    let least = if degree.optional { " (at least 1)" } else { "" };
    format!("degree {direction}{labels}{least}")
}

/// An operator in a few words, as a line of the plan.
pub fn describe(operator: &Op) -> String {
    let labels_of = |labels: &[crate::logical::Name]| match labels {
        [] => String::new(),
        names => format!(" {}", names.join(" | ")),
    };
    let direction = |d: &mangrove_graph::Direction| format!("{d:?}").to_lowercase();
    let chosen = |edges: &EdgeChoice| format!("{}{}", direction(&edges.direction), labels_of(&edges.labels));
    match operator {
        Op::Vertices { access, conditions } => {
            format!("vertices {}{}", access_text(access), conditions_text(conditions))
        }
        Op::Edges { access, conditions } => {
            format!("edges {}{}", access_text(access), conditions_text(conditions))
        }
        Op::CountAll { kind, labels } => {
            let what = match kind {
                ElementKind::Vertex => "vertices",
                ElementKind::Edge => "edges",
            };
            format!("count all {what}{}", labels_of(labels.as_deref().unwrap_or_default()))
        }
        Op::CountExpand(Degree { direction: d, labels, optional, .. }) => {
            let least = if *optional { ", at least one a row" } else { "" };
            format!("count {}{}{least}", direction(d), labels_of(labels))
        }
        Op::Expand { direction: d, labels, to_edges } => {
            format!("expand {}{}{}", direction(d), if *to_edges { " edges" } else { "" }, labels_of(labels))
        }
        Op::OptionalExpand { direction: d, labels, to_edges } => {
            let edges = if *to_edges { " edges" } else { "" };
            format!("optional expand {}{edges}{}", direction(d), labels_of(labels))
        }
        Op::FollowTo { edge, stays: false } => format!("follow {}", edge_text(edge)),
        Op::FollowTo { edge, stays: true } => format!("once for each edge {}", edge_text(edge)),
        Op::HasEdgeTo { edge, negate } => {
            format!("has {} {}", if *negate { "no edge" } else { "edge" }, edge_text(edge))
        }
        Op::Intersect { direction: d, labels, closings } => {
            let closings = closings.iter().map(edge_text).collect::<Vec<_>>().join(" and ");
            format!("expand {}{} to what has an edge {closings}", direction(d), labels_of(labels))
        }
        Op::BothEnds(search) => {
            let along = format!("{}{}", direction(&search.direction), labels_of(&search.labels));
            let edges = conditions_text(&search.edges);
            let vertices = conditions_text(&search.vertices);
            let tests = |of: &str, text: String| if text.is_empty() { text } else { format!(", {of}{text}") };
            let bound = if search.bound.is_some() { ", bounded" } else { "" };
            let found_by = match &search.found_by {
                TargetAccess::Ids(_) => String::new(),
                TargetAccess::Index(access) => format!(" {access}"),
            };
            format!(
                "search from both ends along {along}{}{}, to{found_by}{}{bound}",
                tests("edges", edges),
                tests("vertices", vertices),
                conditions_text(&search.target)
            )
        }
        Op::EdgeVertex(end) => format!("edge end {end:?}").to_lowercase(),
        Op::Filter(conditions) => format!("filter{}", conditions_text(conditions)),
        Op::HasEdges { direction: d, labels, negate } => {
            format!("{} edge {}{}", if *negate { "has no" } else { "has" }, direction(d), labels_of(labels))
        }
        Op::TestDegrees { kind, tests } => {
            let test = |test: &DegreeTest| format!("{} {}", degree_text(&test.degree), test_text(&test.test));
            let has = if *kind == FilterKind::None { "has no" } else { "has" };
            format!("{has} {}", tests.iter().map(test).collect::<Vec<_>>().join(" or "))
        }
        Op::Is(test) => format!("is {}", test_text(test)),
        Op::Modulate(modulate) => modulate_text(modulate),
        Op::Constant(value) => format!("constant {}", operand(value)),
        Op::SelectName { name, .. } => format!("select {name}"),
        Op::ComputedMap { single: false, names, .. } => format!("map of {}", names.join(", ")),
        Op::CompareComputed(test) => format!("compare {}", label_test_text(test)),
        Op::Tail(count) => format!("tail {}", number(count)),
        Op::AddVertex { label, properties, .. } => {
            format!("add vertex {}, {} properties", computed_operand(label), properties.len())
        }
        Op::AddEdge { label, properties, .. } => {
            format!("add edge {}, {} properties", computed_operand(label), properties.len())
        }
        Op::SetProperty(property) => format!("set property {} {}", property.key, computed_operand(&property.value)),
        Op::Values(keys) => format!("values{}", labels_of(keys)),
        Op::Properties(keys) => format!("properties{}", labels_of(keys)),
        Op::Dedup { computed: 0 } => "dedup".to_owned(),
        Op::Dedup { computed } => format!("dedup by {computed} computed column(s)"),
        Op::Order { orders, limit } => {
            let top = limit.as_ref().map_or(String::new(), |l| format!(", first {}", number(l)));
            format!("order {}{top}", orders.iter().map(|o| o.name()).collect::<Vec<_>>().join(", "))
        }
        Op::Range { low, high } => {
            format!("range {}..{}", number(low), high.as_ref().map_or(String::new(), number))
        }
        Op::Reduce(reduction) => format!("{reduction:?}").to_lowercase(),
        Op::ReduceMany { of, reductions } => {
            let names: Vec<String> = reductions.iter().map(|r| format!("{r:?}").to_lowercase()).collect();
            format!("{}{}", names.join(", "), of.key().map_or(String::new(), |key| format!(" of {key}")))
        }
        Op::ReduceValues { key, reduction } => format!("{} of {key}", format!("{reduction:?}").to_lowercase()),
        Op::Local(local) => {
            let turn = match (local.serial, local.ordered) {
                (true, _) => ", one after the other",
                (false, true) => ", in order",
                (false, false) => "",
            };
            let kind = match &local.kind {
                LocalKind::Filter(kind, _) => format!("filter by {kind:?}").to_lowercase(),
                LocalKind::FlatMap { first: true, .. } => "first result".to_owned(),
                LocalKind::FlatMap { otherwise_row: true, .. } => "results, or the row".to_owned(),
                LocalKind::FlatMap { pipelines, .. } if pipelines.len() > 1 => {
                    "results of the first that has any".to_owned()
                }
                LocalKind::FlatMap { .. } => "results".to_owned(),
                LocalKind::SideEffect(_) => "side effect".to_owned(),
            };
            let once = if local.by_object { ", equal rows once" } else { "" };
            let early = if local.passes_early { ", each row passes at its first result" } else { "" };
            let policy = policy_text(&local.scheduling, "instances");
            let together = match local.stays_together {
                // The line says so already.
                Some(_) if local.serial || local.ordered => String::new(),
                Some(why) => format!(", heavy instances stay with the others: {why}"),
                None => String::new(),
            };
            format!("scope a row: {kind}{turn}{once}{early}{policy}{together}")
        }
        Op::Ordered { always: true, .. } => "keep the order".to_owned(),
        Op::Ordered { .. } => "keep the order between nodes".to_owned(),
        Op::Union(branches) => format!("union of {}", branches.len()),
        Op::Join { names, .. } => {
            let names: Vec<String> = names.iter().map(|name| format!(" and {name}")).collect();
            format!("join of two walks by their ends{}", names.concat())
        }
        Op::Switch { options, .. } => format!("choose among {}", options.len()),
        Op::Repeat(repeat) => {
            let once = match (repeat.search, repeat.once) {
                (LoopSearch::Search(_), _) => " as a search for the first arrival, each vertex once".to_owned(),
                (LoopSearch::Unknown | LoopSearch::Not(_), true) => ", each vertex once".to_owned(),
                (LoopSearch::Not(why), false) => format!(", enumerates simple paths: {why}"),
                (LoopSearch::Unknown, false) => String::new(),
            };
            let scheduling = Scheduling { policy: repeat.policy(), ..repeat.scheduling };
            let instances = if scheduling.policy.priority().is_some() { "traversers" } else { "iterations" };
            format!("repeat{once}{}", policy_text(&scheduling, instances))
        }
        Op::Group { exceeds_limit: true, .. } => {
            "group: scope a key, no limit on instances because each key has one until the stream ends".to_owned()
        }
        Op::Group { .. } => "group: scope a key".to_owned(),
        Op::GroupCount { .. } => "group count".to_owned(),
        Op::MemberOfName { found, name, .. } => format!("is {}within {name}", if *found { "" } else { "not " }),
        Op::CompareName { equal, name, .. } => format!("is {}{name}", if *equal { "" } else { "not " }),
        Op::Aggregate(name) => format!("aggregate {name}"),
        Op::Tree { side_effect: Some(name), .. } => format!("tree {name}"),
        Op::Subgraph(name) => format!("subgraph {name}"),
        Op::Cap(names) => format!("cap {}", names.join(", ")),
        Op::Function { function, .. } => function.name().to_owned(),
        Op::Members(quantifier, test) => format!("{quantifier:?} members {}", test_text(test)).to_lowercase(),
        Op::VertexProgram(program) => {
            format!("{} as {}, along {}", program.kind.step(), program.key, chosen(&program.edges))
        }
        Op::ShortestPath(search) => {
            let of = match search.results {
                SearchResults::Paths => "shortest paths",
                SearchResults::Pairs => "ends of shortest paths",
                SearchResults::PathsOfPairs => "shortest paths between these ends",
            };
            format!("{of}, along {}", chosen(&search.edges))
        }
        Op::Call { service, .. } => format!("call {}", service.as_deref().unwrap_or("--list")),
        other => other.name().to_owned(),
    }
}

/// The computations of a [`Modulate`], and the objects that they work on.
pub fn modulate_text(modulate: &Modulate) -> String {
    let takes = |by: &Computation| match by {
        Computation::Identity => "itself".to_owned(),
        Computation::Key(key) => key.to_string(),
        Computation::Priority(key) => format!("{key}, which orders the work"),
        Computation::Token(token) => format!("T.{}", format!("{token:?}").to_lowercase()),
        Computation::Column(column) => column.name().to_owned(),
        Computation::Degree(degree) => degree_text(degree),
        Computation::Test(test) => test_text(test),
        Computation::First(_) => "first result".to_owned(),
        Computation::Exists(_) => "whether there is a result".to_owned(),
    };
    let of = match &modulate.over {
        Over::Current => "the object".to_owned(),
        Over::PathObjects(_) | Over::TreeObjects => "the objects of the path".to_owned(),
        Over::Elements => "the elements".to_owned(),
        Over::MapValues => "the values of the map".to_owned(),
        Over::Names(names) => {
            let name = |(name, _): &(Option<crate::logical::Name>, _)| match name {
                Some(name) => format!("`{name}`"),
                None => "the object".to_owned(),
            };
            names.iter().map(name).collect::<Vec<_>>().join(", ")
        }
    };
    let policy = policy_text(&modulate.scheduling, "instances");
    format!("take of {of}: {}{policy}", modulate.by.iter().map(takes).collect::<Vec<_>>().join(", "))
}

/// `, bfs between instances and dfs inside, at most 7 at a time`; nothing if nothing is asked for.
fn policy_text(scheduling: &Scheduling, instances: &str) -> String {
    let policy = &scheduling.policy;
    let orders = match &policy.orders {
        Some(orders) => format!(", {} between {instances} and {} inside", orders.between, orders.inside.name()),
        None if scheduling.fixed_by.is_some() => ", default order".to_owned(),
        None => String::new(),
    };
    let max = policy.instances_max.map_or(String::new(), |max| format!(", at most {max} at a time"));
    let fixed = scheduling.fixed_by.map_or(String::new(), |why| format!(" because {why}"));
    orders + &fixed + &max
}

fn computed_operand(value: &ComputedOperand) -> String {
    match value {
        ComputedOperand::Operand(value) => operand(value),
        ComputedOperand::Computed(column) => format!("computed column {column}"),
    }
}

fn label_test_text(test: &LabelTest) -> String {
    let all = |tests: &[LabelTest], word: &str| tests.iter().map(label_test_text).collect::<Vec<_>>().join(word);
    match test {
        LabelTest::Compare(comparison, name) => format!("{} `{name}`", format!("{comparison:?}").to_lowercase()),
        LabelTest::Within(names) => format!("within `{}`", names.join("`, `")),
        LabelTest::Without(names) => format!("without `{}`", names.join("`, `")),
        LabelTest::Text(operation, name) => format!("{operation:?} `{name}`"),
        LabelTest::And(tests) => all(tests, " and "),
        LabelTest::Or(tests) => all(tests, " or "),
        LabelTest::Not(test) => format!("not ({})", label_test_text(test)),
    }
}

fn access_text(access: &Access) -> String {
    match access {
        Access::All => "all".to_owned(),
        Access::Labels(names) => format!("with label {}", names.join(" | ")),
        Access::Where { labels, key, test } => {
            let labels = labels.as_ref().map_or("all".to_owned(), |names| format!("with label {}", names.join(" | ")));
            format!("{labels} where {key} {}", test_text(test))
        }
        Access::Ids(ids) | Access::IdSet(ids) => format!("by {} id(s)", ids.len()),
        Access::Index(access) => access.to_string(),
    }
}

fn conditions_text(conditions: &[Condition]) -> String {
    let texts: Vec<String> = conditions.iter().map(condition_text).collect();
    if texts.is_empty() { String::new() } else { format!(" [{}]", texts.join(", ")) }
}

fn condition_text(condition: &Condition) -> String {
    match condition {
        Condition::LabelIn(names) => format!("label {}", names.join(" | ")),
        Condition::Label(test) => format!("label {}", test_text(test)),
        Condition::Id(test) => format!("id {}", test_text(test)),
        Condition::Property(key, test) => format!("{key} {}", test_text(test)),
        Condition::HasKey(key) => format!("has {key}"),
        Condition::HasNot(key) => format!("has no {key}"),
        Condition::PropertyKey(test) => format!("key {}", test_text(test)),
        Condition::PropertyValue(test) => format!("value {}", test_text(test)),
        Condition::AnyOf(branches) => {
            let branch = |branch: &Vec<Condition>| branch.iter().map(condition_text).collect::<Vec<_>>().join(" and ");
            format!("({})", branches.iter().map(branch).collect::<Vec<_>>().join(" or "))
        }
    }
}

fn test_text(test: &Test) -> String {
    let all = |tests: &[Test], word: &str| tests.iter().map(test_text).collect::<Vec<_>>().join(word);
    match test {
        Test::Compare(comparison, o) => format!("{} {}", format!("{comparison:?}").to_lowercase(), operand(o)),
        Test::Within(os) => format!("within {} value(s)", members(os)),
        Test::Without(os) => format!("without {} value(s)", members(os)),
        Test::Text(operation, o) => format!("{operation:?} {}", operand(o)),
        Test::TypeOf(of) => format!("of type {}", of.token()),
        Test::And(tests) => all(tests, " and "),
        Test::Or(tests) => all(tests, " or "),
        Test::Not(test) => format!("not ({})", test_text(test)),
    }
}

/// A count or position, without the suffix of its type.
fn number(number: &Operand) -> String {
    match number {
        Operand::Lifted(number) => format!("{LIFTED}{PLAIN}{number}{LIFTED}"),
        known => known.literal_integer().map_or_else(|| operand(known), |n| n.to_string()),
    }
}

/// The number of members of a choice of values.
fn members(operands: &[Operand]) -> String {
    match operands {
        [Operand::Lifted(number)] => format!("{LIFTED}{MEMBERS}{number}{LIFTED}"),
        operands => operands.len().to_string(),
    }
}

/// Stands on both sides of the number of a literal that was taken out of the traversal. It is a code point that is no
/// character, so no text of a traversal should contain it.
const LIFTED: char = '\u{fdd0}';

/// Stands before the number of a literal that is shown without the suffix of its type.
const PLAIN: char = '#';

/// Stands before the number of a literal of which the number of members is shown.
const MEMBERS: char = '*';

/// A part of the text of a plan, with literals that were taken out in their positions.
pub fn with_literals(text: &str, literals: &[Value]) -> String {
    let shown = |(at, part): (usize, &str)| {
        let number = part.trim_start_matches([PLAIN, MEMBERS]).parse::<usize>().ok().filter(|_| at % 2 == 1);
        let Some(value) = number.and_then(|number| literals.get(number)) else { return part.to_owned() };
        match (part.chars().next(), value, numeric::integer(value)) {
            (Some(MEMBERS), Value::List(members), _) => members.len().to_string(),
            (Some(MEMBERS), _, _) => "1".to_owned(),
            (Some(PLAIN), _, Some(number)) => number.to_string(),
            (_, value, _) => mangrove_gremlin::Argument::Value(value.clone()).to_string(),
        }
    };
    text.split(LIFTED).enumerate().map(shown).collect()
}

fn operand(operand: &Operand) -> String {
    match operand {
        Operand::Literal(value) => mangrove_gremlin::Argument::Value(value.clone()).to_string(),
        Operand::Parameter(name) => format!("${name}"),
        Operand::Lifted(number) => format!("{LIFTED}{number}{LIFTED}"),
        Operand::Vertex(id) => format!("the vertex {id:?}"),
        Operand::Edge(id) => format!("the edge {id:?}"),
        Operand::Map(entries) => format!("a map of {}", entries.len()),
        Operand::List(operands) => format!("[{}]", operands.iter().map(self::operand).collect::<Vec<_>>().join(", ")),
    }
}
