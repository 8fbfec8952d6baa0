//! Concurrent clients over the wire: of clients that merge the same element one makes it, a unique index has one
//! element for each value, and a rule of the schema holds. As in `crates/db/tests/races.rs`, with the server's own
//! retries.

use std::net::SocketAddr;
use std::sync::Arc;

use mangrove::Database;
use mangrove_graph::Value;
use mangrove_server::{Config, DatabaseEngine, Server};

use crate::common::client::{Answer, Client};

const QUERY_MEMORY_BYTES: u64 = 16 << 20;
const CLIENTS: i64 = 4;
const THINGS: i64 = 60;

/// A server over an empty graph in which these scripts have run, with sources of both isolation levels.
async fn serve(scripts: &[&str]) -> (Database, SocketAddr) {
    let database = Database::in_memory();
    let engine = DatabaseEngine::new(QUERY_MEMORY_BYTES).source("g", database.clone());
    let server = Server::bind(Config::new("127.0.0.1:0".parse().unwrap()), Arc::new(engine)).await.unwrap();
    let address = server.local_address().unwrap();
    tokio::spawn(server.serve(std::future::pending()));
    for script in scripts {
        database.query(script).unwrap().collect().unwrap();
    }
    (database, address)
}

/// Lets every client send the same scripts, and passes the outcome of each to `heed`.
async fn all_send(address: SocketAddr, scripts: Vec<String>, heed: fn(&Answer, &str)) {
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let (mut client, scripts) = (Client::connect(address).await, scripts.clone());
        clients.push(tokio::spawn(async move {
            for script in &scripts {
                // The client runs a request again if its conflict outlasts the server's retries.
                loop {
                    let answer = client.eval(&format!("{script}.iterate()")).await;
                    heed(&answer, script);
                    if answer.code() != CONFLICT {
                        break;
                    }
                }
            }
        }));
    }
    for client in clients {
        client.await.unwrap();
    }
}

/// The server's message for a conflict with another transaction.
const CONFLICT: i32 = 596;

fn number(database: &Database, script: &str) -> i64 {
    match database.query(script).unwrap().collect().unwrap().as_slice() {
        [Value::I64(n)] => *n,
        other => panic!("{script}: {other:?}"),
    }
}

fn succeeds(answer: &Answer, script: &str) {
    assert!([204, CONFLICT].contains(&answer.code()), "{script}: {answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_all_clients_merge_is_made_once() {
    let index = |unique: bool| {
        format!("g.call('mangrove.index.create').with('label', 'person').with('key', 'name').with('unique', {unique})")
    };
    for before in [vec![], vec![index(false)], vec![index(true)]] {
        let scripts: Vec<&str> = before.iter().map(String::as_str).collect();
        let (database, address) = serve(&scripts).await;
        let mut merges: Vec<String> = Vec::new();
        for n in 0..THINGS {
            merges.push(format!("g.mergeV([(T.label): 'person', name: 'n{n}']).option(onMatch, [met: true])"));
            merges.push(format!(
                "g.V().has('person', 'name', 'n{n}').as('a').V().has('person', 'name', 'n0').as('b').\
                 mergeE([(T.label): 'at', (OUT): Merge.outV, (IN): Merge.inV]).option(outV, select('a')).\
                 option(inV, select('b'))"
            ));
        }
        all_send(address, merges, succeeds).await;
        assert_eq!(number(&database, "g.V().count()"), THINGS, "{before:?}");
        assert_eq!(number(&database, "g.V().has('met').count()"), THINGS, "{before:?}");
        assert_eq!(number(&database, "g.E().count()"), THINGS, "{before:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_all_clients_add_has_one_owner() {
    let unique = "g.call('mangrove.index.create').with('label', 'person').with('key', 'mail').with('unique', true)";
    let (database, address) = serve(&[unique]).await;
    let adds = (0..THINGS).map(|n| format!("g.addV('person').property('mail', {n})")).collect();
    // All clients but one are told the reason.
    all_send(address, adds, |answer, script| {
        let is_refused = answer.message.contains("'mail'");
        assert!(is_refused || [204, CONFLICT].contains(&answer.code()), "{script}: {answer:?}");
    })
    .await;
    assert_eq!(number(&database, "g.V().count()"), THINGS);
    assert_eq!(number(&database, "g.V().values('mail').dedup().count()"), THINGS);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_holds_of_what_all_clients_write() {
    let (database, address) =
        serve(&["g.call('mangrove.schema.require').with('label', 'person').with('key', 'name')"]).await;
    let mut writes = Vec::new();
    for n in 0..THINGS {
        writes.push("g.addV('person')".to_owned());
        writes.push(format!("g.addV('person').property('name', 'n{n}')"));
        writes.push("g.V().hasLabel('person').limit(1).properties('name').drop()".to_owned());
        writes.push("g.V().hasLabel('person').limit(1).property('name', 'again')".to_owned());
    }
    all_send(address, writes, |answer, script| {
        let is_refused = answer.message.contains("no 'name'");
        assert!(is_refused || [204, CONFLICT].contains(&answer.code()), "{script}: {answer:?}");
    })
    .await;
    assert_eq!(number(&database, "g.V().hasNot('name').count()"), 0);
    assert_eq!(number(&database, "g.V().count()"), CLIENTS * THINGS);
}
