//! Hot vertices read through a cache of the thread, beside the same reads from the store (Grasper, 5.2).
//!
//! Grasper's experts keep properties and neighbors that they have read in caches of 1,000 and 500 entries. There the data
//! may be on another machine. Here the store is in the memory of the process, so the question is whether a copy that is
//! closer saves time.
//!
//! The caches of this suite are the best case for a cache: direct-mapped arrays of one thread, without a lock, without a
//! list of ages, with entries of fixed size, and *never invalid*. A cache that outlives a snapshot would also have to
//! compare versions. The store reads batches of 64 vertices, and so do the caches: what is missing is read in one batch.
//! If the cached reads are not faster even so, caches do not pay.

use mangrove::{
    Database, Direction, ExpandCursor, ExpandRequest, Expansion, GraphView, KeyId, LabelFilter, Numbers, Result,
    VertexId,
};
use mangrove_generate::random::{RandomStream, below, mix};

use super::Context;
use crate::harness::{Schedule, Timing, VERIFIED_COUNT, measure_alone, wrong};
use crate::oltp::skew::{Picker, Skew};
use crate::options::Suite;
use crate::people::{self, AGE, PeopleContent, PeopleNames};
use crate::report::{Growing, Metric, Row};
use crate::social::{KNOWS, ends, load_edges};

const SUITE: Suite = Suite::Caches;

/// Vertices of a batch.
const BATCH: usize = 64;

/// Batches that are drawn before the measurement and then read in turn.
const BATCHES: usize = 1 << 13;

/// Neighbors of each vertex.
const DEGREE: usize = 8;

/// The logarithms of the numbers of vertices: data of this machine's second-level cache, of its last-level cache, and
/// larger. A run leaves out those far above its scale.
const LOG_VERTICES: [u32; 3] = [12, 16, 20];

/// A graph is measured if it is at most this much larger than the scale, as a logarithm.
const ABOVE_SCALE: u32 = 2;

/// The slots of a cache: about as many as the paper's, and as many as its thread could afford.
const SLOT_COUNTS: [usize; 2] = [1 << 10, 1 << 16];

/// How accesses are distributed.
const SKEWS: [Skew; 3] = [Skew::Uniform, Skew::Zipf(0.99), Skew::Zipf(1.5)];

pub(super) fn run(context: &Context<'_>, report: &mut Growing<'_>) -> Result<()> {
    for log in LOG_VERTICES.into_iter().filter(|log| *log <= context.options.scale.log_vertices() + ABOVE_SCALE) {
        let hot = Hot::load(1 << log)?;
        for skew in SKEWS {
            let accesses = hot.draw(skew);
            let case = |what: &str| format!("{what}, 2^{log} vertices, {skew}");
            hot.measure(context, &case("property"), &accesses, &mut || Ages::new(&hot), report)?;
            hot.measure(context, &case("neighbors"), &accesses, &mut || Friends::new(&hot), report)?;
        }
    }
    report.note(
        SUITE.name(),
        "Times are nanoseconds a vertex. The limit of a cached read is the read from the store.".into(),
    );
    Ok(())
}

/// People with an age and eight friends each.
struct Hot {
    database: Database,
    vertices: Vec<VertexId>,
    /// Keys and labels of the catalog.
    age: KeyId,
    knows: mangrove::LabelSetId,
}

impl Hot {
    fn load(count: usize) -> Result<Self> {
        let database = Database::in_memory();
        let (age, knows) = (database.catalog().intern_key(AGE), database.catalog().intern_label_text(KNOWS));
        let batches = people::batches(&database, count, PeopleContent::AllProperties);
        let mut loader = database.bulk_load()?;
        let vertices = people::load(&mut loader, PeopleNames::of(&database).person, &batches)?;
        let friend = |at: usize| below(mix(at as u64), count as u64) as u32;
        let edges: Vec<(u32, u32)> = (0..count * DEGREE).map(|at| ((at / DEGREE) as u32, friend(at))).collect();
        load_edges(&mut loader, knows, &ends(&vertices, &edges))?;
        loader.finish()?;
        Ok(Hot { database, vertices, age, knows })
    }

    /// The vertices of all batches.
    fn draw(&self, skew: Skew) -> Vec<VertexId> {
        let count = self.vertices.len() as u64;
        let (picker, mut random) = (Picker::new(skew, count), RandomStream::from_seed(mix(count)));
        (0..BATCH * BATCHES).map(|_| self.vertices[picker.pick(&mut random, count) as usize]).collect()
    }

    /// Times reads from the store, and through caches of each size. All must have the same answers.
    fn measure<K: Kind>(
        &self,
        context: &Context<'_>,
        case: &str,
        accesses: &[VertexId],
        kind: &mut dyn FnMut() -> K,
        report: &mut Growing<'_>,
    ) -> Result<()> {
        let transaction = self.database.begin_read()?;
        let view = transaction.view();
        let batch = |number: u64| {
            let first = (number as usize % BATCHES) * BATCH;
            &accesses[first..first + BATCH]
        };
        let (mut direct, mut limit) = (kind(), None);
        let schedule = Schedule::of(context.options).alone();
        if context.options.wants(case, "store") {
            let timing = time(schedule, &mut |number| direct.sum(view, batch(number)))?;
            limit = Some(timing.median);
            report.push(Row::time(SUITE.name(), case, "store", timing));
        }
        for slots in SLOT_COUNTS {
            let variant = format!("cache of {slots}");
            if !context.options.wants(case, &variant) {
                continue;
            }
            let mut cached = Cached::new(kind(), slots);
            for number in 0..VERIFIED_COUNT {
                let (expected, found) = (direct.sum(view, batch(number))?, cached.sum(view, batch(number))?);
                if expected != found {
                    return Err(wrong(format!("{case}, {variant}: batch {number} is {found} instead of {expected}")));
                }
            }
            (cached.hits, cached.reads) = (0, 0);
            let timing = time(schedule, &mut |number| cached.sum(view, batch(number)))?;
            let hits = 100.0 * cached.hits as f64 / cached.reads.max(1) as f64;
            report.push(Row::time(SUITE.name(), case, &variant, timing).beside(limit));
            let row = Row::single(SUITE.name(), case, &format!("{variant}: hits"), Metric::Count, hits, "%");
            report.push(row);
        }
        Ok(())
    }
}

/// Nanoseconds a vertex.
fn time(schedule: Schedule, operation: &mut dyn FnMut(u64) -> Result<u64>) -> Result<Timing> {
    Ok(measure_alone(schedule, operation)?.divided_by(BATCH as f64))
}

/// What is read of a vertex.
trait Kind {
    /// An entry of a cache.
    type Entry: Copy + Default;

    /// Reads these vertices from the store. Appends an entry for each.
    fn read(&mut self, view: &dyn GraphView, vertices: &[VertexId], out: &mut Vec<Self::Entry>) -> Result<()>;

    /// The number of an entry in a sum.
    fn digest(entry: &Self::Entry) -> u64;

    /// The sum over vertices, read from the store without copies into entries.
    fn sum(&mut self, view: &dyn GraphView, vertices: &[VertexId]) -> Result<u64>;
}

/// The ages of vertices.
struct Ages {
    age: KeyId,
    numbers: Numbers,
}

impl Ages {
    fn new(hot: &Hot) -> Self {
        Ages { age: hot.age, numbers: Numbers::default() }
    }

    fn fill(&mut self, view: &dyn GraphView, vertices: &[VertexId]) -> Result<()> {
        self.numbers.clear();
        match view.vertex_numbers(vertices, self.age, &mut self.numbers)? {
            true if self.numbers.integers.len() == vertices.len() => Ok(()),
            _ => Err(wrong("a person has no age".into())),
        }
    }
}

impl Kind for Ages {
    type Entry = i64;

    fn read(&mut self, view: &dyn GraphView, vertices: &[VertexId], out: &mut Vec<i64>) -> Result<()> {
        self.fill(view, vertices)?;
        out.extend_from_slice(&self.numbers.integers);
        Ok(())
    }

    fn digest(entry: &i64) -> u64 {
        *entry as u64
    }

    fn sum(&mut self, view: &dyn GraphView, vertices: &[VertexId]) -> Result<u64> {
        self.fill(view, vertices)?;
        Ok(self.numbers.integers.iter().map(Self::digest).fold(0, u64::wrapping_add))
    }
}

/// The friends of vertices.
struct Friends {
    request: ExpandRequest,
    found: Expansion,
}

impl Friends {
    fn new(hot: &Hot) -> Self {
        let labels = LabelFilter::Sets([hot.knows].into());
        let request = ExpandRequest { direction: Direction::Out, labels, edges: false, limit: usize::MAX };
        Friends { request, found: Expansion::default() }
    }

    fn fill(&mut self, view: &dyn GraphView, vertices: &[VertexId]) -> Result<()> {
        self.found.clear();
        let mut cursor = ExpandCursor::default();
        while !view.expand(vertices, &self.request, &mut cursor, &mut self.found)? {}
        if self.found.neighbor.len() == vertices.len() * DEGREE {
            return Ok(());
        }
        Err(wrong("a person has another number of friends".into()))
    }
}

impl Kind for Friends {
    type Entry = [u64; DEGREE];

    fn read(&mut self, view: &dyn GraphView, vertices: &[VertexId], out: &mut Vec<Self::Entry>) -> Result<()> {
        self.fill(view, vertices)?;
        let (lists, _) = self.found.neighbor.as_chunks::<DEGREE>();
        out.extend(lists.iter().map(|list| list.map(VertexId::to_bits)));
        Ok(())
    }

    fn digest(entry: &Self::Entry) -> u64 {
        entry.iter().fold(0, |sum, neighbor| sum.wrapping_add(*neighbor))
    }

    fn sum(&mut self, view: &dyn GraphView, vertices: &[VertexId]) -> Result<u64> {
        self.fill(view, vertices)?;
        Ok(self.found.neighbor.iter().fold(0, |sum, neighbor| sum.wrapping_add(neighbor.to_bits())))
    }
}

/// A direct-mapped cache: a vertex has one slot, and the vertex that was read last has it.
struct Cached<K: Kind> {
    kind: K,
    /// Vertices and their entries. No vertex has the bits of an empty slot.
    slots: Vec<(u64, K::Entry)>,
    missing: Vec<VertexId>,
    read: Vec<K::Entry>,
    hits: u64,
    reads: u64,
}

/// The vertex of an empty slot.
const EMPTY: u64 = u64::MAX;

impl<K: Kind> Cached<K> {
    /// A cache with this number of slots, a power of two.
    fn new(kind: K, slots: usize) -> Self {
        let slots = vec![(EMPTY, K::Entry::default()); slots];
        Cached { kind, slots, missing: Vec::new(), read: Vec::new(), hits: 0, reads: 0 }
    }

    #[inline]
    fn slot(&self, vertex: u64) -> usize {
        mix(vertex) as usize & (self.slots.len() - 1)
    }

    fn sum(&mut self, view: &dyn GraphView, vertices: &[VertexId]) -> Result<u64> {
        self.missing.clear();
        self.read.clear();
        let mut sum = 0u64;
        for &vertex in vertices {
            let (known, entry) = &self.slots[self.slot(vertex.to_bits())];
            if *known == vertex.to_bits() {
                sum = sum.wrapping_add(K::digest(entry));
            } else {
                self.missing.push(vertex);
            }
        }
        self.reads += vertices.len() as u64;
        self.hits += (vertices.len() - self.missing.len()) as u64;
        if !self.missing.is_empty() {
            self.kind.read(view, &self.missing, &mut self.read)?;
            for (vertex, entry) in self.missing.iter().zip(&self.read) {
                sum = sum.wrapping_add(K::digest(entry));
                let slot = mix(vertex.to_bits()) as usize & (self.slots.len() - 1);
                self.slots[slot] = (vertex.to_bits(), *entry);
            }
        }
        Ok(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vertex_that_was_read_is_found_until_another_takes_its_slot() {
        let hot = Hot::load(64).unwrap();
        let transaction = hot.database.begin_read().unwrap();
        let mut cached = Cached::new(Friends::new(&hot), 1);
        let mut direct = Friends::new(&hot);
        let mut sum = |at: usize| {
            let one = &hot.vertices[at..=at];
            assert_eq!(cached.sum(transaction.view(), one).unwrap(), direct.sum(transaction.view(), one).unwrap());
            cached.hits
        };
        assert_eq!([sum(3), sum(3), sum(4), sum(3), sum(3)], [0, 1, 1, 1, 2]);
    }
}
