//! HTTP on the port of the server.
//!
//! [`router`] is the table of paths, with authentication and the checks of browsers; [`query`] runs queries;
//! [`query_status`] lists and ends running ones, and [`changes`] sends the change feed. WebSockets begin here as an upgrade, and go on in the folder
//! `websocket`.

pub mod changes;
pub mod query;
pub mod query_status;
pub mod router;
