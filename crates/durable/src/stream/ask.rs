//! Requests of a stream, sent to a home.

use std::sync::mpsc::sync_channel;

use bytes::Bytes;

use super::request::{Answer, Request};
use crate::home::{self, Home, HomeError, HomeErrorKind, HomeResult, Name, Reply};

/// Sends a request. `done` is called with the answer, of the request's kind: on a thread of the home, or at once.
pub(super) fn send(home: &dyn Home, request: Request, done: impl FnOnce(Answer) + Send + 'static) {
    let kind = Kind::of(&request);
    match to_home(request) {
        Ok(request) => home.submit(request, Box::new(move |reply| done(kind.answer(reply)))),
        Err(error) => done(kind.answer(Err(error))),
    }
}

/// Sends a request and waits for the answer.
pub(super) fn send_and_wait(home: &dyn Home, request: Request) -> Answer {
    let kind = Kind::of(&request);
    let (sender, answers) = sync_channel(1);
    // The receiver stays until the answer is there, so sending cannot fail.
    send(home, request, move |answer| drop(sender.send(answer)));
    // Only a home that breaks HOME-4 drops a completion without a call.
    answers
        .recv()
        .unwrap_or_else(|_| kind.answer(Err(HomeError::new(HomeErrorKind::Unknown, "the home gave no answer"))))
}

/// Reads a whole object and waits for the answer.
pub(super) fn read_whole(home: &dyn Home, name: String) -> HomeResult<Option<Bytes>> {
    match send_and_wait(home, Request::Read { name, bytes_max: None }) {
        Answer::Read(answer) => answer,
        Answer::Put(_) | Answer::List(_) => Err(mismatched()),
    }
}

/// The kind of a request and of its answer.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Put,
    Read,
    List,
}

impl Kind {
    fn of(request: &Request) -> Self {
        match request {
            Request::PutNew { .. } => Kind::Put,
            Request::Read { .. } => Kind::Read,
            Request::List { .. } => Kind::List,
        }
    }

    fn answer(self, reply: HomeResult<Reply>) -> Answer {
        match self {
            Kind::Put => Answer::Put(reply.and_then(|reply| match reply {
                Reply::Put(put) => Ok(put),
                _ => Err(mismatched()),
            })),
            Kind::Read => Answer::Read(reply.and_then(|reply| match reply {
                Reply::Object(bytes) => Ok(bytes),
                Reply::Ranges(ranges) => Ok(ranges.map(|ranges| ranges.into_iter().next().unwrap_or_default())),
                _ => Err(mismatched()),
            })),
            Kind::List => Answer::List(reply.and_then(|reply| match reply {
                Reply::Names(names) => Ok(names.iter().map(Name::to_string).collect()),
                _ => Err(mismatched()),
            })),
        }
    }
}

fn mismatched() -> HomeError {
    let message = "the home answered another request than the one it was sent; this is a bug, report it";
    HomeError::new(HomeErrorKind::Unknown, message)
}

fn to_home(request: Request) -> HomeResult<home::Request> {
    Ok(match request {
        Request::PutNew { name, bytes } => home::Request::PutNew { name: Name::new(&name)?, bytes },
        Request::Read { name, bytes_max: None } => home::Request::Get { name: Name::new(&name)? },
        Request::Read { name, bytes_max: Some(count) } => {
            home::Request::Ranges { name: Name::new(&name)?, ranges: std::iter::once(0..count as u64).collect() }
        }
        Request::List { directory } => home::Request::List { directory: Name::new(&directory)? },
    })
}
