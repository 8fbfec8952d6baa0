//! Examples of steps on one object: the `Scope.local` forms, `unfold()`, `constant()` and `loops()`.

use super::*;
use crate::fake_view::context;
use crate::limits::meter::limited_control;
use crate::row::map::map_all;
use crate::rows::Loops;
use mangrove_graph::{ErrorKind, PathValue};
use mangrove_gremlin::Order;

fn run(mut operator: impl RowOperator, object: impl Into<Value>) -> Result<Vec<Value>> {
    let rows = Rows::of(ObjectColumn::Values(vec![object.into()]));
    operator.begin(&context())?;
    Ok(operator.apply(rows, &context(), &mut Meter::new(&limited_control(u64::MAX, None)))?.objects.into_values())
}

fn map_one(operator: impl MapOperator, object: impl Into<Value>) -> Result<Vec<Value>> {
    let rows = Rows::of(ObjectColumn::Values(vec![object.into()]));
    Ok(map_all(operator, rows, &context(), &limited_control(u64::MAX, None))?.objects.into_values())
}

fn unfold(rows: Rows) -> Rows {
    let control = limited_control(u64::MAX, None);
    let mut folded = FoldedRows { rows: &rows, row: 0, member: 0 };
    folded.unfold(&mut Meter::new(&control)).unwrap()
}

fn list(values: &[i32]) -> Value {
    Value::list(values.iter().map(|n| Value::I32(*n)).collect())
}

fn set(values: &[i32]) -> Value {
    Value::Set(values.iter().map(|n| Value::I32(*n)).collect::<Vec<_>>().into())
}

fn map(entries: &[(&str, i32)]) -> Value {
    Value::map(entries.iter().map(|(k, v)| (Value::from(*k), Value::I32(*v))).collect())
}

fn bulk_set(entries: &[(i32, u64)]) -> Value {
    Value::BulkSet(Arc::new(entries.iter().map(|(v, n)| (Value::I32(*v), *n)).collect()))
}

fn path(values: &[i32]) -> Value {
    let objects: Vec<Value> = values.iter().map(|n| Value::I32(*n)).collect();
    Value::Path(Arc::new(PathValue { labels: vec![vec![]; objects.len()], objects }))
}

#[test]
fn reductions_look_into_collections() {
    let reduce = |reduction, object| map_one(LocalReduce(reduction), object).unwrap();
    for (object, count) in [
        (list(&[1, 2]), 2_i64),
        (set(&[]), 0),
        (map(&[("a", 1)]), 1),
        (bulk_set(&[(1, 3), (2, 1)]), 4),
        (path(&[1, 2, 3]), 3),
        (Value::from("text"), 1),
        (Value::Null, 1),
    ] {
        assert_eq!(reduce(Reduction::Count, object), vec![Value::I64(count)]);
    }
    assert_eq!(reduce(Reduction::Sum, list(&[1, 2, 4])), vec![Value::I32(7)]);
    assert_eq!(reduce(Reduction::Sum, bulk_set(&[(5, 3)])), vec![Value::I32(15)]);
    assert_eq!(reduce(Reduction::Mean, list(&[1, 2])), vec![Value::F64(1.5)]);
    assert_eq!(reduce(Reduction::Min, list(&[3, 1, 2])), vec![Value::I32(1)]);
    assert_eq!(reduce(Reduction::Max, Value::I32(3)), vec![Value::I32(3)]);
    assert_eq!(reduce(Reduction::Fold, Value::I32(3)), vec![list(&[3])]);
    let with_nan = Value::list(vec![Value::F64(f64::NAN), Value::I32(2)]);
    assert_eq!(reduce(Reduction::Max, with_nan), vec![Value::I32(2)]);
}

#[test]
fn nothing_is_reduced_to_nothing_and_nulls_to_null() {
    for reduction in [Reduction::Sum, Reduction::Min, Reduction::Max, Reduction::Mean] {
        assert_eq!(map_one(LocalReduce(reduction), list(&[])).unwrap(), vec![]);
        assert_eq!(map_one(LocalReduce(reduction), Value::list(vec![Value::Null])).unwrap(), vec![Value::Null]);
        let one = Value::list(vec![Value::Null, Value::I32(4)]);
        assert_ne!(map_one(LocalReduce(reduction), one).unwrap(), vec![Value::Null]);
    }
    assert!(map_one(LocalReduce(Reduction::Sum), Value::list(vec!["a".into()])).is_err());
}

#[test]
fn dedup_keeps_numbers_of_different_types_apart() {
    let values = Value::list(vec![1.into(), 1_i64.into(), 1.into(), f64::NAN.into(), f64::NAN.into()]);
    let Value::Set(kept) = map_one(LocalDedup(Vec::new()), values).unwrap().remove(0) else {
        panic!("dedup(local) gives a set")
    };
    assert_eq!(kept.len(), 3);
}

#[test]
fn parts_of_collections_are_collections_of_their_kind() {
    let operand = |n: i64| Operand::Literal(Value::I64(n));
    let range = |low, high, object: Value| {
        map_one(LocalRange::new(operand(low), Some(operand(high))), object).unwrap().remove(0)
    };
    assert_eq!(range(1, 2, list(&[1, 2, 3])), list(&[2]));
    assert_eq!(range(1, -1, set(&[1, 2, 3])), set(&[2, 3]));
    assert_eq!(range(0, 1, map(&[("a", 1), ("b", 2)])), map(&[("a", 1)]));
    assert_eq!(range(1, 9, path(&[1, 2])), list(&[2]));
    assert_eq!(range(2, 5, bulk_set(&[(1, 3), (2, 1), (3, 1_u64 << 60)])), list(&[1, 2, 3]));
    assert_eq!(range(5, 2, list(&[1])), list(&[]));
    assert_eq!(range(0, 1, "text".into()), "text".into());
    let tail = |n, object: Value| map_one(LocalTail::new(operand(n)), object).unwrap().remove(0);
    assert_eq!(tail(1, list(&[1, 2, 3])), list(&[3]));
    assert_eq!(tail(9, path(&[1, 2])), list(&[1, 2]));
    assert_eq!(tail(1, map(&[("a", 1), ("b", 2)])), map(&[("b", 2)]));
    let huge = map_one(LocalRange::new(operand(0), None), bulk_set(&[(1, u64::MAX)]));
    assert_eq!(huge.unwrap_err().kind(), ErrorKind::MemoryLimit);
}

#[test]
fn members_are_sorted_by_their_keys() {
    let sort = |orders: Vec<Order>, object: Value, computed: Vec<Value>| {
        let mut rows = Rows::of(ObjectColumn::Values(vec![object]));
        rows.computed = computed.into_iter().map(|keys| vec![Some(keys)]).collect();
        let control = limited_control(u64::MAX, None);
        map_all(LocalOrder::new(orders, 1), rows, &context(), &control).unwrap().object(0)
    };
    // The key of each member is in a list of its own. A member without a key is left out.
    let keys = |keys: &[i32]| Value::list(keys.iter().map(|key| list(&[*key])).collect());
    assert_eq!(sort(vec![Order::Asc], set(&[3, 1, 2]), vec![keys(&[3, 1, 2])]), list(&[1, 2, 3]));
    let lacking = Value::list(vec![list(&[3]), list(&[]), list(&[2])]);
    assert_eq!(sort(vec![Order::Asc], list(&[3, 1, 2]), vec![lacking]), list(&[2, 3]));
    let by_two = vec![keys(&[1, 1, 0]), keys(&[1, 2, 3])];
    assert_eq!(sort(vec![Order::Asc, Order::Desc], list(&[10, 11, 12]), by_two), list(&[12, 11, 10]));
    let entries = map(&[("a", 1), ("b", 2)]);
    assert_eq!(sort(vec![Order::Desc], entries, vec![keys(&[1, 2])]), map(&[("b", 2), ("a", 1)]));
    assert_eq!(sort(vec![Order::Asc], 7.into(), vec![list(&[])]), 7.into());
    let members: Vec<i32> = (0..20).collect();
    let shuffled = || sort(vec![Order::Shuffle], list(&members), vec![keys(&members)]);
    assert_eq!(shuffled(), shuffled());
    assert_ne!(shuffled(), list(&members));
}

#[test]
fn a_large_collection_is_sorted_in_pieces() {
    let members: Vec<i32> = (0..100_000_i32).map(|n| n.wrapping_mul(0x9e37_79b1_u32 as i32)).collect();
    let keys = Value::list(members.iter().map(|key| list(&[*key])).collect());
    let mut rows = Rows::of(ObjectColumn::Values(vec![list(&members)]));
    rows.computed = vec![vec![Some(keys)]];
    let sort = |looks| {
        let operator = LocalOrder::new(vec![Order::Asc], 1);
        map_all(operator, rows.clone(), &context(), &limited_control(u64::MAX, Some(looks)))
    };
    assert_eq!(sort(100).map(drop).unwrap_err().kind(), ErrorKind::Timeout);
    sort(1_000).unwrap();
}

#[test]
fn unfolding_a_bulk_set_counts_instead_of_repeating() {
    let mut rows =
        Rows::of(ObjectColumn::Values(vec![list(&[1, 2]), bulk_set(&[(3, 1 << 40)]), map(&[("a", 1)]), 9.into()]));
    rows.bulk = Some(vec![2, 3, 1, 4]);
    let rows = unfold(rows);
    let entry = Value::Entry(std::sync::Arc::new(("a".into(), 1.into())));
    let expected = vec![1.into(), 2.into(), 3.into(), entry, 9.into()];
    assert_eq!(rows.objects, ObjectColumn::Values(expected));
    assert_eq!(rows.bulk, Some(vec![2, 2, 3 << 40, 1, 4]));
    let members = unfold(Rows::of(ObjectColumn::Values(vec![path(&[4, 5])])));
    assert_eq!(members.objects.into_values(), vec![4.into(), 5.into()]);
}

#[test]
fn constants_loops_and_columns() {
    assert_eq!(run(Constant::new(Operand::Literal("c".into())), 1).unwrap(), vec!["c".into()]);
    assert_eq!(map_one(SelectColumn(MapColumn::Values), map(&[("a", 1), ("b", 2)])).unwrap(), vec![list(&[1, 2])]);
    let mut rows = Rows::of(ObjectColumn::Values(vec![1.into()]));
    rows.loops = Some(vec![Loops::from_slice(&[4, 2])]);
    let loops = |which| {
        LoopsOf(which)
            .apply(rows.clone(), &context(), &mut Meter::new(&limited_control(u64::MAX, None)))
            .map(|r| r.object(0))
    };
    assert_eq!(loops(None).unwrap(), 2.into());
    assert_eq!(loops(Some(0)).unwrap(), 4.into());
    assert!(loops(Some(2)).is_err());
    assert!(run(LoopsOf(None), 1).is_err());
}
