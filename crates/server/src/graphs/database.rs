//! The database as the server's [`Engine`].
//!
//! Each traversal source stands for a graph and an isolation level (`registry`). A light query runs on the worker
//! thread that took its request. A longer one moves to the executors of the process, where queries take turns, and the
//! worker passes its results on. Its tenant there is the caller (`engine::tenant`).
//!
//! Rights are checked here, on the plan, before it runs and again at the commit: a mutating traversal needs the role
//! `write`, whatever its request looked like. A [`QueryServices`] answers `call()` and checks the right of each
//! service.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mangrove::{
    Database, DatabaseOptions, FollowStatus, Isolation, MemoryBudget, QueryLimits, QueryOptions, ServicesHandle,
    Tenant, Transaction, TransactionOptions,
};
use mangrove_failpoint::{Point, reach};
use mangrove_graph::{Error, ErrorKind, Result, Value};
use mangrove_gremlin::Terminal;
use smol_str::SmolStr;

use crate::access::audit::{self, AuditedAct};
use crate::access::caller::{Access, Caller};
use crate::engine::contract::{ChangeReader, ChangesRequest, Engine, EngineTransaction, ResultSink};
use crate::engine::request::{Materialize, QueryRequest};
use crate::engine::running::{RunningQueries, RunningQuery, RunningQueryGuard};
use crate::engine::tenant::{TenantWeights, tenant_of};
use crate::graphs::redactor::DirectoryRedactor;
use crate::graphs::registry::{Graph, GraphOpener, GraphSource, Registry};
use crate::graphs::services::{self, EngineState, QueryServices};
use crate::metrics::graphs::MeteredGraph;
use crate::reloadable::Reloadable;
use crate::trace;

/// About how many bytes of a change feed are read at a time.
const CHANGES_BYTES: usize = 64 << 10;

/// The limits of the engine.
#[derive(Clone, Debug)]
pub struct EngineLimits {
    /// Bytes that one query may hold at a time.
    pub query_memory_bytes: u64,
    /// The most results of a query; `None` for no limit.
    pub result_count_max: Option<u64>,
    /// The most graphs of the server.
    pub graph_count_max: usize,
    /// A query that takes longer is logged with its plan; `None` to log none.
    pub slow_query: Option<Duration>,
    /// The weights by which tenants share the executors of the process.
    pub tenant_weights: TenantWeights,
}

impl Default for EngineLimits {
    fn default() -> Self {
        EngineLimits {
            query_memory_bytes: QueryLimits::default().memory_bytes,
            result_count_max: None,
            graph_count_max: 64,
            slow_query: None,
            tenant_weights: TenantWeights::default(),
        }
    }
}

/// Opens a graph with the default options.
fn open(directory: Option<&Path>, memory_limit: Option<u64>, budget: MemoryBudget) -> Result<Database> {
    let mut options = DatabaseOptions { memory_budget: budget, ..DatabaseOptions::default() };
    options.memory_limit_bytes = memory_limit.unwrap_or(options.memory_limit_bytes);
    Database::open(&directory.map_or("memory:".into(), |directory| directory.to_string_lossy()), &options)
}

/// The databases of a server, as its engine.
pub struct DatabaseEngine {
    state: Arc<EngineState>,
    limits: Reloadable<EngineLimits>,
    budget: MemoryBudget,
}

impl DatabaseEngine {
    /// An engine without graphs, whose queries may hold this many bytes each.
    pub fn new(query_memory_bytes: u64) -> Self {
        DatabaseEngine::with_limits(EngineLimits { query_memory_bytes, ..EngineLimits::default() })
    }

    /// An engine without graphs, with these limits.
    pub fn with_limits(limits: EngineLimits) -> Self {
        DatabaseEngine::drawing_on(MemoryBudget::unlimited(), limits)
    }

    /// An engine without graphs on a memory budget. The server draws on the budget for messages, and created graphs
    /// draw on it too. The caller opens the graphs that it adds with the same budget.
    pub fn drawing_on(budget: MemoryBudget, limits: EngineLimits) -> Self {
        let of_graphs = budget.clone();
        let open = move |directory: Option<&Path>, limit| open(directory, limit, of_graphs.clone());
        limits.tenant_weights.replace(&TenantWeights::default());
        let registry = Registry::new(limits.graph_count_max, Box::new(open));
        let state = Arc::new(EngineState { registry, queries: RunningQueries::default() });
        DatabaseEngine { state, limits: Reloadable::new(limits), budget }
    }

    /// Replaces the limits for queries that begin later. The limit on graphs stays as it is.
    pub fn set_limits(&self, limits: EngineLimits) {
        limits.tenant_weights.replace(&self.limits.get().tenant_weights);
        self.limits.set(limits);
    }

    /// Offers a database under the name of a traversal source, whose transactions are serializable. The graph has the
    /// same name.
    ///
    /// # Panics
    ///
    /// If there is a source of this name.
    #[must_use]
    pub fn source(self, name: impl Into<SmolStr>, database: Database) -> Self {
        self.source_with(name, database, Isolation::Serializable)
    }

    /// As [`DatabaseEngine::source`], at an isolation level.
    ///
    /// # Panics
    ///
    /// If there is a source of this name.
    #[must_use]
    pub fn source_with(self, name: impl Into<SmolStr>, database: Database, isolation: Isolation) -> Self {
        let name = name.into();
        self.graph(&name.clone(), database, [(name, isolation)]).expect("the caller gives each source once");
        self
    }

    /// Adds a graph with its sources.
    pub fn graph(
        &self,
        name: &str,
        database: Database,
        sources: impl IntoIterator<Item = (SmolStr, Isolation)>,
    ) -> Result<()> {
        self.state.registry.configure(name, database, sources)
    }

    /// Puts another copy of a graph in the place of the present one: what begins from now on begins there. A
    /// transaction or query that is open fails at its next read, with an error that tells its client to run it again.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no graph of this name.
    pub fn replace(&self, name: &str, database: Database) -> Result<()> {
        let before = self.state.registry.replace(name, database)?;
        before.database().replaced();
        Ok(())
    }

    /// Sets the function that opens created graphs, and the directory below which they live. Graphs that are there are
    /// opened now. Without a directory, created graphs live in memory.
    ///
    /// # Panics
    ///
    /// If the engine is in use already.
    pub fn create_graphs(&mut self, open: GraphOpener, directory: Option<PathBuf>) -> Result<()> {
        let state = Arc::get_mut(&mut self.state).expect("nothing has been asked of the engine yet");
        state.registry.open_with(open);
        directory.map_or(Ok(()), |directory| state.registry.keep_in(directory))
    }

    /// Each graph with its name.
    pub fn databases(&self) -> Vec<(SmolStr, Database)> {
        let graphs = self.state.registry.graphs().into_iter();
        graphs.map(|(graph, _)| (graph.name.clone(), graph.database().clone())).collect()
    }

    /// Each graph that a caller may read, once, with the name of its first source.
    fn graphs(&self, caller: &Caller) -> Vec<(SmolStr, Arc<Graph>)> {
        let mut graphs: Vec<(SmolStr, Arc<Graph>)> = Vec::new();
        for (graph, sources) in self.state.registry.graphs() {
            if let Some((name, _)) = sources.into_iter().next()
                && caller.access(&graph.name).is_some()
                && !graphs.iter().any(|(_, known)| known.database().is_same(graph.database()))
            {
                graphs.push((name, graph));
            }
        }
        graphs
    }

    fn work(&self, graph: Arc<Graph>) -> GraphWork {
        GraphWork { state: Arc::clone(&self.state), limits: self.limits.get(), graph }
    }
}

impl Engine for DatabaseEngine {
    fn sources(&self, caller: &Caller) -> Vec<SmolStr> {
        self.state.registry.sources(caller)
    }

    fn memory_budget(&self) -> MemoryBudget {
        self.budget.clone()
    }

    fn changes(&self, request: ChangesRequest, caller: &Caller) -> Result<ChangeReader> {
        let ChangesRequest { source, from, plain } = request;
        let graph = self.state.registry.find(&source, caller)?.graph;
        let changes = graph.database().changes(from);
        let changes = changes.map_err(|error| DirectoryRedactor::for_caller(caller, &graph).error(error))?;
        let mut changes = if plain { changes.plain() } else { changes };
        // Weak: a feed does not keep a dropped graph.
        let (state, caller, opened) = (Arc::clone(&self.state), caller.clone(), Arc::downgrade(&graph));
        let mut failed: Option<Error> = None;
        Ok(Box::new(move || {
            if let Some(error) = failed.take() {
                return Err(error);
            }
            // SERVER-4: a right that was taken away meanwhile counts.
            let graph = state.registry.find(&source, &caller.current()?)?.graph;
            if !std::sync::Weak::ptr_eq(&Arc::downgrade(&graph), &opened) {
                return Err(Error::new(
                    ErrorKind::Closed,
                    format!(
                        "the graph of the source `{source}` was dropped or loaded again; ask again from the last position"
                    ),
                ));
            }
            let (mut lines, mut bytes) = (Vec::new(), 0);
            while bytes < CHANGES_BYTES {
                let next = changes.next().map_err(|error| DirectoryRedactor::for_caller(&caller, &graph).error(error));
                match next {
                    Ok(Some(line)) => {
                        bytes += line.json.len();
                        lines.push(line);
                    }
                    Ok(None) => break,
                    // The lines before it are sent first.
                    Err(error) if !lines.is_empty() => {
                        failed = Some(error);
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
            Ok(lines)
        }))
    }

    fn begin(&self, source: &str, caller: &Caller) -> Result<Box<dyn EngineTransaction>> {
        let GraphSource { graph, isolation, .. } = self.state.registry.find(source, caller)?;
        // A second line of defense, in case a check of the plan ever misses a mutating step.
        let read_only = caller.access(&graph.name) < Some(Access::Write);
        let begun = graph.database().begin_with(TransactionOptions { isolation, read_only });
        let transaction = begun.map_err(|error| DirectoryRedactor::for_caller(caller, &graph).error(error))?;
        Ok(Box::new(DatabaseTransaction { transaction, work: self.work(graph), caller: caller.clone() }))
    }

    fn run(&self, request: &QueryRequest, sink: &mut dyn ResultSink) -> Result<()> {
        let GraphSource { graph, isolation, .. } = self.state.registry.find(&request.source, &request.caller)?;
        self.work(graph).run(request, sink, |graph, prepared, options, sink| {
            let (database, parameters) = (graph.database(), &request.parameters);
            if !prepared.is_mutating() {
                return database.run_shared(prepared, parameters, &options, &mut |batch| sink.accept(batch));
            }
            sink.hold();
            let transaction = database.begin_with(TransactionOptions { isolation, read_only: false })?;
            transaction.run_shared(prepared, parameters, &options, &mut |batch| sink.accept(batch))?;
            // SERVER-6: nothing but sending is left to fail after the commit.
            sink.seal()?;
            reach(Point::RequestSealed);
            // SERVER-4: a right that was taken away meanwhile counts.
            check_writer(graph, &request.caller.current()?)?;
            transaction.commit().map(drop)
        })
    }

    fn note_retry(&self, source: &str) {
        if let Ok(source) = self.state.registry.find(source, &Caller::anybody("")) {
            source.graph.database().note_retry();
        }
    }

    fn read_only(&self, caller: &Caller) -> Vec<(SmolStr, String)> {
        let cause = |(name, graph): (SmolStr, Arc<Graph>)| {
            let cause = read_only_cause(graph.database())?;
            Some((name, DirectoryRedactor::for_caller(caller, &graph).text(&cause).into_owned()))
        };
        self.graphs(caller).into_iter().filter_map(cause).collect()
    }

    fn following(&self, caller: &Caller) -> Vec<(SmolStr, FollowStatus)> {
        self.graphs(caller)
            .into_iter()
            .filter_map(|(name, graph)| Some((name, graph.database().following()?)))
            .collect()
    }

    fn running(&self, caller: &Caller) -> Vec<RunningQuery> {
        self.state.queries.seen_by(caller)
    }

    fn kill(&self, id: u64, caller: &Caller) -> Result<RunningQuery> {
        services::kill(&self.state.queries, id, caller)
    }

    fn metrics(&self, caller: &Caller) -> String {
        let graphs = self.state.registry.graphs();
        let readable = graphs.iter().filter(|(graph, _)| caller.access(&graph.name).is_some());
        let metered = readable.filter_map(|(graph, sources)| {
            Some(MeteredGraph {
                graph: &sources.first()?.0,
                database: graph.database(),
                meters: &graph.meters,
                running: self.state.queries.count_on(&graph.name),
            })
        });
        crate::metrics::graphs::exposition(&metered.collect::<Vec<_>>()) + &crate::metrics::executors::exposition()
    }
}

struct DatabaseTransaction {
    // Before the graph: a transaction is over before its database may be closed.
    transaction: Transaction,
    work: GraphWork,
    /// The caller that began it.
    caller: Caller,
}

impl EngineTransaction for DatabaseTransaction {
    fn run(&mut self, request: &QueryRequest, sink: &mut dyn ResultSink) -> Result<()> {
        self.work.run(request, sink, |_, prepared, options, sink| {
            if prepared.is_mutating() {
                sink.hold();
            }
            self.transaction.run_shared(prepared, &request.parameters, &options, &mut |batch| sink.accept(batch))
        })
    }

    fn write_mark(&self) -> usize {
        self.transaction.write_mark()
    }

    fn fail_since(&mut self, mark: usize, error: &Error) -> bool {
        self.transaction.fail_since(mark, error)
    }

    fn commit(self: Box<Self>, asking: &Caller) -> Result<()> {
        let DatabaseTransaction { transaction, work, caller } = *self;
        if transaction.write_mark() > 0 {
            let right = asking.current().and_then(|caller| check_writer(&work.graph, &caller));
            right.map_err(|error| error.and("the transaction was rolled back"))?;
        }
        transaction.commit().map(drop).map_err(|error| DirectoryRedactor::for_caller(&caller, &work.graph).error(error))
    }

    fn rollback(self: Box<Self>) {
        self.transaction.rollback();
    }
}

/// A graph, and the state and limits under which queries run on it.
struct GraphWork {
    state: Arc<EngineState>,
    limits: Arc<EngineLimits>,
    graph: Arc<Graph>,
}

impl GraphWork {
    /// Plans a query, checks its caller's right, and calls `run` with the plan under the server's limits.
    fn run(
        &self,
        request: &QueryRequest,
        sink: &mut dyn ResultSink,
        run: impl FnOnce(&Graph, &mangrove::Prepared, QueryOptions, &mut dyn ResultSink) -> Result<()>,
    ) -> Result<()> {
        let prepared = {
            let _span = tracing::debug_span!(target: trace::TARGET, "plan").entered();
            prepare(self.graph.database(), request)?
        };
        if prepared.is_mutating() {
            check_writer(&self.graph, &request.caller)?;
        }
        let tenant = tenant_of(&request.caller, &self.graph.name, prepared.tenant())?;
        let guard = self.state.queries.begin(request, &self.graph.name, tenant.clone());
        let mut limited = LimitedSink { sink, left: self.limits.result_count_max, max: self.limits.result_count_max };
        let span = tracing::debug_span!(target: trace::TARGET, "execute", graph = %self.graph.name).entered();
        let outcome = run(&self.graph, &prepared, self.options(request, &prepared, tenant, &guard), &mut limited);
        drop(span);
        // The engine only reports the cancellation; the reason is known here.
        let outcome = outcome.map_err(|error| request.cancellation.explain(error.into()).error);
        self.graph.meters.ended(prepared.is_mutating(), guard.elapsed(), &outcome);
        self.note_slowness(request, &guard, &outcome);
        // SERVER-10: the path of the directory is for administrators.
        outcome.map_err(|error| DirectoryRedactor::for_caller(&request.caller, &self.graph).error(error))
    }

    fn options(
        &self,
        request: &QueryRequest,
        prepared: &mangrove::Prepared,
        tenant: Tenant,
        guard: &RunningQueryGuard<'_>,
    ) -> QueryOptions {
        let time_nanos = request.timeout.map(|limit| u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX));
        let services = prepared.calls_services().then(|| QueryServices {
            state: Arc::clone(&self.state),
            graph: Arc::clone(&self.graph),
            caller: request.caller.clone(),
            tenant: tenant.clone(),
        });
        QueryOptions {
            limits: QueryLimits { time_nanos, memory_bytes: self.limits.query_memory_bytes },
            materialize: match request.materialize {
                Materialize::All => mangrove::Materialize::Properties,
                Materialize::Tokens => mangrove::Materialize::Tokens,
            },
            cancel: request.cancel.clone(),
            tenant,
            gauges: Some(Arc::clone(guard.gauges())),
            services: services.map(|services| ServicesHandle(Arc::new(services))),
            ..QueryOptions::default()
        }
    }

    /// Logs a slow query with its plan.
    fn note_slowness(&self, request: &QueryRequest, guard: &RunningQueryGuard<'_>, outcome: &Result<()>) {
        let Some(threshold) = self.limits.slow_query else { return };
        let elapsed = guard.elapsed();
        if elapsed < threshold {
            return;
        }
        self.graph.meters.slow();
        let plan = mangrove::Prepared::new(&request.bytecode, Terminal::Explain)
            .and_then(|question| self.graph.database().run(&question, &request.parameters)?.collect())
            .map_or_else(|error| error.to_string(), |rows: Vec<Value>| rows.iter().map(text).collect());
        tracing::warn!(
            target: "mangrove_slow_query",
            user = request.caller.name(),
            graph = %self.graph.name,
            source = %request.source,
            milliseconds = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            outcome = outcome.as_ref().err().map_or("done", Error::message),
            query = audit::shortened(&request.bytecode.to_string()),
            plan,
            "slow query"
        );
    }
}

/// The cause for which a graph takes no writes, if it takes none.
fn read_only_cause(database: &Database) -> Option<String> {
    // A follower is not meant to take writes.
    let durability = database.durability().filter(|_| database.following().is_none());
    let of_log = durability.and_then(|durability| durability.read_only_cause());
    of_log.or_else(|| database.check_memory().err().map(|error| error.message().to_owned()))
}

/// Refuses a caller without the right to write to a graph, and logs that. A caller that sees a graph may read it.
fn check_writer(graph: &Graph, caller: &Caller) -> Result<()> {
    let graph = &graph.name;
    let right = caller.require(graph, Access::Write, "a traversal with a mutating step");
    right.inspect_err(|error| audit::note(caller, AuditedAct::Query { graph }, Some(error)))
}

/// A text as it is; every other value as an empty text.
fn text(value: &Value) -> &str {
    match value {
        Value::String(text) => text,
        _ => "",
    }
}

/// A sink that enforces the limit on results.
struct LimitedSink<'a> {
    sink: &'a mut dyn ResultSink,
    left: Option<u64>,
    max: Option<u64>,
}

impl ResultSink for LimitedSink<'_> {
    fn accept(&mut self, results: Vec<(Value, u64)>) -> Result<()> {
        self.count(&results)?;
        self.sink.accept(results)
    }

    fn hold(&mut self) {
        self.sink.hold();
    }

    fn seal(&mut self) -> Result<()> {
        self.sink.seal()
    }
}

impl LimitedSink<'_> {
    /// Counts results. Fails when they exceed the limit.
    fn count(&mut self, batch: &[(Value, u64)]) -> Result<()> {
        let (Some(left), Some(max)) = (&mut self.left, self.max) else { return Ok(()) };
        let count = batch.iter().map(|(_, bulk)| *bulk).fold(0, u64::saturating_add);
        match left.checked_sub(count) {
            Some(rest) => {
                *left = rest;
                Ok(())
            }
            None => Err(Error::new(
                ErrorKind::MemoryLimit,
                format!(
                    "the query has more than {max} results; ask for fewer with limit(), or raise the limit \
                     result_count_max"
                ),
            )),
        }
    }
}

/// The plan of a request. Drivers repeat the same traversals, so plans are cached.
fn prepare(database: &Database, request: &QueryRequest) -> Result<mangrove::Prepared> {
    if request.explain {
        return mangrove::Prepared::new(&request.bytecode, Terminal::Explain);
    }
    database.prepare_bytecode(&request.bytecode)
}
