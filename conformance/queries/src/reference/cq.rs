//! Banyan's CQ1 to CQ6. Each function returns all persons that qualify; the comparison applies the limit.

use std::collections::BTreeSet;

use super::{Graph, Vertex};

/// The friends of all persons of a level.
fn next_level(graph: &Graph, level: &BTreeSet<Vertex>) -> BTreeSet<Vertex> {
    level.iter().flat_map(|person| graph.friends(*person)).collect()
}

/// The persons at the end of a walk of exactly this many friendships, if every person on the walk passes `keep`.
fn walk(graph: &Graph, start: Vertex, steps: usize, keep: &dyn Fn(&Vertex) -> bool) -> BTreeSet<Vertex> {
    (0..steps).fold(BTreeSet::from([start]), |level, _| next_level(graph, &level).into_iter().filter(keep).collect())
}

/// The persons at the end of a walk of 1 to `steps` friendships.
fn within(graph: &Graph, start: Vertex, steps: usize) -> BTreeSet<Vertex> {
    let (mut all, mut level) = (BTreeSet::new(), BTreeSet::from([start]));
    for _ in 0..steps {
        level = next_level(graph, &level);
        all.extend(&level);
    }
    all
}

/// Returns true if a walk of 1 to `steps` friendships ends at a person for whom `found` is true.
fn reaches(graph: &Graph, start: Vertex, steps: usize, found: &dyn Fn(&Vertex) -> bool) -> bool {
    let mut level = BTreeSet::from([start]);
    (0..steps).any(|_| {
        level = next_level(graph, &level);
        level.iter().any(found)
    })
}

fn companies(graph: &Graph, person: Vertex) -> BTreeSet<Vertex> {
    graph.out(person, "workAt").into_iter().collect()
}

fn colleagues(graph: &Graph, one: Vertex, other: Vertex) -> bool {
    !companies(graph, one).is_disjoint(&companies(graph, other))
}

/// Returns true if the person wrote a message with a tag of the class Country.
fn writes_of_countries(graph: &Graph, person: Vertex) -> bool {
    let tags = graph.into(person, "hasCreator").into_iter().flat_map(|message| graph.out(message, "hasTag"));
    let mut classes = tags.flat_map(|tag| graph.out(tag, "hasType"));
    classes.any(|class| graph.text(class, "name").is_some_and(|name| name.contains("Country")))
}

/// CQ1: persons exactly five steps away.
pub fn cq1(graph: &Graph, start: Vertex) -> BTreeSet<Vertex> {
    walk(graph, start, 5, &|_| true)
}

/// CQ2: persons up to five steps away who work at a company of the start person.
pub fn cq2(graph: &Graph, start: Vertex) -> BTreeSet<Vertex> {
    within(graph, start, 5).into_iter().filter(|person| colleagues(graph, start, *person)).collect()
}

/// CQ3: friends, and friends of friends, who write about countries.
pub fn cq3(graph: &Graph, start: Vertex) -> BTreeSet<Vertex> {
    within(graph, start, 2).into_iter().filter(|person| writes_of_countries(graph, *person)).collect()
}

/// CQ4: friends from whom a colleague of the start person is at most four steps away.
pub fn cq4(graph: &Graph, start: Vertex) -> BTreeSet<Vertex> {
    let found = |person: &Vertex| colleagues(graph, start, *person);
    graph.friends(start).into_iter().filter(|friend| reaches(graph, *friend, 4, &found)).collect()
}

/// CQ5: persons of CQ2 who write about countries.
pub fn cq5(graph: &Graph, start: Vertex) -> BTreeSet<Vertex> {
    cq2(graph, start).into_iter().filter(|person| writes_of_countries(graph, *person)).collect()
}

/// CQ6: persons exactly five steps away, if every person on the walk writes about countries.
pub fn cq6(graph: &Graph, start: Vertex) -> BTreeSet<Vertex> {
    let writers: BTreeSet<Vertex> =
        graph.of_kind("Person").filter(|person| writes_of_countries(graph, *person)).collect();
    walk(graph, start, 5, &|person| writers.contains(person))
}
