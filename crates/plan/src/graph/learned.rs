//! What random walks have found (`walks.rs`).

use std::cell::{Cell, RefCell};

use super::Set;

/// The rows after sets of atoms, as far as walks have found them.
#[derive(Default)]
pub(super) struct Learned {
    rows: RefCell<Vec<(Set, f64)>>,
    is_some: Cell<bool>,
}

impl Learned {
    /// The rows after a set of atoms, with all tests whose variables are bound.
    pub fn rows(&self, atoms: Set) -> Option<f64> {
        if !self.is_some.get() {
            return None;
        }
        self.rows.borrow().iter().find(|(known, _)| *known == atoms).map(|(_, rows)| *rows)
    }

    /// Notes the rows after a set of atoms, if they are not known yet.
    pub fn note(&self, atoms: Set, rows: f64) {
        if self.rows(atoms).is_none() {
            self.rows.borrow_mut().push((atoms, rows));
            self.is_some.set(true);
        }
    }
}
