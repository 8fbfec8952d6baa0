//! Tables: header styles, mappings, and every kind of bad row.

use mangrove_graph::{DateTime, ErrorKind, UserId, Value};
use mangrove_load::{Cardinality, LoadOptions, Mapping};

use crate::common::{Folder, Graph, load_clean, load_with};

fn mapped(mapping: &str) -> LoadOptions {
    LoadOptions { mapping: Some(Mapping::parse(mapping).unwrap()), ..LoadOptions::default() }
}

/// Loads all files, with rejects; returns the graph and (file, line, reason, row) of every reject.
#[track_caller]
fn load_rejecting(name: &str, files: &[(&str, &str)], options: &LoadOptions) -> (Graph, Vec<[String; 4]>) {
    let folder = Folder::new(name, files);
    let rejects = folder.file("rejects.out");
    let options = LoadOptions { rejects: Some(rejects.clone()), ..options.clone() };
    let (graph, report) = load_with(&[folder.path().to_owned()], &options).unwrap();
    let written = match csv::Reader::from_path(&rejects) {
        Ok(mut reader) => reader.records().map(|record| reject(&record.unwrap())).collect(),
        Err(_) => Vec::new(),
    };
    assert_eq!(report.rejects, written.len() as u64);
    (graph, written)
}

fn reject(record: &csv::StringRecord) -> [String; 4] {
    let file = record[0].rsplit('/').next().unwrap_or_default().to_owned();
    [file, record[1].to_owned(), record[2].to_owned(), record[3].to_owned()]
}

#[track_caller]
fn check_rejects(found: &[[String; 4]], expected: &[(&str, &str, &str, &str)]) {
    let found: Vec<_> = found.iter().map(|[a, b, c, d]| (a.as_str(), b.as_str(), c.as_str(), d.as_str())).collect();
    assert_eq!(found, expected);
}

#[test]
fn gremlin_headers() {
    let folder = Folder::new(
        "gremlin-headers",
        &[
            (
                "v.csv",
                "~id,~label,name:String,age:Int,nick:string[],mail:string(set)\na,person,Ann,30,x;y;x,m\nb,person;boss,Bob,,,\n",
            ),
            ("e.csv", "~id,~from,~to,~label,since:date\n1,a,b,knows,2020-01-02\n"),
        ],
    );
    let graph = load_clean(&[folder.file("e.csv"), folder.file("v.csv")], &LoadOptions::default());
    let ann = graph.by_id("a");
    assert_eq!(graph.value(ann, "age"), &Value::I32(30));
    let multi: Vec<_> = graph.vertices[ann]
        .multi
        .iter()
        .map(|m| (m.key.as_str(), m.cardinality, m.values.iter().map(|v| v.value.clone()).collect::<Vec<_>>()))
        .collect();
    assert_eq!(
        multi,
        [("nick", Cardinality::Set, vec!["x".into(), "y".into()]), ("mail", Cardinality::Set, vec!["m".into()])]
    );
    let bob = graph.by_id("b");
    assert_eq!(graph.vertices[bob].label, "person::boss");
    assert_eq!(graph.vertices[bob].properties.len(), 1);
    assert_eq!(graph.edges[0].id, Some(UserId::int(1)));
    assert_eq!(graph.edges[0].properties["since"], Value::DateTime(DateTime::parse("2020-01-02").unwrap()));
}

#[test]
fn neo4j_headers_with_id_spaces() {
    let folder = Folder::new(
        "neo4j-headers",
        &[
            ("Person.csv", "id:ID(Person)|name:STRING\n1|Ann\n"),
            ("Forum.csv", "id:ID(Forum)|title:STRING\n1|Talk\n"),
            ("Forum_hasMember_Person.csv", ":START_ID(Forum)|:END_ID(Person)|since:long\n1|1|7\n"),
            ("rels.csv", ":START_ID(Person)|:END_ID(Person)|:TYPE\n1|1|LIKES\n"),
        ],
    );
    let graph = load_clean(&[folder.path().to_owned()], &LoadOptions::default());
    let (person, forum) = (graph.vertex("Person", "id", 1_i64), graph.vertex("Forum", "id", 1_i64));
    assert_eq!(graph.vertices[person].id, None);
    assert_eq!(graph.out(forum, "hasMember"), [person]);
    assert_eq!(graph.out(person, "LIKES"), [person]);
}

#[test]
fn plain_headers_are_inferred() {
    let folder = Folder::new(
        "plain-headers",
        &[
            (
                "city.csv",
                "id,zip,size,area,old,founded,name,none\n1,007,5,1,true,1200-01-01,A,\n2,10,6,2.5,FALSE,,B,\\N\n",
            ),
            ("road.csv", "source;target;km\n1;2;3\n2;1;4.5\n"),
        ],
    );
    let graph = load_clean(&[folder.path().to_owned()], &LoadOptions::default());
    let one = graph.by_id(1);
    let expected = [
        ("area", Value::F64(1.0)),
        ("founded", Value::DateTime(DateTime::parse("1200-01-01").unwrap())),
        ("name", "A".into()),
        ("old", Value::Bool(true)),
        ("size", Value::I64(5)),
        ("zip", "007".into()),
    ];
    let found: Vec<_> = graph.vertices[one].properties.iter().map(|(k, v)| (k.as_str(), v.clone())).collect();
    assert_eq!(found, expected);
    assert_eq!(graph.vertices[one].label, "city");
    let lengths: Vec<_> = graph.edges.iter().map(|edge| (edge.label.as_str(), edge.properties["km"].clone())).collect();
    assert_eq!(lengths, [("road", Value::F64(3.0)), ("road", Value::F64(4.5))]);
}

#[test]
fn every_bad_row_is_rejected_with_its_reason() {
    let (graph, rejects) = load_rejecting(
        "bad-rows",
        &[
            ("v.csv", "~id,~label,age:int\n1,a,5\n2,a\n3,a,x\n1,a,6\n,a,1\n4,\"a,1\n5,a,7,8\n6,a,8\n"),
            ("e.csv", "~id,~from,~to,~label\n1,1,6,x\n1,1,6,x\n2,1,9,x\n3,9,1,x\n4,,1,x\n5,1,6,\n"),
        ],
        &LoadOptions::default(),
    );
    assert_eq!((graph.vertices.len(), graph.edges.len()), (2, 1));
    check_rejects(
        &rejects,
        &[
            ("v.csv", "3", "expected 3 fields, found 2", "2,a"),
            ("v.csv", "4", "'x' in the column of 'age' is not of the type int", "3,a,x"),
            ("v.csv", "5", "a vertex with the id 1 exists already", "1,a,6"),
            ("v.csv", "6", "the row has no id", ",a,1"),
            ("v.csv", "7", "a quoted field is never closed", "4,\"a,1"),
            ("v.csv", "8", "expected 3 fields, found 4", "5,a,7,8"),
            ("e.csv", "3", "an edge with the id 1 exists already", "1,1,6,x"),
            ("e.csv", "4", "the target vertex '9' does not exist", "2,1,9,x"),
            ("e.csv", "5", "the source vertex '9' does not exist", "3,9,1,x"),
            ("e.csv", "6", "the edge has no source", "4,,1,x"),
            ("e.csv", "7", "the edge has no label", "5,1,6,"),
        ],
    );
}

#[test]
fn a_row_that_is_not_text_is_rejected() {
    let folder = Folder::new("not-text", &[]);
    std::fs::write(folder.file("v.csv"), b"~id,name:string\n1,\xff\xfe\n2,b\n").unwrap();
    let (graph, report) = load_with(&[folder.file("v.csv")], &LoadOptions::default()).unwrap();
    assert_eq!((graph.vertices.len(), report.rejects), (1, 1));
}

#[test]
fn too_many_rejects_stop_the_load() {
    let rows: String = (0..10).map(|n| format!("{n}\n")).collect();
    let folder = Folder::new("too-many", &[("v.csv", &format!("~id,x:int\n{rows}"))]);
    let message = |max_rejects, rejects| {
        let options = LoadOptions { max_rejects, rejects, ..LoadOptions::default() };
        let error = load_with(&[folder.file("v.csv")], &options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        error.message().to_owned()
    };
    assert!(message(0, None).contains("v.csv: line 2: expected 2 fields, found 1 (no row may be rejected"));
    let all = message(3, Some(folder.file("rejects.out")));
    assert!(all.contains("more than 3 rows were rejected, the last one on line 5: expected"), "{all}");
    assert_eq!(std::fs::read_to_string(folder.file("rejects.out")).unwrap().lines().count(), 5);
}

const PERSONS: &str = "id|name|born|mail|place|boss\n1|Ann|628646400000|a@x;b@x|7|\n2|Bob||c@x|8|1\n3|Cyd|||7;9|1\n";

#[test]
fn a_mapping_gives_columns_their_meaning() {
    let options = mapped(
        r#"
        [[file]]
        match = "person.csv"
        label = "Person"
        id_space = "Person"
        user_id = "prefix"
        constants = { origin = "test", weight = 2 }
        properties.name = { name = "fullName", type = "string" }
        properties.born = { type = "date", format = "epoch_millis" }
        properties.mail = { type = "string[]", cardinality = "list" }
        foreign = [
          { column = "place", label = "isLocatedIn", space = "Place", separator = ";", missing = "skip" },
          { column = "boss", label = "leads", space = "Person", inward = true },
        ]
        [[file]]
        match = "place.csv"
        kind = "vertex"
        label = "Place"
        label_column = "type"
        label_names = { c = "City" }
        id = "number"
        id_space = "Place"
        id_property = "code"
        "#,
    );
    let folder = Folder::new(
        "mapping",
        &[("person.csv", PERSONS), ("place.csv", "number|type|from|to\n7|c|1|2\n8|Land|3|4\n"), ("other.csv", "?")],
    );
    let (graph, report) = load_with(&[folder.path().to_owned()], &options).unwrap();
    assert_eq!(report.skipped, [folder.file("other.csv")]);
    assert_eq!(report.rejects, 0);
    let ann = graph.by_id("Person:1");
    assert_eq!(graph.value(ann, "fullName"), &Value::string("Ann"));
    assert_eq!(graph.value(ann, "born"), &Value::DateTime(DateTime::parse("1989-12-03").unwrap()));
    assert_eq!((graph.value(ann, "origin"), graph.value(ann, "weight")), (&"test".into(), &Value::I64(2)));
    assert_eq!(graph.vertices[ann].multi[0].values.len(), 2);
    let city = graph.vertex("City", "code", 7_i64);
    assert_eq!((graph.vertices[city].label.as_str(), graph.value(city, "to")), ("Place::City", &Value::I64(2)));
    // Ann and Cyd live in 7, and the place 9 that Cyd also names is skipped.
    assert_eq!(graph.degrees(city, "isLocatedIn"), (0, 2));
    assert_eq!(graph.degrees(ann, "leads"), (2, 0));
}

#[test]
fn a_missing_foreign_key_costs_only_its_edge() {
    let options = mapped(
        r#"
        [[file]]
        match = "p.csv"
        label = "p"
        foreign = [{ column = "a", label = "a" }, { column = "b", label = "b" }]
        "#,
    );
    let rows = "id,a,b\n1,2,2\n2,9,1\n2,1,1\n3,x\n";
    let (graph, rejects) = load_rejecting("foreign-missing", &[("p.csv", rows)], &options);
    assert_eq!(graph.edge_counts().into_iter().collect::<Vec<_>>(), [("a", 1), ("b", 2)]);
    check_rejects(
        &rejects,
        &[
            ("p.csv", "4", "a vertex with the id 2 exists already", "2,1,1"),
            ("p.csv", "5", "expected 3 fields, found 2", "3,x"),
            ("p.csv", "3", "the target vertex '9' does not exist", "2,9,1"),
        ],
    );
}

#[test]
fn ids_that_users_see_are_unique_over_all_spaces() {
    let options = mapped(
        r#"
        [[file]]
        match = "*.csv"
        id_space = "x"
        user_id = true
        [[file]]
        match = "b.tsv"
        id_space = "y"
        user_id = true
        "#,
    );
    let (graph, rejects) =
        load_rejecting("user-ids", &[("a.csv", "id\n1\n2\n"), ("b.tsv", "id\tn:int\n2\t1\n3\t1\n")], &options);
    assert_eq!(graph.vertices.iter().map(|v| v.id.clone().unwrap()).collect::<Vec<_>>(), [1, 2, 3].map(UserId::int));
    check_rejects(&rejects, &[("b.tsv", "2", "a vertex with the id 2 exists already", "2\t1")]);
}

#[test]
fn files_that_cannot_be_planned_stop_the_load_with_their_name() {
    let check = |name: &str, file: (&str, &str), mapping: &str, expected: &str| {
        let folder = Folder::new(name, &[file]);
        let error = load_with(&[folder.file(file.0)], &mapped(mapping)).unwrap_err();
        let message = error.message();
        assert!(message.contains(file.0) && message.contains(expected), "{message}");
    };
    check("plan-1", ("a.csv", "x,y\n1,2\n"), "", "no column is an id");
    check("plan-2", ("a.csv", ""), "", "the file is empty");
    check("plan-3", ("a.csv", "id,n:nt\n"), "", "column 'n:nt': 'nt' is not a type");
    check("plan-4", ("a.csv", ":START_ID,x\n"), "", "one for the target");
    check("plan-5", ("a.csv", "id,n:int,n:int\n"), "", "two columns would be the property 'n'");
    check("plan-6", ("a.bin", "id\n"), "", "names no format");
    let rule = |rest: &str| format!("[[file]]\nmatch = \"*\"\n{rest}");
    check("plan-7", ("a.csv", "id,b\n"), &rule("source = \"c\""), "there is no column 'c'; the columns are id, b");
    check("plan-8", ("a.csv", "id,b\n"), &rule("columns = [\"x\"]\nheader = true"), "names 1 columns");
    check("plan-9", ("a.csv", "id,b\n"), &rule("header = false"), "columns = […]");
    check("plan-10", ("a.csv", "id,b\n"), &rule("properties.b = { format = \"iso8\" }"), "is not a date format");
    check("plan-11", ("a.csv", "id,b\n"), &rule("delimiter = \"é\""), "must be an ASCII character");
    check("plan-12", ("a.csv", "id,b\n"), &rule("properties.c = { skip = true }"), "there is no column 'c'");
    let error = load_with(&["/no/such/file.csv".into()], &LoadOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.message().contains("/no/such/file.csv"), "{error}");
}

#[test]
fn many_labels_and_many_rows_fill_many_batches() {
    let mut vertices = String::from("~id,~label,n:long\n");
    let mut edges = String::from("~from,~to,~label\n");
    for n in 0..50_000 {
        vertices.push_str(&format!("{n},l{},{n}\n", n % 40));
        edges.push_str(&format!("{n},{},e{}\n", (n * 7) % 50_000, n % 30));
    }
    let folder = Folder::new("batches", &[("v.csv", &vertices), ("e.csv", &edges)]);
    let graph = load_clean(&[folder.path().to_owned()], &LoadOptions::default());
    assert_eq!((graph.vertex_counts().len(), graph.edge_counts().len()), (40, 30));
    let number = |at: usize| match graph.value(at, "n") {
        Value::I64(n) => *n,
        other => panic!("{other:?}"),
    };
    assert_eq!(graph.edges.len(), 50_000);
    assert!(graph.edges.iter().all(|edge| (number(edge.source) * 7) % 50_000 == number(edge.target)));
    assert!(graph.vertices.iter().enumerate().all(|(at, v)| v.id == Some(UserId::int(number(at)))));
}
