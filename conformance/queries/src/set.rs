//! The query sets of `sets/*.toml`, which are part of the program. A file that is not valid is a mistake in this crate.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The names of the sets, with their files.
const SETS: [(&str, &str); 9] = [
    ("ldbc-interactive", include_str!("../sets/ldbc-interactive.toml")),
    ("ldbc-bi", include_str!("../sets/ldbc-bi.toml")),
    ("banyan-cq", include_str!("../sets/banyan-cq.toml")),
    ("gtran-templates", include_str!("../sets/gtran-templates.toml")),
    ("gtran-lbv", include_str!("../sets/gtran-lbv.toml")),
    ("grasper", include_str!("../sets/grasper.toml")),
    ("patterns", include_str!("../sets/patterns.toml")),
    ("lsqb", include_str!("../sets/lsqb.toml")),
    ("barriers", include_str!("../sets/barriers.toml")),
];

/// Parameters, as the set files and the validation files have them.
pub type JsonParameters = BTreeMap<String, serde_json::Value>;

/// The queries of one source, such as a paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuerySet {
    /// The name of the set and of its file.
    #[serde(skip)]
    pub name: String,
    /// Where the queries come from.
    pub source: String,
    /// The data set on which the queries run.
    pub graph: String,
    /// Parameters for every query that has none of its own. Each query runs once with each.
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
    /// The name of the query in its source.
    pub name: String,
    /// The question in words.
    pub says: String,
    /// The query as the paper prints it, if its dialect differs.
    pub paper: Option<String>,
    /// The traversal; empty for an update of several statements. If it is a write, `shows` reads its effect.
    #[serde(default)]
    pub text: String,
    /// The statements of an update, in order, in one transaction.
    #[serde(default, rename = "statement")]
    pub statements: Vec<Statement>,
    /// A traversal that reads the effect of a write in its transaction, before the transaction is rolled back.
    pub shows: Option<String>,
    /// Other texts of the same question, by name.
    #[serde(default)]
    pub forms: BTreeMap<String, Form>,
    /// The query's own parameters.
    #[serde(default)]
    pub parameters: Vec<JsonParameters>,
    /// Parameters that are computed from others before the query runs.
    #[serde(default)]
    pub derive: BTreeMap<String, Derived>,
    /// Fields of a row whose lists have no order.
    #[serde(default)]
    pub unordered: Vec<String>,
    /// True if the published answer is one object, not a list of rows.
    #[serde(default)]
    pub single: bool,
    /// The field by which rows are ordered; ties are in any order.
    pub ties: Option<String>,
    /// The largest number of rows of a query without an order. The answer may have any of the rows that qualify.
    pub limit: Option<usize>,
    /// True if the rows have an order.
    #[serde(default)]
    pub ordered: bool,
    /// True if the query takes a minute. Tests then run it only if `MANGROVE_TEST_FULL` is set.
    #[serde(default)]
    pub slow: bool,
}

/// Another text of a question, for comparisons of speed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Form {
    /// The traversal.
    pub text: String,
    /// True if it returns all rows that qualify, although the query has a limit.
    #[serde(default)]
    pub all: bool,
}

/// A statement of an update.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// The traversal.
    pub text: String,
    /// At most one list parameter, and names for an entry or for its parts: the statement runs once for each entry.
    #[serde(default)]
    pub each: BTreeMap<String, Vec<String>>,
}

/// How a client computes a parameter from others.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Derived {
    /// A date in milliseconds plus a number of days; both are names of parameters.
    Day(String, String),
    /// A text `-MM` with an ending. The month is a parameter plus a number of months, and December is followed by
    /// January.
    Month(String, i64, String),
}

impl QuerySet {
    /// The set with this name.
    ///
    /// # Panics
    ///
    /// If there is no such set, or its file is not a valid [`QuerySet`]. Both are mistakes in this crate.
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

    /// The query with this name.
    ///
    /// # Panics
    ///
    /// If the set has no such query.
    pub fn query(&self, name: &str) -> &Query {
        self.queries
            .iter()
            .find(|query| query.name == name)
            .unwrap_or_else(|| panic!("{} has no query {name}", self.name))
    }

    /// The parameters with which a query runs.
    pub fn parameters_of<'a>(&'a self, query: &'a Query) -> &'a [JsonParameters] {
        if query.parameters.is_empty() { &self.parameters } else { &query.parameters }
    }
}

impl Query {
    /// The given parameters, and the parameters that are computed from them ([`Query::derive`]).
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
