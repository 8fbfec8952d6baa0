//! Banyan's complex queries with scopes, beside the same questions without them (Banyan, figure 5a).
//!
//! With scopes, a loop is a `repeat()`, and a test is a nested traversal, which is canceled at its first result. Without,
//! loops are unrolled into hops with a `dedup()` between them, and tests are joins. The texts are in
//! `conformance/queries/sets/banyan-cq.toml`. CQ1 and CQ6 run as they are planned, and with the policies `bfs` and `dfs`
//! (the paper's), with which loops stay loops. The others have a side effect or an order, which allow no policy. The
//! suite looks at the plans: the one without must have no loop and no scope, except that of the `sideEffect()` which
//! collects the companies of the start person once. All others but those that the planner chooses must have one.
//!
//! Both forms read the same graph in the same engine and are checked with the same reference. What differs is how much
//! of the graph they read, and what they keep meanwhile.

use std::cell::RefCell;

use mangrove::Result;
use mangrove_queries::{Query, QuerySet, papers};

use super::Context;
use crate::harness::{Timing, wrong};
use crate::options::{Options, Suite};
use crate::plot::{BoxPlot, boxes_svg};
use crate::queries::asked::Asked;
use crate::queries::choices::QueryChoices;
use crate::queries::drawn::Drawn;
use crate::queries::forms::{measure, ratios};
use crate::queries::network::Network;
use crate::queries::station::Place;
use crate::report::{Growing, Metric, Row};

const SUITE: Suite = Suite::Scopes;

/// The name of the other form, in the query set and in reports.
const WITHOUT: &str = "without scopes";

/// The name of the form that has no policy, if policies are measured, too.
const AS_PLANNED: &str = "as planned";

/// The options of the forms with a policy.
const BFS: &str = "'policy', 'bfs'";
const DFS: &str = "'policy', 'dfs'";

/// A query with scopes may take this many times as long as without. More means that the planner should leave them out.
const TIMES_SLOWER_MAX: f64 = 1.1;

/// The queries that may have a policy. CQ2, CQ4 and CQ5 have a side effect that shows the order of rows, so the planner
/// refuses one. CQ3 has an order, so it reads everything under every policy.
pub(super) const MAY_HAVE_POLICY: [&str; 2] = ["CQ1", "CQ6"];

pub(super) fn run(context: &Context<'_>, report: &mut Growing<'_>) -> Result<()> {
    let set = QuerySet::named("banyan-cq");
    let boxes = RefCell::new(Vec::new());
    Network::each(&on_all_cores(context.options), SUITE, report, &|network, report| {
        let drawn = Drawn::of(&network.reference);
        for query in &set.queries {
            let case = Asked::case(network, query);
            if !context.options.wants(&case, WITHOUT) {
                continue;
            }
            let Some(with) = Asked::of_paper(network, &drawn, &set, query) else {
                report.note(SUITE.name(), format!("{case} was left out: there are no parameters."));
                continue;
            };
            let mut forms = vec![form_of(&with, query, WITHOUT)?];
            let names: &[&str] = if MAY_HAVE_POLICY.contains(&&*query.name) {
                forms.extend([with.clone(), with_option(&with, BFS)?, with_option(&with, DFS)?]);
                &[AS_PLANNED, "scopes, bfs", "scopes, dfs"]
            } else {
                forms.push(with.clone());
                &["scopes"]
            };
            let database = &network.replicas.smallest().database;
            for (name, form) in std::iter::once(&WITHOUT).chain(names).zip(&forms) {
                let plan = database.explain(&form.text)?;
                if *name != AS_PLANNED && has_scopes(&plan) != (*name != WITHOUT) {
                    return Err(wrong(format!("{}: the plan is\n{plan}", form.case)));
                }
            }
            let times = measure(context.options, database, &forms, Place::Executors)?;
            report.push(Row::time(SUITE.name(), &case, WITHOUT, Timing::of(times[0].clone())));
            for (name, times_with) in names.iter().zip(&times[1..]) {
                boxes.borrow_mut().push(push(report, &case, name, times_with, &times[0]));
            }
        }
        Ok(())
    })?;
    if let Some(path) = &context.options.choices.plot {
        let svg = boxes_svg("time without scopes : time with scopes, by parameters", &boxes.borrow());
        std::fs::write(path, svg).map_err(|e| mangrove::Error::from(e).context(path.display()))?;
    }
    Ok(())
}

/// The same options with one database, which has an executor for each core.
pub(super) fn on_all_cores(options: &Options) -> Options {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let queries = QueryChoices { executors: vec![cores], ..options.queries.clone() };
    Options { queries, ..options.clone() }
}

/// Another form of a question.
pub(super) fn form_of(asked: &Asked, query: &Query, name: &str) -> Result<Asked> {
    let form = query.forms.get(name).ok_or_else(|| wrong(format!("{} has no form {name}", query.name)))?;
    let case = format!("{}, {name}", asked.case);
    let comparison = papers::form_comparison(query, form);
    Ok(Asked { case, text: form.text.trim().to_owned(), comparison, ..asked.clone() })
}

/// The same question with an option of the source, such as `'maxInstances', 10`.
pub(super) fn with_option(asked: &Asked, option: &str) -> Result<Asked> {
    let steps = asked.text.strip_prefix("g.").ok_or_else(|| wrong(format!("{} begins with no `g.`", asked.case)))?;
    Ok(Asked { text: format!("g.with({option}).{steps}"), ..asked.clone() })
}

/// Returns true if a plan has a loop, or a scope other than that of a `sideEffect()`.
pub(super) fn has_scopes(plan: &str) -> bool {
    let is_scope = |line: &str| {
        line.starts_with("repeat") || line.starts_with("scope a row") && !line.starts_with("scope a row: side effect")
    };
    plan.lines().any(|line| is_scope(line.trim_start()))
}

/// Reports a form with scopes beside that without, and their ratio by parameters.
fn push(report: &mut Growing<'_>, case: &str, name: &str, with: &[f64], without: &[f64]) -> BoxPlot {
    let [times, times_without] = [with, without].map(|times| Timing::of(times.to_vec()));
    let most = TIMES_SLOWER_MAX * times_without.median;
    report.push(Row::time(SUITE.name(), case, name, times).beside(times_without.median).aiming_at(most));
    let values = ratios(without, with);
    let Timing { median, min, max } = Timing::of(values.clone());
    let row = Row::single(SUITE.name(), case, &format!("{name}: speedup by parameters"), Metric::Speedup, median, "×");
    report.push(row.between(min, max));
    BoxPlot { name: format!("{case}, {name}"), values }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_show_whether_they_have_scopes() {
        let database = mangrove::Database::in_memory();
        let set = QuerySet::named("banyan-cq");
        for query in &set.queries {
            let mut text = query.text.trim().to_owned();
            if MAY_HAVE_POLICY.contains(&&*query.name) {
                text = text.replacen("g.", &format!("g.with({BFS})."), 1);
            }
            assert!(has_scopes(&database.explain(&text).unwrap()), "{}", query.name);
            for (name, form) in &query.forms {
                let plan = database.explain(form.text.trim()).unwrap();
                assert_eq!(has_scopes(&plan), !name.contains(WITHOUT), "{}, {name}:\n{plan}", query.name);
            }
        }
    }
}
