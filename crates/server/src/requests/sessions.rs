//! The register of sessions: which are open, who owns them, and which have ended without the client's asking.
//!
//! A session belongs to the connection whose request began it. A session that ended without the client's asking is
//! remembered for [`Limits::session_idle_max`], and for [`Limits::session_remembered_min`] at least. A request that
//! names it is refused: beginning a new session would commit the second half of an undone transaction alone. A close
//! acknowledges the end and frees the name; the owning connection may send it, or after its end any connection of the
//! same user.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use mangrove_graph::{Error, ErrorKind};
use parking_lot::Mutex;
use smol_str::SmolStr;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::job::AcceptedRequest;
use crate::access::caller::Caller;
use crate::access::network::network;
use crate::limits::Limits;
use crate::status::Failure;

/// Ended sessions that are remembered.
const REMEMBERED_COUNT_MAX: usize = 4_096;

/// The number of a connection, unique in a server's life.
pub type ConnectionId = u64;

/// The reason for which a session ended without the client's asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEnd {
    Idle(Duration),
    ConnectionLost,
    Panic,
}

impl SessionEnd {
    pub fn failure(self, name: &str) -> Failure {
        let cause = match self {
            SessionEnd::Idle(limit) => format!("was idle for {} s (the limit session_idle_max)", limit.as_secs_f32()),
            SessionEnd::ConnectionLost => "lost its connection".to_owned(),
            SessionEnd::Panic => "met a bug in the database".to_owned(),
        };
        Error::new(
            ErrorKind::Closed,
            format!(
                "the session `{name}` {cause}; what it had not committed was undone. Begin another, or close \
                 this one first to use its name again"
            ),
        )
        .into()
    }
}

/// All sessions of a server.
#[derive(Debug)]
pub struct Sessions {
    state: Mutex<SessionTable>,
    count_max: usize,
    user_max: usize,
    address_max: usize,
    remember_max: Duration,
}

#[derive(Debug, Default)]
struct SessionTable {
    open: HashMap<SmolStr, OpenSession>,
    ended: HashMap<SmolStr, EndedSession>,
    /// At least the keys of `ended`, oldest first.
    ended_order: VecDeque<SmolStr>,
    serial: u64,
}

/// A session that ended without the client's asking.
#[derive(Debug)]
struct EndedSession {
    end: SessionEnd,
    since: Instant,
    /// `None` if the connection is gone.
    owner: Option<ConnectionId>,
    user: SmolStr,
}

impl EndedSession {
    /// Returns true if the session belonged to this connection or, if its connection is gone, to this user.
    fn belongs_to(&self, connection: ConnectionId, user: &str) -> bool {
        self.owner.map_or(self.user == user, |owner| owner == connection)
    }
}

/// A connection and its caller.
#[derive(Clone, Copy)]
pub struct SessionClient<'a> {
    pub connection: ConnectionId,
    pub caller: &'a Caller,
}

#[derive(Debug)]
struct OpenSession {
    owner: ConnectionId,
    user: SmolStr,
    /// The address of the client, as limits count it.
    address: SmolStr,
    /// Distinguishes the session from a later one of the same name.
    serial: u64,
    queue: mpsc::Sender<AcceptedRequest>,
}

impl Sessions {
    /// An empty register.
    pub fn new(limits: &Limits) -> Self {
        Sessions {
            state: Mutex::default(),
            count_max: limits.session_count_max,
            user_max: limits.session_count_user_max,
            address_max: limits.session_count_address_max,
            remember_max: limits.session_idle_max.max(limits.session_remembered_min),
        }
    }

    /// The sending end of a session's queue, and the receiving end if the session begins with this request. `None` for
    /// a close of a session that is not open.
    #[expect(clippy::type_complexity, reason = "read in one place, just above")]
    pub fn queue(
        &self,
        client: SessionClient<'_>,
        name: &SmolStr,
        closing: bool,
        capacity: usize,
    ) -> Result<Option<(mpsc::Sender<AcceptedRequest>, Option<(u64, mpsc::Receiver<AcceptedRequest>)>)>, Failure> {
        let mut state = self.state.lock();
        if let Some(open) = state.open.get(name) {
            if open.owner != client.connection {
                return Err(Failure::invalid(format!(
                    "the session `{name}` belongs to another connection; use its connection, or another name"
                )));
            }
            return Ok(Some((open.queue.clone(), None)));
        }
        if closing {
            if state.ended.get(name).is_some_and(|ended| ended.belongs_to(client.connection, client.caller.name())) {
                state.ended.remove(name);
            }
            return Ok(None);
        }
        if let Some(ended) = state.ended.get(name)
            && ended.since.elapsed() < self.remember_max
        {
            return Err(ended.end.failure(name));
        }
        let address = network(client.caller.peer());
        self.check_room(&state, client.caller, &address)?;
        state.serial += 1;
        let serial = state.serial;
        let (queue, receiver) = mpsc::channel(capacity);
        let user = client.caller.name().into();
        let open = OpenSession { owner: client.connection, user, address, serial, queue: queue.clone() };
        state.open.insert(name.clone(), open);
        Ok(Some((queue, Some((serial, receiver)))))
    }

    /// Refuses one more session at the limits in all, of the user, and of the address (SERVER-1).
    fn check_room(&self, state: &SessionTable, caller: &Caller, address: &SmolStr) -> Result<(), Failure> {
        let (name, open) = (caller.name(), &state.open);
        let of = |belongs: &dyn Fn(&OpenSession) -> bool| open.values().filter(|open| belongs(open)).count();
        let full = |what: String, count_max: usize, setting: &str| {
            let message =
                format!("{what} has {count_max} sessions, as many as it may; close some, or raise the limit {setting}");
            Err(Failure::invalid(message))
        };
        if open.len() >= self.count_max {
            return full("the server".to_owned(), self.count_max, "session_count_max");
        }
        if caller.is_authenticated() && of(&|open| open.user == name) >= self.user_max {
            return full(format!("the user `{name}`"), self.user_max, "session_count_user_max");
        }
        if of(&|open| open.address == *address) >= self.address_max {
            return full(format!("the address {address}"), self.address_max, "session_count_address_max");
        }
        Ok(())
    }

    /// Ends every session of a connection. Their tasks see their queues closed and roll back.
    pub fn connection_lost(&self, owner: ConnectionId) {
        let mut state = self.state.lock();
        let lost: Vec<SmolStr> =
            state.open.iter().filter(|(_, open)| open.owner == owner).map(|(name, _)| name.clone()).collect();
        for name in lost {
            state.forget_open(&name, Some(SessionEnd::ConnectionLost));
        }
        for ended in state.ended.values_mut().filter(|ended| ended.owner == Some(owner)) {
            ended.owner = None;
        }
    }

    /// The number of open sessions.
    pub fn open_count(&self) -> usize {
        self.state.lock().open.len()
    }

    pub fn remove(&self, name: &SmolStr, serial: u64, end: Option<SessionEnd>) {
        let mut state = self.state.lock();
        if state.open.get(name).is_some_and(|open| open.serial == serial) {
            state.forget_open(name, end);
        }
    }

    pub fn end_of(&self, name: &str) -> SessionEnd {
        self.state.lock().ended.get(name).map_or(SessionEnd::ConnectionLost, |ended| ended.end)
    }
}

impl SessionTable {
    /// Removes an open session, and remembers it if it ended without the client's asking.
    fn forget_open(&mut self, name: &SmolStr, end: Option<SessionEnd>) {
        let Some(open) = self.open.remove(name) else { return };
        if let Some(end) = end {
            self.remember(
                name.clone(),
                EndedSession { end, since: Instant::now(), owner: Some(open.owner), user: open.user },
            );
        }
    }

    fn remember(&mut self, name: SmolStr, ended: EndedSession) {
        // A name may be in the order twice, if it was closed and used again; then it is forgotten early.
        if self.ended.insert(name.clone(), ended).is_none() {
            self.ended_order.push_back(name);
        }
        if self.ended_order.len() > REMEMBERED_COUNT_MAX
            && let Some(oldest) = self.ended_order.pop_front()
        {
            self.ended.remove(&oldest);
        }
    }
}
