//! A simulated follower: it pins a manifest, reads streams object by object, and can be promoted.
//!
//! How far it has read and which stream comes next are those of [`ReadSoFar`], as for every follower. Its pin follows the
//! rules of `crate::pin` and `crate::follow`. The graph is a set of commits.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::super::fence::Followed;
use super::super::format::Content;
use super::super::names::{MANIFESTS, manifest_name, manifest_number, stream_name};
use super::super::next_object::{ListedStream, NextStream, ReadSoFar, StreamEnd};
use super::super::{Answer, Now, Request};
use super::ledger::{Checked, Ledger, Violation, commits_of};
use super::manifest::{CommitId, SimManifest, database};
use super::rules::FollowRules;
use crate::home::Put;

const MS: u64 = 1_000;
/// The directory of pins.
pub(super) const PINS: &str = "pin";
/// How long a pin holds that is not renewed.
pub(super) const PIN_US: u64 = 3_000 * MS;
/// The pause after a request that failed, and after a look for the next object that found none.
const PAUSE_US: u64 = 40 * MS;
/// The time between two looks at the manifests.
const LOOK_US: u64 = 300 * MS;

/// A pin as an object: the manifest, and when it ends.
pub(super) fn pin_of(bytes: &[u8]) -> Option<(u64, u64)> {
    let (manifest, until) = std::str::from_utf8(bytes).ok()?.split_once(' ')?;
    Some((manifest.parse().ok()?, until.parse().ok()?))
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct HeldPin {
    name: String,
    manifest: u64,
    until: u64,
}

/// What the follower waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Waiting {
    /// Opening: the manifests, the newest one, the put of its pin, and the manifests again.
    List,
    Newest(u64),
    FirstPin(HeldPin),
    ListAgain,
    /// The next object.
    Object,
    /// The object after the next one, which is not there. Only a broken rule asks for it.
    ObjectBeyond,
    /// The next object, which must be there if it was not deleted.
    ObjectBefore,
    /// The manifests, and the newest one.
    Look,
    LookAt(u64),
    /// A manifest that may list the stream that has ended.
    Earlier(u64),
    /// The put of a later pin.
    NextPin(HeldPin),
}

/// A follower.
#[derive(Debug)]
pub(super) struct Following {
    rules: FollowRules,
    waiting: Waiting,
    /// What is sent next, perhaps after a pause.
    pending: Option<Request>,
    /// Requests that were sent. An answer to another one than the last comes too late.
    pub(super) requests: u64,
    /// When the pause ends, by the follower's clock.
    pub(super) pause_until: Option<u64>,
    /// Pins to be deleted.
    pub(super) needless: Vec<String>,
    pin: Option<HeldPin>,
    /// True while the pin has held since it was put, so that nothing may be deleted that was not read.
    is_sure: bool,
    /// True once it has the checkpoint of a manifest.
    is_open: bool,
    pins: u64,
    seed: u64,
    number: u64,
    bytes: Bytes,
    manifest: SimManifest,
    pub(super) read: ReadSoFar,
    pub(super) commits: BTreeSet<CommitId>,
    looked_us: u64,
    /// How often it was told that what it needs is deleted, and how often its pin made it find a stream.
    pub(super) collected: u64,
    pub(super) found_by_pin: u64,
}

impl Following {
    pub(super) fn new(seed: u64, rules: FollowRules) -> Self {
        Following {
            rules,
            waiting: Waiting::List,
            pending: Some(list()),
            requests: 0,
            pause_until: None,
            needless: Vec::new(),
            pin: None,
            is_sure: false,
            is_open: false,
            pins: 0,
            seed,
            number: 0,
            bytes: Bytes::new(),
            manifest: SimManifest::default(),
            read: ReadSoFar::default(),
            commits: BTreeSet::new(),
            looked_us: 0,
            collected: 0,
            found_by_pin: 0,
        }
    }

    /// The request that is to be sent, if it is time.
    pub(super) fn request(&mut self, now: Now) -> Option<Request> {
        if self.pause_until.is_some_and(|until| until > now.us) {
            return None;
        }
        self.pause_until = None;
        self.requests += u64::from(self.pending.is_some());
        self.pending.take()
    }

    /// What a take-over needs to know; `None` if it is not open.
    pub(super) fn followed(&self) -> Option<Followed> {
        self.is_open.then(|| Followed {
            manifest_number: self.number,
            manifest: self.bytes.clone(),
            read: self.read.clone(),
        })
    }

    /// The pin goes when the follower ends.
    pub(super) fn give_up_pin(&mut self) {
        self.needless.extend(self.pin.take().map(|pin| pin.name));
    }

    fn ask(&mut self, waiting: Waiting, request: Request) {
        (self.waiting, self.pending) = (waiting, Some(request));
    }

    fn ask_after_pause(&mut self, waiting: Waiting, request: Request, now: Now) {
        self.ask(waiting, request);
        self.pause_until = Some(now.us + PAUSE_US);
    }

    fn streams(manifest: &SimManifest) -> Vec<ListedStream> {
        let listed = |(incarnation, floor): (&u64, &u64)| ListedStream {
            incarnation: *incarnation,
            floor: *floor,
            end: None,
            end_ts: None,
            database: None,
        };
        manifest.streams.iter().map(listed).collect()
    }

    fn is_kept(&self) -> bool {
        self.read.is_kept_by(&Self::streams(&self.manifest), !self.manifest.covered.is_empty())
    }

    /// Takes the answer to the last request.
    pub(super) fn answered(&mut self, answer: Answer, now: Now, ledger: &mut Ledger) -> Checked {
        match (self.waiting.clone(), answer) {
            (Waiting::List, Answer::List(Ok(names))) => self.read_newest(&names, Waiting::Newest),
            (Waiting::Newest(_), Answer::Read(Ok(None))) => self.ask(Waiting::List, list()),
            (Waiting::Newest(number), Answer::Read(Ok(Some(bytes)))) => {
                self.take_manifest(number, bytes)?;
                if !self.rules.pins_before_reading {
                    self.open(ledger, now)?;
                }
                self.put_pin(Waiting::FirstPin, now);
            }
            (Waiting::FirstPin(pin), Answer::Put(Ok(Put::Done))) => {
                self.pin = Some(pin);
                self.is_sure = true;
                match self.rules.pins_before_reading {
                    true => self.ask(Waiting::ListAgain, list()),
                    false => self.go_on(),
                }
            }
            (Waiting::ListAgain, Answer::List(Ok(names))) => match newest(&names) {
                // Each manifest of the simulation keeps what it needs itself, so only the newest one can be pinned.
                Some(number) if number == self.number => self.open(ledger, now)?,
                _ => self.reopen(now),
            },
            (Waiting::Object | Waiting::ObjectBefore, Answer::Read(Ok(Some(bytes)))) => {
                self.take(&bytes, now, ledger)?;
            }
            (Waiting::ObjectBefore, Answer::Read(Ok(None))) => self.missing(now)?,
            (Waiting::Object, Answer::Read(Ok(None))) if !self.rules.follows_prefix => {
                let name = stream_name(self.read.incarnation, self.read.next + 1);
                self.ask(Waiting::ObjectBeyond, read(name));
            }
            (Waiting::ObjectBeyond, Answer::Read(Ok(Some(bytes)))) => {
                (self.read.next, self.read.previous) = (self.read.next + 1, None);
                self.take(&bytes, now, ledger)?;
            }
            (Waiting::Object | Waiting::ObjectBeyond, Answer::Read(Ok(None))) => {
                match now.us.saturating_sub(self.looked_us) >= LOOK_US {
                    true => self.ask(Waiting::Look, list()),
                    false => self.ask_after_pause(Waiting::Object, self.next(), now),
                }
            }
            (Waiting::Look, Answer::List(Ok(names))) if newest(&names) == Some(self.number) => self.looked(now)?,
            (Waiting::Look, Answer::List(Ok(names))) => self.read_newest(&names, Waiting::LookAt),
            (Waiting::LookAt(_), Answer::Read(Ok(None))) => self.ask(Waiting::Look, list()),
            (Waiting::LookAt(number), Answer::Read(Ok(Some(bytes)))) => {
                self.take_manifest(number, bytes)?;
                self.looked(now)?;
            }
            (Waiting::Earlier(number), Answer::Read(Ok(found))) => {
                let earlier = found.map(|bytes| SimManifest::read(&bytes)).transpose();
                let earlier = earlier.map_err(|error| Violation(error.to_string()))?;
                self.look_at_earlier(number, earlier.as_ref(), now)?;
            }
            (Waiting::NextPin(pin), Answer::Put(Ok(Put::Done))) => {
                // A pin that was put after the one before it had ended does not prove that nothing was deleted.
                self.is_sure &= self.pin.as_ref().is_some_and(|before| before.until > now.unix_us);
                self.give_up_pin();
                self.pin = Some(pin);
                self.go_on();
            }
            // No two pins have one name: one that is perhaps there ends with its time.
            (Waiting::FirstPin(_), _) => self.put_pin_after_pause(Waiting::FirstPin, now),
            (Waiting::NextPin(_), _) => {
                self.go_on();
                self.pause_until = Some(now.us + PAUSE_US);
            }
            (waiting, _) => {
                let request = self.request_of(&waiting);
                self.ask_after_pause(waiting, request, now);
            }
        }
        Ok(())
    }

    /// The request whose answer is waited for, once more.
    fn request_of(&self, waiting: &Waiting) -> Request {
        match waiting {
            Waiting::List | Waiting::ListAgain | Waiting::Look => list(),
            Waiting::Newest(number) | Waiting::LookAt(number) | Waiting::Earlier(number) => {
                read(manifest_name(*number))
            }
            Waiting::Object | Waiting::ObjectBefore => self.next(),
            Waiting::ObjectBeyond => read(stream_name(self.read.incarnation, self.read.next + 1)),
            Waiting::FirstPin(pin) | Waiting::NextPin(pin) => put(pin),
        }
    }

    fn next(&self) -> Request {
        read(stream_name(self.read.incarnation, self.read.next))
    }

    fn read_newest(&mut self, names: &[String], waiting: fn(u64) -> Waiting) {
        let number = newest(names).unwrap_or(1);
        self.ask(waiting(number), read(manifest_name(number)));
    }

    fn take_manifest(&mut self, number: u64, bytes: Bytes) -> Checked {
        self.manifest = SimManifest::read(&bytes).map_err(|error| Violation(error.to_string()))?;
        (self.number, self.bytes) = (number, bytes);
        Ok(())
    }

    fn new_pin(&mut self, now: Now) -> HeldPin {
        self.pins += 1;
        let manifest = match &self.pin {
            Some(pin) if self.rules.pins_what_it_needs && !self.is_kept() => pin.manifest,
            _ => self.number,
        };
        HeldPin { name: format!("{PINS}/{}-{}", self.seed, self.pins), manifest, until: now.unix_us + PIN_US }
    }

    fn put_pin(&mut self, waiting: fn(HeldPin) -> Waiting, now: Now) {
        let pin = self.new_pin(now);
        let request = put(&pin);
        self.ask(waiting(pin), request);
    }

    fn put_pin_after_pause(&mut self, waiting: fn(HeldPin) -> Waiting, now: Now) {
        self.put_pin(waiting, now);
        self.pause_until = Some(now.us + PAUSE_US);
    }

    /// Begins to follow from the checkpoint of the manifest.
    fn open(&mut self, ledger: &mut Ledger, now: Now) -> Checked {
        self.commits = self.manifest.covered.clone();
        self.read = ReadSoFar::from_floors(&Self::streams(&self.manifest));
        (self.looked_us, self.is_open) = (now.us, true);
        ledger.followed(self.read.incarnation, &self.commits, &self.commits)?;
        self.go_on();
        Ok(())
    }

    /// Begins anew, with another copy of the graph.
    fn reopen(&mut self, now: Now) {
        self.give_up_pin();
        (self.is_sure, self.is_open) = (false, false);
        self.ask_after_pause(Waiting::List, list(), now);
    }

    pub(super) fn go_on(&mut self) {
        match self.read.has_ended() {
            true => self.ask(Waiting::Look, list()),
            false => self.ask(Waiting::Object, self.next()),
        }
    }

    /// Takes the next object.
    fn take(&mut self, bytes: &[u8], now: Now, ledger: &mut Ledger) -> Checked {
        let (incarnation, seq) = (self.read.incarnation, self.read.next);
        let checked = self.read.next_object(database()).check(bytes, "the next object of a follower");
        let header = checked.map_err(|error| Violation(error.to_string()))?;
        match header.content {
            Content::Records(_) => {
                let new: BTreeSet<CommitId> = commits_of(bytes).into_iter().collect();
                if let Some(twice) = new.iter().find(|commit| self.commits.contains(commit)) {
                    return Err(Violation(format!("a follower has redone commit {twice} twice")));
                }
                self.commits.extend(&new);
                self.read.pass(incarnation, seq, bytes);
                ledger.followed(incarnation, &self.commits, &new)?;
            }
            Content::Fence { by } => self.read.end(StreamEnd::Fence { by }),
            Content::Fin => self.read.end(StreamEnd::Fin),
        }
        match self.is_pin_due(now) {
            true => self.put_pin(Waiting::NextPin, now),
            false => self.go_on(),
        }
        Ok(())
    }

    /// Knows the newest manifest.
    fn looked(&mut self, now: Now) -> Checked {
        self.looked_us = now.us;
        if self.is_pin_due(now) {
            self.put_pin(Waiting::NextPin, now);
            return Ok(());
        }
        if !self.read.has_ended() {
            match self.is_kept() {
                false => self.ask(Waiting::ObjectBefore, self.next()),
                true => self.ask_after_pause(Waiting::Object, self.next(), now),
            }
            return Ok(());
        }
        let streams = Self::streams(&self.manifest);
        let mut after = self.read.stream_after(&streams, !self.manifest.covered.is_empty());
        if !self.rules.goes_on_if_listed
            && let Some(stream) = streams.iter().find(|stream| stream.incarnation > self.read.incarnation)
        {
            after = NextStream::Listed(*stream);
        }
        match (after, &self.pin) {
            (NextStream::Listed(stream), _) => {
                self.read.go_on(&stream);
                self.read.next = stream.floor;
                self.go_on();
            }
            (NextStream::NotYet, _) => self.ask_after_pause(Waiting::Look, list(), now),
            (NextStream::Unknown, Some(HeldPin { manifest, until, .. })) if self.is_sure && *until > now.unix_us => {
                let number = *manifest;
                self.ask(Waiting::Earlier(number), read(manifest_name(number)));
            }
            (NextStream::Unknown, _) => self.missing(now)?,
        }
        Ok(())
    }

    /// Looks for the stream after the one that has ended in a manifest that the pin keeps.
    fn look_at_earlier(&mut self, number: u64, earlier: Option<&SimManifest>, now: Now) -> Checked {
        let after = earlier.map(|m| self.read.stream_after(&Self::streams(m), !m.covered.is_empty()));
        match after {
            Some(NextStream::Listed(stream)) => {
                self.found_by_pin += 1;
                self.read.go_on(&stream);
                self.go_on();
            }
            _ if number + 1 < self.number => {
                self.ask(Waiting::Earlier(number + 1), read(manifest_name(number + 1)));
            }
            _ => self.missing(now)?,
        }
        Ok(())
    }

    /// LOG-77.
    fn is_pin_due(&self, now: Now) -> bool {
        let Some(pin) = &self.pin else { return false };
        let moves = pin.manifest < self.number && (!self.rules.pins_what_it_needs || self.is_kept());
        moves || pin.until <= now.unix_us + PIN_US * 2 / 3
    }

    /// What it needs was deleted. That may not be while its pin holds.
    fn missing(&mut self, now: Now) -> Checked {
        let pin = self.pin.as_ref().filter(|pin| self.is_sure && pin.until > now.unix_us);
        if let Some(HeldPin { manifest, .. }) = pin {
            let (incarnation, next) = (self.read.incarnation, self.read.next);
            return Err(Violation(format!(
                "object {next} of incarnation {incarnation} was deleted although a follower pins manifest {manifest}"
            )));
        }
        self.collected += 1;
        self.reopen(now);
        Ok(())
    }
}

fn list() -> Request {
    Request::List { directory: MANIFESTS.into() }
}

fn read(name: String) -> Request {
    Request::Read { name, bytes_max: None }
}

fn put(pin: &HeldPin) -> Request {
    let text = format!("{} {}", pin.manifest, pin.until);
    Request::PutNew { name: pin.name.clone(), bytes: text.into_bytes().into() }
}

fn newest(names: &[String]) -> Option<u64> {
    names.iter().filter_map(|name| manifest_number(name)).max()
}
