//! Edges of documents: the order of the passes, and how an edge becomes a row.

use std::path::Path;

use mangrove_graph::{Result, UserId, Value, VertexId};

use crate::plan::key_text;
use crate::sink::EdgeIdentity;
use crate::state::{EdgeBatches, LoadContext, RowOrigin};

/// Loads the edges of a document whose vertices are loaded: first those with ids, then those without.
///
/// `load` loads the edges with ids if its argument is true, or else those without. It returns true if the document has
/// others, which take another pass.
pub(super) fn load_by_ids(
    ctx: &mut LoadContext<'_>,
    file: usize,
    path: &Path,
    load: impl Fn(&mut LoadContext<'_>, bool) -> Result<bool>,
) -> Result<()> {
    if load(ctx, true)? {
        ctx.expect_pass(file, path)?;
        load(ctx, false)?;
    }
    Ok(())
}

/// An edge of a document between vertices of the load.
pub(super) struct DocumentEdge<'e, K> {
    pub(super) id: Option<UserId>,
    pub(super) label: &'e str,
    pub(super) source: VertexId,
    pub(super) target: VertexId,
    /// Keys with their values.
    pub(super) properties: Vec<(K, Value)>,
}

impl<K: AsRef<str>> DocumentEdge<'_, K> {
    /// Adds the edge to the batch of its label. The inner error is the reason for which it is rejected.
    pub(super) fn add(
        self,
        ctx: &mut LoadContext<'_>,
        batches: &mut EdgeBatches<'_>,
        origin: RowOrigin<'_>,
    ) -> Result<Result<(), String>> {
        if let Some(Err(reason)) = self.id.as_ref().map(|id| ctx.claim_edge_id(id)) {
            return Ok(Err(reason));
        }
        let at = batches.open(ctx, self.label, self.id.is_some(), None);
        let table = batches.at(at);
        if let EdgeIdentity::Key(key) = &table.identity {
            let ends = (self.source, self.target);
            let values = key_text(key, |name| value_of(&self.properties, name));
            if let Err(reason) = values.and_then(|values| ctx.claim_edge_key(&table.label, ends, values)) {
                return Ok(Err(reason));
            }
        }
        table.edge(self.source, self.target, self.id);
        self.properties.into_iter().for_each(|(key, value)| table.columns.set_key(key.as_ref(), value));
        batches.end_row(ctx, at, origin)?;
        Ok(Ok(()))
    }
}

/// The first value of a key.
pub(super) fn value_of<'v, K: AsRef<str>>(properties: &'v [(K, Value)], name: &str) -> Option<&'v Value> {
    properties.iter().find(|(key, _)| key.as_ref() == name).map(|(_, value)| value)
}
