//! Records histories while transactions run, on any number of threads.
//!
//! The interval of a record encloses the transaction: its begin is noted before the transaction begins, its end after
//! the client has learned of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::history::{Operation, Outcome, Transaction};

/// The clock that the processes of one history share, and a source of unique values.
#[derive(Clone, Default, Debug)]
pub struct Recorder {
    clock: Arc<AtomicU64>,
    values: Arc<AtomicU64>,
}

impl Recorder {
    /// Begins to record a transaction. The call must precede the transaction's begin.
    pub fn begin(&self, process: u32) -> Draft {
        // Sequentially consistent: a transaction that a client begins after it saw another one end must get the later
        // number, on any thread.
        let invoked = self.clock.fetch_add(1, Ordering::SeqCst);
        Draft { recorder: self.clone(), transaction: Transaction::new(process, invoked, 0, Outcome::Unknown) }
    }

    /// A value that this recorder returns only once, above 0.
    pub fn value(&self) -> u64 {
        self.values.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// The record of a running transaction.
#[derive(Debug)]
pub struct Draft {
    recorder: Recorder,
    transaction: Transaction,
}

impl Draft {
    /// Records an operation: a read after it succeeded, a write before it is tried.
    pub fn push(&mut self, operation: Operation) {
        self.transaction.operations.push(operation);
    }

    /// A value that the recorder returns only once, above 0.
    pub fn value(&self) -> u64 {
        self.recorder.value()
    }

    /// Completes the record; the end of the transaction is known now.
    pub fn finish(mut self, outcome: Outcome) -> Transaction {
        self.transaction.completed = self.recorder.clock.fetch_add(1, Ordering::SeqCst);
        self.transaction.outcome = outcome;
        self.transaction
    }
}
