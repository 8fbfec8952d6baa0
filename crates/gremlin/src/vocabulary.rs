//! The words of the language, for consoles that complete input. They come from the tables that the parser itself reads.

use crate::predicate::{P_NAMES, TEXT_P_NAMES};
use crate::script::names;

/// Every step.
pub fn steps() -> &'static [&'static str] {
    names::STEPS
}

/// The steps a traversal may begin with.
pub fn start_steps() -> &'static [&'static str] {
    names::START_STEPS
}

/// The methods that configure a traversal source, as in `g.withSack(1)`.
pub fn source_methods() -> &'static [&'static str] {
    names::SOURCE_METHODS
}

/// The methods that end a traversal, as in `g.V().toList()`.
pub fn terminals() -> &'static [&'static str] {
    names::TERMINALS
}

/// The predicates, of `P` and of `TextP`.
pub fn predicates() -> impl Iterator<Item = &'static str> {
    P_NAMES.iter().chain(TEXT_P_NAMES).copied()
}

/// The names that have members, as in `Order.desc`.
pub fn qualifiers() -> &'static [&'static str] {
    names::QUALIFIERS
}

/// The names that may follow a qualifier and a `.`.
pub fn members(qualifier: &str) -> Vec<&'static str> {
    match qualifier {
        "P" => P_NAMES.to_vec(),
        "TextP" => TEXT_P_NAMES.to_vec(),
        "__" => names::STEPS.to_vec(),
        _ => names::members(qualifier).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_qualifier_has_members() {
        for qualifier in qualifiers() {
            assert!(!members(qualifier).is_empty(), "{qualifier}");
        }
        assert!(members("Order").contains(&"desc") && members("T").contains(&"label"));
        assert!(members("Column").contains(&"keys") && !members("Order").contains(&"keys"));
        assert!(members("Nothing").is_empty());
    }
}
