//! Tests: the encoding against bytes captured from gremlinpython and against its own decoder, and decoding of random
//! bytes.

use mangrove_graph::{
    DateTime, Detached, DetachedVertexProperty, Direction, ErrorKind, GraphValue, OperatorMetrics, Token,
    TraversalMetrics, Tree,
};
use proptest::prelude::*;
use smol_str::SmolStr;
use uuid::Uuid;

use super::*;
use crate::encoding::decode_graphbinary_frame;
use crate::generate;
use crate::limits::NESTING_MAX;
use crate::parameters::bind;
use crate::script::TransactionCommand;

const REQUEST: Uuid = Uuid::from_u128(0x41d2_e28a_20a4_4ab0_b379_d810_dede_3786);

fn fixture(text: &str, name: &str) -> Vec<u8> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let digits = line.unwrap_or_else(|| panic!("no fixture {name}")).trim();
    (0..digits.len()).step_by(2).map(|i| u8::from_str_radix(&digits[i..i + 2], 16).unwrap()).collect()
}

fn captured_value(name: &str) -> Vec<u8> {
    fixture(include_str!("../../tests/fixtures/values.txt"), name)
}

fn captured_request(name: &str) -> Request {
    let frame = fixture(include_str!("../../tests/fixtures/requests.txt"), name);
    decode_graphbinary_frame(&frame).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[track_caller]
fn check_argument(name: &str, printed: &str) {
    assert_eq!(decode_argument(&captured_value(name)).unwrap().to_string(), printed, "{name}");
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
        ("bytes", "Binary('00ff')"),
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
        ("path", "path[1, 'x']"),
        ("traverser", "['a': 3]"),
        ("cardinality_value", "Cardinality.list('x')"),
        ("class", "ReadOnlyStrategy"),
    ] {
        check_argument(name, printed);
    }
}

#[test]
fn enums_and_predicates_of_gremlinpython_are_read() {
    check_argument(
        "enums",
        "[T.label, Direction.OUT, Order.desc, Scope.local, Scope.global, Pop.all, Column.keys, Cardinality.list, \
         Merge.onCreate, Merge.outV, Operator.sum, Operator.addAll, Operator.and, Pick.any, Pick.unproductive, \
         Barrier.normSack, DT.day, GType.INT]",
    );
    check_argument(
        "predicates",
        "[P.gt(1), P.gte(1).and(P.lt(5)), P.gt(1).and(P.lt(5)), P.lt(1).or(P.gt(5)), P.within([1, 2]), \
         P.within([1, 2]), P.without([]), P.gt(1).and(P.lt(5)), P.eq(1).or(P.eq(2)), P.not(P.eq(1)), \
         P.typeOf(GType.INT), TextP.containing('a'), P.not(TextP.startingWith('a')), TextP.regex('^a')]",
    );
}

#[test]
fn elements_read_as_values_keep_their_parts() {
    let edge = decode_value(&captured_value("edge")).unwrap();
    let Value::Detached(edge) = edge else { panic!("{edge:?}") };
    let Detached::Edge { label, source, target, .. } = edge.as_ref() else { panic!("{edge:?}") };
    assert_eq!((label.as_str(), &source.0, &target.0), ("knows", &Value::I32(1), &Value::I32(4)));
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
        let request = captured_request(name);
        assert_eq!((request.id, request.op.as_str(), request.processor.as_str()), (REQUEST, "bytecode", "traversal"));
        assert_eq!(request.aliases().unwrap(), [("g".into(), "gmodern".into())]);
        let Gremlin::Bytecode(bytecode) = request.gremlin().unwrap() else { panic!("{name}: no bytecode") };
        assert_eq!(bytecode.to_string(), printed, "{name}");
    }
    let request = captured_request("binding");
    let Gremlin::Bytecode(bytecode) = request.gremlin().unwrap() else { panic!("no bytecode") };
    let bound = bind(bytecode, &request.bindings().unwrap()).unwrap();
    assert_eq!(bound.to_string(), "g.V(1).has('name', 'marko')");
}

#[test]
fn the_arguments_of_a_request_have_types() {
    let request = captured_request("eval");
    assert_eq!(request.gremlin().unwrap(), Gremlin::Text("g.V(x)"));
    assert_eq!(request.bindings().unwrap()["x"], Value::I32(1));
    assert!(matches!(request.bindings().unwrap()["v"], Value::Detached(_)));
    assert_eq!(request.language().unwrap(), Some("gremlin-lang"));
    assert_eq!(request.batch_size().unwrap(), Some(64));
    assert_eq!(request.evaluation_timeout_ms().unwrap(), Some(1000));
    assert_eq!(request.user_agent().unwrap(), Some("test"));
    assert_eq!(request.materialize_properties().unwrap(), MaterializeProperties::Tokens);
    assert_eq!(request.session().unwrap(), None);

    let session = captured_request("session");
    assert_eq!(session.session().unwrap().as_deref(), Some(REQUEST.to_string().as_str()));
    assert_eq!(session.materialize_properties().unwrap(), MaterializeProperties::All);
    let commit = captured_request("commit");
    let Gremlin::Bytecode(bytecode) = commit.gremlin().unwrap() else { panic!("no bytecode") };
    assert_eq!(TransactionCommand::from_bytecode(bytecode), Some(TransactionCommand::Commit));
    assert!(captured_request("close").gremlin().unwrap_err().message().contains("nothing to run"));

    let mut wrong = captured_request("eval");
    for (_, argument) in &mut wrong.arguments {
        *argument = Argument::Value(Value::Bool(true));
    }
    assert_eq!(wrong.gremlin().unwrap_err().message(), "the request's `gremlin` must be a script or bytecode");
    assert!(wrong.batch_size().is_err() && wrong.aliases().is_err() && wrong.bindings().is_err());
}

fn sample_vertex() -> Value {
    let name = DetachedVertexProperty {
        id: Value::string("1:name"),
        key: "name".into(),
        value: Value::string("marko"),
        meta: vec![("since".into(), Value::I32(2010))],
    };
    Value::Detached(Detached::Vertex { id: Value::I64(1), label: "person".into(), properties: vec![name] }.into())
}

fn sample_edge() -> Value {
    let (source, target) = ((Value::I64(1), "person".into()), (Value::I64(3), "software".into()));
    let properties = vec![(SmolStr::new("weight"), Value::F64(0.5))];
    Value::Detached(Detached::Edge { id: Value::I64(9), label: "created".into(), source, target, properties }.into())
}

fn sample_path() -> Value {
    let labels = vec![vec!["a".into(), "b".into()], Vec::new()];
    Value::Path(mangrove_graph::PathValue { objects: vec![sample_vertex(), Value::I32(1)], labels }.into())
}

fn sample_metrics() -> Value {
    let operator = |id: &str, name: &str, nanos| OperatorMetrics {
        id: id.into(),
        name: name.into(),
        nanos,
        counts: vec![("traverserCount".into(), 2)],
        annotations: vec![("percentDur".into(), Value::F64(50.0))],
        nested: Vec::new(),
    };
    let around = OperatorMetrics { nested: vec![operator("1", "count", 3)], ..operator("0", "where", 5) };
    Value::TraversalMetrics(TraversalMetrics { nanos: 1_000_000, operators: vec![around] }.into())
}

/// Values of the kinds that only responses hold, or that have a form of their own there.
fn samples() -> Vec<Value> {
    vec![
        sample_vertex(),
        sample_edge(),
        sample_path(),
        Value::map(vec![(Value::Token(Token::Id), Value::I64(1)), (Value::Direction(Direction::Out), Value::Null)]),
        Value::BulkSet(vec![(Value::string("x"), 2)].into()),
        Value::Detached(Detached::Property { key: "weight".into(), value: Value::F32(0.5) }.into()),
        Value::DateTime(DateTime::parse("2020-01-02T03:04:05.25+02:00").unwrap()),
        sample_metrics(),
    ]
}

/// `responses.txt` holds values as gremlinpython was seen to decode them (`make_fixtures.py --check`). After a
/// deliberate change, run with `MANGROVE_UPDATE_FIXTURES=1` and check again.
#[test]
fn responses_are_the_bytes_gremlinpython_was_seen_to_read() {
    let head = ResponseHead { request_id: Some(REQUEST), code: 200, message: "", attributes: &[] };
    let attributes = [(SmolStr::new("exceptions"), Value::list(vec![Value::string("x")]))];
    let failed = ResponseHead { code: 597, message: "no such step", attributes: &attributes, ..head };
    let none = ResponseHead { code: 204, ..head };
    let traversers: Vec<(u64, Value)> = samples().into_iter().map(|value| (2, value)).collect();
    let mut text = String::new();
    for (name, head, data) in [
        ("values", head, ResponseData::Values(&samples())),
        ("traversers", head, ResponseData::Traversers(&traversers)),
        ("error", failed, ResponseData::Empty),
        ("none", none, ResponseData::Empty),
    ] {
        let mut bytes = Vec::new();
        encode_response(head, data, &mut bytes).unwrap();
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        text.push_str(&format!("{name} {digits}\n"));
    }
    if std::env::var_os("MANGROVE_UPDATE_FIXTURES").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/responses.txt"), &text).unwrap();
    }
    assert_eq!(text, include_str!("../../tests/fixtures/responses.txt"));
}

fn sample_tree() -> Value {
    let below = Tree { branches: vec![(sample_vertex(), Tree::default()), (Value::I32(2), Tree::default())] };
    Value::Tree(Tree { branches: vec![(Value::string("a"), below)] }.into())
}

/// gremlinpython cannot read trees and graphs, so they are not among the samples.
#[test]
fn trees_and_graphs_are_read_as_they_were_written() {
    let Value::Detached(vertex) = sample_vertex() else { panic!("no vertex") };
    let Detached::Vertex { label, properties, .. } = vertex.as_ref().clone() else { panic!("no vertex") };
    let named = |id: i64| {
        Value::Detached(
            Detached::Vertex { id: Value::I64(id), label: label.clone(), properties: properties.clone() }.into(),
        )
    };
    let edge = |source: i64, target: i64| {
        let end = |id: i64| (Value::I64(id), label.clone());
        let properties = vec![("weight".into(), Value::F64(0.5))];
        let (source, target) = (end(source), end(target));
        Value::Detached(Detached::Edge { id: Value::I64(9), label: "knows".into(), source, target, properties }.into())
    };
    let graph = GraphValue { vertices: vec![named(1), named(2)], edges: vec![edge(1, 2)] };
    for value in [sample_tree(), Value::Tree(Tree::default().into()), Value::Graph(graph.into())] {
        let mut bytes = Vec::new();
        super::writer::value(&mut bytes, &value).unwrap();
        let mut reader = super::reader::Reader::new(&bytes, crate::terms::ElementReading::Detached);
        assert_eq!(reader.value().unwrap(), value);
        reader.finish().unwrap();
        for cut in 0..bytes.len() {
            let mut reader = super::reader::Reader::new(&bytes[..cut], crate::terms::ElementReading::Detached);
            assert!(reader.value().is_err(), "cut to {cut} bytes");
        }
    }
    let deep = (0..300).fold(Tree::default(), |below, _| Tree { branches: vec![(Value::Null, below)] });
    let mut bytes = Vec::new();
    super::writer::value(&mut bytes, &Value::Tree(deep.into())).unwrap();
    let refused = super::reader::Reader::new(&bytes, crate::terms::ElementReading::Detached).value().unwrap_err();
    assert!(refused.to_string().contains("nest deeper"), "{refused}");
}

/// The metrics of an operator as the format describes them: id, name, nanoseconds, counts, annotations, nested metrics.
fn operator_bytes(id: u8, name: &[u8], nanos: u8, nested: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x2c, 0];
    bytes.extend([0, 0, 0, 1, id]);
    bytes.extend([0, 0, 0, name.len() as u8]);
    bytes.extend(name);
    bytes.extend([0, 0, 0, 0, 0, 0, 0, nanos]);
    bytes.extend([0, 0, 0, 1, 0x03, 0, 0, 0, 0, 14]);
    bytes.extend(b"traverserCount");
    bytes.extend([0x02, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    bytes.extend([0, 0, 0, 1, 0x03, 0, 0, 0, 0, 10]);
    bytes.extend(b"percentDur");
    bytes.extend([0x07, 0, 0x40, 0x49, 0, 0, 0, 0, 0, 0]);
    bytes.extend([0, 0, 0, u8::from(!nested.is_empty())]);
    bytes.extend(nested);
    bytes
}

#[test]
fn metrics_have_the_bytes_of_the_format() {
    let mut expected = vec![0x2d, 0];
    expected.extend([0, 0, 0, 0, 0, 0x0f, 0x42, 0x40]); // a millisecond in nanoseconds
    expected.extend([0, 0, 0, 1]);
    expected.extend(operator_bytes(b'0', b"where", 5, &operator_bytes(b'1', b"count", 3, &[])));
    let mut bytes = Vec::new();
    encode_value(&sample_metrics(), &mut bytes).unwrap();
    assert_eq!(bytes, expected);
    assert_eq!(decode_value(&expected).unwrap(), sample_metrics());
    for cut in 0..expected.len() {
        assert!(decode_value(&expected[..cut]).is_err(), "cut to {cut} bytes");
    }
}

#[test]
fn metrics_are_refused_in_requests_and_where_they_are_wrong() {
    let mut bytes = Vec::new();
    encode_value(&sample_metrics(), &mut bytes).unwrap();
    let refused = "traversal metrics (GraphBinary type 0x2d) is no value";
    check_refused(&bytes, ErrorKind::Unsupported, refused);
    // In a binding and in a path, which hold values in both ways of reading.
    let binding = [&[0x14, 0, 0, 0, 0, 1, b'x'][..], &bytes].concat();
    check_refused(&binding, ErrorKind::Unsupported, refused);
    let path = [&[0x0e, 0, 0x09, 0, 0, 0, 0, 0, 0x09, 0, 0, 0, 0, 1][..], &bytes].concat();
    check_refused(&path, ErrorKind::Unsupported, refused);

    let wrong = |bytes: &[u8], message: &str| {
        let error = decode_value(bytes).unwrap_err();
        assert!(error.message().contains(message), "{error}");
    };
    let metrics = |operators: &[u8]| [&[0x2d, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], operators].concat();
    wrong(&[&[0x2d, 0][..], &[0xff; 8], &[0; 4]].concat(), "a duration of -1");
    wrong(&metrics(&[0x7f, 0xff, 0xff, 0xff]), "a length of 2147483647");
    wrong(&metrics(&[&[0, 0, 0, 1, 0x01, 0][..], &[0; 40]].concat()), "type 0x01 in place of metrics");
    let operator = |figures: &[u8]| {
        let head = [&[0, 0, 0, 1, 0x2c, 0][..], &[0; 16]].concat();
        metrics(&[head.as_slice(), figures, &[0; 24]].concat())
    };
    wrong(&operator(&[0, 0, 0, 1, 0x01, 0, 0, 0, 0, 7, 0x01, 0, 0, 0, 0, 7]), "a int in place of a name");
    let minus = [&[0, 0, 0, 1, 0x03, 0, 0, 0, 0, 0, 0x02, 0][..], &[0xff; 8]].concat();
    wrong(&operator(&minus), "a count of -1");
    let deep = (0..300).fold(Vec::new(), |nested, _| operator_bytes(b'0', b"", 0, &nested));
    wrong(&metrics(&[&[0, 0, 0, 1][..], &deep].concat()), "nest deeper");
    let endless = TraversalMetrics { nanos: u64::MAX, operators: Vec::new() };
    let error = encode_value(&Value::TraversalMetrics(endless.into()), &mut Vec::new()).unwrap_err();
    assert!(error.message().contains("a count is more than GraphBinary holds"), "{error}");
}

#[test]
fn a_response_that_cannot_be_written_leaves_the_buffer_alone() {
    let head = ResponseHead { request_id: None, code: 200, message: "", attributes: &[] };
    let inside = Value::Vertex(mangrove_graph::VertexId::from_bits(1));
    let mut out = vec![7];
    let error = encode_response(head, ResponseData::Values(&[Value::I32(1), inside]), &mut out).unwrap_err();
    assert_eq!((error.kind(), out), (ErrorKind::Bug, vec![7]));
}

#[test]
fn samples_come_back_as_they_were() {
    for value in samples() {
        let mut bytes = Vec::new();
        encode_value(&value, &mut bytes).unwrap();
        assert_eq!(decode_value(&bytes).unwrap(), value);
    }
}

#[test]
fn a_client_reads_what_the_server_writes() {
    let attributes = [(SmolStr::new("host"), Value::string("here"))];
    let head = ResponseHead { request_id: Some(REQUEST), code: 206, message: "more", attributes: &attributes };
    let traversers: Vec<(u64, Value)> = samples().into_iter().zip(1..).map(|(value, bulk)| (bulk, value)).collect();
    let plain: Vec<(u64, Value)> = samples().into_iter().map(|value| (1, value)).collect();
    for (written, read) in [
        (ResponseData::Traversers(&traversers), traversers.clone()),
        (ResponseData::Values(&samples()), plain),
        (ResponseData::Empty, Vec::new()),
    ] {
        let mut bytes = Vec::new();
        encode_response(head, written, &mut bytes).unwrap();
        let response = decode_response(&bytes).unwrap();
        assert_eq!((response.request_id, response.code, response.message.as_str()), (Some(REQUEST), 206, "more"));
        assert_eq!(response.attributes, attributes);
        assert_eq!(response.data, read);
        assert!(decode_response(&bytes[..bytes.len() - 1]).is_err());
    }
}

#[test]
fn requests_are_written_as_gremlinpython_writes_them() {
    for name in ["steps", "write", "eval", "session", "commit", "close"] {
        let mut frame = Vec::new();
        encode_request(&captured_request(name), &mut frame).unwrap();
        assert_eq!(decode_graphbinary_frame(&frame).unwrap(), captured_request(name), "{name}");
    }
    // Elements and strategies are written in a shorter form than gremlinpython's; all else is the same byte for byte.
    for name in ["steps", "write", "session", "commit", "close"] {
        let mut frame = Vec::new();
        encode_request(&captured_request(name), &mut frame).unwrap();
        assert_eq!(frame, fixture(include_str!("../../tests/fixtures/requests.txt"), name), "{name}");
    }
}

#[track_caller]
fn check_refused(bytes: &[u8], kind: ErrorKind, message: &str) {
    let error = decode_argument(bytes).unwrap_err();
    assert!(error.message().contains(message), "{error}");
    assert_eq!(error.kind(), kind);
}

#[test]
fn what_is_not_read_is_refused_by_name() {
    use ErrorKind::{InvalidArgument, Syntax, Unsupported};
    check_refused(&[0x1d, 0], Unsupported, "lambdas are not supported");
    check_refused(&[0x82, 0], Unsupported, "an internet address (GraphBinary type 0x82)");
    check_refused(&[0x7f, 0], Syntax, "0x7f is no type of GraphBinary 1");
    check_refused(&[0x01, 0, 0, 0], Syntax, "byte 2 of the message: 4 bytes are needed and 2 are left");
    check_refused(&[0x01, 2], Syntax, "0x02 where 0 (a value follows) or 1 (null) is expected");
    check_refused(&[0x09, 0, 0x7f, 0xff, 0xff, 0xff], Syntax, "a length of 2147483647 with 0 bytes left");
    check_refused(&[0x09, 0, 0xff, 0xff, 0xff, 0xff], Syntax, "a length of -1");
    check_refused(&[0x03, 0, 0, 0, 0, 1, 0xff], Syntax, "no UTF-8");
    check_refused(&[0x27, 0, 1, 9], Syntax, "1 bytes follow the end");
    check_refused(&[0x1a, 0, 3, 0, 0, 0, 0, 1, b'x'], Unsupported, "`Order` has no `x`");
    check_refused(&[0x22, 0, 0x7f, 0, 0, 0, 0, 0, 0, 1, 1], InvalidArgument, "a decimal has the scale");
    let json = decode_graphbinary_frame(b"\x10application/json{}").unwrap_err();
    assert!(json.message().contains("in `application/vnd.gremlin-v3.0+json`"), "{json}");
}

#[test]
fn nesting_is_bounded() {
    let deep = |levels: usize| [[0x09, 0, 0, 0, 0, 1].repeat(levels), vec![0xfe, 1]].concat();
    assert!(decode_argument(&deep(NESTING_MAX - 1)).is_ok());
    check_refused(&deep(10_000), ErrorKind::Syntax, "deeper than 200 levels");
    let predicates =
        [[&[0x1e, 0, 0, 0, 0, 3][..], b"not", &[0, 0, 0, 1]].concat().repeat(10_000), vec![0xfe, 1]].concat();
    check_refused(&predicates, ErrorKind::Syntax, "deeper than 200 levels");
}

fn holds_parameter(argument: &Argument) -> bool {
    encode_argument(argument, &mut Vec::new()).is_err()
}

proptest! {
    #[test]
    fn every_value_comes_back(value in generate::value()) {
        let mut bytes = Vec::new();
        encode_value(&value, &mut bytes).unwrap();
        prop_assert_eq!(decode_value(&bytes).unwrap(), value);
    }

    #[test]
    fn every_argument_comes_back(argument in generate::argument()) {
        prop_assume!(!holds_parameter(&argument));
        let mut bytes = Vec::new();
        encode_argument(&argument, &mut bytes).unwrap();
        prop_assert_eq!(decode_argument(&bytes).unwrap(), argument);
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode_argument(&bytes);
        let _ = decode_value(&bytes);
        let _ = decode_graphbinary_frame(&bytes);
        let _ = decode_response(&bytes);
    }

    #[test]
    fn damaged_messages_never_panic(
        argument in generate::argument(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = Vec::new();
        prop_assume!(encode_argument(&argument, &mut bytes).is_ok());
        for (position, byte) in damage {
            let position = position.index(bytes.len());
            bytes[position] = byte;
        }
        let _ = decode_argument(&bytes);
        let _ = decode_value(&bytes);
    }
}

#[test]
fn a_big_integer_has_as_many_digits_as_a_literal() {
    let encoded = |digits: usize| {
        let number: num_bigint::BigInt = "9".repeat(digits).parse().unwrap();
        let mut out = Vec::new();
        encode_value(&Value::BigInt(std::sync::Arc::new(number)), &mut out).unwrap();
        out
    };
    assert!(decode_argument(&encoded(crate::limits::NUMBER_LENGTH_MAX)).is_ok());
    let error = decode_argument(&encoded(crate::limits::NUMBER_LENGTH_MAX + 100)).unwrap_err();
    assert!(error.message().contains("about 20000 digits"), "{error}");
}
