//! Finds cycles of dependencies and names them as anomalies.
//!
//! Each family of anomalies is searched for in a graph of its own: writes only (G0), writes and reads (G1c), all
//! dependencies without two adjacent anti-dependencies (which snapshot isolation forbids: G-single and its kin), and
//! all (G2). Each is searched for by the data's order alone, then with that of processes, then with real time. In every
//! strongly connected component one short cycle is taken, and its kinds of dependency name it.

use std::collections::HashSet;

use crate::anomaly::{Anomaly, Kind, Order};
use crate::explain;
use crate::graph::{Edge, Graph, Kinds, PROCESS, REAL_TIME, RW, WR, WW, Walk};
use crate::history::Type;
use crate::index::Index;

/// The most components for which a family reports a cycle.
const COMPONENTS_MAX: usize = 10_000;
/// The most edges of a component that are tried as the first edge of its shortest cycle.
const SEEDS_MAX: usize = 16;

/// Anomalies that are searched for together.
struct Family {
    /// The kinds of dependency in the cycles.
    kinds: Kinds,
    /// Every cycle of the family has an edge of this kind.
    seed: Kinds,
    /// True if a cycle must not have two anti-dependencies in a row.
    apart: bool,
}

const FAMILIES: [Family; 4] = [
    Family { kinds: WW, seed: WW, apart: false },
    Family { kinds: WW | WR, seed: WR, apart: false },
    Family { kinds: WW | WR | RW, seed: RW, apart: true },
    Family { kinds: WW | WR | RW, seed: RW, apart: false },
];

/// Finds a cycle of each family in each component, by each order. A set of transactions is reported once for each kind.
pub(crate) fn find(index: &Index<'_>, graph: &Graph) -> Vec<Anomaly> {
    let all = Walk { graph, kinds: Kinds::MAX, apart: false };
    if all.components().members.is_empty() {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut known = HashSet::new();
    for order in [0, PROCESS, PROCESS | REAL_TIME] {
        for family in &FAMILIES {
            let walk = Walk { graph, kinds: family.kinds | order, apart: family.apart };
            for cycle in cycles(&walk, family.seed) {
                let mut members: Vec<u32> = cycle.iter().map(|e| e.from).collect();
                members.sort_unstable();
                let anomaly = anomaly(index, &cycle);
                if known.insert((anomaly.kind, members)) {
                    found.push(anomaly);
                }
            }
        }
    }
    found
}

/// A short cycle in each component that has an edge of the seed's kind.
fn cycles(walk: &Walk<'_>, seed: Kinds) -> Vec<Vec<Edge>> {
    let components = walk.components();
    let shortest = |members: &Vec<u32>| {
        let seeds = walk.edges_within(members, &components, seed, SEEDS_MAX);
        seeds.iter().filter_map(|edge| walk.cycle_from(edge, &components)).min_by_key(Vec::len)
    };
    components.members.iter().take(COMPONENTS_MAX).filter_map(shortest).collect()
}

fn anomaly(index: &Index<'_>, cycle: &[Edge]) -> Anomaly {
    let has = |kind| cycle.iter().any(|e| e.kind == kind);
    let order = match (has(REAL_TIME), has(PROCESS)) {
        (true, _) => Order::RealTime,
        (false, true) => Order::Process,
        (false, false) => Order::Data,
    };
    Anomaly {
        kind: kind_of(index, cycle),
        order,
        transactions: cycle.iter().map(|e| e.from as usize).collect(),
        explanation: explain::cycle(index, cycle),
    }
}

/// The kind of anomaly that the dependencies of a cycle make.
fn kind_of(index: &Index<'_>, cycle: &[Edge]) -> Kind {
    let kinds: Vec<Kinds> = cycle.iter().map(|e| e.kind).collect();
    let anti_count = kinds.iter().filter(|&&k| k == RW).count();
    let in_a_row = (0..kinds.len()).any(|i| kinds[i] == RW && kinds[(i + 1) % kinds.len()] == RW);
    let over_predicate = |e: &Edge| e.kind == RW && index.objects[e.object as usize].kind == Type::Set;
    match anti_count {
        0 if kinds.contains(&WR) => Kind::G1c,
        0 => Kind::G0,
        1 => Kind::GSingle,
        _ if in_a_row && cycle.iter().any(over_predicate) => Kind::G2,
        _ if in_a_row => Kind::G2Item,
        2 if kinds == [RW, WR, RW, WR] || kinds == [WR, RW, WR, RW] => Kind::LongFork,
        _ => Kind::GNonadjacent,
    }
}
