//! `mangrove query`.

use std::io::{self, Read, Write};
use std::time::Duration;

use mangrove::{Database, Error, ErrorKind, Limits, Materialize, Parameters, QueryOptions, Value};

use crate::args::{Format, QueryArgs};
use crate::client::Client;
use crate::clock::Stopwatch;
use crate::{Failure, graphs, load, output};

/// Runs one script and prints its results.
pub fn run(args: &QueryArgs) -> Result<(), Failure> {
    let parameters = parameters(&args.parameters)?;
    let timeout = args.evaluation_timeout.and_then(|limit| limit.duration());
    if let Some(url) = &args.url {
        let results = Client::connect(url)?.run(script(&args.script)?.trim(), &parameters, timeout)?;
        let mut out = io::stdout().lock();
        output::print(&mut results.into_iter().map(Ok), args.format, &mut out)?;
        out.flush()?;
        return Ok(());
    }
    let missing = if args.load.is_empty() { graphs::Missing::Refuse } else { graphs::Missing::Create };
    let database = graphs::open(args.graph.data.as_deref(), args.graph.memory_limit, missing)?;
    if !args.load.is_empty() {
        let options = graphs::load_options(args.graph.map.as_deref())?;
        let report = graphs::load(&database, &args.load, &options)?;
        eprintln!("loaded {}", load::summary(&report));
        if report.rejects > 0 {
            eprintln!("{} rows were rejected; `mangrove load --rejects FILE` says why", report.rejects);
        }
    }
    answer(&database, &script(&args.script)?, &parameters, timeout, args.format, &mut io::stdout().lock())
}

/// Runs a script and prints its results; a table is followed by how long it took.
pub fn answer(
    database: &Database,
    script: &str,
    parameters: &Parameters,
    timeout: Option<Duration>,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let stopwatch = Stopwatch::start();
    let prepared = database.prepare(script.trim())?;
    let materialize = match format {
        // A table and CSV name elements by their ids.
        Format::Table | Format::Csv => Materialize::Tokens,
        Format::Json | Format::Jsonl => Materialize::Properties,
    };
    let time_nanos = timeout.map(|limit| u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX));
    let options =
        QueryOptions { limits: Limits { time_nanos, ..Limits::default() }, materialize, ..QueryOptions::default() };
    let mut results = database.run_with(&prepared, parameters, &options)?;
    let count = output::print(&mut results, format, out)?;
    out.flush()?;
    if format == Format::Table {
        let (plural, millis) = (if count == 1 { "" } else { "s" }, stopwatch.elapsed().as_secs_f64() * 1e3);
        eprintln!("{count} result{plural} in {millis:.2} ms");
    }
    Ok(())
}

fn script(given: &str) -> Result<String, Error> {
    if given != "-" {
        return Ok(given.to_owned());
    }
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).map_err(|e| Error::from(e).context("standard input"))?;
    Ok(text)
}

/// `--param name=value`.
fn parameters(given: &[String]) -> Result<Parameters, Error> {
    let one = |text: &String| {
        let (name, value) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(|| {
            Error::invalid(format!("--param {text}: write NAME=VALUE, as in --param who=marko or --param age=29"))
        })?;
        Ok((name.into(), parameter(name, value)?))
    };
    given.iter().map(one).collect()
}

/// JSON where it is JSON, else the text itself.
fn parameter(name: &str, text: &str) -> Result<Value, Error> {
    match serde_json::from_str::<serde_json::Value>(text) {
        Ok(json) => from_json(json).map_err(|e| e.context(format!("--param {name}"))),
        Err(_) => Ok(Value::from(text)),
    }
}

/// Whole numbers take the type they have in a script: int, or long where they need it.
fn from_json(json: serde_json::Value) -> Result<Value, Error> {
    use serde_json::Value as Json;
    Ok(match json {
        Json::Null => Value::Null,
        Json::Bool(b) => Value::Bool(b),
        Json::Number(number) => from_number(&number)?,
        Json::String(text) => Value::from(text),
        Json::Array(items) => Value::list(items.into_iter().map(from_json).collect::<Result<_, _>>()?),
        Json::Object(entries) => {
            let entry = |(key, value): (String, Json)| Ok((Value::from(key), from_json(value)?));
            Value::map(entries.into_iter().map(entry).collect::<Result<_, Error>>()?)
        }
    })
}

fn from_number(number: &serde_json::Number) -> Result<Value, Error> {
    if let Some(whole) = number.as_i64() {
        return Ok(i32::try_from(whole).map_or(Value::I64(whole), Value::I32));
    }
    let text = number.to_string();
    if text.bytes().all(|b| b.is_ascii_digit() || b == b'-') {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            format!("{text} does not fit 64 bits; write it into the script, as {text}N"),
        ));
    }
    number.as_f64().map(Value::F64).ok_or_else(|| Error::invalid(format!("{text} is no number that fits a double")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_json_or_text() {
        let given = ["a=1", "b=3000000000", "c=1.5", "d=marko", "e=\"7\"", "f=[1,\"x\"]", "g=true", "h=a=b"];
        let values: Vec<Value> = parameters(&given.map(str::to_owned)).unwrap().into_values().collect();
        let expected = vec![
            Value::I32(1),
            Value::I64(3_000_000_000),
            Value::F64(1.5),
            Value::from("marko"),
            Value::from("7"),
            Value::list(vec![Value::I32(1), Value::from("x")]),
            Value::Bool(true),
            Value::from("a=b"),
        ];
        assert_eq!(values, expected);
    }

    #[test]
    fn bad_parameters_are_named() {
        for (given, part) in [("marko", "NAME=VALUE"), ("=1", "NAME=VALUE"), ("n=99999999999999999999", "64 bits")] {
            let error = parameters(&[given.to_owned()]).unwrap_err();
            assert!(error.message().contains(part), "{error}");
        }
    }
}
