//! Estimates of walks against true counts, on generated graphs whose degrees are skewed and depend on one another.

use std::collections::BTreeMap;
use std::sync::Arc;

use mangrove_graph::statistics::{DegreeStatistics, EdgeTable, LabelStatistics, PairMoments, Statistics, sort_tables};
use mangrove_graph::{Direction, LabelSetId};

use super::{Numbers, graph_of};
use crate::facts::{Figures, GraphFacts};
use crate::graph::choose;

/// The labels of vertices and of edges, by number.
pub(super) const LABELS: [&str; 7] = ["person", "post", "city", "knows", "likes", "wrote", "lives"];
const VERTEX_LABELS: usize = 3;

/// A graph as lists: the labels of its vertices, and edges with source, label and target.
pub(super) struct Lists {
    pub labels: Vec<usize>,
    pub edges: Vec<(usize, usize, usize)>,
}

/// People, the posts that they write and like, and the cities that they live in. Who knows many also writes many posts
/// and lives in a large city: degrees depend on one another.
pub(super) fn network(seed: u64, power: i32) -> Lists {
    const PEOPLE: usize = 400;
    const POSTS: usize = 1_000;
    const CITIES: usize = 20;
    let [knows, likes, wrote, lives] = [3, 4, 5, 6];
    let mut numbers = Numbers(seed);
    let labels = [(0, PEOPLE), (1, POSTS), (2, CITIES)];
    let labels = labels.into_iter().flat_map(|(label, count)| std::iter::repeat_n(label, count)).collect();
    let mut edges = Vec::new();
    for _ in 0..4_000 {
        edges.push((numbers.skewed(PEOPLE, power), knows, numbers.skewed(PEOPLE, power)));
        edges.push((numbers.skewed(PEOPLE, 2), likes, PEOPLE + numbers.skewed(POSTS, power)));
    }
    for post in 0..POSTS {
        edges.push((numbers.skewed(PEOPLE, power), wrote, PEOPLE + post));
    }
    for person in 0..PEOPLE {
        let near = (person * CITIES / PEOPLE + numbers.skewed(3, 1)).min(CITIES - 1);
        edges.push((person, lives, PEOPLE + POSTS + near));
    }
    Lists { labels, edges }
}

impl Lists {
    /// The statistics of the graph, by a plain count.
    pub fn facts(&self) -> GraphFacts {
        let mut degrees: BTreeMap<(usize, bool, usize), Vec<u64>> = BTreeMap::new();
        let mut ends: BTreeMap<(usize, bool, usize), [u64; VERTEX_LABELS]> = BTreeMap::new();
        for &(source, label, target) in &self.edges {
            for (end, other, is_incoming) in [(source, target, false), (target, source, true)] {
                let key = (self.labels[end], is_incoming, label);
                degrees.entry(key).or_insert_with(|| vec![0; self.labels.len()])[end] += 1;
                ends.entry(key).or_default()[self.labels[other]] += 1;
            }
        }
        let id = |label: usize| LabelSetId(label as u32);
        let labels = (0..VERTEX_LABELS).map(|label| {
            let of_label: Vec<_> = degrees.iter().filter(|((of, ..), _)| *of == label).collect();
            let table = |(key, degrees): &(&(usize, bool, usize), &Vec<u64>)| {
                let (_, is_incoming, label) = **key;
                let edges: u64 = degrees.iter().sum();
                let part = |(label, count): (usize, u64)| (id(label), count as f64 / edges as f64);
                let ends = ends[*key].into_iter().enumerate().filter(|(_, count)| *count > 0).map(part);
                DegreeStatistics {
                    table: EdgeTable {
                        direction: if is_incoming { Direction::In } else { Direction::Out },
                        label: id(label),
                    },
                    edges,
                    sources: degrees.iter().filter(|degree| **degree > 0).count() as u64,
                    max_degree: degrees.iter().copied().max().unwrap_or(0),
                    squares: degrees.iter().map(|degree| (degree * degree) as f64).sum(),
                    buckets: Box::default(),
                    ends: ends.collect(),
                }
            };
            let mut tables: Vec<_> = of_label.iter().map(table).collect();
            sort_tables(&mut tables);
            let sum = |a: usize, b: usize| -> f64 {
                of_label[a].1.iter().zip(of_label[b].1).map(|(a, b)| (a * b) as f64).sum()
            };
            let moments = PairMoments::new((0..tables.len() as u32).collect(), sum);
            let vertices = self.labels.iter().filter(|of| **of == label).count() as u64;
            LabelStatistics::new(id(label), vertices, tables, moments)
        });
        let statistics = Arc::new(Statistics::new(1, labels.collect(), Vec::new()));
        let figures = Figures::new(statistics, |set| vec![LABELS[set.0 as usize].into()]);
        GraphFacts { figures: Some(figures), ..GraphFacts::default() }
    }

    /// The true number of walks from a label: hops with direction, edge label and label of the end.
    fn count(&self, start: &str, hops: &[(&str, &str, &str)]) -> f64 {
        let number = |name: &str| LABELS.iter().position(|label| *label == name).unwrap();
        let at = |label: &str, count: f64, of: usize| if of == number(label) { count } else { 0.0 };
        let mut here: Vec<f64> = self.labels.iter().map(|of| at(start, 1.0, *of)).collect();
        for (direction, edge, end) in hops {
            let mut next = vec![0.0; here.len()];
            for &(source, _, target) in self.edges.iter().filter(|(_, label, _)| *label == number(edge)) {
                if *direction != "in" {
                    next[target] += here[source];
                }
                if *direction != "out" {
                    next[source] += here[target];
                }
            }
            here = next.into_iter().zip(&self.labels).map(|(count, of)| at(end, count, *of)).collect();
        }
        here.iter().sum()
    }
}

/// The walk as a traversal.
fn script(start: &str, hops: &[(&str, &str, &str)]) -> String {
    let hops = hops.iter().map(|(direction, edge, end)| format!(".{direction}('{edge}').hasLabel('{end}')"));
    format!("g.V().hasLabel('{start}'){}.count()", hops.collect::<String>())
}

/// By how much an estimate is off, as a factor of 1 or more.
pub(super) fn q_error(estimate: f64, truth: f64) -> f64 {
    let (estimate, truth) = (estimate.max(1.0), truth.max(1.0));
    (estimate / truth).max(truth / estimate)
}

#[test]
fn walks_of_two_hops_are_exact_and_longer_ones_are_near() {
    let (knows, known_by, either) =
        (("out", "knows", "person"), ("in", "knows", "person"), ("both", "knows", "person"));
    let (likes, writer) = (("out", "likes", "post"), ("in", "wrote", "person"));
    let lives = ("in", "lives", "person");
    // The beginning, the hops, and the largest factor that the estimate may be off by.
    let cases = [
        ("person", vec![knows, knows], 1.0),
        ("person", vec![knows, known_by], 1.0),
        ("person", vec![either, either], 1.0),
        ("person", vec![knows, likes], 1.0),
        ("person", vec![likes, writer], 1.0),
        ("city", vec![lives, knows], 1.0),
        ("person", vec![knows, knows, knows], 1.5),
        ("person", vec![either, either, either], 1.5),
        ("person", vec![knows, likes, writer], 1.5),
        ("person", vec![likes, writer, knows], 1.5),
        ("person", vec![knows, knows, knows, knows], 2.0),
        ("city", vec![lives, knows, likes, writer], 2.0),
    ];
    for (seed, power) in [(1, 1), (2, 2), (3, 3), (4, 4)] {
        let graph = network(seed, power);
        let facts = graph.facts();
        for (start, hops, bound) in &cases {
            let (query, _) = graph_of(&script(start, hops)).unwrap();
            let truth = graph.count(start, hops);
            let error = q_error(choose::expected_rows(&query, &facts), truth);
            assert!(error <= bound + 1e-9, "skew {power}, {start} {hops:?}: {truth} walks, off by {error:.3}");
        }
    }
}

#[test]
fn what_no_edge_leads_to_is_not_reached() {
    let facts = network(7, 3).facts();
    for (start, hops) in [
        ("person", vec![("out", "knows", "post"), ("out", "knows", "person")]),
        ("person", vec![("in", "wrote", "person"), ("out", "knows", "person")]),
        ("city", vec![("out", "knows", "person"), ("out", "knows", "person")]),
        ("nobody", vec![("out", "knows", "person"), ("out", "knows", "person")]),
    ] {
        let (query, _) = graph_of(&script(start, &hops)).unwrap();
        assert!(choose::expected_rows(&query, &facts) < 1e-6, "{start} {hops:?}");
    }
}

/// Edges with one label lead from people to cities and from posts to posts. So no walk from a city comes to a post.
#[test]
fn edges_of_one_label_lead_where_those_of_their_vertices_lead() {
    let mut graph = network(5, 2);
    let posts: Vec<usize> = (0..graph.labels.len()).filter(|at| LABELS[graph.labels[*at]] == "post").collect();
    let lives = LABELS.iter().position(|label| *label == "lives").unwrap();
    graph.edges.extend(posts.iter().map(|post| (*post, lives, posts[post % 3])));
    let facts = graph.facts();
    for hops in [
        vec![("in", "lives", "person"), ("out", "knows", "person")],
        vec![("in", "lives", "person"), ("out", "wrote", "post")],
    ] {
        let (query, _) = graph_of(&script("city", &hops)).unwrap();
        let truth = graph.count("city", &hops);
        let error = q_error(choose::expected_rows(&query, &facts), truth);
        assert!(error <= 1.0 + 1e-9, "{hops:?}: {truth} walks, off by {error:.3}");
    }
    let (query, _) = graph_of(&script("city", &[("in", "lives", "post"), ("in", "likes", "person")])).unwrap();
    assert!(choose::expected_rows(&query, &facts) < 1e-6);
}

/// Edges that close a triangle are rare, but in a graph with hubs far more frequent than chance.
#[test]
fn edges_between_bound_variables_are_estimated_by_degrees() {
    for (seed, power) in [(1, 1), (2, 2), (3, 3)] {
        let graph = network(seed, power);
        let script = "g.V().hasLabel('person').as('a').out('knows').out('knows').out('knows').where(eq('a')).count()";
        let (query, _) = graph_of(script).unwrap();
        let mut out = vec![Vec::new(); graph.labels.len()];
        graph.edges.iter().filter(|edge| edge.1 == 3).for_each(|&(from, _, to)| out[from].push(to));
        let mut truth = 0.0;
        for (a, near) in out.iter().enumerate() {
            for &b in near {
                for &c in &out[b] {
                    truth += out[c].iter().filter(|end| **end == a).count() as f64;
                }
            }
        }
        let error = q_error(choose::expected_rows(&query, &graph.facts()), truth);
        assert!(error <= 2.5, "skew {power}: {truth} triangles, off by {error:.3}");
    }
}

/// Conditions on edges leave a part of the rows, wherever they are followed from.
#[test]
fn conditions_on_edges_leave_a_part_of_the_rows() {
    let facts = network(1, 2).facts();
    let rows = |script: &str| choose::expected_rows(&graph_of(script).unwrap().0, &facts);
    let all = rows("g.V().hasLabel('person').out('knows').out('likes').count()");
    let newer = rows("g.V().hasLabel('person').outE('knows').has('since', gt(3)).inV().out('likes').count()");
    let older = rows("g.V().hasLabel('post').in('likes').inE('knows').has('since', lte(3)).outV().count()");
    let either = rows("g.V().hasLabel('person').bothE('knows').has('since', gt(3)).otherV().out('likes').count()");
    let one = rows("g.V().hasLabel('person').outE('knows').has('since', 3).inV().out('likes').count()");
    assert!(q_error(newer, 0.3 * all) < 1.01 && q_error(older, 0.3 * all) < 1.01, "{newer} and {older} of {all}");
    assert!(either > newer && one < newer, "{newer} in one direction, {either} in both, {one} with a value");
    let near = "g.V().as('a').out('knows').outE('knows').has('since', gt(3)).inV().where(eq('a')).count()";
    let far = "g.V().as('a').out('knows').out('knows').where(eq('a')).count()";
    assert!(q_error(rows(near), 0.3 * rows(far)) < 1.01);
}
