//! A plan as a graph for Graphviz: an operator is a box, a part of a scope an ellipse. Rows go along solid edges from
//! operator to operator, and along dashed ones into scopes.

use std::fmt::Write;

use serde_json::Value as Json;

use super::{Operator, Plan};

/// The plan in the language of `dot`.
pub(super) fn graph(plan: &Plan) -> String {
    let mut graph = Graph { statements: String::new(), nodes: 0 };
    let about: Vec<String> = plan.about.iter().map(|(topic, said)| format!("{topic}: {}", shown(said))).collect();
    graph.statement(&format!("label={}", quoted(&about)));
    graph.operators(&plan.operators, None);
    let style = "  node [shape=box, fontname=\"monospace\"];\n  labelloc=t;\n  labeljust=l;\n";
    format!("digraph plan {{\n{style}{}}}\n", graph.statements)
}

/// A graph that is being written.
struct Graph {
    statements: String,
    nodes: usize,
}

impl Graph {
    fn statement(&mut self, statement: &str) {
        // Writing to a string does not fail.
        let _ = writeln!(self.statements, "  {statement};");
    }

    /// Adds operators. Rows go from each to the next one. To parts of a scope, and to the first operator inside of one,
    /// they go from the operator of the scope, `around`.
    fn operators(&mut self, operators: &[Operator], around: Option<usize>) {
        let mut before = None;
        for operator in operators {
            let number = self.node(operator);
            match (before, around) {
                (Some(before), _) if !operator.is_part => self.statement(&format!("n{before} -> n{number}")),
                (_, Some(around)) => self.statement(&format!("n{around} -> n{number} [style=dashed]")),
                (_, None) => {}
            }
            before = (!operator.is_part).then_some(number);
            self.operators(&operator.inside, Some(number));
        }
    }

    /// Adds a node for an operator, and returns its number.
    fn node(&mut self, operator: &Operator) -> usize {
        let number = self.nodes;
        self.nodes += 1;
        let figures = operator.figures.iter().map(|(name, value)| format!("{name} {}", shown(value)));
        let lines: Vec<String> = std::iter::once(operator.name.clone()).chain(figures).collect();
        let shape = if operator.is_part { ", shape=ellipse" } else { "" };
        self.statement(&format!("n{number} [label={}{shape}]", quoted(&lines)));
        number
    }
}

/// Lines as a label, aligned on the left.
fn quoted(lines: &[String]) -> String {
    let escaped = lines.iter().map(|line| line.replace('\\', "\\\\").replace('"', "\\\""));
    format!("\"{}\\l\"", escaped.collect::<Vec<_>>().join("\\l"))
}

fn shown(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        Json::Number(number) if number.is_f64() => format!("{:.3}", number.as_f64().unwrap_or_default()),
        Json::Object(fields) => {
            fields.iter().map(|(name, value)| format!("{name} {}", shown(value))).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}
