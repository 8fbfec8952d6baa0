//! The validation graphs of LDBC Graphalytics, and p2p-31, with their expected outputs.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use mangrove_analytics::algorithm::{bfs, cdlp, lcc, pagerank, sssp, wcc};
use mangrove_analytics::{Orientation, Projection, Team};
use mangrove_graph::{GraphView, Value};
use mangrove_txn::TransactionManager;

use crate::common::{all, graph_of, project, with_teams};

/// A graph with the number of each position.
struct Loaded {
    manager: TransactionManager,
    projection: Projection,
    numbers: Vec<i64>,
}

impl Loaded {
    fn new(vertices: &[i64], edges: &[(i64, i64, f64)], orientation: Orientation) -> Self {
        let (manager, weight) = graph_of(vertices, edges);
        let projection = project(&manager, &all(orientation, Some(weight)), &Team::alone());
        let numbering = projection.numbering();
        let mut numbers = vec![-1; projection.positions()];
        let view = manager.begin(Default::default()).unwrap();
        for at in numbering.present(0..numbering.positions()) {
            let mut ids = Vec::new();
            view.vertex_user_ids(&[numbering.vertex(at)], &mut ids).unwrap();
            numbers[at as usize] = match ids[0] {
                Value::I32(id) => i64::from(id),
                Value::I64(id) => id,
                ref other => panic!("{other:?} is the id of a vertex"),
            };
        }
        drop(view);
        Loaded { manager, projection, numbers }
    }

    fn position(&self, number: i64) -> u32 {
        self.numbers.iter().position(|found| *found == number).expect("the graph has the vertex") as u32
    }

    /// A column by the numbers of the vertices.
    fn by_number<T: Copy>(&self, column: &[T]) -> BTreeMap<i64, T> {
        self.numbers.iter().zip(column).filter(|(number, _)| **number >= 0).map(|(number, x)| (*number, *x)).collect()
    }
}

/// Lines of words.
fn words(path: &Path) -> Vec<Vec<String>> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
}

/// A graph as lines `vertex neighbor neighbor …`; of an undirected one, each edge is in two lines.
fn adjacency(path: &Path, orientation: Orientation) -> Loaded {
    let lines: Vec<Vec<i64>> =
        words(path).iter().map(|line| line.iter().map(|word| word.parse().unwrap()).collect()).collect();
    // A vertex without outgoing edges may have no line.
    let vertices: BTreeSet<i64> = lines.iter().flatten().copied().collect();
    let vertices: Vec<i64> = vertices.into_iter().collect();
    let edges = lines.iter().flat_map(|line| line[1..].iter().map(|to| (line[0], *to, 1.0)));
    let edges: Vec<_> = edges.filter(|(from, to, _)| orientation == Orientation::Directed || from < to).collect();
    Loaded::new(&vertices, &edges, orientation)
}

/// A graph as a file of vertices and one of edges.
fn listed(vertices: &Path, edges: &Path, orientation: Orientation) -> Loaded {
    let vertices: Vec<i64> = words(vertices).iter().map(|line| line[0].parse().unwrap()).collect();
    let number = |word: &String| word.parse().unwrap();
    let edges: Vec<_> = words(edges)
        .iter()
        .map(|line| (number(&line[0]), number(&line[1]), line.get(2).map_or(1.0, |word| word.parse().unwrap())))
        .collect();
    Loaded::new(&vertices, &edges, orientation)
}

fn expected<T: std::str::FromStr>(path: &Path) -> BTreeMap<i64, T>
where
    T::Err: std::fmt::Debug,
{
    words(path).iter().map(|line| (line[0].parse().unwrap(), line[1].parse().unwrap())).collect()
}

fn assert_near(found: &BTreeMap<i64, f64>, expected: &BTreeMap<i64, f64>, tolerance: f64, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (number, value) in expected {
        let other = found[number];
        let is_near = other == *value || (other - value).abs() <= tolerance * value.abs();
        assert!(is_near, "{what} of vertex {number}: {other}, expected {value}");
    }
}

/// The components are the same sets, whatever their names.
fn assert_same_partition(found: &BTreeMap<i64, u32>, expected: &BTreeMap<i64, i64>, what: &str) {
    let (mut names, mut back) = (HashMap::new(), HashMap::new());
    assert_eq!(found.len(), expected.len(), "{what}");
    for (number, component) in expected {
        let other = found[number];
        assert_eq!(*names.entry(*component).or_insert(other), other, "{what}: vertex {number}");
        assert_eq!(*back.entry(other).or_insert(*component), *component, "{what}: vertex {number}");
    }
}

fn depths(loaded: &Loaded, source: i64, team: &Team) -> BTreeMap<i64, i64> {
    let found = bfs::run(&loaded.projection, loaded.position(source), bfs::Follow::Outgoing, team).unwrap();
    let far = |depth: u32| if depth == bfs::UNREACHED { i64::MAX } else { i64::from(depth) };
    loaded.by_number(&found).into_iter().map(|(number, depth)| (number, far(depth))).collect()
}

fn labels(loaded: &Loaded, rounds: u32, team: &Team) -> BTreeMap<i64, i64> {
    let first = loaded.numbers.iter().map(|number| (*number).max(0) as u64).collect();
    let found = cdlp::run(&loaded.projection, first, rounds, team).unwrap();
    loaded.by_number(&found).into_iter().map(|(number, label)| (number, label as i64)).collect()
}

fn ranks(loaded: &Loaded, rounds: u32, team: &Team) -> BTreeMap<i64, f64> {
    let options = pagerank::PageRankOptions { rounds, ..Default::default() };
    loaded.by_number(&pagerank::run(&loaded.projection, &options, team).unwrap().ranks)
}

fn distances(loaded: &Loaded, source: i64, team: &Team) -> BTreeMap<i64, f64> {
    loaded.by_number(&sssp::run(&loaded.projection, loaded.position(source), None, team).unwrap())
}

/// The unpacked data set; `None`, with a line, if it is not there.
fn folder(name: &str) -> Option<PathBuf> {
    let found = mangrove_testdata::dataset(name);
    if found.is_none() {
        eprintln!("left out: {name}, because the data set is not there");
    }
    found
}

#[test]
fn validation_graphs_have_the_expected_outputs() {
    let Some(folder) = folder("graphalytics") else { return };
    let folder = folder.join("validation-graphs");
    let team = Team::alone();
    for (prefix, orientation) in [("dir", Orientation::Directed), ("undir", Orientation::Undirected)] {
        let input = |name: &str| adjacency(&folder.join(format!("{name}/{prefix}-input")), orientation);
        let output = |name: &str| folder.join(format!("{name}/{prefix}-output"));
        assert_eq!(depths(&input("bfs"), 1, &team), expected(&output("bfs")), "{prefix} bfs");
        assert_eq!(labels(&input("cdlp"), 5, &team), expected(&output("cdlp")), "{prefix} cdlp");
        let loaded = input("lcc");
        let found = loaded.by_number(&lcc::run(&loaded.projection, &team).unwrap());
        assert_near(&found, &expected(&output("lcc")), 1e-9, "lcc");
        // The expected ranks are not exactly those of so many rounds: the benchmark's tolerance.
        let rounds = if orientation == Orientation::Directed { 14 } else { 26 };
        assert_near(&ranks(&input("pr"), rounds, &team), &expected(&output("pr")), 1e-4, "pr");
        let loaded = input("wcc");
        let found = loaded.by_number(&wcc::run(&loaded.projection, &team).unwrap());
        assert_same_partition(&found, &expected(&output("wcc")), prefix);
        let weighted = |end: &str| folder.join(format!("sssp/{prefix}-input.{end}"));
        let loaded = listed(&weighted("v"), &weighted("e"), orientation);
        assert_near(&distances(&loaded, 1, &team), &expected(&output("sssp")), 1e-9, "sssp");
        drop(loaded.manager);
    }
}

#[test]
fn a_real_graph_has_the_expected_outputs() {
    let Some(folder) = folder("p2p-31") else { return };
    let loaded = listed(&folder.join("p2p-31.v"), &folder.join("p2p-31.e"), Orientation::Undirected);
    let output = |name: &str| folder.join(format!("results_undirected/p2p-31-{name}"));
    with_teams(|team| {
        assert_eq!(depths(&loaded, 6, team), expected(&output("BFS")), "BFS, {team:?}");
        assert_eq!(labels(&loaded, 10, team), expected(&output("CDLP")), "CDLP, {team:?}");
        let found = loaded.by_number(&wcc::run(&loaded.projection, team).unwrap());
        assert_same_partition(&found, &expected(&output("WCC")), "WCC");
        let found = loaded.by_number(&lcc::run(&loaded.projection, team).unwrap());
        assert_near(&found, &expected(&output("LCC")), 1e-9, "LCC");
        assert_near(&ranks(&loaded, 10, team), &expected(&output("PR")), 1e-9, "PR");
        assert_near(&distances(&loaded, 6, team), &expected(&output("SSSP")), 1e-9, "SSSP");
    });
}
