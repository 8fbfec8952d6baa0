//! `tree` and `subgraph`: results with a structure.

use mangrove_graph::compare::equivalent;
use mangrove_graph::{GraphValue, Tree, Value};

use super::by::round_robin;
use super::step::{Step, string};
use super::{Interpreter, Outcome, Stream, Traverser, wrong};

impl Interpreter<'_> {
    /// `tree()` of all paths, or `tree("x")` into a side effect.
    pub(crate) fn tree(&mut self, step: &Step<'_>, input: Stream) -> Outcome<Stream> {
        let mut tree = match step.name_argument(0)?.and_then(|name| self.side_effects.get(&name)) {
            Some(Value::Tree(old)) => Tree::clone(old),
            _ => Tree::default(),
        };
        for t in &input {
            let mut branch = &mut tree;
            for (n, object) in t.path.objects.iter().enumerate() {
                let Some(key) = self.by(round_robin(&step.by, n), &t.holding(object.clone()))? else { break };
                branch = below(branch, key);
            }
        }
        let tree = Value::Tree(tree.into());
        match step.name_argument(0)? {
            None => Ok(vec![Traverser::new(tree, Vec::new())]),
            Some(name) => {
                self.side_effects.insert(name, tree);
                Ok(input)
            }
        }
    }

    /// `subgraph("x")`: edges with their ends into a side effect.
    pub(crate) fn subgraph(&mut self, step: &Step<'_>, input: Stream) -> Outcome<Stream> {
        let name = string(step.argument(0)?)?;
        let mut graph = match self.side_effects.get(&name) {
            Some(Value::Graph(old)) => GraphValue::clone(old),
            _ => GraphValue::default(),
        };
        for t in &input {
            let Value::Edge(id) = t.value else {
                return wrong(format!("subgraph() needs edges, not a {}", t.value.type_name()));
            };
            let edge = self.graph.edge(id)?;
            put(&mut graph.vertices, Value::Vertex(edge.source));
            put(&mut graph.vertices, Value::Vertex(edge.target));
            put(&mut graph.edges, t.value.clone());
        }
        self.side_effects.insert(name, Value::Graph(graph.into()));
        Ok(input)
    }
}

/// The subtree under the key, created if it is new.
fn below(tree: &mut Tree, key: Value) -> &mut Tree {
    let at = tree.branches.iter().position(|(known, _)| equivalent(known, &key)).unwrap_or_else(|| {
        tree.branches.push((key, Tree::default()));
        tree.branches.len() - 1
    });
    &mut tree.branches[at].1
}

fn put(elements: &mut Vec<Value>, element: Value) {
    if !elements.contains(&element) {
        elements.push(element);
    }
}
