//! A decoded request: its id, its session, the form of its answer, and the work that it asks for.

use smol_str::SmolStr;
use uuid::Uuid;

use super::program::{Evaluation, WireQuery};
use crate::answers::batch::{BatchSize, ResultForm};
use crate::answers::wire::MessageFormat;
use crate::memory::budget;
use crate::status::Failure;

/// A request as it was decoded.
#[derive(Debug)]
pub struct DecodedRequest {
    /// The request's id, which every answer repeats.
    pub request: Uuid,
    /// The session that the request names.
    pub session: Option<SmolStr>,
    /// The format of response messages.
    pub format: MessageFormat,
    /// The form of results.
    pub form: ResultForm,
    /// The size of a response.
    pub batch_size: BatchSize,
    /// The work that the request asks for.
    pub work: RequestWork,
}

/// The work that a request asks for.
#[derive(Debug)]
pub enum RequestWork {
    /// Run a query.
    Evaluate(Evaluation),
    /// Close the session.
    Close,
    /// Log in, with a message of SASL PLAIN, or the failure to read one.
    Authenticate(Result<Vec<u8>, Failure>),
}

impl RequestWork {
    /// About how many bytes the decoded request takes in memory, if its message had `length` bytes. Values of
    /// parameters are known by now. The size of a parsed script or of bytecode is an estimate.
    pub fn memory_bytes(&self, length: usize) -> u64 {
        match self {
            RequestWork::Evaluate(Evaluation { gremlin, parameters, .. }) => {
                let query = match gremlin {
                    WireQuery::Script(text) => budget::decoded_bytes(text.len()).saturating_add(text.len() as u64),
                    WireQuery::Bytecode(_) => budget::decoded_bytes(length),
                };
                budget::values_bytes(parameters.values()).saturating_add(query)
            }
            RequestWork::Close | RequestWork::Authenticate(_) => 0,
        }
    }
}
