//! Runs the queries of a set on a database. Only [`Runner::update`] leaves changes in it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use mangrove::{Database, Prepared, QueryLimits, QueryOptions, Result, Transaction};
use serde_json::Value as Json;

use crate::json::{bound, to_json};
use crate::set::{JsonParameters, Query, Statement};

/// Runs queries on a database. The text of each query is prepared once.
pub struct Runner<'a> {
    db: &'a Database,
    prepared: RefCell<HashMap<String, Arc<Prepared>>>,
    options: QueryOptions,
}

impl<'a> Runner<'a> {
    /// A runner for this database.
    pub fn new(db: &'a Database) -> Self {
        Runner { db, prepared: RefCell::default(), options: QueryOptions::default() }
    }

    /// Limits the time of each read, in seconds.
    #[must_use]
    pub fn with_time_limit(mut self, seconds: u64) -> Self {
        self.options.limits = QueryLimits { time_nanos: Some(seconds * 1_000_000_000), ..self.options.limits };
        self
    }

    /// Runs a read and returns its rows.
    ///
    /// # Errors
    ///
    /// The error of the database.
    pub fn ask(&self, query: &Query, given: &JsonParameters) -> Result<Vec<Json>> {
        let parameters = bound(&self.resolved(&query.with_derived(given))?);
        let rows = self.db.run_with(&*self.prepare(&query.text)?, &parameters, &self.options)?.collect()?;
        Ok(rows.iter().map(to_json).collect())
    }

    /// Runs a read and returns its rows; or a write, in a transaction that is rolled back, and returns what it shows.
    ///
    /// # Errors
    ///
    /// The error of the database.
    pub fn answer(&self, query: &Query, given: &JsonParameters) -> Result<Vec<Json>> {
        match query.shows {
            Some(_) => self.try_write(query, given),
            None => self.ask(query, given),
        }
    }

    /// Performs an update: all its statements in one transaction.
    ///
    /// # Errors
    ///
    /// The error of the database; the update is then rolled back as a whole.
    pub fn update(&self, query: &Query, given: &JsonParameters) -> Result<()> {
        let transaction = self.db.begin()?;
        for statement in &query.statements {
            for parameters in entries(statement, given) {
                self.run_in(&transaction, &statement.text, &parameters)?;
            }
        }
        transaction.commit().map(drop)
    }

    /// Performs a write, reads its effect in the same transaction, and rolls the transaction back.
    ///
    /// # Errors
    ///
    /// The error of the database.
    ///
    /// # Panics
    ///
    /// If the query has no `shows`.
    pub fn try_write(&self, query: &Query, given: &JsonParameters) -> Result<Vec<Json>> {
        let shows = query.shows.as_deref().expect("a write says how it shows what it did");
        let given = self.resolved(given)?;
        let transaction = self.db.begin()?;
        self.run_in(&transaction, &query.text, &given)?;
        let rows = self.run_in(&transaction, shows, &given)?;
        transaction.rollback();
        Ok(rows)
    }

    /// Replaces parameters that name an element by its label and LDBC's ids with the database's id of that element.
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
        let rows = transaction.run_with(&*self.prepare(text)?, &bound(given), &self.options)?.collect()?;
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

/// The parameters of a statement, once for every entry of its list if it has one, otherwise once.
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
