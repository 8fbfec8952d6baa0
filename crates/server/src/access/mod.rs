//! Who the client is, and what it may do to which graph.
//!
//! [`caller`] is the identity that goes with every request. [`users`] is the file of users and password hashes,
//! [`auth`] checks passwords, [`lockout`] slows and refuses repeated wrong ones, and [`audit`] logs both. [`origin`]
//! decides which web pages may use the server. Nothing here knows a protocol or an engine.

pub mod audit;
pub mod auth;
pub mod caller;
pub mod graph_name;
pub mod lockout;
pub mod network;
pub mod origin;
pub mod secret_file;
pub mod users;
