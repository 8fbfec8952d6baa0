//! The graphs of the suite: their edges, once each, in a database and as a file for other programs.

use std::io::{BufWriter, Write};
use std::path::Path;

use mangrove::{Database, KeyId, Result, VertexId};
use mangrove_generate::random::{RandomStream, mix};
use mangrove_store::{BulkColumn, ColumnData};

use crate::kronecker;
use crate::options::{EDGE_FACTOR, Scale};
use crate::social::EDGE_BATCH;

const SEED: u64 = 1;

/// Weights are whole numbers from 1 to this, as in the GAP benchmark.
const WEIGHT_MAX: u64 = 255;

/// An undirected graph without loops and parallel edges.
pub(super) struct Graph {
    pub(super) name: String,
    pub(super) vertex_count: usize,
    /// Each edge once.
    pub(super) edges: Vec<(u32, u32)>,
}

impl Graph {
    /// A graph with the degree skew of social networks.
    pub(super) fn kronecker(scale: Scale) -> Self {
        let scale = scale.log_vertices();
        Self::of(format!("kronecker {scale}"), 1 << scale, kronecker::edges(scale, EDGE_FACTOR, SEED))
    }

    /// A graph like a network of roads: a grid, of which some edges are missing.
    pub(super) fn road(scale: Scale) -> Self {
        let scale = scale.log_vertices();
        let (width, height) = (1_u32 << scale.div_ceil(2), 1_u32 << (scale / 2));
        let mut random = RandomStream::from_seed(mix(SEED));
        let mut edges = Vec::new();
        // The numbers of neighbors are near one another, as those of a map are.
        for (x, y) in (0..height).flat_map(|y| (0..width).map(move |x| (x, y))) {
            let at = y * width + x;
            for (is_inside, other) in [(x + 1 < width, at + 1), (y + 1 < height, at + width)] {
                if is_inside && random.below(100) < 90 {
                    edges.push((at, other));
                }
            }
        }
        Self::of(format!("road {scale}"), 1 << scale, edges)
    }

    /// The graph of a file with a pair of numbers in each line.
    pub(super) fn of_file(path: &Path) -> Result<Self> {
        let text =
            std::fs::read_to_string(path).map_err(|error| mangrove::Error::from(error).context(path.display()))?;
        let number = |text: Option<&str>| text.and_then(|text| text.parse::<u32>().ok());
        let mut edges = Vec::new();
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
            let mut words = line.split_whitespace();
            let (Some(from), Some(to)) = (number(words.next()), number(words.next())) else {
                let message = format!("line {} of {} is not two numbers: {line}", at + 1, path.display());
                return Err(mangrove::Error::invalid(message));
            };
            edges.push((from, to));
        }
        if edges.iter().all(|(from, to)| from == to) {
            let message = format!("{} has no edge between two vertices: give a pair of numbers a line", path.display());
            return Err(mangrove::Error::invalid(message));
        }
        let count = edges.iter().map(|(from, to)| from.max(to) + 1).max().unwrap_or_default();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self::of(name, count as usize, edges))
    }

    fn of(name: String, vertex_count: usize, mut edges: Vec<(u32, u32)>) -> Self {
        edges.retain(|(from, to)| from != to);
        edges.iter_mut().for_each(|(from, to)| (*from, *to) = ((*from).min(*to), (*from).max(*to)));
        edges.sort_unstable();
        edges.dedup();
        Graph { name, vertex_count, edges }
    }

    /// The cells of an undirected projection.
    pub(super) fn cell_count(&self) -> f64 {
        2.0 * self.edges.len() as f64
    }

    /// Writes the edges for a program that reads pairs of numbers.
    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let mut file = BufWriter::new(std::fs::File::create(path)?);
        self.edges.iter().try_for_each(|(from, to)| writeln!(file, "{from} {to}"))?;
        Ok(file.flush()?)
    }

    /// Writes the edges with their weights.
    pub(super) fn write_weighted(&self, path: &Path) -> Result<()> {
        let mut file = BufWriter::new(std::fs::File::create(path)?);
        for (number, (from, to)) in self.edges.iter().enumerate() {
            writeln!(file, "{from} {to} {}", weight(number))?;
        }
        Ok(file.flush()?)
    }

    /// Loads the graph, with the weights of its edges.
    pub(super) fn load(&self) -> Result<Loaded> {
        let database = Database::in_memory();
        let (place, road) =
            (database.catalog().intern_label_text("place"), database.catalog().intern_label_text("road"));
        let weight_key = database.catalog().intern_key("weight");
        let mut loader = database.bulk_load()?;
        let vertices = loader.vertices(place, self.vertex_count, None, &[])?;
        for (batch, edges) in self.edges.chunks(EDGE_BATCH).enumerate() {
            let ends: Vec<_> =
                edges.iter().map(|(from, to)| (vertices[*from as usize], vertices[*to as usize])).collect();
            let weights = (0..edges.len()).map(|at| weight(batch * EDGE_BATCH + at) as f64).collect();
            let column = BulkColumn { key: weight_key, values: ColumnData::F64(weights) };
            loader.edges(road, &ends, None, &[column])?;
        }
        loader.finish()?;
        Ok(Loaded { database, vertices, weight: weight_key })
    }
}

/// The weight of an edge by its number.
fn weight(number: usize) -> u64 {
    1 + mix(number as u64 ^ 0x77) % WEIGHT_MAX
}

/// A graph in a database.
pub(super) struct Loaded {
    pub(super) database: Database,
    /// By number.
    pub(super) vertices: Vec<VertexId>,
    /// The key of the weights.
    pub(super) weight: KeyId,
}
