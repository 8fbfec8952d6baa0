//! [`CountingHome`]: counts the requests and bytes of another home by kind, for metrics and for what a store costs.
//!
//! What is counted are requests to the home. One of them may be several requests to a store: parts of a large object,
//! ranges far from one another, pages of a long list, repeated attempts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use super::{ByteSource, Completion, Home, HomeResult, HomeTraits, Reply, Request};

/// The kind of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "they are the variants of Request")]
pub enum RequestKind {
    PutNew,
    PutUnique,
    Get,
    Ranges,
    Head,
    List,
    Delete,
}

impl RequestKind {
    /// All kinds, in the order of their declaration.
    pub const ALL: [RequestKind; 7] = [
        RequestKind::PutNew,
        RequestKind::PutUnique,
        RequestKind::Get,
        RequestKind::Ranges,
        RequestKind::Head,
        RequestKind::List,
        RequestKind::Delete,
    ];

    /// The kind of a request.
    pub fn of(request: &Request) -> Self {
        match request {
            Request::PutNew { .. } => RequestKind::PutNew,
            Request::PutUnique { .. } => RequestKind::PutUnique,
            Request::Get { .. } => RequestKind::Get,
            Request::Ranges { .. } => RequestKind::Ranges,
            Request::Head { .. } => RequestKind::Head,
            Request::List { .. } => RequestKind::List,
            Request::Delete { .. } => RequestKind::Delete,
        }
    }
}

/// What was counted of one kind of requests.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RequestCount {
    /// Requests handed over.
    pub requests: u64,
    /// Requests answered, errors included.
    pub answers: u64,
    /// Requests answered with an error.
    pub errors: u64,
    /// Bytes of objects: handed over by puts, also by those that failed; received by reads.
    pub bytes: u64,
}

/// Another home, with its requests counted.
#[derive(Debug)]
pub struct CountingHome {
    home: Arc<dyn Home>,
    counters: Arc<[Counters; RequestKind::ALL.len()]>,
}

/// The counters of one kind. They are read for people only, so their order among one another does not matter.
#[derive(Default, Debug)]
struct Counters {
    requests: AtomicU64,
    answers: AtomicU64,
    errors: AtomicU64,
    bytes: AtomicU64,
}

impl CountingHome {
    /// Counts the requests to a home from now on.
    pub fn new(home: Arc<dyn Home>) -> Self {
        CountingHome { home, counters: Arc::default() }
    }

    /// What was counted of a kind so far.
    pub fn count(&self, kind: RequestKind) -> RequestCount {
        let counters = &self.counters[kind as usize];
        RequestCount {
            requests: counters.requests.load(Ordering::Relaxed),
            answers: counters.answers.load(Ordering::Relaxed),
            errors: counters.errors.load(Ordering::Relaxed),
            bytes: counters.bytes.load(Ordering::Relaxed),
        }
    }
}

impl Home for CountingHome {
    fn submit(&self, request: Request, done: Completion) {
        let kind = RequestKind::of(&request);
        let all = self.counters.clone();
        let counters = &all[kind as usize];
        counters.requests.fetch_add(1, Ordering::Relaxed);
        let request = match request {
            Request::PutNew { name, bytes } => {
                counters.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                Request::PutNew { name, bytes }
            }
            Request::PutUnique { name, source } => {
                Request::PutUnique { name, source: Box::new(CountedSource { source, counters: all.clone() }) }
            }
            other => other,
        };
        let counted = move |answer: HomeResult<Reply>| {
            let counters = &all[kind as usize];
            counters.answers.fetch_add(1, Ordering::Relaxed);
            let received = match &answer {
                Ok(Reply::Object(bytes)) => bytes.as_ref().map_or(0, Bytes::len),
                Ok(Reply::Ranges(ranges)) => ranges.iter().flatten().map(Bytes::len).sum(),
                Ok(_) => 0,
                Err(_) => {
                    counters.errors.fetch_add(1, Ordering::Relaxed);
                    0
                }
            };
            counters.bytes.fetch_add(received as u64, Ordering::Relaxed);
            done(answer);
        };
        self.home.submit(request, Box::new(counted));
    }

    fn describe(&self, name: &str) -> String {
        self.home.describe(name)
    }

    fn traits(&self) -> HomeTraits {
        self.home.traits()
    }
}

/// A source whose bytes are counted when they are made.
#[derive(Debug)]
struct CountedSource {
    source: Box<dyn ByteSource>,
    counters: Arc<[Counters; RequestKind::ALL.len()]>,
}

impl ByteSource for CountedSource {
    fn next_piece(&mut self) -> HomeResult<Option<Bytes>> {
        let piece = self.source.next_piece()?;
        let len = piece.as_ref().map_or(0, Bytes::len) as u64;
        self.counters[RequestKind::PutUnique as usize].bytes.fetch_add(len, Ordering::Relaxed);
        Ok(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::super::contract::{self, failing, name, pieces};
    use super::super::{MemoryHome, WaitHome};
    use super::*;

    #[test]
    fn a_counted_home_keeps_the_contract() {
        let home: Arc<dyn Home> = Arc::new(CountingHome::new(Arc::new(MemoryHome::new())));
        contract::check(&home);
    }

    #[test]
    fn requests_errors_and_bytes_are_counted_by_kind() {
        let home = CountingHome::new(Arc::new(MemoryHome::new()));
        let (new, unique, absent) = (name("a/new"), name("a/unique"), name("a/absent"));
        home.put_new(&new, Bytes::from_static(b"12345")).unwrap();
        home.put_new(&new, Bytes::from_static(b"123")).unwrap();
        home.put_unique(&unique, pieces(&[b"123", b"4567"])).unwrap();
        home.put_unique(&absent, failing(100)).unwrap_err();
        home.get(&new).unwrap();
        home.get(&absent).unwrap();
        home.ranges(&unique, vec![0..2, 5..100, 3..3]).unwrap();
        home.head(&new).unwrap();
        home.list(&name("a")).unwrap();
        home.delete(vec![new, unique]).unwrap();
        let counts = RequestKind::ALL.map(|kind| home.count(kind));
        let count = |requests, errors, bytes| RequestCount { requests, answers: requests, errors, bytes };
        let expected = [
            count(2, 0, 8),
            count(2, 1, 107),
            count(2, 0, 5),
            count(1, 0, 4),
            count(1, 0, 0),
            count(1, 0, 0),
            count(1, 0, 0),
        ];
        assert_eq!(counts, expected);
    }
}
