//! The server: the Gremlin Server protocol in front of a graph engine.
//!
//! One port serves `/gremlin` (WebSocket, for the official drivers unmodified, and HTTP), `/gremlin/status`, `/health`
//! and `/metrics`, in GraphBinary 1 and GraphSON. A request takes this way:
//!
//! ```text
//! server::accept ── connections ──┬── websocket ──┬── requests ── worker thread ── program ── engine ── graphs
//!                   (permits,     └── http ───────┘   (decode)                                  │
//!                    TLS, limits)       ▲                                                       │ batches of results
//!                                       └───────────────── answers ◄────────────────────────────┘
//! ```
//!
//! `docs/design/requests.md` follows a request from its socket to its last byte, `docs/design/cancellation.md` names
//! all causes that end it early. Folders, lowest layer first; each uses those above it and none below:
//!
//! | folder | content |
//! |---|---|
//! | `limits`, `status`, `shutdown`, `reloadable`, `edge` | limits, status codes, the phases of the end, values that can be replaced, the clock |
//! | `metrics`, `memory` | the metrics of `/metrics`; the draws of messages on the memory budget |
//! | `access`, `trace` | users, rights, logins, the audit log, web origins; spans of requests |
//! | `engine` | the traits that a database implements, cancellation, the list of running queries, tenants |
//! | `graphs` | the graphs by name, and the database as an engine |
//! | `connections` | permits, TLS and limits of connections |
//! | `answers` | results on their way to the client |
//! | `requests` | decoding, programs, worker threads, the register of sessions |
//! | `shared` | the state that all connections of a server share |
//! | `websocket`, `http` | the two protocols |
//! | `server`, `config` | start, accept loop, shutdown; the configuration |
//! | `inputs` | the decoders, for fuzzing |
//!
//! Not here: single sign-on, client certificates, encryption of data on disk.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod access;
mod answers;
mod config;
mod connections;
mod edge;
mod engine;
mod graphs;
mod http;
pub mod inputs;
mod limits;
mod memory;
mod metrics;
mod reloadable;
mod requests;
mod server;
mod shared;
mod shutdown;
mod status;
mod trace;
mod websocket;

pub use access::audit::TARGET as AUDIT_TARGET;
pub use access::auth::UsersSource;
pub use access::caller::{Access, Caller, LoginStanding, Rights};
pub use access::graph_name::check_name as check_graph_name;
pub use access::lockout::Lockout;
pub use access::origin::Browsers;
pub use access::users::{User, Users};
pub use config::Config;
pub use connections::tls::TlsFiles;
pub use engine::cancel::{CancelReason, Cancellation};
pub use engine::contract::{Engine, EngineTransaction, ResultSink};
pub use engine::request::{Materialize, QueryRequest};
pub use engine::running::RunningQuery;
pub use engine::tenant::TenantWeights;
pub use graphs::database::{DatabaseEngine, EngineLimits};
pub use graphs::registry::{GraphOpener, GraphOptions, Registry, default_sources, isolation_name, isolation_of};
pub use limits::Limits;
pub use requests::worker::blocking_thread_count;
pub use server::serve::{ReloadableLimits, Server};
pub use server::starting::Starting;
pub use trace::{REQUEST as REQUEST_SPAN, TARGET as TRACE_TARGET};
