//! The server against a plain interpreter, on random traversals over random graphs: every serializer, traversals as
//! text and as bytecode.
//!
//! Values that come over the wire are compared with those of the interpreter (`conformance/oracle`), as far as the
//! serializer can express them. `crates/db/tests/differential.rs` checks the engine itself at length, so a difference
//! here most likely comes from the protocol. `MANGROVE_CASES` is the number of cases of each test, or `MANGROVE_TIMES`
//! a factor of the number in CI, which takes precedence. `MANGROVE_FIRST` is the first seed.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use mangrove::Database;
use mangrove_graph::{Error, Result, Value};
use mangrove_gremlin::graphson::{self, Dialect, Version};
use mangrove_gremlin::{Argument, Bytecode, graphbinary};
use mangrove_oracle::generate::Options;
use mangrove_oracle::harness::{self, Engine};
use mangrove_oracle::{Form, Graph};
use mangrove_server::{Config, DatabaseEngine, Server};
use serde_json::{Value as Json, json};
use tokio::runtime::Runtime;
use uuid::Uuid;

use crate::common::client::{Client, request_bytes};

const QUERY_MEMORY_BYTES: u64 = 256 << 20;
const ID: Uuid = Uuid::from_u128(0x41d2_e28a_20a4_4ab0_b379_d810_dede_3786);

/// The encoding of requests and answers.
#[derive(Clone, Copy, PartialEq)]
enum Serializer {
    GraphBinary,
    GraphSon(Dialect, &'static str),
}

const GRAPHSON_3: Serializer =
    Serializer::GraphSon(Dialect { version: Version::V3, typed: true }, "application/vnd.gremlin-v3.0+json");
const GRAPHSON_2: Serializer =
    Serializer::GraphSon(Dialect { version: Version::V2, typed: true }, "application/vnd.gremlin-v2.0+json");
const UNTYPED: Serializer = Serializer::GraphSon(
    Dialect { version: Version::V3, typed: true },
    "application/vnd.gremlin-v3.0+json;types=false",
);

/// A database with a server in front of it, and a client.
struct Served {
    runtime: Runtime,
    database: Database,
    client: Client,
}

impl Served {
    fn start() -> Served {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let database = Database::in_memory();
        let engine = Arc::new(DatabaseEngine::new(QUERY_MEMORY_BYTES).source("g", database.clone()));
        let client = runtime.block_on(async {
            let server = Server::bind(Config::new("127.0.0.1:0".parse().unwrap()), engine).await.unwrap();
            let address = server.local_address().unwrap();
            tokio::spawn(server.serve(std::future::pending()));
            Client::connect(address).await
        });
        Served { runtime, database, client }
    }

    /// Replaces the content of the graph.
    fn load(&self, graph: &Graph) -> Result<()> {
        self.database.query("g.V().drop()")?.collect()?;
        for statement in graph.script() {
            let prepared = self.database.prepare_bytecode(&statement)?;
            self.database.run(&prepared, &mangrove::Parameters::new())?.collect()?;
        }
        Ok(())
    }
}

/// The one server, as the engine of one case.
struct Wire {
    served: Rc<RefCell<Served>>,
    serializer: Serializer,
    as_text: bool,
}

impl Engine for Wire {
    fn run(&mut self, traversal: &Bytecode) -> Result<Vec<Value>> {
        // GraphSON 2 has no sets: in its bytecode they would arrive as lists.
        let as_text = self.as_text || (self.serializer == GRAPHSON_2 && has_set(traversal));
        let (serializer, request) = (self.serializer, self.request(traversal, as_text)?);
        let Served { runtime, client, .. } = &mut *self.served.borrow_mut();
        runtime.block_on(async {
            client.send_bytes(request).await;
            let mut results = Vec::new();
            loop {
                let (code, message, more) = read(serializer, as_text, &client.binary().await)?;
                results.extend(more);
                match code {
                    206 => {}
                    200 | 204 => return Ok(results),
                    _ => return Err(Error::evaluation(format!("status {code}: {message}"))),
                }
            }
        })
    }
}

impl Wire {
    fn request(&self, traversal: &Bytecode, as_text: bool) -> Result<Vec<u8>> {
        let (op, processor) = if as_text { ("eval", "") } else { ("bytecode", "traversal") };
        let gremlin = match as_text {
            true => Argument::Value(Value::from(traversal.to_string())),
            false => Argument::Traversal(traversal.clone()),
        };
        let Serializer::GraphSon(dialect, media_type) = self.serializer else {
            let aliases = Argument::Value(Value::map(vec![("g".into(), "g".into())]));
            return Ok(request_bytes(ID, op, processor, &[("gremlin", gremlin), ("aliases", aliases)]));
        };
        let mut text = Vec::new();
        graphson::encode_argument(dialect, &gremlin, &mut text)?;
        let gremlin: Json = serde_json::from_slice(&text).expect("what is written as JSON is JSON");
        let arguments = json!({ "gremlin": gremlin, "aliases": { "g": "g" } });
        let request = json!({ "requestId": ID.to_string(), "op": op, "processor": processor, "args": arguments });
        let length = u8::try_from(media_type.len()).expect("media types are short");
        Ok([&[length], media_type.as_bytes(), request.to_string().as_bytes()].concat())
    }
}

/// Returns true if an argument of a traversal, or of one nested in it, is a set.
fn has_set(traversal: &Bytecode) -> bool {
    traversal.source.iter().chain(&traversal.steps).flat_map(|step| &step.arguments).any(|argument| match argument {
        Argument::Value(Value::Set(_)) => true,
        Argument::Traversal(nested) => has_set(nested),
        _ => false,
    })
}

/// The status, the message and the results in a response.
fn read(serializer: Serializer, as_text: bool, message: &[u8]) -> Result<(u64, String, Vec<Value>)> {
    if serializer == Serializer::GraphBinary {
        let response = graphbinary::decode_response(message)?;
        let expand = |(value, times): (Value, u64)| std::iter::repeat_n(value, times as usize);
        let data = response.data.into_iter().map(|(times, value)| (value, times)).flat_map(expand).collect();
        return Ok((u64::from(response.code), response.message.to_string(), data));
    }
    let response: Json = serde_json::from_slice(message).map_err(|e| Error::evaluation(format!("no JSON: {e}")))?;
    let status = &response["status"];
    let code = status["code"].as_u64().unwrap_or_default();
    let data = &response["result"]["data"];
    let items = data.as_array().or_else(|| data["@value"].as_array());
    let mut results = Vec::new();
    for item in items.into_iter().flatten() {
        let (times, item) = match item["@type"].as_str() {
            Some("g:Traverser") => (item["@value"]["bulk"]["@value"].as_u64(), &item["@value"]["value"]),
            None if serializer == UNTYPED && !as_text => (item["bulk"].as_u64(), &item["value"]),
            _ => (Some(1), item),
        };
        let times = times.ok_or_else(|| Error::evaluation("a traverser without a bulk"))?;
        let value = graphson::decode_value(item.to_string().as_bytes())?;
        results.extend(std::iter::repeat_n(value, times as usize));
    }
    Ok((code, status["message"].as_str().unwrap_or_default().to_owned(), results))
}

/// Runs the cases as text and as bytecode.
fn check(first_seed: u64, form: Form, serializer: Serializer) {
    let served = Rc::new(RefCell::new(Served::start()));
    let first = mangrove_testdata::first_seed(first_seed);
    let seeds = first..first + mangrove_testdata::case_count(120);
    for as_text in [true, false] {
        // A map of GraphSON 2 has texts for keys, so its bytecode cannot express the argument of `mergeV()`.
        let write_share = if as_text || form != Form::ListsOnly { 0.2 } else { 0.0 };
        let options = Options { write_share, form, ..Options::default() };
        let mut load = |graph: &Graph| {
            served.borrow().load(graph)?;
            Ok(Box::new(Wire { served: served.clone(), serializer, as_text }) as Box<dyn Engine>)
        };
        match harness::run(seeds.clone(), &options, &mut load) {
            Ok(report) => println!("{report:?}"),
            Err(difference) => panic!("{}", difference.text),
        }
    }
}

#[test]
fn in_graphbinary() {
    check(10_000_000, Form::Whole, Serializer::GraphBinary);
}

#[test]
fn in_graphson_3() {
    check(11_000_000, Form::Whole, GRAPHSON_3);
}

#[test]
fn in_graphson_2() {
    check(12_000_000, Form::ListsOnly, GRAPHSON_2);
}

#[test]
fn in_untyped_json() {
    check(13_000_000, Form::Json, UNTYPED);
}
