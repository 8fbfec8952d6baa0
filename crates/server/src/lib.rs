//! The server: the Gremlin Server protocol in front of a graph engine.
//!
//! One port serves `/gremlin` (WebSockets, which the official drivers speak unmodified, and HTTP) and `/health`,
//! in GraphBinary 1 and GraphSON. A request goes this way:
//!
//! ```text
//! connection ── protocol ──┬────────── worker ── program ── Engine
//!   (frames)    (Call)     ├─ session ──┘          │
//! http_query ──────────────┘                       │
//!      └───────── wire ◄────── sink ◄──────────────┘ results, in batches
//! ```
//!
//! - `accept`, `admission`: connections until their first request, and how many there may be of whom; `allowance`: how much
//!   a stranger may send.
//! - [`connection`](self): one WebSocket; bounds what is in flight; cancels everything when it is lost.
//! - `http_query`: a request of HTTP; `http_answer`: its body, in pieces; `http_status`: the queries that run.
//! - `protocol`: what a message asks for; `wire`: how an answer is written; `status`: which error gets which code.
//! - `session`: requests that share a transaction, in order, until commit, rollback, close or idle expiry.
//! - `worker`: the engine is synchronous and runs on a bounded number of blocking threads, watched over from
//!   outside: time limit, lost connection, panic.
//! - `program`: scripts and bytecode become queries; retries after a conflict.
//! - [`access`]: who asks, and what they may do to which graph; [`auth`] and [`users`]: how they prove it;
//!   [`lockout`]: what becomes of who guesses; [`origin`]: which pages a browser may ask from.
//! - [`engine`]: the narrow trait behind which the database stands; [`DatabaseEngine`] implements it, and is all of
//!   this crate that knows the database.
//!
//! Invariants:
//!
//! 1. Every request of a WebSocket is answered by messages with its id, of which exactly the last has a status other than 206.
//! 2. A query outside a session is committed before its last result is sent.
//! 3. Nothing a client sends grows anything without a limit named in [`config::Limits`], and no panic in the engine
//!    ends more than its request and session.
//!
//! Not here: single sign-on, client certificates, encryption of what is on disk.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod accept;
pub mod access;
mod admission;
mod allowance;
pub mod audit;
pub mod auth;
mod budget;
mod cancel;
pub mod config;
mod connection;
mod database;
mod edge;
pub mod engine;
mod exposition;
mod gate;
mod graph_directory;
mod http;
mod http_answer;
mod http_query;
mod http_status;
pub mod inputs;
mod job;
pub mod live;
pub mod lockout;
mod meters;
mod metrics;
pub mod origin;
mod outgoing;
mod places;
mod process;
mod program;
mod protocol;
mod queries;
mod read_only;
pub mod registry;
mod server;
mod services;
mod session;
mod shutdown;
mod sink;
mod stall;
mod starting;
pub mod status;
pub mod tls;
pub mod trace;
mod transaction;
pub mod users;
mod weight;
mod wire;
mod worker;

pub use access::{Access, Caller, Rights};
pub use auth::UsersSource;
pub use cancel::Cancellation;
pub use config::{Config, Limits};
pub use database::{DatabaseEngine, EngineLimits};
pub use engine::{Engine, EngineTransaction, Materialize, QueryRequest, ResultSink};
pub use lockout::Lockout;
pub use origin::Browsers;
pub use queries::Running;
pub use server::{LiveLimits, Server};
pub use starting::Starting;
pub use tls::TlsFiles;
pub use worker::blocking_thread_count;
