//! Reading trees and graphs, in the forms that `writer::structure` writes.

use mangrove_graph::{Detached, DetachedVertexProperty, GraphValue, Result, Tree, Value};
use smol_str::SmolStr;

use super::{Reader, VALUE_SIZE_MIN};
use crate::terms;

impl Reader<'_> {
    /// The branches of a tree.
    pub(super) fn tree(&mut self) -> Result<Tree> {
        let length = self.length(VALUE_SIZE_MIN + 4)?;
        let mut branches = Vec::with_capacity(self.room_for(length));
        for _ in 0..length {
            let key = self.detached_value()?;
            branches.push((key, self.nested(Self::tree)?));
        }
        Ok(Tree { branches })
    }

    /// Vertices and edges.
    pub(super) fn graph(&mut self) -> Result<GraphValue> {
        /// The smallest of both: an id, an empty label and a count.
        const ELEMENT_SIZE_MIN: usize = VALUE_SIZE_MIN + 8;
        let count = self.length(ELEMENT_SIZE_MIN)?;
        let mut graph = GraphValue::default();
        let mut labels = std::collections::HashMap::new();
        for _ in 0..count {
            let (id, label) = (self.detached_value()?, self.string()?);
            let properties = self.vertex_properties()?;
            labels.insert(mangrove_graph::compare::Equivalent(id.clone()), label.clone());
            graph.vertices.push(Value::Detached(Detached::Vertex { id, label, properties }.into()));
        }
        // An edge has the ids of its ends. Their labels are found among the vertices before it.
        let labeled = |id: Value| {
            let label = labels.get(&mangrove_graph::compare::Equivalent(id.clone())).cloned();
            (id, label.unwrap_or_else(|| SmolStr::new_static("vertex")))
        };
        for _ in 0..self.length(ELEMENT_SIZE_MIN)? {
            let (id, label) = (self.detached_value()?, self.string()?);
            let target = self.end()?;
            let source = self.end()?;
            self.parent()?;
            let properties = self.plain_properties()?;
            let edge = Detached::Edge { id, label, source: labeled(source), target: labeled(target), properties };
            graph.edges.push(Value::Detached(edge.into()));
        }
        Ok(graph)
    }

    /// A list without its type.
    fn plain_properties(&mut self) -> Result<Vec<(SmolStr, Value)>> {
        let count = self.length(VALUE_SIZE_MIN)?;
        let items = (0..count).map(|_| self.detached_value()).collect::<Result<Vec<_>>>()?;
        self.properties_of(&items, terms::plain_property)
    }

    fn end(&mut self) -> Result<Value> {
        let id = self.detached_value()?;
        self.detached_value()?; // the label, which is left out
        Ok(id)
    }

    fn vertex_properties(&mut self) -> Result<Vec<DetachedVertexProperty>> {
        let count = self.length(2 * VALUE_SIZE_MIN)?;
        let mut properties = Vec::with_capacity(self.room_for(count));
        for _ in 0..count {
            let (id, key, value) = (self.detached_value()?, self.string()?, self.detached_value()?);
            self.parent()?;
            properties.push(DetachedVertexProperty { id, key, value, meta: self.plain_properties()? });
        }
        Ok(properties)
    }
}
