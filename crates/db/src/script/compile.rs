//! Compiles the text or the bytecode of a request to the statements of a [`Script`].
//!
//! Parsing is done here. The caller's [`ScriptPlanner`] plans each traversal, and decides whether its source may be
//! used. An error in a script of several statements names the statement by number and position.

use mangrove_graph::{Result, Value};
use mangrove_gremlin::{Bytecode, ScriptStatement, Statement, Terminal, TransactionCommand};
use smol_str::SmolStr;

use super::failure::ScriptFailure;
use crate::query::plans::parse_options;
use crate::query::prepared::Prepared;
use crate::trace::TRACE_TARGET;

/// Statements that are parsed and planned, to be run together. `Q` is the type of a planned traversal: [`Prepared`] in
/// an embedded database.
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
#[derive(Debug)]
pub struct Script<Q = Prepared> {
    pub(super) statements: Vec<PlannedStatement<Q>>,
    source: SmolStr,
}

/// A statement with its traversal planned.
#[derive(Debug)]
pub(super) struct PlannedStatement<Q> {
    /// The number and the position of the statement, for errors. Set only in a script of several statements.
    pub position: Option<String>,
    /// The variable that gets the value of the statement.
    pub variable: Option<SmolStr>,
    pub action: StatementAction<Q>,
}

/// The action of a statement.
#[derive(Debug)]
pub(super) enum StatementAction<Q> {
    Query(Q, Terminal),
    Transaction(SmolStr, TransactionCommand),
    /// The value of a literal.
    Value(Value),
    /// The value of another variable.
    Variable(SmolStr),
}

/// A traversal of a script, to be planned.
#[derive(Debug)]
pub struct ScriptTraversal {
    /// The traversal source as the script names it.
    pub source: SmolStr,
    /// The traversal, without its terminal step.
    pub bytecode: Bytecode,
    /// The terminal step: how the results are taken.
    pub terminal: Terminal,
}

/// Turns the traversals of a script into queries of a host, and checks the sources that they name.
pub trait ScriptPlanner {
    /// A planned traversal.
    type Query;
    /// The planner's error.
    type Failure: ScriptFailure;

    /// Plans a traversal. Fails if the caller may not use its source.
    fn traversal(&mut self, traversal: ScriptTraversal) -> Result<Self::Query, Self::Failure>;

    /// Returns the host's name of a source that a transaction command names.
    fn source(&mut self, name: &str) -> Result<SmolStr, Self::Failure>;
}

impl<Q> Script<Q> {
    /// Parses a text of any number of statements, and has its traversals planned.
    pub fn compile<P: ScriptPlanner<Query = Q>>(text: &str, planner: &mut P) -> Result<Self, P::Failure> {
        let parsed = {
            let _span = tracing::debug_span!(target: TRACE_TARGET, "parse", bytes = text.len()).entered();
            mangrove_gremlin::parse(text, &parse_options(text))?
        };
        let are_several = parsed.len() > 1;
        let mut script = Script { statements: Vec::with_capacity(parsed.len()), source: source_of(&parsed) };
        for (at, parsed) in parsed.into_iter().enumerate() {
            let position = are_several.then(|| parsed.place(at + 1).to_string());
            let action = plan(parsed.statement, planner);
            let action = action.map_err(|failure| failure.at(position.as_deref()))?;
            script.statements.push(PlannedStatement { position, variable: parsed.variable, action });
        }
        Ok(script)
    }

    /// A request that came as bytecode: one traversal, or one transaction command. Bytecode names no source: it is `g`.
    pub fn from_bytecode<P: ScriptPlanner<Query = Q>>(bytecode: Bytecode, planner: &mut P) -> Result<Self, P::Failure> {
        let source = SmolStr::new_static("g");
        let statement = match TransactionCommand::from_bytecode(&bytecode) {
            Some(command) => Statement::Transaction { source: source.clone(), command },
            None => {
                let (source, terminal) = (source.clone(), Terminal::None);
                Statement::Traversal { source, bytecode, terminal, volatile: false }
            }
        };
        let action = plan(statement, planner)?;
        Ok(Script { statements: vec![PlannedStatement { position: None, variable: None, action }], source })
    }

    /// The first traversal source that the script names, as it names it; `g` if it names none.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The number of statements.
    pub fn len(&self) -> usize {
        self.statements.len()
    }

    /// Returns true if the script has no statement.
    pub fn is_empty(&self) -> bool {
        self.statements.is_empty()
    }

    /// The query, if the script is a single traversal whose results are the answer.
    pub fn only_query(&self) -> Option<&Q> {
        match self.statements.as_slice() {
            [PlannedStatement { variable: None, action: StatementAction::Query(query, _), .. }] => Some(query),
            _ => None,
        }
    }

    /// Returns true if the script says itself when transactions begin and end.
    pub(super) fn has_commands(&self) -> bool {
        self.statements.iter().any(|statement| matches!(statement.action, StatementAction::Transaction(..)))
    }
}

impl Script {
    /// Returns true if no statement writes to the graph and none calls a service, which may do anything.
    pub fn only_reads(&self) -> bool {
        self.statements.iter().all(|statement| match &statement.action {
            StatementAction::Query(prepared, _) => !prepared.is_mutating() && !prepared.calls_services(),
            StatementAction::Transaction(..) | StatementAction::Value(_) | StatementAction::Variable(_) => true,
        })
    }
}

/// The source of the first statement that names one.
fn source_of(statements: &[ScriptStatement]) -> SmolStr {
    let named = statements.iter().find_map(|statement| match &statement.statement {
        Statement::Traversal { source, .. } | Statement::Transaction { source, .. } => Some(source.clone()),
        Statement::Value(_) | Statement::Variable(_) => None,
    });
    named.unwrap_or(SmolStr::new_static("g"))
}

fn plan<P: ScriptPlanner>(statement: Statement, planner: &mut P) -> Result<StatementAction<P::Query>, P::Failure> {
    Ok(match statement {
        Statement::Traversal { source, bytecode, terminal, .. } => {
            let query = planner.traversal(ScriptTraversal { source, bytecode, terminal })?;
            StatementAction::Query(query, terminal)
        }
        Statement::Transaction { source, command } => StatementAction::Transaction(planner.source(&source)?, command),
        Statement::Value(value) => StatementAction::Value(value),
        Statement::Variable(name) => StatementAction::Variable(name),
    })
}
