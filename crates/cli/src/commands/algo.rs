//! `mangrove algo`: graph algorithms on a graph that this program opens.

use std::io::{self, Write};

use mangrove::registry::{ALGORITHMS, COMMON, ColumnInfo, ColumnKind, OptionInfo, find};
use mangrove::{Error, Value};

use crate::args::AlgoArgs;
use crate::clock::Stopwatch;
use crate::connection::graphs;
use crate::{Failure, output};

/// Runs an algorithm and prints its rows, or prints all algorithms.
pub fn run(args: &AlgoArgs) -> Result<(), Failure> {
    let Some(name) = args.name.as_deref().filter(|_| !args.list) else { return list() };
    // Before a large graph is opened in vain.
    find(name)?;
    let options = args.options.iter().map(|given| option(given)).collect::<Result<Vec<_>, Error>>()?;
    let missing = if args.load.is_empty() { graphs::Missing::ReadOnly } else { graphs::Missing::Refuse };
    let database = graphs::open(args.data.as_deref(), None, missing)?;
    if !args.load.is_empty() {
        graphs::load(&database, &args.load, &graphs::load_options(args.map.as_deref())?)?;
    }
    let stopwatch = Stopwatch::start();
    let rows = database.run_algorithm(name, &options, args.threads)?;
    let elapsed = stopwatch.elapsed();
    let algorithm = rows.algorithm();
    let row = |values: Vec<Value>| {
        let names = algorithm.columns.iter().map(|column| Value::from(column.name));
        Value::map(names.zip(values).collect())
    };
    let mut out = io::stdout().lock();
    let count = match args.top {
        None => output::print(&mut rows.map(|found| found.map(row)), args.format, &mut out)?,
        Some(top) => {
            let is_number = |column: &ColumnInfo| matches!(column.kind, ColumnKind::Counts | ColumnKind::Numbers);
            let Some(by) = algorithm.columns.iter().position(is_number) else {
                let message = format!("{name} has no column of numbers, of which --top would take the largest");
                return Err(Error::invalid(message).into());
            };
            let mut all = rows.collect::<mangrove::Result<Vec<_>>>()?;
            all.sort_by(|one, other| number(&other[by]).total_cmp(&number(&one[by])));
            all.truncate(top);
            output::print(&mut all.into_iter().map(|found| Ok(row(found))), args.format, &mut out)?
        }
    };
    out.flush()?;
    eprintln!("{}", output::summary(count, elapsed));
    Ok(())
}

fn number(value: &Value) -> f64 {
    match value {
        Value::F64(number) => *number,
        Value::I64(number) => *number as f64,
        _ => f64::NEG_INFINITY,
    }
}

/// Reads `NAME=VALUE`.
fn option(given: &str) -> Result<(String, Value), Error> {
    let Some((name, value)) = given.split_once('=') else {
        return Err(Error::invalid(format!("`{given}` is no option: write NAME=VALUE, as in rounds=20")));
    };
    let value = match value {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        text => match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(number), _) => Value::I64(number),
            (_, Ok(number)) => Value::F64(number),
            _ => Value::from(text),
        },
    };
    Ok((name.to_owned(), value))
}

fn list() -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    for algorithm in ALGORITHMS {
        let columns: Vec<&str> = algorithm.columns.iter().map(|column| column.name).collect();
        writeln!(out, "{}: {}; columns {}", algorithm.name, algorithm.summary, columns.join(", "))?;
        describe(algorithm.options, &mut out)?;
    }
    writeln!(out, "all algorithms:")?;
    describe(COMMON, &mut out)?;
    Ok(())
}

fn describe(options: &[OptionInfo], out: &mut dyn Write) -> io::Result<()> {
    options.iter().try_for_each(|option| {
        let default = option.default.map_or("must be given".to_owned(), |default| format!("default: {default}"));
        writeln!(out, "  {}={}  {} ({default})", option.name, option.allowed, option.meaning)
    })
}
