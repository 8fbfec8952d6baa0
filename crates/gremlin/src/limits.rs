//! Limits that keep hostile input from exhausting stack, memory or time.
//!
//! They hold for scripts and for the wire alike, so that a traversal accepted from one is accepted from
//! the other.

/// How deep traversals, predicates, lists, sets and maps may nest in one another.
///
/// Everything that walks a bytecode afterwards (printing, binding, planning, dropping) recurses over this
/// depth, which is why the limit is enforced where bytecode is made.
pub const NESTING_MAX: usize = 200;

/// The largest scale, positive or negative, of a decimal: beyond it a few bytes of text (`1e999999999m`)
/// would need gigabytes as soon as somebody adds 1.
pub const DECIMAL_SCALE_MAX: i64 = 100_000;

/// The longest number literal in characters; converting digits takes quadratic time.
pub const NUMBER_LENGTH_MAX: usize = 20_000;

/// The bytes of the largest whole number of [`NUMBER_LENGTH_MAX`] digits, with its sign: what is read as bytes is printed
/// as digits later.
pub const BIG_INTEGER_BYTES_MAX: usize = NUMBER_LENGTH_MAX * 10 / 24 + 1;

/// How many elements the range literals (`1..5`) of one script may stand for together.
pub const RANGE_SIZE_MAX: u64 = 1_000_000;

/// How long a script may be unless the caller says otherwise.
pub const SCRIPT_SIZE_BYTES_MAX: usize = 4 << 20;
