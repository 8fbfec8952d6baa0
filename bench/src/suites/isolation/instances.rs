//! One scope instance with 100,000 rows beside a hundred with ten (Banyan, 3.1), in one query.
//!
//! A query opens an instance for each of 101 vertices, and the heavy one comes first. The time is that from the begin of
//! the query to the last row of the hundred light instances. It stands beside the time of the same query on a graph with
//! the same vertices, in which the first vertex has no edge, so its instance has no row. The results are unordered, so
//! no light row has to wait for a heavy one.

use std::time::Instant;

use mangrove::{Database, Parameters, Prepared, Result, Value};

use super::SUITE;
use crate::harness::{Schedule, Timing, wrong};
use crate::options::{Options, Scale};
use crate::report::{Growing, Row};

/// Light instances, and the rows of each.
const LIGHT: usize = 100;
const LIGHT_ROWS: usize = 10;

/// The number of the heavy root.
const HEAVY: usize = LIGHT + 1;

/// The pass mark: this many times the time without the heavy instance.
const TIMES_MAX: f64 = 1.1;

/// The repetitions of a measurement. The queries are short, so their median needs more than those of other suites.
const REPETITIONS: usize = 101;

/// A traversal from the roots, and the number of its rows for each light root. Each row is the number of a light root, or
/// the number of rows of one. The number of the heavy root, and that of its rows, are larger, or 0.
struct Question {
    name: &'static str,
    text: &'static str,
    rows: usize,
}

const QUESTIONS: [Question; 4] = [
    Question { name: "rows", text: "g.V().hasLabel('root').local(out('has').values('of'))", rows: LIGHT_ROWS },
    Question {
        name: "distinct rows",
        text: "g.V().hasLabel('root').local(out('has').dedup().values('of'))",
        rows: LIGHT_ROWS,
    },
    Question { name: "counts", text: "g.V().hasLabel('root').local(out('has').has('of', gte(0)).count())", rows: 1 },
    Question {
        name: "tests",
        text: "g.V().hasLabel('root').where(out('has').has('of', gte(0)).count().is(without(0))).values('number')",
        rows: 1,
    },
];

pub(super) fn run(options: &Options, report: &mut Growing<'_>) -> Result<()> {
    let heavy_rows = if options.scale == Scale::Tiny { 2_000 } else { 100_000 };
    let (without, with) = (graph(heavy_rows, false)?, graph(heavy_rows, true)?);
    for Question { name, text, rows } in QUESTIONS {
        let case = format!("one heavy instance beside {LIGHT} light ones, {name}");
        if !options.wants(&case, "light") {
            continue;
        }
        let prepared = [without.prepare(text)?, with.prepare(text)?];
        let (mut alone, mut beside) = (Vec::new(), Vec::new());
        let repetitions = if options.seconds == 0.0 { 3 } else { REPETITIONS };
        for _ in 0..repetitions {
            alone.push(light_nanos(&without, &prepared[0], LIGHT * rows)?);
            beside.push(light_nanos(&with, &prepared[1], LIGHT * rows)?);
        }
        let (alone, beside) = (Timing::of(alone), Timing::of(beside));
        let whole = whole_nanos(options, &with, &prepared[1])?;
        report.push(Row::time(SUITE.name(), &case, "all rows", whole));
        let row = Row::time(SUITE.name(), &case, "light", beside).beside(alone.median);
        report.push(row.aiming_at(TIMES_MAX * alone.median));
    }
    Ok(())
}

/// Roots with leaves. A root has its number, and a leaf that of its root: light ones from 1, the heavy one [`HEAVY`].
/// The heavy root has edges to its leaves only if `has_heavy`.
fn graph(heavy_rows: usize, has_heavy: bool) -> Result<Database> {
    let database = Database::in_memory();
    let catalog = database.catalog();
    let transaction = database.begin()?;
    let mut next = 0i64;
    let mut add = |number: usize, rows: usize| -> Result<()> {
        let mut ids = |count: usize| {
            let first = next;
            next += count as i64;
            (first..next).map(Into::into).collect::<Vec<_>>()
        };
        let root = transaction.insert_vertices(catalog.intern_label_text("root"), &ids(1))?;
        let leaves = transaction.insert_vertices(catalog.intern_label_text("leaf"), &ids(rows))?;
        let has_edges = number != HEAVY || has_heavy;
        let number = Value::I64(number as i64);
        transaction.set_vertex_property("number", &[(root[0], number.clone())])?;
        let values: Vec<_> = leaves.iter().map(|leaf| (*leaf, number.clone())).collect();
        transaction.set_vertex_property("of", &values)?;
        let ends: Vec<_> = leaves.iter().map(|leaf| (root[0], *leaf)).collect();
        if has_edges { transaction.insert_edges(catalog.intern_label_text("has"), &ends).map(drop) } else { Ok(()) }
    };
    add(HEAVY, heavy_rows)?;
    (1..=LIGHT).try_for_each(|number| add(number, LIGHT_ROWS))?;
    transaction.commit()?;
    Ok(database)
}

/// The time from the begin of a query to its last light row.
fn light_nanos(database: &Database, prepared: &Prepared, light_rows: usize) -> Result<f64> {
    let begin = Instant::now();
    let mut results = database.run(prepared, &Parameters::new())?;
    let mut left = light_rows;
    while let Some(batch) = results.next_batch()? {
        let light = batch
            .iter()
            .filter(|(value, _)| matches!(value, Value::I64(number) if (1..=LIGHT as i64).contains(number)));
        let count = light.map(|(_, bulk)| *bulk as usize).sum::<usize>();
        left = left.checked_sub(count).ok_or_else(|| wrong("more rows of light instances than there are".into()))?;
        if left == 0 {
            return Ok(begin.elapsed().as_secs_f64() * 1e9);
        }
    }
    Err(wrong(format!("{left} rows of light instances are missing")))
}

/// The time of the whole query.
fn whole_nanos(options: &Options, database: &Database, prepared: &Prepared) -> Result<Timing> {
    crate::harness::measure_alone(Schedule::of(options).alone(), &mut |_| {
        let rows = database.run(prepared, &Parameters::new())?.collect_bulked()?;
        Ok(rows.iter().map(|(_, bulk)| bulk).sum())
    })
}
