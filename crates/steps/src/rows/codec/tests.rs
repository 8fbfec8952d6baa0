//! Messages as bytes: written and read again they are the same, and damaged bytes are refused.

use super::*;
use crate::rows::path;
use mangrove_graph::{
    DateTime, Detached, DetachedVertexProperty, Direction, Duration, GraphValue, KeyId, OperatorMetrics, PathValue,
    PropertyOwner, PropertyValue, Token, TraversalMetrics, Tree, Value, VertexPropertyValue,
};
use proptest::prelude::*;
use std::sync::Arc;

fn encoded(rows: &Rows) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_rows(rows, &mut bytes);
    bytes
}

#[track_caller]
fn check_round_trip(rows: &Rows) {
    let read = decode_rows(&encoded(rows)).unwrap();
    assert_eq!((&read.tags, &read.objects, &read.bulk), (&rows.tags, &rows.objects, &rows.bulk));
    assert_eq!((&read.loops, &read.computed, &read.bindings), (&rows.loops, &rows.computed, &rows.bindings));
    let values = |rows: &Rows| rows.path.as_ref().map(|paths| paths.iter().map(path::to_value).collect::<Vec<_>>());
    assert_eq!(values(&read), values(rows));
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i8>().prop_map(Value::I8),
        any::<i16>().prop_map(Value::I16),
        any::<i32>().prop_map(Value::I32),
        any::<i64>().prop_map(Value::I64),
        any::<i128>().prop_map(|n| Value::BigInt(Arc::new(n.into()))),
        prop_oneof![any::<f32>(), Just(-0.0)].prop_map(Value::F32),
        any::<f64>().prop_map(Value::F64),
        (any::<i128>(), -99..99_i64)
            .prop_map(|(n, scale)| Value::Decimal(Arc::new(bigdecimal::BigDecimal::new(n.into(), scale)))),
        any::<char>().prop_map(Value::Char),
        any::<String>().prop_map(Value::from),
        any::<Vec<u8>>().prop_map(|bytes| Value::Bytes(bytes.into())),
        any::<u128>().prop_map(|n| Value::Uuid(uuid::Uuid::from_u128(n))),
        (any::<i64>(), 0..1_000_000_000_u32, any::<i32>()).prop_map(|(seconds, nanos, offset_seconds)| DateTime {
            seconds,
            nanos,
            offset_seconds
        }
        .into()),
        (any::<i64>(), 0..1_000_000_000_u32).prop_map(|(seconds, nanos)| Duration { seconds, nanos }.into()),
        any::<Vec<f32>>().prop_map(|numbers| Value::F32Array(numbers.into())),
        any::<u64>().prop_map(|bits| VertexId::from_bits(bits).into()),
        any::<u64>().prop_map(|bits| EdgeId::from_bits(bits).into()),
        prop::sample::select(vec![Token::Id, Token::Label, Token::Key, Token::Value]).prop_map(Value::Token),
        prop::sample::select(vec![Direction::Out, Direction::In, Direction::Both]).prop_map(Value::Direction),
    ]
}

fn deeper(inner: BoxedStrategy<Value>) -> impl Strategy<Value = Value> {
    let values = prop::collection::vec(inner.clone(), 0..4);
    let pairs = prop::collection::vec((inner.clone(), inner.clone()), 0..4);
    let meta = || prop::collection::vec((any::<u32>().prop_map(KeyId), inner.clone()), 0..3);
    let named = || prop::collection::vec(("[a-z]{0,30}".prop_map(Into::into), inner.clone()), 0..3);
    let text = || "[a-z]{0,30}".prop_map(smol_str::SmolStr::from);
    let ids = || (any::<u64>(), any::<u32>(), any::<u32>());
    let detached_property = (inner.clone(), text(), inner.clone(), named())
        .prop_map(|(id, key, value, meta)| DetachedVertexProperty { id, key, value, meta })
        .boxed();
    let detached = prop_oneof![
        (inner.clone(), text(), prop::collection::vec(detached_property.clone(), 0..3))
            .prop_map(|(id, label, properties)| Detached::Vertex { id, label, properties }),
        (inner.clone(), text(), (inner.clone(), text()), (inner.clone(), text()), named()).prop_map(
            |(id, label, source, target, properties)| Detached::Edge { id, label, source, target, properties }
        ),
        detached_property.prop_map(Detached::VertexProperty),
        (text(), inner.clone()).prop_map(|(key, value)| Detached::Property { key, value }),
    ];
    let operator = (text(), text(), any::<u64>(), prop::collection::vec((text(), any::<u64>()), 0..3), named())
        .prop_map(|(id, name, nanos, counts, annotations)| OperatorMetrics {
            id,
            name,
            nanos,
            counts,
            annotations,
            nested: Vec::new(),
        });
    let metrics =
        (any::<u64>(), prop::collection::vec((operator.clone(), operator), 0..3)).prop_map(|(nanos, pairs)| {
            let around = |(around, inside)| OperatorMetrics { nested: vec![inside], ..around };
            TraversalMetrics { nanos, operators: pairs.into_iter().map(around).collect() }
        });
    prop_oneof![
        values.clone().prop_map(Value::list),
        values.prop_map(|v| Value::Set(v.into())),
        pairs.prop_map(Value::map),
        prop::collection::vec((inner.clone(), any::<u64>()), 0..4).prop_map(|m| Value::BulkSet(m.into())),
        prop::collection::vec((inner.clone(), prop::collection::vec(text(), 0..3)), 0..4).prop_map(|nodes| {
            let (objects, labels) = nodes.into_iter().unzip();
            Value::Path(Arc::new(PathValue { objects, labels }))
        }),
        (ids(), inner.clone(), meta()).prop_map(|((vertex, key, ordinal), value, meta)| {
            let vertex = VertexId::from_bits(vertex);
            Value::VertexProperty(Arc::new(VertexPropertyValue {
                vertex,
                key: KeyId(key),
                ordinal,
                value,
                meta: meta.into(),
            }))
        }),
        (ids(), any::<bool>(), inner.clone()).prop_map(|((id, key, ordinal), of_edge, value)| {
            let owner = match of_edge {
                true => PropertyOwner::Edge(EdgeId::from_bits(id)),
                false => PropertyOwner::VertexProperty(VertexId::from_bits(id), KeyId(key), ordinal),
            };
            Value::Property(Arc::new(PropertyValue { owner, key: KeyId(key), value }))
        }),
        prop::collection::vec((inner.clone(), prop::collection::vec(inner.clone(), 0..3)), 0..3).prop_map(|branches| {
            let leaf = |key| (key, Tree::default());
            let below = |keys: Vec<Value>| Tree { branches: keys.into_iter().map(leaf).collect() };
            Value::Tree(Tree { branches: branches.into_iter().map(|(key, keys)| (key, below(keys))).collect() }.into())
        }),
        prop::collection::vec(inner, 0..3)
            .prop_map(|elements| { Value::Graph(GraphValue { vertices: elements.clone(), edges: elements }.into()) }),
        detached.prop_map(|element| Value::Detached(Arc::new(element))),
        metrics.prop_map(|metrics| Value::TraversalMetrics(Arc::new(metrics))),
    ]
}

fn any_value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 16, 4, deeper)
}

fn any_numbers(count: usize) -> impl Strategy<Value = NumberColumn> {
    let small = (prop::sample::select(&NUMBER_TYPES[..4]), prop::collection::vec(-128..128_i64, count));
    let long = prop::collection::vec(any::<i64>(), count);
    let floats = (prop::sample::select(&NUMBER_TYPES[4..]), prop::collection::vec(any::<f64>(), count));
    prop_oneof![
        small.prop_map(|(kind, numbers)| NumberColumn::of_integers(kind, numbers).unwrap()),
        long.prop_map(|numbers| NumberColumn::of_integers(NumberType::I64, numbers).unwrap()),
        floats.prop_map(|(kind, numbers)| NumberColumn::of_floats(kind, numbers).unwrap()),
    ]
}

fn any_column(count: usize) -> impl Strategy<Value = ObjectColumn> {
    prop_oneof![
        prop::collection::vec(any::<u64>().prop_map(VertexId::from_bits), count).prop_map(ObjectColumn::Vertices),
        prop::collection::vec(any::<u64>().prop_map(EdgeId::from_bits), count).prop_map(ObjectColumn::Edges),
        any_numbers(count).prop_map(ObjectColumn::Numbers),
        prop::collection::vec(any_value(), count).prop_map(ObjectColumn::Values),
    ]
}

/// Paths that go on from one another: each step names the node it goes on from.
fn any_paths(count: usize) -> impl Strategy<Value = Vec<Path>> {
    let steps = prop::collection::vec((any::<prop::sample::Index>(), scalar(), any::<bool>()), 0..8);
    (steps, prop::collection::vec(any::<prop::sample::Index>(), count)).prop_map(|(steps, ends)| {
        let mut nodes: Vec<Path> = vec![None];
        for (from, object, labeled) in steps {
            let labels: Vec<smol_str::SmolStr> = if labeled { vec!["a".into(), "b".into()] } else { vec![] };
            let previous = from.get(&nodes).clone();
            nodes.push(PathNode::extend(previous, object, &labels));
        }
        ends.into_iter().map(|end| end.get(&nodes).clone()).collect()
    })
}

fn any_binding(count: usize) -> impl Strategy<Value = BindingColumn> {
    prop_oneof![
        Just(BindingColumn::Unset),
        any_column(count).prop_map(|objects| BindingColumn::from(&objects)),
        prop::collection::vec(prop::option::of(any_value()), count).prop_map(BindingColumn::Values),
    ]
}

fn any_rows() -> impl Strategy<Value = Rows> {
    (0..5_usize).prop_flat_map(|count| {
        let tags = prop_oneof![Just(Tags::One), prop::collection::vec(any::<u32>(), count).prop_map(Tags::Many)];
        let loops = prop::collection::vec(prop::collection::vec(any::<u32>(), 0..3).prop_map(Loops::from), count);
        let column = prop::collection::vec(prop::option::of(any_value()), count);
        (
            tags,
            any_column(count),
            prop::option::of(prop::collection::vec(any::<u64>(), count)),
            prop::option::of(any_paths(count)),
            prop::collection::vec(any_binding(count), 0..3),
            prop::option::of(loops),
            prop::option::of(prop::collection::vec(any_value(), count)),
            // An empty batch has no computed columns: their number would not be written.
            prop::collection::vec(column, 0..if count == 0 { 1 } else { 3 }),
        )
            .prop_map(|(tags, objects, bulk, path, bindings, loops, sacks, computed)| Rows {
                tags,
                objects,
                bulk,
                path,
                bindings,
                loops,
                sacks,
                computed,
            })
    })
}

proptest! {
    #[test]
    fn rows_are_read_as_they_were_written(rows in any_rows()) {
        // NaN has many bit patterns and equals none; everything else is compared by structure.
        if !format!("{rows:?}").contains("NaN") {
            check_round_trip(&rows);
        }
    }

    #[test]
    fn garbage_is_an_error_and_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode_rows(&bytes);
    }

    #[test]
    fn damaged_and_cut_messages_are_no_panic(rows in any_rows(), at in any::<prop::sample::Index>(), byte: u8) {
        let mut bytes = encoded(&rows);
        let at = at.index(bytes.len());
        prop_assert!(decode_rows(&bytes[..at]).is_err());
        bytes[at] = byte;
        let _ = decode_rows(&bytes);
    }
}

#[test]
fn numbers_that_do_not_fit_in_their_type_are_refused() {
    let rows = Rows::of(ObjectColumn::Numbers(NumberColumn::of_integers(NumberType::I64, vec![300]).unwrap()));
    let bytes = encoded(&rows);
    let at = bytes.iter().position(|byte| *byte == NUMBERS).unwrap() + 1;
    for (kind, is_read) in [(0, false), (1, true), (2, true), (3, true), (4, true), (5, true), (6, false)] {
        let mut changed = bytes.clone();
        changed[at] = kind;
        assert_eq!(decode_rows(&changed).is_ok(), is_read, "type {kind}");
    }
}

#[test]
fn shared_beginnings_stay_shared() {
    let start = PathNode::extend(None, Value::from("a beginning that many share"), &[]);
    let paths = (0..100).map(|n| PathNode::extend(start.clone(), Value::I32(n), &[])).collect();
    let mut rows = Rows::of(ObjectColumn::Values(vec![Value::Null; 100]));
    rows.path = Some(paths);
    let bytes = encoded(&rows);
    assert!(bytes.len() < 1000, "{} bytes", bytes.len());
    let read = decode_rows(&bytes).unwrap().path.unwrap();
    let beginning = |path: &Path| Arc::as_ptr(path.as_ref().unwrap().previous.as_ref().unwrap());
    assert!(read.iter().all(|path| beginning(path) == beginning(&read[0])));
}

#[test]
fn values_nested_without_end_are_refused() {
    let mut value = Value::Null;
    for _ in 0..1000 {
        value = Value::list(vec![value]);
    }
    let error = decode_rows(&encoded(&Rows::of(ObjectColumn::Values(vec![value])))).unwrap_err();
    assert!(error.message().contains("256 collections"), "{error}");
}

#[test]
fn lengths_that_lie_take_no_memory() {
    let mut bytes = Vec::new();
    put_varint(1 << 60, &mut bytes);
    bytes.extend([0; 16]);
    assert!(decode_rows(&bytes).is_err());
}
