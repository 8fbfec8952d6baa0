//! The choice of the indexes that find the elements of a source.
//!
//! Conditions that hold together are answered by an index whose first keys they test. Alternatives are answered if each
//! of their branches is, together with the conditions around them: by the union of the searches of all branches. A test
//! of one key that is an `or` of tests has branches, too.

use mangrove_graph::ElementKind;
use mangrove_gremlin::Comparison;

use crate::facts::UsableIndex;
use crate::logical::{Condition, Name, Operand, Test};
use crate::physical::{IndexAccess, IndexSearch};

/// A source makes at most so many searches. With more, a scan is not much worse, and plans stay small.
const SEARCHES_MAX: usize = 1_024;

/// The indexes of one kind of elements.
pub(super) struct Indexes<'a> {
    all: Vec<&'a UsableIndex>,
}

impl<'a> Indexes<'a> {
    pub fn of(kind: ElementKind, indexes: &'a [UsableIndex]) -> Self {
        Indexes { all: indexes.iter().filter(|index| index.info.element == kind).collect() }
    }

    /// The best access by indexes, if there is one that answers some of the conditions.
    pub fn access(&self, conditions: &[Condition]) -> Option<IndexAccess> {
        let Way { searches, answered, .. } = self.best(conditions)?;
        (searches.len() <= SEARCHES_MAX).then_some(IndexAccess { searches, answered })
    }

    /// The best way to find the elements that meet all of the conditions. Of equally good ways that of the first
    /// condition in the traversal wins, then that by the oldest index.
    fn best(&self, conditions: &[Condition]) -> Option<Way> {
        if self.all.is_empty() {
            return None;
        }
        let together = self.matches(conditions).map(|found| found.way());
        let unions = conditions.iter().enumerate().filter_map(|(at, condition)| {
            let branches = branches(condition)?;
            self.union(at, &branches, conditions)
        });
        together.chain(unions).reduce(|best, next| if next.rank > best.rank { next } else { best })
    }

    /// All ways by an index of each label.
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

    /// The union of the best ways of all branches of the condition at a position, each together with the other
    /// conditions.
    fn union(&self, at: usize, branches: &[Vec<Condition>], conditions: &[Condition]) -> Option<Way> {
        // Other alternatives are left to the filter. So the work does not grow with the product of their branches.
        let others: Vec<usize> = (0..conditions.len()).filter(|&other| !has_branches(&conditions[other])).collect();
        let of_branch = |branch: &Vec<Condition>| {
            let all: Vec<Condition> =
                branch.iter().cloned().chain(others.iter().map(|&other| conditions[other].clone())).collect();
            self.best(&all)
        };
        let ways: Vec<Way> = branches.iter().map(of_branch).collect::<Option<_>>()?;
        let answers_branch = |(way, branch): (&Way, &Vec<Condition>)| (0..branch.len()).all(|at| way.answers(at));
        let answers_other =
            |position: usize| ways.iter().zip(branches).all(|(way, branch)| way.answers(branch.len() + position));
        let mut answered: Vec<usize> = others
            .iter()
            .enumerate()
            .filter(|(position, _)| answers_other(*position))
            .map(|(_, &other)| other)
            .collect();
        if ways.iter().zip(branches).all(answers_branch) {
            answered.push(at);
            answered.sort_unstable();
        }
        let rank = ways.iter().map(|way| way.rank).min()?;
        let searches = ways.into_iter().flat_map(|way| way.searches).collect();
        // Of equal ways, one without branches wins.
        Some(Way { searches, answered, rank: Rank { is_union: std::cmp::Reverse(true), ..rank } })
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

fn has_branches(condition: &Condition) -> bool {
    matches!(condition, Condition::AnyOf(_) | Condition::Property(_, Test::Or(_)))
}

/// A way to find elements: the union of searches.
struct Way {
    searches: Vec<IndexSearch>,
    /// The conditions that all elements found meet, ascending.
    answered: Vec<usize>,
    rank: Rank,
}

impl Way {
    fn answers(&self, condition: usize) -> bool {
        self.answered.binary_search(&condition).is_ok()
    }
}

/// How good a way is: the greater is better.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// A unique index whose keys all have values.
    finds_one: bool,
    /// Equality narrows more than a range.
    equalities: usize,
    /// A range in addition.
    is_range: bool,
    is_union: std::cmp::Reverse<bool>,
    /// The earlier first condition.
    first: std::cmp::Reverse<usize>,
}

/// An index for each label, and the positions of the conditions that they answer.
struct IndexMatch<'a> {
    indexes: Vec<&'a UsableIndex>,
    /// The conditions on the first keys, each of which is equality with one value.
    prefix: Vec<(usize, Operand)>,
    /// The condition on the next key: equality with one of some values, or a range.
    next: (usize, Test),
    /// True if the condition on the next key is a range, or the beginning of a text.
    is_range: bool,
}

impl<'a> IndexMatch<'a> {
    /// Matches as many keys of an index with conditions as possible, from the first key on. `None` if it answers none,
    /// or if another label has no index of the same keys.
    fn find(
        index: &'a UsableIndex,
        conditions: &[Condition],
        all: &[&'a UsableIndex],
        labels: Option<&Vec<Name>>,
    ) -> Option<Self> {
        let on = |key: &Name, suits: &dyn Fn(&Test) -> bool| {
            conditions.iter().enumerate().find_map(|(at, condition)| match condition {
                Condition::Property(k, test) if k == key && suits(test) => Some((at, test)),
                _ => None,
            })
        };
        let equal_to_one = |key: &Name| match on(key, &|test| matches!(test, Test::Compare(Comparison::Eq, _)))? {
            (at, Test::Compare(_, operand)) => Some((at, operand.clone())),
            _ => None,
        };
        let mut prefix: Vec<(usize, Operand)> = index.keys.iter().map_while(equal_to_one).collect();
        let next = index.keys.get(prefix.len());
        let equality = next.and_then(|key| on(key, &|test| test.equal_operands().is_some()));
        let range = next.and_then(|key| on(key, &|test| index.info.ordered && test.is_interval()));
        let (next, is_range) = match (equality, range) {
            (Some((at, test)), _) => ((at, test.clone()), false),
            (None, Some((at, test))) => ((at, test.clone()), true),
            (None, None) => {
                let (at, operand) = prefix.pop()?;
                ((at, Test::Compare(Comparison::Eq, operand)), false)
            }
        };
        // A hash index needs values of all its keys.
        let is_complete = prefix.len() + 1 == index.keys.len();
        if !(index.info.ordered || is_complete) {
            return None;
        }
        let indexes = with_all(index, all, labels)?;
        Some(IndexMatch { indexes, prefix, next, is_range })
    }

    fn way(self) -> Way {
        let rank = self.rank();
        let search = |index: &&UsableIndex| IndexSearch {
            index: index.info.id,
            name: index.to_string(),
            prefix: self.prefix.iter().map(|(_, operand)| operand.clone()).collect(),
            test: self.next.1.clone(),
        };
        // An index orders values of all types in one line, so a range reaches into other types: `gt(1)` takes no string.
        let exact = (!self.is_range).then_some(self.next.0);
        let mut answered: Vec<usize> = self.prefix.iter().map(|(at, _)| *at).chain(exact).collect();
        answered.sort_unstable();
        Way { searches: self.indexes.iter().map(search).collect(), answered, rank }
    }

    fn rank(&self) -> Rank {
        let index = self.indexes[0];
        let equalities = self.prefix.len() + usize::from(!self.is_range);
        let first = self.prefix.first().map_or(self.next.0, |(at, _)| *at);
        Rank {
            finds_one: index.info.unique && equalities == index.keys.len(),
            equalities,
            is_range: self.is_range,
            is_union: std::cmp::Reverse(false),
            first: std::cmp::Reverse(first),
        }
    }
}

/// An index, with an index of the same keys for each other label; `None` if a label has none.
fn with_all<'a>(
    index: &'a UsableIndex,
    all: &[&'a UsableIndex],
    labels: Option<&Vec<Name>>,
) -> Option<Vec<&'a UsableIndex>> {
    let mut found = vec![index];
    let (Some(own), Some(labels)) = (&index.label, labels) else { return Some(found) };
    let serves = |other: &&&UsableIndex| other.keys == index.keys && (other.info.ordered || !index.info.ordered);
    for label in labels.iter().filter(|label| *label != own) {
        found.push(all.iter().filter(|other| other.label.as_ref() == Some(label)).find(serves)?);
    }
    Some(found)
}
