//! The values of several keys by column: what maps of elements are made of.
//!
//! A [`PropertyRow`] says everything of one property of one element, again and again which key it is. Who wants values
//! and nothing else takes a column a key instead: each is read in one pass over the elements, and a map is then made
//! row by row with one walk over all columns ([`ValueColumns::each_row`]).

use crate::error::Result;
use crate::ids::{EdgeId, KeyId, VertexId};
use crate::value::Value;
use crate::view::{GraphView, PropertyRow, ValueRows};

/// A column a key; see [`GraphView::vertex_columns`].
#[derive(Default, Debug)]
pub struct ValueColumns {
    /// The keys, each once.
    keys: Vec<KeyId>,
    /// The values of the key at the same place; those behind are empty and wait to be used again.
    columns: Vec<ValueRows>,
}

impl ValueColumns {
    /// Forgets the content and keeps the memory.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.columns.iter_mut().for_each(ValueRows::clear);
    }

    /// The keys, in the order in which they were first asked for.
    pub fn keys(&self) -> &[KeyId] {
        &self.keys
    }

    /// The column of a key, made where it is new.
    pub fn column(&mut self, key: KeyId) -> &mut ValueRows {
        let at = self.keys.iter().position(|k| *k == key).unwrap_or_else(|| {
            self.keys.push(key);
            if self.columns.len() < self.keys.len() {
                self.columns.push(ValueRows::default());
            }
            self.keys.len() - 1
        });
        &mut self.columns[at]
    }

    /// How many values.
    pub fn len(&self) -> usize {
        self.columns.iter().map(|column| column.row.len()).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.columns.iter().all(|column| column.row.is_empty())
    }

    /// Takes the values out row by row. `each` is shown every row up to `rows`, and takes the row's values from the
    /// iterator: key by key, those of one key in their order. What it leaves is dropped.
    pub fn each_row(&mut self, rows: usize, mut each: impl FnMut(usize, &mut RowValues<'_>)) {
        let keys = &self.keys[..];
        let columns = &mut self.columns[..keys.len()];
        let mut next = vec![0; keys.len()];
        for row in 0..rows {
            let mut values = RowValues { keys, columns, next: &mut next, row: row as u32, place: 0 };
            each(row, &mut values);
            values.by_ref().for_each(drop);
        }
        columns.iter_mut().for_each(ValueRows::clear);
    }
}

/// The values of one row: the place of the key among [`ValueColumns::keys`], the key, and the value.
pub struct RowValues<'a> {
    keys: &'a [KeyId],
    columns: &'a mut [ValueRows],
    /// The next value of each column.
    next: &'a mut [usize],
    row: u32,
    place: usize,
}

impl RowValues<'_> {
    /// How many keys the row has values under; right as long as nothing was taken.
    pub fn key_count(&self) -> usize {
        let columns = self.columns.iter().zip(self.next.iter());
        columns.filter(|(column, next)| column.row.get(**next) == Some(&self.row)).count()
    }

    /// The next value under the key at a place, if there is one more.
    #[inline]
    pub fn next_of(&mut self, place: usize) -> Option<Value> {
        let (column, next) = (&mut self.columns[place], &mut self.next[place]);
        if column.row.get(*next) != Some(&self.row) {
            return None;
        }
        *next += 1;
        column.value.get_mut(*next - 1).map(std::mem::take)
    }
}

impl Iterator for RowValues<'_> {
    type Item = (usize, KeyId, Value);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        while self.place < self.keys.len() {
            if let Some(value) = self.next_of(self.place) {
                return Some((self.place, self.keys[self.place], value));
            }
            self.place += 1;
        }
        None
    }
}

/// [`GraphView::vertex_columns`] by whole properties, for views that have no shorter way.
pub fn vertex_columns_of_rows<V: GraphView + ?Sized>(
    view: &V,
    vertices: &[VertexId],
    keys: Option<&[KeyId]>,
    out: &mut ValueColumns,
) -> Result<()> {
    let mut rows = Vec::new();
    view.vertex_properties(vertices, keys, &mut rows)?;
    into_columns(rows, keys, out);
    Ok(())
}

/// [`GraphView::edge_columns`] by whole properties, for views that have no shorter way.
pub fn edge_columns_of_rows<V: GraphView + ?Sized>(
    view: &V,
    edges: &[EdgeId],
    keys: Option<&[KeyId]>,
    out: &mut ValueColumns,
) -> Result<()> {
    let mut rows = Vec::new();
    view.edge_properties(edges, keys, &mut rows)?;
    into_columns(rows, keys, out);
    Ok(())
}

fn into_columns(rows: Vec<PropertyRow>, keys: Option<&[KeyId]>, out: &mut ValueColumns) {
    keys.into_iter().flatten().for_each(|key| {
        out.column(*key);
    });
    for PropertyRow { row, key, value, .. } in rows {
        let column = out.column(key);
        column.row.push(row);
        column.value.push(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(cells: &[(u32, u32, i32)]) -> ValueColumns {
        let mut columns = ValueColumns::default();
        for &(key, row, value) in cells {
            let column = columns.column(KeyId(key));
            column.row.push(row);
            column.value.push(value.into());
        }
        columns
    }

    #[test]
    fn rows_come_whole_and_in_order() {
        let mut columns = columns(&[(7, 0, 1), (7, 2, 2), (3, 0, 3), (3, 0, 4), (3, 1, 5), (3, 2, 6)]);
        assert_eq!((columns.keys(), columns.len()), (&[KeyId(7), KeyId(3)][..], 6));
        let mut seen = Vec::new();
        columns.each_row(4, |row, values| {
            let count = values.key_count();
            seen.push((row, count, values.map(|(_, key, value)| (key.0, value)).collect::<Vec<_>>()));
        });
        let value = Value::I32;
        let expected = vec![
            (0, 2, vec![(7, value(1)), (3, value(3)), (3, value(4))]),
            (1, 1, vec![(3, value(5))]),
            (2, 2, vec![(7, value(2)), (3, value(6))]),
            (3, 0, vec![]),
        ];
        assert_eq!(seen, expected);
        assert!(columns.is_empty());
    }

    #[test]
    fn values_that_a_row_leaves_do_not_go_to_the_next_one() {
        let mut columns = columns(&[(1, 0, 1), (1, 0, 2), (1, 1, 3)]);
        let mut seen = Vec::new();
        columns.each_row(2, |_, values| seen.extend(values.next_of(0)));
        assert_eq!(seen, vec![Value::I32(1), Value::I32(3)]);
    }

    #[test]
    fn memory_is_kept_and_content_is_not() {
        let mut columns = columns(&[(1, 0, 1), (2, 0, 2)]);
        columns.clear();
        assert!(columns.keys().is_empty() && columns.is_empty());
        columns.column(KeyId(9)).row.push(4);
        assert_eq!(columns.keys(), &[KeyId(9)]);
    }
}
