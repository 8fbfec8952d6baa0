//! From the text or bytecode of a request to queries for the engine, and running them.
//!
//! A request is a [`Program`]: usually one query, for a script perhaps several statements, transaction
//! commands among them. Outside a session
//!
//! - one query is one transaction of the engine's own making, run again after a conflict as long as the
//!   client has seen nothing of it;
//! - several statements are one transaction, or more where the script itself commits; only the last one's
//!   results count and are held back until the commit.
//!
//! In a session the statements run in the session's transaction, which stays open.

use std::sync::Arc;
use std::time::Duration;

use mangrove::Retries;
use mangrove_graph::{ErrorKind, Result, Value};
use mangrove_gremlin::parameters::Parameters;
use mangrove_gremlin::script::{self, ParseOptions, Terminal, TransactionCommand};
use mangrove_gremlin::{Argument, Bytecode, Instruction};
use smol_str::SmolStr;

use crate::access::Caller;
use crate::cancel::Cancellation;
use crate::edge;
use crate::engine::{Engine, Materialize, QueryRequest, ResultSink};
use crate::sink::{ChannelSink, Discard, HeldMax, HeldResults};
use crate::status::Failure;
use crate::trace;
use crate::transaction::Slot;

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
    statements: Vec<Statement>,
    /// Whether a session's transaction ends with it.
    commits: bool,
}

#[derive(Debug)]
enum Statement {
    Query(QueryRequest, Take),
    Transaction(SmolStr, TransactionCommand, Caller),
}

/// What becomes of a query's results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Take {
    /// They are the answer.
    All,
    /// The answer is whether there is one.
    Existence,
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
            Gremlin::Bytecode(bytecode) => vec![compiler.bytecode(bytecode)?],
            Gremlin::Script(text) => {
                let options =
                    ParseOptions { now: edge::now(), fresh_uuid: Some(edge::fresh_uuid()), ..Default::default() };
                let parsed = {
                    let _span = tracing::debug_span!(target: trace::TARGET, "parse", bytes = text.len()).entered();
                    script::parse(text, &options)?
                };
                parsed.into_iter().map(|statement| compiler.statement(statement)).collect::<Result<_, _>>()?
            }
        };
        Ok(Program { statements, commits: evaluation.commits })
    }

    /// Runs it outside a session.
    pub fn run(self, engine: &dyn Engine, policy: Policy, mut sink: ChannelSink) -> Result<(), Failure> {
        match self.statements.as_slice() {
            [Statement::Query(request, take)] => run_alone(engine, request, *take, policy, &mut sink)?,
            _ => {
                let mut held = HeldResults::new(policy.held);
                let mut slot = Slot::default();
                self.run_in(engine, &mut slot, &mut held)?;
                slot.commit()?;
                sink.accept(held.into_results()).map_err(|e| sink.explain(e.into()))?;
            }
        }
        sink.finish()
    }

    /// Runs it in a session's transaction, and leaves that open unless a statement or the client's wish ends it.
    pub fn run_in_session(self, engine: &dyn Engine, slot: &mut Slot, mut sink: ChannelSink) -> Result<(), Failure> {
        let outcome = self.run_in(engine, slot, &mut sink).map_err(|failure| sink.explain(failure));
        match (&outcome, self.commits) {
            (Ok(()), true) => slot.commit()?,
            (Err(_), true) => slot.rollback(),
            (_, false) => {}
        }
        outcome?;
        sink.finish()
    }

    /// Runs every statement; the last one's results go to the sink.
    fn run_in(&self, engine: &dyn Engine, slot: &mut Slot, sink: &mut dyn ResultSink) -> Result<(), Failure> {
        let last = self.statements.len().saturating_sub(1);
        for (position, statement) in self.statements.iter().enumerate() {
            match statement {
                Statement::Query(request, take) => {
                    let transaction = slot.on(engine, &request.source, &request.caller)?;
                    let sink: &mut dyn ResultSink = if position == last { sink } else { &mut Discard };
                    take.run(sink, &mut |sink| transaction.run(request, sink))?;
                }
                Statement::Transaction(source, TransactionCommand::Begin, caller) => {
                    slot.on(engine, source, caller)?;
                }
                Statement::Transaction(_, TransactionCommand::Commit, _) => slot.commit()?,
                Statement::Transaction(_, TransactionCommand::Rollback, _) => slot.rollback(),
            }
        }
        Ok(())
    }
}

/// The limits of running outside a session.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// How many times a query is run again after a conflict.
    pub conflict_retry_count_max: u32,
    /// How many results may be held back.
    pub held: HeldMax,
}

/// One query as one transaction, run again after a conflict.
fn run_alone(
    engine: &dyn Engine,
    request: &QueryRequest,
    take: Take,
    policy: Policy,
    sink: &mut ChannelSink,
) -> Result<(), Failure> {
    let mut retries = Retries::up_to(policy.conflict_retry_count_max);
    loop {
        match take.run(sink, &mut |sink| engine.run(request, sink)) {
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

impl Take {
    fn run(self, sink: &mut dyn ResultSink, run: &mut dyn FnMut(&mut dyn ResultSink) -> Result<()>) -> Result<()> {
        match self {
            Take::All => run(sink),
            Take::Existence => {
                let mut existence = Existence(false);
                run(&mut existence)?;
                sink.accept(vec![(Value::Bool(existence.0), 1)])
            }
        }
    }
}

/// Notes whether there was a result.
struct Existence(bool);

impl ResultSink for Existence {
    fn accept(&mut self, results: Vec<(Value, u64)>) -> Result<()> {
        self.0 |= !results.is_empty();
        Ok(())
    }
}

struct Compiler<'a> {
    evaluation: &'a Evaluation,
    caller: &'a Caller,
    sources: Vec<SmolStr>,
    cancellation: &'a Cancellation,
}

impl Compiler<'_> {
    fn bytecode(&self, bytecode: &Bytecode) -> Result<Statement, Failure> {
        let source = self.source("g")?;
        Ok(match TransactionCommand::from_bytecode(bytecode) {
            Some(command) => Statement::Transaction(source, command, self.caller.clone()),
            None => Statement::Query(self.query(source, bytecode.clone(), false), Take::All),
        })
    }

    fn statement(&self, statement: script::Statement) -> Result<Statement, Failure> {
        Ok(match statement {
            script::Statement::Transaction { source, command } => {
                Statement::Transaction(self.source(&source)?, command, self.caller.clone())
            }
            script::Statement::Traversal { source, mut bytecode, terminal, .. } => {
                let take = apply_terminal(terminal, &mut bytecode);
                let explain = terminal == Terminal::Explain;
                Statement::Query(self.query(self.source(&source)?, bytecode, explain), take)
            }
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
            None => Err(Failure::invalid(format!(
                "there is no traversal source `{resolved}`{} on this server; it has: {}",
                if alias.is_some() { format!(" (the alias of `{name}`)") } else { String::new() },
                self.sources.join(", ")
            ))),
        }
    }
}

/// Writes a terminal as the steps that mean it, so that the planner knows about it.
fn apply_terminal(terminal: Terminal, bytecode: &mut Bytecode) -> Take {
    let limit = |count: u64| {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        Instruction::new("limit", vec![Argument::from(Value::I64(count))])
    };
    match terminal {
        Terminal::None | Terminal::ToList | Terminal::ToBulkSet | Terminal::Explain => {}
        Terminal::Next(count) => bytecode.steps.push(limit(count.unwrap_or(1))),
        Terminal::TryNext | Terminal::HasNext => bytecode.steps.push(limit(1)),
        Terminal::ToSet => bytecode.steps.push(Instruction::new("dedup", Vec::new())),
        Terminal::Iterate => bytecode.steps.push(Instruction::new("discard", Vec::new())),
    }
    if terminal == Terminal::HasNext { Take::Existence } else { Take::All }
}
