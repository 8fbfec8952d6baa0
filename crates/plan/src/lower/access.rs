//! How the elements of a source are found.

use mangrove_gremlin::Comparison;

use super::UsableIndex;
use crate::logical::{Condition, Name, Operand, Test};
use crate::physical::Access;

/// How the elements are found, and what is still to be tested of them: ids before an index before a scan for
/// values before labels before everything. An equality look-up and a scan for values are exact, so their condition
/// is not tested again.
pub(super) fn access(
    indexes: &[UsableIndex],
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
    if let Some(access) = by_index(indexes, &rest) {
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

fn by_index(indexes: &[UsableIndex], conditions: &[Condition]) -> Option<Access> {
    let labels = conditions.iter().find_map(|c| match c {
        Condition::LabelIn(names) => Some(names),
        _ => None,
    });
    let usable = |key: &Name, test: &Test| {
        indexes.iter().find(|(info, label, indexed)| {
            indexed == key
                && (equal_operands(test).is_some() || (range_bounds(test).is_some() && info.ordered))
                && label.as_ref().is_none_or(|l| labels.is_some_and(|names| names[..] == [l.clone()]))
        })
    };
    let found = conditions.iter().enumerate().filter_map(|(at, c)| {
        let Condition::Property(key, test) = c else { return None };
        usable(key, test).map(|index| (at, index, equal_operands(test).is_none()))
    });
    // Equality narrows more than a range.
    let (at, (info, label, key), _) = found.min_by_key(|(.., is_range)| *is_range)?;
    let description = match label {
        Some(label) => format!("{label}.{key}"),
        None => key.to_string(),
    };
    Some(Access::Index { index: info.id, description, condition: at })
}

/// Takes the condition out that a scan for values can answer, if there is one.
fn by_value(conditions: &mut Vec<Condition>) -> Option<(Name, Test)> {
    let found = conditions.iter().enumerate().filter_map(|(at, c)| match c {
        Condition::Property(_, test) if equal_operands(test).is_some() => Some((at, false)),
        Condition::Property(_, test) if range_bounds(test).is_some() => Some((at, true)),
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
