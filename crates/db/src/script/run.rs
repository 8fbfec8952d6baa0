//! Runs a [`Script`]: its statements, its variables, the results that are held until the commit, and retries.
//!
//! The engine owns the variables of the run. Transactions, rights and the client belong to the [`ScriptHost`]. Keeps
//! DB-1, DB-2 and DB-3 (`script.rs`).

use mangrove_graph::{Draw, Error, ErrorKind, MemoryBudget, Purpose, Result, Value};
use mangrove_gremlin::script::{VARIABLE_SIZE_MAX, results_of};
use mangrove_gremlin::{Parameters, TransactionCommand};
use smol_str::SmolStr;

use super::compile::{PlannedStatement, Script, StatementAction};
use super::failure::ScriptFailure;
use crate::query::execution;
use crate::retry::Retries;

/// The maximum size of the variables of one script in bytes, approximately.
const VARIABLES_BYTES_MAX: u64 = 64 << 20;

/// Takes the results of a query.
pub trait ResultSink {
    /// Takes some results, each with how many times it occurs. May block until there is room for them. An error means
    /// that no more results are wanted: the query stops and returns the error.
    fn accept(&mut self, results: Vec<(Value, u64)>) -> Result<()>;

    /// Keeps results from now on, until the request is over.
    fn hold(&mut self) {}

    /// Says that there are no more results. The sink does everything with them that can fail, except sending them.
    fn seal(&mut self) -> Result<()> {
        Ok(())
    }
}

/// The destination of the results of a statement.
pub enum ScriptOutput<'a> {
    /// To the client.
    Client,
    /// Into a variable. Elements are to carry no more than id and label: as an argument, an element is its id.
    Variable(&'a mut dyn ResultSink),
    /// Nowhere: only the results of the last statement are returned.
    Nowhere,
}

/// The environment in which a script runs. It has at most one open transaction, knows the caller's rights, and sends
/// results to the client.
pub trait ScriptHost {
    /// A planned traversal.
    type Query;
    /// The host's error.
    type Failure: ScriptFailure;

    /// Runs a query in the open transaction; begins one if none is open. Fails if the caller has no right to it.
    /// `variables` has the parameters of the script and its variables; `None` while no variable has a value.
    fn run(
        &mut self,
        query: &Self::Query,
        variables: Option<&Parameters>,
        output: ScriptOutput<'_>,
    ) -> Result<(), Self::Failure>;

    /// The parameters of the script.
    fn parameters(&self) -> &Parameters;

    /// The memory budget that variables draw on.
    fn memory_budget(&self) -> MemoryBudget;

    /// Begins, commits or rolls back the transaction, because the script says so.
    fn command(&mut self, source: &SmolStr, command: TransactionCommand) -> Result<(), Self::Failure>;

    /// Returns true if the open transaction has written something.
    fn has_written(&self) -> bool;

    /// Commits the open transaction, if there is one, at the end of a script that is a transaction of its own.
    fn commit(&mut self) -> Result<(), Self::Failure>;

    /// Undoes the writes of the script after a failure. Returns the error with a statement about these writes.
    fn undo(&mut self, failure: Self::Failure) -> Self::Failure;

    /// The receiver of the results for the client.
    fn sink(&mut self) -> &mut dyn ResultSink;

    /// The failure as the client should learn it: the sink may know more than the query that met its error.
    fn explain(&mut self, failure: Self::Failure) -> Self::Failure {
        failure
    }

    /// Rolls the transaction back and withdraws all results, to run the script again. Returns false, and does nothing,
    /// if the client has seen a result or the script was cancelled.
    fn rewind(&mut self) -> bool;

    /// Counts a retry.
    fn note_retry(&mut self);
}

impl<Q> Script<Q> {
    /// Runs every statement in the host's open transaction. The results of the last one go to the client.
    pub fn run<H: ScriptHost<Query = Q>>(&self, host: &mut H) -> Result<(), H::Failure> {
        let held = host.memory_budget().account(Purpose::Variables);
        let mut variables = ScriptVariables { values: None, held };
        let Some((last, earlier)) = self.statements.split_last() else { return Ok(()) };
        for statement in earlier {
            let outcome = statement.run(host, &mut variables, false);
            outcome.map_err(|failure| failure.at(statement.position.as_deref()))?;
        }
        if host.has_written() {
            // DB-2: a last statement that only reads still belongs to a transaction that may fail.
            host.sink().hold();
        }
        last.run(host, &mut variables, true).map_err(|failure| failure.at(last.position.as_deref()))
    }

    /// Runs the script and seals its results.
    pub fn run_to_seal<H: ScriptHost<Query = Q>>(&self, host: &mut H) -> Result<(), H::Failure> {
        let outcome = self.run(host).and_then(|()| Ok(host.sink().seal()?));
        outcome.map_err(|failure| host.explain(failure))
    }

    /// Runs the script as a transaction of its own, and commits it. After a conflict it is run again, at most as often
    /// as `retries` says.
    pub fn run_as_transaction<H: ScriptHost<Query = Q>>(
        &self,
        host: &mut H,
        mut retries: Retries,
    ) -> Result<(), H::Failure> {
        loop {
            // DB-2: results are sealed before the commit.
            let outcome = self.run_to_seal(host).and_then(|()| host.commit());
            match outcome {
                Ok(()) => return Ok(()),
                // DB-3.
                Err(failure) if failure.kind() == ErrorKind::Conflict && !self.has_commands() && host.rewind() => {
                    retries.wait(failure.into_error())?;
                    host.note_retry();
                }
                Err(failure) => return Err(host.undo(failure)),
            }
        }
    }
}

impl<Q> PlannedStatement<Q> {
    fn run<H: ScriptHost<Query = Q>>(
        &self,
        host: &mut H,
        variables: &mut ScriptVariables,
        is_last: bool,
    ) -> Result<(), H::Failure> {
        let value = match &self.action {
            StatementAction::Query(query, terminal) => match self.variable {
                None => {
                    let output = if is_last { ScriptOutput::Client } else { ScriptOutput::Nowhere };
                    return host.run(query, variables.values.as_ref(), output);
                }
                Some(_) => {
                    let ScriptVariables { values, held } = variables;
                    let mut kept = KeptResults { results: Vec::new(), held };
                    host.run(query, values.as_ref(), ScriptOutput::Variable(&mut kept))?;
                    terminal.value(kept.results)?
                }
            },
            StatementAction::Transaction(source, command) => return host.command(source, *command),
            StatementAction::Value(value) => value.clone(),
            StatementAction::Variable(name) => {
                let values = variables.values.as_ref().unwrap_or_else(|| host.parameters());
                let missing = || H::Failure::invalid(format!("the variable `{name}` has no value"));
                values.get(name).ok_or_else(missing)?.clone()
            }
        };
        if let Some(name) = &self.variable {
            variables.values.get_or_insert_with(|| host.parameters().clone()).insert(name.clone(), value.clone());
        }
        if is_last { Ok(host.sink().accept(results_of(value))?) } else { Ok(()) }
    }
}

/// The variables of a script that runs.
struct ScriptVariables {
    /// The parameters of the script and the variables, which hide parameters of the same name; `None` while no variable
    /// has a value.
    values: Option<Parameters>,
    /// The memory of the variables, drawn on the memory budget until the script ends.
    held: Draw,
}

/// Keeps results for a variable, within the limits of variables.
struct KeptResults<'a> {
    results: Vec<(Value, u64)>,
    /// The memory of this variable and the earlier ones.
    held: &'a mut Draw,
}

impl ResultSink for KeptResults<'_> {
    fn accept(&mut self, results: Vec<(Value, u64)>) -> Result<()> {
        let bytes = execution::bytes(&results);
        self.results.extend(results);
        let all = self.held.bytes().saturating_add(bytes);
        if self.results.len() as u64 > VARIABLE_SIZE_MAX || all > VARIABLES_BYTES_MAX {
            return Err(Error::new(
                ErrorKind::MemoryLimit,
                format!(
                    "a variable holds at most {VARIABLE_SIZE_MAX} results, and the variables of a script \
                     {VARIABLES_BYTES_MAX} \
                     bytes; take fewer with limit()"
                ),
            ));
        }
        self.held.grow(bytes)
    }
}
