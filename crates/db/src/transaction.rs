//! A transaction: Gremlin and the typed interface over one snapshot.
//!
//! - **DB-7.** If a request fails or panics after it has begun to write, the whole transaction is rolled back before
//!   the request returns. If it has written nothing, the transaction continues.

use std::path::PathBuf;
use std::sync::Arc;

use mangrove_graph::{EdgeId, Error, GraphView, LabelSetId, Result, UserId, Value, VertexId};
use mangrove_gremlin::Parameters;
use mangrove_load::SourceTable;
use mangrove_steps::{Files, Services};
use mangrove_txn::{CommitInfo, ShardHandle};

use crate::bulk::{LoadOptions, LoadProgress, LoadReport};
use crate::load_sink::TransactionSink;
use crate::options::QueryOptions;
use crate::query::caller_time::{self, CallerTime};
use crate::query::execution::Execution;
use crate::query::helpers::{ExecutorSource, Helping};
use crate::query::instance::PlannedQuery;
use crate::query::prepared::{AnswerKind, GraphToPlan, Prepared};
use crate::query::profile::{PlanningFigures, add_planning};
use crate::query::settings::RunSettings;
use crate::query::shared;
use crate::query::stream::ResultStream;
use crate::state::Database;
use crate::trace::TRACE_TARGET;

/// A transaction. Dropping it rolls it back.
///
/// It reads one snapshot of the graph and its own writes. Every typed write is a statement of its own: the next read
/// sees it. After a conflict ([`mangrove_graph::Remedy::RetryTransaction`]) the transaction is over; run it again from
/// its beginning.
///
/// A request is a query, a script, a typed write or a load. If one fails before it has written anything, the
/// transaction goes on as it was. If it fails after that, for whatever reason, the transaction is rolled back at once:
/// every later call, [`Transaction::commit`] included, fails with [`mangrove_graph::ErrorKind::Closed`] and names the
/// first error.
///
/// Typed reads are those of [`GraphView`], by batches:
///
/// ```
/// use mangrove::{Database, Direction, ExpandCursor, ExpandRequest, Expansion, GraphView, LabelFilter};
///
/// # fn main() -> mangrove::Result<()> {
/// let db = Database::in_memory();
/// let knows = db.catalog().intern_label_text("knows");
/// let person = db.catalog().intern_label_text("person");
///
/// let tx = db.begin()?;
/// let people = tx.insert_vertices(person, &[1.into(), 2.into(), 3.into()])?;
/// tx.insert_edges(knows, &[(people[0], people[1]), (people[0], people[2])])?;
/// tx.commit()?;
///
/// let tx = db.begin_read()?;
/// let request = ExpandRequest { direction: Direction::Out, labels: LabelFilter::Any, edges: false, limit: 1024 };
/// let (mut cursor, mut found) = (ExpandCursor::default(), Expansion::default());
/// tx.view().expand(&people, &request, &mut cursor, &mut found)?;
/// assert_eq!(found.row, vec![0, 0]);
/// # Ok(())
/// # }
/// ```
pub struct Transaction {
    database: ShardHandle<Database>,
    transaction: Arc<mangrove_txn::Transaction>,
    /// See [`RunSettings::view`].
    read_instead: Option<Arc<dyn GraphView>>,
}

impl Transaction {
    pub(crate) fn new(database: ShardHandle<Database>, transaction: mangrove_txn::Transaction) -> Self {
        Transaction { database, transaction: Arc::new(transaction), read_instead: None }
    }

    /// The database that the transaction belongs to.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// The read timestamp: the snapshot has the commits up to it, and no later ones. A serializable transaction that
    /// may write can have read later commits before its own commit.
    pub fn begin_ts(&self) -> u64 {
        self.transaction.begin_ts()
    }

    /// The graph as the transaction sees it now.
    pub fn view(&self) -> &dyn GraphView {
        &*self.transaction
    }

    /// Parses and runs a Gremlin traversal.
    pub fn query(&self, text: &str) -> Result<ResultStream> {
        self.run(&self.database.prepare(text)?, &Parameters::new())
    }

    /// Runs a prepared traversal.
    pub fn run(&self, prepared: &Prepared, parameters: &Parameters) -> Result<ResultStream> {
        self.run_with(prepared, parameters, self.database.options())
    }

    /// Runs a request that may write. If it fails or panics, the transaction is rolled back as DB-7 says.
    pub(crate) fn whole<T>(&self, request: impl FnOnce() -> Result<T>) -> Result<T> {
        let running = RunningRequest { transaction: &self.transaction, mark: self.write_mark() };
        request().inspect_err(|error| {
            self.fail_since(running.mark, error);
        })
    }

    /// The number of writes so far, for [`Transaction::fail_since`].
    pub fn write_mark(&self) -> usize {
        self.transaction.write_mark()
    }

    /// Reports that a request of several calls has failed. `mark` is the write mark at its beginning. If the
    /// transaction has written since, it is rolled back. Returns true if it is rolled back for a failed request.
    pub fn fail_since(&self, mark: usize, error: &Error) -> bool {
        self.transaction.fail_since(mark, error)
    }

    /// Fails with `ReadOnly` before anything is written if this process follows the owner of the graph.
    pub(crate) fn check_writable(&self) -> Result<()> {
        self.database.inner.manager.check_writable()
    }

    /// Runs a prepared traversal. One that writes is run to its end before this returns.
    pub fn run_with(
        &self,
        prepared: &Prepared,
        parameters: &Parameters,
        options: &QueryOptions,
    ) -> Result<ResultStream> {
        if prepared.is_mutating() || !matches!(prepared.answer(), AnswerKind::Results) {
            return self.run_kept(prepared, parameters, options).map(ResultStream::finished);
        }
        Ok(ResultStream::new(self.execution(prepared, parameters, options, false)?, options.materialize))
    }

    /// Runs a prepared traversal to its end. Returns its results, each with the number of times that it occurs. The
    /// query is charged for them as long as it runs.
    pub(crate) fn run_kept(
        &self,
        prepared: &Prepared,
        parameters: &Parameters,
        options: &QueryOptions,
    ) -> Result<Vec<(Value, u64)>> {
        if let Some(answer) = self.answer_about(prepared, parameters, options)? {
            return Ok(vec![(answer, 1)]);
        }
        let run = || {
            let execution = self.execution(prepared, parameters, options, false)?.keeping_results(true);
            ResultStream::new(execution, options.materialize).collect_bulked()
        };
        if prepared.is_mutating() { self.check_writable().and_then(|()| self.whole(run)) } else { run() }
    }

    /// Runs a prepared traversal and passes its results to `accept`, a batch at a time: values with the number of times
    /// that each occurs. The query begins on this thread and continues on the executors if it is not
    /// over soon. When this returns, the query has ended (DB-6).
    pub fn run_shared(
        &self,
        prepared: &Prepared,
        parameters: &Parameters,
        options: &QueryOptions,
        accept: &mut dyn FnMut(Vec<(Value, u64)>) -> Result<()>,
    ) -> Result<()> {
        self.run_on_executors(prepared, parameters, options, false, accept)
    }

    /// As [`Transaction::run_shared`], but `accept` keeps the results, which the query is charged for.
    pub(crate) fn run_shared_keeping(
        &self,
        prepared: &Prepared,
        parameters: &Parameters,
        options: &QueryOptions,
        accept: &mut dyn FnMut(Vec<(Value, u64)>) -> Result<()>,
    ) -> Result<()> {
        self.run_on_executors(prepared, parameters, options, true, accept)
    }

    fn run_on_executors(
        &self,
        prepared: &Prepared,
        parameters: &Parameters,
        options: &QueryOptions,
        keeps_results: bool,
        accept: &mut dyn FnMut(Vec<(Value, u64)>) -> Result<()>,
    ) -> Result<()> {
        if let Some(answer) = self.answer_about(prepared, parameters, options)? {
            return accept(vec![(answer, 1)]);
        }
        let mut run = || {
            let execution = self.execution(prepared, parameters, options, false)?;
            let mut execution = execution.keeping_results(keeps_results);
            let messages = if execution.begins_on_executor() { 0 } else { options.inline_messages };
            let mut time = CallerTime::default();
            let outcome = execution.run_inline(messages, &mut time, options.materialize, accept);
            let to_pay = time.to_pay();
            drop(time);
            if messages > 0 {
                let tenant = prepared.tenant_of(options);
                let moves = matches!(outcome, Ok(false));
                caller_time::pay(&tenant, to_pay, moves, |tenant, nanos| self.database.owe(tenant, nanos));
            }
            match outcome {
                Ok(true) => Ok(()),
                Ok(false) => {
                    let (executors, budget) = (self.database.executors()?, self.database.memory_budget());
                    shared::run(&executors, &prepared.tenant_of(options), options, execution, budget, accept)
                }
                Err(error) => {
                    let remains = execution.end();
                    if remains.are_large() {
                        self.database.executors()?.discard(remains);
                    }
                    Err(error)
                }
            }
        };
        if prepared.is_mutating() { self.check_writable().and_then(|()| self.whole(run)) } else { run() }
    }

    /// Runs a prepared traversal over several virtual nodes in this process, with every message between them
    /// serialized. The answers are those of [`Transaction::run`]; `seed` shuffles the order in which messages arrive.
    /// A traversal that writes or shares side effects runs on one node.
    #[cfg(feature = "virtual-nodes")]
    pub fn run_on_nodes(
        &self,
        prepared: &Prepared,
        parameters: &Parameters,
        options: &QueryOptions,
        count: u16,
        seed: Option<u64>,
    ) -> Result<Vec<(Value, u64)>> {
        let planned = self.plan(prepared)?;
        if planned.plan.pinned || count <= 1 {
            return self.run_with(prepared, parameters, options)?.collect_bulked();
        }
        crate::nodes::run(
            &planned.plan,
            &self.settings(prepared, parameters, options),
            count,
            seed,
            options.materialize,
        )
    }

    /// Runs a prepared traversal over virtual nodes on threads. The answers are those of [`Transaction::run`]. Also
    /// returns the number of turns in which a thread ran a node of another one. Fails for a traversal that writes or
    /// shares side effects, because it has to run on one node.
    #[cfg(feature = "virtual-nodes")]
    pub fn run_on_threads(
        &self,
        prepared: &Prepared,
        parameters: &Parameters,
        options: &QueryOptions,
        threads: &crate::NodeThreads,
    ) -> Result<(Vec<(Value, u64)>, u64)> {
        let planned = self.plan(prepared)?;
        if planned.plan.pinned {
            return Err(Error::invalid("a traversal that writes or shares side effects runs on one node"));
        }
        let settings = self.settings(prepared, parameters, options);
        crate::nodes::run_threaded(&planned.plan, &settings, threads, options.materialize)
    }

    /// Runs a prepared traversal with helpers that take turns on this thread, in an order that the seed chooses. The
    /// answers are those of [`Transaction::run`]. A traversal that writes or shares side effects runs without helpers.
    #[cfg(feature = "virtual-nodes")]
    pub fn run_helped(
        &self,
        prepared: &Prepared,
        parameters: &Parameters,
        options: &QueryOptions,
        seed: u64,
    ) -> Result<Vec<(Value, u64)>> {
        let planned = self.plan(prepared)?;
        if planned.plan.pinned {
            return self.run_with(prepared, parameters, options)?.collect_bulked();
        }
        let settings = self.settings(prepared, parameters, options);
        crate::nodes::run_helped(&planned.plan, &settings, seed, options.materialize)
    }

    /// Runs a prepared traversal, which must not write, over another view of the same snapshot
    /// ([`Transaction::read_instead`]), with helpers as in [`Transaction::run_helped`]. The seed also chooses when reads
    /// are completed.
    #[cfg(feature = "virtual-nodes")]
    pub fn run_late(
        &self,
        prepared: &Prepared,
        parameters: &Parameters,
        options: &QueryOptions,
        reader: &mangrove_virtual_nodes::LateReader,
        seed: u64,
    ) -> Result<Vec<(Value, u64)>> {
        let planned = self.plan(prepared)?;
        let settings = self.settings(prepared, parameters, options);
        crate::nodes::run_late(&planned.plan, &settings, reader, seed, options.materialize)
    }

    /// From now on, runs in this transaction read the view that `make` returns for its own. The two must show the same.
    #[cfg(feature = "virtual-nodes")]
    pub fn read_instead(&mut self, make: impl FnOnce(Arc<dyn GraphView>) -> Arc<dyn GraphView>) {
        self.read_instead = Some(make(self.transaction.clone()));
    }

    /// The answer to `explain()` or `profile()`; `None` if the client wants the results of the traversal.
    fn answer_about(
        &self,
        prepared: &Prepared,
        parameters: &Parameters,
        options: &QueryOptions,
    ) -> Result<Option<Value>> {
        match prepared.answer() {
            AnswerKind::Results => Ok(None),
            AnswerKind::Explain => Ok(Some(Value::from(self.explain(prepared)?))),
            AnswerKind::Profile => {
                // The measured traversal is run to its end and may write.
                self.whole(|| {
                    let clock = self.database.clock();
                    let begun = clock.now_nanos();
                    let has_statistics = self.plan(prepared)?.has_statistics();
                    let nanos = clock.now_nanos() - begun;
                    let statistics = if has_statistics { self.database.dated_statistics() } else { None };
                    let execution = self.execution(prepared, parameters, options, true)?;
                    let mut metrics = ResultStream::new(execution, options.materialize).into_profile()?;
                    add_planning(&mut metrics, &PlanningFigures { nanos, statistics });
                    Ok(Some(match prepared.has_metrics_as_map() {
                        true => metrics.to_map(),
                        false => Value::TraversalMetrics(metrics.into()),
                    }))
                })
            }
        }
    }

    /// The plan of a prepared traversal for what this transaction sees.
    pub(crate) fn plan(&self, prepared: &Prepared) -> Result<Arc<PlannedQuery>> {
        let inner = &self.database.inner;
        prepared.plan(&GraphToPlan {
            database: &inner.identity,
            statistics: &|| self.database.statistics(),
            manager: &inner.manager,
            view: self.view(),
            ids: self.database.id_rule(),
        })
    }

    /// That plan as text.
    pub(crate) fn explain(&self, prepared: &Prepared) -> Result<String> {
        Ok(prepared.explain(&*self.plan(prepared)?))
    }

    /// The inputs of a run of a prepared traversal in this transaction.
    fn settings<'a>(
        &'a self,
        prepared: &'a Prepared,
        parameters: &'a Parameters,
        options: &'a QueryOptions,
    ) -> RunSettings<'a> {
        RunSettings {
            parameters,
            lifted: prepared.lifted(),
            transaction: &self.transaction,
            view: self.read_instead.as_ref(),
            ids: self.database.id_rule(),
            limits: prepared.limits(options),
            budget: self.database.memory_budget(),
            clock: self.database.clock(),
            cancel: &options.cancel,
            interrupt: options.interrupt.as_ref(),
            services: prepared.calls_services().then(|| match &options.services {
                Some(services) => services.0.clone(),
                None => Arc::new(Database::clone(&self.database)) as Arc<dyn Services>,
            }),
            files: prepared.uses_files().then(|| self.database.inner.files() as Arc<dyn Files>),
            workers_max: prepared.workers_max(options),
            materialize: options.materialize,
        }
    }

    /// Plans a prepared traversal and starts its run; `timed` measures its operators.
    fn execution(
        &self,
        prepared: &Prepared,
        parameters: &Parameters,
        options: &QueryOptions,
        timed: bool,
    ) -> Result<Execution> {
        let planned = self.plan(prepared)?;
        if planned.plan.mutating && self.transaction.is_read_only() {
            return Err(Error::invalid("this transaction is read-only; begin one that may write"));
        }
        // Several threads may read in one transaction (TXN-11).
        let may_help = planned.plan.reason_for_one_thread().is_none();
        let execution = Execution::start(planned, &self.settings(prepared, parameters, options), timed)?;
        let execution = execution.shown_in(options.gauges.clone());
        if !may_help {
            return Ok(execution);
        }
        let inner = &self.database.inner;
        let source = inner.has_own_executors().then(|| inner.clone() as Arc<dyn ExecutorSource>);
        Ok(execution.helped_by(Helping {
            source,
            workers_max: prepared.workers_max(options),
            tenant: prepared.tenant_of(options),
            gauges: options.gauges.clone(),
        }))
    }

    /// Inserts vertices with these ids. Returns them in the order of the ids.
    pub fn insert_vertices(&self, labels: LabelSetId, ids: &[UserId]) -> Result<Vec<VertexId>> {
        self.write(|transaction| ids.iter().map(|id| transaction.insert_vertex(labels, Some(id.clone()))).collect())
    }

    /// Inserts a vertex; without an id, the database chooses one.
    pub fn insert_vertex(&self, labels: LabelSetId, id: Option<UserId>) -> Result<VertexId> {
        self.write(|transaction| transaction.insert_vertex(labels, id))
    }

    /// Inserts edges of one label, given by source and target. Returns them in the order of `ends`.
    pub fn insert_edges(&self, label: LabelSetId, ends: &[(VertexId, VertexId)]) -> Result<Vec<EdgeId>> {
        self.write(|transaction| transaction.insert_edges(ends, label))
    }

    /// Sets a property of each of these vertices to the value beside it, which replaces all old values.
    pub fn set_vertex_property(&self, key: &str, values: &[(VertexId, Value)]) -> Result<()> {
        self.check_writable()?;
        let key = self.view().catalog().intern_key(key);
        self.write(|transaction| transaction.set_vertex_properties(key, values))
    }

    /// Sets a property of each of these edges to the value beside it.
    pub fn set_edge_property(&self, key: &str, values: &[(EdgeId, Value)]) -> Result<()> {
        self.check_writable()?;
        let key = self.view().catalog().intern_key(key);
        self.write(|transaction| {
            values.iter().try_for_each(|(edge, value)| transaction.set_edge_property(*edge, key, value.clone()))
        })
    }

    /// Removes all values of a property of vertices.
    pub fn remove_vertex_property(&self, key: &str, vertices: &[VertexId]) -> Result<()> {
        let Some(key) = self.view().key_of(key) else { return Ok(()) };
        self.write(|transaction| vertices.iter().try_for_each(|v| transaction.remove_vertex_property(*v, key, None)))
    }

    /// Removes a property of edges.
    pub fn remove_edge_property(&self, key: &str, edges: &[EdgeId]) -> Result<()> {
        let Some(key) = self.view().key_of(key) else { return Ok(()) };
        self.write(|transaction| edges.iter().try_for_each(|e| transaction.remove_edge_property(*e, key)))
    }

    /// Deletes vertices with their edges.
    pub fn delete_vertices(&self, vertices: &[VertexId]) -> Result<()> {
        self.write(|transaction| vertices.iter().try_for_each(|v| transaction.delete_vertex(*v)))
    }

    /// Deletes edges.
    pub fn delete_edges(&self, edges: &[EdgeId]) -> Result<()> {
        self.write(|transaction| edges.iter().try_for_each(|e| transaction.delete_edge(*e)))
    }

    /// Runs a typed write as one statement. The next read sees it.
    fn write<T>(&self, write: impl FnOnce(&mangrove_txn::Transaction) -> Result<T>) -> Result<T> {
        self.whole(|| {
            let value = write(&self.transaction)?;
            self.transaction.finish_statement()?;
            Ok(value)
        })
    }

    /// Inserts the elements of files as writes of this transaction. Fails for an id that exists already.
    pub fn load(&self, files: &[PathBuf], options: &LoadOptions) -> Result<LoadReport> {
        self.whole(|| mangrove_load::load(files, options, &mut TransactionSink::new(&self.transaction), &mut |_| {}))
    }

    /// Inserts the elements of tables that the program hands over as writes of this transaction. Fails for an id that exists
    /// already.
    pub fn load_tables(
        &self,
        tables: Vec<SourceTable<'_>>,
        options: &LoadOptions,
        progress: &mut dyn FnMut(LoadProgress<'_>),
    ) -> Result<LoadReport> {
        let options = &LoadOptions { upsert: None, ..options.clone() };
        let sink = &mut TransactionSink::new(&self.transaction);
        self.whole(|| mangrove_load::load_tables(tables, options, sink, progress))
    }

    /// Makes all writes visible at once. If results are still being read, the transaction is rolled back instead.
    pub fn commit(self) -> Result<CommitInfo> {
        let transaction = Arc::try_unwrap(self.transaction).map_err(|held| {
            held.roll_back_now();
            Error::invalid(
                "results of this transaction are still being read, so it was rolled back; read or drop them before \
                 committing",
            )
        })?;
        let _span = tracing::debug_span!(target: TRACE_TARGET, "commit").entered();
        transaction.commit()
    }

    /// Undoes all writes. If results are still being read and the transaction has written, their next batch fails.
    pub fn rollback(self) {
        self.transaction.roll_back_now();
    }
}

/// A request that may write, while it runs.
struct RunningRequest<'a> {
    transaction: &'a mangrove_txn::Transaction,
    mark: usize,
}

impl Drop for RunningRequest<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // A panic passes the error handling of `whole`, so DB-7 is kept here.
            self.transaction.fail_since(self.mark, &Error::bug("it panicked"));
        }
    }
}

#[cfg(test)]
mod tests;
