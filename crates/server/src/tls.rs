//! TLS: the server's certificate and key, read from PEM files and read again when they change.
//!
//! rustls with the ring provider; TLS 1.2 and 1.3, no client certificates. Certificates are renewed by others, every few
//! weeks: the files are looked at every [`LOOK_INTERVAL`], and what is new and right is used for the next handshake.
//! What is new and wrong is logged, and the old certificate stays.

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

/// How often the files are looked at.
const LOOK_INTERVAL: Duration = Duration::from_secs(10);

/// How much is read of a client that was told that this port speaks TLS.
const PLAIN_BYTES_MAX: u64 = 64 << 10;

/// Where a server's certificate and key are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate and those that vouch for it, the server's own first (PEM).
    pub certificate: PathBuf,
    /// Its private key (PEM: PKCS #8, PKCS #1 or SEC 1).
    pub key: PathBuf,
}

/// Makes connections encrypted ones. Cloning is cheap.
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

    /// The handshake.
    pub async fn accept(&self, stream: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
        let acceptor = self.current.read().clone();
        acceptor.accept(stream).await
    }

    /// Returns true if a client that has sent its first byte speaks HTTP and no TLS. It has been told, then, what this port
    /// speaks.
    pub async fn has_refused_plain(stream: &mut TcpStream) -> std::io::Result<bool> {
        let mut first = [0];
        // A handshake begins with the byte 22, a method of HTTP with a letter.
        if stream.peek(&mut first).await? == 0 || !first[0].is_ascii_alphabetic() {
            return Ok(false);
        }
        stream.write_all(plain_refusal().as_bytes()).await?;
        stream.shutdown().await?;
        // A connection that is closed with bytes unread is reset, and the answer may be lost.
        tokio::io::copy(&mut stream.take(PLAIN_BYTES_MAX), &mut tokio::io::sink()).await?;
        Ok(true)
    }

    /// Reads the files again when they change, for as long as it is polled.
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
    /// What shows that a file was changed.
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

/// Logs a warning if every user of the machine may read or change a file of secrets, or its group may change it.
pub(crate) fn warn_if_public(path: &Path) {
    use std::os::unix::fs::MetadataExt;
    let Ok(metadata) = std::fs::metadata(path) else { return };
    if metadata.mode() & 0o027 != 0 {
        let (path, mode) = (path.display(), metadata.mode() & 0o777);
        tracing::warn!(
            "{path} has secrets, and others than its owner may read or change it (mode {mode:o}): chmod 600 {path}"
        );
    }
}

/// When a file was changed, and how long it is.
pub(crate) fn changed(path: &Path) -> Option<(SystemTime, u64)> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
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
