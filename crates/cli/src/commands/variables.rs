//! Variables of statements that are run one by one, by `query --each` and by the console. Values are kept here and sent
//! with the next statements as parameters.
//!
//! A script that is sent as a whole has its variables where it runs and does not need these.

use mangrove::{Error, Materialize, Parameters, Result, Value};
use mangrove_gremlin::script::results_of;
use mangrove_gremlin::{ScriptStatement, Statement};

use crate::connection::{Ask, Connection, Results};

/// Values by name.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    /// The parameters given, and the values that statements have named.
    pub values: Parameters,
}

impl Variables {
    /// Starts with these values.
    pub fn new(values: Parameters) -> Self {
        Variables { values }
    }

    /// Runs one statement of `text`, and keeps its value if the statement names it. `like` has the options of the
    /// request; its script and parameters are not used.
    pub fn run<'a>(
        &'a mut self,
        connection: &'a mut Connection,
        statement: &ScriptStatement,
        text: &'a str,
        like: &Ask<'_>,
    ) -> Result<Results<'a>> {
        let ask = Ask { script: &text[statement.expression.clone()], parameters: &self.values, ..*like };
        let value = match (&statement.variable, &statement.statement) {
            (None, Statement::Traversal { .. } | Statement::Transaction { .. }) => {
                return connection.ask(&ask);
            }
            (_, Statement::Traversal { terminal, .. }) => {
                let ask = Ask { materialize: Materialize::Tokens, ..ask };
                let results = connection.ask(&ask)?.map(|result| Ok((result?, 1)));
                terminal.value(results.collect::<Result<_>>()?)?
            }
            (_, Statement::Value(value)) => value.clone(),
            (_, Statement::Variable(name)) => self.get(name)?.clone(),
            (Some(_), Statement::Transaction { .. }) => return Err(Error::invalid("a transaction is no value")),
        };
        if let Some(name) = &statement.variable {
            self.values.insert(name.clone(), value.clone());
        }
        Ok(Box::new(results_of(value).into_iter().map(|(value, _)| Ok(value))))
    }

    /// The value of a name. Fails if it has none.
    pub fn get(&self, name: &str) -> Result<&Value> {
        self.values.get(name).ok_or_else(|| Error::invalid(format!("the variable `{name}` has no value")))
    }
}
