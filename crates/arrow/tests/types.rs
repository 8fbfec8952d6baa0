//! Arrays of every type as values, and the types that are refused.

use std::collections::HashMap;
use std::sync::Arc;

use bigdecimal::BigDecimal;
use mangrove_arrow::arrow_array::builder::{Int32Builder, LargeListBuilder, MapBuilder, StringBuilder};
use mangrove_arrow::arrow_array::types::{ArrowPrimitiveType, Float16Type, Float32Type, Int8Type, UInt16Type};
use mangrove_arrow::arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, Date32Array, Date64Array, Decimal128Array, Decimal256Array,
    DictionaryArray, DurationMillisecondArray, DurationSecondArray, FixedSizeBinaryArray, FixedSizeListArray,
    Float16Array, Int32Array, IntervalYearMonthArray, LargeBinaryArray, ListArray, NullArray, StringArray, StructArray,
    Time32SecondArray, TimestampMicrosecondArray, TimestampNanosecondArray, TimestampSecondArray, UInt8Array,
    UInt16Array, UInt32Array, UInt64Array,
};
use mangrove_arrow::arrow_schema::{DataType, Field};
use mangrove_arrow::{check_type, values};
use mangrove_graph::{DateTime, Duration, Value};

fn decoded(array: impl Array) -> Vec<Result<Value, String>> {
    values(&Field::new("c", array.data_type().clone(), true), &array).unwrap()
}

#[track_caller]
fn check(array: impl Array, expected: &[Value]) {
    let found: Vec<Value> = decoded(array).into_iter().map(Result::unwrap).collect();
    assert_eq!(found, expected);
}

fn decimal(text: &str) -> Value {
    Value::Decimal(Arc::new(text.parse::<BigDecimal>().unwrap()))
}

fn time(seconds: i64, nanos: u32, offset_seconds: i32) -> Value {
    Value::DateTime(DateTime { seconds, nanos, offset_seconds })
}

#[test]
fn numbers_get_the_narrowest_type_that_holds_theirs() {
    check(UInt8Array::from(vec![Some(255), None]), &[Value::I16(255), Value::Null]);
    check(UInt16Array::from(vec![65_535]), &[Value::I32(65_535)]);
    check(UInt32Array::from(vec![u32::MAX]), &[Value::I64(i64::from(u32::MAX))]);
    let large = Value::BigInt(Arc::new(u64::MAX.into()));
    check(UInt64Array::from(vec![7, u64::MAX]), &[Value::I64(7), large]);
    let half = <<Float16Type as ArrowPrimitiveType>::Native>::from_f32;
    check(Float16Array::from_iter_values([half(1.5)]), &[Value::F32(1.5)]);
    check(Decimal128Array::from(vec![-12_345]).with_precision_and_scale(10, 2).unwrap(), &[decimal("-123.45")]);
    check(
        Decimal256Array::from_iter_values([arrow_buffer::i256::from_i128(-7)])
            .with_precision_and_scale(40, -3)
            .unwrap(),
        &[Value::Decimal(Arc::new(BigDecimal::new((-7).into(), -3)))],
    );
    check(NullArray::new(2), &[Value::Null, Value::Null]);
}

#[test]
fn bytes_are_bytes_unless_they_are_uuids() {
    let bytes = |bytes: &[u8]| Value::Bytes(bytes.into());
    check(BinaryArray::from_vec(vec![b"a", b""]), &[bytes(b"a"), bytes(b"")]);
    check(LargeBinaryArray::from_vec(vec![b"a"]), &[bytes(b"a")]);
    check(BinaryViewArray::from_iter_values([b"a"]), &[bytes(b"a")]);
    let id = uuid::Uuid::from_u128(7);
    let array = FixedSizeBinaryArray::try_from_iter([id.as_bytes()].into_iter()).unwrap();
    let field = Field::new("c", DataType::FixedSizeBinary(16), true);
    assert_eq!(values(&field, &array).unwrap(), [Ok(bytes(id.as_bytes()))]);
    let named = field.with_metadata(HashMap::from([("ARROW:extension:name".to_owned(), "arrow.uuid".to_owned())]));
    assert_eq!(values(&named, &array).unwrap(), [Ok(Value::from(id))]);
}

#[test]
fn times_are_points_with_the_offset_of_their_zone() {
    check(Date32Array::from(vec![-1]), &[time(-86_400, 0, 0)]);
    check(Date64Array::from(vec![86_400_500]), &[time(86_400, 500_000_000, 0)]);
    check(TimestampSecondArray::from(vec![5]), &[time(5, 0, 0)]);
    check(TimestampMicrosecondArray::from(vec![-1]).with_timezone("Europe/Rome"), &[time(-1, 999_999_000, 0)]);
    check(TimestampNanosecondArray::from(vec![1]).with_timezone("-03:30"), &[time(0, 1, -12_600)]);
    check(DurationSecondArray::from(vec![3]), &[Value::Duration(Duration { seconds: 3, nanos: 0 })]);
    check(DurationMillisecondArray::from(vec![-1]), &[Value::Duration(Duration { seconds: -1, nanos: 999_000_000 })]);
}

#[test]
fn lists_and_maps() {
    let vectors = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(
        [Some([Some(1.0), Some(2.0)]), None, Some([Some(1.0), None])],
        2,
    );
    let found = decoded(vectors);
    assert_eq!(found[..2], [Ok(Value::F32Array([1.0, 2.0].into())), Ok(Value::Null)]);
    assert!(found[2].as_ref().unwrap_err().contains("missing member"));
    let mut lists = LargeListBuilder::new(Int32Builder::new());
    lists.append_value([Some(1), Some(2)]);
    lists.append_value([]);
    check(lists.finish(), &[Value::list(vec![Value::I32(1), Value::I32(2)]), Value::list(Vec::new())]);
    // A slice begins in the middle.
    let list = ListArray::from_iter_primitive::<Float32Type, _, _>([Some([Some(1.0)]), Some([Some(2.0)])]);
    check(list.slice(1, 1), &[Value::list(vec![Value::F32(2.0)])]);
    let parts = StructArray::from(vec![
        (Arc::new(Field::new("a", DataType::Int32, true)), Arc::new(Int32Array::from(vec![Some(1), None])) as ArrayRef),
        (Arc::new(Field::new("b", DataType::Utf8, true)), Arc::new(StringArray::from(vec!["x", "y"]))),
    ]);
    let entry = |key: &str, value: Value| (Value::from(key), value);
    check(
        parts,
        &[
            Value::map(vec![entry("a", Value::I32(1)), entry("b", "x".into())]),
            Value::map(vec![entry("b", "y".into())]),
        ],
    );
    let mut maps = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    maps.keys().append_value("k");
    maps.values().append_value(1);
    maps.keys().append_value("k");
    maps.values().append_value(2);
    maps.append(true).unwrap();
    // Of two equal keys, the later one counts.
    check(maps.finish(), &[Value::map(vec![entry("k", Value::I32(2))])]);
}

#[test]
fn dictionaries_are_their_values() {
    let words: DictionaryArray<Int8Type> = [Some("a"), None, Some("a")].into_iter().collect();
    check(words, &["a".into(), Value::Null, "a".into()]);
    let keys = UInt16Array::from(vec![1, 0]);
    let numbers =
        DictionaryArray::<UInt16Type>::try_new(keys, Arc::new(Int32Array::from(vec![Some(5), None]))).unwrap();
    check(numbers, &[Value::Null, Value::I32(5)]);
}

#[test]
fn other_types_are_refused_with_the_way_out() {
    for (array, parts) in [
        (Arc::new(Time32SecondArray::from(vec![1])) as ArrayRef, ["Time32", "duration since midnight"]),
        (Arc::new(IntervalYearMonthArray::from(vec![1])), ["Interval", "cast it to a duration"]),
    ] {
        let list = DataType::List(Arc::new(Field::new("item", array.data_type().clone(), true)));
        for of in [array.data_type().clone(), list] {
            let error = check_type(&Field::new("clock", of, true)).unwrap_err();
            for part in ["'clock'"].iter().chain(&parts) {
                assert!(error.message().contains(part), "{part}: {error}");
            }
        }
        assert!(values(&Field::new("clock", array.data_type().clone(), true), &array).is_err());
    }
}
