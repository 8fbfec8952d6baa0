//! Sorted rows without loops and without repeated neighbors, for algorithms that intersect rows.

use crate::projection::Projection;
use crate::team::Team;
use mangrove_graph::Result;

/// The rows of a simple graph: each is sorted, has a position once, and does not have its own.
#[derive(Clone, Debug)]
pub(crate) struct SimpleRows {
    offsets: Vec<u64>,
    cells: Vec<u32>,
}

impl SimpleRows {
    /// For each position, the ends of its outgoing edges; with `both`, of the edges of both directions.
    pub(crate) fn of(projection: &Projection, both: bool, team: &Team) -> Result<Self> {
        Self::made(projection, team, |at, row| {
            row.extend_from_slice(projection.outgoing(at));
            if both && projection.is_directed() {
                row.extend_from_slice(projection.incoming(at));
            }
        })
    }

    /// For each position, the sources of its incoming edges.
    pub(crate) fn of_incoming(projection: &Projection, team: &Team) -> Result<Self> {
        Self::made(projection, team, |at, row| row.extend_from_slice(projection.incoming(at)))
    }

    /// Rows that `add` puts together: in any order, with any cells.
    fn made(projection: &Projection, team: &Team, add: impl Fn(u32, &mut Vec<u32>) + Sync) -> Result<Self> {
        let parts = projection.parts();
        let of_parts = team.map_parts(parts.len(), |part| {
            let (mut lengths, mut cells, mut row) = (Vec::with_capacity(parts[part].len()), Vec::new(), Vec::new());
            for at in parts[part].clone() {
                let at = at as u32;
                row.clear();
                add(at, &mut row);
                row.sort_unstable();
                row.dedup();
                row.retain(|other| *other != at);
                lengths.push(row.len());
                cells.extend_from_slice(&row);
            }
            (lengths, cells)
        })?;
        let count = of_parts.iter().map(|(_, cells)| cells.len()).sum();
        let mut rows = SimpleRows { offsets: vec![0], cells: Vec::with_capacity(count) };
        let mut end = 0;
        for (lengths, cells) in of_parts {
            rows.cells.extend_from_slice(&cells);
            rows.offsets.extend(lengths.iter().map(|length| {
                end += *length as u64;
                end
            }));
        }
        Ok(rows)
    }

    /// The row of a position.
    #[inline]
    pub(crate) fn row(&self, at: u32) -> &[u32] {
        &self.cells[self.offsets[at as usize] as usize..self.offsets[at as usize + 1] as usize]
    }
}

/// One row is searched in the other, and not merged with it, from this ratio of their lengths on.
const SEARCHED: usize = 16;

/// How many positions two rows have in common.
pub(crate) fn common(one: &[u32], other: &[u32]) -> u64 {
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    if short.len() * SEARCHED < long.len() {
        let mut rest = long;
        let mut found = 0;
        for position in short {
            let at = rest.partition_point(|other| other < position);
            found += u64::from(rest.get(at) == Some(position));
            rest = &rest[at..];
        }
        return found;
    }
    let (mut a, mut b, mut found) = (0, 0, 0);
    while let (Some(x), Some(y)) = (short.get(a), long.get(b)) {
        found += u64::from(x == y);
        a += usize::from(x <= y);
        b += usize::from(y <= x);
    }
    found
}
