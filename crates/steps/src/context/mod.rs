//! The things that the operators of one run share: the execution context ([`execution`]), random numbers ([`random`]),
//! and the names of types in their errors ([`type_name`]).

pub(crate) mod execution;
pub(crate) mod random;
pub(crate) mod type_name;
