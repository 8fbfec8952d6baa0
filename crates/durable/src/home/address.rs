//! Addresses of homes, as people write them: `s3://BUCKET/DIRECTORY`, or `file:DIRECTORY`.

use std::path::Path;
use std::sync::Arc;

use super::{DiskHome, Home, HomeError, HomeErrorKind, HomeResult};
use crate::disk::LocalDisk;

/// The beginning of the address of a bucket.
const BUCKET: &str = "s3://";
/// The beginning of the address of a directory that is a home.
const DIRECTORY: &str = "file:";

/// Threads that carry out the requests of a home in a directory.
const DIRECTORY_THREADS: usize = 4;

/// Returns true if a text is the address of a home, right or wrong, and no directory's name.
pub fn is_address(text: &str) -> bool {
    text.starts_with(DIRECTORY) || text.contains("://")
}

/// Opens the home at an address. A directory is made if there is none. What the address of a bucket does not say comes
/// from the environment (`AWS_ENDPOINT_URL`, `AWS_ACCESS_KEY_ID`, …).
///
/// # Errors
///
/// If the address is not one, if the directory cannot be made, or if the environment is wrong. No request is sent.
pub fn open(address: &str) -> HomeResult<Arc<dyn Home>> {
    let invalid = |message: String| Err(HomeError::new(HomeErrorKind::Invalid, message));
    if let Some(directory) = address.strip_prefix(DIRECTORY) {
        if directory.is_empty() {
            return invalid(format!("`{address}` names no directory; write {DIRECTORY}DIRECTORY"));
        }
        return open_directory(Path::new(directory.strip_prefix("//").unwrap_or(directory)), true);
    }
    if address.starts_with(BUCKET) {
        return open_bucket(address);
    }
    invalid(format!("`{address}` is no address of a home; write {BUCKET}BUCKET/DIRECTORY, or {DIRECTORY}DIRECTORY"))
}

/// As [`open`], but a directory that is not there is an error.
///
/// # Errors
///
/// As [`open`], and if the directory does not exist.
pub fn open_existing(address: &str) -> HomeResult<Arc<dyn Home>> {
    match address.strip_prefix(DIRECTORY) {
        Some(directory) if !directory.is_empty() => {
            open_directory(Path::new(directory.strip_prefix("//").unwrap_or(directory)), false)
        }
        _ => open(address),
    }
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
    if let Err(error) = std::fs::create_dir_all(path) {
        let message = format!("the directory {} cannot be made: {error}", path.display());
        return Err(HomeError::new(HomeErrorKind::Invalid, message));
    }
    Ok(Arc::new(DiskHome::new(Arc::new(LocalDisk::new(path)?), DIRECTORY_THREADS)?))
}

#[cfg(feature = "s3")]
fn open_bucket(address: &str) -> HomeResult<Arc<dyn Home>> {
    use super::object::{ObjectHome, ObjectOptions};
    Ok(Arc::new(ObjectHome::new(&ObjectOptions::of_url(address)?)?))
}

#[cfg(not(feature = "s3"))]
fn open_bucket(address: &str) -> HomeResult<Arc<dyn Home>> {
    let message = format!("`{address}` cannot be opened: this program was built without the feature `s3`");
    Err(HomeError::new(HomeErrorKind::Invalid, message))
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use crate::home::{Name, WaitHome};

    #[test]
    fn a_directory_s_address_opens_it_as_a_home() {
        let directory = std::env::temp_dir().join(format!("mangrove-address-{}", std::process::id()));
        let address = format!("file:{}", directory.join("deep").display());
        assert!(is_address(&address) && !is_address("directory") && !is_address("memory:"));
        let name = Name::new("a/b").unwrap();
        open(&address).unwrap().put_new(&name, "bytes".into()).unwrap();
        assert_eq!(open(&address).unwrap().get(&name).unwrap().as_deref(), Some(&b"bytes"[..]));
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_directory_that_must_be_there_is_not_made() {
        let error = open_existing("file:/no/such/place").unwrap_err();
        assert!(error.message().contains("/no/such/place"), "{error}");
    }

    #[test]
    fn wrong_addresses_are_named() {
        for address in ["file:", "s3://", "http://host/graph", "plain"] {
            let error = open(address).unwrap_err();
            assert_eq!(error.kind(), HomeErrorKind::Invalid, "{error}");
            assert!(error.message().contains(address), "{error}");
        }
    }
}
