//! A load that is only tried: files are read, typed and checked as in a load, and nothing is written.
//!
//! A dry run does not ask the graph. It cannot know whether an upsert would create or change an element, nor whether
//! vertices exist that are ends of edges and in no file. The latter are counted.

use std::path::PathBuf;

use mangrove_graph::{Result, TabletId, UserId, VertexId};

use super::order::load_seeing;
use crate::options::LoadOptions;
use crate::plan::{EndPlan, GLOBAL_SPACE, IdPlan, LabelPlan, PropertyPlan, RowsPlan, TablePlan};
use crate::progress::{LoadProgress, LoadReport};
use crate::sink::{EdgeBatch, EdgeIdentity, LoadSink, Upserted, VertexBatch, VertexIdentity};

/// The report of a dry run.
#[derive(Clone, Debug, Default)]
pub struct DryRun {
    /// The counts that a load would report. For an upsert, all elements count as created.
    pub report: LoadReport,
    /// How each table is read. A table with foreign keys is listed once more for each of them.
    pub tables: Vec<TableReport>,
    /// Ends of edges that are in no file. An upsert would look for them in the graph.
    pub outside: u64,
}

/// How a table is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableReport {
    /// The file.
    pub path: PathBuf,
    /// The elements that its rows become, as in `vertices 'person'`.
    pub rows: String,
    /// Its columns, in their order.
    pub columns: Vec<ColumnReport>,
}

/// How a column is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnReport {
    /// Its name in the file or the mapping.
    pub column: String,
    /// Its use.
    pub meaning: String,
    /// The type of its values; empty if it has none.
    pub kind: String,
    /// True if the type was inferred from the fields.
    pub inferred: bool,
}

/// Tries a load without writing. Fails where the load would fail.
pub fn dry_run(files: &[PathBuf], options: &LoadOptions, progress: &mut dyn FnMut(LoadProgress<'_>)) -> Result<DryRun> {
    let mut sink = Nowhere { upsert: options.upsert.is_some(), outside: 0 };
    let mut tables = Vec::new();
    let report =
        load_seeing(files, options, &mut sink, progress, &mut |plans| tables = plans.iter().map(table).collect())?;
    Ok(DryRun { report, tables, outside: sink.outside })
}

fn table(plan: &TablePlan) -> TableReport {
    let rows = match &plan.rows {
        RowsPlan::Vertices(vertices) => format!("vertices {}", label(&vertices.label)),
        RowsPlan::Edges(edges) if edges.foreign.is_some() => format!("foreign keys, edges {}", label(&edges.label)),
        RowsPlan::Edges(edges) => format!("edges {}", label(&edges.label)),
        RowsPlan::Values(values) => format!("values of vertices{}", in_space(&values.owner.space)),
    };
    let columns = plan.columns.iter().enumerate().map(|(at, name)| column(plan, at, name));
    let foreign = matches!(&plan.rows, RowsPlan::Edges(edges) if edges.foreign.is_some());
    let columns = columns.filter(|column| !foreign || column.meaning != LEFT_OUT).collect();
    TableReport { path: plan.path.clone(), rows, columns }
}

const LEFT_OUT: &str = "left out";

fn label(label: &LabelPlan) -> String {
    match (&label.constant, label.column) {
        (Some(constant), None) => format!("'{constant}'"),
        (Some(constant), Some(_)) => format!("'{constant}' with the labels in a column"),
        (None, _) => "with the labels in a column".to_owned(),
    }
}

fn in_space(space: &str) -> String {
    if space == GLOBAL_SPACE { String::new() } else { format!(" in the id space '{space}'") }
}

fn column(plan: &TablePlan, at: usize, name: &str) -> ColumnReport {
    let mut meanings: Vec<String> = roles(plan, at);
    let properties: Vec<&PropertyPlan> = plan.properties().iter().filter(|property| property.column == at).collect();
    let many =
        |property: &PropertyPlan| if property.cardinality.is_some() { "values of the property" } else { "property" };
    meanings.extend(properties.iter().map(|property| format!("{} '{}'", many(property), property.key)));
    let kind = properties.first().and_then(|property| property.kind.as_ref()).map(|kind| kind.full_name());
    ColumnReport {
        column: name.to_owned(),
        meaning: if meanings.is_empty() { LEFT_OUT.to_owned() } else { meanings.join(", ") },
        kind: kind.unwrap_or_default(),
        inferred: properties.iter().any(|property| property.inferred),
    }
}

/// The uses of a column besides properties.
fn roles(plan: &TablePlan, at: usize) -> Vec<String> {
    let end = |end: &EndPlan, what: &str| (end.column.column == at).then(|| format!("{what}{}", in_space(&end.space)));
    let is_label = |label: &LabelPlan| (label.column == Some(at)).then(|| "label".to_owned());
    let is_id = |id: &Option<IdPlan>| id.as_ref().is_some_and(|id| id.column == at);
    let roles = match &plan.rows {
        RowsPlan::Vertices(vertices) => [
            is_id(&vertices.id).then(|| format!("id of the vertex{}", in_space(&vertices.space))),
            is_label(&vertices.label),
            None,
            None,
        ],
        RowsPlan::Edges(edges) => [
            is_id(&edges.id).then(|| "id of the edge".to_owned()),
            is_label(&edges.label),
            end(&edges.source, "source"),
            end(&edges.target, "target"),
        ],
        RowsPlan::Values(values) => [end(&values.owner, "id of the vertex"), None, None, None],
    };
    roles.into_iter().flatten().collect()
}

/// A sink that accepts everything and keeps nothing.
struct Nowhere {
    upsert: bool,
    outside: u64,
}

/// The vertex that stands for every vertex.
fn some_vertex() -> VertexId {
    VertexId::new(TabletId(0), 0)
}

impl LoadSink for Nowhere {
    fn vertices(&mut self, _: &str, batch: VertexBatch) -> Result<Vec<VertexId>> {
        Ok(vec![some_vertex(); batch.len])
    }

    fn edges(&mut self, _: &str, _: EdgeBatch) -> Result<()> {
        Ok(())
    }

    fn upsert_vertices(&mut self, _: &str, batch: VertexBatch, _: &VertexIdentity) -> Result<Vec<Upserted<VertexId>>> {
        Ok(vec![Upserted::Created(some_vertex()); batch.len])
    }

    fn upsert_edges(&mut self, _: &str, batch: EdgeBatch, _: &EdgeIdentity) -> Result<Vec<Upserted<()>>> {
        Ok(vec![Upserted::Created(()); batch.ends.len()])
    }

    fn find(&mut self, _: &VertexIdentity, _: &UserId) -> Result<Option<VertexId>> {
        self.outside += u64::from(self.upsert);
        Ok(self.upsert.then(some_vertex))
    }
}
