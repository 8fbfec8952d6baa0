//! Traversals as data.
//!
//! A file is a list of cases with empty lines between them:
//!
//! ```text
//! # A comment.
//! [name]
//! g.V().has('code', 'AUS').
//!   out('route').count()
//! = 98
//! ```
//!
//! The name is optional. The script ends before the first line of results. Lines `= value` are results in any order,
//! lines `- value` results in this order. A case without either has its answers in another file, or is not checked. A
//! line `=` alone means that there are no results.

/// The results of a traversal as text.
#[derive(Debug)]
pub enum Expected {
    /// In this order.
    InOrder(Vec<String>),
    /// In any order.
    AnyOrder(Vec<String>),
}

/// A traversal and its results.
#[derive(Debug)]
pub struct Case {
    /// Its name; empty if it has none.
    pub name: String,
    /// The traversal.
    pub script: String,
    /// Its results.
    pub expected: Expected,
}

impl Case {
    /// The cases of a file.
    pub fn parse_all(file: &str) -> Vec<Case> {
        let lines: Vec<&str> = file.lines().filter(|line| !line.starts_with('#')).collect();
        lines.split(|line| line.is_empty()).filter(|block| !block.is_empty()).map(Case::parse).collect()
    }

    fn parse(block: &[&str]) -> Case {
        let (mut name, mut script) = (String::new(), String::new());
        let (mut any_order, mut in_order) = (Vec::new(), Vec::new());
        for line in block {
            if let Some(heading) = line.strip_prefix('[') {
                name = heading.strip_suffix(']').expect("a name ends with a bracket").to_owned();
            } else if let Some(result) = line.strip_prefix("= ") {
                any_order.push(result.to_owned());
            } else if let Some(result) = line.strip_prefix("- ") {
                in_order.push(result.to_owned());
            } else if *line != "=" {
                script.push_str(line.trim());
            }
        }
        assert!(script.starts_with("g."), "a case needs a traversal: {block:?}");
        assert!(any_order.is_empty() || in_order.is_empty(), "{script}: results in one order or in any");
        let expected = if in_order.is_empty() { Expected::AnyOrder(any_order) } else { Expected::InOrder(in_order) };
        Case { name, script, expected }
    }

    /// The case with this name.
    #[track_caller]
    pub fn named<'a>(cases: &'a [Case], name: &str) -> &'a Case {
        cases.iter().find(|case| case.name == name).unwrap_or_else(|| panic!("no traversal is named {name}"))
    }
}
