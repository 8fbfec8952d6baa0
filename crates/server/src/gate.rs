//! A WebSocket's way from a stranger to somebody who is known.
//!
//! Where the server asks who somebody is, the first request is held and answered with a challenge (407). The client sends
//! `authentication` with SASL PLAIN; when it is right, what was held is run as if it had come now, which is what drivers
//! expect. Drivers pipeline: requests that come in between wait with the first. Requests wait as they came, undecoded, and
//! all that a stranger sends is limited ([`Limits::login_bytes_max`](crate::config::Limits::login_bytes_max)). A wrong
//! password refuses all that wait (401).
//!
//! Once open the gate asks for every request what its user may do now ([`Caller::current`]), and the connection ends when
//! the user would not be let in any more.

use std::sync::Arc;

use axum::extract::ws::{Message, close_code};
use tokio::time::Instant;
use uuid::Uuid;

use crate::accept::Peer;
use crate::access::Caller;
use crate::admission::{Capacity, Share};
use crate::auth::{Authenticator, FAILURE_COUNT_MAX};
use crate::config::Limits;
use crate::job::{Call, Work};
use crate::protocol::RawMessage;
use crate::server::Shared;
use crate::status::Failure;
use crate::wire::{self, Format};

/// Requests that wait for the proof.
const HELD_COUNT_MAX: usize = 16;

/// The gate of one connection.
pub struct Gate {
    peer: Peer,
    known: Option<Known>,
    held: Vec<Held>,
    failures: u32,
    /// When a stranger has to go.
    deadline: Option<Instant>,
    login_bytes_max: usize,
}

/// Who a client is, and its share of the user's connections where users are counted.
pub type Known = (Caller, Option<Share>);

/// A request that waits for the proof, and how it is answered if that never comes.
struct Held {
    message: RawMessage,
    format: Format,
    request: Uuid,
}

/// What becomes of a request.
pub enum Passage {
    /// It is run.
    Start(Caller, Box<Call>),
    /// It is answered with this, for now.
    Answer(Message),
    /// The client is known now: what was held is run.
    Opened(Caller, Vec<RawMessage>),
    /// The client did not prove who it is: these are the answers to what was held, and with a reason the connection is
    /// closed.
    Refused(Vec<Message>, Option<String>),
}

impl Gate {
    /// An open gate for a client that is known, a shut one for a stranger.
    pub fn new(peer: Peer, known: Option<Known>, limits: &Limits) -> Self {
        let mut deadline = None;
        if known.is_none() {
            deadline = Instant::now().checked_add(limits.authentication_timeout);
            peer.allowance.limit(limits.login_bytes_max);
        }
        Gate { peer, known, held: Vec::new(), failures: 0, deadline, login_bytes_max: limits.login_bytes_max }
    }

    /// Completes, with the reason, when the client has to go: a stranger after some time or too many bytes, a user who
    /// would not be let in any more.
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
                (close_code::POLICY, "nobody proved who they are within the limit authentication_timeout".to_owned())
            }
            () = self.peer.allowance.spent() => {
                let max = self.login_bytes_max;
                (close_code::SIZE, format!("more than {max} bytes (login_bytes_max) before a login"))
            }
        }
    }

    /// Lets a request through, holds it, or takes it as the proof.
    pub async fn pass(&mut self, call: Call, message: RawMessage, shared: &Shared) -> Passage {
        match (call.work, &shared.authenticator) {
            (Work::Authenticate(_), None) => {
                let failure = Failure::malformed("this server asks for no authentication; send requests without it");
                Passage::Answer(wire::failure(call.format, Some(call.request), &failure))
            }
            (Work::Authenticate(Err(failure)), Some(_)) => {
                Passage::Answer(wire::failure(call.format, Some(call.request), &failure))
            }
            (Work::Authenticate(Ok(proof)), Some(authenticator)) => {
                self.prove(call.request, call.format, &proof, authenticator, &shared.capacity).await
            }
            (work, _) => self.let_through(Call { work, ..call }, message),
        }
    }

    fn let_through(&mut self, call: Call, message: RawMessage) -> Passage {
        match self.known.as_ref().map(|(caller, _)| caller.current()) {
            Some(Ok(caller)) => Passage::Start(caller, Box::new(call)),
            Some(Err(error)) => {
                let failure = Failure::unauthorized(error.message());
                let answer = wire::failure(call.format, Some(call.request), &failure);
                Passage::Refused(vec![answer], Some(error.message().to_owned()))
            }
            None => self.hold(Held { message, format: call.format, request: call.request }),
        }
    }

    fn hold(&mut self, held: Held) -> Passage {
        let (format, request) = (held.format, held.request);
        if self.held.len() >= HELD_COUNT_MAX {
            let message = format!("more than {HELD_COUNT_MAX} requests came before the client proved who it is");
            return Passage::Answer(wire::failure(format, Some(request), &Failure::unauthorized(message)));
        }
        self.held.push(held);
        // One challenge is enough: a client that is asked twice answers twice.
        if self.held.len() == 1 {
            Passage::Answer(wire::challenge(format, request))
        } else {
            Passage::Refused(Vec::new(), None)
        }
    }

    async fn prove(
        &mut self,
        request: Uuid,
        format: Format,
        message: &[u8],
        authenticator: &Arc<Authenticator>,
        capacity: &Capacity,
    ) -> Passage {
        // A client that was known and fails to log in anew is a stranger without the limits of one: it has to go.
        let was_known = self.known.take().is_some();
        let outcome = authenticator.log_in_sasl(message, &self.peer.address).await;
        let outcome = outcome.map_err(|denied| denied.error());
        match outcome.and_then(|caller| Ok((capacity.of_user(caller.name())?, caller))) {
            Ok((share, caller)) => {
                self.known = Some((caller.clone(), Some(share)));
                self.deadline = None;
                self.peer.allowance.lift();
                Passage::Opened(caller, self.held.drain(..).map(|held| held.message).collect())
            }
            Err(error) => {
                self.failures += 1;
                let failure = Failure::unauthorized(error.message());
                let mut refused: Vec<(Format, Uuid)> =
                    self.held.drain(..).map(|held| (held.format, held.request)).collect();
                // Drivers send the proof under the id of the request that was challenged, which is answered once.
                if !refused.iter().any(|(_, id)| *id == request) {
                    refused.insert(0, (format, request));
                }
                let answers =
                    refused.into_iter().map(|(format, id)| wire::failure(format, Some(id), &failure)).collect();
                let is_last = was_known || self.failures >= FAILURE_COUNT_MAX;
                Passage::Refused(answers, is_last.then(|| "too many wrong passwords".to_owned()))
            }
        }
    }
}
