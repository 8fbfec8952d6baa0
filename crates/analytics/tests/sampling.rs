//! Typed graphs have the vertices and edges of their view, and samples keep their rules.

use std::collections::{BTreeMap, BTreeSet};

use mangrove_analytics::Team;
use mangrove_analytics::sampling::{
    EdgeType, InRows, Numbered, Sample, Sampler, SamplerOptions, Seeds, Temporal, TemporalOf, TemporalStrategy,
    TypedGraph, TypedGraphOptions, VertexType,
};
use mangrove_analytics::verify;
use mangrove_graph::{Direction, EdgeId, GraphView, LabelFilter, ScanCursor, Share, Value, ValueRows, VertexId};
use mangrove_store::WriteCardinality;
use mangrove_testdata::{case_count, first_seed};
use mangrove_txn::Transaction;

use crate::common::{World, with_teams};

fn read(world: &World) -> Transaction {
    world.manager.begin_read().unwrap()
}

/// Persons and robots; of what they know and make, one type turned around and one in both directions. Properties on demand.
fn types(has_properties: bool) -> TypedGraphOptions {
    let key = |name: &str| has_properties.then(|| name.to_string());
    let vertex = |name: &str| VertexType { name: name.into(), label: Some(name.into()), time: key("born") };
    let edge = |source, label: &str, target, direction, name: &str| EdgeType {
        source,
        name: name.into(),
        target,
        label: Some(label.into()),
        direction,
        weight: key("weight"),
        time: key("since"),
        names_edges: true,
    };
    TypedGraphOptions {
        vertex_types: vec![vertex("person"), vertex("robot")],
        edge_types: vec![
            edge(0, "knows", 0, Direction::Out, "knows"),
            edge(0, "knows", 0, Direction::Both, "befriends"),
            edge(0, "made", 1, Direction::Out, "made"),
            edge(1, "made", 0, Direction::In, "made by"),
            edge(1, "knows", 1, Direction::Out, "knows"),
        ],
    }
}

/// Gives every element a time.
fn set_times(world: &World) {
    let catalog = world.manager.store().catalog();
    let (born, since) = (catalog.intern_key("born"), catalog.intern_key("since"));
    let txn = world.begin();
    for (nth, vertex) in all_vertices(&txn).into_iter().enumerate() {
        txn.set_vertex_property(vertex, born, Value::I64(nth as i64 * 7 % 50), WriteCardinality::Single, Vec::new())
            .unwrap();
    }
    for (nth, edge) in all_edges(&txn).into_iter().enumerate() {
        txn.set_edge_property(edge, since, Value::I64(nth as i64 * 11 % 60)).unwrap();
    }
    txn.commit().unwrap();
}

fn all_vertices(view: &dyn GraphView) -> Vec<VertexId> {
    let (mut found, mut cursor) = (Vec::new(), ScanCursor::default());
    while !view.scan_vertices(&LabelFilter::Any, Share::ALL, &mut cursor, 500, &mut found).unwrap() {}
    found
}

fn all_edges(view: &dyn GraphView) -> Vec<EdgeId> {
    let (mut found, mut cursor) = (Vec::new(), ScanCursor::default());
    while !view.scan_edges(&LabelFilter::Any, Share::ALL, &mut cursor, 500, &mut found).unwrap() {}
    found
}

/// An edge as a view has it: source, target, id, weight and time.
type Edge = (VertexId, VertexId, EdgeId, Option<u64>, Option<i64>);

/// By edge type, all edges: by scans.
fn expected(view: &dyn GraphView, options: &TypedGraphOptions) -> Vec<Vec<Edge>> {
    let edges = all_edges(view);
    let (mut sources, mut targets, mut labels) = (Vec::new(), Vec::new(), Vec::new());
    view.edge_ends(&edges, &mut sources, &mut targets).unwrap();
    view.edge_labels(&edges, &mut labels).unwrap();
    let catalog = view.catalog();
    let value = |edge: EdgeId, key: &Option<String>| {
        let mut found = ValueRows::default();
        view.edge_values(&[edge], catalog.key(key.as_ref()?)?, &mut found).unwrap();
        found.value.pop()
    };
    let label_of = |vertex: VertexId| {
        let mut found = Vec::new();
        view.vertex_labels(&[vertex], &mut found).unwrap();
        catalog.label_set_name(found[0])
    };
    let mut of_types = Vec::new();
    for of in &options.edge_types {
        let (mut found, ends) = (Vec::new(), [of.source, of.target].map(|at| options.vertex_types[at].name.as_str()));
        for at in 0..edges.len() {
            if Some(catalog.label_set_name(labels[at]).as_str()) != of.label.as_deref() {
                continue;
            }
            let weight = of.weight.is_some().then(|| match value(edges[at], &of.weight) {
                Some(Value::F64(weight)) => weight.to_bits(),
                _ => 1.0_f64.to_bits(),
            });
            let time = of.time.is_some().then(|| match value(edges[at], &of.time) {
                Some(Value::I64(time)) => time,
                other => panic!("the time is {other:?}"),
            });
            for turned in [false, true] {
                let is_asked = match of.direction {
                    Direction::Out => !turned,
                    Direction::In => turned,
                    Direction::Both => true,
                };
                let (source, target) = if turned { (targets[at], sources[at]) } else { (sources[at], targets[at]) };
                if is_asked && label_of(source) == ends[0] && label_of(target) == ends[1] {
                    found.push((source, target, edges[at], weight, time));
                }
            }
        }
        found.sort_unstable();
        of_types.push(found);
    }
    of_types
}

fn found(graph: &TypedGraph) -> Vec<Vec<Edge>> {
    let options = graph.options().clone();
    let of_type = |(at, of): (usize, &EdgeType)| {
        let (weights, times) = graph.edge_values(at);
        let mut edges: Vec<Edge> = (0..graph.edge_count(at) as i64)
            .map(|number| {
                let (source, target) = graph.edge_ends(at, number).unwrap();
                let number = number as usize;
                (
                    graph.vertices(of.source, &[source]).unwrap()[0],
                    graph.vertices(of.target, &[target]).unwrap()[0],
                    graph.edges(at, &[number as i64]).unwrap()[0],
                    weights.get(number).map(|weight| weight.to_bits()),
                    times.get(number).copied(),
                )
            })
            .collect();
        edges.sort_unstable();
        edges
    };
    options.edge_types.iter().enumerate().map(of_type).collect()
}

fn check_graph(graph: &TypedGraph, view: &dyn GraphView, what: &str) {
    assert_eq!(found(graph), expected(view, graph.options()), "{what}");
    for (at, of) in graph.options().vertex_types.iter().enumerate() {
        let numbers: Vec<i64> = (0..graph.vertex_count(at) as i64).collect();
        let vertices = graph.vertices(at, &numbers).unwrap();
        let (mut scanned, mut cursor) = (Vec::new(), ScanCursor::default());
        let labels = view.label_filter(&[of.name.as_str().into()]);
        while !view.scan_vertices(&labels, Share::ALL, &mut cursor, 500, &mut scanned).unwrap() {}
        let mut sorted = vertices.clone();
        sorted.sort_unstable();
        scanned.sort_unstable();
        assert_eq!(sorted, scanned, "{what}, {}", of.name);
        for (number, vertex) in numbers.iter().zip(&vertices) {
            assert_eq!(graph.number(at, *vertex), Some(*number), "{what}");
        }
        assert!(graph.vertices(at, &[numbers.len() as i64]).is_err() && graph.vertices(at, &[-1]).is_err());
    }
    for at in 0..graph.options().edge_types.len() {
        let (begins, sources) = graph.columns(at, &Team::alone()).unwrap();
        assert_eq!(begins.len(), graph.vertex_count(graph.options().edge_types[at].target) + 1, "{what}");
        for target in 0..begins.len() - 1 {
            for number in begins[target]..begins[target + 1] {
                let ends = graph.edge_ends(at, number).unwrap();
                assert_eq!(ends, (sources[number as usize], target as i64), "{what}");
            }
        }
        assert!(graph.edges(at, &[graph.edge_count(at) as i64]).is_err());
    }
}

#[test]
fn typed_graphs_are_those_of_scans_and_refreshed_ones_those_of_the_new_moment() {
    let first = first_seed(900);
    for seed in first..first + case_count(6) {
        let mut world = World::new(seed);
        world.write(12);
        for has_properties in [false, true] {
            set_times(&world);
            let options = types(has_properties);
            with_teams(|team| {
                let view = read(&world);
                let graph = TypedGraph::of(&view, &options, team).unwrap();
                check_graph(&graph, &view, &format!("seed {seed}, properties {has_properties}, {team:?}"));
            });
            let team = Team::alone();
            let earlier = read(&world);
            let mut graph = TypedGraph::of(&earlier, &options, &team).unwrap();
            for step in 0..5 {
                world.write(if step == 3 { 200 } else { 1 });
                if has_properties {
                    set_times(&world);
                }
                let view = read(&world);
                graph = graph.refreshed(&view, &team).unwrap().0;
                check_graph(&graph, &view, &format!("seed {seed}, properties {has_properties}, step {step}"));
                let (same, refreshed) = graph.refreshed(&view, &team).unwrap();
                assert_eq!((refreshed.read, found(&same)), (0, found(&graph)));
            }
            let back = graph.refreshed(&earlier, &team).unwrap().0;
            check_graph(&back, &earlier, &format!("seed {seed}, properties {has_properties}, back"));
        }
    }
}

#[test]
fn a_refresh_reads_the_pages_that_have_changed() {
    let mut world = World::new(5);
    world.write(1_500);
    let team = Team::alone();
    let graph = TypedGraph::of(&read(&world), &types(false), &team).unwrap();
    let txn = world.begin();
    txn.insert_edge(world.vertices[0], world.vertices[1], world.along[0], None).unwrap();
    txn.commit().unwrap();
    let view = read(&world);
    let (next, refreshed) = graph.refreshed(&view, &team).unwrap();
    assert!(refreshed.read <= 2 && refreshed.kept >= 5, "{refreshed:?}");
    check_graph(&next, &view, "one edge more");
}

/// Options of every kind, by number.
fn sampler_options(case: u64, temporal: bool, weighted: bool) -> SamplerOptions {
    let counts = [Some(3), Some(1), None, Some(0), Some(70), Some(5), Some(2)];
    let fanout = |edge_type: u64, hop: u64| counts[(case * 3 + edge_type * 2 + hop) as usize % counts.len()];
    let of = if case.is_multiple_of(2) { TemporalOf::Edges } else { TemporalOf::Vertices };
    let strategy = if case % 4 < 2 { TemporalStrategy::Uniform } else { TemporalStrategy::Last };
    SamplerOptions {
        fanouts: (0..5).map(|edge_type| (0..2 + case % 2).map(|hop| fanout(edge_type, hop)).collect()).collect(),
        replace: case % 3 == 1,
        disjoint: temporal || case.is_multiple_of(5),
        temporal: temporal.then_some(Temporal { of, strategy }),
        weighted,
        seed: case,
        numbered: if case.is_multiple_of(2) { Numbered::Array } else { Numbered::Hash },
    }
}

/// A sample has the edges of the graph, and keeps the rules of its options.
fn check_sample(graph: &TypedGraph, options: &SamplerOptions, seeds: &[Seeds<'_>], sample: &Sample, what: &str) {
    let (mut times, mut tree) = (Vec::new(), 0_i64);
    for of in seeds {
        assert_eq!(&sample.vertices[of.vertex_type][..of.numbers.len()], of.numbers, "{what}");
        assert_eq!(sample.vertices_of_hops[of.vertex_type][0], of.numbers.len(), "{what}");
        times.extend_from_slice(of.times.unwrap_or_default());
        if let Some(trees) = &sample.trees {
            let expected: Vec<i64> = (tree..tree + of.numbers.len() as i64).collect();
            assert_eq!(&trees[of.vertex_type][..of.numbers.len()], expected, "{what}");
        }
        tree += of.numbers.len() as i64;
    }
    for (at, vertices) in sample.vertices.iter().enumerate() {
        assert_eq!(sample.vertices_of_hops[at].iter().sum::<usize>(), vertices.len(), "{what}");
        // A vertex that is no seed is there once in its tree.
        let seeds = sample.vertices_of_hops[at][0];
        let of_tree = |local: usize| sample.trees.as_ref().map_or(0, |trees| trees[at][local]);
        let met: BTreeSet<_> = (seeds..vertices.len()).map(|local| (of_tree(local), vertices[local])).collect();
        assert_eq!(met.len(), vertices.len() - seeds, "{what}");
    }
    for (at, of) in graph.options().edge_types.iter().enumerate() {
        let edges = &sample.edges[at];
        assert_eq!(sample.edges_of_hops[at].iter().sum::<usize>(), edges.len(), "{what}");
        assert!(sample.sources[at].len() == edges.len() && sample.targets[at].len() == edges.len(), "{what}");
        let (_, edge_times) = graph.edge_values(at);
        let (mut of_targets, mut next) = (BTreeMap::<i64, Vec<i64>>::new(), 0);
        for (hop, count) in sample.edges_of_hops[at].iter().enumerate() {
            let targets = &sample.vertices_of_hops[of.target];
            let first: usize = targets[..hop].iter().sum();
            for place in next..next + count {
                let (source, target) = (sample.sources[at][place], sample.targets[at][place]);
                let ends = (sample.vertices[of.source][source as usize], sample.vertices[of.target][target as usize]);
                assert_eq!(graph.edge_ends(at, edges[place]).unwrap(), ends, "{what}");
                let in_hop = first as i64..(first + targets[hop]) as i64;
                assert!(in_hop.contains(&target), "{what}: a target of another hop");
                of_targets.entry(target).or_default().push(edges[place]);
                let Some(trees) = &sample.trees else { continue };
                let tree = trees[of.source][source as usize];
                assert_eq!(tree, trees[of.target][target as usize], "{what}: an edge between trees");
                let Some(temporal) = options.temporal else { continue };
                let time = match temporal.of {
                    TemporalOf::Edges => edge_times[edges[place] as usize],
                    TemporalOf::Vertices => {
                        let mut position = Vec::new();
                        graph.append_positions(of.source, &[ends.0], &mut position).unwrap();
                        graph.vertex_times(of.source).unwrap()[position[0] as usize]
                    }
                };
                assert!(time <= times[tree as usize], "{what}: {time} is later than the seed");
            }
            let fanout = options.fanouts[at][hop];
            for local in first..first + targets[hop] {
                let taken = of_targets.get(&(local as i64)).map_or(&[][..], Vec::as_slice);
                let all: Vec<i64> = {
                    let (begins, _) = graph.columns(at, &Team::alone()).unwrap();
                    let target = sample.vertices[of.target][local] as usize;
                    (begins[target]..begins[target + 1]).collect()
                };
                if options.temporal.is_some() || options.weighted {
                    assert!(fanout.is_none_or(|fanout| taken.len() <= fanout), "{what}");
                } else if options.replace && fanout.is_some() {
                    let expected = if all.is_empty() { 0 } else { fanout.unwrap() };
                    assert_eq!(taken.len(), expected, "{what}");
                } else if fanout.is_none_or(|fanout| fanout >= all.len()) {
                    assert_eq!(taken, all, "{what}: the whole row");
                } else {
                    assert_eq!(taken.len(), fanout.unwrap(), "{what}");
                }
                if !options.replace || fanout.is_none() {
                    let once: BTreeSet<_> = taken.iter().collect();
                    assert_eq!(once.len(), taken.len(), "{what}: an edge twice");
                }
            }
            next += count;
        }
    }
}

#[test]
fn samples_keep_their_rules_and_are_those_of_the_plain_sampler_with_any_number_of_threads() {
    let first = first_seed(700);
    for seed in first..first + case_count(4) {
        let mut world = World::new(seed);
        world.write(25);
        set_times(&world);
        let graph = TypedGraph::of(&read(&world), &types(true), &Team::alone()).unwrap();
        let persons: Vec<i64> = (0..graph.vertex_count(0) as i64).filter(|number| number % 4 == 1).collect();
        let robots: Vec<i64> = vec![0, 3, 0];
        let times: Vec<i64> = (0..persons.len() as i64).map(|at| at * 5 % 70).collect();
        let batch = [
            Seeds { vertex_type: 1, numbers: &robots, times: Some(&[10, 30, 50]) },
            Seeds { vertex_type: 0, numbers: &persons, times: Some(&times) },
        ];
        for case in 0..24 {
            let (temporal, weighted) = (case % 2 == 0, case % 3 == 0);
            let options = sampler_options(case / 2, temporal, weighted);
            let what = format!("seed {seed}, {options:?}");
            let expected = verify::sampling::sample(&graph, &options, case, &batch);
            check_sample(&graph, &options, &batch, &expected, &what);
            let sampler = Sampler::new(options).unwrap();
            with_teams(|team| {
                assert_eq!(sampler.sample(&graph, case, &batch, team).unwrap(), expected, "{what}, {team:?}");
                let several = vec![batch.to_vec(); 5];
                let drawn = sampler.sample_many(&graph, case - case.min(2), &several, team).unwrap();
                assert_eq!(drawn[case.min(2) as usize], expected, "{what}, {team:?}");
            });
        }
    }
}

#[test]
fn large_hops_are_drawn_side_by_side_with_the_same_result() {
    let mut world = World::new(3);
    world.write(900);
    let graph = TypedGraph::of(&read(&world), &types(false), &Team::alone()).unwrap();
    let persons: Vec<i64> = (0..graph.vertex_count(0) as i64).collect();
    assert!(persons.len() > 3_000, "{}", persons.len());
    let seeds = [Seeds { vertex_type: 0, numbers: &persons, times: None }];
    for (disjoint, numbered) in [(false, Numbered::Array), (false, Numbered::Hash), (true, Numbered::BySize)] {
        let options = SamplerOptions { disjoint, numbered, seed: 4, ..SamplerOptions::of_fanouts(5, &[4, 3]) };
        let expected = verify::sampling::sample(&graph, &options, 8, &seeds);
        let sampler = Sampler::new(options).unwrap();
        with_teams(|team| assert_eq!(sampler.sample(&graph, 8, &seeds, team).unwrap(), expected, "{team:?}"));
    }
}

/// A star: sources with weights 0, 1, 2, … and times 0, 1, 2, … around one target.
fn star(count: usize) -> (crate::common::World, TypedGraph) {
    let mut world = World::new(1);
    let catalog = world.manager.store().catalog();
    let (born, since) = (catalog.intern_key("born"), catalog.intern_key("since"));
    let txn = world.begin();
    let target = txn.insert_vertex(world.labels[0], None).unwrap();
    txn.set_vertex_property(target, born, Value::I64(0), WriteCardinality::Single, Vec::new()).unwrap();
    for nth in 0..count {
        let source = txn.insert_vertex(world.labels[0], None).unwrap();
        txn.set_vertex_property(source, born, Value::I64(nth as i64), WriteCardinality::Single, Vec::new()).unwrap();
        let edge = txn.insert_edge(source, target, world.along[0], None).unwrap();
        txn.set_edge_property(edge, world.weight, Value::F64(nth as f64)).unwrap();
        txn.set_edge_property(edge, since, Value::I64(nth as i64)).unwrap();
    }
    txn.commit().unwrap();
    world.vertices.push(target);
    let mut options = TypedGraphOptions::default();
    let person = options.vertex_type("person");
    options.vertex_types[person].time = Some("born".into());
    let knows = options.edge_type(person, "knows", person);
    options.edge_types[knows].weight = Some("weight".into());
    options.edge_types[knows].time = Some("since".into());
    let graph = TypedGraph::of(&read(&world), &options, &Team::alone()).unwrap();
    (world, graph)
}

/// How often each source of a star is taken in so many batches.
fn counts(graph: &TypedGraph, world: &World, options: SamplerOptions, batches: u64) -> Vec<f64> {
    let sampler = Sampler::new(options).unwrap();
    let target = graph.number(0, world.vertices[0]).unwrap();
    let (_, times) = graph.edge_values(0);
    let mut counts = vec![0.0; times.len()];
    for batch in 0..batches {
        let seeds = [Seeds { vertex_type: 0, numbers: &[target], times: None }];
        let sample = sampler.sample(graph, batch, &seeds, &Team::alone()).unwrap();
        // The time of an edge says which one it is.
        sample.edges[0].iter().for_each(|edge| counts[times[*edge as usize] as usize] += 1.0);
    }
    counts
}

/// χ² of counts against the expected ones.
fn chi_squared(counts: &[f64], expected: &[f64]) -> f64 {
    let terms = counts.iter().zip(expected).filter(|(_, expected)| **expected > 0.0);
    terms.map(|(count, expected)| (count - expected).powi(2) / expected).sum()
}

#[test]
fn neighbors_are_equally_likely_and_weighted_ones_as_likely_as_their_weights() {
    let (world, graph) = star(20);
    let base = |count, replace, weighted| SamplerOptions {
        replace,
        weighted,
        seed: 11,
        ..SamplerOptions::of_fanouts(1, &[count])
    };
    // 19 degrees of freedom: χ² above 43.8 has a probability of 0.001.
    for (count, replace) in [(1, false), (5, false), (19, false), (5, true), (40, true)] {
        let found = counts(&graph, &world, base(count, replace, false), 10_000);
        let expected = vec![10_000.0 * count as f64 / 20.0; 20];
        let chi = chi_squared(&found, &expected);
        assert!(chi < 43.8, "{count}, {replace}: {chi}, {found:?}");
    }
    for (count, replace) in [(1, false), (1, true), (7, true)] {
        let found = counts(&graph, &world, base(count, replace, true), 10_000);
        let expected: Vec<f64> = (0..20).map(|nth| 10_000.0 * count as f64 * nth as f64 / 190.0).collect();
        let chi = chi_squared(&found, &expected);
        assert!(chi < 42.3 && found[0] == 0.0, "{count}, {replace}: {chi}, {found:?}");
    }
    // Two without replacement: a second draw from what the first one has left.
    let found = counts(&graph, &world, base(2, false, true), 20_000);
    let weight = |nth: usize| nth as f64 / 190.0;
    let expected: Vec<f64> = (0..20)
        .map(|nth| {
            let second = (0..20)
                .filter(|first| *first != nth)
                .map(|first| weight(first) * weight(nth) / (1.0 - weight(first)))
                .sum::<f64>();
            20_000.0 * (weight(nth) + second)
        })
        .collect();
    let chi = chi_squared(&found, &expected);
    assert!(chi < 42.3 && found[0] == 0.0, "{chi}, {found:?}");
}

#[test]
fn many_of_a_long_row_are_equally_likely_too() {
    let (world, graph) = star(200);
    let options = SamplerOptions { seed: 5, ..SamplerOptions::of_fanouts(1, &[100]) };
    let found = counts(&graph, &world, options, 2_000);
    // Counts of a sample without replacement vary less than χ² assumes; 199 degrees of freedom: 267.5 has a probability of 0.001.
    let chi = chi_squared(&found, &vec![1_000.0; 200]);
    assert!(chi < 267.5 && found.iter().sum::<f64>() == 200_000.0, "{chi}");
}

#[test]
fn temporal_samples_take_what_is_not_later_than_their_seeds() {
    let (world, graph) = star(20);
    let target = graph.number(0, world.vertices[0]).unwrap();
    let (_, edge_times) = graph.edge_values(0);
    for of in [TemporalOf::Edges, TemporalOf::Vertices] {
        for (strategy, count) in
            [(TemporalStrategy::Last, Some(3)), (TemporalStrategy::Uniform, None), (TemporalStrategy::Uniform, Some(3))]
        {
            let options = SamplerOptions {
                fanouts: vec![vec![count]],
                disjoint: true,
                temporal: Some(Temporal { of, strategy }),
                ..SamplerOptions::default()
            };
            let sampler = Sampler::new(options).unwrap();
            let seeds = [Seeds { vertex_type: 0, numbers: &[target, target, target], times: Some(&[-1, 1, 11]) }];
            let sample = sampler.sample(&graph, 0, &seeds, &Team::alone()).unwrap();
            let of_seed = |seed: i64| {
                let places = (0..sample.edges[0].len()).filter(|at| sample.targets[0][*at] == seed);
                let mut times: Vec<i64> = places.map(|at| edge_times[sample.edges[0][at] as usize]).collect();
                times.sort_unstable();
                times
            };
            assert_eq!((of_seed(0), of_seed(1)), (vec![], vec![0, 1]), "{of:?}, {strategy:?}");
            match (strategy, count) {
                (TemporalStrategy::Last, _) => assert_eq!(of_seed(2), [9, 10, 11], "{of:?}"),
                (_, None) => assert_eq!(of_seed(2), (0..12).collect::<Vec<_>>(), "{of:?}"),
                _ => assert!(of_seed(2).len() == 3 && of_seed(2)[2] <= 11, "{of:?}"),
            }
        }
    }
}

#[test]
fn samples_in_both_directions_have_each_edge_turned_around_once() {
    let sample = Sample {
        vertices: vec![vec![7, 8, 9]],
        sources: vec![vec![1, 1, 0], vec![2]],
        targets: vec![vec![0, 0, 1], vec![0]],
        edges: vec![vec![31, 30, 12], vec![5]],
        vertices_of_hops: vec![vec![1, 2]],
        edges_of_hops: vec![vec![2, 1], vec![1, 0]],
        trees: None,
    };
    let both = sample.both_directions(&[Some(0), None]).unwrap();
    assert_eq!((&both.targets[0], &both.sources[0], &both.edges[0]), (&vec![0, 1], &vec![1, 0], &vec![30, 12]));
    assert_eq!((&both.targets[1], &both.edges[1]), (&vec![0], &vec![5]));
    let other = sample.both_directions(&[Some(1), Some(0)]).unwrap();
    assert_eq!((&other.targets[0], &other.sources[0]), (&vec![0, 1, 2], &vec![1, 0, 0]));
    assert_eq!(other.edges[0], [30, 12, 5]);
    assert_eq!((&other.targets[1], &other.sources[1]), (&vec![0, 0, 1], &vec![1, 2, 0]));
    assert!(sample.both_directions(&[None]).is_err() && sample.both_directions(&[Some(2), None]).is_err());
}

#[test]
fn mistakes_are_named() {
    let (mut world, graph) = star(3);
    let team = Team::alone();
    let plain = SamplerOptions::of_fanouts(1, &[2]);
    let sampler = Sampler::new(plain.clone()).unwrap();
    let seeds = |vertex_type, numbers| Seeds { vertex_type, numbers, times: None };
    let message = |options: SamplerOptions, seeds: &[Seeds<'_>]| {
        let drawn = Sampler::new(options).and_then(|sampler| sampler.sample(&graph, 0, seeds, &team));
        drawn.unwrap_err().message().to_string()
    };
    assert!(message(plain.clone(), &[seeds(0, &[4])]).contains("there is no vertex 4 of type 'person'"));
    assert!(message(plain.clone(), &[seeds(3, &[0])]).contains("vertex type 3"));
    assert!(message(plain.clone(), &[seeds(0, &[0]), seeds(0, &[1])]).contains("given twice"));
    let two = SamplerOptions::of_fanouts(2, &[2]);
    assert!(message(two, &[seeds(0, &[0])]).contains("2 edge types, and the graph has 1"));
    let uneven = SamplerOptions { fanouts: vec![vec![Some(1)], vec![]], ..SamplerOptions::default() };
    assert!(message(uneven, &[]).contains("hops"));
    let temporal = Some(Temporal { of: TemporalOf::Edges, strategy: TemporalStrategy::Last });
    assert!(message(SamplerOptions { temporal, ..plain.clone() }, &[]).contains("set disjoint"));
    let of_edges = SamplerOptions { temporal, disjoint: true, ..plain.clone() };
    assert!(message(of_edges.clone(), &[seeds(0, &[0])]).contains("give each seed a time"));
    let few = Seeds { vertex_type: 0, numbers: &[0, 1], times: Some(&[1]) };
    assert!(message(of_edges, &[few]).contains("2 seeds have 1 times"));
    assert!(sampler.sample(&graph, 0, &[seeds(0, &[0, 0])], &team).is_ok());

    let no_type = |error: mangrove_graph::Error| error.message().contains("type 7: the graph has 1");
    assert!(no_type(graph.vertices(7, &[0]).unwrap_err()) && no_type(graph.edges(7, &[0]).unwrap_err()));
    assert!(no_type(graph.edge_ends(7, 0).unwrap_err()) && no_type(graph.columns(7, &team).unwrap_err()));

    let txn = world.begin();
    let loose = txn.insert_edge(world.vertices[0], world.vertices[0], world.along[0], None).unwrap();
    txn.set_edge_property(loose, world.weight, Value::F64(-1.0)).unwrap();
    txn.commit().unwrap();
    let fails = |change: &dyn Fn(&mut TypedGraphOptions)| {
        let mut options = graph.options().clone();
        change(&mut options);
        TypedGraph::of(&read(&world), &options, &team).unwrap_err().message().to_string()
    };
    assert!(fails(&|_| ()).contains("has the weight -1 under 'weight'"));
    assert!(fails(&|of| of.edge_types[0].weight = None).contains("no time under 'since'"));
    assert!(fails(&|of| of.vertex_types[0].label = Some("persn".into())).contains("no vertex has the label 'persn'"));
    assert!(fails(&|of| of.edge_types[0].label = Some("nows".into())).contains("no edge has the label 'nows'"));
    assert!(fails(&|of| of.edge_types[0].time = Some("when".into())).contains("no element has a property 'when'"));
    assert!(fails(&|of| of.edge_types[0].target = 4).contains("vertex types 0 and 4"));
    assert!(fails(&|of| of.edge_types.push(of.edge_types[0].clone())).contains("given twice"));
    world.write(1);
}

#[test]
fn all_types_of_a_graph_are_found() {
    let mut world = World::new(8);
    world.write(20);
    let options = TypedGraphOptions::of_all(&read(&world)).unwrap();
    let names: Vec<&str> = options.vertex_types.iter().map(|of| of.name.as_str()).collect();
    assert_eq!(names, ["person", "robot"]);
    let of = |at: usize| options.vertex_types[at].name.as_str();
    let triples: Vec<_> = options.edge_types.iter().map(|e| (of(e.source), e.name.as_str(), of(e.target))).collect();
    let mut all = Vec::new();
    for source in ["person", "robot"] {
        for name in ["knows", "made"] {
            all.extend(["person", "robot"].map(|target| (source, name, target)));
        }
    }
    assert_eq!(triples, all);
    let view = read(&world);
    let graph = TypedGraph::of(&view, &options, &Team::alone()).unwrap();
    let edges: u64 = (0..all.len()).map(|at| graph.edge_count(at)).sum();
    assert_eq!(edges as usize, all_edges(&view).len());
}
