//! Kronecker graphs with labels and properties in a database, and what the generator knows about them without it.

use hashbrown::HashMap;
use mangrove::{Database, Result, VertexId};
use mangrove_generate::kronecker::{KroneckerSpec, Schema};
use mangrove_generate::{GeneratedEdges, GeneratedValues, GeneratedVertices, GraphSink, MemorySink};

/// Labels and properties of the paper's artifact.
const SCHEMA: &str = include_str!("schema.toml");
const SEED: u64 = 1;

/// A graph in a database.
pub(super) struct Loaded {
    pub(super) database: Database,
    /// By number.
    pub(super) vertices: Vec<VertexId>,
    pub(super) facts: Facts,
}

/// What follows from the generated elements alone: answers of queries on the database are compared with it.
#[derive(Default)]
pub(super) struct Facts {
    pub(super) edge_count: u64,
    /// The edges of each vertex. A loop counts twice.
    pub(super) degrees: Vec<u64>,
    /// The properties of each vertex.
    pub(super) properties: Vec<u64>,
    /// Whether a vertex is a project whose name begins with [`LETTER`].
    is_named: Vec<bool>,
    /// For each resource that a named project needs, the number of edges between it and such projects.
    needs: HashMap<u64, u64>,
}

/// The letter with which BI2 looks for names, as in the paper's artifact.
pub(super) const LETTER: char = 'c';

impl Facts {
    /// The greatest numbers of BI2: of edges from a resource to projects with a name that begins with [`LETTER`].
    pub(super) fn most_needed(&self, count: usize) -> Vec<u64> {
        let mut needs: Vec<u64> = self.needs.values().copied().collect();
        needs.sort_unstable_by(|one, other| other.cmp(one));
        needs.truncate(count);
        needs
    }
}

/// The graph of the paper's artifact, with this edge factor.
pub(super) fn of_paper(scale: u32, edge_factor: u64) -> Result<Loaded> {
    load(scale, edge_factor, Schema::parse(SCHEMA)?)
}

/// A graph with these numbers of labels and of property types.
pub(super) fn of_counts(scale: u32, edge_factor: u64, labels: usize, properties: usize) -> Result<Loaded> {
    load(scale, edge_factor, Schema::with_counts(labels, properties))
}

fn load(scale: u32, edge_factor: u64, schema: Schema) -> Result<Loaded> {
    let database = Database::in_memory();
    let mut sink = Observed { facts: Facts::default(), memory: MemorySink::new(&database)? };
    KroneckerSpec { scale, edge_factor, schema, undirected: false, seed: SEED, threads: 1 }.generate(&mut sink)?;
    let Observed { facts, memory } = sink;
    Ok(Loaded { vertices: memory.finish()?, facts, database })
}

/// Writes to memory, and takes the facts on the way.
struct Observed {
    facts: Facts,
    memory: MemorySink,
}

impl GraphSink for Observed {
    fn vertices(&mut self, batch: GeneratedVertices) -> Result<()> {
        let facts = &mut self.facts;
        facts.degrees.resize(facts.degrees.len() + batch.len, 0);
        facts.properties.resize(facts.degrees.len(), batch.columns.len() as u64);
        let is_project = batch.label == "Project";
        let names = batch.columns.iter().find(|column| is_project && column.key == "name");
        match names.map(|column| &column.values) {
            Some(GeneratedValues::Text(names)) => {
                facts.is_named.extend(names.iter().map(|name| name.starts_with(LETTER)));
            }
            _ => facts.is_named.resize(facts.degrees.len(), false),
        }
        self.memory.vertices(batch)
    }

    fn edges(&mut self, batch: GeneratedEdges) -> Result<()> {
        let facts = &mut self.facts;
        facts.edge_count += batch.ends.len() as u64;
        for &(from, to) in &batch.ends {
            facts.degrees[from as usize] += 1;
            facts.degrees[to as usize] += 1;
            if batch.label == "needs" {
                for (project, resource) in [(from, to), (to, from)] {
                    if facts.is_named[project as usize] {
                        *facts.needs.entry(resource).or_default() += 1;
                    }
                }
            }
        }
        self.memory.edges(batch)
    }
}
