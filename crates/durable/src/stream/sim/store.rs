//! A store in memory whose answers and effects come apart, by seed.

use std::collections::BTreeMap;

use bytes::Bytes;
use rand::Rng;
use rand::rngs::SmallRng;

use super::super::{Answer, Request};
use crate::home::Put;

/// A request of an owner.
#[derive(Clone, Debug)]
pub(super) enum Ask {
    Request(Request),
    Delete(String),
}

/// What an owner hears.
#[derive(Clone, Debug)]
pub(super) enum Heard {
    Answer(Answer),
    Deleted,
}

/// The objects by name.
#[derive(Debug, Default)]
pub(super) struct SimStore {
    pub(super) objects: BTreeMap<String, Bytes>,
}

impl SimStore {
    /// Carries out a request. Returns the true answer.
    pub(super) fn execute(&mut self, ask: &Ask, rng: &mut SmallRng) -> Heard {
        let request = match ask {
            Ask::Delete(name) => {
                self.objects.remove(name);
                return Heard::Deleted;
            }
            Ask::Request(request) => request,
        };
        Heard::Answer(match request {
            Request::PutNew { name, .. } if self.objects.contains_key(name) => Answer::Put(Ok(Put::Taken)),
            Request::PutNew { name, bytes } => {
                self.objects.insert(name.clone(), bytes.clone());
                Answer::Put(Ok(Put::Done))
            }
            Request::Read { name, bytes_max } => Answer::Read(match self.objects.get(name) {
                None => Ok(None),
                Some(bytes) => {
                    let end = bytes_max.unwrap_or(bytes.len()).min(bytes.len());
                    Ok(Some(bytes.slice(..end)))
                }
            }),
            Request::List { directory } => {
                let prefix = format!("{directory}/");
                let mut names: Vec<String> =
                    self.objects.keys().filter(|name| name.starts_with(&prefix)).cloned().collect();
                for at in (1..names.len()).rev() {
                    names.swap(at, rng.random_range(0..=at));
                }
                Answer::List(Ok(names))
            }
        })
    }
}

/// What becomes of a request. Times are microseconds from its sending.
#[derive(Debug)]
pub(super) struct Fate {
    /// When the store carries it out: never, once or twice. The first may answer.
    pub(super) executions: Vec<u64>,
    /// When the owner hears something.
    pub(super) heard_after_us: u64,
    /// What the owner hears.
    pub(super) hears: Hears,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Hears {
    /// The answer of the first execution.
    TrueAnswer,
    /// That the outcome is unknown.
    Unknown,
    /// That the store was too busy, and did nothing.
    Busy,
    /// "Taken", although the store did nothing.
    Conflict,
}

const MS: u64 = 1_000;

/// Draws the fate of a request. `faults` is the number of faults among a thousand requests.
pub(super) fn draw_fate(ask: &Ask, faults: u32, rng: &mut SmallRng) -> Fate {
    let mut latency_us = || match rng.random_range(0..100) {
        0 => rng.random_range(100 * MS..400 * MS),
        1..=9 => rng.random_range(30 * MS..100 * MS),
        _ => rng.random_range(3 * MS..30 * MS),
    };
    let (there, back) = (latency_us(), latency_us() / 2);
    let timeout_us = there + rng.random_range(50 * MS..800 * MS);
    let soon = there + back;
    let fate = |executions, heard_after_us, hears| Fate { executions, heard_after_us, hears };
    if rng.random_range(0..1000) >= faults {
        return fate(vec![there], soon, Hears::TrueAnswer);
    }
    let much_later = match rng.random_range(0..3) {
        0 => rng.random_range(timeout_us..timeout_us + 1_000 * MS),
        1 => rng.random_range(timeout_us..timeout_us + 6_000 * MS),
        _ => rng.random_range(timeout_us..timeout_us + 25_000 * MS),
    };
    let is_put = matches!(ask, Ask::Request(Request::PutNew { .. }));
    match rng.random_range(0..20) {
        // The request is lost.
        0..4 => fate(vec![], timeout_us, Hears::Unknown),
        // The answer is lost.
        4..8 => fate(vec![there], timeout_us, Hears::Unknown),
        // The request arrives after its owner has given up, and perhaps after the owner's death.
        8..12 => fate(vec![much_later], timeout_us, Hears::Unknown),
        // The request arrives twice.
        12..15 => fate(vec![there, much_later], soon, Hears::TrueAnswer),
        // A conflict is reported as "taken".
        15..17 if is_put => fate(vec![], soon, Hears::Conflict),
        // The store is too busy.
        15..18 => fate(vec![], there, Hears::Busy),
        // The store fails after it has done its work.
        _ => fate(vec![there], soon, Hears::Unknown),
    }
}
