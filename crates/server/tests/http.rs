//! Queries over HTTP, by hand.

use std::sync::atomic::Ordering;
use std::time::Duration;

use mangrove_graph::Value;
use mangrove_gremlin::graphbinary::decode_response;
use mangrove_gremlin::{Argument, Encoding};
use serde_json::{Value as Json, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::common::{Running, eventually};

/// An answer: its status, its head in lower case, its body with chunks joined, and whether it is complete.
struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
    is_whole: bool,
}

impl Answer {
    fn json(&self) -> Json {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The plain results of an answer in GraphSON 3.
    fn numbers(&self) -> Vec<i64> {
        let json = self.json();
        let items = json["result"]["data"]["@value"].as_array().unwrap();
        items.iter().map(|item| item["@value"].as_i64().unwrap()).collect()
    }
}

async fn ask(server: &Running, head: &str, body: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(&request(head, body)).await.unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    answer(&bytes)
}

fn request(head: &str, body: &[u8]) -> Vec<u8> {
    let rest = format!("Host: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), b"\r\n", rest.as_bytes(), body].concat()
}

fn answer(bytes: &[u8]) -> Answer {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_lowercase();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let mut rest = &bytes[end + 4..];
    if !head.contains("transfer-encoding: chunked") {
        return Answer { status, head, body: rest.to_vec(), is_whole: true };
    }
    let (mut body, mut is_whole) = (Vec::new(), false);
    while let Some(line) = rest.windows(2).position(|two| two == b"\r\n") {
        let length = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).unwrap();
        let Some(chunk) = rest.get(line + 2..line + 2 + length) else { break };
        is_whole = length == 0;
        body.extend_from_slice(chunk);
        rest = &rest[(line + 4 + length).min(rest.len())..];
    }
    Answer { status, head, body, is_whole }
}

async fn post(server: &Running, headers: &str, body: Json) -> Answer {
    ask(server, &format!("POST /gremlin HTTP/1.1{headers}"), body.to_string().as_bytes()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_is_answered_in_typed_json_unless_it_accepts_another() {
    let server = Running::start(|_| {}).await;
    let script = json!({ "gremlin": "g.inject('range', 2)" });
    let answer = post(&server, "", script.clone()).await;
    assert_eq!((answer.status, answer.numbers()), (200, vec![0, 1]));
    assert!(answer.head.contains("content-type: application/vnd.gremlin-v3.0+json"), "{}", answer.head);
    assert!(answer.head.contains("content-length:"), "a small answer has a length: {}", answer.head);
    assert_eq!(answer.json()["status"]["code"], 200);

    let plain = post(&server, "\r\nAccept: application/vnd.gremlin-v3.0+json;types=false", script.clone()).await;
    assert_eq!(plain.json()["result"]["data"], json!([0, 1]));
    let binary = post(&server, "\r\nAccept: application/vnd.graphbinary-v1.0", script).await;
    assert_eq!(decode_response(&binary.body).unwrap().data, [(1, Value::I64(0)), (1, Value::I64(1))]);
    let none = post(&server, "", json!({ "gremlin": "g.inject('add')" })).await;
    assert_eq!((none.status, none.numbers()), (200, vec![]));
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_come_with_the_script_in_the_body_or_the_address() {
    let server = Running::start(|_| {}).await;
    let body = json!({
        "gremlin": "g.inject('echo', x)", "bindings": { "x": { "@type": "g:Int64", "@value": 42 } },
        "aliases": { "g": "gmodern" }, "language": "gremlin-lang", "evaluationTimeout": 0, "materializeProperties": "tokens",
    });
    assert_eq!(post(&server, "", body).await.numbers(), [42]);
    let seen = server.engine.0.last_request.lock().unwrap().take().unwrap();
    assert_eq!((seen.source.as_str(), seen.timeout), ("gmodern", Some(Duration::from_secs(3600))));
    assert_eq!(seen.materialize, mangrove_server::Materialize::Tokens);
    let address = "GET /gremlin?gremlin=g.inject(%27echo%27,+x)&bindings.x=3&aliases.g=gmodern HTTP/1.1";
    assert_eq!(ask(&server, address, b"").await.numbers(), [3]);
    assert_eq!(server.engine.0.last_request.lock().unwrap().take().unwrap().source, "gmodern");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_may_be_a_whole_request_in_any_encoding() {
    let server = Running::start(|_| {}).await;
    let arguments = [("gremlin", Argument::from(Value::from("g.inject('range', 1)")))];
    let frame = crate::common::client::request_bytes(uuid::Uuid::from_u128(7), "eval", "", &arguments);
    let message = &frame[1 + usize::from(frame[0])..];
    let headers = "POST /gremlin HTTP/1.1\r\nContent-Type: application/vnd.graphbinary-v1.0\r\nAccept: application/vnd.graphbinary-v1.0";
    let answer = ask(&server, headers, message).await;
    assert_eq!(decode_response(&answer.body).unwrap().request_id, Some(uuid::Uuid::from_u128(7)));
    let bytecode = json!({ "requestId": uuid::Uuid::from_u128(8).to_string(), "op": "bytecode", "processor": "traversal", "args": {
        "gremlin": { "@type": "g:Bytecode", "@value": { "step": [["inject", "bulk", { "@type": "g:Int32", "@value": 5 }]] } },
        "aliases": { "g": "g" } } });
    let answer = post(&server, "\r\nContent-Type: application/vnd.gremlin-v3.0+json", bytecode).await;
    let traverser = &answer.json()["result"]["data"]["@value"][0];
    assert_eq!((&traverser["@type"], &traverser["@value"]["bulk"]["@value"]), (&json!("g:Traverser"), &json!(5)));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_said_in_json_with_a_status() {
    let server = Running::start(|limits| limits.body_bytes_max = 500).await;
    for (body, status, code, words) in [
        (json!({ "gremlin": "g.inject('fail')" }), 500, 597, "failed as asked"),
        (json!({ "gremlin": "g.dance()" }), 500, 597, "dance"),
        (json!({ "gremlin": "g.inject('hang')", "evaluationTimeout": 20 }), 500, 598, "20 ms"),
        (json!({ "gremlin": "g.inject('internal')" }), 500, 599, "detached"),
        (json!({ "gremlin": "nowhere.V()" }), 500, 499, "nowhere"),
        (json!({ "script": "g.V()" }), 400, 499, "gremlin"),
        (json!([1]), 400, 498, "a request is an object"),
        (json!({ "gremlin": "x".repeat(600) }), 413, 498, "body_bytes_max"),
    ] {
        let answer = post(&server, "", body.clone()).await;
        let problem = answer.json();
        let status = if code == 499 { 400 } else { status };
        assert_eq!((answer.status, &problem["code"]), (status, &json!(code)), "{body}: {problem}");
        assert!(problem["message"].as_str().unwrap().contains(words), "{problem}");
        assert_eq!(problem["Exception-Class"], problem["exceptions"][0]);
    }
    let html = post(&server, "\r\nAccept: text/html", json!({ "gremlin": "g.V()" })).await;
    assert_eq!(html.status, 400);
    assert!(html.json()["message"].as_str().unwrap().contains("text/html"));
    let session = json!({ "requestId": uuid::Uuid::nil().to_string(), "op": "eval", "processor": "session",
        "args": { "gremlin": "g.V()", "session": "s" } });
    assert_eq!(post(&server, "", session).await.status, 400);
    assert_eq!(ask(&server, "GET /gremlin HTTP/1.1", b"").await.status, 426);
    assert_eq!(ask(&server, "PUT /gremlin HTTP/1.1", b"{}").await.status, 405);
    assert_eq!(post(&server, "", json!({ "gremlin": "g.inject('count')" })).await.numbers(), [0], "the server goes on");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_of_running_queries_is_checked() {
    let server = Running::start(|limits| limits.body_bytes_max = 100).await;
    let none = json!({ "acceptedQueryCount": 0, "runningQueryCount": 0, "queries": [] });
    assert_eq!(ask(&server, "GET /gremlin/status?includeWaiting=true HTTP/1.1", b"").await.json(), none);
    let form = "POST /gremlin/status HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded";
    assert_eq!(ask(&server, form, b"").await.json(), none);
    let long = [b'x'; 200];
    for (body, status, words) in [
        (b"queryId=7".as_slice(), 404, "number 7"),
        (b"queryId=7&cancelQuery=True", 404, "number 7"),
        (b"queryId=a%20b", 400, "`a b` is not"),
        (b"cancelQuery=true", 400, "needs queryId"),
        (b"query=1", 400, "no parameter `query`"),
        (b"queryId=%zz", 400, "percent sign"),
        (b"\xff=1", 400, "UTF-8"),
        (&long, 413, "body_bytes_max"),
    ] {
        let answer = ask(&server, form, body).await;
        let message = answer.json()["message"].as_str().unwrap().to_owned();
        assert_eq!((answer.status, message.contains(words)), (status, true), "{message}");
    }
    assert_eq!(ask(&server, "PUT /gremlin/status HTTP/1.1", b"").await.status, 405);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_result_streams_and_is_cut_off_where_the_query_fails() {
    let server = Running::start(|limits| limits.held_result_count_max = 1_000).await;
    let answer = post(&server, "", json!({ "gremlin": "g.inject('range', 20000)" })).await;
    assert!(answer.head.contains("chunked") && answer.is_whole, "{}", answer.head);
    assert_eq!(answer.numbers(), (0..20_000).collect::<Vec<_>>());
    let broken = post(&server, "", json!({ "gremlin": "g.inject('broken', 20000)" })).await;
    assert_eq!((broken.status, broken.is_whole), (200, false), "what is cut off must not look complete");
    let early = post(&server, "", json!({ "gremlin": "g.inject('broken', 100)" })).await;
    assert_eq!((early.status, early.json()["code"].as_u64()), (500, Some(597)), "nothing was sent before");
    let binary = format!("\r\nAccept: {}", Encoding::GraphBinary.media_type());
    let held = post(&server, &binary, json!({ "gremlin": "g.inject('range', 20000)" })).await;
    assert_eq!(held.status, 500);
    assert!(held.json()["message"].as_str().unwrap().contains("held_result_count_max"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_holds_its_query_back_until_it_is_given_up() {
    let server = Running::start(|limits| limits.write_stall_max = Duration::from_millis(500)).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let body = json!({ "gremlin": "g.inject('range', 100000000)", "evaluationTimeout": 0 }).to_string();
    stream.write_all(&request("POST /gremlin HTTP/1.1", body.as_bytes())).await.unwrap();
    let state = &server.engine.0;
    eventually("the query runs", || state.given.load(Ordering::SeqCst) > 1_000).await;
    eventually("it ends", || state.running.load(Ordering::SeqCst) == 0).await;
    assert!(state.given.load(Ordering::SeqCst) < 5_000_000, "held back long before its end");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_away_cancels_its_query() {
    let server = Running::start(|_| {}).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let body = json!({ "gremlin": "g.inject('hang')", "evaluationTimeout": 0 }).to_string();
    stream.write_all(&request("POST /gremlin HTTP/1.1", body.as_bytes())).await.unwrap();
    eventually("the query runs", || server.engine.0.running.load(Ordering::SeqCst) == 1).await;
    drop(stream);
    eventually("the query is cancelled", || server.engine.0.running.load(Ordering::SeqCst) == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_serves_one_request_after_the_other() {
    let server = Running::start(|_| {}).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    for _ in 0..3 {
        let body = br#"{"gremlin":"g.inject('count')"}"#;
        let head = format!("POST /gremlin HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", body.len());
        stream.write_all(&[head.as_bytes(), body].concat()).await.unwrap();
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"}}}") {
            assert_ne!(stream.read_buf(&mut bytes).await.unwrap(), 0);
        }
        assert_eq!(answer(&bytes).status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_that_are_allowed_may_ask_and_read_the_answers_and_no_others() {
    const PAGE: &str = "http://localhost:5173";
    let server = Running::configured(|config| {
        config.browsers.allowed_origins = vec![PAGE.to_owned()];
        config.browsers.allowed_hosts = vec!["graph.example".to_owned()];
    })
    .await;
    let preflight = |origin: &str| {
        format!(
            "OPTIONS /gremlin HTTP/1.1\r\nOrigin: {origin}\r\nAccess-Control-Request-Method: POST\r\n\
             Access-Control-Request-Headers: content-type\r\nAccess-Control-Request-Private-Network: true"
        )
    };
    let permitted = ask(&server, &preflight(PAGE), b"").await;
    assert_eq!(permitted.status, 204);
    for header in [
        "access-control-allow-origin: http://localhost:5173",
        "access-control-allow-methods: get, post, options",
        "access-control-allow-headers: accept, authorization, content-type",
        "access-control-allow-private-network: true",
        "access-control-max-age: ",
        "vary: origin",
    ] {
        assert!(permitted.head.contains(header), "{header}\n{}", permitted.head);
    }
    let refused = ask(&server, &preflight("http://localhost:5174"), b"").await;
    assert!(refused.status == 403 && !refused.head.contains("access-control"), "{}", refused.head);

    let script = json!({ "query": "g.inject('range', 2)" });
    let answer = post(&server, &format!("\r\nOrigin: {PAGE}"), script.clone()).await;
    assert_eq!(answer.numbers(), [0, 1]);
    assert!(answer.head.contains("access-control-allow-origin: http://localhost:5173"), "{}", answer.head);
    let own = post(&server, "\r\nOrigin: http://localhost", script.clone()).await;
    assert!(own.status == 200 && !own.head.contains("access-control"), "{}", own.head);
    assert_eq!(post(&server, "\r\nOrigin: https://evil.example", script).await.status, 403);

    let upgrade = async |host: &str, origin: &str| {
        let request = format!(
            "GET /gremlin HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        );
        crate::common::http(server.address, &request).await.split(' ').nth(1).unwrap().to_owned()
    };
    assert_eq!(upgrade("localhost", PAGE).await, "101");
    assert_eq!(upgrade("graph.example:8182", "https://graph.example:8182").await, "101");
    assert_eq!(upgrade("localhost", "https://evil.example").await, "403");
    assert_eq!(upgrade("evil.example", "http://evil.example").await, "403", "a name that was pointed here");

    let metrics = ask(&server, "GET /metrics HTTP/1.1", b"").await;
    let metrics = String::from_utf8(metrics.body).unwrap();
    for line in [
        "mangrove_pages_refused_total 4",
        "mangrove_http_requests_total{path=\"/gremlin\",method=\"OPTIONS\",status=\"204\"} 1",
        "mangrove_http_requests_total{path=\"/gremlin\",method=\"POST\",status=\"200\"} 2",
    ] {
        assert!(metrics.contains(&format!("{line}\n")), "{line}\n{metrics}");
    }
}
