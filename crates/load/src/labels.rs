//! The labels that the files of a load have, looked up before anything is loaded.
//!
//! A constant label is known from the plan. Labels in columns and in documents take a pass over the file, so this is asked
//! only where the caller named keys, which must fit something.

use std::collections::BTreeSet;

use mangrove_graph::{Result, TabletId, UserId, VertexId};
use smol_str::SmolStr;

use crate::context::{Context, in_file};
use crate::identity::{Identities, VertexIdentity};
use crate::load::{Listing, LoadOptions, each_document};
use crate::plan::{Rows, TablePlan};
use crate::reject::Rejects;
use crate::sink::{EdgeBatch, Sink, VertexBatch};
use crate::{graphml, graphson, table};

/// Labels of vertices and of edges, each on its own.
#[derive(Default)]
pub(crate) struct Labels {
    pub(crate) vertices: BTreeSet<SmolStr>,
    pub(crate) edges: BTreeSet<SmolStr>,
}

/// The labels in the files of a load.
///
/// # Errors
///
/// When a file cannot be read, and when a key is for a label that a table has, and the table has no such property.
pub(crate) fn of(
    listing: &Listing,
    plans: &[TablePlan],
    identities: &Identities,
    options: &LoadOptions,
) -> Result<Labels> {
    let (mut labels, mut of_columns) = (Labels::default(), Labels::default());
    let paths: Vec<_> = listing.files.iter().map(|file| file.path.clone()).collect();
    let mut progress = |_: crate::Progress<'_>| {};
    let rejects = Rejects::new(None, u64::MAX);
    let mut ctx = Context::new(&mut labels, &mut progress, rejects, &paths, None, options);
    for plan in plans {
        let (column, all) = match &plan.rows {
            Rows::Vertices(plan) => (plan.label.column, &mut of_columns.vertices),
            Rows::Edges(plan) => (plan.label.column, &mut of_columns.edges),
            Rows::Values(_) => continue,
        };
        if column.is_some() {
            let mut found = BTreeSet::new();
            table::each_label(&mut ctx, plan, |label| found.extend(parts(label))).map_err(in_file(&plan.path))?;
            identities.check_columns(plan, &found)?;
            all.append(&mut found);
        }
    }
    each_document(&mut ctx, listing, graphson::load_vertices, graphml::load_vertices)?;
    each_document(&mut ctx, listing, graphson::load_edges, graphml::load_edges)?;
    labels.vertices.extend(of_columns.vertices);
    labels.edges.extend(of_columns.edges);
    for plan in plans {
        match &plan.rows {
            Rows::Vertices(plan) => labels.vertices.extend(parts(plan.label.constant.as_deref().unwrap_or_default())),
            Rows::Edges(plan) => labels.edges.extend(parts(plan.label.constant.as_deref().unwrap_or_default())),
            Rows::Values(_) => {}
        }
    }
    Ok(labels)
}

/// The labels of a label set.
fn parts(label: &str) -> impl Iterator<Item = SmolStr> {
    label.split("::").filter(|part| !part.is_empty()).map(SmolStr::from)
}

impl Sink for Labels {
    fn vertices(&mut self, label: &str, batch: VertexBatch) -> Result<Vec<VertexId>> {
        self.vertices.extend(parts(label));
        Ok(vec![VertexId::new(TabletId(0), 0); batch.len])
    }

    fn edges(&mut self, label: &str, _: EdgeBatch) -> Result<()> {
        self.edges.extend(parts(label));
        Ok(())
    }

    /// Whether an edge has its ends is not asked here.
    fn find(&mut self, _: &VertexIdentity, _: &UserId) -> Result<Option<VertexId>> {
        Ok(Some(VertexId::new(TabletId(0), 0)))
    }
}
