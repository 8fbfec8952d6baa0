//! Repeated wrong logins: delayed, and then refused for a while.
//!
//! Wrong logins are counted by address and by user name. After [`FREE_COUNT`] in a row, answers to further ones come
//! later and later, up to [`DELAY_MAX`]. After [`Lockout::address_max`] from one address, or [`Lockout::user_max`] for
//! one name, further logins of that address or name are refused without a check of the password, until
//! [`Lockout::lasts`] has passed since the last wrong one. Then counting begins anew.
//!
//! - An attacker learns nothing. A name is counted as it was typed, whether or not there is such a user, and is refused
//!   after as many guesses, with the same message and delay.
//! - An attacker cannot lock a user out of the user's usual place. A refused name stays open to the addresses from
//!   which its user logged in within [`TRUSTED_FOR`], and open connections stay open.
//! - A right password clears no count. Otherwise an attacker with one password could clear the count of his address at
//!   will, and a user who logs in every minute would let others guess without end.
//!
//! Memory is bounded: at most [`ENTRY_COUNT_MAX`] addresses, names and pairs each. The entries that would expire next
//! go first.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use mangrove_graph::{Error, ErrorKind};
use parking_lot::Mutex;
use smol_str::SmolStr;
use tokio::time::Instant;

use crate::access::network::network;

/// Wrong logins in a row that are answered without delay: people mistype.
const FREE_COUNT: u32 = 3;

/// The delay of the first answer that is delayed. Each further one is delayed twice as long.
const DELAY_FIRST: Duration = Duration::from_millis(100);

/// The longest delay.
const DELAY_MAX: Duration = Duration::from_secs(2);

/// How long after a right login its address is trusted for that user.
const TRUSTED_FOR: Duration = Duration::from_secs(24 * 3600);

/// The most addresses, the most names, and the most pairs of both that are remembered.
const ENTRY_COUNT_MAX: usize = 10_000;

/// The most bytes of a name that are remembered.
const NAME_BYTES_MAX: usize = 128;

/// The limits after which logins are refused without a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lockout {
    /// Wrong logins for one name.
    pub user_max: u32,
    /// Wrong logins from one address.
    pub address_max: u32,
    /// How long logins are refused after the last wrong one.
    pub lasts: Duration,
}

impl Default for Lockout {
    fn default() -> Self {
        Lockout { user_max: 10, address_max: 50, lasts: Duration::from_secs(60) }
    }
}

/// The subject of a lockout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockoutSubject {
    /// The address had too many wrong logins.
    Address,
    /// The user name had too many wrong logins.
    User,
}

/// A login that is refused without a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockedOut {
    /// The subject of the lockout.
    pub by: LockoutSubject,
    /// The time until the next login is checked.
    pub after: Duration,
}

impl LockedOut {
    /// The error for the client. It is the same for both subjects, so that it tells an attacker nothing.
    pub fn error(self) -> Error {
        let seconds = self.seconds();
        let message =
            format!("too many wrong logins; the next one is looked at in {seconds} s (the setting login_lockout)");
        Error::new(ErrorKind::Forbidden, message)
    }

    /// The seconds until the next login is checked, rounded up.
    pub fn seconds(self) -> u64 {
        self.after.as_secs() + 1
    }
}

/// The counts of wrong logins, and the addresses that are trusted.
#[derive(Debug)]
pub struct LoginGuesses {
    lockout: Lockout,
    state: Mutex<GuessState>,
}

#[derive(Debug, Default)]
struct GuessState {
    addresses: HashMap<SmolStr, GuessCount>,
    users: HashMap<SmolStr, GuessCount>,
    /// Users with the addresses of their right logins.
    trusted: HashMap<(SmolStr, SmolStr), Instant>,
}

#[derive(Clone, Copy, Debug)]
struct GuessCount {
    wrong: u32,
    last: Instant,
}

impl LoginGuesses {
    /// Starts without any counts.
    pub fn new(lockout: Lockout) -> Self {
        LoginGuesses { lockout, state: Mutex::default() }
    }

    /// Refuses a login whose address or name is locked out.
    pub fn check(&self, user: &str, peer: &str, now: Instant) -> Result<(), LockedOut> {
        let (user, address) = (shortened(user), network(peer));
        let state = self.state.lock();
        let Lockout { user_max, address_max, lasts } = self.lockout;
        let left = |count: Option<&GuessCount>, max: u32| {
            let count = count.filter(|count| count.wrong >= max)?;
            lasts.checked_sub(now.duration_since(count.last)).filter(|left| !left.is_zero())
        };
        if let Some(after) = left(state.addresses.get(&address), address_max) {
            return Err(LockedOut { by: LockoutSubject::Address, after });
        }
        match left(state.users.get(&user), user_max) {
            Some(after) if !state.trusts(user, address, now) => Err(LockedOut { by: LockoutSubject::User, after }),
            _ => Ok(()),
        }
    }

    /// Counts a wrong login. Returns the delay of its answer, and the subject if this login has locked one out.
    pub fn wrong(&self, user: &str, peer: &str, now: Instant) -> (Duration, Option<LockoutSubject>) {
        let mut state = self.state.lock();
        let Lockout { user_max, address_max, lasts } = self.lockout;
        let of_address = count(&mut state.addresses, network(peer), lasts, now);
        let of_user = count(&mut state.users, shortened(user), lasts, now);
        let shut = match (of_address == address_max, of_user == user_max) {
            (true, _) => Some(LockoutSubject::Address),
            (false, true) => Some(LockoutSubject::User),
            (false, false) => None,
        };
        (delay(of_address.max(of_user)), shut)
    }

    /// Notes a right login: its address is trusted for the user.
    pub fn right(&self, user: &str, peer: &str, now: Instant) {
        let (user, address) = (shortened(user), network(peer));
        let mut state = self.state.lock();
        make_room(&mut state.trusted, TRUSTED_FOR, now, |since| *since);
        state.trusted.insert((user, address), now);
    }

    /// The numbers of addresses and of names that are locked out now.
    pub fn refused_counts(&self, now: Instant) -> (usize, usize) {
        let state = self.state.lock();
        let Lockout { user_max, address_max, lasts } = self.lockout;
        let refused = |counts: &HashMap<SmolStr, GuessCount>, max: u32| {
            counts.values().filter(|count| count.wrong >= max && now.duration_since(count.last) < lasts).count()
        };
        (refused(&state.addresses, address_max), refused(&state.users, user_max))
    }
}

impl GuessState {
    fn trusts(&self, user: SmolStr, address: SmolStr, now: Instant) -> bool {
        self.trusted.get(&(user, address)).is_some_and(|since| now.duration_since(*since) < TRUSTED_FOR)
    }
}

/// Counts a wrong login, and returns the new count.
fn count(counts: &mut HashMap<SmolStr, GuessCount>, key: SmolStr, lasts: Duration, now: Instant) -> u32 {
    make_room(counts, lasts, now, |count| count.last);
    let count = counts.entry(key).or_insert(GuessCount { wrong: 0, last: now });
    if now.duration_since(count.last) >= lasts {
        count.wrong = 0;
    }
    count.wrong = count.wrong.saturating_add(1);
    count.last = now;
    count.wrong
}

/// Removes expired entries, and the older half of the others if that is not enough.
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

    fn guesses() -> LoginGuesses {
        LoginGuesses::new(Lockout { user_max: 5, address_max: 8, lasts: Duration::from_secs(60) })
    }

    #[test]
    fn answers_to_wrong_logins_come_later_and_later() {
        let (guesses, now) = (LoginGuesses::new(Lockout { user_max: 100, ..Lockout::default() }), Instant::now());
        let delays: Vec<u128> = (0..10).map(|_| guesses.wrong("ada", HERE, now).0.as_millis()).collect();
        assert_eq!(delays, [0, 0, 0, 100, 200, 400, 800, 1_600, 2_000, 2_000]);
    }

    #[test]
    fn a_name_is_refused_for_a_while_whether_or_not_there_is_such_a_user() {
        let (guesses, now) = (guesses(), Instant::now());
        for wrong in 1..=5 {
            guesses.check("ada", HERE, now).unwrap();
            assert_eq!(guesses.wrong("ada", HERE, now).1, (wrong == 5).then_some(LockoutSubject::User));
        }
        let refused = guesses.check("ada", THERE, now).unwrap_err();
        assert_eq!(refused.by, LockoutSubject::User);
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
        assert_eq!(guesses.check("ada", HERE, now).unwrap_err().by, LockoutSubject::Address);
        guesses.check("ada", THERE, now).unwrap();
        // One machine has all of an IPv6 network.
        for machine in 0..8 {
            guesses.wrong(&format!("name {machine}"), &format!("[2001:db8::{machine}]:80"), now);
        }
        assert_eq!(guesses.check("ada", "[2001:db8::ffff]:80", now).unwrap_err().by, LockoutSubject::Address);
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
        // Not even a right password clears the lockout of an address.
        for _ in 0..8 {
            guesses.wrong("eve", HERE, now);
        }
        guesses.right("ada", HERE, now);
        assert_eq!(guesses.check("ada", HERE, now).unwrap_err().by, LockoutSubject::Address);
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
