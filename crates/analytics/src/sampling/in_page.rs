//! The incoming edges of the targets of a page: of one edge type, with weights and times.
//!
//! With times, the edges of each row ascend by them. So the edges that are not later than a moment are the beginning of a row.

use std::sync::Arc;

use mangrove_graph::{EdgeId, Error, GraphView, KeyId, Numbers, Result};

use super::rows::InRow;
use crate::numbering::SLOTS;
use crate::page_rows::PageRows;

/// Where the cells begin, as in [`PageRows`].
const HEAD: usize = SLOTS + 1;

/// The rows of a page.
#[derive(Clone, Debug)]
pub(crate) struct InPage {
    /// Where the row of each slot begins in this array, where the last one ends, and then the sources.
    rows: Arc<[u32]>,
    edges: Arc<[EdgeId]>,
    weights: Arc<[f64]>,
    times: Arc<[i64]>,
}

impl Default for InPage {
    fn default() -> Self {
        InPage {
            rows: [HEAD as u32; HEAD].into(),
            edges: Arc::default(),
            weights: Arc::default(),
            times: Arc::default(),
        }
    }
}

/// The properties of edges that pages have.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EdgeKeys {
    pub(crate) weight: Option<KeyId>,
    pub(crate) time: Option<KeyId>,
    /// Whether edges stay known by their ids.
    pub(crate) names_edges: bool,
}

impl InPage {
    /// These rows, with the properties of their edges. The rows must name their edges if there are any keys.
    pub(crate) fn of(view: &dyn GraphView, rows: PageRows, keys: EdgeKeys) -> Result<Self> {
        let (rows, edges) = rows.into_cells();
        let mut page = InPage { rows, edges, weights: Arc::default(), times: Arc::default() };
        page.read_properties(view, keys)?;
        if !keys.names_edges {
            page.edges = Arc::default();
        }
        Ok(page)
    }

    fn read_properties(&mut self, view: &dyn GraphView, keys: EdgeKeys) -> Result<()> {
        if let Some(key) = keys.weight {
            self.weights = weights_of(view, key, &self.edges)?.into();
        }
        if let Some(key) = keys.time {
            self.times = times_of(view, key, &self.edges)?.into();
            self.sort_by_time();
        }
        Ok(())
    }

    /// Puts the edges of each row in the order of their times; those of one time stay in their order.
    fn sort_by_time(&mut self) {
        let mut order: Vec<usize> = (0..self.times.len()).collect();
        for slot in 0..SLOTS {
            let (begin, end) = (self.rows[slot] as usize - HEAD, self.rows[slot + 1] as usize - HEAD);
            order[begin..end].sort_by_key(|at| self.times[*at]);
        }
        let cells = order.iter().map(|at| self.rows[HEAD + at]);
        self.rows = self.rows[..HEAD].iter().copied().chain(cells).collect();
        self.times = order.iter().map(|at| self.times[*at]).collect();
        self.edges = order.iter().map(|at| self.edges[*at]).collect();
        if !self.weights.is_empty() {
            self.weights = order.iter().map(|at| self.weights[*at]).collect();
        }
    }

    /// The row of a slot. `first_edge` is the number of the first edge of the page.
    #[inline]
    pub(crate) fn row(&self, slot: usize, first_edge: u64) -> InRow<'_> {
        let rows = &*self.rows;
        let (begin, end) = (rows[slot] as usize, rows[slot + 1] as usize);
        let of_cells = begin - HEAD..end - HEAD;
        InRow {
            sources: &rows[begin..end],
            first_edge: first_edge + of_cells.start as u64,
            weights: self.weights.get(of_cells.clone()).unwrap_or_default(),
            times: self.times.get(of_cells).unwrap_or_default(),
        }
    }

    /// The number of edges.
    pub(crate) fn edge_count(&self) -> usize {
        self.rows.len() - HEAD
    }

    /// The id of an edge by its number within the page; `None` if edges are not known by their ids.
    pub(crate) fn edge(&self, at: usize) -> Option<EdgeId> {
        self.edges.get(at).copied()
    }

    /// The slot of the target of an edge, by its number within the page.
    pub(crate) fn slot_of(&self, at: usize) -> usize {
        self.rows[..HEAD].partition_point(|begin| *begin as usize <= HEAD + at) - 1
    }

    /// The bytes that the page holds.
    pub(crate) fn bytes(&self) -> u64 {
        (self.rows.len() * 4 + (self.edges.len() + self.weights.len() + self.times.len()) * 8 + size_of::<Self>())
            as u64
    }
}

/// How messages name an edge: by the id that users know.
fn named(view: &dyn GraphView, edge: EdgeId) -> String {
    let mut ids = Vec::new();
    match view.edge_user_ids(&[edge], &mut ids) {
        Ok(()) if !ids.is_empty() => format!("{:?}", ids[0]),
        _ => format!("{edge:?}"),
    }
}

/// The weights of edges; 1 for those without one.
fn weights_of(view: &dyn GraphView, key: KeyId, edges: &[EdgeId]) -> Result<Vec<f64>> {
    let mut numbers = Numbers::default();
    if !view.edge_numbers(edges, key, &mut numbers)? {
        return Err(Error::invalid(format!(
            "the weights of the edges, their property '{}', are not all numbers of one type",
            view.key_name(key)
        )));
    }
    let mut weights = vec![1.0; edges.len()];
    for (at, &row) in numbers.row.iter().enumerate() {
        let weight = numbers.floats.get(at).copied().or_else(|| numbers.integers.get(at).map(|n| *n as f64));
        let weight = weight.unwrap_or(1.0);
        if !(weight.is_finite() && weight >= 0.0) {
            return Err(Error::invalid(format!(
                "edge {} has the weight {weight} under '{}': weights are finite and not negative",
                named(view, edges[row as usize]),
                view.key_name(key)
            )));
        }
        weights[row as usize] = weight;
    }
    Ok(weights)
}

/// The times of edges: integers of any unit.
fn times_of(view: &dyn GraphView, key: KeyId, edges: &[EdgeId]) -> Result<Vec<i64>> {
    let mut numbers = Numbers::default();
    if !view.edge_numbers(edges, key, &mut numbers)? || !numbers.floats.is_empty() {
        return Err(Error::invalid(format!(
            "the times of the edges, their property '{}', are not all integers of one type",
            view.key_name(key)
        )));
    }
    if let Some(row) = first_missing(&numbers.row, edges.len()) {
        return Err(Error::invalid(format!(
            "edge {} has no time under '{}': give each edge of a type with times one",
            named(view, edges[row]),
            view.key_name(key)
        )));
    }
    Ok(numbers.integers)
}

/// The first of `count` rows that is not among these, which ascend and do not repeat.
pub(crate) fn first_missing(rows: &[u32], count: usize) -> Option<usize> {
    (0..count).find(|row| rows.get(*row).is_none_or(|found| *found as usize != *row))
}
