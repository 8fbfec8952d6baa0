//! Generated values become Arrow and are read again: whole and as a stream, in batches of every size.

use std::sync::Arc;

use bigdecimal::BigDecimal;
use mangrove_arrow::{ArrowOptions, ArrowStream, Collected, Mixed, RecordBatch, collect, values};
use mangrove_graph::{DateTime, Duration, Value};
use num_bigint::BigInt;
use proptest::prelude::*;

/// What a value is after it was in a column: without its width, its offset, its order of keys.
fn plain(value: &Value) -> String {
    match value {
        Value::I8(n) => format!("int {n}"),
        Value::I16(n) => format!("int {n}"),
        Value::I32(n) => format!("int {n}"),
        Value::I64(n) => format!("int {n}"),
        Value::BigInt(n) => format!("decimal {}", BigDecimal::from((**n).clone()).normalized()),
        Value::Decimal(n) => format!("decimal {}", n.normalized()),
        Value::F32(n) => format!("float {:x}", f64::from(*n).to_bits()),
        Value::F64(n) => format!("float {:x}", n.to_bits()),
        Value::String(text) => format!("text {text}"),
        Value::Char(text) => format!("text {text}"),
        Value::Uuid(id) => format!("text {id}"),
        Value::DateTime(time) => format!("time {} {}", time.seconds, time.nanos),
        Value::List(all) | Value::Set(all) => format!("list {:?}", all.iter().map(plain).collect::<Vec<_>>()),
        Value::F32Array(all) => {
            format!("list {:?}", all.iter().map(|n| plain(&Value::F32(*n))).collect::<Vec<_>>())
        }
        Value::Map(all) => {
            let mut all: Vec<_> = all.iter().map(|(key, value)| (plain(key), plain(value))).collect();
            all.sort();
            format!("map {all:?}")
        }
        other => format!("{other:?}"),
    }
}

/// A value that is in a column of decimals, though it is an integer of 64 bits.
fn in_decimals(text: String) -> String {
    text.replace("int ", "decimal ")
}

/// A value that is in a column of 64-bit floats, though it is an integer.
fn in_floats(value: &Value) -> String {
    match value {
        Value::I8(n) => plain(&Value::F64(f64::from(*n))),
        Value::I16(n) => plain(&Value::F64(f64::from(*n))),
        Value::I32(n) => plain(&Value::F64(f64::from(*n))),
        other => plain(other),
    }
}

fn integers() -> BoxedStrategy<Value> {
    prop_oneof![
        any::<i8>().prop_map(Value::I8),
        any::<i16>().prop_map(Value::I16),
        any::<i32>().prop_map(Value::I32),
        any::<i64>().prop_map(Value::I64)
    ]
    .boxed()
}

/// Decimals of at most 38 digits with at most 12 after the point.
fn decimals() -> BoxedStrategy<Value> {
    prop_oneof![
        (any::<i64>(), 0..12_i64).prop_map(|(n, scale)| Value::Decimal(Arc::new(BigDecimal::new(n.into(), scale)))),
        any::<i64>().prop_map(|n| Value::BigInt(Arc::new(BigInt::from(n) * 1_000_i64))),
        any::<i64>().prop_map(Value::I64),
    ]
    .boxed()
}

fn times() -> BoxedStrategy<Value> {
    // Years that nanoseconds can say.
    (-9_000_000_000_i64..9_000_000_000, 0..1_000_000_000_u32, any::<bool>(), -18_i32..=18)
        .prop_map(|(seconds, nanos, fine, hours)| {
            let nanos = if fine { nanos } else { nanos / 1_000 * 1_000 };
            Value::DateTime(DateTime { seconds, nanos, offset_seconds: hours * 3_600 })
        })
        .boxed()
}

fn texts() -> BoxedStrategy<Value> {
    prop_oneof![
        ".{0,30}".prop_map(Value::from),
        any::<char>().prop_map(Value::Char),
        any::<u128>().prop_map(|bits| Value::from(uuid::Uuid::from_u128(bits)))
    ]
    .boxed()
}

/// Values that one column holds.
fn one_kind() -> Vec<BoxedStrategy<Value>> {
    let list = |of: BoxedStrategy<Value>| prop::collection::vec(of, 0..5).prop_map(Value::list).boxed();
    vec![
        any::<bool>().prop_map(Value::Bool).boxed(),
        any::<i32>().prop_map(Value::I32).boxed(),
        integers(),
        any::<f64>().prop_map(Value::F64).boxed(),
        prop_oneof![any::<f32>().prop_map(Value::F32), any::<f64>().prop_map(Value::F64)].boxed(),
        any::<f32>().prop_map(Value::F32).boxed(),
        texts(),
        prop::collection::vec(any::<u8>(), 0..9).prop_map(|bytes| Value::Bytes(bytes.into())).boxed(),
        times(),
        (-9_000_000_000_i64..9_000_000_000, 0..1_000_000_000_u32)
            .prop_map(|(seconds, nanos)| Value::Duration(Duration { seconds, nanos }))
            .boxed(),
        list(integers()),
        list(texts()),
        list(list(any::<f64>().prop_map(Value::F64).boxed())),
        prop::collection::vec(any::<f32>(), 0..4).prop_map(|all| Value::F32Array(all.into())).boxed(),
        prop::collection::vec(any::<f32>(), 3).prop_map(|all| Value::F32Array(all.into())).boxed(),
        (integers(), texts())
            .prop_map(|(a, b)| Value::list(vec![Value::map(vec![("a".into(), a), ("b".into(), b)])]))
            .boxed(),
        prop::collection::btree_map("[a-e]", any::<i32>(), 0..4)
            .prop_map(|map| {
                let entries = map.into_iter().map(|(key, value)| (key.into(), value.into()));
                Value::list(vec![Value::map(entries.collect())])
            })
            .boxed(),
        prop::collection::btree_map(any::<i32>(), any::<bool>(), 1..4)
            .prop_map(|map| Value::map(map.into_iter().map(|(key, value)| (key.into(), value.into())).collect()))
            .boxed(),
    ]
}

/// Columns of one kind each, some values of which are missing.
fn columns(of: BoxedStrategy<Value>) -> impl Strategy<Value = Vec<(Value, u64)>> {
    let value = prop_oneof![1 => Just(Value::Null), 4 => of];
    prop::collection::vec((value, 0..4_u64), 0..40)
}

fn shown(batches: &[RecordBatch], column: usize) -> Vec<String> {
    let mut all = Vec::new();
    for batch in batches {
        let field = batch.schema().field(column).clone();
        all.extend(values(&field, batch.column(column)).unwrap().iter().map(|value| plain(value.as_ref().unwrap())));
    }
    all
}

fn repeated(results: &[(Value, u64)], shown: impl Fn(&Value) -> String) -> Vec<String> {
    results.iter().flat_map(|(value, times)| (0..*times).map(|_| shown(value))).collect()
}

fn whole(results: &[(Value, u64)], options: &ArrowOptions) -> Vec<RecordBatch> {
    collect(&mut Collected::new(results.to_vec(), None), options).unwrap().1
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn values_of_one_kind_come_back(
        results in (0..one_kind().len()).prop_flat_map(|kind| columns(one_kind().swap_remove(kind))),
        batch_rows in 1..50_usize,
    ) {
        let options = ArrowOptions { batch_rows, ..ArrowOptions::default() };
        let batches = whole(&results, &options);
        prop_assert!(batches.iter().all(|batch| batch.num_rows() <= batch_rows));
        prop_assert_eq!(shown(&batches, 0), repeated(&results, plain));
        // A stream that fits is the same.
        let stream = ArrowStream::new(Collected::new(results.clone(), None), &options).unwrap();
        if let Ok(streamed) = stream.collect::<Result<Vec<_>, _>>() {
            prop_assert_eq!(shown(&streamed, 0), repeated(&results, plain));
        }
        // As columns of maps, some of which lack one.
        let maps: Vec<(Value, u64)> = results
            .iter()
            .map(|(value, times)| {
                let entry = |key: &str| (Value::from(key), value.clone());
                let entries = if *times == 2 { vec![entry("a")] } else { vec![entry("a"), entry("b")] };
                (Value::map(entries), *times)
            })
            .collect();
        let batches = whole(&maps, &options);
        if !batches.is_empty() {
            prop_assert_eq!(shown(&batches, 0), repeated(&results, plain));
            if batches[0].num_columns() == 2 {
                let second = results.iter().flat_map(|(value, times)| {
                    (0..*times).map(move |_| if *times == 2 { plain(&Value::Null) } else { plain(value) })
                });
                prop_assert_eq!(shown(&batches, 1), second.collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn integers_widen_to_floats_and_decimals(
        floats in columns(prop_oneof![any::<i32>().prop_map(Value::I32), any::<f64>().prop_map(Value::F64)].boxed()),
        exact in columns(decimals()),
        batch_rows in 1..20_usize,
    ) {
        let options = ArrowOptions { batch_rows, ..ArrowOptions::default() };
        let is_float = |(value, times): &(Value, u64)| matches!(value, Value::F64(_)) && *times > 0;
        let expected = match floats.iter().any(is_float) {
            true => repeated(&floats, in_floats),
            false => repeated(&floats, plain),
        };
        prop_assert_eq!(shown(&whole(&floats, &options), 0), expected);
        let found: Vec<_> = shown(&whole(&exact, &options), 0).into_iter().map(in_decimals).collect();
        prop_assert_eq!(found, repeated(&exact, |value| in_decimals(plain(value))));
    }

    #[test]
    fn values_of_all_kinds_are_text_if_asked(
        results in columns(prop_oneof![integers(), texts(), any::<bool>().prop_map(Value::Bool)].boxed()),
        batch_rows in 1..20_usize,
    ) {
        let options = ArrowOptions { batch_rows, mixed: Mixed::Text, ..ArrowOptions::default() };
        let batches = whole(&results, &options);
        let text = |value: &Value| match value {
            Value::Bool(is) => format!("text {is}"),
            other => plain(other).replacen("int ", "text ", 1),
        };
        let is_text = batches.first().is_some_and(|batch| {
            *batch.schema().field(0).data_type() == mangrove_arrow::arrow_schema::DataType::Utf8
        });
        let expected = if is_text { repeated(&results, text) } else { repeated(&results, plain) };
        prop_assert_eq!(shown(&batches, 0), expected);
    }
}

#[test]
fn numbers_of_too_many_digits_are_text() {
    let wide = Value::BigInt(Arc::new(BigInt::from(10).pow(40)));
    let results = [(wide, 1), (Value::I64(1), 1)];
    let batches = whole(&results, &ArrowOptions::default());
    assert_eq!(shown(&batches, 0), [format!("text 1{}", "0".repeat(40)), "text 1".to_owned()]);
    let tiny = Value::Decimal(Arc::new(BigDecimal::new(1.into(), 50)));
    assert!(shown(&whole(&[(tiny, 1)], &ArrowOptions::default()), 0)[0].starts_with("text "));
}

/// Thirty lists in one another, each of which has the next one twice: small in memory and endless to read.
#[test]
fn an_endless_value_is_refused() {
    let deep = (0..40).fold(Value::from(1), |value, _| Value::list(vec![value.clone(), value]));
    for mixed in [Mixed::Refuse, Mixed::Text] {
        let options = ArrowOptions { mixed, ..ArrowOptions::default() };
        let mut source = Collected::new(vec![(Value::from("x"), 1), (deep.clone(), 1)], None);
        let error = collect(&mut source, &options).unwrap_err();
        assert!(error.message().contains("return its parts as rows"), "{error}");
    }
}
