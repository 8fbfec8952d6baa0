//! A WebSocket's way from a stranger to somebody who is known.
//!
//! Where the server asks who somebody is, the first request is held and answered with a challenge (407). The client sends
//! `authentication` with SASL PLAIN; when it is right, what was held is run as if it had come now, which is what drivers
//! expect. Requests that come in between wait with the first, so many and no more. A wrong password refuses all that
//! wait (401).
//!
//! Once open the gate asks for every request whether its user still is one ([`Login::caller`]).

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::Message;
use smol_str::SmolStr;
use tokio::time::Instant;
use uuid::Uuid;

use crate::access::Caller;
use crate::auth::{Authenticator, FAILURE_COUNT_MAX, Login};
use crate::job::{Call, Work};
use crate::status::Failure;
use crate::wire::{self, Format};

/// Requests that wait for the proof. Each is no larger than a request may be.
const HELD_COUNT_MAX: usize = 16;

/// The gate of one connection.
pub struct Gate {
    peer: SmolStr,
    login: Option<Login>,
    held: Vec<Call>,
    failures: u32,
    /// When a stranger has to go.
    deadline: Option<Instant>,
}

/// What becomes of a request.
pub enum Passage {
    /// It is run.
    Start(Caller, Box<Call>),
    /// It is answered with this, for now.
    Answer(Message),
    /// The client is known now: what was held is run.
    Opened(Caller, Vec<Call>),
    /// The client did not prove who it is: these are the answers to what was held, and with a reason the connection is
    /// closed.
    Refused(Vec<Message>, Option<&'static str>),
}

impl Gate {
    /// An open gate for one who is known, a shut one for a stranger, who has so long.
    pub fn new(peer: SmolStr, login: Option<Login>, patience: Duration) -> Self {
        let deadline = if login.is_none() { Instant::now().checked_add(patience) } else { None };
        Gate { peer, login, held: Vec::new(), failures: 0, deadline }
    }

    /// Completes when a stranger has been one for too long.
    pub async fn overdue(&self) {
        match self.deadline {
            Some(deadline) => tokio::time::sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    }

    /// Lets a request through, holds it, or takes it as the proof.
    pub async fn pass(&mut self, call: Call, authenticator: Option<&Arc<Authenticator>>) -> Passage {
        match (call.work, authenticator) {
            (Work::Authenticate(_), None) => {
                let failure = Failure::malformed("this server asks for no authentication; send requests without it");
                Passage::Answer(wire::failure(call.format, Some(call.request), &failure))
            }
            (Work::Authenticate(Err(failure)), Some(_)) => {
                Passage::Answer(wire::failure(call.format, Some(call.request), &failure))
            }
            (Work::Authenticate(Ok(message)), Some(authenticator)) => {
                self.prove(call.request, call.format, &message, authenticator).await
            }
            (work, _) => self.let_through(Call { work, ..call }),
        }
    }

    fn let_through(&mut self, call: Call) -> Passage {
        match self.login.as_mut().map(Login::caller) {
            Some(Ok(caller)) => Passage::Start(caller, Box::new(call)),
            Some(Err(error)) => {
                let failure = Failure::unauthorized(error.message());
                Passage::Refused(vec![wire::failure(call.format, Some(call.request), &failure)], Some("log in again"))
            }
            None => self.hold(call),
        }
    }

    fn hold(&mut self, call: Call) -> Passage {
        if self.held.len() >= HELD_COUNT_MAX {
            let message = format!("more than {HELD_COUNT_MAX} requests came before the client proved who it is");
            return Passage::Answer(wire::failure(call.format, Some(call.request), &Failure::unauthorized(message)));
        }
        let (format, request) = (call.format, call.request);
        self.held.push(call);
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
    ) -> Passage {
        let outcome = match authenticator.log_in_sasl(message, &self.peer).await {
            Ok(mut login) => login.caller().map(|caller| (login, caller)),
            Err(denied) => Err(denied.error()),
        };
        match outcome {
            Ok((login, caller)) => {
                self.login = Some(login);
                self.deadline = None;
                Passage::Opened(caller, std::mem::take(&mut self.held))
            }
            Err(error) => {
                self.login = None;
                self.failures += 1;
                let failure = Failure::unauthorized(error.message());
                let mut refused: Vec<(Format, Uuid)> =
                    self.held.drain(..).map(|call| (call.format, call.request)).collect();
                // Drivers send the proof under the id of the request that was challenged, which is answered once.
                if !refused.iter().any(|(_, id)| *id == request) {
                    refused.insert(0, (format, request));
                }
                let answers =
                    refused.into_iter().map(|(format, id)| wire::failure(format, Some(id), &failure)).collect();
                let is_last = self.failures >= FAILURE_COUNT_MAX;
                Passage::Refused(answers, is_last.then_some("too many wrong passwords"))
            }
        }
    }
}
