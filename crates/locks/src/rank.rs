//! The order of locks: one table, from the first lock that a thread may take to the last.
//!
//! A thread that holds a lock waits only for locks that stand after it in the table. Each row says what its lock
//! protects, and for how long it is held or under which lock it is taken. The order of locks is written nowhere else,
//! so look here before taking a lock under another one. A new lock gets a row after every lock under which it is taken.
//!
//! The type of a row is the second parameter of a lock ([`crate::Mutex`], [`crate::RwLock`]).

/// A row of the table. Only the types of this module are rows.
pub trait Rank: row::Row {
    /// The number of the row, from 0.
    const POSITION: u32;
    /// The name of the row.
    const NAME: &'static str;
}

mod row {
    pub trait Row {}
}

macro_rules! ranks {
    ($($(#[doc = $doc:literal])* $name:ident,)*) => {
        enum Position { $($name,)* }

        $(
            $(#[doc = $doc])*
            #[derive(Clone, Copy, Debug)]
            pub enum $name {}

            impl row::Row for $name {}

            impl Rank for $name {
                const POSITION: u32 = Position::$name as u32;
                const NAME: &'static str = stringify!($name);
            }
        )*

        /// The names of the rows, by position.
        #[cfg(all(debug_assertions, not(feature = "model")))]
        pub(crate) const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

ranks! {
    // --- Server ---
    /// Server: held while one graph is created or dropped, so while its database is opened or closed.
    GraphChanges,
    /// Server: the traversal sources and their graphs. Held for a look-up, or while a source is added or removed.
    GraphSources,
    /// Server: the directories of dropped graphs that are still being removed.
    LeavingDirectories,

    // --- Threads of a graph, and checkpoints: held for long, through I/O and rounds of collection ---
    /// Transactions: the collector's threads. Taken by `try_lock` only, by the thread that starts them.
    CollectorThreads,
    /// Transactions: held for reading during a round of a collector, and for writing by a caller that collects
    /// everything.
    CollectorRounds,
    /// Transactions: the pass that makes statistics. Held during one step by the collector that does it, through a
    /// `try_lock`; and for a few instructions by a thread that gives the pass up.
    StatisticsPass,
    /// Log: the thread that makes segments ahead of need. Held while the thread is told to end and is waited for.
    SegmentMaker,
    /// Log in a home: the thread that keeps the time. Held while the thread is taken out, to be waited for.
    ObjectLogClock,
    /// Checkpoints: held through all I/O of a checkpoint.
    CheckpointState,
    /// Checkpoints: how the last one went. Taken while a checkpoint is under way, and before the log is asked how long
    /// it is.
    CheckpointProgress,

    // --- Changes of schema and indexes: held until the change is durable, so through a flush of the log ---
    /// Store: held while the schema rules change, and while a checkpoint reads them.
    SchemaChanges,
    /// Store: held while the list of indexes changes, and while a checkpoint reads it.
    IndexChanges,

    // --- One transaction ---
    /// Transactions: the log of writes. Held during one write or rollback in the store, and while a write waits for the
    /// transactions that a pre-read relied on.
    TransactionWrites,
    /// Transactions: the read set. Held while items are added, never while the store is read.
    TransactionReads,
    /// Transactions: whether collectors are to work or to stop. A write that finds no memory wakes them.
    CollectorSignal,

    /// Transactions: the name of the process that the graph follows. Held while an error that names it is made.
    FollowedOwner,

    // --- Log ---
    /// Log: held while a segment is made or retired, through its I/O.
    SegmentMaking,
    /// Log: held by the leader of a flush, through its I/O.
    LogWriter,
    /// Log: whether a flush is under way, and the committers that wait for it. Held for a few instructions, never
    /// during a flush.
    GroupCommit,
    /// Log: the commits and schema records that were handed over. Held for a few instructions.
    LogQueue,
    /// Log in a home: the writer and the puts in flight. Held while an event is handled, so while an object is encoded;
    /// never during a request.
    ObjectLog,
    /// Log: the position from which a checkpoint would need the log. Held for a few instructions.
    LogFloor,
    /// Log: the names that are in the log. Held for a few instructions, by the leader of a flush too.
    LogNames,
    /// Log: the segments that are ready, and their free space. Held for a few instructions, by each commit.
    SegmentSupply,

    // --- Tables of transactions ---
    /// Transactions: the transactions that expired last. Taken by `try_lock` only, by a collector.
    ExpiringTransactions,
    /// Transactions: the part of the memory budget that the write sets of recent commits use. Taken by `try_lock` only,
    /// by a committer that trims.
    HistoryBudget,
    /// Transactions: held while entries of the ring move into the history.
    RingTrimming,
    /// Transactions: the ordered step of the entry into validation. Held for a few instructions, by each commit.
    EnterValidation,
    /// Transactions: the write set of one entry of the ring.
    RingEntry,
    /// Transactions: the blocks of the history.
    HistoryBlocks,

    // --- Store: held by the one thread that does a task ---
    /// Store: held by the collector that works in a tablet.
    CollectorTurn,
    /// Store: held while the next page of a label set is made.
    PageTurn,
    /// Store: held by the thread that restores a tablet.
    RestoredTablet,

    // --- Store: lists for the collector, each held for a few instructions ---
    /// Store: the free slots of a label set. Held while the free slots of a frozen page are read from that page.
    FreeSlots,
    /// Store: the tasks of the collector in a tablet.
    CollectorTasks,
    /// Store: logs of finished transactions that wait for the collector, one shard of them.
    FinishedLogs,
    /// Store: which large commits are being finalized.
    LargeCommits,

    // --- Store: indexes ---
    /// Store: a shard of an id index. Held while the elements that have an id are compared with a new one.
    IdIndexShard,
    /// Store: a shard of an index by hash. Held while versions are asked whether an entry is still needed.
    HashIndexShard,
    /// Store: a leaf of an ordered index. Held as a shard is, and while it is split.
    OrderedIndexLeaf,
    /// Store: the directory of an ordered index. Taken by the thread that splits or removes a leaf it has locked.
    OrderedIndexDirectory,

    // --- Store: pages ---
    /// Store: the facts about edges. Held for a few instructions by the first edge of a sort, and while the facts are
    /// copied for plans.
    ConnectionFacts,
    /// Store: the tail of one adjacency list. Held while an edge is appended and while the list is replaced.
    ListHeader,
    /// Store: the edges that end while their list is compacted. Held while a list is marked or replaced.
    LateNames,
    /// Store: what readers know of the log of changes. Held while they copy entries, and while the oldest ones are dropped.
    ChangeLogReading,
    /// Store: a shard of the log of changes. Held while an entry is added, and while entries are copied for a reader.
    ChangeLogShard,
    /// Store: the form of the descriptors of an adjacency table. Held while a descriptor of a sparse table changes.
    ListDescriptors,
    /// Store: the edges whose cells are in a replaced layout and not in the table. Held for a few
    /// instructions.
    ReplacedLayout,
    /// Store: the form of a column. Held while a cell of a sparse column is written.
    ColumnForm,
    /// Transactions: the writers that a pre-read relied on. Taken when the store asks for the status of a claim, under
    /// any lock of the store that a reader or writer may hold.
    PreReadReliance,

    // --- Reclamation ---
    /// Reclamation: held while an entry is added to a map that only grows.
    AppendMapEntries,
    /// Reclamation: the rows of an arena that are handed out.
    ArenaRows,
    /// Reclamation: the free numbers of a pool.
    FreeNumbers,
    /// Reclamation: unlinked things that wait for their grace period.
    Limbo,
    /// Reclamation: memory of limbos that were dropped. Held while it is freed.
    LeftBehind,
    /// Store: the graph's draw on the memory budget. Every structure that grows may take it.
    MemoryDraw,
    /// Reclamation: the threads that pin. Taken by a thread's first pin, and by each look for the oldest one.
    PinnedThreads,
}
