//! Requests and responses of the Gremlin Server protocol, whatever format they are written in.
//!
//! These types are the same for every format. `graphbinary` and `graphson` read and write them, and `Encoding` chooses a
//! format by its media type.

mod request;
mod response;

pub use request::{Gremlin, MaterializeProperties, Request};
pub use response::{Response, ResponseData, ResponseHead};
