//! Sessions: one transaction, requests in order, and every way in which a session ends.

use std::sync::atomic::Ordering;
use std::time::Duration;

use mangrove_graph::Value;
use mangrove_gremlin::Argument;

use crate::common::{Running, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_publishes_and_a_rollback_undoes() {
    let server = Running::start(|_| {}).await;
    let (mut client, mut other) = (server.connect().await, server.connect().await);
    assert_eq!(client.session_eval("s", "g.inject('add')").await.codes, [204]);
    assert_eq!(client.session_eval("s", "g.inject('count')").await.values(), [1]);
    assert_eq!(other.eval("g.inject('count')").await.values(), [0]);
    assert_eq!(client.session_end("s", "commit").await.codes, [204]);
    assert_eq!(other.eval("g.inject('count')").await.values(), [1]);

    client.session_eval("s", "g.inject('add')").await;
    assert_eq!(client.session_end("s", "rollback").await.codes, [204]);
    assert_eq!(client.session_eval("s", "g.inject('count')").await.values(), [1], "the session goes on");
    assert_eq!(client.session_eval("s", "g.tx().commit()").await.codes, [204], "as text, and with nothing to commit");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_a_session_run_in_order() {
    let server = Running::start(|_| {}).await;
    let mut client = server.connect().await;
    let session = [("session", Value::from("s"))];
    let mut requests = Vec::new();
    for _ in 0..20 {
        client.send_eval("session", "g.inject('add')", &session).await;
        requests.push(client.send_eval("session", "g.inject('count')", &session).await);
    }
    let mut counts = Vec::new();
    for _ in 0..40 {
        let response = client.response().await.unwrap();
        counts.extend(response.results.iter().map(|(_, value)| *value));
    }
    assert_eq!(counts, (1..=20).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_leaves_the_session_open() {
    let server = Running::start(|_| {}).await;
    let mut client = server.connect().await;
    client.session_eval("s", "g.inject('add')").await;
    client.session_eval("s", "g.inject('fail')").await.assert_fails(597, "failed as asked");
    client.session_eval("s", "g.V(").await.assert_fails(597, "line 1");
    assert_eq!(client.session_end("s", "commit").await.codes, [204]);
    assert_eq!(client.eval("g.inject('count')").await.values(), [1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_keeps_to_its_source() {
    let server = Running::start(|_| {}).await;
    let mut client = server.connect().await;
    client.session_eval("s", "g.inject('add')").await;
    client.session_eval("s", "gmodern.inject('add')").await.assert_fails(499, "`g`");
    client.session_end("s", "commit").await;
    assert_eq!(client.session_eval("s", "gmodern.inject('count')").await.values(), [1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_rolls_back_and_frees_the_name() {
    let server = Running::start(|_| {}).await;
    let mut client = server.connect().await;
    client.session_eval("s", "g.inject('add')").await;
    for _ in 0..2 {
        let request = client.send("close", "session", &[("session", Argument::from(Value::from("s")))]).await;
        assert_eq!(client.answer(request).await.codes, [204]);
    }
    assert_eq!(server.engine.0.rolled_back.load(Ordering::SeqCst), 1);
    assert_eq!(client.session_eval("s", "g.inject('count')").await.values(), [0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_session_expires_and_is_not_begun_anew() {
    let server = Running::start(|limits| {
        limits.session_idle_max = Duration::from_millis(200);
        limits.session_remembered_min = Duration::ZERO;
    })
    .await;
    let mut client = server.connect().await;
    client.session_eval("s", "g.inject('add')").await;
    eventually("the session expires", || server.engine.0.rolled_back.load(Ordering::SeqCst) == 1).await;
    client
        .session_eval("s", "g.inject('add')")
        .await
        .assert_fails(597, "was idle for 0.2 s (the limit session_idle_max)");
    assert_eq!(client.eval("g.inject('count')").await.values(), [0]);
    tokio::time::sleep(Duration::from_millis(250)).await;
    assert_eq!(client.session_eval("s", "g.inject('count')").await.values(), [0], "the name is free again in time");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_connection_does_not_free_the_name_of_a_session_that_expired() {
    let server = Running::start(|limits| limits.session_idle_max = Duration::from_millis(200)).await;
    let (mut client, mut other) = (server.connect().await, server.connect().await);
    client.session_eval("s", "g.inject('add')").await;
    eventually("the session expires", || server.engine.0.rolled_back.load(Ordering::SeqCst) == 1).await;
    let close = [("session", Argument::from(Value::from("s")))];
    let request = other.send("close", "session", &close).await;
    assert_eq!(other.answer(request).await.codes, [204]);
    client.session_eval("s", "g.inject('add')").await.assert_fails(597, "was idle");
    // Its own connection acknowledges the end.
    let request = client.send("close", "session", &close).await;
    assert_eq!(client.answer(request).await.codes, [204]);
    assert_eq!(client.session_eval("s", "g.inject('add')").await.codes, [204]);
    eventually("the session expires", || server.engine.0.rolled_back.load(Ordering::SeqCst) == 2).await;
    drop(client);
    // After the end of that connection, any connection of the same user may; the server learns of the end after a
    // while.
    let mut is_free = false;
    for _ in 0..200 {
        let request = other.send("close", "session", &close).await;
        assert_eq!(other.answer(request).await.codes, [204]);
        is_free = other.session_eval("s", "g.inject('count')").await.codes == [200];
        if is_free {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(is_free, "the client's next connection frees the name");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_connection_cancels_and_rolls_back() {
    let server = Running::start(|_| {}).await;
    let mut client = server.connect().await;
    client.session_eval("s", "g.inject('add')").await;
    client.send_eval("session", "g.inject('hang')", &[("session", Value::from("s"))]).await;
    // Queued after the query that hangs, so it must not run once the connection is lost.
    client.send_eval("session", "g.tx().commit()", &[("session", Value::from("s"))]).await;
    client.send_eval("", "g.inject('hang')", &[]).await;
    let state = &server.engine.0;
    eventually("both queries run", || state.running.load(Ordering::SeqCst) == 2).await;
    drop(client);
    eventually("both queries end", || state.running.load(Ordering::SeqCst) == 0).await;
    eventually("the session rolls back", || state.rolled_back.load(Ordering::SeqCst) == 1).await;

    let mut other = server.connect().await;
    assert_eq!(other.eval("g.inject('count')").await.values(), [0]);
    other.session_eval("s", "g.inject('count')").await.assert_fails(597, "lost its connection");
    let request = other.send("close", "session", &[("session", Argument::from(Value::from("s")))]).await;
    assert_eq!(other.answer(request).await.codes, [204]);
    assert_eq!(other.session_eval("s", "g.inject('count')").await.values(), [0], "a close frees the name");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_belongs_to_one_connection() {
    let server = Running::start(|limits| limits.session_count_max = 1).await;
    let (mut client, mut other) = (server.connect().await, server.connect().await);
    client.session_eval("s", "g.inject('add')").await;
    other.session_eval("s", "g.inject('add')").await.assert_fails(499, "another connection");
    other.session_eval("t", "g.inject('add')").await.assert_fails(499, "session_count_max");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_ends_its_session() {
    let server = Running::start(|_| {}).await;
    let mut client = server.connect().await;
    client.session_eval("s", "g.inject('add')").await;
    client.session_eval("s", "g.inject('panic')").await.assert_fails(500, "panicked as asked");
    client.session_end("s", "commit").await.assert_fails(597, "met a bug");
    assert_eq!(server.engine.0.rolled_back.load(Ordering::SeqCst), 1);
    assert_eq!(client.eval("g.inject('count')").await.values(), [0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_limit_leaves_the_session_open() {
    let server = Running::start(|limits| limits.evaluation_timeout = Some(Duration::from_millis(50))).await;
    let mut client = server.connect().await;
    client.session_eval("s", "g.inject('add')").await;
    client.session_eval("s", "g.inject('hang')").await.assert_fails(598, "50 ms");
    assert_eq!(client.session_eval("s", "g.inject('count')").await.values(), [1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_manages_its_transaction_commits_every_request() {
    let server = Running::start(|_| {}).await;
    let mut client = server.connect().await;
    let managed = [("session", Value::from("s")), ("manageTransaction", Value::Bool(true))];
    for (script, code) in
        [("g.inject('add')", 204), ("g.inject('add'); g.inject('fail')", 597), ("g.inject('add')", 204)]
    {
        let request = client.send_eval("session", script, &managed).await;
        assert_eq!(client.answer(request).await.code(), code, "{script}");
    }
    assert_eq!(client.eval("g.inject('count')").await.values(), [2], "what failed was undone, the rest committed");
    let request = client.send_eval("session", "g.inject('add')", &[("session", Value::from("s"))]).await;
    assert_eq!(client.answer(request).await.code(), 204);
    assert_eq!(client.eval("g.inject('count')").await.values(), [2], "without the argument it stays open");
}
