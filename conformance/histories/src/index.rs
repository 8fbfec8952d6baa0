//! An index of the history by object and value: writers, removers, uses, and the transactions that count.
//!
//! A transaction *counts* if it committed, or if its outcome is unknown and a transaction that counts read its writes.
//! The index is complete before any other part of the check runs, and does not change afterwards.

use std::collections::HashMap;

use crate::anomaly::{Anomaly, Kind, Order};
use crate::explain;
use crate::history::{History, InvalidHistory, Object, Operation, Outcome, Transaction, Type};

/// The writer of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writer {
    /// The index of the transaction in the history.
    pub transaction: u32,
    /// True if it wrote nothing else to the object afterwards.
    pub last: bool,
}

/// All operations on one object.
pub(crate) struct Uses {
    pub object: Object,
    pub kind: Type,
    /// Indexes of transaction and operation, in the order of the history, then of the transaction.
    pub operations: Vec<(u32, u32)>,
}

pub(crate) struct Index<'h> {
    pub history: &'h History,
    /// True for each transaction that counts.
    pub included: Vec<bool>,
    /// All objects. Dependencies name an object by its index here.
    pub objects: Vec<Uses>,
    writers: HashMap<(Object, u64), Writer>,
    removers: HashMap<(Object, u64), u32>,
    /// Pairs of committed transactions that both removed one value.
    pub removed_twice: Vec<(Object, u32, u32)>,
}

impl<'h> Index<'h> {
    pub fn new(history: &'h History) -> Result<Self, InvalidHistory> {
        let mut index = Index {
            history,
            included: history.transactions.iter().map(|t| t.outcome == Outcome::Committed).collect(),
            objects: Vec::new(),
            writers: HashMap::new(),
            removers: HashMap::new(),
            removed_twice: Vec::new(),
        };
        index.sort_operations()?;
        index.include_seen();
        Ok(index)
    }

    /// Groups operations by object and notes writers and removers. Fails if the history breaks a rule.
    fn sort_operations(&mut self) -> Result<(), InvalidHistory> {
        let mut object_indexes: HashMap<Object, usize> = HashMap::new();
        for (t, transaction) in self.history.transactions.iter().enumerate() {
            if transaction.completed < transaction.invoked {
                return Err(InvalidHistory(format!("T{t} ended before it began")));
            }
            let mut previous: HashMap<Object, u64> = HashMap::new();
            for (o, operation) in transaction.operations.iter().enumerate() {
                let (object, kind) = (operation.object(), operation.kind());
                let object_index = *object_indexes.entry(object).or_insert_with(|| {
                    self.objects.push(Uses { object, kind, operations: Vec::new() });
                    self.objects.len() - 1
                });
                let uses = &mut self.objects[object_index];
                if uses.kind != kind {
                    let name = self.history.show(object);
                    return Err(InvalidHistory(format!("{name} is used as a {:?} and as a {kind:?}", uses.kind)));
                }
                uses.operations.push((t as u32, o as u32));
                self.note_write(t as u32, operation, &mut previous)?;
            }
        }
        Ok(())
    }

    fn note_write(
        &mut self,
        transaction: u32,
        operation: &Operation,
        previous: &mut HashMap<Object, u64>,
    ) -> Result<(), InvalidHistory> {
        let object = operation.object();
        if let Operation::Remove { value, .. } = operation {
            self.note_removal(transaction, object, *value);
        }
        let Some(value) = operation.written() else { return Ok(()) };
        if self.writers.insert((object, value), Writer { transaction, last: true }).is_some() {
            let name = self.history.show(object);
            return Err(InvalidHistory(format!("{value} is written to {name} twice; every value may be written once")));
        }
        if let Some(earlier) = previous.insert(object, value)
            && let Some(writer) = self.writers.get_mut(&(object, earlier))
        {
            writer.last = false;
        }
        Ok(())
    }

    fn note_removal(&mut self, transaction: u32, object: Object, value: u64) {
        let outcome = |t: u32| self.history.transactions[t as usize].outcome;
        match (outcome(transaction), self.removers.get(&(object, value)).copied()) {
            // A removal by an aborted transaction has no effect.
            (Outcome::Aborted, _) => {}
            (Outcome::Committed, Some(other)) if outcome(other) == Outcome::Committed && other != transaction => {
                self.removed_twice.push((object, other, transaction));
            }
            // If a known commit removed the value, a transaction of unknown outcome did not.
            (Outcome::Unknown, Some(_)) => {}
            (_, _) => {
                self.removers.insert((object, value), transaction);
            }
        }
    }

    /// Includes transactions of unknown outcome whose writes were seen by transactions that count.
    fn include_seen(&mut self) {
        let mut pending: Vec<usize> = (0..self.included.len()).filter(|&t| self.included[t]).collect();
        if self.history.transactions.iter().all(|t| t.outcome != Outcome::Unknown) {
            return;
        }
        while let Some(t) = pending.pop() {
            for operation in &self.history.transactions[t].operations {
                for value in operation.met() {
                    let Some(writer) = self.writers.get(&(operation.object(), *value)) else { continue };
                    let w = writer.transaction as usize;
                    if self.history.transactions[w].outcome == Outcome::Unknown && !self.included[w] {
                        self.included[w] = true;
                        pending.push(w);
                    }
                }
            }
        }
    }

    pub fn transaction(&self, t: u32) -> &'h Transaction {
        &self.history.transactions[t as usize]
    }

    pub fn operation(&self, (t, o): (u32, u32)) -> &'h Operation {
        &self.history.transactions[t as usize].operations[o as usize]
    }

    pub fn includes(&self, t: u32) -> bool {
        self.included[t as usize]
    }

    pub fn writer(&self, object: Object, value: u64) -> Option<Writer> {
        self.writers.get(&(object, value)).copied()
    }

    /// The writer of a value, if the writer counts.
    pub fn committed_writer(&self, object: Object, value: u64) -> Option<u32> {
        self.writer(object, value).map(|w| w.transaction).filter(|&w| self.includes(w))
    }

    /// The transaction that removed a value from a set, even if its outcome is unknown.
    pub fn remover(&self, object: Object, value: u64) -> Option<u32> {
        self.removers.get(&(object, value)).copied()
    }

    /// Returns an anomaly if no transaction may read this value: no transaction wrote it, or its writer aborted, or its
    /// writer replaced it later (`replaced`: the read is of a version that ended with this value).
    pub fn bad_read(&self, reader: u32, object: Object, value: u64, replaced: bool) -> Option<Anomaly> {
        let name = self.history.show(object);
        let anomaly = |kind, transactions: Vec<u32>, text: String| {
            let shown = explain::transactions(self.history, &transactions, Some(object));
            Some(Anomaly {
                kind,
                order: Order::Data,
                transactions: transactions.into_iter().map(|t| t as usize).collect(),
                explanation: format!("{text}\n{shown}"),
            })
        };
        let Some(writer) = self.writer(object, value) else {
            let text = format!("T{reader} read {value} in {name}, which no transaction wrote");
            return anomaly(Kind::GarbageRead, vec![reader], text);
        };
        let w = writer.transaction;
        if w == reader {
            return None;
        }
        if self.transaction(w).outcome == Outcome::Aborted {
            let text = format!("T{reader} read {value} in {name}, which T{w} wrote and then aborted");
            return anomaly(Kind::G1a, vec![reader, w], text);
        }
        if replaced && !writer.last {
            let text =
                format!("T{reader} read {name} as it was when T{w} had written {value}, but not its later writes");
            return anomaly(Kind::G1b, vec![reader, w], text);
        }
        None
    }
}
