//! Where a server is and who asks: a URL, a name, a password, and the certificates that are trusted.

use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mangrove::{Error, ErrorKind, Result};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_tungstenite::tungstenite;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::http::header::AUTHORIZATION;
use tokio_tungstenite::{WebSocketStream, client_async};

/// Where Debian and its kin keep the certificates that a system trusts.
const SYSTEM_CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// A connection below the WebSocket: TCP, or TLS over it.
pub trait Wire: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Wire for T {}

/// A connection.
pub type Socket = WebSocketStream<Box<dyn Wire>>;

/// Where a server is, and who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    is_encrypted: bool,
    user: Option<String>,
    /// Host and port.
    pub authority: String,
    path: String,
}

impl Target {
    /// Reads a URL, of which the scheme and the path may be left out.
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
                "--url: a password in a URL can be read by every process on this machine; put it into MANGROVE_PASSWORD",
            ));
        }
        Ok(Target { is_encrypted, user, authority: authority.to_owned(), path: path.to_owned() })
    }

    /// The URL with nothing left out, and without who asks.
    pub fn url(&self) -> String {
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

    /// The connection without anything said on it, and the address that the server sees.
    pub async fn wire(&self) -> Result<(Box<dyn Wire>, SocketAddr)> {
        let failed = |e: &dyn std::fmt::Display| Error::new(ErrorKind::Io, e.to_string());
        let has_port = self.authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let port = if self.is_encrypted { 443 } else { 80 };
        let address = if has_port { self.authority.clone() } else { format!("{}:{port}", self.authority) };
        let stream = TcpStream::connect(&address).await.map_err(|e| failed(&e))?;
        let own = stream.local_addr().map_err(|e| failed(&e))?;
        if !self.is_encrypted {
            return Ok((Box::new(stream), own));
        }
        let request = self.url().into_client_request().map_err(|e| failed(&e))?;
        let host = request.uri().host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(host).map_err(|e| failed(&e))?;
        Ok((Box::new(connector()?.connect(name, stream).await.map_err(|e| failed(&e))?), own))
    }

    /// Connects; also gives the address that the server sees.
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
