//! The rules of a writer, one by one.

use std::collections::BTreeMap;

use mangrove_graph::{Error, ErrorKind, TabletId};

use super::super::format::{Batch, END_BYTES_MAX, decode};
use super::*;
use crate::home::{HomeError, HomeErrorKind};

const MS: u64 = 1_000;
/// How long a put may be unsettled, by default.
const UNSETTLED_US_MAX: u64 = 5_000_000;

fn at(us: u64) -> Now {
    Now { us, unix_us: 1_763_850_000_000_000 + us }
}

fn start(held_until_us: u64) -> StreamStart {
    StreamStart { database: Uuid::from_u128(1), incarnation: 4, nonce_seed: [9; 16], durable_ts: 100, held_until_us }
}

fn commit(ts: u64, bytes: usize) -> HandedOver {
    HandedOver { ts, tablets: vec![TabletId((ts % 5) as u16)], records: vec![ts as u8; bytes] }
}

/// A writer with what it has put, and the actions that are no puts.
struct Harness {
    writer: Writer,
    puts: BTreeMap<u64, Bytes>,
    other: Vec<Action>,
}

impl Harness {
    fn new(options: WriterOptions, held_until_us: u64) -> Self {
        let (writer, actions) = Writer::new(start(held_until_us), options, at(0));
        let mut harness = Harness { writer, puts: BTreeMap::new(), other: Vec::new() };
        harness.take(actions);
        harness
    }

    /// A writer whose first object is settled after 20 ms.
    fn running() -> Self {
        let mut harness = Harness::new(WriterOptions::default(), 0);
        harness.settle(1, 20 * MS);
        harness.other.clear();
        harness
    }

    fn take(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Put { seq, name, bytes } => {
                    assert_eq!(name, stream_name(4, seq));
                    assert!(self.puts.insert(seq, bytes).is_none(), "a name is used once");
                }
                other => self.other.push(other),
            }
        }
    }

    /// Hands over a commit and lets the watermark pass it.
    fn commit(&mut self, ts: u64, bytes: usize, us: u64) {
        let actions = self.writer.hand_over(commit(ts, bytes), at(us));
        self.take(actions);
        let actions = self.writer.watermark(ts, at(us));
        self.take(actions);
    }

    fn settle(&mut self, seq: u64, us: u64) {
        let actions = self.writer.settled(seq, &Settled::Own, at(us));
        self.take(actions);
    }

    fn time(&mut self, us: u64) {
        let actions = self.writer.time(at(us));
        self.take(actions);
    }

    fn batch(&self, seq: u64) -> Batch {
        let (header, _) = decode(&self.puts[&seq]).unwrap();
        let Content::Records(batch) = header.content else { panic!("{seq} has no records") };
        batch
    }

    fn acknowledged(&self) -> Vec<u64> {
        self.other
            .iter()
            .filter_map(|action| if let Action::Acknowledge { through, .. } = action { Some(*through) } else { None })
            .collect()
    }
}

fn end(content: Content) -> Bytes {
    let place = Place { database: Uuid::from_u128(1), incarnation: 4, seq: 2, nonce: [1; 16], previous: 0 };
    encode(&Header { place, cut_us: 0, content }, &[]).into()
}

#[test]
fn the_first_object_is_empty_and_objects_form_a_chain() {
    let mut harness = Harness::running();
    assert_eq!(harness.batch(1), Batch { through: 100, ..Batch::default() });
    harness.commit(101, 3, 30 * MS);
    let (header, records) = decode(&harness.puts[&2]).unwrap();
    assert_eq!(header.place.previous, header_sum(&harness.puts[&1]));
    assert_ne!(header.place.nonce, decode(&harness.puts[&1]).unwrap().0.place.nonce);
    assert_eq!(&*records, [101; 3]);
    let batch = Batch { first_ts: 101, last_ts: 101, through: 101, commits: 1, tablets: [TabletId(1)].into() };
    assert_eq!(header.content, Content::Records(batch));
}

#[test]
fn commits_wait_for_the_watermark_and_are_put_in_order() {
    let mut harness = Harness::running();
    for ts in [104, 102, 103] {
        let actions = harness.writer.hand_over(commit(ts, 1), at(30 * MS));
        assert_eq!(actions, []);
    }
    let actions = harness.writer.watermark(103, at(31 * MS));
    harness.take(actions);
    let (_, records) = decode(&harness.puts[&2]).unwrap();
    assert_eq!((&*records, harness.batch(2).through), (&[102, 103][..], 103));
    harness.settle(2, 50 * MS);
    assert_eq!((harness.acknowledged(), harness.puts.len()), (vec![103], 2));
}

#[test]
fn records_without_a_commit_begin_the_next_object() {
    let mut harness = Harness::running();
    let (number, actions) = harness.writer.lead(b"names", false, at(30 * MS));
    assert_eq!((number, actions), (1, vec![]), "a record of names alone begins no object");
    let (number, actions) = harness.writer.lead(b" index", true, at(31 * MS));
    harness.take(actions);
    let (_, records) = decode(&harness.puts[&2]).unwrap();
    assert_eq!(
        (number, &*records, harness.batch(2)),
        (2, &b"names index"[..], Batch { through: 100, ..Batch::default() })
    );
    // The first object is in flight, so these wait for half of the usual time of a put.
    let (_, actions) = harness.writer.lead(b"more", false, at(32 * MS));
    harness.take(actions);
    harness.commit(101, 1, 33 * MS);
    harness.settle(2, 50 * MS);
    assert_eq!(harness.other, [Action::Acknowledge { through: 100, leading: 2 }]);
    let (_, records) = decode(&harness.puts[&3]).unwrap();
    assert_eq!(&*records, [b"more", &[101][..]].concat());
    harness.settle(3, 70 * MS);
    assert_eq!(harness.other[1], Action::Acknowledge { through: 101, leading: 3 });
    let status = harness.writer.status(at(70 * MS));
    let counts = WriterCounts { objects: 3, bytes: status.counts.bytes, commits: 1, record_bytes: 16 };
    assert_eq!((status.counts, status.waiting_bytes, status.in_flight), (counts, 0, 0));
    // FIN comes after all that callers wait for.
    let actions = harness.writer.finish(at(80 * MS));
    harness.take(actions);
    assert_eq!(decode(&harness.puts[&4]).unwrap().0.content, Content::Fin);
}

#[test]
fn only_a_prefix_without_a_gap_is_acknowledged() {
    let mut harness = Harness::running();
    for (ts, us) in [(101, 30), (102, 31), (103, 60)] {
        harness.commit(ts, 300 << 10, us * MS);
    }
    assert_eq!(harness.puts.len(), 4, "large commits have puts of their own");
    harness.settle(4, 70 * MS);
    harness.settle(3, 71 * MS);
    assert_eq!((harness.acknowledged(), harness.writer.floor()), (vec![], StreamFloor { seq: 2, through: 100 }));
    harness.settle(2, 72 * MS);
    assert_eq!((harness.acknowledged(), harness.writer.floor()), (vec![103], StreamFloor { seq: 5, through: 103 }));
    assert_eq!(harness.writer.acknowledged(), 103);
}

#[test]
fn a_further_put_waits_for_half_of_the_usual_time_or_for_many_bytes() {
    let mut harness = Harness::running();
    harness.commit(101, 10, 30 * MS);
    harness.commit(102, 10, 31 * MS);
    harness.commit(103, 10, 32 * MS);
    assert_eq!(harness.puts.len(), 2);
    let wake = harness.writer.wake_at_us().unwrap();
    assert_eq!(wake, 31 * MS + 10 * MS + 1);
    harness.time(wake - 1);
    assert_eq!(harness.puts.len(), 2);
    harness.time(wake);
    assert_eq!(harness.batch(3).commits, 2);
    harness.commit(104, 256 << 10, 42 * MS);
    harness.commit(105, 256 << 10, 42 * MS);
    assert_eq!(harness.puts.len(), 5);
    harness.commit(106, 256 << 10, 42 * MS);
    harness.time(1000 * MS);
    assert_eq!(harness.puts.len(), 5, "four objects are in flight at most");
    harness.settle(3, 1001 * MS);
    assert_eq!(harness.puts.len(), 5, "an object after a gap still counts");
    harness.settle(2, 1002 * MS);
    assert_eq!(harness.puts.len(), 6);
}

#[test]
fn an_interval_and_a_rate_space_the_puts() {
    let rate = WriterOptions { puts_per_second: NonZeroU32::new(20), ..WriterOptions::default() };
    let interval = WriterOptions { interval_us: 50 * MS, ..WriterOptions::default() };
    for options in [rate, interval] {
        let mut harness = Harness::new(options, 0);
        harness.settle(1, 5 * MS);
        harness.commit(101, 1, 10 * MS);
        harness.commit(102, 1, 49 * MS);
        assert_eq!((harness.puts.len(), harness.writer.wake_at_us()), (1, Some(50 * MS)));
        harness.time(50 * MS);
        assert_eq!(harness.batch(2).commits, 2);
        harness.settle(2, 55 * MS);
        harness.commit(103, 1, 500 * MS);
        assert_eq!(harness.puts.len(), 3, "a commit after a pause does not wait");
    }
}

#[test]
fn a_stalled_writer_refuses_and_goes_on_by_itself() {
    let mut harness = Harness::running();
    harness.commit(101, 1, 30 * MS);
    harness.writer.troubled(2, "connection refused");
    assert_eq!(harness.writer.wake_at_us(), Some(30 * MS + UNSETTLED_US_MAX));
    assert_eq!(harness.writer.admit(at(30 * MS + UNSETTLED_US_MAX - 1)), Ok(()));
    harness.time(30 * MS + UNSETTLED_US_MAX);
    assert_eq!(harness.other, [Action::Stall]);
    let refusal = harness.writer.admit(at(30 * MS + 7_200_000)).unwrap_err();
    let error = Error::from(refusal);
    assert_eq!(error.kind(), ErrorKind::ReadOnly);
    assert!(error.message().contains("for 7.2 s (connection refused)"), "{}", error.message());
    harness.settle(2, 30 * MS + 9_000_000);
    assert_eq!(harness.other, [Action::Stall, Action::Acknowledge { through: 101, leading: 0 }, Action::Resume]);
    assert_eq!(harness.writer.admit(at(10_000_000)), Ok(()));
}

#[test]
fn many_waiting_bytes_stall_the_writer() {
    let mut harness = Harness::running();
    let half = WAITING_BYTES_MAX as usize / 2;
    for ts in 101..=104 {
        harness.commit(ts, 1, 30 * MS);
        harness.time((30 + ts) * MS);
    }
    let actions = harness.writer.hand_over(commit(110, half), at(200 * MS));
    assert_eq!(actions, []);
    let actions = harness.writer.hand_over(commit(111, half + 1), at(200 * MS));
    assert_eq!(actions, [Action::Stall]);
    let bytes = WAITING_BYTES_MAX + 1;
    assert_eq!(harness.writer.admit(at(200 * MS)), Err(Refusal::Backlog { bytes }));
}

#[test]
fn a_fenced_writer_acknowledges_nothing_more() {
    let mut harness = Harness::running();
    harness.commit(101, 300 << 10, 30 * MS);
    harness.commit(102, 300 << 10, 30 * MS);
    let fence = Settled::Another(end(Content::Fence { by: 7 }));
    let actions = harness.writer.settled(3, &fence, at(40 * MS));
    assert_eq!(actions, [Action::Stop { by: Some(7) }]);
    harness.settle(2, 41 * MS);
    harness.time(10_000 * MS);
    assert_eq!((harness.acknowledged(), harness.writer.wake_at_us()), (vec![], None));
    assert_eq!(harness.writer.ask_to_read(at(41 * MS)), (ReadPermit::Never, vec![]));
    let error = Error::from(harness.writer.admit(at(50 * MS)).unwrap_err());
    assert_eq!(error.kind(), ErrorKind::Closed);
    assert!(error.message().contains("incarnation 7"), "{}", error.message());
}

#[test]
fn the_end_comes_after_everything_is_acknowledged() {
    let mut harness = Harness::running();
    harness.commit(101, 300 << 10, 30 * MS);
    harness.commit(102, 1, 31 * MS);
    let actions = harness.writer.finish(at(32 * MS));
    assert_eq!((actions, harness.puts.len()), (vec![], 2));
    assert_eq!(harness.writer.admit(at(32 * MS)), Err(Refusal::Finishing));
    assert_eq!(harness.writer.ask_to_read(at(32 * MS)).0, ReadPermit::Never);
    harness.settle(2, 33 * MS);
    assert_eq!(harness.batch(3).last_ts, 102);
    harness.settle(3, 34 * MS);
    let (fin, _) = decode(&harness.puts[&4]).unwrap();
    assert_eq!(fin.content, Content::Fin);
    assert!(harness.puts[&4].len() <= END_BYTES_MAX);
    harness.settle(4, 50 * MS);
    let acknowledge = |through| Action::Acknowledge { through, leading: 0 };
    assert_eq!(harness.other, [acknowledge(101), acknowledge(102), Action::Finish]);
    assert_eq!(harness.writer.wake_at_us(), None);
}

#[test]
fn a_hold_delays_acknowledgements_and_reads() {
    let mut harness = Harness::new(WriterOptions::default(), 315 * MS);
    harness.settle(1, 20 * MS);
    harness.commit(101, 1, 30 * MS);
    harness.settle(2, 50 * MS);
    assert_eq!(harness.writer.ask_to_read(at(51 * MS)).0, ReadPermit::Later(Some(315 * MS)));
    assert_eq!((harness.acknowledged(), harness.writer.wake_at_us()), (vec![], Some(315 * MS)));
    harness.time(315 * MS);
    assert_eq!(harness.acknowledged(), [101]);
    assert_eq!(harness.writer.ask_to_read(at(315 * MS)).0, ReadPermit::Granted);
}

#[test]
fn the_lease_counts_from_the_first_attempt_of_the_prefix() {
    let mut harness = Harness::running();
    let permit = |harness: &mut Harness, us| harness.writer.ask_to_read(at(us)).0;
    assert_eq!(permit(&mut harness, 299 * MS), ReadPermit::Granted, "the first object was sent at 0");
    harness.commit(101, 300 << 10, 200 * MS);
    harness.commit(102, 300 << 10, 250 * MS);
    harness.settle(3, 290 * MS);
    assert_eq!(permit(&mut harness, 300 * MS), ReadPermit::Later(None), "an object after a gap proves nothing");
    harness.settle(2, 310 * MS);
    assert_eq!(permit(&mut harness, 549 * MS), ReadPermit::Granted);
    assert_eq!(permit(&mut harness, 550 * MS), ReadPermit::Later(None));
}

#[test]
fn an_idle_writer_looks_at_the_next_name_when_a_reader_asks() {
    let mut harness = Harness::running();
    let probe = Action::Probe { name: stream_name(4, 2) };
    assert_eq!(harness.writer.ask_to_read(at(400 * MS)), (ReadPermit::Later(None), vec![probe.clone()]));
    assert_eq!(harness.writer.ask_to_read(at(401 * MS)), (ReadPermit::Later(None), vec![]));
    let actions = harness.writer.probed(&Ok(None), at(410 * MS));
    assert_eq!(actions, []);
    assert_eq!(harness.writer.ask_to_read(at(549 * MS)), (ReadPermit::Granted, vec![]));
    // Half of the lease is over.
    assert_eq!(harness.writer.ask_to_read(at(550 * MS)), (ReadPermit::Granted, vec![probe.clone()]));
    assert_eq!(harness.writer.ask_to_read(at(699 * MS)), (ReadPermit::Granted, vec![]));
    assert_eq!(harness.writer.ask_to_read(at(700 * MS)), (ReadPermit::Later(None), vec![]));
    harness.writer.probed(&Err(HomeError::new(HomeErrorKind::Unknown, "time-out")), at(750 * MS));
    assert_eq!(harness.writer.ask_to_read(at(750 * MS)), (ReadPermit::Later(None), vec![probe.clone()]));
    harness.writer.probed(&Err(HomeError::new(HomeErrorKind::Unknown, "time-out")), at(800 * MS));
    assert_eq!(harness.writer.ask_to_read(at(800 * MS)).1, [probe]);
    let found = Ok(Some(end(Content::Fence { by: 6 })));
    assert_eq!(harness.writer.probed(&found, at(810 * MS)), [Action::Stop { by: Some(6) }]);
}

#[test]
fn a_look_that_finds_the_writer_s_own_object_is_no_end() {
    let mut harness = Harness::running();
    harness.writer.ask_to_read(at(400 * MS));
    harness.commit(101, 1, 401 * MS);
    let found = Ok(Some(harness.puts[&2].clone()));
    let actions = harness.writer.probed(&found, at(410 * MS));
    assert_eq!(actions, []);
    harness.settle(2, 420 * MS);
    assert_eq!(harness.acknowledged(), [101]);
}

#[test]
fn without_a_lease_reads_are_always_served() {
    let options = WriterOptions { lease_us: 0, ..WriterOptions::default() };
    let mut harness = Harness::new(options, 0);
    assert_eq!(harness.writer.ask_to_read(at(1_000_000 * MS)), (ReadPermit::Granted, vec![]));
}

/// Clients that commit again as soon as they are acknowledged, for ten seconds, at a store that takes 25 ms a put. Returns
/// commits a put and the mean time of a commit in microseconds.
fn closed_loop(clients: u64) -> (f64, f64) {
    const PUT_US: u64 = 25 * MS;
    let mut harness = Harness::new(WriterOptions::default(), 0);
    let (mut settles, mut begun) = (BTreeMap::from([(PUT_US, vec![1])]), BTreeMap::new());
    let mut settling = 1;
    let (mut next_ts, mut now, mut commits, mut waited_us) = (101, PUT_US, 0, 0);
    while now < 10_000 * MS {
        for seq in settles.remove(&now).unwrap_or_default() {
            harness.settle(seq, now);
        }
        harness.time(now);
        let through = harness.acknowledged().last().copied().unwrap_or_default();
        harness.other.clear();
        let later = begun.split_off(&(through + 1));
        for since in std::mem::replace(&mut begun, later).into_values() {
            commits += 1;
            waited_us += now - since;
        }
        while (begun.len() as u64) < clients {
            begun.insert(next_ts, now);
            harness.commit(next_ts, 200, now);
            next_ts += 1;
        }
        let sent = harness.puts.len() as u64;
        settles.entry(now + PUT_US).or_default().extend(settling + 1..=sent);
        settling = sent;
        let wake = harness.writer.wake_at_us().unwrap_or(u64::MAX);
        now = settles.keys().next().copied().unwrap_or(u64::MAX).min(wake).max(now + 1);
    }
    (commits as f64 / harness.puts.len() as f64, waited_us as f64 / commits as f64)
}

#[test]
fn one_committer_costs_a_put_a_commit_and_many_share_puts() {
    for (clients, commits_a_put_min, mean_us_max) in [(1, 0.99, 25_100.0), (8, 3.0, 40_000.0), (32, 12.0, 40_000.0)] {
        let (commits_a_put, mean_us) = closed_loop(clients);
        println!("{clients} clients: {commits_a_put:.2} commits a put, {mean_us:.0} us a commit");
        assert!(commits_a_put >= commits_a_put_min && mean_us <= mean_us_max, "{clients}: {commits_a_put}, {mean_us}");
    }
}
