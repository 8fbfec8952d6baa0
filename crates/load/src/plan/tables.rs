//! The plans of all tables of a load.
//!
//! First each table is drafted, then the id spaces that edges refer to are gathered from all drafts, then the plans are
//! made.

use hashbrown::HashSet;
use mangrove_graph::{Error, Result};

use super::draft::TableDraft;
use super::listing::Listing;
use super::table_plan::TablePlan;
use crate::input::in_file;
use crate::mapping::Defaults;
use crate::options::{LoadFormat, LoadOptions};

pub(crate) fn plan_tables(listing: &Listing, options: &LoadOptions) -> Result<Vec<TablePlan>> {
    let no_defaults = Defaults::default();
    let defaults = options.mapping.as_ref().map_or(&no_defaults, |mapping| &mapping.defaults);
    let tables = listing
        .tables()
        .map(|(at, file)| {
            let rule = file.rule.as_ref();
            let open = match file.format {
                LoadFormat::Parquet => TableDraft::open_parquet(at, &file.path, rule, defaults),
                _ => TableDraft::open(at, &file.path, rule, defaults, options.delimiter),
            };
            open.map(|table| table.with_array_delimiter(options.array_delimiter)).map_err(in_file(&file.path))
        })
        .collect::<Result<Vec<_>>>()?;
    let mut spaces = HashSet::new();
    tables.iter().for_each(|table| table.referenced_spaces(&mut spaces));
    let mut plans = Vec::new();
    for (table, (_, file)) in tables.iter().zip(listing.tables()) {
        let unruled = options.mapping.is_some() && file.rule.is_none();
        let context = |error: Error| match unruled {
            true => error.context("no rule of the mapping matches this file, so its header must say what it holds"),
            false => error,
        };
        plans.extend(table.plans(&spaces).map_err(context).map_err(in_file(table.path()))?);
    }
    Ok(plans)
}
