//! The history file: the inputs of earlier sessions.

use std::path::PathBuf;

use crate::args::ConsoleArgs;

/// The most inputs that are kept.
pub const LENGTH_MAX: usize = 10_000;

/// The history file of this user.
pub struct History {
    /// The file; `None` if no history is wanted or there is no place for it.
    pub file: Option<PathBuf>,
}

impl History {
    /// Finds the file and makes its folder. If that fails, the console works without history.
    pub fn open(args: &ConsoleArgs) -> Self {
        if args.no_history {
            return History { file: None };
        }
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        // A relative path is ignored, as the XDG specification demands.
        let state = set("XDG_STATE_HOME").filter(|path| path.is_absolute());
        let state = state.or_else(|| set("HOME").map(|home| home.join(".local/state")));
        let folder = state.map(|state| state.join("mangrove"));
        let folder = folder.filter(|folder| make_private(folder).is_ok());
        History { file: folder.map(|folder| folder.join("history")) }
    }
}

/// Makes the folder readable for its owner only, because inputs may hold data.
fn make_private(folder: &std::path::Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}
