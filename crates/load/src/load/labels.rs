//! The labels that the files of a load have, found before anything is loaded.
//!
//! The plan knows a constant label. Labels in columns and in documents take a pass over the file. So this runs only if
//! the caller named keys, because a key must be for a label of the load.

use std::collections::BTreeSet;

use mangrove_graph::{Result, TabletId, UserId, VertexId};
use smol_str::SmolStr;

use crate::document;
use crate::input::in_file;
use crate::options::LoadOptions;
use crate::plan::{Identities, Listing, RowsPlan, TablePlan};
use crate::progress::LoadProgress;
use crate::sink::{EdgeBatch, LoadSink, VertexBatch, VertexIdentity};
use crate::state::{LoadContext, Rejects};
use crate::table;

/// The labels of vertices, and those of edges.
#[derive(Default)]
pub(crate) struct FoundLabels {
    pub(crate) vertices: BTreeSet<SmolStr>,
    pub(crate) edges: BTreeSet<SmolStr>,
}

/// Finds the labels in the files of a load.
///
/// # Errors
///
/// If a file cannot be read, and if a key is for a label of a table that does not have the property of the key.
pub(crate) fn of(
    listing: &Listing,
    plans: &[TablePlan],
    identities: &Identities,
    options: &LoadOptions,
) -> Result<FoundLabels> {
    let (mut labels, mut of_columns) = (FoundLabels::default(), FoundLabels::default());
    let paths: Vec<_> = listing.files.iter().map(|file| file.path.clone()).collect();
    let mut progress = |_: LoadProgress<'_>| {};
    let rejects = Rejects::new(None, u64::MAX);
    let mut ctx = LoadContext::new(&mut labels, &mut progress, rejects, &paths, None, options);
    for plan in plans {
        let (column, all) = match &plan.rows {
            RowsPlan::Vertices(plan) => (plan.label.column, &mut of_columns.vertices),
            RowsPlan::Edges(plan) => (plan.label.column, &mut of_columns.edges),
            RowsPlan::Values(_) => continue,
        };
        if column.is_some() {
            let mut found = BTreeSet::new();
            table::each_label(&mut ctx, plan, |label| found.extend(parts(label))).map_err(in_file(&plan.path))?;
            identities.check_columns(plan, &found)?;
            all.append(&mut found);
        }
    }
    document::load_vertices(&mut ctx, listing)?;
    document::load_edges(&mut ctx, listing)?;
    drop(ctx);
    labels.vertices.extend(of_columns.vertices);
    labels.edges.extend(of_columns.edges);
    let FoundLabels { vertices, edges } = constants(plans);
    labels.vertices.extend(vertices);
    labels.edges.extend(edges);
    Ok(labels)
}

/// The labels that all rows of a table have.
pub(crate) fn constants(plans: &[TablePlan]) -> FoundLabels {
    let mut labels = FoundLabels::default();
    for plan in plans {
        match &plan.rows {
            RowsPlan::Vertices(plan) => {
                labels.vertices.extend(parts(plan.label.constant.as_deref().unwrap_or_default()))
            }
            RowsPlan::Edges(plan) => labels.edges.extend(parts(plan.label.constant.as_deref().unwrap_or_default())),
            RowsPlan::Values(_) => {}
        }
    }
    labels
}

/// The labels of a label set.
fn parts(label: &str) -> impl Iterator<Item = SmolStr> {
    label.split("::").filter(|part| !part.is_empty()).map(SmolStr::from)
}

impl LoadSink for FoundLabels {
    fn vertices(&mut self, label: &str, batch: VertexBatch) -> Result<Vec<VertexId>> {
        self.vertices.extend(parts(label));
        Ok(vec![VertexId::new(TabletId(0), 0); batch.len])
    }

    fn edges(&mut self, label: &str, _: EdgeBatch) -> Result<()> {
        self.edges.extend(parts(label));
        Ok(())
    }

    /// This pass does not check that edges have their ends.
    fn find(&mut self, _: &VertexIdentity, _: &UserId) -> Result<Option<VertexId>> {
        Ok(Some(VertexId::new(TabletId(0), 0)))
    }
}
