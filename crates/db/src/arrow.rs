//! Arrow: results as record batches.
//!
//! `docs/arrow.md` has the types and the shapes.

use mangrove_analytics::{Orientation, ProjectionOptions};
pub use mangrove_arrow::{
    ArrowElements, ArrowLabel, ArrowOptions, ArrowStream, ArrowTable, Collected, Csr, ElementColumns, Layout, Mixed,
    RecordBatch, RecordBatchReader, ResultSource, Results, SchemaRef, arrow_array, arrow_schema, collect,
};
use mangrove_flow::schedule::Tenant;
use mangrove_graph::{Draw, Error, ErrorKind, GraphView, MemoryBudget, Purpose, Result};
use mangrove_load::{SourceTable, UpsertKeys};
use smol_str::SmolStr;

use crate::algorithms::AlgorithmRows;
use crate::bulk::{LoadOptions, LoadProgress, LoadReport};
use crate::query::stream::ResultStream;
use crate::state::Database;
use crate::transaction::Transaction;

/// The results of a query as a stream of record batches. It is a `RecordBatchReader`. Dropping it ends the query.
pub type ResultBatches = ArrowStream<StreamSource>;

/// The results of a query, as the source of record batches.
pub struct StreamSource(ResultStream);

impl StreamSource {
    /// Results that are read with these options.
    pub fn new(mut stream: ResultStream, options: &ArrowOptions) -> Self {
        // Elements and maps that become columns are read as columns.
        if options.layout == Layout::Columns {
            stream.leave_elements();
            stream.take_columns();
        }
        StreamSource(stream)
    }
}

impl ResultSource for StreamSource {
    fn next_results(&mut self) -> Result<Option<Results>> {
        self.0.next_columns()
    }

    fn view(&self) -> Option<&dyn GraphView> {
        self.0.view()
    }

    fn budget(&self) -> MemoryBudget {
        self.0.budget()
    }
}

impl ResultStream {
    /// All results as record batches with one schema, whose types hold all rows. A result that occurs several times has as many
    /// rows. There is no batch if there are no results.
    ///
    /// # Errors
    ///
    /// Those of the query; `InvalidArgument` if no Arrow type holds the values of a column ([`ArrowOptions::mixed`]), or if
    /// results have several shapes.
    pub fn collect_arrow(self, options: &ArrowOptions) -> Result<(SchemaRef, Vec<RecordBatch>)> {
        mangrove_arrow::collect(&mut StreamSource::new(self, options), options)
    }

    /// The results as a stream of record batches. The first batch is read here, and the schema is taken from it. A later value
    /// that does not fit, and a column that the first batch does not have, are errors.
    ///
    /// # Errors
    ///
    /// As those of [`ResultStream::collect_arrow`].
    pub fn arrow_batches(self, options: &ArrowOptions) -> Result<ResultBatches> {
        ArrowStream::new(StreamSource::new(self, options), options)
    }

    /// As [`ResultStream::arrow_batches`], with the columns and types of a schema. A column without values has nulls.
    pub fn arrow_batches_as(self, options: &ArrowOptions, schema: SchemaRef) -> ResultBatches {
        ArrowStream::with_schema(StreamSource::new(self, options), options, schema)
    }
}

impl AlgorithmRows {
    /// All rows as one record batch, whatever rows were read before. Numbers are not copied. Vertices and edges are ids: 64-bit
    /// integers if all ids of the column are integers, else text.
    ///
    /// # Errors
    ///
    /// Those of reading the ids.
    pub fn into_arrow(self) -> Result<RecordBatch> {
        let (transaction, output) = self.into_output();
        mangrove_arrow::algorithm_batch(transaction.view(), output)
    }
}

/// The vertices and edges of a graph as compressed sparse rows.
#[derive(Clone, Debug, Default)]
pub struct CsrOptions {
    /// The labels of the vertices; empty: all.
    pub vertices: Vec<SmolStr>,
    /// The labels of the edges; empty: all. An edge counts if both its ends do.
    pub edges: Vec<SmolStr>,
    /// True: an edge is in the rows of both its ends, and a loop is twice in its row. False: it is in the row of its source.
    pub undirected: bool,
    /// The property of edges that is their weight; `None`: there are no weights.
    pub weight: Option<SmolStr>,
    /// The weight of an edge without the property; `None`: 1.
    pub default_weight: Option<f64>,
    /// Whether there is a column with the ids of the edges.
    pub edge_ids: bool,
}

impl Transaction {
    /// Vertices with their properties: the column `id`, and one for each key. Without keys, `label` comes after `id`, and there is
    /// a column for every key that a vertex has.
    ///
    /// # Errors
    ///
    /// `NotFound` if the graph has no such label or key; `InvalidArgument` if no Arrow type holds the values of a column.
    pub fn vertex_table(
        &self,
        columns: &ElementColumns,
        options: &ArrowOptions,
    ) -> Result<(SchemaRef, Vec<RecordBatch>)> {
        mangrove_arrow::vertex_table(self.view(), columns, options, &mut self.account())
    }

    /// As [`Transaction::vertex_table`], of edges: `id`, `src` and `dst` come first; without keys, `id`, `label`, `src` and `dst`.
    ///
    /// # Errors
    ///
    /// As those of [`Transaction::vertex_table`].
    pub fn edge_table(
        &self,
        columns: &ElementColumns,
        options: &ArrowOptions,
    ) -> Result<(SchemaRef, Vec<RecordBatch>)> {
        mangrove_arrow::edge_table(self.view(), columns, options, &mut self.account())
    }

    /// The graph as compressed sparse rows. `threads` read it at most: this one, and idle executors; 0 means one for each executor.
    /// The projection that is read stays in the cache of the database.
    ///
    /// # Errors
    ///
    /// `NotFound` if the graph has no such label or key, `InvalidArgument` if an edge has a weight that is no number, and those of
    /// reading a projection.
    pub fn csr(&self, options: &CsrOptions, threads: usize) -> Result<Csr> {
        let view = self.view();
        let no_key =
            |key: &SmolStr| Error::new(ErrorKind::NotFound, format!("no element has the property key '{key}'"));
        let weight = options.weight.as_ref().map(|key| view.key_of(key).ok_or_else(|| no_key(key))).transpose()?;
        let options = ProjectionOptions {
            vertices: mangrove_arrow::labels(view, &options.vertices)?,
            edges: mangrove_arrow::labels(view, &options.edges)?,
            orientation: if options.undirected { Orientation::Undirected } else { Orientation::Directed },
            weight,
            default_weight: options.default_weight.unwrap_or(1.0),
            names_edges: options.edge_ids,
        };
        let team = self.database().team_of(&Tenant::default(), threads)?;
        let projection = self.database().projections().projection(view, &options, &team)?;
        mangrove_arrow::csr(view, &projection, &mut self.account())
    }

    /// The account of columns while they are made. The caller gets them without a draw.
    fn account(&self) -> Draw {
        self.database().memory_budget().account(Purpose::Queries)
    }

    /// Inserts the elements of tables of record batches as writes of this transaction. An id that exists already is an error.
    ///
    /// # Errors
    ///
    /// As those of [`Database::load_arrow`], but for the empty graph.
    pub fn load_arrow(
        &self,
        tables: Vec<ArrowTable<'_>>,
        options: &LoadOptions,
        progress: &mut dyn FnMut(LoadProgress<'_>),
    ) -> Result<LoadReport> {
        self.load_tables(sources(tables)?, options, progress)
    }
}

impl Database {
    /// [`Transaction::vertex_table`] of the graph as it is when the call begins.
    ///
    /// # Errors
    ///
    /// As those of [`Transaction::vertex_table`].
    pub fn vertex_table(
        &self,
        columns: &ElementColumns,
        options: &ArrowOptions,
    ) -> Result<(SchemaRef, Vec<RecordBatch>)> {
        self.begin_read()?.vertex_table(columns, options)
    }

    /// [`Transaction::edge_table`] of the graph as it is when the call begins.
    ///
    /// # Errors
    ///
    /// As those of [`Transaction::vertex_table`].
    pub fn edge_table(
        &self,
        columns: &ElementColumns,
        options: &ArrowOptions,
    ) -> Result<(SchemaRef, Vec<RecordBatch>)> {
        self.begin_read()?.edge_table(columns, options)
    }

    /// [`Transaction::csr`] of the graph as it is when the call begins.
    ///
    /// # Errors
    ///
    /// As those of [`Transaction::csr`].
    pub fn csr(&self, options: &CsrOptions, threads: usize) -> Result<Csr> {
        self.begin_read()?.csr(options, threads)
    }

    /// Loads tables of record batches into the empty graph, which stays empty if the load fails. An edge may name vertices of any
    /// of the tables. Rejected rows are counted and reported as those of files, with numbers from 1 on. Of the options, those about
    /// files have no effect.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the graph is not empty, if a table does not have a column that is named, or if more rows are rejected
    /// than allowed; `Unsupported` if a column that is loaded has a type that cannot be.
    pub fn load_arrow(
        &self,
        tables: Vec<ArrowTable<'_>>,
        options: &LoadOptions,
        progress: &mut dyn FnMut(LoadProgress<'_>),
    ) -> Result<LoadReport> {
        self.load_tables(sources(tables)?, options, progress)
    }

    /// Loads tables of record batches into a graph that need not be empty and may be in use, as [`Database::upsert`] loads files.
    ///
    /// # Errors
    ///
    /// As those of [`Database::load_arrow`], but for the empty graph; and if vertices could not be recognized, or a key fits no
    /// table.
    pub fn upsert_arrow(
        &self,
        tables: Vec<ArrowTable<'_>>,
        options: &LoadOptions,
        keys: UpsertKeys,
        progress: &mut dyn FnMut(LoadProgress<'_>),
    ) -> Result<LoadReport> {
        self.upsert_tables(sources(tables)?, options, keys, progress)
    }
}

/// The tables for the loader.
fn sources(tables: Vec<ArrowTable<'_>>) -> Result<Vec<SourceTable<'_>>> {
    tables.into_iter().map(ArrowTable::into_source).collect()
}
