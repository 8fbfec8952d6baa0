//! Graph algorithms by their names: `mangrove algo`, and [`Database::run_algorithm`].

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use mangrove_analytics::Team;
use mangrove_analytics::cache::ProjectionCache;
use mangrove_analytics::registry::{self, AlgorithmInfo, ColumnValues, Output};
use mangrove_flow::QueryControl;
use mangrove_flow::schedule::Tenant;
use mangrove_graph::{EdgeId, Result, Value, VertexId};

use crate::options::QueryOptions;
use crate::query::helpers::ExecutorSource;
use crate::state::Database;
use crate::transaction::Transaction;

/// Rows whose ids are read at a time.
const ROWS: usize = 1_024;

/// The results of an algorithm: rows of a value for each of its columns, in no order that means anything. Of vertices and edges
/// a row has the ids.
///
/// They hold the snapshot that the algorithm has read, until they are dropped.
pub struct AlgorithmRows {
    transaction: Transaction,
    algorithm: &'static AlgorithmInfo,
    output: Output,
    next: usize,
    ready: VecDeque<Vec<Value>>,
}

impl Database {
    /// Runs an algorithm on the graph as it is now. `threads` work on it at most: this one, and idle executors; 0 means one for each
    /// executor. [`registry::ALGORITHMS`] has the names, the options and the columns.
    ///
    /// ```
    /// use mangrove::{Database, Value};
    ///
    /// # fn main() -> mangrove::Result<()> {
    /// let db = Database::in_memory();
    /// db.query("g.addV('a').as('x').addV('b').addE('to').from('x')")?.count();
    /// let ranks = db.run_algorithm("pagerank", &[("damping".into(), Value::F64(0.9))], 0)?;
    /// assert_eq!(ranks.algorithm().columns[1].name, "rank");
    /// assert_eq!(ranks.count(), 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no algorithm of that name, `InvalidArgument` if an option is unknown, missing or not allowed.
    pub fn run_algorithm(&self, name: &str, options: &[(String, Value)], threads: usize) -> Result<AlgorithmRows> {
        self.run_algorithm_with(name, options, &QueryOptions { workers_max: threads, ..self.options().clone() })
    }

    /// As [`Database::run_algorithm`], with the limits, the cancellation, the tenant and the gauges of a query.
    pub fn run_algorithm_with(
        &self,
        name: &str,
        options: &[(String, Value)],
        run: &QueryOptions,
    ) -> Result<AlgorithmRows> {
        let algorithm = registry::find(name)?;
        let transaction = self.begin_read()?;
        let team = self.team_of(&run.tenant, run.workers_max)?.controlled_by(self.control_of(run));
        let output = algorithm.run(transaction.view(), &self.inner.projections, options, &team)?;
        Ok(AlgorithmRows { transaction, algorithm, output, next: 0, ready: VecDeque::new() })
    }

    /// The control of work that runs with the options of a query and is none. It begins now.
    pub fn control_of(&self, run: &QueryOptions) -> Arc<QueryControl> {
        let control = QueryControl::new(run.limits, self.clock().clone(), run.cancel.clone());
        let control = control.drawing_on(&self.inner.budget).asking(run.interrupt.clone());
        if let Some(gauges) = &run.gauges {
            control.show_progress_in(gauges.progress.clone());
        }
        Arc::new(control)
    }

    /// The caller's thread and executors of the database, at most so many together; 0 means as many as there are executors.
    /// Executors count for the tenant.
    pub fn team_of(&self, tenant: &Tenant, threads: usize) -> Result<Team> {
        let budget = &self.inner.budget;
        if threads == 1 {
            return Ok(Team::alone().drawing_on(budget));
        }
        let executors = self.inner.executors()?;
        let threads = if threads == 0 { executors.count() } else { threads };
        // More helpers than executors would never work at the same time.
        let helpers = threads.saturating_sub(1).min(executors.count());
        Ok(Team::with_executors(&executors, tenant, helpers).drawing_on(budget))
    }

    /// The projections that algorithms on this graph share: an algorithm reads again only what has changed since the last one.
    pub fn projections(&self) -> &ProjectionCache {
        &self.inner.projections
    }
}

impl AlgorithmRows {
    /// The algorithm, with the names of its columns.
    pub fn algorithm(&self) -> &'static AlgorithmInfo {
        self.algorithm
    }

    /// The names of the columns of these rows: those of the algorithm, without some at the end that were not asked for.
    pub fn columns(&self) -> Vec<&'static str> {
        self.output.columns.iter().map(|column| column.name).collect()
    }

    /// The columns of all rows, and the transaction that the algorithm has read.
    #[cfg(feature = "arrow")]
    pub(crate) fn into_output(self) -> (Transaction, Output) {
        (self.transaction, self.output)
    }

    fn vertex_ids(&self, vertices: &[VertexId]) -> Result<Vec<Value>> {
        let mut ids = Vec::with_capacity(vertices.len());
        self.transaction.view().vertex_user_ids(vertices, &mut ids)?;
        Ok(ids)
    }

    fn edge_ids(&self, edges: &[EdgeId]) -> Result<Vec<Value>> {
        let mut ids = Vec::with_capacity(edges.len());
        self.transaction.view().edge_user_ids(edges, &mut ids)?;
        Ok(ids)
    }

    fn read(&mut self) -> Result<()> {
        let rows = self.next..self.output.len().min(self.next + ROWS);
        let columns = self.output.columns.iter();
        let columns = columns
            .map(|column| {
                let (vertices, edges) = (|ids: &[VertexId]| self.vertex_ids(ids), |ids: &[EdgeId]| self.edge_ids(ids));
                column_values(&column.values, rows.clone(), &vertices, &edges)
            })
            .collect::<Result<Vec<_>>>()?;
        let mut columns: Vec<_> = columns.into_iter().map(Vec::into_iter).collect();
        self.ready.extend(rows.clone().map(|_| columns.iter_mut().filter_map(Iterator::next).collect()));
        self.next = rows.end;
        Ok(())
    }
}

/// The values of some rows of a column. `vertex_values` and `edge_values` say what stands for vertices and for edges.
pub(crate) fn column_values(
    values: &ColumnValues,
    rows: Range<usize>,
    vertex_values: &dyn Fn(&[VertexId]) -> Result<Vec<Value>>,
    edge_values: &dyn Fn(&[EdgeId]) -> Result<Vec<Value>>,
) -> Result<Vec<Value>> {
    Ok(match values {
        ColumnValues::Vertices(vertices) => vertex_values(&vertices[rows])?,
        ColumnValues::Edges(edges) => edge_values(&edges[rows])?,
        ColumnValues::Counts(counts) => {
            counts[rows].iter().map(|count| Value::I64(i64::try_from(*count).unwrap_or(i64::MAX))).collect()
        }
        ColumnValues::Numbers(numbers) => numbers[rows].iter().map(|number| Value::F64(*number)).collect(),
        ColumnValues::VertexLists { ends, vertices } => {
            let start = |row: usize| if row == 0 { 0 } else { ends[row - 1] };
            let mut found = vertex_values(&vertices[start(rows.start)..start(rows.end)])?.into_iter();
            rows.map(|row| Value::list(found.by_ref().take(ends[row] - start(row)).collect())).collect()
        }
        ColumnValues::Vectors { width, numbers } => {
            let vector = |row: usize| numbers[row * width..(row + 1) * width].iter().map(|number| Value::F32(*number));
            rows.map(|row| Value::list(vector(row).collect())).collect()
        }
    })
}

impl Iterator for AlgorithmRows {
    type Item = Result<Vec<Value>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ready.is_empty()
            && self.next < self.output.len()
            && let Err(error) = self.read()
        {
            self.next = self.output.len();
            return Some(Err(error));
        }
        self.ready.pop_front().map(Ok)
    }
}
