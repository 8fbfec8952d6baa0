//! The last step of a table: parsed rows become elements in open batches.
//!
//! Rows arrive here in the order of the file, on the thread of the load (LOAD-4). Ids are claimed and looked up. A row
//! has been parsed as a whole before (`row`), so a bad row leaves nothing but its reject (LOAD-2).

use mangrove_graph::{Error, Result, UserId, Value, VertexId};
use smol_str::{SmolStr, format_smolstr};

use super::row::{ElementCells, End, ParsedRows, RejectReason, RowCells, RowId, TableRow};
use super::text as text_rows;
use crate::plan::{
    EdgePlan, EndPlan, GLOBAL_SPACE, PropertyPlan, RowsPlan, TableForm, TablePlan, UserIds, VERTEX_LABEL, ValuesPlan,
    VertexPlan, key_text,
};
use crate::sink::{Cardinality, EdgeIdentity, MultiPropertyRow, ValueWithMeta, VertexIdentity};
use crate::state::{
    BatchFile, EdgeBatches, LoadContext, OwnedValue, Pass, RowOrigin, SpaceId, VertexBatches, VertexTable,
};
use crate::values::FileId;

/// The values of a batch of rows. Each row takes its own from the front.
type Values = std::vec::IntoIter<Value>;

/// Infers the types of a table's untyped columns from all its rows.
pub(crate) fn infer_types(ctx: &mut LoadContext<'_>, plan: &mut TablePlan) -> Result<()> {
    match plan.form.clone() {
        TableForm::Text(form) => text_rows::infer_types(ctx, plan, &form),
        #[cfg(feature = "parquet")]
        TableForm::Parquet(_) => Err(Error::bug("a Parquet file says the types of its columns")),
        TableForm::Source => Err(Error::bug("the values of a program have types")),
    }
}

/// Loads the rows of a table.
pub(crate) fn load(ctx: &mut LoadContext<'_>, plan: &TablePlan) -> Result<()> {
    match &plan.rows {
        RowsPlan::Vertices(vertices) => load_vertices(ctx, plan, vertices),
        RowsPlan::Edges(edges) => load_edges(ctx, plan, edges),
        RowsPlan::Values(values) => load_values(ctx, plan, values),
    }
}

/// The file that fills the batches of a table.
fn batch_file(plan: &TablePlan, keeps_rows: bool) -> BatchFile<'_> {
    BatchFile { pass: Pass { file: plan.file, path: &plan.path }, keeps_rows: keeps_rows && plan.form.is_text() }
}

/// Calls `row` with each row of a table. It returns why a row is bad, if it is. Bad rows are rejected if this pass is
/// `rejecting`; otherwise another pass over the file does it.
fn each_row(
    ctx: &mut LoadContext<'_>,
    plan: &TablePlan,
    rejecting: bool,
    mut row: impl FnMut(&mut LoadContext<'_>, RowOrigin<'_>, RowCells, &mut Values) -> Result<Result<(), RejectReason>>,
) -> Result<()> {
    let pass = Pass { file: plan.file, path: &plan.path };
    let width = plan.properties().len();
    let take = |ctx: &mut LoadContext<'_>, batch: ParsedRows| {
        let ParsedRows { rows, values, text, bytes_taken } = batch;
        let mut values = values.into_iter();
        for TableRow { line, raw, cells } in rows {
            let place = RowOrigin { line, text: &text[raw] };
            let rest = values.len() - if matches!(&cells, Ok(RowCells { element: Ok(_), .. })) { width } else { 0 };
            let outcome = match cells {
                Ok(cells) => row(ctx, place, cells, &mut values)?,
                Err(reason) => Err(reason),
            };
            // LOAD-2: the values of a rejected row are dropped with it.
            let left = values.len() - rest;
            values.by_ref().take(left).for_each(drop);
            if let (Err(reason), true) = (outcome, rejecting) {
                // A row without a vertex has no foreign keys.
                if matches!(plan.rows, RowsPlan::Vertices(_)) {
                    ctx.rejects.remember(plan.file, line);
                }
                ctx.reject(&pass, line, &reason, place.text)?;
                if plan.form.is_text() {
                    ctx.rejects.keep(plan.file, &plan.path, place.text)?;
                }
            }
            ctx.rows(&pass, 1, bytes_taken)?;
        }
        Ok(())
    };
    match &plan.form {
        TableForm::Text(form) => text_rows::each_batch(ctx, plan, form, take)?,
        #[cfg(feature = "parquet")]
        TableForm::Parquet(file) => super::parquet::each_batch(ctx, plan, file, take)?,
        TableForm::Source => super::source::each_batch(ctx, plan, take)?,
    }
    ctx.end_pass(&pass);
    Ok(())
}

fn load_vertices(ctx: &mut LoadContext<'_>, plan: &TablePlan, vertices: &VertexPlan) -> Result<()> {
    let mut batches = VertexBatches::new(batch_file(plan, true));
    let space = ctx.ids_mut().space(&vertices.space);
    each_row(ctx, plan, true, |ctx, place, cells, values| {
        let ElementCells { label, id } = match cells.element {
            Ok(element) => element,
            Err(reason) => return Ok(Err(reason)),
        };
        let label = label.as_deref().unwrap_or(VERTEX_LABEL);
        let at = batches.open(ctx, label, Some(vertices));
        let table = batches.at(at);
        if table.identity.is_none() && ctx.upsert {
            return Ok(Err(format!("no --key says how a vertex of '{label}' is found")));
        }
        if let Err(reason) = claim_key(ctx, vertices, table, values.as_slice()) {
            return Ok(Err(reason));
        }
        let owned = id.as_ref().map_or_else(Vec::new, |id| ctx.owned.take(space, &id.key));
        if let Some(id) = id
            && let Err(reason) = claim(ctx, vertices, space, id, table)
        {
            return Ok(Err(reason));
        }
        set_values(table, vertices, values);
        for value in owned {
            ctx.files[value.file].values += value.values.len() as u64;
            table.add_values(value);
        }
        batches.end_row(ctx, at, place)?;
        Ok(Ok(()))
    })?;
    batches.flush(ctx)
}

/// Sets the properties of the current row.
fn set_values(table: &mut VertexTable, plan: &VertexPlan, values: &mut Values) {
    table.columns.define(plan.properties.iter().map(|property| &property.key));
    for (property, value) in plan.properties.iter().zip(values) {
        match (property.cardinality, value) {
            (_, Value::Null) => {}
            (Some(cardinality), Value::List(list)) if !list.is_empty() => {
                table.multi.push(multi_property(table.row(), &property.key, cardinality, &list));
            }
            (Some(_), _) => {}
            (None, value) => table.columns.set(property.key_index, value),
        }
    }
    for (key, value) in &plan.constants {
        table.columns.set_key(key, value.clone());
    }
}

/// The value of a property in a row.
fn value_of<'v>(properties: &[PropertyPlan], values: &'v [Value], name: &str) -> Option<&'v Value> {
    let found = properties.iter().zip(values).filter(|(property, _)| property.key == name).map(|(_, value)| value);
    found.clone().find(|value| **value != Value::Null).or_else(|| found.clone().next())
}

/// LOAD-7: fails if another row of the load has the same values of the key of its vertices.
fn claim_key(
    ctx: &mut LoadContext<'_>,
    plan: &VertexPlan,
    table: &VertexTable,
    values: &[Value],
) -> Result<(), RejectReason> {
    let Some(VertexIdentity::Key(key)) = &table.identity else { return Ok(()) };
    // Ids are unique in their space, so a plain load need not check the property that keeps them.
    if !ctx.upsert && plan.id_property.as_ref().is_some_and(|id| key.properties == [id.clone()]) {
        return Ok(());
    }
    table.claim_key(ctx, |name| value_of(&plan.properties, values, name))
}

/// Claims the id of a row's vertex: in its id space and, if users see the id, in the global space.
fn claim(
    ctx: &mut LoadContext<'_>,
    plan: &VertexPlan,
    space: SpaceId,
    id: RowId,
    table: &mut VertexTable,
) -> Result<(), RejectReason> {
    let RowId { key: id, user } = id;
    let user_id = match plan.user_ids {
        UserIds::Automatic => None,
        UserIds::Own => Some(user),
        UserIds::Prefixed => Some(UserId::String(format_smolstr!("{}:{user}", plan.prefix()))),
    };
    let globally = user_id.is_some() && (space != ctx.global || plan.user_ids == UserIds::Prefixed);
    // Checked first, because the other claim cannot be withdrawn if this one fails.
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
        Some(user_id) if globally => table.claim_user_id(ctx, user_id),
        Some(user_id) => {
            table.user_id(user_id);
            Ok(())
        }
        None => Ok(()),
    }
}

/// Calls `each` with the label of each row of a table.
pub(crate) fn each_label(ctx: &mut LoadContext<'_>, plan: &TablePlan, mut each: impl FnMut(&str)) -> Result<()> {
    each_row(ctx, plan, false, |_, _, cells, _| {
        if let Ok(ElementCells { label: Some(label), .. }) = &cells.element {
            each(label);
        }
        Ok(Ok(()))
    })
}

/// Keeps the values of a file of values until their vertices are read.
fn load_values(ctx: &mut LoadContext<'_>, plan: &TablePlan, of: &ValuesPlan) -> Result<()> {
    let space = ctx.ids_mut().space(&of.owner.space);
    each_row(ctx, plan, true, |ctx, place, cells, values| {
        let Some([owner, _]) = cells.ends else { return Err(Error::bug("a row of values has an owner")) };
        if let Err(reason) = cells.element {
            return Ok(Err(reason));
        }
        let owner = match owner {
            End::Int(number) => FileId::Int(number),
            End::Id(id) => id.key,
            End::Vertex(_) => return Err(Error::bug("only ends of edges are looked up when they are parsed")),
            End::None => return Ok(Err("the row names no vertex".to_owned())),
            End::Bad(reason) => return Ok(Err(reason)),
        };
        for (property, value) in of.properties.iter().zip(values) {
            let values = match value {
                Value::Null => continue,
                Value::List(items) => items.to_vec(),
                value => vec![value],
            };
            let Some(cardinality) = property.cardinality.filter(|_| !values.is_empty()) else { continue };
            let text = if ctx.rejects.keeps_rows() { place.text.into() } else { Box::default() };
            let key = property.key.clone();
            let value = OwnedValue { key, cardinality, values, file: plan.file, line: place.line, text };
            ctx.owned.add(space, owner.clone(), value);
        }
        Ok(Ok(()))
    })
}

/// Rejects the values whose vertices are in no file.
pub(crate) fn reject_ownerless(ctx: &mut LoadContext<'_>, plans: &[TablePlan]) -> Result<()> {
    for (owner, value) in ctx.owned.take_rest() {
        let plan = plans.iter().find(|plan| plan.file == value.file && matches!(plan.rows, RowsPlan::Values(_)));
        let Some((plan, RowsPlan::Values(of))) = plan.map(|plan| (plan, &plan.rows)) else {
            return Err(Error::bug("values come from a file of values"));
        };
        // A row with several values is rejected once.
        if of.owner.skip_missing || ctx.rejects.contains(value.file, value.line) {
            continue;
        }
        ctx.rejects.remember(value.file, value.line);
        let reason = format!("no file of this load has the vertex {owner}{}", in_space(&of.owner.space));
        ctx.reject(&Pass { file: plan.file, path: &plan.path }, value.line, &reason, &value.text)?;
        if plan.form.is_text() {
            ctx.rejects.keep(plan.file, &plan.path, &value.text)?;
        }
    }
    Ok(())
}

fn multi_property(row: u32, key: &SmolStr, cardinality: Cardinality, list: &[Value]) -> MultiPropertyRow {
    let values = Vec::with_capacity(list.len());
    let mut property = MultiPropertyRow { row, key: key.clone(), cardinality, values };
    list.iter().for_each(|value| property.push(ValueWithMeta { value: value.clone(), meta: Vec::new() }));
    property
}

fn load_edges(ctx: &mut LoadContext<'_>, plan: &TablePlan, edges: &EdgePlan) -> Result<()> {
    let mut batches = EdgeBatches::new(batch_file(plan, edges.foreign.is_none()));
    let [source, target] = [&edges.source, &edges.target].map(|end| ctx.ids_mut().space(&end.space));
    let row = EdgeRow { edges, source, target };
    each_row(ctx, plan, edges.foreign.is_none(), |ctx, place, cells, values| {
        if edges.foreign.is_none() {
            return row.load(ctx, place, cells, values, &mut batches);
        }
        if !ctx.rejects.contains(plan.file, place.line) {
            // The pass over the vertices has rejected rows with faults. The only fault left is a missing target, which
            // rejects the edge, not the vertex.
            if let Err(reason) = row.load_foreign(ctx, place, cells, &mut batches)? {
                ctx.reject(&Pass { file: plan.file, path: &plan.path }, place.line, &reason, place.text)?;
            }
        }
        Ok(Ok(()))
    })?;
    batches.flush(ctx)
}

struct EdgeRow<'a> {
    edges: &'a EdgePlan,
    source: SpaceId,
    target: SpaceId,
}

impl EdgeRow<'_> {
    fn load(
        &self,
        ctx: &mut LoadContext<'_>,
        place: RowOrigin<'_>,
        cells: RowCells,
        values: &mut Values,
        batches: &mut EdgeBatches<'_>,
    ) -> Result<Result<(), RejectReason>> {
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
        let at = batches.open(ctx, &label, id.is_some(), Some(edges));
        let table = batches.at(at);
        if let EdgeIdentity::Key(key) = &table.identity {
            let values = key_text(key, |name| value_of(&edges.properties, values.as_slice(), name));
            let claimed = values.and_then(|values| ctx.claim_edge_key(&table.label, (source, target), values));
            if let Err(reason) = claimed {
                return Ok(Err(reason));
            }
        }
        table.edge(source, target, id);
        table.columns.define(edges.properties.iter().map(|property| &property.key));
        for (property, value) in edges.properties.iter().zip(values) {
            if value != Value::Null {
                table.columns.set(property.key_index, value);
            }
        }
        for (key, value) in &edges.constants {
            table.columns.set_key(key, value.clone());
        }
        batches.end_row(ctx, at, place)?;
        Ok(Ok(()))
    }

    fn load_foreign(
        &self,
        ctx: &mut LoadContext<'_>,
        place: RowOrigin<'_>,
        cells: RowCells,
        batches: &mut EdgeBatches<'_>,
    ) -> Result<Result<(), RejectReason>> {
        let edges = self.edges;
        let foreign = edges.foreign.ok_or_else(|| Error::bug("called for foreign keys only"))?;
        let [own, _] = cells.ends.expect("the plan of the row is that of an edge");
        let Ok(Some(own)) = find_end(ctx, own, &edges.source, self.source, "source")? else { return Ok(Ok(())) };
        let label = edges.label.constant.as_deref().expect("a foreign key has a constant label");
        let at = batches.open(ctx, label, false, Some(edges));
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
            batches.end_row(ctx, at, place)?;
        }
        Ok(outcome)
    }
}

/// The vertex at an end of an edge; `None` if the edge is to be dropped in silence.
fn find_end(
    ctx: &mut LoadContext<'_>,
    end: End,
    plan: &EndPlan,
    space: SpaceId,
    which: &str,
) -> Result<Result<Option<VertexId>, RejectReason>> {
    let (found, user) = match end {
        End::Int(number) => match ctx.ids.get_int(space, number) {
            Some(found) => return Ok(Ok(Some(found))),
            None => (None, UserId::int(number)),
        },
        End::Vertex(found) => return Ok(Ok(Some(found))),
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

fn missing(which: &str, id: &str, space: &str) -> RejectReason {
    format!("the {which} vertex '{id}'{} does not exist", in_space(space))
}

fn in_space(space: &str) -> String {
    if space == GLOBAL_SPACE { String::new() } else { format!(" in the id space '{space}'") }
}
