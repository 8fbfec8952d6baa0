//! Looking elements up by user id, and reading properties of the elements in the same call.
//!
//! From an id to a value there are several steps: the entry of the id index, the page, the version words and cells of
//! the element, and the record of a value that is too long for its cell. Each may be a cache miss that the next step
//! waits for. So a group of ids takes a step as a whole before the next one, and the misses of a step overlap. A single
//! id has the cells of all its properties under way at the same time.
//!
//! The first candidate of the id index is mostly the right one. If it is not, the id is looked up again by
//! [`Store::find`]. That happens if an id was chosen again after its element was deleted, or if two strings have the
//! same hash.

use mangrove_graph::{ElementId, KeyId, UserId, ValueRows};
use mangrove_reclaim::Pin;

use crate::cell::RawCell;
use crate::cell::column::Column;
use crate::index::IdKey;
use crate::page::{PageCore, Tablet};
use crate::read::properties::push_values;
use crate::read::view::StoreView;
use crate::store::{Element, Store};

/// How many ids take a step together. They cause more misses than a core keeps under way, and their lines stay in the
/// cache until the next step.
const GROUP: usize = 64;
/// How many keys take a step together.
const KEYS: usize = 4;

/// Calls `each` with the visible element of every id, or with `None`, and appends the element's values under the keys.
/// A row is the position of an id. `out` has one entry for each key.
pub(crate) fn look_up<T: Element>(
    view: &StoreView<'_>,
    pin: &Pin,
    ids: &[UserId],
    keys: &[KeyId],
    out: &mut [ValueRows],
    mut each: impl FnMut(Option<T>),
) {
    if let [_] = ids {
        return LookUps::<T, 1>::new(view, pin, ids).look_up(0, keys, out, &mut each);
    }
    for (number, ids) in ids.chunks(GROUP).enumerate() {
        LookUps::<T, GROUP>::new(view, pin, ids).look_up((number * GROUP) as u32, keys, out, &mut each);
    }
}

/// An element that may have the id, or has it.
#[derive(Clone, Copy)]
struct Candidate<'a, T> {
    element: T,
    tablet: &'a Tablet,
    core: &'a PageCore,
    /// True if the id was taken for the element's external number, which is its id unless the element has a chosen one.
    automatic: bool,
}

/// Up to `N` look-ups that take each step together.
struct LookUps<'a, T, const N: usize> {
    view: &'a StoreView<'a>,
    pin: &'a Pin,
    ids: &'a [UserId],
    candidates: [Option<Candidate<'a, T>>; N],
    columns: [[Option<&'a Column>; N]; KEYS],
}

impl<'a, T: Element, const N: usize> LookUps<'a, T, N> {
    fn new(view: &'a StoreView<'a>, pin: &'a Pin, ids: &'a [UserId]) -> Self {
        LookUps { view, pin, ids, candidates: [None; N], columns: [[None; N]; KEYS] }
    }

    fn store(&self) -> &'a Store {
        self.view.store
    }

    fn look_up(mut self, row: u32, keys: &[KeyId], out: &mut [ValueRows], each: &mut impl FnMut(Option<T>)) {
        self.find_candidates();
        let first = &keys[..keys.len().min(KEYS)];
        self.find_columns(first);
        self.replace_wrong_candidates(first);
        self.candidates[..self.ids.len()].iter().for_each(|found| each(found.map(|found| found.element)));
        for (number, (keys, out)) in keys.chunks(KEYS).zip(out.chunks_mut(KEYS)).enumerate() {
            if number > 0 {
                self.find_columns(keys);
            }
            self.read(row, out);
        }
    }

    /// Finds a candidate for each id, and starts loading the headers of their pages.
    fn find_candidates(&mut self) {
        let index = T::ids(self.store());
        let mut keys = [IdKey::of_int(0); N];
        for (key, id) in keys.iter_mut().zip(self.ids) {
            *key = IdKey::of(id);
            if N > 1 {
                index.prefetch(self.pin, *key);
            }
        }
        for ((candidate, id), key) in self.candidates.iter_mut().zip(self.ids).zip(keys) {
            let chosen = index.first_candidate(self.pin, key);
            let element = match (chosen, id) {
                (Some(bits), _) => T::from_bits(bits),
                (None, UserId::Int(number)) => T::from_external(number.number),
                (None, _) => continue,
            };
            *candidate = element.page_of(self.view.store).map(|(tablet, core)| {
                core.prefetch();
                Candidate { element, tablet, core, automatic: chosen.is_none() }
            });
        }
    }

    /// Finds the columns of the candidates, and starts loading their cells and version words.
    fn find_columns(&mut self, keys: &[KeyId]) {
        for (row, (id, candidate)) in self.ids.iter().zip(&self.candidates).enumerate() {
            let Some(Candidate { element, core, automatic, .. }) = candidate else { continue };
            let at = element.at();
            if at >= core.capacity() {
                continue;
            }
            core.prefetch_version(self.pin, at);
            if *automatic || !matches!(id, UserId::Int(_)) {
                core.prefetch_user_id(at);
            }
            for (columns, key) in self.columns.iter_mut().zip(keys) {
                columns[row] = core.column(*key);
                if let Some(column) = columns[row] {
                    column.prefetch(at);
                }
            }
        }
    }

    /// Looks ids up again whose candidate is not visible or does not have the id.
    fn replace_wrong_candidates(&mut self, keys: &[KeyId]) {
        for (row, id) in self.ids.iter().enumerate() {
            if self.candidates[row].is_some_and(|candidate| self.is_element_of(&candidate, id)) {
                continue;
            }
            self.candidates[row] = self.find_other(id);
            for (columns, key) in self.columns.iter_mut().zip(keys) {
                columns[row] = self.candidates[row].and_then(|other| other.core.column(*key));
            }
        }
    }

    /// Returns true if the snapshot sees the candidate, and it has the id.
    #[inline]
    fn is_element_of(&self, candidate: &Candidate<'_, T>, id: &UserId) -> bool {
        let (core, at) = (candidate.core, candidate.element.at());
        at < core.capacity()
            && core.generation(at) == candidate.element.generation()
            && core.visible_under(self.pin, at, &self.view.snapshot)
            && match id {
                UserId::Int(_) => !candidate.automatic || core.user_id(at).is_absent(),
                _ => core.has_user_id(at, id, &candidate.tablet.values),
            }
    }

    /// The element with an id whose first candidate is not the right one.
    #[cold]
    fn find_other(&self, id: &UserId) -> Option<Candidate<'a, T>> {
        let reference = |bits| T::from_bits(bits).reference();
        let element = T::from_bits(match self.store().find(id, IdKey::of(id), &self.view.snapshot, reference)? {
            ElementId::Vertex(id) => id.to_bits(),
            ElementId::Edge(id) => id.to_bits(),
        });
        let (tablet, core) = element.page_of(self.view.store)?;
        Some(Candidate { element, tablet, core, automatic: false })
    }

    /// Appends the values of the columns that were found. The first id of the group is row `first`.
    fn read(&self, first: u32, out: &mut [ValueRows]) {
        for (columns, out) in self.columns.iter().zip(out) {
            let mut cells = [RawCell::ABSENT; N];
            let found = || self.candidates.iter().zip(columns).zip(0_u32..);
            for (((candidate, column), _), cell) in found().zip(&mut cells) {
                if let (Some(Candidate { element, tablet, .. }), Some(column)) = (candidate, column) {
                    *cell = column.read(element.at(), &self.view.snapshot, tablet.undo_under(self.pin));
                    tablet.values.prefetch(*cell);
                }
            }
            for (((candidate, _), row), cell) in found().zip(cells) {
                if let Some(Candidate { tablet, .. }) = candidate {
                    push_values(&tablet.values, self.pin, cell, first + row, out);
                }
            }
        }
    }
}
