//! Values that algorithms leave: one property of all vertices is written, in transactions of as many vertices as the option `write`
//! takes.
//!
//! | variant | meaning |
//! |---|---|
//! | `one by one` | a call for each vertex |
//! | `together` | a call for all vertices of a transaction, as algorithms do it |

use std::time::Instant;

use mangrove::{Database, DatabaseOptions, Result, Value, VertexId};

use super::NAME;
use crate::harness::Timing;
use crate::report::{Growing, Row};
use crate::run_directory::RunDirectory;
use crate::suites::Context;

/// Vertices of a transaction.
const WRITTEN: usize = 16_384;
/// How often all values are written in a measurement; each time replaces those of the time before.
const TIMES: usize = 5;

pub(super) fn run(context: &Context<'_>, report: &mut Growing<'_>, folder: &RunDirectory) -> Result<()> {
    for place in ["in memory", "in a directory"] {
        for (indexed, with_index) in [("", false), (", with an index", true)] {
            let case = format!("values written, a value, {place}{indexed}");
            if !context.options.wants(&case, "") {
                continue;
            }
            let mut together = None;
            for (variant, at_once) in [("together", WRITTEN), ("one by one", 1)] {
                let database = match place {
                    "in memory" => Database::in_memory(),
                    _ => Database::open(&folder.fresh("written").to_string_lossy(), &DatabaseOptions::default())?,
                };
                let vertices = load(&database, 1 << context.options.scale.log_vertices())?;
                if with_index {
                    database.create_index(None, "rank", false, false)?;
                }
                let mut times = Vec::new();
                for time in 0..=TIMES {
                    let begin = Instant::now();
                    write(&database, &vertices, time, at_once)?;
                    times.push(begin.elapsed().as_secs_f64() * 1e9 / vertices.len() as f64);
                }
                // The first values replace none.
                let first = Timing::of(vec![times.remove(0)]);
                let new = format!("{case}, none before");
                let row =
                    |case: &str, timing, before: Option<f64>| Row::time(NAME, case, variant, timing).beside(before);
                let replaced = Timing::of(times);
                let (first_before, before) = together.unzip();
                report.push(row(&new, first, first_before));
                report.push(row(&case, replaced, before));
                together = together.or(Some((first.median, replaced.median)));
            }
        }
    }
    Ok(())
}

fn load(database: &Database, count: usize) -> Result<Vec<VertexId>> {
    let label = database.catalog().intern_label_text("person");
    let mut loader = database.bulk_load()?;
    let vertices = loader.vertices(label, count, None, &[])?;
    loader.finish()?;
    Ok(vertices)
}

/// Writes a value for each vertex, so many in a call.
fn write(database: &Database, vertices: &[VertexId], time: usize, at_once: usize) -> Result<()> {
    for (number, vertices) in vertices.chunks(WRITTEN).enumerate() {
        let rank = |at: usize| Value::F64((number * WRITTEN + at + time * 7) as f64 / 3.0);
        let values: Vec<_> = vertices.iter().enumerate().map(|(at, vertex)| (*vertex, rank(at))).collect();
        let transaction = database.begin()?;
        values.chunks(at_once).try_for_each(|values| transaction.set_vertex_property("rank", values))?;
        transaction.commit()?;
    }
    Ok(())
}
