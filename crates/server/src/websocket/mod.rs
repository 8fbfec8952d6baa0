//! One WebSocket: the connection, its login, and its sessions.
//!
//! [`connection`] reads requests and starts them, [`gate`] holds them back until the client has logged in, [`session`]
//! is the task that runs the requests of one session in order.

pub mod connection;
pub mod gate;
pub mod session;
