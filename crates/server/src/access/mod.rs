//! The identities of clients, and their rights on graphs.
//!
//! [`caller`] is the identity that goes with every request. [`users`] is the file of users and password hashes,
//! [`secret_file`] watches such files. [`auth`] checks passwords, [`lockout`] slows and refuses repeated wrong ones,
//! and [`audit`] logs logins, refusals and the acts of administrators. [`origin`] decides which web pages may use the
//! server. [`network`] and [`graph_name`] are the addresses and the names that the others count and check. Nothing
//! here knows a protocol or an engine.

pub mod audit;
pub mod auth;
pub mod caller;
pub mod graph_name;
pub mod lockout;
pub mod network;
pub mod origin;
pub mod secret_file;
pub mod users;
