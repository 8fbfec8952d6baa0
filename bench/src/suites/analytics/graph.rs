//! The graphs of the suite: their edges, once each, in a database and as a file for other programs.

use std::io::{BufWriter, Write};
use std::path::Path;

use mangrove::{Database, Error, KeyId, Result, VertexId};
use mangrove_generate::random::{RandomStream, mix};
use mangrove_store::{BulkColumn, ColumnData};

use crate::kronecker;
use crate::options::{EDGE_FACTOR, Scale};
use crate::social::EDGE_BATCH;

const SEED: u64 = 1;

/// Weights are whole numbers from 1 to this, as in the GAP benchmark.
const WEIGHT_MAX: u64 = 255;

/// Where a graph comes from.
pub(super) enum Source<'o> {
    /// A graph with the degree skew of social networks.
    Kronecker(Scale),
    /// A graph like a network of roads.
    Road(Scale),
    /// The graph of a file.
    File(&'o Path),
}

impl Source<'_> {
    /// The name of the graph.
    pub(super) fn name(&self) -> String {
        match self {
            Source::Kronecker(scale) => format!("kronecker {}", scale.log_vertices()),
            Source::Road(scale) => format!("road {}", scale.log_vertices()),
            Source::File(path) => path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        }
    }

    /// Makes or reads the graph.
    pub(super) fn graph(&self) -> Result<Graph> {
        match self {
            Source::Kronecker(scale) => Ok(Graph::kronecker(self.name(), *scale)),
            Source::Road(scale) => Ok(Graph::road(self.name(), *scale)),
            Source::File(path) => Graph::of_file(self.name(), path),
        }
    }
}

/// An undirected graph without loops and parallel edges.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) name: String,
    pub(super) vertex_count: usize,
    /// Each edge once.
    pub(super) edges: Vec<(u32, u32)>,
    /// The weight of each edge.
    weights: Vec<u32>,
}

impl Graph {
    fn kronecker(name: String, scale: Scale) -> Self {
        let scale = scale.log_vertices();
        Self::drawn(name, 1 << scale, kronecker::edges(scale, EDGE_FACTOR, SEED))
    }

    /// A grid, of which some edges are missing.
    fn road(name: String, scale: Scale) -> Self {
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
        Self::drawn(name, 1 << scale, edges)
    }

    /// The graph of a file with `source target` or `source target weight` in each line. Vertices have any numbers; lines that begin with
    /// `#` or `%` are comments. If some line has no weight, all weights are drawn.
    fn of_file(name: String, path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|error| Error::from(error).context(path.display()))?;
        let (mut edges, mut weights) = (Vec::new(), Vec::new());
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with(['#', '%']) {
                continue;
            }
            let mut words = line.split([' ', '\t', ',']).filter(|word| !word.is_empty());
            let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
            let (Some(from), Some(to)) = (number(), number()) else {
                let message = format!(
                    "line {} of {} does not begin with the numbers of two vertices: {line}",
                    at + 1,
                    path.display()
                );
                return Err(Error::invalid(message));
            };
            edges.push((from, to));
            weights.extend(number().and_then(|weight| u32::try_from(weight).ok()).filter(|weight| *weight > 0));
        }
        if edges.iter().all(|(from, to)| from == to) {
            let message = format!("{} has no edge between two vertices: give a pair of numbers a line", path.display());
            return Err(Error::invalid(message));
        }
        let mut numbers: Vec<u64> = edges.iter().flat_map(|(from, to)| [*from, *to]).collect();
        numbers.sort_unstable();
        numbers.dedup();
        // Numbers may have gaps, as those of users do. GAP's programs have arrays up to the greatest number.
        let place = |number: u64| numbers.partition_point(|other| *other < number) as u32;
        let edges: Vec<(u32, u32)> = edges.into_iter().map(|(from, to)| (place(from), place(to))).collect();
        if weights.len() == edges.len() {
            Ok(Self::of(name, numbers.len(), edges.into_iter().zip(weights).collect()))
        } else {
            Ok(Self::drawn(name, numbers.len(), edges))
        }
    }

    /// A graph whose weights are drawn.
    fn drawn(name: String, vertex_count: usize, edges: Vec<(u32, u32)>) -> Self {
        let mut graph = Self::of(name, vertex_count, edges.into_iter().map(|ends| (ends, 0)).collect());
        let weight = |number: usize| 1 + (mix(number as u64 ^ 0x77) % WEIGHT_MAX) as u32;
        graph.weights = (0..graph.edges.len()).map(weight).collect();
        graph
    }

    /// Of parallel edges, the one with the least weight is in the graph.
    fn of(name: String, vertex_count: usize, mut edges: Vec<((u32, u32), u32)>) -> Self {
        edges.retain(|((from, to), _)| from != to);
        edges.iter_mut().for_each(|((from, to), _)| (*from, *to) = ((*from).min(*to), (*from).max(*to)));
        edges.sort_unstable();
        edges.dedup_by_key(|(ends, _)| *ends);
        let (edges, weights) = edges.into_iter().unzip();
        Graph { name, vertex_count, edges, weights }
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
        for ((from, to), weight) in self.edges.iter().zip(&self.weights) {
            writeln!(file, "{from} {to} {weight}")?;
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
        for (edges, weights) in self.edges.chunks(EDGE_BATCH).zip(self.weights.chunks(EDGE_BATCH)) {
            let ends: Vec<_> =
                edges.iter().map(|(from, to)| (vertices[*from as usize], vertices[*to as usize])).collect();
            let weights = weights.iter().map(|weight| f64::from(*weight)).collect();
            let column = BulkColumn { key: weight_key, values: ColumnData::F64(weights) };
            loader.edges(road, &ends, None, &[column])?;
        }
        loader.finish()?;
        Ok(Loaded { database, vertices, weight: weight_key })
    }
}

/// A graph in a database.
pub(super) struct Loaded {
    pub(super) database: Database,
    /// By number.
    pub(super) vertices: Vec<VertexId>,
    /// The key of the weights.
    pub(super) weight: KeyId,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_pairs_of_numbers_and_perhaps_weights() {
        let folder = crate::run_directory::RunDirectory::new(None).unwrap();
        let graph = |text: &str| {
            let path = folder.fresh("graph").with_extension("el");
            std::fs::write(&path, text).unwrap();
            Graph::of_file("a file".to_owned(), &path)
        };
        let weighted = graph("# a comment\n7 1000000000 3\n\n1000000000\t7\t2\n8 7 5\n7 7 1\n").unwrap();
        assert_eq!((weighted.vertex_count, &weighted.edges[..]), (3, &[(0, 1), (0, 2)][..]));
        assert_eq!(weighted.weights, [5, 2], "the least of two parallel edges");
        let drawn = graph("1,2\n2,3,9\n").unwrap();
        assert!(drawn.edges.len() == 2 && drawn.weights.iter().all(|weight| (1..=255).contains(weight)));
        assert!(graph("1 x\n").unwrap_err().message().contains("line 1"));
        assert!(graph("# nothing\n3 3\n").unwrap_err().message().contains("no edge"));
    }
}
