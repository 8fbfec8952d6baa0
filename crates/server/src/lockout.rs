//! Wrong logins, slowed and then refused for a while.
//!
//! Guesses are counted by the address they come from and by the name they are for. From the [`FREE_COUNT`]-th in a row on
//! the answer to a wrong one comes later and later, up to [`DELAY_MAX`]; when there were [`Lockout::address_max`] from one
//! address, or [`Lockout::user_max`] for one name, further logins of that address or name are refused without a look at
//! the password, until [`Lockout::lasts`] has passed since the last wrong one. Then counting begins anew.
//!
//! What an attacker learns: nothing. A name is counted as it was typed, whether or not there is such a user, and is
//! refused after as many guesses, in the same words and time.
//!
//! What an attacker can do to others: a name that is refused stays open to the addresses from which its user came in
//! lately ([`TRUSTED_FOR`]), and to whoever is logged in already, so that guessing somebody's password does not lock them
//! out of where they work. A right password clears no count: else who has one could clear those of his address at will,
//! and whoever logs in every minute would let others guess at their name without end.
//!
//! Memory is bounded: [`ENTRY_COUNT_MAX`] of each; when there are more, those that would be forgotten next go first. An
//! IPv6 address counts as its network of 64 bits, of which one machine has all.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use mangrove_graph::{Error, ErrorKind};
use parking_lot::Mutex;
use smol_str::SmolStr;
use tokio::time::Instant;

use crate::admission::network;

/// So many wrong ones in a row are answered at once: people mistype.
const FREE_COUNT: u32 = 3;

/// The wait before the answer to the first wrong one that is not free; each further one waits twice as long.
const DELAY_FIRST: Duration = Duration::from_millis(100);

/// The longest wait.
const DELAY_MAX: Duration = Duration::from_secs(2);

/// How long an address counts as one its user comes from.
const TRUSTED_FOR: Duration = Duration::from_secs(24 * 3600);

/// The most addresses, names, and pairs of both that are remembered.
const ENTRY_COUNT_MAX: usize = 10_000;

/// The longest part of a name that is remembered.
const NAME_BYTES_MAX: usize = 128;

/// When logins are refused unseen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lockout {
    /// Wrong ones for one name.
    pub user_max: u32,
    /// Wrong ones from one address.
    pub address_max: u32,
    /// For how long after the last wrong one.
    pub lasts: Duration,
}

impl Default for Lockout {
    fn default() -> Self {
        Lockout { user_max: 10, address_max: 50, lasts: Duration::from_secs(60) }
    }
}

/// Whom a refusal is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The address has been wrong too often.
    Address,
    /// The name has been tried too often.
    User,
}

/// A login that is refused unseen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Whom it is about.
    pub by: By,
    /// When to come again.
    pub after: Duration,
}

impl Refused {
    /// As the client is told. The same for both: which of the two counts is the server's business.
    pub fn error(self) -> Error {
        let seconds = self.seconds();
        let message =
            format!("too many wrong logins; the next one is looked at in {seconds} s (the setting login_lockout)");
        Error::new(ErrorKind::Forbidden, message)
    }

    /// The whole seconds after which another login is looked at.
    pub fn seconds(self) -> u64 {
        self.after.as_secs() + 1
    }
}

/// What is known of wrong logins.
#[derive(Debug)]
pub struct Guesses {
    lockout: Lockout,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    addresses: HashMap<SmolStr, Count>,
    users: HashMap<SmolStr, Count>,
    /// Users with the addresses they came in from.
    trusted: HashMap<(SmolStr, SmolStr), Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Count {
    wrong: u32,
    last: Instant,
}

impl Guesses {
    /// None yet.
    pub fn new(lockout: Lockout) -> Self {
        Guesses { lockout, state: Mutex::default() }
    }

    /// Refuses a login that is not to be looked at.
    pub fn check(&self, user: &str, peer: &str, now: Instant) -> Result<(), Refused> {
        let (user, address) = (shortened(user), network(peer));
        let state = self.state.lock();
        let Lockout { user_max, address_max, lasts } = self.lockout;
        let left = |count: Option<&Count>, max: u32| {
            let count = count.filter(|count| count.wrong >= max)?;
            lasts.checked_sub(now.duration_since(count.last)).filter(|left| !left.is_zero())
        };
        if let Some(after) = left(state.addresses.get(&address), address_max) {
            return Err(Refused { by: By::Address, after });
        }
        match left(state.users.get(&user), user_max) {
            Some(after) if !state.trusts(user, address, now) => Err(Refused { by: By::User, after }),
            _ => Ok(()),
        }
    }

    /// A login was wrong; how long its answer waits, and whether it was the last that is looked at.
    pub fn wrong(&self, user: &str, peer: &str, now: Instant) -> (Duration, Option<By>) {
        let mut state = self.state.lock();
        let Lockout { user_max, address_max, lasts } = self.lockout;
        let of_address = count(&mut state.addresses, network(peer), lasts, now);
        let of_user = count(&mut state.users, shortened(user), lasts, now);
        let shut = match (of_address == address_max, of_user == user_max) {
            (true, _) => Some(By::Address),
            (false, true) => Some(By::User),
            (false, false) => None,
        };
        (delay(of_address.max(of_user)), shut)
    }

    /// A login was right: the user comes from this address.
    pub fn right(&self, user: &str, peer: &str, now: Instant) {
        let (user, address) = (shortened(user), network(peer));
        let mut state = self.state.lock();
        make_room(&mut state.trusted, TRUSTED_FOR, now, |since| *since);
        state.trusted.insert((user, address), now);
    }

    /// How many addresses and names are refused now.
    pub fn refused_counts(&self, now: Instant) -> (usize, usize) {
        let state = self.state.lock();
        let Lockout { user_max, address_max, lasts } = self.lockout;
        let refused = |counts: &HashMap<SmolStr, Count>, max: u32| {
            counts.values().filter(|count| count.wrong >= max && now.duration_since(count.last) < lasts).count()
        };
        (refused(&state.addresses, address_max), refused(&state.users, user_max))
    }
}

impl State {
    fn trusts(&self, user: SmolStr, address: SmolStr, now: Instant) -> bool {
        self.trusted.get(&(user, address)).is_some_and(|since| now.duration_since(*since) < TRUSTED_FOR)
    }
}

/// One more wrong one; how many there are.
fn count(counts: &mut HashMap<SmolStr, Count>, key: SmolStr, lasts: Duration, now: Instant) -> u32 {
    make_room(counts, lasts, now, |count| count.last);
    let count = counts.entry(key).or_insert(Count { wrong: 0, last: now });
    if now.duration_since(count.last) >= lasts {
        count.wrong = 0;
    }
    count.wrong = count.wrong.saturating_add(1);
    count.last = now;
    count.wrong
}

/// Forgets what is over, and the older half of the rest where that is not enough.
fn make_room<K: Eq + Hash, V>(
    entries: &mut HashMap<K, V>,
    lasts: Duration,
    now: Instant,
    last: impl Fn(&V) -> Instant,
) {
    if entries.len() < ENTRY_COUNT_MAX {
        return;
    }
    entries.retain(|_, entry| now.duration_since(last(entry)) < lasts);
    if entries.len() >= ENTRY_COUNT_MAX {
        let mut times: Vec<Instant> = entries.values().map(&last).collect();
        let (_, median, _) = times.select_nth_unstable(ENTRY_COUNT_MAX / 2);
        let median = *median;
        entries.retain(|_, entry| last(entry) > median);
    }
}

fn delay(wrong: u32) -> Duration {
    match wrong.checked_sub(FREE_COUNT + 1) {
        Some(further) => DELAY_FIRST.saturating_mul(1_u32.checked_shl(further).unwrap_or(u32::MAX)).min(DELAY_MAX),
        None => Duration::ZERO,
    }
}

fn shortened(user: &str) -> SmolStr {
    let end = (0..=user.len().min(NAME_BYTES_MAX)).rev().find(|end| user.is_char_boundary(*end));
    user[..end.expect("0 is a boundary")].into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: &str = "192.0.2.1:5000";
    const THERE: &str = "192.0.2.2:6000";

    fn guesses() -> Guesses {
        Guesses::new(Lockout { user_max: 5, address_max: 8, lasts: Duration::from_secs(60) })
    }

    #[test]
    fn answers_to_wrong_logins_come_later_and_later() {
        let (guesses, now) = (Guesses::new(Lockout { user_max: 100, ..Lockout::default() }), Instant::now());
        let delays: Vec<u128> = (0..10).map(|_| guesses.wrong("ada", HERE, now).0.as_millis()).collect();
        assert_eq!(delays, [0, 0, 0, 100, 200, 400, 800, 1_600, 2_000, 2_000]);
    }

    #[test]
    fn a_name_is_refused_for_a_while_whether_or_not_there_is_such_a_user() {
        let (guesses, now) = (guesses(), Instant::now());
        for wrong in 1..=5 {
            guesses.check("ada", HERE, now).unwrap();
            assert_eq!(guesses.wrong("ada", HERE, now).1, (wrong == 5).then_some(By::User));
        }
        let refused = guesses.check("ada", THERE, now).unwrap_err();
        assert_eq!(refused.by, By::User);
        let error = refused.error();
        assert!(error.message().contains("in 61 s"), "{error}");
        guesses.check("eve", HERE, now).unwrap();
        assert_eq!(guesses.refused_counts(now), (0, 1));
        let now = now + Duration::from_secs(61);
        guesses.check("ada", THERE, now).unwrap();
        assert_eq!((guesses.wrong("ada", HERE, now), guesses.refused_counts(now)), ((Duration::ZERO, None), (0, 0)));
    }

    #[test]
    fn an_address_that_tries_many_names_is_refused_and_others_are_not() {
        let (guesses, now) = (guesses(), Instant::now());
        for user in 0..8 {
            guesses.wrong(&format!("user {user}"), "192.0.2.1:1", now);
        }
        assert_eq!(guesses.check("ada", HERE, now).unwrap_err().by, By::Address);
        guesses.check("ada", THERE, now).unwrap();
        // One machine has all of an IPv6 network.
        for machine in 0..8 {
            guesses.wrong(&format!("name {machine}"), &format!("[2001:db8::{machine}]:80"), now);
        }
        assert_eq!(guesses.check("ada", "[2001:db8::ffff]:80", now).unwrap_err().by, By::Address);
        guesses.check("ada", "[2001:db8:1::]:80", now).unwrap();
    }

    #[test]
    fn who_was_let_in_lately_is_not_locked_out_by_somebody_elses_guesses() {
        let (guesses, now) = (guesses(), Instant::now());
        guesses.right("ada", HERE, now);
        for _ in 0..5 {
            guesses.wrong("ada", THERE, now);
        }
        guesses.check("ada", THERE, now).unwrap_err();
        guesses.check("ada", "192.0.2.1:7777", now).unwrap();
        // Not even a right password lets an address guess on that was wrong too often.
        for _ in 0..8 {
            guesses.wrong("eve", HERE, now);
        }
        guesses.right("ada", HERE, now);
        assert_eq!(guesses.check("ada", HERE, now).unwrap_err().by, By::Address);
    }

    #[test]
    fn a_flood_of_names_and_addresses_takes_no_memory_without_end() {
        let (guesses, now) = (guesses(), Instant::now());
        for number in 0..3 * ENTRY_COUNT_MAX {
            let now = now + Duration::from_millis(number as u64);
            guesses.wrong(&format!("{number}"), &format!("10.{}.{}.1:1", number / 250, number % 250), now);
            guesses.right(&format!("{number}"), "x", now);
        }
        let state = guesses.state.lock();
        assert!(state.addresses.len() <= ENTRY_COUNT_MAX && state.trusted.len() <= ENTRY_COUNT_MAX);
        drop(state);
        guesses.wrong(&"long".repeat(1_000), HERE, now);
        assert!(guesses.state.lock().users.keys().all(|name| name.len() <= NAME_BYTES_MAX));
    }
}
