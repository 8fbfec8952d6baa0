//! Every source file must begin with a comment on its module.

use crate::files;

/// The paths of the source files that do not begin with a module comment (`//!`).
pub fn missing() -> Vec<String> {
    let folders = ["crates", "bench", "bindings", "fuzz", "conformance", "demo"];
    let sources = folders.iter().flat_map(|folder| files::below(&files::root().join(folder), "rs"));
    sources.filter(|path| !files::text(path).starts_with("//!")).map(|path| files::shown(&path)).collect()
}
