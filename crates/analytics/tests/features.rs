//! Arrays of features have the values of their elements, and mistakes are named.

use mangrove_analytics::Team;
use mangrove_analytics::sampling::features::{
    FeatureOptions, FeatureType, FeatureValues, Features, of_edges, of_vertices,
};
use mangrove_graph::{GraphView, Result, UserId, Value, VertexId};
use mangrove_store::WriteCardinality;

use crate::common::{World, with_teams};

/// Vertices with these values under the key "x".
fn graph(values: &[Option<Value>]) -> (World, Vec<VertexId>) {
    let world = World::new(1);
    let key = world.manager.store().catalog().intern_key("x");
    let txn = world.begin();
    let vertex = |(nth, value): (usize, &Option<Value>)| {
        let vertex = txn.insert_vertex(world.labels[0], Some(UserId::int(nth as i64))).unwrap();
        if let Some(value) = value {
            txn.set_vertex_property(vertex, key, value.clone(), WriteCardinality::List, Vec::new()).unwrap();
        }
        vertex
    };
    let vertices = values.iter().enumerate().map(vertex).collect();
    txn.commit().unwrap();
    (world, vertices)
}

fn gather(world: &World, vertices: &[VertexId], options: FeatureOptions, team: &Team) -> Result<Features> {
    let view = world.manager.begin_read().unwrap();
    let key = view.store().catalog().key("x").unwrap();
    of_vertices(&view, vertices, key, options, team)
}

/// An order in which each vertex comes twice.
fn twice(vertices: &[VertexId]) -> Vec<usize> {
    (0..2 * vertices.len()).map(|at| at * 7_919 % vertices.len()).collect()
}

fn array(nth: usize, width: usize) -> Vec<f32> {
    (0..width).map(|at| (nth * width + at) as f32 / 4.0).collect()
}

#[test]
fn arrays_have_the_values_in_the_order_of_the_vertices() {
    for (count, width) in [(3_001, 3), (700, 64), (40, 2_000), (5, 0)] {
        let values: Vec<_> = (0..count).map(|nth| Some(Value::F32Array(array(nth, width).into()))).collect();
        let (world, vertices) = graph(&values);
        let order = twice(&vertices);
        let asked: Vec<VertexId> = order.iter().map(|at| vertices[*at]).collect();
        let expected: Vec<f32> = order.iter().flat_map(|at| array(*at, width)).collect();
        with_teams(|team| {
            let found = gather(&world, &asked, FeatureOptions::default(), team).unwrap();
            assert_eq!((found.rows, found.width, found.has_lists), (asked.len(), width, true));
            assert_eq!(found.values, FeatureValues::F32(expected.clone()), "{team:?}");
            let kind = Some(FeatureType::F64);
            let wide = gather(&world, &asked, FeatureOptions { kind, ..FeatureOptions::default() }, team).unwrap();
            let of_wide = expected.iter().map(|number| f64::from(*number)).collect();
            assert_eq!(wide.values, FeatureValues::F64(of_wide), "{team:?}");
        });
    }
}

#[test]
fn numbers_and_lists_of_numbers_have_the_type_of_the_first_value() {
    let default = FeatureOptions::default();
    let of = |values: &[Value], options: FeatureOptions| {
        let values: Vec<_> = values.iter().cloned().map(Some).collect();
        let (world, vertices) = graph(&values);
        gather(&world, &vertices, options, &Team::alone()).map(|found| (found.values, found.width, found.has_lists))
    };
    let integers = [Value::I64(5), Value::I64(-1)];
    assert_eq!(of(&integers, default).unwrap(), (FeatureValues::I64(vec![5, -1]), 1, false));
    let mixed = [Value::I64(5), Value::I32(7), Value::F64(2.5)];
    assert!(of(&mixed, default).unwrap_err().message().contains("vertex 2, property 'x': the value has floats"));
    let flags = [Value::Bool(true), Value::Bool(false), Value::I64(3)];
    assert_eq!(of(&flags, default).unwrap(), (FeatureValues::I64(vec![1, 0, 3]), 1, false));
    let single = FeatureOptions { kind: Some(FeatureType::F32), ..default };
    assert_eq!(of(&mixed, single).unwrap(), (FeatureValues::F32(vec![5.0, 7.0, 2.5]), 1, false));
    assert_eq!(of(&[Value::F64(0.1)], default).unwrap().0, FeatureValues::F64(vec![0.1]));
    assert_eq!(of(&[Value::F32(0.5)], default).unwrap().0, FeatureValues::F32(vec![0.5]));
    let list = |numbers: &[i64]| Value::list(numbers.iter().map(|number| Value::I64(*number)).collect());
    assert_eq!(of(&[list(&[1, 2]), list(&[3, 4])], default).unwrap(), (FeatureValues::I64(vec![1, 2, 3, 4]), 2, true));
    let floats = Value::list(vec![Value::I32(1), Value::F64(0.5)]);
    let with_array = [floats, Value::F32Array([8.0, 9.0].into())];
    assert_eq!(of(&with_array, default).unwrap(), (FeatureValues::F64(vec![1.0, 0.5, 8.0, 9.0]), 2, true));

    let fails = |values: &[Value], options| of(values, options).unwrap_err().message().to_string();
    assert!(fails(&[list(&[1, 2]), list(&[3])], default).contains("vertex 1, property 'x': the value has 1 numbers"));
    assert!(fails(&[list(&[1]), Value::I64(3)], default).contains("vertex 1, property 'x'"));
    assert!(fails(&["a".into()], default).contains("vertex 0, property 'x': a value is of type"));
    assert!(fails(&[Value::I64(3), "a".into()], default).contains("vertex 1, property 'x': a value is of type"));
    let narrow = FeatureOptions { width: Some(3), ..default };
    assert!(fails(&[list(&[1, 2])], narrow).contains("the value has 2 numbers, and others have 3"));
}

#[test]
fn missing_values_are_filled_or_named() {
    let number = |nth: i64| (nth % 3 == 1).then_some(Value::I64(nth));
    let (world, vertices) = graph(&(0..2_000).map(number).collect::<Vec<_>>());
    let fill = |fill, kind| FeatureOptions { fill: Some(fill), kind, ..FeatureOptions::default() };
    let team = Team::alone();
    let error = gather(&world, &vertices[1..], FeatureOptions::default(), &team).unwrap_err();
    assert!(error.message().contains("vertex 2, property 'x': there is no value"), "{error}");
    let expected: Vec<i64> = (0..2_000).map(|nth| if nth % 3 == 1 { nth } else { -1 }).collect();
    let found = gather(&world, &vertices, fill(-1.0, None), &team).unwrap();
    assert_eq!(found.values, FeatureValues::I64(expected.clone()));
    let floats = gather(&world, &vertices, fill(-1.0, Some(FeatureType::F32)), &team).unwrap();
    assert_eq!(floats.values, FeatureValues::F32(expected.iter().map(|number| *number as f32).collect()));
    let error = gather(&world, &vertices, fill(0.5, None), &team).unwrap_err();
    assert!(error.message().contains("0.5 is to fill an array of integers"), "{error}");
    let nan = gather(&world, &vertices[..1], fill(f64::NAN, None), &team).unwrap();
    assert!(matches!(&nan.values, FeatureValues::F32(numbers) if numbers.len() == 1 && numbers[0].is_nan()));

    let array = |nth: usize| (nth != 1).then(|| Value::F32Array([nth as f32, 1.0].into()));
    let (world, vertices) = graph(&(0..3).map(array).collect::<Vec<_>>());
    let found = gather(&world, &vertices, fill(7.0, None), &team).unwrap();
    assert_eq!(found.values, FeatureValues::F32(vec![0.0, 1.0, 7.0, 7.0, 2.0, 1.0]));
    assert_eq!(gather(&world, &[], FeatureOptions::default(), &team).unwrap().values, FeatureValues::F32(vec![]));
}

#[test]
fn several_values_of_a_vertex_are_a_mistake() {
    let (world, vertices) = graph(&[Some(Value::I64(1)), Some(Value::I64(2))]);
    let key = world.manager.store().catalog().key("x").unwrap();
    let txn = world.begin();
    txn.set_vertex_property(vertices[1], key, Value::I64(3), WriteCardinality::List, Vec::new()).unwrap();
    txn.commit().unwrap();
    for options in [FeatureOptions::default(), FeatureOptions { fill: Some(0.0), ..FeatureOptions::default() }] {
        let error = gather(&world, &vertices, options, &Team::alone()).unwrap_err();
        assert!(error.message().contains("vertex 1, property 'x': there are several values"), "{error}");
    }
}

#[test]
fn edges_have_features_too() {
    let mut world = World::new(4);
    world.write(10);
    let mut edges = world.edges.clone();
    world.manager.begin_read().unwrap().retain_edges(&mut edges).unwrap();
    let txn = world.begin();
    edges.iter().enumerate().for_each(|(nth, edge)| {
        txn.set_edge_property(*edge, world.weight, Value::F64(nth as f64)).unwrap();
    });
    txn.commit().unwrap();
    let view = world.manager.begin_read().unwrap();
    let found = of_edges(&view, &edges, world.weight, FeatureOptions::default(), &Team::alone()).unwrap();
    assert_eq!(found.values, FeatureValues::F64((0..edges.len()).map(|nth| nth as f64).collect()));
}
