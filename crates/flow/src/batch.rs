//! The interface of a batch: the functions by which the runtime handles rows without looking at their values.
//!
//! The runtime counts the rows and bytes of a batch, drops the rows of cancelled instances, and sends shares of a batch
//! to other nodes.
//!
//! - **FLOW-1.** A message holds at most [`BATCH_ROWS`] rows, all of one scope group. An operator with more to send
//!   does it in several steps.

use std::sync::Arc;

use mangrove_graph::{LateReads, Result};

use crate::control::QueryControl;
use crate::cursor::Cursor;
use crate::group::{NodeId, TagSet};

/// The most rows in a batch. The speed of sizes from 256 to 4,096 was measured: it differs by 3 % if the graph is in
/// memory, and by 20 % if it is in the cache.
pub const BATCH_ROWS: usize = 1024;

/// A columnar batch of rows, each with the tag of its scope instance.
pub trait Batch: Sized + Send + 'static {
    /// The execution context: the state that all operators of a run share, such as the view of the graph and the
    /// parameters. It belongs to one run; operators outlive it.
    type Context: Send + Sync;
    /// What orders the groups of a scope whose policy is [`crate::Between::Rank`]. It comes from the row that opens the
    /// group, so the runtime compares ranks and knows nothing else of them.
    type Rank: Ord + Clone + Send;

    /// If the view of a run may be late, how to ask it. The runtime looks here once, when a run begins; in a run without
    /// late reads nothing else happens. This default says that nothing is late.
    fn late(context: &Self::Context) -> Option<&dyn LateReads> {
        let _ = context;
        None
    }

    /// Returns the number of rows.
    fn rows(&self) -> usize;
    /// Returns about how many bytes the batch holds, without those that [`Batch::charge_shared`] charges.
    fn bytes(&self) -> usize;
    /// Charges the query for values of this batch that other batches share. Each value stays charged until its last
    /// holder drops it ([`QueryControl::charge_while`]). The router calls this whenever it sends the batch; a value
    /// that is charged already is not charged again.
    fn charge_shared(&self, control: &Arc<QueryControl>) -> Result<()> {
        let _ = control;
        Ok(())
    }
    /// Returns the tag of a row: the instance that it belongs to.
    fn tag(&self, row: usize) -> u32;
    /// Cuts off the rows from `row` on.
    fn split_off(&mut self, row: usize) -> Self;
    /// Returns a copy.
    fn duplicate(&self) -> Self;
    /// Splits the batch by the node that owns each row's object. Each row is in exactly one part.
    fn partition(self, nodes: u16) -> Vec<(NodeId, Self)>;
    /// Drops the rows of these tags. If there are any, drops the rows before the cursor, too, and calls
    /// [`Cursor::keep`] (FLOW-19).
    fn discard(&mut self, tags: &TagSet, at: &mut Cursor);
    /// Appends the batch in the binary form that [`Batch::decode`] reads.
    fn encode(&self, out: &mut Vec<u8>);
    /// Reads a batch that [`Batch::encode`] wrote. Fails if the bytes are no batch.
    fn decode(bytes: &[u8]) -> Result<Self>;
}
