//! The server as a whole: it starts, accepts connections, and ends in order.
//!
//! [`starting`] takes the port before the graphs are open, [`serve`] serves and shuts down, [`accept`] takes
//! connections, [`read_only`] logs when a graph stops taking writes.

pub mod accept;
pub mod read_only;
pub mod serve;
pub mod starting;
