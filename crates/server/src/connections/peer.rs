//! The facts that a request knows of its connection.

use std::sync::Arc;

use mangrove_graph::Error;
use smol_str::SmolStr;

use super::allowance::Allowance;
use super::permits::ConnectionPermit;

/// The client's side of a connection, in the extensions of each of its requests.
#[derive(Clone)]
pub struct Peer {
    /// The client's address and port.
    pub address: SmolStr,
    /// The decision on this request.
    pub admission: Admission,
    /// The bytes that the client may send.
    pub allowance: Arc<Allowance>,
}

/// The decision whether a request is served.
#[derive(Clone)]
pub enum Admission {
    /// The request only watches over the server and needs no permit.
    Watching,
    /// The connection has this permit, which lasts as long as a clone of it.
    Permitted(#[expect(dead_code, reason = "it is kept, not looked at")] Arc<ConnectionPermit>),
    /// The connection gets no permit, for this reason.
    Full(Error),
}
