//! Reference answers of Grasper's Q1 to Q8; `sets/grasper.toml` has each question in words.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Value as Json, json};

use super::answers::Given;
use super::{Edge, Graph, Vertex};

/// The answer to a query; `None` if no query has this name.
pub fn answer(graph: &Graph, name: &str, given: &Given<'_>) -> Option<Vec<Json>> {
    let (from, to) = (given.number("begin"), given.number("end"));
    let starts = (0..graph.vertices.len()).filter(|vertex| graph.created_between(*vertex, from, to));
    let edges = |key: &'static str| {
        let fits = move |edge: &&Edge| edge.property.as_ref().is_some_and(|(k, n)| k == key && from <= *n && *n < to);
        graph.edges.iter().filter(fits)
    };
    Some(match name {
        "Q1" => grouped("length", starts.filter_map(|vertex| graph.number(vertex, "length"))),
        "Q2" => {
            let images = starts.filter(|post| graph.is(*post, "Post") && graph.text(*post, "imageFile").is_some());
            images.map(|post| json!(graph.id(post))).collect()
        }
        "Q3" => {
            let replies = starts.flat_map(|vertex| graph.into(vertex, "replyOf"));
            replies.filter_map(|reply| graph.number(reply, "length")).max().map(Json::from).into_iter().collect()
        }
        "Q4" => {
            let sources: BTreeSet<Vertex> = edges("creationDate").map(|edge| edge.from).collect();
            vec![json!(sources.into_iter().filter(|vertex| graph.text(*vertex, "gender") == Some("female")).count())]
        }
        "Q5" => {
            let others = edges("workFrom").filter(|edge| graph.text(edge.from, "gender") != Some("male"));
            grouped("year", others.filter_map(|edge| edge.property.as_ref()).map(|(_, year)| *year))
        }
        "Q6" => starts.filter(|vertex| is_q6(graph, *vertex)).map(|vertex| json!(graph.id(vertex))).collect(),
        "Q7" => q7(graph, starts),
        "Q8" => q8(graph, &starts.collect()),
        _ => return None,
    })
}

/// The number of times that each number occurs, as rows of the number (in the field `name`) and the count.
fn grouped(name: &str, numbers: impl Iterator<Item = i64>) -> Vec<Json> {
    let mut counts: BTreeMap<i64, u64> = BTreeMap::new();
    numbers.for_each(|number| *counts.entry(number).or_default() += 1);
    counts.into_iter().map(|(number, count)| json!({name: number, "count": count})).collect()
}

fn is_q6(graph: &Graph, vertex: Vertex) -> bool {
    let authors = graph.out(vertex, "hasCreator");
    let oldest = authors.iter().filter_map(|author| graph.number(*author, "creationDate")).min();
    oldest.is_some_and(|date| date < 1_290_000_000_000) && graph.into(vertex, "replyOf").len() >= 2
}

fn q7(graph: &Graph, starts: impl Iterator<Item = Vertex>) -> Vec<Json> {
    let mut dates = Vec::new();
    for start in starts {
        let authors = graph.out(start, "hasCreator");
        let cities = authors.iter().flat_map(|author| graph.out(*author, "isLocatedIn"));
        for middle in graph.out(start, "replyOf").into_iter().chain(cities) {
            let ends = graph.into(middle, "isLocatedIn").into_iter().chain(graph.into(middle, "likes"));
            let women = ends.filter(|end| *end != start && graph.text(*end, "gender") == Some("female"));
            dates.extend(women.filter_map(|woman| graph.number(woman, "creationDate")));
        }
    }
    dates.sort_unstable();
    dates.into_iter().take(50).map(Json::from).collect()
}

fn q8(graph: &Graph, starts: &BTreeSet<Vertex>) -> Vec<Json> {
    let mut likers: HashMap<Vertex, u64> = HashMap::new();
    for liker in starts.iter().flat_map(|start| graph.into(*start, "likes")) {
        *likers.entry(liker).or_default() += 1;
    }
    let right = |liked: &Vertex| graph.text(*liked, "browserUsed") == Some("Chrome") && !starts.contains(liked);
    let count = |liker: Vertex| graph.out(liker, "likes").into_iter().filter(right).count() as u64;
    vec![json!(likers.into_iter().map(|(liker, times)| times * count(liker)).sum::<u64>())]
}
