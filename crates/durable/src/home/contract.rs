//! The contract of every home, as tests: one function that every implementation runs on an empty home, and two for what
//! must survive when a home is opened again.

#![allow(clippy::single_range_in_vec_init, reason = "a list of one range is what is meant")]

use std::collections::BTreeSet;
use std::sync::{Arc, Barrier};

use bytes::Bytes;

use super::{ByteSource, Home, HomeError, HomeErrorKind, HomeResult, Name, Put, Request, WaitHome};

/// The names of a long list: more than an object store lists in one answer (1,000), twice over.
const MANY: usize = 2_500;

/// The length of a large object, in bytes: more than a home puts in one request, and no multiple of its parts.
const LARGE: usize = (24 << 20) + 12_345;

/// The behavior of a home without failures. The home is empty before, and has objects after.
pub(crate) fn check(home: &Arc<dyn Home>) {
    one_of_many_puts_wins(home);
    an_object_is_never_replaced(&**home);
    reads_tell_absent_from_empty(&**home);
    ranges_are_cut_at_the_end(&**home);
    a_list_has_the_objects_of_one_directory(&**home);
    many_names_are_listed_and_deleted(home);
    a_large_object_is_put_in_pieces(&**home);
    a_failed_source_puts_nothing(&**home);
    requests_under_way_are_all_answered(home);
}

/// Objects that must survive if the home is durable.
pub(crate) fn put_before_opening_again(home: &dyn Home) {
    assert_eq!(home.put_new(&name("kept/new"), Bytes::from_static(b"new")).unwrap(), Put::Done);
    home.put_unique(&name("kept/unique"), pieces(&[b"uni", b"que"])).unwrap();
    assert_eq!(home.put_new(&name("kept/deleted"), Bytes::from_static(b"x")).unwrap(), Put::Done);
    home.delete(vec![name("kept/deleted")]).unwrap();
}

/// What a home shows after it was opened again.
pub(crate) fn check_after_opening_again(home: &dyn Home) {
    assert_eq!(home.get(&name("kept/new")).unwrap().unwrap(), "new");
    assert_eq!(home.get(&name("kept/unique")).unwrap().unwrap(), "unique");
    assert_eq!(home.get(&name("kept/deleted")).unwrap(), None);
    assert_eq!(sorted(home, "kept"), ["kept/new", "kept/unique"]);
    assert_eq!(home.put_new(&name("kept/new"), Bytes::from_static(b"later")).unwrap(), Put::Taken);
    assert_eq!(home.get(&name("kept/new")).unwrap().unwrap(), "new");
}

/// Bytes in pieces.
#[derive(Debug)]
pub(crate) struct Pieces {
    /// The pieces that are left, last first.
    rest: Vec<Bytes>,
    /// The error after the last piece.
    error: Option<HomeError>,
}

impl ByteSource for Pieces {
    fn next_piece(&mut self) -> HomeResult<Option<Bytes>> {
        match self.rest.pop() {
            None => self.error.take().map_or(Ok(None), Err),
            piece => Ok(piece),
        }
    }
}

/// A source of these pieces.
pub(crate) fn pieces(pieces: &[&[u8]]) -> Box<dyn ByteSource> {
    let rest = pieces.iter().rev().map(|piece| Bytes::copy_from_slice(piece)).collect();
    Box::new(Pieces { rest, error: None })
}

/// A source that makes this many bytes of some pattern and fails then.
pub(crate) fn failing(len: usize) -> Box<dyn ByteSource> {
    let error = HomeError::new(HomeErrorKind::Source, "the source ran dry");
    Box::new(Pieces { rest: vec![Bytes::from(pattern(len))], error: Some(error) })
}

/// Bytes of which no two stretches of any length above a few bytes are alike.
pub(crate) fn pattern(len: usize) -> Vec<u8> {
    (0..len as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// A name that is known to be good.
pub(crate) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn sorted(home: &dyn Home, directory: &str) -> Vec<String> {
    let mut names: Vec<_> = home.list(&name(directory)).unwrap().iter().map(Name::to_string).collect();
    names.sort_unstable();
    names
}

fn one_of_many_puts_wins(home: &Arc<dyn Home>) {
    const THREADS: u8 = 16;
    for round in 0..8 {
        let contested = name(&format!("race/{round}"));
        let start = Barrier::new(THREADS.into());
        let won: Vec<u8> = std::thread::scope(|scope| {
            let put = |thread: u8| {
                let (start, contested) = (&start, &contested);
                scope.spawn(move || {
                    start.wait();
                    let put = home.put_new(contested, Bytes::from(vec![thread; 5_000])).unwrap();
                    // Winner or not: once a put is answered, the winner's bytes are there, all of them.
                    let seen = home.get(contested).unwrap();
                    (thread, put, seen)
                })
            };
            let threads: Vec<_> = (0..THREADS).map(put).collect();
            let answers: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
            let won: Vec<_> =
                answers.iter().filter(|(_, put, _)| *put == Put::Done).map(|(thread, ..)| *thread).collect();
            for (thread, _, seen) in &answers {
                // A store may refuse a put because another is under way, before that one's object can be seen.
                if let Some(seen) = seen {
                    assert_eq!(seen, &vec![won[0]; 5_000], "thread {thread} read other bytes");
                }
            }
            won
        });
        assert_eq!(won.len(), 1, "winners of round {round}: {won:?}");
        assert_eq!(home.get(&contested).unwrap().unwrap(), vec![won[0]; 5_000]);
    }
    assert_eq!(home.list(&name("race")).unwrap().len(), 8);
}

fn an_object_is_never_replaced(home: &dyn Home) {
    let put_once = name("once/new");
    assert_eq!(home.put_new(&put_once, Bytes::from_static(b"first")).unwrap(), Put::Done);
    assert_eq!(home.put_new(&put_once, Bytes::from_static(b"other")).unwrap(), Put::Taken);
    assert_eq!(home.put_new(&put_once, Bytes::from_static(b"first")).unwrap(), Put::Taken, "also the same bytes");
    assert_eq!(home.get(&put_once).unwrap().unwrap(), "first");
    let unique = name("once/unique");
    home.put_unique(&unique, pieces(&[b"in ", b"", b"pieces"])).unwrap();
    assert_eq!(home.put_new(&unique, Bytes::from_static(b"other")).unwrap(), Put::Taken);
    assert_eq!(home.get(&unique).unwrap().unwrap(), "in pieces");
    // After an answer that was lost, the caller puts the same bytes again.
    home.put_unique(&unique, pieces(&[b"in pieces"])).unwrap();
    assert_eq!(home.get(&unique).unwrap().unwrap(), "in pieces");
}

fn reads_tell_absent_from_empty(home: &dyn Home) {
    let (empty, unique, absent) = (name("empty/new"), name("empty/unique"), name("empty/absent"));
    assert_eq!(home.put_new(&empty, Bytes::new()).unwrap(), Put::Done);
    home.put_unique(&unique, pieces(&[])).unwrap();
    for there in [&empty, &unique] {
        assert_eq!(home.get(there).unwrap().unwrap(), "");
        assert_eq!(home.head(there).unwrap(), Some(0));
        assert_eq!(home.ranges(there, vec![0..10, 0..0]).unwrap().unwrap(), ["", ""]);
        assert_eq!(home.ranges(there, vec![]).unwrap().unwrap(), Vec::<Bytes>::new());
    }
    for ranges in [vec![], vec![0..0], vec![0..1], vec![5..5, 2..4]] {
        assert_eq!(home.ranges(&absent, ranges.clone()).unwrap(), None, "{ranges:?}");
    }
    assert_eq!(home.get(&absent).unwrap(), None);
    assert_eq!(home.head(&absent).unwrap(), None);
    // The name of a directory is no object.
    assert_eq!(home.get(&name("empty")).unwrap(), None);
    assert_eq!(home.head(&name("empty")).unwrap(), None);
}

fn ranges_are_cut_at_the_end(home: &dyn Home) {
    let (object, content) = (name("ranges/object"), pattern(100_000));
    assert_eq!(home.put_new(&object, Bytes::from(content.clone())).unwrap(), Put::Done);
    assert_eq!(home.head(&object).unwrap(), Some(100_000));
    let cases = [
        (0..1, 0..1),
        (0..100_000, 0..100_000),
        (99_999..100_000, 99_999..100_000),
        (99_990..100_010, 99_990..100_000),
        (100_000..100_001, 0..0),
        (100_000..100_000, 0..0),
        (200_000..300_000, 0..0),
        (7..7, 0..0),
        (50_000..u64::MAX, 50_000..100_000),
        (u64::MAX - 1..u64::MAX, 0..0),
    ];
    for (asked, expected) in &cases {
        let read = home.ranges(&object, vec![asked.clone()]).unwrap().unwrap();
        assert_eq!(read, [&content[expected.clone()]], "{asked:?}");
    }
    // All in one request; they overlap, and are not in order.
    let read = home.ranges(&object, cases.iter().rev().map(|(asked, _)| asked.clone()).collect()).unwrap().unwrap();
    let expected: Vec<_> = cases.iter().rev().map(|(_, expected)| &content[expected.clone()]).collect();
    assert_eq!(read, expected);
    let scattered: Vec<_> = (0..100).map(|n| n * 997..n * 997 + 20).collect();
    let read = home.ranges(&object, scattered.clone()).unwrap().unwrap();
    for (range, bytes) in scattered.iter().zip(&read) {
        assert_eq!(bytes, &content[range.start as usize..range.end as usize], "{range:?}");
    }
    #[expect(clippy::reversed_empty_ranges, reason = "such a range is what is tested")]
    let error = home.ranges(&object, vec![0..4, 5..4]).unwrap_err();
    assert_eq!(error.kind(), HomeErrorKind::Invalid);
    assert!(error.message().contains("bytes 5 to 4 of") && error.message().contains("ranges/object"), "{error}");
}

fn a_list_has_the_objects_of_one_directory(home: &dyn Home) {
    for text in ["list/a", "list/b", "list/below/a", "list/below/deeper/b", "list-beside/a", "listed/a"] {
        assert_eq!(home.put_new(&name(text), Bytes::from_static(b"x")).unwrap(), Put::Done);
    }
    assert_eq!(sorted(home, "list"), ["list/a", "list/b"]);
    assert_eq!(sorted(home, "list/below"), ["list/below/a"]);
    assert_eq!(sorted(home, "list/below/deeper"), ["list/below/deeper/b"]);
    assert!(sorted(home, "lis").is_empty(), "a directory is no prefix");
    assert!(sorted(home, "list/a").is_empty(), "an object is no directory");
    assert!(sorted(home, "nowhere/at/all").is_empty());
}

fn many_names_are_listed_and_deleted(home: &Arc<dyn Home>) {
    let many: BTreeSet<Name> = (0..MANY).map(|n| name(&format!("many/{:08x}-{n}", n * 7_919))).collect();
    // All at once: a home must not be troubled by requests that wait.
    let (sender, answers) = std::sync::mpsc::channel();
    for object in &many {
        let sender = sender.clone();
        let put = Request::PutNew { name: object.clone(), bytes: Bytes::from_static(b"one of many") };
        home.submit(put, Box::new(move |answer| sender.send(answer).unwrap()));
    }
    drop(sender);
    for answer in answers {
        answer.unwrap();
    }
    let listed = home.list(&name("many")).unwrap();
    assert_eq!(listed.len(), MANY, "each name once");
    assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), many);
    let (kept, deleted): (Vec<_>, Vec<_>) = many.into_iter().enumerate().partition(|(at, _)| at % 10 == 0);
    let (kept, deleted) = (kept.into_iter().map(|(_, name)| name), deleted.into_iter().map(|(_, name)| name));
    let mut names: Vec<_> = deleted.collect();
    names.push(name("many/absent"));
    names.push(name("nowhere/absent"));
    home.delete(names.clone()).unwrap();
    assert_eq!(home.list(&name("many")).unwrap().into_iter().collect::<BTreeSet<_>>(), kept.collect());
    home.delete(names).unwrap();
    home.delete(vec![]).unwrap();
    home.delete(vec![name("nowhere/absent")]).unwrap();
}

fn a_large_object_is_put_in_pieces(home: &dyn Home) {
    let (object, content) = (name("large/object"), pattern(LARGE));
    // Pieces of odd lengths, some larger than a part of an upload.
    let mut cuts: Vec<&[u8]> = vec![&content[..1], &content[1..11 << 20]];
    cuts.extend(content[11 << 20..].chunks(777_777));
    home.put_unique(&object, pieces(&cuts)).unwrap();
    assert_eq!(home.head(&object).unwrap(), Some(LARGE as u64));
    assert!(home.get(&object).unwrap().unwrap() == content, "the bytes differ");
    let len = LARGE as u64;
    let middle = 16 << 20;
    let read = home.ranges(&object, vec![len - 5..len + 5, middle - 10..middle + 10, 0..3]).unwrap().unwrap();
    let middle = middle as usize;
    assert_eq!(read, [&content[LARGE - 5..], &content[middle - 10..middle + 10], &content[..3]]);
    assert_eq!(sorted(home, "large"), ["large/object"], "nothing of the upload is left");
    home.delete(vec![object.clone()]).unwrap();
    assert_eq!(home.head(&object).unwrap(), None);
}

fn a_failed_source_puts_nothing(home: &dyn Home) {
    for len in [10, LARGE] {
        let object = name("failed/object");
        let error = home.put_unique(&object, failing(len)).unwrap_err();
        assert_eq!(error.kind(), HomeErrorKind::Source);
        assert!(error.message().contains("the source ran dry"), "{error}");
        assert_eq!(home.get(&object).unwrap(), None);
        assert!(sorted(home, "failed").is_empty());
    }
}

fn requests_under_way_are_all_answered(home: &Arc<dyn Home>) {
    let (sender, answers) = std::sync::mpsc::channel();
    let object = name("once/new");
    let requests = [
        Request::PutNew { name: object.clone(), bytes: Bytes::new() },
        Request::Get { name: object.clone() },
        Request::Ranges { name: object.clone(), ranges: vec![0..1] },
        Request::Head { name: object },
        Request::List { directory: name("once") },
        Request::Delete { names: vec![name("once/absent")] },
    ];
    let count = requests.len();
    for request in requests {
        let sender = sender.clone();
        home.submit(request, Box::new(move |answer| sender.send(answer).unwrap()));
    }
    drop(sender);
    assert_eq!(answers.iter().filter(Result::is_ok).count(), count);
}
