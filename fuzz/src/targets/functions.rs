//! Composed queries, from a client through a server and back.

use std::cell::RefCell;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use mangrove::Database;
use mangrove_server::{Config, DatabaseEngine, Server};
use serde_json::json;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Message, WebSocket};

use super::scripts;
use crate::compose;

/// The server's time limit for a query.
const TIME: Duration = Duration::from_millis(200);

/// The server's memory limit for a query.
const MEMORY_BYTES: u64 = 16 << 20;

/// The size limit of a result. Its bytes exist several times: as values, encoded, and as the client's copy.
const RESULT_BYTES: usize = 2 << 20;

/// The client's timeout. A query without an answer by then hangs, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

thread_local! {
    static CLIENT: RefCell<Option<WebSocket<TcpStream>>> = const { RefCell::new(None) };
}

/// Sends the query that the bytes compose. A query counts as accepted if it can be planned: how it ends depends on its
/// progress within its time, and so on the machine.
pub fn functions(bytes: &[u8]) -> bool {
    let script = compose::query(bytes);
    let mut client = CLIENT.take().unwrap_or_else(connect);
    let answer = ask(&mut client, &script).unwrap_or_else(|error| panic!("no answer to {script}: {error}"));
    CLIENT.set(Some(client));
    assert!(!answer.contains("please report"), "{script}: {answer}");
    let is_planned = GRAPH.prepare(&script).is_ok();
    assert!(is_planned || code_of(&answer) != 200, "{script} cannot be planned, and has results: {answer}");
    is_planned
}

/// The graph for the queries.
static GRAPH: LazyLock<Database> = LazyLock::new(scripts::small_graph);

/// The address of the server, which runs until the process ends.
static SERVER: LazyLock<SocketAddr> = LazyLock::new(|| {
    let (tell, told) = std::sync::mpsc::channel();
    let serve = move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        runtime.expect("the system has threads").block_on(async {
            let mut config = Config::new(SocketAddr::from(([127, 0, 0, 1], 0)));
            config.limits.evaluation_timeout = Some(TIME);
            config.limits.result_bytes_max = RESULT_BYTES;
            let engine = DatabaseEngine::new(MEMORY_BYTES).source("g", GRAPH.clone());
            let server = Server::bind(config, Arc::new(engine)).await.expect("a port is free");
            let address = server.local_address().expect("the server listens");
            tell.send(address).expect("the thread that started the server waits for the address");
            server.serve(std::future::pending()).await.expect("the server serves until the process ends");
        });
    };
    std::thread::Builder::new().name("server".into()).spawn(serve).expect("the system has a thread");
    told.recv().expect("the server starts")
});

fn connect() -> WebSocket<TcpStream> {
    let address = *SERVER;
    let stream = TcpStream::connect(address).expect("the server takes connections");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    stream.set_nodelay(true).expect("an option can be set");
    // The server limits results. The default limits of the client library are smaller.
    let config = WebSocketConfig::default().max_message_size(None).max_frame_size(None);
    let url = format!("ws://{address}/gremlin");
    tungstenite::client::client_with_config(url, stream, Some(config)).expect("the server speaks WebSocket").0
}

/// The last message of the answer to a query.
fn ask(client: &mut WebSocket<TcpStream>, script: &str) -> Result<String, tungstenite::Error> {
    let y: Vec<i32> = (0..1_000).collect();
    let arguments = json!({ "gremlin": script, "bindings": { "x": "x".repeat(1_000), "y": y } });
    let id = uuid::Uuid::nil();
    let request = json!({ "requestId": id, "op": "eval", "processor": "", "args": arguments });
    client.send(Message::text(request.to_string()))?;
    loop {
        if let Message::Text(text) = client.read()?
            && code_of(&text) != 206
        {
            return Ok(text.as_str().to_owned());
        }
    }
}

/// The status of a response. No result can look like a status, because quotes in texts are escaped.
fn code_of(response: &str) -> u16 {
    let digits = response.split_once("\"code\":").map_or("", |(_, after)| after);
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().unwrap_or_else(|_| panic!("a response without a status: {response}"))
}
