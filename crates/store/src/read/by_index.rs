//! Searching in property indexes: candidates of indexes, checked against the values that the snapshot sees.
//!
//! A search in several indexes is for the elements that all of them find. It reads the candidates of the first one.
//! Those of another one are read only as far as that may save tests of values: an entry of a list costs less than the
//! test of a candidate. So a list that turns out to be long costs no more than the tests that it was to save.

use std::sync::Arc;

use mangrove_graph::compare::watched;
use mangrove_graph::{Error, ErrorKind, FastSet, IndexId, IndexLookup, Result, Share};
use mangrove_reclaim::epoch;

use crate::index::PropertyIndex;
use crate::read::properties::with_value;
use crate::read::view::StoreView;
use crate::store::Element;

/// What the test of a candidate's value, a look-up, and an entry of its list cost, in nanoseconds.
const TEST_NS: usize = 40;
const LOOK_UP_NS: usize = 300;
const ENTRY_NS: usize = 8;

/// A search for few elements reads at most this many entries of an index for each of them. The others are of other
/// elements that the parts of the search, or older versions, have.
const ENTRIES_FOR_ONE: usize = 16;

/// How many entries of another list may be read to save tests of so many candidates.
fn entries_worth(candidates: usize) -> usize {
    (candidates * TEST_NS).saturating_sub(LOOK_UP_NS) / ENTRY_NS
}

/// Appends the elements of [`mangrove_graph::GraphView::intersect_vertices`] and of the other methods that search in
/// indexes. Returns false, and appends nothing, if it would have to read more than `entries_max` entries of an index.
pub(crate) fn search<T: Element>(
    view: &StoreView<'_>,
    lookups: &[IndexLookup<'_>],
    share: Share,
    entries_max: usize,
    out: &mut Vec<T>,
) -> Result<bool> {
    let pin = epoch::pin();
    let indexes = view.store.indexes.load();
    let find = |lookup: &IndexLookup<'_>| {
        let usable = |index: &&Arc<PropertyIndex>| index.usable_at(view.snapshot.begin_ts);
        let found = indexes.iter().filter(usable).find(|candidate| candidate.info.id == lookup.index);
        let index = found.ok_or_else(|| dropped(lookup.index))?;
        match index.info.element == T::KIND {
            true => Ok(index),
            false => Err(Error::bug(format!(
                "index {} is of {}, not of {}",
                index.info.id.0,
                index.info.element.plural(),
                T::KIND.plural()
            ))),
        }
    };
    let found: Vec<&Arc<PropertyIndex>> = lookups.iter().map(find).collect::<Result<_>>()?;
    let all = || found.iter().zip(lookups);
    let Some((first, lookup)) = all().next() else { return Ok(true) };
    let mut candidates = Vec::new();
    if !first.candidates(lookup.prefix, lookup.range, entries_max, &mut candidates)? {
        return Ok(false);
    }
    for (index, lookup) in all().skip(1) {
        // Only the list knows which elements have the label of an index.
        let must_read = index.info.label.is_some() && index.info.label != first.info.label;
        let most = if must_read { entries_max } else { entries_worth(candidates.len()) };
        let mut others = Vec::new();
        if most > 0 && index.candidates(lookup.prefix, lookup.range, most, &mut others)? {
            let mut left: FastSet<_> = candidates.drain(..).collect();
            candidates.extend(others.into_iter().filter(|element| left.remove(element)));
        } else if must_read {
            return Ok(false);
        }
    }
    // A drop of an index removes it from the list before it empties the index. So if the candidates may be incomplete,
    // the list has changed by now.
    if !Arc::ptr_eq(&indexes, &view.store.indexes.load())
        && let Some(gone) = found.iter().find(|index| !view.store.has_index(index.info.id))
    {
        return Err(dropped(gone.info.id));
    }
    candidates.sort_unstable();
    candidates.dedup();
    let mut candidates: Vec<T> = candidates.into_iter().map(|bits| T::from_bits(bits.0)).collect();
    candidates.retain(|element| share.takes(element.tablet()));
    for (index, lookup) in all() {
        let mut keys = index.info.keys.iter();
        for (value, &key) in lookup.prefix.iter().zip(&mut keys) {
            let mut kept = Vec::new();
            with_value(view, &pin, &candidates, key, |v| watched::equal(v, value), &mut kept);
            candidates = kept;
        }
        if let Some(&key) = keys.next() {
            let mut kept = Vec::new();
            with_value(view, &pin, &candidates, key, |v| lookup.range.holds(v), &mut kept);
            candidates = kept;
        }
    }
    out.append(&mut candidates);
    Ok(true)
}

/// Appends the elements of [`mangrove_graph::GraphView::find_few_vertices`].
pub(crate) fn search_few<T: Element>(
    view: &StoreView<'_>,
    lookups: &[IndexLookup<'_>],
    share: Share,
    most: usize,
    out: &mut Vec<T>,
) -> Result<bool> {
    let before = out.len();
    let is_complete = search(view, lookups, share, most.saturating_mul(ENTRIES_FOR_ONE), out)?;
    Ok(is_complete && out.len() - before <= most)
}

fn dropped(index: IndexId) -> Error {
    Error::new(ErrorKind::NotFound, format!("index {} was dropped", index.0))
}
