//! An accepted request: its work, the destination of its answer, and everything that it holds until it ends.

use mangrove_graph::{Draw, MemoryBudget};
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use uuid::Uuid;

use crate::access::caller::Caller;
use crate::answers::batch::{BatchSize, ResultForm};
use crate::answers::carrier::Carrier;
use crate::answers::outgoing::Outgoing;
use crate::answers::result_max::ResultMax;
use crate::answers::sink::ChannelSink;
use crate::answers::wire::{self, MessageFormat};
use crate::engine::cancel::Cancellation;
use crate::requests::call::RequestWork;
use crate::status::Failure;

/// A request that was accepted. Dropping it releases its permit and its memory.
pub struct AcceptedRequest {
    /// The caller.
    pub caller: Caller,
    /// The work that the request asks for.
    pub work: RequestWork,
    /// The destination of the answer.
    pub reply: Reply,
    /// Ends the request early.
    pub watch: crate::requests::worker::RequestWatch,
    /// Its permit among the connection's requests in flight.
    pub permit: OwnedSemaphorePermit,
    /// The request's draw on the memory budget.
    pub held: Draw,
}

/// The destination of the answer to one request.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The request's id.
    pub request: Uuid,
    /// The format of response messages.
    pub format: MessageFormat,
    /// The form of results.
    pub form: ResultForm,
    /// The size of a response.
    pub batch_size: BatchSize,
    /// The connection's outgoing queue.
    pub outgoing: Outgoing,
    /// The memory budget that answers draw on.
    pub budget: MemoryBudget,
}

impl Reply {
    /// The operation's label in metrics.
    pub fn operation(&self) -> &'static str {
        match self.form {
            ResultForm::Values => "eval",
            ResultForm::Traversers => "bytecode",
        }
    }

    /// A sink for the results of the request.
    pub fn sink(&self, result_max: ResultMax, cancellation: &Cancellation, runtime: Handle) -> ChannelSink {
        let carrier = Carrier::Socket { request: self.request, format: self.format, outgoing: self.outgoing.clone() };
        let budget = self.budget.clone();
        ChannelSink::new(carrier, self.form, self.batch_size, result_max, budget, cancellation.clone(), runtime)
    }

    /// Answers with a failure (SERVER-5: the last message). If the connection is gone, nothing happens.
    pub async fn fail(&self, failure: &Failure) {
        let _ = self.outgoing.send(wire::failure(self.format, Some(self.request), failure)).await;
    }

    /// Answers that the request is done and has no results.
    pub async fn done(&self) {
        let _ = self.outgoing.send(wire::done(self.format, self.request)).await;
    }
}
