//! Logins: names and passwords, by SASL PLAIN over WebSocket and by HTTP Basic.
//!
//! **What an attacker learns.** A wrong login has one answer, whatever is wrong. An unknown user costs a hash like a
//! known one, against a hash that no password has. At most [`HASHING_COUNT_MAX`] threads hash, so a flood of logins
//! takes neither all cores nor, at 19 MiB each, all memory. A connection is closed after [`FAILURE_COUNT_MAX`] failed
//! logins. `lockout` slows and refuses guesses.
//!
//! **What is remembered.** HTTP sends the password with every request, and drivers open connections by the dozen. A
//! right password is remembered for [`REMEMBERED_FOR`], as a keyed digest of the name, the password and the stored
//! hash. So the digest can be neither read back nor used elsewhere, and a changed password does not match. Wrong
//! passwords are never remembered.
//!
//! **Changes.** The users file is checked every second. A removed user, or one with another password, loses open
//! connections then. Other roles count from the next request and the next commit on (SERVER-4).

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mangrove_graph::{Error, ErrorKind, Result};
use parking_lot::{Mutex, RwLock};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use smol_str::SmolStr;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

use crate::access::audit::{self, AuditedAct};
use crate::access::caller::{Caller, LoginStanding, Rights};
use crate::access::lockout::{LockedOut, Lockout, LockoutSubject, LoginGuesses};
use crate::access::secret_file::{changed, warn_if_public};
use crate::access::users::{self, PASSWORD_BYTES_MAX, Users};
use crate::metrics::meters::Meters;

/// Passwords that are hashed at once.
pub(crate) const HASHING_COUNT_MAX: usize = 2;

/// Failed logins on one connection before it is closed.
pub const FAILURE_COUNT_MAX: u32 = 3;

/// How long a right password is remembered.
const REMEMBERED_FOR: Duration = Duration::from_secs(60);

/// Right passwords that are remembered at once.
const REMEMBERED_COUNT_MAX: usize = 1_024;

/// The interval between two checks of the users file.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The source of the users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UsersSource {
    /// A file, which the server reads again after a change.
    File(PathBuf),
    /// The text of a users file.
    Text(String),
}

impl UsersSource {
    fn read(&self) -> Result<Users> {
        match self {
            UsersSource::File(path) => {
                warn_if_public(path);
                let text = users::read_text(path)?;
                // A program that writes the file in place empties it first. If the server reads it then, it must not
                // log all users out. A file whose last user was removed still has its first line.
                if text.is_empty() {
                    let message = format!("{} is empty; `mangrove user add` adds a user to it", path.display());
                    return Err(Error::new(ErrorKind::InvalidArgument, message));
                }
                Users::parse(&text).map_err(|e| e.context(path.display()))
            }
            UsersSource::Text(text) => Users::parse(text).map_err(|e| e.context("the users in MANGROVE_USERS")),
        }
    }
}

/// Checks logins against the current users.
pub struct Authenticator {
    source: UsersSource,
    users: RwLock<Arc<Users>>,
    /// The number of readings of the source so far.
    changes: watch::Sender<u64>,
    /// The hash that an unknown user's password is compared with.
    decoy: SmolStr,
    hashing: Semaphore,
    key: hmac::Key,
    remembered: Mutex<HashMap<[u8; 32], Instant>>,
    guesses: LoginGuesses,
    meters: Arc<Meters>,
}

/// A login: the user and the password hash that it matched. It holds while the user still has this hash.
struct LoginProof {
    authenticator: Arc<Authenticator>,
    name: SmolStr,
    hash: SmolStr,
}

impl fmt::Debug for LoginProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginProof").field("name", &self.name).finish_non_exhaustive()
    }
}

impl LoginStanding for LoginProof {
    fn rights(&self) -> Result<Rights> {
        let users = self.authenticator.users();
        let user = users.get(&self.name).filter(|user| user.hash == self.hash);
        let gone = || {
            let message = format!("the user `{}` was removed or has another password; log in again", self.name);
            Error::new(ErrorKind::Forbidden, message)
        };
        Ok(user.ok_or_else(gone)?.rights.clone())
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.authenticator.changes.subscribe()
    }
}

/// The reason for which a login failed.
#[derive(Clone, Debug)]
pub enum LoginDenied {
    /// Name or password is wrong; the message does not say which.
    Wrong(Error),
    /// Too many wrong logins came before, so this one was not checked.
    Refused(LockedOut),
}

impl LoginDenied {
    /// The error for the client.
    pub fn error(&self) -> Error {
        match self {
            LoginDenied::Wrong(error) => error.clone(),
            LoginDenied::Refused(refused) => refused.error(),
        }
    }
}

impl From<Error> for LoginDenied {
    fn from(error: Error) -> Self {
        LoginDenied::Wrong(error)
    }
}

impl Authenticator {
    /// Reads the users.
    pub fn new(source: UsersSource, lockout: Lockout, meters: Arc<Meters>) -> Result<Self> {
        let users = source.read()?;
        let random = SystemRandom::new();
        let unmade = |_| Error::new(ErrorKind::Io, "the system gives no random bytes");
        let mut secret = [0; 24];
        random.fill(&mut secret).map_err(unmade)?;
        Ok(Authenticator {
            source,
            users: RwLock::new(Arc::new(users)),
            changes: watch::Sender::new(0),
            decoy: users::hash(&STANDARD.encode(secret))?,
            hashing: Semaphore::new(HASHING_COUNT_MAX),
            key: hmac::Key::generate(hmac::HMAC_SHA256, &random).map_err(unmade)?,
            remembered: Mutex::default(),
            guesses: LoginGuesses::new(lockout),
            meters,
        })
    }

    fn users(&self) -> Arc<Users> {
        Arc::clone(&self.users.read())
    }

    fn replace_users(&self, users: Users) {
        *self.users.write() = Arc::new(users);
        self.changes.send_modify(|reading| *reading += 1);
    }

    /// Reads the users file again after each change, for as long as it is polled.
    pub async fn watch(self: Arc<Self>) {
        let UsersSource::File(path) = &self.source else { return };
        let mut seen = changed(path);
        loop {
            tokio::time::sleep(LOOK_INTERVAL).await;
            let now = changed(path);
            if now == seen {
                continue;
            }
            seen = now;
            match self.source.read() {
                Ok(users) => {
                    self.replace_users(users);
                    tracing::info!("read {} again", path.display());
                }
                Err(error) => tracing::error!("the users stay as they were: {error}"),
            }
        }
    }

    /// The numbers of addresses and of user names whose logins are refused now.
    pub fn refused_counts(&self) -> (usize, usize) {
        self.guesses.refused_counts(Instant::now())
    }

    /// Checks a login. The audit log gets the outcome, unless the password was remembered. The answer to a wrong
    /// password may be delayed.
    pub async fn log_in(self: &Arc<Self>, name: &str, password: &[u8], peer: &str) -> Result<Caller, LoginDenied> {
        let users = self.users();
        let user = users.get(name);
        let hash = user.map_or(&self.decoy, |user| &user.hash).clone();
        let digest = self.digest(name, password, &hash);
        let proof = LoginProof { authenticator: Arc::clone(self), name: name.into(), hash: hash.clone() };
        if user.is_some() && self.remembers(&digest) {
            return Ok(Caller::standing(name, Arc::new(proof), peer)?);
        }
        let is_right = self.verify(name, password, hash.clone(), peer).await?;
        self.meters.login(user.is_some() && is_right);
        match user.is_some() && is_right {
            true => {
                self.remember(digest);
                self.guesses.right(name, peer, Instant::now());
                let caller = Caller::standing(name, Arc::new(proof), peer)?;
                audit::note(&caller, AuditedAct::LogIn, None);
                Ok(caller)
            }
            false => {
                let error = Error::new(ErrorKind::Forbidden, "Username and/or password are incorrect");
                // A user may type a password in place of the name; it must not reach a log.
                let shown = if user.is_some() { name } else { "(unknown)" };
                let caller = Caller::user(shown, Rights::default(), peer);
                audit::note(&caller, AuditedAct::LogIn, Some(&error));
                let (delay, shut) = self.guesses.wrong(name, peer, Instant::now());
                if let Some(by) = shut {
                    audit::note(&caller, AuditedAct::LockOut { by }, None);
                }
                tokio::time::sleep(delay).await;
                Err(error.into())
            }
        }
    }

    /// As [`Authenticator::log_in`], with a message of SASL PLAIN: `[authorization] NUL user NUL password`.
    pub async fn log_in_sasl(self: &Arc<Self>, message: &[u8], peer: &str) -> Result<Caller, LoginDenied> {
        let mut parts = message.splitn(3, |byte| *byte == 0);
        let (Some(on_behalf), Some(name), Some(password)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(Error::new(ErrorKind::Forbidden, "the argument `sasl` is no SASL PLAIN message").into());
        };
        if !on_behalf.is_empty() && on_behalf != name {
            let message = "a client cannot act for another user: leave the authorization identity of SASL PLAIN empty";
            return Err(Error::new(ErrorKind::Forbidden, message).into());
        }
        self.log_in(&String::from_utf8_lossy(name), password, peer).await
    }

    /// As [`Authenticator::log_in`], with the value of an HTTP header `Authorization`.
    pub async fn log_in_basic(self: &Arc<Self>, header: &str, peer: &str) -> Result<Caller, LoginDenied> {
        let wrong = || Error::new(ErrorKind::Forbidden, "the header Authorization is not that of HTTP Basic");
        let (scheme, encoded) = header.split_once(' ').ok_or_else(wrong)?;
        if !scheme.eq_ignore_ascii_case("basic") {
            return Err(wrong().into());
        }
        let decoded = STANDARD.decode(encoded.trim()).map_err(|_| wrong())?;
        let colon = decoded.iter().position(|byte| *byte == b':').ok_or_else(wrong)?;
        self.log_in(&String::from_utf8_lossy(&decoded[..colon]), &decoded[colon + 1..], peer).await
    }

    /// Returns true if a password fits a hash; an error if the login is refused without a check.
    async fn verify(&self, name: &str, password: &[u8], hash: SmolStr, peer: &str) -> Result<bool, LoginDenied> {
        let refused = |refused: LockedOut| {
            match refused.by {
                LockoutSubject::Address => self.meters.login_refused_by_address(),
                LockoutSubject::User => self.meters.login_refused_by_user(),
            }
            LoginDenied::Refused(refused)
        };
        self.guesses.check(name, peer, Instant::now()).map_err(refused)?;
        let _permit = self.hashing.acquire().await.expect("the semaphore is never closed");
        // Checked again: of hundreds of logins sent at once, all wait here, and earlier ones may have been wrong.
        self.guesses.check(name, peer, Instant::now()).map_err(refused)?;
        // A password that is too long is wrong. Hashing only its beginning costs the same as any other.
        let is_short = password.len() <= PASSWORD_BYTES_MAX;
        let password = password[..password.len().min(PASSWORD_BYTES_MAX)].to_vec();
        let verified = tokio::task::spawn_blocking(move || users::verify(&password, &hash)).await;
        Ok(is_short & verified.unwrap_or(false))
    }

    fn digest(&self, name: &str, password: &[u8], hash: &str) -> [u8; 32] {
        let mut context = hmac::Context::with_key(&self.key);
        for part in [name.as_bytes(), password, hash.as_bytes()] {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part);
        }
        context.sign().as_ref().try_into().expect("HMAC-SHA256 has 32 bytes")
    }

    fn remembers(&self, digest: &[u8; 32]) -> bool {
        self.remembered.lock().get(digest).is_some_and(|since| since.elapsed() < REMEMBERED_FOR)
    }

    fn remember(&self, digest: [u8; 32]) {
        let mut remembered = self.remembered.lock();
        if remembered.len() >= REMEMBERED_COUNT_MAX {
            remembered.retain(|_, since| since.elapsed() < REMEMBERED_FOR);
        }
        if remembered.len() < REMEMBERED_COUNT_MAX {
            remembered.insert(digest, Instant::now());
        }
    }
}

/// Decodes the SASL message in an argument: base64 text, as drivers send it.
pub fn decode_sasl(text: &str) -> Result<Vec<u8>> {
    STANDARD.decode(text).map_err(|_| Error::invalid("the argument `sasl` is no base64"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::caller::Access;

    fn authenticator() -> Arc<Authenticator> {
        let hash = users::hash("secret").unwrap();
        let text = format!("[users.ada]\npassword = \"{hash}\"\nroles = {{ \"*\" = \"write\" }}");
        Arc::new(Authenticator::new(UsersSource::Text(text), Lockout::default(), Arc::new(Meters::new())).unwrap())
    }

    #[tokio::test]
    async fn right_passwords_are_let_in_by_either_way() {
        let authenticator = authenticator();
        let caller = authenticator.log_in_sasl(b"\0ada\0secret", "x").await.unwrap();
        assert_eq!((caller.name(), caller.access("any")), ("ada", Some(Access::Write)));
        let header = format!("Basic {}", STANDARD.encode("ada:secret"));
        authenticator.log_in_basic(&header, "x").await.unwrap();
    }

    #[tokio::test]
    async fn whatever_is_wrong_is_answered_alike() {
        let authenticator = authenticator();
        let long = [b"\0ada\0secret".as_slice(), &[b'x'; 2_000]].concat();
        for wrong in [b"\0ada\0Secret".as_slice(), b"\0eve\0secret", b"\0ada\0", b"\0\0", &long] {
            let error = authenticator.log_in_sasl(wrong, "x").await.err().unwrap().error();
            assert_eq!(error.message(), "Username and/or password are incorrect");
        }
        for wrong in [b"ada".as_slice(), b"", b"eve\0ada\0secret"] {
            assert!(authenticator.log_in_sasl(wrong, "x").await.is_err());
        }
        for wrong in ["Bearer x", "Basic", "Basic !!!", "Basic YWRh"] {
            assert!(authenticator.log_in_basic(wrong, "x").await.is_err(), "{wrong}");
        }
    }

    #[tokio::test]
    async fn too_many_guesses_are_refused_unseen_and_the_user_who_is_known_here_comes_in() {
        let hash = users::hash("secret").unwrap();
        let text = format!("[users.ada]\npassword = \"{hash}\"");
        let lockout = Lockout { user_max: 3, ..Lockout::default() };
        let authenticator = Authenticator::new(UsersSource::Text(text), lockout, Arc::new(Meters::new())).unwrap();
        let authenticator = Arc::new(authenticator);
        authenticator.log_in("ada", b"secret", "192.0.2.7:1").await.unwrap();
        for user in ["ada", "nobody"] {
            for _ in 0..3 {
                let error = authenticator.log_in(user, b"guess", "192.0.2.1:1").await.err().unwrap().error();
                assert_eq!(error.message(), "Username and/or password are incorrect");
            }
            // However many come at once, no password is checked.
            let late =
                futures_util::future::join_all((0..20).map(|_| authenticator.log_in(user, b"other", "192.0.2.1:2")));
            for refused in late.await {
                assert!(refused.err().unwrap().error().message().starts_with("too many wrong logins"));
            }
        }
        assert_eq!(authenticator.refused_counts(), (0, 2));
        authenticator.remembered.lock().clear();
        authenticator.log_in("ada", b"secret", "192.0.2.7:2").await.unwrap();
    }

    #[tokio::test]
    async fn a_user_who_changes_counts_as_changed_at_the_next_request() {
        let authenticator = authenticator();
        let login = authenticator.log_in("ada", b"secret", "x").await.unwrap();
        let mut users = (*authenticator.users()).clone();
        users.grant("ada", "*", Some(Access::Read)).unwrap();
        authenticator.replace_users(users.clone());
        assert_eq!(login.current().unwrap().access("any"), Some(Access::Read));
        users.set_password("ada", "other").unwrap();
        authenticator.replace_users(users);
        assert!(login.current().is_err());
        assert!(login.expelled().await.message().contains("log in again"));
        // The remembered digest of the old password does not let the user in.
        assert!(authenticator.log_in("ada", b"secret", "x").await.is_err());
    }
}
