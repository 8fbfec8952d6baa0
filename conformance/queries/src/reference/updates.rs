//! LDBC's eight updates on the reference graph. The parameters have the names that LDBC's validation files use.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::{Graph, Vertex};
use crate::published::Operation;
use crate::set::JsonParameters;

/// Performs an update.
///
/// # Panics
///
/// If the update is none of the eight, or names an element that does not exist.
pub fn apply(graph: &mut Graph, update: &Operation) {
    let given = &update.parameters;
    let created = |name: &str| Some((name.to_owned(), number(given, name)));
    match update.query.as_str() {
        "IU1" => person(graph, given),
        "IU2" => like(graph, given, ("Post", "postId")),
        "IU3" => like(graph, given, ("Comment", "commentId")),
        "IU4" => {
            let forum = vertex(
                graph,
                given,
                ("Forum", "forumId"),
                &[("title", "forumTitle"), ("creationDate", "creationDate")],
            );
            link(graph, forum, "hasModerator", ("Person", number(given, "moderatorPersonId")));
            tags(graph, given, forum, "hasTag");
        }
        "IU5" => {
            let forum = graph.find("Forum", number(given, "forumId"));
            let person = graph.find("Person", number(given, "personId"));
            graph.add_edge("hasMember", forum, person, created("joinDate"));
        }
        "IU6" => {
            let post = message(graph, given, ("Post", "postId"));
            let forum = graph.find("Forum", number(given, "forumId"));
            graph.add_edge("containerOf", forum, post, None);
        }
        "IU7" => {
            let comment = message(graph, given, ("Comment", "commentId"));
            // The id of the parent that the comment does not have is negative.
            let parents = [("Post", number(given, "replyToPostId")), ("Comment", number(given, "replyToCommentId"))];
            for parent in parents.into_iter().filter(|(_, id)| *id >= 0) {
                link(graph, comment, "replyOf", parent);
            }
        }
        "IU8" => {
            let [one, other] = ["person1Id", "person2Id"].map(|name| graph.find("Person", number(given, name)));
            graph.add_edge("knows", one, other, created("creationDate"));
        }
        other => panic!("{other} is no update"),
    }
}

fn number(given: &JsonParameters, name: &str) -> i64 {
    given[name].as_i64().unwrap_or_else(|| panic!("{name} is a number"))
}

fn numbers(given: &JsonParameters, name: &str) -> Vec<i64> {
    given[name].as_array().into_iter().flatten().map(|n| n.as_i64().expect("a number")).collect()
}

/// A text, the only entry of a list (`None` if the list is empty), or a number as text.
fn text(value: &Json) -> Option<String> {
    match value {
        Json::String(text) => Some(text.clone()),
        Json::Array(entries) => entries.first().and_then(text),
        other => Some(other.to_string()),
    }
}

/// A new vertex with this label; one parameter is its id, others its properties.
fn vertex(graph: &mut Graph, given: &JsonParameters, (kind, id): (&str, &str), names: &[(&str, &str)]) -> Vertex {
    let property = |(key, name): &(&str, &str)| Some(((*key).to_owned(), text(&given[*name])?));
    let properties: BTreeMap<String, String> = names.iter().filter_map(property).collect();
    graph.add_vertex(kind, number(given, id), properties)
}

fn link(graph: &mut Graph, from: Vertex, label: &str, (kind, id): (&str, i64)) {
    let to = graph.find(kind, id);
    graph.add_edge(label, from, to, None);
}

fn tags(graph: &mut Graph, given: &JsonParameters, of: Vertex, label: &str) {
    for tag in numbers(given, "tagIds") {
        link(graph, of, label, ("Tag", tag));
    }
}

fn like(graph: &mut Graph, given: &JsonParameters, (kind, id): (&str, &str)) {
    let (person, liked) = (graph.find("Person", number(given, "personId")), graph.find(kind, number(given, id)));
    graph.add_edge("likes", person, liked, Some(("creationDate".into(), number(given, "creationDate"))));
}

fn person(graph: &mut Graph, given: &JsonParameters) {
    let names = [
        ("firstName", "personFirstName"),
        ("lastName", "personLastName"),
        ("gender", "gender"),
        ("birthday", "birthday"),
        ("creationDate", "creationDate"),
        ("locationIP", "locationIp"),
        ("browserUsed", "browserUsed"),
    ];
    let person = vertex(graph, given, ("Person", "personId"), &names);
    link(graph, person, "isLocatedIn", ("Place", number(given, "cityId")));
    tags(graph, given, person, "hasInterest");
    for (list, label, key) in [("studyAt", "studyAt", "classYear"), ("workAt", "workAt", "workFrom")] {
        for entry in given[list].as_array().into_iter().flatten() {
            let organisation = graph.find("Organisation", entry[0].as_i64().expect("an id"));
            let year = entry[1].as_i64().expect("a year");
            graph.add_edge(label, person, organisation, Some((key.to_owned(), year)));
        }
    }
}

/// A new post or comment with its author, country and tags.
fn message(graph: &mut Graph, given: &JsonParameters, named: (&str, &str)) -> Vertex {
    let names = ["creationDate", "browserUsed", "length", "content", "imageFile", "language"].map(|name| (name, name));
    let names: Vec<_> = names.into_iter().chain([("locationIP", "locationIp")]).collect();
    let there: Vec<_> = names.into_iter().filter(|(_, name)| given.contains_key(*name)).collect();
    let message = vertex(graph, given, named, &there);
    link(graph, message, "hasCreator", ("Person", number(given, "authorPersonId")));
    link(graph, message, "isLocatedIn", ("Place", number(given, "countryId")));
    tags(graph, given, message, "hasTag");
    message
}
