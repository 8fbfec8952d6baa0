//! What Arrow costs: results as record batches beside the query alone and beside results as values; tables of elements; compressed
//! rows; loading of record batches beside the same data as Parquet files.
//!
//! ```sh
//! cargo run --release -p mangrove --features arrow --example arrow_speed -- 1000000
//! ```
//!
//! The argument is the number of vertices; there are twice as many edges. A figure is the shortest of three runs, in nanoseconds
//! a row.

#![expect(clippy::disallowed_methods, reason = "measures time")]

use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use mangrove::arrow::arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray};
use mangrove::arrow::{ArrowLabel, ArrowOptions, ArrowTable, CsrOptions, ElementColumns, RecordBatchReader};
use mangrove::{Database, ExportFormat, ExportOptions, LoadOptions, Materialize, Parameters, QueryOptions, Result};

/// Rows of a record batch that is loaded.
const BATCH_ROWS: usize = 65_536;

fn main() -> Result<()> {
    let count = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1_000_000_usize);
    let (vertices, edges) = (vertices(count), edges(count));
    let tables = || {
        vec![
            ArrowTable::vertices("v", ArrowLabel::Constant("person".into()), Some("id"), reader(&vertices)),
            ArrowTable::edges("e", ArrowLabel::Constant("knows".into()), "src", "dst", reader(&edges)),
        ]
    };
    let elements = 3 * count;
    let mut last = None;
    measure("load Arrow, an element", elements, || {
        last = None;
        let db = Database::in_memory();
        db.load_arrow(tables(), &LoadOptions::default(), &mut |_| {})?;
        last = Some(db);
        Ok(())
    })?;
    let Some(db) = last else { return Ok(()) };
    load_parquet(&db, elements)?;

    let all = ArrowOptions::default();
    for (script, rows) in [
        ("g.V().values('x')", count),
        ("g.V().values('name')", count),
        ("g.V().values('score')", count),
        ("g.V().project('a','b').by('x').by('name')", count),
        ("g.V()", count),
        ("g.E()", 2 * count),
        ("g.V().elementMap()", count),
    ] {
        let prepared = db.prepare(script)?;
        measure(&format!("{script}: query alone"), rows, || {
            let options = QueryOptions { materialize: Materialize::References, ..QueryOptions::default() };
            let mut stream = db.run_with(&prepared, &Parameters::new(), &options)?;
            while let Some(batch) = stream.next_batch()? {
                black_box(batch);
            }
            Ok(())
        })?;
        measure(&format!("{script}: values"), rows, || {
            black_box(db.run(&prepared, &Parameters::new())?.collect()?);
            Ok(())
        })?;
        measure(&format!("{script}: Arrow, whole"), rows, || {
            black_box(db.run(&prepared, &Parameters::new())?.collect_arrow(&all)?);
            Ok(())
        })?;
        measure(&format!("{script}: Arrow, stream"), rows, || {
            let batches = db.run(&prepared, &Parameters::new())?.arrow_batches(&all)?;
            batches.for_each(|batch| drop(black_box(batch)));
            Ok(())
        })?;
    }
    let keys = |keys: &[&str]| ElementColumns {
        keys: Some(keys.iter().map(|key| (*key).into()).collect()),
        ..ElementColumns::default()
    };
    for (name, columns) in [("x", keys(&["x"])), ("x, score, name", keys(&["x", "score", "name"]))] {
        measure(&format!("vertex_table {name}"), count, || {
            black_box(db.vertex_table(&columns, &all)?);
            Ok(())
        })?;
    }
    measure("vertex_table, all keys", count, || {
        black_box(db.vertex_table(&ElementColumns::default(), &all)?);
        Ok(())
    })?;
    measure("edge_table w", 2 * count, || {
        black_box(db.edge_table(&keys(&["w"]), &all)?);
        Ok(())
    })?;
    measure("csr, an edge, projection read before", 2 * count, || {
        black_box(db.csr(&CsrOptions::default(), 1)?);
        Ok(())
    })?;
    measure("degree, run and result as Arrow", count, || {
        let rows = db.run_algorithm("degree", &[], 1)?;
        black_box(rows.into_arrow()?);
        Ok(())
    })
}

fn vertices(count: usize) -> Vec<RecordBatch> {
    let batch = |from: usize| {
        let rows = from..count.min(from + BATCH_ROWS);
        let numbers = || rows.clone().map(|row| row as i64);
        RecordBatch::try_from_iter([
            ("id", Arc::new(Int64Array::from_iter_values(numbers())) as ArrayRef),
            ("x", Arc::new(Int64Array::from_iter_values(numbers().map(|row| row * 7)))),
            ("score", Arc::new(Float64Array::from_iter_values(numbers().map(|row| row as f64 / 3.0)))),
            ("name", Arc::new(StringArray::from_iter_values(numbers().map(|row| format!("name {row}"))))),
        ])
        .expect("the columns have one length")
    };
    (0..count).step_by(BATCH_ROWS).map(batch).collect()
}

fn edges(count: usize) -> Vec<RecordBatch> {
    let batch = |from: usize| {
        let rows = from..(2 * count).min(from + BATCH_ROWS);
        // Far from one another, as those of most graphs.
        let end = |row: usize, by: usize| (row.wrapping_mul(by) % count) as i64;
        RecordBatch::try_from_iter([
            ("src", Arc::new(Int64Array::from_iter_values(rows.clone().map(|row| (row / 2) as i64))) as ArrayRef),
            ("dst", Arc::new(Int64Array::from_iter_values(rows.clone().map(|row| end(row, 7_919_777))))),
            ("w", Arc::new(Float64Array::from_iter_values(rows.map(|row| row as f64 / 2.0)))),
        ])
        .expect("the columns have one length")
    };
    (0..2 * count).step_by(BATCH_ROWS).map(batch).collect()
}

fn reader(batches: &[RecordBatch]) -> Box<dyn RecordBatchReader + Send + '_> {
    let schema = batches[0].schema();
    Box::new(RecordBatchIterator::new(batches.iter().cloned().map(Ok), schema))
}

/// Loads the same elements from Parquet files.
fn load_parquet(db: &Database, elements: usize) -> Result<()> {
    let folder: PathBuf = std::env::temp_dir().join(format!("arrow-speed-{}", std::process::id()));
    let options = ExportOptions::new(ExportFormat::Parquet);
    db.export(&folder, &options, &mut |_| Ok(()))?;
    let outcome = measure("load Parquet, an element", elements, || {
        Database::in_memory().load(std::slice::from_ref(&folder), &LoadOptions::default(), &mut |_| {})?;
        Ok(())
    });
    // Best effort: the folder is a temporary one.
    let _ = std::fs::remove_dir_all(&folder);
    outcome
}

fn measure(name: &str, rows: usize, mut run: impl FnMut() -> Result<()>) -> Result<()> {
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        let begin = Instant::now();
        run()?;
        best = best.min(begin.elapsed().as_secs_f64());
    }
    println!("{name:<60} {:>8.1} ns", best * 1e9 / rows as f64);
    Ok(())
}
