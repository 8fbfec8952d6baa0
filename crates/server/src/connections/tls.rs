//! TLS: the server's certificate and key, read from PEM files and read again after a change.
//!
//! rustls with the ring provider; TLS 1.2 and 1.3, without client certificates. Other programs renew certificates every
//! few weeks, so the files are checked every [`LOOK_INTERVAL`]. A new valid certificate serves the next handshake. A
//! new invalid one is logged, and the old one stays.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use mangrove_graph::{Error, ErrorKind, Result};
use parking_lot::RwLock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;

use crate::access::secret_file::{changed, warn_if_public};

/// The interval between two checks of the files.
const LOOK_INTERVAL: Duration = Duration::from_secs(10);

/// The most bytes read from a client that was told that this port speaks TLS.
const PLAIN_BYTES_MAX: u64 = 64 << 10;

/// The paths of a server's certificate and key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate chain, the server's own certificate first (PEM).
    pub certificate: PathBuf,
    /// The private key (PEM: PKCS #8, PKCS #1 or SEC 1).
    pub key: PathBuf,
}

/// Accepts TLS connections with the current certificate. Cloning is cheap.
#[derive(Clone)]
pub struct Tls {
    files: TlsFiles,
    current: Arc<RwLock<TlsAcceptor>>,
}

impl Tls {
    /// Reads the files.
    pub fn read(files: TlsFiles) -> Result<Self> {
        let acceptor = acceptor(&files)?;
        Ok(Tls { files, current: Arc::new(RwLock::new(acceptor)) })
    }

    /// Performs the handshake.
    pub async fn accept(&self, stream: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
        let acceptor = self.current.read().clone();
        acceptor.accept(stream).await
    }

    /// Waits for the client's first byte. Returns true if it begins plain HTTP, which is then answered with an error.
    pub async fn has_refused_plain(stream: &mut TcpStream) -> std::io::Result<bool> {
        let mut first = [0];
        // A handshake begins with the byte 22, a method of HTTP with a letter.
        if stream.peek(&mut first).await? == 0 || !first[0].is_ascii_alphabetic() {
            return Ok(false);
        }
        stream.write_all(plain_refusal().as_bytes()).await?;
        stream.shutdown().await?;
        // Closing a connection with unread bytes resets it, and the answer may be lost.
        tokio::io::copy(&mut stream.take(PLAIN_BYTES_MAX), &mut tokio::io::sink()).await?;
        Ok(true)
    }

    /// Reads the files again after each change, for as long as it is polled.
    pub async fn watch(self) {
        let mut seen = self.files.state();
        loop {
            tokio::time::sleep(LOOK_INTERVAL).await;
            let now = self.files.state();
            if now != seen {
                seen = now;
                self.reload();
            }
        }
    }

    fn reload(&self) {
        match acceptor(&self.files) {
            Ok(acceptor) => {
                *self.current.write() = acceptor;
                tracing::info!("read the certificate {} again", self.files.certificate.display());
            }
            Err(error) => tracing::error!("the certificate stays as it was: {error}"),
        }
    }
}

impl TlsFiles {
    /// The state by which a change is noticed.
    fn state(&self) -> [Option<(SystemTime, u64)>; 2] {
        [&self.certificate, &self.key].map(|path| changed(path))
    }
}

/// The answer to a request without TLS.
fn plain_refusal() -> String {
    let body = "{\"message\":\"this port speaks TLS: use https:// or wss://\"}";
    format!(
        "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor> {
    let TlsFiles { certificate, key } = files;
    let fault = |path: &Path, what: &str, why: String| {
        Error::new(ErrorKind::Io, format!("{} is no {what} in PEM: {why}", path.display()))
    };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect)
        .map_err(|e| fault(certificate, "certificate", e.to_string()))?;
    if chain.is_empty() {
        return Err(fault(certificate, "certificate", "there is none in it".to_owned()));
    }
    warn_if_public(key);
    let private = PrivateKeyDer::from_pem_file(key).map_err(|e| fault(key, "private key", e.to_string()))?;
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map(|builder| builder.with_no_client_auth())
        .and_then(|builder| builder.with_single_cert(chain, private))
        .map_err(|e| {
            Error::new(
                ErrorKind::InvalidArgument,
                format!("{} and {} cannot be used for TLS: {e}", certificate.display(), key.display()),
            )
        })?;
    let mut config = config;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
