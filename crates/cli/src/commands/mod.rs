//! The commands besides `serve`, one module each. `variables` is shared by `query` and `console`.

pub mod algo;
pub mod bench;
pub mod changes;
pub mod console;
pub mod demo;
pub mod export;
pub mod generate;
pub mod health;
pub mod load;
pub mod manage;
pub mod query;
pub mod shell;
pub mod stats;
pub mod store;
pub mod user;
mod variables;
