//! The permits, sessions, memory and threads that one client leaves to others.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mangrove_gremlin::Encoding;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio::time::Instant;

use crate::common::Running;
use crate::common::client::Client;
use crate::common::users_server::UsersServer;

const UPGRADE: &str = "GET /gremlin HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                       Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// Requests a WebSocket from a loopback address. Returns the connection, and the beginning of the answer.
async fn knock(server: SocketAddr, from: Ipv4Addr) -> (tokio::net::TcpStream, String) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::new(IpAddr::V4(from), 0)).unwrap();
    let mut stream = socket.connect(server).await.unwrap();
    stream.write_all(UPGRADE.as_bytes()).await.unwrap();
    let mut answer = vec![0; 4_096];
    let length = stream.read(&mut answer).await.unwrap();
    (stream, String::from_utf8_lossy(&answer[..length]).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_has_its_share_of_connections() {
    let server = Running::start(|limits| limits.connection_count_address_max = 2).await;
    let here = Ipv4Addr::LOCALHOST;
    let (one, two) = (knock(server.address, here).await, knock(server.address, here).await);
    assert!(one.1.starts_with("HTTP/1.1 101") && two.1.starts_with("HTTP/1.1 101"), "{one:?} {two:?}");
    let (_, refused) = knock(server.address, here).await;
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("connection_count_address_max"), "{refused}");
    let (_, other) = knock(server.address, Ipv4Addr::new(127, 0, 0, 2)).await;
    assert!(other.starts_with("HTTP/1.1 101"), "{other}");
    drop(one);
    for _ in 0..100 {
        if knock(server.address, here).await.1.starts_with("HTTP/1.1 101") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the share was not given back");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_has_a_share_of_connections_and_sessions() {
    let served = UsersServer::start("shares", |limits| {
        limits.connection_count_user_max = 2;
        limits.session_count_user_max = 2;
    })
    .await;
    let (mut wim, second) = (served.connect("wim").await, served.connect("wim").await);
    let mut third = Client::connect(served.address).await;
    let first = third.send_eval("", "g.inject(1)", &[]).await;
    assert_eq!(third.response().await.unwrap().code, 407);
    third.authenticate(first, "wim", crate::common::users_server::PASSWORD).await;
    let refused = third.response().await.unwrap();
    assert!(refused.message.contains("connection_count_user_max"), "{refused:?}");
    // The password was right each time, and the reason of the end says so.
    for _ in 0..2 {
        third.authenticate(first, "wim", crate::common::users_server::PASSWORD).await;
    }
    let farewell = third.farewell().await.unwrap();
    assert!(farewell.contains("connection_count_user_max"), "{farewell}");
    drop(second);

    for session in ["a", "b"] {
        wim.session_eval(session, "g.inject(1)").await.assert_code(200);
    }
    wim.session_eval("c", "g.inject(1)").await.assert_fails(499, "session_count_user_max");
    let mut rita = served.connect("rita").await;
    rita.session_eval("c", "g.inject(1)").await.assert_code(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_has_its_share_of_sessions() {
    let server = Running::start(|limits| limits.session_count_address_max = 1).await;
    let (mut one, mut two) = (server.connect().await, server.connect().await);
    one.session_eval("a", "g.inject('count')").await.assert_code(200);
    two.session_eval("b", "g.inject('count')").await.assert_fails(499, "session_count_address_max");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_may_send_no_more_than_a_login_needs() {
    let served = UsersServer::start("strangers", |limits| limits.login_bytes_max = 64 << 10).await;
    // One message, whole or in pieces, or many.
    for (count, length) in [(1, 1 << 20), (40, 4 << 10)] {
        let mut stranger = Client::connect(served.address).await;
        let script = format!("g.inject('{}')", "x".repeat(length));
        for _ in 0..count {
            stranger.send_if_open(&script).await;
        }
        let farewell = tokio::time::timeout(Duration::from_secs(5), stranger.farewell()).await.expect("it is closed");
        assert!(farewell.is_none_or(|reason| reason.contains("login_bytes_max")));
    }
    // After the login a request may be as long as the limit on requests allows.
    let mut rita = served.connect("rita").await;
    let script = format!("g.inject('{}').count()", "x".repeat(1 << 20));
    assert_eq!(rita.eval(&script).await.values(), [1]);
    // Requests that fit are held, and run after the login.
    let mut slow = Client::connect(served.address).await;
    let first = slow.send_eval("", &format!("g.inject('{}').count()", "x".repeat(32 << 10)), &[]).await;
    assert_eq!(slow.response().await.unwrap().code, 407);
    slow.authenticate(first, "rita", crate::common::users_server::PASSWORD).await;
    assert_eq!(slow.answer(first).await.values(), [1]);
}

/// The longest time between two turns of a background task while `task` runs.
async fn longest_gap<T>(task: impl Future<Output = T>) -> (Duration, T) {
    let longest_ms = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&longest_ms);
    let ticking = tokio::spawn(async move {
        let mut last = Instant::now();
        loop {
            tokio::time::sleep(Duration::from_millis(2)).await;
            seen.fetch_max(last.elapsed().as_millis() as u64, Ordering::Relaxed);
            last = Instant::now();
        }
    });
    let done = task.await;
    // The turn after the longest one has come, too.
    tokio::time::sleep(Duration::from_millis(10)).await;
    ticking.abort();
    (Duration::from_millis(longest_ms.load(Ordering::Relaxed)), done)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_long_message_is_decoded_beside_the_others() {
    let server = Running::start(|_| {}).await;
    let numbers = "{\"@type\":\"g:Int32\",\"@value\":1},".repeat(200_000);
    let bindings = format!("{{\"@type\":\"g:List\",\"@value\":[{}]}}", numbers.trim_end_matches(','));
    let message = format!(
        "{{\"requestId\":\"41d2e28a-20a4-4ab0-b379-d810dede3786\",\"op\":\"eval\",\"processor\":\"\",\"args\":\
         {{\"gremlin\":\"g.inject('count')\",\"bindings\":{{\"x\":{bindings}}}}}}}"
    );
    let decoded = || {
        let began = Instant::now();
        Encoding::JSON.decode_request(message.as_bytes()).unwrap();
        began.elapsed()
    };
    let alone = (0..5).map(|_| decoded()).min().unwrap();
    let body = format!("{{\"gremlin\":\"g.inject('count')\",\"bindings\":{{\"x\":{bindings}}}}}");
    let request = format!(
        "POST /gremlin HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut client = server.connect().await;
    // Others wait also when the machine is busy, so the shortest of some waits counts.
    let mut gaps = [Duration::MAX; 2];
    for _ in 0..50 {
        let (gap, answer) = longest_gap(async {
            client.send_text(&message).await;
            client.text().await
        })
        .await;
        assert!(answer.contains("\"code\":200"), "{answer}");
        gaps[0] = gaps[0].min(gap);
        let (gap, answer) = longest_gap(crate::common::http(server.address, &request)).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        gaps[1] = gaps[1].min(gap);
        if gaps.iter().all(|gap| *gap < alone / 2) {
            return;
        }
    }
    panic!("over a WebSocket and over HTTP others waited for {gaps:?}; to decode takes {alone:?}");
}
