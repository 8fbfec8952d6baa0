//! Scripts of an embedded database: in a transaction of their own, or in one that the caller has begun.
//!
//! A script of the first kind begins its transaction with the first statement that needs one, commits it, and is run
//! again after a conflict. A script of the second kind is one request of the caller's transaction and may not end it.

use std::sync::atomic::Ordering;

use mangrove_graph::{Error, MemoryBudget, Result, Value};
use mangrove_gremlin::{Parameters, TransactionCommand};
use smol_str::SmolStr;

use super::compile::{Script, ScriptPlanner, ScriptTraversal};
use super::run::{ResultSink, ScriptHost, ScriptOutput};
use crate::options::{Materialize, QueryOptions};
use crate::query::prepared::Prepared;
use crate::query::stream::ResultStream;
use crate::retry::Retries;
use crate::state::Database;
use crate::transaction::Transaction;

impl Database {
    /// Parses and plans a script of any number of statements.
    pub fn prepare_script(&self, text: &str) -> Result<Script> {
        Script::compile(text, &mut EmbeddedPlanner { database: self, source: None })
    }

    /// Runs a script in a transaction of its own, and commits. If the script is a single traversal that only reads, it
    /// runs as its results are read. Otherwise it is over when this returns.
    pub fn run_script(&self, script: &Script, parameters: &Parameters, options: &QueryOptions) -> Result<ResultStream> {
        if let Some(prepared) = script.only_query() {
            return self.run_with(prepared, parameters, options);
        }
        let mut host = OwnTransaction {
            database: self,
            only_reads: script.only_reads(),
            parameters,
            options,
            open: None,
            results: CollectedResults::default(),
        };
        script.run_as_transaction(&mut host, Retries::up_to(options.retries))?;
        Ok(ResultStream::finished(host.results.0))
    }
}

impl Transaction {
    /// Runs a script in this transaction, as one request: if a statement fails after the script has written, the
    /// transaction is rolled back. A script that contains `g.tx()` is refused.
    pub fn run_script(&self, script: &Script, parameters: &Parameters, options: &QueryOptions) -> Result<ResultStream> {
        if let Some(prepared) = script.only_query() {
            return self.run_with(prepared, parameters, options);
        }
        let mut host =
            GivenTransaction { transaction: self, parameters, options, results: CollectedResults::default() };
        self.whole(|| script.run_to_seal(&mut host))?;
        Ok(ResultStream::finished(host.results.0))
    }
}

/// Plans traversals for this process. All of a script must name the same source.
struct EmbeddedPlanner<'d> {
    database: &'d Database,
    source: Option<SmolStr>,
}

impl ScriptPlanner for EmbeddedPlanner<'_> {
    type Query = Prepared;
    type Failure = Error;

    fn traversal(&mut self, traversal: ScriptTraversal) -> Result<Prepared> {
        let ScriptTraversal { source, bytecode, terminal } = traversal;
        let prepared = self.database.inner.plans.traversal(&source, &bytecode, terminal)?;
        self.source(&source)?;
        Ok(prepared)
    }

    fn source(&mut self, name: &str) -> Result<SmolStr> {
        match &self.source {
            Some(known) if known != name => Err(Error::unsupported(format!(
                "a script is one transaction on one traversal source: this is `{name}`, and the statements before are \
                 on `{known}`"
            ))),
            _ => Ok(self.source.insert(name.into()).clone()),
        }
    }
}

/// The results of the last statement.
#[derive(Default)]
struct CollectedResults(Vec<(Value, u64)>);

impl ResultSink for CollectedResults {
    fn accept(&mut self, results: Vec<(Value, u64)>) -> Result<()> {
        self.0.extend(results);
        Ok(())
    }
}

/// Runs a query to its end in a transaction.
fn run(
    transaction: &Transaction,
    prepared: &Prepared,
    parameters: &Parameters,
    options: &QueryOptions,
    results: &mut CollectedResults,
    output: ScriptOutput<'_>,
) -> Result<()> {
    match output {
        ScriptOutput::Client => results.accept(transaction.run_kept(prepared, parameters, options)?),
        ScriptOutput::Nowhere => transaction.run_kept(prepared, parameters, options).map(drop),
        ScriptOutput::Variable(sink) => {
            let options = QueryOptions { materialize: Materialize::Tokens, ..options.clone() };
            sink.accept(transaction.run_kept(prepared, parameters, &options)?)
        }
    }
}

/// A script in a transaction of its own.
struct OwnTransaction<'a> {
    database: &'a Database,
    /// True if no statement writes. Then the transaction remembers nothing of what it reads.
    only_reads: bool,
    parameters: &'a Parameters,
    options: &'a QueryOptions,
    open: Option<Transaction>,
    results: CollectedResults,
}

impl OwnTransaction<'_> {
    fn transaction(&mut self) -> Result<&Transaction> {
        let begun = match self.open.take() {
            Some(open) => open,
            None if self.only_reads => self.database.begin_read()?,
            None => self.database.begin_as(self.options)?,
        };
        Ok(&*self.open.insert(begun))
    }
}

impl ScriptHost for OwnTransaction<'_> {
    type Query = Prepared;
    type Failure = Error;

    fn run(&mut self, query: &Prepared, variables: Option<&Parameters>, output: ScriptOutput<'_>) -> Result<()> {
        self.transaction()?;
        let transaction = self.open.as_ref().expect("a transaction was begun above if none was open");
        let parameters = variables.unwrap_or(self.parameters);
        run(transaction, query, parameters, self.options, &mut self.results, output)
    }

    fn parameters(&self) -> &Parameters {
        self.parameters
    }

    fn memory_budget(&self) -> MemoryBudget {
        self.database.memory_budget().clone()
    }

    fn command(&mut self, _: &SmolStr, command: TransactionCommand) -> Result<()> {
        match command {
            TransactionCommand::Begin => self.transaction().map(drop),
            TransactionCommand::Commit => self.commit(),
            TransactionCommand::Rollback => {
                self.open = None;
                Ok(())
            }
        }
    }

    fn has_written(&self) -> bool {
        self.open.as_ref().is_some_and(|transaction| transaction.write_mark() > 0)
    }

    fn commit(&mut self) -> Result<()> {
        self.open.take().map_or(Ok(()), |transaction| transaction.commit().map(drop))
    }

    fn undo(&mut self, error: Error) -> Error {
        self.open = None;
        error
    }

    fn sink(&mut self) -> &mut dyn ResultSink {
        &mut self.results
    }

    fn rewind(&mut self) -> bool {
        if self.options.cancel.load(Ordering::Relaxed) {
            return false;
        }
        self.open = None;
        self.results.0.clear();
        true
    }

    fn note_retry(&mut self) {
        self.database.note_retry();
    }
}

/// A script in a transaction that the caller has begun and will end.
struct GivenTransaction<'a> {
    transaction: &'a Transaction,
    parameters: &'a Parameters,
    options: &'a QueryOptions,
    results: CollectedResults,
}

impl ScriptHost for GivenTransaction<'_> {
    type Query = Prepared;
    type Failure = Error;

    fn run(&mut self, query: &Prepared, variables: Option<&Parameters>, output: ScriptOutput<'_>) -> Result<()> {
        let parameters = variables.unwrap_or(self.parameters);
        run(self.transaction, query, parameters, self.options, &mut self.results, output)
    }

    fn parameters(&self) -> &Parameters {
        self.parameters
    }

    fn memory_budget(&self) -> MemoryBudget {
        self.transaction.database().memory_budget().clone()
    }

    fn command(&mut self, _: &SmolStr, _: TransactionCommand) -> Result<()> {
        Err(Error::unsupported(
            "the script runs in a transaction that was begun around it, and is ended there; leave out g.tx()",
        ))
    }

    fn has_written(&self) -> bool {
        self.transaction.write_mark() > 0
    }

    fn commit(&mut self) -> Result<()> {
        Err(Error::bug("a script does not commit a transaction that was begun around it"))
    }

    fn undo(&mut self, error: Error) -> Error {
        error
    }

    fn sink(&mut self) -> &mut dyn ResultSink {
        &mut self.results
    }

    fn rewind(&mut self) -> bool {
        false
    }

    fn note_retry(&mut self) {}
}
