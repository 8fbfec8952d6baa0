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
//! looked at, the search ends without an order. It does so earlier if it would take more than a hundredth of the time that
//! it can save ([`PAIR`]), and more than some ten microseconds.
//!
//! Orders along a walk from one of its ends need no names, so they merge rows. They have other costs. There are only two
//! of them, and a join of both at each variable between the ends. These are looked at by themselves.
//!
//! Two walks that share a variable and no atom may be *joined*. So the rows of one need not be followed along the atoms of
//! the other. Joins are searched if the known order costs much and there are statistics: as the last step
//! ([`JOINED_AT_END`]), and if it costs more, anywhere ([`JOINED`]). Each point is compared with those that have the other
//! atoms of a larger point. The number of comparisons and of joins is bounded, as that of moves is. After the last one
//! the search goes on without joins.

use std::collections::HashMap;
use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

use super::estimate::Estimator;
use super::progress::{Building, Progress};
use super::tally::Tally;
use super::{Move, Order, QueryGraph};

/// The most pairs of a point and a next atom that are looked at, and the fewest after which a search ends early. These take
/// some ten microseconds.
pub(super) const PAIRS_MAX: usize = 4_096;
const PAIRS_MIN: usize = 128;

/// The cost of the known order in nanoseconds, for which one pair may be looked at. That takes about a hundredth as
/// long.
const PAIR: f64 = 10_000.0;

/// If the known order costs more, in nanoseconds, joins of any walks are searched, too.
const JOINED: f64 = 5_000_000.0;

/// If it costs more, the last step may be a join.
const JOINED_AT_END: f64 = 1_000_000.0;

/// The part of the pairs that may be looked at, which as many joins take about as long as.
const JOINS: usize = 8;

/// The cost of the known order in nanoseconds, for which two points may be compared. That takes about a hundredth as
/// long.
const COMPARED: f64 = 200.0;

/// The most comparisons.
const COMPARISONS_MAX: usize = 1 << 17;

/// The points that most searches reach.
const ENTRIES: usize = 64;

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
    last: Last,
}

/// The last thing that an order does before it reaches a point. Entries are given by their positions in the list of all.
#[derive(Clone, Copy)]
enum Last {
    /// It begins there.
    Begin,
    /// It goes on from an entry, and follows an atom.
    Made(usize, Move),
    /// Two entries are joined at a variable.
    Joined([usize; 2], usize),
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
    let pairs_max = ((bound / PAIR) as usize).clamp(PAIRS_MIN, PAIRS_MAX);
    let mut order = None;
    for straight in starts.iter().filter_map(|start| straight(graph, *start)) {
        let cost = Tally::of(graph, estimator, &straight).cost;
        if cost < bound {
            (order, bound) = (Some((straight, cost)), cost);
        }
    }
    // Both walks of a join begin at vertices of the graph, not at rows that enter.
    let joins = bound > JOINED_AT_END && estimator.is_informed() && graph.entry.is_none();
    if joins && let Some((joined, cost)) = join_of_walk(graph, estimator, bound) {
        (order, bound) = (Some((joined, cost)), cost);
    }
    if !may_name || graph.atoms.is_empty() {
        return Search { order, is_cut: false };
    }
    let (mut entries, mut pairs): (Vec<Entry<'_>>, usize) = (Vec::with_capacity(ENTRIES), 0);
    // A walk that is joined may begin where no order of all atoms can.
    let others = (0..graph.variables.len()).filter(|variable| joins && !starts.contains(variable));
    for start in starts.iter().copied().chain(others) {
        let mut tally = Tally::begin(graph, estimator, start, true);
        tally.make_tests();
        if tally.least_after_next() < bound {
            entries.push(Entry { tally, last: Last::Begin });
        }
    }
    let mut best = None;
    let mut points = Points::default();
    let mut layers: Vec<Range<usize>> = Vec::with_capacity(graph.atoms.len() + 1);
    layers.push(0..entries.len());
    let first_join = if bound > JOINED { 1 } else { graph.atoms.len() };
    let comparisons = if joins { COMPARISONS_MAX.min((bound / COMPARED) as usize) } else { 0 };
    let mut joins = Joins { left: pairs_max / JOINS, comparisons_left: comparisons };
    for followed in 1..=graph.atoms.len() {
        points.clear();
        for from in layers[followed - 1].clone() {
            if entries[from].tally.least_after_next() >= bound {
                continue;
            }
            for hop in entries[from].tally.progress.hops() {
                pairs += 1;
                if pairs > pairs_max {
                    return Search { order, is_cut: true };
                }
                let is_last = followed == graph.atoms.len();
                if !is_last && entries[from].tally.least_after(hop) >= bound {
                    continue;
                }
                let mut tally = entries[from].tally;
                if is_last {
                    end(&mut tally, hop);
                    if tally.cost < bound && (graph.reads_names || tally.progress.reads_names) {
                        (best, bound) = (Some(Last::Made(from, hop)), tally.cost);
                    }
                    continue;
                }
                tally.make(hop);
                tally.make_tests();
                if tally.cost >= bound {
                    continue;
                }
                keep(&tally, Last::Made(from, hop), &mut points, &mut entries);
            }
        }
        let most = if followed >= first_join { followed / 2 } else { 0 };
        for a in 1..=most {
            for first in layers[a].clone() {
                if joins.are_spent() {
                    break;
                }
                // Both layers may be the same one.
                let seconds = layers.get(followed - a).cloned().unwrap_or_default();
                for second in seconds.start.max(first + 1)..seconds.end {
                    let Some((mut tally, at)) = joins.join(&entries[first], &entries[second], bound) else { continue };
                    let last = Last::Joined([first, second], at);
                    if followed == graph.atoms.len() {
                        tally.leave();
                        if tally.cost < bound && (graph.reads_names || tally.progress.reads_names) {
                            (best, bound) = (Some(last), tally.cost);
                        }
                    } else if tally.cost < bound {
                        keep(&tally, last, &mut points, &mut entries);
                    }
                }
            }
        }
        layers.push(layers[followed - 1].end..entries.len());
    }
    let order = best.map(|last| (order_to(graph, &entries, last), bound)).or(order);
    Search { order, is_cut: false }
}

/// The entry of each point of a layer.
type Points = HashMap<u64, usize, BuildHasherDefault<OfPoint>>;

/// Keeps an order, if no cheaper one reaches the same point.
fn keep<'g>(tally: &Tally<'g>, last: Last, points: &mut Points, entries: &mut Vec<Entry<'g>>) {
    match points.entry(point(&tally.progress)) {
        Vacant(free) => {
            free.insert(entries.len());
            entries.push(Entry { tally: *tally, last });
        }
        Occupied(known) => {
            let known = &mut entries[*known.get()];
            if tally.cost < known.tally.cost {
                *known = Entry { tally: *tally, last };
            }
        }
    }
}

/// How many joins may still be estimated, and how many pairs of entries may be compared for that.
struct Joins {
    left: usize,
    comparisons_left: usize,
}

impl Joins {
    /// Returns true if no further join may be looked at.
    fn are_spent(&self) -> bool {
        self.left == 0 || self.comparisons_left == 0
    }

    /// Joins the rows of two entries, if they can be joined and that may cost less than `bound`; also returns the variable
    /// at which they are joined.
    fn join<'g>(&mut self, first: &Entry<'g>, second: &Entry<'g>, bound: f64) -> Option<(Tally<'g>, usize)> {
        self.comparisons_left = self.comparisons_left.checked_sub(1)?;
        let (here, there) = (&first.tally.progress, &second.tally.progress);
        let shared = here.shared(there);
        if here.atoms & there.atoms != 0 || shared == 0 || first.tally.cost + second.tally.cost >= bound {
            return None;
        }
        // Ids are no condition by which the other walk could find the same vertices.
        if (0..here.graph.variables.len()).any(|at| here.graph.is_pinned(at) && shared & 1 << at != 0) {
            return None;
        }
        self.left = self.left.checked_sub(1)?;
        let is_shared = |variable: &usize| shared & 1 << *variable != 0;
        let at = [here.current, there.current].into_iter().find(is_shared).unwrap_or(shared.trailing_zeros() as usize);
        let mut tally = first.tally;
        tally.join(second.tally, at);
        tally.make_tests();
        Some((tally, at))
    }
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

/// The order that reaches a point in this way.
fn order_to(graph: &QueryGraph, entries: &[Entry<'_>], last: Last) -> Order {
    built(graph, entries, last, 0).order
}

/// As [`order_to`]; `begin` is the variable of an order that begins at the point.
fn built<'g>(graph: &'g QueryGraph, entries: &[Entry<'_>], last: Last, begin: usize) -> Building<'g> {
    let to = |entry: usize| {
        let Entry { tally, last } = &entries[entry];
        built(graph, entries, *last, tally.progress.current)
    };
    let mut building = match last {
        Last::Begin => Building::begin(graph, begin),
        Last::Made(from, next) => {
            let mut building = to(from);
            building.make(next);
            building
        }
        Last::Joined([first, second], at) => {
            let mut building = to(first);
            building.join(to(second), at);
            building
        }
    };
    building.make_tests();
    building
}

/// If the graph is one walk: the cheapest join of its two directions, at a variable between its ends, that needs no names.
/// Also returns its cost, which is less than the bound.
fn join_of_walk(graph: &QueryGraph, estimator: &Estimator<'_>, bound: f64) -> Option<(Order, f64)> {
    let atoms_of =
        |variable: usize| graph.atoms.iter().filter(move |atom| atom.from == variable || atom.to == variable);
    let count = graph.variables.len();
    let ends: Vec<usize> = (0..count).filter(|variable| atoms_of(*variable).count() == 1).collect();
    let [first, second] = ends[..] else { return None };
    let is_walk = (0..count).all(|variable| atoms_of(variable).count() <= 2) && graph.atoms.len() + 1 == count;
    let begins_between = (0..count).any(|at| graph.is_pinned(at) && !ends.contains(&at));
    if graph.reads_names || !is_walk || begins_between {
        return None;
    }
    let (there, back) = (between(graph, estimator, first)?, between(graph, estimator, second)?);
    let (mut best, mut bound) = (None, bound);
    for (tally, other) in there.iter().zip(back.iter().rev()) {
        let at = tally.progress.current;
        debug_assert_eq!(at, other.progress.current);
        let mut tally = *tally;
        tally.join(*other, at);
        tally.make_tests();
        tally.leave();
        if tally.cost < bound && !tally.progress.reads_names {
            (best, bound) = (Some(at), tally.cost);
        }
    }
    let at = best?;
    let mut building = straight_to(graph, first, at)?;
    building.join(straight_to(graph, second, at)?, at);
    building.make_tests();
    Some((building.order, bound))
}

/// The tallies at each variable between the ends of a walk that begins at one of them, without names; `None` if rows go
/// back on the way.
fn between<'g>(graph: &'g QueryGraph, estimator: &'g Estimator<'g>, end: usize) -> Option<Vec<Tally<'g>>> {
    let mut tally = Tally::begin(graph, estimator, end, false);
    tally.make_tests();
    let mut tallies = Vec::with_capacity(graph.atoms.len());
    for _ in 1..graph.atoms.len() {
        tally.make(hop_on(&tally.progress)?);
        tally.make_tests();
        if tally.progress.reads_names {
            return None;
        }
        tallies.push(tally);
    }
    Some(tallies)
}

/// The hop from where rows are.
fn hop_on(progress: &Progress<'_>) -> Option<Move> {
    progress.hops().find(|hop| matches!(hop, Move::Hop { from, .. } if *from == progress.current))
}

/// The order that goes straight on from the end of a walk to one of its variables.
fn straight_to(graph: &QueryGraph, start: usize, until: usize) -> Option<Building<'_>> {
    let mut building = Building::begin(graph, start);
    building.make_tests();
    while building.progress.current != until {
        let hop = hop_on(&building.progress)?;
        building.make(hop);
        building.make_tests();
    }
    Some(building)
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
    let is_whole = building.progress.atoms.count_ones() as usize == graph.atoms.len();
    (is_whole && !graph.reads_names && !building.order.reads_names(graph)).then_some(building.order)
}
