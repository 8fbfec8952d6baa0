//! Gathering rows out of several batches into one.

use crate::rows::batch::{ComputedColumn, Rows, Tags};
use crate::rows::binding::BindingColumn;
use crate::rows::column::ObjectColumn;
use crate::rows::numbers::{NumberColumn, NumberSlice};

/// Rows of several batches, in the order in which they become one batch.
pub(crate) struct PickedRows<'a> {
    /// The batch of each row, and the row's number there.
    picks: Vec<(&'a Rows, usize)>,
}

impl<'a> PickedRows<'a> {
    pub fn new(picks: Vec<(&'a Rows, usize)>) -> Self {
        PickedRows { picks }
    }

    /// Returns one batch with all columns of the rows. The batches have the same columns, but for their types.
    pub fn gathered(&self) -> Rows {
        let columns = self.picks.first().map_or(0, |(first, _)| first.computed.len());
        Rows {
            computed: (0..columns).map(|column| self.computed(column)).collect(),
            ..self.gathered_without_computed()
        }
    }

    /// As [`PickedRows::gathered`], without the computed columns.
    pub fn gathered_without_computed(&self) -> Rows {
        let Some((first, _)) = self.picks.first() else { return Rows::default() };
        let bindings = self.picks.iter().map(|(rows, _)| rows.bindings.len()).max().unwrap_or(0);
        Rows {
            tags: match self.any(|rows| matches!(rows.tags, Tags::Many(_))) {
                true => Tags::Many(self.each(|rows, row| rows.tag(row))),
                false => Tags::One,
            },
            objects: self.objects(),
            bulk: self.any(|rows| rows.bulk.is_some()).then(|| self.each(Rows::bulk)),
            path: first.path.is_some().then(|| self.each(Rows::path)),
            bindings: (0..bindings).map(|number| self.binding(number)).collect(),
            loops: first.loops.is_some().then(|| self.each(|rows, row| cell(rows.loops.as_deref(), row))),
            sacks: first.sacks.is_some().then(|| self.each(|rows, row| cell(rows.sacks.as_deref(), row))),
            computed: Vec::new(),
        }
    }

    fn any(&self, is: impl Fn(&Rows) -> bool) -> bool {
        self.picks.iter().any(|(rows, _)| is(rows))
    }

    fn each<T>(&self, get: impl Fn(&Rows, usize) -> T) -> Vec<T> {
        self.picks.iter().map(|(rows, row)| get(rows, *row)).collect()
    }

    /// Returns the cell of each row; `None` if one has none.
    fn try_each<T>(&self, get: impl Fn(&'a Rows, usize) -> Option<T>) -> Option<Vec<T>> {
        self.picks.iter().map(|(rows, row)| get(rows, *row)).collect()
    }

    fn objects(&self) -> ObjectColumn {
        let vertex = |rows: &Rows, row: usize| match &rows.objects {
            ObjectColumn::Vertices(ids) => Some(ids[row]),
            _ => None,
        };
        let edge = |rows: &Rows, row: usize| match &rows.objects {
            ObjectColumn::Edges(ids) => Some(ids[row]),
            _ => None,
        };
        if let Some(ids) = self.try_each(vertex) {
            ObjectColumn::Vertices(ids)
        } else if let Some(ids) = self.try_each(edge) {
            ObjectColumn::Edges(ids)
        } else if let Some(numbers) = self.numbers() {
            ObjectColumn::Numbers(numbers)
        } else {
            ObjectColumn::Values(self.each(Rows::object))
        }
    }

    /// Returns the objects if they are numbers of one type.
    fn numbers(&self) -> Option<NumberColumn> {
        let kind = self.picks.first()?.0.objects.numbers()?.kind();
        let numbers = |rows: &'a Rows| rows.objects.numbers().filter(|numbers| numbers.kind() == kind);
        if kind.is_float() {
            let float = |rows: &'a Rows, row: usize| match numbers(rows)? {
                NumberSlice::Floats(_, floats) => Some(floats[row]),
                NumberSlice::Integers(..) => None,
            };
            return NumberColumn::of_floats(kind, self.try_each(float)?);
        }
        let integer = |rows: &'a Rows, row: usize| match numbers(rows)? {
            NumberSlice::Integers(_, integers) => Some(integers[row]),
            NumberSlice::Floats(..) => None,
        };
        NumberColumn::of_integers(kind, self.try_each(integer)?)
    }

    fn binding(&self, number: usize) -> BindingColumn {
        let vertex = |rows: &Rows, row: usize| match rows.binding(number) {
            Some(BindingColumn::Vertices(ids)) => Some(ids[row]),
            _ => None,
        };
        let edge = |rows: &Rows, row: usize| match rows.binding(number) {
            Some(BindingColumn::Edges(ids)) => Some(ids[row]),
            _ => None,
        };
        if let Some(ids) = self.try_each(vertex) {
            BindingColumn::Vertices(ids)
        } else if let Some(ids) = self.try_each(edge) {
            BindingColumn::Edges(ids)
        } else {
            BindingColumn::Values(self.each(|rows, row| rows.binding(number)?.get(row)))
        }
    }

    fn computed(&self, column: usize) -> ComputedColumn {
        self.each(|rows, row| rows.computed_value(column, row).cloned())
    }
}

fn cell<T: Clone + Default>(column: Option<&[T]>, row: usize) -> T {
    column.and_then(|column| column.get(row)).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use mangrove_graph::{EdgeId, NumberType, TabletId, Value, VertexId};

    use super::*;

    fn vertex(slot: u64) -> VertexId {
        VertexId::new(TabletId(0), slot)
    }

    fn with_bindings(objects: ObjectColumn, bindings: Vec<BindingColumn>) -> Rows {
        Rows { bindings, ..Rows::of(objects) }
    }

    /// Gathering is appending, then taking.
    #[test]
    fn rows_of_several_batches_are_those_of_the_appended_batch() {
        let vertices = || ObjectColumn::Vertices(vec![vertex(1), vertex(2)]);
        let numbers = |kind| ObjectColumn::Numbers(NumberColumn::of_integers(kind, vec![1, -2]).unwrap());
        let bound = || BindingColumn::Vertices(vec![vertex(7), vertex(8)]);
        let mut counted = with_bindings(ObjectColumn::Values(vec![1.into(), 2.into()]), vec![BindingColumn::Unset]);
        counted.bulk = Some(vec![3, 4]);
        counted.tags = Tags::Many(vec![5, 0]);
        let batches = [
            with_bindings(vertices(), vec![bound()]),
            with_bindings(vertices(), vec![bound(), BindingColumn::Values(vec![None, Some(1.into())])]),
            counted,
            with_bindings(ObjectColumn::Edges(vec![EdgeId::from_bits(1), EdgeId::from_bits(2)]), Vec::new()),
            Rows::of(numbers(NumberType::I32)),
            Rows::of(numbers(NumberType::I64)),
            Rows::of(ObjectColumn::Numbers(NumberColumn::of_floats(NumberType::F32, vec![0.5, f64::NAN]).unwrap())),
        ];
        for first in &batches {
            for second in &batches {
                let mut appended = first.clone();
                appended.append(second.clone());
                let picks = [(second, 1), (first, 0), (first, 1), (second, 0)];
                let expected = appended.take(&[3, 0, 1, 2]);
                let gathered = PickedRows::new(picks.to_vec()).gathered();
                let (objects, expected_objects) = (&gathered.objects, &expected.objects);
                assert_eq!(format!("{objects:?}"), format!("{expected_objects:?}"));
                assert_eq!(gathered.tags, expected.tags);
                assert_eq!(gathered.bulk, expected.bulk);
                for row in 0..4 {
                    let bound = |rows: &Rows, number| rows.binding(number).and_then(|column| column.get(row));
                    assert_eq!([0, 1].map(|n| bound(&gathered, n)), [0, 1].map(|n| bound(&expected, n)));
                }
            }
        }
        let sacks = |n: i32| Rows { sacks: Some(vec![n.into(); 2]), ..Rows::of(vertices()) };
        let (first, second) = (sacks(1), sacks(2));
        let gathered = PickedRows::new(vec![(&second, 0), (&first, 1)]).gathered();
        assert_eq!(gathered.sacks, Some(vec![Value::I32(2), Value::I32(1)]));
        assert!(PickedRows::new(Vec::new()).gathered().is_empty());
    }
}
