//! Following another process: its commits are redone here, one after another, while transactions read.
//!
//! ```text
//! owner's log ──▶ Follower::redo(ts, after-images), again and again ──▶ Follower::show ──▶ the watermark is the last ts
//!                    │ a slot still has its last element: what was redone is shown, and the collector catches up
//!                    └ readers that hold it back for too long expire
//! ```
//!
//! Commits that follow one another are redone in one transaction, which commits at the last of their timestamps. It takes
//! the way of every commit: it draws its timestamp, its write set is published, its versions are stamped and collected. So
//! readers and collectors need to know nothing of followers. All other timestamps are drawn here too and count as aborted:
//! those of commits that were redone together with a later one, and those that the owner's log does not have because their
//! transactions aborted.
//!
//! - **TXN-25.** A snapshot of a graph that follows shows what the owner's snapshot at the same timestamp shows. The
//!   watermark passes all commits that are redone together in one step: no snapshot lies between them. Each of their
//!   timestamps is finished, the first one last (`RecentCommits::advance`).
//! - **TXN-26.** A follower never refuses a commit in favour of a reader. If a commit needs the slot of an element that
//!   readers still see, the readers expire once they are older than `max_snapshot_age_ms`.
//!
//! [`Follower::own`] ends it: from then on the graph takes writes, with timestamps after those of the last owner.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mangrove_graph::{Error, ErrorKind, IndexId, IndexInfo, Result};
use mangrove_store::schema::{Rule, RuleId};
use mangrove_store::{Redo, Store};

use crate::log::CommitLog;
use crate::manager::TransactionManager;
use crate::options::{Isolation, TransactionOptions};
use crate::recent::{RecentCommits, RecentOptions};
use crate::transaction::Transaction;

/// Milliseconds after which a transaction of a graph that follows may expire, unless the setting says otherwise.
const FOLLOWER_SNAPSHOT_AGE_MS: u64 = 300_000;
/// How long the follower waits between two attempts to get a slot that readers hold back.
const SLOT_PAUSE: Duration = Duration::from_millis(1);

/// After-images that are redone in one transaction, unless one commit has more.
const IMAGES_MAX: usize = 1 << 11;

/// The only writer of a graph that follows another process. It redoes the commits of that process.
#[derive(Debug)]
pub struct Follower {
    manager: TransactionManager,
    /// The commits that were redone and are not shown.
    open: Option<Redone>,
}

/// Commits that were redone in one transaction.
#[derive(Debug)]
struct Redone {
    transaction: Transaction,
    /// The timestamp of the last of them.
    last_ts: u64,
    images: usize,
}

impl TransactionManager {
    /// The transactions of a store that was restored as of `last_ts` to follow another process
    /// ([`mangrove_store::restore::Restore::to_follow`]), and the only writer of the store.
    pub fn following(store: Arc<Store>, recent: RecentOptions, last_ts: u64) -> (Self, Follower) {
        let manager = Self::build(store, RecentCommits::resuming(recent, last_ts));
        manager.shared().following.begin();
        manager.set_follower_snapshot_age_ms(FOLLOWER_SNAPSHOT_AGE_MS);
        (manager.clone(), Follower { manager, open: None })
    }

    /// Lets transactions of a graph that follows expire when they are older than this many milliseconds and hold a
    /// commit back (TXN-26); 0: never. Does nothing if a client has set `max_snapshot_age_ms`.
    pub fn set_follower_snapshot_age_ms(&self, age_ms: u64) {
        let before = self.shared().following.snapshot_age_ms.swap(age_ms, Ordering::Relaxed);
        let setting = &self.shared().settings.max_snapshot_age_ms;
        let _ = setting.compare_exchange(before, age_ms, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Ends all transactions, after the process has loaded the graph again into another store because the follower of this
    /// one lacks commits for good (TXN-27). Calls that are under way end as they would have.
    pub fn replaced(&self) {
        let shared = self.shared();
        shared.following.replace();
        // An expired entry holds no collector back once it was forgotten, and there is nothing left to collect for.
        drop(shared.status.expire(u64::MAX));
    }

    /// Fails with `ReadOnly` if the graph follows another process. What would write asks this before it does anything: a
    /// name that it added to the catalog could be one that the owner adds under another number.
    #[inline]
    pub fn check_writable(&self) -> Result<()> {
        self.shared().following.check_writable()
    }

    /// Returns true if the graph follows another process and refuses writes.
    pub fn is_following(&self) -> bool {
        self.shared().following.is_on()
    }
}

impl Follower {
    /// The timestamp of the last commit that was redone: reads that begin now see everything up to it.
    pub fn applied(&self) -> u64 {
        self.manager.watermark()
    }

    /// Names the owner for clients whose writes are refused, as in `ws://db-1:8182`.
    pub fn set_owner(&mut self, owner: &str) {
        self.manager.shared().following.set_owner(owner);
    }

    /// The timestamp of the last commit that was redone, perhaps not shown.
    pub fn redone(&self) -> u64 {
        self.open.as_ref().map_or_else(|| self.applied(), |open| open.last_ts)
    }

    /// Notes that the owner has no later commit up to `ts`: its transactions with these timestamps have aborted. Does
    /// nothing if a later commit was redone. Everything that was redone must have been shown.
    pub fn pass(&mut self, ts: u64) {
        assert!(self.open.is_none(), "what was redone is shown first");
        self.skip_to(ts);
    }

    /// Redoes a commit of the owner and shows it: [`Follower::redo`] and [`Follower::show`].
    ///
    /// # Errors
    ///
    /// As those.
    pub fn apply(&mut self, ts: u64, images: &[Redo]) -> Result<()> {
        self.redo(ts, images)?;
        self.show()
    }

    /// Redoes a commit of the owner. Transactions see it after [`Follower::show`] at the latest. The commits come in the
    /// order of their timestamps.
    ///
    /// # Errors
    ///
    /// `Damaged` if the commit does not fit the graph, and `MemoryLimit` if there is no room for it. After an error, nothing
    /// that was not shown is in the graph.
    pub fn redo(&mut self, ts: u64, images: &[Redo]) -> Result<()> {
        let last_ts = self.redone();
        if ts <= last_ts {
            self.forget();
            let message = format!("commit {ts} of the log comes after commit {last_ts}, which is later");
            return Err(Error::new(ErrorKind::Damaged, message));
        }
        let shared = self.manager.shared();
        let (span_max, applied) = (shared.recent.span_max(), self.applied());
        let is_full = |open: &Redone| open.images + images.len() > IMAGES_MAX || ts - applied > span_max;
        if self.open.as_ref().is_some_and(is_full) || shared.store.has_slots_in_use(images) {
            self.show()?;
            self.make_room(images);
        }
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.begin(ts)?,
        };
        // After an error, the transaction is dropped.
        open.transaction.redo(images)?;
        // The next commit may change what this one has written.
        open.transaction.finish_statement()?;
        (open.last_ts, open.images) = (ts, open.images + images.len());
        self.open = Some(open);
        Ok(())
    }

    /// Begins a transaction that redoes commits from `ts` on.
    fn begin(&self, ts: u64) -> Result<Redone> {
        self.skip_to(ts - 1);
        let options = TransactionOptions { isolation: Isolation::Snapshot, read_only: false };
        let transaction = self.manager.begin(options)?;
        if !transaction.protect() {
            return Err(self.manager.shared().expired_error());
        }
        Ok(Redone { transaction: transaction.that_is_redone(ts), last_ts: ts, images: 0 })
    }

    /// Shows the commits that were redone to every transaction that begins from now on.
    ///
    /// # Errors
    ///
    /// `MemoryLimit` if there is no room for them; then they are not in the graph.
    pub fn show(&mut self) -> Result<()> {
        let Some(Redone { transaction, last_ts: ts, .. }) = self.open.take() else { return Ok(()) };
        if transaction.has_writes() {
            let committed = transaction.that_is_redone(ts).commit()?;
            // TXN-25.
            assert_eq!(committed.timestamp, ts, "a follower is the only one that draws timestamps");
        } else {
            drop(transaction);
            self.skip_to(ts);
        }
        Ok(())
    }

    /// Takes back what was redone and not shown.
    pub fn forget(&mut self) {
        self.open = None;
    }

    /// Returns when the slots of new elements are free. Their last elements have ended, so the slots wait for collectors
    /// and for readers (TXN-26). No transaction of the follower may be open: it would hold the collectors back.
    fn make_room(&self, images: &[Redo]) {
        let shared = self.manager.shared();
        loop {
            let in_use = shared.store.slots_in_use(images);
            if in_use.is_empty() {
                return;
            }
            if shared.collect_slots(&in_use) == 0 {
                std::thread::sleep(SLOT_PAUSE);
            }
        }
    }

    /// Draws the timestamps up to `ts` for transactions of the owner that have aborted.
    fn skip_to(&self, ts: u64) {
        let shared = self.manager.shared();
        shared.recent.skip_to(ts, || shared.status.oldest_validated(&shared.recent));
    }

    /// Makes an index that the owner has made. Transactions that begin after this use it.
    /// Everything that was redone must have been shown.
    pub fn create_index(&mut self, info: &IndexInfo) -> Result<()> {
        assert!(self.open.is_none(), "what was redone is shown first");
        // The versions that the builder reads must not be collected meanwhile.
        let _held = self.manager.begin_unproved_read()?;
        self.manager.store().create_index_of_owner(info, || self.manager.watermark());
        Ok(())
    }

    /// Drops an index that the owner has dropped.
    pub fn drop_index(&mut self, id: IndexId) -> Result<()> {
        match self.manager.store().drop_index(id) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            // The owner may have dropped it before it was complete.
            _ => Ok(()),
        }
    }

    /// Puts the owner's schema rules in the place of all rules. `next` is the number of the next rule.
    pub fn set_rules(&mut self, rules: Vec<(RuleId, Rule)>, next: u32) {
        self.manager.store().restore_rules(rules, next);
    }

    /// Makes this process the owner of the graph: from now on it takes writes, and commits go into the log. All commits
    /// of the last owner have been redone, and are durable.
    pub fn own(self, log: Option<Arc<dyn CommitLog>>) {
        self.manager.set_follower_snapshot_age_ms(0);
        let shared = self.manager.shared();
        shared.store.begin_to_own();
        if let Some(log) = log {
            shared.use_log(log);
        }
        shared.following.end();
    }
}
