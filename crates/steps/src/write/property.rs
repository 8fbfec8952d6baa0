//! `property()`: writes properties of existing elements, and of the elements that `addV()` and `addE()` make.
//!
//! Null is never stored. On a new element it is skipped; on an existing one it removes the old value. With list and set
//! cardinality, which only add, it does nothing. Every value is checked to be storable before it is written.

use std::borrow::Cow;
use std::sync::Arc;

use mangrove_graph::{EdgeId, Error, KeyId, Result, Value, VertexId, VertexPropertyValue};
use mangrove_gremlin::Cardinality;
use mangrove_plan::logical::Name;
use mangrove_plan::physical::PropertyWrite;
use mangrove_txn::WriteCardinality;

use super::{CHECK_EVERY, Statement, ValueSource, WriteBarrier, WriteContext};
use crate::context::type_name::a_type;
use crate::rows::current::current;
use crate::rows::{ObjectColumn, Remember, Rows};

/// The key that a value is written under.
enum WrittenKey<'a> {
    /// The same for all rows.
    Known(&'a Name, KeyId),
    /// The result of a traversal for each row: the index of the computed column.
    Computed(usize),
}

impl WrittenKey<'_> {
    /// Returns the name and number of the key for a row.
    fn of(&self, rows: &Rows, row: usize, ctx: &WriteContext<'_>) -> Result<(Name, KeyId)> {
        match self {
            WrittenKey::Known(name, key) => Ok(((*name).clone(), *key)),
            WrittenKey::Computed(column) => match rows.computed_value(*column, row) {
                Some(Value::String(name)) => Ok((name.clone(), key(name, ctx)?)),
                Some(other) => Err(Error::evaluation(format!(
                    "the traversal that is to give a property key gives {}; a key is a string",
                    a_type(other)
                ))),
                None => Err(Error::evaluation("the traversal that is to give a property key has no result")),
            },
        }
    }
}

/// A property to write, with its key and constant values looked up.
pub(crate) struct WrittenProperty<'a> {
    key: WrittenKey<'a>,
    cardinality: Option<Cardinality>,
    value: ValueSource,
    meta: Vec<(&'a Name, KeyId, ValueSource)>,
}

impl<'a> WrittenProperty<'a> {
    /// Looks up keys and values that are the same for all rows.
    pub fn new(property: &'a PropertyWrite, ctx: &WriteContext<'_>) -> Result<Self> {
        let meta = property
            .meta
            .iter()
            .map(|(name, value)| Ok((name, key(name, ctx)?, ValueSource::new(value, ctx.context)?)));
        Ok(WrittenProperty {
            key: match property.computed_key {
                None => WrittenKey::Known(&property.key, key(&property.key, ctx)?),
                Some(column) => WrittenKey::Computed(column),
            },
            cardinality: property.cardinality,
            value: ValueSource::new(&property.value, ctx.context)?,
            meta: meta.collect::<Result<_>>()?,
        })
    }

    /// Returns the value to write for a row.
    fn value<'r>(&'r self, name: &Name, rows: &'r Rows, row: usize) -> Result<&'r Value> {
        self.value.value(rows, row, format_args!("the value of the property `{name}`"))
    }

    /// Writes the property of a vertex.
    pub fn to_vertex(&self, vertex: VertexId, rows: &Rows, row: usize, ctx: &WriteContext<'_>) -> Result<()> {
        let cardinality = match self.cardinality {
            None | Some(Cardinality::Single) => WriteCardinality::Single,
            Some(Cardinality::List) => WriteCardinality::List,
            Some(Cardinality::Set) => WriteCardinality::Set,
        };
        let (name, key) = self.key.of(rows, row, ctx)?;
        let value = self.value(&name, rows, row)?.clone();
        if matches!(value, Value::Null) {
            let removes = cardinality == WriteCardinality::Single;
            return if removes { ctx.writer.remove_vertex_property(vertex, key, None) } else { Ok(()) };
        }
        check_storable(&name, &value)?;
        let mut meta = Vec::with_capacity(self.meta.len());
        for (name, meta_key, value) in &self.meta {
            let value = value.value(rows, row, format_args!("the value of the meta-property `{name}`"))?;
            if !matches!(value, Value::Null) {
                check_storable(name, value)?;
                meta.push((*meta_key, value.clone()));
            }
        }
        ctx.writer.set_vertex_property(vertex, key, value, cardinality, meta)
    }

    /// Writes the property of an edge.
    pub fn to_edge(&self, edge: EdgeId, rows: &Rows, row: usize, ctx: &WriteContext<'_>) -> Result<()> {
        let (name, key) = self.key.of(rows, row, ctx)?;
        self.check_plain(&name, "an edge")?;
        let value = self.value(&name, rows, row)?;
        if matches!(value, Value::Null) {
            return ctx.writer.remove_edge_property(edge, key);
        }
        check_storable(&name, value)?;
        ctx.writer.set_edge_property(edge, key, value.clone())
    }

    /// Writes a meta-property of a vertex property. Returns the vertex property as it is after the write.
    fn to_vertex_property(
        &self,
        owner: &VertexPropertyValue,
        rows: &Rows,
        row: usize,
        ctx: &WriteContext<'_>,
    ) -> Result<VertexPropertyValue> {
        let (name, key) = self.key.of(rows, row, ctx)?;
        self.check_plain(&name, "a vertex property")?;
        let value = self.value(&name, rows, row)?;
        let mut meta: Vec<(KeyId, Value)> = owner.meta.to_vec();
        if matches!(value, Value::Null) {
            ctx.writer.remove_meta_property(owner.vertex, owner.key, owner.ordinal, key)?;
            meta.retain(|(known, _)| *known != key);
        } else {
            check_storable(&name, value)?;
            ctx.writer.set_meta_property(owner.vertex, owner.key, owner.ordinal, key, value.clone())?;
            match meta.iter_mut().find(|(known, _)| *known == key) {
                Some(entry) => entry.1 = value.clone(),
                None => meta.push((key, value.clone())),
            }
        }
        Ok(VertexPropertyValue { meta: Arc::new(meta), ..owner.clone() })
    }

    /// Fails if the property has a cardinality or meta-properties: only properties of vertices can.
    fn check_plain(&self, name: &Name, owner: &str) -> Result<()> {
        if self.cardinality.is_some() {
            return Err(Error::evaluation(format!(
                "{owner} has one value for each key, so `{name}` cannot be written with a cardinality: leave out \
                 single, list or set; only properties of vertices have a cardinality"
            )));
        }
        if !self.meta.is_empty() {
            return Err(Error::evaluation(format!(
                "only properties of vertices have meta-properties; `{name}` is written to {owner}"
            )));
        }
        Ok(())
    }
}

/// Returns the number of a key; a new key gets one. Fails for an empty name.
fn key(name: &Name, ctx: &WriteContext<'_>) -> Result<KeyId> {
    if name.is_empty() {
        return Err(Error::invalid("a property key must not be empty"));
    }
    Ok(ctx.context.view.catalog().intern_key(name))
}

/// Fails for a value that no property can hold, such as null or an element.
pub(super) fn check_storable(name: &Name, value: &Value) -> Result<()> {
    if value.is_storable() {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "the property `{name}` cannot hold {} that is no plain value: store numbers, text, dates, or lists, sets \
         and maps of these",
        a_type(value)
    )))
}

/// Writes a property of the object of each traverser: an element or a vertex property.
pub(crate) type SetProperty = WriteBarrier<SetProperties>;

/// The statement of [`SetProperty`].
pub(crate) struct SetProperties {
    property: PropertyWrite,
}

impl SetProperty {
    pub fn new(property: PropertyWrite) -> Self {
        WriteBarrier::of(SetProperties { property }, Remember::default())
    }
}

impl Statement for SetProperties {
    fn write(&mut self, mut rows: Rows, ctx: &WriteContext<'_>) -> Result<Rows> {
        let write = WrittenProperty::new(&self.property, ctx)?;
        if let Cow::Owned(objects) = current(&rows.objects, ctx.context)? {
            rows.objects = objects;
        }
        // Only with list cardinality does each traverser of a row add a value. Otherwise writing once is enough.
        let adds = self.property.cardinality == Some(Cardinality::List);
        let mut renewed: Vec<(usize, Value)> = Vec::new();
        for row in 0..rows.len() {
            match rows.object(row) {
                Value::Vertex(vertex) => {
                    for time in 0..if adds { rows.bulk(row) } else { 1 } {
                        if time.is_multiple_of(CHECK_EVERY as u64) {
                            ctx.control.check()?;
                        }
                        write.to_vertex(vertex, &rows, row, ctx)?;
                    }
                }
                Value::Edge(edge) => write.to_edge(edge, &rows, row, ctx)?,
                Value::VertexProperty(owner) => {
                    let property = write.to_vertex_property(&owner, &rows, row, ctx)?;
                    renewed.push((row, Value::VertexProperty(Arc::new(property))));
                }
                other => {
                    return Err(Error::evaluation(format!(
                        "property() writes to vertices, edges and vertex properties; here is {}",
                        a_type(&other)
                    )));
                }
            }
        }
        if let ObjectColumn::Values(objects) = &mut rows.objects {
            renewed.into_iter().for_each(|(row, property)| objects[row] = property);
        }
        rows.computed.clear();
        Ok(rows)
    }
}
