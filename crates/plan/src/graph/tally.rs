//! The rows that an order is expected to make, and what they cost.

use std::fmt::Write;

use mangrove_graph::Direction;

use super::estimate::{Beginning, Estimator, Place};
use super::filters::FilterCost;
use super::progress::Progress;
use super::{MEMBERS_MAX, Move, Order, QueryGraph};
use crate::logical::Condition;

/// The costs of operators for a row, in nanoseconds. `profile()` shows them on one thread, for rows that are scattered
/// over the graph. Those that end in `NEAR` are for rows that are merged and at many vertices of each page
/// ([`NEAR_PART`]): these come in the order of pages.
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
    /// For an edge that has met its conditions, and leads to its end.
    pub const EDGE_END: f64 = 10.0;
    pub const DIFFERS: f64 = 5.0;
    pub const MERGE: f64 = 15.0;
    pub const DEGREE: f64 = 30.0;
    pub const MERGE_NEAR: f64 = 5.0;
    pub const EXPAND_NEAR: f64 = 20.0;
    pub const NEIGHBOR_NEAR: f64 = 4.0;
    pub const DEGREE_NEAR: f64 = 10.0;
    /// For a row that a join holds. One thread joins all rows, while threads share other operators. So these costs count
    /// twice.
    pub const HOLD: f64 = 60.0;
    /// More for one that is in its table.
    pub const ENTER: f64 = 200.0;
    /// More for one that is looked up there.
    pub const PROBE: f64 = 120.0;
    /// For a row that it makes, whose columns are gathered from both walks.
    pub const PAIR: f64 = 40.0;
}

/// If merged rows are at more than this part of the vertices that a variable may be, most of them have neighbors in their
/// page.
const NEAR_PART: f64 = 1.0 / 32.0;

/// Rows after equal ones were merged.
struct Merged {
    rows: f64,
    /// True if they are at many vertices of each page.
    is_near: bool,
}

/// The most rows that a join is expected to hold. Each takes some forty bytes. Other operators pass rows on.
const JOINED_ROWS_MAX: f64 = 4e6;

/// The estimated rows and costs of an order, as far as it has come.
#[derive(Clone, Copy)]
pub(super) struct Tally<'g> {
    pub progress: Progress<'g>,
    estimator: &'g Estimator<'g>,
    /// For each variable that is bound, where its rows are.
    at: [Place; MEMBERS_MAX],
    /// The rows, counted by their bulks.
    pub rows: f64,
    /// The rows, with equal ones merged.
    pub held: f64,
    /// As `held`, before the conditions of the vertices that the last hop led to.
    pub neighbors: f64,
    /// As `neighbors`, before the conditions of the edges that the last hop followed.
    pub followed: f64,
    /// The cost in nanoseconds. No move makes it less.
    pub cost: f64,
    /// True if rows carry objects under names. Then equal ones are not merged.
    names: bool,
}

impl<'g> Tally<'g> {
    /// Begins at a variable. `names`: rows carry objects under names.
    pub fn begin(graph: &'g QueryGraph, estimator: &'g Estimator<'g>, start: usize, names: bool) -> Self {
        let Beginning { scanned, rows, place } = estimator.begin(start);
        let others = graph.variables[start].conditions.iter().filter(|c| !matches!(c, Condition::LabelIn(_))).count();
        let cost = if graph.entry.is_some() {
            rows * others as f64 * cost::PROPERTY
        } else if estimator.is_found(start) {
            rows * cost::LOOK_UP
        } else {
            scanned * (cost::SCAN + others as f64 * cost::PROPERTY / 4.0)
        };
        let mut at = [Place::default(); MEMBERS_MAX];
        at[start] = place;
        let progress = Progress::begin(graph, start);
        Tally { progress, estimator, at, rows, held: rows, neighbors: rows, followed: rows, cost, names }
    }

    /// The estimate of a whole order.
    pub fn of(graph: &'g QueryGraph, estimator: &'g Estimator<'g>, order: &Order) -> Self {
        let names = graph.reads_names || order.reads_names(graph);
        let mut tally = Tally::begin(graph, estimator, order.start, names);
        if let Some((last, moves)) = order.moves.split_last() {
            tally.follow(moves, &order.joined);
            match last {
                Move::Join { .. } => tally.follow(&[*last], &order.joined),
                _ => tally.make_last(*last),
            }
        }
        tally.leave();
        tally
    }

    /// Makes moves of an order with these joined walks.
    fn follow(&mut self, moves: &[Move], joined: &[Order]) {
        for next in moves {
            match *next {
                Move::Join { walk, at } => {
                    let order = &joined[walk];
                    let mut other = Tally::begin(self.progress.graph, self.estimator, order.start, self.names);
                    other.follow(&order.moves, &order.joined);
                    self.join(other, at);
                }
                next => self.make(next),
            }
        }
    }

    /// Joins the rows of another walk, at a variable that both have.
    pub fn join(&mut self, mut other: Self, at: usize) {
        let shared = self.progress.shared(&other.progress);
        for walk in [&mut *self, &mut other] {
            let goes_back = walk.progress.go_to(at);
            walk.select(goes_back);
            if walk.progress.graph.merges && !walk.names && walk.progress.atoms != 0 {
                walk.cost += walk.held * cost::MERGE;
                walk.held = walk.estimator.distinct(walk.at[at], walk.held);
            }
        }
        let estimator = self.estimator;
        // The part of all pairs of rows that are at the same vertices.
        let mut meeting = 1.0;
        for variable in (0..MEMBERS_MAX).filter(|variable| shared & 1 << variable != 0) {
            let (here, there) = (self.at[variable], other.at[variable]);
            meeting *= match variable == at {
                true => estimator.meeting(variable, here, there),
                false => 1.0 / estimator.domain(here).min(estimator.domain(there)),
            };
        }
        // A test that both walks make leaves the same rows.
        let both = self.progress.tests & other.progress.tests;
        let tests = self.progress.graph.tests.iter().enumerate().filter(|(test, _)| both & 1 << test != 0);
        meeting /= tests.map(|(_, test)| test.filter.left).product::<f64>();
        let (small, large) = (self.held.min(other.held), self.held.max(other.held));
        let pairs = small * large * meeting;
        // Merged rows of a walk are at each vertex once.
        let pairs = if self.names { pairs } else { pairs.min(small) };
        self.cost += other.cost + cost::HOLD * (small + large) + cost::ENTER * small + cost::PROBE * large;
        self.cost += cost::PAIR * pairs;
        if small + large > JOINED_ROWS_MAX {
            self.cost = f64::INFINITY;
        }
        self.rows *= other.rows * meeting;
        (self.held, self.neighbors, self.followed) = (pairs, pairs, pairs);
        for variable in (0..MEMBERS_MAX).filter(|variable| !self.progress.is_bound(*variable)) {
            self.at[variable] = other.at[variable];
        }
        self.progress.join(other.progress, at);
        self.correct();
    }

    /// Goes back to the variable that rows leave the graph at.
    pub fn leave(&mut self) {
        if let Some(sink) = self.progress.graph.sink {
            let goes_back = self.progress.go_to(sink);
            self.select(goes_back);
        }
    }

    /// The vertices that the rows of a bound variable are at.
    pub fn distinct_at(&self, variable: usize) -> f64 {
        self.estimator.distinct(self.at[variable], self.rows)
    }

    /// Adds the cost of a `select()`, if rows go back.
    fn select(&mut self, goes_back: bool) {
        if goes_back {
            self.cost += self.held * cost::SELECT;
        }
    }

    /// Takes the rows that walks have found, if all tests are made whose variables are bound.
    fn correct(&mut self) {
        if let Some(rows) = self.estimator.learned.rows(self.progress.atoms)
            && self.progress.tests().next().is_none()
        {
            let times = rows / self.rows.max(f64::MIN_POSITIVE);
            // Merged rows are fewer, and not as many times as few.
            self.held = if self.held < 0.99 * self.rows { self.held.min(rows) } else { self.held * times };
            self.rows = rows;
        }
    }

    /// The least that the order costs when it has followed another atom, if equal rows are not merged before that.
    pub fn least_after_next(&self) -> f64 {
        self.cost + self.held * cost::DEGREE
    }

    /// The least that the order costs when it has made a move that is not its last, if equal rows are not merged before it.
    pub fn least_after(&self, next: Move) -> f64 {
        let graph = self.progress.graph;
        match next {
            Move::Hop { atom, from } => {
                let ends = &graph.atoms[atom];
                let hop = self.estimator.hop(atom, ends.direction_from(from), ends.other(from), self.at[from]);
                let followed = self.held * hop.plain.min(hop.neighbors);
                self.cost + self.held * cost::EXPAND + followed * cost::NEIGHBOR
            }
            Move::Close { atom, .. } if graph.atoms[atom].conditions.is_empty() => self.cost + self.held * cost::CLOSE,
            Move::Close { .. } | Move::Test(_) | Move::Join { .. } => self.cost,
        }
    }

    /// Makes the last move of an order.
    pub fn make_last(&mut self, last: Move) {
        let graph = self.progress.graph;
        let (cost, held, merged) = (self.cost, self.held, self.merged_before(last));
        self.make(last);
        if let Move::Hop { atom, .. } = last
            && graph.atoms[atom].conditions.is_empty()
        {
            let is_counted = graph.sink.is_none() && graph.merges;
            if is_counted && graph.variables[self.progress.current].conditions.is_empty() {
                // The ends are only counted. A `select()` before them is left out, and rows are merged, too.
                self.cost = cost
                    + match merged {
                        None => held * cost::DEGREE,
                        Some(Merged { rows, is_near: false }) => held * cost::MERGE + rows * cost::DEGREE,
                        Some(Merged { rows, is_near: true }) => held * cost::MERGE_NEAR + rows * cost::DEGREE_NEAR,
                    };
            }
        }
    }

    /// Makes a move.
    pub fn make(&mut self, next: Move) {
        let (graph, merged) = (self.progress.graph, self.merged_before(next));
        let goes_back = self.progress.make(next);
        self.select(goes_back);
        match next {
            Move::Hop { atom, from } => self.hop(atom, from, merged),
            Move::Close { atom, from } => {
                let ends = &graph.atoms[atom];
                let to = ends.other(from);
                let direction = ends.direction_from(from);
                let edges = self.estimator.close(atom, direction, self.at[from], self.at[to]);
                self.cost += match ends.conditions.is_empty() {
                    true => self.held * cost::CLOSE,
                    // All ends are compared.
                    false => {
                        let followed = self.held * self.estimator.hop(atom, direction, to, self.at[from]).neighbors;
                        let passing = followed * self.estimator.passing(atom);
                        self.cost_of_edges(atom, self.held, followed) + passing * cost::DIFFERS
                    }
                };
                self.rows *= edges;
                self.held *= edges;
            }
            Move::Test(test) => {
                let FilterCost { cost, left } = graph.tests[test].filter;
                self.cost += self.held * cost;
                self.rows *= left;
                self.held *= left;
            }
            // The rows of the other walk are not known here.
            Move::Join { .. } => debug_assert!(false, "a join is made by `join`"),
        }
        self.correct();
    }

    /// Makes the tests whose variables are bound.
    pub fn make_tests(&mut self) {
        while let Some(test) = self.progress.tests().next() {
            self.make(test);
        }
    }

    /// The rows after a hop. Of equal ones, that which goes on from where the rows are has the fewest.
    pub fn rows_after(&self, next: Move) -> f64 {
        let (atom, from, is_hop) = match next {
            Move::Hop { atom, from } => (atom, from, true),
            Move::Close { atom, from } => (atom, from, false),
            Move::Test(_) | Move::Join { .. } => return self.rows,
        };
        let ends = &self.progress.graph.atoms[atom];
        let (to, direction) = (ends.other(from), ends.direction_from(from));
        let each = match is_hop {
            true => self.estimator.hop(atom, direction, to, self.at[from]).rows,
            false => self.estimator.close(atom, direction, self.at[from], self.at[to]),
        };
        self.rows * each * if from == self.progress.current { 1.0 } else { 1.02 }
    }

    /// The rows that are left if equal ones are merged before a hop; `None` if they are not.
    fn merged_before(&self, next: Move) -> Option<Merged> {
        let is_first = self.progress.atoms == 0;
        match next {
            Move::Hop { from, .. } if self.progress.graph.merges && !self.names && !is_first => {
                let place = self.at[from];
                let rows = self.estimator.distinct(place, self.held);
                Some(Merged { rows, is_near: rows > NEAR_PART * self.estimator.domain(place) })
            }
            _ => None,
        }
    }

    /// The cost of following the edges of an atom with conditions from some rows, up to the ends of those that pass.
    fn cost_of_edges(&self, atom: usize, rows: f64, followed: f64) -> f64 {
        let ends = &self.progress.graph.atoms[atom];
        // Along `both`, each row comes to two branches.
        let branches = if ends.direction == Direction::Both { 2.0 } else { 1.0 };
        let names = if self.names { cost::NAMES } else { 0.0 };
        let tested: f64 = ends.conditions.iter().map(cost_of).sum();
        let passing = followed * self.estimator.passing(atom);
        rows * cost::EXPAND * branches
            + followed * (cost::NEIGHBOR + names + tested)
            + passing * (cost::EDGE_END + names)
    }

    fn hop(&mut self, atom: usize, from: usize, merged: Option<Merged>) {
        let graph = self.progress.graph;
        let is_near = merged.as_ref().is_some_and(|merged| merged.is_near);
        let (of_row, of_neighbor) = match is_near {
            true => (cost::EXPAND_NEAR, cost::NEIGHBOR_NEAR),
            false => (cost::EXPAND, cost::NEIGHBOR),
        };
        if let Some(Merged { rows, .. }) = merged {
            self.cost += self.held * if is_near { cost::MERGE_NEAR } else { cost::MERGE };
            self.held = rows;
        }
        let ends = &graph.atoms[atom];
        let to = ends.other(from);
        let hop = self.estimator.hop(atom, ends.direction_from(from), to, self.at[from]);
        // Merged rows are at each vertex once, however many edges lead there.
        let each = if self.held < 0.99 * self.rows { hop.plain.min(hop.neighbors) } else { hop.neighbors };
        let followed = self.held * each;
        let of_neighbor = of_neighbor + if self.names { cost::NAMES } else { 0.0 };
        let tested: f64 = graph.variables[to].conditions.iter().map(cost_of).sum();
        let passing = followed * self.estimator.passing(atom);
        self.cost += passing * tested;
        self.cost += match ends.conditions.is_empty() {
            true => self.held * of_row + followed * of_neighbor,
            false => self.cost_of_edges(atom, self.held, followed),
        };
        self.rows *= hop.rows;
        (self.followed, self.neighbors) = (followed, passing);
        self.held = followed * (hop.rows / hop.neighbors.max(f64::MIN_POSITIVE)).min(1.0);
        self.at[from] = hop.left;
        self.at[to] = hop.end;
    }
}

/// The rows after each hop of an order, for `explain()`.
pub(super) fn rows_shown(graph: &QueryGraph, estimator: &Estimator<'_>, order: &Order) -> String {
    let names = graph.reads_names || order.reads_names(graph);
    rows_of_walk(Tally::begin(graph, estimator, order.start, names), order)
}

/// The rows at the beginning of a walk, and after each hop of its order and the tests that follow it.
fn rows_of_walk(mut tally: Tally<'_>, order: &Order) -> String {
    let mut shown = format!("{:.0}", tally.rows);
    let mut moves = order.moves.iter().peekable();
    while let Some(next) = moves.next() {
        tally.follow(std::slice::from_ref(next), &order.joined);
        while let Some(test) = moves.next_if(|next| matches!(next, Move::Test(_))) {
            tally.make(*test);
        }
        let _ = match *next {
            Move::Test(_) => Ok(()),
            Move::Join { walk, .. } => {
                let other = &order.joined[walk];
                let begun = Tally::begin(tally.progress.graph, tally.estimator, other.start, tally.names);
                write!(shown, " joined with ({}): {:.0}", rows_of_walk(begun, other), tally.rows)
            }
            Move::Hop { .. } | Move::Close { .. } => write!(shown, ", {:.0}", tally.rows),
        };
    }
    shown
}

fn cost_of(condition: &Condition) -> f64 {
    match condition {
        Condition::LabelIn(_) | Condition::Label(_) => cost::LABEL,
        _ => cost::PROPERTY,
    }
}
