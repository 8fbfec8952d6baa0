//! Requests and responses of the Gremlin Server protocol, whatever format they are written in.
//!
//! The formats ([`graphbinary`](crate::graphbinary), [`graphson`](crate::graphson)) read and write them;
//! [`Encoding`](crate::Encoding) chooses one by its media type.

mod request;
mod response;

pub use request::{Gremlin, MaterializeProperties, Request};
pub use response::{Response, ResponseData, ResponseHead};
