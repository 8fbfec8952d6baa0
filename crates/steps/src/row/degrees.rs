//! Sums of degrees, and tests of them. No neighbor is looked at.

use std::borrow::Cow;

use mangrove_graph::{Need, NumberType, Result, Value};
use mangrove_plan::logical::FilterKind;
use mangrove_plan::physical::DegreeTest;

use crate::computed::degrees::DegreeReader;
use crate::context::execution::ExecutionContext;
use crate::limits::meter::Meter;
use crate::row::operator::RowOperator;
use crate::rows::{NumberSlice, ObjectColumn, Rows, Tags};
use crate::values::fold::too_many;
use crate::values::predicate::CompiledTest;

/// Counts the edges of vertices: one number for a batch, or one for each row if the batch has several instances.
pub(crate) struct CountEdges(pub DegreeReader);

impl RowOperator for CountEdges {
    fn needs<'a>(&mut self, objects: &'a ObjectColumn, from: usize, context: &ExecutionContext) -> Result<Need<'a>> {
        Ok(self.0.needs(objects, from, context))
    }

    fn apply(&mut self, rows: Rows, context: &ExecutionContext, _: &mut Meter<'_>) -> Result<Rows> {
        let degrees = self.0.read(&rows.objects, context)?;
        if rows.tags == Tags::One {
            let counts = degrees.iter().enumerate().map(|(row, degree)| degree.checked_mul(rows.bulk(row)));
            let total = counts.into_iter().try_fold(0_u64, |sum, count| sum.checked_add(count?));
            let total = total.and_then(|total| i64::try_from(total).ok()).ok_or_else(too_many)?;
            return Ok(Rows::of(ObjectColumn::Values(vec![Value::I64(total)])));
        }
        let values = degrees.iter().map(|degree| Value::I64(*degree as i64)).collect();
        Ok(rows.with_objects(ObjectColumn::Values(values)))
    }
}

/// Keeps vertices by tests of their degrees. As with the traversals of a filter, a test sees the rows that the tests
/// before it have not decided.
pub(crate) struct TestDegrees {
    kind: FilterKind,
    tests: Vec<(DegreeReader, CompiledTest)>,
    degrees: Vec<i64>,
}

impl TestDegrees {
    pub fn new(kind: FilterKind, tests: &[DegreeTest]) -> Self {
        let tests = tests.iter().map(|test| (DegreeReader::new(&test.degree), CompiledTest::new(&test.test))).collect();
        TestDegrees { kind, tests, degrees: Vec::new() }
    }
}

impl RowOperator for TestDegrees {
    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        self.tests.iter_mut().try_for_each(|(_, test)| test.begin(context))
    }

    fn needs<'a>(&mut self, objects: &'a ObjectColumn, from: usize, context: &ExecutionContext) -> Result<Need<'a>> {
        Ok(Need::all(self.tests.iter_mut().map(|(degrees, _)| degrees.needs(objects, from, context))))
    }

    fn apply(&mut self, mut rows: Rows, context: &ExecutionContext, _: &mut Meter<'_>) -> Result<Rows> {
        let TestDegrees { kind, tests, degrees } = self;
        // The rows that go on to the next test: the others are decided.
        let mut open: Option<Vec<u32>> = None;
        for (reader, test) in tests {
            let left = match &open {
                None => Cow::Borrowed(&rows.objects),
                Some(open) if open.is_empty() => break,
                Some(open) => Cow::Owned(rows.objects.gather(open)),
            };
            reader.read_integers(&left, context, degrees)?;
            let passing = test.rows_that_pass(NumberSlice::Integers(NumberType::I64, degrees));
            let go_on = if *kind == FilterKind::All { passing } else { others(left.len(), &passing) };
            open = Some(match open {
                None => go_on,
                Some(open) => go_on.into_iter().map(|at| open[at as usize]).collect(),
            });
        }
        let open = open.unwrap_or_default();
        let kept = if *kind == FilterKind::Any { others(rows.len(), &open) } else { open };
        rows.computed.clear();
        Ok(rows.keep(&kept))
    }
}

/// Returns the rows below a number that are not among these. All ascend.
fn others(count: usize, rows: &[u32]) -> Vec<u32> {
    let mut left = rows.iter().copied().peekable();
    (0..count as u32).filter(|row| left.next_if_eq(row).is_none()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_view::{context_of, modern};
    use crate::limits::meter::limited_control;
    use mangrove_graph::Direction;
    use mangrove_gremlin::Comparison;
    use mangrove_plan::logical::{Operand, Test};
    use mangrove_plan::physical::Degree;

    /// The number of edges along these labels.
    fn degree(direction: Direction, labels: &[&str], optional: bool) -> Degree {
        Degree { direction, labels: labels.iter().map(|label| (*label).into()).collect(), to_edges: false, optional }
    }

    fn test(degree: Degree, comparison: Comparison, number: i32) -> DegreeTest {
        DegreeTest { degree, test: Test::Compare(comparison, Operand::Literal(number.into())) }
    }

    /// The rows of some objects that pass.
    fn kept(kind: FilterKind, tests: &[DegreeTest], objects: ObjectColumn) -> Result<Rows> {
        let context = context_of(&modern());
        let mut operator = TestDegrees::new(kind, tests);
        operator.begin(&context)?;
        let rows = Rows { bulk: Some((2..).take(objects.len()).collect()), ..Rows::of(objects) };
        operator.apply(rows, &context, &mut Meter::new(&limited_control(u64::MAX, None)))
    }

    #[test]
    fn vertices_are_kept_by_tests_of_their_degrees() {
        let g = modern();
        let people = || ObjectColumn::Vertices(vec![g.marko, g.josh, g.lop]);
        let is_none = || test(degree(Direction::Out, &[], false), Comparison::Eq, 0);
        let knows = || test(degree(Direction::Out, &["knows"], false), Comparison::Gte, 1);
        for (kind, tests, expected) in [
            (FilterKind::All, vec![is_none()], vec![g.lop]),
            (FilterKind::All, vec![is_none(), knows()], vec![]),
            (FilterKind::Any, vec![is_none(), knows()], vec![g.marko, g.lop]),
            (FilterKind::None, vec![is_none(), knows()], vec![g.josh]),
            (
                FilterKind::All,
                vec![test(degree(Direction::Out, &[], true), Comparison::Gte, 1)],
                vec![g.marko, g.josh, g.lop],
            ),
            (FilterKind::Any, vec![test(degree(Direction::Both, &["nobody"], false), Comparison::Gt, 0)], vec![]),
        ] {
            let rows = kept(kind, &tests, people()).unwrap();
            let bulks =
                expected.iter().map(|vertex| [g.marko, g.josh, g.lop].iter().position(|v| v == vertex).unwrap());
            assert_eq!(rows.bulk, Some(bulks.map(|row| row as u64 + 2).collect()), "{kind:?} {tests:?}");
            assert_eq!(rows.objects, ObjectColumn::Vertices(expected), "{kind:?} {tests:?}");
        }
    }

    #[test]
    fn what_is_no_vertex_has_no_degree() {
        let g = modern();
        let tests = [
            test(degree(Direction::Out, &[], false), Comparison::Eq, 0),
            test(Degree { to_edges: true, ..degree(Direction::In, &[], false) }, Comparison::Eq, 0),
        ];
        let error = |objects| kept(FilterKind::Any, &tests, objects).unwrap_err();
        assert!(error(ObjectColumn::Edges(vec![g.knows])).message().starts_with("out()"));
        assert!(error(ObjectColumn::Values(vec![g.marko.into(), 7.into()])).message().starts_with("out()"));
        assert!(kept(FilterKind::Any, &tests, ObjectColumn::Values(Vec::new())).unwrap().is_empty());
    }
}
