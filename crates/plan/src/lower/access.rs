//! How the vertices of a source are found.

use mangrove_gremlin::Comparison;

use super::{GraphFacts, UsableIndex};
use crate::logical::{Condition, Operand, Test};
use crate::physical::Access;

/// How the vertices are found, and what is still to be tested of them: ids before an index before
/// labels before everything. An index look-up is exact, so its condition is not tested again.
pub(super) fn access(
    facts: &GraphFacts,
    ids: Option<&Vec<Operand>>,
    conditions: &[Condition],
) -> (Access, Vec<Condition>) {
    let mut rest = conditions.to_vec();
    if let Some(ids) = ids {
        return (Access::Ids(ids.clone()), rest);
    }
    // hasId(…) right behind V() names the vertices as V(…) would.
    let by_id =
        rest.iter().position(|c| matches!(c, Condition::Id(Test::Compare(Comparison::Eq, _) | Test::Within(_))));
    if let Some(at) = by_id
        && let Condition::Id(test) = rest.remove(at)
    {
        return (Access::IdSet(equal_operands(&test).unwrap_or_default()), rest);
    }
    let labels = rest.iter().find_map(|c| match c {
        Condition::LabelIn(names) => Some(names.clone()),
        _ => None,
    });
    let usable = |condition: &Condition| {
        let Condition::Property(key, test) = condition else { return None };
        let equality = equal_operands(test).is_some();
        let range = range_bounds(test).is_some();
        facts.indexes.iter().find(|(info, label, indexed)| {
            indexed == key
                && (equality || (range && info.ordered))
                && label.as_ref().is_none_or(|l| labels.as_ref().is_some_and(|names| names[..] == [l.clone()]))
        })
    };
    // Equality narrows more than a range.
    let mut found: Vec<(usize, &UsableIndex, bool)> = rest
        .iter()
        .enumerate()
        .filter_map(|(at, c)| {
            let Condition::Property(_, test) = c else { return None };
            usable(c).map(|index| (at, index, equal_operands(test).is_none()))
        })
        .collect();
    found.sort_by_key(|(.., is_range)| *is_range);
    if let Some((at, (info, label, key), _)) = found.first() {
        let description = match label {
            Some(label) => format!("{label}.{key}"),
            None => key.to_string(),
        };
        return (Access::Index { index: info.id, description, condition: *at }, rest);
    }
    match labels {
        Some(names) => {
            let at = rest.iter().position(|c| matches!(c, Condition::LabelIn(n) if *n == names));
            at.map(|at| rest.remove(at));
            (Access::Labels(names), rest)
        }
        None => (Access::All, rest),
    }
}

/// The operands a value must equal one of, if the test says just that.
pub fn equal_operands(test: &Test) -> Option<Vec<Operand>> {
    match test {
        Test::Compare(Comparison::Eq, operand) => Some(vec![operand.clone()]),
        Test::Within(operands) => Some(operands.clone()),
        _ => None,
    }
}

/// A bound of a range, and whether the bound itself belongs to it.
pub type Bound = Option<(Operand, bool)>;

/// The bounds a value must lie between, if the test says just that.
pub fn range_bounds(test: &Test) -> Option<(Bound, Bound)> {
    match test {
        Test::Compare(Comparison::Gt, o) => Some((Some((o.clone(), false)), None)),
        Test::Compare(Comparison::Gte, o) => Some((Some((o.clone(), true)), None)),
        Test::Compare(Comparison::Lt, o) => Some((None, Some((o.clone(), false)))),
        Test::Compare(Comparison::Lte, o) => Some((None, Some((o.clone(), true)))),
        Test::And(tests) => {
            let [a, b] = &tests[..] else { return None };
            match (range_bounds(a)?, range_bounds(b)?) {
                ((low, None), (None, high)) | ((None, high), (low, None)) => Some((low, high)),
                _ => None,
            }
        }
        _ => None,
    }
}
