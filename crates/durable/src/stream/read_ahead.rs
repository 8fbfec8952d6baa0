//! Reads of whole objects, with the next objects of the same stream read ahead.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::mpsc::{Receiver, sync_channel};

use bytes::Bytes;

use super::ask;
use super::names::{stream_name, stream_place};
use super::request::{Answer, Request};
use crate::home::{Home, HomeResult};

/// Objects of a stream that are read ahead at most.
pub(super) const READ_AHEAD_MAX: u64 = 64;

type ReadAnswer = HomeResult<Option<Bytes>>;

/// Reads of whole objects of one home.
pub(crate) struct ReadAhead {
    /// By place.
    under_way: BTreeMap<(u64, u64), Receiver<ReadAnswer>>,
    /// How many objects are read ahead. It doubles with each object that is found, so a short tail costs few reads.
    count: u64,
    /// How many are read ahead at the beginning of a stream, and after a name that was free.
    least: u64,
    /// Reads that were sent.
    requests: u64,
}

impl fmt::Debug for ReadAhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadAhead").field("under_way", &self.under_way.keys()).finish_non_exhaustive()
    }
}

impl ReadAhead {
    /// Reads that begin with so many objects ahead.
    pub(crate) fn new(least: u64) -> Self {
        ReadAhead { under_way: BTreeMap::new(), count: least, least, requests: 0 }
    }

    /// Reads that were sent.
    pub(crate) fn requests(&self) -> u64 {
        self.requests
    }

    /// Reads an object, and waits for it.
    pub(crate) fn read(&mut self, home: &dyn Home, name: String) -> ReadAnswer {
        let Some((incarnation, seq)) = stream_place(&name) else { return ask::read_whole(home, name) };
        self.under_way.retain(|place, _| place.0 == incarnation && place.1 >= seq);
        if self.under_way.is_empty() {
            self.count = self.count.min(self.least.max(1));
        }
        let early = self.under_way.remove(&(incarnation, seq));
        for next in seq.saturating_add(1)..=seq.saturating_add(self.count) {
            let requests = &mut self.requests;
            self.under_way.entry((incarnation, next)).or_insert_with(|| {
                *requests += 1;
                begin(home, stream_name(incarnation, next))
            });
        }
        // An object that was found is what it is. A name that was free then may be taken since.
        let found = match early.and_then(|early| early.recv().ok()) {
            Some(Ok(Some(bytes))) => Ok(Some(bytes)),
            _ => {
                self.requests += 1;
                ask::read_whole(home, name)
            }
        };
        match &found {
            Ok(Some(_)) => self.count = (self.count * 2).clamp(1, READ_AHEAD_MAX),
            // The next objects are not there either.
            Ok(None) if self.least == 0 => {
                self.count = self.least;
                self.under_way.clear();
            }
            _ => {}
        }
        found
    }
}

/// Begins to read an object.
fn begin(home: &dyn Home, name: String) -> Receiver<ReadAnswer> {
    let (sender, answers) = sync_channel(1);
    ask::send(home, Request::Read { name, bytes_max: None }, move |answer| {
        if let Answer::Read(answer) = answer {
            // The receiver has gone if the reader has failed.
            let _ = sender.send(answer);
        }
    });
    answers
}
