//! Runs the queries of a set, checks their answers, and prints the time of each on this machine.
//!
//! ```text
//! cargo run --release -p mangrove-queries                              all sets
//! cargo run --release -p mangrove-queries -- banyan-cq --query CQ4     one query
//! ```
//!
//! Times are of prepared queries, run inline on one thread after one warm-up run. They are times on development data,
//! not results of a benchmark. The exit code is 0 only if all answers are right.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use comfy_table::Table;
use mangrove_queries::reference::{self, Graph};
use mangrove_queries::{DataSet, JsonParameters, Query, QuerySet, Runner, loaded, papers, published};

/// Run query sets, check their answers and print their times.
#[derive(Parser)]
struct Arguments {
    /// The sets; all of them if none is named
    sets: Vec<String>,
    /// Run only the query with this name
    #[arg(long)]
    query: Option<String>,
    /// The time limit of one run, in seconds
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Print the plans, and run nothing
    #[arg(long)]
    explain: bool,
    /// How many timed runs each query gets for each set of parameters
    #[arg(long, default_value_t = 3)]
    runs: u32,
}

impl Arguments {
    fn wants(&self, query: &Query) -> bool {
        self.query.as_ref().is_none_or(|name| *name == query.name)
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let Some(folder) = DataSet::Tenth.folder() else { return ExitCode::FAILURE };
    let db = loaded(DataSet::Tenth, &folder);
    let graph = reference::load(&DataSet::Tenth.files(&folder));
    let runner = Runner::new(&db).with_time_limit(arguments.seconds);
    let names: Vec<String> = match arguments.sets.as_slice() {
        [] => QuerySet::names().map(str::to_owned).collect(),
        named => named.to_vec(),
    };
    let published = match published::complex_reads(&folder) {
        Ok(published) => published,
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::FAILURE;
        }
    };
    let mut wrong = 0;
    for name in names {
        if arguments.explain {
            explain(&arguments, &db, &QuerySet::named(&name));
            continue;
        }
        wrong += measure_set(&arguments, &runner, &graph, &QuerySet::named(&name), &published);
    }
    if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints the plans of a set's reads.
fn explain(arguments: &Arguments, db: &mangrove::Database, set: &QuerySet) {
    for query in set.queries.iter().filter(|query| arguments.wants(query) && !query.text.is_empty()) {
        let plan = db.explain(query.text.trim()).unwrap_or_else(|error| error.to_string());
        println!("{} {}\n{}\n{plan}\n", set.name, query.name, query.text.trim());
    }
}

/// Runs all queries of a set and prints a table; returns the number of wrong answers.
fn measure_set(
    arguments: &Arguments,
    runner: &Runner<'_>,
    graph: &Graph,
    set: &QuerySet,
    published: &[published::Operation],
) -> usize {
    let mut table = Table::new();
    table
        .load_preset(comfy_table::presets::NOTHING)
        .set_header(["query", "asked", "right", "min ms", "mean ms", "max ms"]);
    let mut wrong = 0;
    for query in set.queries.iter().filter(|query| arguments.wants(query)) {
        let questions = questions(set, query, published);
        let mut times = Vec::new();
        let mut right = 0;
        for (given, expected) in &questions {
            let checked = match expected {
                Some(expected) => check_published(runner, query, given, expected),
                None => papers::check(runner, graph, set, query, given).map(drop),
            };
            match checked {
                Ok(()) => right += 1,
                Err(problem) => eprintln!("{problem}"),
            }
            times.extend((0..arguments.runs).filter_map(|_| time(runner, query, given)));
        }
        wrong += questions.len() - right;
        table.add_row(row(query, questions.len(), right, &times));
    }
    println!("{} ({})\n{table}\n", set.name, set.source);
    wrong
}

/// The parameters of a query, each with its published answer if it has one.
fn questions(
    set: &QuerySet,
    query: &Query,
    published: &[published::Operation],
) -> Vec<(JsonParameters, Option<Vec<serde_json::Value>>)> {
    let own = set.parameters_of(query).iter().map(|given| (given.clone(), None));
    let published =
        published.iter().filter(|operation| set.name == "ldbc-interactive" && operation.query == query.name);
    own.chain(published.map(|operation| (operation.parameters.clone(), operation.answer.clone()))).collect()
}

fn check_published(
    runner: &Runner<'_>,
    query: &Query,
    given: &JsonParameters,
    expected: &[serde_json::Value],
) -> Result<(), String> {
    let rows = runner.ask(query, given).map_err(|error| format!("{} of {given:?}: {error}", query.name))?;
    match mangrove_queries::difference(&rows, expected, &published::comparison(query), &query.unordered) {
        Some(problem) => Err(format!("{} of {given:?}: {problem}", query.name)),
        None => Ok(()),
    }
}

/// The time of one run, or `None` if it failed or passed the time limit.
#[allow(clippy::disallowed_methods, reason = "a program that measures looks at the clock")]
fn time(runner: &Runner<'_>, query: &Query, given: &JsonParameters) -> Option<Duration> {
    let begin = Instant::now();
    let answered = match query.shows {
        Some(_) => runner.try_write(query, given),
        None => runner.ask(query, given),
    };
    answered.ok().map(|_| begin.elapsed())
}

fn row(query: &Query, asked: usize, right: usize, times: &[Duration]) -> Vec<String> {
    let ms = |time: Option<Duration>| time.map_or("-".to_owned(), |time| format!("{:.3}", time.as_secs_f64() * 1000.0));
    let mean = times.iter().sum::<Duration>().checked_div(u32::try_from(times.len()).unwrap_or(u32::MAX));
    let cells = [ms(times.iter().min().copied()), ms(mean), ms(times.iter().max().copied())];
    [query.name.clone(), asked.to_string(), right.to_string()].into_iter().chain(cells).collect()
}
