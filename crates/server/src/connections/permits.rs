//! Permits for connections: their number is limited in all, and for each address and user.
//!
//! A connection takes a permit with its first request ([`ConnectionPermits::take`]) and holds it until it ends, whether
//! it stays HTTP or becomes a WebSocket. Requests for `/health` and `/metrics` need none. Limits:
//! `connection_count_max`, `connection_count_address_max`, `connection_count_user_max` (SERVER-1).

use std::collections::HashMap;
use std::sync::Arc;

use mangrove_graph::{Error, ErrorKind, Result};
use parking_lot::Mutex;
use smol_str::SmolStr;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::access::network::network;
use crate::limits::Limits;

/// A count for each name. Names with a count of 0 are removed.
#[derive(Debug, Default)]
struct NameCounts(Mutex<HashMap<SmolStr, usize>>);

/// One unit of the count of a name. Dropping it takes the unit back.
#[derive(Debug)]
pub struct NameCount {
    counts: Arc<NameCounts>,
    name: SmolStr,
}

impl NameCounts {
    /// Counts one more for a name. Returns `None` if the name has `count_max` already.
    fn take(self: &Arc<Self>, name: SmolStr, count_max: usize) -> Option<NameCount> {
        let mut counts = self.0.lock();
        let count = counts.get(&name).copied().unwrap_or(0);
        if count >= count_max {
            return None;
        }
        counts.insert(name.clone(), count + 1);
        Some(NameCount { counts: Arc::clone(self), name })
    }
}

impl Drop for NameCount {
    fn drop(&mut self) {
        let mut counts = self.counts.0.lock();
        if let Some(count) = counts.get_mut(&self.name) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.name);
            }
        }
    }
}

/// The permits of a server.
#[derive(Debug)]
pub struct ConnectionPermits {
    free: Arc<Semaphore>,
    count_max: usize,
    address_max: usize,
    user_max: usize,
    addresses: Arc<NameCounts>,
    users: Arc<NameCounts>,
}

/// The permit of a connection. Dropping it returns it.
#[derive(Debug)]
pub struct ConnectionPermit {
    _permit: OwnedSemaphorePermit,
    _address: NameCount,
}

impl ConnectionPermits {
    /// As many permits as the limits allow, all free.
    pub fn new(limits: &Limits) -> Self {
        let count_max = limits.connection_count_max.min(Semaphore::MAX_PERMITS);
        ConnectionPermits {
            free: Arc::new(Semaphore::new(count_max)),
            count_max,
            address_max: limits.connection_count_address_max,
            user_max: limits.connection_count_user_max,
            addresses: Arc::default(),
            users: Arc::default(),
        }
    }

    /// The number of permits, free or taken.
    pub fn count(&self) -> usize {
        self.count_max
    }

    /// The number of taken permits.
    pub fn taken_count(&self) -> usize {
        self.count_max - self.free.available_permits()
    }

    /// Takes a permit for a connection from a peer (`address:port`). Fails if the server or the address has none left.
    pub fn take(&self, peer: &str) -> Result<ConnectionPermit> {
        let address = network(peer);
        let address_count = self.addresses.take(address.clone(), self.address_max).ok_or_else(|| {
            full(format!(
                "the address {address} has {} connections, as many as one may; close some, or raise the limit \
                 connection_count_address_max",
                self.address_max
            ))
        })?;
        let permit = Arc::clone(&self.free).try_acquire_owned().map_err(|_| {
            full(format!(
                "the server has {} connections, as many as it may; close some, or raise the limit connection_count_max",
                self.count_max
            ))
        })?;
        Ok(ConnectionPermit { _permit: permit, _address: address_count })
    }

    /// Counts one more WebSocket of a user. Fails if the user has as many as one may.
    pub fn of_user(&self, user: &str) -> Result<NameCount> {
        self.users.take(user.into(), self.user_max).ok_or_else(|| {
            full(format!(
                "the user `{user}` has {} WebSockets, as many as one may; close some, or raise the limit \
                 connection_count_user_max",
                self.user_max
            ))
        })
    }
}

fn full(message: String) -> Error {
    Error::new(ErrorKind::Closed, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permits_are_shared_by_address_and_given_back() {
        let limits = Limits {
            connection_count_max: 3,
            connection_count_address_max: 2,
            connection_count_user_max: 1,
            ..Limits::default()
        };
        let permits = ConnectionPermits::new(&limits);
        let words = |result: Result<ConnectionPermit>| result.unwrap_err().message().to_owned();
        let held = [permits.take("[2001:db8::1]:1").unwrap(), permits.take("[2001:db8::2]:1").unwrap()];
        assert!(words(permits.take("[2001:db8::3]:1")).contains("2001:db8::/64 has 2 connections"));
        let other = permits.take("192.0.2.1:1").unwrap();
        assert!(words(permits.take("192.0.2.2:1")).contains("connection_count_max"));
        assert_eq!(permits.taken_count(), 3);
        drop((held, other));
        assert_eq!(permits.taken_count(), 0);
        let ada = permits.of_user("ada").unwrap();
        assert!(permits.of_user("ada").is_err() && permits.of_user("eve").is_ok());
        drop(ada);
        permits.of_user("ada").unwrap();
    }
}
