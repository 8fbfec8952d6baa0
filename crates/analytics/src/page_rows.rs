//! The rows of a page of vertices, and how they are read.
//!
//! A walk over a page shows pieces: lists of one label and direction, of vertices that follow one another. The cells of all pieces are
//! put one after the other, as positions, while they are in the cache. If each vertex has one run, these are the rows.
//! Otherwise the runs of a vertex are then put together.

use std::ops::Range;
use std::sync::Arc;

use mangrove_graph::{
    AdjacencyRequest, Direction, EdgeId, Error, GraphView, LabelFilter, Numbers, Result, ScanCursor, Share, VertexPage,
};
use parking_lot::Mutex;

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
    weights: Vec<f64>,
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
        let is_unfit = |weight: &&f64| !(weight.is_finite() && **weight >= 0.0);
        WeightFacts { sum: weights.iter().sum(), unfit: weights.iter().find(is_unfit).copied() }
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

/// Lists of vertices that follow one another.
struct Piece {
    /// The slot of the first vertex.
    first: usize,
    /// How many vertices there are.
    count: usize,
}

/// The arrays of one reading thread, which are used for one page after another.
#[derive(Default)]
struct Arrays {
    vertices: Vec<mangrove_graph::VertexId>,
    pieces: Vec<Piece>,
    /// The length of each list of each piece.
    lengths: Vec<u32>,
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
        let Arrays { pieces, lengths, cells, edges, weights, .. } = arrays;
        if cells.len() + HEAD > u32::MAX as usize {
            return Err(Error::unsupported("a page of vertices has more than four billion edges"));
        }
        // Where each row begins, and where the next cell of the row goes.
        let mut begins = [0_u32; HEAD];
        let (mut at, mut is_in_order, mut end) = (0, true, 0);
        for piece in &*pieces {
            for (begin, length) in begins[piece.first..].iter_mut().zip(&lengths[at..at + piece.count]) {
                *begin += length;
            }
            at += piece.count;
            is_in_order &= piece.first >= end;
            end = piece.first + piece.count;
        }
        let squares = begins.iter().map(|length| u64::from(*length) * u64::from(*length)).sum();
        let mut next = HEAD as u32;
        begins.iter_mut().for_each(|begin| next += std::mem::replace(begin, next));
        let names_edges = self.options.names_edges;
        let of_weights = WeightFacts::of(weights);
        if is_in_order {
            let edges = if names_edges { edges.iter().copied().collect() } else { Arc::default() };
            return Ok(PageRows {
                rows: begins.iter().chain(&*cells).copied().collect(),
                rest: Arc::new(Rest { weights: weights.clone(), edges, of_weights, squares }),
            });
        }
        let mut rows: Arc<[u32]> = std::iter::repeat_n(0, HEAD + cells.len()).collect();
        let placed = Arc::get_mut(&mut rows).expect("the array is new");
        placed[..HEAD].copy_from_slice(&begins);
        scatter(pieces, lengths, cells, &mut begins, placed);
        let mut placed_weights = vec![0.0; weights.len()];
        if !weights.is_empty() {
            place(&rows[..HEAD], &mut begins);
            scatter(pieces, lengths, weights, &mut begins, &mut placed_weights);
        }
        let mut placed_edges = vec![EdgeId::from_bits(0); if names_edges { edges.len() } else { 0 }];
        if names_edges {
            place(&rows[..HEAD], &mut begins);
            scatter(pieces, lengths, edges, &mut begins, &mut placed_edges);
        }
        let rest = Rest { weights: placed_weights, edges: placed_edges.into(), of_weights, squares };
        Ok(PageRows { rows, rest: Arc::new(rest) })
    }

    /// Walks over the lists of a page.
    fn collect(&self, pages: ScanCursor, direction: Direction, arrays: &mut Arrays) -> Result<()> {
        let Arrays { pieces, lengths, cells, edges, weights, .. } = arrays;
        pieces.clear();
        lengths.clear();
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
        };
        self.view.for_each_adjacency(&request, &mut |runs| {
            if runs.vertex_count() == 0 {
                return Ok(());
            }
            pieces.push(Piece { first: runs.vertex(0).offset(), count: runs.vertex_count() });
            if takes_all {
                let begin = cells.len();
                lengths.extend(runs.iter().map(|(_, neighbors, _)| neighbors.len() as u32));
                self.numbering.append_positions(runs.all_neighbors(), cells);
                if cells[begin..].contains(&NO_POSITION) {
                    return Err(Error::bug("a neighbor is on a page that the view did not name"));
                }
                if needs_edges {
                    edges.extend_from_slice(runs.all_edges());
                }
                return Ok(());
            }
            for (_, neighbors, of_neighbors) in runs.iter() {
                let begin = cells.len();
                // Of an edge to a vertex with another label, only this end counts.
                let known = neighbors.iter().zip(of_neighbors).map(|(id, edge)| (self.numbering.position(*id), edge));
                for (position, edge) in known.filter(|(position, _)| *position != NO_POSITION) {
                    cells.push(position);
                    if needs_edges {
                        edges.push(*edge);
                    }
                }
                lengths.push((cells.len() - begin) as u32);
            }
            Ok(())
        })
    }

    /// Reads the weights of the edges of all cells.
    fn read_weights(&self, arrays: &mut Arrays) -> Result<()> {
        let Some(key) = self.options.weight else { return Ok(()) };
        let Arrays { edges, weights, numbers, .. } = arrays;
        numbers.clear();
        if !self.view.edge_numbers(edges, key, numbers)? {
            let name = self.view.catalog().key_name(key);
            return Err(Error::invalid(format!(
                "the weights of the edges, their property '{name}', are not all numbers of one type"
            )));
        }
        weights.resize(edges.len(), self.options.default_weight);
        for (at, &row) in numbers.row.iter().enumerate() {
            let weight = numbers.floats.get(at).copied().or_else(|| numbers.integers.get(at).map(|n| *n as f64));
            weights[row as usize] = weight.unwrap_or(self.options.default_weight);
        }
        Ok(())
    }
}

/// Where rows begin in arrays of their cells alone.
fn place(begins: &[u32], next: &mut [u32; HEAD]) {
    next.iter_mut().zip(begins).for_each(|(next, begin)| *next = begin - HEAD as u32);
}

/// Puts the lists of each vertex together. `next` says where the next cell of each row goes.
fn scatter<T: Copy>(pieces: &[Piece], lengths: &[u32], cells: &[T], next: &mut [u32; HEAD], to: &mut [T]) {
    let (mut at, mut from) = (0, 0);
    for piece in pieces {
        for (next, length) in next[piece.first..].iter_mut().zip(&lengths[at..at + piece.count]) {
            let (begin, length) = (*next as usize, *length as usize);
            to[begin..begin + length].copy_from_slice(&cells[from..from + length]);
            from += length;
            *next += length as u32;
        }
        at += piece.count;
    }
}

/// Cuts the slots of a page into ranges of about equal work.
fn cuts_of(rows: &[PageRows]) -> Arc<[u16]> {
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
