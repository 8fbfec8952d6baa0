//! Take-overs from homes that fail for a while, and streams that are read ahead.

use std::sync::Arc;

use mangrove_graph::ErrorKind;
use parking_lot::Mutex;
use uuid::Uuid;

use super::super::fence::{ListedStream, ManifestView};
use super::super::format::{Batch, Content, Header, Place, encode, header_sum};
use super::super::names::{manifest_name, stream_name};
use super::super::read_ahead::READ_AHEAD_MAX;
use super::*;
use crate::home::{
    Completion, HomeErrorKind, HomeTraits, MemoryHome, Name, Put, Reply, Request as HomeRequest, WaitHome,
};

/// A manifest is the incarnation that owns the graph. It lists stream 1 alone.
struct Owners;

impl Manifests for Owners {
    fn view(&self, _: u64, manifest: &[u8]) -> Result<ManifestView> {
        let streams = vec![ListedStream { incarnation: 1, floor: 1, end: None, end_ts: None, database: None }];
        Ok(ManifestView { database: Uuid::nil(), owner: u64::from(manifest[0]), streams })
    }

    fn claim(&self, _: u64, _: &[u8], incarnation: u64) -> Result<Vec<u8>> {
        Ok(vec![incarnation as u8])
    }
}

/// Memory that fails some requests, and notes the reads.
#[derive(Debug)]
struct FailingHome {
    objects: MemoryHome,
    /// Requests that fail, with an error of this kind.
    failures: Mutex<(u32, HomeErrorKind)>,
    reads: Mutex<Vec<String>>,
}

impl FailingHome {
    /// A graph whose stream 1 has so many objects.
    fn new(objects: u64, failures: u32, kind: HomeErrorKind) -> Self {
        let home = MemoryHome::new();
        let put = |name: String, bytes: Vec<u8>| {
            assert_eq!(home.put_new(&Name::new(&name).unwrap(), bytes.into()).unwrap(), Put::Done);
        };
        put(manifest_name(1), vec![1]);
        let mut previous = 0;
        for seq in 1..=objects {
            let place = Place { database: Uuid::nil(), incarnation: 1, seq, nonce: [1; 16], previous };
            let object = encode(&Header { place, cut_us: 0, content: Content::Records(Batch::default()) }, &[]);
            previous = header_sum(&object);
            put(stream_name(1, seq), object);
        }
        put("node/0000000000000001".into(), vec![1]);
        FailingHome { objects: home, failures: Mutex::new((failures, kind)), reads: Mutex::default() }
    }

    fn take_over(&self, patience: Duration) -> Result<TakenOver> {
        let start = TakeOverStart { node: Bytes::from_static(b"me"), nonce_seed: [7; 16], lease_us: 0 };
        take_over(self, start, Owners, patience)
    }
}

impl Home for FailingHome {
    fn submit(&self, request: HomeRequest, done: Completion) {
        if let HomeRequest::Get { name } = &request {
            self.reads.lock().push(name.to_string());
        }
        let failure = {
            let mut failures = self.failures.lock();
            failures.0 = failures.0.saturating_sub(1);
            (failures.0 > 0).then_some(failures.1)
        };
        match failure {
            Some(kind) => done(Err(HomeError::new(kind, format!("the request was {kind:?}")))),
            None => self.objects.submit(request, done),
        }
    }

    fn describe(&self, name: &str) -> String {
        self.objects.describe(name)
    }

    fn traits(&self) -> HomeTraits {
        self.objects.traits()
    }
}

const LONG: Duration = Duration::from_secs(60);

#[test]
fn a_home_that_fails_for_a_while_is_asked_again() {
    for kind in [HomeErrorKind::Unavailable, HomeErrorKind::Unknown] {
        let home = FailingHome::new(3, 4, kind);
        let taken = home.take_over(LONG).unwrap();
        assert_eq!((taken.incarnation, taken.tails[0].end_seq, taken.tails[0].objects.len()), (2, 4, 3));
        let error = FailingHome::new(3, 4, kind).take_over(Duration::ZERO).unwrap_err();
        assert!(error.to_string().contains("the request was"), "{error}");
    }
    let error = FailingHome::new(3, 2, HomeErrorKind::Refused).take_over(LONG).unwrap_err();
    assert_eq!((error.kind(), error.to_string().contains("Refused")), (ErrorKind::Io, true));
}

#[test]
fn long_streams_are_read_ahead_and_short_ones_cost_few_reads() {
    let home = FailingHome::new(200, 0, HomeErrorKind::Unavailable);
    let taken = home.take_over(LONG).unwrap();
    assert_eq!((taken.tails[0].objects.len(), taken.tails[0].end_seq), (200, 201));
    let reads = home.reads.lock().clone();
    let of_stream: Vec<&String> = reads.iter().filter(|name| name.starts_with("log/")).collect();
    // Each object once; what follows the end, once ahead and the end itself again.
    assert!(of_stream.len() <= 200 + 2 * READ_AHEAD_MAX as usize, "{} reads", of_stream.len());
    let begun_before = |seq| of_stream.iter().position(|name| **name == stream_name(1, seq)).unwrap();
    assert!((51..=66).all(|seq| begun_before(seq) < begun_before(67)), "reads are begun in order");
    let home = FailingHome::new(1, 0, HomeErrorKind::Unavailable);
    home.take_over(LONG).unwrap();
    assert!(home.reads.lock().len() <= 8, "{:?}", home.reads.lock());
}

#[test]
fn a_manifest_counts_unless_another_is_newer() {
    let home: Arc<dyn Home> = Arc::new(FailingHome::new(0, 3, HomeErrorKind::Unknown));
    let put = |number, bytes: &'static [u8]| put_manifest(&*home, number, Bytes::from_static(bytes), LONG).unwrap();
    assert_eq!(put(2, b"mine"), ManifestOutcome::Counts);
    assert_eq!(put(2, b"other"), ManifestOutcome::Superseded);
    let newer = Name::new(&manifest_name(9)).unwrap();
    let Ok(Reply::Put(Put::Done)) = home.wait_for(HomeRequest::PutNew { name: newer, bytes: Bytes::new() }) else {
        panic!("the name is free")
    };
    assert_eq!(put(3, b"late"), ManifestOutcome::Superseded);
}
