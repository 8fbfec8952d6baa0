//! Strongly connected components: vertices that are connected by paths in both directions. Each is named by its least position.
//!
//! The multistep method (Slota, Rajamanickam and Madduri, *BFS and Coloring-based Parallel Algorithms for Strongly Connected Components and
//! Related Problems*, 2014):
//!
//! 1. *Trim.* A vertex without incoming or without outgoing edges is alone. Without it, others may be so too.
//! 2. *Forward and backward.* Most graphs have one large component. From the vertex of the greatest product of its degrees, a search
//!    finds what it leads to, and a search backwards among those finds its component.
//! 3. *Colors.* Each vertex takes the greatest position that leads to it, its color. The vertices of a color that lead to the vertex
//!    that gave it are its component. Every round finds a component for each color.
//! 4. *The rest*, if it is small, or if a round of colors finds little: Tarjan's depth-first search (1972), on one thread. It bounds the
//!    work where colors need many rounds, as on a long chain of small components.
//!
//! Without directions, these are the weakly connected components. Work O(n + m), and at most [`BUDGET`] looks at each vertex in a
//! round of colors, of which each but the last one halves what is left; memory 17 bytes a position, and 24 for the depth-first
//! search. The least position of a component does not depend on how it was found.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering};

use mangrove_graph::Result;

use crate::algorithm::wcc;
use crate::projection::Projection;
use crate::team::Team;
use crate::worklist::{chunk, drain, filtered};

/// What is left is found by one thread below so many vertices.
pub const SEQUENTIAL: usize = 1 << 15;

/// Looks at each vertex of a round of colors, on average, after which the depth-first search goes on instead.
const BUDGET: usize = 16;
/// Vertices that the depth-first search visits before it looks whether the query has ended.
const VISITED: usize = 1 << 12;
/// The component of a vertex that has none yet.
const NONE: u32 = u32::MAX;

/// In the marks of a search: reached forward, reached backward.
const FORWARD: u8 = 1;
const BACKWARD: u8 = 2;

/// The component of every position, as the least position in it. Holes are alone.
///
/// # Errors
///
/// If the query of the team has ended.
pub fn run(projection: &Projection, team: &Team) -> Result<Vec<u32>> {
    run_with(projection, SEQUENTIAL, team)
}

/// As [`run`], with the number of vertices below which one thread finds the rest. It changes the time, and not the result.
///
/// # Errors
///
/// As those of [`run`].
pub fn run_with(projection: &Projection, sequential: usize, team: &Team) -> Result<Vec<u32>> {
    if !projection.is_directed() {
        return wcc::run(projection, team);
    }
    let components: Vec<AtomicU32> = (0..projection.positions()).map(|_| AtomicU32::new(NONE)).collect();
    let search = Search { projection, components };
    search.trim(team)?;
    let mut left = search.left(team)?;
    if left.len() >= sequential {
        search.largest(&left, team)?;
        left = search.left_of(&left, team)?;
    }
    while left.len() >= sequential && !left.is_empty() {
        let before = left.len();
        if !search.colors(&left, team)? {
            break;
        }
        left = search.left_of(&left, team)?;
        if left.len() > before / 2 {
            break;
        }
    }
    search.depth_first(&left, team)?;
    search.named(team)
}

struct Search<'s> {
    projection: &'s Projection,
    /// The component of each position, as one of its vertices, or [`NONE`].
    components: Vec<AtomicU32>,
}

impl Search<'_> {
    fn is_left(&self, at: u32) -> bool {
        self.components[at as usize].load(Ordering::Relaxed) == NONE
    }

    /// The positions without a component, ascending.
    fn left(&self, team: &Team) -> Result<Vec<u32>> {
        let parts = self.projection.parts();
        let left = team.map_parts(parts.len(), |part| {
            parts[part].clone().map(|at| at as u32).filter(|at| self.is_left(*at)).collect::<Vec<u32>>()
        })?;
        Ok(left.concat())
    }

    fn left_of(&self, left: &[u32], team: &Team) -> Result<Vec<u32>> {
        filtered(team, left, |at| self.is_left(at))
    }

    /// Vertices that no edge leads to or from are alone; others become so.
    fn trim(&self, team: &Team) -> Result<()> {
        let (projection, parts) = (self.projection, self.projection.parts());
        let counters = || -> Vec<AtomicU32> { (0..projection.positions()).map(|_| AtomicU32::new(0)).collect() };
        let (incoming, outgoing) = (counters(), counters());
        let first = team.map_parts(parts.len(), |part| {
            let mut found = Vec::new();
            for at in parts[part].clone() {
                // A loop does not lead anywhere.
                let count = |row: &[u32]| row.iter().filter(|other| **other != at as u32).count() as u32;
                let counts = [count(projection.incoming(at as u32)), count(projection.outgoing(at as u32))];
                incoming[at].store(counts[0], Ordering::Relaxed);
                outgoing[at].store(counts[1], Ordering::Relaxed);
                if counts.contains(&0) {
                    self.components[at].store(at as u32, Ordering::Relaxed);
                    found.push(at as u32);
                }
            }
            found
        })?;
        drain(team, first.concat(), |at, open| {
            let mut without = |row: &[u32], counters: &[AtomicU32]| {
                for &other in row {
                    if other != at
                        && self.is_left(other)
                        && counters[other as usize].fetch_sub(1, Ordering::Relaxed) == 1
                        && self.components[other as usize]
                            .compare_exchange(NONE, other, Ordering::Relaxed, Ordering::Relaxed)
                            .is_ok()
                    {
                        open.push(other);
                    }
                }
            };
            without(projection.outgoing(at), &incoming);
            without(projection.incoming(at), &outgoing);
        })
    }

    /// Finds the component of a vertex that is likely in the largest one.
    fn largest(&self, left: &[u32], team: &Team) -> Result<()> {
        const SCANNED: usize = 1 << 14;
        let projection = self.projection;
        let best = team.map_parts(left.len().div_ceil(SCANNED), |part| {
            let product = |at: u32| projection.outgoing(at).len() as u64 * projection.incoming(at).len() as u64;
            chunk(left, part, SCANNED).iter().map(|at| (product(*at), *at)).max()
        })?;
        let Some((_, pivot)) = best.into_iter().flatten().max() else { return Ok(()) };
        let marks: Vec<AtomicU8> = (0..projection.positions()).map(|_| AtomicU8::new(0)).collect();
        let is_marked = |at: u32, mark| marks[at as usize].load(Ordering::Relaxed) & mark != 0;
        // Returns true for the first one that marks a position.
        let mark =
            |at: u32, mark| !is_marked(at, mark) && marks[at as usize].fetch_or(mark, Ordering::Relaxed) & mark == 0;
        mark(pivot, FORWARD);
        drain(team, vec![pivot], |at, open| {
            let reached =
                projection.outgoing(at).iter().filter(|other| self.is_left(**other) && mark(**other, FORWARD));
            open.extend(reached);
        })?;
        mark(pivot, BACKWARD);
        drain(team, vec![pivot], |at, open| {
            self.components[at as usize].store(pivot, Ordering::Relaxed);
            let sources = projection.incoming(at).iter();
            open.extend(sources.filter(|other| is_marked(**other, FORWARD) && mark(**other, BACKWARD)));
        })
    }

    /// Finds a component for each color. Returns false if colors needed too many looks; then it found none.
    fn colors(&self, left: &[u32], team: &Team) -> Result<bool> {
        let projection = self.projection;
        let colors: Vec<AtomicU32> = (0..projection.positions() as u32).map(AtomicU32::new).collect();
        let color = |at: u32| colors[at as usize].load(Ordering::Relaxed);
        let looks = AtomicUsize::new(0);
        let most = left.len().saturating_mul(BUDGET);
        let is_over = || looks.load(Ordering::Relaxed) > most;
        // From the greatest position on: its color is not replaced.
        let from_greatest = left.iter().rev().copied().collect();
        drain(team, from_greatest, |at, open| {
            if is_over() {
                return;
            }
            looks.fetch_add(1, Ordering::Relaxed);
            let own = color(at);
            for &other in projection.outgoing(at) {
                if self.is_left(other)
                    && color(other) < own
                    && colors[other as usize].fetch_max(own, Ordering::Relaxed) < own
                {
                    open.push(other);
                }
            }
        })?;
        if is_over() {
            return Ok(false);
        }
        let givers = filtered(team, left, |at| color(at) == at)?;
        drain(team, givers, |at, open| {
            let own = color(at);
            self.components[at as usize].store(own, Ordering::Relaxed);
            for &other in projection.incoming(at) {
                if color(other) == own
                    && self.components[other as usize]
                        .compare_exchange(NONE, own, Ordering::Relaxed, Ordering::Relaxed)
                        .is_ok()
                {
                    open.push(other);
                }
            }
        })?;
        Ok(true)
    }

    /// Tarjan's search among the vertices that are left, with a stack of its own in place of recursion.
    fn depth_first(&self, left: &[u32], team: &Team) -> Result<()> {
        if left.is_empty() {
            return Ok(());
        }
        let projection = self.projection;
        // When each vertex was visited, from 1 on, and the earliest visit that it leads back to.
        let (mut visits, mut lows) = (vec![0_u32; projection.positions()], vec![0_u32; projection.positions()]);
        let (mut clock, mut path, mut open) = (0_u32, Vec::<(u32, u32)>::new(), Vec::new());
        let mut steps = 0_usize;
        for &root in left {
            if visits[root as usize] == 0 {
                path.push((root, 0));
            }
            while let Some(&mut (at, ref mut next)) = path.last_mut() {
                if *next == 0 {
                    clock += 1;
                    (visits[at as usize], lows[at as usize]) = (clock, clock);
                    open.push(at);
                    steps += 1;
                    if steps.is_multiple_of(VISITED) {
                        team.check()?;
                    }
                }
                let row = projection.outgoing(at);
                let mut entered = None;
                while let Some(&other) = row.get(*next as usize) {
                    *next += 1;
                    if !self.is_left(other) {
                        continue;
                    }
                    if visits[other as usize] == 0 {
                        entered = Some(other);
                        break;
                    }
                    lows[at as usize] = lows[at as usize].min(visits[other as usize]);
                }
                if let Some(other) = entered {
                    path.push((other, 0));
                    continue;
                }
                path.pop();
                if lows[at as usize] == visits[at as usize] {
                    while let Some(member) = open.pop() {
                        self.components[member as usize].store(at, Ordering::Relaxed);
                        if member == at {
                            break;
                        }
                    }
                }
                if let Some((above, _)) = path.last() {
                    lows[*above as usize] = lows[*above as usize].min(lows[at as usize]);
                }
            }
        }
        Ok(())
    }

    /// Names each component by its least position.
    fn named(self, team: &Team) -> Result<Vec<u32>> {
        let parts = self.projection.parts();
        let least: Vec<AtomicU32> = (0..self.components.len()).map(|_| AtomicU32::new(NONE)).collect();
        let component = |at: usize| self.components[at].load(Ordering::Relaxed) as usize;
        team.for_parts(parts.len(), |part| {
            for at in parts[part].clone() {
                let least = &least[component(at)];
                if least.load(Ordering::Relaxed) > at as u32 {
                    least.fetch_min(at as u32, Ordering::Relaxed);
                }
            }
        })?;
        let mut names = vec![0; self.components.len()];
        team.map_slices(parts, &mut *names, |part, names| {
            for (at, name) in parts[part].clone().zip(names) {
                *name = least[component(at)].load(Ordering::Relaxed);
            }
        })?;
        Ok(names)
    }
}
