//! Values as Gremlin has them.
//!
//! | module | holds |
//! |---|---|
//! | [`collection`] | the members of collections, and maps that grow |
//! | [`fold`] | how one value is folded into another (`Operator`) |
//! | [`predicate`], [`number_range`] | tests of values (`P`, `TextP`), and tests of numbers as ranges |
//! | [`element_order`] | the order of elements among their kind |
//! | [`names`] | names of labels and keys, read from the catalog once |

pub(crate) mod collection;
pub(crate) mod element_order;
pub(crate) mod fold;
pub(crate) mod names;
pub(crate) mod number_range;
pub(crate) mod predicate;
