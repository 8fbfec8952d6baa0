//! The users file: names, password hashes and roles.
//!
//! ```toml
//! [users.ada]
//! password = "$argon2id$v=19$m=19456,t=2,p=1$…"
//! roles = { "*" = "admin" }
//!
//! [users.web]
//! password = "$argon2id$…"
//! roles = { books = "read", carts = "write" }
//! ```
//!
//! `mangrove user` writes it. Passwords themselves are stored nowhere. Hashes are Argon2id in PHC form, which names its
//! parameters, so that they can be raised without invalidating older hashes.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use argon2::password_hash::{PasswordHash, SaltString};
use argon2::{Argon2, PasswordHasher, PasswordVerifier};
use mangrove_graph::{Error, ErrorKind, Result};
use ring::rand::{SecureRandom, SystemRandom};
use serde::Deserialize;
use smol_str::SmolStr;

use crate::access::caller::{Access, Rights};
use crate::access::graph_name::{ALL_GRAPHS, check_name};

/// The most bytes of a password: a longer one only makes hashing slower.
pub const PASSWORD_BYTES_MAX: usize = 1_024;

/// The most bytes of a user's name.
const NAME_BYTES_MAX: usize = 128;

const SALT_BYTES: usize = 16;

/// The users of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Users(BTreeMap<SmolStr, User>);

/// A user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The hash of the password, in PHC form.
    pub hash: SmolStr,
    /// The rights of the user.
    pub rights: Rights,
}

/// The file as TOML has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UsersFile {
    #[serde(default)]
    users: BTreeMap<String, UserEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UserEntry {
    password: String,
    #[serde(default)]
    roles: BTreeMap<String, String>,
}

impl Users {
    /// Reads users from text.
    pub fn parse(text: &str) -> Result<Self> {
        let file: UsersFile = toml::from_str(text)
            // The parser's display shows the faulty line, which may hold a hash: only its message is passed on.
            .map_err(|e| Error::new(ErrorKind::Syntax, format!("it is no list of users: {}", e.message())))?;
        let users = file.users.into_iter().map(|(name, entry)| {
            let user = entry.user().map_err(|e| e.context(format!("user {name}")))?;
            check_user_name(&name)?;
            Ok((name.into(), user))
        });
        Ok(Users(users.collect::<Result<_>>()?))
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self> {
        Users::parse(&read_text(path)?).map_err(|e| e.context(path.display()))
    }

    /// Writes the file atomically, so that a server that reads it meanwhile sees the old or the new text whole. Only
    /// the owner may read it.
    pub fn write(&self, path: &Path) -> Result<()> {
        let beside = path.with_extension("new");
        let written = (|| {
            let _ = fs::remove_file(&beside);
            let mut options = fs::OpenOptions::new();
            options.write(true).create_new(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let mut file = options.open(&beside)?;
            file.write_all(self.text().as_bytes())?;
            file.sync_all()?;
            fs::rename(&beside, path)
        })();
        written.map_err(|e| Error::new(ErrorKind::Io, format!("cannot write the users file {}: {e}", path.display())))
    }

    /// The file's text.
    fn text(&self) -> String {
        let mut text = "# Written by `mangrove user`. Passwords are Argon2 hashes.\n".to_owned();
        for (name, user) in &self.0 {
            // Names and hashes need no escaping: `check_user_name` and the PHC form exclude quotes and backslashes.
            let _ = write!(text, "\n[users.\"{name}\"]\npassword = \"{}\"\nroles = {{", user.hash);
            for (at, (graph, level)) in user.rights.iter().enumerate() {
                let _ = write!(text, "{} \"{graph}\" = \"{level}\"", if at == 0 { "" } else { "," });
            }
            text.push_str(" }\n");
        }
        text
    }

    /// The user with a name.
    pub fn get(&self, name: &str) -> Option<&User> {
        self.0.get(name)
    }

    /// All users, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&SmolStr, &User)> {
        self.0.iter()
    }

    /// Adds a user; an error if the name is taken.
    pub fn add(&mut self, name: &str, password: &str, rights: Rights) -> Result<()> {
        check_user_name(name)?;
        if self.0.contains_key(name) {
            let message = format!("there is a user `{name}` already; `mangrove user passwd` changes the password");
            return Err(Error::new(ErrorKind::DuplicateId, message));
        }
        self.0.insert(name.into(), User { hash: hash(password)?, rights });
        Ok(())
    }

    /// Removes a user.
    pub fn remove(&mut self, name: &str) -> Result<()> {
        self.found(name)?;
        self.0.remove(name);
        Ok(())
    }

    /// Replaces a user's password.
    pub fn set_password(&mut self, name: &str, password: &str) -> Result<()> {
        self.found(name)?.hash = hash(password)?;
        Ok(())
    }

    /// Sets a user's role on a graph, or removes it.
    pub fn grant(&mut self, name: &str, graph: &str, level: Option<Access>) -> Result<()> {
        if graph != ALL_GRAPHS {
            check_name(graph)?;
        }
        let user = self.found(name)?;
        let others = user.rights.iter().filter(|(known, _)| known != graph).cloned();
        user.rights = Rights::new(others.chain(level.map(|level| (graph.into(), level))).collect::<Vec<_>>());
        Ok(())
    }

    fn found(&mut self, name: &str) -> Result<&mut User> {
        let hint = mangrove_gremlin::suggest(name, self.0.keys().map(SmolStr::as_str));
        self.0.get_mut(name).ok_or_else(|| Error::new(ErrorKind::NotFound, format!("there is no user `{name}`{hint}")))
    }
}

impl UserEntry {
    fn user(self) -> Result<User> {
        PasswordHash::new(&self.password).map_err(|e| {
            Error::invalid(format!("the password is no Argon2 hash ({e}); `mangrove user passwd` makes one"))
        })?;
        let level = |(graph, role): (String, String)| {
            if graph != ALL_GRAPHS {
                check_name(&graph)?;
            }
            Ok((graph.into(), role.parse()?))
        };
        let rights = self.roles.into_iter().map(level).collect::<Result<Vec<_>>>()?;
        Ok(User { hash: self.password.into(), rights: Rights::new(rights) })
    }
}

/// Checks the name of a user: printable ASCII without quotes and backslashes, as logs and the users file show it, and
/// without a colon, which ends the name in HTTP Basic.
fn check_user_name(name: &str) -> Result<()> {
    let fits = |b: u8| b.is_ascii_graphic() && !matches!(b, b'"' | b'\\' | b':');
    if !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.bytes().all(fits) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "`{}` cannot name a user: use letters, digits and punctuation without `\"`, `\\` and `:`, at most \
         {NAME_BYTES_MAX} in all",
        name.escape_debug()
    )))
}

/// The text of a users file.
pub(crate) fn read_text(path: &Path) -> Result<String> {
    fs::read_to_string(path)
        .map_err(|e| Error::new(ErrorKind::Io, format!("cannot read the users file {}: {e}", path.display())))
}

/// Hashes a password, with a fresh salt.
pub fn hash(password: &str) -> Result<SmolStr> {
    if password.is_empty() || password.len() > PASSWORD_BYTES_MAX {
        return Err(Error::invalid(format!("a password has 1 to {PASSWORD_BYTES_MAX} bytes")));
    }
    let mut salt = [0; SALT_BYTES];
    let unmade = |what: String| Error::new(ErrorKind::Io, format!("the password could not be hashed: {what}"));
    SystemRandom::new().fill(&mut salt).map_err(|_| unmade("the system gives no random bytes".to_owned()))?;
    let salt = SaltString::encode_b64(&salt).map_err(|e| unmade(e.to_string()))?;
    let hash = Argon2::default().hash_password(password.as_bytes(), &salt).map_err(|e| unmade(e.to_string()))?;
    Ok(hash.to_string().into())
}

/// Returns true if a password has this hash. Takes tens of milliseconds by design.
pub fn verify(password: &[u8], hash: &str) -> bool {
    PasswordHash::new(hash).is_ok_and(|hash| Argon2::default().verify_password(password, &hash).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_come_back_as_they_were_written() {
        let mut users = Users::default();
        users.add("ada", "secret", Rights::new([("*".into(), Access::Admin)])).unwrap();
        users.add("web.app@x", "other", Rights::default()).unwrap();
        users.grant("web.app@x", "books", Some(Access::Read)).unwrap();
        users.grant("web.app@x", "carts", Some(Access::Write)).unwrap();
        users.grant("web.app@x", "books", None).unwrap();
        let read = Users::parse(&users.text()).unwrap();
        assert_eq!(read, users);
        let (ada, web) = (read.get("ada").unwrap(), read.get("web.app@x").unwrap());
        assert!(verify(b"secret", &ada.hash) && !verify(b"Secret", &ada.hash));
        assert_eq!((web.rights.on("carts"), web.rights.on("books")), (Some(Access::Write), None));
        assert!(!users.text().contains("secret"));
    }

    #[test]
    fn mistakes_are_named_without_showing_hashes() {
        for (text, part) in [
            ("[users.ada]\npassword = \"plain\"", "user ada: the password is no Argon2 hash"),
            ("[users.ada]\npasword = \"plainly\"", "pasword"),
            (
                "[users.\"a:b\"]\npassword = \"$argon2id$v=19$m=8,t=1,p=1$AAAAAAAAAAA$AAAAAAAAAAAAAAAA\"",
                "cannot name a user",
            ),
        ] {
            let error = Users::parse(text).unwrap_err();
            assert!(error.message().contains(part), "{error}");
            assert!(!error.message().contains("plainly"), "{error}");
        }
        let mut users = Users::default();
        assert!(users.remove("eve").unwrap_err().message().contains("no user `eve`"));
        assert!(users.add("eve", "", Rights::default()).is_err());
    }
}
