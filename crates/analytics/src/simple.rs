//! Sorted rows without loops and without repeated neighbors, for algorithms that intersect rows.

use mangrove_graph::Result;
use parking_lot::Mutex;

use crate::projection::Projection;
use crate::team::Team;

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
                // Rows are a few sorted runs, which a stable sort merges.
                row.sort();
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
            team.check()?;
            rows.cells.extend_from_slice(&cells);
            rows.offsets.extend(lengths.iter().map(|length| {
                end += *length as u64;
                end
            }));
        }
        Ok(rows)
    }

    /// The number of positions.
    pub(crate) fn positions(&self) -> u32 {
        self.offsets.len() as u32 - 1
    }

    /// The row of a position.
    #[inline]
    pub(crate) fn row(&self, at: u32) -> &[u32] {
        &self.cells[self.offsets[at as usize] as usize..self.offsets[at as usize + 1] as usize]
    }

    /// The length of a row.
    #[inline]
    pub(crate) fn degree(&self, at: u32) -> u32 {
        (self.offsets[at as usize + 1] - self.offsets[at as usize]) as u32
    }
}

/// One row is searched in the other, and not merged with it, from this ratio of their lengths on.
const SEARCHED: usize = 16;

/// Calls `each` with the indexes, in the one row and in the other, of every position that both have. Rows are sorted.
#[inline]
pub(crate) fn for_each_common(one: &[u32], other: &[u32], mut each: impl FnMut(usize, usize)) {
    if one.len() * SEARCHED < other.len() {
        return search(one, other, each);
    }
    if other.len() * SEARCHED < one.len() {
        return search(other, one, |a, b| each(b, a));
    }
    let (mut a, mut b) = (0, 0);
    while let (Some(x), Some(y)) = (one.get(a), other.get(b)) {
        if x == y {
            each(a, b);
        }
        a += usize::from(x <= y);
        b += usize::from(y <= x);
    }
}

/// Looks each position of a short row up in a long one.
fn search(short: &[u32], long: &[u32], mut each: impl FnMut(usize, usize)) {
    let mut begin = 0;
    for (at, position) in short.iter().enumerate() {
        begin += long[begin..].partition_point(|other| other < position);
        match long.get(begin) {
            Some(other) if other == position => each(at, begin),
            Some(_) => {}
            None => return,
        }
    }
}

/// Where each position is in a row that is intersected with many others: one look each, in place of a merge.
#[derive(Debug)]
pub(crate) struct Marks {
    /// For each position its index in the row, and one more; 0: the row does not have it.
    places: Vec<u32>,
}

impl Marks {
    /// Calls `work` while a row is marked.
    #[inline]
    pub(crate) fn marked<R>(&mut self, row: &[u32], work: impl FnOnce(&Marks) -> R) -> R {
        row.iter().enumerate().for_each(|(at, position)| self.places[*position as usize] = at as u32 + 1);
        let result = work(self);
        row.iter().for_each(|position| self.places[*position as usize] = 0);
        result
    }

    /// As [`for_each_common`], of the marked row and another one. The other one has nothing of the marked row
    /// before `from`.
    #[inline]
    pub(crate) fn for_each_common(&self, row: &[u32], from: usize, other: &[u32], mut each: impl FnMut(usize, usize)) {
        if (row.len() - from) * SEARCHED < other.len() {
            return search(&row[from..], other, |in_row, in_other| each(from + in_row, in_other));
        }
        for (in_other, position) in other.iter().enumerate() {
            let place = self.places[*position as usize];
            if place != 0 {
                each(place as usize - 1, in_other);
            }
        }
    }
}

/// Marks that the parts of a phase take in turn. There are as many as threads have worked at the same time.
#[derive(Debug)]
pub(crate) struct MarksPool {
    positions: usize,
    free: Mutex<Vec<Marks>>,
}

impl MarksPool {
    /// For rows of positions below this number.
    pub(crate) fn new(positions: usize) -> Self {
        MarksPool { positions, free: Mutex::default() }
    }

    /// Calls `work` with marks of no row.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut Marks) -> R) -> R {
        let marks = self.free.lock().pop();
        let mut marks = marks.unwrap_or_else(|| Marks { places: vec![0; self.positions] });
        let result = work(&mut marks);
        self.free.lock().push(marks);
        result
    }
}
