//! A query prepared on one database. Its runs are checked once, and timed after that.

use std::time::Instant;

use mangrove::{Database, Error, ErrorKind, Parameters, Prepared, QueryLimits, QueryOptions, Result, Value};
use mangrove_queries::to_json;

use super::asked::Asked;
use crate::harness::wrong;

/// A query prepared on one database.
pub struct Station<'a> {
    database: &'a Database,
    prepared: Prepared,
}

/// The place where a run is executed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The thread of the client, with executors as helpers ([`Database::run`]).
    Executors,
    /// The thread of the client as long as the query is light, and executors after that ([`Database::run_shared`]).
    Shared,
    /// The thread of the client.
    Client,
}

impl<'a> Station<'a> {
    /// Prepares a query on a database.
    pub fn new(database: &'a Database, text: &str) -> Result<Self> {
        Ok(Station::of(database, database.prepare(text)?))
    }

    /// A query that is prepared already.
    pub fn of(database: &'a Database, prepared: Prepared) -> Self {
        Station { database, prepared }
    }

    /// Runs the query and passes on its results, each with the number of times that it occurs.
    pub fn each(&self, parameters: &Parameters, place: Place, each: &mut dyn FnMut(&Value, u64)) -> Result<()> {
        match place {
            Place::Executors | Place::Client => {
                // One thread is that of the client: then no executor helps.
                let workers_max = usize::from(place == Place::Client);
                self.each_with(parameters, &QueryOptions { workers_max, ..QueryOptions::default() }, each)
            }
            Place::Shared => {
                let options = QueryOptions::default();
                self.database.run_shared(&self.prepared, parameters, &options, &mut |batch| {
                    batch.iter().for_each(|(value, bulk)| each(value, *bulk));
                    Ok(())
                })
            }
        }
    }

    /// Runs the query on the thread of the client, and passes on its results.
    fn each_with(
        &self,
        parameters: &Parameters,
        options: &QueryOptions,
        each: &mut dyn FnMut(&Value, u64),
    ) -> Result<()> {
        let mut results = self.database.run_with(&self.prepared, parameters, options)?;
        while let Some(batch) = results.next_batch()? {
            batch.iter().for_each(|(value, bulk)| each(value, *bulk));
        }
        Ok(())
    }

    /// Runs the query once with each of its parameters, on the thread of the client alone. Returns the seconds; `None` if a
    /// run takes longer than `limit`, in seconds.
    pub fn pass_within(&self, asked: &Asked, counts: &[u64], limit: f64) -> Result<Option<f64>> {
        let limits = QueryLimits { time_nanos: Some((limit * 1e9) as u64), ..QueryLimits::default() };
        let options = QueryOptions { workers_max: 1, limits, ..QueryOptions::default() };
        let begin = Instant::now();
        for (run, expected) in asked.runs.iter().zip(counts) {
            let mut count = 0;
            match self.each_with(&run.parameters, &options, &mut |_, bulk| count += bulk) {
                Err(error) if error.kind() == ErrorKind::Timeout => return Ok(None),
                Err(error) => return Err(error),
                Ok(()) if count != *expected => return Err(other_count(asked, count, *expected)),
                Ok(()) => {}
            }
        }
        Ok(Some(begin.elapsed().as_secs_f64()))
    }

    /// Checks the answers of all runs. Returns the number of rows of each.
    pub fn check(&self, asked: &Asked, place: Place) -> Result<Vec<u64>> {
        let mut counts = Vec::with_capacity(asked.runs.len());
        for (at, run) in asked.runs.iter().enumerate() {
            let mut rows = Vec::new();
            self.each(&run.parameters, place, &mut |value, bulk| {
                let row = to_json(value);
                rows.extend(std::iter::repeat_n(row, bulk as usize));
            })?;
            asked.check(at, &rows)?;
            counts.push(rows.len() as u64);
        }
        Ok(counts)
    }

    /// Runs the query `passes` times with each of its parameters.
    pub fn pass(&self, asked: &Asked, counts: &[u64], place: Place, passes: u64) -> Result<()> {
        for _ in 0..passes {
            for (at, expected) in counts.iter().enumerate() {
                self.once(asked, at, *expected, place)?;
            }
        }
        Ok(())
    }

    /// Runs the query with the parameters at this place. The answer must have the expected number of rows.
    pub fn once(&self, asked: &Asked, at: usize, expected: u64, place: Place) -> Result<()> {
        let mut count = 0;
        self.each(&asked.runs[at].parameters, place, &mut |_, bulk| count += bulk)?;
        if count == expected { Ok(()) } else { Err(other_count(asked, count, expected)) }
    }

    /// Runs two copies side by side.
    pub fn pair(&self, asked: &Asked, counts: &[u64], passes: u64) -> Result<()> {
        std::thread::scope(|scope| {
            let other = scope.spawn(|| self.pass(asked, counts, Place::Client, passes));
            let this = self.pass(asked, counts, Place::Client, passes);
            other.join().map_err(|_| wrong("a copy of a query panicked while it was timed".into()))??;
            this
        })
    }
}

fn other_count(asked: &Asked, count: u64, expected: u64) -> Error {
    wrong(format!("{}: a timed run returned {count} rows instead of {expected}", asked.case))
}
