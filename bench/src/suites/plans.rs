//! The orders of walks and patterns that the planner chooses, beside others that it could have chosen.
//!
//! For each query of the papers and of LDBC, the *chosen* plan is timed beside the plan of the written order, and beside
//! plans of orders that seeds draw among all that are possible. An order that makes the same plan as another one is not
//! timed again. All run on the thread of the client. An order that takes much longer than the chosen one is cut off,
//! because it cannot be the best.
//!
//! The plan *without optimization* follows the steps one by one (Grasper, Table 8). No rewriting, index or order of the planner
//! helps it, so it is cut off later.
//!
//! The rows that the planner expects of its order are shown beside those that were counted, if the query is a count.

use std::collections::HashSet;
use std::time::Instant;

use mangrove::{Database, PlanOptions, Planner, Prepared, Result, Value};
use mangrove_gremlin::{Bytecode, ParseOptions, Statement, Terminal, parse_one};
use mangrove_queries::QuerySet;

use super::{Context, reads};
use crate::harness::{REPETITION_COUNT, Schedule, Timing, wrong};
use crate::options::{Options, Suite};
use crate::queries::asked::Asked;
use crate::queries::drawn::Drawn;
use crate::queries::network::Network;
use crate::queries::station::{Place, Station};
use crate::report::{Growing, Metric, Row};

const SUITE: Suite = Suite::Plans;

/// The sets whose queries are planned.
const SETS: [&str; 5] = ["lsqb", "patterns", "gtran-templates", "banyan-cq", "grasper"];

/// The seeds that draw orders. A run that measures nothing takes a few.
const SEED_COUNT: u64 = 32;
const SEED_COUNT_OF_TESTS: u64 = 3;

/// An order is cut off after this many times the time of the chosen one, and this many seconds more.
const CUT_OFF: (f64, f64) = (3.0, 0.002);

/// The plan without optimization is cut off after this many seconds.
const PLAIN_SECONDS_MAX: f64 = 0.5;

/// After this many seconds, no further order of a query is tried.
const CASE_SECONDS_MAX: f64 = 4.0;

/// The pass mark: the chosen order takes at most this many times as long as the best one.
const TIMES_BEST: f64 = 1.3;

/// The pass mark of all queries: the percentage that may miss [`TIMES_BEST`].
const MISSES_MAX: f64 = 5.0;

/// The variant by which `--only` selects queries.
const CHOSEN: &str = "chosen";

const PLAIN: &str = "without optimization";

pub(super) fn run(context: &Context<'_>, report: &mut Growing<'_>) -> Result<()> {
    Network::each(context.options, SUITE, report, &|network, report| {
        let database = &network.replicas.smallest().database;
        database.measure_statistics(&mut || Ok(()))?;
        let (mut asked_count, mut misses) = (0, Vec::new());
        for asked in all_of(network, report)? {
            if !context.options.wants(&asked.case, CHOSEN) {
                continue;
            }
            let times_best = compare(context.options, database, &asked, report)?;
            asked_count += 1;
            if times_best > TIMES_BEST {
                misses.push(asked.case);
            }
        }
        if asked_count > 0 {
            let share = 100.0 * misses.len() as f64 / f64::from(asked_count);
            let variant = format!("missed {TIMES_BEST} times the best");
            let row = Row::single(SUITE.name(), &network.name, &variant, Metric::Share, share, "%");
            report.push(row.aiming_at(MISSES_MAX));
        }
        if !misses.is_empty() {
            report.note(SUITE.name(), format!("Slower than {TIMES_BEST} times the best order: {}.", misses.join("; ")));
        }
        Ok(())
    })
}

/// Returns the queries for a network, with their answers.
pub(super) fn all_of(network: &Network, report: &mut Growing<'_>) -> Result<Vec<Asked>> {
    let drawn = Drawn::of(&network.reference);
    let mut all = Vec::new();
    for set in SETS.map(QuerySet::named) {
        let queries = set.queries.iter().filter(|query| !query.slow);
        all.extend(queries.filter_map(|query| Asked::of_paper(network, &drawn, &set, query)));
    }
    all.extend(reads::of_ldbc(network, Suite::ShortReads, report)?);
    all.extend(reads::of_ldbc(network, Suite::ComplexReads, report)?);
    Ok(all)
}

/// Times a query in the chosen order and in others. Returns the time of the chosen one divided by that of the best.
fn compare(options: &Options, database: &Database, asked: &Asked, report: &mut Growing<'_>) -> Result<f64> {
    let planning = Planning { database, asked, bytecode: bytecode_of(asked)? };
    let plan = planning.plan(Planner::Greedy)?;
    let chosen = planning.station(Planner::Greedy)?;
    let counts = chosen.check(asked, Place::Client)?;
    let turns = Turns::new(asked, &counts, &chosen, Schedule::of(options).slice_seconds)?;

    let begin = Instant::now();
    let seeds = if options.seconds > 0.0 { SEED_COUNT } else { SEED_COUNT_OF_TESTS };
    let mut plans = HashSet::from([plan.operators.clone()]);
    let mut best: Option<Compared> = None;
    for planner in std::iter::once(Planner::Written).chain((1..=seeds).map(Planner::Forced)) {
        if begin.elapsed().as_secs_f64() > CASE_SECONDS_MAX {
            break;
        }
        let other = planning.plan(planner)?;
        // The order of some traversals is fixed.
        let is_drawn = other.order.starts_with("by seed");
        if (planner == Planner::Written || is_drawn)
            && plans.insert(other.operators)
            && let Some(compared) = turns.compare(&planning.station(planner)?, planner)?
            && best.as_ref().is_none_or(|best| compared.chosen_to_other() > best.chosen_to_other())
        {
            best = Some(compared);
        }
    }
    let others = plans.len() - 1;
    let name = SUITE.name();
    match &best {
        None => report.push(Row::time(name, &asked.case, CHOSEN, turns.chosen_alone()?)),
        Some(best) => {
            let limit = best.other.median;
            report.push(Row::time(name, &asked.case, CHOSEN, best.chosen).beside(limit).aiming_at(limit * TIMES_BEST));
            let way = if best.planner == Planner::Written { "as written" } else { "drawn" };
            report.push(Row::time(name, &asked.case, &format!("best of {others} others, {way}"), best.other));
        }
    }
    if options.seconds > 0.0 {
        let plain = Station::of(database, planning.plain()?);
        match turns.plain(&plain)? {
            Some(timing) => {
                let chosen = best.as_ref().map_or(turns.chosen_alone()?.median, |best| best.chosen.median);
                report.push(Row::time(name, &asked.case, PLAIN, timing).beside(chosen));
            }
            None => report.note(name, format!("{}: cut off without optimization.", asked.case)),
        }
    }
    if let Some((expected, counted)) = plan.expected_rows().zip(planning.counted()?) {
        let (expected, counted) = (expected.max(1.0), counted.max(1.0));
        let times = (expected / counted).max(counted / expected);
        report.push(Row::single(name, &asked.case, "expected rows are off by", Metric::Ratio, times, "×"));
    }
    Ok(best.map_or(1.0, |best| best.chosen_to_other()))
}

/// A query that is planned in several ways.
struct Planning<'a> {
    database: &'a Database,
    asked: &'a Asked,
    bytecode: Bytecode,
}

/// What `explain()` says.
struct Explained {
    /// How the order was chosen; empty if there is nothing to choose.
    order: String,
    /// The operators.
    operators: String,
}

impl Planning<'_> {
    fn prepared(&self, terminal: Terminal, planner: Planner) -> Result<Prepared> {
        Prepared::with_options(&self.bytecode, terminal, PlanOptions { planner, ..PlanOptions::default() })
    }

    fn plain(&self) -> Result<Prepared> {
        Prepared::with_options(&self.bytecode, Terminal::None, PlanOptions::NONE)
    }

    fn station(&self, planner: Planner) -> Result<Station<'_>> {
        Ok(Station::of(self.database, self.prepared(Terminal::None, planner)?))
    }

    fn plan(&self, planner: Planner) -> Result<Explained> {
        let prepared = self.prepared(Terminal::Explain, planner)?;
        let rows = self.database.run(&prepared, &self.asked.runs[0].parameters)?.collect()?;
        let [Value::String(text)] = &rows[..] else {
            return Err(wrong(format!(
                "{}: explain() gives one text, and gave {} results",
                self.asked.case,
                rows.len()
            )));
        };
        let (order, operators): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.starts_with("order: "));
        let order = order.first().map_or("", |line| &line["order: ".len()..]);
        Ok(Explained { order: order.to_owned(), operators: operators.join("\n") })
    }

    /// Returns the result if it is the number of rows: the query ends with `count()` and drops no equal rows.
    fn counted(&self) -> Result<Option<f64>> {
        let steps = &self.bytecode.steps;
        let is_count =
            steps.last().is_some_and(|step| step.name == "count") && steps.iter().all(|step| step.name != "dedup");
        let mut rows = Vec::new();
        if is_count {
            let station = self.station(Planner::Greedy)?;
            station.each(&self.asked.runs[0].parameters, Place::Client, &mut |value, _| rows.push(value.clone()))?;
        }
        Ok(match rows[..] {
            [Value::I64(count)] => Some(count as f64),
            _ => None,
        })
    }
}

impl Explained {
    /// Returns how many rows the planner expects after the last hop, if it says so.
    fn expected_rows(&self) -> Option<f64> {
        let (_, rows) = self.order.split_once("expected rows ")?;
        rows.split(';').next()?.rsplit(", ").next()?.trim().parse().ok()
    }
}

/// Returns the traversal of a query.
pub(super) fn bytecode_of(asked: &Asked) -> Result<Bytecode> {
    match parse_one(&asked.text, &ParseOptions::default())? {
        Statement::Traversal { bytecode, .. } => Ok(bytecode),
        _ => Err(wrong(format!("{}: the query is no traversal", asked.case))),
    }
}

/// Runs the chosen plan and another one in turns.
struct Turns<'a> {
    asked: &'a Asked,
    counts: &'a [u64],
    chosen: &'a Station<'a>,
    /// How often a repetition runs the query with all its parameters.
    passes: u64,
    /// The seconds after which a run of another plan is cut off.
    cut_off: f64,
}

/// The times of the chosen plan and of another one, in nanoseconds a run.
struct Compared {
    planner: Planner,
    chosen: Timing,
    other: Timing,
}

impl Compared {
    fn chosen_to_other(&self) -> f64 {
        self.chosen.median / self.other.median
    }
}

impl<'a> Turns<'a> {
    fn new(asked: &'a Asked, counts: &'a [u64], chosen: &'a Station<'a>, seconds: f64) -> Result<Self> {
        let mut turns = Turns { asked, counts, chosen, passes: 1, cut_off: f64::MAX };
        let once = (0..REPETITION_COUNT).map(|_| turns.seconds(chosen)).collect::<Result<Vec<_>>>()?;
        let once = Timing::of(once).median;
        turns.cut_off = once * CUT_OFF.0 + CUT_OFF.1;
        turns.passes = ((seconds / once.max(1e-9)) as u64).max(1);
        Ok(turns)
    }

    /// Returns the seconds of a repetition.
    fn seconds(&self, station: &Station<'_>) -> Result<f64> {
        let begin = Instant::now();
        station.pass(self.asked, self.counts, Place::Client, self.passes)?;
        Ok(begin.elapsed().as_secs_f64())
    }

    fn timing(&self, seconds: Vec<f64>) -> Timing {
        let nanos = 1e9 / (self.passes * self.asked.runs.len() as u64) as f64;
        Timing::of(seconds.into_iter().map(|seconds| seconds * nanos).collect())
    }

    fn chosen_alone(&self) -> Result<Timing> {
        Ok(self.timing((0..REPETITION_COUNT).map(|_| self.seconds(self.chosen)).collect::<Result<_>>()?))
    }

    /// Checks the answers of the plan without optimization and times it. `None` if it is cut off.
    fn plain(&self, plain: &Station<'_>) -> Result<Option<Timing>> {
        let mut samples = Vec::new();
        for _ in 0..REPETITION_COUNT {
            let Some(seconds) = plain.pass_within(self.asked, self.counts, PLAIN_SECONDS_MAX)? else {
                return Ok(None);
            };
            samples.push(seconds * 1e9 / self.asked.runs.len() as f64);
            if seconds > PLAIN_SECONDS_MAX {
                break;
            }
        }
        plain.check(self.asked, Place::Client)?;
        Ok(Some(Timing::of(samples)))
    }

    /// Checks the answers of another plan and times it. `None` if it is cut off.
    fn compare(&self, other: &Station<'_>, planner: Planner) -> Result<Option<Compared>> {
        let Some(seconds) = other.pass_within(self.asked, self.counts, self.cut_off)? else { return Ok(None) };
        if seconds > self.cut_off {
            return Ok(None);
        }
        other.check(self.asked, Place::Client)?;
        let mut samples = [Vec::new(), Vec::new()];
        for round in 0..REPETITION_COUNT {
            for turn in 0..2 {
                let way = (round + turn) % 2;
                samples[way].push(self.seconds([self.chosen, other][way])?);
            }
        }
        let [chosen, other] = samples.map(|samples| self.timing(samples));
        Ok(Some(Compared { planner, chosen, other }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_the_expected_rows_is_read() {
        let expected = |order: &str| Explained { order: order.to_owned(), operators: String::new() }.expected_rows();
        assert_eq!(expected("by statistics; expected rows 1100, 34000, 340; as written 1100, 98000"), Some(340.0));
        assert_eq!(expected("as written; expected rows 7"), Some(7.0));
        assert_eq!(expected("by seed 3"), None);
        assert_eq!(expected(""), None);
    }
}
