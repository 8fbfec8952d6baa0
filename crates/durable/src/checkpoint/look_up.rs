//! Reading the look-up indexes of a checkpoint by ranges of its packs.
//!
//! The directories of the packs are read when the indexes are opened. The head of a run is read once, with one range. After that
//! a look-up takes one range of each run, and the image of the page of each candidate of a hash. An ordered run has the values
//! themselves, so no image is read.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use hashbrown::HashMap;
use mangrove_graph::compare::order;
use mangrove_graph::{Catalog, ElementId, Error, Result, Value};
use mangrove_store::image::{PageImage, PageName};
use parking_lot::Mutex;

use super::image::ImageReader;
use super::live::{LivePacks, PagePlace};
use super::load::{each_body, live_packs, open_packs};
use super::names::read_names;
use super::pack::{BlockName, PackReader};
use super::place::Place;
use crate::damage::damaged_in;
use crate::manifest::{Manifest, ManifestRun};
use crate::open::runs::{Entry, LookUpIndex, LookUpKey, RunHead, RunKey};

/// A limit of a range; true if the range includes the value. `None`: no limit.
type Limit<'a> = Option<(&'a Value, bool)>;

/// The look-up indexes of a manifest.
pub(crate) struct LookUps<'a> {
    /// In the order of the manifest.
    readers: Vec<PackReader<'a>>,
    packs: LivePacks,
    catalog: Catalog,
    indexes: Vec<LookUpIndex>,
    /// The heads that were read, by the place of their pack and their name.
    heads: Mutex<HashMap<(u64, BlockName), Arc<RunHead>>>,
}

impl<'a> LookUps<'a> {
    /// Opens the look-up indexes of a manifest.
    ///
    /// # Errors
    ///
    /// If the catalog or the directory of a pack is damaged, or the manifest has an index that the catalog does not define.
    pub(crate) fn open<P: Place + ?Sized>(place: &'a P, manifest: &Manifest) -> Result<Self> {
        let readers = open_packs(place, &manifest.packs, manifest.database, place.reading_threads(1))?;
        let packs = live_packs(place, manifest, readers.iter().map(|reader| reader.blocks.as_slice()))?;
        let catalog = Catalog::new();
        let named =
            manifest.names_pack().map(|named| manifest.packs.iter().zip(&readers).find(|(pack, _)| *pack == named));
        let defined = match named.flatten() {
            Some((_, reader)) => reader.catalog(|bytes| read_names(bytes, &catalog))?.0.list,
            None => Vec::new(),
        };
        let defined = LookUpIndex::all(&defined);
        let mut indexes = Vec::with_capacity(manifest.indexes.len());
        for index in &manifest.indexes {
            let is_it = |defined: &&LookUpIndex| (defined.kind(), defined.number) == (index.kind, index.number);
            indexes.push(defined.iter().find(is_it).cloned().ok_or_else(|| {
                let what = format!(
                    "it has runs of index {} of kind {}, and its catalog has no such index",
                    index.number, index.kind
                );
                damaged_in(&place.describe(&Manifest::path(manifest.version)), 0, what)
            })?);
        }
        Ok(LookUps { readers, packs, catalog, indexes, heads: Mutex::default() })
    }

    /// The indexes.
    pub(crate) fn indexes(&self) -> &[LookUpIndex] {
        &self.indexes
    }

    /// The names of the graph.
    pub(crate) fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The elements with a chosen id, or with these values under all keys of an index; of an ordered index also under its first
    /// keys.
    pub(crate) fn find(&self, index: &LookUpIndex, key: LookUpKey<'_>) -> Result<Vec<ElementId>> {
        let hash = match (key, key.hash(index)) {
            (_, Some(hash)) => RunKey::Hash(hash),
            (LookUpKey::Values(values), None) => {
                let Some((last, prefix)) = values.split_last() else { return Ok(Vec::new()) };
                let limit = Some((last, true));
                let found = self.between(index, prefix, limit, limit)?;
                return Ok(distinct(found.into_iter().map(|(_, element)| element).collect()));
            }
            (LookUpKey::Id(_), None) => return Err(Error::bug("a look-up index of values was asked for an id")),
        };
        let candidates = self.counting(index, |key| key.cmp(&hash))?;
        let (mut found, mut images) = (Vec::new(), HashMap::<PageName, PageImage>::new());
        for entry in candidates {
            let page = entry.page(index.element);
            if !images.contains_key(&page) {
                images.insert(page, self.image(page)?);
            }
            if index.has(&images[&page], &entry, key) {
                found.push(ElementId::from_bits(index.element, entry.element));
            }
        }
        Ok(distinct(found))
    }

    /// The elements that have these values under the first keys of an ordered index, and a value between two limits under the
    /// next key. They are in the order of the values, each with its values.
    pub(crate) fn between(
        &self,
        index: &LookUpIndex,
        prefix: &[Value],
        low: Limit<'_>,
        high: Limit<'_>,
    ) -> Result<Vec<(Box<[Value]>, ElementId)>> {
        let mut found = self.counting(index, |key| match key {
            RunKey::Hash(_) => Ordering::Less,
            RunKey::Values(values) => position(values, prefix, low, high),
        })?;
        found.sort_unstable();
        let found = found.into_iter().filter_map(|entry| match entry.key {
            RunKey::Values(values) => Some((values, ElementId::from_bits(index.element, entry.element))),
            RunKey::Hash(_) => None,
        });
        Ok(found.collect())
    }

    /// The entries of an index that count (LOG-104) and whose keys are in an interval. `position` says where a key is: before it,
    /// in it, or after it.
    fn counting(&self, index: &LookUpIndex, position: impl Fn(&RunKey) -> Ordering) -> Result<Vec<Entry>> {
        let name = BlockName::of_run(index);
        let mut found = Vec::new();
        for (run, place) in self.runs(index) {
            let head = self.head(name, run, *place)?;
            let stripes: Range<usize> = head.stripes_between(|key| position(key).is_lt(), |key| position(key).is_gt());
            let entries = self.readers[place.pack as usize].stripes(place.position, &head, stripes)?;
            let counts = |entry: &Entry| position(&entry.key).is_eq() && self.counts(index, place.pack, entry);
            found.extend(entries.into_iter().filter(counts));
        }
        Ok(found)
    }

    fn runs(&self, index: &LookUpIndex) -> &[(ManifestRun, PagePlace)] {
        self.packs.index((index.kind(), index.number)).map_or(&[], |live| live.runs.as_slice())
    }

    /// LOG-104, of an entry of a run in a pack.
    fn counts(&self, index: &LookUpIndex, pack: u64, entry: &Entry) -> bool {
        self.packs.image_of(entry.page(index.element)).is_some_and(|image| image.pack <= pack)
    }

    fn head(&self, name: BlockName, run: &ManifestRun, place: PagePlace) -> Result<Arc<RunHead>> {
        let known = self.heads.lock().get(&(place.pack, name)).cloned();
        if let Some(head) = known {
            return Ok(head);
        }
        let head = Arc::new(self.readers[place.pack as usize].run_head(name, place.position, run.head)?);
        self.heads.lock().insert((place.pack, name), head.clone());
        Ok(head)
    }

    /// The image of a page that counts.
    fn image(&self, page: PageName) -> Result<PageImage> {
        let place = self.packs.image_of(page).ok_or_else(|| Error::bug(format!("{page} has no image")))?;
        let (reader, name) = (&self.readers[place.pack as usize], BlockName::of_page(page));
        let body = reader.body(name, place.position)?;
        reader.image(&mut ImageReader::default(), page, place.position, &body)
    }

    /// Calls `each` with every image that counts.
    pub(crate) fn each_image(&self, each: &mut dyn FnMut(&PageImage)) -> Result<()> {
        let mut images = ImageReader::default();
        let blocks = self.packs.newest().map(|(page, place)| (BlockName::of_page(page), place));
        each_body(&self.readers, blocks, |reader, name, position, body| {
            let page = name.page().expect("these are the blocks of pages");
            each(&reader.image(&mut images, page, position, body)?);
            Ok(())
        })
    }

    /// Calls `each` with every run of an index, all of which is checked, with its pack and the entries of it that count.
    pub(crate) fn each_run(
        &self,
        index: &LookUpIndex,
        each: &mut dyn FnMut(RunFound<'_, 'a>) -> Result<()>,
    ) -> Result<()> {
        let name = BlockName::of_run(index);
        for (run, place) in self.runs(index) {
            let reader = &self.readers[place.pack as usize];
            let body = reader.body(name, place.position)?;
            let (head, mut entries) = reader.run(name, place.position, &body)?;
            entries.retain(|entry| self.counts(index, place.pack, entry));
            each(RunFound { reader, offset: place.position.offset, said: *run, head, entries })?;
        }
        Ok(())
    }
}

fn distinct(mut elements: Vec<ElementId>) -> Vec<ElementId> {
    elements.sort_unstable_by_key(|element| element.to_bits());
    elements.dedup();
    elements
}

/// A run that was read whole.
pub(crate) struct RunFound<'l, 'a> {
    pub(crate) reader: &'l PackReader<'a>,
    /// The offset of its block.
    pub(crate) offset: u64,
    /// What the manifest says of it.
    pub(crate) said: ManifestRun,
    pub(crate) head: RunHead,
    /// The entries that count.
    pub(crate) entries: Vec<Entry>,
}

/// `Less` for values before an interval, `Equal` for values in it, `Greater` for values after it.
fn position(values: &[Value], prefix: &[Value], low: Limit<'_>, high: Limit<'_>) -> Ordering {
    for (value, wanted) in values.iter().zip(prefix) {
        match order(value, wanted) {
            Ordering::Equal => {}
            unequal => return unequal,
        }
    }
    // An element that lacks the key comes before all that have it.
    let Some(next) = values.get(prefix.len()) else { return Ordering::Less };
    let is_before = |limit: Limit<'_>| {
        limit.is_some_and(|(low, inclusive)| {
            let order = order(next, low);
            order.is_lt() || (order.is_eq() && !inclusive)
        })
    };
    let is_after = |limit: Limit<'_>| {
        limit.is_some_and(|(high, inclusive)| {
            let order = order(next, high);
            order.is_gt() || (order.is_eq() && !inclusive)
        })
    };
    match (is_before(low), is_after(high)) {
        (true, _) => Ordering::Less,
        (_, true) => Ordering::Greater,
        _ => Ordering::Equal,
    }
}
