//! The log of a graph whose home is an object store: a stream of objects for each incarnation of an owner.

pub mod format;
pub mod names;
