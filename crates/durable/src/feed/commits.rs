//! From records of the log to the changes of a commit.
//!
//! The records of identities and old values come before the commit with their timestamp. If a log was cut between
//! them, their commit does not follow; the timestamp tells.

use hashbrown::HashMap;
use mangrove_graph::{Catalog, ElementId, ElementKind, Error, KeyId, LabelSetId, Result, UserId, VertexId};
use mangrove_store::{Content, Redo};

use super::{FeedChange, FeedChangeKind, FeedEvent, FeedEventKind, FeedPosition};
use crate::codec::Malformed;
use crate::log::read::RecordPosition;
use crate::log::record::{CommitRecord, Record};

/// The changes of a commit.
#[derive(Debug)]
pub(super) struct CommitChanges {
    ts: u64,
    time_us: Option<u64>,
    changes: Vec<FeedChange>,
    /// How many of them were taken or passed over.
    taken: usize,
}

impl CommitChanges {
    /// Returns true if the names of all labels and keys are known.
    pub(super) fn are_named(&self, catalog: &Catalog) -> bool {
        let (labels, keys) = (catalog.label_set_count(), catalog.key_count());
        let is_key = |key: &KeyId| (key.0 as usize) < keys;
        let are_keys = |content: &Content| match content {
            Content::Absent | Content::One(_) => true,
            Content::Multi(multi) => multi.values.iter().all(|one| one.meta.iter().all(|(key, _)| is_key(key))),
        };
        self.changes.iter().all(|change| {
            let are_known = match &change.change {
                FeedChangeKind::Insert => true,
                FeedChangeKind::Delete { before } => before.iter().all(|(key, old)| is_key(key) && are_keys(old)),
                FeedChangeKind::Set { key, after, before } => is_key(key) && are_keys(after) && are_keys(before),
                FeedChangeKind::Unset { key, before } => is_key(key) && are_keys(before),
            };
            are_known && (change.labels.0 as usize) < labels
        })
    }

    /// Takes the next event after a position. `None`: all have been taken, or are before it.
    pub(super) fn next_after(&mut self, from: FeedPosition) -> Option<FeedEvent> {
        let (ts, time_us, count) = (self.ts, self.time_us, self.changes.len());
        while self.taken <= count {
            let index = self.taken;
            self.taken += 1;
            // LOG-90: the order is that of the record.
            let at = FeedPosition { ts, n: index as u64 + 1 };
            if at > from {
                let what = match self.changes.get_mut(index) {
                    Some(change) => FeedEventKind::Change(Box::new(take(change))),
                    None => FeedEventKind::Commit { changes: count as u64 },
                };
                return Some(FeedEvent { at, time_us, what });
            }
        }
        None
    }
}

/// Takes a change out of its list, and leaves one without content.
fn take(change: &mut FeedChange) -> FeedChange {
    let left = FeedChange { id: change.id.clone(), change: FeedChangeKind::Insert, ends: None, ..*change };
    std::mem::replace(change, left)
}

/// What the log says of an element besides a change.
#[derive(Clone, Debug)]
struct Identity {
    labels: LabelSetId,
    ends: Option<(VertexId, VertexId)>,
    user_id: Option<UserId>,
}

type OldValues = HashMap<ElementId, Vec<(KeyId, Content)>>;

/// Makes the changes of commits from the records of a log, in order.
#[derive(Debug)]
pub(super) struct Assembler {
    from: FeedPosition,
    /// Of the commit with this timestamp.
    identities: Option<(u64, HashMap<ElementId, Identity>)>,
    before: Option<(u64, OldValues)>,
    /// When the records after the last moment were written, in microseconds since 1970.
    moment_us: Option<u64>,
}

impl Assembler {
    /// Commits before a position are passed over.
    pub(super) fn new(from: FeedPosition) -> Self {
        Assembler { from, identities: None, before: None, moment_us: None }
    }

    /// Takes a record. Returns the changes of a commit if it is one that is to be shown.
    pub(super) fn record(
        &mut self,
        record: &Record<'_>,
        position: RecordPosition<'_>,
        time_us: Option<u64>,
    ) -> Result<Option<CommitChanges>> {
        if let Record::Moment(unix_us) = record {
            self.moment_us = Some(*unix_us);
        }
        let (Record::Commit(entries) | Record::Identities(entries) | Record::Before(entries)) = record else {
            return Ok(None);
        };
        let ts = entries.timestamp;
        if FeedPosition::after_commit(ts) <= self.from {
            return Ok(None);
        }
        match record {
            Record::Identities(_) => self.identities = Some((ts, identities(entries, position)?)),
            Record::Before(_) => self.before = Some((ts, old_values(entries, position)?)),
            _ => {
                let identities = self.identities.take().filter(|(of, _)| *of == ts).map(|(_, identities)| identities);
                let before = self.before.take().filter(|(of, _)| *of == ts).map(|(_, values)| values);
                let changes = changes(entries, identities, before.unwrap_or_default(), position)?;
                let time_us = time_us.or(self.moment_us);
                return Ok(Some(CommitChanges { ts, time_us, changes, taken: 0 }));
            }
        }
        Ok(None)
    }
}

fn identities(entries: &CommitRecord<'_>, position: RecordPosition<'_>) -> Result<HashMap<ElementId, Identity>> {
    let mut found = HashMap::new();
    each(entries, position, |redo| match redo {
        Redo::Insert { element, labels, ends, user_id } => {
            found.insert(element, Identity { labels, ends, user_id });
            Ok(())
        }
        _ => Err(position.damage(format_args!("commit {}: an identity that is a change", entries.timestamp))),
    })?;
    Ok(found)
}

fn old_values(entries: &CommitRecord<'_>, position: RecordPosition<'_>) -> Result<OldValues> {
    let mut found = OldValues::new();
    each(entries, position, |redo| match redo {
        Redo::Property { element, key, content } => {
            found.entry(element).or_default().push((key, content));
            Ok(())
        }
        _ => Err(position.damage(format_args!("commit {}: an old value that is none", entries.timestamp))),
    })?;
    Ok(found)
}

fn each(
    entries: &CommitRecord<'_>,
    position: RecordPosition<'_>,
    mut each: impl FnMut(Redo) -> Result<()>,
) -> Result<()> {
    /// An error of the bytes, or of the caller.
    enum Failed {
        Malformed(Malformed),
        Other(Error),
    }
    impl From<Malformed> for Failed {
        fn from(malformed: Malformed) -> Self {
            Failed::Malformed(malformed)
        }
    }
    entries.each_redo(|redo| each(redo).map_err(Failed::Other)).map_err(|failed| match failed {
        Failed::Malformed(malformed) => position.damage(format_args!("commit {}: {malformed}", entries.timestamp)),
        Failed::Other(error) => error,
    })
}

/// The changes of a commit. `identities` is `None` if the log has no record of them.
fn changes(
    commit: &CommitRecord<'_>,
    identities: Option<HashMap<ElementId, Identity>>,
    mut before: OldValues,
    position: RecordPosition<'_>,
) -> Result<Vec<FeedChange>> {
    let is_known = identities.is_some();
    let (mut identities, mut entries) = (identities.unwrap_or_default(), Vec::new());
    each(commit, position, |redo| {
        if let Redo::Insert { element, labels, ends, user_id } = &redo {
            identities.insert(*element, Identity { labels: *labels, ends: *ends, user_id: user_id.clone() });
        }
        entries.push(redo);
        Ok(())
    })?;
    // A vertex without an identity has no chosen id, if the log has identities at all.
    let end = |vertex: VertexId| match identities.get(&ElementId::Vertex(vertex)) {
        Some(identity) => Ok(shown_id(ElementId::Vertex(vertex), identity)),
        None if is_known => Ok(UserId::int(vertex.external())),
        None => Err(not_in_the_log(commit.timestamp)),
    };
    let made = entries.into_iter().map(|redo| {
        let (Redo::Insert { element, .. } | Redo::Delete(element) | Redo::Property { element, .. }) = redo;
        let Some(identity) = identities.get(&element) else {
            return Err(match is_known {
                true => position.damage(format_args!("commit {}: an element without identity", commit.timestamp)),
                false => not_in_the_log(commit.timestamp),
            });
        };
        let ends = identity.ends.map(|(source, target)| Ok::<_, Error>((end(source)?, end(target)?))).transpose()?;
        let change = match redo {
            Redo::Insert { .. } => FeedChangeKind::Insert,
            Redo::Delete(_) => FeedChangeKind::Delete { before: before.remove(&element).unwrap_or_default() },
            Redo::Property { key, content, .. } => {
                let old = before.get_mut(&element).and_then(|values| {
                    let at = values.iter().position(|(of, _)| *of == key)?;
                    Some(values.swap_remove(at).1)
                });
                let before = old.unwrap_or(Content::Absent);
                match content {
                    Content::Absent => FeedChangeKind::Unset { key, before },
                    Content::Multi(multi) if multi.values.is_empty() => FeedChangeKind::Unset { key, before },
                    after => FeedChangeKind::Set { key, after, before },
                }
            }
        };
        let kind = match element {
            ElementId::Vertex(_) => ElementKind::Vertex,
            ElementId::Edge(_) => ElementKind::Edge,
        };
        Ok(FeedChange { element: kind, id: shown_id(element, identity), labels: identity.labels, ends, change })
    });
    made.collect()
}

/// The id that clients see.
fn shown_id(element: ElementId, identity: &Identity) -> UserId {
    identity.user_id.clone().unwrap_or_else(|| match element {
        ElementId::Vertex(id) => UserId::int(id.external()),
        ElementId::Edge(id) => UserId::int(id.external()),
    })
}

/// The error for a commit whose elements cannot be named.
fn not_in_the_log(ts: u64) -> Error {
    Error::unsupported(format!(
        "commit {ts} was made while the graph's option feed was off, and the log does not say which elements it changed; \
         read the whole graph again, as with an export, or go on after this commit: from {ts}"
    ))
}
