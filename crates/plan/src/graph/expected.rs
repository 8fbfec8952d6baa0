//! The rows that are expected to leave the first steps of a traversal, for `explain()` and `profile()`.
//!
//! The steps are read as a query graph again, after their order is chosen. It is only estimated and not worked off, so
//! traversals whose order must stay have estimates, too. The estimates are those by which orders are chosen.

use super::build::{Builder, merges_before};
use super::estimate::Estimator;
use super::tally::Tally;
use super::{MEMBERS_MAX, Move, Set};
use crate::facts::GraphFacts;
use crate::logical::{Configuration, Step, StepNode, Traversal};
use crate::physical::Requirements;
use crate::requirements::requirements;

/// What a step adds to a graph.
#[derive(Clone, Copy, PartialEq)]
enum Addition {
    Nothing,
    Atom(usize),
    /// A hop over edges. This is the step to the edges.
    Edges(usize),
    /// What follows in the steps of a hop over edges: the last of the conditions, and the end.
    OfEdges,
    Conditions,
    Test(usize),
    /// Two variables become one.
    Union,
}

/// The traversal, with the rows that are expected to leave its first steps, if there are statistics. `learned`: the rows
/// after each hop, as far as random walks have found them.
pub(crate) fn with_expected_rows(
    traversal: &Traversal,
    configuration: &Configuration,
    facts: &GraphFacts,
    learned: &[Option<f64>],
) -> Traversal {
    let needs = requirements(traversal, configuration);
    let may_merge = !traversal.is_mutating() && !needs.sacks;
    let mut traversal = traversal.clone();
    fill(&mut traversal, &needs, may_merge, false, facts, learned);
    traversal
}

/// Notes the expected rows with the first steps of a traversal. If it begins with a join, it does so for both walks of it.
/// `is_joined`: it is one of these.
fn fill(
    traversal: &mut Traversal,
    needs: &Requirements,
    may_merge: bool,
    is_joined: bool,
    facts: &GraphFacts,
    learned: &[Option<f64>],
) {
    if let Some(StepNode { step: Step::Join { walks, .. }, .. }) = traversal.steps.first_mut() {
        walks.iter_mut().for_each(|walk| fill(walk, needs, may_merge, true, facts, &[]));
        return;
    }
    let rows = expected_rows(traversal, needs, may_merge, is_joined, facts, learned);
    traversal.steps.iter_mut().zip(rows).for_each(|(node, rows)| node.expected = rows);
}

/// The rows for each of the first steps; nothing for one after which they were not estimated.
fn expected_rows(
    traversal: &Traversal,
    needs: &Requirements,
    may_merge: bool,
    is_joined: bool,
    facts: &GraphFacts,
    learned: &[Option<f64>],
) -> Vec<Option<f64>> {
    let Some((first, rest)) = traversal.steps.split_first() else { return Vec::new() };
    let Some(mut builder) = Builder::begin(first) else { return Vec::new() };
    let mut additions: Vec<Addition> = Vec::new();
    while let Some(more) = take(&mut builder, &rest[additions.len()..]) {
        additions.extend(more);
    }
    let mut graph = builder.graph;
    // The estimate of a hop has all conditions of its end, also those that stand further on.
    if graph.has_late_conditions || graph.atoms.len() > MEMBERS_MAX {
        return Vec::new();
    }
    graph.merges = may_merge && (is_joined || merges_before(&rest[additions.len()..])) && !graph.has_unions();
    let estimator = Estimator::new(&graph, facts);
    if !estimator.is_informed() {
        return Vec::new();
    }
    // The atoms are followed in the order of their numbers.
    for (rows, followed) in learned.iter().zip(1..) {
        let Some(rows) = rows else { continue };
        estimator.learned.note(((1_u64 << followed) - 1) as Set, *rows);
    }
    let mut tally = Tally::begin(&graph, &estimator, 0, needs.keep_earlier_objects());
    // If conditions follow in several steps, only what leaves the last of them was estimated.
    let has_more = |next: usize| additions.get(next) == Some(&Addition::Conditions);
    let mut expected = vec![Some(tally.held).filter(|_| !has_more(0))];
    let mut bound: Set = 1;
    // Hops to a bound variable, whose comparison with it is still to come. Rows in between were not estimated.
    let mut unclosed = 0;
    for (at, addition) in additions.iter().enumerate() {
        let mut rows = Some(tally.held);
        match *addition {
            Addition::Nothing => rows = None,
            Addition::Atom(atom) | Addition::Edges(atom) => {
                let (from, to) = (graph.atoms[atom].from, graph.atoms[atom].to);
                let is_bound = bound & 1 << to != 0;
                tally.make(if is_bound { Move::Close { atom, from } } else { Move::Hop { atom, from } });
                bound |= 1 << to;
                unclosed += usize::from(is_bound);
                let is_hop = matches!(addition, Addition::Atom(_));
                rows = Some(if is_hop { tally.neighbors } else { tally.followed });
            }
            Addition::OfEdges => rows = Some(tally.neighbors),
            Addition::Test(test) => {
                tally.make(Move::Test(test));
                rows = Some(tally.held);
            }
            Addition::Conditions => rows = rows.filter(|_| !has_more(at + 1)),
            Addition::Union => unclosed -= 1,
        }
        expected.push(rows.filter(|_| unclosed == 0));
    }
    expected
}

/// Takes the next steps into a graph, and says what each of them adds; `None` if the first does not belong there.
fn take(builder: &mut Builder, steps: &[StepNode]) -> Option<Vec<Addition>> {
    let sizes = |builder: &Builder| {
        let graph = &builder.graph;
        (graph.atoms.len(), graph.tests.len(), graph.variables.len())
    };
    let (atoms, tests, variables) = sizes(builder);
    let taken = builder.take(steps)?;
    let now = sizes(builder);
    if taken > 1 {
        let mut additions = vec![Addition::Nothing; taken];
        additions[0] = Addition::Edges(atoms);
        // Of several conditions, only what leaves the last was estimated.
        additions[1.max(taken - 2)..].fill(Addition::OfEdges);
        return Some(additions);
    }
    let addition = match &steps[0].step {
        Step::Has(_) => Addition::Conditions,
        _ if now.0 > atoms => Addition::Atom(atoms),
        _ if now.1 > tests => Addition::Test(tests),
        _ if now.2 < variables => Addition::Union,
        _ => Addition::Nothing,
    };
    Some(vec![addition])
}
