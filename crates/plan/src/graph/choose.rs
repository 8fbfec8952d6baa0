//! The choice of an order.
//!
//! From each of a few variables an order is built greedily: the next hop is the one that leaves the fewest rows, and a
//! test is made as soon as its variables are bound. The costs of these orders, and of the order in which the traversal
//! is written, are added up from the estimates. If all of these cost much ([`SEARCHED`]), all orders are looked at
//! (`exact.rs`). The cheapest order wins, but estimates may be off. So the written order stays if another one does not
//! save much ([`GAIN`]), or if the traversal is light ([`LIGHT`]). If the cheapest order is still expected to cost much, random
//! walks along it correct the estimates (`walks.rs`). If it then has another cost, the choice is made again.
//!
//! Ids are always the beginning. Without statistics, rows begin where the traversal begins.

use super::estimate::Estimator;
use super::exact::{self, Search};
use super::progress::{Building, Progress};
use super::tally::{self, Tally};
use super::walks::Walks;
use super::{Move, Order, QueryGraph};
use crate::facts::GraphFacts;

/// An order replaces the written one if that costs at least this many times as much.
pub(super) const GAIN: f64 = 1.5;
/// A written order that costs less, in nanoseconds, stays.
pub(super) const LIGHT: f64 = 100_000.0;
/// The most variables that greedy orders begin at.
const STARTS_MAX: usize = 6;
/// If the cheapest greedy order costs more, in nanoseconds, all orders are looked at.
const SEARCHED: f64 = 200_000.0;

/// Random walks along the chosen order may lead to another choice, at most so many times.
const ROUNDS_MAX: usize = 3;

/// They do so if the order costs this many times as much or as little as before.
const SURPRISE: f64 = 1.5;

/// The order that was chosen.
pub(super) struct Chosen {
    /// The order; `None`: the written one.
    pub order: Option<Order>,
    /// True if it is the written one.
    pub is_written: bool,
    /// True if the written one costs so little that nothing is changed.
    pub is_light: bool,
    /// What `explain()` says about it.
    pub shown: Option<String>,
    /// For `explain()`: the rows after each atom that it follows, as far as random walks have found them.
    pub rows: Vec<Option<f64>>,
}

/// The order in which the traversal is written.
pub(super) fn written(graph: &QueryGraph) -> Order {
    let mut building = Building::begin(graph, 0);
    for (atom, ends) in graph.atoms.iter().enumerate() {
        building.make_tests();
        let next = if building.progress.is_bound(ends.to) {
            Move::Close { atom, from: ends.from }
        } else {
            Move::Hop { atom, from: ends.from }
        };
        building.make(next);
    }
    building.make_tests();
    building.order
}

/// The cost of the written order, in nanoseconds.
pub(super) fn written_cost(graph: &QueryGraph, estimator: &Estimator<'_>) -> f64 {
    Tally::of(graph, estimator, &written(graph)).cost
}

/// The cost of the cheapest greedy order, in nanoseconds, or that of the written one, which is given, if that is less.
pub(super) fn greedy_cost(graph: &QueryGraph, estimator: &Estimator<'_>, as_written: f64) -> f64 {
    let best = greedy_best(graph, estimator, &starts(graph, estimator), true, as_written);
    best.map_or(as_written, |best| best.cost.min(as_written))
}

/// Returns true if an order costs less than a bound, in nanoseconds, though no greedy one does.
pub(super) fn has_order_below(graph: &QueryGraph, estimator: &Estimator<'_>, bound: f64) -> bool {
    bound > SEARCHED && exact::search(graph, estimator, &starts(graph, estimator), true, bound).order.is_some()
}

/// The cheapest order, as far as statistics tell. `is_shown`: `explain()` shows the rows that are expected of it.
/// `searches`: all orders may be looked at.
pub(super) fn cheapest(
    graph: &QueryGraph,
    estimator: &Estimator<'_>,
    facts: &GraphFacts,
    is_shown: bool,
    searches: bool,
) -> Chosen {
    let as_written = written(graph);
    let choose = || {
        let written_cost = Tally::of(graph, estimator, &as_written).cost;
        let bound = written_cost / GAIN;
        let best = if written_cost >= LIGHT { best(graph, estimator, bound, searches) } else { None };
        (written_cost, best.filter(|best| best.cost < bound && best.order != as_written))
    };
    let (mut written_cost, mut chosen) = choose();
    let cost = chosen.as_ref().map_or(written_cost, |best| best.cost);
    let mut walks = if searches { Walks::new(graph, estimator, facts, cost) } else { None };
    let has_walked = walks.is_some();
    if let Some(walks) = &mut walks {
        for _ in 0..ROUNDS_MAX {
            let best = chosen.as_ref().map_or(&as_written, |best| &best.order);
            let before = Tally::of(graph, estimator, best).cost;
            let is_new = walks.walk(best);
            let after = Tally::of(graph, estimator, best).cost;
            if !is_new || after.max(before) < SURPRISE * after.min(before) {
                break;
            }
            // Otherwise nothing would be learned of the next one, which only seems to be cheaper.
            walks.extend(after);
            (written_cost, chosen) = choose();
        }
    }
    let shown = is_shown.then(|| {
        let expected = |order: &Order| tally::rows_shown(graph, estimator, order);
        let before = expected(&as_written);
        match &chosen {
            Some(Best { order, is_cut, .. }) => {
                let by = match estimator.is_informed() {
                    true if has_walked => "by statistics and random walks",
                    true => "by statistics",
                    false => "without statistics",
                };
                let greedily = if *is_cut { ", greedily, since there are many orders" } else { "" };
                format!("{by}{greedily}; expected rows {}; as written {before}", expected(order))
            }
            None if !estimator.is_informed() => "as written, since there are no statistics yet".to_owned(),
            None => {
                let reason = match written_cost < LIGHT {
                    true => "it is light",
                    false if has_walked => "by random walks no other order would cost much less",
                    false => "no other order would cost much less",
                };
                format!("as written, since {reason}; expected rows {before}")
            }
        }
    });
    let order = chosen.as_ref().map_or(&as_written, |best| &best.order);
    let rows = if is_shown { rows_learned(graph, estimator, order) } else { Vec::new() };
    let is_light = written_cost < LIGHT;
    Chosen { is_written: chosen.is_none(), is_light, order: chosen.map(|best| best.order), shown, rows }
}

/// For each atom that an order follows, what walks have found of the rows after it. There is nothing about orders with
/// joins.
fn rows_learned(graph: &QueryGraph, estimator: &Estimator<'_>, order: &Order) -> Vec<Option<f64>> {
    if !order.joined.is_empty() {
        return Vec::new();
    }
    let mut progress = Progress::begin(graph, order.start);
    let follows = |next: &&Move| matches!(next, Move::Hop { .. } | Move::Close { .. });
    let after = order.moves.iter().filter(follows).map(|next| {
        progress.make(*next);
        estimator.learned.rows(progress.atoms)
    });
    after.collect()
}

/// The cheapest order that was found.
struct Best {
    order: Order,
    cost: f64,
    /// True if there are too many orders to look at all of them.
    is_cut: bool,
}

/// The cheapest of the greedy orders and, if these are costly, of all orders. Of the latter, only those that cost less
/// than `bound` matter.
fn best(graph: &QueryGraph, estimator: &Estimator<'_>, bound: f64, searches: bool) -> Option<Best> {
    let starts = starts(graph, estimator);
    let greedy = greedy_best(graph, estimator, &starts, graph.may_name, bound);
    let bound = greedy.as_ref().map_or(bound, |greedy| greedy.cost.min(bound));
    if !searches || bound <= SEARCHED {
        return greedy;
    }
    let Search { order, is_cut } = exact::search(graph, estimator, &starts, graph.may_name, bound);
    let found = order.map(|(order, cost)| Best { order, cost, is_cut });
    found.or(greedy.map(|greedy| Best { is_cut, ..greedy }))
}

/// The cheapest of the greedy orders, and at least of those that cost less than `bound`. `may_name`: rows may keep objects
/// under names.
fn greedy_best(
    graph: &QueryGraph,
    estimator: &Estimator<'_>,
    starts: &[usize],
    may_name: bool,
    bound: f64,
) -> Option<Best> {
    let mut best: Option<Best> = None;
    for &start in starts.iter().take(STARTS_MAX) {
        let bound = best.as_ref().map_or(bound, |best| best.cost.min(bound));
        let Some(order) = greedy(graph, estimator, start, bound) else { continue };
        if !may_name && order.reads_names(graph) {
            continue;
        }
        let cost = Tally::of(graph, estimator, &order).cost;
        if best.as_ref().is_none_or(|known| cost < known.cost) {
            best = Some(Best { order, cost, is_cut: false });
        }
    }
    best
}

/// An order that a seed chooses among all that are possible.
pub(super) fn at_random(graph: &QueryGraph, seed: u64) -> Chosen {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut below = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % bound.max(1) as u64) as usize
    };
    let start = pinned(graph).unwrap_or_else(|| below(graph.variables.len()));
    let mut building = Building::begin(graph, start);
    loop {
        if graph.entry.is_none()
            && below(4) == 0
            && let Some((other, at)) = random_walk(graph, &building.progress, &mut below)
        {
            building.join(other, at);
        }
        let moves: Vec<Move> = building.progress.hops().chain(building.progress.tests()).collect();
        if moves.is_empty() {
            break;
        }
        building.make(moves[below(moves.len())]);
    }
    let order = building.order;
    if !graph.may_name && order.reads_names(graph) {
        return Chosen { order: None, is_written: true, is_light: false, shown: None, rows: Vec::new() };
    }
    let shown = Some(format!("by seed {seed}"));
    Chosen { order: Some(order), is_written: false, is_light: false, shown, rows: Vec::new() }
}

/// A walk along atoms that another one has not followed, up to a variable that both have; `None` if it finds none.
fn random_walk<'g>(
    graph: &'g QueryGraph,
    other: &Progress<'g>,
    below: &mut impl FnMut(usize) -> usize,
) -> Option<(Building<'g>, usize)> {
    let start = below(graph.variables.len());
    let mut building = Building::begin(graph, start);
    building.make_tests();
    loop {
        let shared = building.progress.shared(other);
        let meets: Vec<usize> = (0..graph.variables.len()).filter(|variable| shared & 1 << *variable != 0).collect();
        if meets.iter().copied().any(|variable| graph.is_pinned(variable)) {
            return None;
        }
        let follows = |next: &Move| match next {
            Move::Hop { atom, .. } | Move::Close { atom, .. } => other.atoms & 1 << atom == 0,
            Move::Test(_) | Move::Join { .. } => false,
        };
        let hops: Vec<Move> = building.progress.hops().filter(follows).collect();
        if !meets.is_empty() && building.progress.atoms != 0 && (hops.is_empty() || below(2) == 0) {
            return Some((building, meets[below(meets.len())]));
        }
        if hops.is_empty() {
            return None;
        }
        building.make(hops[below(hops.len())]);
        building.make_tests();
    }
}

/// The variable that all orders begin at, if there is one.
fn pinned(graph: &QueryGraph) -> Option<usize> {
    (0..graph.variables.len()).find(|variable| graph.is_pinned(*variable))
}

/// The variables that rows may begin at, those with the fewest vertices first.
fn starts(graph: &QueryGraph, estimator: &Estimator<'_>) -> Vec<usize> {
    if let Some(pinned) = pinned(graph) {
        return vec![pinned];
    }
    if !estimator.is_informed() {
        return vec![0];
    }
    let mut all: Vec<(f64, usize)> = (0..graph.variables.len()).map(|at| (estimator.begin(at).rows, at)).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    all.into_iter().map(|(_, at)| at).collect()
}

/// The order from a variable in which each hop leaves as few rows as any that could be made; `None` if it costs more than
/// the bound.
fn greedy(graph: &QueryGraph, estimator: &Estimator<'_>, start: usize, bound: f64) -> Option<Order> {
    // Rows that need no names cost less: a neighbor as much as a quarter, and after the first hop equal ones are merged.
    let bound = 1.5 * bound;
    let mut tally = Tally::begin(graph, estimator, start, true);
    // Rows are not merged before the first hop.
    if !graph.atoms.is_empty() && tally.least_after_next() > bound {
        return None;
    }
    let moves = Vec::with_capacity(graph.atoms.len() + graph.tests.len());
    let mut order = Order { start, moves, joined: Vec::new() };
    loop {
        while let Some(test) = tally.progress.tests().next() {
            tally.make(test);
            order.moves.push(test);
        }
        let hops = tally.progress.hops().map(|hop| (tally.rows_after(hop), hop));
        let Some((_, next)) = hops.min_by(|a, b| a.0.total_cmp(&b.0)) else { break };
        tally.make(next);
        if tally.cost > bound && (order.moves.is_empty() || !graph.merges) {
            return None;
        }
        order.moves.push(next);
    }
    Some(order)
}

/// The results that are expected of the graph, worked off as it is written.
#[cfg(test)]
pub(super) fn expected_rows(graph: &QueryGraph, facts: &crate::facts::GraphFacts) -> f64 {
    let estimator = Estimator::new(graph, facts);
    Tally::of(graph, &estimator, &written(graph)).rows
}
