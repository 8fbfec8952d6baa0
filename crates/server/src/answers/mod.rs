//! Results on their way from the engine to the client.
//!
//! ```text
//! engine thread                                                   async threads
//!  sink ── batch ──► carrier ──► wire + outgoing ──► writer task ──► WebSocket
//!  (cuts)  (results)         └─► http_body ───────► response body ──► HTTP
//! ```
//!
//! [`sink`] cuts the results of a query into batches. [`carrier`] encodes a batch as a message of a WebSocket
//! ([`wire`]) or as a piece of an HTTP body ([`http_body`]). [`outgoing`] is the bounded queue of a WebSocket.
//! [`result_max`] holds the limits of size.

pub mod batch;
pub mod carrier;
pub mod http_body;
pub mod outgoing;
pub mod result_max;
pub mod sink;
pub mod wire;
