//! A graph without a schema, like the ones extracted from encyclopedias (DBpedia, Wikidata).
//!
//! It has what such graphs have: thousands of property keys, a few frequent and most rare; values of different types
//! under one key, and several values in one vertex; long texts; vertices with several labels; one vertex in a hundred
//! with hundreds of properties; hundreds of edge labels; and vertices that very many edges lead to. The labels of a
//! vertex influence its property keys and edge labels.
//!
//! User ids are texts. Only the chunks in flight are in memory.

mod entity;

use mangrove::{Error, Result};
use smol_str::{SmolStr, format_smolstr};

use crate::parallel::in_order;
use crate::random::{Permutation, RandomStream, Weighted, domain};
use crate::sink::{
    GenerateProgress, GeneratedColumn, GeneratedEdges, GeneratedIds, GeneratedValues, GeneratedVertices, GraphSink,
};
use crate::social::words;
use entity::Entities;

/// The maximum number of entities.
pub const ENTITIES_MAX: u64 = 1 << 32;
/// The maximum number of property keys.
pub const KEYS_MAX: usize = 1_000_000;

/// Entities of one chunk. A chunk has a column for every key in it, so chunks are small.
const CHUNK: u64 = 512;

/// Edges per entity, on average.
const EDGES_MEAN: f64 = 8.0;
const EDGE_LABELS: usize = 400;

// The purposes of random numbers.
const ENTITIES: u64 = 21;
const EDGES: u64 = 22;
const RANKS: u64 = 23;
const KEYS: u64 = 24;

/// The label sets of entities, the most frequent first.
const LABEL_SETS: [&str; 40] = [
    "Person",
    "Place::Settlement",
    "Species",
    "Work::Album",
    "Person::Athlete",
    "Organisation::Company",
    "Place::City",
    "Work::Film",
    "Person::Athlete::SoccerPlayer",
    "Place::Building",
    "Person::Politician",
    "Work::Book",
    "Person::Artist",
    "Place::River",
    "Event",
    "Work::Song",
    "Person::Artist::MusicalArtist",
    "Organisation::School",
    "Place::Mountain",
    "Person::Scientist",
    "Organisation::Band",
    "Device",
    "Person::Writer",
    "Organisation::University",
    "Work::TelevisionShow",
    "Person::Politician::OfficeHolder",
    "Language",
    "Place::Island",
    "Disease",
    "Place::Lake",
    "Person::Artist::Actor",
    "Event::Battle",
    "Organisation::Party",
    "Food",
    "Work::Software",
    "Person::Writer::Scientist",
    "ChemicalSubstance",
    "Place::Country",
    "Person::Monarch::Writer",
    "Concept",
];

/// A knowledge graph: the arguments of its generator.
#[derive(Clone, Debug)]
pub struct KnowledgeSpec {
    /// The number of vertices.
    pub entities: u64,
    /// The number of property keys to choose from.
    pub keys: usize,
    /// The seed of all random numbers.
    pub seed: u64,
    /// Threads that generate. The graph does not depend on their number.
    pub threads: usize,
}

impl Default for KnowledgeSpec {
    /// 10,000 entities, 5,000 keys, seed 1, one thread.
    fn default() -> Self {
        KnowledgeSpec { entities: 10_000, keys: 5_000, seed: 1, threads: 1 }
    }
}

impl KnowledgeSpec {
    /// Makes the graph. Fails if a number is out of its range, or if the sink fails.
    pub fn generate(&self, sink: &mut dyn GraphSink) -> Result<()> {
        if !(1..=ENTITIES_MAX).contains(&self.entities) {
            return Err(Error::invalid(format!("{} entities; there are 1 to {ENTITIES_MAX}", self.entities)));
        }
        if !(1..=KEYS_MAX).contains(&self.keys) {
            return Err(Error::invalid(format!("{} property keys; there are 1 to {KEYS_MAX}", self.keys)));
        }
        let generator = KnowledgeGenerator::new(self);
        generator.vertices(sink)?;
        generator.edges(sink)
    }
}

struct KnowledgeGenerator<'a> {
    spec: &'a KnowledgeSpec,
    /// The first vertex number of each label set, then the number of entities.
    bounds: Vec<u64>,
    entities: Entities,
    edge_labels: Vec<SmolStr>,
    edge_label_weights: Weighted,
    /// Maps a rank of popularity to an entity.
    ranks: Permutation,
}

impl<'a> KnowledgeGenerator<'a> {
    fn new(spec: &'a KnowledgeSpec) -> Self {
        let shares: Vec<f64> = (1..=LABEL_SETS.len()).map(|rank| 1.0 / (rank as f64 + 2.0)).collect();
        let total: f64 = shares.iter().sum();
        let mut bounds = vec![0];
        let mut sum = 0.0;
        for share in shares {
            sum += share;
            bounds.push((sum / total * spec.entities as f64).round() as u64);
        }
        *bounds.last_mut().expect("there are label sets") = spec.entities;
        let width = (u64::BITS - (spec.entities - 1).leading_zeros()).max(1);
        KnowledgeGenerator {
            spec,
            bounds,
            entities: Entities::new(spec.keys, domain(spec.seed, KEYS)),
            edge_labels: edge_labels(),
            edge_label_weights: Weighted::zipf(EDGE_LABELS, 1.0),
            ranks: Permutation::new(domain(spec.seed, RANKS), width),
        }
    }

    fn vertices(&self, sink: &mut dyn GraphSink) -> Result<()> {
        // Chunks do not cross label sets.
        let chunks: Vec<(usize, u64, u64)> = (0..LABEL_SETS.len())
            .flat_map(|set| {
                let (begin, end) = (self.bounds[set], self.bounds[set + 1]);
                (begin..end).step_by(CHUNK as usize).map(move |first| (set, first, end.min(first + CHUNK)))
            })
            .collect();
        let key = domain(self.spec.seed, ENTITIES);
        let make = |chunk: usize| {
            let (set, first, end) = chunks[chunk];
            let (ids, columns) = self.entities.make(set, first..end, key);
            GeneratedVertices {
                table: SmolStr::new_static(LABEL_SETS[set]),
                label: SmolStr::new_static(LABEL_SETS[set]),
                first,
                len: ids.len(),
                ids: GeneratedIds::Texts(ids),
                columns,
            }
        };
        in_order(self.spec.threads, chunks.len(), make, |_, batch| {
            let done = batch.first + batch.len as u64;
            sink.vertices(batch)?;
            sink.progress(GenerateProgress { stage: "vertices", done, total: self.spec.entities });
            Ok(())
        })
    }

    fn edges(&self, sink: &mut dyn GraphSink) -> Result<()> {
        const EDGE_CHUNK: u64 = 16 * CHUNK;
        let entities = self.spec.entities;
        let chunks = entities.div_ceil(EDGE_CHUNK) as usize;
        let range = |chunk: usize| chunk as u64 * EDGE_CHUNK..entities.min((chunk as u64 + 1) * EDGE_CHUNK);
        in_order(
            self.spec.threads,
            chunks,
            |chunk| self.edge_chunk(range(chunk)),
            |chunk, batches| {
                batches.into_iter().try_for_each(|batch| sink.edges(batch))?;
                sink.progress(GenerateProgress { stage: "edges", done: range(chunk).end, total: entities });
                Ok(())
            },
        )
    }

    /// The edges that leave these entities, one batch a label.
    fn edge_chunk(&self, sources: std::ops::Range<u64>) -> Vec<GeneratedEdges> {
        let mut groups: Vec<Vec<(u64, u64)>> = vec![Vec::new(); EDGE_LABELS];
        let mut properties: Vec<Vec<(u32, Vec<mangrove::Value>)>> = vec![Vec::new(); EDGE_LABELS];
        let key = domain(self.spec.seed, EDGES);
        for source in sources {
            let mut random = RandomStream::new(key, source);
            let set = self.bounds[1..].partition_point(|&bound| bound <= source);
            for _ in 0..random.geometric(EDGES_MEAN) {
                // The first ten labels are common to all label sets; a label set has the others in an order of its own.
                let rank = self.edge_label_weights.draw(&mut random);
                let label = if rank < 10 { rank } else { 10 + (rank - 10 + set * 9) % (EDGE_LABELS - 10) };
                groups[label].push((source, self.target(&mut random)));
                if random.chance(0.1) {
                    let row = groups[label].len() as u32 - 1;
                    properties[label].push((row, vec![mangrove::Value::I32(random.index(5) as i32)]));
                }
            }
        }
        let batch = |(label, (ends, rows)): (usize, (Vec<_>, Vec<_>))| GeneratedEdges {
            label: self.edge_labels[label].clone(),
            tables: None,
            ends,
            columns: if rows.is_empty() {
                Vec::new()
            } else {
                vec![GeneratedColumn::new("rank", GeneratedValues::Several(rows))]
            },
        };
        let groups = groups.into_iter().zip(properties).enumerate();
        groups.filter(|(_, (ends, _))| !ends.is_empty()).map(batch).collect()
    }

    /// Draws the target of an edge. Few vertices get most of the edges.
    fn target(&self, random: &mut RandomStream) -> u64 {
        let unit = random.unit();
        let mut number = (unit * unit * unit * self.spec.entities as f64) as u64;
        // The permutation is of numbers below a power of two. Following it from the number of an entity leads back to
        // the number of an entity.
        loop {
            number = self.ranks.apply(number);
            if number < self.spec.entities {
                return number;
            }
        }
    }
}

fn edge_labels() -> Vec<SmolStr> {
    let nouns: Vec<&str> = words::NOUNS.split_whitespace().collect();
    let adjectives: Vec<&str> = words::ADJECTIVES.split_whitespace().collect();
    let label = |n: usize| {
        let (adjective, noun) = (adjectives[n / nouns.len()].to_lowercase(), nouns[n % nouns.len()]);
        if n < 10 { format_smolstr!("{}Of", noun.to_lowercase()) } else { format_smolstr!("{adjective}{noun}") }
    };
    (0..EDGE_LABELS).map(label).collect()
}
