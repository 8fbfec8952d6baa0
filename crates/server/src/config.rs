//! The configuration of a server, and the checks that refuse a bad one before the port is taken.

use std::net::SocketAddr;

use mangrove_graph::{Error, Result};

use crate::access::auth::UsersSource;
use crate::access::lockout::Lockout;
use crate::access::origin::Browsers;
use crate::connections::tls::TlsFiles;
use crate::limits::Limits;

/// The configuration of a server.
#[derive(Clone, Debug)]
pub struct Config {
    /// Address and port. Port 0 means any free port.
    pub listen: SocketAddr,
    /// Allows an address that other machines can reach without TLS or without authentication. The operator has to set
    /// it explicitly.
    pub allow_remote: bool,
    /// The certificate and key, for TLS.
    pub tls: Option<TlsFiles>,
    /// The users; `None` for a server without authentication, where every client may do everything.
    pub users: Option<UsersSource>,
    /// When further logins are refused without a look at the password.
    pub lockout: Lockout,
    /// The web pages and host names by which browsers may use the server.
    pub browsers: Browsers,
    /// The limits.
    pub limits: Limits,
}

impl Config {
    /// The default configuration at an address.
    pub fn new(listen: SocketAddr) -> Self {
        Config {
            listen,
            allow_remote: false,
            tls: None,
            users: None,
            lockout: Lockout::default(),
            browsers: Browsers::default(),
            limits: Limits::default(),
        }
    }

    /// The risk of letting other machines reach this server, if they can and there is one.
    pub fn risk(&self) -> Option<&'static str> {
        if self.listen.ip().is_loopback() {
            return None;
        }
        match (&self.tls, &self.users) {
            (Some(_), Some(_)) => None,
            (None, Some(_)) => Some("passwords and data would cross the network in clear, for want of TLS"),
            (Some(_), None) => Some("anybody may read and change everything, for want of authentication"),
            (None, None) => Some("there is neither TLS nor authentication"),
        }
    }

    /// Refuses a configuration that would fail at run time, or that exposes the graphs without `allow_remote`.
    pub fn check(&self) -> Result<()> {
        if let Some(risk) = self.risk()
            && !self.allow_remote
        {
            return Err(Error::invalid(format!(
                "{} can be reached from other machines and {risk}: give it tls_certificate, tls_key and users_file, \
                 listen on 127.0.0.1 or [::1], or set allow_remote to accept that",
                self.listen
            )));
        }
        self.browsers.check()?;
        if self.lockout.user_max == 0 || self.lockout.address_max == 0 {
            return Err(Error::invalid(
                "login_failures_user_max and login_failures_address_max are 1 or more: with 0 every login would be \
                 refused; \
                 login_lockout = \"0s\" turns lockouts off",
            ));
        }
        let limits = &self.limits;
        if limits.silence_max <= limits.ping_interval {
            return Err(Error::invalid(
                "silence_max is not longer than ping_interval: every quiet client would be dropped before it is asked",
            ));
        }
        for (name, value) in [
            ("connection_count_max", limits.connection_count_max),
            ("message_bytes_max", limits.message_bytes_max),
            ("body_bytes_max", limits.body_bytes_max),
            ("batch_bytes_max", limits.batch_bytes_max),
            ("in_flight_count_max", limits.in_flight_count_max),
            ("worker_count_max", limits.worker_count_max),
            ("batch_size", limits.batch_size),
            ("batch_size_max", limits.batch_size_max),
            ("outgoing_count_max", limits.outgoing_count_max),
        ] {
            if value == 0 {
                return Err(Error::invalid(format!(
                    "the limit {name} is 0: the server could serve no client; use 1 or more"
                )));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(listen: &str) -> Config {
        Config::new(listen.parse().unwrap())
    }

    #[test]
    fn other_machines_are_let_in_only_when_asked_for() {
        config("127.0.0.1:8182").check().unwrap();
        config("[::1]:8182").check().unwrap();
        let message = config("0.0.0.0:8182").check().unwrap_err().to_string();
        assert!(message.contains("allow_remote"), "{message}");
        let asked = Config { allow_remote: true, ..config("0.0.0.0:8182") };
        asked.check().unwrap();
    }

    #[test]
    fn a_limit_of_zero_is_named() {
        let mut none = config("127.0.0.1:0");
        none.limits.worker_count_max = 0;
        assert!(none.check().unwrap_err().message().contains("worker_count_max"));
    }
}
