//! The identity of a client, and its rights on graphs.
//!
//! A [`Caller`] is made at the login of a connection, or for every client alike on a server without users. It goes with
//! every request to the engine. Rights are checked there, because only the engine knows what a traversal does. A right
//! is a level for a graph; a higher level includes the lower ones. A caller carries its rights as of one time;
//! [`Caller::current`] looks them up again.
//!
//! - **SERVER-3.** A graph on which a caller has no right does not exist for it: neither lists nor errors tell it from
//!   a name that means nothing.
//! - **SERVER-4.** Rights are looked up again when a request begins and before a write is committed, so that a right
//!   that was taken away counts at once.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use mangrove_graph::{Error, ErrorKind, Result};
use smol_str::SmolStr;
use tokio::sync::watch;

use super::graph_name::ALL_GRAPHS;

/// A level of access to a graph, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// Traversals that change nothing.
    Read,
    /// Mutating traversals as well.
    Write,
    /// Services that administer the graph as well. The administrator of all graphs administers the server.
    Admin,
}

impl Access {
    /// All levels, lowest first.
    pub const ALL: [Access; 3] = [Access::Read, Access::Write, Access::Admin];

    /// The name of the level, as in a list of roles.
    pub fn name(self) -> &'static str {
        match self {
            Access::Read => "read",
            Access::Write => "write",
            Access::Admin => "admin",
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Access {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Access::ALL.into_iter().find(|level| level.name() == text).ok_or_else(|| {
            let hint = mangrove_gremlin::suggest(text, Access::ALL.iter().map(|level| level.name()));
            Error::invalid(format!("there is no role `{text}`{hint}: a role is read, write or admin"))
        })
    }
}

/// The levels of access to graphs, by the graphs' names; [`ALL_GRAPHS`] stands for all graphs that are not named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights(Vec<(SmolStr, Access)>);

impl Rights {
    /// Rights with these levels. Of two levels for one graph, the later one counts.
    pub fn new(levels: impl IntoIterator<Item = (SmolStr, Access)>) -> Self {
        Rights(levels.into_iter().collect())
    }

    /// The level of access to a graph.
    pub fn on(&self, graph: &str) -> Option<Access> {
        let named = |name: &str| self.0.iter().rev().find(|(known, _)| known == name).map(|(_, level)| *level);
        named(graph).or_else(|| named(ALL_GRAPHS))
    }

    /// Every named graph with its level.
    pub fn iter(&self) -> impl Iterator<Item = &(SmolStr, Access)> {
        self.0.iter()
    }
}

/// Looks up the rights of a logged-in user at any time after the login.
pub trait LoginStanding: fmt::Debug + Send + Sync {
    /// The current rights; an error if the login would fail now.
    fn rights(&self) -> Result<Rights>;

    /// A counter that changes when rights may have changed.
    fn changes(&self) -> watch::Receiver<u64>;
}

/// A client's identity, with its rights as of one time. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Caller(Arc<Identity>);

#[derive(Debug)]
struct Identity {
    /// `None` on a server without users.
    user: Option<SmolStr>,
    rights: Rights,
    /// The client's address and port, for limits and the audit log.
    peer: SmolStr,
    /// Looks the rights up again; `None` if they never change.
    standing: Option<Arc<dyn LoginStanding>>,
    /// True if this request may only read, whatever the user's rights are.
    is_reading: bool,
}

impl Caller {
    /// A client of a server without users, which may do everything.
    pub fn anybody(peer: impl Into<SmolStr>) -> Self {
        let rights = Rights::new([(SmolStr::new_static(ALL_GRAPHS), Access::Admin)]);
        Caller(Arc::new(Identity { user: None, rights, peer: peer.into(), standing: None, is_reading: false }))
    }

    /// A logged-in user whose rights never change.
    pub fn user(name: impl Into<SmolStr>, rights: Rights, peer: impl Into<SmolStr>) -> Self {
        let (user, peer) = (Some(name.into()), peer.into());
        Caller(Arc::new(Identity { user, rights, peer, standing: None, is_reading: false }))
    }

    /// A logged-in user, with the current rights.
    pub fn standing(name: &str, standing: Arc<dyn LoginStanding>, peer: &str) -> Result<Self> {
        let (user, peer, rights) = (Some(name.into()), peer.into(), standing.rights()?);
        Ok(Caller(Arc::new(Identity { user, rights, peer, standing: Some(standing), is_reading: false })))
    }

    /// The same caller with the current rights; an error if the login would fail now.
    pub fn current(&self) -> Result<Self> {
        match &self.0.standing {
            None => Ok(self.clone()),
            Some(standing) => Ok(self.with(standing.rights()?, self.0.is_reading)),
        }
    }

    /// Completes, with the cause, when a login of the user would fail.
    pub async fn expelled(&self) -> Error {
        let Some(standing) = &self.0.standing else { return std::future::pending().await };
        let mut changes = standing.changes();
        loop {
            if let Err(error) = standing.rights() {
                return error;
            }
            if changes.changed().await.is_err() {
                // The source of users is gone, so the rights never change again.
                return std::future::pending().await;
            }
        }
    }

    fn with(&self, rights: Rights, is_reading: bool) -> Self {
        let Identity { user, peer, standing, .. } = &*self.0;
        let (user, peer, standing) = (user.clone(), peer.clone(), standing.clone());
        Caller(Arc::new(Identity { user, rights, peer, standing, is_reading }))
    }

    /// The same caller in a request that may only read. Any web page can make a browser send a GET, with a remembered
    /// password, so a GET must not change anything.
    pub fn reading(&self) -> Self {
        self.with(self.0.rights.clone(), true)
    }

    /// The user's name; `anybody` on a server without users.
    pub fn name(&self) -> &str {
        self.0.user.as_deref().unwrap_or("anybody")
    }

    /// Returns true if the caller has logged in.
    pub fn is_authenticated(&self) -> bool {
        self.0.user.is_some()
    }

    /// The client's address and port.
    pub fn peer(&self) -> &str {
        &self.0.peer
    }

    /// The level of access to a graph; `None` if the graph does not exist for the caller (SERVER-3).
    pub fn access(&self, graph: &str) -> Option<Access> {
        let level = self.0.rights.on(graph)?;
        Some(if self.0.is_reading { Access::Read } else { level })
    }

    /// Refuses a change in a request that may only read. `what` begins the sentence "… is refused".
    pub fn require_change(&self, what: impl fmt::Display) -> Result<()> {
        match self.0.is_reading {
            false => Ok(()),
            true => Err(Error::new(
                ErrorKind::Forbidden,
                format!("{what} is refused in a GET, which only reads: send the request as POST, or over a WebSocket"),
            )),
        }
    }

    /// Returns true if the caller has a right on some graph, existing or not.
    pub fn has_any_access(&self) -> bool {
        self.0.rights.iter().next().is_some()
    }

    /// Returns true if the caller administers a graph, even if this request may only read.
    pub fn administers(&self, graph: &str) -> bool {
        self.0.rights.on(graph) == Some(Access::Admin)
    }

    /// Returns true if the caller may administer the whole server.
    pub fn is_server_admin(&self) -> bool {
        self.access(ALL_GRAPHS) == Some(Access::Admin)
    }

    /// Refuses an action that needs a higher level than the caller's. `what` begins the sentence "… needs the role".
    pub fn require(&self, graph: &str, level: Access, what: impl fmt::Display) -> Result<()> {
        let has = self.access(graph);
        if has >= Some(level) {
            return Ok(());
        }
        self.require_change(&what)?;
        let has = has.map_or("none", Access::name);
        Err(Error::new(
            ErrorKind::Forbidden,
            format!(
                "{what} needs the role {level} on the graph `{graph}`, and the user `{}` has {has}; an administrator \
                 gives roles (`mangrove user grant`)",
                self.name()
            ),
        ))
    }

    /// Refuses an action of administrators of all graphs to other callers.
    pub fn require_server_admin(&self, what: impl fmt::Display) -> Result<()> {
        if self.is_server_admin() {
            return Ok(());
        }
        self.require_change(&what)?;
        Err(Error::new(
            ErrorKind::Forbidden,
            format!("{what} needs the role admin on all graphs (`*`), which the user `{}` has not", self.name()),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rights(levels: &[(&str, Access)]) -> Rights {
        Rights::new(levels.iter().map(|(graph, level)| (SmolStr::new(graph), *level)))
    }

    #[test]
    fn a_graph_named_wins_over_all_and_a_level_includes_the_lower_ones() {
        let ada = Caller::user("ada", rights(&[("*", Access::Write), ("books", Access::Read)]), "here");
        assert_eq!(ada.access("books"), Some(Access::Read));
        assert_eq!(ada.access("other"), Some(Access::Write));
        ada.require("other", Access::Read, "reading").unwrap();
        let refused = ada.require("books", Access::Write, "`addV`").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Forbidden);
        assert!(refused.message().contains("`addV` needs the role write on the graph `books`"), "{refused}");
        ada.require_server_admin("it").unwrap_err();
    }

    #[test]
    fn who_has_no_right_sees_nothing_and_anybody_may_do_all() {
        let eve = Caller::user("eve", rights(&[("books", Access::Read)]), "here");
        assert_eq!(eve.access("main"), None);
        Caller::anybody("here").require_server_admin("it").unwrap();
    }

    #[test]
    fn a_request_that_only_reads_changes_nothing_whatever_the_rights() {
        let anybody = Caller::anybody("here").reading();
        anybody.require("main", Access::Read, "reading").unwrap();
        for refused in [
            anybody.require("main", Access::Write, "`addV`"),
            anybody.require_server_admin("it"),
            anybody.require_change("ending a query"),
        ] {
            let error = refused.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Forbidden);
            assert!(error.message().contains("send the request as POST"), "{error}");
        }
        let eve = Caller::user("eve", rights(&[("books", Access::Admin)]), "here").reading();
        assert_eq!((eve.access("books"), eve.access("main")), (Some(Access::Read), None));
    }

    #[test]
    fn roles_are_written_as_words() {
        assert_eq!("write".parse::<Access>().unwrap(), Access::Write);
        assert!("writ".parse::<Access>().unwrap_err().message().contains("did you mean `write`"));
    }
}
