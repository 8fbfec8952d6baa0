//! Addresses of homes, as people write them: `s3://BUCKET/DIRECTORY`, or `file:DIRECTORY`.

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
        if let Err(error) = std::fs::create_dir_all(directory) {
            return invalid(format!("the directory of {address} cannot be made: {error}"));
        }
        let disk = LocalDisk::new(directory)
            .map_err(|error| HomeError::new(HomeErrorKind::Failed, format!("cannot open {address}: {error}")))?;
        return Ok(Arc::new(DiskHome::new(Arc::new(disk), DIRECTORY_THREADS)?));
    }
    if address.starts_with(BUCKET) {
        return open_bucket(address);
    }
    invalid(format!("`{address}` is no address of a home; write {BUCKET}BUCKET/DIRECTORY, or {DIRECTORY}DIRECTORY"))
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
    fn wrong_addresses_are_named() {
        for address in ["file:", "s3://", "http://host/graph", "plain"] {
            let error = open(address).unwrap_err();
            assert_eq!(error.kind(), HomeErrorKind::Invalid, "{error}");
            assert!(error.message().contains(address), "{error}");
        }
    }
}
