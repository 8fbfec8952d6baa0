//! Bytes of a vertex and an edge, as the store counts its allocations: the difference before and after they are added.

use mangrove::{Database, Result};

use super::Context;
use super::insert::EDGE_BYTES_MAX;
use crate::options::Suite;
use crate::people::{self, PeopleContent, PeopleNames};
use crate::report::{Growing, Metric, Row};
use crate::social::{self, KNOWS};

pub(super) fn run(context: &Context<'_>, report: &mut Growing<'_>) -> Result<()> {
    let scale = context.options.scale;
    let count = 1usize << scale.log_vertices();
    let mut push = |case: &str, variant: &str, bytes: f64, target: Option<f64>| {
        report.push(Row::single(Suite::Memory.name(), case, variant, Metric::Size, bytes, "B").aiming_at(target));
    };
    for (variant, shape) in [
        ("no id, no properties", PeopleContent::Bare),
        ("id", PeopleContent::Ids),
        ("id, 2 properties", PeopleContent::TwoProperties),
    ] {
        let bytes = people::database(count, shape)?.memory().total_bytes();
        push("vertex", variant, bytes as f64 / count as f64, None);
    }
    let edges = social::edges(scale);
    let without = people::database(count, PeopleContent::Ids)?.memory().total_bytes();
    let with = with_edges(count, &edges)?;
    let bytes = (with.memory().total_bytes() - without) as f64 / edges.len() as f64;
    push("edge", "no properties", bytes, Some(EDGE_BYTES_MAX));
    for row in with.memory().rows.iter().filter(|row| row.bytes > 0) {
        push("graph, by record", row.name, row.bytes as f64, None);
    }
    Ok(())
}

fn with_edges(count: usize, edges: &[(u32, u32)]) -> Result<Database> {
    let database = Database::in_memory();
    let names = PeopleNames::of(&database);
    let knows = database.catalog().intern_label_text(KNOWS);
    let mut loader = database.bulk_load()?;
    let vertices = people::load(&mut loader, names.person, &people::batches(&database, count, PeopleContent::Ids))?;
    social::load_edges(&mut loader, knows, &social::ends(&vertices, edges))?;
    loader.finish()?;
    Ok(database)
}
