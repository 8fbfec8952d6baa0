//! A client of the server: one connection, one request at a time, GraphBinary 1.

use std::net::{SocketAddr, TcpStream};

use mangrove::{Error, ErrorKind, Parameters, Result, Value};
use mangrove_gremlin::Argument;
use mangrove_gremlin::graphbinary::{Request, decode_response, encode_request};
use tungstenite::{Message, WebSocket};
use uuid::Uuid;

/// The response is partial; more follow.
const PARTIAL: u16 = 206;

/// Another transaction was in conflict with this one in each of the server's attempts.
const TEMPORARY_ERROR: u16 = 596;

/// A connection.
pub struct Client {
    socket: WebSocket<TcpStream>,
    source: &'static str,
    request_count: u128,
}

impl Client {
    /// Connects. `g` in scripts means this traversal source of the server.
    pub fn connect(address: SocketAddr, source: &'static str) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let (socket, _) = tungstenite::client(format!("ws://{address}/gremlin"), stream).map_err(broken)?;
        Ok(Client { socket, source, request_count: 0 })
    }

    /// Sends a script with parameters, and passes on each result with its bulk.
    pub fn evaluate(&mut self, script: &str, parameters: &Parameters, each: &mut dyn FnMut(&Value, u64)) -> Result<()> {
        self.request_count += 1;
        let id = Uuid::from_u128(self.request_count);
        let bindings = parameters.iter().map(|(name, value)| (Value::String(name.clone()), value.clone())).collect();
        let argument = |name: &str, value: Value| (name.into(), Argument::from(value));
        let aliases = Value::map(vec![("g".into(), self.source.into())]);
        let request = Request {
            id,
            op: "eval".into(),
            processor: "".into(),
            arguments: vec![
                argument("gremlin", script.into()),
                argument("bindings", Value::map(bindings)),
                argument("aliases", aliases),
            ],
            bytecode_bindings: Parameters::new(),
        };
        let mut frame = Vec::new();
        encode_request(&request, &mut frame)?;
        self.socket.send(Message::Binary(frame.into())).map_err(broken)?;
        while self.response(id, each)? == PARTIAL {}
        Ok(())
    }

    /// Reads one response and returns its status.
    fn response(&mut self, id: Uuid, each: &mut dyn FnMut(&Value, u64)) -> Result<u16> {
        loop {
            let Message::Binary(frame) = self.socket.read().map_err(broken)? else { continue };
            let response = decode_response(&frame)?;
            if response.code >= 300 || response.request_id != Some(id) {
                let message = format!("the server answered {}: {}", response.code, response.message);
                let is_conflict = response.code == TEMPORARY_ERROR;
                let kind = if is_conflict { ErrorKind::Conflict } else { ErrorKind::Evaluation };
                return Err(Error::new(kind, message));
            }
            response.data.iter().for_each(|(bulk, value)| each(value, *bulk));
            return Ok(response.code);
        }
    }
}

fn broken(error: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Io, format!("the connection to the server: {error}"))
}
