//! Reads server-sent events over HTTP.

use mangrove::{Error, ErrorKind, Result};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

use super::target::Target;

/// The most bytes of a line: a larger value of a property is refused.
const LINE_BYTES_MAX: u64 = 256 << 20;
/// The most bytes that are read of an answer that is an error.
const ERROR_BYTES_MAX: u64 = 64 << 10;

/// An event of a server.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ServerEvent {
    /// Its kind, if it has one.
    pub kind: Option<String>,
    /// Its id, if it has one.
    pub id: Option<String>,
    /// Its data.
    pub data: String,
}

/// Asks a server for a path, and shows its events to `each` until that returns false. Returns true if `each` did, and
/// false if the server has ended the answer.
pub fn read(url: &str, path: &str, each: &mut dyn FnMut(ServerEvent) -> Result<bool>) -> Result<bool> {
    let target = Target::parse(url)?;
    let failed = |why: String| Error::new(ErrorKind::Io, format!("{}: {why}", target.url()));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| failed(e.to_string()))?;
    runtime.block_on(async {
        let (mut wire, _) = target.wire().await.map_err(|e| e.context(target.url()))?;
        let mut request = format!("GET {path} HTTP/1.0\r\nHost: {}\r\nAccept: text/event-stream\r\n", target.authority);
        if let Some(authorization) = target.authorization()? {
            request.push_str(&format!("Authorization: {}\r\n", authorization.to_str().unwrap_or_default()));
        }
        request.push_str("\r\n");
        wire.write_all(request.as_bytes()).await.map_err(|e| failed(e.to_string()))?;
        let mut lines = BufReader::new(wire);
        let status = next_line(&mut lines).await.map_err(&failed)?.unwrap_or_default();
        let code = status.split(' ').nth(1).unwrap_or_default().to_owned();
        while next_line(&mut lines).await.map_err(&failed)?.is_some_and(|line| !line.is_empty()) {}
        if code != "200" {
            let mut body = Vec::new();
            let _ = lines.take(ERROR_BYTES_MAX).read_to_end(&mut body).await;
            let words = message(&String::from_utf8_lossy(&body));
            return Err(words.context(format!("{} answers {code}", target.url())));
        }
        let mut event = ServerEvent::default();
        while let Some(line) = next_line(&mut lines).await.map_err(&failed)? {
            if let Some(event) = event.take(&line)
                && !each(event)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    })
}

/// The error in an answer: its message, or all of it.
pub fn message(body: &str) -> Error {
    let json: Option<serde_json::Value> = serde_json::from_str(body).ok();
    let words = json.as_ref().and_then(|json| json["message"].as_str()).unwrap_or(body);
    Error::new(ErrorKind::Io, words.to_owned())
}

/// The next line without its end; `None` at the end.
async fn next_line(lines: &mut (impl tokio::io::AsyncBufRead + Unpin)) -> Result<Option<String>, String> {
    let mut line = Vec::new();
    let read = lines.take(LINE_BYTES_MAX).read_until(b'\n', &mut line).await.map_err(|error| error.to_string())?;
    if read == 0 {
        return Ok(None);
    }
    if read as u64 == LINE_BYTES_MAX {
        return Err(format!("a line of the answer has more than {LINE_BYTES_MAX} bytes"));
    }
    let text = String::from_utf8(line).map_err(|_| "a line of the answer is no UTF-8".to_owned())?;
    Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
}

impl ServerEvent {
    /// Takes a line. Returns the event if the line ends one.
    fn take(&mut self, line: &str) -> Option<ServerEvent> {
        match line.split_once(':').map(|(name, value)| (name, value.strip_prefix(' ').unwrap_or(value))) {
            Some(("event", kind)) => self.kind = Some(kind.to_owned()),
            Some(("id", id)) => self.id = Some(id.to_owned()),
            Some(("data", data)) => self.data.push_str(data),
            // A comment, or an empty line.
            _ if line.is_empty() && !self.data.is_empty() => return Some(std::mem::take(self)),
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_make_events() {
        let text = ":\n\nid: 7.1\ndata: {\"op\":\"set\"}\n\nevent: error\ndata: no\n\n";
        let (mut event, mut found) = (ServerEvent::default(), Vec::new());
        text.lines().for_each(|line| found.extend(event.take(line)));
        let of = |kind: Option<&str>, id: Option<&str>, data: &str| ServerEvent {
            kind: kind.map(str::to_owned),
            id: id.map(str::to_owned),
            data: data.to_owned(),
        };
        assert_eq!(found, [of(None, Some("7.1"), "{\"op\":\"set\"}"), of(Some("error"), None, "no")]);
    }
}
