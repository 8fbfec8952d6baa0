//! Steps that reach elements or objects: `V`, `E`, `inject`, neighbors, incident edges, ends of edges, `unfold`.
//!
//! Every element that a step reaches in the graph is tested, as strategies of the source may hide it (`source`).

use mangrove_graph::compare::equal;
use mangrove_graph::{Direction, Value};
use mangrove_gremlin::Argument;

use super::step::Step;
use super::{Interpreter, Outcome, Stream, Traverser, unsupported, wrong};

impl Interpreter<'_> {
    /// `V(ids…)` and `E(ids…)`: an id that is given twice returns its element twice; an unknown id is skipped.
    pub(crate) fn start_elements(&mut self, step: &Step<'_>, input: Stream) -> Outcome<Stream> {
        let elements = self.elements_by_id(step)?;
        let elements = self.seen(elements)?;
        self.flat_map(input, |_, _| Ok(elements.clone()))
    }

    fn elements_by_id(&self, step: &Step<'_>) -> Outcome<Vec<Value>> {
        let all: Vec<Value> = if step.name == "V" {
            self.graph.vertices().map(|(id, _)| Value::Vertex(id)).collect()
        } else {
            self.graph.edges().map(|(id, _)| Value::Edge(id)).collect()
        };
        let mut ids = Vec::new();
        for argument in step.arguments {
            match argument {
                Argument::Value(Value::List(list)) => ids.extend(list.iter().cloned()),
                Argument::Value(id) | Argument::Vertex(id) | Argument::Edge(id) => ids.push(id.clone()),
                other => return unsupported(format!("{}({other:?})", step.name)),
            }
        }
        let names_all = step.arguments.is_empty() || (step.arguments.len() == 1 && ids.is_empty());
        if names_all {
            return Ok(all);
        }
        let mut found = Vec::new();
        for id in &ids {
            for element in &all {
                if equal(&self.token(mangrove_graph::Token::Id, element)?, id) {
                    found.push(element.clone());
                }
            }
        }
        Ok(found)
    }

    /// `inject(values…)`: the values, with paths of their own, and then the incoming traversers.
    pub(crate) fn inject(&mut self, step: &Step<'_>, input: Stream) -> Outcome<Stream> {
        let mut out = Vec::new();
        for at in 0..step.arguments.len() {
            out.push(Traverser::new(step.value(at)?.clone(), Vec::new()));
        }
        out.extend(input.into_iter().filter(|t| !t.is_unborn));
        Ok(out)
    }

    /// `out`, `in`, `both` and their forms with `E`: the neighbors or the incident edges of a vertex.
    pub(crate) fn expand(&mut self, step: &Step<'_>, t: &Traverser) -> Outcome<Vec<Value>> {
        let Value::Vertex(vertex) = t.value else {
            return wrong(format!("{}() needs a vertex, not a {}", step.name, t.value.type_name()));
        };
        let labels = step.names()?;
        let direction = match step.name.trim_end_matches('E') {
            "out" => Direction::Out,
            "in" => Direction::In,
            _ => Direction::Both,
        };
        let mut found = Vec::new();
        for (edge, neighbor) in self.graph.incident(vertex, direction) {
            if !labels.is_empty() && !labels.contains(&self.graph.edge(edge)?.label) {
                continue;
            }
            let (edge, neighbor) = (Value::Edge(edge), Value::Vertex(neighbor));
            if !self.sees_edge(&edge, step.name.ends_with('E'))? {
                continue;
            }
            if step.name.ends_with('E') {
                found.push(edge);
            } else if self.sees(&neighbor)? {
                found.push(neighbor);
            }
        }
        Ok(found)
    }

    /// `outV`, `inV`, `bothV` and `otherV`. The last one is the end from which the path did not reach the edge.
    pub(crate) fn edge_ends(&mut self, step: &Step<'_>, t: &Traverser) -> Outcome<Vec<Value>> {
        let Value::Edge(edge) = t.value else {
            return wrong(format!("{}() needs an edge, not a {}", step.name, t.value.type_name()));
        };
        let edge = self.graph.edge(edge)?;
        let (source, target) = (Value::Vertex(edge.source), Value::Vertex(edge.target));
        let ends = match step.name {
            "outV" => vec![source],
            "inV" => vec![target],
            "bothV" => vec![source, target],
            _ => match t.path.objects.iter().rev().nth(1) {
                Some(came_from @ Value::Vertex(_)) => vec![if *came_from == source { target } else { source }],
                _ => return wrong("otherV() needs the vertex that its edge was reached from"),
            },
        };
        self.seen(ends)
    }

    /// `unfold()`: the entries of a map or the members of a collection; any other object is passed on.
    pub(crate) fn unfold(&mut self, input: Stream) -> Outcome<Stream> {
        self.each(input, |_, t| {
            Ok(match &t.value {
                Value::Map(entries) => entries
                    .iter()
                    .map(|entry| Traverser { is_entry: true, ..t.moved_to(Value::map(vec![entry.clone()])) })
                    .collect(),
                value => match super::local::members(value) {
                    Some(members) => members.into_iter().map(|m| t.moved_to(m)).collect(),
                    None => vec![t.moved_to(t.value.clone())],
                },
            })
        })
    }
}
