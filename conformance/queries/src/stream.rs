//! LDBC's update streams: the eight updates as the generator writes them.
//!
//! A line is `due|depends|kind|…`: the time at which the update is due and the time on which it depends, both in
//! milliseconds; the number of the update, 1 to 8; and its parameters. Lists are separated by `;`, pairs in them by
//! `,`.

use std::path::Path;

use serde_json::Value as Json;

use crate::published::Operation;

/// The type of a field.
#[derive(Clone, Copy)]
enum Field {
    Integer,
    Text,
    /// An optional text: a list of none or one.
    Optional,
    Texts,
    Integers,
    Pairs,
}

use Field::{Integer, Integers, Optional, Pairs, Text, Texts};

/// The fields of the eight updates, in the order of a line.
const UPDATES: [&[(&str, Field)]; 8] = [
    &[
        ("personId", Integer),
        ("personFirstName", Text),
        ("personLastName", Text),
        ("gender", Text),
        ("birthday", Integer),
        ("creationDate", Integer),
        ("locationIp", Text),
        ("browserUsed", Text),
        ("cityId", Integer),
        ("languages", Texts),
        ("emails", Texts),
        ("tagIds", Integers),
        ("studyAt", Pairs),
        ("workAt", Pairs),
    ],
    &[("personId", Integer), ("postId", Integer), ("creationDate", Integer)],
    &[("personId", Integer), ("commentId", Integer), ("creationDate", Integer)],
    &[
        ("forumId", Integer),
        ("forumTitle", Text),
        ("creationDate", Integer),
        ("moderatorPersonId", Integer),
        ("tagIds", Integers),
    ],
    // In the streams, the forum comes first.
    &[("forumId", Integer), ("personId", Integer), ("joinDate", Integer)],
    &[
        ("postId", Integer),
        ("imageFile", Optional),
        ("creationDate", Integer),
        ("locationIp", Text),
        ("browserUsed", Text),
        ("language", Optional),
        ("content", Optional),
        ("length", Integer),
        ("authorPersonId", Integer),
        ("forumId", Integer),
        ("countryId", Integer),
        ("tagIds", Integers),
    ],
    &[
        ("commentId", Integer),
        ("creationDate", Integer),
        ("locationIp", Text),
        ("browserUsed", Text),
        ("content", Text),
        ("length", Integer),
        ("authorPersonId", Integer),
        ("countryId", Integer),
        ("replyToPostId", Integer),
        ("replyToCommentId", Integer),
        ("tagIds", Integers),
    ],
    &[("person1Id", Integer), ("person2Id", Integer), ("creationDate", Integer)],
];

/// The updates of a data set's streams, in the order of their due times.
///
/// # Panics
///
/// If a file is missing or is no update stream.
pub fn updates(folder: &Path) -> Vec<Operation> {
    let mut due: Vec<(i64, Operation)> = Vec::new();
    for stream in ["person", "forum"] {
        let path = folder.join(format!("update_streams/updateStream_0_0_{stream}.csv"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        due.extend(text.lines().map(operation));
    }
    due.sort_by_key(|(at, _)| *at);
    due.into_iter().map(|(_, operation)| operation).collect()
}

fn operation(line: &str) -> (i64, Operation) {
    let fields: Vec<&str> = line.split('|').collect();
    let integer = |at: usize| fields[at].parse::<i64>().unwrap_or_else(|_| panic!("field {at} is an integer: {line}"));
    let kind = usize::try_from(integer(2)).expect("a kind is 1 to 8");
    let names = UPDATES[kind - 1];
    assert_eq!(names.len() + 3, fields.len(), "{line}");
    let parameters =
        names.iter().zip(&fields[3..]).map(|((name, field), text)| ((*name).to_owned(), value(*field, text)));
    (integer(0), Operation { query: format!("IU{kind}"), parameters: parameters.collect(), answer: None })
}

fn value(field: Field, text: &str) -> Json {
    let integer = |text: &str| Json::from(text.parse::<i64>().unwrap_or_else(|_| panic!("{text} is no integer")));
    let entries = text.split(';').filter(|entry| !entry.is_empty());
    match field {
        Integer => integer(text),
        Text => text.into(),
        Optional => [text].into_iter().filter(|text| !text.is_empty()).collect(),
        Texts => entries.collect(),
        Integers => entries.map(integer).collect(),
        Pairs => entries.map(|pair| pair.split(',').map(integer).collect::<Json>()).collect(),
    }
}
