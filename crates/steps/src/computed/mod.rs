//! The values that a `by()` takes of rows: looked up into a column ([`lookup`]), or read by the operator that sorts or
//! groups by them ([`keys`]). [`degrees`] serves both.

pub(crate) mod degrees;
pub(crate) mod keys;
pub(crate) mod lookup;
