//! The task of a session: requests that share one open transaction.
//!
//! A session begins with the first request that names it, and belongs to that request's connection. Its requests run
//! one after another, in order of arrival. The first begins a transaction, which ends with `tx commit` or `tx
//! rollback`; the next request begins another. The session ends, and an open transaction is rolled back,
//!
//! - when the client closes it, as drivers expect;
//! - when it has been idle for [`Limits::session_idle_max`](crate::limits::Limits::session_idle_max);
//! - when its connection ends;
//! - when the engine panics inside it.
//!
//! `requests::sessions` remembers sessions that ended without the client's asking.

use std::sync::Arc;

use mangrove_graph::{Error, ErrorKind};
use parking_lot::Mutex;
use smol_str::SmolStr;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::Instrument;

use crate::answers::result_max::ResultMax;
use crate::requests::call::RequestWork;
use crate::requests::job::AcceptedRequest;
use crate::requests::program::Program;
use crate::requests::sessions::{ConnectionId, SessionClient, SessionEnd};
use crate::requests::transaction::CurrentTransaction;
use crate::shared::Shared;
use crate::status::Failure;
use crate::trace;

/// Passes a request to the session that it names, and begins the session if necessary. A close of a session that is not
/// open does nothing.
pub async fn submit(shared: &Arc<Shared>, owner: ConnectionId, name: SmolStr, job: AcceptedRequest) {
    let capacity = shared.limits.get().in_flight_count_max;
    let client = SessionClient { connection: owner, caller: &job.caller };
    match shared.sessions.queue(client, &name, matches!(job.work, RequestWork::Close), capacity) {
        Err(failure) => job.reply.fail(&failure).await,
        Ok(None) => job.reply.done().await,
        Ok(Some((queue, begun))) => {
            if let Some((serial, receiver)) = begun {
                let session = Session { shared: Arc::clone(shared), name: name.clone(), serial };
                tokio::spawn(session.run(receiver));
            }
            // The queue has room for all requests that the connection may have in flight, so it is never full. It may
            // be closed, because the session ends at this moment.
            if let Err(error) = queue.try_send(job) {
                let job = error.into_inner();
                let end = shared.sessions.end_of(&name);
                job.reply.fail(&end.failure(&name)).await;
            }
        }
    }
}

/// The task of one session.
struct Session {
    shared: Arc<Shared>,
    name: SmolStr,
    serial: u64,
}

/// The transaction, which the worker takes while it runs. `None` after the worker returned means that it panicked.
type LentTransaction = Arc<Mutex<Option<CurrentTransaction>>>;

impl Session {
    async fn run(self, mut queue: mpsc::Receiver<AcceptedRequest>) {
        let _alive = self.shared.alive();
        let transaction: LentTransaction = Arc::new(Mutex::new(Some(CurrentTransaction::default())));
        let idle_max = self.shared.limits.get().session_idle_max;
        loop {
            let job = match tokio::time::timeout(idle_max, queue.recv()).await {
                Ok(Some(job)) => job,
                Ok(None) => break,
                Err(_) => {
                    self.end(&mut queue, Some(SessionEnd::Idle(idle_max))).await;
                    break;
                }
            };
            match job.work {
                RequestWork::Evaluate(_) | RequestWork::Authenticate(_) => self.evaluate(job, &transaction).await,
                RequestWork::Close => {
                    self.end(&mut queue, None).await;
                    self.roll_back(&transaction).await;
                    job.reply.done().await;
                    return;
                }
            }
            if transaction.lock().is_none() {
                self.end(&mut queue, Some(SessionEnd::Panic)).await;
                return;
            }
        }
        self.roll_back(&transaction).await;
    }

    async fn evaluate(&self, job: AcceptedRequest, transaction: &LentTransaction) {
        let AcceptedRequest { caller, work: RequestWork::Evaluate(evaluation), reply, mut watch, .. } = job else {
            return;
        };
        let engine = Arc::clone(&self.shared.engine);
        let cancellation = watch.cancellation.clone();
        let sink = reply.sink(ResultMax::of(&self.shared.limits.get()), &cancellation, Handle::current());
        let lent = Arc::clone(transaction);
        let span = trace::request(reply.request, "session", &caller);
        let entered = span.clone();
        let outcome = self.shared.workers.run(&mut watch, move || {
            // SERVER-4: the request may have waited for others of its session.
            let caller = caller.current()?;
            let program = Program::compile(evaluation, &caller, engine.as_ref(), &cancellation)?;
            let mut transaction =
                lent.lock().take().expect("the session's task ends when a worker lost its transaction");
            let outcome = program.run_in_session(engine.as_ref(), &mut transaction, sink);
            *lent.lock() = Some(transaction);
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

    async fn roll_back(&self, transaction: &LentTransaction) {
        let Some(mut transaction) = transaction.lock().take() else { return };
        if transaction.is_open()
            && let Err(e) = self.shared.workers.finish(move || transaction.rollback()).await
        {
            tracing::error!(session = %self.name, "{e}");
        }
    }

    /// Removes the session from the register, and refuses the requests that are still in its queue.
    async fn end(&self, queue: &mut mpsc::Receiver<AcceptedRequest>, end: Option<SessionEnd>) {
        self.shared.sessions.remove(&self.name, self.serial, end);
        queue.close();
        while let Some(job) = queue.recv().await {
            match (&job.work, end) {
                (RequestWork::Close, _) => job.reply.done().await,
                (_, Some(end)) => job.reply.fail(&end.failure(&self.name)).await,
                (_, None) => {
                    let message = format!("the session `{}` was closed by a request before this one", self.name);
                    job.reply.fail(&Error::new(ErrorKind::Closed, message).into()).await;
                }
            }
        }
    }
}
