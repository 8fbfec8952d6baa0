//! Bounds, concurrency, and the start and end of the server.

use std::sync::atomic::Ordering;
use std::time::Duration;

use mangrove_graph::Value;
use mangrove_server::{Config, Server, Starting};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::common::client::Client;
use crate::common::engine::FakeEngine;
use crate::common::{PATIENCE, Running, eventually, http};

#[tokio::test(flavor = "multi_thread")]
async fn a_query_ends_at_its_time_limit() {
    let server = Running::start(|_| {}).await;
    let mut client = server.connect().await;
    let limit = [("evaluationTimeout", Value::I64(50))];
    client.eval_with("g.inject('hang')", &limit).await.assert_fails(598, "50 ms");
    assert_eq!(server.engine.0.running.load(Ordering::SeqCst), 0);
}

/// A request that names a longer time, or 0, gets no more than the server allows, over WebSockets, in a session and
/// over HTTP.
#[tokio::test(flavor = "multi_thread")]
async fn no_request_runs_longer_than_the_server_allows() {
    let server = Running::start(|limits| {
        limits.evaluation_timeout = Some(Duration::from_millis(20));
        limits.evaluation_timeout_max = Some(Duration::from_millis(70));
    })
    .await;
    for named in [0, 600_000] {
        let mut client = server.connect().await;
        let limit = [("evaluationTimeout", Value::I64(named))];
        client.eval_with("g.inject('hang')", &limit).await.assert_fails(598, "70 ms");
        let session = Value::from(format!("s{named}"));
        let in_session = [("evaluationTimeout", Value::I64(named)), ("session", session)];
        client.send_eval("session", "g.inject('hang')", &in_session).await;
        let answer = client.response().await.unwrap();
        assert!(answer.code == 598 && answer.message.contains("70 ms"), "{answer:?}");
        let body = format!("{{\"gremlin\": \"g.inject('hang')\", \"evaluationTimeout\": {named}}}");
        let request = format!(
            "POST /gremlin HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let answer = http(server.address, &request).await;
        assert!(answer.contains("70 ms"), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wait_for_a_worker_counts_towards_the_time_limit() {
    let server = Running::start(|limits| limits.worker_count_max = 1).await;
    let (mut busy, mut waiting) = (server.connect().await, server.connect().await);
    busy.send_eval("", "g.inject('hang')", &[]).await;
    eventually("the worker is taken", || server.engine.0.running.load(Ordering::SeqCst) == 1).await;
    let limit = [("evaluationTimeout", Value::I64(50))];
    waiting.eval_with("g.inject('count')", &limit).await.assert_fails(598, "50 ms");
    drop(busy);
    assert_eq!(waiting.eval("g.inject('count')").await.values(), [0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_one_connection_run_side_by_side() {
    let server = Running::start(|_| {}).await;
    let mut client = server.connect().await;
    client.send_eval("", "g.inject('hang')", &[("evaluationTimeout", Value::I64(2_000))]).await;
    assert_eq!(client.eval("g.inject('count')").await.values(), [0], "the short one does not wait for the long one");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_beyond_the_bound_wait_in_the_connection() {
    let server = Running::start(|limits| limits.in_flight_count_max = 2).await;
    let mut client = server.connect().await;
    for _ in 0..5 {
        client.send_eval("", "g.inject('hang')", &[("evaluationTimeout", Value::I64(100))]).await;
    }
    for _ in 0..5 {
        assert!(server.engine.0.running.load(Ordering::SeqCst) <= 2);
        assert_eq!(client.response().await.unwrap().code, 598);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_holds_its_query_back_and_is_dropped() {
    let server = Running::start(|limits| limits.write_stall_max = Duration::from_millis(500)).await;
    let mut client = server.connect().await;
    client.send_eval("", "g.inject('range', 100000000)", &[("evaluationTimeout", Value::I64(0))]).await;
    let state = &server.engine.0;
    eventually("the query runs", || state.given.load(Ordering::SeqCst) > 0).await;
    eventually("the connection is dropped", || state.running.load(Ordering::SeqCst) == 0).await;
    let given = state.given.load(Ordering::SeqCst);
    assert!(given < 50_000_000, "{given} results were made for a client that took none");
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_beyond_the_bound_are_refused() {
    let server = Running::start(|limits| limits.connection_count_max = 1).await;
    let first = server.connect().await;
    let request = "GET /gremlin HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                   Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    let answer = http(server.address, request).await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(answer.contains("connection_count_max"), "{answer}");
    drop(first);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_http_side_says_what_it_has() {
    let server = Running::start(|_| {}).await;
    let ask = |line: &str, more: &str| format!("{line} HTTP/1.1\r\nHost: localhost\r\n{more}Connection: close\r\n\r\n");
    let health = http(server.address, &ask("GET /health", "")).await;
    assert!(health.starts_with("HTTP/1.1 200"), "{health}");
    assert!(health.contains("\"status\":\"ok\"") && health.contains("\"gmodern\""), "{health}");
    *server.engine.0.read_only.lock().unwrap() = Some("the disk is full".to_owned());
    let read_only = http(server.address, &ask("GET /health", "")).await;
    assert!(read_only.starts_with("HTTP/1.1 200") && read_only.contains("\"read-only\""), "{read_only}");
    assert!(read_only.contains("{\"g\":\"the disk is full\"}"), "{read_only}");
    let post = http(server.address, &ask("POST /gremlin", "Content-Length: 0\r\n")).await;
    assert!(post.starts_with("HTTP/1.1 400"), "{post}");
    let plain = http(server.address, &ask("GET /gremlin", "")).await;
    assert!(plain.starts_with("HTTP/1.1 426"), "{plain}");
    let elsewhere = http(server.address, &ask("GET /elsewhere", "")).await;
    assert!(elsewhere.starts_with("HTTP/1.1 404"), "{elsewhere}");
    let foreign = http(server.address, &ask("GET /health", "Origin: https://evil.example\r\n")).await;
    assert!(foreign.starts_with("HTTP/1.1 403"), "{foreign}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_cancels_rolls_back_and_closes() {
    let server = Running::start(|limits| limits.drain_max = Duration::from_millis(50)).await;
    let mut client = server.connect().await;
    client.session_eval("s", "g.inject('add')").await;
    client.send_eval("", "g.inject('hang')", &[]).await;
    let state = server.engine.0.clone();
    eventually("the query runs", || state.running.load(Ordering::SeqCst) == 1).await;
    server.stop().await.unwrap();
    assert_eq!(state.running.load(Ordering::SeqCst), 0);
    assert_eq!(state.rolled_back.load(Ordering::SeqCst), 1);
    while client.response().await.is_some() {}
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_lets_queries_finish() {
    let server = Running::start(|_| {}).await;
    let mut client = server.connect().await;
    client.send_eval("", "g.inject('slow')", &[]).await;
    let state = server.engine.0.clone();
    eventually("the query runs", || state.running.load(Ordering::SeqCst) == 1).await;
    let stopping = tokio::spawn(server.stop());
    let answer = client.response().await.expect("the query that ran is answered");
    assert_eq!(answer.code, 200, "{answer:?}");
    stopping.await.unwrap().unwrap();
    assert!(client.response().await.is_none());
}

/// A script as a request of HTTP.
fn post(script: &str) -> String {
    let body = format!("{{\"gremlin\": \"{script}\"}}");
    format!("POST /gremlin HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_cancels_requests_of_http_too_and_says_so() {
    let server = Running::start(|limits| limits.drain_max = Duration::from_millis(300)).await;
    let (address, state) = (server.address, server.engine.0.clone());
    let asking = tokio::spawn(async move {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(post("g.inject('hang')").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    });
    let mut client = server.connect().await;
    client.send_eval("", "g.inject('hang')", &[]).await;
    eventually("the queries run", || state.running.load(Ordering::SeqCst) == 2).await;
    let began = Instant::now();
    server.stop().await.unwrap();
    // The queries have no end.
    assert!(began.elapsed() < PATIENCE, "it took {:?}", began.elapsed());
    let answer = asking.await.unwrap();
    assert!(answer.contains("the server shuts down"), "{answer}");
    let answer = client.response().await.unwrap();
    assert!(answer.message.contains("the server shuts down"), "{answer:?}");
}

/// A client that does not read its answer does not keep the server from ending, and is no error.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_waits_for_no_client_that_takes_no_answer() {
    let server = Running::start(|limits| limits.drain_max = Duration::from_millis(300)).await;
    let state = server.engine.0.clone();
    let mut over_http = TcpStream::connect(server.address).await.unwrap();
    over_http.write_all(post("g.inject('range', 100000000)").as_bytes()).await.unwrap();
    let mut client = server.connect().await;
    client.send_eval("", "g.inject('range', 100000000)", &[]).await;
    eventually("the queries run", || state.running.load(Ordering::SeqCst) == 2).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let began = Instant::now();
    server.stop().await.unwrap();
    assert!(began.elapsed() < PATIENCE, "it took {:?}", began.elapsed());
    assert_eq!(state.running.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_says_closing_and_refuses_the_rest_until_its_queries_have_ended() {
    let server = Running::start(|_| {}).await;
    let (address, state) = (server.address, server.engine.0.clone());
    let mut client = server.connect().await;
    // Longer than a busy machine needs for what follows.
    client.send_eval("", "g.inject('hang')", &[("evaluationTimeout", Value::I64(6_000))]).await;
    eventually("the query runs", || state.running.load(Ordering::SeqCst) == 1).await;
    let stopping = tokio::spawn(server.stop());
    tokio::time::sleep(Duration::from_millis(200)).await;
    let closing = http(address, &get("/health")).await;
    assert!(closing.starts_with("HTTP/1.1 503") && closing.contains("\"closing\""), "{closing}");
    let refused = http(address, &post("g.inject('count')")).await;
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("the server shuts down"), "{refused}");
    assert_eq!(client.response().await.unwrap().code, 598);
    stopping.await.unwrap().unwrap();
    assert!(TcpStream::connect(address).await.is_err(), "nothing listens any more");
}

/// A load balancer that checks every second sees the announced end while the server still serves.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_serves_on_while_it_says_that_it_is_closing() {
    let server = Running::start(|limits| limits.closing_min = Duration::from_secs(5)).await;
    let address = server.address;
    let mut client = server.connect().await;
    let stopping = tokio::spawn(server.stop());
    tokio::time::sleep(Duration::from_millis(200)).await;
    let closing = http(address, &get("/health")).await;
    assert!(closing.starts_with("HTTP/1.1 503") && closing.contains("\"closing\""), "{closing}");
    assert_eq!(client.eval("g.inject('count')").await.values(), [0]);
    assert_eq!(Client::connect(address).await.eval("g.inject('count')").await.values(), [0]);
    stopping.await.unwrap().unwrap();
    assert!(client.response().await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_says_that_it_is_starting_until_its_graphs_are_there() {
    let starting = Starting::listen(Config::new("127.0.0.1:0".parse().unwrap())).await.unwrap();
    let address = starting.local_address().unwrap();
    // Neither of them keeps the server from going on.
    let silent = TcpStream::connect(address).await.unwrap();
    let health = http(address, &get("/health")).await;
    assert!(health.starts_with("HTTP/1.1 503") && health.contains("\"starting\""), "{health}");
    assert!(health.to_lowercase().contains("retry-after"), "{health}");
    let refused = http(address, &post("g.inject('count')")).await;
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("is starting"), "{refused}");
    let server = starting.ready(std::sync::Arc::new(FakeEngine::default())).await.unwrap();
    tokio::spawn(server.serve(std::future::pending()));
    assert!(http(address, &get("/health")).await.starts_with("HTTP/1.1 200"));
    drop(silent);
}

#[tokio::test]
async fn a_port_in_use_is_named() {
    let server = Running::start(|_| {}).await;
    let engine = std::sync::Arc::new(FakeEngine::default());
    let error = Server::bind(Config::new(server.address), engine).await.err().unwrap();
    assert!(error.message().contains(&server.address.to_string()), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_connections_at_once_are_served() {
    let server = Running::start(|limits| limits.worker_count_max = 4).await;
    let tasks: Vec<_> = (0..32)
        .map(|_| {
            let address = server.address;
            tokio::spawn(async move {
                let mut client = Client::connect(address).await;
                for _ in 0..20 {
                    assert_eq!(client.eval("g.inject('add')").await.codes, [204]);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(server.engine.0.counter.load(Ordering::SeqCst), 640);
}

/// Reads until the server ends the connection. Returns the time that it took.
async fn ended(stream: &mut TcpStream) -> Duration {
    let began = Instant::now();
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await;
    assert!(read.is_ok(), "the connection was not ended");
    began.elapsed()
}

#[tokio::test(flavor = "multi_thread")]
async fn who_says_nothing_or_a_byte_at_a_time_is_dropped() {
    let server = Running::start(|limits| limits.header_timeout = Duration::from_millis(400)).await;
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    let mut slow = TcpStream::connect(server.address).await.unwrap();
    slow.write_all(b"GET /health HTTP/1.1\r\nHo").await.unwrap();
    let mut idle = TcpStream::connect(server.address).await.unwrap();
    idle.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let drip = async {
        // Each byte comes in time; the head as a whole does not.
        for byte in b"st: localhost".iter().cycle() {
            tokio::time::sleep(Duration::from_millis(50)).await;
            if slow.write_all(&[*byte]).await.is_err() {
                break;
            }
        }
    };
    tokio::time::timeout(PATIENCE, drip).await.expect("the slow one is dropped");
    ended(&mut silent).await;
    ended(&mut idle).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_answers_no_ping_is_taken_for_gone() {
    let server = Running::start(|limits| {
        limits.ping_interval = Duration::from_millis(100);
        // Long enough that a client on a busy machine answers in time.
        limits.silence_max = Duration::from_secs(5);
    })
    .await;
    let mut dead = TcpStream::connect(server.address).await.unwrap();
    dead.write_all(
        b"GET /gremlin HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
          Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    )
    .await
    .unwrap();
    ended(&mut dead).await;
    // A client that answers pings may be silent for as long as it likes.
    let mut alive = server.connect().await;
    let pings = tokio::time::timeout(Duration::from_secs(7), alive.response()).await;
    assert!(pings.is_err(), "it was not dropped: {pings:?}");
    assert_eq!(alive.eval("g.inject('count')").await.values(), [0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_server_says_so_and_is_still_watched() {
    let server = Running::start(|limits| {
        limits.connection_count_max = 2;
        limits.header_timeout = 2 * PATIENCE;
    })
    .await;
    let held = [server.connect().await, server.connect().await];
    assert!(http(server.address, &get("/gremlin")).await.starts_with("HTTP/1.1 503"));
    assert!(http(server.address, &get("/health")).await.starts_with("HTTP/1.1 200"));
    assert!(http(server.address, &get("/metrics")).await.contains("mangrove_connections 2\n"));
    // Silent connections take no permit, however many come: clients that send requests are answered before them.
    let mut flood = Vec::new();
    for _ in 0..600 {
        flood.push(TcpStream::connect(server.address).await.unwrap());
    }
    for path in ["/health", "/metrics"] {
        let began = Instant::now();
        assert!(http(server.address, &get(path)).await.starts_with("HTTP/1.1 200"), "{path}");
        assert!(began.elapsed() < PATIENCE, "{path} took {:?}", began.elapsed());
    }
    drop(flood);
    drop(held);
    for _ in 0..100 {
        if http(server.address, &get("/metrics")).await.contains("mangrove_connections 0\n") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("permits were not returned");
}
