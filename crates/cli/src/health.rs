//! `mangrove health`: whether a server takes requests, for what starts and watches it.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::Duration;

use mangrove::{Error, ErrorKind};

use crate::args::HealthArgs;
use crate::{Failure, client, config};

/// How long a server may take to say how it is.
const PATIENCE: Duration = Duration::from_secs(3);

/// Where a server is told to listen.
const LISTEN_VARIABLE: &str = "MANGROVE_LISTEN";

/// Asks, prints the answer, and fails unless the server takes requests. A graph that is read-only does.
pub fn run(args: &HealthArgs) -> Result<(), Failure> {
    let listen = std::env::var(LISTEN_VARIABLE).ok().and_then(|text| text.parse().ok());
    let url = args.url.clone().unwrap_or_else(|| beside(listen.unwrap_or(config::LISTEN_DEFAULT)));
    let (status, body) = client::health::health(&url, PATIENCE)?;
    writeln!(io::stdout().lock(), "{}", body.trim())?;
    match status {
        200 => Ok(()),
        other => Err(Error::new(ErrorKind::Closed, format!("{url} answers with the status {other}")).into()),
    }
}

/// The address under which a server that listens there is reached from its own machine.
fn beside(listen: SocketAddr) -> String {
    match (listen.ip().is_unspecified(), listen) {
        (true, SocketAddr::V4(_)) => format!("ws://127.0.0.1:{}", listen.port()),
        (true, SocketAddr::V6(_)) => format!("ws://[::1]:{}", listen.port()),
        (false, _) => format!("ws://{listen}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_listens_everywhere_is_asked_here() {
        for (listen, url) in
            [("0.0.0.0:8182", "ws://127.0.0.1:8182"), ("[::]:1", "ws://[::1]:1"), ("192.0.2.1:2", "ws://192.0.2.1:2")]
        {
            assert_eq!(beside(listen.parse().unwrap()), url);
        }
    }
}
