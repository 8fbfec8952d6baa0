//! LDBC's validation files: operations with their answers.
//!
//! A line is `{parameters}|answer`, both in JSON. The names of the parameters identify the query.

use std::path::Path;

use serde_json::Value as Json;

use crate::compare::Comparison;
use crate::set::{JsonParameters, Query};

/// An operation and, for a read, its published answer.
#[derive(Clone, Debug)]
pub struct Operation {
    /// The name of the query: `IC1`, `IS1`, `IU1` and so on.
    pub query: String,
    /// The parameters.
    pub parameters: JsonParameters,
    /// The rows of a read; `None` for an update.
    pub answer: Option<Vec<Json>>,
}

/// The 224 complex reads of scale factor 0.1, with answers for the data as loaded.
///
/// # Panics
///
/// If the file cannot be read or is no validation file.
pub fn complex_reads(folder: &Path) -> Vec<Operation> {
    read(&folder.join("validation/validation_params_sf0.1_complex_read_only.csv"))
}

/// The 100 operations of scale factor 0.1, to be run in order: complex and short reads, with updates between them.
///
/// # Panics
///
/// If the file cannot be read or is no validation file.
pub fn mixed_operations(folder: &Path) -> Vec<Operation> {
    read(&folder.join("validation/validation_params-sf0.1-100.csv"))
}

/// How rows are compared with a published answer.
pub fn comparison(query: &Query) -> Comparison {
    query.ties.clone().map_or(Comparison::Ordered, Comparison::OrderedBy)
}

/// The operations of a file.
fn read(path: &Path) -> Vec<Operation> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(operation).collect()
}

fn operation(line: &str) -> Operation {
    // Texts in either part may contain a '|', so the first part ends where its JSON ends.
    let mut parts = serde_json::Deserializer::from_str(line).into_iter::<Json>();
    let parameters = parts.next().expect("parameters").expect("parameters are JSON");
    let answer = serde_json::from_str(&line[parts.byte_offset() + 1..]).expect("an answer is JSON");
    let Json::Object(parameters) = parameters else { panic!("parameters are an object: {line}") };
    let parameters: JsonParameters = parameters.into_iter().collect();
    let query = query_of(&parameters);
    let answer = (!query.starts_with("IU")).then(|| match answer {
        Json::Array(rows) => rows,
        single => vec![single],
    });
    Operation { query, parameters, answer }
}

/// The query whose parameters have these names.
fn query_of(parameters: &JsonParameters) -> String {
    const SHORT: [(&str, &str); 4] = [
        ("messageIdContent", "IS4"),
        ("messageIdCreator", "IS5"),
        ("messageForumId", "IS6"),
        ("messageRepliesId", "IS7"),
    ];
    const UPDATES: [(&str, &str); 5] =
        [("replyToPostId", "IU7"), ("imageFile", "IU6"), ("joinDate", "IU5"), ("commentId", "IU3"), ("postId", "IU2")];
    let named = |table: &[(&str, &str)]| {
        table.iter().find(|(name, _)| parameters.contains_key(*name)).map(|(_, query)| (*query).to_owned())
    };
    let numbered = parameters.keys().find_map(|name| {
        let (kind, number) = name
            .split_once("IdQ")
            .map(|(_, rest)| ("IC", rest))
            .or_else(|| name.split_once("IdSQ").map(|(_, rest)| ("IS", rest)))?;
        let digits: String = number.chars().take_while(char::is_ascii_digit).collect();
        Some(format!("{kind}{digits}"))
    });
    numbered.or_else(|| named(&SHORT)).or_else(|| named(&UPDATES)).expect("the parameters of a known operation")
}
