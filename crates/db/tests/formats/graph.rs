//! The graph that the kept files of every format hold: every kind of value, id, element and change, half of it in a
//! checkpoint and half in the log.
//!
//! The graph is fixed since the first format that was kept. A later format that can hold more gets an addition of its
//! own.

use std::str::FromStr;
use std::sync::Arc;

use bigdecimal::BigDecimal;
use mangrove::{
    Database, DatabaseOptions, DurabilityOptions, ElementKind, IndexDefinition, IndexKind, LogOptions, Parameters,
    Result, Value,
};
use mangrove_graph::{DateTime, Duration};
use num_bigint::BigInt;

/// Small files.
pub fn options() -> DatabaseOptions {
    let log = LogOptions {
        segment_bytes_min: 16 << 10,
        segment_bytes_max: 16 << 10,
        spare_segments: 0,
        prepare_ahead: false,
        ..LogOptions::default()
    };
    let durability = DurabilityOptions { log, checkpoint_log_bytes: Some(0), ..DurabilityOptions::default() };
    DatabaseOptions { tablet_count: 2, durability, ..DatabaseOptions::default() }
}

/// Every kind of value, by name.
pub fn values() -> Vec<(&'static str, Value)> {
    let list = Arc::new(vec![Value::from(1), "two".into(), Value::List(Arc::default())]);
    vec![
        ("bool", true.into()),
        ("byte", Value::I8(-8)),
        ("short", Value::I16(-1600)),
        ("int", Value::I32(-320_000)),
        ("long", Value::I64(i64::MIN)),
        ("big", Value::BigInt(Arc::new(BigInt::from(-7) << 100))),
        ("float", Value::F32(1.5)),
        ("double", Value::F64(-2.25e-300)),
        ("decimal", Value::Decimal(Arc::new(BigDecimal::from_str("-12345678901234567890.0987654321").unwrap()))),
        ("char", Value::Char('\u{1F333}')),
        ("short string", "oak".into()),
        ("word", "8 bytes.".into()),
        ("long string", "a mangrove stands with its roots in two worlds".into()),
        ("bytes", Value::Bytes([0_u8, 255, 7].as_slice().into())),
        ("uuid", Value::Uuid(uuid::Uuid::from_u128(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef))),
        ("date", Value::DateTime(DateTime { seconds: -1, nanos: 999_999_999, offset_seconds: -3_600 })),
        ("duration", Value::Duration(Duration { seconds: -90, nanos: 5 })),
        ("list", Value::List(list.clone())),
        ("set", Value::Set(Arc::new(vec!["a".into(), Value::from(2_i64)]))),
        ("map", Value::Map(Arc::new(vec![("k".into(), Value::List(list)), (Value::from(1), false.into())]))),
        ("embedding", Value::F32Array([0.5_f32, -1.0, f32::MAX].as_slice().into())),
    ]
}

/// Writes the graph into an empty database: a checkpoint, and a log after it.
#[allow(dead_code, reason = "who looks does not write")]
pub fn write(db: &Database) -> Result<()> {
    let ask = |script: &str| db.query(script).and_then(|results| results.collect());
    db.create_index(Some("kind"), "name", false, true)?;
    let add = db.prepare("g.addV('kind').property('name', n).property('value', v)")?;
    let (checkpointed, logged) = (values(), values());
    for (n, (name, value)) in checkpointed.into_iter().enumerate() {
        // The others are left to the log.
        if n % 2 == 0 {
            db.run(&add, &Parameters::from([("n".into(), name.into()), ("v".into(), value)]))?.collect()?;
        }
    }
    for script in [
        "g.addV('person').property(id, 1).property('name', 'ada').property('age', 36)",
        "g.addV('person').property(id, 'two').property('name', 'bob')\
         .property(list, 'nick', 'b', 'since', 1999).property(list, 'nick', 'bo')",
        "g.addV('person::admin').property(id, UUID('00000000-0000-0000-0000-000000000007')).property('name', 'eve')",
        "g.addV('person').property(id, 'gone').property('name', 'gone')",
        "g.V(1).addE('knows').property(id, 'e1').to(__.V('two')).property('weight', 0.5d).property('since', 1999)",
        "g.V(1).addE('knows').property(id, 'e2').to(__.V('two'))",
        "g.V(1).addE('knows').property(id, 'e3').to(__.V('gone'))",
    ] {
        ask(script)?;
    }
    db.checkpoint()?;
    db.create_index(Some("person"), "name", true, true)?;
    for (n, (name, value)) in logged.into_iter().enumerate() {
        if n % 2 == 1 {
            db.run(&add, &Parameters::from([("n".into(), name.into()), ("v".into(), value)]))?.collect()?;
        }
    }
    for script in [
        "g.V(1).addE('self').property(id, 'e4').to(__.V(1)).property('note', 'a label and a key that only the log has')",
        "g.V(1).property(single, 'age', 37)",
        "g.V('two').property(list, 'nick', 'bobby')",
        "g.E('e1').properties('since').drop()",
        "g.V('gone').drop()",
        "g.E('e2').drop()",
    ] {
        ask(script)?;
    }
    Ok(())
}

/// Checks everything that [`write`] wrote.
#[allow(dead_code, reason = "who writes the files does not look")]
pub fn check(db: &Database) {
    let ask = |script: &str| {
        let answer = db.query(script).and_then(|results| results.collect());
        answer.unwrap_or_else(|error| panic!("{script}: {error}"))
    };
    let value_of = db.prepare("g.V().has('kind', 'name', n).values('value')").unwrap();
    for (name, value) in values() {
        let found = db.run(&value_of, &Parameters::from([("n".into(), name.into())])).unwrap().collect().unwrap();
        assert_eq!(found, [value], "{name}");
    }
    for (script, expected) in [
        ("g.V().count()", vec![Value::I64(values().len() as i64 + 3)]),
        ("g.E().count()", vec![Value::I64(2)]),
        ("g.V().hasLabel('kind').count()", vec![Value::I64(values().len() as i64)]),
        ("g.V(1).values('name', 'age')", vec!["ada".into(), Value::I32(37)]),
        ("g.V('two').values('nick')", vec!["b".into(), "bo".into(), "bobby".into()]),
        ("g.V('two').properties('nick').values('since')", vec![Value::I32(1999)]),
        ("g.V(UUID('00000000-0000-0000-0000-000000000007')).hasLabel('admin').values('name')", vec!["eve".into()]),
        ("g.V('gone')", vec![]),
        ("g.V(1).outE('knows').id()", vec!["e1".into()]),
        ("g.V('two').inE().values()", vec![Value::F64(0.5)]),
        ("g.V(1).both('self').id()", vec![Value::I32(1), Value::I32(1)]),
        ("g.E('e4').values('note')", vec!["a label and a key that only the log has".into()]),
    ] {
        assert_eq!(ask(script), expected, "{script}");
    }
    let indexes: Vec<_> = db.indexes().into_iter().map(|index| index.definition).collect();
    let on_name = |label: &str, kind| IndexDefinition {
        element: ElementKind::Vertex,
        label: Some(label.into()),
        keys: vec!["name".into()],
        kind,
        unique: true,
    };
    assert_eq!(indexes, [on_name("kind", IndexKind::Hash), on_name("person", IndexKind::Ordered)]);
    let taken = db.query("g.addV('person').property('name', 'bob')").and_then(|results| results.collect());
    assert_eq!(taken.unwrap_err().kind(), mangrove::ErrorKind::DuplicateId, "both indexes are unique");
}
