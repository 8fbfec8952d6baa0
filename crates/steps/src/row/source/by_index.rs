//! Finding elements by indexes: the searches of an access with the values of a run.

use mangrove_graph::{ElementKind, Error, FastSet, IndexId, IndexLookup, IndexRange, Need, Result, Value, VertexId};
use mangrove_plan::logical::{Condition, Operand, Test};
use mangrove_plan::physical::{IndexAccess, IndexPart, IndexSearch};

use crate::context::execution::ExecutionContext;
use crate::row::filter::Filter;
use crate::rows::ObjectColumn;
use crate::values::predicate::{text_of, within_values};

/// The searches of a run: the elements are their union. Each has parts, and finds what all of them find.
pub(in crate::row) struct IndexSearches(Vec<Vec<ReadyPart>>);

/// A search in one index with its values.
struct ReadyPart {
    index: IndexId,
    prefix: Vec<Value>,
    range: IndexRange,
}

impl ReadyPart {
    fn new(part: &IndexPart, context: &ExecutionContext) -> Result<Self> {
        Ok(ReadyPart {
            index: part.index,
            prefix: part.prefix.iter().map(|operand| context.resolve(operand)).collect::<Result<_>>()?,
            range: index_range(&part.test, context)?,
        })
    }

    fn look_up(&self) -> IndexLookup<'_> {
        IndexLookup { index: self.index, prefix: &self.prefix, range: &self.range }
    }
}

impl IndexSearches {
    /// The searches of an access with the values of their operands.
    pub fn new(access: &IndexAccess, context: &ExecutionContext) -> Result<Self> {
        let ready = |search: &IndexSearch| search.parts.iter().map(|part| ReadyPart::new(part, context)).collect();
        access.searches.iter().map(ready).collect::<Result<_>>().map(IndexSearches)
    }

    /// What the searches read.
    pub fn needs(&self, context: &ExecutionContext) -> Need<'_> {
        Need::all(self.0.iter().flatten().map(|part| Need::Index {
            index: part.index,
            prefix: part.prefix.as_slice().into(),
            range: &part.range,
            share: context.share,
        }))
    }

    /// Returns the elements that one of the searches finds, each once.
    pub fn find(&self, kind: ElementKind, context: &ExecutionContext) -> Result<ObjectColumn> {
        let (view, share) = (&*context.view, context.share);
        Ok(match kind {
            ElementKind::Vertex => ObjectColumn::Vertices(self.each_once(|parts, found| match parts {
                [one] => view.index_vertices(one.index, &one.prefix, &one.range, share, found),
                parts => {
                    let look_ups: Vec<IndexLookup<'_>> = parts.iter().map(ReadyPart::look_up).collect();
                    view.intersect_vertices(&look_ups, share, found)
                }
            })?),
            ElementKind::Edge => ObjectColumn::Edges(self.each_once(|parts, found| match parts {
                [one] => view.index_edges(one.index, &one.prefix, &one.range, share, found),
                parts => {
                    let look_ups: Vec<IndexLookup<'_>> = parts.iter().map(ReadyPart::look_up).collect();
                    view.intersect_edges(&look_ups, share, found)
                }
            })?),
        })
    }

    /// Returns the vertices that one of the searches finds, in any order, or `None` if they are more than `most`, or if
    /// it would cost much to know.
    pub fn find_few(&self, most: usize, context: &ExecutionContext) -> Result<Option<Vec<VertexId>>> {
        let mut found = Vec::new();
        for parts in &self.0 {
            let look_ups: Vec<IndexLookup<'_>> = parts.iter().map(ReadyPart::look_up).collect();
            if !context.view.find_few_vertices(&look_ups, context.share, most, &mut found)? {
                return Ok(None);
            }
            found.sort_unstable();
            found.dedup();
            if found.len() > most {
                return Ok(None);
            }
        }
        Ok(Some(found))
    }

    /// Calls `search` for the parts of each search with the list that the elements go to. Each element comes once.
    fn each_once<T: Copy + Eq + std::hash::Hash>(
        &self,
        mut search: impl FnMut(&[ReadyPart], &mut Vec<T>) -> Result<()>,
    ) -> Result<Vec<T>> {
        let mut ids = Vec::new();
        self.0.iter().try_for_each(|parts| search(parts, &mut ids))?;
        if self.0.len() > 1 {
            keep_first(&mut ids);
        }
        Ok(ids)
    }
}

/// Returns a filter for the conditions that an access by indexes does not answer. It runs on the elements that they find.
pub(super) fn remaining_filter(access: &IndexAccess, conditions: &[Condition]) -> Option<Filter> {
    let is_left = |(at, _): &(usize, &Condition)| access.answered.binary_search(at).is_err();
    let left: Vec<Condition> =
        conditions.iter().enumerate().filter(is_left).map(|(_, condition)| condition.clone()).collect();
    (!left.is_empty()).then(|| Filter::new(&left))
}

/// Removes all but the first of equal ids.
pub(super) fn keep_first<T: Copy + Eq + std::hash::Hash>(ids: &mut Vec<T>) {
    let mut seen = FastSet::with_capacity_and_hasher(ids.len(), Default::default());
    ids.retain(|id| seen.insert(*id));
}

/// The values that pass an equality or a range, or that begin with a text.
pub(super) fn index_range(test: &Test, context: &ExecutionContext) -> Result<IndexRange> {
    if let Test::Within(operands) = test {
        return Ok(IndexRange::Equal(within_values(operands, context)?));
    }
    if let Some(operands) = test.equal_operands() {
        return Ok(IndexRange::Equal(operands.iter().map(|o| context.resolve(o)).collect::<Result<_>>()?));
    }
    if let Some(beginning) = test.beginning() {
        return Ok(IndexRange::beginning_with(&text_of(&context.resolve(beginning)?)?));
    }
    let (low, high) = test.range_bounds().ok_or_else(|| Error::bug("the planner looks up only equality and ranges"))?;
    let resolve = |(operand, inside): (Operand, bool)| Ok::<_, Error>((context.resolve(&operand)?, inside));
    let bound = |b: Option<(Operand, bool)>| b.map(resolve).transpose();
    Ok(IndexRange::Between { low: bound(low)?, high: bound(high)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_text() -> impl Strategy<Value = String> {
        let characters = vec!['a', 'b', '\u{0}', '\u{d7ff}', '\u{e000}', char::MAX];
        prop::collection::vec(prop::sample::select(characters), 0..4).prop_map(|text| text.into_iter().collect())
    }

    proptest! {
        #[test]
        fn a_range_has_the_texts_with_a_beginning(beginning in any_text(), text in any_text()) {
            prop_assert_eq!(IndexRange::beginning_with(&beginning).holds(&Value::from(&*text)), text.starts_with(&beginning));
        }
    }

    /// A character is compared as a text. The condition is tested again, since a range is not exact.
    #[test]
    fn a_range_of_texts_has_nothing_that_is_not_compared_as_a_text() {
        for value in [Value::I32(1), Value::Null, Value::Bool(true)] {
            assert!(
                !IndexRange::beginning_with("").holds(&value) && !IndexRange::beginning_with("a").holds(&value),
                "{value:?}"
            );
        }
    }
}
