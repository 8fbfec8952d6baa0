//! One transaction against the database that writes its own history.
//!
//! All operations of a workload go through four calls, two for reads and two for writes, Gremlin and typed. A [`Fault`]
//! can be injected there, to test that the checker finds it.

use mangrove::{
    Database, Direction, ErrorKind, ExpandCursor, ExpandRequest, Expansion, Result, Transaction, TransactionOptions,
    UserId, Value, ValueRows, VertexId,
};
use mangrove_histories::{self as histories, Draft, Operation, Outcome, Recorder};

use super::support::{integer, integers, parameters};

/// A way to break isolation on purpose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Nothing is broken.
    None,
    /// Every read sees the latest committed state instead of the transaction's.
    ReadsOutside,
    /// Every write is committed at once, on its own.
    WritesOutside,
    /// The transaction reports success and rolls back.
    CommitsNothing,
}

pub struct Attempt<'d> {
    database: &'d Database,
    transaction: Transaction,
    draft: Draft,
    fault: Fault,
}

impl<'d> Attempt<'d> {
    pub fn begin(
        database: &'d Database,
        recorder: &Recorder,
        process: u32,
        options: TransactionOptions,
        fault: Fault,
    ) -> Self {
        let draft = recorder.begin(process);
        Attempt { database, transaction: database.begin_with(options).unwrap(), draft, fault }
    }

    /// A value that no other transaction writes.
    pub fn value(&self) -> u64 {
        self.draft.value()
    }

    /// Records an operation: a read after it was done, a write before it is tried.
    pub fn note(&mut self, operation: Operation) {
        self.draft.push(operation);
    }

    /// Returns true if the typed interface can be used, which bypasses faults.
    pub fn is_sound(&self) -> bool {
        self.fault == Fault::None
    }

    pub fn read(&self, script: &str, values: &[i64]) -> Result<Vec<Value>> {
        let prepared = self.database.prepare(script)?;
        let parameters = parameters(values);
        match self.fault {
            Fault::ReadsOutside => self.database.run(&prepared, &parameters)?.collect(),
            _ => self.transaction.run(&prepared, &parameters)?.collect(),
        }
    }

    pub fn read_numbers(&self, script: &str, values: &[i64]) -> Result<Vec<u64>> {
        Ok(integers(&self.read(script, values)?).into_iter().map(|n| n as u64).collect())
    }

    pub fn write(&self, script: &str, values: &[i64]) -> Result<()> {
        let prepared = self.database.prepare(script)?;
        let parameters = parameters(values);
        match self.fault {
            Fault::WritesOutside => self.database.run(&prepared, &parameters)?.collect().map(drop),
            _ => self.transaction.run(&prepared, &parameters)?.collect().map(drop),
        }
    }

    fn find(&self, id: i64) -> Result<Option<VertexId>> {
        let mut found = Vec::new();
        self.transaction.view().find_vertices(&[UserId::from(id)], &mut found)?;
        Ok(found[0])
    }

    fn find_existing(&self, id: i64) -> Result<VertexId> {
        Ok(self.find(id)?.expect("the workload never deletes this vertex"))
    }

    /// The value of a vertex, by the typed interface.
    pub fn typed_value(&self, id: i64, key: &str) -> Result<Option<u64>> {
        let vertex = self.find_existing(id)?;
        let key = self.database.catalog().intern_key(key);
        let mut rows = ValueRows::default();
        self.transaction.view().vertex_values(&[vertex], key, &mut rows)?;
        Ok(rows.value.first().map(|value| integer(value) as u64))
    }

    pub fn typed_set(&self, id: i64, key: &str, value: u64) -> Result<()> {
        let vertex = self.find_existing(id)?;
        self.transaction.set_vertex_property(key, &[(vertex, Value::I64(value as i64))])
    }

    /// The ids of a vertex's out-neighbors, by the typed interface.
    pub fn typed_neighbors(&self, id: i64, label: &str) -> Result<Vec<u64>> {
        let vertex = self.find_existing(id)?;
        let view = self.transaction.view();
        let labels = view.label_filter(&[label.into()]);
        let request = ExpandRequest { direction: Direction::Out, labels, edges: false, limit: usize::MAX };
        let (mut cursor, mut found) = (ExpandCursor::default(), Expansion::default());
        while !view.expand(&[vertex], &request, &mut cursor, &mut found)? {}
        let mut ids = Vec::new();
        view.vertex_user_ids(&found.neighbor, &mut ids)?;
        Ok(integers(&ids).into_iter().map(|n| n as u64).collect())
    }

    /// A new vertex and an edge to it, by the typed interface.
    pub fn typed_leaf(&self, hub: i64, leaf: i64, label: &str) -> Result<()> {
        let hub = self.find_existing(hub)?;
        let catalog = self.database.catalog();
        let leaves = self.transaction.insert_vertices(catalog.intern_label_text("leaf"), &[UserId::from(leaf)])?;
        self.transaction.insert_edges(catalog.intern_label_text(label), &[(hub, leaves[0])]).map(drop)
    }

    /// Ends the transaction: commits if `outcome` is a success and `wanted` is true, rolls back otherwise.
    pub fn end(self, outcome: Result<()>, wanted: bool) -> histories::Transaction {
        match outcome {
            Ok(()) if wanted => self.commit(),
            Ok(()) => self.roll_back(),
            // Another transaction made the id first: such a conflict may appear as a duplicate id.
            Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::DuplicateId) => self.roll_back(),
            // A serializable transaction may meet a state that never was; then it cannot commit.
            Err(error) => {
                let ended = self.commit();
                assert_eq!(ended.outcome, Outcome::Aborted, "committed after it had met an error: {error}");
                ended
            }
        }
    }

    fn roll_back(self) -> histories::Transaction {
        self.transaction.rollback();
        self.draft.finish(Outcome::Aborted)
    }

    fn commit(self) -> histories::Transaction {
        if self.fault == Fault::CommitsNothing && self.draft.value().is_multiple_of(20) {
            self.transaction.rollback();
            return self.draft.finish(Outcome::Committed);
        }
        match self.transaction.commit() {
            Ok(_) => self.draft.finish(Outcome::Committed),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Conflict, "unexpected at commit: {error}");
                self.draft.finish(Outcome::Aborted)
            }
        }
    }
}
