//! From bytecode to a logical traversal: every step's meaning, its arguments checked.
