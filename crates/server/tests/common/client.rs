//! The client: requests and responses byte by byte, as the description of the protocol defines them.

use std::net::SocketAddr;

use futures_util::{SinkExt, StreamExt};
use mangrove_graph::Value;
use mangrove_gremlin::graphbinary::{encode_argument, encode_value};
use mangrove_gremlin::{Argument, Bytecode, Instruction};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};
use uuid::Uuid;

pub const MIME_TYPE: &str = "application/vnd.graphbinary-v1.0";

/// A connection.
pub struct Client {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    request_count: u128,
}

/// One response message.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    pub request: Option<Uuid>,
    pub code: i32,
    pub message: String,
    /// Bulk and value; the bulk of a plain value is 1.
    pub results: Vec<(i64, i64)>,
}

/// All of a request's responses.
#[derive(Debug)]
pub struct Answer {
    /// The status codes in order.
    pub codes: Vec<i32>,
    /// The last response's message.
    pub message: String,
    /// The results of all responses.
    pub results: Vec<(i64, i64)>,
}

impl Answer {
    pub fn code(&self) -> i32 {
        *self.codes.last().unwrap()
    }

    pub fn values(&self) -> Vec<i64> {
        self.results.iter().map(|(_, value)| *value).collect()
    }

    /// Asserts a failure with these words in its message.
    #[track_caller]
    pub fn assert_fails(&self, code: i32, words: &str) {
        assert_eq!(self.code(), code, "{self:?}");
        assert!(self.message.contains(words), "{:?} does not contain {words:?}", self.message);
    }
}

impl Answer {
    /// Asserts this status.
    #[track_caller]
    pub fn assert_code(&self, code: i32) {
        assert_eq!(self.code(), code, "{self:?}");
    }
}

impl Client {
    pub async fn connect(address: SocketAddr) -> Client {
        let (socket, _) = connect_async(format!("ws://{address}/gremlin")).await.unwrap();
        Client { socket, request_count: 0 }
    }

    /// Sends a script and collects its answer.
    pub async fn eval(&mut self, script: &str) -> Answer {
        self.eval_with(script, &[]).await
    }

    /// Sends a script with further arguments.
    pub async fn eval_with(&mut self, script: &str, more: &[(&str, Value)]) -> Answer {
        let request = self.send_eval("", script, more).await;
        self.answer(request).await
    }

    /// Sends a script without waiting for the answer.
    pub async fn send_eval(&mut self, processor: &str, script: &str, more: &[(&str, Value)]) -> Uuid {
        let mut arguments = vec![("gremlin", Argument::from(Value::from(script)))];
        arguments.extend(more.iter().map(|(name, value)| (*name, Argument::from(value.clone()))));
        self.send("eval", processor, &arguments).await
    }

    /// Sends a script in a session and collects its answer.
    pub async fn session_eval(&mut self, session: &str, script: &str) -> Answer {
        let request = self.send_eval("session", script, &[("session", Value::from(session))]).await;
        self.answer(request).await
    }

    /// Sends `tx commit` or `tx rollback` in a session.
    pub async fn session_end(&mut self, session: &str, command: &str) -> Answer {
        let source = vec![Instruction::new("tx", vec![Argument::from(Value::from(command))])];
        let bytecode = Bytecode { source, steps: Vec::new() };
        let arguments = [("gremlin", Argument::Traversal(bytecode)), ("session", Argument::from(Value::from(session)))];
        let request = self.send("bytecode", "session", &arguments).await;
        self.answer(request).await
    }

    /// Sends a traversal of one `inject` and collects its answer.
    pub async fn bytecode(&mut self, command: &str, operand: i64, more: &[(&str, Argument)]) -> Answer {
        let arguments = vec![Argument::from(Value::from(command)), Argument::from(Value::I64(operand))];
        let steps = vec![Instruction::new("inject", arguments)];
        let mut arguments = vec![("gremlin", Argument::Traversal(Bytecode { source: Vec::new(), steps }))];
        arguments.extend(more.iter().cloned());
        let request = self.send("bytecode", "traversal", &arguments).await;
        self.answer(request).await
    }

    /// Sends a request.
    pub async fn send(&mut self, op: &str, processor: &str, arguments: &[(&str, Argument)]) -> Uuid {
        self.request_count += 1;
        let id = Uuid::from_u128(self.request_count);
        self.send_bytes(request_bytes(id, op, processor, arguments)).await;
        id
    }

    pub async fn send_bytes(&mut self, bytes: Vec<u8>) {
        self.socket.send(Message::Binary(bytes.into())).await.unwrap();
    }

    pub async fn send_text(&mut self, text: &str) {
        self.socket.send(Message::Text(text.into())).await.unwrap();
    }

    /// Sends a script, unless the server has ended the connection.
    pub async fn send_if_open(&mut self, script: &str) {
        self.request_count += 1;
        let arguments = [("gremlin", Argument::from(Value::from(script)))];
        let bytes = request_bytes(Uuid::from_u128(self.request_count), "eval", "", &arguments);
        let _ = self.socket.send(Message::Binary(bytes.into())).await;
    }

    /// The next text message.
    pub async fn text(&mut self) -> String {
        self.socket.next().await.unwrap().unwrap().into_text().unwrap().to_string()
    }

    /// The text in the next binary message.
    pub async fn binary_text(&mut self) -> String {
        String::from_utf8(self.binary().await).unwrap()
    }

    /// The next binary message; pings of the server are skipped.
    pub async fn binary(&mut self) -> Vec<u8> {
        loop {
            match self.socket.next().await.unwrap().unwrap() {
                Message::Binary(bytes) => return bytes.to_vec(),
                Message::Ping(_) | Message::Pong(_) => {}
                other => panic!("a binary message is expected, not {other:?}"),
            }
        }
    }

    /// The next response; `None` if the server ended the connection.
    pub async fn response(&mut self) -> Option<Response> {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Binary(bytes))) => return Some(decode(&bytes)),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                _ => return None,
            }
        }
    }

    /// The reason with which the server ends the connection, if it sends one; responses are skipped.
    pub async fn farewell(&mut self) -> Option<String> {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Close(frame))) => return frame.map(|frame| frame.reason.to_string()),
                Some(Ok(_)) => {}
                _ => return None,
            }
        }
    }

    /// All responses to a request. Asserts that no others come in between.
    pub async fn answer(&mut self, request: Uuid) -> Answer {
        let mut answer = Answer { codes: Vec::new(), message: String::new(), results: Vec::new() };
        while answer.codes.last().is_none_or(|code| *code == 206) {
            let response = self.response().await.expect("the server answers");
            assert_eq!(response.request, Some(request));
            answer.codes.push(response.code);
            answer.message = response.message;
            answer.results.extend(response.results);
        }
        answer
    }
}

/// A request message.
pub fn request_bytes(id: Uuid, op: &str, processor: &str, arguments: &[(&str, Argument)]) -> Vec<u8> {
    let mut out = vec![MIME_TYPE.len() as u8];
    out.extend_from_slice(MIME_TYPE.as_bytes());
    out.push(0x81);
    out.extend_from_slice(id.as_bytes());
    for text in [op, processor] {
        out.extend((text.len() as i32).to_be_bytes());
        out.extend_from_slice(text.as_bytes());
    }
    out.extend((arguments.len() as i32).to_be_bytes());
    for (name, argument) in arguments {
        encode_value(&Value::from(*name), &mut out).unwrap();
        encode_argument(argument, &mut out).unwrap();
    }
    out
}

/// Reads a response whose results are longs or traversers of longs.
fn decode(bytes: &[u8]) -> Response {
    let mut cursor = Cursor(bytes);
    assert_eq!(cursor.byte(), 0x81);
    let request = (cursor.byte() == 0).then(|| Uuid::from_slice(cursor.take(16)).unwrap());
    let code = cursor.int();
    assert_eq!(cursor.byte(), 0);
    let message = cursor.string();
    for _ in 0..2 * cursor.int() {
        cursor.skip_value();
    }
    assert_eq!(cursor.int(), 0, "result attributes are not in use");
    let mut results = Vec::new();
    let (kind, absent) = (cursor.byte(), cursor.byte());
    if absent == 0 {
        assert_eq!(kind, 0x09);
        for _ in 0..cursor.int() {
            results.push(cursor.result());
        }
    }
    assert!(cursor.0.is_empty());
    Response { request, code, message, results }
}

struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        taken
    }

    fn byte(&mut self) -> u8 {
        self.take(1)[0]
    }

    fn int(&mut self) -> i32 {
        i32::from_be_bytes(self.take(4).try_into().unwrap())
    }

    fn long(&mut self) -> i64 {
        i64::from_be_bytes(self.take(8).try_into().unwrap())
    }

    fn string(&mut self) -> String {
        let length = self.int() as usize;
        String::from_utf8(self.take(length).to_vec()).unwrap()
    }

    /// Skips a number, a string, or a list or a set of these.
    fn skip_value(&mut self) {
        let (kind, absent) = (self.byte(), self.byte());
        assert_eq!(absent, 0);
        match kind {
            0x01 => drop(self.int()),
            0x02 => drop(self.long()),
            0x03 => drop(self.string()),
            0x09 | 0x0b => (0..self.int()).for_each(|_| self.skip_value()),
            other => panic!("a value of type {other:#x}"),
        }
    }

    /// A long, an int, a boolean or a path, which is 0 here; in a traverser or not.
    fn result(&mut self) -> (i64, i64) {
        let (kind, absent) = (self.byte(), self.byte());
        assert_eq!(absent, 0);
        match kind {
            0x01 => (1, i64::from(self.int())),
            0x02 => (1, self.long()),
            0x27 => (1, i64::from(self.byte())),
            0x0e => {
                // Its labels and its objects.
                self.skip_value();
                self.skip_value();
                (1, 0)
            }
            0x21 => {
                let bulk = self.long();
                (bulk, self.result().1)
            }
            other => panic!("a result of type {other:#x}"),
        }
    }
}
