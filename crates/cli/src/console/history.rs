//! Where what was typed is kept from one conversation to the next.

use std::path::PathBuf;

use super::args::ConsoleArgs;

/// How many inputs are kept.
pub const LENGTH_MAX: usize = 10_000;

/// A file, or none.
pub struct History {
    /// The file; `None` where nothing is to be kept, or there is no place for it.
    pub file: Option<PathBuf>,
}

impl History {
    /// The file of this user, whose folder is made if need be: a console without history is better than none.
    pub fn open(args: &ConsoleArgs) -> Self {
        if args.no_history {
            return History { file: None };
        }
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        // A relative path is to be ignored, as the specification of these folders has it.
        let state = set("XDG_STATE_HOME").filter(|path| path.is_absolute());
        let state = state.or_else(|| set("HOME").map(|home| home.join(".local/state")));
        let folder = state.map(|state| state.join("mangrove"));
        let folder = folder.filter(|folder| make_private(folder).is_ok());
        History { file: folder.map(|folder| folder.join("history")) }
    }
}

/// A folder that only its owner looks into: what is typed may hold data.
fn make_private(folder: &std::path::Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}
