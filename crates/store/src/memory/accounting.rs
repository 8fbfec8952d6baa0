//! The memory of a store, counted to the byte by kind, and the limit on it.
//!
//! Every allocation that grows with the graph is counted under its [`RecordKind`] when it is made. An allocation counts
//! with its capacity, so a page that is half full counts as a whole. The bookkeeping of the allocator and a few fixed
//! structures (the [`Store`](crate::Store) itself, its tablets) are not counted.
//!
//! - **STORE-32.** While no thread writes or collects, the counters equal the sizes of the structures:
//!   [`Store::memory`](crate::Store::memory) has the same sum as [`Store::memory_walk`](crate::Store::memory_walk).
//!   Tests compare the two.

use std::sync::atomic::{AtomicU64, Ordering};

use mangrove_graph::{Draw, Error, ErrorKind, MemoryBudget, Purpose, Result};
use mangrove_locks::{Mutex, rank};
use mangrove_reclaim::{Accounting, Usage};

/// A use of memory that is counted on its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum RecordKind {
    /// The fixed parts of pages of vertices.
    VertexPage,
    /// The fixed parts of pages of edges, with sources, targets and reference counts.
    EdgePage,
    /// Version words, generations, and sets of free slots.
    Version,
    /// Columns of properties and of chosen ids.
    Column,
    /// Heads and records of undo chains.
    Undo,
    /// Values that do not fit in a column.
    Value,
    /// Adjacency tables with their descriptors and previous layouts.
    Descriptor,
    /// Packed runs of adjacency lists, with a bit for each cell.
    Block,
    /// Headers of long, growing or dirty adjacency lists.
    ListHeader,
    /// Tails of adjacency lists.
    Tail,
    /// The indexes from chosen ids to elements.
    IdIndex,
    /// Page directories, and the cursors that say where new elements go.
    Directory,
    /// Property indexes with the values that they hold.
    PropertyIndex,
    /// Logs of commits that wait for the garbage collector.
    Log,
    /// The log of changes, for readers that keep lists of their own.
    ChangeLog,
}

const KINDS: [(RecordKind, &str); 15] = [
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
    (RecordKind::ChangeLog, "log of changes"),
];

/// A store reports its memory to the budget of the process in multiples of this many bytes.
const BUDGET_GRAIN: u64 = 256 << 10;
/// A store reports freed memory when it is more than this many bytes.
const BUDGET_SLACK: u64 = 2 * BUDGET_GRAIN;
/// The value of [`Memory::reported`] without a budget: no total exceeds it, so nothing is reported.
const WITHOUT_BUDGET: u64 = u64::MAX;

/// The counters of one store. Invariant: STORE-32.
// Relaxed throughout: the counters publish nothing.
#[derive(Debug)]
pub struct Memory {
    allocations: [AtomicU64; KINDS.len()],
    bytes: [AtomicU64; KINDS.len()],
    total: AtomicU64,
    limit_bytes: AtomicU64,
    /// The part of the total that the budget counts, in bytes.
    reported: AtomicU64,
    budget: MemoryBudget,
    draw: Mutex<Draw, rank::MemoryDraw>,
}

impl Memory {
    /// Counters at zero, with a limit on their sum in bytes.
    #[cfg(test)]
    pub(crate) fn new(limit_bytes: u64) -> Self {
        Memory::drawing_on(&MemoryBudget::unlimited(), limit_bytes)
    }

    /// As `Memory::new`, with a sum that counts in the budget of the process.
    pub(crate) fn drawing_on(budget: &MemoryBudget, limit_bytes: u64) -> Self {
        Memory {
            reported: AtomicU64::new(if budget.is_unlimited() { WITHOUT_BUDGET } else { 0 }),
            draw: Mutex::new(budget.account(Purpose::Graphs)),
            budget: budget.clone(),
            allocations: Default::default(),
            bytes: Default::default(),
            total: AtomicU64::new(0),
            limit_bytes: AtomicU64::new(limit_bytes),
        }
    }

    /// Counts an allocation (STORE-32). An allocation of no bytes does not count.
    pub(crate) fn add(&self, kind: RecordKind, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.allocations[kind as usize].fetch_add(1, Ordering::Relaxed);
        self.bytes[kind as usize].fetch_add(bytes as u64, Ordering::Relaxed);
        let total = self.total.fetch_add(bytes as u64, Ordering::Relaxed).wrapping_add(bytes as u64);
        if total > self.reported.load(Ordering::Relaxed) {
            self.report_to_budget();
        }
    }

    /// Takes back what [`Memory::add`] counted for an allocation of this size.
    pub(crate) fn remove(&self, kind: RecordKind, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.allocations[kind as usize].fetch_sub(1, Ordering::Relaxed);
        self.bytes[kind as usize].fetch_sub(bytes as u64, Ordering::Relaxed);
        let total = self.total.fetch_sub(bytes as u64, Ordering::Relaxed).wrapping_sub(bytes as u64);
        let reported = self.reported.load(Ordering::Relaxed);
        if reported.saturating_sub(total) > BUDGET_SLACK && reported != WITHOUT_BUDGET {
            self.report_to_budget();
        }
    }

    /// Reports the total to the budget.
    #[cold]
    fn report_to_budget(&self) {
        let mut draw = self.draw.lock();
        let reported = self.total.load(Ordering::Relaxed).next_multiple_of(BUDGET_GRAIN);
        draw.count(reported);
        self.reported.store(reported, Ordering::Relaxed);
    }

    /// Counts that an allocation was replaced by one of another size. A size of 0 stands for no allocation.
    pub(crate) fn resize(&self, kind: RecordKind, before: usize, after: usize) {
        self.add(kind, after);
        self.remove(kind, before);
    }

    /// Fails if the graph's own limit or the budget's is reached. Callers check before a write begins, so a write may
    /// exceed the limit by its own allocations.
    pub(crate) fn check(&self) -> Result<()> {
        self.check_own()?;
        self.budget.check_graphs()
    }

    /// Fails if nothing can be added until something is deleted or a limit is raised. Unlike [`Memory::check`], it
    /// passes if queries will give back enough of what they have drawn on the budget.
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

    /// The budget of the process, in which the sum counts.
    pub(crate) fn budget(&self) -> &MemoryBudget {
        &self.budget
    }

    /// The graph's own limit in bytes.
    pub(crate) fn limit_bytes(&self) -> u64 {
        self.limit_bytes.load(Ordering::Relaxed)
    }

    /// Changes the limit for writes from now on.
    pub(crate) fn set_limit(&self, bytes: u64) {
        self.limit_bytes.store(bytes, Ordering::Relaxed);
    }

    /// The counters, without the use of pools ([`MemoryReport::add_usage`]).
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
    /// The use that the row counts.
    pub kind: RecordKind,
    /// The name of the kind.
    pub name: &'static str,
    /// The number of allocations.
    pub allocations: u64,
    /// The sum of their sizes in bytes.
    pub bytes: u64,
    /// Records of a pool that are in use; 0 for kinds that come from no pool.
    pub live: u64,
    /// The part of `bytes` that free records of a pool take. They will be used again.
    pub free_bytes: u64,
}

/// The memory of a store by kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryReport {
    /// One row for each kind.
    pub rows: Vec<MemoryRow>,
    /// The graph's own limit in bytes.
    pub limit_bytes: u64,
}

impl MemoryReport {
    /// Adds the use of a pool to the row of its kind.
    pub(crate) fn add_usage(&mut self, kind: RecordKind, usage: Usage) {
        let row = &mut self.rows[kind as usize];
        row.live += usage.live;
        row.free_bytes += usage.free_bytes;
    }

    /// The sum over all kinds in bytes.
    pub fn total_bytes(&self) -> u64 {
        self.rows.iter().map(|row| row.bytes).sum()
    }
}
