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
