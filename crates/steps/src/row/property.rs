//! Properties of elements: `values`, `properties`, `valueMap`, `elementMap`, and tokens.
//!
//! Each reads the properties of all vertices of a batch in one call of the view, and those of its edges in another.
//! Results are in the order of the rows; those of one row are in the order in which the view gives them.

mod maps;

use std::sync::Arc;

use mangrove_graph::{
    Error, KeyId, Need, Numbers, PropertyOwner, PropertyRow, PropertyValue, Result, Token, Value, ValueColumns,
    ValueRows, VertexPropertyValue,
};
use mangrove_plan::logical::Name;

pub(crate) use maps::{ElementMap, PropertyMap, ReplaceMapValues, ValueMap};

use crate::computed::keys::read_numbers;
use crate::computed::lookup::compute_token;
use crate::context::execution::ExecutionContext;
use crate::context::type_name::a_type;
use crate::limits::meter::Meter;
use crate::row::operator::{RowOperator, SliceSize};
use crate::rows::current::current;
use crate::rows::kinds::Kinds;
use crate::rows::needs;
use crate::rows::{NumberSlice, ObjectColumn, Rows};
use crate::values::names::known_keys;

/// `values()`: the values of some keys, or of all.
pub(crate) struct Values {
    keys: Vec<Name>,
    slices: SliceSize,
    numbers: Option<NumberReader>,
    /// True if numbers are read as a column only if the reader of the results takes columns.
    is_last: bool,
}

impl Values {
    /// Reads the values of these keys; no keys mean all. `as_numbers` is true if the next operator reads columns of
    /// numbers as arrays (STEPS-12), and `is_last` if the values are the results of the query.
    pub fn new(keys: Vec<Name>, as_numbers: bool, is_last: bool) -> Self {
        let numbers = ((as_numbers || is_last) && keys.len() == 1).then(NumberReader::default);
        Values { keys, slices: SliceSize::default(), numbers, is_last }
    }
}

/// Reads the values of one key as a column of numbers.
#[derive(Default)]
struct NumberReader {
    numbers: Numbers,
    /// True after a batch of the run had other values than numbers of one type. Then numbers are not tried again.
    has_failed: bool,
}

/// A batch of fewer rows is read as values: a column of numbers would not repay its arrays.
const NUMBERS_MIN: usize = 4;

impl NumberReader {
    /// Returns the values of a key of a batch, if they are numbers of one type.
    fn read(&mut self, rows: &Rows, key: &Name, context: &ExecutionContext) -> Result<Option<Rows>> {
        if self.has_failed || rows.len() < NUMBERS_MIN {
            return Ok(None);
        }
        self.has_failed = !read_numbers(&rows.objects, key, context, &mut self.numbers)?;
        let numbers = NumberSlice::of(&self.numbers).filter(|_| !self.has_failed);
        Ok(numbers.map(|numbers| rows.derive(&self.numbers.row, ObjectColumn::Numbers(numbers.into()))))
    }
}

impl RowOperator for Values {
    fn begin(&mut self, _: &ExecutionContext) -> Result<()> {
        self.numbers.iter_mut().for_each(|reader| reader.has_failed = false);
        Ok(())
    }

    fn needs<'a>(&mut self, objects: &'a ObjectColumn, from: usize, context: &ExecutionContext) -> Result<Need<'a>> {
        Ok(needs::values(objects, from, known_keys(&self.keys, &*context.view)))
    }

    fn slices(&mut self) -> Option<&mut SliceSize> {
        Some(&mut self.slices)
    }

    fn apply(&mut self, rows: Rows, context: &ExecutionContext, _: &mut Meter<'_>) -> Result<Rows> {
        if let (Some(reader), Some(key)) = (&mut self.numbers, self.keys.first())
            && (!self.is_last || context.takes_columns())
            && let Some(rows) = reader.read(&rows, key, context)?
        {
            return Ok(rows);
        }
        let objects = current(&rows.objects, context)?;
        let kinds = Kinds::of(&objects);
        let mut found = FoundValues::default();
        match known_keys(&self.keys, &*context.view).as_deref() {
            Some([key]) => values_of_key(&kinds, *key, context, &mut found)?,
            Some(keys) if kinds.are_elements() => values_of_keys(&kinds, keys, context, &mut found)?,
            keys => read_properties(&kinds, keys, context, |row, property| {
                let value = match property {
                    MetProperty::Vertex(_, property) | MetProperty::Edge(_, property) => property.value,
                    MetProperty::Meta(_, _, value) => value.clone(),
                };
                found.push(row, value);
            })?,
        }
        refuse_strangers(&kinds, "values()")?;
        Ok(found.into_rows(&rows))
    }
}

/// Reads the values of one key, which needs only one column.
fn values_of_key(kinds: &Kinds<'_>, key: KeyId, context: &ExecutionContext, found: &mut FoundValues) -> Result<()> {
    let mut values = ValueRows::default();
    if let Some(ids) = kinds.all_vertices() {
        // All objects are vertices, so the values read are the results, without a copy.
        context.view.vertex_values(ids, key, &mut values)?;
        (found.rows, found.values) = (values.row, values.value);
        return Ok(());
    }
    context.view.vertex_values(&kinds.vertices.items, key, &mut values)?;
    for (at, value) in values.row.drain(..).zip(values.value.drain(..)) {
        found.push(kinds.vertices.row(at as usize), value);
    }
    context.view.edge_values(&kinds.edges.items, key, &mut values)?;
    for (at, value) in values.row.into_iter().zip(values.value) {
        found.push(kinds.edges.row(at as usize), value);
    }
    for (row, object) in kinds.others() {
        if let Value::VertexProperty(owner) = object {
            for (_, value) in owner.meta.iter().filter(|(k, _)| *k == key) {
                found.push(row, value.clone());
            }
        }
    }
    Ok(())
}

/// Reads the values of several keys, one column for each.
fn values_of_keys(
    kinds: &Kinds<'_>,
    keys: &[KeyId],
    context: &ExecutionContext,
    found: &mut FoundValues,
) -> Result<()> {
    let (vertices, edges) = (&kinds.vertices.items, &kinds.edges.items);
    let mut columns = ValueColumns::default();
    if !vertices.is_empty() {
        context.view.vertex_columns(vertices, Some(keys), &mut columns)?;
        found.reserve(columns.len());
        columns.each_row(vertices.len(), |at, values| {
            values.for_each(|(_, _, value)| found.push(kinds.vertices.row(at), value));
        });
    }
    if !edges.is_empty() {
        context.view.edge_columns(edges, Some(keys), &mut columns)?;
        found.reserve(columns.len());
        columns.each_row(edges.len(), |at, values| {
            values.for_each(|(_, _, value)| found.push(kinds.edges.row(at), value));
        });
    }
    Ok(())
}

/// `properties()`: the properties themselves.
pub(crate) struct Properties {
    keys: Vec<Name>,
    slices: SliceSize,
}

impl Properties {
    /// Reads the properties of these keys; no keys mean all.
    pub fn new(keys: Vec<Name>) -> Self {
        Properties { keys, slices: SliceSize::default() }
    }
}

impl RowOperator for Properties {
    fn needs<'a>(&mut self, objects: &'a ObjectColumn, from: usize, context: &ExecutionContext) -> Result<Need<'a>> {
        Ok(needs::values(objects, from, known_keys(&self.keys, &*context.view)))
    }

    fn slices(&mut self) -> Option<&mut SliceSize> {
        Some(&mut self.slices)
    }

    fn apply(&mut self, rows: Rows, context: &ExecutionContext, _: &mut Meter<'_>) -> Result<Rows> {
        let objects = current(&rows.objects, context)?;
        let kinds = Kinds::of(&objects);
        let keys = known_keys(&self.keys, &*context.view);
        let mut found = FoundValues::default();
        read_properties(&kinds, keys.as_deref(), context, |row, property| {
            found.push(row, property.into_object(&kinds));
        })?;
        refuse_strangers(&kinds, "properties()")?;
        Ok(found.into_rows(&rows))
    }
}

/// A property that [`read_properties`] meets.
enum MetProperty<'a> {
    /// A property of the vertex at this index among the vertices of the batch.
    Vertex(usize, PropertyRow),
    /// A property of the edge at this index among the edges of the batch.
    Edge(usize, PropertyRow),
    /// A meta-property of a vertex property.
    Meta(&'a VertexPropertyValue, KeyId, &'a Value),
}

impl MetProperty<'_> {
    /// Returns the property as an object.
    fn into_object(self, kinds: &Kinds<'_>) -> Value {
        match self {
            MetProperty::Vertex(at, p) => Value::VertexProperty(Arc::new(VertexPropertyValue {
                vertex: kinds.vertices.items[at],
                key: p.key,
                ordinal: p.ordinal,
                value: p.value,
                meta: p.meta,
            })),
            MetProperty::Edge(at, p) => {
                let owner = PropertyOwner::Edge(kinds.edges.items[at]);
                Value::Property(Arc::new(PropertyValue { owner, key: p.key, value: p.value }))
            }
            MetProperty::Meta(of, key, value) => {
                let owner = PropertyOwner::VertexProperty(of.vertex, of.key, of.ordinal);
                Value::Property(Arc::new(PropertyValue { owner, key, value: value.clone() }))
            }
        }
    }
}

/// Calls `visit` for every property of the objects, or those of these keys, with its row.
fn read_properties<'a>(
    kinds: &'a Kinds<'_>,
    keys: Option<&[KeyId]>,
    context: &ExecutionContext,
    mut visit: impl FnMut(usize, MetProperty<'a>),
) -> Result<()> {
    let mut properties = Vec::new();
    context.view.vertex_properties(&kinds.vertices.items, keys, &mut properties)?;
    for property in properties.drain(..) {
        let at = property.row as usize;
        visit(kinds.vertices.row(at), MetProperty::Vertex(at, property));
    }
    context.view.edge_properties(&kinds.edges.items, keys, &mut properties)?;
    for property in properties {
        let at = property.row as usize;
        visit(kinds.edges.row(at), MetProperty::Edge(at, property));
    }
    for (row, object) in kinds.others() {
        if let Value::VertexProperty(owner) = object {
            for (key, value) in owner.meta.iter().filter(|(k, _)| keys.is_none_or(|keys| keys.contains(k))) {
                visit(row, MetProperty::Meta(owner, *key, value));
            }
        }
    }
    Ok(())
}

/// Fails for objects other than vertices, edges and vertex properties, which have no properties.
fn refuse_strangers(kinds: &Kinds<'_>, step: &str) -> Result<()> {
    match kinds.others().find(|(_, v)| !matches!(v, Value::VertexProperty(_))) {
        None => Ok(()),
        Some((_, other)) => Err(Error::evaluation(format!(
            "{step} reads vertices, edges and vertex properties; here is {}",
            a_type(other)
        ))),
    }
}

/// Results and the rows that they come from.
#[derive(Default)]
struct FoundValues {
    rows: Vec<u32>,
    values: Vec<Value>,
}

impl FoundValues {
    fn reserve(&mut self, more: usize) {
        self.rows.reserve(more);
        self.values.reserve(more);
    }

    fn push(&mut self, row: usize, value: Value) {
        self.rows.push(row as u32);
        self.values.push(value);
    }

    /// Sorts the results by row: a mixed column is read kind by kind.
    fn into_rows(mut self, from: &Rows) -> Rows {
        if !self.rows.is_sorted() {
            let mut pairs: Vec<(u32, Value)> = self.rows.into_iter().zip(self.values).collect();
            pairs.sort_by_key(|(row, _)| *row);
            (self.rows, self.values) = pairs.into_iter().unzip();
        }
        from.derive(&self.rows, ObjectColumn::Values(self.values))
    }
}

/// `id()`, `label()`, `key()`, `value()`.
pub(crate) struct TokenOf(pub Token);

impl RowOperator for TokenOf {
    fn needs<'a>(&mut self, objects: &'a ObjectColumn, from: usize, _: &ExecutionContext) -> Result<Need<'a>> {
        Ok(needs::heads(objects, from))
    }

    fn apply(&mut self, rows: Rows, context: &ExecutionContext, _: &mut Meter<'_>) -> Result<Rows> {
        let column = compute_token(&rows.objects, self.0, context)?;
        let mut found = FoundValues::default();
        for (row, value) in column.into_iter().enumerate() {
            if let Some(value) = value {
                found.push(row, value);
            }
        }
        Ok(found.into_rows(&rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_view::{Modern, context_of, modern};
    use crate::limits::meter::limited_control;
    use crate::rows::NumberColumn;
    use mangrove_graph::NumberType;

    fn run(graph: &Modern, mut operator: impl RowOperator, objects: Vec<Value>) -> Result<Rows> {
        let mut rows = Rows::of(ObjectColumn::from_values(objects));
        rows.bulk = Some((1..=rows.len() as u64).collect());
        operator.apply(rows, &context_of(graph), &mut Meter::new(&limited_control(u64::MAX, None)))
    }

    fn keys(names: &[&str]) -> Vec<Name> {
        names.iter().map(|n| Name::from(*n)).collect()
    }

    #[test]
    fn values_keep_the_order_of_rows_and_their_bulk() {
        let g = modern();
        let objects = vec![g.knows.into(), g.marko.into(), g.nick(1), g.josh.into()];
        let rows = run(&g, Values::new(Vec::new(), false, false), objects.clone()).unwrap();
        let expected: Vec<Value> =
            vec![0.5.into(), "marko".into(), 29.into(), "m".into(), "mk".into(), 2001.into(), "josh".into(), 32.into()];
        assert_eq!(rows.objects, ObjectColumn::Values(expected));
        assert_eq!(rows.bulk, Some(vec![1, 2, 2, 2, 2, 3, 4, 4]));
        let rows = run(&g, Values::new(keys(&["nick"]), false, false), objects.clone()).unwrap();
        assert_eq!(rows.objects, ObjectColumn::Values(vec!["m".into(), "mk".into()]));
        let rows = run(&g, Values::new(keys(&["age", "since", "age"]), false, false), objects.clone()).unwrap();
        assert_eq!(rows.objects, ObjectColumn::Values(vec![29.into(), 2001.into(), 32.into()]));
        assert!(run(&g, Values::new(keys(&["unheard"]), false, false), objects).unwrap().is_empty());
        assert!(run(&g, Values::new(Vec::new(), false, false), vec![1.into()]).is_err());
    }

    #[test]
    fn numbers_of_one_type_are_a_column_if_the_next_operator_reads_one() {
        let g = modern();
        let ages = || Values::new(keys(&["age"]), true, false);
        let people = vec![g.marko.into(), g.lop.into(), g.josh.into(), g.marko.into()];
        let rows = run(&g, ages(), people.clone()).unwrap();
        let numbers = NumberColumn::of_integers(NumberType::I32, vec![29, 32, 29]).unwrap();
        assert_eq!(rows.objects, ObjectColumn::Numbers(numbers));
        assert_eq!(rows.bulk, Some(vec![1, 3, 4]));
        let ages_as_values = ObjectColumn::Values(vec![29.into(), 32.into(), 29.into()]);
        assert_eq!(run(&g, Values::new(keys(&["age"]), false, false), people.clone()).unwrap().objects, ages_as_values);
        // A few rows, a mixed column, and texts stay values.
        assert_eq!(run(&g, ages(), vec![g.marko.into()]).unwrap().objects, ObjectColumn::Values(vec![29.into()]));
        let with_edge = [people.clone(), vec![g.knows.into()]].concat();
        assert_eq!(run(&g, ages(), with_edge).unwrap().objects, ages_as_values);
        let names = run(&g, Values::new(keys(&["name"]), true, false), people.clone()).unwrap().objects;
        assert!(matches!(names, ObjectColumn::Values(names) if names.len() == 4));
        assert!(run(&g, Values::new(keys(&["unheard"]), true, false), people).unwrap().is_empty());
    }

    #[test]
    fn properties_know_their_owners() {
        let g = modern();
        let rows = run(&g, Properties::new(keys(&["nick"])), vec![g.marko.into()]).unwrap();
        assert_eq!(rows.objects, ObjectColumn::Values(vec![g.nick(0), g.nick(1)]));
        let rows = run(&g, Properties::new(Vec::new()), vec![g.knows.into()]).unwrap();
        assert_eq!(rows.objects, ObjectColumn::Values(vec![g.weight()]));
        let rows = run(&g, Properties::new(Vec::new()), vec![g.nick(1)]).unwrap();
        let owner = PropertyOwner::VertexProperty(g.marko, g.key("nick"), 1);
        let meta = PropertyValue { owner, key: g.key("since"), value: 2001.into() };
        assert_eq!(rows.objects, ObjectColumn::Values(vec![Value::Property(Arc::new(meta))]));
        assert!(run(&g, Properties::new(Vec::new()), vec![g.weight()]).is_err());
    }

    #[test]
    fn tokens_come_out_a_row_each() {
        let g = modern();
        let rows = run(&g, TokenOf(Token::Label), vec![g.marko.into(), g.knows.into()]).unwrap();
        assert_eq!(rows.objects, ObjectColumn::Values(vec!["person".into(), "knows".into()]));
    }
}
