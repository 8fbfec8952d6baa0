//! A load from its files to its report: the order of its passes, the labels it may have to look up first, and loads
//! that are only tried out.

mod dry_run;
mod labels;
mod order;

pub use dry_run::{ColumnReport, DryRun, TableReport, dry_run};
pub use order::{load, load_tables};
