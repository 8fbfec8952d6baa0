//! A small Gremlin client: scripts to a server over WebSocket, in GraphBinary.
//!
//! One request at a time on one connection, which is all a command needs. What the server refuses is reported in
//! its own words.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use mangrove::{Error, ErrorKind, Parameters, Result, Value};
use mangrove_gremlin::Argument;
use mangrove_gremlin::graphbinary::{Request, Response, decode_response, encode_request};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};
use uuid::Uuid;

/// How long to wait for a server to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const PARTIAL_CONTENT: u16 = 206;

/// A connection to a server.
pub struct Client {
    runtime: Runtime,
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    url: String,
}

impl Client {
    /// Connects to `ws://host:port/gremlin`; the scheme and the path may be left out.
    pub fn connect(url: &str) -> Result<Self> {
        let url = full_url(url)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| Error::new(ErrorKind::Io, format!("the client could not be started: {e}")))?;
        let socket = runtime.block_on(async {
            let connecting = tokio::time::timeout(CONNECT_TIMEOUT, connect_async(&url)).await;
            let reason = match connecting {
                Ok(Ok((socket, _))) => return Ok(socket),
                Ok(Err(error)) => error.to_string(),
                Err(_) => format!("no answer in {} s", CONNECT_TIMEOUT.as_secs()),
            };
            let message = format!("cannot connect to {url}: {reason}; is a server running there (`mangrove serve`)?");
            Err(Error::new(ErrorKind::Io, message))
        })?;
        Ok(Client { runtime, socket, url })
    }

    /// Runs a script in a transaction of its own and returns all its results.
    pub fn run(&mut self, script: &str, parameters: &Parameters, timeout: Option<Duration>) -> Result<Vec<Value>> {
        let bindings = parameters.iter().map(|(name, value)| (Value::String(name.clone()), value.clone())).collect();
        let mut arguments = vec![
            ("gremlin".into(), Argument::from(Value::from(script))),
            ("language".into(), Argument::from(Value::from("gremlin-lang"))),
            ("bindings".into(), Argument::from(Value::map(bindings))),
        ];
        if let Some(limit) = timeout {
            let millis = i64::try_from(limit.as_millis()).unwrap_or(i64::MAX);
            arguments.push(("evaluationTimeout".into(), Argument::from(Value::I64(millis))));
        }
        let request = Request {
            id: Uuid::new_v4(),
            op: "eval".into(),
            processor: "".into(),
            arguments,
            bytecode_bindings: Parameters::new(),
        };
        let mut frame = Vec::new();
        encode_request(&request, &mut frame)?;
        let Client { runtime, socket, url } = self;
        let lost = |reason: String| Error::new(ErrorKind::Io, format!("the connection to {url} was lost: {reason}"));
        runtime.block_on(async {
            socket.send(Message::Binary(frame.into())).await.map_err(|e| lost(e.to_string()))?;
            let mut results = Vec::new();
            loop {
                let message = match socket.next().await {
                    Some(Ok(Message::Binary(bytes))) => bytes,
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
                    Some(Ok(other)) => return Err(lost(format!("the server sent {other}"))),
                    Some(Err(error)) => return Err(lost(error.to_string())),
                    None => return Err(lost("the server closed it".to_owned())),
                };
                let Response { code, message, data, .. } = decode_response(&message)?;
                if !(200..300).contains(&code) {
                    return Err(Error::new(kind_of(code), message.to_string()));
                }
                results.extend(data.into_iter().flat_map(|(bulk, value)| (0..bulk).map(move |_| value.clone())));
                if code != PARTIAL_CONTENT {
                    return Ok(results);
                }
            }
        })
    }
}

/// What a status of the protocol means for the one who asked.
fn kind_of(code: u16) -> ErrorKind {
    match code {
        498 => ErrorKind::Syntax,
        499 => ErrorKind::InvalidArgument,
        596 => ErrorKind::Conflict,
        598 => ErrorKind::Timeout,
        500 => ErrorKind::Bug,
        _ => ErrorKind::Evaluation,
    }
}

fn full_url(given: &str) -> Result<String> {
    let address = match given.split_once("://") {
        None | Some(("ws", _)) => given.rsplit_once("://").map_or(given, |(_, address)| address),
        Some((scheme, _)) => {
            return Err(Error::invalid(format!(
                "--url {given}: this version speaks ws:// only, not {scheme}://; write ws://host:port/gremlin"
            )));
        }
    };
    Ok(if address.contains('/') { format!("ws://{address}") } else { format!("ws://{address}/gremlin") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_may_be_short() {
        for given in ["localhost:8182", "ws://localhost:8182", "ws://localhost:8182/gremlin"] {
            assert_eq!(full_url(given).unwrap(), "ws://localhost:8182/gremlin");
        }
        assert!(full_url("https://x").unwrap_err().message().contains("ws://"));
    }
}
