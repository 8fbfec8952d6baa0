//! What keeps a query within its limits of memory and time.
//!
//! | module | bounds |
//! |---|---|
//! | [`meter`] | the memory and time of one call of an operator |
//! | [`sizes`] | measures values, so that they can be charged |
//! | [`nesting`] | how deep collections nest, and how often they hold the same one |
//! | [`table`] | the pause of a hash table that grows |

pub(crate) mod meter;
pub(crate) mod nesting;
pub(crate) mod sizes;
pub(crate) mod table;
