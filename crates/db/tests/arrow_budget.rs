//! The memory budget and what is made as columns: results, tables of elements, compressed rows, and batches of samples and
//! features. All draw while they are made, and give back.

use mangrove::analytics::sampling::features::FeatureOptions;
use mangrove::analytics::sampling::{Sampler, SamplerOptions, Seeds, TypedGraphOptions};
use mangrove::arrow::{ArrowOptions, CsrOptions, ElementColumns, RecordBatchReader};
use mangrove::{Database, DatabaseOptions, Error, ErrorKind, MemoryBudget, Parameters, Purpose, Result};

const MIB: u64 = 1 << 20;
/// Vertices of the graph. Each has an edge to the next one.
const COUNT: usize = 1 << 17;

/// A graph that draws on a budget.
fn graph(budget: &MemoryBudget) -> Database {
    let memory_budget = budget.clone();
    let db =
        Database::with_options(&DatabaseOptions { memory_budget, executor_count: 1, ..DatabaseOptions::default() });
    let mut load = db.bulk_load().unwrap();
    let catalog = load.store().catalog();
    let (label, edge, key) = (catalog.intern_label_text("n"), catalog.intern_label_text("e"), catalog.intern_key("x"));
    let values = mangrove_store::ColumnData::I64((0..COUNT as i64).collect());
    let column = mangrove_store::BulkColumn { key, values };
    let vertices = load.vertices(label, COUNT, None, &[column]).unwrap();
    let ends: Vec<_> = (0..COUNT).map(|n| (vertices[n], vertices[(n + 1) % COUNT])).collect();
    load.edges(edge, &ends, None, &[]).unwrap();
    load.finish().unwrap();
    db
}

/// Runs a work that needs more than a mebibyte: with room, and with less room than that.
fn check<T>(budget: &MemoryBudget, name: &str, work: impl Fn() -> Result<T>) {
    let before = budget.used_for(Purpose::Queries);
    work().unwrap();
    assert_eq!(budget.used_for(Purpose::Queries), before, "{name}: what is handed over is not held");
    let others = budget.draw(Purpose::Messages, budget.left_bytes() - MIB / 2).unwrap();
    let error = work().err().unwrap_or_else(|| panic!("{name}: half a mebibyte was enough"));
    assert_eq!(error.kind(), ErrorKind::MemoryLimit, "{name}: {error}");
    assert!(error.message().contains("memory_budget"), "{name}: {error}");
    drop(others);
    assert_eq!(budget.used_for(Purpose::Queries), before, "{name}: an error gives back");
    work().unwrap();
}

#[test]
fn columns_draw_on_the_budget_while_they_are_made() {
    let budget = MemoryBudget::of(256 * MIB);
    let db = graph(&budget);
    let options = ArrowOptions::default();
    for script in [
        "g.V().values('x')",
        "g.V().project('a', 'b').by('x').by('x')",
        "g.V().map(values('x'))",
        "g.V().values('x').map(union(identity(), identity()).fold())",
        "g.V()",
        "g.E()",
    ] {
        let prepared = db.prepare(script).unwrap();
        check(&budget, script, || {
            let (_, batches) = db.run(&prepared, &Parameters::new())?.collect_arrow(&options)?;
            let rows = batches.iter().map(|batch| batch.num_rows()).sum::<usize>();
            assert_eq!(rows, COUNT);
            Ok(())
        });
    }
    check(&budget, "vertex_table", || db.vertex_table(&ElementColumns::default(), &options));
    check(&budget, "edge_table", || db.edge_table(&ElementColumns::default(), &options));
    // The projection is in the cache, which gives way to draws.
    check(&budget, "csr", || db.csr(&CsrOptions::default(), 1));
}

#[test]
fn a_stream_holds_one_batch() {
    let budget = MemoryBudget::of(256 * MIB);
    let db = graph(&budget);
    let prepared = db.prepare("g.V().values('x')").unwrap();
    // A batch has 2 MiB of the numbers, and all batches have as much as there are rows.
    let options = ArrowOptions { batch_rows: COUNT / 8, ..ArrowOptions::default() };
    let mut batches = db.run(&prepared, &Parameters::new()).unwrap().arrow_batches(&options).unwrap();
    assert_eq!(batches.schema().fields().len(), 1);
    assert!(budget.used_for(Purpose::Queries) >= (COUNT / 8 * 8) as u64, "{budget:?}");
    batches.next().unwrap().unwrap();
    let others = budget.draw(Purpose::Messages, budget.left_bytes() - 3 * (COUNT / 8 * 8) as u64).unwrap();
    assert_eq!(batches.by_ref().map(|batch| batch.unwrap().num_rows()).sum::<usize>(), COUNT - COUNT / 8);
    drop((batches, others));
    assert_eq!(budget.used_for(Purpose::Queries), 0);

    let large = ArrowOptions { batch_rows: COUNT, ..ArrowOptions::default() };
    let others = budget.draw(Purpose::Messages, budget.left_bytes() - MIB / 2).unwrap();
    let refused: Error = db.run(&prepared, &Parameters::new()).unwrap().arrow_batches(&large).err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::MemoryLimit, "{refused}");
    drop(others);
    assert_eq!(budget.used_for(Purpose::Queries), 0);
}

#[test]
fn samples_and_features_draw_on_the_budget() {
    let budget = MemoryBudget::of(256 * MIB);
    let db = graph(&budget);
    let mut types = TypedGraphOptions::default();
    let vertex = types.vertex_type("n");
    types.edge_type(vertex, "e", vertex);
    let epoch = db.begin_epoch(&types, 1).unwrap();
    assert!(budget.used_for(Purpose::Projections) >= epoch.graph().bytes(), "{budget:?}");
    let sampler = Sampler::new(SamplerOptions::of_fanouts(1, &[1])).unwrap();
    let numbers: Vec<i64> = (0..COUNT as i64).collect();
    let seeds = || vec![Seeds { vertex_type: vertex, numbers: &numbers, times: None }];
    check(&budget, "sample", || epoch.sample(&sampler, 0, &seeds(), 1));
    check(&budget, "sample_many", || epoch.sample_many(&sampler, 0, &[seeds(), seeds()], 1));
    check(&budget, "features", || epoch.vertex_features(vertex, &numbers, "x", FeatureOptions::default(), 1));
}
