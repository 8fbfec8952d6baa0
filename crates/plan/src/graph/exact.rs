//! The cheapest of all orders, by dynamic programming.
//!
//! What an order costs from a point on depends on little of what was done before: on the set of atoms that were
//! followed, and on the variable that rows are at. Such a set with such a variable is a *point*. Of all orders that reach
//! one point, the search keeps the cheapest. So a star of nine hops has some hundred points, and some hundred thousand orders. Tests are made as soon as their
//! variables are bound, so the atoms say which of them were made.
//!
//! Two things are approximated. All orders that reach one point have the same rows there. Yet the estimator may expect
//! slightly different numbers of rows, if the orders begin at different variables. The search keeps the number of the
//! cheaper order. It also keeps where that order expects the rows, with which degrees.
//!
//! An order that costs as much as one that is known is not followed further. If more than [`PAIRS_MAX`] moves would be
//! looked at, the search ends without an order. It does so earlier if it would take a tenth of the time that it can
//! save ([`PAIR`]).
//!
//! Orders along a walk from one of its ends need no names, so they merge rows. They have other costs. There are only two
//! of them, which are looked at by themselves.

use std::collections::HashMap;
use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::hash::{BuildHasherDefault, Hasher};

use super::estimate::Estimator;
use super::progress::{Building, Progress};
use super::tally::Tally;
use super::{Move, Order, QueryGraph};

/// The most pairs of a point and a next atom that are looked at.
pub(super) const PAIRS_MAX: usize = 4_096;

/// The cost of the known order in nanoseconds, for which one pair may be looked at. That takes about a tenth as long.
const PAIR: f64 = 1_000.0;

/// What a search found.
pub(super) struct Search {
    /// The cheapest order that costs less than the bound, and its cost.
    pub order: Option<(Order, f64)>,
    /// True if the search ended early.
    pub is_cut: bool,
}

/// An order up to a point.
struct Entry<'g> {
    tally: Tally<'g>,
    /// The entry that it goes on from, and the move that follows an atom from there; `None` at its beginning.
    last: Option<(usize, Move)>,
}

/// Looks for the cheapest order that begins at one of the variables and costs less than a bound. `may_name`: rows may
/// keep objects under names.
pub(super) fn search(
    graph: &QueryGraph,
    estimator: &Estimator<'_>,
    starts: &[usize],
    may_name: bool,
    mut bound: f64,
) -> Search {
    let pairs_max = PAIRS_MAX.min((bound / PAIR) as usize);
    let mut order = None;
    for straight in starts.iter().filter_map(|start| straight(graph, *start)) {
        let cost = Tally::of(graph, estimator, &straight).cost;
        if cost < bound {
            (order, bound) = (Some((straight, cost)), cost);
        }
    }
    if !may_name || graph.atoms.is_empty() {
        return Search { order, is_cut: false };
    }
    let (mut entries, mut pairs): (Vec<Entry<'_>>, usize) = (Vec::new(), 0);
    for &start in starts {
        let mut tally = Tally::begin(graph, estimator, start, true);
        tally.make_tests();
        if tally.cost < bound {
            entries.push(Entry { tally, last: None });
        }
    }
    let mut best = None;
    let mut points: HashMap<u64, usize, BuildHasherDefault<OfPoint>> = HashMap::default();
    let mut layer = 0..entries.len();
    for followed in 1..=graph.atoms.len() {
        points.clear();
        for from in layer.clone() {
            for hop in entries[from].tally.progress.hops() {
                pairs += 1;
                if pairs > pairs_max {
                    return Search { order, is_cut: true };
                }
                let mut tally = entries[from].tally;
                if followed == graph.atoms.len() {
                    end(&mut tally, hop);
                    if tally.cost < bound && (graph.reads_names || tally.progress.reads_names) {
                        (best, bound) = (Some((from, hop)), tally.cost);
                    }
                    continue;
                }
                tally.make(hop);
                tally.make_tests();
                if tally.cost >= bound {
                    continue;
                }
                let entry = Entry { tally, last: Some((from, hop)) };
                match points.entry(point(&entry.tally.progress)) {
                    Vacant(free) => {
                        free.insert(entries.len());
                        entries.push(entry);
                    }
                    Occupied(known) => {
                        let known = &mut entries[*known.get()];
                        if entry.tally.cost < known.tally.cost {
                            *known = entry;
                        }
                    }
                }
            }
        }
        layer = layer.end..entries.len();
    }
    let order = best.map(|(from, hop)| (order_to(graph, &entries, from, hop), bound)).or(order);
    Search { order, is_cut: false }
}

/// Follows the last atom of an order, and makes the tests that are left.
fn end(tally: &mut Tally<'_>, last: Move) {
    let mut after = tally.progress;
    after.make(last);
    if after.tests().next().is_some() {
        tally.make(last);
        tally.make_tests();
    } else {
        tally.make_last(last);
    }
    tally.leave();
}

/// What the cost of the rest of an order depends on, as a number.
fn point(progress: &Progress<'_>) -> u64 {
    let graph = progress.graph;
    let is_left = |atom: usize| progress.atoms & 1 << atom == 0;
    // Rows that nothing more is done with where they are may as well be elsewhere.
    let current = progress.current;
    let mut atoms = graph.atoms.iter().enumerate();
    let mut tests = graph.tests.iter().enumerate();
    let is_used = graph.sink == Some(current)
        || atoms.any(|(at, atom)| is_left(at) && (atom.from == current || atom.to == current))
        || tests.any(|(at, test)| progress.tests & 1 << at == 0 && test.reads & 1 << current != 0);
    let place = if is_used { current as u64 + 1 } else { 0 };
    let needs_names = u64::from(graph.reads_names || progress.reads_names);
    u64::from(progress.atoms) | place << 32 | needs_names << 63
}

/// Hashes a point with one multiplication. A search has few points, and no client chooses their numbers, so this need
/// not withstand collisions that are made on purpose.
#[derive(Default)]
struct OfPoint(u64);

impl Hasher for OfPoint {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, point: u64) {
        self.0 = (self.0 ^ point).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

/// The order that ends with a move after an entry.
fn order_to(graph: &QueryGraph, entries: &[Entry<'_>], from: usize, last: Move) -> Order {
    let mut moves = vec![last];
    let mut at = from;
    while let Some((before, hop)) = entries[at].last {
        moves.push(hop);
        at = before;
    }
    let mut building = Building::begin(graph, entries[at].tally.progress.current);
    building.make_tests();
    for next in moves.into_iter().rev() {
        building.make(next);
        building.make_tests();
    }
    building.order
}

/// The order that goes on from where it is until the end, if there is one from a variable.
fn straight(graph: &QueryGraph, start: usize) -> Option<Order> {
    let mut building = Building::begin(graph, start);
    loop {
        building.make_tests();
        let mut hops = building.progress.hops();
        match (hops.next(), hops.next()) {
            (None, _) => break,
            (Some(hop @ Move::Hop { from, .. }), None) if from == building.progress.current => building.make(hop),
            _ => return None,
        }
    }
    (!graph.reads_names && !building.order.reads_names(graph)).then_some(building.order)
}
