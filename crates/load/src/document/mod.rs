//! Files that hold vertices and edges together: GraphSON, JSON lines and GraphML.
//!
//! Each file is read twice, first for its vertices and then for its edges (LOAD-3).

mod edges;
mod graphml;
mod graphson;

use std::path::Path;

use mangrove_graph::Result;

use crate::input::in_file;
use crate::options::LoadFormat;
use crate::plan::Listing;
use crate::state::LoadContext;

/// Loads the vertices of every document.
pub(crate) fn load_vertices(ctx: &mut LoadContext<'_>, listing: &Listing) -> Result<()> {
    each(ctx, listing, graphson::load_vertices, graphml::load_vertices)
}

/// Loads the edges of every document. All vertices of the load are known.
pub(crate) fn load_edges(ctx: &mut LoadContext<'_>, listing: &Listing) -> Result<()> {
    each(ctx, listing, graphson::load_edges, graphml::load_edges)
}

type LoadDocument = fn(&mut LoadContext<'_>, usize, &Path) -> Result<()>;

fn each(ctx: &mut LoadContext<'_>, listing: &Listing, graphson: LoadDocument, graphml: LoadDocument) -> Result<()> {
    for (at, file) in listing.documents() {
        let load = if file.format == LoadFormat::GraphSon { graphson } else { graphml };
        load(ctx, at, &file.path).map_err(in_file(&file.path))?;
    }
    Ok(())
}
