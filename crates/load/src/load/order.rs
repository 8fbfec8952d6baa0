//! The order of the passes of a load.
//!
//! 1. The files are listed: folders are opened, formats chosen, rules of the mapping found.
//! 2. Every table is planned. If one cannot be planned, the load fails before anything is written.
//! 3. The types of untyped columns are inferred, with one pass over each table that has any.
//! 4. Files of values are read, then the vertices of every file, then the edges of every file.
//!
//! - **LOAD-3.** All vertices of a load reach the sink before its first edge, whatever the order of the files. So an
//!   edge may refer to a vertex of any file. Within vertices, and within edges, elements with chosen ids come before
//!   those whose ids the store chooses.
//!
//! ```text
//! infer ─ values ─ vertices with ids ─ documents ─ vertices without ─ edges with ids ─ documents ─ edges without
//! ```

use std::path::PathBuf;

use mangrove_graph::Result;

use super::labels::{self, FoundLabels};
use crate::document;
use crate::input::in_file;
use crate::options::LoadOptions;
use crate::plan::{Identities, LabelPlan, Listing, RowsPlan, TablePlan, UserIds, plan_source, plan_tables};
use crate::progress::{LoadProgress, LoadReport, UpsertCounts};
use crate::sink::{LoadSink, UpsertKeys};
use crate::source::SourceTable;
use crate::state::{LoadContext, Rejects};
use crate::table;

/// Loads files, and the files in folders, into a sink. The path `-` is standard input.
///
/// A folder stands for the files in it and in its folders, in the order of their names. With a mapping, these are the
/// files that it has a rule for; without one, the files whose extension names a format. A file that the caller names
/// and that has no rule is read by its header.
///
/// # Errors
///
/// If a file cannot be read or planned, if a document is damaged, if there are more rejects than allowed, and if the
/// sink fails. The sink keeps what it was given before.
pub fn load(
    files: &[PathBuf],
    options: &LoadOptions,
    sink: &mut dyn LoadSink,
    progress: &mut dyn FnMut(LoadProgress<'_>),
) -> Result<LoadReport> {
    load_seeing(files, options, sink, progress, &mut |_| {})
}

/// As [`load`], and calls `see` with the plans of all tables, with all types, before the sink gets anything.
pub(crate) fn load_seeing(
    files: &[PathBuf],
    options: &LoadOptions,
    sink: &mut dyn LoadSink,
    progress: &mut dyn FnMut(LoadProgress<'_>),
    see: &mut dyn FnMut(&[TablePlan]),
) -> Result<LoadReport> {
    let begin = (options.clock)();
    let listing = Listing::new(files, options)?;
    let paths: Vec<PathBuf> = listing.files.iter().map(|file| file.path.clone()).collect();
    let mut plans = plan_tables(&listing, options)?;
    let identities = identities(&listing, &plans, options)?;
    let rejects = Rejects::new(options.rejects.clone(), options.max_rejects);
    let mut ctx = LoadContext::new(sink, progress, rejects, &paths, identities, options);
    for plan in &plans {
        // One pass to load it, and one to infer types.
        (0..1 + u32::from(plan.untyped())).try_for_each(|_| ctx.expect_pass(plan.file, &plan.path))?;
    }
    for (at, file) in listing.documents() {
        // One pass for vertices, one for edges.
        (0..2).try_for_each(|_| ctx.expect_pass(at, &file.path))?;
    }
    for plan in plans.iter_mut().filter(|plan| plan.untyped()) {
        let path = plan.path.clone();
        table::infer_types(&mut ctx, plan).map_err(in_file(&path))?;
    }
    see(&plans);
    for plan in plans.iter().filter(|plan| matches!(plan.rows, RowsPlan::Values(_))) {
        table::load(&mut ctx, plan).map_err(in_file(&plan.path))?;
    }
    // LOAD-3: vertices before edges; within each, chosen ids before automatic ones.
    each_table(&mut ctx, &plans, TablePass { vertices: true, chosen_ids: true })?;
    document::load_vertices(&mut ctx, &listing)?;
    each_table(&mut ctx, &plans, TablePass { vertices: true, chosen_ids: false })?;
    table::reject_ownerless(&mut ctx, &plans)?;
    each_table(&mut ctx, &plans, TablePass { vertices: false, chosen_ids: true })?;
    document::load_edges(&mut ctx, &listing)?;
    each_table(&mut ctx, &plans, TablePass { vertices: false, chosen_ids: false })?;
    report(ctx, listing.skipped, begin, options)
}

/// Loads tables that a program hands over into a sink. An edge may name vertices of any of the tables by their ids, whatever the
/// order of the tables, and each table is read once. Of the options, those about files have no effect.
///
/// # Errors
///
/// `InvalidArgument` if a table names a column that it does not have, and as those of [`load`].
pub fn load_tables<'a>(
    tables: Vec<SourceTable<'a>>,
    options: &LoadOptions,
    sink: &'a mut dyn LoadSink,
    progress: &'a mut dyn FnMut(LoadProgress<'_>),
) -> Result<LoadReport> {
    let begin = (options.clock)();
    let paths: Vec<PathBuf> = tables.iter().map(|table| PathBuf::from(&table.name)).collect();
    let plan = |(at, table): (usize, &SourceTable<'a>)| plan_source(at, table).map_err(in_file(&paths[at]));
    let plans = tables.iter().enumerate().map(plan).collect::<Result<Vec<_>>>()?;
    let identities = match &options.upsert {
        None => None,
        Some(keys) => Some(identities_of_sources(keys, &plans)?),
    };
    let rejects = Rejects::new(options.rejects.clone(), options.max_rejects);
    let mut ctx = LoadContext::new(sink, progress, rejects, &paths, identities, options);
    for (at, table) in tables.into_iter().enumerate() {
        ctx.expect_source(at, table.bytes);
        ctx.sources.push(Some(table.rows));
    }
    // LOAD-3
    for vertices in [true, false] {
        for chosen_ids in [true, false] {
            each_table(&mut ctx, &plans, TablePass { vertices, chosen_ids })?;
        }
    }
    report(ctx, Vec::new(), begin, options)
}

/// How an upsert recognizes the elements of tables, which are read once: if all labels are constants, a key for another label is
/// refused before anything is read.
fn identities_of_sources(keys: &UpsertKeys, plans: &[TablePlan]) -> Result<Identities> {
    let identities = Identities::of_upsert(keys, plans, None)?;
    let label = |plan: &TablePlan| match &plan.rows {
        RowsPlan::Vertices(plan) => plan.label.clone(),
        RowsPlan::Edges(plan) => plan.label.clone(),
        RowsPlan::Values(_) => LabelPlan::default(),
    };
    if identities.has_keys() && plans.iter().all(|plan| label(plan).column.is_none()) {
        let FoundLabels { vertices, edges } = labels::constants(plans);
        identities.check_labels(&vertices, &edges)?;
    }
    Ok(identities)
}

/// Ends a load.
fn report(
    mut ctx: LoadContext<'_>,
    skipped: Vec<PathBuf>,
    begin: std::time::Duration,
    options: &LoadOptions,
) -> Result<LoadReport> {
    ctx.rejects.finish()?;
    Ok(LoadReport {
        vertices: ctx.files.iter().map(|file| file.vertices).sum(),
        edges: ctx.files.iter().map(|file| file.edges).sum(),
        upserts: UpsertCounts::sum(&ctx.files),
        rejects: ctx.rejects.count(),
        rejected: ctx.rejects.take_first(),
        files: ctx.files,
        skipped,
        seconds: (options.clock)().saturating_sub(begin).as_secs_f64(),
    })
}

/// The tables of one pass.
#[derive(Clone, Copy, PartialEq, Eq)]
struct TablePass {
    vertices: bool,
    /// True if users chose the ids. These come first (LOAD-3).
    chosen_ids: bool,
}

impl TablePass {
    fn of(plan: &TablePlan) -> Option<Self> {
        match &plan.rows {
            RowsPlan::Vertices(plan) => {
                Some(TablePass { vertices: true, chosen_ids: plan.user_ids != UserIds::Automatic })
            }
            RowsPlan::Edges(plan) => Some(TablePass { vertices: false, chosen_ids: plan.id.is_some() }),
            // Read before all vertices.
            RowsPlan::Values(_) => None,
        }
    }
}

fn each_table(ctx: &mut LoadContext<'_>, plans: &[TablePlan], turn: TablePass) -> Result<()> {
    let mut plans = plans.iter().filter(|plan| TablePass::of(plan) == Some(turn));
    plans.try_for_each(|plan| table::load(ctx, plan).map_err(in_file(&plan.path)))
}

/// How an upsert recognizes elements; `None` for a plain load. Fails if it could not recognize some.
fn identities(listing: &Listing, plans: &[TablePlan], options: &LoadOptions) -> Result<Option<Identities>> {
    let Some(keys) = &options.upsert else { return Ok(None) };
    let identities = Identities::of_upsert(keys, plans, options.mapping.as_ref())?;
    if identities.has_keys() {
        let FoundLabels { vertices, edges } = labels::of(listing, plans, &identities, options)?;
        identities.check_labels(&vertices, &edges)?;
    }
    Ok(Some(identities))
}
