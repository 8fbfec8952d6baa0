//! The memory budget of a process.
//!
//! Graphs, transactions, queries, variables, loads and messages draw the memory they hold from one [`MemoryBudget`]. A
//! draw that would lift the sum above the limit is refused with [`ErrorKind::MemoryLimit`]. So a request ends with an
//! error before the system ends the process.
//!
//! - **GRAPH-7.** Draws never lift the sum above the limit, and a [`Draw`] gives back all that it has when it is
//!   dropped.
//! - A graph counts memory after it has allocated it ([`Draw::count`]), and asks before it allocates more
//!   ([`MemoryBudget::check_graphs`]). So a graph may exceed the limit by what one write allocates. Nothing else may.
//! - Graphs together may use [seven eighths](MemoryBudget::graphs_limit_bytes) of the limit. The last eighth is left
//!   for queries, deleting queries included: a graph that has filled its share can still be read and made smaller.
//! - Memory that its holder can do without ([`SpareMemory`]) gives way: it is dropped before anything is refused.
//!
//! A program that embeds the database has no budget unless it asks for one. A draw from [`MemoryBudget::unlimited`]
//! writes no memory that threads share.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::RwLock;

use crate::error::{Error, ErrorKind, Result};

/// The purpose that memory is drawn for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Purpose {
    /// Elements, indexes and old versions of graphs.
    Graphs,
    /// Read sets and write logs of running transactions, and the write sets of recent commits, which are kept for as
    /// long as serializable transactions are checked against them.
    Transactions,
    /// Rows and tables that the operators of running queries hold.
    Queries,
    /// Variables of scripts.
    Variables,
    /// Memory of file loads beside the graph.
    Loads,
    /// Messages that are being received, and answers that wait to be sent.
    Messages,
    /// Plans that are kept for queries, with their idle instances.
    Plans,
    /// Projections of graphs that algorithms read.
    Projections,
}

impl Purpose {
    /// All purposes.
    pub const ALL: [Purpose; 8] = [
        Purpose::Graphs,
        Purpose::Transactions,
        Purpose::Queries,
        Purpose::Variables,
        Purpose::Loads,
        Purpose::Messages,
        Purpose::Plans,
        Purpose::Projections,
    ];

    /// The name of the purpose in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Purpose::Graphs => "graphs",
            Purpose::Transactions => "transactions",
            Purpose::Queries => "queries",
            Purpose::Variables => "variables",
            Purpose::Loads => "loads",
            Purpose::Messages => "messages",
            Purpose::Plans => "plans",
            Purpose::Projections => "projections",
        }
    }

    /// The subject of the error if a draw is refused.
    fn asker(self) -> &'static str {
        match self {
            Purpose::Graphs => "a graph",
            Purpose::Transactions => "a transaction",
            Purpose::Queries => "the query",
            Purpose::Variables => "a variable",
            Purpose::Loads => "the load",
            Purpose::Messages => "a message",
            Purpose::Plans => "a plan",
            Purpose::Projections => "a projection",
        }
    }
}

/// Memory that its holder can do without, as what is kept only to save later work.
pub trait SpareMemory: Send + Sync + fmt::Debug {
    /// Gives some memory back: about so many bytes, if it has as many to spare. Returns false if it had none.
    ///
    /// Any draw may call it, on the thread that draws. So it takes no lock that a thread holds while it draws.
    fn give_way(&self, bytes: u64) -> bool;
}

/// One part in this many of the limit is not for graphs.
const KEPT_FOR_QUERIES: u64 = 8;

#[derive(Debug)]
struct Counters {
    limit: AtomicU64,
    /// The bytes in use for all purposes together.
    used: AtomicU64,
    peak: AtomicU64,
    refused: AtomicU64,
    by_purpose: [AtomicU64; Purpose::ALL.len()],
    spare: RwLock<Vec<Weak<dyn SpareMemory>>>,
}

// Relaxed throughout: the counters publish no other memory, and no reader needs two of them to agree.
impl Counters {
    /// Adds to the sum and returns true, or returns false if the sum would exceed the limit.
    fn try_add(&self, purpose: Purpose, bytes: u64) -> bool {
        let limit = self.limit.load(Ordering::Relaxed);
        let fits = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= limit);
        // GRAPH-7: the test and the addition are one atomic step.
        let added = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        added.inspect(|before| self.note(purpose, bytes, before + bytes)).is_ok()
    }

    /// Drops memory that can be spared until so many bytes fit, or none is left to be spared.
    #[cold]
    fn make_room(&self, bytes: u64) {
        // The lock is not held while memory is dropped.
        let holders: Vec<_> = self.spare.read().iter().filter_map(Weak::upgrade).collect();
        let missing = || {
            let wanted = self.used.load(Ordering::Relaxed).saturating_add(bytes);
            wanted.saturating_sub(self.limit.load(Ordering::Relaxed))
        };
        for holder in holders {
            while missing() > 0 && holder.give_way(missing()) {}
        }
    }

    fn count_refusal(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a refusal and makes the error of a draw that does not fit.
    #[cold]
    fn refusal(&self, purpose: Purpose, bytes: u64) -> Error {
        self.count_refusal();
        let (used, limit) = (self.used.load(Ordering::Relaxed), self.limit.load(Ordering::Relaxed));
        let asker = purpose.asker();
        Error::new(
            ErrorKind::MemoryLimit,
            format!(
                "{asker} needs {bytes} bytes more, and the process has used {used} of its memory budget of {limit} bytes; try \
                 again when other work has ended, ask for less at once, or raise the setting memory_budget"
            ),
        )
    }

    fn add(&self, purpose: Purpose, bytes: u64) {
        let before = self.used.fetch_add(bytes, Ordering::Relaxed);
        self.note(purpose, bytes, before.saturating_add(bytes));
    }

    fn note(&self, purpose: Purpose, bytes: u64, used: u64) {
        self.by_purpose[purpose as usize].fetch_add(bytes, Ordering::Relaxed);
        if used > self.peak.load(Ordering::Relaxed) {
            self.peak.fetch_max(used, Ordering::Relaxed);
        }
    }

    fn remove(&self, purpose: Purpose, bytes: u64) {
        self.by_purpose[purpose as usize].fetch_sub(bytes, Ordering::Relaxed);
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// How much memory a process may use, and how much is in use for each purpose. A clone is another handle to the same
/// budget.
///
/// ```
/// use mangrove_graph::{MemoryBudget, Purpose};
///
/// let budget = MemoryBudget::of(1_000);
/// let draw = budget.draw(Purpose::Queries, 900).unwrap();
/// let refused = budget.draw(Purpose::Messages, 200).unwrap_err();
/// assert!(refused.message().contains("memory budget of 1000 bytes"));
/// drop(draw);
/// assert!(budget.draw(Purpose::Messages, 200).is_ok());
/// assert_eq!(budget.used_bytes(), 0);
/// ```
#[derive(Clone, Default)]
pub struct MemoryBudget(Option<Arc<Counters>>);

impl fmt::Debug for MemoryBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.limit_bytes() {
            Some(limit) => write!(f, "MemoryBudget({} of {limit})", self.used_bytes()),
            None => f.write_str("MemoryBudget(unlimited)"),
        }
    }
}

impl MemoryBudget {
    /// A budget that counts nothing and refuses nothing.
    pub fn unlimited() -> Self {
        MemoryBudget(None)
    }

    /// A budget with a limit in bytes.
    pub fn of(limit_bytes: u64) -> Self {
        MemoryBudget(Some(Arc::new(Counters {
            limit: AtomicU64::new(limit_bytes),
            used: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            by_purpose: Default::default(),
            spare: RwLock::default(),
        })))
    }

    /// Returns true if nothing is counted.
    pub fn is_unlimited(&self) -> bool {
        self.0.is_none()
    }

    /// The limit; `None` for an unlimited budget.
    pub fn limit_bytes(&self) -> Option<u64> {
        self.0.as_ref().map(|counters| counters.limit.load(Ordering::Relaxed))
    }

    /// Changes the limit for the draws that follow. Earlier draws stay. An unlimited budget stays unlimited.
    pub fn set_limit(&self, bytes: u64) {
        if let Some(counters) = &self.0 {
            counters.limit.store(bytes, Ordering::Relaxed);
        }
    }

    /// The bytes in use.
    pub fn used_bytes(&self) -> u64 {
        self.0.as_ref().map_or(0, |counters| counters.used.load(Ordering::Relaxed))
    }

    /// The bytes in use for one purpose.
    pub fn used_for(&self, purpose: Purpose) -> u64 {
        self.0.as_ref().map_or(0, |counters| counters.by_purpose[purpose as usize].load(Ordering::Relaxed))
    }

    /// The bytes that can still be drawn.
    pub fn left_bytes(&self) -> u64 {
        self.limit_bytes().map_or(u64::MAX, |limit| limit.saturating_sub(self.used_bytes()))
    }

    /// Asks a holder for memory whenever a draw does not fit, for as long as the holder lives.
    pub fn give_way_first(&self, holder: Weak<dyn SpareMemory>) {
        if let Some(counters) = &self.0 {
            let mut spare = counters.spare.write();
            spare.retain(|known| known.strong_count() > 0);
            spare.push(holder);
        }
    }

    /// Returns true if so many bytes can be drawn. Drops memory that can be spared, if they do not fit otherwise.
    pub fn has_room(&self, bytes: u64) -> bool {
        if self.left_bytes() < bytes
            && let Some(counters) = &self.0
        {
            counters.make_room(bytes);
        }
        self.left_bytes() >= bytes
    }

    /// The most bytes that were in use at one time.
    pub fn peak_bytes(&self) -> u64 {
        self.0.as_ref().map_or(0, |counters| counters.peak.load(Ordering::Relaxed))
    }

    /// The number of draws, and of writes to graphs, that were refused.
    pub fn refusal_count(&self) -> u64 {
        self.0.as_ref().map_or(0, |counters| counters.refused.load(Ordering::Relaxed))
    }

    /// A draw of 0 bytes, for its holder to grow.
    pub fn account(&self, purpose: Purpose) -> Draw {
        Draw { budget: self.clone(), purpose, bytes: 0 }
    }

    /// Draws bytes. Fails if they would exceed the limit.
    pub fn draw(&self, purpose: Purpose, bytes: u64) -> Result<Draw> {
        let mut draw = self.account(purpose);
        draw.grow(bytes)?;
        Ok(draw)
    }

    /// The bytes that all graphs together may use.
    pub fn graphs_limit_bytes(&self) -> Option<u64> {
        self.limit_bytes().map(graphs_share)
    }

    /// Fails if the graphs have used up their share. The error lasts until elements are deleted.
    pub fn check_graphs_share(&self) -> Result<()> {
        let Some(counters) = &self.0 else { return Ok(()) };
        let limit = counters.limit.load(Ordering::Relaxed);
        let (graphs, share) =
            (counters.by_purpose[Purpose::Graphs as usize].load(Ordering::Relaxed), graphs_share(limit));
        if graphs < share {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::MemoryLimit,
            format!(
                "the graphs use {graphs} bytes of the {share} that they may use of the process's memory budget of {limit} bytes, \
                 so nothing is added to them; reads and deletes go on. Delete what is not needed, or raise the setting memory_budget"
            ),
        ))
    }

    /// Fails if nothing may be added to a graph: the graphs have used up their share, or the process has used up its
    /// limit.
    pub fn check_graphs(&self) -> Result<()> {
        let Some(counters) = &self.0 else { return Ok(()) };
        self.check_graphs_share().inspect_err(|_| counters.count_refusal())?;
        if self.has_room(1) {
            return Ok(());
        }
        let (used, limit) = (counters.used.load(Ordering::Relaxed), counters.limit.load(Ordering::Relaxed));
        counters.count_refusal();
        Err(Error::new(
            ErrorKind::MemoryLimit,
            format!(
                "the process has used {used} bytes of its memory budget of {limit}, so nothing is added to its graphs; try again \
                 when other work has ended, or raise the setting memory_budget"
            ),
        ))
    }
}

fn graphs_share(limit: u64) -> u64 {
    limit - limit / KEPT_FOR_QUERIES
}

/// Memory drawn from a budget for one holder. Dropping it gives it back (GRAPH-7).
#[derive(Debug)]
pub struct Draw {
    budget: MemoryBudget,
    purpose: Purpose,
    bytes: u64,
}

impl Draw {
    /// The bytes drawn. A draw from an unlimited budget counts them, too.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Draws more bytes. An error changes nothing.
    pub fn grow(&mut self, bytes: u64) -> Result<()> {
        self.grow_generously(bytes, bytes)
    }

    /// Draws `wish` more bytes or, if they do not fit, `needed` more. An error changes nothing.
    pub fn grow_generously(&mut self, needed: u64, wish: u64) -> Result<()> {
        let mut drawn = wish;
        if let Some(counters) = self.budget.0.as_ref().filter(|_| wish > 0)
            && !counters.try_add(self.purpose, wish)
        {
            drawn = needed;
            if needed == wish || !counters.try_add(self.purpose, needed) {
                counters.make_room(needed);
                if !counters.try_add(self.purpose, needed) {
                    return Err(counters.refusal(self.purpose, needed));
                }
            }
        }
        self.bytes = self.bytes.saturating_add(drawn);
        Ok(())
    }

    /// Gives bytes back, at most all there are.
    pub fn shrink(&mut self, bytes: u64) {
        let bytes = bytes.min(self.bytes);
        if let Some(counters) = self.budget.0.as_ref().filter(|_| bytes > 0) {
            counters.remove(self.purpose, bytes);
        }
        self.bytes -= bytes;
    }

    /// Grows or shrinks the draw to `bytes`. An error changes nothing.
    pub fn resize(&mut self, bytes: u64) -> Result<()> {
        match bytes.checked_sub(self.bytes) {
            Some(more) => self.grow(more),
            None => {
                self.shrink(self.bytes - bytes);
                Ok(())
            }
        }
    }

    /// Sets the draw to `bytes`, even above the limit, for memory that is allocated already.
    pub fn count(&mut self, bytes: u64) {
        match (bytes.checked_sub(self.bytes), &self.budget.0) {
            (Some(0), _) => {}
            (Some(more), counters) => {
                if let Some(counters) = counters {
                    counters.add(self.purpose, more);
                }
                self.bytes = bytes;
            }
            (None, _) => self.shrink(self.bytes - bytes),
        }
    }

    /// Splits off `bytes`, at most all there are, as a draw of its own.
    #[must_use = "dropping the part gives it back"]
    pub fn split(&mut self, bytes: u64) -> Draw {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Draw { budget: self.budget.clone(), purpose: self.purpose, bytes }
    }
}

impl Drop for Draw {
    fn drop(&mut self) {
        self.shrink(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_grow_shrink_split_and_give_back() {
        let budget = MemoryBudget::of(100);
        let mut draw = budget.draw(Purpose::Queries, 60).unwrap();
        let refused = draw.grow(41).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::MemoryLimit);
        assert!(
            refused.message().contains("memory budget of 100 bytes") && refused.message().contains("memory_budget")
        );
        assert_eq!((draw.bytes(), budget.used_bytes(), budget.refusal_count()), (60, 60, 1));
        draw.resize(100).unwrap();
        draw.resize(30).unwrap();
        assert_eq!(budget.left_bytes(), 70);
        let part = draw.split(10);
        assert_eq!((draw.bytes(), part.bytes(), budget.used_bytes()), (20, 10, 30));
        drop(draw);
        assert_eq!((budget.used_for(Purpose::Queries), budget.peak_bytes()), (10, 100));
        drop(part);
        assert_eq!(budget.used_bytes(), 0);
        assert!(budget.draw(Purpose::Loads, u64::MAX).is_err());
    }

    /// Draws that can be spared.
    #[derive(Debug, Default)]
    struct Spare(parking_lot::Mutex<Vec<Draw>>);

    impl SpareMemory for Spare {
        fn give_way(&self, _: u64) -> bool {
            self.0.lock().pop().is_some()
        }
    }

    #[test]
    fn spare_memory_gives_way_before_anything_is_refused() {
        let budget = MemoryBudget::of(100);
        let (one, other) = (Arc::new(Spare::default()), Arc::new(Spare::default()));
        for holder in [&one, &other] {
            budget.give_way_first(Arc::downgrade(holder) as Weak<dyn SpareMemory>);
            let draws = || (0..4).map(|_| budget.draw(Purpose::Projections, 10).unwrap());
            holder.0.lock().extend(draws());
        }
        let mut query = budget.draw(Purpose::Queries, 20).unwrap();
        assert_eq!(budget.used_for(Purpose::Projections), 80, "as long as all fits, all is kept");
        query.grow_generously(15, 1_000).unwrap();
        assert_eq!((one.0.lock().len(), other.0.lock().len()), (2, 4), "as much as is missing");
        assert!(budget.has_room(40) && !budget.has_room(66));
        assert_eq!(budget.used_for(Purpose::Projections), 0);
        assert_eq!(budget.refusal_count(), 0);
        query.resize(90).unwrap();
        drop(one);
        other.0.lock().push(budget.draw(Purpose::Projections, 10).unwrap());
        budget.check_graphs().unwrap();
        assert_eq!(budget.used_bytes(), 90);
        assert!(query.grow(11).is_err());
    }

    #[test]
    fn graphs_leave_room_for_those_who_delete() {
        let budget = MemoryBudget::of(800);
        let mut graph = budget.account(Purpose::Graphs);
        graph.count(699);
        budget.check_graphs().unwrap();
        graph.count(700);
        let refused = budget.check_graphs().unwrap_err();
        assert!(
            refused.message().contains("use 700 bytes of the 700") && refused.message().contains("memory_budget"),
            "{refused}"
        );
        budget.draw(Purpose::Queries, 100).unwrap();
        // Allocated memory counts even above the limit; then other draws are refused.
        graph.count(900);
        assert!(budget.draw(Purpose::Queries, 1).is_err());
        graph.count(600);
        let _query = budget.draw(Purpose::Queries, 200).unwrap();
        budget.check_graphs_share().unwrap();
        assert!(budget.check_graphs().unwrap_err().message().contains("when other work has ended"));
        budget.set_limit(2_000);
        budget.check_graphs().unwrap();
    }

    #[test]
    fn without_a_limit_nothing_is_counted() {
        let budget = MemoryBudget::unlimited();
        let mut draw = budget.draw(Purpose::Queries, u64::MAX).unwrap();
        draw.grow(1).unwrap();
        draw.count(3);
        draw.shrink(1);
        assert_eq!((draw.bytes(), budget.used_bytes(), budget.limit_bytes()), (2, 0, None));
        budget.check_graphs().unwrap();
    }

    /// Threads draw at random, and check the bytes in use: never above the limit, never less than the thread's own
    /// draws, and nothing at the end.
    #[test]
    fn threads_never_exceed_the_limit_together() {
        const LIMIT: u64 = 1_000;
        let budget = MemoryBudget::of(LIMIT);
        let refusals: u64 = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4_u64)
                .map(|seed| {
                    let budget = &budget;
                    scope.spawn(move || {
                        let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
                        let mut next = |below: u64| {
                            random ^= random << 13;
                            random ^= random >> 7;
                            random ^= random << 17;
                            random % below
                        };
                        let (mut draws, mut refusals): (Vec<Draw>, u64) = (Vec::new(), 0);
                        for _ in 0..50_000 {
                            let at = next(8) as usize;
                            match next(5) {
                                0 | 1 => match budget.draw(Purpose::ALL[at % Purpose::ALL.len()], next(200)) {
                                    Ok(draw) => draws.push(draw),
                                    Err(_) => refusals += 1,
                                },
                                2 if at < draws.len() => refusals += u64::from(draws[at].resize(next(300)).is_err()),
                                3 if at < draws.len() => {
                                    let part = draws[at].split(next(100));
                                    draws.push(part);
                                }
                                _ if at < draws.len() => drop(draws.swap_remove(at)),
                                _ => {}
                            }
                            let (own, used) = (draws.iter().map(Draw::bytes).sum::<u64>(), budget.used_bytes());
                            assert!(own <= used && used <= LIMIT, "{own} <= {used} <= {LIMIT}");
                        }
                        refusals
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert!(refusals > 1_000, "the limit was reached: {refusals}");
        assert_eq!(budget.refusal_count(), refusals);
        assert_eq!(budget.used_bytes(), 0);
        assert!(Purpose::ALL.iter().all(|purpose| budget.used_for(*purpose) == 0));
        assert!(budget.peak_bytes() <= LIMIT && budget.peak_bytes() > LIMIT / 2);
    }
}
