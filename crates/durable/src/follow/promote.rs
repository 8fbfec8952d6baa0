//! From a follower to the owner: the same graph in memory, with a log and checkpoints of its own.

use std::fmt;

use mangrove_graph::{Error, ErrorKind, Result};
use mangrove_store::Store;

use super::FollowingHome;
use super::tail::{Found, Tail, check_loaded};
use crate::checkpoint::home::HomePlace;
use crate::durable_home::{DurableHome, OwnedGraph, take_over_start};
use crate::manifest::{HomeManifests, Manifest};
use crate::recovery::RecoverySummary;
use crate::stream::fence::{ManifestView, Manifests, TakenOver};
use crate::stream::format::{Content, open};
use crate::stream::names::stream_name;
use crate::stream::tails::StreamsEnd;
use crate::stream::take_over::take_over_followed;

/// How often a follower reads on because the owner has taken a checkpoint meanwhile.
const ATTEMPTS: u32 = 5;
/// Objects that are redone before the claim at most. The rest is redone after it.
const OBJECTS_BEFORE: u32 = 10_000;

/// A promotion that failed.
#[derive(Debug)]
pub struct PromotionError {
    /// Why. If the kind is `Closed`, the follower must be opened again, or the graph be opened by its owner-to-be.
    pub error: Error,
    /// The follower, which goes on; absent if it is lost, and the graph must be opened again.
    pub following: Option<Box<FollowingHome>>,
}

impl fmt::Display for PromotionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for PromotionError {}

/// The layout of manifests, for the take-over by a follower with this store.
#[derive(Clone, Copy, Debug)]
struct FollowedManifests<'a> {
    manifests: HomeManifests<'a>,
    store: &'a Store,
}

impl Manifests for FollowedManifests<'_> {
    fn view(&self, number: u64, manifest: &[u8]) -> Result<ManifestView> {
        self.manifests.view(number, manifest)
    }

    fn claim(&self, number: u64, parent: &[u8], incarnation: u64) -> Result<Vec<u8>> {
        // LOG-73.
        check_loaded(self.store, &Manifest::of_object(self.manifests.home, number, parent)?)?;
        self.manifests.claim(number, parent, incarnation)
    }
}

impl Tail {
    /// Takes the graph over, and redoes what is left of the streams. After an error it can go on following, and try again:
    /// the owner at that time has ended all earlier streams.
    pub(super) fn take_over(&mut self) -> Result<OwnedGraph> {
        let options = self.options.graph.clone();
        let mut attempt = 1;
        let taken = loop {
            if !self.is_current {
                self.read_on()?;
            }
            let store = self.manager.store().clone();
            let manifests = FollowedManifests { manifests: HomeManifests { home: &*self.home }, store: &store };
            let start = take_over_start(&options.log);
            match take_over_followed(&*self.home, start, manifests, self.followed(), options.patience) {
                // LOG-70.
                Err(error) if error.kind() == ErrorKind::Closed && attempt < ATTEMPTS => {
                    attempt += 1;
                    self.is_current = false;
                    self.look()?;
                }
                taken => break taken?,
            }
        };
        self.is_current = false;
        let TakenOver { database, incarnation, manifest_number, manifest: bytes, tails, held_until_us } = taken;
        for tail in &tails {
            let first = tail.end_seq - tail.objects.len() as u64;
            for (object, seq) in tail.objects.iter().zip(first..) {
                let name = self.home.describe(&stream_name(tail.incarnation, seq));
                let (header, _) = open(object).map_err(|error| error.of(&name))?;
                if let Content::Records(batch) = header.content {
                    self.redo(tail.incarnation, seq, object, batch.through)?;
                }
            }
            (self.read.incarnation, self.read.next) = (tail.incarnation, tail.end_seq);
            self.read.ends.insert(tail.incarnation, (tail.end_seq, tail.end));
        }
        let manifest = Manifest::of_object(&*self.home, manifest_number, &bytes)?;
        self.claimed(manifest.clone(), bytes)?;
        let place = HomePlace::new(self.home.clone(), options.patience);
        self.directories.read(&place, &manifest)?;
        self.learn_names()?;
        let checkpoint_ts = manifest.checkpoint_ts();
        // The checkpoint may be later than the last commit, if transactions have aborted in between.
        self.follower.pass(checkpoint_ts);
        let checkpoints = self.directories.checkpoints(&place, manifest, self.manager.store())?;
        let summary = RecoverySummary {
            checkpoint_ts,
            commits_replayed: self.end.commits,
            last_ts: self.follower.applied(),
            log: StreamsEnd { bytes: self.uncovered.values().sum(), ..self.end },
            ..self.recovery.clone()
        };
        let names = self.names;
        Ok(OwnedGraph { place, database, incarnation, held_until_us, tails, checkpoints, names, summary })
    }

    /// Redoes what the home has, so that little is left after the claim.
    fn read_on(&mut self) -> Result<()> {
        for _ in 0..OBJECTS_BEFORE {
            if self.step()? == Found::Nothing {
                break;
            }
        }
        Ok(())
    }

    /// Begins the life of an owner.
    pub(super) fn own(self: Box<Self>, owned: OwnedGraph) -> Result<DurableHome> {
        let Tail { options, manager, follower, .. } = *self;
        let store = manager.store().clone();
        DurableHome::begin(owned, store, &options.graph, |log, _, loaded| {
            manager.after_load(loaded);
            follower.own(Some(log));
            manager
        })
    }
}
