//! A simulated owner: a take-over, then the writer of a stream, checkpoints and collection.
//!
//! The owner computes with its own clock. It is a state machine like what it drives: each event returns orders, which
//! the simulation carries out.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::super::fence::{TakeOver, TakeOverStart, TakenOver};
use super::super::format::{END_BYTES_MAX, new_object};
use super::super::manifest_put::{ManifestOutcome, ManifestPut};
use super::super::names::{MANIFESTS, STREAMS, manifest_name, manifest_number, stream_name, stream_place};
use super::super::writer::{Action, HandedOver, ReadPermit, StreamFloor, StreamStart, Writer, WriterOptions};
use super::super::{Answer, Now, Request, Rules, Step};
use super::ledger::{Checked, Ledger, Violation};
use super::manifest::{CommitId, SimManifest, SimManifests, database};
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
    Collection,
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
    /// When waits end, by what waits.
    wakes: BTreeMap<Purpose, u64>,
    orders: Vec<Order>,
}

impl Owner {
    /// An owner that begins to take over. `seed` is different for each.
    pub(super) fn new(seed: u64, options: WriterOptions, rules: Rules) -> Self {
        let start = TakeOverStart {
            node: seed.to_le_bytes().to_vec().into(),
            nonce_seed: nonce_seed(seed),
            lease_us: options.lease_us,
        };
        let (take_over, step) = TakeOver::with_rules(start, SimManifests, rules);
        let phase = Phase::TakingOver(Box::new(take_over));
        let mut owner = Owner { phase, seed, options, rules, wakes: BTreeMap::new(), orders: Vec::new() };
        if let Step::Ask(request) = step {
            owner.order(Purpose::TakeOver, request);
        }
        owner
    }

    /// The requests that were made since the last call.
    pub(super) fn take_orders(&mut self) -> Vec<Order> {
        std::mem::take(&mut self.orders)
    }

    /// When the owner must be woken, by its clock.
    pub(super) fn wake_at_us(&self) -> Option<u64> {
        let writer = match &self.phase {
            Phase::Running(running) => running.writer.wake_at_us(),
            _ => None,
        };
        self.wakes.values().copied().chain(writer).min()
    }

    pub(super) fn running(&self) -> Option<&Running> {
        if let Phase::Running(running) = &self.phase { Some(running) } else { None }
    }

    fn order(&mut self, purpose: Purpose, request: Request) {
        self.orders.push(Order { purpose, ask: Ask::Request(request) });
    }

    /// Takes an answer.
    pub(super) fn heard(&mut self, purpose: Purpose, heard: Heard, now: Now, ledger: &mut Ledger) -> Checked {
        let Heard::Answer(answer) = heard else { return self.after_event(now, ledger) };
        match (&mut self.phase, purpose) {
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
        self.checkpoint_step(step);
    }

    fn take_over_step(&mut self, step: Step<TakenOver>, now: Now, ledger: &mut Ledger) -> Checked {
        match step {
            Step::Ask(request) => self.order(Purpose::TakeOver, request),
            Step::WaitUntil(us) => {
                self.wakes.insert(Purpose::TakeOver, us);
            }
            Step::Failed(error) => return Err(Violation(format!("a take-over has failed: {error}"))),
            Step::Done(taken) => self.run(taken, now, ledger)?,
        }
        Ok(())
    }

    /// Begins to write after a take-over.
    fn run(&mut self, taken: TakenOver, now: Now, ledger: &mut Ledger) -> Checked {
        let recovered = ledger.taken_over(&taken)?;
        let start = StreamStart {
            database: database(),
            incarnation: taken.incarnation,
            nonce_seed: nonce_seed(self.seed),
            durable_ts: recovered.last().copied().unwrap_or_default(),
            held_until_us: taken.held_until_us,
        };
        let (writer, actions) = Writer::with_rules(start, self.options, self.rules, now);
        let running = Running {
            writer,
            incarnation: taken.incarnation,
            claim: taken.manifest_number,
            number: taken.manifest_number,
            manifest: SimManifest::read(&taken.manifest).map_err(|error| Violation(error.to_string()))?,
            ends: taken.tails.iter().map(|tail| (tail.incarnation, tail.end_seq)).collect(),
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
                for directory in [MANIFESTS, STREAMS] {
                    self.order(Purpose::Collection, Request::List { directory: directory.into() });
                }
            }
            Step::Done(ManifestOutcome::Superseded) => {
                let (incarnation, claim) = (running.incarnation, running.claim);
                self.phase = Phase::Stopped { incarnation, claim };
            }
            Step::Failed(_) => {}
        }
    }

    /// Deletes what neither of the newest two manifests needs: G1 and G4 of the design, without packs.
    fn collect(&mut self, names: &[String]) {
        let Phase::Running(running) = &mut self.phase else { return };
        running.collections += 1;
        let floor = running.manifest.streams.get(&running.incarnation).copied().unwrap_or(1);
        let is_garbage = |name: &str| {
            if let Some(number) = manifest_number(name) {
                return number + 1 < running.number;
            }
            match stream_place(name) {
                Some((incarnation, seq)) if incarnation == running.incarnation => seq < floor,
                Some((incarnation, seq)) => match running.manifest.ended.get(&incarnation) {
                    // LOG-57.
                    Some(end_seq) => seq != *end_seq || !self.rules.keeps_ends,
                    None => false,
                },
                None => false,
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

    /// Asks for the reads that wait.
    fn after_event(&mut self, now: Now, ledger: &mut Ledger) -> Checked {
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
            (None, None) => name.starts_with("node/"),
        }
    }
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
