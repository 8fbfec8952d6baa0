//! Who asks, and what they may do to which graph.
//!
//! A [`Caller`] is made where a connection proves who it is (or, where the server asks for no proof, for everybody
//! alike) and goes with every request to the engine, which is where rights are looked at: what a traversal does is
//! known there and nowhere else. It has the rights of one moment; [`Caller::current`] looks them up again, when a request
//! begins and before anything is committed, so that a right that is taken away counts at once. Rights are a level for each
//! graph; a higher one includes the lower ones.
//!
//! A graph on which a caller has no right does not exist for it: its traversal sources are neither listed nor
//! distinguished from names that mean nothing.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use mangrove_graph::{Error, ErrorKind, Result};
use smol_str::SmolStr;
use tokio::sync::watch;

/// What may be done to a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// Traversals that change nothing.
    Read,
    /// Mutating traversals, too.
    Write,
    /// Services that change how the database works, too. An administrator of all graphs is the server's.
    Admin,
}

impl Access {
    /// All levels, lowest first.
    pub const ALL: [Access; 3] = [Access::Read, Access::Write, Access::Admin];

    /// Its name, as roles are written.
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

/// The name that stands for every graph in a list of rights.
pub const ALL_GRAPHS: &str = "*";

/// The levels of access to graphs, by their names; [`ALL_GRAPHS`] stands for those that are not named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights(Vec<(SmolStr, Access)>);

impl Rights {
    /// These; of two for one graph the later counts.
    pub fn new(levels: impl IntoIterator<Item = (SmolStr, Access)>) -> Self {
        Rights(levels.into_iter().collect())
    }

    /// The level on a graph.
    pub fn on(&self, graph: &str) -> Option<Access> {
        let named = |name: &str| self.0.iter().rev().find(|(known, _)| known == name).map(|(_, level)| *level);
        named(graph).or_else(|| named(ALL_GRAPHS))
    }

    /// Every graph that is named, with its level.
    pub fn iter(&self) -> impl Iterator<Item = &(SmolStr, Access)> {
        self.0.iter()
    }
}

/// Knows what a user may do at any later time.
pub trait Standing: fmt::Debug + Send + Sync {
    /// The rights as of now; an error if the user would not be let in.
    fn rights(&self) -> Result<Rights>;

    /// Changes when rights may have changed.
    fn changes(&self) -> watch::Receiver<u64>;
}

/// Who asks, with the rights as of one moment. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Caller(Arc<Identity>);

#[derive(Debug)]
struct Identity {
    /// `None` where the server asks nobody who they are.
    user: Option<SmolStr>,
    rights: Rights,
    /// Where from, for the audit log.
    peer: SmolStr,
    /// Where rights are looked up again; `None`: they never change.
    standing: Option<Arc<dyn Standing>>,
    /// Whether this request may only read, whatever the user's rights are.
    is_reading: bool,
}

impl Caller {
    /// Anybody at all, on a server that does not ask who they are: may do everything.
    pub fn anybody(peer: impl Into<SmolStr>) -> Self {
        let rights = Rights::new([(SmolStr::new_static(ALL_GRAPHS), Access::Admin)]);
        Caller(Arc::new(Identity { user: None, rights, peer: peer.into(), standing: None, is_reading: false }))
    }

    /// A user who has proved to be one, and whose rights never change.
    pub fn user(name: impl Into<SmolStr>, rights: Rights, peer: impl Into<SmolStr>) -> Self {
        let (user, peer) = (Some(name.into()), peer.into());
        Caller(Arc::new(Identity { user, rights, peer, standing: None, is_reading: false }))
    }

    /// A user who has proved to be one, with the rights as of now.
    pub fn standing(name: &str, standing: Arc<dyn Standing>, peer: &str) -> Result<Self> {
        let (user, peer, rights) = (Some(name.into()), peer.into(), standing.rights()?);
        Ok(Caller(Arc::new(Identity { user, rights, peer, standing: Some(standing), is_reading: false })))
    }

    /// The same caller with the rights as of now; an error if the user would not be let in.
    pub fn current(&self) -> Result<Self> {
        match &self.0.standing {
            None => Ok(self.clone()),
            Some(standing) => Ok(self.with(standing.rights()?, self.0.is_reading)),
        }
    }

    /// Completes, with the cause, when the user would not be let in any more.
    pub async fn expelled(&self) -> Error {
        let Some(standing) = &self.0.standing else { return std::future::pending().await };
        let mut changes = standing.changes();
        loop {
            if let Err(error) = standing.rights() {
                return error;
            }
            if changes.changed().await.is_err() {
                // The users never change again.
                return std::future::pending().await;
            }
        }
    }

    fn with(&self, rights: Rights, is_reading: bool) -> Self {
        let Identity { user, peer, standing, .. } = &*self.0;
        let (user, peer, standing) = (user.clone(), peer.clone(), standing.clone());
        Caller(Arc::new(Identity { user, rights, peer, standing, is_reading }))
    }

    /// The same caller in a request that only reads. A browser sends a GET for any page that shows an image, with the
    /// password it remembers, so a GET changes nothing.
    pub fn reading(&self) -> Self {
        self.with(self.0.rights.clone(), true)
    }

    /// The user's name; `anybody` where the server does not ask.
    pub fn name(&self) -> &str {
        self.0.user.as_deref().unwrap_or("anybody")
    }

    /// Whether it is known who it is.
    pub fn is_authenticated(&self) -> bool {
        self.0.user.is_some()
    }

    /// Where it comes from.
    pub fn peer(&self) -> &str {
        &self.0.peer
    }

    /// What it may do to a graph; `None`: not even know that it is there.
    pub fn access(&self, graph: &str) -> Option<Access> {
        let level = self.0.rights.on(graph)?;
        Some(if self.0.is_reading { Access::Read } else { level })
    }

    /// Refuses what changes something, in a request that only reads. `what` finishes the sentence "… is refused".
    pub fn require_change(&self, what: impl fmt::Display) -> Result<()> {
        match self.0.is_reading {
            false => Ok(()),
            true => Err(Error::new(
                ErrorKind::Forbidden,
                format!("{what} is refused in a GET, which only reads: send the request as POST, or over a WebSocket"),
            )),
        }
    }

    /// Returns true if it has a right on some graph, whether that is there or not.
    pub fn has_any_access(&self) -> bool {
        self.0.rights.iter().next().is_some()
    }

    /// Returns true if it administers a graph, even if this request may only read.
    pub fn administers(&self, graph: &str) -> bool {
        self.0.rights.on(graph) == Some(Access::Admin)
    }

    /// Whether it may do what concerns the whole server.
    pub fn is_server_admin(&self) -> bool {
        self.access(ALL_GRAPHS) == Some(Access::Admin)
    }

    /// Refuses what takes a higher level than the caller has. `what` finishes the sentence "… needs the role".
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

    /// Refuses what only an administrator of all graphs may do.
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
