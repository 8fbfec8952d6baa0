//! One WebSocket connection: it reads requests, starts them, and writes answers.
//!
//! Reading and writing are two tasks. Response messages wait for the writer in a bounded queue (`answers::outgoing`).
//! Each request outside a session is a task of its own; a request of a session goes to the session's task (`session`).
//! Two bounds hold a fast client back: with `in_flight_count_max` requests in flight the connection is not read, and
//! while the queue is full, queries wait. The server drops a client that reads nothing for `write_stall_max`.
//!
//! When the connection ends, for whatever reason, its queries are cancelled and its sessions rolled back before this
//! task ends. At a shutdown, queries first have [`Limits::drain_max`](crate::limits::Limits::drain_max) to finish.
//!
//! A *farewell* is the code and the reason of the close frame with which the server ends a connection.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use futures_util::StreamExt;
use mangrove_graph::{Draw, Error, Purpose};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tracing::Instrument;

use crate::access::caller::Caller;
use crate::answers::outgoing::{Outgoing, outgoing};
use crate::answers::result_max::ResultMax;
use crate::answers::wire::{self, MessageFormat};
use crate::connections::allowance::Allowance;
use crate::connections::peer::Peer;
use crate::memory::budget;
use crate::requests::call::{DecodedRequest, RequestWork};
use crate::requests::job::{AcceptedRequest, Reply};
use crate::requests::protocol::{self, MessageRefusal, RawMessage};
use crate::requests::sessions::ConnectionId;
use crate::requests::worker::RequestWatch;
use crate::shared::Shared;
use crate::shutdown::{Shutdown, ShutdownPhase};
use crate::status::{Failure, Status};
use crate::trace;
use crate::websocket::gate::{Gate, Known, Passage};
use crate::websocket::session;

/// The most bytes of the reason in a close frame.
const CLOSE_REASON_BYTES_MAX: usize = 123;

/// The pings and pongs that the server reads in a row before it sends one pong through the queue of responses.
const CONTROL_BURST_MAX: u32 = 64;

struct Connection {
    id: ConnectionId,
    gate: Gate,
    allowance: Arc<Allowance>,
    shared: Arc<Shared>,
    outgoing: Outgoing,
    /// The free permits for requests in flight. A request holds its permit until it is answered.
    in_flight: Arc<Semaphore>,
    in_flight_count_max: u32,
    /// True when the connection has ended: this cancels its requests.
    gone: watch::Receiver<bool>,
    /// The tasks of requests outside a session.
    requests: JoinSet<()>,
}

/// Serves a connection until either side ends it.
pub async fn serve(socket: WebSocket, shared: Arc<Shared>, peer: Peer, known: Option<Known>) {
    let _alive = shared.alive();
    let (sink, mut stream) = socket.split();
    let limits = shared.limits.get();
    let (outgoing, writer) = outgoing(sink, limits.outgoing_count_max);
    let (gone, gone_receiver) = watch::channel(false);
    let mut writer = tokio::spawn(writer.run(limits.write_stall_max, limits.ping_interval));
    let mut shutdown = shared.shutdown();
    let allowance = Arc::clone(&peer.allowance);
    allowance.count_in(&shared.budget);
    let mut connection = Connection {
        id: shared.next_connection_id(),
        allowance,
        gate: Gate::new(peer, known, &limits),
        in_flight: Arc::new(Semaphore::new(limits.in_flight_count_max.min(Semaphore::MAX_PERMITS))),
        in_flight_count_max: u32::try_from(limits.in_flight_count_max).unwrap_or(u32::MAX),
        shared,
        outgoing,
        gone: gone_receiver,
        requests: JoinSet::new(),
    };
    tracing::debug!(connection = connection.id, "opened");
    let farewell = tokio::select! {
        farewell = connection.read(&mut stream) => farewell,
        () = shutdown.reached(ShutdownPhase::Draining) => Some((close_code::AWAY, "the server shuts down".to_owned())),
        _ = &mut writer => None,
    };
    if shutdown.phase() >= ShutdownPhase::Draining && !connection.drained(&mut shutdown).await {
        writer.abort();
    }
    // In this order: a request that still waits in the queue of a session, perhaps a commit, must find itself
    // cancelled.
    gone.send_replace(true);
    connection.shared.sessions.connection_lost(connection.id);
    while connection.requests.join_next().await.is_some() {}
    if let Some((code, reason)) = farewell {
        let frame = CloseFrame { code, reason: shortened(&reason).into() };
        tokio::select! {
            _ = connection.outgoing.send(Message::Close(Some(frame))) => {}
            () = shutdown.reached(ShutdownPhase::Cutting) => writer.abort(),
        }
    }
    tracing::debug!(connection = connection.id, "closed");
    drop(connection);
    if !writer.is_finished() {
        tokio::select! {
            _ = &mut writer => {}
            () = shutdown.reached(ShutdownPhase::Cutting) => writer.abort(),
        }
    }
}

/// The farewell for a client that violates the protocol, or sends a message too large to be read.
fn protocol_violation(error: &axum::Error) -> (u16, String) {
    let words = error.to_string();
    // The library's error type is private, so its text has to decide.
    match words.contains("too long") {
        true => (close_code::SIZE, "a message has more than four times message_bytes_max, and is not read".to_owned()),
        false => (close_code::POLICY, words),
    }
}

/// A close reason, cut to the length that a frame can carry.
fn shortened(reason: &str) -> &str {
    let end = (0..=reason.len().min(CLOSE_REASON_BYTES_MAX)).rev().find(|end| reason.is_char_boundary(*end));
    &reason[..end.expect("0 is a boundary")]
}

impl Connection {
    /// Reads until the client ends the connection, violates the protocol or falls silent. Returns the farewell, if the
    /// server must send one.
    async fn read(
        &mut self,
        stream: &mut (impl StreamExt<Item = Result<Message, axum::Error>> + Unpin),
    ) -> Option<(u16, String)> {
        loop {
            let permit = tokio::select! {
                permit = self.in_flight_permit() => permit,
                farewell = self.gate.shut() => return Some(farewell),
            };
            while self.requests.try_join_next().is_some() {}
            let mut control_count = 0;
            let message = loop {
                let next = tokio::select! {
                    next = timeout(self.shared.limits.get().silence_max, stream.next()) => next,
                    farewell = self.gate.shut() => return Some(farewell),
                };
                let Ok(next) = next else {
                    tracing::debug!(connection = self.id, "silent for longer than silence_max; it is taken for gone");
                    return None;
                };
                // This also forgets the bytes of the next message that were read already. They are far fewer than those
                // from which the allowance counts.
                self.allowance.finished();
                match next {
                    Some(Ok(message @ (Message::Binary(_) | Message::Text(_)))) => break message,
                    // Tungstenite answers pings itself, as fast as they come. A client that sends many and reads
                    // nothing must not go on: now and then one of our pongs has to go through the bounded queue.
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => {
                        control_count += 1;
                        if control_count % CONTROL_BURST_MAX == 0 {
                            self.send(Message::Pong(Bytes::new())).await;
                        }
                    }
                    Some(Ok(Message::Close(_))) | None => return None,
                    Some(Err(_)) if self.allowance.is_overdrawn() => {
                        let words = "the memory budget of the process (memory_budget) is used up: try again later";
                        return Some((close_code::AGAIN, words.to_owned()));
                    }
                    Some(Err(e)) => return Some(protocol_violation(&e)),
                }
            };
            let is_text = matches!(message, Message::Text(_));
            let farewell = self.accept(RawMessage { bytes: message.into_data(), is_text }, permit).await;
            if farewell.is_some() {
                return farewell;
            }
        }
    }

    /// Waits until all requests that were read are answered. Returns false if the shutdown cuts the connection off
    /// before that.
    async fn drained(&self, shutdown: &mut Shutdown) -> bool {
        tokio::select! {
            _ = self.in_flight.acquire_many(self.in_flight_count_max) => true,
            () = shutdown.reached(ShutdownPhase::Cutting) => false,
        }
    }

    /// Decodes a request and starts it, if the gate lets it pass. Returns the farewell, if the connection must close.
    async fn accept(&mut self, message: RawMessage, permit: OwnedSemaphorePermit) -> Option<(u16, String)> {
        let (call, held) = self.decode(&message).await?;
        let since = Instant::now();
        let is_proof = matches!(call.work, RequestWork::Authenticate(_));
        let proved = |status: Status| self.shared.meters.request("authentication", status.code(), since.elapsed());
        match self.gate.pass(call, message, &self.shared).await {
            Passage::Start(caller, call) => self.start(caller, *call, permit, held).await,
            Passage::Answer(message) => self.send(message).await,
            Passage::Opened(caller, held) => {
                proved(Status::SUCCESS);
                drop(permit);
                for message in held {
                    let permit = self.in_flight_permit().await;
                    if let Some((call, held)) = self.decode(&message).await {
                        self.start(caller.clone(), call, permit, held).await;
                    }
                }
            }
            Passage::Refused(answers, farewell) => {
                if is_proof {
                    proved(Status::UNAUTHORIZED);
                }
                for message in answers {
                    self.send(message).await;
                }
                return farewell.map(|reason| (close_code::POLICY, reason));
            }
        }
        None
    }

    /// Decodes a message into a request, with its draw on the memory budget. If the message is refused, sends the
    /// failure and returns `None`.
    async fn decode(&self, message: &RawMessage) -> Option<(DecodedRequest, Draw)> {
        let (shared, given, length) = (Arc::clone(&self.shared), message.clone(), message.bytes.len());
        let format = if message.is_text { MessageFormat::TEXT } else { MessageFormat::BINARY };
        let mut held = self.shared.budget.account(Purpose::Messages);
        // A message that is too long is refused for that, so it draws no more than the longest one.
        let counted = length.min(self.shared.limits.get().message_bytes_max);
        let decoded = match budget::hold_decoding(&mut held, counted) {
            Ok(()) => {
                let decode = move || protocol::decode(&given, &shared.limits.get());
                let failed = |error: Error| MessageRefusal { request: None, format, failure: error.into() };
                self.shared.workers.decode(length, decode).await.map_err(failed).flatten()
            }
            Err(error) => Err(protocol::refuse(message, error)),
        };
        match decoded {
            Ok(call) => {
                budget::shrink_to(&mut held, call.work.memory_bytes(length));
                Some((call, held))
            }
            Err(refusal) => {
                self.shared.meters.malformed(refusal.failure.status.code());
                self.send(wire::failure(refusal.format, refusal.request, &refusal.failure)).await;
                None
            }
        }
    }

    async fn send(&self, message: Message) {
        // An error means that the connection is gone, so there is no client to answer.
        let _ = self.outgoing.send(message).await;
    }

    /// Takes a permit among the requests in flight.
    async fn in_flight_permit(&self) -> OwnedSemaphorePermit {
        Arc::clone(&self.in_flight).acquire_owned().await.expect("the semaphore is never closed")
    }

    /// Starts a request: in its session's task, or in a task of its own.
    async fn start(&mut self, caller: Caller, call: DecodedRequest, permit: OwnedSemaphorePermit, held: Draw) {
        let DecodedRequest { request, session, format, form, batch_size, work } = call;
        let limit = match &work {
            RequestWork::Evaluate(evaluation) => evaluation.timeout,
            RequestWork::Close | RequestWork::Authenticate(_) => None,
        };
        let budget = self.shared.budget.clone();
        let reply = Reply { request, format, form, batch_size, outgoing: self.outgoing.clone(), budget };
        let watch = RequestWatch::start(limit, self.gone.clone(), self.shared.shutdown());
        let job = AcceptedRequest { caller, work, reply, watch, permit, held };
        match session {
            Some(name) => session::submit(&self.shared, self.id, name, job).await,
            None => {
                self.requests.spawn(evaluate(Arc::clone(&self.shared), job));
            }
        }
    }
}

/// Runs a request outside a session.
async fn evaluate(shared: Arc<Shared>, job: AcceptedRequest) {
    let AcceptedRequest { caller, work, reply, mut watch, permit, held } = job;
    let RequestWork::Evaluate(evaluation) = work else {
        return reply.fail(&Failure::invalid("close needs the argument `session`: which session to close")).await;
    };
    let sink = reply.sink(ResultMax::of(&shared.limits.get()), &watch.cancellation, Handle::current());
    let since = Instant::now();
    let span = trace::request(reply.request, reply.operation(), &caller);
    let outcome = shared.run(caller, evaluation, &mut watch, sink).instrument(span.clone()).await;
    trace::ended(&span, Failure::code_of(&outcome));
    shared.meters.request(reply.operation(), Failure::code_of(&outcome), since.elapsed());
    if let Err(failure) = outcome {
        reply.fail(&failure).await;
    }
    drop((permit, held));
}
