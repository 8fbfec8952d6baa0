//! The form of results: detached elements, with user ids and names.

use std::sync::Arc;

use mangrove_graph::{Detached, DetachedVertexProperty, GraphValue, PathValue, Token, Tree, Value, VertexId};
use smol_str::SmolStr;

use super::{Interpreter, Outcome};

impl Interpreter<'_> {
    pub(crate) fn detach(&self, value: &Value) -> Outcome<Value> {
        let all = |values: &[Value]| values.iter().map(|v| self.detach(v)).collect::<Outcome<Vec<Value>>>();
        Ok(match value {
            Value::Vertex(_) => {
                let mut properties = Vec::new();
                for p in self.graph.properties(value)? {
                    properties.push(self.detached_property(&p)?);
                }
                let (id, label) = (self.token(Token::Id, value)?, self.label_of(value)?);
                detached(Detached::Vertex { id, label, properties })
            }
            Value::Edge(e) => {
                let edge = self.graph.edge(*e)?;
                let end = |v: VertexId| {
                    let v = Value::Vertex(v);
                    Ok::<_, super::Failure>((self.token(Token::Id, &v)?, self.label_of(&v)?))
                };
                let mut properties = Vec::new();
                for p in self.graph.properties(value)? {
                    properties.push(self.key_and_value(&p)?);
                }
                let (source, target) = (end(edge.source)?, end(edge.target)?);
                detached(Detached::Edge {
                    id: edge.id.to_value(),
                    label: edge.label.clone(),
                    source,
                    target,
                    properties,
                })
            }
            Value::VertexProperty(_) => detached(Detached::VertexProperty(self.detached_property(value)?)),
            Value::Property(_) => {
                let (key, value) = self.key_and_value(value)?;
                detached(Detached::Property { key, value })
            }
            Value::List(v) => Value::list(all(v)?),
            Value::Set(v) => Value::Set(all(v)?.into()),
            Value::BulkSet(v) => {
                let one = |(v, times): &(Value, u64)| Ok::<_, super::Failure>((self.detach(v)?, *times));
                Value::BulkSet(v.iter().map(one).collect::<Outcome<Vec<_>>>()?.into())
            }
            Value::Map(m) => {
                let one = |(k, v): &(Value, Value)| Ok::<_, super::Failure>((self.detach(k)?, self.detach(v)?));
                Value::map(m.iter().map(one).collect::<Outcome<Vec<_>>>()?)
            }
            Value::Tree(tree) => Value::Tree(self.detach_tree(tree)?.into()),
            Value::Graph(graph) => {
                Value::Graph(GraphValue { vertices: all(&graph.vertices)?, edges: all(&graph.edges)? }.into())
            }
            Value::Path(p) => Value::Path(Arc::new(PathValue { objects: all(&p.objects)?, labels: p.labels.clone() })),
            other => other.clone(),
        })
    }

    fn detach_tree(&self, tree: &Tree) -> Outcome<Tree> {
        let branch = |(key, below): &(Value, Tree)| Ok((self.detach(key)?, self.detach_tree(below)?));
        Ok(Tree { branches: tree.branches.iter().map(branch).collect::<Outcome<_>>()? })
    }

    fn label_of(&self, element: &Value) -> Outcome<SmolStr> {
        match self.token(Token::Label, element)? {
            Value::String(label) => Ok(label),
            _ => super::wrong("a label is a string"),
        }
    }

    /// A comparison ignores the ids of vertex properties, so they become null.
    fn detached_property(&self, property: &Value) -> Outcome<DetachedVertexProperty> {
        let (key, value) = self.key_and_value(property)?;
        let meta = self.graph.properties(property)?;
        let meta = meta.iter().map(|meta| self.key_and_value(meta)).collect::<Outcome<_>>()?;
        Ok(DetachedVertexProperty { id: Value::Null, key, value, meta })
    }
}

fn detached(d: Detached) -> Value {
    Value::Detached(Arc::new(d))
}
