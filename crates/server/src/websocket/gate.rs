//! The login of a WebSocket.
//!
//! ```text
//! stranger ──request──► held, one challenge (407) ──authentication──► right: open, held requests run
//!    │                                                            └──► wrong: held requests refused (401)
//!    └── too many bytes, or too late ──► closed
//! ```
//!
//! On a server with users, the first request is held and answered with a challenge. The client sends `authentication`
//! with SASL PLAIN. After a correct login the held requests run as if they had come now, which drivers expect. Drivers
//! pipeline, so further requests wait with the first, undecoded. The bytes before a login are limited
//! ([`Limits::login_bytes_max`](crate::limits::Limits::login_bytes_max)).
//!
//! An open gate looks up the user's rights for every request (SERVER-4). The connection ends when a login of the user
//! would fail.

use std::sync::Arc;

use axum::extract::ws::{Message, close_code};
use mangrove_graph::Error;
use tokio::time::Instant;
use uuid::Uuid;

use crate::access::auth::{Authenticator, FAILURE_COUNT_MAX};
use crate::access::caller::Caller;
use crate::answers::wire::{self, MessageFormat};
use crate::connections::peer::Peer;
use crate::connections::permits::{ConnectionPermits, NameCount};
use crate::limits::Limits;
use crate::requests::call::{DecodedRequest, RequestWork};
use crate::requests::protocol::RawMessage;
use crate::shared::Shared;
use crate::status::Failure;

/// Requests that may wait for the login.
const HELD_COUNT_MAX: usize = 16;

/// The gate of one connection.
pub struct Gate {
    peer: Peer,
    /// The logged-in client; `None` while the gate is closed.
    known: Option<Known>,
    held: Vec<HeldRequest>,
    /// Failed logins on this connection: wrong ones, and those that a limit refused.
    failures: u32,
    /// The time by which the client must have logged in.
    deadline: Option<Instant>,
    login_bytes_max: usize,
}

/// The caller of a connection, and its unit of the user's count of WebSockets.
pub type Known = (Caller, Option<NameCount>);

/// A request that waits for the login, with what is needed to refuse it.
struct HeldRequest {
    message: RawMessage,
    format: MessageFormat,
    request: Uuid,
}

/// The decision on a request.
pub enum Passage {
    /// The request runs.
    Start(Caller, Box<DecodedRequest>),
    /// The request is answered with this message, for now or for good.
    Answer(Message),
    /// The client has logged in: the held requests run.
    Opened(Caller, Vec<RawMessage>),
    /// The client has not logged in: these are the answers to the held requests. With a reason the connection is
    /// closed.
    Refused(Vec<Message>, Option<String>),
}

impl Gate {
    /// An open gate for a known client, a closed one for any other.
    pub fn new(peer: Peer, known: Option<Known>, limits: &Limits) -> Self {
        let mut deadline = None;
        if known.is_none() {
            deadline = Instant::now().checked_add(limits.authentication_timeout);
            peer.allowance.limit(limits.login_bytes_max);
        }
        Gate { peer, known, held: Vec::new(), failures: 0, deadline, login_bytes_max: limits.login_bytes_max }
    }

    /// Completes, with the code and reason of a close frame, when the connection must be closed: without a login after
    /// some time or too many bytes; with one when a further login of the user would fail.
    pub async fn shut(&self) -> (u16, String) {
        if let Some((caller, _)) = &self.known {
            return (close_code::POLICY, caller.expelled().await.message().to_owned());
        }
        let overdue = async {
            match self.deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = overdue => {
                (close_code::POLICY, "the client did not log in within the limit authentication_timeout".to_owned())
            }
            () = self.peer.allowance.spent() => {
                let max = self.login_bytes_max;
                (close_code::SIZE, format!("more than {max} bytes (login_bytes_max) before a login"))
            }
        }
    }

    /// Lets a request through, holds it, or takes it as the login.
    pub async fn pass(&mut self, call: DecodedRequest, message: RawMessage, shared: &Shared) -> Passage {
        match (call.work, &shared.authenticator) {
            (RequestWork::Authenticate(_), None) => {
                let failure = Failure::malformed("this server asks for no authentication; send requests without it");
                Passage::Answer(wire::failure(call.format, Some(call.request), &failure))
            }
            (RequestWork::Authenticate(Err(failure)), Some(_)) => {
                Passage::Answer(wire::failure(call.format, Some(call.request), &failure))
            }
            (RequestWork::Authenticate(Ok(proof)), Some(authenticator)) => {
                self.prove(call.request, call.format, &proof, authenticator, &shared.permits).await
            }
            (work, _) => self.let_through(DecodedRequest { work, ..call }, message),
        }
    }

    fn let_through(&mut self, call: DecodedRequest, message: RawMessage) -> Passage {
        match self.known.as_ref().map(|(caller, _)| caller.current()) {
            Some(Ok(caller)) => Passage::Start(caller, Box::new(call)),
            Some(Err(error)) => {
                let failure = Failure::unauthorized(error.message());
                let answer = wire::failure(call.format, Some(call.request), &failure);
                Passage::Refused(vec![answer], Some(error.message().to_owned()))
            }
            None => self.hold(HeldRequest { message, format: call.format, request: call.request }),
        }
    }

    fn hold(&mut self, held: HeldRequest) -> Passage {
        let (format, request) = (held.format, held.request);
        if self.held.len() >= HELD_COUNT_MAX {
            let message = format!("more than {HELD_COUNT_MAX} requests came before the client proved who it is");
            return Passage::Answer(wire::failure(format, Some(request), &Failure::unauthorized(message)));
        }
        self.held.push(held);
        // One challenge is enough: a client that gets two answers two.
        if self.held.len() == 1 {
            Passage::Answer(wire::challenge(format, request))
        } else {
            Passage::Refused(Vec::new(), None)
        }
    }

    async fn prove(
        &mut self,
        request: Uuid,
        format: MessageFormat,
        message: &[u8],
        authenticator: &Arc<Authenticator>,
        permits: &ConnectionPermits,
    ) -> Passage {
        // The allowance of a known client was lifted. If its new login fails, its bytes would stay unlimited, so the
        // connection is closed.
        let was_known = self.known.take().is_some();
        let outcome = authenticator.log_in_sasl(message, &self.peer.address).await;
        let outcome = outcome.map_err(|denied| denied.error());
        match outcome.and_then(|caller| Ok((permits.of_user(caller.name())?, caller))) {
            Ok((user_count, caller)) => {
                self.known = Some((caller.clone(), Some(user_count)));
                self.deadline = None;
                self.peer.allowance.lift();
                Passage::Opened(caller, self.held.drain(..).map(|held| held.message).collect())
            }
            Err(error) => {
                self.failures += 1;
                let failure = Failure::unauthorized(error.message());
                let mut refused: Vec<(MessageFormat, Uuid)> =
                    self.held.drain(..).map(|held| (held.format, held.request)).collect();
                // Drivers send the login under the id of the challenged request, which is answered once (SERVER-5).
                if !refused.iter().any(|(_, id)| *id == request) {
                    refused.insert(0, (format, request));
                }
                let answers =
                    refused.into_iter().map(|(format, id)| wire::failure(format, Some(id), &failure)).collect();
                Passage::Refused(answers, self.farewell_after(&error, was_known))
            }
        }
    }

    /// The reason to close the connection after a failed login; `None` if the client may try again. The error comes
    /// first: it names the cause, and the end of a long reason is cut.
    fn farewell_after(&self, error: &Error, was_known: bool) -> Option<String> {
        let cause = error.message();
        if was_known {
            return Some(format!("{cause}; a failed login ends a connection that was logged in"));
        }
        (self.failures >= FAILURE_COUNT_MAX)
            .then(|| format!("{cause}; a connection ends after {FAILURE_COUNT_MAX} failed logins"))
    }
}
