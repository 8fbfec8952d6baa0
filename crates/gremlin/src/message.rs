//! Requests and responses of the Gremlin Server protocol, independent of the format they are written in.
//!
//! `graphbinary` and `graphson` read and write them. `Encoding` chooses a format by its media type.

mod request;
mod response;

pub use request::{Gremlin, MaterializeProperties, Request};
pub use response::{Response, ResponseData, ResponseHead};
