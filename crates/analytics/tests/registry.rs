//! Algorithms by their names: columns, options, and what is refused.

mod common;

use common::{World, graph_of};
use mangrove_analytics::Team;
use mangrove_analytics::registry::{ALGORITHMS, ColumnValues, NewProjections, Output, find};
use mangrove_graph::{GraphView, UserId, Value, VertexId};
use mangrove_txn::TransactionManager;

fn run(manager: &TransactionManager, name: &str, options: &[(&str, Value)]) -> mangrove_graph::Result<Output> {
    let view = manager.begin_read()?;
    let options: Vec<_> = options.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    find(name)?.run(&view, &NewProjections, &options, &Team::alone())
}

fn vertex(manager: &TransactionManager, id: i64) -> VertexId {
    let mut found = Vec::new();
    manager.begin_read().unwrap().find_vertices(&[UserId::int(id)], &mut found).unwrap();
    found[0].unwrap()
}

#[test]
fn columns_name_vertices_and_have_no_holes() {
    // Two components; the ids are not in the order of insertion.
    let (manager, _) = graph_of(&[9, 4, 7, 1, 5], &[(9, 4, 2.0), (4, 7, 1.5), (1, 5, 1.0), (5, 1, 1.0)]);
    let value = |output: &Output, id: i64| {
        let at = output.vertices().unwrap().iter().position(|found| *found == vertex(&manager, id));
        at.map(|at| match &output.columns[1].values {
            ColumnValues::Vertices(vertices) => Value::I64(vertices[at].to_bits() as i64),
            ColumnValues::Counts(counts) => Value::I64(counts[at] as i64),
            ColumnValues::Numbers(numbers) => Value::F64(numbers[at]),
            other => panic!("{other:?}"),
        })
    };
    let depths = run(&manager, "bfs", &[("source", Value::I32(9))]).unwrap();
    assert_eq!((depths.columns[1].name, depths.len()), ("depth", 3));
    assert_eq!((value(&depths, 7), value(&depths, 1)), (Some(Value::I64(2)), None));
    let both = run(&manager, "bfs", &[("source", Value::I32(7)), ("directed", Value::Bool(false))]).unwrap();
    assert_eq!(value(&both, 9), Some(Value::I64(2)));
    let distances = run(&manager, "sssp", &[("source", 9.into()), ("weight", "weight".into())]).unwrap();
    assert_eq!(value(&distances, 7), Some(Value::F64(3.5)));
    let components = run(&manager, "wcc", &[]).unwrap();
    assert_eq!(components.len(), 5);
    // Components have the name of the least id, and not of the first vertex.
    let bits = |id: i64| Some(Value::I64(vertex(&manager, id).to_bits() as i64));
    for (id, name) in [(9, 4), (4, 4), (7, 4), (1, 1), (5, 1)] {
        assert_eq!(value(&components, id), bits(name), "{id}");
    }
    let strong = run(&manager, "scc", &[]).unwrap();
    for (id, name) in [(9, 9), (4, 4), (7, 7), (1, 1), (5, 1)] {
        assert_eq!(value(&strong, id), bits(name), "{id}");
    }
    for name in ["louvain", "leiden"] {
        let weighted = run(&manager, name, &[("weight", "weight".into()), ("resolution", Value::F64(0.5))]).unwrap();
        for (id, name) in [(9, 4), (4, 4), (7, 4), (1, 1), (5, 1)] {
            assert_eq!(value(&weighted, id), bits(name), "{id}");
        }
    }
    // The least label by the order of ids: 1 and 5 exchange theirs, and after an even number of rounds have their own.
    let communities = run(&manager, "cdlp", &[("rounds", 2.into())]).unwrap();
    assert_eq!(value(&communities, 1), Some(Value::I64(vertex(&manager, 1).to_bits() as i64)));
    let ranks = run(&manager, "pagerank", &[("rounds", 50.into()), ("damping", Value::F64(0.5))]).unwrap();
    let Some(ColumnValues::Numbers(ranks)) = ranks.column("rank") else { panic!("ranks are numbers") };
    assert!((ranks.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    let found = run(&manager, "lcc", &[]).unwrap();
    assert_eq!(found.column("coefficient"), Some(&ColumnValues::Numbers(vec![0.0; 5])));
}

#[test]
fn structures_have_the_numbers_of_a_small_graph() {
    // A triangle of 1, 2 and 3, and a path from 3 to 4 to 5.
    let edges = [(1, 2, 5.0), (2, 3, 1.0), (3, 1, 2.0), (3, 4, 4.0), (4, 5, 9.0), (5, 5, 1.0)];
    let (manager, _) = graph_of(&[3, 1, 4, 5, 2], &edges);
    let by_id = |name: &str, options: &[(&str, Value)]| -> Vec<Option<u64>> {
        let output = run(&manager, name, options).unwrap();
        let vertices = output.vertices().unwrap();
        let number = |id: i64| match &output.columns[1].values {
            ColumnValues::Counts(counts) => Some(counts[vertices.iter().position(|at| *at == vertex(&manager, id))?]),
            ColumnValues::Vertices(partners) => {
                let partner = partners[vertices.iter().position(|at| *at == vertex(&manager, id))?];
                (1..=5).find(|id| vertex(&manager, *id as i64) == partner)
            }
            other => panic!("{other:?}"),
        };
        (1..=5).map(number).collect()
    };
    assert_eq!(by_id("triangles", &[]), [1, 1, 1, 0, 0].map(Some));
    assert_eq!(by_id("k_core", &[]), [2, 2, 2, 1, 1].map(Some));
    assert_eq!(by_id("k_truss", &[]), [3, 3, 3, 2, 2].map(Some));
    assert_eq!(by_id("matching", &[("weight", "weight".into())]), [Some(2), Some(1), None, Some(5), Some(4)]);
    let colors = by_id("coloring", &[("seed", 3.into())]);
    assert!(colors[0] != colors[1] && colors[1] != colors[2] && colors[2] != colors[0], "{colors:?}");
    for (sum, weights) in [("least", vec![1.0, 2.0, 4.0, 9.0]), ("greatest", vec![2.0, 4.0, 5.0, 9.0])] {
        let forest = run(&manager, "forest", &[("weight", "weight".into()), ("sum", sum.into())]).unwrap();
        let Some(ColumnValues::Numbers(found)) = forest.column("weight") else { panic!("weights are numbers") };
        let mut found = found.clone();
        found.sort_by(f64::total_cmp);
        assert_eq!((found, forest.vertices()), (weights, None), "{sum}");
    }
}

#[test]
fn labels_choose_vertices_and_edges() {
    let mut world = World::new(3);
    world.write(20);
    let all = run(&world.manager, "wcc", &[]).unwrap().len();
    let people = run(&world.manager, "wcc", &[("vertices", "person".into())]).unwrap().len();
    let robots = run(&world.manager, "wcc", &[("vertices", "robot".into())]).unwrap().len();
    assert!(people > 0 && robots > 0 && people + robots == all, "{people}, {robots}, {all}");
    for option in ["vertices", "edges"] {
        let unknown = run(&world.manager, "wcc", &[(option, "nothing".into())]).unwrap_err();
        assert!(unknown.message().contains("no label 'nothing'"), "{unknown}");
    }
}

#[test]
fn what_is_not_allowed_is_named_with_what_is() {
    let (manager, _) = graph_of(&[1, 2], &[(1, 2, 1.0)]);
    let refused = |name: &str, options: &[(&str, Value)], words: &[&str]| {
        let error = run(&manager, name, options).unwrap_err();
        assert!(words.iter().all(|word| error.message().contains(word)), "{name}, {options:?}: {error}");
    };
    refused("rank", &[], &["no algorithm 'rank'", "bfs", "wcc"]);
    refused("pagerank", &[("round", 3.into())], &["no option 'round'", "rounds", "damping", "vertices"]);
    refused("pagerank", &[("rounds", 0.into())], &["'rounds'", "a whole number from 1 on"]);
    refused("pagerank", &[("rounds", Value::F64(2.5))], &["a whole number from 1 on"]);
    refused("pagerank", &[("damping", Value::F64(1.1))], &["a number from 0 to 1"]);
    refused("pagerank", &[("dangling", "keep".into())], &["'spread' or 'drop'"]);
    refused("pagerank", &[("directed", "no".into())], &["true or false"]);
    refused("bfs", &[], &["needs the option 'source'", "the id of a vertex"]);
    refused("bfs", &[("source", 3.into())], &["no vertex with the id"]);
    refused("sssp", &[("source", 1.into())], &["needs the option 'weight'"]);
    refused("sssp", &[("source", 1.into()), ("weight", "km".into())], &["no element has a property 'km'"]);
    refused("sssp", &[("source", 1.into()), ("weight", "weight".into()), ("delta", 0.into())], &["a number above 0"]);
    refused("louvain", &[("resolution", (-1).into())], &["'resolution'", "a number from 0 on"]);
    refused("leiden", &[("levels", 0.into())], &["a whole number from 1 on"]);
    refused("coloring", &[("seed", "a".into())], &["a whole number from 0 on"]);
    refused("forest", &[("sum", "most".into())], &["'least' or 'greatest'"]);
    assert!(ALGORITHMS.is_sorted_by_key(|algorithm| algorithm.name));
    for algorithm in ALGORITHMS {
        assert!(algorithm.all_options().all(|option| !option.allowed.is_empty() && !option.meaning.is_empty()));
    }
}
