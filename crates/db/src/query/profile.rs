//! `profile()`: the measurements of a run as TinkerPop's metrics.
//!
//! Each operator has an entry. The operators in a scope are nested in the operator of the scope. The figures of the run
//! as a whole are the annotations of a last entry, because TinkerPop's type has no other place for them:
//!
//! | annotation of the run | meaning |
//! |---|---|
//! | `scopeGroups`, `scopeGroupsPeak` | scope groups that were opened, and the most at a time |
//! | `instancesCancelled` | instances that were cancelled before their end |
//! | `instancesSetApart` | heavy instances that began again in a group of their own |
//! | `memoryPeakBytes` | the most memory that operators held |
//! | `coresUsed` | the time of all threads in operators, divided by the time of the run |
//! | `parcels`, `helperMs` | parcels of messages that other threads took over, and the time that these threads worked |
//! | `planningMs` | the time until the plan was there; next to nothing if it was cached |
//! | `statisticsAgeMs`, `statisticsAgeCommits` | how old the statistics are that the plan was made with, in time and in commits |

use std::iter::Peekable;

use mangrove_flow::OperatorStats;
use mangrove_graph::{OperatorMetrics, TraversalMetrics, Value};
use mangrove_steps::DescribedOperator;
use mangrove_txn::DatedStatistics;
use smol_str::SmolStr;

/// The id of the entry of the run as a whole. Those of operators are their numbers.
const RUN_ID: &str = "run";

/// The results of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ResultCounts {
    /// Results, a bulk of equal ones as one.
    traversers: u64,
    /// Results, each of a bulk by itself.
    elements: u64,
}

impl ResultCounts {
    /// Adds results, each with the number of times that it occurs.
    pub fn add(&mut self, batch: &[(Value, u64)]) {
        self.traversers += batch.len() as u64;
        self.elements = batch.iter().fold(self.elements, |sum, (_, times)| sum.saturating_add(*times));
    }
}

/// The figures of a run that belong to no operator.
pub(crate) struct RunFigures {
    pub nanos: u64,
    pub scope_groups: u64,
    pub scope_groups_peak: u64,
    pub instances_cancelled: u64,
    pub instances_set_apart: u64,
    pub memory_peak_bytes: u64,
    pub parcels: u64,
    pub helper_nanos: u64,
}

/// The metrics of a run. Each operator has its depth in scopes and a description. The last one takes the results.
pub(crate) fn metrics(
    descriptions: &[DescribedOperator],
    stats: &[OperatorStats],
    results: &ResultCounts,
    run: &RunFigures,
) -> TraversalMetrics {
    let measured = descriptions.iter().zip(stats).enumerate();
    let mut entries: Vec<(usize, OperatorMetrics)> =
        measured.map(|(id, (described, stats))| (described.depth, operator(id, described, stats))).collect();
    if let Some((_, last)) = entries.last_mut() {
        last.counts = counts(&[
            (OperatorMetrics::TRAVERSER_COUNT, results.traversers),
            (OperatorMetrics::ELEMENT_COUNT, results.elements),
        ]);
    }
    let worked: u64 = stats.iter().map(|stats| stats.nanos).sum();
    let mut operators = with_nested(&mut entries.into_iter().peekable(), 0);
    operators.iter_mut().for_each(|operator| add_shares(operator, worked));
    operators.push(whole_run(run, worked));
    TraversalMetrics { nanos: run.nanos, operators }
}

/// An operator by itself. The dataflow counts rows and not their bulks, so it has no count of elements.
fn operator(id: usize, described: &DescribedOperator, stats: &OperatorStats) -> OperatorMetrics {
    let expected = described.expected_rows.map(|rows| (OperatorMetrics::EXPECTED_ROWS, rows.round() as u64));
    let measured = [(OperatorMetrics::MESSAGES, stats.messages), (OperatorMetrics::ROWS_IN, stats.rows_in)];
    let numbers = measured.into_iter().chain(expected).map(|(name, number)| (name, long(number)));
    let flow = described.flow.map(|flow| (OperatorMetrics::FLOW, Value::from(flow.name())));
    OperatorMetrics {
        id: id.to_string().into(),
        name: described.text.as_str().into(),
        nanos: stats.nanos,
        counts: counts(&[(OperatorMetrics::TRAVERSER_COUNT, stats.rows_out)]),
        annotations: numbers.chain(flow).map(|(name, value)| (SmolStr::new_static(name), value)).collect(),
        nested: Vec::new(),
    }
}

fn counts(counts: &[(&'static str, u64)]) -> Vec<(SmolStr, u64)> {
    counts.iter().map(|(name, count)| (SmolStr::new_static(name), *count)).collect()
}

fn long(number: u64) -> Value {
    Value::I64(i64::try_from(number).unwrap_or(i64::MAX))
}

/// Takes the operators from this depth on. Those that are deeper are nested in the operator before them, and their time
/// is a part of its time.
fn with_nested(
    entries: &mut Peekable<impl Iterator<Item = (usize, OperatorMetrics)>>,
    depth: usize,
) -> Vec<OperatorMetrics> {
    let mut operators = Vec::new();
    while let Some((_, mut operator)) = entries.next_if(|(at, _)| *at >= depth) {
        operator.nested = with_nested(entries, depth + 1);
        operator.nanos += operator.nested.iter().map(|nested| nested.nanos).sum::<u64>();
        operators.push(operator);
    }
    operators
}

/// Annotates each operator with its percentage of the time of all operators. The percentages of the operators that are in no
/// scope add up to 100.
fn add_shares(operator: &mut OperatorMetrics, worked: u64) {
    let percent = operator.nanos as f64 * 100.0 / worked.max(1) as f64;
    operator.annotations.push((SmolStr::new_static(OperatorMetrics::PERCENT_DURATION), Value::F64(percent)));
    operator.nested.iter_mut().for_each(|nested| add_shares(nested, worked));
}

/// The entry of the run as a whole. It has no time of its own, so the times of all entries still add up.
fn whole_run(run: &RunFigures, worked: u64) -> OperatorMetrics {
    let mut annotations = vec![
        ("scopeGroups", long(run.scope_groups)),
        ("scopeGroupsPeak", long(run.scope_groups_peak)),
        ("instancesCancelled", long(run.instances_cancelled)),
        ("instancesSetApart", long(run.instances_set_apart)),
        ("memoryPeakBytes", long(run.memory_peak_bytes)),
        ("coresUsed", Value::F64((cores_used(worked, run.nanos) * 100.0).round() / 100.0)),
    ];
    if run.parcels > 0 {
        annotations.push(("parcels", long(run.parcels)));
        annotations.push(("helperMs", Value::F64(run.helper_nanos as f64 / 1e6)));
    }
    OperatorMetrics {
        id: RUN_ID.into(),
        name: "the run".into(),
        annotations: annotations.into_iter().map(|(name, value)| (SmolStr::new_static(name), value)).collect(),
        ..OperatorMetrics::default()
    }
}

/// How a plan came about.
pub(crate) struct PlanningFigures {
    pub nanos: u64,
    /// The statistics that it was made with.
    pub statistics: Option<DatedStatistics>,
}

/// Adds figures of the plan to those of the run.
pub(crate) fn add_planning(metrics: &mut TraversalMetrics, planning: &PlanningFigures) {
    let Some(run) = metrics.operators.last_mut().filter(|last| last.id == RUN_ID) else { return };
    let mut add = |name, value| run.annotations.push((SmolStr::new_static(name), value));
    add("planningMs", Value::F64(planning.nanos as f64 / 1e6));
    if let Some(statistics) = &planning.statistics {
        add("statisticsAgeMs", long(statistics.age_ms));
        add("statisticsAgeCommits", long(statistics.commits_since));
    }
}

/// The time that all threads spent in operators, divided by the time that has passed. The time that a thread waits for
/// helpers or reads is not in it.
fn cores_used(worked: u64, nanos: u64) -> f64 {
    worked as f64 / nanos.max(1) as f64
}

#[cfg(test)]
mod tests {
    use mangrove_plan::physical::Flow;

    use super::*;

    fn worked(nanos: u64) -> OperatorStats {
        OperatorStats { messages: 1, rows_in: 2, rows_out: 3, nanos }
    }

    fn run(nanos: u64) -> RunFigures {
        RunFigures {
            nanos,
            scope_groups: 1,
            scope_groups_peak: 1,
            instances_cancelled: 0,
            instances_set_apart: 0,
            memory_peak_bytes: 7,
            parcels: 0,
            helper_nanos: 0,
        }
    }

    #[test]
    fn operators_in_a_scope_are_nested_in_it() {
        let described = |depth, name: &str| DescribedOperator {
            depth,
            text: name.to_owned(),
            flow: (name == "count").then_some(Flow::Barrier),
            expected_rows: (name == "expand").then_some(300.4),
        };
        let descriptions = [
            described(0, "start"),
            described(0, "where"),
            described(1, "union"),
            described(2, "expand"),
            described(1, "count"),
            described(0, "results"),
        ];
        let stats = [10, 20, 30, 40, 50, 50].map(worked);
        let mut results = ResultCounts::default();
        results.add(&[(Value::Null, 5), (Value::Null, 1)]);
        let metrics = metrics(&descriptions, &stats, &results, &run(100));
        let flat: Vec<(usize, &str, u64, u64)> = metrics
            .flat()
            .into_iter()
            .map(|(depth, one)| (depth, one.name.as_str(), one.nanos, one.own_nanos()))
            .collect();
        assert_eq!(
            flat,
            [
                (0, "start", 10, 10),
                (0, "where", 140, 20),
                (1, "union", 70, 30),
                (2, "expand", 40, 40),
                (1, "count", 50, 50),
                (0, "results", 50, 50),
                (0, "the run", 0, 0),
            ]
        );
        let [start, .., results, run] = &metrics.operators[..] else { panic!("{metrics:?}") };
        let expand = &metrics.operators[1].nested[0].nested[0];
        assert_eq!(expand.annotation("expectedRows"), Some(&Value::I64(300)));
        assert_eq!(start.annotation("expectedRows"), None);
        assert_eq!(metrics.operators[1].nested[1].annotation("flow"), Some(&Value::from("barrier")));
        assert_eq!(start.annotation("flow"), None);
        assert_eq!(start.annotation("percentDur"), Some(&Value::F64(5.0)));
        assert_eq!((start.count("traverserCount"), start.count("elementCount")), (Some(3), None));
        assert_eq!((results.count("traverserCount"), results.count("elementCount")), (Some(2), Some(6)));
        // Two threads worked at a time.
        assert_eq!((metrics.nanos, run.annotation("coresUsed")), (100, Some(&Value::F64(2.0))));
        assert_eq!((run.annotation("memoryPeakBytes"), run.annotation("parcels")), (Some(&Value::I64(7)), None));
    }

    #[test]
    fn cores_are_the_work_of_all_threads_by_the_time_that_has_passed() {
        assert_eq!(cores_used(1_500, 1_000), 1.5);
        assert_eq!(cores_used(250, 1_000), 0.25);
        assert_eq!(cores_used(0, 0), 0.0);
    }
}
