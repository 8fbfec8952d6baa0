//! `mangrove health`: checks whether a server takes requests, for service managers and monitoring.
//!
//! Without a URL it asks the server on this machine that the settings describe: those of the environment and of the
//! configuration file. There any certificate is accepted: the request reveals nothing, and nothing else relies on the
//! answer.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::Duration;

use mangrove::{Error, ErrorKind, Result};

use crate::Failure;
use crate::args::{HealthArgs, ServeArgs};
use crate::client;
use crate::client::trust::Trust;
use crate::config::Setup;
use crate::settings::Given;

/// The maximum time for an answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// Asks, prints the answer, and fails unless the server takes requests. A server whose graphs are read-only does.
pub fn run(args: &HealthArgs) -> Result<(), Failure> {
    let (url, trust) = match &args.url {
        Some(url) => (url.clone(), if args.insecure { Trust::Any } else { Trust::Named }),
        None => (own(args)?, Trust::Any),
    };
    let (status, body) = client::health::health(&url, trust, PATIENCE)?;
    writeln!(io::stdout().lock(), "{}", body.trim())?;
    match status {
        200 => Ok(()),
        other => Err(Error::new(ErrorKind::Closed, format!("{url} answers with the status {other}")).into()),
    }
}

/// The address of the server that the settings start.
fn own(args: &HealthArgs) -> Result<String> {
    let settings = Given::from_environment();
    let setup = Setup::new(&ServeArgs { config: args.config.clone(), settings, ..ServeArgs::default() })?;
    let server = &setup.options.server;
    Ok(beside(server.listen, server.tls.is_some()))
}

/// The URL of a server that listens at this address, as seen from its own machine.
fn beside(listen: SocketAddr, is_encrypted: bool) -> String {
    let scheme = if is_encrypted { "wss" } else { "ws" };
    match (listen.ip().is_unspecified(), listen) {
        (true, SocketAddr::V4(_)) => format!("{scheme}://127.0.0.1:{}", listen.port()),
        (true, SocketAddr::V6(_)) => format!("{scheme}://[::1]:{}", listen.port()),
        (false, _) => format!("{scheme}://{listen}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_listens_everywhere_is_asked_here() {
        for (listen, is_encrypted, url) in [
            ("0.0.0.0:8182", false, "ws://127.0.0.1:8182"),
            ("[::]:1", true, "wss://[::1]:1"),
            ("192.0.2.1:2", false, "ws://192.0.2.1:2"),
        ] {
            assert_eq!(beside(listen.parse().unwrap(), is_encrypted), url);
        }
    }
}
