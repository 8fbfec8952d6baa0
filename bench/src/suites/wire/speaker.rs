//! A client that does the least possible work: it sends the same bytes again and again, and reads an answer only to
//! find its end. So the figures are those of the server, not of a decoder.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use mangrove::{Error, ErrorKind, Parameters, Result, Value};
use mangrove_gremlin::graphbinary::{Request, decode_response, encode_request};
use mangrove_gremlin::{Argument, Encoding, Statement, graphson, parse_one};
use tungstenite::{Message, WebSocket};
use uuid::Uuid;

/// The protocol of requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    /// WebSocket messages.
    WebSocket,
    /// `POST`, one request after the other on one connection.
    Http,
}

/// The form in which the traversal is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraversalForm {
    /// As a script.
    Text,
    /// As bytecode.
    Bytecode,
}

/// The form of a request.
#[derive(Clone, Copy, Debug)]
pub struct RequestForm {
    /// The encoding of requests and answers.
    pub encoding: Encoding,
    /// The protocol.
    pub transport: Transport,
    /// The form.
    pub sent: TraversalForm,
}

impl RequestForm {
    /// The name in reports.
    pub fn name(self) -> String {
        let encoding = match self.encoding.media_type() {
            "application/vnd.graphbinary-v1.0" => "GraphBinary",
            "application/vnd.gremlin-v3.0+json" => "GraphSON 3",
            "application/vnd.gremlin-v3.0+json;types=false" => "GraphSON 3 untyped",
            "application/vnd.gremlin-v2.0+json" => "GraphSON 2",
            "application/vnd.gremlin-v2.0+json;types=false" => "GraphSON 2 untyped",
            other => other,
        };
        let sent = if self.sent == TraversalForm::Text { "text" } else { "bytecode" };
        let transport = if self.transport == Transport::Http { "HTTP" } else { "WebSocket" };
        format!("{encoding}, {sent}, {transport}")
    }

    /// The bytes of a request, without WebSocket frames.
    fn request(self, script: &str, batch_size: i32) -> Result<Vec<u8>> {
        let (op, processor, gremlin) = match self.sent {
            TraversalForm::Text => ("eval", "", Argument::from(Value::from(script))),
            TraversalForm::Bytecode => match parse_one(script, &Default::default())? {
                Statement::Traversal { bytecode, .. } => ("bytecode", "traversal", Argument::Traversal(bytecode)),
                _ => return Err(Error::bug("the question is no traversal")),
            },
        };
        let id = Uuid::from_u128(1);
        let aliases = Argument::from(Value::map(vec![("g".into(), "gsi".into())]));
        let batch = Argument::from(Value::I32(batch_size));
        let mut out = Vec::new();
        let Encoding::GraphSon(dialect) = self.encoding else {
            let arguments = vec![("gremlin".into(), gremlin), ("aliases".into(), aliases), ("batchSize".into(), batch)];
            let (op, processor) = (op.into(), processor.into());
            encode_request(&Request { id, op, processor, arguments, bytecode_bindings: Parameters::new() }, &mut out)?;
            if self.transport == Transport::Http {
                // An HTTP body is the message alone; its type is in the header.
                out.drain(..1 + usize::from(out[0]));
            }
            return Ok(out);
        };
        // Requests have types even if answers have none.
        let typed = graphson::Dialect { typed: true, ..dialect };
        let mut json = Vec::new();
        graphson::encode_argument(typed, &gremlin, &mut json)?;
        let gremlin = String::from_utf8_lossy(&json);
        let body = format!(
            r#"{{"requestId":"{id}","op":"{op}","processor":"{processor}","args":{{"gremlin":{gremlin},"aliases":{{"g":"gsi"}},"batchSize":{batch_size}}}}}"#
        );
        if self.transport == Transport::WebSocket {
            let media_type = self.encoding.media_type().as_bytes();
            out.push(media_type.len() as u8);
            out.extend_from_slice(media_type);
        }
        out.extend_from_slice(body.as_bytes());
        Ok(out)
    }
}

/// A connection that sends one request repeatedly.
pub struct Speaker {
    line: Line,
    request: Vec<u8>,
    manner: RequestForm,
}

enum Line {
    WebSocket(Box<WebSocket<TcpStream>>),
    Http(BufReader<TcpStream>),
}

impl Speaker {
    /// Connects. Answers come in batches of this many results.
    pub fn connect(address: SocketAddr, manner: RequestForm, script: &str, batch_size: i32) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let body = manner.request(script, batch_size)?;
        Ok(match manner.transport {
            Transport::WebSocket => {
                let (socket, _) = tungstenite::client(format!("ws://{address}/gremlin"), stream).map_err(broken)?;
                Speaker { line: Line::WebSocket(Box::new(socket)), request: body, manner }
            }
            Transport::Http => {
                let media_type = manner.encoding.media_type();
                let head = format!(
                    "POST /gremlin HTTP/1.1\r\nHost: {address}\r\nContent-Type: {media_type}\r\nAccept: {media_type}\r\n\
                     Content-Length: {}\r\n\r\n",
                    body.len()
                );
                let request = [head.as_bytes(), &body].concat();
                Speaker { line: Line::Http(BufReader::with_capacity(64 << 10, stream)), request, manner }
            }
        })
    }

    /// Sends the request, and passes every message or body of the answer on.
    pub fn ask(&mut self, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        match &mut self.line {
            Line::WebSocket(socket) => {
                socket.send(Message::Binary(self.request.clone().into())).map_err(broken)?;
                loop {
                    let Message::Binary(message) = socket.read().map_err(broken)? else { continue };
                    let code = code(self.manner.encoding, &message)?;
                    each(&message)?;
                    if code != PARTIAL {
                        return Ok(());
                    }
                }
            }
            Line::Http(reader) => {
                reader.get_mut().write_all(&self.request)?;
                let body = body(reader)?;
                each(&body)
            }
        }
    }

    /// The number of results of an answer, counted with bulk.
    pub fn count(&mut self) -> Result<u64> {
        let (encoding, mut count) = (self.manner.encoding, 0);
        self.ask(&mut |message| {
            count += results(encoding, message)?;
            Ok(())
        })?;
        Ok(count)
    }
}

/// The response is partial; more follow.
const PARTIAL: u16 = 206;

/// The status of a response, read without the rest.
fn code(encoding: Encoding, message: &[u8]) -> Result<u16> {
    let code = match encoding {
        // A byte for the version, a byte that says that an id follows, and the id.
        Encoding::GraphBinary | Encoding::GraphBinaryText => {
            message.get(20..22).map(|code| u16::from_be_bytes([code[0], code[1]]))
        }
        Encoding::GraphSon(_) => {
            let mark = b"\"code\":";
            let at = message.windows(mark.len()).position(|words| words == mark);
            at.and_then(|at| std::str::from_utf8(message.get(at + mark.len()..at + mark.len() + 3)?).ok()?.parse().ok())
        }
    };
    match code {
        Some(code @ (200 | 204 | PARTIAL)) => Ok(code),
        _ => {
            Err(Error::new(ErrorKind::Evaluation, format!("the server answered {}", String::from_utf8_lossy(message))))
        }
    }
}

/// The number of results of a response.
fn results(encoding: Encoding, message: &[u8]) -> Result<u64> {
    if !encoding.is_json() {
        return Ok(decode_response(message)?.data.iter().map(|(bulk, _)| bulk).sum());
    }
    let json: serde_json::Value = serde_json::from_slice(message).map_err(broken)?;
    let data = &json["result"]["data"];
    let data = data.get("@value").unwrap_or(data).as_array().map_or(&[][..], Vec::as_slice);
    let bulk = |item: &serde_json::Value| {
        let bulk = item.get("@value").unwrap_or(item).get("bulk")?;
        bulk.get("@value").unwrap_or(bulk).as_u64()
    };
    Ok(data.iter().map(|item| bulk(item).unwrap_or(1)).sum())
}

/// The body of the next answer.
fn body(reader: &mut BufReader<TcpStream>) -> Result<Vec<u8>> {
    let (mut line, mut length, mut status) = (String::new(), None, String::new());
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Err(broken("it was ended"));
        }
        let text = line.trim_end().to_ascii_lowercase();
        if status.is_empty() {
            status = text;
        } else if text.is_empty() {
            break;
        } else if let Some(value) = text.strip_prefix("content-length:") {
            length = value.trim().parse().ok();
        }
    }
    let mut body = Vec::new();
    match length {
        Some(length) => {
            body.resize(length, 0);
            reader.read_exact(&mut body)?;
        }
        None => while chunk(reader, &mut body)? {},
    }
    if !status.contains(" 200") {
        return Err(Error::new(ErrorKind::Evaluation, format!("{status}: {}", String::from_utf8_lossy(&body))));
    }
    Ok(body)
}

/// Appends a chunk. Returns false after the last one.
fn chunk(reader: &mut BufReader<TcpStream>, body: &mut Vec<u8>) -> Result<bool> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let length = usize::from_str_radix(line.trim(), 16).map_err(broken)?;
    let begin = body.len();
    body.resize(begin + length, 0);
    reader.read_exact(&mut body[begin..])?;
    line.clear();
    reader.read_line(&mut line)?;
    Ok(length > 0)
}

fn broken(error: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Io, format!("the connection to the server: {error}"))
}
