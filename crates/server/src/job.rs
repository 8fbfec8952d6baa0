//! One request on its way through the server: what to do, where the answer goes, and what ends it early.

use mangrove_graph::{Draw, MemoryBudget};
use smol_str::SmolStr;
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use uuid::Uuid;

use crate::access::Caller;
use crate::cancel::Cancellation;
use crate::outgoing::Outgoing;
use crate::program::Evaluation;
use crate::sink::{BatchSize, ChannelSink, ResultMax};
use crate::status::Failure;
use crate::wire::{self, Carrier, Form, Format};

/// A request as the wire has it.
#[derive(Debug)]
pub struct Call {
    /// Its id, which every answer repeats.
    pub request: Uuid,
    /// The session it belongs to.
    pub session: Option<SmolStr>,
    /// How messages are written.
    pub format: Format,
    /// How results are written.
    pub form: Form,
    /// How much a response holds.
    pub batch_size: BatchSize,
    /// What to do.
    pub work: Work,
}

/// What a request asks for.
#[derive(Debug)]
pub enum Work {
    /// Run a query.
    Evaluate(Evaluation),
    /// Close the session.
    Close,
    /// Prove who is asking: a message of SASL PLAIN, or why there is none.
    Authenticate(Result<Vec<u8>, Failure>),
}

/// A request that was accepted.
pub struct Job {
    /// Who asks.
    pub caller: Caller,
    /// What to do.
    pub work: Work,
    /// Where the answer goes.
    pub reply: Reply,
    /// What ends it early.
    pub watch: crate::worker::Watch,
    /// Its place among the connection's requests in flight.
    pub permit: OwnedSemaphorePermit,
    /// What the request takes of the memory budget.
    pub held: Draw,
}

/// Where the answer to one request goes.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The request's id.
    pub request: Uuid,
    /// How messages are written.
    pub format: Format,
    /// How results are written.
    pub form: Form,
    /// How much a response holds.
    pub batch_size: BatchSize,
    /// The connection.
    pub outgoing: Outgoing,
    /// The memory budget that answers draw on.
    pub budget: MemoryBudget,
}

impl Reply {
    /// What it was, for counters.
    pub fn operation(&self) -> &'static str {
        match self.form {
            Form::Values => "eval",
            Form::Traversers => "bytecode",
        }
    }

    /// A sink for the results.
    pub fn sink(&self, result_max: ResultMax, cancellation: &Cancellation, runtime: Handle) -> ChannelSink {
        let carrier = Carrier::Socket { request: self.request, format: self.format, outgoing: self.outgoing.clone() };
        let budget = self.budget.clone();
        ChannelSink::new(carrier, self.form, self.batch_size, result_max, budget, cancellation.clone(), runtime)
    }

    /// Answers with an error. When the connection is gone there is nobody to tell.
    pub async fn fail(&self, failure: &Failure) {
        let _ = self.outgoing.send(wire::failure(self.format, Some(self.request), failure)).await;
    }

    /// Answers that it is done and that there are no results.
    pub async fn done(&self) {
        let _ = self.outgoing.send(wire::done(self.format, self.request)).await;
    }
}
