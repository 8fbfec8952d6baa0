//! The graph of dependencies between transactions: strongly connected components and shortest cycles.

use std::collections::{HashMap, VecDeque};

/// A set of kinds of dependency, as bits.
pub(crate) type Kinds = u8;

/// The first transaction wrote a version, the second the next version.
pub(crate) const WW: Kinds = 1;
/// The second transaction read a version that the first wrote.
pub(crate) const WR: Kinds = 2;
/// The first transaction read a version that the second replaced: an anti-dependency.
pub(crate) const RW: Kinds = 4;
/// One process ran the first transaction, then the second.
pub(crate) const PROCESS: Kinds = 8;
/// The first transaction had ended when the second began.
pub(crate) const REAL_TIME: Kinds = 16;

/// One dependency.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Edge {
    pub from: u32,
    pub to: u32,
    /// The kind: one bit.
    pub kind: Kinds,
    /// The index of the object; `u32::MAX` if the dependency is not about an object.
    pub object: u32,
}

/// Collects dependencies.
#[derive(Default)]
pub(crate) struct Edges(Vec<Edge>);

impl Edges {
    /// Adds a dependency. A dependency of a transaction on itself is ignored.
    pub fn add(&mut self, from: u32, to: u32, kind: Kinds, object: u32) {
        if from != to {
            self.0.push(Edge { from, to, kind, object });
        }
    }
}

/// Dependencies by their first transaction.
pub(crate) struct Graph {
    edges: Vec<Edge>,
    offsets: Vec<u32>,
}

impl Graph {
    pub fn new(transaction_count: usize, Edges(mut edges): Edges) -> Self {
        edges.sort_unstable();
        edges.dedup_by_key(|e| (e.from, e.to, e.kind));
        let mut offsets = vec![0; transaction_count + 1];
        for edge in &edges {
            offsets[edge.from as usize + 1] += 1;
        }
        for i in 1..offsets.len() {
            offsets[i] += offsets[i - 1];
        }
        Graph { edges, offsets }
    }

    pub fn transaction_count(&self) -> usize {
        self.offsets.len() - 1
    }

    pub fn edge_count(&self) -> usize {
        self.edges.len()
    }

    fn edges_from(&self, transaction: u32) -> &[Edge] {
        let range = self.offsets[transaction as usize] as usize..self.offsets[transaction as usize + 1] as usize;
        &self.edges[range]
    }
}

/// The rules of a walk over the graph.
///
/// States are transactions. A walk that keeps anti-dependencies *apart* never takes two in a row. Its states are pairs
/// of a transaction and a flag for the kind of the last step, written `2 * transaction + flag`. So its cycles are the
/// closed walks that snapshot isolation forbids.
#[derive(Clone, Copy)]
pub(crate) struct Walk<'g> {
    pub graph: &'g Graph,
    /// The walk takes only edges of these kinds.
    pub kinds: Kinds,
    pub apart: bool,
}

impl Walk<'_> {
    fn state_count(&self) -> usize {
        self.graph.transaction_count() * if self.apart { 2 } else { 1 }
    }

    fn transaction(&self, state: u32) -> u32 {
        if self.apart { state / 2 } else { state }
    }

    /// The state after the edge, or `None` if the walk must not take it.
    fn step(&self, state: u32, edge: &Edge) -> Option<u32> {
        if edge.kind & self.kinds == 0 {
            return None;
        }
        if !self.apart {
            return Some(edge.to);
        }
        match (edge.kind == RW, state % 2 == 1) {
            (true, true) => None,
            (anti, _) => Some(edge.to * 2 + u32::from(anti)),
        }
    }

    /// The strongly connected components of more than one state (Tarjan's algorithm, without recursion).
    pub fn components(&self) -> Components {
        const UNSEEN: u32 = u32::MAX;
        let count = self.state_count();
        let mut components = Components { of: vec![0; count], members: Vec::new() };
        // `number`: the order in which states were reached; `low`: the earliest open state that a state can reach.
        let (mut number, mut low) = (vec![UNSEEN; count], vec![0u32; count]);
        let mut assigned = vec![false; count];
        let (mut next, mut open): (u32, Vec<u32>) = (0, Vec::new());
        let mut calls: Vec<(u32, u32)> = Vec::new();
        for root in 0..count as u32 {
            if number[root as usize] != UNSEEN {
                continue;
            }
            calls.push((root, 0));
            while let Some(&mut (state, ref mut position)) = calls.last_mut() {
                let s = state as usize;
                if number[s] == UNSEEN {
                    (number[s], low[s]) = (next, next);
                    next += 1;
                    open.push(state);
                }
                let edges = self.graph.edges_from(self.transaction(state));
                let mut descend = None;
                while let Some(edge) = edges.get(*position as usize) {
                    let Some(to) = self.step(state, edge) else {
                        *position += 1;
                        continue;
                    };
                    if number[to as usize] == UNSEEN {
                        // The loop returns to this edge after `to` is done, and takes its `low` then.
                        descend = Some(to);
                        break;
                    }
                    if !assigned[to as usize] {
                        low[s] = low[s].min(low[to as usize]);
                    }
                    *position += 1;
                }
                if let Some(to) = descend {
                    calls.push((to, 0));
                    continue;
                }
                calls.pop();
                if low[s] == number[s] {
                    let start = open.iter().rposition(|&o| o == state).expect("a state is open until its component is");
                    let members = open.split_off(start);
                    members.iter().for_each(|&m| assigned[m as usize] = true);
                    components.assign(members);
                }
            }
        }
        components
    }

    /// A shortest cycle that begins with this edge and stays in its component, or `None`.
    pub fn cycle_from(&self, first: &Edge, components: &Components) -> Option<Vec<Edge>> {
        let start = if self.apart { first.from * 2 } else { first.from };
        let entered = self.step(start, first)?;
        let component = components.of[start as usize];
        if component == 0 || components.of[entered as usize] != component {
            return None;
        }
        let mut reached_by: HashMap<u32, (u32, Edge)> = HashMap::new();
        let mut queue = VecDeque::from([entered]);
        while let Some(state) = queue.pop_front() {
            for edge in self.graph.edges_from(self.transaction(state)) {
                let Some(to) = self.step(state, edge) else { continue };
                if components.of[to as usize] != component || to == entered || reached_by.contains_key(&to) {
                    continue;
                }
                reached_by.insert(to, (state, *edge));
                if to == start {
                    return Some(trace_back(first, start, entered, &reached_by));
                }
                queue.push_back(to);
            }
        }
        None
    }

    /// At most `limit` edges of these kinds between members of a component.
    pub fn edges_within(&self, members: &[u32], components: &Components, kinds: Kinds, limit: usize) -> Vec<Edge> {
        let component = components.of[members[0] as usize];
        let inside = |state: u32, edge: &Edge| {
            edge.kind & kinds != 0 && self.step(state, edge).is_some_and(|to| components.of[to as usize] == component)
        };
        let starts = members.iter().filter(|&&state| !self.apart || state % 2 == 0);
        starts
            .flat_map(|&state| {
                self.graph.edges_from(self.transaction(state)).iter().filter(move |e| inside(state, e)).copied()
            })
            .take(limit)
            .collect()
    }
}

fn trace_back(first: &Edge, start: u32, entered: u32, reached_by: &HashMap<u32, (u32, Edge)>) -> Vec<Edge> {
    let mut cycle = Vec::new();
    let mut state = start;
    while state != entered {
        let (before, edge) = reached_by[&state];
        cycle.push(edge);
        state = before;
    }
    cycle.push(*first);
    cycle.reverse();
    cycle
}

/// The strongly connected components.
pub(crate) struct Components {
    /// The component of each state, from 1; 0 for a state in no cycle.
    of: Vec<u32>,
    /// The states of each component.
    pub members: Vec<Vec<u32>>,
}

impl Components {
    fn assign(&mut self, members: Vec<u32>) {
        if members.len() > 1 {
            self.members.push(members);
            let number = self.members.len() as u32;
            for &member in self.members.last().into_iter().flatten() {
                self.of[member as usize] = number;
            }
        }
    }
}
