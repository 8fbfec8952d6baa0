//! Results, properties and topology as Arrow, and loading of Arrow.

use std::collections::BTreeMap;
use std::sync::Arc;

use mangrove::arrow::arrow_array::builder::{ListBuilder, StringBuilder};
use mangrove::arrow::arrow_array::cast::AsArray;
use mangrove::arrow::arrow_array::types::{Float64Type, Int32Type, Int64Type};
use mangrove::arrow::arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int64Array, LargeStringArray, RecordBatch,
    RecordBatchIterator, StringArray, StringViewArray, Time64MicrosecondArray, TimestampMillisecondArray, UInt8Array,
};
use mangrove::arrow::arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use mangrove::arrow::{
    ArrowLabel, ArrowOptions, ArrowTable, CsrOptions, ElementColumns, Layout, Mixed, RecordBatchReader,
};
use mangrove::{
    Database, DateTime, LoadOptions, LoadReport, RowSource, SourceBatch, SourceBlock, SourceElements, SourceLabel,
    SourceProperty, SourceTable, UpsertKeys, Value,
};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// A row: its columns that are not null.
type Row = BTreeMap<String, Value>;

fn rows(batches: &[RecordBatch]) -> Vec<Row> {
    let mut all = Vec::new();
    for batch in batches {
        let first = all.len();
        all.resize(first + batch.num_rows(), Row::new());
        for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
            let values = mangrove_arrow::values(field, column).unwrap();
            for (row, value) in all[first..].iter_mut().zip(values) {
                let value = value.unwrap();
                if value != Value::Null {
                    assert!(row.insert(field.name().clone(), value).is_none(), "two columns {}", field.name());
                }
            }
        }
    }
    all
}

fn row(values: &[(&str, Value)]) -> Row {
    values.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

fn whole(db: &Database, script: &str) -> (SchemaRef, Vec<Row>) {
    let (schema, batches) = db.query(script).unwrap().collect_arrow(&ArrowOptions::default()).unwrap();
    (schema, rows(&batches))
}

fn types(schema: &Schema) -> Vec<(String, DataType)> {
    schema.fields().iter().map(|field| (field.name().clone(), field.data_type().clone())).collect()
}

#[track_caller]
fn check_types(schema: &Schema, expected: &[(&str, DataType)]) {
    let expected: Vec<_> = expected.iter().map(|(name, of)| ((*name).to_owned(), of.clone())).collect();
    assert_eq!(types(schema), expected);
}

#[track_caller]
fn check_error(db: &Database, script: &str, options: &ArrowOptions, parts: &[&str]) {
    let error = db.query(script).unwrap().collect_arrow(options).unwrap_err();
    for part in parts {
        assert!(error.message().contains(part), "{script}: '{part}' is not in: {}", error.message());
    }
}

fn text(value: &str) -> Value {
    value.into()
}

/// Two people and a city, with properties of several types and several values.
fn small() -> Database {
    let db = Database::in_memory();
    for script in [
        "g.addV('person').property(T.id, 1).property('name', 'ada').property('age', 36).property('id', 'A')",
        "g.addV('person').property(T.id, 2).property('name', 'bob').property(list, 'nick', 'bo').property(list, 'nick', 'b')",
        "g.addV('city').property(T.id, 3).property('name', 'rome').property('size', 1.5)",
        "g.V(1).addE('knows').to(__.V(2)).property(T.id, 10).property('since', 2001)",
        "g.V(2).addE('lives').to(__.V(3)).property(T.id, 11).property('share', 0.25)",
    ] {
        db.query(script).unwrap().collect().unwrap();
    }
    db
}

#[test]
fn streams_may_go_to_another_thread() {
    fn is_send<T: Send + 'static>(_: &T) {}
    let batches = small().query("g.V()").unwrap().arrow_batches(&ArrowOptions::default()).unwrap();
    is_send(&batches);
    let found = std::thread::scope(|scope| {
        scope.spawn(|| batches.map(|batch| batch.unwrap().num_rows()).sum::<usize>()).join()
    });
    assert_eq!(found.unwrap(), 3);
}

#[test]
fn rows_of_nulls_come_before_the_columns_are_known() {
    let db = small();
    let options = ArrowOptions { batch_rows: 1, ..ArrowOptions::default() };
    let (schema, batches) = db.query("g.inject(null, null, ['a': 1])").unwrap().collect_arrow(&options).unwrap();
    check_types(&schema, &[("a", DataType::Int32)]);
    assert_eq!(rows(&batches), [Row::new(), Row::new(), row(&[("a", Value::I32(1))])]);
}

#[test]
fn plain_values_are_one_column() {
    let db = small();
    let (schema, found) = whole(&db, "g.V().hasLabel('person').values('name')");
    check_types(&schema, &[("value", DataType::Utf8)]);
    assert_eq!(found, [row(&[("value", text("ada"))]), row(&[("value", text("bob"))])]);
    let (schema, found) = whole(&db, "g.inject(1, 2L, null, 3)");
    check_types(&schema, &[("value", DataType::Int64)]);
    let number = |number: i64| row(&[("value", Value::I64(number))]);
    assert_eq!(found, [number(1), number(2), Row::new(), number(3)]);
    check_types(&whole(&db, "g.inject(1, 2)").0, &[("value", DataType::Int32)]);
    check_types(&whole(&db, "g.inject(1, 2.5)").0, &[("value", DataType::Float64)]);
    check_types(&whole(&db, "g.inject(true, null)").0, &[("value", DataType::Boolean)]);
    check_types(&whole(&db, "g.inject(null, null)").0, &[("value", DataType::Null)]);
    let (schema, found) = whole(&db, "g.V().hasLabel('nothing')");
    assert_eq!((schema.fields().len(), found.len()), (0, 0));
}

#[test]
fn maps_are_a_column_for_each_key() {
    let db = small();
    let (schema, found) =
        whole(&db, "g.V().hasLabel('person').order().by(T.id).project('n', 'a').by('name').by(__.values('age'))");
    check_types(&schema, &[("n", DataType::Utf8), ("a", DataType::Int32)]);
    assert_eq!(found, [row(&[("n", text("ada")), ("a", Value::I32(36))]), row(&[("n", text("bob"))])]);
    let (schema, found) = whole(&db, "g.V(1).elementMap()");
    let names: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    // The property `id` gives way to the id.
    assert_eq!(names[..2], ["id", "label"]);
    assert_eq!((&found[0]["id"], &found[0]["id_property"]), (&Value::I32(1), &text("A")));
    let (schema, found) = whole(&db, "g.V().hasLabel('city').valueMap('name')");
    check_types(&schema, &[("name", DataType::List(Arc::new(Field::new("item", DataType::Utf8, true))))]);
    assert_eq!(found, [row(&[("name", Value::list(vec![text("rome")]))])]);
    let (schema, _) = whole(&db, "g.E(10).elementMap()");
    let end = DataType::Struct(
        vec![Field::new("id", DataType::Int32, true), Field::new("label", DataType::Utf8, true)].into(),
    );
    check_types(
        &schema,
        &[
            ("id", DataType::Int32),
            ("label", DataType::Utf8),
            ("IN", end.clone()),
            ("OUT", end),
            ("since", DataType::Int32),
        ],
    );
    let (schema, found) = whole(&db, "g.V().groupCount().by(T.label).unfold()");
    check_types(&schema, &[("key", DataType::Utf8), ("value", DataType::Int64)]);
    let counts: BTreeMap<_, _> =
        found.into_iter().map(|row| (format!("{:?}", row["key"]), row["value"].clone())).collect();
    assert_eq!(counts.into_values().collect::<Vec<_>>(), [Value::I64(1), Value::I64(2)]);
    // Keys that are no names: a map.
    let (schema, _) = whole(&db, "g.V().groupCount().by(T.id)");
    assert!(matches!(schema.field(0).data_type(), DataType::Map(..)), "{schema:?}");
}

#[test]
fn elements_are_a_column_for_each_property() {
    let db = small();
    let list = DataType::List(Arc::new(Field::new("item", DataType::Utf8, true)));
    for script in ["g.V().order().by(T.id)", "g.V().order().by(T.id).fold().unfold()"] {
        let (schema, found) = whole(&db, script);
        let mut expected = types(&schema);
        expected.sort_by(|a, b| a.0.cmp(&b.0));
        let names: Vec<&str> = expected.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["age", "id", "id_property", "label", "name", "nick", "size"]);
        assert_eq!(schema.field_with_name("nick").unwrap().data_type(), &list);
        assert_eq!(schema.field_with_name("id").unwrap().data_type(), &DataType::Int64);
        let nicks = Value::list(vec![text("bo"), text("b")]);
        assert_eq!(
            found,
            [
                row(&[
                    ("id", Value::I64(1)),
                    ("label", text("person")),
                    ("name", text("ada")),
                    ("age", Value::I32(36)),
                    ("id_property", text("A"))
                ]),
                row(&[("id", Value::I64(2)), ("label", text("person")), ("name", text("bob")), ("nick", nicks)]),
                row(&[
                    ("id", Value::I64(3)),
                    ("label", text("city")),
                    ("name", text("rome")),
                    ("size", Value::F64(1.5))
                ]),
            ],
            "{script}"
        );
    }
    let (schema, found) = whole(&db, "g.E().order().by(T.id)");
    check_types(
        &schema,
        &[
            ("id", DataType::Int64),
            ("label", DataType::Utf8),
            ("src", DataType::Int64),
            ("dst", DataType::Int64),
            ("since", DataType::Int32),
            ("share", DataType::Float64),
        ],
    );
    assert_eq!(found[0]["src"], Value::I64(1));
    assert_eq!((&found[1]["dst"], &found[1]["share"]), (&Value::I64(3), &Value::F64(0.25)));
    // A transaction shows its own writes.
    let transaction = db.begin().unwrap();
    transaction.query("g.V(1).property('name', 'eve')").unwrap().collect().unwrap();
    let (_, batches) = transaction.query("g.V(1)").unwrap().collect_arrow(&ArrowOptions::default()).unwrap();
    assert_eq!(rows(&batches)[0]["name"], text("eve"));
    // Ids of several types are text.
    db.query("g.addV('person').property(T.id, 'x')").unwrap().collect().unwrap();
    let (schema, found) = whole(&db, "g.V().hasLabel('person').order().by(T.id)");
    assert_eq!(schema.field(0).data_type(), &DataType::Utf8);
    assert_eq!(found.iter().map(|row| row["id"].clone()).collect::<Vec<_>>(), [text("1"), text("2"), text("x")]);
}

#[test]
fn paths_properties_and_nested_elements() {
    let db = small();
    let (schema, found) = whole(&db, "g.V(1).out('knows').path().by('name')");
    assert_eq!(schema.field(0).data_type(), &DataType::List(Arc::new(Field::new("item", DataType::Utf8, true))));
    assert_eq!(found[0]["value"], Value::list(vec![text("ada"), text("bob")]));
    let (_, found) = whole(&db, "g.V(1).outE('knows').inV().path()");
    let Value::List(objects) = &found[0]["value"] else { panic!("{found:?}") };
    let Value::Map(edge) = &objects[1] else { panic!("{objects:?}") };
    assert!(edge.contains(&(text("src"), Value::I64(1))), "{edge:?}");
    let (schema, found) = whole(&db, "g.V(1).properties('name')");
    check_types(&schema, &[("key", DataType::Utf8), ("value", DataType::Utf8)]);
    assert_eq!(found, [row(&[("key", text("name")), ("value", text("ada"))])]);
    let (_, found) = whole(&db, "g.V(3).project('v').by()");
    let Value::Map(vertex) = &found[0]["v"] else { panic!("{found:?}") };
    assert!(vertex.contains(&(text("name"), text("rome"))), "{vertex:?}");
}

#[test]
fn a_result_that_occurs_often_has_as_many_rows() {
    let db = small();
    let (_, found) = whole(&db, "g.V(1, 2).union(__.identity(), __.identity(), __.identity()).barrier()");
    assert_eq!(found.len(), 6);
    let options = ArrowOptions { batch_rows: 4, ..ArrowOptions::default() };
    let query = || db.query("g.V(1).repeat(__.union(__.identity(), __.identity())).times(10).barrier()").unwrap();
    let (_, batches) = query().collect_arrow(&options).unwrap();
    assert_eq!((batches.len(), rows(&batches).len()), (256, 1024));
    let streamed: Vec<_> = query().arrow_batches(&options).unwrap().collect::<Result<_, _>>().unwrap();
    assert_eq!(streamed, batches);
}

#[test]
fn what_does_not_fit_is_named() {
    let db = small();
    let options = ArrowOptions::default();
    check_error(
        &db,
        "g.inject(1, 2, 'x')",
        &options,
        &["the column 'value'", "Int32", "Utf8", "row 2, counted from 0", "mixed = text"],
    );
    // The first value of the third batch clashes with those of the first.
    let small_batches = ArrowOptions { batch_rows: 2, ..options };
    check_error(&db, "g.inject(1, 2, 3, 4, 'x')", &small_batches, &["Int32", "Utf8", "row 4"]);
    check_error(&db, "g.inject(9007199254740993L, 0.5)", &options, &["Int64", "Float64", "row 1"]);
    check_error(&db, "g.inject(0.5, 9007199254740993L)", &options, &["Float64", "Int64", "row 1"]);
    check_error(
        &db,
        "g.V(1).union(__.identity(), __.values('name'))",
        &options,
        &["vertices", "single values", "row 1"],
    );
    check_error(&db, "g.inject([1, 'x'])", &options, &["members of the types", "row 0", "'value'"]);
    let mixed = ArrowOptions { mixed: Mixed::Text, ..options };
    let (schema, batches) =
        db.query("g.inject(1, 'x', 2.5, [1, 'y'], true, null)").unwrap().collect_arrow(&mixed).unwrap();
    check_types(&schema, &[("value", DataType::Utf8)]);
    let texts: Vec<_> = rows(&batches).into_iter().map(|row| row.get("value").cloned()).collect();
    let expected = ["1", "x", "2.5", "[1,\"y\"]", "true"].map(|value| Some(text(value)));
    assert_eq!(texts, [&expected[..], &[None]].concat());
    let one_column = ArrowOptions { layout: Layout::OneColumn, mixed: Mixed::Text, ..options };
    let query = db.query("g.V(3).union(__.identity(), __.values('name'))").unwrap();
    let found = rows(&query.collect_arrow(&one_column).unwrap().1);
    assert_eq!(found[1]["value"], text("rome"));
    assert!(matches!(&found[0]["value"], Value::String(json) if json.contains("\"name\":\"rome\"")), "{found:?}");
}

#[test]
fn a_stream_keeps_the_types_of_its_first_batch() {
    let db = small();
    let options = ArrowOptions { batch_rows: 2, ..ArrowOptions::default() };
    let stream = |script: &str| db.query(script).unwrap().arrow_batches(&options).unwrap();
    let mut batches = stream("g.inject(1L, 2L, 3, 4)");
    assert_eq!(batches.schema().field(0).data_type(), &DataType::Int64);
    assert!(batches.by_ref().all(|batch| batch.unwrap().num_rows() == 2));
    for (script, parts) in [
        ("g.inject(1, 2, 3000000000L)", &["3000000000", "Int32", "row 2", "'value'", "give a schema"][..]),
        ("g.inject(1, 2, 'x')", &["Int32", "Utf8", "row 2"]),
        ("g.inject(null, null, 1)", &["Null", "row 2"]),
        ("g.inject(['a': 1], ['a': 2], ['b': 3])", &["the column 'b'", "rows from 2 to 2"]),
    ] {
        let error = stream(script).find_map(Result::err).unwrap_or_else(|| panic!("{script} gave no error"));
        parts.iter().for_each(|part| assert!(error.to_string().contains(part), "{script}: {part}: {error}"));
    }
    let schema =
        Arc::new(Schema::new(vec![Field::new("b", DataType::LargeUtf8, true), Field::new("a", DataType::Int64, true)]));
    let query = db.query("g.inject(['a': 1], ['a': 3000000000L], ['b': 'x'])").unwrap();
    let batches: Vec<_> = query.arrow_batches_as(&options, schema.clone()).collect::<Result<_, _>>().unwrap();
    assert!(batches.iter().all(|batch| batch.schema() == schema));
    assert_eq!(
        rows(&batches),
        [row(&[("a", Value::I64(1))]), row(&[("a", Value::I64(3_000_000_000))]), row(&[("b", text("x"))])]
    );
    let strict = Arc::new(Schema::new(vec![Field::new("value", DataType::Int64, false)]));
    let error = db.query("g.inject(1, null)").unwrap().arrow_batches_as(&options, strict).next().unwrap().unwrap_err();
    assert!(error.to_string().contains("has no nulls"), "{error}");
}

/// A random graph: labels, a float and a text that some vertices have, weights.
fn generated(seed: u64) -> Database {
    let (db, mut random) = (Database::in_memory(), SmallRng::seed_from_u64(seed));
    let transaction = db.begin().unwrap();
    let count = random.random_range(1..200_i64);
    for id in 0..count {
        let label = ["a", "b"][random.random_range(0..2)];
        let mut script = format!("g.addV('{label}').property(T.id, {id}L).property('n', {id}L)");
        if random.random_bool(0.5) {
            script += &format!(".property('f', {:?})", f64::from(random.random_range(0..1000)) / 8.0);
        }
        if random.random_bool(0.5) {
            script += &format!(".property('t', 'text {}')", random.random_range(0..10));
        }
        transaction.query(&script).unwrap().collect().unwrap();
    }
    for _ in 0..random.random_range(0..400) {
        let (from, to) = (random.random_range(0..count), random.random_range(0..count));
        let label = ["x", "y"][random.random_range(0..2)];
        let weight = f64::from(random.random_range(0..100)) / 4.0;
        let script = format!("g.V({from}L).addE('{label}').to(__.V({to}L)).property('w', {weight:?})");
        transaction.query(&script).unwrap().collect().unwrap();
    }
    transaction.commit().unwrap();
    db
}

fn sorted(mut rows: Vec<Row>) -> Vec<String> {
    let mut texts: Vec<String> = rows.drain(..).map(|row| format!("{row:?}")).collect();
    texts.sort();
    texts
}

#[test]
fn tables_have_what_gremlin_finds() {
    for seed in 0..8 {
        let db = generated(seed);
        let options = ArrowOptions { batch_rows: 17, ..ArrowOptions::default() };
        let all = ElementColumns::default();
        let (_, vertices) = db.vertex_table(&all, &options).unwrap();
        assert_eq!(sorted(rows(&vertices)), sorted(whole(&db, "g.V()").1));
        let (_, edges) = db.edge_table(&all, &options).unwrap();
        assert_eq!(sorted(rows(&edges)), sorted(whole(&db, "g.E()").1));
        let some = ElementColumns { labels: vec!["a".into()], keys: Some(vec!["t".into(), "n".into()]) };
        let (schema, found) = match db.vertex_table(&some, &options) {
            Ok(found) => found,
            // A small graph may have no such label or key.
            Err(error) => {
                assert!(error.message().contains("no label") || error.message().contains("property key"), "{error}");
                continue;
            }
        };
        let names: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!(names, ["id", "t", "n"]);
        let expected = whole(&db, "g.V().hasLabel('a').project('id', 't', 'n').by(T.id).by('t').by('n')").1;
        assert_eq!(sorted(rows(&found)), sorted(expected));
        if db.query("g.E().count()").unwrap().collect().unwrap() != [Value::I64(0)] {
            let weights = ElementColumns { labels: Vec::new(), keys: Some(vec!["w".into()]) };
            let (_, found) = db.edge_table(&weights, &options).unwrap();
            let script = "g.E().project('id', 'src', 'dst', 'w').by(T.id).by(__.outV().id()).by(__.inV().id()).by('w')";
            assert_eq!(sorted(rows(&found)), sorted(whole(&db, script).1));
        }
    }
    let db = small();
    let columns = |labels: &[&str], keys: &[&str]| ElementColumns {
        labels: labels.iter().map(|name| (*name).into()).collect(),
        keys: Some(keys.iter().map(|name| (*name).into()).collect()),
    };
    for (columns, part) in [
        (columns(&["planet"], &[]), "no label 'planet'"),
        (columns(&[], &["agee"]), "the property key 'agee'"),
        (columns(&[], &["age", "age"]), "named twice"),
    ] {
        let error = db.vertex_table(&columns, &ArrowOptions::default()).unwrap_err();
        assert!(error.message().contains(part), "{error}");
    }
    let (schema, batches) = db.vertex_table(&columns(&["person"], &["nick"]), &ArrowOptions::default()).unwrap();
    assert!(matches!(schema.field(1).data_type(), DataType::List(_)), "{schema}");
    assert_eq!(rows(&batches).len(), 2);
}

#[test]
fn compressed_rows_have_the_edges_that_gremlin_finds() {
    for (seed, undirected) in (0..8).flat_map(|seed| [(seed, false), (seed, true)]) {
        let db = generated(seed);
        let has_edges = db.query("g.E().count()").unwrap().collect().unwrap() != [Value::I64(0)];
        let options = CsrOptions {
            undirected,
            weight: has_edges.then(|| "w".into()),
            edge_ids: has_edges,
            ..CsrOptions::default()
        };
        let csr = db.csr(&options, 1).unwrap();
        let ids = csr.ids.as_primitive::<Int64Type>().values().to_vec();
        let indptr = csr.indptr.as_primitive::<Int32Type>().values().to_vec();
        let indices = csr.indices.as_primitive::<Int32Type>().values().to_vec();
        assert_eq!(indptr.len(), ids.len() + 1);
        let mut found = Vec::new();
        for (number, id) in ids.iter().enumerate() {
            for cell in indptr[number] as usize..indptr[number + 1] as usize {
                let weight = csr.weights.as_ref().map(|weights| weights.as_primitive::<Float64Type>().value(cell));
                let edge = csr.edge_ids.as_ref().map(|edges| edges.as_primitive::<Int64Type>().value(cell));
                found.push(format!("{id} {} {weight:?} {edge:?}", ids[indices[cell] as usize]));
            }
        }
        let (_, edges) = db.edge_table(&ElementColumns::default(), &ArrowOptions::default()).unwrap();
        let mut expected = Vec::new();
        for edge in rows(&edges) {
            let number = |name: &str| match edge[name] {
                Value::I64(number) => number,
                ref other => panic!("{other:?}"),
            };
            let weight = if let Value::F64(weight) = edge["w"] { Some(weight) } else { None };
            let tail = format!("{weight:?} {:?}", Some(number("id")));
            expected.push(format!("{} {} {tail}", number("src"), number("dst")));
            if undirected {
                expected.push(format!("{} {} {tail}", number("dst"), number("src")));
            }
        }
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "seed {seed}, undirected {undirected}");
        let mut all = ids;
        all.sort_unstable();
        assert_eq!(Value::I64(all.len() as i64), db.query("g.V().count()").unwrap().collect().unwrap()[0]);
    }
    let error = small().csr(&CsrOptions { weight: Some("wait".into()), ..CsrOptions::default() }, 1).unwrap_err();
    assert!(error.message().contains("'wait'"), "{error}");
}

#[test]
fn results_of_algorithms_are_columns() {
    let db = generated(3);
    for name in ["pagerank", "wcc", "fast_rp", "random_walks", "degree"] {
        let known = mangrove::registry::ALGORITHMS.iter().any(|algorithm| algorithm.name == name);
        if !known {
            continue;
        }
        let run = || db.run_algorithm(name, &[], 1).unwrap();
        let names = run().columns();
        let batch = run().into_arrow().unwrap();
        let schema = batch.schema();
        assert_eq!(schema.fields().iter().map(|field| field.name().as_str()).collect::<Vec<_>>(), names);
        let expected: Vec<Row> = run()
            .map(|values| names.iter().map(|name| (*name).to_owned()).zip(values.unwrap()).collect())
            .map(|row: Row| row.into_iter().filter(|(_, value)| *value != Value::Null).collect())
            .collect();
        let found = rows(&[batch]);
        assert_eq!(found.len(), expected.len(), "{name}");
        for (found, expected) in found.iter().zip(&expected) {
            for (name, value) in expected {
                let found = match &found[name] {
                    Value::F32Array(numbers) => Value::list(numbers.iter().map(|number| Value::F32(*number)).collect()),
                    other => other.clone(),
                };
                assert_eq!(&found, value, "{name}");
            }
        }
    }
    assert!(mangrove::registry::ALGORITHMS.iter().any(|algorithm| algorithm.name == "pagerank"));
}

fn reader(columns: Vec<(&str, ArrayRef)>) -> Box<dyn RecordBatchReader + Send> {
    let batch =
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap();
    let schema = batch.schema();
    Box::new(RecordBatchIterator::new([Ok(batch)], schema))
}

fn vertices(columns: Vec<(&str, ArrayRef)>) -> ArrowTable<'static> {
    ArrowTable::vertices("people", ArrowLabel::Constant("person".into()), Some("id"), reader(columns))
}

fn edges(columns: Vec<(&str, ArrayRef)>) -> ArrowTable<'static> {
    ArrowTable::edges("friends", ArrowLabel::Constant("knows".into()), "src", "dst", reader(columns))
}

fn ints(numbers: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(numbers.to_vec()))
}

fn texts(all: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(all.to_vec()))
}

fn load(db: &Database, tables: Vec<ArrowTable<'_>>) -> mangrove::Result<LoadReport> {
    db.load_arrow(tables, &LoadOptions::default(), &mut |_| {})
}

#[test]
fn a_graph_goes_out_as_tables_and_comes_in_again() {
    for seed in 0..6 {
        let db = generated(seed);
        let options = ArrowOptions { batch_rows: 50, ..ArrowOptions::default() };
        let all = ElementColumns::default();
        let batches = |(schema, batches): (SchemaRef, Vec<RecordBatch>)| {
            Box::new(RecordBatchIterator::new(batches.into_iter().map(Ok), schema))
        };
        let label = || ArrowLabel::Column("label".into());
        let copy = |other: &Database, upsert: bool| {
            let vertices =
                ArrowTable::vertices("v", label(), Some("id"), batches(db.vertex_table(&all, &options).unwrap()));
            let mut edges =
                ArrowTable::edges("e", label(), "src", "dst", batches(db.edge_table(&all, &options).unwrap()));
            edges.elements = mangrove::arrow::ArrowElements::Edges {
                source: "src".into(),
                target: "dst".into(),
                id: Some("id".into()),
            };
            // Edges first: the order of tables does not count.
            let tables = vec![edges, vertices];
            match upsert {
                false => load(other, tables).unwrap(),
                true => {
                    other.upsert_arrow(tables, &LoadOptions::default(), UpsertKeys::default(), &mut |_| {}).unwrap()
                }
            }
        };
        for upsert in [false, true] {
            let other = Database::in_memory();
            let report = copy(&other, upsert);
            assert_eq!(report.rejects, 0, "{:?}", report.rejected);
            for script in ["g.V()", "g.E()"] {
                assert_eq!(sorted(whole(&other, script).1), sorted(whole(&db, script).1));
            }
            let again = copy(&other, true).upserts;
            assert_eq!((again.created, again.updated), (0, 0));
            assert_eq!(again.unchanged, report.vertices + report.edges);
        }
    }
}

#[test]
fn every_type_of_columns_is_read() {
    let db = Database::in_memory();
    let mut lists = ListBuilder::new(StringBuilder::new());
    lists.append_value([Some("x"), Some("y")]);
    lists.append_null();
    lists.append_value([None::<&str>]);
    let dictionary: DictionaryArray<Int32Type> = ["red", "blue", "red"].into_iter().collect();
    let table = vertices(vec![
        ("id", Arc::new(StringViewArray::from(vec!["a", "b", "c"]))),
        ("color", Arc::new(dictionary)),
        ("large", Arc::new(LargeStringArray::from(vec![Some("l"), None, None]))),
        ("small", Arc::new(UInt8Array::from(vec![255, 0, 1]))),
        ("is", Arc::new(BooleanArray::from(vec![true, false, true]))),
        ("at", Arc::new(TimestampMillisecondArray::from(vec![-1, 0, 1]).with_timezone("+02:00"))),
        ("list", Arc::new(lists.finish())),
    ]);
    let report = load(&db, vec![table]).unwrap();
    assert_eq!((report.vertices, report.rejects), (2, 1));
    let rejected = &report.rejected[0];
    assert_eq!((rejected.path.to_str(), rejected.line), (Some("people"), 3));
    assert!(rejected.reason.contains("missing member"), "{}", rejected.reason);
    let value = |key: &str| db.query(&format!("g.V('a').values('{key}')")).unwrap().collect().unwrap();
    assert_eq!(value("color"), [text("red")]);
    assert_eq!(value("large"), [text("l")]);
    assert_eq!(value("small"), [Value::I16(255)]);
    assert_eq!(value("is"), [Value::Bool(true)]);
    assert_eq!(value("at"), [Value::DateTime(DateTime { seconds: -1, nanos: 999_000_000, offset_seconds: 7_200 })]);
    assert_eq!(value("list"), [Value::list(vec![text("x"), text("y")])]);
    // A property that is null is not there.
    assert_eq!(db.query("g.V('b').properties('large').count()").unwrap().collect().unwrap(), [Value::I64(0)]);
}

#[test]
fn bad_rows_are_rejected_and_bad_tables_refused() {
    let options = |max_rejects: u64| LoadOptions { max_rejects, ..LoadOptions::default() };
    let tables = || {
        vec![
            vertices(vec![("id", ints(&[1, 2, 2, 3])), ("name", texts(&["a", "b", "c", "d"]))]),
            edges(vec![
                ("src", ints(&[1, 2, 9])),
                ("dst", ints(&[2, 3, 1])),
                ("w", Arc::new(Float64Array::from(vec![0.5; 3]))),
            ]),
        ]
    };
    let db = Database::in_memory();
    let mut shown = Vec::new();
    let report = db
        .load_arrow(tables(), &options(5), &mut |progress| {
            shown.push((progress.file.to_owned(), progress.rows));
        })
        .unwrap();
    assert_eq!((report.vertices, report.edges, report.rejects), (3, 2, 2));
    let reasons: Vec<_> = report.rejected.iter().map(|row| (row.line, row.reason.as_str())).collect();
    assert_eq!(reasons, [(3, "a vertex with the id 2 exists already"), (3, "the source vertex '9' does not exist")]);
    assert_eq!(shown.last().unwrap().1, 7);
    let error = Database::in_memory().load_arrow(tables(), &options(1), &mut |_| {}).unwrap_err();
    assert!(error.message().contains("more than 1 rows were rejected"), "{error}");
    let error = load(&db, tables()).unwrap_err();
    assert!(error.message().contains("not empty"), "{error}");

    let refused = |table: ArrowTable<'static>, parts: &[&str]| {
        let error = load(&Database::in_memory(), vec![table]).unwrap_err();
        parts.iter().for_each(|part| assert!(error.message().contains(part), "'{part}' is not in: {error}"));
    };
    refused(edges(vec![("src", ints(&[1])), ("to", ints(&[1]))]), &["friends", "no column 'dst'", "src, to"]);
    let times = Arc::new(Time64MicrosecondArray::from(vec![1]));
    refused(
        vertices(vec![("id", ints(&[1])), ("clock", times.clone())]),
        &["people", "'clock'", "Time64", "cast it to a duration"],
    );
    // What is left out may have any type.
    let mut table = vertices(vec![("id", ints(&[1])), ("clock", times), ("n", ints(&[7]))]);
    table.properties = Some(vec!["n".into()]);
    table.renames = vec![("n".into(), "number".into())];
    let db = Database::in_memory();
    load(&db, vec![table]).unwrap();
    assert_eq!(db.query("g.V(1).values('number')").unwrap().collect().unwrap(), [Value::I64(7)]);
    let mut table = vertices(vec![("id", ints(&[1])), ("a", ints(&[1])), ("b", ints(&[1]))]);
    table.renames = vec![("a".into(), "b".into())];
    refused(table, &["two columns become the property 'b'"]);
    let missing: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
    let report = load(&Database::in_memory(), vec![vertices(vec![("id", missing)])]).unwrap();
    assert_eq!((report.vertices, report.rejected[0].reason.as_str()), (1, "the row has no id"));
}

/// Rows that the program makes: people, some of whom have no age.
struct People(u32);

impl RowSource for People {
    fn next_block(&mut self) -> mangrove::Result<Option<Box<dyn SourceBlock>>> {
        let first = self.0;
        self.0 += 10;
        let ids = (first..self.0).map(|id| Ok(Value::from(id as i32))).collect();
        let ages = (first..self.0).map(|id| match id % 3 {
            0 => Ok(Value::Null),
            1 => Ok(Value::from(id as i32 + 20)),
            _ => Err("the age is no number".to_owned()),
        });
        let rows = SourceBatch { rows: 10, columns: vec![ids, ages.collect()], bytes: 80 };
        Ok((first < 30).then(|| Box::new(rows) as Box<dyn SourceBlock>))
    }
}

#[test]
fn a_program_hands_over_rows_of_its_own() {
    let table = |name: &str, columns: &[&str]| SourceTable {
        name: name.into(),
        columns: columns.iter().map(|name| (*name).to_owned()).collect(),
        elements: SourceElements::Vertices {
            label: SourceLabel { constant: Some("person".into()), column: None },
            id: Some(0),
            properties: vec![SourceProperty { column: 1, key: "age".into() }],
        },
        rows: Box::new(People(0)),
        bytes: 240,
    };
    let (db, options) = (Database::in_memory(), LoadOptions::default());
    let mut last = (0, 0, 0);
    let people = vec![table("people", &["id", "age"])];
    let report = db
        .load_tables(people, &options, &mut |shown| last = (shown.bytes_read, shown.bytes_total, shown.rows))
        .unwrap();
    assert_eq!((report.vertices, report.rejects, last), (20, 10, (240, 240, 30)));
    assert!(report.rejected[0].reason.contains("the age is no number"), "{}", report.rejected[0].reason);
    let sum = db.query("g.V().values('age').sum()").unwrap().collect().unwrap();
    assert!(matches!(sum[..], [Value::I32(345) | Value::I64(345)]), "{sum:?}");
    for columns in [&["id"][..], &["id", "age", "more"]] {
        let error = Database::in_memory().load_tables(vec![table("t", columns)], &options, &mut |_| {}).unwrap_err();
        assert!(error.message().contains("column"), "{error}");
    }
}

#[test]
fn an_upsert_finds_vertices_by_id_or_key() {
    let db = Database::in_memory();
    load(&db, vec![vertices(vec![("id", ints(&[1, 2])), ("name", texts(&["a", "b"]))])]).unwrap();
    let upsert = |tables: Vec<ArrowTable<'_>>, keys: UpsertKeys| {
        db.upsert_arrow(tables, &LoadOptions::default(), keys, &mut |_| {})
    };
    let changed = vertices(vec![("id", ints(&[2, 3])), ("name", texts(&["B", "c"]))]);
    // An end may be a vertex of the graph that no table has.
    let report =
        upsert(vec![changed, edges(vec![("src", ints(&[1])), ("dst", ints(&[3]))])], UpsertKeys::default()).unwrap();
    assert_eq!((report.upserts.created, report.upserts.updated, report.edges), (2, 1, 1));
    assert_eq!(db.query("g.V(1).out('knows').values('name')").unwrap().collect().unwrap(), [text("c")]);
    let by_name = ArrowTable::vertices(
        "names",
        ArrowLabel::Constant("person".into()),
        None,
        reader(vec![("name", texts(&["c", "new"])), ("age", ints(&[7, 8]))]),
    );
    let report = upsert(vec![by_name], UpsertKeys::parse(&["person.name".into()]).unwrap()).unwrap();
    assert_eq!((report.upserts.created, report.upserts.updated), (1, 1));
    assert_eq!(db.query("g.V(3).values('age')").unwrap().collect().unwrap(), [Value::I64(7)]);
    let error = upsert(vec![vertices(vec![("id", ints(&[1]))])], UpsertKeys::parse(&["planet.name".into()]).unwrap());
    assert!(error.unwrap_err().message().contains("planet"));
    // In a transaction, an id that exists is an error, and nothing remains.
    let transaction = db.begin().unwrap();
    let table = vertices(vec![("id", ints(&[50])), ("name", texts(&["t"]))]);
    transaction.load_arrow(vec![table], &LoadOptions::default(), &mut |_| {}).unwrap();
    assert_eq!(transaction.query("g.V(50).values('name')").unwrap().collect().unwrap(), [text("t")]);
    transaction.rollback();
    assert_eq!(db.query("g.V(50).count()").unwrap().collect().unwrap(), [Value::I64(0)]);
}

#[test]
fn dates_durations_and_vectors() {
    let db = Database::in_memory();
    let (schema, found) =
        whole(&db, "g.inject(datetime('2020-01-02T03:04:05.123456+02:00'), datetime('1969-12-31T23:59:59Z'))");
    check_types(&schema, &[("value", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())))]);
    let time = |text: &str| Value::DateTime(DateTime { offset_seconds: 0, ..DateTime::parse(text).unwrap() });
    assert_eq!(found[0]["value"], time("2020-01-02T03:04:05.123456+02:00"));
    assert_eq!(found[1]["value"], time("1969-12-31T23:59:59Z"));
    let (schema, _) = whole(&db, "g.inject(datetime('2020-01-02T03:04:05.123456789Z'))");
    check_types(&schema, &[("value", DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())))]);
    let vector = |numbers: &[f32]| Value::F32Array(numbers.into());
    let person = db.catalog().intern_label_text("person");
    let transaction = db.begin().unwrap();
    let ids = transaction.insert_vertices(person, &[1.into(), 2.into()]).unwrap();
    let values = [(ids[0], vector(&[1.0, 2.0])), (ids[1], vector(&[3.0, 4.0]))];
    transaction.set_vertex_property("embedding", &values).unwrap();
    transaction.commit().unwrap();
    let (schema, found) = whole(&db, "g.V().order().by(T.id).values('embedding')");
    assert!(matches!(schema.field(0).data_type(), DataType::FixedSizeList(_, 2)), "{schema}");
    assert_eq!(found[1]["value"], vector(&[3.0, 4.0]));
    let (_, batches) = db.vertex_table(&ElementColumns::default(), &ArrowOptions::default()).unwrap();
    assert_eq!(batches[0].column_by_name("embedding").unwrap().as_fixed_size_list().len(), 2);
}
