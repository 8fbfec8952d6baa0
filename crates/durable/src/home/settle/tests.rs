//! Settling on a home that loses requests and answers, delivers puts late, and says `Taken` for conflicts.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use super::super::contract::name;
use super::super::{Completion, HomeTraits, MemoryHome, Reply, Request, draw};
use super::*;

/// What a home does with one request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    None,
    /// Nothing arrives; the sender is told that it is unknown.
    LostRequest,
    /// The request is carried out; the sender is told that it is unknown.
    LostAnswer,
    /// The request is told to be unknown, and is carried out before the next one.
    Late,
    /// The same, but before the request after the next one.
    Later,
    /// The store refuses, and says so.
    Busy,
    /// `Taken` for a put that was not carried out, though the name is free.
    Conflict,
    /// The home has failed for good.
    Broken,
}

/// Memory with a list of faults. After the last one, there are none.
#[derive(Debug, Default)]
struct FaultyHome {
    objects: MemoryHome,
    faults: Mutex<VecDeque<Fault>>,
    /// Requests that are still to arrive, each with the number of the request before which it does.
    late: Mutex<Vec<(usize, Request)>>,
    requests: Mutex<Vec<&'static str>>,
}

impl FaultyHome {
    fn new(faults: &[Fault]) -> Self {
        FaultyHome { faults: Mutex::new(faults.iter().copied().collect()), ..FaultyHome::default() }
    }
}

impl Home for FaultyHome {
    fn submit(&self, request: Request, done: Completion) {
        let number = self.requests.lock().len();
        self.requests.lock().push(request.verb());
        for (_, late) in self.late.lock().extract_if(.., |(at, _)| *at <= number) {
            let _ = self.objects.wait_for(late);
        }
        let failed = |kind| Err(HomeError::new(kind, format!("the request was {kind:?}")));
        let fault = self.faults.lock().pop_front().unwrap_or(Fault::None);
        done(match fault {
            Fault::None => self.objects.wait_for(request),
            Fault::LostRequest => failed(HomeErrorKind::Unknown),
            Fault::LostAnswer => {
                let _ = self.objects.wait_for(request);
                failed(HomeErrorKind::Unknown)
            }
            Fault::Late | Fault::Later => {
                self.late.lock().push((number + if fault == Fault::Late { 1 } else { 2 }, request));
                failed(HomeErrorKind::Unknown)
            }
            Fault::Busy => failed(HomeErrorKind::Unavailable),
            Fault::Conflict if request.verb() == "put" => Ok(Reply::Put(Put::Taken)),
            Fault::Conflict => self.objects.wait_for(request),
            Fault::Broken => failed(HomeErrorKind::Failed),
        });
    }

    fn describe(&self, name: &str) -> String {
        self.objects.describe(name)
    }

    fn traits(&self) -> HomeTraits {
        self.objects.traits()
    }
}

/// The name that is put.
fn the_name() -> Name {
    name("log/1")
}

fn object(bytes: &'static [u8]) -> NewObject {
    let is_intact = |bytes: &[u8]| bytes.starts_with(b"nonce-");
    NewObject { bytes: Bytes::from_static(bytes), likeness: Likeness::First { count: 7, is_intact } }
}

fn own() -> NewObject {
    object(b"nonce-A and content")
}

/// Settles on a home with faults. Returns the result, the requests, and the pauses.
fn settle(home: &FaultyHome, requests: Option<u32>) -> (HomeResult<Settled>, Vec<&'static str>, Vec<Duration>) {
    let mut pauses = Vec::new();
    let settled = put_settled(home, &the_name(), own(), requests, &mut |pause| pauses.push(pause));
    (settled, home.requests.lock().clone(), pauses)
}

#[test]
fn a_free_name_takes_one_request_and_a_taken_one_two() {
    let home = FaultyHome::default();
    assert_eq!(settle(&home, Some(1)), (Ok(Settled::Own), vec!["put"], vec![]));
    let home = FaultyHome::default();
    home.objects.put_new(&the_name(), Bytes::from_static(b"nonce-B and content")).unwrap();
    assert_eq!(
        settle(&home, Some(2)),
        (Ok(Settled::Another(Bytes::from_static(b"nonce-B"))), vec!["put", "read"], vec![])
    );
}

#[test]
fn every_kind_of_lost_or_late_put_is_settled_as_ones_own() {
    use Fault::{Busy, Conflict, Late, Later, LostAnswer, LostRequest, None};
    let cases: [(&[Fault], &[&str]); 9] = [
        (&[LostAnswer], &["put", "read"]),
        (&[LostRequest], &["put", "read", "put"]),
        (&[Late], &["put", "read"]),
        // The first put arrives after the name was seen free, so the second one is refused.
        (&[Later], &["put", "read", "put", "read"]),
        (&[LostRequest, None, Late], &["put", "read", "put", "read"]),
        (&[Busy, Busy], &["put", "put", "put"]),
        (&[Conflict], &["put", "read", "put"]),
        (&[LostAnswer, Busy, LostRequest], &["put", "read", "read", "read"]),
        (&[Conflict, None, LostAnswer], &["put", "read", "put", "read"]),
    ];
    for (faults, expected) in cases {
        let home = FaultyHome::new(faults);
        let (settled, requests, _) = settle(&home, Option::None);
        assert_eq!((settled, &*requests), (Ok(Settled::Own), expected), "{faults:?}");
        assert_eq!(home.objects.get(&the_name()).unwrap().unwrap(), own().bytes);
    }
}

#[test]
fn the_result_is_true_for_random_faults_and_two_writers() {
    use Fault::{Busy, Conflict, Late, Later, LostAnswer, LostRequest};
    let (mut own_wins, mut other_wins) = (0, 0);
    for seed in 0..2_000_u64 {
        let mut state = seed;
        let mut faults = || {
            let count = draw::bits(&mut state) % 8;
            let kinds = [Fault::None, LostRequest, LostAnswer, Late, Later, Busy, Conflict];
            (0..count).map(|_| kinds[(draw::bits(&mut state) % 7) as usize]).collect::<Vec<_>>()
        };
        let home = FaultyHome::new(&faults());
        let other = object(b"nonce-B, and longer");
        // The two take turns: each sends a request and takes the answer, and then the other does.
        let (one, other) = (Settle::new(own()), Settle::new(other));
        let (mut writers, mut steps) = ([one.0, other.0], [Some(one.1), Some(other.1)]);
        let mut results = [None, None];
        while results.iter().any(Option::is_none) {
            let turn = (draw::bits(&mut state) % 2) as usize;
            match steps[turn].take() {
                Some(SettleStep::Settled(settled)) => results[turn] = Some(settled),
                Some(SettleStep::WaitUntil(_)) => steps[turn] = Some(writers[turn].resumed()),
                Some(request) => steps[turn] = Some(carry_out(&mut writers[turn], &home, &the_name(), request).0),
                None => {}
            }
        }
        let found = home.objects.get(&the_name()).unwrap().unwrap();
        let is_own = found == own().bytes;
        let expected = |wins: bool| if wins { Settled::Own } else { Settled::Another(found.slice(..7)) };
        assert_eq!(results[0], Some(expected(is_own)), "seed {seed}");
        assert_eq!(results[1], Some(expected(!is_own)), "seed {seed}");
        own_wins += u32::from(is_own);
        other_wins += u32::from(!is_own);
    }
    assert!(own_wins > 100 && other_wins > 100, "{own_wins} and {other_wins}");
}

#[test]
fn after_the_last_request_the_error_says_whether_the_put_may_have_succeeded() {
    use Fault::{Broken, Busy, Conflict, LostAnswer, LostRequest};
    let cases: [(&[Fault], u32, HomeErrorKind); 6] = [
        (&[Busy; 9], 4, HomeErrorKind::Unavailable),
        (&[LostAnswer, Busy, Busy, Busy], 4, HomeErrorKind::Unknown),
        (&[LostRequest; 9], 3, HomeErrorKind::Unknown),
        (&[Broken], 4, HomeErrorKind::Failed),
        (&[LostAnswer, Broken], 4, HomeErrorKind::Unknown),
        (&[Conflict], 1, HomeErrorKind::Unknown),
    ];
    for (faults, most, kind) in cases {
        let home = FaultyHome::new(faults);
        let (settled, requests, _) = settle(&home, Some(most));
        assert_eq!(settled.unwrap_err().kind(), kind, "{faults:?}");
        assert!(requests.len() <= most as usize, "{requests:?}");
    }
    let (settled, requests, _) = settle(&FaultyHome::default(), Some(0));
    assert_eq!((settled.unwrap_err().kind(), requests.len()), (HomeErrorKind::Unavailable, 0));
}

#[test]
fn pauses_double_up_to_a_second_and_differ_by_writer() {
    let home = FaultyHome::new(&[Fault::Busy; 12]);
    let (settled, requests, pauses) = settle(&home, None);
    assert_eq!((settled, requests.len(), pauses.len()), (Ok(Settled::Own), 13, 12));
    for (at, pause) in pauses.iter().enumerate() {
        let longest = Duration::from_micros((PAUSE_US_FIRST << at).min(PAUSE_US_MAX));
        assert!((longest / 2..=longest).contains(pause), "pause {at}: {pause:?}");
    }
    let mut others = Vec::new();
    let home = FaultyHome::new(&[Fault::Busy; 12]);
    let other = object(b"nonce-B and content");
    put_settled(&home, &the_name(), other, None, &mut |pause| others.push(pause)).unwrap();
    assert!(pauses.iter().zip(&others).all(|(one, other)| one != other));
}

#[test]
fn whole_objects_are_compared_with_their_lengths() {
    let home: Arc<dyn Home> = Arc::new(MemoryHome::new());
    let settle = |text: &'static str| {
        let object = NewObject { bytes: Bytes::from_static(text.as_bytes()), likeness: Likeness::Whole };
        put_settled(&*home, &the_name(), object, Some(2), &mut |_| {}).unwrap()
    };
    assert_eq!(settle("abc"), Settled::Own);
    assert_eq!(settle("abc"), Settled::Own, "equal bytes are one's own, so they need a nonce");
    for other in ["ab", "abcd", "abd"] {
        assert_eq!(settle(other), Settled::Another(Bytes::from_static(b"abc")));
    }
}
