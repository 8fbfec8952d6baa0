//! Compares the answers of the algorithms with those of plain ones, before they are timed.

use mangrove::analytics::algorithm::{betweenness, bfs, pagerank, sssp, triangles, wcc};
use mangrove::analytics::{Projection, Team, verify};
use mangrove::{Error, Result};

/// Vertices of a graph whose triangles are counted by looking all pairs of neighbors up.
const FEW_VERTICES: u64 = 1 << 12;

/// Compares searches, components and ranks.
pub(super) fn unweighted(name: &str, projection: &Projection, sources: &[u32], team: &Team) -> Result<()> {
    for &source in sources {
        if bfs::run(projection, source, bfs::Follow::Outgoing, team)? != verify::bfs(projection, source) {
            return wrong("bfs", name);
        }
    }
    if wcc::run(projection, team)? != verify::wcc(projection) {
        return wrong("wcc", name);
    }
    let options = pagerank::PageRankOptions { rounds: 3, ..pagerank::PageRankOptions::default() };
    let ranks = pagerank::run(projection, &options, team)?.ranks;
    let is_near = |(one, other): (&f64, f64)| (one - other).abs() <= 1e-12;
    if !ranks.iter().zip(verify::pagerank(projection, 0.85, 3, true)).all(is_near) {
        return wrong("pagerank", name);
    }
    let found = betweenness::of_sources(projection, sources, team)?;
    let is_near = |(one, other): (&f64, f64)| (one - other).abs() <= 1e-9 * other.max(1.0);
    if !found.iter().zip(verify::betweenness_by_queue(projection, sources)).all(is_near) {
        return wrong("betweenness", name);
    }
    Ok(())
}

/// Compares the lengths of shortest paths.
pub(super) fn weighted(name: &str, projection: &Projection, sources: &[u32], delta: f64, team: &Team) -> Result<()> {
    for &source in sources {
        if sssp::run(projection, source, Some(delta), team)? != verify::sssp(projection, source) {
            return wrong("sssp", name);
        }
    }
    Ok(())
}

/// Compares the number of triangles with that of another program, if there is one, and in a small graph with a plain count.
pub(super) fn triangles(name: &str, projection: &Projection, others: Option<u64>, team: &Team) -> Result<()> {
    let found = triangles::run(projection, team)?;
    let is_plain_wrong =
        || projection.vertex_count() <= FEW_VERTICES && found.of_positions != verify::triangles(projection);
    let is_total_wrong = triangles::total(projection, team)? != found.total;
    if others.is_some_and(|others| others != found.total) || is_total_wrong || is_plain_wrong() {
        return wrong("triangles", name);
    }
    Ok(())
}

fn wrong(what: &str, name: &str) -> Result<()> {
    Err(Error::bug(format!("{what} on {name} has a wrong answer")))
}
