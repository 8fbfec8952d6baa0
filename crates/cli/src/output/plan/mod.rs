//! The answers to `explain()` and `profile()`: as text for people, as JSON for programs, as a graph for Graphviz.

mod dot;
#[cfg(test)]
mod tests;

use std::io::Write;

use clap::ValueEnum;
use mangrove::{Flow, OperatorMetrics, PlanNode, PlanTree, TraversalMetrics, Value};
use serde_json::{Map, Value as Json};

use super::json::json as to_json;
use super::text::text;
use crate::Failure;

/// How a plan is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PlanFormat {
    /// An operator a line, with the content of scopes indented
    #[default]
    Tree,
    /// The same tree as JSON
    Json,
    /// A graph for Graphviz, as in `| dot -Tsvg`
    Dot,
}

/// Prints the answer to `explain()` or `profile()`.
pub fn print(answer: &Value, format: PlanFormat, out: &mut dyn Write) -> Result<(), Failure> {
    match format {
        PlanFormat::Tree => writeln!(out, "{}", text(answer).trim_end())?,
        PlanFormat::Json => writeln!(out, "{:#}", Plan::of(answer).json())?,
        PlanFormat::Dot => write!(out, "{}", dot::graph(&Plan::of(answer)))?,
    }
    Ok(())
}

/// A plan: what is said about it as a whole, and its operators.
struct Plan {
    about: Vec<(String, Json)>,
    operators: Vec<Operator>,
}

/// An operator, or a part of a scope.
struct Operator {
    name: String,
    figures: Vec<(String, Json)>,
    /// It is a part of the scope around it, as the body of a loop is.
    is_part: bool,
    inside: Vec<Operator>,
}

impl Plan {
    fn of(answer: &Value) -> Self {
        match answer {
            Value::TraversalMetrics(metrics) => Plan::measured(metrics),
            other => Plan::explained(PlanTree::read(&text(other))),
        }
    }

    fn explained(tree: PlanTree) -> Self {
        let about = tree.about.into_iter().map(|(topic, said)| (topic, Json::from(said)));
        Plan { about: about.collect(), operators: tree.operators.into_iter().map(Operator::explained).collect() }
    }

    fn measured(metrics: &TraversalMetrics) -> Self {
        let mut about = vec![("ms".to_owned(), millis(metrics.nanos))];
        let (of_run, operators): (Vec<_>, Vec<_>) = metrics.operators.iter().partition(|one| is_of_run(one));
        about.extend(of_run.into_iter().map(|run| (run.id.to_string(), Json::Object(annotations(run).collect()))));
        Plan { about, operators: operators.into_iter().map(Operator::measured).collect() }
    }

    fn json(&self) -> Json {
        let mut plan: Map<String, Json> = self.about.iter().cloned().collect();
        plan.insert("operators".to_owned(), self.operators.iter().map(Operator::json).collect());
        Json::Object(plan)
    }
}

/// Returns true for the entry with the figures of the whole run, which is no operator.
fn is_of_run(metrics: &OperatorMetrics) -> bool {
    metrics.counts.is_empty() && metrics.nested.is_empty() && metrics.id.parse::<u64>().is_err()
}

fn annotations(metrics: &OperatorMetrics) -> impl Iterator<Item = (String, Json)> {
    metrics.annotations.iter().map(|(name, value)| (name.to_string(), to_json(value)))
}

fn millis(nanos: u64) -> Json {
    Json::from(nanos as f64 / 1e6)
}

impl Operator {
    fn explained(node: PlanNode) -> Self {
        let inside = node.inside.into_iter().map(Operator::explained).collect();
        let flow =
            (node.flow != Flow::Sequential).then(|| (OperatorMetrics::FLOW.to_owned(), Json::from(node.flow.name())));
        let expected = node.expected_rows.map(|rows| (OperatorMetrics::EXPECTED_ROWS.to_owned(), Json::from(rows)));
        Operator { name: node.text, figures: flow.into_iter().chain(expected).collect(), is_part: node.is_part, inside }
    }

    fn measured(metrics: &OperatorMetrics) -> Self {
        let rows = metrics.count(OperatorMetrics::TRAVERSER_COUNT).map(|rows| ("rows".to_owned(), Json::from(rows)));
        let own_time = ("ms".to_owned(), millis(metrics.own_nanos()));
        let figures = rows.into_iter().chain([own_time]).chain(annotations(metrics)).collect();
        let inside = metrics.nested.iter().map(Operator::measured).collect();
        Operator { name: metrics.name.to_string(), figures, is_part: false, inside }
    }

    fn json(&self) -> Json {
        let kind = if self.is_part { "part" } else { "operator" };
        let mut operator = Map::from_iter([(kind.to_owned(), Json::from(self.name.as_str()))]);
        operator.extend(self.figures.iter().cloned());
        if !self.inside.is_empty() {
            operator.insert("operators".to_owned(), self.inside.iter().map(Operator::json).collect());
        }
        Json::Object(operator)
    }
}
