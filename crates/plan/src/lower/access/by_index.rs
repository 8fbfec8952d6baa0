//! The choice of the indexes that find the elements of a source.
//!
//! Conditions that hold together are answered by an index whose first keys they test. Alternatives are answered if each
//! of their branches is, together with the conditions around them: by the union of the searches of all branches. A test
//! of one key that is an `or` of tests has branches, too.
//!
//! If the sizes of all indexes in question are known, the way that is expected to cost least is taken. Then other
//! indexes are intersected with it, as long as each saves more tests of values than its look-up costs. If a size is
//! unknown, fixed ranks decide.

use std::cell::Cell;
use std::cmp::Reverse;

use mangrove_graph::ElementKind;

use super::index_match::IndexMatch;
use crate::facts::{GraphFacts, UsableIndex};
use crate::logical::{Condition, Test};
use crate::physical::{IndexAccess, IndexSearch};

/// A union has at most so many searches. With more, a scan is not much worse, and plans stay small.
const SEARCHES_MAX: usize = 1_024;
/// A search is in at most so many indexes.
const PARTS_MAX: usize = 4;
/// So many other indexes are shown.
const SHOWN_MAX: usize = 3;

/// Costs in nanoseconds, as `store` has them: of a look-up, of an entry of its list, and of the test of a value.
const LOOK_UP: f64 = 300.0;
const ENTRY: f64 = 8.0;
const TEST: f64 = 40.0;

/// The indexes of one kind of elements.
pub(super) struct Indexes<'a> {
    all: Vec<&'a UsableIndex>,
    facts: &'a GraphFacts,
    /// True if there was a choice, so that the sizes of indexes matter.
    has_choice: Cell<bool>,
}

impl<'a> Indexes<'a> {
    pub fn of(kind: ElementKind, facts: &'a GraphFacts) -> Self {
        let all = facts.indexes.iter().filter(|index| index.info.element == kind).collect();
        Indexes { all, facts, has_choice: Cell::new(false) }
    }

    /// True if there was a choice, so that other sizes of indexes may lead to another access.
    pub fn has_choice(&self) -> bool {
        self.has_choice.get()
    }

    /// The best access by indexes, if there is one that answers some of the conditions.
    pub fn access(&self, conditions: &[Condition]) -> Option<IndexAccess> {
        let Way { searches, answered, .. } = self.best(conditions)?;
        let is_read = |name: &str| searches.iter().flat_map(|search| &search.parts).any(|part| part.name == name);
        let found = self.matches(conditions).filter_map(|found| Some((found.name(), found.expected(self.facts)?)));
        let instead_of = found.filter(|(name, _)| !is_read(name)).take(SHOWN_MAX).collect();
        Some(IndexAccess { searches, answered, instead_of })
    }

    /// The best way to find the elements that meet all of the conditions. Of equally good ways that of the first
    /// condition in the traversal wins, then that by the oldest index.
    fn best(&self, conditions: &[Condition]) -> Option<Way> {
        if self.all.is_empty() {
            return None;
        }
        let matches: Vec<IndexMatch<'a>> = self.matches(conditions).collect();
        let tests = conditions.iter().filter(|condition| !matches!(condition, Condition::LabelIn(_))).count();
        let mut ways: Vec<Way> = matches.iter().map(|found| self.by(found, tests)).collect();
        for (at, condition) in conditions.iter().enumerate() {
            ways.extend(branches(condition).and_then(|branches| self.union(at, &branches, conditions)));
        }
        if ways.len() > 1 && self.all.len() > 1 {
            self.has_choice.set(true);
        }
        let are_known = ways.iter().all(|way| way.cost.is_some());
        let is_better = |next: &Way, best: &Way| match (next.cost, best.cost) {
            (Some(next_cost), Some(best_cost)) if are_known && next_cost != best_cost => next_cost < best_cost,
            _ => next.rank > best.rank,
        };
        let mut best = ways.into_iter().reduce(|best, next| if is_better(&next, &best) { next } else { best })?;
        if are_known && !best.rank.is_union.0 {
            self.intersect(&mut best, matches);
        }
        Some(best)
    }

    /// The ways by one index, or by an index of each label.
    fn matches(&self, conditions: &[Condition]) -> impl Iterator<Item = IndexMatch<'a>> {
        let labels = conditions.iter().find_map(|c| match c {
            Condition::LabelIn(names) => Some(names),
            _ => None,
        });
        // An index with a label covers that label alone. For several labels, each must have an index that answers the
        // same conditions.
        let covers = move |index: &&&UsableIndex| match &index.label {
            None => true,
            Some(label) => labels.is_some_and(|names| names.first() == Some(label)),
        };
        self.all.iter().filter(covers).filter_map(move |index| IndexMatch::find(index, conditions, &self.all, labels))
    }

    /// The way by a match, of which so many conditions are tested in all.
    fn by(&self, found: &IndexMatch<'a>, tests: usize) -> Way {
        let answered = found.answered();
        let expected = found.expected(self.facts);
        let left = tests.saturating_sub(answered.len());
        let cost = expected.map(|rows| {
            let look_ups = (found.indexes.len() * found.values()) as f64;
            look_ups * LOOK_UP + rows * (ENTRY + TEST * (found.keys() + left) as f64)
        });
        let searches = found.parts(self.facts).map(|part| IndexSearch { parts: vec![part] }).collect();
        Way { searches, read: found.conditions().collect(), answered, rank: Rank::of(found), cost }
    }

    /// Adds other indexes to the best way by one index, each of which is expected to drop more candidates than it costs.
    fn intersect(&self, best: &mut Way, matches: Vec<IndexMatch<'a>>) {
        let first_of = |search: &IndexSearch| search.parts.first().and_then(|part| part.expected);
        let Some(mut rows) = best.searches.iter().map(first_of).sum::<Option<f64>>() else { return };
        let mut others: Vec<(f64, IndexMatch<'a>)> =
            matches.into_iter().filter_map(|found| Some((found.expected(self.facts)?, found))).collect();
        others.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        for (expected, found) in others {
            let count = best.searches.len();
            let is_new = found.conditions().any(|at| !best.read.contains(&at));
            // Each search is for one label. An index of all labels would be read again for each.
            let fits = found.indexes.len() == count;
            let cost = (count * found.values()) as f64 * LOOK_UP + expected * ENTRY;
            if !is_new || !fits || best.parts() == PARTS_MAX || rows * TEST <= cost {
                continue;
            }
            for (search, part) in best.searches.iter_mut().zip(found.parts(self.facts)) {
                search.parts.push(part);
            }
            rows *= found.share(self.facts).unwrap_or(1.0);
            best.read.extend(found.conditions());
            best.answered.extend(found.answered());
            best.answered.sort_unstable();
            best.answered.dedup();
        }
    }

    /// The union of the best ways of all branches of the condition at a position, each together with the other
    /// conditions.
    fn union(&self, at: usize, branches: &[Vec<Condition>], conditions: &[Condition]) -> Option<Way> {
        // Other alternatives are left to the filter. So the work does not grow with the product of their branches.
        let others: Vec<usize> = (0..conditions.len()).filter(|&other| !has_branches(&conditions[other])).collect();
        let of_branch = |branch: &Vec<Condition>| {
            let around = others.iter().map(|&other| conditions[other].clone());
            self.best(&branch.iter().cloned().chain(around).collect::<Vec<_>>())
        };
        let ways: Vec<Way> = branches.iter().map(of_branch).collect::<Option<_>>()?;
        let answers_branch = |(way, branch): (&Way, &Vec<Condition>)| (0..branch.len()).all(|at| way.answers(at));
        let answers_other =
            |position: usize| ways.iter().zip(branches).all(|(way, branch)| way.answers(branch.len() + position));
        let other = others.iter().enumerate();
        let mut answered: Vec<usize> =
            other.filter(|(position, _)| answers_other(*position)).map(|(_, &other)| other).collect();
        if ways.iter().zip(branches).all(answers_branch) {
            answered.push(at);
            answered.sort_unstable();
        }
        let rank = ways.iter().map(|way| way.rank).min()?;
        let cost = ways.iter().map(|way| way.cost).sum();
        let searches: Vec<IndexSearch> = ways.into_iter().flat_map(|way| way.searches).collect();
        if searches.len() > SEARCHES_MAX {
            return None;
        }
        Some(Way { searches, read: Vec::new(), answered, rank: Rank { is_union: Reverse(true), ..rank }, cost })
    }
}

/// The branches of a condition, if it holds where one of them does.
fn branches(condition: &Condition) -> Option<Vec<Vec<Condition>>> {
    match condition {
        Condition::AnyOf(branches) => Some(branches.clone()),
        Condition::Property(key, Test::Or(tests)) => {
            Some(tests.iter().map(|test| vec![Condition::Property(key.clone(), test.clone())]).collect())
        }
        _ => None,
    }
}

/// Returns true if a condition holds where one of its branches does.
pub(super) fn has_branches(condition: &Condition) -> bool {
    matches!(condition, Condition::AnyOf(_) | Condition::Property(_, Test::Or(_)))
}

/// A way to find elements: the union of searches.
struct Way {
    searches: Vec<IndexSearch>,
    /// The conditions that each search reads, unless it is a union. Of these, a range is not exact.
    read: Vec<usize>,
    /// The conditions that all elements found meet, ascending.
    answered: Vec<usize>,
    rank: Rank,
    /// The expected cost with all tests, if it is known.
    cost: Option<f64>,
}

impl Way {
    fn answers(&self, condition: usize) -> bool {
        self.answered.binary_search(&condition).is_ok()
    }

    /// The parts of each search.
    fn parts(&self) -> usize {
        self.searches.first().map_or(0, |search| search.parts.len())
    }
}

/// How good a way is if sizes are unknown: the greater is better.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// A unique index whose keys all have values.
    finds_one: bool,
    /// Equality narrows more than a range.
    equalities: usize,
    /// A range in addition.
    is_range: bool,
    /// Of equal ways, one without branches wins.
    is_union: Reverse<bool>,
    /// The earlier first condition.
    first: Reverse<usize>,
}

impl Rank {
    fn of(found: &IndexMatch<'_>) -> Self {
        Rank {
            finds_one: found.finds_one(),
            equalities: found.equalities(),
            is_range: found.is_range,
            is_union: Reverse(false),
            first: Reverse(found.conditions().next().unwrap_or(usize::MAX)),
        }
    }
}
