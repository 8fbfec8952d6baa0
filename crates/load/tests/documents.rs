//! GraphSON and GraphML: values, versions, and damage.

use mangrove_graph::{ErrorKind, UserId, Value};
use mangrove_load::{LoadFormat, LoadOptions};

use crate::common::{Folder, load_clean, load_with};

#[track_caller]
fn check_damage(name: &str, file: (&str, &str), expected: &str) {
    let folder = Folder::new(name, &[file]);
    let error = load_with(&[folder.file(file.0)], &LoadOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Syntax, "{error}");
    assert!(error.message().contains(file.0) && error.message().contains(expected), "{error}");
}

#[test]
fn graphson_values_of_every_type() {
    let values = [
        (r#"{"@type":"g:Int64","@value":5}"#, Value::I64(5)),
        (r#"{"@type":"g:Double","@value":"NaN"}"#, Value::F64(f64::NAN)),
        (r#"{"@type":"g:Float","@value":0.5}"#, Value::F32(0.5)),
        (r#"{"@type":"gx:Byte","@value":-1}"#, Value::I8(-1)),
        (r#"{"@type":"gx:Int16","@value":300}"#, Value::I16(300)),
        (r#"{"@type":"gx:Char","@value":"x"}"#, Value::Char('x')),
        (
            r#"{"@type":"gx:Duration","@value":"PT2S"}"#,
            Value::Duration(mangrove_graph::Duration { seconds: 2, nanos: 0 }),
        ),
        (r#"{"@type":"g:Date","@value":1000}"#, Value::DateTime(mangrove_graph::DateTime::from_epoch_millis(1000))),
        (r#"{"@type":"g:List","@value":["a",true]}"#, Value::list(vec!["a".into(), true.into()])),
        (
            r#"{"@type":"g:Set","@value":["a","a"]}"#,
            Value::Set(vec!["a".into()].into_iter().collect::<Vec<_>>().into()),
        ),
        (r#"{"@type":"g:Map","@value":["a",1]}"#, Value::map(vec![("a".into(), Value::I32(1))])),
        ("7", Value::I32(7)),
        ("3000000000", Value::I64(3_000_000_000)),
        ("1.5", Value::F64(1.5)),
    ];
    let properties: Vec<_> =
        values.iter().enumerate().map(|(at, (json, _))| format!(r#""p{at}":[{{"id":1,"value":{json}}}]"#)).collect();
    let line = format!(r#"{{"id":"a","label":"x","properties":{{{}}}}}"#, properties.join(","));
    let folder = Folder::new("graphson-values", &[("g.json", &line)]);
    let graph = load_clean(&[folder.file("g.json")], &LoadOptions::default());
    for (at, (json, expected)) in values.iter().enumerate() {
        let found = graph.value(0, &format!("p{at}"));
        assert!(mangrove_graph::compare::equivalent(found, expected), "{json}: {found:?}");
    }
}

#[test]
fn graphson_2_and_forward_references() {
    let folder = Folder::new(
        "graphson-2",
        &[(
            "g.json",
            concat!(
                r#"{"id":{"@type":"g:Int32","@value":1},"label":"p","outE":{"k":[{"id":"e","inV":2,"properties":{"w":{"@type":"g:Property","@value":{"key":"w","value":3}}}}]},"#,
                r#""properties":{"n":[{"@type":"g:VertexProperty","@value":{"id":0,"value":"x"}}]}}"#,
                "\r\n\n",
                r#"{"id":2,"inE":{"k":[{"id":"e","outV":1}]}}"#,
                "\n"
            ),
        )],
    );
    let graph = load_clean(&[folder.file("g.json")], &LoadOptions::default());
    assert_eq!(graph.value(graph.by_id(1), "n"), &Value::string("x"));
    assert_eq!(graph.vertices[graph.by_id(2)].label, "vertex");
    let [edge] = graph.edges.as_slice() else { panic!("{:?}", graph.edges) };
    assert_eq!((edge.source, edge.target, edge.id.clone()), (0, 1, Some(UserId::from("e"))));
    assert_eq!(edge.properties["w"], Value::I32(3));
}

#[test]
fn graphson_rejects_and_damage() {
    let vertex =
        |id: u32, target: u32| format!(r#"{{"id":{id},"label":"p","outE":{{"k":[{{"id":{id},"inV":{target}}}]}}}}"#);
    let lines = [vertex(1, 2), vertex(2, 9), vertex(1, 2)].join("\n");
    let folder = Folder::new("graphson-rejects", &[("g.dump", &lines)]);
    let options = LoadOptions {
        format: Some(LoadFormat::GraphSon),
        rejects: Some(folder.file("r.csv")),
        ..LoadOptions::default()
    };
    let (graph, report) = load_with(&[folder.file("g.dump")], &options).unwrap();
    assert_eq!((graph.vertices.len(), graph.edges.len(), report.rejects), (2, 1, 2));
    let rejects = std::fs::read_to_string(folder.file("r.csv")).unwrap();
    assert!(rejects.contains("3,a vertex with the id 1 exists already"), "{rejects}");
    assert!(rejects.contains("2,edge 2: the target vertex 9 does not exist"), "{rejects}");

    check_damage("graphson-1", ("g.json", "{\"id\":1}\n{\"id\":"), "line 2: damaged GraphSON: not JSON");
    check_damage("graphson-2b", ("g.json", "[1]"), "line 1: damaged GraphSON: not an object");
    check_damage("graphson-3", ("g.json", "{\"label\":\"x\"}"), "a vertex has no id");
    check_damage(
        "graphson-4",
        ("g.json", "{\"vertices\":[{\"id\":1},2]}"),
        "vertex 2: damaged GraphSON: not an object",
    );
    check_damage("graphson-4b", ("g.json", "{\"vertices\":[{\"id\":1},"), "damaged GraphSON: not JSON");
    let typed =
        |kind: &str| format!(r#"{{"id":1,"properties":{{"n":[{{"value":{{"@type":"{kind}","@value":"x"}}}}]}}}}"#);
    check_damage("graphson-5", ("g.json", &typed("g:Int32")), "\"x\" is not of the type g:Int32");
    check_damage("graphson-6", ("g.json", &typed("g:Path")), "g:Path cannot be stored");
}

const KEYS: &str = r#"<?xml version="1.0"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="labelV" for="node" attr.name="labelV" attr.type="string"/>
<key id="labelE" for="edge" attr.name="labelE" attr.type="string"/>
<key id="d0" for="node" attr.name="name" attr.type="string"/>
<key id="d1" for="node" attr.name="age" attr.type="int"><default>18</default></key>
<key id="d2" for="edge" attr.name="weight" attr.type="double"/>
"#;

fn graphml(body: &str) -> String {
    format!("{KEYS}<graph id=\"G\" edgedefault=\"directed\">\n{body}\n</graph></graphml>\n")
}

#[test]
fn graphml_elements_defaults_and_references() {
    let body = r#"<edge source="a&amp;b" target="2"><data key="labelE">knows</data><data key="d2">0.5</data></edge>
<edge id="7" source="2" target="2"/>
<node id="a&amp;b"><data key="labelV">person</data><data key="d0">A &lt; &#233; <![CDATA[<x>]]></data></node>
<node id="2"><data key="d1">30</data><data key="d0"></data></node>"#;
    let folder = Folder::new("graphml", &[("g.graphml", &graphml(body))]);
    let graph = load_clean(&[folder.file("g.graphml")], &LoadOptions::default());
    let first = graph.by_id("a&b");
    assert_eq!(graph.value(first, "name"), &Value::string("A < é <x>"));
    assert_eq!(graph.value(first, "age"), &Value::I32(18));
    assert_eq!(graph.vertices[first].label, "person");
    let second = graph.by_id(2);
    assert_eq!((graph.value(second, "age"), graph.value(second, "name")), (&Value::I32(30), &"".into()));
    assert_eq!(graph.out(first, "knows"), [second]);
    assert_eq!(graph.out(second, "edge"), [second]);
}

#[test]
fn graphml_rejects_and_damage() {
    let body = r#"<node id="1"/>
<node id="1"/>
<node id="2"><data key="d1">x</data></node>
<edge id="1" source="1" target="2"/>
<edge id="1" source="1" target="1"/>
<edge id="1" source="1" target="1"/>"#;
    let folder = Folder::new("graphml-rejects", &[("g.xml", &graphml(body))]);
    let options = LoadOptions { rejects: Some(folder.file("r.csv")), ..LoadOptions::default() };
    let (graph, report) = load_with(&[folder.file("g.xml")], &options).unwrap();
    assert_eq!((graph.vertices.len(), graph.edges.len(), report.rejects), (1, 1, 4));
    let rejects = std::fs::read_to_string(folder.file("r.csv")).unwrap();
    for expected in [
        "10,a vertex with the id 1 exists already",
        "11,'x' under the key 'age' is not of the type int",
        "12,the target vertex '2' does not exist",
        "14,an edge with the id 1 exists already",
    ] {
        assert!(rejects.contains(expected), "{expected}: {rejects}");
    }

    check_damage("graphml-1", ("g.xml", &graphml("<node id=\"1\">\n</edge>")), "line 10: damaged GraphML: not XML");
    check_damage("graphml-2", ("g.xml", &graphml("<node/>")), "line 9: damaged GraphML: a node has no id");
    check_damage(
        "graphml-3",
        ("g.xml", &graphml("<node id='1'><data key='q'>1</data></node>")),
        "'q', which is not declared",
    );
    check_damage("graphml-4", ("g.xml", "<x/>"), "no graphml element");
    check_damage("graphml-5", ("g.xml", &graphml("<hyperedge/>")), "a hyperedge cannot be loaded");
    check_damage("graphml-6", ("g.xml", &graphml("<node id='1'><data key='d0'>&x;</data></node>")), "entity 'x'");
    check_damage("graphml-7", ("g.xml", &graphml("<edge target='1'/>")), "an edge has no source");
    let whole = graphml("<node id=\"1\"/>");
    let cut = &whole[..whole.find("</graph>").unwrap()];
    check_damage("graphml-8", ("g.xml", cut), "the document ends in the middle of an element");
}
