//! Limits that keep hostile input from exhausting stack, memory or time.
//!
//! - **WIRE-2.** Values, arguments and traversals nest at most [`NESTING_MAX`] levels. Every reader checks the limit
//!   where it goes one level down, since all later code (printing, binding, planning, dropping) recurses over these
//!   levels.
//! - **WIRE-3.** No input makes a reader panic, or allocate more than in proportion to the bytes that are still to be
//!   read.
//!
//! The limits are the same for scripts and for the wire, so a traversal that one accepts is accepted by the other.

/// The most levels of traversals, predicates, lists, sets and maps nested in one another (WIRE-2).
pub const NESTING_MAX: usize = 200;

/// The largest scale of a decimal, positive or negative. Adding 1 to a decimal of a larger scale, a few bytes of text
/// (`1e999999999m`), would need gigabytes.
pub const DECIMAL_SCALE_MAX: i64 = 100_000;

/// The most characters of a number literal. Converting digits takes quadratic time.
pub const NUMBER_LENGTH_MAX: usize = 20_000;

/// The bytes of the largest whole number of [`NUMBER_LENGTH_MAX`] digits, with its sign. Numbers read as bytes are
/// printed as digits.
pub const BIG_INTEGER_BYTES_MAX: usize = NUMBER_LENGTH_MAX * 10 / 24 + 1;

/// The most elements that all range literals (`1..5`) of one script may stand for together.
pub const RANGE_SIZE_MAX: u64 = 1_000_000;

/// The most bytes of a script, unless the caller sets another limit.
pub const SCRIPT_SIZE_BYTES_MAX: usize = 4 << 20;
