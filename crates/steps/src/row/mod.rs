//! Row operators: a batch in, a batch out, no state.
//!
//! | modules | steps |
//! |---|---|
//! | [`source`], [`expand`] | `V()`, `E()`; `out()`, `inE()`, `otherV()` and so on |
//! | [`optional_expand`] | `optional(out())` |
//! | [`degrees`] | `out().count()`, tests of degrees |
//! | [`closing`], [`intersect`], [`sorted_lists`] | edges between two known vertices, intersections of neighbor lists |
//! | [`both_ends`] | a shortest path between known vertices, searched for from both ends |
//! | [`filter`], [`members`] | `has()`, `is()`, `all()`, `any()`, semi-joins over degrees |
//! | [`property`] | `values()`, `valueMap()`, `elementMap()` |
//! | [`paths`], [`members_of_names`], [`sack`], [`one_by_one`] | `path()`, `select()`, `as()`, `sack()`; rows one at a time |
//! | [`function`], [`formula`], [`local`] | text, collections, dates, `math()`, `format()`, `Scope.local` |
//! | [`call`] | `call()` |
//!
//! [`operator`] has the interface that most of them implement. Operators that make values of any size implement the
//! interface in [`map`].

pub(crate) mod both_ends;
pub(crate) mod call;
pub(crate) mod closing;
pub(crate) mod degrees;
pub(crate) mod expand;
pub(crate) mod filter;
pub(crate) mod formula;
pub(crate) mod function;
pub(crate) mod intersect;
pub(crate) mod local;
pub(crate) mod map;
pub(crate) mod members;
pub(crate) mod members_of_names;
pub(crate) mod one_by_one;
pub(crate) mod operator;
pub(crate) mod optional_expand;
pub(crate) mod paths;
pub(crate) mod property;
pub(crate) mod sack;
pub(crate) mod sorted_lists;
pub(crate) mod source;
