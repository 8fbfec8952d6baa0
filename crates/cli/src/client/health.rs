//! Asks a server over HTTP whether it takes requests. The question needs no login.

use std::time::Duration;

use mangrove::{Error, ErrorKind, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::target::Target;
use super::trust::Trust;

/// The most bytes that are read of an answer. Answers of `/health` are far shorter.
const HEALTH_BYTES_MAX: u64 = 64 << 10;

/// The server's answer to `GET /health`: the HTTP status and the body. Fails if the server does not answer within
/// `patience`.
pub fn health(url: &str, trust: Trust, patience: Duration) -> Result<(u16, String)> {
    let mut target = Target::parse(url)?;
    target.trust = trust;
    let failed = |why: String| Error::new(ErrorKind::Io, format!("{}: {why}", target.url()));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| failed(e.to_string()))?;
    let asked = async {
        let (mut wire, _) = target.wire().await?;
        let request = format!("GET /health HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", target.authority);
        wire.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        // A peer that closes the connection without TLS's closing message has still sent its whole answer.
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
