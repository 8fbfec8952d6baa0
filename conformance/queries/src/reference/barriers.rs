//! Reference answers of groups, sorts and sums; `sets/barriers.toml` has each question in words.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use super::{Graph, Vertex};

/// The answer to a query; `None` if no query has this name.
pub fn answer(graph: &Graph, name: &str) -> Option<Vec<Json>> {
    let messages = || graph.of_kind("Post").chain(graph.of_kind("Comment"));
    let length = |message: Vertex| graph.number(message, "length").unwrap_or(0);
    let date = |message: Vertex| graph.number(message, "creationDate").unwrap_or(0);
    let ids = |sorted: &[Vertex]| sorted.iter().map(|message| json!(graph.id(*message))).collect();
    Some(match name {
        "groupCount" => {
            let mut counts: BTreeMap<i64, u64> = BTreeMap::new();
            messages().for_each(|message| *counts.entry(length(message)).or_default() += 1);
            counts.into_iter().map(|(length, count)| json!({"length": length, "count": count})).collect()
        }
        "group" => {
            let mut lengths: BTreeMap<i64, i64> = BTreeMap::new();
            for message in messages() {
                for country in graph.out(message, "isLocatedIn") {
                    *lengths.entry(graph.id(country)).or_default() += length(message);
                }
            }
            lengths.into_iter().map(|(country, length)| json!({"country": country, "length": length})).collect()
        }
        "order" => {
            let mut sorted: Vec<Vertex> = messages().collect();
            sorted.sort_by_key(|message| (date(*message), graph.id(*message)));
            ids(&sorted[sorted.len().saturating_sub(10)..])
        }
        "order and limit" => {
            let mut sorted: Vec<Vertex> = messages().collect();
            sorted.sort_by_key(|message| (Reverse(length(*message)), Reverse(date(*message)), graph.id(*message)));
            sorted.truncate(1000);
            ids(&sorted)
        }
        "dedup" => {
            let is_tagged = |message: &Vertex| !graph.out(*message, "hasTag").is_empty();
            let authors = messages().filter(is_tagged).flat_map(|message| graph.out(message, "hasCreator"));
            vec![json!(authors.collect::<BTreeSet<Vertex>>().len())]
        }
        "sum" => {
            let is_answer = |message: &Vertex| graph.out(*message, "replyOf").iter().any(|to| graph.is(*to, "Comment"));
            vec![json!(graph.of_kind("Comment").filter(is_answer).map(length).sum::<i64>())]
        }
        _ => return None,
    })
}
