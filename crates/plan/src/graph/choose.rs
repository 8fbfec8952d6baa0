//! The choice of an order.
//!
//! From each of a few variables an order is built greedily: the next hop is the one that leaves the fewest rows, and a
//! test is made as soon as its variables are bound. The costs of these orders, and of the order in which the traversal
//! is written, are added up from the estimates. The cheapest order wins, but estimates may be off. So the written order
//! stays if another one does not save much ([`GAIN`]), or if the traversal is light ([`LIGHT`]).
//!
//! Ids are always the beginning. Without statistics, rows begin where the traversal begins.

use super::estimate::{Estimator, Whereabouts};
use super::{Move, Order, QueryGraph, Set, TestKind};
use crate::facts::GraphFacts;
use crate::logical::Condition;

/// An order replaces the written one if that costs at least this many times as much.
pub(super) const GAIN: f64 = 1.5;
/// A written order that costs less, in nanoseconds, stays.
pub(super) const LIGHT: f64 = 100_000.0;
/// The most variables that rows may begin at which are tried.
const STARTS_MAX: usize = 6;

/// The costs of operators for a row, in nanoseconds. `profile()` shows them on one thread, for rows that are scattered
/// over the graph.
mod cost {
    pub const SCAN: f64 = 1.0;
    pub const LOOK_UP: f64 = 300.0;
    pub const EXPAND: f64 = 50.0;
    pub const NEIGHBOR: f64 = 8.0;
    /// More for a neighbor, if rows carry objects under names.
    pub const NAMES: f64 = 6.0;
    pub const LABEL: f64 = 20.0;
    pub const PROPERTY: f64 = 40.0;
    pub const SELECT: f64 = 4.0;
    pub const CLOSE: f64 = 90.0;
    pub const DIFFERS: f64 = 5.0;
    pub const TEST: f64 = 120.0;
    pub const MERGE: f64 = 15.0;
    pub const DEGREE: f64 = 30.0;
}

/// The part of the rows that a test is taken to leave.
const TESTED: f64 = 0.5;

/// The order that was chosen.
pub(super) struct Chosen {
    /// The order; `None`: the written one.
    pub order: Option<Order>,
    /// True if it is the written one.
    pub is_written: bool,
    /// What `explain()` says about it.
    pub shown: Option<String>,
}

/// The order in which the traversal is written.
pub(super) fn written(graph: &QueryGraph) -> Order {
    let mut progress = Progress::begin(graph, 0);
    for (atom, ends) in graph.atoms.iter().enumerate() {
        progress.make_tests();
        let next = if progress.is_bound(ends.to) {
            Move::Close { atom, from: ends.from }
        } else {
            Move::Hop { atom, from: ends.from }
        };
        progress.make(next);
    }
    progress.make_tests();
    progress.order
}

/// The cost of the cheapest order in nanoseconds.
pub(super) fn cheapest_cost(graph: &QueryGraph, estimator: &Estimator<'_>) -> f64 {
    let orders = starts(graph, estimator).into_iter().map(|start| greedy(graph, estimator, start));
    let costs = orders.chain([written(graph)]).map(|order| Tally::of(graph, estimator, &order).cost);
    costs.fold(f64::INFINITY, f64::min)
}

/// The cheapest order, as far as statistics tell.
pub(super) fn cheapest(graph: &QueryGraph, facts: &GraphFacts) -> Chosen {
    let estimator = Estimator::new(graph, facts);
    let as_written = written(graph);
    let written_cost = Tally::of(graph, &estimator, &as_written);
    let mut best: Option<(Order, Tally<'_>)> = None;
    if written_cost.cost >= LIGHT {
        for start in starts(graph, &estimator) {
            let order = greedy(graph, &estimator, start);
            if !graph.may_name && order.reads_names(graph) {
                continue;
            }
            let tally = Tally::of(graph, &estimator, &order);
            if best.as_ref().is_none_or(|(_, known)| tally.cost < known.cost) {
                best = Some((order, tally));
            }
        }
    }
    let by = if estimator.is_informed() { "by statistics" } else { "without statistics" };
    match best {
        Some((order, tally)) if tally.cost * GAIN < written_cost.cost && order != as_written => {
            let (rows, before) = (tally.shown(), written_cost.shown());
            let shown = Some(format!("{by}; expected rows {rows}; as written {before}"));
            Chosen { order: Some(order), is_written: false, shown }
        }
        _ => {
            let shown = match estimator.is_informed() {
                false => "as written, since there are no statistics yet".to_owned(),
                true => {
                    let is_light = written_cost.cost < LIGHT;
                    let reason = if is_light { "it is light" } else { "no other order would cost much less" };
                    format!("as written, since {reason}; expected rows {}", written_cost.shown())
                }
            };
            Chosen { order: None, is_written: true, shown: Some(shown) }
        }
    }
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
    let mut progress = Progress::begin(graph, start);
    loop {
        let mut moves: Vec<Move> = progress.hops();
        moves.extend(progress.tests());
        if moves.is_empty() {
            break;
        }
        progress.make(moves[below(moves.len())]);
    }
    let order = progress.order;
    if !graph.may_name && order.reads_names(graph) {
        return Chosen { order: None, is_written: true, shown: None };
    }
    Chosen { order: Some(order), is_written: false, shown: Some(format!("by seed {seed}")) }
}

/// The variable whose ids the traversal names.
fn pinned(graph: &QueryGraph) -> Option<usize> {
    graph.variables.iter().position(|variable| variable.ids.is_some())
}

/// The variables that rows may begin at, those with the fewest vertices first.
fn starts(graph: &QueryGraph, estimator: &Estimator<'_>) -> Vec<usize> {
    if let Some(pinned) = pinned(graph) {
        return vec![pinned];
    }
    if !estimator.is_informed() {
        return vec![0];
    }
    let mut all: Vec<(f64, usize)> = (0..graph.variables.len()).map(|at| (estimator.begin(at).1, at)).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    all.into_iter().take(STARTS_MAX).map(|(_, at)| at).collect()
}

/// The order from a variable in which each hop leaves as few rows as any that could be made.
fn greedy(graph: &QueryGraph, estimator: &Estimator<'_>, start: usize) -> Order {
    let mut progress = Progress::begin(graph, start);
    let mut tally = Tally::begin(graph, estimator, start, true);
    loop {
        while let Some(test) = progress.tests().next() {
            tally.make(test);
            progress.make(test);
        }
        let hops = progress.hops().into_iter().map(|hop| (tally.rows_after(hop), hop));
        let Some((_, next)) = hops.min_by(|a, b| a.0.total_cmp(&b.0)) else { break };
        tally.make(next);
        progress.make(next);
    }
    progress.order
}

/// How far an order has come.
struct Progress<'g> {
    graph: &'g QueryGraph,
    order: Order,
    bound: Set,
    atoms: Set,
    tests: Set,
}

impl<'g> Progress<'g> {
    fn begin(graph: &'g QueryGraph, start: usize) -> Self {
        Progress { graph, order: Order { start, moves: Vec::new() }, bound: 1 << start, atoms: 0, tests: 0 }
    }

    fn is_bound(&self, variable: usize) -> bool {
        self.bound & 1 << variable != 0
    }

    fn make(&mut self, next: Move) {
        match next {
            Move::Hop { atom, from } => {
                self.bound |= 1 << self.graph.atoms[atom].other(from);
                self.atoms |= 1 << atom;
            }
            Move::Close { atom, .. } => self.atoms |= 1 << atom,
            Move::Test(test) => self.tests |= 1 << test,
        }
        self.order.moves.push(next);
    }

    /// The hops that can be made next.
    fn hops(&self) -> Vec<Move> {
        let current = self.order.moves.iter().rev().find_map(|step| match *step {
            Move::Hop { atom, from } | Move::Close { atom, from } => Some(self.graph.atoms[atom].other(from)),
            Move::Test(_) => None,
        });
        let current = current.unwrap_or(self.order.start);
        let mut hops = Vec::new();
        for (atom, ends) in self.graph.atoms.iter().enumerate().filter(|(atom, _)| self.atoms & 1 << atom == 0) {
            match (self.is_bound(ends.from), self.is_bound(ends.to)) {
                // The rows stay where they are, if they are at an end.
                (true, true) => {
                    hops.push(Move::Close { atom, from: if ends.to == current { ends.to } else { ends.from } })
                }
                (true, false) => hops.push(Move::Hop { atom, from: ends.from }),
                (false, true) => hops.push(Move::Hop { atom, from: ends.to }),
                (false, false) => {}
            }
        }
        hops
    }

    /// The tests whose variables are bound.
    fn tests(&self) -> impl Iterator<Item = Move> + use<'g> {
        let (bound, made) = (self.bound, self.tests);
        let graph: &'g QueryGraph = self.graph;
        let ready = graph.tests.iter().enumerate();
        ready.filter(move |(at, test)| made & 1 << at == 0 && test.reads & !bound == 0).map(|(at, _)| Move::Test(at))
    }

    fn make_tests(&mut self) {
        while let Some(test) = self.tests().next() {
            self.make(test);
        }
    }
}

/// The estimated rows and costs of an order.
#[derive(Clone)]
pub(super) struct Tally<'g> {
    graph: &'g QueryGraph,
    estimator: &'g Estimator<'g>,
    at: Vec<Whereabouts>,
    current: usize,
    /// The rows, counted by their bulks.
    rows: f64,
    /// The rows, with equal ones merged.
    pub held: f64,
    /// As `held`, before the conditions of the vertices that the last hop led to.
    pub neighbors: f64,
    cost: f64,
    hops: usize,
    /// True if rows carry objects under names. Then equal ones are not merged.
    names: bool,
    /// The rows after each hop.
    after: Vec<f64>,
}

impl<'g> Tally<'g> {
    /// Begins at a variable. `names`: rows carry objects under names.
    pub fn begin(graph: &'g QueryGraph, estimator: &'g Estimator<'g>, start: usize, names: bool) -> Self {
        let (scanned, rows, whereabouts) = estimator.begin(start);
        let others = graph.variables[start].conditions.iter().filter(|c| !matches!(c, Condition::LabelIn(_))).count();
        let cost = if estimator.is_found(start) {
            rows * cost::LOOK_UP
        } else {
            scanned * (cost::SCAN + others as f64 * cost::PROPERTY / 4.0)
        };
        let mut at = vec![Whereabouts::default(); graph.variables.len()];
        at[start] = whereabouts;
        let (held, neighbors) = (rows, rows);
        Tally { graph, estimator, at, current: start, rows, held, neighbors, cost, hops: 0, names, after: vec![rows] }
    }

    /// The estimate of a whole order.
    fn of(graph: &'g QueryGraph, estimator: &'g Estimator<'g>, order: &Order) -> Self {
        let names = graph.reads_names || order.reads_names(graph);
        let mut tally = Tally::begin(graph, estimator, order.start, names);
        let (last, moves) = order.moves.split_last().map_or((None, &[][..]), |(last, moves)| (Some(*last), moves));
        moves.iter().for_each(|next| tally.make(*next));
        match last {
            // The last hop is only counted.
            Some(Move::Hop { atom, from })
                if graph.sink.is_none()
                    && graph.merges
                    && graph.variables[graph.atoms[atom].other(from)].conditions.is_empty() =>
            {
                let before = tally.clone();
                tally.make(Move::Hop { atom, from });
                tally.cost = before.cost + before.held * cost::DEGREE;
            }
            Some(last) => tally.make(last),
            None => {}
        }
        if let Some(sink) = graph.sink {
            tally.go_to(sink);
        }
        tally
    }

    fn go_to(&mut self, variable: usize) {
        if self.current != variable {
            self.cost += self.held * cost::SELECT;
            self.current = variable;
        }
    }

    /// Makes a move.
    pub fn make(&mut self, next: Move) {
        match next {
            Move::Hop { atom, from } => self.hop(atom, from),
            Move::Close { atom, from } => {
                self.go_to(from);
                let ends = &self.graph.atoms[atom];
                let to = ends.other(from);
                let edges = self.estimator.close(atom, ends.direction_from(from), &self.at[from], &self.at[to]);
                self.cost += self.held * cost::CLOSE;
                self.rows *= edges;
                self.held *= edges;
                self.current = to;
                self.after.push(self.rows);
            }
            Move::Test(test) => {
                let (of, each, left) = match self.graph.tests[test].kind {
                    TestKind::Differ(a, b) => (Some(if self.current == b { b } else { a }), cost::DIFFERS, 1.0),
                    TestKind::Step(_, of) => (of, cost::TEST, TESTED),
                };
                of.into_iter().for_each(|of| self.go_to(of));
                self.cost += self.held * each;
                self.rows *= left;
                self.held *= left;
            }
        }
    }

    /// The rows after a hop. Of equal ones, that which goes on from where the rows are has the fewest.
    fn rows_after(&self, next: Move) -> f64 {
        let (atom, from, is_hop) = match next {
            Move::Hop { atom, from } => (atom, from, true),
            Move::Close { atom, from } => (atom, from, false),
            Move::Test(_) => return self.rows,
        };
        let ends = &self.graph.atoms[atom];
        let (to, direction) = (ends.other(from), ends.direction_from(from));
        let each = match is_hop {
            true => self.estimator.hop(atom, direction, to, &mut self.at[from].clone()).rows,
            false => self.estimator.close(atom, direction, &self.at[from], &self.at[to]),
        };
        self.rows * each * if from == self.current { 1.0 } else { 1.02 }
    }

    fn hop(&mut self, atom: usize, from: usize) {
        self.go_to(from);
        if self.graph.merges && !self.names && self.hops > 0 {
            self.cost += self.held * cost::MERGE;
            self.held = self.at[from].distinct(self.held);
        }
        let ends = &self.graph.atoms[atom];
        let to = ends.other(from);
        let hop = self.estimator.hop(atom, ends.direction_from(from), to, &mut self.at[from]);
        // Merged rows are at each vertex once, however many edges lead there.
        let each = if self.held < 0.99 * self.rows { hop.plain.min(hop.neighbors) } else { hop.neighbors };
        let neighbors = self.held * each;
        let of_neighbor = cost::NEIGHBOR + if self.names { cost::NAMES } else { 0.0 };
        let tested: f64 = self.graph.variables[to].conditions.iter().map(cost_of).sum();
        self.cost += self.held * cost::EXPAND + neighbors * (of_neighbor + tested);
        self.rows *= hop.rows;
        self.neighbors = neighbors;
        self.held = neighbors * (hop.rows / hop.neighbors.max(f64::MIN_POSITIVE)).min(1.0);
        self.at[to] = hop.end;
        self.current = to;
        self.hops += 1;
        self.after.push(self.rows);
    }

    /// The rows after each hop, for `explain()`.
    fn shown(&self) -> String {
        self.after.iter().map(|rows| format!("{rows:.0}")).collect::<Vec<_>>().join(", ")
    }
}

fn cost_of(condition: &Condition) -> f64 {
    match condition {
        Condition::LabelIn(_) | Condition::Label(_) => cost::LABEL,
        _ => cost::PROPERTY,
    }
}

/// The results that are expected of the graph, worked off as it is written.
#[cfg(test)]
pub(super) fn expected_rows(graph: &QueryGraph, facts: &GraphFacts) -> f64 {
    let estimator = Estimator::new(graph, facts);
    Tally::of(graph, &estimator, &written(graph)).rows
}
