//! A batch as a message of the dataflow: its size, its shares by owner, its binary form.

use std::sync::Arc;

use mangrove_flow::{Batch, Cursor, NodeId, QueryControl, TagSet};
use mangrove_graph::{LateReads, Result, Value, VertexId};

use crate::context::execution::ExecutionContext;
use crate::limits::sizes::Sizes;
use crate::rows::batch::{Loops, Rows, Tags};
use crate::rows::codec;
use crate::rows::column::ObjectColumn;
use crate::rows::path::{Path, charge_newest};
use crate::rows::rank::Rank;

impl Batch for Rows {
    type Context = ExecutionContext;
    type Rank = Rank;

    fn late(context: &ExecutionContext) -> Option<&dyn LateReads> {
        context.view.late()
    }

    fn rows(&self) -> usize {
        self.len()
    }

    fn bytes(&self) -> usize {
        let mut sizes = Sizes::default();
        let objects = match &self.objects {
            ObjectColumn::Vertices(_) | ObjectColumn::Edges(_) => self.len() * size_of::<VertexId>(),
            ObjectColumn::Numbers(numbers) => numbers.bytes(),
            ObjectColumn::Values(values) => sizes.all(values),
        };
        let computed: usize = self.computed.iter().flatten().flatten().map(|value| sizes.pointed_to(value)).sum();
        let path = if self.path.is_some() { size_of::<Path>() } else { 0 };
        let tags = if matches!(self.tags, Tags::Many(_)) { 4 } else { 0 };
        let bulk = if self.bulk.is_some() { 8 } else { 0 };
        let loops = if self.loops.is_some() { size_of::<Loops>() } else { 0 };
        let sacks = self.sacks.as_ref().map_or(0, |sacks| sizes.all(sacks));
        let bindings: usize = self.bindings.iter().map(|column| column.bytes(&mut sizes)).sum();
        let row = path + tags + bulk + loops + self.computed.len() * size_of::<Option<Value>>();
        self.len() * row + objects + bindings + computed + sacks
    }

    fn tag(&self, row: usize) -> u32 {
        Rows::tag(self, row)
    }

    fn charge_shared(&self, control: &Arc<QueryControl>) -> Result<()> {
        self.path.as_ref().map_or(Ok(()), |paths| charge_newest(paths, control))
    }

    fn split_off(&mut self, row: usize) -> Self {
        let numbers: Vec<u32> = (0..self.len() as u32).collect();
        let rest = self.take(&numbers[row..]);
        *self = self.take(&numbers[..row]);
        rest
    }

    fn duplicate(&self) -> Self {
        self.clone()
    }

    fn partition(self, nodes: u16) -> Vec<(NodeId, Self)> {
        let mut shares: Vec<Vec<u32>> = vec![Vec::new(); usize::from(nodes)];
        for row in 0..self.len() {
            let tablet = match &self.objects {
                ObjectColumn::Vertices(v) => Some(v[row].tablet()),
                ObjectColumn::Edges(v) => Some(v[row].tablet()),
                ObjectColumn::Numbers(_) => None,
                ObjectColumn::Values(v) => owner(&v[row]),
            };
            shares[tablet.map_or(0, |t| usize::from(t.0 % nodes))].push(row as u32);
        }
        let of = |(node, rows): (usize, Vec<u32>)| (!rows.is_empty()).then(|| (node as NodeId, self.take(&rows)));
        shares.into_iter().enumerate().filter_map(of).collect()
    }

    fn discard(&mut self, tags: &TagSet, at: &mut Cursor) {
        let rest = at.row..self.len() as u32;
        // Most messages have no row of them, and the rows of an instance are neighbors.
        let has_any = match &self.tags {
            Tags::One => tags.contains(0),
            Tags::Many(own) => {
                let mut last = None;
                own.iter().skip(at.row as usize).any(|tag| last.replace(*tag) != Some(*tag) && tags.contains(*tag))
            }
        };
        if !has_any {
            return;
        }
        let kept: Vec<u32> = rest.clone().filter(|&row| !tags.contains(self.tag(row as usize))).collect();
        if kept.len() < rest.len() {
            *self = self.take(&kept);
            at.keep(&kept);
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        codec::encode_rows(self, out);
    }

    fn decode(bytes: &[u8]) -> Result<Self> {
        codec::decode_rows(bytes)
    }
}

/// Returns the tablet of the element that a value is, or whose property it is. Other values go to node 0.
fn owner(value: &Value) -> Option<mangrove_graph::TabletId> {
    match value {
        Value::Vertex(v) => Some(v.tablet()),
        Value::Edge(e) => Some(e.tablet()),
        Value::VertexProperty(p) => Some(p.vertex.tablet()),
        Value::Property(p) => match p.owner {
            mangrove_graph::PropertyOwner::Edge(e) => Some(e.tablet()),
            mangrove_graph::PropertyOwner::VertexProperty(v, ..) => Some(v.tablet()),
        },
        _ => None,
    }
}
