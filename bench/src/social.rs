//! The graph of the suites `hop` and `scan`: people who know one another.

use mangrove::{Database, EdgeId, LabelSetId, Result, VertexId};

use crate::csr::Csr;
use crate::kronecker;
use crate::options::{EDGE_FACTOR, Scale};
use crate::people::{self, Columns, PeopleContent, PeopleNames};
use mangrove_generate::random::{RandomStream, mix};

/// The label of edges.
pub const KNOWS: &str = "knows";

/// The seed of every graph.
const SEED: u64 = 20;

/// Edges for each vertex of the graph without hubs.
const EVEN_FACTOR: usize = 10;

/// Edges in one call of the loader.
pub const EDGE_BATCH: usize = 1 << 20;

/// The edges of a Kronecker graph, by numbers of people.
pub fn edges(scale: Scale) -> Vec<(u32, u32)> {
    kronecker::edges(scale.log_vertices(), EDGE_FACTOR, SEED)
}

/// The edges of a graph without hubs: every pair is equally likely. The other databases were measured on this graph.
pub fn even_edges(scale: Scale) -> Vec<(u32, u32)> {
    let (count, mut random) = (1u64 << scale.log_vertices(), RandomStream::from_seed(mix(SEED)));
    let mut person = || random.below(count) as u32;
    (0..count as usize * EVEN_FACTOR).map(|_| (person(), person())).collect()
}

/// People and their edges, in a database and as plain arrays.
pub struct Social {
    /// The database.
    pub database: Database,
    /// The catalog's numbers for its names.
    pub names: PeopleNames,
    /// The label of edges.
    pub knows: LabelSetId,
    /// The vertices, by number.
    pub vertices: Vec<VertexId>,
    /// The properties as plain arrays.
    pub columns: Columns,
    /// The edges as a static graph.
    pub csr: Csr,
}

impl Social {
    /// Loads these edges and as many people as the scale has.
    pub fn load(scale: Scale, edges: &[(u32, u32)]) -> Result<Self> {
        let count = 1 << scale.log_vertices();
        let csr = Csr::new(count, edges);
        let database = Database::in_memory();
        let names = PeopleNames::of(&database);
        let knows = database.catalog().intern_label_text(KNOWS);
        let mut loader = database.bulk_load()?;
        let people = people::batches(&database, count, PeopleContent::AllProperties);
        let vertices = people::load(&mut loader, names.person, &people)?;
        load_edges(&mut loader, knows, &ends(&vertices, edges))?;
        loader.finish()?;
        Ok(Social { database, names, knows, vertices, columns: Columns::new(count), csr })
    }
}

/// Replaces numbers by vertices.
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
