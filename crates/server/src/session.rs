//! Sessions: a name under which requests share one open transaction.
//!
//! A session begins with the first request that names it and belongs to the connection that request came
//! over. Its requests run one after another, in order of arrival, by a task of its own; the transaction is
//! begun by the first of them and ends with `tx commit` or `tx rollback`, after which the next request
//! begins another. The session ends
//!
//! - when the client closes it (an open transaction is rolled back, as drivers expect);
//! - when it has been idle for [`Limits::session_idle_max`](crate::config::Limits::session_idle_max);
//! - when its connection ends;
//! - when the engine panics inside it.
//!
//! A session that ended otherwise than by the client's will is remembered as long as it might have been idle, and for
//! some minutes at least:
//! a request that names it is refused, because to begin anew would commit the second half of a transaction
//! alone. To close it says that the client knows, and frees the name: the connection that the session belonged to may do
//! that, and when that is gone, any connection of the same user.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use mangrove_graph::{Error, ErrorKind, Result};
use parking_lot::Mutex;
use smol_str::SmolStr;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::Instrument;

use crate::access::Caller;
use crate::admission::network;
use crate::config::Limits;
use crate::job::{Job, Work};
use crate::program::Program;
use crate::server::Shared;
use crate::sink::ResultMax;
use crate::status::Failure;
use crate::trace;
use crate::transaction::Slot;

/// How many ended sessions are remembered.
const REMEMBERED_COUNT_MAX: usize = 4_096;

/// A connection, to tell them apart.
pub type ConnectionId = u64;

/// Why a session ended without the client's asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Idle(Duration),
    ConnectionLost,
    Panic,
}

impl End {
    fn failure(self, name: &str) -> Failure {
        let cause = match self {
            End::Idle(limit) => format!("was idle for {} s (the limit session_idle_max)", limit.as_secs_f32()),
            End::ConnectionLost => "lost its connection".to_owned(),
            End::Panic => "met a bug in the database".to_owned(),
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
    state: Mutex<State>,
    count_max: usize,
    user_max: usize,
    address_max: usize,
    remember_max: Duration,
}

#[derive(Debug, Default)]
struct State {
    open: HashMap<SmolStr, Open>,
    ended: HashMap<SmolStr, Ended>,
    /// At least the keys of `ended`, oldest first.
    ended_order: VecDeque<SmolStr>,
    serial: u64,
}

/// A session that ended without the client's asking.
#[derive(Debug)]
struct Ended {
    end: End,
    since: Instant,
    /// `None` when the connection is gone, too.
    owner: Option<ConnectionId>,
    user: SmolStr,
}

impl Ended {
    /// Returns true if this is the client that the session belonged to, as far as that can be told.
    fn belongs_to(&self, connection: ConnectionId, user: &str) -> bool {
        self.owner.map_or(self.user == user, |owner| owner == connection)
    }
}

/// Who asks: a connection and its user.
#[derive(Clone, Copy)]
struct Client<'a> {
    connection: ConnectionId,
    caller: &'a Caller,
}

#[derive(Debug)]
struct Open {
    owner: ConnectionId,
    user: SmolStr,
    /// From which address its client came.
    address: SmolStr,
    /// Tells this session from a later one of the same name.
    serial: u64,
    queue: mpsc::Sender<Job>,
}

impl Sessions {
    /// None yet.
    pub fn new(limits: &Limits) -> Self {
        Sessions {
            state: Mutex::default(),
            count_max: limits.session_count_max,
            user_max: limits.session_count_user_max,
            address_max: limits.session_count_address_max,
            remember_max: limits.session_idle_max.max(limits.session_remembered_min),
        }
    }

    /// Hands a request to the session it names, which is begun if need be. A close of a session that is
    /// not open has nothing to do.
    pub async fn submit(shared: &Arc<Shared>, owner: ConnectionId, name: SmolStr, job: Job) {
        let capacity = shared.limits.get().in_flight_count_max;
        let client = Client { connection: owner, caller: &job.caller };
        match shared.sessions.queue(client, &name, matches!(job.work, Work::Close), capacity) {
            Err(failure) => job.reply.fail(&failure).await,
            Ok(None) => job.reply.done().await,
            Ok(Some((queue, begun))) => {
                if let Some((serial, receiver)) = begun {
                    let session = Session { shared: Arc::clone(shared), name: name.clone(), serial };
                    tokio::spawn(session.run(receiver));
                }
                // The queue holds as many as the connection may have in flight, so it is never full; it is
                // closed when the session ends at this very moment.
                if let Err(error) = queue.try_send(job) {
                    let job = error.into_inner();
                    let end = shared.sessions.end_of(&name);
                    job.reply.fail(&end.failure(&name)).await;
                }
            }
        }
    }

    /// The queue of a session, and the other end of it if the session begins here.
    #[expect(clippy::type_complexity, reason = "read in one place, just above")]
    fn queue(
        &self,
        client: Client<'_>,
        name: &SmolStr,
        closing: bool,
        capacity: usize,
    ) -> Result<Option<(mpsc::Sender<Job>, Option<(u64, mpsc::Receiver<Job>)>)>, Failure> {
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
        let open = Open { owner: client.connection, user, address, serial, queue: queue.clone() };
        state.open.insert(name.clone(), open);
        Ok(Some((queue, Some((serial, receiver)))))
    }

    /// Refuses one more session where there are as many as there may be, in all, of the user or of the address.
    fn check_room(&self, state: &State, caller: &Caller, address: &SmolStr) -> Result<(), Failure> {
        let (name, open) = (caller.name(), &state.open);
        let of = |belongs: &dyn Fn(&Open) -> bool| open.values().filter(|open| belongs(open)).count();
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
            state.forget_open(&name, Some(End::ConnectionLost));
        }
        for ended in state.ended.values_mut().filter(|ended| ended.owner == Some(owner)) {
            ended.owner = None;
        }
    }

    /// How many are open.
    pub fn open_count(&self) -> usize {
        self.state.lock().open.len()
    }

    fn remove(&self, name: &SmolStr, serial: u64, end: Option<End>) {
        let mut state = self.state.lock();
        if state.open.get(name).is_some_and(|open| open.serial == serial) {
            state.forget_open(name, end);
        }
    }

    fn end_of(&self, name: &str) -> End {
        self.state.lock().ended.get(name).map_or(End::ConnectionLost, |ended| ended.end)
    }
}

impl State {
    /// Takes a session out of those that are open, and remembers it if it ended without the client's asking.
    fn forget_open(&mut self, name: &SmolStr, end: Option<End>) {
        let Some(open) = self.open.remove(name) else { return };
        if let Some(end) = end {
            self.remember(name.clone(), Ended { end, since: Instant::now(), owner: Some(open.owner), user: open.user });
        }
    }

    fn remember(&mut self, name: SmolStr, ended: Ended) {
        // A name may stand in the order twice, after it was closed and used again; then it is forgotten early.
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

/// The task of one session.
struct Session {
    shared: Arc<Shared>,
    name: SmolStr,
    serial: u64,
}

/// The transaction, lent to the worker while it runs. `None` means that a worker panicked with it.
type LentSlot = Arc<Mutex<Option<Slot>>>;

impl Session {
    async fn run(self, mut queue: mpsc::Receiver<Job>) {
        let _alive = self.shared.alive();
        let slot: LentSlot = Arc::new(Mutex::new(Some(Slot::default())));
        let idle_max = self.shared.limits.get().session_idle_max;
        loop {
            let job = match tokio::time::timeout(idle_max, queue.recv()).await {
                Ok(Some(job)) => job,
                Ok(None) => break,
                Err(_) => {
                    self.end(&mut queue, Some(End::Idle(idle_max))).await;
                    break;
                }
            };
            match job.work {
                Work::Evaluate(_) | Work::Authenticate(_) => self.evaluate(job, &slot).await,
                Work::Close => {
                    self.end(&mut queue, None).await;
                    self.roll_back(&slot).await;
                    job.reply.done().await;
                    return;
                }
            }
            if slot.lock().is_none() {
                self.end(&mut queue, Some(End::Panic)).await;
                return;
            }
        }
        self.roll_back(&slot).await;
    }

    async fn evaluate(&self, job: Job, slot: &LentSlot) {
        let Job { caller, work: Work::Evaluate(evaluation), reply, mut watch, .. } = job else { return };
        let engine = Arc::clone(&self.shared.engine);
        let cancellation = watch.cancellation.clone();
        let sink = reply.sink(ResultMax::of(&self.shared.limits.get()), &cancellation, Handle::current());
        let lent = Arc::clone(slot);
        let span = trace::request(reply.request, "session", &caller);
        let entered = span.clone();
        let outcome = self.shared.workers.run(&mut watch, move || {
            // The request may have waited for others of its session.
            let caller = caller.current()?;
            let program = Program::compile(evaluation, &caller, engine.as_ref(), &cancellation)?;
            let mut slot = lent.lock().take().expect("the session's task ends when a worker lost its slot");
            let outcome = program.run_in_session(engine.as_ref(), &mut slot, sink);
            *lent.lock() = Some(slot);
            outcome
        });
        let since = Instant::now();
        let outcome = outcome.instrument(entered).await;
        trace::ended(&span, Failure::code_of(&outcome));
        self.shared.meters.request("session", Failure::code_of(&outcome), since.elapsed());
        if let Err(failure) = outcome {
            reply.fail(&failure).await;
        }
    }

    async fn roll_back(&self, slot: &LentSlot) {
        let Some(mut slot) = slot.lock().take() else { return };
        if slot.is_open()
            && let Err(e) = self.shared.workers.finish(move || slot.rollback()).await
        {
            tracing::error!(session = %self.name, "{e}");
        }
    }

    /// Takes the session out of the register and refuses what is still in its queue.
    async fn end(&self, queue: &mut mpsc::Receiver<Job>, end: Option<End>) {
        self.shared.sessions.remove(&self.name, self.serial, end);
        queue.close();
        while let Some(job) = queue.recv().await {
            match (&job.work, end) {
                (Work::Close, _) => job.reply.done().await,
                (_, Some(end)) => job.reply.fail(&end.failure(&self.name)).await,
                (_, None) => {
                    let message = format!("the session `{}` was closed by a request before this one", self.name);
                    job.reply.fail(&Error::new(ErrorKind::Closed, message).into()).await;
                }
            }
        }
    }
}
