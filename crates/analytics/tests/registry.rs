//! Algorithms by their names: columns, options, and what is refused.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use mangrove_analytics::Team;
use mangrove_analytics::cache::ProjectionCache;
use mangrove_analytics::registry::{ALGORITHMS, AlgorithmInfo, ColumnValues, OptionInfo, Output, find};
use mangrove_flow::clock::MonotonicClock;
use mangrove_flow::{QueryControl, QueryLimits};
use mangrove_graph::{ErrorKind, GraphView, UserId, Value, VertexId};
use mangrove_txn::TransactionManager;

use crate::common::{World, graph_of};

fn run(manager: &TransactionManager, name: &str, options: &[(&str, Value)]) -> mangrove_graph::Result<Output> {
    let view = manager.begin_read()?;
    let options: Vec<_> = options.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    find(name)?.run(&view, &ProjectionCache::default(), &options, &Team::alone())
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

/// The vertices of a column, by their ids.
fn ids(manager: &TransactionManager, values: Option<&ColumnValues>) -> Vec<Value> {
    let (Some(ColumnValues::Vertices(vertices)) | Some(ColumnValues::VertexLists { vertices, .. })) = values else {
        panic!("{values:?} are no vertices")
    };
    let mut ids = Vec::new();
    manager.begin_read().unwrap().vertex_user_ids(vertices, &mut ids).unwrap();
    ids
}

fn numbers(output: &Output, name: &str) -> Vec<f64> {
    match output.column(name) {
        Some(ColumnValues::Numbers(numbers)) => numbers.clone(),
        Some(ColumnValues::Counts(counts)) => counts.iter().map(|count| *count as f64).collect(),
        other => panic!("{name} is {other:?}"),
    }
}

#[test]
fn paths_are_lists_of_vertices_with_a_length() {
    // The way with fewer edges is longer.
    let edges = [(1, 2, 1.0), (2, 3, 1.0), (1, 3, 5.0), (3, 4, 0.5)];
    let (manager, _) = graph_of(&[1, 2, 3, 4, 9], &edges);
    let ends = |to: i64| [("source", Value::I64(1)), ("target", Value::I64(to))];
    let with = |to: i64, more: &[(&'static str, Value)]| [&ends(to)[..], more].concat();
    let path = run(&manager, "shortest_path", &ends(4)).unwrap();
    assert_eq!(ids(&manager, path.column("path")), [1, 3, 4].map(Value::I64));
    assert_eq!(numbers(&path, "length"), [2.0]);
    let path = run(&manager, "shortest_path", &with(4, &[("weight", "weight".into())])).unwrap();
    assert_eq!(ids(&manager, path.column("path")), [1, 2, 3, 4].map(Value::I64));
    assert_eq!(numbers(&path, "length"), [2.5]);
    assert!(run(&manager, "shortest_path", &ends(9)).unwrap().is_empty());
    let paths = run(&manager, "k_shortest_paths", &with(4, &[("k", 5.into()), ("weight", "weight".into())])).unwrap();
    assert_eq!(paths.column("path").unwrap().len(), 2);
    assert_eq!(numbers(&paths, "length"), [2.5, 5.5]);
    let tree =
        run(&manager, "bfs", &[("source", 1.into()), ("parents", true.into()), ("max_depth", 1.into())]).unwrap();
    assert_eq!(ids(&manager, tree.column("vertex")), [1, 2, 3].map(Value::I64));
    assert_eq!(ids(&manager, tree.column("parent")), [1, 1, 1].map(Value::I64));
    let some = Value::list(vec![3.into(), 1.into(), 3.into()]);
    let all = run(&manager, "all_shortest_paths", &[("sources", some.clone())]).unwrap();
    assert_eq!(ids(&manager, all.column("source")), [3, 1, 1, 1].map(Value::I64));
    assert_eq!(numbers(&all, "distance"), [1.0, 1.0, 1.0, 2.0]);
    let near = run(&manager, "k_hop", &[("k", 1.into()), ("sources", some)]).unwrap();
    assert_eq!(ids(&manager, near.column("vertex")), [3, 1].map(Value::I64));
    assert_eq!(numbers(&near, "count"), [1.0, 2.0]);
}

#[test]
fn centralities_have_the_columns_that_they_name() {
    // A star: 1 is between all others.
    let (manager, _) = graph_of(&[1, 2, 3, 4], &[(1, 2, 1.0), (1, 3, 1.0), (1, 4, 2.0)]);
    let both = [("directed", Value::Bool(false))];
    let normalized = [("directed", Value::Bool(false)), ("normalized", Value::Bool(true))];
    let of_first = |name: &str, column: &str, options: &[(&str, Value)]| {
        let output = run(&manager, name, options).unwrap();
        let at = output.vertices().unwrap().iter().position(|found| *found == vertex(&manager, 1)).unwrap();
        assert_eq!(output.len(), 4);
        numbers(&output, column)[at]
    };
    assert_eq!(of_first("betweenness", "betweenness", &both), 3.0);
    assert_eq!(of_first("betweenness", "betweenness", &normalized), 1.0);
    assert_eq!(of_first("closeness", "closeness", &both), 1.0);
    assert_eq!(of_first("closeness", "closeness", &[]), 0.0);
    assert_eq!(of_first("closeness", "closeness", &[("paths", "out".into())]), 1.0);
    assert_eq!(of_first("harmonic", "harmonic", &both), 3.0);
    assert_eq!(of_first("harmonic", "harmonic", &normalized), 1.0);
    assert_eq!((of_first("hits", "hub", &[]), of_first("hits", "authority", &[])), (1.0, 0.0));
    assert_eq!((of_first("degree", "out", &[]), of_first("degree", "in", &[])), (3.0, 0.0));
    assert_eq!(of_first("katz", "katz", &[("alpha", Value::F64(0.5))]), 1.0);
    let sources = ("sources", Value::I64(1));
    assert_eq!(of_first("pagerank", "rank", &[sources.clone(), ("damping", 0.into())]), 1.0);
    let ranks = run(&manager, "pagerank", &[sources, ("weight", "weight".into()), ("rounds", 1.into())]).unwrap();
    let at = ranks.vertices().unwrap().iter().position(|found| *found == vertex(&manager, 4)).unwrap();
    assert!((numbers(&ranks, "rank")[at] - 0.85 / 2.0).abs() < 1e-12);
}

/// What must be given to an algorithm, for a graph with the vertices 1 and 3.
fn required(algorithm: &AlgorithmInfo) -> Vec<(String, Value)> {
    let must = algorithm.all_options().filter(|option| option.default.is_none());
    let value = |option: &OptionInfo| match option.name {
        "source" => Value::I64(1),
        "target" => Value::I64(3),
        "weight" => "weight".into(),
        other => panic!("{} must be given {other}", algorithm.name),
    };
    must.map(|option| (option.name.to_owned(), value(option))).collect()
}

#[test]
fn results_have_the_first_of_the_columns_that_are_listed() {
    let (manager, _) = graph_of(&[1, 2, 3], &[(1, 2, 1.0), (2, 3, 2.0), (3, 1, 1.0), (2, 1, 1.0)]);
    let view = manager.begin_read().unwrap();
    for algorithm in ALGORITHMS {
        let output = algorithm.run(&view, &ProjectionCache::default(), &required(algorithm), &Team::alone()).unwrap();
        assert!(!output.is_empty(), "{}", algorithm.name);
        for (column, info) in output.columns.iter().zip(algorithm.columns) {
            assert_eq!((column.name, column.values.kind()), (info.name, info.kind), "{}", algorithm.name);
            assert_eq!(column.values.len(), output.len(), "{}", algorithm.name);
        }
        assert!(output.columns.len() <= algorithm.columns.len(), "{}", algorithm.name);
    }
}

#[test]
fn every_algorithm_ends_when_its_query_was_cancelled() {
    let (manager, _) = graph_of(&[1, 2, 3], &[(1, 2, 1.0), (2, 3, 2.0), (3, 1, 1.0), (2, 1, 1.0)]);
    let view = manager.begin_read().unwrap();
    let kept = ProjectionCache::default();
    let cancelled = Arc::new(AtomicBool::new(true));
    let control = Arc::new(QueryControl::new(QueryLimits::default(), Arc::new(MonotonicClock::default()), cancelled));
    let team = Team::alone().controlled_by(control);
    for algorithm in ALGORITHMS {
        // The projection is there afterwards, so it is not reading one that ends.
        algorithm.run(&view, &kept, &required(algorithm), &Team::alone()).unwrap();
        let ended = algorithm.run(&view, &kept, &required(algorithm), &team).map(|output| output.len());
        assert_eq!(ended.map_err(|error| error.kind()), Err(ErrorKind::Cancelled), "{}", algorithm.name);
    }
    for (name, count) in [("shortest_path", 1), ("k_shortest_paths", 1)] {
        let mut options = required(find(name).unwrap());
        options.push(("weight".to_owned(), "weight".into()));
        assert_eq!(find(name).unwrap().run(&view, &kept, &options, &Team::alone()).unwrap().len(), count);
        let ended = find(name).unwrap().run(&view, &kept, &options, &team).map(|output| output.len());
        assert_eq!(ended.map_err(|error| error.kind()), Err(ErrorKind::Cancelled), "{name} with weights");
    }
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
    // A path or a triangle lets two in: one of the triangle, and one of the path.
    let members = by_id("independent_set", &[]);
    assert_eq!(members.iter().flatten().sum::<u64>(), 2, "{members:?}");
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
    refused("pagerank", &[("sources", Value::list(vec![]))], &["at least one source"]);
    refused("pagerank", &[("sources", Value::list(vec![1.into(), 7.into()]))], &["no vertex with the id"]);
    refused("closeness", &[("paths", "both".into())], &["'in' or 'out'"]);
    refused("closeness", &[("samples", 0.into())], &["a whole number from 1 on"]);
    refused("all_shortest_paths", &[("limit", 0.into())], &["a whole number from 1 on"]);
    refused("k_shortest_paths", &[("source", 1.into())], &["needs the option 'target'"]);
    refused("bfs", &[("source", 1.into()), ("max_depth", (-1).into())], &["a whole number from 0 on"]);
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

/// Values that an option does not allow, by the words that say what it does.
fn misfits(option: &OptionInfo) -> Vec<Value> {
    let allowed = option.allowed;
    let words: Vec<&str> = allowed.split(' ').collect();
    let number_after = |word: &str| -> Option<f64> {
        let at = words.iter().position(|found| *found == word)?;
        words.get(at + 1)?.parse().ok()
    };
    let mut wrong = vec![Value::map(Vec::new())];
    if allowed.contains("number") && !allowed.contains("list") {
        wrong.extend(["many".into(), Value::Bool(true), Value::F64(f64::NAN)]);
        wrong.extend(number_after("from").map(|least| Value::I64(least as i64 - 1)));
        wrong.extend(number_after("to").map(|most| Value::I64(most as i64 + 1)));
        wrong.extend(number_after("above").map(|least| Value::I64(least as i64)));
    }
    if allowed.contains("whole number") {
        wrong.push(Value::F64(1.5));
    }
    match allowed {
        "true or false" => wrong.extend(["yes".into(), 1.into()]),
        "a list of numbers" => {
            wrong.extend([2.into(), Value::list(vec!["x".into()]), Value::list(vec![Value::F64(f64::INFINITY)])])
        }
        "a label" | "a property key" | "the name of a projection" => wrong.extend([3.into(), Value::Bool(true)]),
        "the id of a vertex" => wrong.extend([Value::Bool(true), Value::list(vec![1.into()])]),
        "the id of a vertex, or a list of ids" => {
            wrong.extend([Value::Bool(true), Value::list(vec![1.into(), Value::Bool(true)])]);
        }
        _ if allowed.starts_with('\'') => wrong.extend(["something else".into(), 3.into()]),
        _ => assert!(allowed.contains("number"), "the words {allowed:?} are not known to this test"),
    }
    wrong
}

/// Every option of every algorithm: values of other types, out of range and unknown names are refused with what is allowed, before the
/// graph is read; and so are unknown options.
#[test]
fn every_option_says_what_it_allows() {
    let (manager, _) = graph_of(&[1, 2, 3], &[(1, 2, 1.0), (2, 3, 2.0), (3, 1, 1.0)]);
    let view = manager.begin_read().unwrap();
    let mut refused = 0;
    for algorithm in ALGORITHMS {
        let with = |name: &str, value: &Value| {
            let mut options = required(algorithm);
            options.push((name.to_owned(), value.clone()));
            let cache = ProjectionCache::default();
            let error = algorithm.run(&view, &cache, &options, &Team::alone()).map(|output| output.len());
            let error = error.expect_err(&format!("{} with {name} {value:?}", algorithm.name));
            let of_estimate = algorithm.estimate(&view, &cache, &options).map(|_| ()).err();
            (error, of_estimate, cache.count())
        };
        for option in algorithm.all_options() {
            for value in misfits(option) {
                let (error, of_estimate, read) = with(option.name, &value);
                let what = format!("{} with {} {value:?}: {error}", algorithm.name, option.name);
                assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{what}");
                assert!(error.message().contains(option.allowed), "{what}");
                assert!(error.message().contains(&format!("'{}'", option.name)), "{what}");
                assert!(error.message().contains(algorithm.name), "{what}");
                assert_eq!((of_estimate, read), (Some(error), 0), "{what}");
                refused += 1;
            }
            let unknown: Option<(Value, &[&str])> = match option.allowed {
                "a label" => Some(("nothing".into(), &["no label 'nothing'", "mangrove.names"])),
                "a property key" => {
                    Some(("nothing".into(), &["no element has a property 'nothing'", "mangrove.names"]))
                }
                "the name of a projection" => Some(("nothing".into(), &["no projection 'nothing'", "There are: none"])),
                "the id of a vertex" | "the id of a vertex, or a list of ids" => {
                    Some((99.into(), &["no vertex with the id", "99"]))
                }
                _ => None,
            };
            if let Some((value, words)) = unknown {
                let (error, ..) = with(option.name, &value);
                assert_eq!(error.kind(), ErrorKind::NotFound, "{}: {error}", algorithm.name);
                assert!(words.iter().all(|word| error.message().contains(word)), "{}: {error}", algorithm.name);
                refused += 1;
            }
        }
        let (error, ..) = with("nothing", &1.into());
        for option in algorithm.all_options() {
            assert!(error.message().contains(option.name), "{}: {error}", algorithm.name);
        }
    }
    assert!(refused > 500, "{refused}");
}

#[test]
fn edges_have_their_truss_numbers() {
    // Two triangles that share the edge from 2 to 3, and a path.
    let edges = [(1, 2, 1.0), (2, 3, 1.0), (3, 1, 1.0), (2, 4, 1.0), (4, 3, 1.0), (4, 5, 1.0)];
    let (manager, _) = graph_of(&[1, 2, 3, 4, 5], &edges);
    let output = run(&manager, "k_truss_edges", &[]).unwrap();
    let (sources, targets) = (ids(&manager, output.column("source")), ids(&manager, output.column("target")));
    let mut found: Vec<(i64, i64, u64)> = Vec::new();
    for (at, number) in numbers(&output, "truss").into_iter().enumerate() {
        let (Value::I64(one), Value::I64(other)) = (&sources[at], &targets[at]) else { panic!("ids are numbers") };
        found.push((*one.min(other), *one.max(other), number as u64));
    }
    found.sort_unstable();
    assert_eq!(found, [(1, 2, 3), (1, 3, 3), (2, 3, 3), (2, 4, 3), (3, 4, 3), (4, 5, 2)]);
}
