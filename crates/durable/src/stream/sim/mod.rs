//! A simulation of owners that pause anywhere, die, take over from each other, checkpoint and collect, and of followers that
//! read their streams and are promoted, over a store that loses requests and answers, delays, doubles and reorders them.
//!
//! One seed is one history. Owners run the code of this module's siblings; store, clients and clocks are simulated.
//! `MANGROVE_FIRST=SEED MANGROVE_CASES=1` runs one seed again. [`ledger`] has what is checked.

mod follower;
mod ledger;
mod manifest;
mod owner;
mod rules;
mod store;
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::format::{Content, decode};
use super::names::{manifest_name, manifest_number, stream_place};
use super::writer::WriterOptions;
use super::{Answer, Now, Rules};
use crate::home::{HomeErrorKind, Put};
use follower::PIN_US;
use ledger::{Checked, Ledger, Violation};
use manifest::SimManifest;
use owner::{Owner, Phase, Purpose, failed};
use rules::FollowRules;
use store::{Ask, Fate, Heard, Hears, SimStore, draw_fate};

const MS: u64 = 1_000;
/// Longer than any request is on its way.
const QUIET_US: u64 = 30_000 * MS;

/// What a simulation varies besides the seed.
#[derive(Clone, Copy, Debug)]
struct Scenario {
    /// Owners at a time at most.
    owners: usize,
    /// Followers at a time at most.
    followers: usize,
    rules: Rules,
    follow: FollowRules,
    /// False: owners delete nothing, to see that the simulation notices.
    collects: bool,
}

/// What happened, in numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Tally {
    events: u64,
    acknowledged: u64,
    reads: u64,
    take_overs: u64,
    fenced: u64,
    manifests: u64,
    objects: u64,
    stalls: u64,
    followers: u64,
    promotions: u64,
    collected: u64,
    found_by_pin: u64,
}

impl Tally {
    fn add(&mut self, other: Tally) {
        for (sum, part) in [
            (&mut self.events, other.events),
            (&mut self.acknowledged, other.acknowledged),
            (&mut self.reads, other.reads),
            (&mut self.take_overs, other.take_overs),
            (&mut self.fenced, other.fenced),
            (&mut self.manifests, other.manifests),
            (&mut self.objects, other.objects),
            (&mut self.stalls, other.stalls),
            (&mut self.followers, other.followers),
            (&mut self.promotions, other.promotions),
            (&mut self.collected, other.collected),
            (&mut self.found_by_pin, other.found_by_pin),
        ] {
            *sum += part;
        }
    }
}

#[derive(Debug)]
enum Event {
    /// The store carries out a request.
    Execute { request: u64, answers: bool },
    /// An owner hears the answer to a request.
    Hear { request: u64 },
    /// The time has come that an owner waits for.
    Wake { owner: usize },
    /// A client's request reaches an owner.
    Commit { owner: usize },
    /// The mark says what was acknowledged when the client sent it.
    Read { owner: usize, mark: Option<usize> },
    /// An owner begins a checkpoint.
    Checkpoint { owner: usize },
    /// An owner closes the graph.
    Finish { owner: usize },
    /// A follower is promoted.
    Promote { owner: usize },
    /// Something happens to an owner, drawn when it happens.
    Incident,
    /// Another owner comes.
    Spawn,
}

#[derive(Debug)]
struct Sent {
    owner: usize,
    purpose: Purpose,
    ask: Ask,
    hears: Hears,
    answer: Option<Heard>,
}

/// An owner with its clock.
#[derive(Debug)]
struct Process {
    owner: Owner,
    is_alive: bool,
    paused_until: u64,
    /// Microseconds that its clock was ahead at the beginning, and how far it goes in a thousand true ones.
    clock_offset: u64,
    clock_rate: u64,
    /// The earliest wake-up that is on its way.
    wake_at: Option<u64>,
    /// How often clients write and read, in microseconds.
    commit_every: u64,
    read_every: u64,
    has_counted_stop: bool,
}

impl Process {
    fn now(&self, time: u64) -> Now {
        Now { us: self.clock_offset + time * self.clock_rate / 1000, unix_us: time }
    }

    /// The first time at which the clock shows at least this.
    fn time_of(&self, us: u64) -> u64 {
        (us.saturating_sub(self.clock_offset) * 1000).div_ceil(self.clock_rate)
    }
}

struct Sim {
    rng: SmallRng,
    scenario: Scenario,
    time: u64,
    /// Events by time; of several at one time, chance decides.
    events: BinaryHeap<Reverse<(u64, u64, u64)>>,
    event_of: BTreeMap<u64, Event>,
    next: u64,
    store: SimStore,
    /// Requests whose owner has heard nothing.
    sent: BTreeMap<u64, Sent>,
    /// All requests: the store may carry them out at any time.
    asks: BTreeMap<u64, Ask>,
    processes: Vec<Process>,
    ledger: Ledger,
    tally: Tally,
    /// Faults among a thousand requests.
    faults: u32,
    /// Until then, the store receives nothing.
    away_until: u64,
    options: WriterOptions,
    /// The last commit of a client.
    last_commit: u64,
    /// The owner that has put each manifest, also if it was deleted since.
    manifests: BTreeMap<u64, u64>,
    /// From here on clients and incidents rest.
    end: u64,
}

/// Runs a seed.
fn run(seed: u64, scenario: Scenario) -> Result<Tally, Violation> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let faults = [0, 20, 80, 250][rng.random_range(0..4)];
    let options = WriterOptions {
        lease_us: [150 * MS, 300 * MS, 1_000 * MS][rng.random_range(0..3)],
        interval_us: [0, 0, 0, 20 * MS][rng.random_range(0..4)],
        puts_per_second: None,
        ..WriterOptions::default()
    };
    let end = rng.random_range(4_000 * MS..16_000 * MS);
    let mut sim = Sim {
        rng,
        scenario,
        time: 0,
        events: BinaryHeap::new(),
        event_of: BTreeMap::new(),
        next: 0,
        store: SimStore::default(),
        sent: BTreeMap::new(),
        asks: BTreeMap::new(),
        processes: Vec::new(),
        ledger: Ledger::default(),
        tally: Tally::default(),
        faults,
        away_until: 0,
        options,
        last_commit: 0,
        manifests: BTreeMap::new(),
        end,
    };
    sim.store.objects.insert(manifest_name(1), SimManifest::default().bytes().into());
    sim.run().map(|()| sim.tally)
}

impl Sim {
    fn run(&mut self) -> Checked {
        self.at(0, Event::Spawn);
        self.at(0, Event::Incident);
        self.run_until(self.end)?;
        // Whatever is on its way arrives, also at owners that slept until now.
        self.faults = 0;
        self.away_until = 0;
        self.processes.iter_mut().for_each(|process| process.paused_until = 0);
        self.run_until(self.end + QUIET_US)?;
        self.check_the_end()
    }

    /// A last owner takes over and collects; then everything is looked at.
    fn check_the_end(&mut self) -> Checked {
        for process in &mut self.processes {
            if let Some(following) = process.owner.as_following() {
                self.ledger.followed(following.read.incarnation, &following.commits, &BTreeSet::new())?;
                self.tally.collected += following.collected;
                self.tally.found_by_pin += following.found_by_pin;
                process.is_alive = false;
            }
        }
        // Their pins end.
        self.run_until(self.time + PIN_US)?;
        let last = self.spawn();
        self.processes[last].commit_every = 100 * MS;
        let begin = self.time;
        while self.processes[last]
            .owner
            .running()
            .is_none_or(|running| running.checkpoints < 3 || running.collections < 6)
        {
            if self.time > begin + QUIET_US {
                return Err(Violation(format!("the last owner is stuck: {:?}", self.processes[last].owner.phase)));
            }
            for number in 0..last {
                // Owners that still believe in themselves learn better when a client comes.
                self.at(self.time, Event::Commit { owner: number });
                self.at(self.time, Event::Read { owner: number, mark: None });
            }
            self.at(self.time, Event::Commit { owner: last });
            self.at(self.time, Event::Read { owner: last, mark: None });
            self.at(self.time + 100 * MS, Event::Checkpoint { owner: last });
            self.run_until(self.time + 1_000 * MS)?;
        }
        self.run_until(self.time + 1_000 * MS)?;
        let older =
            self.processes[..last].iter().position(|process| process.is_alive && process.owner.running().is_some());
        if let Some(older) = older {
            return Err(Violation(format!("owner {older} runs beside the last owner")));
        }
        let last = &self.processes[last].owner;
        let Some(running) = last.running() else { return Err(Violation("the last owner has stopped".into())) };
        let mut recovered = running.recovered.clone();
        recovered.extend(running.own_acknowledged());
        self.ledger.recovered_in_the_end(&recovered)?;
        if let Some(name) = self.store.objects.keys().find(|name| !last.needs(name)) {
            return Err(Violation(format!("{name} was never collected")));
        }
        Ok(())
    }

    fn run_until(&mut self, end: u64) -> Checked {
        while let Some(Reverse((time, _, _))) = self.events.peek().copied() {
            if time > end {
                break;
            }
            let Some(Reverse((time, _, number))) = self.events.pop() else { break };
            self.time = time;
            if let Some(event) = self.event_of.remove(&number) {
                self.tally.events += 1;
                self.happen(event)?;
            }
        }
        self.time = end;
        self.tally.acknowledged = self.ledger.acknowledged_count();
        self.tally.reads = self.ledger.reads;
        self.tally.stalls = self.ledger.stalls;
        Ok(())
    }

    fn at(&mut self, time: u64, event: Event) {
        let number = self.next;
        self.next += 1;
        self.events.push(Reverse((time, self.rng.random(), number)));
        self.event_of.insert(number, event);
    }

    fn happen(&mut self, event: Event) -> Checked {
        let owner = match &event {
            Event::Execute { request, answers } => {
                self.execute(*request, *answers);
                return Ok(());
            }
            Event::Spawn => {
                self.spawn();
                return Ok(());
            }
            Event::Incident => return self.incident(),
            Event::Hear { request } => match self.sent.get(request) {
                Some(sent) => sent.owner,
                None => return Ok(()),
            },
            Event::Wake { owner } | Event::Commit { owner } | Event::Checkpoint { owner } => *owner,
            Event::Read { owner, .. } | Event::Finish { owner } | Event::Promote { owner } => *owner,
        };
        self.reach(owner, event)
    }

    /// An event reaches an owner: at once, or after its pause, or never if it has died.
    fn reach(&mut self, number: usize, event: Event) -> Checked {
        // A read begins when its client sends it.
        let event = match event {
            Event::Read { owner, mark: None } => Event::Read { owner, mark: Some(self.ledger.read_begins()) },
            event => event,
        };
        let process = &mut self.processes[number];
        if !process.is_alive {
            return Ok(());
        }
        if process.paused_until > self.time {
            let time = process.paused_until + self.rng.random_range(0..MS);
            if matches!(event, Event::Wake { .. }) {
                process.wake_at = Some(time);
            }
            self.at(time, event);
            return Ok(());
        }
        let now = process.now(self.time);
        let (owner, ledger) = (&mut process.owner, &mut self.ledger);
        let was_running = owner.running().is_some();
        match event {
            Event::Hear { request } => {
                if let Some(sent) = self.sent.remove(&request) {
                    let heard = match (sent.hears, sent.answer) {
                        (Hears::TrueAnswer, Some(answer)) => answer,
                        (Hears::Conflict, _) => Heard::Answer(Answer::Put(Ok(Put::Taken))),
                        (Hears::Busy, _) => failed(&sent.ask, HomeErrorKind::Unavailable),
                        (Hears::TrueAnswer | Hears::Unknown, _) => failed(&sent.ask, HomeErrorKind::Unknown),
                    };
                    owner.heard(sent.purpose, heard, now, ledger)?;
                }
            }
            Event::Wake { .. } => {
                process.wake_at = None;
                owner.woken(now, ledger)?;
            }
            Event::Commit { .. } => {
                self.last_commit += 1;
                let passes = self.rng.random_range(0..4) > 0;
                owner.commit(self.last_commit, passes, now, ledger)?;
            }
            Event::Read { mark, .. } => owner.read(mark.unwrap_or_default(), now, ledger)?,
            Event::Checkpoint { .. } => owner.begin_checkpoint(),
            Event::Finish { .. } => owner.finish(now, ledger)?,
            Event::Promote { .. } => owner.promote(now, ledger)?,
            Event::Execute { .. } | Event::Incident | Event::Spawn => {}
        }
        for order in owner.take_orders() {
            if order.purpose == Purpose::Collection && matches!(order.ask, Ask::Delete(_)) && !self.scenario.collects {
                continue;
            }
            self.send(number, order.purpose, order.ask);
        }
        self.plan_wake(number);
        if !was_running && self.processes[number].owner.running().is_some() {
            self.tally.take_overs += 1;
            self.begin_load(number);
        }
        self.check_stop(number)
    }

    fn plan_wake(&mut self, number: usize) {
        let process = &mut self.processes[number];
        let Some(at) = process.owner.wake_at_us().map(|us| process.time_of(us).max(self.time)) else { return };
        if process.wake_at.is_none_or(|planned| at < planned) {
            process.wake_at = Some(at);
            self.at(at, Event::Wake { owner: number });
        }
    }

    fn send(&mut self, owner: usize, purpose: Purpose, ask: Ask) {
        let fate = match self.time < self.away_until {
            true => Fate { executions: Vec::new(), heard_after_us: 200 * MS, hears: Hears::Unknown },
            false => draw_fate(&ask, self.faults, &mut self.rng),
        };
        let request = self.next;
        self.next += 1;
        for (nth, after) in fate.executions.iter().enumerate() {
            self.at(self.time + after, Event::Execute { request, answers: nth == 0 });
        }
        self.at(self.time + fate.heard_after_us, Event::Hear { request });
        self.asks.insert(request, ask.clone());
        self.sent.insert(request, Sent { owner, purpose, ask, hears: fate.hears, answer: None });
    }

    fn execute(&mut self, request: u64, answers: bool) {
        let Some(ask) = self.asks.get(&request) else { return };
        let heard = self.store.execute(ask, &mut self.rng);
        if let (Ask::Request(super::Request::PutNew { name, bytes }), Heard::Answer(Answer::Put(Ok(Put::Done)))) =
            (ask, &heard)
        {
            self.tally.objects += 1;
            if let (Some(number), Ok(manifest)) = (manifest_number(name), SimManifest::read(bytes)) {
                self.manifests.insert(number, manifest.owner);
                self.tally.manifests += 1;
            }
        }
        if let Some(sent) = self.sent.get_mut(&request).filter(|_| answers) {
            sent.answer = Some(heard);
        }
    }

    /// An owner that has stopped must have been fenced: by an end of its stream, or by a later manifest.
    fn check_stop(&mut self, number: usize) -> Checked {
        let process = &mut self.processes[number];
        let Phase::Stopped { incarnation, claim } = process.owner.phase else { return Ok(()) };
        if process.has_counted_stop {
            return Ok(());
        }
        process.has_counted_stop = true;
        self.tally.fenced += 1;
        let is_fence = |(name, bytes): (&String, &bytes::Bytes)| {
            stream_place(name).is_some_and(|(stream, _)| stream == incarnation)
                && decode(bytes).is_ok_and(|(header, _)| matches!(header.content, Content::Fence { .. }))
        };
        let is_fenced = self.store.objects.iter().any(is_fence);
        let is_superseded = self.manifests.range(claim + 1..).any(|(_, owner)| *owner != incarnation);
        match is_fenced || is_superseded {
            true => Ok(()),
            false => {
                Err(Violation(format!("incarnation {incarnation} has stopped, although no successor has fenced it")))
            }
        }
    }

    fn spawn(&mut self) -> usize {
        let owner = Owner::new(self.rng.random(), self.options, self.scenario.rules, self.scenario.follow);
        self.add(owner)
    }

    fn spawn_follower(&mut self) {
        self.tally.followers += 1;
        let (seed, options) = (self.rng.random(), self.options);
        let number = self.add(Owner::following(seed, options, self.scenario.rules, self.scenario.follow));
        self.at(self.time, Event::Wake { owner: number });
    }

    fn add(&mut self, owner: Owner) -> usize {
        let process = Process {
            owner,
            is_alive: true,
            paused_until: 0,
            clock_offset: self.rng.random_range(0..10_000 * MS),
            clock_rate: self.rng.random_range(977..=1023),
            wake_at: None,
            commit_every: [3 * MS, 15 * MS, 60 * MS, 400 * MS][self.rng.random_range(0..4)],
            read_every: [10 * MS, 40 * MS, 150 * MS][self.rng.random_range(0..3)],
            has_counted_stop: false,
        };
        self.processes.push(process);
        let number = self.processes.len() - 1;
        let orders = self.processes[number].owner.take_orders();
        for order in orders {
            self.send(number, order.purpose, order.ask);
        }
        number
    }

    /// Clients send requests to an owner that has taken over.
    fn begin_load(&mut self, number: usize) {
        let (commit_every, read_every) = (self.processes[number].commit_every, self.processes[number].read_every);
        let mut at = self.time;
        while at < self.end {
            at += self.rng.random_range(1..2 * commit_every);
            self.at(at, Event::Commit { owner: number });
        }
        let mut at = self.time;
        while at < self.end {
            at += self.rng.random_range(1..2 * read_every);
            self.at(at, Event::Read { owner: number, mark: None });
        }
        let mut at = self.time;
        while at < self.end {
            at += self.rng.random_range(100 * MS..2_000 * MS);
            self.at(at, Event::Checkpoint { owner: number });
        }
    }

    /// A follower comes, pauses, dies, or is promoted.
    fn incident_of_followers(&mut self) {
        if self.scenario.followers == 0 {
            return;
        }
        let followers: Vec<usize> = (0..self.processes.len())
            .filter(|number| self.processes[*number].is_alive && self.processes[*number].owner.as_following().is_some())
            .collect();
        if followers.len() < self.scenario.followers && self.rng.random_range(0..3) == 0 {
            self.spawn_follower();
        }
        if followers.is_empty() {
            return;
        }
        let number = followers[self.rng.random_range(0..followers.len())];
        match self.rng.random_range(0..16) {
            0 => self.processes[number].is_alive = false,
            1 => {
                self.tally.promotions += 1;
                self.at(self.time, Event::Promote { owner: number });
            }
            2..7 => {
                let pause = [20 * MS, 200 * MS, 1_000 * MS, 6_000 * MS][self.rng.random_range(0..4)];
                self.processes[number].paused_until = self.time + self.rng.random_range(0..2 * pause);
            }
            _ => {}
        }
    }

    /// An owner pauses, dies, closes the graph; or another one comes.
    fn incident(&mut self) -> Checked {
        if self.time >= self.end {
            return Ok(());
        }
        let wait = self.rng.random_range(20 * MS..600 * MS);
        self.at(self.time + wait, Event::Incident);
        let alive: Vec<usize> = (0..self.processes.len())
            .filter(|number| {
                let process = &self.processes[*number];
                process.is_alive && matches!(process.owner.phase, Phase::TakingOver(_) | Phase::Running(_))
            })
            .collect();
        self.incident_of_followers();
        if alive.is_empty() || (alive.len() < self.scenario.owners && self.rng.random_range(0..5) == 0) {
            self.spawn();
            return Ok(());
        }
        let number = alive[self.rng.random_range(0..alive.len())];
        match self.rng.random_range(0..20) {
            0 => self.processes[number].is_alive = false,
            1 => self.at(self.time, Event::Finish { owner: number }),
            2..12 => {
                let pause = [20 * MS, 200 * MS, 1_000 * MS, 6_000 * MS][self.rng.random_range(0..4)];
                self.processes[number].paused_until = self.time + self.rng.random_range(0..2 * pause);
            }
            12 => {
                let away = [200 * MS, 2_000 * MS, 8_000 * MS][self.rng.random_range(0..3)];
                self.away_until = self.time + away;
            }
            _ => {}
        }
        Ok(())
    }
}
