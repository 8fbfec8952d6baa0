//! Files around their formats: compressed, headers of their own, arrays, rejects that load again, and damage of every
//! kind.

use std::io::Write;
use std::path::PathBuf;

use mangrove_graph::{ElementKind, ErrorKind, UserId, Value};
use mangrove_load::{FileGroup, LoadOptions, Mapping};

use crate::common::{Folder, load_clean, load_with};

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

const PEOPLE: &str = "~id,~label,name:string\n1,person,Ann\n2,person,\"\"\n3,person,\n";

#[test]
fn compressed_files_load_as_what_is_in_them() {
    let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::default());
    bzip2.write_all(PEOPLE.as_bytes()).unwrap();
    let packed = [
        ("people.csv.gz", gzip(PEOPLE.as_bytes())),
        ("people.csv.zst", zstd::encode_all(PEOPLE.as_bytes(), 1).unwrap()),
        ("people.csv.bz2", bzip2.finish().unwrap()),
        // Told by its first bytes, whatever its name; and two streams are one file.
        ("people.csv", [gzip(&PEOPLE.as_bytes()[..30]), gzip(&PEOPLE.as_bytes()[30..])].concat()),
    ];
    for (name, bytes) in packed {
        let folder = Folder::new("packed", &[]);
        std::fs::write(folder.file(name), bytes).unwrap();
        let graph = load_clean(&[folder.file(name)], &LoadOptions::default());
        assert_eq!(graph.vertices.len(), 3, "{name}");
        assert_eq!(graph.value(graph.by_id(1), "name"), &Value::string("Ann"));
        // A text in quotes is there, if an empty one; an empty field is none.
        assert_eq!(graph.value(graph.by_id(2), "name"), &Value::string(""));
        assert!(graph.vertices[graph.by_id(3)].properties.is_empty());
    }
}

#[test]
fn mappings_fit_the_names_of_compressed_files() {
    let folder = Folder::new("packed-mapped", &[]);
    std::fs::write(folder.file("p_1.csv.gz"), gzip(b"7|Ann\n")).unwrap();
    let mapping = "[[file]]\nmatch = \"p_*.csv\"\nlabel = \"person\"\ncolumns = [\"id\", \"name\"]\ndelimiter = \"|\"";
    let options = LoadOptions { mapping: Some(Mapping::parse(mapping).unwrap()), ..LoadOptions::default() };
    let graph = load_clean(&[folder.path().to_owned()], &options);
    assert_eq!(graph.value(graph.by_id(7), "name"), &Value::string("Ann"));
}

#[test]
fn damaged_compression_is_named() {
    let whole = gzip(PEOPLE.repeat(1000).as_bytes());
    let folder = Folder::new("packed-damaged", &[]);
    std::fs::write(folder.file("p.csv.gz"), &whole[..whole.len() / 2]).unwrap();
    let error = load_with(&[folder.file("p.csv.gz")], &LoadOptions::default()).unwrap_err();
    assert!(error.message().contains("p.csv.gz") && error.message().contains("compressed data is damaged"), "{error}");
}

/// A few kilobytes that unpack to a line of a gigabyte are refused at the longest line, not kept.
#[test]
fn a_bomb_ends_at_the_longest_line() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(b"~id,~label,name:string\n1,x,").unwrap();
    let block = vec![b'a'; 1 << 20];
    (0..300).for_each(|_| encoder.write_all(&block).unwrap());
    let folder = Folder::new("bomb", &[]);
    std::fs::write(folder.file("b.csv"), encoder.finish().unwrap()).unwrap();
    let error = load_with(&[folder.file("b.csv")], &LoadOptions::default()).unwrap_err();
    assert!(error.message().contains("is longer than"), "{error}");
}

#[test]
fn headers_of_their_own_and_arrays() {
    let folder = Folder::new(
        "groups",
        &[
            ("header.csv", "id:ID(P){id-type: string};name;tags:string[];x:IGNORE\n"),
            ("part1.csv", "1;Ann;a|b;7\n"),
            ("part2.csv", "2;Bob;;7\n"),
            ("knows.csv", ":START_ID(P){id-type: string},:END_ID(P){id-type: string},:TYPE,since:int\n1,2,LIKES,3\n"),
        ],
    );
    let at = |name: &str| folder.file(name).display().to_string();
    let nodes = format!("Person:Actor={},{},{}", at("header.csv"), at("part1.csv"), at("part2.csv"));
    let groups = vec![
        FileGroup::parse(&nodes, ElementKind::Vertex).unwrap(),
        FileGroup::parse(&format!("KNOWS={}", at("knows.csv")), ElementKind::Edge).unwrap(),
    ];
    let options = LoadOptions { groups, array_delimiter: Some('|'), ..LoadOptions::default() };
    let graph = load_clean(&[], &options);
    let ann = graph.vertex("Person", "name", "Ann");
    assert_eq!(graph.vertices[ann].label, "Person::Actor");
    assert_eq!(graph.value(ann, "tags"), &Value::list(vec!["a".into(), "b".into()]));
    assert_eq!((graph.vertices.len(), graph.edges[0].label.as_str()), (2, "LIKES"));
    assert!(FileGroup::parse("Person=", ElementKind::Vertex).is_err());
}

#[test]
fn ids_have_the_types_their_columns_say() {
    let folder = Folder::new(
        "typed-ids",
        &[
            ("v.csv", "~id:any,~label\n\"\"\"1\"\"\",a\n\"{\"\"@type\"\":\"\"g:Int64\"\",\"\"@value\"\":1}\",a\n"),
            ("e.csv", "~id:int,~from:string,~to:long,~label\n5,1,1,k\n"),
        ],
    );
    let graph = load_clean(&[folder.path().to_owned()], &LoadOptions::default());
    let (text, number) = (graph.by_id("1"), graph.by_id(1));
    assert_ne!(text, number);
    assert_eq!((graph.edges[0].source, graph.edges[0].target), (text, number));
    assert_eq!(graph.edges[0].id.as_ref().map(UserId::to_value), Some(Value::I32(5)));
}

#[test]
fn what_has_no_counterpart_is_refused_by_name() {
    for (header, expected) in [
        ("id:ID,place:point", "the type 'point' has no counterpart here"),
        ("id:ID,born:date{timezone:+02:00}", "the option {timezone:+02:00} is not understood"),
        ("id:ID,place:point{crs:WGS-84}", "the option {crs:WGS-84}"),
    ] {
        let folder = Folder::new("refused", &[("v.csv", &format!("{header}\n1,2\n"))]);
        let error = load_with(&[folder.file("v.csv")], &LoadOptions::default()).unwrap_err();
        assert!(error.message().contains(expected), "{error}");
    }
}

#[test]
fn a_row_has_one_value_under_a_key_of_several_columns() {
    let folder = Folder::new("mixed", &[("v.csv", "~id,~label,x:int,x:string\n1,a,7,\n2,a,,y\n3,a,7,y\n")]);
    let (graph, report) = load_with(&[folder.file("v.csv")], &LoadOptions::default()).unwrap();
    assert_eq!(graph.value(graph.by_id(1), "x"), &Value::I32(7));
    assert_eq!(graph.value(graph.by_id(2), "x"), &Value::string("y"));
    assert_eq!(report.rejects, 1);
}

/// Rejected rows, mended where they stand, load with the mapping of the load that rejected them.
#[test]
fn rejects_are_mended_and_loaded() {
    let folder = Folder::new(
        "mended",
        &[
            ("p.csv", "id|name|age\n1|Ann|30\n2|Bob|x\n3|\"Ce\"\"cil\"|y\n"),
            ("q.jsonl", "{\"edge\":null,\"from\":1,\"to\":9}\n"),
        ],
    );
    let mapping =
        Mapping::parse("[[file]]\nmatch = \"p.csv\"\nlabel = \"person\"\nproperties.age = { type = \"int\" }").unwrap();
    let rejects = folder.file("bad.csv");
    let options = LoadOptions { mapping: Some(mapping), rejects: Some(rejects), ..LoadOptions::default() };
    let (_, report) = load_with(&[folder.file("p.csv"), folder.file("q.jsonl")], &options).unwrap();
    assert_eq!(report.rejects, 3);
    let rows = folder.file("bad.csv.rows");
    let kept = std::fs::read_to_string(rows.join("p.csv")).unwrap();
    assert_eq!(kept, "id|name|age\n2|Bob|x\n3|\"Ce\"\"cil\"|y\n");
    assert_eq!(std::fs::read_to_string(rows.join("q.jsonl")).unwrap(), "{\"edge\":null,\"from\":1,\"to\":9}\n");
    std::fs::write(rows.join("p.csv"), kept.replace("|x", "|31").replace("|y", "|32")).unwrap();
    let again = load_clean(&[rows.join("p.csv")], &LoadOptions { rejects: None, ..options });
    assert_eq!(again.value(again.by_id(3), "name"), &Value::string("Ce\"cil"));
    assert_eq!(again.value(again.by_id(2), "age"), &Value::I32(31));
}

/// Every beginning of a document, and every byte of it replaced, loads or fails with a message; nothing panics.
#[test]
fn damaged_files_never_panic() {
    let documents: [(&str, &str); 4] = [
        (
            "g.json",
            r#"{"id":1,"label":"a","outE":{"k":[{"id":2,"inV":1,"properties":{"w":{"@type":"g:Double","@value":1.5}}}]},"properties":{"n":[{"id":3,"value":"é"}]}}"#,
        ),
        (
            "w.json",
            r#"{"vertices":[{"id":1,"label":"a"},{"id":2,"properties":{"n":[{"value":{"@type":"g:Int32","@value":7}}]}}]}"#,
        ),
        (
            "l.jsonl",
            "{\"vertex\":1,\"multi\":{\"n\":[{\"value\":1}]}}\n{\"edge\":1,\"from\":1,\"to\":1,\"label\":\"k\"}",
        ),
        (
            "t.csv",
            "~id,~label,x:int[](list),y:any\n1,\"a\",\"[1,2]\",\"{\"\"@type\"\":\"\"g:Set\"\",\"\"@value\"\":[1]}\"\n",
        ),
    ];
    let folder = Folder::new("damaged-all", &[]);
    for (name, text) in documents {
        let path: PathBuf = folder.file(name);
        let load = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            let outcome = load_with(std::slice::from_ref(&path), &LoadOptions::default());
            if let Err(error) = outcome {
                assert!(error.kind() != ErrorKind::Bug && error.message().contains(name), "{error}");
            }
        };
        for cut in 0..text.len() {
            load(&text.as_bytes()[..cut]);
        }
        for at in 0..text.len() {
            for byte in [0, b'"', b'[', 0xff] {
                let mut bytes = text.as_bytes().to_vec();
                bytes[at] = byte;
                load(&bytes);
            }
        }
    }
}
