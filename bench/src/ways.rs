//! The ways to run one question in Gremlin: prepared, as text, or through a server.
//!
//! A *question* is a script with parameters. Every way reduces its results to the same number, so that answers can be
//! compared before times are taken. Scripts are prepared and the server is connected outside of the time.

use std::sync::Arc;

use mangrove::{Database, Isolation, Parameters, Prepared, Result, Value};

use crate::client::Client;
use crate::harness::Operation;
use crate::people::digest;
use crate::served::{Served, source};

/// A way to run a question.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// Prepared once, run with parameters.
    Prepared,
    /// As text with parameters: parsed and planned once, later found in the plan cache.
    Text,
    /// As text with parameters, through the server.
    Server,
}

impl Way {
    /// All ways.
    pub const ALL: [Way; 3] = [Way::Prepared, Way::Text, Way::Server];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Way::Prepared => "prepared",
            Way::Text => "text",
            Way::Server => "server",
        }
    }
}

/// Puts an input into the parameters of a question.
pub type Bind = Arc<dyn Fn(u64, &mut Parameters) + Send + Sync>;

/// A script with parameters that are made from inputs. Its answer is the sum of the digests of the results.
#[derive(Clone)]
pub struct Question {
    script: &'static str,
    bind: Bind,
}

impl Question {
    /// A question with this script.
    pub fn new(script: &'static str, bind: impl Fn(u64, &mut Parameters) + Send + Sync + 'static) -> Self {
        Question { script, bind: Arc::new(bind) }
    }

    /// The question as an operation that runs it in this way. Prepares the script or connects to the server, if the way
    /// needs it.
    pub fn ask(&self, way: Way, database: &Database, served: &Served) -> Result<Box<dyn Operation>> {
        let state = match way {
            Way::Prepared => WayState::Prepared(database.clone(), database.prepare(self.script)?),
            Way::Text => WayState::Text(database.clone(), self.script),
            Way::Server => WayState::Server(
                Box::new(Client::connect(served.address(), source(Isolation::Serializable))?),
                self.script,
            ),
        };
        Ok(Box::new(QuestionOperation { state, bind: self.bind.clone(), parameters: Parameters::new() }))
    }
}

/// A way with the objects that it needs for every run.
enum WayState {
    Prepared(Database, Prepared),
    Text(Database, &'static str),
    Server(Box<Client>, &'static str),
}

/// A question in one way.
struct QuestionOperation {
    state: WayState,
    bind: Bind,
    parameters: Parameters,
}

impl Operation for QuestionOperation {
    fn perform(&mut self, input: u64) -> Result<u64> {
        (self.bind)(input, &mut self.parameters);
        let mut answer = 0u64;
        let mut add = |value: &Value, bulk: u64| answer = answer.wrapping_add(digest(value).wrapping_mul(bulk));
        match &mut self.state {
            WayState::Prepared(database, prepared) => run(database, prepared, &self.parameters, &mut add)?,
            WayState::Text(database, script) => run(database, &database.prepare(script)?, &self.parameters, &mut add)?,
            WayState::Server(client, script) => client.evaluate(script, &self.parameters, &mut add)?,
        }
        Ok(answer)
    }
}

fn run(
    database: &Database,
    prepared: &Prepared,
    parameters: &Parameters,
    each: &mut dyn FnMut(&Value, u64),
) -> Result<()> {
    let mut results = database.run(prepared, parameters)?;
    while let Some(batch) = results.next_batch()? {
        batch.iter().for_each(|(value, bulk)| each(value, *bulk));
    }
    Ok(())
}
