//! Asking a database the queries of a set.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use mangrove::{Database, Parameters, Prepared, QueryLimits, QueryOptions, Result, Transaction};
use serde_json::Value as Json;

use crate::json::{from_json, to_json};
use crate::set::{JsonParameters, Query, Statement};

/// Asks a database; texts are prepared once.
pub struct Runner<'a> {
    db: &'a Database,
    prepared: RefCell<HashMap<String, Arc<Prepared>>>,
    options: QueryOptions,
}

impl<'a> Runner<'a> {
    /// Asks this database.
    pub fn new(db: &'a Database) -> Self {
        Runner { db, prepared: RefCell::default(), options: QueryOptions::default() }
    }

    /// The same, with a limit to the time of each read.
    #[must_use]
    pub fn with_time_limit(mut self, seconds: u64) -> Self {
        self.options.limits = QueryLimits { time_nanos: Some(seconds * 1_000_000_000), ..self.options.limits };
        self
    }

    /// The rows of a read.
    ///
    /// # Errors
    ///
    /// Those of the database.
    pub fn ask(&self, query: &Query, given: &JsonParameters) -> Result<Vec<Json>> {
        let parameters = values(&self.resolved(&query.with_derived(given))?);
        let rows = self.db.run_with(&*self.prepare(&query.text)?, &parameters, &self.options)?.collect()?;
        Ok(rows.iter().map(to_json).collect())
    }

    /// Performs an update: all its statements in one transaction.
    ///
    /// # Errors
    ///
    /// Those of the database; nothing of the update is left then.
    pub fn update(&self, query: &Query, given: &JsonParameters) -> Result<()> {
        let transaction = self.db.begin()?;
        for statement in &query.statements {
            for parameters in entries(statement, given) {
                self.run_in(&transaction, &statement.text, &parameters)?;
            }
        }
        transaction.commit().map(drop)
    }

    /// What a write shows: it is performed, its effect is read in the same transaction, and then it is rolled back.
    ///
    /// # Errors
    ///
    /// Those of the database.
    ///
    /// # Panics
    ///
    /// When the query does not say how it shows what it did.
    pub fn try_write(&self, query: &Query, given: &JsonParameters) -> Result<Vec<Json>> {
        let shows = query.shows.as_deref().expect("a write says how it shows what it did");
        let given = self.resolved(given)?;
        let transaction = self.db.begin()?;
        self.run_in(&transaction, &query.text, &given)?;
        let rows = self.run_in(&transaction, shows, &given)?;
        transaction.rollback();
        Ok(rows)
    }

    /// The parameters with the database's own ids in place of elements that are named by LDBC's.
    fn resolved(&self, given: &JsonParameters) -> Result<JsonParameters> {
        let mut resolved = given.clone();
        for named in resolved.values_mut() {
            let text = match (named.get("vertex"), named.get("edge")) {
                (Some(vertex), _) => format!("g.V().has({}, 'id', {}).id()", vertex[0], vertex[1]),
                (_, Some(edge)) => {
                    let [kind, from, label, to] = [0, 1, 2, 3].map(|at| &edge[at]);
                    format!("g.V().has({kind}, 'id', {from}).outE({label}).where(inV().has('id', {to})).id()")
                }
                _ => continue,
            };
            let ids = self.db.query(&text)?.collect()?;
            *named = ids.first().map(to_json).unwrap_or_else(|| panic!("{text} finds nothing"));
        }
        Ok(resolved)
    }

    fn run_in(&self, transaction: &Transaction, text: &str, given: &JsonParameters) -> Result<Vec<Json>> {
        let rows = transaction.run(&*self.prepare(text)?, &values(given))?.collect()?;
        Ok(rows.iter().map(to_json).collect())
    }

    fn prepare(&self, text: &str) -> Result<Arc<Prepared>> {
        if let Some(prepared) = self.prepared.borrow().get(text) {
            return Ok(prepared.clone());
        }
        let prepared = Arc::new(self.db.prepare(text.trim())?);
        self.prepared.borrow_mut().insert(text.to_owned(), prepared.clone());
        Ok(prepared)
    }
}

fn values(parameters: &JsonParameters) -> Parameters {
    parameters.iter().map(|(name, value)| (name.as_str().into(), from_json(value))).collect()
}

/// What a statement runs with: the parameters, once for every entry of the list it names, if it names one.
fn entries(statement: &Statement, given: &JsonParameters) -> Vec<JsonParameters> {
    let Some((list, names)) = statement.each.iter().next() else { return vec![given.clone()] };
    let list = given[list].as_array().expect("a statement runs for each entry of a list");
    let with_entry = |entry: &Json| {
        let parts = match entry {
            Json::Array(parts) => parts.clone(),
            single => vec![single.clone()],
        };
        given.clone().into_iter().chain(names.iter().cloned().zip(parts)).collect()
    };
    list.iter().map(with_entry).collect()
}
