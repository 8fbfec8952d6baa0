//! An exported graph loads again as an equal graph: generated graphs with values of every type, in every format.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use mangrove_graph::{Catalog, DateTime, Duration, UserId, Value};
use mangrove_load::LoadOptions;
use mangrove_load::export::{
    ColumnsTable, ExportFormat, ExportOptions, Losses, PlainChanges, columns_tables, compare_columns, export,
    write_columns,
};
use mangrove_store::{BulkColumn, ColumnData, MultiProperty, MultiValue, Store, StoreOptions};
use mangrove_txn::TransactionManager;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::schema::printer::print_schema;
use proptest::prelude::*;

use crate::common::{Folder, Graph, load_clean};

/// A property key with its values, each with meta-properties.
type Property = (String, Vec<(Value, Meta)>);
/// Keys with their values, of a value or of an edge.
type Meta = Vec<(String, Value)>;

/// A graph to be written.
#[derive(Clone, Debug)]
struct Model {
    vertices: Vec<(UserId, String, Vec<Property>)>,
    /// Ends are positions in `vertices`.
    edges: Vec<(UserId, String, usize, usize, Meta)>,
}

/// Characters that some format writes in a way of its own: controls, line ends of every kind, spaces, what XML cannot
/// hold, quotes and separators.
const AWKWARD: [char; 26] = [
    '\0', '\u{1}', '\t', '\n', '\u{b}', '\u{c}', '\r', '\u{1f}', ' ', '\u{7f}', '\u{85}', '\u{a0}', '\u{2028}',
    '\u{2029}', '\u{feff}', '\u{fffe}', '\u{ffff}', '"', '\'', '&', '<', '>', ';', ',', '\\', '|',
];

fn awkward() -> impl Strategy<Value = char> {
    prop::sample::select(&AWKWARD[..])
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        proptest::collection::vec(awkward(), 1..4).prop_map(String::from_iter),
        Just(String::new()),
        Just("\\N".to_owned()),
        Just("007".to_owned()),
        Just(" a,\"b\"\r\n;|[x]{y}<&>'\t\u{0}\u{1f}\u{fffe} ".to_owned()),
        proptest::string::string_regex("[a-c0-9,;:\"\\\\\n\r é😀]{0,8}").unwrap(),
    ]
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<bool>().prop_map(Value::Bool),
        any::<i8>().prop_map(Value::I8),
        any::<i16>().prop_map(Value::I16),
        any::<i32>().prop_map(Value::I32),
        any::<i64>().prop_map(Value::I64),
        any::<f32>().prop_map(Value::F32),
        prop_oneof![any::<f64>(), Just(f64::NAN), Just(f64::NEG_INFINITY), Just(-0.0), Just(1e300)]
            .prop_map(Value::F64),
        any::<i128>().prop_map(|n| Value::BigInt(Arc::new((num_bigint::BigInt::from(n)) * n))),
        (any::<i64>(), -30_i64..30)
            .prop_map(|(n, scale)| Value::Decimal(Arc::new(bigdecimal::BigDecimal::new(n.into(), scale)))),
        prop_oneof![awkward(), any::<char>()].prop_map(Value::Char),
        text().prop_map(Value::string),
        proptest::collection::vec(any::<u8>(), 0..5).prop_map(|bytes| Value::Bytes(bytes.into())),
        any::<u128>().prop_map(|n| Value::Uuid(uuid::Uuid::from_u128(n))),
        (
            prop_oneof![any::<i64>().prop_map(|s| s / 1_000_000), -100_000_000_000_i64..300_000_000_000],
            0_u32..1_000_000_000,
            -64_800..64_800
        )
            .prop_map(|(seconds, nanos, offset_seconds)| Value::DateTime(DateTime {
                seconds,
                nanos,
                offset_seconds
            })),
        (any::<i64>().prop_map(|s| s / 2), 0_u32..1_000_000_000)
            .prop_map(|(seconds, nanos)| Value::Duration(Duration { seconds, nanos })),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let list = |of| proptest::collection::vec(of, 0..4).prop_map(Value::list);
    prop_oneof![
        12 => scalar(),
        2 => proptest::collection::vec(text().prop_map(Value::string), 0..4).prop_map(Value::list),
        1 => proptest::collection::vec(any::<i32>().prop_map(Value::I32), 1..4).prop_map(Value::list),
        1 => list(scalar().boxed()),
        1 => list(list(scalar().boxed()).boxed()),
        1 => (scalar(), scalar()).prop_map(|(a, b)| Value::map(vec![(Value::string("k"), a), (Value::I64(1), b)])),
        1 => any::<i32>().prop_map(|n| Value::Set(Arc::new(vec![Value::I32(n), Value::string("x")]))),
        1 => proptest::collection::vec(any::<f32>(), 0..4).prop_map(|items| Value::F32Array(items.into())),
    ]
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![Just("name"), Just("since"), Just("größe: cm"), Just("a,b")].prop_map(str::to_owned)
}

fn label() -> impl Strategy<Value = String> {
    prop_oneof![Just("person"), Just("Ort::Stadt"), Just("a b"), Just("x/y")].prop_map(str::to_owned)
}

fn model(with_meta: bool) -> impl Strategy<Value = Model> {
    let meta = proptest::collection::vec(
        (key(), value()).prop_map(|(key, value)| (key, value)),
        0..if with_meta { 2 } else { 1 },
    );
    let meta = meta.prop_map(move |meta| if with_meta { meta } else { Vec::new() });
    let property = (key(), proptest::collection::vec((value(), meta), 1..3));
    let vertex = (label(), proptest::collection::vec(property, 0..4));
    let edge = (
        label(),
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
        proptest::collection::vec((key(), value()), 0..3),
    );
    let ids = prop_oneof![Just(0_u8), Just(1), Just(2), Just(3)];
    (ids, proptest::collection::vec(vertex, 1..6), proptest::collection::vec(edge, 0..6)).prop_map(
        |(ids, vertices, edges)| {
            let id = |at: usize| match (ids, at % 4) {
                (0, _) | (3, 0) => UserId::int(at as i64 * 3 - 1),
                (1, _) | (3, 1) => UserId::from_value(&Value::I32(at as i32)).unwrap(),
                (2, _) | (3, 2) => UserId::from(format!("id {at} \"é\"").as_str()),
                _ => UserId::Uuid(uuid::Uuid::from_u128(at as u128)),
            };
            let unique = |mut properties: Vec<Property>| {
                properties.sort_by(|a, b| a.0.cmp(&b.0));
                properties.dedup_by(|a, b| a.0 == b.0);
                properties
            };
            let count = vertices.len();
            let vertices = vertices
                .into_iter()
                .enumerate()
                .map(|(at, (label, properties))| (id(at), label, unique(properties)))
                .collect();
            let edges = edges.into_iter().enumerate().map(|(at, (label, from, to, mut properties))| {
                properties.sort_by(|a, b| a.0.cmp(&b.0));
                properties.dedup_by(|a, b| a.0 == b.0);
                (id(at), label, from.index(count), to.index(count), properties)
            });
            Model { vertices, edges: edges.collect() }
        },
    )
}

/// The model in a store: by the typed bulk loader, an element a call, so without any of our file formats.
fn build(model: &Model) -> TransactionManager {
    let manager = TransactionManager::new(Arc::new(Store::new(&StoreOptions::default())));
    let mut load = manager.bulk_load().unwrap();
    let mut vertices = Vec::new();
    for (id, label, properties) in &model.vertices {
        let catalog = load.store().catalog();
        let label = catalog.intern_label_text(label);
        let column = |(key, values): &Property| BulkColumn {
            key: catalog.intern_key(key),
            values: match values.as_slice() {
                [(value, meta)] if meta.is_empty() => ColumnData::Any(vec![Some(value.clone())]),
                several => ColumnData::Multi(vec![MultiProperty {
                    values: several.iter().enumerate().map(|(at, value)| multi_value(catalog, at, value)).collect(),
                }]),
            },
        };
        let columns: Vec<_> = properties.iter().map(column).collect();
        vertices.extend(load.vertices(label, 1, Some(std::slice::from_ref(id)), &columns).unwrap());
    }
    for (id, label, from, to, properties) in &model.edges {
        let catalog = load.store().catalog();
        let label = catalog.intern_label_text(label);
        let column = |(key, value): &(String, Value)| BulkColumn {
            key: catalog.intern_key(key),
            values: ColumnData::Any(vec![Some(value.clone())]),
        };
        let columns: Vec<_> = properties.iter().map(column).collect();
        let ends = [(vertices[*from], vertices[*to])];
        load.edges(label, &ends, Some(std::slice::from_ref(id)), &columns).unwrap();
    }
    load.finish().unwrap();
    manager
}

fn multi_value(catalog: &Catalog, at: usize, (value, meta): &(Value, Meta)) -> MultiValue {
    let meta = meta.iter().map(|(key, value)| (catalog.intern_key(key), value.clone())).collect();
    MultiValue { ordinal: at as u32, value: value.clone(), meta: Arc::new(meta) }
}

/// A graph as text that is equal where graphs are: a line an element, with lines for its properties.
type Lines = BTreeMap<String, Vec<String>>;

fn line(key: &str, at: usize, value: &Value, meta: impl Iterator<Item = (String, String)>) -> String {
    let mut meta: Vec<_> = meta.collect();
    meta.sort();
    format!("{key} {at} {} {meta:?}", normal(value))
}

fn element(head: String, mut properties: Vec<String>) -> Vec<String> {
    properties.sort();
    properties.insert(0, head);
    properties
}

fn id_text(id: &UserId) -> String {
    format!("{:?}", id.to_value())
}

fn lines_of_model(model: &Model) -> Lines {
    let mut lines = Lines::new();
    for (id, label, properties) in &model.vertices {
        let mut found = Vec::new();
        for (key, values) in properties {
            found.extend(values.iter().enumerate().map(|(at, (value, meta))| {
                line(key, at, value, meta.iter().map(|(key, value)| (key.clone(), normal(value))))
            }));
        }
        lines.insert(format!("v {}", id_text(id)), element(sorted_label(label), found));
    }
    for (id, label, from, to, properties) in &model.edges {
        let (from, to) = (id_text(&model.vertices[*from].0), id_text(&model.vertices[*to].0));
        let found = properties.iter().map(|(key, value)| line(key, 0, value, std::iter::empty())).collect();
        lines.insert(format!("e {}", id_text(id)), element(format!("{} {from} {to}", sorted_label(label)), found));
    }
    lines
}

fn lines_of_graph(graph: &Graph) -> Lines {
    let mut lines = Lines::new();
    let id = |at: usize| id_text(graph.vertices[at].id.as_ref().unwrap());
    for (at, vertex) in graph.vertices.iter().enumerate() {
        let mut found: Vec<_> =
            vertex.properties.iter().map(|(key, value)| line(key, 0, value, std::iter::empty())).collect();
        for multi in &vertex.multi {
            found.extend(multi.values.iter().enumerate().map(|(at, value)| {
                line(
                    &multi.key,
                    at,
                    &value.value,
                    value.meta.iter().map(|(key, value)| (key.to_string(), normal(value))),
                )
            }));
        }
        lines.insert(format!("v {}", id(at)), element(sorted_label(&vertex.label), found));
    }
    for edge in &graph.edges {
        let head = format!("{} {} {}", sorted_label(&edge.label), id(edge.source), id(edge.target));
        let found = edge.properties.iter().map(|(key, value)| line(key, 0, value, std::iter::empty())).collect();
        lines.insert(format!("e {}", id_text(edge.id.as_ref().unwrap())), element(head, found));
    }
    lines
}

/// A label set, whatever order its labels were met in.
fn sorted_label(label: &str) -> String {
    let mut labels: Vec<&str> = label.split("::").collect();
    labels.sort_unstable();
    labels.join("::")
}

/// A value as text in which equal decimals are equal.
fn normal(value: &Value) -> String {
    match value {
        Value::Decimal(number) => format!("Decimal {}", number.normalized()),
        Value::List(items) => format!("List {:?}", items.iter().map(normal).collect::<Vec<_>>()),
        Value::Map(entries) => {
            format!("Map {:?}", entries.iter().map(|(key, value)| (normal(key), normal(value))).collect::<Vec<_>>())
        }
        other => format!("{other:?}"),
    }
}

fn cases() -> u32 {
    mangrove_testdata::case_count(48)
}

/// Exports generated graphs and loads them again.
#[track_caller]
fn check(name: &str, with_meta: bool, format: ExportFormat, file: &str, fits: fn(&Model) -> bool) {
    let folder = Folder::new(&format!("export-{name}"), &[]);
    let path = folder.file(file);
    let config = ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(model in model(with_meta).prop_filter("the format has no place for it", fits))| {
        let _ = std::fs::remove_dir_all(&path);
        let snapshot = build(&model).begin_protected_read().unwrap();
        let report = export(&snapshot, &path, &ExportOptions::new(format), &mut |_| Ok(())).unwrap();
        prop_assert_eq!(report.losses, Losses::default());
        let loaded = load_clean(std::slice::from_ref(&path), &LoadOptions::default());
        prop_assert_eq!(lines_of_graph(&loaded), lines_of_model(&model));
    });
}

/// Every awkward character as a character, as a text, within a text and in lists, in every format.
#[test]
fn every_format_keeps_every_character() {
    let mut vertices = Vec::new();
    for (at, character) in AWKWARD.into_iter().enumerate() {
        let texts = [character.to_string(), format!("a{character}b"), format!("{character}\n{character}")];
        let mut values = vec![Value::Char(character)];
        values.extend(texts.iter().map(Value::string));
        values.push(Value::list(texts.iter().map(Value::string).collect()));
        values.push(Value::list(vec![Value::Char(character), Value::Char('x')]));
        values.push(Value::map(vec![(Value::string(&texts[0]), Value::Char(character))]));
        for (number, value) in values.into_iter().enumerate() {
            // A label a value, so that no column takes its type from another value.
            let id = UserId::int((at * 10 + number) as i64);
            vertices.push((id, format!("l{at}_{number}"), vec![("key".to_owned(), vec![(value, Vec::new())])]));
        }
    }
    let model = Model { vertices, edges: Vec::new() };
    let folder = Folder::new("export-characters", &[]);
    for (format, name) in [
        (ExportFormat::GraphMl, "g.graphml"),
        (ExportFormat::GraphSon, "wrapped.json"),
        (ExportFormat::GraphSonAdjacency, "g.json"),
        (ExportFormat::JsonLines, "g.jsonl"),
        (ExportFormat::Csv, "csv"),
        (ExportFormat::Parquet, "parquet"),
    ] {
        let path = folder.file(name);
        let snapshot = build(&model).begin_protected_read().unwrap();
        export(&snapshot, &path, &ExportOptions::new(format), &mut |_| Ok(())).unwrap();
        let loaded = lines_of_graph(&load_clean(std::slice::from_ref(&path), &LoadOptions::default()));
        for (element, lines) in lines_of_model(&model) {
            assert_eq!(loaded.get(&element), Some(&lines), "{format:?}");
        }
    }
}

/// A label or a key that XML cannot hold is refused: it would come back as another one.
#[test]
fn names_that_xml_cannot_hold_are_refused() {
    let folder = Folder::new("export-names", &[]);
    let property = |key: &str| vec![(key.to_owned(), vec![(Value::I32(1), Vec::new())])];
    for (label, key, part) in [("a\u{1}", "k", "label \"a\\u{1}\""), ("a", "k\u{fffe}", "U+FFFE")] {
        let model = Model { vertices: vec![(UserId::int(1), label.to_owned(), property(key))], edges: Vec::new() };
        let snapshot = build(&model).begin_protected_read().unwrap();
        let path = folder.file("g.graphml");
        let error = export(&snapshot, &path, &ExportOptions::new(ExportFormat::GraphMl), &mut |_| Ok(())).unwrap_err();
        assert!(error.message().contains(part), "{error}");
    }
}

#[test]
fn graphson_keeps_everything() {
    check("graphson", true, ExportFormat::GraphSonAdjacency, "g.json", |_| true);
}

#[test]
fn wrapped_graphson_keeps_everything() {
    check("wrapped", true, ExportFormat::GraphSon, "g.json", |_| true);
}

#[test]
fn json_lines_keep_everything() {
    check("lines", true, ExportFormat::JsonLines, "g.jsonl", |_| true);
}

/// GraphML has no types of ids and no meta-properties; everything else comes back.
#[test]
fn graphml_keeps_everything_but_meta_properties() {
    fn plain(model: &Model) -> bool {
        let plain = |id: &UserId| match id {
            UserId::Int(id) => !id.narrow,
            UserId::String(_) => true,
            UserId::Uuid(_) => false,
        };
        model.vertices.iter().all(|(id, ..)| plain(id)) && model.edges.iter().all(|(id, ..)| plain(id))
    }
    check("graphml", false, ExportFormat::GraphMl, "g.graphml", plain);
}

/// The ids of a CSV file have types where their texts do not tell them.
#[test]
fn csv_keeps_everything_but_meta_properties() {
    check("csv", false, ExportFormat::Csv, "g", |_| true);
}

/// Parquet has types for most values; the rest has its type in the name of the column.
#[test]
fn parquet_keeps_everything_but_meta_properties() {
    check("parquet", false, ExportFormat::Parquet, "g", |_| true);
}

/// The content of the file of a table of plain columns: the schema, and the rows as Parquet's own reader shows them.
fn plain_table(folder: &Path, name: &str) -> (String, Vec<String>) {
    let reader = SerializedFileReader::new(File::open(folder.join(name)).unwrap()).unwrap();
    let mut schema = Vec::new();
    print_schema(&mut schema, reader.metadata().file_metadata().schema());
    let rows = reader.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()).collect();
    (String::from_utf8(schema).unwrap(), rows)
}

fn export_plain(model: &Model, path: &Path) -> PlainChanges {
    let snapshot = build(model).begin_protected_read().unwrap();
    let options = ExportOptions { plain: true, ..ExportOptions::new(ExportFormat::Parquet) };
    export(&snapshot, path, &options, &mut |_| Ok(())).unwrap().losses.plain
}

/// Two people whose values under one key are of two types, key by key.
fn mixed_people() -> Model {
    let time = |offset_seconds| Value::DateTime(DateTime { seconds: 1_577_934_245, nanos: 5_000, offset_seconds });
    let decimal = |text: &str| Value::Decimal(Arc::new(text.parse().unwrap()));
    let texts = |texts: &[&str]| Value::list(texts.iter().map(|text| Value::string(*text)).collect());
    let pairs = [
        ("age", Value::I32(3), Value::I64(5_000_000_000)),
        ("score", Value::I64(1 << 53), Value::F32(0.5)),
        ("big", Value::I64((1 << 53) + 1), Value::F64(0.5)),
        ("price", decimal("1.50"), Value::I32(2)),
        ("huge", Value::BigInt(Arc::new(num_bigint::BigInt::from(u64::MAX))), Value::I8(1)),
        ("when", time(7_200), time(0)),
        ("mixed", Value::Bool(true), Value::string("t")),
        ("letter", Value::Char('x'), Value::Char('y')),
        ("mail", texts(&["a", "b"]), Value::string("c")),
        ("none", Value::list(Vec::new()), texts(&["d"])),
        ("dst", Value::string("here"), Value::string("there")),
        ("Age", Value::I32(1), Value::I32(2)),
    ];
    let values = |values: Vec<Value>| values.into_iter().map(|value| (value, Meta::new())).collect::<Vec<_>>();
    let first = pairs.iter().map(|(key, first, _)| ((*key).to_owned(), values(vec![first.clone()]))).collect();
    let second = pairs.iter().map(|(key, _, second)| ((*key).to_owned(), values(vec![second.clone()]))).collect();
    let ids = [UserId::from_value(&Value::I32(3)).unwrap(), UserId::int(5_000_000_000)];
    let [one, two] = ids;
    let person = "person".to_owned();
    let vertices = vec![(one, person.clone(), first), (two, person, second)];
    let since = vec![("since".to_owned(), Value::I64(2_010))];
    let edges = vec![(UserId::from("seven"), "knows".to_owned(), 0, 1, since)];
    Model { vertices, edges }
}

#[test]
fn a_plain_column_has_the_widest_type_of_its_values() {
    let folder = Folder::new("export-plain", &[]);
    let path = folder.file("plain");
    let changes = export_plain(&mixed_people(), &path);
    let (schema, rows) = plain_table(&path, "vertices_person.parquet");
    for column in [
        "REQUIRED INT64 id;",
        "REQUIRED BYTE_ARRAY label (STRING);",
        "OPTIONAL INT64 age;",
        "OPTIONAL DOUBLE score;",
        "OPTIONAL BYTE_ARRAY big (STRING);",
        "OPTIONAL FIXED_LEN_BYTE_ARRAY (16) price (DECIMAL(3,2));",
        "OPTIONAL FIXED_LEN_BYTE_ARRAY (16) huge (DECIMAL(20,0));",
        "OPTIONAL INT64 when (TIMESTAMP(MICROS,true));",
        "OPTIONAL BYTE_ARRAY mixed (STRING);",
        "OPTIONAL BYTE_ARRAY letter (STRING);",
        "OPTIONAL group mail (LIST)",
        "OPTIONAL BYTE_ARRAY dst_property (STRING);",
        "OPTIONAL INT32 Age_property;",
    ] {
        assert!(schema.contains(column), "{column} in {schema}");
    }
    assert!(rows[0].contains("age: 3, score: 9007199254740992.0, big: \"9007199254740993\", price: 1.50"), "{rows:?}");
    assert!(rows[0].contains("mail: [\"a\", \"b\"], none: [], dst_property: \"here\", Age_property: 1"), "{rows:?}");
    assert!(rows[1].contains("age: 5000000000, score: 0.5, big: \"0.5\", price: 2.00"), "{rows:?}");
    assert!(rows[1].contains("mail: [\"c\"], none: [\"d\"], dst_property: \"there\", Age_property: 2"), "{rows:?}");
    for row in &rows {
        assert!(row.contains("when: 2020-01-02 03:04:05"), "{row}");
    }
    let (schema, rows) = plain_table(&path, "edges_knows.parquet");
    assert!(schema.contains("REQUIRED BYTE_ARRAY id (STRING);"), "{schema}");
    assert_eq!(rows, ["{id: \"seven\", src: 3, dst: 5000000000, label: \"knows\", since: 2010}"]);
    // Wider: an id, an age, both scores, a price, both of `huge`. Text: both of `big`, one of `mixed`, both letters.
    let expected = PlainChanges { widened: 7, offsets: 1, texts: 5, lists: 1, names: 2 };
    assert_eq!(changes, expected);
}

#[test]
fn only_parquet_has_plain_columns() {
    let folder = Folder::new("export-plain-refused", &[]);
    for format in [ExportFormat::Csv, ExportFormat::CsvNeo4j, ExportFormat::JsonLines, ExportFormat::GraphMl] {
        let snapshot = build(&mixed_people()).begin_protected_read().unwrap();
        let options = ExportOptions { plain: true, ..ExportOptions::new(format) };
        let error = export(&snapshot, &folder.file("refused"), &options, &mut |_| Ok(())).unwrap_err();
        assert!(error.message().contains("only Parquet has plain columns"), "{error}");
        assert!(!folder.file("refused").exists());
    }
}

/// Whatever a graph holds, a table of plain columns has one column a key, under a name of its own, with a value for
/// every element that has one.
#[test]
fn every_graph_has_plain_columns() {
    let folder = Folder::new("export-plain-any", &[]);
    let path = folder.file("plain");
    let config = ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() };
    // Names that collide with columns of ids, and with one another where case does not count.
    let renamed = |key: &str| match key {
        "since" => "ID".to_owned(),
        "a,b" => "NAME".to_owned(),
        other => other.to_owned(),
    };
    proptest!(config, |(mut model in model(true))| {
        for (_, _, properties) in &mut model.vertices {
            properties.iter_mut().for_each(|(key, _)| *key = renamed(key));
        }
        let _ = std::fs::remove_dir_all(&path);
        export_plain(&model, &path);
        let (mut rows, mut values) = (0, 0);
        for file in std::fs::read_dir(&path).unwrap() {
            let reader = SerializedFileReader::new(File::open(file.unwrap().path()).unwrap()).unwrap();
            let schema = reader.metadata().file_metadata().schema();
            let names: BTreeSet<String> = schema.get_fields().iter().map(|field| field.name().to_lowercase()).collect();
            prop_assert_eq!(names.len(), schema.get_fields().len(), "{:?}", names);
            let fixed = if names.contains("src") { 4 } else { 2 };
            for row in reader.get_row_iter(None).unwrap() {
                let row = row.unwrap();
                rows += 1;
                values += row.get_column_iter().skip(fixed).filter(|(_, field)| **field != Field::Null).count();
            }
        }
        let of_vertices: usize = model.vertices.iter().map(|(_, _, properties)| properties.len()).sum();
        let of_edges: usize = model.edges.iter().map(|(.., properties)| properties.len()).sum();
        prop_assert_eq!(rows, model.vertices.len() + model.edges.len());
        prop_assert_eq!(values, of_vertices + of_edges);
    });
}

/// Writes the open columns of a graph, and compares each file with a graph: the same one, or another. Returns the tables, and the
/// differences that were found.
fn open_columns(model: &Model, compared: &Model, folder: &Folder) -> (Vec<ColumnsTable>, Vec<String>) {
    let (written, compared) = (build(model).begin_read().unwrap(), build(compared).begin_read().unwrap());
    let (tables, ids) = columns_tables(&written).unwrap();
    let mut differences = Vec::new();
    for (at, table) in tables.iter().enumerate() {
        let path = folder.file(&format!("{at}.parquet"));
        let rows = write_columns(&written, *table, ids, &[("mangrove", "yes".into())], File::create(&path).unwrap());
        let file = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        assert_eq!(file.metadata().file_metadata().num_rows() as u64, rows.unwrap());
        let (_, other_ids) = columns_tables(&compared).unwrap();
        differences.extend(compare_columns(&compared, *table, other_ids, std::fs::read(&path).unwrap()).unwrap());
    }
    (tables, differences)
}

#[test]
fn open_columns_have_every_value_of_every_graph() {
    let folder = Folder::new("open-columns", &[]);
    let config = ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() };
    let rows = std::cell::Cell::new(0);
    proptest!(config, |(model in model(true))| {
        let (tables, differences) = open_columns(&model, &model, &folder);
        prop_assert_eq!(differences, Vec::<String>::new());
        rows.set(rows.get() + tables.len());
    });
    assert!(rows.get() > 0);
}

#[test]
fn open_columns_have_the_commonest_type_and_the_rest_as_json() {
    let folder = Folder::new("open-columns-types", &[]);
    let one = |value: Value| vec![(value, Vec::new())];
    let meta = vec![("since".to_owned(), Value::I32(2011))];
    let person = |id: i64, properties: Vec<Property>| (UserId::int(id), "person".to_owned(), properties);
    let key = |name: &str, values: Vec<(Value, Meta)>| (name.to_owned(), values);
    let model = Model {
        vertices: vec![
            person(1, vec![key("age", one(Value::I32(30))), key("nick", one("a".into()))]),
            person(2, vec![key("age", one(Value::I32(31))), key("nick", [one("b".into()), one("c".into())].concat())]),
            person(3, vec![key("age", one(Value::I64(32))), key("_id", one(Value::I32(7)))]),
            person(4, vec![key("age", vec![(Value::I32(33), meta)])]),
        ],
        edges: vec![(UserId::from("e"), "knows".into(), 0, 2, vec![("weight".into(), Value::F64(0.5))])],
    };
    let (tables, differences) = open_columns(&model, &model, &folder);
    assert_eq!((tables.len(), differences), (2, Vec::new()));
    let rows = |file: &str| {
        let file = SerializedFileReader::new(File::open(folder.file(file)).unwrap()).unwrap();
        let mut schema = Vec::new();
        print_schema(&mut schema, file.metadata().file_metadata().schema());
        let rows = file.get_row_iter(None).unwrap();
        let text = |row: parquet::record::Row| {
            let internal = |name: &str| name.ends_with("internal");
            let shown = row.get_column_iter().filter(|(name, _)| !internal(name));
            shown.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
        };
        rows.map(|row| text(row.unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(
        rows("0.parquet"),
        [
            "_id=1 age=30 nick=[\"a\"] _rest=null",
            "_id=2 age=31 nick=[\"b\", \"c\"] _rest=null",
            "_id=3 age=null nick=null _rest=\"{\"_id\":[{\"value\":{\"@type\":\"g:Int32\",\"@value\":7}}],\"age\":[{\"value\":{\"@type\":\"g:Int64\",\"@value\":32}}]}\"",
            "_id=4 age=null nick=null _rest=\"{\"age\":[{\"value\":{\"@type\":\"g:Int32\",\"@value\":33},\"meta\":{\"since\":{\"@type\":\"g:Int32\",\"@value\":2011}}}]}\"",
        ]
    );
    assert_eq!(rows("1.parquet"), ["_id=\"e\" _source=1 _target=3 weight=0.5 _rest=null"]);
    // Each change of the graph is a difference from the file.
    let changes: [&dyn Fn(&mut Model); 5] = [
        &|model| model.vertices[0].2[0].1[0].0 = Value::I32(29),
        &|model| model.vertices[1].2[1].1[1].0 = "d".into(),
        &|model| model.vertices[3].2[0].1[0].1[0].1 = Value::I32(2012),
        &|model| model.edges[0].3 = 1,
        &|model| model.edges[0].4[0].1 = Value::F64(-0.5),
    ];
    for (number, change) in changes.iter().enumerate() {
        let mut other = model.clone();
        change(&mut other);
        assert_eq!(open_columns(&model, &other, &folder).1.len(), 1, "change {number}");
    }
}
