//! A small Gremlin client: scripts to a server over WebSocket, in GraphBinary.
//!
//! One request at a time on one connection, which is all a command needs. What the server refuses is reported in
//! its own words.
//!
//! `wss://` is TLS, with the system's certificates or those of `MANGROVE_TLS_CA`. Who asks is in the URL
//! (`wss://ada@host`) or `MANGROVE_USER`; the password only ever in `MANGROVE_PASSWORD`, where other processes do not
//! see it.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::{SinkExt, StreamExt};
use mangrove::{Error, ErrorKind, Parameters, Result, Value};
use mangrove_gremlin::Argument;
use mangrove_gremlin::graphbinary::{Request, Response, decode_response, encode_request};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::http::header::AUTHORIZATION;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{WebSocketStream, client_async};
use uuid::Uuid;

/// How long to wait for a server to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const PARTIAL_CONTENT: u16 = 206;

/// More than `/health` ever says.
const HEALTH_BYTES_MAX: u64 = 64 << 10;

/// Where Debian and its kin keep the certificates that a system trusts.
const SYSTEM_CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// A connection to a server.
pub struct Client {
    runtime: Runtime,
    socket: WebSocketStream<Box<dyn Wire>>,
    url: String,
}

/// A connection below the WebSocket: TCP, or TLS over it.
trait Wire: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Wire for T {}

impl Client {
    /// Connects to `ws://host:port/gremlin` or `wss://…`; the scheme and the path may be left out.
    pub fn connect(url: &str) -> Result<Self> {
        let target = Target::parse(url)?;
        let url = target.url();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| Error::new(ErrorKind::Io, format!("the client could not be started: {e}")))?;
        let socket = runtime.block_on(async {
            let reason = match tokio::time::timeout(CONNECT_TIMEOUT, target.open()).await {
                Ok(Ok(socket)) => return Ok(socket),
                Ok(Err(error)) => error.message().to_owned(),
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

/// What a server answers to `GET /health`: the status of HTTP and the body.
pub fn health(url: &str, patience: Duration) -> Result<(u16, String)> {
    let target = Target::parse(url)?;
    let failed = |why: String| Error::new(ErrorKind::Io, format!("{}: {why}", target.url()));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| failed(e.to_string()))?;
    let asked = async {
        let mut wire = target.wire().await?;
        let request = format!("GET /health HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", target.authority);
        wire.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        // A TLS peer that closes without a farewell has said what it had to say.
        let _ = wire.take(HEALTH_BYTES_MAX).read_to_end(&mut answer).await;
        Ok::<_, Error>(String::from_utf8_lossy(&answer).into_owned())
    };
    let answer = runtime.block_on(async { tokio::time::timeout(patience, asked).await });
    let answer = answer.map_err(|_| failed(format!("no answer in {} s", patience.as_secs_f32())))?;
    let answer = answer.map_err(|e| e.context(target.url()))?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    status.map(|status| (status, body.to_owned())).ok_or_else(|| failed("it does not speak HTTP".to_owned()))
}

/// What a status of the protocol means for the one who asked.
fn kind_of(code: u16) -> ErrorKind {
    match code {
        498 => ErrorKind::Syntax,
        401 | 403 => ErrorKind::Forbidden,
        499 => ErrorKind::InvalidArgument,
        596 => ErrorKind::Conflict,
        598 => ErrorKind::Timeout,
        500 => ErrorKind::Bug,
        _ => ErrorKind::Evaluation,
    }
}

/// Where a server is, and who asks.
#[derive(Debug, PartialEq, Eq)]
struct Target {
    is_encrypted: bool,
    user: Option<String>,
    /// Host and port.
    authority: String,
    path: String,
}

impl Target {
    fn parse(given: &str) -> Result<Self> {
        let (is_encrypted, rest) = match given.split_once("://") {
            None => (false, given),
            Some(("ws", rest)) => (false, rest),
            Some(("wss", rest)) => (true, rest),
            Some((scheme, _)) => {
                return Err(Error::invalid(format!(
                    "--url {given}: this program speaks ws:// and wss://, not {scheme}://; write ws://host:port/gremlin"
                )));
            }
        };
        let (authority, path) = rest.find('/').map_or((rest, "/gremlin"), |slash| rest.split_at(slash));
        let (user, authority) = match authority.rsplit_once('@') {
            Some((user, authority)) => (Some(user.to_owned()), authority),
            None => (None, authority),
        };
        if user.as_ref().is_some_and(|user| user.contains(':')) {
            return Err(Error::invalid(
                "--url: a password in a URL can be read by every process on this machine; put it into MANGROVE_PASSWORD",
            ));
        }
        Ok(Target { is_encrypted, user, authority: authority.to_owned(), path: path.to_owned() })
    }

    fn url(&self) -> String {
        let scheme = if self.is_encrypted { "wss" } else { "ws" };
        format!("{scheme}://{}{}", self.authority, self.path)
    }

    /// The header that says who asks, where somebody does.
    fn authorization(&self) -> Result<Option<HeaderValue>> {
        let Some(user) = self.user.clone().or_else(|| std::env::var("MANGROVE_USER").ok()) else { return Ok(None) };
        let password = std::env::var("MANGROVE_PASSWORD")
            .map_err(|_| Error::invalid(format!("the password of `{user}` is not in MANGROVE_PASSWORD")))?;
        let value = format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
        Ok(Some(value.parse().expect("base64 is a header's value")))
    }

    /// The connection without anything said on it.
    async fn wire(&self) -> Result<Box<dyn Wire>> {
        let failed = |e: &dyn std::fmt::Display| Error::new(ErrorKind::Io, e.to_string());
        let has_port = self.authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let port = if self.is_encrypted { 443 } else { 80 };
        let address = if has_port { self.authority.clone() } else { format!("{}:{port}", self.authority) };
        let stream = TcpStream::connect(&address).await.map_err(|e| failed(&e))?;
        if !self.is_encrypted {
            return Ok(Box::new(stream));
        }
        let request = self.url().into_client_request().map_err(|e| failed(&e))?;
        let host = request.uri().host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(host).map_err(|e| failed(&e))?;
        Ok(Box::new(connector()?.connect(name, stream).await.map_err(|e| failed(&e))?))
    }

    async fn open(&self) -> Result<WebSocketStream<Box<dyn Wire>>> {
        let failed = |e: &dyn std::fmt::Display| Error::new(ErrorKind::Io, e.to_string());
        let mut request = self.url().into_client_request().map_err(|e| failed(&e))?;
        if let Some(value) = self.authorization()? {
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        match client_async(request, self.wire().await?).await {
            Ok((socket, _)) => Ok(socket),
            Err(tungstenite::Error::Http(answer)) => {
                let words = answer.body().as_deref().map(String::from_utf8_lossy).unwrap_or_default();
                Err(Error::new(ErrorKind::Io, format!("the server answers {}: {words}", answer.status())))
            }
            Err(error) => Err(failed(&error)),
        }
    }
}

/// TLS that trusts the certificates of `MANGROVE_TLS_CA` or else the system's.
fn connector() -> Result<TlsConnector> {
    let path = std::env::var("MANGROVE_TLS_CA").unwrap_or_else(|_| SYSTEM_CERTIFICATES.to_owned());
    let unread = |why: String| {
        Error::new(ErrorKind::Io, format!("{path}: {why}; MANGROVE_TLS_CA names a file of certificates to trust"))
    };
    let mut roots = RootCertStore::empty();
    let certificates: Vec<CertificateDer<'static>> =
        CertificateDer::pem_file_iter(&path).and_then(Iterator::collect).map_err(|e| unread(e.to_string()))?;
    if roots.add_parsable_certificates(certificates).0 == 0 {
        return Err(unread("there is no certificate in it".to_owned()));
    }
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| unread(e.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_may_be_short() {
        for given in ["localhost:8182", "ws://localhost:8182", "ws://localhost:8182/gremlin"] {
            assert_eq!(Target::parse(given).unwrap().url(), "ws://localhost:8182/gremlin");
        }
        let ada = Target::parse("wss://ada@graph.example").unwrap();
        assert_eq!((ada.url(), ada.user), ("wss://graph.example/gremlin".to_owned(), Some("ada".to_owned())));
        assert!(Target::parse("https://x").unwrap_err().message().contains("ws://"));
        assert!(Target::parse("ws://ada:secret@x").unwrap_err().message().contains("MANGROVE_PASSWORD"));
    }
}
