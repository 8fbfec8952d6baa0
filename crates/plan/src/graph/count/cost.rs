//! What it costs to weigh a pattern in one form, from the statistics of the graph.
//!
//! Every weighing looks at all vertices of its variable that have an edge of its first factor, and at all of their edges.
//! So its cost does not depend on how many rows the pattern would make.

use mangrove_graph::PAGE_SLOTS;

use super::forms::Form;
use super::read::Pattern;
use crate::graph::Set;
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

/// The variables of a tree without comparisons at which it may cost least to be rooted, at most `most`.
/// `proven`: the variables of which nothing needs to be tested.
pub(super) fn best_roots(pattern: &Pattern, estimator: &Estimator<'_>, proven: Set, most: usize) -> Vec<usize> {
    let roots = super::forms::roots(pattern).into_iter();
    let mut costs: Vec<(f64, usize)> = roots
        .map(|root| {
            let Subtree { cost, levels, .. } = of_subtree(pattern, estimator, proven, root, None);
            (cost + LEVEL * levels as f64, root)
        })
        .collect();
    costs.sort_by(|a, b| a.0.total_cmp(&b.0));
    costs.into_iter().take(most).map(|(_, root)| root).collect()
}

/// What it costs to weigh a variable and all that hangs on it.
struct Subtree {
    cost: f64,
    levels: usize,
    /// True if all vertices have the weight 1, so that degrees do.
    is_any: bool,
}

/// About what [`cost`] adds up for a variable, from the atoms alone. `up`: the atom to the variable that it hangs on.
fn of_subtree(
    pattern: &Pattern,
    estimator: &Estimator<'_>,
    proven: Set,
    variable: usize,
    up: Option<usize>,
) -> Subtree {
    let (atoms, conditions) = (&pattern.graph.atoms, &pattern.graph.variables[variable].conditions);
    let mut all = Subtree {
        cost: VERTEX * estimator.begin(variable).scanned,
        levels: 0,
        is_any: up.is_some() && proven & 1 << variable != 0
            || conditions.is_empty() && pattern.tests.iter().all(|(of, ..)| *of != variable),
    };
    for (at, atom) in atoms.iter().enumerate() {
        if Some(at) == up || atom.from != variable && atom.to != variable {
            continue;
        }
        let below = of_subtree(pattern, estimator, proven, atom.other(variable), Some(at));
        let reach = estimator.reach_along(atoms, at, variable);
        all.cost += VERTEX * reach.looks;
        all.is_any = false;
        if !below.is_any {
            all.cost += below.cost + EDGE * reach.edges;
            all.levels = all.levels.max(below.levels + 1);
        }
    }
    all
}

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
