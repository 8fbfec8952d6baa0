//! Steps that read paths and computed columns: `path()`, `select()`, `project()`, `where()` between labels,
//! `simplePath()`, `as()`.

use std::sync::Arc;

use mangrove_graph::compare::Equivalent;
use mangrove_graph::compare::watched::equal;
use mangrove_graph::{Error, FastSet, PathValue, Result, Value};
use mangrove_gremlin::{Comparison, TextOperation};
use mangrove_plan::logical::{LabelTest, Lookup, Name, Segment};

use crate::context::execution::ExecutionContext;
use crate::limits::meter::Meter;
use crate::row::map::{MapOperator, ValueTarget};
use crate::row::members_of_names::HashedMembers;
use crate::row::operator::RowOperator;
use crate::rows::named::{NamedValues, named_values};
use crate::rows::path::{self, newest_first};
use crate::rows::{BindingColumn, ObjectColumn, Remember, Rows};
use crate::values::predicate::{compares, text_holds};

/// `path()`. With a computed column, the objects come from there.
pub(crate) struct PathOf {
    /// True if computed column 0 holds the objects.
    pub computed: bool,
    /// The part of the path that counts.
    pub segment: Segment,
}

impl MapOperator for PathOf {
    fn map(
        &mut self,
        rows: &Rows,
        row: usize,
        _context: &ExecutionContext,
        meter: &mut Meter<'_>,
    ) -> Result<Option<Value>> {
        let path = rows.path(row);
        for node in newest_first(&path) {
            meter.charge(size_of::<Value>() + size_of::<Vec<Name>>() + size_of_val(&*node.labels))?;
        }
        let mut found: PathValue = path::segment(&path, &self.segment)?;
        if self.computed {
            // An unproductive by() drops the row.
            let Some(Value::List(objects)) = rows.computed_value(0, row) else { return Ok(None) };
            found.objects = objects.to_vec();
        }
        Ok(Some(Value::Path(Arc::new(found))))
    }
}

/// `simplePath()`, `cyclicPath()`: keeps rows by whether their path repeats an object.
pub(crate) struct PathShape {
    /// True to keep paths without repetition.
    pub simple: bool,
    /// True if computed column 0 holds the compared values.
    pub computed: bool,
    /// The part of the path that counts.
    pub segment: Segment,
}

/// A path may have millions of objects, so the limits are checked on the way.
impl MapOperator for PathShape {
    fn map(
        &mut self,
        rows: &Rows,
        row: usize,
        _context: &ExecutionContext,
        meter: &mut Meter<'_>,
    ) -> Result<Option<Value>> {
        let repeats = if self.computed {
            match rows.computed_value(0, row) {
                Some(Value::List(objects)) => has_repetition(objects.iter().cloned(), meter)?,
                _ => return Ok(None),
            }
        } else if self.segment != Segment::default() {
            has_repetition(path::segment(&rows.path(row), &self.segment)?.objects.into_iter(), meter)?
        } else {
            let path = rows.path(row);
            has_repetition(newest_first(&path).map(|node| node.object.clone()), meter)?
        };
        Ok((repeats != self.simple).then_some(Value::Null))
    }

    fn target(&self) -> ValueTarget {
        ValueTarget::Nothing
    }
}

fn has_repetition(objects: impl Iterator<Item = Value>, meter: &mut Meter<'_>) -> Result<bool> {
    let mut seen = FastSet::default();
    for object in objects {
        meter.pass(size_of::<Value>())?;
        if !seen.insert(Equivalent(object)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// `select()`, `project()`: a map of computed columns by name, or one computed column.
pub(crate) struct ComputedMap {
    /// The keys of the map, one for each computed column.
    pub names: Vec<Name>,
    /// True for the value itself instead of a map with one entry.
    pub single: bool,
    /// True if a missing value drops the row.
    pub required: bool,
    /// True if the maps are the results of the query.
    pub is_last: bool,
}

impl MapOperator for ComputedMap {
    fn leaves_rows(&self, context: &ExecutionContext) -> bool {
        // A late view has what elements in the values carry only while the sink takes them.
        self.is_last && context.takes_columns() && context.view.late().is_none()
    }

    fn map(
        &mut self,
        rows: &Rows,
        row: usize,
        _context: &ExecutionContext,
        meter: &mut Meter<'_>,
    ) -> Result<Option<Value>> {
        let computed = (0..self.names.len()).map(|column| rows.computed_value(column, row));
        if self.required && computed.clone().any(|s| s.is_none()) {
            return Ok(None);
        }
        if self.single {
            return Ok(rows.computed_value(0, row).cloned());
        }
        meter.charge(self.names.len() * 2 * size_of::<Value>())?;
        let entries = self.names.iter().zip(computed);
        let entries = entries.filter_map(|(n, v)| Some((Value::String(n.clone()), v?.clone())));
        let mut unique: Vec<(Value, Value)> = Vec::with_capacity(self.names.len());
        for (name, value) in entries {
            meter.pass(size_of_val(&unique[..]))?;
            // A name may occur twice; a key of a map may not.
            match unique.iter_mut().find(|(known, _)| *known == name) {
                Some(entry) => entry.1 = value,
                None => unique.push((name, value)),
            }
        }
        Ok(Some(Value::map(unique)))
    }
}

/// `where(eq("a"))`, `where(neq("a"))`: compares the object with the value of a name, without cloning either.
pub(crate) struct CompareName {
    /// True to keep equal objects, false to keep unequal ones.
    pub equal: bool,
    /// The name of the other object.
    pub name: Name,
    /// The places in which the name is looked up.
    pub lookup: Lookup,
}

impl RowOperator for CompareName {
    fn apply(&mut self, mut rows: Rows, context: &ExecutionContext, meter: &mut Meter<'_>) -> Result<Rows> {
        let named = NamedValues::of(&rows, &self.name, self.lookup, context);
        let equal = self.equal;
        let kept: Vec<u32> = match (&rows.objects, named.column()) {
            (ObjectColumn::Vertices(ids), Some(BindingColumn::Vertices(named))) => compare_ids(ids, named, equal),
            (ObjectColumn::Edges(ids), Some(BindingColumn::Edges(named))) => compare_ids(ids, named, equal),
            // A name without a value drops the row.
            _ => {
                let mut kept = Vec::with_capacity(rows.len());
                for row in 0..rows.len() {
                    if named.get(row, meter)?.is_some_and(|value| is_object(&rows, row, &value) == equal) {
                        kept.push(row as u32);
                    }
                }
                kept
            }
        };
        rows.computed.clear();
        Ok(rows.keep(&kept))
    }
}

/// Returns the rows in which two columns have equal ids, or unequal ones.
fn compare_ids<T: PartialEq>(left: &[T], right: &[T], equal: bool) -> Vec<u32> {
    let pairs = left.iter().zip(right).enumerate();
    pairs.filter(|(_, (left, right))| (left == right) == equal).map(|(row, _)| row as u32).collect()
}

/// `select("a")`: the value of a name becomes the object. A row without one is dropped.
pub(crate) struct SelectName {
    /// The name.
    pub name: Name,
    /// The places in which the name is looked up.
    pub lookup: Lookup,
}

impl RowOperator for SelectName {
    fn apply(&mut self, rows: Rows, context: &ExecutionContext, meter: &mut Meter<'_>) -> Result<Rows> {
        let objects = match NamedValues::of(&rows, &self.name, self.lookup, context).column() {
            Some(BindingColumn::Vertices(ids)) => ObjectColumn::Vertices(ids.clone()),
            Some(BindingColumn::Edges(ids)) => ObjectColumn::Edges(ids.clone()),
            _ => {
                let (kept, values) = named_values(&rows, Some(&self.name), self.lookup, context, meter)?;
                return Ok(rows.derive(&kept, ObjectColumn::from_values(values)));
            }
        };
        Ok(rows.with_objects(objects))
    }
}

/// Returns true if the object of a row equals a value.
fn is_object(rows: &Rows, row: usize, value: &Value) -> bool {
    match (&rows.objects, value) {
        (ObjectColumn::Vertices(ids), Value::Vertex(id)) => ids[row] == *id,
        (ObjectColumn::Edges(ids), Value::Edge(id)) => ids[row] == *id,
        (ObjectColumn::Vertices(_) | ObjectColumn::Edges(_), _) => false,
        (ObjectColumn::Numbers(numbers), value) => equal(&numbers.slice().value(row), value),
        (ObjectColumn::Values(values), value) => equal(&values[row], value),
    }
}

/// `where("a", eq("b"))`: compares computed column 0 with the computed columns of the test's names.
pub(crate) struct CompareComputed {
    test: ComputedTest,
    members: HashedMembers,
}

/// A [`LabelTest`] with its names replaced by computed columns.
enum ComputedTest {
    Compare(Comparison, usize),
    Text(TextOperation, usize),
    Within(Vec<usize>),
    Without(Vec<usize>),
    And(Vec<ComputedTest>),
    Or(Vec<ComputedTest>),
    Not(Box<ComputedTest>),
}

impl CompareComputed {
    /// A test whose names are computed columns 1, 2, … in their order.
    pub fn new(test: &LabelTest) -> Self {
        CompareComputed { test: number(test, &mut 1), members: HashedMembers::default() }
    }
}

fn number(test: &LabelTest, next: &mut usize) -> ComputedTest {
    fn take(next: &mut usize) -> usize {
        *next += 1;
        *next - 1
    }
    match test {
        LabelTest::Compare(comparison, _) => ComputedTest::Compare(*comparison, take(next)),
        LabelTest::Text(operation, _) => ComputedTest::Text(*operation, take(next)),
        LabelTest::Within(names) => ComputedTest::Within(names.iter().map(|_| take(next)).collect()),
        LabelTest::Without(names) => ComputedTest::Without(names.iter().map(|_| take(next)).collect()),
        LabelTest::And(tests) => ComputedTest::And(tests.iter().map(|t| number(t, next)).collect()),
        LabelTest::Or(tests) => ComputedTest::Or(tests.iter().map(|t| number(t, next)).collect()),
        LabelTest::Not(test) => ComputedTest::Not(Box::new(number(test, next))),
    }
}

impl RowOperator for CompareComputed {
    fn apply(&mut self, rows: Rows, _context: &ExecutionContext, _: &mut Meter<'_>) -> Result<Rows> {
        let (test, members) = (&self.test, &mut self.members);
        let mut failure = None;
        let kept = rows.filter(|rows, row| {
            // A label without a value, or an unproductive by(), drops the row.
            if (0..rows.computed.len()).any(|column| rows.computed_value(column, row).is_none()) {
                return false;
            }
            holds(test, rows, row, members).unwrap_or_else(|e| {
                failure.get_or_insert(e);
                false
            })
        });
        failure.map_or(Ok(kept), Err)
    }
}

fn holds(test: &ComputedTest, rows: &Rows, row: usize, members: &mut HashedMembers) -> Result<bool> {
    let computed =
        |column| rows.computed_value(column, row).ok_or_else(|| Error::bug("a tested computed column has a value"));
    let left = computed(0)?;
    Ok(match test {
        ComputedTest::Compare(comparison, right) => compares(*comparison, left, computed(*right)?),
        ComputedTest::Text(operation, right) => text_holds(*operation, left, computed(*right)?)?,
        ComputedTest::Within(names) => among(left, names, rows, row, members)?,
        ComputedTest::Without(names) => !among(left, names, rows, row, members)?,
        ComputedTest::And(tests) => {
            for test in tests {
                if !holds(test, rows, row, members)? {
                    return Ok(false);
                }
            }
            true
        }
        ComputedTest::Or(tests) => {
            for test in tests {
                if holds(test, rows, row, members)? {
                    return Ok(true);
                }
            }
            false
        }
        ComputedTest::Not(test) => !holds(test, rows, row, members)?,
    })
}

/// Returns true if a value equals that of one of the names, or is in a collection that one names.
fn among(left: &Value, names: &[usize], rows: &Rows, row: usize, members: &mut HashedMembers) -> Result<bool> {
    for &name in names {
        let right = rows.computed_value(name, row).ok_or_else(|| Error::bug("a tested computed column has a value"))?;
        if members.contain(left, right) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// `as()`: adds labels to the current objects.
pub(crate) struct AddLabels {
    /// The labels to add, and where rows remember them.
    pub remember: Remember,
}

impl RowOperator for AddLabels {
    fn apply(&mut self, mut rows: Rows, context: &ExecutionContext, _: &mut Meter<'_>) -> Result<Rows> {
        rows.computed.clear();
        rows.label(&self.remember, context.whole_paths());
        Ok(rows)
    }
}

/// Drops all rows: an empty branch of `union()`.
pub(crate) struct DropRows;

impl RowOperator for DropRows {
    fn apply(&mut self, rows: Rows, _context: &ExecutionContext, _: &mut Meter<'_>) -> Result<Rows> {
        Ok(rows.filter(|_, _| false))
    }
}

/// Adds one to the innermost loop counter.
pub(crate) struct NextLoop;

impl RowOperator for NextLoop {
    fn apply(&mut self, mut rows: Rows, _context: &ExecutionContext, _: &mut Meter<'_>) -> Result<Rows> {
        for loops in rows.loops.iter_mut().flatten() {
            if let Some(count) = loops.last_mut() {
                *count += 1;
            }
        }
        rows.computed.clear();
        Ok(rows)
    }
}
