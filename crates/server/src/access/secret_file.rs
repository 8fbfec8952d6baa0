//! Files with secrets: whether they have changed, and whether other users of the machine may read them.

use std::path::Path;
use std::time::SystemTime;

/// Logs a warning if every user of the machine may read or change a file of secrets, or its group may change it.
pub(crate) fn warn_if_public(path: &Path) {
    use std::os::unix::fs::MetadataExt;
    let Ok(metadata) = std::fs::metadata(path) else { return };
    if metadata.mode() & 0o027 != 0 {
        let (path, mode) = (path.display(), metadata.mode() & 0o777);
        tracing::warn!(
            "{path} has secrets, and others than its owner may read or change it (mode {mode:o}): chmod 600 {path}"
        );
    }
}

/// The time of a file's last change and its length in bytes: if either differs, the file is read again.
pub(crate) fn changed(path: &Path) -> Option<(SystemTime, u64)> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}
