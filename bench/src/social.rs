//! The graph of the hops and scans: people who know one another.

use mangrove::{Database, EdgeId, LabelSetId, Result, VertexId};

use crate::csr::Csr;
use crate::kronecker;
use crate::options::{EDGE_FACTOR, Scale};
use crate::people::{self, Columns, Names, Shape};

/// The label of edges.
pub const KNOWS: &str = "knows";

/// The seed of every graph.
const SEED: u64 = 20;

/// Queries start from vertices with so many out-neighbors: light queries, as most are. Hubs are for the scans.
const START_DEGREES: std::ops::RangeInclusive<u64> = 8..=24;

/// Edges of one call of the loader.
pub const EDGE_BATCH: usize = 1 << 20;

/// The edges by numbers of people.
pub fn edges(scale: Scale) -> Vec<(u32, u32)> {
    kronecker::edges(scale.log_vertices(), EDGE_FACTOR, SEED)
}

/// The people and whom they know, in a database and as plain arrays.
pub struct Social {
    /// The database.
    pub database: Database,
    /// What its catalog calls things.
    pub names: Names,
    /// The label of edges.
    pub knows: LabelSetId,
    /// The vertices by number.
    pub vertices: Vec<VertexId>,
    /// The properties as plain arrays.
    pub columns: Columns,
    /// The edges as a static graph.
    pub csr: Csr,
    /// Where queries start.
    pub starts: Vec<u32>,
}

impl Social {
    /// Generates and loads it.
    pub fn load(scale: Scale) -> Result<Self> {
        let edges = edges(scale);
        let count = 1 << scale.log_vertices();
        let csr = Csr::new(count, &edges);
        let database = Database::in_memory();
        let names = Names::of(&database);
        let knows = database.catalog().intern_label_text(KNOWS);
        let mut loader = database.bulk_load()?;
        let people = people::batches(&database, count, Shape::AllProperties);
        let vertices = people::load(&mut loader, names.person, &people)?;
        load_edges(&mut loader, knows, &ends(&vertices, &edges))?;
        loader.finish()?;
        let starts = (0..count as u32).filter(|&v| START_DEGREES.contains(&csr.degree(v as usize))).collect();
        Ok(Social { database, names, knows, vertices, columns: Columns::new(count), csr, starts })
    }
}

/// Edges by vertices instead of numbers.
pub fn ends(vertices: &[VertexId], edges: &[(u32, u32)]) -> Vec<(VertexId, VertexId)> {
    edges.iter().map(|&(source, target)| (vertices[source as usize], vertices[target as usize])).collect()
}

/// Loads edges without properties.
pub fn load_edges(
    loader: &mut mangrove_store::BulkLoader,
    label: LabelSetId,
    ends: &[(VertexId, VertexId)],
) -> Result<()> {
    ends.chunks(EDGE_BATCH).try_for_each(|batch| loader.edges(label, batch, None, &[]).map(|_: Vec<EdgeId>| ()))
}
