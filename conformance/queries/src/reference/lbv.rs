//! LBV's templates Q2 to Q27: the results of reads, and the effect of a write as its transaction sees it.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use super::answers::Given;
use super::{Edge, Graph};

/// The answer to a template; `None` if no template has this name.
pub fn answer(graph: &Graph, name: &str, given: &Given<'_>) -> Option<Vec<Json>> {
    Some(match name {
        "Q2" => vec![json!({"firstName": given.text("s"), "persons": graph.of_kind("Person").count() + 1})],
        "Q3" => vec![json!(graph.out(given.vertex(graph, "v"), "knows").len() + 1)],
        "Q4" => vec![json!(1)],
        "Q5" | "Q14" | "Q16" => vec![json!(given.number("id"))],
        "Q6" => vec![json!(graph.id(edge(graph, given).from))],
        "Q7" => ["v", "w"].map(|name| json!(graph.id(given.vertex(graph, name)))).to_vec(),
        "Q11" => {
            ids(graph, (0..graph.vertices.len()).filter(|at| graph.text(*at, "firstName") == Some(given.text("value"))))
        }
        "Q12" => ends(graph, |edge| edge.property == Some(("workFrom".into(), given.number("value")))),
        "Q13" => ends(graph, |edge| edge.label == "studyAt"),
        "Q15" => {
            let edge = edge(graph, given);
            vec![json!({"from": graph.id(edge.from), "to": graph.id(edge.to)})]
        }
        "Q17" => vec![json!(given.number("x"))],
        "Q18" => without_vertex(graph, given),
        "Q19" => without_edge(graph, given),
        "Q20" => vec![json!("firstName"), json!("gender")],
        "Q21" => vec![json!(0)],
        "Q22" => ids(graph, incident(graph, given, false, true).map(|edge| edge.from)),
        "Q23" => ids(graph, incident(graph, given, true, false).map(|edge| edge.to)),
        "Q24" => ids(graph, graph.friends(given.vertex(graph, "v")).into_iter()),
        "Q25" => labels(incident(graph, given, false, true)),
        "Q26" => labels(incident(graph, given, true, false)),
        "Q27" => labels(incident(graph, given, true, true)),
        _ => return None,
    })
}

/// The edge that the parameter `e` names.
fn edge<'a>(graph: &'a Graph, given: &Given<'_>) -> &'a Edge {
    let (from, label, to) = given.edge(graph, "e");
    let found = graph.out_edges(from, label).find(|edge| graph.id(edge.to) == to);
    found.expect("the parameter names an edge")
}

/// The edges whose source (if `out`) or target (if `into`) is `v`, found by a scan of all edges.
fn incident<'a>(graph: &'a Graph, given: &Given<'_>, out: bool, into: bool) -> impl Iterator<Item = &'a Edge> {
    let v = given.vertex(graph, "v");
    graph.edges.iter().filter(move |edge| (out && edge.from == v) || (into && edge.to == v))
}

fn ids(graph: &Graph, vertices: impl Iterator<Item = usize>) -> Vec<Json> {
    vertices.map(|vertex| json!(graph.id(vertex))).collect()
}

fn labels<'a>(edges: impl Iterator<Item = &'a Edge>) -> Vec<Json> {
    edges.map(|edge| edge.label.as_str()).collect::<BTreeSet<_>>().into_iter().map(Json::from).collect()
}

fn ends(graph: &Graph, keep: impl Fn(&Edge) -> bool) -> Vec<Json> {
    let row = |edge: &Edge| json!({"from": graph.id(edge.from), "to": graph.id(edge.to)});
    graph.edges.iter().filter(|edge| keep(edge)).map(row).collect()
}

/// The numbers of vertices and edges after `v` is dropped with its edges.
fn without_vertex(graph: &Graph, given: &Given<'_>) -> Vec<Json> {
    let gone = incident(graph, given, true, true).count();
    vec![json!(graph.vertices.len() - 1), json!(graph.edges.len() - gone)]
}

/// The targets of the start person's edges that are left after the edge `e` is dropped.
fn without_edge(graph: &Graph, given: &Given<'_>) -> Vec<Json> {
    // The start person is the one in the template's `shows`.
    let (start, gone) = (graph.find("Person", 933), edge(graph, given));
    let edges = ["knows", "workAt"].into_iter().flat_map(|label| graph.out_edges(start, label));
    edges.filter(|edge| !std::ptr::eq(*edge, gone)).map(|edge| json!(graph.id(edge.to))).collect()
}
