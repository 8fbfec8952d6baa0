//! `call()` of the services that read the graph: degrees and the search for a text.
//!
//! A setting is taken from `with()`, the last one first, and then from the map of the arguments.

use mangrove_graph::{Direction, Value};
use mangrove_gremlin::Argument;

use super::step::{Step, string};
use super::{Interpreter, Outcome, Traverser, unsupported, wrong};

impl Interpreter<'_> {
    /// Calls a service for one traverser.
    pub(crate) fn call(&mut self, step: &Step<'_>, t: &Traverser) -> Outcome<Vec<Value>> {
        let name = string(step.argument(0)?)?;
        let in_map = |wanted: &str| match step.arguments.get(1) {
            Some(Argument::Value(Value::Map(entries))) => {
                entries.iter().find(|(key, _)| *key == Value::string(wanted)).map(|(_, value)| value)
            }
            _ => None,
        };
        let setting = |wanted: &str| {
            let with = step.with.iter().rev().find_map(|with| match with {
                [Argument::Value(Value::String(key)), Argument::Value(value)] if key == wanted => Some(value),
                _ => None,
            });
            with.or_else(|| in_map(wanted))
        };
        match name.as_str() {
            "tinker.degree.centrality" => {
                let Value::Vertex(vertex) = t.value else {
                    return wrong(format!("a {} has no degree", t.value.type_name()));
                };
                let direction = match setting("direction") {
                    Some(Value::Direction(direction)) => *direction,
                    None => Direction::In,
                    Some(other) => return unsupported(format!("{other:?} as a direction")),
                };
                Ok(vec![Value::I64(self.graph.incident(vertex, direction).len() as i64)])
            }
            "tinker.search" => match setting("search") {
                Some(Value::String(text)) => self.search(text),
                other => unsupported(format!("a search for {other:?}")),
            },
            other => unsupported(format!("the service {other}")),
        }
    }

    /// All properties with this text in their value, meta-properties among them.
    fn search(&mut self, text: &str) -> Outcome<Vec<Value>> {
        let vertices = self.graph.vertices().map(|(v, _)| Value::Vertex(v));
        let owners: Vec<Value> = vertices.chain(self.graph.edges().map(|(e, _)| Value::Edge(e))).collect();
        let mut all = Vec::new();
        for owner in owners {
            for property in self.graph.properties(&owner)? {
                if matches!(property, Value::VertexProperty(_)) {
                    all.extend(self.graph.properties(&property)?);
                }
                all.push(property);
            }
        }
        let mut found = Vec::new();
        for property in all {
            if matches!(self.key_and_value(&property)?.1, Value::String(value) if value.contains(text)) {
                found.push(property);
            }
        }
        Ok(found)
    }
}
