//! What the store's memory goes into, counted to the byte, and the limit on it.
//!
//! Every allocation that grows with the graph is counted under its [`RecordKind`] when it is made:
//! capacity, not use, so a half-filled page counts whole. The bookkeeping of the allocator and a few fixed
//! structures (the `Store` itself, 64 tablets) are not counted. [`crate::Store::memory_walk`] adds the
//! same up from the structures themselves, and a test holds the two against each other.

use std::sync::atomic::{AtomicU64, Ordering};

use mangrove_graph::{Draw, Error, ErrorKind, MemoryBudget, Purpose, Result};
use mangrove_locks::{Mutex, rank};
use mangrove_reclaim::{Accounting, Usage};

/// What memory is used for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum RecordKind {
    /// Pages of vertices: their fixed parts.
    VertexPage,
    /// Pages of edges: their fixed parts with sources and targets.
    EdgePage,
    /// Begin and end words.
    Version,
    /// Columns of properties and user ids.
    Column,
    /// Heads and records of undo chains.
    Undo,
    /// Values that do not fit in a column.
    Value,
    /// Descriptors of adjacency lists.
    Descriptor,
    /// Packed neighbor runs.
    Block,
    /// Headers of long, growing or dirty adjacency lists.
    ListHeader,
    /// Tails of adjacency lists.
    Tail,
    /// Translation of user ids.
    IdIndex,
    /// Tables of page pointers and cursors.
    Directory,
    /// Tables and leaves of property indexes, with the values they hold.
    PropertyIndex,
    /// Logs of commits that wait for the garbage collector.
    Log,
}

const KINDS: [(RecordKind, &str); 14] = [
    (RecordKind::VertexPage, "vertex page"),
    (RecordKind::EdgePage, "edge page"),
    (RecordKind::Version, "version words"),
    (RecordKind::Column, "column"),
    (RecordKind::Undo, "undo"),
    (RecordKind::Value, "value"),
    (RecordKind::Descriptor, "adjacency descriptors"),
    (RecordKind::Block, "packed adjacency"),
    (RecordKind::ListHeader, "adjacency headers"),
    (RecordKind::Tail, "adjacency tails"),
    (RecordKind::IdIndex, "id index"),
    (RecordKind::Directory, "directory"),
    (RecordKind::PropertyIndex, "property index"),
    (RecordKind::Log, "logs awaiting collection"),
];

/// The store tells the process's budget of its memory in multiples of this.
const BUDGET_GRAIN: u64 = 256 << 10;
/// It tells of memory that was freed when that is more than this.
const BUDGET_SLACK: u64 = 2 * BUDGET_GRAIN;
/// What [`Memory::told`] is without a budget.
const WITHOUT_BUDGET: u64 = u64::MAX;

/// The counters of one store.
#[derive(Debug)]
pub struct Memory {
    allocations: [AtomicU64; KINDS.len()],
    bytes: [AtomicU64; KINDS.len()],
    total: AtomicU64,
    limit_bytes: AtomicU64,
    /// What the budget has been told of the total.
    told: AtomicU64,
    budget: MemoryBudget,
    draw: Mutex<Draw, rank::MemoryDraw>,
}

impl Memory {
    /// Counters at zero with a limit on their sum.
    #[cfg(test)]
    pub(crate) fn new(limit_bytes: u64) -> Self {
        Memory::drawing_on(&MemoryBudget::unlimited(), limit_bytes)
    }

    /// The same, and their sum counts in a budget of the process.
    pub(crate) fn drawing_on(budget: &MemoryBudget, limit_bytes: u64) -> Self {
        Memory {
            told: AtomicU64::new(if budget.is_unlimited() { WITHOUT_BUDGET } else { 0 }),
            draw: Mutex::new(budget.account(Purpose::Graphs)),
            budget: budget.clone(),
            allocations: Default::default(),
            bytes: Default::default(),
            total: AtomicU64::new(0),
            limit_bytes: AtomicU64::new(limit_bytes),
        }
    }

    // Relaxed throughout: the counters publish nothing.
    /// Counts an allocation; one of no bytes is none.
    pub(crate) fn add(&self, kind: RecordKind, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.allocations[kind as usize].fetch_add(1, Ordering::Relaxed);
        self.bytes[kind as usize].fetch_add(bytes as u64, Ordering::Relaxed);
        let total = self.total.fetch_add(bytes as u64, Ordering::Relaxed).wrapping_add(bytes as u64);
        if total > self.told.load(Ordering::Relaxed) {
            self.tell_budget();
        }
    }

    /// Counts an allocation out that [`Memory::add`] counted.
    pub(crate) fn remove(&self, kind: RecordKind, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.allocations[kind as usize].fetch_sub(1, Ordering::Relaxed);
        self.bytes[kind as usize].fetch_sub(bytes as u64, Ordering::Relaxed);
        let total = self.total.fetch_sub(bytes as u64, Ordering::Relaxed).wrapping_sub(bytes as u64);
        let told = self.told.load(Ordering::Relaxed);
        if told.saturating_sub(total) > BUDGET_SLACK && told != WITHOUT_BUDGET {
            self.tell_budget();
        }
    }

    /// Counts the total in the budget.
    #[cold]
    fn tell_budget(&self) {
        let mut draw = self.draw.lock();
        let told = self.total.load(Ordering::Relaxed).next_multiple_of(BUDGET_GRAIN);
        draw.count(told);
        self.told.store(told, Ordering::Relaxed);
    }

    /// One allocation, or none where `before` is 0, has become another one, or none.
    pub(crate) fn resize(&self, kind: RecordKind, before: usize, after: usize) {
        self.add(kind, after);
        self.remove(kind, before);
    }

    /// An error when the limit is reached, the graph's own or the budget's. Asked before a write begins, so a write may
    /// overshoot it by what it allocates itself.
    pub(crate) fn check(&self) -> Result<()> {
        self.check_own()?;
        self.budget.check_graphs()
    }

    /// An error while nothing can be added, however long one waits: unlike [`Memory::check`] not where others will give back
    /// what they have drawn on the budget.
    pub(crate) fn check_lasting(&self) -> Result<()> {
        self.check_own()?;
        self.budget.check_graphs_share()
    }

    fn check_own(&self) -> Result<()> {
        let total = self.total.load(Ordering::Relaxed);
        let limit = self.limit_bytes();
        if total < limit {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::MemoryLimit,
            format!(
                "the graph uses {total} bytes of the {limit} it may use, so nothing is added to it; reads and deletes \
                 go on. Delete what is not needed, or raise memory_limit_bytes (`memory_limit` of a server)"
            ),
        ))
    }

    /// What the sum counts in.
    pub(crate) fn budget(&self) -> &MemoryBudget {
        &self.budget
    }

    /// The graph's own limit.
    pub(crate) fn limit_bytes(&self) -> u64 {
        self.limit_bytes.load(Ordering::Relaxed)
    }

    /// Changes the limit, for writes from now on.
    pub(crate) fn set_limit(&self, bytes: u64) {
        self.limit_bytes.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn report(&self) -> MemoryReport {
        let rows = KINDS
            .iter()
            .map(|&(kind, name)| MemoryRow {
                kind,
                name,
                allocations: self.allocations[kind as usize].load(Ordering::Relaxed),
                bytes: self.bytes[kind as usize].load(Ordering::Relaxed),
                live: 0,
                free_bytes: 0,
            })
            .collect();
        MemoryReport { rows, limit_bytes: self.limit_bytes() }
    }
}

impl Accounting<RecordKind> for Memory {
    #[inline]
    fn add(&self, kind: RecordKind, bytes: usize) {
        Memory::add(self, kind, bytes);
    }

    #[inline]
    fn remove(&self, kind: RecordKind, bytes: usize) {
        Memory::remove(self, kind, bytes);
    }
}

/// One line of a [`MemoryReport`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryRow {
    /// What for.
    pub kind: RecordKind,
    /// The kind in words.
    pub name: &'static str,
    /// How many allocations.
    pub allocations: u64,
    /// How many bytes.
    pub bytes: u64,
    /// Records of a pool that are in use; 0 for kinds that come from no pool.
    pub live: u64,
    /// Of the bytes, those of a pool's records that were given back and will be used again.
    pub free_bytes: u64,
}

/// What the memory of a store goes into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryReport {
    /// One row a kind.
    pub rows: Vec<MemoryRow>,
    /// The limit.
    pub limit_bytes: u64,
}

impl MemoryReport {
    pub(crate) fn add_usage(&mut self, kind: RecordKind, usage: Usage) {
        let row = &mut self.rows[kind as usize];
        row.live += usage.live;
        row.free_bytes += usage.free_bytes;
    }

    /// The sum of all kinds.
    pub fn total_bytes(&self) -> u64 {
        self.rows.iter().map(|row| row.bytes).sum()
    }
}
