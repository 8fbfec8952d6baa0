//! The end of a plan: results go to whoever asked.

use mangrove_flow::{GroupId, Operator, Output};
use mangrove_graph::Result;

use crate::rows::Rows;

/// Delivers what arrives.
pub struct Sink;

impl Operator<Rows> for Sink {
    fn rest(&mut self) -> bool {
        true
    }

    fn receive(&mut self, _port: u8, _group: GroupId, mut batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        batch.computed.clear();
        out.deliver(batch);
        Ok(())
    }

    fn finish(&mut self, _port: u8, _group: GroupId, _instances: u32, out: &mut Output<'_, Rows>) -> Result<()> {
        out.complete();
        Ok(())
    }
}
