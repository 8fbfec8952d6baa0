//! Connections before their first request, and those that only watch over the server.
//!
//! A pending connection has no permit yet, so clients that connect and send nothing take none. When there are too many,
//! a new one evicts another: the oldest of the address that has the most. So a flood from one address evicts its own
//! connections first.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use smol_str::SmolStr;
use tokio::sync::Notify;

use crate::access::network::network;

/// The register of pending connections.
#[derive(Debug)]
pub struct PendingConnections {
    state: Mutex<PendingState>,
    count_max: usize,
}

#[derive(Debug, Default)]
struct PendingState {
    /// By number, so the oldest is first.
    connections: BTreeMap<u64, (SmolStr, Arc<Notify>)>,
    last: u64,
}

/// A pending connection's entry in the register, until it is dropped.
#[derive(Debug)]
pub struct PendingConnection {
    pending: Arc<PendingConnections>,
    number: u64,
    eviction: Arc<Notify>,
}

impl PendingConnections {
    /// An empty one of so many connections.
    pub fn new(count_max: usize) -> Self {
        PendingConnections { state: Mutex::default(), count_max }
    }

    /// Registers a connection. Returns true beside it if another one was evicted.
    pub fn enter(self: &Arc<Self>, peer: &str) -> (PendingConnection, bool) {
        let mut state = self.state.lock();
        let evicted = if state.connections.len() >= self.count_max { state.one_too_many() } else { None };
        if let Some((_, eviction)) = evicted.and_then(|number| state.connections.remove(&number)) {
            eviction.notify_one();
        }
        state.last += 1;
        let (number, eviction) = (state.last, Arc::new(Notify::new()));
        state.connections.insert(number, (network(peer), Arc::clone(&eviction)));
        (PendingConnection { pending: Arc::clone(self), number, eviction }, evicted.is_some())
    }
}

impl PendingState {
    /// The oldest connection of the address that has the most connections.
    fn one_too_many(&self) -> Option<u64> {
        let mut counts: HashMap<&str, (usize, u64)> = HashMap::new();
        for (number, (address, _)) in &self.connections {
            counts.entry(address).or_insert((0, *number)).0 += 1;
        }
        counts.into_values().max_by_key(|(count, oldest)| (*count, u64::MAX - oldest)).map(|(_, oldest)| oldest)
    }
}

impl PendingConnection {
    /// Completes when this connection is evicted.
    pub async fn evicted(&self) {
        self.eviction.notified().await;
    }

    /// Leaves the register, because the connection has a permit.
    pub fn leave(&self) {
        self.pending.state.lock().connections.remove(&self.number);
    }
}

impl Drop for PendingConnection {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn the_address_with_the_most_gives_way_and_of_it_the_oldest() {
        let pending = Arc::new(PendingConnections::new(3));
        let sit = |peer: &str| pending.enter(peer).0;
        let (one, first, second) = (sit("192.0.2.1:1"), sit("192.0.2.2:1"), sit("192.0.2.2:2"));
        let (_late, evicted) = pending.enter("192.0.2.3:1");
        assert!(evicted);
        assert!(first.evicted().now_or_never().is_some());
        assert!(one.evicted().now_or_never().is_none() && second.evicted().now_or_never().is_none());
        drop(second);
        assert!(!pending.enter("192.0.2.1:2").1, "there was room");
    }
}
