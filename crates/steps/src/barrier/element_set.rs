//! Sets of vertices or of edges, by scope instance.
//!
//! A small set is a hash table of elements. A larger one is a hash table of *pages*: elements with adjacent ids share a
//! page, in which each is a bit. If a traversal reaches many of the vertices of a label, pages take a tenth of the
//! memory of a table of elements, and most look-ups find their page in the cache.
//!
//! ```text
//!  entries ── 1,024, 4,096, … 262,144 elements: two or more share a page? ──► pages
//!     ▲                             │ no
//!     └─────────────────────────────┘
//! ```

use mangrove_flow::TagSet;
use mangrove_graph::FastSet;

use crate::limits::table::PartitionedTable;

/// The elements of a page, one for each bit.
const PAGE_ELEMENTS: u64 = u128::BITS as u64;

/// The approximate bytes of a page: key and bits, control byte, load factor.
const PAGE_BYTES: u64 = 48;

/// The approximate bytes of an element in a table of elements: tag and id, control byte, load factor.
const ENTRY_BYTES: u64 = 24;

/// The elements of a page for which it takes no more memory than a table of elements.
const DENSE_PAGE: usize = (PAGE_BYTES / ENTRY_BYTES) as usize;

/// The number of elements at which a set is first looked at. Each further look comes at four times as many.
const LOOK_FIRST: usize = 1 << 10;

/// The number of elements of the last look. To make pages of more would be a long pause.
const LOOK_LAST: usize = 1 << 18;

/// A look counts one page in this many.
const SAMPLE: u64 = 16;

/// Returns the number of the page of an element.
pub(super) fn page_of(bits: u64) -> u64 {
    bits / PAGE_ELEMENTS
}

/// Returns a hash of a page, whose highest bits are spread evenly.
pub(super) fn page_hash(tag: u32, bits: u64) -> u64 {
    /// 2^64 divided by the golden ratio.
    const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
    (page_of(bits) ^ (u64::from(tag) << 32)).wrapping_mul(SPREAD)
}

/// A set of elements in pages, by instance and page number.
#[derive(Debug, Default)]
pub(super) struct ElementPages(PartitionedTable<(u32, u64), u128>);

impl ElementPages {
    /// Adds an element. Returns true if it is new.
    pub fn insert(&mut self, tag: u32, bits: u64) -> bool {
        let (page, _) = self.0.get_or_insert_with((tag, page_of(bits)), || 0);
        let bit = 1 << (bits % PAGE_ELEMENTS);
        let is_new = *page & bit == 0;
        *page |= bit;
        is_new
    }

    /// Adds the elements of a page.
    pub fn insert_page(&mut self, page: Page) {
        *self.0.get_or_insert_with((page.tag, page.number), || 0).0 |= page.elements;
    }

    /// Returns about how many bytes the pages take.
    pub fn bytes(&self) -> u64 {
        self.0.len() as u64 * PAGE_BYTES
    }
}

/// Some elements of an instance that have adjacent ids.
pub(crate) struct Page {
    tag: u32,
    number: u64,
    /// A bit for each element.
    elements: u128,
}

impl Page {
    /// The page of one element.
    fn of(tag: u32, bits: u64) -> Self {
        Page { tag, number: page_of(bits), elements: 1 << (bits % PAGE_ELEMENTS) }
    }

    /// Returns the instance of the elements.
    pub fn tag(&self) -> u32 {
        self.tag
    }

    /// Returns the elements as words of bits, each with the id of its first element divided by 64.
    pub fn words(&self) -> [(u64, u64); 2] {
        let first = self.number * (PAGE_ELEMENTS / u64::from(u64::BITS));
        [(first, self.elements as u64), (first + 1, (self.elements >> u64::BITS) as u64)]
    }

    /// Returns the hash of the page ([`page_hash`]).
    pub fn hash(&self) -> u64 {
        page_hash(self.tag, self.number * PAGE_ELEMENTS)
    }
}

#[derive(Debug)]
enum Form {
    Entries(PartitionedTable<(u32, u64)>),
    Pages(ElementPages),
}

impl Default for Form {
    fn default() -> Self {
        Form::Entries(PartitionedTable::default())
    }
}

/// See the header of this file.
#[derive(Debug)]
pub(crate) struct ElementSet {
    form: Form,
    len: usize,
    /// The number of elements at which the set is looked at next.
    next_look: usize,
    /// The bytes of the elements when they became pages. The set counts for at least as many, so that its bytes never
    /// shrink when an element is added.
    bytes_min: u64,
}

impl Default for ElementSet {
    fn default() -> Self {
        ElementSet { form: Form::default(), len: 0, next_look: LOOK_FIRST, bytes_min: 0 }
    }
}

impl ElementSet {
    /// Adds an element of an instance, given by the bits of its id. Returns true if it is new.
    pub fn insert(&mut self, tag: u32, bits: u64) -> bool {
        let is_new = match &mut self.form {
            Form::Entries(entries) => entries.insert((tag, bits)),
            Form::Pages(pages) => pages.insert(tag, bits),
        };
        self.len += usize::from(is_new);
        if self.len >= self.next_look {
            self.look();
        }
        is_new
    }

    /// Adds the elements of a message, each with its instance. Returns the rows with those that are new.
    pub fn insert_all(&mut self, elements: impl Iterator<Item = (u32, u64)>) -> Vec<u32> {
        let rows = elements.zip(0..);
        let new: Vec<u32> = match &mut self.form {
            Form::Entries(entries) => rows.filter(|(key, _)| entries.insert(*key)).map(|(_, row)| row).collect(),
            Form::Pages(pages) => {
                rows.filter(|((tag, bits), _)| pages.insert(*tag, *bits)).map(|(_, row)| row).collect()
            }
        };
        self.len += new.len();
        if self.len >= self.next_look {
            self.look();
        }
        new
    }

    /// Makes pages of the elements if enough of them share one.
    #[cold]
    fn look(&mut self) {
        while self.next_look <= self.len {
            self.next_look = if self.next_look < LOOK_LAST { self.next_look * 4 } else { usize::MAX };
        }
        let Form::Entries(entries) = &mut self.form else { return };
        let (mut elements, mut pages) = (0, FastSet::default());
        entries.keys().filter(|(tag, bits)| page_hash(*tag, *bits) < u64::MAX / SAMPLE).for_each(|(tag, bits)| {
            elements += 1;
            pages.insert((*tag, page_of(*bits)));
        });
        if elements < DENSE_PAGE * pages.len() {
            return;
        }
        let entries = std::mem::take(entries);
        let mut pages = ElementPages::default();
        entries.for_each(|(tag, bits), ()| {
            pages.insert(tag, bits);
        });
        self.bytes_min = self.len as u64 * ENTRY_BYTES;
        self.form = Form::Pages(pages);
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns about how many bytes the set takes.
    pub fn bytes(&self) -> u64 {
        match &self.form {
            Form::Entries(_) => self.len as u64 * ENTRY_BYTES,
            Form::Pages(pages) => pages.bytes().max(self.bytes_min),
        }
    }

    /// Returns the number of entries or pages that fit without growing.
    pub fn capacity(&self) -> usize {
        match &self.form {
            Form::Entries(entries) => entries.capacity(),
            Form::Pages(pages) => pages.0.capacity(),
        }
    }

    /// Removes all elements. A set that has no pages keeps the memory of its table.
    pub fn clear(&mut self) {
        match &mut self.form {
            Form::Entries(entries) => entries.clear(),
            Form::Pages(_) => self.form = Form::default(),
        }
        (self.len, self.next_look, self.bytes_min) = (0, LOOK_FIRST, 0);
    }

    /// Removes the elements of these instances.
    pub fn remove(&mut self, tags: &TagSet) {
        match &mut self.form {
            Form::Entries(entries) => {
                entries.retain(|(tag, _), ()| !tags.contains(*tag));
                self.len = entries.len();
            }
            Form::Pages(pages) => {
                let mut removed = 0;
                pages.0.retain(|(tag, _), page| {
                    let stays = !tags.contains(*tag);
                    removed += if stays { 0 } else { page.count_ones() as usize };
                    stays
                });
                self.len -= removed;
                self.bytes_min = 0;
            }
        }
    }

    /// Takes the set apart: calls `take` with its elements, those of a page together if the set has pages.
    pub fn for_each_page(self, mut take: impl FnMut(Page)) {
        match self.form {
            Form::Entries(entries) => entries.for_each(|(tag, bits), ()| take(Page::of(tag, bits))),
            Form::Pages(pages) => pages.0.for_each(|(tag, number), elements| take(Page { tag, number, elements })),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn elements(set: ElementSet) -> BTreeSet<(u32, u64)> {
        let mut found = BTreeSet::new();
        set.for_each_page(|Page { tag, number, mut elements }| {
            while elements != 0 {
                let bits = number * PAGE_ELEMENTS + u64::from(elements.trailing_zeros());
                assert!(found.insert((tag, bits)), "an element comes once");
                elements &= elements - 1;
            }
        });
        found
    }

    fn has_pages(set: &ElementSet) -> bool {
        matches!(set.form, Form::Pages(_))
    }

    proptest! {
        /// A set is a set in both forms, its bytes grow only, and what is removed is gone.
        #[test]
        fn an_element_set_is_a_set(
            ranges in prop::collection::vec((0..3_u32, 0..4_000_u64, 1..2_000_u64), 0..8),
            spread in prop::sample::select(vec![1_u64, 3, 200]),
            removed in 0..3_u32,
        ) {
            let (mut set, mut expected, mut bytes) = (ElementSet::default(), BTreeSet::new(), 0);
            for (tag, from, count) in ranges {
                let elements: Vec<u64> = (from..from + count).map(|element| element * spread).collect();
                let (single, message) = elements.split_at(elements.len() / 2);
                for bits in single {
                    prop_assert_eq!(set.insert(tag, *bits), expected.insert((tag, *bits)));
                    prop_assert!(set.bytes() >= bytes);
                    bytes = set.bytes();
                }
                let new = set.insert_all(message.iter().map(|bits| (tag, *bits)));
                let are_new = (0..).zip(message).filter(|(_, bits)| expected.insert((tag, **bits)));
                prop_assert_eq!(new, are_new.map(|(row, _)| row).collect::<Vec<u32>>());
                prop_assert!(set.bytes() >= bytes);
                bytes = set.bytes();
            }
            prop_assert_eq!(set.len(), expected.len());
            let tags: TagSet = std::iter::once(removed).collect();
            set.remove(&tags);
            expected.retain(|(tag, _)| *tag != removed);
            prop_assert_eq!(set.len(), expected.len());
            prop_assert_eq!(elements(set), expected);
        }
    }

    #[test]
    fn a_set_gets_pages_if_they_are_smaller() {
        let fill = |count: u64, step: u64| {
            let mut set = ElementSet::default();
            (0..count).for_each(|element| assert!(set.insert(0, element * step)));
            set
        };
        let dense = fill(100_000, 3);
        assert!(has_pages(&dense) && dense.bytes() < 100_000 * ENTRY_BYTES / 10, "{} bytes", dense.bytes());
        let sparse = fill(100_000, 100);
        assert!(!has_pages(&sparse));
        assert!(!has_pages(&fill(LOOK_FIRST as u64 - 1, 1)));
        // A set that is emptied begins anew.
        let mut set = dense;
        set.clear();
        assert!(!has_pages(&set) && set.len() == 0 && set.bytes() == 0 && set.insert(0, 7));
    }
}
