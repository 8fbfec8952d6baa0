//! The database as the server's [`Engine`].
//!
//! Each traversal source stands for a graph and an isolation level ([`crate::registry`]). A light query runs on the worker
//! that took its request; one that is not over soon goes on on the database's own executors, where many take turns and a
//! short one does not wait for a long one, and the worker takes the results.
//!
//! What a caller may do is decided here, on the plan: a traversal that writes takes the role for it, whatever it looks
//! like on the wire, when it begins and again when it commits; `call()` is answered by a [`Desk`], which decides for each service.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mangrove::{
    Database, DatabaseOptions, Isolation, MemoryBudget, QueryLimits, QueryOptions, ServiceDesk, Transaction,
    TransactionOptions,
};
use mangrove_failpoint::{Point, reach};
use mangrove_graph::{Error, ErrorKind, Result, Value};
use mangrove_gremlin::Terminal;
use smol_str::SmolStr;

use crate::access::{Access, Caller};
use crate::audit::{self, Act};
use crate::engine::{Engine, EngineTransaction, Materialize, QueryRequest, ResultSink};
use crate::live::Live;
use crate::metrics::Metered;
use crate::places::Places;
use crate::queries::{Guard, Queries, Running};
use crate::registry::{Graph, Opener, Registry, Source};
use crate::services::{self, Desk, Hub};
use crate::trace;

/// What an engine allows.
#[derive(Clone, Debug)]
pub struct EngineLimits {
    /// What one query may hold at a time, in bytes.
    pub query_memory_bytes: u64,
    /// How many results a query may have; `None` for no limit.
    pub result_count_max: Option<u64>,
    /// How many graphs there may be.
    pub graph_count_max: usize,
    /// A query that takes longer is logged with its plan; `None`: none is.
    pub slow_query: Option<Duration>,
}

impl Default for EngineLimits {
    fn default() -> Self {
        EngineLimits {
            query_memory_bytes: QueryLimits::default().memory_bytes,
            result_count_max: None,
            graph_count_max: 64,
            slow_query: None,
        }
    }
}

/// Opens a graph as it is opened where nobody says more.
fn open(directory: Option<&Path>, memory_limit: Option<u64>, budget: MemoryBudget) -> Result<Database> {
    let mut options = DatabaseOptions { memory_budget: budget, ..DatabaseOptions::default() };
    options.memory_limit_bytes = memory_limit.unwrap_or(options.memory_limit_bytes);
    Database::open(&directory.map_or("memory:".into(), |directory| directory.to_string_lossy()), &options)
}

/// Databases behind a server.
pub struct DatabaseEngine {
    hub: Arc<Hub>,
    limits: Live<EngineLimits>,
    budget: MemoryBudget,
}

impl DatabaseEngine {
    /// No source yet; a query may hold so many bytes at a time.
    pub fn new(query_memory_bytes: u64) -> Self {
        DatabaseEngine::with_limits(EngineLimits { query_memory_bytes, ..EngineLimits::default() })
    }

    /// No source yet.
    pub fn with_limits(limits: EngineLimits) -> Self {
        DatabaseEngine::drawing_on(MemoryBudget::unlimited(), limits)
    }

    /// No source yet. The server draws on this budget for messages, and so do graphs that are created; who adds a graph opens
    /// it with the same budget.
    pub fn drawing_on(budget: MemoryBudget, limits: EngineLimits) -> Self {
        let of_graphs = budget.clone();
        let open = move |directory: Option<&Path>, limit| open(directory, limit, of_graphs.clone());
        let registry = Registry::new(limits.graph_count_max, Box::new(open));
        let hub = Arc::new(Hub { registry, queries: Queries::default() });
        DatabaseEngine { hub, limits: Live::new(limits), budget }
    }

    /// Changes what queries that begin after that may take. How many graphs there may be stays as it is.
    pub fn set_limits(&self, limits: EngineLimits) {
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
        self.hub.registry.configure(name, database, sources)
    }

    /// How graphs that administrators create are opened, and the directory below which they are kept; those that are
    /// there are opened now. Without a directory they live in memory.
    ///
    /// # Panics
    ///
    /// If the engine is in use already.
    pub fn create_graphs(&mut self, open: Opener, directory: Option<PathBuf>) -> Result<()> {
        let hub = Arc::get_mut(&mut self.hub).expect("nothing has been asked of the engine yet");
        hub.registry.open_with(open);
        directory.map_or(Ok(()), |directory| hub.registry.keep_in(directory))
    }

    /// Each graph with its name.
    pub fn databases(&self) -> Vec<(SmolStr, Database)> {
        let graphs = self.hub.registry.graphs().into_iter();
        graphs.map(|(graph, _)| (graph.name.clone(), graph.database().clone())).collect()
    }

    /// Each graph that a caller may read, once, with the name of its first source.
    fn graphs(&self, caller: &Caller) -> Vec<(SmolStr, Arc<Graph>)> {
        let mut graphs: Vec<(SmolStr, Arc<Graph>)> = Vec::new();
        for (graph, sources) in self.hub.registry.graphs() {
            if let Some((name, _)) = sources.into_iter().next()
                && caller.access(&graph.name).is_some()
                && !graphs.iter().any(|(_, known)| known.database().is_same(graph.database()))
            {
                graphs.push((name, graph));
            }
        }
        graphs
    }

    fn work(&self, graph: Arc<Graph>) -> Work {
        Work { hub: Arc::clone(&self.hub), limits: self.limits.get(), graph }
    }
}

impl Engine for DatabaseEngine {
    fn sources(&self, caller: &Caller) -> Vec<SmolStr> {
        self.hub.registry.sources(caller)
    }

    fn memory_budget(&self) -> MemoryBudget {
        self.budget.clone()
    }

    fn begin(&self, source: &str, caller: &Caller) -> Result<Box<dyn EngineTransaction>> {
        let Source { graph, isolation, .. } = self.hub.registry.find(source, caller)?;
        // A second look at who may write, should the first one ever miss a way to do it.
        let read_only = caller.access(&graph.name) < Some(Access::Write);
        let begun = graph.database().begin_with(TransactionOptions { isolation, read_only });
        let transaction = begun.map_err(|error| Places::told(caller, &graph).error(error))?;
        Ok(Box::new(DatabaseTransaction { transaction, work: self.work(graph), caller: caller.clone() }))
    }

    fn run(&self, request: &QueryRequest, sink: &mut dyn ResultSink) -> Result<()> {
        let Source { graph, isolation, .. } = self.hub.registry.find(&request.source, &request.caller)?;
        self.work(graph).run(request, sink, |graph, prepared, options, sink| {
            let (database, parameters) = (graph.database(), &request.parameters);
            if !prepared.is_mutating() {
                return database.run_shared(prepared, parameters, &options, &mut |batch| sink.accept(batch));
            }
            sink.hold();
            let transaction = database.begin_with(TransactionOptions { isolation, read_only: false })?;
            transaction.run_shared(prepared, parameters, &options, &mut |batch| sink.accept(batch))?;
            sink.seal()?;
            reach(Point::RequestSealed);
            check_writer(graph, &request.caller.current()?)?;
            transaction.commit().map(drop)
        })
    }

    fn note_retry(&self, source: &str) {
        if let Ok(source) = self.hub.registry.find(source, &Caller::anybody("")) {
            source.graph.database().note_retry();
        }
    }

    fn read_only(&self, caller: &Caller) -> Vec<(SmolStr, String)> {
        let cause = |(name, graph): (SmolStr, Arc<Graph>)| {
            let cause = read_only_cause(graph.database())?;
            Some((name, Places::told(caller, &graph).text(&cause).into_owned()))
        };
        self.graphs(caller).into_iter().filter_map(cause).collect()
    }

    fn running(&self, caller: &Caller) -> Vec<Running> {
        self.hub.queries.seen_by(caller)
    }

    fn kill(&self, id: u64, caller: &Caller) -> Result<Running> {
        services::kill(&self.hub.queries, id, caller)
    }

    fn metrics(&self, caller: &Caller) -> String {
        let graphs = self.hub.registry.graphs();
        let readable = graphs.iter().filter(|(graph, _)| caller.access(&graph.name).is_some());
        let metered = readable.filter_map(|(graph, sources)| {
            Some(Metered {
                graph: &sources.first()?.0,
                database: graph.database(),
                meters: &graph.meters,
                running: self.hub.queries.count_on(&graph.name),
            })
        });
        crate::metrics::exposition(&metered.collect::<Vec<_>>())
    }
}

struct DatabaseTransaction {
    // Before the graph: a transaction is over before its database may be closed.
    transaction: Transaction,
    work: Work,
    /// Who began it.
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
        transaction.commit().map(drop).map_err(|error| Places::told(&caller, &work.graph).error(error))
    }

    fn rollback(self: Box<Self>) {
        self.transaction.rollback();
    }
}

/// What all queries on a graph have around them.
struct Work {
    hub: Arc<Hub>,
    limits: Arc<EngineLimits>,
    graph: Arc<Graph>,
}

impl Work {
    /// Runs a query that its caller may run, under the server's limits.
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
        let guard = self.hub.queries.begin(request, &self.graph.name);
        let mut counted = Counted { sink, left: self.limits.result_count_max, max: self.limits.result_count_max };
        let span = tracing::debug_span!(target: trace::TARGET, "execute", graph = %self.graph.name).entered();
        let outcome = run(&self.graph, &prepared, self.options(request, &prepared), &mut counted);
        drop(span);
        // The engine says that it was cancelled; the reason is known here.
        let outcome = outcome.map_err(|error| request.cancellation.explain(error.into()).error);
        self.graph.meters.ended(prepared.is_mutating(), guard.elapsed(), &outcome);
        self.note_slowness(request, &guard, &outcome);
        outcome.map_err(|error| Places::told(&request.caller, &self.graph).error(error))
    }

    fn options(&self, request: &QueryRequest, prepared: &mangrove::Prepared) -> QueryOptions {
        let time_nanos = request.timeout.map(|limit| u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX));
        let desk = prepared.calls_services().then(|| Desk {
            hub: Arc::clone(&self.hub),
            graph: Arc::clone(&self.graph),
            caller: request.caller.clone(),
        });
        QueryOptions {
            limits: QueryLimits { time_nanos, memory_bytes: self.limits.query_memory_bytes },
            materialize: match request.materialize {
                Materialize::All => mangrove::Materialize::Properties,
                Materialize::Tokens => mangrove::Materialize::Tokens,
            },
            cancel: request.cancel.clone(),
            services: desk.map(|desk| ServiceDesk(Arc::new(desk))),
            ..QueryOptions::default()
        }
    }

    /// Logs a query that took long, with its plan.
    fn note_slowness(&self, request: &QueryRequest, guard: &Guard<'_>, outcome: &Result<()>) {
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

/// Why a graph takes no writes, if it takes none.
fn read_only_cause(database: &Database) -> Option<String> {
    let durability = database.durability();
    let of_log = durability.as_ref().and_then(|durability| durability.read_only_cause()).map(str::to_owned);
    of_log.or_else(|| database.check_memory().err().map(|error| error.message().to_owned()))
}

/// Refuses a caller who may not write to a graph, and notes that. A caller who sees a graph may read it.
fn check_writer(graph: &Graph, caller: &Caller) -> Result<()> {
    let graph = &graph.name;
    let right = caller.require(graph, Access::Write, "a traversal with a mutating step");
    right.inspect_err(|error| audit::note(caller, Act::Query { graph }, Some(error)))
}

fn text(value: &Value) -> &str {
    match value {
        Value::String(text) => text,
        _ => "",
    }
}

/// Counts results against their limit, before they go on.
struct Counted<'a> {
    sink: &'a mut dyn ResultSink,
    left: Option<u64>,
    max: Option<u64>,
}

impl ResultSink for Counted<'_> {
    fn accept(&mut self, results: Vec<(Value, u64)>) -> Result<()> {
        self.take(&results)?;
        self.sink.accept(results)
    }

    fn hold(&mut self) {
        self.sink.hold();
    }

    fn seal(&mut self) -> Result<()> {
        self.sink.seal()
    }
}

impl Counted<'_> {
    fn take(&mut self, batch: &[(Value, u64)]) -> Result<()> {
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

/// The plan of a request. Drivers send the same traversals again and again: plans are kept.
fn prepare(database: &Database, request: &QueryRequest) -> Result<mangrove::Prepared> {
    if request.explain {
        return mangrove::Prepared::new(&request.bytecode, Terminal::Explain);
    }
    database.prepare_bytecode(&request.bytecode)
}
