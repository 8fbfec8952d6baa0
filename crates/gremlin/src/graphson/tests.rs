//! GraphSON compared with gremlinpython's text, with the reference server's and with itself, and decoding of random
//! text.

use mangrove_graph::{
    DateTime, Detached, DetachedVertexProperty, Direction, Duration, ErrorKind, GraphValue, OperatorMetrics, PathValue,
    Token, TraversalMetrics, Tree,
};
use proptest::prelude::*;
use smol_str::SmolStr;
use uuid::Uuid;

use super::*;
use crate::generate;
use crate::limits::NESTING_MAX;
use crate::message::{Gremlin, ResponseData, ResponseHead};
use crate::parameters::bind;
use crate::script::TransactionCommand;

const REQUEST: Uuid = Uuid::from_u128(0x41d2_e28a_20a4_4ab0_b379_d810_dede_3786);
const V3: Dialect = Dialect { version: Version::V3, typed: true };
const V2: Dialect = Dialect { version: Version::V2, typed: true };
const PLAIN: Dialect = Dialect { version: Version::V3, typed: false };

const VALUES: [&str; 2] = [
    include_str!("../../tests/fixtures/values-graphson2.txt"),
    include_str!("../../tests/fixtures/values-graphson3.txt"),
];
const REQUESTS: [&str; 2] = [
    include_str!("../../tests/fixtures/requests-graphson2.txt"),
    include_str!("../../tests/fixtures/requests-graphson3.txt"),
];

fn fixture<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
}

#[track_caller]
fn check_captured(name: &str, printed: &str) {
    for text in VALUES.iter().filter_map(|text| fixture(text, name)) {
        let argument = decode_argument(text.as_bytes()).unwrap_or_else(|e| panic!("{name}: {e}"));
        let printed = if text.starts_with('[') && name == "set" { "[5]" } else { printed };
        assert_eq!(argument.to_string(), printed, "{name}");
    }
}

#[test]
fn values_of_gremlinpython_are_read() {
    for (name, printed) in [
        ("null", "null"),
        ("true", "true"),
        ("byte", "-1b"),
        ("short", "300s"),
        ("int", "42"),
        ("long", "1099511627776L"),
        ("bigint", "-1180591620717411303424n"),
        ("double", "1.5"),
        ("nan", "NaN"),
        ("decimal", "-12345e-2m"),
        ("char", "'é'"),
        ("string", "'grün'"),
        ("uuid", "UUID('41d2e28a-20a4-4ab0-b379-d810dede3786')"),
        ("date", "datetime('2020-01-02T03:04:05Z')"),
        ("timestamp", "datetime('2020-01-02T03:04:05.25Z')"),
        ("datetime", "datetime('2020-01-02T03:04:05.25+02:00')"),
        ("duration", "Duration('PT90.005S')"),
        ("list", "[1, 'a', null]"),
        ("set", "{5}"),
        ("map", "['a': 1, (T.id): [2]]"),
        ("vertex", "new Vertex(1)"),
        ("edge", "new Edge(7)"),
        ("vertexproperty", "vp[name->'marko']"),
        ("property", "p[since->2010]"),
        ("traverser", "['a': 3]"),
        ("cardinality_value", "Cardinality.list('x')"),
        (
            "enums",
            "[T.label, Direction.OUT, Order.desc, Scope.local, Scope.global, Pop.all, Column.keys, Cardinality.list, \
             Merge.onCreate, Merge.outV, Operator.sum, Operator.addAll, Operator.and, Pick.any, Pick.unproductive, \
             Barrier.normSack, DT.day, GType.INT]",
        ),
        (
            "predicates",
            "[P.gt(1), P.gte(1).and(P.lt(5)), P.gt(1).and(P.lt(5)), P.lt(1).or(P.gt(5)), P.within([1, 2]), \
             P.within([1, 2]), P.without([]), P.gt(1).and(P.lt(5)), P.eq(1).or(P.eq(2)), P.not(P.eq(1)), \
             P.typeOf(GType.INT), TextP.containing('a'), P.not(TextP.startingWith('a')), TextP.regex('^a')]",
        ),
    ] {
        check_captured(name, printed);
    }
    // gremlinpython does not write bytes as base64, unlike every other client.
    let bytes = fixture(VALUES[1], "bytes").unwrap();
    assert!(decode_value(bytes.as_bytes()).unwrap_err().message().contains("base64"));
}

#[test]
fn traversals_of_gremlinpython_are_read() {
    for (name, printed) in [
        ("steps", "g.V(1).out('knows').where(__.in().has('age', P.gt(30))).values('name').dedup()"),
        (
            "source",
            "g.withStrategies(new SubgraphStrategy(vertices: __.hasLabel('a')), ReadOnlyStrategy)\
             .withSideEffect('x', [1]).V().count()",
        ),
        ("write", "g.mergeV([(T.label): 'a', 'k': 1]).option(Merge.onCreate, ['k': Cardinality.set(2)]).discard()"),
        ("elements", "g.V(new Vertex(1)).addE('knows').to(new Vertex(4))"),
        ("binding", "g.V(x).has('name', n)"),
    ] {
        for text in REQUESTS.iter().filter_map(|text| fixture(text, name)) {
            let request = decode_request(text.as_bytes()).unwrap();
            let heads = (request.id, request.op.as_str(), request.processor.as_str());
            assert_eq!(heads, (REQUEST, "bytecode", "traversal"));
            assert_eq!(request.aliases().unwrap(), [("g".into(), "gmodern".into())]);
            let Gremlin::Bytecode(bytecode) = request.gremlin().unwrap() else { panic!("{name}: no bytecode") };
            assert_eq!(bytecode.to_string(), printed, "{name}");
            if name == "binding" {
                let bound = bind(bytecode, &request.bindings().unwrap()).unwrap();
                assert_eq!(bound.to_string(), "g.V(1).has('name', 'marko')");
            }
        }
    }
}

#[test]
fn the_arguments_of_a_request_have_types() {
    for text in REQUESTS {
        let request = decode_request(fixture(text, "eval").unwrap().as_bytes()).unwrap();
        assert_eq!(request.gremlin().unwrap(), Gremlin::Text("g.V(x)"));
        assert_eq!(request.bindings().unwrap()["x"], Value::I32(1));
        assert_eq!((request.batch_size().unwrap(), request.evaluation_timeout_ms().unwrap()), (Some(64), Some(1000)));
        assert_eq!((request.language().unwrap(), request.user_agent().unwrap()), (Some("gremlin-lang"), Some("test")));
        let commit = decode_request(fixture(text, "commit").unwrap().as_bytes()).unwrap();
        let Gremlin::Bytecode(bytecode) = commit.gremlin().unwrap() else { panic!("no bytecode") };
        assert_eq!(TransactionCommand::from_bytecode(bytecode), Some(TransactionCommand::Commit));
        assert_eq!(commit.session().unwrap().as_deref(), Some(REQUEST.to_string().as_str()));
    }
    // Java writes the arguments as a typed map, and the id as a plain string.
    let java = br#"{"requestId":"41d2e28a-20a4-4ab0-b379-d810dede3786","op":"eval","processor":"","args":
        {"@type":"g:Map","@value":["gremlin","g.V()","manageTransaction",true,"batchSize",{"@type":"g:Int32","@value":8}]}}"#;
    let request = decode_request(java).unwrap();
    assert_eq!((request.batch_size().unwrap(), request.manages_transaction().unwrap()), (Some(8), true));
}

fn marko() -> Value {
    let property =
        |id: i64, key: &str, value, meta| DetachedVertexProperty { id: Value::I64(id), key: key.into(), value, meta };
    let since = vec![(SmolStr::new("since"), Value::I32(1997))];
    let properties = vec![
        property(0, "name", Value::string("marko"), Vec::new()),
        property(1, "age", Value::I32(29), Vec::new()),
        property(2, "name", Value::string("m\"k"), since),
    ];
    Value::Detached(Detached::Vertex { id: Value::I32(1), label: "person".into(), properties }.into())
}

fn knows() -> Value {
    let (source, target) = ((Value::I32(1), "person".into()), (Value::I32(2), "person".into()));
    let properties = vec![(SmolStr::new("weight"), Value::F64(0.5))];
    Value::Detached(Detached::Edge { id: Value::I32(7), label: "knows".into(), source, target, properties }.into())
}

fn path() -> Value {
    Value::Path(PathValue { objects: vec![Value::I32(1), knows()], labels: vec![vec!["a".into()], Vec::new()] }.into())
}

#[track_caller]
fn check_written(value: &Value, v3: &str, v2: &str, plain: &str) {
    for (dialect, expected) in [(V3, v3), (V2, v2), (PLAIN, plain)] {
        let mut out = Vec::new();
        encode_value(dialect, value, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), expected, "{dialect:?}");
    }
    let mut out = Vec::new();
    encode_value(V3, value, &mut out).unwrap();
    assert_eq!(&decode_value(&out).unwrap(), value);
}

/// For the values that TinkerPop's own server has, the expected texts are what it writes.
#[test]
fn values_are_written_as_the_reference_writes_them() {
    for (value, v3, plain) in [
        (Value::Null, "null", "null"),
        (Value::I8(1), r#"{"@type":"gx:Byte","@value":1}"#, "1"),
        (Value::I16(2), r#"{"@type":"gx:Int16","@value":2}"#, "2"),
        (Value::I64(3), r#"{"@type":"g:Int64","@value":3}"#, "3"),
        (Value::F32(4.0), r#"{"@type":"g:Float","@value":4.0}"#, "4.0"),
        (Value::F32(f32::NEG_INFINITY), r#"{"@type":"g:Float","@value":"-Infinity"}"#, r#""-Infinity""#),
        (Value::Char('c'), r#"{"@type":"gx:Char","@value":"c"}"#, r#""c""#),
        (Value::Bytes((*b"ab").into()), r#"{"@type":"gx:ByteBuffer","@value":"YWI="}"#, r#""YWI=""#),
        (Value::Token(Token::Label), r#"{"@type":"g:T","@value":"label"}"#, r#""label""#),
        (Value::Direction(Direction::Out), r#"{"@type":"g:Direction","@value":"OUT"}"#, r#""OUT""#),
        (
            Value::Duration(Duration { seconds: -2, nanos: 500_000_000 }),
            r#"{"@type":"gx:Duration","@value":"-PT1.500S"}"#,
            r#""-PT1.500S""#,
        ),
        (
            Value::DateTime(DateTime::parse("2020-01-02T03:04:05.25+02:00").unwrap()),
            r#"{"@type":"gx:OffsetDateTime","@value":"2020-01-02T03:04:05.250+02:00"}"#,
            r#""2020-01-02T03:04:05.250+02:00""#,
        ),
    ] {
        check_written(&value, v3, v3, plain);
    }
    check_written(
        &Value::map(vec![(Value::Token(Token::Id), Value::I32(1)), (Value::F32(2.5), Value::list(vec![Value::Null]))]),
        r#"{"@type":"g:Map","@value":[{"@type":"g:T","@value":"id"},{"@type":"g:Int32","@value":1},{"@type":"g:Float","@value":2.5},{"@type":"g:List","@value":[null]}]}"#,
        r#"{"id":{"@type":"g:Int32","@value":1},"2.5":[null]}"#,
        r#"{"id":1,"2.5":[null]}"#,
    );
    check_written(
        &Value::BulkSet(vec![(Value::string("java"), 2)].into()),
        r#"{"@type":"g:BulkSet","@value":["java",{"@type":"g:Int64","@value":2}]}"#,
        r#"["java","java"]"#,
        r#"["java","java"]"#,
    );
}

#[test]
fn trees_and_graphs_are_written_and_read() {
    let below = Tree { branches: vec![(Value::string("c"), Tree::default())] };
    let tree = Value::Tree(Tree { branches: vec![(Value::string("a"), below)] }.into());
    let typed = r#"{"@type":"g:Tree","@value":[{"key":"a","value":{"@type":"g:Tree","@value":[{"key":"c","value":{"@type":"g:Tree","@value":[]}}]}}]}"#;
    let plain = r#"[{"key":"a","value":[{"key":"c","value":[]}]}]"#;
    check_written(&tree, typed, typed, plain);
    let mut vertex = marko();
    if let Value::Detached(detached) = &mut vertex
        && let Detached::Vertex { properties, .. } = std::sync::Arc::make_mut(detached)
    {
        // GraphSON keeps the values of a key together.
        properties.sort_by(|a, b| b.key.cmp(&a.key));
    }
    let graph = Value::Graph(GraphValue { vertices: vec![vertex], edges: vec![knows()] }.into());
    for (dialect, value) in [(V3, &tree), (V2, &tree), (V3, &graph), (V2, &graph)] {
        let mut out = Vec::new();
        encode_value(dialect, value, &mut out).unwrap();
        assert_eq!(&decode_value(&out).unwrap(), value);
    }
}

#[test]
fn metrics_are_written_as_the_reference_writes_them() {
    let nested = OperatorMetrics { id: "1".into(), name: "count".into(), nanos: 500, ..OperatorMetrics::default() };
    let around = OperatorMetrics {
        id: "0".into(),
        name: "where".into(),
        nanos: 2_500_000,
        counts: vec![("traverserCount".into(), 2)],
        annotations: vec![("percentDur".into(), Value::F64(50.0))],
        nested: vec![nested],
    };
    let metrics = Value::TraversalMetrics(TraversalMetrics { nanos: 4_000_000, operators: vec![around] }.into());
    let expected = [
        r#"{"@type":"g:TraversalMetrics","@value":{"@type":"g:Map","@value":["dur",{"@type":"g:Double","@value":4.0},"metrics",{"@type":"g:List","@value":[{"@type":"g:Metrics","@value":{"@type":"g:Map","@value":["id","0","name","where","dur",{"@type":"g:Double","@value":2.5},"counts",{"@type":"g:Map","@value":["traverserCount",{"@type":"g:Int64","@value":2}]},"annotations",{"@type":"g:Map","@value":["percentDur",{"@type":"g:Double","@value":50.0}]},"metrics",{"@type":"g:List","@value":[{"@type":"g:Metrics","@value":{"@type":"g:Map","@value":["id","1","name","count","dur",{"@type":"g:Double","@value":0.0005}]}}]}]}}]}]}}"#,
        r#"{"@type":"g:TraversalMetrics","@value":{"dur":{"@type":"g:Double","@value":4.0},"metrics":[{"@type":"g:Metrics","@value":{"id":"0","name":"where","dur":{"@type":"g:Double","@value":2.5},"counts":{"traverserCount":{"@type":"g:Int64","@value":2}},"annotations":{"percentDur":{"@type":"g:Double","@value":50.0}},"metrics":[{"@type":"g:Metrics","@value":{"id":"1","name":"count","dur":{"@type":"g:Double","@value":0.0005}}}]}}]}}"#,
        r#"{"dur":4.0,"metrics":[{"id":"0","name":"where","dur":2.5,"counts":{"traverserCount":2},"annotations":{"percentDur":50.0},"metrics":[{"id":"1","name":"count","dur":0.0005}]}]}"#,
    ];
    // The reader refuses them, because only clients get them.
    for (dialect, expected) in [V3, V2, PLAIN].into_iter().zip(expected) {
        let mut out = Vec::new();
        encode_value(dialect, &metrics, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
    check_refused(r#"{"@type":"g:TraversalMetrics","@value":{}}"#, ErrorKind::Unsupported, "is no value");
}

#[test]
fn elements_are_written_as_the_reference_writes_them() {
    let vertex = r#"{"@type":"g:Vertex","@value":{"id":{"@type":"g:Int32","@value":1},"label":"person","properties":{"name":[{"@type":"g:VertexProperty","@value":{"id":{"@type":"g:Int64","@value":0},"value":"marko","label":"name"}},{"@type":"g:VertexProperty","@value":{"id":{"@type":"g:Int64","@value":2},"value":"m\"k","label":"name","properties":{"since":{"@type":"g:Int32","@value":1997}}}}],"age":[{"@type":"g:VertexProperty","@value":{"id":{"@type":"g:Int64","@value":1},"value":{"@type":"g:Int32","@value":29},"label":"age"}}]}}}"#;
    let plain = r#"{"id":1,"label":"person","properties":{"name":[{"id":0,"value":"marko","label":"name"},{"id":2,"value":"m\"k","label":"name","properties":{"since":1997}}],"age":[{"id":1,"value":29,"label":"age"}]}}"#;
    for (dialect, expected) in [(V3, vertex), (V2, vertex), (PLAIN, plain)] {
        let mut out = Vec::new();
        encode_value(dialect, &marko(), &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
    let edge = r#"{"@type":"g:Edge","@value":{"id":{"@type":"g:Int32","@value":7},"label":"knows","inVLabel":"person","outVLabel":"person","inV":{"@type":"g:Int32","@value":2},"outV":{"@type":"g:Int32","@value":1},"properties":{"weight":{"@type":"g:Property","@value":{"key":"weight","value":{"@type":"g:Double","@value":0.5}}}}}}"#;
    let plain = r#"{"id":7,"label":"knows","inVLabel":"person","outVLabel":"person","inV":2,"outV":1,"properties":{"weight":{"key":"weight","value":0.5}}}"#;
    check_written(&knows(), edge, edge, plain);
    check_written(
        &path(),
        &format!(
            r#"{{"@type":"g:Path","@value":{{"labels":{{"@type":"g:List","@value":[{{"@type":"g:Set","@value":["a"]}},{{"@type":"g:Set","@value":[]}}]}},"objects":{{"@type":"g:List","@value":[{{"@type":"g:Int32","@value":1}},{edge}]}}}}}}"#
        ),
        &format!(
            r#"{{"@type":"g:Path","@value":{{"labels":[["a"],[]],"objects":[{{"@type":"g:Int32","@value":1}},{edge}]}}}}"#
        ),
        &format!(r#"{{"labels":[["a"],[]],"objects":[1,{plain}]}}"#),
    );
    let mut out = Vec::new();
    encode_value(V2, &path(), &mut out).unwrap();
    assert_eq!(decode_value(&out).unwrap(), path());
}

#[track_caller]
fn check_response(dialect: Dialect, data: ResponseData<'_>, expected: &str) {
    let head = ResponseHead { request_id: Some(REQUEST), code: 200, message: "", attributes: &[] };
    let mut out = Vec::new();
    encode_response(dialect, head, data, &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn responses_are_written_as_the_reference_writes_them() {
    let id = REQUEST;
    check_response(
        V3,
        ResponseData::Traversers(&[(2, Value::string("a")), (1, Value::Null)]),
        &format!(
            r#"{{"requestId":"{id}","status":{{"message":"","code":200,"attributes":{{"@type":"g:Map","@value":[]}}}},"result":{{"data":{{"@type":"g:List","@value":[{{"@type":"g:Traverser","@value":{{"bulk":{{"@type":"g:Int64","@value":2}},"value":"a"}}}},{{"@type":"g:Traverser","@value":{{"bulk":{{"@type":"g:Int64","@value":1}},"value":null}}}}]}},"meta":{{"@type":"g:Map","@value":[]}}}}}}"#
        ),
    );
    check_response(
        PLAIN,
        ResponseData::Values(&[Value::I32(1), Value::Null]),
        &format!(
            r#"{{"requestId":"{id}","status":{{"message":"","code":200,"attributes":{{}}}},"result":{{"data":[1,null],"meta":{{}}}}}}"#
        ),
    );
    check_response(
        V2,
        ResponseData::Empty,
        &format!(
            r#"{{"requestId":"{id}","status":{{"message":"","code":200,"attributes":{{}}}},"result":{{"data":null,"meta":{{}}}}}}"#
        ),
    );
}

#[test]
fn a_response_that_cannot_be_written_leaves_the_buffer_alone() {
    let head = ResponseHead { request_id: None, code: 200, message: "", attributes: &[] };
    let inside = Value::Vertex(mangrove_graph::VertexId::from_bits(1));
    let mut out = vec![7];
    let error = encode_response(V3, head, ResponseData::Values(&[Value::I32(1), inside]), &mut out).unwrap_err();
    assert_eq!((error.kind(), out), (ErrorKind::Bug, vec![7]));
    let endless = Value::BulkSet(vec![(Value::Null, u64::MAX / 2)].into());
    let mut out = Vec::new();
    assert!(encode_value(PLAIN, &endless, &mut out).unwrap_err().message().contains("GraphSON 3 with types"));
    encode_value(V3, &endless, &mut out).unwrap();
}

#[track_caller]
fn check_refused(text: &str, kind: ErrorKind, message: &str) {
    let error = decode_argument(text.as_bytes()).unwrap_err();
    assert!(error.message().contains(message), "{error}");
    assert_eq!(error.kind(), kind, "{error}");
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let syntax = ErrorKind::Syntax;
    check_refused(r#"[1, {"@type":"g:Int32","@value":1.5}]"#, syntax, "byte 32 of the message: this is not an int");
    check_refused(r#"{"@type":"g:Int32","@value":2147483648}"#, syntax, "this is not an int");
    check_refused(r#"{"@type":"g:Double","@value":1e999}"#, syntax, "too large");
    check_refused(r#"{"@type":"g:Double","@value":"nan"}"#, syntax, "this is no number");
    check_refused(r#"{"@type":"gx:BigDecimal","@value":"1e999999999"}"#, syntax, "scale of a decimal");
    check_refused(
        &format!(r#"{{"@type":"gx:BigInteger","@value":"{}"}}"#, "9".repeat(20_001)),
        syntax,
        "at most 20000",
    );
    check_refused(r#"{"@type":"g:UUID","@value":"x"}"#, syntax, "not a UUID");
    check_refused(r#"{"@type":"gx:Char","@value":"ab"}"#, syntax, "one character");
    check_refused(r#"{"@type":"g:Map","@value":[1]}"#, syntax, "no value");
    check_refused(r#"{"@type":"g:Nothing","@value":1}"#, syntax, "`g:Nothing` is no type");
    check_refused(r#"{"@type":"g:Metrics","@value":{}}"#, ErrorKind::Unsupported, "`g:Metrics` is no value");
    check_refused(r#"{"@type":"g:Lambda","@value":{"script":"x"}}"#, ErrorKind::Unsupported, "lambdas");
    check_refused(r#"{"@type":"g:Pop","@value":"second"}"#, ErrorKind::Unsupported, "`Pop` has no `second`");
    check_refused(r#"{"@type":7,"@value":"second"}"#, syntax, "byte 9 of the message: the `@type`");
    check_refused(r#"{"@type":"g:Vertex","@value":{}}"#, syntax, "`id` is missing");
    check_refused(r#"{"@type":"g:Bytecode","@value":{"step":[[]]}}"#, syntax, "without a name");
    check_refused(r#"{"@type":"g:Traverser","@value":{"bulk":-1,"value":1}}"#, syntax, "bulk");
}

#[test]
fn nesting_has_a_limit() {
    let lists = |levels: usize| format!("{}1{}", r#"{"@type":"g:List","@value":["#.repeat(levels), "]}".repeat(levels));
    decode_argument(lists(NESTING_MAX - 1).as_bytes()).unwrap();
    check_refused(&lists(NESTING_MAX), ErrorKind::Syntax, "nest deeper");
    let inside = r#"{"@type":"g:Bytecode","@value":{"step":[["where","#;
    let traversals = |levels: usize| format!("{}1{}", inside.repeat(levels), "]]}}".repeat(levels));
    decode_argument(traversals(NESTING_MAX - 1).as_bytes()).unwrap();
    check_refused(&traversals(NESTING_MAX), ErrorKind::Syntax, "nest deeper");
    check_refused(&traversals(10_000), ErrorKind::Syntax, "nests deeper");
}

#[test]
fn untyped_numbers_take_the_first_type_that_holds_them() {
    let read = |text: &str| decode_value(text.as_bytes()).unwrap().to_owned();
    assert_eq!(read("1"), Value::I32(1));
    assert_eq!(read("2147483648"), Value::I64(1 << 31));
    assert!(matches!(read("9223372036854775808"), Value::BigInt(_)));
    assert_eq!(read("1.0"), Value::F64(1.0));
    assert_eq!(read("1e3"), Value::F64(1000.0));
}

/// The part of a value that GraphSON 2 keeps: no sets, and strings as keys.
fn in_version_2(value: &Value) -> bool {
    match value {
        Value::Set(_) => false,
        Value::List(items) => items.iter().all(in_version_2),
        Value::Map(entries) => {
            entries.iter().all(|(k, v)| matches!(k, Value::String(key) if key != "@type") && in_version_2(v))
        }
        _ => true,
    }
}

proptest! {
    #[test]
    fn every_value_comes_back(value in generate::value()) {
        let mut out = Vec::new();
        encode_value(V3, &value, &mut out).unwrap();
        prop_assert_eq!(&decode_value(&out).unwrap(), &value);
        if in_version_2(&value) {
            out.clear();
            encode_value(V2, &value, &mut out).unwrap();
            prop_assert_eq!(&decode_value(&out).unwrap(), &value);
        }
        out.clear();
        encode_value(PLAIN, &value, &mut out).unwrap();
        json::parse(&out).unwrap();
    }

    #[test]
    fn every_argument_comes_back(argument in generate::argument()) {
        // Only parameters are refused, because the wire has no form for them.
        let mut out = Vec::new();
        prop_assume!(encode_argument(V3, &argument, &mut out).is_ok());
        prop_assert_eq!(decode_argument(&out).unwrap(), argument);
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), text in any::<String>()) {
        let _ = decode_argument(&bytes);
        let _ = decode_request(&bytes);
        let _ = decode_value(text.as_bytes());
    }

    #[test]
    fn damaged_messages_never_panic(
        argument in generate::argument(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        other in any::<prop::sample::Index>(),
    ) {
        let mut bytes = Vec::new();
        prop_assume!(encode_argument(V3, &argument, &mut bytes).is_ok());
        for (position, byte) in damage {
            let position = position.index(bytes.len());
            bytes[position] = byte;
        }
        let _ = decode_argument(&bytes);
        let _ = decode_value(&bytes);
        // Exchanging two parts of the text puts types before other contents.
        let cut = other.index(bytes.len());
        let spliced = [&bytes[cut..], &bytes[..cut]].concat();
        let _ = decode_argument(&spliced);
        let _ = decode_request(&[br#"{"requestId":"41d2e28a-20a4-4ab0-b379-d810dede3786","args":"#, &bytes[..], b"}"].concat());
    }

    /// Every type is read with the content of every other.
    #[test]
    fn any_type_over_any_content_never_panics(argument in generate::argument(), type_name in prop::sample::select(TYPES)) {
        let mut bytes = Vec::new();
        prop_assume!(encode_argument(V3, &argument, &mut bytes).is_ok());
        let text = [br#"{"@type":""#, type_name.as_bytes(), br#"","@value":"#, &bytes, b"}"].concat();
        let _ = decode_argument(&text);
        let members = ["id", "bulk", "value", "labels", "objects", "step", "predicate", "key", "conf", "properties"];
        for name in members {
            let text = [br#"{"@type":""#, type_name.as_bytes(), br#"","@value":{"id":1,"value":2,""#, name.as_bytes(), br#"":"#, &bytes, b"}}"].concat();
            let _ = decode_argument(&text);
            let _ = decode_value(&text);
        }
    }
}

const TYPES: &[&str] = &[
    "g:Int32",
    "g:Int64",
    "gx:Int16",
    "gx:Byte",
    "gx:BigInteger",
    "g:Float",
    "g:Double",
    "gx:BigDecimal",
    "g:UUID",
    "gx:Char",
    "gx:ByteBuffer",
    "g:Date",
    "gx:Instant",
    "gx:OffsetDateTime",
    "gx:Duration",
    "g:List",
    "g:Set",
    "g:Map",
    "g:BulkSet",
    "g:Vertex",
    "g:Edge",
    "g:VertexProperty",
    "g:Property",
    "g:Path",
    "g:Traverser",
    "g:Bytecode",
    "g:P",
    "g:TextP",
    "g:Binding",
    "g:Class",
    "g:Lambda",
    "g:Pop",
    "g:SubgraphStrategy",
    "g:Tree",
    "x",
    "",
];
