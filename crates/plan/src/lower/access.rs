//! How a source finds its elements: by ids, an index, a scan for values, labels, or a scan of everything. The first way
//! in this order that the conditions allow is taken. Every way finds exactly the elements that meet all conditions:
//! conditions that it does not answer itself stay as a filter.

use mangrove_graph::ElementKind;
use mangrove_gremlin::Comparison;

use super::UsableIndex;
use crate::logical::{Condition, Name, Operand, Test};
use crate::physical::Access;

/// The access of a source, and its remaining conditions. The condition that a look-up by id, labels or a scan for
/// values answers is removed. The conditions that an index answers stay, because [`Access::Index`] names them by their
/// position in the list. Of these the source operator tests only a range again: an index orders values of all types,
/// but `gt(1)` takes no string.
pub(super) fn access(
    kind: ElementKind,
    indexes: &[UsableIndex],
    ids: Option<&Vec<Operand>>,
    conditions: &[Condition],
) -> (Access, Vec<Condition>) {
    let mut rest = conditions.to_vec();
    if let Some(ids) = ids {
        return (Access::Ids(ids.clone()), rest);
    }
    // hasId(…) directly after V() names the vertices as V(…) does.
    let by_id =
        rest.iter().position(|c| matches!(c, Condition::Id(Test::Compare(Comparison::Eq, _) | Test::Within(_))));
    if let Some(at) = by_id
        && let Condition::Id(test) = rest.remove(at)
    {
        return (Access::IdSet(test.equal_operands().unwrap_or_default()), rest);
    }
    if let Some(access) = by_index(kind, indexes, &rest) {
        return (access, rest);
    }
    let labels = rest.iter().position(|c| matches!(c, Condition::LabelIn(_))).map(|at| rest.remove(at));
    let labels = match labels {
        Some(Condition::LabelIn(names)) => Some(names),
        _ => None,
    };
    let access = match by_value(&mut rest) {
        Some((key, test)) => Access::Where { labels, key, test },
        None => labels.map_or(Access::All, Access::Labels),
    };
    (access, rest)
}

/// The best access by an index of this kind of elements, if one answers conditions.
fn by_index(kind: ElementKind, indexes: &[UsableIndex], conditions: &[Condition]) -> Option<Access> {
    let labels = conditions.iter().find_map(|c| match c {
        Condition::LabelIn(names) => Some(names),
        _ => None,
    });
    let indexes: Vec<&UsableIndex> = indexes.iter().filter(|index| index.info.element == kind).collect();
    // An index with a label covers that label alone. For several labels, each must have an index that answers the same
    // conditions.
    let covers = |index: &&&UsableIndex| match &index.label {
        None => true,
        Some(label) => labels.is_some_and(|names| names.first() == Some(label)),
    };
    let matches = indexes.iter().filter(covers).filter_map(|index| IndexMatch::find(index, conditions));
    let matches = matches.filter_map(|found| Some((found.with_all(&indexes, labels)?, found)));
    // Of equally good matches, the match with the first condition in the traversal wins, then the oldest index.
    let (all, best) = matches.reduce(|best, next| if next.1.rank() > best.1.rank() { next } else { best })?;
    let description = all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
    let indexes = all.iter().map(|index| index.info.id).collect();
    Some(Access::Index { indexes, description, prefix: best.prefix, condition: best.condition })
}

/// Removes and returns the condition that a scan for values can answer, if there is one.
fn by_value(conditions: &mut Vec<Condition>) -> Option<(Name, Test)> {
    let found = conditions.iter().enumerate().filter_map(|(at, c)| match c {
        Condition::Property(_, test) if test.equal_operands().is_some() => Some((at, false)),
        Condition::Property(_, test) if test.range_bounds().is_some() => Some((at, true)),
        _ => None,
    });
    let (at, _) = found.min_by_key(|(_, is_range)| *is_range)?;
    match conditions.remove(at) {
        Condition::Property(key, test) => Some((key, test)),
        other => {
            conditions.insert(at, other);
            None
        }
    }
}

/// An index, and the positions of the conditions that it answers.
struct IndexMatch<'a> {
    index: &'a UsableIndex,
    /// The conditions on its first keys, each of which is equality with one value.
    prefix: Vec<usize>,
    /// The condition on the next key: equality with one of some values, or a range.
    condition: usize,
    /// True if the condition on the next key is a range.
    is_range: bool,
}

impl<'a> IndexMatch<'a> {
    /// Matches as many keys of the index with conditions as possible, from the first key on. `None` if it answers none.
    fn find(index: &'a UsableIndex, conditions: &[Condition]) -> Option<Self> {
        let on = |key: &Name, suits: &dyn Fn(&Test) -> bool| {
            conditions.iter().position(|c| matches!(c, Condition::Property(k, test) if k == key && suits(test)))
        };
        let equals_one = |test: &Test| matches!(test, Test::Compare(Comparison::Eq, _));
        let mut prefix: Vec<usize> = index.keys.iter().map_while(|key| on(key, &equals_one)).collect();
        let next = index.keys.get(prefix.len());
        let equality = next.and_then(|key| on(key, &|test| test.equal_operands().is_some()));
        let range = next.and_then(|key| on(key, &|test| index.info.ordered && test.range_bounds().is_some()));
        let (condition, is_range) = match (equality, range) {
            (Some(at), _) => (at, false),
            (None, Some(at)) => (at, true),
            (None, None) => (prefix.pop()?, false),
        };
        // A hash index needs values of all its keys.
        let is_complete = prefix.len() + 1 == index.keys.len();
        (index.info.ordered || is_complete).then_some(IndexMatch { index, prefix, condition, is_range })
    }

    /// The index, with an index of the same keys for each other label; `None` if a label has none.
    fn with_all(&self, indexes: &[&'a UsableIndex], labels: Option<&Vec<Name>>) -> Option<Vec<&'a UsableIndex>> {
        let mut all = vec![self.index];
        let (Some(own), Some(labels)) = (&self.index.label, labels) else { return Some(all) };
        let serves =
            |index: &&&UsableIndex| index.keys == self.index.keys && (index.info.ordered || !self.index.info.ordered);
        for label in labels.iter().filter(|label| *label != own) {
            all.push(indexes.iter().filter(|index| index.label.as_ref() == Some(label)).find(serves)?);
        }
        Some(all)
    }

    /// The rank of the match: the greater is better. A unique index whose keys all have values comes first, then more
    /// equalities (equality narrows more than a range), then a range in addition, then the earlier first condition.
    fn rank(&self) -> (bool, usize, bool, std::cmp::Reverse<usize>) {
        let equalities = self.prefix.len() + usize::from(!self.is_range);
        let finds_one = self.index.info.unique && equalities == self.index.keys.len();
        let first = self.prefix.first().copied().unwrap_or(self.condition);
        (finds_one, equalities, self.is_range, std::cmp::Reverse(first))
    }
}
