//! Searching in property indexes: candidates of an index, checked against the values that the snapshot sees.

use std::sync::Arc;

use mangrove_graph::compare::watched;
use mangrove_graph::{Error, ErrorKind, IndexId, IndexRange, Result, Share, Value};
use mangrove_reclaim::epoch;

use crate::index::PropertyIndex;
use crate::read::properties::with_value;
use crate::read::view::StoreView;
use crate::store::Element;

/// Appends the elements of [`mangrove_graph::GraphView::index_vertices`] and of `index_edges`.
pub(crate) fn search<T: Element>(
    view: &StoreView<'_>,
    index: IndexId,
    prefix: &[Value],
    range: &IndexRange,
    share: Share,
    out: &mut Vec<T>,
) -> Result<()> {
    let pin = epoch::pin();
    let indexes = view.store.indexes.load();
    let usable = |index: &&Arc<PropertyIndex>| index.usable_at(view.snapshot.begin_ts);
    let found = indexes.iter().filter(usable).find(|candidate| candidate.info.id == index);
    let index = found.ok_or_else(|| dropped(index))?;
    if index.info.element != T::KIND {
        let message =
            format!("index {} is of {}, not of {}", index.info.id.0, index.info.element.plural(), T::KIND.plural());
        return Err(Error::bug(message));
    }
    let mut candidates = Vec::new();
    index.candidates(prefix, range, &mut candidates)?;
    // A drop of the index removes it from the list before it empties the index. So if the candidates may be
    // incomplete, the list has changed by now.
    if !Arc::ptr_eq(&indexes, &view.store.indexes.load()) && !view.store.has_index(index.info.id) {
        return Err(dropped(index.info.id));
    }
    candidates.sort_unstable();
    candidates.dedup();
    let mut candidates: Vec<T> = candidates.into_iter().map(|bits| T::from_bits(bits.0)).collect();
    candidates.retain(|element| share.takes(element.tablet()));
    for (&key, value) in index.info.keys.iter().zip(prefix) {
        let mut kept = Vec::new();
        with_value(view, &pin, &candidates, key, |v| watched::equal(v, value), &mut kept);
        candidates = kept;
    }
    if let Some(&key) = index.info.keys.get(prefix.len()) {
        with_value(view, &pin, &candidates, key, |v| range.holds(v), out);
    }
    Ok(())
}

fn dropped(index: IndexId) -> Error {
    Error::new(ErrorKind::NotFound, format!("index {} was dropped", index.0))
}
