//! The memory budget of the process: a request that would exceed it is refused with its name, the server goes on, and
//! all draws come back.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mangrove::{Database, DatabaseOptions, MemoryBudget, Purpose};
use mangrove_graph::Value;
use mangrove_gremlin::Argument;
use mangrove_server::Caller;
use mangrove_server::{Config, DatabaseEngine, Engine, EngineLimits, Limits, Server};
use uuid::Uuid;

use crate::common::client::{Client, request_bytes};
use crate::common::{eventually, http};

const MIB: u64 = 1 << 20;

/// Paths never merge, and dedup keeps each one: far too many to finish.
const ENDLESS: &str = "g.V().repeat(__.both()).times(30).path().dedup().count()";

/// A server with a budget over an empty graph.
struct Budgeted {
    budget: MemoryBudget,
    engine: Arc<DatabaseEngine>,
    address: SocketAddr,
    /// The bytes in use when nothing runs: those of the empty graph.
    idle: u64,
}

impl Budgeted {
    async fn start(bytes: u64, change: impl FnOnce(&mut Limits)) -> (Budgeted, Client) {
        let budget = MemoryBudget::of(bytes);
        let database = Database::with_options(&DatabaseOptions {
            memory_budget: budget.clone(),
            tablet_count: 1,
            ..DatabaseOptions::default()
        });
        let limits = EngineLimits { query_memory_bytes: 1 << 40, ..EngineLimits::default() };
        let engine = Arc::new(DatabaseEngine::drawing_on(budget.clone(), limits).source("g", database));
        let mut config = Config::new("127.0.0.1:0".parse().unwrap());
        change(&mut config.limits);
        let server = Server::bind(config, engine.clone()).await.unwrap();
        let address = server.local_address().unwrap();
        tokio::spawn(server.serve(std::future::pending()));
        let idle = budget.used_bytes();
        assert!(idle < MIB, "an empty graph takes {idle} bytes");
        (Budgeted { budget, engine, address, idle }, Client::connect(address).await)
    }

    /// The bytes in use without those of plans, which are kept.
    fn used_bytes(&self) -> u64 {
        self.budget.used_bytes() - self.budget.used_for(Purpose::Plans)
    }

    /// Waits until everything but graphs and plans has returned its draws.
    async fn is_given_back(&self) {
        let of_graphs = || self.budget.used_for(Purpose::Graphs) + self.budget.used_for(Purpose::Transactions);
        let given_back = || self.used_bytes() == of_graphs();
        eventually(&format!("all is given back: {:?}", self.budget), given_back).await;
    }

    async fn metric(&self, sample: &str) -> u64 {
        let text = http(self.address, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await;
        let line = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{sample} is not in {text}")).parse().unwrap()
    }
}

/// A ring of four vertices and its chords.
async fn ring(client: &mut Client) {
    for n in 0..4 {
        client.eval(&format!("g.addV('n').property('number', {n}).iterate()")).await.assert_code(204);
    }
    for (from, to) in [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3)] {
        let edge = format!("g.V().has('number', {from}).as('a').V().has('number', {to}).addE('e').from('a').iterate()");
        client.eval(&edge).await.assert_code(204);
    }
}

/// A parameter `x` of this many bytes.
fn text(bytes: usize) -> (&'static str, Value) {
    ("bindings", Value::map(vec![(Value::from("x"), Value::from("x".repeat(bytes)))]))
}

/// The traversal's `x`, doubled this many times.
fn copies(source: &str, times: u32) -> String {
    format!("{source}.constant(x).repeat(union(identity(), identity())).times({times})")
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_beside_one_another_are_refused_and_the_server_goes_on() {
    let (server, mut first) = Budgeted::start(48 * MIB, |_| {}).await;
    ring(&mut first).await;
    let mut second = Client::connect(server.address).await;
    // Each query has a limit of its own that it never reaches.
    let forever = [("evaluationTimeout", Value::I64(0))];
    let (a, b) = (first.send_eval("", ENDLESS, &forever).await, second.send_eval("", ENDLESS, &forever).await);
    let (a, b) = (first.answer(a).await, second.answer(b).await);
    for answer in [a, b] {
        answer.assert_fails(597, "the query needs");
        answer.assert_fails(597, &format!("memory budget of {} bytes", 48 * MIB));
        answer.assert_fails(597, "raise the setting memory_budget");
    }
    assert!(server.budget.peak_bytes() > 40 * MIB && server.budget.peak_bytes() <= 48 * MIB, "{:?}", server.budget);
    server.is_given_back().await;
    assert_eq!(first.eval("g.V().count()").await.values(), [4]);
    // A query that has room runs, and returns the draws of its instance of the plan.
    let heavy = "g.V().repeat(__.both()).times(8).path().dedup().count()";
    assert_eq!(first.eval(heavy).await.values(), [4 * 3_i64.pow(8)]);
    assert!(server.budget.refusal_count() >= 2);
    server.is_given_back().await;
    assert_eq!(server.metric("mangrove_memory_budget_bytes").await, 48 * MIB);
    assert_eq!(server.metric("mangrove_memory_budget_used_bytes{purpose=\"queries\"}").await, 0);
    assert_eq!(server.metric("mangrove_memory_budget_used_bytes{purpose=\"graphs\"}").await, server.used_bytes());
    assert_eq!(server.metric("mangrove_memory_budget_peak_bytes").await, server.budget.peak_bytes());
    assert_eq!(server.metric("mangrove_memory_budget_refusals_total").await, server.budget.refusal_count());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_graph_that_fills_the_budget_takes_reads_and_deletes_and_no_writes() {
    let (server, mut client) = Budgeted::start(16 * MIB, |_| {}).await;
    let other = "g.call('mangrove.graph.create').with('name', 'other').with('memory', true).iterate()";
    client.eval(other).await.assert_code(204);
    let mut count = 0_i64;
    let refused = loop {
        let added = client.eval_with("g.addV('n').property('text', x).iterate()", &[text(100_000)]).await;
        if added.code() != 204 {
            break added;
        }
        count += 1;
        assert!(count < 1_000, "it is never full");
    };
    refused.assert_fails(597, "the graphs use");
    refused.assert_fails(597, &format!("memory budget of {} bytes", 16 * MIB));
    refused.assert_fails(597, "raise the setting memory_budget");
    assert!(count > 100, "{count}");
    // The budget is shared by all clients.
    client
        .eval_with("g.addV('n').iterate()", &[("aliases", Value::map(vec![(Value::from("g"), Value::from("other"))]))])
        .await
        .assert_fails(597, "memory budget");
    let causes = server.engine.read_only(&Caller::anybody(""));
    assert!(causes.len() == 2 && causes[0].1.contains("memory_budget"), "{causes:?}");
    assert_eq!(client.eval("g.V().has('text').count()").await.values(), [count]);
    // Deletions make room after they are collected.
    client.eval("g.V().drop().iterate()").await.assert_code(204);
    let mut tries = 0;
    while client.eval("g.addV('n').iterate()").await.code() != 204 {
        tries += 1;
        assert!(tries < 500, "writes are refused still: {:?}", server.budget);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(server.engine.read_only(&Caller::anybody("")), []);
    let before = server.budget.used_bytes();
    client.eval("g.call('mangrove.graph.drop').with('name', 'other').iterate()").await.assert_code(204);
    eventually("a graph that is dropped gives back", || server.budget.used_bytes() < before).await;
    server.is_given_back().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn results_that_are_held_back_count() {
    let (server, mut client) = Budgeted::start(8 * MIB, |_| {}).await;
    // 16 MiB on the wire, made of one text in memory.
    let script = copies("g.addV('n')", 8);
    client.eval_with(&script, &[text(64 << 10)]).await.assert_fails(597, "memory budget of 8388608 bytes");
    assert_eq!(client.eval("g.V().count()").await.values(), [0]);
    server.is_given_back().await;
    let (few, x) = (copies("g.addV('n')", 5), [text(64 << 10)]);
    client.send_eval("", &few, &x).await;
    let mut received = 0;
    while received < 32 * (64 << 10) {
        received += client.binary().await.len();
    }
    assert!(server.budget.peak_bytes() > 2 * MIB, "what was held is counted: {:?}", server.budget);
    assert_eq!(client.eval("g.V().count()").await.values(), [1]);
    server.is_given_back().await;
    // GraphBinary over HTTP is held until it is whole.
    let whole = |doublings| {
        let (script, x) = (copies("g.inject(1)", doublings), "x".repeat(64 << 10));
        let body = format!("{{\"gremlin\":\"{script}\",\"bindings\":{{\"x\":\"{x}\"}}}}");
        format!(
            "POST /gremlin HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAccept: application/vnd.graphbinary-v1.0\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let answer = http(server.address, &whole(6)).await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.len() > 64 * (64 << 10), "half of it has room: {answer:.600}");
    server.is_given_back().await;
    let answer = http(server.address, &whole(8)).await;
    assert!(answer.starts_with("HTTP/1.1 500") && answer.contains("memory budget of 8388608 bytes"), "{answer:.600}");
    server.is_given_back().await;
}

/// A client that does not read: its answer waits, counted, up to the budget. The client is told of the refusal as soon
/// as it reads.
#[tokio::test(flavor = "multi_thread")]
async fn answers_that_wait_for_a_slow_reader_count() {
    let (server, mut client) = Budgeted::start(16 * MIB, |limits| limits.outgoing_count_max = 1_000).await;
    let (long, x) = (copies("g.inject(1)", 12), [text(64 << 10)]);
    client.send_eval("", &long, &x).await;
    eventually("the answer meets the budget", || server.budget.refusal_count() > 0).await;
    // After that the buffers of the system are full, too.
    let mut waiting = 0;
    while waiting != server.budget.used_for(Purpose::Messages) {
        waiting = server.budget.used_for(Purpose::Messages);
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    assert!(waiting > 4 * MIB, "{:?}", server.budget);
    let rest = server.budget.draw(Purpose::Queries, server.budget.left_bytes()).unwrap();
    // Long requests of other clients are refused, and short ones are not.
    let mut other = Client::connect(server.address).await;
    assert_eq!(other.eval("g.V().count()").await.values(), [0]);
    other.eval_with("g.inject(x).count()", &[text(63_000)]).await.assert_fails(597, "a message needs");
    drop(rest);
    let mut last = String::new();
    while !last.contains("memory budget") {
        last = String::from_utf8_lossy(&client.binary().await).into_owned();
    }
    server.is_given_back().await;
    assert_eq!(client.eval("g.V().count()").await.values(), [0]);
    // A client that goes away releases everything.
    let refused = server.budget.refusal_count();
    client.send_eval("", &long, &x).await;
    eventually("the answer meets the budget again", || server.budget.refusal_count() > refused).await;
    drop(client);
    server.is_given_back().await;
    assert_eq!(server.used_bytes(), server.idle);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_count_while_they_come_in_and_while_they_run() {
    let (server, mut client) = Budgeted::start(8 * MIB, |_| {}).await;
    // The message is read, and then refused with the id of its request.
    let (id, argument) = (Uuid::from_u128(7), |value: Value| Argument::from(value));
    let bytes = |length: usize| {
        request_bytes(
            id,
            "eval",
            "",
            &[("gremlin", argument(Value::from(format!("g.inject('{}')", "x".repeat(length)))))],
        )
    };
    client.send_bytes(bytes(1 << 20)).await;
    let refused = client.answer(id).await;
    refused.assert_fails(597, "a message needs 17");
    refused.assert_fails(597, "memory budget of 8388608 bytes");
    server.is_given_back().await;
    assert_eq!(client.eval("g.V().count()").await.values(), [0]);
    // A message that does not even fit as it is on the wire is not read to its end. The client may find the connection
    // ended while it still sends, and so miss the reason.
    let refused = server.budget.refusal_count();
    client.send_if_open(&format!("g.inject('{}')", "x".repeat(9 << 20))).await;
    let reason = client.farewell().await.unwrap_or_default();
    assert!(reason.is_empty() || reason.contains("memory_budget"), "{reason}");
    assert_eq!(server.budget.refusal_count(), refused + 1);
    server.is_given_back().await;
    let mut client = Client::connect(server.address).await;
    assert_eq!(client.eval("g.V().count()").await.values(), [0]);
    let length = 2 << 20;
    let head =
        format!("POST /gremlin HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n");
    let answer = http(server.address, &(head + &" ".repeat(length))).await;
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("memory budget of 8388608 bytes"), "{answer}");
    server.is_given_back().await;
    assert_eq!(server.used_bytes(), server.idle);
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_of_scripts_count() {
    let (server, mut client) = Budgeted::start(8 * MIB, |_| {}).await;
    // Each statement has one row, so the query needs no memory when the variable does.
    let statements: Vec<String> = (0..200).map(|n| format!("y{n} = g.inject(x).concat('{n}').next()")).collect();
    let script = |count: usize| statements[..count].join("; ") + "; g.inject(1)";
    client.eval_with(&script(200), &[text(64 << 10)]).await.assert_fails(597, "a variable needs");
    client.session_eval("s", "g.inject(1)").await.assert_code(200);
    server.is_given_back().await;
    assert_eq!(client.eval_with(&script(40), &[text(64 << 10)]).await.values(), [1]);
    assert!(server.budget.peak_bytes() > 2 * MIB);
    server.is_given_back().await;
}
