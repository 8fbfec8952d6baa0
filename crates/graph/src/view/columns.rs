//! Values of several keys, a column for each key, from which operators make the maps of elements.
//!
//! A [`PropertyRow`] names the key of each property again and again. A caller that needs only values takes columns
//! instead: the view reads each column in one pass over the elements, and [`ValueColumns::each_row`] then walks all
//! columns at once. Within a column, rows ascend (GRAPH-1).

use super::rows::{PropertyRow, ValueRows};
use crate::ids::KeyId;
use crate::value::Value;

/// A column of values for each key, as [`GraphView::vertex_columns`](super::GraphView::vertex_columns) fills them.
#[derive(Default, Debug)]
pub struct ValueColumns {
    /// The keys, each once.
    keys: Vec<KeyId>,
    /// The column of the key at the same position. Columns after the last key are empty; their memory is used again.
    columns: Vec<ValueRows>,
}

impl ValueColumns {
    /// Forgets the content and keeps the memory.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.columns.iter_mut().for_each(ValueRows::clear);
    }

    /// The keys, in the order in which their columns were made.
    pub fn keys(&self) -> &[KeyId] {
        &self.keys
    }

    /// The column of a key; an empty one is made if the key is new.
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

    /// Appends whole properties, a value each. Every one of `keys` gets a column, whether or not a property has it.
    pub fn extend(&mut self, properties: Vec<PropertyRow>, keys: Option<&[KeyId]>) {
        keys.into_iter().flatten().for_each(|key| {
            self.column(*key);
        });
        for PropertyRow { row, key, value, .. } in properties {
            let column = self.column(key);
            column.row.push(row);
            column.value.push(value);
        }
    }

    /// The number of values in all columns.
    pub fn len(&self) -> usize {
        self.columns.iter().map(|column| column.row.len()).sum()
    }

    /// Returns true if there are no values.
    pub fn is_empty(&self) -> bool {
        self.columns.iter().all(|column| column.row.is_empty())
    }

    /// Takes the values out row by row. `each` is called for the rows from 0 to `rows - 1`, and takes the row's values
    /// from the iterator: key by key, and the values of one key in their order. Values that it leaves are dropped.
    pub fn each_row(&mut self, rows: usize, mut each: impl FnMut(usize, &mut RowValues<'_>)) {
        let keys = &self.keys[..];
        let columns = &mut self.columns[..keys.len()];
        let mut next = vec![0; keys.len()];
        for row in 0..rows {
            let mut values = RowValues { keys, columns, next: &mut next, row: row as u32, position: 0 };
            each(row, &mut values);
            values.by_ref().for_each(drop);
        }
        columns.iter_mut().for_each(ValueRows::clear);
    }
}

/// The values of one row. An item is the position of a key among [`ValueColumns::keys`], the key, and a value.
pub struct RowValues<'a> {
    keys: &'a [KeyId],
    columns: &'a mut [ValueRows],
    /// The position of the next value in each column.
    next: &'a mut [usize],
    row: u32,
    position: usize,
}

impl RowValues<'_> {
    /// The number of keys under which the row has values. Only right before the first value is taken.
    pub fn key_count(&self) -> usize {
        let columns = self.columns.iter().zip(self.next.iter());
        columns.filter(|(column, next)| column.row.get(**next) == Some(&self.row)).count()
    }

    /// The row's next value under the key at a position, if there is one more.
    #[inline]
    pub fn next_of(&mut self, position: usize) -> Option<Value> {
        let (column, next) = (&mut self.columns[position], &mut self.next[position]);
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
        while self.position < self.keys.len() {
            if let Some(value) = self.next_of(self.position) {
                return Some((self.position, self.keys[self.position], value));
            }
            self.position += 1;
        }
        None
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
