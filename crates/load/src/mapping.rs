//! Mapping files: the meaning of the columns of foreign tables, in TOML.
//!
//! A mapping is a list of rules. The first rule whose pattern matches the name of a file says how to read that file. A
//! key that the rule does not set comes from `[defaults]`, then from the header of the file (`plan::header`).
//!
//! ```toml
//! [defaults]
//! delimiter = "|"
//! quote = ""                                   # no field is quoted
//!
//! [[file]]
//! match = "person_*.csv"                       # * and ? ; with a / the folders take part
//! label = "Person"
//! id = "id"
//! id_space = "Person"                          # 933 may name a person and a forum
//! user_id = "prefix"                           # users know it as "Person:933"
//! properties.birthday = { type = "date", format = "epoch_millis" }
//! properties.email = { type = "string[]", separator = ";" }
//! properties.internal = { skip = true }
//! constants = { source = "import" }
//! foreign = [{ column = "place", label = "isLocatedIn", space = "Place" }]
//!
//! [[file]]
//! match = "person_knows_person.csv"
//! label = "knows"
//! source = "Person1Id"
//! source_space = "Person"
//! target = "Person2Id"
//! target_space = "Person"
//! ```
//!
//! This module has the syntax, and chooses the rule for a file. `plan::draft` applies the rule to a header.

use std::collections::BTreeMap;
use std::path::Path;

use crate::input::unpacked_name;
use mangrove_graph::{Error, ErrorKind, Result, Value};
use serde::Deserialize;
use smol_str::SmolStr;

/// Rules for reading files of other programs: a mapping file, parsed.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mapping {
    #[serde(default)]
    pub(crate) defaults: Defaults,
    #[serde(default)]
    pub(crate) file: Vec<FileRule>,
}

/// Settings of every file whose rule does not say otherwise.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Defaults {
    pub(crate) delimiter: Option<char>,
    pub(crate) quote: Option<String>,
    pub(crate) escape: Option<String>,
    pub(crate) null: Option<Vec<String>>,
    pub(crate) header: Option<bool>,
    pub(crate) user_id: Option<UserIdRule>,
    /// The key of vertices. It applies to files that have a property of this name and whose ids are not ids of the
    /// graph.
    pub(crate) key: Option<KeyRule>,
    /// Applied to columns of these names, in any file.
    #[serde(default)]
    pub(crate) properties: BTreeMap<String, PropertyRule>,
}

/// A rule: which files it is for, and what their columns mean.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileRule {
    /// A pattern for names of files: `*` stands for any text, `?` for one character.
    #[serde(rename = "match")]
    pub(crate) pattern: String,
    /// The rule applies only if no file of the load has a name that matches this pattern.
    pub(crate) unless: Option<String>,
    /// The files are left out.
    #[serde(default)]
    pub(crate) skip: bool,
    pub(crate) kind: Option<KindRule>,
    pub(crate) label: Option<String>,
    pub(crate) label_column: Option<String>,
    /// Other names for the labels in the label column.
    #[serde(default)]
    pub(crate) label_names: BTreeMap<String, String>,
    pub(crate) id: Option<String>,
    pub(crate) id_space: Option<String>,
    /// The property that keeps the id of the file. If it is empty, no property keeps it.
    pub(crate) id_property: Option<String>,
    pub(crate) user_id: Option<UserIdRule>,
    /// The properties whose values identify a vertex among those of its label, or an edge among those of its label
    /// between the same ends.
    pub(crate) key: Option<KeyRule>,
    pub(crate) source: Option<String>,
    pub(crate) source_space: Option<String>,
    pub(crate) target: Option<String>,
    pub(crate) target_space: Option<String>,
    /// The behavior for an edge with an end that does not exist.
    #[serde(default)]
    pub(crate) missing: MissingRule,
    pub(crate) header: Option<bool>,
    /// Names of the columns, in place of those in the file.
    pub(crate) columns: Option<Vec<String>>,
    pub(crate) delimiter: Option<char>,
    pub(crate) quote: Option<String>,
    pub(crate) escape: Option<String>,
    pub(crate) null: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) properties: BTreeMap<String, PropertyRule>,
    #[serde(default)]
    pub(crate) constants: BTreeMap<String, toml::Value>,
    #[serde(default)]
    pub(crate) foreign: Vec<ForeignRule>,
}

/// The kind of the rows of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum KindRule {
    Vertex,
    Edge,
    /// Values of vertices; the vertices are in other files.
    Values,
}

/// One property, or several.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(crate) enum KeyRule {
    One(String),
    Several(Vec<String>),
}

impl KeyRule {
    /// The names of the properties.
    pub(crate) fn names(&self) -> Vec<SmolStr> {
        match self {
            KeyRule::One(name) => vec![name.into()],
            KeyRule::Several(names) => names.iter().map(SmolStr::from).collect(),
        }
    }
}

/// The id in the graph of an element whose id is in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(crate) enum UserIdRule {
    Own(bool),
    Prefixed(Prefix),
}

/// The word `prefix`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Prefix {
    Prefix,
}

/// The behavior for an edge with an end that does not exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum MissingRule {
    #[default]
    Reject,
    Skip,
}

/// The property that a column becomes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PropertyRule {
    /// The property key, if it differs from the name of the column.
    pub(crate) name: Option<String>,
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    /// The format of dates.
    pub(crate) format: Option<String>,
    /// Separates the elements of a list.
    pub(crate) separator: Option<char>,
    /// `list` or `set`: the elements become values of a multi-property instead of one list.
    pub(crate) cardinality: Option<CardinalityRule>,
    /// The column is left out.
    #[serde(default)]
    pub(crate) skip: bool,
}

/// How the elements of a list become values of a multi-property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CardinalityRule {
    List,
    Set,
}

/// A column of a vertex file that names another vertex.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ForeignRule {
    pub(crate) column: String,
    /// The label of the edge.
    pub(crate) label: String,
    /// The id space of the vertex named.
    #[serde(default)]
    pub(crate) space: String,
    /// Separates several ids in one field.
    pub(crate) separator: Option<char>,
    /// The edge leads from the vertex that the field names to the vertex of the row.
    #[serde(default)]
    pub(crate) inward: bool,
    /// The behavior if no vertex has the id.
    #[serde(default)]
    pub(crate) missing: MissingRule,
}

/// The mappings that are part of the program: names and texts (`mappings/` in the source tree).
const SHIPPED: [(&str, &str); 8] = [
    ("air-routes", include_str!("../../../mappings/air-routes.toml")),
    ("ldbc-snb", include_str!("../../../mappings/ldbc-snb.toml")),
    ("lsqb", include_str!("../../../mappings/lsqb.toml")),
    ("openflights", include_str!("../../../mappings/openflights.toml")),
    ("p2p-31", include_str!("../../../mappings/p2p-31.toml")),
    ("snap", include_str!("../../../mappings/snap.toml")),
    ("tinysnb", include_str!("../../../mappings/tinysnb.toml")),
    ("us-flights", include_str!("../../../mappings/us-flights.toml")),
];

impl FileRule {
    /// Returns true if the rule may be for a file of vertices.
    pub(crate) fn is_of_vertices(&self) -> bool {
        !self.skip
            && self.source.is_none()
            && self.target.is_none()
            && matches!(self.kind, None | Some(KindRule::Vertex))
    }
}

impl Mapping {
    /// Reads a mapping from its text.
    pub fn parse(text: &str) -> Result<Self> {
        toml::from_str(text).map_err(|e| Error::new(ErrorKind::Syntax, format!("the mapping does not parse: {e}")))
    }

    /// The mapping of a known data set, by its name: see [`Mapping::shipped_names`].
    pub fn shipped(name: &str) -> Option<Self> {
        let (_, text) = SHIPPED.iter().find(|(shipped, _)| *shipped == name)?;
        Some(Self::parse(text).expect("a test parses every shipped mapping"))
    }

    /// The names of the mappings that are part of the program.
    pub fn shipped_names() -> impl Iterator<Item = &'static str> {
        SHIPPED.iter().map(|(name, _)| *name)
    }

    /// Reads a mapping file.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .map_err(|e| Error::new(ErrorKind::Io, format!("cannot read the mapping {}: {e}", path.display())))?;
        Self::parse(&text).map_err(|e| e.context(path.display()))
    }

    /// The first rule that matches a file. `all` are the files of the load.
    pub(crate) fn rule_for<'a>(&'a self, path: &Path, all: &[&Path]) -> Option<&'a FileRule> {
        self.file.iter().find(|rule| {
            let displaced = |unless: &String| all.iter().any(|other| *other != path && matches(unless, other));
            // A pattern matches with and without the extension of the compression.
            let fits = matches(&rule.pattern, path) || matches(&rule.pattern, &unpacked_name(path));
            fits && !rule.unless.as_ref().is_some_and(displaced)
        })
    }
}

/// The value of a constant property.
pub(crate) fn constant(value: &toml::Value) -> Result<Value> {
    Ok(match value {
        toml::Value::String(text) => Value::string(text.as_str()),
        toml::Value::Integer(number) => Value::I64(*number),
        toml::Value::Float(number) => Value::F64(*number),
        toml::Value::Boolean(truth) => Value::Bool(*truth),
        toml::Value::Datetime(_) | toml::Value::Array(_) | toml::Value::Table(_) => {
            return Err(Error::invalid("a constant is a string, a number or a boolean"));
        }
    })
}

/// Returns true if a pattern matches a path: its file name, or as many of its last parts as the pattern has parts.
fn matches(pattern: &str, path: &Path) -> bool {
    let mut parts = path.iter().rev().map(|part| part.to_string_lossy());
    pattern.rsplit('/').all(|pattern| parts.next().is_some_and(|part| wildcard(pattern.as_bytes(), part.as_bytes())))
}

/// Matches `*` and `?`. After a mismatch, only the last star can match a longer text.
fn wildcard(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p + 1, t));
                p += 1;
            }
            Some(byte) if *byte == b'?' || *byte == text[t] => (p, t) = (p + 1, t + 1),
            _ => match star {
                Some((after, tried)) => {
                    (p, t) = (after, tried + 1);
                    star = Some((after, tried + 1));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names_or_whole_tails() {
        for (pattern, path, expected) in [
            ("a*.csv", "x/ab.csv", true),
            ("a*.csv", "x/b.csv", false),
            ("*_knows_*.csv", "person_knows_person_0_0.csv", true),
            ("?.csv", "a.csv", true),
            ("?.csv", ".csv", false),
            ("x/a.csv", "y/x/a.csv", true),
            ("x/a.csv", "y/a.csv", false),
            ("*a*b*", "xxaxxbxx", true),
            ("*ab", "aab", true),
        ] {
            assert_eq!(matches(pattern, Path::new(path)), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn the_first_rule_that_holds_is_taken() {
        let mapping = Mapping::parse(
            r#"
            [[file]]
            match = "a.csv"
            unless = "b.csv"
            label = "first"
            [[file]]
            match = "*.csv"
            skip = true
            "#,
        )
        .unwrap();
        let (a, b) = (Path::new("d/a.csv"), Path::new("d/b.csv"));
        assert_eq!(mapping.rule_for(a, &[a]).unwrap().label.as_deref(), Some("first"));
        assert!(mapping.rule_for(a, &[a, b]).unwrap().skip);
        assert!(mapping.rule_for(Path::new("x.txt"), &[]).is_none());
    }

    #[test]
    fn shipped_mappings_parse() {
        assert!(Mapping::shipped_names().all(|name| !Mapping::shipped(name).unwrap().file.is_empty()));
        assert!(Mapping::shipped("nothing").is_none());
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        let error = Mapping::parse("[[file]]\nmatch = \"a\"\nlabl = \"b\"").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Syntax);
        assert!(error.message().contains("labl") && error.message().contains("line 3"), "{error}");
        let rule = Mapping::parse("[defaults]\nuser_id = \"prefix\"").unwrap();
        assert_eq!(rule.defaults.user_id, Some(UserIdRule::Prefixed(Prefix::Prefix)));
    }
}
