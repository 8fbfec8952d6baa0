//! The plan of a load: the content of its files, decided before a row is read.
//!
//! A [`Listing`] has the files. For each table there is a [`TablePlan`], made from its header and its rule in the
//! mapping. [`Identities`] says how an upsert recognizes elements. If a plan cannot be made, the load fails before
//! anything is written.
//!
//! | file | what it decides |
//! |---|---|
//! | `listing` | which files are loaded, in which format, under which rule |
//! | `layout` | separators, quotes, and the names of columns |
//! | `header` | what the names in a header mean |
//! | `draft` | the plan of one file, from header and rule |
//! | `given` | the plan of a table that a program hands over |
//! | `tables` | the plans of all files, which refer to each other's id spaces |
//! | `table_plan` | the form of a plan |
//! | `identities` | by what an upsert recognizes elements |

mod draft;
mod given;
mod header;
mod identities;
mod layout;
mod listing;
mod table_plan;
mod tables;

pub(crate) use given::plan_source;
pub(crate) use header::is_plain_name;
pub(crate) use identities::{Identities, key_text};
pub(crate) use listing::Listing;
pub(crate) use table_plan::{
    EdgePlan, EndPlan, GLOBAL_SPACE, IdPlan, LabelPlan, PropertyPlan, RowsPlan, TableForm, TablePlan, TextForm,
    UserIds, VERTEX_LABEL, ValuesPlan, VertexPlan,
};
pub(crate) use tables::plan_tables;
