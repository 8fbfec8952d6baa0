//! Rows of tables into vertices and edges, as a plan says.
//!
//! A row is read as a whole before anything of it is kept (`row`), so a bad row leaves no trace but its reject. Here rows come in
//! their order, parsed, on the thread of the load: ids are claimed and looked up, and what is good goes into batches.

use mangrove_graph::{Error, Result, UserId, Value, VertexId};
use smol_str::{SmolStr, format_smolstr};

use crate::batch::{EdgeBatches, VertexBatches, VertexTable};
use crate::context::{Context, Pass};
use crate::id_map::{FileId, SpaceId};
use crate::plan::{EdgePlan, EndPlan, Form, GLOBAL_SPACE, Rows, TablePlan, UserIds, VertexPlan};
use crate::row::{Cells, ElementCells, End, Reason, Row, RowBatch, RowId};
use crate::sink::{Cardinality, MultiProperty, MultiValue};
use crate::text_rows;

/// What TinkerPop calls elements without a label.
const VERTEX_LABEL: &str = "vertex";

/// The values of a batch of rows; each good row takes its own from the front.
type Values = std::vec::IntoIter<Value>;

/// Infers the types of a table's untyped columns from all its rows.
pub(crate) fn infer_types(ctx: &mut Context<'_>, plan: &mut TablePlan) -> Result<()> {
    match plan.form.clone() {
        Form::Text(form) => text_rows::infer_types(ctx, plan, &form),
        #[cfg(feature = "parquet")]
        Form::Parquet(_) => Err(Error::bug("a Parquet file says the types of its columns")),
    }
}

/// Loads the rows of a table.
pub(crate) fn load(ctx: &mut Context<'_>, plan: &TablePlan) -> Result<()> {
    match &plan.rows {
        Rows::Vertices(vertices) => load_vertices(ctx, plan, vertices),
        Rows::Edges(edges) => load_edges(ctx, plan, edges),
    }
}

/// Goes over the rows that can be cut into the right number of fields. `row` says why a row is bad, if it
/// is; bad rows are rejected where this pass is the one to do so.
fn each_row(
    ctx: &mut Context<'_>,
    plan: &TablePlan,
    rejecting: bool,
    mut row: impl FnMut(&mut Context<'_>, Place<'_>, Cells, &mut Values) -> Result<Result<(), Reason>>,
) -> Result<()> {
    let pass = Pass { file: plan.file, path: &plan.path };
    let width = plan.properties().len();
    let mut take = |ctx: &mut Context<'_>, head: &[u8], batch: RowBatch| {
        let RowBatch { rows, values, text, bytes_taken } = batch;
        let mut values = values.into_iter();
        for Row { line, raw, cells } in rows {
            let place = Place { line, text: &text[raw] };
            let rest = values.len() - if matches!(&cells, Ok(Cells { element: Ok(_), .. })) { width } else { 0 };
            let outcome = match cells {
                Ok(cells) => row(ctx, place, cells, &mut values)?,
                Err(reason) => Err(reason),
            };
            // A row that is rejected leaves its values behind.
            let left = values.len() - rest;
            values.by_ref().take(left).for_each(drop);
            if let (Err(reason), true) = (outcome, rejecting) {
                // Foreign keys of a row that is no vertex are not looked at.
                if matches!(plan.rows, Rows::Vertices(_)) {
                    ctx.rejects.remember(plan.file, line);
                }
                ctx.reject(&pass, line, &reason, place.text)?;
                if plan.form.is_text() {
                    ctx.rejects.keep(plan.file, &plan.path, head, place.text)?;
                }
            }
            ctx.rows(&pass, 1, bytes_taken)?;
        }
        Ok(())
    };
    match &plan.form {
        Form::Text(form) => text_rows::each_batch(ctx, plan, form, take)?,
        #[cfg(feature = "parquet")]
        Form::Parquet(file) => crate::parquet::each_batch(ctx, plan, file, |ctx, batch| take(ctx, b"", batch))?,
    }
    ctx.end_pass(&pass);
    Ok(())
}

/// Where a row stands.
#[derive(Clone, Copy)]
struct Place<'p> {
    line: u64,
    text: &'p [u8],
}

fn load_vertices(ctx: &mut Context<'_>, plan: &TablePlan, vertices: &VertexPlan) -> Result<()> {
    let mut batches = VertexBatches::default();
    let space = ctx.ids.space(&vertices.space);
    each_row(ctx, plan, true, |ctx, _, cells, values| {
        let ElementCells { label, id } = match cells.element {
            Ok(element) => element,
            Err(reason) => return Ok(Err(reason)),
        };
        let at = batches.open(label.as_deref().unwrap_or(VERTEX_LABEL));
        let table = batches.at(at);
        if let Some(id) = id
            && let Err(reason) = claim(ctx, vertices, space, id, table)
        {
            return Ok(Err(reason));
        }
        table.columns.define(vertices.properties.iter().map(|property| &property.key));
        for (property, value) in vertices.properties.iter().zip(values) {
            match (property.cardinality, value) {
                (_, Value::Null) => {}
                (Some(cardinality), Value::List(list)) if !list.is_empty() => {
                    table.multi.push(multi_property(table.row(), &property.key, cardinality, &list));
                }
                (Some(_), _) => {}
                (None, value) => table.columns.set(property.slot, value),
            }
        }
        for (key, value) in &vertices.constants {
            table.columns.set_key(key, value.clone());
        }
        batches.end_row(at, ctx.sink, &mut ctx.ids)?;
        ctx.files[plan.file].vertices += 1;
        Ok(Ok(()))
    })?;
    batches.flush(ctx.sink, &mut ctx.ids)
}

/// Makes the row's vertex known by its id: in its space, and where users see the id, globally.
fn claim(
    ctx: &mut Context<'_>,
    plan: &VertexPlan,
    space: SpaceId,
    id: RowId,
    table: &mut VertexTable,
) -> Result<(), Reason> {
    let RowId { key: id, user } = id;
    let user_id = match plan.user_ids {
        UserIds::Automatic => None,
        UserIds::Own => Some(user),
        UserIds::Prefixed => Some(prefixed(plan, &user)),
    };
    let globally = user_id.is_some() && (space != ctx.global || plan.user_ids == UserIds::Prefixed);
    // Looked up first: a claim cannot be taken back when the other one fails.
    if let (Some(user_id), true) = (&user_id, globally)
        && ctx.is_taken(user_id)
    {
        return Err(format!("a vertex with the id {user_id} exists already"));
    }
    if !ctx.claim(space, &id) {
        return Err(format!("a vertex with the id {id}{} exists already", in_space(&plan.space)));
    }
    table.claim(space, id);
    match user_id {
        Some(user_id) if globally => ctx.claim_user_id(table, user_id),
        Some(user_id) => {
            table.user_id(user_id);
            Ok(())
        }
        None => Ok(()),
    }
}

fn prefixed(plan: &VertexPlan, id: &UserId) -> UserId {
    let prefix = match (plan.space.as_str(), &plan.label.constant) {
        (GLOBAL_SPACE, Some(label)) => label.as_str(),
        (GLOBAL_SPACE, None) => VERTEX_LABEL,
        (space, _) => space,
    };
    UserId::String(format_smolstr!("{prefix}:{id}"))
}

fn multi_property(row: u32, key: &SmolStr, cardinality: Cardinality, list: &[Value]) -> MultiProperty {
    let mut values: Vec<MultiValue> = Vec::with_capacity(list.len());
    for value in list {
        let double = || values.iter().any(|other| mangrove_graph::compare::equal(&other.value, value));
        if cardinality == Cardinality::List || !double() {
            values.push(MultiValue { value: value.clone(), meta: Vec::new() });
        }
    }
    MultiProperty { row, key: key.clone(), cardinality, values }
}

fn load_edges(ctx: &mut Context<'_>, plan: &TablePlan, edges: &EdgePlan) -> Result<()> {
    let mut batches = EdgeBatches::default();
    let row =
        EdgeRow { plan, edges, source: ctx.ids.space(&edges.source.space), target: ctx.ids.space(&edges.target.space) };
    each_row(ctx, plan, edges.foreign.is_none(), |ctx, place, cells, values| {
        if edges.foreign.is_none() {
            return row.load(ctx, cells, values, &mut batches);
        }
        if !ctx.rejects.contains(plan.file, place.line) {
            // The pass over the vertices has rejected what is wrong with the row; only a missing target
            // is news, and it costs the edge, not the vertex.
            if let Err(reason) = row.load_foreign(ctx, cells, &mut batches)? {
                ctx.reject(&Pass { file: plan.file, path: &plan.path }, place.line, &reason, place.text)?;
            }
        }
        Ok(Ok(()))
    })?;
    batches.flush(ctx.sink)
}

struct EdgeRow<'a> {
    plan: &'a TablePlan,
    edges: &'a EdgePlan,
    source: SpaceId,
    target: SpaceId,
}

impl EdgeRow<'_> {
    fn load(
        &self,
        ctx: &mut Context<'_>,
        cells: Cells,
        values: &mut Values,
        batches: &mut EdgeBatches,
    ) -> Result<Result<(), Reason>> {
        let edges = self.edges;
        let [source, target] = cells.ends.expect("the plan of the row is that of an edge");
        let source = find_end(ctx, source, &edges.source, self.source, "source")?;
        let ends = match source {
            Ok(source) => find_end(ctx, target, &edges.target, self.target, "target")?.map(|target| (source, target)),
            Err(reason) => Err(reason),
        };
        let (source, target) = match ends {
            Ok((Some(source), Some(target))) => (source, target),
            Ok(_) => return Ok(Ok(())),
            Err(reason) => return Ok(Err(reason)),
        };
        let (label, id) = match cells.element {
            Ok(ElementCells { label: Some(label), id }) => (label, id.map(|id| id.user)),
            Ok(ElementCells { label: None, .. }) => return Ok(Err("the edge has no label".to_owned())),
            Err(reason) => return Ok(Err(reason)),
        };
        if let Some(Err(reason)) = id.as_ref().map(|id| ctx.claim_edge_id(id)) {
            return Ok(Err(reason));
        }
        let at = batches.open(&label);
        let table = batches.at(at);
        table.edge(source, target, id);
        table.columns.define(edges.properties.iter().map(|property| &property.key));
        for (property, value) in edges.properties.iter().zip(values) {
            if value != Value::Null {
                table.columns.set(property.slot, value);
            }
        }
        for (key, value) in &edges.constants {
            table.columns.set_key(key, value.clone());
        }
        batches.end_row(at, ctx.sink)?;
        ctx.files[self.plan.file].edges += 1;
        Ok(Ok(()))
    }

    fn load_foreign(
        &self,
        ctx: &mut Context<'_>,
        cells: Cells,
        batches: &mut EdgeBatches,
    ) -> Result<Result<(), Reason>> {
        let edges = self.edges;
        let foreign = edges.foreign.ok_or_else(|| Error::bug("called for foreign keys only"))?;
        let [own, _] = cells.ends.expect("the plan of the row is that of an edge");
        let Ok(Some(own)) = find_end(ctx, own, &edges.source, self.source, "source")? else { return Ok(Ok(())) };
        let at = batches.open(edges.label.constant.as_deref().expect("a foreign key has a constant label"));
        let mut outcome = Ok(());
        for key in &cells.keys {
            let found = match ctx.ids.get(self.target, key) {
                None => ctx.find(&edges.target.space, &FileId::parse(key).to_user_id())?,
                found => found,
            };
            let Some(other) = found else {
                if !edges.target.skip_missing {
                    outcome = Err(missing("target", key, &edges.target.space));
                }
                continue;
            };
            let (source, target) = if foreign.inward { (other, own) } else { (own, other) };
            batches.at(at).edge(source, target, None);
            batches.end_row(at, ctx.sink)?;
            ctx.files[self.plan.file].edges += 1;
        }
        Ok(outcome)
    }
}

/// The vertex at an end of an edge; `None` where the edge is to be dropped.
fn find_end(
    ctx: &mut Context<'_>,
    end: End,
    plan: &EndPlan,
    space: SpaceId,
    which: &str,
) -> Result<Result<Option<VertexId>, Reason>> {
    let (found, user) = match end {
        End::Int(number) => match ctx.ids.get_int(space, number) {
            Some(found) => return Ok(Ok(Some(found))),
            None => (None, UserId::int(number)),
        },
        End::Id(id) => (ctx.ids.get_id(space, &id.key), id.user),
        End::None if plan.skip_missing => return Ok(Ok(None)),
        End::None => return Ok(Err(format!("the edge has no {which}"))),
        End::Bad(reason) => return Ok(Err(reason)),
    };
    let found = match found {
        None => ctx.find(&plan.space, &user)?,
        found => found,
    };
    Ok(match found {
        None if !plan.skip_missing => Err(missing(which, &user.to_string(), &plan.space)),
        found => Ok(found),
    })
}

fn missing(which: &str, id: &str, space: &str) -> Reason {
    format!("the {which} vertex '{id}'{} does not exist", in_space(space))
}

fn in_space(space: &str) -> String {
    if space == GLOBAL_SPACE { String::new() } else { format!(" in the id space '{space}'") }
}
