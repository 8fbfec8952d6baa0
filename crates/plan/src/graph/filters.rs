//! What filters cost, what part of the rows they leave, and in which order they run.
//!
//! Of two filters that could be next, that with the smaller *rank* comes first: its cost, divided by the part of the rows
//! that it drops (Hellerstein, *Predicate Migration*, SIGMOD 1993). So a cheap filter that drops much comes before a costly one, and one that drops nothing
//! comes last. Filters with equal ranks stay in the order in which they are written.
//!
//! Conditions of one element have nearly the same costs. Of them, that which leaves the fewest elements comes first, as
//! far as indexes, statistics of values, or the forms of the tests tell ([`selective_first`]).

use std::borrow::Cow;

use mangrove_gremlin::Comparison;

use super::preconditions::is_total;
use super::selectivity::parts_left;
use super::{Test, TestKind};
use crate::facts::GraphFacts;
use crate::logical::{Condition, FilterKind, LabelTest, Step, Traversal};

/// What a filter does to each row.
#[derive(Clone, Copy, Debug)]
pub(super) struct FilterCost {
    /// Nanoseconds for a row.
    pub cost: f64,
    /// The part of the rows that it leaves.
    pub left: f64,
}

/// Two variables are not the same vertex.
const DIFFER: FilterCost = FilterCost { cost: 5.0, left: 1.0 };
/// A vertex has an edge.
const EDGE: FilterCost = FilterCost { cost: 40.0, left: 0.5 };
/// There is an edge, or a walk, to a bound variable.
const CLOSING: FilterCost = FilterCost { cost: 90.0, left: 0.1 };
/// Values of two variables are compared.
const COMPARED: FilterCost = FilterCost { cost: 120.0, left: 0.5 };
/// A nested traversal finds something.
const NESTED: FilterCost = FilterCost { cost: 250.0, left: 0.5 };

/// The part of values that are equal to one of another vertex.
const EQUAL: f64 = 0.1;

impl FilterCost {
    pub fn of(test: &TestKind) -> Self {
        match test {
            TestKind::Differ(..) => DIFFER,
            TestKind::Step(Step::WherePredicate { test: LabelTest::Compare(comparison, _), .. }, _) => {
                let left = match comparison {
                    Comparison::Eq => EQUAL,
                    Comparison::Neq => 1.0 - EQUAL,
                    _ => COMPARED.left,
                };
                FilterCost { left, ..COMPARED }
            }
            TestKind::Step(Step::FilterTraversal(kind, operands), _) => {
                let each = || operands.iter().map(FilterCost::of_traversal);
                let none: f64 = each().map(|filter| 1.0 - filter.left).product();
                let left = match kind {
                    FilterKind::All => each().map(|filter| filter.left).product(),
                    FilterKind::Any => 1.0 - none,
                    FilterKind::None => none,
                };
                FilterCost { cost: each().map(|filter| filter.cost).sum(), left }
            }
            TestKind::Step(..) => NESTED,
        }
    }

    /// The test whether a traversal has a result.
    fn of_traversal(traversal: &Traversal) -> Self {
        let mut steps = traversal.steps.iter().map(|node| &node.step).peekable();
        let mut hops = 0;
        while steps.next_if(|step| matches!(step, Step::Expand { .. })).is_some() {
            hops += 1;
        }
        match (hops, steps.next(), steps.next()) {
            (1, None, _) => EDGE,
            // Hops that end at a bound variable find what one edge there would.
            (1.., Some(Step::WherePredicate { test: LabelTest::Compare(Comparison::Eq, _), .. }), None) => {
                FilterCost { cost: CLOSING.cost + f64::from(hops - 1) * EDGE.cost, ..CLOSING }
            }
            _ => NESTED,
        }
    }

    fn rank(self) -> f64 {
        self.cost / (1.0 - self.left).max(0.001)
    }
}

/// Puts tests into the order in which they are made, if their variables are bound at the same time.
pub(super) fn sort(tests: &mut [Test]) {
    if tests.len() > 1 {
        tests.sort_by(|a, b| a.filter.rank().total_cmp(&b.filter.rank()));
    }
}

/// A look at the steps: returns false if no step has conditions that may be tested in several orders.
pub fn may_order_filters(traversal: &Traversal) -> bool {
    traversal.any(|step| match step {
        Step::Has(conditions) | Step::Vertices { conditions, .. } | Step::Edges { conditions, .. } => {
            have_orders(conditions)
        }
        _ => false,
    })
}

fn have_orders(conditions: &[Condition]) -> bool {
    conditions.iter().filter(|condition| may_move(condition)).count() > 1
}

/// The conditions of an element, with those first that leave the fewest. Those on labels and ids stay in their positions.
pub(crate) fn selective_first<'c>(conditions: &'c [Condition], facts: &GraphFacts) -> Cow<'c, [Condition]> {
    if !have_orders(conditions) {
        return Cow::Borrowed(conditions);
    }
    let parts = parts_left(conditions, facts);
    let mut sorted: Vec<usize> = (0..conditions.len()).filter(|at| may_move(&conditions[*at])).collect();
    sorted.sort_by(|a, b| parts[*a].total_cmp(&parts[*b]));
    let mut sorted = sorted.into_iter();
    let in_order = conditions.iter().map(|condition| match may_move(condition) {
        true => sorted.next().map_or(condition, |at| &conditions[at]),
        false => condition,
    });
    Cow::Owned(in_order.cloned().collect())
}

/// Returns true for a condition that reads values of an element and cannot fail.
fn may_move(condition: &Condition) -> bool {
    match condition {
        Condition::Property(..) | Condition::HasKey(_) | Condition::HasNot(_) => true,
        Condition::AnyOf(_) => is_total(condition),
        Condition::LabelIn(_)
        | Condition::Label(_)
        | Condition::Id(_)
        | Condition::PropertyKey(_)
        | Condition::PropertyValue(_) => false,
    }
}
