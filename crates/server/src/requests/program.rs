//! From the text or bytecode of a request to queries for the engine, and running them.
//!
//! A request is a [`Program`]: a script, which is usually one query, with the caller it runs for. The script engine
//! ([`mangrove::script`]) parses it, runs its statements and keeps its variables. This file is its host here: it
//! resolves traversal sources, begins and commits transactions of the [`Engine`], and sends results.
//!
//! | request | transaction | results | retried after a conflict |
//! |---|---|---|---|
//! | one query, no session | the engine's own | held if it writes | while the client has seen nothing |
//! | several statements, no session | one, or as many as the script commits | held once the transaction has written | if it is one transaction, while the client has seen nothing |
//! | in a session | the session's, which stays open | sent as they come | never |
//! | in a session, `manageTransaction` | the session's, committed at the end | held | never |
//!
//! A request that fails after one of its statements has written ends the transaction, and the error names the
//! statement.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use mangrove::Retries;
use mangrove::script::{Script, ScriptFailure, ScriptHost, ScriptOutput, ScriptPlanner, ScriptTraversal};
use mangrove_failpoint::{Point, reach};
use mangrove_graph::{Error, ErrorKind, MemoryBudget, Result, Value};
use mangrove_gremlin::Bytecode;
use mangrove_gremlin::parameters::Parameters;
use mangrove_gremlin::script::{Terminal, TransactionCommand};
use smol_str::SmolStr;

use crate::access::caller::Caller;
use crate::answers::sink::{ChannelSink, DiscardSink};
use crate::engine::cancel::Cancellation;
use crate::engine::contract::{Engine, ResultSink};
use crate::engine::request::{Materialize, QueryRequest};
use crate::requests::transaction::CurrentTransaction;
use crate::status::Failure;

/// A query as the client sent it, with its parameters and options.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// The script or the bytecode.
    pub gremlin: WireQuery,
    /// The server's source for each alias in the query.
    pub aliases: Vec<(SmolStr, SmolStr)>,
    /// Values of parameters.
    pub parameters: Parameters,
    /// The time limit.
    pub timeout: Option<Duration>,
    /// How much of the elements in the results is sent.
    pub materialize: Materialize,
    /// True if a request of a session is a transaction of its own (`manageTransaction`).
    pub commits: bool,
}

/// The two forms of a query on the wire.
#[derive(Clone, Debug)]
pub enum WireQuery {
    /// gremlin-lang text.
    Script(String),
    /// Bytecode, which names no source of its own: it is `g` for the aliases.
    Bytecode(Bytecode),
}

/// A request, compiled.
#[derive(Debug)]
pub struct Program {
    caller: Caller,
    script: Script<QueryRequest>,
    /// The values of parameters that came with the request.
    parameters: Parameters,
    /// True if the session's transaction is committed at the end of the request.
    commits: bool,
}

impl Program {
    /// Compiles the request. Runs on a worker: a long script takes time.
    pub fn compile(
        evaluation: Evaluation,
        caller: &Caller,
        engine: &dyn Engine,
        cancellation: &Cancellation,
    ) -> Result<Program, Failure> {
        let mut planner =
            QueryPlanner { evaluation: &evaluation, caller, sources: engine.sources(caller), cancellation };
        let script = match &evaluation.gremlin {
            WireQuery::Bytecode(bytecode) => Script::from_bytecode(bytecode.clone(), &mut planner)?,
            WireQuery::Script(text) => Script::compile(text, &mut planner)?,
        };
        let caller = caller.clone();
        Ok(Program { caller, script, parameters: evaluation.parameters, commits: evaluation.commits })
    }

    /// Runs the request outside of a session.
    pub fn run(self, engine: &dyn Engine, retry_count_max: u32, mut sink: ChannelSink) -> Result<(), Failure> {
        let retries = Retries::up_to(retry_count_max);
        match self.script.only_query() {
            Some(request) => run_alone(engine, request, retries, &mut sink)?,
            None => {
                let mut transaction = CurrentTransaction::default();
                let mut host = self.host(engine, &mut transaction, ClientSink { channel: &mut sink, can_hold: true });
                self.script.run_as_transaction(&mut host, retries)?;
            }
        }
        reach(Point::RequestDone);
        sink.finish()
    }

    /// Runs the request in a session's transaction, which stays open unless a statement or the client's wish ends it.
    pub fn run_in_session(
        self,
        engine: &dyn Engine,
        transaction: &mut CurrentTransaction,
        mut sink: ChannelSink,
    ) -> Result<(), Failure> {
        if self.commits {
            sink.hold();
        }
        transaction.begin_request();
        // Without `commits`, the client ends the transaction itself: it sees results as they come.
        let client = ClientSink { channel: &mut sink, can_hold: self.commits };
        let outcome = self.script.run_to_seal(&mut self.host(engine, transaction, client));
        match (outcome, self.commits) {
            (Ok(()), true) => transaction.commit(&self.caller)?,
            (Ok(()), false) => {}
            (Err(failure), true) => {
                let failure = transaction.fail_request(failure);
                transaction.rollback();
                return Err(failure);
            }
            (Err(failure), false) => return Err(transaction.fail_request(failure)),
        }
        sink.finish()
    }

    fn host<'a>(
        &'a self,
        engine: &'a dyn Engine,
        transaction: &'a mut CurrentTransaction,
        sink: ClientSink<'a>,
    ) -> RequestHost<'a> {
        RequestHost { engine, transaction, sink, caller: &self.caller, parameters: &self.parameters, source: None }
    }
}

/// Runs one query as one transaction, and again after a conflict while the client has seen nothing.
fn run_alone(
    engine: &dyn Engine,
    request: &QueryRequest,
    mut retries: Retries,
    sink: &mut ChannelSink,
) -> Result<(), Failure> {
    loop {
        match engine.run(request, sink) {
            Ok(()) => return Ok(()),
            Err(e) if e.kind() == ErrorKind::Conflict && sink.is_untouched() => {
                retries.wait(e)?;
                engine.note_retry(&request.source);
                sink.reset();
            }
            Err(e) => return Err(sink.explain(e.into())),
        }
    }
}

/// Passes results on to the client.
struct ClientSink<'a> {
    channel: &'a mut ChannelSink,
    /// True if results may be held back. They are not in a session whose client ends the transaction itself.
    can_hold: bool,
}

impl ResultSink for ClientSink<'_> {
    fn accept(&mut self, results: Vec<(Value, u64)>) -> Result<()> {
        self.channel.accept(results)
    }

    fn hold(&mut self) {
        if self.can_hold {
            self.channel.hold();
        }
    }

    fn seal(&mut self) -> Result<()> {
        self.channel.seal()
    }
}

/// Runs the statements of one request on the engine, in one open transaction at a time.
struct RequestHost<'a> {
    engine: &'a dyn Engine,
    transaction: &'a mut CurrentTransaction,
    sink: ClientSink<'a>,
    caller: &'a Caller,
    parameters: &'a Parameters,
    /// The source of the query that was run last.
    source: Option<SmolStr>,
}

impl ScriptHost for RequestHost<'_> {
    type Query = QueryRequest;
    type Failure = Failure;

    fn run(
        &mut self,
        query: &QueryRequest,
        variables: Option<&Parameters>,
        output: ScriptOutput<'_>,
    ) -> Result<(), Failure> {
        let transaction = self.transaction.on(self.engine, &query.source, &query.caller)?;
        self.source = Some(query.source.clone());
        let mut request = Cow::Borrowed(query);
        if let Some(variables) = variables {
            request.to_mut().parameters = variables.clone();
        }
        match output {
            ScriptOutput::Client => transaction.run(&request, &mut self.sink)?,
            ScriptOutput::Nowhere => transaction.run(&request, &mut DiscardSink)?,
            ScriptOutput::Variable(variable) => {
                request.to_mut().materialize = Materialize::Tokens;
                transaction.run(&request, variable)?;
            }
        }
        Ok(())
    }

    fn parameters(&self) -> &Parameters {
        self.parameters
    }

    fn memory_budget(&self) -> MemoryBudget {
        self.engine.memory_budget()
    }

    fn command(&mut self, source: &SmolStr, command: TransactionCommand) -> Result<(), Failure> {
        match command {
            TransactionCommand::Begin => self.transaction.on(self.engine, source, self.caller).map(drop),
            TransactionCommand::Commit => Ok(self.transaction.commit(self.caller)?),
            TransactionCommand::Rollback => {
                self.transaction.rollback();
                Ok(())
            }
        }
    }

    fn has_written(&self) -> bool {
        self.transaction.has_written()
    }

    fn commit(&mut self) -> Result<(), Failure> {
        reach(Point::RequestSealed);
        Ok(self.transaction.commit(self.caller)?)
    }

    fn undo(&mut self, failure: Failure) -> Failure {
        self.transaction.fail_request(failure)
    }

    fn sink(&mut self) -> &mut dyn ResultSink {
        &mut self.sink
    }

    fn explain(&mut self, failure: Failure) -> Failure {
        self.sink.channel.explain(failure)
    }

    fn rewind(&mut self) -> bool {
        if !self.sink.channel.is_untouched() {
            return false;
        }
        self.transaction.rollback();
        self.sink.channel.reset();
        true
    }

    fn note_retry(&mut self) {
        if let Some(source) = &self.source {
            self.engine.note_retry(source);
        }
    }
}

impl ScriptFailure for Failure {
    fn invalid(message: String) -> Self {
        Failure::invalid(message)
    }

    fn at(mut self, position: Option<&str>) -> Self {
        if let Some(position) = position {
            self.error = self.error.context(position);
        }
        self
    }

    fn into_error(self) -> Error {
        self.error
    }

    fn kind(&self) -> ErrorKind {
        self.error.kind()
    }
}

/// Turns the traversals of a request into queries for the engine.
struct QueryPlanner<'a> {
    evaluation: &'a Evaluation,
    caller: &'a Caller,
    /// The sources that the caller may use.
    sources: Vec<SmolStr>,
    cancellation: &'a Cancellation,
}

impl ScriptPlanner for QueryPlanner<'_> {
    type Query = QueryRequest;
    type Failure = Failure;

    fn traversal(&mut self, traversal: ScriptTraversal) -> Result<QueryRequest, Failure> {
        let ScriptTraversal { source, mut bytecode, terminal } = traversal;
        terminal.apply(&mut bytecode);
        Ok(QueryRequest {
            caller: self.caller.clone(),
            source: self.source(&source)?,
            bytecode: Arc::new(bytecode),
            parameters: self.evaluation.parameters.clone(),
            explain: terminal == Terminal::Explain,
            timeout: self.evaluation.timeout,
            cancel: self.cancellation.flag(),
            cancellation: self.cancellation.clone(),
            materialize: self.evaluation.materialize,
        })
    }

    fn source(&mut self, name: &str) -> Result<SmolStr, Failure> {
        let alias = self.evaluation.aliases.iter().find(|(alias, _)| alias == name);
        let resolved = alias.map_or(name, |(_, source)| source.as_str());
        match self.sources.iter().find(|source| *source == resolved) {
            Some(source) => Ok(source.clone()),
            None if self.sources.is_empty() => Err(Failure::invalid(format!(
                "there is no traversal source `{resolved}` that the user may use: it has no role on any graph; an \
                 administrator gives \
                 roles (`mangrove user grant`)"
            ))),
            None => Err(Failure::invalid(format!(
                "there is no traversal source `{resolved}`{} on this server; it has: {}",
                if alias.is_some() { format!(" (the alias of `{name}`)") } else { String::new() },
                self.sources.join(", ")
            ))),
        }
    }
}
