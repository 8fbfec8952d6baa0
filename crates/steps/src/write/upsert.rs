//! Upserts, `mergeV()` and `mergeE()`: they find elements, or make the missing one.
//!
//! A row that makes an element is a statement of its own, so the next row finds the new element, and two equal rows
//! make one element. The search reads through the transaction like any other step. So a serializable transaction does
//! not commit if another one made the same element meanwhile: it is run again and finds that element.

mod description;
mod map;
mod search;

use mangrove_graph::{ElementKind, Error, Result, Value, VertexId};
use mangrove_gremlin::Cardinality;
use mangrove_plan::physical::ComputedOperand;
use mangrove_plan::upsert::{MergeFrom, MergeMap, Upsert as Plan};
use mangrove_txn::WriteCardinality;

use super::property::check_storable;
use super::{Statement, WriteBarrier, WriteContext, label_set, user_id};
use crate::context::type_name::a_type;
use crate::rows::{ObjectColumn, Remember, Rows};
use description::{ElementDescription, UpsertProperty};
use map::MapSource;
use search::ElementSearch;

/// Finds or makes the element that each row describes.
pub(crate) type Upsert = WriteBarrier<FindOrMake>;

/// The statement of [`Upsert`].
pub(crate) struct FindOrMake {
    plan: Plan<ComputedOperand>,
}

impl Upsert {
    pub fn new(plan: Plan<ComputedOperand>, remember: Remember) -> Self {
        WriteBarrier::of(FindOrMake { plan }, remember)
    }
}

/// The label of an element without one.
const VERTEX_LABEL: &str = "vertex";
const EDGE_LABEL: &str = "edge";

/// The maps of an upsert, with operands looked up.
struct UpsertMaps<'a> {
    kind: ElementKind,
    always: Option<MapSource<'a>>,
    search: MapSource<'a>,
    on_create: Option<MapSource<'a>>,
    ends: [Option<MapSource<'a>>; 2],
}

impl Statement for FindOrMake {
    fn write(&mut self, rows: Rows, ctx: &WriteContext<'_>) -> Result<Rows> {
        let plan = &self.plan;
        let source = |map: &'_ Option<MergeMap<ComputedOperand>>| map.clone();
        let (on_create, from, to) = (source(&plan.on_create), source(&plan.source), source(&plan.target));
        let always = (!plan.always.is_empty())
            .then(|| MergeMap { from: MergeFrom::Entries(plan.always.clone()), cardinality: None });
        let maps = UpsertMaps {
            kind: plan.kind,
            always: always.as_ref().map(|m| MapSource::new(Some(m), "the strategy", ctx)).transpose()?,
            search: MapSource::new(plan.search.as_ref(), "the argument", ctx)?,
            on_create: on_create.as_ref().map(|m| MapSource::new(Some(m), "option(onCreate)", ctx)).transpose()?,
            ends: [
                from.as_ref().map(|m| MapSource::new(Some(m), "option(outV)", ctx)).transpose()?,
                to.as_ref().map(|m| MapSource::new(Some(m), "option(inV)", ctx)).transpose()?,
            ],
        };
        let mut results = UpsertResults::default();
        let mut search = ElementSearch::new(ctx);
        for row in 0..rows.len() {
            ctx.control.check()?;
            maps.apply(&rows, row, &mut search, &mut results, ctx)?;
        }
        let mut made = rows.derive(&results.rows, ObjectColumn::from_values(results.objects));
        if made.bulk.is_some() {
            made.bulk = Some(results.bulks);
        }
        made.computed = vec![results.found.into_iter().map(|found| Some(Value::Bool(found))).collect()];
        Ok(made)
    }
}

/// The elements found or made: the row, the element, and whether it existed.
#[derive(Default)]
struct UpsertResults {
    rows: Vec<u32>,
    objects: Vec<Value>,
    found: Vec<bool>,
    /// The number of traversers that each stands for.
    bulks: Vec<u64>,
}

impl UpsertResults {
    fn push(&mut self, row: usize, object: Value, found: bool, bulk: u64) {
        self.bulks.push(bulk);
        self.rows.push(row as u32);
        self.objects.push(object);
        self.found.push(found);
    }
}

impl UpsertMaps<'_> {
    fn of_edges(&self) -> bool {
        self.kind == ElementKind::Edge
    }

    fn apply(
        &self,
        rows: &Rows,
        row: usize,
        search: &mut ElementSearch<'_>,
        results: &mut UpsertResults,
        ctx: &WriteContext<'_>,
    ) -> Result<()> {
        let mut wanted = self.search.entries(rows, row, self.of_edges())?;
        if let Some(always) = &self.always {
            for mark in always.entries(rows, row, false)?.properties {
                wanted.properties.retain(|(name, ..)| *name != mark.0);
                wanted.properties.push(mark);
            }
        }
        let ends = if self.of_edges() { self.resolve_ends(&mut wanted, rows, row, search)? } else { [None, None] };
        let found: Vec<Value> = if self.of_edges() {
            search.edges(&wanted, ends)?.into_iter().map(Value::Edge).collect()
        } else {
            search.vertices(&wanted)?.into_iter().map(Value::Vertex).collect()
        };
        if !found.is_empty() {
            found.into_iter().for_each(|object| results.push(row, object, true, rows.bulk(row)));
            return Ok(());
        }
        let mut made = wanted;
        if let Some(on_create) = &self.on_create {
            let mut more = on_create.entries(rows, row, self.of_edges())?;
            // One map may name a vertex by its id and the other by the vertex itself.
            for (named, known) in more.ends.iter_mut().zip(ends) {
                if let (Some(given), Some(vertex)) = (&named, known)
                    && search.vertex(given)? == Some(vertex)
                {
                    *named = None;
                }
            }
            made.complete(more)?;
        }
        let object = if self.of_edges() {
            let ends = self.resolve_ends(&mut made, rows, row, search)?;
            make_edge(&made, ends, ctx)?
        } else {
            make_vertex(&made, ctx)?
        };
        ctx.writer.finish_statement()?;
        // Of equal traversers, the first makes the element and the others find it.
        results.push(row, object.clone(), false, 1);
        if rows.bulk(row) > 1 {
            results.push(row, object, true, rows.bulk(row) - 1);
        }
        Ok(())
    }

    /// Returns the vertices at the ends of an edge that are named and exist.
    fn resolve_ends(
        &self,
        entries: &mut ElementDescription,
        rows: &Rows,
        row: usize,
        search: &mut ElementSearch<'_>,
    ) -> Result<[Option<VertexId>; 2]> {
        let mut ends = [None, None];
        for (at, end) in ends.iter_mut().enumerate() {
            let Some(named) = &entries.ends[at] else { continue };
            *end = match named {
                Value::Direction(direction) => {
                    let option = &self.ends[usize::from(*direction == mangrove_graph::Direction::In)];
                    let option = option.as_ref().ok_or_else(|| {
                        Error::invalid("mergeE() names Merge.outV or Merge.inV, but has no option of that name")
                    })?;
                    option.vertex(rows, row, search)?
                }
                named => search.vertex(named)?,
            };
        }
        Ok(ends)
    }
}

fn make_vertex(made: &ElementDescription, ctx: &WriteContext<'_>) -> Result<Value> {
    let label = made.label.clone().unwrap_or_else(|| VERTEX_LABEL.into());
    let id = made.id.as_ref().map(|id| user_id(id, ctx)).transpose()?;
    let vertex = ctx.writer.insert_vertex(label_set(&Value::String(label), ctx)?, id)?;
    set_vertex_properties(vertex, &made.properties, ctx)?;
    Ok(Value::Vertex(vertex))
}

fn make_edge(made: &ElementDescription, ends: [Option<VertexId>; 2], ctx: &WriteContext<'_>) -> Result<Value> {
    let mut vertices = Vec::with_capacity(2);
    for (at, (name, key)) in [("Out", "OUT"), ("In", "IN")].into_iter().enumerate() {
        vertices.push(ends[at].ok_or_else(|| match &made.ends[at] {
            None => Error::invalid(format!(
                "{name} Vertex not specified in onCreate - edge cannot be created; give Direction.{key} in a map"
            )),
            Some(_) => Error::new(
                mangrove_graph::ErrorKind::NotFound,
                format!("Vertex id could not be resolved from mergeE: there is no vertex for Direction.{key}"),
            ),
        })?);
    }
    let label = made.label.clone().unwrap_or_else(|| EDGE_LABEL.into());
    let id = made.id.as_ref().map(|id| user_id(id, ctx)).transpose()?;
    let edge = ctx.writer.insert_edge(vertices[0], vertices[1], label_set(&Value::String(label), ctx)?, id)?;
    for (name, value, _) in made.properties.iter().filter(|(_, value, _)| !matches!(value, Value::Null)) {
        check_storable(name, value)?;
        ctx.writer.set_edge_property(edge, ctx.context.view.catalog().intern_key(name), value.clone())?;
    }
    Ok(Value::Edge(edge))
}

fn set_vertex_properties(vertex: VertexId, properties: &[UpsertProperty], ctx: &WriteContext<'_>) -> Result<()> {
    for (name, value, cardinality) in properties {
        let key = ctx.context.view.catalog().intern_key(name);
        let cardinality = match cardinality {
            None | Some(Cardinality::Single) => WriteCardinality::Single,
            Some(Cardinality::List) => WriteCardinality::List,
            Some(Cardinality::Set) => WriteCardinality::Set,
        };
        if matches!(value, Value::Null) {
            if cardinality == WriteCardinality::Single {
                ctx.writer.remove_vertex_property(vertex, key, None)?;
            }
            continue;
        }
        check_storable(name, value)?;
        ctx.writer.set_vertex_property(vertex, key, value.clone(), cardinality, Vec::new())?;
    }
    Ok(())
}

/// Writes the properties of a map to the element of each row.
pub(crate) type SetFromMap = WriteBarrier<SetMapProperties>;

/// The statement of [`SetFromMap`].
pub(crate) struct SetMapProperties {
    map: MergeMap<ComputedOperand>,
}

impl SetFromMap {
    pub fn of_map(map: MergeMap<ComputedOperand>) -> Self {
        WriteBarrier::of(SetMapProperties { map }, Remember::default())
    }
}

impl Statement for SetMapProperties {
    fn write(&mut self, mut rows: Rows, ctx: &WriteContext<'_>) -> Result<Rows> {
        let source = MapSource::new(Some(&self.map), "option(onMatch)", ctx)?;
        for row in 0..rows.len() {
            ctx.control.check()?;
            let entries = source.entries(&rows, row, false)?;
            if entries.id.is_some() || entries.label.is_some() {
                return Err(Error::invalid("option(onMatch) writes properties: its map has no T.id and no T.label"));
            }
            match rows.object(row) {
                Value::Vertex(vertex) => set_vertex_properties(vertex, &entries.properties, ctx)?,
                Value::Edge(edge) => {
                    for (name, value, _) in &entries.properties {
                        let key = ctx.context.view.catalog().intern_key(name);
                        if matches!(value, Value::Null) {
                            ctx.writer.remove_edge_property(edge, key)?;
                        } else {
                            check_storable(name, value)?;
                            ctx.writer.set_edge_property(edge, key, value.clone())?;
                        }
                    }
                }
                other => return Err(Error::bug(format!("a merge found {}", a_type(&other)))),
            }
        }
        rows.computed.clear();
        Ok(rows)
    }
}
