//! Writes histories down while they happen.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::history::{Operation, Outcome, Transaction};

/// The clock that the processes of one history share, and a source of values that nobody else writes.
#[derive(Clone, Default, Debug)]
pub struct Recorder {
    clock: Arc<AtomicU64>,
    values: Arc<AtomicU64>,
}

impl Recorder {
    /// A transaction that begins after this call.
    pub fn begin(&self, process: u32) -> Draft {
        // Sequentially consistent: a transaction that a client begins after it saw another end must get the later
        // number, on whatever thread.
        let invoked = self.clock.fetch_add(1, Ordering::SeqCst);
        Draft { recorder: self.clone(), transaction: Transaction::new(process, invoked, 0, Outcome::Unknown) }
    }

    /// A value of its own.
    pub fn value(&self) -> u64 {
        self.values.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// A transaction that is running.
#[derive(Debug)]
pub struct Draft {
    recorder: Recorder,
    transaction: Transaction,
}

impl Draft {
    /// Writes an operation down: a read after it succeeded, a write before it is tried.
    pub fn push(&mut self, operation: Operation) {
        self.transaction.operations.push(operation);
    }

    /// A value of its own.
    pub fn value(&self) -> u64 {
        self.recorder.value()
    }

    /// The transaction, whose end is known now.
    pub fn finish(mut self, outcome: Outcome) -> Transaction {
        self.transaction.completed = self.recorder.clock.fetch_add(1, Ordering::SeqCst);
        self.transaction.outcome = outcome;
        self.transaction
    }
}
