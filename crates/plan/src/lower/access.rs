//! How a source finds its elements: by ids, an index, a scan for values, labels, or a scan of everything. The first way
//! in this order that the conditions allow is taken. Every way finds exactly the elements that meet all conditions:
//! conditions that it does not answer itself stay as a filter.

mod by_index;
mod index_match;

use mangrove_graph::ElementKind;
use mangrove_gremlin::Comparison;

use by_index::Indexes;

use crate::facts::GraphFacts;
use crate::logical::{Condition, Emit, LoopSearch, Name, Operand, Step, Test, Traversal, Until};
use crate::physical::Access;

/// A look at the steps: returns false if no source, and no search for targets, has a choice between indexes, so that
/// their sizes are of no use.
pub fn may_choose_indexes(traversal: &Traversal) -> bool {
    let reads_values =
        |condition: &Condition| matches!(condition, Condition::Property(..)) || by_index::has_branches(condition);
    let tests_values = |step: &Step| matches!(step, Step::Has(conditions) if conditions.iter().any(reads_values));
    traversal.any(|step| match step {
        Step::Vertices { conditions, .. } | Step::Edges { conditions, .. } => conditions.iter().any(reads_values),
        Step::Repeat(repeat) if matches!(repeat.search, LoopSearch::Search(_)) => {
            let until = matches!(&repeat.until, Some(Until::Traversal(until)) if until.any(tests_values));
            until || matches!(&repeat.emit, Some(Emit::Traversal(emit)) if emit.any(tests_values))
        }
        _ => false,
    })
}

/// How a source finds its elements.
pub(super) struct Found {
    pub access: Access,
    /// The conditions that are left for the source to test, unless indexes answer them.
    pub conditions: Vec<Condition>,
    /// True if other sizes of indexes may lead to another access.
    pub has_choice: bool,
}

/// The access of a source, and its remaining conditions. The condition that a look-up by id, labels or a scan for
/// values answers is removed. The conditions that indexes answer stay, because [`Access::Index`] names them by their
/// position in the list, and a run that finds an index dropped tests all of them.
pub(super) fn access(
    kind: ElementKind,
    facts: &GraphFacts,
    ids: Option<&Vec<Operand>>,
    conditions: &[Condition],
) -> Found {
    let mut rest = conditions.to_vec();
    let found = |access, conditions| Found { access, conditions, has_choice: false };
    if let Some(ids) = ids {
        return found(Access::Ids(ids.clone()), rest);
    }
    // hasId(…) directly after V() names the vertices as V(…) does.
    let by_id =
        rest.iter().position(|c| matches!(c, Condition::Id(Test::Compare(Comparison::Eq, _) | Test::Within(_))));
    if let Some(at) = by_id
        && let Condition::Id(test) = rest.remove(at)
    {
        return found(Access::IdSet(test.equal_operands().unwrap_or_default()), rest);
    }
    let indexes = Indexes::of(kind, facts);
    if let Some(access) = indexes.access(&rest) {
        return Found { access: Access::Index(access), conditions: rest, has_choice: indexes.has_choice() };
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
    found(access, rest)
}

/// Removes and returns the condition that a scan for values can answer, if there is one.
fn by_value(conditions: &mut Vec<Condition>) -> Option<(Name, Test)> {
    let found = conditions.iter().enumerate().filter_map(|(at, c)| match c {
        Condition::Property(_, test) if test.equal_operands().is_some() => Some((at, false)),
        Condition::Property(_, test) if test.is_interval() => Some((at, true)),
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
