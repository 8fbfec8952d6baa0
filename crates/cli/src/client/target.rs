//! The address of a server, the credentials of the client, and the certificates that the client trusts.
//!
//! A password is never part of a URL, because every process of the machine can read command lines. It comes from the
//! environment or from the terminal.

use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mangrove::{Error, ErrorKind, Result};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_tungstenite::tungstenite;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::header::AUTHORIZATION;
use tokio_tungstenite::tungstenite::http::{HeaderValue, StatusCode};
use tokio_tungstenite::{WebSocketStream, client_async};

use super::terminal;
use super::trust::{self, Trust};

/// The part of error messages that says where user name and password are read from.
pub const CREDENTIALS: &str =
    "the name is in the URL (wss://ada@host) or MANGROVE_USER, the password in MANGROVE_PASSWORD";

/// A connection under the WebSocket: TCP, or TLS over TCP.
pub trait Wire: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Wire for T {}

/// An open WebSocket.
pub type Socket = WebSocketStream<Box<dyn Wire>>;

/// The address of a server, and the credentials to use there.
#[derive(Clone, Debug)]
pub struct Target {
    is_encrypted: bool,
    user: Option<String>,
    /// Host and port.
    pub authority: String,
    path: String,
    /// The certificates that are trusted.
    pub trust: Trust,
    /// The password that was typed at the terminal. It is asked for once and serves all connections.
    asked: Arc<OnceLock<String>>,
}

impl Target {
    /// Parses a URL; the scheme and the path may be left out. Fails for other schemes, for a URL with a password, and
    /// for an IPv6 address without brackets.
    pub fn parse(given: &str) -> Result<Self> {
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
                "--url: a password in a URL can be read by every process on this machine; put it into \
                 MANGROVE_PASSWORD",
            ));
        }
        if !authority.starts_with('[') && authority.matches(':').count() > 1 {
            return Err(Error::invalid(format!(
                "--url {given}: an IPv6 address needs brackets, because its end looks like a port; write \
                 ws://[::1]:8182/gremlin"
            )));
        }
        let (authority, path) = (authority.to_owned(), path.to_owned());
        Ok(Target { is_encrypted, user, authority, path, trust: Trust::Named, asked: Arc::default() })
    }

    /// The complete URL, without the user.
    pub fn url(&self) -> String {
        let scheme = if self.is_encrypted { "wss" } else { "ws" };
        format!("{scheme}://{}{}", self.authority, self.path)
    }

    /// The `Authorization` header; `None` if no user is named.
    pub fn authorization(&self) -> Result<Option<HeaderValue>> {
        let Some(user) = self.user.clone().or_else(|| std::env::var("MANGROVE_USER").ok()) else { return Ok(None) };
        let password = match std::env::var("MANGROVE_PASSWORD") {
            Ok(password) => password,
            Err(_) if io::stdin().is_terminal() => self.ask(&user)?,
            Err(_) => return Err(Error::invalid(format!("the password of `{user}` is not in MANGROVE_PASSWORD"))),
        };
        let value = format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
        Ok(Some(value.parse().expect("base64 is a header's value")))
    }

    /// The password typed at the terminal. Asks for it once.
    fn ask(&self, user: &str) -> Result<String> {
        if let Some(password) = self.asked.get() {
            return Ok(password.clone());
        }
        let password = terminal::ask(&format!("Password of {user}: "))?;
        Ok(self.asked.get_or_init(|| password).clone())
    }

    /// Opens a connection on which nothing is sent yet. Also returns the client's address as the server sees it.
    pub async fn wire(&self) -> Result<(Box<dyn Wire>, SocketAddr)> {
        let failed = |e: &dyn std::fmt::Display| Error::new(ErrorKind::Io, e.to_string());
        let has_port = self.authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let port = if self.is_encrypted { 443 } else { 80 };
        let address = if has_port { self.authority.clone() } else { format!("{}:{port}", self.authority) };
        let unreached = |e: io::Error| failed(&format!("{e}; is a server running there (`mangrove serve`)?"));
        let stream = TcpStream::connect(&address).await.map_err(unreached)?;
        let own = stream.local_addr().map_err(|e| failed(&e))?;
        if !self.is_encrypted {
            return Ok((Box::new(stream), own));
        }
        let request = self.url().into_client_request().map_err(|e| failed(&e))?;
        let host = request.uri().host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(host).map_err(|e| failed(&e))?;
        let encrypted = self.trust.connector()?.connect(name, stream).await;
        Ok((Box::new(encrypted.map_err(|e| trust::explained(&e))?), own))
    }

    /// Opens a WebSocket. Also returns the client's address as the server sees it.
    pub async fn open(&self) -> Result<(Socket, SocketAddr)> {
        let failed = |e: &dyn std::fmt::Display| Error::new(ErrorKind::Io, e.to_string());
        let mut request = self.url().into_client_request().map_err(|e| failed(&e))?;
        if let Some(value) = self.authorization()? {
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        let (stream, own) = self.wire().await?;
        match client_async(request, stream).await {
            Ok((socket, _)) => Ok((socket, own)),
            Err(tungstenite::Error::Http(answer)) => {
                Err(refused(answer.status(), answer.body().as_deref().unwrap_or_default()))
            }
            Err(error) => Err(failed(&error)),
        }
    }
}

/// The error of a server that answers with an HTTP status instead of opening a WebSocket.
fn refused(status: StatusCode, body: &[u8]) -> Error {
    let json: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let words = json.as_ref().and_then(|json| json["message"].as_str()).map(Into::into);
    let words = words.unwrap_or_else(|| String::from_utf8_lossy(body));
    match status {
        StatusCode::UNAUTHORIZED => Error::new(ErrorKind::Forbidden, format!("{words}; {CREDENTIALS}")),
        status => Error::new(ErrorKind::Io, format!("the server answers {status}: {words}")),
    }
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

    #[test]
    fn an_ipv6_address_needs_brackets() {
        for given in ["ws://::1", "::1", "wss://ada@fe80::1:8182/gremlin", "ws://::1:8182"] {
            let error = Target::parse(given).unwrap_err();
            assert!(error.message().contains(given) && error.message().contains("ws://[::1]:8182"), "{error}");
        }
        for given in ["ws://[::1]", "ws://[::1]:8182", "[::1]:8182/gremlin", "ws://ada@[fe80::1]:8182"] {
            Target::parse(given).unwrap();
        }
    }
}
