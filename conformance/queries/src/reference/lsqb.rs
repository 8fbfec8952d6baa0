//! Reference counts of LSQB's nine patterns. `sets/lsqb.toml` has each pattern in words.
//!
//! A pattern is counted at one of its vertices: the numbers of ways in which its parts continue from there are
//! multiplied or added.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use super::{Graph, Vertex};

/// The count of a pattern, whichever form of it the query has; `None` if no pattern has this name.
pub fn answer(graph: &Graph, name: &str) -> Option<Vec<Json>> {
    let count: usize = match name.split(' ').next()? {
        "q1" => q1(graph),
        "q2" => q2(graph),
        "q3" => q3(graph),
        "q4" => messages(graph)
            .map(|message| {
                tags(graph, message) * creators(graph, message) * likes(graph, message) * replies(graph, message)
            })
            .sum(),
        "q5" => tag_pairs(graph, &|_, _| true),
        "q6" => interests(graph, &|_, _| true),
        "q7" => messages(graph)
            .map(|message| {
                tags(graph, message)
                    * creators(graph, message)
                    * likes(graph, message).max(1)
                    * replies(graph, message).max(1)
            })
            .sum(),
        "q8" => tag_pairs(graph, &|tag, of_reply| !of_reply.contains(&tag)),
        "q9" => {
            let friends = friends_of_all(graph);
            interests(graph, &|person, other| !friends[person].contains(&other))
        }
        _ => return None,
    };
    Some(vec![json!(count)])
}

fn messages(graph: &Graph) -> impl Iterator<Item = Vertex> + '_ {
    graph.of_kind("Post").chain(graph.of_kind("Comment"))
}

fn tags(graph: &Graph, message: Vertex) -> usize {
    graph.out_edges(message, "hasTag").count()
}

fn creators(graph: &Graph, message: Vertex) -> usize {
    graph.out_edges(message, "hasCreator").count()
}

fn likes(graph: &Graph, message: Vertex) -> usize {
    graph.in_edges(message, "likes").count()
}

fn replies(graph: &Graph, message: Vertex) -> usize {
    graph.in_edges(message, "replyOf").count()
}

/// The country of a person, through a city.
fn country(graph: &Graph, person: Vertex) -> Option<Vertex> {
    let city = graph.out(person, "isLocatedIn").into_iter().next()?;
    graph.out(city, "isPartOf").into_iter().next()
}

/// The friends of every vertex; only persons have any.
fn friends_of_all(graph: &Graph) -> Vec<BTreeSet<Vertex>> {
    (0..graph.vertices.len()).map(|vertex| graph.friends(vertex).into_iter().collect()).collect()
}

fn q1(graph: &Graph) -> usize {
    let of_forum = |forum: Vertex| {
        let members = graph.out(forum, "hasMember");
        let members = members.into_iter().filter(|member| country(graph, *member).is_some()).count();
        let comments = graph.out(forum, "containerOf").into_iter().flat_map(|post| graph.into(post, "replyOf"));
        let classes = comments.flat_map(|comment| graph.out(comment, "hasTag"));
        members * classes.map(|tag| graph.out_edges(tag, "hasType").count()).sum::<usize>()
    };
    graph.of_kind("Forum").map(of_forum).sum()
}

fn q2(graph: &Graph) -> usize {
    let friends = friends_of_all(graph);
    let of_comment = |comment: Vertex| {
        let posts = graph.out(comment, "replyOf").into_iter().filter(|parent| graph.is(*parent, "Post"));
        let authors: Vec<Vertex> = posts.flat_map(|post| graph.out(post, "hasCreator")).collect();
        let own = graph.out(comment, "hasCreator");
        own.iter()
            .map(|person| authors.iter().filter(|author| friends[*person].contains(author)).count())
            .sum::<usize>()
    };
    graph.of_kind("Comment").map(of_comment).sum()
}

fn q3(graph: &Graph) -> usize {
    let friends = friends_of_all(graph);
    let countries: Vec<Option<Vertex>> = (0..graph.vertices.len()).map(|vertex| country(graph, vertex)).collect();
    let near = |one: Vertex, other: &Vertex| countries[one].is_some() && countries[one] == countries[*other];
    let of_person = |one: Vertex| {
        let near_friends: Vec<Vertex> = friends[one].iter().copied().filter(|other| near(one, other)).collect();
        near_friends
            .iter()
            .map(|two| near_friends.iter().filter(|three| friends[*two].contains(three)).count())
            .sum::<usize>()
    };
    graph.of_kind("Person").map(of_person).sum()
}

/// The pairs of different tags on a message and on a reply, if `counts` is true for the tag of the message and all tags
/// of the reply.
fn tag_pairs(graph: &Graph, counts: &dyn Fn(Vertex, &[Vertex]) -> bool) -> usize {
    let of_message = |message: Vertex| {
        let tags = graph.out(message, "hasTag");
        let of_reply = |reply: Vertex| {
            let others = graph.out(reply, "hasTag");
            let counted = tags.iter().filter(|tag| counts(**tag, &others));
            counted.map(|tag| others.iter().filter(|other| *other != tag).count()).sum::<usize>()
        };
        graph.into(message, "replyOf").into_iter().map(of_reply).sum::<usize>()
    };
    messages(graph).map(of_message).sum()
}

/// The interests at the end of walks of two friendships that do not return to the person, if `counts` is true for the
/// ends of the walk.
fn interests(graph: &Graph, counts: &dyn Fn(Vertex, Vertex) -> bool) -> usize {
    let interest: Vec<usize> =
        (0..graph.vertices.len()).map(|vertex| graph.out_edges(vertex, "hasInterest").count()).collect();
    let of_person = |person: Vertex| {
        let ends = graph.friends(person).into_iter().flat_map(|friend| graph.friends(friend));
        ends.filter(|end| *end != person && counts(person, *end)).map(|end| interest[end]).sum::<usize>()
    };
    graph.of_kind("Person").map(of_person).sum()
}
