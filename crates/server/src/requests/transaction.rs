//! The one transaction that a session, or a script of several statements, has open at a time.
//!
//! ```text
//! none ──on──► open ──commit──► none           a request that failed after a write:
//!               │ └──rollback─► none           open ──fail_request──► open, but every call is refused until rollback
//! ```

use mangrove_graph::{Error, ErrorKind, Result};
use smol_str::SmolStr;

use crate::access::caller::Caller;
use crate::engine::contract::{Engine, EngineTransaction};
use crate::status::Failure;

/// None or one open transaction, with the traversal source on which it was begun.
#[derive(Default)]
pub struct CurrentTransaction {
    open: Option<(SmolStr, Box<dyn EngineTransaction>)>,
    /// The open transaction's write mark at the begin of the running request.
    mark: usize,
    /// True if the running request has committed a transaction.
    has_committed: bool,
}

impl CurrentTransaction {
    /// Returns true if a transaction is open.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// The open transaction, begun now if there is none. A source other than that of the open transaction is refused,
    /// since it may stand for another graph or isolation level.
    pub fn on(
        &mut self,
        engine: &dyn Engine,
        source: &SmolStr,
        caller: &Caller,
    ) -> Result<&mut dyn EngineTransaction, Failure> {
        if let Some((open_source, _)) = &self.open
            && open_source != source
        {
            return Err(Failure::invalid(format!(
                "a transaction is open on the traversal source `{open_source}`: commit it or roll it back before using \
                 `{source}` in this session"
            )));
        }
        if self.open.is_none() {
            self.mark = 0;
            self.open = Some((source.clone(), engine.begin(source, caller)?));
        }
        let (_, transaction) = self.open.as_mut().expect("one was opened above if there was none");
        Ok(transaction.as_mut())
    }

    /// Returns true if the open transaction has written something.
    pub fn has_written(&self) -> bool {
        self.open.as_ref().is_some_and(|(_, transaction)| transaction.write_mark() > 0)
    }

    /// Notes the begin of a request.
    pub fn begin_request(&mut self) {
        self.mark = self.open.as_ref().map_or(0, |(_, transaction)| transaction.write_mark());
        self.has_committed = false;
    }

    /// Notes that the request failed. A transaction in which it has written is rolled back, and stays open only to
    /// refuse further calls. Returns the failure, which then also says what became of the request's writes.
    pub fn fail_request(&mut self, mut failure: Failure) -> Failure {
        let error: &Error = &failure.error;
        let is_over = self.open.as_mut().is_some_and(|(_, transaction)| transaction.fail_since(self.mark, error));
        if is_over && error.reason().is_none() {
            failure.error = failure.error.and("the transaction was rolled back");
        }
        match self.has_committed {
            false => failure,
            // Replaces the cause: a conflict, for example, would tell the client to send the request again.
            true => {
                let message = format!(
                    "{}; what this request had committed before that stays, so do not send it again as it is",
                    failure.error.message()
                );
                Error::new(ErrorKind::Committed, message).because("committed").into()
            }
        }
    }

    /// Commits the open transaction, if any, for a caller.
    pub fn commit(&mut self, caller: &Caller) -> Result<()> {
        let Some((_, transaction)) = self.open.take() else { return Ok(()) };
        transaction.commit(caller)?;
        self.has_committed = true;
        Ok(())
    }

    /// Rolls the open transaction back, if any.
    pub fn rollback(&mut self) {
        if let Some((_, transaction)) = self.open.take() {
            transaction.rollback();
        }
    }
}
