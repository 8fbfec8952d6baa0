//! Scheduling policies of scopes, and limits on their instances (Banyan, figure 5b).
//!
//! CQ1 and CQ6 with limits of 1 to 10,000 rows run under each policy, and with at most 1 to 10,000 instances of a scope. All run on the thread of the client, because the policy is the order of its work. A small limit shows what
//! a policy saves: it ends the query, so rows that were made for nothing are waste. *Rows made* are those that all
//! operators sent, as `profile()` counts them.
//!
//! The networks are small. A limit above the number of persons that qualify is never reached: then all policies do the
//! same work, and their times show what a policy costs.

use std::cell::RefCell;

use mangrove::{Database, OperatorMetrics, Result, TraversalMetrics, Value};
use mangrove_queries::{Comparison, Query, QuerySet};

use super::Context;
use super::scopes::{MAY_HAVE_POLICY, on_all_cores, with_option};
use crate::harness::{Timing, wrong};
use crate::options::Suite;
use crate::plot::{BoxPlot, boxes_svg};
use crate::queries::asked::Asked;
use crate::queries::drawn::Drawn;
use crate::queries::forms::{measure, ratios};
use crate::queries::network::Network;
use crate::queries::station::Place;
use crate::report::{Growing, Metric, Row};

const SUITE: Suite = Suite::Policies;

/// The limits of rows.
const LIMITS: [usize; 5] = [1, 10, 100, 1_000, 10_000];

/// The policies, as `with('policy', …)` takes them: one for all, or that between groups and that inside.
const POLICIES: [&str; 5] = ["fifo", "bfs", "dfs", "bfs/dfs", "dfs/bfs"];

/// The numbers of instances, for [`LIMIT_OF_INSTANCES`].
const INSTANCES: [u64; 5] = [1, 10, 100, 1_000, 10_000];
const LIMIT_OF_INSTANCES: usize = 10;

/// The variant without options.
const DEFAULT: &str = "default";

/// The policy with which the paper compares its best one.
const FIFO: &str = "fifo";

pub(super) fn run(context: &Context<'_>, report: &mut Growing<'_>) -> Result<()> {
    let set = QuerySet::named("banyan-cq");
    let boxes = RefCell::new(Vec::new());
    Network::each(&on_all_cores(context.options), SUITE, report, &|network, report| {
        let drawn = Drawn::of(&network.reference);
        for query in MAY_HAVE_POLICY.map(|name| set.query(name)) {
            let name = Asked::case(network, query);
            let Some(asked) = Asked::of_paper(network, &drawn, &set, query) else {
                report.note(SUITE.name(), format!("{name} was left out: there are no parameters."));
                continue;
            };
            let database = &network.replicas.smallest().database;
            for limit in LIMITS {
                let case = format!("{name}, limit {limit}");
                if !context.options.wants(&case, DEFAULT) {
                    continue;
                }
                let limited = with_limit(&asked, query, limit)?;
                let mut forms = vec![(DEFAULT.to_owned(), limited.clone())];
                for policy in POLICIES {
                    forms.push((policy.to_owned(), with_option(&limited, &format!("'policy', '{policy}'"))?));
                }
                if limit == LIMIT_OF_INSTANCES {
                    for count in INSTANCES {
                        let form = with_option(&limited, &format!("'maxInstances', {count}"))?;
                        forms.push((format!("at most {count} instances"), form));
                    }
                }
                let best = compare(context, database, &case, &forms, report)?;
                boxes.borrow_mut().push(BoxPlot { name: case, values: best });
            }
        }
        Ok(())
    })?;
    if let Some(path) = &context.options.choices.plot {
        let svg = boxes_svg("time under FIFO : time under the best policy, by parameters", &boxes.borrow());
        std::fs::write(path, svg).map_err(|e| mangrove::Error::from(e).context(path.display()))?;
    }
    Ok(())
}

/// Times forms and reports them. Returns, by parameters, how much faster the best policy is than FIFO.
fn compare(
    context: &Context<'_>,
    database: &Database,
    case: &str,
    forms: &[(String, Asked)],
    report: &mut Growing<'_>,
) -> Result<Vec<f64>> {
    let asked: Vec<Asked> = forms.iter().map(|(_, asked)| asked.clone()).collect();
    let times = measure(context.options, database, &asked, Place::Client)?;
    let without = Timing::of(times[0].clone()).median;
    for ((name, asked), times) in forms.iter().zip(&times) {
        let rows = rows_made(database, asked)?;
        let row = Row::time(SUITE.name(), case, name, Timing::of(times.clone())).with("rows", rows, "");
        report.push(if name == DEFAULT { row } else { row.beside(without) });
        report.push(Row::single(SUITE.name(), case, &format!("{name}: rows made"), Metric::Count, rows, ""));
    }
    // The policies stand between the default and the limits of instances.
    let fifo = 1 + POLICIES.iter().position(|policy| *policy == FIFO).unwrap_or(0);
    let best: Vec<f64> = (0..times[0].len())
        .map(|at| (0..=POLICIES.len()).map(|form| times[form][at]).fold(f64::INFINITY, f64::min))
        .collect();
    let faster = ratios(&times[fifo], &best);
    let Timing { median, min, max } = Timing::of(faster.clone());
    let row = Row::single(SUITE.name(), case, "best policy : FIFO", Metric::Speedup, median, "×");
    report.push(row.between(min, max));
    Ok(faster)
}

/// The same question with another limit.
fn with_limit(asked: &Asked, query: &Query, limit: usize) -> Result<Asked> {
    let known = query.limit.map(|limit| format!("limit({limit})")).unwrap_or_default();
    if asked.text.matches(&known).count() != 1 {
        return Err(wrong(format!("{} has not one {known}", asked.case)));
    }
    let text = asked.text.replace(&known, &format!("limit({limit})"));
    Ok(Asked { text, comparison: Comparison::Some(limit), ..asked.clone() })
}

/// The rows that all operators sent, the mean over parameters.
fn rows_made(database: &Database, asked: &Asked) -> Result<f64> {
    let prepared = database.prepare(&format!("{}.profile()", asked.text))?;
    let mut sum = 0;
    for run in &asked.runs {
        let profile = database.run(&prepared, &run.parameters)?.collect()?;
        let [Value::TraversalMetrics(metrics)] = &profile[..] else {
            return Err(wrong(format!("the profile of {} has no metrics", asked.case)));
        };
        sum += rows_of(metrics);
    }
    Ok(sum as f64 / asked.runs.len() as f64)
}

/// The rows that all operators sent, without the results of the query.
fn rows_of(metrics: &TraversalMetrics) -> u64 {
    let operators = metrics.flat().into_iter().filter(|(_, operator)| operator.name != "results");
    operators.filter_map(|(_, operator)| operator.count(OperatorMetrics::TRAVERSER_COUNT)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_of_all_operators_are_counted() {
        let database = Database::in_memory();
        let profile = database.query("g.inject(1, 2, 3).limit(2).profile()").unwrap().collect().unwrap();
        let [Value::TraversalMetrics(metrics)] = &profile[..] else { panic!("{profile:?}") };
        // One row starts the traversal; three are injected, and two pass.
        assert_eq!(rows_of(metrics), 6, "{metrics:?}");
    }
}
