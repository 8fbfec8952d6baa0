//! The cost of scope instances (Banyan, figure 5c): CQ3, CQ5 and CQ6 read to the end, and 1 to 1,000,000 instances of one
//! scope.
//!
//! *To the end* means that nothing is canceled: there is no limit, and every test counts all its results. Both forms of a
//! question then read the same lists, one of them in scopes. There is one exception, which favors scopes: a test that
//! has met a person before takes the answer from then. The texts of the queries are in
//! `conformance/queries/sets/banyan-cq.toml`.
//!
//! The rows of one message that enter a scope are instances of one group, and few groups are open at a time. Memory is what the query is charged for: the least limit with which
//! it runs to its end, found by bisection.

use mangrove::{Database, ErrorKind, Parameters, QueryLimits, QueryOptions, Result, Value};
use mangrove_generate::random::{below, mix};
use mangrove_queries::QuerySet;

use super::Context;
use super::scopes::{form_of, has_scopes, on_all_cores};
use crate::harness::{Schedule, Timing, measure_alone, wrong};
use crate::options::{Scale, Suite};
use crate::people::{self, PeopleContent, PeopleNames};
use crate::queries::asked::Asked;
use crate::queries::drawn::Drawn;
use crate::queries::forms;
use crate::queries::network::Network;
use crate::queries::station::Place;
use crate::report::{Growing, Metric, Row};
use crate::social::{KNOWS, ends, load_edges};

const SUITE: Suite = Suite::Instances;

/// The forms of a query in its set.
const TO_THE_END: &str = "to the end";
const WITHOUT: &str = "to the end, without scopes";

/// The cost of instances in the paper, without a limit on their number.
const TIMES_SLOWER_MAX: f64 = 1.25;

/// Edges of each vertex.
const DEGREE: u64 = 8;

pub(super) fn run(context: &Context<'_>, report: &mut Growing<'_>) -> Result<()> {
    queries(context, report)?;
    counted(context, report)
}

/// The paper's queries, read to the end with scopes and without.
fn queries(context: &Context<'_>, report: &mut Growing<'_>) -> Result<()> {
    let set = QuerySet::named("banyan-cq");
    Network::each(&on_all_cores(context.options), SUITE, report, &|network, report| {
        let drawn = Drawn::of(&network.reference);
        for query in set.queries.iter().filter(|query| query.forms.contains_key(TO_THE_END)) {
            let case = Asked::case(network, query);
            if !context.options.wants(&case, TO_THE_END) {
                continue;
            }
            let Some(asked) = Asked::of_paper(network, &drawn, &set, query) else {
                report.note(SUITE.name(), format!("{case} was left out: there are no parameters."));
                continue;
            };
            let pair = [form_of(&asked, query, TO_THE_END)?, form_of(&asked, query, WITHOUT)?];
            let database = &network.replicas.smallest().database;
            // On the thread of the client, so that the times are work and not its distribution.
            let times = forms::measure(context.options, database, &pair, Place::Client)?;
            let [with, without] = [0, 1].map(|form| Timing::of(times[form].clone()));
            report.push(Row::time(SUITE.name(), &case, WITHOUT, without));
            report.push(Row::time(SUITE.name(), &case, TO_THE_END, with).beside(without.median));
            let Timing { median, min, max } = Timing::of(forms::ratios(&times[0], &times[1]));
            let row = Row::single(SUITE.name(), &case, "times by parameters", Metric::Ratio, median, "×");
            report.push(row.between(min, max).aiming_at(TIMES_SLOWER_MAX));
        }
        Ok(())
    })
}

/// A question about the first N people, answered by one number.
struct Counted {
    name: &'static str,
    /// The steps after the people.
    steps: &'static str,
    /// The answer for each person.
    each: u64,
    has_scope: bool,
}

/// All read the ages of eight friends of each person, except the first, which reads that of the person, and *canceled*,
/// which needs one.
const COUNTED: [Counted; 5] = [
    Counted { name: "filter without a hop", steps: "has('age', gte(0))", each: 1, has_scope: false },
    Counted { name: "hop and filter", steps: "out('knows').has('age', gte(0))", each: DEGREE, has_scope: false },
    Counted { name: "canceled", steps: "where(out('knows').has('age', gte(0)))", each: 1, has_scope: true },
    Counted { name: "nothing found", steps: "where(out('knows').has('age', lt(0)))", each: 0, has_scope: true },
    Counted {
        name: "counted to the end",
        steps: "where(out('knows').has('age', gte(0)).count().is(without(0)))",
        each: 1,
        has_scope: true,
    },
];

/// The variant beside which those with scopes are shown.
const BESIDE: usize = 1;

/// Measures [`COUNTED`] for numbers of instances that are powers of ten.
fn counted(context: &Context<'_>, report: &mut Growing<'_>) -> Result<()> {
    let instances_max: u64 = match context.options.scale {
        Scale::Tiny => 1_000,
        Scale::Small => 100_000,
        _ => 1_000_000,
    };
    let powers = (0..=6).map(|power| 10u64.pow(power)).filter(|count| *count <= instances_max);
    let cases: Vec<(u64, String)> = powers.map(|count| (count, format!("{count} instances"))).collect();
    if !cases.iter().any(|(_, case)| COUNTED.iter().any(|one| context.options.wants(case, one.name))) {
        return Ok(());
    }
    let database = people_with_friends(instances_max)?;
    for (count, case) in cases {
        let mut beside = None;
        for (at, one) in COUNTED.iter().enumerate() {
            if !context.options.wants(&case, one.name) {
                continue;
            }
            // On one thread, so that the time is the work.
            let script = format!("g.with('parallel', 1).V().hasLabel('person').limit({count}).{}.count()", one.steps);
            let plan = database.explain(&script)?;
            if has_scopes(&plan) != one.has_scope {
                return Err(wrong(format!("{case}, {}: the plan is\n{plan}", one.name)));
            }
            let query = Instanced { database: &database, script, expected: one.each * count };
            let timing = query.time(context)?.divided_by(count as f64);
            let bytes = query.charged_bytes()?;
            let limit = beside.filter(|_| one.has_scope);
            let row = Row::time(SUITE.name(), &case, one.name, timing).with("charged", bytes as f64, "B");
            report.push(row.beside(limit));
            let row =
                Row::single(SUITE.name(), &case, &format!("{}: memory", one.name), Metric::Size, bytes as f64, "B");
            report.push(row.with("by_instance", bytes as f64 / count as f64, "B"));
            if at == BESIDE {
                beside = Some(timing.median);
            }
        }
    }
    report.note(
        SUITE.name(),
        "Times of rows `N instances` are nanoseconds an instance: the time of the query divided by N. \
        Their limit is the hop and filter without a scope."
            .into(),
    );
    Ok(())
}

/// People who each know eight others.
fn people_with_friends(count: u64) -> Result<Database> {
    let database = Database::in_memory();
    let knows = database.catalog().intern_label_text(KNOWS);
    let batches = people::batches(&database, count as usize, PeopleContent::AllProperties);
    let mut loader = database.bulk_load()?;
    let vertices = people::load(&mut loader, PeopleNames::of(&database).person, &batches)?;
    let friend = |person: u64, at: u64| below(mix(person * DEGREE + at), count) as u32;
    let edges: Vec<(u32, u32)> =
        (0..count).flat_map(|person| (0..DEGREE).map(move |at| (person as u32, friend(person, at)))).collect();
    load_edges(&mut loader, knows, &ends(&vertices, &edges))?;
    loader.finish()?;
    Ok(database)
}

/// A query that returns one number.
struct Instanced<'a> {
    database: &'a Database,
    script: String,
    expected: u64,
}

/// Queries without a limit of memory are measured with this one. None of them needs as much.
const MEMORY_MAX: u64 = 1 << 30;

/// The precision of [`Instanced::charged_bytes`].
const MEMORY_STEP: u64 = 1 << 10;

impl Instanced<'_> {
    /// Runs the query within this limit of memory, and checks its answer.
    fn ask(&self, prepared: &mangrove::Prepared, memory_bytes: u64) -> Result<u64> {
        let limits = QueryLimits { memory_bytes, ..QueryLimits::default() };
        let options = QueryOptions { limits, ..QueryOptions::default() };
        let answer = self.database.run_with(prepared, &Parameters::new(), &options)?.collect()?;
        match answer[..] {
            [Value::I64(found)] if found as u64 == self.expected => Ok(self.expected),
            _ => Err(wrong(format!("{}: {answer:?} instead of {}", self.script, self.expected))),
        }
    }

    fn time(&self, context: &Context<'_>) -> Result<Timing> {
        let prepared = self.database.prepare(&self.script)?;
        let schedule = Schedule::of(context.options).alone();
        measure_alone(schedule, &mut |_| self.ask(&prepared, MEMORY_MAX))
    }

    /// The least limit of memory with which the query runs to its end.
    fn charged_bytes(&self) -> Result<u64> {
        let prepared = self.database.prepare(&self.script)?;
        let (mut too_little, mut enough) = (0, MEMORY_MAX);
        while enough - too_little > MEMORY_STEP {
            // Most queries need little: look there first.
            let middle = if too_little == 0 { enough / 8 } else { too_little.midpoint(enough) };
            match self.ask(&prepared, middle) {
                Ok(_) => enough = middle,
                Err(error) if error.kind() == ErrorKind::MemoryLimit => too_little = middle,
                Err(error) => return Err(error),
            }
        }
        Ok(enough)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_a_query_is_the_least_limit_that_it_needs() {
        let database = Database::in_memory();
        let script = "g.inject(1).repeat(union(identity(), identity())).times(12).fold().count(local)".to_owned();
        let query = Instanced { database: &database, script, expected: 1 << 12 };
        let prepared = database.prepare(&query.script).unwrap();
        let bytes = query.charged_bytes().unwrap();
        assert!(query.ask(&prepared, bytes).is_ok());
        assert_eq!(query.ask(&prepared, bytes - 2 * MEMORY_STEP).unwrap_err().kind(), ErrorKind::MemoryLimit);
    }
}
