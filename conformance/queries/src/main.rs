//! Runs the queries of a set, checks their answers, and prints the time of each on this machine.
//!
//! ```text
//! cargo run --release -p mangrove-queries                              all sets
//! cargo run --release -p mangrove-queries -- banyan-cq --query CQ4     one query
//! cargo run --release -p mangrove-queries -- ldbc-bi --python PYTHON   a set whose answers come from SQL
//! ```
//!
//! Times are of prepared queries, run inline on one thread after one warm-up run. They are times on development data,
//! not results of a benchmark. The exit code is 0 only if all answers are right.

use std::cell::LazyCell;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use comfy_table::Table;
use mangrove_queries::reference::{self, Graph};
use mangrove_queries::{DataSet, JsonParameters, Query, QuerySet, Runner, loaded, papers, published, sql};

/// Run query sets, check their answers and print their times.
#[derive(Parser)]
struct Arguments {
    /// The sets; all of them if none is named
    sets: Vec<String>,
    /// Run only the query with this name
    #[arg(long)]
    query: Option<String>,
    /// A Python with DuckDB, for the sets whose answers come from SQL; without it they are left out
    #[arg(long)]
    python: Option<PathBuf>,
    /// Run on scale factor 0.003 instead of 0.1; only the sets whose answers come from SQL have parameters for it
    #[arg(long, requires = "python")]
    small: bool,
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

    /// The names of the sets to run.
    fn set_names(&self) -> Vec<String> {
        let all: Vec<&str> = if self.small { sql::SETS.to_vec() } else { QuerySet::names().collect() };
        match self.sets.as_slice() {
            [] => all.into_iter().map(str::to_owned).collect(),
            named => named.to_vec(),
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let data = if arguments.small { DataSet::Small } else { DataSet::Tenth };
    // A machine without the data sets leaves these checks out.
    let Some(folder) = data.folder() else { return ExitCode::SUCCESS };
    let db = loaded(data, &folder);
    let graph = LazyCell::new(|| reference::load(&data.files(&folder)));
    let runner = Runner::new(&db).with_time_limit(arguments.seconds);
    let (mut right, mut wrong) = (0, 0);
    for set in arguments.set_names().iter().map(|name| QuerySet::named(name)) {
        if arguments.explain {
            explain(&arguments, &db, &set);
            continue;
        }
        let operations = match operations(&arguments, &set, data, &folder) {
            Ok(operations) => operations,
            Err(problem) => {
                eprintln!("{problem}");
                return ExitCode::FAILURE;
            }
        };
        let (asked, answered) = measure_set(&arguments, &runner, &graph, &set, &operations);
        (right, wrong) = (right + answered, wrong + asked - answered);
    }
    if !arguments.explain {
        println!("{right} passed, {wrong} failed");
    }
    if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The questions of a set that come with answers.
fn operations(
    arguments: &Arguments,
    set: &QuerySet,
    data: DataSet,
    folder: &Path,
) -> Result<Vec<published::Operation>, String> {
    match (sql::SETS.contains(&&*set.name), &arguments.python) {
        (true, Some(python)) => sql::answers(python, &data.files(folder)),
        (true, None) => {
            println!(
                "left out: {}, because its answers come from DuckDB; --python names a Python that has it",
                set.name
            );
            Ok(Vec::new())
        }
        (false, _) if arguments.small => Err(format!("{} has no parameters for {}", set.name, data.name())),
        (false, _) if set.name == "ldbc-interactive" => published::complex_reads(folder),
        (false, _) => Ok(Vec::new()),
    }
}

/// Prints the plans of a set's reads.
fn explain(arguments: &Arguments, db: &mangrove::Database, set: &QuerySet) {
    for query in set.queries.iter().filter(|query| arguments.wants(query) && !query.text.is_empty()) {
        let plan = db.explain(query.text.trim()).unwrap_or_else(|error| error.to_string());
        println!("{} {}\n{}\n{plan}\n", set.name, query.name, query.text.trim());
    }
}

/// Runs all queries of a set and prints a table. Returns the numbers of questions and of right answers.
fn measure_set(
    arguments: &Arguments,
    runner: &Runner<'_>,
    graph: &LazyCell<Graph, impl FnOnce() -> Graph>,
    set: &QuerySet,
    operations: &[published::Operation],
) -> (usize, usize) {
    let mut table = Table::new();
    table
        .load_preset(comfy_table::presets::NOTHING)
        .set_header(["query", "asked", "right", "min ms", "mean ms", "max ms"]);
    let (mut asked, mut answered) = (0, 0);
    for query in set.queries.iter().filter(|query| arguments.wants(query)) {
        let questions = questions(set, query, operations);
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
        (asked, answered) = (asked + questions.len(), answered + right);
        table.add_row(row(query, questions.len(), right, &times));
    }
    println!("{} ({})\n{table}\n", set.name, set.source);
    (asked, answered)
}

/// The parameters of a query, each with its answer if it came with one.
fn questions(
    set: &QuerySet,
    query: &Query,
    operations: &[published::Operation],
) -> Vec<(JsonParameters, Option<Vec<serde_json::Value>>)> {
    let own = set.parameters_of(query).iter().map(|given| (given.clone(), None));
    let given = operations.iter().filter(|operation| operation.query == query.name);
    own.chain(given.map(|operation| (operation.parameters.clone(), operation.answer.clone()))).collect()
}

fn check_published(
    runner: &Runner<'_>,
    query: &Query,
    given: &JsonParameters,
    expected: &[serde_json::Value],
) -> Result<(), String> {
    let rows = runner.answer(query, given).map_err(|error| format!("{} of {given:?}: {error}", query.name))?;
    match mangrove_queries::difference(&rows, expected, &published::comparison(query), &query.unordered) {
        Some(problem) => Err(format!("{} of {given:?}: {problem}", query.name)),
        None => Ok(()),
    }
}

/// The time of one run, or `None` if it failed or passed the time limit.
#[allow(clippy::disallowed_methods, reason = "a program that measures looks at the clock")]
fn time(runner: &Runner<'_>, query: &Query, given: &JsonParameters) -> Option<Duration> {
    let begin = Instant::now();
    runner.answer(query, given).ok().map(|_| begin.elapsed())
}

fn row(query: &Query, asked: usize, right: usize, times: &[Duration]) -> Vec<String> {
    let ms = |time: Option<Duration>| time.map_or("-".to_owned(), |time| format!("{:.3}", time.as_secs_f64() * 1000.0));
    let mean = times.iter().sum::<Duration>().checked_div(u32::try_from(times.len()).unwrap_or(u32::MAX));
    let cells = [ms(times.iter().min().copied()), ms(mean), ms(times.iter().max().copied())];
    [query.name.clone(), asked.to_string(), right.to_string()].into_iter().chain(cells).collect()
}
