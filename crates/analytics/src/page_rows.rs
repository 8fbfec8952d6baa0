//! The rows of a page of vertices, and how they are read.
//!
//! A walk over a page shows pieces: lists of one label and direction, of vertices that follow one another. The cells of all pieces are
//! put one after the other, as positions, while they are in the cache. Pieces whose vertices ascend are a *series*: mostly the lists of
//! one label and direction. If there is one series, its cells are the rows. Otherwise the runs of each vertex are then put together.

use std::ops::Range;
use std::sync::Arc;

use mangrove_graph::{
    AdjacencyRequest, Direction, EdgeId, Error, GraphView, LabelFilter, Numbers, Result, ScanCursor, Share, VertexPage,
};
use parking_lot::Mutex;

use crate::arrays::{self, Making};
use crate::choice::{PART_WORK, ProjectionOptions};
use crate::numbering::{NO_POSITION, Numbering, PageVertices, SLOTS};

/// Where the cells begin: before them is the beginning of the row of each slot, and the end of the last one.
const HEAD: usize = SLOTS + 1;

/// The rows of a page in one direction, or in both. It is small, so that the table of all pages is in the fastest cache.
#[derive(Clone, Debug)]
pub(crate) struct PageRows {
    /// Where the row of each slot begins in this array, where the last one ends, and then the rows: an array, so that a row
    /// is found by one look at the page.
    rows: Arc<[u32]>,
    pub(crate) rest: Arc<Rest>,
}

/// What of the rows of a page is not read with each row.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    /// The weights of the cells; empty without weights.
    weights: Arc<[f64]>,
    /// The edges of the cells; empty if cells do not name them.
    edges: Arc<[EdgeId]>,
    pub(crate) of_weights: WeightFacts,
    /// The sum of the squares of the lengths of all rows.
    pub(crate) squares: u64,
}

/// Facts about weights.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct WeightFacts {
    /// Their sum.
    pub sum: f64,
    /// One that is negative or not finite, if there is one.
    pub unfit: Option<f64>,
}

impl WeightFacts {
    fn of(weights: &[f64]) -> Self {
        // A number below zero has the sign bit. One that is not finite has all bits of the exponent: one more in the lowest of them changes the
        // sign bit. So the sign bit of `signs` is set if some weight may be unfit: of those that are fit, only -0 sets it.
        const LOWEST_OF_EXPONENT: u64 = 1 << (f64::MANTISSA_DIGITS - 1);
        let signs_of = |weight: f64| weight.to_bits() | weight.to_bits().wrapping_add(LOWEST_OF_EXPONENT);
        // Several sums at a time: each addition waits for the one before.
        let (mut sums, mut signs) = ([0.0; 8], [0; 8]);
        let (eights, rest) = weights.as_chunks::<8>();
        for eight in eights {
            for ((sum, signs), weight) in sums.iter_mut().zip(&mut signs).zip(eight) {
                *sum += weight;
                *signs |= signs_of(*weight);
            }
        }
        let signs = signs.into_iter().chain(rest.iter().map(|weight| signs_of(*weight))).fold(0, |all, of| all | of);
        let is_unfit = |weight: &f64| !(weight.is_finite() && *weight >= 0.0);
        let may_be_unfit = signs >> (u64::BITS - 1) == 1;
        let unfit = if may_be_unfit { weights.iter().copied().find(is_unfit) } else { None };
        WeightFacts { sum: sums.iter().chain(rest).sum(), unfit }
    }
}

impl Default for PageRows {
    fn default() -> Self {
        PageRows { rows: [HEAD as u32; HEAD].into(), rest: Arc::default() }
    }
}

impl PageRows {
    /// The row of a slot.
    #[inline]
    pub(crate) fn row(&self, slot: usize) -> &[u32] {
        let rows = &*self.rows;
        &rows[rows[slot] as usize..rows[slot + 1] as usize]
    }

    /// Calls `each` with the row of each of some slots.
    #[inline]
    pub(crate) fn each_row(&self, slots: Range<usize>, mut each: impl FnMut(&[u32])) {
        let rows = &*self.rows;
        let mut begin = rows[slots.start] as usize;
        for end in &rows[slots.start + 1..=slots.end] {
            let end = *end as usize;
            each(&rows[begin..end]);
            begin = end;
        }
    }

    #[inline]
    fn of<'a, T>(&self, slot: usize, values: &'a [T]) -> &'a [T] {
        values.get(self.rows[slot] as usize - HEAD..self.rows[slot + 1] as usize - HEAD).unwrap_or_default()
    }

    /// The weights of the row of a slot.
    #[inline]
    pub(crate) fn weights(&self, slot: usize) -> &[f64] {
        self.of(slot, &self.rest.weights)
    }

    /// The row of a slot with its weights. Without weights, the second slice is empty.
    #[inline]
    pub(crate) fn weighted(&self, slot: usize) -> (&[u32], &[f64]) {
        let (begin, end) = (self.rows[slot] as usize, self.rows[slot + 1] as usize);
        (&self.rows[begin..end], self.rest.weights.get(begin - HEAD..end - HEAD).unwrap_or_default())
    }

    /// The edges of the row of a slot.
    #[inline]
    pub(crate) fn edges(&self, slot: usize) -> &[EdgeId] {
        self.of(slot, &self.rest.edges)
    }

    /// The places of the cells of a slot's row among those of the page.
    pub(crate) fn places(&self, slot: usize) -> Range<usize> {
        self.rows[slot] as usize - HEAD..self.rows[slot + 1] as usize - HEAD
    }

    /// The row of a slot, and its edges if cells name them.
    pub(crate) fn cells_of(&self, slot: usize) -> (&[u32], &[EdgeId]) {
        (self.row(slot), self.edges(slot))
    }

    /// The array of rows, and the edges of its cells: where the row of each slot begins, where the last one ends, and the cells.
    pub(crate) fn into_cells(self) -> (Arc<[u32]>, Arc<[EdgeId]>) {
        (self.rows, self.rest.edges.clone())
    }

    /// The number of cells.
    #[inline]
    pub(crate) fn cell_count(&self) -> usize {
        self.rows.len() - HEAD
    }

    pub(crate) fn bytes(&self) -> u64 {
        (self.rows.len() * 4
            + (self.rest.weights.len() + self.rest.edges.len()) * 8
            + size_of::<Self>()
            + size_of::<Rest>()) as u64
    }
}

/// A page as it was read.
pub(crate) struct Page {
    pub(crate) vertices: PageVertices,
    /// The rows of each direction.
    pub(crate) rows: Vec<PageRows>,
    /// The slots at which the page is cut into parts of about equal work. Empty if it is little work.
    pub(crate) cuts: Arc<[u16]>,
}

impl Page {
    /// The bytes that the page holds.
    pub(crate) fn bytes(&self) -> u64 {
        let rows: u64 = self.rows.iter().map(PageRows::bytes).sum();
        rows + self.vertices.bytes() + size_of_val(&*self.cuts) as u64
    }
}

/// Lists whose vertices ascend.
struct Series {
    /// Where the list of each slot begins in the cells of the page, and where the last one ends. A slot without a list has an empty one.
    begins: Vec<u32>,
}

impl Series {
    /// Ends the lists of the slots before this one. Returns false if there are lists of this slot or of later ones.
    fn skip_to(&mut self, slot: usize, cells: usize) -> bool {
        let is_later = self.begins.len() <= slot + 1;
        if is_later {
            self.begins.resize(slot + 1, cells as u32);
        }
        is_later
    }
}

/// The arrays of one reading thread, which are used for one page after another.
#[derive(Default)]
struct Arrays {
    vertices: Vec<mangrove_graph::VertexId>,
    series: Vec<Series>,
    /// The cells of all lists.
    cells: Vec<u32>,
    edges: Vec<EdgeId>,
    weights: Vec<f64>,
    numbers: Numbers,
}

/// Reads pages of a view, from several threads.
pub(crate) struct PageReader<'a> {
    view: &'a dyn GraphView,
    options: &'a ProjectionOptions,
    numbering: &'a Numbering,
    arrays: Mutex<Vec<Arrays>>,
}

impl<'a> PageReader<'a> {
    pub(crate) fn new(view: &'a dyn GraphView, options: &'a ProjectionOptions, numbering: &'a Numbering) -> Self {
        PageReader { view, options, numbering, arrays: Mutex::default() }
    }

    /// Reads a page, and its rows in each of these directions.
    pub(crate) fn read(&self, page: &VertexPage, directions: &[Direction]) -> Result<Page> {
        let mut arrays = self.arrays.lock().pop().unwrap_or_default();
        arrays.vertices.clear();
        let mut cursor = page.pages;
        while !self.view.scan_vertices(&self.options.vertices, Share::ALL, &mut cursor, SLOTS, &mut arrays.vertices)? {}
        let vertices = PageVertices::of(&arrays.vertices);
        let rows = directions.iter().map(|direction| self.rows(page.pages, *direction, &mut arrays));
        let rows = rows.collect::<Result<Vec<_>>>()?;
        self.arrays.lock().push(arrays);
        Ok(Page { vertices, cuts: cuts_of(&rows), rows })
    }

    fn rows(&self, pages: ScanCursor, direction: Direction, arrays: &mut Arrays) -> Result<PageRows> {
        self.collect(pages, direction, arrays)?;
        if self.options.weight.is_some() {
            self.read_weights(arrays)?;
        }
        let Arrays { series, cells, edges, weights, .. } = arrays;
        if cells.len() + HEAD > u32::MAX as usize {
            return Err(Error::unsupported("a page of vertices has more than four billion edges"));
        }
        if let Some(last) = series.last_mut() {
            last.begins.resize(HEAD, cells.len() as u32);
        }
        let of_weights = WeightFacts::of(weights);
        let series: Vec<&[u32; HEAD]> =
            series.iter().filter_map(|series| series.begins.first_chunk::<HEAD>()).collect();
        // A row begins after the lists of the slots before it, in all series.
        let mut head = [HEAD as u32; HEAD];
        for begins in &series {
            let first = begins[0];
            for (row, begin) in head.iter_mut().zip(*begins) {
                *row += begin - first;
            }
        }
        let lengths = (0..SLOTS).map(|slot| u64::from(head[slot + 1] - head[slot]));
        let squares = lengths.map(|length| length * length).sum();
        let rows = arrays::made(HEAD + cells.len(), |rows| {
            rows.append(&head);
            put_together(&series, cells, rows);
        });
        let weights = arrays::made(weights.len(), |rows| put_together(&series, weights, rows));
        let edges: &[EdgeId] = if self.options.names_edges { edges } else { &[] };
        let edges = arrays::made(edges.len(), |rows| put_together(&series, edges, rows));
        Ok(PageRows { rows, rest: Arc::new(Rest { weights, edges, of_weights, squares }) })
    }

    /// Walks over the lists of a page.
    fn collect(&self, pages: ScanCursor, direction: Direction, arrays: &mut Arrays) -> Result<()> {
        let Arrays { series, cells, edges, weights, .. } = arrays;
        series.clear();
        cells.clear();
        edges.clear();
        weights.clear();
        let needs_edges = self.options.weight.is_some() || self.options.names_edges;
        let takes_all = self.options.vertices == LabelFilter::Any;
        let request = AdjacencyRequest {
            vertices: self.options.vertices.clone(),
            direction,
            labels: self.options.edges.clone(),
            share: Share::ALL,
            pages,
            edges: needs_edges,
        };
        self.view.for_each_adjacency(&request, &mut |runs| {
            if runs.vertex_count() == 0 {
                return Ok(());
            }
            let first = runs.vertex(0).offset();
            if !series.last_mut().is_some_and(|last| last.skip_to(first, cells.len())) {
                // The last one ends where this one begins.
                if let Some(last) = series.last_mut() {
                    last.begins.resize(HEAD, cells.len() as u32);
                }
                let mut begins = Vec::with_capacity(HEAD);
                begins.resize(first + 1, cells.len() as u32);
                series.push(Series { begins });
            }
            let begins = &mut series.last_mut().expect("one was added").begins;
            let begin = cells.len();
            if self.numbering.append_positions(runs.all_neighbors(), cells) {
                begins.extend(runs.ends_from(begin as u32));
                if needs_edges {
                    edges.extend_from_slice(runs.all_edges());
                }
                return Ok(());
            }
            if takes_all {
                return Err(Error::bug("a neighbor is on a page that the view did not name"));
            }
            // Of an edge to a vertex with another label, only this end counts.
            let (mut from, mut kept) = (begin, begin);
            for end in runs.ends_from(begin as u32) {
                let end = end as usize;
                for at in from..end {
                    let position = cells[at];
                    cells[kept] = position;
                    if position != NO_POSITION {
                        kept += 1;
                        // Empty, if no edges are needed.
                        edges.extend(runs.all_edges().get(at - begin));
                    }
                }
                from = end;
                begins.push(kept as u32);
            }
            cells.truncate(kept);
            Ok(())
        })
    }

    /// Reads the weights of the edges of all cells.
    fn read_weights(&self, arrays: &mut Arrays) -> Result<()> {
        let Some(key) = self.options.weight else { return Ok(()) };
        let Arrays { edges, weights, numbers, .. } = arrays;
        if fill_weights(self.view, self.options, edges, weights, numbers)? {
            return Ok(());
        }
        let name = self.view.catalog().key_name(key);
        Err(Error::invalid(format!(
            "the weights of the edges, their property '{name}', are not all numbers of one type"
        )))
    }
}

/// Reads the weights of edges. Returns false if not all of them are numbers of one type.
pub(crate) fn fill_weights(
    view: &dyn GraphView,
    options: &ProjectionOptions,
    edges: &[EdgeId],
    weights: &mut Vec<f64>,
    numbers: &mut Numbers,
) -> Result<bool> {
    numbers.clear();
    let Some(key) = options.weight else { return Ok(true) };
    if !view.edge_numbers(edges, key, numbers)? {
        return Ok(false);
    }
    weights.clear();
    weights.resize(edges.len(), options.default_weight);
    for (at, &row) in numbers.row.iter().enumerate() {
        let weight = numbers.floats.get(at).copied().or_else(|| numbers.integers.get(at).map(|n| *n as f64));
        weights[row as usize] = weight.unwrap_or(options.default_weight);
    }
    Ok(true)
}

/// The rows of a page that are put together of pieces of old rows, and of new cells.
#[derive(Default)]
pub(crate) struct Pieces {
    /// As in [`PageRows`].
    head: Vec<u32>,
    /// Places of old cells, and how many new cells follow them.
    pieces: Vec<(Range<usize>, usize)>,
    /// All cells up to now.
    count: usize,
    /// The new cells.
    targets: Vec<u32>,
    weights: Vec<f64>,
    edges: Vec<EdgeId>,
}

impl Pieces {
    /// Begins with the first row of another page.
    pub(crate) fn begin(&mut self) {
        self.head.clear();
        self.head.push(HEAD as u32);
        self.pieces.clear();
        self.count = 0;
        self.targets.clear();
        self.weights.clear();
        self.edges.clear();
    }

    /// Appends a new cell to the row.
    pub(crate) fn push(&mut self, target: u32, weight: Option<f64>, edge: Option<EdgeId>) {
        self.targets.push(target);
        self.weights.extend(weight);
        self.edges.extend(edge);
        match self.pieces.last_mut() {
            Some((_, new)) => *new += 1,
            None => self.pieces.push((0..0, 1)),
        }
        self.count += 1;
    }

    /// Appends the cells at some places of the old rows to the row.
    pub(crate) fn append_cells(&mut self, places: Range<usize>) {
        self.count += places.len();
        match self.pieces.last_mut() {
            Some((last, 0)) if last.end == places.start => last.end = places.end,
            _ => self.pieces.push((places, 0)),
        }
    }

    /// Ends the row.
    pub(crate) fn end_row(&mut self) {
        self.head.push((HEAD + self.count) as u32);
    }

    /// Appends the old rows of some slots.
    pub(crate) fn append_rows(&mut self, old: &PageRows, slots: Range<usize>) {
        let (begin, end) = (old.rows[slots.start], old.rows[slots.end]);
        let moved = (HEAD + self.count) as u32;
        self.head.extend(old.rows[slots.start + 1..=slots.end].iter().map(|row| row - begin + moved));
        self.append_cells(begin as usize - HEAD..end as usize - HEAD);
    }

    /// The rows of all slots. `None` if they have too many cells for a page.
    pub(crate) fn rows(&self, old: &PageRows) -> Option<PageRows> {
        u32::try_from(HEAD + self.count).ok()?;
        let squares = self.head.windows(2).map(|ends| u64::from(ends[1] - ends[0]).pow(2)).sum();
        let rows = arrays::made(HEAD + self.count, |rows| {
            rows.append(&self.head);
            self.put_together(&old.rows[HEAD..], &self.targets, rows);
        });
        let weights = self.made(&old.rest.weights, &self.weights);
        let edges = self.made(&old.rest.edges, &self.edges);
        let of_weights = WeightFacts::of(&weights);
        Some(PageRows { rows, rest: Arc::new(Rest { weights, edges, of_weights, squares }) })
    }

    /// An array beside the cells; empty if there is none.
    fn made<T: Copy>(&self, old: &[T], new: &[T]) -> Arc<[T]> {
        let length = if old.is_empty() && new.is_empty() { 0 } else { self.count };
        arrays::made(length, |to| {
            if length > 0 {
                self.put_together(old, new, to)
            }
        })
    }

    fn put_together<T: Copy>(&self, old: &[T], mut new: &[T], to: &mut Making<'_, T>) {
        for (places, count) in &self.pieces {
            to.append(&old[places.clone()]);
            let (these, later) = new.split_at(*count);
            to.append(these);
            new = later;
        }
    }
}

/// Appends the lists of each vertex, vertex by vertex. Without cells, nothing.
fn put_together<T: Copy>(series: &[&[u32; HEAD]], cells: &[T], to: &mut Making<'_, T>) {
    if series.len() < 2 || cells.is_empty() {
        return to.append(cells);
    }
    to.append_lists(cells, series);
}

/// Cuts the slots of a page into ranges of about equal work.
pub(crate) fn cuts_of(rows: &[PageRows]) -> Arc<[u16]> {
    let cells: usize = rows.iter().map(PageRows::cell_count).sum();
    if SLOTS + cells <= PART_WORK {
        return Arc::default();
    }
    let (mut cuts, mut work) = (Vec::new(), 0);
    for slot in 0..SLOTS {
        work += 1 + rows.iter().map(|rows| rows.row(slot).len()).sum::<usize>();
        if work >= PART_WORK && slot + 1 < SLOTS {
            cuts.push(slot as u16 + 1);
            work = 0;
        }
    }
    cuts.into()
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn facts_of_weights_name_an_unfit_one_at_any_place() {
        let fit = [0.0, -0.0, f64::MIN_POSITIVE, 5e-324, 1.5, f64::MAX];
        let unfit = [-1.0, -5e-324, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
        for length in 0..40 {
            let mut weights: Vec<f64> = (0..length).map(|at| fit[at % (fit.len() - 1)]).collect();
            let facts = WeightFacts::of(&weights);
            assert_eq!(facts, WeightFacts { sum: weights.iter().sum(), unfit: None }, "{length} weights");
            for at in 0..length {
                for unfit in unfit {
                    let fit = std::mem::replace(&mut weights[at], unfit);
                    let found = WeightFacts::of(&weights).unfit;
                    assert_eq!(found.map(f64::to_bits), Some(unfit.to_bits()), "{at} of {length}");
                    weights[at] = fit;
                }
            }
        }
        assert_eq!(WeightFacts::of(&fit).unfit, None);
    }
}
