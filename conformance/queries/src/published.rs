//! LDBC's published answers.
//!
//! - Validation files have operations with their answers. A line is `{parameters}|answer`, both in JSON. The names of
//!   the parameters identify the query.
//! - LSQB publishes the counts of its nine patterns at each scale.

use std::collections::BTreeMap;
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
/// # Errors
///
/// If the file cannot be read or is no validation file.
pub fn complex_reads(folder: &Path) -> Result<Vec<Operation>, String> {
    read(&folder.join("validation/validation_params_sf0.1_complex_read_only.csv"))
}

/// The 100 operations of scale factor 0.1, to be run in order: complex and short reads, with updates between them.
///
/// # Errors
///
/// If the file cannot be read or is no validation file.
pub fn mixed_operations(folder: &Path) -> Result<Vec<Operation>, String> {
    read(&folder.join("validation/validation_params-sf0.1-100.csv"))
}

/// How rows are compared with a published answer.
pub fn comparison(query: &Query) -> Comparison {
    query.ties.clone().map_or(Comparison::Ordered, Comparison::OrderedBy)
}

/// LSQB's published counts at a scale (`0.1`, `example`), by the name of the pattern: `q1` and so on. `folder` is the
/// data set `lsqb_sf0.1`, whose file has the counts of every scale.
///
/// # Errors
///
/// If the file cannot be read or has no nine counts of this scale.
pub fn lsqb_counts(folder: &Path, scale: &str) -> Result<BTreeMap<String, i64>, String> {
    let path = folder.join("expected/expected-output.csv");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    // A line has system, variant, scale, query, seconds and count.
    let rows = text.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let counts: BTreeMap<String, i64> = rows
        .filter(|row| row.len() == 6 && row[2] == scale)
        .filter_map(|row| Some((format!("q{}", row[3]), row[5].parse().ok()?)))
        .collect();
    if counts.len() == 9 {
        return Ok(counts);
    }
    Err(format!("{} has {} counts of scale {scale} instead of nine", path.display(), counts.len()))
}

/// The operations of a file.
fn read(path: &Path) -> Result<Vec<Operation>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let of_line =
        |(at, line)| operation(line).map_err(|problem| format!("{}, line {}: {problem}", path.display(), at + 1));
    text.lines().enumerate().map(of_line).collect()
}

fn operation(line: &str) -> Result<Operation, String> {
    // Texts in either part may contain a '|', so the first part ends where its JSON ends.
    let mut parts = serde_json::Deserializer::from_str(line).into_iter::<Json>();
    let parameters = parts.next().ok_or("no parameters")?.map_err(|error| format!("the parameters: {error}"))?;
    let answer = line[parts.byte_offset()..].strip_prefix('|').ok_or("no answer")?;
    let answer = serde_json::from_str(answer).map_err(|error| format!("the answer: {error}"))?;
    let Json::Object(parameters) = parameters else { return Err("parameters that are no object".to_owned()) };
    let parameters: JsonParameters = parameters.into_iter().collect();
    let query = query_of(&parameters).ok_or("parameters of no known operation")?;
    let answer = (!query.starts_with("IU")).then(|| match answer {
        Json::Array(rows) => rows,
        single => vec![single],
    });
    Ok(Operation { query, parameters, answer })
}

/// The query whose parameters have these names.
fn query_of(parameters: &JsonParameters) -> Option<String> {
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
    numbered.or_else(|| named(&SHORT)).or_else(|| named(&UPDATES))
}
