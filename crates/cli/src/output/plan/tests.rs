//! Plans in all formats.

use std::collections::HashSet;

use mangrove::{OperatorMetrics, TraversalMetrics, Value};
use serde_json::{Value as Json, json};

use super::{PlanFormat, print};

const PLAN: &str = "\
rules: hop over edges
path: none
vertices by 1 id(s)
repeat
  body
    expand out (~98000 rows)
    filter [name eq 'a \"b\\c\"']
  until 2 iterations
union of 2 (branch)
  branch
    count (barrier) (~1 rows)
  branch
    sum
results of \"x\"
";

/// Checks the syntax of a graph: every statement is a setting, a node or an edge, and every edge has its nodes.
fn check_syntax(graph: &str) {
    let statements = graph.strip_prefix("digraph plan {\n").and_then(|rest| rest.strip_suffix("}\n")).unwrap();
    let (mut nodes, mut edges) = (HashSet::new(), Vec::new());
    for line in statements.lines() {
        let statement = line.trim().strip_suffix(';').unwrap_or_else(|| panic!("{line} has no end"));
        let (subject, attributes) = statement.split_once(" [").map_or((statement, None), |(s, a)| (s, Some(a)));
        if let Some(attributes) = attributes {
            assert!(attributes.ends_with(']'), "{line}");
        }
        // A quotation mark inside a text is escaped, and so is each backslash before one.
        let unescaped = line.replace("\\\\", "").replace("\\\"", "");
        assert_eq!(unescaped.matches('"').count() % 2, 0, "{line}");
        match subject.split_once(" -> ") {
            Some((from, to)) => edges.extend([from, to]),
            None if subject.starts_with('n') && attributes.is_some() => assert!(nodes.insert(subject), "{line}"),
            None => assert!(subject.contains('='), "{line}"),
        }
    }
    assert!(edges.iter().all(|end| nodes.contains(end)), "{graph}");
}

fn printed(format: PlanFormat, answer: &Value) -> String {
    let mut out = Vec::new();
    print(answer, format, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn lines_become_a_tree() {
    let json: Json = serde_json::from_str(&printed(PlanFormat::Json, &Value::from(PLAN))).unwrap();
    assert_eq!((&json["rules"], &json["path"]), (&Json::from("hop over edges"), &Json::from("none")));
    let operators = json["operators"].as_array().unwrap();
    assert_eq!(operators.len(), 4);
    assert_eq!(operators[0], json!({ "operator": "vertices by 1 id(s)" }));
    assert_eq!(operators[1]["operators"][0]["part"], "body");
    assert_eq!(
        operators[1]["operators"][0]["operators"][0],
        json!({ "operator": "expand out", "expectedRows": 98_000 })
    );
    assert_eq!(operators[1]["operators"][1], json!({ "part": "until 2 iterations" }));
    assert_eq!(operators[2]["operators"].as_array().unwrap().len(), 2);
    let union = (&operators[2]["operator"], &operators[2]["flow"]);
    assert_eq!(union, (&Json::from("union of 2"), &Json::from("branch")));
    assert_eq!(
        operators[2]["operators"][0]["operators"][0],
        json!({ "operator": "count", "flow": "barrier", "expectedRows": 1 })
    );
    assert_eq!(printed(PlanFormat::Tree, &Value::from(PLAN)), PLAN);
}

#[test]
fn a_graph_has_rows_from_operator_to_operator_and_into_scopes() {
    let graph = printed(PlanFormat::Dot, &Value::from(PLAN));
    check_syntax(&graph);
    for part in [
        "n0 -> n1;",
        "n1 -> n2 [style=dashed];",
        "n2 -> n3 [style=dashed];",
        "n3 -> n4;",
        "n1 -> n5 [style=dashed];",
        "n1 -> n6;",
        "n6 -> n7 [style=dashed];",
        "n6 -> n9 [style=dashed];",
        "n6 -> n11;",
        "n4 [label=\"filter [name eq 'a \\\"b\\\\c\\\"']\\l\"];",
        "n2 [label=\"body\\l\", shape=ellipse];",
    ] {
        assert!(graph.contains(part), "{part} is missing in {graph}");
    }
    assert_eq!(graph.matches("->").count(), 11, "{graph}");
}

#[test]
fn measured_operators_have_their_figures() {
    let expand = OperatorMetrics {
        id: "2".into(),
        name: "expand out".into(),
        nanos: 2_000_000,
        counts: vec![(OperatorMetrics::TRAVERSER_COUNT.into(), 4)],
        annotations: vec![("rowsIn".into(), Value::I64(7))],
        nested: Vec::new(),
    };
    let run = OperatorMetrics {
        id: "run".into(),
        name: "the run".into(),
        annotations: vec![("coresUsed".into(), Value::F64(1.5))],
        ..OperatorMetrics::default()
    };
    let around = OperatorMetrics { id: "1".into(), name: "where".into(), nanos: 3_000_000, ..expand.clone() };
    let around = OperatorMetrics { nested: vec![expand], ..around };
    let metrics = Value::TraversalMetrics(TraversalMetrics { nanos: 5_000_000, operators: vec![around, run] }.into());
    let json: Json = serde_json::from_str(&printed(PlanFormat::Json, &metrics)).unwrap();
    assert_eq!((&json["ms"], &json["run"]["coresUsed"]), (&json!(5.0), &json!(1.5)));
    let inside = &json["operators"][0]["operators"][0];
    assert_eq!(inside, &json!({ "operator": "expand out", "rows": 4, "ms": 2.0, "rowsIn": 7 }));
    assert_eq!(json["operators"][0]["ms"], json!(1.0));
    let graph = printed(PlanFormat::Dot, &metrics);
    check_syntax(&graph);
    assert!(graph.contains("n1 [label=\"expand out\\lrows 4\\lms 2.000\\lrowsIn 7\\l\"];"), "{graph}");
    assert!(graph.contains("label=\"ms: 5.000\\lrun: coresUsed 1.500\\l\";"), "{graph}");
}
