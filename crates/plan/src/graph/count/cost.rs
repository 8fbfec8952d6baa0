//! What it costs to weigh a pattern in one form, from the statistics of the graph.
//!
//! Every weighing looks at all vertices of its variable that have an edge of its first factor, and at all of their edges.
//! So its cost does not depend on how many rows the pattern would make.

use mangrove_graph::PAGE_SLOTS;

use super::forms::Form;
use super::read::Pattern;
use crate::graph::estimate::Estimator;
use crate::physical::{CountOf, Factor, FactorForm, Pairing, Weighing};

/// Nanoseconds for a vertex whose edges of one kind and direction are looked at.
const VERTEX: f64 = 2.0;
/// For an edge whose end is weighed.
const EDGE: f64 = 3.0;
/// For an edge of a list that is copied and sorted.
const LISTED: f64 = 20.0;
/// For an end of two hops.
const WALKED: f64 = 2.0;
/// For a vertex whose property is tested.
const TESTED: f64 = 40.0;
/// For a row of a vertex.
const ROW: f64 = 10.0;
/// For a level of weighings, after which threads wait for each other.
const LEVEL: f64 = 30_000.0;

/// The expected cost of a form in nanoseconds. Puts the factors into the order in which they cost least.
pub(super) fn cost(form: &mut Form, pattern: &Pattern, estimator: &Estimator<'_>) -> f64 {
    let mut sum = LEVEL * form.count.levels().len() as f64;
    let variables: Vec<usize> = form.variables.iter().copied().chain([form.root]).collect();
    for (weighing, variable) in form.count.weighings.iter_mut().chain([&mut form.count.root]).zip(variables) {
        let reach = |factor: &Factor| estimator.reach(variable, &factor.edges);
        weighing.factors.sort_by(|a, b| {
            let key = |factor: &Factor| (!factor.leaves_only_ends(), reach(factor).edges);
            key(a).0.cmp(&key(b).0).then(key(a).1.total_cmp(&key(b).1))
        });
        // Threads share a weighing by pages: one with few pages keeps few of them busy.
        let pages = (estimator.begin(variable).scanned / PAGE_SLOTS as f64).max(1.0);
        sum += of_weighing(weighing, variable, estimator) * (1.0 + 1.0 / pages);
    }
    if form.count.of == CountOf::EachRoot {
        sum += ROW * estimator.begin(form.root).rows;
    }
    let edges = |variable: usize, edges| estimator.reach(variable, edges).edges;
    match &form.count.pairing {
        None => {}
        Some(Pairing::Neighbors { first, second }) => {
            sum += LISTED * (edges(form.root, &first.edges) + edges(form.root, &second.edges));
        }
        Some(Pairing::Walk(walk)) => {
            let middle = form.variables[walk.middle];
            let (first, second) = (edges(form.root, &walk.first), edges(middle, &walk.second));
            let others = walk.closing.as_ref().map(|(closing, _)| closing).into_iter();
            let others = others.chain(walk.sibling.as_ref().map(|leg| &leg.edges));
            let listed = first + second + others.map(|other| edges(form.root, other)).sum::<f64>();
            sum += LISTED / 2.0 * listed + WALKED * estimator.walks(&pattern.graph, form.root, form.hops);
        }
    }
    sum
}

fn of_weighing(weighing: &Weighing, variable: usize, estimator: &Estimator<'_>) -> f64 {
    let vertices = estimator.begin(variable).scanned;
    let reached = |factor: &Factor| estimator.reach(variable, &factor.edges);
    let (begins, tested) = match weighing.factors.first() {
        Some(first) if first.leaves_only_ends() => {
            let reached = reached(first);
            (reached.vertices, reached.vertices.min(reached.edges))
        }
        _ => (vertices, vertices),
    };
    let factor = |factor: &Factor| {
        let reached = reached(factor);
        VERTEX * reached.looks + if factor.ends.is_some() { EDGE * reached.edges } else { 0.0 }
    };
    VERTEX * begins
        + weighing.factors.iter().map(factor).sum::<f64>()
        + weighing.conditions.len() as f64 * TESTED * tested
}

impl Factor {
    /// Returns true if only vertices with such an edge have a weight.
    pub(super) fn leaves_only_ends(&self) -> bool {
        matches!(self.form, FactorForm::Sum | FactorForm::Some)
    }
}
