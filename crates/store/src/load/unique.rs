//! Checking the elements of a bulk load against unique indexes, before they are published.
//!
//! Commits check each value when it is written. A bulk load sorts the keys of all its elements instead, one index after
//! another, and looks for neighbors that are equal.

use mangrove_graph::compare::equal;
use mangrove_graph::{ElementKind, Error, ErrorKind, PAGE_SLOTS, Result, VertexId};
use mangrove_reclaim::epoch;

use crate::index::{IndexKey, PropertyIndex};
use crate::load::staged::{HasPageCore, StagedPages};
use crate::store::{Slot, Store};
use crate::version::{BASE_TS, NEVER, Snapshot};
use crate::write::{Versions, each_key};

/// The place of a staged element: the index of its page, and the offset.
type Place = (usize, usize);

impl Store {
    /// Fails with `DuplicateId` if two of the staged elements have the same values of a unique index.
    pub(crate) fn check_staged_unique<P: HasPageCore>(&self, kind: ElementKind, staged: &StagedPages<P>) -> Result<()> {
        let is_checked = |index: &&std::sync::Arc<PropertyIndex>| index.info.unique && index.info.element == kind;
        self.indexes.load().iter().filter(is_checked).try_for_each(|index| self.check_staged(index, staged))
    }

    fn check_staged<P: HasPageCore>(&self, index: &PropertyIndex, staged: &StagedPages<P>) -> Result<()> {
        let mut entries: Vec<(IndexKey, Place)> = Vec::new();
        for page in 0..staged.pages.len() {
            self.add_keys(index, staged, page, &mut entries);
        }
        entries.sort_unstable_by(|(a, at), (b, other)| a.cmp(b).then(at.cmp(other)));
        // An element with two equal values has one entry for them. A value that does not equal itself (NaN) is unique.
        let is_shared = |(a, at): &(IndexKey, Place), (b, other): &(IndexKey, Place)| {
            at != other && a == b && a.values().iter().zip(b.values()).all(|(a, b)| equal(a, b))
        };
        let Some([(key, one), (_, other)]) = entries.windows(2).find_map(|pair| match pair {
            [a, b] if is_shared(a, b) => Some([a, b]),
            _ => None,
        }) else {
            return Ok(());
        };
        Err(Error::new(
            ErrorKind::DuplicateId,
            format!(
                "two {} of the load have {}, and an index keeps that unique; change one of them, or drop the index \
                 first. Their ids are {} and {}",
                index.info.element.plural(),
                self.shown(&index.info.keys, key),
                self.shown_staged_id(staged, *one),
                self.shown_staged_id(staged, *other)
            ),
        ))
    }

    /// Adds the complete keys of the elements on a page.
    fn add_keys<P: HasPageCore>(
        &self,
        index: &PropertyIndex,
        staged: &StagedPages<P>,
        page: usize,
        entries: &mut Vec<(IndexKey, Place)>,
    ) {
        let (tablet, _, staged) = &staged.pages[page];
        let (core, keys) = (staged.core(), &index.info.keys);
        if self.key_position(&index.info, (index.info.element, core.label), keys[0]).is_none() {
            return;
        }
        let tablet = self.tablet(*tablet).expect("pages are staged for tablets there are");
        let (pin, base) = (epoch::pin(), Snapshot::committed(BASE_TS));
        for at in (0..core.used()).filter(|&at| core.version(at).0 != NEVER) {
            each_key(index, &Slot { tablet, core, at }, None, Versions::From(&base), &pin, |key| {
                if key.values().len() == keys.len() {
                    entries.push((key, (page, at)));
                }
            });
        }
    }

    /// The id by which users will know a staged element, for an error message.
    fn shown_staged_id<P: HasPageCore>(&self, staged: &StagedPages<P>, (page, at): Place) -> String {
        let (tablet, number, page) = &staged.pages[page];
        let tablet = self.tablet(*tablet).expect("pages are staged for tablets there are");
        let slot = Slot { tablet, core: page.core(), at };
        // The bits of an id do not depend on the kind of the element.
        let id = VertexId::new(tablet.id, u64::from(*number) * PAGE_SLOTS + at as u64);
        self.shown_id(&slot, id.external())
    }
}
