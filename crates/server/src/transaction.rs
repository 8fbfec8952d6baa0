//! The one transaction that a session, or a script of several statements, has open at a time.

use mangrove_graph::Result;
use smol_str::SmolStr;

use crate::access::Caller;
use crate::engine::{Engine, EngineTransaction};
use crate::status::Failure;

/// None or one open transaction, with the traversal source it was begun on.
#[derive(Default)]
pub struct Slot {
    open: Option<(SmolStr, Box<dyn EngineTransaction>)>,
}

impl Slot {
    /// Whether a transaction is open.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// The open transaction, begun now if there is none. A source other than the open one's is refused: it
    /// may stand for another graph or another isolation level.
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
            self.open = Some((source.clone(), engine.begin(source, caller)?));
        }
        let (_, transaction) = self.open.as_mut().expect("one was opened above if there was none");
        Ok(transaction.as_mut())
    }

    /// Commits the open transaction; with none open there is nothing to commit.
    pub fn commit(&mut self) -> Result<()> {
        match self.open.take() {
            Some((_, transaction)) => transaction.commit(),
            None => Ok(()),
        }
    }

    /// Undoes the open transaction, if any.
    pub fn rollback(&mut self) {
        if let Some((_, transaction)) = self.open.take() {
            transaction.rollback();
        }
    }
}
