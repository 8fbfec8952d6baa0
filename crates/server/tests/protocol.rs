//! Requests and answers: forms, batches, status codes.

use std::time::Duration;

use mangrove_graph::Value;
use mangrove_gremlin::Argument;
use mangrove_server::Materialize;
use uuid::Uuid;

use crate::common::Running;
use crate::common::client::request_bytes;

#[tokio::test(flavor = "multi_thread")]
async fn results_come_in_batches_of_which_only_the_last_is_final() {
    let server = Running::start(|_| {}).await;
    let mut client = server.connect().await;
    let answer = client.eval("g.inject('range', 130)").await;
    assert_eq!(answer.codes, [206, 206, 200]);
    assert_eq!(answer.values(), (0..130).collect::<Vec<_>>());

    let full = client.eval_with("g.inject('range', 6)", &[("batchSize", Value::I32(3))]).await;
    assert_eq!(full.codes, [206, 200], "a full last batch needs no empty one after it");
    assert_eq!(client.eval("g.inject('range', 0)").await.codes, [204]);
}

#[tokio::test(flavor = "multi_thread")]
async fn traversers_carry_their_bulk_and_values_are_repeated() {
    let server = Running::start(|_| {}).await;
    let mut client = server.connect().await;
    assert_eq!(client.bytecode("bulk", 100, &[]).await.results, [(100, 7)]);
    let values = client.eval("g.inject('bulk', 100)").await;
    assert_eq!(values.codes, [206, 200]);
    assert_eq!(values.results, vec![(1, 7); 100]);
}

#[tokio::test(flavor = "multi_thread")]
async fn aliases_parameters_and_options_reach_the_engine() {
    let server = Running::start(|_| {}).await;
    let mut client = server.connect().await;
    let aliases = Value::map(vec![(Value::from("g"), Value::from("gmodern"))]);
    let bindings = Value::map(vec![(Value::from("x"), Value::I64(42))]);
    let more = [
        ("aliases", aliases),
        ("bindings", bindings),
        ("materializeProperties", Value::from("tokens")),
        ("evaluationTimeout", Value::I32(0)),
        ("language", Value::from("gremlin-lang")),
    ];
    assert_eq!(client.eval_with("g.inject('echo', x)", &more).await.values(), [42]);
    let request = server.engine.0.last_request.lock().unwrap().take().unwrap();
    assert_eq!(request.source, "gmodern");
    assert_eq!(request.materialize, Materialize::Tokens);
    assert_eq!(request.timeout, Some(Duration::from_secs(3600)), "0 asks for as long as the server allows");
}

#[tokio::test(flavor = "multi_thread")]
async fn terminals_of_scripts_say_how_results_are_taken() {
    let server = Running::start(|_| {}).await;
    let mut client = server.connect().await;
    assert_eq!(client.eval("g.inject('range', 9).next()").await.values(), [0]);
    assert_eq!(client.eval("g.inject('range', 9).next(2)").await.values(), [0, 1]);
    assert_eq!(client.eval("g.inject('range', 9).iterate()").await.codes, [204]);
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_of_a_script_are_one_transaction_and_the_last_one_answers() {
    let server = Running::start(|limits| limits.held_result_count_max = 10).await;
    let mut client = server.connect().await;
    let answer = client.eval("g.inject('add'); g.inject('add'); g.inject('count')").await;
    assert_eq!((answer.code(), answer.values()), (200, vec![2]));
    client.eval("g.inject('add'); g.inject('fail')").await.assert_fails(597, "failed as asked");
    assert_eq!(client.eval("g.inject('count')").await.values(), [2], "the failed script was undone as a whole");
    client.eval("g.inject('add'); g.inject('range', 11)").await.assert_fails(597, "held back");
    assert_eq!(client.eval("g.inject('count')").await.values(), [2]);
}

/// Results are held back until the commit only if the transaction has written.
#[tokio::test(flavor = "multi_thread")]
async fn a_script_that_only_reads_streams() {
    let server = Running::start(|limits| limits.held_result_count_max = 10).await;
    let mut client = server.connect().await;
    let answer = client.eval("g.inject('count'); x = g.inject('count').next(); g.inject('range', 1000)").await;
    assert_eq!((answer.code(), answer.values().len()), (200, 1000));
    assert!(answer.codes.len() > 10, "{:?}", answer.codes);
    // A conflict before any result was sent makes the server run the request again.
    assert_eq!(client.eval("g.inject('count'); g.inject('conflict', 2)").await.values(), [3]);
    // Results of an earlier, committed transaction need no holding back either.
    let committed = client.eval("g.inject('add'); g.tx().commit(); g.inject('range', 1000)").await;
    assert_eq!((committed.code(), committed.values().len()), (200, 1000));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_request_is_said_with_its_code() {
    let server = Running::start(|_| {}).await;
    let mut client = server.connect().await;
    client.eval("nowhere.inject('count')").await.assert_fails(499, "`nowhere`");
    let aliases = [("aliases", Value::map(vec![(Value::from("g"), Value::from("gnone"))]))];
    client.eval_with("g.inject('count')", &aliases).await.assert_fails(499, "the alias of `g`");
    client.eval("g.V(").await.assert_fails(597, "line 1");
    client.eval("g.dance()").await.assert_fails(597, "dance");
    client.eval("g.inject('fail')").await.assert_fails(597, "failed as asked");
    client.eval_with("g.V()", &[("language", Value::from("cobol"))]).await.assert_fails(499, "cobol");
    client.eval_with("g.V()", &[("batchSize", Value::I32(0))]).await.assert_fails(499, "batchSize");
    client.eval_with("g.V()", &[("evaluationTimeout", Value::from("x"))]).await.assert_fails(499, "evaluationTimeout");

    for (op, processor, code, words) in [
        ("eval", "", 499, "gremlin"),
        ("dance", "", 498, "`dance`"),
        ("eval", "dance", 498, "`dance`"),
        ("authentication", "", 498, "no authentication"),
        ("close", "session", 499, "session"),
    ] {
        let request = client.send(op, processor, &[]).await;
        client.answer(request).await.assert_fails(code, words);
    }
    assert_eq!(client.eval("g.inject('count')").await.values(), [0], "the connection goes on");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_does_not_decode_is_answered_with_its_id_where_it_has_one() {
    let server = Running::start(|limits| limits.message_bytes_max = 1_000).await;
    let mut client = server.connect().await;
    let id = Uuid::from_u128(99);
    let good = request_bytes(id, "eval", "", &[("gremlin", Argument::from(Value::from("g.inject('count')")))]);
    for length in [0, 1, 40, good.len() - 1] {
        client.send_bytes(good[..length].to_vec()).await;
        let response = client.response().await.unwrap();
        assert_eq!(response.code, 498, "{response:?}");
        assert_eq!(response.request.is_some(), length >= 50, "{response:?}");
    }
    let long = request_bytes(id, "eval", "", &[("gremlin", Argument::from(Value::from("x".repeat(2_000))))]);
    client.send_bytes(long).await;
    let response = client.response().await.unwrap();
    assert_eq!((response.code, response.request), (498, Some(id)));
    assert!(response.message.contains("the limit of 1000"), "{response:?}");

    client.send_text("{}").await;
    assert!(client.text().await.contains("no `requestId`"));
    assert_eq!(client.eval("g.inject('count')").await.values(), [0], "the connection goes on");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_far_beyond_the_limit_ends_its_connection_alone() {
    let server = Running::start(|limits| limits.message_bytes_max = 1_000).await;
    let (mut bad, mut good) = (server.connect().await, server.connect().await);
    bad.send_bytes(vec![0; 5_000]).await;
    let reason = bad.farewell().await.expect("the server says why");
    assert!(reason.contains("message_bytes_max"), "{reason}");
    assert_eq!(good.eval("g.inject('count')").await.values(), [0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_the_wire_cannot_hold_is_a_serialization_error() {
    let server = Running::start(|limits| limits.batch_size = 1).await;
    let mut client = server.connect().await;
    assert_eq!(client.eval("g.inject('internal')").await.code(), 599);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_is_retried_while_the_client_has_seen_nothing() {
    let server = Running::start(|limits| limits.conflict_retry_count_max = 3).await;
    let mut client = server.connect().await;
    assert_eq!(client.eval("g.inject('conflict', 3)").await.values(), [4]);
    client.eval("g.inject('conflict', 100)").await.assert_fails(596, "another transaction won");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_ends_one_request() {
    let server = Running::start(|_| {}).await;
    let mut client = server.connect().await;
    client.eval("g.inject('panic')").await.assert_fails(500, "panicked as asked");
    assert_eq!(client.eval("g.inject('count')").await.values(), [0]);
}
