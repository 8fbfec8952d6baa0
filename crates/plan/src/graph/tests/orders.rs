//! The search for the cheapest order, against all orders of random query graphs.

use std::sync::Arc;

use mangrove_graph::statistics::{DegreeStatistics, EdgeTable, LabelStatistics, PairMoments, Statistics, sort_tables};
use mangrove_graph::{Direction, LabelSetId};
use mangrove_gremlin::Comparison;

use super::Numbers;
use super::estimates::{self, network};
use crate::facts::{Figures, GraphFacts};
use crate::graph::estimate::Estimator;
use crate::graph::exact::{self, Search};
use crate::graph::progress::{Building, Progress};
use crate::graph::tally::Tally;
use crate::graph::{Atom, Move, Order, QueryGraph, Test, TestKind, Variable};
use crate::logical::{Condition, Name, Operand, Step, Test as ValueTest};

const LABELS: usize = 3;

/// The label of the edges that lead from vertices of a label to those of another.
fn edge_label(from: usize, to: usize) -> usize {
    LABELS * (1 + from) + to
}

fn name(label: usize) -> Name {
    Name::from(format!("l{label}"))
}

/// Statistics of three labels of vertices, with edges of their own label between any two. Degrees do not depend on one
/// another, so rows that are expected do not depend on the order.
fn independent(numbers: &mut Numbers) -> GraphFacts {
    let vertices: Vec<u64> = (0..LABELS).map(|_| 10 + numbers.skewed(100_000, 3) as u64).collect();
    let mut tables = vec![Vec::new(); LABELS];
    for from in 0..LABELS {
        for to in 0..LABELS {
            let edges = 1 + numbers.skewed(1_000_000, 4) as u64;
            for (end, direction) in [(from, Direction::Out), (to, Direction::In)] {
                let table = EdgeTable { direction, label: LabelSetId(edge_label(from, to) as u32) };
                let sources = edges.min(vertices[end]);
                let (max_degree, buckets) = (edges, Box::default());
                let squares = (edges * edges) as f64 / vertices[end] as f64;
                tables[end].push(DegreeStatistics {
                    table,
                    edges,
                    sources,
                    max_degree,
                    squares,
                    buckets,
                    ends: Box::default(),
                });
            }
        }
    }
    let labels = tables.into_iter().enumerate().map(|(label, mut tables)| {
        sort_tables(&mut tables);
        LabelStatistics::new(LabelSetId(label as u32), vertices[label], tables, PairMoments::default())
    });
    let statistics = Arc::new(Statistics::new(1, labels.collect(), Vec::new()));
    let figures = Figures::new(statistics, |set| vec![name(set.0 as usize)]);
    GraphFacts { figures: Some(figures), ..GraphFacts::default() }
}

/// A query graph of up to six atoms, with circles, tests, and conditions. `atom` gives the direction and the label of an
/// atom between variables of two labels, and `name` the name of a label.
fn random(
    numbers: &mut Numbers,
    name: impl Fn(usize) -> Name,
    atom: impl Fn(&mut Numbers, usize, usize) -> (Direction, usize),
) -> QueryGraph {
    let count = 2 + numbers.skewed(6, 1).min(5);
    let labels: Vec<usize> = (0..count).map(|_| numbers.skewed(LABELS, 1)).collect();
    let variable = |label: &usize| {
        let mut conditions = Vec::new();
        if numbers.next() < 0.7 {
            conditions.push(Condition::LabelIn(vec![name(*label)]));
        }
        if numbers.next() < 0.3 {
            conditions.push(Condition::HasKey("k".into()));
        }
        Variable { conditions, ..Variable::default() }
    };
    let variables: Vec<Variable> = labels.iter().map(variable).collect();
    let mut atoms = Vec::new();
    for at in 1..7 {
        // A tree, and some edges more.
        let (from, to) = match at < count {
            true => (numbers.skewed(at, 1), at),
            false if numbers.next() < 0.5 => (numbers.skewed(count, 1), numbers.skewed(count, 1)),
            false => continue,
        };
        if from != to {
            let (direction, label) = atom(numbers, labels[from], labels[to]);
            let conditions = match numbers.next() < 0.2 {
                true => {
                    vec![Condition::Property(
                        "w".into(),
                        ValueTest::Compare(Comparison::Gt, Operand::Literal(1.into())),
                    )]
                }
                false => Vec::new(),
            };
            atoms.push(Atom { from, to, direction, labels: vec![name(label)], conditions, position: None });
        }
    }
    let mut tests = Vec::new();
    for _ in 0..numbers.skewed(3, 1) {
        let (a, b) = (numbers.skewed(count, 1), numbers.skewed(count, 1));
        let (kind, reads) = match a == b {
            true => (TestKind::Step(Step::Identity, Some(a)), 1 << a),
            false => (TestKind::Differ(a, b), 1 << a | 1 << b),
        };
        tests.push(Test::new(kind, reads, None));
    }
    let reads_names = tests.iter().any(|test| test.reads.count_ones() > 1) || numbers.next() < 0.3;
    let sink = (numbers.next() < 0.5).then(|| numbers.skewed(count, 1));
    let merges = numbers.next() < 0.5;
    QueryGraph {
        variables,
        atoms,
        tests,
        sink,
        entry: None,
        has_late_conditions: false,
        may_name: true,
        reads_names,
        merges,
    }
}

/// Every order of a graph.
fn every_order(graph: &QueryGraph) -> Vec<Order> {
    fn go_on(building: Building<'_>, orders: &mut Vec<Order>) {
        let mut hops = building.progress.hops().peekable();
        if hops.peek().is_none() {
            orders.push(building.order);
            return;
        }
        for hop in hops {
            let mut next = Building { progress: building.progress, order: building.order.clone() };
            next.make(hop);
            next.make_tests();
            go_on(next, orders);
        }
    }
    let mut orders = Vec::new();
    for start in 0..graph.variables.len() {
        let mut building = Building::begin(graph, start);
        building.make_tests();
        go_on(building, &mut orders);
    }
    orders
}

fn search(graph: &QueryGraph, estimator: &Estimator<'_>, bound: f64) -> Search {
    let starts: Vec<usize> = (0..graph.variables.len()).collect();
    exact::search(graph, estimator, &starts, graph.may_name, bound)
}

/// The cost of the order that is found, and that of the cheapest of all orders.
fn costs(graph: &QueryGraph, facts: &GraphFacts) -> (f64, f64) {
    let estimator = Estimator::new(graph, facts);
    let Search { order, is_cut } = search(graph, &estimator, f64::INFINITY);
    assert!(!is_cut, "{graph:?}");
    let (order, cost) = order.unwrap_or_else(|| panic!("{graph:?} has an order"));
    assert!(is_near(cost, Tally::of(graph, &estimator, &order).cost), "{order:?} of {graph:?}");
    assert_whole(graph, &order);
    let of_all = every_order(graph).into_iter().map(|order| Tally::of(graph, &estimator, &order).cost);
    let cheapest = of_all.fold(f64::INFINITY, f64::min);
    (cost, cheapest)
}

/// Every atom is followed once, and every test is made.
fn assert_whole(graph: &QueryGraph, order: &Order) {
    fn atoms(order: &Order) -> Vec<usize> {
        let follows = |next: &Move| match next {
            Move::Hop { atom, .. } | Move::Close { atom, .. } => Some(*atom),
            Move::Test(_) | Move::Join { .. } => None,
        };
        let own = order.moves.iter().filter_map(follows);
        own.chain(order.joined.iter().flat_map(atoms)).collect()
    }
    let mut followed = atoms(order);
    followed.sort_unstable();
    assert_eq!(followed, (0..graph.atoms.len()).collect::<Vec<_>>(), "{order:?} of {graph:?}");
    let progress = Progress::of(graph, order);
    assert_eq!(progress.tests.count_ones() as usize, graph.tests.len(), "{order:?} of {graph:?}");
}

/// Every order of a graph, with joins and without, in which rows are joined at the variable of the first walk, or else of
/// the second.
fn every_tree(graph: &QueryGraph) -> Vec<Order> {
    let copy = |building: &Building<'_>| Building {
        progress: Progress::of(graph, &building.order),
        order: building.order.clone(),
    };
    let mut layers: Vec<Vec<Building<'_>>> = vec![Vec::new()];
    for start in 0..graph.variables.len() {
        let mut building = Building::begin(graph, start);
        building.make_tests();
        layers[0].push(building);
    }
    for followed in 1..=graph.atoms.len() {
        let mut layer = Vec::new();
        for building in &layers[followed - 1] {
            for hop in building.progress.hops() {
                let mut next = copy(building);
                next.make(hop);
                next.make_tests();
                layer.push(next);
            }
        }
        for first in 1..followed {
            for (a, b) in layers[first].iter().flat_map(|a| layers[followed - first].iter().map(move |b| (a, b))) {
                let shared = a.progress.shared(&b.progress);
                if a.progress.atoms & b.progress.atoms != 0 || shared == 0 {
                    continue;
                }
                let current = [a.progress.current, b.progress.current].into_iter().find(|at| shared & 1 << at != 0);
                let mut next = copy(a);
                next.join(copy(b), current.unwrap_or(shared.trailing_zeros() as usize));
                next.make_tests();
                layer.push(next);
            }
        }
        layers.push(layer);
    }
    let whole = layers.pop().unwrap_or_default();
    whole.into_iter().map(|building| building.order).collect()
}

fn is_near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.max(b)
}

#[test]
fn the_cheapest_of_all_orders_is_found() {
    let mut numbers = Numbers(5);
    for round in 0..400 {
        let facts = independent(&mut numbers);
        let graph = random(&mut numbers, name, |numbers, from, to| match numbers.skewed(3, 1) {
            0 => (Direction::In, edge_label(to, from)),
            1 if from == to => (Direction::Both, edge_label(from, to)),
            _ => (Direction::Out, edge_label(from, to)),
        });
        let (found, cheapest) = costs(&graph, &facts);
        assert!(
            found <= cheapest || is_near(found, cheapest),
            "round {round}: found {found}, not {cheapest}: {graph:?}"
        );
    }
}

/// Where degrees are independent, the search also finds the cheapest of all orders with joins.
#[test]
fn the_cheapest_of_all_joins_is_found() {
    let mut numbers = Numbers(8);
    let (mut joined, mut looked_at) = (0, 0);
    while looked_at < 60 {
        let facts = independent(&mut numbers);
        let mut graph = random(&mut numbers, name, |_, from, to| (Direction::Out, edge_label(from, to)));
        // With circles, the estimates of an edge between two variables and of a join at both are not the same.
        if graph.atoms.len() > 4 || graph.atoms.len() >= graph.variables.len() {
            continue;
        }
        // Rows keep objects under names in every order.
        graph.reads_names = true;
        looked_at += 1;
        let estimator = Estimator::new(&graph, &facts);
        let Some((order, cost)) = search(&graph, &estimator, f64::INFINITY).order else { panic!("{graph:?}") };
        assert_whole(&graph, &order);
        joined += usize::from(!order.joined.is_empty());
        let of_all = every_tree(&graph).into_iter().map(|order| Tally::of(&graph, &estimator, &order).cost);
        let cheapest = of_all.fold(f64::INFINITY, f64::min);
        assert!(cost <= 1.001 * cheapest, "found {cost}, the cheapest costs {cheapest}: {order:?} of {graph:?}");
    }
    assert!(joined > 3, "{joined} of {looked_at} orders have joins");
}

/// Where degrees depend on one another, the rows that are expected depend on the order a little. So what is found may
/// cost more than the cheapest order. It rarely costs much more.
#[test]
fn near_the_cheapest_order_is_found_in_a_skewed_graph() {
    let mut numbers = Numbers(6);
    let mut far_off = 0;
    for round in 0..300 {
        let facts = network(1 + round % 4, 1 + (round % 4) as i32).facts();
        // Persons, posts and cities; edges lead from persons.
        let graph = random(
            &mut numbers,
            |label| estimates::LABELS[label].into(),
            |numbers, from, to| {
                let direction =
                    if from == 0 && (to > 0 || numbers.next() < 0.5) { Direction::Out } else { Direction::In };
                let label = match from.max(to) {
                    0 => 3,
                    1 => 4 + numbers.skewed(2, 1),
                    _ => 6,
                };
                (direction, label)
            },
        );
        let (found, cheapest) = costs(&graph, &facts);
        far_off += usize::from(found > 1.2 * cheapest);
    }
    assert!(far_off <= 3, "{far_off} of 300 orders cost much more than the cheapest");
}

#[test]
fn a_search_stops_at_its_bounds() {
    let facts = independent(&mut Numbers(7));
    let star = |edges: usize| {
        let atom = |to| Atom {
            from: 0,
            to,
            direction: Direction::Out,
            labels: vec![name(edge_label(0, to % LABELS))],
            conditions: Vec::new(),
            position: None,
        };
        QueryGraph {
            variables: vec![Variable::default(); edges + 1],
            atoms: (1..=edges).map(atom).collect(),
            tests: Vec::new(),
            sink: None,
            entry: None,
            has_late_conditions: false,
            may_name: true,
            reads_names: true,
            merges: false,
        }
    };
    // A star of eight edges has 1,024 pairs, and those of the orders that begin at its leaves. One of twelve has 24,576.
    let (eight, twelve) = (star(8), star(12));
    let estimator = Estimator::new(&eight, &facts);
    let Search { order, is_cut } = search(&eight, &estimator, f64::INFINITY);
    let cost = order.expect("all orders are looked at").1;
    assert!(!is_cut);
    // Only what costs less than the bound is found, and a low bound ends the search early.
    assert!(search(&eight, &estimator, 1.001 * cost).order.is_some());
    assert!(search(&eight, &estimator, cost).order.is_none());
    let Search { order, is_cut } = search(&twelve, &Estimator::new(&twelve, &facts), f64::INFINITY);
    assert!(is_cut && order.is_none());
}
