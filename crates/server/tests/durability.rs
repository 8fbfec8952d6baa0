//! A disk that fails under a server: the answers of `/health` and `/metrics`, and of its clients' requests.

use std::net::SocketAddr;
use std::sync::Arc;

use mangrove::{Database, DatabaseOptions, SimDisk};
use mangrove_server::{Config, DatabaseEngine, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::common::client::Client;

/// Nothing is written to the disk without a request.
fn options() -> DatabaseOptions {
    let mut options = DatabaseOptions { tablet_count: 2, ..DatabaseOptions::default() };
    options.durability.checkpoint_log_bytes = Some(0);
    options.durability.log.prepare_ahead = false;
    options
}

async fn serve(disk: &SimDisk) -> (SocketAddr, Client) {
    let database = Database::open_on(Arc::new(disk.clone()), &options()).unwrap();
    let engine = DatabaseEngine::new(1 << 20).source("g", database);
    let server = Server::bind(Config::new("127.0.0.1:0".parse().unwrap()), Arc::new(engine)).await.unwrap();
    let address = server.local_address().unwrap();
    tokio::spawn(server.serve(std::future::pending()));
    (address, Client::connect(address).await)
}

async fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_sync_ends_writing_and_reads_go_on() {
    let disk = SimDisk::new();
    let (address, mut client) = serve(&disk).await;
    assert_eq!(client.eval("g.addV('n').property('number', 1).iterate()").await.code(), 204);
    assert!(get(address, "/health").await.contains("\"status\":\"ok\""));
    disk.fail_sync(disk.syncs() + 1);
    // The commit that was under way may be there after a restart.
    client.eval("g.addV('n').iterate()").await.assert_fails(505, "not known whether");
    let syncs = disk.syncs();
    client.eval("g.addV('n').iterate()").await.assert_fails(503, "cannot sync wal/");
    client.eval("g.addV('n').iterate()").await.assert_fails(503, "restart");
    assert_eq!(disk.syncs(), syncs, "nothing is synced again");
    assert_eq!(client.eval("g.V().count()").await.values(), [1], "what is durable is there");
    let health = get(address, "/health").await;
    assert!(health.starts_with("HTTP/1.1 200") && health.contains("\"read-only\""), "{health}");
    assert!(health.contains("cannot sync wal/"), "{health}");
    assert!(get(address, "/metrics").await.contains("mangrove_log_running{graph=\"g\"} 0"));
    for seed in 0..10 {
        let (address, mut client) = serve(&disk.power_cut(seed)).await;
        let count = client.eval("g.V().count()").await.values();
        assert!(count == [1] || count == [2], "{count:?}");
        assert_eq!(client.eval("g.addV('n').iterate()").await.code(), 204);
        assert!(get(address, "/health").await.contains("\"status\":\"ok\""));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_and_goes_on_by_itself() {
    let disk = SimDisk::new();
    let (address, mut client) = serve(&disk).await;
    assert_eq!(client.eval("g.addV('n').iterate()").await.code(), 204);
    disk.set_capacity(Some(disk.used()));
    let text = "x".repeat(100_000);
    let write = format!("g.addV('n').property('text', '{text}').iterate()");
    let mut written = 1;
    let refused = loop {
        let answer = client.eval(&write).await;
        if answer.code() != 204 {
            break answer;
        }
        written += 1;
    };
    refused.assert_fails(503, "make room");
    assert!(get(address, "/health").await.contains("\"read-only\""));
    assert_eq!(client.eval("g.V().count()").await.values(), [written]);
    disk.set_capacity(None);
    assert_eq!(client.eval(&write).await.code(), 204);
    assert!(get(address, "/health").await.contains("\"status\":\"ok\""));
}
