//! Test data: data sets, unpacked where a program can read them, and numbers of random cases.
//!
//! The archives are outside the project, in `../shared/data` beside its root (the README there describes them).
//! [`dataset`] unpacks an archive to `target/testdata` at its first use, and returns the folder. If the archive is
//! missing, it returns `None`, and the test prints so and passes: the project must build and test from a bare checkout.
//! Benchmarks name their own places ([`unpacked`]).
//! `tinkerpop.sh`, which `make test` calls, fetches TinkerPop's graphs from Maven to the same place.
//!
//! Several programs may unpack a data set at once: each unpacks to a folder of its own and renames it; the first
//! rename wins.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod cases;

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

pub use cases::{case_count, first_seed};

/// The folder of an unpacked data set. If its archive is missing, prints a line and returns `None`; the test should
/// then return.
///
/// # Panics
///
/// If the archive exists but cannot be unpacked: a test must not pass because a disk is full.
pub fn dataset(name: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the crate lies two folders deep");
    let archives = root.join("../shared/data");
    let folder = unpacked(&archives, name, &root.join("target/testdata")).unwrap_or_else(|error| panic!("{error}"));
    if folder.is_none() {
        println!("skipped: the data set {name} is not in {}", archives.display());
    }
    folder
}

/// The folder of a data set whose archive is in `archives`. Unpacks the archive below `target` at the first use.
/// Returns `None` if there is no archive.
///
/// # Errors
///
/// If the archive cannot be unpacked; the message names it.
pub fn unpacked(archives: &Path, name: &str, target: &Path) -> io::Result<Option<PathBuf>> {
    let folder = target.join(name);
    if folder.is_dir() {
        return Ok(Some(folder));
    }
    let candidates = ["tar.zst", "tar.gz"].map(|extension| archives.join(format!("{name}.{extension}")));
    let Some(archive) = candidates.into_iter().find(|path| path.is_file()) else { return Ok(None) };
    unpack(&archive, target, &folder).map_err(|error| {
        let message = format!("cannot unpack {} to {}: {error}", archive.display(), target.display());
        io::Error::new(error.kind(), message)
    })?;
    Ok(Some(folder))
}

/// Unpacks an archive that holds one folder, and moves that folder to its place.
fn unpack(archive: &Path, target: &Path, folder: &Path) -> io::Result<()> {
    let own = target.join(format!(".unpacking-{}-{:?}", std::process::id(), std::thread::current().id()));
    fs::create_dir_all(&own)?;
    tar::Archive::new(decompress(archive)?).unpack(&own)?;
    let name = folder.file_name().expect("the folder is named after a data set");
    let outcome = fs::rename(own.join(name), folder);
    fs::remove_dir_all(&own)?;
    match outcome {
        // Another process was faster: its folder has the same content.
        Err(_) if folder.is_dir() => Ok(()),
        outcome => outcome,
    }
}

fn decompress(archive: &Path) -> io::Result<Box<dyn Read>> {
    let file = BufReader::new(File::open(archive)?);
    if archive.extension().is_some_and(|extension| extension == "gz") {
        return Ok(Box::new(flate2::bufread::GzDecoder::new(file)));
    }
    let decoder = ruzstd::decoding::StreamingDecoder::new(file).map_err(io::Error::other)?;
    Ok(Box::new(decoder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_of_both_kinds_unpack_once() {
        for (name, file) in [("tinkerpop", "tinkerpop-modern.json"), ("ldbc_snb_sf0.003", "test-data.md")] {
            let Some(folder) = dataset(name) else { continue };
            assert!(folder.join(file).is_file(), "{name}");
            assert_eq!(dataset(name), Some(folder));
        }
    }

    #[test]
    fn an_unknown_name_is_absent() {
        assert_eq!(dataset("no-such-set"), None);
    }

    #[test]
    fn an_archive_that_is_none_is_named() {
        let folder = std::env::temp_dir().join(format!("mangrove-testdata-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("broken.tar.gz"), "no archive").unwrap();
        let error = unpacked(&folder, "broken", &folder).unwrap_err();
        assert!(error.to_string().contains("broken.tar.gz"), "{error}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
