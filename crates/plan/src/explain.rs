//! `explain()`: the plan as text, a line an operator, scopes indented.

use crate::logical::{Condition, Operand, Test};
use crate::physical::{Access, LocalKind, LoopTest, Op, PathRequirement, PhysicalPlan, Pipeline, SlotBy, Stage};

/// The plan as text.
pub fn explain(plan: &PhysicalPlan) -> String {
    let mut text = String::new();
    let path = match &plan.requirements.path {
        PathRequirement::None => "none".to_owned(),
        PathRequirement::Labels(names) => format!("labels {}", names.join(", ")),
        PathRequirement::Full => "whole".to_owned(),
    };
    text.push_str(&format!("path: {path}"));
    if plan.requirements.loops {
        text.push_str("; loop counters");
    }
    if plan.mutating {
        text.push_str("; writes");
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
    for Stage { operator, labels } in &pipeline.stages {
        let mut what = describe(operator);
        if !labels.is_empty() {
            what.push_str(&format!(" as {}", labels.join(", ")));
        }
        line(depth, &what, text);
        nested(operator, depth + 1, text);
    }
}

fn nested(operator: &Op, depth: usize, text: &mut String) {
    let mut scope = |name: &str, inner: &Pipeline| {
        line(depth, name, text);
        pipeline(inner, depth + 1, text);
    };
    match operator {
        Op::Modulate(modulate) => {
            for by in &modulate.by {
                match by {
                    SlotBy::First(inner) => scope("first of", inner),
                    SlotBy::Exists(inner) => scope("whether", inner),
                    _ => {}
                }
            }
        }
        Op::Local(local) => match &local.kind {
            LocalKind::Filter(_, inner) => inner.iter().for_each(|p| scope("scope", p)),
            LocalKind::FlatMap { pipelines, .. } => pipelines.iter().for_each(|p| scope("scope", p)),
            LocalKind::SideEffect(inner) => scope("scope", inner),
        },
        Op::Union(branches) => branches.iter().for_each(|p| scope("branch", p)),
        Op::Switch { options } => options.iter().for_each(|(when, p)| scope(&format!("option {when:?}"), p)),
        Op::Group { value, .. } => scope("members", value),
        Op::Ordered { pipeline: inner, .. } => scope("in order", inner),
        Op::Repeat(repeat) => {
            for (name, test) in [("until", &repeat.until), ("emit", &repeat.emit)] {
                match test {
                    Some(LoopTest::Exists(inner)) => scope(name, inner),
                    Some(LoopTest::Times(n)) => scope(&format!("times {}", operand(n)), &Pipeline::default()),
                    Some(LoopTest::Always) => scope(name, &Pipeline::default()),
                    Some(LoopTest::Test(t)) => scope(&format!("{name} {}", test_text(t)), &Pipeline::default()),
                    None => {}
                }
            }
            scope("body", &repeat.body);
        }
        _ => {}
    }
}

/// What an operator is, in a few words.
pub fn describe(operator: &Op) -> String {
    let labels_of = |labels: &[crate::logical::Name]| match labels {
        [] => String::new(),
        names => format!(" {}", names.join(" | ")),
    };
    let direction = |d: &mangrove_graph::Direction| format!("{d:?}").to_lowercase();
    match operator {
        Op::Vertices { access, conditions } => {
            format!("vertices {}{}", access_text(access), conditions_text(conditions))
        }
        Op::Edges { ids, conditions } => {
            let by = ids.as_ref().map_or("all".to_owned(), |ids| format!("by {} ids", ids.len()));
            format!("edges {by}{}", conditions_text(conditions))
        }
        Op::CountAll { edges, labels } => {
            let what = if *edges { "edges" } else { "vertices" };
            format!("count all {what}{}", labels_of(labels.as_deref().unwrap_or_default()))
        }
        Op::CountExpand { direction: d, labels } => format!("count {}{}", direction(d), labels_of(labels)),
        Op::Expand { direction: d, labels, to_edges } => {
            format!("expand {}{}{}", direction(d), if *to_edges { " edges" } else { "" }, labels_of(labels))
        }
        Op::EdgeVertex(end) => format!("edge end {end:?}").to_lowercase(),
        Op::Filter(conditions) => format!("filter{}", conditions_text(conditions)),
        Op::HasEdges { direction: d, labels, negate } => {
            format!("{} edge {}{}", if *negate { "has no" } else { "has" }, direction(d), labels_of(labels))
        }
        Op::Is(test) => format!("is {}", test_text(test)),
        Op::Modulate(modulate) => format!("by: {} slot(s) over {:?}", modulate.by.len(), modulate.over),
        Op::Values(keys) => format!("values{}", labels_of(keys)),
        Op::Properties(keys) => format!("properties{}", labels_of(keys)),
        Op::Dedup { slots: 0 } => "dedup".to_owned(),
        Op::Dedup { slots } => format!("dedup by {slots} slot(s)"),
        Op::Order { orders, limit } => {
            let top = limit.as_ref().map_or(String::new(), |l| format!(", first {}", operand(l)));
            format!("order {}{top}", orders.iter().map(|o| o.name()).collect::<Vec<_>>().join(", "))
        }
        Op::Range { low, high } => {
            format!("range {}..{}", operand(low), high.as_ref().map_or(String::new(), operand))
        }
        Op::Reduce(reduction) => format!("{reduction:?}").to_lowercase(),
        Op::Local(local) => {
            let turn = if local.serial { ", one after the other" } else { "" };
            let kind = match &local.kind {
                LocalKind::Filter(kind, _) => format!("filter by {kind:?}").to_lowercase(),
                LocalKind::FlatMap { first: true, .. } => "first result".to_owned(),
                LocalKind::FlatMap { .. } => "results".to_owned(),
                LocalKind::SideEffect(_) => "side effect".to_owned(),
            };
            format!("scope a row: {kind}{turn}")
        }
        Op::Union(branches) => format!("union of {}", branches.len()),
        Op::Switch { options } => format!("choose among {}", options.len()),
        Op::Repeat(_) => "repeat".to_owned(),
        Op::Group { .. } => "group: scope a key".to_owned(),
        Op::GroupCount { .. } => "group count".to_owned(),
        Op::Aggregate(name) => format!("aggregate {name}"),
        Op::Cap(names) => format!("cap {}", names.join(", ")),
        other => name_of(other).to_owned(),
    }
}

/// The names of operators that need no detail.
fn name_of(operator: &Op) -> &'static str {
    match operator {
        Op::Inject(_) => "inject",
        Op::CompareSlots(_) => "compare slots",
        Op::PathShape { simple: true, .. } => "simple path",
        Op::PathShape { simple: false, .. } => "cyclic path",
        Op::Discard => "discard",
        Op::ValueMap { .. } => "value map",
        Op::ReplaceMapValues => "replace map values",
        Op::ElementMap(_) => "element map",
        Op::Token(mangrove_graph::Token::Id) => "id",
        Op::Token(mangrove_graph::Token::Label) => "label",
        Op::Token(mangrove_graph::Token::Key) => "key",
        Op::Token(mangrove_graph::Token::Value) => "value",
        Op::Constant(_) => "constant",
        Op::Identity => "identity",
        Op::Unfold => "unfold",
        Op::Loops(_) => "loops",
        Op::LocalReduce(_) => "reduce locally",
        Op::LocalDedup => "dedup locally",
        Op::LocalRange { .. } => "range locally",
        Op::LocalTail(_) => "tail locally",
        Op::LocalOrder(_) => "order locally",
        Op::Path { .. } => "path",
        Op::SlotMap { single: true, .. } => "select",
        Op::SlotMap { .. } => "map of slots",
        Op::SelectColumn(_) => "select column",
        Op::Tail(_) => "tail",
        Op::Barrier => "barrier",
        Op::AddVertex { .. } => "add vertex",
        Op::AddEdge { .. } => "add edge",
        Op::SetProperty(_) => "set property",
        Op::Drop => "drop",
        Op::Ordered { .. } => "ordered",
        _ => "operator",
    }
}

fn access_text(access: &Access) -> String {
    match access {
        Access::All => "all".to_owned(),
        Access::Labels(names) => format!("with label {}", names.join(" | ")),
        Access::Ids(ids) | Access::IdSet(ids) => format!("by {} id(s)", ids.len()),
        Access::Index { description, .. } => format!("by index {description}"),
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
    }
}

fn test_text(test: &Test) -> String {
    let all = |tests: &[Test], word: &str| tests.iter().map(test_text).collect::<Vec<_>>().join(word);
    match test {
        Test::Compare(comparison, o) => format!("{comparison:?} {}", operand(o)).to_lowercase(),
        Test::Within(os) => format!("within {} value(s)", os.len()),
        Test::Without(os) => format!("without {} value(s)", os.len()),
        Test::Text(operation, o) => format!("{operation:?} {}", operand(o)),
        Test::And(tests) => all(tests, " and "),
        Test::Or(tests) => all(tests, " or "),
        Test::Not(test) => format!("not ({})", test_text(test)),
    }
}

fn operand(operand: &Operand) -> String {
    match operand {
        Operand::Literal(value) => mangrove_gremlin::Argument::Value(value.clone()).to_string(),
        Operand::Parameter(name) => format!("${name}"),
        Operand::List(operands) => format!("[{}]", operands.iter().map(self::operand).collect::<Vec<_>>().join(", ")),
    }
}
