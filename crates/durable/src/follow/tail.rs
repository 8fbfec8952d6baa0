//! The reading side of a follower: the newest manifest, and the objects of the streams one after the other.
//!
//! [`Tail::step`] does one thing: it redoes an object, goes on to the next stream, or finds that there is nothing new. It
//! has no thread and does not wait but for answers of the home, so tests go step by step.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mangrove_graph::{Error, ErrorKind, Result};
use mangrove_store::Store;
use mangrove_txn::{Follower, TransactionManager};
use parking_lot::Mutex;
use uuid::Uuid;

use super::pin::{FollowPin, FollowPinState};
use super::{FollowOptions, FollowRequests, FollowState, FollowStatus};
use crate::checkpoint::PackDirectories;
use crate::checkpoint::home::{HomePlace, patiently};
use crate::home::{Home, Name, WaitHome};
use crate::log::read::RecordPosition;
use crate::log::record::{NameCounts, Record};
use crate::log::source::LogSource;
use crate::manifest::{KIND_EDGES, KIND_VERTICES, Manifest, ManifestStream};
use crate::recovery::{Recovered, RecoveryOptions, RecoveryProgress, RecoverySummary, recover_in};
use crate::states::read_manifest;
use crate::stream::clock;
use crate::stream::fence::{Followed, ListedStream, ReadSoFar, StreamEnd};
use crate::stream::format::{Content, Header};
use crate::stream::names::{MANIFESTS, manifest_name, manifest_number, stream_name};
use crate::stream::next_object::NextStream;
use crate::stream::read_ahead::ReadAhead;
use crate::stream::tails::StreamsEnd;

/// How often a graph is loaded again because its owner has deleted what was being read.
const OPENINGS_MAX: u32 = 5;
/// How often an object that does not decode is read, before it counts as damaged: a bit may flip on the way.
const READS_OF_DAMAGE: u32 = 3;

/// What a step has found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Found {
    /// An object of records, which were redone.
    Records {
        /// Commits in it.
        commits: u32,
        /// When its owner made it, in microseconds since 1970.
        cut_unix_us: u64,
    },
    /// The end of a stream, or the beginning of the next.
    Stream,
    /// Nothing new.
    Nothing,
}

/// A manifest, as it was read.
#[derive(Debug)]
pub(super) struct ReadManifest {
    pub(super) manifest: Manifest,
    bytes: Bytes,
}

impl ReadManifest {
    /// Reads the newest manifest; `None` if another process has deleted it meanwhile, or if it is the known one.
    fn newest(home: &dyn Home, known: u64, patience: Duration) -> Result<Option<Self>> {
        let directory = Name::new(MANIFESTS)?;
        let listed = patiently(patience, || home.list(&directory))?;
        let Some(number) = listed.iter().filter_map(|name| manifest_number(name.as_str())).max() else {
            let message = format!("there is no graph in {}; check the address, or create the graph", home.describe(""));
            return Err(Error::new(ErrorKind::NotFound, message));
        };
        if number <= known {
            return Ok(None);
        }
        let name = Name::new(&manifest_name(number))?;
        let Some(bytes) = patiently(patience, || home.get(&name))? else { return Ok(None) };
        let manifest = Manifest::of_object(home, number, &bytes)?;
        Ok(Some(ReadManifest { manifest, bytes }))
    }

    fn streams(&self) -> Vec<ListedStream> {
        self.manifest.streams.iter().map(ManifestStream::listed).collect()
    }
}

/// A follower without a thread.
#[derive(Debug)]
pub(super) struct Tail {
    pub(super) home: Arc<dyn Home>,
    pub(super) options: FollowOptions,
    pub(super) manager: TransactionManager,
    pub(super) follower: Follower,
    pub(super) database: Uuid,
    pub(super) newest: ReadManifest,
    /// Of the packs of the newest manifest, or of one before it.
    pub(super) directories: PackDirectories,
    /// The number of the manifest whose packs they are of.
    directories_of: u64,
    pub(super) read: ReadSoFar,
    /// What a manifest says of the stream that is read.
    stream: Option<ListedStream>,
    ahead: ReadAhead,
    /// What was read of the streams.
    pub(super) end: StreamsEnd,
    /// The names that are durable (LOG-74).
    pub(super) names: NameCounts,
    /// Bytes of the objects that the newest manifest does not cover, by place.
    pub(super) uncovered: BTreeMap<(u64, u64), u64>,
    pub(super) recovery: RecoverySummary<StreamsEnd>,
    /// True if the last step has found nothing new.
    pub(super) is_current: bool,
    /// When the manifests were last listed, in microseconds.
    looked_us: u64,
    /// Keeps what was not read (LOG-77).
    pin: FollowPin,
    /// Why the pin could not be put or moved at the last step, if it could not.
    pin_trouble: Option<Error>,
    requests: FollowRequests,
}

/// No log: a follower redoes the streams after it has loaded the checkpoint.
struct NoLog;

impl LogSource for NoLog {
    type End = StreamsEnd;

    fn read(&self, _: &mut dyn FnMut(Record<'_>, RecordPosition<'_>) -> Result<()>) -> Result<StreamsEnd> {
        Ok(StreamsEnd::default())
    }
}

impl Tail {
    /// Loads the newest checkpoint and redoes the streams up to now, under a pin.
    pub(super) fn open(
        home: Arc<dyn Home>,
        options: &FollowOptions,
        progress: &(dyn Fn(RecoveryProgress) + Sync),
    ) -> Result<Self> {
        let patience = options.graph.patience;
        let mut openings = 1;
        // The number of the last manifest that was tried. A later one says that its objects may have been deleted.
        let (mut tried, mut failed) = (0, None);
        loop {
            match (ReadManifest::newest(&*home, tried, patience)?, failed) {
                (Some(newest), _) => {
                    tried = newest.manifest.version;
                    let opened = match Tail::pinned(&home, options, newest)? {
                        Some((newest, pin)) => {
                            tried = newest.manifest.version;
                            Tail::load(home.clone(), options, newest, pin, progress).and_then(Tail::until_current)
                        }
                        None => Err(changing(&*home)),
                    };
                    match opened {
                        Err(error) if openings < OPENINGS_MAX => failed = Some(error),
                        opened => return opened,
                    }
                }
                (None, Some(error)) => return Err(error),
                // The newest manifest was deleted between the list and the read.
                (None, None) if openings < OPENINGS_MAX => failed = None,
                (None, None) => return Err(changing(&*home)),
            }
            openings += 1;
        }
    }

    /// Pins a manifest, and returns the newest one after that. `None`: the pin came too late.
    fn pinned(
        home: &Arc<dyn Home>,
        options: &FollowOptions,
        newest: ReadManifest,
    ) -> Result<Option<(ReadManifest, FollowPin)>> {
        let (number, patience) = (newest.manifest.version, options.graph.patience);
        let pin = FollowPin::put(home.clone(), number, options.pin_time, patience)?;
        if options.pin_time.is_zero() {
            return Ok(Some((newest, pin)));
        }
        // LOG-81: after the pin was put.
        let newest = ReadManifest::newest(&**home, number, patience)?.unwrap_or(newest);
        Ok((newest.manifest.kept_from <= number).then_some((newest, pin)))
    }

    /// Loads the checkpoint of a manifest.
    fn load(
        home: Arc<dyn Home>,
        options: &FollowOptions,
        newest: ReadManifest,
        pin: FollowPin,
        progress: &(dyn Fn(RecoveryProgress) + Sync),
    ) -> Result<Self> {
        let pin = Mutex::new(pin);
        let progress = &|now: RecoveryProgress| {
            if let Some(mut pin) = pin.try_lock() {
                // If that fails, the next call tries again.
                let _ = pin.renew(clock::now().us);
            }
            progress(now);
        };
        let (graph, manifest) = (&options.graph.graph, &newest.manifest);
        let place = HomePlace::new(home.clone(), options.graph.patience);
        let recovery = RecoveryOptions { follows: true, ..graph.of_recovery(manifest) };
        let Recovered { store, summary, .. } = recover_in(&place, manifest, &NoLog, &|_| Ok(()), recovery, progress)?;
        let names = NameCounts::of(store.catalog());
        let (manager, follower) = TransactionManager::following(Arc::new(store), graph.recent, summary.last_ts);
        let read = ReadSoFar::from_floors(&newest.streams());
        let stream = newest.streams().into_iter().find(|stream| stream.incarnation == read.incarnation);
        let mut tail = Tail {
            home,
            options: options.clone(),
            manager,
            follower,
            database: manifest.database,
            newest,
            directories: PackDirectories::default(),
            directories_of: 0,
            read,
            stream,
            ahead: ReadAhead::new(0),
            end: StreamsEnd::default(),
            names,
            uncovered: BTreeMap::new(),
            recovery: summary,
            is_current: false,
            looked_us: clock::now().us,
            pin: pin.into_inner(),
            pin_trouble: None,
            requests: FollowRequests::default(),
        };
        tail.name_owner();
        Ok(tail)
    }

    /// Redoes everything that the home has.
    fn until_current(mut self) -> Result<Self> {
        while self.step()? != Found::Nothing {}
        Ok(self)
    }

    /// Redoes the next object, or goes on to the next stream.
    ///
    /// # Errors
    ///
    /// `Io` if the home fails, `MemoryLimit` and `Expired`: the same step may succeed later. After every other error there
    /// is no further step. `Closed`: the graph must be opened again.
    pub(super) fn step(&mut self) -> Result<Found> {
        self.is_current = false;
        self.keep_pin();
        let found = if self.read.has_ended() { self.next_stream()? } else { self.next_object()? };
        self.is_current = found == Found::Nothing;
        if self.is_current {
            self.read_directories();
        }
        Ok(found)
    }

    /// Renews the pin, or moves it on (LOG-77).
    fn keep_pin(&mut self) {
        let Tail { newest, read, pin, .. } = self;
        let is_kept = || read.is_kept_by(&newest.streams(), has_checkpoint(&newest.manifest));
        let kept = pin.keep(newest.manifest.version, is_kept, clock::now().us);
        self.pin_trouble = kept.err();
    }

    /// Whether there is a pin.
    pub(super) fn pin_state(&self) -> FollowPinState {
        self.pin.state()
    }

    /// Why the pin could not be put or moved at the last step, if it could not.
    pub(super) fn pin_trouble(&self) -> Option<&Error> {
        self.pin_trouble.as_ref()
    }

    /// The next object of the stream.
    fn next_object(&mut self) -> Result<Found> {
        if let Some(next) = self.get_next()? {
            return self.take(next);
        }
        let is_due = clock::now().us.saturating_sub(self.looked_us) >= self.options.manifest_pause.as_micros() as u64;
        if is_due {
            self.look()?;
            if self.read.is_behind(&self.newest.streams()) {
                // It may have been put since it was looked for.
                return match self.get_next()? {
                    Some(next) => self.take(next),
                    None => Err(self.deleted()),
                };
            }
        }
        Ok(Found::Nothing)
    }

    /// What manifests say of a stream.
    pub(super) fn listed(&self, incarnation: u64) -> Option<ListedStream> {
        let listed = self.newest.streams().into_iter().find(|stream| stream.incarnation == incarnation);
        // A stream that is read under a pin may be one that the newest manifest does not need.
        listed.or_else(|| self.stream.filter(|stream| stream.incarnation == incarnation))
    }

    /// Reads the next object of the stream, and checks it.
    fn get_next(&mut self) -> Result<Option<(Bytes, Header)>> {
        let (incarnation, seq) = (self.read.incarnation, self.read.next);
        let database = self.listed(incarnation).and_then(|stream| stream.database).unwrap_or(self.database);
        let next = self.read.next_object(database);
        let name = stream_name(incarnation, seq);
        let mut reads = 1;
        loop {
            let Some(bytes) = self.ahead.read(&*self.home, name.clone())? else { return Ok(None) };
            match next.check(&bytes, &self.home.describe(&name)) {
                Err(_) if reads < READS_OF_DAMAGE => reads += 1,
                checked => return checked.map(|header| Some((bytes, header))),
            }
        }
    }

    /// Takes the next object of the stream.
    fn take(&mut self, (bytes, header): (Bytes, Header)) -> Result<Found> {
        let (incarnation, seq) = (self.read.incarnation, self.read.next);
        match header.content {
            Content::Records(batch) => {
                if batch.commits > 0 && self.manager.store().is_empty() {
                    // LOG-73.
                    self.look()?;
                }
                self.redo(incarnation, seq, &bytes, batch.through)?;
                Ok(Found::Records { commits: batch.commits, cut_unix_us: header.cut_us })
            }
            Content::Fence { by } => Ok(self.ended(StreamEnd::Fence { by })),
            Content::Fin => Ok(self.ended(StreamEnd::Fin)),
        }
    }

    fn ended(&mut self, end: StreamEnd) -> Found {
        self.read.end(end);
        Found::Stream
    }

    /// Notes that an object of a stream was redone.
    pub(super) fn pass(&mut self, incarnation: u64, seq: u64, bytes: &[u8]) {
        self.read.pass(incarnation, seq, bytes);
        self.uncovered.insert((incarnation, seq), bytes.len() as u64);
    }

    /// Goes on to the stream after the one that has ended (LOG-72).
    fn next_stream(&mut self) -> Result<Found> {
        self.look()?;
        let (manifest, after) = match stream_after(&self.read, &self.newest.manifest) {
            NextStream::Listed(after) => (self.newest.manifest.clone(), after),
            NextStream::NotYet => return Ok(Found::Nothing),
            NextStream::Unknown => self.stream_after_pinned()?.ok_or_else(|| self.deleted())?,
        };
        // LOG-75. If the packs are gone, there is a newer manifest, which the next attempt finds.
        let place = HomePlace::new(self.home.clone(), Duration::ZERO);
        let opened = self.directories.read(&place, &manifest);
        self.requests.packs += opened.map_err(|error| {
            Error::new(ErrorKind::Io, format!("the names of the newest checkpoint cannot be read: {error}"))
        })?;
        self.directories_of = manifest.version;
        self.learn_names()?;
        self.read.go_on(&after);
        self.stream = Some(after);
        Ok(Found::Stream)
    }

    /// Looks for the stream after the one that has ended in the manifests that the pin keeps. The newest manifest lists
    /// that stream no more if its owner has taken a checkpoint.
    fn stream_after_pinned(&mut self) -> Result<Option<(Manifest, ListedStream)>> {
        // Where manifests were deleted, one may lie that never counted (LOG-56).
        let Some(pinned) = self.pin.kept_manifest() else { return Ok(None) };
        for number in pinned..self.newest.manifest.version {
            self.requests.manifests += 1;
            let Some(manifest) = read_manifest(&*self.home, number, Duration::ZERO)? else { continue };
            if let NextStream::Listed(after) = stream_after(&self.read, &manifest) {
                return Ok(Some((manifest, after)));
            }
        }
        Ok(None)
    }

    /// Lists the manifests, and reads the newest if it is not known.
    pub(super) fn look(&mut self) -> Result<()> {
        self.requests.manifests += 1;
        let found = ReadManifest::newest(&*self.home, self.newest.manifest.version, Duration::ZERO)?;
        self.looked_us = clock::now().us;
        if let Some(found) = found {
            self.requests.manifests += 1;
            self.put_newest(found)?;
        }
        check_loaded(self.manager.store(), &self.newest.manifest)
    }

    fn put_newest(&mut self, found: ReadManifest) -> Result<()> {
        if found.manifest.database != self.database {
            let message = format!(
                "{} belongs to database {}, and this follower has read {}; open the graph again",
                self.home.describe(&manifest_name(found.manifest.version)),
                found.manifest.database,
                self.database
            );
            return Err(Error::new(ErrorKind::Closed, message));
        }
        self.newest = found;
        let streams = self.newest.streams();
        let floor = |incarnation| streams.iter().find(|s| s.incarnation == incarnation).map(|stream| stream.floor);
        self.uncovered.retain(|(incarnation, seq), _| floor(*incarnation).is_some_and(|floor| *seq >= floor));
        self.read.ends.retain(|incarnation, _| *incarnation == self.read.incarnation || floor(*incarnation).is_some());
        self.name_owner();
        Ok(())
    }

    /// Makes a manifest of this process the newest.
    pub(super) fn claimed(&mut self, manifest: Manifest, bytes: Bytes) -> Result<()> {
        self.put_newest(ReadManifest { manifest, bytes })
    }

    /// Names the owner for clients whose writes are refused.
    fn name_owner(&mut self) {
        let (home, incarnation) = (self.home.describe(""), self.newest.manifest.epoch());
        self.follower.set_owner(&format!("the owner of {home} (its opening number {incarnation})"));
    }

    /// Reads the directories of packs that are not known. If that fails, a later manifest or the promotion makes up for it.
    fn read_directories(&mut self) {
        let number = self.newest.manifest.version;
        if self.directories_of != number {
            let place = HomePlace::new(self.home.clone(), Duration::ZERO);
            self.requests.packs += self.directories.read(&place, &self.newest.manifest).unwrap_or_default();
            self.directories_of = number;
        }
    }

    /// What a take-over needs to know.
    pub(super) fn followed(&self) -> Followed {
        Followed {
            manifest_number: self.newest.manifest.version,
            manifest: self.newest.bytes.clone(),
            read: self.read.clone(),
        }
    }

    fn deleted(&self) -> Error {
        let message = format!(
            "the owner has taken a checkpoint and deleted {}, or objects after it, which this follower has not read; open \
             the graph again to load that checkpoint",
            self.home.describe(&stream_name(self.read.incarnation, self.read.next))
        );
        Error::new(ErrorKind::Closed, message)
    }

    pub(super) fn manager(&self) -> &TransactionManager {
        &self.manager
    }

    pub(super) fn recovery(&self) -> &RecoverySummary<StreamsEnd> {
        &self.recovery
    }

    pub(super) fn database(&self) -> Uuid {
        self.database
    }

    pub(super) fn options(&self) -> &FollowOptions {
        &self.options
    }

    /// Returns true if the stream that was read has ended, and no later one is known.
    pub(super) fn is_between_streams(&self) -> bool {
        self.read.has_ended()
    }

    pub(super) fn write_status(&self, status: &mut FollowStatus) {
        status.state = match self.read.has_ended() && self.is_current {
            true => FollowState::OwnerClosed,
            false => FollowState::Following,
        };
        status.applied_ts = self.follower.applied();
        status.incarnation = self.read.incarnation;
        status.next_object = self.read.next;
        status.manifest = self.newest.manifest.version;
        status.pin = self.pin_state();
        (status.objects, status.bytes, status.commits) = (self.end.objects, self.end.bytes, self.end.commits);
        status.requests = FollowRequests { objects: self.ahead.requests(), ..self.requests };
    }
}

/// The stream after the one that has ended, as a manifest says.
fn stream_after(read: &ReadSoFar, manifest: &Manifest) -> NextStream {
    let streams: Vec<ListedStream> = manifest.streams.iter().map(ManifestStream::listed).collect();
    read.stream_after(&streams, has_checkpoint(manifest))
}

/// Returns true if a manifest has a checkpoint that is not empty.
fn has_checkpoint(manifest: &Manifest) -> bool {
    !manifest.packs.is_empty() || manifest.checkpoint_ts() > 0
}

/// The error for manifests that are deleted faster than they are read.
fn changing(home: &dyn Home) -> Error {
    Error::new(ErrorKind::Io, format!("the manifests in {} change too fast; try again", home.describe(MANIFESTS)))
}

/// Fails if a checkpoint has elements and the store was never written to: then the graph was loaded in bulk (LOG-73), or
/// this follower is far from the owner.
pub(super) fn check_loaded(store: &Store, manifest: &Manifest) -> Result<()> {
    let is_of_pages = |kind: u8| kind == KIND_VERTICES || kind == KIND_EDGES;
    let has_pages = manifest.packs.iter().any(|pack| pack.covers.kinds().any(|(kind, _)| is_of_pages(kind)));
    if has_pages && store.is_empty() {
        let message = "the owner has loaded the graph in bulk, or has taken its first checkpoint, since this follower was \
                       opened; open the graph again to load it";
        return Err(Error::new(ErrorKind::Closed, message));
    }
    Ok(())
}
