//! G-Tran's templates IS1 to IS4 and IC1 to IC4.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use super::answers::Given;
use super::{Graph, Vertex};

/// A property as key and value, the form of the results.
fn property(graph: &Graph, vertex: Vertex, key: &str) -> Option<Json> {
    let number = matches!(key, "creationDate" | "birthday" | "length");
    let text = graph.text(vertex, key)?;
    Some(if number { json!([key, graph.number(vertex, key)]) } else { json!([key, text]) })
}

/// The name of a place or a tag.
fn name(graph: &Graph, vertex: Vertex) -> &str {
    graph.text(vertex, "name").expect("places and tags have names")
}

/// A person's profile.
pub fn is1(graph: &Graph, given: &Given<'_>) -> Vec<Json> {
    let person = given.person(graph);
    let keys = ["firstName", "lastName", "birthday", "locationIP", "browserUsed"];
    let mut rows: Vec<Json> = keys.iter().filter_map(|key| property(graph, person, key)).collect();
    rows.extend(graph.out(person, "isLocatedIn").iter().filter_map(|city| property(graph, *city, "name")));
    rows
}

/// A person's newest messages.
pub fn is2(graph: &Graph, given: &Given<'_>) -> Vec<Json> {
    let mut messages = graph.into(given.person(graph), "hasCreator");
    messages.sort_by_key(|message| -graph.number(*message, "creationDate").expect("messages have dates"));
    messages.truncate(10);
    let mut rows = Vec::new();
    for message in messages {
        let parents = if graph.is(message, "Post") { vec![message] } else { graph.out(message, "replyOf") };
        for author in parents.iter().flat_map(|parent| graph.out(*parent, "hasCreator")) {
            rows.push(json!({"msg": graph.id(message), "author": graph.text(author, "firstName")}));
        }
    }
    rows
}

/// A person's friends.
pub fn is3(graph: &Graph, given: &Given<'_>) -> Vec<Json> {
    let person = given.person(graph);
    let since = |edge: &super::Edge| edge.property.as_ref().map(|(_, date)| *date);
    let out = graph
        .out_edges(person, "knows")
        .map(|edge| json!({"friend1": graph.id(edge.to), "creationDate1": since(edge)}));
    let into = graph
        .in_edges(person, "knows")
        .map(|edge| json!({"friend2": graph.id(edge.from), "creationDate2": since(edge)}));
    out.chain(into).collect()
}

/// The text or image of a message, and its date. A post and a comment may have the same id.
pub fn is4(graph: &Graph, given: &Given<'_>) -> Vec<Json> {
    let id = given.number("message");
    let of = |kind, key| {
        graph.get(kind, id).into_iter().flat_map(move |message| {
            [key, "creationDate"].into_iter().filter_map(move |key| property(graph, message, key))
        })
    };
    of("Comment", "content").chain(of("Post", "imageFile")).collect()
}

/// Persons with a first name at the end of walks of three friendships.
pub fn ic1(graph: &Graph, given: &Given<'_>) -> Vec<Json> {
    let (a, wanted) = (given.person(graph), given.text("name"));
    let mut walks: BTreeMap<Vertex, u64> = BTreeMap::new();
    for b in graph.friends(a) {
        for c in graph.friends(b).into_iter().filter(|c| *c != a) {
            for d in graph.friends(c).into_iter().filter(|d| *d != a) {
                for person in [b, c, d] {
                    *walks.entry(person).or_default() += 1;
                }
            }
        }
    }
    let mut rows: BTreeMap<(i64, &str), u64> = BTreeMap::new();
    for (person, count) in walks {
        if graph.text(person, "firstName") != Some(wanted) {
            continue;
        }
        let located = |places: Vec<Vertex>| places.into_iter().flat_map(|at| graph.out(at, "isLocatedIn"));
        let cities = located(vec![person]).chain(located(graph.out(person, "studyAt")));
        for place in cities.chain(located(graph.out(person, "workAt"))) {
            *rows.entry((graph.id(person), name(graph, place))).or_default() += count;
        }
    }
    rows.into_iter().map(|((person, place), walks)| json!({"person": person, "place": place, "walks": walks})).collect()
}

/// The properties of the newest message of all friends, up to a date.
pub fn ic2(graph: &Graph, given: &Given<'_>) -> Vec<Json> {
    let friends = graph.friends(given.person(graph));
    let messages = friends.iter().flat_map(|friend| graph.into(*friend, "hasCreator"));
    let date = |message: &Vertex| graph.number(*message, "creationDate").expect("messages have dates");
    let newest = messages.filter(|message| date(message) <= given.number("date")).max_by_key(date);
    let Some(newest) = newest else { return Vec::new() };
    let keys = graph.vertices[newest].properties.keys();
    keys.filter_map(|key| property(graph, newest, key)).chain([json!(["id", graph.id(newest)])]).collect()
}

/// Messages from two countries: counts for friends and their friends who live in neither of them.
pub fn ic3(graph: &Graph, given: &Given<'_>) -> Vec<Json> {
    let start = given.person(graph);
    let countries = [given.text("country1"), given.text("country2")];
    let named = |place: &Vertex| countries.contains(&name(graph, *place));
    let friends = graph.friends(start);
    let further = friends.iter().flat_map(|friend| graph.friends(*friend));
    let persons: BTreeSet<Vertex> = friends.iter().copied().chain(further).filter(|person| *person != start).collect();
    let mut rows = Vec::new();
    for person in persons {
        let cities = graph.out(person, "isLocatedIn");
        if cities.iter().flat_map(|city| graph.out(*city, "isPartOf")).any(|country| named(&country)) {
            continue;
        }
        let messages = graph.into(person, "hasCreator").into_iter().filter(|message| {
            graph.created_between(*message, given.number("begin"), given.number("end"))
                && graph.out(*message, "isLocatedIn").iter().any(named)
        });
        let count = messages.count();
        if count > 0 {
            rows.push(json!({"person": graph.id(person), "count": count}));
        }
    }
    rows
}

/// Tags on friends' posts of a period that no post had up to a date.
pub fn ic4(graph: &Graph, given: &Given<'_>) -> Vec<Json> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for friend in graph.friends(given.person(graph)) {
        for post in graph.into(friend, "hasCreator") {
            if !graph.is(post, "Post") || !graph.created_between(post, given.number("begin"), given.number("end")) {
                continue;
            }
            for tag in graph.out(post, "hasTag") {
                let old = |other: &Vertex| {
                    graph.is(*other, "Post") && graph.created_between(*other, i64::MIN, given.number("date") + 1)
                };
                if !graph.into(tag, "hasTag").iter().any(old) {
                    *counts.entry(name(graph, tag)).or_default() += 1;
                }
            }
        }
    }
    counts.into_iter().map(|(tag, count)| json!({"tag": tag, "count": count})).collect()
}
