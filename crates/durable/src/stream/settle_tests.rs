//! How objects of a stream are settled, step by step.

use bytes::Bytes;
use uuid::Uuid;

use super::format::{Batch, Content, END_BYTES_MAX, Header, Place, encode, new_object};
use crate::home::settle::{Likeness, NewObject, Settle, SettleStep, Settled};
use crate::home::{HomeError, HomeErrorKind, HomeResult, Put};

fn object(nonce: u8, content: Content) -> Bytes {
    let place = Place { database: Uuid::from_u128(1), incarnation: 2, seq: 3, nonce: [nonce; 16], previous: 0 };
    let payload: &[u8] = if matches!(content, Content::Records(_)) { &[7; 500] } else { &[] };
    encode(&Header { place, cut_us: 0, content }, payload).into()
}

fn records(nonce: u8) -> Bytes {
    object(nonce, Content::Records(Batch::default()))
}

fn prefix(bytes: &Bytes) -> HomeResult<Option<Bytes>> {
    Ok(Some(bytes.slice(..bytes.len().min(END_BYTES_MAX))))
}

const PREFIX: SettleStep = SettleStep::Read { bytes_max: Some(END_BYTES_MAX) };

#[test]
fn an_answer_that_may_be_wrong_is_checked_by_a_read() {
    let own = records(1);
    for answer in [Ok(Put::Taken), Err(HomeError::new(HomeErrorKind::Unknown, "time-out"))] {
        let (mut settle, first) = Settle::new(new_object(own.clone()));
        assert_eq!(first, SettleStep::Put(own.clone()));
        assert_eq!(settle.put_answered(&answer, 0), PREFIX);
        assert_eq!(settle.read_answered(prefix(&own), 0), SettleStep::Settled(Settled::Own));
    }
    let (mut settle, _) = Settle::new(new_object(own));
    assert_eq!(settle.put_answered(&Ok(Put::Done), 0), SettleStep::Settled(Settled::Own));
}

#[test]
fn a_retry_carries_the_same_bytes_after_a_growing_wait() {
    let own = records(1);
    let (mut settle, _) = Settle::new(new_object(own.clone()));
    let mut waits = Vec::new();
    for _ in 0..12 {
        assert_eq!(settle.put_answered(&Ok(Put::Taken), 0), PREFIX);
        let SettleStep::WaitUntil(until) = settle.read_answered(Ok(None), 1000) else { panic!("no wait") };
        waits.push(until - 1000);
        assert_eq!(settle.resumed(), SettleStep::Put(own.clone()));
    }
    assert!((2_500..5_000).contains(&waits[0]), "{waits:?}");
    assert!(waits.iter().all(|wait| *wait < 1_000_000) && waits[11] >= 1_000_000 / 2, "{waits:?}");
}

#[test]
fn an_end_of_the_stream_is_another_s_object() {
    for content in [Content::Fence { by: 9 }, Content::Fin] {
        let end = object(8, content);
        let (mut settle, _) = Settle::new(new_object(records(1)));
        settle.put_answered(&Ok(Put::Taken), 0);
        assert_eq!(settle.read_answered(prefix(&end), 0), SettleStep::Settled(Settled::Another(end)));
    }
}

#[test]
fn records_of_another_writer_are_read_whole_and_flipped_bits_are_read_again() {
    let (own, other) = (records(1), records(2));
    let (mut settle, _) = Settle::new(new_object(own.clone()));
    settle.put_answered(&Ok(Put::Taken), 0);
    let whole = SettleStep::Read { bytes_max: None };
    assert_eq!(settle.read_answered(prefix(&other), 0), whole);
    let mut flipped = own.to_vec();
    flipped[50] ^= 1;
    let step = settle.read_answered(Ok(Some(flipped.into())), 0);
    assert!(matches!(step, SettleStep::WaitUntil(_)), "{step:?}");
    assert_eq!(settle.resumed(), whole);
    assert_eq!(settle.read_answered(Ok(Some(other.clone())), 0), SettleStep::Settled(Settled::Another(other)));
    let (mut settle, _) = Settle::new(NewObject { bytes: Bytes::from_static(&[1, 2]), likeness: Likeness::Whole });
    assert_eq!(settle.put_answered(&Ok(Put::Taken), 0), whole);
    let another = SettleStep::Settled(Settled::Another(Bytes::from_static(&[1, 3])));
    assert_eq!(settle.read_answered(Ok(Some(Bytes::from_static(&[1, 3]))), 0), another);
}
