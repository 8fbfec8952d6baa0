//! The means that keep a query within its limits of memory and time.
//!
//! | module | purpose |
//! |---|---|
//! | [`meter`] | bounds the memory and time of one call of an operator |
//! | [`sizes`] | measures values, so that they can be charged |
//! | [`nesting`] | bounds how deep collections nest, and how often they hold the same one |
//! | [`table`] | bounds the pause in which a hash table grows |

pub(crate) mod meter;
pub(crate) mod nesting;
pub(crate) mod sizes;
pub(crate) mod table;
