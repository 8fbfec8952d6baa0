//! A simulated owner: a take-over, perhaps after it has followed others; then the writer of a stream, checkpoints and
//! collection.
//!
//! The owner computes with its own clock. It is a state machine like what it drives: each event returns orders, which
//! the simulation carries out.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use mangrove_graph::ErrorKind;

use super::super::fence::{TakeOver, TakeOverStart, TakenOver};
use super::super::format::{END_BYTES_MAX, new_object};
use super::super::manifest_put::{ManifestOutcome, ManifestPut};
use super::super::names::{MANIFESTS, STREAMS, manifest_name, manifest_number, stream_name, stream_place};
use super::super::writer::{Action, HandedOver, ReadPermit, StreamFloor, StreamStart, Writer, WriterOptions};
use super::super::{Answer, Now, Request, Rules, Step};
use super::follower::{Following, PINS, pin_of};
use super::ledger::{Checked, Ledger, Violation};
use super::manifest::{CommitId, SimManifest, SimManifests, database};
use super::rules::FollowRules;
use super::store::{Ask, Heard};
use crate::home::settle::{Settle, SettleStep};
use crate::home::{HomeError, HomeErrorKind};

/// Reads that wait at an owner.
const READS_MAX: usize = 8;

/// What a request was for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Purpose {
    TakeOver,
    /// The put of an object of the own stream.
    Object(u64),
    Checkpoint,
    Probe,
    /// The list of pins, and the one of them that is read, in a collection of this number.
    Pins(u64),
    Pin(u64),
    /// The manifest from which everything is kept.
    Kept(u64),
    Collection,
    /// The request of a follower of this number, and the deletion of a pin.
    Follow(u64),
    NeedlessPin,
}

/// A request that the owner sends.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) purpose: Purpose,
    pub(super) ask: Ask,
}

#[derive(Debug)]
struct Checkpoint {
    put: ManifestPut,
    manifest: SimManifest,
}

/// The pins that a collector reads.
#[derive(Debug, Default)]
struct PinsRead {
    /// Counts the lists. An answer that belongs to an earlier one comes too late.
    list: u64,
    /// Those that were listed and not read yet.
    left: Vec<String>,
    /// When they were listed, in microseconds since 1970.
    listed_us: u64,
    /// The manifests of those that were read and have not ended.
    live: BTreeSet<u64>,
}

/// An owner after its take-over.
#[derive(Debug)]
pub(super) struct Running {
    writer: Writer,
    pub(super) incarnation: u64,
    /// The number of the manifest by which it claimed the graph.
    claim: u64,
    /// The number of its newest manifest.
    number: u64,
    manifest: SimManifest,
    /// The end of each stream that it has taken over.
    ends: BTreeMap<u64, u64>,
    pub(super) recovered: BTreeSet<CommitId>,
    /// Its own commits, and those of them that are acknowledged.
    own: BTreeSet<CommitId>,
    own_acknowledged: BTreeSet<CommitId>,
    settles: BTreeMap<u64, Settle>,
    checkpoint: Option<Checkpoint>,
    /// The marks of reads that wait.
    reads: Vec<usize>,
    pins: PinsRead,
    /// The manifest from which everything is kept, and its number.
    kept: (u64, SimManifest),
    pub(super) collections: u32,
    pub(super) checkpoints: u32,
}

impl Running {
    pub(super) fn own_acknowledged(&self) -> &BTreeSet<CommitId> {
        &self.own_acknowledged
    }
}

#[derive(Debug)]
pub(super) enum Phase {
    Following(Box<Following>),
    TakingOver(Box<TakeOver<SimManifests>>),
    Running(Box<Running>),
    /// It has stopped because it was fenced or superseded. The incarnation and the claim tell whether it was right.
    Stopped {
        incarnation: u64,
        claim: u64,
    },
    Finished,
}

#[derive(Debug)]
pub(super) struct Owner {
    pub(super) phase: Phase,
    seed: u64,
    options: WriterOptions,
    rules: Rules,
    follow: FollowRules,
    /// What it was before it began to take over.
    followed: Option<Box<Following>>,
    /// The time of the last event, in microseconds since 1970.
    unix_us: u64,
    /// When waits end, by what waits.
    wakes: BTreeMap<Purpose, u64>,
    orders: Vec<Order>,
}

impl Owner {
    /// An owner that begins to take over. `seed` is different for each.
    pub(super) fn new(seed: u64, options: WriterOptions, rules: Rules, follow: FollowRules) -> Self {
        let (take_over, step) = TakeOver::with_rules(start(seed, options), SimManifests::default(), rules);
        let phase = Phase::TakingOver(Box::new(take_over));
        let (wakes, orders, followed) = (BTreeMap::new(), Vec::new(), None);
        let mut owner = Owner { phase, seed, options, rules, follow, followed, unix_us: 0, wakes, orders };
        if let Step::Ask(request) = step {
            owner.order(Purpose::TakeOver, request);
        }
        owner
    }

    /// A follower, which becomes an owner when it is promoted.
    pub(super) fn following(seed: u64, options: WriterOptions, rules: Rules, follow: FollowRules) -> Self {
        let phase = Phase::Following(Box::new(Following::new(seed, follow)));
        let (wakes, orders, followed) = (BTreeMap::new(), Vec::new(), None);
        Owner { phase, seed, options, rules, follow, followed, unix_us: 0, wakes, orders }
    }

    /// Promotes a follower. Does nothing before it is open.
    pub(super) fn promote(&mut self, now: Now, ledger: &mut Ledger) -> Checked {
        let Phase::Following(following) = &self.phase else { return Ok(()) };
        let Some(followed) = following.followed() else { return Ok(()) };
        let start = start(self.seed, self.options);
        let has_nothing = following.commits.is_empty();
        let (take_over, step) = TakeOver::of_follower(start, SimManifests { has_nothing }, followed, now.us);
        if let Phase::Following(following) = std::mem::replace(&mut self.phase, Phase::TakingOver(Box::new(take_over)))
        {
            self.followed = Some(following);
        }
        self.take_over_step(step, now, ledger)
    }

    /// The requests that were made since the last call.
    pub(super) fn take_orders(&mut self) -> Vec<Order> {
        std::mem::take(&mut self.orders)
    }

    /// When the owner must be woken, by its clock.
    pub(super) fn wake_at_us(&self) -> Option<u64> {
        let own = match &self.phase {
            Phase::Running(running) => running.writer.wake_at_us(),
            Phase::Following(following) => following.pause_until,
            _ => None,
        };
        self.wakes.values().copied().chain(own).min()
    }

    pub(super) fn running(&self) -> Option<&Running> {
        if let Phase::Running(running) = &self.phase { Some(running) } else { None }
    }

    pub(super) fn as_following(&self) -> Option<&Following> {
        if let Phase::Following(following) = &self.phase { Some(following) } else { None }
    }

    fn order(&mut self, purpose: Purpose, request: Request) {
        self.orders.push(Order { purpose, ask: Ask::Request(request) });
    }

    /// Takes an answer.
    pub(super) fn heard(&mut self, purpose: Purpose, heard: Heard, now: Now, ledger: &mut Ledger) -> Checked {
        self.unix_us = now.unix_us;
        let Heard::Answer(answer) = heard else { return self.after_event(now, ledger) };
        match (&mut self.phase, purpose) {
            (Phase::Following(following), Purpose::Follow(number)) if number == following.requests => {
                following.answered(answer, now, ledger)?;
            }
            (Phase::TakingOver(take_over), Purpose::TakeOver) => {
                let step = take_over.answered(answer, now.us);
                self.take_over_step(step, now, ledger)?;
            }
            (Phase::Running(running), Purpose::Object(seq)) => {
                let Some(settle) = running.settles.get_mut(&seq) else { return Ok(()) };
                let step = match answer {
                    Answer::Put(answer) => {
                        if let Err(error) = &answer {
                            running.writer.troubled(seq, error.message());
                        }
                        settle.put_answered(&answer, now.us)
                    }
                    Answer::Read(answer) => settle.read_answered(answer, now.us),
                    Answer::List(_) => return Ok(()),
                };
                self.object_step(seq, step, now, ledger)?;
            }
            (Phase::Running(running), Purpose::Checkpoint) => {
                if let Some(checkpoint) = &mut running.checkpoint {
                    let step = checkpoint.put.answered(answer, now.us);
                    self.checkpoint_step(step);
                }
            }
            (Phase::Running(running), Purpose::Probe) => {
                if let Answer::Read(answer) = answer {
                    let actions = running.writer.probed(&answer, now);
                    self.act(actions, now, ledger)?;
                }
            }
            (Phase::Running(running), Purpose::Pins(list) | Purpose::Pin(list) | Purpose::Kept(list))
                if list == running.pins.list =>
            {
                self.pins_answered(purpose, answer)?
            }
            (Phase::Running(_), Purpose::Collection) => {
                if let Answer::List(Ok(names)) = answer {
                    self.collect(&names);
                }
            }
            (_, _) => {}
        }
        self.after_event(now, ledger)
    }

    /// Does what the time allows.
    pub(super) fn woken(&mut self, now: Now, ledger: &mut Ledger) -> Checked {
        let due: Vec<Purpose> =
            self.wakes.iter().filter(|(_, at)| **at <= now.us).map(|(purpose, _)| *purpose).collect();
        for purpose in due {
            self.wakes.remove(&purpose);
            match (&mut self.phase, purpose) {
                (Phase::TakingOver(take_over), Purpose::TakeOver) => {
                    let step = take_over.resumed(now.us);
                    self.take_over_step(step, now, ledger)?;
                }
                (Phase::Running(running), Purpose::Object(seq)) => {
                    if let Some(step) = running.settles.get_mut(&seq).map(Settle::resumed) {
                        self.object_step(seq, step, now, ledger)?;
                    }
                }
                (Phase::Running(running), Purpose::Checkpoint) => {
                    if let Some(step) = running.checkpoint.as_mut().map(|checkpoint| checkpoint.put.resumed()) {
                        self.checkpoint_step(step);
                    }
                }
                (_, _) => {}
            }
        }
        if let Phase::Running(running) = &mut self.phase {
            let actions = running.writer.time(now);
            self.act(actions, now, ledger)?;
        }
        self.after_event(now, ledger)
    }

    /// A client commits. `passes` says whether the watermark passes the commit at once.
    pub(super) fn commit(&mut self, id: CommitId, passes: bool, now: Now, ledger: &mut Ledger) -> Checked {
        let Phase::Running(running) = &mut self.phase else { return Ok(()) };
        if running.writer.admit(now).is_err() {
            return Ok(());
        }
        ledger.made(id);
        running.own.insert(id);
        let commit = HandedOver { ts: id, tablets: Vec::new(), records: id.to_le_bytes().into() };
        let mut actions = running.writer.hand_over(commit, now);
        if passes {
            actions.extend(running.writer.watermark(id, now));
        }
        self.act(actions, now, ledger)?;
        self.after_event(now, ledger)
    }

    /// A client reads. `mark` is from the time at which it sent its request.
    pub(super) fn read(&mut self, mark: usize, now: Now, ledger: &mut Ledger) -> Checked {
        if let Phase::Running(running) = &mut self.phase
            && running.reads.len() < READS_MAX
        {
            running.reads.push(mark);
        }
        self.after_event(now, ledger)
    }

    /// The owner closes the graph.
    pub(super) fn finish(&mut self, now: Now, ledger: &mut Ledger) -> Checked {
        if let Phase::Running(running) = &mut self.phase {
            let last = running.own.last().copied().unwrap_or_default();
            let mut actions = running.writer.watermark(last, now);
            actions.extend(running.writer.finish(now));
            self.act(actions, now, ledger)?;
        }
        Ok(())
    }

    /// Begins a checkpoint: a manifest that covers all commits before the floor of the stream.
    pub(super) fn begin_checkpoint(&mut self) {
        let Phase::Running(running) = &mut self.phase else { return };
        if running.checkpoint.is_some() {
            return;
        }
        let StreamFloor { seq, through } = running.writer.floor();
        let mut manifest = running.manifest.clone();
        manifest.owner = running.incarnation;
        manifest.streams = [(running.incarnation, seq)].into();
        manifest.ended.extend(&running.ends);
        manifest.covered = running.recovered.clone();
        manifest.covered.extend(running.own.range(..=through));
        let bytes: Bytes = manifest.bytes().into();
        let (put, step) = ManifestPut::with_rules(running.number + 1, bytes, self.rules);
        running.checkpoint = Some(Checkpoint { put, manifest });
        if !self.follow.lists_pins_when_counted {
            self.list_pins();
        }
        self.checkpoint_step(step);
    }

    fn take_over_step(&mut self, step: Step<TakenOver>, now: Now, ledger: &mut Ledger) -> Checked {
        match step {
            Step::Ask(request) => self.order(Purpose::TakeOver, request),
            Step::WaitUntil(us) => {
                self.wakes.insert(Purpose::TakeOver, us);
            }
            Step::Failed(error) => match self.followed.take() {
                // LOG-70: it goes on following.
                Some(mut following) if error.kind() == ErrorKind::Closed => {
                    following.go_on();
                    self.phase = Phase::Following(following);
                }
                _ => return Err(Violation(format!("a take-over has failed: {error}"))),
            },
            Step::Done(taken) => self.run(taken, now, ledger)?,
        }
        Ok(())
    }

    /// Begins to write after a take-over.
    fn run(&mut self, taken: TakenOver, now: Now, ledger: &mut Ledger) -> Checked {
        let mut followed = self.followed.take();
        let recovered = ledger.taken_over(&taken, followed.as_ref().map(|following| &following.commits))?;
        let known_ends = followed.iter().flat_map(|following| &following.read.ends);
        let known_ends: Vec<(u64, u64)> = known_ends.map(|(incarnation, (seq, _))| (*incarnation, *seq)).collect();
        if let Some(following) = &mut followed {
            following.give_up_pin();
            self.delete_pins(std::mem::take(&mut following.needless));
        }
        let start = StreamStart {
            database: database(),
            incarnation: taken.incarnation,
            nonce_seed: nonce_seed(self.seed),
            durable_ts: recovered.last().copied().unwrap_or_default(),
            held_until_us: taken.held_until_us,
        };
        let (writer, actions) = Writer::with_rules(start, self.options, self.rules, now);
        let manifest = SimManifest::read(&taken.manifest).map_err(|error| Violation(error.to_string()))?;
        let running = Running {
            writer,
            incarnation: taken.incarnation,
            claim: taken.manifest_number,
            number: taken.manifest_number,
            pins: PinsRead::default(),
            kept: (taken.manifest_number, manifest.clone()),
            manifest,
            ends: known_ends
                .into_iter()
                .chain(taken.tails.iter().map(|tail| (tail.incarnation, tail.end_seq)))
                .collect(),
            recovered,
            own: BTreeSet::new(),
            own_acknowledged: BTreeSet::new(),
            settles: BTreeMap::new(),
            checkpoint: None,
            reads: Vec::new(),
            collections: 0,
            checkpoints: 0,
        };
        self.phase = Phase::Running(Box::new(running));
        self.act(actions, now, ledger)
    }

    fn object_step(&mut self, seq: u64, step: SettleStep, now: Now, ledger: &mut Ledger) -> Checked {
        let Phase::Running(running) = &mut self.phase else { return Ok(()) };
        let name = stream_name(running.incarnation, seq);
        match step {
            SettleStep::Put(bytes) => self.order(Purpose::Object(seq), Request::PutNew { name, bytes }),
            SettleStep::Read { bytes_max } => self.order(Purpose::Object(seq), Request::Read { name, bytes_max }),
            SettleStep::WaitUntil(us) => {
                self.wakes.insert(Purpose::Object(seq), us);
            }
            SettleStep::Settled(settled) => {
                running.settles.remove(&seq);
                let actions = running.writer.settled(seq, &settled, now);
                self.act(actions, now, ledger)?;
            }
        }
        Ok(())
    }

    fn checkpoint_step(&mut self, step: Step<ManifestOutcome>) {
        let Phase::Running(running) = &mut self.phase else { return };
        match step {
            Step::Ask(request) => self.order(Purpose::Checkpoint, request),
            Step::WaitUntil(us) => {
                self.wakes.insert(Purpose::Checkpoint, us);
            }
            Step::Done(ManifestOutcome::Counts) => {
                if let Some(checkpoint) = running.checkpoint.take() {
                    running.number += 1;
                    running.manifest = checkpoint.manifest;
                    running.checkpoints += 1;
                }
                match self.follow.lists_pins_when_counted {
                    true => self.list_pins(),
                    false => self.choose_kept(),
                }
            }
            Step::Done(ManifestOutcome::Superseded) => {
                let (incarnation, claim) = (running.incarnation, running.claim);
                self.phase = Phase::Stopped { incarnation, claim };
            }
            Step::Failed(_) => {}
        }
    }

    fn list_pins(&mut self) {
        let Phase::Running(running) = &mut self.phase else { return };
        running.pins.list += 1;
        running.pins.listed_us = self.unix_us;
        let purpose = Purpose::Pins(running.pins.list);
        self.order(purpose, Request::List { directory: PINS.into() });
    }

    /// Reads the pins one after the other, then the oldest manifest that is kept. What fails is left to the next
    /// checkpoint.
    fn pins_answered(&mut self, purpose: Purpose, answer: Answer) -> Checked {
        let Phase::Running(running) = &mut self.phase else { return Ok(()) };
        match (purpose, answer) {
            (Purpose::Pins(_), Answer::List(Ok(names))) => {
                running.pins.left = names;
                running.pins.live.clear();
            }
            (Purpose::Pin(_), Answer::Read(Ok(Some(bytes)))) => {
                if let Some((manifest, until)) = pin_of(&bytes)
                    && until > running.pins.listed_us
                {
                    running.pins.live.insert(manifest);
                }
            }
            // LOG-76.
            (Purpose::Pin(_), Answer::Read(Ok(None))) if self.follow.lists_pins_again => {
                self.list_pins();
                return Ok(());
            }
            (Purpose::Pin(_), Answer::Read(Ok(None))) => {}
            (Purpose::Kept(_), Answer::Read(Ok(Some(bytes)))) => {
                let manifest = SimManifest::read(&bytes).map_err(|error| Violation(error.to_string()))?;
                running.kept.1 = manifest;
                self.list_to_collect();
                return Ok(());
            }
            // The pin of a manifest that is gone came too late, and its reader learns that (LOG-81).
            (Purpose::Kept(_), Answer::Read(Ok(None))) => {
                running.pins.live.remove(&running.kept.0);
                self.choose_kept();
                return Ok(());
            }
            _ => return Ok(()),
        }
        match running.pins.left.pop() {
            Some(name) => {
                let purpose = Purpose::Pin(running.pins.list);
                self.order(purpose, Request::Read { name, bytes_max: None });
            }
            None if self.follow.lists_pins_when_counted => self.choose_kept(),
            None => {}
        }
        Ok(())
    }

    /// Chooses the manifest from which everything is kept: the newest one, or one that is pinned.
    fn choose_kept(&mut self) {
        let Phase::Running(running) = &mut self.phase else { return };
        let pinned = running.pins.live.first().copied().filter(|pinned| *pinned < running.number);
        match pinned {
            Some(number) => {
                running.kept.0 = number;
                let purpose = Purpose::Kept(running.pins.list);
                self.order(purpose, Request::Read { name: manifest_name(number), bytes_max: None });
            }
            None => {
                running.kept = (running.number, running.manifest.clone());
                self.list_to_collect();
            }
        }
    }

    fn list_to_collect(&mut self) {
        for directory in [MANIFESTS, STREAMS] {
            self.order(Purpose::Collection, Request::List { directory: directory.into() });
        }
    }

    fn delete_pins(&mut self, names: Vec<String>) {
        let deletions = names.into_iter().map(|name| Order { purpose: Purpose::NeedlessPin, ask: Ask::Delete(name) });
        self.orders.extend(deletions);
    }

    /// Deletes what neither the newest two manifests nor those from the oldest pinned one on need: G1 and G4 of the
    /// design, without packs.
    fn collect(&mut self, names: &[String]) {
        let Phase::Running(running) = &mut self.phase else { return };
        running.collections += 1;
        let (number, kept) = &running.kept;
        let is_garbage = |name: &str| {
            if let Some(found) = manifest_number(name) {
                return found < *number && found + 1 < running.number;
            }
            let Some((incarnation, seq)) = stream_place(name) else { return false };
            match (kept.streams.get(&incarnation), kept.ended.get(&incarnation)) {
                (Some(floor), _) => seq < *floor,
                // LOG-57.
                (None, Some(end_seq)) => seq != *end_seq || !self.rules.keeps_ends,
                (None, None) => false,
            }
        };
        for name in names.iter().filter(|name| is_garbage(name)) {
            self.orders.push(Order { purpose: Purpose::Collection, ask: Ask::Delete(name.clone()) });
        }
    }

    fn act(&mut self, actions: Vec<Action>, now: Now, ledger: &mut Ledger) -> Checked {
        for action in actions {
            let Phase::Running(running) = &mut self.phase else { return Ok(()) };
            match action {
                Action::Put { seq, bytes, .. } => {
                    let (settle, first) = Settle::with_rules(new_object(bytes), self.rules.settle);
                    running.settles.insert(seq, settle);
                    self.object_step(seq, first, now, ledger)?;
                }
                Action::Probe { name } => {
                    let bytes_max = Some(END_BYTES_MAX);
                    self.order(Purpose::Probe, Request::Read { name, bytes_max });
                }
                Action::Acknowledge { through, .. } => {
                    let commits: Vec<CommitId> = running
                        .own
                        .range(..=through)
                        .filter(|id| !running.own_acknowledged.contains(id))
                        .copied()
                        .collect();
                    running.own_acknowledged.extend(&commits);
                    ledger.acknowledge(running.claim, commits.into_iter())?;
                }
                Action::Stall => ledger.stalls += 1,
                Action::Resume => {}
                Action::Stop { .. } => {
                    let (incarnation, claim) = (running.incarnation, running.claim);
                    self.phase = Phase::Stopped { incarnation, claim };
                }
                Action::Finish => self.phase = Phase::Finished,
            }
        }
        Ok(())
    }

    /// Asks for the reads that wait, or sends what a follower wants.
    fn after_event(&mut self, now: Now, ledger: &mut Ledger) -> Checked {
        if let Phase::Following(following) = &mut self.phase {
            let (request, needless) = (following.request(now), std::mem::take(&mut following.needless));
            let number = following.requests;
            request.into_iter().for_each(|request| self.order(Purpose::Follow(number), request));
            self.delete_pins(needless);
            return Ok(());
        }
        let Phase::Running(running) = &mut self.phase else { return Ok(()) };
        let reads = std::mem::take(&mut running.reads);
        for mark in reads {
            let Phase::Running(running) = &mut self.phase else { return Ok(()) };
            let (permit, actions) = running.writer.ask_to_read(now);
            match permit {
                ReadPermit::Granted => ledger.read_served(running.claim, mark, &running.own_acknowledged)?,
                ReadPermit::Later(_) => running.reads.push(mark),
                ReadPermit::Never => {}
            }
            self.act(actions, now, ledger)?;
        }
        Ok(())
    }

    /// The names that must exist when everything else was collected: manifests, and the own stream.
    pub(super) fn needs(&self, name: &str) -> bool {
        let Some(running) = self.running() else { return false };
        match (manifest_number(name), stream_place(name)) {
            (Some(_), _) => name == manifest_name(running.number) || name == manifest_name(running.number - 1),
            (_, Some((incarnation, seq))) if incarnation == running.incarnation => {
                running.manifest.streams.get(&incarnation).is_some_and(|floor| seq >= *floor)
            }
            (_, Some((incarnation, seq))) => running.manifest.ended.get(&incarnation) == Some(&seq),
            // A pin of a follower that has died ends with its time, and stays.
            (None, None) => name.starts_with("node/") || name.starts_with(PINS),
        }
    }
}

fn start(seed: u64, options: WriterOptions) -> TakeOverStart {
    TakeOverStart { node: seed.to_le_bytes().to_vec().into(), nonce_seed: nonce_seed(seed), lease_us: options.lease_us }
}

fn nonce_seed(seed: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8..].copy_from_slice(&(!seed).to_le_bytes());
    bytes
}

/// The answer to a request that failed in this way.
pub(super) fn failed(ask: &Ask, kind: HomeErrorKind) -> Heard {
    let error = HomeError::new(kind, format!("the request was {kind:?}"));
    Heard::Answer(match ask {
        Ask::Delete(_) => return Heard::Deleted,
        Ask::Request(Request::PutNew { .. }) => Answer::Put(Err(error)),
        Ask::Request(Request::Read { .. }) => Answer::Read(Err(error)),
        Ask::Request(Request::List { .. }) => Answer::List(Err(error)),
    })
}
