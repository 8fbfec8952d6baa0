//! Compares the answers of the algorithms with those of plain ones, before they are timed.

use std::collections::VecDeque;

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
    if !found.iter().zip(plain_betweenness(projection, sources)).all(is_near) {
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
    if others.is_some_and(|others| others != found.total) || is_plain_wrong() {
        return wrong("triangles", name);
    }
    Ok(())
}

fn wrong(what: &str, name: &str) -> Result<()> {
    Err(Error::bug(format!("{what} on {name} has a wrong answer")))
}

/// Brandes' algorithm (2001) as he wrote it, with one queue. A pair of vertices counts half for each of them that is a
/// source.
fn plain_betweenness(projection: &Projection, sources: &[u32]) -> Vec<f64> {
    let mut values = vec![0.0; projection.positions()];
    for &source in sources {
        let depths = verify::bfs(projection, source);
        let (mut paths, mut order) = (vec![0.0; depths.len()], Vec::new());
        let (mut queue, mut is_found) = (VecDeque::from([source]), vec![false; depths.len()]);
        (paths[source as usize], is_found[source as usize]) = (1.0, true);
        let is_next = |from: u32, to: u32| depths[to as usize] == depths[from as usize] + 1;
        while let Some(at) = queue.pop_front() {
            order.push(at);
            for &other in projection.outgoing(at).iter().filter(|other| is_next(at, **other)) {
                paths[other as usize] += paths[at as usize];
                if !std::mem::replace(&mut is_found[other as usize], true) {
                    queue.push_back(other);
                }
            }
        }
        let mut dependencies = vec![0.0; depths.len()];
        for &at in order.iter().skip(1).rev() {
            let next = projection.outgoing(at).iter().map(|other| *other as usize);
            let next = next.filter(|other| is_next(at, *other as u32));
            dependencies[at as usize] =
                next.map(|other| paths[at as usize] / paths[other] * (1.0 + dependencies[other])).sum();
            values[at as usize] += dependencies[at as usize] / 2.0;
        }
    }
    values
}
