//! Values of vertices in files of their own: one row a value, in any mapping and as LDBC's generator writes them.

use mangrove_graph::Value;
use mangrove_load::{Cardinality, LoadOptions, Mapping};

use crate::common::csv_basic::{self, PERSONS, emails, languages, person_id};
use crate::common::{Folder, Graph, load_clean, load_with, shipped_mapping};

fn mapped(mapping: &str) -> LoadOptions {
    LoadOptions { mapping: Some(Mapping::parse(mapping).unwrap()), ..LoadOptions::default() }
}

/// The values of a multi-property.
fn values(graph: &Graph, vertex: usize, key: &str) -> Vec<Value> {
    let property = graph.vertices[vertex].multi.iter().find(|property| property.key == key);
    property.map_or_else(Vec::new, |property| property.values.iter().map(|value| value.value.clone()).collect())
}

#[test]
fn ldbc_csv_basic_as_the_generator_writes_it() {
    let folder = csv_basic::write("csv-basic");
    let graph = load_clean(&[folder.path().to_owned()], &shipped_mapping("ldbc-snb"));
    let counts: Vec<_> = graph.vertex_counts().into_iter().collect();
    assert_eq!(
        counts,
        [
            ("Comment", 2),
            ("Forum", 1),
            ("Organisation::Company", 1),
            ("Organisation::University", 1),
            ("Person", PERSONS),
            ("Place::City", 1),
            ("Place::Continent", 1),
            ("Place::Country", 1),
            ("Post", 2),
            ("Tag", 1),
            ("TagClass", 2)
        ]
    );
    assert_eq!(graph.edges.len(), 2 + 2 + 1 + 1 + PERSONS + PERSONS + 2 + (PERSONS - 1) + 14);
    for number in 0..PERSONS {
        let person = graph.vertex("Person", "id", person_id(number));
        let texts = |texts: Vec<String>| texts.into_iter().map(|text| Value::string(&text)).collect::<Vec<_>>();
        assert_eq!(values(&graph, person, "speaks"), texts(languages(number)), "{number}");
        assert_eq!(values(&graph, person, "email"), texts(emails(number)), "{number}");
        assert_eq!(graph.value(person, "creationDate"), &Value::I64(1_266_161_530_447));
        assert_eq!(graph.value(person, "birthday"), &Value::I64(628_646_400_000));
    }
    let post = graph.vertex("Post", "id", 3_i64);
    assert_eq!(graph.value(post, "language"), &Value::string("uz"));
}

#[test]
fn values_of_any_mapping_in_any_order() {
    let rules = r#"
        [[file]]
        match = "a_phone.csv"
        kind = "values"
        id = "who"
        id_space = "person"
        properties.number = { name = "phone", type = "long", cardinality = "set" }
        properties.kind = { skip = true }
        [[file]]
        match = "b_tag.csv"
        kind = "values"
        id_space = "person"
        properties.tags = { name = "tag", separator = "/" }
        [[file]]
        match = "c.csv"
        label = "person"
        id_space = "person"
        "#;
    let folder = Folder::new(
        "values-any",
        &[
            ("a_phone.csv", "kind,who,number\nhome,x,5\nwork,y,6\nhome,x,7\nhome,x,5\n"),
            ("b_tag.csv", "owner,tags\nx,a/b\nx,\nx,c\n"),
            ("c.csv", "id,tag,phone:int\nx,first,\ny,,1\nz,,\n"),
        ],
    );
    let (graph, report) = load_with(&[folder.path().to_owned()], &mapped(rules)).unwrap();
    assert_eq!((report.rejects, report.files[0].values, report.files[1].values), (0, 4, 3));
    let person = |id: &str| graph.vertex("person", "id", id);
    let texts = |texts: &[&str]| texts.iter().map(|text| Value::string(*text)).collect::<Vec<_>>();
    // Values in the row of the vertex come first.
    assert_eq!(values(&graph, person("x"), "tag"), texts(&["first", "a", "b", "c"]));
    assert_eq!(values(&graph, person("x"), "phone"), [Value::I64(5), Value::I64(7)]);
    assert_eq!(values(&graph, person("y"), "phone"), [Value::I32(1), Value::I64(6)]);
    assert!(graph.vertices[person("z")].multi.is_empty());
    let set = graph.vertices[person("x")].multi.iter().find(|property| property.key == "phone").unwrap();
    assert_eq!(set.cardinality, Cardinality::Set);
}

#[test]
fn values_without_their_vertex_are_rejected() {
    let rules = "[[file]]\nmatch = \"m.csv\"\nkind = \"values\"\nid_space = \"p\"\n[[file]]\nmatch = \"p.csv\"\nid_space = \"p\"\n";
    let folder = Folder::new(
        "values-lost",
        &[("m.csv", "p.id,mail:string,n:int\n1,a,1\n9,b,2\n1,c,x\n,d,3\n"), ("p.csv", "id\n1\n")],
    );
    let options = LoadOptions { rejects: Some(folder.file("bad.out")), ..mapped(rules) };
    let (graph, report) = load_with(&["m.csv", "p.csv"].map(|file| folder.file(file)), &options).unwrap();
    assert_eq!((graph.vertices.len(), report.rejects, report.files[0].rejects), (1, 3, 3));
    let rejects = std::fs::read_to_string(folder.file("bad.out")).unwrap();
    for part in [
        "3,no file of this load has the vertex 9 in the id space 'p'",
        "4,'x' in the column",
        "5,the row names no vertex",
    ] {
        assert!(rejects.contains(part), "{part}: {rejects}");
    }
    let rows = std::fs::read_to_string(folder.file("bad.out.rows").join("m.csv")).unwrap();
    assert_eq!(rows, "p.id,mail:string,n:int\n1,c,x\n,d,3\n9,b,2\n");
}
