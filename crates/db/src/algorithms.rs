//! Graph algorithms by their names: `mangrove algo`, and [`Database::run_algorithm`].

use std::collections::VecDeque;

use mangrove_analytics::Team;
use mangrove_analytics::registry::{self, Column, ColumnValues};
use mangrove_flow::schedule::{Executors, Tenant};
use mangrove_graph::{Result, Value, VertexId};

use crate::state::Database;
use crate::transaction::Transaction;

/// Rows whose ids are read at a time.
const ROWS: usize = 1_024;

/// The results of an algorithm: rows of the id of a vertex and its value, in no order that means anything.
///
/// They hold the snapshot that the algorithm has read, until they are dropped.
pub struct AlgorithmRows {
    transaction: Transaction,
    column: Column,
    next: usize,
    ready: VecDeque<(Value, Value)>,
}

impl Database {
    /// Runs an algorithm on the graph as it is now. `threads` work on it at most: this one, and idle executors; 0 means one for each
    /// executor. [`registry::ALGORITHMS`] has the names and the options.
    ///
    /// ```
    /// use mangrove::{Database, Value};
    ///
    /// # fn main() -> mangrove::Result<()> {
    /// let db = Database::in_memory();
    /// db.query("g.addV('a').as('x').addV('b').addE('to').from('x')")?.count();
    /// let ranks = db.run_algorithm("pagerank", &[("damping".into(), Value::F64(0.9))], 0)?;
    /// assert_eq!((ranks.column(), ranks.count()), ("rank", 2));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no algorithm of that name, `InvalidArgument` if an option is unknown, missing or not allowed.
    pub fn run_algorithm(&self, name: &str, options: &[(String, Value)], threads: usize) -> Result<AlgorithmRows> {
        let algorithm = registry::find(name)?;
        let transaction = self.begin_read()?;
        let executors = Executors::shared()?;
        let threads = if threads == 0 { executors.count() } else { threads };
        let team = match threads {
            1 => Team::alone(),
            _ => Team::with_executors(&executors, &Tenant::default(), threads - 1),
        };
        let column = algorithm.run(transaction.view(), options, &team)?;
        Ok(AlgorithmRows { transaction, column, next: 0, ready: VecDeque::new() })
    }
}

impl AlgorithmRows {
    /// The name of the values.
    pub fn column(&self) -> &'static str {
        self.column.name
    }

    /// Returns true if the values are numbers, so that the largest mean something.
    pub fn has_numbers(&self) -> bool {
        !matches!(self.column.values, ColumnValues::Vertices(_))
    }

    fn ids(&self, vertices: &[VertexId]) -> Result<Vec<Value>> {
        let mut ids = Vec::with_capacity(vertices.len());
        self.transaction.view().vertex_user_ids(vertices, &mut ids)?;
        Ok(ids)
    }

    fn read(&mut self) -> Result<()> {
        let range = self.next..self.column.vertices.len().min(self.next + ROWS);
        let ids = self.ids(&self.column.vertices[range.clone()])?;
        let values = match &self.column.values {
            ColumnValues::Vertices(vertices) => self.ids(&vertices[range.clone()])?,
            ColumnValues::Counts(counts) => counts[range.clone()]
                .iter()
                .map(|count| Value::I64(i64::try_from(*count).unwrap_or(i64::MAX)))
                .collect(),
            ColumnValues::Numbers(numbers) => numbers[range.clone()].iter().map(|number| Value::F64(*number)).collect(),
        };
        self.next = range.end;
        self.ready.extend(ids.into_iter().zip(values));
        Ok(())
    }
}

impl Iterator for AlgorithmRows {
    type Item = Result<(Value, Value)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ready.is_empty()
            && self.next < self.column.vertices.len()
            && let Err(error) = self.read()
        {
            self.next = self.column.vertices.len();
            return Some(Err(error));
        }
        self.ready.pop_front().map(Ok)
    }
}
