//! A batch of traversers, by columns.
//!
//! The column of objects is always there, the others only if the plan requires them. A row stands for `bulk` equal
//! traversers; without that column, for one.
//!
//! - **STEPS-8.** [`Tags::One`] says that the group has exactly one instance. In a group with several, every batch has
//!   a tag for each row.
//! - **STEPS-9.** A computed column holds the value that a `by()` took of each row. It lives from the operator that
//!   fills it to the next one; no operator passes it on. If the reader of the results takes columns, the results are the next one.

use mangrove_flow::{BATCH_ROWS, OuterTags};
use mangrove_graph::Value;
use mangrove_plan::logical::Name;
use smallvec::SmallVec;

use crate::rows::binding::BindingColumn;
use crate::rows::column::ObjectColumn;
use crate::rows::path::{Path, PathNode, relabel};

/// The scope instance of each row (FLOW-5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tags {
    /// The group has one instance, 0 (STEPS-8).
    One,
    /// The instance of each row.
    Many(Vec<u32>),
}

impl Tags {
    /// Rows with these tags enter a scope, each as an instance: returns the instances outside that these belong to.
    pub(crate) fn into_outer(self) -> OuterTags {
        match self {
            Tags::One => OuterTags::One(0),
            Tags::Many(tags) => OuterTags::Each(tags),
        }
    }
}

/// The loop counters of a row, the innermost last.
pub(crate) type Loops = SmallVec<[u32; 2]>;

/// The value that a `by()` took of each row; `None` where the `by()` was unproductive. It lives until the next
/// operator.
pub(crate) type ComputedColumn = Vec<Option<Value>>;

/// A batch of traversers.
#[derive(Clone, Debug)]
pub struct Rows {
    /// The scope instance of each row.
    pub(crate) tags: Tags,
    /// The current object of each row.
    pub objects: ObjectColumn,
    /// The number of traversers that each row stands for; without the column, one.
    pub bulk: Option<Vec<u64>>,
    /// The path of each row.
    pub(crate) path: Option<Vec<Path>>,
    /// The binding columns, by their numbers in the plan. Columns after the last are [`BindingColumn::Unset`].
    pub(crate) bindings: Vec<BindingColumn>,
    /// The loop counters of each row.
    pub(crate) loops: Option<Vec<Loops>>,
    /// The sack of each row.
    pub(crate) sacks: Option<Vec<Value>>,
    /// The computed columns, one for each `by()`.
    pub(crate) computed: Vec<ComputedColumn>,
}

impl Default for Rows {
    /// No rows.
    fn default() -> Self {
        Rows::of(ObjectColumn::default())
    }
}

fn gather<T: Clone>(column: &[T], rows: &[u32]) -> Vec<T> {
    rows.iter().map(|&r| column[r as usize].clone()).collect()
}

impl Rows {
    /// Rows of instance 0 with no column but their objects.
    pub fn of(objects: ObjectColumn) -> Self {
        Rows {
            tags: Tags::One,
            objects,
            bulk: None,
            path: None,
            bindings: Vec::new(),
            loops: None,
            sacks: None,
            computed: Vec::new(),
        }
    }

    /// The single row a query starts with. It has the columns the plan requires.
    pub fn unit(path: bool, loops: bool) -> Self {
        let mut rows = Rows::of(ObjectColumn::Values(vec![Value::Null]));
        rows.path = path.then(|| vec![None]);
        rows.loops = loops.then(|| vec![Loops::new()]);
        rows
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Returns the scope instance of a row.
    pub fn tag(&self, row: usize) -> u32 {
        match &self.tags {
            Tags::One => 0,
            Tags::Many(tags) => tags[row],
        }
    }

    /// Returns the number of traversers that a row stands for.
    pub fn bulk(&self, row: usize) -> u64 {
        self.bulk.as_ref().map_or(1, |b| b[row])
    }

    /// Returns the object of a row.
    pub fn object(&self, row: usize) -> Value {
        self.objects.get(row)
    }

    /// Takes the computed columns out: those of results that are maps ([`result_keys`](crate::result_keys)).
    pub fn take_computed(&mut self) -> Vec<Vec<Option<Value>>> {
        std::mem::take(&mut self.computed)
    }

    /// Returns the value of computed column `column` for a row; `None` if the `by()` was unproductive there.
    pub fn computed_value(&self, column: usize, row: usize) -> Option<&Value> {
        debug_assert!(column < self.computed.len(), "the plan put no computed column {column} here");
        self.computed.get(column)?.get(row)?.as_ref()
    }

    /// Returns the path of a row; the empty path if the plan requires none.
    pub(crate) fn path(&self, row: usize) -> Path {
        self.path.as_ref().and_then(|p| p[row].clone())
    }

    /// Returns the binding column of a number; `None` if no row has an object there.
    pub(crate) fn binding(&self, number: usize) -> Option<&BindingColumn> {
        self.bindings.get(number)
    }

    /// Returns these rows with all their columns, also the computed ones.
    pub fn take(&self, rows: &[u32]) -> Rows {
        Rows {
            computed: self.computed.iter().map(|s| gather(s, rows)).collect(),
            ..self.derive(rows, self.objects.gather(rows))
        }
    }

    /// Returns the rows for which `keep` holds, without computed columns. If all are kept, no column is copied.
    pub fn filter(mut self, mut keep: impl FnMut(&Rows, usize) -> bool) -> Rows {
        let kept: Vec<u32> = (0..self.len()).filter(|&r| keep(&self, r)).map(|r| r as u32).collect();
        self.computed.clear();
        self.keep(&kept)
    }

    /// Returns these rows, which are some or all, in ascending order. If all are kept, no column is copied.
    pub(crate) fn keep(self, kept: &[u32]) -> Rows {
        if kept.len() == self.len() { self } else { self.take(kept) }
    }

    /// Returns one row for each object, with the other columns of the row in `rows` that it was made from. The result
    /// has no computed columns, and paths are not extended.
    pub fn derive(&self, rows: &[u32], objects: ObjectColumn) -> Rows {
        debug_assert_eq!(rows.len(), objects.len());
        Rows {
            tags: match &self.tags {
                Tags::One => Tags::One,
                Tags::Many(tags) => Tags::Many(gather(tags, rows)),
            },
            bulk: self.bulk.as_ref().map(|b| gather(b, rows)),
            path: self.path.as_ref().map(|p| gather(p, rows)),
            bindings: self.bindings.iter().map(|column| column.gather(rows)).collect(),
            loops: self.loops.as_ref().map(|l| gather(l, rows)),
            sacks: self.sacks.as_ref().map(|s| gather(s, rows)),
            objects,
            computed: Vec::new(),
        }
    }

    /// As [`Rows::derive`], with all objects made from one row.
    pub fn derive_from_one(&self, row: u32, objects: ObjectColumn) -> Rows {
        let (row, count) = (row as usize, objects.len());
        Rows {
            tags: match &self.tags {
                Tags::One => Tags::One,
                Tags::Many(tags) => Tags::Many(vec![tags[row]; count]),
            },
            bulk: self.bulk.as_ref().map(|b| vec![b[row]; count]),
            path: self.path.as_ref().map(|p| vec![p[row].clone(); count]),
            bindings: self.bindings.iter().map(|column| column.repeat(row, count)).collect(),
            loops: self.loops.as_ref().map(|l| vec![l[row].clone(); count]),
            sacks: self.sacks.as_ref().map(|s| vec![s[row].clone(); count]),
            objects,
            computed: Vec::new(),
        }
    }

    /// Returns these rows with other objects, without computed columns. Paths are not extended.
    pub fn with_objects(mut self, objects: ObjectColumn) -> Rows {
        debug_assert_eq!(self.len(), objects.len());
        self.objects = objects;
        // STEPS-9: they end here.
        self.computed.clear();
        self
    }

    /// Appends the current objects to their paths, and binds them.
    pub(crate) fn remember(&mut self, remember: &Remember) {
        self.bind(&remember.bindings);
        let (Some(paths), true) = (&mut self.path, remember.objects) else { return };
        for (row, path) in paths.iter_mut().enumerate() {
            *path = PathNode::extend(path.take(), self.objects.get(row), &remember.labels);
        }
    }

    /// Adds labels to the last object of each path, and binds the current objects. If paths remember labeled objects
    /// only, appends the current object under these labels.
    pub(crate) fn label(&mut self, remember: &Remember, whole_paths: bool) {
        self.bind(&remember.bindings);
        let (Some(paths), true) = (&mut self.path, remember.objects) else { return };
        for (row, path) in paths.iter_mut().enumerate() {
            *path = match path {
                Some(_) if whole_paths => relabel(path, &remember.labels),
                _ => PathNode::extend(path.take(), self.objects.get(row), &remember.labels),
            };
        }
    }

    /// Makes the current objects those of these binding columns.
    fn bind(&mut self, numbers: &[usize]) {
        for &number in numbers {
            if self.bindings.len() <= number {
                self.bindings.resize(number + 1, BindingColumn::Unset);
            }
            self.bindings[number] = BindingColumn::from(&self.objects);
        }
    }

    /// Cuts the rows into batches of at most [`BATCH_ROWS`] rows (FLOW-1).
    pub fn chunks(self) -> impl Iterator<Item = Rows> {
        let count = self.len();
        let whole = count <= BATCH_ROWS;
        let mut rest = Some(self);
        let mut at = 0;
        std::iter::from_fn(move || {
            if whole {
                return rest.take().filter(|r| !r.is_empty());
            }
            if at >= count {
                return None;
            }
            let rows: Vec<u32> = (at..(at + BATCH_ROWS).min(count)).map(|r| r as u32).collect();
            at += rows.len();
            rest.as_ref().map(|r| r.take(&rows))
        })
    }

    /// Appends rows with the same columns.
    pub fn append(&mut self, other: Rows) {
        if self.is_empty() {
            *self = other;
            return;
        }
        if other.is_empty() {
            return;
        }
        let (here, there) = (self.len(), other.len());
        match (&mut self.tags, other.tags) {
            (Tags::One, Tags::One) => {}
            (Tags::Many(a), Tags::Many(b)) => a.extend(b),
            (Tags::Many(a), Tags::One) => a.extend(std::iter::repeat_n(0, there)),
            (Tags::One, Tags::Many(b)) => {
                self.tags = Tags::Many(std::iter::repeat_n(0, here).chain(b).collect());
            }
        }
        match (&mut self.bulk, other.bulk) {
            (None, None) => {}
            (Some(a), Some(b)) => a.extend(b),
            (Some(a), None) => a.extend(std::iter::repeat_n(1, there)),
            (None, Some(b)) => self.bulk = Some(std::iter::repeat_n(1, here).chain(b).collect()),
        }
        if let (Some(a), Some(b)) = (&mut self.path, other.path) {
            a.extend(b);
        }
        let bindings = self.bindings.len().max(other.bindings.len());
        self.bindings.resize(bindings, BindingColumn::Unset);
        let others = other.bindings.into_iter().chain(std::iter::repeat(BindingColumn::Unset));
        self.bindings.iter_mut().zip(others).for_each(|(a, b)| a.append(here, b, there));
        if let (Some(a), Some(b)) = (&mut self.loops, other.loops) {
            a.extend(b);
        }
        if let (Some(a), Some(b)) = (&mut self.sacks, other.sacks) {
            a.extend(b);
        }
        debug_assert_eq!(self.computed.len(), other.computed.len());
        for (a, b) in self.computed.iter_mut().zip(other.computed) {
            a.extend(b);
        }
        self.objects.append(other.objects);
    }
}

/// The places in which rows remember an operator's objects.
#[derive(Clone, Debug, Default)]
pub(crate) struct Remember {
    /// True if paths are extended by the objects.
    pub objects: bool,
    /// The labels of the step that paths hold.
    pub labels: Vec<Name>,
    /// The numbers of the binding columns for the other labels of the step.
    pub bindings: Vec<usize>,
}

impl Remember {
    /// Returns true if the objects are remembered under a label.
    pub fn has_labels(&self) -> bool {
        !self.bindings.is_empty() || self.objects && !self.labels.is_empty()
    }
}
