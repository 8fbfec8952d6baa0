//! A query over several virtual nodes in one process.

use std::sync::Arc;

use mangrove_flow::nodes::Nodes;
use mangrove_flow::{NodeRuntime, QueryContext};
use mangrove_graph::{Result, Share, Value};
use mangrove_plan::PhysicalPlan;
use mangrove_steps::build;
use mangrove_steps::detach::{Detail, detach};
use mangrove_steps::meter::Meter;

use crate::execution::Setting;
use crate::instance::{environment, unit};
use crate::stream::Materialize;

/// Runs a plan over `count` nodes. Each reads its own tablets only.
pub(crate) fn run(
    plan: &PhysicalPlan,
    setting: &Setting<'_>,
    count: u16,
    seed: Option<u64>,
    materialize: Materialize,
) -> Result<Vec<(Value, u64)>> {
    let context = QueryContext::new(setting.limits, setting.clock.clone(), setting.cancel.clone());
    let context = Arc::new(context.drawing_on(setting.budget));
    let requirements = Arc::new(plan.requirements.clone());
    let runtimes = (0..count).map(|index| {
        let share = Share { index, of: count };
        let view = Arc::new(owned::OwnedView::new(setting.transaction.clone(), share));
        let built = build(plan, count, false)?;
        let mut runtime = NodeRuntime::new(index, count, built.topology, built.operators, context.clone());
        runtime.begin(environment(plan, &requirements, setting, Vec::new(), view, share)?)?;
        Ok(runtime)
    });
    let mut nodes = Nodes::new(runtimes.collect::<Result<_>>()?, seed);
    let mut results = Vec::new();
    for rows in nodes.run(unit(plan))? {
        let mut meter = Meter::new(&context);
        let bulks: Vec<u64> = (0..rows.len()).map(|row| rows.bulk(row)).collect();
        let values = match materialize {
            Materialize::References => rows.objects.into_values(),
            Materialize::Tokens => {
                detach(rows.objects.into_values(), &**setting.transaction, Detail::Reference, &mut meter)?
            }
            Materialize::Properties => {
                detach(rows.objects.into_values(), &**setting.transaction, Detail::Properties, &mut meter)?
            }
        };
        results.extend(values.into_iter().zip(bulks));
    }
    Ok(results)
}

/// A node's view of the graph: it refuses to read what another node owns.
mod owned {
    use std::sync::Arc;

    use mangrove_graph::*;
    use mangrove_graph::{
        AdjacencyRequest, AdjacencyRuns, Catalog, Direction, EdgeId, Error, IndexId, KeyId, LabelSetId, Numbers,
        Result, TabletId, UserId, Value, ValueColumns, VertexId,
    };

    pub struct OwnedView {
        transaction: Arc<mangrove_txn::Transaction>,
        share: Share,
    }

    impl OwnedView {
        pub fn new(transaction: Arc<mangrove_txn::Transaction>, share: Share) -> Self {
            OwnedView { transaction, share }
        }

        fn own(&self, mut tablets: impl Iterator<Item = TabletId>) -> Result<()> {
            if tablets.all(|t| self.share.takes(t)) {
                return Ok(());
            }
            Err(Error::bug(format!("node {} was sent what another node owns", self.share.index)))
        }

        fn own_vertices(&self, ids: &[VertexId]) -> Result<()> {
            self.own(ids.iter().map(|v| v.tablet()))
        }

        fn own_edges(&self, ids: &[EdgeId]) -> Result<()> {
            self.own(ids.iter().map(|e| e.tablet()))
        }
    }

    impl GraphView for OwnedView {
        fn catalog(&self) -> &Catalog {
            self.transaction.catalog()
        }

        fn key_of(&self, name: &str) -> Option<KeyId> {
            self.transaction.key_of(name)
        }

        fn find_vertices(&self, ids: &[UserId], out: &mut Vec<Option<VertexId>>) -> Result<()> {
            self.transaction.find_vertices(ids, out)
        }

        fn find_edges(&self, ids: &[UserId], out: &mut Vec<Option<EdgeId>>) -> Result<()> {
            self.transaction.find_edges(ids, out)
        }

        fn retain_vertices(&self, ids: &mut Vec<VertexId>) -> Result<()> {
            ids.retain(|v| self.share.takes(v.tablet()));
            self.transaction.retain_vertices(ids)
        }

        fn retain_edges(&self, ids: &mut Vec<EdgeId>) -> Result<()> {
            ids.retain(|e| self.share.takes(e.tablet()));
            self.transaction.retain_edges(ids)
        }

        fn scan_vertices(
            &self,
            labels: &LabelFilter,
            share: Share,
            cursor: &mut ScanCursor,
            limit: usize,
            out: &mut Vec<VertexId>,
        ) -> Result<bool> {
            self.transaction.scan_vertices(labels, share, cursor, limit, out)
        }

        fn scan_edges(
            &self,
            labels: &LabelFilter,
            share: Share,
            cursor: &mut ScanCursor,
            limit: usize,
            out: &mut Vec<EdgeId>,
        ) -> Result<bool> {
            self.transaction.scan_edges(labels, share, cursor, limit, out)
        }

        fn scan_vertices_where(
            &self,
            labels: &LabelFilter,
            key: KeyId,
            range: &IndexRange,
            share: Share,
            cursor: &mut ScanCursor,
            limit: usize,
            out: &mut Vec<VertexId>,
        ) -> Result<bool> {
            self.transaction.scan_vertices_where(labels, key, range, share, cursor, limit, out)
        }

        fn scan_edges_where(
            &self,
            labels: &LabelFilter,
            key: KeyId,
            range: &IndexRange,
            share: Share,
            cursor: &mut ScanCursor,
            limit: usize,
            out: &mut Vec<EdgeId>,
        ) -> Result<bool> {
            self.transaction.scan_edges_where(labels, key, range, share, cursor, limit, out)
        }

        fn count_vertices(&self, labels: &LabelFilter, share: Share) -> Result<u64> {
            self.transaction.count_vertices(labels, share)
        }

        fn count_edges(&self, labels: &LabelFilter, share: Share) -> Result<u64> {
            self.transaction.count_edges(labels, share)
        }

        fn expand(
            &self,
            vertices: &[VertexId],
            request: &ExpandRequest,
            cursor: &mut ExpandCursor,
            out: &mut Expansion,
        ) -> Result<bool> {
            self.own_vertices(vertices)?;
            self.transaction.expand(vertices, request, cursor, out)
        }

        fn for_each_adjacency(
            &self,
            request: &AdjacencyRequest,
            each: &mut dyn FnMut(&AdjacencyRuns<'_>) -> Result<()>,
        ) -> Result<()> {
            if request.share != self.share {
                return Err(Error::bug(format!("node {} was asked for another node's share", self.share.index)));
            }
            self.transaction.for_each_adjacency(request, each)
        }

        fn degrees(
            &self,
            vertices: &[VertexId],
            direction: Direction,
            labels: &LabelFilter,
            out: &mut Vec<u64>,
        ) -> Result<()> {
            self.own_vertices(vertices)?;
            self.transaction.degrees(vertices, direction, labels, out)
        }

        fn edge_ends(&self, edges: &[EdgeId], sources: &mut Vec<VertexId>, targets: &mut Vec<VertexId>) -> Result<()> {
            self.own_edges(edges)?;
            self.transaction.edge_ends(edges, sources, targets)
        }

        fn vertex_labels(&self, vertices: &[VertexId], out: &mut Vec<LabelSetId>) -> Result<()> {
            // Id and label are what a reference to a vertex consists of, and a node refers to the far ends of
            // its own edges (`elementMap()` of an edge): in a cluster they are kept, or fetched, with the edge.
            self.transaction.vertex_labels(vertices, out)
        }

        fn edge_labels(&self, edges: &[EdgeId], out: &mut Vec<LabelSetId>) -> Result<()> {
            self.own_edges(edges)?;
            self.transaction.edge_labels(edges, out)
        }

        fn vertex_user_ids(&self, vertices: &[VertexId], out: &mut Vec<Value>) -> Result<()> {
            // As for labels.
            self.transaction.vertex_user_ids(vertices, out)
        }

        fn edge_user_ids(&self, edges: &[EdgeId], out: &mut Vec<Value>) -> Result<()> {
            self.transaction.edge_user_ids(edges, out)
        }

        fn vertex_values(&self, vertices: &[VertexId], key: KeyId, out: &mut ValueRows) -> Result<()> {
            self.own_vertices(vertices)?;
            self.transaction.vertex_values(vertices, key, out)
        }

        fn edge_values(&self, edges: &[EdgeId], key: KeyId, out: &mut ValueRows) -> Result<()> {
            self.own_edges(edges)?;
            self.transaction.edge_values(edges, key, out)
        }

        fn vertex_numbers(&self, vertices: &[VertexId], key: KeyId, out: &mut Numbers) -> Result<bool> {
            self.own_vertices(vertices)?;
            self.transaction.vertex_numbers(vertices, key, out)
        }

        fn edge_numbers(&self, edges: &[EdgeId], key: KeyId, out: &mut Numbers) -> Result<bool> {
            self.own_edges(edges)?;
            self.transaction.edge_numbers(edges, key, out)
        }

        fn vertex_properties(
            &self,
            vertices: &[VertexId],
            keys: Option<&[KeyId]>,
            out: &mut Vec<PropertyRow>,
        ) -> Result<()> {
            self.own_vertices(vertices)?;
            self.transaction.vertex_properties(vertices, keys, out)
        }

        fn edge_properties(&self, edges: &[EdgeId], keys: Option<&[KeyId]>, out: &mut Vec<PropertyRow>) -> Result<()> {
            self.own_edges(edges)?;
            self.transaction.edge_properties(edges, keys, out)
        }

        fn vertex_columns(&self, vertices: &[VertexId], keys: Option<&[KeyId]>, out: &mut ValueColumns) -> Result<()> {
            self.own_vertices(vertices)?;
            self.transaction.vertex_columns(vertices, keys, out)
        }

        fn edge_columns(&self, edges: &[EdgeId], keys: Option<&[KeyId]>, out: &mut ValueColumns) -> Result<()> {
            self.own_edges(edges)?;
            self.transaction.edge_columns(edges, keys, out)
        }

        fn vertex_indexes(&self) -> Vec<IndexInfo> {
            self.transaction.vertex_indexes()
        }

        fn index_vertices(
            &self,
            index: IndexId,
            prefix: &[Value],
            range: &IndexRange,
            share: Share,
            out: &mut Vec<VertexId>,
        ) -> Result<()> {
            self.transaction.index_vertices(index, prefix, range, share, out)
        }

        fn statistics(&self) -> Statistics {
            self.transaction.statistics()
        }
    }
}
