//! Label sets and the names that take them.
//!
//! Statistics and facts are about label sets, and plans name labels. A name takes the sets that have a label of the name,
//! or whose whole name it is, as in a [`LabelFilter`](mangrove_graph::LabelFilter).

use mangrove_graph::{FastMap, LabelSetId};
use smallvec::SmallVec;

use crate::logical::Name;

/// Label sets, ascending. A name mostly takes few.
pub(crate) type Sets = SmallVec<[LabelSetId; 4]>;

/// The label sets of a graph with their names.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct NamedSets {
    /// The names that take each label set, by label set. The last one is its whole name.
    names: Vec<(LabelSetId, Vec<Name>)>,
    /// The label sets that each name takes.
    taken: FastMap<Name, Sets>,
}

impl NamedSets {
    /// These label sets, in any order, with the names that `names_of` gives.
    pub fn new(mut sets: Vec<LabelSetId>, names_of: impl Fn(LabelSetId) -> Vec<Name>) -> Self {
        sets.sort_unstable();
        sets.dedup();
        let mut taken: FastMap<Name, Sets> = FastMap::default();
        let mut named = |set| {
            let names = names_of(set);
            for name in &names {
                let sets = taken.entry(name.clone()).or_default();
                // The whole name of a set of one label is that of the label.
                if sets.last() != Some(&set) {
                    sets.push(set);
                }
            }
            (set, names)
        };
        let names = sets.into_iter().map(&mut named).collect();
        NamedSets { names, taken }
    }

    /// The label sets that one of the names takes.
    pub fn taken_by(&self, names: &[Name]) -> Sets {
        if let [name] = names {
            return self.taken.get(name).cloned().unwrap_or_default();
        }
        let mut sets: Sets = names.iter().filter_map(|name| self.taken.get(name)).flatten().copied().collect();
        sets.sort_unstable();
        sets.dedup();
        sets
    }

    /// The label sets that one name of each list takes; `None` if there are no lists: all.
    pub fn taken_by_each<'n>(&self, lists: impl IntoIterator<Item = &'n [Name]>) -> Option<Sets> {
        let mut lists = lists.into_iter();
        let mut sets = self.taken_by(lists.next()?);
        for names in lists {
            let others = self.taken_by(names);
            sets.retain(|set| others.binary_search(set).is_ok());
        }
        Some(sets)
    }

    /// Returns true if one of the names takes a label set.
    pub fn is_taken(&self, set: LabelSetId, names: &[Name]) -> bool {
        names.iter().any(|name| self.taken.get(name).is_some_and(|sets| sets.binary_search(&set).is_ok()))
    }

    /// The whole name of a label set: the names of its labels in one.
    pub fn whole_name(&self, set: LabelSetId) -> Option<&Name> {
        let at = self.names.binary_search_by_key(&set, |(known, _)| *known).ok()?;
        self.names[at].1.last()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_take_the_sets_that_have_them() {
        let named: [&[&str]; 4] = [&["a"], &["b"], &["a", "b", "a::b"], &["c", "c"]];
        let names = |of: &[&str]| -> Vec<Name> { of.iter().map(|name| Name::from(*name)).collect() };
        let sets = NamedSets::new([3, 1, 0, 2, 1].map(LabelSetId).to_vec(), |set| names(named[set.0 as usize]));
        let check = |of: &[&str], expected: &[u32]| {
            let taken = sets.taken_by(&names(of));
            assert_eq!(taken.iter().map(|set| set.0).collect::<Vec<u32>>(), expected, "{of:?}");
            for set in 0..4 {
                assert_eq!(sets.is_taken(LabelSetId(set), &names(of)), expected.contains(&set), "{of:?} {set}");
            }
        };
        check(&["a"], &[0, 2]);
        check(&["b", "a"], &[0, 1, 2]);
        check(&["a::b"], &[2]);
        check(&["c"], &[3]);
        check(&["d"], &[]);
        check(&[], &[]);
        let (a, b) = (names(&["a", "c"]), names(&["b"]));
        assert_eq!(sets.taken_by_each([&a[..], &b[..]]).unwrap()[..], [LabelSetId(2)]);
        assert!(sets.taken_by_each([]).is_none());
        assert_eq!(sets.whole_name(LabelSetId(2)).unwrap(), "a::b");
    }
}
