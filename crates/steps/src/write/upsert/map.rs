//! The maps of an upsert: where a row takes them from, and how their entries are read.

use mangrove_graph::{Direction, Error, Result, Token, Value, VertexId};
use mangrove_gremlin::Cardinality;
use mangrove_plan::physical::ComputedOperand;
use mangrove_plan::upsert::{MergeFrom, MergeMap};

use super::description::ElementDescription;
use super::search::ElementSearch;
use crate::context::type_name::a_type;
use crate::rows::Rows;
use crate::write::WriteContext;

/// The source of a map.
pub(super) struct MapSource<'a> {
    from: MapOrigin,
    cardinality: Option<Cardinality>,
    /// The step and option that the map belongs to, for errors.
    what: &'a str,
}

enum MapOrigin {
    /// The object of the row.
    Current,
    /// The same map for all rows, with its values looked up.
    Fixed(Vec<(Value, Value, Option<Cardinality>)>),
    /// One value for all rows.
    Whole(Value),
    Computed(usize),
}

impl<'a> MapSource<'a> {
    pub fn new(map: Option<&MergeMap<ComputedOperand>>, what: &'a str, ctx: &WriteContext<'_>) -> Result<Self> {
        let context = ctx.context;
        let from = match map.map(|map| &map.from) {
            None => MapOrigin::Current,
            Some(MergeFrom::Entries(entries)) => {
                let entry = entries.iter().map(|e| Ok((e.key.clone(), context.resolve(&e.value)?, e.cardinality)));
                MapOrigin::Fixed(entry.collect::<Result<_>>()?)
            }
            Some(MergeFrom::Whole(ComputedOperand::Operand(operand))) => MapOrigin::Whole(context.resolve(operand)?),
            Some(MergeFrom::Whole(ComputedOperand::Computed(column))) => MapOrigin::Computed(*column),
        };
        Ok(MapSource { from, cardinality: map.and_then(|map| map.cardinality), what })
    }

    /// Returns the meaning of the map for a row. `with_ends`: directions may be keys; their values are the ends of an
    /// edge.
    pub fn entries(&self, rows: &Rows, row: usize, with_ends: bool) -> Result<ElementDescription> {
        let mut found = ElementDescription::default();
        match &self.from {
            MapOrigin::Fixed(entries) => {
                for (key, value, cardinality) in entries {
                    self.put(&mut found, key, value, *cardinality, with_ends)?;
                }
            }
            MapOrigin::Whole(value) => self.put_all(&mut found, value, with_ends)?,
            MapOrigin::Computed(column) => self.put_all(&mut found, self.given(*column, rows, row)?, with_ends)?,
            MapOrigin::Current => self.put_all(&mut found, &rows.object(row), with_ends)?,
        }
        Ok(found)
    }

    /// Returns the map that a traversal gave for a row. No result is an error and not an empty map, which describes
    /// every element.
    fn given<'r>(&self, column: usize, rows: &'r Rows, row: usize) -> Result<&'r Value> {
        rows.computed_value(column, row).ok_or_else(|| {
            Error::evaluation(format!("{} of a merge step is a traversal, and it has no result", self.what))
        })
    }

    /// Reads a map; null is the empty map.
    fn put_all(&self, found: &mut ElementDescription, map: &Value, with_ends: bool) -> Result<()> {
        match map {
            Value::Null => Ok(()),
            Value::Map(entries) => {
                entries.iter().try_for_each(|(key, value)| self.put(found, key, value, None, with_ends))
            }
            other => {
                Err(Error::invalid(format!("{} of a merge step must be a Map, and is {}", self.what, a_type(other))))
            }
        }
    }

    fn put(
        &self,
        found: &mut ElementDescription,
        key: &Value,
        value: &Value,
        cardinality: Option<Cardinality>,
        with_ends: bool,
    ) -> Result<()> {
        let what = self.what;
        match (key, value) {
            (Value::Token(Token::Id | Token::Label), Value::Null) => {
                return Err(Error::invalid(format!("{what} of a merge step gives null as id or label")));
            }
            (Value::Token(Token::Id), id) => found.id = Some(id.clone()),
            (Value::Token(Token::Label), Value::String(label)) => {
                if label.starts_with(HIDDEN) {
                    return Err(Error::invalid(format!("Label can not be a hidden key: {label}")));
                }
                found.label = Some(label.clone());
            }
            (Value::Token(Token::Label), other) => {
                return Err(Error::invalid(format!(
                    "{what} of a merge step gives {} as label, which is a string",
                    a_type(other)
                )));
            }
            (Value::Direction(Direction::Out), end) if with_ends => found.ends[0] = Some(end.clone()),
            (Value::Direction(Direction::In), end) if with_ends => found.ends[1] = Some(end.clone()),
            (Value::String(name), value) => {
                if name.is_empty() {
                    return Err(Error::invalid("Property key can not be the empty string"));
                }
                if name.starts_with(HIDDEN) {
                    return Err(Error::invalid(format!("Property key can not be a hidden key: {name}")));
                }
                found.properties.push((name.clone(), value.clone(), cardinality.or(self.cardinality)));
            }
            (other, _) => {
                return Err(Error::invalid(format!(
                    "{what} of a merge step has {} for a key; keys are T.id, T.label, strings and, of edges, \
                     Direction.OUT and Direction.IN",
                    a_type(other)
                )));
            }
        }
        Ok(())
    }

    /// Returns the vertex that an option names for an end of an edge: by itself, by its id, or by a map to search for.
    pub fn vertex(&self, rows: &Rows, row: usize, search: &mut ElementSearch<'_>) -> Result<Option<VertexId>> {
        let named = match &self.from {
            MapOrigin::Whole(value) => Some(value),
            MapOrigin::Computed(column) => Some(self.given(*column, rows, row)?),
            MapOrigin::Fixed(_) | MapOrigin::Current => None,
        };
        match named {
            None | Some(Value::Map(_)) => Ok(search.vertices(&self.entries(rows, row, false)?)?.first().copied()),
            Some(named) => search.vertex(named),
        }
    }
}

/// The prefix of TinkerPop's own keys.
const HIDDEN: char = '~';
