//! Take-overs and puts of manifests on a thread that waits for the home.
//!
//! The steps are those of [`super::fence`] and [`super::manifest_put`]. This module sends their requests, waits for
//! their pauses, and gives up when the home refuses, or fails for longer than its caller has patience. Nothing is lost
//! then: another attempt begins anew, with the next incarnation.

use std::time::Duration;

use bytes::Bytes;
use mangrove_graph::{Error, Result};

use super::fence::{Followed, Manifests, TakeOver, TakeOverStart, TakenOver};
use super::manifest_put::{ManifestOutcome, ManifestPut};
use super::read_ahead::ReadAhead;
use super::request::{Answer, Request, Step};
use super::{ask, clock};
use crate::home::{Home, HomeError};

/// Takes a graph over: claims an incarnation and the manifest, ends the streams of earlier owners, and reads their
/// tails. Fails with the error of the home if it has failed for longer than `patience`, or if another attempt would
/// fail too.
///
/// # Errors
///
/// If there is no graph, if the manifest or a stream is damaged, or if the home fails.
pub fn take_over<M: Manifests>(
    home: &dyn Home,
    start: TakeOverStart,
    manifests: M,
    patience: Duration,
) -> Result<TakenOver> {
    let (take_over, first) = TakeOver::new(start, manifests);
    drive(home, take_over, first, patience)
}

/// As [`take_over`], by a successor that has followed the owners.
///
/// # Errors
///
/// Those of [`take_over`]. `Closed` without a claim if the follower has not read objects that may be deleted (LOG-70).
pub fn take_over_followed<M: Manifests>(
    home: &dyn Home,
    start: TakeOverStart,
    manifests: M,
    followed: Followed,
    patience: Duration,
) -> Result<TakenOver> {
    let (take_over, first) = TakeOver::of_follower(start, manifests, followed, clock::now().us);
    drive(home, take_over, first, patience)
}

/// Puts a manifest, and looks whether it counts (LOG-56). After an error, that is not known.
///
/// # Errors
///
/// If the home refuses, or has failed for longer than `patience`.
pub fn put_manifest(home: &dyn Home, number: u64, bytes: Bytes, patience: Duration) -> Result<ManifestOutcome> {
    let (put, first) = ManifestPut::new(number, bytes);
    drive(home, put, first, patience)
}

/// Work that goes step by step.
trait Work {
    type Done;
    fn answered(&mut self, answer: Answer, now_us: u64) -> Step<Self::Done>;
    fn resumed(&mut self, now_us: u64) -> Step<Self::Done>;
}

impl<M: Manifests> Work for TakeOver<M> {
    type Done = TakenOver;

    fn answered(&mut self, answer: Answer, now_us: u64) -> Step<TakenOver> {
        TakeOver::answered(self, answer, now_us)
    }

    fn resumed(&mut self, now_us: u64) -> Step<TakenOver> {
        TakeOver::resumed(self, now_us)
    }
}

impl Work for ManifestPut {
    type Done = ManifestOutcome;

    fn answered(&mut self, answer: Answer, now_us: u64) -> Step<ManifestOutcome> {
        ManifestPut::answered(self, answer, now_us)
    }

    fn resumed(&mut self, _: u64) -> Step<ManifestOutcome> {
        ManifestPut::resumed(self)
    }
}

fn drive<W: Work>(home: &dyn Home, mut work: W, first: Step<W::Done>, patience: Duration) -> Result<W::Done> {
    let mut ahead = ReadAhead::new(1);
    // Since when requests have failed, and whether the last one that failed was a put.
    let mut failing: Option<(u64, bool)> = None;
    let mut step = first;
    loop {
        step = match step {
            Step::Done(done) => return Ok(done),
            Step::Failed(error) => return Err(error),
            Step::WaitUntil(us) => {
                std::thread::sleep(clock::until(us));
                work.resumed(clock::now().us)
            }
            Step::Ask(request) => {
                let answer = match request {
                    Request::Read { name, bytes_max: None } => Answer::Read(ahead.read(home, name)),
                    request => ask::send_and_wait(home, request),
                };
                let now_us = clock::now().us;
                match error_of(&answer) {
                    // A read between two failed puts succeeds and finds no object. It does not make the puts any better.
                    None if matches!((&answer, failing), (Answer::Read(_), Some((_, true)))) => {}
                    None => failing = None,
                    Some(error) => {
                        let since_us = failing.map_or(now_us, |(since_us, _)| since_us);
                        failing = Some((since_us, matches!(answer, Answer::Put(_))));
                        let is_over = now_us.saturating_sub(since_us) >= patience.as_micros() as u64;
                        if is_over || !error.kind().is_passing() {
                            return Err(Error::from(error.clone()));
                        }
                    }
                }
                work.answered(answer, now_us)
            }
        };
    }
}

fn error_of(answer: &Answer) -> Option<&HomeError> {
    match answer {
        Answer::Put(answer) => answer.as_ref().err(),
        Answer::Read(answer) => answer.as_ref().err(),
        Answer::List(answer) => answer.as_ref().err(),
    }
}

#[cfg(test)]
mod tests;
