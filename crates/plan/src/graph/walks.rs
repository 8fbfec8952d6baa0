//! Random walks: what an order makes of a few rows that are drawn from the graph.
//!
//! Statistics are off where an edge must close a circle, where conditions leave vertices with more edges than others,
//! and after many hops. So if an order is expected to cost much ([`WALKED`]), a few hundred rows are worked off in this
//! order: wander joins (Li et al., SIGMOD 2016), with a batch of rows in each move. At the beginning some vertices are drawn. After each
//! hop some of all its edges are, evenly, so each row stands for as many rows as there are edges for each that was drawn.
//! Edges between two bound variables are counted, not drawn. The sum of what the rows stand for is an estimate without bias.
//!
//! How many rows there are after some atoms does not depend on their order, since tests are made as soon as their variables
//! are bound. So what a walk has learned of a set of atoms corrects all orders that follow just these.
//!
//! Statistics know how many edges lead from one label to another. So if the first hop has no other conditions, its rows are
//! those of the statistics.
//!
//! A walk ends when few rows are left ([`ROWS_MIN`]), or when it has taken its part of the expected time ([`PART`]).

use mangrove_graph::VertexId;
use mangrove_gremlin::Comparison;

use super::estimate::Estimator;
use super::progress::Progress;
use super::selectivity::look_up;
use super::{Move, Order, QueryGraph, Set, Test, TestKind};
use crate::facts::GraphFacts;
use crate::logical::{Condition, FilterKind, LabelTest, Step, Traversal};
use crate::physical::EdgesOf;
use crate::sampling::{Begin, Drawn, DrawnEdges, SampleGraph};

/// Orders that are expected to cost more, in nanoseconds, are walked.
pub(super) const WALKED: f64 = 50_000_000.0;

/// The part of the expected time that walks may take.
const PART: f64 = 0.005;

/// The most nanoseconds that all walks of a plan take.
const NANOS_MAX: f64 = 2_000_000.0;

/// The most vertices that a walk begins at, and the most edges that it draws in a hop.
const BEGUN_MAX: usize = 128;
const DRAWN_MAX: usize = 256;

/// The most vertices or edges that it draws if these must meet conditions on values, which may leave few of them.
const TESTED_MAX: usize = 2_048;

/// The most vertices that an index may find, if some of them are to be drawn: it finds all.
const FOUND_MAX: f64 = 4_096.0;

/// If fewer rows are left of those that were drawn, they tell too little.
const ROWS_MIN: usize = 8;

/// Walks along orders of one graph.
pub(super) struct Walks<'g> {
    graph: &'g QueryGraph,
    estimator: &'g Estimator<'g>,
    facts: &'g GraphFacts,
    sampler: &'g dyn SampleGraph,
    /// The nanoseconds that the sampler had taken before, and those at which walks end.
    begun: f64,
    nanos_max: f64,
    walked: Vec<Order>,
}

impl<'g> Walks<'g> {
    /// Walks for a graph whose best order is expected to cost so many nanoseconds; `None` if nothing can be learned, or
    /// not in the time.
    pub fn new(graph: &'g QueryGraph, estimator: &'g Estimator<'g>, facts: &'g GraphFacts, cost: f64) -> Option<Self> {
        // The rows that enter a later segment are not known.
        let is_known = estimator.is_informed() && graph.entry.is_none();
        if cost < WALKED || !is_known || graph.atoms.len() < 2 {
            return None;
        }
        let sampler = facts.sample.sampler()?;
        let begun = sampler.nanos();
        let nanos_max = begun + (PART * cost).min(NANOS_MAX);
        Some(Walks { graph, estimator, facts, sampler, begun, nanos_max, walked: Vec::new() })
    }

    /// Lets walks take their part of a time in nanoseconds, which an order is found to cost.
    pub fn extend(&mut self, cost: f64) {
        self.nanos_max = self.nanos_max.max(self.begun + (PART * cost).min(NANOS_MAX));
    }

    /// Walks along an order, if that was not done yet. Returns false if it was.
    pub fn walk(&mut self, order: &Order) -> bool {
        if self.walked.contains(order) {
            return false;
        }
        self.walked.push(order.clone());
        self.follow(order);
        true
    }

    /// Works rows off in an order. Returns `None` if the walk ends early.
    fn follow(&self, order: &Order) -> Option<()> {
        let mut sample = self.begin(order.start)?;
        for next in &order.moves {
            match *next {
                Move::Test(_) => {}
                Move::Join { walk, .. } => {
                    let other = &order.joined[walk];
                    self.follow(other);
                    self.complete(&mut sample, Progress::of(self.graph, other).atoms)?;
                }
                next => self.make(&mut sample, next)?,
            }
        }
        Some(())
    }

    /// Follows all atoms of a set: those that another walk, which the rows are joined with, has followed.
    fn complete(&self, sample: &mut Sample<'g>, atoms: Set) -> Option<()> {
        while atoms & !sample.progress.atoms != 0 {
            let is_left = |next: &Move| match next {
                Move::Hop { atom, .. } | Move::Close { atom, .. } => atoms & 1 << atom != 0,
                Move::Test(_) | Move::Join { .. } => false,
            };
            let next = sample.progress.hops().find(is_left)?;
            self.make(sample, next)?;
        }
        Some(())
    }

    /// Draws the vertices that rows begin at.
    fn begin(&self, start: usize) -> Option<Sample<'g>> {
        let variable = &self.graph.variables[start];
        let begin = match &variable.ids {
            Some(ids) => Begin::Ids(ids),
            None if self.estimator.is_found(start) => {
                if self.estimator.begin(start).rows > FOUND_MAX {
                    return None;
                }
                let (index, range) = look_up(variable, self.facts)?;
                Begin::Found(index, range)
            }
            None => Begin::Scanned(self.estimator.label_sets_of(start)),
        };
        let most = if self.is_plain(start) { BEGUN_MAX } else { TESTED_MAX };
        let Drawn { vertices, of } = self.sampler.vertices(&begin, most)?;
        let is_all = of == Some(vertices.len() as u64);
        let of = of.map_or(self.estimator.begin(start).scanned, |of| of as f64);
        let each = of / vertices.len().max(1) as f64;
        let mut sample = Sample {
            progress: Progress::begin(self.graph, start),
            bound: vec![Vec::new(); self.graph.variables.len()],
            weights: vec![1.0; vertices.len()],
            each,
            is_all,
        };
        sample.bound[start] = vertices;
        self.meet_conditions(&mut sample, start)?;
        sample.thin(BEGUN_MAX);
        self.make_tests(&mut sample)?;
        sample.tells_enough().then_some(sample)
    }

    /// Makes a move and the tests whose variables are bound then, and notes the rows.
    fn make(&self, sample: &mut Sample<'g>, next: Move) -> Option<()> {
        let (Move::Hop { atom, from } | Move::Close { atom, from }) = next else { return None };
        if self.sampler.nanos() > self.nanos_max {
            return None;
        }
        let ends = &self.graph.atoms[atom];
        let (to, conditions) = (ends.other(from), &ends.conditions);
        let edges = EdgesOf { direction: ends.direction_from(from), labels: ends.labels.clone() };
        if let Move::Hop { .. } = next {
            let most = if self.is_plain(to) && conditions.is_empty() { DRAWN_MAX } else { TESTED_MAX };
            let DrawnEdges { rows, neighbors, drawn, of } =
                self.sampler.edges(&sample.bound[from], &edges, conditions, most)?;
            sample.keep(&rows);
            sample.bound[to] = neighbors;
            sample.is_all &= drawn == of;
            sample.each *= of as f64 / drawn.max(1) as f64;
        } else {
            let pairs = [from, to].map(|end| &sample.bound[end][..]);
            let counts = self.sampler.edges_between(pairs, &edges, conditions)?;
            sample.weights.iter_mut().zip(&counts).for_each(|(weight, count)| *weight *= *count as f64);
            let kept: Vec<u32> = positions(counts.iter().map(|count| *count > 0));
            sample.keep(&kept);
        }
        sample.progress.make(next);
        if let Move::Hop { .. } = next {
            self.meet_conditions(sample, to)?;
            sample.thin(DRAWN_MAX);
        }
        self.make_tests(sample)?;
        if !sample.tells_enough() {
            return None;
        }
        match self.known_of_one(sample, next) {
            Some(rows) => sample.each *= rows / sample.rows().max(f64::MIN_POSITIVE),
            None => self.estimator.learned.note(sample.progress.atoms, sample.rows()),
        }
        Some(())
    }

    /// The rows after the first hop, if statistics know them better than some rows tell: they count the edges between
    /// labels. What follows is then in proportion to these.
    fn known_of_one(&self, sample: &Sample<'g>, hop: Move) -> Option<f64> {
        let Move::Hop { atom, from } = hop else { return None };
        let ends = &self.graph.atoms[atom];
        let to = ends.other(from);
        if sample.progress.atoms != 1 << atom
            || sample.progress.tests != 0
            || !(self.is_plain(from) && self.is_plain(to) && ends.conditions.is_empty())
        {
            return None;
        }
        let begin = self.estimator.begin(from);
        Some(begin.rows * self.estimator.hop(atom, ends.direction_from(from), to, begin.place).rows)
    }

    /// Returns true if a variable has conditions on labels alone.
    fn is_plain(&self, variable: usize) -> bool {
        let variable = &self.graph.variables[variable];
        let is_of_label = |condition: &Condition| matches!(condition, Condition::LabelIn(_));
        variable.ids.is_none() && variable.conditions.iter().all(is_of_label)
    }

    fn meet_conditions(&self, sample: &mut Sample<'g>, variable: usize) -> Option<()> {
        let conditions = &self.graph.variables[variable].conditions;
        if !conditions.is_empty() {
            let kept = self.sampler.meeting(sample.bound[variable].clone(), conditions)?;
            sample.keep(&kept);
        }
        Some(())
    }

    fn make_tests(&self, sample: &mut Sample<'g>) -> Option<()> {
        while let Some(next @ Move::Test(test)) = sample.progress.tests().next() {
            let Test { kind, filter, .. } = &self.graph.tests[test];
            match self.passing(sample, kind) {
                Some(passing) => sample.keep(&positions(passing.into_iter())),
                None => {
                    sample.each *= filter.left;
                    sample.is_all = false;
                }
            }
            sample.progress.make(next);
        }
        Some(())
    }

    /// For each row, true if it passes a test; `None` if that would take longer than a look.
    fn passing(&self, sample: &Sample<'g>, test: &TestKind) -> Option<Vec<bool>> {
        match test {
            TestKind::Differ(a, b) => {
                let pairs = sample.bound[*a].iter().zip(&sample.bound[*b]);
                Some(pairs.map(|(a, b)| a != b).collect())
            }
            TestKind::Step(Step::WherePredicate { start, test: LabelTest::Compare(comparison, name), by, .. }, of) => {
                let left = match start {
                    Some(start) => self.graph.named(start)?,
                    None => (*of)?,
                };
                let pairs = [left, self.graph.named(name)?].map(|variable| &sample.bound[variable][..]);
                let by = [by.first()?, by.get(1).or(by.first())?];
                self.sampler.comparing(*comparison, pairs, by)
            }
            TestKind::Step(Step::FilterTraversal(kind, operands), Some(of)) => {
                let each = operands.iter().map(|operand| self.with_edges(sample, *of, operand));
                let each = each.collect::<Option<Vec<Vec<bool>>>>()?;
                let passes = |row: usize| match kind {
                    FilterKind::All => each.iter().all(|passing| passing[row]),
                    FilterKind::Any => each.iter().any(|passing| passing[row]),
                    FilterKind::None => !each.iter().any(|passing| passing[row]),
                };
                Some((0..sample.weights.len()).map(passes).collect())
            }
            TestKind::Step(..) => None,
        }
    }

    /// For each row, true if its vertex has an edge, or one to another variable; `None` if a traversal asks for more.
    fn with_edges(&self, sample: &Sample<'g>, of: usize, traversal: &Traversal) -> Option<Vec<bool>> {
        let mut steps = traversal.steps.iter().map(|node| &node.step);
        let Step::Expand { direction, labels, to_edges: false } = steps.next()? else { return None };
        let edges = EdgesOf { direction: *direction, labels: labels.clone() };
        let counts = match (steps.next(), steps.next()) {
            (None, _) => self.sampler.degrees(&sample.bound[of], &edges)?,
            (
                Some(Step::WherePredicate { start: None, test: LabelTest::Compare(Comparison::Eq, name), by, .. }),
                None,
            ) if by.is_empty() => {
                let pairs = [of, self.graph.named(name)?].map(|end| &sample.bound[end][..]);
                self.sampler.edges_between(pairs, &edges, &[])?
            }
            _ => return None,
        };
        Some(counts.into_iter().map(|count| count > 0).collect())
    }
}

/// Rows that were drawn.
struct Sample<'g> {
    progress: Progress<'g>,
    /// For each variable that is bound, the vertex of each row.
    bound: Vec<Vec<VertexId>>,
    /// How often each row occurs, by parallel edges.
    weights: Vec<f64>,
    /// How many rows each one stands for.
    each: f64,
    /// True if no row was left out.
    is_all: bool,
}

impl Sample<'_> {
    /// The rows that all of these stand for.
    fn rows(&self) -> f64 {
        self.each * self.weights.iter().sum::<f64>()
    }

    /// Returns true if no row was left out, or enough of them are left.
    fn tells_enough(&self) -> bool {
        self.is_all || self.weights.len() >= ROWS_MIN
    }

    /// Keeps at most so many rows, evenly.
    fn thin(&mut self, most: usize) {
        let count = self.weights.len();
        let step = count.div_ceil(most).max(1);
        if step > 1 {
            let kept: Vec<u32> = (0..count as u32).skip(step / 2).step_by(step).collect();
            self.each *= count as f64 / kept.len() as f64;
            self.is_all = false;
            self.keep(&kept);
        }
    }

    /// Keeps the rows at these positions, each as often as it is given.
    fn keep(&mut self, rows: &[u32]) {
        self.weights = rows.iter().map(|row| self.weights[*row as usize]).collect();
        for vertices in self.bound.iter_mut().filter(|vertices| !vertices.is_empty()) {
            *vertices = rows.iter().map(|row| vertices[*row as usize]).collect();
        }
    }
}

/// The positions of those that are true.
fn positions(passes: impl Iterator<Item = bool>) -> Vec<u32> {
    (0..).zip(passes).filter(|(_, passes)| *passes).map(|(row, _)| row).collect()
}
