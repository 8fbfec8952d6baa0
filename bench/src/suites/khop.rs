//! Walks of one to four edges of any label and direction from a vertex with an id: their number, and the number of the
//! vertices at their ends (G-Tran, 6.1.2).
//!
//! Each number is compared with two others: the reference's, and that of the bare loop over a static graph. The bare
//! loop is also the limit of one core.

use std::sync::Arc;

use mangrove::Result;
use mangrove_queries::QuerySet;
use mangrove_queries::reference::{Graph, Vertex};
use serde_json::json;

use super::Context;
use crate::csr::Csr;
use crate::harness::{Operation, Schedule, measure, wrong};
use crate::options::Suite;
use crate::queries::asked::{Asked, Run};
use crate::queries::drawn::Drawn;
use crate::queries::network::Network;
use crate::queries::turns;
use crate::report::{Growing, Row};

/// The variant of the loop over a static graph.
const BARE: &str = "bare";

pub(super) fn run(context: &Context<'_>, report: &mut Growing<'_>) -> Result<()> {
    let set = QuerySet::named("patterns");
    Network::each(context.options, Suite::KHop, report, &|network, report| {
        let (drawn, csr) = (Drawn::of(&network.reference), Arc::new(both_ways(&network.reference)));
        for query in &set.queries {
            let Some(walk) = Walk::named(&query.name) else { continue };
            let case = Asked::case(network, query);
            if !turns::is_wanted(context.options, &case) && !context.options.wants(&case, BARE) {
                continue;
            }
            let Some(asked) = Asked::of_paper(network, &drawn, &set, query) else { continue };
            let starts = asked.runs.iter().map(|run| start(&network.reference, run)).collect::<Result<Vec<_>>>()?;
            let bare = Bare { csr: csr.clone(), starts, walk, scratch: Scratch::new(csr.vertex_count()) };
            let bare = measure_bare(context, &asked, bare, report)?;
            turns::measure(context.options, Suite::KHop, &network.replicas, &asked, bare, report)?;
        }
        Ok(())
    })
}

/// A static graph with each edge in both directions.
fn both_ways(graph: &Graph) -> Csr {
    let number = |vertex: Vertex| vertex as u32;
    let ends = graph.edges.iter().map(|edge| (number(edge.from), number(edge.to)));
    let ends: Vec<(u32, u32)> = ends.flat_map(|(from, to)| [(from, to), (to, from)]).collect();
    Csr::new(graph.vertices.len(), &ends)
}

/// The vertex at which a run starts.
fn start(graph: &Graph, run: &Run) -> Result<Vertex> {
    let id = run.parameters.iter().find(|(name, _)| *name == "person").map(|(_, value)| value);
    let found = match id {
        Some(mangrove::Value::I64(id)) => graph.get("Person", *id),
        _ => None,
    };
    found.ok_or_else(|| wrong(format!("no person is the start of a walk with {:?}", run.parameters)))
}

/// Checks the bare loop and times it, unless `--only` names another variant.
fn measure_bare(context: &Context<'_>, asked: &Asked, mut bare: Bare, report: &mut Growing<'_>) -> Result<Option<f64>> {
    for (at, run) in asked.runs.iter().enumerate() {
        let found = bare.perform(at as u64)?;
        if run.expected != [json!(found)] {
            return Err(wrong(format!("{}, bare: {found} where {:?} is expected", asked.case, run.expected)));
        }
    }
    if !context.options.wants(&asked.case, BARE) {
        return Ok(None);
    }
    let schedule = Schedule::of(context.options).alone();
    let timing = measure(schedule, asked.runs.len() as u64, &mut [Box::new(bare)])?;
    report.push(Row::time(Suite::KHop.name(), &asked.case, BARE, timing));
    Ok(Some(timing.median))
}

/// The walks of a query.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Walk {
    hops: usize,
    /// True if the vertices at the ends are counted, not the walks.
    distinct: bool,
}

impl Walk {
    /// The walks of the query of this name: `3-hop`, `3-hop distinct`. `None` for other queries.
    fn named(name: &str) -> Option<Self> {
        let (hops, rest) = name.split_once("-hop")?;
        Some(Walk { hops: hops.parse().ok()?, distinct: !rest.is_empty() })
    }
}

/// A loop over a static graph. Walks that end at the same vertex are one entry with their number.
struct Bare {
    csr: Arc<Csr>,
    starts: Vec<Vertex>,
    walk: Walk,
    scratch: Scratch,
}

/// The ends of the walks of one length, and of those that are one edge longer.
struct Scratch {
    /// The number of walks to each vertex.
    counts: [Vec<u64>; 2],
    /// The vertices with walks.
    ends: [Vec<u64>; 2],
}

impl Scratch {
    fn new(vertex_count: usize) -> Self {
        Scratch { counts: [vec![0; vertex_count], vec![0; vertex_count]], ends: [Vec::new(), Vec::new()] }
    }
}

impl Operation for Bare {
    fn perform(&mut self, input: u64) -> Result<u64> {
        let Scratch { counts: [near_counts, far_counts], ends: [near, far] } = &mut self.scratch;
        let start = self.starts[input as usize];
        near.push(start as u64);
        near_counts[start] = 1;
        // If walks are counted, those of the last edge are the degrees of the ends before it.
        let levels = if self.walk.distinct { self.walk.hops } else { self.walk.hops - 1 };
        for _ in 0..levels {
            for vertex in near.drain(..) {
                let count = std::mem::take(&mut near_counts[vertex as usize]);
                for &next in self.csr.neighbors(vertex as usize) {
                    if far_counts[next as usize] == 0 {
                        far.push(next);
                    }
                    far_counts[next as usize] += count;
                }
            }
            std::mem::swap(near, far);
            std::mem::swap(near_counts, far_counts);
        }
        let found = near.len() as u64;
        let mut walks = 0;
        for vertex in near.drain(..) {
            walks += std::mem::take(&mut near_counts[vertex as usize]) * self.csr.degree(vertex as usize);
        }
        Ok(if self.walk.distinct { found } else { walks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_of_a_star_are_counted() {
        // Vertex 0 has three neighbors; walks of two edges return to where they began, or reach another neighbor.
        let ends = [(0, 1), (0, 2), (0, 3)].map(|(a, b): (u32, u32)| [(a, b), (b, a)]).concat();
        let csr = Arc::new(Csr::new(4, &ends));
        let count = |name: &str, start| {
            let walk = Walk::named(name).unwrap();
            let mut bare = Bare { csr: csr.clone(), starts: vec![start], walk, scratch: Scratch::new(4) };
            // The second run finds the scratch as the first one left it.
            assert_eq!(bare.perform(0).unwrap(), bare.perform(0).unwrap(), "{name}");
            bare.perform(0).unwrap()
        };
        assert_eq!((count("1-hop", 0), count("2-hop", 0), count("2-hop distinct", 0)), (3, 3, 1));
        assert_eq!((count("2-hop", 1), count("2-hop distinct", 1), count("3-hop", 1)), (3, 3, 3));
        assert_eq!(Walk::named("triangle"), None);
    }
}
