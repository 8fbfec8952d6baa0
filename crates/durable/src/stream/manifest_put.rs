//! The put of a manifest.
//!
//! The chain of manifests is collected: old numbers are deleted, and their names are free again. So an owner that slept
//! may put a manifest under a number that was used and deleted. The number alone does not fence it.
//!
//! - **LOG-56.** The put of a manifest counts only if a list of the manifests, made *after* the put, shows no larger
//!   number. An owner whose put does not count has a successor.

use bytes::Bytes;

use super::Rules;
use super::names::{MANIFESTS, manifest_name, manifest_number};
use super::request::{Answer, PutStep, Request, Step};
use crate::home::settle::{Likeness, NewObject, Settle, Settled};

/// How long a failed list waits, in microseconds.
const LIST_BACKOFF_US: u64 = 50_000;

/// Says whether the put of a manifest counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ManifestOutcome {
    /// The manifest is the newest.
    Counts,
    /// Another owner has put this number or a larger one.
    Superseded,
}

/// The put of a manifest, until it is known whether it counts.
#[derive(Debug)]
pub struct ManifestPut {
    number: u64,
    settle: Settle,
    is_settled: bool,
    rules: Rules,
}

impl ManifestPut {
    /// A put of these bytes, which no other owner may have: they name their writer's incarnation.
    pub fn new(number: u64, bytes: Bytes) -> (Self, Step<ManifestOutcome>) {
        ManifestPut::with_rules(number, bytes, Rules::default())
    }

    pub(super) fn with_rules(number: u64, bytes: Bytes, rules: Rules) -> (Self, Step<ManifestOutcome>) {
        let (settle, first) = Settle::with_rules(NewObject { bytes, likeness: Likeness::Whole }, rules.settle);
        let mut put = ManifestPut { number, settle, is_settled: false, rules };
        let step = put.step(PutStep::of(first, &manifest_name(number)));
        (put, step)
    }

    /// The number of the manifest.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Takes the answer to the last request, at this time in microseconds.
    pub fn answered(&mut self, answer: Answer, now_us: u64) -> Step<ManifestOutcome> {
        let step = match answer {
            Answer::List(Ok(names)) => {
                // LOG-56.
                let is_newest = names.iter().filter_map(|name| manifest_number(name)).all(|found| found <= self.number);
                return Step::Done(if is_newest { ManifestOutcome::Counts } else { ManifestOutcome::Superseded });
            }
            Answer::List(Err(_)) => return Step::WaitUntil(now_us + LIST_BACKOFF_US),
            Answer::Put(answer) => self.settle.put_answered(&answer, now_us),
            Answer::Read(answer) => self.settle.read_answered(answer, now_us),
        };
        self.step(PutStep::of(step, &manifest_name(self.number)))
    }

    /// Goes on after a wait.
    pub fn resumed(&mut self) -> Step<ManifestOutcome> {
        if self.is_settled {
            return list_manifests();
        }
        let step = self.settle.resumed();
        self.step(PutStep::of(step, &manifest_name(self.number)))
    }

    fn step(&mut self, step: PutStep<ManifestOutcome>) -> Step<ManifestOutcome> {
        match step {
            PutStep::Step(step) => step,
            PutStep::Settled(Settled::Another(_)) => Step::Done(ManifestOutcome::Superseded),
            PutStep::Settled(Settled::Own) if !self.rules.looks_for_larger => Step::Done(ManifestOutcome::Counts),
            PutStep::Settled(Settled::Own) => {
                self.is_settled = true;
                list_manifests()
            }
        }
    }
}

fn list_manifests() -> Step<ManifestOutcome> {
    Step::Ask(Request::List { directory: MANIFESTS.into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::home::{HomeError, HomeErrorKind, Put};

    fn names(numbers: &[u64]) -> Answer {
        Answer::List(Ok(numbers.iter().map(|number| manifest_name(*number)).collect()))
    }

    #[test]
    fn a_put_counts_if_a_list_after_it_shows_none_larger() {
        for (listed, expected) in [
            (&[5, 7, 6][..], ManifestOutcome::Counts),
            (&[7], ManifestOutcome::Counts),
            (&[50, 7], ManifestOutcome::Superseded),
        ] {
            let (mut put, first) = ManifestPut::new(7, vec![1].into());
            assert!(matches!(first, Step::Ask(Request::PutNew { name, .. }) if name == "manifest/7.json"));
            let list = put.answered(Answer::Put(Ok(Put::Done)), 0);
            assert!(matches!(list, Step::Ask(Request::List { .. })));
            let unknown = Answer::List(Err(HomeError::new(HomeErrorKind::Unknown, "time-out")));
            assert!(matches!(put.answered(unknown, 100), Step::WaitUntil(50_100)));
            assert!(matches!(put.resumed(), Step::Ask(Request::List { .. })));
            assert!(matches!(put.answered(names(listed), 0), Step::Done(outcome) if outcome == expected));
        }
    }

    #[test]
    fn a_number_that_another_owner_has_is_superseded() {
        let (mut put, _) = ManifestPut::new(7, vec![1].into());
        assert!(matches!(put.answered(Answer::Put(Ok(Put::Taken)), 0), Step::Ask(Request::Read { .. })));
        let found = Answer::Read(Ok(Some(vec![2].into())));
        assert!(matches!(put.answered(found, 0), Step::Done(ManifestOutcome::Superseded)));
    }
}
