//! Events between a request's commit and its answer: kills, time limits and panics at named points.
#![cfg(debug_assertions)]

mod common;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::client::{Answer, Client};
use common::users_server::UsersServer;
use mangrove::Database;
use mangrove_failpoint::{Armed, Point, Scenario, set};
use mangrove_graph::Value;
use mangrove_server::{Access, Config, DatabaseEngine, Server};

async fn start() -> (Client, SocketAddr) {
    let engine = DatabaseEngine::new(16 << 20).source("g", Database::in_memory());
    let server = Server::bind(Config::new("127.0.0.1:0".parse().unwrap()), Arc::new(engine)).await.unwrap();
    let address = server.local_address().unwrap();
    tokio::spawn(server.serve(std::future::pending()));
    (Client::connect(address).await, address)
}

/// Requests that commit: one query, several statements, and one of a session that commits its own transaction.
const WRITING: [&str; 2] = ["g.addV('n').constant(7)", "a = g.addV('n').next(); g.inject(7)"];

/// The delay of the answer to a request whose client leaves.
const PAUSE: Duration = Duration::from_millis(300);

fn pause_at(point: Point) -> Armed {
    set(point, || {
        std::thread::sleep(PAUSE);
        Ok(())
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_limit_that_passes_around_the_commit_fails_no_committed_request() {
    let _scenario = Scenario::new();
    let (mut client, _) = start().await;
    let mut expected = 0;
    for point in [Point::RequestSealed, Point::RequestDone] {
        for script in WRITING {
            let answer = passing_at(&mut client, point, script).await;
            expected += 1;
            assert_eq!((answer.code(), answer.values()), (200, vec![7]), "{script}: {answer:?}");
            assert_eq!(client.eval("g.V().count()").await.values(), [expected]);
        }
    }
}

/// The answer to a request whose time limit passes at this point. If the machine is so slow that the limit passes
/// before, the request has written nothing, and is sent again with twice the limit.
async fn passing_at(client: &mut Client, point: Point, script: &str) -> Answer {
    for limit_ms in (0..10).map(|turn| 100 << turn) {
        let reached = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&reached);
        let paused = set(point, move || {
            told.store(true, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(limit_ms + 200));
            Ok(())
        });
        let answer = client.eval_with(script, &[("evaluationTimeout", Value::I64(limit_ms as i64))]).await;
        drop(paused);
        if reached.load(Ordering::SeqCst) {
            return answer;
        }
        answer.assert_code(598);
    }
    panic!("with the longest time limit, of 51 s, the request `{script}` still ended before its commit");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_between_the_encoder_and_the_commit_commits_nothing() {
    let _scenario = Scenario::new();
    let (mut client, _) = start().await;
    let panicking = set(Point::RequestSealed, || panic!("as the test says"));
    for script in WRITING {
        client.eval(script).await.assert_code(500);
    }
    drop(panicking);
    assert_eq!(client.eval("g.V().count()").await.values(), [0]);
    assert_eq!(client.eval(WRITING[0]).await.values(), [7]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_before_its_answer_has_committed_once() {
    let _scenario = Scenario::new();
    let (mut client, address) = start().await;
    let paused = pause_at(Point::RequestSealed);
    for script in WRITING {
        let mut leaving = Client::connect(address).await;
        leaving.send_eval("", script, &[]).await;
        tokio::time::sleep(PAUSE / 3).await;
    }
    tokio::time::sleep(PAUSE * 2).await;
    drop(paused);
    assert_eq!(client.eval("g.V().count()").await.values(), [2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_right_that_is_taken_away_before_the_commit_counts_there() {
    let _scenario = Scenario::new();
    let served = Arc::new(UsersServer::start("sealed", |_| {}).await);
    for script in WRITING {
        let mut wim = served.connect("wim").await;
        let users = Arc::clone(&served);
        let demoting = set(Point::RequestSealed, move || {
            users.change_users(|users| users.grant("wim", "books", Some(Access::Read)).unwrap());
            // Longer than the interval at which the server reads the file.
            std::thread::sleep(Duration::from_millis(2_500));
            Ok(())
        });
        wim.eval(script).await.assert_fails(403, "needs the role write");
        drop(demoting);
        assert_eq!(wim.eval("g.V().count()").await.values(), [0], "{script}");
        served.change_users(|users| users.grant("wim", "books", Some(Access::Write)).unwrap());
        tokio::time::sleep(Duration::from_millis(2_500)).await;
    }
}
