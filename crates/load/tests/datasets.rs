//! The development data sets, loaded with the mappings that ship, compared with known counts.
//!
//! Counts and component sizes come from the data's README, which has them from the files independently. A data set that
//! is not there is skipped with a printed note.

use mangrove_graph::{DateTime, UserId, Value};
use mangrove_load::LoadOptions;
use mangrove_testdata::dataset;

use crate::common::{Graph, load_clean, load_with, shipped_mapping};

/// The multi-property of a vertex as its values.
fn multi(graph: &Graph, vertex: usize, key: &str) -> Vec<Value> {
    let property = graph.vertices[vertex].multi.iter().find(|property| property.key == key);
    property.map(|p| p.values.iter().map(|v| v.value.clone()).collect()).unwrap_or_default()
}

#[test]
fn ldbc_snb_with_typed_headers() {
    let Some(folder) = dataset("ldbc_snb_sf0.1") else { return };
    let graph = load_clean(&[folder.join("data")], &shipped_mapping("ldbc-snb"));
    assert_eq!((graph.vertices.len(), graph.edges.len()), (327_588, 1_477_965));

    let vertices = graph.vertex_counts();
    let kind = |name: &str| -> usize {
        vertices.iter().filter(|(label, _)| label.split("::").any(|l| l == name)).map(|(_, count)| count).sum()
    };
    for (label, count) in [
        ("Person", 1_528),
        ("Forum", 13_750),
        ("Post", 135_701),
        ("Comment", 151_043),
        ("Tag", 16_080),
        ("TagClass", 71),
        ("Place", 1_460),
        ("Organisation", 7_955),
    ] {
        assert_eq!(kind(label), count, "{label}");
    }
    assert!(vertices.contains_key("Place::City") && vertices.contains_key("Organisation::Company"), "{vertices:?}");

    let edges = graph.triple_counts();
    for (source, label, target, count) in [
        ("Person", "knows", "Person", 14_073),
        ("Forum", "hasMember", "Person", 123_268),
        ("Person", "likes", "Post", 47_215),
        ("Person", "likes", "Comment", 62_225),
        ("Person", "workAt", "Organisation", 3_313),
        ("Person", "studyAt", "Organisation", 1_209),
        ("Person", "hasInterest", "Tag", 35_475),
        ("Post", "hasTag", "Tag", 51_118),
        ("Comment", "hasTag", "Tag", 191_303),
        ("Comment", "replyOf", "Post", 74_256),
    ] {
        assert_eq!(edges.get(&(source, label, target)), Some(&count), "{source} {label} {target}");
    }

    let person = graph.vertex("Person", "id", 933_i64);
    assert_eq!(graph.vertices[person].id, None);
    assert_eq!(graph.value(person, "firstName"), &Value::string("Mahinda"));
    assert_eq!(graph.value(person, "creationDate"), &Value::I64(1_266_161_530_447));
    assert_eq!(multi(&graph, person, "speaks"), vec!["si".into(), "en".into()]);
    assert_eq!(multi(&graph, person, "email").len(), 4);
    let place = graph.out(person, "isLocatedIn");
    assert_eq!(graph.value(place[0], "id"), &Value::I64(1353));
    let comment = graph.vertex("Comment", "id", 618_475_290_625_i64);
    assert_eq!(graph.value(comment, "creationDate"), &Value::I64(1_313_591_219_961));
    assert_eq!(graph.value(comment, "length"), &Value::I32(3));
}

#[test]
fn ldbc_snb_as_the_generator_writes_it() {
    let Some(folder) = dataset("ldbc_snb_sf0.003") else { return };
    let graph = load_clean(&[folder.join("vanilla")], &shipped_mapping("ldbc-snb"));
    assert_eq!((graph.vertices.len(), graph.edges.len()), (34_735, 70_842));
    let person = graph.vertex("Person", "id", 8_796_093_022_220_i64);
    assert_eq!(graph.value(person, "creationDate"), &Value::I64(1_284_620_040_602));
    assert_eq!(graph.triple_counts().get(&("Person", "knows", "Person")), Some(&825));
    assert!(graph.vertex_counts().contains_key("Place::Country"));
}

#[test]
fn ldbc_snb_headers_say_enough_without_a_mapping() {
    let Some(folder) = dataset("ldbc_snb_sf0.003") else { return };
    let graph = load_clean(&[folder.join("vanilla")], &LoadOptions::default());
    assert_eq!((graph.vertices.len(), graph.edges.len()), (34_735, 70_842));
    assert_eq!(graph.edge_counts().get("knows"), Some(&825));
    let person = graph.vertex("person", "id", 8_796_093_022_220_i64);
    assert_eq!(graph.value(person, "firstName"), &Value::string("Jose"));
}

#[test]
fn lsqb() {
    for (name, inner, vertices, edges, knows) in
        [("lsqb_sf0.1", "data", 432_235, 2_080_404, 18_135), ("lsqb_sfexample", "", 28, 72, 6)]
    {
        let Some(folder) = dataset(name) else { continue };
        let graph = load_clean(&[folder.join(inner)], &shipped_mapping("lsqb"));
        assert_eq!((graph.vertices.len(), graph.edges.len()), (vertices, edges), "{name}");
        assert_eq!(graph.edge_counts().get("knows"), Some(&knows), "{name}");
        assert!(graph.triple_counts().contains_key(&("Comment", "replyOf", "Post")), "{name}");
    }
}

#[test]
fn air_routes() {
    let Some(folder) = dataset("air_routes") else { return };
    let files = ["air-routes-latest-edges.csv", "air-routes-latest-nodes.csv"].map(|name| folder.join(name));
    for options in [shipped_mapping("air-routes"), LoadOptions::default()] {
        let graph = load_clean(&files, &options);
        let vertices = graph.vertex_counts();
        assert_eq!(
            vertices.into_iter().collect::<Vec<_>>(),
            [("airport", 3_504), ("continent", 7), ("country", 237), ("version", 1)]
        );
        assert_eq!(graph.edge_counts().into_iter().collect::<Vec<_>>(), [("contains", 7_008), ("route", 50_637)]);
        let atlanta = graph.by_id(1);
        assert_eq!(graph.value(atlanta, "code"), &Value::string("ATL"));
        assert_eq!(graph.value(atlanta, "runways"), &Value::I32(5));
        assert_eq!(graph.degrees(atlanta, "contains"), (0, 2));
        let first = graph.edges.iter().find(|edge| edge.id == Some(UserId::int(3749))).unwrap();
        assert_eq!((first.source, first.properties["dist"].clone()), (atlanta, Value::I32(809)));
    }
    let graph = load_clean(&[folder.join("air-routes-small-latest.graphml")], &LoadOptions::default());
    let (vertices, edges) = (graph.vertex_counts(), graph.edge_counts());
    // The small graph has the 46 airports of the first edition.
    assert_eq!((vertices.get("airport"), edges.contains_key("route")), (Some(&46), true), "{vertices:?} {edges:?}");
}

#[test]
fn openflights() {
    let Some(folder) = dataset("openflights") else { return };
    let (graph, report) = load_with(&[folder], &shipped_mapping("openflights")).unwrap();
    let vertices = graph.vertex_counts();
    assert_eq!((vertices["airport"], vertices["airline"], vertices["plane"]), (7_698, 6_162, 246));
    // Two names occur twice in the list of countries; 892 routes name an unknown airport.
    assert_eq!(vertices["country"], 259);
    let edges = graph.edge_counts();
    assert_eq!((edges["route"], edges["locatedIn"]), (66_771, 7_698 - 147));
    assert_eq!(report.rejects, 2 + 67_663 - 66_771);
    let goroka = graph.vertex("airport", "iata", "GKA");
    assert_eq!(graph.value(goroka, "id"), &Value::I64(1));
    assert_eq!(graph.value(goroka, "timezone"), &Value::F64(10.0));
    assert_eq!(graph.value(graph.out(goroka, "locatedIn")[0], "name"), &Value::string("Papua New Guinea"));
    assert_eq!(graph.value(graph.vertex("airport", "id", 4347_i64), "city"), &Value::string("ST MARY'S"));
    let skipped: Vec<_> = report.skipped.iter().filter_map(|path| path.file_name()?.to_str()).collect();
    assert_eq!(skipped, ["LICENSE", "README.md"]);
}

#[test]
fn tinysnb() {
    let Some(folder) = dataset("kuzu_tinysnb") else { return };
    let graph = load_clean(&[folder], &shipped_mapping("tinysnb"));
    let vertices: Vec<_> = graph.vertex_counts().into_iter().collect();
    assert_eq!(vertices, [("movies", 3), ("organisation", 3), ("person", 8)]);
    let edges: Vec<_> = graph.edge_counts().into_iter().collect();
    assert_eq!(edges, [("knows", 14), ("marries", 3), ("meets", 7), ("studyAt", 3), ("workAt", 3)]);

    let alice = graph.vertex("person", "fName", "Alice");
    assert_eq!(graph.value(alice, "isStudent"), &Value::Bool(true));
    assert_eq!(graph.value(alice, "height"), &Value::F32(1.731));
    assert_eq!(graph.value(alice, "birthdate"), &Value::DateTime(DateTime::parse("1900-01-01").unwrap()));
    let list = |numbers: &[i64]| Value::list(numbers.iter().map(|n| Value::I64(*n)).collect());
    assert_eq!(graph.value(alice, "courseScoresPerTerm"), &Value::list(vec![list(&[10, 8]), list(&[6, 7, 8])]));
    assert!(matches!(graph.value(alice, "u"), Value::Uuid(_)));
    let organisation = graph.vertex("organisation", "ID", 4_i64);
    let state = graph.value(organisation, "state");
    assert!(matches!(state, Value::String(text) if text.contains("[\"vanco,uver north area\"]")), "{state:?}");
    let study = graph.edges.iter().find(|edge| edge.label == "studyAt" && edge.source == alice).unwrap();
    assert_eq!(study.properties["code"], Value::BigInt(std::sync::Arc::new(9_223_372_036_854_775_808_u64.into())));
    assert_eq!(graph.degrees(alice, "knows"), (3, 3));
}

#[test]
fn snap() {
    let Some(folder) = dataset("snap") else { return };
    for (name, vertices, edges, component) in [
        ("wiki-Vote", 7_116, 103_689, 7_067),
        ("bitcoin-otc", 5_881, 35_592, 5_875),
        ("email-Eu-core", 1_005, 25_571, 986),
    ] {
        let graph = load_clean(&[folder.join(name)], &shipped_mapping("snap"));
        assert_eq!((graph.vertices.len(), graph.edges.len()), (vertices, edges), "{name}");
        assert_eq!(graph.largest_component(), component, "{name}");
    }
}

#[test]
fn p2p_31() {
    let Some(folder) = dataset("p2p-31") else { return };
    let graph = load_clean(&[folder], &shipped_mapping("p2p-31"));
    assert_eq!((graph.vertices.len(), graph.edges.len()), (62_586, 147_892));
    assert!(
        graph.edges.iter().all(|edge| matches!(edge.properties["weight"], Value::F64(w) if (1.0..=100.0).contains(&w)))
    );
}

#[test]
fn tinkerpop_graphson_and_graphml() {
    let Some(folder) = dataset("tinkerpop") else { return };
    for (file, vertices, edges) in [
        ("tinkerpop-modern.json", 6, 6),
        ("tinkerpop-classic.json", 6, 6),
        ("tinkerpop-crew.json", 6, 14),
        ("tinkerpop-sink.json", 3, 3),
        ("grateful-dead.json", 808, 8_049),
        ("tinkerpop-modern.xml", 6, 6),
        ("tinkerpop-classic.xml", 6, 6),
        ("grateful-dead.xml", 808, 8_049),
    ] {
        let graph = load_clean(&[folder.join(file)], &LoadOptions::default());
        assert_eq!((graph.vertices.len(), graph.edges.len()), (vertices, edges), "{file}");
    }
}

#[test]
fn tinkerpop_modern_in_detail() {
    let Some(folder) = dataset("tinkerpop") else { return };
    for file in ["tinkerpop-modern.json", "tinkerpop-modern.xml"] {
        let graph = load_clean(&[folder.join(file)], &LoadOptions::default());
        let marko = graph.by_id(1);
        assert_eq!(graph.vertices[marko].label, "person", "{file}");
        assert_eq!(graph.value(marko, "name"), &Value::string("marko"), "{file}");
        assert_eq!(graph.value(marko, "age"), &Value::I32(29), "{file}");
        assert_eq!(graph.degrees(marko, "knows"), (2, 0), "{file}");
        let created = graph.edges.iter().find(|edge| edge.id == Some(UserId::int(9))).unwrap();
        assert_eq!((created.source, created.target), (marko, graph.by_id(3)), "{file}");
        assert_eq!(created.properties["weight"], Value::F64(0.4), "{file}");
    }
}

#[test]
fn tinkerpop_crew_has_multi_and_meta_properties() {
    let Some(folder) = dataset("tinkerpop") else { return };
    let graph = load_clean(&[folder.join("tinkerpop-crew.json")], &LoadOptions::default());
    let marko = &graph.vertices[graph.by_id(1)];
    assert_eq!(marko.properties.keys().collect::<Vec<_>>(), ["name"]);
    let [location] = marko.multi.as_slice() else { panic!("{:?}", marko.multi) };
    let places: Vec<_> = location.values.iter().map(|place| place.value.clone()).collect();
    assert_eq!(places, ["san diego", "santa cruz", "brussels", "santa fe"].map(Value::from));
    let meta = &location.values[0].meta;
    assert_eq!(meta.as_slice(), [("startTime".into(), Value::I32(1997)), ("endTime".into(), Value::I32(2001))]);
    assert_eq!(location.values[3].meta.len(), 1);
}
