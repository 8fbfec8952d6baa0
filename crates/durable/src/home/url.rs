//! The homes that a text names.
//!
//! | text | home |
//! |---|---|
//! | `file:/path`, `file:///path`, `file:path` | a directory of objects, which several machines may share |
//! | `s3://BUCKET`, `s3://BUCKET/DIRECTORY` | a bucket, or a directory in it; with the feature `s3` |
//!
//! Any other text names no home: callers take it for a directory of a database.

use std::path::Path;
use std::sync::Arc;

use super::{DiskHome, Home, HomeError, HomeErrorKind, HomeResult};
use crate::disk::LocalDisk;

/// Threads that carry the requests to a directory out.
const DISK_THREADS: usize = 4;

/// Returns true if a text names a home.
pub fn is_url(text: &str) -> bool {
    text.starts_with("file:") || text.starts_with("s3://")
}

/// Opens the home that a text names; `None` if it names none. With `create`, a directory is made that does not exist.
///
/// # Errors
///
/// If the directory does not exist or cannot be made, or if the options of the bucket are wrong. No request is sent to a
/// bucket.
pub fn open_url(text: &str, create: bool) -> Option<HomeResult<Arc<dyn Home>>> {
    if let Some(path) = text.strip_prefix("file:") {
        return Some(open_directory(Path::new(path.strip_prefix("//").unwrap_or(path)), create));
    }
    text.starts_with("s3://").then(|| open_bucket(text))
}

/// Opens a directory as a home. With `create`, it is made if it does not exist.
///
/// # Errors
///
/// If the directory does not exist or cannot be made.
pub fn open_directory(path: &Path, create: bool) -> HomeResult<Arc<dyn Home>> {
    if !create && !path.is_dir() {
        let message = format!("there is no directory {}; check the path", path.display());
        return Err(HomeError::new(HomeErrorKind::Refused, message));
    }
    let disk = LocalDisk::new(path)?;
    Ok(Arc::new(DiskHome::new(Arc::new(disk), DISK_THREADS)?))
}

#[cfg(feature = "s3")]
fn open_bucket(url: &str) -> HomeResult<Arc<dyn Home>> {
    let options = super::object::ObjectOptions::of_url(url)?;
    Ok(Arc::new(super::object::ObjectHome::new(&options)?))
}

#[cfg(not(feature = "s3"))]
fn open_bucket(url: &str) -> HomeResult<Arc<dyn Home>> {
    let message =
        format!("cannot open {url}: this program was built without object stores; build it with the feature `s3`");
    Err(HomeError::new(HomeErrorKind::Invalid, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_a_home_and_other_texts_are_none() {
        assert!(open_url("/tmp/graph", false).is_none() && open_url("graph", true).is_none());
        assert!(is_url("s3://bucket/x") && is_url("file:/x") && !is_url("memory:"));
        let missing = open_url("file:/no/such/place", false).unwrap().unwrap_err();
        assert!(missing.message().contains("/no/such/place"), "{missing}");
    }

    #[cfg(not(feature = "s3"))]
    #[test]
    fn a_build_without_object_stores_says_so() {
        let error = open_url("s3://bucket", false).unwrap().unwrap_err();
        assert!(error.message().contains("feature `s3`"), "{error}");
    }
}
