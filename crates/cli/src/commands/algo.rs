//! `mangrove algo`: graph algorithms on a graph that this program opens.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use mangrove::registry::{ALGORITHMS, AlgorithmInfo, COMMON, ColumnInfo, ColumnKind, OptionInfo, find};
use mangrove::{Error, Value, write_rows};

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
    let names = rows.columns();
    let row = |values: Vec<Value>| {
        let names = names.iter().map(|name| Value::from(*name));
        Value::map(names.zip(values).collect())
    };
    let mut found: Box<dyn Iterator<Item = mangrove::Result<Vec<Value>>>> = Box::new(rows);
    if let Some(top) = args.top {
        found = Box::new(largest(found, find(name)?, top)?.into_iter().map(Ok));
    }
    let is_parquet = args.out.as_ref().is_some_and(|path| path.extension().is_some_and(|end| end == "parquet"));
    let count = match &args.out {
        Some(path) if is_parquet => {
            let rows = found.collect::<mangrove::Result<Vec<_>>>()?;
            write_rows(path, &names, &rows)?;
            rows.len() as u64
        }
        Some(path) => {
            let named = |error: io::Error| Error::from(error).context(path.display());
            let mut out = BufWriter::new(File::create(path).map_err(named)?);
            let count = output::print(&mut found.map(|found| found.map(row)), args.format, &mut out)?;
            out.flush().map_err(named)?;
            count
        }
        None => {
            let mut out = io::stdout().lock();
            let count = output::print(&mut found.map(|found| found.map(row)), args.format, &mut out)?;
            out.flush()?;
            count
        }
    };
    eprintln!("{}", output::summary(count, elapsed));
    Ok(())
}

/// The rows with the largest numbers.
fn largest(
    rows: impl Iterator<Item = mangrove::Result<Vec<Value>>>,
    algorithm: &AlgorithmInfo,
    top: usize,
) -> Result<Vec<Vec<Value>>, Failure> {
    let is_number = |column: &ColumnInfo| matches!(column.kind, ColumnKind::Counts | ColumnKind::Numbers);
    let Some(by) = algorithm.columns.iter().position(is_number) else {
        let message = format!("{} has no column of numbers, of which --top would take the largest", algorithm.name);
        return Err(Error::invalid(message).into());
    };
    let mut all = rows.collect::<mangrove::Result<Vec<_>>>()?;
    all.sort_by(|one, other| number(&other[by]).total_cmp(&number(&one[by])));
    all.truncate(top);
    Ok(all)
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
    let value = match value.strip_prefix('[').and_then(|items| items.strip_suffix(']')) {
        None => scalar(value),
        Some("") => Value::list(Vec::new()),
        Some(items) => Value::list(items.split(',').map(|item| scalar(item.trim())).collect()),
    };
    Ok((name.to_owned(), value))
}

fn scalar(text: &str) -> Value {
    match text {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        text => match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(number), _) => Value::I64(number),
            (_, Ok(number)) => Value::F64(number),
            _ => Value::from(text),
        },
    }
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
