//! Filters: conditions on elements and properties, tests of the object, and semi-joins over degrees.
//!
//! A filter returns the rows that pass and leaves copying them to its caller. Its conditions run cheapest first, each
//! on the rows that the earlier ones have left.

mod scatter;

use std::borrow::Cow;

use mangrove_graph::{Direction, Error, GraphView, IdRule, KeyId, Need, Result, Value, ValueRows};
use mangrove_plan::logical::{Condition, Name};

use scatter::{label_passes, scatter_ids, scatter_keys, scatter_labels, scatter_values};

use crate::context::execution::ExecutionContext;
use crate::context::type_name::a_type;
use crate::limits::meter::Meter;
use crate::row::operator::RowOperator;
use crate::rows::current::current;
use crate::rows::kinds::Kinds;
use crate::rows::needs;
use crate::rows::{ObjectColumn, Rows};
use crate::values::names::{LabelSets, NameCache};
use crate::values::predicate::CompiledTest;

/// Conditions on elements and properties: the steps `has()`, `hasLabel()`, `hasNot()` and so on.
pub(crate) struct Filter {
    conditions: Vec<PreparedCondition>,
    names: NameCache,
    values: ValueRows,
}

/// A condition that is ready to run.
enum PreparedCondition {
    LabelIn {
        names: Vec<Name>,
        sets: LabelSets,
    },
    Label {
        test: CompiledTest,
        /// The results of the test so far, by the number of the label set.
        known: Vec<Option<bool>>,
    },
    PropertyKey(CompiledTest),
    PropertyValue(CompiledTest),
    Id(CompiledTest),
    /// The element has the key, and the test (if any) holds for one of its values.
    Has(Name, Option<CompiledTest>),
    HasNot(Name),
    /// All conditions of one of these branches hold.
    AnyOf(Vec<Vec<PreparedCondition>>),
}

/// The conditions in the order in which they run: the cheapest first.
fn prepared(conditions: &[Condition]) -> Vec<PreparedCondition> {
    let mut prepared: Vec<PreparedCondition> = conditions.iter().map(PreparedCondition::new).collect();
    prepared.sort_by_key(PreparedCondition::cost);
    prepared
}

impl PreparedCondition {
    fn new(condition: &Condition) -> Self {
        match condition {
            Condition::LabelIn(names) => {
                PreparedCondition::LabelIn { names: names.clone(), sets: LabelSets::with_any(names.clone()) }
            }
            Condition::Label(test) => PreparedCondition::Label { test: CompiledTest::new(test), known: Vec::new() },
            Condition::Id(test) => PreparedCondition::Id(CompiledTest::new(test)),
            Condition::Property(key, test) => PreparedCondition::Has(key.clone(), Some(CompiledTest::new(test))),
            Condition::HasKey(key) => PreparedCondition::Has(key.clone(), None),
            Condition::HasNot(key) => PreparedCondition::HasNot(key.clone()),
            Condition::PropertyKey(test) => PreparedCondition::PropertyKey(CompiledTest::new(test)),
            Condition::PropertyValue(test) => PreparedCondition::PropertyValue(CompiledTest::new(test)),
            Condition::AnyOf(branches) => {
                PreparedCondition::AnyOf(branches.iter().map(|branch| prepared(branch)).collect())
            }
        }
    }

    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        match self {
            PreparedCondition::LabelIn { .. } | PreparedCondition::Has(_, None) | PreparedCondition::HasNot(_) => {
                Ok(())
            }
            PreparedCondition::Label { test, known } => {
                known.clear();
                test.begin(context)
            }
            PreparedCondition::Id(test) if context.ids != IdRule::Any => {
                test.begin_as(context, &|value| context.ids.canonical(value))
            }
            PreparedCondition::PropertyKey(test)
            | PreparedCondition::PropertyValue(test)
            | PreparedCondition::Id(test)
            | PreparedCondition::Has(_, Some(test)) => test.begin(context),
            PreparedCondition::AnyOf(branches) => {
                branches.iter_mut().flatten().try_for_each(|condition| condition.begin(context))
            }
        }
    }

    /// Returns the rank of the condition by cost, the cheapest first. A test of a property's key or value reads nothing
    /// from the graph. A label test reads one word for each page, an id test one word for each element, and a test of a
    /// property of an element a whole column.
    fn cost(&self) -> u8 {
        match self {
            PreparedCondition::PropertyKey(_) | PreparedCondition::PropertyValue(_) => 0,
            PreparedCondition::LabelIn { .. } | PreparedCondition::Label { .. } => 1,
            PreparedCondition::Id(_) => 2,
            PreparedCondition::Has(..) | PreparedCondition::HasNot(_) => 3,
            PreparedCondition::AnyOf(_) => 4,
        }
    }
}

impl Filter {
    /// A filter for rows that meet all of these conditions.
    pub fn new(conditions: &[Condition]) -> Self {
        Filter { conditions: prepared(conditions), names: NameCache::default(), values: ValueRows::default() }
    }

    /// Makes the conditions ready for a run.
    pub fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        self.conditions.iter_mut().try_for_each(|condition| condition.begin(context))
    }

    /// Returns what all conditions read of the objects from a row on, though the later ones read of fewer rows.
    pub fn needs<'a>(&self, objects: &'a ObjectColumn, from: usize, view: &dyn GraphView) -> Need<'a> {
        let mut keys = Vec::new();
        let mut reads_heads = false;
        self.conditions.iter().for_each(|condition| condition.reads(view, &mut keys, &mut reads_heads));
        keys.sort_unstable();
        keys.dedup();
        let heads = if reads_heads { needs::heads(objects, from) } else { Need::Nothing };
        Need::all([heads, needs::values(objects, from, Some(keys))])
    }

    /// Returns the rows whose objects meet all conditions, ascending; `None` if all rows do. Fails for an object that
    /// is neither an element nor a property.
    pub fn select(&mut self, objects: &ObjectColumn, context: &ExecutionContext) -> Result<Option<Vec<u32>>> {
        if self.conditions.is_empty() {
            return Ok(None);
        }
        check_kinds(objects)?;
        let objects = &*current(objects, context)?;
        let Filter { conditions, names, values } = self;
        select_all(conditions, objects, &*context.view, names, values)
    }
}

/// Returns the rows whose objects meet all conditions, ascending; `None` if all rows do.
fn select_all(
    conditions: &mut [PreparedCondition],
    objects: &ObjectColumn,
    view: &dyn GraphView,
    names: &mut NameCache,
    values: &mut ValueRows,
) -> Result<Option<Vec<u32>>> {
    let mut kept: Option<Vec<u32>> = None;
    for condition in conditions {
        let left = match &kept {
            None => Cow::Borrowed(objects),
            Some(rows) if rows.is_empty() => break,
            Some(rows) => Cow::Owned(objects.gather(rows)),
        };
        let passes = condition.passes(&left, view, names, values)?;
        if passes.iter().all(|&pass| pass) {
            continue;
        }
        kept = Some(match kept {
            None => (0..objects.len() as u32).filter(|&row| passes[row as usize]).collect(),
            Some(rows) => rows.into_iter().zip(&passes).filter(|(_, pass)| **pass).map(|(row, _)| row).collect(),
        });
    }
    Ok(kept)
}

/// Sets the flag of every object that meets all conditions of one of the branches. A branch looks only at the objects
/// that the branches before it leave.
fn scatter_branches(
    branches: &mut [Vec<PreparedCondition>],
    objects: &ObjectColumn,
    view: &dyn GraphView,
    names: &mut NameCache,
    values: &mut ValueRows,
    passes: &mut [bool],
) -> Result<()> {
    let mut left: Vec<u32> = (0..objects.len() as u32).collect();
    for branch in branches {
        if left.is_empty() {
            break;
        }
        let some = objects.gather(&left);
        match select_all(branch, &some, view, names, values)? {
            None => left.drain(..).for_each(|row| passes[row as usize] = true),
            Some(kept) => {
                kept.iter().for_each(|&at| passes[left[at as usize] as usize] = true);
                left.retain(|&row| !passes[row as usize]);
            }
        }
    }
    Ok(())
}

/// Fails for an object that is neither an element nor a property: it has nothing that a condition could test.
fn check_kinds(objects: &ObjectColumn) -> Result<()> {
    let is_element =
        |v: &&Value| matches!(v, Value::Vertex(_) | Value::Edge(_) | Value::VertexProperty(_) | Value::Property(_));
    let stranger = match objects {
        ObjectColumn::Vertices(_) | ObjectColumn::Edges(_) => None,
        ObjectColumn::Numbers(numbers) => numbers.slice().values().next(),
        ObjectColumn::Values(values) => values.iter().find(|v| !is_element(v)).cloned(),
    };
    match &stranger {
        None => Ok(()),
        Some(other) => Err(Error::evaluation(format!(
            "has() filters vertices, edges and properties; here it meets {}: use is() for plain values",
            a_type(other)
        ))),
    }
}

impl PreparedCondition {
    /// Adds the keys that the condition reads, and notes whether it reads labels or ids.
    fn reads(&self, view: &dyn GraphView, keys: &mut Vec<KeyId>, heads: &mut bool) {
        match self {
            PreparedCondition::Has(key, _) | PreparedCondition::HasNot(key) => keys.extend(view.key_of(key)),
            PreparedCondition::LabelIn { .. } | PreparedCondition::Label { .. } | PreparedCondition::Id(_) => {
                *heads = true;
            }
            PreparedCondition::PropertyKey(_) | PreparedCondition::PropertyValue(_) => {}
            PreparedCondition::AnyOf(branches) => {
                branches.iter().flatten().for_each(|condition| condition.reads(view, keys, heads));
            }
        }
    }

    /// Returns a flag for each object: whether the condition holds.
    fn passes(
        &mut self,
        objects: &ObjectColumn,
        view: &dyn GraphView,
        names: &mut NameCache,
        values: &mut ValueRows,
    ) -> Result<Vec<bool>> {
        let kinds = Kinds::of(objects);
        let mut passes = vec![false; objects.len()];
        match self {
            PreparedCondition::LabelIn { names: labels, sets } => {
                let filter = sets.filter(view);
                scatter_labels(&kinds, view, &mut passes, |set| filter.takes(set))?;
                scatter_keys(&kinds, view, names, &mut passes, |key| labels.contains(key));
            }
            PreparedCondition::Label { test, known } => {
                scatter_labels(&kinds, view, &mut passes, |set| label_passes(set, test, known, view, names))?;
                scatter_keys(&kinds, view, names, &mut passes, |key| test.holds(&Value::String(key.clone())));
            }
            PreparedCondition::Id(test) => scatter_ids(&kinds, view, names, test, &mut passes)?,
            PreparedCondition::Has(key, test) => {
                let holds = |value: &Value| test.as_ref().is_none_or(|t| t.holds(value));
                scatter_values(&kinds, key, view, values, &mut passes, holds)?;
            }
            PreparedCondition::HasNot(key) => {
                scatter_values(&kinds, key, view, values, &mut passes, |_| true)?;
                passes.iter_mut().for_each(|pass| *pass = !*pass);
            }
            PreparedCondition::PropertyKey(test) => {
                for (row, object) in kinds.others() {
                    let key = match object {
                        Value::VertexProperty(p) => p.key,
                        Value::Property(p) => p.key,
                        _ => continue,
                    };
                    passes[row] = test.holds(&names.key_value(key, view));
                }
            }
            PreparedCondition::PropertyValue(test) => {
                for (row, object) in kinds.others() {
                    passes[row] = match object {
                        Value::VertexProperty(p) => test.holds(&p.value),
                        Value::Property(p) => test.holds(&p.value),
                        _ => false,
                    };
                }
            }
            PreparedCondition::AnyOf(branches) => {
                scatter_branches(branches, objects, view, names, values, &mut passes)?;
            }
        }
        Ok(passes)
    }
}

impl RowOperator for Filter {
    fn needs<'a>(&mut self, objects: &'a ObjectColumn, from: usize, context: &ExecutionContext) -> Result<Need<'a>> {
        Ok(Filter::needs(self, objects, from, &*context.view))
    }

    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        Filter::begin(self, context)
    }

    fn apply(&mut self, mut rows: Rows, context: &ExecutionContext, _: &mut Meter<'_>) -> Result<Rows> {
        rows.computed.clear();
        Ok(match self.select(&rows.objects, context)? {
            None => rows,
            Some(kept) => rows.take(&kept),
        })
    }
}

/// A test of the object: `is()`.
pub(crate) struct Is {
    /// The test.
    pub test: CompiledTest,
    /// True if the next operator reads columns of numbers as arrays (STEPS-12).
    pub keeps_numbers: bool,
}

impl RowOperator for Is {
    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        self.test.begin(context)
    }

    fn apply(&mut self, mut rows: Rows, _context: &ExecutionContext, _: &mut Meter<'_>) -> Result<Rows> {
        let Some(numbers) = rows.objects.numbers() else {
            return Ok(rows.filter(|rows, row| match &rows.objects {
                ObjectColumn::Values(values) => self.test.holds(&values[row]),
                objects => self.test.holds(&objects.get(row)),
            }));
        };
        let passing = self.test.rows_that_pass(numbers);
        rows.computed.clear();
        let mut rows = rows.keep(&passing);
        if !self.keeps_numbers {
            rows.objects = std::mem::take(&mut rows.objects).without_numbers();
        }
        Ok(rows)
    }
}

/// A semi-join over degrees: `where(out())` keeps the vertices that have such an edge, and `not(out())` the others.
pub(crate) struct HasEdges {
    direction: Direction,
    labels: LabelSets,
    negate: bool,
    degrees: Vec<u64>,
}

impl HasEdges {
    /// Keeps vertices with an edge in this direction and of one of these labels (no labels mean any), or those without.
    pub fn new(direction: Direction, labels: &[Name], negate: bool) -> Self {
        HasEdges { direction, labels: LabelSets::along(labels.to_vec()), negate, degrees: Vec::new() }
    }
}

impl RowOperator for HasEdges {
    fn needs<'a>(&mut self, objects: &'a ObjectColumn, from: usize, context: &ExecutionContext) -> Result<Need<'a>> {
        let (direction, labels) = (self.direction, self.labels.filter(&*context.view).clone());
        Ok(needs::vertices(objects, from, |of| Need::Degrees { of, direction, labels }))
    }

    fn apply(&mut self, rows: Rows, context: &ExecutionContext, _: &mut Meter<'_>) -> Result<Rows> {
        let kinds = Kinds::of(&rows.objects);
        let stranger = kinds.others().next().map(|(_, value)| value.type_name());
        if let Some(kind) = stranger.or((!kinds.edges.is_empty()).then_some("edge")) {
            return Err(Error::evaluation(format!("only vertices have edges to follow; here is a {kind}")));
        }
        self.degrees.clear();
        let labels = self.labels.filter(&*context.view);
        context.view.degrees(&kinds.vertices.items, self.direction, labels, &mut self.degrees)?;
        let degrees = &self.degrees;
        // All objects are vertices, so the index of a vertex is its row.
        Ok(rows.filter(|_, row| (degrees[row] > 0) != self.negate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_view::{Modern, context_of, modern};
    use crate::limits::meter::limited_control;
    use crate::rows::NumberColumn;
    use mangrove_graph::NumberType;
    use mangrove_gremlin::Comparison;
    use mangrove_plan::logical::{Operand, Test};

    fn eq(value: impl Into<Value>) -> Test {
        Test::Compare(Comparison::Eq, Operand::Literal(value.into()))
    }

    #[track_caller]
    fn check(graph: &Modern, objects: Vec<Value>, conditions: &[Condition], expected: &[u32]) {
        let context = context_of(graph);
        let objects = ObjectColumn::from_values(objects);
        let mut filter = Filter::new(conditions);
        filter.begin(&context).unwrap();
        let kept = filter.select(&objects, &context).unwrap();
        let kept = kept.unwrap_or_else(|| (0..objects.len() as u32).collect());
        assert_eq!(kept, expected);
        let rows = filter
            .apply(Rows::of(objects.clone()), &context, &mut Meter::new(&limited_control(u64::MAX, None)))
            .unwrap();
        assert_eq!(rows.objects.into_values(), objects.gather(expected).into_values());
    }

    #[test]
    fn conditions_hold_of_vertices_and_edges_side_by_side() {
        let g = modern();
        let all = || vec![g.marko.into(), g.knows.into(), g.lop.into(), g.created.into(), g.josh.into()];
        check(&g, all(), &[Condition::LabelIn(vec!["person".into(), "created".into()])], &[0, 3, 4]);
        check(&g, all(), &[Condition::Label(eq("software"))], &[2]);
        check(&g, all(), &[Condition::HasKey("weight".into())], &[1, 3]);
        check(&g, all(), &[Condition::HasNot("name".into())], &[1, 3]);
        check(&g, all(), &[Condition::Id(eq(3_i64))], &[2]);
        check(&g, all(), &[Condition::HasKey("nobody wrote this".into())], &[]);
        check(&g, all(), &[Condition::HasNot("nobody wrote this".into())], &[0, 1, 2, 3, 4]);
        check(
            &g,
            vec![g.marko.into(), g.lop.into(), g.josh.into()],
            &[Condition::Property("age".into(), eq(29)), Condition::LabelIn(vec!["person".into()])],
            &[0],
        );
    }

    #[test]
    fn one_of_several_values_is_enough() {
        let g = modern();
        check(&g, vec![g.marko.into(), g.josh.into()], &[Condition::Property("nick".into(), eq("mk"))], &[0]);
        check(&g, vec![g.marko.into(), g.josh.into()], &[Condition::Property("nick".into(), eq("m"))], &[0]);
    }

    #[test]
    fn properties_have_keys_values_and_meta_properties() {
        let g = modern();
        let objects = || vec![g.nick(0), g.nick(1), g.weight(), g.marko.into()];
        check(&g, objects(), &[Condition::PropertyKey(eq("nick"))], &[0, 1]);
        check(&g, objects(), &[Condition::PropertyValue(eq(0.5))], &[2]);
        check(&g, objects(), &[Condition::LabelIn(vec!["nick".into()])], &[0, 1]);
        check(&g, objects(), &[Condition::Property("since".into(), eq(2001))], &[1]);
        check(&g, objects(), &[Condition::Id(eq("1:nick:1"))], &[1]);
    }

    #[test]
    fn plain_values_have_no_conditions() {
        let g = modern();
        let context = context_of(&g);
        let mut filter = Filter::new(&[Condition::HasKey("name".into())]);
        let error = filter.select(&ObjectColumn::Values(vec![Value::I32(1)]), &context).unwrap_err();
        assert!(error.message().contains("meets an int"), "{error}");
    }

    #[test]
    fn vertices_are_kept_by_their_degree() {
        let g = modern();
        let context = context_of(&g);
        let rows = || Rows::of(ObjectColumn::Vertices(vec![g.marko, g.josh, g.lop]));
        let kept = |operator: &mut HasEdges| {
            operator.apply(rows(), &context, &mut Meter::new(&limited_control(u64::MAX, None))).unwrap().objects
        };
        assert_eq!(kept(&mut HasEdges::new(Direction::Out, &[], false)), ObjectColumn::Vertices(vec![g.marko, g.josh]));
        assert_eq!(
            kept(&mut HasEdges::new(Direction::Out, &["knows".into()], true)),
            ObjectColumn::Vertices(vec![g.josh, g.lop])
        );
        let edges = Rows::of(ObjectColumn::Edges(vec![g.knows]));
        assert!(
            HasEdges::new(Direction::Out, &[], false)
                .apply(edges, &context, &mut Meter::new(&limited_control(u64::MAX, None)))
                .is_err()
        );
    }

    #[test]
    fn is_tests_the_object_itself() {
        let g = modern();
        let context = context_of(&g);
        let mut is = Is { test: CompiledTest::new(&eq(1)), keeps_numbers: false };
        is.begin(&context).unwrap();
        let rows = Rows::of(ObjectColumn::Values(vec![Value::I32(1), Value::I64(1), Value::from("1")]));
        assert_eq!(is.apply(rows, &context, &mut Meter::new(&limited_control(u64::MAX, None))).unwrap().len(), 2);
        let mut is = Is { test: CompiledTest::new(&eq(g.josh)), keeps_numbers: false };
        is.begin(&context).unwrap();
        let rows = Rows::of(ObjectColumn::Vertices(vec![g.marko, g.josh]));
        assert_eq!(
            is.apply(rows, &context, &mut Meter::new(&limited_control(u64::MAX, None))).unwrap().objects,
            ObjectColumn::Vertices(vec![g.josh])
        );
    }

    #[test]
    fn is_tests_numbers_and_keeps_them_for_those_who_read_them() {
        let context = context_of(&modern());
        let numbers = |n: &[i64]| NumberColumn::of_integers(NumberType::I32, n.to_vec()).map(ObjectColumn::Numbers);
        let passing = |keeps_numbers, all: &[i64]| {
            let mut is = Is { test: CompiledTest::new(&eq(1)), keeps_numbers };
            is.begin(&context).unwrap();
            let rows = Rows { bulk: Some(vec![7; all.len()]), ..Rows::of(numbers(all).unwrap()) };
            let rows = is.apply(rows, &context, &mut Meter::new(&limited_control(u64::MAX, None))).unwrap();
            assert_eq!(rows.bulk, Some(vec![7; rows.len()]));
            rows.objects
        };
        for all in [&[1, 2, 1][..], &[1, 1], &[2]] {
            let ones = all.iter().filter(|n| **n == 1).count();
            assert_eq!(Some(passing(true, all)), numbers(&vec![1; ones]));
            assert_eq!(passing(false, all), ObjectColumn::Values(vec![Value::I32(1); ones]));
        }
    }

    #[test]
    fn has_refuses_numbers() {
        let context = context_of(&modern());
        let mut filter = Filter::new(&[Condition::HasKey("age".into())]);
        let numbers = |n| ObjectColumn::Numbers(NumberColumn::of_integers(NumberType::I32, n).unwrap());
        let error = filter.select(&numbers(vec![1]), &context).unwrap_err();
        assert!(error.message().contains("use is() for plain values"), "{error}");
        assert_eq!(filter.select(&numbers(vec![]), &context).unwrap(), None);
    }
}
