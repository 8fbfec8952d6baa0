//! The description of an element to find or to make, as the maps of an upsert give it.

use mangrove_graph::{Error, Result, Value};
use mangrove_gremlin::Cardinality;
use mangrove_plan::logical::Name;

/// A property with the cardinality that its map asks for.
pub(super) type UpsertProperty = (Name, Value, Option<Cardinality>);

/// The label, id, ends and properties of an element.
#[derive(Clone, Debug, Default)]
pub(super) struct ElementDescription {
    pub id: Option<Value>,
    pub label: Option<Name>,
    /// The source and the target of an edge.
    pub ends: [Option<Value>; 2],
    pub properties: Vec<UpsertProperty>,
}

impl ElementDescription {
    /// Adds the description of the element to make. It must not contradict the one that was searched for.
    pub fn complete(&mut self, more: ElementDescription) -> Result<()> {
        let same = |known: &Option<Value>, new: &Option<Value>| match (known, new) {
            (Some(Value::Direction(_)), _) | (None, _) | (_, None) => true,
            (Some(known), Some(new)) => mangrove_graph::compare::equal(known, new),
        };
        let properties_agree = more.properties.iter().all(|(name, value, _)| {
            let known = self.properties.iter().find(|(known, ..)| known == name);
            known.is_none_or(|(_, known, _)| mangrove_graph::compare::equal(known, value))
        });
        let agree = same(&self.id, &more.id)
            && (self.label.is_none() || more.label.is_none() || self.label == more.label)
            && (0..2).all(|end| same(&self.ends[end], &more.ends[end]))
            && properties_agree;
        if !agree {
            return Err(Error::invalid("option(onCreate) cannot override values from merge() argument"));
        }
        self.id = self.id.take().or(more.id);
        self.label = self.label.take().or(more.label);
        for (end, new) in self.ends.iter_mut().zip(more.ends) {
            *end = end.take().or(new);
        }
        self.properties.retain(|(name, ..)| more.properties.iter().all(|(new, ..)| new != name));
        self.properties.extend(more.properties);
        Ok(())
    }
}
