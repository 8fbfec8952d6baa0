//! Looking vertices up with their properties in one call gives the same as the separate calls.

use mangrove_graph::{GraphView, KeyId, UserId, Value, ValueRows, VertexId, look_up_in_steps};
use mangrove_store::WriteCardinality;
use mangrove_txn::Transaction;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::common::Graph;

/// More keys than one step reads together; no vertex has one of them.
const KEYS: usize = 7;
const IDS: u64 = 150;

fn id(number: u64) -> UserId {
    match number % 3 {
        0 => UserId::int(number as i64),
        1 => UserId::String(format!("{number}").into()),
        _ => UserId::String(format!("the name of {number}").into()),
    }
}

/// Strings around the longest length that a cell holds, and others.
fn value(random: u64) -> Value {
    match random % 5 {
        0 => Value::I64(random as i64),
        1 => Value::from("eight by"),
        2 => Value::from("äöü+"),
        3 => Value::from(format!("a longer text, {random}")),
        _ => Value::F64(random as f64),
    }
}

#[track_caller]
fn check(view: &dyn GraphView, ids: &[UserId], keys: &[KeyId]) -> Vec<Option<VertexId>> {
    let (mut found, mut expected_found) = (Vec::new(), Vec::new());
    let rows = || -> Vec<ValueRows> { keys.iter().map(|_| ValueRows::default()).collect() };
    let (mut values, mut expected) = (rows(), rows());
    view.look_up_vertices(ids, keys, &mut found, &mut values).unwrap();
    look_up_in_steps(view, ids, keys, &mut expected_found, &mut expected).unwrap();
    assert_eq!(found, expected_found);
    for (values, expected) in values.iter().zip(&expected) {
        assert_eq!((&values.row, &values.value), (&expected.row, &expected.value));
    }
    found
}

#[test]
fn one_call_gives_what_several_give() {
    let graph = Graph::new();
    let catalog = graph.manager.store().catalog();
    let keys: Vec<KeyId> = (0..KEYS).map(|n| catalog.intern_key(&format!("key {n}"))).collect();
    let mut random = SmallRng::seed_from_u64(7);
    let mut automatic = Vec::new();
    let mut snapshots: Vec<Transaction> = Vec::new();
    for round in 0..12 {
        let txn = graph.begin();
        for _ in 0..60 {
            let id = id(random.random_range(0..IDS));
            let mut found = Vec::new();
            txn.find_vertices(std::slice::from_ref(&id), &mut found).unwrap();
            match found[0] {
                // Duplicates, so that an id has several candidates.
                Some(old) if random.random_ratio(1, 2) => txn.delete_vertex(old).unwrap(),
                Some(old) => {
                    let (key, value) = (keys[random.random_range(0..KEYS - 1)], value(random.random()));
                    let cardinality = [WriteCardinality::Single, WriteCardinality::List][random.random_range(0..2)];
                    txn.set_vertex_property(old, key, value, cardinality, Vec::new()).unwrap();
                }
                None => {
                    let new = txn.insert_vertex(graph.person, Some(id)).unwrap();
                    for key in &keys[..random.random_range(0..KEYS - 1)] {
                        let value = value(random.random());
                        txn.set_vertex_property(new, *key, value, WriteCardinality::Single, Vec::new()).unwrap();
                    }
                }
            }
            txn.finish_statement().unwrap();
        }
        automatic.push(UserId::int(txn.insert_vertex(graph.person, None).unwrap().external()));
        txn.commit().unwrap();
        if round % 4 == 1 {
            snapshots.push(graph.manager.begin_read().unwrap());
            snapshots.push(graph.serializable());
        }
        let ids: Vec<UserId> = (0..IDS).map(id).chain(automatic.iter().cloned()).collect();
        let now = graph.manager.begin_read().unwrap();
        for txn in snapshots.iter().chain([&now]) {
            check(txn, &ids, &keys);
            check(txn, &ids, &[]);
            ids.iter().step_by(7).for_each(|id| drop(check(txn, std::slice::from_ref(id), &keys[..2])));
        }
        assert!(check(&now, &ids, &keys[..1]).iter().flatten().count() > automatic.len());
    }
}

#[test]
fn a_key_without_a_place_for_its_values_is_refused() {
    let graph = Graph::new();
    let reader = graph.manager.begin_read().unwrap();
    let mut found = Vec::new();
    let error = reader.look_up_vertices(&[UserId::int(1)], &[graph.name], &mut found, &mut []).unwrap_err();
    assert!(error.to_string().contains("1 keys are to go to 0 outputs"), "{error}");
    assert!(found.is_empty());
}
