//! Checks that hold for a graph after any number of transactions. They read one snapshot and write nothing.

use mangrove::{
    Database, Direction, EdgeId, ExpandCursor, ExpandRequest, Expansion, GraphView, LabelFilter, Result, ScanCursor,
    Share, VertexId,
};

use crate::harness::wrong;
use mangrove_generate::random::mix;

/// Counts and a digest of a graph's edges, as one way of reading finds them.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Edges {
    count: u64,
    /// The sum over all edges of a number computed from (edge, source, target).
    digest: u64,
}

impl Edges {
    fn add(&mut self, edge: EdgeId, source: VertexId, target: VertexId) {
        self.count += 1;
        let bits = mix(edge.to_bits()) ^ mix(source.to_bits()).rotate_left(1) ^ mix(target.to_bits()).rotate_left(2);
        self.digest = self.digest.wrapping_add(mix(bits));
    }
}

/// The size of a graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size {
    /// Visible vertices.
    pub vertices: u64,
    /// Visible edges.
    pub edges: u64,
}

/// Vertices or edges in one call of the database.
const BATCH: usize = 1_024;

/// Checks that the lists of outgoing edges, the lists of incoming edges, and the edges themselves agree, and that the
/// counters equal the counts found. Returns the size of the graph.
pub fn check(database: &Database) -> Result<Size> {
    let transaction = database.begin_read()?;
    let view = transaction.view();
    let vertices = all_vertices(view)?;
    let (outgoing, incoming) = (lists(view, &vertices, Direction::Out)?, lists(view, &vertices, Direction::In)?);
    let scanned = scan(view)?;
    let size = Size {
        vertices: view.count_vertices(&LabelFilter::Any, Share::ALL)?,
        edges: view.count_edges(&LabelFilter::Any, Share::ALL)?,
    };
    if outgoing != incoming || outgoing != scanned {
        let message = format!("directions disagree: out {outgoing:?}, in {incoming:?}, edges {scanned:?}");
        return Err(wrong(message));
    }
    if size != (Size { vertices: vertices.len() as u64, edges: scanned.count }) {
        return Err(wrong(format!("{size:?} is counted, {} vertices and {scanned:?} are found", vertices.len())));
    }
    Ok(size)
}

/// All vertices that a view shows.
pub fn all_vertices(view: &dyn GraphView) -> Result<Vec<VertexId>> {
    let (mut cursor, mut vertices) = (ScanCursor::default(), Vec::new());
    while !view.scan_vertices(&LabelFilter::Any, Share::ALL, &mut cursor, BATCH, &mut vertices)? {}
    Ok(vertices)
}

/// The edges that the adjacency lists of one direction show.
fn lists(view: &dyn GraphView, vertices: &[VertexId], direction: Direction) -> Result<Edges> {
    let request = ExpandRequest { direction, labels: LabelFilter::Any, edges: true, limit: BATCH };
    let (mut edges, mut found) = (Edges::default(), Expansion::default());
    for batch in vertices.chunks(BATCH) {
        let mut cursor = ExpandCursor::default();
        loop {
            found.clear();
            let ended = view.expand(batch, &request, &mut cursor, &mut found)?;
            for ((&row, &neighbor), &edge) in found.row.iter().zip(&found.neighbor).zip(&found.edge) {
                let here = batch[row as usize];
                let (source, target) = if direction == Direction::Out { (here, neighbor) } else { (neighbor, here) };
                edges.add(edge, source, target);
            }
            if ended {
                break;
            }
        }
    }
    Ok(edges)
}

/// The edges that a scan of all edges shows.
fn scan(view: &dyn GraphView) -> Result<Edges> {
    let (mut cursor, mut edges) = (ScanCursor::default(), Edges::default());
    let (mut batch, mut sources, mut targets) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        batch.clear();
        sources.clear();
        targets.clear();
        let ended = view.scan_edges(&LabelFilter::Any, Share::ALL, &mut cursor, BATCH, &mut batch)?;
        view.edge_ends(&batch, &mut sources, &mut targets)?;
        for ((&edge, &source), &target) in batch.iter().zip(&sources).zip(&targets) {
            edges.add(edge, source, target);
        }
        if ended {
            return Ok(edges);
        }
    }
}
