//! From the text or bytecode of a request to queries for the engine, and running them.
//!
//! A request is a [`Program`]: usually one query, for a script perhaps several statements, transaction
//! commands among them. Outside a session
//!
//! - one query is one transaction of the engine's own making, run again after a conflict as long as the
//!   client has seen nothing of it;
//! - several statements are one transaction, or more where the script itself commits; only the last one's
//!   results count. If the transaction has written by then, they are held back until the commit; else they are sent as they
//!   come. One transaction is run again after a conflict, too, as long as the client has seen nothing. What fails undoes all
//!   of it, and the error names the statement.
//!
//! In a session the statements run in the session's transaction, which stays open. A request that fails after one of its
//! statements has written ends that transaction. A variable has its value for the rest of its script, and no longer.

use std::sync::Arc;
use std::time::Duration;

use mangrove::Retries;
use mangrove_failpoint::{Point, reach};
use mangrove_graph::{Draw, Error, ErrorKind, Purpose, Result, Value};
use mangrove_gremlin::Bytecode;
use mangrove_gremlin::parameters::Parameters;
use mangrove_gremlin::script::{self, ParseOptions, ScriptStatement, Terminal, TransactionCommand, VARIABLE_SIZE_MAX};
use smol_str::SmolStr;

use crate::access::Caller;
use crate::cancel::Cancellation;
use crate::edge;
use crate::engine::{Engine, Materialize, QueryRequest, ResultSink};
use crate::sink::{ChannelSink, Discard};
use crate::status::Failure;
use crate::trace;
use crate::transaction::Slot;
use crate::weight::weight;

/// What a client asked to be evaluated.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// The script or the bytecode.
    pub gremlin: Gremlin,
    /// What the sources named in it are called here.
    pub aliases: Vec<(SmolStr, SmolStr)>,
    /// Values of parameters.
    pub parameters: Parameters,
    /// The time limit.
    pub timeout: Option<Duration>,
    /// What elements carry.
    pub materialize: Materialize,
    /// Whether a request of a session is a transaction of its own (`manageTransaction`).
    pub commits: bool,
}

/// The two forms of a query on the wire.
#[derive(Clone, Debug)]
pub enum Gremlin {
    /// gremlin-lang text.
    Script(String),
    /// Bytecode, which names no source of its own: it is `g` for the aliases.
    Bytecode(Bytecode),
}

/// The statements of a request, understood as far as the server needs.
#[derive(Debug)]
pub struct Program {
    /// Who asks.
    caller: Caller,
    statements: Vec<Statement>,
    /// What parameters, and variables before they are given other values, stand for.
    parameters: Parameters,
    /// Whether a session's transaction ends with it.
    commits: bool,
}

#[derive(Debug)]
struct Statement {
    /// The name that is given what it results in.
    variable: Option<SmolStr>,
    action: Action,
    /// Where it is, for errors; of a script with more than one.
    place: Option<String>,
}

#[derive(Debug)]
enum Action {
    Query(QueryRequest, Terminal),
    Transaction(SmolStr, TransactionCommand, Caller),
    /// A value that is written out.
    Value(Value),
    /// The value of a variable.
    Variable(SmolStr),
}

impl Statement {
    /// One that is a whole request.
    fn alone(action: Action) -> Self {
        Statement { variable: None, action, place: None }
    }

    fn placed(&self, mut failure: Failure) -> Failure {
        if let Some(place) = &self.place {
            failure.error = failure.error.context(place);
        }
        failure
    }
}

impl Program {
    /// Reads the request. Runs on a worker: a long script takes time.
    pub fn compile(
        evaluation: Evaluation,
        caller: &Caller,
        engine: &dyn Engine,
        cancellation: &Cancellation,
    ) -> Result<Program, Failure> {
        let compiler = Compiler { evaluation: &evaluation, caller, sources: engine.sources(caller), cancellation };
        let statements = match &evaluation.gremlin {
            Gremlin::Bytecode(bytecode) => vec![Statement::alone(compiler.bytecode(bytecode)?)],
            Gremlin::Script(text) => compiler.script(text)?,
        };
        let caller = caller.clone();
        Ok(Program { caller, statements, parameters: evaluation.parameters, commits: evaluation.commits })
    }

    /// Runs it outside a session.
    pub fn run(self, engine: &dyn Engine, retry_count_max: u32, mut sink: ChannelSink) -> Result<(), Failure> {
        match self.statements.as_slice() {
            [Statement { variable: None, action: Action::Query(request, _), .. }] => {
                run_alone(engine, request, retry_count_max, &mut sink)?;
            }
            _ => self.run_together(engine, retry_count_max, &mut sink)?,
        }
        reach(Point::RequestDone);
        sink.finish()
    }

    /// Several statements as one transaction, run again after a conflict as long as the client has seen nothing of it.
    fn run_together(&self, engine: &dyn Engine, retry_count_max: u32, sink: &mut ChannelSink) -> Result<(), Failure> {
        let mut retries = Retries::up_to(retry_count_max);
        loop {
            let mut slot = Slot::default();
            let outcome = self.run_to_seal(engine, &mut slot, sink).and_then(|()| {
                reach(Point::RequestSealed);
                Ok(slot.commit(&self.caller)?)
            });
            match (outcome, self.only_source()) {
                (Ok(()), _) => return Ok(()),
                (Err(failure), Some(source)) if failure.error.kind() == ErrorKind::Conflict && sink.is_untouched() => {
                    slot.rollback();
                    retries.wait(failure.error)?;
                    engine.note_retry(source);
                    sink.reset();
                }
                (Err(failure), _) => return Err(slot.fail_request(failure)),
            }
        }
    }

    /// Runs every statement, and does all with the results that can fail, short of sending them.
    fn run_to_seal(&self, engine: &dyn Engine, slot: &mut Slot, sink: &mut ChannelSink) -> Result<(), Failure> {
        let outcome = self.run_in(engine, slot, sink).and_then(|()| Ok(sink.seal()?));
        outcome.map_err(|failure| sink.explain(failure))
    }

    /// The source of its only transaction; `None` where the script says itself when transactions begin and end.
    fn only_source(&self) -> Option<&SmolStr> {
        let is_command = |statement: &Statement| matches!(statement.action, Action::Transaction(..));
        if self.statements.iter().any(is_command) {
            return None;
        }
        self.statements.iter().find_map(|statement| match &statement.action {
            Action::Query(request, _) => Some(&request.source),
            _ => None,
        })
    }

    /// Runs it in a session's transaction, and leaves that open unless a statement or the client's wish ends it.
    pub fn run_in_session(self, engine: &dyn Engine, slot: &mut Slot, mut sink: ChannelSink) -> Result<(), Failure> {
        if self.commits {
            sink.hold();
        }
        slot.begin_request();
        let outcome = match self.commits {
            true => self.run_to_seal(engine, slot, &mut sink),
            // What the client does with the transaction is its own affair: it sees results as they come.
            false => self.run_in(engine, slot, &mut Unheld(&mut sink)).and_then(|()| Ok(sink.seal()?)),
        };
        match (outcome.map_err(|failure| sink.explain(failure)), self.commits) {
            (Ok(()), true) => slot.commit(&self.caller)?,
            (Ok(()), false) => {}
            (Err(failure), true) => {
                let failure = slot.fail_request(failure);
                slot.rollback();
                return Err(failure);
            }
            (Err(failure), false) => return Err(slot.fail_request(failure)),
        }
        sink.finish()
    }

    /// Runs every statement; the last one's results go to the sink.
    fn run_in(&self, engine: &dyn Engine, slot: &mut Slot, sink: &mut dyn ResultSink) -> Result<(), Failure> {
        let last = self.statements.len().saturating_sub(1);
        let held = engine.memory_budget().account(Purpose::Variables);
        let mut variables = Variables { values: None, held };
        for (position, statement) in self.statements.iter().enumerate() {
            let is_last = position == last;
            if is_last && slot.has_written() {
                sink.hold();
            }
            let sink: &mut dyn ResultSink = if is_last { &mut *sink } else { &mut Discard };
            let outcome = self.run_statement(statement, engine, slot, &mut variables, sink);
            outcome.map_err(|failure| statement.placed(failure))?;
        }
        Ok(())
    }

    fn run_statement(
        &self,
        statement: &Statement,
        engine: &dyn Engine,
        slot: &mut Slot,
        variables: &mut Variables,
        sink: &mut dyn ResultSink,
    ) -> Result<(), Failure> {
        let value = match &statement.action {
            Action::Query(request, terminal) => {
                let transaction = slot.on(engine, &request.source, &request.caller)?;
                let with_variables = variables
                    .values
                    .as_ref()
                    .map(|values| QueryRequest { parameters: values.clone(), ..request.clone() });
                let request = with_variables.as_ref().unwrap_or(request);
                if statement.variable.is_none() {
                    return Ok(transaction.run(request, sink)?);
                }
                let mut kept = Kept { results: Vec::new(), held: &mut variables.held };
                transaction.run(request, &mut kept)?;
                terminal.value(kept.results)?
            }
            Action::Transaction(source, command, caller) => {
                return match command {
                    TransactionCommand::Begin => slot.on(engine, source, caller).map(drop),
                    TransactionCommand::Commit => Ok(slot.commit(caller)?),
                    TransactionCommand::Rollback => {
                        slot.rollback();
                        Ok(())
                    }
                };
            }
            Action::Value(value) => value.clone(),
            Action::Variable(name) => {
                let known = variables.values.as_ref().unwrap_or(&self.parameters).get(name);
                let missing = || Failure::invalid(format!("the variable `{name}` has no value"));
                known.ok_or_else(missing)?.clone()
            }
        };
        if let Some(name) = &statement.variable {
            variables.values.get_or_insert_with(|| self.parameters.clone()).insert(name.clone(), value.clone());
        }
        Ok(sink.accept(script::results_of(value))?)
    }
}

/// Passes results on as they come.
struct Unheld<'a>(&'a mut ChannelSink);

impl ResultSink for Unheld<'_> {
    fn accept(&mut self, results: Vec<(Value, u64)>) -> Result<()> {
        self.0.accept(results)
    }
}

/// How many bytes the variables of one script may hold, about.
const VARIABLES_BYTES_MAX: u64 = 64 << 20;

/// The variables of a script that runs.
struct Variables {
    /// Their values among those of the parameters; `None` before the first.
    values: Option<Parameters>,
    /// What was kept for them, about.
    held: Draw,
}

/// Keeps results for a variable.
struct Kept<'a> {
    results: Vec<(Value, u64)>,
    /// With what is kept for others.
    held: &'a mut Draw,
}

impl ResultSink for Kept<'_> {
    fn accept(&mut self, results: Vec<(Value, u64)>) -> Result<()> {
        let bytes = results.iter().map(|(value, _)| weight(value)).fold(0, u64::saturating_add);
        self.results.extend(results);
        let all = self.held.bytes().saturating_add(bytes);
        if self.results.len() as u64 > VARIABLE_SIZE_MAX || all > VARIABLES_BYTES_MAX {
            return Err(Error::new(
                ErrorKind::MemoryLimit,
                format!(
                    "a variable holds at most {VARIABLE_SIZE_MAX} results, and the variables of a script {VARIABLES_BYTES_MAX} \
                     bytes; take fewer with limit()"
                ),
            ));
        }
        self.held.grow(bytes)
    }
}

/// One query as one transaction, run again after a conflict as often as the limit says.
fn run_alone(
    engine: &dyn Engine,
    request: &QueryRequest,
    retry_count_max: u32,
    sink: &mut ChannelSink,
) -> Result<(), Failure> {
    let mut retries = Retries::up_to(retry_count_max);
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

struct Compiler<'a> {
    evaluation: &'a Evaluation,
    caller: &'a Caller,
    sources: Vec<SmolStr>,
    cancellation: &'a Cancellation,
}

impl Compiler<'_> {
    fn bytecode(&self, bytecode: &Bytecode) -> Result<Action, Failure> {
        let source = self.source("g")?;
        Ok(match TransactionCommand::from_bytecode(bytecode) {
            Some(command) => Action::Transaction(source, command, self.caller.clone()),
            None => Action::Query(self.query(source, bytecode.clone(), false), Terminal::None),
        })
    }

    fn script(&self, text: &str) -> Result<Vec<Statement>, Failure> {
        let options = ParseOptions { now: edge::now(), fresh_uuid: Some(edge::fresh_uuid()), ..Default::default() };
        let parsed = {
            let _span = tracing::debug_span!(target: trace::TARGET, "parse", bytes = text.len()).entered();
            script::parse(text, &options)?
        };
        let are_several = parsed.len() > 1;
        let statement = |(at, parsed): (usize, ScriptStatement)| {
            let place = are_several.then(|| parsed.place(at + 1).to_string());
            let mut statement = Statement { variable: parsed.variable, action: Action::Value(Value::Null), place };
            match self.action(parsed.statement, statement.variable.is_some()) {
                Ok(action) => statement.action = action,
                Err(failure) => return Err(statement.placed(failure)),
            }
            Ok(statement)
        };
        parsed.into_iter().enumerate().map(statement).collect()
    }

    fn action(&self, statement: script::Statement, is_kept: bool) -> Result<Action, Failure> {
        Ok(match statement {
            script::Statement::Transaction { source, command } => {
                Action::Transaction(self.source(&source)?, command, self.caller.clone())
            }
            script::Statement::Traversal { source, mut bytecode, terminal, .. } => {
                terminal.apply(&mut bytecode);
                let explain = terminal == Terminal::Explain;
                let mut request = self.query(self.source(&source)?, bytecode, explain);
                if is_kept {
                    // As an argument, an element is its id.
                    request.materialize = Materialize::Tokens;
                }
                Action::Query(request, terminal)
            }
            script::Statement::Value(value) => Action::Value(value),
            script::Statement::Variable(name) => Action::Variable(name),
        })
    }

    fn query(&self, source: SmolStr, bytecode: Bytecode, explain: bool) -> QueryRequest {
        QueryRequest {
            caller: self.caller.clone(),
            source,
            bytecode: Arc::new(bytecode),
            parameters: self.evaluation.parameters.clone(),
            explain,
            timeout: self.evaluation.timeout,
            cancel: self.cancellation.flag(),
            cancellation: self.cancellation.clone(),
            materialize: self.evaluation.materialize,
        }
    }

    /// The server's name for a source the request names.
    fn source(&self, name: &str) -> Result<SmolStr, Failure> {
        let alias = self.evaluation.aliases.iter().find(|(alias, _)| alias == name);
        let resolved = alias.map_or(name, |(_, source)| source.as_str());
        match self.sources.iter().find(|source| *source == resolved) {
            Some(source) => Ok(source.clone()),
            None if self.sources.is_empty() => Err(Failure::invalid(format!(
                "there is no traversal source `{resolved}` that the user may use: it has no role on any graph; an administrator gives \
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
