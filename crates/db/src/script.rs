//! Scripts: several statements as one transaction, with variables.
//!
//! The statements run in order in one transaction, each seeing what those before it wrote; the results of the last are
//! those of the script. A statement that fails takes everything back, and the error names its number and its place. A
//! variable holds values: elements are held as references to them, good in the script's later statements.
//!
//! A script run by the database begins its own transaction, commits it, and is run again after a conflict. It may also say
//! itself when (`g.tx().commit()`): then it is as many transactions as it says, and is not run again, because what it
//! committed stays. In a [`Transaction`] that somebody else has begun, it has no say in that.

use mangrove_graph::{Error, ErrorKind, Result, Value};
use mangrove_gremlin::script::results_of;
use mangrove_gremlin::{Parameters, ScriptStatement, Statement, Terminal, TransactionCommand};
use smol_str::SmolStr;

use crate::database::{Database, QueryOptions};
use crate::prepared::{Prepared, parse_options};
use crate::stream::{Materialize, ResultStream};
use crate::transaction::Transaction;

/// Statements that are parsed and planned, to be run together.
///
/// ```
/// use mangrove::{Database, Parameters, QueryOptions, Value};
///
/// # fn main() -> mangrove::Result<()> {
/// let db = Database::in_memory();
/// let script = db.prepare_script(
///     "ada = g.addV('person').property('name', 'ada').next()
///      bob = g.addV('person').property('name', 'bob').next()
///      g.addE('knows').from(ada).to(bob).iterate()
///      g.V(ada).out('knows').values('name')",
/// )?;
/// let names = db.run_script(&script, &Parameters::new(), &QueryOptions::default())?.collect()?;
/// assert_eq!(names, vec![Value::from("bob")]);
/// # Ok(())
/// # }
/// ```
pub struct Script {
    statements: Vec<Planned>,
    source: SmolStr,
}

struct Planned {
    /// Its number and where it stands, for errors; of a script with more than one.
    place: Option<String>,
    variable: Option<SmolStr>,
    action: Action,
}

enum Action {
    Query(Prepared, Terminal),
    Transaction(TransactionCommand),
    Value(Value),
    Variable(SmolStr),
}

impl Script {
    /// The traversal source that its traversals name; `g` where there are none.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// How many statements there are.
    pub fn len(&self) -> usize {
        self.statements.len()
    }

    /// Whether there is no statement.
    pub fn is_empty(&self) -> bool {
        self.statements.is_empty()
    }

    /// Returns true if no statement writes to the graph and none calls a service, which may do anything.
    pub fn only_reads(&self) -> bool {
        self.statements.iter().all(|planned| match &planned.action {
            Action::Query(prepared, _) => !prepared.is_mutating() && !prepared.calls_services(),
            Action::Transaction(_) | Action::Value(_) | Action::Variable(_) => true,
        })
    }

    /// The only statement, where it is a traversal whose results are the answer.
    fn only_query(&self) -> Option<&Prepared> {
        match self.statements.as_slice() {
            [Planned { variable: None, action: Action::Query(prepared, _), .. }] => Some(prepared),
            _ => None,
        }
    }

    /// Whether it says itself when transactions begin and end.
    fn has_commands(&self) -> bool {
        self.statements.iter().any(|planned| matches!(planned.action, Action::Transaction(_)))
    }
}

/// The error with the place of its statement.
fn placed(place: Option<&str>, error: Error) -> Error {
    match place {
        Some(place) => error.context(place),
        None => error,
    }
}

impl Database {
    /// Parses and plans a script of any number of statements.
    pub fn prepare_script(&self, text: &str) -> Result<Script> {
        let parsed = mangrove_gremlin::parse(text, &parse_options())?;
        if let [ScriptStatement { variable: None, statement: Statement::Traversal { source, terminal, .. }, .. }] =
            parsed.as_slice()
        {
            // What is asked again and again is planned once.
            let action = Action::Query(self.prepare(text)?, *terminal);
            let statements = vec![Planned { place: None, variable: None, action }];
            return Ok(Script { statements, source: source.clone() });
        }
        let mut script = Script { statements: Vec::with_capacity(parsed.len()), source: "g".into() };
        let (mut source, are_several) = (None, parsed.len() > 1);
        for (at, statement) in parsed.into_iter().enumerate() {
            let place = are_several.then(|| statement.place(at + 1).to_string());
            let action = plan(statement.statement, &mut source).map_err(|error| placed(place.as_deref(), error))?;
            script.statements.push(Planned { place, variable: statement.variable, action });
        }
        script.source = source.unwrap_or(script.source);
        Ok(script)
    }

    /// Runs a script in a transaction of its own, and commits. The results of its last statement are read as they are
    /// worked out where it is a single traversal that only reads; otherwise all is over when this returns.
    pub fn run_script(&self, script: &Script, parameters: &Parameters, options: &QueryOptions) -> Result<ResultStream> {
        if let Some(prepared) = script.only_query() {
            return self.run_with(prepared, parameters, options);
        }
        let attempt = || {
            let mut open = None;
            let results = script.run(&mut Host::Own { database: self, open: &mut open }, parameters, options)?;
            open.map_or(Ok(()), |transaction| transaction.commit().map(drop))?;
            Ok(results)
        };
        let results = if script.has_commands() { attempt() } else { self.retrying(options, attempt) }?;
        Ok(ResultStream::finished(results))
    }
}

impl Transaction {
    /// Runs a script in this transaction, as one request: if a statement fails after any of them has written, the transaction
    /// is rolled back. See [`Script`].
    pub fn run_script(&self, script: &Script, parameters: &Parameters, options: &QueryOptions) -> Result<ResultStream> {
        if let Some(prepared) = script.only_query() {
            return self.run_with(prepared, parameters, options);
        }
        let results = self.whole(|| script.run(&mut Host::Given(self), parameters, options))?;
        Ok(ResultStream::finished(results))
    }
}

/// Whose transaction a script runs in.
enum Host<'a> {
    /// Its own, begun when a statement needs one.
    Own { database: &'a Database, open: &'a mut Option<Transaction> },
    /// Somebody's.
    Given(&'a Transaction),
}

impl Host<'_> {
    fn transaction(&mut self, options: &QueryOptions) -> Result<&Transaction> {
        match self {
            Host::Given(transaction) => Ok(transaction),
            Host::Own { database, open } => {
                if open.is_none() {
                    **open = Some(database.begin_as(options)?);
                }
                Ok(open.as_ref().expect("one was begun above if there was none"))
            }
        }
    }

    fn command(&mut self, command: TransactionCommand, options: &QueryOptions) -> Result<()> {
        match (self, command) {
            (Host::Given(_), _) => Err(Error::unsupported(
                "the script runs in a transaction that was begun around it, and is ended there; leave out g.tx()",
            )),
            (host @ Host::Own { .. }, TransactionCommand::Begin) => host.transaction(options).map(drop),
            (Host::Own { open, .. }, TransactionCommand::Commit) => {
                open.take().map_or(Ok(()), |transaction| transaction.commit().map(drop))
            }
            (Host::Own { open, .. }, TransactionCommand::Rollback) => {
                drop(open.take());
                Ok(())
            }
        }
    }
}

impl Script {
    fn run(&self, host: &mut Host<'_>, parameters: &Parameters, options: &QueryOptions) -> Result<Vec<(Value, u64)>> {
        let mut variables = parameters.clone();
        let mut results = Vec::new();
        for planned in &self.statements {
            results =
                planned.run(host, &mut variables, options).map_err(|error| placed(planned.place.as_deref(), error))?;
        }
        Ok(results)
    }
}

impl Planned {
    fn run(
        &self,
        host: &mut Host<'_>,
        variables: &mut Parameters,
        options: &QueryOptions,
    ) -> Result<Vec<(Value, u64)>> {
        let value = match &self.action {
            Action::Query(prepared, terminal) => {
                let transaction = host.transaction(options)?;
                if self.variable.is_none() {
                    return transaction.run_kept(prepared, variables, options);
                }
                // As an argument, an element is its id.
                let options = QueryOptions { materialize: Materialize::Tokens, ..options.clone() };
                terminal.value(transaction.run_kept(prepared, variables, &options)?)?
            }
            Action::Transaction(command) => {
                host.command(*command, options)?;
                return Ok(Vec::new());
            }
            Action::Value(value) => value.clone(),
            Action::Variable(name) => {
                let missing = || Error::new(ErrorKind::InvalidArgument, format!("the variable `{name}` has no value"));
                variables.get(name).ok_or_else(missing)?.clone()
            }
        };
        if let Some(name) = &self.variable {
            variables.insert(name.clone(), value.clone());
        }
        Ok(results_of(value))
    }
}

/// What a statement does; all traversals of a script begin at the same source.
fn plan(statement: Statement, source: &mut Option<SmolStr>) -> Result<Action> {
    let mut at_source = |named: SmolStr| match source {
        Some(known) if *known != named => Err(Error::unsupported(format!(
            "a script is one transaction on one traversal source: this is `{named}`, and the statements before are on `{known}`"
        ))),
        _ => {
            *source = Some(named);
            Ok(())
        }
    };
    Ok(match statement {
        Statement::Traversal { source, bytecode, terminal, .. } => {
            let prepared = Prepared::of_source(&source, &bytecode, terminal)?;
            at_source(source)?;
            Action::Query(prepared, terminal)
        }
        Statement::Transaction { source, command } => {
            at_source(source)?;
            Action::Transaction(command)
        }
        Statement::Value(value) => Action::Value(value),
        Statement::Variable(name) => Action::Variable(name),
    })
}
