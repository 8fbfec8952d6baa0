//! Query sets as they stand in `sets/*.toml`.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The sets there are, by name, with their files.
const SETS: [(&str, &str); 6] = [
    ("ldbc-interactive", include_str!("../sets/ldbc-interactive.toml")),
    ("banyan-cq", include_str!("../sets/banyan-cq.toml")),
    ("gtran-templates", include_str!("../sets/gtran-templates.toml")),
    ("gtran-lbv", include_str!("../sets/gtran-lbv.toml")),
    ("grasper", include_str!("../sets/grasper.toml")),
    ("patterns", include_str!("../sets/patterns.toml")),
];

/// Parameters as the files and the validation sets have them.
pub type JsonParameters = BTreeMap<String, serde_json::Value>;

/// The queries of one source.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuerySet {
    /// Its name: that of its file.
    #[serde(skip)]
    pub name: String,
    /// Where the queries come from.
    pub source: String,
    /// The data set whose graph they are asked of.
    pub graph: String,
    /// The parameters of every query that has none of its own: each is asked once with each.
    #[serde(default)]
    pub parameters: Vec<JsonParameters>,
    /// The queries.
    #[serde(rename = "query")]
    pub queries: Vec<Query>,
}

/// A query, or an update of several statements.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Query {
    /// Its name in its source.
    pub name: String,
    /// What it asks, in words.
    pub says: String,
    /// What the paper prints, where that is another dialect.
    pub paper: Option<String>,
    /// The traversal; empty for an update of several statements.
    #[serde(default)]
    pub text: String,
    /// The statements of an update, in order, in one transaction.
    #[serde(default, rename = "statement")]
    pub statements: Vec<Statement>,
    /// A traversal that shows what a write did, asked in its transaction, which is then rolled back.
    pub shows: Option<String>,
    /// Parameters of its own.
    #[serde(default)]
    pub parameters: Vec<JsonParameters>,
    /// Parameters that are computed from others before the question is asked.
    #[serde(default)]
    pub derive: BTreeMap<String, Derived>,
    /// Fields of a row whose lists have no order.
    #[serde(default)]
    pub unordered: Vec<String>,
    /// The published answer is one object, not a list of rows.
    #[serde(default)]
    pub single: bool,
    /// The field by which rows are ordered, where rows equal in it come in any order.
    pub ties: Option<String>,
    /// The limit of a query without an order: its rows are any so many of those that qualify.
    pub limit: Option<usize>,
    /// Whether the rows have an order.
    #[serde(default)]
    pub ordered: bool,
}

/// A statement of an update.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// The traversal.
    pub text: String,
    /// A list among the parameters, and the names of an entry or of its parts: the statement runs once an entry.
    #[serde(default)]
    pub each: BTreeMap<String, Vec<String>>,
}

/// How a client computes a parameter.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Derived {
    /// A date in milliseconds and a number of days behind it, by the names of their parameters.
    Day(String, String),
    /// `-MM` and an ending, for a month by the name of its parameter and how many months later.
    Month(String, i64, String),
}

impl QuerySet {
    /// The set of this name.
    ///
    /// # Panics
    ///
    /// Without a set of this name, and when its file is not what [`QuerySet`] says: both are mistakes in this crate.
    pub fn named(name: &str) -> QuerySet {
        let (_, file) =
            SETS.iter().find(|(set, _)| *set == name).unwrap_or_else(|| panic!("no query set is named {name}"));
        let mut set: QuerySet = toml::from_str(file).unwrap_or_else(|error| panic!("sets/{name}.toml: {error}"));
        name.clone_into(&mut set.name);
        set
    }

    /// The names of all sets.
    pub fn names() -> impl Iterator<Item = &'static str> {
        SETS.iter().map(|(name, _)| *name)
    }

    /// The query of this name.
    ///
    /// # Panics
    ///
    /// Where the set has none.
    pub fn query(&self, name: &str) -> &Query {
        self.queries
            .iter()
            .find(|query| query.name == name)
            .unwrap_or_else(|| panic!("{} has no query {name}", self.name))
    }

    /// What a query is asked with.
    pub fn parameters_of<'a>(&'a self, query: &'a Query) -> &'a [JsonParameters] {
        if query.parameters.is_empty() { &self.parameters } else { &query.parameters }
    }
}

impl Query {
    /// The parameters with those that are computed from them.
    pub fn with_derived(&self, given: &JsonParameters) -> JsonParameters {
        const DAY_MS: i64 = 24 * 60 * 60 * 1000;
        let number = |name: &String| given[name].as_i64().expect("computed parameters are computed from integers");
        let mut all = given.clone();
        for (name, derived) in &self.derive {
            let value = match derived {
                Derived::Day(date, days) => (number(date) + number(days) * DAY_MS).into(),
                Derived::Month(month, later, ending) => {
                    format!("-{:02}{ending}", (number(month) - 1 + later) % 12 + 1).into()
                }
            };
            all.insert(name.clone(), value);
        }
        all
    }
}
