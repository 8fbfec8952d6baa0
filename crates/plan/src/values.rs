//! The values of the run for which a plan is made.
//!
//! A plan serves many values, and a rule may not rely on any of them ([`crate::literals`]). An *estimate* may: it
//! decides only how fast a plan is. So the estimators of orders and of index look-ups ask [`RunValues`] how many elements
//! a test takes. The answer is that for the values of the run for which the plan is made. The first values of a plan are not always typical. So each answer about a value that was taken
//! out of the traversal becomes a [`CountGuard`]: the plan is meant for values whose counts are in the same class, which
//! spans a factor of 16. A run with other values gets a plan of its own. It would not be wrong to use the plan for them,
//! only slow.
//!
//! Values of named parameters are not looked at.
//!
//! Where no index tells, the statistics of values do. They exist only for keys that a plan has asked about, so planning
//! notes the keys that it lacks ([`RunValues::lacking`]).

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use mangrove_graph::{IndexId, IndexRange, KeyId, LabelSetId, Value};

use crate::logical::{Operand, Test};

/// Of a list of values, at most so many are looked up. They stand for the others.
const LOOKED_UP_MAX: usize = 16;

/// A plan asks at most so many questions, because each run of the plan asks them again.
const QUESTIONS_MAX: usize = 8;

/// The values of at most so many pairs of a label set and a key are asked for by one plan.
const LACKING_MAX: usize = 32;

/// Tells how many elements have values. Answers are cheap, at most a few microseconds, and estimates.
pub trait CountValues {
    /// About how many entries an index has for these values of its first keys and a range of the next one; `None` if
    /// it cannot tell.
    fn entries(&self, index: IndexId, prefix: &[Value], range: &IndexRange) -> Option<u64>;

    /// About how many values in a range the vertices of these label sets have under a key; `None` if these values are
    /// not counted.
    fn values(&self, labels: &[LabelSetId], key: KeyId, range: &IndexRange) -> Option<u64>;

    /// The number of a key, if there is one of this name.
    fn key(&self, name: &str) -> Option<KeyId>;
}

/// How many entries of an index, or how many values of vertices, a test takes.
#[derive(Clone, Debug, PartialEq)]
struct Question {
    of: Counted,
    test: Test,
}

/// What is counted.
#[derive(Clone, Debug, PartialEq)]
enum Counted {
    /// Entries with values equal to these operands under the first keys of an index.
    Entries(IndexId, Vec<Operand>),
    /// Values of the vertices of these label sets under a key.
    Values(Vec<LabelSetId>, KeyId),
}

impl Question {
    /// The answer for a run with these literals; `None` if a value is unknown.
    fn answer(&self, literals: &[Value], counter: &dyn CountValues) -> Option<u64> {
        let one = |operand: &Operand| value_of(operand, literals).cloned();
        let count = |range: &IndexRange| match &self.of {
            Counted::Entries(index, prefix) => {
                counter.entries(*index, &prefix.iter().map(one).collect::<Option<Vec<_>>>()?, range)
            }
            Counted::Values(labels, key) => counter.values(labels, *key, range),
        };
        let Some(values) = values_of(&self.test, literals) else { return count(&range_of(&self.test, literals)?) };
        let step = values.len().div_ceil(LOOKED_UP_MAX).max(1);
        let looked_up: Vec<Value> = values.iter().step_by(step).map(|value| Value::clone(value)).collect();
        let (all, some) = (values.len() as u64, looked_up.len().max(1) as u64);
        Some(count(&IndexRange::Equal(looked_up))? * all / some)
    }

    /// True if the answer depends on a literal that was taken out.
    fn reads_lifted(&self) -> bool {
        let is_lifted = |operand: &Operand| matches!(operand, Operand::Lifted(_));
        let in_prefix = matches!(&self.of, Counted::Entries(_, prefix) if prefix.iter().any(is_lifted));
        in_prefix || operands_of(&self.test).iter().any(|operand| is_lifted(operand))
    }
}

/// What a plan was made for: how many entries of an index, or how many values, a test takes in a run, by the order of
/// magnitude.
#[derive(Clone, Debug, PartialEq)]
pub struct CountGuard {
    question: Question,
    class: Option<u32>,
}

impl CountGuard {
    /// Returns true if the plan is meant for a run with these literals.
    pub fn admits(&self, literals: &[Value], counter: &dyn CountValues) -> bool {
        self.question.answer(literals, counter).map(class_of) == self.class
    }
}

/// The class of a count: 0 below 16, 1 below 256, and so on.
fn class_of(count: u64) -> u32 {
    count.max(1).ilog2() / 4
}

/// The values of the run for which a plan is made, for estimates. The default knows none.
#[derive(Clone, Default)]
pub struct RunValues(Option<Rc<Known>>);

struct Known {
    literals: Arc<[Value]>,
    counter: Box<dyn CountValues>,
    answers: RefCell<Vec<(Question, Option<u64>)>>,
    lacking: RefCell<Vec<(LabelSetId, KeyId)>>,
}

impl RunValues {
    /// A run with these literals in place of those that were taken out of its traversal.
    pub fn new(literals: Arc<[Value]>, counter: Box<dyn CountValues>) -> Self {
        RunValues(Some(Rc::new(Known { literals, counter, answers: RefCell::default(), lacking: RefCell::default() })))
    }

    /// About how many entries of an index a test of its next key takes, after equality with the operands of the first
    /// keys; `None` if that is unknown. If it depends on a literal that was taken out, the plan gets a guard.
    pub fn entries(&self, index: IndexId, prefix: &[Operand], test: &Test) -> Option<u64> {
        self.ask(Question { of: Counted::Entries(index, prefix.to_vec()), test: test.clone() })
    }

    /// About how many values of the vertices of these label sets a test takes under a key. As [`RunValues::entries`].
    pub fn values(&self, labels: &[LabelSetId], key: KeyId, test: &Test) -> Option<u64> {
        self.ask(Question { of: Counted::Values(labels.to_vec(), key), test: test.clone() })
    }

    /// The values that a look-up in an index searches for, so that it finds what a test takes; `None` if they are unknown.
    pub fn range(&self, test: &Test) -> Option<IndexRange> {
        let literals: &[Value] = &self.0.as_ref()?.literals;
        match values_of(test, literals) {
            Some(values) => Some(IndexRange::Equal(values.into_iter().cloned().collect())),
            None => range_of(test, literals),
        }
    }

    /// The number of a key, if there is one of this name.
    pub fn key(&self, name: &str) -> Option<KeyId> {
        self.0.as_ref()?.counter.key(name)
    }

    /// Notes that the values of a label set under a key would help, and are not counted.
    pub fn miss(&self, label: LabelSetId, key: KeyId) {
        let Some(known) = &self.0 else { return };
        let mut lacking = known.lacking.borrow_mut();
        if lacking.len() < LACKING_MAX && !lacking.contains(&(label, key)) {
            lacking.push((label, key));
        }
    }

    /// The pairs of label set and key whose values planning would have used, and which are not counted.
    pub fn lacking(&self) -> Vec<(LabelSetId, KeyId)> {
        self.0.as_ref().map(|known| known.lacking.borrow().clone()).unwrap_or_default()
    }

    fn ask(&self, question: Question) -> Option<u64> {
        let known = self.0.as_ref()?;
        let mut answers = known.answers.borrow_mut();
        if let Some((_, answer)) = answers.iter().find(|(asked, _)| *asked == question) {
            return *answer;
        }
        if answers.len() == QUESTIONS_MAX {
            return None;
        }
        let answer = question.answer(&known.literals, &*known.counter);
        answers.push((question, answer));
        answer
    }

    /// What the plan that was made with these values is meant for.
    pub fn guards(&self) -> Vec<CountGuard> {
        let Some(known) = &self.0 else { return Vec::new() };
        let answers = known.answers.borrow();
        let guarded = answers.iter().filter(|(question, _)| question.reads_lifted());
        guarded
            .map(|(question, answer)| CountGuard { question: question.clone(), class: answer.map(class_of) })
            .collect()
    }
}

impl fmt::Debug for RunValues {
    /// The values are not shown: they may be those of a user.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "RunValues(known)" } else { "RunValues(unknown)" })
    }
}

/// The value of an operand in a run with these literals, if it is known while the plan is made.
fn value_of<'a>(operand: &'a Operand, literals: &'a [Value]) -> Option<&'a Value> {
    match operand {
        Operand::Literal(value) => Some(value),
        Operand::Lifted(number) => literals.get(*number as usize),
        Operand::Parameter(_) | Operand::List(_) | Operand::Map(_) | Operand::Vertex(_) | Operand::Edge(_) => None,
    }
}

/// The values of a test for equality with one of several. A single collection stands for its members.
fn values_of<'a>(test: &'a Test, literals: &'a [Value]) -> Option<Vec<&'a Value>> {
    match test {
        Test::Compare(mangrove_gremlin::Comparison::Eq, operand) => Some(vec![value_of(operand, literals)?]),
        Test::Within(operands) => {
            let values: Vec<&Value> = operands.iter().map(|o| value_of(o, literals)).collect::<Option<_>>()?;
            match &values[..] {
                [Value::List(members) | Value::Set(members)] => Some(members.iter().collect()),
                _ => Some(values),
            }
        }
        _ => None,
    }
}

/// The range of a test, if it has one.
fn range_of(test: &Test, literals: &[Value]) -> Option<IndexRange> {
    if let Some(beginning) = test.beginning() {
        return match value_of(beginning, literals)? {
            Value::String(text) => Some(IndexRange::beginning_with(text)),
            _ => None,
        };
    }
    let (low, high) = test.range_bounds()?;
    let bound = |bound: Option<(Operand, bool)>| match bound {
        None => Some(None),
        Some((operand, inclusive)) => Some(Some((value_of(&operand, literals)?.clone(), inclusive))),
    };
    Some(IndexRange::Between { low: bound(low)?, high: bound(high)? })
}

/// The operands of a test that an index answers.
fn operands_of(test: &Test) -> Vec<&Operand> {
    match test {
        Test::Compare(_, operand) | Test::Text(_, operand) => vec![operand],
        Test::Within(operands) | Test::Without(operands) => operands.iter().collect(),
        Test::And(tests) | Test::Or(tests) => tests.iter().flat_map(operands_of).collect(),
        Test::Not(test) => operands_of(test),
        Test::TypeOf(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use mangrove_gremlin::Comparison;

    use super::*;

    /// Value `n` has `n` entries, and every range 1,000.
    struct Numbers;

    impl CountValues for Numbers {
        fn entries(&self, _: IndexId, _: &[Value], range: &IndexRange) -> Option<u64> {
            let count = |value: &Value| mangrove_graph::numeric::integer(value).map(|n| n as u64);
            match range {
                IndexRange::Equal(values) => values.iter().map(count).sum(),
                IndexRange::Between { .. } => Some(1_000),
            }
        }

        fn values(&self, _: &[LabelSetId], _: KeyId, range: &IndexRange) -> Option<u64> {
            self.entries(IndexId(0), &[], range)
        }

        fn key(&self, _: &str) -> Option<KeyId> {
            Some(KeyId(3))
        }
    }

    fn equals(operand: Operand) -> Test {
        Test::Compare(Comparison::Eq, operand)
    }

    fn given(values: impl IntoIterator<Item = i64>) -> Vec<Value> {
        values.into_iter().map(Value::from).collect()
    }

    #[test]
    fn a_plan_is_meant_for_values_whose_counts_are_in_one_class() {
        let values = RunValues::new(given([20]).into(), Box::new(Numbers));
        assert_eq!(values.entries(IndexId(1), &[], &equals(Operand::Lifted(0))), Some(20));
        let guards = values.guards();
        let [guard] = &guards[..] else { panic!("one question was asked: {guards:?}") };
        for (value, admitted) in [(15, false), (16, true), (255, true), (256, false), (1 << 40, false)] {
            assert_eq!(guard.admits(&given([value]), &Numbers), admitted, "{value}");
        }
        assert!(!guard.admits(&[Value::from("a text")], &Numbers), "its count is unknown");
    }

    #[test]
    fn literals_of_the_shape_need_no_guard() {
        let values = RunValues::new(Arc::default(), Box::new(Numbers));
        let operand = || Operand::Literal(Value::from(7));
        assert_eq!(values.entries(IndexId(1), &[], &equals(operand())), Some(7));
        assert_eq!(values.entries(IndexId(1), &[], &Test::Compare(Comparison::Gt, operand())), Some(1_000));
        assert_eq!(values.guards(), []);
    }

    #[test]
    fn a_part_of_a_long_list_stands_for_all() {
        let list = Value::list(given(std::iter::repeat_n(3, 1_000)));
        let values = RunValues::new([list].into(), Box::new(Numbers));
        let within = Test::Within(vec![Operand::Lifted(0)]);
        assert_eq!(values.entries(IndexId(1), &[], &within), Some(3_000));
    }

    #[test]
    fn nothing_is_known_of_parameters() {
        let values = RunValues::new(Arc::default(), Box::new(Numbers));
        assert_eq!(values.entries(IndexId(1), &[], &equals(Operand::Parameter("n".into()))), None);
        assert_eq!(RunValues::default().entries(IndexId(1), &[], &equals(Operand::Lifted(0))), None);
    }

    #[test]
    fn counts_of_values_are_guarded_as_those_of_entries() {
        let values = RunValues::new(given([300]).into(), Box::new(Numbers));
        let labels = [LabelSetId(1), LabelSetId(2)];
        assert_eq!(values.values(&labels, KeyId(3), &equals(Operand::Lifted(0))), Some(300));
        let guards = values.guards();
        assert!(guards[0].admits(&given([4_000]), &Numbers) && !guards[0].admits(&given([5_000]), &Numbers));
        (0..100).for_each(|label| values.miss(LabelSetId(label / 2), KeyId(3)));
        assert_eq!(values.lacking().len(), LACKING_MAX);
    }

    #[test]
    fn questions_are_few() {
        let values = RunValues::new(given(0..100).into(), Box::new(Numbers));
        let asked = (0..100).filter_map(|n| values.entries(IndexId(1), &[], &equals(Operand::Lifted(n)))).count();
        assert_eq!((asked, values.guards().len()), (QUESTIONS_MAX, QUESTIONS_MAX));
    }
}
