//! Encoded data decodes to the same data, and other bytes are refused.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::Value;

proptest! {
    #[test]
    fn numbers_come_back(n in any::<u64>(), signed in any::<i64>()) {
        let mut bytes = Vec::new();
        put_varint(n, &mut bytes);
        put_signed(signed, &mut bytes);
        for cut in 0..bytes.len() {
            let mut reader = Reader::new(&bytes[..cut]);
            prop_assert!(reader.varint().and_then(|_| reader.signed()).is_err());
        }
        let mut reader = Reader::new(&bytes);
        prop_assert_eq!((reader.varint(), reader.signed()), (Ok(n), Ok(signed)));
        prop_assert_eq!(reader.expect_end(), Ok(()));
    }

    #[test]
    fn hostile_bytes_are_refused_or_read(tag: u8, bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let read = read_scalar(tag, &mut Reader::new(&bytes));
        prop_assert_eq!(read == Ok(None), scalar::is_free(tag));
        if let Ok(Some(value)) = read {
            let mut again = Vec::new();
            prop_assert!(put_scalar(&value, &mut again));
            prop_assert_eq!(again[0], if tag <= 2 { again[0] } else { tag });
        }
    }
}

#[test]
fn collections_and_elements_are_no_scalars() {
    let mut out = Vec::new();
    for value in [Value::Null, Value::list(vec![]), Value::map(vec![]), Value::Set(Arc::default())] {
        assert!(!put_scalar(&value, &mut out));
    }
    assert!(out.is_empty());
}

/// Every storable value can be decoded: a collection may be empty at the deepest allowed level.
#[test]
fn the_deepest_storable_value_is_not_too_deep() {
    fn down(reader: &mut Reader<'_>, levels: u32) -> Result<(), Malformed> {
        if levels == 0 { Ok(()) } else { reader.nested(|reader| down(reader, levels - 1)) }
    }
    let nested = |levels: u32| (1..levels).fold(Value::list(vec![]), |inner, _| Value::list(vec![inner]));
    let deepest = Value::NESTING_MAX + 1;
    assert!(nested(deepest).is_storable() && !nested(deepest + 1).is_storable());
    assert_eq!(down(&mut Reader::new(&[]), deepest), Ok(()));
    assert_eq!(down(&mut Reader::new(&[]), deepest + 1).unwrap_err().what, TOO_DEEP);
}
