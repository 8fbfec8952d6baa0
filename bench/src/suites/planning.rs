//! The time of planning: of a traversal that is new, and of one whose plan is in the cache.
//!
//! | variant | what is timed |
//! |---|---|
//! | planned anew | from bytecode to the plan: compiling, rewriting, and the choices by statistics |
//! | known shape | bytecode whose shape is in the cache: its literals are taken out, and their guards tested |
//! | known text | a text that is in the cache |
//! | new text of a known shape | a text that is parsed, and finds its plan by its shape |
//!
//! Planning may take 50 µs if the run is short, or else 2 % of the run. A plan of the cache may take 5 µs.

use std::time::Instant;

use mangrove::{Database, Parameters, Prepared, Result};
use mangrove_gremlin::Terminal;

use super::Context;
use super::plans::{all_of, bytecode_of};
use crate::harness::Timing;
use crate::options::Suite;
use crate::queries::asked::Asked;
use crate::queries::network::Network;
use crate::report::{Growing, Row};

const SUITE: Suite = Suite::Planning;

/// How often a query is planned, and looked up. A run that measures nothing does so a few times.
const PLANNED_COUNT: usize = 200;
const PLANNED_COUNT_OF_TESTS: usize = 2;

/// The pass mark of planning: this many nanoseconds, or this part of the run if that is more.
const PLANNING_NANOS: f64 = 50_000.0;
const PLANNING_SHARE: f64 = 0.02;

/// The pass mark of a plan that is in the cache, in nanoseconds.
const HIT_NANOS: f64 = 5_000.0;

/// The most runs of a query that are timed, and the seconds after which no further one is.
const RUNS_MAX: usize = 5;
const RUN_SECONDS_MAX: f64 = 1.0;

/// The variant by which `--only` selects queries.
const ANEW: &str = "planned anew";

pub(super) fn run(context: &Context<'_>, report: &mut Growing<'_>) -> Result<()> {
    Network::each(context.options, SUITE, report, &|network, report| {
        let database = &network.replicas.smallest().database;
        database.measure_statistics(&mut || Ok(()))?;
        let count = if context.options.seconds > 0.0 { PLANNED_COUNT } else { PLANNED_COUNT_OF_TESTS };
        let mut all = Totals::default();
        for asked in all_of(network, report)? {
            if context.options.wants(&asked.case, ANEW) {
                all.measure(database, &asked, count, report)?;
            }
        }
        all.show(&network.name, report);
        Ok(())
    })
}

/// The figures of all queries of a network.
#[derive(Default)]
struct Totals {
    planned: Vec<f64>,
    misses: Vec<String>,
    known_shape: Vec<f64>,
    known_text: Vec<f64>,
    new_text: Vec<f64>,
}

impl Totals {
    fn measure(&mut self, database: &Database, asked: &Asked, count: usize, report: &mut Growing<'_>) -> Result<()> {
        let bytecode = bytecode_of(asked)?;
        let run = run_nanos(database, asked)?;
        let planned = times(count, &mut || database.make_plan(&Prepared::new(&bytecode, Terminal::None)?))?;
        let mark = PLANNING_NANOS.max(PLANNING_SHARE * run);
        if planned.median > mark {
            self.misses.push(asked.case.clone());
        }
        self.planned.push(planned.median);
        report.push(Row::time(SUITE.name(), &asked.case, ANEW, planned).beside(run).aiming_at(mark));

        database.prepare_bytecode(&bytecode)?;
        self.known_shape.push(times(count, &mut || database.prepare_bytecode(&bytecode).map(drop))?.median);
        database.prepare(&asked.text)?;
        self.known_text.push(times(count, &mut || database.prepare(&asked.text).map(drop))?.median);
        self.new_text.push(new_texts(database, &asked.text, count)?.median);
        Ok(())
    }

    /// Shows the figures of all queries together.
    fn show(self, network: &str, report: &mut Growing<'_>) {
        let name = SUITE.name();
        let variants = [
            (ANEW, self.planned, None),
            ("known shape", self.known_shape, Some(HIT_NANOS)),
            ("known text", self.known_text, Some(HIT_NANOS)),
            ("new text of a known shape", self.new_text, None),
        ];
        for (variant, nanos, mark) in variants {
            if !nanos.is_empty() {
                let case = format!("{network}, all queries");
                report.push(Row::time(name, &case, variant, Timing::of(nanos)).aiming_at(mark));
            }
        }
        if !self.misses.is_empty() {
            report.note(name, format!("Planned slower than the mark: {}.", self.misses.join("; ")));
        }
    }
}

/// Returns the median time of a run with its plan, on the thread of the client, in nanoseconds.
fn run_nanos(database: &Database, asked: &Asked) -> Result<f64> {
    let prepared = Prepared::new(&bytecode_of(asked)?, Terminal::None)?;
    database.make_plan(&prepared)?;
    let begin = Instant::now();
    let mut nanos = Vec::new();
    for run in asked.runs.iter().cycle().take(RUNS_MAX.max(asked.runs.len())) {
        let begin_run = Instant::now();
        drain(database, &prepared, &run.parameters)?;
        nanos.push(begin_run.elapsed().as_nanos() as f64);
        if begin.elapsed().as_secs_f64() > RUN_SECONDS_MAX {
            break;
        }
    }
    Ok(Timing::of(nanos).median)
}

fn drain(database: &Database, prepared: &Prepared, parameters: &Parameters) -> Result<()> {
    let mut results = database.run(prepared, parameters)?;
    while results.next_batch()?.is_some() {}
    Ok(())
}

/// The times of texts that differ from a known one in a space at the end. Their shape is known.
fn new_texts(database: &Database, text: &str, count: usize) -> Result<Timing> {
    let mut text = text.to_owned();
    times(count, &mut || {
        text.push(' ');
        database.prepare(&text).map(drop)
    })
}

/// Times an operation `count` times, in nanoseconds.
fn times(count: usize, operation: &mut dyn FnMut() -> Result<()>) -> Result<Timing> {
    let mut nanos = Vec::with_capacity(count);
    for _ in 0..count {
        let begin = Instant::now();
        operation()?;
        nanos.push(begin.elapsed().as_nanos() as f64);
    }
    Ok(Timing::of(nanos))
}
