//! Random walks against true counts, on a graph whose friends are friends of each other: statistics of degrees do not
//! see that.

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;

use mangrove_graph::{Direction, TabletId, VertexId};
use mangrove_gremlin::Comparison;

use super::estimates::{LABELS, Lists, q_error};
use super::{Numbers, graph_of};
use crate::facts::GraphFacts;
use crate::graph::estimate::Estimator;
use crate::graph::exact;
use crate::graph::tally::Tally;
use crate::graph::walks::Walks;
use crate::graph::{QueryGraph, choose};
use crate::logical::{By, Condition};
use crate::physical::EdgesOf;
use crate::sampling::{Begin, Drawn, DrawnEdges, GraphSample, SampleGraph};

/// What walks are said to save: more than they may ever take.
const COST: f64 = 1e9;

/// Draws from lists: every few ones, from a place that moves on.
struct Sampler {
    lists: Lists,
    turn: Cell<usize>,
    /// How many nanoseconds a draw takes.
    each: f64,
}

fn id(vertex: usize) -> VertexId {
    VertexId::new(TabletId(0), vertex as u64)
}

fn number(vertex: VertexId) -> usize {
    vertex.slot() as usize
}

impl Sampler {
    /// Every few of some things, so that at most `most` are left.
    fn some<T: Copy>(&self, of: &[T], most: usize) -> Vec<T> {
        self.turn.set(self.turn.get() + 1);
        let step = of.len().div_ceil(most).max(1);
        of.iter().skip(7 * self.turn.get() % step).step_by(step).copied().collect()
    }

    fn neighbors(&self, of: VertexId, edges: &EdgesOf) -> Vec<usize> {
        let vertex = number(of);
        let mut found = Vec::new();
        for &(source, label, target) in &self.lists.edges {
            if !edges.labels.is_empty() && !edges.labels.iter().any(|name| name == LABELS[label]) {
                continue;
            }
            if source == vertex && edges.direction != Direction::In {
                found.push(target);
            }
            if target == vertex && edges.direction != Direction::Out {
                found.push(source);
            }
        }
        found
    }
}

impl SampleGraph for Sampler {
    fn vertices(&self, of: &Begin<'_>, most: usize) -> Option<Drawn> {
        let Begin::Scanned(labels) = of else { return None };
        let takes = |label: usize| labels.is_none_or(|sets| sets.iter().any(|set| set.0 as usize == label));
        let all: Vec<VertexId> =
            (0..self.lists.labels.len()).filter(|at| takes(self.lists.labels[*at])).map(id).collect();
        Some(Drawn { vertices: self.some(&all, most), of: None })
    }

    fn edges(&self, from: &[VertexId], edges: &EdgesOf, _: &[Condition], most: usize) -> Option<DrawnEdges> {
        let all = (0..).zip(from).flat_map(|(row, vertex)| {
            self.neighbors(*vertex, edges).into_iter().map(move |neighbor| (row, id(neighbor)))
        });
        let all: Vec<(u32, VertexId)> = all.collect();
        let (rows, neighbors): (Vec<u32>, _) = self.some(&all, most).into_iter().unzip();
        Some(DrawnEdges { drawn: rows.len() as u64, rows, neighbors, of: all.len() as u64 })
    }

    fn meeting(&self, vertices: Vec<VertexId>, conditions: &[Condition]) -> Option<Vec<u32>> {
        let meets = |vertex: &VertexId| {
            let label = LABELS[self.lists.labels[number(*vertex)]];
            conditions.iter().all(|condition| match condition {
                Condition::LabelIn(names) => names.iter().any(|name| name == label),
                _ => panic!("the tests ask for labels alone"),
            })
        };
        Some((0..).zip(&vertices).filter(|(_, vertex)| meets(vertex)).map(|(row, _)| row).collect())
    }

    fn edges_between(&self, [from, to]: [&[VertexId]; 2], edges: &EdgesOf, _: &[Condition]) -> Option<Vec<u64>> {
        let count = |(from, to): (&VertexId, &VertexId)| {
            self.neighbors(*from, edges).into_iter().filter(|neighbor| id(*neighbor) == *to).count() as u64
        };
        Some(from.iter().zip(to).map(count).collect())
    }

    fn degrees(&self, of: &[VertexId], edges: &EdgesOf) -> Option<Vec<u64>> {
        Some(of.iter().map(|vertex| self.neighbors(*vertex, edges).len() as u64).collect())
    }

    /// Every vertex has its number as its value.
    fn comparing(&self, comparison: Comparison, [left, right]: [&[VertexId]; 2], _: [&By; 2]) -> Option<Vec<bool>> {
        assert_eq!(comparison, Comparison::Gt);
        Some(left.iter().zip(right).map(|(left, right)| number(*left) > number(*right)).collect())
    }

    fn nanos(&self) -> f64 {
        self.each * self.turn.get() as f64
    }
}

/// People in circles of ten, each of whom knows nearly everybody in the circle, and five others. Each lives in one of two cities, of which
/// the people of the second know many more.
fn circles() -> Lists {
    const PEOPLE: usize = 300;
    let mut numbers = Numbers(5);
    let mut edges = Vec::new();
    for person in 0..PEOPLE {
        let circle = person / 10 * 10;
        edges.extend((circle..circle + 10).filter(|other| *other != person).map(|other| (person, 3, other)));
        let others = if person % 10 == 0 { 40 } else { 2 };
        edges.extend((0..others).map(|_| (person, 3, numbers.skewed(PEOPLE, 1))));
        edges.push((person, 6, PEOPLE + usize::from(person % 10 == 0)));
    }
    let labels = std::iter::repeat_n(0, PEOPLE).chain([2, 2]).collect();
    Lists { labels, edges }
}

fn facts_of(lists: Lists) -> GraphFacts {
    facts_with(lists, 0.0)
}

fn facts_with(lists: Lists, each: f64) -> GraphFacts {
    let facts = lists.facts();
    let sampler = Sampler { lists, turn: Cell::new(0), each };
    GraphFacts { sample: GraphSample::new(Rc::new(sampler)), ..facts }
}

/// The rows at the end of the written order, without walks and with them.
fn expected(query: &QueryGraph, facts: &GraphFacts) -> [f64; 2] {
    let estimator = Estimator::new(query, facts);
    let order = choose::written(query);
    let before = Tally::of(query, &estimator, &order).rows;
    let mut walks = Walks::new(query, &estimator, facts, COST).expect("the graph can be walked");
    assert!(walks.walk(&order));
    assert!(!walks.walk(&order), "an order is walked once");
    [before, Tally::of(query, &estimator, &order).rows]
}

/// Edges from one vertex to another, by both.
type Between = HashMap<(usize, usize), usize>;

/// How many results a walk has.
type Takes<'a> = &'a dyn Fn(&[usize], &Between) -> usize;

/// The true number of results of walks along `knows`, whose vertices the test takes.
fn truth(lists: &Lists, hops: usize, takes: Takes<'_>) -> f64 {
    let mut between = Between::new();
    let mut near = vec![Vec::new(); lists.labels.len()];
    for &(source, label, target) in lists.edges.iter().filter(|(_, label, _)| *label == 3) {
        assert_eq!(label, 3);
        *between.entry((source, target)).or_default() += 1;
        near[source].push(target);
    }
    let mut walks: Vec<Vec<usize>> = (0..lists.labels.len()).map(|start| vec![start]).collect();
    for _ in 0..hops {
        let next = |walk: &Vec<usize>| {
            let walk = walk.clone();
            let ends = near[walk[walk.len() - 1]].clone();
            ends.into_iter().map(move |end| [&walk[..], &[end]].concat())
        };
        walks = walks.iter().flat_map(next).collect();
    }
    walks.iter().map(|walk| takes(walk, &between)).sum::<usize>() as f64
}

#[test]
fn walks_see_circles_that_degrees_do_not() {
    let triangle = |walk: &[usize], between: &Between| between.get(&(walk[2], walk[0])).copied().unwrap_or(0);
    let ordered = |walk: &[usize], between: &Between| {
        if walk[1] > walk[0] { triangle(walk, between) } else { 0 }
    };
    let open = |walk: &[usize], between: &Between| {
        usize::from(walk[2] != walk[0] && !between.contains_key(&(walk[2], walk[0])))
    };
    // The hops, which walks they take, and by how much degrees alone are off at least.
    let cases: [(&str, Takes<'_>, f64); 3] = [
        ("out('knows').out('knows').out('knows').where(eq('a')).values('n')", &triangle, 2.0),
        (
            "out('knows').as('b').where(gt('a')).by('n').out('knows').out('knows').where(eq('a')).values('n')",
            &ordered,
            2.0,
        ),
        ("out('knows').out('knows').where(neq('a')).not(out('knows').where(eq('a'))).values('n')", &open, 1.0),
    ];
    for (hops, takes, degrees_alone) in cases {
        let script = format!("g.V().hasLabel('person').as('a').{hops}");
        let (query, _) = graph_of(&script).unwrap_or_else(|| panic!("{script} has a graph"));
        let truth = truth(&circles(), 2, takes);
        let [before, after] = expected(&query, &facts_of(circles())).map(|rows| q_error(rows, truth));
        assert!(after < 1.35, "{script}: {truth} rows, off by {after:.2} with walks, and {before:.2} without");
        assert!(before > degrees_alone, "{script}: {truth} rows, off by {before:.2} without walks");
    }
}

/// What is known of the atoms of an order corrects every order that follows them, in the search for the cheapest, too.
#[test]
fn all_orders_of_the_same_atoms_have_the_same_rows() {
    let script = "g.V().hasLabel('person').as('a').out('knows').as('b').out('knows').as('c').\
                  out('knows').where(eq('a')).select('b').out('lives').as('d').select('a', 'b', 'c', 'd')";
    let (query, _) = graph_of(script).unwrap();
    let facts = facts_of(circles());
    let estimator = Estimator::new(&query, &facts);
    let written = choose::written(&query);
    Walks::new(&query, &estimator, &facts, COST).unwrap().walk(&written);
    let rows = Tally::of(&query, &estimator, &written).rows;
    for seed in 0..40 {
        let Some(order) = choose::at_random(&query, seed).order else { continue };
        let other = Tally::of(&query, &estimator, &order).rows;
        assert!((other - rows).abs() < 1e-6 * rows, "{order:?}: {other} rows, and {rows} as written");
    }
    let starts: Vec<usize> = (0..query.variables.len()).collect();
    let (order, cost) = exact::search(&query, &estimator, &starts, true, f64::INFINITY).order.unwrap();
    assert!((Tally::of(&query, &estimator, &order).cost - cost).abs() < 1e-6 * cost);
}

#[test]
fn cheap_orders_and_graphs_without_statistics_are_not_walked() {
    let script = "g.V().hasLabel('person').as('a').out('knows').out('knows').out('knows').where(eq('a')).values('n')";
    let (query, _) = graph_of(script).unwrap();
    let walks =
        |facts: &GraphFacts, cost: f64| Walks::new(&query, &Estimator::new(&query, facts), facts, cost).is_some();
    let facts = facts_of(circles());
    assert!(walks(&facts, COST));
    assert!(!walks(&facts, 1e6));
    assert!(!walks(&GraphFacts { figures: None, ..facts.clone() }, COST));
    assert!(!walks(&GraphFacts { sample: GraphSample::default(), ..facts }, COST));
}

/// Walks end when they have taken their part of the expected time.
#[test]
fn walks_end_in_time() {
    let script = "g.V().hasLabel('person').as('a').out('knows').out('knows').out('knows').where(eq('a')).values('n')";
    let (query, _) = graph_of(script).unwrap();
    let facts = facts_with(circles(), 100_000.0);
    let estimator = Estimator::new(&query, &facts);
    let mut walks = Walks::new(&query, &estimator, &facts, 50e6).unwrap();
    walks.walk(&choose::written(&query));
    assert!(estimator.learned.rows(0b11).is_some(), "there is time for two hops");
    assert!(estimator.learned.rows(0b111).is_none(), "there is none for the third");
}
