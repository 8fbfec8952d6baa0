//! The things that the operators of one run share: the execution context ([`execution`]), and random numbers
//! ([`random`]).

pub(crate) mod execution;
pub(crate) mod random;
