//! A projection: the neighbors of all vertices of a moment, as positions in compressed rows.
//!
//! Chosen vertices and edges, each edge once or in both directions, with a weight or without. A projection is made in two walks over
//! the lists of the graph: the first counts, the second copies. Rows are grouped by tablets, so tablets are counted and copied
//! side by side, each into its own part of the arrays.
//!
//! Memory: 4 bytes a cell and 8 a position for each direction, and 8 a cell more with weights. A *cell* is an entry of a row:
//! an edge that is kept in both directions has two.

use std::ops::Range;

use mangrove_graph::{
    AdjacencyRequest, Direction, EdgeId, Error, GraphView, KeyId, LabelFilter, Numbers, Result, ScanCursor, Share,
    TabletId,
};

use crate::numbering::{NO_POSITION, Numbering};
use crate::team::Team;

/// Cells and positions of a part of a phase, about: 0.1 ms of work.
const PART_WORK: u64 = 1 << 14;

/// Which rows a projection has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Orientation {
    /// Rows of outgoing and rows of incoming edges.
    Directed,
    /// One row a vertex, with the edges of both directions. An edge is in the rows of both its ends; a loop is in its row
    /// twice.
    Undirected,
}

/// What a projection is made of.
#[derive(Clone, Debug)]
pub struct ProjectionOptions {
    /// The labels of the vertices.
    pub vertices: LabelFilter,
    /// The labels of the edges. An edge counts if both its ends do.
    pub edges: LabelFilter,
    /// Which rows there are.
    pub orientation: Orientation,
    /// The property of edges that is their weight; `None`: there are no weights.
    pub weight: Option<KeyId>,
    /// The weight of an edge without the property.
    pub default_weight: f64,
}

impl Default for ProjectionOptions {
    fn default() -> Self {
        ProjectionOptions {
            vertices: LabelFilter::Any,
            edges: LabelFilter::Any,
            orientation: Orientation::Directed,
            weight: None,
            default_weight: 1.0,
        }
    }
}

/// Rows of one direction.
#[derive(Clone, Debug, Default)]
struct Rows {
    /// Where the row of each position begins, and the end of the last one.
    offsets: Vec<u64>,
    cells: Vec<u32>,
    /// Parallel to `cells`; empty without weights.
    weights: Vec<f64>,
}

impl Rows {
    #[inline]
    fn range(&self, at: u32) -> Range<usize> {
        self.offsets[at as usize] as usize..self.offsets[at as usize + 1] as usize
    }
}

/// The neighbors of all vertices of a moment.
#[derive(Clone, Debug)]
pub struct Projection {
    numbering: Numbering,
    /// Rows of outgoing edges, or of both directions.
    out: Rows,
    /// Rows of incoming edges; `None` if rows have both directions.
    incoming: Option<Rows>,
    /// Positions in ranges of about equal work.
    parts: Vec<Range<usize>>,
}

impl Projection {
    /// Reads a projection.
    ///
    /// # Errors
    ///
    /// If an edge has a weight that is no number, if the view fails, or if the query of the team has ended.
    pub fn of(view: &dyn GraphView, options: &ProjectionOptions, team: &Team) -> Result<Self> {
        let numbering = Numbering::of(view, &options.vertices)?;
        let directions: &[Direction] = match options.orientation {
            Orientation::Directed => &[Direction::Out, Direction::In],
            Orientation::Undirected => &[Direction::Both],
        };
        let mut rows = Vec::with_capacity(directions.len());
        for &direction in directions {
            rows.push(read_rows(view, options, direction, &numbering, team)?);
        }
        let (incoming, out) = match (rows.pop(), rows.pop()) {
            (Some(incoming), Some(out)) => (Some(incoming), out),
            (Some(both), None) => (None, both),
            _ => return Err(Error::bug("a projection without rows")),
        };
        let parts = parts_of(&numbering, &out, incoming.as_ref());
        Ok(Projection { numbering, out, incoming, parts })
    }

    /// The positions.
    pub fn numbering(&self) -> &Numbering {
        &self.numbering
    }

    /// The number of positions, holes included: the length of the arrays of an algorithm.
    pub fn positions(&self) -> usize {
        self.numbering.positions() as usize
    }

    /// The number of vertices.
    pub fn vertex_count(&self) -> u64 {
        self.numbering.vertex_count()
    }

    /// The number of cells of outgoing rows, or of rows of both directions.
    pub fn cell_count(&self) -> u64 {
        self.out.cells.len() as u64
    }

    /// Returns true if outgoing and incoming edges have rows of their own.
    pub fn is_directed(&self) -> bool {
        self.incoming.is_some()
    }

    /// Returns true if cells have weights.
    pub fn is_weighted(&self) -> bool {
        !self.out.weights.is_empty() || self.out.cells.is_empty()
    }

    /// The ends of outgoing edges; in an undirected projection, the other ends of all edges.
    #[inline]
    pub fn outgoing(&self, at: u32) -> &[u32] {
        &self.out.cells[self.out.range(at)]
    }

    /// The sources of incoming edges; in an undirected projection, the other ends of all edges.
    #[inline]
    pub fn incoming(&self, at: u32) -> &[u32] {
        let rows = self.incoming.as_ref().unwrap_or(&self.out);
        &rows.cells[rows.range(at)]
    }

    /// The weights of [`Projection::outgoing`]; empty if there are none.
    #[inline]
    pub fn outgoing_weights(&self, at: u32) -> &[f64] {
        self.out.weights.get(self.out.range(at)).unwrap_or_default()
    }

    /// The weights of [`Projection::incoming`]; empty if there are none.
    #[inline]
    pub fn incoming_weights(&self, at: u32) -> &[f64] {
        let rows = self.incoming.as_ref().unwrap_or(&self.out);
        rows.weights.get(rows.range(at)).unwrap_or_default()
    }

    /// The length of [`Projection::outgoing`].
    #[inline]
    pub fn out_degree(&self, at: u32) -> u32 {
        let range = self.out.range(at);
        (range.end - range.start) as u32
    }

    /// Ranges of positions that are about equally much work. They ascend and have all positions.
    pub fn parts(&self) -> &[Range<usize>] {
        &self.parts
    }

    /// The bytes that the projection holds.
    pub fn bytes(&self) -> u64 {
        let of_rows = |rows: &Rows| rows.offsets.len() * 8 + rows.cells.len() * 4 + rows.weights.len() * 8;
        let rows = of_rows(&self.out) + self.incoming.as_ref().map_or(0, of_rows);
        rows as u64 + self.numbering.bytes()
    }
}

/// Reads the rows of one direction.
fn read_rows(
    view: &dyn GraphView,
    options: &ProjectionOptions,
    direction: Direction,
    numbering: &Numbering,
    team: &Team,
) -> Result<Rows> {
    let tablets: Vec<(TabletId, Range<u32>)> = numbering.tablets().collect();
    let ranges: Vec<Range<usize>> = tablets.iter().map(|(_, range)| range.start as usize..range.end as usize).collect();
    let request = |at: usize| AdjacencyRequest {
        vertices: options.vertices.clone(),
        direction,
        labels: options.edges.clone(),
        // A share of as many parts as there may be tablets is one tablet.
        share: Share { index: tablets[at].0.0, of: u16::MAX },
        pages: ScanCursor::default(),
    };
    let mut counts = vec![0_u32; numbering.positions() as usize];
    let counted = team.map_slices(&ranges, &mut counts, |tablet, counts| {
        let first = ranges[tablet].start;
        view.for_each_adjacency(&request(tablet), &mut |runs| {
            for (vertex, neighbors, _) in runs.iter() {
                let position = numbering.position(vertex);
                if position == NO_POSITION {
                    continue;
                }
                let known = match options.vertices {
                    LabelFilter::Any => neighbors.len(),
                    // Of an edge to a vertex with another label, only this end counts.
                    _ => neighbors.iter().filter(|id| numbering.position(**id) != NO_POSITION).count(),
                };
                counts[position as usize - first] += known as u32;
            }
            Ok(())
        })
    })?;
    counted.into_iter().collect::<Result<()>>()?;
    let mut offsets = Vec::with_capacity(counts.len() + 1);
    let mut end = 0_u64;
    offsets.push(0);
    offsets.extend(counts.iter().map(|&count| {
        end += u64::from(count);
        end
    }));
    drop(counts);
    let cell_ranges: Vec<Range<usize>> =
        ranges.iter().map(|positions| offsets[positions.start] as usize..offsets[positions.end] as usize).collect();
    let mut cells = vec![0_u32; end as usize];
    let weights = team.map_slices(&cell_ranges, &mut cells, |tablet, cells| {
        copy_rows(view, options, &request(tablet), numbering, (&ranges[tablet], &offsets), cells)
    })?;
    let weights = weights.into_iter().collect::<Result<Vec<_>>>()?.concat();
    Ok(Rows { offsets, cells, weights })
}

/// Copies the rows of a tablet. Returns the weights of its cells.
fn copy_rows(
    view: &dyn GraphView,
    options: &ProjectionOptions,
    request: &AdjacencyRequest,
    numbering: &Numbering,
    (positions, offsets): (&Range<usize>, &[u64]),
    cells: &mut [u32],
) -> Result<Vec<f64>> {
    let first = offsets[positions.start];
    // Where the next cell of each row goes.
    let mut next: Vec<u64> = offsets[positions.clone()].iter().map(|offset| offset - first).collect();
    let mut weights = vec![options.default_weight; if options.weight.is_some() { cells.len() } else { 0 }];
    let (mut edges, mut places, mut numbers) = (Vec::<EdgeId>::new(), Vec::new(), Numbers::default());
    view.for_each_adjacency(request, &mut |runs| {
        edges.clear();
        places.clear();
        for (vertex, neighbors, of_neighbors) in runs.iter() {
            let position = numbering.position(vertex);
            if position == NO_POSITION {
                continue;
            }
            let next = &mut next[position as usize - positions.start];
            for (&neighbor, &edge) in neighbors.iter().zip(of_neighbors) {
                let neighbor = numbering.position(neighbor);
                if neighbor == NO_POSITION {
                    continue;
                }
                let place = *next as usize;
                *cells.get_mut(place).ok_or_else(|| Error::bug("a row has grown between two walks"))? = neighbor;
                if options.weight.is_some() {
                    edges.push(edge);
                    places.push(place);
                }
                *next += 1;
            }
        }
        if let Some(key) = options.weight {
            numbers.clear();
            if !view.edge_numbers(&edges, key, &mut numbers)? {
                let name = view.catalog().key_name(key);
                return Err(Error::invalid(format!(
                    "the weights of the edges, their property '{name}', are not all numbers of one type"
                )));
            }
            for (at, &row) in numbers.row.iter().enumerate() {
                let weight = numbers.floats.get(at).copied().or_else(|| numbers.integers.get(at).map(|n| *n as f64));
                weights[places[row as usize]] = weight.unwrap_or(options.default_weight);
            }
        }
        Ok(())
    })?;
    Ok(weights)
}

/// Cuts the positions into ranges of about equal work.
fn parts_of(numbering: &Numbering, out: &Rows, incoming: Option<&Rows>) -> Vec<Range<usize>> {
    let (mut parts, mut start, mut work) = (Vec::new(), 0, 0);
    for at in 0..numbering.positions() as usize {
        let of = |rows: &Rows| rows.offsets[at + 1] - rows.offsets[at];
        work += 1 + of(out) + incoming.map_or(0, of);
        if work >= PART_WORK {
            parts.push(start..at + 1);
            (start, work) = (at + 1, 0);
        }
    }
    if start < numbering.positions() as usize {
        parts.push(start..numbering.positions() as usize);
    }
    parts
}
