//! The take-over of a graph by a successor, up to its own first put.
//!
//! ```text
//! list node/ ─▶ claim node/INC ─▶ list manifest/ ─▶ read manifest N ─▶ put manifest N+1 ─▶ each listed stream, from
//!       ▲ taken │                     ▲                                  │                  its floor:
//!       └───────┘                     └────── superseded ────────────────┘
//!                  ┌──────────────┐
//!                  ▼              │ records
//!            read SEQ ────────────┴──▶ FENCE or FIN: the stream has ended
//!                  │ absent                                ▲
//!                  └──▶ put FENCE ── ours ─────────────────┘
//!                          └── another's: the same as found
//! ```
//!
//! An owner that always has puts under way would take each free name first, or write faster than the successor reads. So
//! once it has taken a name, or many objects were read, the successor puts a FENCE some numbers ahead, which the owner cannot
//! pass. Then the search goes on as before: the stream ends with its first FENCE.
//!
//! - **LOG-55.** A successor first claims the manifest, and then fences every stream that the claimed manifest lists,
//!   from the floor that it names. The claim freezes the floors: an owner whose checkpoint does not count deletes
//!   nothing. So no name at or above a floor can have been deleted, and a FENCE that finds its name free is at the end
//!   of the stream. It stands between the objects that the successor has read and every later one.
//!
//! A successor reads the tail of a stream while it searches for the end. When it finds the end, it has read all objects
//! before it.
//!
//! - **LOG-64.** A successor claims only manifests of owners with smaller incarnations; otherwise it claims a larger one
//!   first. So the order of incarnations is that of the owners, and of their commits.
//! - **LOG-70.** A successor that has followed the owners searches from the first object that it has not read, and only
//!   if the floors that it claims are not above that. So no object that it needs can have been deleted (LOG-55).
//!   Otherwise it claims nothing, and reads on.
//!
//! A successor that has followed knows the newest manifest, or one that was. It skips both lists and puts the claim at
//! once; if the number is taken, it goes the long way.
//!
//! Not here: the manifest's layout ([`Manifests`]), checkpoints, the successor's own stream (`writer`).

use std::collections::VecDeque;

use bytes::Bytes;
use mangrove_graph::{Error, ErrorKind, Result};
use uuid::Uuid;

use super::Rules;
use super::format::{Content, Header, Nonce, Place, encode, header_sum, new_object, nonce_of};
use super::manifest_put::{ManifestOutcome, ManifestPut};
use super::names::{MANIFESTS, NODES, manifest_name, manifest_number, node_incarnation, node_name, stream_name};
use super::next_object::NextObject;
pub use super::next_object::{ListedStream, ReadSoFar, StreamEnd};
use super::request::{Answer, PutStep, Request, Step};
use super::writer::IN_FLIGHT_MAX;
use crate::home::settle::{Likeness, NewObject, Settle, SettleStep, Settled};

/// How long a failed list or read waits, in microseconds.
const RETRY_US: u64 = 50_000;
/// The distance of a FENCE ahead doubles each time that the owner has come there first, so many times at most.
const FENCE_DOUBLINGS_MAX: u32 = 10;
/// After so many objects of a stream, a FENCE is put ahead: the owner may be writing on.
const FENCE_AHEAD_AFTER: usize = 64;
/// How often bytes that do not decode are read, before they count as damaged: a bit may flip on the way.
const READS_OF_DAMAGE: u32 = 3;

/// The layout of manifests, as far as a take-over must know it.
pub trait Manifests {
    /// What the manifest with a number says.
    ///
    /// # Errors
    ///
    /// If the manifest is damaged or of a later format.
    fn view(&self, number: u64, manifest: &[u8]) -> Result<ManifestView>;

    /// The manifest by which an incarnation claims the graph. It follows `parent`, which has this number, and says the
    /// same, with the incarnation as the owner, and with its stream listed from object 1. No other incarnation makes the
    /// same bytes.
    ///
    /// # Errors
    ///
    /// If the parent is damaged or of a later format.
    fn claim(&self, number: u64, parent: &[u8], incarnation: u64) -> Result<Vec<u8>>;
}

/// What a take-over must know of a manifest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ManifestView {
    /// The database.
    pub database: Uuid,
    /// The incarnation that owns the graph.
    pub owner: u64,
    /// The streams that recovery needs.
    pub streams: Vec<ListedStream>,
}

/// What a successor begins with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TakeOverStart {
    /// The content of the object that claims an incarnation. No other process may have the same.
    pub node: Bytes,
    /// Random bytes, from which the nonces of FENCE objects are made.
    pub nonce_seed: Nonce,
    /// The length of the read lease in microseconds, the same for all owners.
    pub lease_us: u64,
}

/// The part of a stream that recovery needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamTail {
    /// The incarnation that wrote the stream.
    pub incarnation: u64,
    /// Its objects of records from the floor on, whole and checked.
    pub objects: Vec<Bytes>,
    /// The number of the object that ends it.
    pub end_seq: u64,
    /// How it ended.
    pub end: StreamEnd,
    /// The last commit of it that counts, if not all do.
    pub end_ts: Option<u64>,
}

/// What a successor has learned by following the owners before it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Followed {
    /// The number of the newest manifest that it has read.
    pub manifest_number: u64,
    /// That manifest.
    pub manifest: Bytes,
    /// How far it has read the streams. It has everything before that.
    pub read: ReadSoFar,
}

/// What a successor has after its take-over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TakenOver {
    /// The database.
    pub database: Uuid,
    /// Its incarnation.
    pub incarnation: u64,
    /// The number of its manifest.
    pub manifest_number: u64,
    /// Its manifest.
    pub manifest: Bytes,
    /// The tails of the streams that the manifest lists, by incarnation. Of a successor that has followed, without what it
    /// had read.
    pub tails: Vec<StreamTail>,
    /// The end of the hold (LOG-58), in microseconds; 0 if every stream has ended by FIN.
    pub held_until_us: u64,
}

#[derive(Debug)]
enum Phase {
    ListNodes,
    ClaimNode(Settle),
    ListManifests,
    ReadManifest(u64),
    PutManifest(ManifestPut, Bytes),
    /// Reads the objects of the first stream in the queue.
    ReadStream,
    /// Puts a FENCE under this number of the first stream in the queue.
    PutFence(Settle, u64),
}

/// A take-over in progress.
#[derive(Debug)]
pub struct TakeOver<M> {
    start: TakeOverStart,
    manifests: M,
    rules: Rules,
    phase: Phase,
    incarnation: u64,
    /// The database, once a manifest was read.
    database: Uuid,
    /// The manifest that was claimed, and its number.
    claimed: Option<(u64, Bytes)>,
    /// What was followed before.
    followed: Option<Followed>,
    /// Streams whose end is not known.
    queue: VecDeque<ListedStream>,
    /// The objects read of the first of them.
    reading: Vec<Bytes>,
    /// Reads of the next object that did not decode.
    damaged_reads: u32,
    /// Objects of records that have taken the name of a FENCE in this stream.
    taken: u32,
    /// The own FENCE ahead in this stream.
    ahead: Option<u64>,
    tails: Vec<StreamTail>,
    held_until_us: u64,
    has_fenced: bool,
}

type Next = Step<TakenOver>;

impl<M: Manifests> TakeOver<M> {
    /// A take-over, and its first step.
    pub fn new(start: TakeOverStart, manifests: M) -> (Self, Next) {
        TakeOver::with_rules(start, manifests, Rules::default())
    }

    /// A take-over by a successor that has followed the owners, and its first step, at this time in microseconds.
    pub fn of_follower(start: TakeOverStart, manifests: M, followed: Followed, now_us: u64) -> (Self, Next) {
        let (mut take_over, _) = TakeOver::new(start, manifests);
        let owner = take_over.manifests.view(followed.manifest_number, &followed.manifest).map(|view| view.owner);
        take_over.followed = Some(followed);
        let first = match owner {
            Ok(owner) => {
                take_over.incarnation = owner;
                take_over.claim_next_node(now_us)
            }
            Err(error) => Step::Failed(error),
        };
        (take_over, first)
    }

    pub(super) fn with_rules(start: TakeOverStart, manifests: M, rules: Rules) -> (Self, Next) {
        let take_over = TakeOver {
            start,
            manifests,
            rules,
            phase: Phase::ListNodes,
            incarnation: 0,
            database: Uuid::nil(),
            claimed: None,
            followed: None,
            queue: VecDeque::new(),
            reading: Vec::new(),
            damaged_reads: 0,
            taken: 0,
            ahead: None,
            tails: Vec::new(),
            held_until_us: 0,
            has_fenced: false,
        };
        (take_over, list(NODES))
    }

    /// Takes the answer to the last request, at this time in microseconds.
    pub fn answered(&mut self, answer: Answer, now_us: u64) -> Next {
        match (&mut self.phase, answer) {
            (Phase::ListNodes, Answer::List(Ok(names))) => {
                self.incarnation = names.iter().filter_map(|name| node_incarnation(name)).max().unwrap_or(0);
                self.claim_next_node(now_us)
            }
            (Phase::ListManifests, Answer::List(Ok(names))) => {
                match names.iter().filter_map(|name| manifest_number(name)).max() {
                    None => Step::Failed(Error::new(
                        ErrorKind::NotFound,
                        "there is no graph here: no manifest was found. Check the address, or create the graph",
                    )),
                    Some(number) => {
                        self.phase = Phase::ReadManifest(number);
                        read(manifest_name(number))
                    }
                }
            }
            // The number was collected since it was listed: there are larger ones.
            (Phase::ReadManifest(_), Answer::Read(Ok(None))) => self.list_manifests(),
            (Phase::ReadManifest(number), Answer::Read(Ok(Some(parent)))) => {
                let number = *number;
                self.with_parent(number, &parent, now_us).unwrap_or_else(Step::Failed)
            }
            (Phase::PutManifest(put, _), answer) => {
                let step = put.answered(answer, now_us);
                self.manifest_step(step, now_us).unwrap_or_else(Step::Failed)
            }
            (Phase::ReadStream, Answer::Read(Ok(None))) => self.found_none(now_us),
            (Phase::ReadStream, Answer::Read(Ok(Some(bytes)))) => self.found(bytes, now_us),
            (Phase::ClaimNode(settle) | Phase::PutFence(settle, _), Answer::Put(answer)) => {
                let step = settle.put_answered(&answer, now_us);
                self.settle_step(step, now_us)
            }
            (Phase::ClaimNode(settle) | Phase::PutFence(settle, _), Answer::Read(answer)) => {
                let step = settle.read_answered(answer, now_us);
                self.settle_step(step, now_us)
            }
            // No answer, or one to another request.
            (_, _) => Step::WaitUntil(now_us + RETRY_US),
        }
    }

    /// Goes on after a wait, at this time in microseconds.
    pub fn resumed(&mut self, now_us: u64) -> Next {
        match &mut self.phase {
            Phase::ListNodes => list(NODES),
            Phase::ListManifests => list(MANIFESTS),
            Phase::ReadManifest(number) => read(manifest_name(*number)),
            Phase::ReadStream => self.read_next(now_us),
            Phase::PutManifest(put, _) => {
                let step = put.resumed();
                self.manifest_step(step, now_us).unwrap_or_else(Step::Failed)
            }
            Phase::ClaimNode(settle) | Phase::PutFence(settle, _) => {
                let step = settle.resumed();
                self.settle_step(step, now_us)
            }
        }
    }

    fn claim_next_node(&mut self, now_us: u64) -> Next {
        let Some(incarnation) = self.incarnation.checked_add(1) else {
            return Step::Failed(no_number_left(&node_name(self.incarnation)));
        };
        self.incarnation = incarnation;
        let node = NewObject { bytes: self.start.node.clone(), likeness: Likeness::Whole };
        let (settle, first) = Settle::with_rules(node, self.rules.settle);
        self.phase = Phase::ClaimNode(settle);
        self.settle_step(first, now_us)
    }

    fn list_manifests(&mut self) -> Next {
        self.phase = Phase::ListManifests;
        list(MANIFESTS)
    }

    /// The put that a settled outcome belongs to: the claim of a node, or a FENCE.
    fn settle_step(&mut self, step: SettleStep, now_us: u64) -> Next {
        let next = self.next_place();
        let fence = match (&self.phase, next) {
            (Phase::PutFence(_, seq), Some((incarnation, _))) => Some((incarnation, *seq)),
            _ => None,
        };
        let name = fence.map_or_else(|| node_name(self.incarnation), |(stream, seq)| stream_name(stream, seq));
        match (PutStep::of(step, &name), fence) {
            (PutStep::Step(step), _) => step,
            (PutStep::Settled(Settled::Own), None) => self.claim_manifest(now_us),
            (PutStep::Settled(Settled::Another(_)), None) => self.claim_next_node(now_us),
            (PutStep::Settled(Settled::Own), _) if fence == next => {
                self.ended(StreamEnd::Fence { by: self.incarnation }, now_us)
            }
            (PutStep::Settled(settled), Some((_, seq))) => {
                match settled {
                    Settled::Own => self.ahead = Some(seq),
                    Settled::Another(_) => self.taken += 1,
                }
                let was_ahead = fence != next;
                if was_ahead && self.ahead.is_none() && self.taken <= FENCE_DOUBLINGS_MAX {
                    return self.put_fence(now_us);
                }
                self.phase = Phase::ReadStream;
                self.read_next(now_us)
            }
        }
    }

    /// Claims the manifest after the one that is known from before, or else looks for the newest.
    fn claim_manifest(&mut self, now_us: u64) -> Next {
        match self.followed.as_ref().map(|followed| (followed.manifest_number, followed.manifest.clone())) {
            Some((number, parent)) => self.with_parent(number, &parent, now_us).unwrap_or_else(Step::Failed),
            None => self.list_manifests(),
        }
    }

    /// Puts the manifest that follows one.
    fn with_parent(&mut self, number: u64, parent: &Bytes, now_us: u64) -> Result<Next> {
        let ManifestView { owner, streams, .. } = self.manifests.view(number, parent)?;
        if owner >= self.incarnation {
            // LOG-64.
            self.incarnation = owner;
            return Ok(self.claim_next_node(now_us));
        }
        if self.followed.as_ref().is_some_and(|followed| followed.read.is_behind(&streams)) {
            // LOG-70.
            let message = "the owner has taken a checkpoint, and released objects of its log that this follower has not \
                           read; let it read on, or open the graph again";
            return Err(Error::new(ErrorKind::Closed, message));
        }
        if !self.rules.claims_first && !self.has_fenced {
            return self.begin_fencing(number, parent, now_us);
        }
        let next = number.checked_add(1).ok_or_else(|| no_number_left(&manifest_name(number)))?;
        let manifest: Bytes = self.manifests.claim(number, parent, self.incarnation)?.into();
        let (put, step) = ManifestPut::with_rules(next, manifest.clone(), self.rules);
        self.phase = Phase::PutManifest(put, manifest);
        self.manifest_step(step, now_us)
    }

    fn manifest_step(&mut self, step: Step<ManifestOutcome>, now_us: u64) -> Result<Next> {
        Ok(match step {
            Step::Ask(request) => Step::Ask(request),
            Step::WaitUntil(us) => Step::WaitUntil(us),
            Step::Failed(error) => Step::Failed(error),
            Step::Done(ManifestOutcome::Superseded) => self.list_manifests(),
            Step::Done(ManifestOutcome::Counts) => {
                let Phase::PutManifest(put, manifest) = &self.phase else {
                    return Err(Error::bug("a manifest counts that was not put"));
                };
                let (number, manifest) = (put.number(), manifest.clone());
                self.claimed = Some((number, manifest.clone()));
                match self.has_fenced {
                    true => self.done(),
                    false => self.begin_fencing(number, &manifest, now_us)?,
                }
            }
        })
    }

    /// Fences every stream of a manifest but the own one (LOG-55).
    fn begin_fencing(&mut self, number: u64, manifest: &[u8], now_us: u64) -> Result<Next> {
        let ManifestView { database, owner, mut streams } = self.manifests.view(number, manifest)?;
        if owner != self.incarnation && self.rules.claims_first {
            return Err(Error::bug(format!("incarnation {} has claimed the graph for {owner}", self.incarnation)));
        }
        self.database = database;
        streams.retain(|stream| stream.incarnation != self.incarnation);
        streams.sort_by_key(|stream| stream.incarnation);
        if let Some(read) = self.followed.as_ref().map(|followed| &followed.read) {
            for stream in streams.iter_mut().filter(|stream| stream.incarnation == read.incarnation) {
                stream.floor = stream.floor.max(read.next);
            }
        }
        if !self.rules.fences_from_floor {
            streams.iter_mut().for_each(|stream| stream.floor = 1);
        }
        self.queue = streams.into();
        self.phase = Phase::ReadStream;
        Ok(self.read_next(now_us))
    }

    /// The number of the next object of the stream whose end is searched, and the stream's incarnation.
    fn next_place(&self) -> Option<(u64, u64)> {
        let stream = self.queue.front()?;
        Some((stream.incarnation, stream.floor.saturating_add(self.reading.len() as u64)))
    }

    /// The next object of the stream whose end is searched.
    fn next_object(&self) -> Option<NextObject> {
        let (incarnation, seq) = self.next_place()?;
        Some(NextObject {
            database: self.queue.front().and_then(|stream| stream.database).unwrap_or(self.database),
            incarnation,
            seq,
            end: self.queue.front().and_then(|stream| stream.end),
            previous: self.previous(),
        })
    }

    /// The checksum of the header of the object before the next one, if that was read.
    fn previous(&self) -> Option<u32> {
        match self.reading.last() {
            Some(before) => Some(header_sum(before)),
            None => {
                let read = &self.followed.as_ref()?.read;
                if Some((read.incarnation, read.next)) == self.next_place() { read.previous } else { None }
            }
        }
    }

    fn next_name(&self) -> String {
        self.next_place().map(|(incarnation, seq)| stream_name(incarnation, seq)).unwrap_or_default()
    }

    fn read_next(&mut self, now_us: u64) -> Next {
        self.pass_followed_ends(now_us);
        match self.next_place() {
            Some((incarnation, seq)) => read(stream_name(incarnation, seq)),
            None => {
                self.has_fenced = true;
                match self.claimed {
                    Some(_) => self.done(),
                    None => self.list_manifests(),
                }
            }
        }
    }

    /// Notes the ends that were read before, of the streams at the front of the queue.
    fn pass_followed_ends(&mut self, now_us: u64) {
        while let Some(stream) = self.queue.front().filter(|_| self.reading.is_empty()) {
            let ends = self.followed.as_ref().map(|followed| &followed.read.ends);
            let Some(&(end_seq, end)) = ends.and_then(|ends| ends.get(&stream.incarnation)) else { return };
            let ListedStream { incarnation, end_ts, .. } = *stream;
            self.tails.push(StreamTail { incarnation, objects: Vec::new(), end_seq, end, end_ts });
            self.queue.pop_front();
            self.hold(end, now_us);
        }
    }

    /// The next name of the stream whose end is searched is free.
    fn found_none(&mut self, now_us: u64) -> Next {
        match (self.next_object(), self.queue.front().and_then(|stream| stream.end)) {
            (Some(next), Some(end)) => {
                let what = format!("it is missing, and the stream ends with object {end}");
                Step::Failed(next.damage(&self.next_name(), what))
            }
            _ => self.put_fence(now_us),
        }
    }

    /// Takes an object of the stream whose end is searched.
    fn found(&mut self, bytes: Bytes, now_us: u64) -> Next {
        let Some(next) = self.next_object() else { return self.read_next(now_us) };
        match next.check(&bytes, &self.next_name()).map(|header| header.content) {
            Err(_) if self.damaged_reads + 1 < READS_OF_DAMAGE => {
                self.damaged_reads += 1;
                Step::WaitUntil(now_us + RETRY_US)
            }
            Err(error) => Step::Failed(error),
            Ok(content) => {
                self.damaged_reads = 0;
                match content {
                    Content::Fence { by } => self.ended(StreamEnd::Fence { by }, now_us),
                    Content::Fin => self.ended(StreamEnd::Fin, now_us),
                    Content::Records(_) => {
                        self.reading.push(bytes);
                        let may_go_on =
                            self.ahead.is_none() && self.queue.front().is_some_and(|stream| stream.end.is_none());
                        match may_go_on && self.reading.len() == FENCE_AHEAD_AFTER {
                            true => {
                                self.taken = self.taken.max(1);
                                self.put_fence(now_us)
                            }
                            false => self.read_next(now_us),
                        }
                    }
                }
            }
        }
    }

    /// How many numbers ahead of the next name of the stream the next FENCE is put.
    fn next_fence(&self) -> u64 {
        match (self.taken, self.ahead) {
            (1.., None) => (IN_FLIGHT_MAX as u64) << self.taken.min(FENCE_DOUBLINGS_MAX),
            _ => 0,
        }
    }

    fn put_fence(&mut self, now_us: u64) -> Next {
        let Some((incarnation, next)) = self.next_place() else { return self.read_next(now_us) };
        let ahead = self.next_fence();
        let seq = next.saturating_add(ahead);
        let place = Place {
            database: self.database,
            incarnation,
            seq,
            nonce: nonce_of(self.start.nonce_seed, seq),
            // The object before a FENCE ahead is not known.
            previous: self.previous().filter(|_| ahead == 0).unwrap_or(0),
        };
        let fence = Header { place, cut_us: 0, content: Content::Fence { by: self.incarnation } };
        let (settle, first) = Settle::with_rules(new_object(encode(&fence, &[]).into()), self.rules.settle);
        self.phase = Phase::PutFence(settle, seq);
        self.settle_step(first, now_us)
    }

    /// Notes the end of a stream, and goes on with the next one.
    fn ended(&mut self, end: StreamEnd, now_us: u64) -> Next {
        if let (Some((_, end_seq)), Some(stream)) = (self.next_place(), self.queue.pop_front()) {
            let objects = std::mem::take(&mut self.reading);
            let ListedStream { incarnation, end_ts, .. } = stream;
            self.tails.push(StreamTail { incarnation, objects, end_seq, end, end_ts });
        }
        (self.taken, self.ahead) = (0, None);
        self.hold(end, now_us);
        self.phase = Phase::ReadStream;
        self.read_next(now_us)
    }

    /// LOG-58, for a stream whose end is known now. Another's FENCE was settled before it was found. An owner that has put
    /// FIN serves no reads.
    fn hold(&mut self, end: StreamEnd, now_us: u64) {
        if end != StreamEnd::Fin {
            let hold_us = self.start.lease_us + self.start.lease_us.div_ceil(20);
            self.held_until_us = self.held_until_us.max(now_us + hold_us);
        }
    }

    fn done(&mut self) -> Next {
        let Some((manifest_number, manifest)) = self.claimed.clone() else {
            return Step::Failed(Error::bug("a take-over has ended without a manifest"));
        };
        Step::Done(TakenOver {
            database: self.database,
            incarnation: self.incarnation,
            manifest_number,
            manifest,
            tails: std::mem::take(&mut self.tails),
            held_until_us: self.held_until_us,
        })
    }
}

/// The error for an object whose number no owner has given: the next number would not exist.
fn no_number_left(object: &str) -> Error {
    let what = "no owner has given this number. Remove the object if it is not part of the graph, or restore the graph";
    Error::new(ErrorKind::Damaged, format!("{object} cannot belong to this graph: {what} from a backup"))
}

fn list(directory: &str) -> Next {
    Step::Ask(Request::List { directory: directory.into() })
}

fn read(name: String) -> Next {
    Step::Ask(Request::Read { name, bytes_max: None })
}

#[cfg(test)]
mod tests;
