//! The records of an object of a stream, redone in the graph of a follower.

use bytes::Bytes;
use mangrove_graph::{Catalog, Error, ErrorKind, Result};
use mangrove_store::Redo;

use super::tail::Tail;
use crate::checkpoint::{IMPOSSIBLE_INDEX, is_possible, read_names};
use crate::codec::{IMPOSSIBLE_RULE, Malformed};
use crate::damage::damaged_in;
use crate::log::read::RecordPosition;
use crate::log::record::{NameCounts, Names, Record};
use crate::manifest::CHECKPOINT_DIR;
use crate::stream::names::stream_name;
use crate::stream::tails::read_object;

impl Tail {
    /// Redoes the records of an object, which comes after all that were redone. After an error the object can be redone
    /// again: commits that are in the graph already are left out (LOG-41).
    pub(super) fn redo(&mut self, incarnation: u64, seq: u64, object: &Bytes, through: u64) -> Result<()> {
        let path = self.home.describe(&stream_name(incarnation, seq));
        let mut end = self.end;
        let end_ts = self.listed(incarnation).and_then(|stream| stream.end_ts);
        let (follower, names) = (&mut self.follower, &mut self.names);
        let store = self.manager.store().clone();
        let mut images: Vec<Redo> = Vec::new();
        let read = read_object(object, &path, end_ts, &mut end, &mut |record, position| match record {
            Record::Commit(commit) if commit.timestamp <= follower.redone() => Ok(()),
            Record::Commit(commit) => {
                images.clear();
                let read = commit.each_redo::<Malformed>(|image| {
                    images.push(image);
                    Ok(())
                });
                let ts = commit.timestamp;
                read.map_err(|malformed| position.damage(format_args!("commit {ts}: {malformed}")))?;
                follower.redo(ts, &images).map_err(|error| located(&error, position))
            }
            // For readers of the change feed.
            Record::Before(_) | Record::Identities(_) | Record::Moment(_) => Ok(()),
            Record::Names(new) => put_names(&new, store.catalog(), names, position.path),
            Record::Rules(rules) if !rules.are_possible(store.catalog()) => Err(position.damage(IMPOSSIBLE_RULE)),
            Record::Rules(rules) => {
                follower.set_rules(rules.list, rules.next);
                Ok(())
            }
            Record::IndexCreated(info) if !is_possible(&info, store.catalog()) => {
                Err(position.damage(format_args!("index {}: {IMPOSSIBLE_INDEX}", info.id.0)))
            }
            Record::IndexCreated(info) => {
                let created = follower.show().and_then(|()| follower.create_index(&info));
                created.map_err(|error| located(&error, position))
            }
            Record::IndexDropped(id) => {
                let dropped = follower.show().and_then(|()| follower.drop_index(id));
                dropped.map_err(|error| located(&error, position))
            }
        });
        read.and_then(|()| follower.show()).inspect_err(|_| follower.forget())?;
        self.end = end;
        // The owner has no later commit up to there, so its next timestamp is the follower's next, too.
        self.follower.pass(through);
        self.pass(incarnation, seq, object);
        Ok(())
    }

    /// Adds the names of the checkpoint whose directories were read to the catalog (LOG-75).
    pub(super) fn learn_names(&mut self) -> Result<()> {
        let Some(bytes) = self.directories.names() else { return Ok(()) };
        let (path, theirs) = (self.home.describe(CHECKPOINT_DIR), Catalog::new());
        read_names(bytes, &theirs).map_err(|malformed| {
            damaged_in(&path, malformed.at, format_args!("the catalog of the newest manifest has {}", malformed.what))
        })?;
        let all = Names::between(&theirs, NameCounts::default(), NameCounts::of(&theirs));
        put_names(&all, self.manager.store().catalog(), &mut self.names, &path)
    }
}

/// Adds names of the owner to the catalog (LOG-74).
fn put_names(new: &Names, catalog: &Catalog, durable: &mut NameCounts, path: &str) -> Result<()> {
    let has_own = NameCounts::of(catalog) != *durable;
    if new.first.max(*durable) == *durable && new.put_into(catalog) {
        *durable = durable.max(new.end());
        return Ok(());
    }
    if has_own {
        let message = format!(
            "{path}: the owner has given names to numbers that clients of this follower have given to others; open the \
             graph again"
        );
        return Err(Error::new(ErrorKind::Closed, message));
    }
    Err(damaged_in(path, 0, "it has names whose numbers are taken, or that do not follow the existing ones"))
}

/// The same error, with the object that the record is in.
fn located(error: &Error, position: RecordPosition<'_>) -> Error {
    Error::new(error.kind(), format!("{}: {error}", position.path))
}
