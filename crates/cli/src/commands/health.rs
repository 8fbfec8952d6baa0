//! `mangrove health`: whether a server takes requests, for what starts and watches it.
//!
//! Where no URL is given it asks the server that the same settings start: those of the environment and of the configuration
//! file. That is on this machine, gives nothing away and is no answer to rely on for anything else, so any certificate will do.

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

/// How long a server may take to say how it is.
const PATIENCE: Duration = Duration::from_secs(3);

/// Asks, prints the answer, and fails unless the server takes requests. A graph that is read-only does.
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

/// The address under which a server that listens there is reached from its own machine.
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
