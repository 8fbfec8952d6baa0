//! The steps of a take-over, one by one.

use std::collections::BTreeMap;

use super::super::format::{Batch, decode};
use super::super::names::stream_place;
use super::*;
use crate::home::Put;

const LEASE_US: u64 = 300_000;

/// A manifest is a text of numbers: `owner stream floor stream floor …`.
#[derive(Debug, Default)]
struct Numbers {
    /// The ends of streams that it knows.
    ends: Vec<(u64, u64)>,
}

impl Numbers {
    fn end_of(&self, incarnation: u64) -> Option<u64> {
        self.ends.iter().find(|(stream, _)| *stream == incarnation).map(|(_, end)| *end)
    }
}

fn numbers(manifest: &[u8]) -> Result<Vec<u64>> {
    let text = std::str::from_utf8(manifest).map_err(|error| Error::new(ErrorKind::Damaged, error.to_string()))?;
    Ok(text.split(' ').map(|number| number.parse().unwrap()).collect())
}

impl Manifests for Numbers {
    fn view(&self, _: u64, manifest: &[u8]) -> Result<ManifestView> {
        let numbers = numbers(manifest)?;
        let stream = |pair: &[u64]| ListedStream {
            incarnation: pair[0],
            floor: pair[1],
            end: self.end_of(pair[0]),
            end_ts: None,
            database: None,
        };
        let streams = numbers[1..].chunks(2).map(stream).collect();
        Ok(ManifestView { database: database(), owner: numbers[0], streams })
    }

    fn claim(&self, _: u64, parent: &[u8], incarnation: u64) -> Result<Vec<u8>> {
        let mut all = numbers(parent)?;
        all[0] = incarnation;
        all.extend([incarnation, 1]);
        Ok(all.iter().map(u64::to_string).collect::<Vec<_>>().join(" ").into_bytes())
    }
}

type Objects = BTreeMap<String, Bytes>;

fn database() -> Uuid {
    Uuid::from_u128(5)
}

fn object(incarnation: u64, seq: u64, previous: u32, content: Content) -> Bytes {
    let place = Place { database: database(), incarnation, seq, nonce: [3; 16], previous };
    encode(&Header { place, cut_us: 0, content }, &[]).into()
}

/// A stream of records from one object to another, both included.
fn put_stream(objects: &mut Objects, incarnation: u64, from: u64, to: u64) -> u32 {
    let mut previous = 0;
    for seq in from..=to {
        let bytes = object(incarnation, seq, previous, Content::Records(Batch::default()));
        previous = header_sum(&bytes);
        objects.insert(stream_name(incarnation, seq), bytes);
    }
    previous
}

/// A graph with the manifest 7: the streams 2 from object 5, and 3 from object 1.
fn graph() -> Objects {
    let mut objects = Objects::new();
    for incarnation in 1..=3 {
        objects.insert(node_name(incarnation), vec![incarnation as u8].into());
    }
    objects.insert(manifest_name(6), b"2 2 1".as_slice().into());
    objects.insert(manifest_name(7), b"3 2 5 3 1".as_slice().into());
    objects
}

fn answer(objects: &mut Objects, request: &Request) -> Answer {
    match request {
        Request::PutNew { name, .. } if objects.contains_key(name) => Answer::Put(Ok(Put::Taken)),
        Request::PutNew { name, bytes } => {
            objects.insert(name.clone(), bytes.clone());
            Answer::Put(Ok(Put::Done))
        }
        Request::Read { name, bytes_max } => Answer::Read(match objects.get(name) {
            None => Ok(None),
            Some(bytes) => Ok(Some(bytes.slice(..bytes_max.unwrap_or(bytes.len()).min(bytes.len())))),
        }),
        Request::List { directory } => {
            let of = objects.keys().filter(|name| name.starts_with(directory.as_str()));
            Answer::List(Ok(of.rev().cloned().collect()))
        }
    }
}

/// Takes over. Before each request is carried out, `before` may change the objects. Returns the names of the puts.
fn take_over(objects: &mut Objects, before: impl FnMut(&Request, &mut Objects)) -> (Result<TakenOver>, Vec<String>) {
    take_over_with(objects, Vec::new(), before)
}

/// The same, with manifests that know these ends of streams.
fn take_over_with(
    objects: &mut Objects,
    ends: Vec<(u64, u64)>,
    before: impl FnMut(&Request, &mut Objects),
) -> (Result<TakenOver>, Vec<String>) {
    drive(objects, TakeOver::new(start(), Numbers { ends }), before)
}

fn start() -> TakeOverStart {
    TakeOverStart { node: b"me".as_slice().into(), nonce_seed: [7; 16], lease_us: LEASE_US }
}

fn drive(
    objects: &mut Objects,
    (mut take_over, mut step): (TakeOver<Numbers>, Next),
    mut before: impl FnMut(&Request, &mut Objects),
) -> (Result<TakenOver>, Vec<String>) {
    let (mut now_us, mut puts) = (1_000_000, Vec::new());
    loop {
        step = match step {
            Step::Ask(request) => {
                before(&request, objects);
                if let Request::PutNew { name, .. } = &request {
                    puts.push(name.clone());
                }
                let answer = answer(objects, &request);
                now_us += 10_000;
                take_over.answered(answer, now_us)
            }
            Step::WaitUntil(us) => {
                now_us = now_us.max(us);
                take_over.resumed(now_us)
            }
            Step::Done(taken) => return (Ok(taken), puts),
            Step::Failed(error) => return (Err(error), puts),
        };
    }
}

#[test]
fn a_successor_claims_first_and_fences_each_stream_at_its_end() {
    let mut objects = graph();
    let sum = put_stream(&mut objects, 2, 5, 6);
    objects.insert(stream_name(2, 7), object(2, 7, sum, Content::Fence { by: 3 }));
    let sum = put_stream(&mut objects, 3, 1, 3);
    let (taken, puts) = take_over(&mut objects, |_, _| ());
    let taken = taken.unwrap();
    assert_eq!(puts, [node_name(4), manifest_name(8), stream_name(3, 4)]);
    assert_eq!((taken.incarnation, taken.manifest_number), (4, 8));
    assert_eq!(&taken.manifest[..], b"4 2 5 3 1 4 1");
    let ends: Vec<_> =
        taken.tails.iter().map(|tail| (tail.incarnation, tail.objects.len(), tail.end_seq, tail.end)).collect();
    assert_eq!(ends, [(2, 2, 7, StreamEnd::Fence { by: 3 }), (3, 3, 4, StreamEnd::Fence { by: 4 })]);
    let (fence, _) = decode(&objects[&stream_name(3, 4)]).unwrap();
    assert_eq!((fence.content, fence.place.previous), (Content::Fence { by: 4 }, sum));
    assert!(taken.held_until_us >= 1_000_000 + LEASE_US * 21 / 20);
}

#[test]
fn an_object_that_arrives_before_the_fence_is_read_and_the_fence_goes_after_it() {
    let mut objects = graph();
    put_stream(&mut objects, 2, 5, 5);
    put_stream(&mut objects, 3, 1, 1);
    let (taken, puts) = take_over(&mut objects, |request, objects| {
        if matches!(request, Request::PutNew { name, .. } if *name == stream_name(3, 2)) {
            put_stream(objects, 3, 1, 2);
        }
    });
    let taken = taken.unwrap();
    // Since the owner may go on, a FENCE ahead comes before the one at the end.
    let fences = [(2, 6), (3, 2), (3, 11), (3, 3)].map(|(stream, seq)| stream_name(stream, seq));
    assert_eq!(puts, [&[node_name(4), manifest_name(8)][..], &fences].concat());
    assert_eq!((taken.tails[1].objects.len(), taken.tails[1].end_seq), (2, 3));
}

#[test]
fn an_owner_that_always_writes_is_stopped_by_a_fence_ahead() {
    let mut objects = graph();
    objects.insert(stream_name(2, 5), object(2, 5, 0, Content::Fin));
    // The owner writes three objects before each request of the successor, until it meets a FENCE.
    let (mut written, mut previous) = (0, 0);
    let (taken, puts) = take_over(&mut objects, |_, objects| {
        for _ in 0..3 {
            objects.entry(stream_name(3, written + 1)).or_insert_with(|| {
                let bytes = object(3, written + 1, previous, Content::Records(Batch::default()));
                (written, previous) = (written + 1, header_sum(&bytes));
                bytes
            });
        }
    });
    let tail = taken.unwrap().tails.remove(1);
    assert_eq!((tail.objects.len() as u64, tail.end_seq), (written, written + 1), "all that the owner wrote is read");
    assert_eq!(tail.end, StreamEnd::Fence { by: 4 });
    let fences: Vec<u64> = puts.iter().filter_map(|name| stream_place(name)).map(|(_, seq)| seq).collect();
    assert!(fences.len() <= 10, "{fences:?}");
    assert_eq!(fences.last(), Some(&tail.end_seq));
}

#[test]
fn a_number_that_another_takes_is_claimed_again_from_the_newest_manifest() {
    let mut objects = graph();
    objects.insert(stream_name(3, 1), object(3, 1, 0, Content::Fin));
    objects.insert(stream_name(2, 5), object(2, 5, 0, Content::Fin));
    let (taken, puts) = take_over(&mut objects, |request, objects| {
        if matches!(request, Request::PutNew { name, .. } if *name == node_name(4)) {
            objects.insert(node_name(4), b"another".as_slice().into());
        }
        if matches!(request, Request::PutNew { name, .. } if *name == manifest_name(8)) {
            objects.insert(manifest_name(8), b"4 3 1 4 2".as_slice().into());
            objects.insert(stream_name(4, 2), object(4, 2, 0, Content::Fin));
        }
    });
    let taken = taken.unwrap();
    assert_eq!(puts, [node_name(4), node_name(5), manifest_name(8), manifest_name(9)]);
    assert_eq!(&taken.manifest[..], b"5 3 1 4 2 5 1");
    assert_eq!(taken.held_until_us, 0, "owners that have ended their streams serve no reads");
}

#[test]
fn a_successor_of_a_larger_incarnation_claims_one_that_is_larger_still() {
    let mut objects = graph();
    objects.insert(stream_name(2, 5), object(2, 5, 0, Content::Fin));
    objects.insert(stream_name(3, 1), object(3, 1, 0, Content::Fin));
    let (taken, puts) = take_over(&mut objects, |request, objects| {
        // Another one claims a later incarnation, and the manifest before this one does.
        if matches!(request, Request::PutNew { name, .. } if *name == manifest_name(8)) {
            objects.insert(node_name(5), b"another".as_slice().into());
            objects.insert(manifest_name(8), b"5 2 5 3 1 5 1".as_slice().into());
            put_stream(objects, 5, 1, 2);
        }
    });
    let taken = taken.unwrap();
    assert_eq!(puts, [node_name(4), manifest_name(8), node_name(6), manifest_name(9), stream_name(5, 3)]);
    assert_eq!(&taken.manifest[..], b"6 2 5 3 1 5 1 6 1");
    assert_eq!(taken.tails.iter().map(|tail| tail.incarnation).collect::<Vec<_>>(), [2, 3, 5]);
}

/// A follower that has read stream 2 to its end, and stream 3 before an object.
fn followed(next: u64, previous: Option<u32>) -> Followed {
    let ends = BTreeMap::from([(2, (7, StreamEnd::Fence { by: 3 }))]);
    let read = ReadSoFar { incarnation: 3, next, previous, ends };
    Followed { manifest_number: 7, manifest: b"3 2 5 3 1".as_slice().into(), read }
}

#[test]
fn a_follower_claims_what_it_knows_and_searches_from_where_it_has_read() {
    let mut objects = graph();
    let sum = put_stream(&mut objects, 3, 1, 4);
    // What it has read may be gone.
    let third = objects[&stream_name(3, 3)].clone();
    (1..=3).for_each(|seq| drop(objects.remove(&stream_name(3, seq))));
    let mut lists = 0;
    let first = TakeOver::of_follower(start(), Numbers::default(), followed(4, Some(header_sum(&third))), 1_000_000);
    let (taken, puts) =
        drive(&mut objects, first, |request, _| lists += u32::from(matches!(request, Request::List { .. })));
    let taken = taken.unwrap();
    assert_eq!((puts, lists), (vec![node_name(4), manifest_name(8), stream_name(3, 5)], 1));
    let tails: Vec<_> = taken.tails.iter().map(|tail| (tail.incarnation, tail.objects.len(), tail.end_seq)).collect();
    assert_eq!(tails, [(2, 0, 7), (3, 1, 5)]);
    let (fence, _) = decode(&objects[&stream_name(3, 5)]).unwrap();
    assert_eq!(fence.place.previous, sum);
    assert!(taken.held_until_us >= 1_000_000 + LEASE_US * 21 / 20);
    // An object of another chain is noticed.
    let mut objects = graph();
    put_stream(&mut objects, 3, 1, 4);
    let first = TakeOver::of_follower(start(), Numbers::default(), followed(4, Some(77)), 0);
    assert_eq!(drive(&mut objects, first, |_, _| ()).0.unwrap_err().kind(), ErrorKind::Damaged);
}

#[test]
fn a_follower_that_has_not_read_up_to_the_floor_claims_no_manifest() {
    let mut objects = graph();
    put_stream(&mut objects, 3, 1, 9);
    for (newest, is_behind) in [("3 3 4", false), ("3 3 5", true), ("6 6 2", true), ("6 2 5 3 1 6 1", false)] {
        let mut objects = objects.clone();
        objects.insert(manifest_name(8), newest.as_bytes().to_vec().into());
        objects.insert(stream_name(6, 1), object(6, 1, 0, Content::Fin));
        let first = TakeOver::of_follower(start(), Numbers::default(), followed(4, None), 0);
        let (taken, puts) = drive(&mut objects, first, |_, _| ());
        assert_eq!(taken.as_ref().err().map(Error::kind), is_behind.then_some(ErrorKind::Closed), "{newest}");
        assert_eq!(puts.contains(&manifest_name(9)), !is_behind, "{newest}: {puts:?}");
    }
}

#[test]
fn a_graph_that_is_not_there_or_damaged_is_an_error_with_its_name() {
    let (taken, _) = take_over(&mut Objects::new(), |_, _| ());
    assert_eq!(taken.unwrap_err().kind(), ErrorKind::NotFound);
    let name = stream_name(2, 5);
    let flipped = {
        let mut bytes = object(2, 5, 0, Content::Fin).to_vec();
        bytes[100] ^= 1;
        bytes.into()
    };
    let place = Place { database: Uuid::from_u128(6), incarnation: 2, seq: 5, nonce: [0; 16], previous: 0 };
    let elsewhere = encode(&Header { place, cut_us: 0, content: Content::Fin }, &[]).into();
    for wrong in [flipped, elsewhere, object(2, 6, 0, Content::Fin)] {
        let mut objects = graph();
        objects.insert(name.clone(), wrong);
        let error = take_over(&mut objects, |_, _| ()).0.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Damaged);
        assert!(error.message().contains(&name), "{}", error.message());
    }
    let mut objects = graph();
    put_stream(&mut objects, 2, 5, 6);
    objects.insert(stream_name(2, 6), object(2, 6, 1, Content::Fin));
    let error = take_over(&mut objects, |_, _| ()).0.unwrap_err();
    assert!(error.message().contains("it follows a header 00000001"), "{}", error.message());
}

#[test]
fn a_number_without_a_next_one_is_an_error() {
    for name in [node_name(u64::MAX), manifest_name(u64::MAX)] {
        let mut objects = graph();
        objects.insert(name.clone(), b"3 3 1".as_slice().into());
        let error = take_over(&mut objects, |_, _| ()).0.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Damaged);
        assert!(error.message().contains(&name), "{}", error.message());
    }
}

#[test]
fn a_bit_that_flips_on_the_way_is_read_again() {
    let mut objects = graph();
    objects.insert(stream_name(3, 1), object(3, 1, 0, Content::Fin));
    let whole = object(2, 5, 0, Content::Fin);
    let mut reads = 0;
    let (taken, _) = take_over(&mut objects, |request, objects| {
        if matches!(request, Request::Read { name, .. } if *name == stream_name(2, 5)) {
            reads += 1;
            let mut bytes = whole.to_vec();
            bytes[90] ^= u8::from(reads < 3);
            objects.insert(stream_name(2, 5), bytes.into());
        }
    });
    assert_eq!(taken.unwrap().tails[0].end, StreamEnd::Fin);
}

#[test]
fn a_stream_whose_end_is_known_must_be_whole() {
    let whole = || {
        let mut objects = graph();
        for incarnation in 2..=3 {
            let sum = put_stream(&mut objects, incarnation, 5, 6);
            objects.insert(stream_name(incarnation, 7), object(incarnation, 7, sum, Content::Fin));
        }
        objects.insert(manifest_name(7), Bytes::from_static(b"3 2 5 3 5"));
        objects
    };
    let (taken, puts) = take_over_with(&mut whole(), vec![(2, 7)], |_, _| {});
    assert_eq!((taken.unwrap().tails.len(), puts.len()), (2, 2), "no FENCE is put");
    for (end, lost, expected) in
        [(7, 6, "is missing"), (7, 7, "is missing"), (6, 0, "should end"), (8, 0, "should end")]
    {
        let mut objects = whole();
        objects.remove(&stream_name(2, lost));
        let (taken, puts) = take_over_with(&mut objects, vec![(2, end)], |_, _| {});
        let error = taken.unwrap_err();
        assert!(error.kind() == ErrorKind::Damaged && error.to_string().contains(expected), "{error}");
        assert_eq!(puts.len(), 2, "no FENCE takes the name of a lost object");
    }
}
