//! Places for connections, in all and for each address and user, and the lobby before them.
//!
//! A connection waits in the [`Lobby`] until the head of a request has come, and takes a [`Place`] only then. So clients
//! that connect and say nothing take no place. Requests for `/health` and `/metrics` need none. When the lobby is full, a
//! connection that comes in has another one dismissed: the oldest of the address that has the most there. So a flood from
//! one address dismisses its own connections before those of others.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use mangrove_graph::{Error, ErrorKind, Result};
use parking_lot::Mutex;
use smol_str::{SmolStr, ToSmolStr, format_smolstr};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::config::Limits;

/// The address of a peer (`address:port`) without its port. Of IPv6 it is the network of 64 bits, of which one machine has
/// all.
pub fn network(peer: &str) -> SmolStr {
    match peer.parse::<SocketAddr>().map(|address| address.ip().to_canonical()) {
        Ok(IpAddr::V4(address)) => address.to_smolstr(),
        Ok(IpAddr::V6(address)) => {
            let [a, b, c, d, ..] = address.segments();
            format_smolstr!("{}/64", Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        Err(_) => peer.into(),
    }
}

/// How many each name has of something. Names without any are forgotten.
#[derive(Debug, Default)]
struct Shares(Mutex<HashMap<SmolStr, usize>>);

/// One more of a name, until it is dropped.
#[derive(Debug)]
pub struct Share {
    shares: Arc<Shares>,
    name: SmolStr,
}

impl Shares {
    /// One more, unless the name has as many as it may.
    fn take(self: &Arc<Self>, name: SmolStr, count_max: usize) -> Option<Share> {
        let mut counts = self.0.lock();
        let count = counts.get(&name).copied().unwrap_or(0);
        if count >= count_max {
            return None;
        }
        counts.insert(name.clone(), count + 1);
        Some(Share { shares: Arc::clone(self), name })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut counts = self.shares.0.lock();
        if let Some(count) = counts.get_mut(&self.name) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.name);
            }
        }
    }
}

/// The places for connections.
#[derive(Debug)]
pub struct Capacity {
    free: Arc<Semaphore>,
    count_max: usize,
    address_max: usize,
    user_max: usize,
    addresses: Arc<Shares>,
    users: Arc<Shares>,
}

/// The place of a connection, until it is dropped.
#[derive(Debug)]
pub struct Place {
    _permit: OwnedSemaphorePermit,
    _address: Share,
}

impl Capacity {
    /// As many as the limits say, all of them free.
    pub fn new(limits: &Limits) -> Self {
        let count_max = limits.connection_count_max.min(Semaphore::MAX_PERMITS);
        Capacity {
            free: Arc::new(Semaphore::new(count_max)),
            count_max,
            address_max: limits.connection_count_address_max,
            user_max: limits.connection_count_user_max,
            addresses: Arc::default(),
            users: Arc::default(),
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count_max
    }

    /// How many are taken.
    pub fn taken_count(&self) -> usize {
        self.count_max - self.free.available_permits()
    }

    /// A place for a connection from an address.
    pub fn take(&self, peer: &str) -> Result<Place> {
        let address = network(peer);
        let share = self.addresses.take(address.clone(), self.address_max).ok_or_else(|| {
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
        Ok(Place { _permit: permit, _address: share })
    }

    /// One more WebSocket of a user.
    pub fn of_user(&self, user: &str) -> Result<Share> {
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

/// The connections of which no request has come yet, and those that only watch over the server.
#[derive(Debug)]
pub struct Lobby {
    state: Mutex<Waiting>,
    count_max: usize,
}

#[derive(Debug, Default)]
struct Waiting {
    /// By number, so the oldest first.
    seats: BTreeMap<u64, (SmolStr, Arc<Notify>)>,
    last: u64,
}

/// A connection's seat in the lobby, until it is dropped.
#[derive(Debug)]
pub struct Seat {
    lobby: Arc<Lobby>,
    number: u64,
    dismissal: Arc<Notify>,
}

impl Lobby {
    /// An empty one of so many seats.
    pub fn new(count_max: usize) -> Self {
        Lobby { state: Mutex::default(), count_max }
    }

    /// A seat for a connection, and whether another was dismissed for it.
    pub fn enter(self: &Arc<Self>, peer: &str) -> (Seat, bool) {
        let mut state = self.state.lock();
        let dismissed = if state.seats.len() >= self.count_max { state.one_too_many() } else { None };
        if let Some((_, dismissal)) = dismissed.and_then(|number| state.seats.remove(&number)) {
            dismissal.notify_one();
        }
        state.last += 1;
        let (number, dismissal) = (state.last, Arc::new(Notify::new()));
        state.seats.insert(number, (network(peer), Arc::clone(&dismissal)));
        (Seat { lobby: Arc::clone(self), number, dismissal }, dismissed.is_some())
    }
}

impl Waiting {
    /// The oldest connection of the address that has the most.
    fn one_too_many(&self) -> Option<u64> {
        let mut counts: HashMap<&str, (usize, u64)> = HashMap::new();
        for (number, (address, _)) in &self.seats {
            counts.entry(address).or_insert((0, *number)).0 += 1;
        }
        counts.into_values().max_by_key(|(count, oldest)| (*count, u64::MAX - oldest)).map(|(_, oldest)| oldest)
    }
}

impl Seat {
    /// Completes when another connection needs the seat.
    pub async fn dismissed(&self) {
        self.dismissal.notified().await;
    }

    /// Gives the seat back: the connection has a place.
    pub fn leave(&self) {
        self.lobby.state.lock().seats.remove(&self.number);
    }
}

impl Drop for Seat {
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
        let lobby = Arc::new(Lobby::new(3));
        let sit = |peer: &str| lobby.enter(peer).0;
        let (one, first, second) = (sit("192.0.2.1:1"), sit("192.0.2.2:1"), sit("192.0.2.2:2"));
        let (_late, dismissed) = lobby.enter("192.0.2.3:1");
        assert!(dismissed);
        assert!(first.dismissed().now_or_never().is_some());
        assert!(one.dismissed().now_or_never().is_none() && second.dismissed().now_or_never().is_none());
        drop(second);
        assert!(!lobby.enter("192.0.2.1:2").1, "a seat was free");
    }

    #[test]
    fn places_are_shared_by_address_and_given_back() {
        let limits = Limits {
            connection_count_max: 3,
            connection_count_address_max: 2,
            connection_count_user_max: 1,
            ..Limits::default()
        };
        let places = Capacity::new(&limits);
        let words = |result: Result<Place>| result.unwrap_err().message().to_owned();
        let held = [places.take("[2001:db8::1]:1").unwrap(), places.take("[2001:db8::2]:1").unwrap()];
        assert!(words(places.take("[2001:db8::3]:1")).contains("2001:db8::/64 has 2 connections"));
        let other = places.take("192.0.2.1:1").unwrap();
        assert!(words(places.take("192.0.2.2:1")).contains("connection_count_max"));
        assert_eq!(places.taken_count(), 3);
        drop((held, other));
        assert_eq!(places.taken_count(), 0);
        let ada = places.of_user("ada").unwrap();
        assert!(places.of_user("ada").is_err() && places.of_user("eve").is_ok());
        drop(ada);
        places.of_user("ada").unwrap();
    }
}
