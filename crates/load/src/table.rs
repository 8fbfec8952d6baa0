//! Rows of tables into vertices and edges, as a plan says.
//!
//! A row is read as a whole before anything of it is kept, so a bad row leaves no trace but its reject.

use mangrove_graph::{Result, UserId, Value};
use smol_str::{SmolStr, format_smolstr};

use crate::batch::{EdgeBatches, VertexBatches};
use crate::column_type::{ColumnType, Inference, list_items};
use crate::context::{Context, Pass};
use crate::id_map::{FileId, SpaceId, plain_integer};
use crate::input::Input;
use crate::plan::{
    EdgePlan, EndPlan, GLOBAL_SPACE, IdPlan, LabelPlan, PropertyPlan, Rows, TablePlan, UserIds, VertexPlan,
};
use crate::record::{Outcome, RecordReader};
use crate::sink::{Cardinality, MultiProperty, MultiValue};

type Reader = RecordReader<Input>;

/// Why a row is not loaded.
type Reason = String;

/// What TinkerPop calls elements without a label.
const VERTEX_LABEL: &str = "vertex";

/// Infers the types of a table's untyped columns from all its rows.
pub(crate) fn infer_types(ctx: &mut Context<'_>, plan: &mut TablePlan) -> Result<()> {
    let pass_plan = plan.clone();
    let untyped: Vec<usize> = plan.properties().iter().filter(|p| p.kind.is_none()).map(|p| p.column).collect();
    let mut inferences = vec![Inference::new(); untyped.len()];
    // Broken rows and rows of a wrong width say nothing; the pass that loads will reject them.
    each_row(ctx, &pass_plan, false, |_, reader| {
        for (column, inference) in untyped.iter().zip(&mut inferences) {
            if !is_null(&pass_plan, reader, *column) {
                inference.add(reader.field(*column));
            }
        }
        Ok(Ok(()))
    })?;
    let open = plan.properties_mut().iter_mut().filter(|property| property.kind.is_none());
    for (property, inference) in open.zip(inferences) {
        property.kind = Some(inference.column_type());
    }
    Ok(())
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
    mut row: impl FnMut(&mut Context<'_>, &Reader) -> Result<Result<(), Reason>>,
) -> Result<()> {
    let pass = Pass { file: plan.file, path: &plan.path };
    let mut reader = RecordReader::new(Input::open(&plan.path)?, plan.dialect);
    let mut header = plan.header;
    let mut head = Vec::new();
    loop {
        let outcome = match reader.next()? {
            Outcome::End => break,
            Outcome::Row if header => {
                header = false;
                head.extend_from_slice(reader.raw());
                continue;
            }
            Outcome::Broken(reason) => Err(reason.to_owned()),
            Outcome::Row if reader.len() != plan.width => {
                Err(format!("expected {} fields, found {}", plan.width, reader.len()))
            }
            Outcome::Row => row(ctx, &reader)?,
        };
        if let (Err(reason), true) = (outcome, rejecting) {
            // Foreign keys of a row that is no vertex are not looked at.
            if matches!(plan.rows, Rows::Vertices(_)) {
                ctx.rejects.remember(plan.file, reader.line());
            }
            ctx.reject(&pass, reader.line(), &reason, reader.raw())?;
            ctx.rejects.keep(plan.file, &plan.path, &head, reader.raw())?;
        }
        ctx.row(&pass, reader.input().bytes_taken())?;
    }
    ctx.end_pass(&pass);
    Ok(())
}

fn load_vertices(ctx: &mut Context<'_>, plan: &TablePlan, vertices: &VertexPlan) -> Result<()> {
    let mut batches = VertexBatches::default();
    let space = ctx.ids.space(&vertices.space);
    let mut values = Vec::new();
    each_row(ctx, plan, true, |ctx, reader| {
        let read = read_label(plan, &vertices.label, reader)
            .and_then(|label| Ok((label, read_values(plan, &vertices.properties, reader, &mut values)?)))
            .and_then(|(label, ())| Ok((label, needed_id(plan, vertices.id.as_ref(), reader)?)));
        let (label, id) = match read {
            Ok(read) => read,
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
        for (property, value) in vertices.properties.iter().zip(values.drain(..)) {
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
    table: &mut crate::batch::VertexTable,
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
    let mut row = EdgeRow {
        plan,
        edges,
        source: ctx.ids.space(&edges.source.space),
        target: ctx.ids.space(&edges.target.space),
        values: Vec::new(),
    };
    each_row(ctx, plan, edges.foreign.is_none(), |ctx, reader| {
        if edges.foreign.is_some() && ctx.rejects.contains(plan.file, reader.line()) {
            return Ok(Ok(()));
        }
        match edges.foreign {
            None => row.load(ctx, reader, &mut batches),
            Some(_) => {
                // The pass over the vertices has rejected what is wrong with the row; only a missing target
                // is news, and it costs the edge, not the vertex.
                let outcome = row.load_foreign(ctx, reader, &mut batches)?;
                if let Err(reason) = outcome {
                    let pass = Pass { file: plan.file, path: &plan.path };
                    ctx.reject(&pass, reader.line(), &reason, reader.raw())?;
                }
                Ok(Ok(()))
            }
        }
    })?;
    batches.flush(ctx.sink)
}

struct EdgeRow<'a> {
    plan: &'a TablePlan,
    edges: &'a EdgePlan,
    source: SpaceId,
    target: SpaceId,
    values: Vec<Value>,
}

impl EdgeRow<'_> {
    fn load(
        &mut self,
        ctx: &mut Context<'_>,
        reader: &Reader,
        batches: &mut EdgeBatches,
    ) -> Result<Result<(), Reason>> {
        let (plan, edges) = (self.plan, self.edges);
        let source = end(ctx, plan, &edges.source, self.source, "source", reader)?;
        let ends = match source {
            Ok(source) => end(ctx, plan, &edges.target, self.target, "target", reader)?.map(|target| (source, target)),
            Err(reason) => Err(reason),
        };
        let (source, target) = match ends {
            Ok((Some(source), Some(target))) => (source, target),
            Ok(_) => return Ok(Ok(())),
            Err(reason) => return Ok(Err(reason)),
        };
        let read = read_label(plan, &edges.label, reader)
            .and_then(|label| Ok((label, read_values(plan, &edges.properties, reader, &mut self.values)?)))
            .and_then(|(label, ())| Ok((label, needed_id(plan, edges.id.as_ref(), reader)?)));
        let (label, id) = match read {
            Ok((Some(label), id)) => (label, id.map(|id| id.user)),
            Ok((None, _)) => return Ok(Err("the edge has no label".to_owned())),
            Err(reason) => return Ok(Err(reason)),
        };
        if let Some(Err(reason)) = id.as_ref().map(|id| ctx.claim_edge_id(id)) {
            return Ok(Err(reason));
        }
        let at = batches.open(&label);
        let table = batches.at(at);
        table.edge(source, target, id);
        table.columns.define(edges.properties.iter().map(|property| &property.key));
        for (property, value) in edges.properties.iter().zip(self.values.drain(..)) {
            if value != Value::Null {
                table.columns.set(property.slot, value);
            }
        }
        for (key, value) in &edges.constants {
            table.columns.set_key(key, value.clone());
        }
        batches.end_row(at, ctx.sink)?;
        ctx.files[plan.file].edges += 1;
        Ok(Ok(()))
    }

    fn load_foreign(
        &mut self,
        ctx: &mut Context<'_>,
        reader: &Reader,
        batches: &mut EdgeBatches,
    ) -> Result<Result<(), Reason>> {
        let (plan, edges) = (self.plan, self.edges);
        let foreign = edges.foreign.expect("called for foreign keys only");
        let (Ok(Some(own)), Ok(Some(keys))) = (
            end(ctx, plan, &edges.source, self.source, "source", reader)?,
            text(plan, edges.target.column.column, reader),
        ) else {
            return Ok(Ok(()));
        };
        let at = batches.open(edges.label.constant.as_deref().expect("a foreign key has a constant label"));
        let mut outcome = Ok(());
        let mut single = Some(keys);
        let mut several = foreign.separator.map(|separator| list_items(keys, separator));
        let mut next = || match &mut several {
            Some(items) => items.next().map(str::trim),
            None => single.take(),
        };
        while let Some(key) = next() {
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
            ctx.files[plan.file].edges += 1;
        }
        Ok(outcome)
    }
}

/// The vertex at an end of an edge; `None` where the edge is to be dropped.
fn end(
    ctx: &mut Context<'_>,
    plan: &TablePlan,
    end: &EndPlan,
    space: SpaceId,
    which: &str,
    reader: &Reader,
) -> Result<Result<Option<mangrove_graph::VertexId>, Reason>> {
    let column = end.column.column;
    let field = reader.field(column);
    // Almost all ids are numbers, which need not be text first.
    let found = match plain_integer(field) {
        Some(number) if end.column.kind.is_none() && !is_null(plan, reader, column) => ctx.ids.get_int(space, number),
        _ => None,
    };
    if found.is_some() {
        return Ok(Ok(found));
    }
    let id = match read_id(plan, &end.column, reader) {
        Err(reason) => return Ok(Err(reason)),
        Ok(None) if end.skip_missing => return Ok(Ok(None)),
        Ok(None) => return Ok(Err(format!("the edge has no {which}"))),
        Ok(Some(id)) => id,
    };
    let found = match ctx.ids.get_id(space, &id.key) {
        None => ctx.find(&end.space, &id.user)?,
        found => found,
    };
    Ok(match found {
        None if !end.skip_missing => Err(missing(which, &id.user.to_string(), &end.space)),
        found => Ok(found),
    })
}

fn missing(which: &str, id: &str, space: &str) -> Reason {
    format!("the {which} vertex '{id}'{} does not exist", in_space(space))
}

fn in_space(space: &str) -> String {
    if space == GLOBAL_SPACE { String::new() } else { format!(" in the id space '{space}'") }
}

/// Whether a field has no value. In quotes, only the texts that somebody named stand for that, and the empty one.
fn is_null(plan: &TablePlan, reader: &Reader, column: usize) -> bool {
    let field = reader.field(column);
    plan.nulls.iter().any(|null| null.as_bytes() == field)
        && (plan.quoted_nulls || field.is_empty() || !reader.is_quoted(column))
}

/// A field as text; `None` where it has no value.
fn text<'r>(plan: &TablePlan, column: usize, reader: &'r Reader) -> Result<Option<&'r str>, Reason> {
    if is_null(plan, reader, column) {
        return Ok(None);
    }
    let text = std::str::from_utf8(reader.field(column));
    text.map(Some).map_err(|_| format!("field {} is not valid UTF-8", column + 1))
}

/// An id in a row: as the map of ids has it, and as users see it.
struct RowId {
    key: FileId,
    user: UserId,
}

fn read_id(plan: &TablePlan, id: &IdPlan, reader: &Reader) -> Result<Option<RowId>, Reason> {
    let Some(text) = text(plan, id.column, reader)? else { return Ok(None) };
    let Some(kind) = &id.kind else {
        let key = FileId::parse(text.trim());
        return Ok(Some(RowId { user: key.to_user_id(), key }));
    };
    let user = kind.parse(text).and_then(|value| UserId::from_value(&value));
    let user = user.ok_or_else(|| format!("'{}' is no id of the type {}", start(text), kind.name()))?;
    Ok(Some(RowId { key: FileId::from(&user), user }))
}

fn needed_id(plan: &TablePlan, id: Option<&IdPlan>, reader: &Reader) -> Result<Option<RowId>, Reason> {
    let Some(id) = id else { return Ok(None) };
    read_id(plan, id, reader)?.map(Some).ok_or_else(|| "the row has no id".to_owned())
}

/// The beginning of a text, for messages.
fn start(text: &str) -> String {
    text.chars().take(80).collect()
}

/// The label of a row; `None` where neither the plan nor the row has one.
fn read_label(plan: &TablePlan, label: &LabelPlan, reader: &Reader) -> Result<Option<SmolStr>, Reason> {
    let field = match label.column {
        Some(column) => text(plan, column, reader)?,
        None => None,
    };
    let Some(field) = field else { return Ok(label.constant.clone()) };
    let renamed = |name: &'_ str| label.names.get(name).map_or_else(|| SmolStr::from(name), SmolStr::from);
    let mut labels = label.constant.iter().cloned().chain(field.split(';').map(|name| renamed(name.trim())));
    let first = labels.next();
    Ok(first.map(|first| labels.fold(first, |all, label| format_smolstr!("{all}::{label}"))))
}

/// Reads the properties of a row into `values`, one a plan.
fn read_values(
    plan: &TablePlan,
    properties: &[PropertyPlan],
    reader: &Reader,
    values: &mut Vec<Value>,
) -> Result<(), Reason> {
    values.clear();
    for (at, property) in properties.iter().enumerate() {
        let kind = property.kind.as_ref().unwrap_or(&ColumnType::String);
        let value = match text(plan, property.column, reader)? {
            // In quotes there is something, if it is empty.
            None if !plan.quoted_nulls && reader.is_quoted(property.column) => kind.empty(),
            None => Value::Null,
            Some(text) => kind.parse(text).ok_or_else(|| {
                format!("'{}' in the column of '{}' is not of the type {}", start(text), property.key, kind.name())
            })?,
        };
        // Slots ascend with the columns unless one is shared.
        let shared = property.slot < at
            && properties[..at]
                .iter()
                .zip(&*values)
                .any(|(other, other_value)| other.slot == property.slot && *other_value != Value::Null);
        if shared && value != Value::Null {
            return Err(format!("the row has two values for '{}', in columns of different types", property.key));
        }
        values.push(value);
    }
    Ok(())
}
