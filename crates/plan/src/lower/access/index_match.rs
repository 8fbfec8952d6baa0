//! The conditions that an index answers, and how many elements it is expected to find.

use mangrove_gremlin::Comparison;

use crate::facts::{GraphFacts, UsableIndex};
use crate::logical::{Condition, Name, Operand, Test};
use crate::physical::IndexPart;

/// The parts of the entries that a test takes: of a range, and of one with two bounds or of the beginning of a text.
const RANGE: f64 = 0.3;
const NARROW_RANGE: f64 = 0.1;

/// An index for each label, and the positions of the conditions that they answer.
pub(super) struct IndexMatch<'a> {
    pub indexes: Vec<&'a UsableIndex>,
    /// The conditions on the first keys, each of which is equality with one value.
    prefix: Vec<(usize, Operand)>,
    /// The condition on the next key: equality with one of some values, or a range.
    next: (usize, Test),
    /// True if the condition on the next key is a range, or the beginning of a text.
    pub is_range: bool,
}

impl<'a> IndexMatch<'a> {
    /// Matches as many keys of an index with conditions as possible, from the first key on. `None` if it answers none,
    /// or if another label has no index of the same keys.
    pub fn find(
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

    /// The label and keys of its first index.
    pub fn name(&self) -> String {
        self.indexes[0].to_string()
    }

    /// The search in each index.
    pub fn parts(&self, facts: &GraphFacts) -> impl Iterator<Item = IndexPart> {
        self.indexes.iter().map(move |index| IndexPart {
            index: index.info.id,
            name: index.to_string(),
            prefix: self.prefix.iter().map(|(_, operand)| operand.clone()).collect(),
            test: self.next.1.clone(),
            expected: self.expected_of(index, facts),
        })
    }

    /// The positions of the conditions that it reads, in the order of the keys.
    pub fn conditions(&self) -> impl Iterator<Item = usize> {
        self.prefix.iter().map(|(at, _)| *at).chain([self.next.0])
    }

    /// The conditions that everything it finds meets, ascending. An index orders values of all types in one line, so a
    /// range reaches into other types: `gt(1)` takes no string.
    pub fn answered(&self) -> Vec<usize> {
        let exact = if self.is_range { self.prefix.len() } else { self.keys() };
        let mut answered: Vec<usize> = self.conditions().take(exact).collect();
        answered.sort_unstable();
        answered
    }

    /// How many keys it reads.
    pub fn keys(&self) -> usize {
        self.prefix.len() + 1
    }

    pub fn equalities(&self) -> usize {
        self.prefix.len() + usize::from(!self.is_range)
    }

    /// Returns true if the index is unique and all its keys have values.
    pub fn finds_one(&self) -> bool {
        self.indexes[0].info.unique && self.equalities() == self.indexes[0].keys.len()
    }

    /// How many values of the last key are looked for.
    pub fn values(&self) -> usize {
        self.next.1.equal_operands().map_or(1, |operands| operands.len())
    }

    /// The elements that it is expected to find, if the sizes of its indexes are known.
    pub fn expected(&self, facts: &GraphFacts) -> Option<f64> {
        self.indexes.iter().map(|index| self.expected_of(index, facts)).sum()
    }

    /// The part of the entries of its indexes that it is expected to find.
    pub fn share(&self, facts: &GraphFacts) -> Option<f64> {
        let of = |index: &&UsableIndex| facts.size(index.info.id).map(|size| size.entries as f64);
        let entries: f64 = self.indexes.iter().map(of).sum::<Option<f64>>()?;
        Some((self.expected(facts)? / entries.max(1.0)).min(1.0))
    }

    /// The entries that the values of the run have. If these are unknown, the values of all keys are taken to be spread
    /// evenly, and those of several keys to be as many as each other.
    fn expected_of(&self, index: &UsableIndex, facts: &GraphFacts) -> Option<f64> {
        let size = facts.size(index.info.id)?;
        let (entries, distinct) = (size.entries as f64, (size.distinct as f64).max(1.0));
        if !self.finds_one() {
            let prefix: Vec<Operand> = self.prefix.iter().map(|(_, operand)| operand.clone()).collect();
            if let Some(found) = facts.values.entries(index.info.id, &prefix, &self.next.1) {
                return Some((found as f64).min(entries));
            }
        }
        let of_one = entries / distinct.powf(self.equalities() as f64 / index.keys.len() as f64);
        let taken = match &self.next.1 {
            test if !self.is_range => test.equal_operands().map_or(1.0, |operands| operands.len() as f64),
            Test::And(_) | Test::Text(..) => NARROW_RANGE,
            _ => RANGE,
        };
        Some((of_one * taken).min(entries))
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
