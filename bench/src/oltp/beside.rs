//! Small transactions beside a heavy one, and the time that they wait for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use mangrove::{
    Direction, Error, ExpandCursor, ExpandRequest, Expansion, Isolation, LabelFilter, Result, Value, VertexId,
};

use super::driver::is_conflict;
use super::graph::UPDATED;
use super::histogram::Histogram;
use super::session::options;
use mangrove_generate::random::{RandomStream, mix};

/// The least number of small transactions of one thread before the heavy one, and after it.
const TRANSACTIONS_MIN: u64 = 50;

/// The outcomes of the small transactions.
#[derive(Clone, Debug, Default)]
pub struct SmallTransactions {
    /// Latency of the committed ones, in nanoseconds.
    pub latency: Histogram,
    /// The number that met a conflict.
    pub failed: u64,
}

/// Runs `heavy` on this thread. Meanwhile `threads` other threads run small transactions: each reads the neighbors of
/// one of `vertices` and writes one of its properties.
pub fn beside<T>(
    database: &mangrove::Database,
    vertices: &Arc<Vec<VertexId>>,
    threads: usize,
    heavy: impl FnOnce() -> Result<T>,
) -> Result<(T, SmallTransactions)> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|seed| {
                let (stop, vertices) = (&stop, vertices.clone());
                scope.spawn(move || small(database, &vertices, seed as u64, stop))
            })
            .collect();
        let outcome = heavy();
        stop.store(true, Ordering::Relaxed);
        let mut others = SmallTransactions::default();
        for thread in running {
            let of_thread = thread.join().map_err(|_| Error::bug("a small transaction panicked"))??;
            others.latency.merge(&of_thread.latency);
            others.failed += of_thread.failed;
        }
        Ok((outcome?, others))
    })
}

/// A heavy transaction may meet conflicts with the small ones. After this many attempts, the cause is something else.
const ATTEMPTS_MAX: u32 = 100;

/// Repeats the operation until it meets no conflict. Returns the number of attempts.
pub fn retrying<T>(mut transaction: impl FnMut() -> Result<T>) -> Result<(T, u32)> {
    let mut conflicts = 0;
    loop {
        match transaction() {
            Err(error) if is_conflict(&error) && conflicts < ATTEMPTS_MAX => conflicts += 1,
            outcome => return Ok((outcome?, conflicts)),
        }
    }
}

fn small(
    database: &mangrove::Database,
    vertices: &[VertexId],
    seed: u64,
    stop: &AtomicBool,
) -> Result<SmallTransactions> {
    let (mut random, mut others) = (RandomStream::from_seed(mix(seed)), SmallTransactions::default());
    let mut neighbors = Expansion::default();
    let mut count = 0;
    while count < TRANSACTIONS_MIN || !stop.load(Ordering::Relaxed) {
        count += 1;
        let vertex = vertices[random.below(vertices.len() as u64) as usize];
        let before = Instant::now();
        match one(database, vertex, random.bits() as i64, &mut neighbors) {
            Ok(()) => others.latency.add(before.elapsed().as_nanos() as u64),
            Err(error) if is_conflict(&error) => others.failed += 1,
            Err(error) => return Err(error),
        }
    }
    Ok(others)
}

fn one(database: &mangrove::Database, vertex: VertexId, value: i64, neighbors: &mut Expansion) -> Result<()> {
    let transaction = database.begin_with(options(Isolation::Serializable))?;
    let request = ExpandRequest { direction: Direction::Out, labels: LabelFilter::Any, edges: false, limit: 64 };
    neighbors.clear();
    transaction.view().expand(&[vertex], &request, &mut ExpandCursor::default(), neighbors)?;
    transaction.set_vertex_property(UPDATED, &[(vertex, Value::I64(value))])?;
    transaction.commit().map(drop)
}
