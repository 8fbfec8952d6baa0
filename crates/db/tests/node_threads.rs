//! Virtual nodes on threads give the answers of one node, with stealing and without.

use mangrove::{Database, DatabaseOptions, NodeThreads, Parameters, QueryOptions, Value};

/// A ring with chords over the tablets of four nodes.
fn ring(count: usize) -> Database {
    let database = Database::with_options(&DatabaseOptions { tablet_count: 64, ..DatabaseOptions::default() });
    let catalog = database.catalog();
    let transaction = database.begin().unwrap();
    let ids: Vec<_> = (0..count as i64).map(Into::into).collect();
    let vertices = transaction.insert_vertices(catalog.intern_label_text("node"), &ids).unwrap();
    let numbers: Vec<_> = vertices.iter().zip(0..).map(|(vertex, n)| (*vertex, Value::I64(n % 10))).collect();
    transaction.set_vertex_property("k", &numbers).unwrap();
    for step in [1, 7, 40] {
        let ends: Vec<_> = (0..count).map(|at| (vertices[at], vertices[(at + step) % count])).collect();
        transaction.insert_edges(catalog.intern_label_text("next"), &ends).unwrap();
    }
    transaction.commit().unwrap();
    database
}

#[test]
fn answers_are_those_of_one_node() {
    let database = ring(3_000);
    let transaction = database.begin_read().unwrap();
    let (parameters, options) = (Parameters::new(), QueryOptions::default());
    for text in [
        "g.V().out().out().has('k', 3).count()",
        "g.V().where(out().has('k', 3)).values('k').groupCount().unfold().select(values).sum()",
        "g.V().has('k', 1).repeat(out()).times(3).dedup().count()",
        "g.V().local(out().values('k').max()).sum()",
    ] {
        let prepared = database.prepare(text).unwrap();
        let expected = transaction.run_with(&prepared, &parameters, &options).unwrap().collect_bulked().unwrap();
        let splits = [vec![vec![0, 1, 2], vec![3]], vec![vec![0, 1], vec![2, 3]], vec![vec![3], vec![], vec![0, 1, 2]]];
        for owners in splits {
            for steals in [false, true] {
                let threads = NodeThreads { owners: owners.clone(), steals };
                let (found, stolen) = transaction.run_on_threads(&prepared, &parameters, &options, &threads).unwrap();
                assert_eq!(found, expected, "{text}, {threads:?}");
                assert!(steals || stolen == 0, "{text}, {threads:?}");
            }
        }
    }
}

#[test]
fn an_error_of_a_node_ends_the_run() {
    let database = ring(3_000);
    let transaction = database.begin_read().unwrap();
    let prepared = database.prepare("g.V().out().values('k').math('1 / _')").unwrap();
    let threads = NodeThreads { owners: vec![vec![0, 1, 2], vec![3]], steals: true };
    let (parameters, options) = (Parameters::new(), QueryOptions::default());
    let alone = transaction.run_with(&prepared, &parameters, &options).unwrap().collect();
    let threaded = transaction.run_on_threads(&prepared, &parameters, &options, &threads);
    assert_eq!(threaded.is_err(), alone.is_err());
    let writes = database.prepare("g.addV('node')").unwrap();
    let error = transaction.run_on_threads(&writes, &parameters, &options, &threads).unwrap_err();
    assert!(error.message().contains("runs on one node"), "{error}");
}
