//! Reference answers of the set `patterns`: walks of k edges, walks between two persons, and subgraphs of friendships.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Value as Json, json};

use super::answers::Given;
use super::{Graph, Vertex};

/// The answer to a query; `None` if no query has this name.
pub fn answer(graph: &Graph, name: &str, given: &Given<'_>) -> Option<Vec<Json>> {
    if let Some((hops, rest)) = name.split_once("-hop") {
        let ends = walks(graph, given.person(graph), hops.parse().expect("a number of hops"));
        return Some(vec![if rest.is_empty() { json!(ends.values().sum::<u64>()) } else { json!(ends.len()) }]);
    }
    if name == "interests between" {
        let (person, other) = (given.person(graph), graph.find("Person", given.number("other")));
        let interests = |of: &Vertex| graph.out(*of, "hasInterest").into_iter().collect::<BTreeSet<Vertex>>();
        let known = |of: Vertex| graph.friends(of).into_iter().collect::<BTreeSet<Vertex>>();
        let of_other: Vec<BTreeSet<Vertex>> = known(other).iter().map(interests).collect();
        let share = |friend: &Vertex| of_other.iter().filter(|others| !interests(friend).is_disjoint(others)).count();
        return Some(vec![json!(known(person).iter().map(share).sum::<usize>())]);
    }
    if name.starts_with("tags between") {
        let (person, other) = (given.person(graph), graph.find("Person", given.number("other")));
        let tags = |person: Vertex| {
            let messages = graph.into(person, "hasCreator").into_iter();
            messages.flat_map(|message| graph.out(message, "hasTag")).collect::<Vec<Vertex>>()
        };
        let of_other = tags(other);
        if name == "tags between" {
            let same = |tag: &Vertex| of_other.iter().filter(|other| *other == tag).count();
            return Some(vec![json!(tags(person).iter().map(same).sum::<usize>())]);
        }
        let of_friends: BTreeSet<Vertex> = graph.friends(person).into_iter().flat_map(tags).collect();
        let shared: BTreeSet<Vertex> = of_other.into_iter().filter(|tag| of_friends.contains(tag)).collect();
        return Some(shared.into_iter().map(|tag| json!(graph.text(tag, "name"))).collect());
    }
    let friends: Vec<BTreeSet<Vertex>> =
        (0..graph.vertices.len()).map(|vertex| graph.friends(vertex).into_iter().collect()).collect();
    let persons: Vec<Vertex> = graph.of_kind("Person").collect();
    let pairs = persons.iter().flat_map(|a| persons.iter().filter(move |b| a < *b).map(move |b| (*a, *b)));
    let common = |a: Vertex, b: Vertex| friends[a].intersection(&friends[b]).copied().collect::<Vec<_>>();
    let two_of = |n: usize| n * n.saturating_sub(1) / 2;
    let count: usize = match name {
        "triangle" => {
            pairs.filter(|(a, b)| friends[*a].contains(b)).map(|(a, b)| common(a, b).len()).sum::<usize>() / 3
        }
        // A ring has two diagonals, and this counts it once for each.
        "four-cycle" => pairs.map(|(a, c)| two_of(common(a, c).len())).sum::<usize>() / 2,
        "chorded four-cycle" => {
            pairs.filter(|(a, c)| friends[*a].contains(c)).map(|(a, c)| two_of(common(a, c).len())).sum()
        }
        // For each of a clique's six pairs of friends, the other two persons are common friends.
        "four-clique" => {
            let known = pairs.filter(|(a, b)| friends[*a].contains(b)).map(|(a, b)| common(a, b));
            let linked = |among: &[Vertex]| {
                among.iter().map(|c| among.iter().filter(|d| friends[*c].contains(d)).count()).sum::<usize>() / 2
            };
            known.map(|among| linked(&among)).sum::<usize>() / 6
        }
        _ => return None,
    };
    Some(vec![json!(count)])
}

/// The ends of all walks of this many edges from a vertex, with the number of walks that end there.
fn walks(graph: &Graph, start: Vertex, hops: usize) -> HashMap<Vertex, u64> {
    let mut ends: HashMap<Vertex, u64> = HashMap::from([(start, 1)]);
    for _ in 0..hops {
        let mut next: HashMap<Vertex, u64> = HashMap::new();
        for edge in &graph.edges {
            for (one, other) in [(edge.from, edge.to), (edge.to, edge.from)] {
                if let Some(count) = ends.get(&one) {
                    *next.entry(other).or_default() += count;
                }
            }
        }
        ends = next;
    }
    ends
}
