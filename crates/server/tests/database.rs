//! The database behind the protocol: behavior that only the two together show.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mangrove::Database;
use mangrove_graph::Value;
use mangrove_server::{Config, DatabaseEngine, Server};
use serde_json::Value as Json;

use crate::common::client::Client;

const QUERY_MEMORY_BYTES: u64 = 16 << 20;

/// Goes on for ever, in the memory of one traverser.
const ENDLESS: &str = "g.inject(0).repeat(__.identity()).until(__.loops().is(-1))";

/// Paths never merge, and dedup keeps each one: far too many for the memory of a query.
const HUGE: &str = "g.V().repeat(__.both()).times(30).path().dedup().count()";

/// A server over a graph with four vertices in a ring and its chords.
async fn start() -> Client {
    start_at().await.0
}

/// The same, with its address.
async fn start_at() -> (Client, SocketAddr) {
    let database = Database::in_memory();
    let engine = DatabaseEngine::new(QUERY_MEMORY_BYTES).source("g", database);
    let server = Server::bind(Config::new("127.0.0.1:0".parse().unwrap()), Arc::new(engine)).await.unwrap();
    let address = server.local_address().unwrap();
    tokio::spawn(server.serve(std::future::pending()));
    let mut client = Client::connect(address).await;
    for n in 0..4 {
        assert_eq!(client.eval(&format!("g.addV('n').property('number', {n}).iterate()")).await.code(), 204);
    }
    for (from, to) in [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3)] {
        let edge = format!("g.V().has('number', {from}).as('a').V().has('number', {to}).addE('e').from('a').iterate()");
        assert_eq!(client.eval(&edge).await.code(), 204);
    }
    (client, address)
}

/// The answer of `/gremlin/status` to a form.
async fn status(address: SocketAddr, form: &str) -> Json {
    let length = form.len();
    let head =
        format!("POST /gremlin/status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}");
    let answer = crate::common::http(address, &format!("{head}\r\n\r\n{form}")).await;
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_runs_is_listed_and_ended() {
    let (mut client, address) = start_at().await;
    assert_eq!(status(address, "").await["runningQueryCount"], 0);
    let endless = client.send_eval("", ENDLESS, &[("evaluationTimeout", Value::I64(0))]).await;
    let mut listed = Json::Null;
    while listed["runningQueryCount"] != 1 {
        listed = status(address, "includeWaiting=True").await;
    }
    let query = &listed["queries"][0];
    assert!(query["queryString"].as_str().unwrap().contains("until"), "{query}");
    let id = query["queryId"].as_str().unwrap();
    assert_eq!(status(address, &format!("queryId={id}")).await["queryString"], query["queryString"]);
    assert_eq!(status(address, &format!("queryId={id}&cancelQuery=True")).await["payload"], true);
    client.answer(endless).await.assert_fails(598, "killed");
    assert_eq!(status(address, "").await["runningQueryCount"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_read_and_write() {
    let mut client = start().await;
    assert_eq!(client.eval("g.V().count()").await.values(), [4]);
    assert_eq!(client.eval("g.E().count()").await.values(), [6]);
    let parameters = [("bindings", Value::map(vec![(Value::from("x"), Value::I32(2))]))];
    let found = client.eval_with("g.V().has('number', x).out().values('number')", &parameters).await;
    assert_eq!(found.values(), [3]);
    assert_eq!(client.eval("g.V().hasNext()").await.values(), [1]);
    client.eval("g.V().values('number').fold().sum()").await.assert_fails(597, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_commits_and_rolls_back() {
    let mut client = start().await;
    client.session_eval("s", "g.addV('n').iterate()").await;
    assert_eq!(client.session_eval("s", "g.V().count()").await.values(), [5]);
    assert_eq!(client.eval("g.V().count()").await.values(), [4]);
    assert_eq!(client.session_end("s", "rollback").await.code(), 204);
    assert_eq!(client.eval("g.V().count()").await.values(), [4]);
    client.session_eval("s", "g.addV('n').iterate()").await;
    assert_eq!(client.session_end("s", "commit").await.code(), 204);
    assert_eq!(client.eval("g.V().count()").await.values(), [5]);
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_of_time_and_memory_hold() {
    let mut client = start().await;
    let short = [("evaluationTimeout", Value::I64(20))];
    client.eval_with(ENDLESS, &short).await.assert_fails(598, "time limit");
    let long = [("evaluationTimeout", Value::I64(Duration::from_secs(120).as_millis() as i64))];
    client.eval_with(HUGE, &long).await.assert_fails(597, "query_memory_limit");
    assert_eq!(client.eval("g.V().count()").await.values(), [4]);
}

/// One result that occurs a million million times, for a client that reads as fast as it can.
#[tokio::test(flavor = "multi_thread")]
async fn a_time_limit_ends_an_answer_that_repeats_one_result() {
    let mut client = start().await;
    let many = "g.inject(1).repeat(union(identity(),identity())).times(40)";
    let asked = client.eval_with(many, &[("evaluationTimeout", Value::I64(200))]);
    let answer = tokio::time::timeout(Duration::from_secs(20), asked).await.expect("the answer ends");
    answer.assert_fails(598, "200 ms");
    assert_eq!(client.eval("g.inject(1)").await.values(), [1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_of_several_statements_is_one_transaction_with_variables() {
    let mut client = start().await;
    let script = "a = g.addV('m').property('number', 10).next(); b = g.addV('m').property('number', 20).next()
        g.addE('e').from(a).to(b).iterate()
        g.V(a).out().values('number')";
    assert_eq!(client.eval(script).await.values(), [20]);
    assert_eq!(client.eval("n = g.V().values('number').toList(); n").await.values().len(), 6);
    assert_eq!(client.eval("x = [3, 4]").await.values(), [3, 4]);
    let failing = "g.addV('m').iterate()\n g.V().values('number').fold().sum()";
    client.eval(failing).await.assert_fails(597, "statement 2 (line 2, column 2): ");
    client
        .eval("a = g.V().has('number', 99).next(); g.V(a)")
        .await
        .assert_fails(597, "statement 1 (line 1, column 1): ");
    client.eval("g.addV('m'); nosuch.V()").await.assert_fails(499, "statement 2 (line 1, column 14): ");
    assert_eq!(client.eval("g.V().hasLabel('m').count()").await.values(), [2]);
    // In a session the transaction stays open.
    client.session_eval("s", "v = g.addV('m').next(); g.V(v).property('number', 30).iterate()").await;
    assert_eq!(client.session_eval("s", "g.V().has('number', 30).count()").await.values(), [1]);
    assert_eq!(client.eval("g.V().has('number', 30).count()").await.values(), [0]);
    assert_eq!(client.session_end("s", "rollback").await.code(), 204);
    // A variable of a script is not a parameter of the request, though both have one name.
    let parameters = [("bindings", Value::map(vec![(Value::from("x"), Value::I32(2))]))];
    assert_eq!(client.eval_with("y = x; x = 5; g.inject(x, y)", &parameters).await.values(), [5, 2]);
}

/// The server's answer to a request without a body.
async fn bare(address: SocketAddr, line: &str, headers: &str) -> String {
    crate::common::http(address, &format!("{line} HTTP/1.1\r\nHost: localhost\r\n{headers}Connection: close\r\n\r\n"))
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_get_changes_nothing() {
    let (mut client, address) = start_at().await;
    let get = async |script: &str| bare(address, &format!("GET /gremlin?gremlin={script}"), "").await;
    for script in [
        "g.V().drop()",
        "g.addV('x')",
        "g.V().property('a',1)",
        "g.inject(1);g.addV('x')",
        "g.call('mangrove.checkpoint')",
        "g.call('mangrove.index.create').with('label','n').with('key','number')",
        "g.call('mangrove.graph.drop').with('name','g')",
    ] {
        let answer = get(script).await;
        assert!(answer.starts_with("HTTP/1.1 403"), "{script}: {answer}");
        assert!(answer.contains("send the request as POST"), "{script}: {answer}");
    }
    assert!(get("g.V().count()").await.starts_with("HTTP/1.1 200"));
    assert_eq!(client.eval("g.V().count()").await.values(), [4]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_get_ends_no_query() {
    let (mut client, address) = start_at().await;
    let endless = client.send_eval("", ENDLESS, &[("evaluationTimeout", Value::I64(0))]).await;
    let mut listed = Json::Null;
    while listed["runningQueryCount"] != 1 {
        listed = status(address, "").await;
    }
    let id = listed["queries"][0]["queryId"].as_str().unwrap().to_owned();
    for line in [
        format!("GET /gremlin/status?queryId={id}&cancelQuery=true"),
        format!("GET /gremlin?gremlin=g.call('mangrove.kill').with('id',{id})"),
    ] {
        let refused = bare(address, &line, "").await;
        assert!(refused.starts_with("HTTP/1.1 403") && refused.contains("POST"), "{line}: {refused}");
    }
    assert_eq!(status(address, "").await["runningQueryCount"], 1);
    assert_eq!(status(address, &format!("queryId={id}&cancelQuery=true")).await["payload"], true);
    client.answer(endless).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_page_of_another_site_makes_a_browser_send_is_refused() {
    let (_client, address) = start_at().await;
    for line in ["GET /gremlin?gremlin=g.V().count()", "GET /gremlin/status", "GET /metrics", "GET /health"] {
        let refused = bare(address, line, "Sec-Fetch-Site: cross-site\r\n").await;
        assert!(refused.starts_with("HTTP/1.1 403") && refused.contains("allowed_origins"), "{line}: {refused}");
        assert!(bare(address, line, "Sec-Fetch-Site: none\r\n").await.starts_with("HTTP/1.1 200"), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_cannot_be_read_is_refused_for_what_it_is() {
    let (_client, address) = start_at().await;
    for (headers, body, status, words) in [
        // The body is refused by its length, before any of it is sent.
        ("Content-Length: 99999999999\r\n", "", "413", "body_bytes_max"),
        ("Transfer-Encoding: chunked\r\n", "zz\r\n{}\r\n", "400", "was not read"),
        ("Content-Encoding: gzip\r\nContent-Length: 2\r\n", "{}", "415", "Content-Encoding"),
    ] {
        let request = format!("POST /gremlin HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n{body}");
        let answer = crate::common::http(address, &request).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{headers}: {answer}");
        assert!(answer.contains(words), "{headers}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn half_a_request_of_a_session_is_never_committed() {
    let mut client = start().await;
    let failing = [
        "g.V().has('number', 0).property('number', 70).fail('stop')",
        // The first statement has written, and the second one never begins to.
        "g.V().has('number', 0).property('number', 70).iterate(); g.V().values('number').fold().asNumber()",
        "g.V().has('number', 0).property('number', 70).iterate(); g.V().fail('stop')",
    ];
    for script in failing {
        assert_eq!(
            client.session_eval("s", "g.V().has('number', 1).property('number', 71).iterate()").await.code(),
            204
        );
        client.session_eval("s", script).await.assert_fails(597, "; the transaction was rolled back");
        client.session_eval("s", "g.V().count()").await.assert_fails(597, "had begun to write");
        client.session_end("s", "commit").await.assert_fails(597, "roll back, and begin another");
        assert_eq!(client.eval("g.V().has('number', P.gt(60)).count()").await.values(), [0], "{script}");
        // The claims of the transaction are released.
        assert_eq!(client.eval("g.V().has('number', 0).property('number', 0).iterate()").await.code(), 204);
    }
    // A rollback is answered, and the session goes on. A transaction also goes on after a request that failed without a
    // write.
    client.session_eval("s", failing[0]).await.assert_fails(597, "stop");
    assert_eq!(client.session_end("s", "rollback").await.code(), 204);
    client.session_eval("s", "g.V().has('number', 1).property('number', 71).iterate()").await;
    client.session_eval("s", "g.V().values('number').fold().asNumber()").await.assert_code(597);
    client.session_eval("s", "g.V().nosuch()").await.assert_code(597);
    assert_eq!(client.session_end("s", "commit").await.code(), 204);
    assert_eq!(client.eval("g.V().has('number', 71).count()").await.values(), [1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_committed_before_a_script_failed_is_said_to_stay() {
    let mut client = start().await;
    let script = "g.addV('m').iterate(); g.tx().commit(); g.addV('m').iterate(); g.inject(1).fail('stop')";
    client.session_eval("s", script).await.assert_fails(597, "do not send it again as it is");
    client.session_end("s", "rollback").await;
    assert_eq!(client.eval("g.V().hasLabel('m').count()").await.values(), [1]);
    // The same holds outside a session, and for a request that is a transaction of its own.
    client.eval(script).await.assert_fails(597, "do not send it again as it is");
    assert_eq!(client.eval("g.V().hasLabel('m').count()").await.values(), [2]);
}

/// A server that holds back few results, or few bytes, over an empty graph.
async fn limited(count: usize, bytes: usize) -> Client {
    let engine = DatabaseEngine::new(QUERY_MEMORY_BYTES).source("g", Database::in_memory());
    let mut config = Config::new("127.0.0.1:0".parse().unwrap());
    config.limits.held_result_count_max = count;
    config.limits.held_result_bytes_max = bytes;
    let server = Server::bind(config, Arc::new(engine)).await.unwrap();
    let address = server.local_address().unwrap();
    tokio::spawn(server.serve(std::future::pending()));
    Client::connect(address).await
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_and_encoders_refuse_a_writing_request_before_its_commit() {
    let mut client = limited(100, 1 << 20).await;
    let many = "g.inject(1).repeat(union(identity(), identity())).times(7).addV('n')";
    client.eval(many).await.assert_fails(597, "held_result_count_max");
    assert_eq!(client.eval(&format!("{many}.iterate()")).await.code(), 204);
    assert_eq!(client.eval("g.V().count()").await.values(), [128]);
    client.eval("g.V().drop().iterate()").await;
    // The encoding has no form for a date of that year: the client is told, and nothing is committed.
    let date = "g.addV('n').constant(datetime('2020-01-01T00:00:00Z')).dateAdd(DT.day, 900000000000)";
    client.eval(date).await.assert_code(599);
    client.eval(&format!("g.addV('n').iterate(); {date}")).await.assert_code(599);
    client.session_eval("s", date).await.assert_code(599);
    client.session_end("s", "commit").await.assert_code(597);
    assert_eq!(client.eval("g.V().count()").await.values(), [0]);
}

/// 128 paths, whose labels are written with each of them.
#[tokio::test(flavor = "multi_thread")]
async fn results_are_held_back_up_to_their_bytes_as_they_are_written() {
    let copies = "g.addV('n').count().repeat(union(identity(), identity())).times(7)";
    let script = format!("{copies}.as('{}').path()", "label".repeat(20));
    let mut client = limited(1_000, 12 << 10).await;
    client.eval(&script).await.assert_fails(597, "held_result_bytes_max");
    assert_eq!(client.eval("g.V().count()").await.values(), [0]);
    let mut client = limited(1_000, 64 << 10).await;
    assert_eq!(client.eval(&script).await.values().len(), 128);
}

/// A text of a megabyte 65,536 times. In memory they share it; on the wire they would take 64 GB.
#[tokio::test(flavor = "multi_thread")]
async fn one_result_of_gigabytes_is_refused_before_it_is_written() {
    let engine = DatabaseEngine::new(QUERY_MEMORY_BYTES).source("g", Database::in_memory());
    let server = Server::bind(Config::new("127.0.0.1:0".parse().unwrap()), Arc::new(engine)).await.unwrap();
    let address = server.local_address().unwrap();
    tokio::spawn(server.serve(std::future::pending()));
    let thousand = "x".repeat(1_000);
    let million = format!("constant('{thousand}').replace('x','{thousand}')");
    let copies = "repeat(union(identity(),identity())).times(16)";
    let list = format!("g.inject(1).{million}.{copies}.fold()");
    let mut client = Client::connect(address).await;
    for script in [
        list.clone(),
        format!("{list}.project('all').by()"),
        format!("g.addV('n').map(__.inject(1).{million}.{copies}.fold())"),
    ] {
        client.eval(&script).await.assert_fails(597, "result_bytes_max");
    }
    assert_eq!(client.eval("g.V().count()").await.values(), [0], "what a refused request wrote is undone");
    for accept in mangrove_gremlin::Encoding::media_types().split(", ") {
        let body = serde_json::json!({ "gremlin": list }).to_string();
        let head = format!("POST /gremlin HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAccept: {accept}");
        let answer =
            crate::common::http(address, &format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len())).await;
        assert!(answer.contains("500 ") && answer.contains("result_bytes_max"), "{accept}: {answer}");
    }
    // Any number of parts can be returned one by one.
    let parts = format!("g.inject(1).{million}.repeat(union(identity(),identity())).times(7).fold().unfold().length()");
    assert_eq!(client.eval(&parts).await.values(), [1_000_000; 128]);
}
