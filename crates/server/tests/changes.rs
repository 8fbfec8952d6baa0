//! The change feed as server-sent events, read by a client that loses its connection.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mangrove::{Database, DatabaseOptions, FeedContent, SimDisk};
use mangrove_server::{Config, DatabaseEngine, Server};
use serde_json::Value as Json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::common::client::Client;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

struct Served {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<mangrove_graph::Result<()>>,
}

async fn serve(feed: FeedContent) -> Served {
    let mut options = DatabaseOptions { tablet_count: 2, ..DatabaseOptions::default() };
    options.durability.checkpoint_log_bytes = Some(0);
    options.durability.log.prepare_ahead = false;
    options.durability.log.feed = feed;
    let database = Database::open_on(Arc::new(SimDisk::new()), &options).unwrap();
    let memory = Database::open("memory:", &DatabaseOptions::default()).unwrap();
    let engine = DatabaseEngine::new(1 << 20).source("g", database).source("other", memory);
    let server = Server::bind(Config::new("127.0.0.1:0".parse().unwrap()), Arc::new(engine)).await.unwrap();
    let address = server.local_address().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve(async {
        let _ = stopped.await;
    }));
    Served { address, stop, serving }
}

/// An open answer.
struct Events {
    lines: BufReader<TcpStream>,
    status: u16,
    head: String,
}

#[derive(Debug, PartialEq)]
struct Event {
    id: String,
    data: Json,
}

impl Events {
    async fn open(address: SocketAddr, path: &str, headers: &str) -> Events {
        let mut stream = TcpStream::connect(address).await.unwrap();
        // The answer to HTTP/1.0 comes without chunks.
        stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n{headers}\r\n").as_bytes()).await.unwrap();
        let mut events = Events { lines: BufReader::new(stream), status: 0, head: String::new() };
        let status = events.line().await.unwrap();
        events.status = status.split(' ').nth(1).unwrap().parse().unwrap();
        while let Some(line) = events.line().await.filter(|line| !line.is_empty()) {
            events.head += &format!("{}\n", line.to_lowercase());
        }
        events
    }

    async fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = timeout(PATIENCE, self.lines.read_line(&mut line)).await.expect("the server sends something");
        (read.unwrap_or(0) > 0).then(|| line.trim_end().to_owned())
    }

    /// The next event; `None` at the end of the answer.
    async fn next(&mut self) -> Option<Event> {
        let (mut id, mut data) = (String::new(), None);
        loop {
            let line = self.line().await?;
            match line.split_once(": ") {
                Some(("id", text)) => id = text.to_owned(),
                Some(("data", text)) => data = Some(serde_json::from_str(text).unwrap()),
                _ if line.is_empty() && data.is_some() => return Some(Event { id, data: data.unwrap() }),
                _ => {}
            }
        }
    }

    async fn rest(mut self) -> Vec<Event> {
        let mut all = Vec::new();
        while let Some(event) = self.next().await {
            all.push(event);
        }
        all
    }
}

async fn write(client: &mut Client, script: &str) {
    assert_eq!(client.eval(script).await.code(), 204, "{script}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_reconnects_with_the_last_id_sees_each_change_once() {
    let Served { address, stop, serving } = serve(FeedContent::Full).await;
    let mut client = Client::connect(address).await;
    let writes: Vec<String> = (0..40)
        .map(|n| match n % 4 {
            0 => format!("g.addV('person').property(T.id, {n}).property('name', 'n{n}').iterate()"),
            1 => format!("g.V({}).property('name', 'changed').iterate()", n - 1),
            2 => format!("g.addV('person').addE('knows').to(__.V({})).property('since', {n}).iterate()", n - 2),
            _ => format!("g.V({}).drop().iterate()", n - 3),
        })
        .collect();
    let reader = tokio::spawn(async move {
        let (mut seen, mut commits) = (Vec::<Event>::new(), 0);
        'connections: loop {
            let last = seen.last().map(|event| format!("Last-Event-ID: {}\r\n", event.id)).unwrap_or_default();
            // The header goes before the parameter.
            let mut events = Events::open(address, "/changes?from=0", &last).await;
            assert_eq!(events.status, 200);
            assert!(events.head.contains("content-type: text/event-stream"), "{}", events.head);
            for _ in 0..7 {
                let event = events.next().await.expect("the feed goes on");
                commits += usize::from(event.data["op"] == "commit");
                seen.push(event);
                if commits == 40 {
                    break 'connections;
                }
            }
        }
        seen
    });
    for script in &writes {
        write(&mut client, script).await;
    }
    let seen = timeout(PATIENCE, reader).await.unwrap().unwrap();
    let all = Events::open(address, "/changes?follow=false", "").await.rest().await;
    assert_eq!(seen, all);
    let op = |event: &Event| event.data["op"].as_str().unwrap().to_owned();
    assert_eq!(all[..3].iter().map(op).collect::<Vec<_>>(), ["insert", "set", "commit"]);
    assert!(all.iter().all(|event| event.data["at"].as_str() == Some(&*event.id)));
    let changed = all.iter().find(|event| event.data["after"] == "changed").unwrap();
    assert_eq!((&changed.data["before"], &changed.data["id"]["@value"]), (&"n0".into(), &0.into()));
    let plain = Events::open(address, "/changes?follow=false&types=false", "").await.rest().await;
    assert_eq!(plain.iter().find(|event| event.data["key"] == "since").unwrap().data["after"], 2);

    // The shutdown ends a feed that waits.
    let mut waiting = Events::open(address, &format!("/changes?from={}", all.last().unwrap().id), "").await;
    drop(client);
    stop.send(()).unwrap();
    assert_eq!(waiting.next().await, None);
    timeout(PATIENCE, serving).await.unwrap().unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_that_cannot_be_given_is_refused_with_the_cause() {
    let served = serve(FeedContent::Off).await;
    let address = served.address;
    let mut client = Client::connect(address).await;
    write(&mut client, "g.addV('person').property(T.id, 1).iterate()").await;
    write(&mut client, "g.V(1).property('name', 'ada').iterate()").await;
    for (path, status, words) in [
        ("/changes?from=x", 400, "no position of the change feed"),
        ("/changes?since=1", 400, "no parameter `since`"),
        ("/changes?follow=maybe", 400, "true or false"),
        ("/changes?aliases.g=none", 400, "no traversal source `none`"),
        ("/changes?aliases.g=other", 400, "a graph in memory"),
    ] {
        let mut events = Events::open(address, path, "").await;
        assert_eq!(events.status, status, "{path}");
        let body = events.line().await.unwrap();
        assert!(body.contains(words), "{path}: {body}");
    }
    // What could be read is sent, then the cause why the feed ends.
    let all = Events::open(address, "/changes", "").await.rest().await;
    assert_eq!(all.len(), 3, "{all:?}");
    assert!(all[2].data["message"].as_str().unwrap().contains("option feed was off"), "{all:?}");
}
