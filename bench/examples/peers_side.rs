//! Mangrove, embedded, as one side of the comparison with peers (`bench/peers`).
//!
//! Reads one request a line from standard input and answers each with one line on standard output, both in JSON.
//! `bench/peers/sides/lines.py` lists the requests. Queries and cases come from the `workloads.json` beside the files
//! of the graph, as for the other sides; none is written here.
//!
//! Usage: `peers_side prepared|single|text LIMIT_SECONDS`. `prepared` parses and plans every query once. `single` does
//! so, too, and runs each on one thread. `text` passes the
//! text with every operation, and the plan cache finds its plan. Parameters become values before the clock starts,
//! because the other sides' parameters are objects of their language by then, too.

#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "the benchmarks are where time is taken")]

mod lines;

use std::collections::HashMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use mangrove::{Database, Error, LoadOptions, Mapping, Parameters, Prepared, QueryLimits, QueryOptions, Result, Value};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use lines::{Request, invalid, resident_bytes, serve};

#[global_allocator]
static ALLOCATOR: mangrove_allocator::Allocator = mangrove_allocator::Allocator;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match side(&arguments).and_then(serve) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", error.message());
            ExitCode::FAILURE
        }
    }
}

fn side(arguments: &[String]) -> Result<Side> {
    let usage = || Error::invalid("usage: peers_side prepared|single|text LIMIT_SECONDS");
    let [way, limit_seconds] = arguments else { return Err(usage()) };
    let limit_seconds = limit_seconds.parse().ok().filter(|&s: &f64| s > 0.0 && s.is_finite()).ok_or_else(usage)?;
    Ok(Side::new(way.parse()?, limit_seconds))
}

/// The part of `workloads.json` that this side reads.
#[derive(Deserialize)]
struct Workloads {
    queries: HashMap<String, Texts>,
    cases: HashMap<String, Vec<(String, Json)>>,
}

#[derive(Deserialize)]
struct Texts {
    gremlin: String,
}

/// The form in which a query is passed to the database.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Prepared,
    /// Prepared, and on one thread.
    Single,
    Text,
}

impl std::str::FromStr for Way {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "prepared" => Ok(Way::Prepared),
            "single" => Ok(Way::Single),
            "text" => Ok(Way::Text),
            other => Err(Error::invalid(format!("`{other}` is not a way to ask: take `prepared`, `single` or `text`"))),
        }
    }
}

struct Query {
    text: String,
    prepared: Prepared,
}

/// An operation with its parameters as values.
struct Operation {
    query: usize,
    parameters: Parameters,
}

struct Side {
    way: Way,
    options: QueryOptions,
    database: Database,
    queries: Vec<Query>,
    query_numbers: HashMap<String, usize>,
    cases: HashMap<String, Vec<Operation>>,
}

impl Side {
    fn new(way: Way, limit_seconds: f64) -> Self {
        let limits = QueryLimits { time_nanos: Some((limit_seconds * 1e9) as u64), ..QueryLimits::default() };
        Side {
            way,
            options: QueryOptions { limits, workers_max: usize::from(way == Way::Single), ..QueryOptions::default() },
            database: Database::in_memory(),
            queries: Vec::new(),
            query_numbers: HashMap::new(),
            cases: HashMap::new(),
        }
    }

    fn load(&mut self, folder: &Path) -> Result<Json> {
        let start = Instant::now();
        let tables = folder.join("tables");
        if tables.is_dir() {
            let options = LoadOptions { mapping: Mapping::shipped("lsqb"), ..LoadOptions::default() };
            self.database.load(&[tables], &options, &mut |_| {})?;
            self.database.create_index(Some("Person"), "id", false, false)?;
            self.database.measure_statistics(&mut || Ok(()))?;
        } else {
            let files = [folder.join("people.csv"), folder.join("knows.csv")];
            self.database.load(&files, &LoadOptions::default(), &mut |_| {})?;
            self.database.create_index(Some("person"), "name", false, false)?;
        }
        let seconds = start.elapsed().as_secs_f64();
        self.read_workloads(&folder.join("workloads.json"))?;
        let asked = match self.way {
            Way::Prepared => "Rust, Gremlin prepared once",
            Way::Single => "Rust, Gremlin prepared once, one thread",
            Way::Text => "Rust, Gremlin as text with every operation",
        };
        Ok(json!({
            "seconds": seconds,
            "version": env!("CARGO_PKG_VERSION"),
            "settings": {
                "where": "in memory",
                "asked through": asked,
                "indexes": "hash, of the names of people, or of the ids of a network's persons",
                "profile": if cfg!(debug_assertions) { "DEBUG: times mean nothing" } else { "release" },
            },
        }))
    }

    fn read_workloads(&mut self, path: &Path) -> Result<()> {
        let text = std::fs::read_to_string(path).map_err(|e| Error::from(e).context(path.display()))?;
        let workloads: Workloads = serde_json::from_str(&text).map_err(|e| invalid("workloads.json", e))?;
        for (name, Texts { gremlin }) in workloads.queries {
            let prepared = self.database.prepare(&gremlin).map_err(|e| e.context(format!("the query `{name}`")))?;
            self.query_numbers.insert(name, self.queries.len());
            self.queries.push(Query { text: gremlin, prepared });
        }
        for (case, operations) in workloads.cases {
            let operations = self.operations(&operations)?;
            self.cases.insert(case, operations);
        }
        Ok(())
    }

    fn operations(&self, listed: &[(String, Json)]) -> Result<Vec<Operation>> {
        let operation = |(name, given): &(String, Json)| {
            let known = self.query_numbers.get(name);
            let query = *known.ok_or_else(|| Error::invalid(format!("there is no query `{name}`")))?;
            Ok(Operation { query, parameters: parameters(given)? })
        };
        listed.iter().map(operation).collect()
    }

    /// The nanoseconds of each operation.
    fn time(&self, operations: &[Operation], passes: usize) -> Result<Vec<u64>> {
        let mut nanos = Vec::with_capacity(operations.len() * passes);
        for _ in 0..passes {
            for operation in operations {
                let start = Instant::now();
                let results = self.run(operation)?;
                nanos.push(start.elapsed().as_nanos() as u64);
                drop(results);
            }
        }
        Ok(nanos)
    }

    fn run(&self, operation: &Operation) -> Result<Vec<(Value, u64)>> {
        let query = &self.queries[operation.query];
        let stream = match self.way {
            Way::Prepared | Way::Single => {
                self.database.run_with(&query.prepared, &operation.parameters, &self.options)?
            }
            Way::Text => {
                self.database.run_with(&self.database.prepare(&query.text)?, &operation.parameters, &self.options)?
            }
        };
        stream.collect_bulked()
    }
}

impl lines::Side for Side {
    fn handle(&mut self, request: Request) -> Result<Json> {
        match request {
            Request::Load { folder } => self.load(&folder),
            Request::Answer { operations } => {
                let operations = self.operations(&operations)?;
                let answers: Vec<Vec<Json>> =
                    operations.iter().map(|o| flatten(self.run(o)?)).collect::<Result<_>>()?;
                Ok(json!({"answers": answers}))
            }
            Request::Time { case, passes } => {
                let operations = self.cases.get(&case).ok_or_else(|| Error::invalid(format!("no case `{case}`")))?;
                Ok(json!({"nanos": self.time(operations, passes)?}))
            }
            Request::Rephrase => Ok(json!({"rephrased": false})),
            Request::Memory => Ok(json!({"bytes": resident_bytes()?})),
            Request::End => Ok(json!({})),
        }
    }
}

fn parameters(given: &Json) -> Result<Parameters> {
    let given = given.as_object().ok_or_else(|| Error::invalid("parameters are an object"))?;
    let parameter = |(name, value): (&String, &Json)| {
        let value = match value {
            Json::Number(number) if number.is_i64() => Value::I64(number.as_i64().unwrap_or_default()),
            Json::String(text) => Value::from(text.as_str()),
            other => {
                return Err(Error::invalid(format!("the parameter `{name}` is {other}: take integers and strings")));
            }
        };
        Ok((name.as_str().into(), value))
    };
    given.iter().map(parameter).collect()
}

/// A result as a flat list; a map becomes key, value, key, value, ….
fn flatten(results: Vec<(Value, u64)>) -> Result<Vec<Json>> {
    let mut flat = Vec::new();
    for (value, bulk) in results {
        for _ in 0..bulk {
            match &value {
                Value::Map(entries) => {
                    for (key, value) in entries.iter() {
                        flat.extend([scalar(key)?, scalar(value)?]);
                    }
                }
                other => flat.push(scalar(other)?),
            }
        }
    }
    Ok(flat)
}

fn scalar(value: &Value) -> Result<Json> {
    match value {
        Value::I32(number) => Ok(json!(number)),
        Value::I64(number) => Ok(json!(number)),
        Value::String(text) => Ok(json!(text.as_str())),
        other => Err(Error::invalid(format!("a result is neither an integer nor a string: {other:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lines::Side as _;

    #[test]
    fn parameters_are_integers_and_strings() {
        let read = parameters(&json!({"who": 7, "name": "p"})).unwrap();
        assert_eq!(read, Parameters::from([("who".into(), Value::I64(7)), ("name".into(), Value::from("p"))]));
        assert!(parameters(&json!({"who": 1.5})).is_err());
        assert!(parameters(&json!([])).is_err());
    }

    #[test]
    fn results_are_flattened_as_often_as_they_occur() {
        let map = Value::Map(vec![(Value::from("a"), Value::I64(2))].into());
        assert_eq!(flatten(vec![(Value::I64(1), 2), (map, 1)]).unwrap(), [json!(1), json!(1), json!("a"), json!(2)]);
        assert!(flatten(vec![(Value::F64(0.5), 1)]).is_err());
    }

    #[test]
    fn both_ways_answer_the_same() {
        for way in [Way::Prepared, Way::Single, Way::Text] {
            let folder = std::env::temp_dir().join(format!("mangrove-peers-side-{}", std::process::id()));
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("people.csv"), "id:ID,name:string,:LABEL\n0,a,person\n1,b,person\n").unwrap();
            std::fs::write(folder.join("knows.csv"), ":START_ID,:END_ID,:TYPE\n0,1,knows\n").unwrap();
            let queries = json!({
                "out": {"gremlin": "g.V(who).out('knows').values('name')"},
                "add": {"gremlin": "g.V(who).addE('knows').to(__.V(other)).iterate()"},
            });
            let cases = json!({"hop": [["out", {"who": 0}], ["out", {"who": 1}]]});
            let workloads = json!({"queries": queries, "cases": cases}).to_string();
            std::fs::write(folder.join("workloads.json"), workloads).unwrap();
            let mut side = Side::new(way, 10.0);
            side.handle(Request::Load { folder: folder.clone() }).unwrap();
            let operations = vec![("out".to_owned(), json!({"who": 0})), ("out".to_owned(), json!({"who": 1}))];
            let answers = side.handle(Request::Answer { operations }).unwrap();
            assert_eq!(answers, json!({"answers": [["b"], []]}));
            let add = vec![("add".to_owned(), json!({"who": 1, "other": 0}))];
            assert_eq!(side.handle(Request::Answer { operations: add }).unwrap(), json!({"answers": [[]]}));
            let timed = side.handle(Request::Time { case: "hop".to_owned(), passes: 3 }).unwrap();
            assert_eq!(timed["nanos"].as_array().unwrap().len(), 6);
            assert!(side.handle(Request::Time { case: "none".to_owned(), passes: 1 }).is_err());
            std::fs::remove_dir_all(folder).unwrap();
        }
    }
}
