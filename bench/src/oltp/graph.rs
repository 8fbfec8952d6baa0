//! The graph for transactions: a Kronecker graph with labels and properties.
//!
//! 20 vertex labels and 13 vertex property types (the GDI paper's defaults): every vertex has `name` (eight letters,
//! nearly unique), `p0`, and one of `p1` to `p11`, which its label determines. Edges have one of four labels: `e0`
//! (half of them) to `e3` (one in a hundred). If a workload needs edge properties, an edge has `w`: one of a thousand
//! integers. The id of a vertex is its number; everything else is a function of the number.

use std::sync::atomic::{AtomicU64, Ordering};

use mangrove::{Database, EdgeId, IndexId, KeyId, LabelSetId, Result, UserId, Value, VertexId};
use mangrove_store::{BulkColumn, ColumnData};

use super::template::Operations;
use crate::kronecker;
use crate::options::EDGE_FACTOR;
use crate::people;
use crate::social::EDGE_BATCH;
use mangrove_generate::random::{below, mix};

/// The number of vertex labels.
pub const VERTEX_LABELS: u64 = 20;
/// The number of property types beside `name` and `p0`.
const OTHER_KEYS: u64 = 11;
/// The number of values of the edge property `w`.
pub const EDGE_VALUES: u64 = 1_000;
/// Cumulative percentages of the edge labels.
const EDGE_LABELS_UP_TO: [u64; 4] = [50, 80, 99, 100];

const SEED: u64 = 22;

/// The catalog's numbers for the names in the graph.
#[derive(Clone, Copy, Debug)]
pub struct GraphNames {
    /// `l0`, … `l19`
    pub labels: [LabelSetId; VERTEX_LABELS as usize],
    /// `e0` to `e3`
    pub edge_labels: [LabelSetId; EDGE_LABELS_UP_TO.len()],
    /// `name`
    pub name: KeyId,
    /// `w`
    pub weight: KeyId,
}

impl GraphNames {
    fn of(database: &Database) -> Self {
        let catalog = database.catalog();
        GraphNames {
            labels: std::array::from_fn(|n| catalog.intern_label_text(&format!("l{n}"))),
            edge_labels: std::array::from_fn(|n| catalog.intern_label_text(&format!("e{n}"))),
            name: catalog.intern_key(NAME),
            weight: catalog.intern_key(WEIGHT),
        }
    }
}

/// The key of names.
pub const NAME: &str = "name";
/// The key of the property that updates change.
pub const UPDATED: &str = "p0";
/// The key that is added and removed.
pub const NOTE: &str = "note";
/// The key of the edge property.
pub const WEIGHT: &str = "w";

/// The label of a vertex, as an index into [`GraphNames::labels`].
pub fn label_of(number: u64) -> usize {
    below(mix(number ^ 0x1abe1), VERTEX_LABELS) as usize
}

/// The value of [`UPDATED`] with which a vertex is loaded.
pub fn loaded_value(number: u64) -> i64 {
    people::born(number)
}

fn edge_label(index: usize) -> usize {
    let percent = below(mix(index as u64 ^ 0xed6e), 100);
    EDGE_LABELS_UP_TO.iter().position(|&end| percent < end).expect("the last label takes up to 100")
}

/// The edges of a graph, which can be loaded any number of times.
pub struct Blueprint {
    vertex_count: u64,
    edges: Vec<(u32, u32)>,
}

impl Blueprint {
    /// A Kronecker graph of `2^log_vertices` vertices with 16 edges each.
    pub fn kronecker(log_vertices: u32) -> Self {
        Blueprint { vertex_count: 1 << log_vertices, edges: kronecker::edges(log_vertices, EDGE_FACTOR, SEED) }
    }

    /// The edges, by vertex numbers.
    pub fn edges(&self) -> &[(u32, u32)] {
        &self.edges
    }

    /// The number of vertices.
    pub fn vertex_count(&self) -> u64 {
        self.vertex_count
    }

    /// A new database with the graph. For LBV's templates it also has edge properties and an index on names.
    pub fn load(&self, operations: Operations) -> Result<Graph> {
        let database = Database::in_memory();
        let names = GraphNames::of(&database);
        let with_properties = operations == Operations::Lbv;
        let mut loader = database.bulk_load()?;
        let vertices = load_vertices(&mut loader, &database, &names, self.vertex_count)?;
        let mut edges = Vec::with_capacity(self.edges.len());
        for (label, set) in names.edge_labels.into_iter().enumerate() {
            let of_label = self.edges.iter().enumerate().filter(|(index, _)| edge_label(*index) == label);
            let ends: Vec<_> = of_label.map(|(_, &(s, t))| (vertices[s as usize], vertices[t as usize])).collect();
            for (batch, ends) in ends.chunks(EDGE_BATCH).enumerate() {
                let first = batch * EDGE_BATCH;
                let weights = (0..ends.len()).map(|n| below(mix((first + n) as u64), EDGE_VALUES) as i64);
                let columns = [BulkColumn { key: names.weight, values: ColumnData::I64(weights.collect()) }];
                let columns = if with_properties { &columns[..] } else { &[] };
                edges.extend(loader.edges(set, ends, None, columns)?);
            }
        }
        loader.finish()?;
        let index = with_properties.then(|| database.create_index(None, NAME, false, false)).transpose()?;
        let next = AtomicU64::new(self.vertex_count);
        Ok(Graph { database, names, index, vertex_count: self.vertex_count, edges, next })
    }
}

fn load_vertices(
    loader: &mut mangrove_store::BulkLoader,
    database: &Database,
    names: &GraphNames,
    count: u64,
) -> Result<Vec<VertexId>> {
    let mut numbers: Vec<Vec<u64>> = vec![Vec::new(); VERTEX_LABELS as usize];
    (0..count).for_each(|number| numbers[label_of(number)].push(number));
    let mut vertices = vec![VertexId::from_bits(0); count as usize];
    for (label, numbers) in numbers.iter().enumerate() {
        let ids: Vec<UserId> = numbers.iter().map(|&number| people::id(number)).collect();
        let key = |text: &str| database.catalog().intern_key(text);
        let other = format!("p{}", 1 + label as u64 % OTHER_KEYS);
        let integers = |salt: u64| ColumnData::I64(numbers.iter().map(|n| loaded_value(n ^ salt)).collect());
        let columns = [
            BulkColumn {
                key: names.name,
                values: ColumnData::String(numbers.iter().map(|&n| people::name(n)).collect()),
            },
            BulkColumn { key: key(UPDATED), values: integers(0) },
            BulkColumn { key: key(&other), values: integers(1 << 40) },
        ];
        let loaded = loader.vertices(names.labels[label], ids.len(), Some(&ids), &columns)?;
        numbers.iter().zip(loaded).for_each(|(&number, vertex)| vertices[number as usize] = vertex);
    }
    Ok(vertices)
}

/// A loaded graph.
pub struct Graph {
    /// The database.
    pub database: Database,
    /// The catalog's numbers for its names.
    pub names: GraphNames,
    /// The index on names, if there is one.
    pub index: Option<IndexId>,
    /// The number of loaded vertices.
    pub vertex_count: u64,
    /// The loaded edges.
    pub edges: Vec<EdgeId>,
    next: AtomicU64,
}

impl Graph {
    /// A number that no vertex has.
    pub fn new_number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// All numbers given to vertices are below this one. Some of these vertices may not be committed, or be deleted.
    pub fn number_count(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }
}

/// The id of a vertex, as a parameter.
pub fn id_value(number: u64) -> Value {
    Value::I64(number as i64)
}
