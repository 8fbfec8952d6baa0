//! A client of the server: one connection, one request at a time, GraphBinary 1.

use std::net::{SocketAddr, TcpStream};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use mangrove::{Error, ErrorKind, Parameters, Result, Value};
use mangrove_gremlin::Argument;
use mangrove_gremlin::graphbinary::{Request, Response, decode_response, encode_request};
use smol_str::SmolStr;
use tungstenite::{Message, WebSocket};
use uuid::Uuid;

/// The response is partial; more follow.
const PARTIAL: u16 = 206;

/// The server asks for a password.
const AUTHENTICATE: u16 = 407;

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

    /// Logs in on a server with users. The server asks for the password when the first request comes.
    pub fn log_in(&mut self, user: &str, password: &str) -> Result<()> {
        let id = self.send_script("g.inject(1)", &Parameters::new())?;
        if self.next_response(id)?.code != AUTHENTICATE {
            return Err(Error::new(ErrorKind::InvalidArgument, "the server asks for no password"));
        }
        let sasl = BASE64.encode(format!("\0{user}\0{password}"));
        self.send(id, "authentication", vec![("sasl".into(), Argument::from(Value::from(sasl)))])?;
        while self.response(id, &mut |_, _| {})? == PARTIAL {}
        Ok(())
    }

    /// Sends a script with parameters, and passes on each result with its bulk.
    pub fn evaluate(&mut self, script: &str, parameters: &Parameters, each: &mut dyn FnMut(&Value, u64)) -> Result<()> {
        let id = self.send_script(script, parameters)?;
        while self.response(id, each)? == PARTIAL {}
        Ok(())
    }

    /// Sends a script and returns the id of the request.
    fn send_script(&mut self, script: &str, parameters: &Parameters) -> Result<Uuid> {
        self.request_count += 1;
        let id = Uuid::from_u128(self.request_count);
        let bindings = parameters.iter().map(|(name, value)| (Value::String(name.clone()), value.clone())).collect();
        let argument = |name: &str, value: Value| (name.into(), Argument::from(value));
        let aliases = Value::map(vec![("g".into(), self.source.into())]);
        let arguments = vec![
            argument("gremlin", script.into()),
            argument("bindings", Value::map(bindings)),
            argument("aliases", aliases),
        ];
        self.send(id, "eval", arguments)?;
        Ok(id)
    }

    fn send(&mut self, id: Uuid, op: &str, arguments: Vec<(SmolStr, Argument)>) -> Result<()> {
        let (op, processor) = (op.into(), "".into());
        let request = Request { id, op, processor, arguments, bytecode_bindings: Parameters::new() };
        let mut frame = Vec::new();
        encode_request(&request, &mut frame)?;
        self.socket.send(Message::Binary(frame.into())).map_err(broken)
    }

    /// Reads one response.
    fn next_response(&mut self, id: Uuid) -> Result<Response> {
        loop {
            let Message::Binary(frame) = self.socket.read().map_err(broken)? else { continue };
            let response = decode_response(&frame)?;
            if response.request_id != Some(id) {
                let message = format!("the server answered another request: {} {}", response.code, response.message);
                return Err(Error::new(ErrorKind::Evaluation, message));
            }
            return Ok(response);
        }
    }

    /// Reads one response and returns its status.
    fn response(&mut self, id: Uuid, each: &mut dyn FnMut(&Value, u64)) -> Result<u16> {
        let response = self.next_response(id)?;
        if response.code >= 300 {
            let message = format!("the server answered {}: {}", response.code, response.message);
            let is_conflict = response.code == TEMPORARY_ERROR;
            let kind = if is_conflict { ErrorKind::Conflict } else { ErrorKind::Evaluation };
            return Err(Error::new(kind, message));
        }
        response.data.iter().for_each(|(bulk, value)| each(value, *bulk));
        Ok(response.code)
    }
}

fn broken(error: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Io, format!("the connection to the server: {error}"))
}
