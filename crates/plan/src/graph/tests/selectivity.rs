//! Estimates of conditions on values against true counts, on values that are skewed.

use std::sync::Arc;

use mangrove_graph::statistics::{IndexStatistics, LabelStatistics, PairMoments, Statistics, ValueStatistics};
use mangrove_graph::{ElementKind, IndexId, IndexInfo, IndexRange, KeyId, LabelSetId, Value};

use super::graph_of;
use crate::facts::{Figures, GraphFacts, UsableIndex};
use crate::graph::selective_first;
use crate::graph::selectivity::narrowed;
use crate::values::{CountValues, RunValues};

const LABEL: LabelSetId = LabelSetId(0);
const KEY: KeyId = KeyId(1);

/// Counts the entries of an index exactly, and the values by statistics.
struct Counter {
    statistics: Arc<Statistics>,
    values: Vec<Value>,
}

impl CountValues for Counter {
    fn entries(&self, _: IndexId, _: &[Value], range: &IndexRange) -> Option<u64> {
        Some(self.values.iter().filter(|value| range.holds(value)).count() as u64)
    }

    fn values(&self, _: &[LabelSetId], _: KeyId, range: &IndexRange) -> Option<u64> {
        Some(self.statistics.values_of(LABEL, KEY)?.expected(range) as u64)
    }

    fn key(&self, _: &str) -> Option<KeyId> {
        Some(KEY)
    }
}

/// Value `n` of `1..=1_000` occurs `20_000 / n` times.
fn zipf() -> Vec<Value> {
    (1..=1_000_i64).flat_map(|n| std::iter::repeat_n(Value::from(n), 20_000 / n as usize)).collect()
}

/// Vertices with these values: with statistics of every 40th value, or with none.
fn facts(values: &[Value], are_counted: bool) -> GraphFacts {
    let labels = vec![LabelStatistics::new(LABEL, values.len() as u64, Vec::new(), PairMoments::default())];
    let index = IndexStatistics { index: IndexId(1), entries: values.len() as u64, distinct: 1_000 };
    let mut statistics = Statistics::new(1, labels, vec![index]);
    if are_counted {
        let sample = values.iter().step_by(40).cloned().collect();
        let counted = ValueStatistics::new((LABEL, KEY), values.len() as u64, 1_000, sample);
        statistics = statistics.with_values(vec![counted]);
    }
    let statistics = Arc::new(statistics);
    let counter = Counter { statistics: statistics.clone(), values: values.to_vec() };
    let figures = Figures::new(statistics, |_| vec!["a".into()]);
    let values = RunValues::new(Arc::default(), Box::new(counter));
    GraphFacts { figures: Some(figures), values, ..GraphFacts::default() }
}

/// The vertices that are expected to pass a test, and whether an index finds them.
fn expected(facts: &GraphFacts, test: &str) -> (f64, bool) {
    let script = format!("g.V().hasLabel('a').has('k', {test}).out('e').out('e').count()");
    let (graph, _) = graph_of(&script).unwrap();
    let statistics = facts.figures.as_ref().map(|figures| &*figures.statistics);
    let labels = statistics.unwrap().labels();
    let all = labels[0].vertices as f64;
    let (part, is_found) = narrowed(&graph.variables[0], all, labels.iter(), statistics, facts);
    (part * all, is_found)
}

/// A test of numbers, and whether it takes one.
type Case = (&'static str, fn(i64) -> bool);

const CASES: [Case; 13] = [
    ("1", |n| n == 1),
    ("7", |n| n == 7),
    ("within(1, 2, 20)", |n| [1, 2, 20].contains(&n)),
    ("within([1, 2, 20])", |n| [1, 2, 20].contains(&n)),
    ("gt(10)", |n| n > 10),
    ("lte(3)", |n| n <= 3),
    ("between(50, 200)", |n| (50..200).contains(&n)),
    ("gt(3).and(lt(30))", |n| n > 3 && n < 30),
    ("lt(5).or(gt(500))", |n| !(5..=500).contains(&n)),
    ("outside(5, 500)", |n| !(5..=500).contains(&n)),
    ("neq(1)", |n| n != 1),
    ("without(1, 2)", |n| n != 1 && n != 2),
    ("gte(900)", |n| n >= 900),
];

#[test]
fn counted_values_give_estimates_near_the_truth() {
    let values = zipf();
    let mut guesses = 0.0_f64;
    for (test, takes) in CASES {
        // A plan asks few questions, so each case is a plan of its own.
        let (counted, unknown) = (facts(&values, true), facts(&values, false));
        let truth = values.iter().filter(|value| matches!(value, Value::I64(n) if takes(*n))).count() as f64;
        let error = |found: f64| (found / truth).max(truth / found);
        let (found, is_found) = expected(&counted, test);
        assert!(error(found) < 1.5 && !is_found, "{test}: {found} for {truth}");
        guesses = guesses.max(error(expected(&unknown, test).0));
        assert_eq!(counted.values.lacking(), []);
        assert_eq!(unknown.values.lacking(), [(LABEL, KEY)], "planning has noted what it lacks");
    }
    assert!(guesses > 20.0, "without statistics, estimates are far off: {guesses}");
}

#[test]
fn an_index_tells_how_many_entries_a_test_takes() {
    let values = zipf();
    let mut facts = facts(&values, false);
    let info = IndexInfo {
        id: IndexId(1),
        element: ElementKind::Vertex,
        label: None,
        keys: [KEY].into(),
        ordered: true,
        unique: false,
    };
    facts.indexes.push(UsableIndex { info, label: None, keys: vec!["k".into()] });
    // A plan asks few questions, so each case is a plan of its own.
    for (test, takes) in CASES.into_iter().take(7) {
        let truth = values.iter().filter(|value| matches!(value, Value::I64(n) if takes(*n))).count() as f64;
        let (found, is_found) = expected(&facts, test);
        assert!((found - truth).abs() < 1e-6 && is_found, "{test}: {found} for {truth}");
    }
    assert_eq!(facts.values.lacking(), []);
}

/// Value 1 is the most frequent one, and 900 a rare one.
#[test]
fn conditions_that_leave_few_vertices_come_first() {
    let values = zipf();
    let first = |facts: &GraphFacts, tests: [&str; 2]| {
        let has = tests.map(|test| format!(".has('k', {test})")).concat();
        let (graph, _) = graph_of(&format!("g.V().hasLabel('a'){has}.out('e').out('e').count()")).unwrap();
        let ordered = selective_first(&graph.variables[0].conditions, facts).into_owned();
        assert_eq!(ordered[0], graph.variables[0].conditions[0], "the label keeps its position");
        format!("{:?}", ordered[1])
    };
    for [frequent, rare] in [["1", "900"], ["neq(900)", "gt(10)"], ["lt(900)", "within(800, 900)"], ["gt(1)", "7"]] {
        let (one_way, other_way) = (facts(&values, true), facts(&values, true));
        let (found, same) = (first(&one_way, [frequent, rare]), first(&other_way, [rare, frequent]));
        assert_eq!(found, same, "{frequent}, {rare}");
        let alone = format!("{:?}", graph_of(&format!("g.V().has('k', {rare}).out().out()")).unwrap().0.variables[0]);
        assert!(alone.contains(&found), "{rare} comes before {frequent}: {found}");
    }
    // If nothing is known, equality comes before a range, and what is alike stays as it is written.
    let unknown = GraphFacts::default();
    assert_ne!(first(&unknown, ["gt(1)", "7"]), first(&unknown, ["gt(1)", "gt(7)"]));
    assert_ne!(first(&unknown, ["1", "7"]), first(&unknown, ["7", "1"]));
}
