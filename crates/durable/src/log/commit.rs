//! The records of a commit, as they are encoded before its timestamp is known: the commit itself, and what the change
//! feed needs besides it.

use std::fmt;
use std::str::FromStr;

use mangrove_graph::Error;
use mangrove_store::{Redo, Store, Write};

use super::record::{BEFORE, COMMIT, COMMIT_OVERHEAD, IDENTITIES, put_head, put_redo};

/// What the log has for readers of the change feed, besides what recovery needs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum FeedContent {
    /// Nothing: the feed cannot show commits that change elements of earlier ones.
    #[default]
    Off,
    /// The identities of elements: the feed shows what commits wrote.
    After,
    /// Identities, and the values that commits replaced or deleted.
    Full,
}

impl fmt::Display for FeedContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FeedContent::Off => "off",
            FeedContent::After => "after",
            FeedContent::Full => "full",
        })
    }
}

impl FromStr for FeedContent {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "off" => Ok(FeedContent::Off),
            "after" => Ok(FeedContent::After),
            "full" => Ok(FeedContent::Full),
            _ => Err(Error::invalid(format!(
                "`{text}` is not what the log can have for the change feed: it is off, after or full"
            ))),
        }
    }
}

/// The records of a commit, encoded before its timestamp is known.
#[derive(Debug)]
pub(crate) struct EncodedCommit {
    /// The redo entries.
    body: Vec<u8>,
    /// The entries of the records for the change feed, if they are written.
    identities: Option<Vec<u8>>,
    before: Option<Vec<u8>>,
}

impl EncodedCommit {
    /// Encodes a transaction's writes. The transaction has finished writing and holds all its claims. `each` is shown
    /// the redo entries.
    pub(crate) fn of(
        store: &Store,
        log: &[Write],
        txn: u64,
        feed: FeedContent,
        mut each: impl FnMut(&Redo),
    ) -> EncodedCommit {
        let mut body = Vec::with_capacity(log.len() * 16);
        store.each_redo(log, txn, &mut |redo| {
            each(&redo);
            put_redo(&redo, &mut body);
        });
        let (mut identities, mut before) = (None, None);
        if feed >= FeedContent::After {
            let mut entries = Vec::new();
            // The record is there even if it is empty: it says that the feed has all that it needs.
            if store.each_identity(log, txn, &mut |redo| put_redo(&redo, &mut entries)) {
                identities = Some(entries);
            }
        }
        if feed == FeedContent::Full {
            let mut entries = Vec::new();
            store.each_before(log, txn, &mut |redo| put_redo(&redo, &mut entries));
            before = Some(entries).filter(|entries| !entries.is_empty());
        }
        EncodedCommit { body, identities, before }
    }

    /// A commit with these bytes as its redo entries, which no transaction would write.
    #[cfg(any(test, feature = "model"))]
    pub(crate) fn forged(body: Vec<u8>) -> EncodedCommit {
        EncodedCommit { body, identities: None, before: None }
    }

    /// The most bytes that the records take.
    pub(crate) fn len_max(&self) -> usize {
        self.parts().map(|(_, entries)| COMMIT_OVERHEAD + entries.len()).sum()
    }

    /// The records as they are written at a timestamp, each as its head and its entries. The commit is the last.
    pub(crate) fn records(&self, ts: u64) -> impl Iterator<Item = (Vec<u8>, &[u8])> {
        self.parts().map(move |(kind, entries)| {
            let mut head = Vec::with_capacity(COMMIT_OVERHEAD);
            put_head(kind, ts, entries.len(), &mut head);
            (head, entries)
        })
    }

    fn parts(&self) -> impl Iterator<Item = (u8, &[u8])> {
        let [identities, before] = [&self.identities, &self.before].map(Option::as_deref);
        [(IDENTITIES, identities), (BEFORE, before), (COMMIT, Some(self.body.as_slice()))]
            .into_iter()
            .filter_map(|(kind, entries)| entries.map(|entries| (kind, entries)))
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use std::sync::Arc;

    use mangrove_graph::{Result, UserId, Value};
    use mangrove_locks::{Mutex, rank};
    use mangrove_store::schema::RuleEntry;
    use mangrove_store::{StoreOptions, WriteCardinality};
    use mangrove_txn::{CommitLog, IndexChange, PreparedCommit, RecentOptions, TransactionManager, Watermarks};

    use super::*;

    /// A log that encodes commits with every content of the feed, and keeps only the bytes that they take.
    #[derive(Debug)]
    struct Scales {
        store: Arc<Store>,
        weighed: Mutex<Vec<[usize; 3]>, rank::LogQueue>,
    }

    #[derive(Debug)]
    struct Nothing;

    impl PreparedCommit for Nothing {
        fn hand_over(self: Box<Self>, _: u64) {}
    }

    impl CommitLog for Scales {
        fn prepare(&self, writes: &[Write], txn: u64) -> Result<Box<dyn PreparedCommit>> {
            let weighed = [FeedContent::Off, FeedContent::After, FeedContent::Full].map(|feed| {
                let encoded = EncodedCommit::of(&self.store, writes, txn, feed, |_| {});
                let records: Vec<usize> =
                    encoded.records(7).map(|(head, entries)| head.len() + entries.len()).collect();
                assert!(feed > FeedContent::Off || records.len() == 1, "the feed is off, and costs something");
                let bytes = records.iter().sum();
                assert!(bytes <= encoded.len_max());
                bytes
            });
            self.weighed.lock().push(weighed);
            Ok(Box::new(Nothing))
        }

        fn wait(&self, ts: u64, watermarks: &dyn Watermarks) -> Result<()> {
            watermarks.set_durable(ts);
            Ok(())
        }

        fn change_index(&self, _: &IndexChange, _: &dyn Watermarks) -> Result<()> {
            Ok(())
        }

        fn change_rules(&self, _: &[RuleEntry], _: u32, _: &dyn Watermarks) -> Result<()> {
            Ok(())
        }
    }

    /// The table in docs/design/durability.md has these figures.
    #[test]
    fn bytes_of_usual_commits() {
        let store = Arc::new(Store::new(&StoreOptions::default()));
        let log = Arc::new(Scales { store: store.clone(), weighed: Mutex::default() });
        let manager = TransactionManager::with_log(store.clone(), RecentOptions::default(), 0, log.clone());
        let catalog = store.catalog();
        let (person, knows) = (catalog.intern_label_text("person"), catalog.intern_label_text("knows"));
        let [name, age, city] = ["name", "age", "city"].map(|key| catalog.intern_key(key));
        let set = |txn: &mangrove_txn::Transaction, vertex, key, value: Value| {
            txn.set_vertex_property(vertex, key, value, WriteCardinality::Single, Vec::new()).unwrap();
            txn.finish_statement().unwrap();
        };
        let vertices = ["person-1001", "person-1002"].map(|id| {
            let txn = manager.begin(Default::default()).unwrap();
            let vertex = txn.insert_vertex(person, Some(UserId::from(id))).unwrap();
            txn.finish_statement().unwrap();
            set(&txn, vertex, name, Value::from("Ada Lovelace"));
            set(&txn, vertex, age, Value::I32(36));
            set(&txn, vertex, city, Value::from("London"));
            txn.commit().unwrap();
            vertex
        });
        let txn = manager.begin(Default::default()).unwrap();
        txn.insert_edge(vertices[0], vertices[1], knows, None).unwrap();
        txn.finish_statement().unwrap();
        txn.commit().unwrap();
        let txn = manager.begin(Default::default()).unwrap();
        set(&txn, vertices[0], age, Value::I32(37));
        txn.commit().unwrap();
        let txn = manager.begin(Default::default()).unwrap();
        txn.delete_vertex(vertices[0]).unwrap();
        txn.finish_statement().unwrap();
        txn.commit().unwrap();
        let weighed = std::mem::take(&mut *log.weighed.lock());
        let [vertices, rest] = [&weighed[..2], &weighed[2..]];
        // An insertion needs nothing besides its after-images.
        assert!(vertices.iter().all(|[off, after, full]| off == after && off == full), "{vertices:?}");
        assert_eq!(rest, [[17, 61, 61], [15, 41, 56], [14, 65, 108]], "an edge, a value, a deletion");
    }
}
