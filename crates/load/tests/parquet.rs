//! Tables in Parquet: files written column by column here, and damaged files.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mangrove_graph::{DateTime, Duration, Value};
use mangrove_load::{LoadOptions, Mapping};
use parquet::basic::{Compression, Encoding};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, FixedLenByteArrayType, Int32Type, Int64Type, Int96, Int96Type,
};
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use crate::common::{Folder, load_clean, load_with};

type Group<'g> = SerializedRowGroupWriter<'g, fs::File>;

/// Writes a file of one row group; `fill` writes its columns.
fn write(path: &Path, schema: &str, properties: WriterProperties, fill: impl FnOnce(&mut Group<'_>)) {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer = SerializedFileWriter::new(fs::File::create(path).unwrap(), schema, Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    fill(&mut group);
    group.close().unwrap();
    writer.close().unwrap();
}

fn column<T: DataType>(group: &mut Group<'_>, values: &[T::T], definitions: &[i16], repetitions: &[i16]) {
    let mut column = group.next_column().unwrap().unwrap();
    let levels = |levels: &'_ [i16]| (!levels.is_empty()).then_some(levels.to_vec());
    let (definitions, repetitions) = (levels(definitions), levels(repetitions));
    column.typed::<T>().write_batch(values, definitions.as_deref(), repetitions.as_deref()).unwrap();
    column.close().unwrap();
}

fn texts(texts: &[&str]) -> Vec<ByteArray> {
    texts.iter().map(|text| ByteArray::from(text.as_bytes().to_vec())).collect()
}

fn plain() -> WriterProperties {
    WriterProperties::builder().build()
}

fn load_file(path: &Path) -> crate::common::Graph {
    load_clean(&[path.to_owned()], &LoadOptions::default())
}

#[test]
fn columns_have_the_types_of_the_file() {
    let folder = Folder::new("parquet-types", &[]);
    let path = folder.file("thing.parquet");
    let schema = "message m {
        required int32 id (INTEGER(16,false));
        optional boolean truth;
        optional int32 small (INTEGER(8,true));
        optional int64 wide (INTEGER(64,false));
        optional int32 day (DATE);
        optional int64 moment (TIMESTAMP(MILLIS,true));
        optional int96 old;
        optional fixed_len_byte_array(3) price (DECIMAL(5,2));
        optional binary raw;
        optional binary note:string;
        optional binary name (STRING);
        optional fixed_len_byte_array(12) length (INTERVAL);
        optional int32 width:double;
    }";
    // `:` in a name is nothing that the parser of schemas reads.
    let schema = schema.replace("note:string", "note_").replace("width:double", "width_");
    write(&path, &schema, plain(), |group| {
        column::<Int32Type>(group, &[65535, 2], &[], &[]);
        column::<BoolType>(group, &[true], &[1, 0], &[]);
        column::<Int32Type>(group, &[-7, 8], &[1, 1], &[]);
        column::<Int64Type>(group, &[-1, 5], &[1, 1], &[]);
        column::<Int32Type>(group, &[-1], &[0, 1], &[]);
        column::<Int64Type>(group, &[-1], &[1, 0], &[]);
        let mut old = Int96::new();
        old.set_data(1, 0, 2_440_588);
        column::<Int96Type>(group, &[old], &[1, 0], &[]);
        column::<FixedLenByteArrayType>(group, &[ByteArray::from(vec![0xff, 0xff, 0xfe]).into()], &[1, 0], &[]);
        column::<ByteArrayType>(group, &[ByteArray::from(vec![0, 255])], &[1, 0], &[]);
        column::<ByteArrayType>(group, &texts(&["a note"]), &[1, 0], &[]);
        column::<ByteArrayType>(group, &texts(&["", "\\N"]), &[1, 1], &[]);
        let interval = [0_u32, 1, 1500].iter().flat_map(|part| part.to_le_bytes()).collect::<Vec<_>>();
        column::<FixedLenByteArrayType>(group, &[ByteArray::from(interval).into()], &[1, 0], &[]);
        column::<Int32Type>(group, &[3], &[1, 0], &[]);
    });
    let mapping = "[[file]]\nmatch = \"*.parquet\"\nproperties.note_ = { name = \"note\", type = \"string\" }\n\
                   properties.width_ = { name = \"width\", type = \"double\" }\nproperties.old = { name = \"then\" }";
    let mapping = Some(Mapping::parse(mapping).unwrap());
    let graph = load_clean(&[path], &LoadOptions { mapping, ..LoadOptions::default() });
    let (first, second) = (graph.by_id(65535), graph.by_id(2));
    assert_eq!(graph.vertices[first].label, "thing");
    let time = |seconds, nanos| Value::DateTime(DateTime { seconds, nanos, offset_seconds: 0 });
    for (key, expected) in [
        ("truth", Value::Bool(true)),
        ("small", Value::I8(-7)),
        ("wide", Value::BigInt(Arc::new(u64::MAX.into()))),
        ("moment", time(-1, 999_000_000)),
        ("then", time(0, 1)),
        ("price", Value::Decimal(Arc::new("-0.02".parse().unwrap()))),
        ("raw", Value::Bytes(Arc::new([0, 255]))),
        ("note", Value::string("a note")),
        ("name", Value::string("")),
        ("length", Value::Duration(Duration { seconds: 86_401, nanos: 500_000_000 })),
        ("width", Value::F64(3.0)),
    ] {
        assert_eq!(graph.value(first, key), &expected, "{key}");
    }
    let keys: Vec<&str> = graph.vertices[second].properties.keys().map(String::as_str).collect();
    assert_eq!(keys, ["day", "name", "small", "wide"]);
    assert_eq!(graph.value(second, "name"), &Value::string("\\N"));
    assert_eq!(graph.value(second, "day"), &time(-86_400, 0));
}

#[test]
fn lists_and_maps_of_any_depth() {
    let folder = Folder::new("parquet-nested", &[]);
    let path = folder.file("nested.parquet");
    let schema = "message m {
        required int64 id;
        optional group a (LIST) { repeated group list { optional int32 element; } }
        repeated int32 old;
        optional group deep (LIST) { repeated group list { required group element (LIST) { repeated group list { required binary element (STRING); } } } }
        optional group map (MAP) { repeated group key_value { required binary key (STRING); optional int64 value; } }
        optional group pair { required int32 x; optional binary y (STRING); }
    }";
    write(&path, schema, plain(), |group| {
        column::<Int64Type>(group, &[1, 2, 3], &[], &[]);
        // [1, 2], [], null
        column::<Int32Type>(group, &[1, 2], &[3, 3, 1, 0], &[0, 1, 0, 0]);
        // [7], [], [8, 9]
        column::<Int32Type>(group, &[7, 8, 9], &[1, 0, 1, 1], &[0, 0, 0, 1]);
        // [["a", "b"], [], ["c"]], null, []
        column::<ByteArrayType>(group, &texts(&["a", "b", "c"]), &[3, 3, 2, 3, 0, 1], &[0, 2, 1, 1, 0, 0]);
        // {k: 1}, {}, null
        column::<ByteArrayType>(group, &texts(&["k"]), &[2, 1, 0], &[0, 0, 0]);
        column::<Int64Type>(group, &[1], &[3, 1, 0], &[0, 0, 0]);
        // {x: 1, y: "z"}, null, {x: 2}
        column::<Int32Type>(group, &[1, 2], &[1, 0, 1], &[]);
        column::<ByteArrayType>(group, &texts(&["z"]), &[2, 0, 1], &[]);
    });
    let graph = load_file(&path);
    let ints = |items: &[i32]| Value::list(items.iter().map(|n| Value::I32(*n)).collect());
    let strings = |items: &[&str]| Value::list(items.iter().map(|s| Value::string(*s)).collect());
    let one = graph.by_id(1);
    assert_eq!(graph.value(one, "a"), &ints(&[1, 2]));
    assert_eq!(graph.value(one, "old"), &ints(&[7]));
    assert_eq!(graph.value(one, "deep"), &Value::list(vec![strings(&["a", "b"]), strings(&[]), strings(&["c"])]));
    assert_eq!(graph.value(one, "map"), &Value::map(vec![(Value::string("k"), Value::I64(1))]));
    let pair = vec![(Value::string("x"), Value::I32(1)), (Value::string("y"), Value::string("z"))];
    assert_eq!(graph.value(one, "pair"), &Value::map(pair));
    let (two, three) = (graph.by_id(2), graph.by_id(3));
    let keys = |at: usize| graph.vertices[at].properties.keys().map(String::as_str).collect::<Vec<_>>();
    assert_eq!((keys(two), keys(three)), (vec!["a", "map", "old"], vec!["deep", "old", "pair"]));
    assert_eq!(graph.value(three, "old"), &ints(&[8, 9]));
    assert_eq!(graph.value(three, "deep"), &ints(&[]));
}

/// People and whom they know, in several row groups, by way of every compression, encoding and version of pages.
#[test]
fn every_way_of_writing_gives_the_same_graph() {
    let folder = Folder::new("parquet-ways", &[]);
    let (people, knows) = (folder.file("person.parquet"), folder.file("person_knows_person.parquet"));
    let ways = [
        plain(),
        WriterProperties::builder().set_compression(Compression::SNAPPY).set_data_page_row_count_limit(100).build(),
        WriterProperties::builder()
            .set_compression(Compression::GZIP(Default::default()))
            .set_writer_version(WriterVersion::PARQUET_2_0)
            .set_dictionary_enabled(false)
            .build(),
        WriterProperties::builder()
            .set_compression(Compression::ZSTD(Default::default()))
            .set_writer_version(WriterVersion::PARQUET_2_0)
            .build(),
        WriterProperties::builder().set_dictionary_enabled(false).set_encoding(Encoding::PLAIN).build(),
        WriterProperties::builder()
            .set_dictionary_enabled(false)
            .set_column_encoding("name".into(), Encoding::DELTA_LENGTH_BYTE_ARRAY)
            .build(),
        WriterProperties::builder()
            .set_dictionary_enabled(false)
            .set_column_encoding("name".into(), Encoding::DELTA_BYTE_ARRAY)
            .set_column_encoding("id".into(), Encoding::DELTA_BINARY_PACKED)
            .build(),
    ];
    let count = 3000_i64;
    for (at, way) in ways.into_iter().enumerate() {
        let schema = "message m { required int64 id; optional binary name (STRING); }";
        write_groups(&people, schema, way.clone(), 3, |part, group| {
            let ids: Vec<i64> = (0..count).filter(|id| id % 3 == part).collect();
            let names: Vec<String> = ids.iter().filter(|id| *id % 2 == 0).map(|id| format!("name {id}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let definitions: Vec<i16> = ids.iter().map(|id| i16::from(id % 2 == 0)).collect();
            column::<Int64Type>(group, &ids, &[], &[]);
            column::<ByteArrayType>(group, &texts(&names), &definitions, &[]);
        });
        write_groups(&knows, "message m { required int64 from; required int64 to; }", way, 4, |part, group| {
            let sources: Vec<i64> = (0..count).filter(|id| id % 4 == part).collect();
            let targets: Vec<i64> = sources.iter().map(|id| (id * 7 + 1) % count).collect();
            column::<Int64Type>(group, &sources, &[], &[]);
            column::<Int64Type>(group, &targets, &[], &[]);
        });
        for threads in [1, 3] {
            let options = LoadOptions { threads: threads.try_into().unwrap(), ..LoadOptions::default() };
            let graph = load_clean(&[people.clone(), knows.clone()], &options);
            assert_eq!((graph.vertices.len(), graph.edges.len()), (3000, 3000), "way {at}");
            let order: Vec<_> = (0..3).flat_map(|part| (0..count).filter(move |id| id % 3 == part)).collect();
            let found = graph.vertices.iter().zip(&order).all(|(vertex, id)| {
                let name = (id % 2 == 0).then(|| Value::string(format!("name {id}")));
                vertex.id == Some((*id).into()) && vertex.properties.get("name") == name.as_ref()
            });
            assert!(found, "way {at}");
            assert!(graph.edges.iter().all(|edge| edge.label == "knows" && {
                let (source, target) = (order[edge.source], order[edge.target]);
                target == (source * 7 + 1) % count
            }));
        }
    }
}

fn write_groups(path: &Path, schema: &str, way: WriterProperties, groups: i64, fill: impl Fn(i64, &mut Group<'_>)) {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer = SerializedFileWriter::new(fs::File::create(path).unwrap(), schema, Arc::new(way)).unwrap();
    for part in 0..groups {
        let mut group = writer.next_row_group().unwrap();
        fill(part, &mut group);
        group.close().unwrap();
    }
    writer.close().unwrap();
}

fn small_file(folder: &Folder) -> PathBuf {
    let path = folder.file("p.parquet");
    let schema = "message m { required int64 id; optional binary name (STRING); optional group l (LIST) { repeated group list { optional int32 element; } } }";
    let way = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    write(&path, schema, way, |group| {
        column::<Int64Type>(group, &[1, 2, 3], &[], &[]);
        column::<ByteArrayType>(group, &texts(&["a", "bc"]), &[1, 0, 1], &[]);
        column::<Int32Type>(group, &[4, 5], &[3, 3, 0, 1], &[0, 1, 0, 0]);
    });
    path
}

#[test]
fn rows_that_cannot_be_kept_are_rejected_by_number() {
    let folder = Folder::new("parquet-rejects", &[]);
    let (people, knows) = (folder.file("person.parquet"), folder.file("knows.parquet"));
    write(&people, "message m { optional int64 id; optional binary name (STRING); }", plain(), |group| {
        column::<Int64Type>(group, &[1, 1, 3], &[1, 1, 0, 1], &[]);
        column::<ByteArrayType>(
            group,
            &[ByteArray::from("a"), ByteArray::from("b"), ByteArray::from("c"), ByteArray::from(vec![0xff])],
            &[1; 4],
            &[],
        );
    });
    write(&knows, "message m { required int64 from; required double to; }", plain(), |group| {
        column::<Int64Type>(group, &[1, 1], &[], &[]);
        column::<parquet::data_type::DoubleType>(group, &[1.0, 9.0], &[], &[]);
    });
    let rejects = folder.file("bad.csv");
    let options = LoadOptions { rejects: Some(rejects.clone()), ..LoadOptions::default() };
    let (graph, report) = load_with(&[people, knows], &options).unwrap();
    assert_eq!((graph.vertices.len(), graph.edges.len(), report.rejects), (1, 1, 4));
    let reasons = fs::read_to_string(rejects).unwrap();
    for (line, reason) in [
        (2, "a vertex with the id 1 exists already"),
        (3, "the row has no id"),
        (4, "the value in the column 'name' cannot be kept: it is not valid UTF-8"),
        (2, "the target vertex '9' does not exist"),
    ] {
        assert!(reasons.contains(&format!(",{line},{reason},")), "{reason} in {reasons}");
    }
}

#[test]
fn what_is_no_parquet_file_is_told() {
    let folder = Folder::new("parquet-wrong", &[]);
    let whole = fs::read(small_file(&folder)).unwrap();
    let path = folder.file("x.parquet");
    let told = |bytes: &[u8], expected: &str| {
        fs::write(&path, bytes).unwrap();
        let error = load_with(std::slice::from_ref(&path), &LoadOptions::default()).unwrap_err();
        assert!(error.message().contains(expected), "{error}");
        assert!(error.message().contains("x.parquet"), "{error}");
    };
    told(b"", "too short");
    told(b"id,name\n1,a\n2,b\n", "does not begin with PAR1");
    told(&whole[..whole.len() - 9], "does not end with PAR1; was it cut off?");
    told(&[&[0x1f, 0x8b, 8, 0], &whole[..]].concat(), "compressed as a whole");
    let mut encrypted = whole.clone();
    let end = encrypted.len() - 4;
    encrypted[end..].copy_from_slice(b"PARE");
    told(&encrypted, "encrypted");
    let mut long = whole.clone();
    long[end - 4..end].copy_from_slice(&u32::MAX.to_le_bytes());
    told(&long, "longer than the file");
}

/// Any byte of a file may be wrong: the load fails or succeeds, and never panics or takes memory without bound.
#[test]
fn damage_anywhere_is_an_error_at_most() {
    let folder = Folder::new("parquet-damage", &[]);
    let whole = fs::read(small_file(&folder)).unwrap();
    let path = folder.file("x.parquet");
    let options = LoadOptions { threads: 1.try_into().unwrap(), ..LoadOptions::default() };
    let (mut failed, mut tried) = (0, 0);
    for at in 0..whole.len() {
        for bits in [0x01, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] ^= bits;
            fs::write(&path, &bytes).unwrap();
            tried += 1;
            failed += usize::from(load_with(std::slice::from_ref(&path), &options).is_err());
        }
    }
    assert!(failed > tried / 5, "{failed} of {tried}");
    for len in 0..whole.len() {
        fs::write(&path, &whole[..len]).unwrap();
        assert!(load_with(std::slice::from_ref(&path), &options).is_err());
    }
}
