//! A question is one graph, however it is written. The questions are the patterns of LSQB.

use super::graph_of;
use crate::graph::canonical::canonical;

/// A question with its spellings: as a walk, backwards, and as a `match()`.
struct Question {
    name: &'static str,
    spellings: &'static [&'static str],
}

const QUESTIONS: &[Question] = &[
    Question {
        name: "q1",
        spellings: &[
            "g.V().hasLabel('Country').in('isPartOf').hasLabel('City').in('isLocatedIn').hasLabel('Person').
               in('hasMember').hasLabel('Forum').out('containerOf').hasLabel('Post').in('replyOf').hasLabel('Comment').
               out('hasTag').hasLabel('Tag').out('hasType').hasLabel('TagClass').count()",
            "g.V().hasLabel('TagClass').in('hasType').hasLabel('Tag').in('hasTag').hasLabel('Comment').
               out('replyOf').hasLabel('Post').in('containerOf').hasLabel('Forum').out('hasMember').hasLabel('Person').
               out('isLocatedIn').hasLabel('City').out('isPartOf').hasLabel('Country').count()",
            "g.V().match(__.as('post').hasLabel('Post').in('replyOf').as('comment'), __.as('comment').
               hasLabel('Comment').out('hasTag').as('tag'), __.as('tag').hasLabel('Tag').out('hasType').
               hasLabel('TagClass').as('class'), __.as('post').in('containerOf').hasLabel('Forum').as('forum'),
               __.as('forum').out('hasMember').as('person'), __.as('person').hasLabel('Person').out('isLocatedIn').
               as('city'), __.as('city').hasLabel('City').out('isPartOf').hasLabel('Country')).count()",
        ],
    },
    Question {
        name: "q2",
        spellings: &[
            "g.V().hasLabel('Person').as('p').in('hasCreator').hasLabel('Comment').out('replyOf').hasLabel('Post').
               out('hasCreator').both('knows').where(eq('p')).count()",
            "g.V().hasLabel('Comment').as('c').out('hasCreator').hasLabel('Person').as('p1').both('knows').as('p2').
               select('c').out('replyOf').hasLabel('Post').out('hasCreator').where(eq('p2')).count()",
            "g.V().match(__.as('p1').hasLabel('Person').both('knows').as('p2'), __.as('c').hasLabel('Comment').
               out('hasCreator').as('p1'), __.as('c').out('replyOf').as('post'), __.as('post').hasLabel('Post').
               out('hasCreator').as('p2')).count()",
        ],
    },
    Question {
        name: "q3",
        spellings: &[
            "g.V().hasLabel('Country').as('country').in('isPartOf').hasLabel('City').in('isLocatedIn').
               hasLabel('Person').as('person1').both('knows').as('person2').out('isLocatedIn').out('isPartOf').
               where(eq('country')).select('person2').both('knows').as('person3').out('isLocatedIn').out('isPartOf').
               where(eq('country')).select('person3').both('knows').where(eq('person1')).count()",
            "g.V().as('person3').both('knows').as('person2').both('knows').hasLabel('Person').as('person1').
               both('knows').where(eq('person3')).out('isLocatedIn').out('isPartOf').hasLabel('Country').as('country').
               select('person2').out('isLocatedIn').out('isPartOf').where(eq('country')).select('person1').
               out('isLocatedIn').hasLabel('City').out('isPartOf').where(eq('country')).count()",
            "g.V().match(__.as('a').both('knows').as('b'), __.as('b').both('knows').as('c'), __.as('a').
               both('knows').as('c'), __.as('a').hasLabel('Person').out('isLocatedIn').as('x'), __.as('x').
               hasLabel('City').out('isPartOf').as('country'), __.as('b').out('isLocatedIn').out('isPartOf').
               as('country'), __.as('country').hasLabel('Country'), __.as('c').out('isLocatedIn').out('isPartOf').
               as('country')).count()",
        ],
    },
    Question {
        name: "q4",
        spellings: &[
            "g.V().hasLabel('Tag').in('hasTag').hasLabel('Post', 'Comment').as('message').out('hasCreator').
               select('message').in('likes').select('message').in('replyOf').count()",
            "g.V().out('replyOf').hasLabel('Post', 'Comment').as('message').in('likes').select('message').
               out('hasCreator').select('message').out('hasTag').hasLabel('Tag').count()",
            "g.V().match(__.as('m').hasLabel('Post', 'Comment').in('likes').as('l'), __.as('m').in('replyOf').
               as('r'), __.as('m').out('hasTag').hasLabel('Tag').as('t'), __.as('m').out('hasCreator').as('c')).count()",
        ],
    },
    Question {
        name: "q5",
        spellings: &[
            "g.V().hasLabel('Tag').as('tag1').in('hasTag').hasLabel('Post', 'Comment').in('replyOf').out('hasTag').
               where(neq('tag1')).count()",
            "g.V().as('tag2').in('hasTag').out('replyOf').hasLabel('Post', 'Comment').out('hasTag').hasLabel('Tag').
               where(neq('tag2')).count()",
            "g.V().match(__.as('reply').out('replyOf').as('m'), __.as('m').hasLabel('Post', 'Comment').out('hasTag').
               as('tag1'), __.as('reply').out('hasTag').as('tag2'), __.as('tag1').hasLabel('Tag'),
               __.where('tag1', neq('tag2'))).count()",
        ],
    },
    Question {
        name: "q6",
        spellings: &[
            "g.V().hasLabel('Person').as('a').both('knows').both('knows').where(neq('a')).out('hasInterest').count()",
            "g.V().in('hasInterest').as('c').both('knows').both('knows').hasLabel('Person').where(neq('c')).count()",
            "g.V().match(__.as('b').both('knows').as('a'), __.as('b').both('knows').as('c'), __.as('a').
               hasLabel('Person'), __.as('c').out('hasInterest').as('tag'), __.where('c', neq('a'))).count()",
        ],
    },
    // The graph ends before the optional hops.
    Question {
        name: "q7",
        spellings: &[
            "g.V().hasLabel('Tag').in('hasTag').hasLabel('Post', 'Comment').as('message').out('hasCreator').
               select('message').optional(__.in('likes')).select('message').optional(__.in('replyOf')).count()",
            "g.V().in('hasCreator').hasLabel('Post', 'Comment').as('message').out('hasTag').hasLabel('Tag').
               select('message').optional(__.in('likes')).select('message').optional(__.in('replyOf')).count()",
        ],
    },
    Question {
        name: "q8",
        spellings: &[
            "g.V().hasLabel('Tag').as('tag1').in('hasTag').hasLabel('Post', 'Comment').in('replyOf').
               not(out('hasTag').where(eq('tag1'))).out('hasTag').where(neq('tag1')).count()",
            "g.V().as('tag2').in('hasTag').as('reply').out('replyOf').hasLabel('Post', 'Comment').out('hasTag').
               hasLabel('Tag').as('tag1').where(neq('tag2')).select('reply').not(out('hasTag').where(eq('tag1'))).
               count()",
            "g.V().match(__.as('reply').out('replyOf').as('m'), __.as('m').hasLabel('Post', 'Comment').out('hasTag').
               as('tag1'), __.as('reply').out('hasTag').as('tag2'), __.as('tag1').hasLabel('Tag'),
               __.not(__.as('reply').out('hasTag').as('tag1')), __.where('tag1', neq('tag2'))).count()",
        ],
    },
    Question {
        name: "q9",
        spellings: &[
            "g.V().hasLabel('Person').as('person1').both('knows').both('knows').where(neq('person1')).
               not(both('knows').where(eq('person1'))).out('hasInterest').count()",
            "g.V().in('hasInterest').as('c').both('knows').both('knows').hasLabel('Person').as('person1').
               where(neq('c')).select('c').not(both('knows').where(eq('person1'))).count()",
            "g.V().match(__.as('b').both('knows').as('person1'), __.as('b').both('knows').as('c'), __.as('person1').
               hasLabel('Person'), __.as('c').out('hasInterest').as('tag'), __.where('c', neq('person1')),
               __.not(__.as('c').both('knows').as('person1'))).count()",
        ],
    },
    // Edges are tested: over each other in both directions, and under several tests.
    Question {
        name: "tested edges",
        spellings: &[
            "g.V().hasLabel('Person').as('a').outE('knows').has('since', gt(2010)).has('weight', 1).inV().as('b').
               bothE('likes').has('rank', lt(3)).otherV().outE('knows').has('since', 7).inV().where(eq('a')).count()",
            "g.V().as('c').union(outE('likes').has('rank', lt(3)).inV(), inE('likes').has('rank', lt(3)).outV()).
               inE('knows').has('weight', 1).has('since', gt(2010)).otherV().hasLabel('Person').
               inE('knows').has('since', 7).outV().where(eq('c')).count()",
            "g.V().match(__.as('b').bothE('likes').has('rank', lt(3)).otherV().as('c'), __.as('a').hasLabel('Person').
               outE('knows').has('weight', 1).has('since', gt(2010)).inV().as('b'), __.as('c').outE('knows').
               has('since', 7).inV().as('a')).count()",
        ],
    },
    Question {
        name: "tested edges, with another value",
        spellings: &["g.V().hasLabel('Person').as('a').outE('knows').has('since', gt(2010)).has('weight', 1).inV().as('b').
               bothE('likes').has('rank', lt(3)).otherV().outE('knows').has('since', 8).inV().where(eq('a')).count()"],
    },
];

#[test]
fn spellings_of_a_question_are_one_graph() {
    let mut forms = Vec::new();
    for Question { name, spellings } in QUESTIONS {
        let all: Vec<String> = spellings
            .iter()
            .map(|script| canonical(&graph_of(script).unwrap_or_else(|| panic!("{name} has a graph")).0))
            .collect();
        for (spelling, form) in all.iter().enumerate() {
            assert_eq!(form, &all[0], "{name}, spelling {spelling}");
        }
        forms.extend(all.into_iter().next());
    }
    // Different questions differ.
    forms.sort();
    forms.dedup();
    assert_eq!(forms.len(), QUESTIONS.len());
}
