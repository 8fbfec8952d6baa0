//! Every invariant has one definition, and code that keeps it cites it.
//!
//! An invariant is *defined* in the header of the module that owns its data, in a line such as `//! - **STORE-3.** A
//! packed run never changes after it is published.` It is *cited* by name wherever code keeps it or a document uses it.

use std::collections::BTreeMap;

use crate::files;

/// The prefixes of names; a name is a prefix, a hyphen and a number.
pub const PREFIXES: [&str; 13] =
    ["RECLAIM", "GRAPH", "STORE", "TXN", "LOG", "WIRE", "PLAN", "FLOW", "STEPS", "LOAD", "DB", "SERVER", "GENERATE"];

/// A mention of an invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mention {
    /// The path of the file, from the root of the project.
    pub file: String,
    /// The number of the line, from 1.
    pub line: usize,
}

/// All mentions of one invariant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mentions {
    /// Lines that define it.
    pub definitions: Vec<Mention>,
    /// Lines of code that cite it.
    pub citations: Vec<Mention>,
    /// Lines of documents that cite it.
    pub documents: Vec<Mention>,
}

/// All mentions of each invariant in crates and documents, by name.
pub fn mentions() -> BTreeMap<String, Mentions> {
    let mut all: BTreeMap<String, Mentions> = BTreeMap::new();
    for path in files::below(&files::root().join("crates"), "rs") {
        for (number, line) in files::text(&path).lines().enumerate() {
            for (name, is_definition) in names(line) {
                let mention = Mention { file: files::shown(&path), line: number + 1 };
                let mentions = all.entry(name).or_default();
                if is_definition { &mut mentions.definitions } else { &mut mentions.citations }.push(mention);
            }
        }
    }
    let documents = files::below(&files::root().join("docs"), "md");
    for path in documents.into_iter().chain([files::root().join("ARCHITECTURE.md")]) {
        for (number, line) in files::text(&path).lines().enumerate() {
            for (name, _) in names(line) {
                let mention = Mention { file: files::shown(&path), line: number + 1 };
                all.entry(name).or_default().documents.push(mention);
            }
        }
    }
    all
}

/// The invariants that are cited but not defined, defined twice, or defined but not cited by code, each as a message.
pub fn faults() -> Vec<String> {
    let mut faults = Vec::new();
    for (name, mentions) in mentions() {
        let places = |mentions: &[Mention]| {
            let places: Vec<String> = mentions.iter().map(|m| format!("{}:{}", m.file, m.line)).collect();
            places.join(", ")
        };
        match mentions.definitions.len() {
            0 => {
                let cited = [mentions.citations, mentions.documents].concat();
                faults.push(format!("{name} is cited ({}) and defined nowhere", places(&cited)));
            }
            1 if mentions.citations.is_empty() => {
                faults.push(format!("{name} is defined ({}) and no code cites it", places(&mentions.definitions)));
            }
            1 => {}
            _ => faults.push(format!("{name} is defined more than once: {}", places(&mentions.definitions))),
        }
    }
    faults
}

/// The names in a line, each with true if the line defines it.
fn names(line: &str) -> Vec<(String, bool)> {
    let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let mut found = Vec::new();
    let words = line.split(|c: char| !c.is_ascii() || !is_name_byte(c as u8));
    let is_comment = line.trim_start().starts_with("//!");
    for word in words {
        let Some((prefix, number)) = word.split_once('-') else { continue };
        if PREFIXES.contains(&prefix) && !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) {
            found.push((word.to_owned(), is_comment && line.contains(&format!("**{word}.**"))));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn a_definition_is_bold_and_in_a_header() {
        let name = |is_definition| vec![("STORE-3".to_owned(), is_definition)];
        assert_eq!(names("//! - **STORE-3.** A packed run never changes."), name(true));
        assert_eq!(names("    // STORE-3: it is published below."), name(false));
        assert_eq!(names("- **STORE-3.** in a document"), name(false));
        assert_eq!(names("//! keeps STORE-3 (see `pack`)"), name(false));
    }

    #[test]
    fn other_words_are_no_names() {
        assert!(names("// X-3, STORE-, STORE-x, PRE-STORE-3, STORE_3, UTF-8").is_empty());
    }
}
