//! Decoders read what encoders wrote, and refuse all other bytes.

use std::sync::Arc;

use bigdecimal::BigDecimal;
use mangrove_graph::{DateTime, Duration, KeyId, UserId, Value};
use mangrove_store::{Content, MultiProperty, MultiValue};
use num_bigint::BigInt;
use proptest::prelude::*;
use uuid::Uuid;

use super::*;

/// Values of every kind that the store holds.
pub(crate) fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::Bool),
        any::<i8>().prop_map(Value::I8),
        any::<i16>().prop_map(Value::I16),
        any::<i32>().prop_map(Value::I32),
        any::<i64>().prop_map(Value::I64),
        any::<i128>().prop_map(|n| Value::BigInt(Arc::new(BigInt::from(n)))),
        // NaN is not equal to itself; another test compares its bits.
        any::<f32>().prop_filter("equal to itself", |n| !n.is_nan()).prop_map(Value::F32),
        any::<f64>().prop_filter("equal to itself", |n| !n.is_nan()).prop_map(Value::F64),
        (any::<i64>(), -400_i64..400)
            .prop_map(|(digits, scale)| Value::Decimal(Arc::new(BigDecimal::new(BigInt::from(digits), scale)))),
        any::<char>().prop_map(Value::Char),
        ".{0,40}".prop_map(Value::from),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| Value::Bytes(bytes.into())),
        any::<u128>().prop_map(|n| Value::Uuid(Uuid::from_u128(n))),
        (any::<i64>(), 0..1_000_000_000_u32, any::<i32>())
            .prop_map(|(seconds, nanos, offset_seconds)| Value::DateTime(DateTime { seconds, nanos, offset_seconds })),
        (any::<i64>(), 0..1_000_000_000_u32).prop_map(|(seconds, nanos)| Value::Duration(Duration { seconds, nanos })),
        prop::collection::vec(-1e9_f32..1e9, 0..9).prop_map(|numbers| Value::F32Array(numbers.into())),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(|v| Value::List(Arc::new(v))),
            prop::collection::vec(inner.clone(), 0..5).prop_map(|v| Value::Set(Arc::new(v))),
            prop::collection::vec((inner.clone(), inner), 0..5).prop_map(|v| Value::Map(Arc::new(v))),
        ]
    })
}

fn contents() -> impl Strategy<Value = Content> {
    let one = (any::<u32>(), values(), prop::collection::vec((any::<u32>().prop_map(KeyId), values()), 0..3))
        .prop_map(|(ordinal, value, meta)| MultiValue { ordinal, value, meta: Arc::new(meta) });
    let multi = prop::collection::vec(one, 0..4).prop_map(|values| Content::Multi(Arc::new(MultiProperty { values })));
    prop_oneof![Just(Content::Absent), values().prop_map(Content::One), multi]
}

fn user_ids() -> impl Strategy<Value = UserId> {
    prop_oneof![
        any::<i64>().prop_map(UserId::int),
        any::<i32>().prop_map(|n| UserId::from_value(&Value::I32(n)).unwrap()),
        ".{0,40}".prop_map(|text| UserId::from(text.as_str())),
        any::<u128>().prop_map(|n| UserId::Uuid(Uuid::from_u128(n))),
    ]
}

/// Checks that `read` reads the bytes of `put` to the last one, leaves bytes after them, and refuses a part of them.
fn check<T: PartialEq + std::fmt::Debug>(
    value: &T,
    put: impl Fn(&T, &mut Vec<u8>),
    read: impl Fn(&mut Reader<'_>) -> Result<T, Malformed>,
) {
    let mut bytes = Vec::new();
    put(value, &mut bytes);
    let len = bytes.len();
    for cut in 0..len {
        assert!(read(&mut Reader::new(&bytes[..cut])).is_err(), "cut to {cut} of {len}: {value:?}");
    }
    bytes.extend_from_slice(b"more");
    let mut reader = Reader::new(&bytes);
    assert_eq!(read(&mut reader).as_ref(), Ok(value));
    assert_eq!(reader.left(), 4);
}

proptest! {
    #[test]
    fn contents_come_back(content in contents()) {
        check(&content, put_content, read_content);
    }

    #[test]
    fn ids_come_back(id in user_ids()) {
        // Equality ignores the width of numbers; the debug form does not.
        check(&(id.clone(), id.to_value()), |(id, _), out| put_user_id(id, out), |reader| {
            let id = read_user_id(reader)?;
            Ok((id.clone(), id.to_value()))
        });
    }

    #[test]
    fn hostile_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read_content(&mut Reader::new(&bytes));
        let _ = read_user_id(&mut Reader::new(&bytes));
    }
}

#[test]
fn floats_keep_their_bits() {
    for bits in [f64::NAN.to_bits() | 1, (-0.0_f64).to_bits(), f64::NEG_INFINITY.to_bits()] {
        let mut bytes = Vec::new();
        put_value(&Value::F64(f64::from_bits(bits)), &mut bytes);
        let Ok(Value::F64(read)) = read_value(&mut Reader::new(&bytes)) else { panic!("a float was written") };
        assert_eq!(read.to_bits(), bits);
    }
}

#[test]
fn deep_nesting_costs_an_error_not_the_stack() {
    let bytes: Vec<u8> = [17, 1].repeat(1_000_000);
    let error = read_value(&mut Reader::new(&bytes)).unwrap_err();
    assert_eq!(error.what, "collections nested too deep");
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let refused = |bytes: &[u8]| read_value(&mut Reader::new(bytes)).unwrap_err().to_string();
    assert_eq!(refused(&[99]), "a value of an unknown kind at byte 0");
    assert_eq!(refused(&[12, 200, 1]), "a count larger than what follows at byte 3");
    assert_eq!(refused(&[3, 255, 255, 1]), "an integer too large for its type at byte 1");
    assert_eq!(
        refused(&[6, 255, 255, 255, 255, 255, 255, 255, 255, 255, 2]),
        "a number of more than 64 bits at byte 11"
    );
}
