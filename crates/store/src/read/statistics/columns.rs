//! The degrees of the vertices of one page, a column for each table, and the products of two columns.

use mangrove_graph::PAGE_SLOTS;

/// If fewer than one slot in this many has a degree in a column, a product goes through these slots alone.
const SPARSE_PART: usize = 8;

/// The degrees of a page's vertices in one table.
#[derive(Debug, Default)]
pub(super) struct Column {
    /// The number by which the caller knows the table.
    number: usize,
    /// The degrees by slot. Larger ones than fit count as the largest that fits.
    degrees: Vec<u32>,
    /// The slots whose degree is not 0, ascending.
    slots: Vec<u16>,
    max: u32,
}

impl Column {
    /// Sets the degree of a slot, after those of all slots before it. It is not 0.
    #[inline]
    pub(super) fn set(&mut self, at: usize, degree: u64) {
        let degree = u32::try_from(degree).unwrap_or(u32::MAX);
        self.degrees[at] = degree;
        self.slots.push(at as u16);
        self.max = self.max.max(degree);
    }
}

/// The columns of a page.
#[derive(Debug, Default)]
pub(super) struct Columns {
    /// The first `count` are in use.
    columns: Vec<Column>,
    count: usize,
}

impl Columns {
    pub(super) fn clear(&mut self) {
        self.count = 0;
    }

    /// Begins the column of a table with this many slots, in place of the last one if that has no degree.
    pub(super) fn begin(&mut self, number: usize, slots: usize) -> &mut Column {
        debug_assert!(slots <= PAGE_SLOTS as usize);
        if self.used().last().is_some_and(|last| last.slots.is_empty()) {
            self.count -= 1;
        }
        if self.count == self.columns.len() {
            self.columns.push(Column::default());
        }
        self.count += 1;
        let column = &mut self.columns[self.count - 1];
        column.number = number;
        column.degrees.clear();
        column.degrees.resize(slots, 0);
        column.slots.clear();
        column.max = 0;
        column
    }

    fn used(&self) -> &[Column] {
        &self.columns[..self.count]
    }

    /// How many pairs of columns there are.
    pub(super) fn pair_count(&self) -> usize {
        self.count * self.count.saturating_sub(1) / 2
    }

    /// Calls `each` with the numbers of every two columns and the sum of the products of their degrees.
    pub(super) fn each_product(&self, mut each: impl FnMut(usize, usize, f64)) {
        for (at, a) in self.used().iter().enumerate() {
            for b in &self.used()[..at] {
                each(a.number, b.number, product(a, b));
            }
        }
    }
}

/// The sum of the products of the degrees in two columns.
fn product(a: &Column, b: &Column) -> f64 {
    // No sum of a page overflows: a product is less than 2^54, and a page has 2^10 slots.
    if u64::from(a.max) * u64::from(b.max) >= 1 << 54 {
        let products = a.degrees.iter().zip(&b.degrees).map(|(&a, &b)| f64::from(a) * f64::from(b));
        return products.sum();
    }
    let (few, other) = if a.slots.len() < b.slots.len() { (a, b) } else { (b, a) };
    let one = |(&a, &b): (&u32, &u32)| u64::from(a) * u64::from(b);
    let sum: u64 = if few.slots.len() * SPARSE_PART < few.degrees.len() {
        let slots = few.slots.iter().map(|at| usize::from(*at));
        slots.filter_map(|at| Some(one((few.degrees.get(at)?, other.degrees.get(at)?)))).sum()
    } else {
        few.degrees.iter().zip(&other.degrees).map(one).sum()
    };
    sum as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_the_same_in_every_way() {
        for (step, size) in [(1, 3), (9, 3), (100, 3), (1, u64::from(u32::MAX) - 1_023), (50, 1 << 40)] {
            let mut columns = Columns::default();
            let degrees = |step: usize, size: u64| {
                (0..1_024).filter(move |at| at % step == 0).map(move |at| (at, size + at as u64))
            };
            for (number, step) in [(7, 1), (8, step), (9, 2 * step)] {
                columns.begin(1_000, 1_024);
                let column = columns.begin(number, 1_024);
                degrees(step, size).for_each(|(at, degree)| column.set(at, degree));
            }
            let fits = |degree: u64| degree.min(u32::MAX.into()) as f64;
            let of = |a: usize, b: usize| -> f64 {
                let both = degrees(a, size).filter(|(at, _)| at % b == 0);
                both.map(|(_, degree)| fits(degree) * fits(degree)).sum()
            };
            let expected = [(8, 7, of(1, step)), (9, 7, of(1, 2 * step)), (9, 8, of(step, 2 * step))];
            let mut found = Vec::new();
            columns.each_product(|a, b, product| found.push((a, b, product)));
            assert_eq!((found, columns.pair_count()), (expected.to_vec(), 3));
        }
    }
}
