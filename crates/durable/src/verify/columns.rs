//! Checking open columns against the images of the same checkpoint.

use mangrove_graph::{ElementKind, GraphView, LabelFilter, Result, Share};
use mangrove_store::{Snapshot, Store};

use super::CompareColumns;
use crate::checkpoint::place::Place;
use crate::damage::damaged_in;
use crate::manifest::Manifest;

/// Compares the files of open columns with the graph of the images. Returns how many there are; 0 if an earlier checkpoint wrote
/// them.
pub(super) fn check_columns<P: Place + ?Sized>(
    place: &P,
    manifest: &Manifest,
    store: &Store,
    compare: &mut CompareColumns<'_>,
) -> Result<u64> {
    let at_ts = manifest.checkpoint_ts();
    let Some(columns) = manifest.columns.as_ref().filter(|columns| columns.at_ts == at_ts) else { return Ok(0) };
    let view = store.view(Snapshot::committed(at_ts));
    for file in &columns.files {
        let bytes = place.open_pack(file.path.clone(), file.bytes)?.read(0, file.bytes as usize)?;
        if let Some(what) = compare(&view, file, bytes)? {
            return Err(damaged_in(&place.describe(&file.path), 0, format!("it contradicts the images: {what}")));
        }
    }
    // LOG-102: no label set lacks its file.
    let expected =
        (view.count_vertices(&LabelFilter::Any, Share::ALL)?, view.count_edges(&LabelFilter::Any, Share::ALL)?);
    let rows = |kind| columns.files.iter().filter(|file| file.table().kind == kind).map(|file| file.rows).sum::<u64>();
    let found = (rows(ElementKind::Vertex), rows(ElementKind::Edge));
    match found == expected {
        true => Ok(columns.files.len() as u64),
        false => {
            let what = format!("its open columns have {found:?} vertices and edges, and its packs {expected:?}");
            Err(damaged_in(&place.describe(&Manifest::path(manifest.version)), 0, what))
        }
    }
}
