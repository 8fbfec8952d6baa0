//! Counting the matches of a pattern without a row for each.
//!
//! What is only counted need not be made. If the first steps of a traversal end in `count()` and are a tree of hops, the
//! count is a sum of products. `V().hasLabel('a').out('x').in('y').count()` is the sum over the vertices between the hops
//! of their degrees in both directions. In general each variable of the tree is *weighed*, from the leaves to a root:
//!
//! ```text
//! weight(v) = [v meets the conditions] · Π over the hops to children: Σ over the ends u of the hop: weight(u)
//! count     = Σ over the vertices of the root: weight(v)
//! ```
//!
//! If the count is not the next step, but a later step gathers all rows, as in `groupCount()`, the vertices that rows are at
//! are the root. There is then one row for each of them, and its weight is the row's bulk.
//!
//! So each edge is looked at once, however many walks go over it. `optional(out())` makes a factor at least 1, `where(out())`
//! makes it 1 or 0. Two variables that must differ, and an edge that must (not) close a walk, are in the weight of the
//! root ([`Pairing`](crate::physical::Pairing)).
//!
//! | file | content |
//! |---|---|
//! | `read.rs` | the steps, as a tree and comparisons |
//! | `forms.rs` | the ways in which a tree may be weighed |
//! | `cost.rs` | what they cost |
//!
//! - **PLAN-12.** The count, or the bulk of each vertex, is that of the rows. The conditions of PLAN-11 hold; the hops are
//!   a tree; every other step is one that `read.rs` lists. All weights are products and sums of numbers that are not negative, so an overflow on the
//!   way shows in the result, or is multiplied by 0.

mod cost;
mod forms;
mod read;

use super::choose::{GAIN, LIGHT, greedy_cost, has_order_below, written_cost};
use super::estimate::{Estimates, Estimator};
use super::preconditions::Declined;
use super::{build, edges};
use crate::connections::KnownConnections;
use crate::facts::GraphFacts;
use crate::logical::{Configuration, Name, StepNode, Traversal};
use crate::options::Planner;
use crate::physical::{CountOf, EdgesOf, PatternCount};

/// Of a pattern without comparisons, so many roots are looked at more closely: those at which it seems to cost least.
const ROOTS_MAX: usize = 2;

/// A count without a row for each match, instead of the first steps of a traversal.
pub(crate) struct Counted {
    /// The count, without the rows that it replaces.
    pub count: PatternCount,
    /// How many steps it stands for.
    pub steps: usize,
    /// What was chosen, for `explain()`.
    pub choice: String,
    /// The tests of labels that it leaves out: each with the edges that lead to nothing else.
    pub relied: Vec<(EdgesOf, Vec<Name>)>,
}

/// A look at the steps: returns false if they do not begin with a count of a pattern.
pub(super) fn may_be_counted(steps: &[StepNode]) -> bool {
    read::steps_counted(steps).is_some()
}

/// How the matches of a pattern are counted.
pub(crate) struct CountChoice {
    /// The count without rows; or why they are counted with rows.
    pub counted: Result<Counted, Declined>,
    /// True if the traversal begins with a pattern that is counted. Other statistics may then lead to another choice.
    pub has_choice: bool,
}

/// Chooses how the matches of a pattern are counted. Keeps what it has estimated.
pub(crate) fn count<'a>(
    traversal: &Traversal,
    configuration: &Configuration,
    facts: &'a GraphFacts,
    connections: Option<&KnownConnections>,
    planner: Planner,
    estimates: &mut Estimates<'a>,
) -> CountChoice {
    // The rows of one hop are counted by degrees.
    let is_walk = || traversal.steps.iter().skip(1).filter(|node| node.step.traits().walks).count() > 1;
    let mut has_choice = false;
    let chosen = choose(traversal, configuration, facts, connections, planner, estimates, &mut has_choice);
    CountChoice { counted: chosen.map_err(|reason| reason.filter(|_| is_walk())), has_choice }
}

fn choose<'a>(
    traversal: &Traversal,
    configuration: &Configuration,
    facts: &'a GraphFacts,
    connections: Option<&KnownConnections>,
    planner: Planner,
    estimates: &mut Estimates<'a>,
    has_choice: &mut bool,
) -> Result<Counted, Declined> {
    let planner = configuration.planner_or(planner);
    if planner == Planner::Written {
        return Err(None);
    }
    let pattern = read::read(traversal, || estimates.checked(traversal, configuration).is_ok())?;
    *has_choice = true;
    let steps = pattern.steps;
    if let Planner::Forced(seed) = planner {
        let mut forms = forms::forms(&pattern, connections);
        // Every other seed leaves the rows to the choice of an order.
        let count = forms.len() as u64;
        if count == 0 || seed % 2 == 0 {
            return Err(None);
        }
        let form = forms.swap_remove((seed / 2 % count) as usize);
        let choice = format!("count: by seed {seed}");
        return Ok(Counted { count: form.count, steps, choice, relied: form.relied });
    }
    let estimator = estimates.of(&pattern.graph, facts);
    // That there are no statistics, or that it is light, is said of the order.
    if !estimator.is_informed() {
        return Err(None);
    }
    let as_written = written_cost(&pattern.graph, estimator);
    if as_written < LIGHT {
        return Err(None);
    }
    let with_rows = greedy_cost(&pattern.graph, estimator, as_written);
    if with_rows < LIGHT {
        return Err(None);
    }
    let forms = match forms::has_no_comparisons(&pattern) {
        true => {
            let proven = forms::proven_leaves(&pattern, connections);
            forms::rooted(&pattern, connections, &cost::best_roots(&pattern, estimator, proven, ROOTS_MAX))
        }
        false => forms::forms(&pattern, connections),
    };
    let costs = forms.into_iter().map(|mut form| (cost::cost(&mut form, &pattern, estimator), form));
    let cheapest = costs.min_by(|a, b| a.0.total_cmp(&b.0));
    let (cost, form) = cheapest.ok_or(Some("its comparisons cannot be weighed"))?;
    // What weights cost is nearly certain: each edge is looked at once. What rows cost is a guess. Yet rows of vertices
    // are merged, too, so weights save less where vertices are the results.
    let gain = if pattern.of == CountOf::EachRoot { GAIN } else { 1.0 };
    if cost * gain >= with_rows || has_order_below(&pattern.graph, estimator, cost * gain) {
        return Err(Some("weighing would not cost less"));
    }
    // The first hops alone were weighed. If the next one tests its edges, a choice among the orders of all may be better.
    if pattern.of == CountOf::EachRoot
        && edges::read(&traversal.steps[steps..]).is_some()
        && let Ok((graph, _)) = build::build(traversal, None, estimates.checked(traversal, configuration))
    {
        let estimator = Estimator::new(&graph, facts);
        if greedy_cost(&graph, &estimator, written_cost(&graph, &estimator)) < cost {
            return Err(Some("another order costs less than weighing"));
        }
    }
    let millis = |nanos: f64| format!("{:.1} ms", nanos / 1e6);
    let choice = format!("count: without rows; expected cost {}; with rows {}", millis(cost), millis(with_rows));
    Ok(Counted { count: form.count, steps, choice, relied: form.relied })
}
